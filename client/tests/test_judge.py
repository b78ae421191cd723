import copy
import unittest

from memdiag.judge.findings import findings
from memdiag.judge.unexplained import bytes_unexplained, once_higher
from memdiag.model.view import View
from memdiag.render import text
from memdiag.render.page import Page
from memdiag.report.build import report

from tests import fixtures
from tests.builder import GIB, MIB, instrument, snapshot, stock

HOLDERS = {
    "leak": {"user variables"},
    "fragmentation": {"fragmentation of pool session"},
    "table-cache": {"open tables"},
    "triggers": {"triggers"},
    "prepared-statements": {"prepared statements"},
    "MEMORY-tables": {"MEMORY tables"},
    "large-transaction": {"binary log caches", "transactions and locks"},
    "connection-storm": {"sessions"},
    "swap": {"swap"},
    "cgroup-near-its-limit": {"cgroup"},
}


def named(data):
    return {one.holder: one for one in findings(View(data))}


class DrivenStates(unittest.TestCase):
    """Recorded from real servers by client/check/states.py."""

    def test_the_first_finding_names_the_holder(self):
        for name in fixtures.names():
            kind, _, state = name.partition("-")
            if state not in HOLDERS:
                continue
            # Stock does not know of free parts of pages; there the check tells.
            right = HOLDERS[state]
            if kind == "stock" and state == "fragmentation":
                right = {"unused pages", "memory that is not counted"}
            with self.subTest(name):
                first = findings(View(fixtures.snapshot(name)))[0]
                self.assertIn(first.holder, right)
                self.assertTrue(first.statements or first.check)
                self.assertTrue(first.source)

    def test_idle_servers_are_calm(self):
        for name in ("ours-idle", "stock-idle", "mariadb-idle"):
            with self.subTest(name):
                found = findings(View(fixtures.snapshot(name)))
                self.assertEqual([one.headline for one in found if one.severity != "note"], [])  # fmt: skip

    def test_nothing_is_concluded_from_nothing(self):
        for name in fixtures.names():
            data = copy.deepcopy(fixtures.snapshot(name))
            for source in data["sources"].values():
                source.update(rows=[], error="not read")
            with self.subTest(name):
                self.assertEqual(findings(View(data)), [])


class Held(unittest.TestCase):
    def test_both_sides_of_the_usual_share(self):
        outside = 1000 * MIB

        def of(held):
            rows = [instrument("memory/sql/Prepared_statement::main_mem_root", held)]
            return named(stock(outside + 64 * MIB, memory=rows))

        self.assertNotIn("prepared statements", of(99 * MIB))
        self.assertIn("prepared statements", of(101 * MIB))

    def test_small_holders_are_no_reason_to_act(self):
        rows = [instrument("memory/sql/user_var_entry::value", 63 * MIB)]
        self.assertNotIn("user variables", named(stock(200 * MIB, memory=rows)))

    def test_the_session_with_most_is_named(self):
        rows = [instrument("memory/sql/user_var_entry::value", 300 * MIB)]
        sessions = [{"THREAD_ID": 1, "PROCESSLIST_ID": 42, "USER": "app", "COMMAND": "Sleep", "SECONDS": 5, "BYTES": 290 * MIB}]  # fmt: skip
        one = named(stock(500 * MIB, memory=rows, threads=sessions))["user variables"]
        self.assertEqual(one.statements, ["KILL 42"])
        sessions[0]["BYTES"] = 100 * MIB
        one = named(stock(500 * MIB, memory=rows, threads=sessions))["user variables"]
        self.assertNotIn("KILL 42", one.statements)

    def test_quoted_names(self):
        tables = [{"TABLE_SCHEMA": "a`b", "TABLE_NAME": "t", "BYTES": 5, "TABLE_ROWS": 1}]  # fmt: skip
        rows = [instrument("memory/memory/HP_PTRS", 300 * MIB)]
        one = named(stock(500 * MIB, memory=rows, memory_tables=tables))[
            "MEMORY tables"
        ]
        self.assertEqual(one.statements, ["ALTER TABLE `a``b`.`t` ENGINE = InnoDB"])


class Unexplained(unittest.TestCase):
    """5.8 GB that are in neither buffer pool nor Performance Schema."""

    def data(self, now, high):
        return stock(8 * GIB, memory=[instrument("memory/sql/THD::main_mem_root", now, high)])  # fmt: skip

    def test_the_sum_is_rss(self):
        view = View(self.data(GIB, GIB))
        self.assertEqual(bytes_unexplained(view), 8 * GIB - 50 * MIB - 64 * MIB - GIB)
        self.assertEqual(once_higher(view), 0)

    def test_retention_where_more_was_in_use_once(self):
        one = named(self.data(GIB, 7 * GIB))["unused pages"]
        self.assertEqual(one.verdict, "retention")
        self.assertIn("malloc_trim", one.check)

    def test_a_leak_where_it_never_was(self):
        one = named(self.data(GIB, GIB))["memory that is not counted"]
        self.assertEqual(one.verdict, "leak")

    def test_without_performance_schema_nobody_knows(self):
        one = named(stock(8 * GIB))["memory that is not counted"]
        self.assertEqual(one.verdict, "unexplained")

    def test_what_the_account_may_not_read_is_no_finding(self):
        data = stock(8 * GIB, memory=[], variables=[{"performance_schema": "ON"}])
        data["sources"]["memory"]["error"] = "this account may not read it"
        self.assertNotIn("memory that is not counted", named(data))
        words = text.render(Page("", [report(data)], [], [data]))
        self.assertIn("this account may not read what Performance Schema counts", " ".join(words.split()))  # fmt: skip
        self.assertNotIn("are in neither buffer pool nor", words)
        self.assertIn("Nothing was found to be wrong in what could be read.", words)
        data["sources"]["variables"]["rows"] = [{"performance_schema": "OFF"}]
        self.assertIn("memory that is not counted", named(data))

    def test_the_check_fits_the_allocator(self):
        data = self.data(GIB, GIB)
        for library, words in (
            ("libtcmalloc.so.4", "MallocExtension_ReleaseFreeMemory"),
            ("libjemalloc.so.2", "Restart"),
        ):
            data["sources"]["allocator_library"]["rows"] = [{"library": library}]
            one = named(data)["memory that is not counted"]
            self.assertIn(words, one.check)

    def test_a_fifth_is_usual(self):
        rss = 1000 * MIB
        counted = rss - 50 * MIB - 64 * MIB - 240 * MIB
        rows = [instrument("memory/sql/THD::main_mem_root", counted)]
        self.assertNotIn("memory that is not counted", named(stock(rss, memory=rows)))


