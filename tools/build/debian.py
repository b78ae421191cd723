"""Makes root folders of Debian from the archive that this machine uses."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.problem import Problem
from harness.programs import captured
from harness.server import last_line
from tools.build.sources import debian_mirror


def remove(folder: Path) -> None:
    """Remove a tree. File systems that are mounted below it are left alone."""
    if folder.exists():
        subprocess.run(["rm", "-rf", "--one-file-system", folder], check=True)


def root(
    suite: str, folder: Path, variant: str, packages: str, options: Sequence[str] = (), date: int | None = None
) -> None:
    """Make a folder anew, as root; a killed run leaves it unfinished. A name with .tar is an archive instead.

    `variant`: of mmdebstrap; `extract` only unpacks, the others also configure. `options`: more of mmdebstrap, hooks
    for example. `date`: no file is newer (seconds since 1970), so that two runs on one state of the archive are equal.
    """
    if not shutil.which("mmdebstrap"):
        raise Problem("mmdebstrap is missing; install it with: apt-get install mmdebstrap")
    remove(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # This machine's settings for proxies, time-outs and the allowed age of a package list.
    dump = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=True).stdout
    settings = re.findall(r"^Acquire::(?:Check|http|ftp|Retries|Languages|ForceIPv).*$", dump, re.MULTILINE)
    mirror = debian_mirror()
    command = [
        "mmdebstrap",
        "--mode=root",
        f"--variant={variant}",
        f"--include={packages}",
        *(f"--aptopt={setting}" for setting in settings),
        *options,
    ]
    dated = {} if date is None else {"SOURCE_DATE_EPOCH": str(date)}
    done = captured([*command, suite, folder, mirror], env={**os.environ, **dated})
    if done.returncode:
        remove(folder)
        why = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        raise Problem(
            f"mmdebstrap could not make a Debian {suite} from {mirror}: {(why or [last_line(done.stderr)])[0]}"
        )


def programs(folder: Path, packages: str) -> Path:
    """A folder that has packages of the unstable suite, unpacked, with the C library of that suite; made once."""
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        root("unstable", unfinished, "extract", packages)
        unfinished.rename(folder)
    return folder
