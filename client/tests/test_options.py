import contextlib
import io
import os
import pwd
import socket
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from memdiag.cli import main, parser
from memdiag.commands.arguments import chosen_targets, split_short_password
from memdiag.connect.options import option_values, read_option_file, target
from memdiag.problem import Problem, WrongOption

from tests.scratch import Scratch


class OptionFiles(Scratch):
    def write(self, name, text):
        path = super().write(name, text)
        path.chmod(0o600)
        return path

    def test_our_groups_and_no_others(self):
        path = self.write(
            "my.cnf",
            "[mysqld]\nsocket=/srv\n[client]\nuser = 'a b'\n# no\npassword='x#y' # z\n[memdiag]\nsocket=/c\n[mysql]\nport=1\n",
        )
        self.assertEqual(read_option_file(path), {"user": "a b", "password": "x#y", "socket": "/c"})

    def test_comments_quotes_and_escapes_as_mysql_reads_them(self):
        for line, expected in (
            ("password=x#y # z", "x"),
            ('password = "x#y" # z', "x#y"),
            (r"password='it\'s # 1' # z", "it's # 1"),
            ("password=it's#1", "it's#1"),
            (r'password="a\\" # z', "a\\"),
            (r"password=\\a\sb\d", "\\a b\\d"),
            ("password=it's\\", "it's\\"),
            ('password="#\\', '"#\\'),
            ("password=a\x0bb\x0cc\x1cd\x85e\u2028f", "a\x0bb\x0cc\x1cd\x85e\u2028f"),
            ("password=", ""),
        ):
            with self.subTest(line):
                path = self.write("my.cnf", f"[client]\n{line}\n")
                self.assertEqual(read_option_file(path), {"password": expected})

    def test_letters_of_a_group_are_large_or_small(self):
        path = self.write("my.cnf", "[CLIENT]\nuser=a\n[Client_X]\nport=1\n")
        self.assertEqual(read_option_file(path, suffix="_X"), {"user": "a", "port": "1"})

    def test_bytes_of_another_character_set_reach_the_server(self):
        path = self.write("my.cnf", b"[client]\npassword=\xe9\n")
        password = read_option_file(path)["password"]
        self.assertEqual(password.encode(errors="surrogateescape"), b"\xe9")

    def test_a_socket_in_tmp_counts_if_a_server_can_have_made_it(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            path = f"{folder}/mysql.sock"
            with (
                mock.patch("memdiag.connect.options.SOCKETS", ("/nowhere", path)),
                contextlib.closing(socket.socket(socket.AF_UNIX)) as link,
            ):
                link.bind(path)
                self.assertEqual(target({}).socket, path)
                mine = os.lstat(path).st_uid
                with mock.patch("os.geteuid", return_value=4321), mock.patch("pwd.getpwnam") as asked:
                    for of_mysql, found in (
                        (mock.Mock(pw_uid=4322), path if mine == 0 else "/nowhere"),
                        (KeyError("mysql"), path if mine == 0 else "/nowhere"),
                        (mock.Mock(pw_uid=mine), path),
                    ):
                        asked.side_effect = [of_mysql]
                        self.assertEqual(target({}).socket, found)
                    asked.assert_called_with("mysql")
                if not os.geteuid():
                    os.chown(path, 4321, -1)
                    self.assertEqual(target({}).socket, "/nowhere")
                    with mock.patch("pwd.getpwnam", return_value=mock.Mock(pw_uid=4321)):
                        self.assertEqual(target({}).socket, path)
                    os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
                    self.assertEqual(target({}).socket, "/nowhere")
            Path(path).unlink()
            Path(path).write_text("")
            # Root and the server alone write into other folders.
            for there, found in ((path, "/nowhere"), ("/etc/passwd", "/etc/passwd")):
                with mock.patch("memdiag.connect.options.SOCKETS", ("/nowhere", there)):
                    self.assertEqual(target({}).socket, found)

    def test_files_that_include_each_other(self):
        """Each reads all others, ten deep: they would be read 12 to the power of 10 times."""
        (self.root / "d").mkdir()
        for number in range(12):
            self.write(f"d/{number:02}.cnf", f"[client]\nport={number}\n!includedir .\n")
        path = self.write("my.cnf", "[client]\nuser=u\n!includedir d\n")
        self.assertEqual(read_option_file(path)["user"], "u")

    def test_files_are_included_ten_deep(self):
        for number in range(12):
            self.write(f"{number}.cnf", f"[client]\nport={number}\n!include {number + 1}.cnf\n")
        path = self.write("12.cnf", "[client]\nport=12\n")
        self.assertEqual(read_option_file(path.with_name("0.cnf"))["port"], "10")

    def test_an_included_name_that_no_file_can_have(self):
        path = self.write("my.cnf", "[client]\nuser=u\n!include a\0b\n!includedir a\0b\n")
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(read_option_file(path), {"user": "u"})

    def test_what_mysql_does_not_take_is_told(self):
        for text, words in (
            ("[client\nuser=u\n", r"my.cnf has a line that is no group.*: \[client$"),
            ("[client]\n!included x\n", r"my.cnf has a line that is not followed: !included x$"),
            ("!\n", r"my.cnf has a line that is not followed: !$"),
            ("!include\n", r"my.cnf has a line that is not followed: !include$"),
            ("[client]\nuser=u\n!includedir missing\n", "includes .*/missing, which is no folder"),
        ):
            path = self.write("my.cnf", text)
            with self.subTest(text), contextlib.redirect_stderr(io.StringIO()) as told:
                read_option_file(path)
            self.assertRegex(told.getvalue().strip(), words)

    def test_included_files(self):
        (self.root / "d").mkdir()
        self.write("d/a.cnf", "[client]\nport=1\n")
        self.write("d/b.cnf", "[client]\nport=2\n")
        path = self.write("my.cnf", "[client]\nport=0\n!includedir d\n")
        self.assertEqual(read_option_file(path)["port"], "2")

    def test_any_white_space_follows_include(self):
        self.write("d/a.cnf", "[client]\nport=1\n")
        self.write("b.cnf", "[client]\nuser=u\n")
        path = self.write("my.cnf", "[client]\n!includedir\td\n! include \t b.cnf\n")
        self.assertEqual(read_option_file(path), {"port": "1", "user": "u"})

    def test_groups_of_mariadb_and_those_with_a_suffix(self):
        path = self.write(
            "my.cnf", "[client-server]\nsocket=/s\n[client-mariadb]\nuser=u\n[client_x]\nport=1\n[memdiag_x]\nhost=h\n"
        )
        self.assertEqual(read_option_file(path), {"socket": "/s", "user": "u"})
        self.assertEqual(read_option_file(path, suffix="_x"), {"socket": "/s", "user": "u", "port": "1", "host": "h"})

    def test_the_environment_of_mysql(self):
        names = {"MYSQL_HOST": "h", "MYSQL_TCP_PORT": "3307", "MYSQL_UNIX_PORT": "/s", "MYSQL_PWD": "p"}
        with mock.patch.dict(os.environ, names):
            got = option_values({"host": "line"}, no_defaults=True)
        self.assertEqual(got, {"host": "line", "port": "3307", "socket": "/s", "password": "p"})

    def test_authorities_mean_that_they_are_asked(self):
        for name in ("ssl-ca", "ssl-capath"):
            self.assertEqual(target({name: "/x", "host": "h"}).ssl_mode, "VERIFY_CA")
            self.assertEqual(target({name: "/x", "ssl-mode": "PREFERRED"}).ssl_mode, "PREFERRED")

    def test_the_switches_of_mariadb(self):
        for words, mode in (
            ("ssl-verify-server-cert", "VERIFY_IDENTITY"),
            ("ssl=1", "REQUIRED"),
            ("ssl", "REQUIRED"),
            ("ssl=0", "DISABLED"),
            ("skip-ssl", "DISABLED"),
            ("ssl-verify-server-cert=0", "PREFERRED"),
            ("ssl=1\nssl-ca=/x", "VERIFY_CA"),
            ("ssl=0\nssl-mode=REQUIRED", "REQUIRED"),
        ):
            with self.subTest(words):
                path = self.write("my.cnf", f"[client]\n{words}\n")
                self.assertEqual(target(option_values({}, defaults_file=str(path))).ssl_mode, mode)

    def test_an_authority_of_the_command_line_is_asked(self):
        """Switches of a file, which know nothing of it, turn neither TLS nor the check off."""
        for given in ({"ssl-ca": "/x"}, {"ssl-capath": "/x"}):
            for words, mode in (
                ("ssl", "VERIFY_CA"),
                ("ssl=0", "VERIFY_CA"),
                ("skip-ssl", "VERIFY_CA"),
                ("ssl=0\nssl-ca=/y", "VERIFY_CA"),
                ("ssl\nssl-verify-server-cert", "VERIFY_IDENTITY"),
                # As with mysql, it comes before what an authority means.
                ("ssl-mode=REQUIRED", "REQUIRED"),
                ("skip-ssl\nssl-mode=DISABLED", "DISABLED"),
            ):
                with self.subTest(words, given=given):
                    path = self.write("my.cnf", f"[client]\n{words}\n")
                    self.assertEqual(target(option_values(given, defaults_file=str(path))).ssl_mode, mode)
        path = self.write("my.cnf", "[client]\nskip-ssl\n")
        given = {"ssl-ca": "/x", "ssl-mode": "REQUIRED"}
        self.assertEqual(target(option_values(given, defaults_file=str(path))).ssl_mode, "REQUIRED")

    def test_an_option_that_is_not_followed_is_told(self):
        path = self.write("my.cnf", "[client]\ntls-version=TLSv1.3\n")
        with contextlib.redirect_stderr(io.StringIO()) as told:
            option_values({}, defaults_file=str(path))
        self.assertIn("tls-version is not followed", told.getvalue())

    def test_a_key_of_the_server_is_a_switch(self):
        for words, wanted in (("", False), ("get-server-public-key", True), ("get_server_public_key=0", False)):
            with self.subTest(words):
                path = self.write("my.cnf", f"[client]\n{words}\n")
                self.assertEqual(target(option_values({}, defaults_file=str(path))).get_server_public_key, wanted)

    def test_compression_is_refused_and_not_ignored(self):
        for word in ("--compress", "-C"):
            with self.assertRaisesRegex(WrongOption, f"^{word} cannot be honoured: PyMySQL does not compress"):
                main(["report", "--no-defaults", word, "db1"])
        for words, told in (("compress", True), ("compress=0", False)):
            path = self.write("my.cnf", f"[client]\n{words}\n")
            with contextlib.redirect_stderr(io.StringIO()) as stream:
                option_values({}, defaults_file=str(path))
            self.assertEqual("compress is not followed: PyMySQL" in stream.getvalue(), told)

    def test_a_file_that_anybody_may_write_is_ignored(self):
        path = self.write("my.cnf", "[client]\nport=1\n")
        path.chmod(0o666)
        with contextlib.redirect_stderr(io.StringIO()) as told:
            self.assertEqual(read_option_file(path), {})
        self.assertIn("anybody may write it", told.getvalue())
        with self.assertRaisesRegex(Problem, "anybody may write it"):
            option_values({}, defaults_file=str(path))

    def test_the_extra_file_comes_before_the_users_own(self):
        paths = [
            self.write(name, "[client]\n" + "".join(f"{key}={name}\n" for key in keys))
            for name, keys in (("global", ("user", "host", "socket")), ("extra", ("user", "host")), ("own", ("user",)))
        ]
        where = mock.patch("memdiag.connect.options.default_files", lambda: [paths[0], paths[2]])
        with where, mock.patch.dict(os.environ, {"MYSQL_TEST_LOGIN_FILE": "/no"}):
            got = option_values({}, defaults_extra_file=str(paths[1]))
        self.assertEqual((got["user"], got["host"], got["socket"]), ("own", "extra", "global"))

    def test_a_device_is_no_file_that_anybody_wrote(self):
        """mysql looks at the mode of regular files alone: my_default.cc."""
        with contextlib.redirect_stderr(io.StringIO()) as told:
            self.assertEqual(option_values({"user": "u"}, defaults_file="/dev/null")["user"], "u")
        self.assertEqual(told.getvalue(), "")

    def test_a_password_without_a_value_is_asked_for(self):
        bare = self.write("bare.cnf", "[client]\npassword\n")
        empty = self.write("empty.cnf", "[client]\npassword=\n")

        def of(*words):
            with (
                mock.patch.dict(os.environ, {"MYSQL_PWD": "environment", "MYSQL_TEST_LOGIN_FILE": "/no"}),
                mock.patch("memdiag.commands.arguments._asked", return_value="asked"),
            ):
                (one,) = chosen_targets(parser().parse_args(["report", *words]))
                return one.password

        self.assertEqual(of(f"--defaults-file={bare}"), "asked")
        self.assertEqual(of(f"--defaults-file={empty}"), "")
        self.assertEqual(of(f"--defaults-file={bare}", "--password=line"), "line")
        self.assertEqual(of(f"--defaults-file={empty}", "--password"), "asked")
        self.assertEqual(of("--no-defaults"), "environment")

    def test_a_missing_file_that_was_named_is_an_error(self):
        with self.assertRaisesRegex(Problem, "cannot be read"):
            option_values({}, defaults_file=str(self.root / "no.cnf"))

    def test_the_command_line_wins_and_the_environment_loses(self):
        path = self.write("my.cnf", "[client]\nuser=file\npassword=file\n")
        with mock.patch.dict(os.environ, {"MYSQL_PWD": "environment", "HOME": str(self.root)}):
            got = option_values({"user": "line"}, defaults_file=str(path))
            self.assertEqual((got["user"], got["password"]), ("line", "file"))
            got = option_values({}, no_defaults=True)
            self.assertEqual(got["password"], "environment")

    def test_a_user_without_a_home(self):
        with mock.patch.object(Path, "home", side_effect=RuntimeError):
            self.assertEqual(option_values({"user": "u"})["user"], "u")

    def test_client_of_the_login_file_counts_as_for_mysql(self):
        """Beside the login path that is named, and with --no-defaults (my_default.cc: my_load_defaults())."""
        program = self.write(
            "my_print_defaults",
            "#!/bin/sh\nfor word; do case $word in --help) echo '  -l, --login-path=name';;"
            " client) echo --user=me; echo --host=a;;"
            " remote) echo --host=b;; latin1) printf -- '--password=\\351\\n';; esac; done\n",
        )
        program.chmod(0o700)
        file = self.write("mylogin.cnf", "scrambled")
        with mock.patch.dict(
            os.environ, {"MYSQL_TEST_LOGIN_FILE": str(file), "PATH": f"{self.root}:{os.environ['PATH']}"}
        ):
            got = option_values({}, no_defaults=True)
            self.assertEqual((got.get("user"), got["host"]), ("me", "a"))
            got = option_values({}, no_defaults=True, login_path="remote")
            self.assertEqual((got.get("user"), got["host"]), ("me", "b"))
            password = option_values({}, no_defaults=True, login_path="latin1")["password"]
            self.assertEqual(password.encode(errors="surrogateescape"), b"\xe9")
            with self.assertRaisesRegex(Problem, "no login path 'other'"):
                option_values({}, login_path="other")

    def test_a_login_file_that_cannot_be_read_is_told(self):
        file = self.write("mylogin.cnf", "scrambled")
        with (
            mock.patch.dict(os.environ, {"MYSQL_TEST_LOGIN_FILE": str(file), "PATH": str(self.root)}),
            contextlib.redirect_stderr(io.StringIO()) as told,
        ):
            option_values({}, no_defaults=True)
        self.assertIn(f"{file} is ignored: my_print_defaults", told.getvalue())

    def test_a_program_that_reads_no_login_path(self):
        """MariaDB's my_print_defaults, at times the only one: nothing was said, or that there is no such path."""
        program = self.write("my_print_defaults", "#!/bin/sh\n[ $1 != --help ] || echo '  -n, --no-defaults'\n")
        program.chmod(0o700)
        file = self.write("mylogin.cnf", "scrambled")
        with (
            mock.patch.dict(
                os.environ, {"MYSQL_TEST_LOGIN_FILE": str(file), "PATH": f"{self.root}:{os.environ['PATH']}"}
            ),
            contextlib.redirect_stderr(io.StringIO()) as told,
        ):
            option_values({}, no_defaults=True)
            self.assertIn(f"{file} is ignored: {program} has no --login-path", told.getvalue())
            with self.assertRaisesRegex(Problem, f"'remote' of {file} cannot be read: {program} has no --login-path"):
                option_values({}, login_path="remote")

    def test_a_login_path_that_is_not_there(self):
        nowhere = str(self.root / "no.mylogin.cnf")
        with (
            mock.patch.dict(os.environ, {"MYSQL_TEST_LOGIN_FILE": nowhere}),
            self.assertRaisesRegex(Problem, "mysql_config_editor set"),
        ):
            option_values({}, login_path="remote")


class Targets(unittest.TestCase):
    def test_0_is_no_number_of_its_own(self):
        """mysql's default of both: its usual port, and no time limit."""
        got = target({"host": "db1", "port": "0", "connect-timeout": "0"})
        self.assertEqual((got.port, got.connect_timeout), (3306, 43200))
        self.assertEqual(target({"connect-timeout": "99999999"}).connect_timeout, 43200)
        self.assertEqual(target({"connect-timeout": "3"}).connect_timeout, 3)

    def test_the_user_is_the_one_that_mysql_takes(self):
        """read_user_name() of its library. A service may have USER of another."""
        others = {"USER": "environment", "LOGNAME": "environment"}

        def of(user, login=OSError, environment=others):
            with (
                mock.patch.dict(os.environ, environment, clear=True),
                mock.patch("os.geteuid", return_value=user),
                mock.patch("os.getlogin", side_effect=[login]),
            ):
                return target({"host": "db1"}).user

        self.assertEqual(of(0, "person"), "root")
        self.assertEqual(of(pwd.getpwnam("nobody").pw_uid, "person"), "person")
        self.assertEqual(of(pwd.getpwnam("nobody").pw_uid), "nobody")
        self.assertEqual(of(98765), "environment")
        self.assertEqual(of(98765, environment={}), "UNKNOWN_USER")

    def test_words(self):
        for words, expected in (
            ("db1", ("db1", 3306, "", "me")),
            ("db1:3307", ("db1", 3307, "", "me")),
            ("you@db1:3307", ("db1", 3307, "", "you")),
            ("[::1]:3307", ("::1", 3307, "", "me")),
            ("/run/x.sock", ("localhost", 3306, "/run/x.sock", "me")),
            ("localhost:3307", ("localhost", 3307, "", "me")),
            ("/run/a@b/x.sock", ("localhost", 3306, "/run/a@b/x.sock", "me")),
            ("./a@b.sock", ("localhost", 3306, "./a@b.sock", "me")),
            ("../x.sock", ("localhost", 3306, "../x.sock", "me")),
            ("you@../x.sock", ("localhost", 3306, "../x.sock", "you")),
        ):
            got = target({"user": "me"}, words)
            self.assertEqual((got.host, got.port, got.socket, got.user), expected, words)
            self.assertEqual(target({"user": got.user}, got.label), got)
        for words in ("localhost", "you@localhost"):
            self.assertEqual(target({"socket": "/run/x.sock"}, words).socket, "/run/x.sock", words)

    def test_a_socket_and_a_host_are_two_servers(self):
        with self.assertRaisesRegex(WrongOption, "two servers"):
            target({"socket": "/a.sock", "protocol": "SOCKET"}, "db1")
        self.assertEqual(target({"socket": "/a.sock", "protocol": "SOCKET"}, "localhost").socket, "/a.sock")

    def test_a_port_that_is_not_used_is_told(self):
        options = parser().parse_args(["report", "--no-defaults", "-P", "3307"])
        with contextlib.redirect_stderr(io.StringIO()) as told:
            chosen_targets(options)
        self.assertIn("-P 3307 is not used", told.getvalue())

    def test_the_password_is_not_shown(self):
        self.assertNotIn("secret", repr(target({"password": "secret"})))

    def test_a_number_is_a_whole_one(self):
        with self.assertRaisesRegex(Problem, "connect-timeout is a whole number, not '1.5'"):
            target({"connect-timeout": "1.5"})

    def test_a_number_that_is_too_long_is_one_line(self):
        """Python refuses to read one of 4,301 digits."""
        for option in ("connect-timeout", "port"):
            with self.assertRaisesRegex(WrongOption, f"^{option} is a smaller number than one of 5000 digits$"):
                target({option: "9" * 5000})

    def test_wrong_values_are_one_line(self):
        for options in ({"port": "x"}, {"port": "65536"}, {"port": "²"}, {"ssl-mode": "MAYBE"}, {"protocol": "PIPE"}):
            with self.assertRaises(Problem):
                target(options)

    def test_no_password_at_the_prompt_is_one_line(self):
        with (
            mock.patch("sys.stdin.isatty", return_value=True),
            mock.patch("getpass.getpass", side_effect=EOFError),
            self.assertRaisesRegex(Problem, "no password"),
        ):
            main(["report", "--no-defaults", "-p"])

    def test_a_password_is_one_word(self):
        self.assertEqual(
            split_short_password(["-psecret", "db1", "--port=1"]), ["--password=secret", "db1", "--port=1"]
        )
        self.assertEqual(
            split_short_password(["-vpsecret", "--pass=a=b"]), ["-v", "--password=secret", "--password=a=b"]
        )
        for words in (["-p", "db1"], ["--password", "db1"], ["--pass", "db1"]):
            self.assertEqual(split_short_password(words), ["--password=\0ask", "db1"])
