"""A library (cpu_shim.cc) that shows a server other processors than the machine has."""

import dataclasses
from dataclasses import dataclass

from bench.runner.arms import Arm
from harness.problem import Problem

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


def shimmed(arm: Arm, machine: Machine) -> Arm:
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


def chosen(names: str) -> list[Machine]:
    known = {machine.name: machine for machine in MACHINES}
    wanted = [name.strip() for name in names.split(";")]
    for name in wanted:
        if name not in known:
            raise Problem(f"no machine '{name}'; there are: {'; '.join(known)}")
    return [known[name] for name in wanted]
