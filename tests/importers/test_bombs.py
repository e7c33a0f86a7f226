"""Files made to cost far more than they weigh: refused within the child's bounds, with the bound that says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tepa_core.importers import ImportRefused, open_log
from tepa_core.limits import LIMITS_VARIABLE, Limits
from tests.prove.bombs import BOMBS, set_off

#: The largest are left to ``make prove``: writing them takes longer than refusing them.
SLOW = ("rows.parquet", "large_cell.parquet", "run.zip")


@pytest.mark.parametrize("name", [name for name in BOMBS if name not in SLOW])
def test_a_bomb_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    BOMBS[name](path)
    refusal = set_off(path)
    assert refusal.endswith(".")
    assert not re.search(r"x{50}|\[{50}", refusal)


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (Limits(rows=9), "too many records; at most 9"),
        (Limits(columns=2), "3 columns; at most 2"),
    ],
)
def test_the_bounds_can_be_changed(tmp_path: Path, limits: Limits, says: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text("ts,key,value\n" + "2026-01-01,seat,window\n" * 10)
    with pytest.raises(ImportRefused, match=says) as refusal:
        open_log(path, "auto", limits)
    assert f"{LIMITS_VARIABLE}=" in str(refusal.value)


@pytest.mark.parametrize("text", ["rows", "rows=many", "hat=3", "rows=0", "rows=-1"])
def test_a_bound_that_is_none_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"TEPA_LIMITS|at least 1"):
        Limits.from_environment({LIMITS_VARIABLE: text})
