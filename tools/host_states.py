#!/usr/bin/env python3
"""MEMDIAG_ADVICE of a live server in states of its machine: huge pages, a limit that is near, a kill, page cache, swap.

This program makes each state, expects the advisor to find it, and ends it, even if the program is killed. Afterwards
the advisor must not find it. A state that the machine does not allow (no root, no control groups, no swap) is skipped
with the reason.
"""

import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import cgroup, huge_pages
from harness.at_the_end import at_the_end
from harness.cgroup import Limit
from harness.checks import Checks
from harness.common import ROOT, lock, preset_of_arguments, require_disk, say
from harness.phrase_searches import MYSQLD_OPTIONS
from harness.problem import NotPossible, Problem, run_main
from harness.server import Build, Server, initialise
from harness.sql import Connection, SqlError

MB = 1 << 20
OPTIONS = (
    *MYSQLD_OPTIONS,
    "--innodb-buffer-pool-size=64M",
    # The ceiling would keep the server away from its limit.
    "--memdiag-memory-target=OFF",
    # Unused pages of user variables stay until they are purged.
    "--memdiag-quiet-ms=session=0",
    "--memdiag-dirty-decay-ms=session=-1",
)
LIMIT_MB = 640
# From 90% on the advisor has a finding; at 100% the kernel kills.
FULL = 0.92
# The size of a variable is 1% of the limit, so no step jumps over the range from 92% to 100%.
STEP_MB = 6
# So much of the limit is for the server.
ROOM_MB = 75
SWAP_MB = 256
IDLE_MB = 320
IDLE_STEP_MB = 32
SQUEEZED_MB = 192
# From 64 MB on the advisor has a finding. The server reads a little of it again meanwhile.
ENOUGH_MB = 80
PATIENCE_SECONDS = 120
# Ends the server if this program was killed. A server that was stopped has no pid file.
END_SERVER = 'read -r pid < "$1" && grep -qF -- "--datadir=$2" "/proc/$pid/cmdline" && kill "$pid"'


# --- states that end by themselves ------------------------------------------------


def _swaps() -> list[str]:
    try:
        return [line.split()[0] for line in Path("/proc/swaps").read_text().splitlines()[1:]]
    except OSError as error:
        raise NotPossible(f"this kernel does not swap: {error}") from None


@contextlib.contextmanager
def swap_file(path: Path) -> Iterator[None]:
    """A swap file that is used before any other, and removed with what it holds."""
    if str(path) in _swaps():
        raise Problem(f"{path} is in use; end it first: swapoff {path}")
    if os.geteuid() != 0:
        raise NotPossible("only root can add swap")
    path.unlink(missing_ok=True)
    # A second try: a control group that was made small needs a moment to become large again.
    remove = 'swapoff "$1" || { grep -qF "$1 " /proc/swaps && sleep 2 && swapoff "$1"; }; rm -f "$1"'
    with at_the_end(remove, path):
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            try:
                os.posix_fallocate(file, 0, SWAP_MB * MB)
            finally:
                os.close(file)
            for command in (["mkswap"], ["swapon", "--priority=32767"]):
                subprocess.run([*command, str(path)], check=True, capture_output=True, text=True)
        except OSError as error:
            raise NotPossible(f"no swap file can be made: {error}") from None
        except subprocess.CalledProcessError as error:
            raise NotPossible(f"no swap: {error.stderr.strip()}") from None
        yield
    if str(path) in _swaps():
        raise Problem(f"{path} is still in use; end it: swapoff {path}; rm {path}")


def swap_out(limit: Limit, bytes_: int, enough: Callable[[], bool]) -> None:
    """Make the kernel swap a control group out down to `bytes_` of memory, until enough() is true; then undo that.

    It may fail, because the swap file is small and other processes swap, too, where memory is short.
    """
    if limit.version == 1:
        # The limit of memory and swap together stays as it is.
        file = limit.group / "memory.limit_in_bytes"
        before = file.read_text().strip()
    else:
        # With memory.max, the kernel would kill.
        file, before = limit.group / "memory.high", "max"
        with contextlib.suppress(FileNotFoundError):
            (limit.group / "memory.swap.max").write_text("max")
    deadline = time.monotonic() + PATIENCE_SECONDS
    with at_the_end('echo "$1" > "$2"', before, file):
        while not enough() and time.monotonic() < deadline:
            # The kernel answers EBUSY while it still writes pages out.
            with contextlib.suppress(OSError):
                file.write_text(str(bytes_))
            time.sleep(0.1)


# --- what the advisor says ---------------------------------------------------------


