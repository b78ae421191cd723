"""The file of a run's turns, a line for each. A run that was interrupted goes on behind its last turn."""

import json
from pathlib import Path
from typing import Any

from harness.problem import Problem


def turns_of(file: Path) -> list[dict[str, Any]]:
    """A turn whose line was cut, as the run was killed, is not in it, and is made again."""
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    if lines and not lines[-1].endswith("\n"):
        file.write_text("".join(lines[:-1]))
        lines.pop()
    try:
        return [json.loads(line) for line in lines]
    except ValueError:
        raise Problem(f"{file} is damaged: remove it, or name another with --turns") from None


def keep(file: Path, run: dict[str, Any]) -> None:
    with file.open("a") as lines:
        lines.write(json.dumps(run) + "\n")
