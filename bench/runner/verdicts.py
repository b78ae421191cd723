"""The targets of the arm dev, for each workload by itself: ratios of medians within one run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.runner import report
from bench.runner.arms import ARMS

OURS = "dev"
IDLE_OURS = "idle_5"

Medians = Mapping[str, float | None]


@dataclass(frozen=True)
class Verdict:
    """`value` is None where it was not measured. `versus`: the arm that dev is compared with."""

    value: float | None
    reached: bool | None
    versus: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return "not measured"
        words = "reached" if self.reached else "NOT reached"
        return f"{self.value:.3g} {words}" + (f" ({self.versus})" if self.versus else "")


@dataclass(frozen=True)
class Target:
    title: str
    sense: str  # <= or >=
    bound: float
    ours: str
    # The figure of the other arms, of which the best counts. None: dev's own figure is the value.
    others: Callable[[Medians], str] | None = None

    def heading(self) -> str:
        return f"{self.title} {self.sense} {self.bound:g}"

    def judge(self, by_arm: Mapping[str, Medians]) -> Verdict:
        value = by_arm.get(OURS, {}).get(self.ours)
        versus = ""
        if value is not None and self.others:
            name = self.others(by_arm[OURS])
            known = {arm: base for arm, figures in by_arm.items() if not ARMS[arm].ours and (base := figures.get(name))}
            if not known:
                return Verdict(None, None)
            best = min if self.sense == "<=" else max
            versus = best(known, key=lambda arm: known[arm])
            value = report.ratio(value, known[versus])
        if value is None:
            return Verdict(None, None)
        reached = value <= self.bound if self.sense == "<=" else value >= self.bound
        return Verdict(value, reached, versus)


def last_idle(figures: Medians) -> str:
    moments = [key for key in figures if key.startswith("idle_")]
    return max(moments, key=lambda key: float(key.removeprefix("idle_")), default="")


TARGETS = (
    Target("RSS at 5 s / best other's at the end", "<=", 1, IDLE_OURS, last_idle),
    Target("peak / lowest other", "<=", 1, "peak", lambda _: "peak"),
    Target("throughput / best other", ">=", 0.98, "per_second", lambda _: "per_second"),
    Target("p99 / best other", "<=", 1.05, "p99_ms", lambda _: "p99_ms"),
    Target("named pools at the peak, %", ">=", 95, "named_peak"),
    Target("named pools after, %", ">=", 95, "named_after"),
    Target("unexplained by the ledger, %", "<=", 2, "unexplained_cheap"),
    Target("unexplained by the exact ledger, %", "<=", 0.5, "unexplained_exact"),
)


def table(rows: Sequence[tuple[str, Mapping[str, Medians]]]) -> str:
    """`rows`: a workload's name and the medians of its arms."""
    judged = [(name, [target.judge(arms) for target in TARGETS]) for name, arms in rows]
    known = [verdict.reached for _, verdicts in judged for verdict in verdicts if verdict.reached is not None]
    text = report.table(
        ["dev", *(target.heading() for target in TARGETS)], [[name, *map(str, verdicts)] for name, verdicts in judged]
    )
    return f"{sum(known)} of {len(known)} figures reached.\n\n{text}"
