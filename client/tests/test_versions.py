"""Every statement that memdiag sends, against what each version of each server has."""

import os
import unittest
from unittest import mock

from memdiag.collect.sample import Sampler
from memdiag.collect.snapshot import take
from memdiag.collect.sources import Source
from memdiag.commands import stacks
from memdiag.commands.top import Screen
from memdiag.connect.options import Target
from memdiag.connect.session import Session
from memdiag.judge.findings import findings
from memdiag.model.view import View
from memdiag.problem import Problem
from memdiag.render import html, markdown, text
from memdiag.render import json as as_json
from memdiag.render.page import Page
from memdiag.report.build import report

from tests import fixtures
from tests.old_server import GIB, HEALTH, NO_COLUMN, NO_TABLE, NO_VARIABLE, OldServer
from tests.statements import named
from tests.versions import SERVERS, Server, table, variable

TARGET = Target(host="db1", ssl_mode="DISABLED")
KERNEL = ("process", "allocator_library", "cgroup", "meminfo", "pressure", "kernel")
# Sources that an older server lacks. Everything else must be read.
UNKNOWN = {"digests"}


def linked(server: OldServer):
    return mock.patch("memdiag.connect.session.pymysql", lambda: server)


def snapshot_of(old: OldServer) -> dict:
    with linked(old), Session(TARGET) as session:
        snapshot = take(session)
    for name in KERNEL:  # the target is another machine
        snapshot["sources"][name] = old.sources[name]
    return snapshot


def modern(server: Server) -> bool:
    return variable("global_connection_memory").has(server) and table("performance_schema.threads")["TOTAL_MEMORY"].has(
        server
    )


