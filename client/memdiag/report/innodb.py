"""InnoDB's own memory."""

from __future__ import annotations

from memdiag.model.document import Column, Note, Section, Table
from memdiag.model.view import View

_STATUS = (
    ("total_large_memory", "large memory", "bytes", "allocated by InnoDB for the buffer pool"),
    ("dictionary_memory", "dictionary", "bytes", "InnoDB's own dictionary cache"),
    ("lock_heaps", "lock heaps", "bytes", "heaps of transactions' locks, added up"),
    ("adaptive_hash_buffers", "adaptive hash index", "count", "pages of the buffer pool that it uses"),
    ("history_list_length", "history list", "count", "undo logs that wait for the purge"),
)


def section(view: View) -> Section:
    result = Section("innodb", "InnoDB", "Parts of InnoDB's memory whose size it knows.")
    rows = view.rows("memdiag_innodb")
    if rows:
        shown = sorted((row for row in rows if row["BYTES"] != 0), key=lambda row: -(row["BYTES"] or 0))
        names = ("COMPONENT", "BYTES", "LIMIT_BYTES", "ITEMS", "ITEM", "POOL", "PART_OF", "NOTE")
        result.blocks.append(
            Table(
                "innodb",
                "Parts",
                [
                    Column("COMPONENT", "part"),
                    Column("BYTES", "size", "bytes", "resident or not", bar=True),
                    Column("LIMIT_BYTES", "may grow to", "bytes", "unknown: no limit of its own"),
                    Column("ITEMS", "items", "count"),
                    Column("ITEM", "of"),
                    Column("POOL", "pool"),
                    Column("PART_OF", "part of"),
                    Column("NOTE", "note"),
                ],
                [
                    [
                        ""
                        if row[name] is None and name in ("ITEM", "POOL", "PART_OF", "LIMIT_BYTES", "ITEMS")
                        else row[name]
                        for name in names
                    ]
                    for row in shown
                ],
                "INFORMATION_SCHEMA.MEMDIAG_INNODB",
                folded=True,
            )
        )
    pages = [
        ("pages_total", "pages", "as configured"),
        ("pages_data", "pages with data", "read or written"),
        ("pages_dirty", "dirty pages", "to be written"),
        ("pages_free", "free pages", "never used, or freed"),
        ("pages_misc", "other pages", "locks and the adaptive hash index"),
    ]
    size = view.page_bytes
    known = [
        (title, value, value * size, what)
        for key, title, what in pages
        # pages_misc is a difference without a sign: below 0 it reads as the largest number.
        if (value := view.status(f"Innodb_buffer_pool_{key}")) is not None and value < 1 << 63
    ]
    if known:
        result.blocks.append(
            Table(
                "buffer-pool",
                "Buffer pool",
                [
                    Column("title", "part"),
                    Column("pages", "pages", "count"),
                    Column("bytes", "bytes", "bytes", bar=True),
                    Column("what", "what it is"),
                ],
                [list(row) for row in known],
                "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool%'",
            )
        )
    figures = {row["NAME"]: row["VALUE"] for row in view.rows("innodb_status")}
    if figures and not rows:
        result.blocks.append(
            Table(
                "innodb-status",
                "InnoDB's monitor",
                [
                    Column("title", "figure"),
                    Column("value", "bytes", "bytes"),
                    Column("count", "number", "count"),
                    Column("what", "what it is"),
                ],
                [
                    [title, figures[name] if unit == "bytes" else "", figures[name] if unit == "count" else "", what]
                    for name, title, unit, what in _STATUS
                    if name in figures
                ],
                "SHOW ENGINE INNODB STATUS",
            )
        )
    elif view.error("innodb_status"):
        result.blocks.append(Note(f"InnoDB's monitor: unknown, {view.error('innodb_status')}."))
    return result
