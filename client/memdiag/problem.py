"""The exceptions that the user sees: a line with the fault and what helps."""

from __future__ import annotations

import sys

from memdiag.model.words import printable


class Problem(Exception):
    """A fault that the user can act on. It is shown as one line, without a traceback."""

    status = 1  # of the program


class WrongOption(Problem):
    """The command line, or an option file, says what cannot be."""

    status = 2


class Ended(KeyboardInterrupt):
    """A signal other than that of Ctrl-C asks the program to end. `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def warn(words: str) -> None:
    """A line for the person, who gets an answer all the same."""
    print(f"memdiag: {printable(words)}", file=sys.stderr)
