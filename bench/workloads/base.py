"""The base of all workloads: fields are the sizes that can be set, fill() loads data, load() puts a server under load."""

import hashlib
import inspect
import sys
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

from harness.burst import Burst
from harness.server import Server
from harness.sql import Connection

# The surroundings: the server as it is, with huge pages everywhere, and with a memory limit like a container's.
PLAIN, HUGE_PAGES, LIMIT = "plain", "huge-pages", "limit"


def digest(*code: Any) -> str:
    """Of the source of modules and functions."""
    source = "".join(map(inspect.getsource, code))
    return hashlib.sha256(source.encode()).hexdigest()[:16]


@dataclass
class Load:
    """The figures of a load; `extra` has those that only this workload has."""

    seconds: float
    count: int
    p99_ms: float
    extra: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, burst: Burst, count: int | None = None, **extra: float) -> Self:
        """`count`: given where the workload counts something else than the burst's steps."""
        return cls(burst.seconds, len(burst.latencies) if count is None else count, burst.latency(99) * 1000, extra)


@dataclass(frozen=True)
class Workload:
    name: ClassVar[str]  # of the workload, of its folder and of its database
    folder: ClassVar[str] = ""  # another name for the latter two: workloads may share their data
    shows: ClassVar[str]
    unit: ClassVar[str]  # counted in units per second
    options: ClassVar[tuple[str, ...]] = ()
    data: ClassVar[tuple[str, ...]] = ()  # the fields that the data depend on
    surroundings: ClassVar[tuple[str, ...]] = (PLAIN,)

    def mysqld_options(self) -> tuple[str, ...]:
        common = (
            "--innodb-buffer-pool-size=256M",
            # A buffer pool that loads itself would make the RSS at the start depend on the run before.
            "--innodb-buffer-pool-load-at-startup=OFF",
            "--innodb-buffer-pool-dump-at-shutdown=OFF",
            # This is about memory: the disk's syncs would only add noise.
            "--innodb-flush-log-at-trx-commit=2",
            "--disable-log-bin",
        )
        # A workload's own value takes the place of the common one.
        named = {option.partition("=")[0]: option for option in (*common, *self.options)}
        return tuple(named.values())

    def parameters(self) -> dict[str, object]:
        return asdict(self)

    def data_key(self) -> dict[str, object]:
        """Data prepared under another key are made again: other sizes, or another version of the code."""
        chosen = {name: getattr(self, name) for name in self.data}
        module = sys.modules[type(self).__module__]
        return {**chosen, "source": digest(module, insert_rows)}

    def fill(self, server: Server) -> None:
        """Load the data into a fresh server; its database exists."""
        raise NotImplementedError

    def renew(self, server: Server) -> None:
        """Between two loads of one server: make again what the load has used up."""

    def load(self, server: Server) -> Load:
        raise NotImplementedError


def insert_rows(session: Connection, table: str, count: int, columns: str) -> None:
    """Insert `count` rows, whose columns are expressions of i, which is 1 to count."""
    session.query(f"SET cte_max_recursion_depth = {count}")
    session.query(
        f"INSERT INTO {table} WITH RECURSIVE n (i) AS"
        f" (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
        f" SELECT {columns} FROM n"
    )
