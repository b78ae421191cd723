#!/usr/bin/env python3
"""What must be green for a release: CI's tests, the proofs, upstream's suites, the ceiling, the fuzzers, the packages.

  proof/gate.py                  all pieces that have not passed at this commit, one after the other, for hours
  proof/gate.py --list           the pieces, and what is known of each
  proof/gate.py --only answers   this piece; it may be repeated

A piece runs for at most two hours at a time. Those that take longer go on where they stopped when the gate is called
again. What a piece printed is in build/gate/COMMIT/PIECE.log, and the page of the commit is build/gate/COMMIT/page.md.
The exit status is 0 if all pieces have passed at this commit. A tree with changes is refused.
"""

import argparse
import contextlib
import dataclasses
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import report
from harness.commit import commit as commit_of_tree
from harness.common import ROOT, lock, say
from harness.problem import Problem, run_main
from harness.state_file import read_state, write_state

LONGEST_SECONDS = 110 * 60.0
# An interrupted program ends its servers first.
CLEAN_UP_SECONDS = 300.0
SHOWN_EVERY_SECONDS = 60.0


@dataclass(frozen=True)
class Piece:
    name: str
    question: str
    command: tuple[str, ...]
    # True: the program keeps what it has done, and goes on.
    resumes: bool = False
    # The first time at a commit: what the program did at another one does not count.
    at_first: tuple[str, ...] = ()


PIECES = (
    Piece("tests", "Do all tests of this repository pass, with both sanitizers?", ("./run-tests",), True),
    Piece("suites", "Do upstream's suites pass, but for explained tests?", ("tools/upstream_suites.py",), True),
    Piece(
        "answers",
        "Does it answer a million statements as Debian's server does?",
        ("proof/answers.py",),
        True,
        ("--fresh",),
    ),
    Piece("kills", "Is nothing lost in 500 SIGKILLs and 100 losses of power?", ("proof/kills.py",), True, ("--fresh",)),
    Piece(
        "failing",
        "Do a million failed allocations change no answer and lose no block?",
        ("proof/failing.py",),
        True,
        ("--fresh",),
    ),
    Piece("calls", "Does no failed call of ours stop it or make it lie?", ("proof/calls.py",), True, ("--fresh",)),
    Piece("races", "Does the thread sanitizer find no race in code of ours?", ("proof/races.py",)),
    Piece(
        "ceiling",
        "Does its limit kill it in no load?",
        (
            *("bench/ceiling.py", "--arms", "dev", "--limits-mb", "512,1200,2048,4096"),
            *("--processors", "0,0.5", "--huge-pages", "madvise,always", "--seconds", "5"),
        ),
        True,
    ),
    Piece(
        "scenarios",
        "Does the ceiling hold while limits, pools and targets change?",
        ("bench/ceiling_scenarios.py",),
        True,
    ),
    Piece("states", "Is each state of the machine found, and not when it has ended?", ("tools/host_states.py",)),
    Piece("version_2", "Are limits of control groups of version 2 read and kept?", ("proof/version_2.py",)),
    Piece("fuzz", "Does no input end a parser within an hour and a half?", ("tools/fuzz.py", "--seconds", "5400")),
    Piece("coverage", "What do the tests execute?", ("tools/coverage.py",)),
    Piece("mutants", "Do unit tests notice 85% of 200 random faults?", ("proof/mutants.py",), True, ("--fresh",)),
    Piece("packages", "Can the packages be built?", ("packaging/build",), True),
    Piece(
        "installed",
        "Do they install, upgrade, and give way to stock?",
        ("packaging/test", "--preset", "optimised", "--no-build"),
    ),
)


@dataclass
class Outcome:
    """Of a piece at a commit."""

    word: str  # passed, failed, or unfinished: it goes on when it is called again
    seconds: float
    last_line: str


def last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else ""


class Gate:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / "outcomes.json"
        folder.mkdir(parents=True, exist_ok=True)
        self.outcomes = {name: Outcome(**outcome) for name, outcome in read_state(self._file).items()}

    def passed(self, piece: Piece) -> bool:
        return piece.name in self.outcomes and self.outcomes[piece.name].word == "passed"

    def run(self, piece: Piece, longest: float = LONGEST_SECONDS) -> Outcome:
        log = self.folder / f"{piece.name}.log"
        began = time.monotonic()
        goes_on = piece.resumes and piece.name in self.outcomes
        before = self.outcomes[piece.name].seconds if goes_on else 0.0
        command = piece.command if goes_on else (*piece.command, *piece.at_first)
        with log.open("a" if goes_on else "w") as out, _started(command, out) as process:
            over = not _wait(piece, process, log, began + longest)
        word = "unfinished" if over and piece.resumes else "failed" if over or process.returncode else "passed"
        outcome = Outcome(word, before + time.monotonic() - began, last_line(log))
        self.outcomes[piece.name] = outcome
        write_state(self._file, {name: dataclasses.asdict(one) for name, one in self.outcomes.items()})
        return outcome

    def page(self, commit: str) -> str:
        rows = []
        for piece in PIECES:
            outcome = self.outcomes.get(piece.name, Outcome("not run", 0.0, ""))
            rows.append(
                [
                    piece.name,
                    piece.question,
                    f"`{' '.join(piece.command)}`",
                    outcome.word,
                    f"{outcome.seconds / 60:.0f}",
                    outcome.last_line.replace("|", "\\|"),
                ]
            )
        heads = ["piece", "question", "command", "outcome", "minutes", "its last line"]
        return f"# The gate at {commit}\n\n{report.table(heads, rows)}\n"


@contextlib.contextmanager
def _started(command: Sequence[str], out) -> Iterator[subprocess.Popen]:
    """A program in a session of its own, which is over when the block is left."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        # A shell starts what it runs in the background with the signal ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(CLEAN_UP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(piece: Piece, process: subprocess.Popen, log: Path, until: float) -> bool:
    """False: the time is over, and it runs on."""
    while (left := until - time.monotonic()) > 0:
        try:
            process.wait(min(SHOWN_EVERY_SECONDS, left))
        except subprocess.TimeoutExpired:
            say(f"   {piece.name}: {last_line(log)}")
        else:
            return True
    return False


def chosen(names: Sequence[str]) -> list[Piece]:
    known = {piece.name: piece for piece in PIECES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Problem(f"there is no piece {unknown[0]}; there are {', '.join(known)}")
    return [known[name] for name in names] or list(PIECES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="run nothing")
    parser.add_argument("--only", action="append", default=[], metavar="PIECE")
    options = parser.parse_args()
    pieces = chosen(options.only)
    commit = commit_of_tree()
    if commit.endswith("-dirty") and not options.list:
        raise Problem("the tree has changes: commit them, so that the page names what was run")
    gate = Gate(ROOT / "build" / "gate" / commit)
    if options.list:
        print(gate.page(commit))
        return 0
    with lock(gate.folder.parent / "lock", "at the gate of this checkout"):
        for piece in pieces:
            if gate.passed(piece):
                continue
            say(f"== {piece.name}: {' '.join(piece.command)}")
            outcome = gate.run(piece)
            say(f"   {outcome.word} after {outcome.seconds / 60:.0f} min: {outcome.last_line}")
            (gate.folder / "page.md").write_text(gate.page(commit))
    print(gate.page(commit))
    return 0 if all(map(gate.passed, pieces)) else 1


if __name__ == "__main__":
    run_main("gate", main)
