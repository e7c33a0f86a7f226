"""Reading foreign files in a process of its own, which may take only so much memory and time.

A file can be made to cost far more than it weighs, and no reader is proof against all of them. So a foreign file is
read in a child: when that takes too much, the child ends and not the dashboard with everybody's pages. The child bounds
what a file may cost; it is no wall against a reader that executes what it reads.

Starting an interpreter for each file would take a second. One helper process per program is started when the first file
comes, imports what reading needs, and forks a child for each file. It ends with the program that started it. Where
processes cannot fork (Windows), files are read in the program itself, and only the limits of their content hold.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import io
import os
import pickle
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, ParamSpec, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from tepa_core.limits import Limits

P = ParamSpec("P")
R = TypeVar("R")

_MB: Final = 1_000_000
_SECONDS_TO_START: Final = 60.0
_SIZE: Final = struct.Struct("!Q")
#: Not run as a module, which would be there twice then, under two names.
_HELPER: Final = "import sys; from tepa_core.isolated import serve; serve(sys.argv[1], sys.stdin.buffer)"
_CAN_FORK: Final = hasattr(os, "fork")


class ReadingFailed(ValueError):  # noqa: N818 - it says what happened, and its message is shown to people
    """A foreign file could not be read within the limits; the message says what to do. Nothing was stored."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What reading a file took: seconds, and the child's largest resident memory in millions of bytes."""

    seconds: float
    memory_mb: float


