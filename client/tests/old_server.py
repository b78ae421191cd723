"""A link to a server of another version, for tests where no package of it can be had.

It stands in for PyMySQL's module. It answers with rows that a real server gave (fixtures.py), and refuses what the
version does not have (versions.py) with the server's error. It keeps the statements.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from tests import fixtures
from tests.statements import Named, named
from tests.versions import FUNCTIONS, Server, Since, table, variable

NO_COLUMN, NO_TABLE, NO_SCHEMA_TABLE, NO_VARIABLE, NO_FUNCTION = (1054, 1146, 1109, 1193, 1305)


@functools.cache
def _recorded(name: str) -> dict[str, Any]:
    return fixtures.snapshot(name)["sources"]


GIB = 1 << 30
# The Health Monitor's tables: a sample each minute, the last one 20 seconds ago.
HEALTH: dict[str, dict[str, Any]] = {
    "health_process": {
        "rows": [
            {"TIME": 1795000000.0 + 60 * n, "AGE": 20 + 60 * (9 - n), "VM_RSS": GIB + n, "VM_SWAP": n}
            for n in range(10)
        ]
    },
    "health_system": {
        "rows": [
            {
                "AGE": 20,
                "TOTAL_MEMORY": 8 * GIB,
                "AVAILABLE": 5 * GIB,
                "MEMORY_FREE": 4 * GIB,
                "MEMORY_FS_CACHE": 2 * GIB,
                "SWAP_TOTAL": 3 * GIB,
                "SWAP_FREE": 2 * GIB,
            }
        ]
    },
}
# No session keeps tables open.
LOCKS: dict[str, dict[str, Any]] = {
    "locks_are_counted": {"rows": [{"COUNTED": 1}]},
    "table_keepers": {"rows": [{"KEEPERS": 0}]},
    "lock_keepers": {"rows": [{"LOCK_KEEPER": 1}]},
    "ddl_sessions": {"rows": [{"DDL_SESSION": 1}]},
}


class MySQLError(Exception):
    """As PyMySQL's: (number, text)."""


class OldServer:
    MySQLError = MySQLError

    def __init__(self, server: Server, fixture: str = "", schema: str = "ON") -> None:
        """`schema`: the variable performance_schema. Its tables are empty while it is OFF."""
        self.server = server
        self._schema = schema
        self.sent: list[str] = []
        self.refused: list[tuple[int, str]] = []
        name = fixture or ("mariadb-idle" if server.mariadb else "stock-idle")
        self.sources = _recorded(name)
        # Answers for sources that the real server did not have.
        self._others = _recorded("stock-leak") | HEALTH | LOCKS
        self.Connection = type("Connection", (_Session,), {"_server": self})

    def answer(self, statement: str) -> tuple[list[str], list[tuple]]:
        self.sent.append(statement)
        names = named(statement)
        try:
            self._check(names)
        except MySQLError as error:
            self.refused.append((error.args[0], statement))
            raise
        text = " ".join(statement.split())
        if text.startswith("SHOW ENGINE"):
            return ["Type", "Name", "Status"], [("InnoDB", "", _INNODB_STATUS)]
        if text.startswith("SHOW"):
            return ["Variable_name", "Value"], self._variables(text, names.variables)
        if not names.tables:
            known = {"VERSION()": self.server.name, "CURRENT_USER()": "memdiag@%"}
            row = tuple(known.get(one) for one in names.outputs.values())
            return list(names.outputs), [row] if row else []
        if names.tables == ["information_schema.columns"]:
            return list(names.outputs), self._columns(statement)
        return list(names.outputs), self._rows(names)

    def _has(self, since: Since) -> bool:
        return since.has(self.server)

    def _check(self, names: Named) -> None:
        columns: dict[str, Since] = {}
        for one in names.tables:
            known = table(one)
            if not any(map(self._has, known.values())):
                schema, _, name = one.partition(".")
                number = NO_SCHEMA_TABLE if schema == "information_schema" else NO_TABLE
                raise MySQLError(number, f"Unknown table '{name}' in {schema}")
            columns |= known
        if "*" not in columns:
            for name in sorted(names.columns):
                if not self._has(columns[name]):
                    raise MySQLError(NO_COLUMN, f"Unknown column '{name}'")
        for name in names.functions - FUNCTIONS:
            raise MySQLError(NO_FUNCTION, f"FUNCTION {name} does not exist")
        if not names.tables and len(names.variables) == 1 and not self._has(variable(names.variables[0])):
            raise MySQLError(NO_VARIABLE, f"Unknown system variable '{names.variables[0]}'")

    def _variables(self, text: str, names: list[str]) -> list[tuple]:
        source = "variables" if "VARIABLES" in text else "status"
        found = dict(self.sources[source]["rows"][0])
        if source == "variables":
            found |= {
                "version": self.server.name,
                "version_comment": self.server.comment,
                "performance_schema": self._schema,
            }
            if self._has(variable("version_with_update")):
                found["version_with_update"] = f"{self.server.version}.1"
        return [(name, str(found[name])) for name in names if self._has(variable(name)) and name in found]

    def _columns(self, statement: str) -> list[tuple]:
        result = []
        for one in ("threads", "events_statements_summary_by_digest", "health_process_memory", "health_system_memory"):
            for name, since in table(f"performance_schema.{one}").items():
                if f"'{one}'" in statement and f"'{name}'" in statement and self._has(since):
                    result.append((one, name))
        return result

    def _rows(self, names: Named) -> list[tuple]:
        wanted = set(names.outputs)
        if self._schema == "OFF" and "performance_schema." in names.tables[0]:
            counts = "COUNT(*)" in names.outputs.values()
            return [(0,) * len(wanted)] if counts else []
        for sources in (self.sources, self._others):
            for source in sources.values():
                rows = source["rows"]
                if rows and wanted <= set(rows[0]):
                    return [
                        tuple(None if expression == "NULL" else row[name] for name, expression in names.outputs.items())
                        for row in rows
                    ]
        return []


class _Session:
    """PyMySQL's connection and its cursor."""

    _server: OldServer

    def __init__(self, **_: Any) -> None:
        self.description: list[tuple[str]] = []
        self._rows: list[tuple] = []

    def connect(self, *_: Any) -> None:
        pass

    _request_authentication = _read_packet = _read_bytes = connect

    def close(self) -> None:
        pass

    @contextlib.contextmanager
    def cursor(self):
        yield self

    def execute(self, statement: str) -> None:
        names, self._rows = self._server.answer(statement)
        self.description = [(name,) for name in names]

    def fetchall(self) -> list[tuple]:
        return self._rows

    def __enter__(self) -> _Session:
        return self


_INNODB_STATUS = "Total large memory allocated 1\nDictionary memory allocated 854776\nHistory list length 3\n"
