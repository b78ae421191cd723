"""The command line: subcommands, and faults as one line each."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys

from memdiag import __version__
from memdiag.commands import diff, record, report, stacks, top, what_if
from memdiag.commands.arguments import add_connection, split_short_password
from memdiag.connect.process_list import hide_passwords
from memdiag.model.words import printable
from memdiag.problem import Problem

_COMMANDS = (
    ("report", report, "one page: what is wrong, the proof, the remedy, every figure"),
    ("top", top, "a live screen: RSS, limit, pools, sessions; purges on a key"),
    ("record", record, "samples of any server, into a file"),
    ("diff", diff, "two reports, moments or servers, compared; a gate for CI"),
    ("stacks", stacks, "the code that holds most memory, with source lines; for servers with the heap profiler on"),
    ("what-if", what_if, "another limit for the recorded history; other values of variables"),
)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="memdiag",
        description="Where a MySQL server's memory is: ours, stock MySQL, Percona Server and MariaDB.",
        epilog="memdiag COMMAND --help shows the options. docs/client.md has the whole.",
    )
    result.add_argument("--version", action="version", version=f"memdiag {__version__}")
    commands = result.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module, words in _COMMANDS:
        one = commands.add_parser(name, help=words, description=words, add_help=False)
        add_connection(one)
        module.add(one)
    return result


def main(words: list[str]) -> int:
    options = parser().parse_args(split_short_password(words))
    return options.run(options)


def run() -> None:
    def ended(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, ended)
    # A connection to the machine that breaks; nohup ignores that.
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, ended)
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's character set lacks is no reason to have no report.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    hide_passwords()
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except Problem as problem:
        print(f"memdiag: {printable(str(problem))}", file=sys.stderr)
        code = problem.status
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):  # its terminal may be gone
            print("\nmemdiag: interrupted; nothing was left half-written", file=sys.stderr, flush=True)
        code = 130
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
