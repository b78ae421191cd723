"""System calls of our code in mysqld, which fail on demand: the file through which calls_shim.cc is steered."""

import bisect
import errno
import mmap
import struct
from collections.abc import Mapping
from pathlib import Path

from harness.problem import Problem
from harness.programs import captured

# calls_shim.cc has the same kinds in the same order.
KINDS = (
    *("open", "read", "pread", "pwrite", "fstat", "stat", "statfs", "close", "unlink", "rename", "readlink"),
    *("realpath", "posix_fallocate", "ftruncate", "fdatasync", "mmap", "munmap", "madvise", "mincore", "ioctl"),
    "pthread_create",
)
HALF = 1 << 20
_RANGES, _COUNT, _SKIP, _ONLY, _SEEN, _FAILED, _ERRORS = (8 * place for place in range(7))
_SITES = _ERRORS + 8 * 32
_SITE, _SITES_ROOM = 24, 512
_FIRST_RANGE = _SITES + _SITE * _SITES_ROOM


def functions_of(program: Path) -> list[tuple[int, int, str]]:
    """Lists begin, end and symbol of our C++ functions. Functions of C that bear our name are in jemalloc."""
    said = captured(["nm", "--defined-only", "--print-size", str(program)])
    if said.returncode:
        raise Problem(f"nm cannot read {program}: {said.stderr.strip()}")
    rows = (line.split() for line in said.stdout.splitlines())
    found = {
        int(row[0], 16): (int(row[1], 16), row[3])
        for row in rows
        if len(row) == 4 and row[2] in "tTwW" and row[3].startswith("_") and "memdiag" in row[3]
    }
    return [(begin, begin + size, name) for begin, (size, name) in sorted(found.items()) if size]


class Calls:
    """Makes calls of a server fail. One server at a time starts with `environment`."""

    def __init__(self, file: Path, program: Path) -> None:
        self.functions = functions_of(program)
        if not self.functions:
            raise Problem(f"{program} has no function of ours, or no symbols")
        ranges = b"".join(struct.pack("<QQ", begin, end) for begin, end, _ in self.functions)
        file.write_bytes(struct.pack("<Q", len(self.functions)).ljust(_FIRST_RANGE, b"\0") + ranges)
        self.environment = {"MEMDIAG_CALLS": str(file)}
        with file.open("r+b") as opened:
            self._file = mmap.mmap(opened.fileno(), 0)

    def _set(self, at: int, value: int) -> None:
        struct.pack_into("<Q", self._file, at, value)

    def _get(self, at: int) -> int:
        return int(struct.unpack_from("<Q", self._file, at)[0])

    def arm(self, errors: Mapping[str, int], skip: int, count: int, only: int = 0) -> None:
        """Calls of these kinds fail so: `count` of them, after `skip` others. `only`: from this site; 0: from any."""
        self._set(_COUNT, 0)
        for place, kind in enumerate(KINDS):
            self._set(_ERRORS + 8 * place, errors.get(kind, 0))
        for at, value in ((_SEEN, 0), (_FAILED, 0), (_ONLY, only), (_SKIP, skip), (_COUNT, count)):
            self._set(at, value)

    def disarm(self) -> tuple[int, int]:
        """@return calls of these kinds since arm(), and how many of them failed"""
        self._set(_COUNT, 0)
        return self._get(_SEEN), self._get(_FAILED)

    def sites(self) -> dict[int, tuple[int, int]]:
        """Where our code calls: how often it called, and how often that failed."""
        rows = (struct.unpack_from("<QQQ", self._file, at) for at in range(_SITES, _FIRST_RANGE, _SITE))
        return {key: (seen, failed) for key, seen, failed in rows if key}

    def name(self, site: int) -> str:
        """The kind and the place."""
        address = site >> 8
        begin, _, name = self.functions[bisect.bisect_left(self.functions, (address,)) - 1]
        return f"{KINDS[site & 0x7F]} {name}+{address - begin:#x}"


# Ways of failing, and whether all calls from one on fail so. A call that is interrupted for ever is tried for ever.
WAYS: dict[str, tuple[dict[str, int], bool]] = {
    "refused": (
        {
            **dict.fromkeys(KINDS, errno.EIO),
            **{"open": errno.EMFILE, "pwrite": errno.ENOSPC, "posix_fallocate": errno.ENOSPC, "rename": errno.ENOSPC},
            **{"mmap": errno.ENOMEM, "munmap": errno.ENOMEM, "madvise": errno.EINVAL, "ioctl": errno.ENOTTY},
            **{"mincore": errno.EAGAIN, "pthread_create": errno.EAGAIN, "statfs": errno.EACCES, "stat": errno.EACCES},
        },
        True,
    ),
    "not allowed": (
        {
            **dict.fromkeys(("open", "unlink", "rename", "readlink", "realpath"), errno.EACCES),
            **dict.fromkeys(("read", "pread", "pthread_create", "madvise"), errno.ENOMEM),
            **dict.fromkeys(("pwrite", "posix_fallocate", "ftruncate"), errno.EDQUOT),
        },
        True,
    ),
    "short": (dict.fromkeys(("read", "pread", "pwrite"), HALF), True),
    "interrupted": (dict.fromkeys(("read", "pread", "pwrite", "posix_fallocate", "ioctl"), errno.EINTR), False),
}
