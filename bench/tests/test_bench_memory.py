"""The parts of bench/run.py and its workloads that need no server."""

import argparse
import contextlib
import importlib
import json
import random
import sys
import unittest
from pathlib import Path
from unittest import mock

from bench import run
from bench.runner import idlers, memory, report, rounds, run_report, soak, stored, verdicts
from bench.runner.arms import ALLOCATORS, ARMS, DEFAULT
from bench.workloads import WORKLOADS, base, connection_storm, dump_oltp, sysbench_program
from bench.workloads.base import HUGE_PAGES, LIMIT, PLAIN, Load
from harness import burst, cgroup, huge_pages
from harness.common import ROOT
from harness.problem import NotPossible, Problem
from harness.scratch import Scratch
from harness.server import Build


def survived(start: int, peak: int, idle: int) -> memory.Run:
    return {
        "outcome": "survived",
        "start_rss_kb": start * 1024,
        "peak_rss_kb": peak * 1024,
        "idle": {moment: {"rss_kb": (idle + 10) * 1024, "lazy_free_kb": 10 * 1024} for moment in ("1", "5", "60")},
        "known_peak_kb": 1024,
        "before": {},
        "after": {"known_kb": 1024, "resident_bytes": 300, "allocated_bytes": 200, "pools": {}},
        "pools_peak": {},
        "buffer_pool_growth_kb": 0,
        "seconds": 2.0,
        "count": 10,
        "per_second": 5.0,
        "p99_ms": 2.0,
        "extra": {"flush_seconds": 0.5},
        "cpu_user_seconds": 1.0,
        "cpu_system_seconds": 0.5,
        "minor_faults": 100,
    }


KILLED = {
    "outcome": "killed",
    "peak_rss_kb": 900 * 1024,
    "seconds": 1.5,
    "limit": {"kb": 1000 * 1024, "oom_kills": 1, "peak_kb": 1000 * 1024},
}


class Figures(unittest.TestCase):
    def test_lazily_freed_memory_does_not_count_as_kept(self):
        figures = memory.medians([survived(100, 500, idle) for idle in (90, 110, 100)])
        self.assertEqual(figures["idle_60"], 100)
        self.assertEqual(figures["resident_ratio"], 1.5)

    def test_only_survivors_have_figures(self):
        figures = memory.medians([KILLED, survived(100, 500, 90)])
        self.assertEqual(figures["peak"], 500)
        self.assertEqual(memory.medians([KILLED]), {})

    def test_page_faults_are_the_minor_ones(self):
        figures = memory.figures(survived(100, 500, 90))
        self.assertEqual(figures["faults"], 100)


class Crowd(unittest.TestCase):
    def test_until_the_steps_end(self):
        def steps(number):
            yield 0
            yield from [number] * 3

        done = burst.crowd(steps, 2)
        self.assertEqual((len(done.latencies), done.rows_seen), (6, 3))
        self.assertEqual(Load.of(done, count=7, more=1.0).extra, {"more": 1.0})

    def test_percentiles_are_of_the_nearest_rank(self):
        done = burst.Burst(1.0, 1, [float(n) for n in range(100, 0, -1)])
        found = [done.latency(percent) for percent in (0.1, 50, 99, 99.9, 100)]
        self.assertEqual(found, [1, 50, 99, 100, 100])
        self.assertEqual(burst.Burst(1.0, 1, [3.0, 1.0, 2.0]).latency(50), 2)

    def test_a_failure_ends_all_clients(self):
        def steps(number):
            yield 0
            while True:
                if number:
                    raise ValueError("broken")
                yield 0

        with self.assertRaisesRegex(Problem, "broken"):
            burst.crowd(steps, 3)

    def test_a_failure_before_the_start(self):
        def steps(number):
            if number:
                raise ConnectionRefusedError("nobody there")
            yield 0

        with self.assertRaisesRegex(Problem, "nobody there"):
            burst.crowd(steps, 3)


