from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tepa_core.importers.base import ImportRefused, Table
from tepa_core.importers.registry import open_log


def read(tmp_path: Path, columns: dict[str, pa.Array]) -> Table:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(columns), path)
    return open_log(path)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array(["007", "", None, "NA"]), ["007", "", None, "NA"]),
        (pa.array(["a", None], pa.large_string()), ["a", None]),
        (pa.array(["a", "b", "a", None]).dictionary_encode(), ["a", "b", "a", None]),
        (pa.array([True, False, None]), ["true", "false", None]),
        (pa.array([0, -7, None, 2**63 - 1]), ["0", "-7", None, "9223372036854775807"]),
        (pa.array([1.0, 0.0, None, 0.1, float("nan")]), ["1", "0", None, "0.1", None]),
        (pa.array([0.1], pa.float32()), ["0.1"]),
        (pa.array([Decimal("1.50")]), ["1.50"]),
        (pa.array([date(2024, 7, 20)]), ["2024-07-20"]),
        (pa.array([b"caf\xc3\xa9", None]), ["café", None]),
        (pa.array([b"\xff\x00", b"a"]), ["ff00", "61"]),
        (pa.array([b"ab"], pa.binary(2)), ["ab"]),
        (pa.array([[1, 2], None]), ["[1,2]", None]),
        (pa.array([{"a": "é"}]), ['{"a":"é"}']),
        (pa.array([timedelta(seconds=90)]), ["0:01:30"]),
        (pa.nulls(2), [None, None]),
    ],
)
def test_how_a_column_reads(tmp_path: Path, array: pa.Array, expected: list[str | None]) -> None:
    table = read(tmp_path, {"value": array})
    assert table.frame["value"].tolist() == expected
    assert table.frame["__row__"].tolist() == list(range(1, len(expected) + 1))
    assert table.issues == ()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_with_a_zone_keep_their_instant_and_the_others_stay_naive(tmp_path: Path, unit: str) -> None:
    moment = datetime(2024, 7, 20, 10, 0, 5, tzinfo=ZoneInfo("America/Los_Angeles"))
    table = read(
        tmp_path,
        {
            "zoned": pa.array([moment, None], pa.timestamp(unit, "America/Los_Angeles")),
            "naive": pa.array([moment.replace(tzinfo=None), None], pa.timestamp(unit)),
        },
    )
    zoned, naive = table.frame["zoned"].tolist(), table.frame["naive"].tolist()
    assert datetime.fromisoformat(zoned[0]) == datetime(2024, 7, 20, 17, 0, 5, tzinfo=UTC)
    assert datetime.fromisoformat(naive[0]) == datetime(2024, 7, 20, 10, 0, 5)  # noqa: DTZ001 - naive is the point
    assert [zoned[1], naive[1]] == [None, None]


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="no rows"):
        read(tmp_path, {"value": pa.array([], pa.string())})


def test_a_file_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"value": ["a"] * 100}), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ImportRefused, match="damaged or cut off"):
        open_log(path)


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table([pa.array(["a"]), pa.array(["b"])], names=["value", "value"]), path)
    with pytest.raises(ImportRefused, match="'value'"):
        open_log(path)
