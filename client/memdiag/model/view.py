"""Questions to a snapshot. A figure that is not there is None; nothing is ever taken for 0."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

# The oldest whose statements are known: client/tests/versions.py.
OLDEST = {"mariadb": (10, 6)}
OLDEST_MYSQL = (8, 0)

# Rows of the source transactions.
MOST_TRANSACTIONS = 10

FLAVOURS = {"memdiag": "MySQL with memdiag", "mysql": "MySQL", "percona": "Percona Server", "mariadb": "MariaDB"}


@dataclass(frozen=True)
class View:
    data: dict[str, Any]

    @property
    def label(self) -> str:
        return self.data["label"]

    @property
    def flavour(self) -> str:
        return self.data["server"]["flavour"]

    @property
    def ours(self) -> bool:
        return self.flavour == "memdiag"

    @property
    def product(self) -> str:
        return f"{FLAVOURS.get(self.flavour, 'MySQL')} {self.data['server']['version']}"

    @property
    def too_old(self) -> str:
        """A line on a version that memdiag does not know; "": it does."""
        found = re.match(r"(\d+)\.(\d+)", self.data["server"]["version"])
        oldest = OLDEST.get(self.flavour, OLDEST_MYSQL)
        if not found or (int(found[1]), int(found[2])) >= oldest:
            return ""
        return (
            f"{self.product} is older than {'.'.join(map(str, oldest))}, the oldest that memdiag knows;"
            " figures that it does not have read unknown"
        )

    def rows(self, source: str) -> list[Row]:
        return self.data["sources"].get(source, {}).get("rows") or []

    def row(self, source: str) -> Row:
        rows = self.rows(source)
        return rows[0] if rows else {}

    def error(self, source: str) -> str | None:
        """The reason why a source has no rows; None where it was read."""
        found = self.data["sources"].get(source)
        return "it was not asked" if found is None else found.get("error")

    def origin(self, source: str) -> str:
        """Where its figures are from, short: a table or a file."""
        text = self.data["sources"].get(source, {}).get("source", source)
        if text.startswith("SHOW"):
            return " ".join(text.split(" WHERE ")[0].split())
        if " FROM " in text:
            table = text.split(" FROM ", 1)[1].split()[0]
            return table.replace("information_schema.", "INFORMATION_SCHEMA.") if "." in table else table
        return text

    def variable(self, name: str) -> Any:
        return self.row("variables").get(name)

    def status(self, name: str) -> int | None:
        value = self.row("status").get(name.lower())
        return value if isinstance(value, int) else None

    def may_end(self, session: int) -> bool:
        """Whether KILL of it harms nothing else: it is no thread of the server or of replication, and does not watch the
        server. False where that is not known."""
        listed = [name for name in ("system_sessions", "system_threads", "watchers") if self.error(name) is None]
        if not {"system_sessions", "system_threads"} & set(listed):
            return False
        return all(row["SYSTEM_SESSION"] != session for name in listed for row in self.rows(name))

    def transaction_of(self, session: int) -> tuple[bool, Row | None]:
        """(known, the session's open transaction)."""
        if self.error("transactions") is not None:
            return False, None
        rows = self.rows("transactions")
        for row in [*rows, *self.rows("largest_transaction")]:
            if row["PROCESSLIST_ID"] == session:
                return True, row
        if self.error("largest_transaction") is None and session == self.row("threads").get("PROCESSLIST_ID"):
            return True, None
        # The list has those with most.
        return len(rows) < MOST_TRANSACTIONS, None

    # Memory of the process and its limits.

    @property
    def rss(self) -> int | None:
        """VmRSS. The ledger's rows add up to it exactly at the ledger's moment, so that comes first."""
        resident = self._ledger_sum
        return self.host("process", "VmRSS") if resident is None else resident

    @property
    def rss_source(self) -> str:
        if self._ledger_sum is not None:
            return "INFORMATION_SCHEMA.MEMDIAG_LEDGER, the sum of its rows"
        return f"VmRSS of {self.copied('process', '/proc/<pid>/status')}"

    def copied(self, source: str, file: str) -> str:
        """Where the kernel's figures of a source are from: its file, or the Health Monitor's table with a copy of them."""
        table = self.origin(source)
        return table if table.startswith("performance_schema.") else file

    @property
    def _ledger_sum(self) -> int | None:
        rows = self.rows("memdiag_ledger")
        return total(row["RESIDENT_BYTES"] for row in rows) if rows else None

    @property
    def rss_peak(self) -> int | None:
        return self.host("process", "VmHWM")

    @property
    def swapped(self) -> int | None:
        return self.host("process", "VmSwap")

    def host(self, subject: str, name: str) -> int | float | None:
        """A figure of the kernel: from our server's table, which also serves remote servers, else read here."""
        for row in self.rows("memdiag_host"):
            if row["SUBJECT"] == subject and row["NAME"] == name:
                return _whole(row["NUMBER"])
        source = {"memory": "meminfo"}.get(subject, subject)
        value = self.row(source).get(name)
        return value if isinstance(value, (int, float)) else None

    @property
    def limit(self) -> Limit | None:
        """The limit of the control group with the least room, or the machine's memory."""
        return self._or_machine(self.cgroup_limit)

    @property
    def lowest_limit(self) -> Limit | None:
        """The server cannot have more. A group above may have less room, and a higher limit."""
        return self._or_machine(self.lowest_cgroup_limit)

    def _or_machine(self, found: Limit | None) -> Limit | None:
        machine = self.host("memory", "MemTotal")
        if machine is None:
            return found
        if found and found.bytes <= machine:
            return found
        available = self.host("memory", "MemAvailable")
        used = None if available is None else int(machine - available)
        return Limit("the machine's memory", int(machine), used, self.copied("meminfo", "/proc/meminfo"))

    @property
    def cgroup_limit(self) -> Limit | None:
        """That of the group with the least room, which ends the server."""
        limit, room = self.host("cgroup", "room_limit"), self.host("cgroup", "effective_room")
        if limit is not None and room is not None:
            folder = self._host_source("cgroup", "room_limit").rpartition("/")[0]
            return Limit("the control group's limit", int(limit), int(limit - room), folder)
        return self._local_limit(lambda row: row["limit"] - _used(row)) or self.lowest_cgroup_limit

    @property
    def lowest_cgroup_limit(self) -> Limit | None:
        limit = self.host("cgroup", "effective_limit")
        if limit is None:
            return self._local_limit(lambda row: row["limit"])
        source = self._host_source("cgroup", "effective_limit")
        return Limit("the control group's limit", int(limit), None, source)

    def _local_limit(self, order: Callable[[Row], int]) -> Limit | None:
        """That of the first group, as it is read here."""
        limited = sorted((row for row in self.rows("cgroup") if row.get("limit")), key=order)
        return next(
            (Limit("the control group's limit", row["limit"], _used(row), row["folder"]) for row in limited), None
        )

    def _host_source(self, subject: str, name: str) -> str:
        for row in self.rows("memdiag_host"):
            if row["SUBJECT"] == subject and row["NAME"] == name:
                return row["SOURCE"]
        return "INFORMATION_SCHEMA.MEMDIAG_HOST"

    # Parts.

    @property
    def page_bytes(self) -> int:
        return self.status("Innodb_page_size") or 16384

    @property
    def buffer_pool(self) -> int | None:
        """Resident bytes of the buffer pool; on stock those of pages that hold something, huge or not."""
        if self.ours and (rows := self.rows("memdiag_ledger")):
            return total(row["RESIDENT_BYTES"] for row in rows if row["COMPONENT"] == "buffer_pool")
        pages = self.status("Innodb_buffer_pool_pages_total")
        free = self.status("Innodb_buffer_pool_pages_free")
        if pages is None or free is None:
            return None
        return (pages - free) * self.page_bytes

    @property
    def huge_pages(self) -> int | None:
        """Of large_pages=ON. RSS does not count them, and the system keeps them reserved when the server frees them."""
        held = self.host("process", "HugetlbPages")
        return None if held is None else int(held)

    def huge_outside(self, limit: int, pool: int) -> int:
        """The huge pages of a pool that do not count against this limit. A control group does not count them, and the
        machine's memory has them, too."""
        machine = self.host("memory", "MemTotal")
        held = min(self.huge_pages or 0, pool)
        return held if machine is None else max(0, min(held, int(machine) - limit))

    @property
    def pool_in_rss(self) -> int | None:
        """The part of the buffer pool that RSS counts. The ledger has no other."""
        pool, huge = self.buffer_pool, self.huge_pages
        if pool is None or (self.ours and self.rows("memdiag_ledger")):
            return pool
        if huge is None and str(self.variable("large_pages")).upper() in ("ON", "1"):
            return None
        return max(0, pool - (huge or 0))

    @property
    def outside(self) -> int | None:
        """Resident memory besides the buffer pool, which is as large as its user made it."""
        rss, pool = self.rss, self.pool_in_rss
        return None if rss is None or pool is None else max(0, rss - pool)

    @property
    def instruments(self) -> dict[str, int]:
        """Bytes by instrument, as Performance Schema counts them."""
        return {row["EVENT_NAME"]: row["BYTES"] for row in self.rows("memory") if row["BYTES"]}

    @property
    def counted(self) -> int | None:
        """Bytes that Performance Schema counts, without the buffer pool, which it counts whole."""
        if not self.rows("memory"):
            return None
        return sum(
            row["BYTES"] or 0
            for row in self.rows("memory")
            if not row["EVENT_NAME"].startswith("memory/innodb/buf_buf_pool")
        )

    @property
    def allocated(self) -> int | None:
        """MariaDB's own count of what it has allocated, resident or not. It counts without Performance Schema."""
        return self.status("Memory_used") if self.flavour == "mariadb" else None

    def pool_states(self) -> dict[str, dict[str, int | None]]:
        """{pool: {state: resident bytes}} of the ledger."""
        found: dict[str, dict[str, int | None]] = {}
        for row in self.rows("memdiag_ledger"):
            if row["COMPONENT"] == "pool":
                found.setdefault(row["NAME"], {})[row["STATE"]] = row["RESIDENT_BYTES"]
        return found

    @property
    def unused(self) -> int | None:
        """Unused pages of all pools, which a purge gives back."""
        pools = self.pool_states().values()
        return total(unused_of(states) for states in pools) if pools else None


def unused_of(states: dict[str, int | None]) -> int | None:
    """Of one pool. A state that the ledger does not list has nothing."""
    return total(states.get(state, 0) for state in ("dirty", "muzzy"))


@dataclass(frozen=True)
class Limit:
    what: str
    bytes: int
    used: int | None
    source: str

    @property
    def used_percent(self) -> float | None:
        return None if self.used is None else 100.0 * self.used / self.bytes


def _used(row: Row) -> int:
    """Page cache that the kernel takes back is no use of memory."""
    return max(0, row["usage"] - (row.get("reclaimable_cache") or 0))


def total(values: Iterable[int | None]) -> int | None:
    """None if one part is not known, as the sum then is not either."""
    known = list(values)
    return None if any(value is None for value in known) else sum(known)  # type: ignore[arg-type]


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
