"""How a row is called: its workload and those of its parameters that tell it from others of that workload."""

# The parameters that matter of each workload, in words; of a workload that is not here, all but PLAIN.
SHOWN = {
    "spawn_many": {}, "yield_many": {}, "ping_pong": {}, "chained_spawn": {}, "unbalanced_producer": {}, "fork_join_fib": {"n": "fib({})"},
    "uneven_tree": {}, "timer_reset": {}, "timer_fire": {}, "blocking": {}, "startup": {},
    "spawn_remote": {"spawners": "{} spawning"},
    "wake_latency": {"load": "{} tasks that burn"},
    "light_load": {"interval_us": "every {} us"},
    "timer_churn": {"batch": "{} at a time"},
    "blocking_seq": {"batch": "{} at a time"},
    "idle_task_bytes": {"ops": "{} tasks"},
    "timer_bytes": {"ops": "{} timers"},
    "proxy_bulk": {"connections": "{} streams", "mib": "{} MiB each", "placement": "{}"},
    "stuck_poll": {"burn": "burn: {}"},
    "busy_neighbour": {"burn": "burn: {}"},
}
PLAIN = {"ops", "batch", "seed", "seconds", "requests", "figure"}


def value_text(value):
    return f"{value:,}" if isinstance(value, int) else str(value).replace("_", " ")


def what(row):
    """The parameters, without the figure; "" where the workload says all."""
    params = dict(row["params"])
    words = []
    shown = SHOWN.get(row["workload"])
    if shown is not None:
        return ", ".join(text.format(value_text(params[key])) for key, text in shown.items() if key in params)
    if "connections" in params and "bytes" in params:
        words.append(f"{params.pop('connections')} x {params.pop('bytes')} B")
    for key, value in params.items():
        if key not in PLAIN:
            words.append(value_text(value) if isinstance(value, str) else f"{key.replace('_', ' ')} {value_text(value)}")
    return ", ".join(words)


def title(row, code=False):
    """Workload, parameters and figure."""
    name = f"`{row['workload']}`" if code else row["workload"]
    return ", ".join(filter(None, [name, what(row), row["params"].get("figure", "").replace("_", " ")]))
