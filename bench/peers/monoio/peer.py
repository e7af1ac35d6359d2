"""monoio: a thread and an io_uring a worker, tasks that own their buffers."""
import cargo_peer
import uring
from contender import Contender

WORKLOADS = ["echo_cpu", "echo_open_loop", "accept_storm", "idle_conn_bytes"]


def build(kind):
    return uring.refused() or cargo_peer.build("monoio")(kind)


def contenders():
    return [Contender("monoio", build, {"echo": [cargo_peer.program("monoio"), "echo"]}, WORKLOADS, cargo_peer.version("monoio"))]
