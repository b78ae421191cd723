"""A guard for PyMySQL's authentication. Over TCP without TLS, PyMySQL sends a scramble of the password and nothing else.

The mysql client has the same rule. A peer in the middle can strip the offer of TLS, ask for another way of authentication, and present an RSA key of its own.
"""

from __future__ import annotations

import functools
import socket
import ssl
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from memdiag.connect.options import Target
from memdiag.libraries import library
from memdiag.problem import Problem

LOGIN_BYTES = 1 << 20  # at most, of what a server sends before the first statement
_CLIENT_SSL = 1 << 11  # the protocol's flag
_INSIST = ("REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
_HOOKS = ("_request_authentication", "_read_packet", "_read_bytes")
_OLDEST = (1, 0, 2)
_HELP = "use TLS (--ssl-mode=REQUIRED) or the socket (-S)"


def guarded(pymysql: ModuleType, target: Target, clock: Callable[[], float] = time.monotonic) -> Any:
    """PyMySQL's Connection that keeps the password to itself until the connection is safe, and reads at most
    `bytes_left`. The greeting and the login have connect_timeout together."""
    found = tuple(getattr(pymysql, "VERSION", _OLDEST)[:3])
    if found < _OLDEST:
        raise Problem(
            f"PyMySQL {'.'.join(map(str, found))} is too old: memdiag needs 1.0.2 or later, as pip install --upgrade"
            " PyMySQL gets it"
        )
    base = pymysql.Connection
    if any(not hasattr(base, name) for name in _HOOKS):
        raise Problem("this version of PyMySQL is unknown, and could send the password in clear: install 1.0.2 to 1.2")

    class Guarded(base):
        _authenticating = False
        bytes_left = LOGIN_BYTES
        # PyMySQL's connect_timeout ends with connect(); a server that hangs accepts and says nothing.
        _login_ends: float | None = None

        def connect(self, *words: Any) -> None:
            self._login_ends = clock() + target.connect_timeout
            super().connect(*words)

        def logged_in(self, statement_seconds: float) -> None:
            self._login_ends = None
            self._wait(statement_seconds)

        def _wait(self, seconds: float) -> None:
            """PyMySQL 1.2 sets the socket's timeout before it reads, and 1.0 at each packet."""
            self._read_timeout = self._write_timeout = seconds
            if getattr(self, "_sock", None) is not None:
                self._sock.settimeout(seconds)

        def _read_bytes(self, count: int) -> bytes:
            if self._login_ends is not None:
                # A timeout of 0 would mean a socket that does not wait at all.
                self._wait(max(0.001, self._login_ends - clock()))
            self.bytes_left -= count
            if self.bytes_left < 0:
                self._force_close()  # the rest would be taken for the next answer
                raise pymysql.err.OperationalError(2013, "its answer is too large to be one")
            return super()._read_bytes(count)

        def _request_authentication(self) -> None:
            if not self.server_capabilities & _CLIENT_SSL:
                if target.ssl_mode in _INSIST:
                    raise _without_tls(target)
                # PyMySQL 1.2 would insist on TLS, and earlier versions would say that it follows.
                self.ssl = False
                self.client_flag &= ~_CLIENT_SSL
            self._authenticating = True
            super()._request_authentication()
            self._authenticating = False
            if target.ssl_mode in _INSIST and not isinstance(self._sock, ssl.SSLSocket):
                raise _without_tls(target)

        def _read_packet(self, *words: Any, **more: Any) -> Any:
            packet = super()._read_packet(*words, **more)
            if self._authenticating and not safe(self) and self.password:
                self._check(packet.get_all_data())
            return packet

        def _check(self, data: bytes) -> None:
            """A packet that begins with 1 is a step of authentication. 1 3 says that the scramble sufficed. Any other
            step makes PyMySQL fetch an RSA key from the peer, or is that key."""
            if data[:1] == b"\1" and data != b"\1\3":
                if target.get_server_public_key:
                    _require_rsa()
                    return
                raise Problem(
                    f"{target.label} wants the password over a connection without TLS, by an RSA key that a peer in the"
                    f" middle could have made: {_HELP}"
                )

    return Guarded


def wants_tls(target: Target) -> bool:
    """Over a socket only where it is insisted on, as the mysql client does."""
    return target.ssl_mode in _INSIST if target.socket else target.ssl_mode != "DISABLED"


def safe(link: Any) -> bool:
    """The socket itself counts, and nothing that the peer says."""
    return isinstance(link._sock, ssl.SSLSocket) or link._sock.family == getattr(socket, "AF_UNIX", None)


def _require_rsa() -> None:
    """PyMySQL needs it to encrypt with a server's key."""
    library(
        "cryptography",
        "--get-server-public-key needs Python's cryptography; install it with: apt-get install python3-cryptography",
    )


def _without_tls(target: Target) -> Problem:
    return Problem(f"{target.label} does not offer TLS, and ssl-mode is {target.ssl_mode}")


class InClear:
    """Authentication that sends the password as it is. PyMySQL does so for any server that asks, also for one in the
    middle; the mysql client refuses by default. Here it takes TLS or the socket."""

    def __init__(self, name: str, label: str, link: Any) -> None:
        self._name, self._label, self._link = name, label, link

    def authenticate(self, _packet: Any) -> Any:
        link = self._link
        if not safe(link):
            raise Problem(f"{self._label} wants the password in clear over a connection without TLS: {_HELP}")
        if self._name == "dialog":
            raise AttributeError  # PyMySQL goes on with its own dialog
        link.write_packet(link.password + b"\0")
        answer = link._read_packet()
        answer.check_error()
        return answer


def in_clear(target: Target) -> dict[str, Any]:
    """For PyMySQL's auth_plugin_map."""
    return {name: functools.partial(InClear, name, target.label) for name in ("mysql_clear_password", "dialog")}
