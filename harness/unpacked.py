"""Packages of Debian's archive, unpacked in the cache: nothing is installed, and no service starts."""

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.common import cache_dir, lock, say
from harness.problem import Problem
from harness.programs import captured
from harness.server import last_line


def unpacked(name: str, packages: Sequence[str], prepare: Callable[[Path], object] = lambda _: None) -> Path:
    """The folder of that name in the cache, which has their files. `prepare` changes it before others see it. Raises a
    Problem if the archive does not deliver them."""
    folder = cache_dir() / name
    with lock(cache_dir() / f"{name}.lock", f"unpacking packages into {folder}"):
        if not folder.is_dir():
            unpack(packages, folder, prepare)
    return folder


def unpack(packages: Sequence[str], folder: Path, prepare: Callable[[Path], object] = lambda _: None) -> None:
    """The same into any folder that is not there yet."""
    say(f"-- unpacking {', '.join(packages)} into {folder}")
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        done = captured(["apt-get", "-q", "download", *packages], cwd=scratch)
        if done.returncode:
            raise Problem(f"apt-get could not fetch {', '.join(packages)}: {last_line(done.stderr)}")
        tree = Path(scratch) / "tree"
        for package in Path(scratch).glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, tree], check=True)
        prepare(tree)
        tree.rename(folder)
