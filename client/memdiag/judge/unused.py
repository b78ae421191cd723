"""Our server: pages that hold nothing, and pages that hold little."""

from __future__ import annotations

from memdiag.judge.holders import FLUSH_WAITS
from memdiag.judge.thresholds import WORTH_BYTES
from memdiag.model.document import Finding
from memdiag.model.units import percent, share, size
from memdiag.model.view import View

MOST_OF_IT = 0.6
FREE_PART = 0.25


def findings(view: View) -> list[Finding]:
    if not view.ours:
        return []
    return [*_unused(view), *_fragmented(view)]


def _unused(view: View) -> list[Finding]:
    pools = {
        name: (states.get("dirty") or 0) + (states.get("muzzy") or 0) for name, states in view.pool_states().items()
    }
    held, rss = sum(pools.values()), view.rss or 0
    if held < WORTH_BYTES or held * 10 < rss:
        return []
    largest = max(pools, key=lambda name: pools[name])
    one = pools[largest] >= held * MOST_OF_IT
    purged = largest if one else "all"
    return [
        Finding(
            severity="warning" if held * 4 >= rss else "note",
            holder="unused pages",
            verdict="cache",
            headline=f"{size(held)} of RSS are unused pages, {percent(share(held, rss))} of it",
            evidence=f"Pool {largest} has {size(pools[largest])} of them. They hold nothing and wait for reuse.",
            remedy="give them back now; it costs page faults if they are needed again",
            statements=[f"SELECT memdiag_purge('{purged}')"],
            bytes=held,
            source="INFORMATION_SCHEMA.MEMDIAG_LEDGER, states dirty and muzzy",
        )
    ]


def _fragmented(view: View) -> list[Finding]:
    result = []
    for pool, states in view.pool_states().items():
        free, live = states.get("fragmentation") or 0, states.get("live") or 0
        if free < WORTH_BYTES or free < (free + live) * FREE_PART:
            continue
        remedy, statements = _remedy(view, pool)
        result.append(
            Finding(
                severity="warning",
                holder=f"fragmentation of pool {pool}",
                verdict="fragmentation",
                headline=f"{size(free)} of pool {pool} are free parts of pages that also hold something",
                evidence=f"{percent(share(free, free + live))} of the pages in use are free."
                " No purge releases them while a block lives on the page.",
                remedy=remedy,
                statements=statements,
                bytes=free,
                source="INFORMATION_SCHEMA.MEMDIAG_LEDGER, state fragmentation",
            )
        )
    return result


def _remedy(view: View, pool: str) -> tuple[str, list[str]]:
    if pool in ("table_cache", "dictionary"):
        return f"close what keeps the pages; {FLUSH_WAITS}", ["FLUSH LOCAL TABLES"]
    prepared, threads = (
        [row for row in view.rows(name) if view.may_end(row["PROCESSLIST_ID"])] for name in ("prepared", "threads")
    )
    if pool == "session" and prepared:
        first = prepared[0]["PROCESSLIST_ID"]
    elif pool in ("session", "connection", "statement", "temp_table") and threads:
        first = threads[0]["PROCESSLIST_ID"]
    else:
        return (
            "the blocks that keep the pages live as long as their owner; MEMDIAG_BINS shows which sizes",
            [
                f"SELECT SIZE, WASTE_BYTES FROM information_schema.MEMDIAG_BINS WHERE POOL = '{pool}' ORDER BY 2 DESC LIMIT 5"
            ],
        )
    return f"end the session that keeps the pages: {first} has most", [f"KILL {first}"]
