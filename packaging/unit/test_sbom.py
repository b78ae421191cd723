"""The bill of materials: what is in it, that a part without version or licence stops it, and the fields of both forms.

The forms were also checked once with the validators of cyclonedx-python-lib and spdx-tools, which know the whole schema.
"""

import json
import re
import subprocess
import sys
import tomllib
import unittest
from pathlib import Path
from unittest import mock

from make import sbom
from make.portable import elf_files
from make.product import Product

from harness.problem import Problem
from harness.scratch import Scratch

SHA = re.compile(r"[0-9a-f]{64}")
DEPS = """sql/a.cc.o: #deps 3, deps mtime 1 (VALID)
    /x/build/dev/mysql/extra/boost/boost_1_87_0/boost/a.hpp
    /x/build/dev/mysql/extra/rapidjson/include/rapidjson/b.h
    generated/third_party/opentelemetry-proto/opentelemetry/proto/common/v1/common.pb.h
    /x/build/dev/mysql/extra/googletest/googletest-1.17.0/c.h
"""


class Case(Scratch):
    def setUp(self):
        super().setUp()
        self.build = self.root / "build"
        extra = self.build / "mysql/extra"
        for name in (
            "boost/boost_1_87_0/a.hpp",
            "rapidjson/include/b.h",
            "opentelemetry-proto/opentelemetry-proto-1.2/c",
        ):
            (extra / name).parent.mkdir(parents=True)
            (extra / name).write_text(name)
        (extra / "RAPIDJSON-README").write_text(f"based on\ncommit {'a' * 40}\n")
        (self.build / "bld").mkdir()
        (self.build / "bld/build.ninja").write_text("LINK_LIBRARIES = a.a -lz\n")
        for name in ("mysql", "jemalloc"):
            (self.root / f"{name}.tar.gz").write_text(name)
        self.product = Product("9.7.4", "1.0.0", 1795781913, "c" * 40, "", False, {}, self.sources())
        self.tree = self.root / "tree"
        self.tree.mkdir()
        self.enterContext(mock.patch.object(sbom, "say"))
        self.enterContext(mock.patch.object(sbom, "read_by_the_compiler", return_value=DEPS))
        self.needed = self.enterContext(
            mock.patch.object(sbom, "needed", return_value={"libz.so.1", "ld-linux-x86-64.so.2"})
        )
        self.enterContext(
            mock.patch.object(sbom, "library_files", return_value={"libz.so.1": self.root / "mysql.tar.gz"})
        )
        self.owner = self.enterContext(
            mock.patch.object(sbom, "owner", return_value=("zlib1g", "zlib", "1:1.2.13+x-1"))
        )

    def sources(self) -> dict:
        return {
            "mysql": {
                "version": "9.7.4",
                "pinned": False,
                "archive": str(self.root / "mysql.tar.gz"),
                "member": "",
                "checked": "signature of X",
            },
            "jemalloc": {
                "version": "5.3.1",
                "pinned": False,
                "archive": str(self.root / "jemalloc.tar.gz"),
                "member": "",
            },
        }

    def parts(self) -> dict[str, sbom.Component]:
        return {part.name: part for part in sbom.components(self.build, self.tree, self.product)}