def found(session: Connection, subsystem: str, evidence: str) -> dict[str, str] | None:
    """The finding of this subsystem with matching evidence. It reads the whole table, as a user does."""
    table = session.query("SELECT * FROM information_schema.MEMDIAG_ADVICE")
    for row in table.dicts():
        if row["SUBSYSTEM"] == subsystem and re.search(evidence, row["EVIDENCE"]):
            return row
    return None


def huge_pages_everywhere(start: Callable[..., Server], checks: Checks) -> None:
    def chosen() -> str:
        return re.search(r"\[(\w+)\]", huge_pages.SETTING.read_text())[1]

    def seen() -> dict[str, str] | None:
        return found(session, "allocator", "huge pages are 'always'")

    def of_pools() -> int:
        return sum(int(host(session, "huge_pages", f"pool.{pool}")) for pool in ("perfschema", "innodb", "general"))

    with huge_pages.always() as former:
        # With its default settings, the server asks the kernel for none.
        with start() as server, server.connect() as session:
            checks.check("with huge pages 'always' pools have none", of_pools() == 0)
            checks.check("there is nothing to advise", seen() is None)
        checks.check("'always' was set", chosen() == "always")
        wanted = ("env", "MALLOC_CONF=thp:default")
        with start(wanted) as server, server.connect() as session:
            checks.check("with thp:default pools have some", of_pools() > 0)
            row = seen()
            checks.check("they are found", row is not None)
            if row is not None:
                remedy = f"echo madvise > {huge_pages.SETTING}"
                checks.check("their remedy is to the point", remedy in row["REMEDY"])
                checks.check("they are a warning", row["SEVERITY"] == "warning")
            # The advice recommends this.
            huge_pages.SETTING.write_text("madvise")
            checks.check("their remedy ends it", seen() is None)
    checks.check("the machine is as before", chosen() == former)


def near_the_limit(start: Callable[..., Server], checks: Checks) -> None:
    def seen() -> dict[str, str] | None:
        return found(session, "cgroup", r"of the control group's limit of \d+ MiB are")

    with cgroup.memory_limit(LIMIT_MB << 10) as limit, start(limit.wrapper()) as server, server.connect() as session:
        checks.check("far from the limit nothing is said", seen() is None)
        count = 0
        while limit.used_bytes() < FULL * LIMIT_MB * MB:
            keep(session, f"@v{count}", STEP_MB)
            count += 1
        row = seen()
        checks.check("near the limit it is found", row is not None)
        if row is None:
            return
        checks.check("it is critical", row["SEVERITY"] == "critical")
        checks.check("the limit is the group's", f"limit of {LIMIT_MB} MiB" in row["EVIDENCE"])
        for number in range(count):
            session.query(f"SET @v{number} = NULL")
        checks.check("what is freed is kept, and found", seen() is not None)
        statement = row["REMEDY"].partition(";")[0]
        checks.check("the remedy purges", statement == "SELECT memdiag_purge('all')")
        session.query("SELECT memdiag_purge('all')")
        checks.check("the remedy helps", seen() is None)
        checks.check("no process was killed", limit.figures()["oom_kills"] == 0)


def killed(start: Callable[..., Server], checks: Checks) -> None:
    with cgroup.memory_limit(LIMIT_MB << 10) as limit, start(limit.wrapper()) as server, server.connect() as session:
        # This makes the kernel kill the process first.
        first = 'echo 1000 > /proc/self/oom_score_adj && exec "$@"'
        hog = [sys.executable, "-c", f"bytearray(b'x') * ({2 * LIMIT_MB} << 20)"]
        command = [*limit.wrapper(), "sh", "-c", first, "sh", *hog]
        seen = functools.partial(found, session, "cgroup", "OOM killer has killed: 1$")
        checks.check("no process was killed, and nothing is said", seen() is None)
        status = subprocess.run(command, check=False).returncode
        checks.check("one was killed", status == -signal.SIGKILL, str(status))
        row = seen()
        checks.check("it is found", row is not None)
        if row is not None:
            last_run = "information_schema.memdiag_history where run > 0" in row["REMEDY"].lower()
            checks.check("its remedy shows runs that were killed", last_run)


