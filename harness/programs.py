"""Programs that run side by side, and how an interruption ends them."""

import os
import subprocess
import threading


class Programs:
    """The programs that run now. An interruption ends them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen] = set()
        self._ending = False

    def start(self, command: list, **options) -> subprocess.Popen:
        with self._lock:
            if self._ending:
                raise KeyboardInterrupt
            process = subprocess.Popen(command, **options)
            self._running.add(process)
        return process

    def wait(self, process: subprocess.Popen) -> float:
        """Waits until the program ends; returns the seconds of processor time of it and its
        children."""
        _, status, usage = os.wait4(process.pid, 0)
        with self._lock:
            process.returncode = os.waitstatus_to_exitcode(status)
            self._running.discard(process)
        return usage.ru_utime + usage.ru_stime

    def end(self) -> None:
        """Asks each program to end, so that it can end its own children."""
        with self._lock:
            self._ending = True
            for process in self._running:
                process.terminate()
