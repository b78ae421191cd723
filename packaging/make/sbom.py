"""The bill of materials of a build, in SPDX 2.3 and CycloneDX 1.6: every source and library that is linked into it.

The build tells which: the headers and files that the compiler read (ninja's log), and the libraries that the programs
ask for. Both files depend on the build and the commit alone.
"""

import hashlib
import json
import re
import subprocess
import tomllib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from harness.checkout import own_files
from harness.common import ROOT, say
from harness.problem import Problem
from harness.programs import captured
from make.portable import elf_files
from make.product import PACKAGING, Product
from tools.build.sources import PINS, sha256_file

TABLE = PACKAGING / "sbom.toml"
NAME = "mysql-memdiag"
# Of components that are folders: how the hash is made.
OF_FOLDER = (
    "SHA-256 of the lines that sha256sum prints for the folder's files, sorted by name:"
    " find . -type f | LC_ALL=C sort | xargs -d '\\n' sha256sum | sha256sum"
)
OF_ARCHIVE = "SHA-256 of the archive"
OF_LIBRARY = "SHA-256 of the shared library on the build machine; where it runs, the system's own serves"
OF_STATIC = "SHA-256 of the library"
# The compiler reads these, and no program that is shipped has them.
NOT_SHIPPED = {"googletest", "gperftools", "doxygen-awesome"}


@dataclass(frozen=True)
class Component:
    name: str
    version: str
    licence: str  # an expression of SPDX
    sha256: str
    purl: str
    hash_of: str
    linked: str = "static"  # or dynamic
    cpe: str = ""

    @property
    def ref(self) -> str:
        return re.sub(r"[^A-Za-z0-9.-]", "-", f"{self.name}-{self.version}")


def folder_sha256(folder: Path, files: Iterable[Path] | None = None) -> str:
    """See OF_FOLDER."""
    paths = [
        path for path in (folder.rglob("*") if files is None else files) if path.is_file() and not path.is_symlink()
    ]
    names = sorted(f"./{path.relative_to(folder)}".encode() for path in paths)
    whole = hashlib.sha256()
    for name in names:
        whole.update(f"{sha256_file(folder / name.decode())}  ".encode() + name + b"\n")
    return whole.hexdigest()


# --- what is linked ------------------------------------------------------------------


def read_by_the_compiler(build: Path) -> str:
    """All names in ninja's log of dependencies. -n: it writes nothing."""
    done = captured(["ninja", "-C", build / "bld", "-n", "-t", "deps"])
    if done.returncode or not done.stdout:
        raise Problem(f"ninja does not tell what the build in {build} was made of: {done.stderr.strip()}")
    return done.stdout


def bundled_names(read: str) -> list[str]:
    found = set(re.findall(r"/mysql/extra/([\w.-]+)/", read))
    if "/opentelemetry/proto/" in read:  # only what is generated of it is read
        found.add("opentelemetry-proto")
    return sorted(found - NOT_SHIPPED)


def bundled(extra: Path, name: str, table: dict[str, dict[str, str]]) -> Component:
    known = table.get(name)
    if known is None:
        raise Problem(f"the build has {extra / name}, and packaging/sbom.toml does not say its version and licence")
    if readme := known.get("readme"):
        found = re.search(known["version"], (extra / readme).read_text())
    else:
        inner = [re.fullmatch(known["version"], path.name) for path in sorted((extra / name).iterdir())]
        found = next(filter(None, inner), None)
    if not found:
        raise Problem(f"{extra / name} has another version than packaging/sbom.toml expects ({known['version']})")
    version = found[1].replace("_", ".") if name == "boost" else found[1]
    digest = folder_sha256(extra / name)
    return Component(name, version, known["licence"], digest, f"pkg:generic/{name}@{version}", OF_FOLDER)


def needed(paths: list[Path]) -> set[str]:
    """The names of shared libraries that the files ask for, other than each other."""
    done = captured(["readelf", "-d", *paths])
    own = set(re.findall(r"\(SONAME\).*\[(.+)\]", done.stdout)) | {path.name for path in paths}
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", done.stdout)) - own


def library_files() -> dict[str, Path]:
    done = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    found: dict[str, Path] = {}
    for name, path in re.findall(r"^\s+(\S+) \(.*x86-64.*\) => (\S+)$", done.stdout, re.MULTILINE):
        found.setdefault(name, Path(path))
    return found


