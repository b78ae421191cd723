"""The RPMs: on a machine without a server, over a stock server's RPM and back; and the source RPM alone.

Debian has rpm and dnf. Its rpm does not know what is installed, so tests/userland.py tells it.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from make.product import logged

from harness.checks import Failed
from harness.common import ROOT, cache_dir, require_disk
from harness.programs import captured
from tests import content, machine, userland
from tests.deb import Run, debians_packages, debians_server, files, kept, version
from tests.installed import Installed, main_job, memdiag_tables
from tests.machine import Machine

SERVER, CLIENT = (f"/srv/packages/mysql-memdiag-{x}-*.rpm" for x in ("server", "client"))
OURS = f"{SERVER} {CLIENT}"
CONFIG = ROOT / "packaging/rpm/rpmlint.toml"
# Upstream's RPM has its plugins here, and components have their settings here.
STOCKS_PLUGINS = "/usr/lib64/mysql/plugin"
KEYRING = "component_keyring_file"
SEALED = "SELECT a FROM sealed.t"
# dnf has no repository but those on its command line.
DNF = "dnf -q -y --disablerepo='*' --nogpgcheck --releasever=1"


def rpm(run: Run) -> None:
    lint(run)
    bare(run)
    stock(run)


def lint(run: Run) -> None:
    if not shutil.which("rpmlint"):
        run.report.skip("rpmlint", "not installed; apt-get install rpmlint")
        return
    packages = sorted(run.packages.glob("*.rpm"))
    done = captured(["rpmlint", "-c", CONFIG, *packages])
    errors = [line for line in done.stdout.splitlines() if ": E: " in line]
    last = done.stdout.splitlines()[-1:]
    good = len(packages) == 5 and not errors and not done.returncode
    run.report.check("rpmlint finds no error", good, "; ".join(errors or last))


def prepared(run: Run, lower: Path, programs: str, first: str = "true") -> Path:
    """A base with rpm and the libraries that the DEBs depend on. Its rpm knows what is installed."""
    base = run.work / "bases" / f"{lower.name}-rpm"
    if not base.is_dir():
        depends = ["dpkg-deb", "-f", run.deb("mysql-memdiag-server"), "Depends"]
        wanted = subprocess.run(depends, capture_output=True, text=True, check=True)
        libraries = re.findall(r"\blib[^,\n]*", wanted.stdout)
        with run.machine(lower) as box:
            box.run(first)
            box.apt(f"install {programs} perl passwd libjson-perl libedit2")
            box.apt(f"satisfy '{', '.join(libraries)}'")
            made = userland.package(box.tree, box.path("/root"))
            box.run(f"rpm -i --justdb /root/{made.name}")
            box.freeze(base.name)
    return base


# --- without another server ----------------------------------------------------------


def bare(run: Run) -> None:
    report = run.report
    with run.machine(prepared(run, machine.base(run.work, "bookworm"), "rpm")) as box:
        with report.checking("every dependency is met, and it installs with its scripts"):
            box.run(f"rpm -i {OURS}")
        with report.checking("as it was packaged, so it is there"):
            box.run("rpm -V mysql-memdiag-client; rpm -V mysql-memdiag-server")
        box.run("systemctl start mysqld")
        server = Installed(box)
        report.check("the server is ours", "memdiag" in version(server), version(server))
        with report.checking("mysql connects by the socket of either family"):
            for name in ("/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock"):
                box.run(f"mysql -S {name} -e 'SELECT 1'", network=False)
        main_job(box, report)
        memdiag_tables(server, report)
        with server.connect() as session:
            content.make(session)
        box.run("echo 'sort_buffer_size = 333000' >>/etc/my.cnf.d/memdiag.cnf")
        with kept(report, box, "an upgrade"):
            box.run(f"rpm -U --replacepkgs {OURS}")
        report.equal("an upgrade keeps settings", Installed(box).query("SELECT @@sort_buffer_size").scalar(), "333000")
        as_stock(run, box)
        box.run("systemctl stop mysqld")
        data = files(box, "/var/lib/mysql")
        with report.checking("it can be removed, and data and settings stay"):
            box.run("rpm -e mysql-memdiag-server")
            assert files(box, "/var/lib/mysql") == data, "the data directory was changed"
            box.run("test -e /etc/my.cnf; test ! -e /usr/sbin/mysqld")
            box.run("grep -q 333000 /etc/my.cnf.d/memdiag.cnf.rpmsave")
        refuse(run, box)


def as_stock(run: Run, box: Machine) -> None:
    """What users of upstream's RPMs rely on: a socket for all users, a log in /var/log, sysconfig, instances."""
    report = run.report
    mine, sysconfig = "/etc/my.cnf.d/mine.cnf", "/etc/sysconfig/mysql"
    (box.path("/etc/my.cnf.d") / "mine.cnf").write_text(
        "[mysqld]\nsocket=/var/lib/mysql/mysql.sock\nlog-error=/var/log/mysqld.log\n"
        "[mysqld-9.7]\njoin_buffer_size=444000\n"
    )
    with report.checking("a log in /var/log is made where it is missing"):
        box.run("test ! -e /var/log/mysqld.log; systemctl restart mysqld")
        said = box.run("stat -c '%U %a' /var/log/mysqld.log").strip()
        assert said == "mysql 640", said
    server = Installed(box)
    server.query("CREATE USER nobody@localhost IDENTIFIED WITH auth_socket")
    with report.checking("nobody connects by the socket of either family"):
        for name in ("/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock"):
            ask = f"mysql -S {name} -Ne 'SELECT USER()'"
            said = box.run(f"setpriv --reuid nobody --clear-groups {ask}").strip()
            assert said == "nobody@localhost", said
    server.query("DROP USER nobody@localhost")
    box.run("mkdir -p /etc/sysconfig")
    moved = "/var/lib/mysql-moved"
    with report.checking("NO_INIT of sysconfig: no data directory is made"):
        text = f"NO_INIT=true\nMYSQLD_OPTS=--datadir={moved} --socket=/run/mysqld/mysqld.sock\n"
        (box.path("/etc/sysconfig") / "mysql").write_text(text)
        box.run(f"if systemctl restart mysqld; then exit 1; fi; test ! -e {moved}")
    with report.checking("MYSQLD_OPTS of sysconfig: the data directory is made there"):
        box.run(f"sed -i /NO_INIT/d {sysconfig}")
        box.run("systemctl reset-failed mysqld; systemctl start mysqld")
        query = "SELECT CONCAT(@@datadir, ' ', @@join_buffer_size)"
        said = Installed(box).query(query).scalar()
        assert said == f"{moved}/ 443904", said
    with report.checking("where user mysql cannot make the link, the server starts"):
        box.run("systemctl stop mysqld; rm -f /var/lib/mysql/mysql.sock")
        box.run("chown root:root /var/lib/mysql; systemctl start mysqld")
        Installed(box)
        box.run("test ! -e /var/lib/mysql/mysql.sock")
        said = box.run("journalctl --no-pager -b -u mysqld")
        assert re.search("ln: .*mysql.sock.*: Permission denied", said), said[-500:]
    box.run("chown mysql:mysql /var/lib/mysql")
    box.run(f"systemctl stop mysqld; rm -r {moved} {sysconfig}")
    (box.path("/etc/my.cnf.d") / "second.cnf").write_text(
        "[mysqld@second]\ndatadir=/var/lib/mysql-second\nport=3307\nmysqlx=OFF\n"
        "socket=/var/lib/mysql-second/mysql.sock\nlog-error=/var/log/mysqld-second.log\n"
    )
    with report.checking("mysqld@second runs beside the main server"):
        box.run("systemctl start mysqld mysqld@second")
        ask = "mysql -S /var/lib/mysql-second/mysql.sock -Ne 'SELECT @@port'"
        assert box.run(ask).strip() == "3307"
        Installed(box)
    box.run(f"systemctl stop mysqld@second; rm {mine} /etc/my.cnf.d/second.cnf")
    box.run("systemctl restart mysqld")
    Installed(box)


