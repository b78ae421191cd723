#!/usr/bin/env python3
"""Full-text phrase searches in a burst: memory before, at the peak and after it, and searches per second.

See README.md for what the figures mean.
"""

from __future__ import annotations

import bisect
import itertools
import random
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import arms as arm_list
from bench import prepared, report, rounds
from tools import burst
from tools.problem import run_main
from tools.server import Server

# The collection. Words are drawn independently with P(rank) proportional to 1 / (rank + SHIFT) ** SKEW. The values make
# the phrase words below occur in most documents, as "the package provides" does in real text; with them stock behaves
# as recorded in the project's design (glibc: about 465 MB of growth, 20 to 34 searches a second on two cores).
DOCUMENTS = 40_000
WORDS_PER_DOCUMENT = 60
VOCABULARY = 20_000
SKEW = 1.05
SHIFT = 2.7
SEED = 20
PHRASE_WORDS = 12  # phrases are made of the most frequent so many words
IDLE_SECONDS = (1, 2, 5, 10, 40)

DATABASE = "phrase_burst"
MYSQLD_OPTIONS = (
    "--innodb-buffer-pool-size=512M",
    # A buffer pool that loads itself at start would make the RSS at the start depend on the run before.
    "--innodb-buffer-pool-load-at-startup=OFF",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    # Words are all of three letters or more; none may count as a stop word.
    "--innodb-ft-min-token-size=3",
    "--innodb-ft-enable-stopword=OFF",
    "--disable-log-bin",
)


def words(count: int) -> list[str]:
    """Pronounceable distinct words of six letters and more, the same in every run."""
    syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    return [
        "".join(parts)
        for parts in itertools.islice(itertools.product(syllables, repeat=3), count)
    ]


def documents(count: int) -> Iterator[str]:
    chooser = random.Random(SEED)
    vocabulary = words(VOCABULARY)
    chooser.shuffle(vocabulary)
    cumulative = list(
        itertools.accumulate(
            1 / (rank + SHIFT) ** SKEW for rank in range(1, VOCABULARY + 1)
        )
    )
    total = cumulative[-1]
    for _ in range(count):
        draws = (
            bisect.bisect(cumulative, chooser.random() * total)
            for _ in range(WORDS_PER_DOCUMENT)
        )
        yield " ".join(vocabulary[min(draw, VOCABULARY - 1)] for draw in draws)


def searches() -> list[str]:
    """Every ordered pair of the most frequent words as a phrase."""
    vocabulary = words(VOCABULARY)
    random.Random(SEED).shuffle(vocabulary)
    return [
        f"SELECT COUNT(*) FROM documents WHERE MATCH(body) AGAINST ('\"{one} {other}\"' IN BOOLEAN MODE)"
        for one, other in itertools.permutations(vocabulary[:PHRASE_WORDS], 2)
    ]


def fill(server: Server, count: int) -> None:
    server.query(f"CREATE DATABASE {DATABASE}")
    with server.connect(DATABASE) as session:
        session.query(
            "CREATE TABLE documents (id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, body TEXT NOT NULL)"
        )
        every = documents(count)
        while batch := list(itertools.islice(every, 500)):
            session.query(
                "INSERT INTO documents (body) VALUES "
                + ",".join(f"('{text}')" for text in batch)
            )
        session.query("CREATE FULLTEXT INDEX body ON documents (body)")
        session.query("ANALYZE TABLE documents")


def buffer_pool_kb(server: Server) -> int:
    """Bytes of data pages in InnoDB's buffer pool."""
    status = server.query("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_bytes_data'")
    return int(status.rows[0][1] or 0) // 1024


