import fcntl
import itertools
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
import unittest
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from unittest import mock

from container import podman
from make import deb, portable, product, rpm, tar
from make.licences import filled, holders, licence
from make.manpage import manual
from make.product import COMMON, CONTENTS, assign, files_below, rules
from tests import documents, machine, stock_peer
from tests.deb import UPSTREAMS

from harness import markdown
from harness.problem import Problem
from harness.programs import captured
from harness.scratch import Scratch
from harness.tests import source_package
from unit import ROOT

PREFLIGHT = COMMON / "preflight"
LIBEXEC = COMMON / "tree/usr/libexec/mysql-memdiag"
PRESTART = LIBEXEC / "prestart"
FAMILIES = {name: COMMON.parent / name / "family.sh" for name in ("deb", "rpm")}


class Case(Scratch):
    def setUp(self):
        super().setUp()
        self.data = self.root / "data"


class Contents(Case):
    ENTRIES = tuple(rules("# note\nserver  bin/mysqld lib/*.so # more\n-  share/*\n"))
    FILES = ("bin/mysqld", "lib/a.so", "lib/deep/b.so", "share/date")

    def test_each_file_has_its_package(self):
        files = assign(self.FILES, self.ENTRIES)
        self.assertEqual(files, {"server": ["bin/mysqld", "lib/a.so", "lib/deep/b.so"]})

    def test_differences_are_named(self):
        for files, entries, words in (
            ((*self.FILES, "bin/new"), (), "bin/new belongs to no package"),
            (self.FILES, [("client", "*/a.so")], "lib/a.so belongs to client and server"),
            (self.FILES[1:], (), "there is no file bin/mysqld"),
        ):
            with self.subTest(words), self.assertRaisesRegex(Problem, words):
                assign(files, [*self.ENTRIES, *entries])

    def test_what_we_add_is_the_servers(self):
        entries = [(p, x) for p, x in rules(CONTENTS.read_text()) if p != "-"]
        for path in files_below(COMMON / "tree"):
            found = {p for p, pattern in entries if Path(path).match(pattern)}
            self.assertEqual(found, {"mysql-memdiag-server"}, path)