class Choice(unittest.TestCase):
    def test_sizes(self):
        chosen = run.chosen_workloads("triggers,partitions,fk_cascade", ["partitions.tables=2"], seconds=5)
        self.assertEqual([workload.seconds for workload in chosen[:2]], [5, 5])
        self.assertEqual([workload.tables for workload in chosen[:2]], [100, 2])

    def test_what_the_data_depend_on(self):
        (small,), (same,), (large,) = (
            run.chosen_workloads("triggers", [setting]) for setting in ("tables=2", "seconds=1", "tables=3")
        )
        self.assertNotEqual(small.data_key(), large.data_key())
        self.assertEqual(same.data_key(), WORKLOADS["triggers"]().data_key())

    def test_data_of_other_code_are_made_again(self):
        def other(*_):
            """Takes the place of a function that makes data."""

        triggers, sysbench = (WORKLOADS[n]() for n in ("triggers", "sysbench_read_only"))
        for workload, module, name in (
            (triggers, base, "insert_rows"),
            (sysbench, sysbench_program, "fill"),
            (sysbench, sysbench_program, "run"),
        ):
            with mock.patch.object(sysbench_program, "version", return_value="1"):
                before = workload.data_key()
                with self.subTest(name), mock.patch.object(module, name, other):
                    self.assertNotEqual(before, workload.data_key())

    def test_groups(self):
        names = [workload.name for workload in run.chosen_workloads("memory", [])]
        self.assertIn("replica_rows", names)
        self.assertNotIn("sysbench_read_only", names)
        self.assertEqual(len(run.chosen_workloads("memory,sysbench", [])), len(WORKLOADS))

    def test_bad_choices(self):
        for names, settings, complaint in (
            ("nonsense", [], "unknown workload"),
            ("triggers", ["partitions.tables=2"], "no workload"),
            ("triggers", ["nonsense=2"], "no workload"),
            ("triggers", ["tables=many"], "needs a number"),
        ):
            with self.assertRaisesRegex(Problem, complaint):
                run.chosen_workloads(names, settings)

    def test_every_workload_says_what_it_is(self):
        for workload in run.chosen_workloads("all", []):
            self.assertTrue(workload.shows and workload.unit)
            self.assertIn(PLAIN, workload.surroundings)
            self.assertTrue(set(workload.data) <= workload.parameters().keys())
            names = [option.partition("=")[0] for option in workload.mysqld_options()]
            self.assertEqual(len(names), len(set(names)))
        self.assertNotIn("--disable-log-bin", WORKLOADS["replica_rows"]().mysqld_options())

    def test_arms(self):
        self.assertTrue(set(DEFAULT) <= set(ALLOCATORS) <= ARMS.keys())

    def test_moments(self):
        self.assertEqual(run.moments(60), [1, 5, 10, 60])
        self.assertEqual(run.moments(5), [1, 5])
        self.assertEqual(run.moments(20), [1, 5, 10, 20])

    def test_a_session_of_the_storm_is_the_same_every_time(self):
        one, other = (
            [connection_storm.statement(chooser, 1000) for _ in range(50)]
            for chooser in (random.Random(3), random.Random(3))
        )
        self.assertEqual(one, other)
        self.assertGreater(len({text.split("(")[0] for text in one}), 4)


