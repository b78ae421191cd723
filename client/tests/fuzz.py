"""Mutates what the client reads: answers of servers, files of the kernel, texts of programs, recordings and reports.

  python3 -m tests.fuzz --seconds 60 [--seed 7]

Whatever a server answers, the client makes a page or says in a line why it does not. An input that ends otherwise is
written to --found, and the program ends with status 1. tools/fuzz.py runs it with the other fuzzers.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's Jinja2

from memdiag import comparison
from memdiag.collect import innodb_status, kernel, lines
from memdiag.collect.snapshot import take
from memdiag.connect import options, session
from memdiag.moments import of_snapshot, snapshots_of
from memdiag.problem import Problem
from memdiag.recording import parsed
from memdiag.render import html, markdown, text
from memdiag.render import json as as_json
from memdiag.render.page import Page
from memdiag.report.build import report

from tests import fixtures
from tests.old_server import OldServer
from tests.test_versions import KERNEL, TARGET, linked
from tests.versions import SERVERS

PROGRESS_SECONDS = 10
RENDERERS = (text, html, markdown, as_json)
NUMBERS = (0, 1, -1, 0.5, 1 << 31, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1e308)
# MySQL's last second.
MOST_TIME = 253402300799.0
TIMES = ("TIME", "STARTED", "LAST_TIME", "RSS_PEAK_TIME")
WORDS = ("", "/..", "-1", "1e308", "nan", "max", " kB", "</script>", "\x1b[2J", str(1 << 64), "9" * 40)
PIECES = (*WORDS, *" \n\t:=,-/%{}[]0\"'\\\0\u202eé\U0001f4a9\ud800")


Steps = Iterator[Any]
Kind = Callable[["Mutator", int], Steps]


class Mutator:
    """The same seed makes the same inputs."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self, words: str) -> str:
        for _ in range(self.random.randint(1, 4)):
            at = self.random.randint(0, len(words))
            end = min(len(words), at + self.random.choice((0, 1, 3, 20)))
            words = words[:at] + self.random.choice((*PIECES, words[end : end + 30])) + words[end:]
        return words

    def value(self, name: str, value: Any) -> Any:
        """Of the same kind, as the column's type has it. Figures may be NULL; names and times are not."""
        if value is None:
            return None
        if isinstance(value, str):
            return self.text(value)[:10000]
        if name in TIMES:
            return self.random.choice((0, value + 1e7, value - 1e7, MOST_TIME))
        return self.random.choice((*NUMBERS, value * 1000, -value, None, None))

    def rows(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Some values are other ones; rows are missing or come twice."""
        rows = [dict(row) for row in rows]
        if rows and self.random.random() < 0.2:
            kept = self.random.randint(0, len(rows))
            rows = rows[:kept] if self.random.random() < 0.5 else rows + rows[kept:]
        for _ in range(self.random.choice((1, 1, 2, 5, 50))):
            if rows and (row := self.random.choice(rows)):
                name = self.random.choice(list(row))
                row[name] = self.value(name, row[name])
        return rows


def shown(snapshot: dict[str, Any], turn: int) -> str:
    page = Page("Memory", [report(snapshot)], [], [snapshot])
    RENDERERS[turn % len(RENDERERS) if turn % 16 == 0 else 0].render(page)
    return as_json.render(page)


# Each of these gives the input to who wants it, then uses it.


def answers(mutator: Mutator, turn: int) -> Steps:
    """A server of any version, each of whose answers may be any rows."""
    random_ = mutator.random
    server = OldServer(random_.choice(SERVERS), random_.choice((*fixtures.names(), "")))
    server.sources = {
        name: one | {"rows": mutator.rows(one["rows"])} if name not in KERNEL and random_.random() < 0.3 else one
        for name, one in server.sources.items()
    }
    yield {name: one["rows"] for name, one in server.sources.items()}
    with linked(server), session.Session(TARGET) as one:
        snapshot = take(one)
    for name in KERNEL:
        if name in server.sources:
            snapshot["sources"][name] = server.sources[name]
    shown(snapshot, turn)


def recorded(mutator: Mutator, turn: int) -> Steps:
    """Our own server's tables, which the stand-in for old ones does not have."""
    snapshot = copy.copy(fixtures.today(mutator.random.choice(fixtures.names())))
    # Class Kernel mutates the texts of the kernel's files.
    names = [name for name in snapshot["sources"] if name not in KERNEL]
    chosen = set(mutator.random.sample(names, mutator.random.choice((1, 1, 3, len(names)))))
    snapshot["sources"] = {
        name: one | {"rows": mutator.rows(one["rows"])} if name in chosen else one
        for name, one in snapshot["sources"].items()
    }
    yield snapshot
    page = shown(snapshot, turn)
    if turn % 8 == 0:
        (before,) = snapshots_of(page, "report.json")
        after = of_snapshot(fixtures.today("stock-leak"))
        comparison.differences(of_snapshot(before), after, comparison.KINDS)


INNODB = """=====================================
TRANSACTIONS
------------
History list length 12
---TRANSACTION 421, ACTIVE 2 sec
3 lock struct(s), heap size 1128, 2 row lock(s)
Hash table size 34679, node heap has 3 buffer(s)
Total large memory allocated 137363456
Dictionary memory allocated 500813
"""
LINES = "0x000000000000117d\ntake\n/a/known.c:5 (discriminator 2)\nmain\n/a/known.c:9\n0x1\n??\n??:0\n"
RECORDING = (
    '{"format": "memdiag-recording/1", "variables": {"port": 1}}\n{"time": 1.5, "rss": 7}\n{"time": 2.5, "rss": 8}\n'
)
OPTIONS = "[client]\nhost = db1 # a\npassword='a\\\"b'\n[memdiag]\nport=3307\n!include x.cnf\n!includedir .\n"


def texts(mutator: Mutator, _: int) -> Steps:
    words = mutator.text(mutator.random.choice((INNODB, LINES, RECORDING, OPTIONS)))
    yield words
    innodb_status.figures(words)
    lines.parse(words)
    for read in (lambda: parsed(words, "a"), lambda: snapshots_of(words, "a")):
        with contextlib.suppress(Problem):
            read()
    # !includedir finds this file alone.
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Problem):
        path = Path(folder, "my.cnf")
        path.write_text(words, errors="replace")
        options.read_option_file(path)


