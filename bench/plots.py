"""Plots as SVG, readable in black and white, without any library: bars with patterns, figures written beside them."""
import math
from html import escape

from labels import title, what

WIDTH, LEFT, RIGHT, BAR, GAP, TOP = 860, 290, 110, 13, 9, 64
# Fills that can be told apart in print.
FILLS = ["#222", "url(#lines)", "url(#dots)", "#fff", "url(#cross)", "#aaa", "url(#wide)", "#666"]
PATTERNS = """<defs>
<pattern id="lines" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="5" height="5" fill="#fff"/><rect width="2" height="5" fill="#222"/></pattern>
<pattern id="dots" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="#fff"/><circle cx="2.5" cy="2.5" r="1.2" fill="#222"/></pattern>
<pattern id="cross" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" fill="#fff"/><path d="M0 0L6 6M6 0L0 6" stroke="#222"/></pattern>
<pattern id="wide" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" fill="#fff"/><rect width="8" height="3" fill="#888"/></pattern>
</defs>"""


def text(x, y, words, anchor="start", size=12, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
            f'fill="#111">{escape(words)}</text>')


class Scale:
    """From values to pixels: from zero, or logarithmic around `base` where the bars begin."""

    def __init__(self, low, high, base=None):
        self.base = base
        self.low, self.high = (math.log10(low), math.log10(high)) if base else (0.0, high)

    def x(self, value):
        at = math.log10(value) if self.base else value
        share = (at - self.low) / ((self.high - self.low) or 1)
        return LEFT + min(max(share, 0), 1) * (WIDTH - LEFT - RIGHT)

    def ticks(self):
        if self.base:
            steps = [m * 10 ** e for e in range(math.floor(self.low), math.ceil(self.high) + 1) for m in (1, 2, 5)]
            return [s for s in steps if 10 ** self.low <= s <= 10 ** self.high]
        step = 10 ** math.floor(math.log10(self.high))
        step = step if self.high / step >= 4 else step / 2 if self.high / step >= 2 else step / 5
        return [i * step for i in range(int(self.high / step) + 1)]


def bars(heading, note, groups, series, scale):
    """`groups`: [(name, [(series index, value, minimum, maximum), ...])]; one bar a value, its spread as a line."""
    body, y = [], TOP
    for name, values in groups:
        middle = y + len(values) * BAR / 2
        body.append(text(LEFT - 8, middle + 4, name, "end"))
        for index, value, low, high in values:
            begin, end = sorted((scale.x(scale.base or 0), scale.x(value)))
            body.append(f'<rect x="{begin:.1f}" y="{y}" width="{max(end - begin, 1):.1f}" height="{BAR - 2}" fill="{FILLS[index % len(FILLS)]}" '
                        'stroke="#222"/>')
            body.append(f'<line x1="{scale.x(low):.1f}" x2="{scale.x(high):.1f}" y1="{y + 5.5}" y2="{y + 5.5}" stroke="#fff" stroke-width="3"/>'
                        f'<line x1="{scale.x(low):.1f}" x2="{scale.x(high):.1f}" y1="{y + 5.5}" y2="{y + 5.5}" stroke="#000"/>')
            # More series than fills are told apart by their names.
            name = f" {series[index]}" if len(series) > len(FILLS) else ""
            body.append(text(max(end, scale.x(high)) + 4, y + 10, (f"{value:,.0f}" if value >= 1000 else f"{value:.3g}") + name, size=10))
            y += BAR
        y += GAP
    lines = []
    for tick in scale.ticks():
        x, is_base = scale.x(tick), scale.base and tick == scale.base
        lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{y}" stroke="{"#000" if is_base else "#ccc"}"/>')
        lines.append(text(x, y + 14, f"{tick:,.6g}", "middle", 10))
    legend = []
    for index, name in enumerate(series):
        x, row = 12 + index % 6 * 140, index // 6
        legend.append(f'<rect x="{x}" y="{y + 26 + row * 18}" width="18" height="11" fill="{FILLS[index % len(FILLS)]}" stroke="#222"/>')
        legend.append(text(x + 24, y + 36 + row * 18, name, size=11))
    height = y + 44 + len(series) // 6 * 18
    head = [text(12, 22, heading, size=15, weight="bold"), text(12, 42, note, size=11)]
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
                      PATTERNS, f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>', *head, *lines, *body, *legend, "</svg>", ""])


def ratios(rows):
    """How many times better than Tokio Noria is, in every main figure."""
    groups = {}
    for row in rows:
        ratio = row.get("ratio", {}).get("tokio")
        if ratio and not row["params"].get("figure") and row["workers"] <= 2 and ratio["min"] > 0:
            groups.setdefault(title(row), []).append((row["workers"] - 1, ratio["median"], ratio["min"], ratio["max"]))
    if not groups:
        return None
    values = [value for group in groups.values() for bar in group for value in bar[2:]]
    scale = Scale(min(0.5, *values), max(2, *values), base=1)
    return bars("Noria against Tokio", "Tokio's figure by Noria's in the same round, logarithmic; right of 1 Noria is better. Line: minimum to maximum.",
                list(groups.items()), ["1 worker", "2 workers"], scale)


def echo(rows):
    """CPU time a request of every contender's echo server."""
    chosen = [row for row in rows if row["workload"] == "echo_cpu" and not row["params"].get("figure")
              and row.get("beside", row["workers"]) == 1]
    names = list(dict.fromkeys(row["contender"] for row in chosen))
    groups = {}
    for row in chosen:
        bar = names.index(row["contender"]), row["median"], row["min"], row["max"]
        groups.setdefault(what(row), []).append(bar)
    if not groups:
        return None
    scale = Scale(0, max(row["max"] for row in chosen))
    return bars("TCP echo, CPU time of the server a request", "ns, 1 worker; less is better. Line: minimum to maximum.",
                list(groups.items()), names, scale)


def workers(rows):
    """How Noria's figures grow with workers, where a run with --growth has them."""
    groups = {}
    for row in rows:
        if row["contender"] == "noria" and row["unit"] == "ns" and not row["params"].get("figure"):
            groups.setdefault(title(row), {})[row["workers"]] = row
    groups = {name: by_workers for name, by_workers in groups.items() if 1 in by_workers and max(by_workers) > 2}
    if not groups:
        return None
    numbers = sorted({number for by_workers in groups.values() for number in by_workers})
    drawn = []
    for name, by_workers in groups.items():
        one = by_workers[1]["median"]
        drawn.append((name, [(numbers.index(n), *(row[key] / one for key in ("median", "min", "max"))) for n, row in sorted(by_workers.items())]))
    values = [value for _, group in drawn for bar in group for value in bar[1:]]
    return bars("Noria with more workers", "Time an operation by that with 1 worker, logarithmic; less is better. Line: minimum to maximum.",
                drawn, [f"{n} worker{'s' if n > 1 else ''}" for n in numbers], Scale(min(0.5, *values), max(2, *values), base=1))


def draw(rows):
    """{file name: (what it shows, its SVG)} of those plots that there are rows for."""
    plots = {"ratios.svg": ("How many times better than Tokio Noria is", ratios(rows)),
             "echo.svg": ("CPU time of the echo servers", echo(rows)),
             "workers.svg": ("Noria's time with more workers by that with one", workers(rows))}
    return {name: plot for name, plot in plots.items() if plot[1]}
