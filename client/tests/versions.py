"""Which tables, columns, variables and functions each server has, of those that memdiag asks for.

A statement that names something that is not here fails the tests: look it up, and add it with its source. Percona Server
has what the MySQL of its version has. Sources:

[P] Performance Schema's history of its own tables: storage/perfschema/pfs_dd_version.h of MySQL's source
[M] MySQL 8.0 Reference Manual, "Server and Status Variables and Options Added, Deprecated, or Removed"
[I] MySQL 8.0 Reference Manual, the page of the INFORMATION_SCHEMA or Performance Schema table
[D] MariaDB's documentation, the page of the table or variable, "introduced" and "removed"
[S] seen on the server: tests/fixtures.py has MySQL 9.7.4 and MariaDB 10.11
[C] MySQL 26.10 Reference Manual: "What Is New", the pages of the component's tables. 26.7 and later are calendar versions:
    neither 26.7 nor 26.10 took away anything that memdiag asks for ("Options and Variables Removed")
"""

from __future__ import annotations

from dataclasses import dataclass

# All versions that docs/client.md names.
ALL = ""
NEVER = "99"


@dataclass(frozen=True)
class Since:
    """The first version that has it, in each line of servers; `gone` is the first that has it no more."""

    mysql: str = ALL
    mariadb: str = ALL
    mysql_gone: str = NEVER
    mariadb_gone: str = NEVER
    health: bool = False  # only with the component Health Monitor

    def has(self, server: Server) -> bool:
        if self.health and not server.health:
            return False
        first, gone = (self.mariadb, self.mariadb_gone) if server.mariadb else (self.mysql, self.mysql_gone)
        return _key(first) <= _key(server.version) < _key(gone)


@dataclass(frozen=True)
class Server:
    version: str
    mariadb: bool = False
    comment: str = "MySQL Community Server - GPL"
    health: bool = False  # the component Health Monitor is installed

    @property
    def name(self) -> str:
        """The answer of VERSION()."""
        return f"{self.version}-MariaDB" if self.mariadb else self.version


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("-")[0].split(".") if part)


PERCONA = "Percona Server (GPL), Release 22"
SERVERS = (
    *(Server(v) for v in ("8.0.11", "8.0.21", "8.0.22", "8.0.30", "8.0.31", "8.0.46")),
    *(Server(v) for v in ("8.4.0", "8.4.9", "9.0.0", "9.7.4")),
    *(Server(v) for v in ("26.7.0", "26.10.0")),
    Server("26.10.0", health=True),
    *(Server(v, comment=PERCONA) for v in ("8.0.30-22", "8.0.43-34", "8.4.6-6")),
    *(Server(v, True, "MariaDB Server") for v in ("10.6.0", "10.11.19", "11.4.2", "11.8.3")),
)

BOTH = Since()
MYSQL = Since(mariadb=NEVER)
MARIADB = Since(mysql=NEVER)

_MEMORY = "EVENT_NAME CURRENT_NUMBER_OF_BYTES_USED"
# (table, columns, since). A table is there if one of its columns is.
_TABLES = (
    # [I], [D]: in MariaDB since 10.5.2.
    (
        "performance_schema.memory_summary_global_by_event_name",
        f"{_MEMORY} CURRENT_COUNT_USED HIGH_NUMBER_OF_BYTES_USED SUM_NUMBER_OF_BYTES_ALLOC",
        BOTH,
    ),
    ("performance_schema.memory_summary_by_thread_by_event_name", f"{_MEMORY} THREAD_ID", BOTH),
    ("performance_schema.memory_summary_by_user_by_event_name", f"{_MEMORY} USER", BOTH),
    ("performance_schema.metadata_locks", "OBJECT_TYPE LOCK_TYPE LOCK_DURATION LOCK_STATUS OWNER_THREAD_ID", BOTH),
    ("performance_schema.prepared_statements_instances", "OWNER_THREAD_ID", BOTH),
    # [I], [D]: attributes of connections, in MariaDB since 10.5.2, too.
    ("performance_schema.session_connect_attrs", "PROCESSLIST_ID ATTR_NAME ATTR_VALUE", BOTH),
    # [I], [D]
    ("performance_schema.setup_consumers", "NAME ENABLED", BOTH),
    ("performance_schema.setup_instruments", "NAME ENABLED", BOTH),
    (
        "performance_schema.threads",
        "THREAD_ID NAME TYPE PROCESSLIST_ID PROCESSLIST_USER PROCESSLIST_HOST PROCESSLIST_DB PROCESSLIST_COMMAND PROCESSLIST_TIME",
        BOTH,
    ),
    ("performance_schema.events_statements_current", "THREAD_ID TIMER_START TIMER_END", BOTH),
    ("performance_schema.events_statements_summary_by_digest", "DIGEST SCHEMA_NAME DIGEST_TEXT COUNT_STAR", BOTH),
    # [P] 80031: memory of sessions (WL#14432). [S]: MariaDB has none of them.
    ("performance_schema.threads", "TOTAL_MEMORY MAX_TOTAL_MEMORY", Since("8.0.31", NEVER)),
    ("performance_schema.events_statements_summary_by_digest", "MAX_TOTAL_MEMORY", Since("8.0.31", NEVER)),
    # [P] 80022 (WL#9090). [S]
    ("performance_schema.processlist", "ID USER COMMAND TIME", Since("8.0.22", NEVER)),
    # [C]
    ("performance_schema.health_process_memory", "TIMESTAMP VM_RSS VM_SWAP", Since("26.10", NEVER, health=True)),
    (
        "performance_schema.health_system_memory",
        "TIMESTAMP TOTAL_MEMORY AVAILABLE MEMORY_FREE MEMORY_FS_CACHE SWAP_TOTAL SWAP_FREE",
        Since("26.10", NEVER, health=True),
    ),
    # [I], [D]
    ("information_schema.PROCESSLIST", "ID USER HOST DB COMMAND TIME", BOTH),
    ("information_schema.PROCESSLIST", "MEMORY_USED MAX_MEMORY_USED", MARIADB),
    (
        "information_schema.INNODB_TRX",
        "TRX_ID TRX_MYSQL_THREAD_ID TRX_LOCK_MEMORY_BYTES TRX_ROWS_LOCKED TRX_ROWS_MODIFIED TRX_STARTED",
        BOTH,
    ),
    ("information_schema.TABLES", "TABLE_SCHEMA TABLE_NAME TABLE_ROWS DATA_LENGTH INDEX_LENGTH ENGINE", BOTH),
    ("information_schema.COLUMNS", "TABLE_SCHEMA TABLE_NAME COLUMN_NAME", BOTH),
)

