#!/usr/bin/env python3
"""Runs all tests and adds up their results; ./run-tests starts it.

The last line is `N passed, N failed, N skipped`, the sum over all runners. The exit status
is 0 only if nothing failed. An interrupted run continues with the steps that it has not
finished, unless a file of the checkout, --offline, the environment that the build reads or the
built server has changed.
"""

import argparse
import os
import shutil
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness import mtr
from harness.common import ROOT, SHIPPED, cache_dir, known_preset, lock, presets, say
from harness.problem import Problem, run_main
from harness.programs import Programs
from tools import expected
from tools.runner_output import (
    Result,
    closing,
    count_cases,
    parse_ctest,
    parse_mtr,
    parse_own,
    parse_unittest,
    yes_or_no,
)
from tools.schedule import Progress, Run, Step, perform

# Python's unit tests: name, folder, and the folder from which they import.
UNIT_TESTS = (
    ("tools", ".", "."),
    # packaging/ is no Python package, because it would hide a library of that name.
    ("packaging", "packaging/unit", "packaging"),
    ("client", "client/tests", "client"),
)


# --- the steps -----------------------------------------------------------------


def lint_patches(run: Run) -> Result:
    command = [sys.executable, "tools/build/patches.py", "lint"]
    status, text = run.output("patches", command)
    return yes_or_no(status, closing(text, r"^patches: .*$"))


def check_style(run: Run) -> Result:
    offline = ["--offline"] if run.offline else []
    command = [sys.executable, "tools/style.py", "check", *offline]
    return parse_own("style", *run.output("style", command))


def check_layers(run: Run) -> Result:
    command = [sys.executable, "tools/layers.py", "--build", run.build]
    status, text = run.output("layers", command)
    return yes_or_no(status, closing(text, r"^layers: .*$"))


# The program runs with Debian's libraries, and with what pip installs today.
DEBIANS_PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
NEWEST = "client with the newest PyMySQL"
# Those of the client's tests that import PyMySQL, in their process or in a program that they start. The others have a
# server of the tests in its place, or no server, and pass or fail with any.
OF_THE_DRIVER = ("tests.test_session", "tests.test_command_line", "tests.test_report.Anonymous")


def test_tools(run: Run) -> Result:
    suites: list[tuple[str, Callable[[Run], Result]]] = []
    for name, folder, top in UNIT_TESTS:
        suites.append((name, unit_suite(name, top, ("discover", "-s", folder, "-t", top))))
    suites.append((NEWEST, client_with_the_newest))
    # Half of their time they wait for programs of their own. In this order two threads end at the same time.
    results = run.side_by_side([suite for _, suite in suites], 2)
    total = Result()
    for (name, _), result in zip(suites, results, strict=True):
        total.passed += result.passed
        total.failed += result.failed
        total.skipped += result.skipped
        total.skips += result.skips
        total.failures += result.failures
        total.words += f"{'; ' if total.words else ''}{name}: {result.words}"
    return total


def unit_suite(
    name: str, top: str, which: Sequence[str], more_environment: dict[str, str] | None = None
) -> Callable[[Run], Result]:
    python = DEBIANS_PYTHON if top == "client" else sys.executable
    # -v: each skip with its reason.
    command = [python, "-m", "unittest", *which, "-v"]
    return lambda run: parse_unittest(*run.output(name.replace(" ", "-"), command, ROOT, more_environment))


def client_with_the_newest(run: Run) -> Result:
    libraries = cache_dir() / "newest-pymysql"
    # The tests' modules are found in the second folder.
    folders = {"PYTHONPATH": f"{libraries}:{ROOT / 'client'}"}
    return newest_pymysql(run, libraries) or unit_suite(NEWEST, "client", OF_THE_DRIVER, folders)(run)


