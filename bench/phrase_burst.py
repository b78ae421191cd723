#!/usr/bin/env python3
"""Full-text phrase searches in a burst: memory before, at the peak and after it, and searches per second.

README.md explains the figures.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import memory, report, rounds
from bench.workloads import phrase_burst as workload
from harness.problem import run_main

IDLE_SECONDS = (1, 2, 5, 10, 40)


def render(raw: dict[str, Any]) -> str:
    by_arm = {name: memory.medians(runs) for name, runs in raw["runs"].items() if runs}
    idle_heads = [f"{moment} s" for moment in IDLE_SECONDS]
    rows = [
        [
            name,
            *(f"{figures[key]:.0f}" for key in ("start", "peak", "growth", "pages")),
            *(f"{figures[f'idle_{moment}']:.0f}" for moment in IDLE_SECONDS),
            f"{figures['per_second']:.1f}",
            *(f"{figures[key]:.0f}" for key in ("p50_ms", "p99_ms", "cpu_ms_each", "faults_each")),
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
            row += [report.show(report.ratio(figures[key], by_arm[base][key])) for key in ("growth", "per_second")]
        row += [report.show(figures[f"over_start_{moment}"], 3) for moment in IDLE_SECONDS]
        rows.append(row)
    return head, rows


def _targets(by_arm: dict[str, dict[str, float]]) -> list[tuple[str, ...]]:
    dev = by_arm["dev"]
    stock = by_arm.get("stock")
    others = [by_arm[name]["per_second"] for name in ("stock", "linked") if name in by_arm]
    complete = {"stock", "linked"} <= by_arm.keys()
    return [
        report.target("growth of peak RSS / stock's", dev["growth"] / stock["growth"] if stock else None, "<=", 0.30),
        report.target("RSS 2 s after / start", dev["over_start_2"], "<=", 1.08),
        report.target("RSS 5 s after / start", dev["over_start_5"], "<=", 1.07),
        report.target(
            "searches/s / better of stock and linked", dev["per_second"] / max(others) if complete else None, ">=", 1.05
        ),
    ]


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=3)
    defaults = workload.PhraseBurst()
    parser.add_argument("--clients", type=int, default=defaults.clients, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=30, help="length of the burst (default: %(default)s)")
    parser.add_argument(
        "--settle", type=float, default=3, help="seconds between start and burst (default: %(default)s)"
    )
    parser.add_argument("--documents", type=int, default=defaults.documents, help="default: %(default)s")
    options = parser.parse_args()
    rounds.require_positive(options, "clients", "seconds", "settle", "documents")
    chosen = workload.PhraseBurst(options.documents, options.clients, options.seconds)
    return rounds.run(
        "phrase_burst",
        options,
        settings={
            **chosen.parameters(),
            "words_per_document": workload.WORDS_PER_DOCUMENT,
            "vocabulary": workload.VOCABULARY,
            "skew": workload.SKEW,
            "shift": workload.SHIFT,
            "seed": workload.SEED,
            "phrase_words": workload.PHRASE_WORDS,
            "settle_seconds": options.settle,
            "mysqld": chosen.mysqld_options(),
        },
        prepare=lambda arms: memory.template(chosen, arms),
        measure=rounds.one_by_one(lambda arm, folder: memory.turn(chosen, arm, folder, options.settle, IDLE_SECONDS)),
        brief=memory.brief,
        render=render,
        seconds_each=options.seconds + options.settle + max(IDLE_SECONDS) + 8,
    )


if __name__ == "__main__":
    run_main("phrase_burst", main)