def isolated(limits: Limits, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function of a foreign file in a child with bounded memory and time.

    Parameters
    ----------
    limits
        ``memory_mb`` and ``seconds`` bound the child.
    function
        A function of a module; it, its arguments and its answer are pickled.

    Raises
    ------
    ReadingFailed
        If the child takes too much, or ends without an answer.
    Exception
        What the function raises.
    """
    return measured(limits, function, *args, **kwargs)[0]


def measured(limits: Limits, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> tuple[R, Cost]:
    """Do what `isolated` does, and say what it took."""
    if not _CAN_FORK:
        began = time.monotonic()
        return function(*args, **kwargs), Cost(time.monotonic() - began, 0.0)
    request = pickle.dumps((function.__module__, function.__qualname__, args, kwargs, limits))
    deadline = time.monotonic() + limits.seconds
    with _connected() as connection:
        child = 0
        try:
            _send(connection, request)
            child = int.from_bytes(_receive(connection, deadline + _SECONDS_TO_START), "big")
            answer, seconds, memory = pickle.loads(_receive(connection, deadline))  # noqa: S301 - our own child wrote it
        except TimeoutError:
            raise ReadingFailed(
                f"Reading the file took more than {limits.seconds:,} seconds and was ended. Split the file, or raise "
                "the limit: TEPA_LIMITS=seconds=NUMBER. Nothing was stored."
            ) from None
        except (OSError, EOFError, pickle.UnpicklingError):
            raise ReadingFailed(_too_much(limits)) from None
        finally:
            # Whatever ended the wait, an interruption by a person too, ends the child.
            if child:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
    if isinstance(answer, OSError | pa.ArrowException) and not isinstance(answer, ValueError):
        # Libraries say in many words that they got no memory.
        raise ReadingFailed(_too_much(limits))
    if isinstance(answer, Exception):
        raise answer
    return answer, Cost(seconds, memory)


def _too_much(limits: Limits) -> str:
    return (
        f"The file could not be read: it needs more than {limits.memory_mb:,} MB of memory, or its reader ended "
        "without a word. Split the file, or raise the limit: TEPA_LIMITS=memory_mb=NUMBER. Nothing was stored."
    )


# The side of the program --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Helper:
    address: str
    process: subprocess.Popen[bytes]


@functools.lru_cache(maxsize=1)
def _helper(owner: int, attempt: int) -> _Helper:
    """Start the helper of this process; it ends when its standard input is closed, which is when this process ends."""
    del owner, attempt
    # A folder of our own, which nobody else may enter: who can connect can have files read.
    folder = tempfile.mkdtemp(prefix="tepa-read-")
    address = str(Path(folder) / "s")
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    environment |= {"ARROW_DEFAULT_MEMORY_POOL": "system", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(  # noqa: S603 - this interpreter and a module of this program
        [sys.executable, "-c", _HELPER, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=environment,
        # Ctrl-C in a terminal is for the program, which ends what it started.
        start_new_session=True,
    )
    atexit.register(_end, process)
    return _Helper(address, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)


def _connected() -> socket.socket:
    deadline = time.monotonic() + _SECONDS_TO_START
    attempt = 0
    while time.monotonic() < deadline:
        helper = _helper(os.getpid(), attempt)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(helper.address)
            return connection
        except OSError:
            connection.close()
            if helper.process.poll() is not None:
                # It was ended from outside: the next attempt starts another.
                attempt += 1
            time.sleep(0.02)
    raise ReadingFailed("The process that reads foreign files does not start. Start the program again.")


def _send(connection: socket.socket, content: bytes) -> None:
    connection.sendall(_SIZE.pack(len(content)))
    connection.sendall(content)


def _receive(connection: socket.socket, deadline: float | None = None) -> bytes:
    return bytes(_exactly(connection, _SIZE.unpack(_exactly(connection, _SIZE.size, deadline))[0], deadline))


def _exactly(connection: socket.socket, size: int, deadline: float | None) -> bytearray:
    content = bytearray(size)
    view, got = memoryview(content), 0
    while got < size:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
        count = connection.recv_into(view[got:])
        if count == 0:
            raise EOFError
        got += count
    return content


# The side of the helper ---------------------------------------------------------------------------------------------


def serve(address: str, owner: IO[bytes]) -> None:
    """Fork a child for each connection to a socket until the owner's end of a pipe is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    waiting.register(owner, selectors.EVENT_READ)
    # What every file needs; what a request needs besides is imported before the fork, so that it is imported once.
    importlib.import_module("tepa_core.importers")
    try:
        while True:
            ready = {key.fileobj for key, _ in waiting.select()}
            if owner in ready:
                return
            connection, _ = listener.accept()
            try:
                module, name, args, kwargs, limits = pickle.loads(_receive(connection))  # noqa: S301 - our owner's
                importlib.import_module(module)
            except (OSError, EOFError):
                connection.close()
                continue
            if os.fork() == 0:
                listener.close()
                _answer(connection, getattr(sys.modules[module], name), args, kwargs, limits)
            connection.close()
    finally:
        shutil.rmtree(Path(address).parent, ignore_errors=True)


def _answer(connection: socket.socket, function: Callable[..., Any], args: Any, kwargs: Any, limits: Limits) -> None:
    """Do the work of one request in the child, and end it."""
    import resource  # absent on Windows, which does not get here

    code = 1
    try:
        _send(connection, os.getpid().to_bytes(8, "big"))
        own = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") if _PROC else 0
        most = own + limits.memory_mb * _MB
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 1))
        began = time.monotonic()
        answer: Any
        try:
            answer = function(*args, **kwargs)
        except MemoryError:
            raise
        except Exception as error:
            answer = error
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / _MB
        _send(connection, _pickled((answer, time.monotonic() - began, memory)))
        code = 0
    except (MemoryError, OSError, pickle.PicklingError):
        pass
    finally:
        # Nothing of the helper's is to be ended or flushed here.
        os._exit(code)


_PROC: Final = Path("/proc/self/statm").exists()


class _Pickler(pickle.Pickler):
    """Writes tables of text as numbers and the distinct texts: a text that repeats crosses once."""

    def reducer_override(self, thing: Any) -> Any:
        if not isinstance(thing, pd.DataFrame):
            return NotImplemented
        columns: list[tuple[str, Any, Any]] = []
        for name in thing.columns:
            cells = thing[name]
            if cells.dtype == object:
                codes, texts = pd.factorize(cells.to_numpy())
                columns.append((name, codes.astype(np.int32), np.append(np.asarray(texts, dtype=object), [None])))
            else:
                columns.append((name, cells.array, None))
        return _frame, (columns, len(thing))


def _pickled(content: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=5).dump(content)
    return buffer.getvalue()


def _frame(columns: list[tuple[str, Any, Any]], rows: int) -> pd.DataFrame:
    """Put a table together again; equal texts of a column are one object, whatever they were before."""
    return pd.DataFrame(
        {
            name: pd.Series(cells if texts is None else texts[cells], dtype=None if texts is None else object)
            for name, cells, texts in columns
        },
        index=range(rows),
    )
