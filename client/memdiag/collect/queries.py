"""Statements of a snapshot: one statement for each source, by the kind of server.

No statement reads query text that SHOW PROCESSLIST of the same account would not show, and none of them
changes anything. Each costs milliseconds; those that may cost more say so.
"""

from __future__ import annotations

# Tables of this project's server that are read whole, where they exist. Others are internals that take long, or are
# asked in parts: history and the heap profile.
TABLES = (
    "MEMDIAG_ADVICE",
    "MEMDIAG_ALLOCATOR",
    "MEMDIAG_BUDGET",
    "MEMDIAG_CEILING",
    "MEMDIAG_DIGESTS",
    "MEMDIAG_HOST",
    "MEMDIAG_INNODB",
    "MEMDIAG_INSTRUMENTS",
    "MEMDIAG_LEDGER",
    "MEMDIAG_POOLS",
    "MEMDIAG_PURGES",
    "MEMDIAG_REGIONS",
    "MEMDIAG_ROUTES",
    "MEMDIAG_SESSIONS",
    "MEMDIAG_SURVIVORS",
)

# Points of a chart: more than its pixels help nobody.
POINTS = 400

GLOBAL_STATUS = """SHOW GLOBAL STATUS WHERE Variable_name IN (
 'Uptime', 'Threads_connected', 'Threads_running', 'Max_used_connections', 'Open_tables', 'Opened_tables',
 'Open_table_definitions', 'Prepared_stmt_count', 'Innodb_page_size', 'Innodb_buffer_pool_pages_total',
 'Innodb_buffer_pool_pages_data', 'Innodb_buffer_pool_pages_free', 'Innodb_buffer_pool_pages_misc',
  'Innodb_buffer_pool_pages_dirty', 'Innodb_buffer_pool_bytes_data', 'Memory_used', 'Binlog_cache_disk_use',
  'Created_tmp_tables', 'Created_tmp_disk_tables', 'Performance_schema_memory_classes_lost',
  'Performance_schema_metadata_lock_lost', 'Memdiag_ceiling_level',
  'Memdiag_ceiling_target_bytes', 'Memdiag_ceiling_left_bytes', 'Memdiag_ceiling_parked_bytes', 'Memdiag_ceiling_ended',
  'Memdiag_ceiling_refused', 'Memdiag_ceiling_went_on', 'Memdiag_ceiling_longest_wait_microseconds')"""

# Variables that determine memory, for the section of the configuration and for the budget of stock.
VARIABLES = """SHOW GLOBAL VARIABLES WHERE Variable_name IN (
 'version', 'version_with_update', 'version_comment', 'version_compile_machine', 'hostname', 'port', 'socket', 'datadir', 'pid_file',
 'server_uuid', 'performance_schema', 'max_connections', 'thread_stack', 'thread_cache_size', 'wait_timeout',
 'innodb_buffer_pool_size', 'innodb_buffer_pool_chunk_size', 'innodb_buffer_pool_instances', 'innodb_log_buffer_size',
 'innodb_adaptive_hash_index', 'innodb_dedicated_server', 'innodb_numa_interleave', 'innodb_sort_buffer_size',
 'innodb_ft_cache_size', 'innodb_ft_total_cache_size', 'innodb_ft_result_cache_limit', 'key_buffer_size',
 'table_open_cache', 'table_open_cache_instances', 'table_definition_cache', 'stored_program_cache',
 'stored_program_definition_cache', 'tmp_table_size', 'max_heap_table_size', 'temptable_max_ram', 'temptable_max_mmap',
 'internal_tmp_mem_storage_engine', 'sort_buffer_size', 'join_buffer_size', 'read_buffer_size', 'read_rnd_buffer_size',
 'net_buffer_length', 'max_allowed_packet', 'binlog_cache_size', 'max_binlog_cache_size', 'binlog_stmt_cache_size',
 'max_prepared_stmt_count', 'large_pages', 'query_cache_size', 'aria_pagecache_buffer_size',
 'global_connection_memory_limit', 'connection_memory_limit', 'global_connection_memory_tracking',
 'performance_schema_max_memory_classes', 'transaction_alloc_block_size', 'query_alloc_block_size',
 'memdiag_sessions', 'memdiag_scope_survivors', 'memdiag_memory_wait_ms', 'memdiag_history_interval_ms',
 'memdiag_history_samples', 'memdiag_quiet_ms', 'memdiag_dirty_decay_ms',
 'memdiag_dirty_limit', 'memdiag_memory_target', 'memdiag_routes', 'memdiag_disabled_pools', 'memdiag_profile', 'container_aware',
 'server_memory', 'replica_pending_jobs_size_max', 'read_only', 'super_read_only')"""

