"""One line on the terminal that says what is being done. It is gone when the work is."""

from __future__ import annotations

import contextlib
import shutil
import sys

from memdiag.model.words import cell_width, cut, ljust, printable
from memdiag.problem import warn

verbose = False  # -v


def trace(words: str) -> None:
    if verbose:
        warn(words)


class Progress:
    """Shows nothing where standard error is no terminal."""

    def __init__(self, prefix: str = "") -> None:
        self._shown = 0
        self._prefix = prefix

    def __call__(self, words: str) -> None:
        # A line that goes on in the next one could not be written over.
        line = cut(printable(f"{self._prefix}{words} ..."), shutil.get_terminal_size().columns - 1)
        self._write("\r" + ljust(line, self._shown))
        self._shown = cell_width(line)

    def done(self) -> None:
        if self._shown:
            self._write("\r" + " " * self._shown + "\r")
            self._shown = 0

    def _write(self, words: str) -> None:
        with contextlib.suppress(OSError):  # the terminal may be gone, and the work goes on
            if sys.stderr.isatty():
                sys.stderr.write(words)
                sys.stderr.flush()
