"""Real clients against the installed server: by TCP with a password and encryption, from programs of this machine."""

import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Callable
from pathlib import Path

from harness.checks import Failed
from harness.programs import captured
from tests import content
from tests.deb import INSTALL, Run
from tests.installed import Installed
from tests.machine import Machine

_SOURCES = Path(__file__).resolve().parent / "clients"
_USER, _PASSWORD = "client", "s3cret"
_WHERE = ["127.0.0.1", "3306", _USER, _PASSWORD]
# The newest releases of series that the registries have. If a registry drops one, its test is skipped with the reason.
_GO_DRIVER = "github.com/go-sql-driver/mysql@v1.9"
_JAVA_DRIVER = "com.mysql:mysql-connector-j:9.4.0"


def clients(run: Run) -> None:
    with run.bookworm() as box:
        box.apt(INSTALL)
        server = Installed(box)
        server.query(f"CREATE USER {_USER}@'%' IDENTIFIED BY '{_PASSWORD}'")
        server.query(f"GRANT ALL ON *.* TO {_USER}@'%'")
        for name, test in TESTS.items():
            server.query("DROP DATABASE IF EXISTS client")
            server.query("CREATE DATABASE client")
            try:
                program = test(box, run.work / "clients" / name)
            except Unavailable as reason:
                run.report.skip(name, reason)
                continue
            with run.report.checking(name):
                program()


class Unavailable(Exception):
    """A client cannot be had here; the text says why."""


def prepare(command: list[str | Path], folder: Path, **kwargs) -> None:
    """Get a client through its ordinary package manager."""
    if not shutil.which(command[0]):
        raise Unavailable(f"{command[0]} is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    done = captured(command, cwd=folder, stdin=subprocess.DEVNULL, **kwargs)
    if done.returncode:
        words = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise Unavailable(f"{' '.join(map(str, command))}: {words[-1] if words else done.returncode}")


def python(*packages: str, module: str) -> Callable:
    def test(box: Machine, folder: Path) -> Callable[[], object]:
        interpreter = folder / "bin/python"
        prepare([sys.executable, "-m", "venv", folder], folder)
        prepare([interpreter, "-m", "pip", "install", "-q", *packages], folder)
        return lambda: box.run_here([interpreter, _SOURCES / "driver.py", module, *_WHERE])

    return test


def go(box: Machine, folder: Path) -> Callable[[], object]:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(_SOURCES / "client.go", folder)
    if not (folder / "go.mod").exists():
        prepare(["go", "mod", "init", "client"], folder)
    prepare(["go", "get", _GO_DRIVER], folder)
    prepare(["go", "build", "-o", "client"], folder)
    return lambda: box.run_here([folder / "client", *_WHERE])


def java(box: Machine, folder: Path) -> Callable[[], object]:
    for transitive in _JAVA_DRIVER, "com.google.protobuf:protobuf-java:4.31.1":
        copy = [f"-Dartifact={transitive}", f"-DoutputDirectory={folder}"]
        prepare(["mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy", *copy], folder)
    return lambda: box.run_here(["java", "-cp", f"{folder}/*", _SOURCES / "Client.java", *_WHERE])


def node(box: Machine, folder: Path) -> Callable[[], object]:
    prepare(["npm", "install", "--silent", "--no-audit", "--no-fund", "mysql2@3"], folder)
    shutil.copy(_SOURCES / "client.js", folder)
    return lambda: box.run_here(["node", folder / "client.js", *_WHERE])


def dump(box: Machine, _folder: Path) -> Callable[[], object]:
    """mysqldump dumps everything that content.py makes, and mysql restores it. Then every sum is the same."""

    def test() -> None:
        server = Installed(box)
        with server.connect() as session:
            content.make(session)
            before = content.fingerprint(session)
        box.run(
            "mysqldump --single-transaction --set-gtid-purged=OFF --routines --events --triggers --databases kept >/root/dump.sql"
        )
        server.query("DROP DATABASE kept")
        box.run("mysql </root/dump.sql")
        with server.connect() as session:
            problem = content.differences(before, content.fingerprint(session))
        if problem:
            raise Failed(problem)

    return test


def binlog(box: Machine, _folder: Path) -> Callable[[], object]:
    """mysqlbinlog reads the changes from the server. Applied again, its output makes the same rows."""

    def test() -> None:
        script = """
          mysql -e 'RESET BINARY LOGS AND GTIDS; USE client; CREATE TABLE t (id INT PRIMARY KEY, v TEXT)'
          mysql client -e 'INSERT INTO t VALUES (1, "one"), (2, REPEAT("two", 10000)); UPDATE t SET v = "uno" WHERE id = 1'
          mysql -N -e 'CHECKSUM TABLE client.t' >/root/before
          file=$(mysql -N -e 'SHOW BINARY LOG STATUS' | cut -f1)
          mysqlbinlog --skip-gtids --read-from-remote-server "$file" >/root/binlog.sql
          mysqlbinlog --verify-binlog-checksum --verbose "/var/lib/mysql/$file" | grep -q '@2=.uno'
          mysql -e 'DROP TABLE client.t'
          mysql </root/binlog.sql
          mysql -N -e 'CHECKSUM TABLE client.t' | cmp - /root/before"""
        box.run(script)

    return test


def sysbench(box: Machine, _folder: Path) -> Callable[[], object]:
    box.apt("install sysbench")

    def test() -> None:
        where = f"--mysql-host=127.0.0.1 --mysql-user={_USER} --mysql-password={_PASSWORD} --mysql-db=client"
        settings = "--tables=2 --table-size=5000 --threads=8 --time=5"
        for verb in "prepare", "run", "cleanup":
            said = box.run(f"sysbench oltp_read_write {where} {settings} {verb}", network=False)
            if verb == "run" and "transactions:" not in said:
                raise Failed(said)

    return test


def exporter(box: Machine, _folder: Path) -> Callable[[], object]:
    """A scrape of Prometheus's mysqld_exporter has this server's status variables, with the server's values."""
    box.apt("install prometheus-mysqld-exporter")

    def test() -> None:
        login = f"{_USER}:{urllib.parse.quote(_PASSWORD)}@(127.0.0.1:3306)/"
        box.run(
            "systemctl stop prometheus-mysqld-exporter; systemd-run --quiet --unit=exporter "
            f"--setenv=DATA_SOURCE_NAME='{login}' prometheus-mysqld-exporter; sleep 2"
        )
        read = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9104/metrics').read().decode())"
        scrape = box.run_here([sys.executable, "-c", read])
        metrics = {line.split()[0] for line in scrape.splitlines() if line.startswith("mysql_")}
        status = Installed(box).query("SHOW GLOBAL STATUS LIKE 'Memdiag\\_%'").rows
        numbers = [name.lower() for name, value in status if value.lstrip("-").isdigit()]
        missing = [name for name in numbers if f"mysql_global_status_{name}" not in metrics]
        if missing or not numbers or "mysql_up 1" not in scrape:
            raise Failed(f"not in the scrape: {' '.join(missing) or 'anything'}")

    return test


TESTS = {
    "mysqldump and restore": dump,
    "mysqlbinlog": binlog,
    "sysbench": sysbench,
    "PyMySQL": python("pymysql", "cryptography", module="pymysql"),
    "mysql-connector-python": python("mysql-connector-python", module="mysql.connector"),
    "go-sql-driver": go,
    "Connector/J": java,
    "mysql2 of node": node,
    "mysqld_exporter": exporter,
}
