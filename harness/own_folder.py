"""Folders that a program may empty."""

from pathlib import Path

from harness.common import ROOT
from harness.problem import Problem

MARK = ".mysql-memdiag"


def own_folder(path: Path) -> None:
    """Makes a folder that the user has named, or raises a Problem if it has files that are not this project's."""
    mark = path / MARK
    ours = ROOT / "build" in path.resolve().parents
    try:
        if not ours and path.exists() and not mark.exists() and any(path.iterdir()):
            raise Problem(f"{path} has files of yours, and this program removes files there; name a new folder")
        path.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError as error:
        raise Problem(f"{path} cannot be used: {error.strerror}") from None
