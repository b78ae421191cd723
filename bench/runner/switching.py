"""The cost of a switch under load: its states take turns within one server while one load lasts."""

import random
import threading
import time
from collections.abc import Callable, Sequence

from harness.problem import Problem
from harness.server import Server
from harness.sql import Connection

WARM_SECONDS = 5.0
SETTLE_SECONDS = 0.4  # after a switch, before counting begins
LEAST_STATEMENTS = 20  # in a window; a window lasts longer to get them
MOST_READINGS = 30  # in a window


def progress(session: Connection) -> int:
    """The number of statements that the server has begun."""
    query = "SHOW GLOBAL STATUS LIKE 'Questions'"
    return int(session.query(query).rows[0][1] or 0)


Window = dict[str, float]


def window(server: Server, session: Connection, seconds: float) -> Window:
    """Statements per second, and microseconds of processor time of each, after a moment to settle."""
    time.sleep(SETTLE_SECONDS)
    began, count, cpu = time.monotonic(), progress(session), cpu_seconds(server)
    done = own = 0
    while done < LEAST_STATEMENTS and own < MOST_READINGS:
        time.sleep(seconds)
        own += 1
        done = progress(session) - count - own
    took, cpu = time.monotonic() - began, cpu_seconds(server) - cpu
    return {"rate": done / took, "cpu_us": cpu / max(done, 1) * 1e6}


def cpu_seconds(server: Server) -> float:
    """CPU seconds of the process, with the threads that have ended. It reads the clock of clock_getcpuclockid(3)."""
    return time.clock_gettime((~server.pid << 3) | 2)


def block_seconds(ways: int, seconds: float) -> float:
    """At most, of one block."""
    return ways * (seconds + SETTLE_SECONDS + 0.2)


def blocks_under_load(
    server: Server,
    load: Callable[[int], object],
    switch: Callable[[Connection, str], object],
    ways: Sequence[str],
    blocks: int,
    seconds: float,
) -> list[dict[str, Window]]:
    """Measures blocks while one load lasts. A block has one window for each way, after switch() to it. The order is
    random, but the same in every run. load() gets its seconds."""
    chooser = random.Random(1)
    whole = WARM_SECONDS + blocks * block_seconds(len(ways), seconds)
    failed: list[BaseException] = []
    found: list[dict[str, Window]] = []

    def run_load() -> None:
        try:
            load(round(whole))
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    thread = threading.Thread(target=run_load, daemon=True)
    thread.start()
    with server.connect() as session:
        time.sleep(WARM_SECONDS)
        for _ in range(blocks):
            block = {}
            for way in chooser.sample(ways, len(ways)):
                switch(session, way)
                block[way] = window(server, session, seconds)
            if not thread.is_alive():
                break  # the load ended in this block
            found.append(block)
    thread.join()
    if failed:
        raise failed[0]
    if not found:
        raise Problem("the load ended before a block did; give it more blocks")
    return found


def ratios(blocks: Sequence[dict[str, Window]], way: str, base: str, figure: str) -> list[float]:
    """The ratio within each block, where the machine's speed changes less."""
    return [block[way][figure] / block[base][figure] for block in blocks]