def measure(
    arm: arm_list.Arm, folder: Path, clients: int, seconds: float, settle: float
) -> dict[str, Any]:
    """One arm's turn: fresh server, burst, idle."""
    with Server(arm.build(), folder, MYSQLD_OPTIONS, arm.environment()) as server:
        server.start()
        time.sleep(settle)  # background start-up work (statistics, purge) is over
        pages_before = buffer_pool_kb(server)
        start = server.memory()
        server.reset_peak()
        usage_before = server.usage()
        own_before = resource.getrusage(resource.RUSAGE_SELF)
        with burst.Sampler(0.25, server.rss_kb) as sampler:
            done = burst.run(server.socket, DATABASE, searches(), clients, seconds)
            ended = time.monotonic()
            usage = server.usage().since(usage_before)
            peak = server.memory()
            own_after = resource.getrusage(resource.RUSAGE_SELF)
            idle = {}
            for moment in IDLE_SECONDS:
                time.sleep(max(0.0, ended + moment - time.monotonic()))
                memory = server.memory()
                idle[str(moment)] = {
                    "rss_kb": memory.rss_kb,
                    "lazy_free_kb": memory.lazy_free_kb,
                }
        pages_after = buffer_pool_kb(server)
    return {
        "start_rss_kb": start.rss_kb,
        "start_anon_kb": start.anon_kb,
        "peak_rss_kb": peak.peak_kb,
        "idle": idle,
        "buffer_pool_growth_kb": pages_after - pages_before,
        "searches": len(done.latencies),
        "per_second": done.per_second,
        "p50_ms": done.latency(50) * 1000,
        "p99_ms": done.latency(99) * 1000,
        "latencies_ms": [round(latency * 1000, 2) for latency in done.latencies],
        "cpu_user_seconds": usage.user_seconds,
        "cpu_system_seconds": usage.system_seconds,
        "minor_faults": usage.minor_faults,
        "major_faults": usage.major_faults,
        "load_generator_cpu_seconds": own_after.ru_utime
        + own_after.ru_stime
        - own_before.ru_utime
        - own_before.ru_stime,
        "rss_timeline": [(round(moment, 2), rss) for moment, rss in sampler.samples],
    }


