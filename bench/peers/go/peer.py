"""Go: goroutines and the runtime's own timers and poller, with GOMAXPROCS as the number of workers."""
import os
import shutil

from contender import BUILD, HERE, Contender, output_of, run_quietly

FOLDER = os.path.join(HERE, "peers", "go")
PROGRAM = os.path.join(BUILD, "go", "noria-bench-go")
WORKLOADS = ["spawn_many", "spawn_remote", "yield_many", "ping_pong", "chained_spawn", "timer_churn", "timer_fire", "blocking",
             "echo_cpu", "echo_open_loop", "accept_storm", "idle_conn_bytes"]


def build(_kind):
    if not shutil.which("go"):
        return "go is not installed"
    errors = run_quietly(["go", "build", "-trimpath", "-o", PROGRAM, "."], FOLDER)
    return errors and f"{output_of(['go', 'version'])} cannot build it: {errors}"


def contenders():
    return [Contender("go", build, {"micro": [PROGRAM], "echo": [PROGRAM, "echo"]}, WORKLOADS,
                      lambda: output_of(["go", "env", "GOVERSION"]).removeprefix("go"))]
