"""The parts of the benchmarks (bench/) that need no server."""

import contextlib
import os
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

from bench import instructions, pgo_train, scrape_cost, sysbench_oltp
from bench.runner import arms, prepared, report
from bench.workloads import phrase_burst as collection
from bench.workloads import sysbench_program
from harness.checks import Failed
from harness.problem import Problem
from harness.programs import captured
from harness.scratch import Scratch

SYSBENCH = """
    transactions:                        45123  (3007.58 per sec.)
    ignored errors:                      0      (0.00 per sec.)
         avg:                                    2.66
         95th percentile:                        3.49
"""
HISTOGRAM = """
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       1.000 |****************************************  900
       1.020 |***                                       90
      50.110 |                                          9
     100.230 |                                          1
"""


class Arms(unittest.TestCase):
    def test_every_arm_gets_every_place(self):
        three = [arms.ARMS[name] for name in arms.DEFAULT]
        orders = [arms.rotated(three, number) for number in range(3)]
        for place in range(3):
            self.assertEqual(len({order[place].name for order in orders}), 3)

    def test_bad_choices(self):
        for names in ("", "nonsense", "stock,nonsense"):
            with self.assertRaisesRegex(Problem, "unknown arm"):
                arms.choose(names)
        with self.assertRaisesRegex(Problem, "named twice"):
            arms.choose("stock,stock")

    def test_the_callers_allocator_settings_do_not_leak_in(self):
        leaking = {"MALLOC_CONF": "x", "MALLOC_ARENA_MAX": "1", "LD_PRELOAD": "y"}
        with mock.patch.dict("os.environ", {**leaking, "HOME": "/h"}):
            self.assertEqual(leaking.keys() & arms.ARMS["dev"].environment().keys(), set())
            linked = arms.ARMS["linked"].environment()
        self.assertIn("background_thread", linked["MALLOC_CONF"])
        self.assertEqual(linked["HOME"], "/h")


class Commands(unittest.TestCase):
    def test_each_can_be_run_by_itself(self):
        commands = [path for path in (arms.TOP / "bench").glob("*.py") if os.access(path, os.X_OK)]
        self.assertGreater(len(commands), 5)
        for command in commands:
            done = captured([command, "--help"])
            self.assertEqual(done.returncode, 0, f"{command.name}: {done.stderr}")


class Training(Scratch):
    def test_the_optimised_build_finds_what_is_known_of_our_own_sources(self):
        top = str(pgo_train.TOP).replace("/", "#")
        source = "#memdiag#mysys#mysys/memdiag/pools/pools.cc.gcda"
        self.assertEqual(
            pgo_train.name_in_optimised(f"a.dir{top}#build#profile{source}"), f"a.dir{top}#build#optimised{source}"
        )
        upstream = "sql#CMakeFiles#sql_main.dir#sql_profile.cc.gcda"
        self.assertEqual(pgo_train.name_in_optimised(upstream), upstream)

    def train(self, write):
        """One workload, whose server runs `write` when it ends."""
        profile = self.root / "data"
        self.make_file("profiled", "sources")
        arm = mock.MagicMock()
        arm.server.return_value.__exit__.side_effect = lambda *_: write(profile)
        workload = mock.MagicMock()
        workload.load.return_value.seconds = 1
        with (
            mock.patch.object(pgo_train, "PROFILE", profile),
            mock.patch.object(pgo_train, "TRAINED", profile / "trained"),
            mock.patch.object(pgo_train, "PROFILED", self.root / "profiled"),
            mock.patch.object(pgo_train, "ARMS", {"profile": arm}),
            mock.patch.object(pgo_train, "chosen", return_value=[workload]),
            mock.patch.object(pgo_train.memory, "template"),
            mock.patch.object(pgo_train.prepared, "copy"),
            mock.patch.object(sys, "argv", ["pgo_train"]),
            mock.patch("sys.stdout"),
        ):
            pgo_train.main()
        return (profile / "trained").read_text().splitlines()

    def test_the_mark_names_the_sources_and_the_counts(self):
        def write(text):
            def written(profile):
                profile.mkdir()
                (profile / "a.gcda").write_text(text)
                later = time.time() + 1
                os.utime(profile / "a.gcda", (later, later))

            return written

        marks = [self.train(write(text)) for text in ("1", "1", "2")]
        self.assertEqual([mark[0] for mark in marks], ["sources"] * 3)
        self.assertEqual(marks[0], marks[1])
        self.assertNotEqual(marks[0][1], marks[2][1])

    def test_a_server_that_wrote_no_counts(self):
        with self.assertRaisesRegex(Problem, "wrote no counts"):
            self.train(lambda profile: None)


