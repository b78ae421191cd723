"""RPM packages and a source RPM from the installed tree; called by packaging/build.

packaging/rpm/ has the spec and the files that only RPM systems need; packaging/common has the rest.
"""

import gzip
import json
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from harness.checkout import git
from harness.common import ROOT, say
from harness.problem import Problem
from make.product import PACKAGING, Product, logged
from tools.build.sources import PINS, check, open_archive

# Programs that have to be installed, with their Debian packages.
TOOLS = {"rpmbuild": "rpm", "find-debuginfo": "debugedit", "eu-strip": "elfutils", "git": "git"}


def build(tree: Path, out: Path, product: Product) -> list[Path]:
    top = out / "rpm"
    shutil.rmtree(top, ignore_errors=True)
    sources = top / "SOURCES"
    sources.mkdir(parents=True)
    say("-- making the source RPM")
    checkout = f"mysql-memdiag-{product.memdiag}"
    pack_checkout(sources / f"{checkout}.tar.gz", f"{checkout}/")
    names = {
        "MYSQL_VERSION": product.mysql,
        "MEMDIAG_VERSION": product.memdiag,
        "RELEASE": release(product),
        "MYSQL_ARCHIVE": upstream_archive("mysql", product.sources, sources).name,
        "JEMALLOC_ARCHIVE": upstream_archive("jemalloc", product.sources, sources).name,
        "COMMIT": product.commit[:12],
        "DATE": time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(product.date)),
    }
    spec = top / "mysql-memdiag.spec"
    spec.write_text(filled((PACKAGING / "rpm/mysql-memdiag.spec.in").read_text(), names))
    # Without a tree: as the source RPM is built later. Its header has the spec with all macros expanded, so they name
    # no folder.
    rpmbuild(top, Path("."), "-bs", spec.name)
    say("-- making the RPM packages")
    rpmbuild(top, top, "-bb", "--define", f"memdiag_tree {tree.absolute()}", spec.name)
    for old in out.glob("*.rpm"):
        old.unlink()
    made = [path.replace(out / path.name) for path in sorted(top.glob("*.rpm"))]
    shutil.rmtree(top)
    return made


def release(product: Product) -> str:
    parts = ["1", f"memdiag{product.memdiag}", product.stamp]
    # The source RPM compiles preset dev.
    trained = "%{?memdiag_tree:.pgo}" if product.trained else ""
    return ".".join(filter(None, parts)) + trained


def rpmbuild(top: Path, called: Path, *args: str) -> None:
    """Run rpmbuild in the folder `top`; the macros name it `called`."""
    places = dict.fromkeys(("_topdir", "_rpmdir", "_srcrpmdir"), called)
    names = {"_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"}
    command = ["rpmbuild"]
    for name, value in {**places, **names}.items():
        command += ["--define", f"{name} {value}"]
    logged([*command, *args], top.with_suffix(".log"), "rpmbuild failed", cwd=top)


def filled(text: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(f"@{name}@", value)
    return text


def pack_checkout(path: Path, prefix: str) -> None:
    """The newest commit as a tarball, the same whenever it is made."""
    tar = subprocess.run([*git(ROOT), "archive", f"--prefix={prefix}", "HEAD"], capture_output=True, check=False)
    if tar.returncode:
        raise Problem(f"git could not pack {ROOT}: {tar.stderr.decode(errors='replace').strip()}")
    path.write_bytes(gzip.compress(tar.stdout, mtime=0))


def upstream_archive(name: str, sources: dict, into: Path) -> Path:
    """Puts the archive that the build took its source from into a folder."""
    source = sources.get(name, {})
    if "archive" not in source:
        raise Problem(
            f"the build does not say which archive of {name} it was made of.\n"
            "  Configure its preset again, or leave out the RPM: packaging/build deb"
        )
    archive = Path(source["archive"])
    if not archive.is_file():
        raise Problem(
            f"{archive} is not there, and the source RPM is to contain it.\n"
            f"  Bring it back, or remove {source['tree']} and configure the preset"
            " again, or leave out the RPM: packaging/build deb"
        )
    if not source["member"]:
        return Path(shutil.copy(archive, into))
    path = into / f"{Path(source['tree']).name}.tar.gz"
    with ExitStack() as stack, open(path, "wb") as file:
        shutil.copyfileobj(open_archive(archive, source["member"], stack), file, 1 << 20)
    want = json.loads(PINS.read_text())[name]["tarball_sha256"]
    if source["pinned"] and (problem := check(path, want)):
        raise Problem(f"{problem}.\n  Remove {archive} and {source['tree']}, and configure the preset again.")
    return path
