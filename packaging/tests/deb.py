"""The DEBs in throw-away machines: on a bare Debian 12, over Debian's own server and back, over themselves."""

import contextlib
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from harness.checks import Checks, Failed
from harness.common import ROOT, cache_dir, say
from harness.programs import captured
from harness.sql import SqlError
from tests import content, machine
from tests.installed import Installed, Outage, main_job, memdiag_tables
from tests.machine import Machine
from tools.build.sources import PrivateApt, sha256_file

OUTAGE_SECONDS = 30
SIZE_RATIO = 1.1
OURS = ("mysql-memdiag-server", "mysql-memdiag-client")
DEBIANS = ("mysql-server", "mysql-server-core", "mysql-client", "mysql-client-core")
DATA = "/var/lib/mysql"
# Packages of other servers and clients that have the same files.
RIVALS = ("mysql-community-server", "mysql-community-server-core", "mysql-community-client", "percona-server-server")
RIVALS += ("percona-server-client", "mariadb-server", "mariadb-server-core", "mariadb-client", "mysql-server")
# Stand-ins for upstream's packages, with the relations and scripts that matter to these packages.
_LINK = "update-alternatives --install /etc/mysql/my.cnf my.cnf /etc/mysql"
_COMMON = "mysql-common (>= 9.7.4), mysql-community-client-plugins (>= 9.7.4)"
UPSTREAMS = {
    "mysql-common": (
        "Conflicts: mysql-server-core\nReplaces: mysql-server-core\n",
        {
            "etc/mysql/conf.d/none.cnf": "",
            "etc/mysql/my.cnf.fallback": "!includedir /etc/mysql/conf.d/\n",
            "DEBIAN/postinst": f"#!/bin/sh\n{_LINK}/my.cnf.fallback 100\n",
        },
    ),
    "mysql-community-client-plugins": (
        "",
        {"usr/lib/mysql/plugin/telemetry_client.so": "", "usr/lib/mysql/plugin/mysql_native_password.so": ""},
    ),
    "libmysqlclient24": (f"Depends: {_COMMON}\n", {}),
    "mysql-community-client": (
        (f"Depends: {_COMMON}\nConflicts: mysql-server-core\nProvides: virtual-mysql-client\n"),
        # This server's package has them.
        {"usr/bin/mysqldumpslow": "", "usr/bin/myisam_ftdump": ""},
    ),
    "mysql-community-server-core": (
        ("Conflicts: mysql-server-core\nReplaces: mysql-server-core\nProvides: virtual-mysql-server-core\n"),
        {"usr/bin/perror": "", "usr/bin/my_print_defaults": ""},
    ),
    "mysql-community-server": (
        (f"Depends: {_COMMON}, mysql-community-client, mysql-community-server-core\nProvides: virtual-mysql-server\n"),
        {
            "etc/mysql/mysql.cnf": "!includedir /etc/mysql/conf.d/\n!includedir /etc/mysql/mysql.conf.d/\n",
            "etc/mysql/mysql.conf.d/mysqld.cnf": "[mysqld]\nsort_buffer_size = 333000\n",
            "DEBIAN/conffiles": "/etc/mysql/mysql.cnf\n/etc/mysql/mysql.conf.d/mysqld.cnf\n",
            # A first configuration alone sets the link, though each removal takes it away.
            "DEBIAN/postinst": f'#!/bin/sh\n[ -n "$2" ] || {_LINK}/mysql.cnf 300\n',
            "DEBIAN/postrm": "#!/bin/sh\n[ $1 != remove ] || "
            "update-alternatives --remove my.cnf /etc/mysql/mysql.cnf\n",
        },
    ),
}
INSTALL = "install " + " ".join(f"/srv/packages/{name}_*.deb" for name in OURS)


@dataclass(frozen=True)
class Run:
    """One call of packaging/test. `packages` is the folder with our files, `work` is for machines and downloads."""

    report: Checks
    preset: str
    packages: Path
    work: Path

    def machine(self, base: Path, packages: Path | None = None) -> Machine:
        return Machine(self.work, base, {"/srv/packages": packages or self.packages})

    def bookworm(self) -> Machine:
        return self.machine(machine.base(self.work, "bookworm"))

    def deb(self, name: str) -> Path:
        found = sorted(self.packages.glob(f"{name}_*.deb"))
        if len(found) != 1:
            raise Failed(f"{self.packages} has {len(found)} files {name}_*.deb, and there should be one")
        return found[0]


def version(server: Installed) -> str:
    return server.query("SELECT VERSION()").scalar() or ""


