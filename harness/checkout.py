"""The files of the checkout: those that git would take."""

import os
import subprocess
from pathlib import Path


def own_files(root: Path) -> list[Path]:
    """The paths, sorted. Without git, as in an unpacked archive: all files but build/ and hidden folders."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    if (root / ".git").exists():
        done = subprocess.run(command, cwd=root, capture_output=True, check=True)
        names = {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}
        return [path for name in sorted(names) if (path := root / name).is_file()]
    return [path for path in sorted(root.rglob("*")) if path.is_file() and not is_made(path.relative_to(root))]


def is_made(path: Path) -> bool:
    return path.parts[0] == "build" or "__pycache__" in path.parts or any(part.startswith(".") for part in path.parts)
