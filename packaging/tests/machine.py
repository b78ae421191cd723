"""Throw-away Debian machines: systemd-nspawn boots a root folder with its own systemd, so that units are really used.

A base is made once and kept (BASES below the work folder). A machine is an overlay on a base and is removed at its end.
Its network has nothing but loopback, so its ports are in nobody's way. apt has this machine's network, and so has a
command that run() gives it to.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Self

from harness import signals
from harness.checks import Failed
from harness.common import require_disk, say
from harness.problem import Problem
from harness.server import last_line
from harness.waiting import until
from tools.build import debian
from tools.build.debian import remove

_PACKAGES = "systemd,systemd-sysv,dbus,procps,iproute2,ca-certificates"
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
}
_TOOLS = {"mmdebstrap": "mmdebstrap", "systemd-nspawn": "systemd-container", "lintian": "lintian"}


def missing_tools(needed: Mapping[str, str] = _TOOLS) -> list[str]:
    """The Debian packages of those programs that are needed and not installed."""
    return [package for program, package in needed.items() if not shutil.which(program)]


def base(work: Path, suite: str) -> Path:
    """The base of a suite: made under another name and renamed when complete."""
    folder = work / "bases" / suite
    if folder.is_dir():
        return folder
    require_disk([(work, 8, "machines")])
    say(f"-- making a bare Debian {suite} (one to two minutes)")
    unfinished = folder.with_name(f"{suite}.unfinished")
    debian.root(suite, unfinished, "minbase", _PACKAGES)
    # With an empty machine-id, each machine makes its own. mmdebstrap's word "uninitialized" stops systemd-nspawn.
    (unfinished / "etc/machine-id").write_text("")
    unfinished.rename(folder)
    return folder


def sweep(work: Path) -> None:
    """Removes what a killed run has left. The caller holds the lock of `work`."""
    for folder in (work / "machines").glob("*"):
        end_left_machine(folder)
        if os.path.ismount(folder / "root"):
            subprocess.run(["umount", folder / "root"], check=True)
        remove(folder)


def end_left_machine(folder: Path, seconds: float = 30) -> None:
    """Powers a machine off, or kills it if that takes too long. The pid in its folder may be another's by now."""

    def runs() -> bool:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except OSError:
            return False
        return words[0].endswith("systemd-nspawn") and f"--machine={folder.name}" in words

    with contextlib.suppress(OSError, ValueError):
        pid = int((folder / "pid").read_text())
        for kind in (signal.SIGTERM, signal.SIGKILL):
            if runs():
                os.kill(pid, kind)
            until(lambda: not runs(), seconds)