def installed(box: Machine, name: str) -> bool:
    return box.run(f"dpkg-query -W -f '${{db:Status-Abbrev}}' {name}", check=False).startswith("ii")


def files(box: Machine, *folders: str) -> str:
    """Names, owners, modes and contents of all files."""
    names = " ".join(folders)
    return box.run(f"find {names} -printf '%p %u %g %m\\n' | sort; find {names} -type f | sort | xargs sha256sum")


@contextlib.contextmanager
def kept(report: Checks, box: Machine, what: str, outage: bool = True) -> Iterator[None]:
    """Checks the block, which replaces the server: no data are lost, and the server is away for a short time only."""
    with Installed(box).connect() as session:
        before = content.fingerprint(session)
    asking = Outage(box)
    with asking:
        yield
        server = Installed(box)
    with server.connect() as session:
        problem = content.differences(before, content.fingerprint(session))
    report.check(f"{what}: rows, indexes, definitions, accounts", not problem, problem or f"{len(before)} sums")
    log_in(report, box, what)
    if outage:
        report.check(
            f"{what}: at most {OUTAGE_SECONDS} s away", asking.seconds <= OUTAGE_SECONDS, f"{asking.seconds:.1f} s"
        )


def log_in(report: Checks, box: Machine, what: str) -> None:
    """Connects with the client that is installed, as users do."""
    with report.checking(f"{what}: mysql connects by socket and, with a password, by TCP"):
        for options in ("", f"-h127.0.0.1 -u{content.USER} '-p{content.PASSWORD}'"):
            box.run(f"mysql {options} -e 'SELECT COUNT(*) FROM kept.types'", network=False)


# --- on a bare Debian 12 ------------------------------------------------------------


def bare(run: Run) -> None:
    report = run.report
    with run.bookworm() as box:
        with report.checking("it installs on a bare Debian 12"):
            box.apt(INSTALL)
        server = Installed(box)
        report.check("the server says whose it is", "memdiag" in version(server), version(server))
        unit = dict(
            line.split("=", 1)
            for line in box.run(
                "systemctl show mysql mysqld -p Type,ActiveState,UnitFileState,MemoryHigh,OOMScoreAdjust,User"
            ).split("\n")
            if "=" in line
        )
        wanted = {"Type": "notify", "ActiveState": "active", "UnitFileState": "enabled"}
        wanted |= {"MemoryHigh": "infinity", "OOMScoreAdjust": "0", "User": "mysql"}
        report.equal("the unit, by both names, and nothing imposed by it", unit, wanted)
        sockets = box.run("ss -Hltn | awk '{print $4}' | sort", network=False).split()
        report.check(
            "it listens on loopback alone",
            sockets and all(x.startswith("127.0.0.1:") for x in sockets),
            " ".join(sockets),
        )
        with report.checking("nobody but root gets in by the socket"):
            said = box.run("su -s /bin/sh -c 'mysql -uroot -e \"SELECT 1\"' nobody 2>&1", check=False)
            assert "Access denied" in said, said
        main_job(box, report)
        memdiag_tables(server, report)
        plugins(run, box, server)
        surroundings(report, box)
        life(report, box)


def plugins(run: Run, box: Machine, server: Installed) -> None:
    """Plugins that are files of their own can be installed and uninstalled."""
    box.apt("install libcurl4 libprotobuf32")  # only recommended, for telemetry
    wrong = []
    loadable = {"clone": "mysql_clone", "group_replication": "group_replication"}
    loadable |= {"rpl_semi_sync_source": "semisync_source", "rpl_semi_sync_replica": "semisync_replica"}
    loadable |= {"mysql_no_login": "mysql_no_login"}
    statements = [
        (f"INSTALL PLUGIN {name} SONAME '{file}.so'", f"UNINSTALL PLUGIN {name}") for name, file in loadable.items()
    ]
    for name in ("validate_password", "log_sink_json", "audit_api_message_emit", "telemetry", "query_attributes"):
        statements.append(
            (f"INSTALL COMPONENT 'file://component_{name}'", f"UNINSTALL COMPONENT 'file://component_{name}'")
        )
    for pair in statements:
        try:
            for statement in pair:
                server.query(statement)
        except SqlError as error:
            wrong.append(f"{pair[0]}: {error}")
    if server.query("SELECT plugin_status FROM information_schema.plugins WHERE plugin_name = 'mysqlx'").rows != [
        ("ACTIVE",)
    ]:
        wrong.append("mysqlx is not active")
    run.report.check("plugins and components load", not wrong, "; ".join(wrong) or f"{len(statements)} and mysqlx")


