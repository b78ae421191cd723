"""Content for a server to keep: every kind of table, object and account, and a fingerprint of all of it."""

import re
from pathlib import Path

from harness.sql import Connection

USER, PASSWORD = "keeper", "s3cret: %"
_HERE = Path(__file__).resolve().parent


def make(connection: Connection) -> None:
    run_file(connection, "content.sql", "{password}", PASSWORD)


def change(connection: Connection, round_: int) -> None:
    """Write to everything; each round (1, 2, ...) changes other rows."""
    run_file(connection, "change.sql", "{round}", str(round_))


def run_file(connection: Connection, name: str, place: str = "{}", value: str = "{}") -> None:
    """Run the statements of a file of this folder; `value` is put in each `place`."""
    for statement in (_HERE / name).read_text().replace(place, value).split(";\n"):
        if statement.strip():
            connection.query(statement)


def fingerprint(connection: Connection) -> dict[str, str]:
    """{thing: a value that changes if the thing does}: rows, indexes, definitions, accounts, persisted settings."""
    found: dict[str, str] = {}

    def note(name: str, statement: str) -> None:
        # AUTO_INCREMENT is not exact after a restart: the server reserves numbers for inserts of many rows.
        rows = repr(connection.query(statement).rows)
        found[name] = re.sub(r" AUTO_INCREMENT=\d+", "", rows)

    def names(column: str, source: str) -> list[str]:
        statement = f"SELECT {column} FROM information_schema.{source}"
        return [row[0] or "" for row in connection.query(statement).rows]

    connection.query("USE kept")
    of_kept = "WHERE table_schema = 'kept' AND"
    for table in names("table_name", f"tables {of_kept} table_type = 'BASE TABLE'"):
        columns = f"columns {of_kept} table_name = '{table}' ORDER BY ordinal_position"
        note(f"rows of {table}", row_sums(table, names("column_name", columns)))
        note(f"indexes of {table}", f"CHECK TABLE {table} EXTENDED")
        note(f"definition of {table}", f"SHOW CREATE TABLE {table}")
    for thing in ("VIEW sums", "FUNCTION twice", "PROCEDURE fill", "EVENT nightly", "USER keeper@'%'"):
        note(thing, f"SHOW CREATE {thing}")
    # SHOW CREATE TRIGGER also shows when the trigger was made.
    note(
        "trigger",
        "SELECT action_statement, action_timing, definer, sql_mode FROM information_schema.triggers WHERE trigger_name = 'noted'",
    )
    note("words", "SELECT COUNT(*), SUM(id) FROM texts WHERE MATCH(t) AGAINST('needle')")
    area = "ST_GeomFromText('POLYGON((0 0, 0 40, 40 40, 40 0, 0 0))', 4326)"
    note("places", f"SELECT COUNT(*), SUM(id) FROM places WHERE MBRContains({area}, p)")
    note("JSON index", "SELECT COUNT(*) FROM types WHERE 77 MEMBER OF (s->'$.l')")
    note("grants", "SHOW GRANTS FOR keeper@'%'")
    note("persisted", "SELECT @@max_connections")
    return found


def row_sums(table: str, columns: list[str]) -> str:
    """The statement that counts and adds up all rows. CHECKSUM TABLE would not do: it also reads unused bits of a
    record, which differ after a mere restart of the same server."""
    values = ", '|', ".join(f"IFNULL(HEX(CONCAT(`{column}`)), 'NULL')" for column in columns)
    digest = f"SHA2(CONCAT({values}), 256)"
    halves = (f"BIT_XOR(CAST(CONV(SUBSTR({digest}, {at}, 16), 16, 10) AS UNSIGNED))" for at in (1, 17))
    return f"SELECT COUNT(*), {', '.join(halves)} FROM `{table}`"


def differences(before: dict[str, str], after: dict[str, str]) -> str:
    """Sentences about differences and damaged indexes; empty where all is well."""
    wrong = [
        f"{name} ({before.get(name)} before, {after.get(name)} after)"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    wrong += [f"{name}: {value}" for name, value in after.items() if name.startswith("indexes") and "'OK'" not in value]
    return "; ".join(wrong)
