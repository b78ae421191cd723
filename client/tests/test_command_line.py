"""What a person sees first, several servers at once, recordings of other servers, and other systems."""

import contextlib
import copy
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

from memdiag import cli, recording
from memdiag.commands import report as command
from memdiag.connect.options import Target
from memdiag.model.words import cell_width
from memdiag.problem import Problem, WrongOption
from memdiag.progress import Progress
from memdiag.recording import FORMAT, Recording
from memdiag.render import text
from memdiag.render.page import Page
from memdiag.report.build import report

from tests import fixtures

CLIENT = Path(__file__).resolve().parents[1]


class First(unittest.TestCase):
    def test_help_names_the_page_that_describes_the_program(self):
        self.assertTrue(cli.parser().format_help().endswith(f"{cli.MANUAL}\n"))
        self.assertTrue(cli.MANUAL.read_text(encoding="utf-8").startswith("#"))

    def test_the_answer_in_short_fits_a_terminal(self):
        for name in ("ours-triggers", "stock-leak", "ours-idle", "mariadb-idle"):
            with self.subTest(name):
                one = report(fixtures.snapshot(name))
                words = text.brief(Page("", [one], [], []))
                for line in words.splitlines():
                    self.assertLessEqual(len(line), 80, line)
                self.assertIn(" ".join(one.headline.split()[:3]), words)
                self.assertLessEqual(len(words.splitlines()), 60)

    def test_it_is_shown_on_a_terminal_with_the_path_below(self):
        page = Page("", [report(fixtures.snapshot("stock-leak"))], [], [])
        for terminal in (True, False):
            with (
                self.subTest(terminal),
                tempfile.TemporaryDirectory() as folder,
                mock.patch.object(command, "collected", return_value=(page, [])),
                mock.patch.object(command, "chosen_targets", return_value=[Target()]),
                mock.patch.dict(command.RENDERERS, {"html": lambda _: "page"}),
                contextlib.redirect_stdout(io.StringIO()) as shown,
                mock.patch.object(shown, "isatty", return_value=terminal, create=True),
            ):
                out = Path(folder) / "p.html"
                self.assertEqual(cli.main(["report", "-o", str(out)]), 0)
                lines = shown.getvalue().splitlines()
                self.assertEqual(lines[-1], str(out.resolve()))
                self.assertEqual(len(lines) > 1, terminal)

    def test_a_page_that_cannot_be_written_names_the_way_out(self):
        page = Page("", [report(fixtures.snapshot("stock-leak"))], [], [])
        for words, end in ((["report"], "; see -o FILE, or --text$"), (["report", "-o", "/nowhere/x"], "directory$")):
            with (
                self.subTest(words),
                mock.patch.object(command, "collected", return_value=(page, [])),
                mock.patch.object(command, "chosen_targets", return_value=[Target()]),
                mock.patch.object(command, "file_name", return_value="/nowhere/x.html"),
                self.assertRaisesRegex(Problem, end),
            ):
                cli.main(words)

    def test_verify_has_no_options_of_a_server(self):
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as ended:
            cli.main(["verify", "-h", "db1"])
        self.assertEqual(ended.exception.code, 2)

    def test_a_percentage_of_growth_has_a_floor(self):
        with contextlib.redirect_stdout(io.StringIO()) as shown, self.assertRaises(SystemExit):
            cli.main(["diff", "--help"])
        self.assertIn("a percentage allows 1 MiB at least", " ".join(shown.getvalue().split()))

    def test_no_argument_and_help_show_examples(self):
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            self.assertEqual(cli.main([]), 2)
        self.assertIn("memdiag report -h db1", shown.getvalue())
        for words in (["help"], ["help", "record"], ["record", "--help"]):
            with contextlib.redirect_stdout(io.StringIO()) as shown, self.assertRaises(SystemExit) as ended:
                cli.main(words)
            self.assertEqual(ended.exception.code, 0)
            self.assertIn("example", shown.getvalue())

    def test_the_version_as_mysql_is_asked_for_it(self):
        for word in ("-V", "--version"):
            with contextlib.redirect_stdout(io.StringIO()) as shown, self.assertRaises(SystemExit) as ended:
                cli.main([word])
            self.assertEqual((ended.exception.code, shown.getvalue()), (0, f"memdiag {cli.__version__}\n"))

    def test_options_follow_the_command(self):
        with self.assertRaisesRegex(WrongOption, "memdiag report -h db1"):
            cli.main(["-h", "db1", "report"])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Narrow(unittest.TestCase):
    def test_progress_stays_in_its_line(self):
        """A line that goes on in the next one cannot be written over: a recording scrolled at each sample."""
        with contextlib.redirect_stderr(Terminal()) as shown, mock.patch.dict(os.environ, {"COLUMNS": "40"}):
            progress = Progress("a-server.of-a-long-name.example.org: ")
            progress("the server's settings and status")
            progress("3 samples, \x1b[2J")
            progress.done()
        for line in shown.getvalue().split("\r"):
            self.assertLess(len(line), 40)
            self.assertTrue(line.isprintable())

    def test_progress_of_wide_letters(self):
        """They take two cells each."""
        with contextlib.redirect_stderr(Terminal()) as shown, mock.patch.dict(os.environ, {"COLUMNS": "40"}):
            progress = Progress("数据库: ")
            progress("数据库" * 10)
            progress("x")
            progress.done()
        first, second, blank = shown.getvalue().split("\r")[1:4]
        self.assertEqual([cell_width(line) for line in (first, second)], [38, 38])
        self.assertEqual(second.rstrip(), "数据库: x ...")
        self.assertEqual(blank, " " * 13)

    def test_a_terminal_that_is_gone_ends_no_work(self):
        with contextlib.redirect_stderr(Terminal()) as shown, mock.patch.object(shown, "write", side_effect=OSError):
            Progress()("asking")


