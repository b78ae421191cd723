"""Expressions and queries at random. Their rows do not depend on the plan.

So no sum of DOUBLE, no LIMIT without a total order, no order of JSON_ARRAYAGG; and no two strings of the data are equal
in one collation and differ in their bytes, since any of them may stand for a group. Letters change their case only
within HEX().
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

WORDS = ("", "alpha", "beta", "gamma ray", "delta-9", "ünicode", "zz%_", "o''brien", "0", "12abc", "-7", "3.5")
KINDS = {
    "i": ("INT", "BIGINT", "SMALLINT", "INT UNSIGNED", "TINYINT", "YEAR", "BIT(7)"),
    "d": ("DECIMAL(12,3)", "DECIMAL(30,10)", "DECIMAL(6,0)"),
    "s": (
        "VARCHAR(40)",
        "VARCHAR(300) CHARACTER SET latin1",
        "VARCHAR(60) COLLATE utf8mb4_bin",
        "TEXT",
        "CHAR(30)",
        "VARCHAR(50) CHARACTER SET utf8mb3",
        "ENUM('','alpha','beta','0','-7','12abc')",
    ),
    "t": ("DATETIME", "DATE", "DATETIME(3)", "TIMESTAMP NULL"),
    "j": ("JSON",),
}


@dataclass
class Column:
    name: str
    kind: str
    definition: str
    generated: bool = False


@dataclass
class Table:
    name: str
    columns: list[Column]
    temporary: bool = False
    view: bool = False
    partitioned: bool = False
    keys: list[str] = field(default_factory=list)

    def of(self, kind: str) -> list[Column]:
        return [column for column in self.columns if column.kind == kind]


# What an expression may name: text and kind.
Scope = Sequence[tuple[str, str]]


class Expressions:
    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.tables: list[Table] = []
        self.functions: list[str] = []  # of INT, one INT argument
        self.in_program = False  # REGEXP functions in stored programs crash stock

    def pick(self, *ways: Callable[[], str]) -> str:
        return self.dice.choice(ways)()

    def one_of(self, *texts: str) -> str:
        return self.dice.choice(texts)

    def literal(self, kind: str) -> str:
        dice = self.dice
        if dice.random() < 0.06:
            return "NULL"
        if kind == "i":
            return str(dice.choice((0, 1, 2, 3, 5, 7, 10, -1, -4, 100, dice.randint(-50, 50), 2000, 127, 70000)))
        if kind == "d":
            return f"{dice.randint(-9999, 9999)}.{dice.randint(0, 999):03}"
        if kind == "s":
            return f"'{dice.choice(WORDS)}'"
        if kind == "t":
            day = f"{dice.randint(1971, 2030)}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"
            return dice.choice((f"'{day} 0{dice.randint(0, 9)}:12:59'", f"DATE'{day}'", f"TIMESTAMP'{day} 23:59:59'"))
        keys = dice.sample(("a", "b", "c", "d"), 2)
        return self.one_of(
            f"""'{{"{keys[0]}": {dice.randint(0, 5)}, "{keys[1]}": ["x", {dice.randint(0, 9)}, null]}}'""",
            f'\'[{dice.randint(0, 5)}, "y", {{"{keys[0]}": true}}]\'',
            f"'{dice.randint(0, 9)}'",
            """'"text"'""",
        )

    def column(self, kind: str, scope: Scope) -> str:
        fitting = [name for name, of in scope if of == kind]
        return self.dice.choice(fitting) if fitting else self.literal(kind)

    def expression(self, kind: str, scope: Scope, depth: int = 2) -> str:
        dice = self.dice
        if depth <= 0 or dice.random() < 0.3:
            return self.column(kind, scope) if dice.random() < 0.75 else self.literal(kind)

        def of(wanted: str) -> str:
            return self.expression(wanted, scope, depth - 1)

        same = (
            lambda: f"IF({self.condition(scope, depth - 1)}, {of(kind)}, {of(kind)})",
            lambda: f"COALESCE({of(kind)}, {of(kind)})",
            lambda: f"CASE WHEN {self.condition(scope, depth - 1)} THEN {of(kind)} ELSE {of(kind)} END",
            lambda: f"NULLIF({of(kind)}, {of(kind)})",
        )
        if dice.random() < 0.25:
            return self.pick(*same)
        return getattr(self, f"_of_{kind}")(of, scope, depth)

    def _of_i(self, of: Callable[[str], str], scope: Scope, depth: int) -> str:
        dice = self.dice
        return self.pick(
            lambda: f"({of('i')} {dice.choice('+-*')} {of('i')})",
            lambda: f"({of('i')} DIV {of('i')})",
            lambda: f"({of('i')} % {of('i')})",
            lambda: f"ABS({of('i')})",
            lambda: f"SIGN({of('d')})",
            lambda: f"CHAR_LENGTH({of('s')})",
            lambda: f"LENGTH({of('s')})",
            lambda: f"CRC32({of('s')})",
            lambda: f"LOCATE('a', {of('s')})",
            lambda: f"FIELD({of('s')}, {of('s')}, {of('s')})",
            lambda: f"GREATEST({of('i')}, {of('i')})",
            lambda: f"LEAST({of('i')}, {of('i')}, {of('i')})",
            lambda: f"FLOOR({of('d')})",
            lambda: f"{dice.choice(('YEAR', 'MONTH', 'DAYOFYEAR', 'WEEK', 'TO_DAYS', 'QUARTER'))}({of('t')})",
            lambda: f"DATEDIFF({of('t')}, {of('t')})",
            lambda: f"TIMESTAMPDIFF({dice.choice(('DAY', 'MONTH', 'HOUR'))}, {of('t')}, {of('t')})",
            lambda: f"JSON_LENGTH({of('j')})",
            lambda: f"JSON_DEPTH({of('j')})",
            lambda: f"CAST({of('s')} AS SIGNED)",
            lambda: f"CAST({of('d')} AS UNSIGNED)",
            lambda: f"BIT_COUNT({of('i')})",
            lambda: f"({of('i')} {dice.choice(('|', '&', '^', '<<', '>>'))} {of('i')})",
            lambda: f"ASCII({of('s')})",
            lambda: f"INTERVAL({of('i')}, 1, 5, 10)",
            lambda: f"STRCMP({of('s')}, {of('s')})",
            lambda: f"({self.condition(scope, depth - 1)})",
            lambda: self.scalar(scope),
            lambda: f"{dice.choice(self.functions)}({of('i')})" if self.functions else of("i"),
        )

    def _of_d(self, of: Callable[[str], str], scope: Scope, depth: int) -> str:
        return self.pick(
            lambda: f"({of('d')} {self.dice.choice('+-*')} {of('i')})",
            lambda: f"ROUND({of('d')}, {self.dice.randint(-2, 4)})",
            lambda: f"TRUNCATE({of('d')}, 2)",
            lambda: f"({of('d')} / 3)",
            lambda: f"CAST({of('s')} AS DECIMAL(10,2))",
            lambda: f"MOD({of('d')}, {of('i')})",
            lambda: f"-({of('d')})",
        )

    def _of_s(self, of: Callable[[str], str], scope: Scope, depth: int) -> str:
        dice = self.dice
        ways = [
            lambda: f"CONCAT({of('s')}, '-', {of('i')})",
            lambda: f"CONCAT_WS('/', {of('s')}, {of('s')}, {of('d')})",
            lambda: f"HEX(UPPER({of('s')}))",
            lambda: f"SUBSTRING({of('s')}, {dice.randint(-4, 4)}, 5)",
            lambda: f"LEFT({of('s')}, 3)",
            lambda: f"REPLACE({of('s')}, 'a', 'bb')",
            lambda: f"LPAD({of('s')}, {dice.randint(0, 9)}, '*')",
            lambda: f"REVERSE({of('s')})",
            lambda: f"REPEAT({of('s')}, {dice.randint(-1, 3)})",
            lambda: f"SUBSTRING_INDEX({of('s')}, 'a', {dice.choice((-1, 1, 2))})",
            lambda: f"SHA2({of('s')}, 256)",
            lambda: f"CAST({of('d')} AS CHAR)",
            lambda: f"FORMAT({of('d')}, 2)",
            lambda: f"DATE_FORMAT({of('t')}, '%Y/%m/%d %j')",
            lambda: f"ELT({of('i')}, 'one', 'two', {of('s')})",
            lambda: f"QUOTE({of('s')})",
            lambda: f"TO_BASE64({of('s')})",
            lambda: f"CONV({of('i')}, 10, 16)",
            lambda: f"JSON_UNQUOTE(JSON_EXTRACT({of('j')}, '$.a'))",
            lambda: f"JSON_TYPE({of('j')})",
            lambda: f"CONVERT({of('s')} USING utf8mb4)",
            lambda: f"INSERT({of('s')}, 2, 1, 'q')",
            lambda: f"HEX(WEIGHT_STRING({of('s')}))",
            lambda: f"EXPORT_SET({of('i')}, 'y', 'n', ',', 5)",
            lambda: f"HEX(COMPRESS({of('s')}))",
            lambda: f"ST_AsText(ST_GeomFromText(CONCAT('POINT(', {of('i')}, ' 1)')))",
        ]
        if not self.in_program:
            ways += [lambda: f"REGEXP_REPLACE({of('s')}, '[a-c]+', '_')", lambda: f"REGEXP_SUBSTR({of('s')}, '[0-9]+')"]
        return self.pick(*ways)

    def _of_t(self, of: Callable[[str], str], scope: Scope, depth: int) -> str:
        unit = self.dice.choice(("DAY", "MONTH", "HOUR", "SECOND", "YEAR", "WEEK"))
        return self.pick(
            lambda: f"DATE_ADD({of('t')}, INTERVAL {self.dice.randint(-40, 40)} {unit})",
            lambda: f"LAST_DAY({of('t')})",
            lambda: f"TIMESTAMP({of('t')})",
            lambda: f"FROM_DAYS(730000 + {of('i')})",
            lambda: "STR_TO_DATE('05/12/2021', '%d/%m/%Y')",
        )

    def _of_j(self, of: Callable[[str], str], scope: Scope, depth: int) -> str:
        path = self.dice.choice(("$.a", "$.b", "$[0]", "$.c[1]", "$"))
        return self.pick(
            lambda: f"JSON_OBJECT('a', {of('i')}, 'k', {of('s')})",
            lambda: f"JSON_ARRAY({of('i')}, {of('s')}, {of('j')})",
            lambda: f"JSON_SET({of('j')}, '{path}', {of('i')})",
            lambda: f"JSON_REMOVE({of('j')}, '$.b')",
            lambda: f"JSON_MERGE_PATCH({of('j')}, {of('j')})",
            lambda: f"JSON_MERGE_PRESERVE({of('j')}, {of('j')})",
            lambda: f"JSON_EXTRACT({of('j')}, '{path}')",
            lambda: f"JSON_KEYS({of('j')})",
            lambda: f"JSON_ARRAY_APPEND({of('j')}, '{path}', {of('s')})",
            lambda: f"JSON_SEARCH({of('j')}, 'all', 'x')",
        )

    def condition(self, scope: Scope, depth: int = 2) -> str:
        dice = self.dice
        kind = dice.choice("iiddsst")

        def of(wanted: str = kind) -> str:
            return self.expression(wanted, scope, depth - 1)

        simple = (
            lambda: f"{of()} {dice.choice(('=', '<', '>', '<=', '<>', '<=>', '>='))} {of()}",
            lambda: f"{of()} BETWEEN {of()} AND {of()}",
            lambda: f"{of()} IS {dice.choice(('', 'NOT '))}NULL",
            lambda: f"{of()} {dice.choice(('', 'NOT '))}IN ({self.literal(kind)}, {self.literal(kind)}, {of()})",
            lambda: (
                f"{of('s')} LIKE '{dice.choice(('%a%', 'b%', '_', '%9', 'zz|%%'))}'" + dice.choice(("", " ESCAPE '|'"))
            ),
            lambda: f"JSON_CONTAINS({of('j')}, '{dice.randint(0, 5)}')",
            lambda: f"{of('i')} MEMBER OF ({of('j')})",
            lambda: f"JSON_VALID({of('s')})",
            lambda: f"{of('s')} REGEXP 'a|b'" if not self.in_program else f"{of('s')} = 'beta'",
        )
        if depth <= 0 or dice.random() < 0.5:
            return self.pick(*simple)
        return self.pick(
            lambda: f"({self.condition(scope, depth - 1)} AND {self.condition(scope, depth - 1)})",
            lambda: f"({self.condition(scope, depth - 1)} OR {self.condition(scope, depth - 1)})",
            lambda: f"NOT ({self.condition(scope, depth - 1)})",
            lambda: f"({self.condition(scope, depth - 1)} XOR {self.condition(scope, depth - 1)})",
            lambda: self.with_subquery(scope),
        )

    def inner(self) -> tuple[Table, str, Scope]:
        """A table for a subquery, its alias, its columns."""
        table = self.dice.choice(self.tables)
        alias = f"q{self.dice.randint(1, 99)}"
        return table, alias, scope_of(table, alias)

    def scalar(self, scope: Scope) -> str:
        if not self.tables:
            return self.literal("i")
        table, alias, own = self.inner()
        what = self.dice.choice(("COUNT(*)", f"MAX({self.column('i', own)})", f"SUM({self.column('d', own)})"))
        return f"(SELECT {what} FROM {table.name} {alias} WHERE {self.condition([*own, *scope], 1)})"

    def with_subquery(self, scope: Scope) -> str:
        if not self.tables:
            return "1 = 1"
        table, alias, own = self.inner()
        where = self.condition([*own, *scope], 1)
        kind = self.dice.choice("isd")
        value = f"{self.column(kind, own)} FROM {table.name} {alias} WHERE {where}"
        return self.pick(
            lambda: f"EXISTS (SELECT 1 FROM {table.name} {alias} WHERE {where})",
            lambda: f"{self.column(kind, scope)} {self.dice.choice(('', 'NOT '))}IN (SELECT {value})",
            lambda: f"{self.column(kind, scope)} {self.dice.choice(('> ALL', '= ANY', '<= SOME'))} (SELECT {value})",
        )


def scope_of(table: Table, alias: str = "") -> Scope:
    return [(f"{alias or table.name}.{column.name}", column.kind) for column in table.columns]


class Queries(Expressions):
    """SELECT in all its shapes. Each returns its text and whether its ORDER BY is total."""

    def query(self) -> tuple[str, bool]:
        return self.one_of(
            self.join,
            self.join,
            self.join,
            self.grouped,
            self.grouped,
            self.window,
            self.window,
            self.union,
            self.common_table,
            self.recursive,
            self.json_table,
            self.derived,
            self.values,
        )()

    def source(self, most: int = 3) -> tuple[str, list[tuple[Table, str]], Scope]:
        dice = self.dice
        count = min(dice.choice((1, 1, 2, 2, 3)), most)
        parts = [(dice.choice(self.tables), f"a{number}") for number in range(count)]
        text = f"{parts[0][0].name} {parts[0][1]}"
        scope: list[tuple[str, str]] = list(scope_of(*parts[0]))
        for table, alias in parts[1:]:
            own = scope_of(table, alias)
            kind = dice.choice("iis")
            on = f"{self.column(kind, own)} = {self.column(kind, scope)}"
            if dice.random() < 0.3:
                on += f" AND {self.condition([*scope, *own], 1)}"
            scope += own
            how = dice.choice(("JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "STRAIGHT_JOIN"))
            text += f" {how} {table.name} {alias} ON {on}"
        return text, parts, scope

    def outputs(self, scope: Scope, most: int = 4) -> list[str]:
        return [self.expression(self.dice.choice("iiddsstj"), scope) for _ in range(self.dice.randint(1, most))]

    def where(self, scope: Scope) -> str:
        return f" WHERE {self.condition(scope)}" if self.dice.random() < 0.7 else ""

    def join(self) -> tuple[str, bool]:
        text, parts, scope = self.source()
        ids = [f"{alias}.id" for _, alias in parts]
        if self.dice.random() < 0.5:
            hint = self.dice.choice(("", "", "DISTINCT ", "SQL_BUFFER_RESULT ", "SQL_SMALL_RESULT "))
            return f"SELECT {hint}{', '.join(self.outputs(scope))} FROM {text}{self.where(scope)}", False
        order = ", ".join([self.expression(self.dice.choice("iit"), scope, 1) + self.dice.choice((" DESC", "")), *ids])
        limit = self.dice.choice(("", "", f" LIMIT {self.dice.randint(0, 9)}", " LIMIT 5 OFFSET 2"))
        words = f"SELECT {', '.join([*ids, *self.outputs(scope, 3)])} FROM {text}{self.where(scope)}"
        return f"{words} ORDER BY {order}{limit}", True

    def aggregate(self, scope: Scope) -> str:
        dice = self.dice
        number = self.expression(dice.choice("id"), scope, 1)
        text = self.column("s", scope)
        return self.one_of(
            "COUNT(*)",
            f"COUNT(DISTINCT {number})",
            f"MIN({number})",
            f"MAX({number})",
            f"SUM(CAST({number} AS DECIMAL(40,6)))",
            f"AVG(CAST({number} AS DECIMAL(30,4)))",
            f"BIT_XOR({self.column('i', scope)})",
            f"BIT_OR({self.column('i', scope)})",
            f"GROUP_CONCAT(DISTINCT {self.column('i', scope)} ORDER BY 1 SEPARATOR ':')",
            f"GROUP_CONCAT({text} ORDER BY {text} DESC)",
            f"JSON_LENGTH(JSON_ARRAYAGG({number}))",
            f"MAX({text})",
            f"MIN({self.column('t', scope)})",
            f"COUNT({text})",
        )

    def grouped(self) -> tuple[str, bool]:
        dice = self.dice
        text, _, scope = self.source()
        keys = list(dict.fromkeys(self.column(dice.choice("isitd"), scope) for _ in range(dice.randint(0, 2))))
        keys = [key for key in keys if "." in key and not key[0].isdigit() and "'" not in key and key[0] != "-"]
        outputs = keys + [self.aggregate(scope) for _ in range(dice.randint(1, 3))]
        words = f"SELECT {', '.join(outputs)} FROM {text}{self.where(scope)}"
        if keys:
            words += f" GROUP BY {', '.join(keys)}" + dice.choice(("", "", " WITH ROLLUP"))
            if dice.random() < 0.3:
                words += f" HAVING {self.aggregate(scope)} {dice.choice(('>', '<>', '<'))} {self.literal('i')}"
        return words, False

    def window(self) -> tuple[str, bool]:
        dice = self.dice
        text, parts, scope = self.source(2)
        ids = ", ".join(f"{alias}.id" for _, alias in parts)
        part = dice.choice(("", f"PARTITION BY {self.column('i', scope)} ", f"PARTITION BY {self.column('s', scope)} "))
        total = f"{part}ORDER BY {self.column(dice.choice('is'), scope)}, {ids}"
        peers = f"{part}ORDER BY {self.column('i', scope)}"
        number = f"CAST({self.column(dice.choice('id'), scope)} AS DECIMAL(30,4))"
        frame = dice.choice(
            ("ROWS 2 PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING", "ROWS UNBOUNDED PRECEDING", "")
        )
        several = ", ".join(
            self.one_of(
                f"ROW_NUMBER() OVER ({total})",
                f"{dice.choice(('RANK', 'DENSE_RANK'))}() OVER ({peers})",
                f"SUM({number}) OVER ({total} {frame})",
                f"{dice.choice(('MIN', 'MAX', 'COUNT'))}({number}) OVER ({total} {frame})",
                f"{dice.choice(('LAG', 'LEAD'))}({self.column('s', scope)}, {dice.randint(0, 3)}) OVER ({total})",
                f"{dice.choice(('FIRST_VALUE', 'LAST_VALUE'))}({self.column('i', scope)}) OVER ({total} {frame})",
                f"NTH_VALUE({self.column('s', scope)}, 2) OVER ({total} {frame})",
                f"NTILE({dice.randint(1, 4)}) OVER ({total})",
                f"SUM({number}) OVER ({part})",
                f"COUNT(*) OVER ({peers} RANGE BETWEEN 2 PRECEDING AND CURRENT ROW)",
            )
            for _ in range(dice.randint(1, 3))
        )
        words = f"SELECT {ids}, {several} FROM {text}{self.where(scope)}"
        return (f"{words} ORDER BY {ids}", True) if dice.random() < 0.5 else (words, False)

    def simple(self, kinds: str) -> str:
        table = self.dice.choice(self.tables)
        scope = scope_of(table)
        outputs = ", ".join(self.column(kind, scope) for kind in kinds)
        return f"SELECT {outputs} FROM {table.name}{self.where(scope)}"

    def union(self) -> tuple[str, bool]:
        kinds = "".join(self.dice.choice("isdt") for _ in range(self.dice.randint(1, 3)))
        ways = ("UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL")
        words = self.simple(kinds)
        for _ in range(self.dice.randint(1, 2)):
            words = f"{words} {self.dice.choice(ways)} {self.simple(kinds)}"
        return words, False

    def common_table(self) -> tuple[str, bool]:
        other = self.dice.choice(self.tables)
        scope = [("c.n", "i"), ("c.s", "s"), *scope_of(other, "o")]
        return (
            f"WITH c (n, s) AS ({self.simple('is')}) SELECT {', '.join(self.outputs(scope, 3))} FROM c"
            f" {self.dice.choice(('JOIN', 'LEFT JOIN'))} {other.name} o ON c.n = o.id{self.where(scope)}"
        ), False

    def recursive(self) -> tuple[str, bool]:
        dice = self.dice
        most = dice.choice((0, 5, 40, 1100))  # the last is more than cte_max_recursion_depth
        scope = [("r.n", "i"), ("r.s", "s")]
        return (
            f"WITH RECURSIVE r AS (SELECT 1 AS n, CAST('' AS CHAR(50)) AS s UNION {dice.choice(('ALL', 'DISTINCT'))}"
            f" SELECT n + 1, LEFT(CONCAT(s, n), 50) FROM r WHERE n < {most})"
            f" SELECT n, {self.expression('s', scope, 1)}, {self.expression('i', scope, 1)} FROM r ORDER BY n"
        ), True

    def json_table(self) -> tuple[str, bool]:
        table = self.dice.choice(self.tables)
        what = self.column("j", scope_of(table, "o"))
        on = self.dice.choice(("NULL ON EMPTY", "DEFAULT '5' ON EMPTY", "ERROR ON EMPTY", ""))
        return (
            f"SELECT o.id, jt.* FROM {table.name} o, JSON_TABLE({what}, '$[*]' COLUMNS (nr FOR ORDINALITY,"
            f" v VARCHAR(20) PATH '$' {on}, e INT EXISTS PATH '$.a', NESTED PATH '$.b[*]' COLUMNS (w JSON PATH '$')))"
            f" jt{self.where(scope_of(table, 'o'))}"
        ), False

    def derived(self) -> tuple[str, bool]:
        outer = self.dice.choice(self.tables)
        inner = self.dice.choice(self.tables)
        scope = [*scope_of(outer, "o"), ("l.n", "i"), ("l.m", "d")]
        own = scope_of(inner, "x")
        where = self.condition([*own, *scope_of(outer, "o")], 1)
        return (
            f"SELECT o.id, {', '.join(self.outputs(scope, 2))} FROM {outer.name} o, LATERAL (SELECT COUNT(*) AS n,"
            f" MAX({self.column('d', own)}) AS m FROM {inner.name} x WHERE {where}) l{self.where(scope)} ORDER BY o.id"
        ), True

    def values(self) -> tuple[str, bool]:
        rows = ", ".join(
            f"ROW({self.expression('i', ())}, {self.expression('s', ())})" for _ in range(self.dice.randint(1, 4))
        )
        return f"SELECT * FROM (VALUES {rows}) v (n, s)", False
