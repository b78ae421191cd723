#!/usr/bin/env python3
"""sysbench's transactions: the cost of the allocator and the pools in throughput and in the slowest transactions.

See README.md for what the figures mean.
"""

import contextlib
import itertools
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import prepared, report, rounds
from bench.runner.executable import read_anew
from bench.runner.quiet import wait_until_quiet
from bench.runner.resampling import interval
from bench.workloads import sysbench_program
from bench.workloads.sysbench_program import MAX_THREADS, MYSQLD_OPTIONS, ROWS, TABLES, TESTS, parse
from harness.problem import Problem, run_main
from harness.server import Server

DEFAULT_TESTS = TESTS[:2]
THREADS = (8, 256)
TARGET = 0.98
TAIL_TARGET = 1.05
RSS_TARGET = 0.5  # times stock's, with so many threads:
RSS_THREADS = 1024
WARM_UP_THREADS = 64  # that a second before the measurement is given to
WRITERS = 64  # of --write-first
PERCENTILES = {"p95_ms": 0.95, "p99_ms": 0.99, "p99.9_ms": 0.999}
OPTIMISED_TARGET = 1.25  # times Debian's package
OPTIMISED_TAIL_TARGET = 1.0
FEWEST_ROUNDS = 5  # that say how exact a ratio is