class Limits(unittest.TestCase):
    def group(self, used, cache=0):
        return [{"version": 2, "folder": "/g", "limit": GIB, "usage": used, "reclaimable_cache": cache, "peak": used, "oom_kills": 0}]  # fmt: skip

    def test_near_the_limit(self):
        near = self.group(int(0.91 * GIB))
        self.assertEqual(
            named(stock(100 * MIB, cgroup=near))["cgroup"].severity, "critical"
        )
        self.assertNotIn("cgroup", named(stock(100 * MIB, cgroup=self.group(int(0.89 * GIB)))))  # fmt: skip

    def test_page_cache_is_no_use(self):
        full = self.group(GIB, cache=GIB // 2)
        self.assertNotIn("cgroup", named(stock(100 * MIB, cgroup=full)))

    def test_the_tightest_group_counts(self):
        own, above = self.group(100)[0], self.group(int(0.95 * GIB))[0]
        view = View(stock(100 * MIB, cgroup=[own, above | {"folder": "/above"}]))
        self.assertEqual(view.limit.source, "/above")

    def test_swap(self):
        def of(swapped):
            data = stock(900 * MIB)
            data["sources"]["process"]["rows"][0]["VmSwap"] = swapped
            return named(data)

        self.assertNotIn("swap", of(63 * MIB))
        self.assertEqual(of(70 * MIB)["swap"].severity, "warning")
        self.assertEqual(of(110 * MIB)["swap"].severity, "critical")
        self.assertIn("swapoff -a && swapon -a", of(110 * MIB)["swap"].statements)

    def test_growth_needs_a_line_and_time(self):
        def recording(step):
            return [{"time": 100.0 * n, "rss": 500 * MIB + n * step, "buffer_pool": 0} for n in range(10)]  # fmt: skip

        data = stock(600 * MIB)
        grown = {one.holder for one in findings(View(data), recording(10 * MIB))}
        self.assertIn("growth", grown)
        calm = {one.holder for one in findings(View(data), recording(0))}
        self.assertNotIn("growth", calm)


class Ranking(unittest.TestCase):
    def test_what_holds_memory_comes_before_what_a_setting_may_lead_to(self):
        advice = [{"SEVERITY": "warning", "SUBSYSTEM": "server", "VERDICT": "misconfiguration", "EVIDENCE": "too much", "REMEDY": "SET PERSIST max_connections = 5"}]  # fmt: skip
        ledger = [
            {"COMPONENT": "pool", "NAME": "session", "STATE": "dirty", "RESIDENT_BYTES": 70 * MIB, "PERCENT": 12},
            {"COMPONENT": "pool", "NAME": "session", "STATE": "live", "RESIDENT_BYTES": 500 * MIB, "PERCENT": 88},
        ]  # fmt: skip
        found = findings(View(snapshot("memdiag", memdiag_advice=advice, memdiag_ledger=ledger)))  # fmt: skip
        self.assertEqual([one.holder for one in found], ["unused pages", "server"])
        self.assertEqual(found[1].statements, ["SET PERSIST max_connections = 5"])


class CountsOfOthers(unittest.TestCase):
    def test_a_session_does_not_hold_what_another_session_freed(self):
        name = "memory/memory/HP_PTRS"
        session = [{"THREAD_ID": 1, "PROCESSLIST_ID": 9, "USER": "a", "COMMAND": "Sleep", "SECONDS": 5, "BYTES": 256 * MIB}]  # fmt: skip
        own = [{"EVENT_NAME": name, "BYTES": 255 * MIB}]

        def of(left):
            return named(stock(600 * MIB, memory=[instrument(name, left)], threads=session, largest_session=own))  # fmt: skip

        self.assertNotIn("KILL 9", str(of(0)))
        self.assertIn("MEMORY tables", of(255 * MIB))

    def test_advice_about_pages_that_were_never_written(self):
        advice = [{"SEVERITY": "note", "SUBSYSTEM": "binlog", "VERDICT": "cache", "EVIDENCE": "10.0 GiB of unused pages are kept", "REMEDY": "SELECT memdiag_purge('binlog')"}]  # fmt: skip

        def of(dirty):
            ledger = [{"COMPONENT": "pool", "NAME": "binlog", "STATE": "dirty", "RESIDENT_BYTES": dirty, "PERCENT": 1},
                      {"COMPONENT": "buffer_pool", "NAME": "", "STATE": "clean pages", "RESIDENT_BYTES": GIB, "PERCENT": 99}]  # fmt: skip
            return named(
                snapshot("memdiag", memdiag_advice=advice, memdiag_ledger=ledger)
            )

        self.assertEqual(of(MIB), {})
        self.assertIn("binlog", of(80 * MIB))
