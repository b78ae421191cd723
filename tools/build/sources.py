#!/usr/bin/env python3
"""Fetches, verifies and unpacks the pinned sources (cmake/sources.json).

Called by CMake when it configures, usable alone. Everything lands in the cache
folder (see common.cache_dir): downloads/ and src/<name>-<version>/. A tree that
is there is complete: it is unpacked under another name and renamed at the end.

The files come with the ordinary apt client from Debian's unstable suite, with a
private configuration, so that nothing of the machine's own apt changes; the
mirror is the one that the machine uses already.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.common import ROOT, cache_dir, lock, require_disk, say
from harness.problem import Problem, run_main
from harness.programs import captured
from harness.state_file import read_state, write_state
from tools.build import pristine

PINS = ROOT / "cmake" / "sources.json"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
CHUNK = 1 << 20
OWN_TARBALL = "MYSQL_SOURCE_TARBALL=/path and JEMALLOC_SOURCE_TARBALL=/path name archives that you have"


class Unavailable(Problem):
    """The archive does not deliver a file."""


# --- the machine's own mirror ------------------------------------------------


def debian_mirror() -> str:
    """URI of the archive from which this machine has its own main packages, according to apt's configuration."""
    names = {os_release().get("VERSION_CODENAME", "")}
    names |= {"stable", "oldstable", "testing", "unstable", "sid"}
    with tempfile.TemporaryDirectory(prefix="memdiag-") as empty:
        # Without package lists, apt names the files that it would fetch.
        command = ["apt-get", "-o", f"Dir::State::lists={empty}"]
        done = captured([*command, "update", "--print-uris"], stdin=subprocess.DEVNULL)
    if mirror := main_archive(done.stdout, names):
        return mirror
    said = f" (apt-get: {done.stderr.strip()})" if done.returncode else ""
    raise Problem(
        f"the apt of this machine has no Debian archive with the component main{said}.\n"
        f"  Add your mirror to /etc/apt, or bring the archives: {OWN_TARBALL}."
    )


def main_archive(uris: str, suites: set[str]) -> str:
    """The first archive with packages of main for one of the suites; `uris`: of apt-get update --print-uris."""
    for mirror, suite in re.findall(r"^'(\S+?)/dists/([^/\s]+)/main/binary-[^/\s]+/Packages\b", uris, re.MULTILINE):
        if suite in suites:
            return mirror
    return ""


