"""Sessions with a server over its Unix socket, by pymysql.

pymysql is imported when the first session begins: --help needs no library. A server that is not there or goes away
raises OSError, and an answer that is an error raises SqlError.
"""

import contextlib
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harness.libraries import library

# Error numbers of the client library; all others are the server's.
_CLIENT_ERRORS = range(2000, 3000)
_COM_QUERY = 0x03
_COM_BINLOG_DUMP = 0x12
_COM_STMT_PREPARE = 0x16
_COM_STMT_EXECUTE = 0x17
_CURSOR_TYPE_READ_ONLY = 1


class SqlError(Exception):
    """The server answered with an error; `code` is MySQL's error number."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"MySQL error {code}: {message}")
        self.code = code
        self.message = message


class ConnectionLost(ConnectionError):
    """The server closed the connection, or did not answer in time."""


@dataclass(frozen=True)
class Result:
    """Column names and rows of one statement; NULL is None, every other value is text as the server sent it."""

    columns: list[str]
    rows: list[tuple[str | None, ...]]
    affected: int = 0

    def dicts(self) -> list[dict[str, str | None]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def scalar(self) -> str | None:
        """The single value of a one-row, one-column answer."""
        if len(self.rows) != 1 or len(self.rows[0]) != 1:
            raise ValueError(f"expected one value, got {len(self.rows)} rows of {len(self.columns)} columns")
        return self.rows[0][0]


class Connection:
    """One session, of an account without a password. Not for use by several threads at once."""

    def __init__(
        self, socket_path: Path | str, database: str = "", user: str = "root", timeout: float | None = None
    ) -> None:
        """`timeout`: seconds to wait for an answer; None waits for ever."""
        self._pymysql = library("pymysql", "python3-pymysql")
        # pymysql connects with a time-out always. With one, a full queue of the socket is an error at once; without
        # one, connect() waits for its turn.
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.settimeout(timeout)
            link.connect(str(socket_path))
            with self._errors():
                self._session = self._pymysql.connect(
                    user=user,
                    database=database or None,
                    conv={},  # no conversion: values stay text
                    autocommit=None,  # as the server is set
                    read_timeout=timeout,
                    write_timeout=timeout,
                    defer_connect=True,
                )
                self._session.connect(link)
        except BaseException:
            link.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._session.open:  # not after the server went away
            self._session.close()

    def query(self, sql: str) -> Result:
        """Run one statement and return everything it answers."""
        with self._errors(), self._session.cursor() as cursor:
            affected = cursor.execute(sql)
            columns = [column[0] for column in cursor.description or ()]
            rows = [tuple(map(_text, row)) for row in cursor.fetchall()]
        return Result(columns, rows, affected)

    def discard(self, sql: str) -> None:
        """Run one statement and drop its rows without looking into them: the cheapest way to read a table."""
        unbuffered = self._pymysql.cursors.SSCursor
        with self._errors(), self._session.cursor(unbuffered) as cursor:
            cursor.execute(sql)

    def dump_binlog(self, file: str, position: int, server_id: int) -> None:
        """Asks for the binary log as a replica does, and drops what comes, until the session ends."""
        request = struct.pack("<IHI", position, 0, server_id) + file.encode()
        with self._errors():
            self._session._execute_command(_COM_BINLOG_DUMP, request)
            while True:
                self._session._read_packet()

    def send(self, sql: str) -> None:
        """Run one statement and never read what it answers. The session serves no other one."""
        with self._errors():
            self._session._execute_command(_COM_QUERY, sql)

    def open_cursor(self, sql: str) -> None:
        """As connectors fetch a result in parts: the server keeps it until the session ends. `sql` has no parameters."""
        with self._errors():
            self._session._execute_command(_COM_STMT_PREPARE, sql)
            statement, columns = struct.unpack_from("<IH", self._session._read_packet().get_all_data(), 1)
            self._skip_columns(columns)
            self._session._execute_command(_COM_STMT_EXECUTE, struct.pack("<IBI", statement, _CURSOR_TYPE_READ_ONLY, 1))
            self._skip_columns(self._session._read_packet().get_all_data()[0])

    def _skip_columns(self, count: int) -> None:
        """And the packet behind them. `count` is below 251."""
        for _ in range(count + 1):
            self._session._read_packet()

    def insert(self, sql: str, rows: Sequence[Sequence[str]]) -> None:
        """Run `INSERT ... VALUES (%s, ...)` for many rows, as few long statements."""
        with self._errors(), self._session.cursor() as cursor:
            cursor.executemany(sql, rows)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._pymysql.MySQLError as error:
            code = error.args[0] if error.args else None
            if isinstance(code, int) and code and code not in _CLIENT_ERRORS:
                raise SqlError(code, str(error.args[-1])) from None
            raise ConnectionLost(str(error.args[-1] if error.args else error)) from None


def _text(value: str | bytes | None) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
