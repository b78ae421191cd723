"""The report of bench/run.py: verdicts and tables, made from the stored turns."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bench.runner import memory, report, verdicts
from bench.runner.stored import REPORT, Results
from bench.workloads.base import HUGE_PAGES, LIMIT, PLAIN, Workload

LIMIT_FACTOR = 1.3  # times the peak of the arm dev
SURROUNDINGS = {
    PLAIN: "",
    HUGE_PAGES: "transparent huge pages set to always",
    LIMIT: f"in a memory cgroup of {LIMIT_FACTOR} times dev's peak",
}

Record = dict[str, Any]


def section(name: str, record: Record) -> str:
    parts = [
        f"\n## {name}\n",
        f"{record['shows'][0].upper()}{record['shows'][1:]}.\n",
        "Sizes: "
        + ", ".join(f"{key} {value}" for key, value in record["parameters"].items())
        + f". mysqld {' '.join(record['mysqld'])}\n",
    ]
    for surrounding, runs in record["runs"].items():
        if title := SURROUNDINGS[surrounding]:
            parts.append(f"\n### {name}, {title}\n")
        if isinstance(runs, str):
            parts.append(f"{runs[0].upper()}{runs[1:]}\n")
            continue
        if surrounding == LIMIT:
            parts.append(report.table(*outcomes(runs)) + "\n")
        by_arm = {arm: memory.medians(mine) for arm, mine in runs.items()}
        by_arm = {arm: found for arm, found in by_arm.items() if found}
        if by_arm:
            parts.append(report.table(*table(by_arm, record["unit"])) + "\n")
        if pools := pool_table(runs.get(verdicts.OURS, [])):
            parts.append(pools + "\n")
        failures = [
            f"- {arm}: {run['outcome']}"
            for arm, mine in runs.items()
            for run in mine
            if run["outcome"].startswith(("failed", "not possible"))
        ]
        parts += [*failures, ""] if failures else []
    return "\n".join(parts)


def table(by_arm: dict[str, dict[str, float | None]], unit: str) -> tuple[list[str], list[list[str]]]:
    some = next(iter(by_arm.values()))
    idle = [key for key in some if key.startswith("idle_")]
    known = {
        "start": "start",
        "peak": "peak",
        "pages": "pages",
        **{key: f"{key.removeprefix('idle_')} s" for key in idle},
        "known_peak": "P_S peak",
        "known_after": "P_S after",
        "resident_ratio": "resident / allocated",
        "named_peak": "named pools peak %",
        "named_after": "named pools after %",
        "unexplained_cheap": "ledger unexplained %",
        "unexplained_exact": "exact ledger unexplained %",
        "per_second": f"{unit}/s",
        "p99_ms": "p99 ms",
        "cpu_seconds": "CPU s",
        "faults": "page faults",
    }
    # A workload's own figures come behind those that all have.
    columns = known | {key: key.replace("_", " ") for key in some if key not in known}
    rows = [
        [arm, *(report.show(figures.get(key), _digits(key, figures.get(key))) for key in columns)]
        for arm, figures in by_arm.items()
    ]
    return ["arm", *columns.values()], rows


def _digits(key: str, value: float | None) -> int:
    if key == "resident_ratio":
        return 2
    whole = key in ("start", "peak", "pages", "known_peak", "known_after", "faults")
    if whole or key.startswith("idle_") or value is None:
        return 0
    return 0 if value >= 100 else 1 if value >= 10 else 2


def outcomes(runs: dict[str, list[memory.Run]]) -> tuple[list[str], list[list[str]]]:
    rows = [
        [
            arm,
            " ".join(run["outcome"].split(":")[0] for run in mine),
            " ".join(f"{run['peak_rss_kb'] / 1024:.0f}" for run in mine),
            " ".join(f"{run['limit']['kb'] / 1024:.0f}" if "limit" in run else "-" for run in mine),
        ]
        for arm, mine in runs.items()
    ]
    return ["arm", "outcome of each round", "highest RSS seen", "limit"], rows


def stem(name: str, surrounding: str) -> str:
    return name if surrounding == PLAIN else f"{name}-{surrounding}"


def pool_table(runs: Sequence[memory.Run]) -> str:
    """The pools of the run with the middle peak, without those of less than a megabyte."""
    asked = [run for run in runs if run.get("pools_peak") and "after" in run]
    if not asked:
        return ""
    run = _middle(asked)
    peak, after = run["pools_peak"], run["after"]["pools"]
    rows = [
        [name, *(f"{value / 2**20:.1f}" for value in values)]
        for name in peak
        if max(values := (*peak[name], *after.get(name, (0, 0)))) >= 2**20
    ]
    rows.sort(key=lambda row: -float(row[2]))
    heads = ["live at the peak", "resident", "live after idling", "resident"]
    return report.table(["pool of dev, MB", *heads], rows)


def _middle(runs: Sequence[memory.Run]) -> memory.Run:
    return sorted(runs, key=lambda run: run["peak_rss_kb"])[len(runs) // 2]


def overview(records: dict[str, Record], arms: Sequence[str]) -> str:
    def cell(runs: list[memory.Run]) -> str:
        figures = memory.medians(runs)
        words = [
            f"{figures['peak']:.0f} > {figures[key]:.0f}"
            for key in [key for key in figures if key.startswith("idle_")][-1:]
        ]
        lost = Counter(run["outcome"].split(":")[0] for run in runs)
        del lost["survived"]
        words += [f"{count} {outcome}" for outcome, count in lost.items()]
        return ", ".join(words) or "-"

    rows = [
        [stem(name, surrounding), *(cell(runs.get(arm, [])) for arm in arms)]
        for name, record in records.items()
        for surrounding, runs in record["runs"].items()
        if not isinstance(runs, str)
    ]
    return report.table(["peak > after idling, MB", *arms], rows)


def records(results: Results, workloads: Sequence[Workload]) -> dict[str, Record]:
    """The measured runs, by workload and surrounding. A text in place of runs gives the reason why there are none."""
    made: dict[str, Record] = {}
    for workload in workloads:
        by_surrounding: dict[str, Any] = {}
        for surrounding in SURROUNDINGS:
            runs = results.grouped(workload.name, surrounding, results.head["arms"])
            outcomes = [run["outcome"] for mine in runs.values() for run in mine]
            if not outcomes:
                continue
            impossible = all(text.startswith("not possible") for text in outcomes)
            by_surrounding[surrounding] = outcomes[0] if impossible else runs
        if by_surrounding:
            made[workload.name] = {
                "shows": workload.shows,
                "unit": workload.unit,
                "parameters": workload.parameters(),
                "mysqld": workload.mysqld_options(),
                "runs": by_surrounding,
            }
    return made


def judgement(made: dict[str, Record]) -> str:
    rows = []
    for name, record in made.items():
        for surrounding, runs in record["runs"].items():
            # In a memory limit, surviving is what counts.
            if surrounding != LIMIT and not isinstance(runs, str):
                by_arm = {arm: memory.medians(mine) for arm, mine in runs.items()}
                rows.append((stem(name, surrounding), by_arm))
    return verdicts.table(rows)


def neighbours(made: dict[str, Record]) -> str:
    """The highest share of one processor that idling servers took during a load."""
    shares = [
        (100 * run["neighbours_cpu_seconds"] / run["seconds"], name, arm)
        for name, record in made.items()
        for runs in record["runs"].values()
        if not isinstance(runs, str)
        for arm, mine in runs.items()
        for run in mine
        if run.get("neighbours_cpu_seconds") is not None and run["seconds"]
    ]
    if not shares:
        return ""
    share, name, arm = max(shares)
    return f"Servers that idled took at most {share:.1f}% of one processor during another's load ({name}, {arm}).\n"


def render(head: dict[str, Any], made: dict[str, Record]) -> str:
    return "\n".join(
        [
            "# Memory under load, and after it\n",
            (
                f"Medians of up to {head['settings']['rounds']} rounds. Ratios are of medians; in brackets the other arm that"
                " was best. Named pools: what of the allocator's resident bytes belongs to a pool other than general."
                " RSS while idling is less LazyFree.\n"
            ),
            judgement(made),
            (
                "\nMemory in MB. Peak: VmHWM; idle columns (1 s ...): RSS"
                " less LazyFree; pages: what InnoDB's buffer pool read meanwhile; P_S: what Performance Schema knows of."
                f" What the columns mean in full: bench/README.md. {neighbours(made)}"
            ),
            overview(made, list(head["arms"])),
            *(section(name, record) for name, record in made.items()),
            report.front_matter(head),
        ]
    )


def write(results: Results, workloads: Sequence[Workload]) -> str:
    """report.md."""
    text = render(results.head, records(results, workloads))
    (results.folder / REPORT).write_text(text + "\n")
    return text
