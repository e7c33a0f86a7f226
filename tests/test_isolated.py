"""A foreign file is read in a child that may take only so much memory and time, and that leaves nothing behind."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tepa_core.importers import ImportRefused, open_log
from tepa_core.isolated import ReadingFailed, isolated, measured
from tepa_core.limits import USUAL, Limits

SMALL = Limits(memory_mb=200, seconds=2)


def process_id(path: Path) -> int:
    """Return the id of the process that reads."""
    return os.getpid()


def fill_memory(path: Path) -> int:
    """Take a gigabyte."""
    return len(bytearray(1_000_000_000))


def never_end(path: Path) -> None:
    """Note who reads, and read on."""
    path.write_text(str(os.getpid()))
    while True:
        time.sleep(0.05)


def spin(path: Path) -> None:
    """Compute without end."""
    while True:
        pass


def crash(path: Path) -> None:
    """End as a reader in C does that touches what is not its own."""
    os.kill(os.getpid(), signal.SIGSEGV)


def refuse(path: Path) -> None:
    """Refuse the file."""
    raise ImportRefused("The file is odd. Choose another.")


def tables(path: Path) -> pd.DataFrame:
    """Return a table with every kind of column that readers make."""
    return pd.DataFrame(
        {
            "text": pd.Series(["a", None, "a", ""], dtype=object),
            "none": pd.Series([None] * 4, dtype=object),
            "mixed": pd.Series(["a", 1, None, True], dtype=object),
            "spelled": pd.Series(["\u00f8\U0001f600\0", "", "\u00f8", None], dtype=object),
            "time": pd.to_datetime(["2026-01-01"] * 3 + [None]).tz_localize("UTC").as_unit("us"),
            "number": [1, 2, 3, 4],
            "flag": [True, False, True, False],
        }
    )


def test_another_process_reads(tmp_path: Path) -> None:
    assert isolated(SMALL, process_id, tmp_path) not in (os.getpid(), os.getppid())


def test_tables_come_back_as_they_were(tmp_path: Path) -> None:
    pd.testing.assert_frame_equal(isolated(SMALL, tables, tmp_path), tables(tmp_path))


def test_a_refusal_crosses_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="The file is odd"):
        isolated(SMALL, refuse, tmp_path)


def test_too_much_memory_ends_the_child_alone(tmp_path: Path) -> None:
    with pytest.raises(ReadingFailed, match="needs more than 200 MB of memory"):
        isolated(SMALL, fill_memory, tmp_path)
    assert isolated(SMALL, process_id, tmp_path) > 0


def test_a_crash_ends_the_child_alone(tmp_path: Path) -> None:
    with pytest.raises(ReadingFailed, match="ended without a word"):
        isolated(SMALL, crash, tmp_path)
    assert isolated(SMALL, process_id, tmp_path) > 0


@pytest.mark.parametrize("function", [never_end, spin])
def test_too_much_time_ends_the_child(tmp_path: Path, function: Callable[[Path], None]) -> None:
    with pytest.raises(ReadingFailed, match=r"took more than 1 seconds"):
        isolated(Limits(seconds=1), function, tmp_path / "pid")
    if function is never_end:
        assert _ends(int((tmp_path / "pid").read_text()))


def lacks_memory(path: Path) -> None:
    """Say that the file is damaged where it was memory that lacked, as readers of others do."""
    try:
        fill_memory(path)
    except MemoryError:
        raise ImportRefused("The file is damaged.") from None


def unexpected(path: Path) -> None:
    """Fail as a program does that has a fault."""
    raise KeyError("text of the file")


class AwkwardError(Exception):
    """Can be pickled, and not be made again."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


def awkward(path: Path) -> None:
    """Raise what does not cross."""
    raise AwkwardError("one", "two")


def test_a_reader_that_mistakes_its_want_of_memory_for_damage_is_corrected(tmp_path: Path) -> None:
    with pytest.raises(ReadingFailed, match="needs more than 200 MB of memory"):
        isolated(SMALL, lacks_memory, tmp_path)


def test_a_fault_of_the_program_is_raised_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(KeyError) as error:
        isolated(SMALL, unexpected, tmp_path)
    assert "in unexpected" in error.value.__notes__[0]


def test_an_exception_that_cannot_cross_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"^AwkwardError in awkward$"):
        isolated(SMALL, awkward, tmp_path)


class Stopped(BaseException):
    """What a page raises when its visitor goes elsewhere, or a terminal on Ctrl-C."""


@pytest.mark.parametrize("fork", [True, False])
def test_who_stops_waiting_ends_the_child(tmp_path: Path, fork: bool) -> None:
    path = tmp_path / "pid"

    def waiting() -> None:
        if path.exists() and path.read_text():
            raise Stopped

    with pytest.raises(Stopped):
        measured(Limits(seconds=60), functools.partial(never_end, path), waiting, fork=fork)
    assert _ends(int(path.read_text()))


def test_a_child_ends_with_the_program_that_wanted_it(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    code = (
        "import sys; from pathlib import Path; from tepa_core.isolated import isolated; "
        "from tepa_core.limits import USUAL; from tests.test_isolated import never_end; "
        "isolated(USUAL, never_end, Path(sys.argv[1]))"
    )
    program = subprocess.Popen([sys.executable, "-c", code, str(path)], cwd=Path(__file__).parents[1])
    try:
        _until(lambda: path.exists() and path.read_text() != "")
    finally:
        program.kill()
        program.wait()
    assert _ends(int(path.read_text()))


def test_only_so_many_files_are_read_at_the_same_time(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(3)]
    stop = threading.Event()

    def waiting() -> None:
        if stop.is_set():
            raise Stopped

    def read(path: Path) -> None:
        with pytest.raises(Stopped):
            measured(USUAL, functools.partial(never_end, path), waiting)

    readers = [threading.Thread(target=read, args=(path,)) for path in paths]
    for reader in readers:
        reader.start()
    _until(lambda: sum(path.exists() for path in paths) == 2)
    time.sleep(0.5)
    begun = [path for path in paths if path.exists()]
    stop.set()
    for reader in readers:
        reader.join(30)
    assert len(begun) == 2


class TestAnInterpreterOfItsOwn:
    """How files are read where no helper forks; here as well, but that memory is bounded here."""

    def test_it_answers(self, tmp_path: Path) -> None:
        found, cost = measured(SMALL, functools.partial(tables, tmp_path), fork=False)
        pd.testing.assert_frame_equal(found, tables(tmp_path))
        assert cost.seconds >= 0

    @pytest.mark.parametrize(
        ("function", "says"),
        [(refuse, "The file is odd"), (crash, "ended without a word"), (fill_memory, "more than 200 MB of memory")],
    )
    def test_its_end_is_told(self, tmp_path: Path, function: Callable[[Path], object], says: str) -> None:
        with pytest.raises(ValueError, match=says):
            measured(SMALL, functools.partial(function, tmp_path), fork=False)


def _ends(process: int) -> bool:
    """Whether a process is gone after a generous while."""
    return _until(lambda: not _lives(process))


def _until(holds: Callable[[], bool]) -> bool:
    gone = time.monotonic() + 30
    while not holds() and time.monotonic() < gone:
        time.sleep(0.05)
    return holds()


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_child_costs_what_the_file_costs(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("ts,key,value\n" + "2026-01-01,seat,window\n" * 10)
    table, cost = measured(USUAL, functools.partial(open_log, path, "auto", USUAL))
    assert len(table.frame) == 10
    assert 0 < cost.memory_mb < 500
