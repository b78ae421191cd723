"""Waiting for what must come. A busy machine may stall for many seconds."""

import time
from collections.abc import Callable

PATIENCE = 180.0


def until(true: Callable[[], object], seconds: float = PATIENCE, pause: float = 0.1) -> bool:
    """Asks again and again. False: it was not true within that time."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True
