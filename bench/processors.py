#!/usr/bin/env python3
"""Costs that grow with the number of processors: memory, caches, collisions, the time of tables, purges and samples.

A shim (cpu_shim.cc) makes the server see other processors than the machine has.

See README.md for what the figures mean.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import prepared, report, rounds
from bench.runner.own_tables import SEEN_SECONDS, cpu_ms, every, everyday, foremost, read
from bench.runner.quiet import priority, wait_until_quiet
from bench.runner.shim import MACHINES, SHIM, STAY, Machine, chosen, shimmed
from bench.workloads import sysbench_program
from harness.problem import run_main
from harness.server import Server
from harness.sql import Connection

COLLISION_THREADS = (4, 16, 64)
BURST_THREADS = 64
LOAD_SECONDS = 6
IDLE_SECONDS = 20
REST_SECONDS = 10
PURGES = 5
SAMPLING_SECONDS = 3
SAMPLING_MS = 10
# More than what a server at rest moves between two samples, and nothing.
MOVES_MEMORY = "SELECT LENGTH(REPEAT('x', 4 << 20))"
RESTS = "SELECT SLEEP(0.5)"
LARGE_SESSIONS = 32
LARGE_BYTES = 1 << 20
FUNCTIONS = ("memdiag_shim_questions", "memdiag_shim_bypasses", "memdiag_shim_refreshes")
START_PARTS = ("start_perfschema_mb", "start_resident_metadata_mb", "start_unused_mb")
TARGETS = {
    "start_mb_per_cpu": 0.25,
    "everyday_ms": 25.0,
    "idle_percent": 1.0,
    "refreshes": 0,
    "cached_kb_per_cpu": 64.0,
    "large_arenas": 2,
}


def number(session: Connection, query: str) -> int:
    return int(session.query(query).scalar() or 0)


def figures(session: Connection, names: Sequence[str]) -> dict[str, int]:
    """A row of the table of the allocator."""
    (row,) = session.query(f"SELECT {', '.join(names)} FROM information_schema.MEMDIAG_ALLOCATOR").dicts()
    return {name: int(value or 0) for name, value in row.items()}


def cached_bytes(session: Connection) -> int:
    return number(session, "SELECT SUM(CACHED_BYTES) FROM information_schema.MEMDIAG_POOLS")


def tcache_bytes(session: Connection) -> int:
    return number(session, "SELECT SUM(TCACHE_BYTES) FROM information_schema.MEMDIAG_ARENAS")


def load(server: Server, threads: int) -> float:
    """Runs the load; returns transactions per second."""
    output = sysbench_program.run(server, "oltp_read_write", "run", f"--threads={threads}", f"--time={LOAD_SECONDS}")
    return sysbench_program.parse(output)["tps"]


def threads(server: Server) -> dict[int, str]:
    """The names of the server's threads."""
    return {int(task.parent.name): task.read_text().strip() for task in Path(f"/proc/{server.pid}/task").glob("*/comm")}


def own_cpu_ms(server: Server) -> float:
    """Processor time of this project's threads and of jemalloc's."""
    return sum(
        cpu_ms(server, thread) for thread, name in threads(server).items() if name.startswith(("memdiag", "jemalloc"))
    )


def resident_mb(session: Connection) -> dict[str, float]:
    """Parts of RSS that differ by the number of processors."""
    rows = session.query(
        "SELECT COMPONENT, NAME, STATE, RESIDENT_BYTES FROM information_schema.MEMDIAG_LEDGER_EXACT"
    ).rows
    parts = {(part, name, state): int(size or 0) for part, name, state, size in rows}

    def sum_of(*states: str) -> float:
        return sum(size for (part, _, state), size in parts.items() if part == "pool" and state in states) / 2**20

    return {
        "start_perfschema_mb": parts["pool", "perfschema", "live"] / 2**20,
        "start_resident_metadata_mb": sum_of("metadata"),
        "start_unused_mb": sum_of("dirty", "muzzy"),
    }


