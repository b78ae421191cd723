"""How to reach a server, read as the mysql client does: command line, option files, login path, environment.

The order is mysql's: the first wins of the command line, the login path, the option files from last to first, and the
environment. Of an option file the groups of MySQL's and MariaDB's clients count, and [memdiag].
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memdiag.problem import Problem, WrongOption, warn

# Debian's MariaDB has its socket in [client-server].
GROUPS = ("client", "client-server", "client-mariadb", "memdiag")
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
        "ssl-capath",
        "ssl-cert",
        "ssl-key",
        "get-server-public-key",
        "connect-timeout",
    ]
)
# The clients have them for TLS, and memdiag does not.
_NOT_FOLLOWED = ("tls-version", "tls-ciphersuites", "ssl-cipher", "ssl-crl", "ssl-crlpath")
NO_COMPRESSION = "PyMySQL does not compress what goes over the network"
_ENVIRONMENT = {"host": "MYSQL_HOST", "port": "MYSQL_TCP_PORT", "socket": "MYSQL_UNIX_PORT", "password": "MYSQL_PWD"}
# Seconds: the largest connect-timeout of mysql, which takes 0 for no limit.
_LONGEST_WAIT = 43200
# Stands for a password that is to be asked for.
ASK = "\0ask"
# So begins the path of a socket; other words are a host.
PATHS = ("/", "./", "../")
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
    ssl_capath: str = ""
    ssl_cert: str = ""
    ssl_key: str = ""
    # The server's own RSA key may encrypt the password where there is no TLS.
    get_server_public_key: bool = False
    connect_timeout: int = 10

    @property
    def label(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.socket or (self.host if self.port == 3306 else f"{host}:{self.port}")


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


def read_option_file(
    path: Path, required: bool = False, depth: int = 0, suffix: str = "", seen: set[str] | None = None
) -> dict[str, str]:
    """The options of our groups, and of those with `suffix`; !include and !includedir as the mysql client follows
    them, but no file twice (`seen`): files that include each other would be read thousands of times."""
    seen = set() if seen is None else seen
    groups = {*GROUPS, *((group + suffix).lower() for group in GROUPS)}
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        # mysql ignores it, too: anybody could have written it. It does not look at devices.
        mode = path.stat().st_mode
        if os.name == "posix" and stat.S_ISREG(mode) and mode & 0o002:
            words = f"the option file {path} is ignored: anybody may write it; see chmod o-w"
            if required:
                raise Problem(words)
            warn(words)
            return {}
    except (OSError, ValueError) as error:  # no file can have the name
        if required:
            raise Problem(f"the option file {path} cannot be read: {getattr(error, 'strerror', error)}") from None
        return {}
    options: dict[str, str] = {}
    group = ""
    # splitlines() would also end a line at characters that a password may have.
    for line in text.split("\n"):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("[") and "]" in line:
            group = line[1 : line.index("]")].strip().lower()
        elif line.startswith("["):
            warn(f"the option file {path} has a line that is no group, as it has no ]: {line}")
        elif line.startswith("!"):
            for included in _included(line, path) if depth < 10 else []:
                name = os.path.normpath(included)
                if name not in seen:
                    seen.add(name)
                    options |= read_option_file(included, depth=depth + 1, suffix=suffix, seen=seen)
        elif group in groups:
            word, equals, value = _without_comment(line).partition("=")
            name = _name(word)
            options[name] = _value(value) if equals else ASK if name == "password" else ""
    return options


def _included(line: str, file: Path) -> list[Path]:
    word, *names = line[1:].split(maxsplit=1) or [""]
    if not names or word not in ("include", "includedir"):
        warn(f"the option file {file} has a line that is not followed: {line}")
        return []
    place = file.parent / names[0]
    if word == "include":
        return [place]
    if not place.is_dir():
        warn(f"the option file in {file.parent} includes {place}, which is no folder")
        return []
    return sorted(place.glob("*.cnf"))


def _name(text: str) -> str:
    return text.strip().replace("_", "-").removeprefix("loose-")


def _without_comment(line: str) -> str:
    """A # begins a comment unless it is in quotes, also in the middle of a word."""
    return re.match(r"""(?:[^#'"]|'(?:[^'\\]|\\.?)*(?:'|$)|"(?:[^"\\]|\\.?)*(?:"|$))*""", line)[0]  # type: ignore[index]


