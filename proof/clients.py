"""Clients that know what the server has acknowledged, for kills.py.

A client has one transaction or statement on its way at most. After the server's end its rows are those before that
one or those after it, and nothing else; those after it where the server acknowledged it.
"""

import random
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.server import Server
from harness.sql import Connection, ConnectionLost, SqlError

DATABASE = "kills"
WRITERS = 6
# A table with full text for each writer. Where two transactions fill one such table and the later one commits first,
# stock itself loses words of the other at a kill: it goes on after the highest document that was written.
DOCS = tuple(f"docs{number}" for number in range(WRITERS))
SHARED = ("plain", "parts")
MOST_ROWS = 240  # of a client
# A client gives up its statement and goes on: DDL of another one (1412, 1146, 1205, 1213, 1054, 1526, 3024), KILL and
# the ceiling (1317, 3170), and no room in the log of an online ALTER TABLE (1799).
EXPECTED = frozenset((1054, 1146, 1205, 1213, 1317, 1412, 1526, 1799, 3024, 3170))

Rows = dict[tuple[str, int], int]  # (table, number): version

SCHEMA = (
    f"CREATE DATABASE {DATABASE}",
    f"CREATE TABLE {DATABASE}.plain (client INT, number INT, version INT, body TEXT, PRIMARY KEY (client, number),"
    " KEY (version), KEY (body(20)))",
    *(
        f"CREATE TABLE {DATABASE}.{docs} (client INT, number INT, version INT, body TEXT, PRIMARY KEY (client, number),"
        " FULLTEXT (body))"
        for docs in DOCS
    ),
    f"CREATE TABLE {DATABASE}.parts (client INT, number INT, version INT, body TEXT, PRIMARY KEY (client, number),"
    " KEY (version)) PARTITION BY HASH (number) PARTITIONS 3",
)


def word(client: int, number: int, version: int) -> str:
    """No other row has it."""
    return f"w{client}x{number}v{version}z"


def body(client: int, number: int, version: int) -> str:
    return f"{word(client, number, version)} lorem ipsum " + "text " * (number * 7 % 90)


