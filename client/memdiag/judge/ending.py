"""Whether KILL of a session is a remedy, and what it costs.

It is one only if the session itself has a large part of what the finding is about, and if all of this is known: it is no
thread of the server, of replication, of memdiag, of an exporter or of a backup, and what its open transaction would roll
back. DDL is not ended, nor a session that keeps a lock.
"""

from __future__ import annotations

from memdiag.model.document import Finding
from memdiag.model.units import count
from memdiag.model.view import Row, View

KEPT = (
    "do not KILL this session: it is a thread of replication or of the server, or it watches the server or backs it up;"
    " it has the memory until its transaction or statement ends"
)
UNKNOWN = "what KILL would roll back is not known: this account may not read the open transactions"
NOT_LISTED = "what KILL would roll back is not known: more transactions are open than were read"
LOCKS = "do not KILL this session: it keeps a lock, as LOCK TABLES, GET_LOCK() and a backup take, which others rely on"
# Seconds. A backup reads for longer in one transaction, and changes nothing.
_LONG = 120
DDL = "do not KILL this session: it runs DDL, which would begin again from the start"


def propose(view: View, session: Row, found: Finding) -> None:
    """Adds the remedy to a finding of which the session has at least half."""
    number = session["PROCESSLIST_ID"]
    if not view.may_end(number):
        first(found, KEPT)
        return
    known, transaction = view.transaction_of(number)
    if not known:
        first(found, UNKNOWN if view.error("transactions") else NOT_LISTED)
        return
    if any(row["LOCK_KEEPER"] == number for row in view.rows("lock_keepers")):
        first(found, LOCKS)
        return
    if found.holder == "online DDL" or any(row["DDL_SESSION"] == number for row in view.rows("ddl_sessions")):
        first(found, DDL)
        return
    runs = session.get("COMMAND") not in (None, "Sleep")
    words = f"end session {number}, which frees it"
    if view.error("lock_keepers") is not None:
        words += " and releases locks of LOCK TABLES, GET_LOCK() or of a backup, if it has one"
    if transaction:
        words += (
            f" and rolls back its transaction, open for {count(transaction['SECONDS'])} s:"
            f" {count(transaction['ROWS_MODIFIED'])} changed rows"
        )
        if transaction["ROWS_MODIFIED"] == 0 and (transaction["SECONDS"] or 0) >= _LONG:
            words += ", so it may be a backup's snapshot"
    elif runs:
        words += " and ends the statement that it runs"
    if runs and view.error("ddl_sessions") is not None:
        words += "; what it runs may be DDL"
    found.statements = [f"KILL {number}"]
    first(found, words)


def first(found: Finding, words: str) -> None:
    found.remedy = f"{words}; {found.remedy}" if found.remedy else words


def still_there(view: View, parts: list[Row]) -> int:
    """Bytes of a session's instruments. Performance Schema does not subtract from a session what another session freed.
    No session holds more of an instrument than there is of it."""
    everywhere = {row["EVENT_NAME"]: row["BYTES"] or 0 for row in view.rows("memory")}
    return sum(
        min(row["BYTES"], max(0, everywhere.get(row["EVENT_NAME"], row["BYTES"]))) for row in parts if row["BYTES"]
    )
