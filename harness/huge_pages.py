"""Transparent huge pages for the whole machine."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from harness.at_the_end import at_the_end
from harness.problem import NotPossible

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@contextlib.contextmanager
def set_to(mode: str) -> Iterator[str]:
    """Sets huge pages of the whole machine to "always", "madvise" or "never", and back to the former setting, even if
    this process is killed. "" changes nothing. The value of the block is the former setting."""
    if not mode:
        yield ""
        return
    try:
        before = re.search(r"\[(\w+)\]", SETTING.read_text())
        assert before
        # This changes nothing. A process without the permission fails here.
        SETTING.write_text(before[1])
    except OSError as error:
        raise NotPossible(f"huge pages cannot be set: {error}") from None
    with at_the_end('echo "$1" > "$2"', before[1], SETTING):
        SETTING.write_text(mode)
        yield before[1]


def always() -> contextlib.AbstractContextManager[str]:
    return set_to("always")
