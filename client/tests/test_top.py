"""The live screen with names that are markup, and with a server that refuses."""

import contextlib
import io
import itertools
import os
import threading
import time
import unittest
from unittest import mock

from memdiag.cli import parser
from memdiag.collect.sample import Sampler
from memdiag.commands import top
from memdiag.commands.top import Screen, layout
from memdiag.connect.options import Target
from memdiag.connect.session import Gone, Refused
from memdiag.model.units import percent
from memdiag.problem import Problem

from tests.old_server import MySQLError, OldServer
from tests.versions import SERVERS

EVIL = "[/]\x1b]0;owned\x07[red]\n"


def drawn(screen: Screen, height: int = 32, width: int = 110) -> str:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=width, height=height, color_system=None).print(layout(screen, height, width))
    return out.getvalue()


class Names(unittest.TestCase):
    def setUp(self):
        try:
            import rich  # noqa: F401
        except ImportError:
            self.skipTest("rich is not installed")

    def test_no_name_is_markup_or_obeyed(self):
        session = {"PROCESSLIST_ID": 7, "USER": EVIL, "COMMAND": EVIL, "SECONDS": None, "BYTES": None}
        screen = Screen(Target(host=EVIL), sessions=[session, session | {"USER": None}])
        screen.sample = {"pools": {EVIL: [5, 5]}, "instruments": {EVIL: 5}}
        screen.purges = [{"TIME": 0.0, "POOL": EVIL, "REASON": EVIL, "RELEASED_BYTES": 5}]
        screen.digests = [{"DIGEST": EVIL, "STATEMENTS": 5, "PEAK_BYTES": 5}]
        for screen.down, screen.message in (("", ""), (EVIL, EVIL)):
            for screen.sample["pools"] in ({EVIL: [5, 5]}, {}):
                words = drawn(screen)
                self.assertEqual([one for one in words if not one.isprintable() and one != "\n"], [])
                self.assertIn("[/]\\x1b]0;owned", words)
                self.assertNotIn("None", words)
                self.assertLessEqual(len(words.rstrip("\n").split("\n")), 32)


