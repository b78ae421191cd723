"""Plots as SVG, written by hand: lines over time, and bars."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 380
LEFT, RIGHT, TOP, BOTTOM = 60, 190, 40, 40
COLOURS = (
    "#d62728", "#ff7f0e", "#8c564b", "#e377c2", "#7f7f7f", "#9467bd", "#1f77b4", "#2ca02c", "#17becf",
)  # fmt: skip

Points = Sequence[tuple[float, float]]


def lines(title: str, series: Mapping[str, Points], marks: Mapping[str, float]) -> str:
    """A line for every name; `marks` are the moments at which its load ended. Seconds and MB."""
    every = [point for points in series.values() for point in points]
    x_ticks = ticks(max((x for x, _ in every), default=0))
    y_ticks = ticks(max((y for _, y in every), default=0))
    across = _scale(x_ticks[-1], LEFT, WIDTH - RIGHT)
    down = _scale(y_ticks[-1], HEIGHT - BOTTOM, TOP)
    parts = _frame(title, y_ticks, down)
    for tick in x_ticks:
        parts.append(_text(across(tick), HEIGHT - BOTTOM + 16, f"{tick:g} s", "middle"))
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        )
        at = min(
            points, key=lambda point: abs(point[0] - marks.get(name, 0)), default=None
        )
        if name in marks and at:
            parts.append(
                f'<circle cx="{across(at[0]):.1f}" cy="{down(at[1]):.1f}" r="4" fill="{colour}"/>'
            )
        parts += _legend(number, name, colour)
    return _whole(parts)


def bars(
    title: str, groups: Mapping[str, Sequence[float]], labels: Sequence[str]
) -> str:
    """A group of bars for every name, one bar for each label. MB."""
    y_ticks = ticks(max(itertools.chain.from_iterable(groups.values()), default=0))
    down = _scale(y_ticks[-1], HEIGHT - BOTTOM, TOP)
    parts = _frame(title, y_ticks, down)
    room = (WIDTH - RIGHT - LEFT) / max(1, len(groups))
    thick = room * 0.8 / max(1, len(labels))
    for place, (name, values) in enumerate(groups.items()):
        left = LEFT + room * (place + 0.1)
        for number, value in enumerate(values):
            colour = COLOURS[-3 + number]
            x = left + thick * number
            parts.append(
                f'<rect x="{x:.1f}" y="{down(value):.1f}" width="{thick:.1f}"'
                f' height="{down(0) - down(value):.1f}" fill="{colour}"/>'
            )
            parts.append(
                _text(x + thick / 2, down(value) - 4, f"{value:.0f}", "middle")
            )
        # Names of neighbours on two lines, or they would run into each other.
        parts.append(
            _text(
                left + room * 0.4,
                HEIGHT - BOTTOM + 14 + 13 * (place % 2),
                name,
                "middle",
            )
        )
    for number, label in enumerate(labels):
        parts += _legend(number, label, COLOURS[-3 + number])
    return _whole(parts)


def ticks(highest: float) -> list[float]:
    """Round values from 0 to at least the highest, about five of them."""
    raw = max(highest, 1e-9) / 5
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    return [step * number for number in range(math.ceil(highest / step) + 1)] or [0]


def _scale(highest: float, at_zero: float, at_highest: float):
    return lambda value: at_zero + (at_highest - at_zero) * value / (highest or 1)


def _frame(title: str, y_ticks: Sequence[float], down) -> list[str]:
    parts = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 22, title, "start", 15),
    ]
    for tick in y_ticks:
        y = down(tick)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        )
        parts.append(_text(LEFT - 6, y + 4, f"{tick:g} MB", "end"))
    return parts


def _legend(number: int, name: str, colour: str) -> list[str]:
    y = TOP + 20 * number
    return [
        f'<rect x="{WIDTH - RIGHT + 16}" y="{y}" width="14" height="10" fill="{colour}"/>',
        _text(WIDTH - RIGHT + 36, y + 9, name, "start"),
    ]


def _text(x: float, y: float, text: str, anchor: str, size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _whole(parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )
