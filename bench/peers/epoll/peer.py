"""A plain epoll server in C (net/epoll_echo.c): no runtime, hence the limit."""
import os

from contender import PROGRAMS, Contender, build_cmake


def contenders():
    programs = {"echo": [os.path.join(PROGRAMS, "epoll-echo")]}
    return [Contender("epoll", build_cmake({"echo": ["bench_epoll_echo"]}), programs, ["echo_cpu"], single_thread=True)]
