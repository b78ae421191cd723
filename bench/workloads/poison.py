"""Statements that people publish as killers of mysqld: few sessions, each with a statement of much memory."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from bench.workloads.base import Load, Workload, insert_rows
from harness import burst
from harness.server import Server
from harness.sql import Connection

MIB = 1 << 20
ROWS = 1_000_000
LIST = 100_000
DATABASE = "poison"


@dataclass(frozen=True)
class Poison(Workload):
    """Sessions that each run the same few statements once. All cases have the same data."""

    unit = "statements"
    folder = DATABASE
    # Sessions of the last load: they stay connected while the server idles.
    _sessions: ClassVar[list[Connection]] = []

    clients: int = 1

    def mysqld_options(self) -> tuple[str, ...]:
        return (*super().mysqld_options(), "--max-allowed-packet=256M", "--secure-file-priv=")

    def fill(self, server: Server) -> None:
        with server.connect(DATABASE) as session:
            session.query("CREATE TABLE things (id INT PRIMARY KEY, note VARCHAR(70) NOT NULL)")
            insert_rows(session, "things", ROWS, "i, CONCAT(SHA2(i, 224), i)")
            session.query("CREATE TABLE few AS SELECT * FROM things WHERE id <= 100")
            session.query("ANALYZE TABLE things, few")
            session.query("CREATE TABLE json_rows (doc JSON)")
            session.query("CREATE TABLE blobs (id INT, body LONGBLOB)")

    def statements(self, server: Server, number: int) -> Iterator[str]:
        """Of a session."""
        raise NotImplementedError

    def load(self, server: Server) -> Load:
        while self._sessions:
            self._sessions.pop().close()

        def steps(number: int) -> Iterator[int]:
            session = server.connect(DATABASE)
            self._sessions.append(session)
            yield 0
            for text in self.statements(server, number):
                yield len(session.query(text).rows)

        return Load.of(burst.crowd(steps, self.clients))


@dataclass(frozen=True)
class JsonRow25(Poison):
    name = "json_row_25"
    shows = "one row as Vitess writes it: a text of 25 MB, half a million calls of JSON functions (its issue 19915)"

    mib: int = 25

    def statements(self, server: Server, number: int) -> Iterator[str]:
        name = "JSON_QUOTE(_utf8mb4'a short string of the row, number {0:07}')"
        each = f"JSON_OBJECT(_utf8mb4'id',{{0:07}},_utf8mb4'name',CAST({name} AS JSON))".format
        count = self.mib * MIB // (len(each(0)) + 1)
        yield f"INSERT INTO json_rows VALUES (JSON_ARRAY({','.join(map(each, range(10**6, 10**6 + count)))}))"


@dataclass(frozen=True)
class JsonRow47(JsonRow25):
    name = "json_row_47"
    shows = "the same with 47 MB and a million calls"

    mib: int = 47


def _some_numbers() -> list[int]:
    chooser = random.Random(1)
    return [chooser.randrange(2 * ROWS) for _ in range(LIST)]


@dataclass(frozen=True)
class InLists(Poison):
    name = "in_lists"
    shows = "EXPLAIN and execution of IN lists of 100,000 numbers, alone and in a join (MySQL bug 120574)"

    def statements(self, server: Server, number: int) -> Iterator[str]:
        some = ",".join(map(str, _some_numbers()))
        for what in ("EXPLAIN ", ""):
            yield f"{what}SELECT COUNT(*) FROM things WHERE id IN ({some})"
            yield f"{what}SELECT COUNT(*) FROM things AS a JOIN things AS b USING (id) WHERE a.id IN ({some})"


@dataclass(frozen=True)
class OrTrees(Poison):
    name = "or_trees"
    shows = "the same of OR trees; those that are executed read few rows"

    def statements(self, server: Server, number: int) -> Iterator[str]:
        some = " OR ".join(f"a.id = {each}" for each in _some_numbers())
        for what, table in (("EXPLAIN ", "things"), ("", "few")):
            yield f"{what}SELECT COUNT(*) FROM {table} AS a WHERE {some}"
            yield f"{what}SELECT COUNT(*) FROM {table} AS a JOIN {table} AS b USING (id) WHERE {some}"


@dataclass(frozen=True)
class Blobs(Poison):
    name = "blobs"
    shows = "INSERT of blobs of 64 MB in 8 sessions, which then idle"

    clients: int = 8
    mib: int = 64

    def statements(self, server: Server, number: int) -> Iterator[str]:
        yield f"INSERT INTO blobs VALUES ({number}, '{'b' * (self.mib * MIB)}')"
        yield "SELECT 1"


@dataclass(frozen=True)
class LoadData(Blobs):
    name = "load_data"
    shows = "the same with LOAD DATA"

    def load(self, server: Server) -> Load:
        (server.folder / "blob.txt").write_text("b" * (self.mib * MIB) + "\n")
        return super().load(server)

    def statements(self, server: Server, number: int) -> Iterator[str]:
        yield f"LOAD DATA INFILE '{server.folder}/blob.txt' INTO TABLE blobs (body) SET id = {number}"
        yield "SELECT 1"


def fixed(name: str, shows: str, *texts: str) -> type[Poison]:
    """Each session runs these statements."""
    members = {"name": name, "shows": shows, "statements": lambda *_: iter(texts), "__module__": __name__}
    return dataclass(frozen=True)(type(name, (Poison,), members))


_ONE = '{"id":123456,"name":"a short string"}'
_DOCUMENT = f"CONCAT('[', REPEAT('{_ONE},', {ROWS - 1}), '{_ONE}]')"

CASES: tuple[type[Poison], ...] = (
    JsonRow25,
    JsonRow47,
    InLists,
    OrTrees,
    fixed(
        "json_arrayagg",
        "JSON_ARRAYAGG over a million rows",
        "SELECT LENGTH(JSON_ARRAYAGG(JSON_OBJECT('id', id, 'note', note))) FROM things",
    ),
    fixed(
        "json_table",
        "JSON_TABLE with a million rows",
        f"SELECT COUNT(*), SUM(id), MAX(name) FROM JSON_TABLE({_DOCUMENT}, '$[*]'"
        " COLUMNS (id INT PATH '$.id', name VARCHAR(40) PATH '$.name')) AS t",
    ),
    fixed(
        "group_concat",
        "GROUP_CONCAT with ORDER BY over a million rows",
        "SET group_concat_max_len = 1 << 30",
        "SELECT LENGTH(GROUP_CONCAT(note ORDER BY note)) FROM things",
    ),
    fixed(
        "recursive_cte",
        "a recursive common table expression of a million rows",
        f"SET cte_max_recursion_depth = {ROWS}",
        f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT SUM(i) FROM n",
    ),
    fixed(
        "windows",
        "window functions over a partition of a million rows",
        "SELECT SUM(s), MAX(l), MAX(t) FROM (SELECT SUM(id) OVER w AS s, LAST_VALUE(note) OVER w AS l,"
        " NTILE(7) OVER (ORDER BY note) AS t FROM things WINDOW w AS"
        " (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) AS o",
    ),
    Blobs,
    LoadData,
)