class Narrow(unittest.TestCase):
    setUp = Names.setUp

    def test_names_shrink_and_figures_do_not(self):
        long = "memory/innodb/a_name_that_is_far_longer_than_the_columns_of_any_terminal_" * 2
        session = {"PROCESSLIST_ID": 1234567, "USER": long, "COMMAND": long, "SECONDS": 7200, "BYTES": 9 << 20}
        screen = Screen(Target(host="db1"), sessions=[session])
        screen.sample = {"rss": 1 << 30, "limit": 1 << 31, "buffer_pool": 100 << 20, "swap": 3 << 20, "sessions": 5}
        screen.purges = [{"TIME": 0.0, "POOL": long, "REASON": long, "RELEASED_BYTES": 77 << 20}]
        for screen.sample["pools"], figures in (
            ({long: [128 << 20, 64 << 20]}, ("128 MiB", "64.0 MiB")),
            ({}, ("128 MiB",)),
        ):
            screen.sample["instruments"] = {long: 128 << 20}
            for width in (80, 50):
                with self.subTest(figures, width=width):
                    words = drawn(screen, 40, width)
                    for figure in (*figures, "9.00 MiB", "77.0 MiB", "1234567", "100 MiB", "3.00 MiB", "UTC"):
                        self.assertIn(figure, words)
                    self.assertLessEqual(max(map(len, words.split("\n"))), width)

    def test_allocated_bytes_are_called_so(self):
        session = {"PROCESSLIST_ID": 7, "USER": "u" * 99, "COMMAND": "c" * 99, "SECONDS": 1, "BYTES": 9 << 20}
        screen = Screen(Target(host="db1"), sessions=[session])
        screen.digests = [{"DIGEST": "d" * 64, "STATEMENTS": 5, "PEAK_BYTES": 5}]
        for width in (80, 50):
            words = drawn(screen, 40, width)
            self.assertRegex(words, r"session +user +command +for +allocated")
            self.assertRegex(words, r"digest +times +peak allocated")

    def test_an_account_without_rights_sees_why_lists_are_empty(self):
        for code, seen in ((1142, True), (1227, True), (1054, False)):
            server = mock.Mock(ours=True, server={"flavour": "mysql"})
            server.rows.side_effect = Refused(code, "no")
            screen = Screen(Target(host="db1"), _session=server, _sampler=server)
            server.sample.return_value = {"time": 1.0}
            screen.refresh()
            with self.subTest(code):
                self.assertEqual("this account needs PROCESS" in drawn(screen), seen)

    def test_the_keys_of_a_question_are_seen(self):
        screen = Screen(Target(host="db1"), _sampler=mock.Mock(ours=True))
        screen.sample = {"unused": 1234 << 20, "sessions": None}
        screen.key("p")
        words = drawn(screen, 24, 40)
        self.assertIn("y: give back 1.21 GiB, other keys: no", words)
        self.assertNotIn("None", words)

    def test_a_question_stays_until_it_is_answered(self):
        """The end of a report, which the worker makes, fell into the question before a purge."""
        tasks = []
        screen = Screen(Target(host="db1"), _sampler=mock.Mock(ours=True), work=tasks.append)
        with mock.patch("memdiag.commands.report.collected", side_effect=Problem("no answer")):
            screen.key("r")
            screen.key("p")
            question = screen.question
            tasks.pop()()
        self.assertEqual((screen.question, screen.message), (question, "no report: no answer"))
        self.assertIn("y: give back", drawn(screen))
        screen.key("n")
        self.assertEqual((screen.question, screen.message, tasks), ("", "not purged", []))
        self.assertIn("not purged", drawn(screen))

    def test_time_to_the_limit_counts_the_use_of_all(self):
        screen = Screen(Target(host="db1"))
        screen.history = [(float(second), float((1 << 30) + second * (1 << 20))) for second in range(100)]
        screen.sample = {"rss": 1 << 30, "limit": 16 << 30, "used": 15 << 30}
        self.assertAlmostEqual(screen.seconds_to_limit, 1024, 0)
        screen.sample["used"] = 17 << 30
        self.assertEqual(screen.seconds_to_limit, 0)
        for name in ("used", "rss", "limit"):
            with mock.patch.dict(screen.sample, {name: None}):
                self.assertIsNone(screen.seconds_to_limit, name)

    def test_noise_is_no_trend(self):
        """RSS of 1 GB has to grow by 20 kB/s, and along a line."""
        screen = Screen(Target(host="db1"))
        screen.sample = {"rss": 1_000_000_000, "limit": 1_000_000_000, "used": 0}
        for rss, seconds in (
            ((0, 20_000, 40_000, 60_000), 50_000),
            ((0, 19_900, 39_800, 59_700), None),
            ((60_000, 40_000, 20_000, 0), None),
            ((0, 180_000, 120_000, 300_000), 11_905),  # fits by 0.75
            ((0, 190_000, 110_000, 300_000), None),  # by 0.6975
        ):
            screen.history = [(float(second), float(one)) for second, one in enumerate(rss)]
            left = screen.seconds_to_limit
            self.assertEqual(None if left is None else round(left), seconds, rss)


WHOLE = """\
memdiag top  01:02:03 UTC  up 2 h  db1
RSS 768 MiB of 1.00 GiB ██████████████████████░░░░░░░░ 75%
grown +68.0 MiB in view, no trend to the limit; unused 22.0 MiB
buffer pool 128 MiB, swapped 0 B, sessions 120
pool           live    unused
session     500 MiB   unknown
innodb      unknown  20.0 MiB
statement  1.00 MiB  2.00 MiB
general    2.00 MiB       0 B
session  user     command    for  allocated
      7  app      Query    2 min    400 MiB
   1234  unknown  Sleep      5 s    unknown
last purges  pool    reason  released
01:00:00     innodb  quiet   33.0 MiB
digest                times  peak allocated
0123456789abcdef0123  12345        77.0 MiB
 ordered by memory  |  o order  |  p purge  |  r report  |  q quit
"""


