"""One line for each check, counted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from harness.common import say
from harness.problem import Problem
from harness.sql import SqlError


class Failed(Exception):
    """Something that is tested does not work; the text says what it said."""


class Report:
    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0

    def check(self, name: str, good: bool, detail: object = "") -> None:
        """`detail` is shown whether it is good or not: figures belong there."""
        shown = f": {detail}" if detail not in ("", None) else ""
        if good:
            self.passed += 1
            say(f"ok      {name}{shown}")
        else:
            self.failed += 1
            say(f"FAILED  {name}{shown}")

    def skip(self, name: str, reason: object) -> None:
        self.skipped += 1
        say(f"skipped {name}: {reason}")

    @contextlib.contextmanager
    def checking(self, name: str) -> Iterator[None]:
        """A check that is good unless the block raises; what it raises ends nothing else."""
        try:
            yield
        except (Failed, Problem, SqlError, OSError, AssertionError) as error:
            self.check(name, False, error)
        else:
            self.check(name, True)

    def finish(self) -> int:
        say(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed else 0
