"""Sizes from which the rules speak, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.model.units import MIB, share
from memdiag.model.view import View

# Less is no reason to act at night.
WORTH_BYTES = 64 * MIB
# Part of the whole: a holder of so much decides the server's size.
LARGE_PERCENT = 25
# Part of a limit: above it the next burst may end the server.
NEAR_LIMIT_PERCENT = 90
# An event of longer ago is none of now.
HOUR_SECONDS = 3600


@dataclass(frozen=True)
class Whole:
    """What holders are a part of."""

    bytes: int | None  # None: not known
    words: str

    def share(self, part: int) -> float | None:
        return share(part, self.bytes)


def whole_of(view: View, held: int) -> Whole:
    """For servers without memdiag, where holders are known in allocated bytes. Those include pages that were never
    written, so that their sum may be more than the resident memory besides the buffer pool. The larger one of the two is
    the whole: no share exceeds 100%.

    @param held  the sum of all holders"""
    outside, counted = view.outside, max(view.counted or 0, held)
    if outside is None or outside >= counted:
        return Whole(outside, "the memory besides the buffer pool")
    return Whole(counted, "what is allocated besides the buffer pool")


def severity(whole: Whole, size: int) -> str:
    if whole.bytes and size * 100 >= whole.bytes * LARGE_PERCENT:
        return "warning"
    return "note"
