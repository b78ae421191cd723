"""Which systems the programs of a tree run on: the shared libraries and the versions of symbols that they need.

packaging/libraries.txt lists the libraries. A program that needs more stops the packages.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.problem import Problem
from harness.programs import captured
from make.product import PACKAGING

LIBRARIES = PACKAGING / "libraries.txt"
NEWEST_GLIBC = (2, 34)  # RHEL 9 and Amazon Linux 2023
# These may need the libraries with a question mark, and the C++ library in any version.
OPTIONAL = ("authentication_ldap_sasl_client.so", "component_telemetry.so", "libpluginmecab.so", "telemetry_client.so")


@dataclass(frozen=True)
class Library:
    packages: str  # of Debian, as a dependency
    optional: bool


@dataclass(frozen=True)
class Needs:
    """What the dynamic section of one file names."""

    libraries: frozenset[str]
    versions: frozenset[str]  # such as GLIBC_2.34


def libraries(text: str | None = None) -> dict[str, Library]:
    """By the name that the loader looks for."""
    found = {}
    for line in (LIBRARIES.read_text() if text is None else text).splitlines():
        if line.strip() and not line.startswith("#"):
            name, packages = line.split(maxsplit=1)
            found[name.lstrip("?")] = Library(packages, name.startswith("?"))
    return found


def elf_files(paths: Iterable[Path]) -> list[Path]:
    """Those that are programs or libraries, and no links to one."""

    def is_elf(path: Path) -> bool:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"

    return [path for path in paths if path.is_file() and not path.is_symlink() and is_elf(path)]


def needs(path: Path) -> Needs:
    done = captured(["readelf", "-dVW", path])
    if done.returncode:
        raise Problem(f"readelf cannot read {path}: {done.stderr.strip()}")
    names = re.findall(r"\(NEEDED\).*\[(.+)\]", done.stdout)
    _, _, wanted = done.stdout.partition("Version needs section")
    return Needs(frozenset(names), frozenset(re.findall(r"Name: (\S+)\s+Flags", wanted)))


def too_new(version: str) -> bool:
    found = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
    return bool(found) and (int(found[1]), int(found[2])) > NEWEST_GLIBC


def problems(path: str, needed: Needs, known: Mapping[str, Library]) -> list[str]:
    """Why this file does not run on all systems."""
    optional = Path(path).name in OPTIONAL
    wrong = [f"the library {name}" for name in needed.libraries if name not in known]
    wrong += [
        f"the library {name}" for name in needed.libraries & known.keys() if known[name].optional and not optional
    ]
    for version in needed.versions:
        cxx = version.startswith(("GLIBCXX_", "CXXABI_")) and not optional
        if cxx or too_new(version) or version == "GLIBC_PRIVATE":
            wrong.append(f"a symbol of {version}")
    return [f"{path} needs {one}" for one in sorted(wrong)]


def check(tree: Path, paths: Iterable[str]) -> None:
    """Raises a Problem that names each file below the tree which does not run on all systems."""
    known = libraries()
    files = elf_files(tree / path for path in paths)
    wrong = [one for file in files for one in problems(str(file.relative_to(tree)), needs(file), known)]
    if wrong:
        listed = "\n  ".join(wrong)
        raise Problem(
            f"these programs would not run on all systems of docs/packages.md:\n  {listed}\n"
            "  cmake/upstream/portable.cmake links libraries statically, and mysys/memdiag/old_glibc.cc has older"
            " versions of symbols.\n  A library that is everywhere under one name belongs into packaging/libraries.txt."
        )


def dependencies(tree: Path, paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """The Debian packages that these files need, and those that only optional plugins need."""
    known = libraries()
    must: set[str] = set()
    may: set[str] = set()
    for file in elf_files(tree / path for path in paths):
        for name in needs(file).libraries & known.keys():
            (may if known[name].optional else must).add(known[name].packages)
    return sorted(must), sorted(may)
