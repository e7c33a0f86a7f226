"""Reading foreign files in a process of its own, which may take only so much memory and time.

A file can be made to cost far more than it weighs, and no reader is proof against all of them. So a foreign file is
read in a child: when that takes too much, the child ends and not the dashboard with everybody's pages. The child bounds
what a file may cost; it is no wall against a reader that executes what it reads.

Starting an interpreter for each file would take a second. On Linux one helper process per program is started when the
first file comes, imports what reading needs, and forks a child for each file. It ends, with its children, when the
program does that started it, however that ends. Elsewhere processes that have loaded much do not fork safely, or not at
all, and each file gets an interpreter of its own; there time is bounded, memory only as far as the system can.
"""

from __future__ import annotations

import atexit
import errno
import functools
import importlib
import io
import os
import pickle
import select
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from tepa_core.limits import Limits

P = ParamSpec("P")
R = TypeVar("R")

#: Called again and again while a file is read; what it raises ends the child and is raised.
Waiting = Callable[[], object]

_MB: Final = 1_000_000
_SECONDS_TO_START: Final = 60.0
#: What an interpreter of its own gets more than a file's time, to import what it needs.
_SECONDS_OF_A_START: Final = 10
_SECONDS_BETWEEN: Final = 0.2
#: After so much more a child ends by itself.
_SECONDS_OF_GRACE: Final = 5
#: Files that are read at the same time; the others wait, so that many visitors cost no more than these.
_AT_ONCE: Final = 2
_FORKS: Final = sys.platform == "linux"
#: Not run as modules, which would be there twice then, under two names.
_HELPER: Final = "import sys; from tepa_core.isolated import serve; serve(sys.argv[1], sys.stdin.buffer)"
_SINGLE: Final = "from tepa_core.isolated import answer_once; answer_once()"


class ReadingFailed(ValueError):  # noqa: N818 - it says what happened, and its message is shown to people
    """A foreign file could not be read within the limits; the message says what to do. Nothing was stored."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What reading a file took: seconds, and the child's largest resident memory in millions of bytes."""

    seconds: float
    memory_mb: float


@dataclass(frozen=True, slots=True)
class _Raised:
    """What a child answers in the place of a result; None where memory was short."""

    error: Exception | None


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
    return measured(limits, functools.partial(function, *args, **kwargs))[0]


def measured(
    limits: Limits, call: functools.partial[R], waiting: Waiting | None = None, *, fork: bool = _FORKS
) -> tuple[R, Cost]:
    """Do what `isolated` does, and say what it took.

    Parameters
    ----------
    waiting
        Called again and again in the meantime. What it raises, as a click on "stop" does, ends the child.
    fork
        Whether one helper forks the children; else each is an interpreter of its own.

    Raises
    ------
    ReadingFailed
        As `isolated`.
    """
    report = waiting or _nobody
    request = pickle.dumps((call, limits))
    with _Slot(report):
        try:
            answer, cost = (_forked if fork else _started)(request, limits, report)
        except TimeoutError:
            raise ReadingFailed(
                f"Reading the file took more than {limits.seconds:,} seconds and was ended. Split the file, or raise "
                "the limit: TEPA_LIMITS=seconds=NUMBER. Nothing was stored."
            ) from None
        except (OSError, EOFError, pickle.UnpicklingError):
            raise ReadingFailed(
                "The file could not be read: its reader ended without a word, as one does that meets damage, or needs "
                f"more than {limits.memory_mb:,} MB of memory. Write the file again, split it, or raise the limit: "
                "TEPA_LIMITS=memory_mb=NUMBER. Nothing was stored."
            ) from None
    if not isinstance(answer, _Raised):
        return answer, cost
    if answer.error is not None:
        raise answer.error
    raise ReadingFailed(
        f"The file could not be read: it needs more than {limits.memory_mb:,} MB of memory. Split the file, or raise "
        "the limit: TEPA_LIMITS=memory_mb=NUMBER. Nothing was stored."
    )


def _nobody() -> None:
    """Do nothing while a file is read."""


