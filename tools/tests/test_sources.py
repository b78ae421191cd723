"""Fetching and unpacking, with small archives and without a network."""

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import unittest
from pathlib import Path
from typing import ClassVar
from unittest import mock

from harness import common
from harness.problem import Problem
from harness.scratch import Scratch
from harness.tests import source_package
from tools.build import pristine, sources

VERSION = "MYSQL_VERSION_MAJOR=9\nMYSQL_VERSION_MINOR=7\nMYSQL_VERSION_PATCH={0}\n"


KEY = """-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawl1GRYJKwYBBAHaRw8BAQdAGGxMiu8lqs5SnGH4PMGx1Dt6Xe7Kc9Mjmt9t
NuyayDK0IHRlc3Qgb2YgbWVtZGlhZyA8dGVzdEBsb2NhbGhvc3Q+iJAEExYIADgW
IQTUlHFixuZPcH3S7Xs2O/506mcpLwUCawl1GQIbAwULCQgHAgYVCgkICwIEFgID
AQIeAQIXgAAKCRA2O/506mcpL7DlAQDGvroae4cA6yMRDoprUHcNF88Xmk7GYE0M
+dE6HAMgcgD/ZwvOv2ajXPI4FLQSZsyYUbIWaSeQmkxxr+gnI3zkXwE=
=E47P
-----END PGP PUBLIC KEY BLOCK-----
"""
FINGERPRINT = "D4947162C6E64F707DD2ED7B363BFE74EA67292F"
# Both of the file "text\n", the second with another key.
SIGNATURE = """-----BEGIN PGP SIGNATURE-----

iIUEABYIAC0WIQTUlHFixuZPcH3S7Xs2O/506mcpLwUCawl1GQ8cdGVzdEBsb2Nh
bGhvc3QACgkQNjv+dOpnKS9CWQEAhSFhhd6p7E1LyvfeFkjCsTBPoqzSwZLqlUSs
E6ztWhsA/2Tj6Y3fX2KOVKHMT/a7OnwikZc991Q1etb3KbuZdh0P
=+nLc
-----END PGP SIGNATURE-----
"""
OTHER_SIGNATURE = """-----BEGIN PGP SIGNATURE-----

iIYEABYIAC4WIQTsp7eQPXAUD/bNo9xWUvB2qyNSewUCawl1GRAcb3RoZXJAbG9j
YWxob3N0AAoJEFZS8HarI1J7d4EA/i4WkV8YU8U166zlCvd64fyW/W63z1IGn2Dc
5aIgnjPlAQDDuMIHp72LtVf7hrLKjwpYbtdQAoYVYrhyy0yXO/DvDA==
=dEWs
-----END PGP SIGNATURE-----
"""


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
        self.enterContext(mock.patch.object(sources, "say", self.said.append))
        # Whatever the developer has set must not reach the tests.
        self.enterContext(mock.patch.dict("os.environ"))
        for name in ("MYSQL_SOURCE_TARBALL", "MYSQL_SOURCE_VERSION", "JEMALLOC_SOURCE_TARBALL"):
            sources.os.environ.pop(name, None)


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
        subprocess.run(command, cwd=common.ROOT, check=True, timeout=300)
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
        "mysql": {"series": "9.7", "version": "9.7.4-2", "signed_by": FINGERPRINT},
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

    def test_with_a_signature_beside_it(self):
        archive = self.mysql(VERSION.format(9))
        unsigned = self.provide("mysql", archive)
        self.assertIn("no own.tar.gz.asc", unsigned["checked"])
        pristine.signature_of(archive).write_text("signature")
        with mock.patch.object(pristine, "verify", side_effect=Problem("is not signed")) as verify:
            with self.assertRaisesRegex(Problem, "is not signed"):
                self.provide("mysql", archive)
            verify.side_effect = None
            found = self.provide("mysql", archive)
            verify.assert_called_with(archive, FINGERPRINT)
            self.assertIn(FINGERPRINT, found["checked"])
            self.assertNotEqual(found["tree"], unsigned["tree"])
            verify.reset_mock()
            self.provide("mysql", archive)  # the tree is there
            verify.assert_not_called()

    def test_comes_before_the_archive(self):
        archive = self.mysql(VERSION.format(9))
        with mock.patch.object(sources, "archive_mysql", side_effect=AssertionError):
            self.provide("mysql", archive)

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


