"""How the unit tests are compiled and run: cmake/unit_tests.cmake, configured and not built."""

import json
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


def tests_of(folder: Path) -> dict[str, dict]:
    """ctest's tests and their properties."""
    said = captured(["ctest", "--test-dir", folder, "--show-only=json-v1"]).stdout
    return {
        one["name"]: {part["name"]: part["value"] for part in one["properties"]} for one in json.loads(said)["tests"]
    }


@NEEDED
class UnitBuild(Scratch):
    def test_under_the_address_sanitizer(self):
        rules = configured(self.root, "address,undefined")
        # The layer, which the tests test, is as ever.
        self.assertEqual((level(rules, "history_test.cc"), level(rules, "pools.cc")), ("-O1", "-O2"))
        self.runs_whole("pools_test")

    def test_without_a_sanitizer(self):
        rules = configured(self.root, "")
        self.assertEqual(level(rules, "pools_test.cc"), "-O2")
        self.runs_whole("pools_test")

    def runs_whole(self, program: str):
        """Its cases are no tests of ctest; it tells of them."""
        tests = tests_of(self.root)
        hangs = [name for name, what in tests.items() if name.endswith("_test") and what.get("TIMEOUT", 1500) > 600]
        self.assertEqual(hangs, [])
        # It takes long: ctest begins with it.
        self.assertGreater(tests[program]["COST"], tests["columns_test"].get("COST", 0))
        self.assertIn(f"GTEST_OUTPUT=xml:{self.root}/cases/{program}.xml", tests[program]["ENVIRONMENT"])
