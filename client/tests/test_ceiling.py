"""The ceiling's numbers are the server's; what the report, top and what-if say of it, and what they say without it."""

import json
import unittest
from pathlib import Path
from typing import Any

from memdiag.commands.what_if import ceiling_lines
from memdiag.judge import ceiling
from memdiag.model.view import View
from memdiag.report.build import report

from tests import fixtures
from tests.builder import GIB, MIB
from tests.figures import foreign

TIME = 1_800_000_000.0


def row(time: float, action: str, before: int, after: int, **more: Any) -> dict[str, Any]:
    return {
        "TIME": TIME + time,
        "ACTION": action,
        "ACTED": "YES",
        "PROCESSLIST_ID": None,
        "DIGEST": None,
        "BYTES": 5 * MIB,
        "DURATION_MICROSECONDS": 500_000,
        "LEFT_BEFORE_BYTES": before,
        "LEFT_AFTER_BYTES": after,
        "LEVEL": "RED",
    } | more


ACTIONS = [
    row(0, "park", 50 * MIB, 60 * MIB),
    row(5, "wait", 60 * MIB, 90 * MIB, PROCESSLIST_ID=7, DIGEST="a" * 64),
    row(9, "end", -3 * MIB, -2 * MIB, PROCESSLIST_ID=8, DIGEST="b" * 64),
]


