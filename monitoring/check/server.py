#!/usr/bin/env python3
"""Checks the configurations with a real server: each statement, Debian's exporter and Prometheus, and the bad cases."""

import contextlib
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from harness.checks import Checks, Failed
from harness.common import preset_of_arguments
from harness.libraries import library
from harness.network import own_network
from harness.problem import run_main
from harness.server import Build
from monitoring import programs, running

# A server has no figure for what it lacks: a limit, survivors, a run before this one, a pressure, the ceiling's last action.
MAY_LACK = re.compile(
    r"mysql_memdiag_(host_(limit|room|room_limit)_bytes|host_oom_kills_total|host_stalled_seconds_total"
    r"|ceiling_last_timestamp_seconds|survivors_.*|last_run_.*|advice_.*|process_until_limit_seconds|process_growth.*)"
)

FAILED = re.compile(r'^sql_exporter_last_scrape_failed\{[^}]*query="mysql_memdiag_pool"[^}]*\} 1$', re.M)


def session_of(one: running.Measured, user: str):
    pymysql = library("pymysql", "python3-pymysql")
    return pymysql.connect(host="127.0.0.1", port=one.port, user=user, password=running.PASSWORD)


def rows_of(session, statement: str) -> tuple[list[str], list[tuple]]:
    with session.cursor() as cursor:
        cursor.execute(statement)
        return [column[0] for column in cursor.description], list(cursor.fetchall())


def series(session, statements: dict[str, dict]) -> Iterator[tuple[str, tuple, float]]:
    """The series as an exporter makes them: metric, values of its labels, value. NULL makes no series."""
    for name, one in statements.items():
        columns, rows = rows_of(session, one["query"])
        wanted = [*one["labels"], *(value["column"] for value in one["values"])]
        if sorted(columns) != sorted(wanted):
            raise AssertionError(f"{name} has columns {columns}, not {wanted}")
        for row in rows:
            by_name = dict(zip(columns, row, strict=True))
            labels = tuple(by_name[label] for label in one["labels"])
            if None in labels:
                raise AssertionError(f"{name} has a label that is NULL: {labels}")
            for value in one["values"]:
                if by_name[value["column"]] is not None:
                    yield (f"mysql_memdiag_{name}_{value['column']}", labels, float(by_name[value["column"]]))


def ledger_bytes(session, statements: dict[str, dict]) -> float:
    ledger = "mysql_memdiag_ledger_resident_bytes"
    found = series(session, statements)
    return sum(value for metric, _, value in found if metric == ledger)


def statements_work(checks: Checks, one: running.Measured) -> None:
    statements = running.statements()
    with session_of(one, "memdiag_exporter") as session:
        found = list(series(session, statements))
        keys = [(metric, labels) for metric, labels, _ in found]
        checks.check("each series is there once", len(keys) == len(set(keys)))
        missing = {
            metric
            for metric in running.metric_names() - {metric for metric, _ in keys}
            if not MAY_LACK.fullmatch(metric)
        }
        checks.check("every metric has a value", not missing, sorted(missing) or len(keys))
        running.check_sum(checks, one.server, lambda: ledger_bytes(session, statements))
        others = [one.server.connect() for _ in range(60)]
        for number, other in enumerate(others):
            other.query(f"SELECT {', '.join(['1'] * (number + 1))}")
            other.query(f"SET @kept = REPEAT('k', {1 << 16})")
        later = {(metric, labels) for metric, labels, _ in series(session, statements)}
        fixed = {key for key in later if not MAY_LACK.fullmatch(key[0])}
        before = {key for key in keys if not MAY_LACK.fullmatch(key[0])}
        checks.check(
            "60 sessions and their statements add no series",
            len(fixed - before) <= 8,  # regions of kinds that the server uses for the first time
            sorted(fixed - before),
        )
        for other in others:
            other.close()


def without_privilege(checks: Checks, one: running.Measured, folder: Path) -> None:
    one.server.query("CREATE USER nobody_much@'127.0.0.1'")
    one.server.query(f"ALTER USER nobody_much@'127.0.0.1' IDENTIFIED BY '{running.PASSWORD}'")
    pymysql = library("pymysql", "python3-pymysql")
    refused = set()
    with session_of(one, "nobody_much") as session:
        for name, statement in running.statements().items():
            try:
                rows_of(session, statement["query"])
            except pymysql.err.OperationalError as error:
                if error.args[0] == 1227 and "PROCESS" in error.args[1]:
                    refused.add(name)
    checks.check(
        "without PROCESS each statement is refused, and the error names it",
        refused == set(running.statements()),
        sorted(set(running.statements()) - refused),
    )
    with running.exporter(folder, one.port, user="nobody_much") as address:
        # The exporter does not log this. The alert MemdiagNoMetrics reports it.
        running.until(
            lambda: (folder / "exporter.log").read_text().count("Sleeping until") >= 2,
            "the exporter has asked everything",
        )
        text = running.get(f"http://{address}/metrics")
        checks.check("an exporter without PROCESS has no figure", "sql_mysql_memdiag" not in text)