FILES = {
    "proc/7/status": "Name:\tmysqld\nVmRSS:\t    1672 kB\nVmSwap:\t 0 kB\nThreads:\t1\n",
    "proc/7/oom_score": "7\n",
    "proc/7/oom_score_adj": "-1000\n",
    "proc/7/maps": "1-2 r-xp 0 0:0 1 /usr/lib/libjemalloc.so.2 (deleted)\n1-2 rw-p 0 0:0 0\n",
    "proc/7/environ": "MALLOC_CONF=a\0LD_PRELOAD=b\0",
    "proc/7/cgroup": "9:name=systemd:/\n4:cpu,memory:/db\n0::/db\n",
    "proc/7/cmdline": "/usr/sbin/mysqld\0--a\0",
    "proc/self/mountinfo": "30 1 0:26 / /m rw - cgroup cgroup rw,memory\n31 1 0:27 / /c rw shared:4 - cgroup2 cgroup2 rw\n",
    "proc/meminfo": "MemTotal:       24684092 kB\nMemAvailable:    5908268 kB\n",
    "proc/pressure/memory": "some avg10=0.10 avg60=0.05 avg300=0.01 total=1\nfull avg10=0.05 avg60=0.02 avg300=0.00 total=1\n",
    "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:  100 kB\nNode 0 MemFree:   7 kB\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "proc/sys/vm/swappiness": "60\n",
    "proc/sys/vm/overcommit_memory": "0\n",
    "proc/sys/vm/overcommit_ratio": "50\n",
    "m/db/memory.limit_in_bytes": "9223372036854771712\n",
    "m/db/memory.usage_in_bytes": "5\n",
    "m/db/memory.stat": "total_inactive_file 4\n",
    "m/db/memory.oom_control": "oom_kill_disable 0\noom_kill 2\n",
    "c/db/memory.max": "max\n",
    "c/db/memory.current": "5\n",
}


class Kernel:
    """Files of the kernel, of which one differs at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        for name, words in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(words)

    def __call__(self, mutator: Mutator, _: int) -> Steps:
        name = mutator.random.choice(list(FILES))
        words = mutator.text(FILES[name])
        yield {name: words}
        path = self._root / name
        path.write_text(words, errors="replace")
        try:
            kernel.process(7, self._root)
            kernel.machine(self._root)
            kernel.is_server(7, 99, self._root)
        finally:
            path.write_text(FILES[name])


def run(seconds: float, seed: int, found: Path) -> int:
    faults = turn = 0
    with tempfile.TemporaryDirectory() as folder:
        # A page takes a thousand times as long as a text.
        kinds: list[tuple[Kind, int]] = [(answers, 1), (recorded, 1), (texts, 200), (Kernel(Path(folder)), 20)]
        shown_at = time.monotonic()
        end = shown_at + seconds
        while (now := time.monotonic()) < end:
            if now >= shown_at:
                shown_at = now + PROGRESS_SECONDS
                print(f"#{turn} executions, {faults} faults", flush=True)
            mutator = Mutator(seed * 1_000_003 + turn)
            turn += 1
            (kind,) = mutator.random.choices(*zip(*kinds))
            faults += not harmless(kind, mutator, turn, found)
    print(f"stat::number_of_executed_units: {turn}")
    return 1 if faults else 0


def harmless(kind: Kind, mutator: Mutator, turn: int, found: Path) -> bool:
    """@return false: it ended with an exception other than Problem"""
    given: Any = None
    try:
        steps = kind(mutator, turn)
        given = next(steps)
        next(steps, None)
    except Problem:
        pass
    except Exception:
        found.mkdir(parents=True, exist_ok=True)
        path = found / f"client-{turn}.json"
        path.write_text(json.dumps(given, indent=1, default=str, ensure_ascii=True))
        print(f"{path}:\n{traceback.format_exc()}", flush=True)
        return False
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--found", type=Path, default=Path("build/found"))
    words = parser.parse_args()
    sys.exit(run(words.seconds, words.seed, words.found))
