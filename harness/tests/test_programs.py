"""Programs that a program runs, and signals that interrupt it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

from harness.common import ROOT
from harness.programs import Programs, TimeLimit, run_group
from harness.scratch import Scratch
from harness.tests.interrupted import terminated_while_starting

# A check that cleans up for a while after an interruption.
CHECK = """
import pathlib, sys, time
sys.path.insert(0, {root!r})
from harness.problem import run_main

def main():
    folder = pathlib.Path(__file__).parent
    with open(folder / "begun", "a") as begun:
        begun.write(pathlib.Path(__file__).name + "\\n")
    try:
        (folder / "ready").touch()
        time.sleep(3600)
    finally:
        (folder / "ending").touch()
        time.sleep(0.5)
        with open(folder / "ended", "a") as ended:
            ended.write(pathlib.Path(__file__).name + "\\n")

run_main("check", main)
"""
# The programs that run all checks of a folder, with checks of the test.
MONITORING = """
from monitoring.check import all
all.programs.all_present = lambda: None
all.CHECKS = (("rules.py", "later.py"),)
"""
CLIENT = """
sys.path.insert(0, "client")
from check import all
all.CHECKS = ((("rules.py",), ("later.py",)),)
"""
CALLER = """
import sys
{module}
from harness.problem import run_main
all.__file__, sys.argv = sys.argv[1], sys.argv[:1]
run_main("all", all.main)
"""


GROUP = """
import sys
from harness.problem import run_main
from harness.programs import run_group
run_main("caller", lambda: run_group(sys.argv[1:]))
"""


class Running(Scratch):
    def test_output_and_status(self):
        script = "echo said; echo error >&2; exit 3"
        with Programs() as programs:
            done = programs.run(["sh", "-c", script], stderr=subprocess.STDOUT)
        self.assertEqual((done.returncode, done.stdout), (3, "said\nerror\n"))

    def test_nothing_starts_after_the_end(self):
        programs = Programs()
        programs.end()
        with self.assertRaises(KeyboardInterrupt):
            programs.run(["touch", self.root / "begun"])
        self.assertFalse((self.root / "begun").exists())

    def test_a_signal_while_a_program_starts(self):
        """The program is known by then, and is ended."""
        with terminated_while_starting() as started:
            with Programs() as programs, self.assertRaises(KeyboardInterrupt):
                programs.run(["sleep", "3600"])
            self.assertEqual(started[0].wait(180), -signal.SIGTERM)

    def test_a_program_gets_signals_as_before(self):
        script = "import signal; print(signal.getsignal(signal.SIGTERM), signal.pthread_sigmask(signal.SIG_BLOCK, []))"
        with Programs() as programs:
            done = programs.run([sys.executable, "-c", script])
        self.assertEqual(done.stdout, "0 set()\n")

    def test_each_is_asked_once(self):
        """A second signal would stop its clean-up."""
        signals = self.root / "signals"
        ready = self.root / "ready"
        script = (
            f"trap 'echo x >>{signals}' TERM; : >{ready}; n=0; while [ $n -lt 10 ]; do sleep 0.05; n=$((n + 1)); done"
        )
        programs = Programs()
        process = programs.start(["sh", "-c", script])
        try:
            until(ready.exists)
            programs.end()
            until(signals.exists)
            programs.end()
            programs.wait(process)
        finally:
            process.kill()
        self.assertEqual(signals.read_text(), "x\n")

    def test_what_does_not_end_is_killed(self):
        ready = self.root / "ready"
        script = f"trap '' TERM; : >{ready}; while :; do sleep 0.05; done"
        programs = Programs(patience=0.2)
        process = programs.start(["sh", "-c", script])
        try:
            until(ready.exists)
            programs.end()
            programs.wait(process)
        finally:
            process.kill()
        self.assertEqual(process.returncode, -signal.SIGKILL)


class TimeLimits(Scratch):
    def ended(self, script: str, seconds: float | None, patience: float = 180) -> tuple[int, bool]:
        process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE)
        try:
            with process.stdout, TimeLimit(process, seconds, patience) as limit:
                process.stdout.read()
                process.wait()
        finally:
            process.kill()
        return process.returncode, limit.over

    def test_what_ends_in_time_is_left_alone(self):
        self.assertEqual(self.ended("exit 3", 180), (3, False))
        self.assertEqual(self.ended("exit 3", None), (3, False))

    def test_what_does_not_end_is_asked_and_cleans_up(self):
        script = "trap 'exit 7' TERM; while :; do sleep 0.05; done"
        self.assertEqual(self.ended(script, 2), (7, True))

    def test_what_does_not_listen_is_killed_with_its_children(self):
        # The child has the pipe, and a session of its own.
        script = f"setsid sh -c 'echo $$ >{self.root}/child; exec sleep 1000' & trap '' TERM; wait; sleep 1000"
        self.assertEqual(self.ended(script, 2, 0.2), (-signal.SIGKILL, True))
        child = int((self.root / "child").read_text())
        until(lambda: gone(child))

    def test_what_begins_to_clean_up_and_does_not_end_is_killed(self):
        # The last program has the pipe.
        script = f"trap 'sh -c \"echo \\$\\$ >{self.root}/child; exec sleep 1000\"' TERM; while :; do sleep 0.05; done"
        self.assertEqual(self.ended(script, 2, 2), (-signal.SIGKILL, True))
        child = int((self.root / "child").read_text())
        until(lambda: gone(child))


def gone(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
    return True


class Groups(Scratch):
    def test_status(self):
        self.assertEqual(run_group(["sh", "-c", "exit 3"]), 3)

    def test_an_interruption_waits_for_all_that_was_started(self):
        begun, ended = self.root / "begun", self.root / "ended"
        child = f"trap 'sleep 0.5; : >{ended}; exit' TERM; : >{begun}; while :; do sleep 0.05; done"
        command = [sys.executable, "-c", GROUP, "sh", "-c", f"({child}) & wait"]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        try:
            until(begun.exists)
            process.terminate()
            self.assertEqual(process.wait(180), 130)
        finally:
            process.kill()
        self.assertTrue(ended.exists())


class Interrupting(Scratch):
    def setUp(self):
        super().setUp()
        for name in ("rules.py", "later.py"):
            (self.root / name).write_text(CHECK.format(root=str(ROOT)))

    @contextlib.contextmanager
    def started(self, *command: object) -> Iterator[subprocess.Popen[bytes]]:
        """A program whose check cleans up if it is interrupted from now on. Its files go with it."""
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            # A program that a script starts in the background ignores it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            until((self.root / "ready").exists)
            yield process
        finally:
            process.kill()
            process.wait()
            for name in ("begun", "ready", "ending", "ended"):
                (self.root / name).unlink(missing_ok=True)

    def said(self, name: str) -> str:
        path = self.root / name
        return path.read_text() if path.exists() else ""

    def all_checks(self, module: str) -> contextlib.AbstractContextManager:
        return self.started("-c", CALLER.format(module=module), self.root / "all.py")

    def test_the_check_cleans_up_and_no_other_begins(self):
        for module in (MONITORING, CLIENT):
            with self.subTest(module), self.all_checks(module) as process:
                process.terminate()
                self.assertEqual(process.wait(180), 130)
                self.assertEqual(self.said("begun"), "rules.py\n")
                self.assertEqual(self.said("ended"), "rules.py\n")

    def test_ctrl_c_reaches_all_of_them_and_the_check_still_cleans_up(self):
        for module in (MONITORING, CLIENT):
            with self.subTest(module), self.all_checks(module) as process:
                os.killpg(process.pid, signal.SIGINT)
                until((self.root / "ending").exists)
                process.terminate()  # ./run-tests got Ctrl-C, too
                self.assertEqual(process.wait(180), 130)
                self.assertEqual(self.said("ended"), "rules.py\n")

    def test_sigterm_after_an_interruption_does_not_stop_the_clean_up(self):
        for first in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(first), self.started(self.root / "rules.py") as process:
                process.send_signal(first)
                until((self.root / "ending").exists)
                process.terminate()
                self.assertEqual(process.wait(180), 130)
                self.assertEqual(self.said("ended"), "rules.py\n")


def until(true) -> None:
    deadline = time.monotonic() + 180
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError("it takes too long")
        time.sleep(0.02)
