"""glommio: an executor with its own io_uring a thread."""
import cargo_peer
import uring
from contender import Contender

WORKLOADS = ["echo_cpu", "echo_open_loop", "accept_storm", "idle_conn_bytes"]


def build(kind):
    return uring.refused() or cargo_peer.build("glommio")(kind)


def contenders():
    return [Contender("glommio", build, {"echo": [cargo_peer.program("glommio"), "echo"]}, WORKLOADS, cargo_peer.version("glommio"))]
