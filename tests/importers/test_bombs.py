"""Files made to cost far more than they weigh: refused within the child's bounds, with the bound that says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
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


TEXT = "x" * 900_000
#: Kind of column -> 100 cells that point at one text.
KINDS: dict[str, Callable[[], pa.Array]] = {
    "text": lambda: pa.array([TEXT] * 100),
    "large_text": lambda: pa.array([TEXT] * 100, pa.large_string()),
    "bytes": lambda: pa.array([TEXT.encode()] * 100),
    "large_bytes": lambda: pa.array([TEXT.encode()] * 100, pa.large_binary()),
    "view": lambda: pa.array([TEXT] * 100, pa.string_view()),
    "list": lambda: pa.array([[TEXT]] * 100),
    "record": lambda: pa.array([{"a": TEXT}] * 100),
    "map": lambda: pa.array([[("a", TEXT)]] * 100, pa.map_(pa.string(), pa.string())),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_counted_once_a_row_in_every_kind_of_column(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log.parquet"
    cells = KINDS[kind]()
    with pq.ParquetWriter(path, pa.schema({"value": cells.type}), dictionary_pagesize_limit=10**9) as file:
        for _ in range(3):
            file.write_table(pa.table({"value": cells}))
    with pytest.raises(ImportRefused, match="too much text; at most 100 MB"):
        open_log(path, "auto", Limits(text_mb=100))


def test_a_list_with_more_elements_than_a_table_has_cells(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    cells = pa.ListArray.from_arrays(pa.array([0, 21_000_000], pa.int32()), pa.nulls(21_000_000, pa.int8()))
    pq.write_table(pa.table({"value": cells}), path)
    with pytest.raises(ImportRefused, match="too many cells; at most 20,000,000"):
        open_log(path)


@pytest.mark.parametrize("groups", [1, 3])
def test_columns_of_lists_and_records_are_read_whole(tmp_path: Path, groups: int) -> None:
    path = tmp_path / "log.parquet"
    cells = pa.table(
        {
            "list": pa.array([["a", None], None, []]),
            "record": pa.array([{"a": "x", "b": [1]}, None, {"a": None, "b": None}]),
            "word": pa.array(["u", "u", "w"]).dictionary_encode(),
            "number": pa.array([1, 1, None]).dictionary_encode(),
        }
    )
    pq.write_table(pa.concat_tables([cells] * groups), path, row_group_size=3)
    frame = open_log(path).frame
    assert frame["list"].tolist() == ['["a",null]', None, "[]"] * groups
    assert frame["record"].tolist() == ['{"a":"x","b":[1]}', None, '{"a":null,"b":null}'] * groups
    assert frame["word"].tolist() == ["u", "u", "w"] * groups
    assert frame["number"].tolist() == ["1", "1", None] * groups


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_cells_are_counted_and_names_measured_in_every_format(tmp_path: Path, ending: str) -> None:
    def written(names: list[str], rows: int) -> Path:
        path = tmp_path / f"log{ending}"
        if ending == ".csv":
            path.write_text(",".join(names) + "\n" + (",".join("1" for _ in names) + "\n") * rows)
        elif ending == ".jsonl":
            path.write_text(("{" + ",".join(f'"{name}":1' for name in names) + "}\n") * rows)
        else:
            pq.write_table(pa.table({name: [1] * rows for name in names}), path)
        return path

    with pytest.raises(ImportRefused, match="too many cells; at most 39"):
        open_log(written(["a", "b", "c", "d"], 10), "auto", Limits(cells=39))
    assert len(open_log(written(["a", "b", "c", "d"], 10), "auto", Limits(cells=40)).frame) == 10
    with pytest.raises(ImportRefused, match="name of a column is too long; at most 200") as refusal:
        open_log(written(["a", "b" * 201], 1))
    assert "bbb" not in str(refusal.value)


def test_a_text_file_is_measured_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(b"[" + b" " * 2_000_000 + b"]")
    with pytest.raises(ImportRefused, match="2 MB of text; at most 1 MB"):
        open_log(path, "json", Limits(text_mb=1))


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
