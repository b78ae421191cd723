"""A page as Markdown, for an issue or a post-mortem."""

from __future__ import annotations

import re
from typing import Any

from memdiag.model.document import Report
from memdiag.model.units import moment, percent, share, shown, size
from memdiag.model.words import printable
from memdiag.render.page import Page, cells, meanings, numeric, series_grid


def render(page: Page) -> str:
    lines: list[str] = []
    for problem in page.problems:
        lines += [f"> Not asked: {_words(problem)}", ""]
    if len(page.reports) > 1:
        lines += [f"# {_words(page.title)}", ""]
        lines += _grid(
            ["", *(report.label for report in page.reports)],
            [
                [label, *(shown(fact.value, fact.unit) if fact else "-" for fact in facts)]
                for label, facts in page.comparison
            ]
            + [["verdict", *(report.headline for report in page.reports)]],
            [False] + [True] * len(page.reports),
        )
    for report in page.reports:
        lines += _report(report)
    return printable(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()) + "\n"


def _report(report: Report) -> list[str]:
    lines = [
        f"# {_words(report.product)} at `{report.label}`",
        "",
        f"{moment(report.time)}. **{_words(report.headline)}**",
        "",
    ]
    lines += [line for fact in report.facts for line in _fact(fact)]
    lines += ["", "## What is wrong", ""]
    if not report.findings:
        lines.append("Nothing was found.")
    for number, finding in enumerate(report.findings, 1):
        lines += _finding(number, finding)
    for section in report.sections:
        lines += ["", f"## {section.title}", "", _words(section.lead), ""]
        for block in section.blocks:
            lines += _BLOCKS[block.kind](block)
    return lines


def _finding(number: int, finding: Any) -> list[str]:
    lines = [
        "",
        f"### {number}. {_words(finding.headline)}",
        "",
        f"*{finding.severity}, {finding.verdict}: {_words(finding.holder)}*",
        "",
    ]
    if finding.evidence:
        lines += [f"Proof: {_words(finding.evidence)}", ""]
    if finding.source:
        lines += [f"From {_words(finding.source)}.", ""]
    if finding.remedy:
        lines += [f"Remedy: {_words(finding.remedy)}", ""]
    if finding.statements:
        # An end of a line in a name must not end the block.
        lines += ["```sql", *(" ".join(one.split("\n")) for one in finding.statements), "```", ""]
    if finding.check:
        lines += [f"Check: {_words(finding.check)}", ""]
    return lines


def _fact(fact: Any) -> list[str]:
    return [
        f"- {fact.label}: **{_words(shown(fact.value, fact.unit))}** ({_words(fact.what)}; from {_words(fact.source)})"
    ]


def _note(note: Any) -> list[str]:
    return ["", _words(note.text), ""]


def _parts(parts: Any) -> list[str]:
    rows = [[part.label, size(part.value), percent(share(part.value, parts.total)), part.what] for part in parts.parts]
    rows.append([parts.total_label, size(parts.total), "", "the sum"])
    return [
        "",
        f"### {parts.title}",
        "",
        *_grid(["part", "size", "share", "what it is"], rows, [False, True, True, False]),
        *_tail(parts),
    ]


def _series(series: Any) -> list[str]:
    lines = [
        "",
        f"### {series.title}",
        "",
        f"From {moment(series.times[0])} to {moment(series.times[-1])}, {len(series.times)} samples.",
        "",
        *_grid(*series_grid(series)),
    ]
    lines += [f"- {moment(event.time)}: {_words(event.label)}" for event in series.events]
    return [*lines, *_tail(series)]


def _table(table: Any) -> list[str]:
    right = [numeric(table, number) for number in range(len(table.columns))]
    lines = ["", f"### {table.title}", "", *_grid([column.title for column in table.columns], cells(table), right)]
    lines += [f"- {_words(words)}" for words in meanings(table)]
    return [*lines, *_tail(table)]


def _picture(picture: Any) -> list[str]:
    return [
        "",
        f"### {picture.title}",
        "",
        f"See the HTML report. {_words(picture.note)} From {_words(picture.source)}.",
        "",
    ]


def _tail(block: Any) -> list[str]:
    note = f"{_words(block.note)} " if block.note else ""
    return ["", f"{note}From {_words(block.source)}.", ""]


_BLOCKS = {"fact": _fact, "note": _note, "parts": _parts, "series": _series, "table": _table, "picture": _picture}


def _grid(titles: list[str], rows: list[list[str]], right: list[bool]) -> list[str]:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(_words(cell) for cell in cells) + " |"

    rule = "|" + "|".join("---:" if one else "---" for one in right) + "|"
    return [line(titles), rule, *(line(row) for row in rows), ""]


def _words(text: str) -> str:
    """Nothing of a name or a statement may become markup."""
    return re.sub(r"([\\`*_{}<>\[\]|#])", r"\\\1", str(text)).replace("\n", " ")
