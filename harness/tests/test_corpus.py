"""The text collection: its parts, and what it falls back to."""

import unittest
from unittest import mock

from harness import corpus
from harness.programs import captured
from harness.scratch import Scratch

STANZAS = """\
Package: b
Version: 1
Description: short b
Tag: x,
 y

Package: a
Description-md5: 0
Description-en: short a
 long line
 .
 next paragraph

Package: b
Description: short b
 and more of it
"""


class Parsing(unittest.TestCase):
    def test_stanzas(self):
        found = list(corpus._descriptions(STANZAS.splitlines()))
        self.assertEqual(
            found, [("b", "short b"), ("a", "short a\nlong line\n\nnext paragraph"), ("b", "short b\nand more of it")]
        )

    def test_the_longest_text_of_a_name(self):
        found = corpus._unique(corpus._descriptions(STANZAS.splitlines()))
        self.assertEqual([name for name, _ in found], ["a", "b"])
        self.assertEqual(found[1][1], "short b\nand more of it")


class Sources(unittest.TestCase):
    def load(self, index: str, translations: list[str]):
        with (
            mock.patch.object(corpus, "_output", lambda command: iter(index.splitlines())),
            mock.patch.object(corpus, "_translations", lambda: (iter(text.splitlines()) for text in translations)),
        ):
            return corpus.load()

    @staticmethod
    def index(text: str) -> str:
        return "\n".join(f"Package: p{n}\nDescription: {text}\n" for n in range(3000))

    def test_order_of_preference(self):
        short, long = self.index("short"), self.index("short\n long")
        self.assertEqual(self.load(long, [short]).documents[0][1], "short\nlong")
        self.assertEqual(self.load(short, [long]).documents[0][1], "short\nlong")
        self.assertEqual(self.load(short, []).documents[0][1], "short")
        self.assertIn("built-in", self.load("", []).source)

    def test_built_in_is_the_same_every_time_and_has_phrases(self):
        one, other = self.load("", []), self.load("", [])
        self.assertEqual(one, other)
        self.assertIn("package provides", corpus.phrases(one.documents, 40))

    def test_sample(self):
        whole = self.load("", [])
        part = whole.sample(1000)
        self.assertEqual(len(set(part.documents)), 1000)
        self.assertIs(whole.sample(10**9), whole)


class Fetching(Scratch):
    def test_apt_works_as_the_user_who_owns_the_cache(self):
        with (
            mock.patch.object(corpus, "cache_dir", lambda: self.root),
            mock.patch.object(corpus.subprocess, "run", side_effect=FileNotFoundError) as run,
        ):
            self.assertIsNone(corpus._fetch("http://localhost/x.xz", "0" * 64, ".xz"))
        (command,) = run.call_args.args
        options = command[1 : command.index("download-file")]
        said = captured(["apt-config", *options, "shell", "user", "APT::Sandbox::User"]).stdout
        self.assertEqual(said, "user='root'\n")


class Phrases(unittest.TestCase):
    def test_neighbours_only_and_no_stop_words(self):
        documents = [("x", "shared library a file with files, and a\nshared library")] * 10
        self.assertEqual(corpus.phrases(documents, 9), ["shared library"])
