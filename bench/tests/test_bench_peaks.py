"""bench/peaks.py: what it makes of a reading, when it reads, its report; all from literal figures."""

import json
import unittest
from unittest import mock

from bench import peaks
from bench.runner import arms as arm_list
from bench.runner import composition
from bench.runner.composition import Stack, grouped, part_of, path_of, reading_of
from harness import markdown
from harness.problem import Problem

MB = 1 << 20
COMMON = ("start_thread", "dispatch_command")


def stack(pool: str, path: str, size: float, error: float = 0.0) -> Stack:
    return Stack(pool, (*COMMON, *path.split()), size * MB, error * MB)


def reading(ledger: dict, allocated: dict, *stacks: Stack) -> composition.Reading:
    """`ledger`: MB of (component, name, state)."""
    rows: list[tuple[str | None, ...]] = [("ledger", *row, str(size * MB), "0") for row, size in ledger.items()]
    rows += [("pool", name, "", "", str(size * MB), "0") for name, size in allocated.items()]
    for one in stacks:
        frames = " < ".join(one.path[:-6:-1])
        rows.append(("stack", one.pool, frames, ";".join(one.path), str(one.bytes), str(one.error)))
    made = reading_of(rows)
    assert made
    return made


AT_REST = {
    ("program", "", "code and constants"): 40,
    ("buffer_pool", "", "clean pages"): 10,
    ("pool", "innodb", "live"): 30,
    ("pool", "session", "live"): 2,
    ("pool", "perfschema", "live"): 18,
    ("unexplained", "", ""): 0,
}
AT_PEAK = AT_REST | {
    ("buffer_pool", "", "dirty pages"): 50,
    ("pool", "innodb", "live"): 32,
    ("pool", "session", "live"): 102,
    ("pool", "session", "dirty"): 40,
    ("pool", "perfschema", "live"): 28,
    ("region", "thread_stack", ""): 8,
    ("unexplained", "", ""): -10,
}


def found(*stacks: Stack) -> dict:
    # The innodb pool has 70 MB that were never touched; the session pool's blocks are all used.
    rest = reading(AT_REST, {"innodb": 100, "session": 2, "perfschema": 18})
    peak = reading(AT_PEAK, {"innodb": 102, "session": 102, "perfschema": 28}, *stacks)
    return composition.composition(rest, peak)


class Parts(unittest.TestCase):
    def test_each_row_of_the_ledger_has_its_part(self) -> None:
        for row, part in {
            ("pool", "session", "live"): ("pool session", ""),
            ("pool", "perfschema", "live"): ("Performance Schema", ""),
            ("pool", "perfschema", "dirty"): ("unused pages", "pool perfschema"),
            ("pool", "session", "muzzy"): ("unused pages", "pool session"),
            ("pool", "session", "metadata"): ("allocator's metadata", "pool session"),
            ("buffer_pool", "", "dirty pages"): ("buffer pool: pages", ""),
            ("region", "thread_stack", ""): ("thread stacks", ""),
            ("region", "ddl_log", ""): ("region ddl_log", ""),
            ("libraries", "", "data"): ("program and files", "libraries"),
            ("unexplained", "", ""): ("unexplained", ""),
        }.items():
            self.assertEqual(part, part_of(*row), row)

    def test_the_names_are_those_of_the_ledger(self) -> None:
        (rows,) = markdown.tables((arm_list.TOP / "docs/reference.md").read_text(), "Rows of the ledger")
        components, regions, states = map(set, zip(*rows, strict=True))
        self.assertLessEqual({*composition._POOL_STATES, *composition._BUFFER_POOL_STATES}, states)
        self.assertLessEqual({*composition._FILES, "buffer_pool", "pool", "region"}, components)
        self.assertLessEqual(set(composition.UNKNOWN), components | states)
        self.assertLessEqual(set(composition._REGIONS), regions)

    def test_parts_add_up_to_rss(self) -> None:
        self.assertEqual(100 * MB, reading(AT_REST, {}).rss)

    def test_a_figure_that_could_not_be_read_spoils_the_reading(self) -> None:
        row = ("ledger", "pool", "session", "live", None, "0")
        self.assertIsNone(reading_of([row]))


