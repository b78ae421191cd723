"""How the unit tests are compiled and run: cmake/unit_tests.cmake, configured and not built."""

import re
import shutil
import unittest
from pathlib import Path

from harness.common import ROOT
from harness.programs import captured
from harness.scratch import Scratch

NEEDED = unittest.skipUnless(all(map(shutil.which, ("cmake", "ninja", "g++"))), "needs cmake, ninja, g++")


def configured(folder: Path, sanitize: str) -> str:
    """The rules of a build of the unit tests."""
    options = [f"-DMEMDIAG_SANITIZE={sanitize}", "-DMEMDIAG_FLAVOUR=unit", "-DCMAKE_BUILD_TYPE="]
    done = captured(["cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, *options])
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return (folder / "build.ninja").read_text()


def level(rules: str, source: str) -> str:
    """Of its options -O, the last counts."""
    flags = re.search(rf"^build \S*/{source}\.o: .*?^  FLAGS = (.*?)$", rules, re.MULTILINE | re.DOTALL)
    return [word for word in flags[1].split() if word.startswith("-O")][-1]


@NEEDED
class UnitBuild(Scratch):
    def test_the_address_sanitizers_tests_compile_fast_and_its_layer_as_ever(self):
        rules = configured(self.root, "address,undefined")
        self.assertEqual(level(rules, "history_test.cc"), "-O1")
        self.assertEqual(level(rules, "pools.cc"), "-O2")

    def test_other_tests_compile_as_the_layer(self):
        rules = configured(self.root, "thread")
        self.assertEqual(level(rules, "pools_test.cc"), "-O2")