class Statements(unittest.TestCase):
    def test_every_report_is_made_and_says_what_is_unknown(self):
        for server in SERVERS:
            old = OldServer(server)
            with self.subTest(server.name, comment=server.comment):
                snapshot = snapshot_of(old)
                page = Page("Memory", [report(snapshot)], [], [snapshot])
                words = text.render(page)
                for form in (html, markdown, as_json):
                    self.assertTrue(form.render(page))
                self.assertIn(server.name, words)
                missing = {name for name, one in snapshot["sources"].items() if one["error"]}
                self.assertEqual(missing, set() if modern(server) else UNKNOWN)
                for name in missing:
                    self.assertIn(snapshot["sources"][name]["error"].split()[0], words)
                self.assertGreater(View(snapshot).row("sessions")["SESSIONS"], 0)
                self.assertTrue(snapshot["sources"]["threads"]["rows"])
                if not modern(server) and not server.mariadb:
                    # The highest that a session had.
                    self.assertIn("unknown", words[words.index("Sessions with most") :])

    def test_a_server_that_is_too_old_is_one_line(self):
        for server in SERVERS:
            with self.subTest(server.name, comment=server.comment):
                self.assertEqual(View(snapshot_of(OldServer(server))).too_old, "")
        old = fixtures.snapshot("stock-idle")
        old["server"]["version"] = "5.7.44-log"
        words = text.render(Page("", [report(old)], [], [old]))
        self.assertIn("MySQL 5.7.44-log is older than 8.0, the oldest that memdiag knows", words)

    def test_which_versions_are_too_old(self):
        for version, flavour, old in (
            ("5.7.44-log", "mysql", True),
            ("8.0.11", "mysql", False),
            ("8.4.13-13", "percona", False),
            ("9.7.4-memdiag", "memdiag", False),
            ("26.7.1", "mysql", False),  # calendar versions
            ("26.10.0-debug", "mysql", False),
            ("28.4.0.2", "mysql", False),
            ("10.5.29-MariaDB", "mariadb", True),
            ("10.6.0-MariaDB", "mariadb", False),
            ("12.1.2-MariaDB-log", "mariadb", False),
            ("unknown", "mysql", False),
        ):
            with self.subTest(version):
                data = fixtures.snapshot("stock-idle")
                data["server"] |= {"version": version, "flavour": flavour}
                self.assertEqual(bool(View(data).too_old), old)

    def test_the_exact_release(self):
        """MySQL 26.10 has releases of one version: VERSION() does not tell them apart."""
        for server in SERVERS:
            with self.subTest(server.name, comment=server.comment):
                snapshot = snapshot_of(OldServer(server))
                exact = variable("version_with_update").has(server)
                self.assertEqual(snapshot["server"]["version"], server.name)
                self.assertEqual(snapshot["server"]["release"], "26.10.0.1" if exact else None)
                self.assertEqual("26.10.0.1" in text.render(Page("", [report(snapshot)], [], [snapshot])), exact)

    def test_performance_schema_off(self):
        """Its list of sessions is empty then, and nobody else has 0 sessions: memdiag's own is one."""
        for server in SERVERS:
            with self.subTest(server.name, comment=server.comment):
                snapshot = snapshot_of(OldServer(server, schema="OFF"))
                self.assertGreater(View(snapshot).row("sessions")["SESSIONS"], 0)
                for name in UNKNOWN | {"memory", "users", "prepared"}:
                    self.assertIn("OFF", snapshot["sources"][name]["error"])
                self.assertIn("unknown", text.render(Page("", [report(snapshot)], [], [snapshot])))

    def test_only_known_gaps_are_refused(self):
        """A statement that some version refuses has another one that it answers."""
        for server in SERVERS:
            old = OldServer(server)
            with self.subTest(server.name, comment=server.comment):
                snapshot_of(old)
                expected = {
                    (NO_VARIABLE, f"SET SESSION {name}")
                    for name in (
                        ("max_execution_time", "information_schema_stats_expiry")
                        if server.mariadb
                        else ("max_statement_time",)
                    )
                }
                if not any(one.has(server) for one in table("performance_schema.processlist").values()):
                    expected.add((NO_TABLE, "performance_schema.processlist"))
                found = set()
                for code, statement in old.refused:
                    (known,) = [one for one in expected if one[0] == code and one[1] in statement] or [("?", statement)]
                    found.add(known)
                self.assertEqual(found, expected)

    def test_the_live_screen_and_samples(self):
        for server in SERVERS:
            old = OldServer(server)
            with self.subTest(server.name, comment=server.comment):
                with linked(old):
                    screen = Screen(TARGET)
                    screen.refresh()
                    self.assertEqual(screen.down, "")
                    self.assertTrue(screen.sessions)
                    self.assertTrue(all("PROCESSLIST_ID" in row for row in screen.sessions))
                    screen.key("o")
                    self.assertEqual(screen.order, "time")
                    self.assertTrue(screen.sessions)
                    sample = screen.sample
                    screen.close()
                    with Session(TARGET) as session:
                        variables = Sampler(session).variables()
                self.assertEqual(sample["sessions"], 1)
                self.assertGreater(sample["buffer_pool"], 0)
                self.assertTrue(sample["instruments"])
                self.assertEqual(variables["version"], server.name)
                if not modern(server) and not server.mariadb:
                    self.assertIn(NO_COLUMN, {code for code, _ in old.refused})
                    self.assertIsNone(screen.sessions[0]["BYTES"])

    def test_a_heap_profile_is_refused_in_words(self):
        for server in SERVERS:
            old = OldServer(server)
            with self.subTest(server.name, comment=server.comment):
                refused = self.assertRaisesRegex(Problem, "no heap profile")
                with linked(old), Session(TARGET) as session, refused:
                    stacks.read(session, 10)

    def test_no_variable_is_asked_that_no_server_has(self):
        for name in set(sum((named(one).variables for one in _sent()), [])):
            if name.startswith("memdiag_"):
                continue
            with self.subTest(name):
                self.assertTrue(any(variable(name).has(one) for one in SERVERS))


