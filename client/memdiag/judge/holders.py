"""Holders of memory besides the buffer pool, the share that each usually has, and the statement that lowers it.

The same list serves our server, where the figures are live bytes, and stock, where Performance Schema counts them.
"""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.model.view import View

# FLUSH LOCAL TABLES has this cost.
FLUSH_WAITS = (
    "after FLUSH, statements on tables in use wait until those that run have ended,"
    " and ending the FLUSH does not undo that"
)


@dataclass(frozen=True)
class Holder:
    name: str
    parts: tuple[str, ...]  # beginnings of instruments' names
    pools: tuple[str, ...] = ()  # of our server: all that is live in them
    # Percent of the resident memory outside of the buffer pool. Open tables, the dictionary and Performance Schema
    # have much of a small server that works well.
    usual_percent: int = 10
    of_sessions: bool = False  # it ends with the session
    verb: str = "hold"
    what: str = ""
    remedy: str = ""
    # % is half the value of `variable`. LOCAL: what goes to the binary log flushes replicas, too, and on a replica is a
    # transaction of its own.
    statement: str = ""
    variable: str = ""


TRIGGERS = Holder(
    "triggers",
    ("memory/sql/sp_head::main_mem_root",),
    what="each open table has its own copy of its triggers' programs",
    remedy=f"close the open tables, and keep fewer of them; {FLUSH_WAITS}",
    statement="FLUSH LOCAL TABLES; SET GLOBAL table_open_cache = %",
    variable="table_open_cache",
)

HOLDERS = (
    Holder(
        "prepared statements",
        ("memory/sql/Prepared_statement", "memory/sql/prepared_statement"),
        of_sessions=True,
        what="statements that sessions prepared and did not close",
        remedy="have the application close its statements",
    ),
    Holder(
        "stored programs",
        ("memory/sql/sp_head::main_mem_root", "memory/sql/THD::sp_cache"),
        what="each session keeps the stored programs that it called",
        remedy="let each session keep fewer stored programs",
        statement="SET GLOBAL stored_program_cache = %",
        variable="stored_program_cache",
    ),
    Holder(
        "open tables",
        (
            "memory/sql/TABLE",
            "mem_heap/row0mysql",
            "memory/innodb/row0mysql",
            "memory/innodb/ha_innodb",
            "memory/sql/Partition",
            "memory/innodb/partitioning",
            "memory/innodb/ha_innopart",
        ),
        usual_percent=20,
        what="the table cache keeps tables open for the next statement",
        remedy=f"close the open tables, and keep fewer of them; {FLUSH_WAITS}",
        statement="FLUSH LOCAL TABLES; SET GLOBAL table_open_cache = %",
        variable="table_open_cache",
    ),
    Holder(
        "dictionary cache",
        ("memory/sql/dd::", "memory/innodb/dict", "memory/innodb/mem0mem/dict"),
        pools=("dictionary",),
        verb="holds",
        usual_percent=20,
        what="definitions of tables and other objects",
        remedy=f"close what is unused, and keep fewer definitions; {FLUSH_WAITS}",
        statement="FLUSH LOCAL TABLES; SET GLOBAL table_definition_cache = %",
        variable="table_definition_cache",
    ),
    Holder(
        "binary log caches",
        (
            "memory/sql/binlog",
            "memory/sql/Row_data_memory",
            # Stock counts the buffers of all its files there, also those of sorts, which are small.
            "memory/mysys/IO_CACHE",
        ),
        of_sessions=True,
        what="changes of transactions that have not committed yet",
        remedy="commit in smaller parts",
        statement="SELECT * FROM information_schema.INNODB_TRX ORDER BY TRX_ROWS_MODIFIED DESC LIMIT 5",
    ),
    Holder(
        "replication events",
        ("memory/sql/Log_event", "binlog_event_rows", "memory/sql/rpl"),
        what="events that wait for the workers of a replica",
        remedy="let fewer of them wait",
        statement="SET GLOBAL replica_pending_jobs_size_max = %",
        variable="replica_pending_jobs_size_max",
    ),
    Holder(
        "temporary tables",
        ("temptable", "memory/temptable/"),
        of_sessions=True,
        what="internal temporary tables of statements that run",
        remedy="let them go to disk earlier, or end the statement that has them",
        statement="SET GLOBAL temptable_max_ram = %",
        variable="temptable_max_ram",
    ),
    Holder(
        "MEMORY tables",
        ("memory/memory/",),
        what="tables with ENGINE=MEMORY stay until they are dropped",
        remedy="move the largest to InnoDB, which keeps the rows",
    ),
    Holder(
        "user variables",
        ("memory/sql/user_var_entry",),
        of_sessions=True,
        what="values that sessions put into @variables stay until the session ends",
        remedy="have the application set its variables to NULL",
    ),
    Holder(
        "sort buffers",
        ("memory/sql/Filesort", "memory/sql/Unique"),
        of_sessions=True,
        what="statements that sort",
        remedy="make the buffer smaller",
        statement="SET GLOBAL sort_buffer_size = %",
        variable="sort_buffer_size",
    ),
    Holder(
        "join buffers",
        ("memory/sql/JOIN_CACHE", "memory/sql/hashed_operation", "memory/sql/hash_join"),
        of_sessions=True,
        what="statements that join without an index",
        remedy="make the buffer smaller",
        statement="SET GLOBAL join_buffer_size = %",
        variable="join_buffer_size",
    ),
    Holder(
        "network buffers",
        ("memory/sql/NET::",),
        of_sessions=True,
        what="each session's packet buffer stays as large as its largest packet",
        remedy="let idle sessions end",
    ),
    Holder(
        "running statements",
        ("memory/sql/THD::main_mem_root", "memory/sql/test_quick_select"),
        pools=("statement",),
        of_sessions=True,
        what="parsing, optimizing and executing",
        remedy="look at the statements that run",
        statement="SHOW FULL PROCESSLIST",
    ),
    Holder(
        "online DDL",
        ("memory/innodb/ddl", "memory/innodb/row_log_buf"),
        pools=("ddl",),
        verb="holds",
        of_sessions=True,
        what="indexes that are built, and changes meanwhile",
        remedy="look at the statements that run",
        statement="SHOW FULL PROCESSLIST",
    ),
    Holder(
        "transactions and locks",
        ("memory/innodb/trx0", "memory/innodb/lock_sys", "memory/innodb/read0read", "memory/innodb/trx_sys_t"),
        pools=("transaction",),
        of_sessions=True,
        what="locks of rows and other data of transactions that are open",
        remedy="commit in smaller parts",
        statement="SELECT * FROM information_schema.INNODB_TRX ORDER BY TRX_LOCK_MEMORY_BYTES DESC LIMIT 5",
    ),
    Holder(
        "full-text queries",
        ("memory/innodb/fts0que",),
        pools=("fts_query",),
        of_sessions=True,
        what="documents and rankings of full-text searches",
        remedy="bound a search's memory",
        statement="SET GLOBAL innodb_ft_result_cache_limit = %",
        variable="innodb_ft_result_cache_limit",
    ),
    Holder(
        "full-text caches",
        ("memory/innodb/fts0fts", "memory/innodb/fts0ast"),
        pools=("fts_cache",),
        what="words that are not yet written to full-text indexes",
        remedy="let OPTIMIZE LOCAL TABLE of each table with a full-text index write them while this is ON",
        statement="SET GLOBAL innodb_optimize_fulltext_only = ON",
    ),
    Holder(
        "adaptive hash index",
        ("memory/innodb/adaptive hash index",),
        verb="holds",
        what="hashes of index pages",
        remedy="switch it off",
        statement="SET GLOBAL innodb_adaptive_hash_index = OFF",
    ),
    Holder(
        "MyISAM key cache",
        ("memory/mysys/KEY_CACHE",),
        verb="holds",
        what="index blocks of MyISAM tables",
        remedy="make it smaller",
        statement="SET GLOBAL key_buffer_size = %",
        variable="key_buffer_size",
    ),
    Holder(
        "group replication",
        ("memory/group_rpl/",),
        pools=("group_replication",),
        verb="holds",
        what="its cache of messages, and rows that certification keeps until each member has applied them",
        remedy="see which member lags; group_replication_message_cache_size bounds the cache",
        statement="SELECT MEMBER_ID, COUNT_TRANSACTIONS_ROWS_VALIDATING, COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE"
        " FROM performance_schema.replication_group_member_stats",
    ),
    Holder(
        "Performance Schema",
        ("memory/performance_schema/", "performance_schema"),
        pools=("perfschema",),
        verb="holds",
        usual_percent=60,
        what="Performance Schema's own tables",
        remedy="lower performance_schema_max_* and performance_schema_*_size, which need a restart",
    ),
)


