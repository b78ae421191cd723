"""A load begins when no other server has anything left to do; a server may go before all else on the machine."""

import os
import time
from collections.abc import Callable

QUIET = 0.05  # of a processor
QUIET_SECONDS = 1.0
PATIENCE_SECONDS = 60.0


def wait_until_quiet(cpu_seconds: Callable[[], float]) -> None:
    """Wait until servers do no more work in the background, at most PATIENCE_SECONDS. `cpu_seconds`: their CPU time so far."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        before = cpu_seconds()
        time.sleep(QUIET_SECONDS)
        if cpu_seconds() - before <= QUIET * QUIET_SECONDS:
            break


def priority() -> list[str]:
    """The words before mysqld that let it go before its clients and whatever else runs. Only root may do this."""
    return ["nice", "-n", "-15"] if os.geteuid() == 0 else []
