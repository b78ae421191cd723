"""A session with a server, by PyMySQL. It changes nothing on the server but variables of its own session."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from types import ModuleType
from typing import Any

from memdiag.connect.authentication import guarded, in_clear, wants_tls
from memdiag.connect.options import Target
from memdiag.libraries import library
from memdiag.problem import Problem
from memdiag.progress import trace

Row = dict[str, Any]
# A statement that takes longer would be no help in an emergency.
STATEMENT_SECONDS = 20
# No server sends that much. One that means harm could fill this machine's memory.
ANSWER_BYTES = 128 << 20
_CLIENT_ERRORS = range(2000, 3000)
# Seconds of wait_timeout for those who look again and again; the server's own may be shorter than their pause.
_LEAST_WAIT = 28800
_LONGEST_WAIT = 2_147_483  # of wait_timeout on Windows; elsewhere more is allowed
_WRONG_ACCOUNT = (1044, 1045, 1698, 3118, 3955)
_NO_CONNECTION_LEFT = 1040
_OTHER_NAME = (62, 64)  # OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
# PyMySQL's answer to what is no packet of MySQL: the X plugin's port, a web server, a text in no character set. And
# to a number or a request for a file that no server sends.
_GARBLED = (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError, struct.error)


class Refused(Problem):
    """The server answered a statement with an error. `code` is MySQL's number."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} (error {code})")
        self.code = code
        self.message = message


class LoginRefused(Problem):
    """The server is up and lets this account not in. `code` is MySQL's number."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Gone(Problem):
    """The server cannot be reached, or went away."""


def pymysql() -> ModuleType:
    return library(
        "pymysql", "PyMySQL is missing; install it with: apt-get install python3-pymysql, or pip install PyMySQL"
    )


class Session:
    """Not for use by several threads at once."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._library = pymysql()
        self._link = None if not target.socket else _unix_socket(target)
        self._peer = _peer(self._link) if self._link else 0
        self._session = self._connect()
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(self._library.MySQLError, OSError):
            self._session.close()

    def rows(self, statement: str) -> list[Row]:
        """All rows, by column name in upper case as MySQL's tables have them. Values are int, float, str or None.

        Times are seconds since 1970."""
        began = time.monotonic()
        with self._errors(), self._session.cursor() as cursor:
            self._session.bytes_left = ANSWER_BYTES
            cursor.execute(statement)
            names = [str(column[0]).upper() for column in cursor.description or ()]
            # Each row has as many values as there are columns.
            result = [{name: plain(value) for name, value in zip(names, row)} for row in cursor.fetchall()]
        milliseconds = 1000 * (time.monotonic() - began)
        trace(f"{self.target.label}: {len(result)} rows in {milliseconds:.0f} ms: {' '.join(statement.split())}")
        return result

    def stay(self, every: float) -> None:
        """The server shall not end the session between two looks so many seconds apart."""
        seconds = min(max(_LEAST_WAIT, int(3 * every)), _LONGEST_WAIT)
        with contextlib.suppress(Refused):
            self.rows(f"SET SESSION wait_timeout = {seconds}")

    def server_process(self) -> int:
        """The process on the other end of a Unix socket, which may forward it; 0 where that is not known."""
        return self._peer

    # Internals.

    def _connect(self) -> Any:
        target = self.target
        words: dict[str, Any] = {
            "user": target.user,
            # As bytes: PyMySQL would take letters for Latin 1, and mysql sends them as the terminal does.
            "password": target.password.encode(errors="surrogateescape"),
            "charset": "utf8mb4",
            "autocommit": True,  # a transaction would keep metadata locks
            "connect_timeout": target.connect_timeout,
            "read_timeout": STATEMENT_SECONDS + 10,
            "write_timeout": STATEMENT_SECONDS + 10,
            "program_name": "memdiag",
            "defer_connect": True,
            "auth_plugin_map": in_clear(target),
        }
        if wants_tls(target):
            words["ssl"] = _tls(target)
        else:
            words["ssl_disabled"] = True  # newer versions try it by themselves
        if not target.socket:
            try:
                target.host.encode("idna")  # as Python's sockets do
            except UnicodeError:
                raise Problem(f"the host {target.host!r} is not known: no host can have such a name") from None
            words |= {"host": target.host, "port": target.port}
        with self._connecting():
            session = guarded(self._library, target)(**words)
            if self._link is not None:
                session.unix_socket = target.socket  # the link is safe for a password
                session.host_info = "Localhost via UNIX socket"
                session._secure = True
                session.connect(self._link)
            else:
                session.connect()
            session.logged_in(STATEMENT_SECONDS + 10)
        return session

    def _prepare(self) -> None:
        """No value of the server's, nor of its init_connect, may change what is read, and how."""
        for statement in (
            "SET NAMES utf8mb4",
            "SET SESSION time_zone = '+00:00'",
            # The server would cut what it answers, without a word.
            "SET SESSION sql_select_limit = 18446744073709551615",
        ):
            self.rows(statement)
        for statement in (
            # MAX_JOIN_SIZE would refuse statements.
            "SET SESSION sql_big_selects = 1",
            # PyMySQL does not see that init_connect has changed it.
            "SET SESSION autocommit = 1",
            f"SET SESSION max_execution_time = {STATEMENT_SECONDS * 1000}",
            f"SET SESSION max_statement_time = {STATEMENT_SECONDS}",  # MariaDB
            # MariaDB has the variable transaction_isolation since 11.1.1 only.
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            # With NO_BACKSLASH_ESCAPES no pattern of LIKE has an escape.
            "SET SESSION sql_mode = ''",
            # MySQL would show sizes of tables of yesterday, and write those that it lacks into its dictionary.
            "SET SESSION information_schema_stats_expiry = 0",
        ):
            with contextlib.suppress(Refused):
                self.rows(statement)

    @contextlib.contextmanager
    def _connecting(self) -> Iterator[None]:
        target = self.target
        try:
            yield
        except self._library.MySQLError as error:
            code, words = _code_and_words(error)
            if code:
                raise LoginRefused(code, _refusal(target, code, words)) from None
            if isinstance(error.__context__, ssl.SSLCertVerificationError):
                found = error.__context__
                is_named = found.verify_code in _OTHER_NAME or target.ssl_ca or target.ssl_capath
                help_ = "" if is_named else "; name its authority with --ssl-ca or --ssl-capath"
                raise Problem(
                    f"{target.label} has a certificate that is not trusted, and ssl-mode is {target.ssl_mode}:"
                    f" {found.verify_message.rstrip('.')}{help_}"
                ) from None
            if isinstance(error.__cause__, socket.gaierror) or "Name or service" in words or "name resolution" in words:
                raise Problem(f"the host {target.host!r} is not known: {_reason(words)}") from None
            if isinstance(error.__context__, socket.timeout) or isinstance(error.__cause__, socket.timeout):
                raise Gone(f"{target.label} does not answer within {target.connect_timeout} s") from None
            raise Gone(f"{target.label} does not answer: {_reason(words)}") from None
        except (OSError, RuntimeError) as error:
            raise Gone(f"{target.label} does not answer: {error}") from None
        except _GARBLED as error:
            raise Gone(f"{target.label} does not speak MySQL's protocol, or an option is wrong: {error}") from None

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._library.MySQLError as error:
            code, words = _code_and_words(error)
            if code:
                raise Refused(code, words) from None
            raise Gone(f"{self.target.label} went away: {_reason(words)}") from None
        except OSError as error:
            raise Gone(f"{self.target.label} went away: {error}") from None
        except _GARBLED as error:
            raise Gone(f"{self.target.label} sent what is no answer: {error}") from None