class Cutting(OldServer):
    """Its GLOBAL sql_select_limit is 1."""

    def answer(self, statement: str) -> tuple[list[str], list[tuple]]:
        names, rows = super().answer(statement)
        whole = "SET SESSION sql_select_limit = 18446744073709551615" in self.sent
        return names, rows if whole else rows[:1]


class SettingsOfOthers(unittest.TestCase):
    """A server's GLOBAL value, or its init_connect, holds for each session that sets none of its own."""

    def test_no_answer_is_cut(self):
        for server in SERVERS:
            with self.subTest(server.name, comment=server.comment):
                whole, cut = (snapshot_of(one(server))["sources"] for one in (OldServer, Cutting))
                self.assertEqual([one["rows"] for one in cut.values()], [one["rows"] for one in whole.values()])

    def test_the_session_has_its_own(self):
        old = OldServer(SERVERS[0])
        with linked(old), Session(TARGET):
            for statement in ("SET NAMES utf8mb4", "SET SESSION sql_big_selects = 1", "SET SESSION autocommit = 1"):
                self.assertIn(statement, old.sent)


class HealthMonitor(unittest.TestCase):
    """A component of MySQL 26.10 has the kernel's figures of a server on another machine, and a day of them."""

    SERVER = Server("26.10.0", health=True)

    def snapshot(self, server: Server = SERVER, schema: str = "ON", **health: list) -> dict:
        old = OldServer(server, schema=schema)
        old._others |= {name: {"rows": rows} for name, rows in health.items()}
        with linked(old), Session(TARGET) as session:
            return take(session)

    def test_its_figures_are_those_of_the_kernel(self):
        view = View(self.snapshot())
        self.assertEqual((view.rss, view.swapped), (GIB + 9, 9))
        self.assertIn("performance_schema.health_process_memory", view.rss_source)
        limit = view.limit
        assert limit
        self.assertEqual((limit.what, limit.bytes, limit.used), ("the machine's memory", 8 * GIB, 3 * GIB))
        self.assertIn("performance_schema.health_system_memory", limit.source)

    def test_without_it_they_are_unknown(self):
        view = View(self.snapshot(Server("26.10.0")))
        self.assertEqual((view.rss, view.limit), (None, None))
        self.assertFalse({"health_process", "health_system"} & set(view.data["sources"]))

    def test_nor_with_performance_schema_off(self):
        self.assertIsNone(View(self.snapshot(schema="OFF")).rss)

    def test_old_samples_are_no_figures_of_now(self):
        """The component's collection can be switched off, and its table stays."""
        rows = [row | {"AGE": row["AGE"] + 600} for row in HEALTH["health_process"]["rows"]]
        snapshot = self.snapshot(health_process=rows)
        self.assertIsNone(View(snapshot).rss)
        self.assertIn("Health Monitor", text.render(Page("", [report(snapshot)], [], [snapshot])))

    def test_no_sample_yet_and_a_figure_that_its_platform_lacks(self):
        self.assertIsNone(View(self.snapshot(health_process=[])).rss)
        rows = [row | {"VM_SWAP": None} for row in HEALTH["health_process"]["rows"]]
        view = View(self.snapshot(health_process=rows))
        self.assertEqual((view.rss, view.swapped), (GIB + 9, None))

    def test_the_report_shows_a_day(self):
        snapshot = self.snapshot()
        words = text.render(Page("", [report(snapshot)], [], [snapshot]))
        self.assertIn("performance_schema.health_process_memory", words)
        self.assertNotIn("keeps no history", words)
        self.assertNotIn("/proc/meminfo", words)
        for form in (html, markdown, as_json):
            self.assertTrue(form.render(Page("", [report(snapshot)], [], [snapshot])))

    def test_the_kernel_comes_first_where_it_can_be_read(self):
        old = OldServer(self.SERVER)
        with linked(old), Session(TARGET) as session:
            session._peer = os.getpid()
            with (
                mock.patch("memdiag.collect.kernel.is_server", return_value=True),
                mock.patch("memdiag.collect.kernel.process", return_value={"process": Source("/proc", [{"VmRSS": 7}])}),
            ):
                self.assertEqual(View(take(session)).rss, 7)


