"""The schema and its versions. A migration is a function of a cursor inside a transaction."""

from __future__ import annotations

from collections.abc import Callable
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
        If the file was written by a newer program.
    """
    cursor.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
    row = cursor.execute("SELECT max(version) FROM schema_version").fetchone()
    version = (row[0] if row else None) or 0
    if version > len(MIGRATIONS):
        raise ValueError(
            f"it has schema version {version}, this program knows up to {len(MIGRATIONS)}; use a newer program"
        )
    for number in range(version, len(MIGRATIONS)):
        MIGRATIONS[number](cursor)
        cursor.execute("INSERT INTO schema_version VALUES (?)", [number + 1])
    return version < len(MIGRATIONS)
