"""The holders: sessions, users, statement digests, survivors."""

from __future__ import annotations

from memdiag.model.document import Column, Note, Section, Table
from memdiag.model.view import View

MOST = 20


def section(view: View) -> Section:
    result = Section(
        "who", "Sessions, users, statements", "Memory of those who are connected, and of the statements that took most."
    )
    result.blocks += _sessions(view)
    result.blocks += _users(view)
    result.blocks += _digests(view)
    result.blocks += _transactions(view)
    result.blocks += _survivors(view)
    return result


def _sessions(view: View) -> list:
    blocks: list = []
    rows = view.rows("threads")[:MOST]
    if rows:
        blocks.append(
            Table.of(
                "sessions",
                "Sessions with most memory",
                [
                    Column("PROCESSLIST_ID", "session", "", "CONNECTION_ID(), for KILL"),
                    Column("USER", "user"),
                    Column("HOST", "host"),
                    Column("COMMAND", "command"),
                    Column("SECONDS", "for", "s", "time in this state"),
                    Column("BYTES", "allocated", "bytes", "now, resident or not", bar=True),
                    Column("HIGH_BYTES", "most allocated", "bytes", "since it connected"),
                ],
                rows,
                view.origin("threads"),
            )
        )
    else:
        blocks.append(Note(f"Memory of sessions: unknown, {_reason(view, 'threads')}."))
    if view.rows("memdiag_sessions"):
        blocks.append(_by_pool(view))
    elif view.ours:
        blocks.append(
            Note(
                "Sessions by pool are not counted. SET GLOBAL memdiag_sessions = ON starts it, for some nanoseconds a block."
            )
        )
    return blocks


def _reason(view: View, source: str) -> str:
    return view.error(source) or "nothing is counted"


def _by_pool(view: View) -> Table:
    sums: dict[tuple, dict[str, int]] = {}
    for row in view.rows("memdiag_sessions"):
        key = (row["HOLDER"], row["PROCESSLIST_ID"], row["USER"], row["DIGEST"])
        pools = sums.setdefault(key, {})
        pools[row["POOL"]] = pools.get(row["POOL"], 0) + (row["BYTES"] or 0)
    rows = []
    for key, pools in sums.items():
        most = max(pools, key=lambda name: pools[name])
        rows.append([*key, sum(pools.values()), most, pools[most]])
    rows.sort(key=lambda row: -row[4])
    return Table(
        "sessions-by-pool",
        "Sessions by what they took from pools",
        [
            Column("HOLDER", "holder", "", "ended: memory that sessions left behind"),
            Column("PROCESSLIST_ID", "session"),
            Column("USER", "user"),
            Column("DIGEST", "running digest"),
            Column("BYTES", "allocated", "bytes", "less what it freed", bar=True),
            Column("POOL", "most in pool"),
            Column("IN_POOL", "allocated there", "bytes"),
        ],
        rows[:MOST],
        "INFORMATION_SCHEMA.MEMDIAG_SESSIONS",
        "unknown: not of a session, or no statement runs.",
    )


def _users(view: View) -> list:
    rows = [row for row in view.rows("users") if row["BYTES"]]
    if not rows:
        return [Note(f"Memory of users: unknown, {_reason(view, 'users')}.")]
    return [
        Table(
            "users",
            "Users",
            [
                Column("USER", "user", "", "background: threads without a user"),
                Column(
                    "BYTES",
                    "allocated",
                    "bytes",
                    "less freed, by all of the user's threads; it can be negative",
                    bar=True,
                ),
            ],
            [[row["USER"] or "background", row["BYTES"]] for row in rows],
            view.origin("users"),
            folded=True,
        )
    ]


def _digests(view: View) -> list:
    ours = sorted(view.rows("memdiag_digests"), key=lambda row: -(row["PEAK_BYTES"] or 0))
    texts = {row["DIGEST"]: row for row in view.rows("digest_texts")}
    if ours:
        rows = [
            [
                texts.get(row["DIGEST"], {}).get("DIGEST_TEXT") or row["DIGEST"] or "all others",
                row["STATEMENTS"],
                row["PEAK_BYTES"],
                row["ACCUMULATED_BYTES"],
                row["LAST_SEEN"],
            ]
            for row in ours[:MOST]
        ]
        source = "INFORMATION_SCHEMA.MEMDIAG_DIGESTS"
    elif view.rows("digests"):
        rows = [
            [row["DIGEST_TEXT"] or row["DIGEST"], row["STATEMENTS"], row["PEAK_BYTES"], row["ACCUMULATED_BYTES"], None]
            for row in view.rows("digests")[:MOST]
        ]
        source = view.origin("digests")
    else:
        return [Note(f"Memory of statements: unknown, {_reason(view, 'digests')}.")]
    columns = [
        Column("DIGEST", "statement", "", "its digest: values are left out"),
        Column("STATEMENTS", "times", "count"),
        Column("PEAK_BYTES", "peak allocated", "bytes", "most that one had at a time", bar=True),
        Column("ACCUMULATED_BYTES", "allocated in all", "bytes"),
        Column("LAST_SEEN", "last seen", "time"),
    ]
    # A column that this server cannot fill would only say `unknown`.
    kept = [number for number in range(len(columns)) if any(row[number] is not None for row in rows)]
    return [
        Table(
            "digests",
            "Statements with most memory",
            [columns[number] for number in kept],
            [[row[number] for number in kept] for row in rows],
            source,
            folded=True,
        )
    ]


def _transactions(view: View) -> list:
    rows = view.rows("transactions")
    if not rows:
        if view.error("transactions"):
            return [Note(f"Open transactions: unknown, {view.error('transactions')}.")]
        return []
    return [
        Table.of(
            "transactions",
            "Open transactions",
            [
                Column("TRX_ID", "transaction"),
                Column("PROCESSLIST_ID", "session"),
                Column("LOCK_BYTES", "locks", "bytes", "memory of its locks", bar=True),
                Column("ROWS_LOCKED", "rows locked", "count"),
                Column("ROWS_MODIFIED", "rows changed", "count"),
                Column("SECONDS", "open for", "s"),
            ],
            rows,
            "INFORMATION_SCHEMA.INNODB_TRX",
            folded=True,
        )
    ]


def _survivors(view: View) -> list:
    rows = sorted(view.rows("memdiag_survivors"), key=lambda row: -row["BYTES"])
    if not rows:
        if view.ours and str(view.variable("memdiag_scope_survivors")).upper() == "OFF":
            return [
                Note("What statements leave behind is not counted. SET GLOBAL memdiag_scope_survivors = ON starts it.")
            ]
        return []
    return [
        Table.of(
            "survivors",
            "Memory that outlived its statement, transaction or session",
            [
                Column("ROUTE", "route"),
                Column("POOL", "pool"),
                Column("SCOPE", "outlived its"),
                Column("BYTES", "still allocated", "bytes", bar=True),
                Column("BLOCKS", "blocks", "count"),
                Column("SINCE", "since", "time"),
            ],
            rows[:MOST],
            "INFORMATION_SCHEMA.MEMDIAG_SURVIVORS",
        )
    ]