def refuse(run: Run, box: Machine) -> None:
    history = "/var/lib/mysql/mysql_upgrade_history"
    box.run(f'sed -i.old \'s/"version": *"9\\.7/"version": "9.8/\' {history}')
    before = files(box, "/var/lib/mysql")
    said = box.run(f"rpm -i {SERVER} 2>&1 && echo INSTALLED", check=False)
    message = re.search(r"^mysql-memdiag: .*9\.8.*$", said, re.MULTILINE)
    run.report.check(
        "refused: a data directory of a newer series",
        message and "INSTALLED" not in said and files(box, "/var/lib/mysql") == before,
        message.group(0) if message else said[-500:],
    )
    with run.report.checking("once mended, it installs"):
        box.run(f"mv {history}.old {history}; rpm -i {SERVER}; systemctl start mysqld")
        Installed(box)


# --- over a stock server and back -----------------------------------------------------


def stocks_rpm(run: Run, into: Path) -> None:
    top = run.work / "stock-rpm"
    machine.remove(top)
    top.mkdir()
    for package in debians_packages(run):
        subprocess.run(["dpkg-deb", "-x", package, top / "tree"], check=True)
    command = ["rpmbuild", "--quiet", "-bb", "--define", f"_topdir {top}"]
    command += ["--define", f"tree {top}/tree", ROOT / "packaging/tests/stock.spec"]
    done = captured(command)
    if done.returncode:
        raise Failed(done.stderr)
    for package in top.glob("RPMS/*/*.rpm"):
        shutil.copy(package, into / f"stock-{package.name}")
    machine.remove(top)


