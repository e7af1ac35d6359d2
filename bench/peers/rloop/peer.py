"""rloop: asyncio's interface on a loop in Rust."""
import python_loop


def contenders():
    workloads = [name for name in python_loop.WORKLOADS if name != "accept_storm"]
    return [python_loop.contender("rloop", workloads, "keeps the sockets of closed connections open, hence not in accept_storm")]
