"""Runs the steps of ./run-tests in order, some side by side. An interrupted run continues where it stopped."""

import hashlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from harness.checkout import own_files
from harness.common import ROOT, say
from harness.problem import Problem
from harness.programs import Programs, TimeLimit
from harness.state_file import read_state, write_state
from tools.build.environment import ENVIRONMENT, environment
from tools.runner_output import REPORT_LINES, REPORT_WIDTH, Result

Part = TypeVar("Part")

# The step that others need.
BUILD = "build"

# So many steps run at a time. Most keep more than one processor busy, but not all the time.
SIDE_BY_SIDE = 4


# Steps that do not wait have a priority lower by this. Twice as much would starve them.
NICE = 5


@dataclass(frozen=True)
class Step:
    name: str
    what: str
    run: Callable[["Run"], Result]
    # The step is for presets of these flavours.
    flavours: tuple[str, ...] = ("product",)
    # The names of these presets; empty: all.
    presets: tuple[str, ...] = ()
    # May run beside other such steps. A step that measures time, memory or the
    # machine runs alone.
    beside: bool = False
    # Waits for most of its time. The steps beside it leave it the processors when
    # it wants them, because they only compute and it would end last.
    waits: bool = False
    needs_build: bool = True
    # Its output is shown at once, beside other steps as well: it may take long.
    live: bool = False
    # After so many minutes its programs are ended, and it has failed. None: never.
    minutes: float | None = 20


class Run:
    """Everything that a step needs: where the build is, and how programs are run."""

    def __init__(
        self,
        preset: str,
        jobs: int,
        programs: Programs,
        offline: bool = False,
        live: bool = True,
        nice: int = 0,
        minutes: float | None = None,
    ):
        self.preset, self.jobs, self.offline = preset, jobs, offline
        self.build = ROOT / "build" / preset
        self.logs = self.build / "test-logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.cpu_seconds = 0.0
        self.shown: list[str] = []  # output to show when the step has ended
        self.late: list[str] = []  # about programs that did not end in time
        self._programs, self._live, self._nice, self._minutes = programs, live, nice, minutes
        self._began = time.monotonic()
        self._joining = threading.Lock()

    def for_step(self, step: Step, live: bool, nice: int = 0) -> "Run":
        return Run(self.preset, self.jobs, self._programs, self.offline, live, nice, step.minutes)

    def output(
        self, name: str, command: list, cwd: Path = ROOT, extra_environment: dict[str, str] | None = None
    ) -> tuple[int, str]:
        """Runs a program and shows its output; returns status and output.
        test-logs/<name>.log keeps the output too."""
        lines = []
        # A missing program is Popen's to report.
        if self._nice and shutil.which(command[0]):
            command = ["nice", f"--adjustment={self._nice}", *command]
        with open(self.logs / f"{name}.log", "w") as log:
            try:
                process = self._programs.start(
                    [str(part) for part in command],
                    cwd=cwd,
                    env={**os.environ, "CMAKE_BUILD_PARALLEL_LEVEL": str(self.jobs)} | (extra_environment or {}),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                )
            except FileNotFoundError:
                raise Problem(
                    f"{command[0]} is missing; ./run-tests, as root on Debian, installs what is needed"
                ) from None
            with TimeLimit(process, self._seconds_left()) as limit:
                try:
                    with process.stdout:
                        for line in process.stdout:
                            if self._live:
                                print(line, end="", flush=True)
                            else:
                                self.shown.append(line)
                            log.write(line)
                            lines.append(line)
                except BaseException:
                    self._programs.end()
                    raise
                finally:
                    self.cpu_seconds += self._programs.wait(process)
        if limit.over:
            last = "".join(f"  {line.rstrip()[:REPORT_WIDTH]}\n" for line in lines[-REPORT_LINES:])
            self.late.append(f"{name} was ended after {self._minutes:g} minutes; its last lines:\n{last}".rstrip())
        return process.returncode, "".join(lines)

    def side_by_side(self, parts: Sequence[Callable[["Run"], Part]], at_a_time: int) -> list[Part]:
        """Runs parts of a step, the first ones first. The output of each is shown when it has ended."""

        def run_part(part: Callable[["Run"], Part]) -> Part:
            run = Run(self.preset, self.jobs, self._programs, self.offline, False, self._nice, self._minutes)
            run._began = self._began
            try:
                return part(run)
            finally:
                with self._joining:
                    self.cpu_seconds += run.cpu_seconds
                    self.late += run.late
                    if self._live:
                        print("".join(run.shown), end="", flush=True)
                    else:
                        self.shown += run.shown

        with ThreadPoolExecutor(at_a_time) as pool:
            try:
                return list(pool.map(run_part, parts))
            except BaseException:
                self._programs.end()
                raise

    def _seconds_left(self) -> float | None:
        return None if self._minutes is None else max(0.0, self._began + 60 * self._minutes - time.monotonic())


# --- resuming ----------------------------------------------------------------------


