#!/usr/bin/env python3
"""Checks the files that need no server: they are as their sources say, and alerts fire in their states (states.py)."""

import json
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from harness.checks import Checks, Failed
from harness.problem import run_main
from monitoring import programs, render, running
from monitoring.check import states

NAME = re.compile(r"\b(?:\w+:)?mysql_memdiag_\w+(?::\w+)?")


def named(text: str) -> set[str]:
    """The metrics and recorded series that expressions name. Values of labels are none."""
    return set(NAME.findall(re.sub(r'"[^"]*"', "", text)))


def expressions(value: object) -> str:
    """All texts below keys whose values are PromQL."""
    if isinstance(value, dict):
        return "\n".join(
            one if isinstance(one, str) and key in ("expr", "query") else expressions(one) for key, one in value.items()
        )
    if isinstance(value, list):
        return "\n".join(map(expressions, value))
    return ""


def names_exist(checks: Checks) -> None:
    mixin = json.loads(
        programs.run(
            "jsonnet",
            "-e",
            f"local m = import '{running.FOLDER}/mixin/mixin.libsonnet'; {{r: m.prometheusRules, a: m.prometheusAlerts}}",
        )
    )
    recorded = {rule["record"] for group in mixin["r"]["groups"] for rule in group["rules"]}
    known = recorded | running.metric_names()
    for what, part in (("recording rules", "r"), ("alerts", "a")):
        used = named(expressions(mixin[part]))
        checks.check(
            f"every name in the {what} is a metric or a recorded series",
            used and used <= known,
            sorted(used - known) or len(used),
        )
    unused = recorded - named(expressions(mixin["a"]) + expressions(mixin["r"]))
    checks.check("every recorded series is used", not unused, sorted(unused) or "")


# Wrong rules: for each alert that such a mutation changes, some test must fail.
MUTATIONS = {
    "removed": "[]",
    "without its delay": "[rule {'for': '0s'} for rule in rules({})]",
    "too strict": """rules({
      memdiagWorthBytes: 1e13, memdiagLargeRatio: 10, memdiagFragmentedRatio: 10, memdiagNearLimitRatio: 10,
      memdiagStalledRatio: 10, memdiagBackoff: 100, memdiagSoonSeconds: 1, memdiagLaterSeconds: 1,
      memdiagLastRunSeconds: -1e9 })""",
    "too loose": """rules({
      memdiagWorthBytes: 1, memdiagLargeRatio: 1e-6, memdiagFragmentedRatio: 1e-6, memdiagNearLimitRatio: 1e-6,
      memdiagStalledRatio: 0.0001, memdiagBackoff: 0, memdiagSoonSeconds: 1e7, memdiagLaterSeconds: 1e8,
      memdiagLastRunSeconds: 1e9 })""",
}


def rules_of(mutations: dict[str, str]) -> dict[str, dict[str, dict]]:
    """The alerts by their names, as shipped ("") and in each mutation."""
    text = f"""local mixin = import '{running.FOLDER}/mixin/mixin.libsonnet';
      local rules(config) = (mixin + {{ _config+:: config }}).prometheusAlerts.groups[0].rules;
      {{ '': rules({{}}), {", ".join(f"'{name}': {how}" for name, how in mutations.items())} }}"""
    made = json.loads(programs.run("jsonnet", "-e", text))
    return {name: {rule["alert"]: rule for rule in rules} for name, rules in made.items()}


def failing(file: Path, rules: list[Path], tests: list[dict]) -> tuple[set[str], str]:
    """The alerts whose tests fail with these rules, and promtool's messages."""
    file.write_text(json.dumps({"rule_files": list(map(str, rules)), "evaluation_interval": "1m", "tests": tests}))
    done = programs.start("promtool", "test", "rules", file)
    text = done.stdout + done.stderr
    found = set(re.findall(r'expr: "ALERTS\{alertname=\\"(\w+)\\"', text))
    if (done.returncode != 0) != bool(found):
        raise Failed(f"promtool: {text.strip()}")
    return found, text.strip()


def tested(checks: Checks) -> None:
    """promtool tests each state with the shipped rules, and all states with wrong rules."""
    shipped = [running.FOLDER / "prometheus" / name for name in ("memdiag_rules.yml", "memdiag_alerts.yml")]
    alerts = rules_of(MUTATIONS)
    every = states.states()
    fired = set().union(*(state.names() for state in every))
    checks.check(
        "every alert fires in some state", fired == alerts[""].keys(), sorted(fired ^ alerts[""].keys()) or len(fired)
    )
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "test.json"
        for state in every:
            for one in (state, states.by_otlp(state)):
                with checks.checking(f"alerts: {one.name}"):
                    _, text = failing(file, shipped, [one.test(alerts[""])])
                    if "FAILED" in text:
                        raise Failed(text)
        for mutation in MUTATIONS:
            wrong = alerts[mutation]
            changed = {name for name, rule in alerts[""].items() if differs(rule, wrong.get(name))}
            rules = Path(scratch) / "wrong.json"
            rules.write_text(json.dumps({"groups": [{"name": "wrong", "rules": list(wrong.values())}]}))
            with checks.checking(f"rules that are {mutation} fail a test each"):
                failed, _ = failing(file, [shipped[0], rules], [state.test(changed) for state in every])
                if missed := changed - failed:
                    raise Failed(f"no test notices {', '.join(sorted(missed))}")


def differs(rule: dict, wrong: dict | None) -> bool:
    return wrong is None or any(rule.get(key, "0s") != wrong.get(key, "0s") for key in ("expr", "for"))


def main() -> int:
    checks = Checks("rules")
    with checks.checking("jsonnet is formatted, and the files are as their sources say"):
        render.check()
    folder = running.FOLDER / "prometheus"
    with checks.checking("promtool accepts rules and configuration"):
        programs.run("promtool", "check", "rules", *folder.glob("memdiag_*.yml"))
        programs.run("promtool", "check", "config", "prometheus.yml", cwd=folder)
    names_exist(checks)
    tested(checks)
    return checks.finish()


if __name__ == "__main__":
    run_main("rules", main)