class Prepared(Scratch):
    def test_made_once_and_copied_for_every_turn(self):
        made = []

        def initialise(_build, data):
            data.mkdir()
            (data / "file").write_text(str(len(made)))

        pair = [arms.Arm("one", "stock", ""), arms.Arm("two", "dev", "")]

        def template(size, name="w", base=None):
            return prepared.template(name, {"size": size}, pair, (), made.append, base)

        with (
            mock.patch.object(prepared, "WORK", self.root),
            mock.patch.object(prepared, "_alone"),
            mock.patch.object(arms, "Server"),
            mock.patch.object(prepared, "initialise", initialise),
            mock.patch.object(arms.Arm, "build"),
            mock.patch("sys.stdout"),
        ):
            template(1)
            first = template(1)
            self.assertEqual(len(made), 1)
            for _ in range(2):
                with prepared.copy(first, pair[1]) as folder, prepared.copy(first, pair[1]) as neighbour:
                    self.assertEqual((folder / "data/file").read_text(), "0")
                    (folder / "data/file").write_text("changed")
                    self.assertEqual((neighbour / "data/file").read_text(), "0")
                self.assertFalse(folder.exists() or neighbour.exists())
            with prepared.copy(template(2), pair[1]) as folder:
                self.assertEqual((folder / "data/file").read_text(), "1")
            second = template(2)
            larger = template(3, "larger", second)
            self.assertEqual((larger / "data/file").read_text(), "1")
            self.assertEqual(len(made), 3)
            self.assertTrue((second / "data/file").exists())

    def test_data_below_a_server_are_not_removed(self):
        arm = arms.Arm("one", "stock", "")
        for name in ("template", "turn-0"):
            folder = self.root / name / "w" / name
            (folder / "data").mkdir(parents=True)

            def owner(server, folder=folder):
                return 4711 if server.folder == folder.resolve() else None

            with (
                self.subTest(name),
                mock.patch.object(prepared, "WORK", self.root / name),
                mock.patch.object(prepared, "_alone"),
                mock.patch.object(arms.Arm, "build"),
                mock.patch.object(prepared.Server, "socket_owner", owner),
                mock.patch.object(prepared, "initialise", side_effect=AssertionError),
                mock.patch("sys.stdout"),
            ):
                with self.assertRaisesRegex(Problem, "4711"):
                    prepared.template("w", {}, [arm], (), self.fail)
                self.assertTrue((folder / "data").exists())


class Collection(unittest.TestCase):
    def test_documents_are_the_same_every_time(self):
        one, other = (list(collection.documents(50)) for _ in range(2))
        self.assertEqual(one, other)
        self.assertEqual({len(text.split()) for text in one}, {60})

    def test_searches_are_distinct_phrases(self):
        found = collection.searches()
        self.assertEqual(len(found), len(set(found)))

    def test_words_are_distinct(self):
        count = collection.VOCABULARY
        self.assertEqual(len(set(collection.words(count))), count)


