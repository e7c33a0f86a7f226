"""Copies of the whole database: made while the dashboard runs, checked in full, and put back in its place."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfile

import duckdb

from tepa_core.files import FileRefused, beside, reason, sync_folder
from tepa_core.store import condition, queries
from tepa_core.store.connection import Store, StoreError
from tepa_core.store.events import database_ledger
from tepa_core.store.ledger import verify_ledger
from tepa_core.store.opened import CAN_COPY_OPEN_FILES, copy_between_writes, locked_down


@dataclass(frozen=True, slots=True)
class Copied:
    """A database that was copied and checked.

    Attributes
    ----------
    runs, decisions
        How many there are in it.
    size
        Of the file, in bytes.
    broken
        Ledgers that do not verify, as the database has them: ids of runs, and ``""`` for that of the database.
    kept
        After `restore`: where the database stands that was there before; None when there was none.
    """

    runs: int
    decisions: int
    size: int
    broken: tuple[str, ...] = ()
    kept: Path | None = None


def backup(database: Path | Store, to: Path, *, over: bool = False) -> Copied:
    """Write a copy of a database that opens by itself, and check it.

    Nothing is written to the database meanwhile; whoever wants to waits for the copy.

    Parameters
    ----------
    database
        What this process has open, or the path of a file that another process may have open.
    to
        The file to write.
    over
        Whether a file that is there may be replaced.

    Raises
    ------
    StoreError
        If the database cannot be read or the copy is not sound; ``to`` is left as it was.
    FileRefused
        If the copy cannot be written.
    """
    with beside(to, replace=over) as part:
        if isinstance(database, Store):
            database.copy_to(part)
        elif CAN_COPY_OPEN_FILES:
            copy_between_writes(_there(database), part)
        else:
            with Store(_there(database)) as store:
                store.copy_to(part)
        return _examine(part, to)


def restore(source: Path, path: Path) -> Copied:
    """Put a backup in the place of a database, which is kept beside it under a dated name.

    The backup is copied and the copy checked in full before anything else is touched: its tables, every block of them,
    and every ledger.

    Raises
    ------
    StoreError
        If the backup is not sound, or a process has the database open; the database is left as it was.
    FileRefused
        If the folder cannot be written.
    """
    if not source.is_file():
        raise StoreError(f"There is no file {source} to restore from.")
    if path.exists() and source.samefile(path):
        raise StoreError(f"{source} is the database itself; name a backup of it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileRefused(f"{path} cannot be written: {reason(error)}") from None
    path = path.resolve()
    _settle(path)
    with _nobody_in(path), beside(path, replace=True) as part:
        if CAN_COPY_OPEN_FILES:
            copy_between_writes(source, part)
        else:
            condition.before_opening(source)
            copyfile(source, part)
        found = _examine(part, source)
        if found.broken:
            what = f"the ledger of run {found.broken[0]}" if found.broken[0] else "the ledger of the database"
            raise StoreError(
                f"{source} is not put in place: {what} does not verify, so rows of it were changed or removed. Look at "
                f"it with `python -m tepa_core --db {source} ledger --verify`, or name another backup."
            )
        kept = _keep(path)
        # At the end of this block the copy takes the name of the database.
    return replace(found, kept=kept)


def _there(path: Path) -> Path:
    if not path.exists():
        raise StoreError(f"There is no database {path} to make a backup of; name yours with --db.")
    return path


def _examine(part: Path, name: Path) -> Copied:
    """Open a copy, which takes in its log of writes, read all of it and check its ledgers.

    What it says of itself is believed in nothing: its tables are compared with those that this program makes.
    """
    try:
        with Store(part) as store:
            listed = list(queries.runs(store)["run_id"])
            with store.read() as cursor:
                tables = [row[0] for row in cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
                for table in tables:
                    quoted = '"' + table.replace('"', '""') + '"'
                    # Every value of every row, so that every block is read and its checksum compared.
                    cursor.execute(f"SELECT bit_xor(hash(t)) FROM {quoted} AS t").fetchone()  # noqa: S608 - quoted
                counted = cursor.execute("SELECT count(*) FROM decision").fetchone()
            broken = [run_id for run_id in listed if not verify_ledger(store, run_id).ok]
            broken += [] if database_ledger(store).ok else [""]
    except StoreError as error:
        raise StoreError(str(error).replace(str(part), str(name))) from None
    except duckdb.Error as error:
        raise StoreError(f"{name} is damaged: {condition.first_line(error)}. Take another backup.") from None
    return Copied(len(listed), counted[0] if counted else 0, part.stat().st_size, tuple(broken))


def _settle(path: Path) -> None:
    """Move the log of writes into the database that is there, if it still opens; closing does that."""
    with suppress(duckdb.Error, StoreError):
        condition.before_opening(path)
        if path.exists():
            locked_down(path).close()


@contextmanager
def _nobody_in(path: Path) -> Iterator[None]:
    """Make sure that no process has a database open, and keep it so; a damaged one cannot be asked by opening it."""
    if sys.platform == "win32" or not path.exists():
        yield  # there a file that somebody has open cannot be renamed
        return
    import fcntl

    writable = os.access(path, os.W_OK)
    descriptor = os.open(path, os.O_RDWR if writable else os.O_RDONLY)
    try:
        try:
            # The lock that DuckDB takes.
            fcntl.lockf(descriptor, (fcntl.LOCK_EX if writable else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError:
            raise condition.InUseError(
                f"{path} is open in another process. Close the dashboard or command that uses it before you restore."
            ) from None
        yield
    finally:
        os.close(descriptor)


def _keep(path: Path) -> Path | None:
    """Give the database that is there a second, dated name; its log of writes goes with it."""
    log = path.with_name(f"{path.name}.wal")
    if not path.exists() and not log.exists():
        return None
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    kept = path.with_name(f"{path.stem}.before-restore-{stamp}{path.suffix}")
    try:
        if path.exists():
            _second_name(path, kept)
        if log.exists():
            _second_name(log, kept.with_name(f"{kept.name}.wal"))
            sync_folder(path.parent)
            # It belongs to the old file; beside the new one it would be taken for the new one's.
            log.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise FileRefused(f"{path} cannot be kept as {kept.name}: {reason(error)}") from None
    return kept


def _second_name(path: Path, name: Path) -> None:
    try:
        os.link(path, name)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        with beside(name) as part:
            copyfile(path, part)
