"""The one exception that the user sees: a line with the fault and what helps."""

from __future__ import annotations


class Problem(Exception):
    """A fault that the user can act on. It is shown as one line, without a traceback."""
