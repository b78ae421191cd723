"""The DEBs beside others: MariaDB's packages, an intruder with user mysql's rights, a second instance, a sandbox."""

from pathlib import Path

from tests import machine
from tests.deb import DATA, INSTALL, OURS, Run, installed, writes_to
from tests.installed import Installed, memdiag_tables
from tests.machine import Machine

# The scores in docs/packages.md: as shipped, and with all of the drop-in; systemd 252.
SCORES = (8.4, 3.2)
DROP_IN = "/etc/systemd/system/mysql.service.d"
PRESTART = "/usr/libexec/mysql-memdiag/prestart"


def debian(run: Run, suite: str) -> Machine:
    """A bare machine."""
    return run.machine(machine.base(run.work, suite))


# --- MariaDB's packages as neighbours ----------------------------------------------------


def neighbours(run: Run) -> None:
    """Purging this server, with the answer that the data may go, leaves MariaDB's data."""
    for suite in ("bookworm", "sid"):
        with debian(run, suite) as box:
            beside_mariadb(run, box, suite)


def beside_mariadb(run: Run, box: Machine, suite: str) -> None:
    report = run.report
    ours_were_here(box)
    box.apt("install mariadb-server")
    box.run("mariadb -e 'CREATE TABLE mysql.kept SELECT 42 AS a'")
    place = box.run("mariadb -Ne 'SELECT @@datadir'").strip()
    # MariaDB's own packages may lack this name, which Debian's have.
    box.run("rm /usr/sbin/mysqld")
    with report.checking(f"{suite}: purging ours keeps a running MariaDB's data, {place}"):
        box.run(f"dpkg --purge {OURS[0]}")
        box.run("systemctl restart mariadb")
        said = box.run("mariadb -N -e 'SELECT a FROM mysql.kept'").strip()
        assert said == "42", said
    box.run(f"systemctl stop mariadb; mv {place.rstrip('/')} /root/theirs")
    ours_were_here(box)
    box.run(f"mv /root/theirs {DATA}; test ! -e /usr/sbin/mariadbd")
    with report.checking(f"{suite}: and data of a MariaDB that was removed"):
        said = box.run(f"dpkg --purge {OURS[0]}")
        assert "is MariaDB's" in said, said
        box.run(f"test -e {DATA}/aria_log_control")
    box.run(f"rm -r {DATA}; rm -rf /var/lib/mariadb")
    ours_were_here(box, data=True)
    box.run(f"cd {DATA} && sleep 600 >/dev/null 2>&1 & sleep 0.2")
    with report.checking(f"{suite}: and a data directory in which a process works"):
        said = box.run(f"dpkg --purge {OURS[0]}")
        assert "(sleep) works in" in said, said
        box.run(f"test -e {DATA}/ibdata1")


def ours_were_here(box: Machine, data: bool = False) -> None:
    """Installs and removes this server, and prepares the answer yes to the question of purging."""
    box.apt(INSTALL)
    Installed(box)
    box.apt(f"remove {OURS[0]}")
    question = f"{OURS[0]} {OURS[0]}/remove_data boolean true"
    box.run(f"echo '{question}' | debconf-set-selections")
    if not data:
        box.run(f"rm -r {DATA}")


# --- an intruder with user mysql's rights ------------------------------------------------

# Swaps the folder in which prestart makes tables for a link, as fast as it can.
RACE = """my ($link, $victim) = @ARGV;
for (;;) { symlink $victim, $link or rmdir $link or unlink $link }"""


