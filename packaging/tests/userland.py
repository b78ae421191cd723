"""Lets rpm resolve dependencies in a root that apt made.

A package without files tells rpm what the root has: every library with its versions, the programs, Perl's modules, and
Debian's names of packages. So rpm itself checks every dependency of a package.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

SPEC = """Name: userland
Version: 1
Release: 1
Summary: What apt has installed
License: none
BuildArch: noarch
AutoReqProv: no
{provides}
%description
%{{summary}}.
%files
"""


def package(root: Path, into: Path) -> Path:
    """Makes this package. Install it with --justdb."""
    provides = "\n".join(f"Provides: {name}" for name in sorted(provided(root)))
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "userland.spec"
        spec.write_text(SPEC.format(provides=provides))
        command = ["rpmbuild", "--quiet", "-bb", "--define", f"_topdir {folder}", spec]
        subprocess.run(command, check=True, capture_output=True)
        made = next(Path(folder).glob("RPMS/*/*.rpm"))
        return Path(shutil.copy(made, into))


def provided(root: Path) -> set[str]:
    folders = ("/bin", "/sbin", "/usr/bin", "/usr/sbin")
    programs = {f"{folder}/{path.name}" for folder in folders for path in (root / folder[1:]).glob("*")}
    libraries = [path for path in root.glob("usr/lib/**/*.so*") if is_elf(path)]
    modules = [path for path in root.glob("usr/**/perl*/**/*.pm") if path.is_file()]
    status = (root / "var/lib/dpkg/status").read_text()
    names = {line.split()[1] for line in status.splitlines() if line.startswith("Package:")}
    # Elsewhere glibc's package provides this for its loader; no file shows it.
    return (
        programs
        | names
        | {"rtld(GNU_HASH)"}
        | found(["elfdeps", "--provides"], libraries)
        | found(["perl.prov"], modules)
    )


def is_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def found(finder: list[str], files: list[Path]) -> set[str]:
    """What one of rpm's dependency generators finds in these files."""
    names = "".join(f"{file}\n" for file in files)
    command = [f"/usr/lib/rpm/{finder[0]}", *finder[1:]]
    answer = subprocess.run(command, input=names, capture_output=True, text=True, check=True)
    return set(answer.stdout.split("\n")) - {""}
