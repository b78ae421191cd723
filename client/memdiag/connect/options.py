"""How to reach a server, read as the mysql client does: command line, option files, login path, environment.

The order is mysql's: the first wins of the command line, the login path, the option files from last to first, and
MYSQL_PWD for the password. Of an option file the groups [client] and [memdiag] count.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memdiag.problem import Problem, WrongOption

GROUPS = ("client", "memdiag")
SOCKETS = ("/var/run/mysqld/mysqld.sock", "/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock")
KNOWN = frozenset(
    [
        "host",
        "port",
        "socket",
        "user",
        "password",
        "protocol",
        "ssl-mode",
        "ssl-ca",
        "ssl-cert",
        "ssl-key",
        "connect-timeout",
    ]
)
SSL_MODES = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")


@dataclass(frozen=True)
class Target:
    """One server. `label` is how the report names it."""

    host: str = "localhost"
    port: int = 3306
    socket: str = ""  # not empty: the socket is used
    user: str = ""
    password: str = field(default="", repr=False)
    ssl_mode: str = "PREFERRED"
    ssl_ca: str = ""
    ssl_cert: str = ""
    ssl_key: str = ""
    connect_timeout: int = 10

    @property
    def label(self) -> str:
        return self.socket or (self.host if self.port == 3306 else f"{self.host}:{self.port}")


# --- option files -----------------------------------------------------------------


def default_files() -> list[Path]:
    files = [Path("/etc/my.cnf"), Path("/etc/mysql/my.cnf")]
    if home := os.environ.get("MYSQL_HOME"):
        files.append(Path(home) / "my.cnf")
    return [*files, _home() / ".my.cnf"]


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user of a container that has neither HOME nor an entry in /etc/passwd
        return Path("/nonexistent")


def read_option_file(path: Path, required: bool = False, depth: int = 0) -> dict[str, str]:
    """The options of our groups; !include and !includedir as the mysql client follows them."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        # mysql ignores it, too: anybody could have written it.
        if path.stat().st_mode & 0o002:
            if required:
                raise Problem(f"the option file {path} is ignored: anybody may write it; see chmod o-w")
            return {}
    except OSError as error:
        if required:
            raise Problem(f"the option file {path} cannot be read: {error.strerror}") from None
        return {}
    options: dict[str, str] = {}
    group = ""
    for line in text.splitlines():
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("[") and "]" in line:
            group = line[1 : line.index("]")].strip()
        elif line.startswith("!include") and depth < 10:
            for included in _included(line, path.parent):
                options |= read_option_file(included, depth=depth + 1)
        elif group in GROUPS:
            name, equals, value = _without_comment(line).partition("=")
            options[_name(name)] = _value(value) if equals else ""
    return options


def _included(line: str, folder: Path) -> list[Path]:
    word, _, name = line.partition(" ")
    place = folder / name.strip()
    if word == "!include":
        return [place]
    return sorted(place.glob("*.cnf")) if place.is_dir() else []


def _name(text: str) -> str:
    return text.strip().replace("_", "-").removeprefix("loose-")


def _without_comment(line: str) -> str:
    """A # begins a comment unless it is in quotes, also in the middle of a word."""
    return re.match(r"""(?:[^#'"]|'(?:[^'\\]|\\.)*(?:'|$)|"(?:[^"\\]|\\.)*(?:"|$))*""", line)[0]  # type: ignore[index]


_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "r": "\r", "s": " ", "\\": "\\", "'": "'", '"': '"'}


def _value(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), text)


# --- the login path ----------------------------------------------------------------


def read_login_path(name: str, required: bool) -> dict[str, str]:
    """Options that mysql_config_editor stored. my_print_defaults, which comes with the mysql client, decrypts it."""
    file = Path(os.environ.get("MYSQL_TEST_LOGIN_FILE") or _home() / ".mylogin.cnf")
    if not file.exists():
        if required:
            raise Problem(
                f"there is no login path {name!r}: {file} does not exist;"
                f" make it with: mysql_config_editor set --login-path={name}"
            )
        return {}
    program = shutil.which("my_print_defaults")
    if program is None:
        if required:
            raise Problem(
                f"the login path {name!r} needs the program my_print_defaults, which comes with the mysql client"
            )
        return {}
    done = subprocess.run(
        [program, "--no-defaults", f"--login-path={name}", "--show", name], capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("--")]
    if required and not lines:
        raise Problem(f"there is no login path {name!r} in {file}; list them with: mysql_config_editor print --all")
    options = {}
    for line in lines:
        key, _, value = line[2:].partition("=")
        options[_name(key)] = value
    return options


