#!/usr/bin/env python3
"""Control groups of version 2, on a real kernel: the limits that the server reads, its ceiling, and a kill.

  proof/version_2.py [--preset dev] [--minutes 60]

The checks, and those of CI that need a control group, run in a virtual machine (machine.py) that has version 2 alone, as
most containers have. They take half an hour without KVM. Where this machine has version 2 itself, --here runs the checks
of this file at once.
"""

import argparse
import shlex
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import cgroup
from harness.checks import Checks, not_possible
from harness.common import ROOT, known_preset
from harness.problem import NotPossible, Problem, run_main
from harness.server import Build, Server, initialise
from harness.snapshots import of_cgroup
from harness.sql import SqlError
from proof import machine

NAME = "version_2"
MIB = 1 << 20
OWN_MB = 640
ABOVE_MB = 1024
HIGH_MB = 480
CLIENTS = 8
# Each client asks for 16 times as much as is there.
VALUE_MB = 8
VALUES = OWN_MB * 16 // VALUE_MB // CLIENTS
CAPACITY_EXCEEDED = 3170
PATIENCE = 60.0
MACHINE_MB = 4096
OPTIONS = ("--innodb-buffer-pool-size=256M", "--innodb-redo-log-capacity=64M", "--disable-log-bin")
LOAD_OPTIONS = (*OPTIONS, "--memdiag-memory-wait-ms=2000", "--max-allowed-packet=64M")


def target_mb(server: Server) -> float:
    shown = server.query("SHOW GLOBAL STATUS LIKE 'Memdiag_ceiling_target_bytes'").rows[0][1]
    return int(shown or 0) / MIB


def waits_for(good: Callable[[], bool]) -> float | None:
    """Seconds until it is so."""
    began = time.monotonic()
    while time.monotonic() < began + PATIENCE:
        if good():
            return time.monotonic() - began
        time.sleep(0.05)
    return None


def below(server: Server, limit_mb: int) -> Callable[[], bool]:
    """The ceiling's target is that of the limit, 1/32 below it."""
    return lambda: limit_mb * 0.9 < target_mb(server) < limit_mb


def limits(checks: Checks, server: Server, own: cgroup.Limit, above: cgroup.Limit) -> None:
    def follows(what: str, change: Callable[[], object], limit_mb: int) -> None:
        change()
        seconds = waits_for(below(server, limit_mb))
        checks.check(f"the ceiling follows {what}", seconds is not None, seconds and f"within {seconds:.2f} s")

    follows("memory.max of its group", lambda: None, OWN_MB)
    checks.check("MEMDIAG_HOST has the limit", of_cgroup(server, "effective_limit") == OWN_MB * MIB)
    safe = of_cgroup(server, "safe_limit")
    checks.check("and a safe limit below it", safe is not None and safe < OWN_MB * MIB, safe and f"{safe // MIB} MiB")
    follows("a lower one", lambda: own.resize((OWN_MB - 64) * MIB), OWN_MB - 64)
    follows("a higher one", lambda: own.resize(OWN_MB * MIB), OWN_MB)
    follows("that of the group above", lambda: above.resize((OWN_MB - 64) * MIB), OWN_MB - 64)
    follows("its own again", lambda: above.resize(ABOVE_MB * MIB), OWN_MB)
    high = own.group / "memory.high"
    follows("memory.high", lambda: high.write_text(str(HIGH_MB * MIB)), HIGH_MB)
    follows("no memory.high", lambda: high.write_text("max"), OWN_MB)


def events(checks: Checks, server: Server, own: cgroup.Limit) -> None:
    """The kernel's words are the server's."""
    of_kernel = dict(line.split() for line in (own.group / "memory.events").read_text().splitlines())
    of_server = {name: of_cgroup(server, f"memory.events.{name}") for name in ("max", "oom", "oom_kill")}
    checks.check(
        "MEMDIAG_HOST has memory.events",
        all(value is not None and value <= int(of_kernel[name]) for name, value in of_server.items()),
        of_server,
    )


