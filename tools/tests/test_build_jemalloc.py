"""cmake/build_jemalloc.sh with a source that stands for jemalloc's: what it builds again and what it keeps."""

import os
import subprocess

from harness.common import ROOT
from harness.scratch import Scratch

CONFIGURE = "#!/bin/sh\necho configured >>../../../configured\nmkdir -p lib include bin\ntouch bin/jeprof\n"
MAKEFILE = (
    "lib/libjemalloc.a:\n\techo library >$@\ninstall_include:\n\tmkdir ../include\n\ttouch ../include/jemalloc.h\n"
)


class BuildJemalloc(Scratch):
    def setUp(self):
        super().setUp()
        self.source, self.cache = self.root / "source", self.root / "cache"
        self.source.mkdir()
        self.cache.mkdir()
        self.make_file("source/include/jemalloc/internal/private_namespace.h")
        (self.source / "configure").write_text(CONFIGURE)
        (self.source / "configure").chmod(0o755)
        (self.source / "Makefile").write_text(MAKEFILE)

    def build(self, preset: str, *flags: str, cflags: str = "-O2") -> bool:
        """@return whether it was built anew"""
        before = self.configured()
        folder = self.root / preset
        folder.mkdir(exist_ok=True)
        cflags = f"{cflags} -ffile-prefix-map={folder}=."
        # make would compile our part of the library: `true` stands for the compiler.
        environment = {"CC": "true", "MAKE": "make", "AUTOCONF": "true", "CFLAGS": cflags}
        command = ["sh", ROOT / "cmake/build_jemalloc.sh", self.source, ROOT, folder / "jemalloc", self.cache]
        subprocess.run([*command, *flags], env=os.environ | environment, check=True)
        self.assertEqual((folder / "jemalloc/lib/libjemalloc.a").read_text(), "library\n")
        self.assertTrue((folder / "jemalloc/include/jemalloc.h").exists())
        return self.configured() > before

    def configured(self) -> int:
        file = self.root / "configured"
        return len(file.read_text().split()) if file.exists() else 0

    def test_another_build_folder_gets_it_from_the_cache(self):
        self.assertTrue(self.build("dev", "--flag"))
        self.assertFalse(self.build("asan", "--flag"))
        self.assertTrue((self.root / "asan/jemalloc/src/bin/jeprof").exists())

    def test_what_decides_the_result_builds_it_again(self):
        self.build("dev", "--flag")
        self.assertTrue(self.build("dev", "--other"))
        self.assertTrue(self.build("dev", "--flag", cflags="-O3"))
        (self.source / "Makefile").write_text(MAKEFILE + "# changed\n")
        self.assertTrue(self.build("dev", "--flag"))
