"""The base of tests that need a folder."""

import tempfile
import unittest
from pathlib import Path


class Scratch(unittest.TestCase):
    """A test with an empty folder of its own, `root`."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def write(self, name, content):
        """Text or bytes, into a file below `root`; its folders are made."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path