class Parts(Case):
    def test_every_linked_source_is_named(self):
        found = self.parts()
        self.assertEqual(
            list(found), ["mysql", "jemalloc", "memdiag", "boost", "opentelemetry-proto", "rapidjson", "mysql.tar.gz"]
        )
        self.assertEqual(found["boost"].version, "1.87.0")
        self.assertEqual(found["rapidjson"].version, "a" * 40)
        self.assertIn("checked: signature of X", found["mysql"].hash_of)
        self.assertIn(":oracle:mysql:9.7.4:", found["mysql"].cpe)
        self.assertEqual(found["mysql.tar.gz"].purl, "pkg:deb/debian/zlib1g@1%3A1.2.13%2Bx-1?arch=amd64")
        for part in found.values():
            self.assertTrue(part.version and part.licence and SHA.fullmatch(part.sha256), part)

    def test_the_hash_of_a_folder_is_that_of_the_named_command(self):
        folder = self.build / "mysql/extra"
        command = sbom.OF_FOLDER.partition(": ")[2]
        done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.split()[0], sbom.folder_sha256(folder))

    def test_a_folder_that_the_table_does_not_know(self):
        with (
            mock.patch.object(sbom, "read_by_the_compiler", return_value="\n /b/mysql/extra/new/a.h\n"),
            self.assertRaisesRegex(Problem, "extra/new, and packaging/sbom.toml does not say"),
        ):
            self.parts()

    def test_another_version_than_the_table_expects(self):
        (self.build / "mysql/extra/boost/boost_1_87_0").rename(self.build / "mysql/extra/boost/1.88")
        with self.assertRaisesRegex(Problem, "boost has another version"):
            self.parts()

    def test_a_library_without_a_licence(self):
        self.owner.return_value = ("libnew1", "new", "1")
        with self.assertRaisesRegex(Problem, "source package new, whose licence"):
            self.parts()

    def test_a_library_that_is_not_there(self):
        self.needed.return_value = {"libnone.so"}
        with self.assertRaisesRegex(Problem, r"libnone\.so, which the build links, is not"):
            self.parts()

    def test_an_archive_that_is_gone_has_no_hash(self):
        (self.root / "mysql.tar.gz").unlink()
        with self.assertRaisesRegex(Problem, "so it has no hash"):
            self.parts()

    def test_of_debians_package_the_hash_is_that_of_the_tarball_inside(self):
        source = self.product.sources["mysql"] | {"pinned": True, "member": "./x.tar.gz"}
        part = sbom.source_archive("mysql", "GPL-2.0-only", source)
        pins = json.loads(sbom.PINS.read_text())["mysql"]
        self.assertEqual(part.sha256, pins["tarball_sha256"])

    def archives(self, ninja: str) -> list[Path]:
        (self.build / "bld/build.ninja").write_text(ninja)
        return sbom.archives(self.build)

    def test_archives_of_the_system(self):
        self.assertEqual(self.archives("link = sql/a.a /usr/lib/b.so"), [])
        self.assertEqual(self.archives("link = /usr/lib/x/liba.a /usr/lib/b.so"), [Path("/usr/lib/x/liba.a")])
        self.assertEqual([path.name for path in self.archives("link = -static-libstdc++")], ["libstdc++.a"])
        self.assertEqual([path.name for path in self.archives("link = libbsd/vis.o")], ["libbsd.a"])

    def test_an_archive_is_linked_statically_and_its_licence_is_kept(self):
        self.archives("link = /usr/lib/x/liba.a")
        self.owner.return_value = ("zlib1g-dev", "zlib", "1:1.2.13+x-1")
        with mock.patch.object(sbom, "sha256_file", return_value="0" * 64):
            part = sbom.debians(Path("/usr/lib/x/liba.a"), {"zlib": "Zlib"}, "static")
        self.assertEqual((part.name, part.linked, part.licence), ("liba.a", "static", "Zlib"))
        with (
            mock.patch.object(sbom, "archives", return_value=[Path("/usr/lib/x/liba.a")]),
            mock.patch.object(Path, "read_text", return_value="the licence"),
        ):
            self.assertEqual(sbom.licences_of_archives(self.build), "== zlib1g-dev\n\nthe licence\n")


class ThisMachine(unittest.TestCase):
    def test_what_a_program_needs(self):
        programs = elf_files(sorted(Path(sys.executable).resolve().parent.rglob("*")))
        self.assertIn("libc.so.6", sbom.needed(programs[:50]))
        package, source, version = sbom.owner(sbom.library_files()["libc.so.6"])
        self.assertEqual((package, source), ("libc6", "glibc"))
        self.assertTrue(version)


