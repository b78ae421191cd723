"""memdiag record keeps what it has: on Ctrl-C, however often, and on a full disk."""

import functools
import io
import json
import os
import resource
import subprocess
import sys
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from memdiag.cli import main
from memdiag.collect.sample import Sampler
from memdiag.commands import record
from memdiag.connect.options import Target
from memdiag.connect.session import LoginRefused
from memdiag.problem import Problem
from memdiag.recording import FORMAT, read_recording

from tests.old_server import MySQLError, OldServer
from tests.scratch import Scratch
from tests.versions import SERVERS

CLIENT = Path(__file__).resolve().parents[1]


class Clock:
    """Goes on by what is slept."""

    def __init__(self, interrupted_after: int = 1000) -> None:
        self._now = 1000.0
        self._left = interrupted_after

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt


class Recording(Scratch):
    def setUp(self):
        super().setUp()
        self.out = self.root / "r"
        self.unfinished = self.out.with_name("r.unfinished")

    def record(self, clock: Clock, *words: str) -> int:
        recorder = functools.partial(record.Recorder, clock=clock.now, sleep=clock.sleep)
        with (
            mock.patch("memdiag.connect.session.pymysql", lambda: OldServer(SERVERS[0])),
            mock.patch("memdiag.commands.record.Recorder", recorder),
            redirect_stdout(io.StringIO()) as self.said,
        ):
            return main(["record", "--no-defaults", "-h", "db1", "--ssl-mode=DISABLED", "-o", str(self.out), *words])

    def test_until_the_time_is_over(self):
        self.assertEqual(self.record(Clock(), "--every", "10s", "--for", "1m"), 0)
        self.assertEqual(len(read_recording(self.out).samples), 7)
        self.assertEqual(self.said.getvalue(), f"7 samples: {self.out.resolve()}\n")
        self.assertFalse(self.unfinished.exists())

    def test_an_unknown_rss_is_told_once(self):
        for sample, times in (({"rss": None}, 1), ({"rss": 5}, 0), ({"down": "it is away"}, 0)):
            with (
                self.subTest(sample),
                mock.patch.object(record.Recorder, "sample", lambda _, sample=sample: {"time": 1.0, **sample}),
                redirect_stderr(io.StringIO()) as told,
            ):
                self.record(Clock(), "--for", "1m", "--force")
            self.assertEqual(told.getvalue().count("RSS is unknown"), times)

    def test_two_interruptions_keep_it(self):
        with mock.patch.object(record.Recorder, "_close", side_effect=KeyboardInterrupt):
            self.assertEqual(self.record(Clock(3)), 0)
        self.assertEqual(len(read_recording(self.out).samples), 3)
        self.assertFalse(self.unfinished.exists())

    def test_an_interruption_right_after_the_first_sample_keeps_it(self):
        def write(file, value, whole=record._write):
            whole(file, value)
            if "time" in value:
                raise KeyboardInterrupt

        with mock.patch.object(record, "_write", write):
            self.assertEqual(self.record(Clock()), 0)
        self.assertEqual(len(read_recording(self.out).samples), 1)

    def test_what_a_killed_recorder_left_stays(self):
        self.unfinished.write_text("samples of the night")
        with self.assertRaisesRegex(Problem, "a recording that did not end"):
            self.record(Clock(), "--for", "1m")
        self.assertEqual(self.unfinished.read_text(), "samples of the night")

    def test_what_can_be_no_file_is_told_at_the_beginning(self):
        for place in ("/dev/null", str(self.out.parent), ""):
            with self.subTest(place), self.assertRaisesRegex(Problem, "is no file"):
                self.record(Clock(), "-o", place)

    def test_a_recording_is_replaced_only_on_demand(self):
        self.out.write_text("of yesterday")
        with self.assertRaisesRegex(Problem, "is there.*--force"):
            self.record(Clock(), "--for", "1m")
        self.assertEqual(self.out.read_text(), "of yesterday")
        self.assertEqual(self.record(Clock(), "--for", "1m", "--force"), 0)
        self.assertEqual(read_recording(self.out).head["server"]["hostname"], self.hostname())

    def hostname(self):
        return OldServer(SERVERS[0]).sources["variables"]["rows"][0]["hostname"]

    def test_a_restart_is_seen_by_the_uptime_that_is_missing(self):
        """Also where the new run is older than the recorded one was."""
        for uptimes, restarts in (
            ((5, 15, 25), []),
            ((5, 14, 26), []),
            ((5, None, 24), []),
            ((5, 13), []),  # both are whole seconds
            ((5, 12), [1]),
            ((500, 3), [1]),
            ((5, 8, 18), [1]),
            ((5, Problem("down"), 20), [2]),
            ((5, Problem("down"), 25), []),
            ((5, None, 20), [2]),
        ):
            self.assertEqual(self.restarts(uptimes, survives=False), restarts, uptimes)

    def test_a_clock_that_was_set_back_is_no_restart(self):
        """The session survives, and the server's uptime is by that clock."""
        self.assertEqual(self.restarts((500, 3, 13), survives=True), [])

    def restarts(self, uptimes, survives: bool) -> list[int]:
        clock = Clock()
        recorder = record.Recorder(Target(), 10, clock.now, clock.sleep)
        answers = iter(uptimes)

        def sampled():
            if not survives:
                recorder._session = mock.Mock()
            uptime = next(answers)
            if isinstance(uptime, Problem):
                raise uptime
            return {"uptime": uptime}

        found = []
        with mock.patch.object(recorder, "_sampled", sampled):
            for number in range(len(uptimes)):
                if recorder.sample().get("restarted"):
                    found.append(number)
                clock.sleep(10)
        return found

    def test_before_the_first_sample_nothing_is_left(self):
        with mock.patch.object(record.Recorder, "sample", side_effect=KeyboardInterrupt), self.assertRaises(Problem):
            self.record(Clock())
        self.assertEqual(list(self.out.parent.iterdir()), [])

    def test_a_full_disk_is_one_line_and_the_samples_stay(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
        try:
            with self.assertRaisesRegex(Problem, r"keeps \d+ samples, cannot be written any more"):
                self.record(Clock())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        self.assertGreater(len(read_recording(self.unfinished).samples), 1)
        self.assertFalse(self.out.exists())


class Ended(unittest.TestCase):
    """The server, or a person, ends the recorder's session."""

    def setUp(self):
        self.recorder = record.Recorder(Target(host="db1", ssl_mode="DISABLED"), 10)
        self.server = OldServer(SERVERS[0])
        library = mock.patch("memdiag.connect.session.pymysql", lambda: self.server)
        library.start()
        self.addCleanup(library.stop)

    def failing(self, *errors):
        """The server's next answers are these errors."""
        left = list(errors)

        def answer(statement, whole=self.server.answer):
            if left:
                raise MySQLError(*left.pop(0))
            return whole(statement)

        return mock.patch.object(self.server, "answer", answer)

    def test_a_server_that_is_up_is_asked_again(self):
        self.recorder.sample()
        with self.failing((2013, "ended")):
            self.assertNotIn("down", self.recorder.sample())

    def test_down_has_its_reason(self):
        self.recorder.sample()
        with self.failing((2013, "one"), (2013, "two")):
            sample = self.recorder.sample()
        self.assertIn("two", sample["down"])
        self.assertNotIn("refused", sample)

    def test_another_server_that_answers_now_is_none_of_the_recording(self):
        """A name that moves to a replica, or a port of another server."""
        for mariadb, other in ((False, {"server_uuid": "b"}), (True, {"hostname": "b"})):
            # MariaDB has no server_uuid.
            self.server.__init__(next(one for one in SERVERS if one.mariadb == mariadb))
            variables = self.server.sources["variables"]["rows"][0]
            with self.subTest(other), mock.patch.dict(variables, {"server_uuid": "a", "hostname": "h"}):
                recorder = record.Recorder(Target(host="db1", ssl_mode="DISABLED"), 10)
                self.assertNotIn("down", recorder.sample())
                with mock.patch.dict(variables, other), self.failing((2013, "ended")):
                    self.assertIn("another server answers", recorder.sample()["down"])
                    self.assertIn("another server answers", recorder.sample()["down"])
                self.assertNotIn("down", recorder.sample())

    def test_a_refused_login_is_not_a_server_that_is_down(self):
        with mock.patch.object(record, "Session", side_effect=LoginRefused(3118, "db1 refused")):
            sample = self.recorder.sample()
        self.assertEqual((sample["refused"], sample["down"]), (3118, "db1 refused"))

    def test_the_server_waits_for_the_next_sample(self):
        record.Recorder(Target(host="db1", ssl_mode="DISABLED"), 20_000).sample()
        self.assertIn("SET SESSION wait_timeout = 60000", self.server.sent)


class OurServer:
    """One that a Sampler asks; `ledger` has its rows of the pools."""

    target = Target(host="db1")

    def __init__(self, *ledger: dict) -> None:
        self._ledger = list(ledger)

    def server_process(self):
        return 0

    def rows(self, statement):
        if "VERSION()" in statement:
            return [{"V": "9.7.4"}]
        if "information_schema.TABLES" in statement:
            return [{"TABLE_NAME": "MEMDIAG_LEDGER"}]
        if "information_schema.MEMDIAG_LEDGER" in statement:
            return self._ledger
        return []


class Samples(unittest.TestCase):
    def sample(self, **states):
        rows = [
            {"COMPONENT": "pool", "NAME": "a", "STATE": state, "RESIDENT_BYTES": value}
            for state, value in states.items()
        ]
        return Sampler(OurServer(*rows)).sample()

    def test_what_could_not_be_read_is_not_0(self):
        one = self.sample(live=5, dirty=3, muzzy=4)
        self.assertEqual((one["pools"], one["unused"]), ({"a": [5, 7]}, 7))
        one = self.sample(live=5, dirty=3, muzzy=None)
        self.assertEqual((one["pools"], one["unused"]), ({"a": [5, None]}, None))
        self.assertIsNone(self.sample()["unused"])

    def test_an_account_without_process_gets_what_the_kernel_shows(self):
        """RSS was unknown before, and memdiag gave a reason that was not true."""
        with (
            mock.patch.object(OurServer, "server_process", lambda _: os.getpid()),
            mock.patch("memdiag.collect.kernel.is_server", return_value=True),
        ):
            one = self.sample()
        self.assertGreater(one["rss"], 1 << 20)
        self.assertIsNotNone(one["limit"])


class Connection(Scratch):
    PROGRAM = """
import os, signal, sys, threading
from unittest import mock
from memdiag import cli
from tests.old_server import MySQLError, OldServer
from tests.versions import SERVERS
out = sys.argv[-1]
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, which may run the tests, ignores it
def end():
    while not os.path.exists(out + ".unfinished") or open(out + ".unfinished").read().count("\\n") < 2:
        threading.Event().wait(0.01)
    os.kill(os.getpid(), signal.SIGHUP)
threading.Thread(target=end).start()
with mock.patch("memdiag.connect.session.pymysql", lambda: OldServer(SERVERS[0])):
    cli.run()
"""

    def test_a_connection_that_breaks_ends_a_recording_whole(self):
        out = self.root / "r"
        words = ["record", "--no-defaults", "-h", "db1", "--ssl-mode=DISABLED", "--every", "0.1s", "-o", str(out)]
        command = [sys.executable, "-c", self.PROGRAM, *words]
        done = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, check=False, timeout=180)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(len(read_recording(out).samples), 1)
        self.assertEqual(list(self.root.iterdir()), [out])


class Output(Scratch):
    def test_a_full_disk_is_one_line(self):
        lines = ({"format": FORMAT}, {"time": 1.0, "rss": 5})
        file = self.write("r", "".join(json.dumps(line) + "\n" for line in lines))
        command = [sys.executable, "-m", "memdiag", "what-if", str(file), "--limit", "1G"]
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, cwd=CLIENT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn("the output cannot be written: No space left", done.stderr)