# The side of the program --------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def _slots(owner: int) -> threading.BoundedSemaphore:
    del owner
    return threading.BoundedSemaphore(_AT_ONCE)


class _Slot:
    """A place among the files that are read at the same time."""

    def __init__(self, report: Waiting) -> None:
        self._report = report
        self._slots = _slots(os.getpid())

    def __enter__(self) -> None:
        while not self._slots.acquire(timeout=_SECONDS_BETWEEN):
            self._report()

    def __exit__(self, *error: object) -> None:
        self._slots.release()


def _forked(request: bytes, limits: Limits, report: Waiting) -> tuple[Any, Cost]:
    """Have the helper fork a child for a request, and return its answer."""
    with _connected() as connection:
        child = 0
        try:
            connection.sendall(len(request).to_bytes(8, "big") + request)
            incoming = _Incoming(connection, time.monotonic() + _SECONDS_TO_START, report)
            stream = io.BufferedReader(incoming, _MB)
            child = int.from_bytes(_announced(stream), "big")
            # The clock of the file begins when its child is there: a first helper has much to import.
            incoming.deadline = time.monotonic() + limits.seconds
            return pickle.load(stream), pickle.load(stream)  # noqa: S301 - our own child wrote it
        finally:
            # Whatever ended the wait, an interruption by a person too, ends the child.
            if child:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)


