"""The figures of memory in SHOW ENGINE INNODB STATUS. Its text has statements of other sessions and is not kept."""

from __future__ import annotations

import re

from memdiag.collect.sources import Row

_LINES = (
    ("total_large_memory", r"^Total large memory allocated (\d+)", 1),
    ("dictionary_memory", r"^Dictionary memory allocated (\d+)", 1),
    ("history_list_length", r"^History list length (\d+)", 1),
    ("adaptive_hash_buffers", r"node heap has (\d+) buffer", 1),
    ("percona_internal_hash", r"^Total memory allocated (\d+)", 1),
    # One line for each transaction.
    ("lock_heaps", r"^\d+ lock struct\(s\), heap size (\d+),", 0),
)


def figures(text: str) -> list[Row]:
    """One row for each figure that is there."""
    # Before it are statements and locks of transactions that have ended: the last deadlock, the last foreign key's error.
    text = text.partition("\nTRANSACTIONS\n")[2] or text
    rows: list[Row] = []
    for name, pattern, once in _LINES:
        found = [int(number) for number in re.findall(pattern, text, re.MULTILINE)]
        if found:
            rows.append({"NAME": name, "VALUE": found[0] if once and name != "adaptive_hash_buffers" else sum(found)})
    return rows
