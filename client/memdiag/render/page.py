"""A page, which all renderers show: the reports of one or several servers, and those that could not be asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from memdiag.model.document import Fact, Report, Table
from memdiag.model.units import shown


@dataclass
class Page:
    title: str
    reports: list[Report]
    problems: list[str] = field(default_factory=list)  # one line each
    snapshots: list[dict[str, Any]] = field(default_factory=list)

    @property
    def comparison(self) -> list[tuple[str, list[Fact | None]]]:
        """A comparison of several servers: each fact with the servers' figures side by side."""
        labels = list(dict.fromkeys(fact.label for report in self.reports for fact in report.facts))
        return [
            (label, [next((fact for fact in report.facts if fact.label == label), None) for report in self.reports])
            for label in labels
        ]


def cells(table: Table) -> list[list[str]]:
    return [[shown(value, column.unit) for value, column in zip(row, table.columns)] for row in table.rows]


def meanings(table: Table) -> list[str]:
    return [f"{column.title}: {column.what}" for column in table.columns if column.what]


def numeric(table: Table, number: int) -> bool:
    return table.columns[number].unit in ("bytes", "count", "%", "s", "µs")


def series_grid(series: Any) -> tuple[list[str], list[list[str]], list[bool]]:
    """Head, rows and columns that are aligned to the right: a chart's lines where there is no chart."""
    rows = []
    for line in series.lines:
        known = [value for value in line.values if value is not None]
        if known:
            rows.append(
                [
                    line.label,
                    *(shown(value, series.unit) for value in (known[0], min(known), max(known), known[-1])),
                    line.what,
                ]
            )
    head = ["", "first", "lowest", "highest", "last", "what it is"]
    return head, rows, [False, True, True, True, True, False]
