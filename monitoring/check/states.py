"""The alerts that fire in each state of a server, as promtool's tests.

A recorded state is one of record.py. After its end, the last values stay. States that take
more than minutes, or that this machine cannot have, are written here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from monitoring.check import meter, recordings

JOB = "mysql-memdiag"
INSIDE = f'instance="db1",job="{JOB}"'
# The server's forecast is a line through 15 minutes of samples. If nothing changes any more, it ends after that time.
FORECAST = "mysql_memdiag_process_until_limit"
FORECAST_SECONDS = 900
# promtool's clock begins at 0, that of the recording at its first sample.
TIMES = "_timestamp_seconds{"

# Series about an exporter itself.
OF_EXPORTERS = ("up", "sql_exporter_last_scrape_failed")

Labels = dict[str, str]
# {minutes after the recording's end, or after the first written value: exactly the alerts that fire then}
Expected = dict[int, list[Labels]]


@dataclass(frozen=True)
class State:
    name: str
    step_seconds: int
    series: dict[str, str]  # in promtool's notation
    end_seconds: int  # length of the recording
    expected: Expected
    job: str = JOB

    def test(self, alerts: Iterable[str]) -> dict:
        """promtool's group of tests. Each of these alerts has a test of its own, so a failure names the alert."""
        return {
            "name": self.name,
            "interval": f"{self.step_seconds}s",
            "input_series": [{"series": name, "values": values} for name, values in self.series.items()],
            "promql_expr_test": [
                {
                    "eval_time": f"{self.end_seconds + minutes * 60}s",
                    "expr": f'ALERTS{{alertname="{name}",alertstate="firing"}}',
                    "exp_samples": [
                        {"labels": firing(labels, self.job), "value": 1}
                        for labels in expected
                        if labels["alertname"] == name
                    ],
                }
                for minutes, expected in self.expected.items()
                for name in alerts
            ],
        }

    def names(self) -> set[str]:
        """The alerts that fire in this state."""
        return {labels["alertname"] for expected in self.expected.values() for labels in expected}


def firing(labels: Labels, job: str) -> str:
    every = {"instance": "db1", "job": job, "alertstate": "firing"} | labels
    return "ALERTS{" + ", ".join(f'{key}="{value}"' for key, value in every.items()) + "}"


def alert(name: str, severity: str, **labels: str) -> Labels:
    return {"alertname": name, "severity": severity, **labels}


def held(name: str, values: list[str], began: int, step: int, end_minutes: int) -> str:
    if TIMES in name:
        values = [one if one == "_" else f"{float(one) - began:.3f}" for one in values]
    known = [one for one in values if one != "_"]
    seconds = end_minutes * 60
    if name.startswith(FORECAST):
        seconds = min(seconds, FORECAST_SECONDS)
    count = seconds // step + 1
    return " ".join([*values, f"{known[-1]}+0x{count}"] if known else values)


def recorded(name: str, expected: Expected) -> State:
    made = recordings.read()[name]
    step = made["step_seconds"]
    series = {
        key: held(key, values.split(), made["began"], step, max(expected)) for key, values in made["series"].items()
    }
    return State(name, step, series, made["samples"] * step, expected)


def written(name: str, series: dict[str, str], expected: Expected) -> State:
    """A state with one written value each minute. The exporter answers all the time."""
    whole = {f"up{{{INSIDE}}}": f"1x{max(expected)}"}
    for key, values in series.items():
        metric, _, labels = key.partition("{")
        inside = f"{labels.rstrip('}')},{INSIDE}" if labels else INSIDE
        prefix = "" if metric in OF_EXPORTERS else "mysql_memdiag_"
        whole[f"{prefix}{metric}{{{inside}}}"] = values
    return State(name, 60, whole, 0, expected)


def ledger(component: str, name: str = "", state: str = "live") -> str:
    named = f',name="{name}"' if name else ""
    return f'ledger_resident_bytes{{component="{component}"{named},state="{state}"}}'


GENERAL = ledger("pool", "general")
SESSION = ledger("pool", "session")
BUFFER_POOL = ledger("buffer_pool", state="clean pages")
ANONYMOUS = ledger("anonymous", state="not of the allocator")
REACHES = alert("MemdiagReachesLimit", "critical")
GROWS = alert("MemdiagGrowsTowardsLimit", "warning")
POOL_GROWTH = alert("MemdiagPoolGrowth", "warning", subsystem="session")
NEAR = alert("MemdiagNearLimit", "critical", of="cgroup")
NEAR_MACHINE = NEAR | {"of": "machine"}
CRITICAL = alert("MemdiagCriticalAdvice", "critical", subsystem="cgroup", verdict="host")
CRITICAL_GROWTH = CRITICAL | {"subsystem": "server"}
UNEXPLAINED = alert("MemdiagUnexplainedGrowth", "warning")
PRESSURE = alert("MemdiagPressure", "warning")
NO_METRICS = alert("MemdiagNoMetrics", "warning")
UNUSED = alert("MemdiagUnusedPagesKept", "info")
FRAGMENTATION = alert("MemdiagFragmentation", "warning", pool="session")
SURVIVORS = alert("MemdiagSurvivors", "warning", pool="statement", scope="statement")
BACKOFF = alert("MemdiagPurgeBackoff", "info", pool="session")
ENDED = alert("MemdiagCeilingEndedStatements", "warning")
WENT_ON = alert("MemdiagCeilingWentOn", "warning")
POOL_TOO_LARGE = alert("MemdiagCeilingPoolTooLarge", "warning")
CEILING_UNKNOWN = alert("MemdiagCeilingUnknown", "warning")
KILLED = alert(
    "MemdiagLastRunKilled",
    "warning",
    largest_pool="session",
    grown_pool="session",
    digest="2bad508d34e2c6f3e5e6aef41d17d582aa1eb1cbe618e61b603997632dd7a716",
)


