"""memdiag verify: the files of the installed server against the SHA-256 sums of its packages."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from memdiag.files import read_text
from memdiag.model.words import printable
from memdiag.problem import Problem

# dpkg keeps what packaging/deb/rules has put beside the package's control file.
SUMS = "var/lib/dpkg/info"
PACKAGES = "mysql-memdiag-*.sha256sums"
# dpkg reads its folder of settings first. Of the rules that fit a path, the last one counts.
_SETTINGS = ("etc/dpkg/dpkg.cfg.d/*", "etc/dpkg/dpkg.cfg")
_RULE = re.compile(r"^[ \t]*path-(exclude|include)[ \t]*[= \t][ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
# The server and its unit take files from these folders. They do not ask who put them there.
_OWN_FOLDER = re.compile(r"(usr/(?:lib/mysql|share/mysql(?:-[0-9][^/]*|-memdiag)?|libexec/mysql-memdiag))/")
DIFFERS = 3


@dataclass
class Outcome:
    same: int = 0
    differ: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    left_out: int = 0  # missing, because dpkg was told not to unpack them
    extra: list[str] = field(default_factory=list)
    configuration: list[str] = field(default_factory=list)  # changed or removed: an administrator may
    unreadable: list[str] = field(default_factory=list)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sums",
        nargs="*",
        type=Path,
        help="files of sums in place of the installed ones, from packages that you trust:"
        " dpkg-deb -I PACKAGE.deb sha256sums > FILE",
    )
    parser.add_argument("--root", type=Path, default=Path("/"), help="where the packages are installed (default: /)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    installed = sorted((options.root / SUMS).glob(PACKAGES))
    manifests = options.sums or installed
    if not manifests:
        raise Problem(
            f"{options.root / SUMS} has no sums of this server's packages: it is not installed from DEB packages, or"
            " from older ones. RPM keeps its own sums: rpm --verify mysql-memdiag-server"
        )
    wanted: dict[str, str] = {}
    for path in manifests:
        wanted |= sums_of(read_text(path), str(path))
    outcome = compared(options.root, wanted)
    print(printable("\n".join(lines(outcome, owners(installed) if options.sums else {}))))
    if outcome.unreadable:
        raise Problem(
            f"{len(outcome.unreadable)} files cannot be read by this user, so nothing is proven; run it as root"
        )
    return DIFFERS if outcome.differ or outcome.missing or outcome.extra else 0


def sums_of(text: str, name: str) -> dict[str, str]:
    """{path without the first slash: sum}, as sha256sum writes them."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = re.fullmatch(r"([0-9a-f]{64}) [ *](?:\./)?([^/].*)", line)
        if not match or ".." in match[2].split("/"):
            raise Problem(f"{name} is no file of SHA-256 sums: see its line {number}")
        found[match[2]] = match[1]
    if not found:
        raise Problem(f"{name} is empty")
    return found


def owners(manifests: Iterable[Path]) -> dict[str, str]:
    """{path: package} as dpkg has it; who changed the server may have changed it. Files that are no sums have none."""
    found: dict[str, str] = {}
    for path in manifests:
        with contextlib.suppress(Problem):
            found |= dict.fromkeys(sums_of(read_text(path), str(path)), path.stem)
    return found


def left_out(root: Path) -> Callable[[str], bool]:
    """Tells whether dpkg was told not to unpack a path, as images of containers do with documentation."""
    files = [path for pattern in _SETTINGS for path in sorted(root.glob(pattern)) if path.is_file()]
    rules = [rule for path in files for rule in _RULE.findall(read_text(path))]

    def is_left_out(name: str) -> bool:
        fitting = [kind for kind, pattern in rules if fnmatchcase(f"/{name}", pattern)]
        return fitting[-1:] == ["exclude"]

    return is_left_out


def compared(root: Path, wanted: dict[str, str]) -> Outcome:
    outcome = Outcome()
    is_left_out = left_out(root)
    for name, sum_ in sorted(wanted.items()):
        try:
            is_same = sha256(root / name) == sum_
        except FileNotFoundError:
            if is_left_out(name):
                outcome.left_out += 1
            else:
                (outcome.configuration if name.startswith("etc/") else outcome.missing).append(name)
        except OSError:
            outcome.unreadable.append(name)
        else:
            if is_same:
                outcome.same += 1
            else:
                (outcome.configuration if name.startswith("etc/") else outcome.differ).append(name)
    # These folders are the server's alone. A file that no package lists is extra.
    folders = {found[1] for name in wanted if (found := _OWN_FOLDER.match(name))}
    outcome.extra = sorted(set(files_below(root, folders)) - wanted.keys())
    return outcome


def sha256(path: Path) -> str:
    whole = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            whole.update(part)
    return whole.hexdigest()


def files_below(root: Path, folders: Iterable[str]) -> Iterable[str]:
    """Links count: they, too, are loaded. Those of the package have no sums, and point to files that have."""
    for folder in folders:
        for path in (root / folder).rglob("*"):
            if path.is_symlink() and path.exists() and path.resolve().parent == path.parent.resolve():
                continue
            if path.is_symlink() or path.is_file():
                yield str(path.relative_to(root))


def lines(outcome: Outcome, packages: dict[str, str]) -> list[str]:
    """`packages`: by path, those whose sums may have been forgotten."""

    def remark(name: str) -> str:
        return f" (of {packages[name]}, says dpkg: give its sums, too)" if name in packages else ""

    result = [
        f"{word:14} /{name}{remark(name) if word == 'extra' else ''}"
        for word, names in (
            ("differs", outcome.differ),
            ("missing", outcome.missing),
            ("extra", outcome.extra),
            ("unreadable", outcome.unreadable),
            ("configuration", outcome.configuration),
        )
        for name in names
    ]
    counts = f"{outcome.same} files as packaged, {len(outcome.differ)} differ, {len(outcome.missing)} missing,"
    counts += f" {len(outcome.extra)} extra; {len(outcome.configuration)} changed in /etc"
    if outcome.left_out:
        counts += f"; dpkg was told to leave out {outcome.left_out}"
    return [*result, counts]
