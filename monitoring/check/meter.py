"""The meter mysql.memdiag as Prometheus sees it: names of metrics and the job, by the rules of OpenTelemetry."""

import re

from harness.common import ROOT

# component_telemetry calls itself so unless its resource attributes say otherwise.
JOB = "mysql/mysqld"


def job_of(resource: dict[str, str]) -> str:
    """The label `job` into which the specification translates a resource."""
    return "/".join(filter(None, (resource.get("service.namespace"), resource.get("service.name"))))


def documented() -> dict[str, tuple[str, str, set[str]]]:
    """Unit, kind and attributes of each metric in the reference."""
    page = (ROOT / "docs/reference.md").read_text()
    rows = re.findall(r"^\| (mysql\.memdiag\.\S+) \| (\S+) \| ([^|]+) \| ([^|]*)\|", page, re.M)
    return {
        name: (unit, kind.strip(), set(filter(None, attributes.replace(",", " ").split())))
        for name, unit, kind, attributes in rows
    }


def prometheus_name(name: str, unit: str, kind: str) -> str:
    """The name into which the specification of OpenTelemetry translates a metric."""
    suffix = {"By": "_bytes", "s": "_seconds", "By/s": "_bytes_per_second"}.get(unit, "")
    return name.replace(".", "_") + suffix + ("_total" if kind == "counter" else "")


def metric_names() -> set[str]:
    """The names of all metrics of the meter."""
    return {prometheus_name(name, unit, kind) for name, (unit, kind, _) in documented().items()}
