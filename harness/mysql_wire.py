"""A small MySQL client over a Unix socket: text protocol, accounts without a password.

The standard library has no MySQL driver, and starting the `mysql` program for every statement would neither measure a
latency nor hold eight sessions open. This speaks just enough of the protocol for the tools and benchmarks: log in, run
one statement at a time, read its rows as strings.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

# Capability flags of the handshake that this client asks for.
_LONG_PASSWORD = 1 << 0
_CONNECT_WITH_DB = 1 << 3
_PROTOCOL_41 = 1 << 9
_TRANSACTIONS = 1 << 13
_SECURE_CONNECTION = 1 << 15
_PLUGIN_AUTH = 1 << 19
_DEPRECATE_EOF = 1 << 24

_UTF8MB4 = 255  # utf8mb4_0900_ai_ci
_MAX_PACKET = 0xFFFFFF
_COM_QUIT = b"\x01"
_COM_QUERY = b"\x03"


class WireError(Exception):
    """The server answered with an error; `code` is MySQL's error number."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"MySQL error {code}: {message}")
        self.code = code
        self.message = message


class ConnectionLost(ConnectionError):
    """The server closed the connection or sent something that is not the protocol."""


@dataclass(frozen=True)
class Result:
    """Column names and rows of one statement; a NULL is None, everything else a string."""

    columns: list[str]
    rows: list[tuple[str | None, ...]]
    affected: int = 0

    def dicts(self) -> list[dict[str, str | None]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def scalar(self) -> str | None:
        """The single value of a one-row, one-column answer."""
        if len(self.rows) != 1 or len(self.rows[0]) != 1:
            raise ValueError(
                f"expected one value, got {len(self.rows)} rows of {len(self.columns)} columns"
            )
        return self.rows[0][0]


def quote(text: str) -> str:
    """A string literal for the server's default SQL mode."""
    return (
        "'" + text.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"
    )


class Connection:
    """One session. Not for use by several threads at once."""

    def __init__(
        self,
        socket_path: Path | str,
        database: str = "",
        user: str = "root",
        timeout: float | None = None,
    ) -> None:
        self._sequence = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout)
            self._socket.connect(str(socket_path))
            self._stream = self._socket.makefile("rb", buffering=65536)
            self._log_in(user, database)
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        try:
            self._sequence = 0
            self._send(_COM_QUIT)
        except OSError:
            pass  # the server is gone already: nothing to say goodbye to
        self._stream.close()
        self._socket.close()

    def query(self, sql: str) -> Result:
        """Run one statement and return everything it answers."""
        result, packets = self._run(sql)
        result.rows.extend(_row(packet) for packet in packets)
        return result

    def count_rows(self, sql: str) -> int:
        """Run one statement and say how many rows it answers, without reading what is in them."""
        return sum(1 for _ in self._run(sql)[1])

    # The protocol below this line.

    def _run(self, sql: str) -> tuple[Result, Iterator[bytes]]:
        """The result without its rows, and those, which have to be taken before the next statement."""
        self._sequence = 0
        self._send(_COM_QUERY + sql.encode())
        head = self._receive()
        if head[0] == 0x00:
            affected, _ = _length(head, 1)
            return Result([], [], affected or 0), iter(())
        if head[0] == 0xFB:
            raise ConnectionLost("LOAD DATA LOCAL is not supported by this client")
        count, _ = _length(head, 0)
        columns = [_column_name(self._receive()) for _ in range(count or 0)]
        return Result(columns, []), self._rows()

    def _rows(self) -> Iterator[bytes]:
        while True:
            packet = self._receive()
            if packet[0] == 0xFE and len(packet) < _MAX_PACKET:
                return
            yield packet

    def _log_in(self, user: str, database: str) -> None:
        greeting = self._receive()
        if greeting[0] != 10:
            raise ConnectionLost(f"unknown protocol version {greeting[0]}")
        flags = (
            _LONG_PASSWORD
            | _PROTOCOL_41
            | _TRANSACTIONS
            | _SECURE_CONNECTION
            | _PLUGIN_AUTH
            | _DEPRECATE_EOF
        )
        if database:
            flags |= _CONNECT_WITH_DB
        answer = (
            struct.pack("<IIB23x", flags, 1 << 24, _UTF8MB4) + user.encode() + b"\0"
        )
        answer += b"\0"  # the authentication data of an empty password is empty, whatever the plugin
        if database:
            answer += database.encode() + b"\0"
        answer += b"caching_sha2_password\0"
        self._send(answer)
        while True:
            packet = self._receive()
            if packet[0] == 0x00:
                return
            if packet[0] == 0xFE:
                self._send(b"")  # another plugin: an empty answer serves it too
            elif packet[:2] != b"\x01\x03":
                raise ConnectionLost(
                    f"user {user} needs a password, which this client cannot give"
                )

    def _send(self, payload: bytes) -> None:
        # A payload of the maximum size or more goes in several packets, the last one shorter than the maximum.
        start = 0
        while True:
            part = payload[start : start + _MAX_PACKET]
            self._socket.sendall(
                struct.pack("<I", len(part) | self._sequence << 24) + part
            )
            self._sequence = (self._sequence + 1) & 0xFF
            start += _MAX_PACKET
            if len(part) < _MAX_PACKET:
                return

    def _receive(self) -> bytes:
        payload = b""
        while True:
            (header,) = struct.unpack("<I", self._read(4))
            self._sequence = ((header >> 24) + 1) & 0xFF
            part = self._read(header & _MAX_PACKET)
            payload += part
            if len(part) < _MAX_PACKET:
                break
        if not payload:
            raise ConnectionLost("empty packet")
        if payload[0] == 0xFF:
            (code,) = struct.unpack_from("<H", payload, 1)
            message = payload[3:].decode(errors="replace")
            if message.startswith("#"):
                message = message[6:]  # the SQLSTATE, which the code already says
            raise WireError(code, message)
        return payload

    def _read(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) < count:
            raise ConnectionLost("the server closed the connection")
        return data


def _length(data: bytes, at: int) -> tuple[int | None, int]:
    """A length-encoded integer (None stands for NULL) and the position after it."""
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    if first == 0xFB:
        return None, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def _text(data: bytes, at: int) -> tuple[str | None, int]:
    length, at = _length(data, at)
    if length is None:
        return None, at
    return data[at : at + length].decode(errors="replace"), at + length


def _row(packet: bytes) -> tuple[str | None, ...]:
    values = []
    at = 0
    while at < len(packet):
        value, at = _text(packet, at)
        values.append(value)
    return tuple(values)


def _column_name(packet: bytes) -> str:
    at = 0
    for _ in range(4):  # catalog, schema, table, original table
        _, at = _text(packet, at)
    name, _ = _text(packet, at)
    return name or ""