@dataclass
class Lost(Exception):
    """The server has other rows than it acknowledged."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass
class Tally:
    """Of one client."""

    acknowledged: int = 0
    words: int = 0
    words_lost: int = 0
    errors: Counter[int] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)

    def error(self, error: SqlError) -> None:
        self.errors[error.code] += 1
        if error.code not in EXPECTED:
            self.unexpected.append(str(error)[:300])


class Client:
    """Has a session during each run, and its knowledge over all of them. One thread uses it at a time."""

    def __init__(self, number: int, seed: int) -> None:
        self.number = number
        self.dice = random.Random(f"{seed}/{number}")
        self.tally = Tally()

    def run(self, server: Server, stop: threading.Event) -> None:
        """Until the server has gone, or stop is set."""
        try:
            with server.connect(DATABASE, timeout=60) as session:
                session.query("SET SESSION innodb_lock_wait_timeout = 2, lock_wait_timeout = 5")
                while not stop.is_set():
                    try:
                        self.step(session)
                    except SqlError as error:
                        self.tally.error(error)
                        self.undone(session)
        except (ConnectionLost, OSError):
            pass
        except Exception as error:
            self.tally.unexpected.append(repr(error)[:300])  # a thread has nobody else to tell

    def step(self, session: Connection) -> None:
        raise NotImplementedError

    def undone(self, session: Connection) -> None:
        """The server refused the statement, and has the state before it."""

    def verify(self, session: Connection) -> None:
        """Raises Lost. Afterwards the client knows which of the two states it was."""


class Writer(Client):
    """Inserts, changes and deletes its own rows in all tables, in transactions of all kinds."""

    def __init__(self, number: int, seed: int) -> None:
        super().__init__(number, seed)
        self.docs = DOCS[number]
        self.places = (*SHARED, self.docs)
        self.rows: Rows = {}
        self.after: Rows | None = None  # those of a commit on its way
        self.xid = ""
        self.prepared = False
        self.last = 0

    def step(self, session: Connection) -> None:
        if self.dice.random() < 0.2:
            self._search(session)
        rows = dict(self.rows)
        self.xid = f"x{self.number}_{self.last}" if self.dice.random() < 0.15 else ""
        self.prepared = False
        session.query(f"XA START '{self.xid}'" if self.xid else "BEGIN")
        for _ in range(self.dice.randint(1, 5)):
            self._change(session, rows)
            if not self.xid and self.dice.random() < 0.1:
                session.query("SAVEPOINT s")
                self._change(session, dict(rows))
                session.query("ROLLBACK TO s")
        if self.xid:
            session.query(f"XA END '{self.xid}'")
            self.after = rows
            session.query(f"XA PREPARE '{self.xid}'")
            self.prepared = True
            session.query(f"XA COMMIT '{self.xid}'")
        elif self.dice.random() < 0.1:
            session.query("ROLLBACK")
            return
        else:
            self.after = rows
            session.query("COMMIT")
        self.rows, self.after, self.xid = rows, None, ""
        self.tally.acknowledged += 1

    def _change(self, session: Connection, rows: Rows) -> None:
        table = self.dice.choice(self.places)
        mine = [key for key in rows if key[0] == table]
        kind = self.dice.random()
        if mine and kind < 0.25:
            key = self.dice.choice(mine)
            rows[key] += 1
            text = body(self.number, key[1], rows[key])
            session.query(
                f"UPDATE {table} SET version = {rows[key]}, body = '{text}'"
                f" WHERE client = {self.number} AND number = {key[1]}"
            )
        elif mine and (kind < 0.4 or len(rows) > MOST_ROWS):
            highest = self.dice.choice(mine[: len(mine) // 2 + 1])[1]
            session.query(f"DELETE FROM {table} WHERE client = {self.number} AND number <= {highest}")
            for key in [key for key in mine if key[1] <= highest]:
                del rows[key]
        else:
            numbers = range(self.last + 1, self.last + 1 + self.dice.choice((1, 1, 3)))
            self.last = numbers[-1]
            values = ", ".join(f"({self.number}, {each}, 1, '{body(self.number, each, 1)}')" for each in numbers)
            session.query(f"INSERT INTO {table} (client, number, version, body) VALUES {values}")
            rows.update({(table, each): 1 for each in numbers})

    def undone(self, session: Connection) -> None:
        if self.after is not None:
            # COMMIT itself was refused: the server says which state it is.
            self.tally.unexpected.append("an error instead of a commit")
        if self.xid:
            for words in (f"XA END '{self.xid}'", f"XA ROLLBACK '{self.xid}'"):
                try:
                    session.query(words)
                except SqlError as error:
                    self.tally.errors[error.code] += 1
        session.query("ROLLBACK")
        self.xid, self.after = "", None

    def verify(self, session: Connection) -> None:
        self._settle_xa(session)
        found: Rows = {}
        for table in self.places:
            rows = session.query(f"SELECT number, version, body FROM {table} WHERE client = {self.number}").rows
            for number, version, text in rows:
                found[table, int(number or 0)] = int(version or 0)
                if text != body(self.number, int(number or 0), int(version or 0)):
                    raise Lost(f"{table}: row {self.number}, {number} has another text: {str(text)[:60]!r}")
        if found != self.rows and (self.after is None or found != self.after):
            raise Lost(f"client {self.number}: {_difference(self.rows, self.after, found)}")
        self.rows, self.after, self.xid, self.prepared = found, None, "", False
        self._index(session)

    def _settle_xa(self, session: Connection) -> None:
        if not self.xid:
            return
        there = any(row[3] == self.xid for row in session.query("XA RECOVER").rows)
        if there:
            commit = self.dice.random() < 0.5
            session.query(f"XA {'COMMIT' if commit else 'ROLLBACK'} '{self.xid}'")
            if commit and self.after is not None:
                self.rows = self.after
            self.after = None
        elif self.prepared and self.after is not None:
            self.rows, self.after = self.after, None  # only its commit can have taken it away

    def _index(self, session: Connection) -> None:
        """Counts rows that the index does not have any more, which a kill does on stock as well, and deletes them."""
        lost = [number for place, number in self.rows if place == self.docs and not self._is_found(session, number)]
        self.tally.words += sum(place == self.docs for place, _ in self.rows)
        self.tally.words_lost += len(lost)
        if lost:
            numbers = ", ".join(map(str, lost))
            session.query(f"DELETE FROM {self.docs} WHERE client = {self.number} AND number IN ({numbers})")
            self.rows = {key: self.rows[key] for key in self.rows if key[0] != self.docs or key[1] not in lost}

    def _is_found(self, session: Connection, number: int) -> bool:
        words = f"MATCH (body) AGAINST ('{word(self.number, number, self.rows[self.docs, number])}' IN BOOLEAN MODE)"
        found = session.query(f"SELECT client, number FROM {self.docs} WHERE {words}").rows
        return found == [(str(self.number), str(number))]

    def _search(self, session: Connection) -> None:
        """While the server runs; a new row may have got the number of a document that was deleted before a kill."""
        mine = [number for place, number in self.rows if place == self.docs]
        for number in self.dice.sample(mine, min(1, len(mine))):
            self.tally.words += 1
            self.tally.words_lost += not self._is_found(session, number)


def _difference(before: Rows, after: Rows | None, found: Rows) -> str:
    near = (
        before if after is None else min((before, after), key=lambda rows: len(set(rows.items()) ^ set(found.items())))
    )
    lost = sorted(set(near.items()) - set(found.items()))
    more = sorted(set(found.items()) - set(near.items()))
    return f"{len(lost)} acknowledged rows are lost {lost[:5]}, {len(more)} were not acknowledged {more[:5]}"


class Definer(Client):
    """Changes the writers' tables, and makes and drops tables of its own, of which it knows the rows."""

    OPTIONS = ("ALGORITHM = INSTANT", "ALGORITHM = INPLACE", "ALGORITHM = COPY", "")

    def __init__(self, number: int, seed: int) -> None:
        super().__init__(number, seed)
        self.tables: dict[str, int] = {}
        self.after: dict[str, int] | None = None
        self.last = 0

    def step(self, session: Connection) -> None:
        if self.dice.random() < 0.5:
            self._of_writers(session)
        else:
            self._of_its_own(session)
        self.tally.acknowledged += 1

    def _of_writers(self, session: Connection) -> None:
        table = self.dice.choice((*SHARED, *SHARED, *DOCS))
        option = self.dice.choice(self.OPTIONS)
        ways = [
            f"ADD COLUMN extra{self.dice.randint(1, 3)} INT DEFAULT 7",
            f"DROP COLUMN extra{self.dice.randint(1, 3)}",
            f"ADD INDEX more{self.dice.randint(1, 2)} (version, number)",
            f"DROP INDEX more{self.dice.randint(1, 2)}",
            "FORCE",
            "ENGINE = InnoDB",
        ]
        if table in DOCS:
            ways += ["ADD FULLTEXT again (body)", "DROP INDEX again", "DROP INDEX body, ADD FULLTEXT body (body)"]
        if table == "parts":
            ways += ["ADD PARTITION PARTITIONS 1", "COALESCE PARTITION 1"]
            option = ""
        way = self.dice.choice(ways)
        try:
            if self.dice.random() < 0.1:
                session.query(f"OPTIMIZE TABLE {table}")
            else:
                session.query(f"ALTER TABLE {table} {way}" + (f", {option}" if option else ""))
        except SqlError as error:
            # It is there already, or not there, or not by this algorithm.
            if error.code not in (1060, 1061, 1091, 1845, 1846, 1508, 1510, 1512, 1515, 4092):
                raise

    def _of_its_own(self, session: Connection) -> None:
        after = dict(self.tables)
        name = self.dice.choice(list(after)) if after else ""
        way = self.dice.random()
        self.last += 1
        new = f"own{self.number}_{self.last}"
        if not name or (way < 0.4 and len(after) < 12):
            rows = self.dice.randint(0, 50)
            after[new] = rows
            words = (
                f"CREATE TABLE {new} (id INT PRIMARY KEY, b TEXT, FULLTEXT (b)) AS WITH RECURSIVE n AS (SELECT 1 AS id"
                f" UNION ALL SELECT id + 1 FROM n WHERE id < {rows}) SELECT id, CONCAT('word', id) AS b FROM n"
                f" WHERE id <= {rows}"
            )
        elif way < 0.6:
            after[new] = after.pop(name)
            words = f"RENAME TABLE {name} TO {new}"
        elif way < 0.75:
            after[name] = 0
            words = f"TRUNCATE {name}"
        elif way < 0.85 and len(after) > 1:
            other, swap = next(each for each in after if each != name), f"own{self.number}_swap"
            after[name], after[other] = after[other], after[name]
            words = f"RENAME TABLE {name} TO {swap}, {other} TO {name}, {swap} TO {other}"
        else:
            del after[name]
            words = f"DROP TABLE {name}"
        self.after = after
        session.query(words)
        self.tables, self.after = after, None

    def undone(self, session: Connection) -> None:
        self.after = None

    def verify(self, session: Connection) -> None:
        names = [str(row[0]) for row in session.query(f"SHOW TABLES LIKE 'own{self.number}\\_%'").rows]
        found = {name: int(session.query(f"SELECT COUNT(*) FROM {name}").scalar() or 0) for name in names}
        if found != self.tables and (self.after is None or found != self.after):
            raise Lost(f"tables: acknowledged {self.tables}, on its way {self.after}, found {found}")
        self.tables, self.after = found, None


def total(clients: Iterable[Client]) -> Tally:
    result = Tally()
    for client in clients:
        result.acknowledged += client.tally.acknowledged
        result.words += client.tally.words
        result.words_lost += client.tally.words_lost
        result.errors += client.tally.errors
        result.unexpected += client.tally.unexpected
    return result
