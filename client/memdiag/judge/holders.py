"""Holders of memory besides the buffer pool: their instruments, the share that each usually has, and what lowers it.

holders.json is the server's list (plugin/memdiag/advice/holder_list.h), made by `memdiag_reference --holders` and never
edited here. The words are the client's, for servers without memdiag.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

from memdiag.model.view import View

# FLUSH LOCAL TABLES has this cost.
FLUSH_WAITS = (
    "after FLUSH, statements on tables in use wait until those that run have ended,"
    " and ending the FLUSH does not undo that; HANDLER and LOCK TABLES of an idle session hold them up for as long"
)


@dataclass(frozen=True)
class Holder:
    name: str
    instruments: tuple[str, ...]  # beginnings of names
    usual_percent: int  # of the resident memory besides the buffer pool
    of_sessions: bool  # it ends with a session or with what a session runs
    statement: str  # "%" is half the value of `variable`; "": none helps
    variable: str
    least: int  # the server makes a lower value of `variable` this one
    usual_bytes: int  # with default settings: no reason to act
    of_expressions: bool  # open tables keep some, which count for the session that computed them

    @property
    def is_flushed(self) -> bool:
        return self.statement == "FLUSH LOCAL TABLES"

    @property
    def words(self) -> Words:
        return WORDS.get(self.name, Words("", ""))

    @property
    def usual_of_counted(self) -> int:
        return self.words.usual_counted or self.usual_percent

    @property
    def title(self) -> str:
        return self.name[:1].upper() + self.name[1:]


@dataclass(frozen=True)
class Words:
    what: str
    remedy: str
    check: str = ""  # shows more where no statement frees it
    # On stock, too, the list's statement gives back what is counted. Others bound it from then on, or need figures
    # that only our server has.
    frees_at_once: bool = False
    # Percent, where Performance Schema counts what is allocated and much of that is never written; 0: as in the list.
    usual_counted: int = 0


_RUNNING = "SHOW FULL PROCESSLIST shows the statements that run"
_KEPT = (
    "open tables may keep some in generated columns, constraints and triggers, and rows of ENGINE=CSV: no KILL frees those,"
    " and FLUSH LOCAL TABLES does"
)
WORDS = {
    "prepared statements": Words(
        "statements that sessions prepared and did not close",
        "have the application close its statements",
        "SELECT OWNER_THREAD_ID, COUNT(*) FROM performance_schema.prepared_statements_instances GROUP BY OWNER_THREAD_ID"
        " shows whose they are",
    ),
    "stored programs": Words(
        "each session keeps the stored programs that it called; programs of triggers, of which each open table has a"
        " copy, are counted under the same name",
        "let sessions reconnect; a lower stored_program_cache helps those that keep more programs than that;"
        " FLUSH LOCAL TABLES frees those of triggers",
    ),
    "triggers": Words(
        "each open table has its own copy of its triggers' programs",
        f"close the open tables; a lower table_open_cache bounds them; {FLUSH_WAITS}",
        frees_at_once=True,
    ),
    "open tables": Words(
        "the table cache keeps tables open for the next statement",
        f"close the open tables; a lower table_open_cache bounds them; {FLUSH_WAITS}",
        frees_at_once=True,
    ),
    "metadata locks": Words(
        "locks of names: tables of transactions, LOCK TABLES, and GET_LOCK",
        "take fewer names at one time; what was taken serves later locks, until a restart",
        "SELECT OWNER_THREAD_ID, COUNT(*) FROM performance_schema.metadata_locks GROUP BY OWNER_THREAD_ID shows whose"
        " they are",
    ),
    "dictionary cache": Words(
        "definitions of tables and other objects", "lower table_definition_cache, which bounds the definitions"
    ),
    # Only our server tells them from open tables.
    "user temporary tables": Words(
        "CREATE TEMPORARY TABLE keeps a table open until its session drops it or ends",
        "have the application drop its temporary tables",
    ),
    "accounts and privileges": Words(
        "accounts, grants and roles are always in memory", "drop accounts and grants that are not used"
    ),
    "binary log caches": Words(
        "changes of transactions that have not committed, and caches that sessions keep after them",
        "commit in smaller parts; a lower binlog_cache_size makes the cache of each new session smaller",
        "SELECT * FROM information_schema.INNODB_TRX ORDER BY TRX_ROWS_MODIFIED DESC LIMIT 5 shows the transactions that"
        " write most",
    ),
    "replication events": Words(
        "events that wait for the workers of a replica",
        "let fewer of them wait: a lower replica_pending_jobs_size_max counts from the next start of the replica",
    ),
    "GTID sets": Words(
        "each gap in gtid_executed, and in other sets of GTIDs, is an interval more",
        "have replicas commit in order (replica_preserve_commit_order), and fill gaps that stay with empty transactions",
        "SELECT @@global.gtid_executed shows them",
    ),
    "binary log dump threads": Words("each keeps a buffer as large as the largest event that it sent", ""),
    "temporary tables": Words(
        "internal temporary tables of statements that run, and of cursors that clients have open",
        "end the statement or the session that has them; a lower temptable_max_ram lets new ones go to disk earlier",
        _RUNNING,
    ),
    "MEMORY tables": Words(
        "tables with ENGINE=MEMORY stay until they are dropped", "move the largest to InnoDB, which keeps the rows"
    ),
    "user variables": Words(
        "values that sessions put into @variables stay until the session ends",
        "have the application set its variables to NULL",
        "SELECT THREAD_ID, CURRENT_NUMBER_OF_BYTES_USED FROM"
        " performance_schema.memory_summary_by_thread_by_event_name WHERE EVENT_NAME LIKE 'memory/sql/user_var_entry%'"
        " ORDER BY CURRENT_NUMBER_OF_BYTES_USED DESC LIMIT 5 shows whose they are",
    ),
    "sort buffers": Words("statements that sort", "make sort_buffer_size smaller", _RUNNING),
    "join buffers": Words(
        "statements that join without an index", "make join_buffer_size smaller, or add the index", _RUNNING
    ),
    "network buffers": Words(
        "each session's packet buffer stays as large as its largest packet", "let idle sessions end"
    ),
    "read buffers": Words(
        "statements that read rows in order of their keys", "make read_rnd_buffer_size smaller", _RUNNING
    ),
    "sets of DISTINCT": Words(
        "COUNT(DISTINCT), GROUP_CONCAT(DISTINCT) and GROUP_CONCAT(ORDER BY)", "make tmp_table_size smaller", _RUNNING
    ),
    "strings": Words(
        "results of functions and of GROUP_CONCAT, and buffers that send the binary log",
        f"make group_concat_max_len or max_allowed_packet smaller; {_KEPT}",
        _RUNNING,
    ),
    "running statements": Words("parsing, optimizing and executing", "look at the statements that run", _RUNNING),
    "JSON and containers": Words(
        "JSON documents and containers of statements", f"look at those that run; {_KEPT}", _RUNNING
    ),
    "rows with large values": Words("BLOB, TEXT and JSON values of rows that statements read or write", "", _RUNNING),
    # Only our server knows these three.
    "uncounted memory": Words("blocks of malloc() that no instrument counts", ""),
    "mappings of plugins": Words("pages that plugins or libraries took from the kernel by themselves", ""),
    "mapped files": Words("pages of files that plugins or libraries have mapped", ""),
    "transactions, locks": Words(
        "locks of rows and other data of transactions that are open",
        "commit in smaller parts",
        "SELECT * FROM information_schema.INNODB_TRX ORDER BY TRX_LOCK_MEMORY_BYTES DESC LIMIT 5 shows whose they are",
    ),
    "online DDL": Words("indexes that are built, and changes meanwhile", "let it end", _RUNNING),
    "full-text queries": Words(
        "documents and rankings of full-text searches",
        "let the searches end; a smaller innodb_ft_result_cache_limit ends later ones that pass it with an error",
        _RUNNING,
    ),
    "full-text caches": Words(
        "words that are not yet written to full-text indexes",
        "write them; the last rows of the SELECT restore the variables. OPTIMIZE waits for transactions that have used the"
        " table, for 5 s at most, and statements on the table wait meanwhile",
        frees_at_once=True,
    ),
    "MyISAM key cache": Words(
        "index blocks of MyISAM tables",
        "make it smaller; key caches with names (CACHE INDEX) have what is more than key_buffer_size:"
        " SET GLOBAL <name>.key_buffer_size = <less>",
        frees_at_once=True,
    ),
    "redo log buffer": Words(
        "changes on their way to the redo log",
        "make it smaller; while more than that waits to be written, the error log says that it failed, and the statement"
        " may be run again",
        frees_at_once=True,
    ),
    "group replication": Words(
        "its cache of messages, and rows that certification keeps until each member has applied them",
        "see which member lags; group_replication_message_cache_size bounds the cache",
        "SELECT MEMBER_ID, COUNT_TRANSACTIONS_ROWS_VALIDATING, COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE FROM"
        " performance_schema.replication_group_member_stats shows which member lags",
    ),
    "Performance Schema": Words(
        "Performance Schema's own tables",
        "lower performance_schema_max_* and performance_schema_*_size, which need a restart",
        usual_counted=60,
    ),
}


def _read() -> tuple[Holder, ...]:
    rows = json.loads(Path(__file__).with_name("holders.json").read_text(encoding="utf-8"))
    return tuple(
        Holder(
            row["name"],
            tuple(row["instruments"]),
            row["usual_percent"],
            row["of_sessions"],
            row["statement"] or "",
            row["variable"] or "",
            row["least"],
            row["usual_bytes"],
            row["of_expressions"],
        )
        for row in rows
    )


HOLDERS = _read()
BY_NAME = {holder.name: holder for holder in HOLDERS}


@functools.cache
def holder_of(instrument: str) -> Holder | None:
    """The one whose beginning fits most of the name: an instrument counts once."""
    fitting = [
        (len(beginning), holder)
        for holder in HOLDERS
        for beginning in holder.instruments
        if instrument.startswith(beginning)
    ]
    return max(fitting, key=lambda one: one[0])[1] if fitting else None


def bytes_by_holder(view: View) -> dict[str, int]:
    """By name, on a server without memdiag: bytes that Performance Schema counts as allocated. A holder of which nothing
    is known is left out."""
    sums: dict[str, int] = {}
    for row in view.rows("memory"):
        # Below 0: Performance Schema has seen blocks freed whose allocation it did not see.
        if row["BYTES"] and row["BYTES"] > 0 and (holder := holder_of(row["EVENT_NAME"])):
            sums[holder.name] = sums.get(holder.name, 0) + row["BYTES"]
    if view.rows("transactions"):
        # Performance Schema counts locks with all other heaps of InnoDB.
        locks = [row["LOCK_BYTES"] for row in view.rows("transactions")]
        sums["transactions, locks"] = sum(filter(None, locks))
    if "stored programs" in sums and are_triggers(view):
        sums["triggers"] = sums.pop("stored programs")
    return sums


def are_triggers(view: View) -> bool:
    """Programs of triggers belong to open tables, but have the name of those that sessions cache. Where no session has
    a cache, all are triggers'. Where one has, stock does not tell whose they are."""
    memory = view.instruments
    return memory.get("memory/sql/sp_head::main_mem_root", 0) > 0 and not memory.get("memory/sql/THD::sp_cache")


def statement_of(view: View, holder: Holder) -> str:
    """Ready to run; "" where the variable is not known, or is small already."""
    if not holder.variable:
        return holder.statement
    value = view.variable(holder.variable)
    if not isinstance(value, int) or value // 2 < holder.least:
        return ""
    # The variable is the default cache's, which takes its size at once. Others have names.
    if holder.name == "MyISAM key cache" and view.instruments.get("memory/mysys/KEY_CACHE", 0) > value + value // 8:
        return ""
    return holder.statement.replace("%", str(value // 2))