def grow(server: Server) -> set[int]:
    """Sessions that keep large variables, until each has asked for all of its own. The errors that they got; -1: one lost
    its connection."""
    errors: set[int] = set()

    def client() -> None:
        try:
            with server.connect(timeout=PATIENCE * 10) as session:
                for number in range(VALUES):
                    try:
                        session.query(f"SET @v{number} = REPEAT('v', {VALUE_MB} << 20)")
                    except SqlError as error:
                        errors.add(error.code)
                        if error.code != CAPACITY_EXCEEDED:
                            return
        except (SqlError, OSError):
            errors.add(-1)

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return errors


def under_load(checks: Checks, build: Build, folder: Path, target: str, high: bool) -> None:
    what = f"memdiag_memory_target = {target}" + (", below memory.high" if high else "")
    with cgroup.memory_limit(OWN_MB << 10) as own:
        if high:
            (own.group / "memory.high").write_text(str(HIGH_MB * MIB))
        options = (*LOAD_OPTIONS, f"--memdiag-memory-target={target}")
        with Server(build, folder, options, None, own.wrapper()) as server:
            server.start()
            errors = grow(server)
            kills = own.figures()["oom_kills"]
            alive = server.alive()
            peak = own.figures()["peak_kb"] // 1024
            detail = f"errors {sorted(errors)}, {kills} kills" + (f", peak {peak} MiB" if peak else "")
            if target == "OFF":
                checks.check(f"{what}: the kernel kills it", kills > 0 and not alive, detail)
                return
            good = alive and not kills and errors <= {CAPACITY_EXCEEDED} and server.query("SELECT 1").scalar() == "1"
            checks.check(f"{what}: it lives, and clients get the ceiling's error alone", good, detail)
            if alive:
                events(checks, server, own)


def last_run(checks: Checks, build: Build, folder: Path) -> None:
    """After the kill."""
    with Server(build, folder, OPTIONS) as server:
        server.start()
        ended = server.query(
            "SELECT SHUT_DOWN, LIMIT_BYTES FROM information_schema.MEMDIAG_HISTORY WHERE RUN = 1"
            " ORDER BY TIME DESC LIMIT 1"
        ).rows
        checks.check("after it, the next start knows that and the limit", ended == [("NO", str(OWN_MB * MIB))], ended)


def here(preset: str) -> int:
    version, _ = cgroup.groups(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    if version != 2:
        return not_possible(NAME, "control groups of version 2", "this machine has another version")
    checks = Checks(NAME)
    build = Build.of_preset(ROOT, preset)
    with tempfile.TemporaryDirectory(prefix="memdiag-") as name:
        folder = Path(name)
        initialise(build, folder / "data", OPTIONS)
        with (
            cgroup.memory_limit(ABOVE_MB << 10) as above,
            cgroup.memory_limit(OWN_MB << 10, above) as own,
            checks.checking("the limits are read"),
            Server(build, folder, OPTIONS, None, own.wrapper()) as server,
        ):
            server.start()
            limits(checks, server, own, above)
        for target, high in (("AUTO", False), ("AUTO", True), ("OFF", False)):
            with checks.checking(f"a load at {target}"):
                under_load(checks, build, folder, target, high)
        with checks.checking("the start after a kill"):
            last_run(checks, build, folder)
    return checks.finish()


def program(preset: str) -> str:
    """What the machine runs: these checks, and those of CI that need a control group."""
    steps = (
        (__file__, "--here"),
        (str(ROOT / "tools/resize_in_cgroup.py"), "--rounds", "4"),
        (str(ROOT / "tools/recorder_in_cgroup.py"),),
    )
    commands = (shlex.join([sys.executable, *each, "--preset", preset]) for each in steps)
    return "status=0; " + "".join(f"{each} || status=1; " for each in commands) + "exit $status"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="dev", help="default: %(default)s")
    parser.add_argument("--minutes", type=float, default=60.0, help="of the machine, at most (default: %(default)g)")
    parser.add_argument("--here", action="store_true", help="on this machine, without another")
    options = parser.parse_args()
    preset = known_preset(options.preset)
    if options.here:
        return here(preset)
    if not Build.of_preset(ROOT, preset).mysqld.is_file():
        raise Problem(f"preset {preset} is not built: cmake --preset {preset} && cmake --build --preset {preset}")
    try:
        return machine.run(["sh", "-c", program(preset)], MACHINE_MB, options.minutes)
    except NotPossible as reason:
        return not_possible(NAME, "a machine with version 2", reason)


if __name__ == "__main__":
    run_main(NAME, main)
