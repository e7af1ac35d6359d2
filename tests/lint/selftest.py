#!/usr/bin/env python3
"""Each lint passes a tree that is in order and finds every fault that is planted in it."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
import report  # noqa: E402  the figures of the clean tree are made by what makes the real ones

HEADER = """\
#ifndef NORIA_X_H
#define NORIA_X_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct noria_waker noria_waker;
typedef struct noria_point { int32_t x; int32_t (*poll)(void *state); } noria_point;
typedef void (*noria_done_fn)(void *data);
/* Makes one.
 * Threads: any.
 * Owner:   the caller.  Errors: -EINVAL. */
NORIA_API int32_t noria_make(uint32_t size,
                             noria_waker **out);
/* Ends it.
 * Threads: any.  Owner: nothing passes.  Errors: none. */
NORIA_API int32_t noria_end(const noria_waker *waker);
// Calls.
// Threads: any.
// Owner: nobody.
// Errors: none.
// Callback: inline; may not call back.
NORIA_API void noria_call(noria_done_fn done, const noria_point *point);
#ifdef __cplusplus
}
#endif
#endif
"""
SOURCE = """\
// ring.hpp: a ring.
#include "base/atomic.hpp"
namespace noria::sync {
class Ring {
 public:
  int size() const {
    // ORDER: acquire, pairs with push; 'new_' in a comment is nobody's name.
    return head_.load(NORIA_ACQUIRE);
  }
  void push() {
    // ORDER: relaxed, owner only; acq_rel publishes.
    head_.store(1, NORIA_RELAXED);
    if (!head_.compare_exchange_strong(
            expected, 2, NORIA_ACQ_REL,
            NORIA_RELAXED))
      return;
  }
#ifdef NORIA_PLANT_RING
  void planted() { head_.store(3, NORIA_RELAXED); }
#else
  // ORDER: release, publishes.
#endif
  void sound() { head_.store(3, NORIA_RELEASE); }
  int peek() const { return head_.load(NORIA_RELAXED); }  // ORDER: relaxed, a hint.
};
}  // namespace noria::sync
"""
CLEAN = {
    "capi/include/noria/x.h": HEADER,
    "capi/src/exports.map": "NORIA_0 {\n  global:\n    noria_call;\n    noria_end;\n    noria_make;\n  local:\n    *;\n};\n",
    "core/base/atomic.hpp": "// atomic.hpp: the door.\n#include <atomic>\nusing A = std::atomic<int>;\n",
    "core/sync/ring.hpp": SOURCE,
    "tests/core/all.cpp": "// " + " ".join([f"P{n}" for n in range(1, 12)] + [f"A{n}" for n in range(1, 16)]) + "\n",
    "tests/capi/fork_test.cpp": "FORKED(noria_end(&waker));\n",
    "tests/mutants/all.patch": " ".join(f"P{n}" for n in range(1, 12)) + "\n",
    "README.md": "# The title\n\nSee [x](core/sync/ring.hpp), [here](#the-title) and [web](https://example.org).\n",
}
SPREAD = {"median": 4.5, "min": 4.0, "max": 5.0, "n": 3}
ROWS = [{"workload": "spawn_many", "contender": "noria", "workers": 1, "params": {"ops": 1}, "unit": "ns", "better": "lower", **SPREAD,
         "disturbed": 0, "ratio": {"tokio": SPREAD}}]
RUN = {"whole": True, "machine": "one", "date": "today", "minutes": 1, "contenders": {}, "missing": {}, "failures": []}
CLEAN.update({
    "bench/results/latest.json": json.dumps(ROWS),
    "bench/results/run.json": json.dumps(RUN),
    "bench/results/latest.md": report.page(ROWS, RUN),
    "bench/results/ratios.svg": "",
    "README.md": report.readme_with(f"{CLEAN['README.md']}\n{report.BEGIN}\n{report.END}\n", ROWS, RUN),
})
LONG_BODY = "".join("  f();\n" for _ in range(69))

# lint, file, text to replace (or None: append), replacement, what must be reported
FAULTS = [
    ("includes", "core/sync/ring.hpp", "base/atomic.hpp", "task/word.hpp", "stands above"),
    ("includes", "core/sync/ring.hpp", "base/atomic.hpp", "../base/atomic.hpp", "not written relative"),
    ("includes", "core/sync/ring.hpp", "namespace noria::sync {", "#include <atomic>\nnamespace noria {", "atomics come"),
    ("includes", "core/sync/ring.hpp", "class Ring {", "std::atomic<int> x;\nclass Ring {", "std::atomic"),
    ("includes", "core/sched/loop.cpp", None, '#include "timer/wheel.hpp"\n', "side by side"),
    ("includes", "core/tools/loop.cpp", None, "int x;\n", "one folder a layer"),
    ("includes", "capi/examples/echo.c", None, '#include "base/clock.hpp"\n', "is public"),
    ("includes", "capi/include/noria/x.h", "#ifdef", '#include "base.h"\n#ifdef', "public headers"),
    ("orders", "core/sync/ring.hpp", "    // ORDER: acquire, pairs", "    // pairs", "without an ORDER"),
    ("orders", "core/sync/ring.hpp", "ORDER: acquire, pairs", "ORDER: release, pairs", "does not say acquire"),
    ("orders", "core/sync/ring.hpp", "  // ORDER: relaxed, a hint.", "", "does not say relaxed"),
    ("orders", "core/sync/ring.hpp", "; acq_rel publishes", "", "does not say acq_rel"),
    ("orders", "core/sync/ring.hpp", "head_.store(1, NORIA_RELAXED);", "head_.fetch_add(1);", "names no order"),
    ("orders", "core/sync/ring.hpp", "NORIA_PLANT_RING", "NORIA_DEBUG", "without an ORDER"),
    ("sizes", "core/base/long.cpp", None, "static int f(int x) {\n" + LONG_BODY + "}\n", "f has 71 lines"),
    ("sizes", "core/base/long.cpp", None, "namespace n {\nstruct S {\n  S() : x(1) {\n" + LONG_BODY + "}\n};\n}\n", "has 71"),
    ("sizes", "core/base/long.cpp", None, "int x;\n" * 401, "401 lines"),
    ("sizes", "core/sync/ring.hpp", "// ring.hpp: ", "// Ring: ", "opens with"),
    ("exports", "capi/src/exports.map", "    noria_make;\n", "", "noria_make is declared"),
    ("exports", "capi/src/exports.map", "noria_make;", "noria_make;\n    noria_gone;", "noria_gone is in exports.map"),
    ("exports", "capi/src/exports.map", "noria_make;", "noria_*;", "without patterns"),
    ("exports", "capi/include/noria/x.h", "noria_make(", "noria_call(", "declared twice"),
    ("contracts", "capi/include/noria/x.h", " * Threads: any.\n", "", "noria_make has no line Threads:"),
    ("contracts", "capi/include/noria/x.h", " * Owner:   the caller.  Errors", " * Owner:\n * Errors", "noria_make has no line Owner:"),
    ("contracts", "capi/include/noria/x.h", "// Errors: none.\n", "", "noria_call has no line Errors:"),
    ("contracts", "capi/include/noria/x.h", "// Callback: inline", "// inline", "noria_call has no line Callback:"),
    ("contracts", "capi/include/noria/x.h", "uint32_t size,", "unsigned long size,", "uses long"),
    ("contracts", "capi/include/noria/x.h", "const noria_point *point", "noria_point point", "by value"),
    ("contracts", "capi/include/noria/x.h", "int32_t x; int32_t", "int32_t x : 3; int32_t", "bit-field"),
    ("contracts", "capi/include/noria/x.h", "// Calls.", "static inline int f(void) { return 1; }\n// Calls.", "inline"),
    ("contracts", "capi/include/noria/x.h", "#define NORIA_X_H", "#define X_H", "the macro X_H does not"),
    ("contracts", "capi/include/noria/x.h", "#define NORIA_X_H", "#define NORIA_X_H\n#define NORIA_F(x) x", "as a macro only"),
    ("contracts", "capi/include/noria/x.h", "noria_waker noria_waker", "waker noria_waker", "the type waker does not"),
    ("contracts", "capi/include/noria/x.h", "typedef struct noria_point", "enum { NORIA_A = 1, B = 2 };\ntypedef struct noria_point",
     "the constant B does not"),
    ("contracts", "capi/include/noria/x.h", "int32_t noria_end(", "int32_t end(", "the function end does not"),
    ("links", "README.md", "core/sync/ring.hpp", "core/sync/rung.hpp", "dead link"),
    ("links", "README.md", "#the-title", "#a-title", "no such heading"),
    ("words", "core/sync/ring.hpp", "int size()", "int new_size()", "new_size"),
    ("words", "core/sync/ring.hpp", "class Ring", "class ring_manager", "ring_manager"),
    ("words", "core/sync/ring.hpp", "class Ring", "class RingManager", "RingManager"),
    ("words", "core/sync/ring.hpp", "int size()", "int ns_timeout()", "ns_timeout"),
    ("words", "core/sync/ring.hpp", "// ORDER: acq", "// TO" "DO: ORDER: acq", "TO" "DO"),
    ("words", "core/base/utils.hpp", None, "int x;\n", "says nothing"),
    ("words", "README.md", "# The title", "# The title\n\nIt is in /home/me.", "/home/m"),
    ("promises", "tests/core/all.cpp", "P11", "P12", "no test names P11"),
    ("promises", "tests/core/all.cpp", "A15", "A16", "no test names A15"),
    ("promises", "capi/include/noria/x.h", "noria_end(const noria_waker *waker)", "noria_end(noria_future **out)",
     "noria_end is not in"),
    ("promises", "tests/mutants/all.patch", "P4", "P40", "no mutant names P4"),
    ("forked", "tests/capi/fork_test.cpp", "FORKED", "// FORKED", "no test calls noria_end"),
    ("forked", "tests/capi/fork_test.cpp", "noria_end(&waker)", "noria_call(0, 0)", "no test calls noria_end"),
    ("forked", "capi/include/noria/x.h", "noria_done_fn done, const", "noria_waker *waker, noria_done_fn done, const",
     "no test calls noria_call"),
    ("figures", "README.md", "4.50", "9.50", "does not show the figures"),
    ("figures", "README.md", report.END, "", "does not show the figures"),
    ("figures", "bench/results/latest.md", "**missed**", "reached", "is not made of"),
    ("format", "capi/examples/echo.c", None, "int   x ;\n", "clang-format"),
]


def run(lint, tree):
    with tempfile.TemporaryDirectory() as root:
        for path, text in tree.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        result = subprocess.run([sys.executable, os.path.join(HERE, lint + ".py"), "--root", root],
                                capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def main():
    failures = 0
    for lint in sorted({fault[0] for fault in FAULTS} - {"format"}):
        status, output = run(lint, CLEAN)
        if status != 0:
            failures += 1
            print(f"{lint} refuses the clean tree:\n{output}")
    for lint, path, old, replacement, message in FAULTS:
        tree = dict(CLEAN)
        if old is not None and old not in tree[path]:
            failures += 1
            print(f"{path} does not hold {old!r}")
            continue
        tree[path] = replacement if old is None else tree[path].replace(old, replacement, 1)
        status, output = run(lint, tree)
        if status == 77:
            continue
        if status != 1 or message not in output:
            failures += 1
            print(f"{lint} does not report {message!r} ({path}); status {status}:\n{output}")
    print(f"selftest: {len(FAULTS)} planted faults, {failures} failures")
    sys.exit(1 if failures else 0)


main()
