from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from lanner.store import schema
from lanner.store.schema import FORMAT_VERSION, MIGRATIONS, create, migrate


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """A database in the format that was number 1, once there are more: it has a table and a row."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE old (x)")
        connection.execute("INSERT INTO old VALUES (1)")
        connection.execute("PRAGMA user_version = 1")
        yield connection


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def tables(connection: sqlite3.Connection) -> dict[str, list[str]]:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return {
        name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        for (name,) in names.fetchall()
    }


def add_column(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE old ADD COLUMN y DEFAULT 2")


def rename(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE old RENAME TO new")


def fail(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM new")
    raise ZeroDivisionError


def end_transaction(connection: sqlite3.Connection) -> None:
    """Do what a full disk does: end the transaction before the error is raised."""
    connection.execute("ROLLBACK")
    raise ZeroDivisionError


def test_the_tables_are_the_documented_ones() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        create(connection)
        assert tables(connection) == {
            "history": ["first", "last", "data"],
            "message": [
                *("lookup", "queue", "id", "correlation", "size", "class", "flags", "arrived"),
                *("expires", "aborts", "segment", "start", "length"),
            ],
            "meta": ["key", "value"],
            "outcome": ["key", "value", "time"],
            "queue": ["id", "kind", "path", "parent", "record", "security"],
            "reader": ["name", "confirmed", "registered", "seen"],
            "segment": ["id", "data"],
            "state": ["scope", "key", "value"],
        }
        assert version(connection) == FORMAT_VERSION
        assert connection.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)


def test_there_is_a_way_from_every_older_format() -> None:
    assert sorted(MIGRATIONS) == list(range(1, FORMAT_VERSION))


def test_steps_are_taken_in_order(connection: sqlite3.Connection) -> None:
    migrate(connection, 1, target=3, steps={2: rename, 1: add_column})
    assert version(connection) == 3
    assert connection.execute("SELECT x, y FROM new").fetchall() == [(1, 2)]


def test_only_the_steps_that_are_needed_are_taken(connection: sqlite3.Connection) -> None:
    migrate(connection, 2, target=3, steps={1: fail, 2: rename, 3: fail})
    assert version(connection) == 3
    assert tables(connection) == {"new": ["x"]}


def test_nothing_to_do(connection: sqlite3.Connection) -> None:
    migrate(connection, 3, target=3, steps={})
    assert version(connection) == 1
    assert not connection.in_transaction


@pytest.mark.parametrize(
    ("last_step", "error"),
    [(fail, ZeroDivisionError), (end_transaction, ZeroDivisionError), (add_column, sqlite3.OperationalError)],
)
def test_a_step_that_fails_undoes_all(
    connection: sqlite3.Connection, last_step: Callable[[sqlite3.Connection], None], error: type[Exception]
) -> None:
    with pytest.raises(error):
        migrate(connection, 1, target=4, steps={1: add_column, 2: rename, 3: last_step})
    assert not connection.in_transaction
    assert version(connection) == 1
    assert tables(connection) == {"old": ["x"]}
    assert connection.execute("SELECT x FROM old").fetchall() == [(1,)]


def test_a_step_that_is_missing_undoes_all(connection: sqlite3.Connection) -> None:
    with pytest.raises(KeyError):
        migrate(connection, 1, target=3, steps={1: add_column})
    assert version(connection) == 1
    assert tables(connection) == {"old": ["x"]}