class Paths(unittest.TestCase):
    def test_helpers_below_the_code_are_left_out(self) -> None:
        folded = "start;std::function::operator();f;f;g;MEM_ROOT::Alloc;my_malloc"
        self.assertEqual(("start", "f", "g"), path_of("g < f < start", folded))

    def test_the_innermost_of_equal_functions_counts(self) -> None:
        self.assertEqual(("f", "g", "f"), path_of("f < g < f", "f;g;f;my_malloc"))

    def test_a_name_that_is_not_there_cuts_nothing(self) -> None:
        self.assertEqual(("?",), path_of("", "?"))
        self.assertEqual(("a", "b:c"), path_of("b;c < a", "a;b:c;malloc"))


class Groups(unittest.TestCase):
    def test_small_stacks_meet_at_the_function_that_called_them_all(self) -> None:
        many = [stack("table_cache", f"parse item{n}", 1, 3) for n in range(16)]
        groups = grouped([stack("session", "sort", 50), *many], 2)
        self.assertEqual([50 * MB, 16 * MB], [group.bytes for group in groups])
        self.assertEqual("sort < dispatch_command < start_thread", groups[0].text())
        self.assertEqual("... < parse < dispatch_command < start_thread", groups[1].text())
        self.assertEqual((16, 12 * MB), (groups[1].stacks, groups[1].variance ** 0.5))

    def test_a_small_pool_takes_no_place_of_a_large_one(self) -> None:
        small = [stack(f"pool{n}", "f", 0.1) for n in range(12)]
        large = [stack("session", "a", 9), stack("session", "b", 8)]
        found = grouped([*small, *large], 2)
        self.assertEqual(["a", "b"], [group.path[-1] for group in found])

    def test_what_has_only_the_pool_in_common_says_so(self) -> None:
        stacks = [Stack("general", (f"thread{n}", "f"), 5, 0) for n in range(4)]
        found = grouped([*stacks, Stack("general", ("thread", "g"), 50, 0)], 2)
        self.assertEqual(["g < thread", "no function in common"], [group.text() for group in found])

    def test_few_stacks_stay_as_they_are(self) -> None:
        found = grouped([stack("session", "a b c", 1), stack("session", "a b c", 2)])
        self.assertEqual(["c < b < a"], [group.text() for group in found])
        self.assertEqual(3 * MB, found[0].bytes)
        self.assertEqual([], grouped([]))


class Composition(unittest.TestCase):
    def test_what_has_a_name_or_a_stack_is_explained(self) -> None:
        made = found(stack("session", "sort", 95, 5), stack("innodb", "lock", 2))
        # Missing: 5 MB of the session pool, and the 10 MB by which the reading is off.
        self.assertAlmostEqual(1 - 15 / 300, composition.explained(made))
        missing = {name: size / MB for name, size in made["missing"].items() if size}
        self.assertEqual({"pool session without a stack": 5, "unexplained": 10}, missing)
        self.assertEqual(
            {"innodb": 30, "session": 2, "perfschema": 18},
            {pool: size / MB for pool, size in made["peak"]["older"].items()},
        )

    def test_what_was_never_touched_does_not_count(self) -> None:
        ledger = {("pool", "session", "live"): 10}
        big = stack("session", "blob", 40)
        made = composition.composition(reading({}, {}), reading(ledger, {"session": 40}, big))
        self.assertEqual((40 * MB, 10 * MB), (made["code"][0]["live"], made["code"][0]["resident"]))
        self.assertEqual(1, composition.explained(made))

    def test_old_blocks_that_were_never_touched_do_not_shrink_new_ones(self) -> None:
        code = found(stack("innodb", "lock", 2))["code"]
        self.assertEqual(2 * MB, code[0]["resident"])

    def test_pages_beyond_the_new_blocks_are_of_old_ones(self) -> None:
        before = {("pool", "innodb", "live"): 30}
        after = {("pool", "innodb", "live"): 90}
        made = composition.composition(
            reading(before, {"innodb": 100}), reading(after, {"innodb": 102}, stack("innodb", "lock", 2))
        )
        self.assertEqual({"innodb": 30 * MB}, made["rest"]["older"])
        self.assertEqual({"innodb": 88 * MB}, made["peak"]["older"])
        self.assertEqual(1, composition.explained(made))

    def test_old_blocks_have_no_more_pages_than_bytes(self) -> None:
        # The two tables are not of one moment: more is resident than allocated.
        made = composition.composition(
            reading({("pool", "innodb", "live"): 30}, {"innodb": 40}),
            reading({("pool", "innodb", "live"): 62}, {"innodb": 60}),
        )
        self.assertEqual({"innodb": 40 * MB}, made["peak"]["older"])

    def test_pages_of_freed_old_blocks_may_be_of_new_ones(self) -> None:
        after = {("pool", "innodb", "live"): 60}
        made = composition.composition(
            reading({("pool", "innodb", "live"): 30}, {"innodb": 40}),
            reading(after, {"innodb": 60}, stack("innodb", "lock", 50)),
        )
        self.assertEqual({"innodb": 30 * MB}, made["peak"]["older"])

    def test_stacks_beyond_the_list_are_missing(self) -> None:
        with mock.patch.object(composition, "grouped", lambda stacks: grouped(stacks, 1)):
            made = found(stack("session", "sort", 100), stack("innodb", "lock", 2))
        self.assertEqual(2 * MB, made["missing"]["other stacks of pool innodb"])


