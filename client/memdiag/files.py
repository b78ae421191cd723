"""Files that are either whole or absent. Devices and pipes are written as they are."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from memdiag.problem import Problem


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[str]]:
    """A text file under another name in the same folder, which gets its name when the block
    ends well. An error or Ctrl-C removes it, and what `path` had before stays."""
    if no_file(path):
        with _device(path) as file:
            yield file
        return
    try:
        # With mode 600: a page names users and statements.
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".unfinished", dir=path.parent)
    except OSError as error:
        raise Problem(f"{path} cannot be written: {error.strerror}") from None
    try:
        with open(handle, "w", encoding="utf-8", errors="replace") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError as error:
        _remove(name)
        raise Problem(f"{path} cannot be written: {error.strerror}") from None
    except BaseException:
        _remove(name)
        raise


def no_file(path: Path) -> bool:
    """/dev/null, /dev/stdout, a pipe: root would put a file in its place, for everybody. Where another user may write, it
    can be a trap instead: a link to a file of the system, or a pipe that makes root wait. A file takes its place."""
    try:
        if not _safe(Path(os.path.realpath(path.parent))):
            return False
        if path.is_symlink() and os.readlink(path).startswith("/proc/"):
            return True
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _safe(folder: Path) -> bool:
    """Only root and this user can put something into the folder, or another folder in its place."""
    if os.name != "posix":
        return True
    for one in (folder, *folder.parents):
        about = one.stat()
        # A user namespace may show root as nobody. Root alone owns these folders.
        is_owned = about.st_uid in (0, os.geteuid()) or str(one) in ("/", "/dev", "/proc")
        # The kernel lets only the owner of a file in a folder as /tmp rename it.
        keeps_names = one != folder and about.st_mode & stat.S_ISVTX
        if not is_owned or (about.st_mode & 0o022 and not keeps_names):
            return False
    return True


@contextlib.contextmanager
def _device(path: Path) -> Iterator[IO[str]]:
    try:
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            yield file
    except OSError as error:
        raise Problem(f"{path} cannot be written: {error.strerror}") from None


def _remove(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)


def write_whole(path: Path, text: str) -> None:
    with whole_file(path) as file:
        file.write(text)


def json_of(text: str) -> Any:
    """None: it is no JSON, or so nested that Python cannot read it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}") from None