class Forms(Case):
    """The fields that the two specifications require, and that both forms name the same."""

    def setUp(self):
        super().setUp()
        paths = sbom.write(self.build, self.tree, self.root, self.product)
        self.spdx, self.cyclonedx = (json.loads(path.read_text()) for path in paths)

    def test_spdx(self):
        document = self.spdx
        self.assertEqual(
            (document["spdxVersion"], document["dataLicense"], document["SPDXID"]),
            ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"),
        )
        self.assertTrue(document["name"])
        self.assertRegex(document["documentNamespace"], r"^https://[^#\s]+$")
        self.assertEqual(document["creationInfo"]["created"], "2026-11-27T12:18:33Z")
        self.assertRegex(document["creationInfo"]["creators"][0], r"^Tool: \S+$")
        ids = [one["SPDXID"] for one in document["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        for one in document["packages"]:
            self.assertRegex(one["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            for field in ("name", "versionInfo", "downloadLocation", "licenseConcluded", "licenseDeclared"):
                self.assertTrue(one[field], one)
            self.assertIs(one["filesAnalyzed"], False)
        for one in document["packages"][1:]:
            (checksum,) = one["checksums"]
            self.assertEqual(checksum["algorithm"], "SHA256")
            self.assertRegex(checksum["checksumValue"], SHA)
            self.assertRegex(one["externalRefs"][0]["referenceLocator"], r"^pkg:\w+/\S+@\S+$")
        for one in document["relationships"]:
            self.assertLessEqual({one["spdxElementId"], one["relatedSpdxElement"]}, {*ids, "SPDXRef-DOCUMENT"})
        linked = {
            one["relatedSpdxElement"] for one in document["relationships"] if one["relationshipType"] != "DESCRIBES"
        }
        self.assertEqual(linked, set(ids[1:]))

    def test_cyclonedx(self):
        document = self.cyclonedx
        self.assertEqual((document["bomFormat"], document["specVersion"], document["version"]), ("CycloneDX", "1.6", 1))
        self.assertRegex(
            document["serialNumber"], r"^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
        )
        self.assertEqual(document["metadata"]["timestamp"], "2026-11-27T12:18:33Z")
        refs = [document["metadata"]["component"]["bom-ref"], *(one["bom-ref"] for one in document["components"])]
        self.assertEqual(len(refs), len(set(refs)))
        self.assertEqual([one["ref"] for one in document["dependencies"]], refs)
        self.assertEqual(document["dependencies"][0]["dependsOn"], refs[1:])
        for one in document["components"]:
            self.assertEqual(one["type"], "library")
            for field in ("name", "version", "purl"):
                self.assertTrue(one[field])
            self.assertEqual([digest["alg"] for digest in one["hashes"]], ["SHA-256"])
            self.assertRegex(one["hashes"][0]["content"], SHA)
            self.assertEqual([list(licence) for licence in one["licenses"]], [["expression"]])

    def test_both_name_the_same(self):
        def of_spdx(one: dict) -> tuple:
            return one["name"], one["versionInfo"], one["licenseDeclared"], one["checksums"][0]["checksumValue"]

        def of_cyclonedx(one: dict) -> tuple:
            return one["name"], one["version"], one["licenses"][0]["expression"], one["hashes"][0]["content"]

        self.assertEqual(
            [of_spdx(one) for one in self.spdx["packages"][1:]],
            [of_cyclonedx(one) for one in self.cyclonedx["components"]],
        )

    def test_two_runs_are_the_same(self):
        again = sbom.write(self.build, self.tree, self.root, self.product)
        self.assertEqual([self.spdx, self.cyclonedx], [json.loads(path.read_text()) for path in again])


class Table(unittest.TestCase):
    def test_expressions_and_patterns(self):
        table = tomllib.loads(sbom.TABLE.read_text())
        for licence in (*(one["licence"] for one in table["bundled"].values()), *table["system"].values()):
            for word in re.split(r" (?:AND|OR|WITH) ", licence):
                self.assertRegex(word, r"^[A-Za-z0-9.-]+$", licence)
        for name, one in table["bundled"].items():
            self.assertEqual(re.compile(one["version"]).groups, 1, name)
