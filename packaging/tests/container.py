"""The container image, made of the DEBs and run by podman with storage of its own.

Unless a check says otherwise, each container is as strict as it can be: any user, no capability, a read-only root file
system, no network but loopback.
"""

import bz2
import contextlib
import gzip
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from container import podman as containers
from container.podman import Podman

from harness.checks import Checks, Failed
from harness.common import ROOT
from harness.programs import CLEAN_UP, Programs
from harness.server import last_line
from tests.deb import Run
from tests.machine import last_lines
from tools.build.debian import remove

ANYBODY = 54321
MYSQL = 999
MEMORY = 1 << 30
HOOKS = "/docker-entrypoint-initdb.d"
MAKING = "memdiag-making"
MADE = "memdiag-made"
# It has every character that shells, option files and SQL treat specially.
PASSWORD = 'it\'s "a" \\ b#c $HOME `d` é'
DATABASE = "shop_1"
TWIN = "shopX1"  # GRANT on shop_1 also matches this, unless the _ is escaped
QUICK = {"MYSQL_INITDB_SKIP_TZINFO": "1"}
ROOT_ONLY = {"MYSQL_ROOT_PASSWORD": PASSWORD, **QUICK}
WAIT_SECONDS = 120
STATEMENT = "CREATE TABLE {0} (a INT PRIMARY KEY); INSERT INTO {0} VALUES (1);"

SOURCED = """mysql_note "the sourced hook speaks"
docker_process_sql <<<"$(printf 'CREATE TABLE sourced (a INT PRIMARY KEY)')"
"${unset_variable:-true}"
"""
# During the initialisation the server answers its hooks, but the health check must fail.
EXECUTED = """#!/bin/sh
set -eu
mysql -uroot "-p$MYSQL_ROOT_PASSWORD" "$MYSQL_DATABASE" -e "CREATE TABLE executed (health INT)"
health >&2 && was=0 || was=$?
mysql -uroot "-p$MYSQL_ROOT_PASSWORD" "$MYSQL_DATABASE" -e "INSERT INTO executed VALUES ($was)"
"""
BLOCKED = """echo "blocked" >&2
sleep 600
"""


class Box:
    """One container; its volume and hooks are folders of this machine."""

    def __init__(self, podman: Podman, image: str, folder: Path) -> None:
        self.podman = podman
        self.image = image
        self.data = folder / "data"
        self.hooks = folder / "hooks"
        self.name = folder.name
        self.user = ANYBODY
        self.data.mkdir(parents=True)
        self.hooks.mkdir()
        self.own(ANYBODY)

    def own(self, user: int) -> None:
        """Give the volume to a user. Containers that start later run as this user."""
        self.user = user
        os.chown(self.data, user, user)

    def hook(self, name: str, content: str | bytes, mode: int = 0o644) -> None:
        data = content.encode() if isinstance(content, str) else content
        (self.hooks / name).write_bytes(data)
        (self.hooks / name).chmod(mode)

    def start(self, env: Mapping[str, str], arguments: Sequence[str] = (), options: Sequence[str] = ()) -> None:
        """Begin a new container on the volume; the one before is removed."""
        self.podman.run("rm", "--force", "--ignore", "--time=0", self.name)
        self.podman.run(
            "run",
            "--detach",
            f"--name={self.name}",
            "--network=none",
            "--log-driver=k8s-file",
            f"--user={self.user}:{self.user}",
            "--cap-drop=all",
            "--security-opt=no-new-privileges",
            "--read-only",
            "--read-only-tmpfs=false",
            "--tmpfs=/tmp",
            "--tmpfs=/run/mysqld",
            f"--memory={MEMORY}",
            f"--volume={self.data}:/var/lib/mysql",
            f"--volume={self.hooks}:{HOOKS}:ro",
            *(f"--env={name}={value}" for name, value in env.items()),
            *options,
            self.image,
            *arguments,
        )

    def health(self) -> bool:
        return self.podman.try_("healthcheck", "run", self.name).returncode == 0

    def running(self) -> bool:
        return self._state("Running") == "true"

    @property
    def pid(self) -> int:
        return int(self._state("Pid"))

    def log(self) -> str:
        """The container's output on stderr."""
        return self.podman.try_("logs", self.name).stderr

    def until_healthy(self) -> None:
        self._until(self.health, "it is not healthy")

    def until_logged(self, words: str) -> None:
        self._until(lambda: words in self.log(), f"it does not say {words!r}")

    def until_ended(self) -> int:
        """Wait for the end of the container; returns its exit status."""
        return int(self.podman.run("wait", self.name, seconds=WAIT_SECONDS))

    def signal(self, number: signal.Signals) -> None:
        self.podman.run("kill", f"--signal={number.name}", self.name)

    def sql(self, statement: str, user: str = "root", password: str = PASSWORD, *words: str) -> str:
        """Run SQL by TCP, as clients outside of the container do."""
        done = self.podman.try_(
            "exec",
            f"--env=MYSQL_PWD={password}",
            self.name,
            "mysql",
            "--default-character-set=utf8mb4",
            "-h127.0.0.1",
            f"-u{user}",
            *words,
            "-Ne",
            statement,
        )
        if done.returncode:
            raise Failed(last_line(done.stderr or done.stdout))
        return done.stdout.strip()

    def _until(self, true, problem: str) -> None:
        end = time.monotonic() + WAIT_SECONDS
        while not true():
            if not self.running():
                raise Failed(f"the container ended: {self.log()[-1500:]}")
            if time.monotonic() > end:
                raise Failed(f"{problem} after {WAIT_SECONDS} s: {last_line(self.log())}")
            time.sleep(0.5)  # asking more often would cost more than it saves

    def _state(self, field: str) -> str:
        return self.podman.run("inspect", f"--format={{{{.State.{field}}}}}", self.name)


