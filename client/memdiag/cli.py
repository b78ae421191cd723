"""The command line: subcommands, and faults as one line each."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import traceback
from pathlib import Path

from memdiag import __version__, progress
from memdiag.commands import diff, record, report, stacks, top, verify, what_if
from memdiag.commands.arguments import add_common, add_connection, split_short_password
from memdiag.connect.process_list import hide_passwords
from memdiag.problem import Ended, Problem, WrongOption, warn

_COMMANDS = (
    ("report", report, "one page: what is wrong, the proof, the remedy, every figure", "db1 db2:3307 --text"),
    ("top", top, "a live screen: RSS, limit, pools, sessions; purges on a key", "-S /run/mysqld/mysqld.sock"),
    ("record", record, "samples of any server, into a file", "-o night.rec --every 10s --for 8h"),
    ("diff", diff, "two reports, moments or servers, compared; a gate for CI", "night.rec@first night.rec@peak"),
    (
        "stacks",
        stacks,
        "the code that holds most memory, with source lines; for servers with the heap profiler on",
        "-u root -p db1",
    ),
    ("what-if", what_if, "another limit for the recorded history; other values of variables", "--limit 8G db1"),
    ("verify", verify, "the installed files of this server against the SHA-256 sums of its packages", ""),
)
_EXAMPLES = """examples:
  memdiag report                   what is wrong with the server of this machine, and a page of it
  memdiag report -h db1 -u root -p --text
  memdiag top -S /run/mysqld/mysqld.sock
  memdiag record -o night.rec --every 10s --for 8h

memdiag COMMAND --help shows the options of a command, which follow it.
"""
# Each package has it.
MANUAL = Path(__file__).with_name("client.md")


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="memdiag",
        description="Where a MySQL server's memory is: ours, stock MySQL, Percona Server and MariaDB.",
        epilog=f"{_EXAMPLES}All of it: {MANUAL}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("-V", "--version", action="version", version=f"memdiag {__version__}")
    commands = result.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module, words, example in _COMMANDS:
        one = commands.add_parser(
            name, help=words, description=words, epilog=f"example: memdiag {name} {example}", add_help=False
        )
        add_common(one)
        if name != "verify":  # it asks no server
            add_connection(one)
        module.add(one)
    return result


def main(words: list[str]) -> int:
    if not words:
        parser().print_help(sys.stderr)
        return WrongOption.status
    if words[0] == "help":
        words = [*words[1:2], "--help"]
    elif words[0] in ("-h", "-P", "-S", "-u") and len(words) > 1:
        raise WrongOption(f"{words[0]} follows the command, as in: memdiag report {words[0]} {words[1]}")
    options = parser().parse_args(split_short_password(words))
    progress.verbose = options.verbose
    return options.run(options)


def run() -> None:
    def ended(number: int, _frame: object) -> None:
        raise Ended(number)

    signal.signal(signal.SIGTERM, ended)
    # A connection to the machine that breaks; nohup ignores that.
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) is signal.SIG_DFL:
        signal.signal(hangup, ended)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # `>&-`; its number would go to the next socket or file, too
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's character set lacks is no reason to have no report.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    hide_passwords()
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except Problem as problem:
        if progress.verbose:
            traceback.print_exc()
        warn(str(problem))
        code = problem.status
    except KeyboardInterrupt as interrupted:
        with contextlib.suppress(OSError):  # its terminal may be gone
            print("\nmemdiag: interrupted; nothing was left half-written", file=sys.stderr, flush=True)
        code = 128 + (interrupted.number if isinstance(interrupted, Ended) else signal.SIGINT)
    except BrokenPipeError:
        _leave_output()
        code = 141
    except OSError as error:
        # Files that a command writes are Problems; what is left is standard output on a full disk.
        print(f"memdiag: {error.filename or 'the output'} cannot be written: {error.strerror}", file=sys.stderr)
        _leave_output()
        code = 1
    sys.exit(code)


def _leave_output() -> None:
    """The interpreter would complain about it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
