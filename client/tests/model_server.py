"""A small model of a stock server's memory: what a snapshot shows of it, and what a remedy does to it."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import Any

from memdiag.judge.holders import BY_NAME, bytes_by_holder, holder_of
from memdiag.model.view import View

from tests.builder import MIB, instrument, stock

OWN = 3  # the session of memdiag


@dataclass
class One:
    """A session."""

    number: int
    command: str = "Sleep"
    seconds: int = 5
    memory: dict[str, int] = field(default_factory=dict)
    changed: int | None = None  # rows of its open transaction; None: it has none
    locks: int = 0
    kept: str = ""  # a source: KILL would do harm

    @property
    def bytes(self) -> int:
        return sum(self.memory.values())


@dataclass
class ModelServer:
    sessions: list[One] = field(default_factory=list)
    caches: dict[str, int] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)  # MEMORY tables
    variables: dict[str, int] = field(default_factory=lambda: {"key_buffer_size": 256 * MIB})
    resident: float = 1.0  # part of what is allocated

    # The tables that it shows.

    def instruments(self) -> dict[str, int]:
        sums = dict(self.caches)
        for one in self.sessions:
            for name, held in one.memory.items():
                sums[name] = sums.get(name, 0) + held
        if self.tables:
            sums["memory/memory/HP_PTRS"] = sum(self.tables.values())
        return sums

    def snapshot(self) -> dict[str, Any]:
        memory = self.instruments()
        threads = sorted(self.sessions, key=lambda one: -one.bytes)[:50]
        largest = sorted(threads[0].memory.items(), key=lambda one: -one[1])[:12] if threads else []
        clients = [one for one in self.sessions if one.kept != "system_sessions"]
        open_ = [one for one in self.sessions if one.changed is not None]
        open_.sort(key=lambda one: -(one.locks + (one.changed or 0)))

        def idle(seconds: int) -> int:
            return sum(one.bytes for one in clients if self._idle(one, seconds))

        return stock(
            114 * MIB + int(sum(memory.values()) * self.resident),
            memory=[instrument(name, held) for name, held in memory.items()],
            threads=[
                {
                    "THREAD_ID": one.number + 30,
                    "PROCESSLIST_ID": one.number,
                    "USER": "app",
                    "COMMAND": one.command,
                    "SECONDS": one.seconds,
                    "BYTES": one.bytes,
                }
                for one in threads
            ],
            largest_session=[{"EVENT_NAME": name, "BYTES": held} for name, held in largest if held > 65536],
            transactions=[_transaction(one) for one in open_[:10]],
            largest_transaction=[_transaction(one) for one in open_ if threads and one is threads[0]],
            sessions=[{"SESSIONS": len(clients), "SLEEPING": sum(one.command == "Sleep" for one in clients)}],
            session_bytes=[
                {"SESSION_BYTES": sum(one.bytes for one in clients)}
                | {f"IDLE_{seconds}_BYTES": idle(seconds) for seconds in (60, 600, 3600)}
            ],
            memory_tables=[
                {"TABLE_SCHEMA": "s", "TABLE_NAME": name, "BYTES": held, "TABLE_ROWS": 1}
                for name, held in sorted(self.tables.items(), key=lambda one: -one[1])[:10]
            ],
            variables=[dict(self.variables)],
            table_keepers=[{"KEEPERS": 0}],
            lock_keepers=[{"LOCK_KEEPER": one.number} for one in self.sessions if one.kept == "lock_keepers"],
            ddl_sessions=[{"DDL_SESSION": one.number} for one in self.sessions if one.kept == "ddl_sessions"],
            **{
                source: [{"SYSTEM_SESSION": one.number} for one in self.sessions if one.kept == source]
                for source in ("system_sessions", "system_threads", "watchers")
            },
        )

    @staticmethod
    def _idle(one: One, seconds: int) -> bool:
        return one.command == "Sleep" and one.seconds >= seconds and one.changed is None

    # The effects of a remedy.

    def held(self, holder: str) -> int:
        """As the report counts it."""
        if holder == "sessions":
            return sum(one.bytes for one in self.sessions)
        if holder.startswith("session "):
            return sum(one.bytes for one in self.sessions if f"session {one.number}" == holder)
        return bytes_by_holder(View(self.snapshot())).get(holder, 0)

    def run(self, statement: str) -> list[One]:
        """@return the sessions that it ends. @raises AssertionError: the statement is none that this knows"""
        if found := re.fullmatch(r"KILL (\d+)", statement):
            return self._end([one for one in self.sessions if one.number == int(found[1])])
        if found := re.fullmatch(
            r"SELECT CONCAT\('KILL ', ID\) AS RUN FROM \S+ WHERE COMMAND = 'Sleep' AND TIME >= (\d+)"
            r" AND ID IN \(SELECT PROCESSLIST_ID FROM performance_schema.events_statements_current"
            r" JOIN performance_schema.threads USING \(THREAD_ID\) WHERE TIMER_END \+ (?:\1)000000000000\.0 <= \(.*\)\)"
            r" AND NOT \(USER IN \('system user', 'event_scheduler'\) OR COMMAND IN \([^)]+\)"
            r" OR ID = CONNECTION_ID\(\) OR USER LIKE '%exporter%'\)"
            r" AND ID NOT IN \(SELECT TRX_MYSQL_THREAD_ID FROM information_schema.INNODB_TRX\)"
            r" AND ID NOT IN \(SELECT PROCESSLIST_ID FROM performance_schema.metadata_locks .*\)"
            r" AND ID NOT IN \(SELECT PROCESSLIST_ID AS SYSTEM_SESSION FROM performance_schema.session_connect_attrs .*\) ORDER BY TIME DESC",
            statement,
        ):
            named = [one for one in self.sessions if self._idle(one, int(found[1]))]
            harmless = [one for one in named if one.kept not in ("system_sessions", "system_threads", "watchers")]
            return self._end([one for one in harmless if one.number != OWN])
        if found := re.fullmatch(r"ALTER TABLE `s`.`(\w+)` ENGINE = InnoDB", statement):
            del self.tables[found[1]]
        elif found := re.fullmatch(r"SET GLOBAL key_buffer_size = (\d+)", statement):
            part = int(found[1]) / self.variables["key_buffer_size"]
            self._cut("MyISAM key cache", part)
        elif statement == "FLUSH LOCAL TABLES":
            self._cut("open tables", 0)
            if not self.caches.get("memory/sql/THD::sp_cache"):  # the programs are triggers'
                self._cut("stored programs", 0)
        elif statement == BY_NAME["full-text caches"].statement:
            self._cut("full-text caches", 0)
        else:
            raise AssertionError(statement)
        return []

    def _end(self, ended: list[One]) -> list[One]:
        self.sessions = [one for one in self.sessions if one not in ended]
        return ended

    def _cut(self, holder: str, part: float) -> None:
        for name in self.caches:
            if (of := holder_of(name)) and of.name == holder:
                self.caches[name] = int(self.caches[name] * part)


def _transaction(one: One) -> dict[str, Any]:
    return {
        "TRX_ID": one.number,
        "PROCESSLIST_ID": one.number,
        "LOCK_BYTES": one.locks,
        "ROWS_LOCKED": one.locks // 100,
        "ROWS_MODIFIED": one.changed,
        "SECONDS": one.seconds,
    }


OF_SESSIONS = (
    "memory/sql/user_var_entry::value",
    "memory/sql/Prepared_statement::main_mem_root",
    "memory/sql/NET::buff",
    "memory/sql/THD::main_mem_root",
    "memory/sql/JOIN_CACHE",
    "memory/sql/String::value",
    "memory/sql/something else",
)
# Performance Schema counts them for the session that brought them in, and they stay when it ends.
OF_THE_SERVER = (
    "memory/sql/TABLE",
    "memory/sql/sp_head::main_mem_root",
    "memory/mysys/KEY_CACHE",
    "memory/innodb/fts0fts",
    "memory/mysys/IO_CACHE",
    "memory/performance_schema/x",
    "memory/sql/dd::objects",
)


def generated(seed: int) -> ModelServer:
    """One holder or two, few sessions or a storm, and bystanders."""
    dice = random.Random(seed)
    number = dice.choice((1, 2, 5, 30, 250, 600))
    server = ModelServer(resident=dice.choice((1.0, 1.0, 0.7, 0.4, 1.4)))
    for place in range(number):
        one = One(
            10 + place,
            dice.choice(("Sleep", "Sleep", "Sleep", "Query")),
            dice.choice((0, 5, 70, 700, 4000)),
            {"memory/sql/THD::main_mem_root": dice.randint(10, 400) << 10},
        )
        if dice.random() < 0.2:
            one.changed, one.locks = dice.choice((0, 1, 5000)), dice.choice((1128, 1 << 20, 200 * MIB))
            one.memory["memory/innodb/lock0lock"] = one.locks
        one.kept = dice.choice(("",) * 12 + ("system_sessions", "system_threads", "watchers"))
        if one.command == "Query" and not one.kept and dice.random() < 0.1:
            one.kept = "ddl_sessions"
        server.sessions.append(one)
    server.sessions.append(One(OWN, "Query", 0, {"memory/sql/THD::main_mem_root": 1500 << 10}, kept="system_sessions"))
    for _ in range(dice.choice((1, 2))):
        where, size = dice.random(), dice.choice((50, 100, 300, 900)) * MIB
        if where < 0.5:
            name = dice.choice(OF_SESSIONS)
            owners = dice.choices(server.sessions, k=dice.choice((1, 1, 2, number)))
            for one in owners:
                one.memory[name] = one.memory.get(name, 0) + size // len(owners)
        elif where < 0.85:
            name = dice.choice(OF_THE_SERVER)
            server.caches[name] = size
            if "sp_head" in name and dice.random() < 0.5:  # sessions have cached them
                server.caches["memory/sql/THD::sp_cache"] = dice.choice((100, 5000))
        else:
            for table in range(dice.choice((1, 3, 40))):
                server.tables[f"t{table}"] = size // dice.choice((1, 2, 9))
    return server


def recorded(data: dict[str, Any]) -> ModelServer:
    """The parts of a recorded stock server that a remedy can free."""
    server = ModelServer(variables=dict(data["sources"]["variables"]["rows"][0]))
    view = View(data)
    rest = {row["EVENT_NAME"]: max(0, row["BYTES"]) for row in view.rows("memory")}
    own = {row["SYSTEM_SESSION"] for row in view.rows("system_sessions")}
    for place, row in enumerate(view.rows("threads")):
        parts = {one["EVENT_NAME"]: one["BYTES"] for one in view.rows("largest_session")} if place == 0 else {}
        one = One(row["PROCESSLIST_ID"], row["COMMAND"], row["SECONDS"], {"memory/sql/others": row["BYTES"]})
        for name, held in parts.items():
            if (holder := holder_of(name)) and holder.of_sessions:
                held = min(held, rest[name])
                one.memory[name] = held
                one.memory["memory/sql/others"] -= held
                rest[name] -= held
        one.kept = "system_sessions" if row["PROCESSLIST_ID"] in own else ""
        for transaction in view.rows("transactions"):
            if transaction["PROCESSLIST_ID"] == one.number:
                one.changed, one.locks = transaction["ROWS_MODIFIED"], transaction["LOCK_BYTES"]
        server.sessions.append(one)
    server.tables = {row["TABLE_NAME"]: row["BYTES"] for row in view.rows("memory_tables")}
    server.caches = {
        name: held for name, held in rest.items() if held and not (server.tables and name.startswith("memory/memory/"))
    }
    return server
