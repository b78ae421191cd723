"""A state of the machine ends with the block that made it, or with its process."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def at_the_end(script: str, *arguments: str | Path) -> Iterator[None]:
    """Run a shell script when the block ends, or when this process does, for any reason."""
    # The shell waits for the end of its input, which comes at the latest when this process ends.
    command = ["sh", "-c", f"read -r _; {{ {script}; }} 2>/dev/null", "sh"]
    command += map(str, arguments)
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert guard.stdin
    try:
        yield
    finally:
        guard.stdin.close()
        guard.wait()