def surroundings(report: Checks, box: Machine) -> None:
    """Everything beside the server: logrotate, AppArmor's profile, the manual page, Restart=."""
    box.apt("install logrotate apparmor man-db")
    with report.checking("logrotate turns the logs and the server goes on in a new one"):
        box.run("logrotate -f /etc/logrotate.d/mysql*; ls /var/log/mysql/error.log.1")
        writes_to(box, "mysql", "/var/log/mysql/error.log")
    with report.checking("AppArmor's parser takes the profile"):
        box.run("apparmor_parser --skip-kernel-load --skip-cache /etc/apparmor.d/usr.sbin.mysqld")
    with report.checking("its rules for us are mysqld's, and no other program's"):
        rules = "apparmor_parser --preprocess {} 2>/dev/null | grep -c 'pressure/'"
        mysqld = rules.format("/etc/apparmor.d/usr.sbin.mysqld")
        assert int(box.run(mysqld)) == 1
        # Like dovecot's profile: that of a client of MySQL.
        (box.path("/root") / "client").write_text(
            "include <tunables/global>\n/bin/client {\n include <abstractions/mysql>\n}\n"
        )
        assert int(box.run(rules.format("/root/client"), check=False)) == 0
    with report.checking("MariaDB's client library leaves the server its settings"):
        box.apt("install mariadb-common")
        settings = box.run("readlink -f /etc/mysql/my.cnf").strip()
        assert settings == "/etc/mysql/mysql-memdiag.cnf", settings
    with report.checking("there is a manual page of what is ours"):
        # man-db warns on its error stream; dpkg may have been told to leave manual pages out.
        box.run("man --warnings memdiag | grep -q MEMDIAG_POOLS")
    with report.checking("systemd starts a server again that was killed"):
        old = Installed(box).pid
        box.run("systemctl kill --kill-who=main --signal=KILL mysql; sleep 1")
        assert Installed(box).pid != old


def writes_to(box: Machine, unit: str, log: str) -> None:
    """Fails if the unit's server has no such log open, or an old one."""
    pid = box.run(f"systemctl show {unit} -p MainPID --value").strip()
    open_now = f"readlink /proc/{pid}/fd/* | grep '^{log}' | sort -u"
    for _ in range(50):  # a signal takes effect later
        logs = box.run(open_now, check=False).splitlines()
        if logs == [log]:
            break
        time.sleep(0.1)
    assert logs == [log], logs


def life(report: Checks, box: Machine) -> None:
    """Remove, reinstall, purge: data and settings stay until the answer to the question of purging is yes."""
    with Installed(box).connect() as session:
        content.make(session)
        before = content.fingerprint(session)
    mine = "/etc/mysql/mysql.conf.d/memdiag.cnf"  # postinst has made it
    box.run(f"echo 'loose_memdiag_history_samples = 1234' >>{mine}; systemctl stop mysql")
    data, settings = files(box, "/var/lib/mysql"), files(box, "/etc/mysql")
    with report.checking("the question that purging asks is known"):
        box.run("debconf-show mysql-memdiag-server | grep remove_data")
    with report.checking("it can be removed, and data and settings stay"):
        box.apt("remove mysql-memdiag-server")
        assert not installed(box, OURS[0])
        assert box.run("systemctl is-active mysql", check=False).strip() != "active"
        assert files(box, "/var/lib/mysql") == data, "the data directory was changed"
        assert files(box, "/etc/mysql") == settings, "settings were changed"
    with report.checking("it can be installed again, and goes on with both"):
        box.apt(INSTALL)
        with Installed(box).connect() as session:
            problem = content.differences(before, content.fingerprint(session))
            assert not problem, problem
            assert session.query("SELECT @@memdiag_history_samples").scalar() == "1234"
    with report.checking("purging keeps the data unless the question is answered with yes"):
        box.apt("purge mysql-memdiag-server")
        box.run("test -e /var/lib/mysql/ibdata1")
    with report.checking("answered with yes, it removes the data and what is left of the package"):
        box.apt(INSTALL)
        Installed(box)
        box.run(f"echo '{OURS[0]} {OURS[0]}/remove_data boolean true' | debconf-set-selections")
        box.apt("purge mysql-memdiag-server")
        left = box.run(
            "ls -d /var/lib/mysql* /var/log/mysql /etc/mysql/mysql.conf.d /etc/logrotate.d/mysql* 2>/dev/null",
            check=False,
        )
        assert not left.strip(), f"these are left: {left}"
    with report.checking("it empties a data directory that is a mount, and no other mount"):
        on_a_mount(box)