class Machine:
    """A booted machine that begins as a copy of the base `lower`; a context manager. `shown`: folders of this machine
    that it can read, by their path within it."""

    _count = 0

    def __init__(self, work: Path, lower: Path, shown: Mapping[str, Path] = MappingProxyType({})) -> None:
        Machine._count += 1
        self.name = f"memdiag-{os.getpid()}-{Machine._count}"
        self._work = work
        self._lower = lower
        self._shown = shown
        self.folder = work / "machines" / self.name
        self._nspawn: subprocess.Popen[bytes] | None = None
        self.pid = 0  # of its systemd, outside of the machine
        self.tree = self.folder / "root"

    def __enter__(self) -> Self:
        try:
            for part in ("upper", "scratch", "root"):
                (self.folder / part).mkdir(parents=True)
            layers = f"lowerdir={self._lower},upperdir={self.folder}/upper,workdir={self.folder}/scratch"
            subprocess.run(["mount", "-t", "overlay", "-o", layers, self.name, self.tree], check=True)
            self._boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._nspawn is not None:
            self._power_off()
        if os.path.ismount(self.tree):
            subprocess.run(["umount", self.tree], check=True)
        remove(self.folder)

    def _boot(self) -> None:
        # All machines of the suite share the packages that apt has fetched.
        archives = self._work / "archives" / self._lower.name.split("-")[0]
        (archives / "partial").mkdir(parents=True, exist_ok=True)
        command = ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--private-network"]
        command += ["--resolv-conf=replace-host", f"--bind={archives}:/var/cache/apt/archives"]
        command += [f"--bind-ro={here}:{there}" for there, here in self._shown.items()]
        command += [f"--directory={self.tree}", f"--machine={self.name}"]
        with (self.folder / "console").open("wb") as log, signals.held():
            self._nspawn = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # Control groups of version 2, as Debian has them, even where this machine has version 1.
                env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
            )
            (self.folder / "pid").write_text(str(self._nspawn.pid))
        children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children")
        for _ in range(600):
            if self._nspawn.poll() is not None:
                break
            pids = children.read_text().split()
            # The first child of systemd-nspawn may end meanwhile.
            with contextlib.suppress(OSError):
                if pids and Path(f"/proc/{pids[0]}/comm").read_text() == "systemd\n":
                    self.pid = int(pids[0])
            if self.pid:
                state = self.run("systemctl is-system-running", check=False).strip()
                if state in ("running", "degraded"):
                    return
            time.sleep(0.1)
        console = (self.folder / "console").read_text(errors="replace")
        raise Problem(f"systemd-nspawn cannot boot a machine here: {last_line(console)}")

    def _power_off(self) -> None:
        if self.pid:
            self.run("systemctl poweroff --force", check=False)
        try:
            self._nspawn.wait(90)
        except subprocess.TimeoutExpired:
            self._nspawn.kill()
            self._nspawn.wait()
        self._nspawn = None
        # systemd-nspawn leaves this folder behind where /run is no tmpfs.
        shutil.rmtree(f"/run/systemd/nspawn/propagate/{self.name}", ignore_errors=True)

    def freeze(self, name: str) -> Path:
        """Powers the machine off and makes a base of its present state."""
        self._power_off()
        folder = self._work / "bases" / name
        unfinished = folder.with_name(f"{name}.unfinished")
        remove(unfinished)
        subprocess.run(["cp", "-a", self.tree, unfinished], check=True)
        (unfinished / "etc/machine-id").write_text("")
        unfinished.rename(folder)
        return folder

    # Programs.

    def run(self, script: str, check: bool = True, network: bool = True, seconds: float = 600) -> str:
        """Runs shell lines as root in the machine. `network`: with this machine's. Returns both output streams."""
        command = ["nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-p", "-C", *([] if network else ["-n"])]
        command += ["env", "-i", *(f"{k}={v}" for k, v in _ENVIRONMENT.items()), "sh", "-ec", script]
        return _output(command, script, check, seconds)

    def run_here(self, command: Sequence[str | Path], seconds: float = 300, **kwargs) -> str:
        """Runs a program of this machine in the network of the booted one."""
        inside = ["nsenter", "-t", str(self.pid), "-n", *map(str, command)]
        return _output(inside, shlex.join(map(str, command)), True, seconds, **kwargs)

    def apt(self, words: str, check: bool = True) -> str:
        """Runs apt-get; fetches the package lists if there are none yet."""
        lists = "ls /var/lib/apt/lists/*Packages* >/dev/null 2>&1 || apt-get -q update >/dev/null;"
        return self.run(f"{lists} apt-get -q -y --no-install-recommends {words}", check, seconds=1200)

    def path(self, inside: str) -> Path:
        """The path by which this process sees a path of the machine, with its mounts."""
        return Path(f"/proc/{self.pid}/root") / inside.lstrip("/")


def _output(command: Sequence[str], title: str, check: bool, seconds: float, **kwargs) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            **kwargs,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"`{title}` did not end within {seconds:g} s") from None
    if check and done.returncode:
        said = last_lines(done.stdout)
        raise Failed(f"`{title}` failed ({done.returncode}):\n{said}")
    return done.stdout


def last_lines(output: str) -> str:
    """The end of a program's output, which has its errors."""
    return "\n".join(output.splitlines()[-15:])
