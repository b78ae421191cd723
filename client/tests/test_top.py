"""The live screen with names that are markup, and with a server that refuses."""

import io
import sys
import unittest
from unittest import mock

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's rich

from memdiag.commands.top import Screen, layout
from memdiag.connect.options import Target

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


class Refusal(unittest.TestCase):
    def test_a_server_that_refuses_is_told(self):
        server = OldServer(SERVERS[0])
        refused = mock.patch.object(server, "answer", side_effect=MySQLError(1820, "reset your password"))
        screen = Screen(Target(host="db1", ssl_mode="DISABLED"))
        with refused, mock.patch("memdiag.connect.session.pymysql", lambda: server):
            screen.refresh()
        self.assertIn("reset your password", screen.down)


if __name__ == "__main__":
    unittest.main()
