"""The most that a configuration may take, as rows of one form for every server, and with other values of variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from memdiag.model.view import View
from memdiag.problem import Problem

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
# A variable that is part of TIMES_OF.
COUNT = "max_connections"
# The server adds a control block for each page; a session may have two packets.
_IN_PROPORTION = ("innodb_buffer_pool_size", "max_allowed_packet")
_UNLIMITED_IF_0 = ("range_optimizer_max_mem_size",)
# A row of these kinds is in no sum, for this reason.
NO_SUM = {
    "part": "it is counted with another variable",
    "limit": "it takes nothing itself",
    "unbounded": "the variable does not bound that memory",
    "unused": "this version does not read it",
}
_GROWING = ("temptable_max_ram", "innodb_ft_total_cache_size")
# As data need it: a connection's buffer and the buffer of its result, as the server with memdiag counts them, and an
# internal temporary table, which the smaller of two variables bounds.
_PACKET = "max_allowed_packet"
_TEMPORARY = ("tmp_table_size", "max_heap_table_size")


@dataclass(frozen=True)
class Row:
    variable: str
    kind: str  # buffer: taken whole; growing: up to it, as data need it; other kinds take nothing
    each: int | None
    times: int | None
    times_of: str  # server, the value, or words with the variable that decides it
    worst: int | None
    value: int | None
    seen: int | None = None

    @property
    def of_server(self) -> bool:
        return self.times_of in ("server", "")

    def depends_on(self, variable: str) -> bool:
        return variable == COUNT and COUNT in self.times_of


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
    packet = view.variable(_PACKET)
    if isinstance(packet, int) and packet:
        times = connections if isinstance(connections, int) else None
        result.append(Row(_PACKET, "growing", 2 * packet, times, COUNT, times and 2 * packet * times, packet))
    result += _temporary_tables(view)
    own = sum(
        row["BYTES"] or 0 for row in view.rows("memory") if row["EVENT_NAME"].startswith("memory/performance_schema/")
    )
    if own:
        result.append(Row("performance_schema", "buffer", own, 1, "server", own, None, own))
    return result


def _temporary_tables(view: View) -> list[Row]:
    """One for each session. Where the engine is TempTable, all of them together are bounded by temptable_max_ram."""
    connections = view.variable(COUNT)
    result = []
    for name in _TEMPORARY:
        value = view.variable(name)
        if not isinstance(value, int) or not value:
            return []
        times = connections if isinstance(connections, int) else None
        result.append(Row(name, "growing", value, times, COUNT, times and value * times, value))
    of_memory = str(view.variable("internal_tmp_mem_storage_engine") or "MEMORY").upper() == "MEMORY"
    return _the_smaller_counts(result) if of_memory else [replace(row, kind="part") for row in result]


def _the_smaller_counts(found: list[Row]) -> list[Row]:
    """Of the estimated rows of internal temporary tables."""
    pair = [row for row in found if row.variable in _TEMPORARY and row.times_of == COUNT and row.each is not None]
    if len(pair) < len(_TEMPORARY):
        return found
    smaller = min(pair, key=lambda row: row.each or 0)
    return [row if row not in pair else replace(row, kind="growing" if row is smaller else "part") for row in found]


def with_values(view: View, found: list[Row], values: Mapping[str, int]) -> list[Row]:
    """The rows after SET GLOBAL variable = value: its own bytes, and the number of times where it decides that.

    @raises Problem if a row cannot be computed"""
    result = []
    for row in found:
        each, times = row.each, row.times
        if row.variable in values and row.times_of:
            each, times = _of_value(row, values[row.variable])
        if row.depends_on(COUNT) and COUNT in values:
            old = view.variable(COUNT)
            if times is None or not isinstance(old, int) or not old:
                raise Problem(f"the server's {COUNT} is not known")
            times = times * values[COUNT] // old
        if (each, times) != (row.each, row.times):
            row = replace(row, each=each, times=times)
            row = replace(row, **_sum(row))
        result.append(replace(row, value=values.get(row.variable, row.value)))
    of_memory = any(row.variable in _TEMPORARY and row.kind == "growing" and row.times_of == COUNT for row in found)
    return _the_smaller_counts(result) if of_memory else result


def _of_value(row: Row, value: int) -> tuple[int | None, int | None]:
    """BYTES_EACH and TIMES with another value of the row's own variable."""
    if row.each is not None and row.times_of == "the value":
        return row.each, value
    if row.value == row.each:
        return value, row.times
    if row.each is not None and row.value and row.variable in _IN_PROPORTION:
        return row.each * value // row.value, row.times
    raise Problem(f"the bytes of {row.variable} are measured; they cannot be computed for another value")


def _sum(row: Row) -> dict[str, Any]:
    """Kind and worst case. The server has the same rule: is_unlimited() in plugin/memdiag/budget/budget.cc."""
    if row.each is None or row.times is None:
        return {"worst": None}
    if row.each >= 1 << 47 or (row.each == 0 and row.variable in _UNLIMITED_IF_0):
        return {"kind": "unbounded", "worst": None}
    kind = "growing" if row.kind == "unbounded" else row.kind
    return {"kind": kind, "worst": row.each * row.times}


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
            row.worst or 0 for row in found if row.kind == kind and (of_server is None or row.of_server == of_server)
        )

    return Sums(add("buffer", True), add("buffer", False), add("growing", None))


def huge_outside(view: View, found: list[Row], limit: int) -> int:
    """The part of the buffers that this limit does not count."""
    pool = next((row.worst for row in found if row.variable == "innodb_buffer_pool_size"), None)
    return view.huge_outside(limit, pool or 0)
