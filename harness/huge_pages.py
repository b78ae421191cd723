"""Transparent huge pages for the whole machine."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from harness.problem import NotPossible

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@contextlib.contextmanager
def always() -> Iterator[str]:
    """Switches huge pages on for the whole machine, and back to the former setting, even if this process is killed.
    The value of the block is that setting."""
    try:
        before = re.search(r"\[(\w+)\]", SETTING.read_text())
        assert before
        # This changes nothing. A process without the permission fails here.
        SETTING.write_text(before[1])
    except OSError as error:
        raise NotPossible(f"huge pages cannot be set: {error}") from None
    # The shell waits for the end of its input, which comes at the latest when this process ends.
    restore = ["sh", "-c", 'read -r _; echo "$1" > "$2"', "sh", before[1], SETTING]
    guard = subprocess.Popen(restore, stdin=subprocess.PIPE, start_new_session=True)
    assert guard.stdin
    try:
        SETTING.write_text("always")
        yield before[1]
    finally:
        guard.stdin.close()
        guard.wait()
