"""The shim lets calls fail that our functions make, as it is told, and no others."""

import errno
import os
from unittest import TestCase

from harness.common import ROOT
from harness.programs import captured
from harness.scratch import Scratch
from proof.interposed import HALF, KINDS, WAYS, Calls

PROGRAM = r"""
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define SAY(name, call) \
  do { errno = 0; const long got = (long)(call); printf("%s %ld %d\n", #name, got, errno); } while (0)
#define CALLS                                                                                             \
  static char text[4096]; struct stat about; struct statfs system; unsigned char present[1]; pthread_t id;     \
  SAY(open, open("/dev/null", O_RDONLY)); SAY(pwrite, pwrite(file, text, 100, 0));                             \
  SAY(read, read(file, text, 100)); SAY(pread, pread(file, text, 40, 0)); SAY(fstat, fstat(file, &about));    \
  SAY(stat, stat("/", &about)); SAY(statfs, statfs("/", &system)); SAY(close, close(dup(file)));               \
  SAY(readlink, readlink("/proc/self/exe", text, sizeof text)); SAY(realpath, realpath("/", text) == 0);       \
  SAY(posix_fallocate, posix_fallocate(file, 0, 100)); SAY(ftruncate, ftruncate(file, 100));                   \
  SAY(fdatasync, fdatasync(file)); SAY(madvise, madvise(page, 4096, MADV_DONTNEED));                           \
  SAY(mincore, mincore(page, 4096, present)); SAY(munmap, munmap(page, 4096));                                 \
  SAY(mmap, mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);                       \
  SAY(ioctl, ioctl(file, FIONREAD, text)); SAY(rename, rename("a", "b")); SAY(unlink, unlink("b"));            \
  SAY(pthread_create, pthread_create(&id, 0, [](void *) -> void * { return 0; }, 0));

namespace memdiag { [[gnu::noinline]] void calls(int file, void *page) { CALLS } }
[[gnu::noinline]] void others(int file, void *page) { CALLS }

int main(int count, char **) {
  const int file = open("a", O_RDWR | O_CREAT, 0600);
  void *const page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  (count > 1 ? others : memdiag::calls)(file, page);
}
"""


class Interposed(Scratch):
    def setUp(self):
        super().setUp()
        self.shim, self.program = self.root / "shim.so", self.root / "program"
        source = self.make_file("program.cc", PROGRAM)
        shim = ["-fPIC", "-shared", ROOT / "proof/calls_shim.cc", "-o", self.shim]
        for words in (shim, ["-D_FILE_OFFSET_BITS=64", source, "-o", self.program]):
            done = captured(["c++", "-std=c++20", "-O1", *words])
            self.assertEqual(done.returncode, 0, done.stderr)
        self.calls = Calls(self.root / "control", self.program)

    def said(self, *arguments):
        """The program says the result and the errno of each kind."""
        environment = {**os.environ, **self.calls.environment, "LD_PRELOAD": str(self.shim)}
        done = captured([self.program, *arguments], env=environment, cwd=self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = (line.split() for line in done.stdout.splitlines())
        return {name: (int(result), int(error)) for name, result, error in rows}

    def test_each_kind_fails_with_its_error(self):
        errors = WAYS["refused"][0]
        self.assertEqual(set(errors), set(KINDS))
        self.calls.arm(errors, 0, 1 << 62)
        said = self.said()
        self.assertEqual(said, {kind: said[kind] for kind in KINDS} | said)  # all of them
        for kind, error in errors.items():
            in_result = kind in ("posix_fallocate", "pthread_create")
            self.assertIn(error, said[kind][:1] if in_result else said[kind][1:], kind)
        self.assertEqual(self.calls.disarm(), (len(KINDS), len(KINDS)))
        sites = self.calls.sites()
        names = [self.calls.name(site) for site in sites]
        self.assertEqual(sorted(name.split()[0] for name in names), sorted(KINDS))
        self.assertTrue(all("memdiag" in name for name in names))
        self.assertEqual(set(sites.values()), {(1, 1)})
        # From one place alone.
        site = next(site for site in sites if "pread " in self.calls.name(site))
        self.calls.arm(errors, 0, 1 << 62, site)
        said = self.said()
        self.assertEqual([kind for kind in KINDS if said[kind][1]], ["pread"])

    def test_what_is_not_ours_or_not_armed_works(self):
        self.calls.arm(WAYS["refused"][0], 0, 1 << 62)
        self.assertEqual({error for _, error in self.said("others").values()}, {0})
        self.assertEqual(self.calls.disarm(), (0, 0))
        self.assertEqual({error for _, error in self.said().values()}, {0})

    def test_the_nth_call_of_these_kinds_fails_once(self):
        self.calls.arm({"pread": errno.EIO, "fstat": errno.EACCES}, 1, 1)
        said = self.said()
        self.assertEqual((said["pread"], said["fstat"]), ((40, 0), (-1, errno.EACCES)))
        self.assertEqual(self.calls.disarm(), (2, 1))

    def test_half_is_written_and_read(self):
        self.calls.arm(dict.fromkeys(("pwrite", "pread"), HALF), 0, 2)
        said = self.said()
        self.assertEqual((said["pwrite"], said["read"], said["pread"]), ((50, 0), (50, 0), (20, 0)))


class Ways(TestCase):
    def test_they_name_kinds_that_there_are(self):
        for errors, _ in WAYS.values():
            self.assertLessEqual(set(errors), set(KINDS))
