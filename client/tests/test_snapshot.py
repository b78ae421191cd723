"""Snapshots with something in the way: missing privileges, a server that dies, names like numbers, many sessions."""

import io
import subprocess
import sys
import unittest
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from memdiag.cli import main
from memdiag.collect.sample import Sampler
from memdiag.collect.snapshot import MOST_SESSIONS, of_largest, take
from memdiag.collect.sources import Source
from memdiag.commands.report import collected
from memdiag.connect.options import Target
from memdiag.connect.session import Gone, Refused, Session
from memdiag.model.view import View
from memdiag.render import text
from memdiag.report.build import report

from tests.old_server import MySQLError, OldServer
from tests.versions import SERVERS

STOCK = next(one for one in SERVERS if one.version == "9.7.4")
# The last statement that tells which server it is.
KNOWN = "LIKE 'MEMDIAG"
TARGET = Target(host="db1", ssl_mode="DISABLED")


class Obstructed(OldServer):
    """Statements with the words of `obstacle` are refused. Of those from the one with the words of `last` on, so many
    are answered before it dies. `values` are of variables and of the status."""

    def __init__(self, obstacle: str = "", code: int = 1142, last: str = "", answers: int = 1, **values: str) -> None:
        super().__init__(STOCK)
        self._obstacle, self._code, self._values = obstacle, code, values
        self._last, self._answers, self._seen = last, answers, 0

    def answer(self, statement):
        if self._seen or (self._last and self._last in statement):
            self._seen += 1
        if self._seen > self._answers:
            raise MySQLError(2013, "Lost connection to MySQL server during query")
        if self._obstacle and self._obstacle in statement:
            raise MySQLError(self._code, "command denied; you need the PROCESS privilege")
        names, rows = super().answer(statement)
        if statement.startswith("SHOW GLOBAL"):
            rows = [(name, self._values.get(name.lower(), value)) for name, value in rows]
        return names, rows


def linked(server):
    return mock.patch("memdiag.connect.session.pymysql", lambda: server)


def snapshot_of(server, **more):
    with linked(server), Session(TARGET) as session:
        return take(session, **more)


class Privileges(unittest.TestCase):
    def test_columns_that_an_account_does_not_see_are_no_older_version(self):
        server = Obstructed("performance_schema.")
        with mock.patch.object(server, "_columns", return_value=[]):
            sources = snapshot_of(server)["sources"]
        for name in ("memory", "threads", "digests"):
            self.assertIn("it lacks PROCESS", sources[name]["error"], name)

    def test_why_a_table_was_not_read(self):
        for code, words in (
            *((code, "this account may not read it: it lacks PROCESS") for code in (1142, 1227, 1044, 1143)),
            *((code, "this server has no such table") for code in (1109, 1146, 1051)),
            *((code, "it took too long and was ended") for code in (3024, 1969, 1317)),
            (1064, "command denied; you need the PROCESS privilege"),
        ):
            with self.subTest(code):
                source = snapshot_of(Obstructed("INNODB STATUS", code))["sources"]["innodb_status"]
                self.assertEqual(source["error"], words)

    def test_the_sessions_of_one_account_are_not_all(self):
        server = Obstructed("INNODB STATUS", threads_connected="412")
        data = snapshot_of(server)
        fact = next(one for one in report(data).facts if one.label == "sessions")
        self.assertEqual((fact.value, fact.source), (412, "SHOW GLOBAL STATUS"))
        self.assertIn("PROCESS", fact.what)


class Flavours(unittest.TestCase):
    def test_the_version_or_its_comment_names_the_server(self):
        """A MariaDB whose option `version` is set has another VERSION(). Packages have other comments."""
        for version, comment, tables, flavour in (
            ("9.7.4", "MySQL Community Server - GPL", (), "mysql"),
            ("10.11.6-MariaDB-log", "Source distribution", (), "mariadb"),
            ("10.11.6", "mariadb.org binary distribution", (), "mariadb"),
            ("8.4.13-13", "Percona Server (GPL), Release 13", (), "percona"),
            ("9.7.4-memdiag", "MySQL Community Server - GPL", ("MEMDIAG_POOLS", "MEMDIAG_LEDGER"), "memdiag"),
            ("9.7.4", "Percona Server (GPL)", ("MEMDIAG_LEDGER",), "memdiag"),
            ("9.7.4", "MySQL Community Server - GPL", ("MEMDIAG_POOLS",), "mysql"),
        ):

            class Server(OldServer):
                def answer(self, statement, version=version, comment=comment, tables=tables):
                    if KNOWN in statement:
                        return ["TABLE_NAME", "COLUMN_NAME"], [(name, "POOL") for name in tables]
                    names, rows = super().answer(statement)
                    if statement.startswith("SELECT VERSION()"):
                        rows = [(version, *rows[0][1:])]
                    if statement.startswith("SHOW GLOBAL VARIABLES"):
                        rows = [(name, comment if name == "version_comment" else value) for name, value in rows]
                    return names, rows

            with self.subTest(version, comment=comment):
                server = snapshot_of(Server(STOCK))["server"]
                self.assertEqual((server["version"], server["comment"], server["flavour"]), (version, comment, flavour))


