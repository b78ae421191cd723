"""Sessions: many of them, or one that holds much."""

from __future__ import annotations

from memdiag.judge.held import KEPT, idle_statements, rollback_words, still_there
from memdiag.judge.holders import HOLDERS
from memdiag.judge.thresholds import WORTH_BYTES, severity
from memdiag.model.document import Finding
from memdiag.model.units import count, shown, size
from memdiag.model.view import View

# Below, a connection pool may want them.
MANY_SESSIONS = 200
# Part of the connected sessions. More of them at work are a load, not a storm.
IDLE_PART = 0.5


def findings(view: View) -> list[Finding]:
    return [*_largest(view), *_storm(view)]


def _largest(view: View) -> list[Finding]:
    threads = view.rows("threads")
    if not threads or not threads[0]["BYTES"]:
        return []
    first = threads[0]
    parts = view.rows("largest_session")
    session = first["PROCESSLIST_ID"]
    gone = sum(row["BYTES"] for row in parts) - still_there(view, parts)
    held = first["BYTES"] - gone
    outside = view.outside
    if held < WORTH_BYTES or (outside and held * 10 < outside):
        return []
    names = "; ".join(f"{size(row['BYTES'])} are {row['EVENT_NAME']}" for row in parts[:3])
    return [
        Finding(
            severity=severity(view, held),
            holder=_holder_of(parts) or f"session {session}",
            verdict="session",
            headline=f"Session {session} of {shown(first['USER'])} holds {size(held)}",
            evidence=f"It is in state {first['COMMAND']} for {count(first['SECONDS'])} s. {names}",
            remedy=f"ending the session frees it{rollback_words(view, session)}; let its application free what it no longer needs"
            if view.may_end(session)
            else KEPT,
            statements=[f"KILL {session}"] if view.may_end(session) else [],
            bytes=held,
            source=view.origin("threads"),
        )
    ]


def _holder_of(parts: list[dict]) -> str:
    for row in parts[:1]:
        for holder in HOLDERS:
            if row["EVENT_NAME"].startswith(holder.parts):
                return holder.name
    return ""


def _storm(view: View) -> list[Finding]:
    row = view.row("sessions")
    sessions, sleeping = row.get("SESSIONS") or 0, row.get("SLEEPING") or 0
    if sessions < MANY_SESSIONS or sleeping < sessions * IDLE_PART:
        return []
    held, words = memory_of_sessions(view, sessions)
    return [
        Finding(
            severity="warning" if (held or 0) >= WORTH_BYTES else "note",
            holder="sessions",
            verdict="session",
            headline=f"{count(sessions)} sessions are connected, {count(sleeping)} of them idle"
            + (f", and hold {size(held)}" if held else ""),
            evidence=words,
            remedy="end those that are idle for long, let wait_timeout do it from now on,"
            " and bound what the application opens",
            statements=[*idle_statements(view), "SET GLOBAL wait_timeout = 600"],
            bytes=held,
            source=f"{view.origin('sessions')}; {'INFORMATION_SCHEMA.MEMDIAG_LEDGER' if view.ours else view.origin('threads')}",
        )
    ]


_POOLS = ("connection", "session", "statement")


def memory_of_sessions(view: View, sessions: int) -> tuple[int | None, str]:
    """Bytes that sessions hold, and the words that prove it."""
    if view.ours:
        states = view.pool_states()
        parts = {f"pool {pool}": states.get(pool, {}).get("live") or 0 for pool in _POOLS}
        for row in view.rows("memdiag_ledger"):
            if row["COMPONENT"] == "region" and row["NAME"] == "thread_stack":
                parts["thread stacks"] = row["RESIDENT_BYTES"] or 0
        held = sum(parts.values())
        words = ", ".join(f"{name} {size(value)}" for name, value in parts.items())
        return held, f"{words}: {size(held / sessions)} for each session"
    counted = sum(row["BYTES"] or 0 for row in view.rows("threads"))
    listed = len(view.rows("threads"))
    if not counted or not listed:
        return None, "Performance Schema does not tell what they hold"
    # The list has the largest 50.
    smallest = view.rows("threads")[-1]["BYTES"] or 0
    held = counted + smallest * max(0, sessions - listed)
    return (
        held,
        f"Performance Schema counts at least {size(smallest)} for each; stacks and the C library's memory come on top",
    )
