"""Memory cgroups, in folders of the test."""

import errno
import unittest
from pathlib import Path
from unittest import mock

from harness.cgroup import Limit, groups
from harness.scratch import Scratch


class Groups(unittest.TestCase):
    def test_other_controllers_of_version_1_are_not_version_2(self):
        mounts = "30 23 0:2 / /cg rw - cgroup2 cgroup2 rw\n31 23 0:3 / /cpu rw - cgroup cgroup rw,cpu\n"
        for entries in ("1:cpu:/a\n0::/b\n", "1:name=systemd:/a\n0::/b\n"):
            self.assertEqual(groups(entries, mounts), (2, [Path("/cg/b"), Path("/cg")]))
        self.assertEqual(groups("1:cpu:/a\n", mounts), (0, []))


class Resizing(Scratch):
    NAMES = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")

    def limits(self) -> list[str]:
        return [(self.root / name).read_text().strip() for name in self.NAMES]

    def resize(self, limit_bytes: int, busy: str = "") -> bool:
        """From 1000; the kernel refuses to change the limit `busy`."""
        for name in self.NAMES:
            (self.root / name).write_text("1000\n")
        write = Path.write_text

        def or_refuse(path: Path, text: str) -> int:
            if path.name == busy:
                raise OSError(errno.EBUSY, "busy")
            return write(path, text)

        with mock.patch.object(Path, "write_text", or_refuse):
            return Limit(self.root, 1).resize(limit_bytes)

    def test_both_limits_of_version_1(self):
        for size in (500, 2000):
            self.assertTrue(self.resize(size))
            self.assertEqual(self.limits(), [str(size)] * 2)

    def test_none_changes_where_the_kernel_refuses_one(self):
        for name in self.NAMES:
            self.assertFalse(self.resize(500, name))
            self.assertEqual(self.limits(), ["1000"] * 2)