def at_start(server: Server, session: Connection) -> dict[str, Any]:
    wait_until_quiet(lambda: server.usage().cpu_seconds)
    before = (server.usage(), own_cpu_ms(server))
    time.sleep(IDLE_SECONDS)
    idle = server.usage().since(before[0]).cpu_seconds / IDLE_SECONDS
    own = (own_cpu_ms(server) - before[1]) / 1000 / IDLE_SECONDS
    # Measured only now: up to 20 MB of unused pages of malloc() need some seconds to decay.
    rss_kb = server.rss_kb()
    known = figures(session, ("ARENAS", "METADATA_BYTES"))
    return {
        **resident_mb(session),
        "threads": len(threads(server)),
        "start_rss_mb": rss_kb / 1024,
        "idle_percent": 100 * idle,
        "own_idle_percent": 100 * own,
        "start_arenas": known["ARENAS"],
        "start_metadata_mb": known["METADATA_BYTES"] / 2**20,
    }


def collisions(server: Server, session: Connection, threads: int) -> dict[str, float | int]:
    """A block asks for its CPU when it comes and when it goes."""
    questions, bypasses = (f"SELECT {name}()" for name in ("memdiag_shim_questions", "memdiag_shim_bypasses"))
    before = (number(session, questions), number(session, bypasses))
    tps = load(server, threads)
    blocks = (number(session, questions) - before[0]) / 2
    found = number(session, bypasses) - before[1]
    return {"tps": tps, "blocks": blocks, "per_thousand": 1000 * found / blocks}


def caches(server: Server, session: Connection) -> dict[str, float]:
    load(server, BURST_THREADS)
    after = (cached_bytes(session), tcache_bytes(session))
    time.sleep(REST_SECONDS)
    rested = (cached_bytes(session), tcache_bytes(session))
    known = figures(session, ("ARENAS", "METADATA_BYTES"))
    return {
        "cached_kb": after[0] / 1024,
        "cached_rested_kb": rested[0] / 1024,
        "thread_cached_kb": after[1] / 1024,
        "thread_cached_rested_kb": rested[1] / 1024,
        "burst_arenas": known["ARENAS"],
        "burst_metadata_mb": known["METADATA_BYTES"] / 2**20,
        "burst_rss_mb": server.rss_kb() / 1024,
    }


def tables(server: Server, connections: int) -> dict[str, dict[str, float]]:
    """Measures the everyday tables in their order, then each table alone, with so many idle sessions."""
    with contextlib.ExitStack() as sessions:
        for _ in range(connections):
            sessions.enter_context(server.connect())
        reader = sessions.enter_context(server.connect())
        sessions.enter_context(foremost())
        # The samples that were taken each 10 ms are not new any more.
        time.sleep(SEEN_SECONDS)
        in_turn = read(server, reader, everyday(), True)
        alone = read(server, reader, every(reader), False)
    return {
        name: {
            "alone_ms": ms,
            "alone_cpu_ms": cpu,
            **({"ms": in_turn[name][0], "cpu_ms": in_turn[name][1]} if name in in_turn else {}),
        }
        for name, (ms, cpu) in alone.items()
    }


@contextlib.contextmanager
def no_samples(session: Connection) -> Iterator[None]:
    """Switches the sampler off for the block, because it refreshes jemalloc's statistics."""
    session.query("SET GLOBAL memdiag_history_interval_ms = 0")
    try:
        yield
    finally:
        session.query("SET GLOBAL memdiag_history_interval_ms = DEFAULT")


