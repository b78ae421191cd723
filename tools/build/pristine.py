"""Upstream's own tarball of MySQL: its signature, and Debian's patches for it.

Debian's package mysql-source has this tarball with these patches applied, so both ways lead to one tree. Only
config.guess and config.sub of extra/tirpc differ; the build does not run them.
"""

import base64
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.common import ROOT
from harness.problem import Problem
from harness.programs import captured

# Upstream's key as Debian's source package has it: debian/upstream/signing-key.asc.
KEY = ROOT / "cmake/mysql_signing_key.asc"


class Damaged(Problem):
    """A file is not what upstream or Debian made. Another download may be."""


def signature_of(archive: Path) -> Path:
    """Where the signature of an archive is, if it has one."""
    return archive.with_name(f"{archive.name}.asc")


def without_armour(text: str) -> bytes:
    """The bytes of a key that is written as text: gpgv reads nothing else."""
    found = re.search(
        r"^-----BEGIN PGP PUBLIC KEY BLOCK-----$.*?^$(.*?)^(?:=|-----END)", text, re.MULTILINE | re.DOTALL
    )
    if not found:
        raise Problem(f"{KEY} has no public key")
    return base64.b64decode(found[1])


def verify(archive: Path, fingerprint: str, key: Path = KEY) -> None:
    """Raises a Problem unless the key with this fingerprint has signed the archive."""
    if not shutil.which("gpgv"):
        raise Problem(f"gpgv is missing, which checks the signature of {archive.name}: apt-get install gpgv")
    signature = signature_of(archive)
    if not signature.is_file():
        raise Problem(f"{archive} has no signature beside it ({signature.name})")
    with tempfile.TemporaryDirectory(prefix="memdiag-") as home:
        keyring = Path(home) / "key.gpg"
        keyring.write_bytes(without_armour(key.read_text()))
        command = [
            "gpgv",
            "--homedir",
            home,
            "--status-fd",
            "1",
            "--keyring",
            str(keyring),
            str(signature),
            str(archive),
        ]
        done = captured(command, stdin=subprocess.DEVNULL)
    # VALIDSIG ends with the fingerprint of the primary key. A signature of a key that was revoked counts for nothing;
    # one that is older than the end of its key does.
    words = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("[GNUPG:] ")]
    valid = [line[-1] for line in words if line[0] == "VALIDSIG"]
    if done.returncode or valid != [fingerprint] or any(line[0] == "REVKEYSIG" for line in words):
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise Damaged(
            f"{archive} is not signed by MySQL's release engineering ({fingerprint}).\n"
            f"  gpgv: {said[-1].removeprefix('gpgv: ') if said else 'no signature'}"
        )


def apply_debians_patches(debian: Path, tree: Path) -> int:
    """Applies the patches in debian.tar.xz to upstream's tree; returns their number."""
    with tempfile.TemporaryDirectory(prefix="memdiag-") as folder:
        command = ["tar", "-xJf", str(debian), "-C", folder, "debian/patches"]
        done = captured(command, stdin=subprocess.DEVNULL)
        series = Path(folder) / "debian/patches/series"
        if done.returncode or not series.is_file():
            raise Damaged(f"{debian} has no series of patches: {done.stderr.strip() or 'it is another archive'}")
        names = [line.split()[0] for line in series.read_text().splitlines() if line.strip() and line[0] != "#"]
        for name in names:
            # Fuzz as dpkg-source allows it: none.
            command = ["patch", "-s", "-p1", "-F0", "-N", "-u", "--no-backup-if-mismatch", "-d", str(tree)]
            with open(series.with_name(name), "rb") as patch:
                done = captured(command, stdin=patch)
            if done.returncode:
                raise Damaged(f"Debian's patch {name} does not apply: {(done.stdout + done.stderr).strip()}")
    return len(names)
