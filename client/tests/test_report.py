import json
import random
import re
import shlex
import subprocess
import unittest
from dataclasses import replace

from memdiag.anonymize import Names, anonymized
from memdiag.commands.report import collected, file_name
from memdiag.connect.options import Target
from memdiag.judge.holders import BY_NAME
from memdiag.model.document import Finding, Line, Part, Parts, Series, Table
from memdiag.model.units import shown, size
from memdiag.model.view import View
from memdiag.model.words import cell_width, wrap
from memdiag.render import html, markdown, text
from memdiag.render import json as as_json
from memdiag.render.page import Page, cells, series_grid
from memdiag.report import host
from memdiag.report.build import headline, report

from tests import fixtures
from tests.builder import GIB, MIB, instrument, snapshot, stock
from tests.figures import foreign

# As MEMDIAG_ADVICE has it for temporary tables.
TO_END = (
    "SELECT CONCAT(IF(PROCESSLIST_COMMAND = 'Sleep' OR (PROCESSLIST_ID IN (SELECT ID FROM "
    "information_schema.PROCESSLIST WHERE STATE IN ('Sending to client', 'Writing to net')) AND "
    "PROCESSLIST_ID NOT IN (SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX WHERE "
    "trx_autocommit_non_locking = 0) AND THREAD_ID NOT IN (SELECT OWNER_THREAD_ID FROM "
    "performance_schema.metadata_locks WHERE OWNER_THREAD_ID IS NOT NULL AND (LOCK_DURATION = 'EXPLICIT' "
    "OR LOCK_TYPE = 'SHARED_READ_ONLY'))), 'KILL ', 'KILL QUERY '), PROCESSLIST_ID) AS RUN FROM (SELECT "
    "threads.*, BYTES, MAX(BYTES) OVER () AS MOST FROM performance_schema.threads JOIN (SELECT THREAD_ID,"
    " SUM(CURRENT_NUMBER_OF_BYTES_USED) AS BYTES FROM "
    "performance_schema.memory_summary_by_thread_by_event_name WHERE EVENT_NAME RLIKE "
    "_utf8mb4'^(temptable|memory/temptable/)' GROUP BY THREAD_ID) AS held USING (THREAD_ID) WHERE "
    "PROCESSLIST_COMMAND NOT LIKE 'Binlog Dump%') AS owners WHERE BYTES >= 2097152 AND 2 * BYTES >= MOST "
    "AND (NAME LIKE '%one_connection' OR NAME LIKE '%/mysqlx/worker') AND PROCESSLIST_COMMAND IN "
    "('Sleep', 'Query', 'Fetch', 'Execute') AND PROCESSLIST_ID <> CONNECTION_ID() AND "
    "(PROCESSLIST_COMMAND <> 'Sleep' OR (TRUE AND PROCESSLIST_ID NOT IN (SELECT trx_mysql_thread_id FROM "
    "information_schema.INNODB_TRX WHERE trx_autocommit_non_locking = 0) AND THREAD_ID NOT IN (SELECT "
    "OWNER_THREAD_ID FROM performance_schema.metadata_locks WHERE OWNER_THREAD_ID IS NOT NULL))) AND "
    "THREAD_ID NOT IN (SELECT OWNER_THREAD_ID FROM performance_schema.metadata_locks WHERE "
    "OWNER_THREAD_ID IS NOT NULL AND LOCK_DURATION <> 'EXPLICIT' AND LOCK_TYPE IN ('SHARED_UPGRADABLE', "
    "'SHARED_NO_WRITE', 'SHARED_NO_READ_WRITE', 'EXCLUSIVE')) AND PROCESSLIST_USER NOT LIKE '%exporter%' "
    "AND PROCESSLIST_ID NOT IN (SELECT PROCESSLIST_ID FROM performance_schema.session_connect_attrs WHERE"
    " ATTR_NAME = 'program_name' AND (ATTR_VALUE = 'memdiag' OR ATTR_VALUE LIKE '%exporter%' OR "
    "ATTR_VALUE LIKE '%otelcol%')) ORDER BY BYTES DESC"
)


def page_of(*snapshots):
    return Page("Memory", [report(one) for one in snapshots], [], list(snapshots))


def blocks_of(data, recording=None):
    """By their ids."""
    blocks = [block for section in report(data, recording).sections for block in section.blocks]
    return {block.id: block for block in blocks if hasattr(block, "id")}


def words_of(data):
    return re.sub(r"\s+", " ", text.render(page_of(data)))


def unescaped(page):
    return (
        page.replace("&#39;", "'").replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">").replace("&#34;", '"')
    )


