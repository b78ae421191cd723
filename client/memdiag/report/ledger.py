"""Every resident byte once: parts that add up to RSS."""

from __future__ import annotations

from memdiag.judge.unexplained import bytes_unexplained, file_backed, not_readable
from memdiag.model.document import Column, Fact, Note, Part, Parts, Section, Table
from memdiag.model.units import MIB, size
from memdiag.model.view import View

# Pools with their own part; the others are added up.
MOST_POOLS = 6


def section(view: View) -> Section:
    if view.ours and view.rows("memdiag_ledger"):
        return Section(
            "ledger",
            "Where is every resident byte?",
            "Each byte of RSS is in one part, so the parts add up to it.",
            [_bar(view), _table(view)],
        )
    unknown = f"Its ledger is unknown: {view.error('memdiag_ledger')}." if view.ours else "This server does not know."
    return Section(
        "ledger",
        "Where is every resident byte?",
        f"{unknown} The parts are what its counters and the kernel tell; the rest is the last part, so that the sum is"
        " RSS.",
        _stock(view),
    )


def _bar(view: View) -> Parts:
    rows = view.rows("memdiag_ledger")
    source = view.error("memdiag_ledger")

    def of(*components: str) -> int:
        return sum(row["RESIDENT_BYTES"] or 0 for row in rows if row["COMPONENT"] in components)

    pools = view.pool_states()
    live = sorted(((states.get("live") or 0, name) for name, states in pools.items()), reverse=True)
    parts = [Part("buffer pool", of("buffer_pool"), "buffer-pool", "InnoDB's cached pages")]
    parts += [
        Part(f"pool {name}, live", held, f"live-{number}", "blocks in use; see the section of pools")
        for number, (held, name) in enumerate(live[:MOST_POOLS])
    ]
    parts.append(Part("other pools, live", sum(held for held, _ in live[MOST_POOLS:]), "live-other", "blocks in use"))

    def state(*names: str) -> int:
        return sum(states.get(name) or 0 for states in pools.values() for name in names)

    parts += [
        Part("fragmentation", state("fragmentation"), "fragmentation", "free parts of pages that also hold something"),
        Part("unused pages", state("dirty", "muzzy"), "unused", "hold nothing; memdiag_purge('all') gives them back"),
        Part("allocator's metadata", state("metadata"), "metadata", "its bookkeeping"),
        Part(
            "thread stacks and regions",
            of("region"),
            "stacks",
            "memory that the server takes from the OS without the allocator",
        ),
        Part(
            "program and libraries",
            of("program", "libraries", "files"),
            "files",
            "code, constants and data of files; shared with other processes of the same program",
        ),
        Part("other", of("anonymous", "heap"), "other", "memory of the C library and of others"),
    ]
    if any(row["RESIDENT_BYTES"] is None for row in rows):
        known = sum(part.value or 0 for part in parts)
        rest = None if view.rss is None else view.rss - known
        what = "the rest, with what the server could not read"
    else:
        rest = of("unexplained")
        what = "the rest; negative if memory was released during the count"
    parts.append(Part("unexplained", rest, "unexplained", what))
    return Parts(
        "ledger",
        "RSS by its use",
        parts,
        view.rss,
        "RSS",
        "INFORMATION_SCHEMA.MEMDIAG_LEDGER",
        f"A part could not be read: {source}" if source else "",
    )


def _table(view: View) -> Table:
    rows = sorted(
        (row for row in view.rows("memdiag_ledger") if row["RESIDENT_BYTES"] or row["RESIDENT_BYTES"] is None),
        key=lambda row: -(row["RESIDENT_BYTES"] or 0),
    )
    return Table(
        "ledger-rows",
        "All rows of the ledger",
        [
            Column("COMPONENT", "component"),
            Column("NAME", "name", "", "the pool or the region"),
            Column(
                "STATE",
                "state",
                "",
                "live: in use; dirty and muzzy: unused pages; fragmentation: free parts of pages in use",
            ),
            Column("RESIDENT_BYTES", "resident", "bytes", "physical memory", bar=True),
            Column("PERCENT", "of RSS", "%"),
        ],
        [
            [row["COMPONENT"], row["NAME"] or "", row["STATE"] or "", row["RESIDENT_BYTES"], row["PERCENT"]]
            for row in rows
        ],
        "INFORMATION_SCHEMA.MEMDIAG_LEDGER",
        "Rows of 0 bytes are left out.",
        folded=True,
    )