# Below the folder of a preset.
MYSQLD = "bld/runtime_output_directory/mysqld"


def fingerprint(offline: bool) -> str:
    """A hash of what decides the results: the files of the checkout, the option --offline, and
    the environment that the build reads."""
    sum_ = hashlib.sha256(f"{offline}\0{environment(ENVIRONMENT)}\0".encode())
    for path in own_files(ROOT):
        sum_.update(os.fsencode(path.relative_to(ROOT)) + b"\0" + path.read_bytes())
    return sum_.hexdigest()


class Progress:
    """The steps that an interrupted run has finished. `path` is in the folder of the preset."""

    def __init__(self, path: Path, fresh: bool, offline: bool = False):
        self.path, self.print = path, fingerprint(offline)
        self.done: dict[str, dict] = {}
        state = {} if fresh else read_state(path)
        same_files = state.get("fingerprint") == self.print
        if same_files and state["mysqld"] == self._mysqld():
            self.done = state["done"]

    def _mysqld(self) -> list[int]:
        """Size and time of the server. Another build may replace it between two runs."""
        try:
            status = (self.path.parent / MYSQLD).stat()
        except FileNotFoundError:
            return []
        return [status.st_size, status.st_mtime_ns]

    def add(self, step: Step, result: Result) -> None:
        self.done[step.name] = asdict(result)
        self._write()

    def finish(self, steps: list[Step]) -> None:
        """Forgets these steps. After --only, those of an interrupted run of all steps stay."""
        for step in steps:
            self.done.pop(step.name, None)
        if self.done:
            self._write()
        else:
            self.path.unlink(missing_ok=True)

    def _write(self) -> None:
        state = {"fingerprint": self.print, "mysqld": self._mysqld(), "done": self.done}
        write_state(self.path, state)


# --- performing --------------------------------------------------------------------


def batches(steps: list[Step]) -> Iterator[list[Step]]:
    """Splits the steps, in order, into batches: neighbours that may run side by side are one batch."""
    batch: list[Step] = []
    for step in steps:
        if batch and not (step.beside and batch[-1].beside):
            yield batch
            batch = []
        batch.append(step)
    if batch:
        yield batch


def run_step(step: Step, run: Run) -> Result:
    began = time.monotonic()
    result = step.run(run)
    result.seconds = time.monotonic() - began
    result.cpu_seconds = run.cpu_seconds
    # Whatever the runners said until then.
    result.failed += len(run.late)
    result.failures += run.late
    return result


def run_batch(batch: list[Step], run: Run, programs: Programs) -> Iterator[tuple[Step, Result]]:
    """Yields each step when it has ended. What needs the build begins when the build has ended, and not at all where that
    has failed."""
    if len(batch) == 1:
        say(f"== {batch[0].name}: {batch[0].what}")
        yield batch[0], run_step(batch[0], run.for_step(batch[0], live=True))
        return
    say(f"== side by side, with output at the end: {', '.join(s.name for s in batch if not s.live)}")
    for step in batch:
        if step.live:
            say(f"== {step.name}: {step.what}")
    # A step that waits for the build takes no thread, so that those behind it begin.
    later = list(batch)
    built = all(step.name != BUILD for step in batch)
    running: dict[Future[Result], tuple[Step, Run]] = {}
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        try:
            while later or running:
                ready = [step for step in later if built or step.name == BUILD or not step.needs_build]
                for step in ready[: SIDE_BY_SIDE - len(running)]:
                    later.remove(step)
                    of_step = run.for_step(step, live=step.live, nice=0 if step.waits else NICE)
                    running[pool.submit(run_step, step, of_step)] = step, of_step
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    step, of_step = running.pop(future)
                    if not step.live:
                        say(f"== {step.name}: {step.what}")
                    print("".join(of_step.shown), end="", flush=True)
                    result = future.result()
                    if step.name == BUILD:
                        built = True
                        if result.failed:
                            later = [one for one in later if not one.needs_build]
                    yield step, result
        except BaseException:
            for future in running:
                future.cancel()
            programs.end()
            raise


def perform(steps: list[Step], run: Run, programs: Programs, progress: Progress) -> dict[str, Result]:
    """The results in the order of the steps."""
    results: dict[str, Result] = {}
    broken = False
    for batch in batches(steps):
        wanted = []
        for step in batch:
            if step.name in progress.done:
                results[step.name] = Result(**progress.done[step.name])
                say(f"== {step.name}: done before the interruption")
            elif not (broken and step.needs_build):
                wanted.append(step)
        for step, result in run_batch(wanted, run, programs) if wanted else ():
            results[step.name] = result
            broken = broken or (step.name == BUILD and result.failed > 0)
            if not result.failed:  # a step that failed runs again
                progress.add(step, result)
        for step in batch:
            if step.name not in results:
                results[step.name] = Result(0, 0, 1, "not run: the build failed")
                say(f"== {step.name}: not run, because the build failed")
    return {step.name: results[step.name] for step in steps}
