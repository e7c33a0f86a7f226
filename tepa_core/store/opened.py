"""The open file behind all handles: its one connection, who is in it, and what becomes of both when a disk fails.

Beside DuckDB's connection stands a descriptor of its own on the same file, for three reasons. It says whether the name
still leads to the file that is open. A backup reads through it: to open the file a second time in this process, and
close it, would drop DuckDB's lock (POSIX drops all locks of a process on a file with the first descriptor that it
closes). And `flock` on it tells other processes when nothing is being written, so that they can copy the file.
"""

from __future__ import annotations

import gc
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import duckdb

from tepa_core.files import FileRefused, beside, reason
from tepa_core.store import condition
from tepa_core.store.condition import StoreError
from tepa_core.store.migrate import migrate

#: How long somebody waits for others: to leave a dead connection, or for a copy that another process makes.
PATIENCE: Final = 60.0
_PIECE: Final = 1 << 20


class OpenFile:
    """One open database file, shared by every handle of the process.

    Attributes
    ----------
    done : int
        How often was written since it was opened.

    Parameters
    ----------
    path
        File to open; made with its folder when absent.

    Raises
    ------
    StoreError
        If it cannot be opened, or is no database of this program.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done = 0
        self._writing = threading.Lock()
        self._inside = threading.Condition()
        self._cursors = 0
        self._dead = False
        self._descriptor: int | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._open()

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a cursor; what the disk or the file refuses inside is said in words.

        Raises
        ------
        StoreError
            For a condition of the file, see `tepa_core.store.condition`.
        """
        cursor = self._enter()
        try:
            yield cursor
        except duckdb.Error as error:
            if condition.is_dead(error):
                self._dead = True
            refusal = condition.in_words(self.path, error)
            if refusal is None:
                raise
            raise refusal from error
        finally:
            with suppress(duckdb.Error):
                cursor.close()
            with self._inside:
                self._cursors -= 1
                self._inside.notify_all()

    @contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a cursor inside a transaction, one at a time: committed at the end, or nothing of it is kept.

        Raises
        ------
        StoreError
            For a condition of the file; so also if it was deleted or replaced, before or while it was written.
        """
        with self._writing, self.cursor() as cursor, self._alone():
            self.check()
            cursor.begin()
            try:
                yield cursor
                self.check()
            except BaseException:
                with suppress(duckdb.Error):  # a dead connection has nothing to take back
                    cursor.rollback()
                raise
            cursor.commit()
            # Only what is still there under its name may be called saved.
            self.check(written=cursor)
            self.done += 1

    def check(self, written: duckdb.DuckDBPyConnection | None = None) -> None:
        """Find out whether the name still leads to the open file, and after a write, whether its log is there.

        Raises
        ------
        FileGoneError
            If it does not.
        """
        assert self._descriptor is not None  # noqa: S101 - asked of an open file only
        mine = os.fstat(self._descriptor)
        try:
            there = self.path.stat()
        except OSError:
            raise condition.gone(self.path, replaced=False) from None
        if (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino):
            raise condition.gone(self.path, replaced=True)
        if written is not None and not self.log.exists():
            row = written.execute("SELECT wal_size FROM pragma_database_size()").fetchone()
            if row is not None and row[0] != "0 bytes":
                raise condition.gone(self.log, replaced=False)

    @property
    def log(self) -> Path:
        """Where DuckDB logs what it writes until the next checkpoint."""
        return self.path.with_name(f"{self.path.name}.wal")

    def copy_to(self, part: Path) -> None:
        """Copy file and log of writes byte by byte, between two writes; ``part`` opens as what is stored now.

        Works after the file was deleted or replaced as well, as long as all writes could be moved into it.

        Raises
        ------
        StoreError
            If the log of writes is gone and cannot be moved into the file.
        OSError
            If the copy cannot be written.
        """
        with self._writing, self.cursor() as cursor, self._alone():
            assert self._descriptor is not None  # noqa: S101 - `cursor` has opened it
            try:
                self.check(written=cursor)
            except condition.FileGoneError:
                # The log that stands under this name, if any, is of another file.
                cursor.execute("CHECKPOINT")
                _copy(self._descriptor, part)
                return
            copy_pair(self._descriptor, self.path, part)

    def close(self) -> None:
        """Close the file, so that another process can open it."""
        with self._writing, self._inside:
            self._shut()

    def _enter(self) -> duckdb.DuckDBPyConnection:
        with self._inside:
            if self._dead:
                self._open_anew()
            if self._connection is None:
                raise StoreError(f"{self.path} is closed in this process.")
            try:
                cursor = self._connection.cursor()
            except duckdb.Error as error:
                self._dead = self._dead or condition.is_dead(error)
                raise condition.in_words(self.path, error) or error from None
            self._cursors += 1
            return cursor

    def _open_anew(self) -> None:
        """Open the file again after an error of the disk had closed it to everybody; tried at each question."""
        if not self._inside.wait_for(lambda: self._cursors == 0 or not self._dead, PATIENCE):
            raise StoreError(f"{self.path} is still being closed after an error of the disk: try again in a minute.")
        if not self._dead:
            return
        if self._connection is not None:
            self.check()
        self._shut()
        # A result that somebody still holds would keep the dead connection, and DuckDB would give it out again.
        gc.collect()
        self._open()
        self._dead = False
        # The write that failed last may have reached the disk: no answer from before counts.
        self.done += 1

    def _open(self) -> None:
        path = self.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            condition.before_opening(path)
            if not path.exists():
                _make(path)
            self._descriptor = os.open(path, os.O_RDONLY)
            with self._alone():
                self._connection = locked_down(path)
                _migrate(self._connection, path)
        except BaseException as error:
            self._shut()
            if not isinstance(error, duckdb.Error | OSError):
                raise
            refusal = condition.in_words(path, error)
            if refusal is None:
                refusal = StoreError(f"{path} cannot be opened as a database: {condition.first_line(error)}.")
            raise refusal from None

    def _shut(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            # Closing moves the log into the file. A dead connection cannot, and a copy that never ends holds up nobody.
            with suppress(duckdb.Error, StoreError), self._alone():
                connection.close()
            connection.close()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from copying the file while it is written."""
        if self._descriptor is None:
            yield
            return
        with _flock(self._descriptor, self.path, exclusive=True):
            yield


