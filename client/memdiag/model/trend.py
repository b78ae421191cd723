"""A straight line through points, by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Trend:
    per_second: float
    r2: float  # 1: the line fits exactly; near 0: there is no trend


def line_through(points: Sequence[tuple[float, float]]) -> Trend | None:
    """None for fewer than three points, or for points of one moment."""
    number = len(points)
    if number < 3:
        return None
    mean_x = sum(x for x, _ in points) / number
    mean_y = sum(y for _, y in points) / number
    xx = sum((x - mean_x) ** 2 for x, _ in points)
    xy = sum((x - mean_x) * (y - mean_y) for x, y in points)
    yy = sum((y - mean_y) ** 2 for _, y in points)
    if xx == 0:
        return None
    if yy == 0:
        return Trend(0.0, 0.0)
    return Trend(xy / xx, xy * xy / (xx * yy))
