"""Libraries that peers are built with, at the newest version their registry serves: unpacked under build/bench/packages, the
system left as it is. What lies there is taken as it is; remove the folder to have the newest again."""
import glob
import os
import re
import shutil
import sys
import zipfile

from contender import BUILD, run_quietly

PACKAGES = os.path.join(BUILD, "packages")


def debian(package):
    """None if headers of Debian's development suite lie in PACKAGES/package now, else why not."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return "apt-get or dpkg-deb is not installed"
    return once(package, lambda folder: unpack_debian(package, folder))


def pypi(name, *packages):
    """None if the libraries and headers of these wheels lie in PACKAGES/name now, else why not."""
    return once(name, lambda folder: unpack_wheels(packages, folder))


def once(name, unpack):
    """Calls unpack(folder) unless that was done before; a folder is there whole or not at all."""
    folder = os.path.join(PACKAGES, name)
    if os.path.isdir(folder):
        return None
    part = folder + ".part"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    reason = unpack(part)
    if reason is None:
        os.rename(part, folder)
    return reason


def archive():
    """The entry of the machine's own Debian archive, turned to the development suite; None if it has none."""
    for path in glob.glob("/etc/apt/sources.list.d/*.sources"):
        with open(path) as file:
            for entry in re.split(r"\n\s*\n", file.read()):
                uri = re.search(r"^URIs:\s*(\S+/debian/?)\s*$", entry, re.M)
                key = re.search(r"^Signed-By:\s*/\S+\s*$", entry, re.M)
                if uri:
                    return f"Types: deb\nURIs: {uri[1]}\nSuites: sid\nComponents: main\n{key[0] if key else ''}\n"
    for path in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*.list")]:
        if not os.path.exists(path):
            continue
        with open(path) as file:
            entry = re.search(r"^deb\s+(?:\[([^\]]*)\]\s+)?(\S+/debian/?)\s", file.read(), re.M)
        if entry:
            key = re.search(r"signed-by=(\S+)", entry[1] or "")
            return f"Types: deb\nURIs: {entry[2]}\nSuites: sid\nComponents: main\n{'Signed-By: ' + key[1] if key else ''}\n"
    return None


def unpack_debian(package, folder):
    sources = archive()
    if sources is None:
        return "no Debian archive in /etc/apt"
    state = os.path.join(PACKAGES, "apt")
    for part in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(state, part), exist_ok=True)
    with open(os.path.join(state, "sid.sources"), "w") as file:
        file.write(sources)
    apt = ["apt-get", "-q", "-o", f"Dir::Etc::SourceList={state}/sid.sources", "-o", "Dir::Etc::SourceParts=/dev/null",
           "-o", f"Dir::State::Lists={state}/lists", "-o", f"Dir::Cache={state}/cache", "-o", "APT::Sandbox::User=",
           "-o", "Acquire::Languages=none", "-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"]
    errors = run_quietly([*apt, "update"]) or run_quietly([*apt, "download", package], folder)
    if errors:
        return errors
    [file] = glob.glob(os.path.join(folder, "*.deb"))
    errors = run_quietly(["dpkg-deb", "-x", file, folder])
    os.remove(file)
    return errors


def unpack_wheels(packages, folder):
    """The `data` of wheels is what they would put beside Python: include/, lib/."""
    errors = run_quietly([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder, *packages])
    if errors:
        return errors
    for wheel in glob.glob(os.path.join(folder, "*.whl")):
        with zipfile.ZipFile(wheel) as file:
            for member in file.infolist():
                inside = re.match(r"[^/]+\.data/data/(.+)", member.filename)
                if inside and not member.is_dir():
                    member.filename = inside[1]
                    file.extract(member, folder)
        os.remove(wheel)
    return None
