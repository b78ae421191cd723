"""JSON files in which a run leaves its state to the next. An interruption or a full disk damages none."""

import json
import os
from pathlib import Path
from typing import Any


def read_state(path: Path) -> dict[str, Any]:
    """Empty where there is no whole one."""
    try:
        state = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def write_state(path: Path, state: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(json.dumps(state, indent=1) + "\n")
    os.replace(unfinished, path)