class Pace(unittest.TestCase):
    def test_reads_at_new_highs_near_the_peak_and_seldom(self) -> None:
        pace = peaks.Pace(800)
        self.assertFalse(pace.due(799, 1))
        self.assertTrue(pace.due(800, 1))
        pace.done(810, 1.5, 0.5)
        self.assertFalse(pace.due(900, 3.4))
        self.assertTrue(pace.due(900, 3.5))
        self.assertFalse(pace.due(811, 9))
        pace.done(700, 9, 0.1)  # the peak had passed when the server read
        self.assertFalse(pace.due(750, 99))
        self.assertTrue(pace.due(830, 99))


class Arms(unittest.TestCase):
    def test_the_profiled_arm_comes_after_the_one_that_tells_its_peak(self) -> None:
        arms = arm_list.rotated([arm_list.ARMS[name] for name in ("stock", "dev", "dev-profile")], 2)
        for number in range(3):
            ordered = [arm.name for arm in peaks.order(arms, number)]
            self.assertEqual("dev-profile", ordered[-1])
            self.assertEqual({"stock", "dev", "dev-profile"}, set(ordered))

    def test_a_workload_that_fails_costs_no_other(self) -> None:
        def turn(workload, arm, floor_kb):
            if workload.name == "partitions":
                raise Problem("no")
            self.assertEqual(floor_kb, 800 if arm.name == "dev-profile" else None)
            return {"peak_kb": 1000}

        arms = [arm_list.ARMS[name] for name in ("dev-profile", "dev")]
        with mock.patch.object(peaks, "turn", turn), mock.patch.object(peaks, "say"):
            done = dict(peaks.round_of(arms, peaks.chosen(["partitions", "triggers"])))
        self.assertEqual({"triggers": {"peak_kb": 1000}}, done["dev"])
        self.assertEqual(done["dev"], done["dev-profile"])


def turn_of(peak: float, pages: float = 60, **more: object) -> dict:
    return {
        "start_kb": 100 << 10,
        "peak_kb": peak * 1024,
        "left_kb": 130 << 10,
        "pages_kb": pages * 1024,
        "per_second": 1.0,
        **more,
    }