class Sums(unittest.TestCase):
    def test_parts_add_up_to_rss_on_every_server(self):
        for name in fixtures.names():
            with self.subTest(name):
                made = report(fixtures.snapshot(name))
                parts = [block for section in made.sections for block in section.blocks if block.kind == "parts"]
                self.assertEqual(len(parts), 1)
                self.assertEqual(sum(part.value for part in parts[0].parts), parts[0].total)
                self.assertGreater(parts[0].total, 0)

    def test_every_number_is_the_servers_own(self):
        for name in fixtures.names():
            data = fixtures.snapshot(name)
            with self.subTest(name):
                self.assertEqual(foreign(report(data).plain(), data), [])

    def test_what_is_reckoned(self):
        data = fixtures.snapshot("stock-triggers")
        blocks = {
            block.id: block for section in report(data).sections for block in section.blocks if block.kind == "table"
        }
        page = data["sources"]["status"]["rows"][0]["innodb_page_size"]
        for _, pages, held, _ in blocks["buffer-pool"].rows:
            self.assertEqual(held, pages * page)
        for row in blocks["budget"].rows:
            values = dict(zip((column.name for column in blocks["budget"].columns), row))
            self.assertEqual(values["worst"], values["each"] * values["times"])

    def test_a_part_that_the_server_could_not_read_leaves_rss_known(self):
        data = fixtures.snapshot("ours-leak")
        rows = data["sources"]["memdiag_ledger"]["rows"]
        rss = next(
            row["NUMBER"]
            for row in data["sources"]["memdiag_host"]["rows"]
            if (row["SUBJECT"], row["NAME"]) == ("process", "VmRSS")
        )
        for row in rows:
            if row["COMPONENT"] in ("pool", "unexplained"):
                row["RESIDENT_BYTES"] = None
        made = report(data)
        self.assertEqual(made.facts[0].value, rss)
        (parts,) = [block for section in made.sections for block in section.blocks if block.kind == "parts"]
        self.assertEqual(sum(part.value for part in parts.parts), parts.total)

    def test_a_difference_of_the_servers_below_0_is_not_known(self):
        """MySQL subtracts pages of the list and free ones from all pages, without a sign. Compressed pages are in the
        list and in no frame of their own."""

        def rows(misc):
            data = stock(500 * MIB)
            data["sources"]["status"]["rows"][0]["innodb_buffer_pool_pages_misc"] = misc
            (table,) = [
                block
                for section in report(data).sections
                for block in section.blocks
                if getattr(block, "id", "") == "buffer-pool"
            ]
            return {row[0]: row[1] for row in table.rows}

        self.assertEqual(rows(90)["other pages"], 90)
        self.assertNotIn("other pages", rows((1 << 64) - 3))

    def test_every_figure_says_what_it_is_and_where_it_is_from(self):
        for name in fixtures.names():
            made = report(fixtures.snapshot(name))
            blocks = [block for section in made.sections for block in section.blocks]
            for block in [*made.facts, *blocks]:
                with self.subTest(name, block=getattr(block, "title", "")):
                    if block.kind != "note":
                        self.assertTrue(block.source)
                    if block.kind == "fact":
                        self.assertTrue(block.what)

    def test_allocated_bytes_are_called_so(self):
        """The reader takes bytes without the word for resident ones."""
        ours = fixtures.snapshot("ours-leak")
        session = {"HOLDER": "session", "PROCESSLIST_ID": 5, "USER": "u", "DIGEST": None, "POOL": "session", "BYTES": 5}
        survivor = {"ROUTE": "r", "POOL": "session", "SCOPE": "statement", "BYTES": 5, "BLOCKS": 1, "SINCE": 0.0}
        digest = {"DIGEST": "d", "STATEMENTS": 5, "PEAK_BYTES": 5, "ACCUMULATED_BYTES": 5, "LAST_SEEN": 0.0}
        rows = {"memdiag_sessions": session, "memdiag_survivors": survivor, "memdiag_digests": digest}
        ours["sources"] |= {name: {"source": name, "rows": [row], "error": None} for name, row in rows.items()}
        of_sessions = {("sessions", "BYTES"), ("sessions", "HIGH_BYTES"), ("users", "BYTES"), ("digests", "PEAK_BYTES")}
        own = {
            ("sessions-by-pool", "BYTES"),
            ("sessions-by-pool", "IN_POOL"),
            ("survivors", "BYTES"),
            ("pools", "LIVE_BYTES"),
            ("pools", "PEAK_BYTES"),
            ("instruments", "LIVE_BYTES"),
        }
        for data, wanted in (
            (ours, of_sessions | own),
            (fixtures.snapshot("stock-leak"), of_sessions | {("holders", "bytes")}),
        ):
            blocks = [block for section in report(data).sections for block in section.blocks]
            titles = {
                (block.id, column.name): column.title
                for block in blocks
                if isinstance(block, Table)
                for column in block.columns
            }
            self.assertEqual({one for one in wanted if "allocated" not in titles[one]}, set())

    def test_a_chart_without_a_picture(self):
        """Text and Markdown have its first, lowest, highest and last value."""
        lines = [
            Line("a", [None, 5.0, 9.0, None, 2.0, 7.0, None], what="what a is"),
            Line("b", [None, None]),
            Line("c", [3.0]),
        ]
        for unit in ("bytes", "count"):
            head, rows, right = series_grid(Series("x", "X", [0.0] * 7, lines, "its source", unit=unit))
            self.assertEqual(head, ["", "first", "lowest", "highest", "last", "what it is"])
            self.assertEqual(
                rows,
                [
                    ["a", *(shown(value, unit) for value in (5.0, 2.0, 9.0, 7.0)), "what a is"],
                    ["c", *(shown(3.0, unit) for _ in range(4)), ""],
                ],
            )
            self.assertEqual(right, [False, *[True] * 4, False])

    def test_figures_of_our_servers_host(self):
        """MEMDIAG_HOST has doubles, words, and rows that decide nothing."""

        def row(subject, name, number, unit="", value=None):
            return {"SUBJECT": subject, "NAME": name, "NUMBER": number, "VALUE": value, "UNIT": unit, "SOURCE": "/s"}

        told = [
            row("process", "VmRSS", 5.0, "bytes"),
            row("process", "VmLib", 5.0, "bytes"),
            row("process", "Threads", 7.0, "count"),
            row("memory", "MemTotal", 9.0, "bytes"),
            row("memory", "Dirty", 9.0, "bytes"),
            row("pressure", "some.avg10", 1.5, "%"),
            row("pressure", "some.total", 3.0, "µs"),
            row("oom", "oom_score", 666.0),
            row("kernel", "overcommit_ratio", 12.5),
            row("cgroup", "limit", None, "bytes", "max"),
            row("cgroup", "swap_limit", None, "bytes", ""),
            row("cgroup", "oom_kills", None, "count"),
            row("huge_pages", "free", None, "pages"),
            row("huge_pages", "pool.sql", 0.0, "bytes"),
            row("huge_pages", "pool.x", 2.0, "bytes"),
            row("other", "x", 0.0, "s"),
        ]
        (table,) = (
            block for block in host.section(View(stock(5 * MIB, memdiag_host=told))).blocks if block.kind == "table"
        )
        self.assertEqual(
            table.rows,
            [
                ["the process", "VmRSS", 5, "", "/s"],
                ["the process", "Threads", "", 7, "/s"],
                ["the machine", "MemTotal", 9, "", "/s"],
                ["pressure stall information", "some.avg10", "", "1.5 %", "/s"],
                ["pressure stall information", "some.total", "", "3 µs", "/s"],
                ["the kernel's choice of whom to kill", "oom_score", "", 666, "/s"],
                ["settings of the kernel", "overcommit_ratio", "", 12.5, "/s"],
                ["the control group", "limit", "", "max", "/s"],
                ["the control group", "swap_limit", None, "", "/s"],
                ["the control group", "oom_kills", "", None, "/s"],
                ["huge pages", "free", "", None, "/s"],
                ["huge pages", "pool.x", 2, "", "/s"],
                ["other", "x", "", "0 s", "/s"],
            ],
        )

    def test_sessions_by_pool(self):
        """The server has a row for each holder and pool."""

        def row(session, pool, bytes_, digest=None):
            return {
                "HOLDER": "session" if session else "ended",
                "PROCESSLIST_ID": session,
                "USER": "u",
                "DIGEST": digest,
                "POOL": pool,
                "BYTES": bytes_,
            }

        told = [
            row(5, "session", 3),
            row(5, "statement", 10),
            row(None, "session", 40),
            row(5, "session", 9),
            row(6, "session", None),
            row(6, "statement", -2),
            row(5, "session", 100, "d"),
        ]
        blocks = [one for section in report(stock(5 * MIB, memdiag_sessions=told)).sections for one in section.blocks]
        (table,) = (one for one in blocks if isinstance(one, Table) and one.id == "sessions-by-pool")
        self.assertEqual(
            table.rows,
            [
                ["session", 5, "u", "d", 100, "session", 100],
                ["ended", None, "u", None, 40, "session", 40],
                ["session", 5, "u", None, 22, "session", 12],
                ["session", 6, "u", None, -2, "session", 0],
            ],
        )

    def test_pools_without_a_peak_are_named(self):
        for name in fixtures.names():
            blocks = [block for section in report(fixtures.snapshot(name)).sections for block in section.blocks]
            for pools in (block for block in blocks if getattr(block, "id", "") == "pools"):
                peak = [column.name for column in pools.columns].index("PEAK_BYTES")
                without = sorted(row[0] for row in pools.rows if row[peak] is None)
                with self.subTest(name):
                    self.assertIn(f"keep no peak: {', '.join(without)}.", pools.note)


