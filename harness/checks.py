"""Counts and shows the checks of a test program, a line for each. ./run-tests reads the last line."""

import contextlib
import re
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

from harness.common import say
from harness.problem import NotPossible, Problem
from harness.programs import CLEAN_UP, Programs
from harness.sql import SqlError


class Failed(Problem):
    """Something that is tested does not work; the text has the program's own words."""


class Checks:
    def __init__(self, name: str = "", show: bool = True) -> None:
        """`name` begins the last line. Without `show`, finish() shows only the failures."""
        self.passed = 0
        self.failures: list[str] = []
        self.skipped: list[str] = []
        self._skipped_names: list[str] = []
        self._name = name
        self._show = show

    def check(self, name: str, good: bool, detail: object = "") -> None:
        """Counts and shows a check. `detail` is shown with a good result, too, so figures belong there."""
        shown = f": {detail}" if detail not in ("", None) else ""
        if good:
            self.passed += 1
        else:
            self.failures.append(f"{name}{shown}")
        if self._show:
            say(f"{'ok     ' if good else 'FAILED '} {name}{shown}")

    def equal(self, name: str, found: object, wanted: object) -> None:
        """A check that shows what was found."""
        self.check(name, found == wanted, found)

    def nothing(self, name: str, found: Collection[object]) -> None:
        """A check that a text, or a collection of texts, is empty. It shows what is there instead."""
        self.check(name, not found, found if isinstance(found, str) else "; ".join(map(str, found)))

    def skip(self, name: str, reason: object) -> None:
        self.skipped.append(str(reason))
        self._skipped_names.append(name)
        if self._show:
            say(f"skipped {name}: {reason}")

    @contextlib.contextmanager
    def checking(self, name: str) -> Iterator[None]:
        """A check that passes unless the block raises. The program continues after it."""
        try:
            yield
        except (Problem, SqlError, OSError, AssertionError) as error:
            self.check(name, False, error)
        else:
            self.check(name, True)

    def finish(self) -> int:
        """Shows the last line, with the reasons for skipped checks; returns the exit status."""
        if not self._show:
            for failure in self.failures:
                say(f"FAILED  {failure}")
            for name, reason in zip(self._skipped_names, self.skipped, strict=True):
                say(f"skipped {name}: {reason}")
        begin = f"{self._name}: " if self._name else ""
        reasons = f": {'; '.join(self.skipped)}" if self.skipped else ""
        say(f"{begin}{self.passed} passed, {len(self.failures)} failed, {len(self.skipped)} skipped{reasons}")
        return 1 if self.failures else 0


class Total:
    """Adds up programs that end with Checks.finish()."""

    _LAST = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped[^\n]*\s*\Z")

    def __init__(self) -> None:
        self._sums = [0, 0, 0]

    def add(self, done: subprocess.CompletedProcess[str]) -> None:
        """Shows the program's output. A program that says nothing of a failure counts as one."""
        say(done.stdout.rstrip())
        found = self._LAST.search(done.stdout)
        counts = [int(number) for number in found.groups()] if found else [0, 1, 0]
        if done.returncode and not counts[1]:
            counts[1] = 1
        self._sums = [old + new for old, new in zip(self._sums, counts, strict=True)]

    def finish(self, name: str) -> int:
        """Shows the last line; returns the exit status."""
        passed, failed, skipped = self._sums
        say(f"{name}: {passed} passed, {failed} failed, {skipped} skipped")
        return 1 if failed else 0


def run_checks(name: str, needs: str, run: Callable[[Checks], object]) -> int:
    """Runs checks, and skips the rest where this machine lacks what they need; returns the exit status."""
    checks = Checks(name)
    try:
        run(checks)
    except NotPossible as reason:
        checks.skip(needs, reason)
    return checks.finish()


def run_all(name: str, rows: Sequence[Sequence[list[str]]]) -> int:
    """Runs programs that end with Checks.finish() and adds them up; returns the exit status. Each row of commands runs in
    its order, beside the others."""
    ended: Queue[subprocess.CompletedProcess[str]] = Queue()

    def run_row(row: Sequence[list[str]]) -> None:
        for command in row:
            try:
                ended.put(checks.run(command))
            except OSError as error:  # no process or no memory is left
                ended.put(subprocess.CompletedProcess(command, 1, str(error)))

    total = Total()
    # An interruption first ends the checks, then the pool waits for the rows. A row starts no check after that.
    with ThreadPoolExecutor(len(rows)) as pool, Programs(CLEAN_UP) as checks:
        for row in rows:
            pool.submit(run_row, row)
        for _ in range(sum(map(len, rows))):
            total.add(ended.get())
    return total.finish(name)


def not_possible(name: str, what: str, reason: object) -> int:
    """Shows why this machine allows no check at all; returns the exit status for that."""
    checks = Checks(name)
    checks.skip(what, reason)
    return checks.finish()