def medians(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The figures of the report, each the median over the rounds; memory in MB."""
    columns: dict[str, list[float]] = {}
    for run in runs:
        start = run["start_rss_kb"]
        figures = {
            "start": start / 1024,
            "peak": run["peak_rss_kb"] / 1024,
            "growth": (run["peak_rss_kb"] - start) / 1024,
            "pages": run["buffer_pool_growth_kb"] / 1024,
            "per_second": run["per_second"],
            "p50_ms": run["p50_ms"],
            "p99_ms": run["p99_ms"],
            "cpu_ms_per_search": 1000
            * (run["cpu_user_seconds"] + run["cpu_system_seconds"])
            / run["searches"],
            "faults_per_search": run["minor_faults"] / run["searches"],
        }
        for moment, memory in run["idle"].items():
            figures[f"idle_{moment}"] = (
                memory["rss_kb"] - memory["lazy_free_kb"]
            ) / 1024
            figures[f"over_start_{moment}"] = memory["rss_kb"] / start
        for name, value in figures.items():
            columns.setdefault(name, []).append(value)
    return {name: report.median(values) for name, values in columns.items()}


def render(raw: dict[str, Any]) -> str:
    by_arm = {name: medians(runs) for name, runs in raw["runs"].items() if runs}
    idle_heads = [f"{moment} s" for moment in IDLE_SECONDS]
    rows = [
        [
            name,
            *(f"{figures[key]:.0f}" for key in ("start", "peak", "growth", "pages")),
            *(f"{figures[f'idle_{moment}']:.0f}" for moment in IDLE_SECONDS),
            f"{figures['per_second']:.1f}",
            *(
                f"{figures[key]:.0f}"
                for key in (
                    "p50_ms",
                    "p99_ms",
                    "cpu_ms_per_search",
                    "faults_per_search",
                )
            ),
        ]
        for name, figures in by_arm.items()
    ]
    heads = [
        "arm",
        "start",
        "peak",
        "growth",
        "pages",
        *idle_heads,
        "searches/s",
        "p50 ms",
        "p99 ms",
        "CPU ms each",
        "faults each",
    ]
    parts = [
        "# Phrase burst\n",
        f"Medians of {raw['settings']['rounds']} rounds. Memory in MB: RSS; idle columns less LazyFree.\n",
        report.table(heads, rows),
    ]
    parts += ["\n## Ratios\n", report.table(*_ratios(by_arm))]
    if "dev" in by_arm:
        parts += ["\n## Targets\n", report.target_table(_targets(by_arm))]
    parts.append(report.front_matter(raw))
    return "\n".join(parts)


def _ratios(by_arm: dict[str, dict[str, float]]) -> tuple[list[str], list[list[str]]]:
    head = ["arm"]
    bases = [name for name in ("stock", "linked") if name in by_arm]
    for base in bases:
        head += [f"growth / {base}", f"searches/s / {base}"]
    head += [f"RSS {moment} s / start" for moment in IDLE_SECONDS]
    rows = []
    for name, figures in by_arm.items():
        row = [name]
        for base in bases:
            row += [
                report.show(report.ratio(figures[key], by_arm[base][key]))
                for key in ("growth", "per_second")
            ]
        row += [
            report.show(figures[f"over_start_{moment}"], 3) for moment in IDLE_SECONDS
        ]
        rows.append(row)
    return head, rows


def _targets(by_arm: dict[str, dict[str, float]]) -> list[tuple[str, ...]]:
    dev = by_arm["dev"]
    stock = by_arm.get("stock")
    others = [
        by_arm[name]["per_second"] for name in ("stock", "linked") if name in by_arm
    ]
    complete = {"stock", "linked"} <= by_arm.keys()
    return [
        report.target(
            "growth of peak RSS / stock's",
            dev["growth"] / stock["growth"] if stock else None,
            "<=",
            0.30,
        ),
        report.target("RSS 2 s after / start", dev["over_start_2"], "<=", 1.08),
        report.target("RSS 5 s after / start", dev["over_start_5"], "<=", 1.07),
        report.target(
            "searches/s / better of stock and linked",
            dev["per_second"] / max(others) if complete else None,
            ">=",
            1.05,
        ),
    ]


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=3)
    parser.add_argument("--clients", type=int, default=8, help="default: %(default)s")
    parser.add_argument(
        "--seconds",
        type=float,
        default=30,
        help="length of the burst (default: %(default)s)",
    )
    parser.add_argument(
        "--settle",
        type=float,
        default=3,
        help="seconds between start and burst (default: %(default)s)",
    )
    parser.add_argument(
        "--documents", type=int, default=DOCUMENTS, help="default: %(default)s"
    )
    options = parser.parse_args()
    rounds.require_positive(options, "clients", "seconds", "settle", "documents")
    collection = {
        "documents": options.documents,
        "words_per_document": WORDS_PER_DOCUMENT,
        "vocabulary": VOCABULARY,
        "skew": SKEW,
        "shift": SHIFT,
        "seed": SEED,
    }
    return rounds.run(
        "phrase_burst",
        options,
        settings={
            **collection,
            "phrase_words": PHRASE_WORDS,
            "clients": options.clients,
            "seconds": options.seconds,
            "settle_seconds": options.settle,
            "mysqld": MYSQLD_OPTIONS,
        },
        prepare=lambda arms: prepared.folders(
            "phrase_burst",
            collection,
            arms,
            MYSQLD_OPTIONS,
            lambda server: fill(server, options.documents),
        ),
        measure=lambda arm, folder: measure(
            arm, folder, options.clients, options.seconds, options.settle
        ),
        brief=lambda run: (
            f"start {run['start_rss_kb'] // 1024} MB, peak {run['peak_rss_kb'] // 1024} MB,"
            f" 2 s after {run['idle']['2']['rss_kb'] // 1024} MB,"
            f" {run['per_second']:.1f} searches/s"
        ),
        render=render,
        seconds_each=options.seconds + options.settle + max(IDLE_SECONDS) + 5,
    )


if __name__ == "__main__":
    run_main("phrase_burst", main)