class Surroundings(Scratch):
    def test_memory_groups(self):
        one = "29 23 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu\n30 23 0:2 / /cg/memory rw shared:9 - cgroup c rw,memory\n"
        self.assertEqual(
            cgroup.groups("4:memory:/a/b\n1:cpu:/\n0::/\n", one),
            (1, [Path("/cg/memory/a/b"), Path("/cg/memory/a"), Path("/cg/memory")]),
        )
        two = "30 23 0:2 /box /cg rw - cgroup2 cgroup2 rw,nsdelegate\n"
        self.assertEqual(cgroup.groups("0::/box/a\n", two), (2, [Path("/cg/a"), Path("/cg")]))
        self.assertEqual(cgroup.groups("1:cpu:/\n", one), (0, []))

    def test_where_it_is_not_possible(self):
        missing = Path("/nonexistent/enabled")
        with mock.patch.object(huge_pages, "SETTING", missing), self.assertRaises(NotPossible), huge_pages.always():
            self.fail("it is not possible")
        with (
            mock.patch.object(cgroup, "groups", return_value=(1, [missing])),
            self.assertRaises(NotPossible),
            cgroup.memory_limit(1),
        ):
            self.fail("it is not possible")

    def test_huge_pages_are_restored(self):
        file = self.make_file("enabled", "always [madvise] never")
        with (
            mock.patch.object(huge_pages, "SETTING", file),
            # The kernel shows the choice in brackets; a file shows what was written.
            mock.patch.object(Path, "read_text", return_value="always [madvise] never"),
            huge_pages.always(),
        ):
            self.assertEqual(file.read_bytes(), b"always")
        self.assertEqual(file.read_text().strip(), "madvise")


HEAD = {"machine": {"cpu": "x"}, "arms": {"stock": {}, "dev": {}}, "settings": {"rounds": 1}}


class Stored(Scratch):
    def test_finished_turns_survive_an_interruption(self):
        step = stored.Step("triggers", PLAIN, 1, "dev")
        failing = stored.Step("triggers", PLAIN, 1, "stock")
        results = stored.Results(self.root / "run", HEAD)
        results.save_head()
        results.add(step, survived(100, 500, 90))
        results.add(failing, idlers.failed("no reason"))
        with (results.folder / stored.TURNS).open("a") as file:
            file.write('\n{"step": {"workl')
        again = stored.Results.open(results.folder)
        self.assertTrue(again.finished(step))
        self.assertFalse(again.finished(failing))
        again.add(failing, survived(100, 900, 90))
        third = stored.Results.open(results.folder)
        self.assertTrue(third.finished(failing))
        found = third.grouped("triggers", PLAIN, ["stock", "dev"])
        self.assertEqual(list(found), ["stock", "dev"])
        self.assertEqual(len(found["stock"]), 1)
        self.assertEqual(third.head, HEAD)

    def test_no_run_to_go_on_with(self):
        with self.assertRaisesRegex(Problem, "not the folder of a run"):
            stored.Results.open(Path("/nonexistent"))


class Resumed(Scratch):
    def options(self, *words):
        with mock.patch("sys.argv", ["run", *words]):
            return run.arguments()

    def opened(self, options, built="today"):
        def describe(arm):
            return {"name": arm.name, "preload": ("a",), "built": built}

        with (
            mock.patch.object(run.Arm, "build"),
            mock.patch.object(run.Arm, "library", return_value="a"),
            mock.patch.object(run.Arm, "describe", describe),
        ):
            return run.opened(options)

    def test_options_hold_and_rounds_may_be_added(self):
        with mock.patch.object(run.report, "RESULTS", self.root):
            first = self.opened(self.options("--arms=stock,dev", "--idle=7", "--set=rows=5"))
        again = ("--resume", str(first.folder))
        options = self.options(*again, "--rounds=9")
        self.assertEqual((options.arms, options.idle, options.set, options.rounds), ("stock,dev", 7, ["rows=5"], 9))
        self.assertEqual(self.opened(options).head["settings"]["rounds"], 9)
        self.assertEqual(self.options(*again).rounds, 9)
        with self.assertRaisesRegex(Problem, "begin a new run"):
            self.opened(options, built="tomorrow")
        for other in ("--idle=8", "--set=rows=6", "--soak"):
            with mock.patch("sys.stderr"), self.assertRaises(SystemExit):
                self.options(*again, other)

    def test_soak(self):
        options = self.options("--soak")
        self.assertEqual((options.arms, options.rounds), ("dev,stock", soak.ROUNDS))
        self.assertEqual(self.options("--soak", "--arms=dev").arms, "dev")


