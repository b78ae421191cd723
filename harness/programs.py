"""Programs that a program runs, and how an interruption ends them."""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
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


class TimeLimit:
    """Ends a program that has not ended after so many seconds. It asks the program, so that the program ends its own
    children; after `patience` more it kills the program. What the program had started and has left, it kills then.

    The caller enters it when the program has started. It leaves it when nobody waits for the program any more.
    """

    def __init__(self, process: subprocess.Popen, seconds: float | None, patience: float = CLEAN_UP) -> None:
        """`seconds` None: there is no limit."""
        self.over = False
        self._process, self._seconds, self._patience = process, seconds, patience
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        if self._seconds is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._seconds is not None:
            self._thread.join()

    def _watch(self) -> None:
        if self._ended.wait(self._seconds):
            return
        self.over = True
        family = _family(self._process.pid)
        _signal(family[:1], signal.SIGTERM)
        self._ended.wait(self._patience)
        # Some have begun since, to clean up.
        _signal(family + _family(self._process.pid), signal.SIGKILL)


def _family(pid: int) -> list[tuple[int, str]]:
    """A process and those that it and they have started, each with the time of its start."""
    started: dict[int, str] = {}
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text(errors="replace").rsplit(")", 1)[1].split()
            one = int(path.parent.name)
            # proc(5) counts from 1 and begins with the number and the name.
            started[one] = fields[19]
            children.setdefault(int(fields[1]), []).append(one)
    found = [pid] if pid in started else []
    for one in found:
        found.extend(children.get(one, []))
    return [(one, started[one]) for one in found]


def _signal(family: list[tuple[int, str]], number: signal.Signals) -> None:
    """To those that are there still: another process may have got the number of one that has ended."""
    for one, start in family:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{one}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[19] == start:
                os.kill(one, number)


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
