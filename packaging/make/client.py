"""The packages of the program memdiag: a DEB, an RPM and a wheel. They need no build of the server.

The DEB and the RPM have the same tree: the program, a starter in /usr/bin, the manual page and the licences. The
program has a folder of its own, so other Python programs never import its modules.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from harness.common import ROOT, say
from harness.problem import Problem
from make.deb import MAINTAINER
from make.manpage import body
from make.product import commit, logged

CLIENT = ROOT / "client"
# Debian's Python makes the wheel with Debian's packages: a build gets nothing over the network. Another
# Python may come first in PATH.
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
PROGRAMS = {"dpkg-deb": "dpkg", "rpmbuild": "rpm"}
MODULES = {name: f"python3-{name}" for name in ("pip", "setuptools", "wheel")}
HOME = "usr/share/memdiag"
DOC = "usr/share/doc/memdiag"
STARTER = """#!/usr/bin/python3
import sys

sys.dont_write_bytecode = True  # root's runs would leave files that no package owns
sys.path.insert(0, "/usr/share/memdiag")
from memdiag.cli import run

run()
"""
SUMMARY = "report, live screen and comparison of a MySQL server's memory"
TEXT = """Shows where the memory of a MySQL server is, what is wrong and which
statement helps: as one HTML page, as text, on a live screen, recorded
over time and compared. For MySQL with memdiag, stock MySQL, Percona
Server and MariaDB. It changes nothing on the server."""


def version() -> str:
    found = re.search(r'__version__ = "([^"]+)"', (CLIENT / "memdiag/__init__.py").read_text())
    if not found:
        raise Problem("client/memdiag/__init__.py has no __version__")
    return found[1]


def missing_packages() -> list[str]:
    """The Debian packages of what build() needs and does not find."""
    script = "import sys, importlib.util as i; print(*(x for x in sys.argv[1:] if not i.find_spec(x)))"
    asked = subprocess.run([PYTHON, "-c", script, *MODULES], capture_output=True, text=True, check=True)
    programs = [package for name, package in PROGRAMS.items() if not shutil.which(name)]
    return programs + [MODULES[name] for name in asked.stdout.split()]


def build(out: Path) -> list[Path]:
    """Makes all three packages, with the date of the newest commit."""
    _, stamp, date = commit()
    out.mkdir(parents=True, exist_ok=True)
    tree = out / "tree"
    stage(tree, date)
    full = f"{version()}+{stamp}" if stamp else version()
    return [deb(tree, out, full, date), rpm(tree, out, full, date), wheel(out, date)]


def stage(tree: Path, date: int) -> None:
    shutil.rmtree(tree, ignore_errors=True)
    # The page, a link in the checkout, is copied.
    shutil.copytree(CLIENT / "memdiag", tree / HOME / "memdiag", ignore=shutil.ignore_patterns("__pycache__"))
    _write(tree / "usr/bin/memdiag", STARTER, 0o755)
    _write(tree / DOC / "copyright", _copyright())
    shutil.copy2(ROOT / "docs/client.md", tree / DOC / "client.md")
    page = tree / "usr/share/man/man1/memdiag.1.gz"
    page.parent.mkdir(parents=True)
    page.write_bytes(gzip.compress(manual(date).encode(), mtime=0))
    for folder, folders, names in os.walk(tree, topdown=False):
        for path in (Path(folder, name) for name in folders + names):
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o111 else 0o644)
            os.utime(path, (date, date))


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def _copyright() -> str:
    plot = (CLIENT / "memdiag/render/static/uplot.LICENSE").read_text()
    return f"memdiag is under GPL-2.0.\n\n{(ROOT / 'LICENSE').read_text()}\n\nuPlot, in {HOME}/memdiag/render/static:\n\n{plot}"


def manual(date: int) -> str:
    """memdiag(1), made of docs/client.md."""
    day = time.strftime("%Y-%m-%d", time.gmtime(date))
    text = re.sub(r"(?<!`)`(?!`)", "", (ROOT / "docs/client.md").read_text())
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text).replace("### ", "## ")
    head = f".TH MEMDIAG 1 {day} memdiag\n.SH NAME\nmemdiag \\- {SUMMARY}\n"
    return head + "\n".join(body(unwrapped(text.splitlines()))) + "\n"


def unwrapped(lines: list[str]) -> list[str]:
    """Each paragraph as one line; examples and tables as they are."""
    result: list[str] = []
    in_example = follows = False
    for line in lines:
        fence = line.startswith("```")
        plain = not in_example and not fence and bool(line) and line[0] not in "|#"
        if plain and follows:
            result[-1] += " " + line
        else:
            result.append(line)
        in_example ^= fence
        follows = plain
    return result


def deb(tree: Path, out: Path, full: str, date: int) -> Path:
    say("-- making the Debian package of the client")
    staged = out / "deb"
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(tree, staged)
    files = sorted(path for path in staged.rglob("*") if path.is_file())
    sums = "".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(staged)}\n" for path in files)
    size = sum(path.stat().st_size for path in files) // 1024
    description = "\n".join(f" {line}" for line in TEXT.splitlines())
    _write(
        staged / "DEBIAN/control",
        f"""Package: memdiag