class Full(unittest.TestCase):
    setUp = Names.setUp

    def test_the_whole_screen(self):
        mib = 1 << 20
        screen = Screen(Target(host="db1"), message="ordered by memory")
        screen.sample = {"time": 3723.0, "uptime": 7300, "rss": 768 * mib, "limit": 1024 * mib, "used": 800 * mib}
        screen.sample |= {"buffer_pool": 128 * mib, "swap": 0, "sessions": 120, "unused": 22 * mib}
        pools = {"general": [2 * mib, 0], "statement": [mib, 2 * mib], "session": [500 * mib, None]}
        screen.sample["pools"] = pools | {"innodb": [None, 20 * mib]}
        screen.history = [(0.0, 700.0 * mib), (2.0, 768.0 * mib)]
        names = ("PROCESSLIST_ID", "USER", "COMMAND", "SECONDS", "BYTES")
        rows = ((7, "app", "Query", 130, 400 * mib), (1234, None, "Sleep", 5, None))
        screen.sessions = [dict(zip(names, row)) for row in rows]
        screen.purges = [{"TIME": 3600.0, "POOL": "innodb", "REASON": "quiet", "RELEASED_BYTES": 33 * mib}]
        screen.digests = [{"DIGEST": "0123456789abcdef" * 4, "STATEMENTS": 12345, "PEAK_BYTES": 77 * mib}]
        lines = [line.rstrip() for line in drawn(screen, 40, 90).splitlines()]
        self.assertEqual("\n".join(lines) + "\n", WHOLE)
        screen.sample |= {"pools": {}, "instruments": {"small": 5, "large": mib}}
        self.assertRegex(drawn(screen, 40, 90), r"instrument +counted *\nlarge +1.00 MiB *\nsmall +5 B *\n")

    def test_the_bar_of_rss(self):
        screen = Screen(Target(host="db1"))
        for width, used, colour, full, empty in (
            (90, 75, "green", 22, 8),
            (90, 76, "yellow", 23, 7),
            (90, 91, "red", 27, 3),
            (90, 120, "red", 30, 0),
            (40, 50, "green", 5, 5),
            (300, 99, "red", 50, 0),
        ):
            screen.sample = {"rss": used, "limit": 100}
            bar = f"[{colour}]{'█' * full}[/][dim]{'░' * empty}[/]"
            self.assertIn(f" {bar} {percent(used)}", top._head(screen, width)[1], (width, used))

    def test_lists_share_the_lines_of_the_terminal(self):
        session = {"PROCESSLIST_ID": 7, "USER": "u", "COMMAND": "Sleep", "SECONDS": 1, "BYTES": 5}
        screen = Screen(Target(host="db1"), sessions=[session] * 100)
        screen.sample = {"pools": {f"pool{number}": [5, 5] for number in range(30)}}
        screen.purges = [{"TIME": 0.0, "POOL": "purged", "REASON": "r", "RELEASED_BYTES": 5}] * 9
        screen.digests = [{"DIGEST": "digest", "STATEMENTS": 5, "PEAK_BYTES": 5}] * 9
        for height in range(18, 70):
            words = drawn(screen, height)
            self.assertLessEqual(len(words.rstrip("\n").split("\n")), height)
            self.assertIn("Sleep", words)
        self.assertIn("purged", words)
        self.assertIn("digest", words)
        for height, lines in ((12, (2, 1, 0, 0)), (24, (6, 8, 0, 0)), (48, (16, 10, 4, 4)), (60, (21, 17, 4, 4))):
            words = drawn(screen, height)
            shown = tuple(words.count(one) for one in ("\npool", "Sleep", "purged ", "digest   "))
            # The titles are "pool", and "digest" before a list of them.
            self.assertEqual((shown[0] - 1, *shown[1:]), lines, height)


class Keys(unittest.TestCase):
    def test_only_its_key_ends_it_and_no_other_does_anything(self):
        screen = Screen(Target(host="db1"))
        for key in ("x", "y", "Q", ""):
            screen.key(key)
            self.assertEqual((screen.ended, screen.question, screen.message), (False, "", ""), key)
        screen.key("q")
        self.assertTrue(screen.ended)

    def test_it_does_not_drop_work_without_a_word(self):
        for keys, undone in (("r", "a report"), ("py", "a purge"), ("rpy", "a report and a purge")):
            tasks = []
            screen = Screen(Target(host="db1"), _sampler=mock.Mock(ours=True), work=tasks.append)
            with self.subTest(keys), mock.patch.object(screen, "_report"), mock.patch.object(screen, "_purge"):
                for key in keys + "q":
                    screen.key(key)
                self.assertEqual((screen.ended, screen.message[-len(undone) :]), (False, undone))
                screen.key("x")  # any other key takes the first q back
                screen.key("q")
                self.assertFalse(screen.ended)
                screen.key("q")
                self.assertTrue(screen.ended)
                screen.ended = False
                for task in tasks:
                    task()
                screen.key("q")
                self.assertTrue(screen.ended)

    def test_a_look_is_no_work_of_a_key(self):
        screen = Screen(Target(host="db1"), work=lambda task: None)
        for key in "oq":
            screen.key(key)
        self.assertTrue(screen.ended)


