"""Handles on one open database: each reads, and writes only for somebody who may."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import duckdb

from tepa_core.decisions import Actor, check_may_write
from tepa_core.store.condition import PATH_VARIABLE, StoreError
from tepa_core.store.opened import OpenFile

__all__ = ["DEFAULT_PATH", "PATH_VARIABLE", "Store", "StoreError", "default_path"]

#: Where the database is when `PATH_VARIABLE` names none: under the working folder.
DEFAULT_PATH: Final = Path("data") / "tepa.duckdb"


def default_path() -> Path:
    """Return the database that the environment names, else the default."""
    return Path(os.environ.get(PATH_VARIABLE) or DEFAULT_PATH)


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
        self._file = OpenFile(path)

    def read(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """Give a cursor of its own: a shared one returns rows of another thread's question.

        Raises
        ------
        StoreError
            If the file cannot be read: damaged, or no space for the work. The next question may be answered.
        """
        return self._file.cursor()

    @property
    def generation(self) -> int:
        """How often was written: an answer kept under it is never older than the question."""
        return self._file.done

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
        StoreError
            If the file cannot be written, or its name does not lead to what is open any more.
        """
        self.permit()
        with self._file.transaction() as cursor:
            yield cursor

    def check(self) -> None:
        """Find out whether what is open is still what stands under the name.

        Raises
        ------
        StoreError
            If it was deleted or replaced: nothing can be saved.
        """
        self._file.check()

    def copy_to(self, part: Path) -> None:
        """Copy what is stored to another file, between two writes; see `tepa_core.store.backup`."""
        self._file.copy_to(part)

    def close(self) -> None:
        """Close the file, so that another process can open it."""
        self._file.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
