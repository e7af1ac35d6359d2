"""A plain epoll server in C (net/epoll_echo.c): no runtime, hence the limit."""
import os

from contender import PROGRAMS, Contender, build_cmake

WORKLOADS = ["echo_cpu", "echo_open_loop", "accept_storm", "idle_conn_bytes"]


def contenders():
    programs = {"echo": [os.path.join(PROGRAMS, "epoll-echo")]}
    return [Contender("epoll", build_cmake({"echo": ["bench_epoll_echo"]}), programs, WORKLOADS, single_thread=True)]
