#!/usr/bin/env python3
"""Runs all tests and adds them up: started by ./run-tests.

The last line is `N passed, N failed, N skipped`, summed over all runners; the exit
status is 0 only if nothing failed. An interrupted run goes on with the step that it
was in, as long as no file of the checkout has changed.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness import mtr
from harness.common import ROOT, SHIPPED, known_preset, lock, presets, say
from harness.problem import Problem, run_main


@dataclass
class Result:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    words: str = ""  # the runner's own closing line
    seconds: float = 0


@dataclass(frozen=True)
class Step:
    name: str
    what: str
    run: Callable[["Run"], Result]
    flavours: tuple[str, ...] = ("product",)
    # Of a flavour, those for which it says something; none: all.
    presets: tuple[str, ...] = ()


class Run:
    """One call of ./run-tests: where things are, and how programs are run."""

    def __init__(self, preset: str, jobs: int):
        self.preset, self.jobs = preset, jobs
        self.build = ROOT / "build" / preset
        self.logs = self.build / "test-logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    def output(self, name: str, command: list, cwd: Path = ROOT) -> tuple[int, str]:
        """Runs a program, shows its output, and returns status and output; the
        output is kept in test-logs/<name>.log too."""
        env = {**os.environ, "CMAKE_BUILD_PARALLEL_LEVEL": str(self.jobs)}
        lines = []
        with open(self.logs / f"{name}.log", "w") as log:
            try:
                process = subprocess.Popen(
                    [str(part) for part in command],
                    cwd=cwd,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                )
            except FileNotFoundError:
                raise Problem(
                    f"{command[0]} is missing; ./run-tests, as root on Debian, "
                    "installs what is needed"
                ) from None
            try:
                for line in process.stdout:
                    print(line, end="", flush=True)
                    log.write(line)
                    lines.append(line)
                status = process.wait()
            except BaseException:
                # Ctrl-C reaches the child too: let it clean up after itself.
                process.terminate()
                process.wait()
                raise
        return status, "".join(lines)


def closing(text: str, *patterns: str) -> str:
    """The last lines of a runner's output that match, as one line."""
    found = []
    for pattern in patterns:
        if lines := re.findall(pattern, text, re.MULTILINE):
            found.append(lines[-1].strip())
    return "; ".join(found)


def yes_or_no(status: int, words: str) -> Result:
    return Result(int(status == 0), int(status != 0), 0, words)


# Python's unit tests: name, folder, and the folder that their imports begin at.
UNIT_TESTS = (
    ("tools", ".", "."),
    # packaging/ is no package: it would hide a library of that name.
    ("packaging", "packaging/unit", "packaging"),
)


# --- the steps -----------------------------------------------------------------


def lint_patches(run: Run) -> Result:
    command = [sys.executable, "tools/build/patches.py", "lint"]
    status, text = run.output("patches", command)
    return yes_or_no(status, closing(text, r"^patches: .*$"))


def lint_scripts(run: Run) -> Result:
    """What there is of the checkers; ruff is not in Debian 12."""
    places = ("run-*", ".ci/*", "tools/*.sh", "cmake/*.sh", "packaging/**/*")
    files = [path for place in places for path in ROOT.glob(place) if path.is_file()]
    shell = sorted(
        str(path.relative_to(ROOT))
        for path in files
        if path.suffix == ".sh"
        or re.match(rb"#!.*\b(ba)?sh$", path.read_bytes().partition(b"\n")[0])
    )
    commands = {
        "shellcheck": ["shellcheck", "-x", *shell],
        "ruff": [
            "ruff",
            "check",
            "--isolated",
            "--no-cache",
            "harness",
            "tools",
            "bench",
            "packaging",
        ],
    }
    total = Result()
    words = []
    for name, command in commands.items():
        if not shutil.which(name):
            total.skipped += 1
            words.append(f"{name}: not installed")
            continue
        status, _ = run.output(name, command)
        total.passed += status == 0
        total.failed += status != 0
        words.append(f"{name}: {'clean' if status == 0 else 'complains'}")
    total.words = ", ".join(words)
    return total


def test_tools(run: Run) -> Result:
    total = Result()
    for name, folder, top in UNIT_TESTS:
        command = [sys.executable, "-m", "unittest", "discover", "-s", folder]
        status, text = run.output(name, [*command, "-t", top])
        result = parse_unittest(status, text)
        total.passed += result.passed
        total.failed += result.failed
        total.skipped += result.skipped
        total.words += f"{'; ' if total.words else ''}{name}: {result.words}"
    return total


def build(run: Run) -> Result:
    return build_preset(run, run.preset)


def unit_tests(run: Run) -> Result:
    return run_ctest(run, run.preset)


def sanitized(preset: str) -> Callable[[Run], Result]:
    def build_and_test(run: Run) -> Result:
        built = build_preset(run, preset)
        return built if built.failed else run_ctest(run, preset)

    return build_and_test


