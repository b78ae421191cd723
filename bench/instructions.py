#!/usr/bin/env python3
"""Instructions of a transaction of sysbench, and how many of them are the allocator's.

Throughput differs from run to run by more than an allocator costs. Instruction counts
hardly differ. The processor's own counter (perf) counts them if the machine has one;
else valgrind's callgrind does, function by function. README.md explains the figures.
"""

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import prepared, report, rounds
from bench.workloads import sysbench_program
from harness.problem import Problem, run_main
from harness.programs import captured
from harness.server import Server, last_line

MYSQLD_OPTIONS = (
    *sysbench_program.MYSQLD_OPTIONS,
    # valgrind does not support every kind of asynchronous I/O.
    "--innodb-use-native-aio=OFF",
)
# Only the work of a session for its statements counts, not that of background threads.
COLLECTED = "do_command(THD*)"
SHOWN_FUNCTIONS = 15

# The names of an allocator's functions: the C library's, jemalloc's, operator new and
# delete, and this project's layer.
ALLOCATOR = re.compile(
    r"(?:_int_)?(?:malloc|calloc|realloc|free|memalign)\b|_int_(?:malloc|free|realloc)"
    r"|c?free\b|__libc_\w*alloc|sysmalloc|unlink_chunk|posix_memalign|aligned_alloc"
    r"|operator (?:new|delete)|memdiag::"
    r"|(?:m|d|sd|r|x|s|n)allocx\b|do_rallocx|imalloc|ifree|isfree"
    r"|(?:je|malloc|tcache|arena|bin|edata|emap|extent|cache_bin|large|pa|pac|prof|rtree"
    r"|sz|te|tsd|thread_event|base(?!_i?list)|ecache|eset|sec|psset|hpa|pages)_\w"
)

Counts = Counter[str]  # instructions by function; "" is the sum


def run_transactions(server: Server, test: str, events: int) -> None:
    """Runs so many transactions with prepared statements in one session. They are always the same."""
    sysbench_program.run(server, test, "run", "--threads=1", f"--events={events}", "--time=0", "--rand-seed=1")


def perf_works() -> bool:
    if shutil.which("perf") is None:
        return False
    command = ["perf", "stat", "-x,", "-e", "instructions:u", "true"]
    done = captured(command)
    return done.returncode == 0 and done.stderr.split(",")[0].isdigit()


@contextmanager
def perf_counting(server: Server, _folder: Path) -> Iterator[Callable[[Callable[[], None]], Counts]]:
    def count(work: Callable[[], None]) -> Counts:
        with tempfile.NamedTemporaryFile(mode="r") as output:
            command = ["perf", "stat", "-x,", "-e", "instructions:u"]
            command += ["-o", output.name, "-p", str(server.pid)]
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as perf:
                try:
                    time.sleep(0.5)  # perf has attached to every thread
                    work()
                finally:
                    perf.send_signal(signal.SIGINT)
                    perf.wait()
            lines = output.read().splitlines()
        fields = [line.split(",") for line in lines if "instructions" in line]
        if not fields or not fields[0][0].isdigit():
            raise Problem(f"perf counted nothing: {' '.join(lines)}")
        return Counter({"": int(fields[0][0])})

    yield count


@contextmanager
def callgrind_counting(server: Server, folder: Path) -> Iterator[Callable[[Callable[[], None]], Counts]]:
    control = ["callgrind_control", str(server.pid)]

    def tell(*options: str) -> None:
        done = captured([*control, *options])
        if done.returncode != 0 or "Error" in done.stdout + done.stderr:
            complaint = last_line(done.stdout + done.stderr)
            raise Problem(f"callgrind_control {' '.join(options)}: {complaint}")

    tell("--instr=on")
    dumps = 0

    def count(work: Callable[[], None]) -> Counts:
        nonlocal dumps
        tell("--zero")
        work()
        tell("--dump")
        dumps += 1
        path = folder / f"callgrind.out.{dumps}"
        for _ in range(600):  # the server's process writes the dump later
            if path.exists() and "totals:" in path.read_text(errors="replace")[-200:]:
                return _annotated(path)
            time.sleep(0.1)
        raise Problem(f"callgrind wrote no {path}")

    yield count


def _annotated(path: Path) -> Counts:
    """Reads instructions by function from callgrind_annotate's table."""
    done = captured(["callgrind_annotate", "--threshold=100", "--auto=no", path])
    counts: Counts = Counter()
    for line in done.stdout.splitlines():
        found = re.match(r"\s*([\d,]+) \([ \d.]+%\)\s+(.*)", line)
        if not found:
            continue
        instructions = int(found[1].replace(",", ""))
        if found[2].startswith("PROGRAM TOTALS"):
            counts[""] = instructions
        else:
            # "file:function [object]": only the function is comparable between builds.
            name = re.sub(r" \[[^][]*\]$", "", found[2])
            counts[re.sub(r"^[^:(<\s]*:(?!:)", "", name)] += instructions
    if not counts[""]:
        raise Problem(f"callgrind_annotate printed no totals: {last_line(done.stderr)}")
    return counts


