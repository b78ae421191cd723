"""The most that the configuration may take, against the limit."""

from __future__ import annotations

from memdiag.model.budget import huge_outside, rows, sums
from memdiag.model.document import Column, Fact, Note, Section, Table
from memdiag.model.units import size
from memdiag.model.view import View


def section(view: View) -> Section:
    result = Section(
        "budget",
        "What may it take at most?",
        "The worst case: max_connections sessions at once, each of which uses each of its buffers once.",
    )
    found = rows(view)
    if not found:
        result.blocks.append(Note(f"Unknown: {view.error('memdiag_budget') or view.error('variables')}."))
        return result
    source = "INFORMATION_SCHEMA.MEMDIAG_BUDGET" if view.rows("memdiag_budget") else "SHOW GLOBAL VARIABLES"
    added = sums(found)
    limit = view.lowest_limit
    result.blocks += [
        Fact("the server's buffers", added.server_buffers, "bytes", "taken whole, by the server", source),
        Fact(
            "buffers of all sessions",
            added.session_buffers,
            "bytes",
            "taken whole, if max_connections sessions use them at once",
            source,
        ),
        Fact("what data can make it", added.growing, "bytes", "limits of what grows as data need it", source),
        Fact(
            "the limit",
            limit.bytes if limit else None,
            "bytes",
            limit.what if limit else "no limit could be read",
            limit.source if limit else "/proc",
        ),
    ]
    outside = huge_outside(view, found, limit.bytes) if limit else 0
    if limit and added.at_once - outside > limit.bytes:
        besides = " besides huge pages" if outside else ""
        result.blocks.append(
            Note(
                f"Buffers alone may take {size(added.at_once - outside)}{besides}, more than {limit.what}. Nothing in the server prevents that."
            )
        )
    shown = sorted((row for row in found if row.kind in ("buffer", "growing")), key=lambda row: -(row.worst or 0))
    result.blocks.append(
        Table(
            "budget",
            "By variable",
            [
                Column("variable", "variable"),
                Column("kind", "kind", "", "buffer: taken whole; growing: as data need it"),
                Column("each", "each", "bytes"),
                Column("times", "times", "count"),
                Column("times_of", "because of"),
                Column("worst", "worst case", "bytes", bar=True),
                Column("seen", "seen at most", "bytes", "since the server started"),
            ],
            [[row.variable, row.kind, row.each, row.times, row.times_of, row.worst, row.seen] for row in shown],
            source,
            ""
            if view.rows("memdiag_budget")
            else "An estimate: this server has no MEMDIAG_BUDGET, which also knows what is part of what, and what was really taken.",
            folded=True,
        )
    )
    return result
