"""Logs of cases 33 and 34, written anew for each test run: exports that grow by a row, and many changes in one day."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from itertools import groupby
from pathlib import Path

#: Number of the week -> the two seats of its export, and how often each is asserted, an hour apart.
WEEKS = {1: (("window", 6), ("aisle", 3)), 2: (("north", 6), ("south", 4)), 3: (("east", 6), ("west", 5))}
#: Outcomes of one value on one day, in order: it is believed, given up and believed again.
FLIPS = "111110011111001111100"
HEAD = "ts,user,key,value,outcome"


@functools.cache
def case_logs() -> Path:
    """Return a folder with export_week1.csv to export_week3.csv and same_day_flips.csv."""
    folder = Path(tempfile.mkdtemp(prefix="case-logs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for week, seats in WEEKS.items():
        said = [seat for seat, times in seats for _ in range(times)]
        rows = [f"2026-03-01T{9 + hour:02d}:00:00Z,u1,seat,{seat},1" for hour, seat in enumerate(said)]
        (folder / f"export_week{week}.csv").write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")
    rows = [f"2026-03-01,u1,mode,dark,{outcome}" for outcome in FLIPS]
    assert len(list(groupby(FLIPS))) == 6
    (folder / "same_day_flips.csv").write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")
    return folder
