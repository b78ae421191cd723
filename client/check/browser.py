"""One headless Chromium for many pages: a browser that starts for each of them takes more than most of the checks."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

from harness import signals
from harness.problem import Problem

PATIENCE = 900.0
_CHUNK = 1 << 20
# Above those that the shell gives the browser.
_LEAST_FD = 10


class Browser:
    """Chromium, told what to do through a pipe in its DevTools protocol. As a context manager it ends with the block."""

    def __init__(self, folder: Path, *words: str) -> None:
        if not shutil.which("chromium"):
            raise Problem("chromium is missing; install it with: apt-get install chromium")
        self._folder, self._words = folder, words
        self._asked = 0
        self._unread = b""
        self._session: dict[str, str] = {}

    def __enter__(self) -> Self:
        # A process of the browser may still hold its profile at the end.
        self._profile = tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True)
        self._log = Path(self._profile.name) / "stderr"
        its_input, self._input = _pipe()
        self._output, its_output = _pipe()
        command = [
            "chromium",
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-background-networking",
            f"--user-data-dir={self._profile.name}",
            "--remote-debugging-pipe",
            *self._words,
            "about:blank",
        ]
        # It reads from 3 and writes to 4. A shell duplicates no descriptor above 9.
        shell = ["sh", "-c", f'exec "$@" 3</dev/fd/{its_input} 4>/dev/fd/{its_output}', "sh"]
        try:
            with self._log.open("wb") as log, signals.held():
                self._process = subprocess.Popen(
                    [*shell, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(its_input, its_output),
                )
        finally:
            os.close(its_input)
            os.close(its_output)
        try:
            targets = self._ask("Target.getTargets")["targetInfos"]
            page = next(one["targetId"] for one in targets if one["type"] == "page")
            self._session = {"sessionId": self._ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]}
            self._ask("Page.enable")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def open(self, address: str, width: int, height: int, dark: bool) -> None:
        """Loads the page anew in a window of that size."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])
        # From another page: what follows # alone would not load it.
        for place in ("about:blank", address):
            error = self._ask("Page.navigate", url=place).get("errorText")
            if error:
                raise Problem(f"{address}: {error}")
            self._until("Page.loadEventFired")

    def tells(self, expression: str) -> Any:
        """The value of the expression in the page; that of a promise when it is kept."""
        told = self._ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            thrown = told["exceptionDetails"]
            raise Problem(thrown.get("exception", {}).get("description") or thrown["text"])
        return told["result"].get("value")

    def picture(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot")["data"]))

    def print(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self._ask("Page.printToPDF", printBackground=True)["data"]))

    def _ask(self, method: str, **parameters: object) -> dict[str, Any]:
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": parameters, **self._session}
        rest = json.dumps(message).encode() + b"\0"
        try:
            while rest:
                rest = rest[os.write(self._input, rest) :]
        except BrokenPipeError:
            raise self._gone() from None
        deadline = time.monotonic() + PATIENCE
        while (answer := self._read(deadline)).get("id") != self._asked:
            pass
        if "error" in answer:
            raise Problem(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _until(self, event: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline).get("method") != event:
            pass

    def _read(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._unread:
            if not select.select([self._output], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise Problem(f"chromium did not answer within {PATIENCE:.0f} s")
            part = os.read(self._output, _CHUNK)
            if not part:
                raise self._gone()
            self._unread += part
        message, self._unread = self._unread.split(b"\0", 1)
        return json.loads(message)

    def _gone(self) -> Problem:
        return Problem(f"chromium has ended: {self._log.read_text(errors='replace')[-300:]}")

    def _end(self) -> None:
        # At the end of its input the browser ends.
        os.close(self._input)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            os.close(self._output)
            self._profile.cleanup()


def _pipe() -> tuple[int, int]:
    """A pipe for reading and for writing."""
    low = os.pipe()
    try:
        return fcntl.fcntl(low[0], fcntl.F_DUPFD_CLOEXEC, _LEAST_FD), fcntl.fcntl(
            low[1], fcntl.F_DUPFD_CLOEXEC, _LEAST_FD
        )
    finally:
        for end in low:
            os.close(end)
