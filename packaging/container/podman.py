"""podman with storage of its own: images and containers of this user are neither seen nor touched."""

import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from harness.checks import Failed
from harness.programs import captured
from tools.build.debian import remove

NEEDED = ("podman", "runc")  # programs and Debian's packages; crun refuses machines with control groups of both kinds
# Locks are files, because all podmans of this machine share the locks in shared memory. The limits are low enough for
# any root to set; podman's own may be higher than this machine allows.
SETTINGS = """[engine]
lock_type = "file"
events_logger = "file"
cgroup_manager = "cgroupfs"
runtime = "runc"
[containers]
default_ulimits = ["nofile={0}:{0}", "nproc=4096:4096"]
"""


class Podman:
    """A context manager; at its end all containers, images and mounts of `folder` are gone, and so is the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        # The path of a socket must be short.
        self._run = Path(tempfile.mkdtemp(prefix="memdiag-podman-"))
        self._settings = self._run / "containers.conf"
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self._settings.write_text(SETTINGS.format(files))

    def __enter__(self) -> Self:
        sweep(self._folder)
        self._folder.mkdir(parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.try_("rm", "--all", "--force", "--time", "0")
        sweep(self._folder)
        sweep(self._run)

    def try_(self, *words: str | Path, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        command = [
            "podman",
            f"--root={self._folder}",
            f"--runroot={self._run}/run",
            f"--tmpdir={self._run}/tmp",
            "--storage-driver=overlay",
            *words,
        ]
        environment = {
            **os.environ,
            "CONTAINERS_CONF": str(self._settings),
            "DISABLE_HC_SYSTEMD": "true",  # no systemd timers for health checks
        }
        try:
            return captured(command, stdin=subprocess.DEVNULL, errors="replace", timeout=seconds, env=environment)
        except subprocess.TimeoutExpired:
            raise Failed(f"podman {words[0]} did not end in {seconds:g} s") from None

    def run(self, *words: str | Path, seconds: float = 300) -> str:
        """Returns the output of podman. Raises Failed with its messages if it fails."""
        done = self.try_(*words, seconds=seconds)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[-1000:]
            raise Failed(f"podman {words[0]} failed ({done.returncode}): {said}")
        return done.stdout.strip()


def missing() -> str:
    """The reason why this machine cannot run containers; empty if it can."""
    absent = [name for name in NEEDED if not shutil.which(name)]
    return f"programs are missing; run: apt-get install {' '.join(absent)}" if absent else ""


def sweep(folder: Path, seconds: float = 20) -> None:
    """Unmounts everything below a folder and removes it. podman may still be cleaning up a container there."""
    end = time.monotonic() + seconds
    while True:
        try:
            for place in reversed(_mounted_below(folder)):
                subprocess.run(["umount", "--lazy", place], check=True)
            return remove(folder)
        except subprocess.CalledProcessError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _mounted_below(folder: Path) -> Sequence[str]:
    """The mount points below a folder, in the order in which they were mounted."""
    begin = str(folder.resolve())
    with open("/proc/self/mountinfo") as mounts:
        places = [line.split()[4] for line in mounts]
    return [x for x in places if x == begin or x.startswith(begin + "/")]