MEMORY_BY_EVENT = """SELECT EVENT_NAME, CURRENT_COUNT_USED AS BLOCKS, CURRENT_NUMBER_OF_BYTES_USED AS BYTES,
 HIGH_NUMBER_OF_BYTES_USED AS HIGH_BYTES, SUM_NUMBER_OF_BYTES_ALLOC AS ALLOCATED
 FROM performance_schema.memory_summary_global_by_event_name
 WHERE CURRENT_NUMBER_OF_BYTES_USED <> 0 OR HIGH_NUMBER_OF_BYTES_USED <> 0"""

INSTRUMENTS_OFF = """SELECT COUNT(*) AS INSTRUMENTS, SUM(ENABLED = 'NO') AS SWITCHED_OFF
 FROM performance_schema.setup_instruments WHERE NAME LIKE 'memory/%'"""

# MySQL 8.0.31 and later keep a thread's sum.
THREADS = """SELECT THREAD_ID, PROCESSLIST_ID, PROCESSLIST_USER AS USER, PROCESSLIST_HOST AS HOST,
 PROCESSLIST_DB AS DB, PROCESSLIST_COMMAND AS COMMAND, PROCESSLIST_TIME AS SECONDS, {memory} AS BYTES,
 {highest} AS HIGH_BYTES FROM performance_schema.threads
 WHERE TYPE = 'FOREGROUND' AND PROCESSLIST_ID IS NOT NULL AND PROCESSLIST_COMMAND NOT IN ('Daemon')
 ORDER BY BYTES DESC LIMIT 50"""

# SET TIMESTAMP moves a session's TIME into the past, and mysqlbinlog writes it for each event: a restore would be idle
# for years. It does not move this timer, in picoseconds. A session whose statements are not collected has none.
_OWN_START = """SELECT MAX(TIMER_START) AS OWN_START FROM performance_schema.events_statements_current
 JOIN performance_schema.threads USING (THREAD_ID) WHERE PROCESSLIST_ID = CONNECTION_ID()"""
_LAST_STATEMENTS = f"""LEFT JOIN (SELECT THREAD_ID, MAX(TIMER_END) AS LAST_END
 FROM performance_schema.events_statements_current GROUP BY THREAD_ID) e ON e.THREAD_ID = t.THREAD_ID
 LEFT JOIN ({_OWN_START}) o ON e.LAST_END <= o.OWN_START"""


def idle_sessions(seconds: int) -> str:
    """Those that ended their last statement so long ago. SET TIMESTAMP does not move the TIME of MariaDB's sessions."""
    return f"""SELECT PROCESSLIST_ID FROM performance_schema.events_statements_current
 JOIN performance_schema.threads USING (THREAD_ID) WHERE TIMER_END + {_picoseconds(seconds)} <= ({_OWN_START})"""


def _picoseconds(seconds: int) -> str:
    """As a decimal: the timer counts to 2^64, which it reaches each 213.5 days, and a sum of integers beyond it is an
    error."""
    return f"{seconds * 10**12}.0"


# All threads of sessions together, and those that sleep: idle ones in a transaction would roll it back.
SESSION_BYTES = f"""SELECT SUM(t.TOTAL_MEMORY) AS SESSION_BYTES, {{idle}}
 FROM performance_schema.threads t {_LAST_STATEMENTS}
 LEFT JOIN information_schema.INNODB_TRX x ON x.TRX_MYSQL_THREAD_ID = t.PROCESSLIST_ID
 WHERE t.TYPE = 'FOREGROUND' AND t.PROCESSLIST_ID IS NOT NULL AND t.PROCESSLIST_COMMAND NOT IN ('Daemon')"""

SESSION_BYTES_SUMMED = f"""SELECT SUM(m.CURRENT_NUMBER_OF_BYTES_USED) AS SESSION_BYTES, {{idle}}
 FROM performance_schema.memory_summary_by_thread_by_event_name m
 JOIN performance_schema.threads t ON t.THREAD_ID = m.THREAD_ID {_LAST_STATEMENTS}
 LEFT JOIN information_schema.INNODB_TRX x ON x.TRX_MYSQL_THREAD_ID = t.PROCESSLIST_ID
 WHERE t.TYPE = 'FOREGROUND' AND t.PROCESSLIST_ID IS NOT NULL AND t.PROCESSLIST_COMMAND NOT IN ('Daemon')"""

