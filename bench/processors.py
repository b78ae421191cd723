#!/usr/bin/env python3
"""Costs that grow with the number of processors: memory, caches, collisions, the time of tables, purges and samples.

A shim (cpu_shim.cc) makes the server see other processors than the machine has.

See README.md for what the figures mean.
"""

import contextlib
import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.runner import arms as arm_list
from bench.runner import prepared, report, rounds
from bench.runner.own_tables import SEEN_SECONDS, cpu_ms, every, everyday, foremost, read
from bench.runner.quiet import priority, wait_until_quiet
from bench.runner.resampling import interval
from bench.workloads import steady, sysbench_program
from harness.problem import Problem, run_main
from harness.server import Server
from harness.sql import Connection

SHIM = "libmemdiag_cpu_shim.so"


@dataclass(frozen=True)
class Machine:
    name: str
    # In the form that MEMDIAG_SHIM_CPUS takes.
    cpus: str
    count: int
    nodes: int = 1


def sparse(count: int, step: int) -> Machine:
    numbers = ",".join(str(number) for number in range(0, count * step, step))
    return Machine(f"{count}, each {step}th", numbers, count)


MACHINES = (
    Machine("2", "2", 2),
    Machine("16", "16", 16),
    sparse(16, 8),
    Machine("64", "64", 64),
    sparse(64, 4),
    Machine("64 on 2 nodes", "64", 64, nodes=2),
    Machine("256", "256", 256),
)
# After so many blocks have come or gone, a thread moves to another CPU: some ten times a second under load.
STAY = "20000"
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
# Steady loads run on these, and have so many turns of each arm in a round.
STEADY_CPUS = ("16", "64")
STEADY_ROUNDS = 4
START_PARTS = ("start_perfschema_mb", "start_resident_metadata_mb", "start_unused_mb")
TARGETS = {
    "start_mb_per_cpu": 0.25,
    "everyday_ms": 25.0,
    "idle_percent": 1.0,
    "refreshes": 0,
    "cached_kb_per_cpu": 64.0,
    "large_arenas": 2,
    "steady_ratio": 1.02,
    "steady_purged_share": 0.02,
    # A burst or a load leaves unused pages beyond the steady load's. This share of them may stay for two seconds.
    "steady_left_share": 0.1,
}


def shimmed(arm: arm_list.Arm, machine: Machine) -> arm_list.Arm:
    """The arm, with the shim that shows it this machine."""
    shim = arm.build().directory.parent / "unittest" / SHIM
    if not shim.exists():
        raise Problem(
            f"{shim} is missing; build it with: cmake --build --preset {arm.preset} --target memdiag_cpu_shim"
        )
    return dataclasses.replace(
        arm,
        env={
            **arm.env,
            "MEMDIAG_SHIM_CPUS": machine.cpus,
            "MEMDIAG_SHIM_NODES": str(machine.nodes),
            "MEMDIAG_SHIM_STAY": STAY,
        },
        options=(*arm.options, f"--plugin-dir={shim.parent}"),
        preload=(str(shim),),
    )


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


def measure_steady(server: Server, names: Sequence[str]) -> dict[str, Any]:
    """{load: its figures}"""
    steady.prepare(server, sysbench_program.DATABASE)
    return {
        load.name: steady.measure(server, sysbench_program.DATABASE, load, STEADY_ROUNDS)
        for load in steady.LOADS
        if load.name in names
    }


def measure_steady_alone(arm: arm_list.Arm, template: Path, machine: Machine, names: Sequence[str]) -> dict[str, Any]:
    with (
        prepared.copy(template, arm) as folder,
        shimmed(arm, machine).server(folder, sysbench_program.MYSQLD_OPTIONS, priority()) as server,
    ):
        server.start()
        sysbench_program.read_all(server)
        return {"steady": measure_steady(server, names)}


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
            if machine.name in STEADY_CPUS:
                found["steady"] = measure_steady(server, [load.name for load in steady.LOADS])
    listed = everyday()
    for figure in ("ms", "cpu_ms", "alone_ms"):
        found[f"everyday_{figure}"] = sum(found["tables"][name][figure] for name in listed)
    return found


