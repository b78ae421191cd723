"""The history file and the flight recorder's file on real file systems: full disks with and without reflinks, failing
writes, and a file that others change.

No packages and no machines: the build's server runs on images that are mounted for the test. None of this may end it.
"""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.checks import Checks, Failed
from harness.problem import Problem
from harness.programs import captured
from harness.server import Build, Server, initialise
from harness.sql import SqlError
from harness.waiting import until
from tests.machine import missing_tools

BLACK_BOX = "memdiag_history.bin"
RECORDER = "memdiag_profile.bin"
# Without one of these, a failure that the black box has to survive would go untested.
TOOLS = {"mkfs.ext4": "e2fsprogs", "mkfs.xfs": "xfsprogs", "mkfs.btrfs": "btrfs-progs", "rsync": "rsync", "cc": "gcc"}
# mkfs's arguments, and whether `cp --reflink` works. xfs is never smaller than 300 MB.
FILE_SYSTEMS = {
    "ext4": (["mkfs.ext4", "-q", "-F"], False),
    "xfs": (["mkfs.xfs", "-q", "-f", "-m", "reflink=1"], True),
    "btrfs": (["mkfs.btrfs", "-q", "-f"], True),
}
IMAGE_MB = 640
COPY_MB = 16  # what is free when the black box is copied
OPTIONS = [
    "--memdiag-history-interval-ms=20",
    "--memdiag-history-samples=500",
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=16M",
    "--skip-log-bin",
]
# After a failed write, the server tries again after so many samples (black_box.h).
RETRY_SAMPLES = 60
# While the file that this variable names exists, the library makes writes of the black box fail.
FAILING_WRITES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int file) {
  char link[64], path[4096];
  const char *mark = getenv("FAILING_WRITES");
  if (mark == NULL || access(mark, F_OK) != 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  return strstr(path, "memdiag_history.bin") != NULL;
}

#define FAIL_OR_WRITE(name)                                                   \
  ssize_t name(int file, const void *from, size_t count, off_t at) {          \
    static ssize_t (*next)(int, const void *, size_t, off_t);                 \
    if (next == NULL)                                                         \
      next = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT,   \
                                                                 #name);      \
    if (fails(file)) {                                                        \
      errno = EIO;                                                            \
      return -1;                                                              \
    }                                                                         \
    return next(file, from, count, at);                                       \
  }
FAIL_OR_WRITE(pwrite)
FAIL_OR_WRITE(pwrite64)
"""


def file_systems(run) -> None:
    report: Checks = run.report
    if missing := missing_tools(TOOLS):
        raise Problem(f"programs are missing; run: apt-get install {' '.join(missing)}")
    ours = Build.of_preset(Path(__file__).resolve().parents[2], run.preset)
    work = run.work / "filesystems"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        initialise(ours, work / "template" / "data", OPTIONS[2:])
        for kind, (mkfs, reflinks) in FILE_SYSTEMS.items():
            try:
                with mounted(work / kind, mkfs) as folder:
                    shutil.copytree(work / "template" / "data", folder / "data")
                    full_disk(report, kind, ours, folder, reflinks)
            except Unmountable as reason:
                report.skip(kind, reason)
        failing_writes(report, ours, work)
        changed_by_others(report, ours, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


class Unmountable(Exception):
    """This machine has no loop devices or no such file system."""


@contextlib.contextmanager
def mounted(folder: Path, mkfs: list[str]) -> Iterator[Path]:
    image = folder.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(IMAGE_MB << 20)
    _run([*mkfs, str(image)])
    folder.mkdir()
    done = captured(["mount", "-o", "loop", str(image), str(folder)])
    if done.returncode != 0:
        raise Unmountable(done.stderr.strip() or "it cannot be mounted")
    try:
        yield folder
    finally:
        _run(["umount", str(folder)])
        image.unlink()


def full_disk(report: Checks, kind: str, ours: Build, folder: Path, reflinks: bool) -> None:
    with Server(ours, folder, OPTIONS) as server:
        server.start()
        file = server.data / BLACK_BOX
        wait_for_samples(server, 10)
        if reflinks:
            # A write to a block that the copy shares needs a new block. The copy comes late: the server writes all
            # records anew in ten seconds, and then shares no block with it.
            fill(server, folder, COPY_MB << 20)
            _run(["cp", "--reflink=always", str(file), str(folder / "copy")])
        filler = fill(server, folder)
        report.check(f"{kind}: the disk is full", free_bytes(folder) < 1 << 20, free_bytes(folder))
        goes_on(report, f"{kind}, full", server, 2 * RETRY_SAMPLES)
        if reflinks:
            was_logged(report, kind, server, BLACK_BOX, "No space left on device")
        recorder_without_room(report, kind, server)
        filler.unlink()
        (folder / "copy").unlink(missing_ok=True)
        goes_on(report, f"{kind}, with room again", server, 2 * RETRY_SAMPLES)
        survives_kill(report, kind, server)
        recorder_on_disk_that_fills(report, kind, server, folder, reflinks)


def recorder_without_room(report: Checks, kind: str, server: Server) -> None:
    """The flight recorder first reserves the space of its file. On a full disk: one error, and no file remains."""
    message = ""
    try:
        server.query("SET GLOBAL memdiag_profile = RECORD")
    except SqlError as error:
        message = str(error)
    report.check(
        f"{kind}: RECORD says that there is no room",
        RECORDER in message and "No space left on device" in message,
        message,
    )
    report.equal(f"{kind}: the profiler stays off", server.query("SELECT @@GLOBAL.memdiag_profile").scalar(), "OFF")
    left = (server.data / RECORDER).exists()
    report.check(f"{kind}: no half a file is left", not left)


def recorder_on_disk_that_fills(report: Checks, kind: str, server: Server, folder: Path, reflinks: bool) -> None:
    server.query("SET GLOBAL memdiag_profile = RECORD")
    with report.checking(f"{kind}: the recorder begins where there is room"):
        wait_until(server, lambda: records(server) > 0)
    file = server.data / RECORDER
    if reflinks:
        _run(["cp", "--reflink=always", str(file), str(folder / "copy")])
    filler = fill(server, folder)
    before = records(server)
    with server.connect() as session, report.checking(f"{kind}, full: the recorder goes on, or the log says why not"):
        # Each allocation is a new high of RSS.
        for number in range(4):
            session.query(f"SET @kept{number} = REPEAT('k', 48 << 20)")
        wait_until(server, lambda: records(server) > before or logged(server, RECORDER, "No space left on device") > 0)
    filler.unlink()
    (folder / "copy").unlink(missing_ok=True)
    before = records(server)
    with server.connect() as session, report.checking(f"{kind}, with room again: the recorder goes on"):
        for number in range(6):
            session.query(f"SET @kept{number} = REPEAT('k', 60 << 20)")
        wait_until(server, lambda: records(server) > before)
    server.query("SET GLOBAL memdiag_profile = OFF")


def failing_writes(report: Checks, ours: Build, work: Path) -> None:
    source = work / "failing_writes.c"
    source.write_text(FAILING_WRITES)
    library = source.with_suffix(".so")
    _run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"])
    folder = work / "eio"
    shutil.copytree(work / "template" / "data", folder / "data")
    mark = folder / "fail"
    env = {**os.environ, "LD_PRELOAD": str(library), "FAILING_WRITES": str(mark)}
    with Server(ours, folder, [*OPTIONS, "--log-error-verbosity=3"], env) as server:
        server.start()
        wait_for_samples(server, 10)
        mark.touch()
        goes_on(report, "an I/O error", server, 2 * RETRY_SAMPLES)
        was_logged(report, "an I/O error", server, BLACK_BOX, "Input/output error")
        mark.unlink()
        goes_on(report, "after the I/O error", server, 2 * RETRY_SAMPLES)
        survives_kill(report, "after an I/O error", server)


def changed_by_others(report: Checks, ours: Build, work: Path) -> None:
    """The steps of mysql-test's black_box.test, and rsync."""
    folder = work / "changed"
    shutil.copytree(work / "template" / "data", folder / "data")
    with Server(ours, folder, OPTIONS) as server:
        server.start()
        wait_for_samples(server, 10)
        file = server.data / BLACK_BOX
        earlier = folder / "earlier"
        shutil.copy(file, earlier)
        steps: dict[str, Callable[[], object]] = {
            "truncated": lambda: os.truncate(file, 5000),
            "emptied (: >)": lambda: _run(["sh", "-c", ': > "$1"', "sh", str(file)]),
            "rsync --inplace": lambda: _run(["rsync", "--inplace", "--ignore-times", str(earlier), str(file)]),
        }
        for name, step in steps.items():
            step()
            goes_on(report, name, server, 10)
        survives_kill(report, "after changes by others", server)


def newest_sample_us(server: Server) -> int:
    """Microseconds since 1970; 0 where there is no sample."""
    newest = server.query(
        "SELECT CAST(UNIX_TIMESTAMP(MAX(TIME)) * 1000000 AS UNSIGNED) FROM information_schema.MEMDIAG_HISTORY"
    ).scalar()
    return int(newest or 0)


def wait_for_samples(server: Server, count: int, seconds: float = 120) -> None:
    """Looks at the times of the samples, not at their number: the ring may be full."""
    seen: set[int] = set()
    end = time.monotonic() + seconds
    while len(seen) <= count:
        if not server.alive():
            raise Failed("the server has ended")
        if time.monotonic() > end:
            raise Failed(f"only {len(seen)} of {count} samples within {seconds:.0f} s")
        seen.add(newest_sample_us(server))


def goes_on(report: Checks, when: str, server: Server, count: int) -> None:
    with report.checking(f"{when}: the server goes on, with {count} samples more"):
        wait_for_samples(server, count)


def records(server: Server) -> int:
    """The flight recorder's moments of this run."""
    found = server.query("SELECT COUNT(DISTINCT TIME) FROM information_schema.MEMDIAG_PROFILE_HISTORY WHERE RUN = 0")
    return int(found.scalar() or 0)


def wait_until(server: Server, condition: Callable[[], bool], seconds: float = 120) -> None:
    in_time = until(lambda: not server.alive() or condition(), seconds)
    if not server.alive():
        raise Failed("the server has ended")
    if not in_time:
        raise Failed(f"not within {seconds:.0f} s")


def dirty_pages(server: Server) -> int:
    query = "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'"
    ((_, pages),) = server.query(query).rows
    if pages is None:
        raise Problem("the server does not say how many pages are dirty")
    return int(pages)


def logged(server: Server, file: str, error: str) -> int:
    """Counts lines in the table of the error log, because the log's file may lie on the full disk."""
    found = server.query(
        f"SELECT COUNT(*) FROM performance_schema.error_log WHERE DATA LIKE '%{file}%' AND DATA LIKE '%{error}%'"
    )
    return int(found.scalar() or 0)


def was_logged(report: Checks, when: str, server: Server, file: str, error: str) -> None:
    """Checks that the log reports the failed write."""
    lines = logged(server, file, error)
    report.check(f"{when}: the log says that {file} cannot be written", lines > 0, lines)


def survives_kill(report: Checks, when: str, server: Server) -> None:
    """Written samples survive SIGKILL: the next run shows them."""
    last_us = newest_sample_us(server)
    wait_for_samples(server, 3)
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    server.start()
    found = server.query(
        "SELECT COUNT(*) FROM information_schema.MEMDIAG_HISTORY WHERE RUN = 1"
        f" AND SHUT_DOWN = 'NO' AND TIME >= FROM_UNIXTIME({last_us} / 1000000)"
    ).scalar()
    report.check(f"{when}: killed, and its last samples are there", int(found or 0) > 0, found)


def fill(server: Server, folder: Path, leave: int = 0) -> Path:
    """Fills the disk with one file, down to the last block or to `leave` bytes. InnoDB ends a server that cannot write a
    page. So fill() first waits until no page is dirty."""
    wait_until(server, lambda: dirty_pages(server) == 0)
    filler = folder / "filler"
    with filler.open("ab", buffering=0) as file:
        size = 1 << 20
        while size >= 4096 and (not leave or free_bytes(folder) > leave):
            try:
                # Random bytes, because a file system may compress.
                file.write(os.urandom(size))
                os.fsync(file.fileno())
            except OSError:
                size //= 4
    return filler


def free_bytes(folder: Path) -> int:
    about = os.statvfs(folder)
    return about.f_bavail * about.f_frsize


def _run(command: list[str]) -> None:
    done = captured(command)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
