"""The short test, part of ./run-tests: makes DEBs and the archive, unpacks them and runs their servers, without root or a
machine."""

import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from harness.checks import Failed
from harness.common import ROOT
from harness.programs import CLEAN_UP, Programs, captured
from harness.server import Server, Unpacked, initialise
from harness.waiting import until
from tests.deb import OURS, Run, sizes
from tests.installed import memdiag_tables
from tests.machine import last_lines, remove
from tools.build.sources import sha256_file

LISTS = "mysql-memdiag.*.json"  # bills of materials


def build(preset: str, out: Path, *kinds: str, env: dict[str, str] | None = None) -> None:
    command = [sys.executable, ROOT / "packaging/build", "--preset", preset, "--out", out, *kinds]
    with Programs(CLEAN_UP) as programs:
        done = programs.run(command, stderr=subprocess.STDOUT, env=env)
    if done.returncode:
        raise Failed(last_lines(done.stdout))


def smoke(run: Run) -> None:
    folder = run.work / "smoke"
    remove(folder)
    # A server's socket lies below it, and the server runs with the rights of this user.
    folder.mkdir(mode=0o700, parents=True)
    try:
        # Without debug symbols and compression it takes seconds instead of minutes.
        quick = {"DEB_BUILD_OPTIONS": "noautodbgsym", "DPKG_DEB_COMPRESSOR_TYPE": "none", "XZ_OPT": "-0"}
        build(run.preset, folder, "deb", "tar", env={**os.environ, **quick})
        run = Run(run.report, run.preset, folder, run.work)
        lists = sorted(path.name for path in folder.glob(LISTS))
        run.report.check("a bill of materials in two forms", len(lists) == 2, ", ".join(lists))
        contents(run)
        server(run, folder / "root")
        archive(run, folder / "elsewhere")
    finally:
        remove(folder)


def archive(run: Run, folder: Path) -> None:
    """Checks that the archive runs by the commands that its option file names."""
    folder.mkdir()
    (packed,) = run.packages.glob("*.tar.xz")
    subprocess.run(["tar", "-C", folder, "-xf", packed], check=True)
    home = folder / "memdiag-mysqld"
    lines = re.findall(r"^#   (.+)$", (home / "my.cnf").read_text(), re.MULTILINE)
    make, start, connect = (line.removesuffix(" &").split() for line in lines)
    as_root = ["--user=root"] * (os.geteuid() == 0)
    with Programs(CLEAN_UP) as programs, open(folder / "log", "w") as log:
        said = programs.run([*make, *as_root], cwd=home, stderr=subprocess.STDOUT)
        run.report.nothing("the archive makes a data directory", last_lines(said.stdout) if said.returncode else "")
        running = programs.start([*start, *as_root], cwd=home, stdout=log, stderr=log)
        ledger = "information_schema.memdiag_ledger WHERE component <> 'process'"
        query = ["--connect-timeout=5", "-Ne", f"SELECT @@basedir, SUM(resident_bytes) > 0 FROM {ledger}"]
        deadline = time.monotonic() + 120
        while True:
            done = programs.run([*connect, *query], cwd=home, stderr=subprocess.STDOUT)
            if done.returncode == 0 or running.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        run.report.equal("its server answers from its folder", done.stdout.strip(), f"{home}/\t1")
        stopped = programs.run([*connect, "-e", "SHUTDOWN"], cwd=home, stderr=subprocess.STDOUT)

        def has_ended() -> bool:
            # Upstream's main thread sleeps through a signal that comes just before it waits for its first connection.
            programs.run([*connect, "--connect-timeout=5", "-e", "DO 0"], cwd=home, stderr=subprocess.STDOUT)
            return running.poll() is not None

        ended = until(has_ended, 60, 0.2)
        run.report.check("and ends", stopped.returncode == 0 and ended, stopped.stdout)
    run.report.check("with status 0", running.returncode == 0, str(running.returncode))


def border(run: Run, build_: Unpacked, running: Server) -> None:
    """Checks a plugin's C++ library beside mysqld's: linked as ours are, and as those of others are."""
    for kind, options in (("static", ["-static-libstdc++"]), ("shared", [])):
        library = build_.directory / "usr/lib/mysql/plugin" / f"border_{kind}.so"
        source = Path(__file__).with_name("border.cc")
        subprocess.run(["c++", "-std=c++20", "-O2", "-shared", "-fPIC", *options, source, "-o", library], check=True)
        running.query(f"CREATE FUNCTION border RETURNS INTEGER SONAME '{library.name}'")
        said = running.query("SELECT border()").scalar()
        running.query("DROP FUNCTION border")
        run.report.equal(f"exceptions and streams cross to a plugin with a {kind} C++ library", said, "0")


