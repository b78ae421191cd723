"""Holders that have much more than their usual share."""

from __future__ import annotations

from memdiag.judge.holders import HOLDERS, TRIGGERS, Holder, are_triggers, bytes_of, statements_of
from memdiag.judge.thresholds import WORTH_BYTES, severity
from memdiag.model.document import Finding
from memdiag.model.units import count, percent, share, shown, size
from memdiag.model.view import Row, View

# The remedy for a session that is a thread of the server.
KEPT = (
    "do not KILL this session: it is a thread of replication or of the server, and has the memory until its transaction"
    " or statement ends"
)


def findings(view: View) -> list[Finding]:
    outside = view.outside
    result = []
    for declared in HOLDERS:
        holder = TRIGGERS if declared.name == "stored programs" and are_triggers(view) else declared
        held = bytes_of(view, holder)
        # If RSS is not known (another machine), the size alone decides.
        unusual = outside is None or held * 100 > outside * holder.usual_percent
        if held >= WORTH_BYTES and unusual:
            result.append(_finding(view, holder, held))
    return sorted(result, key=lambda one: one.rank)


def _finding(view: View, holder: Holder, held: int) -> Finding:
    part = percent(share(held, view.outside)) if view.outside else None
    of = f", {part} of the memory besides the buffer pool" if part else ""
    found = Finding(
        severity=severity(view, held),
        holder=holder.name,
        verdict="session" if holder.of_sessions else "cache",
        headline=f"{holder.name[0].upper()}{holder.name[1:]} {holder.verb} {size(held)}{of}",
        evidence=f"{holder.what[0].upper()}{holder.what[1:]}. {_instruments(view, holder)}".strip(),
        remedy=holder.remedy,
        statements=statements_of(view, holder),
        bytes=held,
        source=_source(view, holder),
    )
    if holder.name in ("network buffers",):
        found.statements = idle_statements(view)
    if holder.name == "MEMORY tables":
        _name_tables(view, found)
    if holder.of_sessions:
        _name_session(view, holder, held, found)
    return found


def _source(view: View, holder: Holder) -> str:
    if view.ours and holder.pools:
        return "INFORMATION_SCHEMA.MEMDIAG_LEDGER"
    if view.ours:
        return "INFORMATION_SCHEMA.MEMDIAG_INSTRUMENTS, LIVE_BYTES"
    if holder.name == "transactions and locks":
        return "INFORMATION_SCHEMA.INNODB_TRX"
    return "performance_schema.memory_summary_global_by_event_name"


def _instruments(view: View, holder: Holder) -> str:
    found = sorted(
        (
            (value, name)
            for name, value in view.instruments.items()
            if name.startswith(holder.parts) and value >= 1 << 20
        ),
        reverse=True,
    )[:3]
    return "; ".join(f"{name} has {size(value)}" for value, name in found)


def _name_tables(view: View, found: Finding) -> None:
    # A name with a line's end or the like would break the statement where it is shown.
    tables = [
        row
        for row in view.rows("memory_tables")
        if row["BYTES"] and f"{row['TABLE_SCHEMA']}{row['TABLE_NAME']}".isprintable()
    ]
    if not tables:
        found.statements = [
            "SELECT TABLE_SCHEMA, TABLE_NAME, DATA_LENGTH FROM information_schema.TABLES WHERE ENGINE = 'MEMORY' ORDER BY 3 DESC"
        ]
        return
    found.evidence += "; the largest: " + ", ".join(
        f"{row['TABLE_SCHEMA']}.{row['TABLE_NAME']} with {size(row['BYTES'])}" for row in tables[:3]
    )
    found.statements = [
        f"ALTER TABLE {_quoted(row['TABLE_SCHEMA'])}.{_quoted(row['TABLE_NAME'])} ENGINE = InnoDB"
        for row in tables[:3]
        if row["BYTES"] * 4 >= tables[0]["BYTES"]
    ]
    if view.rows("system_threads"):
        found.remedy += "; on a replica, do it at its source"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _name_session(view: View, holder: Holder, held: int, found: Finding) -> None:
    """One session that has most of it is the cause."""
    session, words = _cause(view, holder, held)
    if session is None:
        return
    number = session["PROCESSLIST_ID"]
    found.headline += f"; session {number} has most of it"
    found.evidence += f"; {words}"
    if not view.may_end(number):
        found.remedy = f"{KEPT}; {holder.remedy}"
        return
    found.statements = [f"KILL {number}"]
    rolled = rollback_words(view, number)
    found.remedy = f"end session {number}, which frees it{rolled}; {holder.remedy}"


