"""A foreign file is read in a child that may take only so much memory and time, and that leaves nothing behind."""

from __future__ import annotations

import os
import signal
import time
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
def test_too_much_time_ends_the_child(tmp_path: Path, function: object) -> None:
    with pytest.raises(ReadingFailed, match=r"took more than 1 seconds|ended without a word"):
        isolated(Limits(seconds=1), function, tmp_path / "pid")  # type: ignore[arg-type]
    if function is never_end:
        child = int((tmp_path / "pid").read_text())
        gone = time.monotonic() + 30
        while _lives(child) and time.monotonic() < gone:
            time.sleep(0.05)
        assert not _lives(child)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_child_costs_what_the_file_costs(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("ts,key,value\n" + "2026-01-01,seat,window\n" * 10)
    table, cost = measured(USUAL, open_log, path, "auto", USUAL)
    assert len(table.frame) == 10
    assert 0 < cost.memory_mb < 500
