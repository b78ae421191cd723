"""Programs that a program runs, and how an interruption ends them."""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import Any, Self

from harness import signals

# A check that has been interrupted ends its servers within so many seconds.
CLEAN_UP = 60.0


def captured(command: Sequence[str | os.PathLike], **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, whatever its status, with what it says as text. `options`: of subprocess.run()."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def run_group(command: Sequence[str | os.PathLike], **options) -> int:
    """Runs a program in a session of its own and returns its status. An interruption ends it and all that it has
    started, and waits for their end."""
    process = None
    try:
        with signals.held():
            process = subprocess.Popen(command, start_new_session=True, **options)
        return process.wait()
    except BaseException:
        if process is not None:
            _end_group(process)
        raise


def _end_group(leader: subprocess.Popen) -> None:
    deadline = time.monotonic() + CLEAN_UP
    with contextlib.suppress(ProcessLookupError):  # the last one has ended
        # A program that a script starts in the background ignores SIGINT.
        os.killpg(leader.pid, signal.SIGTERM)
        leader.wait()
        while time.monotonic() < deadline:
            os.killpg(leader.pid, 0)
            time.sleep(0.05)


class Programs:
    """The programs that run now, side by side. An interruption ends them, and no other program.

    Threads may share it. As a context manager it ends what still runs when the block is left.
    """

    def __init__(self, patience: float | None = None) -> None:
        """A program that has not ended so many seconds after end() is killed. None: it is waited for."""
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen] = set()
        self._ending = False
        self._patience = patience
        self._killer: threading.Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def run(self, command: list, **options) -> subprocess.CompletedProcess[str]:
        """Runs a program to its end and returns its output. After an interruption it waits until the
        program has cleaned up. `options`: of Popen."""
        # An interrupted caller reads no pipe, and a full pipe would block the clean-up.
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            process = self.start(command, stdout=output, **options)
            try:
                process.wait()
            except BaseException:
                self.end()
                process.wait()
                raise
            finally:
                self._has_ended(process)
            output.seek(0)
            return subprocess.CompletedProcess(command, process.returncode, output.read())

    def start(self, command: list, **options) -> subprocess.Popen:
        process = None
        try:
            with self._lock, signals.held():
                if self._ending:
                    raise KeyboardInterrupt
                process = subprocess.Popen(command, **options)
                self._running.add(process)
        except BaseException:
            if process is not None:
                self.end()
                process.wait()
                self._has_ended(process)
            raise
        return process

    def wait(self, process: subprocess.Popen) -> float:
        """Waits until the program ends; returns the seconds of processor time of it and its
        children."""
        _, status, usage = os.wait4(process.pid, 0)
        with self._lock:
            process.returncode = os.waitstatus_to_exitcode(status)
        self._has_ended(process)
        return usage.ru_utime + usage.ru_stime

    def end(self) -> None:
        """Asks each program to end, so that it can end its own children. No other starts after this."""
        with self._lock:
            if self._ending:
                return
            self._ending = True
            for process in self._running:
                process.terminate()
            if self._running and self._patience is not None:
                self._killer = threading.Timer(self._patience, self._kill)
                self._killer.daemon = True
                self._killer.start()

    def _has_ended(self, process: subprocess.Popen) -> None:
        with self._lock:
            self._running.discard(process)
            if self._killer and not self._running:
                self._killer.cancel()

    def _kill(self) -> None:
        with self._lock:
            for process in self._running:
                process.kill()
