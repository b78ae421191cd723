"""Settings of ours at random."""

import contextlib
import random

from harness.problem import Problem
from harness.sql import Connection, SqlError

# Of the pools that every policy takes.
POOLS = ("all", "statement", "session", "temp_table", "ddl", "transaction", "fts_query", "table_cache", "dictionary")
SWITCH = ("OFF", "ON")
PER_POOL: dict[str, tuple[str, ...]] = {
    "memdiag_quiet_ms": ("0", "10", "500", "60000"),
    "memdiag_dirty_decay_ms": ("-1", "0", "10", "1000"),
    "memdiag_muzzy_decay_ms": ("-1", "0", "1000"),
    "memdiag_dirty_limit": ("0", "64K", "1M", "64M"),
}
ANY_TIME: dict[str, tuple[str, ...]] = {
    "memdiag_scope_survivors": SWITCH,
    "memdiag_sessions": SWITCH,
    "memdiag_history_interval_ms": ("0", "5", "100", "1000"),
    "memdiag_profile": ("OFF", "ON", "RECORD"),
    "memdiag_profile_sample_bytes": ("4096", "65536", "524288"),
    "memdiag_profile_memory": ("2097152", "33554432"),
    # Below 200 MB it gives back, parks frames, and lets statements wait.
    "memdiag_memory_target": ("'OFF'", "'WATCH'", "'AUTO'", "'8G'", "'300M'", "'150M'", "'85M'"),
    "memdiag_memory_wait_ms": ("0", "10", "10000"),
}
AT_START: dict[str, tuple[str, ...]] = {
    "memdiag_history_samples": ("10", "3600"),
    "memdiag_disabled_pools": ("", "", "all", "statement", "session,temp_table", "connection", "innodb,transaction"),
    "memdiag_routes": ("", "", "memory/sql/NET=general", "mem_heap/row=statement", "memory/sql=session"),
}


def require_all(session: Connection) -> None:
    """A Problem where the server has a variable of ours that is not listed here, or lacks one that is."""
    found = {str(row[0]) for row in session.query("SHOW GLOBAL VARIABLES LIKE 'memdiag\\_%'").rows}
    other = found ^ {*PER_POOL, *ANY_TIME, *AT_START}
    if other:
        raise Problem(f"proof/settings.py and the server differ in {', '.join(sorted(other))}")


def at_start(dice: random.Random) -> list[str]:
    """Options of a server that starts; all others keep their defaults."""
    return [f"--{name.replace('_', '-')}={dice.choice(values)}" for name, values in AT_START.items()]


def one(dice: random.Random) -> tuple[str, str]:
    """Name and value, ready for SET."""
    name = dice.choice((*PER_POOL, *ANY_TIME))
    if name in ANY_TIME:
        return name, dice.choice(ANY_TIME[name])
    chosen = dice.sample(POOLS, dice.randint(0, 2))
    return name, "'" + ", ".join(f"{pool}={dice.choice(PER_POOL[name])}" for pool in chosen) + "'"


def read_or_purge(session: Connection, dice: random.Random, tables: list[str]) -> None:
    """What an operator does meanwhile. `tables`: as names() gives them."""
    if dice.random() < 0.5:
        session.query(f"SELECT memdiag_purge('{dice.choice(POOLS)}')")
    else:
        session.query(f"SELECT * FROM information_schema.{dice.choice(tables)}")


def change(session: Connection, dice: random.Random, count: int, verb: str = "SET GLOBAL") -> list[str]:
    """Changes so many at random.
    @return the statements that the server took"""
    taken = []
    for _ in range(count):
        name, value = one(dice)
        statement = f"{verb} {name} = {value}"
        # It refuses a pair of values that cannot be, and says so.
        with contextlib.suppress(SqlError):
            session.query(statement)
            taken.append(statement)
    return taken


def names(session: Connection) -> list[str]:
    """Of our tables."""
    words = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_NAME LIKE 'MEMDIAG\\_%' ORDER BY 1"
    return [str(row[0]) for row in session.query(words).rows]
