"""A snapshot without names of users, hosts, schemas, tables, files and accounts, and without texts of statements.

The same name has the same stand-in within one snapshot, so that figures still can be told apart.
"""

from __future__ import annotations

import copy
import re
from typing import Any

# Columns of names, by the stand-in.
_COLUMNS = {
    "USER": "user",
    "HOST": "host",
    "DB": "schema",
    "SCHEMA_NAME": "schema",
    "TABLE_SCHEMA": "schema",
    "PROGRAM": "program",
}
# TABLE_NAME of memdiag_tables and columns names tables of the server itself.
_TABLES = {"memory_tables"}
_KEPT_USERS = {None, "", "root", "background", "event_scheduler", "system user"}
_PATHS = re.compile(r"(?<![\w/])/(?!proc\b|sys\b)[\w.+@%-]+(?:/[\w.+@%-]+)*/?")


def anonymized(snapshot: dict[str, Any]) -> dict[str, Any]:
    return _Names().snapshot(copy.deepcopy(snapshot))


class _Names:
    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}

    def snapshot(self, data: dict[str, Any]) -> dict[str, Any]:
        data["label"] = self._stand_in("server", data["label"])
        server = data["server"]
        server["hostname"] = self._stand_in("host", server.get("hostname"))
        server["account"] = "user@host"
        for name, source in data["sources"].items():
            source["source"] = _PATHS.sub(self._path, source["source"])
            for row in source["rows"]:
                self._row(name, row)
        # Sentences that quote a name: advice, errors, statements with literals.
        return self._replaced(data)

    def _row(self, source: str, row: dict[str, Any]) -> None:
        for column, value in row.items():
            if not isinstance(value, str):
                continue
            if column == "DIGEST_TEXT":
                row[column] = None
            elif source in _TABLES and column == "TABLE_NAME":
                row[column] = self._stand_in("table", value)
            elif column in _COLUMNS:
                kind = _COLUMNS[column]
                if not (kind == "user" and value in _KEPT_USERS):
                    row[column] = self._stand_in(kind, value)
            elif source == "variables" and column in (
                "hostname",
                "datadir",
                "socket",
                "pid_file",
            ):
                row[column] = self._stand_in("path", value)
            else:
                row[column] = _PATHS.sub(self._path, value)

    def _path(self, match: re.Match[str]) -> str:
        return self._stand_in("path", match[0])

    def _stand_in(self, kind: str, name: str | None) -> str | None:
        if not name:
            return name
        known = [key for key in self._names if key[0] == kind]
        return self._names.setdefault((kind, name), f"{kind}{len(known) + 1}")

    def _replaced(self, data: Any) -> Any:
        """Names in sentences; short ones are left, as they would hit other words."""
        names = {
            name: stand_in
            for (kind, name), stand_in in self._names.items()
            if kind not in ("path", "program")
            and len(name) >= 4
            and name != "localhost"
        }
        if not names:
            return data
        pattern = re.compile(
            r"(?<![\w-])(" + "|".join(map(re.escape, sorted(names, key=len, reverse=True))) + r")(?![\w-])"
        )  # fmt: skip
        skipped = set(self._names.values())

        def walk(value: Any, key: str = "") -> Any:
            if isinstance(value, dict):
                return {name: walk(one, name) for name, one in value.items()}
            if isinstance(value, list):
                return [walk(one, key) for one in value]
            if (
                isinstance(value, str)
                and value not in skipped
                and key in ("EVIDENCE", "REMEDY", "source", "error", "STATEMENT")
            ):
                return pattern.sub(lambda match: names[match[1]], value)
            return value

        return walk(data)
