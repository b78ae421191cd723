"""Fetching and unpacking, with small archives and without a network."""

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import unittest
from pathlib import Path
from typing import ClassVar
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from harness import common
from harness.problem import Problem
from harness.scratch import Scratch
from harness.tests import source_package
from tools.build import sources

VERSION = "MYSQL_VERSION_MAJOR=9\nMYSQL_VERSION_MINOR=7\nMYSQL_VERSION_PATCH={0}\n"


def tarball(path: Path, top: str, files: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Case(Scratch):
    def setUp(self):
        super().setUp()
        self.cache = self.root / "cache"
        for name in ("downloads", "src"):
            (self.cache / name).mkdir(parents=True)
        self.said = []
        mock.patch.object(sources, "say", self.said.append).start()
        # Whatever the developer has set must not reach the tests.
        mock.patch.dict("os.environ").start()
        for name in ("MYSQL_SOURCE_TARBALL", "MYSQL_SOURCE_VERSION", "JEMALLOC_SOURCE_TARBALL"):
            sources.os.environ.pop(name, None)
        self.addCleanup(mock.patch.stopall)


class Mirror(Case):
    def test_the_first_with_the_suite_and_main(self):
        uris = "".join(
            f"'http://{place}/dists/{file}' name 0 \n"
            for place, file in (
                ("other/x", "nodistro/main/binary-amd64/Packages"),
                ("m/debian", "bookworm/InRelease"),
                ("m/security", "bookworm-security/main/binary-amd64/Packages.xz"),
                ("m/contrib", "bookworm/contrib/binary-amd64/Packages.xz"),
                ("m/sources", "bookworm/main/source/Sources.xz"),
                ("m/debian", "bookworm/main/binary-amd64/Packages.xz"),
                ("m/second", "bookworm/main/binary-amd64/Packages.xz"),
            )
        )
        found = sources.main_archive(uris, {"bookworm", "stable"})
        self.assertEqual(found, "http://m/debian")
        self.assertEqual(sources.main_archive("", {"bookworm"}), "")

    @unittest.skipUnless(shutil.which("apt-get"), "needs apt")
    def test_apt_reads_both_forms_of_its_sources(self):
        etc = self.root / "etc"
        (etc / "sources.list.d").mkdir(parents=True)
        (etc / "apt.conf").write_text(f'Dir::Etc "{etc}";\nDir::Etc::parts "/dev/null";\n')
        sources.os.environ["APT_CONFIG"] = str(etc / "apt.conf")
        release = {"ID": "debian", "VERSION_CODENAME": "bookworm"}
        with mock.patch.object(sources, "os_release", return_value=release):
            with self.assertRaisesRegex(Problem, "MYSQL_SOURCE_TARBALL"):
                sources.debian_mirror()
            (etc / "sources.list").write_text("deb http://list/debian bookworm main\n")
            self.assertEqual(sources.debian_mirror(), "http://list/debian")
            (etc / "sources.list").unlink()
            (etc / "sources.list.d/x.sources").write_text(
                "Enabled: no\nTypes: deb\nURIs: http://off/debian\n"
                "Suites: bookworm\nComponents: main\n\n"
                "Types: deb\nURIs: http://stanza/debian\n"
                "Suites: bookworm\nComponents: main\n"
            )
            self.assertEqual(sources.debian_mirror(), "http://stanza/debian")


@unittest.skipUnless(shutil.which("apt-config"), "needs apt")
class PrivateConfiguration(Case):
    def test_what_the_machine_allows_is_not_allowed(self):
        machine = self.root / "machine.conf"
        names = (
            "Acquire::AllowInsecureRepositories",
            "Acquire::AllowWeakRepositories",
            "Acquire::AllowDowngradeToInsecureRepositories",
            "APT::Get::AllowUnauthenticated",
            "APT::Get::Force-Yes",
        )
        machine.write_text("".join(f'{name} "true";\n' for name in names))
        sources.os.environ["APT_CONFIG"] = str(machine)
        with (
            mock.patch.object(sources, "os_release", return_value={"ID": "debian"}),
            mock.patch.object(sources, "debian_mirror", return_value="http://m"),
        ):
            apt = sources.PrivateApt(self.cache / "apt")
        done = subprocess.run(
            ["apt-config", "-c", apt.conf, "dump", *names], capture_output=True, text=True, check=True
        )
        self.assertEqual(done.stdout.splitlines(), [f'{name} "false";' for name in names])


class Verify(Case):
    def setUp(self):
        super().setUp()
        self.path = self.cache / "downloads" / "file"
        self.good = hashlib.sha256(b"good").hexdigest()
        self.downloads = 0

    def serve(self, *contents):
        left = list(contents)

        def download(folder: Path):
            self.downloads += 1
            folder.mkdir(exist_ok=True)
            (folder / "file").write_bytes(left.pop(0))

        sources.fetch_verified(self.path, self.good, download)

    def test_present_and_good(self):
        self.path.write_bytes(b"good")
        self.serve()
        self.assertEqual(self.downloads, 0)

    def test_downloaded(self):
        self.serve(b"good")
        self.assertEqual(self.path.read_bytes(), b"good")

    def test_truncated_is_removed_and_downloaded_again(self):
        self.path.write_bytes(b"go")
        self.serve(b"good")
        self.assertEqual(self.downloads, 1)
        self.assertIn("damaged", " ".join(self.said))

    def test_wrong_twice_fails_and_leaves_nothing(self):
        with self.assertRaisesRegex(Problem, "second download did not help"):
            self.serve(b"bad", b"worse")
        self.assertEqual(self.downloads, 2)
        self.assertFalse(self.path.exists())


class Unpack(Case):
    def test_drops_what_debian_left_behind(self):
        archive = tarball(
            self.root / "a.tar.gz",
            "mysql-9.7",
            {
                "MYSQL_VERSION": VERSION.format(4),
                "builddir/x": "x",
                ".pc/x": "x",
                "configure-stamp": "",
                "sql/builddir/x": "kept",
            },
        )
        tree = self.cache / "src" / "mysql"
        sources.unpack(archive, tree)
        names = sorted(str(x.relative_to(tree)) for x in tree.rglob("*") if x.is_file())
        self.assertEqual(names, ["MYSQL_VERSION", "sql/builddir/x"])
        self.assertEqual(sources.mysql_version(tree), "9.7.4")

    def assert_nothing_left(self):
        self.assertEqual(list((self.cache / "src").iterdir()), [])

    def test_truncated(self):
        archive = tarball(self.root / "a.tar.gz", "m", {"big": "1234567890" * 9999})
        archive.write_bytes(archive.read_bytes()[:200])
        with self.assertRaisesRegex(Problem, "truncated or no tar archive"):
            sources.unpack(archive, self.cache / "src" / "mysql")
        self.assert_nothing_left()

    def test_no_archive(self):
        archive = self.root / "a.tar.gz"
        for content in (b"", b"hello"):
            archive.write_bytes(content)
            with self.assertRaisesRegex(Problem, "truncated or no tar archive"):
                sources.unpack(archive, self.cache / "src" / "mysql")
        self.assert_nothing_left()

    def test_many_warnings(self):
        """macOS adds headers to each file that GNU tar does not know: it warns of each."""
        archive = self.root / "a.tar"
        with tarfile.open(archive, "w") as tar:
            for number in range(2000):
                info = tarfile.TarInfo(f"m/{number}")
                info.pax_headers = {"LIBARCHIVE.xattr.com.apple.provenance": "x"}
                tar.addfile(info)
        program = (
            "import sys; from pathlib import Path; from tools.build import sources\n"
            "sources.unpack(Path(sys.argv[1]), Path(sys.argv[2]))"
        )
        tree = self.cache / "src" / "mysql"
        # Another process, which can be ended if it hangs.
        command = [sys.executable, "-c", program, archive, tree]
        subprocess.run(command, cwd=common.ROOT, check=True, timeout=60)
        self.assertEqual(len(list(tree.iterdir())), 2000)

    @unittest.skipUnless(shutil.which("dpkg-deb"), "needs dpkg-deb")
    def test_tarball_inside_a_package(self):
        build = self.root / "package"
        (build / "usr/src/mysql").mkdir(parents=True)
        inner = tarball(build / "usr/src/mysql/mysql-source.tar.gz", "mysql-9.7", {"MYSQL_VERSION": VERSION.format(4)})
        package = self.root / "mysql-source.deb"
        source_package.pack(build, "9.7.4-2", package)
        member = "./usr/src/mysql/mysql-source.tar.gz"
        tree = self.cache / "src" / "mysql"
        with self.assertRaisesRegex(Problem, "pinned is 123"):
            sources.unpack(package, tree, member, "123")
        self.assert_nothing_left()
        sources.unpack(package, tree, member, sha256(inner))
        self.assertEqual(sources.mysql_version(tree), "9.7.4")


class OwnTarball(Case):
    PINS: ClassVar = {
        "mysql": {"series": "9.7", "version": "9.7.4-2"},
        "jemalloc": {"version": "5.3.1", "full_version": "5.3.1-0-gabc"},
        "disk_gb": {"sources": 0, "build": 0},
    }

    def provide(self, name: str, archive: Path):
        sources.os.environ[f"{name.upper()}_SOURCE_TARBALL"] = str(archive)
        return sources.provide([name], self.cache, self.PINS, None)[name]

    def mysql(self, version_text):
        path = self.root / "own.tar.gz"
        return tarball(path, "mysql-9.7.9", {"MYSQL_VERSION": version_text})

    def test_of_the_series(self):
        archive = self.mysql(VERSION.format(9))
        first = self.provide("mysql", archive)
        self.assertEqual((first["version"], first["pinned"]), ("9.7.9", False))
        self.assertEqual((first["archive"], first["member"]), (str(archive), ""))
        with mock.patch.object(sources, "unpack") as unpack:
            self.assertEqual(self.provide("mysql", archive), first)
        unpack.assert_not_called()

    def test_of_another_series(self):
        text = VERSION.format(1).replace("MINOR=7", "MINOR=8")
        with self.assertRaisesRegex(Problem, "holds MySQL 9.8.1;.* 9.7.x"):
            self.provide("mysql", self.mysql(text))
        self.assertEqual(list((self.cache / "src").iterdir()), [])

    def test_of_something_else(self):
        archive = tarball(self.root / "x.tar.gz", "x", {"README": "x"})
        with self.assertRaisesRegex(Problem, "no MySQL source"):
            self.provide("mysql", archive)
        with self.assertRaisesRegex(Problem, "no jemalloc"):
            self.provide("jemalloc", archive)

    def test_missing(self):
        with self.assertRaisesRegex(Problem, "is not there"):
            self.provide("mysql", self.root / "none.tar.gz")

    def test_jemalloc(self):
        for version in ("5.3.1", "5.2.0"):
            archive = tarball(self.root / f"{version}.tar.gz", "j", {"ChangeLog": f"* {version} (x)\n"})
            if version == "5.3.1":
                source = self.provide("jemalloc", archive)
                self.assertEqual(source["version"], version)
                self.assertEqual(source["archive"], str(archive))
            else:
                with self.assertRaisesRegex(Problem, "jemalloc 5.2.0; .*5.3.1"):
                    self.provide("jemalloc", archive)


class FakeApt:
    """Stands for the archive: the versions that it has, and the files that it delivers."""

    mirror = "http://m"

    def __init__(self, versions, package: Path):
        self.found, self.package, self.asked = versions, package, []

    def versions(self, package, source):
        return self.found

    def sha256_of(self, package, version):
        return sha256(self.package)

    def download(self, into, *args):
        self.asked.append(args[-1])
        into.mkdir(parents=True, exist_ok=True)
        version = args[-1].split("=")[1]
        shutil.copy(self.package, into / f"mysql-source_{version}_amd64.deb")


class MovedOn(Case):
    """Debian's archive has moved on to another 9.7.x."""

    def setUp(self):
        super().setUp()
        self.pin = {
            "series": "9.7",
            "package": "mysql-source",
            "version": "9.7.4-2",
            "file": "mysql-source_9.7.4-2_amd64.deb",
            "sha256": "0" * 64,
            "tarball": "",
            "tarball_sha256": "0" * 64,
            "download_mb": 428,
        }
        package = tarball(self.root / "new", "mysql-9.7", {"MYSQL_VERSION": VERSION.format(6)})
        self.apt = FakeApt(["10.0.1-1", "9.7.10-1", "9.7.6-1"], package)

    def get(self):
        return sources.archive_mysql(self.cache, self.pin, lambda: self.apt)

    def test_another_version_is_not_taken_unasked(self):
        words = r"(?s)no mysql-source 9\.7\.4-2 .*MYSQL_SOURCE_VERSION=9\.7\.10-1 "
        with self.assertRaisesRegex(Problem, words):
            self.get()
        self.assertEqual(self.apt.asked, [])

    def test_a_version_that_was_asked_for(self):
        sources.os.environ["MYSQL_SOURCE_VERSION"] = "9.7.6-1"
        for _ in range(2):  # the second time without asking the archive
            self.said.clear()
            result = self.get()
            self.assertFalse(result["pinned"])
            self.assertTrue(result["tree"].endswith("mysql-9.7.6-1"))
            self.assertIn("mysql-source_9.7.6-1_", result["archive"])
            self.assertTrue(Path(result["archive"]).is_file())
            self.assertIn("NOT THE PINNED SOURCE", " ".join(self.said))
        self.assertEqual(self.apt.asked, ["mysql-source=9.7.6-1"])

    def test_a_version_that_the_archive_has_not(self):
        sources.os.environ["MYSQL_SOURCE_VERSION"] = "9.7.7-1"
        with self.assertRaisesRegex(Problem, "no mysql-source 9.7.7-1 "):
            self.get()

    def test_a_version_of_another_series(self):
        sources.os.environ["MYSQL_SOURCE_VERSION"] = "10.0.1-1"
        with self.assertRaisesRegex(Problem, "is not of MySQL 9.7"):
            self.get()

    def test_nothing_of_the_series(self):
        self.apt.found = ["10.0.1-1"]
        with self.assertRaisesRegex(Problem, r"it has: 10\.0\.1-1\)\.\n  MYSQL_SOURCE_T"):
            self.get()

    def test_numbers_not_letters_order_versions(self):
        found = sorted(["9.7.9-1", "9.7.10-1"], key=sources.version_key)
        self.assertEqual(found[-1], "9.7.10-1")


class Environment(Case):
    def test_not_debian(self):
        with (
            mock.patch.object(sources, "os_release", lambda: {"ID": "fedora"}),
            self.assertRaisesRegex(Problem, "not Debian"),
        ):
            sources.PrivateApt(self.cache / "apt")

    def test_disk_says_how_much(self):
        with self.assertRaisesRegex(Problem, r"100000001.0 GB needed .*for x and .*, [\d.]+ GB free"):
            common.require_disk([(self.root / "a/b", 1e8, "x"), (self.root, 1, "y")])
        common.require_disk([(self.root, 0, "x")])

    def test_lock_waits(self):
        with common.lock(self.root / "lock", "working"):
            code = (
                "import sys; sys.path.insert(0, sys.argv[1])\n"
                "from pathlib import Path; from harness import common\n"
                "with common.lock(Path(sys.argv[2]), 'working'): print('in')"
            )
            command = [sys.executable, "-c", code, common.ROOT, self.root / "lock"]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
                assert other.stdout is not None
                said = other.stdout.readline()  # it waits after that
                other.kill()
                self.assertEqual(other.stdout.read(), b"")
        self.assertIn(b"waiting: another process is working", said)


if __name__ == "__main__":
    unittest.main()