def measure_round(
    arms: Sequence[arm_list.Arm], template: Path, machines: Sequence[Machine], connections: int, steady_alone: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """`steady_alone`: nothing else than these steady loads; empty: all there is."""

    def measured(arm: arm_list.Arm, machine: Machine) -> dict[str, Any]:
        if steady_alone:
            return measure_steady_alone(arm, template, machine, steady_alone)
        return measure_machine(arm, template, machine, connections)

    for arm in arms:
        yield (arm.name, {machine.name: measured(arm, machine) for machine in machines})


def growth_per_cpu(raw: dict[str, Any], without: str = "") -> list[float]:
    """Of each larger machine: the growth of RSS since the smallest, for each further processor. `without` is
    subtracted."""
    (runs,) = raw["runs"].values()
    cpus = raw["settings"]["machines"]

    def median(name: str) -> float:
        return report.median(run[name]["start_rss_mb"] - (run[name][without] if without else 0) for run in runs)

    least = min(cpus, key=cpus.__getitem__)
    return [(median(name) - median(least)) / (cpus[name] - cpus[least]) for name in cpus if cpus[name] > cpus[least]]


def steady_turns(runs: Sequence[dict[str, Any]], machine: str, load: str) -> list[dict[str, dict[str, float]]]:
    """Pairs of neighbouring turns, one without purging and one with it."""
    return [
        {"off": off, "on": on}
        for run in runs
        for off, on in zip(*(run[machine]["steady"][load]["turns"][arm] for arm in ("off", "on")), strict=True)
    ]


def steady_ratio(pairs: Sequence[dict[str, dict[str, float]]], figure: str) -> float:
    """The median with purging by that without."""
    off, on = (report.median(pair[arm][figure] for pair in pairs) for arm in ("off", "on"))
    return report.ratio(on, off) or 1.0


def steady_left(one: dict[str, Any]) -> float:
    """The largest share of what a burst, or the load, left unused that was still there two seconds later."""
    burst, load = one["after_burst"], one["after_load"]
    more = burst["mb"] - burst["before_mb"]
    return max(
        (burst["later_mb"] - burst["before_mb"]) / more if more >= 1 else 0.0,
        load["later_mb"] / load["mb"] if load["mb"] >= 1 else 0.0,
    )


def steady_loads(runs: Sequence[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """{(machine, load): figures} of the machines that had them."""
    found = {}
    for machine in (name for name in runs[0] if "steady" in runs[0][name]):
        for load in runs[0][machine]["steady"]:
            pairs = steady_turns(runs, machine, load)
            found[machine, load] = {
                **{
                    f"{figure}_{arm}": report.median(pair[arm][figure] for pair in pairs)
                    for figure in ("us", "cpu_us", "faults")
                    for arm in ("off", "on")
                },
                # Purges are rare, so a median would not see them.
                **{
                    figure: statistics.fmean(pair["on"][figure] for pair in pairs)
                    for figure in ("purged_pages", "own_purged_pages")
                },
                **{
                    f"{figure}_ratio": interval(pairs, lambda drawn, figure=figure: steady_ratio(drawn, figure))
                    for figure in ("us", "cpu_us", "faults")
                },
                "purges": sum(pair["on"]["purges"] for pair in pairs) * 60 / (len(pairs) * steady.TURN_SECONDS),
                "left": max(steady_left(run[machine]["steady"][load]) for run in runs),
                "unused_mb": report.median(run[machine]["steady"][load]["after_burst"]["mb"] for run in runs),
            }
    return found


STEADY_COLUMNS = (
    "page faults, off → on",
    "ratio",
    "pages purged",
    "of its pool",
    "CPU us",
    "ratio",
    "us by the clock",
    "ratio",
    "purges a minute",
    "unused MB after a burst",
    "left",
)


def steady_part(found: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    if not found:
        return []

    def compared(one: dict[str, Any], figure: str, digits: int) -> list[str]:
        ratio, low, high = one[f"{figure}_ratio"]
        values = " → ".join(f"{one[f'{figure}_{arm}']:.{digits}f}" for arm in ("off", "on"))
        return [values, f"{ratio:.2f} ({low:.2f} to {high:.2f})"]

    rows = [
        [
            machine,
            load,
            *compared(one, "faults", 1),
            f"{one['purged_pages']:.3f}",
            f"{one['own_purged_pages']:.3f}",
            *compared(one, "cpu_us", 0),
            *compared(one, "us", 0),
            f"{one['purges']:.0f}",
            f"{one['unused_mb']:.0f}",
            f"{one['left']:.2f}",
        ]
        for (machine, load), one in found.items()
    ]
    return [
        "\n## Steady loads of few statements\n",
        f"{steady.SESSIONS} sessions, each with a statement every {steady.PAUSE_SECONDS:g} s. Purging is on for"
        f" {steady.LEARNING_SECONDS:g} s, then off and on in turn, {steady.TURN_SECONDS:g} s each. `pages purged` of a"
        " statement is the mean of the turns with purging: it can have caused so many faults at most. Medians of a"
        " statement, and the ratio with the interval of 95% of resampled"
        f" ratios. Then {steady.BURST_SESSIONS} more sessions for {steady.BURST_SECONDS:g} s: `left` is the share of what"
        f" they, or the load, left unused that was still there {steady.RETURN_SECONDS:g} s after they ended.\n",
        report.table(["processors", "load", *STEADY_COLUMNS], rows),
    ]


def steady_targets(found: dict[tuple[str, str], dict[str, Any]]) -> list[tuple[str, ...]]:
    """Each is of the load that does worst. Ratios are medians: the interval in the table says how exact they are."""
    words = {"faults": "page faults of a statement", "cpu_us": "its processor time", "us": "its time by the clock"}
    purged = [one["purged_pages"] / one["faults_off"] for one in found.values() if one["faults_off"]]
    return [
        report.target(name, max(values, default=None), "<=", TARGETS[target])
        for name, values, target in (
            ("steady loads: pages purged by page faults with purging off, most", purged, "steady_purged_share"),
            *(
                (
                    f"steady loads: {name}, purging on by off, most",
                    [one[f"{figure}_ratio"][0] for one in found.values()],
                    "steady_ratio",
                )
                for figure, name in words.items()
            ),
            (
                f"share of unused pages left {steady.RETURN_SECONDS:g} s after a burst or a load, most",
                [one["left"] for one in found.values()],
                "steady_left_share",
            ),
        )
    ]


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
    if "start_rss_mb" not in next(iter(runs[0].values())):
        found = steady_loads(runs)
        parts = ["# Many processors, simulated: steady loads alone", *steady_part(found), "\n## Targets\n"]
        return "\n".join([*parts, report.target_table(steady_targets(found)), report.front_matter(raw)])
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
    steadied = steady_loads(runs)
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
            *steady_part(steadied),
            "\n## Targets\n",
            report.target_table([*targets(raw, median), *steady_targets(steadied)]),
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


def choose(names: str) -> list[Machine]:
    known = {machine.name: machine for machine in MACHINES}
    wanted = [name.strip() for name in names.split(";")]
    for name in wanted:
        if name not in known:
            raise Problem(f"no machine '{name}'; there are: {'; '.join(known)}")
    return [known[name] for name in wanted]


def main() -> int:
    parser = rounds.parser(__doc__.splitlines()[0], rounds=1, arms=("dev",), one_arm=True)
    parser.add_argument(
        "--machines",
        default=";".join(machine.name for machine in MACHINES),
        help="separated by semicolons (default: %(default)s)",
    )
    parser.add_argument("--connections", type=int, default=1000, help="default: %(default)s")
    names = [load.name for load in steady.LOADS]
    parser.add_argument(
        "--steady-alone",
        metavar="LOADS",
        help=f"only these steady loads, separated by semicolons, of: {'; '.join(names)}",
    )
    options = parser.parse_args()
    steady_alone = [name.strip() for name in options.steady_alone.split(";")] if options.steady_alone else []
    if wrong := set(steady_alone) - set(names):
        raise Problem(f"no load {', '.join(sorted(wrong))}; there are: {'; '.join(names)}")
    rounds.require_positive(options, "connections")
    machines = choose(options.machines)
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
        measure=lambda arms, template: measure_round(arms, template, machines, options.connections, steady_alone),
        brief=lambda run: "; ".join(
            f"{name}: {len(found['steady'])} steady loads"
            if steady_alone
            else f"{name}: {found['start_rss_mb']:.0f} MB, everyday tables {found['everyday_ms']:.1f} ms"
            for name, found in run.items()
        ),
        render=render,
        seconds_each=180 * len(machines) * len(steady_alone)
        if steady_alone
        else 100 * len(machines) + 720 * sum(one.name in STEADY_CPUS for one in machines),
    )


if __name__ == "__main__":
    run_main("processors", main)
