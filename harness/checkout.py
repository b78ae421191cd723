"""The files of the checkout: those that git would take."""

import os
import subprocess
from pathlib import Path

from harness.problem import Problem


def git(root: Path) -> list[str | Path]:
    """The beginning of a command. Git takes a checkout of another user only if it is named like this."""
    return ["git", "-c", f"safe.directory={root}", "-C", root]


def own_files(root: Path) -> list[Path]:
    """The paths, sorted. Without git, as in an unpacked archive: all files but build/ and hidden folders."""
    if (root / ".git").exists():
        done = subprocess.run(
            [*git(root), "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, check=False
        )
        if done.returncode:
            raise Problem(f"git could not list the files of {root}: {done.stderr.decode(errors='replace').strip()}")
        names = {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}
        return [path for name in sorted(names) if (path := root / name).is_file()]
    return [path for path in sorted(root.rglob("*")) if path.is_file() and not is_made(path.relative_to(root))]


def is_made(path: Path) -> bool:
    return path.parts[0] == "build" or "__pycache__" in path.parts or any(part.startswith(".") for part in path.parts)
