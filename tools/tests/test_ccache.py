"""Our ccache configuration and precompiled headers, with the real ccache and g++.

A precompiled header that is compiled while an older one is still there must be made
of the header's present text. With ccache's defaults it is not.
"""

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from tools.common import ROOT
from tools.tests.scratch import Scratch


@unittest.skipUnless(
    shutil.which("ccache") and shutil.which("g++"), "needs ccache and g++"
)
class PrecompiledHeaders(Scratch):
    def setUp(self):
        super().setUp()
        self.build = self.root / "build"
        self.build.mkdir()
        values = {"MEMDIAG_CACHE_DIR": self.root, "CMAKE_BINARY_DIR": self.build}
        text = (ROOT / "cmake/ccache.conf.in").read_text()
        text = re.sub(r"@(\w+)@", lambda match: str(values[match.group(1)]), text)
        (self.root / "ccache.conf").write_text(text)
        (self.build / "pch.hxx").write_text("#include <h.h>\n")
        (self.build / "pch.hxx.cxx").touch()
        (self.build / "main.cc").write_text("int main() { return value(); }\n")

    def compile(self, *args):
        """As CMake's generated rules do it."""
        here = self.build
        command = ["ccache", "g++", f"-I{here}", "-Winvalid-pch", *args]
        env = {**os.environ, "CCACHE_CONFIGPATH": str(self.root / "ccache.conf")}
        subprocess.run(command, cwd=here, env=env, check=True)

    def value_built_from(self, value: int) -> int:
        here = self.build
        (here / "h.h").write_text(f"inline int value() {{ return {value}; }}\n")
        header = ["-x", "c++-header", "-include", f"{here}/pch.hxx"]
        depends = ["-MD", "-MT", "pch.hxx.gch", "-MF", "pch.hxx.gch.d"]
        output = ["-o", "pch.hxx.gch", "-c", f"{here}/pch.hxx.cxx"]
        self.compile(*header, *depends, *output)
        depends = ["-MD", "-MT", "main.o", "-MF", "main.o.d"]
        output = ["-o", "main.o", "-c", f"{here}/main.cc"]
        self.compile("-include", f"{here}/pch.hxx", *depends, *output)
        subprocess.run(["g++", "main.o", "-o", "main"], cwd=here, check=True)
        return subprocess.run([here / "main"], check=False).returncode

    def test_header_of_another_state_is_not_taken(self):
        self.assertEqual(self.value_built_from(0), 0)
        first = (self.build / "pch.hxx.gch").read_bytes()
        self.assertEqual(self.value_built_from(1), 1)
        # Another build folder, which got the first one from the cache.
        (self.build / "pch.hxx.gch").write_bytes(first)
        self.assertEqual(self.value_built_from(2), 2)
        (self.build / "pch.hxx.gch").write_bytes(first)
        self.assertEqual(self.value_built_from(0), 0)


if __name__ == "__main__":
    unittest.main()
