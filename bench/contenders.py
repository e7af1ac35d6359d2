"""Who is measured: each peer describes itself in peers/NAME/peer.py, and is listed here."""
import importlib.util
import os

from contender import HERE

# In the order of their turns. A peer is a folder and a line.
PEERS = (
    "noria",
    "tokio",
    "epoll",
    "io_uring",
    "libuv",
    "go",
    "asio",
    "tbb",
    "taskflow",
    "libfork",
    "monoio",
    "glommio",
    "asyncio",
    "uvloop",
    "rloop",
    "haproxy",
    "nginx",
)


def load_peer(name):
    """The module peers/NAME/peer.py, whose contenders() gives a list of Contender."""
    path = os.path.join(HERE, "peers", name, "peer.py")
    spec = importlib.util.spec_from_file_location(f"peer_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def contenders():
    """All of them by name, Noria first."""
    return {contender.name: contender for name in PEERS for contender in load_peer(name).contenders()}
