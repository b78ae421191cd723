#!/usr/bin/env python3
"""Fuzzes every parser of ours: those in C++ by libFuzzer (plugin/memdiag/unittest/fuzz), the client's by a mutator.

  tools/fuzz.py --seconds 600                 all of them, ten minutes in total, one after the other
  tools/fuzz.py --seconds 60 --only elf_file
  tools/fuzz.py --seeds                       chooses small inputs of build/fuzz/corpus for git

build/fuzz/corpus keeps what a run finds, and the next run begins with it. An input that ends a fuzzer lies in
build/fuzz/found: build/fuzz/fuzz/NAME_fuzz FILE repeats it. Needs clang and libclang-rt-14-dev.
"""

import argparse
import re
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness.common import ROOT, run_step, say
from harness.problem import Problem, run_main
from harness.programs import run_group

HARNESSES = ROOT / "plugin/memdiag/unittest/fuzz"
SEEDS = HARNESSES / "seeds"
BUILD = ROOT / "build/fuzz"
CORPUS, FOUND, LOGS, CHOSEN = (BUILD / name for name in ("corpus", "found", "logs", "chosen"))
CLIENT = "client"
# An input that takes so many seconds is a fault. A loaded machine takes some for any.
LONGEST = 20
# The bytes of an input: room for some names, paths or records.
MOST = {"profile_file": 16384, "black_box": 8192, "limits": 4096, "function_name": 4400}
# The bytes of a fuzzer's seeds in git.
KEPT = 12_000


def names() -> list[str]:
    return [path.name.removesuffix("_fuzz.cc") for path in sorted(HARNESSES.glob("*_fuzz.cc"))] + [CLIENT]


def folders(name: str) -> list[str]:
    (CORPUS / name).mkdir(parents=True, exist_ok=True)
    return [str(path / name) for path in (CORPUS, SEEDS) if (path / name).is_dir()]


def command(name: str, seconds: int) -> list[str]:
    if name == CLIENT:
        return [sys.executable, "-m", "tests.fuzz", f"--seconds={seconds}", f"--found={FOUND}"]
    options = [f"-max_total_time={seconds}", f"-max_len={MOST.get(name, 1024)}", f"-timeout={LONGEST}"]
    options += ["-print_final_stats=1", f"-artifact_prefix={FOUND}/{name}-"]
    return [str(BUILD / f"fuzz/{name}_fuzz"), *options, *folders(name)]


def executions(text: str) -> int:
    found = re.findall(r"^stat::number_of_executed_units:\s*(\d+)", text, re.MULTILINE)
    # A fuzzer that broke off has its lines of progress.
    return int((found or re.findall(r"^#(\d+)\s", text, re.MULTILINE) or ["0"])[-1])


def logged(name: str, words: list[str]) -> tuple[int, str]:
    log = LOGS / f"{name}.log"
    with open(log, "w") as file:
        status = run_group(words, cwd=ROOT / "client" if name == CLIENT else BUILD, stdout=file, stderr=file)
    return status, log.read_text(errors="replace")


def fuzz(chosen: list[str], seconds: int) -> int:
    total, faults = 0, []
    for name in chosen:
        began = time.monotonic()
        status, text = logged(name, command(name, max(seconds // len(chosen), 1)))
        total += executions(text)
        say(f"   {name:20} {executions(text):14,} executions in {time.monotonic() - began:.0f} s")
        if status:
            faults.append(name)
            say(f"FAILED {name}: see {LOGS / name}.log and {FOUND}")
    say(f"-- {total:,} executions, {len(faults)} crashes or hangs")
    say(f"fuzz: {len(chosen) - len(faults)} passed, {len(faults)} failed")
    return 1 if faults else 0


def choose_seeds(chosen: list[str]) -> int:
    """Of the inputs that together reach all that the corpus reaches, the smallest."""
    for name in chosen:
        if name == CLIENT:
            continue
        fresh, seeds = CHOSEN / name, SEEDS / name
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        status, _ = logged(name, [str(BUILD / f"fuzz/{name}_fuzz"), "-merge=1", str(fresh), *folders(name)])
        if status:
            raise Problem(f"the corpus of {name} could not be merged: see {LOGS / name}.log")
        shutil.rmtree(seeds, ignore_errors=True)
        seeds.mkdir(parents=True)
        room = KEPT
        for path in sorted(fresh.iterdir(), key=lambda path: (path.stat().st_size, path.name)):
            room -= path.stat().st_size
            if room < 0:
                break
            shutil.copyfile(path, seeds / path.name[:12])
        say(f"   {name:20} {len(list(seeds.iterdir())):5} of {len(list(fresh.iterdir()))} inputs")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="in total; default: %(default)s")
    parser.add_argument("--only", action="append", choices=names(), metavar="NAME", help=", ".join(names()))
    parser.add_argument("--seeds", action="store_true")
    options = parser.parse_args()
    chosen = options.only or names()
    if chosen != [CLIENT]:
        if not shutil.which("clang++"):
            raise Problem("clang++ is missing: apt-get install clang libclang-rt-14-dev")
        run_step(["cmake", "--preset", "fuzz"])
        run_step(["cmake", "--build", "--preset", "fuzz"])
    for folder in (FOUND, LOGS):
        folder.mkdir(parents=True, exist_ok=True)
    return choose_seeds(chosen) if options.seeds else fuzz(chosen, options.seconds)


if __name__ == "__main__":
    run_main("fuzz", main)
