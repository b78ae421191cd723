"""Versions, date and files by package, for deb.py and rpm.py."""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from harness.checkout import git
from harness.common import ROOT
from harness.problem import Problem
from harness.programs import captured, run_group
from tools.build.sources import mysql_version

PACKAGING = ROOT / "packaging"
COMMON = PACKAGING / "common"
CONTENTS = PACKAGING / "contents.txt"
LEFT_OUT = "-"
# Paths below the tree.
COPYRIGHT = "usr/share/doc/mysql-memdiag/copyright"
LINKED = "usr/share/doc/mysql-memdiag/LICENSES.linked"  # of archives of the build machine
FAMILY = "usr/libexec/mysql-memdiag/family.sh"  # installed from deb/family.sh or rpm/family.sh


@dataclass(frozen=True)
class Product:
    mysql: str  # 9.7.4
    memdiag: str  # 1.0.0
    date: int  # SOURCE_DATE_EPOCH
    commit: str
    stamp: str  # names the commit in version numbers; empty without git
    trained: bool  # the optimised build
    files: dict[str, list[str]]  # by package, below the tree, sorted
    sources: dict[str, Any]  # of the build, as tools/build/sources.py names them

    @property
    def version(self) -> str:
        """9.7.4+memdiag1.0.0+git202611211030.abc1234+pgo"""
        parts = [self.mysql, f"memdiag{self.memdiag}", self.stamp, *["pgo"] * self.trained]
        return "+".join(filter(None, parts))


def versions(build: Path) -> tuple[str, str]:
    """Versions of the MySQL source that was built, which may differ from the pin, and of memdiag."""
    project = re.search(r"project\(memdiag VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    return mysql_version(build / "mysql"), project[1]


# mysql@.service, the unit of an instance, has these in the place of words of mysql.service.
INSTANCE = {
    "server with memdiag\n": "server with memdiag, instance %I\n",
    "systemctl edit mysql`": "systemctl edit mysql@NAME`",
    "RequiresMountsFor=/var/lib/mysql\n": "RequiresMountsFor=/var/lib\n",
    "/prestart\n": "/prestart %I\n",
    "ExecStart=/usr/sbin/mysqld\n": "ExecStart=/usr/sbin/mysqld --defaults-group-suffix=@%I\n",
    "Alias=mysqld.service\n": "",
}


def adapted(name: str, changes: dict[str, str]) -> str:
    """A file of packaging/common with words of it replaced."""
    text = (COMMON / name).read_text()
    for old, new in changes.items():
        if old not in text:
            raise Problem(f"packaging/common/{name} has no {old!r} any more; correct who asks for it")
        text = text.replace(old, new)
    return text


def commit() -> tuple[str, str, int]:
    """The newest commit, its stamp, and the packages' date: the commit's, or
    SOURCE_DATE_EPOCH where that is set."""
    command = [*git(ROOT), "log", "-1", "--format=%H %ct"]
    # rpmbuild may unpack this into another repository's folder.
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(ROOT.parent)}
    try:
        done = captured(command, env=env)
        name, date = done.stdout.split() if done.returncode == 0 else ("", "")
        said = done.stderr.strip()
    except FileNotFoundError:
        name = date = ""
        said = "git is not installed"
    version = stamp(name, int(date)) if name else ""
    date = os.environ.get("SOURCE_DATE_EPOCH", date)
    if not date:
        raise Problem(
            f"git has no commit of {ROOT}, so the packages have no date:\n"
            f"  {said}\n"
            "  Mend that, or set SOURCE_DATE_EPOCH to a date, in seconds since 1970."
        )
    if not date.isdecimal():
        raise Problem(f"SOURCE_DATE_EPOCH is {date!r}; set it to a date, in seconds since 1970")
    return name, version, int(date)


def stamp(name: str, date: int) -> str:
    """The part of a version that names a commit; later commits have higher versions. It has seven
    digits, because the length of git's own short form depends on the clone."""
    return f"git{datetime.fromtimestamp(date, UTC):%Y%m%d%H%M}.{name[:7]}"


def logged(command: list, log: Path, failed: str, hint: str = "", **kwargs) -> None:
    """Runs a program with its output in a log. If it fails, raises a Problem that begins with `failed`."""
    with open(log, "w") as output:
        status = run_group(command, stdout=output, stderr=subprocess.STDOUT, **kwargs)
    if status:
        # rpmbuild adds a summary behind the messages of the step that failed.
        said = log.read_text(errors="replace").split("\nRPM build errors:")[0]
        tail = "\n  ".join(said.splitlines()[-5:])
        raise Problem(f"{failed}; {log} ends with\n  {tail}{hint}")


# --- contents.txt ------------------------------------------------------------------


def rules(text: str) -> Iterator[tuple[str, str]]:
    """Yields (package, pattern) for each entry of contents.txt."""
    for line in text.splitlines():
        package, *patterns = line.split("#")[0].split() or [""]
        yield from ((package, pattern) for pattern in patterns)


def assign(paths: Iterable[str], entries: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The files by package. Raises a Problem if a file belongs to no package or to two, or if a pattern has no file."""
    entries = list(entries)
    unused = {pattern for _, pattern in entries}
    files: dict[str, list[str]] = {package: [] for package, _ in entries}
    wrong = []
    for path in sorted(paths):
        found = [entry for entry in entries if fnmatchcase(path, entry[1])]
        unused.difference_update(pattern for _, pattern in found)
        packages = {package for package, _ in found}
        if len(packages) == 1:
            files[packages.pop()].append(path)
        else:
            owners = " and ".join(sorted(packages)) or "no package"
            wrong.append(f"{path} belongs to {owners}")
    wrong += [f"there is no file {pattern}" for pattern in sorted(unused)]
    if wrong:
        listed = "\n  ".join(wrong)
        raise Problem(
            f"packaging/contents.txt and what the build installs differ:\n  {listed}\n"
            "  Correct packaging/contents.txt, or build all targets of the preset."
        )
    files.pop(LEFT_OUT, None)
    return files


def files_below(tree: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(tree):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in names + links:
            yield str((Path(folder) / name).relative_to(tree))
