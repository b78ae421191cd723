#!/usr/bin/env python3
"""Prints what the tests execute of our code, by folder, and the files of which they execute less than 70%.

  tools/coverage.py                 the C++ unit layer and the client
  tools/coverage.py --only client

C++: builds preset `coverage`, runs its unit tests, reads gcov. Branches that only an exception takes do not count. What
needs the server (plugin/memdiag/server, sql/, storage/) is tested through SQL and is not here: a server that counts takes
hours to build. The client: its unit tests, by coverage.py (python3-coverage). Programs that tests start do not count.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness.common import ROOT, run_step, say
from harness.problem import Problem, run_main
from harness.programs import run_group

BUILD = ROOT / "build/coverage"
LOW = 70
# Debian's, which the client's other tests use.
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


@dataclass
class Counts:
    """Lines and branches: executed, and all."""

    files: int = 0
    lines: int = 0
    all_lines: int = 0
    branches: int = 0
    all_branches: int = 0

    def add(self, other: "Counts") -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def percent(self) -> float:
        return 100 * self.lines / max(self.all_lines, 1)

    def words(self) -> str:
        branches = 100 * self.branches / max(self.all_branches, 1)
        return f"{self.percent:5.1f}% of {self.all_lines:6,} lines {branches:6.1f}% of {self.all_branches:6,} branches"


@dataclass
class Executed:
    """A file, as all objects have it that include it."""

    lines: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    branches: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))

    def add(self, lines: Iterable[dict]) -> None:
        for line in lines:
            number = line["line_number"]
            self.lines[number] += line["count"]
            taken = [one["count"] for one in line["branches"] if not one["throw"]]
            # One that is left is no decision.
            for place, count in enumerate(taken if len(taken) > 1 else ()):
                self.branches[number, place] += count

    def counts(self) -> Counts:
        def executed(counts: Iterable[int]) -> int:
            return sum(count > 0 for count in counts)

        lines, branches = self.lines.values(), self.branches.values()
        return Counts(1, executed(lines), len(lines), executed(branches), len(branches))


def is_ours(path: Path) -> bool:
    return path.is_relative_to(ROOT) and "unittest" not in path.parts and "build" not in path.relative_to(ROOT).parts


def of_layer() -> dict[str, Counts]:
    """@return {path: counts}"""
    run_step(["cmake", "--preset", "coverage"])
    run_step(["cmake", "--build", "--preset", "coverage"])
    for old in BUILD.rglob("*.gcda"):
        old.unlink()
    # Two at a time: some measure.
    if run_group(["ctest", "--preset", "coverage", "--parallel", "2", "--quiet"], cwd=ROOT):
        say("-- some tests failed: without optimization, or because this machine is loaded")
    files: dict[str, Executed] = defaultdict(Executed)
    for data in sorted(BUILD.rglob("*.gcda")):
        # One at a time: that of a test has megabytes of the C++ library.
        done = subprocess.run(["gcov", "-j", "-b", "-t", data], cwd=BUILD, capture_output=True, check=False)
        if done.returncode:
            raise Problem(f"gcov could not read {data}: {done.stderr.decode(errors='replace')}")
        for line in done.stdout.splitlines():
            read = json.loads(line)
            for one in read["files"]:
                path = (Path(read["current_working_directory"]) / one["file"]).resolve()
                if is_ours(path):
                    files[str(path.relative_to(ROOT))].add(one["lines"])
    return {name: one.counts() for name, one in files.items() if one.lines}


def of_client() -> dict[str, Counts]:
    if subprocess.run([PYTHON, "-c", "import coverage"], capture_output=True, check=False).returncode:
        raise Problem("coverage.py is missing: apt-get install python3-coverage")
    BUILD.mkdir(parents=True, exist_ok=True)
    coverage, data = [PYTHON, "-m", "coverage"], f"--data-file={BUILD / 'client.data'}"
    tests = ["-m", "unittest", "discover", "-s", "tests", "-t", "."]
    if run_group([*coverage, "run", "--branch", "--source=memdiag", data, *tests], cwd=ROOT / "client"):
        raise Problem("the client's unit tests failed: see above")
    out = BUILD / "client.json"
    if run_group([*coverage, "json", "-q", data, "-o", str(out)], cwd=ROOT / "client"):
        raise Problem("coverage.py could not write its figures: see above")
    files = json.loads(out.read_text())["files"]
    return {
        f"client/{name}": Counts(
            1, one["covered_lines"], one["num_statements"], one["covered_branches"], one["num_branches"]
        )
        for name, one in ((name, file["summary"]) for name, file in files.items())
        if one["num_statements"]
    }


def show(files: dict[str, Counts]) -> str:
    """@return the sum in words"""
    folders: dict[str, Counts] = defaultdict(Counts)
    total = Counts()
    for name, counts in files.items():
        folders[str(Path(name).parent)].add(counts)
        total.add(counts)
    for name, counts in sorted(folders.items()):
        say(f"{name:36} {counts.files:4} files {counts.words()}")
    low = sorted((one.percent, name) for name, one in files.items() if one.percent < LOW)
    say(f"\nfiles of which less than {LOW}% of the lines are executed: {len(low)}")
    for percent, name in low:
        say(f"  {percent:5.1f}%  {name}")
    say("")
    return total.words()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = {"layer": of_layer, "client": of_client}
    parser.add_argument("--only", choices=kinds)
    chosen = parser.parse_args().only
    sums = {name: show(read()) for name, read in kinds.items() if chosen in (None, name)}
    for name, words in sums.items():
        say(f"coverage of the {name}: {' '.join(words.split())}")
    return 0


if __name__ == "__main__":
    run_main("coverage", main)
