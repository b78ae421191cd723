"""Counting the users of our headers, in a small build."""

import unittest
from pathlib import Path

from harness.problem import Problem
from tools.build import header_cost

TOP = Path("/top")
BUILD = TOP / "build/dev/bld"
DEPS = """\
sql/CMakeFiles/sql_main.dir/item.cc.o: #deps 2, deps mtime 1 (VALID)
    ../mysql/sql/item.cc
    /usr/include/string.h

sql/CMakeFiles/sql_main.dir/field.cc.o: #deps 2, deps mtime 1 (VALID)
    ../mysql/sql/field.cc
    ../mysql/mysys/memdiag/upstream/places.h

sql/CMakeFiles/sql_main.dir/cmake_pch.hxx.gch: #deps 3, deps mtime 1 (VALID)
    sql/CMakeFiles/sql_main.dir/cmake_pch.hxx.cxx
    ../mysql/mysys/memdiag/upstream/hooks.h
    ../mysql/include/mem_root.h

storage/innobase/CMakeFiles/innobase.dir/mem0mem.cc.o: #deps 4, deps mtime 1 (STALE)
    ../mysql/storage/innobase/mem/mem0mem.cc
    ../mysql/storage/innobase/memdiag/heap.h
    ../mysql/storage/innobase/include/mem0mem.h
    ../mysql/mysys/memdiag/upstream/realloc.h

plugin/memdiag/CMakeFiles/memdiag.dir/plugin.cc.o: #deps 3, deps mtime 1 (VALID)
    ../mysql/plugin/memdiag/plugin.cc
    ../mysql/plugin/memdiag/base/unit.h
    ../mysql/mysys/memdiag/upstream/places.h

CMakeFiles/memdiag_core.dir/routes.cc.o: #deps 2, deps mtime 1 (VALID)
    ../../../mysys/memdiag/routes/routes.cc
    ../../../mysys/memdiag/upstream/places.h
"""
NINJA = """\
build sql/CMakeFiles/sql_main.dir/item.cc.o: CXX_sql_main /top/build/dev/mysql/sql/item.cc | sql/CMakeFiles/sql_main.dir/cmake_pch.hxx sql/CMakeFiles/sql_main.dir/cmake_pch.hxx.gch || order
  FLAGS = -O2
build sql/CMakeFiles/sql_main.dir/field.cc.o: CXX_sql_main /top/build/dev/mysql/sql/field.cc || order
"""


class HeaderCost(unittest.TestCase):
    def setUp(self):
        self.users = header_cost.users_of_headers(
            header_cost.recorded(DEPS), header_cost.precompiled(NINJA), BUILD, TOP
        )

    def counts(self, header):
        both = self.users[header]
        return len(both.upstream), len(both.own)

    def test_only_headers_of_ours(self):
        self.assertEqual(
            set(self.users),
            {
                "mysys/memdiag/upstream/places.h",
                "mysys/memdiag/upstream/hooks.h",
                "storage/innobase/memdiag/heap.h",
                "mysys/memdiag/upstream/realloc.h",
                "plugin/memdiag/base/unit.h",
            },
        )

    def test_the_copy_in_the_tree_is_the_same_header(self):
        self.assertEqual(self.counts("mysys/memdiag/upstream/places.h"), (1, 2))

    def test_in_a_precompiled_header(self):
        hooks = self.users["mysys/memdiag/upstream/hooks.h"]
        self.assertEqual(hooks.upstream, {"sql/CMakeFiles/sql_main.dir/item.cc.o"})

    def test_limits(self):
        def check(*limits):
            return header_cost.exceeded(self.users, limits)

        self.assertEqual(check("places.h=1", "mysys/memdiag/upstream/hooks.h=1"), [])
        (problem,) = check("places.h=1", "hooks.h=0")
        self.assertRegex(problem, "hooks.h: a change compiles 1 .* more than 0")
        for limit, words in (("nothing.h=1", "no headers"), ("hooks.h", "NAME=N")):
            with self.assertRaisesRegex(Problem, words):
                check(limit)


if __name__ == "__main__":
    unittest.main()