# --- the test ------------------------------------------------------------------------------


def container(run: Run) -> None:
    if why := containers.missing():
        run.report.skip("container", why)
        return
    folder = run.work / "container"
    containers.sweep(folder)
    try:
        archive = make(run, folder)
        with Podman(folder / "storage") as podman:
            image = podman.run("load", "--quiet", "--input", archive)
            image = image.rsplit(" ", 1)[-1]
            described(run.report, podman, image)
            for number, test in enumerate(TESTS):
                box = Box(podman, image, folder / f"box{number}")
                with finished(run.report, test.__name__, box):
                    test(run.report, box)
    finally:
        remove(folder)


@contextlib.contextmanager
def finished(report: Checks, name: str, box: Box) -> Iterator[None]:
    """Runs one test and ends its container. If the test fails, the others still run."""
    try:
        yield
    except (Failed, OSError, ValueError, subprocess.SubprocessError) as error:
        report.check(f"{name} to its end", False, error)
    finally:
        box.podman.try_("rm", "--force", "--ignore", "--time=0", box.name)
        shutil.rmtree(box.data.parent)


def make(run: Run, out: Path) -> Path:
    """The archive that packaging/container/build makes."""
    program = ROOT / "packaging/container/build"
    command = [sys.executable, program, "--packages", run.packages, "--out", out]
    command += ["--preset", run.preset]
    with Programs(CLEAN_UP) as programs:
        done = programs.run(command, stderr=subprocess.STDOUT)
    found = list(out.glob("mysql-memdiag_*.tar"))
    good = done.returncode == 0 and len(found) == 1
    size = f"{found[0].stat().st_size / 1e6:.0f} MB" if found else ""
    run.report.check("one command makes the image", good, size or last_lines(done.stdout))
    if not good:
        raise Failed("there is no image to test")
    return found[0]


def described(report: Checks, podman: Podman, image: str) -> None:
    (whole,) = json.loads(podman.run("image", "inspect", image))
    config = whole["Config"]
    report.equal("a user by number, for runAsNonRoot", config.get("User", ""), f"{MYSQL}:{MYSQL}")
    report.equal("a health check", whole.get("Healthcheck", {}).get("Test"), ["CMD", "health"])
    report.nothing("no allocator is preloaded", [x for x in config["Env"] if x.startswith(("LD_", "MALLOC_"))])
    listed = "cat /etc/passwd; find /var/lib/mysql /docker-entrypoint-initdb.d -mindepth 1; ls /etc/apt/apt.conf.d; env"
    said = podman.run("run", "--rm", "--network=none", "--entrypoint=sh", image, "-c", listed)
    report.check("user mysql has the number of other images", f"mysql:x:{MYSQL}:{MYSQL}:" in said)
    left = [x for x in said.splitlines() if x.startswith("/") or "mmdebstrap" in x]
    left += re.findall(r"(?im)^\w*_proxy=.*$", said)
    report.nothing("nothing of the machine that made it", left)