MARIADB_SESSION_BYTES = """SELECT SUM(p.MEMORY_USED) AS SESSION_BYTES, {idle}
 FROM information_schema.PROCESSLIST p
 LEFT JOIN information_schema.INNODB_TRX x ON x.TRX_MYSQL_THREAD_ID = p.ID
 WHERE p.COMMAND NOT IN ('Daemon')"""


def idle_bytes(memory: str, command: str, seconds: str, timed: bool) -> str:
    """Columns: bytes of sessions that sleep for so long, and are in no transaction."""
    return ", ".join(
        f"SUM({memory} * ({command} = 'Sleep' AND {seconds} >= {limit} AND x.TRX_ID IS NULL"
        + (f" AND e.LAST_END + {_picoseconds(limit)} <= o.OWN_START" if timed else "")
        + f")) AS IDLE_{limit}_BYTES"
        for limit in (60, 600, 3600)
    )


# The instruments of the session that holds most, so that a finding can say what it is.
LARGEST_SESSION = """SELECT EVENT_NAME, CURRENT_NUMBER_OF_BYTES_USED AS BYTES
 FROM performance_schema.memory_summary_by_thread_by_event_name
 WHERE THREAD_ID = {thread} AND CURRENT_NUMBER_OF_BYTES_USED > 65536 ORDER BY BYTES DESC LIMIT 12"""

# Older servers: the sum over half a thousand instruments of each thread.
THREADS_SUMMED = """SELECT t.THREAD_ID, t.PROCESSLIST_ID, t.PROCESSLIST_USER AS USER, t.PROCESSLIST_HOST AS HOST,
 t.PROCESSLIST_DB AS DB, t.PROCESSLIST_COMMAND AS COMMAND, t.PROCESSLIST_TIME AS SECONDS,
 SUM(m.CURRENT_NUMBER_OF_BYTES_USED) AS BYTES, NULL AS HIGH_BYTES
 FROM performance_schema.memory_summary_by_thread_by_event_name m
 JOIN performance_schema.threads t USING (THREAD_ID)
 WHERE t.TYPE = 'FOREGROUND' AND t.PROCESSLIST_ID IS NOT NULL AND m.CURRENT_NUMBER_OF_BYTES_USED <> 0
 GROUP BY t.THREAD_ID, t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_HOST, t.PROCESSLIST_DB,
 t.PROCESSLIST_COMMAND, t.PROCESSLIST_TIME ORDER BY BYTES DESC LIMIT 50"""

USERS = """SELECT USER, SUM(CURRENT_NUMBER_OF_BYTES_USED) AS BYTES
 FROM performance_schema.memory_summary_by_user_by_event_name WHERE CURRENT_NUMBER_OF_BYTES_USED <> 0
 GROUP BY USER ORDER BY BYTES DESC LIMIT 20"""

SLEEPING = """SELECT COUNT(*) AS SESSIONS, COALESCE(SUM(COMMAND = 'Sleep'), 0) AS SLEEPING,
 COALESCE(SUM(COMMAND = 'Sleep' AND TIME >= 60), 0) AS SLEEPING_60,
 COALESCE(SUM(COMMAND = 'Sleep' AND TIME >= 600), 0) AS SLEEPING_600,
 COALESCE(SUM(COMMAND = 'Sleep' AND TIME >= 3600), 0) AS SLEEPING_3600
 FROM {table} WHERE COMMAND NOT IN ('Daemon', 'Binlog Dump', 'Binlog Dump GTID')"""

# Replication (Galera's threads sleep), the event scheduler, replicas that read the binary log, this session, and
# exporters, whose libraries do not tell the program's name: KILL would stop them.
IS_KEPT = """USER IN ('system user', 'event_scheduler') OR COMMAND IN ('Daemon', 'Binlog Dump', 'Binlog Dump GTID')
 OR ID = CONNECTION_ID() OR USER LIKE '%exporter%'"""

# The list of sessions has the account of a replica's thread, if it has one, and older lists of Performance Schema have no
# such thread.
SYSTEM_SESSIONS = f"SELECT ID AS SYSTEM_SESSION FROM information_schema.PROCESSLIST WHERE {IS_KEPT}"