class Signature(Case):
    """The bootstrap installs gpgv."""

    def setUp(self):
        super().setUp()
        self.archive = self.root / "text"
        self.archive.write_text("text\n")
        self.key = self.root / "key.asc"
        self.key.write_text(KEY)

    def verify(self, signature: str, fingerprint: str = FINGERPRINT) -> None:
        pristine.signature_of(self.archive).write_text(signature)
        pristine.verify(self.archive, fingerprint, self.key)

    def test_good(self):
        self.verify(SIGNATURE)

    def test_changed_archive(self):
        self.archive.write_text("texT\n")
        with self.assertRaisesRegex(Problem, "(?s)is not signed .*gpgv: BAD signature"):
            self.verify(SIGNATURE)

    def test_signature_of_another_key(self):
        with self.assertRaisesRegex(Problem, "(?s)is not signed .*gpgv: Can't check"):
            self.verify(OTHER_SIGNATURE)

    def test_a_good_signature_of_a_key_that_is_not_pinned(self):
        with self.assertRaisesRegex(Problem, "is not signed by .*AAAA"):
            self.verify(SIGNATURE, "A" * 40)

    def test_no_signature(self):
        with self.assertRaisesRegex(Problem, r"no signature beside it \(text\.asc\)"):
            pristine.verify(self.archive, FINGERPRINT, self.key)
        with self.assertRaisesRegex(Problem, "is not signed"):
            self.verify("")

    def test_without_gpgv(self):
        with (
            mock.patch.object(pristine.shutil, "which", return_value=None),
            self.assertRaisesRegex(Problem, "apt-get install gpgv"),
        ):
            self.verify(SIGNATURE)

    def test_upstreams_key_is_the_pinned_one(self):
        """A version 4 fingerprint is the SHA-1 of the packet of the key."""
        key = pristine.without_armour(pristine.KEY.read_text())
        self.assertEqual(key[0], 0x99)  # a public key, its length in two bytes
        length = int.from_bytes(key[1:3], "big")
        found = hashlib.sha1(key[: 3 + length], usedforsecurity=False).hexdigest().upper()
        self.assertEqual(found, json.loads(sources.PINS.read_text())["mysql"]["signed_by"])

    def test_no_key(self):
        with self.assertRaisesRegex(Problem, "has no public key"):
            pristine.without_armour("x")


PATCH = "--- a/sql/file\n+++ b/sql/file\n@@ -1 +1 @@\n-{}\n+{}\n"


class FakeApt:
    """Stands for the archive: the versions that it lists, and the files that it delivers."""

    def __init__(self, folder: Path, packages: list[str], pristine_ones: list[str]) -> None:
        self.listed = {"mysql-source": packages, "mysql-9.7": pristine_ones}
        self.gone: set[str] = set()  # listed, and not delivered
        self.folder = folder
        self.asked: list[str] = []
        self.package = tarball(folder / "package", "mysql-9.7", self.files("debian"))
        self.orig = tarball(folder / "orig", "mysql-9.7.6", self.files("upstream"))
        patches = {"series": "# all\none.patch\n", "one.patch": PATCH.format("upstream", "debian")}
        self.debian = folder / "debian.tar.xz"
        with tarfile.open(self.debian, "w:xz") as tar:
            for name, text in patches.items():
                info = tarfile.TarInfo(f"debian/patches/{name}")
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))

    @staticmethod
    def files(text: str) -> dict[str, str]:
        return {"MYSQL_VERSION": VERSION.format(6), "sql/file": f"{text}\n"}

    def versions(self, package, source):
        assert source == (package == "mysql-9.7")
        return self.listed[package]

    def sha256_of(self, package, version):
        return sha256(self.package)

    def download(self, into, *args):
        self.asked.append(args[-1])
        if args[-1] in self.gone:
            raise sources.Unavailable(f"apt-get could not fetch {args[-1]} from x.\n  Check the network.")
        into.mkdir(parents=True, exist_ok=True)
        name, version = args[-1].split("=")
        if name == "mysql-source":
            shutil.copy(self.package, into / f"mysql-source_{version}_amd64.deb")
            return
        upstream = version.split("-")[0]
        shutil.copy(self.orig, into / f"mysql-9.7_{upstream}.orig.tar.gz")
        (into / f"mysql-9.7_{upstream}.orig.tar.gz.asc").write_text("signature")
        shutil.copy(self.debian, into / f"mysql-9.7_{version}.debian.tar.xz")