def locked_down(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a file so that no statement, whoever wrote it, reaches another file, the network or an extension."""
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


def copy_between_writes(path: Path, part: Path) -> None:
    """Copy a database that another process may have open, while that one writes nothing.

    Raises
    ------
    StoreError
        If it is not there, or this system cannot tell when another process writes.
    OSError
        If the copy cannot be written.
    """
    condition.before_opening(path)
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {reason(error)}.") from None
    try:
        with _flock(descriptor, path, exclusive=False):
            copy_pair(descriptor, path, part)
    finally:
        os.close(descriptor)


#: Whether this system can copy a file that another process has open; elsewhere locks of both kinds stop each other.
CAN_COPY_OPEN_FILES: Final = sys.platform == "linux"


def copy_pair(descriptor: int, path: Path, part: Path) -> None:
    """Copy a file and the log of writes beside it, which nobody writes meanwhile."""
    _copy(descriptor, part)
    with suppress(FileNotFoundError):
        log = os.open(path.with_name(f"{path.name}.wal"), os.O_RDONLY)
        try:
            _copy(log, part.with_name(f"{part.name}.wal"))
        finally:
            os.close(log)


def _copy(descriptor: int, to: Path) -> None:
    with to.open("wb") as file:
        if os.name == "posix":
            # What only its owner may read stays so in a copy; who makes the copy has to write it.
            os.fchmod(file.fileno(), stat.S_IMODE(os.fstat(descriptor).st_mode) | stat.S_IRUSR | stat.S_IWUSR)
        at = 0
        # Reads at a place leave the position alone, which other readers of the descriptor share.
        while piece := os.pread(descriptor, _PIECE, at):
            file.write(piece)
            at += len(piece)


def _make(path: Path) -> None:
    """Make a new database, whole or not at all: a kill or a full disk leaves no stub that could not be opened."""
    try:
        with beside(path) as part:
            part.unlink()
            with locked_down(part) as connection:
                _migrate(connection, path)
    except FileRefused as refusal:
        # Another process may have made it in the meantime: then there it is.
        if not path.exists():
            raise StoreError(f"{refusal}.") from None


def _migrate(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    with connection.cursor() as cursor:
        try:
            cursor.begin()
            changed = migrate(cursor)
            cursor.commit()
            if changed:
                cursor.execute("CHECKPOINT")
        except ValueError as error:
            raise StoreError(
                f"{path} cannot be used: {error}. Name another file with --db or {condition.PATH_VARIABLE}; this one "
                "was left as it is."
            ) from None


@contextmanager
def _flock(descriptor: int, path: Path, *, exclusive: bool) -> Iterator[None]:
    """Hold the lock by which processes agree who writes and who copies; it ends with whoever is killed."""
    if sys.platform != "linux":
        yield
        return
    import fcntl

    until = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > until:
                doing = "copied" if exclusive else "written"
                raise StoreError(
                    f"{path} has been {doing} by another process for {PATIENCE:.0f} s: wait for that, and try again."
                ) from None
            time.sleep(0.02)
        except OSError as error:
            if not exclusive:
                raise StoreError(
                    f"{path} is on a file system that cannot tell when it is written: close the dashboard first."
                ) from error
            # Nobody can copy there either.
            yield
            return
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