def newest_pymysql(run: Run, folder: Path) -> Result | None:
    """Installs it into a folder, from where pip is configured to take packages. With --offline the one of an earlier
    run serves, if there is one.
    @return None: it is there"""
    if run.offline:
        return None if folder.is_dir() else Result(0, 0, 1, "--offline, and it is not there")
    command = [DEBIANS_PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    # All checkouts share the folder: it is whole at any time, and a failure leaves the earlier one.
    unfinished = folder.with_suffix(".unfinished")
    with lock(folder.with_suffix(".lock"), "installing PyMySQL"):
        shutil.rmtree(unfinished, ignore_errors=True)
        status, _ = run.output("pymysql", [*command, "--target", unfinished, "PyMySQL"])
        if status == 0:
            shutil.rmtree(folder, ignore_errors=True)
            unfinished.rename(folder)
            return None
    log = (run.logs / "pymysql.log").relative_to(ROOT)
    return Result(0, 1, 0, f"it could not be installed: check the network and pip's configuration; see {log}")


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
    # Its tests spend most of their time waiting for samples, peaks and starts.
    return run_mtr(run, "memdiag", 2 * run.jobs)


# Seconds that a test waits for what it expects: half a minute by default, ten seconds for the end of its sessions. A busy
# machine may need longer. The first is of the first wait, the second of those after it.
# Upstream's wait_condition.inc ends a test at its first wait in vain only where the third is set: without it, a test that
# waits for a dozen things waits in vain for each.
PATIENCE = {"wait_timeout": "180", "explicit_default_wait_timeout": "180", "show_rpl_debug_info": "1"}

# jemalloc in mysqld overwrites memory that is allocated and memory that is freed.
JUNK = {"MALLOC_CONF": "junk:true"}

# Stored programs and triggers of upstream.
PROGRAMS = ("main.sp", "main.sp-bugs", "main.sp-vars", "main.trigger")


def mtr_innodb_fts(run: Run) -> Result:
    return run_mtr(run, "innodb_fts", run.jobs, environment=JUNK)


def mtr_programs(run: Run) -> Result:
    return run_mtr(run, "programs", run.jobs, "--ps-protocol", *PROGRAMS, environment=JUNK)


def own(name: str, *command: str) -> Callable[[Run], Result]:
    """A program of ours that tests itself."""

    def run_it(run: Run) -> Result:
        status, text = run.output(name, [sys.executable, *command, "--preset", run.preset])
        return parse_own(name, status, text)

    return run_it


def build_preset(run: Run, preset: str) -> Result:
    for verb in (["--preset", preset], ["--build", "--preset", preset]):
        name = f"{'build' if len(verb) > 2 else 'configure'}-{preset}"
        status, _ = run.output(name, ["cmake", *verb])
        if status:
            log = (run.logs / f"{name}.log").relative_to(ROOT)
            return Result(0, 1, 0, f"the build failed; its output is in {log}")
    return Result(1, 0, 0, "configured and built")


def run_ctest(run: Run, preset: str) -> Result:
    # At most two at a time, because some measure time and memory.
    jobs = ["--parallel", min(run.jobs, 2)]
    # A program that crashes must not leave the file of its last run.
    cases = ROOT / "build" / preset / "cases"
    shutil.rmtree(cases, ignore_errors=True)
    status, text = run.output(f"ctest-{preset}", ["ctest", "--preset", preset, *jobs])
    result = parse_ctest(status, text)
    count_cases(result, text, cases)
    return result


def run_mtr(run: Run, name: str, jobs: int, *selection: str, environment: dict[str, str] | None = None) -> Result:
    """@param selection  the tests; without it the suite of that name. The servers' files stay where one failed."""
    folder = mtr.folder(run.build)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    vardir = Path(tempfile.mkdtemp(prefix="mtr-", dir=memory))
    command = mtr.command(run.build, jobs, *(selection or (f"--suite={name}",)), vardir=vardir)
    kept = False
    try:
        result = parse_mtr(*run.output(f"mtr-{name}", command, folder, PATIENCE | (environment or {})))
        kept = result.failed > 0
    finally:
        if not kept:
            shutil.rmtree(vardir, ignore_errors=True)
    if kept:
        result.words += f"; the servers' files are in {vardir}"
    return result


# Minutes of a step that compiles, beside the build and behind it, where the compiler cache is empty.
COLD = 360

# The steps begin in this order: first cheap ones that find much, and the longest early. A step
# without `beside` runs alone, because it measures or needs all processors.
STEPS = [
    Step("patches", "the rules of the patch series, seconds", lint_patches, beside=True, needs_build=False),
    Step("style", "shellcheck, ruff and clang-format, seconds", check_style, beside=True, needs_build=False),
    Step(
        "build",
        "configure and build; half an hour where the compiler cache is empty",
        build,
        ("product", "stock", "linked"),
        beside=True,
        waits=True,  # or rather, the others wait for it
        needs_build=False,
        live=True,
        minutes=None,
    ),
    # With a warm cache the build leaves a good part of two processors.
    Step("tools", "unit tests of the tools, less than a minute", test_tools, beside=True, needs_build=False),
    Step(
        "client",
        "memdiag against real servers, in a terminal and in a browser, minutes",
        own("client", "client/check/all.py"),
        presets=SHIPPED,
        beside=True,
        waits=True,
        minutes=40,
    ),
    Step("memdiag", "our suite of mysql-test-run, minutes", mtr_memdiag, beside=True, waits=True, minutes=40),
    Step(
        "asan",
        "unit tests of our layer under the address and undefined sanitizers, about 2 minutes",
        sanitized("asan"),
        beside=True,
        needs_build=False,
        minutes=COLD,
    ),
    Step(
        "tsan",
        "unit tests of our layer under the thread sanitizer, about 2 minutes",
        sanitized("tsan"),
        beside=True,
        needs_build=False,
        minutes=COLD,
    ),
    Step(
        "innodb_fts",
        "upstream's full-text suite on our server, freed memory overwritten, about 2 minutes",
        mtr_innodb_fts,
        ("product", "stock", "linked"),
        beside=True,
    ),
    Step(
        "programs",
        "upstream's stored programs and triggers, prepared, freed memory overwritten, about 2 minutes",
        mtr_programs,
        beside=True,
    ),
    Step(
        "packages",
        "packages are made, unpacked and run from there, a minute or two",
        own("packages", "packaging/test", "smoke"),
        presets=SHIPPED,
        beside=True,
        minutes=40,
    ),
    Step(
        "unit",
        "unit tests of our layer, without the server, about 2 minutes",
        unit_tests,
        ("product", "unit"),
        beside=True,
    ),
    Step(
        "monitoring",
        "alerts in recorded states, exporters and OpenTelemetry against a real server, a minute",
        own("monitoring", "monitoring/check/all.py"),
        presets=SHIPPED,
        beside=True,
    ),
    Step(
        "group",
        "three members of a group: a restart and a kill under load, one report, a minute",
        own("group", "packaging/test", "group", "--work", "build/group-test"),
        presets=SHIPPED,
        beside=True,
        waits=True,
    ),
    Step("layers", "includes and symbols against tools/layers.toml, seconds", check_layers, beside=True),
    # What they measure is of their own groups.
    Step(
        "recorder_in_cgroup",
        "the flight recorder of a server that the OOM killer ends, half a minute",
        own("recorder_in_cgroup", "tools/recorder_in_cgroup.py"),
        presets=SHIPPED,
        beside=True,
    ),
    Step(
        "resize_in_cgroup",
        "its limit is changed under load, a few times, half a minute",
        own("resize_in_cgroup", "tools/resize_in_cgroup.py", "--rounds", "4"),
        presets=SHIPPED,
        beside=True,
    ),
    Step(
        "demo",
        "a short run of ./run-demo that checks itself, 1 minute",
        own("demo", "tools/demo.py", "--smoke", "--no-build"),
    ),
    Step(
        "demo_in_cgroup",
        "the same load in a memory cgroup, half a minute",
        own("demo_in_cgroup", "tools/demo_in_cgroup.py"),
        presets=SHIPPED,
    ),
]


def steps_of(preset: str) -> list[Step]:
    flavour = presets()[preset]
    if flavour == "unit":  # a build of the unit tests and nothing else
        return [Step(preset, "unit tests of our layer", sanitized(preset), minutes=COLD)]
    steps = [step for step in STEPS if flavour in step.flavours and (not step.presets or preset in step.presets)]
    if preset not in SHIPPED:  # a server with a sanitizer or with upstream's checks is slow
        steps = [replace(step, minutes=step.minutes and 4 * step.minutes) for step in steps]
    return [replace(step, run=expected.judged(step.name, step.run, preset)) for step in steps]


# --- main --------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run-tests", description="Run all tests.")
    parser.add_argument("--preset", default="dev", help="default: %(default)s")
    parser.add_argument("--only", action="append", metavar="STEP", help="only this step; may be repeated")
    parser.add_argument("--list", action="store_true", help="list the steps")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--fresh", action="store_true", help="repeat the finished steps of an interrupted run")
    parser.add_argument(
        "--offline",
        action="store_true",
        help="skip ruff, clang-format and the newest PyMySQL where they would have to be installed",
    )
    # run-tests checks the arguments with this before it installs anything.
    parser.add_argument("--check-arguments", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    known_preset(options.preset)
    if options.jobs < 1:
        parser.error("--jobs must be 1 or more")
    names = [step.name for step in steps_of(options.preset)]
    for name in options.only or []:
        if name not in names:
            raise Problem(f"preset {options.preset} has no step {name!r}; it has: {', '.join(names)}")
    return options


def main() -> int:
    options = arguments()
    if options.check_arguments:
        return 0
    steps = steps_of(options.preset)
    if options.list:
        for step in steps:
            say(f"{step.name:14} {step.what}")
        return 0
    if options.only:
        steps = [step for step in steps if step.name in options.only]
    programs = Programs()
    run = Run(options.preset, options.jobs, programs, options.offline)
    began = time.monotonic()
    with lock(run.build / "run-tests.lock", "running the tests of this preset"):
        progress = Progress(run.build / "run-tests.json", options.fresh, options.offline)
        try:
            results = perform(steps, run, programs, progress)
        finally:
            programs.end()
        progress.finish(steps)
    say_summary(results, time.monotonic() - began)
    return 1 if any(x.failed for x in results.values()) else 0


def say_summary(results: dict[str, Result], seconds: float) -> None:
    say("\n== summary")
    for name, result in results.items():
        verdict = "FAILED" if result.failed else "ok"
        say(
            f"{name:14} {verdict:7} {result.passed} passed, {result.failed} failed, "
            f"{result.skipped} skipped in {result.seconds / 60:.1f} min "
            f"(processors: {result.cpu_seconds / 60:.1f} min)"
        )
        if result.words:
            say(f"{'':14} {result.words}")
        # The output of the step may be thousands of lines up, or cut.
        for failure in result.failures:
            say(textwrap.indent(f"failed: {failure}", " " * 15))
    say(f"this run took {seconds / 60:.1f} min")
    passed = sum(x.passed for x in results.values())
    failed = sum(x.failed for x in results.values())
    skipped = sum(x.skipped for x in results.values())
    say(f"{passed} passed, {failed} failed, {skipped} skipped")


if __name__ == "__main__":
    run_main("run-tests", main)