class Outcome(Scratch):
    def test_failed_turns_of_an_earlier_part_do_not_count(self):
        results = stored.Results(self.root, HEAD)
        earlier = stored.Step("triggers", PLAIN, 1, "dev")
        results.add(earlier, idlers.failed("no reason"))
        options = argparse.Namespace(arms="dev", rounds=1, surroundings=PLAIN, idlers=1, set=[], seconds=None)

        def succeeded(outcome):
            def turn(course, _idlers, step, *_):
                course._store(step, outcome)

            with (
                mock.patch.object(run.arm_list, "choose", return_value=[ARMS["dev"]]),
                mock.patch.object(run.memory, "template"),
                mock.patch.object(run.Course, "_turn", turn),
                mock.patch("sys.stdout"),
            ):
                workloads = run.chosen_workloads("partitions", [])
                return run.Course(results, workloads, options).run()

        self.assertFalse(succeeded(idlers.failed("gone")))
        self.assertTrue(succeeded(survived(100, 500, 90)))


class FakeTurn:
    def __init__(self, idling=True, result=None):
        self._idling = idling
        self._result = result or {"outcome": "survived"}

    def idling(self):
        return self._idling

    def end(self):
        self._idling = False
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def cpu_seconds(self):
        return 1.0


class Idling(unittest.TestCase):
    def setUp(self):
        self.done = {}
        self.closed = []
        self.idlers = idlers.Idlers(2, self.done.__setitem__)
        self.available = self.enterContext(
            mock.patch.object(idlers, "available_kb", return_value=idlers.LEAST_AVAILABLE_KB)
        )

    def add(self, name, **fake):
        stack = contextlib.ExitStack()
        stack.callback(self.closed.append, name)
        self.idlers.add(name, FakeTurn(**fake), stack)

    def test_no_more_than_wanted(self):
        self.add("one")
        self.idlers.make_room()
        self.assertEqual(self.closed, [])
        self.add("two")
        self.idlers.make_room()
        self.assertEqual(self.closed, ["one"])

    def test_what_has_idled_is_ended(self):
        self.add("one", idling=False)
        self.idlers.make_room()
        self.assertEqual((list(self.done), self.closed), (["one"], ["one"]))

    def test_none_is_started_where_memory_is_short(self):
        self.add("one")
        self.available.return_value = idlers.LEAST_AVAILABLE_KB - 1
        with self.assertRaisesRegex(Problem, "memory"):
            self.idlers.make_room()
        self.assertEqual(self.closed, ["one"])

    def test_a_failure_is_a_result(self):
        with self.idlers:
            self.add("one", result=Problem("gone"))
            self.add("two")
        self.assertEqual(self.done["one"]["outcome"], "failed: gone")
        self.assertEqual(self.closed, ["one", "two"])

    def test_an_interruption_ends_all_without_waiting(self):
        with self.assertRaises(KeyboardInterrupt), self.idlers:
            self.add("one")
            self.add("two")
            raise KeyboardInterrupt
        self.assertEqual((self.done, sorted(self.closed)), ({}, ["one", "two"]))

    def test_what_neighbours_take_is_counted(self):
        self.add("one")
        with mock.patch("time.sleep"), self.idlers.quiet() as counted:
            pass
        self.assertEqual(counted, {"neighbours_cpu_seconds": 0.0})


