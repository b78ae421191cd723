"""Starting and stopping, with small programs in the place of mysqld."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from unittest import mock

from harness import phrase_searches
from harness.problem import Problem
from harness.scratch import Scratch
from harness.server import Build, Server, Unpacked, initialise, private_socket
from harness.tests.interrupted import terminated_while_starting


class Case(Scratch):
    def setUp(self):
        super().setUp()
        self.folder = self.root / "folder"

    def build(self, script: str) -> Build:
        """A build whose mysqld is a shell script."""
        self.make_program("bld/runtime_output_directory/mysqld", script)
        return Build(self.root / "bld")


class Starting(Case):
    def test_a_missing_build_names_the_command(self):
        with self.assertRaisesRegex(Problem, "cmake --preset linked"):
            Build.of_preset(self.root, "linked")

    def test_without_a_data_directory(self):
        with self.assertRaisesRegex(Problem, "data is missing"):
            Server(self.build("exit 0"), self.folder).start()

    def test_a_server_that_ends_shows_its_errors_only(self):
        (self.folder / "data").mkdir(parents=True)
        build = self.build("echo 1 [Note] hello\necho 2 [ERROR] no room\nexit 1")
        with self.assertRaisesRegex(Problem, r"exit 1\):\n  2 \[ERROR\] no room$"):
            Server(build, self.folder).start()

    def test_a_server_that_never_answers_is_ended(self):
        (self.folder / "data").mkdir(parents=True)
        # On a busy machine the script may not have begun by then, and have written no pid.
        started = []
        popen = subprocess.Popen

        def kept(*words, **options):
            started.append(popen(*words, **options))
            return started[-1]

        with mock.patch.object(subprocess, "Popen", kept), self.assertRaisesRegex(Problem, "did not answer within 3 s"):
            Server(self.build("exec sleep 1000"), self.folder).start(timeout=3)
        self.assertIsNotNone(started[0].poll())

    def test_a_signal_while_it_starts(self):
        """The server is known by then, and is ended."""
        (self.folder / "data").mkdir(parents=True)
        server = Server(self.build("exec sleep 1000"), self.folder)
        with terminated_while_starting() as started:
            with self.assertRaises(KeyboardInterrupt), server:
                server.start()
            self.assertEqual(started[0].wait(180), -signal.SIGTERM)

    def test_another_server_on_the_socket(self):
        (self.folder / "data").mkdir(parents=True)
        server = Server(self.build("exit 0"), self.folder)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(server.socket))
            other.listen()
            other.settimeout(0)
            Path(f"{server.socket}.lock").write_text("123\n")
            # It says nothing: a client that connects is not answered.
            with self.assertRaisesRegex(Problem, "another server .process 123. is"):
                server.start()
            with self.assertRaisesRegex(Problem, "did not start"):
                server.attach()

    def test_its_folder_is_closed_to_other_users(self):
        (self.folder / "data").mkdir(parents=True)
        self.folder.chmod(0o755)
        server = Server(self.build(f"stat -c %a {self.folder} >{self.root}/mode; exit 1"), self.folder)
        with self.assertRaisesRegex(Problem, "ended while starting"):
            server.start()
        self.assertEqual((self.root / "mode").read_text(), "700\n")

    def test_the_folder_of_a_server_that_runs_is_closed_to_other_users(self):
        (self.folder / "data").mkdir(parents=True)
        self.folder.chmod(0o755)
        server = Server(self.build("exit 0"), self.folder)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(server.socket))
            other.listen()
            server.pid_file.write_text(str(os.getpid()))
            with (
                mock.patch.object(Path, "read_bytes", lambda _: f"--datadir={server.data}".encode()),
                mock.patch.object(server, "runs_current_program", lambda: True),
                mock.patch.object(phrase_searches, "say"),
            ):
                phrase_searches.start(server)
        self.assertEqual(self.folder.stat().st_mode & 0o777, 0o700)

    def test_a_folder_of_another_user(self):
        (self.folder / "data").mkdir(parents=True)
        server = Server(self.build("exit 0"), self.folder)
        with (
            mock.patch.object(os, "getuid", lambda: self.folder.stat().st_uid + 1),
            self.assertRaisesRegex(Problem, "folder belongs to another user"),
        ):
            server.start()

    def test_a_dead_socket_is_no_server(self):
        self.folder.mkdir()
        server = Server(self.build("exit 0"), self.folder)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(server.socket))
        self.assertIsNone(server.socket_owner())
        self.assertFalse(server.attach())


class WithoutLibraries(Case):
    """The Python of another user may have no pymysql, and ./run-demo --stop needs nothing."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.dict(sys.modules, {"pymysql": None}))
        self.folder.mkdir()
        self.server = Server(self.build("exit 0"), self.folder)

    def test_there_is_no_server(self):
        self.assertFalse(self.server.attach())
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(self.server.socket))
            self.assertFalse(self.server.attach())
            other.listen()
            self.assertEqual(self.server.socket_owner(), 0)

    def test_a_server_is_ended(self):
        process = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        threading.Thread(target=process.wait).start()  # its parent is another program otherwise
        self.server.pid = process.pid
        self.server.stop()
        self.assertEqual(process.wait(), -signal.SIGTERM)


