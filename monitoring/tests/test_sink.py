"""A pip that fails, and monitoring/check/otlp.py."""

import contextlib
import subprocess
from unittest import mock

from harness import pip
from harness.problem import Problem
from harness.scratch import Scratch
from monitoring import sink
from monitoring.check import otlp

# Each as pip says it.
OFFLINE = """\
WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection broken by \
'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new \
connection: [Errno -3] Temporary failure in name resolution')': /simple/opentelemetry-proto/
ERROR: Could not find a version that satisfies the requirement opentelemetry-proto==1.45.2 (from versions: none)
ERROR: No matching distribution found for opentelemetry-proto==1.45.2
"""
OTHER_HASH = """\
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions, \
please update the hashes. Otherwise, examine the package contents carefully; someone may have tampered with them.
    protobuf==7.36.2 from https://registry.example/protobuf-7.36.2.whl:
        Expected sha256 89f2
             Got        0000
"""
NO_VERSION = """\
ERROR: Could not find a version that satisfies the requirement protobuf==7.36.2 (from versions: 5.0, 6.0)
ERROR: No matching distribution found for protobuf==7.36.2
"""
RETRIED = OFFLINE.splitlines()[0].replace("total=0", "total=4") + "\n" + NO_VERSION


class Installing(Scratch):
    def setUp(self):
        super().setUp()
        for patch in (
            mock.patch.object(pip, "cache_dir", lambda: self.root),
            mock.patch.object(pip, "say", lambda text: None),
            mock.patch.object(otlp.Build, "of_preset"),
            mock.patch.object(otlp, "preset_of_arguments", lambda doc: "dev"),
        ):
            self.enterContext(patch)

    def pip_says(self, words: str) -> contextlib.AbstractContextManager:
        done = subprocess.CompletedProcess([], 1, "", words)
        return mock.patch.object(pip, "captured", return_value=done)

    def test_every_failure_is_one(self):
        """Without a network, too: a check that vanishes would pass."""
        for words in ("/usr/bin/python3: No module named pip\n", OFFLINE, OTHER_HASH, NO_VERSION, RETRIED, ""):
            with self.subTest(words), self.pip_says(words), self.assertRaisesRegex(Problem, "could not be installed"):
                otlp.main()

    def test_another_hash_is_named(self):
        with self.pip_says(OTHER_HASH), self.assertRaisesRegex(Problem, "DO NOT MATCH THE HASHES"):
            sink.provide()