def mtr_memdiag(run: Run) -> Result:
    if not list(ROOT.glob("mysql-test/suite/memdiag/t/*.test")):
        return Result(0, 0, 1, "mysql-test/suite/memdiag has no tests")
    return run_mtr(run, "memdiag")


def mtr_innodb_fts(run: Run) -> Result:
    return run_mtr(run, "innodb_fts")


def own(name: str, *command: str) -> Callable[[Run], Result]:
    """A program of ours that tests itself."""

    def run_it(run: Run) -> Result:
        status, text = run.output(
            name, [sys.executable, *command, "--preset", run.preset]
        )
        return parse_own(name, status, text)

    return run_it


def parse_own(name: str, status: int, text: str) -> Result:
    match = re.search(
        rf"^(?:{name}: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped(?:: .*)?)?$",
        text,
        re.MULTILINE,
    )
    passed, failed, skipped = (
        (int(x or 0) for x in match.groups()) if match else (0,) * 3
    )
    if status and not failed:
        failed = 1
    return Result(passed, failed, skipped, closing(text, r"^.*\S.*$"))


# --- what the steps share --------------------------------------------------------


def parse_unittest(status: int, text: str) -> Result:
    ran = re.search(r"^Ran (\d+) tests?", text, re.MULTILINE)
    total = int(ran.group(1)) if ran else 0
    counts = {
        word: sum(
            int(n) for n in re.findall(rf"\b{word}=(\d+)", text.split("Ran ")[-1])
        )
        for word in ("failures", "errors", "skipped")
    }
    failed = counts["failures"] + counts["errors"]
    if status and not failed:  # the runner itself fell over
        failed = 1
    words = closing(text, r"^Ran \d+ tests?.*$", r"^(?:OK|FAILED).*$")
    return Result(
        max(total - failed - counts["skipped"], 0), failed, counts["skipped"], words
    )


def build_preset(run: Run, preset: str) -> Result:
    for verb in (["--preset", preset], ["--build", "--preset", preset]):
        name = f"{'build' if len(verb) > 2 else 'configure'}-{preset}"
        status, _ = run.output(name, ["cmake", *verb])
        if status:
            log = (run.logs / f"{name}.log").relative_to(ROOT)
            return Result(0, 1, 0, f"the build failed; its output is in {log}")
    return Result(1, 0, 0, "configured and built")


def run_ctest(run: Run, preset: str) -> Result:
    # Two at a time at most: some measure time and memory.
    jobs = ["--parallel", min(run.jobs, 2)]
    status, text = run.output(f"ctest-{preset}", ["ctest", "--preset", preset, *jobs])
    return parse_ctest(status, text)


def parse_ctest(status: int, text: str) -> Result:
    match = re.search(
        r"^\d+% tests passed, (\d+) tests? failed out of (\d+)", text, re.MULTILINE
    )
    failed, total = (int(x) for x in match.groups()) if match else (0, 0)
    skipped = len(
        re.findall(r"^\s+\d+ - .*\((?:Skipped|Disabled)\)$", text, re.MULTILINE)
    )
    if status and not failed:
        failed = 1
    words = closing(text, r"^\d+% tests passed.*$", r"^Total Test time.*$")
    if not words:
        words = closing(text, r"^.*\S.*$")
    return Result(max(total - failed - skipped, 0), failed, skipped, words)


def run_mtr(run: Run, suite: str) -> Result:
    command = mtr.command(run.build, run.jobs, f"--suite={suite}")
    status, text = run.output(f"mtr-{suite}", command, mtr.folder(run.build))
    return parse_mtr(status, text)


def parse_mtr(status: int, text: str) -> Result:
    results = [line.result for line in mtr.parse(text)]
    failed = results.count("fail")
    if status and not failed:  # it could not start, or a server complained at its end
        failed = 1
    words = closing(
        text,
        r"^Completed: .*$|^mysql-test-run: \*\*\* ERROR: .*$",
        r"^\d+ tests were skipped.*$",
    )
    skipped = results.count("skipped") + results.count("disabled")
    return Result(results.count("pass"), failed, skipped, words)


STEPS = [
    Step("patches", "the patch series against the rules, seconds", lint_patches),
    Step("scripts", "shellcheck and ruff, seconds", lint_scripts),
    Step("tools", "unit tests of the tools, seconds", test_tools),
    Step(
        "build",
        "configure and build; most of an hour where the compiler cache is empty",
        build,
        ("product", "stock", "linked"),
    ),
    Step(
        "unit",
        "our layer without the server, about 2 minutes",
        unit_tests,
        ("product", "unit"),
    ),
    Step(
        "tsan",
        "the same under the thread sanitizer, about 2 minutes",
        sanitized("tsan"),
    ),
    Step(
        "asan",
        "the same under the address and undefined sanitizers, about 2 minutes",
        sanitized("asan"),
    ),
    Step("memdiag", "our suite of mysql-test-run, minutes", mtr_memdiag),
    Step(
        "innodb_fts",
        "upstream's full-text suite on our server, about 2 minutes",
        mtr_innodb_fts,
        ("product", "stock", "linked"),
    ),
    Step(
        "demo",
        "a short run of ./run-demo that checks itself, 1 minute",
        own("demo", "tools/demo.py", "--smoke", "--no-build"),
    ),
    Step(
        "cgroup",
        "the same load in a memory cgroup, half a minute",
        own("demo_in_cgroup", "tools/demo_in_cgroup.py"),
        presets=SHIPPED,
    ),
    Step(
        "packages",
        "packages are made, unpacked and run from there, a minute or two",
        own("packages", "packaging/test", "smoke"),
        presets=SHIPPED,
    ),
]


