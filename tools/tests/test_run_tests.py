"""Adding up what the runners print."""

import contextlib
import io
import os
import signal
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

from harness.common import ROOT, presets
from harness.problem import Problem
from harness.programs import Programs, captured
from harness.scratch import Scratch
from tools import run_tests, runner_output, schedule
from tools.runner_output import Result
from tools.schedule import Run, Step

MTR = """\
[ 25%] memdiag.pools                             w1  [ pass ]   120
[ 50%] memdiag.purge                             w2  [ fail ]
        Test ended at 2026-11-26 16:32:45

CURRENT_TEST: memdiag.purge
--- r/purge.result	2026-11-25 20:31:23
+++ log/purge.reject	2026-11-26 16:32:44
@@ -1 +1 @@
-purged
+nothing

mysqltest: Result length mismatch

[ 75%] memdiag.linux                             w1  [ skipped ]  Need linux
[ 75%] memdiag.old                               w1  [ disabled ]   BUG#1
[100%] shutdown_report                           [ pass ]
Completed: Failed 1/3 tests, 66.67% were successful.

1 tests were skipped, 1 by the test itself.
"""
PURGE_REPORT = """\
memdiag.purge
          Test ended at 2026-11-26 16:32:45
  CURRENT_TEST: memdiag.purge
  --- r/purge.result\t2026-11-25 20:31:23
  +++ log/purge.reject\t2026-11-26 16:32:44
  @@ -1 +1 @@
  -purged
  +nothing
  mysqltest: Result length mismatch"""


