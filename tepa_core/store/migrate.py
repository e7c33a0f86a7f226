"""The schema and its versions. A migration is a function of a cursor inside a transaction."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files

import duckdb


def _first_schema(cursor: duckdb.DuckDBPyConnection) -> None:
    cursor.execute(files("tepa_core.store").joinpath("schema.sql").read_text(encoding="utf-8"))


def _answers(cursor: duckdb.DuckDBPyConnection) -> None:
    cursor.execute(
        """
        CREATE TABLE answer (
            model VARCHAR NOT NULL,
            prompt_digest VARCHAR NOT NULL,
            answer VARCHAR NOT NULL,
            created_at TIMESTAMPTZ NOT NULL,
            PRIMARY KEY (model, prompt_digest)
        )
        """
    )


def _decisions(cursor: duckdb.DuckDBPyConnection) -> None:
    cursor.execute(
        """
        CREATE TABLE decision (
            run_id VARCHAR NOT NULL,
            number BIGINT NOT NULL,
            decision_id VARCHAR NOT NULL,
            precedent_id VARCHAR NOT NULL,
            action VARCHAR NOT NULL CHECK (action IN ('reactivate', 'confirm', 'both_valid', 'undo')),
            pinned BOOLEAN NOT NULL,
            category VARCHAR NOT NULL CHECK (
                category IN ('wrong_revocation', 'obsolete', 'key_error', 'duplicate', 'policy', 'other')),
            reason VARCHAR,
            reviewer VARCHAR NOT NULL,
            authenticated BOOLEAN NOT NULL,
            decided_at TIMESTAMPTZ NOT NULL,
            effective_at BIGINT NOT NULL,
            version VARCHAR NOT NULL,
            effect VARCHAR NOT NULL,
            undoes VARCHAR,
            reason_salt VARCHAR,
            reason_digest VARCHAR NOT NULL,
            previous_hash VARCHAR NOT NULL,
            hash VARCHAR NOT NULL
        );
        -- Apart from the rows, so that it shows when the last of them are gone.
        CREATE TABLE ledger_head (
            run_id VARCHAR PRIMARY KEY,
            decisions BIGINT NOT NULL,
            hash VARCHAR NOT NULL
        );
        """
    )


def _settings(cursor: duckdb.DuckDBPyConnection) -> None:
    cursor.execute(
        """
        CREATE TABLE setting (
            name VARCHAR PRIMARY KEY,
            thresholds VARCHAR NOT NULL,
            created_at TIMESTAMPTZ NOT NULL
        )
        """
    )


def _events(cursor: duckdb.DuckDBPyConnection) -> None:
    cursor.execute(
        """
        -- What happened to whole runs. A row is about a run and does not belong to it: it stays when the run goes.
        CREATE TABLE event (
            number BIGINT NOT NULL,
            happened_at TIMESTAMPTZ NOT NULL,
            who VARCHAR NOT NULL,
            authenticated BOOLEAN NOT NULL,
            what VARCHAR NOT NULL CHECK (what IN ('run deleted', 'run imported')),
            of_run VARCHAR NOT NULL,
            kind VARCHAR NOT NULL,
            name_digest VARCHAR NOT NULL,
            decisions BIGINT NOT NULL,
            head_hash VARCHAR NOT NULL,
            file_digest VARCHAR,
            previous_hash VARCHAR NOT NULL,
            hash VARCHAR NOT NULL
        );
        -- Apart from the rows, so that it shows when the last of them are gone; there is one.
        CREATE TABLE event_head (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            events BIGINT NOT NULL,
            hash VARCHAR NOT NULL
        );
        """
    )


#: Version n is reached by MIGRATIONS[n - 1].
MIGRATIONS: tuple[Callable[[duckdb.DuckDBPyConnection], None], ...] = (
    _first_schema,
    _answers,
    _decisions,
    _settings,
    _events,
)


def migrate(cursor: duckdb.DuckDBPyConnection) -> bool:
    """Bring the database to the newest version and say whether anything changed.

    Raises
    ------
    ValueError
        If the file was written by a newer program, or its tables are not those of this one.
    """
    before = _version(cursor)
    if before > len(MIGRATIONS):
        raise ValueError(
            f"it has schema version {before}, this program knows up to {len(MIGRATIONS)}; use a newer program"
        )
    for number in range(before, len(MIGRATIONS)):
        MIGRATIONS[number](cursor)
        cursor.execute("INSERT INTO schema_version VALUES (?)", [number + 1])
    _check_shape(cursor)
    return before < len(MIGRATIONS)


def _version(cursor: duckdb.DuckDBPyConnection) -> int:
    """Return the version of the schema, 0 for a file without tables, whose table of versions is made."""
    shape = _shape(cursor)
    if not shape:
        cursor.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
        return 0
    if "schema_version" not in shape:
        raise ValueError("it has tables, and none that says which version they are: it is of another program")
    if shape["schema_version"] != (("version", "INTEGER", False),):
        raise ValueError("its table schema_version is not as this program makes it: it is of another program")
    versions = sorted(version for (version,) in cursor.execute("SELECT version FROM schema_version").fetchall())
    if versions and versions[-1] > len(MIGRATIONS):
        return int(versions[-1])
    if versions != list(range(1, len(versions) + 1)):
        raise ValueError(
            f"its table schema_version says {versions}, not 1, 2, ...: it was changed by hand or is damaged"
        )
    return len(versions)


def _check_shape(cursor: duckdb.DuckDBPyConnection) -> None:
    found = _shape(cursor)
    for table, columns in _expected(MIGRATIONS).items():
        if found.get(table) != columns:
            what = "is missing" if table not in found else "has other columns than this program makes"
            raise ValueError(f"its table {table} {what}: it was changed by hand or is of another program")


#: Table -> its columns in order: name, type, whether null may stand in it.
Shape = dict[str, tuple[tuple[str, str, bool], ...]]


def _shape(cursor: duckdb.DuckDBPyConnection) -> Shape:
    rows = cursor.execute(
        """
        SELECT table_name, list((column_name, data_type, is_nullable) ORDER BY column_index)
        FROM duckdb_columns()
        WHERE database_name = current_database() AND table_name IN (SELECT table_name FROM duckdb_tables())
        GROUP BY table_name
        """
    ).fetchall()
    return {table: tuple((str(name), str(kind), bool(null)) for name, kind, null in columns) for table, columns in rows}


@lru_cache(maxsize=4)
def _expected(migrations: tuple[Callable[[duckdb.DuckDBPyConnection], None], ...]) -> Shape:
    """Return the shape that these migrations give, by running them in memory."""
    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
        for migration in migrations:
            migration(connection)
        return _shape(connection)
