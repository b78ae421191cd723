"""The commit that results belong to."""

from harness.checkout import git
from harness.common import ROOT
from harness.problem import Problem
from harness.programs import captured


def commit() -> str:
    """As git describes the checkout: a tree with changes ends in -dirty."""
    try:
        done = captured([*git(ROOT), "describe", "--always", "--dirty"])
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def require_clean(state: str) -> None:
    """A Problem for --save where no commit names what was measured. `state`: as commit() gave it."""
    if state == "unknown" or state.endswith("-dirty"):
        raise Problem(
            f"--save keeps results of a commit only, and this tree is {state};"
            " commit its changes, or measure without --save"
        )