def page_cache(start: Callable[..., Server], checks: Checks) -> None:
    """Pages of files fill a group, also of one that was read twice. That is no shortage, because the kernel drops these
    pages."""
    with cgroup.memory_limit(LIMIT_MB << 10) as limit, start(limit.wrapper()) as server, server.connect() as session:
        if host(session, "device", "file_system") == "tmpfs":
            raise NotPossible("the build is on a file system that is memory")
        file = server.folder / "page-cache"
        copy = ["dd", "if=/dev/zero", f"of={file}", "bs=1M", f"count={LIMIT_MB}"]
        try:
            subprocess.run([*limit.wrapper(), *copy, "conv=fsync", "status=none"], check=True)
            # The part that fits stays, and its pages become active.
            again = ["sh", "-c", f'truncate -s {LIMIT_MB - ROOM_MB}M "$1" && cat "$1" "$1" >/dev/null', "sh", file]
            for words, command in (
                ("page cache is not taken for use", ["true"]),
                ("active page cache is not taken for use", again),
            ):
                subprocess.run([*limit.wrapper(), *command], check=True)
                usage = float(host(session, "cgroup", "effective_usage"))
                if usage < FULL * LIMIT_MB * MB:
                    raise NotPossible(f"the kernel keeps {usage / MB:.0f} MB only")
                row = found(session, "cgroup", "of the control group's limit")
                checks.check(words, row is None, row["EVIDENCE"] if row else "")
        finally:
            file.unlink(missing_ok=True)


def swap(start: Callable[..., Server], checks: Checks) -> None:
    def seen() -> dict[str, str] | None:
        return found(session, "machine", r"^\d+ MiB of the server are swapped out$")

    with (
        cgroup.memory_limit(2 * LIMIT_MB << 10) as limit,
        start(limit.wrapper()) as server,
        server.connect() as session,
    ):
        with swap_file(server.folder.parent / "host-states.swap"):
            for number in range(IDLE_MB // IDLE_STEP_MB):
                keep(session, f"@idle{number}", IDLE_STEP_MB)
            checks.check("nothing is said before", seen() is None)
            swap_out(limit, limit.used_bytes() - SQUEEZED_MB * MB, lambda: swapped_mb(server) >= ENOUGH_MB)
            swapped = swapped_mb(server)
            if swapped < ENOUGH_MB:
                raise NotPossible(f"the kernel swapped out {swapped} MB only")
            row = seen()
            checks.check("what is swapped out is found", row is not None)
            if row is not None:
                said = int(row["EVIDENCE"].split()[0])
                good = abs(said - swapped_mb(server)) <= swapped // 4
                checks.check("it is as the kernel says", good, f"{said}, {swapped}")
                checks.check("it is a warning", row["SEVERITY"] == "warning")
        checks.check("without swap nothing is said", seen() is None)
        checks.check("nothing is swapped out", swapped_mb(server) == 0)


def host(session: Connection, subject: str, name: str) -> str:
    return session.query(
        "SELECT IFNULL(VALUE, NUMBER) FROM information_schema.MEMDIAG_HOST"
        f" WHERE SUBJECT = '{subject}' AND NAME = '{name}'"
    ).scalar()


def keep(session: Connection, variable: str, megabytes: int) -> None:
    # A full megabyte with its header would need the next size class.
    session.query(f"SET {variable} = REPEAT('v', ({megabytes} << 20) - 8192)")


def swapped_mb(server: Server) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(re.search(r"^VmSwap:\s*(\d+) kB", status, re.MULTILINE)[1]) >> 10


# --- main --------------------------------------------------------------------------

STATES = {
    "huge pages": huge_pages_everywhere,
    "a limit that is near": near_the_limit,
    "a kill": killed,
    "page cache": page_cache,
    "swap": swap,
}


def run(build: Build, folder: Path) -> int:
    require_disk([(folder, 1.5, "a server, a swap file and a file to write")])
    if not (folder / "data").exists():
        initialise(build, folder / "data")

    @contextlib.contextmanager
    def start(wrapper: Sequence[str] = ()) -> Iterator[Server]:
        server = Server(build, folder, OPTIONS, None, wrapper)
        with at_the_end(END_SERVER, server.pid_file, server.data), server:
            server.start()
            yield server

    checks = Checks("host_states")
    for name, state in STATES.items():
        say(f"== {name}")
        try:
            state(start, checks)
        except NotPossible as reason:
            checks.skip(name, reason)
        except (Problem, SqlError, OSError, subprocess.SubprocessError) as error:
            checks.check(name, False, str(error))
    return checks.finish()


def main() -> int:
    preset = preset_of_arguments(__doc__)
    folder = ROOT / "build" / preset / "host-states"
    build = Build.of_preset(ROOT, preset)
    with lock(folder.with_suffix(".lock"), "trying states of the machine"):
        return run(build, folder)


if __name__ == "__main__":
    run_main("host_states", main)