class Remedies(unittest.TestCase):
    """Statements of findings are not sent, but a person runs them."""

    def test_each_fits_the_server(self):
        states = [name for name in fixtures.names() if name.startswith("stock-")]
        idle = {"SESSION_BYTES": 100 << 20, "IDLE_60_BYTES": 90 << 20, "IDLE_600_BYTES": 0, "IDLE_3600_BYTES": 0}
        seen = set()
        for server in SERVERS:
            for state in states:
                snapshot = snapshot_of(OldServer(server, state))
                # A buffer pool that is as large as the machine is a finding, too.
                limit = snapshot["sources"]["meminfo"]["rows"][0]["MemTotal"]
                variables = snapshot["sources"]["variables"]["rows"][0]
                variables["innodb_buffer_pool_size"] = limit
                snapshot["sources"]["session_bytes"]["rows"] = [idle]
                for finding in findings(View(snapshot), None):
                    for statement in finding.statements:
                        if statement[0].islower():
                            continue  # for a shell
                        with self.subTest(server.name, statement=statement):
                            self._fits(server, statement)
                            seen.add(statement.split()[0])
        self.assertTrue({"SET", "SELECT", "KILL", "FLUSH"} <= seen, seen)

    def _fits(self, server: Server, statement: str):
        names = named(statement)
        if statement.startswith("SET PERSIST"):
            self.assertFalse(server.mariadb, "MariaDB has no SET PERSIST")
        for name in names.variables:
            self.assertTrue(variable(name).has(server), name)
        known: dict = {}
        for one in names.tables:
            self.assertTrue(any(since.has(server) for since in table(one).values()), one)
            known |= table(one)
        for column in names.columns if names.tables else ():
            self.assertTrue(known[column].has(server), (names.tables, column))


def _sent() -> list[str]:
    old = OldServer(SERVERS[0])
    snapshot_of(old)
    return old.sent


class Readers(unittest.TestCase):
    """The tests' own reading of statements."""

    def test_names(self):
        found = named(
            "SELECT t.PROCESSLIST_ID, MAX(t.PROCESSLIST_USER) AS USER, COUNT(*) AS STATEMENTS, NULL AS HIGH FROM"
            " performance_schema.prepared_statements_instances p JOIN performance_schema.threads t"
            " ON p.OWNER_THREAD_ID = t.THREAD_ID WHERE t.TYPE = 'FOREGROUND' ORDER BY STATEMENTS DESC LIMIT 10"
        )
        self.assertEqual(
            found.tables, ["performance_schema.prepared_statements_instances", "performance_schema.threads"]
        )
        self.assertEqual(found.columns, {"PROCESSLIST_ID", "PROCESSLIST_USER", "OWNER_THREAD_ID", "THREAD_ID", "TYPE"})
        self.assertEqual(found.functions, {"MAX", "COUNT"})
        self.assertEqual(list(found.outputs), ["PROCESSLIST_ID", "USER", "STATEMENTS", "HIGH"])
        with self.assertRaises(ValueError):
            named("OPTIMIZE TABLE t")

    def test_versions(self):
        columns = table("performance_schema.threads")
        has = [one.version for one in SERVERS if columns["TOTAL_MEMORY"].has(one)]
        calendar = ["26.7.0", "26.10.0", "26.10.0"]
        self.assertEqual(
            has, ["8.0.31", "8.0.46", "8.4.0", "8.4.9", "9.0.0", "9.7.4", *calendar, "8.0.43-34", "8.4.6-6"]
        )
        health = table("performance_schema.health_process_memory")
        self.assertEqual([one for one in SERVERS if health["VM_RSS"].has(one)], [Server("26.10.0", health=True)])
        with self.assertRaises(KeyError):
            variable("no_such_variable")
        self.assertFalse(variable("memdiag_sessions").has(SERVERS[0]))
