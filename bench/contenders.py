"""Who is measured: how each contender is built, and how its programs are started."""
import json
import os
import re
import shutil
import signal
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BUILD = os.path.join(ROOT, "build", "bench")
PROGRAMS = os.path.join(BUILD, "bench")
LIMIT_S = 120  # a run that takes longer has hung


class Failed(Exception):
    """A contender's program that crashed, hung or said something unexpected."""


def run_quietly(command, cwd=ROOT):
    """None if it succeeded, else its last words."""
    result = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if result.returncode == 0 else "\n".join(result.stdout.strip().split("\n")[-15:])


def start(command, cpu):
    """Starts a program, pinned to `cpu` unless that is None."""
    pin = None if cpu is None else (lambda: os.sched_setaffinity(0, [cpu]))
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=pin)


def finish(process, what):
    """The JSON object on the last line of what the program prints."""
    try:
        out, errors = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failed(f"{what} did not end within {LIMIT_S} s")
    if process.returncode != 0:
        raise Failed(f"{what} ended with {process.returncode}: {errors.strip()[-500:]}")
    return json.loads(out.strip().split("\n")[-1])


class Contender:
    """`micro` is the program of the micro workloads, `echo` the command of its echo server (either may be None).
    `builder(kind)` builds what "micro" or "echo" needs, and returns None or why it cannot."""

    def __init__(self, name, builder, micro=None, echo=None, version=lambda: ""):
        self.name, self.builder, self.version = name, builder, version
        self.micro_program, self.echo_command = micro, echo

    def build(self, kinds):
        """None, or why it cannot be had."""
        for kind in kinds:
            reason = self.builder(kind)
            if reason:
                return reason
        return None

    def micro(self, workload, workers, arguments):
        words = [word for key, value in arguments.items() for word in (f"--{key}", str(value))]
        command = [self.micro_program, workload, "--workers", str(workers), *words]
        return finish(start(command, None), " ".join([self.name, workload]))

    def echo(self, workers, server_cpu, load_cpu, arguments):
        """Starts the server, runs the load on it, ends the server, and checks that it echoed what the load counted."""
        server = start([*self.echo_command, "--workers", str(workers)], server_cpu)
        try:
            first = re.fullmatch(r"port (\d+)\n", server.stdout.readline())
            if not first:
                raise Failed(f"{self.name}: the echo server did not start: {server.stderr.read()[-500:]}")
            words = [word for key, value in arguments.items() for word in (f"--{key}", str(value))]
            command = [os.path.join(PROGRAMS, "noria-load"), "--port", first[1], "--server-pid", str(server.pid), *words]
            figures = finish(start(command, load_cpu), f"the load on {self.name}")
        except Failed as failure:
            server.kill()
            raise Failed(f"{failure}; {server.communicate()[1].strip()[-500:]}")
        server.send_signal(signal.SIGTERM)
        report = finish(server, f"the echo server of {self.name}")
        expected = (figures["requests"] + figures["warmup"]) * figures["bytes"]
        if report["bytes"] != expected:
            raise Failed(f"{self.name}: the server echoed {report['bytes']:.0f} bytes instead of {expected:.0f}")
        return figures


def build_cmake(targets):
    """A builder of the CMake targets that `targets` names for each kind."""
    def build(kind):
        if not shutil.which("cmake"):
            return "cmake is not installed"
        if not os.path.exists(os.path.join(BUILD, "CMakeCache.txt")):
            errors = run_quietly(["cmake", "--preset", "bench"])
            if errors:
                return errors
        return run_quietly(["cmake", "--build", BUILD, "--target", *targets[kind]])
    return build


def build_libuv(kind):
    if run_quietly(["pkg-config", "--exists", "libuv"]) is not None:
        return "libuv's headers or pkg-config are not installed (Debian's package libuv1-dev)"
    # Configured anew, for the package may have come since.
    errors = run_quietly(["cmake", "--preset", "bench"])
    return errors or build_cmake({"micro": ["bench_libuv"], "echo": ["bench_libuv", "bench_load"]})(kind)


def libuv_version():
    return subprocess.run(["pkg-config", "--modversion", "libuv"], capture_output=True, text=True).stdout.strip()


TOKIO = os.path.join(HERE, "peers", "tokio")


def tokio_program(*features):
    """Where the build with these features lies; each has its own folder, so that they do not rebuild each other."""
    return os.path.join(TOKIO, "target", *features, "release", "noria-bench-tokio")


def build_tokio(*features):
    def build(_kind):
        if not shutil.which("cargo"):
            return "cargo is not installed (Debian's package cargo, or rustup)"
        command = ["cargo", "build", "--release", "--quiet", "--target-dir", os.path.join("target", *features)]
        command += ["--features", ",".join(features)] if features else []
        errors = run_quietly(command, TOKIO)
        # Without a network what was fetched before still builds.
        return errors and run_quietly([*command, "--offline"], TOKIO) and f"cargo cannot build it: {errors}"
    return build


def tokio_version():
    with open(os.path.join(TOKIO, "Cargo.lock")) as file:
        found = re.search(r'name = "tokio"\nversion = "([^"]+)"', file.read())
    return found[1] if found else "?"


def noria_version():
    with open(os.path.join(ROOT, "capi", "include", "noria", "noria.h")) as file:
        numbers = re.findall(r"#define NORIA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read())
    return ".".join(numbers)


def contenders():
    """All of them, Noria first, in the order of their turns."""
    libuv = os.path.join(PROGRAMS, "bench_libuv")
    every = [
        Contender("noria", build_cmake({"micro": ["bench_micro"], "echo": ["bench_noria_echo", "bench_load"]}),
                  os.path.join(PROGRAMS, "noria-bench"), [os.path.join(PROGRAMS, "noria-echo")], noria_version),
        Contender("tokio", build_tokio(), tokio_program(), [tokio_program(), "echo"], tokio_version),
        Contender("tokio_mimalloc", build_tokio("mimalloc"), tokio_program("mimalloc"), None, tokio_version),
        Contender("epoll", build_cmake({"echo": ["bench_epoll_echo", "bench_load"]}), None,
                  [os.path.join(PROGRAMS, "epoll-echo")]),
        Contender("libuv", build_libuv, libuv, [libuv, "echo"], libuv_version),
    ]
    return {contender.name: contender for contender in every}
