"""Libraries that peers are built with, at the newest version their registry serves: unpacked under build/bench/packages, the
system left as it is. What lies there is taken as it is; remove the folder to have the newest again."""
import glob
import os
import re
import shutil
import sys
import tarfile
import zipfile

from contender import BUILD, run_quietly

PACKAGES = os.path.join(BUILD, "packages")
SUITES = ("sid", "testing", "stable")  # of Debian, the newest first


def debian(package):
    """None if headers of Debian's development suite lie in PACKAGES/package now, else why not."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return "apt-get or dpkg-deb is not installed"
    return once(package, lambda folder: unpack_debian(package, folder))


def pypi(name, *packages):
    """None if the libraries and headers of these wheels lie in PACKAGES/name now, else why not."""
    return once(name, lambda folder: unpack_wheels(packages, folder))


def source(name, package, commands, product):
    """None if `product` lies in PACKAGES/name now, made by `commands` in the source of a Debian package, else why not. In the
    commands {prefix} is that folder and {jobs} the number of CPUs."""
    return once(name, lambda folder: build_source(package, commands, product, folder))


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


def archive(kind="deb", suite="sid"):
    """The entry of the machine's own Debian archive, turned to that suite; None if it has none."""
    for path in glob.glob("/etc/apt/sources.list.d/*.sources"):
        with open(path) as file:
            for entry in re.split(r"\n\s*\n", file.read()):
                uri = re.search(r"^URIs:\s*(\S+/debian/?)\s*$", entry, re.M)
                key = re.search(r"^Signed-By:\s*/\S+\s*$", entry, re.M)
                if uri:
                    return f"Types: {kind}\nURIs: {uri[1]}\nSuites: {suite}\nComponents: main\n{key[0] if key else ''}\n"
    for path in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*.list")]:
        if not os.path.exists(path):
            continue
        with open(path) as file:
            entry = re.search(r"^deb\s+(?:\[([^\]]*)\]\s+)?(\S+/debian/?)\s", file.read(), re.M)
        if entry:
            key = re.search(r"signed-by=(\S+)", entry[1] or "")
            return f"Types: {kind}\nURIs: {entry[2]}\nSuites: {suite}\nComponents: main\n{'Signed-By: ' + key[1] if key else ''}\n"
    return None


def apt(kind, suite):
    """apt-get with that suite alone and a state of its own, its lists brought up to date; or None and the reason."""
    sources = archive(kind, suite)
    if sources is None:
        return None, "no Debian archive in /etc/apt"
    state = os.path.join(PACKAGES, "apt")
    lists = os.path.join(state, f"lists-{kind}-{suite}")
    for folder in (os.path.join(lists, "partial"), os.path.join(state, "cache", "archives", "partial")):
        os.makedirs(folder, exist_ok=True)
    list_file = os.path.join(state, f"{kind}-{suite}.sources")
    with open(list_file, "w") as file:
        file.write(sources)
    command = ["apt-get", "-q", "-o", f"Dir::Etc::SourceList={list_file}", "-o", "Dir::Etc::SourceParts=/dev/null",
               "-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={state}/cache", "-o", "APT::Sandbox::User=",
               "-o", "Acquire::Languages=none", "-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"]
    errors = run_quietly([*command, "update"])
    return (None, errors) if errors else (command, None)


def unpack_debian(package, folder):
    command, reason = apt("deb", "sid")
    errors = reason or run_quietly([*command, "download", package], folder)
    if errors:
        return errors
    [file] = glob.glob(os.path.join(folder, "*.deb"))
    errors = run_quietly(["dpkg-deb", "-x", file, folder])
    os.remove(file)
    return errors


def fetch_source(package, folder):
    """The path of the upstream archive in the newest suite that serves it, or None and the reason. An archive's lists may be
    ahead of its files for a while; then the next suite has an older version."""
    for suite in SUITES:
        command, reason = apt("deb-src", suite)
        reason = reason or run_quietly([*command, "source", "--download-only", "--tar-only", package], folder)
        if reason is None:
            return glob.glob(os.path.join(folder, "*.orig.tar.*[a-z2]"))[0], None
    return None, reason


def build_source(package, commands, product, folder):
    path, reason = fetch_source(package, folder)
    if reason:
        return reason
    with tarfile.open(path) as file:
        file.extractall(os.path.join(folder, "source"))
    os.remove(path)
    [top] = glob.glob(os.path.join(folder, "source", "*"))
    for words in commands:
        errors = run_quietly([word.format(prefix=folder, jobs=os.cpu_count()) for word in words], top)
        if errors:
            return errors
    shutil.rmtree(os.path.join(folder, "source"))
    return None if os.path.exists(os.path.join(folder, product)) else f"its build left no {product}"


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