# Programs that watch the server or back it up, by the name that they give themselves: mysqldump, mydumper, xtrabackup,
# mariadb-backup and the like.
WATCHERS = """SELECT PROCESSLIST_ID AS SYSTEM_SESSION FROM performance_schema.session_connect_attrs
 WHERE ATTR_NAME = 'program_name' AND (ATTR_VALUE IN ('memdiag', 'mysqlpump', 'mysqlsh')
 OR ATTR_VALUE LIKE '%exporter%' OR ATTR_VALUE LIKE '%otelcol%' OR ATTR_VALUE LIKE '%dump%'
 OR ATTR_VALUE LIKE '%backup%')"""

SYSTEM_THREADS = """SELECT PROCESSLIST_ID AS SYSTEM_SESSION FROM performance_schema.threads
 WHERE PROCESSLIST_ID IS NOT NULL AND (NAME LIKE 'thread/sql/replica%' OR NAME LIKE 'thread/sql/slave%'
 OR NAME LIKE 'thread/group_rpl/%')"""

# 0: Performance Schema does not count locks of names, or has not counted all of them.
LOCKS_ARE_COUNTED = """SELECT COUNT(*) AS COUNTED FROM performance_schema.setup_instruments i
 JOIN performance_schema.setup_consumers c ON c.NAME = 'global_instrumentation'
 WHERE i.NAME = 'wait/lock/metadata/sql/mdl' AND i.ENABLED = 'YES' AND c.ENABLED = 'YES'"""

# FLUSH LOCAL TABLES has to wait for them. InnoDB's list does not have all transactions: a session that sleeps with a lock
# and is not there may be in one, or have LOCK TABLES. LOCK TABLES alone takes locks of these two types.
TABLE_KEEPERS = """SELECT COUNT(DISTINCT m.OWNER_THREAD_ID) AS KEEPERS
 FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON m.OWNER_THREAD_ID = t.THREAD_ID
 LEFT JOIN information_schema.INNODB_TRX x ON x.TRX_MYSQL_THREAD_ID = t.PROCESSLIST_ID
 WHERE m.OBJECT_TYPE = 'TABLE' AND m.LOCK_STATUS = 'GRANTED' AND t.PROCESSLIST_ID <> CONNECTION_ID()
 AND (m.LOCK_DURATION = 'EXPLICIT' OR m.LOCK_TYPE IN ('SHARED_READ_ONLY', 'SHARED_NO_READ_WRITE')
 OR (t.PROCESSLIST_COMMAND = 'Sleep' AND x.TRX_ID IS NULL)
 OR (t.PROCESSLIST_COMMAND <> 'Sleep' AND t.PROCESSLIST_TIME > 10))"""

# Locks that outlive a statement and its transaction. Those of LOCK TABLES are shown as a transaction's.
LOCK_KEEPERS = """SELECT DISTINCT t.PROCESSLIST_ID AS LOCK_KEEPER
 FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON m.OWNER_THREAD_ID = t.THREAD_ID
 LEFT JOIN information_schema.INNODB_TRX x ON x.TRX_MYSQL_THREAD_ID = t.PROCESSLIST_ID
 WHERE m.LOCK_STATUS = 'GRANTED' AND t.PROCESSLIST_ID IS NOT NULL
 AND (m.LOCK_DURATION = 'EXPLICIT' OR m.LOCK_TYPE = 'SHARED_READ_ONLY'
 OR (t.PROCESSLIST_COMMAND = 'Sleep' AND (x.TRX_ID IS NULL OR m.LOCK_TYPE = 'SHARED_NO_READ_WRITE')))"""

# DDL has them until its transaction ends, and nothing else that runs but LOCK TABLES ... WRITE has.
DDL_SESSIONS = """SELECT DISTINCT t.PROCESSLIST_ID AS DDL_SESSION
 FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON m.OWNER_THREAD_ID = t.THREAD_ID
 WHERE m.LOCK_DURATION <> 'EXPLICIT' AND t.PROCESSLIST_COMMAND <> 'Sleep' AND t.PROCESSLIST_ID IS NOT NULL
 AND m.LOCK_TYPE IN ('SHARED_UPGRADABLE', 'SHARED_NO_WRITE', 'SHARED_NO_READ_WRITE', 'EXCLUSIVE')"""

PREPARED = """SELECT t.PROCESSLIST_ID, MAX(t.PROCESSLIST_USER) AS USER, COUNT(*) AS STATEMENTS
 FROM performance_schema.prepared_statements_instances p
 JOIN performance_schema.threads t ON p.OWNER_THREAD_ID = t.THREAD_ID
 GROUP BY t.PROCESSLIST_ID ORDER BY STATEMENTS DESC LIMIT 10"""

