"""Servers without memdiag: holders that have much more than their usual share.

Performance Schema counts bytes that are allocated, resident or not. So a finding calls them allocated, and where more is
counted than is resident, shares are those of what is counted.
"""

from __future__ import annotations

from memdiag.judge.ending import first, propose, still_there
from memdiag.judge.holders import BY_NAME, Holder, bytes_by_holder, holder_of, statement_of
from memdiag.judge.thresholds import WORTH_BYTES, Whole, severity, whole_of
from memdiag.model.document import Finding
from memdiag.model.units import count, percent, shown, size
from memdiag.model.view import Row, View


def findings(view: View) -> list[Finding]:
    sums = bytes_by_holder(view)
    whole = whole_of(view, sum(sums.values()))
    result = [
        _finding(view, BY_NAME[name], held, whole)
        for name, held in sums.items()
        # If RSS is not known (another machine), the size alone decides.
        if held >= WORTH_BYTES
        and held > BY_NAME[name].usual_bytes
        and (not whole.bytes or held * 100 > whole.bytes * BY_NAME[name].usual_of_counted)
    ]
    return sorted(result, key=lambda one: one.rank)


def _finding(view: View, holder: Holder, held: int, whole: Whole) -> Finding:
    part = whole.share(held)
    of = "" if part is None else f", {percent(part)} of {whole.words}"
    words = holder.words
    evidence = "; ".join(filter(None, (words.what[:1].upper() + words.what[1:], _instruments(view, holder))))
    found = Finding(
        severity=severity(whole, held),
        holder=holder.name,
        verdict="session" if holder.of_sessions else "cache",
        headline=f"{holder.title}: {size(held)} allocated{of}",
        evidence=evidence,
        remedy=words.remedy,
        check=words.check,
        bytes=held,
        share=part,
        source="INFORMATION_SCHEMA.INNODB_TRX"
        if holder.name == "transactions, locks"
        else "performance_schema.memory_summary_global_by_event_name",
    )
    if words.frees_at_once and (statement := statement_of(view, holder)):
        if holder.name == "full-text caches" and _is_on(view, "super_read_only"):
            found.remedy += "; no statement can while super_read_only is ON"
        elif held_up := _held_up(view, holder):
            found.remedy = f"{held_up}, then {statement}; {words.remedy}"
        else:
            found.statements = [statement]
    if holder.name == "MEMORY tables":
        _name_tables(view, held, found)
    if holder.of_sessions and not holder.of_expressions:
        _name_session(view, holder, held, found)
    return found


def _is_on(view: View, name: str) -> bool:
    """MariaDB has more words for a kind of ON."""
    return str(view.variable(name) or "OFF").upper() != "OFF"


def _held_up(view: View, holder: Holder) -> str:
    """To do before the statement; "": nothing. FLUSH waits for sessions that keep tables."""
    if not holder.is_flushed:
        return ""
    who = "keep tables open (HANDLER, LOCK TABLES, a statement of more than 10 s)"
    keepers = view.row("table_keepers").get("KEEPERS")
    if keepers is None:
        why = view.error("table_keepers")
        return f"whether sessions {who} is not known{f': {why}' if why else ''}: see that none does"
    return f"{count(keepers)} sessions {who}: end those first" if keepers else ""


def _instruments(view: View, holder: Holder) -> str:
    found = sorted(
        (
            (row["BYTES"], row["EVENT_NAME"])
            for row in view.rows("memory")
            if (row["BYTES"] or 0) >= 1 << 20 and holder_of(row["EVENT_NAME"]) == holder
        ),
        reverse=True,
    )[:3]
    return "; ".join(f"{name} has {size(value)}" for value, name in found)


def _name_tables(view: View, held: int, found: Finding) -> None:
    """Those that have half of it together."""
    # A name with a line's end or the like would break the statement where it is shown.
    tables = [
        row
        for row in view.rows("memory_tables")
        if row["BYTES"] and f"{row['TABLE_SCHEMA']}{row['TABLE_NAME']}".isprintable()
    ]
    moved: list[Row] = []
    for row in tables:
        if sum(one["BYTES"] for one in moved) * 2 < held:
            moved.append(row)
    if sum(one["BYTES"] for one in moved) * 2 < held:
        found.check = (
            "SELECT TABLE_SCHEMA, TABLE_NAME, DATA_LENGTH FROM information_schema.TABLES WHERE ENGINE = 'MEMORY'"
            " ORDER BY DATA_LENGTH DESC shows them, but for temporary ones"
        )
        return
    found.evidence += "; the largest: " + ", ".join(
        f"{row['TABLE_SCHEMA']}.{row['TABLE_NAME']} with {size(row['BYTES'])}" for row in tables[:3]
    )
    statements = [
        f"ALTER TABLE {_quoted(row['TABLE_SCHEMA'])}.{_quoted(row['TABLE_NAME'])} ENGINE = InnoDB" for row in moved
    ]
    # The binary log of a replica would have a transaction that its source does not have. A replica that was stopped has
    # no threads.
    if (
        view.rows("system_threads")
        or view.error("system_threads") is not None
        or _is_on(view, "read_only")
        or _is_on(view, "super_read_only")
    ):
        found.remedy += f"; on a replica, at its source: {'; '.join(statements)}"
    else:
        found.statements = statements


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _name_session(view: View, holder: Holder, held: int, found: Finding) -> None:
    """One session that has at least half of it itself is the cause."""
    if holder.name == "transactions, locks":
        session, own = _locker(view)
    else:
        parts = [row for row in view.rows("largest_session") if holder_of(row["EVENT_NAME"]) == holder]
        # largest_session is about the first of the list.
        session, own = (view.row("threads") or None), still_there(view, parts)
    if session is None or own * 2 < held:
        return
    number = session["PROCESSLIST_ID"]
    if not number:
        found.headline += "; a transaction without a session has most of it"
        first(found, "XA RECOVER lists transactions that were prepared; XA COMMIT or XA ROLLBACK ends one")
        return
    found.headline += f"; session {number} has most of it"
    found.evidence += f"; session {number}{_user(session)} has {size(min(own, held))} of it"
    for row in view.rows("prepared"):
        if holder.name == "prepared statements" and row["PROCESSLIST_ID"] == number:
            found.evidence += f", in {count(row['STATEMENTS'])} statements"
    propose(view, session, found)


def _user(session: Row) -> str:
    return f" of {shown(session['USER'])}" if "USER" in session else ""


def _locker(view: View) -> tuple[Row | None, int]:
    rows = sorted(view.rows("transactions"), key=lambda row: -(row["LOCK_BYTES"] or 0))
    return (rows[0], rows[0]["LOCK_BYTES"] or 0) if rows else (None, 0)
