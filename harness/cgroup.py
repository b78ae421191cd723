"""A memory limit like a container's: a memory cgroup of its own for a server."""

import contextlib
import errno
import itertools
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.problem import NotPossible

# A server has these where its group may end it: the ceiling would keep it alive.
OPTIONS = (
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=64M",
    "--disable-log-bin",
    "--memdiag-memory-target=OFF",
)

_number = itertools.count()  # several groups may exist at a time


@dataclass(frozen=True)
class Limit:
    """A memory cgroup of its own."""

    group: Path
    version: int

    def wrapper(self) -> tuple[str, ...]:
        """Words before a command, which move it into the group."""
        return _into(self.group)

    def resize(self, limit_bytes: int) -> bool:
        """Sets another limit. False: the kernel (version 1) refuses it, because it cannot reclaim enough at once. Then
        the limit is as before."""
        names = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] if self.version == 1 else ["memory.max"]
        with_swap = self.group / names[-1]
        if len(names) == 2 and not with_swap.exists():
            names.pop()
        elif len(names) == 2 and limit_bytes > int(with_swap.read_text()):
            names.reverse()  # the limit with swap must never be the lower one
        changed: dict[Path, str] = {}
        try:
            for file in (self.group / name for name in names):
                before = file.read_text()
                file.write_text(str(limit_bytes))
                changed[file] = before
        except OSError as error:
            for file, before in changed.items():
                file.write_text(before)
            if error.errno != errno.EBUSY:
                raise
            return False
        return True

    def figures(self) -> dict[str, int]:
        if self.version == 1:
            names = ("memory.oom_control", "memory.max_usage_in_bytes")
        else:
            names = ("memory.events", "memory.peak")
        kills = re.search(r"^oom_kill (\d+)", (self.group / names[0]).read_text(), re.MULTILINE)
        try:
            peak = int((self.group / names[1]).read_text())
        except FileNotFoundError:  # version 2 before Linux 5.19
            peak = 0
        return {"oom_kills": int(kills[1]) if kills else 0, "peak_kb": peak // 1024}

    def used_bytes(self) -> int:
        """The bytes in use, without the page cache that the kernel can drop at once: as the server counts."""
        if self.version == 1:
            names = ("memory.usage_in_bytes", "total_inactive_file")
        else:
            names = ("memory.current", "inactive_file")
        stat = dict(line.split() for line in (self.group / "memory.stat").read_text().splitlines())
        return int((self.group / names[0]).read_text()) - int(stat[names[1]])


def groups(cgroup: str, mountinfo: str) -> tuple[int, list[Path]]:
    """Version and folders of the memory cgroups that this process is in, its own first.

    The arguments are the texts of /proc/self/cgroup and /proc/self/mountinfo. A child of the process's own group is
    within all limits of this process. Version 2 does not allow such a child while processes are in the group; then one
    of its parents may.
    """
    entries = [line.split(":", 2) for line in cgroup.splitlines()]
    mounts = [line.split() for line in mountinfo.splitlines()]
    for version, kind in ((1, "cgroup"), (2, "cgroup2")):
        for _, controllers, path in entries:
            # The entry of version 2 names no controllers.
            wanted = "memory" if version == 1 else ""
            if wanted not in controllers.split(","):
                continue
            for mount in mounts:
                dash = mount.index("-")
                if mount[dash + 1] != kind or (version == 1 and "memory" not in mount[-1].split(",")):
                    continue
                top = Path(mount[4])
                own = top / path.removeprefix(mount[3].rstrip("/")).strip("/")
                up = [own, *own.parents]
                return version, up[: up.index(top) + 1]
    return 0, []


@contextlib.contextmanager
def memory_limit(limit_kb: int, above: Limit | None = None) -> Iterator[Limit]:
    """Makes a group with this limit, below the group `above`, which has no processes of its own."""
    limit = _make(limit_kb, above)
    try:
        yield limit
    finally:
        _remove(limit.group)


def _into(group: Path) -> tuple[str, ...]:
    return (*("sh", "-c", 'echo $$ > "$0" && exec "$@"'), str(group / "cgroup.procs"))


def _remove(group: Path) -> None:
    # The kernel may need a moment after the end of the last process.
    for attempt in range(50):
        try:
            group.rmdir()
            break
        except OSError:
            if attempt == 49:
                raise
            time.sleep(0.1)


def _make(limit_kb: int, above: Limit | None) -> Limit:
    if above is not None:
        version, parents = above.version, [above.group]
    else:
        version, parents = groups(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    reason: object = "this process is in no memory cgroup that it can see"
    for parent in parents:
        group = parent / f"memdiag-bench-{os.getpid()}-{next(_number)}"
        try:
            if version == 2:
                with contextlib.suppress(OSError):  # the controller may be on already
                    (parent / "cgroup.subtree_control").write_text("+memory")
            group.mkdir()
        except OSError as error:
            reason = error
            continue
        try:
            names = (
                ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
                if version == 1
                else ("memory.max", "memory.swap.max")
            )
            for name, value in zip(names, (limit_kb << 10, limit_kb << 10 if version == 1 else 0), strict=True):
                # Not every kernel counts swap. Where it does, swap must not take what exceeds the limit.
                if name == names[0] or (group / name).exists():
                    (group / name).write_text(str(value))
            return Limit(group, version)
        except OSError as error:
            group.rmdir()
            reason = error
    raise NotPossible(f"no memory cgroup can be made: {reason}")


@contextlib.contextmanager
def processors(count: float, limit: Limit) -> Iterator[tuple[str, ...]]:
    """A quota of processor time. The words are to stand before a command, beside those of `limit`."""
    period_us = 100_000
    quota_us = int(count * period_us)
    if limit.version == 2:
        with contextlib.suppress(OSError):  # the controller may be on already
            (limit.group.parent / "cgroup.subtree_control").write_text("+cpu")
        try:
            (limit.group / "cpu.max").write_text(f"{quota_us} {period_us}")
        except OSError as error:
            raise NotPossible(f"no quota of processors can be set: {error}") from error
        yield ()
        return
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    tops = [Path(mount[4]) for mount in mounts if "cpu" in mount[-1].split(",") and "cgroup" in mount]
    if not tops:
        raise NotPossible("no control group has quotas of processors")
    group = tops[0] / limit.group.name
    try:
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text(str(period_us))
        (group / "cpu.cfs_quota_us").write_text(str(quota_us))
    except OSError as error:
        raise NotPossible(f"no quota of processors can be set: {error}") from error
    try:
        yield _into(group)
    finally:
        _remove(group)