class SideBySide(unittest.TestCase):
    def test_a_server_that_hangs_delays_no_other(self):
        together = threading.Barrier(3)

        def ask(target, _progress):
            together.wait(180)  # all are asked before one has answered
            return {"label": target.host}, ""

        hosts = ["a", "b", "c"]
        with mock.patch.object(command, "_ask", ask):
            answers = command.asked([Target(host=host) for host in hosts])
        self.assertEqual([snapshot["label"] for snapshot, _ in answers], hosts)

    def test_a_fault_of_the_program_is_not_hidden(self):
        with mock.patch.object(command, "_ask", side_effect=LookupError), self.assertRaises(LookupError):
            command.asked([Target(), Target()])


class Identity(unittest.TestCase):
    def setUp(self):
        self.snapshot = fixtures.snapshot("stock-idle")
        self.now = self.snapshot["time"]
        self.variables = self.snapshot["sources"]["variables"]["rows"][0]
        self.variables |= {"server_uuid": "1-a", "hostname": "h", "port": 3306, "datadir": "/data/"}
        self.snapshot["sources"]["status"]["rows"][0]["uptime"] = 1000

    def reason(self, age=10, **other):
        head = {"format": FORMAT, "variables": copy.deepcopy(self.variables) | other}
        return recording.of_another_server(Recording(head, [{"time": self.now - age}]), self.snapshot)

    def test_of_this_server(self):
        self.assertEqual(self.reason(), "")
        self.assertEqual(self.reason(server_uuid=None), "")  # MariaDB
        self.variables["port"] = 0  # with skip_networking; a recording has its words
        self.assertEqual(self.reason(server_uuid=None, port="0"), "")

    def test_of_another_server(self):
        for name, value in (("server_uuid", "1-b"), ("hostname", "other"), ("port", 1), ("datadir", "/other")):
            self.assertIn(f"its {name} is {value}", self.reason(**{name: value}))

    def test_what_is_not_known_is_not_believed(self):
        self.assertIn("not known", self.reason(server_uuid=None, hostname=None))
        self.snapshot["sources"]["status"]["rows"] = []
        self.assertIn("not known", self.reason())

    def test_of_an_earlier_run(self):
        self.assertIn("started after", self.reason(age=1001))

    def test_growth_of_yesterday_is_not_of_now(self):
        old = Recording({}, [{"time": 1000.0}])
        self.assertTrue(recording.is_fresh(old, 1800.0))
        self.assertFalse(recording.is_fresh(old, 2000.0))
        samples = [{"time": 10.0 * n, "rss": (n + 9) << 30, "buffer_pool": 0} for n in range(100)]
        for judged in (True, False):
            found = report(fixtures.snapshot("stock-idle"), samples, judge_recording=judged).findings
            self.assertEqual(any(one.verdict == "growth" for one in found), judged)

    def test_one_server_alone(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(f'{{"format":"{FORMAT}"}}\n{{"time":1.0}}\n')
            file.flush()
            with self.assertRaisesRegex(WrongOption, "of one server"):
                cli.main(["report", "--no-defaults", "--recording", file.name, "db1", "db2"])
            with (
                mock.patch.object(command, "collected", side_effect=Problem("it was asked")),
                self.assertRaisesRegex(Problem, "it was asked"),
            ):
                cli.main(["report", "--no-defaults", "--recording", file.name, "db1"])

    def test_the_report_refuses_it(self):
        with (
            mock.patch.object(command, "asked", return_value=[(self.snapshot, "")]),
            self.assertRaisesRegex(Problem, "does not belong"),
        ):
            command.collected([Target()], Recording({}, [{"time": 1.0}]), False)


class Systems(unittest.TestCase):
    # Windows lacks these modules.
    PROGRAM = """
import os, signal, socket, sys
for name in ("pwd", "termios", "tty", "fcntl", "grp", "resource"):
    sys.modules[name] = None
for module, names in ((os, "geteuid fchmod"), (signal, "SIGHUP"), (socket, "AF_UNIX SO_PEERCRED")):
    for name in names.split():
        delattr(module, name)
from memdiag import cli
cli.run()
"""

    def run_there(self, *words, program=PROGRAM):
        command = [sys.executable, "-c", program, *words]
        return subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, check=False)

    def test_what_needs_no_terminal_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "r"
            path.write_text(f'{{"format":"{FORMAT}"}}\n{{"time":1.0,"rss":5}}\n')
            for words in (["--version"], ["diff", path, path], ["what-if", path, "--limit", "1G"]):
                done = self.run_there(*map(str, words))
                self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        done = self.run_there("report", "--no-defaults", "-S", "/no.sock")
        self.assertIn("no Unix sockets", done.stderr + done.stdout)

    def test_a_signal_ends_with_its_number(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            program = f"""
import os, signal
from unittest import mock
from memdiag import cli
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
with mock.patch.object(cli, "main", lambda _: os.kill(os.getpid(), {int(number)})):
    cli.run()
"""
            done = self.run_there(program=program)
            self.assertEqual(done.returncode, 128 + number)
            self.assertIn("interrupted", done.stderr)

    def test_a_standard_output_that_is_closed(self):
        program = "import sys; sys.stdout = None; from memdiag import cli; cli.main = lambda _: 0; cli.run()"
        done = self.run_there(program=program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_no_stream_at_all(self):
        """A recording ended at its first sample, without a word."""
        program = """
import sys
sys.stdin = sys.stdout = sys.stderr = None
from memdiag import cli, progress
from memdiag.commands import arguments
def main(_):
    progress.Progress()("asking")
    arguments._asked()
cli.main = main
cli.run()
"""
        self.assertEqual(self.run_there(program=program).returncode, 1)
        self.assertEqual(
            self.run_there(program=program.replace("    arguments._asked()", "    return 0")).returncode, 0
        )
