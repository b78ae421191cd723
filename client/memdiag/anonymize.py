"""Snapshots without names of users, hosts, schemas, tables, files, control groups and accounts, and without texts and
digests of statements.

The same name has the same stand-in in all snapshots of one page, so that figures still can be told apart.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
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
_VARIABLES = {"hostname": "host", "server_uuid": "server", "datadir": "path", "socket": "path", "pid_file": "path"}
# TABLE_NAME of memdiag_tables and columns names tables of the server itself.
_TABLES = {"memory_tables"}
_KEPT_USERS = {None, "", "root", "background", "event_scheduler", "system user"}
# Texts that are no sentences: paths in them would be markup or operators.
_NO_PATHS = {"SVG", "FRAMES", "FOLDED", "PEAK_FRAMES"}

_END = r"\s,;:'\"()<>|="
# The kernel's own files have the same names everywhere, but for the folders of control groups.
_GROUPS = re.compile(rf"(/sys/fs/cgroup(?:/memory)?)/([^{_END}]+)")
_PATHS = re.compile(rf"(?<![\w/<])/(?!proc\b|sys\b)[^{_END}]+")
_DIGESTS = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{32})\b")
# Unknown functions of a library or a plugin: mysqld and the system's libraries have the same names everywhere.
_MODULES = re.compile(r"(?<![\w.+-])(?!mysqld\b|mariadbd\b|lib)[\w.+-]+?(?=\+0x[0-9a-f]+)")
_MOUNTED = {"mount_options", "file_system_options"}
# A value may have commas in quotes, or after a backslash.
_OPTION = re.compile(r'([^,=]+)=("[^"]*"|(?:\\.|[^,\\])*)')
# Keys whose values name neither hosts, accounts nor folders. Plain numbers of others stay, too.
_HARMLESS = {
    "cache",
    "compress",
    "data",
    "errors",
    "lookupcache",
    "local_lock",
    "mountproto",
    "mountvers",
    "nfsvers",
    "proto",
    "sec",
    "size",
    "vers",
}
_QUOTED = re.compile(r"'([^']*)'@'([^']*)'|'([^']+)'")
_OWN = re.compile(r"[A-Z0-9_]+|(?:performance_schema|information_schema)(?:\.\w+)?")


def anonymized(snapshot: dict[str, Any], names: Names | None = None) -> dict[str, Any]:
    """@param names  of the page's other snapshots"""
    return (names or Names()).snapshot(copy.deepcopy(snapshot))


class Names:
    """The stand-ins of one page."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._numbers: Counter[str] = Counter()

    def snapshot(self, data: dict[str, Any]) -> dict[str, Any]:
        data["label"] = self._stand_in("server", data["label"])
        server = data["server"]
        server["hostname"] = self._stand_in("host", server.get("hostname"))
        server["account"] = "user@host"
        for name, source in data["sources"].items():
            source["source"] = self._text(source["source"])
            if source.get("error"):
                source["error"] = self._message(source["error"])
            for row in source["rows"]:
                self._row(name, row)
        # Sentences that quote a name: advice, errors, statements with literals.
        return self._replaced(data)

    def problem(self, words: str, known: dict[str, str]) -> str:
        """A line on a server that could not be asked. @param known  names in it, by the stand-in"""
        named = {name: self._known(kind, name) for kind, name in known.items() if name and name != "localhost"}
        words = self._message(words)
        for name in sorted(named, key=len, reverse=True):
            words = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", named[name], words)
        return words

    def _row(self, source: str, row: dict[str, Any]) -> None:
        for column, value in row.items():
            if not isinstance(value, str):
                continue
            if column == "DIGEST_TEXT":
                row[column] = None
            elif column.endswith("DIGEST"):
                row[column] = self._stand_in("digest", value)
            elif source in _TABLES and column == "TABLE_NAME":
                row[column] = self._stand_in("table", value)
            elif column in _COLUMNS:
                kind = _COLUMNS[column]
                if not (kind == "user" and value in _KEPT_USERS):
                    row[column] = self._stand_in(kind, value)
            elif source == "variables" and column in _VARIABLES:
                row[column] = self._stand_in(_VARIABLES[column], value)
            elif column == "VALUE" and row.get("NAME") in _MOUNTED:
                row[column] = _OPTION.sub(self._option, value)
            elif column in _NO_PATHS:
                row[column] = self._stack(value)
            elif re.match(r"/(?!proc/|sys/)", value):
                row[column] = self._stand_in("path", value)
            else:
                row[column] = self._text(value)

    def _text(self, text: str) -> str:
        text = _GROUPS.sub(self._group, text)
        text = _PATHS.sub(lambda found: self._known("path", found[0]), text)
        return _DIGESTS.sub(lambda found: self._known("digest", found[0]), text)

    def _stack(self, text: str) -> str:
        text = _MODULES.sub(lambda found: self._known("module", found[0]), text)
        return _DIGESTS.sub(lambda found: self._known("digest", found[0]), text)

    def _option(self, found: re.Match[str]) -> str:
        key, value = found.groups()
        if key in _HARMLESS or value.isdecimal():
            return found[0]
        return f"{key}={self._known('option', value)}" if value else found[0]

    def _message(self, text: str) -> str:
        """The server quotes names."""

        def stand_in(found: re.Match[str]) -> str:
            user, host, name = found.groups()
            if name is None:
                if user not in _KEPT_USERS:
                    user = self._known("user", user)
                if host not in ("", "%", "localhost"):
                    host = self._known("host", host)
                return f"'{user}'@'{host}'"
            if name in _KEPT_USERS or _OWN.fullmatch(name):
                return found[0]
            kind = next((kind for kind, one in self._names if one == name), "name")
            return f"'{self._known(kind, name)}'"

        return self._text(_QUOTED.sub(stand_in, text))

    def _group(self, found: re.Match[str]) -> str:
        """The file's name says which figure it is, and stays."""
        whole = found[2].rstrip("/")
        folder, _, name = whole.rpartition("/")
        if not name.startswith(("memory.", "cgroup.")):
            folder, name = whole, ""
        group = f"/{self._known('group', folder)}" if folder else ""
        return f"{found[1]}{group}{'/' if name else ''}{name}"

    def _known(self, kind: str, name: str) -> str:
        return str(self._stand_in(kind, name))

    def _stand_in(self, kind: str, name: str | None) -> str | None:
        if not name:
            return name
        if (kind, name) not in self._names:
            self._numbers[kind] += 1
            self._names[kind, name] = f"{kind}{self._numbers[kind]}"
        return self._names[kind, name]

    def _replaced(self, data: Any) -> Any:
        """Names in sentences; short ones are left, as they would hit other words."""
        names = {
            name: stand_in
            for (kind, name), stand_in in self._names.items()
            if kind not in ("path", "program", "module", "group", "option") and len(name) >= 4 and name != "localhost"
        }
        if not names:
            return data
        pattern = re.compile(
            r"(?<![\w-])(" + "|".join(map(re.escape, sorted(names, key=len, reverse=True))) + r")(?![\w-])"
        )
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
