#!/usr/bin/env python3
"""Compares the heap profile with those of jeprof and of Massif: the ten ways that hold most must be the same, and their
bytes within the error. ctest starts it; what cannot be compared here is said.

  other_profilers.py PROGRAM JEPROF FOLDER

PROGRAM is memdiag_known_ways. jeprof reads a dump of the same process, so of the same samples. Massif replaces malloc(),
which leaves nothing to jemalloc's profiler: it watches a second run, and counts each block.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

TOP = 10
# Both weigh samples, one by one or all of a stack with its mean size: the same for blocks of one size.
NEAR = 0.02
# Some 500 samples each: all sixteen estimates are within, but for one run in 100,000.
ERRORS = 5

Ways = dict[str, float]


def way_of(functions: list[str]) -> str:
    """The outermost first; jeprof shows some names with their address. "": none of the program's ways."""
    own = [re.fullmatch(r"(way_\w+)(<\w+>)?", name) for name in functions]
    return ";".join(found[1] for found in own if found)


def added(lines: list[tuple[list[str], float]]) -> Ways:
    ways: Ways = {}
    for functions, count in lines:
        if way := way_of(functions):
            ways[way] = ways.get(way, 0) + count
    return ways


def top(ways: Ways) -> list[str]:
    return sorted(ways, key=lambda way: ways[way], reverse=True)[:TOP]


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def of_program(text: str) -> Ways:
    lines = (line.split(" ", 1) for line in text.splitlines())
    return {way: float(count) for count, way in lines}


def of_massif(text: str) -> Ways:
    """The tree of the last snapshot that has one: `n2: 1000 0xADDRESS: function (file:line)`, callers further in."""
    trees = re.findall(r"heap_tree=(?:detailed|peak)\n(.*?)(?=^#|\Z)", text, re.M | re.S)
    lines = []
    stack: list[str] = []
    rest: list[float] = []  # of each node, what its callers have not yet claimed
    for line in [*trees[-1].splitlines(), "n0: 0"]:
        found = re.match(r"( *)n(\d+): (\d+)(?: 0x\w+: (\S+))?", line)
        if not found:
            continue
        depth = len(found[1])
        while len(stack) > depth:
            count = rest.pop()
            if count > 0:
                lines.append((stack[::-1], count))
            stack.pop()
        if rest:
            rest[-1] -= float(found[3])
        stack.append(found[4] or "")
        rest.append(float(found[3]))
    return added(lines)


class Comparison:
    def __init__(self) -> None:
        self.wrong = 0

    def say(self, good: bool, what: str) -> None:
        print(f"{'ok     ' if good else 'FAILED '} {what}")
        self.wrong += not good

    def tops(self, name: str, ours: Ways, theirs: Ways) -> None:
        missing = sorted(set(top(theirs)) ^ set(top(ours)))
        self.say(not missing, f"the ten largest are those of {name}: {missing or top(ours)[0] + ', ...'}")


def main() -> int:
    program, jeprof, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    result = Comparison()
    truth = of_program(run(program, "ours", folder))
    lines = [line.split(" ", 2) for line in (folder / "ours").read_text().splitlines()]
    ours = added([(stack.split(";"), float(count)) for count, _, stack in lines])
    errors = added([(stack.split(";"), float(error)) for _, error, stack in lines])
    result.tops("what was allocated", ours, truth)
    for way in top(truth):
        off, error = ours.get(way, 0) - truth[way], errors.get(way, 0)
        result.say(
            abs(off) <= ERRORS * error,
            f"{way}: {ours.get(way, 0):.0f} of {truth[way]:.0f} bytes, off by {off / error if error else 0:.1f} errors",
        )

    if shutil.which("perl") and jeprof.exists():
        text = run("perl", jeprof, "--collapsed", "--inuse_space", program, folder / "heap")
        lines = [line.rpartition(" ") for line in text.splitlines()]
        theirs = added([(stack.split(";"), float(count)) for stack, _, count in lines])
        result.tops("jeprof", ours, theirs)
        for way in top(theirs):
            ratio = ours.get(way, 0) / theirs[way]
            result.say(abs(ratio - 1) <= NEAR, f"{way}: {ratio:.4f} of jeprof's bytes")
    else:
        print("skipped jeprof: perl or the build of jemalloc is not there")

    if shutil.which("valgrind"):
        out = folder / "massif"
        # The program contains jemalloc, so its malloc() is no library's.
        plain = of_program(
            run(
                "valgrind",
                "--tool=massif",
                "--soname-synonyms=somalloc=NONE",
                "--peak-inaccuracy=0.0",
                "--threshold=0.0",
                f"--massif-out-file={out}",
                program,
                "plain",
            )
        )
        theirs = of_massif(out.read_text())
        same = {way: count for way, count in ours.items() if way in plain}
        result.tops("Massif, without the pools", same, theirs)
        for way in [way for way in top(theirs) if way in top(truth)]:
            off, error = ours.get(way, 0) - theirs[way], errors.get(way, 0)
            result.say(
                abs(off) <= ERRORS * error,
                f"{way}: off from Massif's {theirs[way]:.0f} bytes by {off / error if error else 0:.1f} errors",
            )
    else:
        print("skipped Massif: valgrind is not installed")
    shutil.rmtree(folder)
    return 1 if result.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