class Tables(unittest.TestCase):
    """The server gives rows in any order."""

    # The figure that decides the order, and has a bar but for times.
    ORDERED_BY = {"innodb": "BYTES", "ledger-rows": "RESIDENT_BYTES", "holders": "bytes", "budget": "worst"}
    ORDERED_BY |= {"instruments": "BYTES", "survivors": "BYTES", "sessions-by-pool": "BYTES", "purges": "TIME"}
    ORDERED_BY |= {"digests": "PEAK_BYTES"}

    def test_the_largest_is_above(self):
        row = dict.fromkeys(
            [
                "ROUTE",
                "POOL",
                "SCOPE",
                "BLOCKS",
                "SINCE",
                "HOLDER",
                "USER",
                "DIGEST",
                "STATEMENTS",
                "ACCUMULATED_BYTES",
            ],
            "x",
        )
        rows = [row | {"LAST_SEEN": 0, "PROCESSLIST_ID": n, "BYTES": n, "PEAK_BYTES": n} for n in range(25)]
        ours, seen = fixtures.snapshot("ours-leak"), set()
        for name in ("memdiag_survivors", "memdiag_sessions", "memdiag_digests"):
            ours["sources"][name] = {"source": name, "rows": rows, "error": None}
        for data in (ours, fixtures.snapshot("stock-leak")):
            for name, source in data["sources"].items():
                # The client asks for these in their order.
                if name not in ("digests", "threads", "users", "memdiag_history"):
                    random.Random(1).shuffle(source["rows"])
            for name, block in blocks_of(data).items():
                names = [column.name for column in getattr(block, "columns", ())]
                if (figure := self.ORDERED_BY.get(name)) not in names:
                    continue
                seen.add(name)
                values = [row[names.index(figure)] or 0 for row in block.rows]
                with self.subTest(name):
                    bars = ["RELEASED_BYTES"] if name == "purges" else [figure]
                    self.assertEqual([column.name for column in block.columns if column.bar], bars)
                    self.assertEqual(values, sorted(values, reverse=True))
                    self.assertGreater(values[0], values[-1])
        self.assertEqual(seen, {*self.ORDERED_BY})
        self.assertEqual([len(blocks_of(ours)[name].rows) for name in ("survivors", "sessions-by-pool")], [20, 20])

    def test_pools_by_what_is_resident(self):
        unknown = dict.fromkeys(("LIVE_BYTES", "PEAK_BYTES", "PEAK_TIME", "PURGES", "PURGED_BYTES", "PURPOSE"))
        names = ("COMPONENT", "NAME", "STATE", "RESIDENT_BYTES", "PERCENT")
        states = {("large", "live"): 1, ("large", "dirty"): 2, ("large", "muzzy"): 3, ("large", "fragmentation"): 4}
        states[("small", "live")] = 6
        data = snapshot(
            "memdiag",
            memdiag_pools=[unknown | {"POOL": name, "LIVE_BYTES": 5} for name in ("small", "none", "large")],
            memdiag_ledger=[dict(zip(names, ("pool", *one, held * MIB, 1.0))) for one, held in states.items()],
        )
        pools = blocks_of(data)["pools"]
        self.assertEqual([column.title for column in pools.columns if column.bar], ["live", "fragmentation", "unused"])
        self.assertEqual(
            [row[:5] for row in cells(pools)],
            [
                ["large", "1.00 MiB", "4.00 MiB", "5.00 MiB", "5 B"],
                ["small", "6.00 MiB", "unknown", "0 B", "5 B"],
                ["none", "unknown", "unknown", "unknown", "5 B"],
            ],
        )

    def test_a_part_of_innodb_is_left_out_at_0_and_has_words_for_what_it_lacks(self):
        part = dict.fromkeys(("LIMIT_BYTES", "ITEMS", "ITEM", "POOL", "PART_OF"))
        rows = [
            part | {"COMPONENT": "parked", "BYTES": 0, "NOTE": ""},
            part | {"COMPONENT": "one", "BYTES": 1, "NOTE": "n"},
            part | {"COMPONENT": "unread", "BYTES": None, "NOTE": None},
            {"COMPONENT": "dirty", "BYTES": 2 * MIB, "LIMIT_BYTES": 4 * MIB, "ITEMS": 128, "ITEM": "pages"}
            | {"POOL": "innodb", "PART_OF": "data", "NOTE": "to be written"},
        ]
        self.assertEqual(
            cells(blocks_of(snapshot("memdiag", memdiag_innodb=rows))["innodb"]),
            [
                ["dirty", "2.00 MiB", "4.00 MiB", "128", "pages", "innodb", "data", "to be written"],
                ["one", "1 B", "", "", "", "", "", "n"],
                ["unread", "unknown", "", "", "", "", "", "unknown"],
            ],
        )

    def test_the_monitor_of_innodb_where_there_is_no_table(self):
        rows = [{"NAME": name, "VALUE": 5} for name in ("lock_heaps", "dictionary_memory", "history_list_length", "x")]
        data = stock(500 * MIB, innodb_status=rows)
        self.assertEqual(
            [row[:3] for row in cells(blocks_of(data)["innodb-status"])],
            [["dictionary", "5 B", ""], ["lock heaps", "5 B", ""], ["history list", "", "5"]],
        )
        data["sources"]["innodb_status"] |= {"rows": [], "error": "it took too long"}
        self.assertIn("InnoDB's monitor: unknown, it took too long.", text.render(page_of(data)))
        part = dict.fromkeys(("LIMIT_BYTES", "ITEMS", "ITEM", "POOL", "PART_OF", "NOTE"))
        part |= {"COMPONENT": "one", "BYTES": 1}
        self.assertNotIn("innodb-status", blocks_of(snapshot("memdiag", memdiag_innodb=[part], innodb_status=rows)))

    def test_what_sessions_have_in_pools(self):
        names = ("HOLDER", "PROCESSLIST_ID", "POOL", "BYTES")
        rows = [("session", 8, "session", 2), ("ended", None, "binlog", 5), ("session", 7, "statement", 1)]
        rows += [("session", 7, "session", 4), ("session", 7, "statement", 2), ("session", 9, "session", None)]
        rows = [dict(zip(names, row)) | {"USER": "u", "DIGEST": None} for row in rows]
        found = [
            row[1:2] + row[4:] for row in blocks_of(snapshot("memdiag", memdiag_sessions=rows))["sessions-by-pool"].rows
        ]
        wanted = [[7, 7, "session", 4], [None, 5, "binlog", 5], [8, 2, "session", 2], [9, 0, "session", 0]]
        self.assertEqual(found, wanted)

    def test_statements_users_and_transactions(self):
        digest = {"STATEMENTS": 1200, "ACCUMULATED_BYTES": 5, "LAST_SEEN": 0.0}
        data = snapshot(
            "memdiag",
            memdiag_digests=[digest | {"DIGEST": name, "PEAK_BYTES": 5} for name in ("a", "b", "c", None)],
            digest_texts=[{"DIGEST": "a", "DIGEST_TEXT": "SELECT ?"}, {"DIGEST": "b", "DIGEST_TEXT": None}],
            users=[{"USER": "u", "BYTES": -MIB}, {"USER": None, "BYTES": 5}, {"USER": "n", "BYTES": 0}],
        )
        blocks = blocks_of(data)
        self.assertEqual([row[0] for row in blocks["digests"].rows], ["SELECT ?", "b", "c", "all others"])
        self.assertEqual(cells(blocks["digests"])[0][1:], ["1,200", "5 B", "5 B", "1970-01-01 00:00:00 UTC"])
        self.assertEqual(cells(blocks["users"]), [["u", "-1.00 MiB"], ["background", "5 B"]])
        columns = ("TRX_ID", "PROCESSLIST_ID", "LOCK_BYTES", "ROWS_LOCKED", "ROWS_MODIFIED", "SECONDS")
        open_one = dict(zip(columns, (99, 7, MIB, 1000, 2, 150)))
        (row,) = cells(blocks_of(stock(500 * MIB, transactions=[open_one]))["transactions"])
        self.assertEqual(row, ["99", "7", "1.00 MiB", "1,000", "2", "2 min"])

    def test_instruments_are_in_the_order_of_what_is_known_of_them(self):
        names = ("EVENT_NAME", "COUNTED_BYTES", "LIVE_BYTES")
        rows = [dict(zip(names, row)) for row in (("a", 3, None), ("b", 1, 2), ("c", 9, 4))]
        found = blocks_of(snapshot("memdiag", memdiag_instruments=rows))["instruments"].rows
        self.assertEqual([row[0] for row in found], ["c", "a", "b"])

    def test_what_a_stock_server_does_not_know_of_its_rss(self):
        """50 MiB are of files, and 64 MiB are in the buffer pool."""

        def notes(rss, counted=5 * MIB):
            data = stock(rss, memory=[instrument("memory/sql/THD", counted)])
            (section,) = [section for section in report(data).sections if section.id == "ledger"]
            return [block.text.split(". ")[0].split(":")[0] for block in section.blocks[1:-1]]

        self.assertEqual(notes(200 * MIB), ["81.0 MiB are in neither buffer pool nor Performance Schema"])
        self.assertEqual(notes(114 * MIB, 17 * MIB), ["The counters say 17.0 MiB more than is resident"])
        # Less than nothing is in neither.
        self.assertEqual([notes(114 * MIB, 16 * MIB), notes(119 * MIB)], [[], []])
        for error, reason in ((None, "no instrument counts"), ("it took too long", "it took too long")):
            data = stock(500 * MIB)
            data["sources"]["memory"] = {"source": "memory", "rows": [], "error": error}
            page = words_of(data)
            self.assertIn(f"Nothing is known of the memory besides the buffer pool: {reason}.", page)
            may_not = "this account may not read what Performance Schema counts"
            self.assertEqual(may_not in page, error is not None)