class Initialising(Case):
    def test_a_failure_leaves_nothing(self):
        build = self.build('for x; do case $x in --datadir=*) mkdir "${x#*=}";; esac; done\necho broken\nexit 1')
        with self.assertRaisesRegex(Problem, "could not initialise .*\n.*broken"):
            initialise(build, self.folder / "data")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_success_is_renamed(self):
        build = self.build('for x; do case $x in --datadir=*) mkdir "${x#*=}";; esac; done')
        initialise(build, self.folder / "data")
        self.assertEqual(list(self.folder.iterdir()), [self.folder / "data"])
        self.assertEqual(self.folder.stat().st_mode & 0o777, 0o700)
        with self.assertRaisesRegex(Problem, "exists already"):
            initialise(build, self.folder / "data")

    def test_the_next_one_of_a_server_and_options_is_a_copy(self):
        script = (
            'for x; do case $x in --datadir=*) mkdir "${x#*=}"; echo uuid >"${x#*=}/auto.cnf"; echo $# >"${x#*=}/made";;'
            f' esac; done\necho called >>"{self.root}/calls"'
        )

        def made(name: str, *options: str) -> int:
            initialise(build, self.folder / name, options)
            self.assertEqual([path.name for path in (self.folder / name).iterdir()], ["made"])
            return len((self.root / "calls").read_text().split())

        build = self.build(script)
        self.assertEqual(made("one"), 1)
        self.assertEqual(made("two"), 1)
        self.assertEqual(made("other", "--innodb-page-size=4k"), 2)
        self.assertNotEqual((self.folder / "other/made").read_text(), (self.folder / "one/made").read_text())
        self.assertEqual(made("three"), 2)
        build = self.build(script + "\n# a later one")
        self.assertEqual(made("four"), 3)
        kept = [path for path in (build.directory / "initialised").iterdir() if path.is_dir()]
        self.assertEqual(len(kept), 1, "those of the earlier server are gone")

    def test_a_failure_is_tried_again(self):
        with self.assertRaises(Problem):
            initialise(self.build("exit 1"), self.folder / "data")
        initialise(self.build('for x; do case $x in --datadir=*) mkdir "${x#*=}";; esac; done'), self.folder / "data")

    def test_a_server_of_a_package_is_initialised_itself(self):
        script = f'for x; do case $x in --datadir=*) mkdir "${{x#*=}}";; esac; done\necho called >>"{self.root}/calls"'
        self.make_program("unpacked/usr/sbin/mysqld", script)
        (self.root / "unpacked/usr/share/mysql-9/english").mkdir(parents=True)
        for name in ("one", "two"):
            initialise(Unpacked(self.root / "unpacked"), self.folder / name)
        self.assertEqual(len((self.root / "calls").read_text().split()), 2)


class SocketPath(Case):
    def test_near_where_it_fits(self):
        self.assertEqual(private_socket(self.root), self.root / "mysqld.sock")

    def test_elsewhere_from_a_deep_folder(self):
        os.environ.pop("XDG_RUNTIME_DIR", None)
        deep = self.root / ("x" * 100)
        first = private_socket(deep)
        self.addCleanup(first.parent.rmdir)
        self.assertLess(len(str(first)), 108)
        self.assertEqual(first, private_socket(deep))
        first.parent.chmod(0o755)
        with self.assertRaisesRegex(Problem, "not a folder of this user alone"):
            private_socket(deep)