class Report(unittest.TestCase):
    def rendered(self, dev: float, stock: float, made: dict, stock_pages: float = 60) -> str:
        instruments = [("memory/innodb/log", "innodb", str(16 * MB), str(64 * MB))]
        made |= {"instruments": instruments, "reading_seconds": [0.1, 0.2, 0.3]}
        raw = {
            "runs": {
                "stock": [{"triggers": turn_of(stock, stock_pages)}],
                "dev": [{"triggers": turn_of(dev)}],
                "dev-profile": [{"triggers": turn_of(310, found=made)}],
            },
            "machine": {},
            "arms": {},
            "settings": {"rounds": 1, "workloads": ["triggers", "partitions"]},
        }
        return peaks.render(json.loads(json.dumps(raw)))

    def test_parts_code_and_what_is_missing(self) -> None:
        stacks = stack("session", "sort", 60, 5), stack("session", "join", 35, 4)
        text = self.rendered(290, 500, found(*stacks))
        self.assertRegex(text, r"triggers: peak to the lowest other +\| +0\.580 .* NOT MET")
        self.assertRegex(text, r"triggers: explained share of RSS +\| +0\.943 .*\| +met")
        self.assertIn("The reading is of 300.0 MB, 96.8% of the latter. 3 readings took 200 ms each.", text)
        self.assertRegex(text, r"\| pool session +\| +\| +2\.0 \| +102\.0 \| +34\.0 \| +102\.0 \|")
        self.assertRegex(text, r"- of these: pool session +\| +\| +0\.0 \| +40\.0 \|")
        self.assertRegex(
            text, r"\| sort < dispatch_command .*\| +session \| +\| +60\.0 \| +\(20\.0\) \| +60\.0 \| +5\.0 \|"
        )
        self.assertRegex(text, r"allocated before the profiler began +\| several \| +32\.0 \|")
        self.assertIn(
            "Missing: unexplained 10.0 MB, pool session without a stack 5.0 MB, pool innodb without a stack 2.0 MB.",
            text,
        )
        self.assertRegex(text, r"memory/innodb/log +\| innodb \| +16\.0 \| +64\.0 \|")
        self.assertIn("see the output of the run: partitions.", text)

    def test_what_the_goal_leaves(self) -> None:
        made = found(stack("session", "sort", 100))
        text = self.rendered(290, 500, made)
        self.assertIn(
            "40.0 MB are the program and files. 60.0 MB are pages of the buffer pool; so many are in stock, too.", text
        )
        self.assertIn("250.0 MB. It leaves 150.0 MB for all else, which takes 190.0 MB.", text)
        self.assertIn("alone exceed half", self.rendered(290, 190, made))
        self.assertIn("at most half of that of stock", self.rendered(290, 600, made))
        # Pages that only this server holds could go.
        self.assertIn("20.0 MB are pages", self.rendered(290, 500, made, 20))

    def test_growth_and_what_stays(self) -> None:
        text = self.rendered(290, 500, {})
        self.assertRegex(
            text, r"\| triggers \| 290\.0 \| +500\.0 stock \| +0\.58 \| +190\.0, 400\.0 \| +0\.47 \| 30\.0, 30\.0"
        )

    def test_the_goal_of_poison_is_a_third(self) -> None:
        for name, goal in (("triggers", 0.5), ("json_row_25", 0.333)):
            self.assertEqual(goal, peaks.Case(name, {"dev": [{name: turn_of(290)}]}).goal)

    def test_another_arm_of_this_server_is_no_other(self) -> None:
        runs = {
            arm: [{"triggers": turn_of(peak)}]
            for arm, peak in (("stock", 500), ("dev", 290), ("dev-no-pools", 300), ("optimised", 280))
        }
        case = peaks.Case("triggers", runs)
        self.assertEqual(("stock", 290 / 500), (case.lowest, case.ratio))

    def test_too_little_explained_is_said(self) -> None:
        text = self.rendered(290, 500, found(stack("session", "sort", 60)))
        self.assertRegex(text, r"explained share of RSS +\| +0\.827 .*NOT MET")

    def test_a_turn_without_a_reading_is_said(self) -> None:
        text = self.rendered(290, 500, {})
        self.assertIn("Not read: RSS stayed below 80%", text)
        self.assertRegex(text, r"explained share of RSS +\| +- .*not measured")

    def test_without_other_arms_there_is_no_ratio(self) -> None:
        made = found(stack("session", "sort", 100)) | {"instruments": [], "reading_seconds": [0.1]}
        raw = {
            "runs": {"dev": [{"triggers": turn_of(290)}], "dev-profile": [{"triggers": turn_of(310, found=made)}]},
            "machine": {},
            "arms": {},
            "settings": {"rounds": 1, "workloads": ["triggers"]},
        }
        text = peaks.render(raw)
        self.assertRegex(text, r"peak to the lowest other +\| +- .*not measured")
        self.assertIn("No other arm was measured.", text)
