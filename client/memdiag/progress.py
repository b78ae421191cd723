"""One line on the terminal that says what is being done. It is gone when the work is."""

from __future__ import annotations

import sys

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
        if not sys.stderr.isatty():
            return
        line = f"{self._prefix}{words} ..."[:100]
        sys.stderr.write("\r" + line.ljust(self._shown))
        sys.stderr.flush()
        self._shown = len(line)

    def done(self) -> None:
        if self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()
            self._shown = 0
