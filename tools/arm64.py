#!/usr/bin/env python3
"""Cross-compiles our layer for aarch64, and runs its unit tests in qemu.

  tools/arm64.py

It needs root, and Debian's crossbuild-essential-arm64, qemu-user-static and mmdebstrap. The C library and GoogleTest are
Debian 12's for arm64, in build/arm64-root. jemalloc has pages of 64 KB there, so that it runs on any kernel. The server
itself is not built. What fails and is not in EXPECTED is a fault.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness.common import ROOT, run_step, say
from harness.problem import Problem, run_main
from harness.programs import captured
from tools.build import debian

ROOT_FOLDER = ROOT / "build/arm64-root"
PACKAGES = "libgtest-dev,zlib1g-dev,libc6-dev,libstdc++-12-dev"
PROGRAMS = ("aarch64-linux-gnu-g++", "qemu-aarch64-static")
# A test starts itself anew, without ctest's emulator.
BINFMT = Path("/proc/sys/fs/binfmt_misc")
BINFMT_OF_DEBIAN = Path("/usr/lib/binfmt.d/qemu-aarch64.conf")
# Tests that fail there, by the reason.
EXPECTED = {
    "qemu does not show the kernel's figures of the process": (
        "Mallctl.MetadataGetNoHugePages",
        "Program.its_data_get_no_huge_pages",
        "Host.WhatThisProcessDoes",
        "History.PeaksBetweenTwoSamplesAreNotMissed",
        "History.TheLargestSessionIsAskedForAtAPeak",
        "Ledger.OfThisProcess",
        "Ledger.TheCheapFormAsksForNothingWhileAllAddsUp",
        "Ledger.TheCheapFormAsksWhenSomethingDoesNotAddUp",
        "Profiler.EachWayToAnAllocationIsOneSiteWithItsStack",
        "other_profilers",
    ),
    "qemu does not keep the limit of the address space, or fills the space below it itself": (
        "PoolFallback.ABusyShardGetsItsCacheOnceThereIsMemory",
        "PoolFallback.AddressSpaceRunsOut",
        "PoolFallback.AddressSpaceRunsOutAfterAPurge",
        "PoolFallback.NoArenaToBeHad",
        "Profiler.NoMemoryForItIsAnErrorAndItStaysOff",
        "IdleClient.ItsCacheIsMadeAgainOnceThereIsMemory",
        "Snapshot.EveryStatisticThatFailsEmptiesACell",
    ),
    "the test's sizes are those of pages of 4 KB": (
        "Mallctl.ReadsOfTheListedType",
        "Mallctl.WhereNoExtentWasALookTellsAGigabyte",
        "Cpus.ABlockIsLeftWithTheThreadThatIsAtWorkInItsArena",
        "Cpus.NothingStaysLeftWhileThereIsNoStandIn",
        "PoolPurge.TouchesNoOtherArena",
        "Policies.PagesThatAreWantedAgainAreLeftLonger",
        "Purge.RefreshesNothingOfOtherPools",
        "SizeClasses.ExtentsAreOfTheSizeOfTheirClass",
        "SizeClasses.LargeBlocksOfOneClassAreCountedExactly",
        "SizeClasses.SumOfLargeBlocksThatFailsEmptiesAllOfThem",
        "SizeClasses.SettingThatFailsEmptiesWhatFollowsFromIt",
    ),
}


def prepare() -> None:
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        raise Problem(
            f"{missing[0]} is missing; install it with: apt-get install crossbuild-essential-arm64 qemu-user-static"
        )
    if os.geteuid() != 0:
        raise Problem("run it as root: it makes a root folder of Debian's, and tells the kernel of qemu")
    if not ROOT_FOLDER.exists():
        unfinished = ROOT_FOLDER.with_name(f"{ROOT_FOLDER.name}.unfinished")
        debian.root("bookworm", unfinished, "extract", PACKAGES, ["--architectures=arm64"])
        unfinished.rename(ROOT_FOLDER)
    if not (BINFMT / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT], check=True)
    if not (BINFMT / "qemu-aarch64").exists():
        (BINFMT / "register").write_bytes(BINFMT_OF_DEBIAN.read_bytes().strip())


def failures(said: str) -> set[str]:
    """The names in ctest's closing list."""
    return set(re.findall(r"^\s*\d+ - (\S+) \((?!Skipped|Disabled)[^)]*\)\s*$", said, re.MULTILINE))


def main() -> int:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    prepare()
    run_step(["cmake", "--preset", "arm64"])
    run_step(["cmake", "--build", "--preset", "arm64"])
    say("running the tests in qemu, some minutes")
    done = captured(["ctest", "--preset", "arm64", "--parallel", "2"], cwd=ROOT)
    if not (closing := re.search(r"^\d+% tests passed.*$", done.stdout, re.MULTILINE)):
        raise Problem(f"ctest did not come to its end: {done.stdout[-400:]}{done.stderr[-400:]}")
    expected = {name for names in EXPECTED.values() for name in names}
    failed = failures(done.stdout)
    for name in sorted(failed - expected):
        say(f"failed: {name}; ctest --preset arm64 -R {name} shows it")
    for name in sorted(expected - failed):
        say(f"passed, and is listed: {name}")
    say(f"{closing[0]}; {len(failed & expected)} are expected, {len(failed - expected)} are not")
    return 1 if failed - expected else 0


if __name__ == "__main__":
    run_main("arm64", main)