COLUMNS: dict[str, dict[str, Since]] = {}
for _table, _names, _since in _TABLES:
    COLUMNS.setdefault(_table.lower(), {}).update(dict.fromkeys(_names.split(), _since))

FUNCTIONS = {
    "COUNT",
    "SUM",
    "MAX",
    "LEFT",
    "COALESCE",
    "TIMESTAMPDIFF",
    "CONVERT_TZ",
    "VERSION",
    "CURRENT_USER",
    "CONCAT",
    "CONNECTION_ID",
    "UTC_TIMESTAMP",
}

_OURS = "memdiag_"

_VARIABLES = (
    (
        "version version_comment version_compile_machine hostname port socket datadir pid_file performance_schema"
        " max_connections thread_stack thread_cache_size wait_timeout innodb_buffer_pool_size innodb_log_buffer_size"
        " innodb_adaptive_hash_index innodb_numa_interleave innodb_sort_buffer_size innodb_ft_cache_size"
        " innodb_ft_total_cache_size innodb_ft_result_cache_limit innodb_optimize_fulltext_only key_buffer_size"
        " table_open_cache table_definition_cache stored_program_cache tmp_table_size max_heap_table_size sort_buffer_size"
        " join_buffer_size read_buffer_size read_rnd_buffer_size net_buffer_length max_allowed_packet binlog_cache_size"
        " max_binlog_cache_size binlog_stmt_cache_size max_prepared_stmt_count large_pages transaction_alloc_block_size"
        " query_alloc_block_size time_zone sql_mode sql_select_limit sql_big_selects autocommit innodb_buffer_pool_chunk_size table_open_cache_instances"
        " performance_schema_max_memory_classes read_only",
        BOTH,
    ),  # [S]
    ("transaction_isolation", Since(mariadb="11.1.1")),  # [D]
    ("innodb_mem_total", Since(NEVER, NEVER)),  # [D]: only in MariaDB 10.2.0 and 10.2.1
    ("innodb_buffer_pool_instances", Since(mariadb_gone="10.6.0")),  # [D]
    # [M] before 8.0.11
    (
        "innodb_dedicated_server stored_program_definition_cache internal_tmp_mem_storage_engine temptable_max_ram"
        " max_execution_time information_schema_stats_expiry",
        MYSQL,
    ),
    ("server_uuid super_read_only", MYSQL),  # [M]
    ("temptable_max_mmap", Since("8.0.23", NEVER)),  # [M]
    ("replica_pending_jobs_size_max", Since("8.0.26", NEVER)),  # [M]
    (
        "global_connection_memory_limit connection_memory_limit global_connection_memory_tracking",
        Since("8.0.28", NEVER),
    ),  # [M]
    ("container_aware server_memory", Since("9.7", NEVER)),  # [S]
    ("version_with_update", Since("26.10", NEVER)),  # [C]
    ("query_cache_size", MARIADB),  # [M]: removed in 8.0.3
    ("aria_pagecache_buffer_size max_statement_time", MARIADB),  # [D]
    ("memory_used memory_used_initial innodb_mem_dictionary innodb_mem_adaptive_hash", MARIADB),  # [S]
    (
        "uptime threads_connected threads_running max_used_connections open_tables opened_tables open_table_definitions"
        " prepared_stmt_count innodb_page_size innodb_buffer_pool_pages_total innodb_buffer_pool_pages_data"
        " innodb_buffer_pool_pages_free innodb_buffer_pool_pages_misc innodb_buffer_pool_pages_dirty"
        " innodb_buffer_pool_bytes_data binlog_cache_disk_use created_tmp_tables created_tmp_disk_tables"
        " performance_schema_memory_classes_lost performance_schema_metadata_lock_lost",
        BOTH,
    ),  # [S]
    ("global_connection_memory", Since("8.0.28", NEVER)),  # [M]
)

VARIABLES: dict[str, Since] = {name: since for names, since in _VARIABLES for name in names.split()}


def variable(name: str) -> Since:
    """The versions that have a system or status variable. KeyError: it is not known here."""
    return Since(NEVER, NEVER) if name.startswith(_OURS) else VARIABLES[name]


def table(name: str) -> dict[str, Since]:
    if name.startswith(f"information_schema.{_OURS}"):
        return {"*": Since(NEVER, NEVER)}
    return COLUMNS[name]
