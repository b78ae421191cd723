"""Servers that are none, or that mean harm: one line each, and the password stays here."""

import contextlib
import re
import socket
import ssl
import struct
import tempfile
import threading
import time
import unittest
from unittest import mock

from memdiag.cli import main
from memdiag.connect import session
from memdiag.connect.authentication import InClear, guarded
from memdiag.connect.options import SSL_MODES, Target
from memdiag.connect.session import Gone, LoginRefused, Session, pymysql
from memdiag.problem import Problem

from tests.old_server import OldServer
from tests.versions import SERVERS

SECRET = "päss € word"
# The X plugin's first packet.
X_NOTICE = b"\x05\x00\x00\x00\x0b\x08\x05\x1a\x00"


def packet(number: int, payload: bytes) -> bytes:
    return struct.pack("<I", len(payload))[:3] + bytes([number]) + payload


def greeting(plugin: bytes = b"mysql_native_password", tls: bool = False) -> bytes:
    """A server that has many abilities."""
    capabilities = 0x000F_A20D & ~0x800 | (0x800 if tls else 0)
    return packet(
        0,
        b"\x0a8.0.40\0"
        + struct.pack("<I", 7)
        + b"12345678\0"
        + struct.pack("<HBHHB", capabilities & 0xFFFF, 45, 2, capabilities >> 16, 21)
        + bytes(10)
        + b"123456789012\0"
        + plugin
        + b"\0",
    )


def switch(plugin: bytes) -> bytes:
    return packet(2, b"\xfe" + plugin + b"\0" + b"12345678901234567890\0")


class FakeServer:
    """Sends its packets in turn, each after what the client says, and keeps that. An empty one ends the connection."""

    def __init__(self, *packets: bytes, path: str = "") -> None:
        """@param path  of a Unix socket; else it listens on a port"""
        self._packets = packets
        self.heard = b""
        if path:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(path)
            self._listener.listen()
        else:
            self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = 0 if path else self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        link, _ = self._listener.accept()
        with link, contextlib.suppress(OSError):
            link.settimeout(180)
            for one in self._packets:
                if not one:
                    return
                link.sendall(one)
                self.heard += link.recv(4096)

    def close(self) -> None:
        self._thread.join(5)
        self._listener.close()


DONE = b"\x00\x00\x00\x02\x00\x00\x00"