_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "r": "\r", "s": " ", "\\": "\\", "'": "'", '"': '"'}


def _value(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), text)


# --- the login path ----------------------------------------------------------------


def read_login_path(name: str) -> dict[str, str]:
    """Options that mysql_config_editor stored: those of `client`, and of the login path that is named, if any.
    my_print_defaults, which comes with MySQL's server programs, decrypts it."""
    required = bool(name)
    file = Path(os.environ.get("MYSQL_TEST_LOGIN_FILE") or _home() / ".mylogin.cnf")
    if not file.exists():
        if required:
            raise Problem(
                f"there is no login path {name!r}: {file} does not exist;"
                f" make it with: mysql_config_editor set --login-path={name}"
            )
        return {}
    program = shutil.which("my_print_defaults")
    missing = ""
    if program is None:
        missing = "my_print_defaults, which comes with MySQL's server programs and decrypts it, is not there"
    elif not _knows_login_paths(program):
        missing = f"{program} has no --login-path, as MariaDB's; MySQL's comes with its server programs and has one"
    if program is None or missing:
        if required:
            raise Problem(f"the login path {name!r} of {file} cannot be read: {missing}")
        warn(f"{file} is ignored: {missing}")
        return {}

    def lines(*groups: str) -> list[str]:
        words = [program, "--no-defaults", *([f"--login-path={name}"] if name else []), "--show", *groups]
        done = subprocess.run(words, capture_output=True, text=True, errors="surrogateescape", check=False)
        return [line for line in done.stdout.split("\n") if line.startswith("--")]

    if required and not lines(name):
        raise Problem(f"there is no login path {name!r} in {file}; list them with: mysql_config_editor print --all")
    options = {}
    for line in lines("client", *([name] if required else [])):
        key, _, value = line[2:].partition("=")
        options[_name(key)] = value
    return options


def _knows_login_paths(program: str) -> bool:
    """MariaDB's takes no such option, prints nothing, and succeeds."""
    done = subprocess.run([program, "--help"], capture_output=True, text=True, errors="replace", check=False)
    return "login-path" in done.stdout


# --- putting it together -------------------------------------------------------------


def option_values(
    given: Mapping[str, str],
    *,
    defaults_file: str = "",
    defaults_extra_file: str = "",
    no_defaults: bool = False,
    login_path: str = "",
    group_suffix: str = "",
) -> dict[str, str]:
    """`given` has what the command line says, and wins."""
    suffix = group_suffix or os.environ.get("MYSQL_GROUP_SUFFIX", "")
    options: dict[str, str] = {}
    if defaults_file:
        options |= read_option_file(Path(defaults_file), required=True, suffix=suffix)
    elif not no_defaults:
        *files, own = default_files()
        for path in files:
            options |= read_option_file(path, suffix=suffix)
        if defaults_extra_file:
            options |= read_option_file(Path(defaults_extra_file), required=True, suffix=suffix)
        options |= read_option_file(own, suffix=suffix)
    options |= read_login_path(login_path)
    options |= _tls_of_mariadb(options, given) | given
    for name, variable in _ENVIRONMENT.items():
        options.setdefault(name, os.environ.get(variable, ""))
    for name in _NOT_FOLLOWED:
        if options.get(name):
            warn(f"the option {name} is not followed: memdiag has no such choice")
    if _is_on(options, "compress"):
        warn(f"the option compress is not followed: {NO_COMPRESSION}")
    return {key: value for key, value in options.items() if key in KNOWN}