def stock(run: Run) -> None:
    """dnf replaces one package by the other in one transaction."""
    report = run.report
    gone = "apt-get -y purge 'mysql-*'; rm -rf /var/lib/mysql* /var/log/mysql /etc/mysql"
    with run.machine(prepared(run, debians_server(run), "rpm dnf", gone)) as box:
        stocks_rpm(run, box.path("/root"))
        box.run("rpm -i /root/stock-*.rpm; systemctl start mysqld")
        server = Installed(box)
        theirs = version(server)
        with server.connect() as session:
            content.make(session)
        box.run("echo 'sort_buffer_size=333000' >>/etc/my.cnf; systemctl restart mysqld")
        settings = box.run("cat /etc/my.cnf")
        encrypt(box)
        with kept(report, box, "a stock RPM to ours"), report.checking("dnf replaces a running stock server"):
            box.run(f"{DNF} install --allowerasing {OURS}")
        report.nothing("what has the same files is gone", box.run("rpm -qa 'mysql-community-*'").split())
        server = Installed(box)
        report.check("the server is ours", "memdiag" in version(server), version(server))
        report.check("my.cnf is as it was", box.run("cat /etc/my.cnf") == settings)
        report.equal("and counts", server.query("SELECT @@sort_buffer_size").scalar(), "333000")
        report.equal("encrypted rows can be read", server.query(SEALED).scalar(), "42")
        with report.checking("an upgrade leaves the link to the keyring's settings"):
            box.run(f"rpm -U --replacepkgs {OURS}; test -L /usr/lib/mysql/plugin/{KEYRING}.cnf")
        with kept(report, box, "ours back to the stock RPM"), report.checking("dnf replaces ours by the stock server"):
            box.run(f"{DNF} install --allowerasing /root/stock-*.rpm")
        server = Installed(box)
        report.equal("ours was replaced", version(server), theirs)
        report.equal("encrypted rows can be read again", server.query(SEALED).scalar(), "42")
        with report.checking("no link is left"):
            box.run(f"test ! -L /usr/lib/mysql/plugin/{KEYRING}.cnf; test -f {STOCKS_PLUGINS}/{KEYRING}.cnf")
        report.check("my.cnf is still as it was", box.run("cat /etc/my.cnf") == settings)
        service(run, box)


def encrypt(box: Machine) -> None:
    """Gives the stock server a keyring, with settings where upstream's manual has them, and an encrypted table."""
    for path, text in {
        "/usr/sbin/mysqld.my": {"components": f"file://{KEYRING}"},
        f"{STOCKS_PLUGINS}/{KEYRING}.cnf": {"path": "/var/lib/mysql-keyring/keys", "read_only": False},
    }.items():
        box.path(path).write_text(json.dumps(text))
    box.run("systemctl restart mysqld")
    with Installed(box).connect() as session:
        session.query("CREATE DATABASE sealed")
        session.query("CREATE TABLE sealed.t ENCRYPTION = 'Y' AS SELECT 42 AS a")


def service(run: Run, box: Machine) -> None:
    """A replaced server leaves its service as the administrator set it: Pacemaker's are disabled and run."""
    for change in ("systemctl disable mysqld", "systemctl enable mysqld; systemctl stop mysqld"):
        box.run(f"systemctl start mysqld; {change}")
        before = state(box)
        for what, packages in (("ours", OURS), ("stock's", "/root/stock-*.rpm")):
            box.run(f"{DNF} install --allowerasing {packages}")
            run.report.equal(f"{before}: it stays so with {what}", state(box), before)


def state(box: Machine) -> str:
    show = "systemctl show mysqld --value -p"
    return " ".join(box.run(f"{show} UnitFileState; {show} ActiveState").split())


# --- the source RPM alone ----------------------------------------------------------------


def rebuild(run: Run) -> None:
    """Builds the source RPM in another folder and without network. The packages must have the same files as those made
    of the build."""
    if run.preset != "dev":
        run.report.skip("rebuild", "the source RPM compiles preset dev")
        return
    top = run.work / "rebuild"
    machine.remove(top)
    require_disk([(top.parent, 14, "a second build")])
    cache = top / "cache"
    cache.mkdir(parents=True)
    try:
        # The build sees the compiler cache of this machine, and nothing else of its cache.
        if (compiled := cache_dir() / "ccache").is_dir():
            (cache / "ccache").symlink_to(compiled)
        archives = list(run.packages.glob("*.src.rpm"))
        if len(archives) != 1:
            raise Failed(f"{run.packages} has {len(archives)} source RPMs")
        archive = archives[0]
        logged(
            ["unshare", "--net", "rpmbuild", "--rebuild"] + ["--define", f"_topdir {top}", archive],
            top.with_suffix(".log"),
            "rpmbuild failed",
            env={**os.environ, "MEMDIAG_CACHE": str(cache)},
        )
        made = {path.name: path for path in top.glob("RPMS/*/*.rpm")}
        ours = {path.name: path for path in run.packages.glob("*.rpm")}
        del ours[archive.name]
        run.report.check(
            "the source RPM alone makes the same packages", ours and made.keys() == ours.keys(), " ".join(sorted(made))
        )
        for name in sorted(made.keys() & ours.keys()):
            different = sorted({line.split()[0] for line in dump(made[name]) ^ dump(ours[name])})
            run.report.check(
                f"with the same files: {name}",
                not different,
                f"{len(different)} differ: {' '.join(different[:5])}" if different else "",
            )
    finally:
        machine.remove(top)


def dump(package: Path) -> set[str]:
    """Name, size, date, sum, mode, owner and rpm's flags of each file."""
    command = ["rpm", "-qp", "--dump", package]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())
