"""One short text for many files, which changes if one of them does."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path


def digest(root: Path, patterns: Iterable[str], leave_out: Sequence[str] = ()) -> str:
    """The same for the same names and contents of files below `root`. A pattern ends in a file's name; a file in a folder
    of `leave_out` does not count."""
    places = {path.relative_to(root) for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    whole = hashlib.sha256()
    for place in sorted(places):
        if not {"__pycache__", *leave_out} & set(place.parts):
            content = hashlib.sha256((root / place).read_bytes()).hexdigest()
            whole.update(f"{place} {content}\n".encode())
    return whole.hexdigest()[:16]