def measure(
    arms: Sequence[arm_list.Arm],
    template_folder: Path,
    tests: Sequence[str],
    threads: Sequence[int],
    seconds: int,
    slices: int,
    write_first: int,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """One round: every test at every number of threads, in slices, one arm right after the other.

    All servers run through the whole round. The machine's own speed changes by a tenth within minutes, and only
    seconds lie between two arms' slices of the same test. A server is faster or slower than another one of the same
    executable through the whole round, so the number of rounds decides how exact a ratio is.
    """
    for executable in dict.fromkeys(arm.build().mysqld for arm in arms):
        read_anew(executable)
    with contextlib.ExitStack() as stack:
        servers: dict[str, Server] = {}
        measured: dict[str, dict[str, Any]] = {}
        for arm in arms:
            folder = stack.enter_context(prepared.copy(template_folder, arm))
            server = stack.enter_context(arm.server(folder, MYSQLD_OPTIONS))
            server.start()
            servers[arm.name] = server
            measured[arm.name] = {"start_rss_kb": server.memory().rss_kb, "cells": {}}
            sysbench_program.read_all(server)
            write(server, write_first)
        turn = itertools.count()
        for test, count in itertools.product(tests, threads):
            made: dict[str, list[dict[str, Any]]] = {arm.name: [] for arm in arms}
            for _ in range(slices):
                for arm in arm_list.rotated(arms, next(turn)):
                    wait_until_quiet(lambda: cpu_seconds(servers.values()))
                    made[arm.name].append(one_slice(servers[arm.name], test, count, seconds))
            for name, made_by_arm in made.items():
                measured[name]["cells"][f"{test} {count}"] = cell(made_by_arm, seconds)
    yield from measured.items()


def write(server: Server, seconds: int) -> None:
    """Use what a server uses once with its first transactions, such as each page of the redo log's buffer. Stock writes
    much of this memory at start.
    """
    if seconds:
        sysbench_program.run(
            server, "oltp_read_write", "run", f"--threads={WRITERS}", f"--time={seconds}", "--report-interval=0"
        )


def cpu_seconds(servers: Iterable[Server]) -> float:
    return sum(server.usage().cpu_seconds for server in servers)


def warm_up(threads: int) -> int:
    """Seconds in which every thread should have finished a transaction."""
    return -(-threads // WARM_UP_THREADS)


def one_slice(server: Server, test: str, threads: int, seconds: int) -> dict[str, Any]:
    """Runs one test with one number of threads. What the warm-up did is in no figure but RSS and the server's usage."""
    server.reset_peak()
    before = server.usage()
    output = sysbench_program.run(
        server,
        test,
        "run",
        f"--threads={threads}",
        f"--time={warm_up(threads) + seconds}",
        f"--report-checkpoints={warm_up(threads)}",
        "--report-interval=0",
        "--histogram=on",
    )
    usage = server.usage().since(before)
    return {
        "output": output,
        "server_cpu_seconds": usage.cpu_seconds,
        "minor_faults": usage.minor_faults,
        # The highest: sysbench has closed its connections by now.
        "rss_kb": server.memory().peak_kb,
    }


def cell(slices: Sequence[dict[str, Any]], seconds: int) -> dict[str, Any]:
    """The figures of all slices of a test, each of which has these seconds. Percentiles are of all transactions."""
    outputs = "\n".join(one["output"] for one in slices)
    return {
        "tps": statistics.fmean(parse(one["output"])["tps"] for one in slices),
        **{name: sysbench_program.percentile(outputs, share) for name, share in PERCENTILES.items()},
        # At most one of each thread in each slice.
        "starved": sysbench_program.longer_than(outputs, seconds * 1000 / 2),
        "server_cpu_seconds": sum(one["server_cpu_seconds"] for one in slices),
        "minor_faults": sum(one["minor_faults"] for one in slices),
        "rss_kb": max(one["rss_kb"] for one in slices),
    }


def ratio_range(values: Sequence[float], base: Sequence[float]) -> str:
    """Nine tenths of the ratios of the two medians lie in it. `values` and `base` have a figure for each round. A drawn
    round counts for both, so what slows a whole round does not widen the range.
    """
    rounds_of_both = list(zip(values, base, strict=True))
    if len(rounds_of_both) < FEWEST_ROUNDS:
        return "-"
    _, low, high = interval(rounds_of_both, ratio_of_medians, share=0.9)
    return f"{low:.2f}-{high:.2f}"


def ratio_of_medians(pairs: Sequence[tuple[float, float]]) -> float:
    values, base = zip(*pairs, strict=True)
    return report.median(values) / report.median(base)


def render(raw: dict[str, Any]) -> str:
    arms = [name for name, runs in raw["runs"].items() if runs]
    cells = list(raw["runs"][arms[0]][0]["cells"])

    def figures(arm: str, cell: str, name: str) -> list[float]:
        return [run["cells"][cell][name] for run in raw["runs"][arm]]

    def median(arm: str, cell: str, figure: str) -> float:
        return report.median(figures(arm, cell, figure))

    def ratio(arm: str, base: str, cell: str, figure: str) -> float:
        return median(arm, cell, figure) / median(base, cell, figure)

    def each(arm: str, cell: str, figure: str) -> float:
        """For each transaction. The server's figures are of the warm-up, too."""
        seconds = warm_up(int(cell.rpartition(" ")[2])) + raw["settings"]["seconds"]
        seconds *= raw["settings"]["slices"]
        cells = [run["cells"][cell] for run in raw["runs"][arm]]
        return report.median(one[figure] / (one["tps"] * seconds) for one in cells)

    bases = [name for name in ("stock", "linked") if name in arms]
    both = len(bases) == 2
    rows, targets = [], []
    for cell in cells:
        best = max(bases, key=lambda base: median(base, cell, "tps"), default=None)
        best_tail = min((median(base, cell, "p99_ms") for base in bases), default=None)
        best_tps = figures(best, cell, "tps") if best else []
        for arm in arms:
            tps = figures(arm, cell, "tps")
            rows.append(
                [
                    f"{cell} {arm}",
                    f"{report.median(tps):.0f}",
                    f"{min(tps):.0f}",
                    f"{max(tps):.0f}",
                    *(f"{median(arm, cell, name):.2f}" for name in PERCENTILES),
                    f"{median(arm, cell, 'starved'):.0f}",
                    f"{1000 * each(arm, cell, 'server_cpu_seconds'):.3f}",
                    f"{each(arm, cell, 'minor_faults'):.2f}",
                    f"{median(arm, cell, 'rss_kb') / 1024:.0f}",
                    report.show(report.ratio(report.median(tps), report.median(best_tps)) if best else None, 3),
                    ratio_range(tps, best_tps) if best else "-",
                ]
            )
        if "dev" in arms:
            tps = report.ratio(median("dev", cell, "tps"), report.median(best_tps)) if both else None
            tail = median("dev", cell, "p99_ms") / best_tail if best_tail and both else None
            targets += [
                report.target(f"{cell} threads: tps / better of stock and linked", tps, ">=", TARGET),
                report.target(f"{cell} threads: p99 / better of stock and linked", tail, "<=", TAIL_TARGET),
            ]
            if cell.endswith(f" {RSS_THREADS}"):
                rss = ratio("dev", "stock", cell, "rss_kb") if "stock" in arms else None
                targets.append(report.target(f"{cell} threads: RSS / stock", rss, "<=", RSS_TARGET))
        if "optimised" in arms and "debian" in arms:
            tps, tail = (ratio("optimised", "debian", cell, figure) for figure in ("tps", "p99_ms"))
            targets += [
                report.target(f"{cell} threads: tps, optimised / debian", tps, ">=", OPTIMISED_TARGET),
                report.target(f"{cell} threads: p99, optimised / debian", tail, "<=", OPTIMISED_TAIL_TARGET),
            ]
    head = [
        "test, threads, arm",
        "tps",
        "lowest",
        "highest",
        "p95 ms",
        "p99 ms",
        "p99.9 ms",
        "starved",
        "CPU ms",
        "faults",
        "RSS MB",
        "/ better of stock, linked",
        "9 of 10 resamplings",
    ]
    parts = ["# sysbench\n", f"Medians of {raw['settings']['rounds']} rounds.\n", report.table(head, rows)]
    if targets:
        parts += ["\n## Targets\n", report.target_table(targets)]
    parts.append(report.front_matter(raw))
    return "\n".join(parts)


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=5)
    parser.add_argument(
        "--seconds", type=int, default=15, help="of each slice, after the warm-up (default: %(default)s)"
    )
    parser.add_argument(
        "--slices",
        type=int,
        default=1,
        help="of each test in a round; the arms take turns at slices (default: %(default)s)",
    )
    parser.add_argument(
        "--write-first",
        type=int,
        default=0,
        metavar="SECONDS",
        help=f"of oltp_read_write with {WRITERS} threads on each server before its first measurement (default: %(default)s)",
    )
    parser.add_argument(
        "--tests",
        default=",".join(DEFAULT_TESTS),
        help=f"comma-separated, of: {', '.join(TESTS)} (default: %(default)s)",
    )
    parser.add_argument("--threads", default=",".join(map(str, THREADS)), help="comma-separated (default: %(default)s)")
    options = parser.parse_args()
    rounds.require_positive(options, "seconds", "slices")
    if options.write_first < 0:
        raise Problem("--write-first must be 0 or more seconds")
    tests = options.tests.split(",")
    if not set(tests) <= set(TESTS):
        raise Problem(f"unknown test in '{options.tests}'; there are: {', '.join(TESTS)}")
    try:
        threads = [int(word) for word in options.threads.split(",")]
    except ValueError:
        raise Problem(f"'{options.threads}' is not a comma-separated list of numbers of threads") from None
    if not all(1 <= count <= MAX_THREADS for count in threads):
        raise Problem(f"numbers of threads must lie between 1 and {MAX_THREADS}")
    return rounds.run(
        "sysbench",
        options,
        settings={
            "sysbench": sysbench_program.version(),
            "tables": TABLES,
            "rows": ROWS,
            "seconds": options.seconds,
            "slices": options.slices,
            "write_first": options.write_first,
            "mysqld": MYSQLD_OPTIONS,
        },
        prepare=prepared.sysbench,
        measure=lambda arms, folder: measure(
            arms, folder, tests, threads, options.seconds, options.slices, options.write_first
        ),
        brief=lambda run: ", ".join(f"{cell}: {figures['tps']:.0f}" for cell, figures in run["cells"].items()),
        render=render,
        seconds_each=len(tests) * options.slices * sum(warm_up(count) + options.seconds + 2 for count in threads)
        + options.write_first
        + 5,
    )


if __name__ == "__main__":
    run_main("sysbench_oltp", main)
