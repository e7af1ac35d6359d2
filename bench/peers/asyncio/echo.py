#!/usr/bin/env python3
"""echo.py [asyncio | uvloop | rloop] [--workers 1] [--buffer B]: the echo server of bench/net on a Python event loop.

A protocol, not a stream: the form that costs each of these loops least. The loop itself makes the buffers. One loop is
one thread, so `--workers` has no effect."""
import asyncio
import json
import os
import resource
import signal
import socket
import sys
import time

CONTENDER = sys.argv[1] if len(sys.argv) > 1 else "asyncio"
TOTAL = {"connections": 0, "bytes": 0}


class Echo(asyncio.Protocol):
    """A transport writes at once what the socket takes, and queues the rest; reading rests while there is a queue."""

    def connection_made(self, transport):
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        TOTAL["connections"] += 1

    def data_received(self, data):
        TOTAL["bytes"] += len(data)
        self.transport.write(data)

    def eof_received(self):
        # The others close their socket after this. rloop 0.5 keeps it open, so that the client has to be told.
        if CONTENDER == "rloop":
            self.transport.write_eof()

    def pause_writing(self):
        self.transport.pause_reading()

    def resume_writing(self):
        self.transport.resume_reading()


async def serve():
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    server = await loop.create_server(Echo, "127.0.0.1", 0, backlog=1024)
    print(f"port {server.sockets[0].getsockname()[1]}", flush=True)
    await ended.wait()
    report = {"workload": "echo", "contender": CONTENDER, "workers": 1, **TOTAL,
              "cpu_ns": time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID)}
    print(json.dumps(report), flush=True)


def main():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if CONTENDER == "asyncio":
        loop = asyncio.new_event_loop()
    else:
        here = os.path.dirname(os.path.abspath(__file__))
        sys.path.insert(0, os.path.join(here, "..", CONTENDER, ".packages"))
        loop = __import__(CONTENDER).new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(serve())


main()
