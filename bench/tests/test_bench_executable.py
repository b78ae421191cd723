"""The page cache and a server's executable."""

import mmap
import os
from unittest import mock

from bench.runner import executable
from harness.scratch import Scratch


class ReadAnew(Scratch):
    def test_the_whole_file_is_dropped_and_then_read(self) -> None:
        path = self.root / "mysqld"
        path.write_bytes(bytes(3 * mmap.PAGESIZE + executable.PIECE))
        told: list[tuple[str, int]] = []
        read = os.read

        def advise(_: int, *words: int) -> None:
            self.assertEqual((0, 0, os.POSIX_FADV_DONTNEED), words)
            told.append(("drop", 0))

        def reading(file: int, size: int) -> bytes:
            piece = read(file, size)
            told.append(("read", len(piece)))
            return piece

        with mock.patch.object(os, "posix_fadvise", advise), mock.patch.object(os, "read", reading):
            executable.read_anew(path)
        self.assertEqual("drop", told[0][0])
        self.assertEqual(path.stat().st_size, sum(size for _, size in told[1:]))

    def test_a_missing_file_is_an_error(self) -> None:
        with self.assertRaises(FileNotFoundError):
            executable.read_anew(self.root / "none")