def on_a_mount(box: Machine) -> None:
    """Purges, with the answer yes, where /var/lib/mysql is a mount with another one below it."""
    below = f"{DATA}/below it"
    box.run(f"mkdir {DATA}; mount -t tmpfs tmpfs {DATA}; mkdir {DATA}/lost+found")
    box.run(f"chown mysql:mysql {DATA}")
    box.apt(INSTALL)
    Installed(box)
    box.run(f"mkdir {DATA}/folder '{below}'; mount --bind /srv '{below}'")
    box.run(f"ln -s /srv {DATA}/link; touch /srv/kept {DATA}/folder/file")
    box.run(f"echo '{OURS[0]} {OURS[0]}/remove_data boolean true' | debconf-set-selections")
    box.apt(f"purge {OURS[0]}")
    box.run(f"dpkg --purge {OURS[0]}")
    left = sorted(box.run(f"ls -A {DATA} /srv").splitlines())
    # Two headings, an empty line, and the names.
    wanted = sorted(["", f"{DATA}:", "below it", "lost+found", "/srv:", "kept", "packages"])
    assert left == wanted, left
    box.run(f"umount '{below}' {DATA}; rm /srv/kept; rmdir {DATA}")


# --- over Debian's own server and back ---------------------------------------------------


def debians_server(run: Run) -> Path:
    """A base: Debian unstable with its own server."""
    base = run.work / "bases" / "sid-mysql"
    if not base.is_dir():
        with run.machine(machine.base(run.work, "sid")) as box:
            say("-- installing Debian's own mysql-server (a minute)")
            box.apt("install mysql-server")
            Installed(box)
            box.freeze(base.name)
    return base


def stock(run: Run) -> None:
    report = run.report
    with run.machine(debians_server(run)) as box:
        server = Installed(box)
        theirs = version(server)
        say(f"-- Debian's own server is {theirs}")
        box.run("printf '[mysqld]\\nsort_buffer_size = 333000\\n' >/etc/mysql/conf.d/mine.cnf; systemctl restart mysql")
        with Installed(box).connect() as session:
            content.make(session)
        settings = files(box, "/etc/mysql")
        with kept(report, box, "Debian's server to ours"), report.checking("it installs over Debian's running server"):
            box.apt(INSTALL)
        server = Installed(box)
        report.check(
            "Debian's server was replaced",
            "memdiag" in version(server) and not installed(box, "mysql-server"),
            version(server),
        )
        now = files(box, "/etc/mysql")
        lost = [line for line in settings.splitlines() if line not in now.splitlines()]
        report.check("every file of settings is as it was", not lost, " ".join(lost))
        report.equal("and counts", server.query("SELECT @@sort_buffer_size").scalar(), "333000")
        with server.connect() as session:
            content.change(session, 1)
            # Options that stock does not know must not stop it.
            session.query("SET PERSIST memdiag_quiet_ms = 'ddl=0'")
            session.query("CREATE USER watcher@localhost")
            session.query("GRANT PROCESS, RELOAD ON *.* TO watcher@localhost")
        memdiag_tables(server, report)
        cnf = "/etc/mysql/mysql.conf.d/memdiag.cnf"
        box.run(f"sed -i 's/^#\\([a-z_]* = \\)/\\1/' {cnf}; systemctl restart mysql")
        with kept(report, box, "ours back to Debian's"), report.checking("Debian's server installs over ours"):
            box.apt("install mysql-server")
        server = Installed(box)
        report.check("ours was replaced", version(server) == theirs and not installed(box, OURS[0]), version(server))
        with report.checking("what ours leaves behind disturbs no backup of stock's"):
            dump = "mysqldump --all-databases --routines --events"
            box.run(f"{dump} >/root/all.sql")
            # With GTIDs, the dump would name transactions that this server already has.
            box.run(f"{dump} --set-gtid-purged=OFF >/root/all.sql")
            box.run("mysql </root/all.sql")
            box.run("mysql -e 'SHOW GRANTS FOR watcher@localhost; DROP USER watcher@localhost'")
        with server.connect() as session:
            content.change(session, 2)
        with kept(report, box, "and to ours again"):
            box.apt(INSTALL)


def relations(run: Run) -> None:
    """With empty packages that have the names of others: apt removes servers, and keeps packages that need a server."""
    with run.bookworm() as box:
        for name in RIVALS:
            empty(box, name)
            said = box.apt(f"--simulate {INSTALL}")
            run.report.check(f"{name} makes way", f"Remv {name} " in said)
            box.run(f"dpkg --purge {name}")
        needs = "virtual-mysql-server, virtual-mysql-client, default-mysql-server | mysql-server (>= 8.0), mysql-client"
        box.apt(INSTALL)
        empty(box, "application", f"Depends: {needs}\n")
        with run.report.checking("what depends on a server or client is content"):
            box.run("apt-get check")
    with run.bookworm() as box:
        upstreams(run, box)