def connections(one: running.Measured) -> int:
    return int(one.server.query("SHOW GLOBAL STATUS LIKE 'Threads_connected'").rows[0][1] or 0)


def scraped(checks: Checks, one: running.Measured, folder: Path) -> None:
    with running.exporter(folder, one.port) as address:
        with running.prometheus(folder, address) as prometheus:
            running.until(
                lambda: len(prometheus.values("instance:mysql_memdiag_resident_bytes:sum")) == 1,
                "Prometheus has the figures",
            )
            names: set[str] = set()
            missing: set[str] = set()

            def has_all() -> bool:
                """The exporter asks for one after the other, and a scrape that is late has none."""
                nonlocal names, missing
                names = {row["metric"]["__name__"] for row in prometheus.values('{__name__=~"mysql_memdiag_.+"}')}
                missing = {name for name in running.metric_names() - names if not MAY_LACK.fullmatch(name)}
                return not missing

            with contextlib.suppress(Failed):
                running.until(has_all, "Prometheus has every metric")
            checks.check("Prometheus has every metric, by its name", not missing, sorted(missing) or len(names))
            checks.nothing("and no other", sorted(names - running.metric_names()))
            groups = prometheus.ask("rules").get("groups", [])
            bad = [
                f"{rule['name']}: {rule.get('lastError', rule['health'])}"
                for group in groups
                for rule in group["rules"]
                if rule["health"] == "err"
            ]
            checks.check("every rule can be evaluated", groups and not bad, "; ".join(bad))
            before = one.server.rss_kb()
            prometheus.process.kill()
            prometheus.process.wait()
        # The exporter goes on if its reader goes away, and ends the scrape for which nobody waits.
        for _ in range(20):
            running.get(f"http://{address}/metrics", timeout=0.001)
        # The account may have three connections. The question takes one more.
        left, grown = connections(one), one.server.rss_kb() - before
        checks.check(
            "Prometheus that dies leaves no connections and no memory behind",
            left <= 4 and grown < 16384,
            f"{left} connections, {grown} kB more",
        )


def wrong_endpoint(checks: Checks, folder: Path) -> None:
    with running.exporter(folder, running.free_port()) as address:
        running.until(lambda: "refused" in (folder / "exporter.log").read_text(), "the exporter's log names the error")
        text = running.get(f"http://{address}/metrics")
        checks.check("an exporter of a wrong endpoint has no figure", "sql_mysql_memdiag" not in text)


def goes_down(one: running.Measured, folder: Path) -> None:
    """Debian's exporter repeats its last figures, and MemdiagNoMetrics reads that the last scrape failed."""
    with running.exporter(folder, one.port) as address:
        running.until(
            lambda: "sql_mysql_memdiag" in running.get(f"http://{address}/metrics"), "the exporter has figures"
        )
        one.server.stop()
        try:
            running.until(
                lambda: FAILED.search(running.get(f"http://{address}/metrics")),
                "the exporter says that its scrape failed",
            )
        finally:
            one.server.start()


def main() -> int:
    preset = preset_of_arguments(__doc__)
    Build.of_preset(ROOT, preset)
    programs.all_present()
    checks = Checks("server")
    with tempfile.TemporaryDirectory(prefix="memdiag-") as scratch:
        folder = Path(scratch)
        with own_network(), running.measured(preset, running.CEILING) as one:
            for name, check in (
                ("the statements", lambda: statements_work(checks, one)),
                ("an account without PROCESS", lambda: without_privilege(checks, one, folder)),
                ("exporter and Prometheus", lambda: scraped(checks, one, folder)),
                ("a wrong endpoint", lambda: wrong_endpoint(checks, folder)),
                ("a server that goes down", lambda: goes_down(one, folder)),
            ):
                with checks.checking(name):
                    check()
    return checks.finish()


if __name__ == "__main__":
    run_main("server", main)
