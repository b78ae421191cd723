"""The output of --json has the keys that docs/client.md lists."""

import io
import json
import re
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

from memdiag.cli import main
from memdiag.collect.lines import Line
from memdiag.commands import stacks
from memdiag.render import json as as_json
from memdiag.render.page import Page
from memdiag.report.build import report

from tests import fixtures
from tests.scratch import Scratch

PAGE = Path(__file__).parents[1] / "memdiag/client.md"


def documented() -> dict[str, list[str]]:
    """The row of each object: its keys, and what is said of them."""
    section = PAGE.read_text().split("\n## JSON\n")[1].split("\n## ")[0]
    rows = re.findall(r"(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]*) ?\|$", section)
    return {row[0].strip("`"): list(row[1:]) for row in rows}


class Documents(Scratch):
    def setUp(self):
        super().setUp()
        self.rows = documented()

    def output(self, *words):
        out = io.StringIO()
        with redirect_stdout(out):
            main(list(map(str, words)))
        return json.loads(out.getvalue())

    def check(self, name, value):
        keys, notes = self.rows[name]
        self.assertEqual(set(value), set(re.findall(r"`(\w+)`", keys)), name)
        if "format" in value:
            self.assertIn(f"`{value['format']}`", notes)
            self.assertEqual(next(iter(value)), "format")

    def page(self, name):
        data = fixtures.snapshot(name)
        return self.write(f"{name}.json", as_json.render(Page("", [report(data)], [], [data])))

    def test_report(self):
        self.check("report", json.loads(self.page("ours-idle").read_text()))

    def test_diff(self):
        found = self.output("diff", self.page("ours-idle"), self.page("ours-leak"), "--json", "--max-growth", "pool=1")
        self.check("diff", found)
        for one in (found["before"], found["after"]):
            self.check("a moment", one)
        self.assertTrue(found["exceeded"])
        for one in found["differences"] + found["exceeded"]:
            self.check("a difference", one)

    def test_stacks(self):
        names = "STACK POOL ROUTE LIVE_BYTES LIVE_BYTES_ERROR LIVE_OBJECTS DIGEST"
        stack = dict.fromkeys(names.split(), 1)
        frame = dict.fromkeys(["STACK", "FRAME", "ADDRESS", "FUNCTION", "MODULE"], 1)
        frame |= {"MODULE_ADDRESS": "0x10", "BUILD_ID": "ab"}
        with (
            mock.patch.object(stacks, "Session"),
            mock.patch.object(stacks, "read", return_value=([stack], [frame])),
            mock.patch.object(stacks, "lines_of_modules", return_value=({("ab", 16): [Line("f", "a.cc:5")]}, [])),
        ):
            found = self.output("stacks", "db1", "--json")
        self.check("stacks", found)
        (of_stack,) = found["stacks"]
        self.check("a stack", of_stack)
        (of_frame,) = of_stack["frames"]
        self.check("a frame", of_frame)
        self.check("a line", of_frame["lines"][0])

    def test_what_if(self):
        data = fixtures.snapshot("ours-idle")
        path = self.write("r.json", as_json.render(Page("", [report(data)], [], [data])))
        found = self.output("what-if", path, "--limit", "1M", "--set", "sort_buffer_size=1G", "--json")
        self.check("what-if", found)
        for name in ("history", "ceiling", "budget"):
            self.check(name, found[name])
        for one in (found["history"]["highest"], found["history"]["first_above"]):
            self.check("a sample", one)
        for one in (found["budget"]["now"], found["budget"]["then"]):
            self.check("a sum", one)


if __name__ == "__main__":
    unittest.main()
