"""A network of a test's own."""

import socket
import threading
import unittest
from pathlib import Path

from harness.common import ROOT
from harness.network import ON_LOOPBACK, free_port, own_network


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Network(unittest.TestCase):
    def test_no_user_of_the_machine_is_root_of_a_server(self):
        """Those of packaging/tests have a network of their own."""
        found = [
            path.relative_to(ROOT)
            for folder in ("bench", "harness", "monitoring", "proof", "tools")
            for path in (ROOT / folder).rglob("*.py")
            if '"--skip-networking=OFF"' in path.read_text() and "tests" not in path.parts
        ]
        self.assertEqual(found, [Path("harness/network.py")])
        self.assertIn("--skip-name-resolve", ON_LOOPBACK)

    def test_nothing_crosses_its_border(self):
        with socket.create_server(("127.0.0.1", free_port())) as outside:
            port = outside.getsockname()[1]
            with own_network() as is_own:
                if not is_own:
                    self.skipTest("the kernel or the account's rights refuse it")
                self.assertFalse(listens(port))
                self.assertEqual([name for _, name in socket.if_nameindex()], ["lo"])
                with socket.create_server(("127.0.0.1", free_port())) as inside:
                    inner = inside.getsockname()[1]
                    self.assertTrue(listens(inner))
                    seen: list[bool] = []
                    thread = threading.Thread(target=lambda: seen.append(listens(inner)))
                    thread.start()
                    thread.join()
                    self.assertEqual(seen, [True], "a thread that was started inside")
            self.assertTrue(listens(port), "back in the machine's network")

    def test_an_error_inside_leads_back(self):
        with socket.create_server(("127.0.0.1", free_port())) as outside:
            with self.assertRaises(KeyError), own_network():
                raise KeyError
            self.assertTrue(listens(outside.getsockname()[1]))