class Verdicts(unittest.TestCase):
    def arms(self, **ours):
        def figures(peak, idle, speed, p99):
            return {"peak": peak, "idle_5": idle + 100, "idle_60": idle, "per_second": speed, "p99_ms": p99}

        return {
            "stock": figures(1000, 900, 100, 10),
            "tcmalloc": figures(800, 950, 110, 20),
            # Arms of this server are none of the others.
            "dev-prof-off": figures(1, 1, 1000, 1),
            "optimised": figures(1, 1, 1000, 1),
            "profile": figures(1, 1, 1000, 1),
            "dev": {**figures(600, 700, 109, 10.4), **ours},
        }

    def judged(self, arms):
        return [target.judge(arms) for target in verdicts.TARGETS]

    def test_against_the_best_other(self):
        idle, peak, speed, p99, at_peak, after, cheap, exact = self.judged(
            self.arms(named_peak=96.0, named_after=94.0, unexplained_cheap=1.9, unexplained_exact=0.6)
        )
        self.assertEqual((idle.value, idle.versus), (800 / 900, "stock"))
        self.assertEqual((peak.value, peak.versus), (600 / 800, "tcmalloc"))
        self.assertEqual((speed.value, speed.versus), (109 / 110, "tcmalloc"))
        self.assertEqual((p99.value, p99.versus), (10.4 / 10, "stock"))
        self.assertTrue(all(v.reached for v in (idle, peak, speed, p99, at_peak)))
        self.assertFalse(after.reached)
        self.assertEqual((cheap.reached, exact.reached), (True, False))
        self.assertIn("94 NOT reached", str(after))

    def test_what_was_not_measured(self):
        arms = self.arms(idle_5=None, named_peak=None)
        idle, *_, at_peak, _, _, _ = self.judged(arms)
        self.assertEqual((str(idle), str(at_peak)), ("not measured",) * 2)
        alone = self.judged({"dev": arms["dev"]})
        self.assertIsNone(alone[1].reached)
        self.assertEqual(self.judged({})[0].value, None)

    def test_table(self):
        text = verdicts.table([("w", self.arms(per_second=50))])
        self.assertIn("3 of 4 figures reached", text)
        self.assertIn("0.455 NOT reached (tcmalloc)", text)


class Pools(unittest.TestCase):
    def test_share_of_named_pools(self):
        pools = {"general": (1, 10), "innodb": (5, 190)}
        self.assertEqual(memory.named_share(pools), 95)
        self.assertIsNone(memory.named_share({}))
        small = {"general": (1, 1)}
        self.assertEqual(memory.highest_pools([small, pools, small]), pools)
        self.assertEqual(memory.highest_pools([]), {})


class Soak(Scratch):
    def moment(self, name, rss):
        return {
            "moment": name,
            "rss_kb": rss,
            "anon_kb": rss,
            "live_kb": 600,
            "live_by": "allocator",
            "buffer_pool_kb": 400,
            "pools": {"general": (0, 0), "innodb": (1, 1)},
        }

    def test_report(self):
        run_ = {
            "outcome": "survived",
            "peak_rss_kb": 5000,
            "seconds": 1.0,
            "moments": [self.moment("round 1", 2000), self.moment("5 s idle", 1090)],
            "failures": ["round 1, triggers: broken"],
        }
        results = stored.Results(self.root, HEAD)
        results.add(stored.Step(soak.NAME, PLAIN, 1, "dev"), run_)
        results.add(stored.Step(soak.NAME, PLAIN, 1, "stock"), idlers.failed("no luck"))
        text = soak.write(results)
        self.assertRegex(text, r"1\.090 \| <= 1\.1 \| +met")
        self.assertIn("2.000", text)
        start, end = self.moment("start", 500), self.moment("end", 800)
        self.assertIsNone(soak.growth_ratio(start, end))
        start["live_kb"] = 400
        self.assertEqual(soak.growth_ratio(start, end), 1.5)
        self.assertIn("triggers: broken", text)
        self.assertIn("no luck", text)

    def test_data_that_cannot_be_renewed_cost_one_load(self):
        workload = mock.MagicMock()
        workload.renew.side_effect = [Problem("duplicate"), None]
        with (
            mock.patch.object(soak, "mysqld_options"),
            mock.patch.object(soak, "state", lambda _server, moment: moment),
            mock.patch.object(soak, "brief", str),
            mock.patch.object(soak, "IDLE_SECONDS", (0,)),
            mock.patch.object(soak.memory, "SETTLE_SECONDS", 0),
            mock.patch("sys.stdout"),
        ):
            done = soak.turn([workload], mock.MagicMock(), self.root, 3)
        self.assertEqual(workload.load.call_count, 2)
        self.assertEqual(len(done["failures"]), 1)
        self.assertIn("round 3", done["moments"])

    def test_rows_that_a_failed_delete_has_left_go_first(self):
        server = mock.MagicMock()
        WORKLOADS["fk_cascade"]().renew(server)
        session = server.connect.return_value.__enter__.return_value
        asked = [call.args[0] for call in session.query.call_args_list]
        emptied = [asked.index(f"DELETE FROM {name}") for name in ("grandchild", "child", "parent")]
        self.assertEqual(emptied, sorted(emptied))
        (first, *_) = (n for n, text in enumerate(asked) if text.startswith("INSERT"))
        self.assertLess(emptied[-1], first)

    def test_options_once_and_the_largest_buffer_pool(self):
        options = soak.mysqld_options(soak.workloads())
        names = [option.partition("=")[0] for option in options]
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("--innodb-buffer-pool-size=512M", options)
        self.assertEqual(list(soak.SIZES), list(WORKLOADS)[:8])