def of_recordings() -> Iterator[State]:
    yield recorded("idle", {0: [], 35: []})
    yield recorded("unused_pages", {5: [], 20: [UNUSED]})
    yield recorded("fragmentation", {5: [], 20: [], 35: [FRAGMENTATION]})
    yield recorded("survivors", {5: [], 20: [SURVIVORS, POOL_GROWTH | {"subsystem": "statement"}]})
    yield recorded("backoff", {5: [], 12: [], 35: [BACKOFF]})
    yield recorded(
        "growth",
        {
            -14: [CRITICAL_GROWTH],
            -8: [CRITICAL_GROWTH],
            0: [POOL_GROWTH, REACHES, CRITICAL_GROWTH],
            15: [POOL_GROWTH, CRITICAL_GROWTH, BACKOFF, BACKOFF | {"pool": "temp_table"}],
        },
    )
    yield recorded("near_limit", {4: [NEAR], 10: [NEAR, CRITICAL]})
    yield recorded("killed", {1: [KILLED], 10: [KILLED]})


def of_writing() -> Iterator[State]:
    # Growth of 1 MB each minute would take hours to record.
    yield written(
        "slow_growth",
        {
            SESSION: "400000000+1000000x120",
            "process_resident_bytes": "400000000+1000000x120",
            "process_limit_bytes": "1000000000x120",
            "process_until_limit_seconds": "36000-60x120",
        },
        {65: [], 90: [GROWS]},
    )
    yield written(
        "very_slow_growth",
        {
            SESSION: "400000000+100000x100",
            "process_resident_bytes": "400000000+100000x100",
            "process_limit_bytes": "1000000000x100",
            "process_until_limit_seconds": "360000-60x100",
        },
        {100: []},
    )
    # Others have the rest of the machine, or of the control group: this process alone would have hours.
    for what, left in (("machine", "host_available_bytes"), ("group", "host_room_bytes")):
        yield written(
            f"others_use_the_rest_of_the_{what}",
            {
                SESSION: "4000000000+200000000x40",
                "process_resident_bytes": "4000000000+200000000x40",
                "process_limit_bytes": "64000000000x40",
                "process_until_limit_seconds": "5400-60x40",
                left: "18000000000-200000000x40",
            },
            {5: [], 30: [], 35: [REACHES]},
        )
    # A single step of 400 MB is no growth, although for 15 minutes the server's line leads to the limit.
    yield written(
        "one_step",
        {
            SESSION: "400000000x60 800000000x40",
            "process_resident_bytes": "400000000x60 800000000x40",
            "process_limit_bytes": "1000000000x100",
            "process_until_limit_seconds": "_x60 300x15 _x25",
        },
        {62: [], 68: [], 75: [], 100: []},
    )
    # A growing buffer pool is none, either.
    yield written(
        "warm_up",
        {
            BUFFER_POOL: "0+5000000x100",
            GENERAL: "400000000x100",
            "process_resident_bytes": "400000000+5000000x100",
            "process_limit_bytes": "1000000000x100",
            "process_until_limit_seconds": "3000x100",
        },
        {20: [], 100: []},
    )
    # In this build, nothing takes so much outside of pools and regions.
    yield written(
        "unexplained", {ANONYMOUS: "0x60 0+4194304x60", GENERAL: "400000000x120"}, {70: [], 85: [], 120: [UNEXPLAINED]}
    )
    # This machine does not swap.
    yield written(
        "pressure", {GENERAL: "400000000x20", "host_stalled_seconds_total": "0+12x20"}, {3: [], 20: [PRESSURE]}
    )
    yield written("little_pressure", {GENERAL: "400000000x20", "host_stalled_seconds_total": "0+0.6x20"}, {20: []})
    # A control group with a generous limit, on a machine without memory.
    yield written(
        "machine_is_full",
        {
            GENERAL: "400000000x20",
            "host_limit_bytes": "60000000000x20",
            "host_room_limit_bytes": "60000000000x20",
            "host_room_bytes": "20000000000x20",
            "host_memory_bytes": "64000000000x20",
            "host_available_bytes": "32000000000x5 300000000x15",
        },
        {4: [], 7: [], 20: [NEAR_MACHINE]},
    )
    # Others fill a group above the one with the lowest limit.
    yield written(
        "group_above_is_full",
        {
            GENERAL: "400000000x20",
            "host_limit_bytes": "4000000000x20",
            "host_room_limit_bytes": "4000000000x5 512000000000x15",
            "host_room_bytes": "3000000000x5 1000000000x15",
            "host_memory_bytes": "1024000000000x20",
            "host_available_bytes": "300000000000x20",
        },
        {4: [], 7: [], 20: [NEAR]},
    )
    # The ceiling is at work: there is nothing to do before statements wait.
    yield written(
        "full_below_the_ceiling",
        {
            GENERAL: "400000000x20",
            "ceiling_level": "1x20",
            "ceiling_target_bytes": "950000000x20",
            "host_limit_bytes": "1000000000x20",
            "host_room_limit_bytes": "1000000000x20",
            "host_room_bytes": "60000000x20",
            "host_memory_bytes": "1024000000000x20",
            "host_available_bytes": "300000000000x20",
        },
        {5: [], 20: []},
    )
    # The ceiling keeps a target of the user's, and others of the group use the rest.
    yield written(
        "full_above_the_ceiling",
        {
            GENERAL: "400000000x20",
            "ceiling_level": "1x20",
            "ceiling_target_bytes": "500000000x20",
            "host_limit_bytes": "1000000000x20",
            "host_room_limit_bytes": "1000000000x20",
            "host_room_bytes": "500000000x5 60000000x15",
            "host_memory_bytes": "1024000000000x20",
            "host_available_bytes": "300000000000x20",
        },
        {4: [], 7: [], 20: [NEAR]},
    )
    # A critical finding of a rule for which there is no other alert.
    yield written(
        "critical_advice",
        {
            GENERAL: "400000000x20",
            'advice_findings{severity="critical",subsystem="session",verdict="new"}': "_x5 1x15",
            'advice_findings{severity="warning",subsystem="general",verdict="new"}': "1x20",
        },
        {4: [], 9: [], 20: [CRITICAL | {"subsystem": "session", "verdict": "new"}]},
    )
    yield written(
        "last_run_was_shut_down",
        {GENERAL: "400000000x5", "last_run_killed": "0x5", "last_run_ended_timestamp_seconds": "0x5"},
        {5: []},
    )
    # Three days after its end.
    yield written(
        "killed_long_ago",
        {GENERAL: "400000000x5", "last_run_killed": "1x5", "last_run_ended_timestamp_seconds": "-259200x5"},
        {5: []},
    )
    for what, ended, refused in (("ended", "0x10 1x30", "0x40"), ("refused", "7x40", "2x10 5x30")):
        yield written(
            f"ceiling_{what}",
            {GENERAL: "400000000x40", "ceiling_ended_total": ended, "ceiling_refused_total": refused},
            {5: [], 12: [ENDED], 25: []},
        )
    yield written(
        "ceiling_went_on",
        {GENERAL: "400000000x90", "ceiling_went_on_total": "4x10 5x80"},
        {5: [], 12: [WENT_ON], 60: [WENT_ON], 80: []},
    )
    # The load of half an hour takes frames, and they come back.
    yield written(
        "ceiling_parks",
        {GENERAL: "400000000x120", "ceiling_parked_bytes": "0x10 600000000x30 0x10 600000000x70"},
        {30: [], 60: [], 100: [], 115: [POOL_TOO_LARGE]},
    )
    yield written("ceiling_parks_little", {GENERAL: "400000000x90", "ceiling_parked_bytes": "60000000x90"}, {90: []})
    yield written(
        "ceiling_knows_nothing",
        {GENERAL: "400000000x30", "host_limit_bytes": "4000000000x30", "ceiling_level": "1x10 0x20"},
        {5: [], 13: [], 20: [CEILING_UNKNOWN]},
    )
    # AUTO does nothing where there is no limit.
    yield written("ceiling_without_limit", {GENERAL: "400000000x30", "ceiling_level": "0x30"}, {30: []})
    yield written("no_metrics", {}, {2: [], 20: [NO_METRICS]})
    # Debian's exporter repeats the last figures.
    yield written(
        "server_is_down",
        {GENERAL: "400000000x40", 'sql_exporter_last_scrape_failed{query="mysql_memdiag_pool"}': "0x20 1x20"},
        {20: [], 23: [], 40: [NO_METRICS]},
    )


# They read what the meter lacks.
NOT_OF_OTLP = {
    "MemdiagPressure",
    "MemdiagPoolGrowth",
    "MemdiagCriticalAdvice",
    "MemdiagSurvivors",
    "MemdiagLastRunKilled",
    "MemdiagNoMetrics",
}


def by_otlp(state: State) -> State:
    """The same state by the meter mysql.memdiag."""
    names = meter.metric_names()
    series = {
        name.replace(f'job="{JOB}"', f'job="{meter.JOB}"'): values
        for name, values in state.series.items()
        if name.partition("{")[0] in names
    }
    expected = {
        minutes: [labels for labels in alerts if labels["alertname"] not in NOT_OF_OTLP]
        for minutes, alerts in state.expected.items()
    }
    return replace(state, name=f"{state.name}, by OpenTelemetry", series=series, expected=expected, job=meter.JOB)


def states() -> list[State]:
    return [*of_recordings(), *of_writing()]
