"""One DuckDB file, one connection for the process, one cursor for each question or write."""

from __future__ import annotations

import copy
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import duckdb

from tepa_core.decisions import Actor, check_may_write
from tepa_core.store.migrate import migrate

#: Names the database file; else `DEFAULT_PATH` under the working folder.
PATH_VARIABLE: Final = "TEPA_DB"
DEFAULT_PATH: Final = Path("data") / "tepa.duckdb"


class StoreError(RuntimeError):
    """The database cannot be used; the message says why and what to do."""


def default_path() -> Path:
    """Return the database that the environment names, else the default."""
    return Path(os.environ.get(PATH_VARIABLE) or DEFAULT_PATH)


@dataclass(slots=True)
class _Writes:
    """What all handles on one open database share: one write at a time, and how many there were."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    done: int = 0


class Store:
    """A handle on an open database. It reads; who may write is asked of the one that it acts for.

    Parameters
    ----------
    path
        File to open; made with its folder when absent.
    actor
        Whom it acts for; left out, it can only read. `acting` gives a handle for somebody else.

    Raises
    ------
    StoreError
        If another process holds the file, it is no database of this program, or it cannot be made.
    """

    def __init__(self, path: Path, actor: Actor | None = None) -> None:
        self.path = path
        self.actor = actor
        self._writes = _Writes()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _locked_down(path)
        except duckdb.IOException as error:
            if "lock" in str(error).lower():
                raise StoreError(
                    f"{path} is open in another process. Close the dashboard or command that uses it, "
                    f"or name another file with --db or {PATH_VARIABLE}."
                ) from None
            raise StoreError(f"{path} cannot be opened as a database: {_first_line(error)}") from None
        except (duckdb.Error, OSError) as error:
            raise StoreError(f"{path} cannot be opened as a database: {_first_line(error)}") from None
        try:
            with self._transaction() as cursor:
                changed = migrate(cursor)
            if changed:
                self._connection.execute("CHECKPOINT")
        except (ValueError, duckdb.Error) as error:
            self._connection.close()
            raise StoreError(
                f"{path} cannot be used: {_first_line(error)}. "
                f"Name another file with --db or {PATH_VARIABLE}; this one was left as it is."
            ) from None

    @contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a cursor of its own: a shared one returns rows of another thread's question."""
        cursor = self._connection.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    @property
    def generation(self) -> int:
        """How often was written: an answer kept under it is never older than the question."""
        return self._writes.done

    def acting(self, actor: Actor) -> Store:
        """Return a handle on the same open database that acts for somebody."""
        handle = copy.copy(self)
        handle.actor = actor
        return handle

    def permit(self) -> Actor:
        """Return who acts, before long work whose end is a write.

        Raises
        ------
        PermissionRefused
            If whoever acts may not write.
        """
        check_may_write(self.actor, time.time())
        assert self.actor is not None  # noqa: S101 - it was checked in the line before
        return self.actor

    @contextmanager
    def write(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a cursor inside a transaction: committed at the end, or nothing of it is kept.

        Raises
        ------
        PermissionRefused
            If whoever acts may not write.
        """
        self.permit()
        with self._transaction() as cursor:
            yield cursor

    @contextmanager
    def _transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._writes.lock, self.read() as cursor:
            cursor.begin()
            try:
                yield cursor
            except BaseException:
                cursor.rollback()
                raise
            cursor.commit()
            self._writes.done += 1

    def close(self) -> None:
        """Close the file, so that another process can open it."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _locked_down(path: Path) -> duckdb.DuckDBPyConnection:
    """Open the file so that no statement, whoever wrote it, reaches another file, the network or an extension."""
    connection = duckdb.connect(
        str(path),
        config={
            "enable_external_access": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            # A name in a statement is a table, never a variable of the program.
            "python_enable_replacements": "false",
        },
    )
    # For every cursor to come: a lock forbids them to set it themselves.
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    connection.execute("SET lock_configuration = true")
    return connection


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
