"""Each statement that the client offers for a stock server, carried out on a model of it: at least half of what the finding
names comes back, and nothing else ends."""

import contextlib
import copy
import re
import sqlite3
import unittest

from memdiag.collect import queries
from memdiag.judge.findings import findings
from memdiag.model.view import View

from tests import fixtures
from tests.builder import MIB, stock
from tests.model_server import OWN, ModelServer, One, generated, recorded

STATES = 300
# Remedies for the machine: no statement that ends a session.
HOST = (
    "SET GLOBAL innodb_buffer_pool_size = ",
    "SET PERSIST innodb_buffer_pool_size = ",
    "echo ",
    "systemctl ",
    "tail -n +2 /proc/swaps | ",
)


class Remedies(unittest.TestCase):
    def check(self, server: ModelServer, found) -> int:
        offered = 0
        for one in found:
            if one.verdict in ("host", "misconfiguration"):
                self.assertTrue(all(statement.startswith(HOST) for statement in one.statements), one.statements)
                continue
            if not one.statements:
                continue
            offered += 1
            now = copy.deepcopy(server)
            before = now.held(one.holder)
            ended = [session for statement in one.statements for session in now.run(statement)]
            self.assertGreaterEqual((before - now.held(one.holder)) * 2, one.bytes, one)
            for session in ended:
                self.assertEqual(session.kept, "", one)
                self.assertNotEqual(session.number, OWN)
                if session.changed is not None:
                    self.assertIn("rolls back", one.remedy)
                if len(ended) > 1:
                    self.assertGreaterEqual(session.seconds, 60)
        return offered

    def test_generated_states(self):
        offered = 0
        for seed in range(STATES):
            server = generated(seed)
            with self.subTest(seed):
                found = findings(View(server.snapshot()))
                offered += self.check(server, found)
                self.shares(found)
        # A judge that offers nothing would pass.
        self.assertGreater(offered, STATES // 4)

    def test_recorded_states(self):
        offered = 0
        for name in fixtures.names():
            if not name.startswith("stock-"):
                continue
            data = fixtures.today(name)
            with self.subTest(name):
                server = recorded(data)
                found = findings(View(data))
                # The model's tables are all in one schema.
                for one in found:
                    one.statements = [re.sub(r"(ALTER TABLE )`\w+`", r"\1`s`", words) for words in one.statements]
                offered += self.check(server, found)
        self.assertGreaterEqual(offered, 6)

    def test_shares_of_recorded_states(self):
        for name in fixtures.names():
            with self.subTest(name):
                self.shares(findings(View(fixtures.today(name))))

    def shares(self, found):
        self.assertLessEqual(sum(one.share or 0 for one in found), 100.001)
        for one in found:
            self.assertTrue(one.share is None or 0 <= one.share <= 100.001, one)


class Sessions(unittest.TestCase):
    """Innocents that a remedy once named."""

    def of(self, server: ModelServer, **sources):
        data = server.snapshot()
        for name, rows in sources.items():
            data["sources"][name] = {"source": name, "rows": rows, "error": None}
        return {one.holder: one for one in findings(View(data))}

    def test_a_transaction_of_one_row_does_not_hold_the_caches(self):
        server = ModelServer([One(77, memory={"memory/sql/x": 5}, changed=1)], {"memory/mysys/IO_CACHE": 256 * MIB})
        one = self.of(server)["binary log caches"]
        self.assertEqual(one.statements, [])
        self.assertNotIn("77", one.headline + one.remedy)

    def test_one_prepared_statement_is_no_cause(self):
        server = ModelServer([One(10, memory={"memory/sql/Prepared_statement::main_mem_root": 60 * MIB})])
        server.caches["memory/sql/Prepared_statement::infrastructure"] = 200 * MIB
        rows = [{"PROCESSLIST_ID": 10, "USER": "app", "STATEMENTS": 1}]
        self.assertEqual(self.of(server, prepared=rows)["prepared statements"].statements, [])

    def test_a_storm_of_busy_sessions_ends_none(self):
        """All are between two statements."""
        server = ModelServer([One(10 + n, seconds=3, memory={"memory/sql/x": MIB}) for n in range(300)])
        one = self.of(server)["sessions"]
        self.assertEqual(one.statements, [])
        self.assertTrue(one.check)
        for session in server.sessions[:200]:
            session.seconds = 61
        (statement,) = self.of(server)["sessions"].statements
        self.assertIn("TIME >= 60 ", statement)
        for session in server.sessions:
            session.changed = 0
        self.assertEqual(self.of(server)["sessions"].statements, [])

    def test_threads_of_the_server_that_sleep_are_not_ended(self):
        """Those that apply what Galera's other nodes changed do."""
        (statement,) = self.of(
            ModelServer([One(10 + n, seconds=90, memory={"memory/sql/x": MIB}) for n in range(300)])
        )["sessions"].statements
        link = self.database(
            (1, "system user", "Sleep", 9000),
            (2, "event_scheduler", "Sleep", 9000),
            (OWN, "root", "Sleep", 9000),
            (4, "mysqld_exporter", "Sleep", 9000),
            (5, "app", "Sleep", 3),
            (6, "app", "Sleep", 9000),
        )
        self.assertEqual([row[0] for row in link.execute(statement)], ["KILL 6"])

    def database(self, *sessions, ended=None):
        """With the tables of a server that runs for 10,000 s. A session has a MiB, and ended its last statement before TIME,
        or as long ago as `ended` has; None: its statements are not collected."""
        link = sqlite3.connect(":memory:")
        self.addCleanup(link.close)
        link.create_function("CONCAT", 2, lambda one, other: f"{one}{other}")
        link.create_function("CONNECTION_ID", 0, lambda: OWN)
        for table in (
            "performance_schema.processlist (ID, USER, COMMAND, TIME)",
            "performance_schema.metadata_locks (OWNER_THREAD_ID)",
            "performance_schema.threads (THREAD_ID, PROCESSLIST_ID, PROCESSLIST_COMMAND, PROCESSLIST_TIME, TYPE, TOTAL_MEMORY)",
            "performance_schema.events_statements_current (THREAD_ID, TIMER_START, TIMER_END)",
            "performance_schema.memory_summary_by_thread_by_event_name (THREAD_ID, CURRENT_NUMBER_OF_BYTES_USED)",
            "performance_schema.session_connect_attrs (PROCESSLIST_ID, ATTR_NAME, ATTR_VALUE)",
            "information_schema.INNODB_TRX (TRX_ID, TRX_MYSQL_THREAD_ID)",
        ):
            with contextlib.suppress(sqlite3.OperationalError):  # it is there
                link.execute(f"ATTACH ':memory:' AS {table.partition('.')[0]}")
            link.execute(f"CREATE TABLE {table}")

        def insert(table, *row):
            link.execute(f"INSERT INTO performance_schema.{table} VALUES ({', '.join('?' * len(row))})", row)

        for number, user, command, seconds in sessions:
            thread = number + 30
            insert("processlist", number, user, command, seconds)
            insert("threads", thread, number, command, seconds, "FOREGROUND", MIB)
            insert("memory_summary_by_thread_by_event_name", thread, MIB)
            ago = (ended or {}).get(number, seconds)
            if number == OWN:
                insert("events_statements_current", thread, 10_000 * 10**12, 10_000 * 10**12 + 5)
            elif ago is not None:
                end = (10_000 - ago) * 10**12 - 1
                insert("events_statements_current", thread, end - 5, end)
        return link

    def test_a_restore_from_the_binary_log_is_not_idle(self):
        """mysqlbinlog | mysql: SET TIMESTAMP makes TIME the age of an event. The restore waits for the next one."""
        link = self.database(
            (OWN, "root", "Query", 0),
            (5, "app", "Sleep", 9000),
            (6, "root", "Sleep", 300_000_000),
            (7, "app", "Sleep", 9000),
            ended={6: 3, 7: None},
        )
        sessions = [One(10 + n, seconds=9000, memory={"memory/sql/x": MIB}) for n in range(300)]
        (statement,) = self.of(ModelServer(sessions))["sessions"].statements
        self.assertEqual([row[0] for row in link.execute(statement)], ["KILL 5"])
        for memory, asked in (
            ("t.TOTAL_MEMORY", queries.SESSION_BYTES),
            ("m.CURRENT_NUMBER_OF_BYTES_USED", queries.SESSION_BYTES_SUMMED),
        ):
            idle = queries.idle_bytes(memory, "t.PROCESSLIST_COMMAND", "t.PROCESSLIST_TIME", timed=True)
            (row,) = link.execute(asked.format(idle=idle))
            self.assertEqual(row, (4 * MIB, MIB, MIB, MIB))
        # The server collects no statements: none is known to be idle.
        link.execute("DELETE FROM performance_schema.events_statements_current")
        self.assertEqual(list(link.execute(statement)), [])
        self.assertEqual(next(link.execute(asked.format(idle=idle)))[0], 4 * MIB)

    def test_no_sum_with_the_timer_exceeds_64_bits(self):
        """MySQL then refuses the statement: BIGINT UNSIGNED value is out of range. A sum with a decimal is a decimal."""
        asked = (
            queries.idle_sessions(60),
            queries.idle_bytes("t.TOTAL_MEMORY", "t.PROCESSLIST_COMMAND", "t.PROCESSLIST_TIME", timed=True),
        )
        added = [re.findall(r"_END \+ (\S+) <=", statement) for statement in asked]
        self.assertEqual(list(map(len, added)), [1, 3])
        for number in sum(added, []):
            self.assertRegex(number, r"^\d+\.0$")

    def test_what_all_sessions_have_is_their_sum(self):
        """The 50 largest are listed, with 2 MiB each."""
        sessions = [One(10 + n, memory={"memory/sql/x": 2 * MIB if n < 50 else 100 << 10}) for n in range(701)]
        one = self.of(ModelServer(sessions))["sessions"]
        self.assertEqual(one.bytes, 50 * 2 * MIB + 651 * (100 << 10))
        self.assertNotIn("at least", one.headline + one.evidence)
        unknown = self.of(ModelServer(sessions), session_bytes=[])["sessions"]
        self.assertIsNone(unknown.bytes)
        self.assertIn("The 50 with most have 100 MiB allocated; what all have is not known", unknown.evidence)

    def test_what_is_not_known_ends_nothing(self):
        server = ModelServer([One(42, memory={"memory/sql/user_var_entry::value": 300 * MIB})])
        self.assertEqual(self.of(server)["user variables"].statements, ["KILL 42"])
        for gone in (("transactions",), ("system_sessions", "system_threads")):
            data = server.snapshot()
            for name in gone:
                data["sources"][name] = {"source": name, "rows": [], "error": "this account may not read it"}
            with self.subTest(gone):
                self.assertNotIn("KILL", str([one.statements for one in findings(View(data))]))

    def test_what_rolls_back_is_said(self):
        server = ModelServer([One(42, memory={"memory/sql/user_var_entry::value": 300 * MIB}, changed=20)])
        one = self.of(server)["user variables"]
        self.assertEqual(one.statements, ["KILL 42"])
        self.assertIn("rolls back its transaction, open for 5 s: 20 changed rows", one.remedy)

        self.assertNotIn("backup", one.remedy)

    def test_a_long_transaction_without_changes_may_be_a_backups(self):
        server = ModelServer([One(42, seconds=3600, memory={"memory/sql/user_var_entry::value": 300 * MIB}, changed=0)])
        one = self.of(server)["user variables"]
        self.assertIn("open for 3,600 s: 0 changed rows, so it may be a backup's snapshot; ", one.remedy)
        server.sessions[0].seconds = 5
        self.assertNotIn("backup", self.of(server)["user variables"].remedy)

    def test_backups_are_told_by_the_name_of_their_program(self):
        spared = (
            "memdiag",
            "mysqldump",
            "mariadb-dump",
            "mydumper",
            "mysqlpump",
            "mysqlsh",
            "xtrabackup",
            "mariabackup",
        )
        link = sqlite3.connect(":memory:")
        self.addCleanup(link.close)
        link.execute("ATTACH ':memory:' AS performance_schema")
        link.execute("CREATE TABLE performance_schema.session_connect_attrs (PROCESSLIST_ID, ATTR_NAME, ATTR_VALUE)")
        for program in (*spared, "mysql", "shop"):
            row = (program, "program_name", program)
            link.execute("INSERT INTO performance_schema.session_connect_attrs VALUES (?, ?, ?)", row)
        self.assertEqual({row[0] for row in link.execute(queries.WATCHERS)}, set(spared))

    def test_a_lock_that_others_rely_on_is_not_released(self):
        server = ModelServer([One(42, memory={"memory/sql/user_var_entry::value": 300 * MIB}, kept="lock_keepers")])
        one = self.of(server)["user variables"]
        self.assertEqual(one.statements, [])
        self.assertIn("it keeps a lock", one.remedy)
        server.sessions[0].kept = ""
        self.assertNotIn("GET_LOCK", self.of(server)["user variables"].remedy)
        data = server.snapshot()
        data["sources"]["lock_keepers"] = {"source": "lock_keepers", "rows": [], "error": "the instrument is off"}
        one = next(one for one in findings(View(data)) if one.holder == "user variables")
        self.assertEqual(one.statements, ["KILL 42"])
        self.assertIn("releases locks of LOCK TABLES, GET_LOCK() or of a backup, if it has one", one.remedy)

    def test_ddl_is_not_ended(self):
        """It would begin again from the start. Nothing but its locks tells of it: not each text begins with ALTER."""
        has = {"memory/sql/user_var_entry::value": 300 * MIB}
        server = ModelServer([One(42, "Query", memory=has, changed=0, kept="ddl_sessions")])
        one = self.of(server)["user variables"]
        self.assertEqual(one.statements, [])
        self.assertIn("do not KILL this session: it runs DDL", one.remedy)
        server.sessions = [One(42, "Query", memory=has)]
        one = self.of(server)["user variables"]
        self.assertIn("end session 42, which frees it and ends the statement that it runs; ", one.remedy)
        data = server.snapshot()
        data["sources"]["ddl_sessions"] = {"source": "ddl_sessions", "rows": [], "error": "the instrument is off"}
        one = next(one for one in findings(View(data)) if one.holder == "user variables")
        self.assertIn("ends the statement that it runs; what it runs may be DDL; ", one.remedy)
        # Its memory tells of it where locks are not counted.
        server.sessions = [One(42, "Query", memory={"memory/innodb/ddl": 300 * MIB})]
        data = server.snapshot()
        data["sources"]["ddl_sessions"] = {"source": "ddl_sessions", "rows": [], "error": "the instrument is off"}
        one = next(one for one in findings(View(data)) if one.holder == "online DDL")
        self.assertEqual(one.statements, [])
        self.assertIn("do not KILL this session: it runs DDL", one.remedy)

    def test_idle_sessions_are_not_ended_where_locks_are_not_counted(self):
        sessions = [One(n, seconds=700, memory={"memory/sql/x": MIB}) for n in range(1, 500)]
        data = ModelServer(sessions).snapshot()
        self.assertIn("KILL", str([one.statements for one in findings(View(data))]))
        data["sources"]["table_keepers"] = {"source": "table_keepers", "rows": [], "error": "the instrument is off"}
        self.assertNotIn("KILL", str([one.statements for one in findings(View(data))]))

    def test_caches_that_a_session_filled_stay_when_it_ends(self):
        session = One(42, memory={"memory/innodb/fts0fts": 700 * MIB, "memory/sql/x": MIB})
        found = self.of(ModelServer([session]))
        self.assertNotIn("KILL", str([one.statements for one in found.values()]))
        self.assertIn("OPTIMIZE LOCAL TABLE", found["full-text caches"].statements[0])

    def test_a_server_that_is_read_only_writes_no_caches(self):
        server = ModelServer(caches={"memory/innodb/fts0fts": 700 * MIB}, variables={"super_read_only": "ON"})
        found = self.of(server)["full-text caches"]
        self.assertEqual(found.statements, [])
        self.assertTrue(found.remedy.endswith("; no statement can while super_read_only is ON"), found.remedy)

    def test_tables_of_a_replica_are_changed_at_its_source(self):
        """Its own binary log would have a transaction that the source does not have."""

        def statements(change) -> list[str]:
            data = ModelServer(tables={"t": 700 * MIB}).snapshot()
            change(data["sources"])
            (one,) = (one for one in findings(View(data)) if one.holder == "MEMORY tables")
            self.assertEqual("on a replica, at its source: ALTER TABLE `s`.`t`" in one.remedy, not one.statements)
            return one.statements

        self.assertEqual(statements(lambda sources: None), ["ALTER TABLE `s`.`t` ENGINE = InnoDB"])
        self.assertEqual(
            statements(lambda sources: sources["system_threads"]["rows"].append({"SYSTEM_SESSION": 7})), []
        )
        # Its threads are stopped, or cannot be seen.
        self.assertEqual(statements(lambda sources: sources["system_threads"].update(error="it lacks SELECT")), [])
        for name in ("read_only", "super_read_only"):
            for value, others in (("ON", False), (1, False), ("OFF", True), (0, True)):
                offered = statements(lambda sources: sources["variables"]["rows"][0].update({name: value}))  # noqa: B023
                self.assertEqual(bool(offered), others, (name, value))

    def test_bytes_that_were_never_written_are_no_share_of_resident_ones(self):
        """256 MiB of a cache and 329 MiB of triggers were 119% of a server."""
        rows = {"memory/mysys/IO_CACHE": 256 * MIB, "memory/sql/sp_head::main_mem_root": 329 * MIB}
        data = ModelServer(caches=rows).snapshot()
        data["sources"]["process"]["rows"][0]["VmRSS"] = 500 * MIB
        found = [one for one in findings(View(data)) if one.share]
        self.assertEqual(len(found), 2)
        self.assertAlmostEqual(sum(one.share for one in found), 100)
        for one in found:
            self.assertIn("allocated", one.headline)
            self.assertIn("of what is allocated", one.headline)


class Growth(unittest.TestCase):
    def of(self, seconds, used=0, step=MIB):
        data = stock(600 * MIB, meminfo=[{"MemTotal": 16 << 30, "MemAvailable": (16 << 30) - used}])
        samples = [{"time": 10.0 * n, "rss": 300 * MIB + n * step, "buffer_pool": 0} for n in range(seconds // 10 + 1)]
        return next(one for one in findings(View(data), samples) if one.verdict == "growth")

    def test_everybodys_use_counts(self):
        """6 GiB are left, at 6 MiB a second."""
        one = self.of(1200, used=10 << 30, step=60 * MIB)
        self.assertIn("reaches the machine's memory in 17 min", one.headline)
        self.assertEqual(one.severity, "critical")

    def test_it_looks_ahead_ten_times_what_was_seen(self):
        """16 GiB at 1 MiB in 10 s are two days."""
        one = self.of(1200)
        self.assertNotIn("reaches", one.headline)
        self.assertEqual(one.severity, "warning")

    def test_a_burst_is_no_alarm(self):
        one = self.of(400, used=10 << 30, step=60 * MIB)
        self.assertEqual(one.severity, "warning")

    def test_unknown_use_is_no_forecast(self):
        data = stock(600 * MIB, meminfo=[{"MemTotal": 16 << 30}])
        samples = [{"time": 10.0 * n, "rss": 300 * MIB + n * 90 * MIB, "buffer_pool": 0} for n in range(121)]
        (one,) = [one for one in findings(View(data), samples) if one.verdict == "growth"]
        self.assertNotIn("reaches", one.headline)
