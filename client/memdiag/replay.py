"""A recorded history against another limit. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    time: float
    rss: int
    unused: int | None  # pages that a purge would have given back; None: not known


@dataclass(frozen=True)
class Outcome:
    """The outcome for one limit."""

    samples: int
    highest: Sample
    survived: bool  # as it was
    survived_giving_back: bool | None  # with purges of unused pages; None: not known
    first_above: Sample | None
    above: int  # samples above the limit
    most_given_back: int  # by one purge that the limit would have forced
    lowest_limit: int  # that suffices as it was
    lowest_limit_giving_back: int | None


def replay(samples: Sequence[Sample], limit: int) -> Outcome:
    """`samples` is not empty. Only the process counts, not what else is in its control group."""
    above = [one for one in samples if one.rss > limit]
    known = all(one.unused is not None for one in samples)
    needed = max((one.rss - (one.unused or 0) for one in samples), default=0)
    highest = max(samples, key=lambda one: one.rss)
    return Outcome(
        samples=len(samples),
        highest=highest,
        survived=not above,
        survived_giving_back=needed <= limit if known else None,
        first_above=above[0] if above else None,
        above=len(above),
        most_given_back=max((min(one.rss - limit, one.unused or 0) for one in above), default=0),
        lowest_limit=highest.rss,
        lowest_limit_giving_back=needed if known else None,
    )
