"""libfork, which no registry that the runner builds from has: listed, so that the table says so."""
from contender import Contender


def build(_kind):
    return "no package: neither Debian nor PyPI has libfork, and the runner builds from no other registry of C++"


def contenders():
    return [Contender("libfork", build, {"micro": ["libfork-bench"]}, ["fork_join_fib", "uneven_tree"])]
