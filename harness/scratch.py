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