# --- a whole life ------------------------------------------------------------------------------


def whole_life(report: Checks, box: Box) -> None:
    everything_asked_for(report, box)
    restrictions(report, box)
    memdiag(report, box)
    hung(report, box)
    stops_and_goes_on(report, box)


def everything_asked_for(report: Checks, box: Box) -> None:
    secret = box.hooks.parent / "secret"
    secret.write_text(PASSWORD + "\n")
    secret.chmod(0o444)
    box.hook("1.sql", STATEMENT.format("plain"))
    packers = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    for name, pack in packers.items():
        box.hook(f"2.sql.{name}", pack(STATEMENT.format(name).encode()))
    zst = subprocess.run(["zstd"], input=STATEMENT.format("zst").encode(), capture_output=True, check=True).stdout
    box.hook("2.sql.zst", zst)
    box.hook("3.sh", SOURCED)
    box.hook("4.sh", EXECUTED, 0o755)
    box.hook("5.txt", "")
    box.hook("6.sql", f"CREATE DATABASE {TWIN}")
    env = {
        # As a container has that is a client of another one, too.
        "MYSQL_HOST": "db.example.org",
        "MYSQL_ROOT_PASSWORD_FILE": "/secret",
        "MYSQL_DATABASE": DATABASE,
        "MYSQL_USER": "o'hara",
        "MYSQL_PASSWORD": PASSWORD,
    }
    box.start(env, ["--max-connections=77"], [f"--volume={secret}:/secret:ro"])
    box.until_healthy()
    report.check("any user makes a data directory, with nothing but a volume", True)
    said = box.sql("SELECT CURRENT_USER(), @@max_connections, @@datadir")
    good = said.split() == ["root@%", "77", "/var/lib/mysql/"]
    report.check("root logs in by a password from a file; arguments count", good, said)
    tables = box.sql(f"SHOW TABLES FROM {DATABASE}").split()
    wanted = ["bz2", "executed", "gz", "plain", "sourced", "xz", "zst"]
    report.check("each kind of hook has run", tables == wanted, " ".join(tables))
    was = box.sql(f"SELECT health FROM {DATABASE}.executed")
    report.check("the health check was not true during that", was not in ("", "0"), was)
    log = box.log()
    report.check("a file of another kind is named", f"ignoring {HOOKS}/5.txt" in log)
    report.check("a sourced hook has the functions", "the sourced hook speaks" in log)
    done = "MySQL init process done. Ready for start up."
    report.check("the end of it is said as elsewhere", log.count(done) == 1)
    out = box.podman.try_("logs", box.name).stdout
    report.check("all messages are on stderr", not out, out[:200])
    with report.checking("the user has the database"):
        box.sql("CREATE TABLE his (a INT PRIMARY KEY)", "o'hara", PASSWORD, DATABASE)
    try:
        box.sql(f"USE {TWIN}", "o'hara")
        problem = f"he can use {TWIN}"
    except Failed as refused:
        problem = "" if "ERROR 1044 " in str(refused) else str(refused)
    report.nothing("and no other, if _ is in its name", problem)
    zones = box.sql("SELECT CONVERT_TZ('2026-01-01 00:00:00', 'UTC', 'Europe/Paris')")
    report.check("time zones are loaded", zones == "2026-01-01 01:00:00", zones)
    # A replica gets the rows of the hooks, but not the accounts of this server.
    events = "SHOW BINLOG EVENTS IN 'binlog.000001' LIMIT 300"
    logged = box.sql(events) + box.sql(events.replace("000001", "000002"))
    good = "CREATE TABLE plain" in logged and "healthcheck" not in logged
    report.check("the binary log has what was asked for, and no account of the image's", good)


