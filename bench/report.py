#!/usr/bin/env python3
"""Makes the tables and plots out of a run's latest.json and run.json: bench/results/latest.md, *.svg, and the part of the top-level
README.md that shows the newest of them. Called by itself it does so for what is there, without measuring."""
import argparse
import json
import os
import sys

import plots
from aims import growth_limit, is_aimed_at_tokio, number, ratio_span, unmeasured, verdicts, worker_growth
from contender import HERE, ROOT
from labels import title, what

RESULTS = os.path.join(HERE, "results")
README = os.path.join(ROOT, "README.md")
BEGIN, END = "<!-- figures: written by bench/report.py -->", "<!-- end of figures -->"


def span(of):
    return f"{number(of['median'])} ({number(of['min'])}-{number(of['max'])})"


def table(head, rows):
    """A Markdown table; nothing if there are no rows."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    rows = ["| " + " | ".join(cells) + " |" for cells in rows]
    return lines + rows if rows else []


def disturbed(row):
    return f" (*{row['disturbed']})" if row.get("disturbed") else ""


def aims_table(rows):
    for v in verdicts(rows):
        cells = [title(v.row, code=True), str(v.row["workers"]), v.against, v.measured + disturbed(v.row), v.aim]
        yield [*cells, "reached" if v.reached else "**missed**", v.first]


def growth_table(rows):
    pairs = [(one, two, two["median"] / one["median"]) for one, two in worker_growth(rows) if one["median"] > 0]
    peers = {(two["workload"], str(two["params"])): ratio for _, two, ratio in pairs if two["contender"] == "tokio"}
    for one, two, ratio in pairs:
        if two["contender"] == "noria":
            tokio = peers.get((two["workload"], str(two["params"])))
            yield [title(two, code=True), f"{number(one['median'])} {one['unit']}", f"{number(two['median'])} {two['unit']}", f"{ratio:.2f}",
                   f"{growth_limit(two):.1f} {'kept' if ratio <= growth_limit(two) else '**broken**'}", f"{tokio:.2f}" if tokio else ""]


def group(rows):
    """The rows of one workload as {(parameters without figure, workers): {contender: {figure: row}}}."""
    groups = {}
    for row in rows:
        contenders = groups.setdefault((what(row), row.get("beside", row["workers"])), {})
        contenders.setdefault(row["contender"], {})[row["params"].get("figure", "")] = row
    return groups


def workload_table(rows):
    """Every contender of one workload, a line each."""
    figures = list(dict.fromkeys((row["params"].get("figure", ""), row["unit"]) for row in rows))
    head = ["parameters", "workers", "contender", figures[0][1], "by noria"]
    head += [f"{name.replace('_', ' ')}, {unit}" for name, unit in figures[1:]]
    lines = []
    for (params, workers), contenders in group(rows).items():
        ours = contenders.get("noria", {}).get("", {})
        for name, its in contenders.items():
            main = its.get("")
            cells = [params, str(workers), name, span(main) if main else ""]
            ratio = ours.get("ratio", {}).get(name)
            cells.append(ratio_span(ratio) if ratio else "")
            cells += [number(its[figure]["median"]) if figure in its else "" for figure, _ in figures[1:]]
            cells[2] += disturbed(main or {})
            lines.append(cells)
    return table(head, lines)


def header(run):
    versions = ", ".join(f"{name} {about['version']}".strip() for name, about in run["contenders"].items())
    yield f"- Machine: {run['machine']}"
    yield f"- Date: {run['date']}; the run took {run['minutes']} min{' (--quick)' if run.get('quick') else ''}."
    yield f"- Contenders: {versions}."
    if run.get("library_bytes"):
        yield f"- Noria's shared library, stripped: {number(run['library_bytes'])} bytes."
    yield ("- A figure is the median of its rounds (minimum-maximum). `by noria` is taken round by round: how many times better Noria is. "
           "`(*n)`: so many of the rounds were disturbed by other processes even after repeating.")
    yield from (f"- Of {name}: {about['note']}." for name, about in run["contenders"].items() if about["note"])
    yield from (f"- Missing: {name}: {reason}" for name, reason in run["missing"].items())
    yield from (f"- Failed: {failure}" for failure in run["failures"])
    if run.get("not_reached"):
        yield f"- Not reached in the time: {'; '.join(run['not_reached'])}."


def markdown(rows, run, drawn):
    yield "# Results"
    yield ""
    yield from header(run)
    for name, alt in drawn.items():
        yield from ("", f"![{alt}]({name})")
    yield from ("", "## Aims", "")
    yield from table(["workload", "workers", "against", "measured", "aim", "verdict", "first version's aim"], aims_table(rows)) or ["None."]
    if run["whole"]:
        yield from (f"\nNot measured: {aim}." for aim in unmeasured(rows))
    yield from ("", "## From 1 worker to 2", "", "How many times the figure of 1 worker that of 2 workers is, and its limit.", "")
    yield from table(["workload", "1 worker", "2 workers", "ratio", "limit", "Tokio's ratio"], growth_table(rows)) or ["None."]
    for workload in dict.fromkeys(row["workload"] for row in rows):
        yield from ("", f"## {workload}", "")
        yield from workload_table([row for row in rows if row["workload"] == workload])
    yield ""


def short_table(rows):
    """The figures that have an aim against Tokio, with 1 and 2 workers, for the top-level README."""
    seen = {}
    for row in rows:
        ratio = row.get("ratio", {}).get("tokio")
        if ratio and is_aimed_at_tokio(row):
            seen.setdefault((row["workload"], what(row), row["unit"]), {})[row["workers"]] = (row, ratio)
    for (workload, _, unit), by_workers in seen.items():
        cells = [title(by_workers[min(by_workers)][0], code=True), unit]
        for workers in (1, 2):
            row, ratio = by_workers.get(workers, (None, None))
            cells += [number(row["median"]), f"{ratio['median']:.2f}"] if row else ["", ""]
        yield cells


def readme_section(rows, run):
    yield BEGIN
    yield ""
    yield f"{run['machine']}; {run['date']}. Medians; `x Tokio` is how many times better than Tokio Noria was in the same round."
    yield ""
    yield from table(["workload", "unit", "1 worker", "x Tokio", "2 workers", "x Tokio"], short_table(rows))
    yield ""
    judged = list(verdicts(rows))
    yield (f"{sum(v.reached for v in judged)} of {len(judged)} aims are reached. All of them, all contenders and what a second worker costs: "
           "[bench/results/latest.md](bench/results/latest.md); why some are not, and how to doubt and repeat the figures, says `bench/README.md`.")
    yield ""
    yield "![How many times better than Tokio Noria is, workload by workload](bench/results/ratios.svg)"
    yield ""
    yield END


def readme_with(text, rows, run):
    """The README's text with its part between the markers made anew; None if it has no such part."""
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        return None
    return text[:begin] + "\n".join(readme_section(rows, run)) + text[end + len(END):]