class Charts(unittest.TestCase):
    def history(self, **sources):
        names = ("TIME", "RSS_BYTES", "BUFFER_POOL_BYTES", "DIRTY_BYTES", "SWAP_BYTES", "RSS_PEAK_BYTES")
        rows = ((10.0, 100 * MIB, 5, 90, 0, 120 * MIB), (20.0, 300 * MIB, 6, 400 * MIB, 7, 310 * MIB))
        rows = [dict(zip(names, row)) | {"RSS_PEAK_TIME": 18.0, "RSS_PEAK_SESSION": 4} for row in rows]
        rows.append({"TIME": 30.0, "RSS_BYTES": None, "DIRTY_BYTES": 5, "SWAP_BYTES": 0})
        return snapshot("memdiag", memdiag_history=rows, **sources)

    def lines(self, series):
        return {line.label: line.values for line in series.lines}

    def test_where_the_figures_over_time_are_from(self):
        health = [{"TIME": 5.0, "VM_RSS": MIB, "VM_SWAP": 0}]
        recording = [{"time": 1.0, "rss": 5}, {"time": 2.0, "rss": 6}]
        first = self.history()
        del first["sources"]["memdiag_history"]["rows"][1:]
        for data, recorded, found in (
            (self.history(), recording, "INFORMATION_SCHEMA.MEMDIAG_HISTORY"),
            (first, recording, "the recording"),
            (stock(500 * MIB, health_process=health), None, "health_process"),
            (first, None, "There is no history: memdiag_history_interval_ms is 0."),
            (stock(500 * MIB), None, "This server keeps no history."),
        ):
            (section,) = [one for one in report(data, recorded).sections if one.id == "time"]
            block = section.blocks[0]
            self.assertEqual((block.text if block.kind == "note" else block.source)[: len(found)], found)

    def test_the_history(self):
        data = self.history()
        rss = blocks_of(data)["rss"]
        lines = {
            "RSS": [100 * MIB, 300 * MIB, None],
            "buffer pool": [5, 6, None],
            "unused pages": [90, None, None],  # more than RSS was never written
            "swapped": [0, 7, 0],
        }
        self.assertEqual((rss.times, self.lines(rss)), ([10.0, 20.0, 30.0], lines))
        self.assertEqual([(one.time, one.label) for one in rss.events], [(18.0, "peak: 310 MiB, most in session 4")])
        data["sources"]["memdiag_history"]["rows"][1] |= {"SWAP_BYTES": 0, "RSS_PEAK_SESSION": None}
        rss = blocks_of(data)["rss"]
        self.assertNotIn("swapped", self.lines(rss))
        self.assertEqual([one.label for one in rss.events], ["peak: 310 MiB"])
        self.assertNotIn("runs", blocks_of(data))

    def test_large_purges_are_marked(self):
        def purge(time, held, reason="quiet"):
            unknown = dict.fromkeys(("MICROSECONDS", "REFAULTED_BYTES"))
            return unknown | {"TIME": float(time), "POOL": "innodb", "REASON": reason, "RELEASED_BYTES": held}

        def marked(*purges):
            events = blocks_of(self.history(memdiag_purges=list(purges)))["rss"].events
            return [(one.time, one.label) for one in events if "purge" in one.label]

        said = [(10.0, "purge of innodb (pressure): 0 B"), (30.0, "purge of innodb (quiet): 8.00 MiB")]
        self.assertEqual(marked(purge(30, 8 * MIB), purge(9, 9 * MIB), purge(10, 0, "pressure"), purge(31, GIB)), said)
        self.assertEqual(marked(purge(15, 8 * MIB - 1), purge(16, None)), [])
        purges = [purge(10 + number, (8 + number) * MIB) for number in range(14)]
        self.assertEqual([time for time, _ in marked(*purges)], [float(time) for time in range(12, 24)])

    def test_the_largest_pools_over_time(self):
        """One with more than RSS ever was has pages that were never written."""
        most = {f"p{number}": number * MIB for number in range(1, 10)} | {"unwritten": 301 * MIB, "late": 300 * MIB}
        rows = [{"TIME": 20.0, "POOL": name, "LIVE_BYTES": held} for name, held in most.items()]
        rows += [{"TIME": 10.0, "POOL": name, "LIVE_BYTES": 5} for name in most if name != "late"]
        series = blocks_of(self.history(memdiag_history_pools=rows))["pools-over-time"]
        self.assertEqual("".join(self.lines(series)), "pool latepool p9pool p8pool p7pool p6pool p5pool p4")
        self.assertEqual(self.lines(series)["pool late"], [None, 300 * MIB])
        self.assertIn("never wrote most of it: unwritten.", series.note)
        few = self.history(memdiag_history_pools=[row for row in rows if row["POOL"] in ("p1", "p2")])
        self.assertEqual(list(self.lines(blocks_of(few)["pools-over-time"])), ["pool p2"])


