"""A contender: how it is built, how its programs are started, what it can do; and the tools that peers build with."""
import json
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BUILD = os.path.join(ROOT, "build", "bench")
PROGRAMS = os.path.join(BUILD, "bench")
LIMIT_S = 120  # a run that takes longer has hung


class Failed(Exception):
    """A contender's program that crashed, hung or said something unexpected."""


class Contender:
    """Who is measured.

    `programs` gives the command line (a list) of each kind of program it has: "micro" is followed by a workload, "echo" is a
    server (see net_workloads.py). `workloads` names what it takes part in. `builder(kind)` builds what a kind needs and returns
    None, or why it cannot be had. A `single_thread` one takes no notice of --workers: it stands beside 1 worker in the micro
    workloads and beside any number of them on the net. `version` and `note` go into the table."""

    def __init__(self, name, builder, programs, workloads, version=lambda: "", single_thread=False, note=""):
        self.name, self.builder, self.programs, self.workloads = name, builder, programs, frozenset(workloads)
        self.version, self.single_thread, self.note = version, single_thread, note

    def build(self, kinds):
        """None, or why it cannot be had."""
        for kind in kinds:
            reason = self.builder(kind)
            if reason:
                return reason
        return None

    def command(self, kind, *words, **arguments):
        """The command line of a program of this kind; arguments become `--name value`."""
        options = [word for key, value in arguments.items() for word in (f"--{key.replace('_', '-')}", str(value))]
        return [*self.programs[kind], *words, *options]


def run_quietly(command, cwd=ROOT, env=None):
    """None if it succeeded, else its last words."""
    result = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=None if env is None else dict(os.environ, **env))
    return None if result.returncode == 0 else "\n".join(result.stdout.strip().split("\n")[-15:])


def output_of(command, cwd=ROOT):
    """What a command prints, "" where it fails or does not exist."""
    try:
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def start(command, cpu=None):
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


def build_cmake(targets, configure=False):
    """A builder of the CMake targets that `targets` names for each kind. With `configure` CMake looks anew first, for
    packages that have come since."""
    def build(kind):
        if not shutil.which("cmake"):
            return "cmake is not installed"
        if configure or not os.path.exists(os.path.join(BUILD, "CMakeCache.txt")):
            errors = run_quietly(["cmake", "--preset", "bench"])
            if errors:
                return errors
        return run_quietly(["cmake", "--build", BUILD, "--target", *targets[kind]])
    return build
