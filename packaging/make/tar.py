"""An archive that runs from any folder, without root; called by packaging/build.

It has the programs of the server's and the client's packages below one folder, memdiag-mysqld, with an option file that
keeps data and socket there. mysqld finds its messages and plugins from its own place.
"""

import os
import shutil
import subprocess
from pathlib import Path

from harness.common import ROOT, say
from make.portable import elf_files
from make.product import COPYRIGHT, LINKED, PACKAGING, Product, logged

TOOLS = {"tar": "tar", "xz": "xz-utils", "strip": "binutils"}
FOLDER = "memdiag-mysqld"
PACKAGES = ("mysql-memdiag-server", "mysql-memdiag-client")
# Only the installation of a package uses these.
OF_PACKAGES = ("usr/libexec/", "usr/lib/sysusers.d/", "usr/lib/tmpfiles.d/", "usr/share/mysql-memdiag/")


def name(product: Product) -> str:
    return f"{FOLDER}-{product.version}-x86_64.tar.xz"


def stage(tree: Path, folder: Path, product: Product) -> None:
    """Fills the folder that the archive contains."""
    shutil.rmtree(folder, ignore_errors=True)
    paths = [path for package in PACKAGES for path in product.files[package] if not path.startswith(OF_PACKAGES)]
    copies = [(tree / path, folder / path.removeprefix("usr/")) for path in paths]
    copies += [(tree / path, folder / Path(path).name) for path in (COPYRIGHT, LINKED)]
    copies += [(ROOT / "LICENSE", folder / "LICENSE"), (PACKAGING / "tar/my.cnf", folder / "my.cnf")]
    for source, path in copies:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, path, follow_symlinks=False)
    # The names of functions stay, for stacks.
    subprocess.run(["strip", "--strip-debug", *elf_files(path for _, path in copies)], check=True)


def build(tree: Path, out: Path, product: Product) -> list[Path]:
    say("-- making the archive")
    folder = out / "tar"
    stage(tree, folder / FOLDER, product)
    for old in out.glob(f"{FOLDER}-*.tar.xz"):
        old.unlink()
    archive = out / name(product)
    same = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", f"--mtime=@{product.date}", "--format=gnu"]
    # With two threads or more, their number does not change what xz writes.
    logged(
        ["tar", *same, "--use-compress-program=xz -T2", "-C", folder, "-cf", archive, FOLDER],
        out / "tar.log",
        "the archive cannot be made",
        env={**os.environ, "LC_ALL": "C"},
    )
    shutil.rmtree(folder)
    return [archive]