def _tls_of_mariadb(options: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The ssl-mode of MariaDB's switches, which have no such option. An authority that the command line names is
    asked, whatever a file's switches say."""
    if "ssl-mode" in options:
        return {}
    is_off = "skip-ssl" in options or ("ssl" in options and not _on(options["ssl"]))
    if is_off and not _names_authority(given):
        return {"ssl-mode": "DISABLED"}
    if _is_on(options, "ssl-verify-server-cert"):
        return {"ssl-mode": "VERIFY_IDENTITY"}
    if "ssl" in options and not _names_authority(options) and not _names_authority(given):
        return {"ssl-mode": "REQUIRED"}
    return {}


def _is_on(options: Mapping[str, str], name: str) -> bool:
    """A switch, which needs no value."""
    return name in options and _on(options[name])


def _on(value: str) -> bool:
    return value.lower() not in ("0", "off", "false")


def _names_authority(options: Mapping[str, str]) -> bool:
    return bool(options.get("ssl-ca") or options.get("ssl-capath"))


def target(options: Mapping[str, str], words: str = "") -> Target:
    """`words` names a server on the command line: host, host:port, user@host, or the path of a socket."""
    values = dict(options)
    if words:
        named = _of_words(words)
        if named["host"] != "localhost" and values.get("protocol", "").upper() == "SOCKET":
            raise WrongOption(f"{words} and the socket {values.get('socket', '')} are two servers: name one of them")
        values |= named
    host = values.get("host") or "localhost"
    port = _number(values, "port", 3306) or 3306
    # mysql takes authorities for the wish to verify: sslopt-case.h.
    mode = (values.get("ssl-mode") or ("VERIFY_CA" if _names_authority(values) else "PREFERRED")).upper()
    if mode not in SSL_MODES:
        raise WrongOption(f"ssl-mode is one of {', '.join(SSL_MODES)}, not {mode!r}")
    protocol = (values.get("protocol") or "").upper()
    if protocol not in ("", "TCP", "SOCKET"):
        raise WrongOption(f"protocol is TCP or SOCKET, not {protocol!r}")
    by_socket = protocol == "SOCKET" or (
        protocol != "TCP"
        and host == "localhost"
        and hasattr(socket, "AF_UNIX")
        and not (words and "port" in _of_words(words))
    )
    path = values.get("socket") or ""
    if by_socket and not path:
        path = next(filter(_of_a_server, SOCKETS), SOCKETS[0])
    return Target(
        host=host,
        port=port,
        socket=path if by_socket else "",
        user=values.get("user") or _login_name(),
        password=values.get("password") or "",
        ssl_mode=mode,
        ssl_ca=values.get("ssl-ca") or "",
        ssl_capath=values.get("ssl-capath") or "",
        ssl_cert=values.get("ssl-cert") or "",
        ssl_key=values.get("ssl-key") or "",
        get_server_public_key=_is_on(values, "get-server-public-key"),
        connect_timeout=min(_number(values, "connect-timeout", 10) or _LONGEST_WAIT, _LONGEST_WAIT),
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
    with contextlib.suppress(ImportError, KeyError):
        import pwd  # Unix alone has it

        owners.add(pwd.getpwnam("mysql").pw_uid)
    return stat.S_ISSOCK(about.st_mode) and about.st_uid in owners


def _of_words(words: str) -> dict[str, str]:
    found: dict[str, str] = {}
    # The path of a socket may have an @, too.
    if "@" in words and not words.startswith(PATHS):
        found["user"], words = words.rsplit("@", 1)
    if words.startswith(PATHS):
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
        raise WrongOption(f"{name} is a whole number, not {text!r}")
    if len(text) > 18:  # Python reads no number of 4,300 digits
        raise WrongOption(f"{name} is a smaller number than one of {len(text)} digits")
    if name == "port" and int(text) > 65535:
        raise WrongOption(f"port is at most 65535, not {text}")
    return int(text)


def _login_name() -> str:
    """As mysql finds it (read_user_name() of its library), which believes the environment last."""
    if hasattr(os, "geteuid"):
        import pwd

        if os.geteuid() == 0:
            return "root"
        with contextlib.suppress(OSError):
            return os.getlogin()
        with contextlib.suppress(KeyError):
            return pwd.getpwuid(os.geteuid()).pw_name
        named = (os.environ.get(variable) for variable in ("USER", "LOGNAME", "LOGIN"))
        return next(filter(None, named), "UNKNOWN_USER")
    import getpass

    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return ""


def targets(options: Mapping[str, str], names: Sequence[str]) -> list[Target]:
    return [target(options, name) for name in names] or [target(options)]
