"""Reports of all benchmarks: the machine, medians, tables, and the result files."""

import json
import os
import platform
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.runner.arms import TOP
from harness.commit import commit
from harness.markdown import table

RESULTS = TOP / "bench" / "results"
SAVED = RESULTS / "saved"  # in git
_FRONT = ("machine", "arms", "settings")


def machine() -> dict[str, object]:
    """The machine and the commit of the figures."""
    cpu = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "?"
    )
    memory_kb = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "cpu": cpu,
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mb": memory_kb // 1024,
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "transparent_hugepage": next(iter(_lines("/sys/kernel/mm/transparent_hugepage/enabled")), "?"),
        "load_average_at_start": os.getloadavg(),
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
    }


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def ratio(value: float, base: float) -> float | None:
    return value / base if base else None


def show(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def target(name: str, value: float | None, sense: str, bound: float) -> tuple[str, ...]:
    """A row of the table of targets. sense: '<=' or '>='."""
    if value is None:
        verdict = "not measured"
    else:
        verdict = "met" if (value <= bound if sense == "<=" else value >= bound) else "NOT MET"
    return (name, show(value, 3), f"{sense} {bound}", verdict)


def target_table(rows: Iterable[Sequence[str]]) -> str:
    return table(["target", "measured", "wanted", "verdict"], rows)


def front_matter(raw: Mapping[str, object]) -> str:
    """Machine, arms and settings as Markdown lists."""
    lines = []
    for title in _FRONT:
        part = raw[title]
        assert isinstance(part, Mapping)
        lines.append(f"\n## {title.capitalize()}\n")
        lines += [f"- {name}: {_brief(value)}" for name, value in part.items()]
    return "\n".join(lines)


def stem(name: str) -> str:
    """The name of a run's files."""
    return f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def save_figures(stem: str, raw: Mapping[str, object]) -> None:
    """Write STEM.json, everything measured, to a folder that git ignores."""
    _write(RESULTS / f"{stem}.json", json.dumps(raw, indent=1))


def save(stem: str, text: str, keep: bool) -> None:
    """Print the report, which ends with the machine, the arms and the settings, and write it to STEM.md.

    `keep` (--save) also writes it to the folder that git takes.
    """
    print("\n" + text + "\n")
    _write(RESULTS / f"{stem}.md", text)
    if keep:
        _write(SAVED / f"{stem}.md", text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    print(f"written: {os.path.relpath(path)}")


def _brief(value: object) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {_brief(inner)}" for name, inner in value.items() if inner not in ({}, [], (), ""))
    if isinstance(value, (list, tuple)):
        return " ".join(_brief(inner) for inner in value)
    return str(value)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