class Headline(unittest.TestCase):
    def test_nothing_is_wrong_only_where_all_could_be_read(self):
        part = {"COMPONENT": "heap", "NAME": "", "STATE": "", "RESIDENT_BYTES": 200 * MIB, "PERCENT": 100.0}
        ours = snapshot("memdiag", memdiag_ledger=[part], memdiag_advice=[])
        note = Finding("note", "", "cache", "a note", "", "")
        plain = "Nothing is wrong: 200 MiB of RSS"
        for data, found, lost, wanted in (
            (stock(200 * MIB), [], "", f"{plain}, and the machine's memory is 16.0 GiB."),
            (stock(200 * MIB), [], "meminfo", f"{plain}."),
            (stock(200 * MIB), [note], "meminfo", "Nothing urgent: 200 MiB of RSS."),
            (stock(200 * MIB), [replace(note, severity="warning"), note], "", "a note"),
            (stock(200 * MIB), [], "process", "Nothing was found to be wrong in what could be read."),
            (ours, [], "", f"{plain}."),
            (ours, [], "memdiag_advice", "Nothing was found to be wrong in what could be read."),
        ):
            sources = data["sources"] | ({lost: {"source": lost, "rows": [], "error": "no"}} if lost else {})
            self.assertEqual(headline(View(data | {"sources": sources}), found), wanted)


class Host(unittest.TestCase):
    def figures(self, data):
        rows = cells(blocks_of(data)["host"])
        return ", ".join(f"{name} {held}" if held else f"{name}: {word}" for _, name, held, word, _ in rows)

    def test_figures_that_are_read_here(self):
        group = {"folder": "/g", "limit": None, "usage": MIB, "peak": None, "oom_kills": 3}
        data = snapshot(
            process=[{"VmRSS": 5 * MIB, "Threads": 40, "oom_score": 674, "Other": 1}],
            meminfo=[{"MemTotal": 16 * GIB, "Other": 1}],
            cgroup=[group, {"folder": "/h", "limit": 9 * MIB, "usage": MIB, "reclaimable_cache": 0}],
            numa=[{"node": "node0", "MemFree": MIB}],
        )
        data["sources"]["pressure"] = {"source": "", "rows": [], "error": "it is off"}
        self.assertEqual(
            self.figures(data),
            "MemTotal 16.0 GiB, VmRSS 5.00 MiB, Threads: 40, oom_score: 674, limit: no limit, usage 1.00 MiB,"
            " reclaimable_cache unknown, peak unknown, oom_kills: 3, limit 9.00 MiB, usage 1.00 MiB,"
            " reclaimable_cache 0 B, peak unknown, node0.MemFree 1.00 MiB",
        )
        self.assertIn("Pressure: unknown, it is off.", words_of(data))
        self.assertNotIn("NUMA: not told", words_of(data))
        del data["sources"]["numa"]
        self.assertIn("NUMA: not told", words_of(data))

    def test_figures_of_the_servers_table(self):
        names = ("SUBJECT", "NAME", "NUMBER", "UNIT", "VALUE", "SOURCE")
        rows = [("process", "VmRSS", 5.0 * MIB, "bytes"), ("process", "VmLib", 5.0, "bytes")]
        rows += [("memory", "MemFree", 7.0, "bytes"), ("memory", "Dirty", 7.0, "bytes"), ("new", "n", None, "%")]
        rows += [("huge_pages", "pool.a", 0.0, "count"), ("huge_pages", "pool.b", 2.0, "count")]
        rows += [("huge_pages", "none", 0.0, "count"), ("pressure", "avg10", 0.12, "%")]
        rows = [dict(zip(names, (*row, None, "f"))) for row in rows]
        rows.append(dict(zip(names, ("cgroup", "limit", None, "bytes", "max", "f"))))
        self.assertEqual(
            self.figures(snapshot("memdiag", memdiag_host=rows)),
            "VmRSS 5.00 MiB, MemFree 7 B, n: unknown, pool.b: 2, none: 0, avg10: 0.12 %, limit: max",
        )


class Events(unittest.TestCase):
    def labels(self, data):
        (series,) = [
            block for section in report(data).sections for block in section.blocks if getattr(block, "id", "") == "rss"
        ]
        return [event.label for event in series.events]

    def test_a_restart(self):
        data = fixtures.snapshot("ours-triggers")
        sources = data["sources"]
        self.assertIn("start; the run before was shut down", self.labels(data))
        sources["memdiag_last_run"]["rows"][0]["SHUT_DOWN"] = "NO"
        self.assertEqual(self.labels(data)[0], "start; the run before was killed")
        older = sources["memdiag_last_run"]["rows"][0] | {"RUN": 2, "SHUT_DOWN": "YES"}
        sources["memdiag_last_run"]["rows"].append(older)
        self.assertEqual(self.labels(data)[0], "start; the run before was killed")
        # The history of an old server has the last hour alone.
        sources["status"]["rows"][0]["uptime"] += 3600
        self.assertNotIn("start", "".join(self.labels(data)))


