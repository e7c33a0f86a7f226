"""What can be wrong with the file of the database, each in a sentence with its remedy."""

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import Final

import duckdb

from tepa_core.files import reason

#: Names the database file.
PATH_VARIABLE: Final = "TEPA_DB"

_HEADER_BYTES = 16
#: Where a DuckDB file says what it is, after a checksum of eight bytes.
_DUCKDB = (8, b"DUCK")
_SQLITE = b"SQLite format 3\x00"

_OTHER = f"name another file with --db or {PATH_VARIABLE}"
_BACK = "put a backup in its place with `python -m tepa_core restore BACKUP`"

#: What DuckDB says -> what is the matter. The first that is found counts.
_SIGNS = {
    "full": re.compile(r"No space left|Disk quota exceeded|File too large|not enough space|offload data block", re.I),
    "in use": re.compile(r"Could not set lock on file|Conflicting lock|being used by another process", re.I),
    "not allowed": re.compile(
        r"Permission denied|Read-only file system|Operation not permitted|Access is denied|in read-only mode", re.I
    ),
    "no folder": re.compile(r"No such file or directory|Not a directory|cannot find the path", re.I),
    "a folder": re.compile(r"Is a directory", re.I),
    "damaged": re.compile(
        r"Corrupt database file|does not match stored checksum|Could not read enough bytes|replaying WAL"
        r"|valid DuckDB database|Serialization Error|deserializ|Failed to load metadata",
        re.I,
    ),
}


#: Errors that speak of the file; others speak of a statement, and may quote what a person typed.
_OF_THE_FILE = (
    duckdb.IOException,
    duckdb.FatalException,
    duckdb.InternalException,
    duckdb.OutOfMemoryException,
    duckdb.PermissionException,
    duckdb.SerializationException,
    duckdb.TransactionException,
    duckdb.ConnectionException,
)


class StoreError(RuntimeError):
    """The database cannot be used; the message says why and what to do."""


class InUseError(StoreError):
    """Another process has the database open."""


class FileGoneError(StoreError):
    """The file was deleted or replaced while it was open."""


def gone(path: Path, *, replaced: bool) -> FileGoneError:
    """Say that the name does not lead to the open file any more."""
    what = "replaced by another file" if replaced else "deleted or moved"
    return FileGoneError(
        f"{path} was {what} while this program had it open, so nothing can be saved to it any more, and the last "
        "change was not. What was saved before can still be read: take a backup with the button on page Run, then "
        "put the right file there and start the dashboard again."
    )


def before_opening(path: Path) -> None:
    """Refuse what is not even to be opened: no DuckDB file, a folder, a folder where the log of writes belongs.

    DuckDB would answer an SQLite file by looking for an extension.

    Raises
    ------
    StoreError
        With the reason and the remedy.
    """
    try:
        if path.is_dir():
            raise StoreError(f"{path} cannot be opened as a database: it is a folder; name a file in it.")
        if path.with_name(f"{path.name}.wal").is_dir():
            raise StoreError(
                f"{path} cannot be opened as a database: {path.name}.wal beside it, where each write is logged first, "
                f"is a folder. Move that away, or {_OTHER}."
            )
        with path.open("rb") as file:
            begin = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path} cannot be opened as a database: {reason(error)}.") from None
    place, mark = _DUCKDB
    if begin == _SQLITE:
        raise StoreError(f"{path} cannot be opened as a database: it is an SQLite file, not one of ours; {_OTHER}.")
    if not begin:
        raise StoreError(
            f"{path} cannot be opened as a database: it is empty. Delete it to start anew, {_BACK}, or {_OTHER}."
        )
    if begin[place : place + len(mark)] != mark:
        raise StoreError(f"{path} cannot be opened as a database: it is no DuckDB file; {_OTHER}.")


def in_words(path: Path, error: Exception) -> StoreError | None:
    """Say what an error of the database means; None when it is no condition of the file but a fault of ours.

    Parameters
    ----------
    path
        The database.
    error
        Of DuckDB, or of the system.
    """
    if isinstance(error, OSError):
        if error.errno in (errno.ENOENT, errno.EEXIST):
            return StoreError(f"{path} cannot be opened as a database: {reason(OSError(errno.ENOTDIR, ''))}.")
        return StoreError(f"{path} cannot be opened as a database: {reason(error)}.")
    # What is damaged comes as the common base of all errors, without a kind of its own.
    if not isinstance(error, _OF_THE_FILE) and type(error) is not duckdb.Error:
        return None
    said = str(error)
    sign = next((name for name, pattern in _SIGNS.items() if pattern.search(said)), None)
    match sign:
        case "full":
            return StoreError(
                f"There is no space left where {path} is (or for its work): free some, look whether the last change is "
                "there, and repeat it if not. What was saved before is safe."
            )
        case "in use":
            return InUseError(
                f"{path} is open in another process. Close the dashboard or command that uses it, or {_OTHER}."
            )
        case "not allowed":
            return StoreError(
                f"{path} cannot be written: it or its folder is read-only, and the log of writes stands beside "
                f"it. Change the permissions, or {_OTHER}."
            )
        case "no folder":
            return StoreError(
                f"{path} cannot be opened as a database: its folder is not there, or is a file. Make the folder, or "
                f"{_OTHER}."
            )
        case "a folder":
            return StoreError(f"{path} cannot be opened as a database: it is a folder; name a file in it.")
        case "damaged":
            return StoreError(
                f"{path} is damaged and cannot be opened as a database, or not all of it: {_BACK}, or {_OTHER}."
            )
    if is_dead(error):
        return StoreError(f"{path} had to be closed after an error of the disk. Try again: it is opened anew.")
    if isinstance(error, duckdb.IOException):
        return StoreError(f"{path} cannot be read or written: {first_line(error)}. Check the disk, or {_OTHER}.")
    if isinstance(error, duckdb.OutOfMemoryException):
        return StoreError(f"There is not enough memory to answer this from {path}: close other programs and try again.")
    return None


def is_dead(error: Exception) -> bool:
    """Tell whether the open database answers nothing any more until it is opened anew."""
    return isinstance(error, duckdb.FatalException | duckdb.InternalException) or "has been invalidated" in str(error)


def first_line(error: Exception) -> str:
    """Return the first line of what an error says."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