def with_ceiling(level: int = 2, rows: tuple[dict[str, Any], ...] = (), **status: int) -> dict[str, Any]:
    """Our server below a limit of 1200 MiB."""
    data = fixtures.snapshot("ours-idle")
    sources = data["sources"]
    figures = {"level": level, "parked_bytes": 70 * MIB, "waits": 6, "longest_wait_microseconds": 2_500_000}
    figures |= {"went_on": 0, "ended": 1, "refused": 2} | status
    if level:
        figures = {"target_bytes": 1200 * MIB * 31 // 32, "left_bytes": 60 * MIB} | figures
    sources["status"]["rows"][0] |= {f"memdiag_ceiling_{name}": value for name, value in figures.items()}
    sources["memdiag_ceiling"] = {"source": "information_schema.MEMDIAG_CEILING", "rows": list(rows), "error": None}
    sources["variables"]["rows"][0] |= {"memdiag_memory_target": "AUTO", "innodb_buffer_pool_size": 500 * MIB}
    host = sources["memdiag_host"]["rows"]
    host[:] = [one for one in host if one["SUBJECT"] != "cgroup"]
    limit = {"SUBJECT": "cgroup", "NAME": "effective_limit", "NUMBER": 1200.0 * MIB, "UNIT": "bytes"}
    host.append(limit | {"VALUE": None, "SOURCE": "memory.max"})
    return data


def with_parts() -> dict[str, Any]:
    """It has a buffer pool of 500 MiB, which is full, and 300 MiB besides."""
    data = with_ceiling()
    sources = data["sources"]
    sources["memdiag_pools"]["rows"] = [
        {"POOL": "session", "LIFETIME": "session"},
        {"POOL": "table_cache", "LIFETIME": "cache"},
    ]
    for one in sources["memdiag_host"]["rows"]:
        if (one["SUBJECT"], one["NAME"]) == ("process", "RssFile"):
            one["NUMBER"] = 40.0 * MIB
    parts = [
        ("buffer_pool", "", "clean pages", 500),
        ("pool", "session", "live", 30),
        ("pool", "session", "dirty", 20),
        ("pool", "table_cache", "live", 200),
        ("pool", "table_cache", "muzzy", 10),
        ("files", "", "mapped", 40),
    ]
    sources["memdiag_ledger"]["rows"] = [
        {"COMPONENT": component, "NAME": name, "STATE": state, "RESIDENT_BYTES": mib * MIB}
        for component, name, state, mib in parts
    ]
    return data


class Numbers(unittest.TestCase):
    def test_the_form_is_the_servers(self):
        path = Path(ceiling.__file__).with_name("ceiling.json")
        examples = json.loads(path.read_text(encoding="utf-8"))["examples"]
        self.assertGreater(len(examples), 5)
        for one in examples:
            marks = ceiling.marks_of_limit(one["limit"])
            self.assertEqual(
                (marks.target, marks.plenty, marks.reserve), (one["target"], one["plenty"], one["reserve"])
            )

    def test_need_at_rest(self):
        # The server keeps 40% of the pool and the table cache. It does not keep sessions, unused pages and files.
        self.assertEqual(ceiling.needed_at_rest(View(with_parts())), 400 * MIB)

    def test_a_pool_that_is_not_full_needs_what_it_has(self):
        data = with_parts()
        data["sources"]["memdiag_ledger"]["rows"][0]["RESIDENT_BYTES"] = 100 * MIB
        self.assertEqual(ceiling.needed_at_rest(View(data)), 300 * MIB)

    def test_what_is_not_known_is_no_need(self):
        for column, value in (("memdiag_ledger", []), ("memdiag_pools", []), ("variables", [{}])):
            data = with_parts()
            data["sources"][column]["rows"] = value
            self.assertIsNone(ceiling.needed_at_rest(View(data)), column)
        data = with_parts()
        data["sources"]["memdiag_ledger"]["rows"][1]["RESIDENT_BYTES"] = None
        self.assertIsNone(ceiling.needed_at_rest(View(data)))

    def test_the_lowest_limit_that_fits(self):
        for need in (1, 100 * MIB, 400 * MIB, 3 * GIB, 100 * GIB):
            limit = ceiling.lowest_limit(need)
            marks, below = ceiling.marks_of_limit(limit), ceiling.marks_of_limit(limit - MIB)
            self.assertGreaterEqual(marks.target - marks.plenty, need)
            self.assertLess(below.target - below.plenty, need)


def without() -> dict[str, dict[str, Any]]:
    """Servers without a ceiling, and one whose table this account may not read."""
    found = {name: fixtures.snapshot(name) for name in ("ours-idle", "stock-idle", "mariadb-idle")}
    found["ours-idle"]["sources"]["memdiag_ceiling"] |= {"rows": [], "error": "it lacks PROCESS"}
    return found


class WhatIf(unittest.TestCase):
    def words(self, data: dict[str, Any], limit: int) -> str:
        return "\n".join(ceiling_lines(View(data), limit))

    def test_it_fits(self):
        words = self.words(with_parts(), 1200 * MIB)
        for part in (
            "With memdiag_memory_target = AUTO",
            "target of 1.14 GiB",
            "while 75.0 MiB are left",
            "below 37.5 MiB",
            "down to 200 MiB of 500 MiB",
            "needs 400 MiB",
            "It fits: 688 MiB more can be taken before statements wait",
        ):
            self.assertIn(part, words)

    def test_a_target_in_bytes_has_a_unit(self):
        data = with_parts()
        data["sources"]["variables"]["rows"][0]["memdiag_memory_target"] = 3 * GIB
        self.assertIn("AUTO (now: 3.00 GiB)", self.words(data, 1200 * MIB))

    def test_it_does_not_fit(self):
        words = self.words(with_parts(), 450 * MIB)
        self.assertIn(
            "It does not fit: one statement would run at a time. The lowest limit that fits is 496 MiB", words
        )

    def test_unknown(self):
        data = with_parts()
        data["sources"]["memdiag_ledger"]["rows"] = []
        words = self.words(data, 1200 * MIB)
        self.assertIn("What the server needs at rest is not known", words)

    def test_servers_without_it_hear_nothing_of_it(self):
        for name, data in without().items():
            self.assertEqual(ceiling_lines(View(data), GIB), [], name)

    def test_a_limit_that_is_less_than_the_margin(self):
        for limit in (1, 32 * MIB):
            self.assertIn("its margin alone is more", "\n".join(ceiling_lines(View(with_ceiling()), limit)))


class Report(unittest.TestCase):
    def section(self, data: dict[str, Any]) -> Any:
        found = [one for one in report(data).sections if one.id == "ceiling"]
        return found[0] if found else None

    def test_servers_without_it_have_no_section(self):
        for name, data in without().items():
            self.assertIsNone(self.section(data), name)

    def test_a_ceiling_that_is_off_and_did_nothing_has_none(self):
        data = with_ceiling(level=0)
        data["sources"]["variables"]["rows"][0]["memdiag_memory_target"] = "OFF"
        self.assertIsNone(self.section(data))

    def test_the_chart_has_what_was_left_and_what_was_done(self):
        section = self.section(with_ceiling(rows=tuple(ACTIONS)))
        (chart,) = [one for one in section.blocks if one.kind == "series"]
        self.assertEqual(chart.times, [TIME, TIME + 0.5, TIME + 5, TIME + 5.5, TIME + 9, TIME + 9.5])
        left, plenty, reserve = chart.lines
        self.assertEqual(left.values, [one * MIB for one in (50, 60, 60, 90, -3, -2)])
        self.assertEqual(set(plenty.values), {75 * MIB})
        self.assertEqual(set(reserve.values), {1200 * MIB // 32})
        self.assertEqual([one.label for one in chart.events], ["end, session 8: 5.00 MiB"])
        facts = {one.label: one.value for one in section.blocks if one.kind == "fact"}
        self.assertEqual(facts["level"], "yellow")
        self.assertEqual(facts["parked"], 70 * MIB)
        self.assertEqual(facts["longest wait"], 2.5)
        self.assertEqual((facts["ended"], facts["did not begin"], facts["went on without room"]), (1, 2, 0))

    def test_no_other_number_is_its_own(self):
        data = with_ceiling(rows=tuple(ACTIONS))
        self.assertEqual(foreign(report(data).plain(), data), [])

    def test_a_target_in_bytes_has_marks_of_its_own(self):
        data = with_ceiling(rows=tuple(ACTIONS), target_bytes=2048 * MIB)
        (chart,) = [one for one in self.section(data).blocks if one.kind == "series"]
        self.assertEqual([line.values[0] for line in chart.lines[1:]], [128 * MIB, 64 * MIB])

    def test_times_rise_where_actions_overlap(self):
        rows = (row(0, "wait", 1, 2, DURATION_MICROSECONDS=9_000_000), row(5, "park", 3, 4))
        (chart,) = [one for one in self.section(with_ceiling(rows=rows)).blocks if one.kind == "series"]
        self.assertEqual(chart.times, sorted(chart.times))

    def test_without_a_limit_there_is_nothing_to_do(self):
        data = with_ceiling(level=0)
        limit = data["sources"]["memdiag_host"]["rows"][-1]
        limit |= {"NUMBER": None, "VALUE": "max"}
        for one in (data, fixtures.snapshot("ours-idle")):
            (fact,) = self.section(one).blocks
            self.assertEqual((fact.label, fact.value), ("level", "no limit: nothing to do"))
        # Below a target in bytes it has something to do, and cannot.
        data["sources"]["variables"]["rows"][0]["memdiag_memory_target"] = "3G"
        self.assertGreater(len(self.section(data).blocks), 1)

    def test_figures_that_cannot_be_read(self):
        section = self.section(with_ceiling(level=0))
        facts = {one.label: one.value for one in section.blocks if one.kind == "fact"}
        self.assertEqual(facts["level"], "it knows no figures and does nothing")
        self.assertIsNone(facts["left below the target"])