def upstreams(run: Run, box: Machine) -> None:
    """Over stand-ins for upstream's packages, of which mysql-common stays, and back."""
    report = run.report
    for name, (fields, paths) in UPSTREAMS.items():
        stand_in(box, f"upstream/{name}", fields, paths)
    theirs = "install /root/upstream/*.deb"
    box.apt(theirs)
    with report.checking("it installs over upstream's packages"):
        box.apt(INSTALL)
        assert not installed(box, "mysql-community-server")
    stay = ("mysql-common", "mysql-community-client-plugins", "libmysqlclient24")
    report.nothing("what a client library needs stays", [name for name in stay if not installed(box, name)])
    report.equal("upstream's mysql.conf.d counts", Installed(box).query("SELECT @@sort_buffer_size").scalar(), "333000")
    profile = box.run("ls /etc/apparmor.d/usr.sbin.mysqld", check=False)
    report.check("its server gets no profile of ours, and had none", "No such file" in profile, profile)
    with report.checking("upstream's packages install over ours"):
        box.apt(theirs)
        assert not installed(box, OURS[0])
        box.run(f"test -e {DATA}/ibdata1")
    settings = box.run("readlink -f /etc/mysql/my.cnf").strip()
    report.check("and their settings are in force again", settings == "/etc/mysql/mysql.cnf", settings)
    for order in (OURS, OURS[::-1]):
        with report.checking(f"dpkg alone installs {order[0]} first, over upstream's packages"):
            # With the client first, dpkg deconfigures upstream's server, removes it, and ends with an error about that.
            packages = " ".join(f"/srv/packages/{name}_*.deb" for name in order)
            box.run(f"dpkg -i -B {packages}", check=order == OURS)
            assert not box.run("dpkg --audit")
            assert not installed(box, "mysql-community-server")
            Installed(box)
            box.run("test -s /usr/bin/mysqldumpslow; perror 1; my_print_defaults mysqld")
        # dpkg does not remove this server for upstream's.
        box.run(f"dpkg --remove {' '.join(OURS)}")
        box.apt(theirs)


def empty(box: Machine, name: str, fields: str = "") -> None:
    """Install a package without a file."""
    stand_in(box, name, fields)
    box.run(f"dpkg -i /root/{name}.deb")


def stand_in(box: Machine, place: str, fields: str, paths: Mapping[str, str] = MappingProxyType({})) -> None:
    """Make a package with this name below /root. Its files below DEBIAN/ are scripts and lists for dpkg."""
    name = Path(place).name
    control = f"Package: {name}\nVersion: 9.7.4-1\nArchitecture: all\nMaintainer: n <n@example.org>\n{fields}Description: empty\n"
    tree = box.path(f"/root/{place}")
    for path, text in {"DEBIAN/control": control, **paths}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
        (tree / path).chmod(0o755 if text.startswith("#!") else 0o644)
    box.run(f"dpkg-deb -b /root/{place} >/dev/null")


# --- over itself --------------------------------------------------------------------


# A conffile, and templates of files that postinst makes: dpkg or a script might ask about them.
CHANGED = ("etc/mysql/mysql-memdiag.cnf",) + tuple(
    f"usr/share/mysql-memdiag/{name}"
    for name in ("logrotate", "apparmor-mysqld", "mysqld.cnf", "my.cnf", "memdiag.cnf")
)
MEMDIAG_CNF = "etc/mysql/mysql.conf.d/memdiag.cnf"


def append(server: Path) -> None:
    """Another text for all of these."""
    for path in CHANGED:
        with open(server / path, "a") as file:
            file.write("# newer\n")


def as_conffile(server: Path) -> None:
    """Earlier versions had memdiag.cnf as a conffile."""
    for path in (MEMDIAG_CNF, "usr/share/mysql-memdiag/memdiag.cnf"):
        (server / path).parent.mkdir(parents=True, exist_ok=True)
    (server / "usr/share/mysql-memdiag/memdiag.cnf").rename(server / MEMDIAG_CNF)
    with open(server / "DEBIAN/conffiles", "a") as file:
        file.write(f"/{MEMDIAG_CNF}\n")
    postinst = server / "DEBIAN/postinst"
    lines = postinst.read_text().splitlines(keepends=True)
    postinst.write_text("".join(line for line in lines if "copy memdiag.cnf" not in line))