def _cause(view: View, holder: Holder, held: int) -> tuple[Row | None, str]:
    if holder.name == "prepared statements":
        rows = view.rows("prepared")
        all_of_them = view.status("Prepared_stmt_count") or sum(row["STATEMENTS"] for row in rows)
        if rows and rows[0]["STATEMENTS"] * 2 >= all_of_them:
            first = rows[0]
            words = f"session {first['PROCESSLIST_ID']} of {shown(first['USER'])} has {count(first['STATEMENTS'])} of {count(all_of_them)}"
            return first, words
        return None, ""
    if holder.name in ("transactions and locks", "binary log caches"):
        rows = view.rows("transactions")
        key = "LOCK_BYTES" if holder.name == "transactions and locks" else "ROWS_MODIFIED"
        rows = sorted(rows, key=lambda row: -(row[key] or 0))
        everything = sum(row[key] or 0 for row in rows)
        if rows and everything and (rows[0][key] or 0) * 2 >= everything:
            first = rows[0]
            words = (
                f"session {first['PROCESSLIST_ID']} has locks on {count(first['ROWS_LOCKED'])} rows and has changed"
                f" {count(first['ROWS_MODIFIED'])}, for {count(first['SECONDS'])} s"
            )
            return first, words
        return None, ""
    # The session may hold much else. KILL is the remedy only for its part of this holder.
    parts = [row for row in view.rows("largest_session") if row["EVENT_NAME"].startswith(holder.parts)]
    own = still_there(view, parts)
    threads = view.rows("threads")
    if threads and parts and own * 2 >= held:
        first = threads[0]
        words = f"session {first['PROCESSLIST_ID']} of {shown(first['USER'])} has {size(own)} of it"
        return first, words
    return None, ""


def still_there(view: View, parts: list[Row]) -> int:
    """Bytes of a session's instruments. Performance Schema does not subtract from a session what another session freed.
    No session holds more of an instrument than there is of it."""
    everywhere = {row["EVENT_NAME"]: row["BYTES"] for row in view.rows("memory")}
    return sum(min(row["BYTES"], max(0, everywhere.get(row["EVENT_NAME"], row["BYTES"]))) for row in parts)


def rollback_words(view: View, session: int) -> str:
    for row in view.rows("transactions"):
        if row["PROCESSLIST_ID"] == session and row["ROWS_MODIFIED"]:
            return f" and rolls back {count(row['ROWS_MODIFIED'])} rows"
    return ""


def idle_statements(view: View) -> list[str]:
    """Lists the KILL statements of sessions that sleep, with the longest time that still names half of them."""
    row = view.row("sessions")
    seconds = next(
        (
            limit
            for limit in (3600, 600, 60)
            if (row.get(f"SLEEPING_{limit}") or 0) * 2 >= (row.get("SLEEPING") or 0) > 0
        ),
        0,
    )
    table = "information_schema.PROCESSLIST" if view.flavour == "mariadb" else "performance_schema.processlist"
    if "information_schema.PROCESSLIST" in view.data["sources"].get("sessions", {}).get("source", ""):
        table = "information_schema.PROCESSLIST"
    return [
        f"SELECT CONCAT('KILL ', ID, ';') AS STATEMENT FROM {table}"
        f" WHERE COMMAND = 'Sleep' AND TIME >= {seconds} AND ID <> CONNECTION_ID() ORDER BY TIME DESC"
    ]