class Parsers(unittest.TestCase):
    def check(self, result: Result, passed, failed, skipped, *words):
        self.assertEqual((result.passed, result.failed, result.skipped), (passed, failed, skipped))
        for word in words:
            self.assertIn(word, result.words)

    def test_mtr(self):
        result = runner_output.parse_mtr(1, MTR)
        self.check(result, 2, 1, 2, "Failed 1/3", "1 tests were skipped")
        self.assertEqual([PURGE_REPORT], result.failures)

    def test_the_report_of_the_last_test_ends_at_the_rule(self):
        text = f"[100%] a.b  [ fail ]\nits report\n{'-' * 78}\nCompleted: Failed 1/1\n"
        result = runner_output.parse_mtr(1, text)
        self.assertEqual(["a.b\n  its report"], result.failures)

    def test_a_long_report_of_mtr_is_cut(self):
        report = "".join(f"+{n} {'x' * 1000}\n" for n in range(1000))
        text = "[ 50%] memdiag.purge  w2  [ fail ]\n" + report + "[100%] x.y  [ pass ]\n"
        lines = runner_output.parse_mtr(1, text).failures[0].splitlines()
        self.assertEqual(len(lines), 1 + runner_output.REPORT_LINES)
        self.assertTrue(all(len(x) <= 2 + runner_output.REPORT_WIDTH for x in lines))

    def test_mtr_that_does_not_start(self):
        text = "mysql-test-run: *** ERROR: Could not find mysqld\n"
        self.check(runner_output.parse_mtr(1, text), 0, 1, 0, "Could not find mysqld")

    def test_mtr_that_fails_after_all_tests_passed(self):
        text = "[100%] main.1st  [ pass ]  1\nCompleted: All 1 tests were successful.\n"
        self.check(runner_output.parse_mtr(1, text), 1, 1, 0)
        self.check(runner_output.parse_mtr(0, text), 1, 0, 0)

    def test_ctest(self):
        text = (
            "88% tests passed, 9 tests failed out of 72\n\n"
            "Total Test time (real) =  97.00 sec\n\n"
            "The following tests did not run:\n"
            "\t 50 - PoolFallback.Much (Skipped)\n\t 51 - Fork.Child (Disabled)\n\n"
            "The following tests FAILED:\n\t  2 - Snapshot.Adds (Failed)\n"
            "\t 13 - Fork.Parent (SEGFAULT)\n"
        )
        result = runner_output.parse_ctest(8, text)
        self.check(result, 61, 9, 2, "out of 72", "97.00")
        self.assertEqual(result.failures, ["Snapshot.Adds (Failed)", "Fork.Parent (SEGFAULT)"])

    def test_ctest_without_tests(self):
        result = runner_output.parse_ctest(8, "No tests were found!!!\n")
        self.check(result, 0, 1, 0, "No tests were found")

    # pools_test passes, with a skip and a disabled case; purge_test has a case that fails; process_test has none that
    # fails, but the thread sanitizer complains; stress_test crashes; routes_test passes and writes nothing.
    PROGRAMS = (
        "1/6 Test  #1: pools_test .....................   Passed    0.27 sec\n"
        "2/6 Test #12: purge_test .....................***Failed    9.27 sec\n"
        "3/6 Test  #3: process_test ...................***Failed    9.27 sec\n"
        "      Start  4: stress_test\n"
        "4/6 Test  #4: stress_test ....................***Exception: SegFault  0.10 sec\n"
        "5/6 Test  #5: routes_test ....................   Passed    0.27 sec\n"
        "6/6 Test  #6: reference_page .................   Passed    0.27 sec\n"
        "50% tests passed, 3 tests failed out of 6\n\n"
        "Total Test time (real) =  97.00 sec\n\n"
        "The following tests FAILED:\n\t 12 - purge_test (Failed)\n"
        "\t  3 - process_test (Failed)\n\t  4 - stress_test (SEGFAULT)\n"
    )
    PASSED = '<testcase name="{}" status="run" result="completed" classname="Pool" />'
    FAILED = (
        '<testcase name="{}" status="run" result="completed" classname="Pool">'
        '<failure message="0" type=""><![CDATA[0]]></failure></testcase>'
    )
    SKIPPED = (
        '<testcase name="{}" status="run" result="skipped" classname="Pool"><skipped message="no" /></testcase>'
        '<testcase name="DISABLED_{}" status="notrun" result="suppressed" classname="Pool" />'
    )

    def test_of_a_program_that_runs_whole_its_cases_count(self):
        cases = {
            "pools_test": self.PASSED.format("A") + self.PASSED.format("B") + self.SKIPPED.format("C", "D"),
            "purge_test": self.PASSED.format("E") + self.FAILED.format("F"),
            "process_test": self.PASSED.format("G"),
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, body in cases.items():
                text = f'<testsuites tests="9"><testsuite name="Pool">{body}</testsuite></testsuites>'
                (Path(folder) / f"{name}.xml").write_text(text)
            result = runner_output.parse_ctest(8, self.PROGRAMS)
            runner_output.count_cases(result, self.PROGRAMS, Path(folder))
        self.check(result, 5, 4, 2, "out of 6")
        self.assertEqual(result.skips, ["Pool.C", "Pool.DISABLED_D"])
        self.assertEqual(
            sorted(result.failures),
            ["Pool.F", "process_test (Failed)", "routes_test (told of no case)", "stress_test (SEGFAULT)"],
        )

    def test_a_file_of_cases_that_is_torn_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a_test.xml"
            for text in ("", '<testsuites tests="9"><testsuite name="Pool">', "<testsuites></testsuites>"):
                path.write_text(text)
                self.assertEqual(runner_output.cases_of(path), (0, [], []))

    def test_tests_of_ctest_that_are_no_programs_stay(self):
        text = (
            "1/1 Test #1: reference_page .................   Passed    0.27 sec\n"
            "100% tests passed, 0 tests failed out of 1\n"
        )
        result = runner_output.parse_ctest(0, text)
        runner_output.count_cases(result, text, Path("/nowhere"))
        self.check(result, 1, 0, 0)

    def test_unittest(self):
        text = (
            "=====\nERROR: test_a (tests.A.test_a)\n-----\nTraceback\n"
            "=====\nFAIL: test_b (tests.B.test_b)\n-----\nTraceback\n"
            "Ran 5 tests in 1.0s\n\nFAILED (failures=1, errors=1, skipped=1)\n"
        )
        result = runner_output.parse_unittest(1, text)
        self.check(result, 2, 2, 1, "Ran 5", "FAILED")
        self.assertEqual(result.failures, ["test_a (tests.A.test_a)", "test_b (tests.B.test_b)"])
        text = "Ran 5 tests in 1.0s\n\nOK\n"
        self.check(runner_output.parse_unittest(0, text), 5, 0, 0, "OK")
        self.check(runner_output.parse_unittest(1, "Traceback\n"), 0, 1, 0)

    def test_a_runner_that_ran_nothing_has_failed(self):
        for parse in (runner_output.parse_unittest, runner_output.parse_ctest, runner_output.parse_mtr):
            for text in ("", "Ran 0 tests in 0.000s\n\nOK\n"):
                self.check(parse(0, text), 0, 1, 0)
        self.check(runner_output.parse_own("demo", 0, "bye\n"), 0, 1, 0)

    def test_demo(self):
        text = "ok      starts\nFAILED  purges: 0 MB\nFAILED  ends\ndemo: 17 passed, 2 failed\n"
        result = runner_output.parse_own("demo", 1, text)
        self.check(result, 17, 2, 0, "17 passed")
        self.assertEqual(result.failures, ["purges: 0 MB", "ends"])
        self.check(runner_output.parse_own("demo", 1, "demo: no server\n"), 0, 1, 0, "no server")
        text = "demo_in_cgroup: 2 passed, 0 failed, 1 skipped: no group\n"
        self.check(runner_output.parse_own("demo_in_cgroup", 0, text), 2, 0, 1, "no group")


class WaitsOfMysqlTest(unittest.TestCase):
    """mysqltest takes a variable that a test has not set from the environment. $wait_timeout is of the first wait; the
    second is of those after it; upstream's wait_condition.inc ends the test at a wait in vain if the third is set."""

    def test_each_suite_waits_long_and_ends_at_the_first_wait_in_vain(self):
        found = []

        def output(name, command, cwd=ROOT, extra_environment=None):
            found.append(extra_environment)
            return 0, MTR

        run = mock.Mock(build=ROOT / "build/dev", jobs=2, output=output)
        with mock.patch.object(run_tests.mtr, "folder"):
            for step in (run_tests.mtr_memdiag, run_tests.mtr_innodb_fts, run_tests.mtr_programs):
                with mock.patch.object(run_tests, "parse_mtr", return_value=Result(1)):
                    step(run)
        names = ("wait_timeout", "explicit_default_wait_timeout", "show_rpl_debug_info")
        self.assertEqual([tuple(one[name] for name in names) for one in found], [("180", "180", "1")] * 3)


class Summary(unittest.TestCase):
    def test_the_end_names_each_failure(self):
        output = io.StringIO()
        results = {
            "client": Result(3, 2, 0, "client: 3 passed, 2 failed", ["one: 0 MB", "two"]),
            "tools": Result(7, 0, 0, "tools: 7 passed"),
        }
        with contextlib.redirect_stdout(output):
            run_tests.say_summary(results, 60)
        lines = output.getvalue().splitlines()
        at = lines.index(f"{'':14} client: 3 passed, 2 failed")
        self.assertEqual([line.strip() for line in lines[at + 1 : at + 3]], ["failed: one: 0 MB", "failed: two"])
        self.assertEqual(lines[-1], "10 passed, 2 failed, 0 skipped")


class NewestPyMySQL(Scratch):
    """The client's unit tests run with Debian's, and those of the driver with the newest one too, from where pip is
    configured to take it."""

    def run_with(self, pip_status: int, offline: bool = False):
        asked = []

        def output(name, command, cwd=ROOT, extra_environment=None):
            asked.append((name, command, extra_environment))
            if name == "pymysql":
                if pip_status == 0:
                    Path(command[command.index("--target") + 1]).mkdir(parents=True)
                return pip_status, "no such package"
            return 0, "Ran 5 tests in 0.1s\n\nOK\n"

        run = mock.Mock(offline=offline, logs=ROOT / "build/dev/test-logs", output=output)
        run.side_by_side = lambda parts, at_a_time: [part(run) for part in parts]
        with mock.patch.object(run_tests, "cache_dir", return_value=self.root):
            return run_tests.test_tools(run), asked

    def test_both_run(self):
        total, asked = self.run_with(0)
        self.assertEqual((total.passed, total.failed, total.skipped), (20, 0, 0))
        of_client = [environment for name, _, environment in asked if name.startswith("client")]
        self.assertEqual(of_client, [None, {"PYTHONPATH": f"{self.root / 'newest-pymysql'}:{ROOT / 'client'}"}])

    def test_with_the_newest_run_the_tests_that_import_it(self):
        _, asked = self.run_with(0)
        self.assertEqual(asked[-1][1][1:4], ["-m", "unittest", "tests.test_session"])
        count = (
            "import sys, unittest\n"
            "loader = unittest.defaultTestLoader\n"
            "print(loader.loadTestsFromNames(sys.argv[1:]).countTestCases(), loader.errors)\n"
        )
        command = [run_tests.DEBIANS_PYTHON, "-c", count, *run_tests.OF_THE_DRIVER]
        found, errors = captured(command, cwd=ROOT / "client").stdout.split(maxsplit=1)
        self.assertGreater(int(found), 50)
        self.assertEqual(errors.strip(), "[]")

    def test_no_package_index_is_named(self):
        _, asked = self.run_with(0)
        (pip,) = [command for name, command, _ in asked if name == "pymysql"]
        self.assertFalse([word for word in map(str, pip) if "index" in word or "//" in word])

    def test_a_failed_download_is_a_failure(self):
        total, asked = self.run_with(1)
        self.assertEqual((total.passed, total.failed, total.skipped), (15, 1, 0))
        self.assertIn("could not be installed", total.words)

    def test_a_failed_download_leaves_that_of_an_earlier_run(self):
        """All checkouts share the cache."""
        self.run_with(0)
        earlier = self.root / "newest-pymysql"
        self.make_file("newest-pymysql/kept", "")
        total, asked = self.run_with(1)
        self.assertEqual(total.failed, 1)
        self.assertTrue((earlier / "kept").exists())
        (pip,) = [command for name, command, _ in asked if name == "pymysql"]
        self.assertNotIn(earlier, pip)
        with mock.patch.object(run_tests, "lock", side_effect=Problem("held")), self.assertRaisesRegex(Problem, "held"):
            self.run_with(0)
        self.run_with(0)
        self.assertEqual(list(earlier.iterdir()), [])
        self.assertEqual(self.run_with(0, offline=True)[0].passed, 20)

    def test_offline_takes_that_of_an_earlier_run(self):
        total, asked = self.run_with(0, offline=True)
        self.assertEqual((total.failed, total.skipped), (0, 1))
        self.assertNotIn("pymysql", [name for name, _, _ in asked])
        (self.root / "newest-pymysql").mkdir()
        self.assertEqual(self.run_with(0, offline=True)[0].passed, 20)


class Resuming(Scratch):
    def setUp(self):
        super().setUp()
        self.path = self.root / "state.json"
        self.step = run_tests.STEPS[0]

    def progress(self, print_, fresh=False):
        with mock.patch.object(schedule, "fingerprint", lambda offline: print_):
            return schedule.Progress(self.path, fresh)

    def test_same_files_go_on(self):
        self.progress("a").add(self.step, Result(3, 0, 1, "x"))
        self.assertEqual(list(self.progress("a").done), [self.step.name])

    def test_changed_files_start_over(self):
        self.progress("a").add(self.step, Result(3))
        for other in (self.progress("b"), self.progress("a", fresh=True)):
            self.assertEqual(other.done, {})

    def test_a_damaged_file_starts_over(self):
        self.progress("a").add(self.step, Result(3))
        self.path.write_text(self.path.read_text()[:-3])
        self.assertEqual(self.progress("a").done, {})

    def test_another_server_starts_over(self):
        mysqld = self.make_file(schedule.MYSQLD, "one")
        self.progress("a").add(self.step, Result(3))
        self.assertEqual(list(self.progress("a").done), [self.step.name])
        mysqld.write_text("another")
        self.assertEqual(self.progress("a").done, {})

    def test_the_build_itself_changes_the_server(self):
        progress = self.progress("a")
        progress.add(self.step, Result(3))
        self.make_file(schedule.MYSQLD, "one")
        progress.add(self.step, Result(3))
        self.assertEqual(list(self.progress("a").done), [self.step.name])

    def test_options_and_environment_count(self):
        (self.root / "file").write_text("x")
        self.enterContext(mock.patch.object(schedule, "ROOT", self.root))
        seen = set()
        for environment in (
            {},
            {"MYSQL_SOURCE_VERSION": "9.7.6-1"},
            {"MYSQL_SOURCE_VERSION": "9.7.7-1"},
            {"CXXFLAGS": "9.7.7-1"},
        ):
            for offline in (False, True):
                with mock.patch.dict(os.environ, environment, clear=True):
                    seen.add(schedule.fingerprint(offline))
        self.assertEqual(len(seen), 8)
        with mock.patch.dict(os.environ, {"LANG": "C"}, clear=True):
            self.assertIn(schedule.fingerprint(False), seen)
        (self.root / "file").write_text("y")
        with mock.patch.dict(os.environ, {}, clear=True):
            self.assertNotIn(schedule.fingerprint(False), seen)

    def test_a_finished_run_leaves_nothing(self):
        progress = self.progress("a")
        progress.add(self.step, Result(3))
        progress.finish([self.step])
        self.assertEqual(self.progress("a").done, {})
        self.assertFalse(self.path.exists())

    def test_a_run_of_one_step_leaves_the_others(self):
        other = run_tests.STEPS[1]
        self.progress("a").add(self.step, Result(3))
        progress = self.progress("a")
        progress.add(other, Result(3))
        progress.finish([other])
        self.assertEqual(list(self.progress("a").done), [self.step.name])


class Performing(Scratch):
    """The order of steps, and what runs side by side."""

    def setUp(self):
        super().setUp()
        for patch in (
            mock.patch.object(schedule, "ROOT", self.root),
            mock.patch.object(schedule, "fingerprint", lambda offline: "x"),
            mock.patch.object(schedule, "say", lambda text: None),
        ):
            self.enterContext(patch)
        self.programs = Programs()
        self.started = []

    def step(self, name, run=None, **options):
        def default(_run):
            self.started.append(name)
            return Result(1)

        return Step(name, "", run or default, **options)

    def perform(self, *steps):
        run = Run("dev", 2, self.programs)
        self.progress = schedule.Progress(self.root / "state.json", fresh=False)
        return schedule.perform(list(steps), run, self.programs, self.progress)

    def test_batches(self):
        steps = [self.step(x.lower(), beside=x.islower()) for x in "abCdEFgh"]
        found = ["".join(s.name for s in x) for x in schedule.batches(steps)]
        self.assertEqual(found, ["ab", "c", "d", "e", "f", "gh"])

    def test_what_needs_the_build_waits_for_it_and_takes_no_place(self):
        began, built = threading.Event(), threading.Event()
        found = {}

        def build(_run):
            found["beside the build"] = began.wait(180)
            built.set()
            return Result(1)

        def needs(_run):
            found["after the build"] = found.get("after the build", True) and built.is_set()
            return Result(1)

        def asan(_run):
            began.set()
            return Result(1)

        self.perform(
            self.step("build", build, beside=True, needs_build=False),
            *(self.step(f"needs {n}", needs, beside=True) for n in range(schedule.SIDE_BY_SIDE + 1)),
            self.step("asan", asan, beside=True, needs_build=False),
        )
        self.assertEqual(found, {"beside the build": True, "after the build": True})

    def test_the_sanitizers_begin_beside_our_build(self):
        ours = list(schedule.batches(run_tests.steps_of("dev")))
        early = next(batch for batch in ours if any(step.name == "build" for step in batch))
        self.assertLessEqual({"asan", "tsan"}, {step.name for step in early if not step.needs_build})

    def test_neighbours_run_at_the_same_time(self):
        both = threading.Barrier(2, timeout=180)

        def meet(_run):
            both.wait()
            return Result(1)

        steps = [self.step(x, meet, beside=True) for x in "ab"]
        self.assertEqual(list(self.perform(*steps)), ["a", "b"])

    def test_what_measures_runs_alone(self):
        running = []

        def alone(_run):
            running.append(threading.active_count())
            return Result(1)

        before = threading.active_count()
        self.perform(
            self.step("a", beside=True),
            self.step("b", beside=True),
            self.step("measures", alone),
            self.step("c", beside=True),
        )
        self.assertEqual(running, [before])
        self.assertEqual((set(self.started[:2]), self.started[2]), ({"a", "b"}, "c"))

    def test_what_computes_gives_way_to_what_waits(self):
        found = {}

        def priority(name):
            def read(run):
                program = "import os; print(os.nice(0))"
                found[name] = int(run.output(name, [sys.executable, "-c", program])[1])
                return Result(1)

            return read

        self.perform(
            self.step("waits", priority("waits"), beside=True, waits=True),
            self.step("computes", priority("computes"), beside=True),
            self.step("alone", priority("alone")),
        )
        own = os.nice(0)
        expected = {"waits": own, "computes": min(own + schedule.NICE, 19), "alone": own}
        self.assertEqual(found, expected)

    def test_a_program_that_is_missing(self):
        def start(run):
            run.output("missing", ["no-such-program"])

        with self.assertRaisesRegex(Problem, "no-such-program is missing"):
            self.perform(*(self.step(x, start, beside=True) for x in "ab"))

    def test_after_a_failed_build(self):
        def fails(_run):
            return Result(0, 1)

        results = self.perform(self.step("build", fails), self.step("needs"), self.step("other", needs_build=False))
        self.assertEqual(self.started, ["other"])
        self.assertEqual(results["needs"].skipped, 1)

    def test_after_a_failed_build_its_neighbours_that_need_it_do_not_begin(self):
        def fails(_run):
            return Result(0, 1)

        steps = (
            self.step("build", fails, beside=True, needs_build=False),
            self.step("needs", beside=True),
            self.step("other", beside=True, needs_build=False),
            self.step("needs too"),
        )
        results = self.perform(*steps)
        self.assertEqual(self.started, ["other"])
        self.assertEqual([results[name].skipped for name in ("needs", "other", "needs too")], [1, 0, 1])
        self.assertEqual(list(self.progress.done), ["other"])

    def test_goes_on_after_an_interruption(self):
        def interrupted(_run):
            raise KeyboardInterrupt

        steps = [self.step(x, beside=True) for x in "ab"]
        with self.assertRaises(KeyboardInterrupt):
            self.perform(*steps, self.step("c", interrupted), self.step("d"))
        self.perform(*steps, self.step("c"), self.step("d"))
        self.assertEqual((sorted(self.started[:2]), self.started[2:]), (["a", "b"], ["c", "d"]))

    def test_a_failed_step_runs_again(self):
        self.perform(self.step("a", lambda run: Result(0, 1)), self.step("b"))
        self.perform(self.step("a"), self.step("b"))
        self.assertEqual(self.started, ["b", "a"])

    def test_a_problem_ends_the_programs_of_the_neighbour(self):
        running = threading.Event()

        def waits(run):
            running.set()
            status, _ = run.output("waits", ["sleep", "600"])
            self.started.append(status)
            return Result(1)

        def fails(_run):
            running.wait(180)
            raise Problem("a program is missing")

        with self.assertRaisesRegex(Problem, "is missing"):
            self.perform(self.step("a", waits, beside=True), self.step("b", fails, beside=True))
        # None where the program had not started when the neighbour failed.
        self.assertIn(self.started, ([-signal.SIGTERM], []))

    def test_output_of_neighbours_does_not_mix(self):
        def speaks(run):
            run.output(run_name := "speaks", ["sh", "-c", "echo one; echo two"])
            return Result(1, words=run_name)

        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.perform(*(self.step(x, speaks, beside=True) for x in "abc"))
        self.assertEqual(said.getvalue(), "one\ntwo\n" * 3)

    def test_parts_of_a_step_run_beside_each_other_and_keep_their_output_apart(self):
        both = threading.Barrier(2, timeout=180)

        def part(name):
            def run_it(run):
                both.wait()
                run.output(name, ["sh", "-c", f"echo {name}; sleep 0.1; echo {name}"])
                return name

            return run_it

        def step(run):
            return Result(words=" ".join(run.side_by_side([part(name) for name in "abcd"], 2)))

        for live in (True, False):  # alone, or beside another
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                results = self.perform(self.step("parts", step, beside=True), *[self.step("x", beside=True)][live:])
            self.assertEqual(results["parts"].words, "a b c d")
            self.assertGreater(results["parts"].cpu_seconds, 0)
            lines = said.getvalue().split()
            self.assertEqual((lines[::2], sorted(lines)), (lines[1::2], list("aabbccdd")))
            self.progress.path.unlink(missing_ok=True)

    def test_a_part_that_fails_ends_the_other(self):
        running = threading.Event()

        def waits(run):
            running.set()
            self.started.append(run.output("waits", ["sleep", "600"])[0])

        def fails(_run):
            running.wait(180)
            raise Problem("a program is missing")

        with self.assertRaisesRegex(Problem, "is missing"):
            self.perform(self.step("a", lambda run: run.side_by_side([fails, waits], 2)))
        self.assertIn(self.started, ([-signal.SIGTERM], []))

    def test_output_of_what_takes_long_is_shown_at_once(self):
        shown = threading.Event()

        class Said(io.StringIO):
            def write(self, text):
                if "half" in text:
                    shown.set()
                return super().write(text)

        def takes_long(run):
            run.output("long", ["echo", "half of it"])
            return Result(1)

        def waits(_run):
            return Result(int(shown.wait(180)))

        with contextlib.redirect_stdout(Said()) as said:
            results = self.perform(
                self.step("long", takes_long, beside=True, live=True), self.step("waits", waits, beside=True)
            )
        self.assertEqual(results["waits"].passed, 1)
        self.assertEqual(said.getvalue().count("half of it"), 1)

    def test_what_does_not_end_in_its_minutes_has_failed(self):
        def hangs(run):
            run.output("hangs", ["sh", "-c", "echo the last line; exec sleep 600"])
            return Result(1)

        result = self.perform(self.step("a", hangs, minutes=0.05))["a"]
        self.assertEqual((result.passed, result.failed), (1, 1))
        self.assertEqual(result.failures, ["hangs was ended after 0.05 minutes; its last lines:\n  the last line"])
        self.assertEqual(self.progress.done, {})

    def test_no_step_but_the_build_has_no_limit(self):
        for preset in presets():
            without = [step.name for step in run_tests.steps_of(preset) if step.minutes is None]
            self.assertLessEqual(set(without), {"build"}, preset)

    def test_processor_time_of_programs(self):
        def computes(run):
            run.output("computes", [sys.executable, "-c", "sum(range(3_000_000))"])
            return Result(1)

        self.assertGreater(self.perform(self.step("a", computes))["a"].cpu_seconds, 0)


class CommandLine(unittest.TestCase):
    def run_tests(self, *args):
        command = [sys.executable, ROOT / "tools/run_tests.py", *args]
        return captured(command)

    def test_unknown_preset_names_the_known(self):
        done = self.run_tests("--check-arguments", "--preset", "nope")
        self.assertEqual(done.returncode, 1)
        self.assertIn("'nope'; there are: dev, hooks, profile, optimised, debug", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_unknown_step_names_the_known(self):
        done = self.run_tests("--check-arguments", "--only", "nope")
        self.assertEqual(done.returncode, 1)
        self.assertIn("patches", done.stderr)

    def test_every_preset_has_steps(self):
        for preset in presets():
            self.assertTrue(run_tests.steps_of(preset), preset)