def newer(run: Run, folder: Path, suffix: str = ".1", change: Callable[[Path], None] = append) -> Path:
    """The same packages with another version and a server that `change` has changed, and the sums of these."""
    machine.remove(folder)
    folder.mkdir()
    for name in OURS:
        tree = folder / name
        subprocess.run(["dpkg-deb", "-R", run.deb(name), tree], check=True)
        control = tree / "DEBIAN/control"
        old = re.search(r"^Version: (.*)$", control.read_text(), re.MULTILINE).group(1)
        control.write_text(control.read_text().replace(old, f"{old}{suffix}"))
        if name == OURS[0]:
            change(tree)
        sums = tree / "DEBIAN/sha256sums"
        paths = [line.split("  ", 1)[1] for line in sums.read_text().splitlines()]
        paths = [path for path in paths if (tree / path).exists()]
        sums.write_text("".join(f"{sha256_file(tree / path)}  {path}\n" for path in paths))
        subprocess.run(
            ["dpkg-deb", "-Znone", "-b", tree, folder / f"{name}_{old}{suffix}_amd64.deb"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        shutil.rmtree(tree)
    return folder


def upgrade(run: Run) -> None:
    report = run.report
    higher = newer(run, run.work / "newer")
    with run.bookworm() as box:
        box.apt(INSTALL)
        with Installed(box).connect() as session:
            content.make(session)
        box.run(
            "echo 'loose_memdiag_history_samples = 1234' >>/etc/mysql/mysql.conf.d/memdiag.cnf; sed -i '$ a # mine' /etc/mysql/mysql.conf.d/*.cnf"
        )
        mine = "/etc/mysql/conf.d /etc/mysql/mysql.conf.d"
        settings = files(box, mine)
        old = Installed(box).pid
        debs = box.path("/root/newer")
        shutil.copytree(higher, debs)
        with kept(report, box, "ours to a newer one of ours"), report.checking("it upgrades without a question"):
            box.apt("install /root/newer/*.deb")
        report.check(
            "the newer one runs",
            Installed(box).pid != old
            and box.run("dpkg-query -W -f '${Version}' mysql-memdiag-server").endswith("-1.1"),
        )
        report.check("settings are as they were", files(box, mine) == settings)
        with report.checking("what nobody changed is the newer one's"):
            box.run(f"grep newer /{CHANGED[0]}")
        with report.checking("removed, it takes along what the older one had made"):
            box.apt("remove mysql-memdiag-server")
            box.run("test ! -e /etc/logrotate.d/mysql-server")
    from_a_conffile(run)


def from_a_conffile(run: Run) -> None:
    """memdiag.cnf stays where it was, edited or deleted, and dpkg does not ask. Without stdin a question ends it."""
    older = newer(run, run.work / "older", "~1", as_conffile)
    changes = {"echo '# mine' >>{}": "# mine", "rm {}": "", "true {}": "loose_memdiag"}
    # A program ends where a folder is missing that my.cnf includes, and dpkg deletes an empty one that is no package's.
    changes["rm -f {} /etc/mysql/mysql.conf.d/*"] = ""
    for change, left in changes.items():
        with run.bookworm() as box:
            debs = box.path("/root/older")
            shutil.copytree(older, debs)
            box.apt("install /root/older/*.deb")
            box.run(change.format(f"/{MEMDIAG_CNF}"))
            with run.report.checking(f"memdiag.cnf, a conffile before: {change.format('it')}"):
                box.apt(INSTALL)
                assert installed(box, OURS[0])
                said = box.run(f"cat /{MEMDIAG_CNF}", check=False)
                assert left in said if left else "No such file" in said, said
                Installed(box)
                box.run("mysql -e 'DO 0'")
                box.apt(f"purge {OURS[0]}")
                box.run(f"test ! -e /{MEMDIAG_CNF}")


# --- memdiag verify --------------------------------------------------------------------


def verify(run: Run) -> None:
    """The client's own package, beside the server's: `memdiag verify` names each change of what is installed."""
    report = run.report
    clients = run.work / "client-package"
    done = captured([sys.executable, ROOT / "packaging/build-client", "--out", clients])
    if done.returncode:
        raise Failed(done.stderr)
    higher = newer(run, run.work / "newer")
    with run.bookworm() as box:
        (package,) = clients.glob("memdiag_*.deb")
        shutil.copy(package, box.path("/root"))
        box.apt(f"{INSTALL} /root/memdiag_*.deb")
        Installed(box)

        def says(what: str, status: int, words: str, arguments: str = "", user: str = "root") -> None:
            command = f"su -s /bin/sh -c 'memdiag verify {arguments}' {user}"
            said = box.run(f"{command} && echo STATUS 0 || echo STATUS $?").splitlines()
            good = said[-1] == f"STATUS {status}" and any(words in line for line in said)
            report.check(f"verify, {what}", good, "; ".join(said[-4:]))

        says("as packaged", 0, " 0 differ, 0 missing, 0 extra; 0 changed in /etc")
        says("as the user nobody", 0, " 0 differ, 0 missing, 0 extra; 0 changed in /etc", user="nobody")
        mysqld, clone = "/usr/sbin/mysqld", "/usr/lib/mysql/plugin/mysql_clone.so"
        # A running program cannot be written; its size and date stay.
        box.run(
            f"cp -a {mysqld} /root; cp -a {mysqld} /root/changed; at=$(($(stat -c %s {mysqld}) / 2))\n"
            "byte=$(od -An -tu1 -j $at -N 1 /root/changed)\n"
            'printf "\\\\$(printf %o $((byte ^ 1)))" | dd of=/root/changed bs=1 seek=$at conv=notrunc status=none\n'
            f"touch -r {mysqld} /root/changed; mv /root/changed {mysqld}"
        )
        says("one bit of mysqld changed", 3, f"differs        {mysqld}")
        box.run(f"mv /root/mysqld {mysqld}; mv {clone} /root")
        says("a plugin missing", 3, f"missing        {clone}")
        box.run(f"mv /root/mysql_clone.so {clone}; echo >{clone}.so")
        says("a plugin too many", 3, f"extra          {clone}.so")
        box.run(f"rm {clone}.so; echo '# mine' >>/etc/mysql/mysql-memdiag.cnf")
        says("settings changed", 0, "configuration  /etc/mysql/mysql-memdiag.cnf")
        for name, folder in (("trusted", run.packages), ("other", higher)):
            (box.path("/root") / name).write_text("".join(sums_of(folder, package) for package in OURS))
        box.run("chmod 755 /root")
        says("as the user nobody, with own sums", 0, " 0 differ, 0 missing, 0 extra", "/root/trusted", "nobody")
        says("with sums of another version", 3, f"differs        /{CHANGED[-1]}", "/root/other")
        (box.path("/root") / "half").write_text(sums_of(run.packages, OURS[0]))
        says("with sums of the server alone", 3, "mysql_native_password.so (of mysql-memdiag-client, ", "/root/half")
        box.run("mv /var/lib/dpkg/info /var/lib/dpkg/away")
        says("without dpkg's lists", 1, "has no sums of this server's packages")
        says("without dpkg's lists, with own sums", 0, " 0 differ, 0 missing, 0 extra", "/root/trusted")
        box.run("mv /var/lib/dpkg/away /var/lib/dpkg/info")
        box.apt("remove mysql-memdiag-server mysql-memdiag-client")
        says("once removed", 1, "has no sums of this server's packages")


def sums_of(folder: Path, name: str) -> str:
    """By the command of docs/client.md."""
    (package,) = folder.glob(f"{name}_*.deb")
    done = subprocess.run(["dpkg-deb", "-I", package, "sha256sums"], capture_output=True, text=True, check=True)
    return done.stdout


# --- what it refuses -----------------------------------------------------------------


def refuse(run: Run) -> None:
    with run.bookworm() as box:
        # Without apt-utils, apt removes the other server before any script of this package can refuse.
        box.apt("install mariadb-server")
        box.run("mariadb -e 'CREATE TABLE mysql.kept SELECT 42 AS a'")
        refused(run, box, "MariaDB's running server", "MariaDB")
        with run.report.checking("MariaDB's server comes back with its data"):
            box.apt("install mariadb-server")
            said = box.run("mariadb -N -e 'SELECT a FROM mysql.kept'").strip()
            assert said == "42", said
        box.apt("install apt-utils")
        before = box.run("systemctl show mariadb -p MainPID; dpkg -l")
        refused(run, box, "the same with apt-utils", "MariaDB")
        after = box.run("systemctl show mariadb -p MainPID; dpkg -l")
        run.report.check("MariaDB's server runs on, and apt did nothing", before == after)
        box.apt("remove mariadb-server")
        data = files(box, DATA)
        refused(run, box, "MariaDB's data directory", "MariaDB")
        run.report.check("it is untouched", files(box, DATA) == data)
    with run.bookworm() as box:
        box.apt(INSTALL)
        Installed(box)
        unmounted(run, box)
        box.apt("remove mysql-memdiag-server")
        history = f"{DATA}/mysql_upgrade_history"
        box.run(f"cp -a {history} /root; sed -i 's/9\\.7/9.8/g' {history}")
        data = files(box, DATA)
        refused(run, box, "a data directory of a newer series", "9.8")
        run.report.check("it is untouched too", files(box, DATA) == data)
        box.run(f"cp -a /root/mysql_upgrade_history {DATA}; mount -t tmpfs -o size=20m tmpfs {DATA}")
        refused(run, box, "a disk that is full", "no disk")
        with run.report.checking("once that is mended, it installs"):
            box.run(f"umount {DATA}")
            box.apt(INSTALL)
            Installed(box)


def unmounted(run: Run, box: Machine) -> None:
    """A data directory outside /var/lib is not made unasked."""
    settings = "/etc/mysql/conf.d/elsewhere.cnf"
    box.run(f"printf '[mysqld]\\ndatadir = /srv/mysql\\n' >{settings}")
    with run.report.checking("no server on a volume that is not mounted"):
        box.run("if systemctl restart mysql; then exit 1; fi; test ! -e /srv/mysql")
        said = box.run("journalctl --no-pager -u mysql")
        assert "no data directory in /srv/mysql" in said, said[-500:]
    with run.report.checking("an upgrade warns of that and goes on"):
        for change in ("", "systemctl disable mysql", "systemctl mask mysql"):
            box.run(f"systemctl reset-failed mysql || :; {change}")
            said = box.apt(f"--reinstall {INSTALL}")
            assert "cannot start like this" in said, said[-500:]
            assert installed(box, OURS[0])
            box.run("test ! -e /srv/mysql")
        box.run("systemctl unmask mysql; systemctl enable mysql")
    with run.report.checking("prestart --make makes a data directory there"):
        box.run("/usr/libexec/mysql-memdiag/prestart --make")
        box.run("systemctl reset-failed mysql; systemctl start mysql")
        found = Installed(box).query("SELECT @@datadir").scalar()
        assert found == "/srv/mysql/", found
    box.run(f"rm {settings}")


def refused(run: Run, box: Machine, what: str, words: str) -> None:
    """Checks that the installation ends with this package's message."""
    said = box.apt(f"{INSTALL} && echo INSTALLED", check=False)
    messages = re.findall(r"^mysql-memdiag: .*$", said, re.MULTILINE)
    good = "INSTALLED" not in said and words in "".join(messages)
    run.report.check(f"refused: {what}", good and not installed(box, OURS[0]), messages[0] if messages else said[-500:])


# --- the files themselves ----------------------------------------------------------------


def lintian(run: Run) -> None:
    if not shutil.which("lintian"):
        run.report.skip("lintian", "not installed; apt-get install lintian")
        return
    packages = sorted(run.packages.glob("*.deb"))
    command = ["lintian", "--allow-root", "--fail-on", "error", "--tag-display-limit", "0", *packages]
    done = captured(command)
    errors = [line for line in done.stdout.splitlines() if line.startswith("E:")]
    warnings = sum(line.startswith("W:") for line in done.stdout.splitlines())
    run.report.check(
        "lintian finds no error",
        packages and not errors and not done.returncode,
        "; ".join(errors) or f"{warnings} warnings",
    )


def sizes(package: Path) -> dict[str, int]:
    """{path: bytes} of the files of a DEB."""
    command = ["dpkg-deb", "--fsys-tarfile", package]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as process,
        tarfile.open(fileobj=process.stdout, mode="r|") as archive,
    ):
        return {member.name.removeprefix("."): member.size for member in archive if member.isfile()}


def debians_packages(run: Run) -> list[Path]:
    """Debian's packages of server and client, fetched once."""
    folder = run.work / "debians"
    if len(list(folder.glob("*.deb"))) < len(DEBIANS):
        apt = PrivateApt(cache_dir() / "apt")
        apt.update()
        apt.download(folder, "download", *DEBIANS)
    return list(folder.glob("*.deb"))


def size(run: Run) -> None:
    theirs: dict[str, int] = {}
    for package in debians_packages(run):
        theirs |= sizes(package)
    ours: dict[str, int] = {}
    for name in OURS:
        ours |= sizes(run.deb(name))
    ratio = sum(ours.values()) / sum(theirs.values())
    figures = f"{sum(ours.values()) / 1e6:.1f} MB, Debian's {sum(theirs.values()) / 1e6:.1f} MB, ratio {ratio:.3f}"
    run.report.check(f"installed size at most {SIZE_RATIO} of Debian's server and client", ratio <= SIZE_RATIO, figures)
    for kind, below in (("plugin", "/usr/lib/mysql/plugin/"), ("program", "/usr/bin/"), ("program", "/usr/sbin/")):
        missing = sorted(path for path in theirs if path.startswith(below) and path not in ours)
        run.report.check(f"every {kind} of Debian's {below}", not missing, " ".join(missing))
