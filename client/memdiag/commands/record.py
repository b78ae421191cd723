"""memdiag record: samples of a server, into a file."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from memdiag.collect.sample import Sampler
from memdiag.commands.arguments import chosen_targets
from memdiag.connect.options import Target
from memdiag.connect.session import Gone, LoginRefused, Session
from memdiag.durations import seconds_of
from memdiag.files import no_file
from memdiag.model.units import size
from memdiag.problem import Problem, WrongOption, warn
from memdiag.progress import Progress
from memdiag.recording import FORMAT


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", nargs="?", metavar="SERVER", help="as for report")
    parser.add_argument("-o", "--out", metavar="FILE", required=True, help="the recording")
    parser.add_argument("--every", default="10s", help="time between samples (default: %(default)s)")
    parser.add_argument(
        "--for", dest="length", default="", help="such as 30m, 8h; without it until Ctrl-C, which keeps the recording"
    )
    parser.add_argument("--force", action="store_true", help="replace a recording that is there")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    every = seconds_of(options.every)
    length = seconds_of(options.length) if options.length else None
    if every < 0.1:
        raise WrongOption("--every is at least 0.1s")
    (target,) = chosen_targets(options, [options.server] if options.server else [])
    path = Path(options.out)
    if not path.name or path.is_dir() or no_file(path):
        raise Problem(f"{path} is no file, and a recording needs one")
    if path.exists() and not options.force:
        raise Problem(f"{path} is there; take another -o, or --force, which replaces it")
    # Under another name until it is complete: see memdiag.files. Lines are whole, so a killed recorder leaves a file
    # that can be read.
    unfinished = path.with_name(path.name + ".unfinished")
    recorder = Recorder(target, every)
    try:
        file = open(unfinished, "x", encoding="utf-8", opener=_private)  # noqa: SIM115
    except FileExistsError:
        # A recorder was killed and left it, or still writes it. Its samples may be the only ones of a night.
        raise Problem(
            f"{unfinished} is there, of a recording that did not end; read it, and remove it or take another -o"
        ) from None
    except OSError as error:
        raise Problem(f"{unfinished} cannot be written: {error.strerror}") from None
    try:
        with file:
            recorder.record(file, length)
    except OSError as error:
        # A full disk: what was recorded until then can be read.
        raise Problem(f"{_left(unfinished, recorder.count)} cannot be written any more: {error.strerror}") from None
    except KeyboardInterrupt:
        # A second Ctrl-C, or one before the first sample.
        if not recorder.count:
            raise
    finally:
        if not recorder.count:
            unfinished.unlink(missing_ok=True)
    if not recorder.count:
        raise Problem("no sample was taken")
    os.replace(unfinished, path)
    print(f"{recorder.count} samples: {path.resolve()}")
    return 0


def _left(unfinished: Path, count: int) -> str:
    return f"{unfinished}, which keeps {count} samples," if count else str(unfinished)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Recorder:
    """Takes samples in time, also over a restart of the server."""

    def __init__(
        self,
        target: Target,
        every: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._target = target
        self._every = every
        self._clock = clock
        self._sleep = sleep
        self._session: Session | None = None
        self._sampler: Sampler | None = None
        # The last uptime, when the server had said it, and to whom.
        self._seen_up: tuple[int, float, Session | None] | None = None
        self._server: dict[str, Any] = {}  # the one that was asked first
        self.count = 0  # samples in the file

    def record(self, file: IO[str], length: float | None) -> None:
        """Until the time is over, or Ctrl-C."""
        self._connect()
        assert self._sampler
        _write(
            file,
            {
                "format": FORMAT,
                "label": self._target.label,
                "server": self._sampler.server,
                "every": self._every,
                "variables": self._sampler.variables(),
            },
        )
        begin = self._clock()
        progress = Progress()
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                sample = self.sample()
                # Before it is written: a signal in between must not remove it with the file.
                self.count += 1
                try:
                    _write(file, sample)
                except OSError:
                    self.count -= 1
                    raise
                state = sample.get("down") or f"RSS {size(sample['rss'])}"
                if self.count == 1 and sample.get("rss") is None and not sample.get("down"):
                    warn("RSS is unknown, as the server's process is not visible here; the rest is recorded")
                progress(f"{self.count} samples, {state}; Ctrl-C ends")
                passed = self._clock() - begin
                if length is not None and passed + self._every > length + 0.001:
                    break
                # The next full interval, so that slow samples do not shift the others.
                self._sleep(self._every - passed % self._every)
        progress.done()
        self._close()

    def sample(self) -> dict[str, Any]:
        """{"time", "down": the reason} where the server does not answer, with "refused": MySQL's number where it lets
        the account not in."""
        asked = self._clock()
        try:
            sample = self._sampled()
        except LoginRefused as refused:
            return {"time": time.time(), "down": str(refused), "refused": refused.code}
        except Problem as problem:
            return {"time": time.time(), "down": str(problem)}
        uptime = sample.get("uptime")
        if uptime is not None:
            # A new run can be older than the last one was. Uptimes are of whole seconds. Those of a run differ as well,
            # where the machine's clock was set back, but no session survives a restart.
            if self._seen_up:
                seen, when, session = self._seen_up
                if self._session is not session and uptime + 2 < seen + asked - when:
                    sample["restarted"] = True
            self._seen_up = uptime, self._clock(), self._session
        return sample

    def _sampled(self) -> dict[str, Any]:
        """An open session may have been ended by the server or a person, while the server is up: it is asked again."""
        had_session = self._sampler is not None
        try:
            return self._asked()
        except Gone:
            if not had_session:
                raise
        return self._asked()

    def _asked(self) -> dict[str, Any]:
        try:
            if self._sampler is None:
                self._connect()
            assert self._sampler
            return self._sampler.sample()
        except Problem:
            self._close()
            raise

    def _connect(self) -> None:
        self._session = Session(self._target)
        self._session.stay(self._every)
        self._sampler = Sampler(self._session)
        server = self._sampler.server
        self._server = self._server or server
        for name in ("server_uuid", "hostname"):
            then, now = self._server[name], server[name]
            if then and now:
                if then != now:
                    raise Problem(f"another server answers: its {name} is {now}, and {then} is recorded")
                break

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = self._sampler = None


def _write(file: IO[str], value: dict[str, Any]) -> None:
    file.write(json.dumps(value, separators=(",", ":")) + "\n")
    file.flush()