def _code_and_words(error: Exception) -> tuple[int, str]:
    """The server's number, or 0 where the error is PyMySQL's own, and the words."""
    code = error.args[0] if error.args else 0
    words = str(error.args[-1] if error.args else error)
    return (code if isinstance(code, int) and code not in _CLIENT_ERRORS else 0), words


def _refusal(target: Target, code: int, words: str) -> str:
    if code in _WRONG_ACCOUNT:
        what, help_ = f"refused the login of {target.user!r}", "; see -u and -p, or --login-path"
        if not wants_tls(target):
            help_ += "; an account that requires TLS needs --ssl-mode=REQUIRED"
    elif code == _NO_CONNECTION_LEFT:
        what, help_ = "refused", "; an account with CONNECTION_ADMIN gets one connection more"
    else:
        what, help_ = "refused", ""
    return f"{target.label} {what}: {words} (error {code}){help_}"


def _unix_socket(target: Target) -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise Problem("this system has no Unix sockets: say -h HOST, or --protocol=TCP")
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(target.connect_timeout)
    try:
        link.connect(target.socket)
    except FileNotFoundError:
        link.close()
        raise Gone(f"there is no socket {target.socket}: the server is down, or its socket is elsewhere (-S)") from None
    except OSError as error:
        link.close()
        raise Gone(f"{target.socket} does not answer: {error.strerror or error}") from None
    return link


def _peer(link: socket.socket) -> int:
    if not hasattr(socket, "SO_PEERCRED"):
        return 0  # not Linux
    credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[0]


def _tls(target: Target) -> ssl.SSLContext:
    for option in ("ssl_ca", "ssl_cert", "ssl_key"):
        if name := getattr(target, option):
            try:
                open(name, "rb").close()
            except OSError as error:
                raise _unusable(f"--{option.replace('_', '-')}={name}", error.strerror) from None
    if target.ssl_capath and not os.path.isdir(target.ssl_capath):  # OpenSSL would take it for an empty folder
        raise _unusable(f"--ssl-capath={target.ssl_capath}", "no such folder")
    what = f"--ssl-ca={target.ssl_ca}"
    try:
        context = ssl.create_default_context(cafile=target.ssl_ca or None, capath=target.ssl_capath or None)
        # Python 3.13 and later set it. OpenSSL's default, and so mysql's, is not strict, and certificates that MySQL
        # generates have no key identifiers.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.check_hostname = target.ssl_mode == "VERIFY_IDENTITY"
        if target.ssl_mode not in ("VERIFY_CA", "VERIFY_IDENTITY"):
            context.verify_mode = ssl.CERT_NONE
        if target.ssl_cert:
            what = f"--ssl-cert={target.ssl_cert} " + (
                f"with --ssl-key={target.ssl_key}" if target.ssl_key else "without --ssl-key"
            )
            context.load_cert_chain(target.ssl_cert, target.ssl_key or None)
    except (OSError, ssl.SSLError) as error:
        raise _unusable(what, error) from None
    return context


def _unusable(what: str, why: object) -> Problem:
    return Problem(f"the TLS files cannot be used: {what}: {why}")


def _reason(words: str) -> str:
    """PyMySQL's words without its repetition of the host and of Python's error class."""
    found = words.rpartition("([Errno")[2]
    if found != words and "]" in found:
        words = found.partition("]")[2].strip()
        if words.count(")") > words.count("("):
            words = words[:-1] if words.endswith(")") else words
    elif words.startswith("(") and words.endswith(")"):
        words = words[1:-1]
    return words


def plain(value: Any) -> Any:
    """As JSON can have it."""
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=timezone.utc).timestamp()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)