def restrictions(report: Checks, box: Box) -> None:
    process = Path(f"/proc/{box.pid}")
    report.equal("the first process is mysqld", (process / "comm").read_text().strip(), "mysqld")
    status = (process / "status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    report.equal("of the user that was named", fields["Uid"].split(), [str(ANYBODY)] * 4)
    rights = fields["CapEff"]
    report.check("without any right", int(rights, 16) == 0, rights)
    environment = (process / "environ").read_bytes()
    report.check("its environment has no password", PASSWORD.encode() not in environment)
    report.nothing("nor is one left in a file", [x.name for x in (process / "root/run/mysqld").glob("init.*")])
    modes = {
        path: oct((process / "root" / path).stat().st_mode & 0o777)
        for path in ("run/mysqld/health.cnf", "var/lib/mysql/.healthcheck.cnf")
    }
    report.check("the health check's password is the server's own alone", set(modes.values()) == {"0o600"}, modes)
    said = box.sql("SHOW GRANTS FOR healthcheck@localhost")
    report.check("and opens nothing", said == "GRANT USAGE ON *.* TO `healthcheck`@`localhost`", said)


def memdiag(report: Checks, box: Box) -> None:
    """The check of tests.installed.memdiag_tables(), for a container."""
    names = box.sql("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'MEMDIAG\\_%'")
    script = "".join(f"SELECT * FROM {name};" for name in names.split())
    said = box.sql(script, "root", PASSWORD, "--show-warnings", "information_schema")
    warnings = [x for x in said.splitlines() if x.startswith(("Warning", "Error"))]
    report.check("every memdiag table answers", len(names.split()) > 10 and not warnings, "; ".join(warnings[:5]))
    limit = box.sql(
        "SELECT CAST(number AS UNSIGNED) FROM information_schema.memdiag_host"
        " WHERE subject = 'cgroup' AND name = 'effective_limit'"
    )
    report.check("the container's limit is the server's", limit == str(MEMORY), limit)


def hung(report: Checks, box: Box) -> None:
    """A stopped server still has an open port, because the kernel takes the connections. The health check must fail."""
    process = box.pid
    os.kill(process, signal.SIGSTOP)
    try:
        began = time.monotonic()
        healthy = box.health()
        took = time.monotonic() - began
    finally:
        os.kill(process, signal.SIGCONT)
    report.check("a server that hangs is not healthy", not healthy, f"{took:.1f} s")
    report.check("and is, once it goes on", box.health())
    box.sql("SET GLOBAL max_connections = 1; SET GLOBAL offline_mode = ON")
    report.check("one that is offline is healthy", box.health())
    box.sql("SET GLOBAL offline_mode = OFF; SET GLOBAL max_connections = 77")
    # A data directory from elsewhere lacks the health check's account.
    box.sql("SET sql_log_bin = 0; ALTER USER healthcheck@localhost ACCOUNT LOCK")
    report.check("so is one without the health check's account", box.health())


def stops_and_goes_on(report: Checks, box: Box) -> None:
    before = box.sql("SELECT @@server_uuid")
    began = time.monotonic()
    box.podman.run("stop", "--time=60", box.name)
    took = time.monotonic() - began
    log = box.log()
    good = box.until_ended() == 0 and "Shutdown complete" in log and took < 50
    report.check("SIGTERM is a clean shutdown", good, f"{took:.1f} s")
    report.check("a server that has ended is not healthy", not box.health())
    box.hook("1.sql", "this would be an error")
    # Without variables: the data directory is complete.
    box.start({})
    box.until_healthy()
    again = "Initializing database files" in box.log()
    uuid = box.sql("SELECT @@server_uuid")
    report.check("the next start takes what is there", not again and uuid == before)
    report.equal("with its rows", box.sql(f"SELECT COUNT(*) FROM {DATABASE}.plain"), "1")
    box.podman.run("stop", "--time=60", box.name)
    # As after a run that was killed before its last step, which moves the folder mysql.
    (box.data / MADE).mkdir(0o700)
    os.chown(box.data / MADE, ANYBODY, ANYBODY)
    (box.data / "mysql").rename(box.data / MADE / "mysql")
    box.start({})
    box.until_healthy()
    uuid = box.sql("SELECT @@server_uuid")
    moved = uuid == before and not (box.data / MADE).exists()
    report.check("a run that was killed while moving them is finished", moved)


# --- what does not come to its end ----------------------------------------------------------------


IN_DATADIR = (
    "--slow-query-log",
    "--slow-query-log-file=/var/lib/mysql/here.slow",
    "--log-bin=/var/lib/mysql/here",
    "--innodb-data-home-dir=/var/lib/mysql",
    "--innodb-undo-directory=/var/lib/mysql/",
    # An option of a plugin, which --initialize does not load.
    "--plugin-load-add=group_replication.so",
    "--loose-group-replication-start-on-boot=OFF",
    "--loose-group-replication-recovery-ssl-ca=/var/lib/mysql/ca.pem",
)


def interrupted(report: Checks, box: Box) -> None:
    box.hook("1.sql", "CREATE DATABASE twice; CREATE TABLE twice.rows_ AS SELECT 1 a;")
    box.hook("2.sh", BLOCKED)
    for number, status in ((signal.SIGTERM, 143), (signal.SIGKILL, 137)):
        box.start(ROOT_ONLY)
        box.until_logged("blocked")
        report.check(f"not healthy before {number.name}", not box.health())
        began = time.monotonic()
        box.signal(number)
        ended = box.until_ended()
        took = time.monotonic() - began
        good = ended == status and took < 20 and not (box.data / "mysql").exists()
        report.check(f"{number.name} in a hook leaves no data directory", good, f"exit {ended}, {took:.1f} s")
    box.hook("2.sh", "false")
    box.start(ROOT_ONLY)
    ended = box.until_ended()
    report.check("nor does a hook that fails", ended == 1 and not (box.data / "mysql").exists(), f"exit {ended}")
    box.hook("2.sql", "CREATE TABLE nowhere (a INT)")
    (box.hooks / "2.sh").unlink()
    box.start(ROOT_ONLY)
    ended = box.until_ended()
    good = ended == 1 and "ERROR 1046" in box.log() and not (box.data / "mysql").exists()
    report.check("nor does SQL that fails, which is shown", good, f"exit {ended}")
    box.start(ROOT_ONLY, IN_DATADIR)
    ended = box.until_ended()
    there = sorted(x.name for x in box.data.iterdir() if not x.name.startswith("."))
    report.check("nor one whose settings name files in it", ended == 1 and not there, f"exit {ended}, {there}")
    (box.hooks / "2.sql").unlink()
    box.start(ROOT_ONLY, IN_DATADIR)
    box.until_healthy()
    rows = box.sql("SELECT COUNT(*) FROM twice.rows_")
    left = [x for x in (MAKING, MADE) if (box.data / x).exists()]
    report.check("the next start makes all of it, once", rows == "1" and not left, rows)
    missing = [x for x in ("here.slow", "here.index") if not (box.data / x).exists()]
    report.check("and its files are where the settings say", not missing, missing)


def refused(report: Checks, box: Box) -> None:
    """Each wrong setting gets one message, before anything is written."""
    for what, env, arguments, words in (
        ("no word about root's password", {}, (), "MYSQL_RANDOM_ROOT_PASSWORD"),
        (
            "a password twice",
            {**ROOT_ONLY, "MYSQL_ROOT_PASSWORD_FILE": "/etc/passwd"},
            (),
            "MYSQL_ROOT_PASSWORD and MYSQL_ROOT_PASSWORD_FILE are both set",
        ),
        ("a file that is not there", {"MYSQL_ROOT_PASSWORD_FILE": "/none"}, (), "/none, which cannot be read"),
        (
            "MYSQL_USER=root",
            {**ROOT_ONLY, "MYSQL_USER": "root", "MYSQL_PASSWORD": "x"},
            (),
            "MYSQL_USER cannot be root",
        ),
        ("an unknown option", ROOT_ONLY, ("--no-such-option",), "no-such-option"),
    ):
        box.start(env, arguments)
        said_no(report, box, what, words)
    os.chown(box.data, 0, 0)
    box.start(ROOT_ONLY)
    said_no(report, box, "a volume of another user", f"chown {ANYBODY}:{ANYBODY}")
    os.chown(box.data, ANYBODY, ANYBODY)
    (box.data / "foreign").write_text("")
    box.start(ROOT_ONLY)
    said_no(report, box, "a folder with other files", "is no data directory", 1)
    box.start({}, ["mysqld", "--version"])
    ended = box.until_ended()
    out = box.podman.try_("logs", box.name).stdout
    report.check("--version needs no data directory", ended == 0 and "memdiag" in out, out.strip())


def said_no(report: Checks, box: Box, what: str, words: str, files: int = 0) -> None:
    ended = box.until_ended()
    log = box.log()
    left = len(list(box.data.iterdir()))
    report.check(f"refused: {what}", ended == 1 and words in log and left == files, last_line(log)[:160])


# --- other ways -----------------------------------------------------------------------------------


def started_as_root(report: Checks, box: Box) -> None:
    """root starts the container, because the folder of the volume belongs to root."""
    box.own(0)
    rights = ("--cap-add=SETUID", "--cap-add=SETGID", "--cap-add=CHOWN")
    # An empty password, and root from this machine alone.
    env = {"MYSQL_ALLOW_EMPTY_PASSWORD": "yes", "MYSQL_ROOT_HOST": "localhost", **QUICK}
    box.start(env, [], rights)
    box.until_healthy()
    status = Path(f"/proc/{box.pid}/status").read_text()
    users = status.partition("Uid:")[2].split()[:4]
    owner = box.data.stat().st_uid
    good = users == [str(MYSQL)] * 4 and owner == MYSQL
    report.check("root gives a new volume to user mysql, and becomes that user", good, f"{users}, {owner}")
    words = ("exec", box.name, "mysql", "-uroot", "-Ne", "SELECT user, host FROM mysql.user WHERE user = 'root'")
    said = box.podman.run(*words)
    report.check("MYSQL_ROOT_HOST and an empty password", said.split() == ["root", "localhost"], said)


def random_and_once(report: Checks, box: Box) -> None:
    box.start({"MYSQL_RANDOM_ROOT_PASSWORD": "1", "MYSQL_ONETIME_PASSWORD": "1", **QUICK})
    box.until_healthy()
    password = box.log().partition("GENERATED ROOT PASSWORD: ")[2].split("\n")[0]
    try:
        box.sql("SELECT 1", "root", password)
        problem = "it lets in"
    except Failed as expired:
        problem = "" if "--connect-expired-password" in str(expired) else str(expired)
    report.nothing("a random password has to be changed first", problem)
    words = (
        "exec",
        f"--env=MYSQL_PWD={password}",
        box.name,
        "mysql",
        "-h127.0.0.1",
        "-uroot",
        "--connect-expired-password",
        "-e",
        "ALTER USER USER() IDENTIFIED BY 'x'",
    )
    box.podman.run(*words)
    report.equal("and can be", box.sql("SELECT 1", "root", "x"), "1")


# mysql-operator's user, its settings in place of the image's, and its account for probes.
OPERATOR = 27
OPERATOR_SETTINGS = """[mysqld]
server_id=1001
datadir=/var/lib/mysql
socket=/var/run/mysqld/mysql.sock
loose_mysqlx_socket=/var/run/mysqld/mysqlx.sock
plugin_load_add=auth_socket.so
loose_auth_socket=FORCE_PLUS_PERMANENT
skip_log_error
gtid_mode=ON
enforce_gtid_consistency=ON
skip_replica_start=1
"""
OPERATOR_HOOK = """SET sql_log_bin = 0;
CREATE USER localroot@localhost IDENTIFIED WITH auth_socket AS 'mysql';
GRANT ALL ON *.* TO localroot@localhost WITH GRANT OPTION;
SET sql_log_bin = 1;
"""


def as_mysql_operator_does(report: Checks, box: Box) -> None:
    """One container initialises and ends; another one serves."""
    box.own(OPERATOR)
    settings = box.hooks.parent / "my.cnf"
    settings.write_text(OPERATOR_SETTINGS)
    box.hook("localroot.sql", OPERATOR_HOOK)
    options = [f"--volume={settings}:/etc/my.cnf:ro"]
    options.append("--env=MYSQL_UNIX_PORT=/var/run/mysqld/mysql.sock")
    words = ["mysqld", "--user=mysql"]
    env = {"MYSQL_INITIALIZE_ONLY": "1", "MYSQL_RANDOM_ROOT_PASSWORD": "1", **QUICK}
    box.start(env, words, options)
    ended = box.until_ended()
    made = (box.data / "mysql").is_dir()
    report.check("MYSQL_INITIALIZE_ONLY ends with a data directory", ended == 0 and made, f"exit {ended}")
    box.start({}, words, options)
    box.until_healthy()
    probe = ("exec", box.name, "mysql", "-ulocalroot", "-Ne", "SELECT @@server_id")
    report.equal("mysql-operator's account gets in through its socket", box.podman.run(*probe), "1001")


TESTS = (whole_life, interrupted, refused, started_as_root, random_and_once, as_mysql_operator_does)
