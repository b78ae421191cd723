#!/usr/bin/env python3
"""Make the profile of the optimised build: run workloads of run.py with the server of preset `profile`.

packaging/build runs it (docs/packages.md). Each workload has a server of its own, which listens on a socket alone and
is ended by its id. A load takes several times as long as elsewhere, because this server counts its own branches.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import memory, prepared
from bench.runner.arms import ARMS, TOP
from bench.workloads import chosen
from harness.common import say
from harness.digest import digest
from harness.problem import Problem, run_main

# cmake/upstream.cmake has the same three paths. The folder exists before any training,
# because programs that the build itself runs write to it.
PROFILE = TOP / "build/profile/data"
TRAINED = PROFILE / "trained"
PROFILED = TOP / "build/profile/profiled"  # names the sources; made at configure
# Common work of servers, and the work for which this server exists.
DEFAULT = (
    "sysbench_point_select",
    "sysbench_read_only",
    "sysbench_read_write",
    "phrase_burst",
    "connection_storm",
    "dump_oltp",
)


def name_in_optimised(name: str) -> str:
    """The name of an object's profile in the optimised build. Names of our objects contain the preset's folder."""

    def mangled(preset: str) -> str:
        return str(TOP / "build" / preset).replace("/", "#") + "#"

    return name.replace(mangled("profile"), mangled("optimised"))


def newest(files: Iterable[Path]) -> float:
    return max((file.stat().st_mtime for file in files), default=0.0)


def counts() -> list[Path]:
    return list(PROFILE.rglob("*.gcda"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--workloads", default=",".join(DEFAULT), help="comma-separated, see bench/run.py --list (default: %(default)s)"
    )
    workloads = chosen(parser.parse_args().workloads.split(","))
    arm = ARMS["profile"]
    arm.build()
    if not PROFILED.is_file():
        raise Problem(f"{PROFILED} is not there; run: cmake --preset profile && cmake --build --preset profile")
    templates = []
    for number, workload in enumerate(workloads, 1):
        say(f"{workload.name}: data, {number} of {len(workloads)}")
        templates.append(memory.template(workload, [arm]))
    # Removes the counts of loading the data, which is not the work of a server in production.
    shutil.rmtree(PROFILE, ignore_errors=True)
    for number, (workload, template) in enumerate(zip(workloads, templates, strict=True), 1):
        with prepared.copy(template, arm) as folder, arm.server(folder, workload.mysqld_options()) as server:
            server.start()
            done = workload.load(server)
            say(
                f"{workload.name}: load, {number} of {len(workloads)}: "
                f"{done.count} {workload.unit} in {done.seconds:.0f} s"
            )
            stopping = time.time()
        # A server writes its counts when it ends; one that is killed loses them.
        if newest(counts()) < stopping:
            raise Problem(
                f"the server of {workload.name} wrote no counts to {PROFILE}; was it built as it is now?  "
                "cmake --preset profile && cmake --build --preset profile"
            )
    files = counts()
    for file in files:
        file.rename(file.with_name(name_in_optimised(file.name)))
    # The second line changes the compile command of preset optimised, so that other counts compile everything.
    TRAINED.write_text(f"{PROFILED.read_text().strip()}\n{digest(PROFILE, ['**/*.gcda'])}\n")
    say(f"{PROFILE}: {len(files)} files")
    return 0


if __name__ == "__main__":
    run_main("pgo_train", main)