class Harm(unittest.TestCase):
    def connected(self, *packets: bytes, **more: object) -> FakeServer:
        server = FakeServer(*packets)
        self.addCleanup(server.close)
        self.target = Target(host="127.0.0.1", port=server.port, user="u", password=SECRET, connect_timeout=180, **more)
        return server

    def test_what_is_no_server_is_one_line(self):
        for sent in (X_NOTICE, b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n", packet(0, b"\x0a\xff"), b""):
            with self.subTest(sent):
                self.connected(sent)
                with self.assertRaises(Gone) as caught:
                    Session(self.target)
                self.assertNotIn("\n", str(caught.exception))

    def test_a_name_that_no_host_can_have(self):
        for host in ("a" * 64, f"{'a' * 64}.example", "a..b", ".a", "\udce9"):
            with self.subTest(host), self.assertRaisesRegex(Problem, "^the host '.*' is not known"):
                Session(Target(host=host))

    def test_a_server_in_the_middle_does_not_get_the_password(self):
        for plugin in (b"mysql_clear_password", b"dialog"):
            with self.subTest(plugin):
                prompt = b"\x04Password: " if plugin == b"dialog" else b""
                server = self.connected(greeting(), packet(2, b"\xfe" + plugin + b"\0" + prompt), b"")
                with self.assertRaisesRegex(Problem, "password in clear") as caught:
                    Session(self.target)
                server.close()
                self.assertIn(b"u\0", server.heard)
                self.assertNotIn(SECRET.encode(), server.heard)
                self.assertNotIn(SECRET, str(caught.exception))

    def test_without_tls_nothing_is_said_where_it_is_required(self):
        for mode in SSL_MODES[2:]:
            with self.subTest(mode):
                server = self.connected(greeting(), ssl_mode=mode)
                with self.assertRaisesRegex(Problem, f"does not offer TLS.*{mode}"):
                    Session(self.target)
                server.close()
                self.assertEqual(server.heard, b"")

    def test_a_key_of_a_server_in_the_middle_encrypts_nothing(self):
        key = b"\x01-----BEGIN PUBLIC KEY-----"
        for packets in (
            (greeting(b"sha256_password"), packet(2, key)),
            (greeting(), switch(b"sha256_password"), packet(4, key)),
            (greeting(b"caching_sha2_password"), packet(2, b"\x01\x04"), packet(4, key)),
            (greeting(), switch(b"caching_sha2_password"), packet(4, b"\x01\x04")),
        ):
            for mode in SSL_MODES[:2]:
                with self.subTest(packets[1:], mode=mode):
                    server = self.connected(*packets, packet(6, DONE), b"", ssl_mode=mode)
                    with self.assertRaisesRegex(Problem, "RSA key.*--ssl-mode=REQUIRED") as caught:
                        Session(self.target)
                    self.assertNotIsInstance(caught.exception, Gone)
                    server.close()
                    self.assertNotIn(b"\x01\x00\x00\x03\x02", server.heard)  # give me your key

    def test_a_key_of_the_server_is_asked_for_where_that_is_wanted(self):
        """As mysql does with --get-server-public-key."""
        for number, *packets in (
            (b"\3", greeting(b"caching_sha2_password"), packet(2, b"\x01\x04")),
            (b"\5", greeting(), switch(b"caching_sha2_password"), packet(4, b"\x01\x04")),
        ):
            with self.subTest(packets[1:]):
                server = self.connected(*packets, b"", get_server_public_key=True)
                with self.assertRaises(Gone):  # it sends none
                    Session(self.target)
                server.close()
                self.assertIn(b"\x01\x00\x00" + number + b"\x02", server.heard)
                self.assertNotIn(SECRET.encode(), server.heard)

    def test_the_password_goes_out_encrypted_with_it(self):
        try:
            from cryptography.hazmat.primitives import hashes, serialization
            from cryptography.hazmat.primitives.asymmetric import padding, rsa
        except ImportError as error:
            raise unittest.SkipTest("Python's cryptography is not installed") from error
        own = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        key = own.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        server = self.connected(
            greeting(b"caching_sha2_password"),
            packet(2, b"\x01\x04"),
            packet(4, b"\1" + key),
            b"",
            get_server_public_key=True,
        )
        with self.assertRaises(Gone):
            Session(self.target)
        server.close()
        sent = server.heard[-256:]
        mask = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
        scrambled = own.decrypt(sent, mask)
        salt = b"12345678" + b"123456789012"
        plain = bytes(one ^ salt[at % len(salt)] for at, one in enumerate(scrambled))
        self.assertEqual(plain, SECRET.encode() + b"\0")

    def test_what_encrypts_is_named_where_it_is_missing(self):
        self.connected(greeting(b"caching_sha2_password"), packet(2, b"\x01\x04"), b"", get_server_public_key=True)
        with (
            mock.patch("memdiag.connect.authentication.library", side_effect=Problem("install cryptography")),
            self.assertRaisesRegex(Problem, "install cryptography"),
        ):
            Session(self.target)

    def test_a_scramble_may_go_out(self):
        refused = b"\xff" + struct.pack("<H", 1820) + b"#HY000words"
        for packets in (
            (greeting(b"caching_sha2_password"), packet(2, b"\x01\x03") + packet(3, DONE)),
            (greeting(), switch(b"caching_sha2_password"), packet(4, b"\x01\x03") + packet(5, DONE)),
            (greeting(), packet(2, DONE)),
        ):
            with self.subTest(packets[1:]):
                self.connected(*packets, packet(1, refused))
                with self.assertRaisesRegex(Problem, "words"):  # of the first statement
                    Session(self.target)

    def test_a_server_without_tls_hears_of_none(self):
        server = self.connected(greeting(), packet(2, DONE))
        with self.assertRaises(Gone):
            Session(self.target)
        server.close()
        (flags,) = struct.unpack_from("<I", server.heard, 4)
        self.assertFalse(flags & 0x800)

    def over_a_socket(self, mode: str, tls: bool) -> tuple[str, FakeServer]:
        """@return what the client says of the failure"""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/s"
            server = FakeServer(greeting(tls=tls), b"", path=path)
            try:
                with self.assertRaises(Problem) as caught:
                    Session(Target(socket=path, user="reader", password=SECRET, ssl_mode=mode, connect_timeout=180))
            finally:
                server.close()
        return str(caught.exception), server

    def test_tls_over_a_socket_is_used_where_it_is_insisted_on(self):
        for mode in SSL_MODES[2:]:
            with self.subTest(mode):
                _, server = self.over_a_socket(mode, tls=True)
                (flags,) = struct.unpack_from("<I", server.heard, 4)
                self.assertTrue(flags & 0x800)
                self.assertNotIn(b"reader", server.heard)
                words, server = self.over_a_socket(mode, tls=False)
                self.assertRegex(words, f"does not offer TLS.*{mode}")
                self.assertEqual(server.heard, b"")
        for mode in SSL_MODES[:2]:
            with self.subTest(mode):
                _, server = self.over_a_socket(mode, tls=True)
                self.assertFalse(struct.unpack_from("<I", server.heard, 4)[0] & 0x800)

    def test_a_certificate_that_is_not_trusted(self):
        for code, why, named, words in (
            (19, "self-signed certificate", {}, ": self-signed certificate; name its authority with --ssl-ca"),
            (19, "self-signed certificate", {"ssl_ca": "/x"}, ": self-signed certificate$"),
            (19, "self-signed certificate", {"ssl_capath": "/x"}, ": self-signed certificate$"),
            (62, "Hostname mismatch.", {}, ": Hostname mismatch$"),
        ):
            found = ssl.SSLCertVerificationError(1, why)
            found.verify_code, found.verify_message = code, why

            def refuses(found=found, **_):
                try:
                    raise found
                except OSError as error:
                    raise pymysql().err.OperationalError(2003, f"Can't connect ({error})")  # noqa: B904

            with (
                self.subTest(why),
                mock.patch.object(session, "guarded", return_value=refuses),
                mock.patch.object(session, "_tls"),
                self.assertRaisesRegex(Problem, f"is VERIFY_CA{words}"),
            ):
                Session(Target(host="db1", ssl_mode="VERIFY_CA", **named))

    def test_certificates_that_mysql_generates_are_taken(self):
        """They have no key identifiers, on which Python 3.13 and later insist by default."""
        strict = ssl.create_default_context()
        strict.verify_flags |= ssl.VERIFY_X509_STRICT
        with mock.patch.object(ssl, "create_default_context", return_value=strict):
            for mode in SSL_MODES:
                context = session._tls(Target(host="db1", ssl_mode=mode))
                self.assertFalse(context.verify_flags & ssl.VERIFY_X509_STRICT, mode)

    def test_tls_files_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            empty = f"{folder}/empty.pem"
            open(empty, "w").close()
            missing = f"{folder}/missing"
            for option, name, words in (
                ("ssl_ca", missing, "--ssl-ca=.*/missing: No such file"),
                ("ssl_ca", folder, "--ssl-ca=.*: Is a directory"),
                ("ssl_ca", empty, "--ssl-ca=.*/empty.pem: "),
                ("ssl_capath", missing, "--ssl-capath=.*/missing: no such folder"),
                ("ssl_cert", missing, "--ssl-cert=.*/missing: No such file"),
                ("ssl_key", missing, "--ssl-key=.*/missing: No such file"),
                ("ssl_cert", empty, "--ssl-cert=.*/empty.pem without --ssl-key: "),
            ):
                with self.subTest(words), self.assertRaisesRegex(Problem, words):
                    Session(Target(host="db1", **{option: name}))

    def test_an_answer_without_end(self):
        server = self.connected(greeting(), packet(2, DONE), packet(1, b"\1" * (1 << 20)))
        with mock.patch.object(session, "ANSWER_BYTES", 1 << 19), self.assertRaisesRegex(Gone, "too large to be one"):
            Session(self.target)
        server.close()

    def test_an_unknown_version_of_the_library_connects_to_nothing(self):
        class Library:
            class Connection:
                def _read_packet(self):
                    pass

        with self.assertRaisesRegex(Problem, "version of PyMySQL is unknown"):
            guarded(Library, Target())

    def test_an_old_version_of_the_library_is_named(self):
        library = pymysql()
        for version in ((0, 10, 1, None), (1, 0, 1, "final", 1)):
            with (
                mock.patch.object(library, "VERSION", version),
                self.assertRaisesRegex(Problem, r"^PyMySQL (0.10.1|1.0.1) is too old.* 1.0.2 or later"),
            ):
                guarded(library, Target())
        for version in ((1, 0, 2, None), (1, 2, 4, "final"), (2, 0, 0, "final", 1)):
            with mock.patch.object(library, "VERSION", version):
                guarded(library, Target())

    def test_over_tls_a_server_may_ask_for_it(self):
        ours, other = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(other.close)

        class Link:
            _sock = ours  # a Unix socket
            password = SECRET.encode()
            sent = b""

            def write_packet(self, data):
                self.sent = data

            def _read_packet(self):
                return self

            def check_error(self):
                pass

        link = Link()
        self.assertIs(InClear("mysql_clear_password", "db", link).authenticate(None), link)
        self.assertEqual(link.sent, SECRET.encode() + b"\0")
        with self.assertRaises(AttributeError):  # PyMySQL has a dialog of its own
            InClear("dialog", "db", link).authenticate(None)

    def test_an_account_whose_password_has_expired_is_one_line(self):
        words = b"You must reset your password using ALTER USER"
        done = packet(2, b"\x00\x00\x00\x02\x00\x00\x00")
        self.connected(greeting(), done, packet(1, b"\xff" + struct.pack("<H", 1820) + b"#HY000" + words))
        with self.assertRaisesRegex(Problem, "reset your password.*1820"):
            main(
                [
                    "stacks",
                    "--no-defaults",
                    "-h",
                    "127.0.0.1",
                    "-P",
                    str(self.target.port),
                    "-u",
                    "u",
                    "--ssl-mode=DISABLED",
                ]
            )


class Login(unittest.TestCase):
    def connected(self, *packets: bytes) -> Target:
        server = FakeServer(*packets)
        self.addCleanup(server.close)
        return Target(host="127.0.0.1", port=server.port, user="u", ssl_mode="DISABLED", connect_timeout=180)

    def test_a_refusal_is_one_with_its_number(self):
        words = "No, 'l2' has exceeded (current value: 1)"
        for code in (1040, 1045, 1129, 1226, 1820, 3118, 3159, 4151):
            with self.subTest(code):
                error = b"\xff" + struct.pack("<H", code) + b"#HY000" + words.encode()
                with self.assertRaises(LoginRefused) as caught:
                    Session(self.connected(greeting(), packet(2, error)))
                self.assertEqual(caught.exception.code, code)
                # The account may have REQUIRE SSL.
                self.assertEqual("--ssl-mode=REQUIRED" in str(caught.exception), code in session._WRONG_ACCOUNT)
                self.assertRegex(str(caught.exception), f"refused.*{re.escape(words)} .error {code}.")

    def test_the_timeout_counts_until_the_login_is_done(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            target = Target(host="127.0.0.1", port=silent.getsockname()[1], connect_timeout=0.1)
            began = time.monotonic()
            with self.assertRaisesRegex(Gone, "does not answer within 0.1 s"):
                Session(target)
        self.assertLess(time.monotonic() - began, session.STATEMENT_SECONDS)

    def test_no_transaction_stays_open(self):
        made = []
        server = OldServer(SERVERS[0])
        connection = server.Connection

        class Connection(connection):
            def __init__(self, **words):
                made.append(words)
                super().__init__(**words)

        server.Connection = Connection
        with mock.patch("memdiag.connect.session.pymysql", lambda: server):
            Session(Target(host="db1", ssl_mode="DISABLED"))
        self.assertIs(made[0]["autocommit"], True)

    def test_errors_keep_their_words_whole(self):
        for words, reason in (
            ("Can't connect to MySQL server on 'a' ([Errno 111] Connection refused)", "Connection refused"),
            ("Lost connection (timed out)", "Lost connection (timed out)"),
            ("exceeded (current value: 1)", "exceeded (current value: 1)"),
            ("Can't connect ([Errno 1] failed (_ssl.c:1006))", "failed (_ssl.c:1006)"),
        ):
            self.assertEqual(session._reason(words), reason)


def setUpModule():
    try:
        pymysql()
    except Problem as problem:
        raise unittest.SkipTest(str(problem)) from None