def purge(server: Server, session: Connection) -> dict[str, float]:
    """The time of purges, each of which gives back the pages of some large sorts."""
    sort = (
        "SELECT /*+ SET_VAR(sort_buffer_size = 33554432) */ COUNT(*) FROM"
        " (SELECT c, pad FROM sbtest1 ORDER BY pad, c LIMIT 49999) AS sorted"
    )
    times, refreshes, released = [], [], []
    with no_samples(session), server.connect(sysbench_program.DATABASE) as sorter, server.connect() as purger:
        session.query("SET GLOBAL memdiag_quiet_ms = 'session=0'")
        for _ in range(PURGES):
            sorter.query(sort)
            before = number(purger, "SELECT memdiag_shim_refreshes()")
            began = time.monotonic()
            purger.query("SELECT memdiag_purge('session')")
            times.append(1000 * (time.monotonic() - began))
            refreshes.append(number(purger, "SELECT memdiag_shim_refreshes()") - before)
            released.append(
                number(
                    purger,
                    "SELECT RELEASED_BYTES FROM information_schema.MEMDIAG_PURGES"
                    " WHERE POOL = 'session' ORDER BY SEQUENCE DESC LIMIT 1",
                )
            )
        session.query("SET GLOBAL memdiag_quiet_ms = ''")
    return {
        "purge_ms": report.median(times),
        "purge_released_mb": report.median(released) / 2**20,
        "purge_refreshes": max(refreshes),
    }


def sample(server: Server, session: Connection, load: str) -> float:
    """The processor time that the sampler's thread takes for a sample, while the statement runs again and again."""
    (thread,) = (thread for thread, name in threads(server).items() if name == "memdiag_history")
    count = "SELECT COUNT(*) FROM information_schema.MEMDIAG_HISTORY WHERE RUN = 0"
    session.query(f"SET GLOBAL memdiag_history_interval_ms = {SAMPLING_MS}")
    before = (cpu_ms(server, thread), number(session, count))
    end = time.monotonic() + SAMPLING_SECONDS
    while time.monotonic() < end:
        session.query(load)
    after = (cpu_ms(server, thread), number(session, count))
    session.query("SET GLOBAL memdiag_history_interval_ms = DEFAULT")
    return (after[0] - before[0]) / (after[1] - before[1])


def large_blocks(server: Server, session: Connection) -> dict[str, int]:
    """The arenas that hold a large block of each of some sessions."""
    with contextlib.ExitStack() as sessions:
        for _ in range(LARGE_SESSIONS):
            holder = sessions.enter_context(server.connect())
            holder.query(f"SET @large = REPEAT('x', {LARGE_BYTES})")
        return {
            "large_arenas": number(
                session,
                "SELECT COUNT(DISTINCT ARENA) FROM information_schema.MEMDIAG_SIZE_CLASSES WHERE KIND = 'large'"
                f" AND POOL = 'session' AND MIN_SIZE >= {LARGE_BYTES} AND BLOCKS > 0",
            )
        }


def measure_machine(arm: arm_list.Arm, template: Path, machine: Machine, connections: int) -> dict[str, Any]:
    shown = shimmed(arm, machine)
    with (
        prepared.copy(template, arm) as folder,
        shown.server(folder, sysbench_program.MYSQLD_OPTIONS, priority()) as server,
    ):
        server.start()
        with server.connect() as session:
            found = at_start(server, session)
            for name in FUNCTIONS:
                session.query(f"CREATE FUNCTION {name} RETURNS INTEGER SONAME '{SHIM}'")
            sysbench_program.read_all(server)
            found["collisions"] = {threads: collisions(server, session, threads) for threads in COLLISION_THREADS}
            found.update(caches(server, session))
            found.update(large_blocks(server, session))
            found.update(purge(server, session))
            found["sample_ms"] = sample(server, session, MOVES_MEMORY)
            found["sample_at_rest_ms"] = sample(server, session, RESTS)
            found["tables"] = tables(server, connections)
    listed = everyday()
    for figure in ("ms", "cpu_ms", "alone_ms"):
        found[f"everyday_{figure}"] = sum(found["tables"][name][figure] for name in listed)
    return found