def reproducible(run: Run) -> None:
    """Checks that another build of the same commit gives the same files."""
    folder = run.work / "again"
    remove(folder)
    build(run.preset, folder)
    sums = [
        {
            path.name: sha256_file(path)
            for place in ("*.deb", "*.rpm", "*.tar.xz", LISTS)
            for path in packages.glob(place)
        }
        for packages in (run.packages, folder)
    ]
    remove(folder)
    different = [name for name in {**sums[0], **sums[1]} if sums[0].get(name) != sums[1].get(name)]
    good = sums[0] and not different
    run.report.check("two builds give the same files", good, " ".join(different) or f"{len(sums[0])} files")


def contents(run: Run) -> None:
    report = run.report
    of = {name: sizes(run.deb(name)) for name in (*OURS, "mysql-memdiag-test")}
    paths = [path for files in of.values() for path in files if "/share/doc/" not in path]
    report.nothing("no file is in two packages", sorted(path for path, count in Counter(paths).items() if count > 1))
    places = {OURS[0]: "/usr/sbin/mysqld", OURS[1]: "/usr/bin/mysql", "mysql-memdiag-test": "/usr/bin/mysqltest"}
    wrong = [path for name, path in places.items() if path not in of[name]]
    suite = "/usr/lib/mysql-test/suite/memdiag/t/ledger.test"
    report.check("our suite is there", suite in of["mysql-memdiag-test"], suite)
    for name, files in of.items():
        licence = f"/usr/share/doc/{name}/LICENSE"
        report.check(f"{name} has the licence", licence in files)
    report.nothing("server, client and tests are apart", wrong)
    fields = {}
    for name in OURS:
        text = subprocess.run(["dpkg-deb", "-f", run.deb(name)], capture_output=True, text=True, check=True).stdout
        fields[name] = dict(re.findall(r"^([\w-]+): (.*(?:\n .*)*)", text, re.MULTILINE))
    for field, others in {
        "Provides": ("mysql-server", "virtual-mysql-server"),
        "Conflicts": ("mysql-server", "mysql-community-server", "percona-server-server", "mariadb-server"),
        "Replaces": ("mysql-server", "mysql-community-server", "percona-server-server", "mariadb-server"),
        "Depends": (f"mysql-memdiag-client (= {fields[OURS[0]]['Version']})", "libssl3", "libc6"),
    }.items():
        missing = [name for name in others if name not in fields[OURS[0]].get(field, "")]
        report.check(f"{field} of the server", not missing, " ".join(missing))
    archive = ["dpkg-deb", "--ctrl-tarfile", run.deb(OURS[0])]
    conffiles = (
        subprocess.run(
            ["tar", "-xO", "./conffiles"],
            input=subprocess.run(archive, capture_output=True, check=True).stdout,
            capture_output=True,
            check=True,
        )
        .stdout.decode()
        .split()
    )
    etc = {path for path in of[OURS[0]] if path.startswith("/etc/")}
    report.check(
        "what is below /etc is marked as configuration", etc and etc == set(conffiles), " ".join(etc ^ set(conffiles))
    )


def server(run: Run, root: Path) -> None:
    for name in OURS:
        subprocess.run(["dpkg-deb", "-x", run.deb(name), root], check=True)
    build_ = Unpacked(root)
    # A folder beside the unpacked package, which contains no data directory.
    with Server(build_, root.with_name("server")) as running:
        initialise(build_, running.data)
        running.start()
        said = running.query("SELECT VERSION()").scalar()
        run.report.check("mysqld runs from the package", "memdiag" in (said or ""), said)
        memdiag_tables(running, run.report)
        running.query("INSTALL PLUGIN clone SONAME 'mysql_clone.so'")
        border(run, build_, running)
        client = [
            build_.program("mysql"),
            "--no-defaults",
            "-uroot",
            f"--socket={running.socket}",
            "-Ne",
            "SELECT 6 * 7",
        ]
        run.report.equal("mysql of the package connects", captured(client).stdout.strip(), "42")
