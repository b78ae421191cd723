#!/usr/bin/python3
"""Draws docs/images/phrase_burst.svg from a saved report: RSS before, at the peak of and
after a burst of full-text searches, of Debian's server and of this one.

  docs/images/phrase_burst.py [REPORT]

Needs the Debian package python3-matplotlib. The same report gives the same file.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

HERE = Path(__file__).resolve().parent
REPORT = HERE.parents[1] / "bench/results/saved/memory-20261129-001840/report.md"
# The report's columns, and the words below the bars.
MOMENTS = {"start": "before the burst", "peak": "at its peak", "60 s": "60 seconds after it"}
# The report's arms, the words of the legend, and the colours of the bars.
ARMS = {"debian": ("Debian's MySQL 9.7.4", "#9aa0a6"), "dev": ("this server", "#0b7a75")}
INK = "#202124"


def resident_mb(report: str, workload: str) -> dict[str, dict[str, int]]:
    """{arm: {column: MB}} from the first table below the workload's heading."""
    section = report.split(f"\n## {workload}\n", 1)[1]
    rows = [
        [cell.strip() for cell in line.strip("| \n").split("|")]
        for line in section.split("\n\n## ", 1)[0].splitlines()
        if line.startswith("| ")
    ]
    columns = rows[0]
    return {row[0]: {name: int(row[columns.index(name)]) for name in MOMENTS} for row in rows if row[0] in ARMS}


def draw(figures: dict[str, dict[str, int]], target: Path) -> None:
    matplotlib.rcParams.update(
        {
            "svg.hashsalt": "memdiag",  # ids that do not change from run to run
            "svg.fonttype": "none",  # text stays text
            "font.family": "sans-serif",
            "font.size": 13,
            "text.color": INK,
        }
    )
    figure, axes = pyplot.subplots(figsize=(8.4, 3.9), facecolor="white")
    width = 0.38
    for number, (arm, (words, colour)) in enumerate(ARMS.items()):
        places = [group + (number - 0.5) * width for group in range(len(MOMENTS))]
        heights = [figures[arm][name] for name in MOMENTS]
        bars = axes.bar(places, heights, width * 0.92, color=colour, label=words)
        axes.bar_label(bars, fmt="%d MB", padding=3, fontweight="bold", color=INK)
    axes.set_xticks(range(len(MOMENTS)), MOMENTS.values())
    axes.tick_params(length=0, labelcolor=INK)
    axes.set_yticks([])
    axes.set_ylim(0, 1.15 * max(max(of.values()) for of in figures.values()))
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.set_title("RSS of mysqld: eight clients search for phrases for 15 seconds", loc="left", fontsize=14)
    axes.legend(frameon=False, loc="upper left")
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None, "Creator": None})


def main(arguments: list[str]) -> None:
    report = Path(arguments[0]) if arguments else REPORT
    draw(resident_mb(report.read_text(), "phrase_burst"), HERE / "phrase_burst.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
