"""A client of the X protocol. Beside harness/sql.py, it can run statements and nothing else."""

import socket
import struct
from pathlib import Path
from typing import Self

from harness.sql import ConnectionLost, Result, SqlError

_ERROR, _AUTHENTICATE_OK, _ROW, _EXECUTED = 1, 4, 13, 17
_AUTHENTICATE_START, _EXECUTE = 4, 12


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes((number & 127 | 128,))
        number >>= 7
    return out + bytes((number,))


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _fields(message: bytes) -> dict[int, int | bytes]:
    """The last value of each field; numbers and texts are the only kinds."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    found: dict[int, int | bytes] = {}
    while at < len(message):
        key = number()
        value: int | bytes = number()
        if key & 7 == 2:
            length = int(value)
            value = message[at : at + length]
            at += length
        found[key >> 3] = value
    return found


class XConnection:
    """One session, of an account without a password. Not for use by several threads at once."""

    def __init__(self, socket_path: Path, database: str, user: str, timeout: float) -> None:
        self._link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._link.settimeout(timeout)
            self._link.connect(str(socket_path))
            start = _field(1, b"PLAIN") + _field(2, f"{database}\0{user}\0".encode())
            self._ask(_AUTHENTICATE_START, start, _AUTHENTICATE_OK)
        except BaseException:
            self._link.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._link.close()

    def query(self, sql: str) -> Result:
        """Run one statement. Values are bytes of the protocol, as text."""
        rows = self._ask(_EXECUTE, _field(1, sql.encode()), _EXECUTED)
        return Result([], [(row.decode("latin1"),) for row in rows])

    def _ask(self, kind: int, message: bytes, end: int) -> list[bytes]:
        """@return the rows"""
        rows = []
        try:
            self._link.sendall(struct.pack("<IB", len(message) + 1, kind) + message)
            while True:
                kind, answer = self._read()
                if kind == _ERROR:
                    found = _fields(answer)
                    code, text = found.get(2, 0), found.get(3, b"")
                    raise SqlError(int(code), text.decode() if isinstance(text, bytes) else "")
                if kind == end:
                    return rows
                if kind == _ROW:
                    rows.append(answer)
        except OSError as error:
            raise ConnectionLost(str(error)) from error

    def _read(self) -> tuple[int, bytes]:
        length, kind = struct.unpack("<IB", self._bytes(5))
        return kind, self._bytes(length - 1)

    def _bytes(self, length: int) -> bytes:
        out = bytearray()
        while len(out) < length:
            part = self._link.recv(min(length - len(out), 1 << 20))
            if not part:
                raise ConnectionLost("the server closed the connection")
            out += part
        return bytes(out)
