"""The folder of a run: its options (run.json) and every finished turn (turns.jsonl), stored at once."""

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from bench.runner import memory, report
from harness.common import say
from harness.problem import Problem

HEAD, TURNS, REPORT = "run.json", "turns.jsonl", "report.md"


@dataclass(frozen=True)
class Step:
    """Identifies a turn of a run."""

    workload: str
    surrounding: str
    round: int
    arm: str


class Results:
    def __init__(self, folder: Path, head: dict[str, Any]) -> None:
        self.folder = folder
        self.head = head
        self.runs: dict[Step, memory.Run] = {}

    @classmethod
    def open(cls, folder: Path) -> Self:
        try:
            made = cls(folder, json.loads((folder / HEAD).read_text()))
            lines = (folder / TURNS).read_text().splitlines() if (folder / TURNS).exists() else []
        except (OSError, ValueError) as error:
            raise Problem(f"{folder} is not the folder of a run: {error}") from None
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the process ended while it was being written
            made.runs[Step(**entry["step"])] = entry["run"]
        return made

    def save_head(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / HEAD).write_text(json.dumps(self.head, indent=1) + "\n")

    def add(self, step: Step, run: memory.Run) -> None:
        """A later entry of the same step counts."""
        self.runs[step] = run
        entry = {"step": asdict(step), "run": run}
        with (self.folder / TURNS).open("a") as file:
            # The last line may have been cut off: begin a new one.
            file.write("\n" * (file.tell() > 0))
            file.write(json.dumps(entry, separators=(",", ":")))
            file.flush()
            os.fsync(file.fileno())

    def publish(self) -> None:
        """Copy to the folder that git takes what documents cite: the report."""
        kept = report.SAVED / self.folder.name
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.folder / REPORT, kept / REPORT)
        say(f"kept: {os.path.relpath(kept)}")

    def finished(self, step: Step) -> bool:
        """Turns that failed are tried again."""
        outcome = self.runs.get(step, {}).get("outcome", "none")
        return outcome in ("survived", "killed")

    def grouped(self, workload: str, surrounding: str, arms: Iterable[str]) -> dict[str, list[memory.Run]]:
        """The runs of each arm in the order of rounds; only arms that have any."""
        found: dict[str, list[memory.Run]] = {arm: [] for arm in arms}
        for step in sorted(self.runs, key=lambda step: step.round):
            if (step.workload, step.surrounding) == (workload, surrounding) and step.arm in found:
                found[step.arm].append(self.runs[step])
        return {arm: runs for arm, runs in found.items() if runs}
