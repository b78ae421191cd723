"""The most that a configuration may take, as rows of one form for every server, and with other values of variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from memdiag.model.view import View

# Buffers of a session on servers without MEMDIAG_BUDGET, each once.
_SESSION = (
    "sort_buffer_size",
    "join_buffer_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "net_buffer_length",
    "binlog_cache_size",
    "thread_stack",
)
_SERVER = (
    "innodb_buffer_pool_size",
    "innodb_log_buffer_size",
    "key_buffer_size",
    "query_cache_size",
    "aria_pagecache_buffer_size",
)
_GROWING = ("temptable_max_ram", "innodb_ft_total_cache_size")


@dataclass(frozen=True)
class Row:
    variable: str
    kind: str  # buffer: taken whole; growing: up to it, as data need it; other kinds take nothing
    each: int | None
    times: int | None
    times_of: str  # server, or the variables that decide it
    worst: int | None
    value: int | None
    seen: int | None = None

    @property
    def of_server(self) -> bool:
        return self.times_of in ("server", "")

    def depends_on(self, variable: str) -> bool:
        return variable in re.findall(r"\w+", self.times_of)


def rows(view: View) -> list[Row]:
    found = [
        Row(
            row["VARIABLE"],
            row["KIND"],
            row["BYTES_EACH"],
            row["TIMES"],
            row["TIMES_OF"] or "",
            row["WORST_CASE_BYTES"],
            row["VALUE"],
            row.get("WORST_SEEN_BYTES"),
        )
        for row in view.rows("memdiag_budget")
        if row["KIND"] != "total"
    ]
    return found or _estimated(view)


def _estimated(view: View) -> list[Row]:
    connections = view.variable("max_connections")
    result = []
    for names, kind, times_of in (
        (_SERVER, "buffer", "server"),
        (_GROWING, "growing", "server"),
        (_SESSION, "buffer", "max_connections"),
    ):
        for name in names:
            value = view.variable(name)
            if isinstance(value, int) and value:
                times = 1 if times_of == "server" else connections
                worst = value * times if isinstance(times, int) else None
                result.append(Row(name, kind, value, times, times_of, worst, value))
    own = sum(
        row["BYTES"] or 0
        for row in view.rows("memory")
        if row["EVENT_NAME"].startswith("memory/performance_schema/")
    )
    if own:
        result.append(
            Row("performance_schema", "buffer", own, 1, "server", own, None, own)
        )
    return result


def with_values(found: list[Row], values: Mapping[str, int]) -> list[Row]:
    """The rows after SET GLOBAL variable = value: its own bytes, and the number of times where it decides that."""
    result = []
    for row in found:
        each, times, value = row.each, row.times, row.value
        if row.variable in values:
            value = values[row.variable]
            # A size that is exactly the value becomes the new value. Measured sizes stay.
            if each is not None and row.value == row.each:
                each = value
        for name, number in values.items():
            if times is not None and row.depends_on(name):
                old = next((x.value for x in found if x.variable == name), None)
                times = (
                    number
                    if row.times_of == name
                    else (times * number // old if old else times)
                )
        worst = row.worst
        if (each, times) != (row.each, row.times):
            worst = None if each is None or times is None else each * times
        result.append(replace(row, each=each, times=times, value=value, worst=worst))
    return result


@dataclass(frozen=True)
class Sums:
    server_buffers: int
    session_buffers: int
    growing: int

    @property
    def at_once(self) -> int:
        return self.server_buffers + self.session_buffers


def sums(found: list[Row]) -> Sums:
    def add(kind: str, of_server: bool | None) -> int:
        return sum(
            row.worst or 0
            for row in found
            if row.kind == kind and (of_server is None or row.of_server == of_server)
        )

    return Sums(add("buffer", True), add("buffer", False), add("growing", None))