def shows(text, rows, run):
    """Whether the README's text shows this run; it need not show one of a part of the workloads or peers."""
    return readme_with(text, rows, run) == text or (not run["whole"] and BEGIN in text)


def load(folder):
    with open(os.path.join(folder, "latest.json")) as file:
        rows = json.load(file)
    with open(os.path.join(folder, "run.json")) as file:
        return rows, json.load(file)


def page(rows, run):
    """The text of latest.md."""
    return "\n".join(markdown(rows, run, {name: alt for name, (alt, _) in plots.draw(rows).items()}))


def render(folder, into_readme):
    """Writes the tables and plots of the run in `folder`; with `into_readme` the README too."""
    rows, run = load(folder)
    for name, (_, plot) in plots.draw(rows).items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(plot)
    with open(os.path.join(folder, "latest.md"), "w") as file:
        file.write(page(rows, run))
    if into_readme:
        with open(README) as file:
            made = readme_with(file.read(), rows, run)
        if made:
            with open(README, "w") as file:
                file.write(made)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", metavar="DIR", default=RESULTS)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the README's figures are not the newest")
    wanted = parser.parse_args()
    if not wanted.check:
        render(wanted.results, os.path.samefile(wanted.results, RESULTS) and load(wanted.results)[1]["whole"])
        return 0
    with open(README) as file:
        text = file.read()
    rows, run = load(wanted.results)
    if shows(text, rows, run):
        return 0
    print("README.md does not show the figures of bench/results/latest.json; python3 bench/report.py brings them there")
    return 1


if __name__ == "__main__":
    sys.exit(main())