def measure_round(
    arms: Sequence[arm_list.Arm], template: Path, machines: Sequence[Machine], connections: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    for arm in arms:
        yield (arm.name, {machine.name: measure_machine(arm, template, machine, connections) for machine in machines})


def growth_per_cpu(raw: dict[str, Any], without: str = "") -> list[float]:
    """Of each larger machine: the growth of RSS since the smallest, for each further processor. `without` is
    subtracted."""
    (runs,) = raw["runs"].values()
    cpus = raw["settings"]["machines"]

    def median(name: str) -> float:
        return report.median(run[name]["start_rss_mb"] - (run[name][without] if without else 0) for run in runs)

    least = min(cpus, key=cpus.__getitem__)
    return [(median(name) - median(least)) / (cpus[name] - cpus[least]) for name in cpus if cpus[name] > cpus[least]]


# Columns of tables: their head, figure and digits.
MEMORY = (
    ("RSS MB", "start_rss_mb", 0),
    ("arenas", "start_arenas", 0),
    ("metadata MB", "start_metadata_mb", 1),
    ("threads", "threads", 0),
    ("idle CPU %", "idle_percent", 2),
    ("of it own threads", "own_idle_percent", 2),
    ("after a burst: RSS MB", "burst_rss_mb", 0),
    ("arenas", "burst_arenas", 0),
    ("metadata MB", "burst_metadata_mb", 1),
)
CACHES = (
    ("pools' caches", "cached_kb", 0),
    ("later", "cached_rested_kb", 0),
    ("threads' caches", "thread_cached_kb", 0),
    ("later", "thread_cached_rested_kb", 0),
)
WORK = (
    ("purge ms", "purge_ms", 2),
    ("released MB", "purge_released_mb", 1),
    ("refreshes", "purge_refreshes", 0),
    ("sample CPU ms", "sample_ms", 2),
    ("at rest", "sample_at_rest_ms", 2),
    (f"arenas of {LARGE_SESSIONS} large blocks", "large_arenas", 0),
)
EVERYDAY = (
    ("everyday tables, one after the other", "everyday_ms", 1),
    ("CPU", "everyday_cpu_ms", 1),
    ("each alone", "everyday_alone_ms", 1),
)


def render(raw: dict[str, Any]) -> str:
    (runs,) = raw["runs"].values()
    cpus: dict[str, int] = raw["settings"]["machines"]
    least, most = (extreme(cpus, key=cpus.__getitem__) for extreme in (min, max))

    def median(machine: str, *path: str) -> float:
        def value(run: Any) -> float:
            for key in (machine, *path):
                run = run[key]
            return run

        return report.median(value(run) for run in runs)

    def by_machine(head: Sequence[str], cells: Callable[[str], list[str]]) -> str:
        return report.table(["processors", *head], [[name, *cells(name)] for name in cpus])

    def figures(columns: Sequence[tuple[str, str, int]]) -> str:
        heads = [head for head, _, _ in columns]
        return by_machine(heads, lambda name: [f"{median(name, figure):.{digits}f}" for _, figure, digits in columns])

    def start_parts(name: str) -> list[str]:
        parts = [median(name, figure) for figure in START_PARTS]
        return [f"{part:.1f}" for part in (*parts, median(name, "start_rss_mb") - sum(parts))]

    running = list(runs[0][most]["collisions"])
    listed = everyday()
    shown = [name for name in cpus if name in (least, most)]

    def of_table(name: str) -> list[str]:
        cells = [
            f"{median(machine, 'tables', name, figure):.2f}" if figure in runs[0][machine]["tables"][name] else ""
            for machine in shown
            for figure in ("ms", "cpu_ms", "alone_ms", "alone_cpu_ms")
        ]
        return [name, "everyday" if name in listed else "internal", *cells]

    return "\n".join(
        [
            "# Many processors, simulated\n",
            "A shim shows the server these processors; its threads still share the machine's own. Times are"
            " therefore of the work, and say nothing about waiting.\n",
            "## Memory\n",
            figures(MEMORY),
            "\nOf RSS at start, in MB. From 16 processors on, InnoDB starts four more threads"
            " (innodb_read_io_threads, innodb_log_writer_threads), as stock MySQL does. Performance Schema then makes"
            " room for 32 more, little of which is written.\n",
            by_machine(["Performance Schema", "the allocator's metadata", "unused pages", "all else"], start_parts),
            f"\nBytes in caches after a burst of {BURST_THREADS} threads, and {REST_SECONDS} s later, in KB:\n",
            figures(CACHES),
            "\n## Collisions\n",
            "Times that a thread found its CPU's shard taken, for each thousand blocks of pools, by running threads"
            " (oltp_read_write):\n",
            by_machine(
                [f"{count} threads" for count in running],
                lambda name: [f"{median(name, 'collisions', count, 'per_thousand'):.3f}" for count in running],
            ),
            "\n## Purges, samples, large blocks\n",
            figures(WORK),
            "\n## Tables\n",
            f"{raw['settings']['connections']} connections open; milliseconds by the clock and of the reading thread's"
            " processor. A monitor reads the everyday tables one after the other, and they share readings.\n",
            figures(EVERYDAY),
            "",
            report.table(
                ["table", "", *(f"{how}, {name}" for name in shown for how in ("in turn", "CPU", "alone", "CPU"))],
                map(of_table, sorted(runs[0][most]["tables"], key=lambda name: name not in listed)),
            ),
            "\n## Targets\n",
            report.target_table(targets(raw, median)),
            report.front_matter(raw),
        ]
    )


def targets(raw: dict[str, Any], median: Callable[..., float]) -> Iterator[tuple[str, ...]]:
    cpus = raw["settings"]["machines"]
    most = max(cpus, key=cpus.__getitem__)
    in_pools = f"KB in pools' caches for each processor, {REST_SECONDS} s after a burst"
    in_arenas = "arenas of large blocks, least of machines with 16 processors or more"
    for name, values, target in (
        ("RSS at start, MB more for each processor more", growth_per_cpu(raw), "start_mb_per_cpu"),
        ("the same without Performance Schema", growth_per_cpu(raw, "start_perfschema_mb"), "start_mb_per_cpu"),
        (f"everyday tables together on {most}, ms", [median(most, "everyday_ms")], "everyday_ms"),
        ("the same, of the processor", [median(most, "everyday_cpu_ms")], "everyday_ms"),
        ("idle CPU, most of all machines, %", [median(name, "idle_percent") for name in cpus], "idle_percent"),
        ("refreshes of all statistics by a purge", [median(name, "purge_refreshes") for name in cpus], "refreshes"),
        (in_pools, [median(name, "cached_rested_kb") / cpus[name] for name in cpus], "cached_kb_per_cpu"),
    ):
        yield report.target(name, max(values, default=None), "<=", TARGETS[target])
    several = [median(name, "large_arenas") for name, count in cpus.items() if count >= 16]
    yield report.target(in_arenas, min(several, default=None), ">=", TARGETS["large_arenas"])


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("dev",), one_arm=True)
    parser.add_argument(
        "--machines",
        default=";".join(machine.name for machine in MACHINES),
        help="separated by semicolons (default: %(default)s)",
    )
    parser.add_argument("--connections", type=int, default=1000, help="default: %(default)s")
    options = parser.parse_args()
    rounds.require_positive(options, "connections")
    machines = chosen(options.machines)
    return rounds.run(
        "processors",
        options,
        settings={
            "sysbench": sysbench_program.version(),
            "connections": options.connections,
            "stay": STAY,
            "priority": " ".join(priority()),
            "machines": {machine.name: machine.count for machine in machines},
        },
        prepare=prepared.sysbench,
        measure=lambda arms, template: measure_round(arms, template, machines, options.connections),
        brief=lambda run: "; ".join(
            f"{name}: {found['start_rss_mb']:.0f} MB, everyday tables {found['everyday_ms']:.1f} ms"
            for name, found in run.items()
        ),
        render=render,
        seconds_each=100 * len(machines),
    )


if __name__ == "__main__":
    run_main("processors", main)