def os_release() -> dict[str, str]:
    path = Path("/etc/os-release")
    if not path.is_file():
        return {}
    pairs = (line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
    return {key: value.strip('"') for key, value in pairs}


# --- private apt ---------------------------------------------------------------


class PrivateApt:
    """apt with state, cache and sources of its own, below one folder."""

    def __init__(self, folder: Path):
        release = os_release()
        if release.get("ID") != "debian" or not shutil.which("apt-get"):
            raise Problem(
                "the sources come from Debian's archive, and this is not Debian "
                f"(it says {release.get('PRETTY_NAME', 'nothing')}).\n"
                f"  Use Debian 12, or bring the archives: {OWN_TARBALL}."
            )
        self.folder = folder
        self.mirror = debian_mirror()
        self.conf = folder / "apt.conf"
        self._write()

    def _write(self) -> None:
        for name in ("lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        # Debian's own key, and no other that the machine trusts for other archives.
        by = f" signed-by={KEYRING}" if KEYRING.is_file() else ""
        # target=: fetches the package lists, and no translations or icons.
        (self.folder / "sources.list").write_text(
            f"deb [target=Packages{by}] {self.mirror} sid main\ndeb-src [target=Sources{by}] {self.mirror} sid main\n"
        )
        here = self.folder
        self.conf.write_text(
            f'Dir::State "{here}";\n'
            f'Dir::State::lists "{here}/lists";\n'
            f'Dir::State::status "{here}/status";\n'
            f'Dir::Cache "{here}/cache";\n'
            f'Dir::Cache::archives "{here}/cache/archives";\n'
            'Dir::Cache::pkgcache "";\n'
            'Dir::Cache::srcpkgcache "";\n'
            f'Dir::Etc::sourcelist "{here}/sources.list";\n'
            'Dir::Etc::sourceparts "/dev/null";\n'
            'Dir::Etc::preferences "/dev/null";\n'
            'Dir::Etc::preferencesparts "/dev/null";\n'
            'APT::Default-Release "";\n'
            # Hooks of the machine would clean its own package cache.
            "#clear APT::Update::Pre-Invoke;\n"
            "#clear APT::Update::Post-Invoke;\n"
            "#clear APT::Update::Post-Invoke-Success;\n"
            'APT::Update::Error-Mode "any";\n'
            # apt's download user cannot read root's cache folder.
            'APT::Sandbox::User "";\n'
            # The machine may allow these for its own archives, but they are not allowed here.
            'Acquire::AllowInsecureRepositories "false";\n'
            'Acquire::AllowWeakRepositories "false";\n'
            'Acquire::AllowDowngradeToInsecureRepositories "false";\n'
            'APT::Get::AllowUnauthenticated "false";\n'
            'APT::Get::Force-Yes "false";\n'
            'Acquire::Languages "none";\n'
            'Acquire::Retries "3";\n'
            'Acquire::http::Timeout "30";\n'
            'Acquire::https::Timeout "30";\n'
        )

    def _run(self, tool: str, *args: str, **kwargs) -> subprocess.CompletedProcess:
        # -c and not APT_CONFIG: apt reads this after the machine's own files, so it overrides them.
        command = [tool, "-c", str(self.conf), *args]
        env = {**os.environ, "LC_ALL": "C.UTF-8"}
        return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, text=True, env=env, **kwargs)

    def update(self) -> None:
        say(f"-- reading the package lists of Debian unstable from {self.mirror}")
        done = self._run("apt-get", "-q=1", "update", capture_output=True)
        if done.returncode:
            why = [x for x in done.stderr.splitlines() if x.startswith(("E:", "W:"))]
            raise Problem(
                f"the package mirror of this machine ({self.mirror}) cannot be read: "
                f"{why[0][2:].strip() if why else 'apt-get update failed'}\n"
                "  Check the network (and proxy) of this machine and run the same "
                f"command again; without network, {OWN_TARBALL}."
            )

    def versions(self, package: str, source: bool) -> list[str]:
        """All versions of a package, newest first."""
        verb = ("showsrc", "--only-source") if source else ("show",)
        done = self._run("apt-cache", *verb, package, capture_output=True)
        found = set(re.findall(r"^Version: (\S+)$", done.stdout, re.MULTILINE))
        return sorted(found, key=version_key, reverse=True)

    def sha256_of(self, package: str, version: str) -> str:
        done = self._run("apt-cache", "show", f"{package}={version}", capture_output=True)
        match = re.search(r"^SHA256: (\w+)$", done.stdout, re.MULTILINE)
        return match.group(1) if match else ""

    def download(self, into: Path, *args: str) -> None:
        into.mkdir(parents=True, exist_ok=True)
        done = self._run("apt-get", "-q=1", *args, cwd=into)
        if done.returncode:
            raise Unavailable(
                f"apt-get could not fetch {args[-1]} from {self.mirror} (its message "
                "is above).\n"
                "  Check the network and the free disk space and run the same command "
                f"again; what was fetched is kept. Without network, {OWN_TARBALL}."
            )


def version_key(version: str) -> list:
    """The key that orders the versions of one series. They are plain, so dpkg's rules are not needed."""
    return [int(part) for part in re.findall(r"\d+", version)]


# --- files ---------------------------------------------------------------------


def sha256_file(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(path: Path, want: str) -> str:
    """Names the fault of a downloaded file; empty: it has none."""
    got = sha256_file(path)
    if got == want:
        return ""
    return f"{path.name} is damaged: SHA-256 {got[:16]}... instead of {want[:16]}... ({path.stat().st_size} bytes)"


def fetch_verified(path: Path, want: str, download) -> None:
    """Leaves a verified file at `path`. Removes a bad file and downloads it again, once.
    download(folder) puts the file into a folder under its own name."""
    partial = path.parent / "partial"
    for attempt in range(3):
        if not path.is_file():
            if attempt == 2:
                break
            download(partial)
            if not (partial / path.name).is_file():
                raise Problem(f"apt-get fetched something else than {path.name}.")
            os.replace(partial / path.name, path)
        say(f"-- verifying {path.name}")
        problem = check(path, want)
        if not problem:
            return
        path.unlink()
        say(f"-- {problem}; removed it")
    raise Problem(
        f"{problem}, and a second download did not help.\n"
        "  The mirror or something on the way changes the file: try again later or "
        f"use another mirror; {OWN_TARBALL}."
    )


def open_archive(archive: Path, member: str, stack: contextlib.ExitStack):
    """The bytes of an archive; with `member`, of that file in a Debian package."""
    if not member:
        return stack.enter_context(open(archive, "rb"))
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    package = stack.enter_context(subprocess.Popen(command, **pipe))
    command = ["tar", "-xO", member]
    inner = stack.enter_context(subprocess.Popen(command, stdin=package.stdout, **pipe))
    package.stdout.close()  # so the writer ends when tar ends
    return inner.stdout


def copy_hashing(head: bytes, source, sink, size: int) -> str:
    """Copies all of `source` and shows the progress; returns the SHA-256."""
    sum_ = hashlib.sha256()
    done, began = 0, time.monotonic()
    shown = began
    chunk = head
    while chunk:
        sum_.update(chunk)
        sink.write(chunk)
        done += len(chunk)
        now = time.monotonic()
        if now - shown > 5:
            shown = now
            left = (now - began) / done * max(size - done, 0)
            say(f"-- unpacked {min(done * 100 // size, 99)}%, about {left:.0f} s left")
        chunk = source.read(CHUNK)
    return sum_.hexdigest()


def untar_command(head: bytes, into: Path) -> list[str]:
    # --touch: files dated in the future would make every build out of date.
    command = ["tar", "-x", "--touch", "--no-same-owner", "--strip-components=1"]
    # Left-overs of Debian's own build; upstream's tarballs have no such folders.
    command += ["--anchored", "--wildcards", "--no-wildcards-match-slash"]
    command += [f"--exclude=*/{x}" for x in ("builddir", ".pc", "configure-stamp")]
    # tar finds the compression of a file by itself, but not that of a pipe.
    for magic, option in ((b"\x1f\x8b", "-z"), (b"BZh", "-j"), (b"\xfd7zXZ", "-J")):
        if head.startswith(magic):
            command.append(option)
    return [*command, "-C", str(into), "-f", "-"]


def unpack(archive: Path, into: Path, member: str = "", want: str = "", finish: Callable | None = None) -> None:
    """Unpacks an archive without its first folder; atomically. `member` names the
    tarball inside a Debian package, `want` is the SHA-256 of that tarball. `finish`
    checks or changes the tree before it gets its name."""
    staging = into.parent / f".unpacking-{into.name}"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        with contextlib.ExitStack() as stack:
            source = open_archive(archive, member, stack)
            head = source.read(6)
            # No pipe: tar would wait where its warnings fill it, before it reads on.
            messages = stack.enter_context(tempfile.TemporaryFile())
            untar = stack.enter_context(
                subprocess.Popen(untar_command(head, staging), stdin=subprocess.PIPE, stderr=messages)
            )
            got = ""
            with contextlib.suppress(BrokenPipeError):  # tar says why, below
                got = copy_hashing(head, source, untar.stdin, archive.stat().st_size)
            untar.communicate()
            messages.seek(0)
            words = messages.read().decode(errors="replace").splitlines()
        if untar.returncode or not any(staging.iterdir()):
            raise Problem(
                f"{archive} cannot be unpacked, it is truncated or no tar archive "
                f"({words[0] if words else 'it is empty'}).\n"
                "  Remove or replace it and run the same command again."
            )
        if want and got != want:
            raise Problem(
                f"{member} in {archive} has SHA-256 {got}, pinned is {want} "
                "(cmake/sources.json).\n"
                f"  Remove {archive} and run the same command again."
            )
        if finish:
            finish(staging)
        os.replace(staging, into)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


# --- MySQL ---------------------------------------------------------------------


def mysql_version(tree: Path) -> str:
    path = tree / "MYSQL_VERSION"
    if not path.is_file():
        return ""
    pairs = dict(x.split("=", 1) for x in path.read_text().split("\n") if "=" in x)
    parts = [pairs.get(f"MYSQL_VERSION_{x}", "") for x in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(parts)


def provided(tree: Path, version: str, pinned: bool, archive: Path, member: str = "", checked: str = "") -> dict:
    """The result for a source. `archive` and `member` are those of unpack(): the source RPM contains what they name.
    `checked`: what shows that the archive is the right one."""
    return {
        "tree": str(tree),
        "version": version,
        "pinned": pinned,
        "archive": str(archive.absolute()),
        "member": member,
        "checked": checked,
    }


def user_tree(cache: Path, archive: Path, name: str, verify, signed_by: str = "") -> Path:
    """The tree of an archive that the user names; each content is unpacked once. `signed_by`: the fingerprint of the key
    of its signature, which is checked then."""
    if not archive.is_file():
        raise Problem(f"{archive} (given by the environment) is not there.")
    # Hashing 400 MB at every configure would be slow, so size and time stand for the content.
    files = [archive, *([pristine.signature_of(archive)] if signed_by else [])]
    facts = [(path.absolute(), path.stat()) for path in files]
    identity = " ".join(f"{path} {fact.st_size} {fact.st_mtime_ns}" for path, fact in facts)
    key = hashlib.sha256(identity.encode()).hexdigest()[:12]
    tree = cache / "src" / f"{name}-user-{key}"
    if not tree.is_dir():
        require_disk([(cache, 1.5, "unpacking")])
        if signed_by:
            say(f"-- checking the signature of {archive}")
            pristine.verify(archive, signed_by)
        say(f"-- unpacking {archive}")
        unpack(archive, tree, finish=verify)
    return tree


def user_mysql(cache: Path, pin: dict, archive: Path) -> dict:
    def verify(tree: Path) -> None:
        version = mysql_version(tree)
        if not version.startswith(pin["series"] + "."):
            raise Problem(
                f"{archive} holds {'MySQL ' + version if version else 'no MySQL source'}"
                f"; MYSQL_SOURCE_TARBALL must be a source of MySQL {pin['series']}.x."
            )

    signature = pristine.signature_of(archive)
    signed_by = pin["signed_by"] if signature.is_file() else ""
    tree = user_tree(cache, archive, "mysql", verify, signed_by)
    version = mysql_version(tree)
    checked = signed(pin) if signed_by else f"nothing: there is no {signature.name} beside it"
    say(f"-- MySQL {version} from {archive} (yours, not the pinned one); checked: {checked}")
    return provided(tree, version, False, archive, checked=checked)


def signed(pin: dict) -> str:
    return f"signature of MySQL's release engineering, {pin['signed_by']}"


@dataclass(frozen=True)
class Way:
    """One way to MySQL's source in Debian's archive."""

    kind: str
    version: str  # Debian's

    def tree(self, cache: Path) -> Path:
        return cache / "src" / f"mysql-{self.version}{'-pristine' if self.kind == PRISTINE else ''}"

    def archive(self, cache: Path, pin: dict) -> Path:
        pinned = pin["file" if self.kind == PACKAGE else "orig"]
        have, want = pin["version"], self.version
        if self.kind == PRISTINE:
            have, want = upstream_part(have), upstream_part(want)
        return cache / "downloads" / pinned.replace(have, want)

    def member(self, pin: dict) -> str:
        return pin["tarball"] if self.kind == PACKAGE else ""

    def checked(self, pin: dict) -> str:
        """What shows that the source is the right one."""
        if self.kind == PRISTINE:
            return signed(pin)
        return "SHA-256 in cmake/sources.json" if self.version == pin["version"] else "Debian's signed list of packages"


# The kinds, in the order in which they are tried: Debian's package mysql-source, and upstream's tarball with Debian's
# patches, which `apt-get source` gets.
PACKAGE, PRISTINE = "package", "pristine"
KINDS = {PACKAGE: "package", PRISTINE: "source_package"}  # of sources.json


def upstream_part(version: str) -> str:
    return version.rsplit("-", 1)[0]


def chosen_version(pin: dict) -> str:
    """The pinned version, unless MYSQL_SOURCE_VERSION names another one of the series."""
    version = os.environ.get("MYSQL_SOURCE_VERSION") or pin["version"]
    if not version.startswith(pin["series"] + "."):
        raise Problem(
            f"MYSQL_SOURCE_VERSION={version} is not of MySQL {pin['series']}; the pinned version is {pin['version']}."
        )
    return version


def ways(pin: dict, version: str, found: Callable[[str], list[str]]) -> Iterator[Way]:
    """The ways to a version; then, if nobody asked for that one, to each newer of the series, newest first. `found`: the
    versions that the archive has of a kind."""
    yield from (Way(kind, version) for kind in KINDS)
    if os.environ.get("MYSQL_SOURCE_VERSION"):
        return
    known = {one for kind in KINDS for one in found(kind) if one.startswith(pin["series"] + ".")}
    newer = [one for one in known if version_key(one) > version_key(version)]
    for one in sorted(newer, key=version_key, reverse=True):
        yield from (Way(kind, one) for kind in KINDS)


def archive_mysql(cache: Path, pin: dict, make_apt) -> dict:
    version = chosen_version(pin)
    there = [way for way in (Way(kind, version) for kind in KINDS) if way.tree(cache).is_dir()]
    if not there and version == pin["version"]:
        there = taken_before(cache, pin)
    way = there[0] if there else fetch_mysql(cache, pin, version, make_apt)
    pinned = way.version == pin["version"]
    if not pinned:
        asked = way.version == os.environ.get("MYSQL_SOURCE_VERSION")
        why = "MYSQL_SOURCE_VERSION says so" if asked else "Debian's archive does not have that one"
        say(f"** NOT THE PINNED SOURCE: MySQL {way.version} and not {pin['version']}: {why}.")
        say("** A line below names each patch that upstream's changes have moved, or the first that does not apply.")
        if not asked:
            say(f"** Remove {instead(cache)} to look for the pinned one again.")
    if way.kind == PRISTINE:
        say("-- MySQL from upstream's tarball, with Debian's patches")
    tree = way.tree(cache)
    return provided(
        tree, mysql_version(tree), pinned, way.archive(cache, pin), way.member(pin), checked=way.checked(pin)
    )


def instead(cache: Path) -> Path:
    """The note of what was taken in the place of the pinned source: the archive is not asked each time."""
    return cache / "mysql-instead.json"


def taken_before(cache: Path, pin: dict) -> list[Way]:
    note = read_state(instead(cache))
    if note.get("pinned") != pin["version"]:
        return []
    way = Way(str(note.get("kind")), str(note.get("version")))
    return [way] if way.kind in KINDS and way.tree(cache).is_dir() else []


def fetch_mysql(cache: Path, pin: dict, version: str, make_apt) -> Way:
    """Downloads, verifies and unpacks a version, or a newer one. What is damaged or has a wrong signature ends this: only
    what the archive lacks makes room for the next way."""
    listed: dict[str, list[str]] = {}

    def found(kind: str) -> list[str]:
        if kind not in listed:
            listed[kind] = make_apt().versions(pin[KINDS[kind]], source=kind == PRISTINE)
        return listed[kind]

    (cache / "downloads").mkdir(parents=True, exist_ok=True)
    reasons = []
    for way in ways(pin, version, found):
        name = f"{pin[KINDS[way.kind]]} {way.version}"
        # A package that was downloaded, and has its hash in sources.json, needs no network.
        mine = way == Way(PACKAGE, pin["version"]) and way.archive(cache, pin).is_file()
        if not mine and way.version not in found(way.kind):
            reasons.append(f"the archive has no {name} (it has: {', '.join(found(way.kind)) or 'none'})")
            continue
        try:
            if not way.tree(cache).is_dir():  # another checkout may have made it
                (fetch_package if way.kind == PACKAGE else fetch_pristine)(cache, pin, way, make_apt)
        except Unavailable as problem:
            reasons.append(f"{name}: {str(problem).splitlines()[0].rstrip('.')}")
            say(f"-- {reasons[-1]}")
            continue
        if way.version != version:
            write_state(instead(cache), {"pinned": version, "kind": way.kind, "version": way.version})
        return way
    older = sorted({one for kind in listed for one in listed[kind] if one.startswith(pin["series"] + ".")} - {version})
    choice = f"MYSQL_SOURCE_VERSION={older[-1]} takes that version.\n  " if older else ""
    raise Problem(
        "\n  ".join(reasons) + f".\n  {choice}MYSQL_SOURCE_TARBALL=/path takes a source archive of MySQL"
        f" {pin['series']}.x that you have."
    )


def say_download(name: str, pin: dict) -> None:
    say(f"-- downloading {name}, about {pin['download_mb']} MB (one minute at {pin['download_mb'] // 60} MB/s)")


def fetch_package(cache: Path, pin: dict, way: Way, make_apt) -> None:
    want, tarball_want = pin["sha256"], pin["tarball_sha256"]
    if way.version != pin["version"]:
        want, tarball_want = make_apt().sha256_of(pin["package"], way.version), ""

    def download(folder: Path) -> None:
        name = f"{pin['package']}={way.version}"
        say_download(name, pin)
        make_apt().download(folder, "download", name)

    path = way.archive(cache, pin)
    fetch_verified(path, want, download)
    say(f"-- unpacking MySQL {way.version}, about 30 s")
    unpack(path, way.tree(cache), way.member(pin), tarball_want)


def fetch_pristine(cache: Path, pin: dict, way: Way, make_apt) -> None:
    path = way.archive(cache, pin)
    debian = path.with_name(f"{pin['source_package']}_{way.version}.debian.tar.xz")
    files = [path, pristine.signature_of(path), debian]
    if not all(file.is_file() for file in files):
        name = f"{pin['source_package']}={way.version}"
        say_download(f"upstream's tarball ({name})", pin)
        # apt checks each file against Debian's signed list of sources.
        make_apt().download(path.parent / "partial", "source", "--download-only", name)
        for file in files:
            if not (file.parent / "partial" / file.name).is_file():
                raise Problem(f"apt-get fetched something else than {file.name}.")
            os.replace(file.parent / "partial" / file.name, file)
    say(f"-- checking upstream's signature of {path.name}")
    problem = check(path, pin["orig_sha256"]) if upstream_part(way.version) == upstream_part(pin["version"]) else ""
    if problem:
        path.unlink()
        raise Problem(f"{problem}; removed it.\n  Run the same command again; {OWN_TARBALL}.")

    def patch(tree: Path) -> None:
        say(f"-- {pristine.apply_debians_patches(debian, tree)} patches of Debian applied")

    try:
        pristine.verify(path, pin["signed_by"])
        say(f"-- unpacking MySQL {way.version}, about 30 s")
        unpack(path, way.tree(cache), finish=patch)
    except pristine.Damaged as damaged:
        # Any of them may be it, and without all three they are downloaded again.
        for file in files:
            file.unlink()
        raise Problem(f"{damaged}\n  Removed what was downloaded. Run the same command again; {OWN_TARBALL}.") from None


# --- jemalloc ------------------------------------------------------------------


def user_jemalloc(cache: Path, pin: dict, archive: Path) -> dict:
    def verify(tree: Path) -> None:
        log = tree / "ChangeLog"
        match = log.is_file() and re.search(r"^\* (\d\S+)", log.read_text(), re.MULTILINE)
        if not match or match.group(1) != pin["version"]:
            raise Problem(
                f"{archive} holds {'jemalloc ' + match.group(1) if match else 'no jemalloc'}"
                f"; JEMALLOC_SOURCE_TARBALL must be a source of {pin['version']}."
            )

    tree = user_tree(cache, archive, "jemalloc", verify)
    return provided(tree, pin["version"], False, archive, checked="nothing")


def pinned_jemalloc(cache: Path, pin: dict, make_apt) -> dict:
    tree = cache / "src" / f"jemalloc-{pin['version']}"
    path = cache / "downloads" / pin["file"]
    if not tree.is_dir():

        def download(folder: Path) -> None:
            apt = make_apt()
            found = apt.versions(pin["package"], source=True)
            usable = [x for x in found if x.split("-")[0] == pin["version"]]
            if not usable:
                raise Problem(
                    f"the archive has no jemalloc {pin['version']} (it has: "
                    f"{', '.join(found) or 'none'}).\n  JEMALLOC_SOURCE_TARBALL=/path "
                    "names an archive of that version that you have."
                )
            say(f"-- downloading jemalloc {usable[0]}, about 1 MB")
            what = f"{pin['package']}={usable[0]}"
            apt.download(folder, "source", "--download-only", "--tar-only", what)

        path.parent.mkdir(parents=True, exist_ok=True)
        fetch_verified(path, pin["sha256"], download)
        unpack(path, tree)
    return provided(tree, pin["version"], True, path, checked="SHA-256 in cmake/sources.json")


# --- main ----------------------------------------------------------------------


def provide(wanted: list[str], cache: Path, pins: dict, build: Path | None) -> dict:
    apt: list[PrivateApt] = []

    def make_apt() -> PrivateApt:
        if not apt:
            apt.append(PrivateApt(cache / "apt"))
            apt[0].update()
        return apt[0]

    needs = []
    missing = not list((cache / "src").glob("mysql-*"))
    if "mysql" in wanted and missing:
        needs.append((cache, pins["disk_gb"]["sources"], "sources"))
    if build and "mysql" in wanted and not (build / "bld" / "build.ninja").exists():
        needs.append((build, pins["disk_gb"]["build"], "the build"))
    require_disk(needs)

    result = {}
    if "mysql" in wanted:
        if own := os.environ.get("MYSQL_SOURCE_TARBALL"):
            result["mysql"] = user_mysql(cache, pins["mysql"], Path(own))
        else:
            result["mysql"] = archive_mysql(cache, pins["mysql"], make_apt)
    if "jemalloc" in wanted:
        if own := os.environ.get("JEMALLOC_SOURCE_TARBALL"):
            result["jemalloc"] = user_jemalloc(cache, pins["jemalloc"], Path(own))
        else:
            result["jemalloc"] = pinned_jemalloc(cache, pins["jemalloc"], make_apt)
        result["jemalloc"]["full_version"] = pins["jemalloc"]["full_version"]
    result["cache"] = str(cache)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="mysql, jemalloc; default: both")
    parser.add_argument("--build-dir", type=Path, help="check its disk space too")
    parser.add_argument("--result", type=Path, help="write the places there, as JSON")
    args = parser.parse_args()
    wanted = args.what or ["mysql", "jemalloc"]
    if unknown := set(wanted) - {"mysql", "jemalloc"}:
        raise Problem(f"unknown source {unknown.pop()}; there are mysql, jemalloc.")
    cache = cache_dir()
    with lock(cache / "sources.lock", "fetching the sources"):
        result = provide(wanted, cache, json.loads(PINS.read_text()), args.build_dir)
    if args.result:
        write_state(args.result, result)
    else:
        say(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    run_main("sources", main)
