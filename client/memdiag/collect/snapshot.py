"""A snapshot: everything that one report needs of one server, as plain data that JSON can have.

{"format", "label", "time", "server": {...}, "host": {...}, "sources": {name: {"source", "rows", "error"}}}

A source that cannot be read has its reason and no rows; the rest is read all the same. Bytes, seconds, and times in
seconds since 1970.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from memdiag.collect import innodb_status, kernel, queries
from memdiag.collect.sources import Row, Source, failed
from memdiag.connect.session import Gone, Refused, Session

FORMAT = "memdiag-snapshot/1"
_GONE = "the server did not answer any more"
# A container's host name may have digits alone.
_WORDS = {
    "hostname",
    "version",
    "version_with_update",
    "version_comment",
    "datadir",
    "pid_file",
    "socket",
    "server_uuid",
}
# The Health Monitor has figures of the kernel under other names: (its table, {the kernel's name: the column}).
_HEALTH = {
    "process": ("health_process", {"VmRSS": "VM_RSS", "VmSwap": "VM_SWAP"}),
    "meminfo": (
        "health_system",
        {
            "MemTotal": "TOTAL_MEMORY",
            "MemAvailable": "AVAILABLE",
            "MemFree": "MEMORY_FREE",
            "Cached": "MEMORY_FS_CACHE",
            "SwapTotal": "SWAP_TOTAL",
            "SwapFree": "SWAP_FREE",
        },
    ),
}
# An older sample is no figure of now. One is taken each minute.
HEALTH_SECONDS = 150
MOST_SESSIONS = 50
MOST_STACKS = 200
Progress = Callable[[str], None]


def silent(_: str) -> None:
    pass


def take(session: Session, progress: Progress = silent, partial: bool = False) -> dict[str, Any]:
    """@param partial  a server that goes away meanwhile is no error: `gone` says so, and what was read stays"""
    return _Snapshot(session, progress, partial).take()


class _Snapshot:
    def __init__(self, session: Session, progress: Progress, partial: bool) -> None:
        self._session = session
        self._partial = partial
        self._known = False  # which server it is
        self._gone = False
        self._progress = progress
        self._sources: dict[str, Source] = {}

    def take(self) -> dict[str, Any]:
        began = time.time()
        self._progress("the server's settings and status")
        self._variables()
        server = self._server()
        pid = self._process_id()
        self._known = True
        if server["flavour"] == "memdiag":
            self._memdiag()
        self._progress("Performance Schema and InnoDB")
        self._performance_schema(server)
        self._sessions(server)
        self._innodb(server)
        self._progress("the kernel's figures")
        self._kernel(pid)
        self._conditional()
        return {
            "format": FORMAT,
            "label": self._session.target.label,
            "time": began,
            "seconds": round(time.time() - began, 3),
            "server": server | {"pid": pid or None},
            "local": bool(pid),
            "gone": self._gone,
            "sources": {name: one.plain() for name, one in self._sources.items()},
        }

    # Asking.

    def _ask(self, name: str, statement: str) -> list[Row]:
        shown = " ".join(statement.split())
        try:
            source = failed(shown, _GONE) if self._gone else Source(shown, self._session.rows(statement))
        except Refused as error:
            source = failed(shown, _explained(error))
        except Gone:
            if not (self._partial and self._known):
                raise
            self._gone = True
            source = failed(shown, _GONE)
        self._sources[name] = source
        return source.rows

    def _rows(self, name: str) -> list[Row]:
        source = self._sources.get(name)
        return source.rows if source else []

    # The server.

    def _variables(self) -> None:
        for name, statement in (("variables", queries.VARIABLES), ("status", queries.GLOBAL_STATUS)):
            rows = self._ask(name, statement)
            values = {row["VARIABLE_NAME"].lower(): row["VALUE"] for row in rows}
            for key in values.keys() - _WORDS:
                values[key] = _number(values[key])
            self._sources[name].rows = [values] if values else []

    def _server(self) -> dict[str, Any]:
        who = self._session.rows("SELECT VERSION() AS V, CURRENT_USER() AS U")[0]
        variables = (self._rows("variables") or [{}])[0]
        version, comment = who["V"], str(variables.get("version_comment", ""))
        tables = self._ask(
            "memdiag_tables",
            "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS"
            " WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME LIKE 'MEMDIAG\\_%'",
        )
        if "mariadb" in version.lower() or "mariadb" in comment.lower():
            flavour = "mariadb"
        elif any(row["TABLE_NAME"] == "MEMDIAG_LEDGER" for row in tables):
            flavour = "memdiag"
        elif "percona" in comment.lower():
            flavour = "percona"
        else:
            flavour = "mysql"
        return {
            "version": version,
            # Releases of one version: VERSION() does not tell them apart.
            "release": variables.get("version_with_update"),
            "comment": comment,
            "flavour": flavour,
            "account": who["U"],
            "hostname": variables.get("hostname"),
        }

    def _process_id(self) -> int:
        pid = self._session.server_process()
        variables, status = ((self._rows(name) or [{}])[0] for name in ("variables", "status"))
        uptime = status.get("uptime")
        if not pid and self._session.target.host in kernel.LOOPBACK:
            pid = kernel.pid_on_loopback(variables, uptime, self._session.target.port)
        return pid if pid and kernel.is_server(pid, uptime) else 0

    # This project's tables.

    def _memdiag(self) -> None:
        columns: dict[str, list[str]] = {}
        for row in self._rows("memdiag_tables"):
            columns.setdefault(row["TABLE_NAME"], []).append(row["COLUMN_NAME"])
        for table in queries.TABLES:
            if table in columns:
                self._progress(table)
                self._ask(table.lower(), f"SELECT * FROM information_schema.{table}")
        if "memdiag_sessions" in self._sources:
            self._sources["memdiag_sessions"].rows = of_largest(self._rows("memdiag_sessions"))
        for name in ("memdiag_instruments", "memdiag_routes"):
            # Most have never been used.
            if name in self._sources:
                self._sources[name].rows = [
                    row for row in self._rows(name) if row.get("LIVE_BYTES") or row.get("COUNTED_BYTES")
                ]
        self._progress("history")
        self._history(columns.get("MEMDIAG_HISTORY", []))
        self._ask("memdiag_last_run", queries.LAST_RUNS)
        self._profile(columns.get("MEMDIAG_PROFILE", []))

    def _history(self, columns: list[str]) -> None:
        wanted = [
            name
            for name in [
                "TIME",
                "RSS_BYTES",
                "SWAP_BYTES",
                "LIMIT_BYTES",
                "ALLOCATED_BYTES",
                "DIRTY_BYTES",
                "BUFFER_POOL_BYTES",
                "RSS_PEAK_BYTES",
                "RSS_PEAK_TIME",
                "RSS_PEAK_SESSION",
                "RSS_PEAK_SESSION_BYTES",
                "RSS_PEAK_DIGEST",
                "TREND_BYTES_PER_SECOND",
                "TREND_R2",
                "SECONDS_UNTIL_LIMIT",
            ]
            if name in columns
        ]
        if not wanted:
            return
        rows = self._ask("memdiag_history", queries.HISTORY.format(columns=", ".join(wanted)))
        kept = thinned(rows, "RSS_BYTES", queries.POINTS)
        self._sources["memdiag_history"].rows = kept
        times = [row["TIME"] for row in thinned(kept, "RSS_BYTES", 120)]
        if times:
            literals = ", ".join(f"'{_literal(moment)}'" for moment in times)
            self._ask("memdiag_history_pools", queries.HISTORY_POOLS.format(times=literals))
            self._sources["memdiag_history_pools"].source = "information_schema.MEMDIAG_HISTORY_POOLS"

    def _profile(self, columns: list[str]) -> None:
        """The heap profile's columns are discovered: the table is younger than this program."""
        if not columns:
            self._sources["memdiag_profile"] = failed(
                "information_schema.MEMDIAG_PROFILE", "this version of the server has no heap profile"
            )
            return
        order = " ORDER BY LIVE_BYTES DESC" if "LIVE_BYTES" in columns else ""
        names = ", ".join(f"`{name}`" for name in columns)
        rows = self._ask(
            "memdiag_profile", f"SELECT {names} FROM information_schema.MEMDIAG_PROFILE{order} LIMIT {MOST_STACKS}"
        )
        if rows:
            self._ask("memdiag_profile_svg", "SELECT memdiag_profile('svg') AS SVG")
        elif self._sources["memdiag_profile"].error is None:
            self._sources["memdiag_profile"].error = "the heap profiler is OFF, or has no sample yet"

    # Sources that every server has.

    def _performance_schema(self, server: dict[str, Any]) -> None:
        variables = (self._rows("variables") or [{}])[0]
        if str(variables.get("performance_schema", "")).upper() in ("OFF", "0"):
            for name in (
                "memory",
                "threads",
                "users",
                "prepared",
                "digests",
                "session_bytes",
                "watchers",
                "table_keepers",
            ):
                self._sources[name] = failed("performance_schema", "performance_schema is OFF")
            return
        memory = self._ask("memory", queries.MEMORY_BY_EVENT)
        self._ask("instruments", queries.INSTRUMENTS_OFF)
        self._ask("users", queries.USERS)
        self._ask("prepared", queries.PREPARED)
        columns = {
            (row["TABLE_NAME"].lower(), row["COLUMN_NAME"].upper())
            for row in self._ask(
                "columns",
                "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA ="
                " 'performance_schema' AND TABLE_NAME IN ('threads', 'events_statements_summary_by_digest',"
                " 'health_process_memory', 'health_system_memory')"
                " AND COLUMN_NAME IN ('TOTAL_MEMORY', 'MAX_TOTAL_MEMORY', 'VM_RSS', 'AVAILABLE')",
            )
        }
        if ("health_process_memory", "VM_RSS") in columns:
            samples = self._ask("health_process", queries.HEALTH_PROCESS)
            self._sources["health_process"].rows = thinned(samples, "VM_RSS", queries.POINTS)
        if ("health_system_memory", "AVAILABLE") in columns:
            self._ask("health_system", queries.HEALTH_SYSTEM)
        if ("threads", "TOTAL_MEMORY") in columns:
            self._ask("threads", queries.THREADS.format(memory="TOTAL_MEMORY", highest="MAX_TOTAL_MEMORY"))
        elif memory:
            self._ask("threads", queries.THREADS_SUMMED)
        elif reason := self._sources["memory"].error:
            # An account that may not read a table does not see its columns either.
            self._sources["threads"] = failed("performance_schema.threads", reason)
        if server["flavour"] != "memdiag":  # our server judges itself
            self._session_bytes(("threads", "TOTAL_MEMORY") in columns)
            self._table_keepers()
        self._ask("system_threads", queries.SYSTEM_THREADS)
        self._ask("watchers", queries.WATCHERS)
        self._digests(columns)
        threads = self._rows("threads")
        if threads and (threads[0].get("BYTES") or 0) > 16 << 20:
            self._ask("largest_session", queries.LARGEST_SESSION.format(thread=threads[0]["THREAD_ID"]))

    def _table_keepers(self) -> None:
        counted = self._ask("locks_are_counted", queries.LOCKS_ARE_COUNTED)
        if counted and not counted[0]["COUNTED"]:
            reason = "the instrument wait/lock/metadata/sql/mdl is off"
        elif (self._rows("status") or [{}])[0].get("performance_schema_metadata_lock_lost"):
            reason = "Performance Schema had no room for some locks (Performance_schema_metadata_lock_lost)"
        else:
            self._ask("table_keepers", queries.TABLE_KEEPERS)
            self._ask("lock_keepers", queries.LOCK_KEEPERS)
            self._ask("ddl_sessions", queries.DDL_SESSIONS)
            return
        for name in ("table_keepers", "lock_keepers", "ddl_sessions"):
            self._sources[name] = failed("performance_schema.metadata_locks", reason)

    def _session_bytes(self, summed: bool) -> None:
        memory = "t.TOTAL_MEMORY" if summed else "m.CURRENT_NUMBER_OF_BYTES_USED"
        idle = queries.idle_bytes(memory, "t.PROCESSLIST_COMMAND", "t.PROCESSLIST_TIME", timed=True)
        statement = queries.SESSION_BYTES if summed else queries.SESSION_BYTES_SUMMED
        self._ask("session_bytes", statement.format(idle=idle))

    def _digests(self, columns: set[tuple[str, str]]) -> None:
        largest = sorted(self._rows("memdiag_digests"), key=lambda row: -(row["PEAK_BYTES"] or 0))
        ours = [row["DIGEST"] for row in largest if row["DIGEST"]]
        if ours:
            quoted = ", ".join(f"'{digest}'" for digest in ours[:50])
            self._ask("digest_texts", queries.DIGEST_TEXTS.format(digests=quoted))
        if ("events_statements_summary_by_digest", "MAX_TOTAL_MEMORY") in columns:
            self._ask(
                "digests",
                queries.DIGESTS.format(
                    memory="MAX_TOTAL_MEMORY AS PEAK_BYTES",
                    total="NULL AS ACCUMULATED_BYTES",
                    memory_of="MAX_TOTAL_MEMORY",
                ),
            )
        else:
            self._sources["digests"] = failed(
                "performance_schema.events_statements_summary_by_digest",
                self._sources["memory"].error or "this version does not count memory by digest",
            )

    def _sessions(self, server: dict[str, Any]) -> None:
        if server["flavour"] == "mariadb":
            counted = self._rows("threads")[:1]
            first = self._ask("threads", queries.MARIADB_SESSIONS)[:1]
            if [row["PROCESSLIST_ID"] for row in counted] != [row["PROCESSLIST_ID"] for row in first]:
                # Performance Schema counts another session as the largest.
                self._sources.pop("largest_session", None)
            idle = queries.idle_bytes("p.MEMORY_USED", "p.COMMAND", "p.TIME", timed=False)
            self._ask("session_bytes", queries.MARIADB_SESSION_BYTES.format(idle=idle))
        rows = self._ask("sessions", queries.SLEEPING.format(table="performance_schema.processlist"))
        # MySQL has the table since 8.0.22. It is empty while performance_schema is OFF; at least this session is connected.
        if not rows or not rows[0]["SESSIONS"]:
            self._ask("sessions", queries.SLEEPING.format(table="information_schema.PROCESSLIST"))
        self._ask("system_sessions", queries.SYSTEM_SESSIONS)

    def _innodb(self, server: dict[str, Any]) -> None:
        self._ask("transactions", queries.TRANSACTIONS)
        if largest := self._rows("threads")[:1]:
            session = largest[0]["PROCESSLIST_ID"]
            self._ask("largest_transaction", queries.LARGEST_TRANSACTION.format(session=session))
        rows = self._ask("innodb_status", "SHOW ENGINE INNODB STATUS")
        if rows:
            # Its text shows statements of others; only figures are kept.
            text = str(rows[0].get("STATUS", ""))
            self._sources["innodb_status"].rows = innodb_status.figures(text)

    def _kernel(self, pid: int) -> None:
        if pid:
            self._sources |= kernel.process(pid) | kernel.machine()
            return
        reason = (
            "the server runs on another machine, or in a container whose processes are not visible here;"
            " run memdiag beside it"
        )
        for name in ("process", "allocator_library", "cgroup", "meminfo", "pressure"):
            self._sources[name] = failed("/proc", reason)
        for name, (table, names) in _HEALTH.items():
            last = (self._rows(table) or [{"AGE": None}])[-1]
            if last["AGE"] is None:
                continue
            if last["AGE"] > HEALTH_SECONDS:
                self._sources[name].error = f"{reason}; the Health Monitor's last sample is {last['AGE']} s old"
                continue
            figures = {figure: last[column] for figure, column in names.items() if last[column] is not None}
            self._sources[name] = Source(self._sources[table].source, [figures])

    def _conditional(self) -> None:
        """Asks what costs more, only where it matters."""
        memory = {row["EVENT_NAME"]: row["BYTES"] for row in self._rows("memory")}
        for row in self._rows("memdiag_instruments"):
            memory.setdefault(row["EVENT_NAME"], row.get("LIVE_BYTES"))
        engine = sum(size or 0 for name, size in memory.items() if name.startswith("memory/memory/"))
        if engine > 4 << 20:
            self._ask("memory_tables", queries.MEMORY_TABLES)


