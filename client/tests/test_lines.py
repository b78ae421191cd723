import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from memdiag.collect.lines import Line, build_id, debug_file, lines_of, parse
from memdiag.commands.stacks import of_frame, plain, shown

PROGRAM = """
#include <stdlib.h>
void *kept;
static inline __attribute__((always_inline)) void take(size_t n) {
  kept = malloc(n);
}
__attribute__((noinline)) void *take_much(size_t n) {
  take(n);
  return kept;
}
int main(void) { return take_much(1000) == 0; }
"""


class Lines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not all(shutil.which(name) for name in ("gcc", "nm", "readelf", "objcopy")):
            raise unittest.SkipTest("gcc and binutils are not installed")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        (cls.folder / "known.c").write_text(PROGRAM)
        cls.program = cls.folder / "known"
        subprocess.run(["gcc", "-g", "-O2", "-Wl,--build-id", "-o", cls.program, cls.folder / "known.c"], check=True)
        cls.id = build_id(cls.program)

    def address_of_call(self):
        text = subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", self.program], capture_output=True, text=True, check=True
        ).stdout
        within = text.split("<take_much>:")[1]
        (line,) = [line for line in within.split("\n\n")[0].splitlines() if "malloc" in line]
        return int(line.split(":")[0], 16)

    def test_an_inlined_function_has_its_own_line(self):
        for name in ("addr2line", "llvm-symbolizer"):
            program = shutil.which(name)
            if program is None:
                continue
            with self.subTest(name):
                (found,) = lines_of(self.program, [self.address_of_call()], program).values()
                self.assertEqual([one.function for one in found], ["take", "take_much"])
                self.assertEqual([one.place.rsplit("/")[-1] for one in found], ["known.c:5", "known.c:8"])

    def test_a_file_counts_only_with_its_build_id(self):
        self.assertEqual(debug_file(str(self.program), self.id), self.program)
        other = ("0" if self.id[0] != "0" else "1") + self.id[1:]
        self.assertIsNone(debug_file(str(self.program), other))
        for wrong in ("", "..", "../../etc", "zz" * 20):
            self.assertIsNone(debug_file(str(self.program), wrong))

    def test_the_debug_package_serves_a_stripped_program(self):
        folder = self.folder / "debug"
        (folder / self.id[:2]).mkdir(parents=True)
        debug = folder / self.id[:2] / f"{self.id[2:]}.debug"
        stripped = self.folder / "stripped"
        subprocess.run(["objcopy", "--only-keep-debug", self.program, debug], check=True)
        subprocess.run(["objcopy", "--strip-all", self.program, stripped], check=True)
        address = self.address_of_call()
        self.assertEqual(lines_of(stripped, [address]), {})
        path = debug_file(str(stripped), self.id, [folder])
        self.assertEqual(path, debug)
        self.assertEqual(lines_of(path, [address])[address][0].function, "take")


class Parsed(unittest.TestCase):
    def test_what_is_not_known_is_missing(self):
        text = "0x10\nf(int)\n/a/b.cc:5 (discriminator 3)\ng\n/a/c.cc:7\n0x20\n??\n??:0\n0x30\nh\n??:?\n"
        self.assertEqual(parse(text), {0x10: [Line("f(int)", "/a/b.cc:5"), Line("g", "/a/c.cc:7")]})
        self.assertEqual(parse(""), {})
        self.assertEqual(parse("f\n/a/b.cc:5\n0x10"), {})

    def test_a_frame_in_words(self):
        frame = {
            "STACK": 1,
            "ADDRESS": "0x7",
            "FUNCTION": "g",
            "MODULE": "/m",
            "MODULE_ADDRESS": "0x10",
            "BUILD_ID": "ab",
        }
        known = {("ab", 0x10): [Line("f", "a.cc:5"), Line("g", "a.cc:9")]}
        self.assertEqual(of_frame(frame, known), ["f  a.cc:5  (inlined)", "g  a.cc:9"])
        self.assertEqual(of_frame(frame, {}), ["g"])
        self.assertEqual(of_frame({**frame, "FUNCTION": None}, {}), ["/m 0x10"])
        self.assertEqual(of_frame({**frame, "FUNCTION": None, "MODULE": None, "MODULE_ADDRESS": None}, {}), ["? 0x7"])
        stack = {
            "STACK": 1,
            "POOL": None,
            "ROUTE": "malloc",
            "LIVE_BYTES": 1 << 20,
            "LIVE_BYTES_ERROR": 1024,
            "LIVE_OBJECTS": 3,
            "DIGEST": None,
        }
        self.assertEqual(
            shown([stack], [frame], known, []),
            ["1.00 MiB ± 1.00 KiB in 3 blocks, pool unknown, malloc, stack 1", "  f  a.cc:5  (inlined)", "  g  a.cc:9"],
        )
        both = shown([stack, stack | {"STACK": 2, "POOL": "binlog", "DIGEST": "d"}], [], known, ["no lines"])
        self.assertEqual(
            both[1:], ["", both[0].replace("unknown", "binlog")[:-1] + "2", "  statement d", "", "no lines"]
        )
        names = ("memdiag::profiling::on_sample", "je_prof_malloc_sample_object", "memdiag::h", "g")
        called = shown([stack], [frame | {"FUNCTION": name} for name in names], {}, [])
        self.assertEqual(called[1:], ["  memdiag::h", "  g"])
        self.assertEqual(shown([stack], [frame | {"FUNCTION": "je_malloc"}], {}, [])[1:], ["  je_malloc"])
        (found,) = plain([stack], [frame, frame | {"STACK": 2}], known)
        (of_stack,) = found["frames"]
        self.assertEqual((found["live_bytes"], of_stack["build_id"]), (1 << 20, "ab"))
        self.assertEqual(
            of_stack["lines"], [{"function": "f", "place": "a.cc:5"}, {"function": "g", "place": "a.cc:9"}]
        )
        self.assertEqual(plain([stack], [frame], {})[0]["frames"][0]["lines"], [])