Version: {full}-1
Architecture: all
Maintainer: {MAINTAINER}
Installed-Size: {size}
Depends: python3 (>= 3.9), python3-jinja2, python3-pymysql (>= 1.0.2)
Recommends: python3-rich
Suggests: mysql-memdiag-client
Section: database
Priority: optional
Description: {SUMMARY}
{description}
""",
    )
    _write(staged / "DEBIAN/md5sums", sums)
    for path in [staged, *staged.rglob("*")]:
        os.utime(path, (date, date))
    target = out / f"memdiag_{full}-1_all.deb"
    for old in out.glob("memdiag_*.deb"):
        old.unlink()
    logged(
        ["dpkg-deb", "--root-owner-group", "--build", staged, target],
        out / "deb.log",
        "dpkg-deb failed",
        env={**os.environ, "SOURCE_DATE_EPOCH": str(date)},
    )
    shutil.rmtree(staged)
    return target


SPEC = """%global __os_install_post %{{nil}}
%global _buildhost reproducible
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
%global __requires_exclude ^.*$
%global __python /usr/bin/python3
Name: memdiag
Version: {version}
Release: 1{stamp}
Summary: {summary}
License: GPL-2.0-only AND MIT
BuildArch: noarch
Requires: python3 >= 3.9, python3-jinja2, (python3-PyMySQL >= 1.0.2 or python3-pymysql >= 1.0.2)
Recommends: python3-rich
%description
{text}
%install
cp -a {tree}/. %{{buildroot}}/
%files
/usr/bin/memdiag
/{home}
/{doc}
/usr/share/man/man1/memdiag.1.gz
"""


def rpm(tree: Path, out: Path, full: str, date: int) -> Path:
    say("-- making the RPM package of the client")
    top = out / "rpm"
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    plain, _, stamp = full.partition("+")
    spec = top / "memdiag.spec"
    spec.write_text(
        SPEC.format(
            version=plain, stamp=f".{stamp}" if stamp else "", summary=SUMMARY, text=TEXT, tree=tree, home=HOME, doc=DOC
        )
    )
    logged(
        ["rpmbuild", "-bb", "--define", f"_topdir {top}", "--define", f"_rpmdir {top}", spec],
        out / "rpm.log",
        "rpmbuild failed",
        env={**os.environ, "SOURCE_DATE_EPOCH": str(date)},
    )
    for old in out.glob("memdiag-*.rpm"):
        old.unlink()
    (made,) = top.rglob("*.rpm")
    target = made.replace(out / made.name)
    shutil.rmtree(top)
    return target


def for_older_setuptools(project: str) -> str:
    """pyproject.toml with the licence as setuptools before 77 and after 61 takes it; Debian 12 has 66. The files
    LICEN[CS]E* of the top folder are in the wheel without a list, and uPlot's is among the data."""
    project = re.sub(r"(?m)^license-files = .*\n", "", project)
    return re.sub(r'(?m)^license = (".*")$', r"license = { text = \1 }", project)


def wheel(out: Path, date: int) -> Path:
    say("-- making the wheel of the client")
    source = out / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(CLIENT, source, ignore=shutil.ignore_patterns("__pycache__", "tests", "check"))
    project = source / "pyproject.toml"
    project.write_text(for_older_setuptools(project.read_text()))
    for old in out.glob("memdiag-*.whl"):
        old.unlink()
    logged(
        [
            PYTHON,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-index",
            "--no-build-isolation",
            "--no-deps",
            "--wheel-dir",
            out,
            source,
        ],
        out / "wheel.log",
        "pip could not make the wheel",
        env={**os.environ, "SOURCE_DATE_EPOCH": str(date)},
    )
    shutil.rmtree(source)
    (made,) = out.glob("memdiag-*.whl")
    return made
