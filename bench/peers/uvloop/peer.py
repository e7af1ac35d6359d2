"""uvloop: asyncio's interface on libuv."""
import python_loop


def contenders():
    return [python_loop.contender("uvloop")]
