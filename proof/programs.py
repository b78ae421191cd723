"""Programs of statements at random: tables, their data, queries, and everything that changes them."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from proof.expressions import KINDS, WORDS, Column, Queries, Scope, Table, scope_of

TEXTS = (
    "the quick brown fox jumps over the lazy dog",
    "database memory allocator gives pages back",
    "full text search finds the phrase lazy dog again",
    "brown bread and quick butter",
    "memory is not a leak until it outlives its owner",
    "a fox and a dog share one database",
    "pages pages pages",
)
ENUM = ("'alpha'", "'beta'", "'0'", "'-7'", "'12abc'")
# Of the session, at the begin of a program.
SESSION = (
    "SET sql_mode = DEFAULT",
    "SET sql_mode = 'ONLY_FULL_GROUP_BY'",
    "SET sql_mode = CONCAT(@@sql_mode, ',PIPES_AS_CONCAT,NO_UNSIGNED_SUBTRACTION')",
    "SET sql_mode = CONCAT(@@sql_mode, ',TIME_TRUNCATE_FRACTIONAL,NO_BACKSLASH_ESCAPES')",
    "SET SESSION sort_buffer_size = 32768, join_buffer_size = 128",
    "SET SESSION tmp_table_size = 1024, max_heap_table_size = 16384",
    "SET SESSION internal_tmp_mem_storage_engine = MEMORY",
    "SET SESSION optimizer_switch = 'hash_join=off,block_nested_loop=off'",
    "SET SESSION optimizer_switch = 'materialization=off,semijoin=off'",
    "SET SESSION optimizer_switch = 'derived_merge=off,subquery_to_derived=on'",
    "SET SESSION optimizer_switch = 'index_merge=off,mrr_cost_based=off,batched_key_access=on'",
    "SET SESSION group_concat_max_len = 20",
    "SET SESSION transaction_isolation = 'READ-COMMITTED'",
    "SET SESSION foreign_key_checks = 0",
    "SET SESSION div_precision_increment = 9",
    "SET SESSION time_zone = '+05:30'",
    "SET NAMES latin1",
)


@dataclass(frozen=True)
class Statement:
    text: str
    ordered: bool = False  # the order of its rows counts
    session: int = 0


def program(seed: str, statements: int) -> list[Statement]:
    """The same seed makes the same program. It has so many statements, or a few more."""
    return list(_Maker(random.Random(seed)).statements(statements))


Piece = Iterator[Statement]


class _Maker(Queries):
    def __init__(self, dice: random.Random) -> None:
        super().__init__(dice)
        self.count = 0
        self.prepared: list[tuple[str, str]] = []  # name, kinds of its parameters
        self.procedures: list[str] = []
        self.full_text: list[str] = []

    def statement_of(self, *texts: str) -> Statement:
        return Statement(self.one_of(*texts))

    def new(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def statements(self, least: int) -> Piece:
        yield Statement("SET timestamp = 1700000000, innodb_lock_wait_timeout = 1, lock_wait_timeout = 3")
        yield Statement("SET max_sp_recursion_depth = 9")
        for text in self.dice.sample(SESSION, self.dice.randint(0, 3)):
            yield Statement(text)
        made = 2
        for _ in range(self.dice.randint(2, 3)):
            for statement in self.table():
                made += 1
                yield statement
        pieces: tuple[tuple[int, Callable[[], Piece]], ...] = (
            (45, self.select),
            (14, self.change),
            (4, self.prepare),
            (5, self.procedure),
            (3, self.function),
            (3, self.trigger),
            (3, self.view),
            (4, self.transaction),
            (2, self.xa),
            (6, self.alter),
            (2, self.temporary),
            (2, self.partitioned),
            (2, self.locked),
            (3, self.shown),
            (1, self.key),
            (2, self.handler),
        )
        if self.dice.random() < 0.15:
            yield from self.full_text_table()
            pieces = (*pieces, (30, self.search))
        weights = [weight for weight, _ in pieces]
        while made < least:
            (_, make) = self.dice.choices(pieces, weights)[0]
            for statement in make():
                made += 1
                yield statement

    # Tables and data.

    def columns(self) -> list[Column]:
        made = [Column("id", "i", "INT PRIMARY KEY")]
        for kind in self.dice.choices("iidsstj", k=self.dice.randint(3, 7)):
            name = self.new(kind)
            definition = self.dice.choice(KINDS[kind])
            plain = definition not in ("JSON", "TEXT")
            if plain and self.dice.random() < 0.15:
                definition += " NOT NULL" if "NULL" not in definition else ""
            made.append(Column(name, kind, definition))
        if self.dice.random() < 0.3:
            scope = [(column.name, column.kind) for column in made if column.kind in "ij"]
            expression = self.dice.choice((f"{scope[0][0]} * 2 + 1", f"MOD({scope[-1][0]}, 7)", f"{scope[0][0]} % 3"))
            how = self.dice.choice(("VIRTUAL", "STORED"))
            made.append(Column(self.new("g"), "i", f"BIGINT AS ({expression}) {how}", generated=True))
        return made

    def definition(self, columns: list[Column], plain: bool = False) -> str:
        """`plain`: what every engine can have."""
        dice = self.dice
        parts = [f"{column.name} {column.definition}" for column in columns]
        for column in columns[1:]:
            if column.kind in "idt" and dice.random() < 0.3:
                parts.append(f"KEY ({column.name}{'' if plain else dice.choice((' DESC', ''))})")
            elif column.kind == "s" and "ENUM" not in column.definition and dice.random() < 0.3:
                parts.append(f"KEY {self.new('k')} ({column.name}(10))")
        if dice.random() < 0.15:
            parts.append(f"CHECK (id < {dice.choice((15, 1000))})")
        if not plain and dice.random() < 0.1:
            parts.append(f"KEY {self.new('k')} ((id * 2 + 1))")
        return ", ".join(parts)

    def table(self) -> Piece:
        columns = self.columns()
        table = Table(self.new("t"), columns)
        engine = self.dice.choice(("", "", "", "", " ENGINE = MyISAM", " ROW_FORMAT = COMPRESSED"))
        yield Statement(f"CREATE TABLE {table.name} ({self.definition(columns, 'MyISAM' in engine)}){engine}")
        self.tables.append(table)
        yield self.insert(table, self.dice.randint(3, 18), verb="INSERT IGNORE")

    def value(self, column: Column) -> str:
        if column.kind == "j" and self.dice.random() < 0.9:
            return self.literal("j")
        if "YEAR" in column.definition:
            return str(self.dice.randint(1990, 2030))
        if "TINYINT" in column.definition or "BIT" in column.definition:
            return str(self.dice.randint(0, 99))
        if "UNSIGNED" in column.definition:
            return str(self.dice.randint(0, 3000))
        if "ENUM" in column.definition and self.dice.random() < 0.95:
            return self.dice.choice(ENUM)
        made = self.literal(column.kind) if self.dice.random() < 0.95 else self.expression(column.kind, (), 1)
        return "0" if made == "NULL" and "NOT NULL" in column.definition and column.kind != "t" else made

    def insert(self, table: Table, rows: int, begin: int = 0, verb: str = "") -> Statement:
        dice = self.dice
        columns = [column for column in table.columns if not column.generated]
        names = ", ".join(column.name for column in columns)
        ids = dice.sample(range(begin, begin + rows + 5), rows)
        values = ", ".join(
            "(" + ", ".join([str(number), *(self.value(column) for column in columns[1:])]) + ")" for number in ids
        )
        verb = verb or dice.choice(("INSERT", "INSERT", "INSERT IGNORE", "REPLACE"))
        text = f"{verb} INTO {table.name} ({names}) VALUES {values}"
        if verb == "INSERT" and dice.random() < 0.3 and len(columns) > 1:
            column = dice.choice(columns[1:])
            text += f" ON DUPLICATE KEY UPDATE {column.name} = {self.value(column)}"
        return Statement(text)

    def base(self) -> Table:
        return self.dice.choice([table for table in self.tables if not table.view] or self.tables)

    # What reads.

    def select(self) -> Piece:
        text, ordered = self.query()
        way = self.dice.random()
        if way < 0.03:
            yield Statement(f"DO (SELECT COUNT(*) FROM ({text}) x)")
        elif way < 0.06:
            yield Statement(f"CREATE TEMPORARY TABLE {self.new('c')} AS {text}")
        elif way < 0.1 and text.startswith("SELECT"):
            yield Statement(text + self.dice.choice((" FOR SHARE", " FOR UPDATE", " FOR UPDATE SKIP LOCKED")), ordered)
        elif way < 0.15:
            yield Statement(text, ordered, session=1)
        else:
            yield Statement(text, ordered)

    def shown(self) -> Piece:
        table = self.dice.choice(self.tables)
        schema = "TABLE_SCHEMA = DATABASE()"
        yield self.statement_of(
            f"SHOW CREATE TABLE {table.name}",
            f"SHOW COLUMNS FROM {table.name}",
            f"SHOW FULL COLUMNS FROM {table.name}",
            "SHOW TABLES",
            "SHOW FULL TABLES",
            f"CHECK TABLE {table.name}",
            f"CHECKSUM TABLE {table.name}",
            "SHOW WARNINGS",
            "SHOW ERRORS",
            "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()",
            f"SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS WHERE {schema}",
            f"SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE {schema}",
            f"SELECT TABLE_NAME, ENGINE, ROW_FORMAT FROM information_schema.TABLES WHERE {schema}",
            "SELECT ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES"
            " WHERE ROUTINE_SCHEMA = DATABASE()",
            "SELECT TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()",
            "SELECT CONSTRAINT_NAME, CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS"
            " WHERE CONSTRAINT_SCHEMA = DATABASE()",
            "XA RECOVER",
            "SELECT @v1, @v2, @v3",
        )

    def handler(self) -> Piece:
        name = self.base().name
        yield Statement(f"HANDLER {name} OPEN AS h")
        for _ in range(self.dice.randint(1, 3)):
            way = self.dice.choice((f"= ({self.dice.randint(0, 9)})", "FIRST", "NEXT", "LAST", "PREV"))
            yield Statement(f"HANDLER h READ `PRIMARY` {way} LIMIT {self.dice.randint(1, 3)}", True)
        yield Statement("HANDLER h CLOSE")

    # What changes rows.

    def change(self) -> Piece:
        yield Statement(self.changing())

    def changing(self, extra: Scope = ()) -> str:
        """`extra`: what a stored program may name besides the table's columns."""
        dice = self.dice
        table = self.base()
        scope = [*scope_of(table), *extra]
        settable = [column for column in table.columns[1:] if not column.generated] or table.columns
        column = dice.choice(settable)
        way = dice.random()
        if way < 0.3:
            return self.insert(table, dice.randint(1, 4), dice.choice((0, 20, 40))).text
        if way < 0.55:
            limit = f" ORDER BY id LIMIT {dice.randint(1, 5)}" if dice.random() < 0.3 else ""
            value = self.expression(column.kind, scope)
            ignore = dice.choice(("", "", "IGNORE "))
            return f"UPDATE {ignore}{table.name} SET {column.name} = {value} WHERE {self.condition(scope)}{limit}"
        if way < 0.65:
            return f"DELETE FROM {table.name} WHERE {self.condition(scope)} ORDER BY id LIMIT {dice.randint(1, 3)}"
        other = dice.choice(self.tables)
        own = scope_of(other, "o")
        if way < 0.8:
            # Each row of the table has one partner at most, so the order of joining changes nothing.
            return (
                f"UPDATE {table.name} JOIN {other.name} o ON o.id = {table.name}.id"
                f" SET {table.name}.{column.name} = {self.expression(column.kind, own, 1)}"
                f" WHERE {self.condition([*scope, *own], 1)}"
            )
        if way < 0.87:
            return (
                f"DELETE {table.name} FROM {table.name} JOIN {other.name} o ON o.id = {table.name}.id"
                f" WHERE {self.condition([*scope, *own], 1)} AND o.id % 5 = {dice.randint(0, 4)}"
            )
        return (
            f"INSERT IGNORE INTO {table.name} (id, {column.name}) SELECT o.id + {dice.choice((0, 30, 60))},"
            f" {self.expression(column.kind, own, 1)} FROM {other.name} o WHERE {self.condition(own, 1)} ORDER BY o.id"
        )

    def transaction(self) -> Piece:
        yield Statement(
            self.dice.choice(("BEGIN", "BEGIN", "BEGIN", "SET autocommit = 0", "START TRANSACTION READ ONLY"))
        )
        for _ in range(self.dice.randint(1, 5)):
            way = self.dice.random()
            if way < 0.5:
                yield from self.change()
            elif way < 0.65:
                yield Statement(f"SAVEPOINT s{self.dice.randint(1, 2)}")
            elif way < 0.8:
                yield Statement(f"ROLLBACK TO s{self.dice.randint(1, 2)}")
            elif way < 0.85:
                yield Statement(f"RELEASE SAVEPOINT s{self.dice.randint(1, 2)}")
            else:
                yield from self.select()
        yield Statement(self.dice.choice(("COMMIT", "ROLLBACK", "COMMIT AND CHAIN", "SET autocommit = 1")))
        yield Statement("ROLLBACK")
        yield Statement("SET autocommit = 1")

    def xa(self) -> Piece:
        xid = f"'{self.new('x')}'"
        yield Statement(f"XA START {xid}")
        yield from self.change()
        if self.dice.random() < 0.2:
            yield Statement("COMMIT")  # not now
        yield Statement(f"XA END {xid}")
        if self.dice.random() < 0.3:
            yield Statement(f"XA COMMIT {xid} ONE PHASE")
            return
        yield Statement(f"XA PREPARE {xid}")
        session = self.dice.choice((0, 1))
        yield Statement("XA RECOVER", session=session)
        yield Statement(f"XA {self.dice.choice(('COMMIT', 'ROLLBACK'))} {xid}", session=session)

    def locked(self) -> Piece:
        names = self.dice.sample([table.name for table in self.tables], min(2, len(self.tables)))
        yield Statement("LOCK TABLES " + ", ".join(f"{name} {self.dice.choice(('READ', 'WRITE'))}" for name in names))
        for _ in range(2):
            yield from self.change()
            yield Statement(self.simple("is"))
        yield Statement("UNLOCK TABLES")

    # Prepared statements.

    def prepare(self) -> Piece:
        name = self.new("p")
        table = self.base()
        column = self.dice.choice(table.columns)
        kinds = f"{column.kind}i"
        text = self.one_of(
            f"SELECT id, {column.name}, ? FROM {table.name} WHERE {column.name} <=> ? ORDER BY id",
            f"SELECT COUNT(*), MAX({column.name}) FROM {table.name} WHERE {column.name} > ? OR id = ?",
            f"UPDATE {table.name} SET {column.name} = ? WHERE id = ?",
            f"SELECT id FROM {table.name} WHERE {column.name} <> ? ORDER BY id LIMIT ?",
            f"DELETE FROM {table.name} WHERE {column.name} = ? AND id < ?",
        )
        if "?" in self.literal("s"):
            return
        quoted = text.replace("'", "''")
        yield Statement(f"PREPARE {name} FROM '{quoted}'")
        ordered = "ORDER BY" in text
        for _ in range(self.dice.randint(1, 4)):
            values = [self.literal(kind) for kind in kinds]
            if self.dice.random() < 0.15:
                values[0] = self.literal(self.dice.choice("isd"))  # of another type than before
            yield Statement("SET " + ", ".join(f"@v{number} = {value}" for number, value in enumerate(values, 1)))
            yield Statement(f"EXECUTE {name} USING @v1, @v2", ordered)
            if self.dice.random() < 0.2:
                yield from self.alter()  # it is prepared again
        if self.dice.random() < 0.7:
            yield Statement(f"DEALLOCATE PREPARE {name}")

    # Stored programs.

    def body(self, scope: Scope, depth: int, selects: bool) -> str:
        """Statements within a program that has the variables v1 INT, v2 VARCHAR, v3 DECIMAL."""
        dice = self.dice
        inner = lambda: self.body(scope, depth - 1, selects)  # noqa: E731
        ways: list[Callable[[], str]] = [
            lambda: f"SET v1 = {self.expression('i', scope, 1)};",
            lambda: f"SET v2 = LEFT({self.expression('s', scope, 1)}, 60);",
            lambda: f"SET v3 = {self.expression('d', scope, 1)};",
            lambda: f"{self.changing(scope)};",
            lambda: f"SELECT COUNT(*), MAX({self.column('s', self._own())}) INTO v1, v2 FROM {self._name()};",
            lambda: f"SET @v1 = v1, @v2 = v2, @v3 = {self.expression('d', scope, 1)};",
        ]
        if depth > 0:
            counter = f"n{dice.randint(1, 999)}"
            ways += [
                lambda: f"IF {self.condition(scope, 1)} THEN {inner()} ELSE {inner()} END IF;",
                lambda: f"CASE v1 WHEN 1 THEN {inner()} WHEN 5 THEN {inner()} ELSE {inner()} END CASE;",
                lambda: (
                    f"BEGIN DECLARE {counter} INT DEFAULT 0; WHILE {counter} < {dice.randint(1, 4)} DO"
                    f" SET {counter} = {counter} + 1; {inner()} END WHILE; END;"
                ),
                lambda: (
                    f"BEGIN DECLARE {counter} INT DEFAULT 0; l: LOOP SET {counter} = {counter} + 1;"
                    f" IF {counter} > {dice.randint(1, 3)} THEN LEAVE l; END IF; {inner()} END LOOP; END;"
                ),
                lambda: self._cursor(scope, depth),
                lambda: (
                    f"BEGIN DECLARE {dice.choice(('CONTINUE', 'EXIT'))} HANDLER FOR"
                    f" {dice.choice(('SQLEXCEPTION', 'SQLWARNING', 'NOT FOUND', '1062', '1264'))}"
                    " BEGIN GET DIAGNOSTICS CONDITION 1 @v2 = MESSAGE_TEXT, @v1 = MYSQL_ERRNO;"
                    f" {dice.choice(('', 'SET v1 = -1;', 'RESIGNAL;', inner()))} END; {inner()} {inner()} END;"
                ),
                lambda: (
                    f"IF v1 > {dice.randint(0, 50)} THEN SIGNAL SQLSTATE '{dice.choice(('45000', '01234', '02000'))}'"
                    f" SET MESSAGE_TEXT = 'made', MYSQL_ERRNO = {dice.choice((1062, 30001))}; END IF;"
                ),
            ]
        if selects:
            ways += [
                lambda: f"SELECT v1, v2, v3, {self.expression('s', scope, 1)};",
                lambda: f"SELECT id FROM {self._name()} WHERE {self.condition([*self._own(), *scope], 1)} ORDER BY id;",
                lambda: (
                    "SET @t = CONCAT('SELECT COUNT(*) + ', IFNULL(v1, 0), ' FROM "
                    f"{self._name()}'); PREPARE d FROM @t; EXECUTE d; DEALLOCATE PREPARE d;"
                ),
            ]
        return " ".join(self.pick(*ways) for _ in range(dice.randint(1, 2)))

    def _name(self) -> str:
        self._chosen = self.base()
        return self._chosen.name

    def _own(self) -> Scope:
        """Of the table that _name() gives next, by names that every table has."""
        return [("id", "i")]

    def _cursor(self, scope: Scope, depth: int) -> str:
        table = self.base()
        column = self.dice.choice(table.columns)
        return (
            f"BEGIN DECLARE done INT DEFAULT 0; DECLARE k INT; DECLARE w TEXT;"
            f" DECLARE c CURSOR FOR SELECT id, {column.name} FROM {table.name}"
            f" WHERE {self.condition([*scope_of(table), *scope], 1)} ORDER BY id;"
            " DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; OPEN c; r: LOOP FETCH c INTO k, w;"
            f" IF done THEN LEAVE r; END IF; SET v1 = k, v2 = CONCAT(LEFT(IFNULL(v2, ''), 20), LEFT(IFNULL(w, 'n'), 9));"
            f" {self.body(scope, 0, False) if depth > 1 else ''} SET done = 0; END LOOP; CLOSE c; END;"
        )

    DECLARED = "DECLARE v1 INT DEFAULT 0; DECLARE v2 VARCHAR(80) DEFAULT 'begin'; DECLARE v3 DECIMAL(20,4) DEFAULT 1.5;"
    VARIABLES = (("v1", "i"), ("v2", "s"), ("v3", "d"))

    def procedure(self) -> Piece:
        if not self.procedures or self.dice.random() < 0.5:
            name = self.new("r")
            self.in_program = True
            recursion = f"IF p1 > 0 THEN CALL {name}(p1 - 1, p2); END IF;" if self.dice.random() < 0.4 else ""
            body = self.body([*self.VARIABLES, ("p1", "i"), ("p2", "s")], 3, True)
            self.in_program = False
            yield Statement(
                f"CREATE PROCEDURE {name} (p1 INT, INOUT p2 VARCHAR(80)) BEGIN {self.DECLARED} {body} {recursion}"
                " SET p2 = CONCAT(LEFT(v2, 40), '.', v1); END"
            )
            self.procedures.append(name)
        name = self.dice.choice(self.procedures)
        for _ in range(self.dice.randint(1, 3)):
            yield Statement(f"SET @p = {self.literal('s')}")
            yield Statement(f"CALL {name}({self.dice.choice((0, 1, 3, 20, 'NULL'))}, @p)", True)
            yield Statement("SELECT @p, @v1, @v2, @v3")
        if self.dice.random() < 0.1:
            yield Statement(f"DROP PROCEDURE {name}")
            self.procedures.remove(name)

    def function(self) -> Piece:
        name = self.new("f")
        table = self.base()
        self.in_program = True
        scope = [*self.VARIABLES, ("x", "i")]
        reading = f"SELECT COUNT(*) INTO v1 FROM {table.name} WHERE id < x;" if self.dice.random() < 0.4 else ""
        value = self.expression("i", scope, 2)
        recursion = f"IF x > 0 AND x < 3 THEN RETURN {name}(x - 1); END IF;" if self.dice.random() < 0.1 else ""
        self.in_program = False
        yield Statement(
            f"CREATE FUNCTION {name} (x INT) RETURNS BIGINT {self.dice.choice(('DETERMINISTIC', 'NOT DETERMINISTIC'))}"
            f" READS SQL DATA BEGIN {self.DECLARED} DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET v1 = -9;"
            f" {reading} {recursion} SET v2 = LEFT(CONCAT(v2, x), 20); SET v1 = {value}; RETURN v1 + 1; END"
        )
        yield Statement(f"SELECT {name}({self.literal('i')})")
        self.functions.append(name)

    def trigger(self) -> Piece:
        table = self.base()
        other = self.base()
        when, event = self.dice.choice(("BEFORE", "AFTER")), self.dice.choice(("INSERT", "UPDATE", "DELETE"))
        row = "OLD" if event == "DELETE" else "NEW"
        scope = [(f"{row}.{column.name}", column.kind) for column in table.columns]
        self.in_program = True
        settable = [column for column in table.columns[1:] if not column.generated]
        ways = [f"SET @v1 = CONCAT(LEFT(IFNULL(@v1, ''), 50), {self.expression('i', scope, 1)});"]
        if when == "BEFORE" and row == "NEW" and settable:
            column = self.dice.choice(settable)
            ways.append(f"SET NEW.{column.name} = {self.expression(column.kind, scope, 1)};")
        ways.append(f"DELETE FROM {other.name} WHERE id = {row}.id + 100;")
        ways.append(f"IF {self.condition(scope, 1)} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF;")
        ways.append(f"INSERT IGNORE INTO {other.name} (id) VALUES ({row}.id + 50);")
        body = " ".join(self.dice.sample(ways, self.dice.randint(1, 2)))
        self.in_program = False
        name = self.new("g")
        yield Statement(f"CREATE TRIGGER {name} {when} {event} ON {table.name} FOR EACH ROW BEGIN {body} END")
        for _ in range(3):
            yield from self.change()
        if self.dice.random() < 0.6:
            yield Statement(f"DROP TRIGGER {name}")

    def view(self) -> Piece:
        table = self.base()
        name = self.new("w")
        kept = [table.columns[0], *self.dice.sample(table.columns[1:], min(2, len(table.columns) - 1))]
        names = ", ".join(column.name for column in kept)
        algorithm = self.dice.choice(("UNDEFINED", "MERGE", "TEMPTABLE"))
        check = self.dice.choice(("", " WITH CHECK OPTION", " WITH LOCAL CHECK OPTION"))
        yield Statement(
            f"CREATE ALGORITHM = {algorithm} VIEW {name} AS SELECT {names} FROM {table.name}"
            f" WHERE {self.condition(scope_of(table), 1)}{check if algorithm != 'TEMPTABLE' else ''}"
        )
        self.tables.append(Table(name, kept, view=True))
        yield Statement(f"UPDATE {name} SET id = id + 500 WHERE id = {self.dice.randint(0, 9)}")
        yield Statement(f"INSERT INTO {name} (id) VALUES ({self.dice.randint(0, 99)})")

    # DDL.

    def alter(self) -> Piece:
        dice = self.dice
        table = self.base()
        algorithm = dice.choice(("", "", ", ALGORITHM = INSTANT", ", ALGORITHM = INPLACE", ", ALGORITHM = COPY"))
        droppable = [column for column in table.columns[1:] if not column.generated]
        way = dice.random()
        name = table.name
        if way < 0.3:
            kind = dice.choice("idst")
            column = Column(self.new(kind), kind, dice.choice(KINDS[kind]))
            default = f" DEFAULT ({self.expression('i', (), 1)})" if kind == "i" and dice.random() < 0.3 else ""
            where = dice.choice(("", " FIRST", " AFTER id"))
            yield Statement(
                f"ALTER TABLE {name} ADD COLUMN {column.name} {column.definition}{default}{where}{algorithm}"
            )
            if not algorithm:
                table.columns.append(column)
        elif way < 0.4 and len(droppable) > 2:
            column = dice.choice(droppable)
            yield Statement(f"ALTER TABLE {name} DROP COLUMN {column.name}{algorithm}")
            if not algorithm and not any(each.generated for each in table.columns):
                table.columns.remove(column)
        elif way < 0.55:
            column = dice.choice(table.columns)
            part = "(12)" if column.kind == "s" and "ENUM" not in column.definition else ""
            yield Statement(
                f"ALTER TABLE {name} ADD {dice.choice(('', 'UNIQUE '))}KEY {self.new('k')} ({column.name}{part})"
            )
        elif way < 0.65:
            column = dice.choice(droppable or table.columns)
            yield Statement(f"ALTER TABLE {name} MODIFY {column.name} {dice.choice(KINDS[column.kind])}{algorithm}")
        elif way < 0.72:
            yield Statement(
                f"ALTER TABLE {name} {dice.choice(('FORCE', 'ENGINE = InnoDB', 'ENGINE = MyISAM'))}{algorithm}"
            )
        elif way < 0.78:
            new = self.new("t")
            yield Statement(f"RENAME TABLE {name} TO {new}")
            table.name = new
        elif way < 0.83:
            new = self.new("t")
            yield Statement(f"CREATE TABLE {new} LIKE {name}")
            yield Statement(f"INSERT IGNORE INTO {new} (id) SELECT id FROM {name} ORDER BY id")
            yield Statement(f"DROP TABLE {new}")
        elif way < 0.88:
            yield Statement(f"{dice.choice(('ANALYZE', 'OPTIMIZE', 'REPAIR'))} TABLE {name}")
        elif way < 0.92:
            yield Statement(f"TRUNCATE TABLE {name}")
            yield self.insert(table, 6)
        elif way < 0.96:
            yield Statement(
                f"ALTER TABLE {name} CONVERT TO CHARACTER SET {dice.choice(('utf8mb4', 'utf8mb3', 'latin1'))}"
            )
        else:
            column = dice.choice(table.columns)
            yield Statement(f"ALTER TABLE {name} ADD CHECK ({column.name} IS NOT NULL OR id < {dice.randint(0, 20)})")

    def temporary(self) -> Piece:
        columns = self.columns()
        table = Table(self.new("t"), columns, temporary=True)
        engine = self.dice.choice(("", " ENGINE = MEMORY", " ENGINE = MyISAM"))
        yield Statement(f"CREATE TEMPORARY TABLE {table.name} ({self.definition(columns, bool(engine))}){engine}")
        yield self.insert(table, self.dice.randint(2, 9), verb="INSERT IGNORE")
        for _ in range(2):
            scope = scope_of(table)
            yield Statement(
                f"SELECT id, {', '.join(self.outputs(scope))} FROM {table.name}{self.where(scope)} ORDER BY id"
            )
            other = self.base()
            yield Statement(f"SELECT COUNT(*), MAX(o.id) FROM {other.name} o JOIN {table.name} USING (id)")
        yield Statement(f"DROP TEMPORARY TABLE {table.name}")

    def partitioned(self) -> Piece:
        columns = self.columns()
        table = Table(self.new("t"), columns, partitioned=True)
        way = self.one_of(
            "HASH (id) PARTITIONS 3",
            "KEY (id) PARTITIONS 2",
            "RANGE (id) (PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN (12),"
            " PARTITION p2 VALUES LESS THAN MAXVALUE)",
            "LIST (id % 3) (PARTITION p0 VALUES IN (0, 1), PARTITION p1 VALUES IN (2))",
        )
        yield Statement(f"CREATE TABLE {table.name} ({self.definition(columns)}) PARTITION BY {way}")
        self.tables.append(table)
        yield self.insert(table, self.dice.randint(6, 18), verb="INSERT IGNORE")
        for _ in range(2):
            yield Statement(f"SELECT * FROM {table.name} PARTITION ({self.dice.choice(('p0', 'p1', 'p0, p1'))})")
            yield Statement(
                f"ALTER TABLE {table.name} "
                + self.one_of(
                    "TRUNCATE PARTITION p0",
                    "COALESCE PARTITION 1",
                    "ADD PARTITION PARTITIONS 2",
                    "REORGANIZE PARTITION p0, p1 INTO (PARTITION p0 VALUES LESS THAN (12))",
                    "DROP PARTITION p1",
                    "REBUILD PARTITION ALL",
                    "ANALYZE PARTITION p0",
                    "REMOVE PARTITIONING",
                )
            )
            yield Statement(f"SELECT COUNT(*), MIN(id), MAX(id) FROM {table.name} WHERE id BETWEEN 2 AND 9")

    def key(self) -> Piece:
        """A parent with children."""
        parent, child = self.new("t"), self.new("t")
        action = self.dice.choice(("CASCADE", "SET NULL", "RESTRICT"))
        yield Statement(f"CREATE TABLE {parent} (id INT PRIMARY KEY, s0 VARCHAR(20))")
        yield Statement(
            f"CREATE TABLE {child} (id INT PRIMARY KEY AUTO_INCREMENT, i0 INT, s0 VARCHAR(20),"
            f" FOREIGN KEY (i0) REFERENCES {parent} (id) ON DELETE {action} ON UPDATE {action})"
        )
        yield Statement(f"INSERT INTO {parent} VALUES (1, 'alpha'), (2, 'beta'), (3, NULL)")
        for _ in range(4):
            yield self.statement_of(
                f"INSERT INTO {child} (i0, s0) VALUES ({self.dice.randint(1, 4)}, 'alpha'), (NULL, '0')",
                f"DELETE FROM {parent} WHERE id = {self.dice.randint(1, 3)}",
                f"UPDATE {parent} SET id = id + 10 WHERE id = {self.dice.randint(1, 3)}",
                f"REPLACE INTO {parent} VALUES ({self.dice.randint(1, 3)}, 'again')",
            )
            yield Statement(f"SELECT * FROM {child} ORDER BY id", True)
        yield Statement(f"DROP TABLE {parent}")
        self.tables.append(
            Table(child, [Column("id", "i", "INT"), Column("i0", "i", "INT"), Column("s0", "s", "CHAR")])
        )

    # Full text.

    def full_text_table(self) -> Piece:
        name = self.new("t")
        engine = self.dice.choice(("InnoDB", "InnoDB", "MyISAM"))
        parser = self.dice.choice(("", "", " WITH PARSER ngram")) if engine == "InnoDB" else ""
        yield Statement(
            f"CREATE TABLE {name} (id INT PRIMARY KEY, s0 VARCHAR(200), s1 TEXT, FULLTEXT (s0){parser},"
            f" FULLTEXT (s0, s1)) ENGINE = {engine}"
        )
        self.full_text.append(name)
        columns = [Column("id", "i", "INT"), Column("s0", "s", "VARCHAR(200)"), Column("s1", "s", "TEXT")]
        self.tables.append(Table(name, columns))
        rows = ", ".join(
            f"({number}, '{self._text()}', '{self._text()}')" for number in range(self.dice.randint(5, 25))
        )
        yield Statement(f"INSERT INTO {name} VALUES {rows}")

    def _text(self) -> str:
        words = " ".join(self.dice.sample(TEXTS, 1) + self.dice.sample(WORDS[1:4], 1)).split()
        self.dice.shuffle(words[: self.dice.choice((0, 3))])
        return " ".join(words)

    def search(self) -> Piece:
        dice = self.dice
        name = dice.choice(self.full_text)
        words = dice.sample(" ".join(TEXTS).split(), 4)
        if dice.random() < 0.25:
            yield self.statement_of(
                f"UPDATE {name} SET s0 = '{self._text()}' WHERE id % 7 = {dice.randint(0, 6)}",
                f"DELETE FROM {name} WHERE id = {dice.randint(0, 25)}",
                f"REPLACE INTO {name} VALUES ({dice.randint(0, 30)}, '{self._text()}', '{self._text()}')",
                f"OPTIMIZE TABLE {name}",
                f"ALTER TABLE {name} ADD COLUMN {self.new('i')} INT",
            )
        # A rank depends on the number of rows, and a table that was closed has the one of the last ANALYZE.
        yield Statement(f"ANALYZE TABLE {name}")
        columns = dice.choice(("s0", "s0, s1", "s0, s1", "s1"))
        against = self.one_of(
            f"'{words[0]} {words[1]}'",
            f"'{words[0]} {words[1]}' IN NATURAL LANGUAGE MODE",
            f"'{words[0]}' WITH QUERY EXPANSION",
            f"'+{words[0]} -{words[1]}' IN BOOLEAN MODE",
            f"'+{words[0]} +({words[1]} {words[2]})' IN BOOLEAN MODE",
            f"'{words[0][:3]}* >{words[1]} <{words[2]}' IN BOOLEAN MODE",
            f"""'"{dice.choice(("lazy dog", "quick brown", "pages pages", "gamma ray", " ".join(words[:2])))}"'"""
            " IN BOOLEAN MODE",
            f"""'"{words[0]} {words[1]}" @{dice.randint(1, 9)}' IN BOOLEAN MODE""",
            f"""'+{words[0]} ~{words[1]} -"lazy dog"' IN BOOLEAN MODE""",
            f"""'"{words[0]}' IN BOOLEAN MODE""",
        )
        match = f"MATCH ({columns}) AGAINST ({against})"
        yield self.statement_of(
            f"SELECT id FROM {name} WHERE {match}",
            f"SELECT id, {match} > 0 FROM {name} ORDER BY id",
            f"SELECT id, ROUND({match}, 3) FROM {name} WHERE {match}",
            f"SELECT COUNT(*) FROM {name} WHERE {match} AND id > {dice.randint(0, 9)}",
            f"SELECT COUNT(*) FROM {name} a JOIN {name} USING (id) WHERE {match.replace('(s', f'({name}.s', 1)}"
            if "," not in columns
            else f"SELECT MAX(id) FROM {name} WHERE {match}",
        )