class Peers(unittest.TestCase):
    """The process on the other end of a socket is the server, or it forwards the socket of another host's server."""

    def begin(self, first, later):
        code = "import time; print(flush=True); time.sleep(600)"
        peer = subprocess.Popen([first, "-c", code, later], executable=sys.executable, stdout=subprocess.PIPE)
        self.addCleanup(peer.communicate)
        self.addCleanup(peer.kill)
        peer.stdout.readline()  # /proc has its command by then
        self.pid = peer.pid

    def snapshot(self, uptime, first="ld.so", later="mysqld"):
        self.begin(first, later)
        with linked(Obstructed(uptime=uptime)), Session(TARGET) as session:
            session._peer = self.pid
            return take(session), Sampler(session).pid

    def test_a_peer_that_began_with_the_server(self):
        data, pid = self.snapshot("0")
        self.assertEqual((data["server"]["pid"], data["local"], pid), (self.pid, True, self.pid))

    def test_a_peer_of_another_age(self):
        data, pid = self.snapshot("86400")
        self.assertEqual((data["server"]["pid"], data["local"], pid), (None, False, 0))
        self.assertIsNone(View(data).rss)

    def test_a_peer_that_is_called_as_the_server_needs_no_age(self):
        data, pid = self.snapshot("86400", first="mysqld", later="")
        self.assertEqual((data["server"]["pid"], data["local"], pid), (self.pid, True, self.pid))


class HugePages(unittest.TestCase):
    def test_a_sample_has_the_part_of_the_pool_that_rss_counts(self):
        def of(huge, large="OFF"):
            class Server(OldServer):
                def answer(self, statement):
                    names, rows = super().answer(statement)
                    return names, [(row[0], large) if row[0] == "large_pages" else row for row in rows]

            told = {} if huge is None else {"HugetlbPages": huge}
            process = {"process": Source("/proc", [{"VmRSS": 7} | told])}
            with (
                linked(Server(STOCK)),
                Session(TARGET) as session,
                mock.patch.object(session, "_peer", 7),
                mock.patch("memdiag.collect.kernel.is_server", return_value=True),
                mock.patch("memdiag.collect.kernel.process", return_value=process),
            ):
                return Sampler(session).sample()

        pool = of(0)["buffer_pool"]
        for huge, part in ((0, pool), (5, pool - 5), (1 << 50, 0)):
            one = of(huge)
            self.assertEqual((one["buffer_pool"], one["pool_in_rss"]), (pool, part))
        # A kernel that does not tell.
        for large, part in (("OFF", pool), ("ON", None)):
            self.assertEqual(of(None, large)["pool_in_rss"], part)


class Keepers(unittest.TestCase):
    """Sessions that keep tables are found by their locks of names."""

    def error(self, counted=1, **status):
        class Server(OldServer):
            def answer(self, statement):
                names, rows = super().answer(statement)
                if "wait/lock/metadata/sql/mdl" in statement:
                    return ["COUNTED"], [(counted,)]
                if statement.startswith("SHOW GLOBAL STATUS"):
                    rows = [*rows, *((name.capitalize(), value) for name, value in status.items())]
                return names, rows

        return snapshot_of(Server(STOCK))["sources"]["table_keepers"]["error"]

    def test_locks_that_are_not_counted_are_not_none(self):
        self.assertIsNone(self.error())
        self.assertIn("the instrument wait/lock/metadata/sql/mdl is off", self.error(counted=0))

    def test_locks_that_found_no_room_are_not_none(self):
        self.assertIsNone(self.error(performance_schema_metadata_lock_lost="0"))
        self.assertIn("no room", self.error(performance_schema_metadata_lock_lost="1"))


