"""Debian packages: debhelper with packaging/deb as its folder debian/.

This module adds the parts of that folder that depend on the build: the changelog
(version, date, libraries) and the list of files by package. It also copies preflight into the scripts
that dpkg runs before it unpacks the package.
"""

import os
import shutil
from email.utils import formatdate
from pathlib import Path

from harness.common import ROOT, say
from make import portable
from make.product import COMMON, COPYRIGHT, FAMILY, INSTANCE, LINKED, PACKAGING, Product, adapted, logged

TOOLS = {"dh": "debhelper", "dpkg-gencontrol": "dpkg-dev"}
MAINTAINER = "MySQL memdiag maintainers <maintainers@memdiag.example.org>"

# Files of packaging/common in the server's package. postinst copies those below usr/share/mysql-memdiag
# to their places, unless a file is there; administrators copy sandbox.conf.
COMMON_FILES = {
    "memdiag.cnf": "usr/share/mysql-memdiag/memdiag.cnf",
    "mysql.cnf": "etc/mysql/mysql-memdiag.cnf",
    "apparmor-memdiag": "etc/apparmor.d/abstractions/mysql-memdiag",
    "apparmor-mysqld": "usr/share/mysql-memdiag/apparmor-mysqld",
    "logrotate": "usr/share/mysql-memdiag/logrotate",
    "mysqld.cnf": "usr/share/mysql-memdiag/mysqld.cnf",
    "my.cnf": "usr/share/mysql-memdiag/my.cnf",
    "sandbox.conf": "usr/share/mysql-memdiag/sandbox.conf",
}
# Under the names that dh_installsystemd --name=mysql expects, what differs from mysql.service.
UNITS = {"mysql-memdiag-server.mysql.service": {}, "mysql-memdiag-server@.mysql.service": INSTANCE}


def version(product: Product) -> str:
    return f"{product.version}-1"


def changelog(product: Product) -> str:
    return (
        f"mysql-memdiag ({version(product)}) unstable; urgency=medium\n\n"
        f"  * MySQL {product.mysql} with memdiag {product.memdiag}, commit "
        f"{product.commit[:12]}.\n\n"
        f" -- {MAINTAINER}  {formatdate(product.date)}\n"
    )


def stage(tree: Path, folder: Path, product: Product) -> None:
    """The folder in which debhelper works."""
    shutil.rmtree(folder, ignore_errors=True)
    debian = folder / "debian"
    shutil.copytree(PACKAGING / "deb", debian)
    (debian / "changelog").write_text(changelog(product))
    shutil.copy2(tree / COPYRIGHT, debian / "copyright")
    shutil.copy2(ROOT / "LICENSE", folder)
    shutil.copy2(tree / LINKED, folder)
    for name, changes in UNITS.items():
        (debian / name).write_text(adapted("mysql.service", changes))
    preflight = (COMMON / "preflight").read_text()
    for name in ("config", "preinst"):
        script = debian / f"mysql-memdiag-server.{name}"
        text = script.read_text().replace("#PREFLIGHT#\n", preflight)
        script.write_text(text)
    copies = [(tree / path, debian / package / path) for package, paths in product.files.items() for path in paths]
    for package, paths in product.files.items():
        must, may = (", ".join(names) for names in portable.dependencies(tree, paths))
        (debian / f"{package}.substvars").write_text(f"shlibs:Depends={must}\nshlibs:Recommends={may}\n")
    server = debian / "mysql-memdiag-server"
    copies += [(COMMON / source, server / path) for source, path in COMMON_FILES.items()]
    copies.append((PACKAGING / "deb/family.sh", server / FAMILY))
    for source, path in copies:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, path, follow_symlinks=False)
    with open(server / "usr/share/mysql-memdiag/init.sql", "a") as sql:
        sql.write((PACKAGING / "deb/init.sql").read_text())
    for path in debian.rglob("*"):  # so two checkouts make the same package
        os.utime(path, (product.date, product.date), follow_symlinks=False)


def build(tree: Path, out: Path, product: Product) -> list[Path]:
    folder = out / "deb"
    say("-- making the Debian packages")
    stage(tree, folder, product)
    for old in out.glob("*.deb"):
        old.unlink()
    logged(
        ["debian/rules", "binary"],
        out / "deb.log",
        "debhelper failed",
        cwd=folder,
        env={
            **os.environ,
            "DEB_RULES_REQUIRES_ROOT": "no",
            "MYSQL_VERSION": product.mysql,
            "SOURCE_DATE_EPOCH": str(product.date),
        },
    )
    shutil.rmtree(folder)
    return sorted(out.glob("*.deb"))
