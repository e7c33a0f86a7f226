"""What every format of evidence file has in common: the table it is read into, its issues, and how it is refused."""

from __future__ import annotations

import codecs
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pandas as pd

from tepa_core.limits import USUAL, Limits

__all__ = [
    "ROW",
    "ImportRefused",
    "Importer",
    "Issue",
    "Measure",
    "Table",
    "check_names",
    "clipped",
    "digest",
    "kind_of",
    "quoted",
    "record_bytes",
    "scan_text",
]

ROW = "__row__"
"""Name of the integer column of a :class:`Table` that says where in the file a row begins."""

_CHUNK = 1024 * 1024
_RAW_LIMIT = 2000

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"PAR1", "a Parquet file"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive or Excel workbook"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh91AY&SY", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"ARROW1", "an Arrow or Feather file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"\x7fELF", "a program"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
)


class ImportRefused(ValueError):  # noqa: N818 - it names what happens to the file, and is shown to people
    """The file cannot be read as a log; the message says what is wrong and what to do. Nothing was half-done."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One record of a file which could not be read.

    Attributes
    ----------
    row : int
        Number of the physical line on which the record begins, from 1; in Parquet the number of the record, from 1.
    reason : str
        What is wrong with it.
    raw : str
        The record as it stands in the file, cut after 2,000 characters.
    """

    row: int
    reason: str
    raw: str


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A file of evidence as text, before anyone has said what its columns mean.

    Attributes
    ----------
    format : str
        Name of the importer which read it.
    frame : DataFrame
        One row per readable record. Every column is text in an object column (None: missing, "": an empty text),
        except the int64 column ``__row__``, counted as in :class:`Issue`.
    issues : tuple of Issue
        The records which could not be read, in file order.
    digest : str
        SHA-256 of the bytes of the file, in hexadecimal.
    inside : str or None
        Name of the array inside an object that holds the records; None where they are the file.
    """

    format: str
    frame: pd.DataFrame
    issues: tuple[Issue, ...]
    digest: str
    inside: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that came from the file."""
        return tuple(str(name) for name in self.frame.columns if name != ROW)


class Importer(Protocol):
    """One file format: recognises a file by its first bytes and reads it into a :class:`Table`."""

    @property
    def name(self) -> str:
        """Name under which a person chooses the format."""

    @property
    def extensions(self) -> tuple[str, ...]:
        """Usual file name endings, with the dot, in lower case."""

    def sniff(self, path: Path, head: bytes) -> bool:
        """Say whether the file looks like this format, judged by its first bytes."""

    def read(self, path: Path, limits: Limits = USUAL) -> Table:
        """Read the whole file. Raises ImportRefused when no record can be trusted, LimitExceeded on too much of it."""


class Measure:
    """Adds up what a file's records come to, while they are read.

    Parameters
    ----------
    limits
        Of the file.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._rows = 0
        self._text = 0

    def add(self, rows: int, text: int) -> None:
        """Count records and the bytes of their text.

        Raises
        ------
        LimitExceeded
            If there are too many, or too much.
        """
        self._rows += rows
        self._text += text
        if self._rows > self._limits.rows:
            raise self._limits.refuse("The file has too many records", "rows")
        if self._text > self._limits.text_mb * 1_000_000:
            raise self._limits.refuse("The file has too much text", "text_mb")


def clipped(text: str, limit: int = _RAW_LIMIT) -> str:
    """Cut a text after `limit` characters, with an ellipsis when something was cut."""
    return text if len(text) <= limit else text[:limit] + "…"


def quoted(text: str) -> str:
    """Quote a text of a file in a sentence about the file: enough of it to find it, in one line, never all of it."""
    return repr(clipped(text, 60))


def record_bytes(limits: Limits) -> int:
    """Return how many bytes one line or record of a text file may have."""
    return limits.record_mb * 1024 * 1024


def check_names(names: Sequence[str], limits: Limits = USUAL) -> None:
    """Refuse column names which cannot be told apart, are reserved, or are too many.

    Raises
    ------
    ImportRefused
        With the names at fault.
    LimitExceeded
        If there are too many.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        listed = ", ".join(map(quoted, twice[:10]))
        raise ImportRefused(f"More than one column is named {listed}. Rename them so that each has its own name.")
    if ROW in names:
        raise ImportRefused(f"The column name {ROW!r} is used by the dashboard itself. Rename that column.")
    if len(names) > limits.columns:
        raise limits.refuse(f"The file has {len(names):,} columns", "columns")
    if any(len(name) > limits.name for name in names):
        raise limits.refuse("The name of a column is too long", "name")


def kind_of(head: bytes) -> str | None:
    """Name what the first bytes of a file are a sure sign of, such as "a PNG picture"; None for anything else."""
    return next((kind for signature, kind in _SIGNATURES if head.startswith(signature)), None)


def digest(path: Path) -> str:
    """SHA-256 of a file in hexadecimal, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def scan_text(path: Path, *, whole: bool, limits: Limits = USUAL) -> str:
    """Look through a text file once, in bounded memory, before anything loads it.

    Parameters
    ----------
    path : Path
        The file.
    whole : bool
        True when one bad byte spoils the whole file (CSV, a JSON array): then the text must be UTF-8 without NUL bytes.
        False when each line stands for itself and is judged alone.
    limits : Limits
        Of the file.

    Returns
    -------
    str
        SHA-256 of the bytes, in hexadecimal.

    Raises
    ------
    ImportRefused
        A line is too long, or `whole` and the bytes are not UTF-8 text.
    LimitExceeded
        The file is too large.
    """
    limits.check_text(path)
    longest = record_bytes(limits)
    digester = hashlib.sha256()
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines = 0
    running = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digester.update(chunk)
            first = _first_line_end(chunk)
            if running + (len(chunk) if first < 0 else first) > longest:
                raise ImportRefused(
                    f"Line {lines + 1} is longer than {limits.record_mb} MB, which no log entry should be. Check "
                    "that the file is a log with one entry per line, and split or remove that line."
                )
            if whole:
                _check_text(chunk, decoder, lines)
            last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
            running = running + len(chunk) if last < 0 else len(chunk) - last - 1
            lines += chunk.count(b"\n")
    if whole:
        _check_text(b"", decoder, lines, final=True)
    return digester.hexdigest()


def _first_line_end(chunk: bytes) -> int:
    ends = [at for at in (chunk.find(b"\n"), chunk.find(b"\r")) if at >= 0]
    return min(ends, default=-1)


def _check_text(chunk: bytes, decoder: codecs.IncrementalDecoder, lines: int, *, final: bool = False) -> None:
    nul = chunk.find(b"\0")
    if nul >= 0:
        line = lines + chunk.count(b"\n", 0, nul) + 1
        raise ImportRefused(f"Line {line} holds a NUL byte, so the file is not plain text. Save it as UTF-8 text.")
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError as error:
        line = lines + error.object[: error.start].count(b"\n") + 1
        raise ImportRefused(
            f"Line {line} is not UTF-8 text (byte 0x{error.object[error.start]:02x}). Save the file with the "
            "encoding UTF-8."
        ) from None
