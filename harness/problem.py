"""The exception that programs show to their user: a sentence with the fault and its remedy."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable


class Problem(Exception):
    """A condition the user can act on; shown as one message, without a traceback."""


class NotPossible(Problem):
    """This machine does not allow what the program needs. The program has no fault."""


def run_main(name: str, main: Callable[[], int]) -> None:
    """Run a script's main(); turn Problem, Ctrl-C and SIGTERM into one message and a non-zero exit.

    SIGTERM is turned into KeyboardInterrupt so that `finally` and `with` blocks end the servers that were started.
    """

    def interrupted(_signum: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupted)
    try:
        code = main()
    except Problem as problem:
        print(f"{name}: {problem}", file=sys.stderr)
        code = 1
    except KeyboardInterrupt:
        print(
            f"\n{name}: interrupted; run it again to continue where it stopped",
            file=sys.stderr,
        )
        code = 130
    except BrokenPipeError:
        code = 141
    sys.exit(code)
