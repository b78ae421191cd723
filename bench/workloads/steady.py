"""Steady loads of few statements: many sessions on many processors, of which one or two are at work at a moment.

Most pages of an arena wait for the next statement of its processors. A purger that takes them away makes each statement
fault them in again. So purging is switched off and on in turn, and each turn counts page faults and the time of a
statement. Then a burst of other sessions comes and goes, and at last the load ends: what is unused has to go back.

A session that wanders to a processor whose pages have decayed faults, too, so two turns differ by far more than purging
costs. Each page that a purge gave back can cause one fault at most: that bound is exact.
"""

import contextlib
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.server import Server
from harness.sql import Connection

SESSIONS = 16
PAUSE_SECONDS = 0.15
BURST_SESSIONS = 48
BURST_SECONDS = 2.0
# Purging takes what waited while it was off, and that is no cost of a steady load.
WARM_UP_SECONDS = 3.0
# The purger tries a steady load when it begins, after a minute, and then much later.
LEARNING_SECONDS = 75.0
PAGE_BYTES = 4096
TURN_SECONDS = 4.0
# A drift of the machine falls on both alike.
ORDER = ("off", "on", "on", "off")
QUIET_MS = {"off": "all=0", "on": ""}
# Pages are wanted back by then.
RETURN_SECONDS = 2.0
DIGESTS = "performance_schema.events_statements_summary_by_digest"


@dataclass(frozen=True)
class Load:
    """A statement, and the pool that its memory comes from."""

    name: str
    pool: str
    statement: str


LOADS = (
    Load(
        "sorts of 2 MB",
        "session",
        "SELECT /*+ SET_VAR(sort_buffer_size = 4194304) */ COUNT(*) FROM"
        " (SELECT c, pad FROM sbtest1 WHERE id <= 1600 ORDER BY pad, c LIMIT 1599) AS sorted",
    ),
    Load("long lists", "statement", f"DO 0 IN ({', '.join(str(number) for number in range(1, 3000))})"),
    Load(
        "temporary tables",
        "temp_table",
        "SELECT COUNT(*) FROM (SELECT DISTINCT c FROM sbtest1 WHERE id <= 2000) AS few",
    ),
    Load(
        "full-text searches",
        "fts_query",
        "SELECT COUNT(*), SUM(MATCH (words) AGAINST ('word')) FROM steady_fts WHERE MATCH (words) AGAINST ('word')",
    ),
)


def prepare(server: Server, database: str) -> None:
    for statement in (
        "CREATE TABLE steady_fts (id INT PRIMARY KEY, words VARCHAR(100), FULLTEXT (words))",
        "INSERT INTO steady_fts SELECT id, CONCAT('word number ', id) FROM sbtest1 WHERE id <= 2000",
        "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'events_statements_cpu'",
    ):
        server.query(statement, database)


@contextlib.contextmanager
def running(sessions: Sequence[Connection], statement: str, pause_seconds: float) -> Iterator[None]:
    """The load for the length of the block."""
    ends = threading.Event()

    def run(session: Connection, seed: int) -> None:
        dice = random.Random(seed)
        while not ends.wait(pause_seconds * dice.uniform(0.5, 1.5)):
            session.query(statement)

    threads = [threading.Thread(target=run, args=(one, seed)) for seed, one in enumerate(sessions)]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        ends.set()
        for one in threads:
            one.join()


def _figures(session: Connection, load: Load) -> dict[str, int]:
    query = f"SELECT PURGES, PURGED_BYTES, DIRTY_BYTES FROM information_schema.MEMDIAG_POOLS WHERE POOL = '{load.pool}'"
    (row,) = session.query(query).dicts()
    return {name: int(value or 0) for name, value in row.items()}


def _purged_bytes(session: Connection) -> int:
    """Of all pools."""
    return int(session.query("SELECT SUM(PURGED_BYTES) FROM information_schema.MEMDIAG_POOLS").scalar() or 0)


def turn(server: Server, session: Connection, load: Load) -> dict[str, float]:
    """Figures of one turn. Times and faults are of a statement."""
    time.sleep(WARM_UP_SECONDS)
    own, before = _figures(session, load), server.usage()
    purged = _purged_bytes(session)
    session.query(f"TRUNCATE {DIGESTS}")
    time.sleep(TURN_SECONDS)
    (row,) = session.query(
        "SELECT COUNT_STAR, SUM_TIMER_WAIT / COUNT_STAR / 1e6 AS US, SUM_CPU_TIME / COUNT_STAR / 1e6 AS CPU_US"
        f" FROM {DIGESTS} ORDER BY COUNT_STAR DESC LIMIT 1"
    ).dicts()
    count = int(row["COUNT_STAR"] or 0)
    own_later = _figures(session, load)
    return {
        "statements": count,
        "us": float(row["US"] or 0),
        "cpu_us": float(row["CPU_US"] or 0),
        "faults": server.usage().since(before).minor_faults / count,
        "purged_pages": (_purged_bytes(session) - purged) / PAGE_BYTES / count,
        "own_purged_pages": (own_later["PURGED_BYTES"] - own["PURGED_BYTES"]) / PAGE_BYTES / count,
        "purges": own_later["PURGES"] - own["PURGES"],
    }


def _unused_mb(session: Connection, load: Load) -> float:
    return _figures(session, load)["DIRTY_BYTES"] / 2**20


def _later(session: Connection, load: Load) -> dict[str, float]:
    """Unused megabytes now and RETURN_SECONDS later. Nobody looks meanwhile: a look takes memory itself."""
    now = _unused_mb(session, load)
    time.sleep(RETURN_SECONDS)
    return {"mb": now, "later_mb": _unused_mb(session, load)}


def measure(server: Server, database: str, load: Load, rounds: int) -> dict[str, Any]:
    """The turns of both arms, and what was unused after a burst and after the load."""
    turns: dict[str, list[dict[str, float]]] = {arm: [] for arm in QUIET_MS}
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(server.connect(database)) for _ in range(SESSIONS + BURST_SESSIONS)]
        session = stack.enter_context(server.connect(database))
        with running(sessions[:SESSIONS], load.statement, PAUSE_SECONDS):
            time.sleep(LEARNING_SECONDS)
            for _ in range(rounds):
                for arm in ORDER:
                    session.query(f"SET GLOBAL memdiag_quiet_ms = '{QUIET_MS[arm]}'")
                    turns[arm].append(turn(server, session, load))
            session.query("SET GLOBAL memdiag_quiet_ms = ''")
            time.sleep(RETURN_SECONDS)
            steady_mb = _unused_mb(session, load)
            with running(sessions[SESSIONS:], load.statement, 0):
                time.sleep(BURST_SECONDS)
            after_burst = {"before_mb": steady_mb, **_later(session, load)}
        after_load = _later(session, load)
    return {"turns": turns, "after_burst": after_burst, "after_load": after_load}
