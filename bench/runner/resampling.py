"""How exact a figure is that was calculated from a few measurements."""

import random
import statistics
from collections.abc import Callable, Sequence
from typing import Any

RESAMPLES = 2000


def interval(
    measured: Sequence[Any], figure: Callable[[Sequence[Any]], float] = statistics.median, share: float = 0.95
) -> tuple[float, float, float]:
    """The figure, and the ends of the interval that has this share of the same figures when measurements are drawn with
    replacement (percentile bootstrap, Efron 1979). The draws are random, but the same each time.
    """
    chooser = random.Random(1)
    drawn = sorted(figure(chooser.choices(measured, k=len(measured))) for _ in range(RESAMPLES))
    outside = (1 - share) / 2
    low, high = (drawn[round(end * RESAMPLES)] for end in (outside, 1 - outside))
    return figure(measured), low, high
