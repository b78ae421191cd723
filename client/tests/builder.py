"""Literal snapshots: only what a rule looks at."""

from __future__ import annotations

from typing import Any

MIB = 1 << 20
GIB = 1 << 30


def snapshot(flavour: str = "mysql", **sources: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "format": "memdiag-snapshot/1",
        "label": "db1",
        "time": 1_800_000_000.0,
        "seconds": 0.1,
        "local": True,
        "server": {
            "version": "9.7.4",
            "comment": "",
            "flavour": flavour,
            "account": "root@localhost",
            "hostname": "h",
            "pid": 4711,
        },
        "sources": {name: {"source": name, "rows": rows, "error": None} for name, rows in sources.items()},
    }


def stock(rss: int, pool: int = 64 * MIB, **sources: list[dict[str, Any]]) -> dict[str, Any]:
    """A stock server: 50 MiB of files, a buffer pool of `pool`."""
    pages = pool >> 14
    found = {
        "process": [{"VmRSS": rss, "VmHWM": rss, "VmSwap": 0, "RssFile": 50 * MIB, "RssShmem": 0}],
        "meminfo": [{"MemTotal": 16 * GIB, "MemAvailable": 8 * GIB}],
        "status": [
            {
                "innodb_buffer_pool_pages_total": pages + 100,
                "innodb_buffer_pool_pages_free": 100,
                "innodb_page_size": 16384,
            }
        ],
        "allocator_library": [{"library": None}],
        "system_sessions": [],
        "transactions": [],
    }
    return snapshot("mysql", **(found | sources))


def instrument(name: str, held: int, high: int | None = None) -> dict[str, Any]:
    return {
        "EVENT_NAME": name,
        "BYTES": held,
        "HIGH_BYTES": held if high is None else high,
        "BLOCKS": 1,
        "ALLOCATED": held,
    }