def bytes_of(view: View, holder: Holder) -> int:
    """Live bytes on our server, counted ones on stock. 0 where nothing is known of it."""
    if view.ours and holder.pools:
        # Resident: Performance Schema takes far more than it writes.
        states = view.pool_states()
        return sum(states.get(pool, {}).get("live") or 0 for pool in holder.pools)
    if holder.name == "transactions and locks":
        # Stock counts locks with all other heaps of InnoDB.
        return sum(row["LOCK_BYTES"] or 0 for row in view.rows("transactions"))
    return sum(value for name, value in view.instruments.items() if name.startswith(holder.parts))


def are_triggers(view: View) -> bool:
    """Programs of triggers belong to open tables, but have the name of the stored programs' cache. The cache's hash
    tells them apart: an entry takes some 100 bytes. Where programs would have to be larger than 4 MiB to fill their
    memory, most of them are triggers."""
    memory = view.instruments
    programs = memory.get("memory/sql/sp_head::main_mem_root", 0)
    entries = memory.get("memory/sql/THD::sp_cache", 0)
    return programs > entries / 100 * (4 << 20)


def statements_of(view: View, holder: Holder) -> list[str]:
    """Ready to run. A statement whose variable is not known, or is small already, is left out."""
    result = []
    for statement in filter(None, holder.statement.split("; ")):
        if "%" in statement:
            value = view.variable(holder.variable)
            if not isinstance(value, int) or value < 2:
                continue
            statement = statement.replace("%", str(value // 2))
        result.append(statement)
    return result
