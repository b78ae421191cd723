import subprocess
import sys
import unittest
from pathlib import Path

SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv.pop(1))
from memdiag.connect.process_list import hide_passwords
before = sys.argv[:]
hide_passwords()
assert sys.argv == before
print(Path("/proc/self/cmdline").read_text().replace(chr(0), " "))
"""


@unittest.skipUnless(Path("/proc/self/mem").exists(), "no /proc")
class ProcessList(unittest.TestCase):
    def test_passwords_alone_are_hidden(self):
        client = str(Path(__file__).parents[1])
        words = ["report", "-psecret", "-vpthird", "--pa=s", "--password=other", "--port=3306", "-p", "-u", "root"]
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, client, *words], capture_output=True, text=True, check=True
        )
        self.assertTrue(
            done.stdout.strip().endswith("report -pxxxxxx -vpxxxxx --pa=x --password=xxxxx --port=3306 -p -u root"),
            done.stdout,
        )
