"""Messages, programs, the cache folder, the lock, disk space, presets."""

import argparse
import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from harness.problem import Problem
from harness.programs import run_group

ROOT = Path(__file__).resolve().parent.parent
# The presets that packages are made from. A sanitizer's memory is not the server's, so its presets are not here.
SHIPPED = ("dev", "optimised")


def say(text: str) -> None:
    print(text, flush=True)


def run_step(command: Sequence[str]) -> None:
    """Run a program in the checkout. An interruption also ends it, with all that it has started."""
    try:
        code = run_group(command, cwd=ROOT)
    except FileNotFoundError:
        raise Problem(
            f"{command[0]} is missing; on Debian, as root, this installs what is needed:"
            " . tools/bootstrap.sh; memdiag_bootstrap"
        ) from None
    if code != 0:
        raise Problem(f"'{' '.join(command)}' failed; its own messages are above")


def cache_dir() -> Path:
    """The folder outside the checkout that all checkouts of a user share."""
    if named := os.environ.get("MEMDIAG_CACHE"):
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "mysql-memdiag"


@contextlib.contextmanager
def lock(path: Path, doing: str):
    """Lets one process at a time into the block. The others wait and say so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"-- waiting: another process is {doing}, and holds {path}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def existing_parent(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def require_disk(needs: list[tuple[Path, float, str]]) -> None:
    """Raises a Problem if the disk is too full. needs: (folder, GB, what for), added up for each file system."""
    by_device: dict[int, list[tuple[Path, float, str]]] = {}
    for need in needs:
        device = existing_parent(need[0]).stat().st_dev
        by_device.setdefault(device, []).append(need)
    for group in by_device.values():
        needed = sum(gb for _, gb, _ in group)
        free = shutil.disk_usage(existing_parent(group[0][0])).free / 1e9
        if free < needed:
            what = " and ".join(f"{gb:g} GB for {why}" for _, gb, why in group)
            raise Problem(
                f"not enough disk space under {group[0][0]}: {needed:.1f} GB needed "
                f"({what}), {free:.1f} GB free.\n"
                f"  Free {needed - free:.1f} GB there, or set MEMDIAG_CACHE to a "
                "folder on a larger disk, and run the same command again."
            )


def presets() -> dict[str, str]:
    """{name: flavour} of the CMake presets that are not hidden."""
    described = json.loads((ROOT / "CMakePresets.json").read_text())
    return {
        preset["name"]: preset.get("cacheVariables", {}).get("MEMDIAG_FLAVOUR", "product")
        for preset in described["configurePresets"]
        if not preset.get("hidden")
    }


def known_preset(name: str) -> str:
    """Returns the name, or raises a Problem if there is no such preset."""
    if name not in presets():
        raise Problem(f"there is no preset {name!r}; there are: {', '.join(presets())}")
    return name


def preset_of_arguments(doc: str | None) -> str:
    """Reads the arguments of a program whose only option is the preset. `doc` is the program's __doc__."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--preset", default="dev", help="default: %(default)s")
    return known_preset(parser.parse_args().preset)