class Archive(Case):
    """The ways to MySQL's source in Debian's archive, and their order."""

    PIN = "9.7.4-2"

    def setUp(self):
        super().setUp()
        self.apt = FakeApt(self.root, [self.PIN], [self.PIN])
        self.pin = {
            "series": "9.7",
            "package": "mysql-source",
            "version": self.PIN,
            "file": f"mysql-source_{self.PIN}_amd64.deb",
            "sha256": sha256(self.apt.package),
            "tarball": "",
            "tarball_sha256": "",
            "source_package": "mysql-9.7",
            "orig": "mysql-9.7_9.7.4.orig.tar.gz",
            "orig_sha256": sha256(self.apt.orig),
            "signed_by": FINGERPRINT,
            "download_mb": 428,
        }
        self.verify = self.enterContext(mock.patch.object(pristine, "verify"))

    def get(self):
        self.said.clear()
        return sources.archive_mysql(self.cache, self.pin, lambda: self.apt)

    def names(self, *versions: str, kind: str = "mysql-source") -> list[str]:
        return [f"{kind}={version}" for version in versions]

    def left(self) -> set[str]:
        return {path.name for path in (self.cache / "src").iterdir()}


class Fallbacks(Archive):
    def test_debians_package_first(self):
        found = self.get()
        self.assertEqual(self.apt.asked, self.names(self.PIN))
        self.assertEqual((found["pinned"], found["checked"]), (True, "SHA-256 in cmake/sources.json"))
        self.verify.assert_not_called()

    def test_upstreams_tarball_where_the_package_is_not_listed(self):
        self.apt.listed["mysql-source"] = []
        found = self.get()
        self.assertEqual(self.apt.asked, self.names(self.PIN, kind="mysql-9.7"))
        orig = self.cache / "downloads/mysql-9.7_9.7.4.orig.tar.gz"
        self.verify.assert_called_once_with(orig, FINGERPRINT)
        self.assertEqual((found["pinned"], found["archive"], found["member"]), (True, str(orig), ""))
        self.assertIn(FINGERPRINT, found["checked"])
        self.assertIn("upstream's tarball", " ".join(self.said))

    def test_both_lead_to_one_tree(self):
        trees = [Path(self.get()["tree"])]
        shutil.rmtree(trees[0])
        (self.cache / "downloads" / self.pin["file"]).unlink()
        self.apt.gone = {f"mysql-source={self.PIN}"}
        trees.append(Path(self.get()["tree"]))
        self.assertNotEqual(*trees)
        self.assertEqual((trees[1] / "sql/file").read_text(), "debian\n")
        self.assertEqual(self.left(), {trees[1].name})

    def test_upstreams_tarball_where_the_package_is_listed_and_not_delivered(self):
        self.apt.gone = {f"mysql-source={self.PIN}"}
        self.assertTrue(self.get()["tree"].endswith("mysql-9.7.4-2-pristine"))
        self.assertIn("could not fetch", " ".join(self.said))
        self.apt.asked.clear()
        self.get()  # the tree is there
        self.assertEqual(self.apt.asked, [])

    def test_a_bad_signature_is_no_reason_for_another_way(self):
        self.apt.listed["mysql-source"] = ["9.7.6-1"]
        self.verify.side_effect = Problem("is not signed")
        with self.assertRaisesRegex(Problem, "is not signed"):
            self.get()
        self.assertEqual(self.left(), set())
        self.assertEqual(self.apt.asked, self.names(self.PIN, kind="mysql-9.7"))

    def test_a_damaged_package_is_no_reason_for_another_way(self):
        self.pin["sha256"] = "0" * 64
        with self.assertRaisesRegex(Problem, "second download did not help"):
            self.get()
        self.assertEqual(self.apt.asked, self.names(self.PIN, self.PIN))

    def test_a_tarball_with_another_hash_than_the_pinned_one(self):
        self.apt.listed["mysql-source"] = []
        self.pin["orig_sha256"] = "0" * 64
        with self.assertRaisesRegex(Problem, "is damaged.*removed it"):
            self.get()
        self.assertFalse((self.cache / "downloads/mysql-9.7_9.7.4.orig.tar.gz").exists())

    def test_a_patch_of_debian_that_does_not_apply(self):
        self.apt.listed["mysql-source"] = []
        self.apt.orig = tarball(self.root / "orig", "m", FakeApt.files("another"))
        self.pin["orig_sha256"] = sha256(self.apt.orig)
        with self.assertRaisesRegex(Problem, "patch one.patch does not apply"):
            self.get()
        self.assertEqual(self.left(), set())

    def test_what_is_damaged_is_fetched_again(self):
        """Only one of three files has a hash in sources.json: the tarball of the pinned version."""
        self.apt.listed["mysql-source"] = []

        def changed(archive, _fingerprint):
            if pristine.signature_of(archive).read_text() != "signature":
                raise pristine.Damaged("is not signed")

        for ending, words in ((".orig.tar.gz.asc", "is not signed"), ("-2.debian.tar.xz", "has no series")):
            downloads = self.cache / "downloads"
            with self.subTest(ending):
                self.apt.asked.clear()
                shutil.rmtree(self.get()["tree"])
                (downloads / f"mysql-9.7_9.7.4{ending}").write_text("damaged")
                with (
                    mock.patch.object(pristine, "verify", changed),
                    self.assertRaisesRegex(Problem, rf"(?s){words}.*Removed.*same command again"),
                ):
                    self.get()
                self.assertEqual([path for path in downloads.iterdir() if path.is_file()], [])
                self.get()
                self.assertEqual(self.apt.asked, self.names(self.PIN, self.PIN, kind="mysql-9.7"))
                shutil.rmtree(self.cache / "src")
                for path in downloads.iterdir():
                    path.unlink() if path.is_file() else shutil.rmtree(path)

    def test_what_is_not_damaged_stays(self):
        self.apt.listed["mysql-source"] = []
        self.verify.side_effect = Problem("gpgv is missing")
        with self.assertRaisesRegex(Problem, "gpgv is missing$"):
            self.get()
        self.assertTrue((self.cache / "downloads/mysql-9.7_9.7.4.orig.tar.gz").exists())

    def test_a_downloaded_package_needs_no_archive(self):
        self.get()
        shutil.rmtree(self.cache / "src/mysql-9.7.4-2")
        with mock.patch.object(self.apt, "versions", side_effect=AssertionError):
            self.get()


