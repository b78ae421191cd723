"""Passwords that are arguments, and the process list, which every user of the machine can read."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

_SECRET = re.compile(rb"(?<=\0)(-v*p|--pa[a-z]*=)([^\0]+)")


def hide_passwords() -> None:
    """Writes x over the passwords among this process's arguments, as the mysql client does. sys.argv keeps them.

    Does nothing where the kernel does not show or change them."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        # arg_start and arg_end, the fields 48 and 49 of proc(5); the second one ends with ")".
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            arguments = memory.read(end - start)
            memory.seek(start)
            memory.write(_SECRET.sub(lambda found: found[1] + b"x" * len(found[2]), arguments))