def _started(request: bytes, limits: Limits, report: Waiting) -> tuple[Any, Cost]:
    """Start an interpreter for a request, and return its answer."""
    process = subprocess.Popen(  # noqa: S603 - this interpreter and a function of this program
        [sys.executable, "-c", _SINGLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment()
    )
    deadline = time.monotonic() + limits.seconds + _SECONDS_OF_A_START
    given: bytes | None = request
    try:
        while True:
            try:
                answer = io.BytesIO(process.communicate(given, timeout=_SECONDS_BETWEEN)[0])
                return pickle.load(answer), pickle.load(answer)  # noqa: S301 - our own child wrote it
            except subprocess.TimeoutExpired:
                given = None
                report()
                if time.monotonic() > deadline:
                    raise TimeoutError from None
    finally:
        process.kill()
        process.communicate()


def _environment() -> dict[str, str]:
    return os.environ | {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }


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
    process = subprocess.Popen(  # noqa: S603 - this interpreter and a function of this program
        [sys.executable, "-c", _HELPER, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=_environment(),
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


class _Incoming(io.RawIOBase):
    """What comes from a child, until a deadline; somebody is told in between that it is not there yet."""

    def __init__(self, connection: socket.socket, deadline: float, report: Waiting) -> None:
        super().__init__()
        self._connection = connection
        self._report = report
        self._reported = time.monotonic()
        self.deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            now = time.monotonic()
            if now > self.deadline:
                raise TimeoutError
            if now - self._reported > _SECONDS_BETWEEN:
                self._reported = now
                self._report()
            if select.select([self._connection], [], [], _SECONDS_BETWEEN)[0]:
                return self._connection.recv_into(buffer)


def _announced(stream: io.BufferedReader[_Incoming]) -> bytes:
    number = stream.read(8)
    if len(number) < 8:
        raise EOFError
    return number


# The side of the helper ---------------------------------------------------------------------------------------------


def serve(address: str, owner: IO[bytes]) -> None:
    """Fork a child for each connection to a socket until the owner's end of a pipe is closed; then end them all."""
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
            # The helper keeps no end of a connection: the program is to see when the child's is closed.
            with connection, suppress(OSError, EOFError):
                size = int.from_bytes(_received(connection, 8), "big")
                call, limits = pickle.loads(_received(connection, size))  # noqa: S301 - our owner wrote it
                if os.fork() == 0:
                    listener.close()
                    outgoing = connection.makefile("wb")
                    outgoing.write(os.getpid().to_bytes(8, "big"))
                    outgoing.flush()
                    _end_as_child(outgoing, call, limits)
    finally:
        shutil.rmtree(Path(address).parent, ignore_errors=True)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)


def _received(connection: socket.socket, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise EOFError
        content += part
    return bytes(content)


def answer_once() -> None:
    """Answer the one request on standard input on standard output, and end."""
    request = pickle.load(sys.stdin.buffer)  # noqa: S301 - our owner wrote it
    # What a library prints must not get into the answer.
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _end_as_child(answer, *request)


def _end_as_child(outgoing: IO[bytes] | io.BufferedWriter, call: functools.partial[Any], limits: Limits) -> None:
    """Do the work of one request, write the answer, and end this process."""
    code = 1
    try:
        _bound(limits)
        began = time.monotonic()
        answer: Any
        try:
            answer = call()
        except Exception as error:
            answer = _crossing(error)
        seconds = time.monotonic() - began
        _Pickler(outgoing, protocol=5).dump(answer)
        pickle.dump(Cost(seconds, _largest()), outgoing)
        outgoing.flush()
        code = 0
    except (MemoryError, OSError, pickle.PicklingError):
        pass
    finally:
        # Nothing of the helper's is to be ended or flushed here.
        os._exit(code)


def _bound(limits: Limits) -> None:
    """Bound what this process may take from now on."""
    if sys.platform == "win32":
        return
    # Should the program be gone that ends it when its time is over.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, limits.seconds + _SECONDS_OF_GRACE)
    import resource  # absent on Windows

    # A core file would hold the payload.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        # Elsewhere the bound is not kept, or the address space is large from the start and setting it fails.
        own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = own + limits.memory_mb * _MB
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _largest() -> float:
    """Return the largest resident memory of this process so far, in millions of bytes; 0 where nobody says."""
    if sys.platform == "win32":
        return 0.0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / _MB


def _crossing(error: Exception) -> _Raised:
    """Make an exception ready to be raised on the other side; see that it gets there."""
    behind: BaseException | None = error
    while behind is not None:
        # A reader that got no memory may say that the file is damaged, and mean it.
        if isinstance(behind, MemoryError) or (isinstance(behind, OSError) and behind.errno == errno.ENOMEM):
            return _Raised(None)
        behind = behind.__cause__ or behind.__context__
    if not isinstance(error, ValueError):
        # Nobody expected it: the terminal is to say where it came from.
        error.add_note("".join(traceback.format_tb(error.__traceback__)))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - made on the same line
    except Exception:
        error = RuntimeError(f"{type(error).__name__} in {traceback.extract_tb(error.__traceback__)[-1].name}")
    return _Raised(error)


class _Pickler(pickle.Pickler):
    """Writes tables of text as numbers and the distinct texts, in Arrow's form: a text that repeats crosses once.

    Pickled as objects, a million texts would cost their size again on both sides, for noting each.
    """

    def reducer_override(self, thing: Any) -> Any:
        if not isinstance(thing, pd.DataFrame):
            return NotImplemented
        columns: list[tuple[str, Any, Any]] = []
        for name in thing.columns:
            cells = thing[name]
            if cells.dtype == object:
                codes, texts = pd.factorize(cells.to_numpy())
                columns.append((name, codes.astype(np.int32), _packed(np.asarray(texts, dtype=object))))
            else:
                columns.append((name, cells.array, None))
        return _frame, (columns, len(thing))


def _packed(texts: npt.NDArray[np.object_]) -> pa.Array | list[Any]:
    if pd.api.types.infer_dtype(texts, skipna=False) == "string":
        return pa.array(texts, pa.large_string())
    return list(texts)


def _frame(columns: list[tuple[str, Any, Any]], rows: int) -> pd.DataFrame:
    """Put a table together again; equal texts of a column are one object, whatever they were before."""
    made: dict[str, pd.Series[Any]] = {}
    for name, cells, packed in columns:
        if packed is None:
            made[name] = pd.Series(cells)
            continue
        texts = np.full(len(packed) + 1, None, dtype=object)
        texts[:-1] = packed.to_numpy(zero_copy_only=False) if isinstance(packed, pa.Array) else packed
        made[name] = pd.Series(texts[cells], dtype=object)
    return pd.DataFrame(made, index=range(rows))