class Largest(unittest.TestCase):
    def asked(self, size: int) -> list:
        class Server(OldServer):
            def answer(self, statement):
                names, rows = super().answer(statement)
                if "HIGH_BYTES" in names and "USER" in names:
                    rows = [tuple({"BYTES": size, "THREAD_ID": 77}.get(name, 5) for name in names)]
                return names, rows

        server = Server(STOCK)
        snapshot_of(server)
        return [each for each in server.sent if "THREAD_ID = 77" in each]

    def test_instruments_of_the_largest_session_are_asked_for_where_it_is_large(self):
        self.assertEqual(self.asked(16 << 20), [])
        self.assertEqual(len(self.asked((16 << 20) + 1)), 1)


class Ours(unittest.TestCase):
    def test_each_table_that_the_server_has_is_read(self):
        class Server(OldServer):
            def answer(self, statement):
                if KNOWN in statement:
                    return ["TABLE_NAME", "COLUMN_NAME"], [("MEMDIAG_POOLS", "POOL"), ("MEMDIAG_LEDGER", "POOL")]
                if "MEMDIAG_" in statement:
                    self.sent.append(statement)
                    return ["POOL"], [("x",)]
                return super().answer(statement)

        server = Server(STOCK)
        sources = snapshot_of(server)["sources"]
        for name in ("memdiag_pools", "memdiag_ledger"):
            self.assertEqual(sources[name]["rows"], [{"POOL": "x"}], name)
        self.assertNotIn("memdiag_host", sources)


class Dying(unittest.TestCase):
    def test_what_was_read_is_reported(self):
        for answers in range(1, 9):
            with self.subTest(answers):
                server = Obstructed(last=KNOWN, answers=answers)
                data = snapshot_of(server, partial=True)
                self.assertTrue(data["gone"])
                made = report(data)
                self.assertIn("did not answer any more", made.headline)
                self.assertTrue(made.findings[0].statements)
                self.assertTrue(data["sources"]["variables"]["rows"])

    def test_a_comparison_takes_no_half(self):
        with self.assertRaises(Gone):
            snapshot_of(Obstructed(last=KNOWN))

    def test_the_command_says_so(self):
        out, words = io.StringIO(), io.StringIO()
        server = Obstructed(last=KNOWN)
        with linked(server), redirect_stdout(out), redirect_stderr(words):
            code = main(["report", "--no-defaults", "-h", "db1", "--ssl-mode=DISABLED", "--text"])
        self.assertEqual(code, 1)
        self.assertEqual(len(words.getvalue().splitlines()), 1)
        self.assertIn("WHAT IS WRONG", out.getvalue())
        self.assertNotIn("Nothing", out.getvalue().partition("OVER TIME")[0])

    def test_before_its_name_is_known_there_is_nothing_to_report(self):
        with linked(Obstructed(last="VERSION()")):
            page, problems = collected([TARGET], None, False)
        self.assertEqual((page.reports, len(problems)), ([], 1))

    def test_a_refusal_is_a_problem_everywhere(self):
        with self.assertRaises(Refused), linked(Obstructed("VERSION()", 1820)):
            main(["diff", "--no-defaults", "--ssl-mode=DISABLED", "db1", "db2"])


class Names(unittest.TestCase):
    def test_a_host_of_digits_is_a_name(self):
        with linked(Obstructed(hostname="012345678901")):
            page, _ = collected([TARGET], None, True)
        self.assertEqual(page.snapshots[0]["server"]["hostname"], "host1")
        data = snapshot_of(Obstructed(hostname="012345678901"))
        self.assertEqual(View(data).variable("hostname"), "012345678901")
        self.assertIn("012345678901", text.render(mock.Mock(problems=[], reports=[report(data)])))


class Many(unittest.TestCase):
    def test_the_largest_sessions_stay_whole(self):
        rows = [
            {"HOLDER": "session", "PROCESSLIST_ID": number, "POOL": pool, "BYTES": number}
            for number in range(2000)
            for pool in ("session", "statement")
        ]
        kept = of_largest(rows)
        self.assertEqual(len(kept), 2 * MOST_SESSIONS)
        self.assertEqual(min(row["PROCESSLIST_ID"] for row in kept), 2000 - MOST_SESSIONS)

    def test_two_servers_are_compared(self):
        out = io.StringIO()
        with linked(OldServer(STOCK, "stock-leak")), redirect_stdout(out):
            code = main(["diff", "--no-defaults", "--ssl-mode=DISABLED", "db1", "db2", "--max-growth", "instrument=1M"])
        self.assertEqual(code, 0)
        self.assertIn("not compared, as one side has no figures: rss, pool, route, stack", out.getvalue())