def intruder(run: Run) -> None:
    report = run.report
    with run.bookworm() as box:
        box.apt(INSTALL)
        Installed(box)
        # A server that never makes tables: each start gives the intruder another chance.
        box.run(
            f"systemctl stop mysql; rm -r {DATA}; install -d -o mysql -g mysql {DATA}"
            "; mv /usr/sbin/mysqld /root; ln -s /bin/false /usr/sbin/mysqld"
            "; mkdir -m 0755 /srv/victim"
        )
        report.nothing("a swapped folder gives user mysql nothing of root's", race(box, 200))
        # Without a race: a part of the path belongs to the intruder.
        box.run("rm /usr/sbin/mysqld; mv /root/mysqld /usr/sbin; mkdir /var/lib/victim")
        box.run(f"rm -rf {DATA}; install -d -o mysql -g mysql {DATA}")
        box.run(f"setpriv --reuid mysql --clear-groups ln -s /var/lib/victim {DATA}/data")
        settings = "/etc/mysql/conf.d/deep.cnf"
        box.run(f"printf '[mysqld]\\ndatadir = {DATA}/data\\n' >{settings}")
        with report.checking("nor does a link in the path of the data directory"):
            box.run(f"{PRESTART} --make", check=False)
            said = box.run("find /var/lib/victim -user mysql; stat -c %U /var/lib/victim")
            assert said.split() == ["root"], said
        with report.checking("where the link is gone, user mysql makes the folder"):
            box.run(f"rm {DATA}/data; systemctl start mysql")
            Installed(box)
            said = box.run(f"stat -c '%U %a' {DATA}/data").strip()
            assert said == "mysql 700", said


def race(box: Machine, times: int) -> str:
    """Says what the intruder gained; empty: nothing."""
    link = f"{DATA}/memdiag-making"
    (box.path("/root") / "race.pl").write_text(RACE)
    script = f"""
      setpriv --reuid mysql --regid mysql --clear-groups perl -e "$(cat /root/race.pl)" {link} /srv/victim &
      intruder=$!
      for try in $(seq {times}); do
        {PRESTART} >/dev/null 2>&1 || :
        [ "$(stat -c '%U %a' /srv/victim)" = 'root 755' ] || {{ echo "after $try tries"; break; }}
      done
      kill $intruder
      wait 2>/dev/null || :
      ls -A /srv/victim; stat -c '%U %a' /srv/victim | grep -v 'root 755' || :
      rm -rf {link}"""
    return box.run(script).strip()


# --- a second instance, and restrictions ------------------------------------------------

REPLICA = """[mysqld@replica1]
datadir = /var/lib/mysql-replica1
socket = /run/mysqld/replica1.sock
port = 3307
mysqlx = OFF
log_error = /var/log/mysql/replica1.log
pid_file = /run/mysqld/replica1.pid
"""


def instances(run: Run) -> None:
    report = run.report
    with run.bookworm() as box:
        box.apt(INSTALL)
        Installed(box)
        second_instance(run, box)
        rights(run, box)
        sandbox(run, box)
        with report.checking("removing the package stops an instance"):
            box.run("systemctl start mysqld@replica1")
            box.apt(f"remove {OURS[0]}")
            assert not installed(box, OURS[0])
            states = box.run("systemctl is-active mysql mysql@replica1", check=False)
            assert "active" not in states.split(), states


def second_instance(run: Run, box: Machine) -> None:
    report = run.report
    # Read after mysqld.cnf, whose log_error would count otherwise.
    (box.path("/etc/mysql/mysql.conf.d") / "zz-replica1.cnf").write_text(REPLICA)
    ask = "mysql -S /run/mysqld/replica1.sock -Ne"
    with report.checking("mysqld@replica1 makes its data directory and runs beside mysql"):
        box.run("systemctl start mysqld@replica1")
        said = box.run(f"{ask} 'SELECT @@datadir, @@port'").split()
        assert said == ["/var/lib/mysql-replica1/", "3307"], said
        main = Installed(box).query("SELECT @@datadir").scalar()
        assert main == f"{DATA}/", main
    with report.checking("by both names it is one unit"):
        names = box.run("systemctl show mysqld@replica1 -p Id --value").strip()
        assert names == "mysql@replica1.service", names
    with report.checking("each goes on when the other is stopped"):
        box.run(f"systemctl stop mysql; {ask} 'SELECT 1'; systemctl start mysql")
        box.run("systemctl stop mysqld@replica1")
        Installed(box)
        box.run("systemctl start mysqld@replica1")
    box.apt("install logrotate")
    with report.checking("logrotate turns its log too, and each goes on in a new one"):
        box.run("logrotate -f /etc/logrotate.d/mysql-server")
        for unit, log in (("mysql", "error"), ("mysql@replica1", "replica1")):
            box.run(f"test -e /var/log/mysql/{log}.log.1")
            writes_to(box, unit, f"/var/log/mysql/{log}.log")
    with report.checking("an upgrade restarts it"):
        pid = "systemctl show mysql@replica1 -p MainPID --value"
        before = box.run(pid)
        box.apt(f"--reinstall {INSTALL}")
        assert box.run(pid) != before, before
        box.run(f"{ask} 'SELECT 1'; systemctl stop mysqld@replica1")


