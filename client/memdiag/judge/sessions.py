"""Servers without memdiag: many sessions, or one that holds much."""

from __future__ import annotations

from memdiag.collect.queries import IS_KEPT, TIMED_IDLE, WATCHERS
from memdiag.judge.ending import propose, still_there
from memdiag.judge.holders import bytes_by_holder, holder_of
from memdiag.judge.thresholds import WORTH_BYTES, severity, whole_of
from memdiag.model.document import Finding
from memdiag.model.units import count, shown, size
from memdiag.model.view import Row, View

# Below, a connection pool may want them.
MANY_SESSIONS = 200
# Part of the connected sessions. More of them at work are a load, not a storm.
IDLE_PART = 0.5
# Sessions that sleep for less are between two statements.
IDLE_SECONDS = (3600, 600, 60)


def findings(view: View) -> list[Finding]:
    return [*_largest(view), *_storm(view)]


def _largest(view: View) -> list[Finding]:
    first, parts = view.row("threads"), view.rows("largest_session")
    if not first or not first["BYTES"]:
        return []
    session = first["PROCESSLIST_ID"]
    held = first["BYTES"] - sum(row["BYTES"] or 0 for row in parts) + still_there(view, parts)
    # The server keeps what the session brought into caches when it ends, and open tables may keep what it computed.
    held -= still_there(view, [row for row in parts if _of_the_server(row)])
    whole = whole_of(view, sum(bytes_by_holder(view).values()))
    if held < WORTH_BYTES or (whole.bytes and held * 10 < whole.bytes):
        return []
    names = "; ".join(f"{size(row['BYTES'])} are {row['EVENT_NAME']}" for row in parts[:3])
    found = Finding(
        severity=severity(whole, held),
        holder=_holder_of(parts) or f"session {session}",
        verdict="session",
        headline=f"Session {session} of {shown(first['USER'])}: {size(held)} allocated",
        evidence=f"It is in state {first['COMMAND']} for {count(first['SECONDS'])} s. {names}",
        remedy="let its application free what it no longer needs",
        bytes=held,
        source=view.origin("threads"),
    )
    propose(view, first, found)
    return [found]


def _of_the_server(row: Row) -> bool:
    holder = holder_of(row["EVENT_NAME"])
    return holder is not None and (not holder.of_sessions or holder.of_expressions)


def _holder_of(parts: list[Row]) -> str:
    for row in parts[:1]:
        if holder := holder_of(row["EVENT_NAME"]):
            return holder.name
    return ""


def _storm(view: View) -> list[Finding]:
    row = view.row("sessions")
    sessions, sleeping = row.get("SESSIONS") or 0, row.get("SLEEPING") or 0
    if sessions < MANY_SESSIONS or sleeping < sessions * IDLE_PART:
        return []
    held = memory_of_sessions(view)
    statement = idle_statement(view)
    remedy = "let wait_timeout end idle ones: SET GLOBAL wait_timeout = 600 is for those that connect from then on; bound what the application opens"
    if statement:
        remedy = "end those that are idle for long: each row is a statement; " + remedy
    return [
        Finding(
            severity="warning" if (held or 0) >= WORTH_BYTES else "note",
            holder="sessions",
            verdict="session",
            headline=f"{count(sessions)} sessions are connected, {count(sleeping)} of them idle"
            + ("" if held is None else f", and have {size(held)} allocated"),
            evidence=_evidence(view, sessions, held),
            remedy=remedy,
            statements=[statement] if statement else [],
            check=""
            if statement
            else f"SELECT USER, HOST, COUNT(*) FROM {_list_of(view)} GROUP BY USER, HOST ORDER BY COUNT(*) DESC shows who"
            " opens them",
            bytes=held,
            source=f"{view.origin('sessions')}; {view.origin('session_bytes')}",
        )
    ]


def memory_of_sessions(view: View) -> int | None:
    """What all sessions have allocated together; None: not known."""
    held = view.row("session_bytes").get("SESSION_BYTES")
    if held is None or held <= 0:
        return None
    if view.counted is None or view.flavour == "mariadb":  # which counts without Performance Schema
        return int(held)
    # Performance Schema does not subtract from a session what another session freed.
    return int(min(held, view.counted))


def _evidence(view: View, sessions: int, held: int | None) -> str:
    if held is not None:
        words = f"That is {size(held / sessions)} for each session"
    elif largest := sum(row["BYTES"] or 0 for row in view.rows("threads")):
        listed = len(view.rows("threads"))
        words = f"The {count(listed)} with most have {size(largest)} allocated; what all have is not known"
    else:
        return "What they have allocated is not known."
    return words + "; stacks and the C library's memory come on top."


def idle_statement(view: View) -> str:
    """Lists the KILL statements of sessions that sleep, with the longest time that still names half of the bytes; "": none
    does. A session in a transaction is none of them, nor one that keeps locks, as a backup does, or watches the server."""
    row = view.row("session_bytes")
    everything = memory_of_sessions(view)
    if everything is None or view.error("table_keepers") is not None:  # locks are not counted
        return ""
    for seconds in IDLE_SECONDS:
        if (row.get(f"IDLE_{seconds}_BYTES") or 0) * 2 >= everything:
            # MySQL's TIME begins where SET TIMESTAMP says, as mysqlbinlog does before each transaction.
            timed = "" if view.flavour == "mariadb" else f" AND {' '.join(TIMED_IDLE.format(seconds=seconds).split())}"
            return (
                f"SELECT CONCAT('KILL ', ID) AS RUN FROM {_list_of(view)} WHERE COMMAND = 'Sleep' AND TIME >= {seconds}"
                f"{timed} AND NOT ({' '.join(IS_KEPT.split())})"
                " AND ID NOT IN (SELECT TRX_MYSQL_THREAD_ID FROM information_schema.INNODB_TRX)"
                " AND ID NOT IN (SELECT PROCESSLIST_ID FROM performance_schema.metadata_locks JOIN"
                " performance_schema.threads ON THREAD_ID = OWNER_THREAD_ID WHERE PROCESSLIST_ID IS NOT NULL)"
                f" AND ID NOT IN ({' '.join(WATCHERS.split())}) ORDER BY TIME DESC"
            )
    return ""


def _list_of(view: View) -> str:
    asked = view.data["sources"].get("sessions", {}).get("source", "")
    if view.flavour == "mariadb" or "information_schema.PROCESSLIST" in asked:
        return "information_schema.PROCESSLIST"
    return "performance_schema.processlist"
