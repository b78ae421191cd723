"""Counts and shows the checks of a test program, a line for each. ./run-tests reads the last line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from harness.common import say
from harness.problem import Problem
from harness.sql import SqlError


class Failed(Exception):
    """Something that is tested does not work; the text has the program's own words."""


class Checks:
    def __init__(self, name: str = "", show: bool = True) -> None:
        """`name` begins the last line. Without `show`, finish() shows only the failures."""
        self.passed = 0
        self.failures: list[str] = []
        self.skipped: list[str] = []
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

    def skip(self, name: str, reason: object) -> None:
        self.skipped.append(str(reason))
        if self._show:
            say(f"skipped {name}: {reason}")

    @contextlib.contextmanager
    def checking(self, name: str) -> Iterator[None]:
        """A check that passes unless the block raises. The program continues after it."""
        try:
            yield
        except (Failed, Problem, SqlError, OSError, AssertionError) as error:
            self.check(name, False, error)
        else:
            self.check(name, True)

    def finish(self) -> int:
        """Shows the last line, with the reasons for skipped checks; returns the exit status."""
        if not self._show:
            for failure in self.failures:
                say(f"FAILED  {failure}")
        begin = f"{self._name}: " if self._name else ""
        reasons = f": {'; '.join(self.skipped)}" if self.skipped else ""
        say(
            f"{begin}{self.passed} passed, {len(self.failures)} failed,"
            f" {len(self.skipped)} skipped{reasons}"
        )
        return 1 if self.failures else 0


def not_possible(name: str, what: str, reason: object) -> int:
    """Shows why this machine allows no check at all; returns the exit status for that."""
    checks = Checks(name)
    checks.skip(what, reason)
    return checks.finish()
