"""One Python driver against a server: driver.py MODULE HOST PORT USER PASSWORD."""

import datetime
import decimal
import importlib
import sys

ROWS = [
    (1, "plain", decimal.Decimal("1.50"), datetime.datetime(2026, 1, 2, 3, 4, 5), b"\x00\x01\xff"),
    (2, "漢字 🐬 'quoted'", decimal.Decimal("-99999.99"), datetime.datetime(1999, 12, 31), None),
]


def main(module: str, host: str, port: str, user: str, password: str) -> None:
    driver = importlib.import_module(module)
    connection = driver.connect(host=host, port=int(port), user=user, password=password)
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE client.t (id INT PRIMARY KEY, s TEXT, d DECIMAL(9, 2), at DATETIME, b BLOB)")
    cursor.executemany("INSERT INTO client.t VALUES (%s, %s, %s, %s, %s)", ROWS)
    connection.commit()
    cursor.execute("DELETE FROM client.t")
    connection.rollback()
    cursor.execute("SELECT * FROM client.t ORDER BY id")
    got = list(cursor.fetchall())
    assert got == ROWS, got
    try:
        cursor.execute("INSERT INTO client.t (id) VALUES (1)")
    except driver.IntegrityError as error:
        assert error.args[0] == 1062, error
    else:
        raise AssertionError("a duplicate key was taken")
    cursor.execute("SELECT live_bytes FROM information_schema.memdiag_pools WHERE pool = %s", ("general",))
    assert cursor.fetchone()[0] > 0
    cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_version'")
    assert cursor.fetchone()[1], "not encrypted"


main(*sys.argv[1:])