class Saving(Scratch):
    """--save keeps what documents may cite, and that only from a commit."""

    def test_a_tree_with_changes_is_refused(self):
        parser = rounds.parser("", rounds=1)
        self.assertFalse(parser.parse_args([]).save)
        for state, good in (("abc1234", True), ("abc1234-dirty", False), ("unknown", False)):
            with self.subTest(state), mock.patch.object(report, "commit") as commit:
                commit.return_value = state
                if good:
                    self.assertTrue(parser.parse_args(["--save"]).save)
                    continue
                words = f"--save .* this tree is {state}"
                with self.assertRaisesRegex(Problem, words):
                    parser.parse_args(["--save"])

    def test_every_program_refuses_before_it_measures(self):
        programs = [
            path.stem
            for path in (ROOT / "bench").glob("*.py")
            if path.stem not in ("__init__", "pgo_train")  # which saves nothing
        ]
        self.assertGreater(len(programs), 6)
        for name in programs:
            program = importlib.import_module(f"bench.{name}")
            with (
                self.subTest(name),
                mock.patch.object(sys, "argv", [name, "--save"]),
                mock.patch.object(report, "commit", return_value="abc-dirty"),
                self.assertRaisesRegex(Problem, "--save keeps"),
            ):
                program.main()

    def test_the_report_is_kept(self):
        results = stored.Results(self.root / "memory-1", HEAD)
        results.save_head()
        results.add(stored.Step("triggers", PLAIN, 1, "dev"), survived(1, 2, 3))
        (results.folder / stored.REPORT).write_text("# Title\nend\n")
        saved = self.root / "saved"
        with mock.patch.object(report, "SAVED", saved), mock.patch("sys.stdout"):
            results.publish()
        kept = saved / "memory-1"
        self.assertEqual({x.name for x in kept.iterdir()}, {"report.md"})
        self.assertEqual((kept / "report.md").read_text(), "# Title\nend\n")

    def test_figures_are_not_kept_in_git(self):
        raw = {"machine": {"cpus": 2}, "arms": {}, "settings": {}, "runs": [1, 2]}
        results, saved = self.root / "results", self.root / "saved"
        with (
            mock.patch.object(report, "RESULTS", results),
            mock.patch.object(report, "SAVED", saved),
            mock.patch("sys.stdout"),
        ):
            report.save("other-1", "# Title", keep=False)
            self.assertFalse(saved.exists())
            report.save_figures("some-1", raw)
            report.save("some-1", "# Title", keep=True)
        [measured] = results.glob("some-*.json")
        self.assertEqual(json.loads(measured.read_text()), raw)
        self.assertEqual(list(saved.glob("*.json")), [])
        self.assertEqual([file.read_text() for file in saved.glob("*.md")], ["# Title\n"])


