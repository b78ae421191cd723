"""Where the page cache keeps a server's executable."""

import os
from pathlib import Path

PIECE = 1 << 20


def read_anew(executable: Path) -> None:
    """Gives the file new places in memory. A file keeps the places of its first reading for hours. If they make a
    server faster or slower, it is so in all rounds (README.md, sysbench_oltp.py). Pages that a process has mapped stay.
    """
    file = os.open(executable, os.O_RDONLY)
    try:
        os.fsync(file)  # pages that are not yet written would stay
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        while os.read(file, PIECE):
            pass
    finally:
        os.close(file)
