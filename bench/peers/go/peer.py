"""Go: goroutines and the runtime's own timers and poller, with GOMAXPROCS as the number of workers."""
import os
import shutil

from contender import BUILD, HERE, Contender, output_of, run_quietly

FOLDER = os.path.join(HERE, "peers", "go")
PROGRAM = os.path.join(BUILD, "go", "noria-bench-go")
# Not startup: Go's runtime starts and ends with the process.
WORKLOADS = [
    "spawn_many", "spawn_remote", "yield_many", "ping_pong", "chained_spawn", "unbalanced_producer", "fork_join_fib", "uneven_tree",
    "wake_latency", "light_load", "timer_churn", "timer_reset", "timer_fire", "blocking", "blocking_seq", "idle_task_bytes",
    "timer_bytes", "stuck_poll", "busy_neighbour", "echo_cpu", "echo_open_loop", "accept_storm", "idle_conn_bytes",
]


def build(_kind):
    if not shutil.which("go"):
        return "go is not installed"
    errors = run_quietly(["go", "build", "-trimpath", "-o", PROGRAM, "."], FOLDER)
    return errors and f"{output_of(['go', 'version'])} cannot build it: {errors}"


def contenders():
    programs = {"micro": [PROGRAM], "service": [PROGRAM, "service"], "echo": [PROGRAM, "echo"]}
    return [Contender("go", build, programs, WORKLOADS,
                      lambda: output_of(["go", "env", "GOVERSION"]).removeprefix("go"),
                      note="it has no blocking pool, a job is a goroutine; a thread that is no worker is one locked to a goroutine")]
