"""Where the servers of a run lie, and what a run leaves to the next."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.common import ROOT

STATES = ROOT / "build" / "proof"


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder of this run, in memory where the machine has such a place. A kill does not ask a disk."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() else STATES
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="memdiag-", dir=place, ignore_cleanup_errors=True) as name:
        yield Path(name)
