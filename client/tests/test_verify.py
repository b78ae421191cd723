import hashlib
import io
import os
from contextlib import redirect_stdout

from memdiag.cli import main
from memdiag.commands.verify import left_out
from memdiag.problem import Problem

from tests.scratch import Scratch

FILES = {
    "usr/sbin/mysqld": b"\x7fELF server",
    "usr/lib/mysql/plugin/a.so": b"\x7fELF plugin",
    "usr/share/doc/mysql-memdiag-server/copyright": b"GPL",
    "etc/mysql/mysql.conf.d/memdiag.cnf": b"[mysqld]\n",
}


class Verify(Scratch):
    def setUp(self):
        super().setUp()
        for name, content in FILES.items():
            self.write(name, content)
        self.sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in FILES.items())
        self.write("var/lib/dpkg/info/mysql-memdiag-server.sha256sums", self.sums.encode())

    def verify(self, *words):
        with redirect_stdout(io.StringIO()) as out:
            status = main(["verify", "--root", str(self.root), *map(str, words)])
        return status, out.getvalue()

    def test_as_packaged(self):
        self.assertEqual(self.verify(), (0, "4 files as packaged, 0 differ, 0 missing, 0 extra; 0 changed in /etc\n"))

    def test_what_differs_is_missing_or_was_added(self):
        self.write("usr/sbin/mysqld", b"\x7fELF other")
        (self.root / "usr/share/doc/mysql-memdiag-server/copyright").unlink()
        self.write("usr/lib/mysql/plugin/evil.so", b"")
        os.symlink("/tmp/evil.so", self.root / "usr/lib/mysql/plugin/b.so")
        status, words = self.verify()
        self.assertEqual(status, 3)
        self.assertEqual(
            words.splitlines(),
            [
                "differs        /usr/sbin/mysqld",
                "missing        /usr/share/doc/mysql-memdiag-server/copyright",
                "extra          /usr/lib/mysql/plugin/b.so",
                "extra          /usr/lib/mysql/plugin/evil.so",
                "2 files as packaged, 1 differ, 1 missing, 2 extra; 0 changed in /etc",
            ],
        )

    def test_what_was_added_to_messages_or_to_what_the_unit_runs(self):
        """The folder of messages has the series in its name."""
        folders = ("usr/share/mysql-9.7", "usr/share/mysql-memdiag", "usr/libexec/mysql-memdiag")
        for folder in folders:
            self.write(f"{folder}/a", b"")
            self.write(f"{folder}/more/evil", b"")
        self.write("usr/lib/mysql-test/a", b"")
        self.write("usr/lib/mysql-test/var/log", b"")
        names = [f"{folder}/a" for folder in (*folders, "usr/lib/mysql-test")]
        empty = hashlib.sha256(b"").hexdigest()
        sums = "".join(f"{empty}  {name}\n" for name in names)
        self.write("var/lib/dpkg/info/mysql-memdiag-test.sha256sums", sums.encode())
        status, words = self.verify()
        self.assertEqual(status, 3)
        extra = [line.split()[1] for line in words.splitlines() if line.startswith("extra")]
        self.assertEqual(extra, sorted(f"/{folder}/more/evil" for folder in folders))

    def test_an_administrator_may_change_the_configuration(self):
        self.write("etc/mysql/mysql.conf.d/memdiag.cnf", b"[mysqld]\nport=1\n")
        status, words = self.verify()
        self.assertEqual(status, 0)
        self.assertIn("configuration  /etc/mysql/mysql.conf.d/memdiag.cnf\n", words)

    def test_what_cannot_be_read_proves_nothing(self):
        path = self.root / "usr/sbin/mysqld"
        path.unlink()
        path.mkdir()  # root can read any file
        with self.assertRaisesRegex(Problem, "1 files cannot be read by this user, so nothing is proven"):
            self.verify()

    def test_sums_of_a_package_that_is_trusted(self):
        """Who changed the server may have changed the installed sums."""
        trusted = self.root / "trusted"
        trusted.write_text(self.sums)
        self.write("usr/sbin/mysqld", b"evil")
        sums = self.sums.replace(
            hashlib.sha256(FILES["usr/sbin/mysqld"]).hexdigest(), hashlib.sha256(b"evil").hexdigest()
        )
        self.write("var/lib/dpkg/info/mysql-memdiag-server.sha256sums", sums.encode())
        self.assertEqual(self.verify()[0], 0)
        self.assertEqual(self.verify(trusted)[0], 3)

    def test_an_extra_file_of_a_package_whose_sums_were_not_given(self):
        """The server's package and the client's have plugins in one folder."""
        self.write("usr/lib/mysql/plugin/client.so", b"")
        self.write("usr/lib/mysql/plugin/evil.so", b"")
        sums = f"{hashlib.sha256(b'').hexdigest()}  usr/lib/mysql/plugin/client.so\n"
        self.write("var/lib/dpkg/info/mysql-memdiag-client.sha256sums", sums.encode())
        trusted = self.root / "trusted"
        trusted.write_text(self.sums)
        status, words = self.verify(trusted)
        self.assertEqual(status, 3)
        self.assertEqual(
            words.splitlines()[:2],
            [
                "extra          /usr/lib/mysql/plugin/client.so (of mysql-memdiag-client, says dpkg: give its sums, too)",
                "extra          /usr/lib/mysql/plugin/evil.so",
            ],
        )

    def test_the_last_rule_that_fits_counts(self):
        self.write("etc/dpkg/dpkg.cfg", b"path-exclude=/a/*\npath-include=/a/b*\npath-exclude=/a/bc\n")
        is_left_out = left_out(self.root)
        self.assertEqual([is_left_out(name) for name in ("a/x", "a/b", "a/bc", "b")], [True, False, True, False])

    def test_what_dpkg_was_told_to_leave_out(self):
        """Images of containers have no documentation. dpkg's last rule that fits counts."""
        self.write("etc/dpkg/dpkg.cfg", b"log /var/log/dpkg.log\n")
        self.write(
            "etc/dpkg/dpkg.cfg.d/docker",
            b"# slim\npath-exclude=/usr/share/doc/*\npath-exclude /usr/lib/mysql/x*\n  path-include = /usr/share/doc/*/LICENSE\n",
        )
        self.write("usr/share/doc/mysql-memdiag-server/LICENSE", b"GPL")
        more = hashlib.sha256(b"GPL").hexdigest()
        self.write(
            "var/lib/dpkg/info/mysql-memdiag-server.sha256sums",
            f"{self.sums}{more}  usr/share/doc/mysql-memdiag-server/LICENSE\n".encode(),
        )
        (self.root / "usr/share/doc/mysql-memdiag-server/copyright").unlink()
        status, words = self.verify()
        self.assertEqual(status, 0, words)
        self.assertEqual(
            words,
            "4 files as packaged, 0 differ, 0 missing, 0 extra; 0 changed in /etc; dpkg was told to leave out 1\n",
        )
        (self.root / "usr/share/doc/mysql-memdiag-server/LICENSE").unlink()
        status, words = self.verify()
        self.assertEqual(status, 3)
        self.assertIn("missing        /usr/share/doc/mysql-memdiag-server/LICENSE\n", words)

    def test_what_is_no_sums(self):
        other = self.root / "other"
        for text in ("", "no sums\n", f"{'0' * 64}  ../../etc/passwd\n", f"{'0' * 64}  /etc/passwd\n"):
            other.write_text(text)
            with self.subTest(text), self.assertRaises(Problem):
                self.verify(other)

    def test_a_server_of_another_origin(self):
        (self.root / "var/lib/dpkg/info/mysql-memdiag-server.sha256sums").unlink()
        with self.assertRaisesRegex(Problem, "rpm --verify mysql-memdiag-server"):
            self.verify()
