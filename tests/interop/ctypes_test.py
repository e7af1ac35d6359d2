#!/usr/bin/env python3
"""Noria from Python through ctypes alone: poll functions that are Python, and a current-thread runtime that lives in
asyncio's loop: the loop watches the runtime's descriptor and sleeps no longer than the runtime allows.

Argument: the shared library."""
import asyncio
import ctypes
import sys
import time
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

READY, PENDING = 0, 1
CURRENT_THREAD = 2
FOREVER = 2**64 - 1
ECANCELED = 125

lib = ctypes.CDLL(sys.argv[1])
POLL = CFUNCTYPE(c_int32, c_void_p, c_void_p)
DROP = CFUNCTYPE(None, c_void_p)
CALLBACK = CFUNCTYPE(None, c_void_p, c_void_p)


class TaskVtable(Structure):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("poll", POLL), ("drop", DROP), ("take", c_void_p),
                ("name", c_char_p)]


class RuntimeOptions(Structure):
    """The beginning of noria_runtime_options: a shorter struct is as good."""
    _fields_ = [("size", c_uint32), ("kind", c_uint32)]


class JoinResult(Structure):
    _fields_ = [("kind", c_uint32), ("error", c_int32)]


class Counts(Structure):
    _fields_ = [("size", c_uint32), ("reserved", c_uint32)] + [(n, ctypes.c_int64) for n in (
        "tasks", "wakers", "futures", "timers", "sources", "buffers", "allocations", "descriptors")]


class Delivery(Structure):
    _fields_ = [("size", c_uint32), ("kind", c_uint32), ("callback", CALLBACK), ("arg", c_void_p), ("strand", c_void_p),
                ("discard", c_void_p), ("rt", c_void_p)]


def call(name, *arguments):
    result = getattr(lib, name)(*arguments)
    assert result == 0, f"{name}: {result}"


class Embedded:
    """A runtime that is turned by asyncio."""

    def __init__(self, loop):
        self.loop, self.timer, self.turns, self.kept = loop, None, 0, []
        options = RuntimeOptions(ctypes.sizeof(RuntimeOptions), CURRENT_THREAD)
        self.rt, fd = c_void_p(), c_int32()
        call("noria_runtime_new", byref(options), byref(self.rt))
        call("noria_runtime_fd", self.rt, byref(fd))
        self.fd = fd.value
        loop.add_reader(self.fd, self.turn)
        self.turn()

    def turn(self):
        """Runs what is ready, then tells asyncio how long it may sleep."""
        self.turns += 1
        call("noria_runtime_turn", self.rt, c_uint64(0), None)
        timeout = c_uint64()
        call("noria_runtime_next_timeout", self.rt, byref(timeout))
        if self.timer:
            self.timer.cancel()
            self.timer = None
        if timeout.value == 0:
            self.timer = self.loop.call_soon(self.turn)
        elif timeout.value != FOREVER:
            self.timer = self.loop.call_later(timeout.value / 1e9, self.turn)

    def wait(self, future):
        """A Noria future as something that asyncio awaits: its status."""
        waiter = self.loop.create_future()

        def deliver(_, ready):
            waiter.set_result(lib.noria_future_result(c_void_p(ready), None, c_size_t(0)))

        callback = CALLBACK(deliver)
        self.kept.append(callback)
        delivery = Delivery(ctypes.sizeof(Delivery), 2, callback, None, None, None, self.rt)
        call("noria_future_deliver", future, byref(delivery))
        self.turn()
        return waiter

    def close(self):
        self.loop.remove_reader(self.fd)
        if self.timer:
            self.timer.cancel()
        call("noria_runtime_free", self.rt)


async def python_task(embedded):
    """A task whose poll is Python: it sleeps three times and then is done."""
    state = {"polls": 0, "sleeps": 0, "future": c_void_p(), "dropped": 0}

    def poll(_, cx):
        state["polls"] += 1
        while state["sleeps"] < 3:
            if not state["future"]:
                call("noria_sleep", embedded.rt, c_uint64(2_000_000), byref(state["future"]))
            status = lib.noria_future_poll(state["future"], c_void_p(cx))
            if status != READY:
                return status
            call("noria_future_drop", state["future"])
            state["future"] = c_void_p()
            state["sleeps"] += 1
        return READY

    def drop(_):
        state["dropped"] += 1

    vtable = TaskVtable(ctypes.sizeof(TaskVtable), 0, POLL(poll), DROP(drop), None, b"python")
    task, join, result = c_void_p(), c_void_p(), JoinResult(9, 9)
    began = time.monotonic()
    call("noria_spawn", embedded.rt, byref(vtable), None, byref(task))
    call("noria_task_join", task, byref(join))
    callback_result = embedded.loop.create_future()

    def joined(_, future):
        call("noria_future_result", c_void_p(future), byref(result), c_size_t(ctypes.sizeof(result)))
        callback_result.set_result(None)

    delivery = Delivery(ctypes.sizeof(Delivery), 2, CALLBACK(joined), None, None, None, embedded.rt)
    call("noria_future_deliver", join, byref(delivery))
    embedded.turn()
    await callback_result
    assert time.monotonic() - began >= 0.006, "a sleep ended early"
    assert (state["sleeps"], state["dropped"]) == (3, 1), state
    assert (result.kind, result.error) == (0, 0), (result.kind, result.error)
    call("noria_task_detach", task)
    return vtable


async def main():
    embedded = Embedded(asyncio.get_running_loop())

    # Both loops live: asyncio's own sleeps go on while Noria's tasks run.
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticking = asyncio.create_task(tick())
    vtable = await python_task(embedded)
    ticking.cancel()
    assert ticks > 0, "asyncio stood still"

    sleep = c_void_p()
    call("noria_sleep", embedded.rt, c_uint64(5_000_000), byref(sleep))
    assert await embedded.wait(sleep) == 0

    # A wake from another thread comes through the descriptor.
    sender, receiver, receive = c_void_p(), c_void_p(), c_void_p()
    call("noria_oneshot_new", embedded.rt, None, byref(sender), byref(receiver))
    call("noria_oneshot_receive", receiver, byref(receive))
    waiting = embedded.wait(receive)
    await asyncio.get_running_loop().run_in_executor(None, call, "noria_oneshot_send", sender, None)
    assert await waiting == 0
    call("noria_oneshot_receiver_drop", receiver)

    # With nothing to do it is not turned.
    turns = embedded.turns
    await asyncio.sleep(0.05)
    assert embedded.turns - turns <= 3, f"{embedded.turns - turns} turns for nothing"

    embedded.close()
    counts = Counts(ctypes.sizeof(Counts))
    call("noria_live_counts", byref(counts))
    left = {name: getattr(counts, name) for name, _ in Counts._fields_[2:] if getattr(counts, name) != 0}
    assert not left, left
    del vtable
    print("ctypes: passed")


asyncio.run(asyncio.wait_for(main(), 60))
