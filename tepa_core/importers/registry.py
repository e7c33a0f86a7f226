"""The formats that can be read, and how a file finds its own."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tepa_core.importers.base import Importer, ImportRefused, Table, kind_of, quoted
from tepa_core.importers.csv_log import CsvLog
from tepa_core.importers.jsonl_log import JsonArrayLog, JsonlLog
from tepa_core.importers.mcp_memory import McpMemory
from tepa_core.importers.parquet_log import ParquetLog
from tepa_core.limits import USUAL, LimitExceeded, Limits

__all__ = ["IMPORTERS", "detect", "open_log"]

# The order is the order of asking: CSV accepts any text, so it stands last.
IMPORTERS: Mapping[str, Importer] = MappingProxyType(
    {importer.name: importer for importer in (ParquetLog(), McpMemory(), JsonArrayLog(), JsonlLog(), CsvLog())}
)

_HEAD = 64 * 1024


def detect(path: Path) -> Importer:
    """Find the importer of a file by its content; the name's ending decides only where the content leaves it open.

    Raises
    ------
    ImportRefused
        No such file, a folder, nothing in it, or content that no importer reads; the message says what it looks like.
    """
    return _choose(path, _head(path), "auto")


def open_log(path: Path, format: str = "auto", limits: Limits = USUAL) -> Table:
    """Read a file of evidence as text.

    Parameters
    ----------
    path : Path
        The file.
    format : str
        A name in ``IMPORTERS``, or ``auto`` to detect it.
    limits : Limits
        How much of it is taken in.

    Returns
    -------
    Table
        The readable records and the issues of the others.

    Raises
    ------
    ImportRefused
        As :func:`detect`; an unknown format; too much of anything; or as the importer's ``read``.
    """
    path = Path(path)
    importer = _choose(path, _head(path), format)
    try:
        return importer.read(path, limits)
    except LimitExceeded as error:
        raise ImportRefused(str(error)) from None


def _head(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise ImportRefused(f"{path} is a folder. Choose one file in it.")
        if not stat.S_ISREG(mode):
            raise ImportRefused(f"{path} is a device or pipe. Save its content as a file first.")
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        raise ImportRefused(f"There is no file {path}. Check the name and the folder.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, ImportRefused):
            raise
        raise ImportRefused(f"{path} cannot be opened ({error}). Check the name and its permissions.") from None
    if not head:
        raise ImportRefused(f"{path} is empty (0 bytes). Export the log again, or choose another file.")
    return head


def _choose(path: Path, head: bytes, format: str) -> Importer:
    if format != "auto" and format not in IMPORTERS:
        raise ImportRefused(f"There is no format {quoted(format)}. Choose auto or one of: {', '.join(IMPORTERS)}.")
    kind = kind_of(head)
    if format == "auto":
        for importer in IMPORTERS.values():
            if importer.sniff(path, head):
                return importer
    elif kind is None or IMPORTERS[format].sniff(path, head):
        # A text that does not look like the format it was called is left to that format's reader to judge.
        return IMPORTERS[format]
    raise ImportRefused(
        f"{path.name} looks like {kind or 'binary data'}. Formats that are read: CSV (comma, semicolon or tab), JSON "
        f"Lines, a JSON array of objects, Parquet. {_advice(kind or '')}"
    )


def _advice(kind: str) -> str:
    if "UTF-16" in kind:
        return "Save it with the encoding UTF-8."
    if "archive" in kind:
        return "Unpack it and choose the file inside, or save the sheet as CSV."
    if "database" in kind:
        return "Export the table as CSV."
    return "Choose the log itself."