def with_session_of(name):
    """A stock server whose largest session has this user and host."""
    return stock(
        500 * MIB,
        memory=[instrument("memory/sql/user_var_entry::value", 300 * MIB)],
        threads=[
            {
                "THREAD_ID": 1,
                "PROCESSLIST_ID": 1,
                "USER": name,
                "HOST": name,
                "COMMAND": "Sleep",
                "SECONDS": 1,
                "BYTES": 290 * MIB,
                "HIGH_BYTES": 1,
            }
        ],
    )


class Renderers(unittest.TestCase):
    def test_all_have_the_same_content(self):
        for name in fixtures.names():
            data = fixtures.snapshot(name)
            page = page_of(data)
            forms = {
                "html": unescaped(html.render(page)),
                "text": re.sub(r"\s+", " ", text.render(page)),
                "md": markdown.render(page).replace("\\", ""),
            }
            made = page.reports[0]
            for form, words in forms.items():
                with self.subTest(name, form=form):
                    for finding in made.findings:
                        for statement in finding.statements:
                            # In text it has several lines.
                            of_shell = statement[0].islower() and len(statement) > 60
                            self.assertTrue(not of_shell or form != "text" or statement in words.replace("\\ ", ""))
                            if of_shell and form == "text":
                                continue
                            parts = text.statement_lines(statement) if form == "text" else [statement]
                            for part in parts:
                                self.assertIn(part, words)
                    for fact in made.facts:
                        self.assertIn(shown(fact.value, fact.unit), words)
                    for section in made.sections:
                        for block in section.blocks:
                            if hasattr(block, "title"):
                                self.assertIn(block.title, words if form != "html" else words.replace("\n", " "))

    def test_text_fits_a_terminal_and_cuts_no_figure(self):
        for name in fixtures.names():
            with self.subTest(name):
                page = page_of(fixtures.snapshot(name))
                words = text.render(page)
                for line in words.splitlines():
                    self.assertLessEqual(len(line), 80, line)
                lines = set(re.split(r"\s{2,}|\n", words))
                for section in page.reports[0].sections:
                    for block in section.blocks:
                        for row in block.rows if isinstance(block, Table) else ():
                            for value, column in zip(row, block.columns):
                                if column.unit and value is not None:
                                    self.assertIn(shown(value, column.unit), lines)
                        for part in block.parts if isinstance(block, Parts) else ():
                            self.assertIn(size(part.value), lines)

    def test_long_names_and_many_servers_fit_a_terminal_too(self):
        data = with_session_of("long name \x1b\n" * 40)
        data["label"] = "host-" * 40
        for words in (
            text.render(page_of(data)),
            text.brief(page_of(data)),
            text.render(page_of(*(fixtures.snapshot(name) for name in fixtures.names()))),
        ):
            for line in words.splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_columns_share_the_width_that_is_left(self):
        """A narrow column gets what it wants, and wide ones get equal parts of the rest."""
        words = {"name": "n n " * 4 + "n n", "long": "l " * 40, "longer": "o " * 60}
        grid = text._grid([*words, "size"], [[*words.values(), "12.0 MiB"]], [False, False, False, True])
        lines = text._joined(grid).splitlines()
        self.assertEqual(lines[1].split(), ["-" * 19, "-" * 22, "-" * 23, "-" * 8])
        self.assertEqual([len(line) for line in lines[:3]], [80, 80, 80])
        self.assertTrue(lines[2].endswith("  12.0 MiB"))
        self.assertEqual(lines[0].split(), [*words, "size"])

    def test_parts_have_a_bar_of_their_share(self):
        held = {"all": 110, "half": 50, "none": 3, "less": -5, "lost": None}
        parts = [Part(label, value, "") for label, value in held.items()]
        lines = text._joined(text._parts(Parts("", "t", parts, 100, "RSS", "s"))).splitlines()
        figures = [re.sub(r" +", " ", line.strip()) for line in lines[4:-1]]
        bars = [f"all 110 B 110% {'#' * 15}", f"half 50 B 50% {'#' * 8}", "none 3 B 3.0%", "less -5 B -5.0%"]
        self.assertEqual(figures, [*bars, "lost unknown unknown", "RSS 100 B the sum"])

    def test_findings_in_short_have_numbers(self):
        page = page_of(fixtures.snapshot("ours-leak"))
        page.reports[0].findings *= 5
        lines = text.brief(page).splitlines()
        self.assertEqual([line[:5] for line in lines if re.match(r"...\d\.", line)], [" ! 1.", " ! 2.", " ! 3."])
        self.assertIn("2 more on the page", lines)

    def test_a_part_that_is_larger_than_the_whole_fits_too(self):
        """Figures of two moments, or of a server that miscounts; and an instrument of a component."""
        data = stock(1 << 20, 0, memory=[instrument("memory/sql/THD", 1 << 62), instrument("component/a", 5)])
        self.assertLessEqual(max(map(len, text.render(page_of(data)).splitlines())), 120)

    def test_figures_that_a_server_leaves_out(self):
        for name, source, column in (
            ("stock-prepared-statements", "largest_session", "BYTES"),
            ("ours-cgroup-near-its-limit", "memdiag_last_run", "RUN"),
            ("ours-connection-storm", "memdiag_last_run", "RUN"),
        ):
            data = fixtures.snapshot(name)
            rows = data["sources"][source]["rows"]
            rows[0][column] = None
            with self.subTest(source):
                self.assertTrue(rows[1:])
                self.assertTrue(text.render(page_of(data)))

    def test_a_command_in_several_lines_is_the_same_command(self):
        """systemd escapes a - in a name as \\x2d, so that the path is in quotes; no \\ continues a line there."""
        for path in (r"/sys/fs/cgroup/app-mysql\x2ddev.scope/memory.max", "/a b/" + "it's" * 20, "/plain/" + "x" * 40):
            for length in range(90):
                wanted = "/" + "y" * length + path
                lines = text._statement(f"printf %s {shlex.quote(wanted)}")
                self.assertLessEqual(max(map(len, lines)), 80)
                done = subprocess.run(["sh", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
                self.assertEqual(done.stdout, wanted)

    def test_a_statement_in_several_lines_is_the_same_statement(self):
        def same(words):
            """Without blanks besides strings, of which several in a row are one."""
            whole = re.sub(r"('(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`)|\s+", lambda found: found[1] or " ", words)
            while (merged := re.sub(r"(?<=[\w.|\\])'\s+'(?=\w)", "", whole)) != whole:
                whole = merged
            return re.sub(r"(?<=\.) (?=`)", "", whole)

        statements = [holder.statement for holder in BY_NAME.values() if holder.statement]
        self.assertGreater(max(map(len, statements)), 400)
        statements += [
            TO_END,
            "KILL 1",
            "SELECT '" + "x" * 300 + "'",
            "SELECT 'it''s ' , '" + "ab\\'" * 50 + "'",
            f"ALTER TABLE `{'s' * 64}`.`{'t ``' * 16}` ENGINE = InnoDB",
            "SELECT 'unbalanced",
        ]
        for statement in statements:
            with self.subTest(statement):
                lines = text.statement_lines(statement)
                for line in lines:
                    self.assertLessEqual(len(line), 68, line)
                self.assertEqual(same("\n".join(lines)), same(statement))

    def test_names_of_wide_letters(self):
        """A Chinese letter takes two cells, and an accent of its own takes none."""
        accents = "re\u0301sume\u0301"
        names = ["app", "应用程序的账户名称很长" * 3, f"{accents} 数据库 user", "あ" * 5, "x" * 60]
        rows = [[name, "1.00 MiB", f"所有的语句 of {name}"] for name in names]
        lines = text._grid(["user", "size", "说明"], rows, [False, True, False])
        widths = {cell_width(line) for line in lines if line}
        self.assertEqual(len(widths), 1, lines)
        self.assertLessEqual(max(widths), text.WIDTH)
        # Nothing is lost.
        letters = re.sub(r"[-\s]", "", "".join(lines))
        self.assertEqual(sorted(letters), sorted(re.sub(r"\s", "", "".join(["usersize说明", *map("".join, rows)]))))

        label = "    proof   "
        lines = text._wrap(f"的 {'数据库' * 40} {'x' * 100} {accents}", label, " " * 12)
        self.assertTrue(lines[0].startswith(f"{label}的 数"))
        for line in lines:
            self.assertLessEqual(cell_width(line), text.WIDTH)
            self.assertNotEqual(line[12], "\u0301")
        self.assertTrue(lines[-1].endswith(accents))
        self.assertEqual([cell_width(line) for line in text._title("数据库 at db1", "=")], [13, 13])
        self.assertEqual(cell_width(accents), 6)

    def test_blanks_beside_wide_letters(self):
        """They stay as in a text of narrow ones, whatever letters it has. An accent of its own takes no cell."""
        dice = random.Random(5)
        for _ in range(300):
            gaps = dice.choices((" ", "  ", "\n", "   \n"), k=12)
            words = "".join(gap + "e" * dice.randint(1, 8) for gap in gaps)
            words = dice.choice((words, words.strip())) + dice.choice(("", " "))
            for first, then in (("", ""), ("- ", "    ")):
                lines = wrap(words.replace("e", "e\u0301"), 20, first, then)
                narrow = wrap(words, 20, first, then)
                self.assertEqual([line.replace("\u0301", "") for line in lines], narrow, words)
        self.assertEqual(wrap("  数据  库 a", 8), ["  数据", "库 a"])
        self.assertEqual(wrap("数据\t库", 20), ["数据      库"])
        self.assertEqual(wrap(" \n", 8) + wrap("\u3000", 1), ["\u3000"])

    def test_json_is_read_back(self):
        page = page_of(fixtures.snapshot("ours-idle"))
        data = json.loads(as_json.render(page))
        self.assertEqual(data["reports"][0]["headline"], page.reports[0].headline)

    def test_html_asks_for_nothing(self):
        page = html.render(page_of(fixtures.snapshot("ours-idle")))
        self.assertTrue(page.startswith("<!doctype html>"))
        self.assertIn("default-src 'none'", page)
        without_data = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.S)
        loads = re.findall(r'(?:src|href)\s*=\s*"([^"#][^"]*)"', without_data)
        self.assertEqual([one for one in loads if not one.startswith("data:")], [])
        self.assertNotIn("@import", page)

    def test_names_cannot_become_markup(self):
        evil = "</script><script>alert(1)</script>"
        data = with_session_of(evil)
        page = html.render(page_of(data))
        self.assertNotIn("<script>alert", page)
        self.assertIn("&lt;script&gt;alert", page)
        self.assertNotIn("<script>", markdown.render(page_of(data)).replace("\\<", ""))

    def test_a_terminal_obeys_no_name(self):
        evil = "\x1b]0;owned\x07\x9b2J\r\u202egnp\ud800[/]`|\n# x"
        data = with_session_of(evil)
        data["server"]["comment"] = evil
        data["sources"]["users"] = {"source": "u", "rows": [], "error": evil}
        page = page_of(data)
        page.problems = [evil]
        for render in (text.render, markdown.render):
            words = render(page)
            found = [one for one in words if not one.isprintable() and one != "\n"]
            self.assertEqual(found, [], render)
            self.assertIn("x1b]0;owned", words.replace("\\", ""))
        self.assertNotRegex(markdown.render(page), r"(?m)^# x")
        page.reports[0].findings[0].statements = ["KILL 1\n```\n# x"]
        self.assertNotRegex(markdown.render(page), r"(?m)^# x")

    def test_exact_figures_are_in_the_page(self):
        page = page_of(fixtures.snapshot("ours-idle"))
        document = json.loads(as_json.render(page))
        found = re.findall(r'<data value="([^"]*)" data-at="([^"]*)"', html.render(page))
        self.assertGreater(len(found), 200)
        for value, place in found:
            node = document
            for step in place.split("/"):
                node = node[int(step)] if step.isdigit() else node[step]
            self.assertEqual(str(node), value, place)

    def test_several_servers_are_compared(self):
        names = ("ours-idle", "stock-idle", "mariadb-idle")
        page = page_of(*(fixtures.snapshot(name) for name in names))
        page.problems = ["the host 'x' is not known"]
        for words in (html.render(page), text.render(page), markdown.render(page)):
            self.assertIn("verdict", words)
            self.assertIn("not known", words)

    def test_a_server_that_tells_nothing_still_has_a_report(self):
        data = fixtures.snapshot("stock-idle")
        for source in data["sources"].values():
            source.update(rows=[], error="this account may not read it")
        words = text.render(page_of(data))
        self.assertIn("unknown", words)
        self.assertIn("this account may not read it", words)
        html.render(page_of(data))


class FileName(unittest.TestCase):
    def test_the_first_server_and_the_time(self):
        page = Page("Memory", [report(stock(600 * MIB)), report(fixtures.snapshot("ours-idle"))], [], [])
        page.reports[0].label, page.reports[0].time = "db 1:3306/", 60.0
        self.assertEqual(file_name(page), "memdiag-db-1-3306-19700101-000100.html")


class Survivors(unittest.TestCase):
    def test_it_says_where_they_are_not_counted(self):
        for flavour, value, said in (("memdiag", "OFF", True), ("memdiag", "ON", False), ("mysql", "OFF", False)):
            data = stock(600 * MIB, variables=[{"memdiag_scope_survivors": value}])
            data["server"]["flavour"] = flavour
            words = text.render(page_of(data))
            self.assertEqual("What statements leave behind is not counted" in words, said, (flavour, value))


class Anonymous(unittest.TestCase):
    NAMES = ("billing_app", "db-prod-7.corp", "customers", "invoices", "/srv/mysql-7")

    def test_no_name_is_left(self):
        user, host, schema, table, path = self.NAMES
        data = stock(
            500 * MIB,
            memory=[instrument("memory/memory/HP_PTRS", 300 * MIB)],
            memory_tables=[{"TABLE_SCHEMA": schema, "TABLE_NAME": table, "BYTES": 5, "TABLE_ROWS": 1}],
            threads=[
                {
                    "THREAD_ID": 1,
                    "PROCESSLIST_ID": 9,
                    "USER": user,
                    "HOST": host,
                    "DB": schema,
                    "COMMAND": "Sleep",
                    "SECONDS": 1,
                    "BYTES": 5,
                    "HIGH_BYTES": 1,
                }
            ],
            digests=[
                {
                    "DIGEST": "abc",
                    "SCHEMA_NAME": schema,
                    "DIGEST_TEXT": f"SELECT * FROM {table}",
                    "STATEMENTS": 1,
                    "PEAK_BYTES": 5,
                    "ACCUMULATED_BYTES": None,
                }
            ],
            memdiag_advice=[
                {
                    "SEVERITY": "note",
                    "SUBSYSTEM": "x",
                    "VERDICT": "cache",
                    "EVIDENCE": f"{user} on {host}",
                    "REMEDY": "none",
                }
            ],
            variables=[{"hostname": host, "datadir": path, "max_connections": 5}],
        )
        data["label"], data["server"]["hostname"] = f"{host}:3307", host
        data["server"]["account"] = f"{user}@{host}"
        hidden = anonymized(data)
        for words in (html.render(page_of(hidden)), text.render(page_of(hidden)), as_json.render(page_of(hidden))):
            for name in self.NAMES:
                self.assertNotIn(name, words)
        self.assertIn("/proc/<pid>/status", text.render(page_of(hidden)))

    def test_control_groups_digests_plugins_and_refusals(self):
        digest = "3f" * 32
        data = stock(
            500 * MIB,
            cgroup=[{"folder": "/sys/fs/cgroup/shop.slice/mysql@till.service", "limit": None, "usage": 5}],
            memdiag_host=[
                {
                    "SUBJECT": "cgroup",
                    "NAME": "effective_limit",
                    "NUMBER": 5.0,
                    "VALUE": None,
                    "UNIT": "bytes",
                    "SOURCE": "/sys/fs/cgroup/memory/shop.slice/memory.limit_in_bytes",
                },
                {
                    "SUBJECT": "device",
                    "NAME": "mount",
                    "NUMBER": None,
                    "VALUE": "/srv/our data/till",
                    "UNIT": "",
                    "SOURCE": "/proc/self/mountinfo",
                },
            ],
            memdiag_digests=[
                {"DIGEST": digest, "STATEMENTS": 1, "PEAK_BYTES": 5, "ACCUMULATED_BYTES": 5, "LAST_SEEN": 1.0}
            ],
            memdiag_profile=[{"LIVE_BYTES": 5, "DIGEST": digest, "FOLDED": "main;till_udf.so+0x12;mysqld+0x34"}],
        )
        data["sources"]["digest_texts"] = {
            "source": f"SELECT DIGEST FROM d WHERE DIGEST IN ('{digest}')",
            "rows": [],
            "error": "SELECT command denied to user 'bob'@'till-7' for table 'shop'",
        }
        hidden = anonymized(data)
        words = as_json.render(page_of(hidden))
        for name in ("shop", "till", digest, "bob", "our data"):
            self.assertNotIn(name, words)
        # The figure's file is still named, and equal digests are equal.
        self.assertIn("memory.limit_in_bytes", words)
        self.assertIn("mysqld+0x34", words)
        sources = hidden["sources"]
        profiled = sources["memdiag_profile"]["rows"][0]["DIGEST"]
        self.assertEqual(profiled, sources["memdiag_digests"]["rows"][0]["DIGEST"])
        self.assertIn(profiled, sources["digest_texts"]["source"])

    def test_mount_options_name_no_host_account_or_folder(self):
        values = (
            "rw,vers=4.2,rsize=1048576,proto=tcp,clientaddr=10.1.2.9,addr=10.1.2.5,hard",
            'rw,username=backup,domain=CORP,uid=0,context="system_u:t:s0:c1,c2",empty=',
            "rw,lowerdir=/var/lib/till\\,old:/l/AB,data=ordered,subvol=/@till",
        )
        rows = [
            {
                "SUBJECT": "device",
                "NAME": name,
                "NUMBER": None,
                "VALUE": value,
                "UNIT": "",
                "SOURCE": "/proc/self/mountinfo",
            }
            for value in values
            for name in ("mount_options", "file_system_options")
        ]
        hidden = anonymized(stock(500 * MIB, memdiag_host=rows))
        found = [row["VALUE"] for row in hidden["sources"]["memdiag_host"]["rows"]]
        self.assertEqual(found[::2], found[1::2])
        self.assertEqual(
            found[::2],
            [
                "rw,vers=4.2,rsize=1048576,proto=tcp,clientaddr=option1,addr=option2,hard",
                "rw,username=option3,domain=option4,uid=0,context=option5,empty=",
                "rw,lowerdir=option6,data=ordered,subvol=option7",
            ],
        )

    def test_the_flame_graph_stays_a_picture(self):
        svg = '<svg width="9" height="4"><title>t</title><rect width="9"/><text>a/b; x+0x1</text></svg>'
        data = stock(500 * MIB, memdiag_profile_svg=[{"SVG": svg}])
        hidden = anonymized(data)["sources"]["memdiag_profile_svg"]["rows"][0]["SVG"]
        self.assertEqual(hidden, svg.replace("x+0x1", "module1+0x1"))

    def test_servers_of_one_page_have_stand_ins_of_their_own(self):
        names = Names()
        one, other = (stock(500 * MIB) for _ in range(2))
        one["label"], other["label"] = "db1", "db2"
        labels = [anonymized(data, names)["label"] for data in (one, other)]
        self.assertEqual(labels, ["server1", "server2"])
        line = names.problem(
            "db3:3307 refused the login of 'bob': Access denied for user 'bob'@'10.0.0.7'",
            {"server": "db3:3307", "host": "db3", "user": "bob"},
        )
        self.assertEqual(line, "server3 refused the login of 'user1': Access denied for user 'user1'@'host3'")

    def test_a_line_of_a_refusing_server_has_no_names(self):
        target = Target(host="db9.corp", socket="/no/such/till.sock", user="bob")
        page, problems = collected([target], None, True)
        self.assertIn("till.sock", problems[0])
        self.assertNotIn("till", page.problems[0])

    def test_figures_stay(self):
        data = fixtures.snapshot("ours-leak")
        before, after = report(data), report(anonymized(data))
        self.assertEqual([fact.value for fact in before.facts], [fact.value for fact in after.facts])
