"""Pools of our server now and over time; on others holders. Instruments of both."""

from __future__ import annotations

from memdiag.judge.holders import BY_NAME, bytes_by_holder
from memdiag.judge.thresholds import whole_of
from memdiag.model.document import Column, Line, Note, Section, Series, Table
from memdiag.model.units import MIB
from memdiag.model.view import View, unused_of


def section(view: View) -> Section:
    if view.ours:
        result = Section("pools", "Pools", "A pool is the memory of one purpose, in arenas of its own.")
        if series := _series(view):
            result.blocks.append(series)
        if view.rows("memdiag_pools"):
            result.blocks.append(_pools(view))
        # No holders: only the server can divide what several have in one pool, and its advice names those with much.
        result.blocks.append(_instruments(view))
        if view.rows("memdiag_purges"):
            result.blocks.append(_purges(view))
        return result
    result = Section("pools", "Holders", "What Performance Schema counts, by purpose and by instrument.")
    if view.rows("memory"):
        result.blocks += [_holders(view), _instruments(view)]
    else:
        result.blocks.append(Note(f"Unknown: {view.error('memory') or 'no instrument counts'}."))
    return result


def _series(view: View) -> Series | None:
    rows = view.rows("memdiag_history_pools")
    if not rows:
        return None
    times = sorted({row["TIME"] for row in rows})
    place = {moment: number for number, moment in enumerate(times)}
    pools: dict[str, list[float | None]] = {}
    for row in rows:
        values = pools.setdefault(row["POOL"], [None] * len(times))
        values[place[row["TIME"]]] = row["LIVE_BYTES"]
    most = max((row["RSS_BYTES"] or 0 for row in view.rows("memdiag_history")), default=0)
    # More than ever was resident: most of it was never written, and the others would be a line at the bottom.
    unwritten = [
        name for name, values in pools.items() if most and max((value or 0 for value in values), default=0) > most
    ]
    for name in unwritten:
        del pools[name]
    largest = sorted(pools, key=lambda name: -max((value or 0 for value in pools[name]), default=0))
    return Series(
        "pools-over-time",
        "Live bytes of the largest pools",
        times,
        [
            Line(f"pool {name}", pools[name], stacked=False)
            for name in largest[:7]
            if any(value and value > MIB for value in pools[name])
        ],
        "INFORMATION_SCHEMA.MEMDIAG_HISTORY_POOLS",
        "Bytes that are allocated, with the blocks in caches. Pages that were never written count here and not in RSS."
        + (
            f" Left out, as it had more than RSS and never wrote most of it: {', '.join(unwritten)}."
            if unwritten
            else ""
        ),
    )


def _pools(view: View) -> Table:
    states = view.pool_states()
    rows = []
    for row in view.rows("memdiag_pools"):
        parts = states.get(row["POOL"], {})
        unused = unused_of(parts) if parts else None
        rows.append(
            [
                row["POOL"],
                parts.get("live"),
                parts.get("fragmentation"),
                unused,
                row["LIVE_BYTES"],
                row["PEAK_BYTES"],
                row["PEAK_TIME"],
                row["PURGES"],
                row["PURGED_BYTES"],
                row["PURPOSE"],
            ]
        )
    rows.sort(key=lambda row: -sum(value or 0 for value in row[1:4]))
    return Table(
        "pools",
        "Pools now",
        [
            Column("POOL", "pool"),
            Column("live", "live", "bytes", "resident part of what is in use", bar=True),
            Column("fragmentation", "fragmentation", "bytes", "free parts of pages in use", bar=True),
            Column("unused", "unused", "bytes", "pages that a purge gives back", bar=True),
            Column("LIVE_BYTES", "allocated", "bytes", "in use, resident or not"),
            Column("PEAK_BYTES", "peak allocated", "bytes", "since the start"),
            Column("PEAK_TIME", "peak at", "time"),
            Column("PURGES", "purges", "count"),
            Column("PURGED_BYTES", "purged", "bytes", "given back by purges so far"),
            Column("PURPOSE", "purpose"),
        ],
        rows,
        "INFORMATION_SCHEMA.MEMDIAG_POOLS, MEMDIAG_LEDGER",
        "unknown: malloc()'s pools keep no peak: connection, general, group_replication.",
    )


def _holders(view: View) -> Table:
    sums = bytes_by_holder(view)
    whole = whole_of(view, sum(sums.values()))
    rows = []
    for name, held in sums.items():
        holder = BY_NAME[name]
        if held:
            rows.append([name, held, whole.share(held), holder.usual_of_counted, holder.words.what])
    rows.sort(key=lambda row: -row[1])
    return Table(
        "holders",
        "Holders by purpose",
        [
            Column("holder", "holder"),
            Column("bytes", "allocated", "bytes", "as Performance Schema counts it", bar=True),
            Column("share", "share", "%", f"of {whole.words}"),
            Column("usual", "usual at most", "%", "a larger share, from 64 MiB on, is a finding"),
            Column("what", "what it is"),
        ],
        rows,
        view.origin("memory"),
        "Each instrument counts for one holder. Locks are those of INFORMATION_SCHEMA.INNODB_TRX.",
    )


def _instruments(view: View) -> Table:
    if view.ours and view.rows("memdiag_instruments"):
        rows = sorted(
            view.rows("memdiag_instruments"), key=lambda row: -(row["LIVE_BYTES"] or row["COUNTED_BYTES"] or 0)
        )[:30]
        return Table.of(
            "instruments",
            "The 30 largest instruments",
            [
                Column("EVENT_NAME", "instrument"),
                Column("POOL", "pool", "", "unknown: several"),
                Column("COUNTED_BYTES", "counted", "bytes", "by Performance Schema"),
                Column("LIVE_BYTES", "allocated", "bytes", "as the allocator counts it", bar=True),
                Column("RESIDENT_BYTES", "resident", "bytes", "an estimate"),
                Column("NOTE", "note"),
            ],
            rows,
            "INFORMATION_SCHEMA.MEMDIAG_INSTRUMENTS",
            folded=True,
        )
    rows = sorted(view.rows("memory"), key=lambda row: -(row["BYTES"] or 0))[:30]
    return Table.of(
        "instruments",
        "The 30 largest instruments",
        [
            Column("EVENT_NAME", "instrument"),
            Column("BYTES", "counted", "bytes", "now", bar=True),
            Column("HIGH_BYTES", "highest", "bytes", "since the server started"),
            Column("BLOCKS", "blocks", "count"),
        ],
        rows,
        view.origin("memory"),
        note="The buffer pool is counted whole, resident or not.",
        folded=True,
    )


def _purges(view: View) -> Table:
    rows = sorted(view.rows("memdiag_purges"), key=lambda row: -row["TIME"])[:20]
    return Table.of(
        "purges",
        "The last 20 purges",
        [
            Column("TIME", "time", "time"),
            Column("POOL", "pool"),
            Column(
                "REASON",
                "reason",
                "",
                "asked: memdiag_purge(); quiet: the pool fell quiet; excess: it needed few of its unused pages;"
                " dirty_limit: it had too many; pressure: memory was short",
            ),
            Column("RELEASED_BYTES", "released", "bytes", bar=True),
            Column("MICROSECONDS", "took", "µs"),
            Column("REFAULTED_BYTES", "taken again", "bytes", "within a second: the price of the purge"),
        ],
        rows,
        "INFORMATION_SCHEMA.MEMDIAG_PURGES",
        folded=True,
    )
