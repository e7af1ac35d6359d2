"""What each row is to reach, and whether it does."""
from dataclasses import dataclass, field

EVERY = "*"  # every peer that takes part


@dataclass
class Aim:
    """One of: `least` is a ratio to the peer `against` (its time by Noria's); `at_most` with a peer is how much more than the peer's
    figure Noria's may be, alone a bound of Noria's figure; `than` are the parameters of another row of Noria, and `least` or
    `at_most` the ratio of this row's figure to that one's. `figure` is a figure beside the main one; `params` a part of the row's parameters."""
    workload: str
    against: str = ""
    least: float = 0.0
    at_most: float = 0.0
    workers: tuple = (1, 2)
    figure: str = ""
    params: dict = field(default_factory=dict)
    than: dict = field(default_factory=dict)


SAME_CORE = {"placement": "same_core"}

AIMS = [
    Aim("spawn_many", "tokio", 5, workers=(1,)),
    Aim("spawn_many", "tokio", 6, workers=(2,)),
    Aim("spawn_many", "asio", 1, workers=(1,)),
    Aim("spawn_remote", "tokio", 3),
    Aim("spawn_remote", EVERY, 1),
    Aim("yield_many", "tokio", 2.5, workers=(1,)),
    Aim("yield_many", "tokio", 1.3, workers=(2,)),
    Aim("ping_pong", "tokio", 2.5, workers=(1,)),
    Aim("ping_pong", "tokio", 3.5, workers=(2,)),
    Aim("chained_spawn", "tokio", 5),
    Aim("chained_spawn", "tbb", 1),
    Aim("fork_join_fib", "tokio", 6, workers=(1,)),
    Aim("fork_join_fib", "tokio", 8, workers=(2,)),
    Aim("fork_join_fib", "tbb", 1 / 1.3),
    Aim("timer_churn", "tokio", 5),
    Aim("timer_churn", "libuv", 1, workers=(1,)),
    Aim("timer_churn", "asio", 1),
    Aim("timer_churn", "go", 1),
    Aim("timer_churn", at_most=1.2, params={"batch": 1000000}, than={"batch": 10000}),
    Aim("timer_reset", "tokio", 5),
    Aim("timer_reset", "libuv", 1, workers=(1,)),
    Aim("timer_reset", "asio", 1),
    Aim("timer_reset", "go", 1),
    Aim("timer_fire", "tokio", 1, figure="cpu"),
    Aim("timer_fire", at_most=1500),
    Aim("blocking", "tokio", 15),
    Aim("blocking", "libuv", 1, workers=(1,)),
    Aim("stuck_poll", at_most=10000, params={"burn": "inline"}),
    Aim("stuck_poll", least=0.97, figure="throughput", params={"burn": "inline"}, than={"burn": "none"}),
    Aim("light_load", "tokio", at_most=0.5),
    Aim("echo_cpu", "tokio", 1.05, workers=(1,), params=SAME_CORE),
    Aim("echo_cpu", "epoll", 1 / 1.04, workers=(1,), params=SAME_CORE),
    Aim("echo_open_loop", EVERY, 1 / 1.1),
    Aim("proxy_bulk", "tokio", 1.2),
    Aim("proxy_bulk", "haproxy", 1),
    Aim("proxy_small", "tokio", 1.2),
    Aim("proxy_small", "haproxy", 1),
    Aim("idle_task_bytes", "tokio", 2),
    Aim("idle_task_bytes", at_most=256),
]

# What the first version was to reach, as the ratio at 1 and at 2 workers; shown beside the others.
FIRST_AIMS = {
    ("spawn_many", "tokio"): (4.5, 3.5), ("spawn_remote", "tokio"): (2.5, 2.5), ("yield_many", "tokio"): (2.2, 1.2),
    ("ping_pong", "tokio"): (2.0, 2.5), ("chained_spawn", "tokio"): (4.5, 4.0), ("timer_churn", "tokio"): (4.5, None),
    ("blocking", "tokio"): (12.0, 12.0), ("echo_cpu", "epoll"): (1 / 1.06, None),
}

# From 1 worker to 2: the time, and the 99th percentile, may grow to this; where the work splits it is to fall.
GROWTH_LIMIT, SPLIT_LIMIT = 1.1, 1.0
SPLITTING = {"unbalanced_producer", "fork_join_fib", "uneven_tree"}
# These have another number of workers for a reason that has nothing to do with the scheduler, or no time.
NO_GROWTH = {"idle_task_bytes", "timer_bytes", "idle_conn_bytes", "startup", "light_load", "stuck_poll", "busy_neighbour"}


# Their cases have one number of workers, which the aims do not repeat.
ONE_COUNT = {"idle_task_bytes", "light_load", "stuck_poll", "timer_churn"}


