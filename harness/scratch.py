"""The base of tests that need a folder."""

import tempfile
import unittest
from pathlib import Path


class Scratch(unittest.TestCase):
    """A test with an empty folder of its own, `root`."""

    def setUp(self):
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def make_file(self, name: str | Path, text: str = "") -> Path:
        """A file below `root`; its folders are made."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def make_program(self, name: str | Path, script: str) -> Path:
        """A shell script below `root` that can be run."""
        path = self.make_file(name, f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path
