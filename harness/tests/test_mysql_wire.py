"""The protocol client, against a scripted server on a socket."""

import socket
import struct
import sys
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from harness.mysql_wire import Connection, ConnectionLost, WireError, quote
from harness.scratch import Scratch

GREETING = b"\x0a9.7.4\0" + b"\x01\0\0\0" + b"12345678\0" + b"\0" * 20
OK = b"\0\0\0\x02\0\0\0"


def packets(sequence: int, *payloads: bytes) -> bytes:
    parts = []
    for payload in payloads:
        parts.append(struct.pack("<I", len(payload) | sequence << 24) + payload)
        sequence += 1
    return b"".join(parts)


def text(value: bytes) -> bytes:
    return bytes([len(value)]) + value


def column(name: bytes) -> bytes:
    return text(b"def") + text(b"") * 3 + text(name) + text(name) + b"\x0c" + b"\0" * 12


class ScriptedServer:
    """Greets, accepts, and answers each further packet with the next reply."""

    def __init__(self, path: Path, login: list[bytes], replies: list[bytes]):
        self.received: list[bytes] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._script = [*login, *replies]
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self):
        session, _ = self._socket.accept()
        with session, session.makefile("rb") as stream:
            session.sendall(packets(0, GREETING))
            for reply in self._script:
                header = stream.read(4)
                if len(header) < 4:
                    return
                self.received.append(stream.read(int.from_bytes(header[:3], "little")))
                session.sendall(reply)
        self._socket.close()


class Wire(Scratch):
    def setUp(self):
        super().setUp()
        self.path = self.root / "s"

    def serve(self, *replies: bytes, login: tuple[bytes, ...] = (packets(2, OK),)):
        server = ScriptedServer(self.path, list(login), list(replies))
        self.addCleanup(server.thread.join)
        return server

    def test_rows_nulls_and_names(self):
        self.serve(
            packets(
                1,
                b"\x02",
                column(b"a"),
                column(b"b"),
                text(b"1") + b"\xfb",
                b"\xfc\x00\x01" + b"x" * 256 + text(b""),
                b"\xfe\0\0\x02\0\0\0",
            )
        )
        with Connection(self.path) as session:
            result = session.query("SELECT")
        self.assertEqual(result.columns, ["a", "b"])
        self.assertEqual(result.rows, [("1", None), ("x" * 256, "")])
        self.assertEqual(result.dicts()[0], {"a": "1", "b": None})

    def test_login_names_user_and_database(self):
        server = self.serve()
        Connection(self.path, "demo").close()
        self.assertIn(b"root\0\0demo\0caching_sha2_password\0", server.received[0])

    def test_login_with_another_plugin(self):
        switch = packets(2, b"\xfemysql_native_password\0" + b"x" * 20 + b"\0")
        server = self.serve(login=(switch, packets(4, OK)))
        Connection(self.path).close()
        self.assertEqual(server.received[1], b"")

    def test_an_account_with_a_password_is_told(self):
        self.serve(login=(packets(2, b"\x01\x04"),))
        with self.assertRaisesRegex(ConnectionLost, "needs a password"):
            Connection(self.path)

    def test_error_carries_its_number_without_sqlstate(self):
        self.serve(packets(1, b"\xff\x55\x04#42S02Unknown table"))
        with (
            Connection(self.path) as session,
            self.assertRaises(WireError) as caught,
        ):
            session.query("SELECT")
        self.assertEqual(caught.exception.code, 1109)
        self.assertEqual(caught.exception.message, "Unknown table")

    def test_a_server_that_goes_away(self):
        self.serve()
        with Connection(self.path) as session, self.assertRaises(ConnectionError):
            session.query("SELECT 1")

    def test_scalar_wants_one_value(self):
        self.serve(packets(1, OK))
        with Connection(self.path) as session, self.assertRaises(ValueError):
            session.query("DO 1").scalar()

    def test_quote(self):
        self.assertEqual(quote("it's \\ \0"), r"'it''s \\ \0'")


if __name__ == "__main__":
    unittest.main()
