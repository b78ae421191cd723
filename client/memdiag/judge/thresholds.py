"""Sizes from which the rules speak, each with its reason."""

from __future__ import annotations

from memdiag.model.units import MIB
from memdiag.model.view import View

# Less is no reason to act at night.
WORTH_BYTES = 64 * MIB
# Part of the resident memory besides the buffer pool: a holder of so much decides the server's size.
LARGE_PERCENT = 25
# Part of a limit: above it the next burst may end the server.
NEAR_LIMIT_PERCENT = 90


def severity(view: View, size: int) -> str:
    outside = view.outside
    if outside and size * 100 >= outside * LARGE_PERCENT:
        return "warning"
    return "note"
