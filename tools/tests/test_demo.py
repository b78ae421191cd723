"""The end of the demonstration, without a server."""

import contextlib
import io
import subprocess
import sys
import unittest
from unittest import mock

from harness.scratch import Scratch
from tools import demo


class Demonstrating(Scratch):
    good = True

    def run_searches(self, _server, _statements, _clients, _seconds, checks, figures):
        checks.check("the tables have rows", self.good)

    def demonstrate(self, *arguments: str, report: int) -> tuple[int, list[str]]:
        """`report`: the exit status of `memdiag report`."""
        server = mock.Mock(folder=self.root)
        server.alive.return_value = False
        done = subprocess.CompletedProcess([], report, "", "no page\n" * bool(report))
        said = io.StringIO()
        with (
            mock.patch.object(sys, "argv", ["run-demo", *arguments]),
            mock.patch.object(demo.phrase_searches, "start"),
            mock.patch.object(demo.phrase_searches, "prepare"),
            mock.patch.object(demo.phrase_searches, "run", self.run_searches),
            mock.patch.object(demo.subprocess, "run", return_value=done),
            contextlib.redirect_stdout(said),
        ):
            status = demo.demonstrate(demo.arguments(), server)
        self.stopped = server.stop.called
        return status, said.getvalue().splitlines()

    def test_a_failure_is_shown(self):
        for arguments in ([], ["--stop-after"], ["--smoke"]):
            status, lines = self.demonstrate(*arguments, report=1)
            self.assertEqual(status, 1)
            self.assertIn("FAILED  there is a report: no page", lines)

    def test_only_this_server_has_its_tables(self):
        self.good = False
        self.assertEqual(self.demonstrate("--preset", "dev", report=0)[0], 1)
        self.assertEqual(self.demonstrate("--preset", "stock", report=0)[0], 0)

    def test_the_server_stays_unless_the_arguments_say_otherwise(self):
        for arguments, stopped in (([], False), (["--stop-after"], True), (["--smoke"], True)):
            status, lines = self.demonstrate(*arguments, report=0)
            self.assertEqual((status, self.stopped), (0, stopped))
            self.assertEqual("The server stays up." in lines, not stopped)
            self.assertRegex(lines[-1], r"^demo: \d passed, 0 failed, 0 skipped$")


if __name__ == "__main__":
    unittest.main()
