"""A real text collection for the demonstration: the English package descriptions of this machine's package index.

Taken from the first of these that has it:
1. apt's own index, where the long descriptions are part of it;
2. the archive's Translation-en files, fetched with apt's own downloader (its proxies and mirrors), checked against the
   signed InRelease file that apt has verified already, and kept in the cache folder: slim images tell apt to leave
   descriptions out of its index, and that setting is not touched;
3. the short descriptions in apt's index;
4. a text made from a small built-in vocabulary.

The result is the same list in the same order as long as the index does not change.
"""

import itertools
import os
import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harness.common import cache_dir

HELPER = "/usr/lib/apt/apt-helper"
ENOUGH = 2_000  # a collection of fewer documents shows nothing
BUILT_IN_DOCUMENTS = 20_000

Document = tuple[str, str]


@dataclass(frozen=True)
class Corpus:
    documents: list[Document]  # (name, text), ordered by name, every name once
    source: str  # says where the texts come from

    def sample(self, count: int) -> Self:
        """At most so many documents, evenly spread over the collection."""
        have = len(self.documents)
        if count >= have:
            return self
        return Corpus([self.documents[index * have // count] for index in range(count)], self.source)


def load() -> Corpus:
    """The best collection that this machine can give."""
    short = _unique(_descriptions(_output(["apt-cache", "dumpavail"])))
    if _mostly_long(short):
        return Corpus(short, "package descriptions of apt's index")
    long = _unique(itertools.chain.from_iterable(_descriptions(text) for text in _translations()))
    if len(long) >= ENOUGH:
        return Corpus(long, "package descriptions of the distribution's archive")
    if len(short) >= ENOUGH:
        return Corpus(short, "short package descriptions of apt's index")
    return Corpus(_built_in(), "built-in text (this machine has no package index; apt-get update makes one)")


def _output(command: list[str]) -> Iterator[str]:
    """The lines that a program prints; none if it is missing or fails."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, env={**os.environ, "LC_ALL": "C.UTF-8"}
        )
    except FileNotFoundError:
        return iter(())
    if done.returncode != 0:
        return iter(())
    return iter(done.stdout.decode(errors="replace").splitlines())


def _descriptions(lines: Iterable[str]) -> Iterator[Document]:
    """(package, description) of the stanzas of a Packages or Translation file."""
    name = ""
    text: list[str] | None = None
    for line in lines:
        if text is not None and line.startswith(" "):
            line = line.strip()
            text.append("" if line == "." else line)  # a lone dot: an empty line
            continue
        if text is not None:
            yield name, "\n".join(text)
            text = None
        if line.startswith("Package: "):
            name = line[9:].strip()
        elif line.startswith(("Description: ", "Description-en: ")):
            text = [line.split(": ", 1)[1].strip()]
    if text is not None:
        yield name, "\n".join(text)


def _unique(documents: Iterable[Document]) -> list[Document]:
    """One text for each package, by name. Of several (versions, suites), the longest counts, then the first."""
    best: dict[str, str] = {}
    for name, text in documents:
        if name and (-len(text), text) < (-len(best.get(name, "")), best.get(name, "")):
            best[name] = text
    return sorted(best.items())


def _mostly_long(documents: list[Document]) -> bool:
    return len(documents) >= ENOUGH and 2 * sum("\n" in text for _, text in documents) > len(documents)


def _translations() -> Iterator[Iterator[str]]:
    """The lines of each Translation-en file of the configured archives, fetched where the cache lacks it."""
    form = "$(BASE_URI)\t$(COMPONENT)\t$(FILENAME)\t$(BY_HASH)"
    for line in _output(["apt-get", "indextargets", "--format", form, "Created-By: Packages"]):
        fields = line.split("\t")
        if len(fields) != 4:
            continue
        base, component, packages, by_hash = fields
        expected = _expected(Path(packages), component)
        if expected is None:
            continue
        name, sha256 = expected
        url = f"{base}{component}/i18n/by-hash/SHA256/{sha256}" if by_hash == "yes" else f"{base}{name}"
        path = _fetch(url, sha256, Path(name).suffix)
        if path is not None:
            yield _output([HELPER, "cat-file", str(path)])


def _expected(packages: Path, component: str) -> tuple[str, str] | None:
    """Name and SHA-256 of the component's Translation-en file, from the InRelease file beside its Packages file."""
    prefix = packages.name.split(f"_{component}_binary-", 1)[0]
    try:
        release = (packages.parent / f"{prefix}_InRelease").read_text(errors="replace")
    except OSError:
        return None
    for suffix in ("xz", "bz2", "gz"):
        name = f"{component}/i18n/Translation-en.{suffix}"
        found = re.search(rf"^ ([0-9a-f]{{64}}) +\d+ {re.escape(name)}$", release, re.MULTILINE)
        if found:
            return name, found[1]
    return None


def _fetch(url: str, sha256: str, suffix: str) -> Path | None:
    """The file in the cache; None when it cannot be had, which is no error: there are other sources."""
    path = cache_dir() / "corpus" / f"Translation-en-{sha256[:16]}{suffix}"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"partial-{os.getpid()}-{path.name}")
    # No sandbox user, because it could not write to root's cache folder. The hash protects against bad files.
    command = [HELPER, "-o", "APT::Sandbox::User=root", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=1"]
    try:
        done = subprocess.run(
            [*command, "download-file", url, str(partial), f"SHA256:{sha256}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode != 0 or not partial.exists():
            return None
        partial.rename(path)
        return path
    except FileNotFoundError:
        return None
    finally:
        partial.unlink(missing_ok=True)


# The built-in text: sentences in the manner of package descriptions. The openings recur, as in real descriptions, so
# there are phrases of common words to search for.
_OPENINGS = (
    "this package provides",
    "this package contains",
    "the library provides",
    "the program allows users",
    "it can be used",
    "this module implements",
    "the command line tool reads",
    "these files are needed",
)
_SUBJECTS = (
    "shared library",
    "header files",
    "graphical user interface",
    "command line",
    "source code",
    "regular expressions",
    "network protocol",
    "database server",
    "file system",
    "text editor",
    "configuration files",
    "test suite",
    "image viewer",
    "programming language",
    "data structures",
    "documentation files",
    "video player",
    "audio plugin",
)
_ADJECTIVES = ("small", "fast", "portable", "simple", "flexible", "common", "modern", "complete", "free", "powerful")
_ENDINGS = (
    "for the desktop environment",
    "written in pure python",
    "with support for unicode",
    "using the standard library",
    "for scientific computing",
    "from many different formats",
    "over an encrypted connection",
    "with few dependencies",
)


def _built_in() -> list[Document]:
    chooser = random.Random(1)
    documents = []
    for number in range(BUILT_IN_DOCUMENTS):
        sentences = (
            f"{chooser.choice(_OPENINGS)} a {chooser.choice(_ADJECTIVES)} {chooser.choice(_SUBJECTS)} and "
            f"{chooser.choice(_SUBJECTS)} {chooser.choice(_ENDINGS)}."
            for _ in range(chooser.randint(3, 8))
        )
        documents.append((f"text-{number:05}", " ".join(sentences)))
    return documents


# Phrases to search for.

_WORD = re.compile(r"[a-z0-9_]+")
# InnoDB's default stop words of four letters and more (INFORMATION_SCHEMA.INNODB_FT_DEFAULT_STOPWORD).
_STOPWORDS = frozenset(["about", "from", "that", "this", "what", "when", "where", "will", "with"])


def phrases(documents: list[Document], count: int) -> list[str]:
    """The costliest real phrases: two neighbouring words, the rarer of which is still in as many documents as possible.

    Words of four letters and more only, and phrases that one document in 500 has: what people would search for.
    """
    in_documents: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for _, text in documents:
        words = _WORD.findall(text.lower())
        in_documents.update(set(words))
        pairs.update(set(itertools.pairwise(words)))
    wanted = [
        pair
        for pair, times in pairs.items()
        if times * 500 >= len(documents)
        and pair[0] != pair[1]
        and all(len(word) >= 4 and word not in _STOPWORDS for word in pair)
    ]
    wanted.sort(key=lambda pair: (-min(in_documents[pair[0]], in_documents[pair[1]]), pair))
    return [" ".join(pair) for pair in wanted[:count]]