class Reports(unittest.TestCase):
    def raw(self, runs: dict) -> dict:
        return {"machine": {}, "arms": {}, "settings": {"rounds": 1, "tool": "callgrind"}, "runs": runs}

    def test_sysbench_output(self):
        figures = sysbench_program.parse(SYSBENCH)
        self.assertEqual(figures, {"tps": 3007.58, "p95_ms": 3.49})
        with self.assertRaisesRegex(Problem, "no tps"):
            sysbench_program.parse("nothing")

    def test_sysbench_output_after_the_warm_up(self):
        warm_up = SYSBENCH.replace("3007.58", "1000.00").replace("3.49", "9.99")
        output = f"[ 4s ] Checkpoint report:\nSQL statistics:{warm_up}{HISTOGRAM}"
        figures = sysbench_program.parse(f"{output}SQL statistics:{SYSBENCH}")
        self.assertEqual((figures["tps"], figures["p95_ms"]), (3007.58, 3.49))
        self.assertEqual([1, 1, 4, 16], [sysbench_oltp.warm_up(n) for n in (8, 64, 256, 1024)])

    def test_percentiles_of_a_histogram(self):
        found = [sysbench_program.percentile(HISTOGRAM, share) for share in (0.5, 0.95, 0.99, 0.999, 1)]
        self.assertEqual([1.0, 1.02, 1.02, 50.11, 100.23], found)
        with self.assertRaisesRegex(Problem, "no histogram"):
            sysbench_program.percentile(SYSBENCH, 0.99)

    def test_slices_become_one_measurement(self):
        slow = HISTOGRAM.replace("1.000 |", "3.000 |").replace("1.020", "4.000")
        slices = [
            {
                "output": histogram + SYSBENCH.replace("3007.58", tps),
                "server_cpu_seconds": 1.5,
                "minor_faults": 10,
                "rss_kb": rss,
            }
            for histogram, tps, rss in ((HISTOGRAM, "1000.00", 7), (slow, "500.00", 9))
        ]
        cell = sysbench_oltp.cell(slices, 1)
        self.assertEqual(
            (750.0, 3.0, 20, 9), tuple(cell[name] for name in ("tps", "server_cpu_seconds", "minor_faults", "rss_kb"))
        )
        # The slices have 2,000 transactions. 1,890 take at most 3 ms, 1,980 at most 4 ms.
        self.assertEqual((4.0, 4.0), (cell["p95_ms"], cell["p99_ms"]))
        self.assertEqual(0, cell["starved"])

    def test_transactions_that_took_longer(self):
        found = [sysbench_program.longer_than(HISTOGRAM, least) for least in (0, 1.02, 50.11, 200)]
        self.assertEqual([1000, 10, 1, 0], found)

    def test_sysbench_compares_with_the_better_base(self):
        def runs(tps):
            cell = {
                "tps": tps,
                "rss_kb": 1,
                "starved": 0,
                "server_cpu_seconds": 8.0,
                "minor_faults": 3200,
                **dict.fromkeys(sysbench_oltp.PERCENTILES, 100 / tps),
            }
            return [{"cells": {"oltp_read_only 8": cell}}]

        raw = self.raw({"stock": runs(100), "linked": runs(90), "dev": runs(97)})
        raw["settings"] |= {"seconds": 15, "slices": 1}
        text = sysbench_oltp.render(raw)
        # The warm-up of one second has a sixteenth of the 1600 transactions.
        self.assertRegex(text, r"stock +\| .*\| +5\.000 \| +2\.00 \|")
        self.assertIn("0.970", text)
        self.assertIn("NOT MET", text)

    def test_range_of_a_ratio(self):
        base = [100.0, 110.0, 90.0, 105.0, 95.0]
        # A slow round is slow for both.
        self.assertEqual("0.90-0.90", sysbench_oltp.ratio_range([0.9 * tps for tps in base], base))
        low, high = map(float, sysbench_oltp.ratio_range(base[::-1], base).split("-"))
        self.assertTrue(0.8 < low < 1 < high < 1.25)
        self.assertEqual("-", sysbench_oltp.ratio_range(base[:4], base[:4]))

    def test_sysbench_measures_all_arms_before_the_next_slice(self):
        asked, servers, measured = self.sysbench_turns(slices=2)
        by_slice = [asked[at : at + 3] for at in range(0, len(asked), 3)]
        self.assertEqual(
            [turns[0][:2] for turns in by_slice],
            [(test, threads) for test in "ab" for threads in (1, 8) for _ in range(2)],
        )
        for turns in by_slice:
            self.assertEqual({turn[2] for turn in turns}, set(servers))
        # Each arm is first in two or three of the eight slices.
        firsts = [turns[0][2] for turns in by_slice]
        self.assertEqual({2, 3}, {firsts.count(name) for name in servers})
        turns = [at + 1 for at, turn in enumerate(asked) if turn == ("b", 1, "dev")]
        self.assertEqual(measured["dev"]["cells"]["b 1"], (turns, 5))

    def test_sysbench_measures_all_arms_before_the_next_cell(self):
        asked, servers, measured = self.sysbench_turns(slices=1)
        by_cell = [asked[at : at + 3] for at in range(0, len(asked), 3)]
        self.assertEqual([turns[0][:2] for turns in by_cell], [("a", 1), ("a", 8), ("b", 1), ("b", 8)])
        for turns in by_cell:
            self.assertEqual(len({turn[:2] for turn in turns}), 1)
            self.assertEqual({turn[2] for turn in turns}, set(servers))
        self.assertEqual({turns[0][2] for turns in by_cell[:3]}, set(servers))
        first = asked.index(("b", 1, "dev"))
        self.assertEqual(measured["dev"]["cells"]["b 1"], ([first + 1], 5))

    def sysbench_turns(self, slices):
        """The turns in their order, the servers, and what is measured: the numbers of the turns."""
        chosen = [arms.ARMS[name] for name in arms.DEFAULT]
        servers = {arm.name: mock.MagicMock() for arm in chosen}
        asked = []
        read = []
        written = []

        def write(server, seconds):
            self.assertEqual([], asked)
            written.append((server, seconds))

        def one_slice(server, test, threads, seconds):
            name = next(key for key, value in servers.items() if value is server)
            asked.append((test, threads, name))
            return len(asked)

        @contextlib.contextmanager
        def server(arm, *_):
            self.assertEqual({"stock", "linked", "dev"}, set(read))
            yield servers[arm.name]

        with (
            # A machine may have none of the builds.
            mock.patch.object(arms.Arm, "build", lambda arm: mock.Mock(mysqld=arm.preset)),
            mock.patch.object(arms.Arm, "server", server),
            mock.patch.object(prepared, "copy", mock.MagicMock()),
            mock.patch.object(sysbench_oltp, "wait_until_quiet"),
            mock.patch.object(sysbench_oltp, "read_anew", read.append),
            mock.patch.object(sysbench_oltp, "write", write),
            mock.patch.object(sysbench_oltp, "one_slice", one_slice),
            mock.patch.object(sysbench_oltp, "cell", lambda *made: made),
        ):
            measured = dict(sysbench_oltp.measure(chosen, Path("/"), ("a", "b"), (1, 8), 5, slices, 20))
        self.assertEqual([(servers[arm.name], 20) for arm in chosen], written)
        return asked, servers, measured

    def test_allocator_functions_by_name(self):
        for name in (
            "malloc",
            "_int_free",
            "operator new(unsigned long)",
            "je_sdallocx",
            "base_alloc",
            "arena_slab_alloc",
            "memdiag::pool_free(void*)",
            "sdallocx",
        ):
            self.assertTrue(instructions.is_allocator(name), name)
        for name in (
            "my_malloc",
            "row_search_mvcc(unsigned char*)",
            "MEM_ROOT::Alloc(unsigned long)",
            "page_cur_search",
            "pack_length()",
            "base_list::push_back(void*)",
        ):
            self.assertFalse(instructions.is_allocator(name), name)

    def test_what_monitoring_costs(self):
        def block(base, reader, speed, part):
            rates = {base: speed, reader: speed * part}
            return {way: {"rate": rate, "cpu_us": 50000 / rate} for way, rate in rates.items()}

        parts = {"exporter": 0.998, "otlp": 0.99}
        blocks = {
            reader: [block(base, reader, speed, parts[reader]) for speed in (1000, 5000, 2000)]
            for reader, base in scrape_cost.READERS.items()
        }
        rest = {"without": 2.0, "exporter": 8.0, "component": 3.0, "otlp": 17.0}
        run = {"blocks": blocks, "rest_ms": rest}
        text = scrape_cost.render({"runs": {"dev": [run]}, "machine": {"cpus": 2}, "arms": {}, "settings": {}})
        self.assertRegex(text, r"takes for it, exporter +\| +0.003 \| <= 0.005 \| +met")
        self.assertRegex(text, r"takes for it, otlp +\| +0.007 \| <= 0.005 \| NOT MET")
        self.assertRegex(text, r"lost, exporter +\| +0.002 \| <= 0.005 \| +met")
        self.assertRegex(text, r"lost, otlp +\| +0.010 \| <= 0.005 \| NOT MET")
        self.assertRegex(text, r"\| otlp / component +\| +0.9900 \| 0.9900 \| 0.9900")

    def test_monitoring_that_fails_is_a_problem(self):
        arm = mock.MagicMock()
        with (
            mock.patch.object(scrape_cost.running, "free_port", return_value=1),
            mock.patch.object(scrape_cost.sink, "listening", side_effect=Failed("waited 20 s")),
            self.assertRaisesRegex(Problem, "waited 20 s"),
        ):
            scrape_cost.measure(arm, Path("/"), 1, 1.0)

    def test_the_first_failure_of_a_load_is_said(self):
        waits = mock.Mock(side_effect=[None, Failed("sessions have not ended")])
        with (
            mock.patch.object(scrape_cost.running, "until", waits),
            self.assertRaisesRegex(Problem, "the load failed"),
            scrape_cost.telemetry(mock.MagicMock(), mock.MagicMock()),
        ):
            raise Problem("the load failed")

    def test_table_is_aligned(self):
        lines = report.table(["a", "b"], [["long name", "1"], ["x", "22"]]).splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1)
