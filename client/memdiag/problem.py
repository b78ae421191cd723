"""The exceptions that the user sees: a line with the fault and what helps."""

from __future__ import annotations


class Problem(Exception):
    """A fault that the user can act on. It is shown as one line, without a traceback."""

    status = 1  # of the program


class WrongOption(Problem):
    """The command line, or an option file, says what cannot be."""

    status = 2