def owner(path: Path) -> tuple[str, str, str]:
    """(package, its source package, version) of a file of Debian."""
    real = str(path.resolve())
    for name in (real, real.removeprefix("/usr")):  # /lib is a link to /usr/lib
        done = captured(["dpkg-query", "-S", name])
        if not done.returncode:
            package = done.stdout.split(": ")[0].split(",")[0]
            form = "${Package}\t${source:Package}\t${Version}"
            asked = subprocess.run(
                ["dpkg-query", "-W", "-f", form, package], capture_output=True, text=True, check=True
            )
            name, source, version = asked.stdout.split("\t")
            return name, source, version
    raise Problem(f"no package of Debian has {path}, which the build links")


def system(names: Iterable[str], table: dict[str, str]) -> list[Component]:
    files = library_files()
    result = []
    for name in sorted(names):
        if name.startswith("ld-linux"):
            continue
        if name not in files:
            raise Problem(f"the library {name}, which the build links, is not on this machine")
        result.append(debians(files[name], table, "dynamic"))
    return result


def debians(path: Path, table: dict[str, str], linked: str) -> Component:
    package, source, version = owner(path)
    if source not in table:
        raise Problem(f"{path} is of Debian's source package {source}, whose licence packaging/sbom.toml does not say")
    purl = f"pkg:deb/debian/{package}@{quote(version, safe='')}?arch=amd64"
    hash_of = OF_LIBRARY if linked == "dynamic" else OF_STATIC
    return Component(path.name, version, table[source], sha256_file(path.resolve()), purl, hash_of, linked)


def archives(build: Path) -> list[Path]:
    """Archives of the system that the rules of ninja link."""
    ninja = (build / "bld/build.ninja").read_text()
    paths = {Path(name) for name in re.findall(r"(?:^|\s)(/usr/lib/\S+\.a)(?=\s|$)", ninja)}
    # cmake/upstream/portable.cmake takes these objects from them.
    for name in ("libbsd", "libicudata"):
        if re.search(rf"\b{name}/\w+\.o\b", ninja):
            paths.add(Path(f"/usr/lib/x86_64-linux-gnu/{name}.a"))
    if "-static-libstdc++" in ninja:
        command = ["c++", "-print-file-name=libstdc++.a"]
        paths.add(Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()))
    return sorted(paths)


def licences_of_archives(build: Path) -> str:
    """The licences as Debian's packages of these archives have them."""
    names = sorted({owner(path)[0] for path in archives(build)})
    return "".join(f"== {name}\n\n{Path('/usr/share/doc', name, 'copyright').read_text()}\n" for name in names)


def source_archive(name: str, licence: str, source: dict[str, Any], cpe: str = "") -> Component:
    """MySQL or jemalloc. Of a tarball inside a package of Debian, the hash is that of the tarball."""
    archive = Path(source["archive"])
    pins = json.loads(PINS.read_text())[name]
    if source["pinned"] and source["member"]:
        digest = pins["tarball_sha256"]  # checked when it was unpacked
    elif archive.is_file():
        digest = sha256_file(archive)
    else:
        raise Problem(f"{archive}, of which the build was made, is not there, so it has no hash")
    checked = source.get("checked") or "SHA-256 in cmake/sources.json"
    inner = f", {source['member']} in {archive.name}" if source["member"] else f", {archive.name}"
    version = source["version"]
    return Component(
        name,
        version,
        licence,
        digest,
        f"pkg:generic/{name}@{version}",
        f"{OF_ARCHIVE}{inner}; checked: {checked}",
        cpe=cpe,
    )


def components(build: Path, tree: Path, product: Product) -> list[Component]:
    table = tomllib.loads(TABLE.read_text())
    mysql = product.sources["mysql"]
    cpe = f"cpe:2.3:a:oracle:mysql:{mysql['version']}:*:*:*:*:*:*:*"
    own = Component(
        "memdiag",
        product.memdiag,
        "GPL-2.0-only",
        folder_sha256(ROOT, own_files(ROOT)),
        f"pkg:generic/memdiag@{product.memdiag}" + (f"?vcs_commit={product.commit}" if product.commit else ""),
        OF_FOLDER
        + f"; of the files that git has at commit {product.commit or 'unknown'}, the patches to MySQL among them",
    )
    extra = build / "mysql/extra"
    return [
        source_archive("mysql", "GPL-2.0-only WITH Universal-FOSS-exception-1.0", mysql, cpe),
        source_archive("jemalloc", "BSD-2-Clause", product.sources["jemalloc"]),
        own,
        *(bundled(extra, name, table["bundled"]) for name in bundled_names(read_by_the_compiler(build))),
        *(debians(path, table["system"], "static") for path in archives(build)),
        *system(needed(elf_files(sorted(tree.rglob("*")))), table["system"]),
    ]


