"""Peers in Rust: a crate in the peer's folder, built at the newest version that the registry serves."""
import os
import re
import shutil

from contender import HERE, run_quietly


def folder(peer):
    return os.path.join(HERE, "peers", peer)


def program(peer, *features):
    """Where the build with these features lies; each has its own folder, so that they do not rebuild each other."""
    return os.path.join(folder(peer), "target", *features, "release", f"noria-bench-{peer}")


def build(peer, *features):
    def build_kind(_kind):
        if not shutil.which("cargo"):
            return "cargo is not installed (Debian's package cargo, or rustup)"
        command = ["cargo", "build", "--release", "--quiet", "--target-dir", os.path.join("target", *features)]
        command += ["--features", ",".join(features)] if features else []
        errors = run_quietly(command, folder(peer))
        # Without a network what was fetched before still builds.
        return errors and run_quietly([*command, "--offline"], folder(peer)) and f"cargo cannot build it: {errors}"
    return build_kind


def version(peer):
    """Of the crate that the peer is named after."""
    def told():
        with open(os.path.join(folder(peer), "Cargo.lock")) as file:
            found = re.search(rf'name = "{peer}"\nversion = "([^"]+)"', file.read())
        return found[1] if found else "?"
    return told
