"""Concurrent load: a number of sessions that each run statement after statement for a given time."""

import itertools
import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Self, TypeVar

from harness.problem import Problem
from harness.sql import Connection

T = TypeVar("T")


def percentile(values: Sequence[float], percent: float) -> float:
    """By nearest rank: the least value that so many percent of all do not exceed."""
    return sorted(values)[max(1, math.ceil(len(values) * percent / 100)) - 1]


@dataclass
class Burst:
    """The figures of a burst. A statement under way at the end is finished but not counted."""

    seconds: float
    clients: int
    # The seconds of each statement that was completed within the time.
    latencies: list[float] = field(default_factory=list)
    rows_seen: int = 0

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds

    def latency(self, percent: float) -> float:
        if not self.latencies:
            raise Problem("no statement was completed in the burst; give it more seconds")
        return percentile(self.latencies, percent)


def run(socket: Path, database: str, statements: Sequence[str], clients: int, seconds: float, seed: int = 1) -> Burst:
    """Sessions that each run statement after statement until the time is up."""

    def steps(number: int) -> Iterator[int]:
        # Each client runs all statements in an order of its own. The orders are the same in every run.
        order = list(statements)
        random.Random(f"{seed}/{number}").shuffle(order)
        with Connection(socket, database) as connection:
            yield 0
            for statement in itertools.cycle(order):
                yield len(connection.query(statement).rows)

    return crowd(steps, clients, seconds)


def crowd(steps: Callable[[int], Iterator[int]], clients: int, seconds: float | None = None) -> Burst:
    """Run clients at once, each through the steps of steps(its number); wait until all have ended.

    A client is ready when it yields for the first time. After each step it yields the number of rows that it saw.
    Without `seconds`, clients run until their steps end.
    """
    burst = Burst(seconds or 0.0, clients)
    failures: list[Exception] = []
    lock = threading.Lock()
    start_line = threading.Barrier(clients)
    stop = threading.Event()

    def client(number: int) -> None:
        mine: list[float] = []
        rows = 0
        begin = done = 0.0
        own = steps(number)
        try:
            next(own)
            start_line.wait()
            begin = done = time.monotonic()
            end = begin + seconds if seconds else math.inf
            while not stop.is_set() and (sent := time.monotonic()) < end:
                seen = next(own, None)
                if seen is None:
                    break
                done = time.monotonic()
                if done <= end:
                    rows += seen
                    mine.append(done - sent)
        except threading.BrokenBarrierError:
            return  # another client failed before the start, and reports that
        except Exception as error:  # noqa: BLE001 - raised below
            stop.set()
            start_line.abort()
            with lock:
                failures.append(error)
        finally:
            own.close()
        with lock:
            burst.latencies.extend(mine)
            burst.rows_seen += rows
            if seconds is None:
                burst.seconds = max(burst.seconds, done - begin)

    threads = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        stop.set()  # interrupted: let the sessions end after their present statement
        raise
    if failures:
        raise Problem(f"a client of the burst failed: {failures[0]}") from failures[0]
    return burst


class Sampler(Generic[T]):
    """Calls `read` every `interval` seconds in a thread of its own, from entering the block to leaving it.

    samples: (seconds since the start, what was read). A failing read ends the sampling and is raised at the end.
    """

    def __init__(self, interval: float, read: Callable[[], T]) -> None:
        self.samples: list[tuple[float, T]] = []
        self._interval = interval
        self._read = read
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None and kind is None:
            raise Problem(f"sampling failed: {self._failure}")

    def _run(self) -> None:
        begin = time.monotonic()
        for tick in itertools.count(1):
            try:
                self.samples.append((time.monotonic() - begin, self._read()))
            except Exception as error:  # noqa: BLE001 - shown by __exit__
                self._failure = error
                return
            if self._stop.wait(max(0.0, begin + tick * self._interval - time.monotonic())):
                return
