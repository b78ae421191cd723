"""A page as plain text for a terminal or a mail."""

from __future__ import annotations

import textwrap
from typing import Any

from memdiag.model.document import Report
from memdiag.model.units import moment, percent, share, shown, size
from memdiag.model.words import printable
from memdiag.render.page import Page, cells, meanings, numeric, series_grid

WIDTH = 100
TERMINAL = 80
MOST_IN_BRIEF = 3
WIDEST_CELL = 44
_MARKS = {"critical": "!!", "warning": " !", "note": "  "}


def render(page: Page) -> str:
    lines: list[str] = []
    for problem in page.problems:
        lines += [f"not asked: {problem}"]
    if len(page.reports) > 1:
        lines += [page.title, "=" * len(page.title), *_comparison(page), ""]
    for report in page.reports:
        lines += _report(report)
    return printable("\n".join(line.rstrip() for line in lines)) + "\n"


def brief(page: Page) -> str:
    """The answer in short: what is wrong and what helps. Statements keep their lines, as they are copied."""
    lines: list[str] = []
    for report in page.reports:
        lines += textwrap.wrap(f"{report.product} at {report.label}, {moment(report.time)}", TERMINAL)
        if not report.findings:
            lines += textwrap.wrap(report.headline, TERMINAL)
        for number, finding in enumerate(report.findings[:MOST_IN_BRIEF], 1):
            lines += _finding(number, finding, TERMINAL, ("proof", "remedy"))
        if left := len(report.findings) - MOST_IN_BRIEF:
            lines += ["", f"{left} more on the page"] if left > 0 else []
        lines.append("")
    return printable("\n".join(line.rstrip() for line in lines)) + "\n"


def _comparison(page: Page) -> list[str]:
    titles = ["", *(report.label for report in page.reports)]
    rows = [
        [label, *(shown(fact.value, fact.unit) if fact else "-" for fact in facts)] for label, facts in page.comparison
    ]
    rows.append(["verdict", *(report.headline for report in page.reports)])
    return _grid(titles, rows, [False] + [False] * len(page.reports))


def _report(report: Report) -> list[str]:
    title = f"{report.product} at {report.label}, {moment(report.time)}"
    lines = [title, "=" * len(title), "", *textwrap.wrap(report.headline, WIDTH), ""]
    for fact in report.facts:
        lines += _fact(fact)
    lines += ["", "WHAT IS WRONG", "-------------"]
    if not report.findings:
        lines.append("Nothing was found.")
    for number, finding in enumerate(report.findings, 1):
        lines += _finding(number, finding)
    for section in report.sections:
        lines += ["", section.title.upper(), "-" * len(section.title)]
        lines += textwrap.wrap(section.lead, WIDTH)
        for block in section.blocks:
            lines += _BLOCKS[block.kind](block)
    return [*lines, ""]


def _finding(
    number: int, finding: Any, width: int = WIDTH, wanted: tuple[str, ...] = ("proof", "from", "remedy", "check")
) -> list[str]:
    def part(label: str, words: str) -> list[str]:
        if not words or label not in wanted:
            return []
        return textwrap.wrap(words, width, initial_indent=f"    {label:8}", subsequent_indent=" " * 12)

    return [
        "",
        *textwrap.wrap(f"{_MARKS[finding.severity]} {number}. {finding.headline}", width, subsequent_indent="      "),
        *textwrap.wrap(
            f"{finding.severity}, {finding.verdict}: {finding.holder}",
            width,
            initial_indent="    ",
            subsequent_indent="    ",
        ),
        *part("proof", finding.evidence),
        *part("from", finding.source),
        *part("remedy", finding.remedy),
        *(f"            {statement}" for statement in finding.statements),
        *part("check", finding.check),
    ]


def _fact(fact: Any) -> list[str]:
    return textwrap.wrap(
        f"{fact.label}: {shown(fact.value, fact.unit)} ({fact.what}; from {fact.source})",
        WIDTH,
        subsequent_indent="    ",
    )


def _note(note: Any) -> list[str]:
    return ["", *textwrap.wrap(note.text, WIDTH)]


def _parts(parts: Any) -> list[str]:
    rows = []
    for part in parts.parts:
        of = share(part.value, parts.total)
        width = round(30 * max(0.0, of or 0) / 100)
        rows.append([part.label, size(part.value), percent(of), "#" * width, part.what])
    rows.append([parts.total_label, size(parts.total), "", "", "the sum"])
    return [
        "",
        f"{parts.title}",
        *_grid(["part", "size", "share", "", "what it is"], rows, [False, True, True, False, False]),
        *_tail(parts),
    ]


def _series(series: Any) -> list[str]:
    span = f"from {moment(series.times[0])} to {moment(series.times[-1])}, {len(series.times)} samples"
    lines = ["", f"{series.title}, {span}", *_grid(*series_grid(series))]
    lines += [f"  {moment(event.time)}  {event.label}" for event in series.events]
    return [*lines, *_tail(series)]


def _table(table: Any) -> list[str]:
    right = [numeric(table, number) for number in range(len(table.columns))]
    lines = ["", table.title, *_grid([column.title for column in table.columns], cells(table), right)]
    for words in meanings(table):
        lines += textwrap.wrap(words, WIDTH, initial_indent="  ", subsequent_indent="    ")
    return [*lines, *_tail(table)]


def _picture(picture: Any) -> list[str]:
    return ["", f"{picture.title}: see the HTML report. {picture.note}", f"  from {picture.source}"]


def _tail(block: Any) -> list[str]:
    lines = textwrap.wrap(block.note, WIDTH, initial_indent="  ", subsequent_indent="  ")
    return [*lines, f"  from {block.source}"]


_BLOCKS = {"fact": _fact, "note": _note, "parts": _parts, "series": _series, "table": _table, "picture": _picture}


def _grid(titles: list[str], rows: list[list[str]], right: list[bool]) -> list[str]:
    """Columns that are aligned; long cells take several lines."""
    wrapped = [[textwrap.wrap(cell, WIDEST_CELL) or [""] for cell in row] for row in [titles, *rows]]
    widths = [max(len(line) for row in wrapped for line in row[number]) for number in range(len(titles))]
    lines = []
    for number, row in enumerate(wrapped):
        for height in range(max(len(cell) for cell in row)):
            words = []
            for place, cell in enumerate(row):
                text = cell[height] if height < len(cell) else ""
                words.append(text.rjust(widths[place]) if right[place] else text.ljust(widths[place]))
            lines.append("  " + "  ".join(words))
        if number == 0:
            lines.append("  " + "  ".join("-" * width for width in widths))
    return lines