def rights(run: Run, box: Machine) -> None:
    """The unit leaves what MySQL's manual gives to the server: resource groups need CAP_SYS_NICE."""
    box.apt("install libcap2-bin")
    group = "CREATE RESOURCE GROUP {} TYPE=SYSTEM THREAD_PRIORITY=-5"
    for name, give in {
        "setcap": "setcap cap_sys_nice+ep /usr/sbin/mysqld",
        "AmbientCapabilities": (
            "setcap -r /usr/sbin/mysqld"
            f"; install -d {DROP_IN}; printf '[Service]\\nAmbientCapabilities=CAP_SYS_NICE\\n' "
            f">{DROP_IN}/nice.conf; systemctl daemon-reload"
        ),
    }.items():
        with run.report.checking(f"resource groups have priorities with {name}"):
            box.run(f"{give}; systemctl restart mysql")
            server = Installed(box)
            server.query(group.format(name))
            server.query(f"DROP RESOURCE GROUP {name}")
    status = Path(f"/proc/{Installed(box).pid}/status").read_text()
    bounds = int(status.split("CapBnd:")[1].split()[0], 16)
    dropped = {"mknod": 27, "sys_module": 16, "sys_rawio": 17, "syslog": 34}
    left = [name for name, bit in dropped.items() if bounds >> bit & 1]
    run.report.check("and no rights that no server needs", not left, " ".join(left))
    box.run(f"rm -r {DROP_IN}; systemctl daemon-reload; systemctl restart mysql")


def sandbox(run: Run, box: Machine) -> None:
    """The server runs with all restrictions of the drop-in at once."""
    template = "/usr/share/mysql-memdiag/sandbox.conf"
    score = "systemd-analyze --no-pager security mysql | tail -n 1 | grep -oE '[0-9]+[.][0-9]+'"
    before = float(box.run(score))
    box.run(
        f"install -d {DROP_IN}; sed 's/^#\\([A-Z][A-Za-z]*=\\)/\\1/' {template} >{DROP_IN}/sandbox.conf"
        "; systemctl daemon-reload; systemctl restart mysql"
    )
    server = Installed(box)
    now = float(box.run(score))
    figures = f"systemd-analyze security: {before} before, {now} with it"
    run.report.check("the drop-in restricts it as documented", (before, now) == SCORES, figures)
    with run.report.checking("with the whole drop-in the server runs"):
        server.query("CREATE DATABASE sandboxed")
        file = "/var/lib/mysql-files/sandboxed"
        server.query(f"SELECT 1 INTO OUTFILE '{file}'")
        server.query("CREATE TABLE sandboxed.t (a INT)")
        server.query(f"LOAD DATA INFILE '{file}' INTO TABLE sandboxed.t")
        assert server.query("SELECT a FROM sandboxed.t").scalar() == "1"
    memdiag_tables(server, run.report)
    box.run(f"rm -r {DROP_IN}; systemctl daemon-reload; systemctl restart mysql")
    Installed(box)