@dataclass
class Verdict:
    """One aim at one row, in words: what was measured, and what was to be reached."""
    row: dict
    against: str
    measured: str
    aim: str
    reached: bool
    first: str = ""  # the first version's aim


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def ratio_span(of):
    return f"{of['median']:.2f} ({of['min']:.2f}-{of['max']:.2f})"


def includes(row, params):
    return all(row["params"].get(key) == value for key, value in params.items())


def matches(aim, row):
    return (row["contender"] == "noria" and row["workload"] == aim.workload and row["workers"] in aim.workers
            and row["params"].get("figure", "") == aim.figure and includes(row, aim.params))


def is_aimed_at_tokio(row):
    return any(aim.against == "tokio" and aim.least and not aim.figure and matches(aim, row) for aim in AIMS)


def first_aim(row, peer, ratio):
    both = FIRST_AIMS.get((row["workload"], peer))
    aim = both and both[row["workers"] - 1]
    if not aim or row["params"].get("figure"):
        return ""
    return f"{aim:.3g} {'reached' if ratio >= aim else 'missed'}"


def judge_than(aim, row, rows):
    """By another row of Noria."""
    for other in rows:
        same = all(other[key] == row[key] for key in ("workload", "contender", "workers"))
        if same and other["params"].get("figure", "") == aim.figure and includes(other, aim.than) and other["median"] > 0:
            ratio = row["median"] / other["median"]
            against = "itself with " + ", ".join(f"{key} {value:,}" if isinstance(value, int) else f"{key} {value}" for key, value in aim.than.items())
            if aim.at_most:
                return Verdict(row, against, f"{ratio:.2f}", f"at most {aim.at_most:.3g}", ratio <= aim.at_most)
            return Verdict(row, against, f"{ratio:.2f}", f"at least {aim.least:.3g}", ratio >= aim.least)
    return None


def judge_bound(aim, row, rows):
    """By a bound of the figure itself, or of how much more than a peer's it is."""
    value, more = row["median"], ""
    if aim.against:
        others = [other for other in rows if other["contender"] == aim.against
                  and all(other[key] == row[key] for key in ("workload", "workers", "params"))]
        if not others:
            return None
        value, more = value - others[0]["median"], " more"
    unit = row["unit"] + more
    return Verdict(row, aim.against, f"{number(value)} {unit}", f"at most {number(aim.at_most)} {unit}", value <= aim.at_most)


def judge_ratio(aim, row):
    """By the ratio to a peer, or to the best of all."""
    ratios = row["ratio"] if aim.against == EVERY else {aim.against: row["ratio"].get(aim.against)}
    ratios = {peer: ratio for peer, ratio in ratios.items() if ratio}
    if not ratios:
        return None
    peer = min(ratios, key=lambda name: ratios[name]["median"])
    median = ratios[peer]["median"]
    against, first = (f"every peer, the nearest is {peer}", "") if aim.against == EVERY else (peer, first_aim(row, peer, median))
    return Verdict(row, against, ratio_span(ratios[peer]), f"at least {aim.least:.3g}", median >= aim.least, first)


def judge(aim, row, rows):
    """The verdict of an aim about a row; None where the other side of it was not measured."""
    return judge_than(aim, row, rows) if aim.than else judge_bound(aim, row, rows) if aim.at_most else judge_ratio(aim, row)


def verdicts(rows):
    """Each aim with each of Noria's rows that it speaks of, in the order of the rows."""
    for row in rows:
        for aim in AIMS:
            verdict = judge(aim, row, rows) if matches(aim, row) else None
            if verdict:
                yield verdict


def unmeasured(rows):
    """The aims, in words, of which there is no verdict at some number of workers: no row, or none of the peer."""
    for aim in AIMS:
        found = {row["workers"] for row in rows if matches(aim, row) and judge(aim, row, rows)}
        for workers in aim.workers:
            if workers in found or (aim.workload in ONE_COUNT and found):
                continue
            against = " against every peer" if aim.against == EVERY else f" against {aim.against}" if aim.against else ""
            yield f"{aim.workload}{against}, {workers} worker{'s' if workers > 1 else ''}"


def growth_limit(row):
    return SPLIT_LIMIT if row["workload"] in SPLITTING else GROWTH_LIMIT


def worker_growth(rows):
    """Pairs of rows of one contender, with 1 and with 2 workers, of main figures and 99th percentiles."""
    def key(row):
        return row["workload"], row["contender"], str(row["params"])
    singles = {key(row): row for row in rows if row["workers"] == 1}
    for row in rows:
        plain = row["params"].get("figure", "p99") == "p99" and row["better"] == "lower" and row["workload"] not in NO_GROWTH
        if row["workers"] == 2 and plain and key(row) in singles:
            yield singles[key(row)], row
