"""Options that all subcommands share: how to reach a server, named as the mysql client names them."""

from __future__ import annotations

import argparse
import getpass
import re
import sys
from typing import Any, NoReturn

from memdiag.connect.options import ASK, KNOWN, NO_COMPRESSION, Target, option_values, targets
from memdiag.problem import Problem, WrongOption, warn


class Refuse(argparse.Action):
    """An option of mysql's that memdiag cannot honour. To ignore it would be a lie."""

    def __call__(self, _parser: Any, _namespace: Any, _values: Any, option: str | None = None) -> NoReturn:
        raise WrongOption(f"{option} cannot be honoured: {NO_COMPRESSION}")


def add_common(parser: argparse.ArgumentParser) -> None:
    """--help instead of -h, which is the host here as in mysql."""
    parser.add_argument("--help", action="help", help="show this and end")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show each statement, its time, and where it failed"
    )


def add_connection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the server, as the mysql client is told")
    group.add_argument("-h", "--host", help="host name or address")
    group.add_argument("-P", "--port", help="of TCP, which localhost takes with --protocol=TCP alone")
    group.add_argument("-S", "--socket", help="path of the Unix socket")
    group.add_argument("-u", "--user", help="account (default: the name of this system's user)")
    group.add_argument(
        "-p",
        "--password",
        nargs="?",
        const=ASK,
        help="without a value it is asked for; safer: an option file or a login path",
    )
    group.add_argument("--protocol", help="TCP or SOCKET")
    group.add_argument("--ssl-mode", help="DISABLED, PREFERRED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY")
    group.add_argument("--ssl-ca", help="file of certificates; without --ssl-mode it means VERIFY_CA")
    group.add_argument("--ssl-capath", help="folder of certificates, as --ssl-ca")
    group.add_argument("--ssl-cert", help="file with the certificate of this account")
    group.add_argument("--ssl-key", help="file with its key")
    group.add_argument(
        "--get-server-public-key",
        action="store_const",
        const="1",
        help="without TLS, send the password encrypted with a key that the server sends; a peer in the middle can read it",
    )
    group.add_argument("-C", "--compress", action=Refuse, nargs=0, help="refused: PyMySQL has no compression")
    group.add_argument("--connect-timeout", help="seconds until the login is done (default: 10; 0: no limit)")
    group.add_argument("--login-path", default="", help="of mysql_config_editor")
    group.add_argument("--defaults-file", default="", help="read only this option file")
    group.add_argument("--defaults-extra-file", default="", help="read this option file, too")
    group.add_argument("--defaults-group-suffix", default="", help="also read groups of option files with this end")
    group.add_argument("--no-defaults", action="store_true", help="read no option file")


def chosen_targets(options: argparse.Namespace, names: list[str] | None = None) -> list[Target]:
    given = {name: value for name in KNOWN if (value := getattr(options, name.replace("-", "_"))) is not None}
    if "socket" in given and "host" not in given and "port" not in given:
        given.setdefault("protocol", "SOCKET")
    values = option_values(
        given,
        defaults_file=options.defaults_file,
        defaults_extra_file=options.defaults_extra_file,
        no_defaults=options.no_defaults,
        login_path=options.login_path,
        group_suffix=options.defaults_group_suffix,
    )
    if values.get("password") == ASK:
        values["password"] = _asked()
    result = targets(values, names or [])
    for one in result:
        if one.socket and "port" in given:
            warn(
                f"-P {given['port']} is not used, as {one.socket} is a socket; TCP takes -h 127.0.0.1 or --protocol=TCP"
            )
    return result


def _asked() -> str:
    if not sys.stdin.isatty():
        raise Problem("there is no terminal to ask for the password; use an option file, a login path or MYSQL_PWD")
    try:
        return getpass.getpass("Enter password: ")
    except EOFError:
        raise Problem("no password was given") from None


def split_short_password(words: list[str]) -> list[str]:
    """mysql takes -pSECRET as one word, and never takes the next word for the password, nor after --pass."""
    result = []
    for word in words:
        name, equals, value = word.partition("=")
        if len(name) > len("--p") and "--password".startswith(name):
            result.append(f"--password={value if equals else ASK}")
        elif found := re.match("-v*p", word):
            result += ["-v"] * (found.end() > 2) + [f"--password={word[found.end() :] or ASK}"]
        else:
            result.append(word)
    return result
