"""Servers that idle after their load, while the next ones are prepared and put under load."""

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, Self, TypeVar

from bench.runner import memory
from bench.runner.quiet import wait_until_quiet
from harness.problem import Problem
from harness.sql import SqlError

Key = TypeVar("Key")

LEAST_AVAILABLE_KB = 4 << 20

FAILURES = (Problem, SqlError, OSError, KeyError)


def failed(problem: object, outcome: str = "failed") -> memory.Run:
    """A turn without figures."""
    return {"outcome": f"{outcome}: {problem}", "peak_rss_kb": 0, "seconds": 0.0}


def available_kb() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    raise Problem("/proc/meminfo has no MemAvailable")


class Idlers(Generic[Key]):
    """Ends each server after its idling and passes the run to `done`, between loads and on the caller's thread."""

    def __init__(self, most: int, done: Callable[[Key, memory.Run], None]) -> None:
        self._most = most
        self._done = done
        self._waiting: deque[tuple[Key, memory.Turn, contextlib.ExitStack]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.drain()
        finally:
            with contextlib.ExitStack() as all_of_them:
                for _, _, stack in self._waiting:
                    all_of_them.push(stack)

    def drain(self) -> None:
        while self._waiting:
            self._end_first()

    def make_room(self) -> None:
        """End the servers that have idled. Wait for more of them where there are too many or memory is short."""
        while self._waiting and (
            not self._waiting[0][1].idling() or len(self._waiting) >= self._most or available_kb() < LEAST_AVAILABLE_KB
        ):
            self._end_first()
        if available_kb() < LEAST_AVAILABLE_KB:
            raise Problem(f"less than {LEAST_AVAILABLE_KB >> 20} GB of memory are available")

    def add(self, key: Key, turn: memory.Turn, stack: contextlib.ExitStack) -> None:
        """`stack` ends the turn."""
        self._waiting.append((key, turn, stack))

    def cpu_seconds(self) -> float:
        return sum(turn.cpu_seconds() for _, turn, _ in self._waiting)

    @contextlib.contextmanager
    def quiet(self) -> Iterator[dict[str, float]]:
        """Wait until no idling server works in the background; then count their CPU seconds within the block."""
        if self._waiting:
            wait_until_quiet(self.cpu_seconds)
        counted = {"neighbours_cpu_seconds": 0.0}
        before = self.cpu_seconds()
        yield counted
        counted["neighbours_cpu_seconds"] = self.cpu_seconds() - before

    def _end_first(self) -> None:
        key, turn, stack = self._waiting[0]
        try:
            run = turn.end()
        except FAILURES as problem:
            run = failed(problem)
        self._waiting.popleft()
        with stack:
            self._done(key, run)