def steps_of(preset: str) -> list[Step]:
    flavour = presets()[preset]
    if flavour == "unit":  # a build of the unit tests and nothing else
        return [Step(preset, "unit tests of our layer", sanitized(preset))]
    return [
        step
        for step in STEPS
        if flavour in step.flavours and (not step.presets or preset in step.presets)
    ]


# --- resuming ----------------------------------------------------------------------


def fingerprint() -> str:
    """Of all files of the checkout that git would take."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        return ""  # no git, no resuming
    sum_ = hashlib.sha256()
    for name in sorted(done.stdout.split(b"\0")):
        path = ROOT / os.fsdecode(name)
        if name and path.is_file():
            sum_.update(name + b"\0" + path.read_bytes())
    return sum_.hexdigest()


class Progress:
    """The steps that an interrupted run has finished."""

    def __init__(self, path: Path, fresh: bool):
        self.path, self.print = path, fingerprint()
        self.done: dict[str, dict] = {}
        if path.is_file() and not fresh:
            state = json.loads(path.read_text())
            if self.print and state["fingerprint"] == self.print:
                self.done = state["done"]

    def add(self, step: Step, result: Result) -> None:
        self.done[step.name] = asdict(result)
        self.path.write_text(
            json.dumps({"fingerprint": self.print, "done": self.done}, indent=1)
        )

    def finish(self) -> None:
        self.path.unlink(missing_ok=True)


# --- main --------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run-tests", description="Run all tests.")
    parser.add_argument("--preset", default="dev", help="default: %(default)s")
    parser.add_argument(
        "--only", action="append", metavar="STEP", help="only this step; repeatable"
    )
    parser.add_argument("--list", action="store_true", help="list the steps")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument(
        "--fresh", action="store_true", help="do not go on with an interrupted run"
    )
    # For run-tests, which asks before it installs anything.
    parser.add_argument(
        "--check-arguments", action="store_true", help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    known_preset(options.preset)
    if options.jobs < 1:
        parser.error("--jobs must be 1 or more")
    names = [step.name for step in steps_of(options.preset)]
    for name in options.only or []:
        if name not in names:
            raise Problem(
                f"preset {options.preset} has no step {name!r}; it has: "
                f"{', '.join(names)}"
            )
    return options


def perform(steps: list[Step], run: Run, progress: Progress) -> dict[str, Result]:
    results: dict[str, Result] = {}
    broken = False
    for number, step in enumerate(steps, 1):
        title = f"== {number} of {len(steps)}, {step.name}: {step.what}"
        if step.name in progress.done:
            results[step.name] = Result(**progress.done[step.name])
            say(f"{title} - done before the interruption")
            continue
        say(title)
        if broken and step.name not in ("tsan", "asan"):  # builds of their own
            results[step.name] = Result(0, 0, 1, "not run: the build failed")
            say("-- not run: the build failed")
            continue
        began = time.monotonic()
        result = step.run(run)
        result.seconds = time.monotonic() - began
        broken = broken or (step.name == "build" and result.failed > 0)
        results[step.name] = result
        if not result.failed:  # what failed is run again
            progress.add(step, result)
    return results


def main() -> int:
    options = arguments()
    if options.check_arguments:
        return 0
    steps = steps_of(options.preset)
    if options.list:
        for step in steps:
            say(f"{step.name:12} {step.what}")
        return 0
    if options.only:
        steps = [step for step in steps if step.name in options.only]
    run = Run(options.preset, options.jobs)
    with lock(run.build / "run-tests.lock", "running the tests of this preset"):
        progress = Progress(run.build / "run-tests.json", options.fresh)
        results = perform(steps, run, progress)
        progress.finish()

    say("\n== summary")
    for name, result in results.items():
        verdict = "FAILED" if result.failed else "ok"
        say(
            f"{name:12} {verdict:7} {result.passed} passed, {result.failed} failed, "
            f"{result.skipped} skipped in {result.seconds / 60:.1f} min"
        )
        if result.words:
            say(f"{'':12} {result.words}")
    passed = sum(x.passed for x in results.values())
    failed = sum(x.failed for x in results.values())
    skipped = sum(x.skipped for x in results.values())
    say(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    run_main("run-tests", main)