DIGESTS = """SELECT DIGEST, SCHEMA_NAME, LEFT(DIGEST_TEXT, 200) AS DIGEST_TEXT, COUNT_STAR AS STATEMENTS,
 {memory}, {total} FROM performance_schema.events_statements_summary_by_digest
 WHERE DIGEST IS NOT NULL AND {memory_of} > 0 ORDER BY {memory_of} DESC LIMIT 20"""

DIGEST_TEXTS = """SELECT DIGEST, MAX(SCHEMA_NAME) AS SCHEMA_NAME, LEFT(MAX(DIGEST_TEXT), 200) AS DIGEST_TEXT
 FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST IN ({digests}) GROUP BY DIGEST"""

# InnoDB writes TRX_STARTED in the time zone of the operating system, whatever the session's is.
TRANSACTIONS = """SELECT TRX_ID, TRX_MYSQL_THREAD_ID AS PROCESSLIST_ID, TRX_LOCK_MEMORY_BYTES AS LOCK_BYTES,
 TRX_ROWS_LOCKED AS ROWS_LOCKED, TRX_ROWS_MODIFIED AS ROWS_MODIFIED,
 TIMESTAMPDIFF(SECOND, TRX_STARTED, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM')) AS SECONDS
 FROM information_schema.INNODB_TRX ORDER BY TRX_LOCK_MEMORY_BYTES + TRX_ROWS_MODIFIED DESC LIMIT 10"""

LARGEST_TRANSACTION = """SELECT TRX_ID, TRX_MYSQL_THREAD_ID AS PROCESSLIST_ID, TRX_LOCK_MEMORY_BYTES AS LOCK_BYTES,
 TRX_ROWS_LOCKED AS ROWS_LOCKED, TRX_ROWS_MODIFIED AS ROWS_MODIFIED,
 TIMESTAMPDIFF(SECOND, TRX_STARTED, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM')) AS SECONDS
 FROM information_schema.INNODB_TRX WHERE TRX_MYSQL_THREAD_ID = {session}"""

# Opens the tables' definitions: only asked where tables of the engine hold much.
MEMORY_TABLES = """SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, DATA_LENGTH + INDEX_LENGTH AS BYTES
 FROM information_schema.TABLES WHERE ENGINE = 'MEMORY' AND TABLE_SCHEMA NOT IN
 ('information_schema', 'performance_schema', 'mysql', 'sys') ORDER BY BYTES DESC LIMIT 10"""

HISTORY = "SELECT {columns} FROM information_schema.MEMDIAG_HISTORY WHERE RUN = 0 ORDER BY TIME"
HISTORY_POOLS = "SELECT TIME, POOL, LIVE_BYTES, DIRTY_BYTES FROM information_schema.MEMDIAG_HISTORY_POOLS WHERE RUN = 0 AND TIME IN ({times})"
LAST_RUNS = """SELECT RUN, STARTED, PROCESS, VERSION, SHUT_DOWN, MAX(TIME) AS LAST_TIME, COUNT(*) AS SAMPLES,
 MAX(RSS_BYTES) AS MAX_RSS_BYTES, MAX(RSS_PEAK_BYTES) AS RSS_PEAK_BYTES FROM information_schema.MEMDIAG_HISTORY
 WHERE RUN > 0 GROUP BY RUN, STARTED, PROCESS, VERSION, SHUT_DOWN ORDER BY RUN"""

# The Health Monitor, a component of MySQL 26.10, keeps a day of samples, one a minute by default.
HEALTH_PROCESS = """SELECT TIMESTAMP AS TIME, TIMESTAMPDIFF(SECOND, TIMESTAMP, UTC_TIMESTAMP()) AS AGE, VM_RSS, VM_SWAP
 FROM performance_schema.health_process_memory ORDER BY TIMESTAMP"""
HEALTH_SYSTEM = """SELECT TIMESTAMPDIFF(SECOND, TIMESTAMP, UTC_TIMESTAMP()) AS AGE, TOTAL_MEMORY, AVAILABLE, MEMORY_FREE,
 MEMORY_FS_CACHE, SWAP_TOTAL, SWAP_FREE FROM performance_schema.health_system_memory ORDER BY TIMESTAMP DESC LIMIT 1"""

MARIADB_SESSIONS = """SELECT ID AS PROCESSLIST_ID, USER, HOST, DB, COMMAND, TIME AS SECONDS, MEMORY_USED AS BYTES,
 MAX_MEMORY_USED AS HIGH_BYTES FROM information_schema.PROCESSLIST ORDER BY MEMORY_USED DESC LIMIT 50"""
