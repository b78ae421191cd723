"""Where the servers of a run lie, and what a run leaves to the next."""

import argparse
import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a program that goes through the cases and resumes."""
    parser.add_argument("--arm", default="dev", help="the server, of bench/runner/arms.py (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", help="only statements that have this text, and none that is kept")
    parser.add_argument("--fresh", action="store_true", help="begin anew")


@contextlib.contextmanager
def resumed(
    program: str, options: argparse.Namespace, doing: str
) -> Iterator[tuple[dict[str, Any], Callable[[dict[str, Any]], None], Path]]:
    """Yields the state that an earlier run with these options left ({}: none), a function that keeps it, and the file of
    faults.

    No other run with the arm and the seed goes on meanwhile.
    """
    state = STATES / f"{program}-{options.arm}-{options.seed}.json"
    log = state.with_suffix(".faults")
    with lock(state.with_suffix(".lock"), doing):
        if options.fresh:
            log.unlink(missing_ok=True)
        before = {} if options.fresh or options.case else read_state(state)
        yield before, (lambda _: None) if options.case else (lambda left: write_state(state, left)), log