def measure(arm: arm_list.Arm, folder: Path, tool: str, test: str, events: int) -> dict[str, float]:
    """Instructions of one transaction by function.

    The difference between a long and a short run: both contain the cost of connecting and
    preparing.
    """
    wrapper: Sequence[str] = ()
    if tool == "callgrind":
        wrapper = (
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={folder}/callgrind.out",
            f"--toggle-collect={COLLECTED}",
            "--instr-atstart=no",
        )
    counting = callgrind_counting if tool == "callgrind" else perf_counting
    with arm.server(folder, MYSQLD_OPTIONS, wrapper) as server:
        server.start(timeout=900)
        with counting(server, folder) as count:
            # Warms up the buffer pool, the table cache and the allocator.
            run_transactions(server, test, events)
            short = count(lambda: run_transactions(server, test, events))
            long = count(lambda: run_transactions(server, test, 3 * events))
    names = short.keys() | long.keys()
    return {name: (long[name] - short[name]) / (2 * events) for name in names}


def allocator_part(counts: dict[str, float]) -> float:
    return sum(value for name, value in counts.items() if name and is_allocator(name))


def is_allocator(function: str) -> bool:
    return ALLOCATOR.match(function) is not None


def render(raw: dict[str, Any]) -> str:
    tool = raw["settings"]["tool"]
    by_arm = {
        name: {
            function: report.median(run.get(function, 0.0) for run in runs)
            for function in {key for run in runs for key in run}
        }
        for name, runs in raw["runs"].items()
        if runs
    }
    bases = [name for name in ("stock", "linked") if name in by_arm]
    rows = []
    for name, counts in by_arm.items():
        allocator = f"{allocator_part(counts):.0f}" if tool == "callgrind" else "-"
        rest = f"{counts[''] - allocator_part(counts):.0f}" if tool == "callgrind" else "-"
        ratios = [report.show(report.ratio(counts[""], by_arm[base][""]), 4) for base in bases]
        rows.append([name, f"{counts['']:.0f}", allocator, rest, *ratios])
    head = ["arm", "instructions each", "allocator", "the rest"]
    head += [f"/ {base}" for base in bases]
    parts = [
        f"# Instructions of a transaction of {raw['settings']['test']}\n",
        f"Counted with {tool}; medians of {raw['settings']['rounds']} rounds.\n",
        report.table(head, rows),
    ]
    if tool == "callgrind":
        parts += ["\n## The allocators' functions\n", _function_table(by_arm)]
    parts.append(report.front_matter(raw))
    return "\n".join(parts)


def _function_table(by_arm: dict[str, dict[str, float]]) -> str:
    """The costliest allocator functions over all arms, instructions of a transaction."""
    highest: Counter[str] = Counter()
    for counts in by_arm.values():
        for name, value in counts.items():
            if name and is_allocator(name):
                highest[name] = max(highest[name], round(value))
    rows = [
        [name[:70], *(str(round(counts.get(name, 0))) for counts in by_arm.values())]
        for name, _ in highest.most_common(SHOWN_FUNCTIONS)
    ]
    return report.table(["function", *by_arm], rows)


def choose_tool(wanted: str | None) -> str:
    if wanted == "perf" and not perf_works():
        raise Problem(
            "perf cannot count instructions here (not installed, not allowed, or a"
            " virtual machine without counters); use --tool callgrind"
        )
    tool = wanted or ("perf" if perf_works() else "callgrind")
    programs = ("valgrind", "callgrind_control", "callgrind_annotate")
    if tool == "callgrind" and not all(map(shutil.which, programs)):
        raise Problem("valgrind is missing; install it with: apt-get install valgrind")
    return tool


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1)
    parser.add_argument(
        "--test", choices=sysbench_program.TESTS, default=sysbench_program.TESTS[0], help="default: %(default)s"
    )
    parser.add_argument(
        "--events",
        type=int,
        help="transactions of the short run; the long one has three times as many"
        " (default: 20000 point selects with perf, 2000 with callgrind; of the"
        " longer transactions a twentieth)",
    )
    parser.add_argument("--tool", choices=("perf", "callgrind"), help="default: perf where it works, else callgrind")
    options = parser.parse_args()
    tool = choose_tool(options.tool)
    if options.events is None:
        options.events = 20_000 if tool == "perf" else 2_000
        if options.test != sysbench_program.TESTS[0]:
            options.events //= 20
    rounds.require_positive(options, "events")
    return rounds.run(
        "instructions",
        options,
        settings={
            "tool": tool,
            "test": options.test,
            "sysbench": sysbench_program.version(),
            "events": options.events,
            "mysqld": MYSQLD_OPTIONS,
        },
        prepare=prepared.sysbench,
        measure=rounds.one_by_one(lambda arm, folder: measure(arm, folder, tool, options.test, options.events)),
        brief=lambda run: f"{run['']:.0f} instructions",
        render=render,
        seconds_each=20 if tool == "perf" else 30,
    )


if __name__ == "__main__":
    run_main("instructions", main)