class DumpProgram(Scratch):
    def build(self, name: str, program: str = "mysqldump") -> Build:
        build = Build(self.root / name)
        build.program(program).parent.mkdir(parents=True)
        build.program(program).touch()
        return build

    def test_the_first_build_that_has_it_gives_it(self):
        dev, own = self.build("dev"), self.build("profile")
        found = dump_oltp.client(dev.directory, own)
        self.assertEqual(found, dev.program("mysqldump"))

    def test_packaging_builds_no_dev(self):
        own = self.build("profile")
        found = dump_oltp.client(self.root / "dev", own)
        self.assertEqual(found, own.program("mysqldump"))

    def test_none_has_it(self):
        own = self.build("profile", "mysqld")
        with self.assertRaisesRegex(Problem, "mysqldump is missing"):
            dump_oltp.client(self.root / "dev", own)


class Report(Scratch):
    def test_a_pool_that_cannot_be_read_is_not_empty(self):
        session = mock.MagicMock()
        session.query.return_value.rows = [("general", "7", "9"), ("session", "7", None)]
        with self.assertRaisesRegex(Problem, "MEMDIAG_POOLS"):
            memory._pools(session)
        session.query.return_value.rows = [("general", "7", "9")]
        self.assertEqual(memory._pools(session), {"general": (7, 9)})

    def test_a_ledger_that_cannot_be_read_explains_nothing(self):
        session = mock.MagicMock()
        for answer, wanted in ((None, None), ("-0.25", -0.25)):
            session.query.return_value.scalar.return_value = answer
            self.assertEqual(memory.unexplained(session, "MEMDIAG_LEDGER"), wanted)
        figures = memory.figures({**survived(100, 800, 800), "unexplained": {"cheap": None, "exact": 0.1}})
        self.assertIsNone(figures["unexplained_cheap"])
        self.assertEqual(figures["unexplained_exact"], 0.1)

    def test_has_workloads_of_an_earlier_part_of_the_run(self):
        options = argparse.Namespace(workloads="partitions", set=[], seconds=None)
        results = stored.Results(self.root, HEAD)
        for workload in ("triggers", "partitions"):
            step = stored.Step(workload, PLAIN, 1, "stock")
            results.add(step, survived(100, 800, 800))
        text = run_report.write(results, run.every_workload(options))
        self.assertIn("## triggers", text)
        self.assertIn("## partitions", text)

    def test_report(self):
        ours = {
            **survived(100, 700, 120),
            "pools_peak": {"general": (0, 2**20), "table_cache": (2**29, 3 * 2**20)},
            "neighbours_cpu_seconds": 0.1,
        }
        results = stored.Results(self.root, HEAD)
        for surrounding, arm, one in (
            (PLAIN, "stock", survived(100, 800, 800)),
            (PLAIN, "dev", ours),
            (HUGE_PAGES, "stock", idlers.failed("no file", "not possible here")),
            (LIMIT, "stock", KILLED),
            (LIMIT, "dev", survived(100, 700, 120)),
        ):
            results.add(stored.Step("triggers", surrounding, 1, arm), one)
        text = run_report.write(results, run.chosen_workloads("all", []))
        self.assertEqual((results.folder / "report.md").read_text(), text + "\n")
        self.assertIn("700 > 120", text)
        self.assertIn("1 killed", text)
        self.assertIn("Not possible here: no file", text)
        self.assertIn("flush seconds", text)
        self.assertIn("0.15 reached (stock)", text)
        self.assertIn("75 NOT reached", text)
        self.assertIn("at most 5.0% of one processor", text)
        self.assertRegex(text, r"table_cache +\| +512\.0")

    def test_the_limit_follows_from_our_own_peak(self):
        self.assertEqual(run.limit_kb({"dev": [survived(100, 1000, 1)]}), int(1.3 * 1000 * 1024))
        with self.assertRaises(NotPossible):
            run.limit_kb({"stock": [survived(100, 1000, 1)]})