def of_largest(rows: list[Row]) -> list[Row]:
    """The rows of the sessions that hold most: a thousand sessions have a row for each of their pools."""
    sums: dict[tuple, int] = {}
    for row in rows:
        key = (row["HOLDER"], row["PROCESSLIST_ID"])
        sums[key] = sums.get(key, 0) + (row["BYTES"] or 0)
    kept = set(sorted(sums, key=lambda key: -sums[key])[:MOST_SESSIONS])
    return [row for row in rows if (row["HOLDER"], row["PROCESSLIST_ID"]) in kept]


def thinned(rows: list[Row], key: str, most: int) -> list[Row]:
    """At most so many rows: the one with the highest figure of each stretch, so that no peak is lost, and both ends."""
    if len(rows) <= most:
        return rows
    kept = [rows[0]]
    inner = rows[1:-1]
    stretches = most - 2
    for number in range(stretches):
        begin, end = (len(inner) * number // stretches, len(inner) * (number + 1) // stretches)
        stretch = inner[begin:end]
        if stretch:
            kept.append(max(stretch, key=lambda row: row.get(key) or 0))
    return [*kept, rows[-1]]


def _literal(epoch: float) -> str:
    return datetime.fromtimestamp(round(epoch, 6), timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")


def _number(text: Any) -> Any:
    if isinstance(text, str) and re.fullmatch(r"-?\d{1,20}", text):
        return int(text)
    return text


def _explained(error: Refused) -> str:
    if error.code in (1142, 1227, 1044, 1143):
        needed = "PROCESS" if "PROCESS" in error.message else "SELECT on this table"
        return f"this account may not read it: it lacks {needed}"
    if error.code in (1109, 1146, 1051):
        return "this server has no such table"
    if error.code in (3024, 1969, 1317):
        return "it took too long and was ended"
    return error.message