# --- stock ---------------------------------------------------------------------------

AREAS = (
    ("memory/performance_schema/", "Performance Schema itself"),
    ("memory/innodb/", "InnoDB besides the buffer pool"),
    ("memory/sql/", "SQL layer: sessions, tables, dictionary"),
    ("memory/temptable/", "temporary tables"),
    ("memory/memory/", "MEMORY tables"),
    ("memory/mysys/", "mysys"),
    ("", "other instruments"),
)


def counted_by_area(view: View) -> dict[str, int]:
    found = {label: 0 for _, label in AREAS}
    for row in view.rows("memory"):
        name = row["EVENT_NAME"]
        if name.startswith("memory/innodb/buf_buf_pool"):
            continue
        label = next(label for begin, label in AREAS if name.startswith(begin))
        found[label] += row["BYTES"] or 0
    return found


def _stock(view: View) -> list:
    rss = view.rss
    if rss is None:
        return [
            Note(f"RSS is unknown: {view.error('process')}. What Performance Schema counts is in the next section.")
        ]
    blocks: list = []
    parts = [
        Part(
            "buffer pool",
            view.pool_in_rss,
            "buffer-pool",
            "pages that hold something; free pages that were used once are resident, too, and are in the last part"
            + ("; RSS has none of its huge pages" if view.huge_pages else ""),
        ),
        Part(
            "program, libraries, shared memory",
            file_backed(view),
            "files",
            "RssFile and RssShmem of /proc/<pid>/status",
        ),
    ]
    areas = counted_by_area(view)
    if view.rows("memory"):
        parts += [
            Part(label, held, f"live-{number}", f"counted by instruments {begin}*, resident or not")
            for number, (begin, label) in enumerate(AREAS)
            if (held := areas[label])
        ]
    else:
        blocks.append(
            Note(
                f"Nothing is known of the memory besides the buffer pool: {view.error('memory') or 'no instrument counts'}."
            )
        )
    parts.append(
        Part(
            "in neither",
            bytes_unexplained(view),
            "unexplained",
            "memory that is not counted, that the allocator keeps, or that leaks; negative if counted memory was never"
            " written"
            if not not_readable(view)
            else "everything besides the buffer pool: this account may not read what Performance Schema counts",
        )
    )
    blocks.insert(
        0,
        Parts(
            "ledger",
            "RSS by its use, as far as it is known",
            parts,
            rss,
            "RSS",
            f"VmRSS, RssFile and RssShmem of {view.copied('process', '/proc/<pid>/status')}; SHOW GLOBAL STATUS; "
            + view.origin("memory"),
        ),
    )
    if view.allocated:
        blocks.append(
            Fact(
                "allocated by MariaDB",
                view.allocated,
                "bytes",
                "its own count, resident or not, with caches that were never used; besides InnoDB's buffer pool",
                "SHOW GLOBAL STATUS: Memory_used",
            )
        )
    rest = bytes_unexplained(view)
    if rest is not None and rest < -16 * MIB:
        blocks.append(
            Note(
                f"The counters say {size(-rest)} more than is resident: counted memory that was never written takes no RSS."
            )
        )
    elif rest is not None and rest > 0 and not not_readable(view):
        blocks.append(
            Note(
                f"{size(rest)} are in neither buffer pool nor Performance Schema. After a start a fifth of RSS is usual:"
                " stacks, headers and gaps of blocks, libraries' memory."
            )
        )
    if not view.ours:
        blocks.append(
            Note(
                "Only the server with memdiag knows more here: MEMDIAG_LEDGER has every resident byte once, each"
                " subsystem's unused pages apart from live ones, and memdiag_purge() gives them back without gdb or a"
                " restart."
            )
        )
    return blocks
