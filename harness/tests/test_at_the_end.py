"""A state of the machine ends, whatever ends the program that made it."""

import signal
import subprocess
import sys
import time

from harness.at_the_end import at_the_end
from harness.common import ROOT
from harness.scratch import Scratch


class AtTheEnd(Scratch):
    def test_of_a_block(self):
        file = self.root / "file"
        with at_the_end('echo "$1" > "$2"', "back", file):
            self.assertFalse(file.exists())
        self.assertEqual(file.read_text(), "back\n")

    def test_of_a_block_that_fails(self):
        file = self.root / "file"
        with self.assertRaises(ZeroDivisionError), at_the_end('echo "$1" > "$2"', "back", file):
            _ = 1 / 0
        self.assertEqual(file.read_text(), "back\n")

    def test_of_a_process_that_is_killed(self):
        file = self.root / "file"
        program = (
            "import os, signal, sys\n"
            "from harness.at_the_end import at_the_end\n"
            "with at_the_end('echo back > \"$1\"', sys.argv[1]):\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        done = subprocess.run([sys.executable, "-c", program, str(file)], cwd=ROOT, check=False)
        self.assertEqual(done.returncode, -signal.SIGKILL)
        for _ in range(600):
            if file.exists() and file.read_text():
                break
            time.sleep(0.1)
        self.assertEqual(file.read_text(), "back\n")
