"""The exception that programs show to their user: a sentence with the fault and its remedy."""

import contextlib
import signal
import sys
from collections.abc import Callable


class Problem(Exception):
    """A condition the user can act on; shown as one message, without a traceback."""


class NotPossible(Problem):
    """This machine does not allow what the program needs. The program has no fault."""


def run_main(name: str, main: Callable[[], int]) -> None:
    """Run a script's main(); turn Problem, Ctrl-C, SIGTERM and SIGHUP into one message and a non-zero exit.

    SIGTERM and SIGHUP are turned into KeyboardInterrupt so that `finally` and `with` blocks end the servers that were
    started. They do nothing after another interruption: Ctrl-C reaches the whole terminal, then the program that
    started this one sends SIGTERM, and that must not stop those blocks midway. A second Ctrl-C does stop them.
    """
    ending = False

    def interrupted(number: int, _frame: object) -> None:
        nonlocal ending
        if ending and number != signal.SIGINT:
            return
        ending = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupted)
    # A terminal or a connection that is gone; nohup ignores that.
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, interrupted)
    # A program that a script starts in the background ignores SIGINT, and goes on so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupted)
    try:
        code = main()
    except Problem as problem:
        print(f"{name}: {problem}", file=sys.stderr)
        code = 1
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):  # its terminal may be gone
            print(f"\n{name}: interrupted; run it again to continue where it stopped", file=sys.stderr, flush=True)
        code = 130
    except BrokenPipeError:
        code = 141
    sys.exit(code)
