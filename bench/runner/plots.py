"""Pictures as SVG, by matplotlib: lines over time, and bars.

matplotlib is imported when the first picture is drawn; only bench/ needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.libraries import library

PACKAGE = "python3-matplotlib"
INCHES = (8.6, 3.8)
# Text as text, and no random names: the files stay small, and equal figures make equal files.
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "memdiag", "font.size": 8}

Points = Sequence[tuple[float, float]]


def require() -> None:
    """A Problem where matplotlib is missing; asked before a long run begins."""
    library("matplotlib.figure", PACKAGE)


def lines(path: Path, title: str, series: Mapping[str, Points], marks: Mapping[str, float]) -> None:
    """A line for every name, in seconds and MB. `marks`: a dot at this second of the line."""
    figure, axes = _frame(title)
    for name, points in series.items():
        seconds, megabytes = zip(*points, strict=True) if points else ((), ())
        (line,) = axes.plot(seconds, megabytes, label=name, linewidth=1.2)
        if name in marks and points:
            mark = marks[name]
            dot = min(points, key=lambda point: abs(point[0] - mark))
            axes.plot(*dot, "o", color=line.get_color(), markersize=4)
    axes.set_xlabel("seconds")
    axes.set_xlim(left=0)
    _save(figure, axes, path)


def bars(path: Path, title: str, groups: Mapping[str, Sequence[float]], labels: Sequence[str]) -> None:
    """A group of bars for every name, one bar for each label, in MB."""
    figure, axes = _frame(title)
    thick = 0.8 / max(1, len(labels))
    for number, label in enumerate(labels):
        places = [place + thick * number for place in range(len(groups))]
        values = [group[number] for group in groups.values()]
        drawn = axes.bar(places, values, thick, label=label)
        axes.bar_label(drawn, fmt="%.0f", fontsize=6)
    middle = thick * (len(labels) - 1) / 2
    axes.set_xticks([place + middle for place in range(len(groups))], list(groups))
    for number, name in enumerate(axes.get_xticklabels()):
        name.set_y(-0.05 * (number % 2))  # neighbours would run into each other
    _save(figure, axes, path)


def _frame(title: str) -> tuple[Any, Any]:
    figure = library("matplotlib.figure", PACKAGE).Figure(INCHES, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left")
    axes.set_ylabel("MB")
    axes.grid(axis="y", color="#ddd")
    axes.set_axisbelow(True)
    return figure, axes


def _save(figure: Any, axes: Any, path: Path) -> None:
    axes.set_ylim(bottom=0)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    with library("matplotlib", PACKAGE).rc_context(SETTINGS):
        figure.savefig(path, format="svg", metadata={"Date": None})