class Stopped(unittest.TestCase):
    """A server that is stopped answers after a time-out of 30 s, or not at all."""

    setUp = Names.setUp

    def shown(
        self, screen: Screen, out: io.StringIO | None = None
    ) -> tuple[threading.Thread, int, list[BaseException]]:
        """Runs the screen; its keys are written into the handle."""
        read, write = os.pipe()
        faults: list[BaseException] = []

        def show() -> None:
            try:
                top._show(screen, 0.2)
            except BaseException as fault:
                faults.append(fault)

        with contextlib.ExitStack() as stack:
            stack.callback(os.close, read)
            stack.callback(os.close, write)
            stack.enter_context(mock.patch.object(top, "_raw_keys", lambda: contextlib.nullcontext(read)))
            stack.enter_context(mock.patch("sys.stdout", out or io.StringIO()))
            self.addCleanup(stack.pop_all().close)
        thread = threading.Thread(target=show, daemon=True)
        thread.start()
        return thread, write, faults

    def test_keys_are_obeyed_while_it_is_waited_for(self):
        asked, answers = threading.Event(), threading.Event()
        self.addCleanup(answers.set)

        def hang() -> None:
            asked.set()
            answers.wait()

        screen = Screen(Target(host="db1"))
        with mock.patch.object(screen, "refresh", hang):
            thread, keys, faults = self.shown(screen)
            self.assertTrue(asked.wait(60))
            os.write(keys, b"oq")
            thread.join(20)
            self.assertFalse(thread.is_alive())
        self.assertEqual((screen.ended, screen.order, faults), (True, "time", []))

    def test_it_says_how_long_it_waits(self):
        words = []
        screen = Screen(Target(host="db1"))
        screen.sample = {"rss": 5 << 20}

        def hang() -> None:
            for waited in (2, 7):
                screen.asked = time.monotonic() - waited
                words.append(drawn(screen))
            raise Gone("after 30 s")

        with mock.patch.object(screen, "_look", hang):
            for _ in range(2):  # with and without the figures of an earlier look
                screen.refresh()
                words.append(drawn(screen))
        self.assertEqual(["no answer for 7 s" in one for one in words], [False, True, False] * 2)
        self.assertEqual(["RSS 5.00 MiB" in one for one in words], [True, True, *[False] * 4])

    def test_a_fault_ends_it(self):
        screen = Screen(Target(host="db1"))
        with mock.patch.object(screen, "refresh", side_effect=LookupError("a fault")):
            thread, _, faults = self.shown(screen)
            thread.join(20)
        self.assertEqual([str(fault) for fault in faults], ["a fault"])

    def test_the_screen_is_drawn_before_a_key_is_obeyed(self):
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        out = Terminal()
        screen = Screen(Target(host="db1"))
        screen.message = "a message"
        with mock.patch.dict(os.environ, {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"}):
            thread, keys, faults = self.shown(screen, out)
            os.write(keys, b"q")
            thread.join(20)
        self.assertEqual((thread.is_alive(), faults), (False, []))
        self.assertIn("a message", out.getvalue())

    def looks(self, every: float, longest_look: float, question: str = "") -> list[float]:
        """The moments of looks in 30 seconds. The clock goes on while the screen waits for a key."""
        now, found = 0.0, []

        class Worker:
            def __call__(self, look):
                look()

            def is_busy(self):
                return bool(found) and now < found[-1] + longest_look

        def wait_for_key(handles, _, __, seconds):
            nonlocal now
            self.assertTrue(0 <= seconds <= 0.5)
            now += seconds
            return handles if now > 30 else [], [], []

        clock = mock.Mock(wraps=time)
        clock.monotonic = lambda: now
        screen = Screen(Target(host="db1"), question=question)
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        os.write(write, b"nq")
        with (
            mock.patch.object(top, "time", clock),
            mock.patch.object(top, "_Worker", Worker),
            mock.patch.object(top.select, "select", wait_for_key),
            mock.patch.object(top, "_raw_keys", lambda: contextlib.nullcontext(read)),
            mock.patch.object(screen, "refresh", lambda: found.append(now)),
            mock.patch("sys.stdout", io.StringIO()),
        ):
            top._show(screen, every)
        return found

    def test_a_pause_is_between_the_end_of_a_look_and_the_next(self):
        for longest_look in (0, 2):
            found = self.looks(5.2, longest_look)
            self.assertEqual(len(found), 4 if longest_look else 5)
            self.assertAlmostEqual(found[0], 5.2)
            for before, after in itertools.pairwise(found):
                # It sees each tenth of a second whether the look has ended.
                self.assertAlmostEqual(after - before, longest_look + 5.2, delta=0.11 if longest_look else 1e-6)

    def test_a_question_is_not_overtaken_by_a_look(self):
        self.assertEqual(self.looks(5.2, 0, question="y or n"), [])

    def test_no_report_is_begun_at_the_end(self):
        """Its file would be left half written."""
        screen = Screen(Target(host="db1"))
        thread, keys, _ = self.shown(screen)
        os.write(keys, b"q")
        thread.join(20)
        self.assertFalse(screen.writing.acquire(blocking=False))


class Ceiling(unittest.TestCase):
    setUp = Names.setUp

    def test_one_line(self):
        screen = Screen(Target(host="db1"))
        screen.sample = {"ceiling": {"level": 2, "target": 1 << 30, "left": 64 << 20, "parked": 3 << 20, "ended": 4}}
        self.assertIn("ceiling yellow: 64.0 MiB left of 1.00 GiB, parked 3.00 MiB, ended 4", drawn(screen))
        screen.sample["ceiling"] = {"level": 9, "target": None, "left": None, "parked": None, "ended": None}
        self.assertIn("ceiling 9: unknown left of unknown", drawn(screen))

    def test_servers_without_it(self):
        self.assertNotIn("ceiling", drawn(Screen(Target(host="db1"))))


class Looks(unittest.TestCase):
    def look(self, ours: bool, *times: float, flavour: str = "mysql", **more: str) -> tuple[Screen, list[str]]:
        server = mock.Mock(ours=ours, server={"flavour": flavour})
        server.sample.side_effect = [{"time": time, "rss": 5000 + time} for time in times]
        server.rows.side_effect = lambda statement: [{"OF": statement.split("FROM ")[1].split()[0]}]
        screen = Screen(Target(host="db1"), _session=server, _sampler=server, **more)
        for _ in times:
            screen.refresh()
        return screen, [call.args[0] for call in server.rows.call_args_list]

    def test_only_a_server_with_memdiag_is_asked_for_its_lists(self):
        screen, asked = self.look(True, 1.0)
        self.assertEqual(screen.purges, [{"OF": "information_schema.MEMDIAG_PURGES"}])
        self.assertEqual(screen.digests, [{"OF": "information_schema.MEMDIAG_DIGESTS"}])
        screen, asked = self.look(False, 1.0)
        self.assertEqual((screen.purges, screen.digests, len(asked)), ([], [], 1))

    def test_sessions_come_in_the_order_that_was_chosen(self):
        for flavour, table in (("mysql", "performance_schema.threads"), ("mariadb", "information_schema.PROCESSLIST")):
            for order, column in (("memory", "BYTES"), ("time", "SECONDS")):
                screen, (asked,) = self.look(False, 1.0, flavour=flavour, order=order)
                self.assertEqual(screen.sessions, [{"OF": table}])
                self.assertIn(f"ORDER BY {column} DESC", asked)

    def test_five_minutes_are_in_view(self):
        screen, _ = self.look(False, 1.0, 2.0, 301.0)
        self.assertEqual((screen.history[0], screen.growth), ((1.0, 5001.0), 300))
        screen, _ = self.look(False, 1.0, 2.0, 302.0)
        self.assertEqual((screen.history[0], screen.growth), ((2.0, 5002.0), 300))
        self.assertIsNone(Screen(Target(host="db1")).growth)


class Begin(unittest.TestCase):
    setUp = Names.setUp

    def test_a_server_that_does_not_answer_is_told_without_a_screen(self):
        options = parser().parse_args(["top", "--no-defaults", "-h", "db1"])
        for down in ("it refused the login", ""):
            with (
                mock.patch("sys.stdin.isatty", lambda: True),
                mock.patch("sys.stdout", mock.Mock(isatty=lambda: True)),
                mock.patch.object(Screen, "refresh", lambda screen, down=down: setattr(screen, "down", down)),
                mock.patch.object(top, "_show", side_effect=KeyboardInterrupt) as show,
                self.assertRaisesRegex(Problem, down) if down else contextlib.nullcontext(),
            ):
                options.run(options)
            self.assertEqual(show.called, not down)


class Again(unittest.TestCase):
    def test_a_server_that_was_started_anew_has_not_grown_from_what_it_had(self):
        screen = Screen(Target(host="db1", ssl_mode="DISABLED"))
        gone = [Gone("it was ended"), Gone("it went away")]
        samples = [{"time": 1.0, "rss": 9 << 30}, *gone, {"time": 5.0, "rss": 1 << 30}]
        with (
            mock.patch("memdiag.connect.session.pymysql", lambda: OldServer(SERVERS[0])),
            mock.patch.object(Sampler, "sample", side_effect=samples),
        ):
            screen.refresh()
            screen.purges = screen.digests = [{"TIME": 0.5}]
            screen.refresh()
            self.assertEqual(screen.down, "it went away")
            screen.refresh()
        self.assertEqual((screen.growth, screen.purges, screen.digests), (0, [], []))
        screen.close()

    def test_a_server_that_ended_the_session_is_up_and_has_grown(self):
        """wait_timeout, or a KILL."""
        for uptime, other, growth in ((110, {}, 1 << 30), (3, {}, 0), (110, {"server_uuid": "b"}, 0)):
            server = OldServer(SERVERS[0])
            samples = [
                {"time": 1.0, "uptime": 100, "rss": 1 << 30},
                Gone("it was ended"),
                {"time": 11.0, "uptime": uptime, "rss": 2 << 30},
            ]
            screen = Screen(Target(host="db1", ssl_mode="DISABLED"), every=20_000)
            variables = server.sources["variables"]["rows"][0]
            with (
                self.subTest(uptime=uptime, **other),
                mock.patch("memdiag.connect.session.pymysql", lambda server=server: server),
                mock.patch.object(Sampler, "sample", side_effect=samples),
                mock.patch.dict(variables, {"server_uuid": "a"}),
            ):
                screen.refresh()
                with mock.patch.dict(variables, other):
                    screen.refresh()
                self.assertEqual((screen.down, screen.growth), ("", growth))
                self.assertEqual(server.sent.count("SET SESSION wait_timeout = 60000"), 2)
                screen.close()


class Receipt(unittest.TestCase):
    def test_what_was_given_back(self):
        text = '{"released_bytes": 34603008, "microseconds": 12345}'
        screen = Screen(Target(host="db1"), _session=mock.Mock(rows=lambda _: [{"RECEIPT": text}]))
        with mock.patch.object(screen, "refresh") as refresh:
            screen._purge()
        self.assertEqual(screen.message, "given back: 33.0 MiB in 12.3 ms")
        refresh.assert_called_once()

    def test_what_is_no_receipt_ends_nothing(self):
        for text in ("", "[" * 100_000, "5", "{}", '{"released_bytes": 1, "microseconds": null}', None):
            screen = Screen(Target(host="db1"), _session=mock.Mock(rows=lambda _, text=text: [{"RECEIPT": text}]))
            with self.subTest(str(text)[:20]), mock.patch.object(screen, "refresh"):
                screen._purge()
                self.assertEqual(screen.message, "not purged: the server sent no receipt")


class Refusal(unittest.TestCase):
    def test_a_server_that_refuses_is_told(self):
        server = OldServer(SERVERS[0])
        refused = mock.patch.object(server, "answer", side_effect=MySQLError(1820, "reset your password"))
        screen = Screen(Target(host="db1", ssl_mode="DISABLED"))
        with refused, mock.patch("memdiag.connect.session.pymysql", lambda: server):
            screen.refresh()
        self.assertIn("reset your password", screen.down)
