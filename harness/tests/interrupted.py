"""A signal at the worst moment: a program has been started, and its caller does not know it yet."""

import contextlib
import signal
import subprocess
from collections.abc import Iterator
from unittest import mock


@contextlib.contextmanager
def terminated_while_starting() -> Iterator[list[subprocess.Popen]]:
    """This process gets SIGTERM whenever it starts a program in the block. The value has these programs. The end of the
    block kills those that are still there."""
    started: list[subprocess.Popen] = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            started.append(self)
            signal.raise_signal(signal.SIGTERM)

    # As run_main() does it. SIGINT may be ignored, as where a script starts the tests in the background.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with mock.patch.object(subprocess, "Popen", Interrupted):
            yield started
    finally:
        signal.signal(signal.SIGTERM, before)
        for program in started:
            program.kill()
            program.wait()