class MovedOn(Archive):
    """Debian's archive has moved on to another 9.7.x."""

    def setUp(self):
        super().setUp()
        self.apt.listed = {"mysql-source": ["10.0.1-1", "9.7.10-1", "9.7.6-1"], "mysql-9.7": ["9.7.2-4"]}

    def test_the_newest_is_taken_with_a_warning(self):
        found = self.get()
        self.assertEqual(self.apt.asked, self.names("9.7.10-1"))
        self.assertFalse(found["pinned"])
        self.assertEqual(found["checked"], "Debian's signed list of packages")
        words = " ".join(self.said)
        self.assertIn("NOT THE PINNED SOURCE: MySQL 9.7.10-1 and not 9.7.4-2: Debian's archive does not have", words)
        self.apt.asked.clear()
        with mock.patch.object(self.apt, "versions", side_effect=AssertionError):
            self.assertEqual(self.get(), found)  # each time with the warning, and without asking the archive
        self.assertIn("NOT THE PINNED SOURCE", " ".join(self.said))
        self.assertEqual(self.apt.asked, [])

    def test_a_new_pin_forgets_what_was_taken(self):
        self.get()
        self.pin |= {"version": "9.7.6-1", "file": "mysql-source_9.7.6-1_amd64.deb"}
        self.assertTrue(self.get()["pinned"])

    def test_a_tree_that_another_checkout_has_made(self):
        sources.os.environ["MYSQL_SOURCE_VERSION"] = "9.7.10-1"
        self.get()
        del sources.os.environ["MYSQL_SOURCE_VERSION"]
        self.apt.asked.clear()
        self.assertTrue(self.get()["tree"].endswith("mysql-9.7.10-1"))
        self.assertEqual(self.apt.asked, [])

    def test_the_tarball_of_the_newest(self):
        self.apt.listed = {"mysql-source": ["9.7.6-1"], "mysql-9.7": ["9.7.10-1"]}
        self.assertTrue(self.get()["tree"].endswith("mysql-9.7.10-1-pristine"))
        self.verify.assert_called_once()

    def test_the_next_where_the_newest_is_not_delivered(self):
        self.apt.gone = {"mysql-source=9.7.10-1"}
        self.assertTrue(self.get()["tree"].endswith("mysql-9.7.6-1"))

    def test_an_older_one_is_never_taken_unasked(self):
        self.apt.listed["mysql-source"] = ["9.7.3-1"]
        words = (
            r"(?s)no mysql-source 9\.7\.4-2 .*no mysql-9\.7 9\.7\.4-2 .*MYSQL_SOURCE_VERSION=9\.7\.3-1 .*MYSQL_SOURCE_T"
        )
        with self.assertRaisesRegex(Problem, words):
            self.get()
        self.assertEqual(self.apt.asked, [])

    def test_a_version_that_was_asked_for(self):
        sources.os.environ["MYSQL_SOURCE_VERSION"] = "9.7.6-1"
        for _ in range(2):  # the second time without asking the archive
            result = self.get()
            self.assertFalse(result["pinned"])
            self.assertTrue(result["tree"].endswith("mysql-9.7.6-1"))
            self.assertIn("mysql-source_9.7.6-1_", result["archive"])
            self.assertTrue(Path(result["archive"]).is_file())
            self.assertIn("NOT THE PINNED SOURCE", " ".join(self.said))
        self.assertEqual(self.apt.asked, ["mysql-source=9.7.6-1"])
        del sources.os.environ["MYSQL_SOURCE_VERSION"]
        self.assertIn("9.7.10-1", self.get()["tree"])

    def test_an_older_version_that_was_asked_for(self):
        sources.os.environ["MYSQL_SOURCE_VERSION"] = "9.7.2-4"
        self.assertTrue(self.get()["tree"].endswith("mysql-9.7.2-4-pristine"))

    def test_a_version_that_the_archive_has_not(self):
        sources.os.environ["MYSQL_SOURCE_VERSION"] = "9.7.7-1"
        with self.assertRaisesRegex(Problem, "no mysql-source 9.7.7-1 "):
            self.get()
        self.assertEqual(self.apt.asked, [])

    def test_a_version_of_another_series(self):
        sources.os.environ["MYSQL_SOURCE_VERSION"] = "10.0.1-1"
        with self.assertRaisesRegex(Problem, "is not of MySQL 9.7"):
            self.get()

    def test_nothing_of_the_series(self):
        self.apt.listed = {"mysql-source": ["10.0.1-1"], "mysql-9.7": []}
        with self.assertRaisesRegex(Problem, r"it has: 10\.0\.1-1\)\n.*it has: none\)\.\n  MYSQL_SOURCE_T"):
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
        self.assertIn(f"waiting: another process is working, and holds {self.root}/lock".encode(), said)
