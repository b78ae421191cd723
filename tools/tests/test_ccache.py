"""Our ccache configuration and precompiled headers, with the real ccache and g++.

A precompiled header that is compiled while an older one is still there must be made
of the header's present text. With ccache's defaults it is not.
"""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from harness.common import ROOT
from harness.scratch import Scratch


def launcher(checkout: Path, build: Path, cache: Path, name: str) -> list[str]:
    """What our CMake files put before the compiler."""
    script = cache / "launcher.cmake"
    script.write_text(
        f"""set(CMAKE_SOURCE_DIR {checkout})
        set(CMAKE_BINARY_DIR {build})
        set(MEMDIAG_CACHE_DIR {cache})
        include({ROOT}/cmake/compiler_cache.cmake)
        message("${{{name}}}")"""
    )
    done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=True)
    return done.stderr.strip().split(";")


NEEDED = unittest.skipUnless(all(map(shutil.which, ("ccache", "cmake", "g++"))), "needs ccache, cmake, g++")


@NEEDED
class PrecompiledHeaders(Scratch):
    def setUp(self):
        super().setUp()
        self.build = self.root / "build"
        self.build.mkdir()
        self.launcher = launcher(ROOT, self.build, self.root, "MEMDIAG_LAUNCHER")
        (self.build / "pch.hxx").write_text("#include <h.h>\n")
        (self.build / "pch.hxx.cxx").touch()
        (self.build / "main.cc").write_text("int main() { return value(); }\n")

    def compile(self, *args, **environment):
        """As CMake's generated rules do it."""
        here = self.build
        command = [*self.launcher, "g++", f"-I{here}", "-Winvalid-pch", *args]
        env = {**os.environ, **environment}
        subprocess.run(command, cwd=here, env=env, check=True)

    def compile_header(self, **environment):
        here = self.build
        header = ["-x", "c++-header", "-include", f"{here}/pch.hxx"]
        depends = ["-MD", "-MT", "pch.hxx.gch", "-MF", "pch.hxx.gch.d"]
        output = ["-o", "pch.hxx.gch", "-c", f"{here}/pch.hxx.cxx"]
        self.compile(*header, *depends, *output, **environment)

    def value_built_from(self, value: int) -> int:
        here = self.build
        (here / "h.h").write_text(f"inline int value() {{ return {value}; }}\n")
        self.compile_header()
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

    def test_language_of_the_caller_does_not_matter(self):
        (self.build / "h.h").write_text("#include <string>\n")
        header = self.build / "pch.hxx.gch"
        self.compile_header(LANG="C.UTF-8")
        first = header.read_bytes()
        header.unlink()
        self.compile_header(LANG="C", LC_ALL="C")
        # Compiled again, it would not be the same: the compiler writes addresses.
        self.assertTrue(header.read_bytes() == first)

    def test_header_is_not_read_for_each_file(self):
        (self.build / "h.h").write_text("inline int value() { return 1; }\n")
        log = self.root / "log"
        self.compile_header(CCACHE_DEBUG="1", CCACHE_LOGFILE=str(log))
        # On another file system than ext4, XFS, Btrfs and tmpfs ccache reads it, and says so.
        self.assertRegex(log.read_text(), "Inode cache file loaded|not known to work for the inode cache")

    @unittest.skipUnless(shutil.which("ninja"), "needs ninja")
    def test_header_made_anew_is_that_of_a_fresh_checkout(self):
        """By ninja, in a folder that has an old one, and in one that has none."""
        words = " ".join(self.launcher)
        made = []
        for name, values in (("one", (1, 2)), ("other", (2,))):
            self.build = here = self.root / "build" / name
            here.mkdir()
            (here / "pch.hxx.cxx").touch()
            (here / "cmake_pch.hxx").write_text("#include <h.h>\n")
            (here / "build.ninja").write_text(
                "rule header\n deps = gcc\n depfile = $out.d\n"
                f" command = {words} g++ -I. -x c++-header -include cmake_pch.hxx -MD -MT $out -MF $out.d -o $out -c $in\n"
                "build cmake_pch.hxx.gch: header pch.hxx.cxx\n"
            )
            for value in values:
                (here / "h.h").write_text(f"#include <string>\ninline int value() {{ return {value}; }}\n")
                subprocess.run([ROOT / "tools" / "build" / "old_headers.py", here], check=True)
                subprocess.run(["ninja", "--quiet"], cwd=here, check=True)
            made.append((here / "cmake_pch.hxx.gch").read_bytes())
        self.assertTrue(made[0] == made[1])
        before = (here / "cmake_pch.hxx.gch").stat().st_mtime_ns
        subprocess.run([ROOT / "tools" / "build" / "old_headers.py", here], check=True)
        self.assertEqual((here / "cmake_pch.hxx.gch").stat().st_mtime_ns, before)


@NEEDED
class UnitTests(Scratch):
    def test_another_checkout_has_compiled_it(self):
        results = self.root / "results"
        for name in ("one", "other"):
            checkout = self.root / name
            (checkout / "build").mkdir(parents=True)
            (checkout / "cmake").symlink_to(ROOT / "cmake")
            (checkout / "value.h").write_text("inline int value() { return 1; }\n")
            (checkout / "main.cc").write_text('#include "value.h"\nint main() { return value(); }\n')
            words = launcher(checkout, checkout / "build", self.root, "CMAKE_CXX_COMPILER_LAUNCHER")
            options = [f"-I{checkout}", "-g1", "-MD", "-MF", "main.d", "-o", "main.o"]
            subprocess.run(
                [*words, "g++", *options, "-c", checkout / "main.cc"],
                cwd=checkout / "build",
                env=os.environ | {"CCACHE_STATSLOG": str(results)},
                check=True,
            )
        self.assertEqual(results.read_text().count("direct_cache_hit"), 1)
