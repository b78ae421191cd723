"""The workloads of bench/run.py: memory problems that MySQL's users report, one small file each. And those of
bench/peaks.py alone: POISON, single statements."""

from collections.abc import Sequence

from bench.workloads import poison
from bench.workloads.base import Workload
from bench.workloads.connection_storm import ConnectionStorm
from bench.workloads.dump_oltp import DumpOltp
from bench.workloads.fk_cascade import ForeignKeyCascade
from bench.workloads.online_ddl import OnlineDdl
from bench.workloads.partitions import Partitions
from bench.workloads.phrase_burst import PhraseBurst
from bench.workloads.range_optimizer import RangeOptimizer
from bench.workloads.read_buffer import ReadBuffer2M, ReadBuffer256K
from bench.workloads.replica_rows import ReplicaRows
from bench.workloads.sysbench import PointSelect, ReadOnly, ReadWrite
from bench.workloads.triggers import Triggers
from harness.problem import Problem

WORKLOADS: dict[str, type[Workload]] = {
    workload.name: workload
    for workload in (
        PhraseBurst,
        ConnectionStorm,
        Triggers,
        Partitions,
        ForeignKeyCascade,
        RangeOptimizer,
        OnlineDdl,
        DumpOltp,
        ReadBuffer256K,
        ReadBuffer2M,
        ReplicaRows,
        PointSelect,
        ReadOnly,
        ReadWrite,
    )
}

POISON: dict[str, type[Workload]] = {workload.name: workload for workload in poison.CASES}
EVERY = WORKLOADS | POISON


def chosen(names: Sequence[str]) -> list[Workload]:
    """With the sizes that they have by default."""
    if unknown := [name for name in names if name not in EVERY]:
        raise Problem(f"unknown workload '{unknown[0]}'; there are: {', '.join(EVERY)}")
    return [EVERY[name]() for name in names]
