"""A package of Debian with a source, as tools/build/sources.py unpacks it."""

import subprocess
from pathlib import Path


def pack(folder: Path, version: str, archive: Path) -> None:
    """Makes the package of what is in the folder."""
    (folder / "DEBIAN").mkdir()
    (folder / "DEBIAN/control").write_text(
        f"Package: mysql-source\nVersion: {version}\nArchitecture: all\nMaintainer: x <x@localhost>\nDescription: x\n"
    )
    command = ["dpkg-deb", "--root-owner-group", "-b", folder, archive]
    subprocess.run(command, check=True, capture_output=True)