# --- putting it together -------------------------------------------------------------


def option_values(
    given: Mapping[str, str],
    *,
    defaults_file: str = "",
    defaults_extra_file: str = "",
    no_defaults: bool = False,
    login_path: str = "",
) -> dict[str, str]:
    """`given` has what the command line says, and wins."""
    options: dict[str, str] = {}
    if defaults_file:
        options |= read_option_file(Path(defaults_file), required=True)
    elif not no_defaults:
        *files, own = default_files()
        for path in files:
            options |= read_option_file(path)
        if defaults_extra_file:
            options |= read_option_file(Path(defaults_extra_file), required=True)
        options |= read_option_file(own)
    if not no_defaults or login_path:
        options |= read_login_path(login_path or "client", required=bool(login_path))
    options |= given
    options.setdefault("password", os.environ.get("MYSQL_PWD", ""))
    return {key: value for key, value in options.items() if key in KNOWN}


def target(options: Mapping[str, str], words: str = "") -> Target:
    """`words` names a server on the command line: host, host:port, user@host, or the path of a socket."""
    values = dict(options)
    if words:
        values |= _of_words(words)
    host = values.get("host") or "localhost"
    port = _number(values, "port", 3306)
    mode = (values.get("ssl-mode") or "PREFERRED").upper()
    if mode not in SSL_MODES:
        raise WrongOption(f"ssl-mode is one of {', '.join(SSL_MODES)}, not {mode!r}")
    protocol = (values.get("protocol") or "").upper()
    if protocol not in ("", "TCP", "SOCKET"):
        raise WrongOption(f"protocol is TCP or SOCKET, not {protocol!r}")
    by_socket = protocol == "SOCKET" or (
        protocol != "TCP" and host == "localhost" and not (words and "port" in _of_words(words))
    )
    socket = values.get("socket") or ""
    if by_socket and not socket:
        socket = next(filter(_of_a_server, SOCKETS), SOCKETS[0])
    return Target(
        host=host,
        port=port,
        socket=socket if by_socket else "",
        user=values.get("user") or _login_name(),
        password=values.get("password") or "",
        ssl_mode=mode,
        ssl_ca=values.get("ssl-ca") or "",
        ssl_cert=values.get("ssl-cert") or "",
        ssl_key=values.get("ssl-key") or "",
        connect_timeout=_number(values, "connect-timeout", 10),
    )


def _of_a_server(path: str) -> bool:
    """The socket is there, and no other user can have put it there to get the password."""
    try:
        about = os.lstat(path)
    except OSError:
        return False
    if not path.startswith("/tmp/"):
        return True
    owners = {0, os.geteuid()}
    with contextlib.suppress(KeyError):
        owners.add(pwd.getpwnam("mysql").pw_uid)
    return stat.S_ISSOCK(about.st_mode) and about.st_uid in owners


def _of_words(words: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if "@" in words:
        found["user"], words = words.rsplit("@", 1)
    if words.startswith(("/", "./")):
        return found | {"socket": words, "protocol": "SOCKET", "host": "localhost"}
    bracketed = re.fullmatch(r"\[([^]]+)\](?::(\d+))?", words)
    if bracketed:
        found["host"] = bracketed[1]
        return found | ({"port": bracketed[2]} if bracketed[2] else {})
    host, colon, port = words.rpartition(":")
    if colon and host and ":" not in host:
        return found | {"host": host, "port": port}
    return found | {"host": words}


def _number(values: Mapping[str, str], name: str, otherwise: int) -> int:
    text = values.get(name) or str(otherwise)
    if not text.isdecimal():
        raise WrongOption(f"{name} is a number, not {text!r}")
    if name == "port" and int(text) > 65535:
        raise WrongOption(f"port is at most 65535, not {text}")
    return int(text)


def _login_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def targets(options: Mapping[str, str], names: Sequence[str]) -> list[Target]:
    return [target(options, name) for name in names] or [target(options)]
