"""States of the machine: how they are made and ended."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

from harness.at_the_end import at_the_end
from harness.cgroup import Limit
from harness.problem import NotPossible, Problem
from harness.scratch import Scratch
from tools import host_states


class Case(Scratch):
    def programs(self, **scripts: str) -> None:
        """Shell scripts go before the machine's programs of these names."""
        for name, script in scripts.items():
            self.make_program(f"bin/{name}", script)
        path = f"{self.root}/bin:{os.environ['PATH']}"
        self.enterContext(mock.patch.dict(os.environ, PATH=path, LOG=str(self.root / "log")))


class EndServer(Case):
    def end(self, data: str) -> bool:
        """True if a process of data directory /data/a is ended. Otherwise it ends when its input does."""
        program = [sys.executable, "-c", "input()", "--datadir=/data/a"]
        with subprocess.Popen(program, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
            file = self.root / "pid"
            file.write_text(f"{server.pid}\n")
            with at_the_end(host_states.END_SERVER, file, data):
                pass
            server.stdin.close()
            return server.wait() == -signal.SIGTERM

    def test_a_server_of_ours(self):
        self.assertTrue(self.end("/data/a"))

    def test_a_process_that_only_has_its_number(self):
        self.assertFalse(self.end("/data/b"))


class SwapOut(Case):
    def seen(self, *files: str) -> list[str]:
        """The text of the file in the moment in which it is enough."""
        texts = []

        def enough() -> bool:
            texts[:] = [(self.root / file).read_text() for file in files]
            return texts[0] == "400"

        version = 1 if "memory.limit_in_bytes" in files else 2
        host_states.swap_out(Limit(self.root, version), 400, enough)
        return texts

    def test_version_1(self):
        file = self.root / "memory.limit_in_bytes"
        file.write_text("1000\n")
        self.assertEqual(self.seen(file.name), ["400"])
        self.assertEqual(file.read_text(), "1000\n")

    def test_version_2(self):
        high, swap = self.root / "memory.high", self.root / "memory.swap.max"
        high.write_text("max\n")
        swap.write_text("0\n")
        self.assertEqual(self.seen(high.name, swap.name), ["400", "max"])
        self.assertEqual(high.read_text(), "max\n")

    def test_a_kernel_that_does_not(self):
        file = self.root / "memory.limit_in_bytes"
        file.write_text("1000\n")
        busy = mock.patch.object(Path, "write_text", side_effect=OSError("busy"))
        with mock.patch.object(host_states, "PATIENCE_SECONDS", 0.3), busy as write:
            self.assertEqual(self.seen(file.name), ["1000\n"])
        self.assertGreater(write.call_count, 1)
        self.assertEqual(file.read_text(), "1000\n")


class SwapFile(Case):
    def setUp(self):
        super().setUp()
        self.file = self.root / "swap"
        for patch in (
            mock.patch.object(os, "geteuid", return_value=0),
            mock.patch.object(host_states, "SWAP_MB", 1),
            mock.patch.object(host_states, "_swaps", side_effect=lambda: self.swaps),
        ):
            self.enterContext(patch)
        self.swaps: list[str] = []

    def test_it_is_made_and_removed(self):
        self.programs(**{name: f'echo {name} "$@" >> "$LOG"' for name in ("mkswap", "swapon", "swapoff")})
        with host_states.swap_file(self.file):
            status = self.file.stat()
            self.assertEqual(status.st_size, 1 << 20)
            self.assertGreaterEqual(status.st_blocks * 512, 1 << 20)
            self.assertEqual(status.st_mode & 0o777, 0o600)
        self.assertFalse(self.file.exists())
        self.assertEqual(
            (self.root / "log").read_text().splitlines(),
            [f"mkswap {self.file}", f"swapon --priority=32767 {self.file}", f"swapoff {self.file}"],
        )

    def test_where_it_is_not_possible(self):
        self.programs(mkswap="exit 0", swapon='echo "swapon: Invalid argument" >&2; exit 1', swapoff="exit 1")
        with self.assertRaisesRegex(NotPossible, "Invalid argument"), host_states.swap_file(self.file):
            self.fail("it is not possible")
        self.assertFalse(self.file.exists())

    def test_for_whom_it_is_not_possible(self):
        with (
            mock.patch.object(os, "geteuid", return_value=1000),
            self.assertRaisesRegex(NotPossible, "root"),
            host_states.swap_file(self.file),
        ):
            self.fail("it is not possible")

    def test_one_that_is_in_use_is_left_alone(self):
        self.file.write_text("pages")
        self.swaps = [str(self.file)]
        with self.assertRaisesRegex(Problem, "in use.*swapoff"), host_states.swap_file(self.file):
            self.fail("it is in use")
        self.assertEqual(self.file.read_text(), "pages")

    def test_one_that_cannot_be_ended_is_said(self):
        self.programs(mkswap="exit 0", swapon="exit 0", swapoff="exit 1")
        with self.assertRaisesRegex(Problem, "still in use"), host_states.swap_file(self.file):
            self.swaps = [str(self.file)]