class Versions(Case):
    NAME = "abc1234" + "0" * 33
    PLAIN = product.Product("9.7.4", "1.0.0", 0, NAME, "", False, {}, {})

    def of(self, date: int, trained: bool = False) -> product.Product:
        stamp = product.stamp(self.NAME, date)
        return replace(self.PLAIN, stamp=stamp, trained=trained)

    def test_they_name_the_commit(self):
        made = self.of(1795257000)
        stamp = "git202611211030.abc1234"
        self.assertEqual(deb.version(made), f"9.7.4+memdiag1.0.0+{stamp}-1")
        self.assertEqual(rpm.release(made), f"1.memdiag1.0.0.{stamp}")
        self.assertEqual(deb.version(self.PLAIN), "9.7.4+memdiag1.0.0-1")
        self.assertEqual(rpm.release(self.PLAIN), "1.memdiag1.0.0")

    def test_later_commits_are_higher(self):
        order = [self.PLAIN, self.of(1795257000), self.of(1795257000, trained=True), self.of(1795257060)]
        for older, newer in itertools.pairwise(order):
            pair = deb.version(older), "lt", deb.version(newer)
            subprocess.run(["dpkg", "--compare-versions", *pair], check=True)

    def test_the_archive_names_the_commit(self):
        name = "memdiag-mysqld-9.7.4+memdiag1.0.0+git202611211030.abc1234+pgo-x86_64.tar.xz"
        self.assertEqual(tar.name(self.of(1795257000, trained=True)), name)

    def test_a_rebuilt_source_rpm_is_not_said_to_be_trained(self):
        self.assertTrue(rpm.release(self.of(0, True)).endswith("%{?memdiag_tree:.pgo}"))

    def commit_of(self, folder: Path, **names: str) -> tuple[str, str, int]:
        names = {"PATH": os.environ["PATH"], **names}
        with mock.patch.object(product, "ROOT", folder), mock.patch.dict(os.environ, names, clear=True):
            return product.commit()

    def test_without_git_the_date_is_given(self):
        given = {"PATH": str(self.root), "SOURCE_DATE_EPOCH": "7"}
        self.assertEqual(self.commit_of(self.root, **given), ("", "", 7))
        with self.assertRaisesRegex(Problem, "git is not installed"):
            self.commit_of(self.root, PATH=str(self.root))

    def test_another_repository_around_it_is_not_asked(self):
        git = ["git", "-C", self.root, "-c", "user.name=n", "-c", "user.email=n@e"]
        for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-mx"]):
            subprocess.run([*git, *words], check=True)
        name, stamp, _ = self.commit_of(self.root)
        self.assertIn(name[:7], stamp)
        unpacked = self.root / "BUILD"
        unpacked.mkdir()
        self.assertEqual(self.commit_of(unpacked, SOURCE_DATE_EPOCH="7"), ("", "", 7))

    def test_a_date_that_is_none(self):
        for words in ("today", "-1", "1.5"):
            with self.assertRaisesRegex(Problem, "SOURCE_DATE_EPOCH is .*since 1970"):
                self.commit_of(ROOT, SOURCE_DATE_EPOCH=words)

    def test_only_what_is_shipped_is_packaged(self):
        done = captured([sys.executable, ROOT / "packaging/build", "--preset", "debug", "tree"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("packages are made of dev and optimised", done.stderr)


class SourceArchives(Case):
    """The source RPM has the archives that the build was made of, whatever the environment says today."""

    def put(self, **source: object) -> Path:
        into = self.root / "SOURCES"
        into.mkdir(exist_ok=True)
        with mock.patch.dict(os.environ, MYSQL_SOURCE_TARBALL=str(self.root / "other")):
            return rpm.upstream_archive("mysql", {"mysql": source}, into)

    def test_an_archive_of_the_user(self):
        archive = self.root / "own.tar.gz"
        archive.write_text("own")
        made = self.put(tree="/src/mysql-user-1", pinned=False, archive=str(archive), member="")
        self.assertEqual((made.name, made.read_text()), ("own.tar.gz", "own"))

    @unittest.skipUnless(shutil.which("dpkg-deb"), "needs dpkg-deb")
    def test_debians_package_of_another_version(self):
        package = self.root / "package"
        package.mkdir()
        (package / "source.tar.gz").write_text("inner")
        archive = self.root / "mysql-source_9.7.6-1_amd64.deb"
        source_package.pack(package, "9.7.6-1", archive)
        source = {"tree": "/src/mysql-9.7.6-1", "archive": str(archive), "member": "./source.tar.gz"}
        made = self.put(pinned=False, **source)
        self.assertEqual((made.name, made.read_text()), ("mysql-9.7.6-1.tar.gz", "inner"))
        with self.assertRaisesRegex(Problem, "mysql-9.7.6-1.tar.gz is damaged"):
            self.put(pinned=True, **source)

    def test_one_that_is_not_there(self):
        for source, words in (
            ({}, "does not say .* mysql"),
            ({"tree": "/src/a", "archive": "/none.deb"}, "/none.deb is not there"),
        ):
            with self.assertRaisesRegex(Problem, f"{words}.*\n.*packaging/build deb"):
                self.put(**source)


class Manual(unittest.TestCase):
    def test_headings_and_tables(self):
        page = manual(
            "<!-- made -->\n# Reference\n\n## INFORMATION_SCHEMA.MEMDIAG_X\n\n"
            ".conf and `a-b`\n\n| column | type | unit | null | meaning |\n|---|---|---|---|---|\n"
            "| BYTES | BIGINT | bytes | yes | How many. |\n",
            0,
        )
        self.assertIn(".TH MEMDIAG 7 1970-01-01", page)
        self.assertIn('.SH "MEMDIAG_X"\n.PP\n\\&.conf and \\fIa\\-b\\fP\n', page)
        self.assertIn(".TP\n\\fBBYTES\\fP BIGINT, bytes, or NULL\nHow many.\n", page)
        self.assertNotIn("made", page)

    def test_cells_without_words(self):
        page = manual("## Rows\n\n| a | b |\n|---|---|\n| unexplained |  |\n| program | data |\n", 0)
        self.assertIn(".TP\n\\fBunexplained\\fP\n.TP\n\\fBprogram\\fP \ndata\n", page)

    def test_the_whole_reference_is_a_page(self):
        page = manual((ROOT / "docs/reference.md").read_text(), 0)
        self.assertIn("\\fBunexplained\\fP", page)
        self.assertNotIn("\n\n", page)

    def test_it_begins_with_the_program(self):
        page = manual("# Reference\n", 0)
        self.assertIn(".SH DESCRIPTION\nBegin with\n.B memdiag report\n", page)
        self.assertIn(".BR memdiag (1)", page)
        self.assertIn("memdiag_profile.bin", page)


class Licences(Case):
    TEXT = "Copyright (C) 2002-present A <a@b>.\nAll rights reserved.\nCopyright (C) 2009 B.  All rights reserved.\n\nRedistribution and use\n\nare permitted.\n-----\nmore\n"

    def test_taken_from_the_sources(self):
        path = self.root / "COPYING"
        path.write_text(self.TEXT)
        self.assertEqual(holders(path), ["2002-present A <a@b>", "2009 B"])
        self.assertEqual(licence(path), "Redistribution and use\n\nare permitted.")
        said = filled(
            "Copyright: @MYSQL_HOLDERS@\nCopyright: @JEMALLOC_HOLDERS@\n@JEMALLOC_LICENCE@\n",
            ["1, X"],
            holders(path),
            licence(path),
        )
        self.assertEqual(
            said,
            "Copyright: 1, X\nCopyright: 2002-present A <a@b>\n 2009 B\n Redistribution and use\n .\n are permitted.\n",
        )

    def test_another_text_stops(self):
        path = self.root / "COPYING"
        path.write_text("Do as you like.\n")
        for read in (holders, licence):
            with self.assertRaisesRegex(Problem, "correct packaging/make/licences.py"):
                read(path)

    def test_the_repository_has_one(self):
        text = (ROOT / "LICENSE").read_text()
        self.assertRegex(text, r"^\s*GNU GENERAL PUBLIC LICENSE\n\s*Version 2, ")

    def test_none_of_it_is_kept_here(self):
        text = (COMMON.parent / "copyright.in").read_text()
        self.assertEqual(
            re.findall("^Copyright: (.*)", text, re.MULTILINE)[::2], ["@MYSQL_HOLDERS@", "@JEMALLOC_HOLDERS@"]
        )


class Work(Scratch):
    def test_a_folder_with_files_of_the_user_is_left_alone(self):
        (self.root / "smoke").mkdir()
        done = captured([ROOT / "packaging/test", "--no-build", "--work", self.root, "smoke"])
        self.assertEqual(1, done.returncode)
        self.assertIn("has files of yours", done.stderr)
        self.assertEqual(["smoke"], os.listdir(self.root))


class Image(Scratch):
    def test_a_hook_ends_with_the_first_command_that_fails(self):
        """mmdebstrap runs a hook by sh without -e."""
        self.make_program("chroot", "exit 7")
        names = runpy.run_path(str(ROOT / "packaging/container/build"))
        for hook in ("ACCOUNT", "INSTALL"):
            path = f"{self.root}:{os.environ['PATH']}"
            command = ["sh", "-c", names[hook], "sh", self.root / "image"]
            done = subprocess.run(command, env={"PATH": path}, check=False)
            self.assertEqual(7, done.returncode, hook)

    def test_who_may_write_where(self):
        """The server warns at each start if the folder of secure_file_priv is open to all."""
        self.make_program("bin/chroot", "true")
        self.make_program("bin/chown", f'echo "$1 ${{2#{self.root}/}}" >>{self.root}/owners')
        image = self.root / "image"
        image.mkdir()
        install = runpy.run_path(str(ROOT / "packaging/container/build"))["INSTALL"]
        path = f"{self.root}/bin:{os.environ['PATH']}"
        subprocess.run(["sh", "-c", install, "sh", image], env={"PATH": path}, check=True)
        modes = {name: image.joinpath(name).stat().st_mode & 0o7777 for name in ("var/lib/mysql", "run/mysqld")}
        self.assertEqual(set(modes.values()), {0o1777})
        self.assertEqual((image / "var/lib/mysql-files").stat().st_mode & 0o7777, 0o770)
        self.assertIn("999:0 image/var/lib/mysql-files", (self.root / "owners").read_text())

    def test_programs_that_are_missing_are_named(self):
        with mock.patch.dict(os.environ, {"PATH": str(self.root)}):
            for name, words in (("", "apt-get install podman runc"), ("podman", "apt-get install runc"), ("runc", "")):
                if name:
                    self.make_program(name, "")
                found = podman.missing()
                self.assertEqual((found[found.find("apt-get") :], bool(found)), (words, bool(words)))


class Preflight(Case):
    def refusal(self, megabytes: str, certain: bool = True) -> str:
        done = captured(["sh", PREFLIGHT, self.data, megabytes])
        status = 1 if certain else 2
        self.assertEqual(done.returncode, status if done.stderr else 0)
        return done.stderr

    def history(self, *versions: str) -> None:
        entries = ",".join(f'{{"version":"{version}","x":1}}' for version in versions)
        path = self.data / "mysql_upgrade_history"
        path.write_text(f'{{"upgrade_history":[{entries}]}}')

    def test_what_the_server_takes(self):
        self.assertEqual(self.refusal("1"), "")  # no data yet
        (self.data / "mysql").mkdir(parents=True)
        for versions in (("9.7.1",), ("8.4.6", "9.7.9-memdiag")):
            self.history(*versions)
            self.assertEqual(self.refusal("1"), "")

    def test_data_for_which_there_is_no_way_back(self):
        (self.data / "mysql").mkdir(parents=True)
        for versions in (("8.4.8-0ubuntu1",), ("8.4.6", "9.6.0")):
            self.history(*versions)
            done = captured(["sh", PREFLIGHT, self.data, "1"])
            self.assertEqual(0, done.returncode)
            series = ".".join(versions[-1].split(".")[:2])
            self.assertIn(f"{self.data} is of MySQL {series}. The first start makes it 9.7's", done.stderr)
            self.assertIn(f"no server of {series} reads it then", done.stderr)
        self.history("8.4.8")
        self.assertIn("no disk", self.refusal("999999999", certain=False))

    @unittest.skipIf(os.geteuid(), "only root can run it as another user")
    def test_a_user_who_may_not_look(self):
        (self.data / "mysql").mkdir(parents=True)
        self.root.chmod(0o755)
        self.data.chmod(0o700)
        nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        # The checkout may be closed to user nobody.
        done = captured([*nobody, "sh", "-s", self.data, "1"], input=PREFLIGHT.read_text())
        self.assertEqual(2, done.returncode)
        self.assertIn(f"may not look into {self.data}.", done.stderr)

    def test_a_system_that_is_too_old(self):
        self.make_program("getconf", "echo glibc $VERSION")
        for version, words in (("2.31", "has glibc 2.31, and the server needs 2.34"), ("2.34", ""), ("2.41", "")):
            environment = {"PATH": f"{self.root}:{os.environ['PATH']}", "VERSION": version}
            with mock.patch.dict(os.environ, environment):
                said = self.refusal("1")
            self.assertIn(words, said)
            self.assertEqual(bool(words), bool(said))

    def test_the_system_that_is_too_old_is_that_of_the_lint(self):
        self.assertIn("glibc={}.{} ".format(*portable.NEWEST_GLIBC), PREFLIGHT.read_text())

    def test_what_it_does_not_take(self):
        (self.data / "mysql").mkdir(parents=True)
        self.assertIn("5.7 or older", self.refusal("1"))
        (self.data / "mysql_upgrade_info").write_text("8.0.46")
        self.assertIn("written by MySQL 8.0,", self.refusal("1"))
        self.history("9.7.4", "10.1.0")
        self.assertIn("written by MySQL 10.1,", self.refusal("1"))
        (self.data / "aria_log_control").touch()
        self.assertIn("MariaDB's", self.refusal("1"))
        # The certain finding comes before the estimate: more room would not help.
        self.assertIn("MariaDB's", self.refusal("999999999"))
        (self.data / "aria_log_control").unlink()
        self.assertIn("written by MySQL 10.1,", self.refusal("999999999"))

    def test_a_disk_that_seems_too_small(self):
        self.assertIn("no disk", self.refusal("999999999", certain=False))
        (self.data / "mysql").mkdir(parents=True)
        self.history("9.7.4")
        self.assertIn("no disk", self.refusal("999999999", certain=False))

    def test_a_backup_without_the_history_is_for_the_server_to_judge(self):
        (self.data / "mysql").mkdir(parents=True)
        (self.data / "mysql.ibd").touch()
        self.assertEqual(self.refusal("1"), "")


class Machines(Case):
    """What a killed run has left. Another program stands in for systemd-nspawn."""

    def left(self, name: str, called: str = "") -> subprocess.Popen:
        folder = self.root / "machines" / name
        folder.mkdir(parents=True)
        words = ["-c", "import time; time.sleep(3600)", f"--machine={called or name}"]
        process = subprocess.Popen(["systemd-nspawn", *words], executable=sys.executable)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        # Popen returns while the kernel still sets the program up.
        while not Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        (folder / "pid").write_text(str(process.pid))
        return process

    def test_a_left_machine_is_ended_before_its_folder_is_removed(self):
        ours = self.left("memdiag-1-1")
        others = self.left("memdiag-1-2", called="memdiag-2-2")
        (self.root / "machines/memdiag-1-3").mkdir()  # killed before it had one
        machine.sweep(self.root)
        self.assertEqual(ours.wait(180), -signal.SIGTERM)
        self.assertIsNone(others.poll())
        self.assertEqual(os.listdir(self.root / "machines"), [])

    def test_programs_that_are_missing_are_named_by_their_packages(self):
        needed = {"sh": "dash", "mkfs.none-such": "none-such-progs"}
        self.assertEqual(machine.missing_tools(needed), ["none-such-progs"])


class Script(Case):
    """Runs a script of the packages below `root`. Stand-ins replace the programs that need root or a server."""

    PROGRAMS: tuple[tuple[str, str], ...] = ()
    # A copy of a stock server's unit, as an administrator has edited it.
    UNIT = (
        "[Service]\nExecStartPre=-{0}/usr/bin/may-be-missing\nExecStartPre=+{0}/usr/libexec/theirs pre\n"
        "ExecStart = {0}/usr/sbin/mysqld $MYSQLD_OPTS\n"
    )

    def setUp(self):
        super().setUp()
        for name, text in self.PROGRAMS:
            self.make_program(f"bin/{name}", text)

    def moved(self, script: Path, copy: Path | None = None) -> Path:
        """A copy in which every absolute path is below `root`."""
        copy = copy or self.root / script.name
        text = re.sub(r"(?<![\w$}])/(?=(etc|run|sys|usr|var)/)", f"{self.root}/", script.read_text())
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)
        copy.chmod(0o755)
        return copy

    def install_libexec(self, family: str) -> None:
        """Programs and files that the scripts call and source."""
        place = self.root / "usr/libexec/mysql-memdiag"
        self.moved(FAMILIES[family], place / "family.sh")
        for name in ("options.sh", "make-data", "check-units"):
            if (LIBEXEC / name).exists():
                self.moved(LIBEXEC / name, place / name)

    def start(self, script: Path, *args: str, **names: str) -> subprocess.Popen:
        path = f"{self.root}/bin:{os.environ['PATH']}"
        return subprocess.Popen(
            ["sh", self.moved(script), *args],
            env={"PATH": path, "ROOT": str(self.root), **names},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )


# Fails a test where root uses a path below the data directory. Only user mysql may go there;
# the stand-in for setpriv marks its calls.
WATCHED = """[ -n "${AS_MYSQL-}" ] || for word; do
  case $word in "$DATA"/*) echo "${0##*/} $*" >>$ROOT/as-root ;; esac
done
PATH=${PATH#*:}
"""
FILE_TOOLS = ("find", "install", "ln", "mkdir", "mv", "rm", "rmdir", "touch")


class Prestart(Script):
    PROGRAMS = (
        *((name, f'{WATCHED}exec {name} "$@"') for name in FILE_TOOLS),
        ("chown", f"{WATCHED}echo $* >>$ROOT/owners"),
        ("setpriv", 'shift 5; AS_MYSQL=yes exec "$@"'),
        ("my_print_defaults", 'echo $* >>$ROOT/asked\nprintf "%s\\n" --datadir=$DATA $PRINTED'),
        ("getent", "true"),
        (
            "mysqld",
            (
                '[ -n "$AS_MYSQL" ] || exit 1; echo "$@" >>$ROOT/arguments\n'
                "for x; do case $x in --datadir=*) new=${x#*=} ;; esac; done\n"
                "ls -A $new | wc -l >>$ROOT/calls\n"
                'touch $new/ibdata1; eval "$THEN"; mkdir $new/mysql'
            ),
        ),
    )

    def setUp(self):
        super().setUp()
        self.data = self.root / "var/lib/mysql"
        for folder in ("run", "var/lib", "var/log"):
            (self.root / folder).mkdir(parents=True)
        self.install_libexec("deb")

    def run_it(self, then: str = "true", *args: str, **names: str) -> tuple[int, str]:
        names = {"PRINTED": "", "DATA": str(self.data), **names}
        process = self.start(PRESTART, *args, THEN=then, **names)
        said = process.communicate()[1]
        # In every test.
        self.assertFalse((self.root / "as-root").exists(), "root works below datadir")
        return process.returncode, said

    def lines(self, name: str) -> list[str]:
        return (self.root / name).read_text().splitlines()

    def calls(self) -> int:
        path = self.root / "calls"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def restore(self, *names: str) -> None:
        """Puts files into the data directory, as a user who restores a backup."""
        self.data.mkdir(parents=True, exist_ok=True)
        for name in names:
            (self.data / name).mkdir()
            (self.data / name / "theirs").touch()

    def assert_theirs(self, *names: str) -> None:
        self.assertEqual(sorted(os.listdir(self.data)), sorted(names))
        for name in names:
            self.assertEqual(os.listdir(self.data / name), ["theirs"])

    def test_user_mysql_has_no_terminal_of_root(self):
        self.run_it("ps -o sid= $$ >$ROOT/session; readlink /proc/self/fd/0 >$ROOT/input")
        (session,) = self.lines("session")
        self.assertNotEqual(os.getsid(0), int(session))
        self.assertEqual(["/dev/null"], self.lines("input"))

    def test_makes_what_is_missing_once(self):
        for _ in range(2):
            self.assertEqual(self.run_it(), (0, ""))
            self.assertEqual(sorted(os.listdir(self.data)), ["ibdata1", "mysql"])
        self.assertEqual(self.calls(), 1)

    def test_an_instance_whose_section_is_not_read_leaves_the_main_servers_data(self):
        """systemd makes replica/1 of mysqld@replica-1."""
        self.restore("mysql")
        status, said = self.run_it("true", "replica/1")
        self.assertEqual(status, 1)
        self.assertIn("reads the section [mysqld@replica/1]", said)
        self.assertIn(r"mysqld@replica\x2d1", said)
        self.assertEqual(self.run_it("true", "replica-1"), (0, ""))
        self.assert_theirs("mysql")

    def test_an_instance_may_have_a_section_with_such_a_name(self):
        own = f"case $* in *=@replica/1*) echo --datadir={self.data}-1 ;; *) echo --datadir={self.data} ;; esac"
        self.make_program("bin/my_print_defaults", own)
        self.assertEqual(self.run_it("true", "replica/1"), (0, ""))
        self.assertTrue(Path(f"{self.data}-1/mysql").exists())

    def test_a_failure_leaves_nothing(self):
        status, said = self.run_it("exit 1")
        self.assertEqual(status, 1)
        self.assertIn("could not be made", said)
        self.assertEqual(os.listdir(self.data), [])
        self.assertEqual(self.run_it(), (0, ""))
        self.assertEqual((self.root / "calls").read_text().split(), ["0", "0"])

    def test_a_profile_in_force_is_named(self):
        for mode, named in (("enforce", True), ("complain", False)):
            self.make_file(
                "sys/kernel/security/apparmor/profiles", f"man_filter (enforce)\n/usr/sbin/mysqld ({mode})\n"
            )
            status, said = self.run_it("exit 1")
            self.assertEqual((status, f"'  \"{self.data}/**\" rwk,'" in said), (1, named), said)

    def test_a_profile_in_force_sees_where_a_link_leads(self):
        self.make_file("sys/kernel/security/apparmor/profiles", "/usr/sbin/mysqld (enforce)\n")
        place = self.root / "var/lib/my data"
        place.mkdir()
        self.data.symlink_to(place)
        self.assertIn(f"'  \"{place}/\" r,' and '  \"{place}/**\" rwk,'", self.run_it("exit 1")[1])

    def test_what_was_restored_after_a_failure_stays(self):
        # A killed run could not remove anything.
        for then in ("exit 1", "kill -9 $PPID; exit 1"):
            for names, status in ((("mysql", "shop"), 0), (("shop",), 1)):
                with self.subTest(then, names=names):
                    self.run_it(then)
                    self.restore(*names)
                    self.assertEqual(self.run_it()[0], status)
                    self.assert_theirs(*names)
                    subprocess.run(["rm", "-r", self.data], check=True)

    def test_goes_on_after_it_was_killed(self):
        self.run_it("kill -9 $PPID; exit 1")
        self.assertEqual(os.listdir(self.data), ["memdiag-making"])
        self.assertEqual(self.run_it(), (0, ""))
        self.assertEqual(sorted(os.listdir(self.data)), ["ibdata1", "mysql"])

    def test_goes_on_where_it_was_moving(self):
        self.restore("memdiag-made")
        (self.data / "memdiag-made/mysql").mkdir()
        (self.data / "ibdata1").touch()
        self.assertEqual(self.run_it(), (0, ""))
        self.assertEqual(sorted(os.listdir(self.data)), ["ibdata1", "mysql", "theirs"])
        self.assertEqual(self.calls(), 0)

    def test_overwrites_nothing(self):
        status, said = self.run_it("echo theirs >$DATA/ibdata1")
        self.assertEqual(status, 1)
        self.assertIn("has been filled", said)
        self.assertEqual((self.data / "ibdata1").read_text(), "theirs\n")
        self.assertFalse((self.data / "mysql").exists())

    def test_leaves_what_is_no_data_directory(self):
        self.restore("letters")
        status, said = self.run_it()
        self.assertEqual((status, self.calls()), (1, 0))
        self.assertIn("is no data directory", said)
        self.assert_theirs("letters")

    def test_an_unmounted_volume_stays_empty(self):
        volume = self.root / "srv/mysql"
        (self.root / "var/lib/link").symlink_to(volume)
        for place in (volume, self.root / "var/lib/link"):
            self.data = place
            for mounted_on in (False, True):
                status, said = self.run_it()
                self.assertEqual((status, self.calls()), (1, 0))
                self.assertIn("mount it", said)
                self.assertEqual(volume.exists(), mounted_on)
                volume.mkdir(parents=True, exist_ok=True)
            volume.rmdir()
        self.data = volume
        self.assertEqual(self.run_it("true", "--make"), (0, ""))
        self.assertTrue((volume / "mysql").is_dir())

    def test_one_at_a_time(self):
        with open(self.root / "run/mysql-memdiag.lock", "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            names = {"DATA": str(self.data), "PRINTED": "", "THEN": "true"}
            process = self.start(PRESTART, **names)
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(0.3)
            self.assertEqual(self.calls(), 0)
        self.assertIn("waiting: another process", process.communicate()[1])
        self.assertEqual((process.returncode, self.calls()), (0, 1))

    def test_other_users_cannot_hold_the_lock(self):
        lock = self.root / "run/mysql-memdiag.lock"
        for before in (None, 0o644):
            if before:
                lock.chmod(before)
            self.assertEqual(self.run_it(), (0, ""))
            self.assertEqual(lock.stat().st_mode & 0o777, 0o600)

    def test_user_mysql_makes_the_data(self):
        """Also where another run, or an intruder with its rights, has left something."""
        self.data.mkdir()
        (self.data / "memdiag-making").symlink_to(self.root)
        self.assertEqual(self.run_it(), (0, ""))
        self.assertTrue((self.root / "run").exists())
        self.assertEqual(sorted(os.listdir(self.data)), ["ibdata1", "mysql"])
        (self.data / "memdiag-made").symlink_to(self.root)
        self.assertEqual(self.run_it(), (0, ""))
        self.assertTrue((self.root / "run").exists())

    def test_root_makes_nothing_where_another_user_can_change_the_path(self):
        # The path is below /tmp, which everyone can write to. User mysql does not make parents.
        self.data = self.root / "srv/deep/mysql"
        status, said = self.run_it("true", "--make")
        self.assertEqual((status, self.calls()), (1, 0))
        self.assertIn("another user than root can change", said)
        self.assertFalse((self.root / "srv").exists())

    def test_who_may_enter_a_new_data_directory(self):
        for family, mode in (("deb", 0o700), ("rpm", 0o751)):
            self.install_libexec(family)
            self.assertEqual(self.run_it(), (0, ""))
            self.assertEqual(self.data.stat().st_mode & 0o777, mode)
            subprocess.run(["rm", "-r", self.data], check=True)

    def test_the_options_are_those_of_the_servers_sections(self):
        self.run_it()
        self.assertEqual(set(self.lines("asked")), {"mysqld server mysqld-9.7"})
        self.run_it("true", "replica1")
        suffix = "--defaults-group-suffix=@replica1"
        self.assertIn(f"{suffix} mysqld server mysqld-9.7", self.lines("asked"))

    def test_an_instance(self):
        self.assertEqual(self.run_it("true", "replica1"), (0, ""))
        first = self.lines("arguments")[0].split()[0]
        self.assertEqual(first, "--defaults-group-suffix=@replica1")

    def test_what_the_units_of_rpm_systems_pass_on(self):
        other = self.root / "var/lib/other"
        sysconfig = self.root / "etc/sysconfig/mysql"
        sysconfig.parent.mkdir(parents=True)
        options = f"--defaults-extra-file=/x.cnf --datadir={other} --flag"
        for family, by_hand, made in (("deb", False, self.data), ("rpm", False, other), ("rpm", True, other)):
            with self.subTest(family, by_hand=by_hand):
                self.install_libexec(family)
                sysconfig.write_text(f'X=1\nMYSQLD_OPTS="{options}"\n' * by_hand)
                names = {} if by_hand else {"MYSQLD_OPTS": options}
                self.assertEqual(self.run_it(**names), (0, ""))
                self.assertTrue((made / "mysql").is_dir())
                given = self.lines("arguments")[-1]
                self.assertEqual(family == "rpm", given.startswith(options), given)
                subprocess.run(["rm", "-r", made], check=True)

    def test_no_init(self):
        self.install_libexec("rpm")
        self.assertEqual(self.run_it(NO_INIT="true"), (0, ""))
        self.assertFalse(self.data.exists())
        self.make_file("etc/sysconfig/mysql", "NO_INIT=1\n")
        self.assertEqual(self.run_it(), (0, ""))
        self.assertFalse(self.data.exists())

    def test_a_missing_log_of_the_system_is_made(self):
        logs = self.root / "var/log"
        for name in ("mysqld.log", "mysqld-replica1.log"):
            self.run_it(PRINTED=f"--log-error={logs}/{name}")
            self.assertEqual((logs / name).stat().st_mode & 0o777, 0o640)
            self.assertTrue((logs / f"{name}.00.json").exists())
            self.assertIn(f"mysql:mysql {logs}/{name}", " ".join(self.lines("owners")))
        (logs / "mysqld.log").write_text("kept")
        self.run_it(PRINTED=f"--log_error={logs}/mysqld.log")
        self.assertEqual((logs / "mysqld.log").read_text(), "kept")
        for name in ("syslog", "mysql/error.log"):
            self.run_it(PRINTED=f"--log-error={logs}/{name}")
            self.assertFalse((logs / name).exists(), name)


class RpmService(Script):
    """The scriptlets of the server's RPM, in the order of a dnf transaction that replaces a server."""

    PROGRAMS = (
        ("getent", "true"),
        ("systemd-tmpfiles", "true"),
        (
            "systemctl",
            """now='' words=''
for word; do case $word in --now) now=yes ;; -*) ;; *) words="$words $word" ;; esac; done
cd $ROOT
case $words in
" is-active mysqld.service") test -e running ;;
" is-enabled mysqld.service")
  [ -e usr/lib/systemd/system/mysqld.service ] || exit 1
  [ -e enabled ] || { echo disabled; exit 1; }
  echo enabled ;;
" enable mysqld.service" | " preset mysqld.service") touch enabled ${now:+running} ;;
" disable mysqld.service") rm -f enabled ${now:+running} ;;
" start mysqld.service") touch running ;;
esac""",
        ),
    )
    STATES = ((True, True), (True, False), (False, True), (False, False))

    def setUp(self):
        super().setUp()
        for folder in ("run/systemd/system", "usr/lib/systemd/system", "var/log", "var/lib", "etc"):
            (self.root / folder).mkdir(parents=True)
        for name in ("etc/my.cnf", "usr/lib/systemd/system/mysqld.service"):
            (self.root / name).touch()
        (self.root / "usr/lib/mysql/plugin").mkdir(parents=True)
        self.install_libexec("rpm")

    def scriptlet(self, name: str, left: int = 0, says: str = "") -> None:
        """`left`: how many of this package are installed afterwards."""
        folder = COMMON.parent / "rpm"
        if name == "pre":
            text = (folder / "server.pre").read_text().replace("@PREFLIGHT@", "true")
        else:
            spec = (folder / "mysql-memdiag.spec.in").read_text()
            text = re.search(rf"^%{name} server.*\n((?:(?!%).*\n)*)", spec, re.M)[1]
        process = self.start(self.make_file(f"scriptlets/{name}", text), str(left))
        said = process.communicate()[1]
        self.assertEqual((bool(said), process.returncode), (bool(says), 0), said)
        self.assertIn(says, said)

    def others(self, *words: str) -> None:
        """What the other server's scriptlet does."""
        names = {"ROOT": str(self.root), "PATH": os.environ["PATH"]}
        subprocess.run([self.root / "bin/systemctl", *words], env=names, check=True)

    def set(self, enabled: bool, running: bool) -> None:
        for name, there in (("enabled", enabled), ("running", running)):
            (self.root / name).touch() if there else (self.root / name).unlink(True)

    def assert_set(self, enabled: bool, running: bool) -> None:
        found = tuple((self.root / name).exists() for name in ("enabled", "running"))
        self.assertEqual(found, (enabled, running))
        self.assertEqual(os.listdir(self.root / "run"), ["systemd"])  # no note is left

    def test_over_a_stock_server(self):
        for state in self.STATES:
            with self.subTest(state):
                self.set(*state)
                self.scriptlet("pre", 1)
                self.scriptlet("post", 1)
                self.others("--no-reload", "disable", "--now", "mysqld.service")
                self.scriptlet("posttrans", 1)
                self.assert_set(*state)

    def test_back_to_a_stock_server(self):
        for state, known in itertools.product(self.STATES, (True, False)):
            with self.subTest(state, known=known):
                self.set(*state)
                if known:
                    self.scriptlet("triggerprein", 1)
                    self.others("enable", "mysqld.service")
                self.scriptlet("preun")
                self.assertFalse((self.root / "running").exists())
                self.scriptlet("postun")
                self.assert_set(*state)

    def test_settings_of_components_are_linked_from_a_stock_servers_folder(self):
        """Without them the keyring has no keys, and encrypted data do not open."""
        stocks, ours = self.root / "usr/lib64/mysql/plugin", self.root / "usr/lib/mysql/plugin"
        self.scriptlet("post", 1)
        self.assertEqual(os.listdir(ours), [])
        names = ("component_keyring_file.cnf", "component_mine.cnf", "component_keyring_file.so")
        for name in names:
            self.make_file(stocks / name, "theirs")
        self.make_file(ours / "component_mine.cnf", "mine")
        for _ in range(2):
            self.scriptlet("post", 1)
            self.assertEqual(sorted(os.listdir(ours)), list(names[:2]))
            self.assertEqual([(ours / name).read_text() for name in names[:2]], ["theirs", "mine"])
        self.scriptlet("preun", 1)
        self.assertTrue((ours / names[0]).is_symlink())
        self.scriptlet("preun")
        self.assertEqual((os.listdir(ours), len(os.listdir(stocks))), ([names[1]], 3))

    def test_the_manifest_of_fedoras_server_counts(self):
        """mysqld takes its manifest from its own folder: Fedora's and RHEL's is /usr/libexec/mysqld."""
        theirs, ours = self.root / "usr/libexec/mysqld.my", self.root / "usr/sbin/mysqld.my"
        ours.parent.mkdir()
        self.scriptlet("post", 1)
        self.assertFalse(ours.is_symlink())
        self.make_file(theirs, "theirs")
        for _ in range(2):
            self.scriptlet("post", 1)
            self.assertEqual(ours.readlink(), theirs)
        self.scriptlet("preun", 1)
        self.assertTrue(ours.is_symlink())
        self.scriptlet("preun")
        self.assertFalse(ours.is_symlink())
        self.make_file(ours, "mine")
        self.scriptlet("post", 1)
        self.scriptlet("preun")
        self.assertEqual((ours.read_text(), theirs.read_text()), ("mine", "theirs"))

    def test_a_copy_of_a_stock_unit_whose_program_is_gone_is_named(self):
        unit = self.make_file("etc/systemd/system/mysqld.service", self.UNIT.format(self.root))
        self.make_file("usr/sbin/mysqld")
        self.scriptlet("posttrans", 1, says=f"{unit} starts {self.root}/usr/libexec/theirs, which is not there")
        self.make_file("usr/libexec/theirs")
        self.scriptlet("posttrans", 1)

    def test_prestart_alone_makes_the_folders(self):
        self.scriptlet("post", 1)
        self.assertEqual([os.listdir(self.root / "var" / name) for name in ("lib", "log")], [[], []])

    def test_where_no_server_was(self):
        unit = self.root / "usr/lib/systemd/system/mysqld.service"
        unit.unlink()
        self.scriptlet("pre", 1)
        unit.touch()
        self.scriptlet("post", 1)
        self.scriptlet("posttrans", 1)
        self.assert_set(True, False)  # as the preset says
        unit.unlink()
        self.set(True, True)
        self.scriptlet("preun")
        self.scriptlet("postun")
        self.assert_set(False, False)


class SocketNames(Script):
    """socket-names of the RPM: the socket has two names."""

    PROGRAMS = (("my_print_defaults", 'printf "%s\\n" $PRINTED'), ("setpriv", "exit 1"))

    def test_a_link_leads_to_the_socket_in_use(self):
        self.install_libexec("rpm")
        places = [self.root / name for name in ("run/mysqld/mysqld.sock", "var/lib/mysql/mysql.sock")]
        for place in places:
            place.parent.mkdir(parents=True)
        script = COMMON.parent / "rpm/socket-names"
        for names, used in (
            ({"PRINTED": ""}, 0),
            ({"PRINTED": f"--socket={places[1]}"}, 1),
            ({"PRINTED": "", "MYSQLD_OPTS": f"--x --socket {places[1]}"}, 1),
            ({"PRINTED": f"--socket={places[1]}", "MYSQLD_OPTS": f"--socket={places[0]}"}, 0),
        ):
            process = self.start(script, **names)
            self.assertEqual(process.communicate(), (None, ""))
            self.assertFalse(places[used].is_symlink())
            self.assertEqual(places[1 - used].readlink().name, places[used].name)

    def test_a_link_that_cannot_be_made_is_a_message(self):
        self.install_libexec("rpm")
        for folder in ("run/mysqld", "var/lib/mysql"):
            (self.root / folder).mkdir(parents=True)
        for name in ("ln", "rm"):
            self.make_program(f"bin/{name}", f"echo {name}: no >&2\nexit 1")
        (self.root / "run/mysqld/mysqld.sock").symlink_to("elsewhere")
        process = self.start(COMMON.parent / "rpm/socket-names", PRINTED="")
        self.assertEqual(process.communicate()[1], "rm: no\nln: no\n")
        self.assertEqual(process.returncode, 0)

    def test_the_unit_runs_it_as_user_mysql(self):
        text = (COMMON.parent / "rpm/rpm.conf").read_text()
        self.assertIn("\nExecStartPre=-/usr/libexec/mysql-memdiag/socket-names\n", text)


class EntryPoint(Script):
    PROGRAMS = (
        ("id", "echo 1000"),
        (
            "mysqld",
            'case $* in *--help*) printf "datadir %s\\nsocket %s\\ntmpdir %s\\n" $ROOT/data $ROOT/sock $ROOT ;;\n'
            "*) echo started ;; esac",
        ),
    )

    def setUp(self):
        super().setUp()
        self.install_libexec("deb")

    def test_a_data_directory_needs_no_secret(self):
        """Its file may be gone: the container did not start any more."""
        for folder in ("data/mysql", "run/mysqld"):
            (self.root / folder).mkdir(parents=True)
        secret = "/no/such/secret"
        done = self.run_it(MYSQL_ROOT_PASSWORD_FILE=secret)
        self.assertEqual("started\n", done.stdout, done.stderr)
        (self.root / "data/mysql").rmdir()
        done = self.run_it(MYSQL_ROOT_PASSWORD_FILE=secret)
        self.assertIn("/no/such/secret, which cannot be read", done.stderr)

    def run_it(self, **names: str) -> subprocess.CompletedProcess:
        script = self.moved(ROOT / "packaging/container/docker-entrypoint.sh")
        path = f"{self.root}/bin:{os.environ['PATH']}"
        return captured([script, "mysqld"], env={"PATH": path, "ROOT": str(self.root), **names})

    def test_two_containers_on_one_empty_volume(self):
        for folder in ("data/memdiag-made/mysql", "run/mysqld"):
            (self.root / folder).mkdir(parents=True)
        held = os.open(self.root / "data", os.O_RDONLY)
        self.addCleanup(os.close, held)
        fcntl.flock(held, fcntl.LOCK_EX)
        done = self.run_it()
        self.assertIn("another container is making a data directory", done.stderr)
        self.assertEqual((done.returncode, os.listdir(self.root / "data")), (1, ["memdiag-made"]))
        fcntl.flock(held, fcntl.LOCK_UN)
        done = self.run_it()
        self.assertEqual(("started\n", ["mysql"]), (done.stdout, os.listdir(self.root / "data")), done.stderr)

    def test_what_was_restored_meanwhile_is_not_overwritten(self):
        for folder in ("data/memdiag-made/mysql", "data/memdiag-made/shop", "data/shop", "run/mysqld"):
            (self.root / folder).mkdir(parents=True)
        done = self.run_it()
        self.assertIn("has been filled", done.stderr)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(sorted(os.listdir(self.root / "data/memdiag-made")), ["mysql", "shop"])

    def test_the_server_does_not_hold_the_lock(self):
        for folder in ("data/memdiag-made/mysql", "run/mysqld"):
            (self.root / folder).mkdir(parents=True)
        self.make_program(
            "bin/mysqld", dict(self.PROGRAMS)["mysqld"].replace("echo started", "flock -n $ROOT/data echo free")
        )
        self.assertEqual("free\n", self.run_it(lock="x").stdout)
        self.assertEqual("free\n", self.run_it(lock="x").stdout)


# Logs in like the real one: where the host is another, there is no socket.
CLIENT = """for word; do
  case $word in
  --host=*) MYSQL_HOST=${word#*=} ;;
  --defaults*-file=*) [ ! -e "$ROOT/printed" ] || cat "$ROOT/printed" >&2 ;;
  esac
done
[ "${MYSQL_HOST-localhost}" = localhost ] || { echo "ERROR 2047 (HY000): Wrong or unknown protocol" >&2; exit 1; }
[ -e "$ROOT/started" ] || { echo "ERROR 2002 (HY000): Can't connect" >&2; exit 1; }
[ ! -e "$ROOT/error" ] || { cat "$ROOT/error" >&2; exit 1; }
cat >/dev/null"""
# Makes a data directory, serves until SIGTERM, and keeps what it was asked for.
SERVER = """echo "$*" >>$ROOT/asked
for word; do case $word in --datadir=*) new=${word#*=} ;; esac; done
case $* in
*--verbose*) printf "datadir %s\nsocket %s\ntmpdir %s\n" $ROOT/data $ROOT/sock $ROOT
  cat $ROOT/settings 2>/dev/null; eval "$THEN" ;;
*--initialize-insecure*) mkdir $new/mysql ;;
*--skip-networking*) trap 'exit 0' TERM; sleep 0.3; : >$ROOT/started; while :; do sleep 0.05; done ;;
*) echo started ;;
esac"""


class Started(Script):
    """The entry point, with stand-ins for server and client."""

    PROGRAMS: tuple[tuple[str, str], ...] = (
        ("id", "echo 1000"),
        ("mysql", CLIENT),
        ("mysqld", SERVER),
        ("mysql_tzinfo_to_sql", "true"),
        ("sync", "true"),
    )
    NAMES = {"MYSQL_ALLOW_EMPTY_PASSWORD": "1", "THEN": "true"}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        self.install_libexec("deb")
        for folder in ("data", "run/mysqld"):
            (self.root / folder).mkdir(parents=True)

    def environment(self, **names: str) -> dict[str, str]:
        path = f"{self.root}/bin:{os.environ['PATH']}"
        return {"PATH": path, "ROOT": str(self.root), **self.NAMES, **names}

    def run_it(self, **names: str) -> subprocess.CompletedProcess:
        script = self.moved(ROOT / "packaging/container/docker-entrypoint.sh")
        text = script.read_text().replace("hooks=/docker", f"hooks={self.root}/docker")
        script.write_text(text)
        (self.root / "docker-entrypoint-initdb.d").mkdir(exist_ok=True)
        return captured([script, "mysqld"], env=self.environment(**names), timeout=120)

    def assert_made(self, done: subprocess.CompletedProcess) -> None:
        self.assertEqual((done.returncode, done.stdout), (0, "started\n"), done.stderr)
        self.assertTrue((self.root / "data/mysql").is_dir())


class NewDataDirectory(Started):
    def test_the_environment_and_mounted_settings_may_name_another_host(self):
        self.make_file("printed", "mysql: [Warning] World-writable config file 'x' is ignored.\n")
        for name, mode in (("1.sh", 0o755), ("2.sh", 0o644)):
            hook = self.make_file(f"docker-entrypoint-initdb.d/{name}", "#!/bin/sh\nmysql </dev/null\n")
            hook.chmod(mode)
        self.assert_made(self.run_it(MYSQL_HOST="db"))
        health = self.moved(ROOT / "packaging/container/health")
        done = captured(["sh", health], env=self.environment(MYSQL_HOST="db"), stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_an_error_that_does_not_pass_ends_it(self):
        self.make_file("error", "ERROR 2026 (HY000): SSL connection error\n")
        done = self.run_it()
        self.assertIn("root cannot log in: ERROR 2026 (HY000)", done.stderr)
        self.assertEqual((done.returncode, os.listdir(self.root / "data")), (1, []))

    def test_settings_of_a_plugin_that_is_not_loaded_yet_do_not_end_it(self):
        self.make_file(
            "settings", f"log-error {self.root}/data/e.log\ngroup-replication-recovery-ssl-ca {self.root}/data/ca.pem\n"
        )
        self.assert_made(self.run_it())
        (made,) = [x for x in (self.root / "asked").read_text().splitlines() if "--initialize-insecure" in x]
        for option in ("--loose-log-error=./e.log", "--loose-group-replication-recovery-ssl-ca=./ca.pem"):
            self.assertIn(option, made.split())

    def test_a_signal_before_the_work_begins_ends_it(self):
        """PID 1 would ignore it without a trap."""
        done = self.run_it(THEN="kill -TERM $(ps -o ppid= $PPID)")
        self.assertEqual((done.returncode, done.stdout), (143, ""), done.stderr)


class LeavingRoot(Started):
    """Root makes and gives away folders only where no other user can change the path."""

    PROGRAMS = (
        *Started.PROGRAMS,
        ("id", "echo ${AS_MYSQL:-0}"),
        ("chown", "echo $* >>$ROOT/owners"),
        ("setpriv", 'shift 3; AS_MYSQL=1000 exec "$@"'),
        ("mkdir", 'echo ${AS_MYSQL:-root} "$@" >>$ROOT/made\nexec /bin/mkdir "$@"'),
        ("namei", 'echo f:; echo " drwxr-xr-x ${OWNER:-root} root x"'),
    )

    def lines(self, name: str) -> list[str]:
        path = self.root / name
        return path.read_text().splitlines() if path.exists() else []

    @unittest.skipIf(os.geteuid(), "the folder must be root's")
    def test_a_new_volume_becomes_user_mysqls(self):
        self.assert_made(self.run_it())
        self.assertIn(f"--no-dereference mysql:mysql {self.root}/data", self.lines("owners"))

    def test_a_folder_in_a_volume_of_user_mysql_is_its_own_work(self):
        (self.root / "data").rmdir()
        self.assert_made(self.run_it(OWNER="mysql"))
        self.assertEqual(self.lines("owners"), [])
        makers = {line.split()[0] for line in self.lines("made") if line.endswith(f" {self.root}/data")}
        self.assertEqual(makers, {"1000"})

    def test_a_folder_of_root_that_others_can_change_is_named(self):
        self.make_program("bin/test", '[ "$AS_MYSQL $2" != "1000 $ROOT/data/." ]')
        done = self.run_it(OWNER="mysql")
        self.assertEqual((done.returncode, self.lines("owners")), (1, []))
        self.assertIn(f"user mysql cannot make {self.root}/data, or write to it. Make it, with owner 0.", done.stderr)


class Rotation(Script):
    """Logs of the main server and of instances lie in one folder."""

    PROGRAMS = (("systemctl", 'printf "%s\n" "$@" >$ROOT/asked'),)

    def signalled(self, text: str) -> set[str]:
        script = self.root / "rotation"
        script.write_text(text.split("postrotate\n")[1].split("endscript")[0])
        self.assertEqual(self.start(script).communicate(), (None, ""))
        return {x for x in (self.root / "asked").read_text().split() if ".service" in x}

    def test_all_servers_get_the_signal(self):
        text = (COMMON / "logrotate").read_text()
        self.assertEqual(self.signalled(text), {"mysql.service", "mysql@*.service"})
        runpy.run_path(str(COMMON.parent / "rpm/stage"))["add_ours"](self.root)
        text = (self.root / "etc/logrotate.d/mysql").read_text()
        self.assertEqual(self.signalled(text), {"mysqld.service", "mysqld@*.service"})


class Units(unittest.TestCase):
    def test_an_instance_differs_in_what_it_must(self):
        main, instance = (
            {line for line in product.adapted("mysql.service", changes).splitlines() if not line.startswith("#")}
            for changes in ({}, product.INSTANCE)
        )
        self.assertEqual(
            instance - main,
            {
                "Description=MySQL server with memdiag, instance %I",
                "RequiresMountsFor=/var/lib",
                "ExecStartPre=+/usr/libexec/mysql-memdiag/prestart %I",
                "ExecStart=/usr/sbin/mysqld --defaults-group-suffix=@%I",
            },
        )
        self.assertEqual(
            {line.split("=")[0] for line in main - instance},
            {"Description", "RequiresMountsFor", "ExecStartPre", "ExecStart", "Alias"},
        )

    def test_restart_takes_effect_whatever_restart_says(self):
        for changes in ({}, product.INSTANCE):
            self.assertIn("\nRestartForceExitStatus=16\n", product.adapted("mysql.service", changes))

    def test_words_that_are_gone_are_an_error(self):
        with self.assertRaisesRegex(Problem, "mysql.service has no 'gone' any more"):
            product.adapted("mysql.service", {"gone": ""})

    def test_nothing_of_the_drop_in_is_in_force(self):
        lines = (COMMON / "sandbox.conf").read_text().splitlines()
        self.assertEqual([x for x in lines if not x.startswith("#")], ["[Service]"])

    def test_the_scripts_name_the_series_that_is_built(self):
        pinned = json.loads((ROOT / "cmake/sources.json").read_text())
        series = ".".join(pinned["mysql"]["version"].split(".")[:2])
        for path, words in ((PREFLIGHT, f"series={series} "), (LIBEXEC / "options.sh", f"server mysqld-{series}")):
            self.assertIn(words, path.read_text(), path)

    def test_one_figure_against_the_oom_killer(self):
        """The server's advice names it as well: advisor_test.cc."""
        places = {COMMON / "mysql.service": r"#OOMScoreAdjust=(.*)", ROOT / "docs/packages.md": r"^OOMScoreAdjust=(.*)"}
        found = [re.findall(pattern, path.read_text(), re.MULTILINE) for path, pattern in places.items()]
        self.assertEqual(found, [["-600"]] * len(places))


class Documents(unittest.TestCase):
    """Which SQL of a document packaging/test runs."""

    def found(self, text: str) -> list[documents.Piece]:
        return list(documents.pieces(text))

    def test_code_in_prose_and_tables(self):
        text = (
            "Run `SELECT 1`, then\n`SET a = 0;\nDROP DATABASE b;` or `ls -l` and `SELECT.x`.\n| why | `FLUSH LOGS` |\n"
        )
        pieces = [("SELECT 1",), ("SET a = 0", "DROP DATABASE b"), ("FLUSH LOGS",)]
        self.assertEqual(self.found(text), pieces)

    def test_a_setting_is_a_statement_too(self):
        piece = ("SET GLOBAL memdiag_quiet_ms = 'ddl=0'",)
        self.assertEqual(self.found("`memdiag_quiet_ms = 'ddl=0'`"), [piece])

    def test_blocks_of_any_kind(self):
        for kind in ("", "sql", "mysql"):
            text = f"```{kind}\nSET a = 0; -- note\nGRANT b\n  TO c;\n```\n"
            self.assertEqual(self.found(text), [("SET a = 0", "GRANT b TO c")])
        self.assertEqual(self.found("```\ninstall x\nSET=1 y\n```\n"), [])

    def test_a_session_with_its_answer(self):
        text = "```\nmysql> SELECT a FROM b;\n| STATEMENT    |\n| FLUSH TABLES |\n+------+\n```\n"
        self.assertEqual(self.found(text), [("FLUSH TABLES",), ("SELECT a FROM b",)])
        text = "```\nmysql> SELECT a\n    ->   FROM b\\G\na: 1\n```\n"
        self.assertEqual(self.found(text), [("SELECT a FROM b",)])

    def test_a_line_of_comment_is_no_statement(self):
        text = "```sql\nSELECT 1;\n-- an hour later\nSELECT 2;  -- note\n```\n"
        self.assertEqual(self.found(text), [("SELECT 1", "SELECT 2")])

    def test_what_ends_a_server_or_begins_or_ends_its_replication_is_not_run(self):
        for text in ("SHUTDOWN", "RESTART", "STOP REPLICA", "START REPLICA", "START GROUP_REPLICATION"):
            self.assertEqual(self.found(f"`{text}`"), [], text)
        self.assertEqual(self.found("`START TRANSACTION`"), [("START TRANSACTION",)])

    def test_our_documents_have_some(self):
        every = [piece for path in documents.documents() for piece in self.found(path.read_text())]
        self.assertIn(("SELECT * FROM information_schema.memdiag_advice",), every)

    def test_what_leaves_the_log_off(self):
        drop, off, on = "DROP DATABASE a", "SET sql_log_bin = 0", "SET SESSION sql_log_bin=ON"
        for piece, left in (
            ((drop,), False),
            ((off, drop, on), False),
            ((off, drop), True),
            ((off, on, drop), False),
            (("SELECT 1",), False),
        ):
            self.assertEqual(documents.leaves_log_off(piece), left, piece)

    def test_no_variable_is_left_out(self):
        at_start, any_time = markdown.tables((ROOT / "docs/reference.md").read_text(), "System variables")
        of_start = {*stock_peer.PERSISTED_FOR_THE_START, *stock_peer.AT_THE_START}
        self.assertEqual({row[0] for row in at_start}, of_start)
        self.assertEqual({row[0] for row in any_time}, set(stock_peer.PERSISTED))

    def test_names_alone(self):
        for text, name in (
            ("INSTALL PLUGIN", True),
            ("SET GLOBAL memdiag_x", True),
            ("SELECT * FROM", False),
            ("SET GLOBAL memdiag_x = 1", False),
        ):
            self.assertEqual(documents.is_name(text), name, text)


@unittest.skipUnless(shutil.which("dpkg-deb") and not os.geteuid(), "needs dpkg, and root")
class Relations(Case):
    """The relations of the DEBs' control file, as dpkg takes them in a root of its own."""

    # A file of each that one of others' packages has, in whichever part.
    FILES = {
        "mysql-memdiag-server": ("usr/sbin/mysqld", "usr/bin/mysqldumpslow", "usr/bin/perror"),
        "mysql-memdiag-client": ("usr/bin/mysql", "usr/lib/mysql/plugin/mysql_native_password.so"),
    }

    def dpkg(self, *words: str | Path) -> str:
        command = ["dpkg", f"--root={self.root}/dpkg", "--log=/dev/null", "--force-unsafe-io", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        return done.stdout + done.stderr

    def pack(self, name: str, fields: str, paths: tuple[str, ...]) -> Path:
        control = f"Package: {name}\nVersion: 9.7.4\nArchitecture: all\nMaintainer: n <n@e>\nDescription: x\n{fields}"
        for path in paths:
            self.make_file(f"{name}/{path}", name)
        self.make_file(f"{name}/DEBIAN/control", control)
        subprocess.run(["dpkg-deb", "-b", self.root / name], check=True, stdout=subprocess.DEVNULL)
        return self.root / f"{name}.deb"

    def ours(self, name: str) -> Path:
        text = (COMMON.parent / "deb/control").read_text().replace("${mysql:Version}", "9.7.4")
        (part,) = [part for part in text.split("\n\n") if part.startswith(f"Package: {name}\n")]
        fields = re.findall(r"^(?:Conflicts|Provides|Replaces): .*\n(?: .*\n)*", part, re.MULTILINE)
        return self.pack(name, "".join(fields), self.FILES[name])

    def versioned(self, family: str, series: str, parts: tuple[str, ...]) -> list[Path]:
        paths = {
            "client": ("usr/bin/mysqldumpslow",),
            "client-core": ("usr/bin/mysql",),
            "server": ("usr/bin/mysqld_safe",),
            "server-core": ("usr/sbin/mysqld", "usr/bin/perror"),
        }
        # A server depends on its client.
        needs = {"client": ("client-core",), "server": ("server-core", "client")}
        packages = []
        for part in parts:
            depends = ", ".join(f"{family}-{x}-{series}" for x in needs.get(part, ()))
            fields = f"Provides: virtual-mysql-{part}\n" + (f"Depends: {depends}\n" if depends else "")
            packages.append(self.pack(f"{family}-{part}-{series}", fields, paths[part]))
        return packages

    def test_dpkg_alone_replaces_others_in_either_order(self):
        """Their client packages have files of this server's, and their server packages of this client's."""
        ours = [self.ours(name) for name in self.FILES]
        upstreams = [
            self.pack(name, fields, tuple(x for x in paths if not x.startswith("DEBIAN/")) or (f"usr/share/{name}",))
            for name, (fields, paths) in UPSTREAMS.items()
        ]
        debians = [
            self.pack("mariadb-client", "Depends: mariadb-client-core\n", ("usr/bin/mysqldumpslow", "usr/bin/perror")),
            self.pack("mariadb-client-core", "", ("usr/bin/mysql", "usr/bin/my_print_defaults")),
        ]
        # Ubuntu 22.04 and 24.04 have the series in the names. dpkg compares real names alone.
        ubuntus = [
            self.versioned(family, series, parts)
            for family, series in (("mysql", "8.0"), ("mariadb", "10.6"))
            for parts in (("client", "client-core"), ("client", "client-core", "server", "server-core"))
        ]
        for others, order in itertools.product((upstreams, debians, *ubuntus), (1, -1)):
            with self.subTest(others[0].name, order=order):
                shutil.rmtree(self.root / "dpkg", ignore_errors=True)
                for folder in ("info", "updates", "triggers"):
                    (self.root / "dpkg/var/lib/dpkg" / folder).mkdir(parents=True)
                for name in ("status", "available"):
                    self.make_file(f"dpkg/var/lib/dpkg/{name}")
                said = self.dpkg("-i", *others)
                said += self.dpkg("-i", "-B", *ours[::order])
                for name, paths in self.FILES.items():
                    self.assertIn("Status: install ok installed", self.dpkg("-s", name), said)
                    for path in paths:
                        self.assertEqual((self.root / "dpkg" / path).read_text(), name, said)


class Configured(Script):
    """The data directory that preflight finds in the machine's settings."""

    def found(self, **files: str) -> str:
        folder = self.root / "etc/mysql/conf.d"
        subprocess.run(["rm", "-rf", folder], check=True)
        folder.mkdir(parents=True)
        for name in ("theirs", "other"):
            (self.root / name / "mysql").mkdir(parents=True, exist_ok=True)
            (self.root / name / "aria_log_control").touch()
        for name, text in files.items():
            path = folder / f"{name}.cnf"
            path.write_text(text.replace("@", f"{self.root}/"))
        process = self.start(PREFLIGHT, "", "1")
        said = process.communicate()[1]
        found = re.search(rf"{self.root}/(\w+) is MariaDB's", said)
        return found[1] if found else ""

    def setUp(self):
        super().setUp()
        (self.root / "usr").mkdir()
        (self.root / "var/lib").mkdir(parents=True)

    def test_sections_that_mysqld_reads(self):
        for section in ("mysqld", "server", "mysqld-9.7"):
            for text in ("datadir=@theirs", ' datadir = "@theirs" # note', "datadir\t='@theirs'"):
                self.assertEqual(self.found(a=f"[{section}]\n{text}\n"), "theirs")

    def test_sections_that_it_does_not_read(self):
        for section in ("client", "mysqldump", "mysqld_safe", "mysqld@b", "mariadb", "mysqld-8.0"):
            text = f"[mysqld]\nport=1\n[{section}]\ndatadir=@theirs\n"
            self.assertEqual(self.found(a=text), "", section)
        self.assertEqual(self.found(a="[mysqld]\n#datadir=@theirs\n"), "")

    def test_the_last_one_counts(self):
        ours, other = "[mysqld]\ndatadir=@theirs\n", "[mysqldump]\ndatadir=@other\n"
        self.assertEqual(self.found(a=ours, b=other), "theirs")
        self.assertEqual(self.found(a=ours, b="[server]\ndatadir=@other"), "other")
        self.assertEqual(self.found(a="[mysqld]", b="datadir=@theirs\n"), "")


class Maintainer(Script):
    """The server's DEB: what its scripts do with settings, and with update-alternatives of this machine."""

    PROGRAMS = (
        (
            "update-alternatives",
            (
                "exec /usr/bin/update-alternatives --quiet --log /dev/null "
                '--altdir $ROOT/etc/alternatives --admindir $ROOT/var/lib/alternatives "$@"'
            ),
        ),
        ("systemd-sysusers", "true"),
        ("aa-enabled", "false"),
        ("dpkg-query", 'grep -qx "$2" $ROOT/owned'),
        ("systemctl", "true"),
        # Goes the way from my.cnf over the files that it includes. A folder that is not there is an error.
        (
            "my_print_defaults",
            """expand() {
  while IFS= read -r line; do
    case $line in
    "!includedir "*)
      [ -d "$ROOT${line#* }" ] || { echo "Fatal error in defaults handling." >&2; kill $$; }
      for file in "$ROOT${line#* }"*.cnf; do [ ! -f "$file" ] || expand <"$file"; done
      ;;
    *) printf "%s\\n" "$line" ;;
    esac
  done
}
{ cat $ROOT/etc/my.cnf 2>/dev/null; expand <$ROOT/etc/mysql/my.cnf; } | awk '
  /^\\[/ { counts = /^\\[(mysqld|server|mysqld-9.7)\\]/ }
  counts && /^[a-z]/ { sub(/ *= */, "="); print "--" $0 }'""",
        ),
    )
    # mysql-common has the first. dpkg makes the others.
    FOLDERS = ("etc/mysql/conf.d", *(COMMON.parent / "deb/mysql-memdiag-server.dirs").read_text().split())
    TEMPLATES = ("logrotate", "mysqld.cnf", "memdiag.cnf", "apparmor-mysqld")
    LOOPBACK = "etc/mysql/mysql.conf.d/mysqld-memdiag.cnf"
    OPEN = "the server listens on all addresses"
    X_OPEN = "the X protocol listens on all addresses"
    COPIES = ("etc/logrotate.d/mysql-server", "etc/apparmor.d/usr.sbin.mysqld")

    def setUp(self):
        super().setUp()
        for folder in (*self.FOLDERS, "etc/alternatives", "var/lib/alternatives"):
            (self.root / folder).mkdir(parents=True)
        for path, text in {
            "usr/share/debconf/confmodule": "db_stop() { echo loaded >>$ROOT/debconf; }\n"
            "db_purge() { :; }\ndb_input() { :; }\ndb_go() { :; }\n"
            "db_get() { RET=$(cat $ROOT/answer); }\n",
            "answer": "false",
            "etc/mysql/mysql-memdiag.cnf": (COMMON / "mysql.cnf").read_text(),
            "owned": "",
            **{f"usr/share/mysql-memdiag/{name}": name for name in self.TEMPLATES},
            **{f"usr/share/mysql-memdiag/{x}": (COMMON / x).read_text() for x in ("mysqld.cnf", "my.cnf")},
        }.items():
            self.make_file(path, text)
        self.install_libexec("deb")
        self.make_program("usr/libexec/mysql-memdiag/prestart", "echo ran >>$ROOT/prestart")

    def script(self, name: str, *args: str, says: str = "", status: int = 0) -> None:
        script = COMMON.parent / f"deb/mysql-memdiag-server.{name}"
        process = self.start(script, *args)
        said = process.communicate()[1]
        self.assertIn(says, said)
        self.assertEqual(bool(says), bool(said), said)
        self.assertEqual(process.returncode, status)

    def settings(self) -> str:
        return os.path.basename(os.path.realpath(self.root / "etc/mysql/my.cnf"))

    def test_a_stock_servers_settings_are_in_force_again_after_ours(self):
        self.make_file("etc/mysql/mysql.cnf", (COMMON / "mysql.cnf").read_text())
        self.script("postinst", "configure", "")
        self.assertEqual(self.settings(), "mysql.cnf")
        self.script("prerm", "remove")
        self.assertEqual(self.settings(), "mysql.cnf")

    def mariadb_common(self) -> None:
        (self.root / "etc/mysql/mariadb.cnf").touch()
        link, place = (self.root / "etc/mysql" / x for x in ("my.cnf", "mariadb.cnf"))
        command = [self.root / "bin/update-alternatives", "--install"]
        subprocess.run([*command, link, "my.cnf", place, "500"], env={"ROOT": str(self.root)}, check=True)

    def test_mariadbs_library_does_not_take_the_servers_settings(self):
        self.script("postinst", "configure", "")
        self.mariadb_common()
        self.assertEqual(self.settings(), "mysql-memdiag.cnf")
        (self.root / "etc/mysql/mysql.cnf").touch()
        self.script("postinst", "configure", "1")
        self.assertEqual(self.settings(), "mysql.cnf")
        self.script("prerm", "remove")
        self.assertEqual(self.settings(), "mariadb.cnf")

    def test_settings_without_a_stock_server(self):
        self.script("postinst", "configure", "")
        self.assertEqual(self.settings(), "mysql-memdiag.cnf")
        self.script("prerm", "remove")
        self.assertFalse((self.root / "etc/mysql/my.cnf").is_symlink())

    def there(self, path: str) -> bool:
        return (self.root / path).exists()

    def first_installation(self, says: str = "", **files: str) -> tuple[bool, bool]:
        """Whether it limits the server to loopback, and gives it a profile."""
        for folder in ("etc/mysql", "etc/apparmor.d", "etc/logrotate.d", "var/lib"):
            shutil.rmtree(self.root / folder, ignore_errors=True)
        (self.root / "etc/my.cnf").unlink(True)
        for folder in (*self.FOLDERS, "var/lib/alternatives"):
            (self.root / folder).mkdir(parents=True)
        self.make_file("etc/mysql/mysql-memdiag.cnf", (COMMON / "mysql.cnf").read_text())
        for path, text in files.items():
            self.make_file(path, text)
        self.script("postinst", "configure", "", says=says)
        return self.there(self.LOOPBACK), self.there(self.COPIES[1])

    def test_a_server_that_was_here_goes_on_as_it_was(self):
        """Upstream's server on Debian has no profile. Its data, certificates and logs may lie anywhere."""
        self.assertEqual(self.first_installation(), (True, True))
        for files in (
            {"var/lib/mysql/mysql/x": ""},
            {"etc/mysql/conf.d/a.cnf": "[mysqld]\ndatadir = /srv/mysql\n"},
            {"etc/mysql/mysql.conf.d/a.cnf": "[server]\nlog-error=/var/log/x.log\n"},
            {"etc/mysql/mysql.conf.d/a.cnf": "[mysqld-9.7]\nbind-address = *\n"},
            {"etc/mysql/mysql.conf.d/a.cnf": "[mysqld]\npid-file\n"},
            {"etc/mysql/mysql.conf.d/a.cnf": "[mysqld]\nloose-mysqlx-bind-address = *\n"},
        ):
            with self.subTest(files):
                says = self.X_OPEN if "\nbind" in str(*files.values()) else self.OPEN
                self.assertEqual(self.first_installation(says, **files), (False, False))
                self.script("postinst", "configure", "1")
                shutil.rmtree(self.root / "var/lib/mysql", ignore_errors=True)
                self.script("postinst", "configure", "1")
                self.assertEqual((self.there(self.LOOPBACK), self.there(self.COPIES[1])), (False, False))

    def test_tuning_opens_no_port_and_keeps_its_folders(self):
        files = {"etc/mysql/conf.d/tuning.cnf": "[mysqld]\ntmpdir = /srv/tmp\n"}
        self.assertEqual(self.first_installation(**files), (True, False))

    def test_a_my_cnf_that_does_not_name_our_folder_opens_no_port(self):
        """update-alternatives leaves an administrator's own file."""
        everywhere = self.root / "etc/my.cnf"
        files = {"etc/mysql/my.cnf": "[mysqld]\ntmpdir = /srv/tmp\n"}
        for others in (False, True):
            said = f"my.cnf does not name the folder {self.root}/etc/mysql/mysql.conf.d"
            self.assertEqual(self.first_installation(said, **files), (False, False))
            self.assertIn("\nbind_address = 127.0.0.1\n", everywhere.read_text())
            # Another server, MariaDB for example, reads the groups without a version.
            self.assertEqual(re.findall(r"^\[.*", everywhere.read_text(), re.MULTILINE), ["[mysqld-9.7]"])
            self.script("postinst", "configure", "1")
            if others:  # a purge beside another server leaves the file, and the next purge deletes it
                program = self.make_file("usr/sbin/mysqld")
                self.script("postrm", "purge")
                program.unlink()
                self.assertTrue(everywhere.exists())
                self.script("postinst", "configure", "", says=said)
            self.script("postrm", "purge")
            self.assertFalse(everywhere.exists())
        self.assertEqual((self.root / "etc/mysql/my.cnf").read_text(), *files.values())
        # Any server on the machine reads it.
        self.first_installation(said, **files)
        everywhere.write_text("mine")
        self.script("postrm", "purge")
        self.assertEqual(everywhere.read_text(), "mine")

    def test_settings_that_others_may_read_stop_no_server_that_lacks_the_x_protocol(self):
        unknown = re.compile(r"^mysqlx", re.MULTILINE)
        self.assertIsNone(unknown.search((COMMON / "mysqld.cnf").read_text()))

    def test_a_port_that_the_installation_opens_is_named(self):
        data = {"var/lib/mysql/mysql/x": ""}
        cases = (
            (data, self.OPEN),
            ({"etc/mysql/conf.d/x.cnf": "[mysqld]\nmysqlx_bind_address = 127.0.0.1\n"}, self.OPEN),
            *(
                ({**data, "etc/mysql/conf.d/x.cnf": f"[mysqld]\n{settings}\n"}, says)
                for settings, says in (
                    ("bind_address = ::1\nloose-mysqlx_bind-address = ::1", ""),
                    ("bind_address = ::1", self.X_OPEN),
                    ("bind_address = ::1\nmysqlx = OFF", ""),
                    ("bind_address = ::1\nloose_mysqlx=0", ""),
                    ("bind_address = ::1\nskip-mysqlx", ""),
                    ("bind_address = ::1\nmysqlx = OFF\nmysqlx = ON", self.X_OPEN),
                    ("mysqlx = off", self.OPEN),
                    ("skip-networking", ""),
                    ("skip_networking = ON", ""),
                    ("skip_networking = OFF", self.OPEN),
                    ("skip-networking\nskip-networking = 0", self.X_OPEN),
                )
            ),
        )
        for files, says in cases:
            with self.subTest(files):
                self.assertEqual(self.first_installation(says, **files), (False, False))
        self.first_installation(f"{self.OPEN}.\nmysql-memdiag: no setting in force has a mysqlx_bind_address", **data)
        theirs = {"etc/my.cnf": "[mysqld]\nport = 3307\n", "etc/mysql/my.cnf": "[client]\n"}
        self.assertEqual(self.first_installation(self.OPEN, **theirs), (False, False))
        self.assertEqual([(self.root / path).read_text() for path in theirs], [*theirs.values()])

    def test_a_copy_of_a_stock_unit_whose_program_is_gone_is_named(self):
        program = self.make_file("usr/sbin/mysqld")
        units = self.root / "etc/systemd/system"
        units.mkdir(parents=True)
        for name in ("mysql.service", "mysqld@.service"):
            unit = self.make_file(units / name, self.UNIT.format(self.root))
            said = f"{unit} starts {self.root}/usr/libexec/theirs, which is not there"
            self.script("postinst", "configure", "1", says=said)
            unit.unlink()
        # A unit without ExecStart= starts nothing, so no line of the copy is worth keeping.
        unit = self.make_file(units / "mysql.service", self.UNIT.format("/no/such"))
        advice = f"  rm {unit} && systemctl daemon-reload\n"
        process = self.start(LIBEXEC / "check-units")
        said = process.communicate()[1]
        for missing in ("libexec/theirs", "sbin/mysqld"):
            self.assertIn(f"{unit} starts /no/such/usr/{missing}, which is not there", said)
        self.assertEqual((said.count("cannot start"), said.count(advice), said.count("starts")), (1, 1, 2), said)
        unit.unlink()
        (units / "mysql.service").symlink_to("/dev/null")  # masked
        (units / "mysqld.service").symlink_to("/no/such/unit")
        (units / "mysql@.service").write_text(f"[Service]\nExecStart={program}\n")
        self.script("postinst", "configure", "1")

    def test_settings_that_cannot_be_read_may_be_a_servers_own(self):
        files = {"etc/mysql/mysql-memdiag.cnf": "!includedir /etc/mysql/conf.d/\n!includedir /etc/none/\n"}
        self.assertEqual(self.first_installation("Fatal error", **files), (False, False))

    def test_the_folders_that_my_cnf_includes_are_there(self):
        """Without one, the server and each client would end."""
        included = re.findall(r"^!includedir /(.*)/$", (COMMON / "mysql.cnf").read_text(), re.MULTILINE)
        self.assertEqual(tuple(included), self.FOLDERS)

    def test_settings_that_the_server_does_not_read_open_no_port(self):
        files = {
            "etc/mysql/mariadb.conf.d/50-server.cnf": "[mysqld]\nbind-address = 127.0.0.1\n",
            "etc/mysql/conf.d/client.cnf": "[client]\nuser = x\n[mysqld_safe]\nlog-error = /x\n",
            "etc/logrotate.d/mariadb": f"{self.root}/var/log/mysql/*.log {{\n}}\n",
        }
        said = f"MariaDB left {self.root}/etc/logrotate.d/mariadb"
        self.assertEqual(self.first_installation(said, **files), (True, True))

    def test_an_upgrade_leaves_the_file_that_was_a_conffile(self):
        mine = self.make_file("etc/mysql/mysql.conf.d/memdiag.cnf", "[mysqld]\nloose_memdiag_sessions = ON\n")
        self.script("postinst", "configure", "1")
        self.assertIn("sessions", mine.read_text())
        mine.unlink()
        self.script("postinst", "configure", "1")
        self.assertFalse(mine.exists())
        self.script("postinst", "configure", "")
        self.assertEqual(mine.read_text(), "memdiag.cnf")
        self.script("postinst", "configure", "1")
        self.script("postrm", "purge")
        self.assertFalse(mine.exists())

    def test_no_conffile_is_made_to_be_edited(self):
        """dpkg asks about an edited one whose text is another in the next version, and an unattended upgrade stops.

        Nothing has to be edited in these two. mysql.cnf, which is /etc/mysql/my.cnf, names the folders for settings."""
        conffiles = {name for name, path in deb.COMMON_FILES.items() if path.startswith("etc/")}
        self.assertEqual(conffiles, {"mysql.cnf", "apparmor-memdiag"})

    def test_undone_steps_leave_it_as_configured(self):
        for step in ("abort-remove", "abort-upgrade", "abort-deconfigure"):
            self.script("postinst", "configure", "")
            self.script("prerm", "remove")
            self.script("postinst", step)
            self.assertEqual(self.settings(), "mysql-memdiag.cnf")
            for path in self.COPIES:
                self.assertTrue((self.root / path).exists(), path)

    def test_an_upgrade_goes_on_where_the_server_cannot_start(self):
        prestart = self.root / "usr/libexec/mysql-memdiag/prestart"
        prestart.write_text("#!/bin/sh\necho 'mount it' >&2\nexit 1\n")
        self.script("postinst", "configure", "", says="mount it\n", status=1)
        for words in (
            ("configure", "1"),
            ("abort-upgrade", "1"),
            ("abort-remove",),
            ("abort-remove", "in-favour", "other", "1"),
            ("abort-deconfigure", "in-favour", "other", "1"),
        ):
            with self.subTest(words):
                self.script("postinst", *words, says="cannot start like this.\n")

    def config_under(self, parent):
        """The server package's script config, as a program of that name below apt-get runs it."""
        for name in ("apt-get", "dpkg-preconfigure"):
            shutil.copy(os.path.realpath("/bin/sh"), self.root / "bin" / name)
        name = "mysql-memdiag-server.config"
        text = (COMMON.parent / "deb" / name).read_text()
        script = self.root / name
        script.write_text(text.replace("#PREFLIGHT#\n", PREFLIGHT.read_text()))
        return subprocess.run(
            [self.root / "bin/apt-get", "-c", f'{parent} -c "sh {self.moved(script)}; :"; :'],
            env={"PATH": f"{self.root}/bin:{os.environ['PATH']}"},
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    def test_what_is_refused_stops_apt_before_it_begins_and_not_later(self):
        (self.root / "var/lib/mysql/mysql").mkdir(parents=True)
        (self.root / "var/lib/mysql/aria_log_control").touch()
        for parent, status, words in (("dpkg-preconfigure", -signal.SIGTERM, "apt is stopped"), ("sh", 0, "")):
            done = self.config_under(parent)
            self.assertEqual(done.returncode, status)
            self.assertIn(words, done.stderr)
            self.assertEqual("MariaDB" in done.stderr, bool(words))

    def test_an_estimate_does_not_stop_apt(self):
        self.make_program("bin/df", 'printf "head\\n- 9 9 9 9%% /\\n"')
        done = self.config_under("dpkg-preconfigure")
        self.assertEqual(done.returncode, 0)
        self.assertIn("no disk", done.stderr)
        self.assertNotIn("apt is stopped", done.stderr)

    def test_apparmors_rules_are_for_mysqld_alone(self):
        site = self.root / "etc/apparmor.d/local/usr.sbin.mysqld"
        line = "include if exists <abstractions/mysql-memdiag>\n"
        for before in ("", "  /srv/** r,\n", "  /srv/** r,"):
            with self.subTest(before):
                if before:
                    self.make_file(site, before)
                for _ in range(2):
                    self.script("postinst", "configure", "")
                    kept = before.rstrip("\n") + "\n" if before else ""
                    self.assertEqual(site.read_text(), kept + line)
                self.script("prerm", "remove")
                self.assertEqual(site.read_text() if site.exists() else "", kept)
        places = deb.COMMON_FILES.values()
        self.assertIn("etc/apparmor.d/abstractions/mysql-memdiag", places)
        self.assertFalse([x for x in places if "abstractions/mysql.d" in x])

    def test_the_file_that_another_profile_includes_stays(self):
        site = self.make_file("etc/apparmor.d/local/usr.sbin.mysqld", "")
        self.script("postinst", "configure", "")
        self.script("prerm", "remove")
        self.assertEqual(site.read_text(), "")

    def test_apparmors_rules_have_the_folders_of_an_instance(self):
        rules = re.findall(r"^  (/\S+|@\S+) (\w+),$", (COMMON / "apparmor-memdiag").read_text(), re.MULTILINE)
        for path in ("/var/lib/mysql-replica1/ibdata1", "@{run}/mysqld/replica1.sock", "@{run}/mysqld/replica1.pid"):
            given = [right for rule, right in rules if fnmatchcase(path, re.sub(r"\*\*|\{,\*\*\}$", "*", rule))]
            self.assertEqual(given, ["rwk"], path)

    def test_apparmors_rules_have_the_settings_outside_of_etc_mysql(self):
        """Upstream's profile has /etc/mysql alone. The file may have the addresses that the installation set."""
        for name in ("apparmor-mysqld", "apparmor-memdiag"):
            self.assertIn("\n  /etc/my.cnf r,\n", (COMMON / name).read_text(), name)

    def test_apparmors_rules_have_the_manifest_and_the_components_settings(self):
        """The server takes one that it may not read for one that is not there. So a keyring would have no keys."""
        rules = (COMMON / "apparmor-memdiag").read_text()
        for path in ("/usr/sbin/mysqld.my", "/usr/lib/mysql/plugin/*.cnf"):
            self.assertIn(f"\n  {path} r,\n", rules)

    def test_apparmors_rules_have_the_scheduler_of_each_kind_of_disk(self):
        rules = re.findall(r"^  (/sys/\S+) r,$", (COMMON / "apparmor-memdiag").read_text(), re.MULTILINE)
        for disk in (
            "pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda",
            "pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1",
            "virtual/block/dm-0",
        ):
            path = f"/sys/devices/{disk}/queue/scheduler"
            self.assertTrue([x for x in rules if fnmatchcase(path, x.replace("**", "*"))], path)

    def purge(self, says: str = "") -> bool:
        """Purges with the answer yes; true if the data are gone."""
        (self.root / "answer").write_text("true")
        data = self.root / "var/lib/mysql"
        data.mkdir(parents=True, exist_ok=True)
        (data / "ibdata1").touch()
        self.script("postrm", "purge", says=says)
        return not data.exists()

    def test_purging_deletes_our_data_where_that_is_the_answer(self):
        self.assertTrue(self.purge())

    def test_purging_follows_no_link_and_keeps_lost_and_found(self):
        data, victim = self.root / "var/lib/mysql", self.root / "victim"
        for folder in (data / "shop [*]", data / "lost+found", victim):
            folder.mkdir(parents=True)
        (victim / "kept").touch()
        (data / "link").symlink_to(victim)
        (self.root / "var/log").mkdir()
        (self.root / "var/log/mysql").symlink_to(victim)
        self.assertFalse(self.purge(f"/var/log/mysql leads to {victim}, which is kept"))
        self.assertEqual(os.listdir(data), ["lost+found"])
        self.assertEqual(os.listdir(victim), ["kept"])
        self.assertEqual(os.listdir(self.root / "var/log"), [])

    def test_purging_keeps_the_keys_of_data_that_stay(self):
        keys = self.root / "var/lib/mysql-keyring"
        replica = self.root / "var/lib/mysql-replica1"
        for setting, other, why in (
            ("", None, ""),
            (f"datadir = '{self.root}/var/lib/mysql/' # ours\n", None, ""),
            ("", replica, f"{replica} stays"),
            ("[mysqld]\n datadir=/data/mysql\n", None, "/data/mysql stays"),
        ):
            with self.subTest(why):
                self.make_file(keys / "key")
                self.make_file("etc/mysql/mysql.conf.d/mine.cnf", setting)
                if other:
                    self.make_file(other / "mysql.ibd")
                self.assertTrue(self.purge(f"mysql-keyring is kept: {why}" if why else ""))
                self.assertEqual(keys.exists(), bool(why))
                shutil.rmtree(replica, ignore_errors=True)

    def test_purging_keeps_the_keys_and_data_that_a_link_leads_to(self):
        for path in ("srv/mysql/ibdata1", "var/lib/mysql-keyring/key"):
            self.make_file(path)
        (self.root / "var/lib/mysql").symlink_to("../../srv/mysql")
        self.assertTrue(self.purge(f"mysql leads to {self.root}/srv/mysql, which is kept"))
        self.assertEqual(os.listdir(self.root / "srv/mysql"), ["ibdata1"])
        self.assertTrue((self.root / "var/lib/mysql-keyring/key").exists())

    def test_purging_empties_a_mount_and_no_other_mount(self):
        namespace = ["unshare", "--map-root-user", "--mount"]
        tried = subprocess.run([*namespace, "mount", "--bind", self.root, self.root], capture_output=True, check=False)
        if tried.returncode:
            self.skipTest("no namespace of mounts here")
        data, others = self.root / "var/lib/mysql", self.root / "others"
        places = [data / "shop/a [b]", data / "c d"]
        for folder in (*places, others):
            folder.mkdir(parents=True)
        for file in (data / "ibdata1", data / "shop/t.ibd", others / "kept"):
            file.touch()
        (self.root / "answer").write_text("true")
        script = self.moved(COMMON.parent / "deb/mysql-memdiag-server.postrm")
        mounts = 'mount --bind "$2" "$2"; mount --bind "$3" "$4"; mount --bind "$3" "$5"; sh "$1" purge; sh "$1" purge'
        path = f"{self.root}/bin:{os.environ['PATH']}"
        done = captured(
            [*namespace, "sh", "-ec", mounts, "sh", script, data, others, *places],
            env={"PATH": path, "ROOT": str(self.root)},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(others), ["kept"])
        left = sorted(str(x.relative_to(data)) for x in data.rglob("*"))
        self.assertEqual(left, ["c d", "shop", "shop/a [b]"])

    def test_purging_keeps_mariadbs_data(self):
        data = self.root / "var/lib/mysql"
        data.mkdir(parents=True)
        for name in ("aria_log_control", "mariadb_upgrade_info"):
            (data / name).touch()
            self.assertFalse(self.purge("mysql is MariaDB's"))
            (data / name).unlink()

    def test_purging_keeps_the_data_where_a_server_is_installed(self):
        for name in ("mysqld", "mariadbd"):
            program = self.root / "usr/sbin" / name
            program.parent.mkdir(exist_ok=True)
            program.touch()
            self.make_file("var/lib/mysql-memdiag/mysqld.cnf.sha256", "")
            self.assertFalse(self.purge())
            program.unlink()
            self.assertFalse((self.root / "var/lib/mysql-memdiag").exists())

    def test_what_a_purge_beside_another_server_left_goes_with_a_later_one(self):
        files = ("etc/mysql/mysql.conf.d/memdiag.cnf", self.LOOPBACK)
        self.script("postinst", "configure", "")
        self.script("prerm", "remove")
        program = self.make_file("usr/sbin/mysqld")
        self.script("postrm", "purge")
        program.unlink()
        self.assertTrue(all(self.there(path) for path in files))
        self.script("postinst", "configure", "")
        self.script("prerm", "remove")
        self.script("postrm", "purge")
        self.assertFalse([path for path in files if self.there(path)])

    def test_purging_keeps_the_data_where_there_is_no_debconf(self):
        (self.root / "usr/share/debconf/confmodule").unlink()
        self.assertFalse(self.purge())

    def test_purging_keeps_the_data_of_a_running_server(self):
        data = self.root / "var/lib/mysql"
        data.mkdir(parents=True)
        (data / "ibdata1").touch()
        for where, opens in ((data, ""), ("/", f"exec 3<{data}/ibdata1; ")):
            process = subprocess.Popen(
                ["sh", "-c", f"{opens}echo; read line"], cwd=where, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            with process:
                process.stdout.readline()
                self.assertFalse(self.purge(f"process {process.pid} (sh) works in"))
                process.stdin.close()
        self.assertTrue(self.purge())

    def test_the_question_is_known(self):
        self.script("postinst", "configure", "")
        self.assertTrue((self.root / "debconf").exists())

    def test_what_an_administrator_deleted_does_not_come_back(self):
        self.script("postinst", "configure", "")
        local = "etc/apparmor.d/local/usr.sbin.mysqld"
        for path in (*self.COPIES, local):
            (self.root / path).unlink()
        self.script("postinst", "configure", "1")
        self.script("prerm", "remove")
        self.script("postinst", "configure", "1")
        for path in (*self.COPIES, local):
            self.assertFalse((self.root / path).exists(), path)

    def test_what_an_administrator_deleted_of_a_stock_server_does_not_come_back(self):
        (self.root / "owned").write_text("".join(f"{self.root / path}\n" for path in self.COPIES))
        self.script("postinst", "configure", "")
        for path in self.COPIES:
            self.assertFalse((self.root / path).exists(), path)

    def test_a_reinstallation_brings_back_what_removal_deleted(self):
        for _ in range(2):
            self.script("postinst", "configure", "")
            for path in (*self.COPIES, "etc/apparmor.d/local/usr.sbin.mysqld"):
                self.assertTrue((self.root / path).exists(), path)
            self.script("prerm", "remove")

    def test_the_profile_does_not_come_back_over_another_servers_settings(self):
        for meanwhile, back in (
            ({}, True),
            ({"etc/mysql/conf.d/a.cnf": "[mysqld]\ndatadir = /srv/mysql\n"}, False),
            ({"etc/mysql/mysql-memdiag.cnf": "!includedir /etc/none/\n"}, False),
        ):
            with self.subTest(meanwhile):
                self.assertEqual(self.first_installation(), (True, True))
                self.script("prerm", "remove")
                self.assertFalse(self.there(self.COPIES[1]))
                for path, text in meanwhile.items():
                    self.make_file(path, text)
                self.script("postinst", "configure", "1", says="Fatal" if "none" in str(meanwhile) else "")
                self.assertEqual(self.there(self.COPIES[1]), back)
                # Decided once: not by a later installation.
                self.assertEqual(list((self.root / "var/lib/mysql-memdiag").glob("*.removed")), [])

    def test_a_backslash_in_the_settings_is_no_escape(self):
        mine = {"etc/mysql/conf.d/a.cnf": "[mysqld]\nft_stopword_file = a\\tb\\c\nbind-address = *\nmysqlx = OFF\n"}
        self.assertEqual(self.first_installation(**mine), (False, False))
        self.first_installation()
        self.make_file("etc/mysql/conf.d/a.cnf", mine["etc/mysql/conf.d/a.cnf"])
        self.script("prerm", "remove")
        self.script("postinst", "configure", "1")
        self.assertTrue(self.there(self.COPIES[1]))

    def test_settings_that_cannot_be_read_at_the_removal_are_not_the_same_later(self):
        self.first_installation()
        (self.root / self.FOLDERS[0]).rmdir()
        self.script("prerm", "remove", says="Fatal error")
        self.script("postinst", "configure", "1", says="Fatal error")
        self.assertFalse(self.there(self.COPIES[1]))

    def test_the_kernel_has_a_profile_as_long_as_its_file_is_there(self):
        self.make_program("bin/aa-enabled", "true")
        self.make_program("bin/apparmor_parser", 'for file; do :; done; [ -e "$file" ] && echo "$1" >>$ROOT/asked')
        profile = self.root / self.COPIES[1]
        for change, asked in (((lambda: None), ["-r", "-R"]), (lambda: profile.write_text("mine"), ["-r"])):
            self.script("postinst", "configure", "")
            change()
            self.script("prerm", "remove")
            self.assertEqual((self.root / "asked").read_text().split(), asked)
            (self.root / "asked").unlink()
        profile.unlink()
        self.script("postinst", "configure", "1")
        self.assertFalse((self.root / "asked").exists())

    def test_the_kernel_forgets_a_changed_profile_with_its_purge(self):
        """Upstream's server on Debian has no profile, and would run under the one in the kernel until the next boot."""
        self.make_program(
            "bin/apparmor_parser", 'for file; do :; done; [ -e "$file" ] && echo "$1" >>$ROOT/asked; false'
        )
        profile = self.root / self.COPIES[1]
        for enabled, asked in (("true", "-R\n"), ("false", "")):
            self.make_program("bin/aa-enabled", enabled)
            self.script("postinst", "configure", "")
            profile.write_text("mine")
            self.script("prerm", "remove")
            self.make_file("asked")
            self.script("postrm", "purge")
            self.assertFalse(profile.exists())
            self.assertEqual((self.root / "asked").read_text(), asked)

    def test_copies_that_nobody_changed_go_after_an_upgrade_too(self):
        self.script("postinst", "configure", "")
        for name in self.TEMPLATES:
            (self.root / "usr/share/mysql-memdiag" / name).write_text("newer")
        self.script("postinst", "configure", "1")
        self.assertEqual((self.root / self.COPIES[0]).read_text(), "logrotate")
        self.script("prerm", "remove")
        for path in self.COPIES:
            self.assertFalse((self.root / path).exists(), path)

    def test_what_was_changed_or_there_before_stays(self):
        before, changed = (self.root / path for path in self.COPIES)
        before.parent.mkdir()
        before.write_text("logrotate")  # the same, but not ours
        self.script("postinst", "configure", "")
        changed.write_text("mine")
        self.script("prerm", "remove")
        self.assertTrue(before.exists() and changed.exists())
        self.script("postrm", "purge")
        self.assertTrue(before.exists())
        self.assertFalse(changed.exists())
        self.assertFalse((self.root / "var/lib/mysql-memdiag").exists())

    def test_purging_leaves_what_is_a_stock_servers_by_now(self):
        self.script("postinst", "configure", "")
        theirs = self.root / self.COPIES[1]
        theirs.write_text("changed")
        (self.root / "owned").write_text(f"{theirs}\n")
        self.script("prerm", "remove")
        self.script("postrm", "purge")
        self.assertTrue(theirs.exists())
