import copy
import unittest

from memdiag.commands.what_if import budget_figures, budget_lines
from memdiag.judge.findings import findings
from memdiag.judge.holders import BY_NAME, WORDS, holder_of
from memdiag.judge.limits import READ_BACK
from memdiag.judge.unexplained import bytes_unexplained, once_higher
from memdiag.model.document import Fact
from memdiag.model.view import View
from memdiag.render import text
from memdiag.render.page import Page
from memdiag.report import budget, ledger
from memdiag.report.build import report

from tests import fixtures
from tests.builder import GIB, MIB, instrument, stock

# By the holder, or by the rule of our server.
HOLDERS = {
    "leak": {"user variables"},
    "fragmentation": {"fragmentation"},
    "table-cache": {"open tables"},
    "triggers": {"triggers"},
    "prepared-statements": {"prepared statements"},
    "MEMORY-tables": {"MEMORY tables"},
    "large-transaction": {"binary log caches", "transactions, locks"},
    "connection-storm": {"sessions", "idle_sessions"},
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
                first = findings(View(fixtures.today(name)))[0]
                self.assertTrue({first.holder, first.rule} & right, (first.holder, first.rule))
                self.assertTrue(first.statements or first.check or (kind == "ours" and first.remedy))
                self.assertTrue(first.source)

    def test_idle_servers_are_calm(self):
        for name in ("ours-idle", "stock-idle", "mariadb-idle"):
            with self.subTest(name):
                found = findings(View(fixtures.today(name)))
                self.assertEqual([one.headline for one in found if one.severity != "note"], [])

    def test_nothing_is_concluded_from_nothing(self):
        for name in fixtures.names():
            data = copy.deepcopy(fixtures.snapshot(name))
            for source in data["sources"].values():
                source.update(rows=[], error="not read")
            with self.subTest(name):
                self.assertEqual(findings(View(data)), [])

    def test_no_share_is_more_than_the_whole(self):
        for name in fixtures.names():
            page = report(fixtures.today(name))
            rss = View(fixtures.today(name)).rss
            with self.subTest(name):
                for one in page.findings:
                    self.assertLessEqual(one.share or 0, 100, one.headline)
                    if name.startswith("ours") and not one.rule.startswith("ceiling_"):
                        self.assertLessEqual(one.bytes or 0, rss, one.headline)
                for block in (block for section in page.sections for block in section.blocks):
                    if block.kind == "parts" and block.total is not None:
                        for part in block.parts:
                            self.assertLessEqual(part.value or 0, block.total, f"{block.id}: {part.label}")
                    if block.kind == "table":
                        shares = [number for number, column in enumerate(block.columns) if column.name == "share"]
                        for row in block.rows:
                            for number in shares:
                                self.assertLessEqual(row[number] or 0, 100, f"{block.id}: {row[0]}")


class Held(unittest.TestCase):
    def test_both_sides_of_the_usual_share(self):
        outside = 1000 * MIB

        def of(held):
            rows = [instrument("memory/sql/Prepared_statement::main_mem_root", held)]
            return named(stock(outside + 64 * MIB, memory=rows))

        self.assertNotIn("prepared statements", of(99 * MIB))
        self.assertIn("prepared statements", of(101 * MIB))
        self.assertIn("memory_summary_global_by_event_name", of(101 * MIB)["prepared statements"].source)

    def test_the_list_is_whole(self):
        """Each holder of the server's list has the client's words, and no other has."""
        self.assertEqual(set(WORDS), set(BY_NAME))
        for holder in BY_NAME.values():
            self.assertTrue(holder.words.what)
            self.assertTrue(0 < holder.usual_percent < 100)
        self.assertEqual(holder_of("memory/sql/prepared_statement::x").name, "prepared statements")
        self.assertIsNone(holder_of("memory/sql/nothing"))

    def test_the_advice_of_our_server_is_its_only_word_on_holders(self):
        """A table of them had 102 MiB of open tables below an advice about 190 MiB: the server alone can divide a pool."""
        for name in fixtures.names():
            with self.subTest(name):
                blocks = [block for section in report(fixtures.today(name)).sections for block in section.blocks]
                tables = [block.id for block in blocks if block.kind == "table"]
                self.assertEqual("holders" in tables, not name.startswith("ours"))

    def test_what_mariadb_counts_itself_is_shown(self):
        """Its Performance Schema is off by default, and its own count is all there is."""
        data = stock(900 * MIB) | {"server": {"version": "10.11", "comment": "", "flavour": "mariadb"}}
        data["server"]["pid"] = 1
        data["sources"]["status"]["rows"][0]["memory_used"] = 445 * MIB
        one = named(data)["memory that is not counted"]
        self.assertIn("MariaDB itself counts 445 MiB that it has allocated", one.evidence)
        view = View(fixtures.snapshot("mariadb-idle"))
        facts = {block.label: block.value for block in ledger.section(view).blocks if isinstance(block, Fact)}
        self.assertEqual(facts["allocated by MariaDB"], 445066120)

    def test_large_programs_that_sessions_cached_are_no_triggers(self):
        """FLUSH frees a program of a trigger. A session may have cached this one."""
        programs = instrument("memory/sql/sp_head::main_mem_root", 300 * MIB)
        cache = instrument("memory/sql/THD::sp_cache", 100)
        found = named(stock(500 * MIB, memory=[programs, cache]))
        self.assertNotIn("triggers", found)
        self.assertEqual(found["stored programs"].statements, [])
        self.assertIn("FLUSH LOCAL TABLES frees those of triggers", found["stored programs"].remedy)
        triggers = named(stock(500 * MIB, memory=[programs], table_keepers=[{"KEEPERS": 0}]))["triggers"]
        self.assertEqual(triggers.statements, ["FLUSH LOCAL TABLES"])

    def test_small_holders_are_no_reason_to_act(self):
        rows = [instrument("memory/sql/user_var_entry::value", 63 * MIB)]
        self.assertNotIn("user variables", named(stock(200 * MIB, memory=rows)))

    def test_a_large_redo_log_buffer_is_made_smaller(self):
        def of(held):
            rows = [instrument("memory/innodb/log_buffer_memory", held)]
            return named(stock(64 * MIB + 2 * held, memory=rows, variables=[{"innodb_log_buffer_size": held}]))

        self.assertEqual(of(GIB)["redo log buffer"].statements, ["SET GLOBAL innodb_log_buffer_size = 536870912"])
        # The default is a large part of a small server.
        self.assertNotIn("redo log buffer", of(64 * MIB))

    def test_the_session_with_most_is_named(self):
        rows = [instrument("memory/sql/user_var_entry::value", 300 * MIB)]
        sessions = [
            {"THREAD_ID": 1, "PROCESSLIST_ID": 42, "USER": "app", "COMMAND": "Sleep", "SECONDS": 5, "BYTES": 290 * MIB}
        ]

        def of(*own):
            return named(stock(500 * MIB, memory=rows, threads=sessions, largest_session=list(own)))["user variables"]

        def has(held, name="memory/sql/user_var_entry::value"):
            return {"EVENT_NAME": name, "BYTES": held}

        one = of(has(150 * MIB))
        self.assertEqual(one.statements, ["KILL 42"])
        self.assertIn("session 42 has most of it", one.headline)
        self.assertIn("session 42 of app has 150 MiB of it", one.evidence)
        self.assertIn("has 300 MiB of it", of(has(400 * MIB)).evidence)
        # The session holds much of another holder, or its parts are not known.
        for own in (
            [has(290 * MIB, "memory/sql/NET::buff"), has(149 * MIB)],
            [has(290 * MIB, "memory/sql/NET::buff")],
            [],
        ):
            one = of(*own)
            self.assertEqual(one.statements, [])
            self.assertNotIn("42", one.headline + one.remedy)

    def test_no_session_is_ended_for_what_open_tables_may_keep(self):
        """Performance Schema counts values of generated columns and triggers for the session that computed them."""
        sessions = [
            {"THREAD_ID": 1, "PROCESSLIST_ID": 42, "USER": "app", "COMMAND": "Sleep", "SECONDS": 5, "BYTES": 290 * MIB}
        ]
        for name in ("memory/sql/String::value", "memory/sql/JSON"):
            rows, own = [instrument(name, 300 * MIB)], [{"EVENT_NAME": name, "BYTES": 280 * MIB}]
            found = findings(View(stock(500 * MIB, memory=rows, threads=sessions, largest_session=own)))
            self.assertEqual([one.holder for one in found], [holder_of(name).name])
            self.assertEqual(found[0].statements, [])
            self.assertNotIn("42", found[0].headline + found[0].evidence + found[0].remedy)
            self.assertIn("no KILL frees those, and FLUSH LOCAL TABLES does", found[0].remedy)

    def test_the_default_key_cache_is_not_made_smaller_for_others(self):
        rows = [instrument("memory/mysys/KEY_CACHE", 300 * MIB)]

        def of(size):
            variables = [{"key_buffer_size": size}]
            return named(stock(500 * MIB, memory=rows, variables=variables))["MyISAM key cache"].statements

        self.assertEqual(of(270 * MIB), ["SET GLOBAL key_buffer_size = 141557760"])
        self.assertEqual(of(8 * MIB), [])

    def test_a_thread_of_replication_is_never_killed(self):
        """KILL would stop a replica that applies a large transaction."""
        rows = [
            instrument("memory/sql/user_var_entry::value", 300 * MIB),
            instrument("memory/mysys/IO_CACHE", 300 * MIB),
        ]
        sessions = [
            {"THREAD_ID": 1, "PROCESSLIST_ID": 42, "USER": None, "COMMAND": "Query", "SECONDS": 5, "BYTES": 310 * MIB}
        ]
        open_ = [
            {"TRX_ID": 1, "PROCESSLIST_ID": 42, "LOCK_BYTES": 5, "ROWS_LOCKED": 5, "ROWS_MODIFIED": 5, "SECONDS": 5}
        ]
        own = [
            {"EVENT_NAME": "memory/sql/x", "BYTES": 160 * MIB},
            {"EVENT_NAME": "memory/sql/user_var_entry::value", "BYTES": 150 * MIB},
        ]
        sources = {"memory": rows, "threads": sessions, "transactions": open_, "largest_session": own}

        def killed(**more):
            return {
                statement
                for one in findings(View(stock(700 * MIB, **sources, **more)))
                for statement in one.statements
                if "KILL" in statement
            }

        self.assertEqual(killed(), {"KILL 42"})
        for source in ("system_sessions", "system_threads", "watchers"):
            system = {source: [{"SYSTEM_SESSION": 42}]}
            self.assertEqual(killed(**system), set())
            found = named(stock(700 * MIB, **sources, **system))
            for holder in ("user variables", "session 42"):
                self.assertIn("do not KILL this session", found[holder].remedy)

    def test_what_a_replica_has_not_applied_is_no_cache_of_the_binary_log(self):
        rows = [instrument("memory/sql/Log_event", 64 * MIB), instrument("binlog_event_rows", 64 * MIB)]
        found = named(stock(500 * MIB, memory=rows))
        self.assertIn("replication events", found)
        self.assertNotIn("binary log caches", found)

    def test_a_name_that_breaks_a_statement_is_in_none(self):
        rows = [instrument("memory/memory/HP_PTRS", 300 * MIB)]
        tables = [{"TABLE_SCHEMA": "a", "TABLE_NAME": "t`;\n```\x1b[2J", "BYTES": 5, "TABLE_ROWS": 1}]
        one = named(stock(500 * MIB, memory=rows, memory_tables=tables))["MEMORY tables"]
        self.assertEqual(one.statements, [])
        self.assertEqual(one.check.split()[0], "SELECT")

    def test_no_remedy_goes_to_the_binary_log_unasked(self):
        """FLUSH TABLES without LOCAL empties the caches of all replicas, and is a transaction of its own on a replica."""
        for name in fixtures.names():
            for one in findings(View(fixtures.snapshot(name))):
                for statement in one.statements:
                    self.assertNotIn("FLUSH TABLES", statement)

    def test_the_cost_of_flush_is_beside_it(self):
        words = "statements on tables in use wait until those that run have ended"
        seen = set()
        for name in fixtures.names():
            for one in findings(View(fixtures.today(name))):
                if "FLUSH LOCAL TABLES" in one.statements:
                    seen.add(one.holder)
                    self.assertIn(words, one.remedy)
        self.assertLessEqual({"open tables", "triggers"}, seen)

    def test_flush_is_not_offered_while_sessions_keep_tables_open(self):
        """It would make the next statements on their tables wait for them."""
        rows = [instrument("memory/sql/TABLE", 300 * MIB)]

        def found(**sources):
            return named(stock(500 * MIB, memory=rows, **sources))["open tables"]

        kept = found(table_keepers=[{"KEEPERS": 2}])
        self.assertEqual(kept.statements, [])
        self.assertIn("2 sessions keep tables open (HANDLER, LOCK TABLES", kept.remedy)
        self.assertEqual(found(table_keepers=[{"KEEPERS": 0}]).statements, ["FLUSH LOCAL TABLES"])
        unknown = found()
        self.assertEqual(unknown.statements, [])
        self.assertIn("whether sessions keep tables open", unknown.remedy)
        self.assertIn("is not known: it was not asked: see that none does, then FLUSH LOCAL TABLES", unknown.remedy)

    def test_quoted_names(self):
        tables = [{"TABLE_SCHEMA": "a`b", "TABLE_NAME": "t", "BYTES": 200 * MIB, "TABLE_ROWS": 1}]
        rows = [instrument("memory/memory/HP_PTRS", 300 * MIB)]
        one = named(stock(500 * MIB, memory=rows, memory_tables=tables, system_threads=[]))["MEMORY tables"]
        self.assertEqual(one.statements, ["ALTER TABLE `a``b`.`t` ENGINE = InnoDB"])

    def test_no_table_is_changed_on_a_replica(self):
        """The binary log would have a transaction that the source does not have."""
        tables = [{"TABLE_SCHEMA": "s", "TABLE_NAME": "t", "BYTES": 200 * MIB, "TABLE_ROWS": 1}]
        rows = [instrument("memory/memory/HP_PTRS", 300 * MIB)]
        replica = stock(500 * MIB, memory=rows, memory_tables=tables, system_threads=[{"SYSTEM_SESSION": 5}])
        one = named(replica)["MEMORY tables"]
        self.assertEqual(one.statements, [])
        self.assertIn("on a replica, at its source: ALTER TABLE `s`.`t` ENGINE = InnoDB", one.remedy)


class Unexplained(unittest.TestCase):
    """5.8 GB that are in neither buffer pool nor Performance Schema."""

    def data(self, now, high):
        return stock(8 * GIB, memory=[instrument("memory/sql/THD::main_mem_root", now, high)])

    def test_the_sum_is_rss(self):
        view = View(self.data(GIB, GIB))
        self.assertEqual(bytes_unexplained(view), 8 * GIB - 50 * MIB - 64 * MIB - GIB)
        self.assertEqual(once_higher(view), 0)

    def test_locks_are_a_part_of_it_where_nothing_is_counted(self):
        """They are a finding of their own. Performance Schema counts them with InnoDB's other heaps."""
        held = [{"TRX_ID": n, "PROCESSLIST_ID": n, "LOCK_BYTES": bytes_} for n, bytes_ in enumerate((GIB, None, MIB))]
        seconds = {"ROWS_LOCKED": 5, "ROWS_MODIFIED": 5, "SECONDS": 5}
        locks = [row | seconds for row in held]
        rest = 8 * GIB - 50 * MIB - 64 * MIB
        for memory, transactions, expected in (
            ([], [], rest),
            ([], locks, rest - GIB - MIB),
            ([instrument("memory/sql/THD::main_mem_root", GIB)], [], rest - GIB),
            ([instrument("memory/sql/THD::main_mem_root", GIB)], locks, rest - GIB),
        ):
            found = named(stock(8 * GIB, memory=memory, transactions=transactions))
            self.assertEqual(found["memory that is not counted"].bytes, expected)

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

    def test_instruments_that_are_off_prove_no_leak(self):
        data = self.data(GIB, GIB)
        for off, verdict in ((0, "leak"), (100, "leak"), (500, "unexplained")):
            data["sources"]["instruments"] = {
                "source": "i",
                "error": None,
                "rows": [{"INSTRUMENTS": 507, "SWITCHED_OFF": off}],
            }
            one = named(data)["memory that is not counted"]
            self.assertEqual(one.verdict, verdict)
        self.assertIn("memory/%=ON", one.remedy)

    def test_what_the_account_may_not_read_is_no_finding(self):
        data = stock(8 * GIB, memory=[], variables=[{"performance_schema": "ON"}])
        data["sources"]["memory"]["error"] = "this account may not read it"
        self.assertNotIn("memory that is not counted", named(data))
        words = text.render(Page("", [report(data)], [], [data]))
        self.assertIn("this account may not read what Performance Schema counts", " ".join(words.split()))
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

    def test_what_sessions_have_is_counted_without_performance_schema(self):
        """By MariaDB, whose Performance Schema is off by default: the first finding said that the holder is not known."""

        def of(held, **sources):
            session = {"THREAD_ID": None, "PROCESSLIST_ID": 9, "USER": "a", "COMMAND": "Sleep", "SECONDS": 5}
            sums = [{"SESSION_BYTES": held}]
            data = stock(600 * MIB, threads=[session | {"BYTES": held}], session_bytes=sums, **sources)
            data["server"]["flavour"] = "mariadb"
            return named(data)

        self.assertEqual(list(of(400 * MIB)), ["session 9"])
        self.assertIn("memory that is not counted", of(100 * MIB))
        # It is on, and its memory instruments are off by default, but for its own.
        rows = {"memory": [instrument("memory/performance_schema/x", 90 * MIB)]}
        off = [{"INSTRUMENTS": 300, "SWITCHED_OFF": 200}]
        self.assertEqual(list(of(390 * MIB, instruments=off, **rows)), ["session 9"])
        storm = [{"SESSIONS": 300, "SLEEPING": 300}]
        found = of(300 * MIB, instruments=off, sessions=storm, **rows)
        self.assertIn("have 300 MiB allocated", found["sessions"].headline)
        for count, idle, held, severity in (
            (200, 100, 64 * MIB, "warning"),
            (200, 100, 64 * MIB - 1, "note"),
            (200, 99, 64 * MIB, None),
            (199, 199, 64 * MIB, None),
        ):
            found = of(held, sessions=[{"SESSIONS": count, "SLEEPING": idle}])
            self.assertEqual(found["sessions"].severity if "sessions" in found else None, severity, (count, idle))

    def test_a_fifth_is_usual(self):
        rss = 1000 * MIB
        counted = rss - 50 * MIB - 64 * MIB - 240 * MIB
        rows = [instrument("memory/sql/THD::main_mem_root", counted)]
        self.assertNotIn("memory that is not counted", named(stock(rss, memory=rows)))


class Limits(unittest.TestCase):
    def group(self, used, cache=0):
        return [
            {
                "version": 2,
                "folder": "/g",
                "limit": GIB,
                "usage": used,
                "reclaimable_cache": cache,
                "peak": used,
                "oom_kills": 0,
            }
        ]

    def test_near_the_limit(self):
        near = self.group(int(0.91 * GIB))
        self.assertEqual(named(stock(100 * MIB, cgroup=near))["cgroup"].severity, "critical")
        self.assertNotIn("cgroup", named(stock(100 * MIB, cgroup=self.group(int(0.89 * GIB)))))

    def test_a_kill_of_long_ago_is_a_note(self):
        """A group may live on for months."""

        def of(**status):
            data = stock(100 * MIB, cgroup=[self.group(100)[0] | {"oom_kills": 1}])
            data["sources"]["status"]["rows"][0] |= status
            return named(data)["kills in the control group"]

        self.assertEqual([of(uptime=seconds).severity for seconds in (3599, 3600)], ["warning", "note"])
        self.assertEqual(of().severity, "warning")
        self.assertIn("the kernel does not say when", of().evidence)

    def test_page_cache_is_no_use(self):
        full = self.group(GIB, cache=GIB // 2)
        self.assertNotIn("cgroup", named(stock(100 * MIB, cgroup=full)))

    def test_the_tightest_group_counts(self):
        own, above = self.group(100)[0], self.group(int(0.95 * GIB))[0]
        view = View(stock(100 * MIB, cgroup=[own, above | {"folder": "/above"}]))
        self.assertEqual(view.limit.source, "/above")

    def test_the_limit_is_raised_where_it_is(self):
        def of(version, folder):
            group = self.group(GIB)[0] | {"version": version, "folder": folder}
            return named(stock(100 * MIB, cgroup=[group]))["cgroup"].statements[-1]

        self.assertEqual(
            of(2, "/sys/fs/cgroup/system.slice/mysql@a.service"),
            "systemctl set-property mysql@a.service MemoryMax=1280M",
        )
        # A service of a user, beside which the system may have one of the same name.
        user = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service"
        folder = f"{user}/app.slice/mysql.service"
        self.assertEqual(of(2, folder), "systemctl --user set-property mysql.service MemoryMax=1280M")
        group = self.group(GIB)[0] | {"version": 2, "folder": folder}
        remedy = named(stock(100 * MIB, cgroup=[group]))["cgroup"].remedy
        self.assertIn("raise the limit, as that user (1000)", remedy)
        self.assertEqual(of(2, user), "systemctl set-property user@1000.service MemoryMax=1280M")
        self.assertEqual(of(2, "/sys/fs/cgroup/pod/db"), "echo 1280M > /sys/fs/cgroup/pod/db/memory.max")
        self.assertEqual(of(1, "/m/a b"), "echo 1280M > '/m/a b/memory.limit_in_bytes'")

    def test_a_buffer_pool_gets_a_size_that_innodb_takes(self):
        """2 GiB in 8 instances stay 2 GiB after SET GLOBAL innodb_buffer_pool_size = 1.5 GiB."""

        def of(size, instances):
            variables = {"innodb_buffer_pool_size": size, "innodb_buffer_pool_chunk_size": 128 * MIB}
            full = self.group(int(0.91 * GIB))
            found = stock(
                4 * GIB, 5 * GIB, cgroup=full, variables=[variables | {"innodb_buffer_pool_instances": instances}]
            )
            return {
                one.holder: [words for words in one.statements if words.startswith("SET")]
                for one in findings(View(found))
            }

        self.assertEqual(of(2 * GIB, 8)["cgroup"], [f"SET GLOBAL innodb_buffer_pool_size = {GIB}"])
        self.assertEqual(of(2 * GIB, 1)["cgroup"], [f"SET GLOBAL innodb_buffer_pool_size = {1536 * MIB}"])
        self.assertEqual(of(GIB, 8)["cgroup"], [])
        # 60% of 1 GiB
        self.assertEqual(of(GIB, 1)["innodb_buffer_pool_size"], [f"SET PERSIST innodb_buffer_pool_size = {512 * MIB}"])
        self.assertEqual(of(GIB, 8)["innodb_buffer_pool_size"], [])

    def test_a_group_above_with_less_room(self):
        """MEMDIAG_HOST has the lowest limit, and the room of another group."""

        def figure(name, number, place):
            return {
                "SUBJECT": "cgroup",
                "NAME": name,
                "NUMBER": None if number is None else float(number),
                "VALUE": None,
                "UNIT": "bytes",
                "SOURCE": place,
            }

        def told(room, limit, place):
            """What the server tells; None: it could not read the use of a group."""
            return [
                figure("effective_limit", GIB, "/g/own/memory.max"),
                figure("effective_room", room, place),
                figure("room_limit", limit, place),
            ]

        own = {
            "version": 2,
            "folder": "/g/own",
            "limit": GIB,
            "usage": GIB // 2,
            "reclaimable_cache": 0,
            "peak": None,
            "oom_kills": 0,
        }
        above = own | {"folder": "/g", "limit": 2 * GIB, "usage": 2 * GIB - 5}
        for room, highest in ((5, 2 * GIB), (None, None)):
            host = told(room, highest, "/g/memory.current")
            limit = View(stock(100 * MIB, cgroup=[own, above], memdiag_host=host)).limit
            self.assertEqual((limit.bytes, limit.used, limit.source), (2 * GIB, 2 * GIB - 5, "/g"))
        host = told(5, GIB, "/g/own/memory.current")
        limit = View(stock(100 * MIB, cgroup=[own, above], memdiag_host=host)).limit
        self.assertEqual((limit.bytes, limit.used), (GIB, GIB - 5))

    def test_a_group_above_with_less_room_and_a_higher_limit(self):
        """Of a remote server. The lowest limit less the room of another group was the use of none."""

        def figure(name, number, place, value=None):
            return {
                "SUBJECT": "cgroup",
                "NAME": name,
                "NUMBER": None if number is None else float(number),
                "VALUE": value,
                "UNIT": "bytes",
                "SOURCE": place,
            }

        host = [
            figure("version", 2, "/proc/self/cgroup"),
            figure("effective_limit", 4 * GIB, "/g/own/memory.max"),
            figure("effective_usage", GIB, "/g/own/memory.current"),
            figure("effective_room", 100 * MIB, "/g/memory.current"),
            figure("room_limit", 8 * GIB, "/g/memory.current"),
        ]

        def of(rows, pool=3 * GIB):
            return stock(900 * MIB, memdiag_host=rows, variables=[{"innodb_buffer_pool_size": pool}])

        view = View(of(host))
        self.assertEqual((view.limit.bytes, view.limit.used, view.limit.source), (8 * GIB, 8 * GIB - 100 * MIB, "/g"))
        self.assertEqual(view.lowest_limit.bytes, 4 * GIB)
        near = named(of(host))["cgroup"]
        self.assertIn("of the control group's 8.00 GiB are used", near.headline)
        self.assertEqual(near.statements[-1], "echo 10240M > /g/memory.max")
        # The server cannot have more than its own group.
        self.assertIn("is 4.00 GiB", named(of(host, 4 * GIB))["innodb_buffer_pool_size"].headline)
        # The server could not read the use of that group.
        unread = [*host[:-2], *(figure(one["NAME"], None, one["SOURCE"]) for one in host[-2:])]
        for rows in (host[:-1], unread):
            view = View(of(rows))
            self.assertEqual((view.limit.bytes, view.limit.used), (4 * GIB, None))
            self.assertNotIn("cgroup", named(of(rows)))
        place = "/g/own/memory.current"
        view = View(of([*host[:-2], figure("effective_room", 100 * MIB, place), figure("room_limit", 4 * GIB, place)]))
        self.assertEqual((view.limit.bytes, view.limit.used), (4 * GIB, 4 * GIB - 100 * MIB))

    def test_swap(self):
        def of(swapped):
            data = stock(900 * MIB)
            data["sources"]["process"]["rows"][0]["VmSwap"] = swapped
            return named(data)

        self.assertNotIn("swap", of(63 * MIB))
        self.assertEqual(of(70 * MIB)["swap"].severity, "warning")
        self.assertEqual(of(110 * MIB)["swap"].severity, "critical")
        (statement,) = of(110 * MIB)["swap"].statements
        self.assertIn('swapoff "$place" && swapon "$place"', statement)
        # The machine would have no swap after it, unless /etc/fstab names it.
        self.assertNotIn("swapon -a", statement)

    def test_swap_of_all_processes_is_read_back(self):
        def offered(others, room, **swap):
            data = stock(900 * MIB, cgroup=self.group(GIB - room))
            data["sources"]["process"]["rows"][0]["VmSwap"] = 110 * MIB
            data["sources"]["meminfo"]["rows"][0] |= {"SwapTotal": 20 * GIB, "SwapFree": 20 * GIB - 110 * MIB - others}
            data["sources"]["meminfo"]["rows"][0] |= swap
            return READ_BACK in named(data)["swap"].statements

        self.assertTrue(offered(0, 500 * MIB))
        self.assertTrue(offered(0, 500 * MIB, SwapFree=None))
        self.assertFalse(offered(8 * GIB, 500 * MIB))
        self.assertFalse(offered(0, 150 * MIB))

    def test_growth_tells_an_hours_bytes_and_how_well_they_fit(self):
        def recording(step):
            return [{"time": 1e9 + 100 * n, "rss": 500 * MIB + n * step, "buffer_pool": 0} for n in range(10)]

        data = stock(600 * MIB)
        (grown,) = [one for one in findings(View(data), recording(10 * MIB)) if one.holder == "growth"]
        self.assertIn("grows by 360 MiB an hour", grown.headline)
        self.assertIn("fits 100% of the last 15 min.", grown.evidence)
        calm = {one.holder for one in findings(View(data), recording(0))}
        self.assertNotIn("growth", calm)

    def growth(self, samples, start=0.0, **sources):
        """The finding of growth, of samples of time and RSS."""
        recording = [{"time": start + time, "rss": rss, "buffer_pool": 0} for time, rss in samples]
        found = findings(View(stock(600 * MIB, **sources)), recording)
        return next((one for one in found if one.holder == "growth"), None)

    def test_growth_needs_a_line_and_time(self):
        def grows(seconds, an_hour, start=0.0):
            """Whether that much growth an hour is told after this time."""
            times = [seconds * n / 10 for n in range(11)]
            return self.growth([(time, 500 * MIB + an_hour * time / 3600) for time in times], start) is not None

        for start in (0.0, 1_800_000_000.0):
            self.assertTrue(grows(900, 360 * MIB, start))
            self.assertFalse(grows(900, 0, start))
            self.assertFalse(grows(900, -360 * MIB, start))
            self.assertTrue(grows(300, 360 * MIB, start))
            self.assertFalse(grows(290, 360 * MIB, start))
            self.assertTrue(grows(900, 9 * MIB, start))
            self.assertFalse(grows(900, 7.5 * MIB, start))
        self.assertIsNone(self.growth([(0, MIB), (900, 500 * MIB)]))  # two points always have a line

        def jumps(bytes_of_jump):
            """Every second sample is so much higher than a line of 3.6 GiB an hour."""
            return self.growth([(60 * n, 500 * MIB + 60 * n * MIB + n % 2 * bytes_of_jump) for n in range(20)])

        self.assertIn("fits 100%", jumps(MIB).evidence)
        self.assertIsNone(jumps(2 * GIB))

    def test_the_longest_growth_counts(self):
        """A server that was restarted, or got other load, grows since then."""
        for window, shown_as in ((86400, "24 h"), (21600, "6 h"), (3600, "60 min"), (900, "15 min")):
            day = range(0, 2 * 86400 + 1, 60)
            # Before that it fell by as much.
            samples = [(time, 500 * MIB + abs(time - (2 * 86400 - window)) * MIB // 100) for time in day]
            one = self.growth(samples)
            self.assertIn(f"of the last {shown_as}", one.evidence)
            self.assertAlmostEqual(one.bytes, 36 * MIB, delta=1)
        # It grows no more.
        self.assertIsNone(self.growth([(60 * n, min(500 + n, 600) * MIB) for n in range(2000)]))

    def test_growth_that_will_soon_reach_the_limit(self):
        """The machine has 16 GiB, and grows by a MiB a second for so many seconds."""

        def of(seconds, available):
            memory = [{"MemTotal": 16 * GIB, "MemAvailable": available}]
            one = self.growth([(seconds * n / 10, (500 + seconds * n / 10) * MIB) for n in range(11)], meminfo=memory)
            return one.severity, "reaches" in one.headline, "says nothing" in one.evidence

        self.assertEqual(of(900, 8 * GIB), ("critical", True, False))
        # A forecast is ten times as long as what was seen.
        self.assertEqual(of(900, 9001 * MIB), ("warning", False, True))
        self.assertEqual(of(890, 8 * GIB), ("warning", True, False))

    def test_what_a_server_had_before_its_restart_is_no_growth(self):
        """It grew until it was started anew, and is as large since."""
        recording = [{"time": 100.0 * n, "rss": min(300 + 20 * n, 530) * MIB, "buffer_pool": 0} for n in range(20)]
        data = stock(600 * MIB)
        self.assertIn("growth", {one.holder for one in findings(View(data), recording)})
        recording[12]["restarted"] = True
        self.assertNotIn("growth", {one.holder for one in findings(View(data), recording)})
        recording[2]["restarted"] = True
        self.assertNotIn("growth", {one.holder for one in findings(View(data), recording)})
        # The judge counts what the new process grew by.
        for n, row in enumerate(recording[12:]):
            row["rss"] = (400 + 2 * n) * MIB
        self.assertIn("growth", {one.holder for one in findings(View(data), recording)})


class HugePages(unittest.TestCase):
    """large_pages=ON: RSS does not count the buffer pool, of which a part may have found no huge pages."""

    POOL = 4 * GIB
    OUTSIDE = 3 * GIB

    def data(self, huge, outside=OUTSIDE, **sources):
        """A server of which so much is in huge pages. It had a GiB of them for something else."""
        data = stock(outside + self.POOL - min(huge, self.POOL), self.POOL, **sources)
        data["sources"]["process"]["rows"][0]["HugetlbPages"] = huge
        return data

    def test_the_findings_are_those_of_normal_pages(self):
        rows = [
            instrument("memory/performance_schema/threads", 250 * MIB),
            instrument("memory/sql/THD::main_mem_root", 300 * MIB),
        ]
        found = []
        for huge in (0, GIB, self.POOL, self.POOL + GIB):
            data = self.data(huge, memory=rows)
            view = View(data)
            self.assertEqual((view.outside, view.buffer_pool), (self.OUTSIDE, self.POOL))
            self.assertEqual(bytes_unexplained(view), self.OUTSIDE - 50 * MIB - 550 * MIB)
            found.append([(one.holder, one.verdict, one.bytes) for one in findings(view)])
        self.assertEqual([one[0] for one in found[0]], ["memory that is not counted"])
        for others in found[1:]:
            self.assertEqual(others, found[0])

    def test_the_parts_are_those_of_rss(self):
        for huge in (GIB, self.POOL + GIB):
            page = report(self.data(huge, memory=[instrument("memory/sql/x", 300 * MIB)]))
            (block,) = (block for section in page.sections for block in section.blocks if block.kind == "parts")
            self.assertEqual(sum(part.value for part in block.parts), block.total)
            for part in block.parts:
                self.assertTrue(0 <= part.value <= block.total, part)
            fact = next(one for one in page.facts if one.label == "huge pages")
            self.assertEqual((fact.value, fact.source), (huge, "HugetlbPages of /proc/<pid>/status"))
        self.assertNotIn("huge pages", [one.label for one in report(self.data(0)).facts])

    def test_a_smaller_pool_frees_none(self):
        group = {"version": 2, "folder": "/g", "limit": int(3.2 * GIB), "usage": int(3.1 * GIB), "oom_kills": 0}

        def of(huge):
            meminfo = [{"MemTotal": 8 * GIB, "MemAvailable": 100 * MIB}]
            variables = [{"innodb_buffer_pool_size": self.POOL}]
            return named(self.data(huge, cgroup=[group], meminfo=meminfo, variables=variables))

        for holder in ("cgroup", "machine", "innodb_buffer_pool_size"):
            self.assertIn("innodb_buffer_pool_size", str(of(0)[holder].statements), holder)
            self.assertNotIn("innodb_buffer_pool_size", str(of(GIB)[holder].statements), holder)
        self.assertEqual(of(GIB)["cgroup"].remedy, "raise the limit")
        self.assertIn("vm.nr_hugepages", of(GIB)["machine"].remedy)

    def test_a_control_group_does_not_count_them(self):
        group = {"version": 2, "folder": "/g", "limit": 2 * GIB, "usage": GIB, "oom_kills": 0}
        variables = {"innodb_buffer_pool_size": self.POOL, "max_connections": 1}

        def of(huge, machine=16 * GIB, groups=(group,), pool=self.POOL):
            """Whether the pool is said to be above the limit: by the finding, the report's budget and what-if."""
            data = self.data(huge, GIB, cgroup=list(groups), variables=[variables])
            data["sources"]["meminfo"]["rows"] = [{"MemTotal": machine, "MemAvailable": GIB}]
            view = View(data)
            notes = [block.text for block in budget.section(view).blocks if block.kind == "note"]
            said = budget_lines(view, {"innodb_buffer_pool_size": pool}, None)[-1]
            return "innodb_buffer_pool_size" in named(data), "Buffers alone" in str(notes), " above the limit" in said

        self.assertEqual(of(0), (True, True, True))
        for huge in (self.POOL, self.POOL + GIB):
            self.assertEqual(of(huge), (False, False, False))
        # A GiB found no huge pages, or two did not.
        self.assertEqual(of(3 * GIB), (False, False, False))
        self.assertEqual(of(2 * GIB), (True, False, False))
        # The machine's memory has the huge pages.
        self.assertEqual(of(self.POOL, self.POOL, ()), (True, False, False))
        self.assertEqual(of(self.POOL, self.POOL - MIB, ()), (True, True, True))
        self.assertEqual(of(self.POOL, 3 * GIB), (True, True, True))
        # More of the pool is not known to find huge pages, and those of today do not make other buffers smaller.
        self.assertEqual(of(self.POOL, pool=7 * GIB), (False, False, True))
        view = View(self.data(self.POOL, cgroup=[group], variables=[variables | {"key_buffer_size": 3 * GIB}]))
        figures = budget_figures(view, {"innodb_buffer_pool_size": GIB}, None)
        self.assertEqual((figures["then"]["server_buffers"], figures["huge_pages_outside"]), (4 * GIB, GIB))
        self.assertIn(
            "Buffers alone: 3.00 GiB, above the limit of 2.00 GiB, which does not count 1.00 GiB of huge pages.",
            budget_lines(view, {"innodb_buffer_pool_size": GIB}, None),
        )

    def test_those_that_count_against_no_limit(self):
        """A limit of the machine's memory counts them, and so does one above what the machine has besides them."""
        for huge, pool, machine, limit, outside in (
            (0, GIB, 16 * GIB, 2 * GIB, 0),
            (GIB, GIB, 16 * GIB, 2 * GIB, GIB),
            (3 * GIB, GIB, 16 * GIB, 2 * GIB, GIB),
            (GIB, 3 * GIB, 16 * GIB, 2 * GIB, GIB),
            (GIB, GIB, 3 * GIB, 3 * GIB - 5, 5),
            (GIB, GIB, 3 * GIB, 3 * GIB, 0),
            (GIB, GIB, 3 * GIB, 4 * GIB, 0),
            (GIB, GIB, None, 4 * GIB, GIB),
            (None, GIB, 16 * GIB, 2 * GIB, 0),
        ):
            data = self.data(huge or 0, meminfo=[{} if machine is None else {"MemTotal": machine}])
            data["sources"]["process"]["rows"][0]["HugetlbPages"] = huge
            self.assertEqual(View(data).huge_outside(limit, pool), outside, (huge, pool, machine, limit))

    def test_a_kernel_that_does_not_tell_huge_pages(self):
        data = self.data(0, variables=[{"large_pages": "ON"}])
        del data["sources"]["process"]["rows"][0]["HugetlbPages"]
        self.assertIsNone(View(data).outside)
        data["sources"]["variables"]["rows"] = [{"large_pages": "OFF"}]
        self.assertEqual(View(data).outside, self.OUTSIDE)

    def test_the_pool_that_fills_is_no_growth(self):
        """A recording of an older memdiag does not have pool_in_rss."""

        def of(**more):
            rows = [{"time": 100.0 * n, "rss": (500 + n) * MIB, "buffer_pool": 300 * MIB} for n in range(10)]
            return findings(View(stock(600 * MIB)), [row | more for row in rows])

        holders = [[one.holder for one in of(**more)] for more in ({}, {"pool_in_rss": 0}, {"pool_in_rss": None})]
        self.assertEqual([("growth" in one) for one in holders], [True, True, False])
        rows = [
            {"time": 100.0 * n, "rss": 500 * MIB, "buffer_pool": (400 - 10 * n) * MIB, "pool_in_rss": 0}
            for n in range(10)
        ]
        self.assertNotIn("growth", [one.holder for one in findings(View(stock(600 * MIB)), rows)])
        for in_rss in ("buffer_pool", "pool_in_rss"):
            rows = [{"time": 100.0 * n, "rss": (500 + n) * MIB, in_rss: (300 + n) * MIB} for n in range(10)]
            self.assertNotIn("growth", [one.holder for one in findings(View(stock(600 * MIB)), rows)])


class Ranking(unittest.TestCase):
    def test_what_holds_memory_comes_before_what_a_setting_may_lead_to(self):
        rows = [instrument("memory/sql/Filesort_buffer::sort_keys", 70 * MIB)]
        variables = [{"innodb_buffer_pool_size": 15 * GIB}]
        found = findings(View(stock(250 * MIB, memory=rows, variables=variables)))
        self.assertEqual([one.holder for one in found], ["sort buffers", "innodb_buffer_pool_size"])
        self.assertEqual([one.severity for one in found], ["warning", "warning"])
        self.assertEqual(found[1].statements, [f"SET PERSIST innodb_buffer_pool_size = {16 * GIB * 6 // 10}"])
        for pool, told in ((9 * GIB, True), (9 * GIB - 1, False)):
            data = stock(250 * MIB, variables=[{"innodb_buffer_pool_size": pool}], meminfo=[{"MemTotal": 10 * GIB}])
            self.assertEqual("innodb_buffer_pool_size" in named(data), told)


class WithoutSession(unittest.TestCase):
    def test_a_prepared_transaction_whose_session_has_ended(self):
        """Its locks stay, and InnoDB shows session 0: KILL 0 is an error."""
        locks = {
            "TRX_ID": 7,
            "PROCESSLIST_ID": 0,
            "LOCK_BYTES": 200 * MIB,
            "ROWS_LOCKED": 9,
            "ROWS_MODIFIED": 9,
            "SECONDS": 9,
        }
        one = named(stock(600 * MIB, transactions=[locks]))["transactions, locks"]
        self.assertEqual(one.statements, [])
        self.assertNotIn("session 0", one.headline + one.evidence + one.remedy)
        self.assertIn("XA ROLLBACK", one.remedy)
        self.assertEqual(one.source, "INFORMATION_SCHEMA.INNODB_TRX")


class CountsOfOthers(unittest.TestCase):
    def test_a_session_does_not_hold_what_another_session_freed(self):
        name = "memory/memory/HP_PTRS"
        session = [
            {"THREAD_ID": 1, "PROCESSLIST_ID": 9, "USER": "a", "COMMAND": "Sleep", "SECONDS": 5, "BYTES": 256 * MIB}
        ]
        own = [{"EVENT_NAME": name, "BYTES": 255 * MIB}]

        def of(left):
            return named(stock(600 * MIB, memory=[instrument(name, left)], threads=session, largest_session=own))

        self.assertNotIn("KILL 9", str(of(0)))
        self.assertIn("MEMORY tables", of(255 * MIB))


class Unknown(unittest.TestCase):
    """An account without PROCESS on our server: what could not be read is unknown, and its source is what was read."""

    def test_facts(self):
        data = fixtures.snapshot("ours-leak")
        read = {one.label: one for one in report(data).facts}
        self.assertIn("MEMDIAG_LEDGER", read["RSS"].source)
        self.assertGreater(read["to get back at once"].value, 0)
        data["sources"]["memdiag_ledger"] = {"source": "l", "rows": [], "error": "it lacks PROCESS"}
        read = {one.label: one for one in report(data).facts}
        self.assertIsNone(read["to get back at once"].value)
        self.assertIn("VmRSS", read["RSS"].source)
        words = " ".join(text.render(Page("", [report(data)], [], [data])).split())
        self.assertIn("Its ledger is unknown: it lacks PROCESS. The parts are", words)
        self.assertNotIn("This server does not know", words)
        self.assertNotIn("Only the server with memdiag knows", words)

    def test_one_unknown_part_makes_the_sum_unknown(self):
        data = fixtures.snapshot("ours-leak")
        for row in data["sources"]["memdiag_ledger"]["rows"]:
            if row["STATE"] == "dirty" and row["NAME"] == "general":
                row["RESIDENT_BYTES"] = None
        self.assertIsNone(View(data).unused)
