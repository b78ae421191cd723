"""Where the servers of a run lie, and what a run leaves to the next."""

import argparse
import contextlib
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self, TypeVar

from harness.common import ROOT, lock
from harness.state_file import read_state, write_state

STATES = ROOT / "build" / "proof"


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder of this run, in memory where the machine has such a place. A kill does not ask a disk."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() else STATES
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="memdiag-", dir=place, ignore_cleanup_errors=True) as name:
        yield Path(name)


_OPTIONS = {
    "arm": {"default": "dev", "help": "the server, of bench/runner/arms.py (default: %(default)s)"},
    "case": {"help": "only statements that have this text, and none that is kept"},
}


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds the options of a program that resumes, and those with these names."""
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="begin anew")
    for name in names:
        parser.add_argument(f"--{name}", **_OPTIONS[name])


@dataclass
class Done:
    """The counts of a program: it has done so much, and a later run adds to it."""

    @classmethod
    def of(cls, state: dict[str, Any]) -> Self:
        made = cls(**state)
        for each in fields(cls):
            if each.default_factory is Counter:
                setattr(made, each.name, Counter(getattr(made, each.name)))
        return made


Kind = TypeVar("Kind", bound=Done)


@contextlib.contextmanager
def resumed(
    name: str, kind: type[Kind], options: argparse.Namespace, doing: str, log: str = "faults", keeps: bool = True
) -> Iterator[tuple[Kind, Callable[[], None], Path]]:
    """Yields the counts that an earlier run left in the file of this name, a function that keeps them, and the file of
    what was found. Without `keeps`, the counts are new and stay so.

    No other run with the name goes on meanwhile.
    """
    state = STATES / f"{name}.json"
    found = state.with_suffix(f".{log}")
    with lock(state.with_suffix(".lock"), doing):
        if options.fresh:
            found.unlink(missing_ok=True)
        counts = kind.of({} if options.fresh or not keeps else read_state(state))
        yield counts, lambda: write_state(state, vars(counts)) if keeps else None, found


def every(seconds: float) -> Callable[[], bool]:
    """A function that is true the first time, and when so much time has passed since it was."""
    last = -math.inf

    def due() -> bool:
        nonlocal last
        now = time.monotonic()
        if now - last <= seconds:
            return False
        last = now
        return True

    return due
