"""The access log: who asked for what, when, and what came of it, without anything that opens a door.

A line holds the moment, the address, a digest of the person (see `tepa_core.ui.sign_ins`) or ``-``, method, path,
status, milliseconds, and why a request was refused. Query strings, cookies and the ids of sessions and of files in
memory are never written: codes and tokens travel in the first two, and who knows an id may use it.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from tepa_core.inert import terminal

#: Names the file; ``-`` stands for the terminal (stderr), ``off`` for no log. Else it stands beside the database.
LOG_VARIABLE: Final = "TEPA_ACCESS_LOG"
_BYTES: Final = 5_000_000
_FILES: Final = 4
_LONGEST_PATH: Final = 200

#: What follows these in a path is an id that opens something.
_IDS_BELOW: Final = ("/media/", "/_stcore/upload_file/")


def log_path(database: Path) -> str:
    """Say where the log goes: what the environment names, else a file beside the database."""
    return os.environ.get(LOG_VARIABLE) or str(database.with_suffix(".access.log"))


class AccessLog:
    """Writes the lines, to four files of 5 MB in turn or to the terminal.

    Parameters
    ----------
    where
        A file, ``-`` or ``off``, as `log_path` gives it. A file that cannot be written is said once on the terminal,
        and the lines go there.
    """

    def __init__(self, where: str) -> None:
        self._logger = logging.Logger("tepa_access")
        self._logger.addHandler(_destination(where))

    def write(self, *, method: str, path: str, status: int, began: float, client: str, person: str, why: str) -> None:
        """Add one line.

        Parameters
        ----------
        method, path, status
            Of the request; a WebSocket counts as method ``WS``.
        began
            `time.monotonic` when it came.
        client, person
            Address and digest of the person; empty where unknown.
        why
            Why it was refused, in a word; empty where it was not.
        """
        moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        taken = round(1000 * (time.monotonic() - began))
        refused = f" refused={why}" if why else ""
        self._logger.info(
            f"{moment} {client or '-'} {person or '-'} {_word(method)} {_word(shown_path(path))} "
            f"{status} {taken}ms{refused}"
        )

    def close(self) -> None:
        """Close the file."""
        for handler in self._logger.handlers:
            with suppress(OSError):  # the last line may not fit on the disk
                handler.close()


def shown_path(path: str) -> str:
    """Return a path as it may be logged: no id that opens something, and of bounded length."""
    for above in _IDS_BELOW:
        if above in path:
            return path[: path.index(above) + len(above)] + "..."
    return path if len(path) <= _LONGEST_PATH else path[: _LONGEST_PATH - 3] + "..."


def _word(text: str) -> str:
    """Return a text that cannot end its place in the line or the line itself."""
    return terminal(text).replace(" ", "%20")


class _Files(RotatingFileHandler):
    """Files in turn. A line that a full disk does not take is lost; the request that it tells of is not."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  named by logging
        """Say nothing: a traceback for every request would bury what the terminal has to tell."""


def _destination(where: str) -> logging.Handler:
    if where == "off":
        return logging.NullHandler()
    if where != "-":
        try:
            return _Files(where, maxBytes=_BYTES, backupCount=_FILES - 1, encoding="utf-8")
        except OSError as error:
            sys.stderr.write(
                f"The access log cannot be written to {where} ({error.strerror}): it goes to the terminal. "
                f"Name another file in {LOG_VARIABLE}, or - or off.\n"
            )
    return logging.StreamHandler()