# --- the two forms -------------------------------------------------------------------


def moment(product: Product) -> str:
    return datetime.fromtimestamp(product.date, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def identity(parts: list[Component], product: Product) -> str:
    text = json.dumps([product.mysql, product.memdiag, product.commit, *map(repr, parts)])
    return str(uuid.uuid5(uuid.NAMESPACE_URL, text))


def spdx(parts: list[Component], product: Product) -> dict[str, Any]:
    def package(part: Component) -> dict[str, Any]:
        references = [("PACKAGE-MANAGER", "purl", part.purl)]
        if part.cpe:
            references.append(("SECURITY", "cpe23Type", part.cpe))
        return {
            "SPDXID": f"SPDXRef-{part.ref}",
            "name": part.name,
            "versionInfo": part.version,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": part.licence,
            "licenseDeclared": part.licence,
            "copyrightText": "NOASSERTION",
            "checksums": [{"algorithm": "SHA256", "checksumValue": part.sha256}],
            "comment": part.hash_of,
            "externalRefs": [
                {"referenceCategory": category, "referenceType": kind, "referenceLocator": locator}
                for category, kind, locator in references
            ],
        }

    server = f"SPDXRef-{NAME}"
    main = {
        "SPDXID": server,
        "name": NAME,
        "versionInfo": f"{product.mysql}-memdiag{product.memdiag}",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "GPL-2.0-only",
        "licenseDeclared": "GPL-2.0-only",
        "copyrightText": "NOASSERTION",
        "primaryPackagePurpose": "APPLICATION",
    }
    kinds = {"static": "STATIC_LINK", "dynamic": "DYNAMIC_LINK"}
    links = [
        {"spdxElementId": server, "relationshipType": kinds[part.linked], "relatedSpdxElement": f"SPDXRef-{part.ref}"}
        for part in parts
    ]
    described = {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": server}
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{NAME}-{product.mysql}-{product.memdiag}",
        "documentNamespace": f"https://memdiag.invalid/spdx/{identity(parts, product)}",
        "creationInfo": {"created": moment(product), "creators": [f"Tool: memdiag-sbom-{product.memdiag}"]},
        "packages": [main, *map(package, parts)],
        "relationships": [described, *links],
    }


def cyclonedx(parts: list[Component], product: Product) -> dict[str, Any]:
    def component(part: Component) -> dict[str, Any]:
        found = {
            "type": "library",
            "bom-ref": part.ref,
            "name": part.name,
            "version": part.version,
            "hashes": [{"alg": "SHA-256", "content": part.sha256}],
            "licenses": [{"expression": part.licence}],
            "purl": part.purl,
            "properties": [
                {"name": "memdiag:linked", "value": part.linked},
                {"name": "memdiag:hash", "value": part.hash_of},
            ],
        }
        return found | ({"cpe": part.cpe} if part.cpe else {})

    version = f"{product.mysql}-memdiag{product.memdiag}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{identity(parts, product)}",
        "version": 1,
        "metadata": {
            "timestamp": moment(product),
            "tools": {"components": [{"type": "application", "name": "memdiag-sbom", "version": product.memdiag}]},
            "component": {
                "type": "application",
                "bom-ref": NAME,
                "name": NAME,
                "version": version,
                "licenses": [{"license": {"id": "GPL-2.0-only"}}],
                "purl": f"pkg:generic/{NAME}@{version}",
            },
        },
        "components": [component(part) for part in parts],
        "dependencies": [{"ref": NAME, "dependsOn": [part.ref for part in parts]}]
        + [{"ref": part.ref, "dependsOn": []} for part in parts],
    }


def write(build: Path, tree: Path, out: Path, product: Product) -> list[Path]:
    say("-- writing the bill of materials")
    parts = components(build, tree, product)
    made = []
    for suffix, document in (("spdx", spdx(parts, product)), ("cdx", cyclonedx(parts, product))):
        path = out / f"{NAME}.{suffix}.json"
        path.write_text(json.dumps(document, indent=1) + "\n")
        made.append(path)
    return made
