"""What gdb says of a memory root."""

import unittest
from pathlib import Path

from bench import kept_roots
from harness.problem import Problem

SAID = """\
ROOT 1000 5016 9000
MOVED 24
#0  0x0001 in MEM_ROOT::Alloc (this=0x1) at ./mysql/include/my_alloc.h:166
#1  Item::operator new (size=24) at ./mysql/sql/item.h:954
#2  create_item (thd=0x1, name=...) at ./mysql/sql/items.cc:12
#3  parse () at ./mysql/sql/parse.cc:7
MOVED -70000
#0  MEM_ROOT::ForceNewBlock (this=0x1) at ./mysql/mysys/my_alloc.cc:172
#1  0x0002 in create_item (thd=0x1) at ./mysql/sql/items.cc:14
MOVED 40
#0  0x0003 in List<Item>::push_back (this=0x1) at ./mysql/sql/sql_list.h:9
#1  parse () at ./mysql/sql/parse.cc:8
MOVED -999999
#0  MEM_ROOT::MEM_ROOT (this=0x2, other=...) at ./mysql/include/my_alloc.h:120

ENDED
"""


class Allocations(unittest.TestCase):
    def test_each_belongs_to_the_function_that_wanted_it(self):
        self.assertEqual(
            list(kept_roots.allocations(SAID)),
            [("what was there before the parser began", 4000), ("create_item, items.cc", 24), ("parse, parse.cc", 40)],
        )

    def test_what_does_not_fit_is_an_error(self):
        for text, words in (
            ("no symbol", "did not follow"),
            (SAID.replace("ENDED", ""), "did not follow"),
            (SAID.replace("1000 5016", "9000 5016"), "in another place"),
        ):
            with self.subTest(words), self.assertRaisesRegex(Problem, words):
                list(kept_roots.allocations(text))


class Script(unittest.TestCase):
    def test_a_later_stop_is_set_at_the_earlier_one(self):
        kind = kept_roots.KINDS["prepared statement"]
        text = kind.script(Path("/there/ready"))
        first, second = (text.index(f"tbreak {stop}\n") for stop in kind.stops)
        self.assertLess(first, second)
        self.assertLess(second, text.index("watch "))
        self.assertEqual(text.count("\ncommands\n"), text.count("\nend"))
        self.assertIn("shell touch /there/ready", text)


if __name__ == "__main__":
    unittest.main()
