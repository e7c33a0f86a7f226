import gzip
import os
import sqlite3
import tracemalloc
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tepa_core.importers import IMPORTERS, ImportRefused, detect, open_log

CSV = b"ts,key,value\n2026-01-01T00:00:00Z,k,v\n"
JSONL = b'{"ts":"2026-01-01T00:00:00Z","key":"k","value":"v"}\n'


def test_every_importer_stands_under_its_own_name() -> None:
    assert {name: importer.name for name, importer in IMPORTERS.items()} == {
        name: name for name in ("parquet", "mcp", "json", "jsonl", "csv")
    }


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("log.csv", CSV, "csv"),
        ("log.jsonl", JSONL, "jsonl"),
        ("log.json", b" \n[ " + JSONL.strip() + b"]", "json"),
        ("log.csv", JSONL, "jsonl"),
        ("log.jsonl", CSV, "csv"),
        ("log", CSV, "csv"),
        ("log.json", JSONL, "jsonl"),
        ("log.jsonl", b"broken line\n" + JSONL, "jsonl"),
        ("log.jsonl", b"\xef\xbb\xbf" + JSONL, "jsonl"),
    ],
)
def test_content_decides_not_the_name(tmp_path: Path, name: str, content: bytes, format: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert detect(path).name == format
    table = open_log(path)
    assert table.format == format
    assert table.frame["value"].tolist() == ["v"]


def test_parquet_under_another_name_is_parquet(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    pq.write_table(pa.table({"value": ["v"]}), path)
    assert open_log(path).format == "parquet"


def test_a_file_of_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.touch()
    with pytest.raises(ImportRefused, match=r"log\.csv is empty \(0 bytes\)"):
        open_log(path)


@pytest.mark.parametrize("format", ["auto", "csv", "jsonl", "parquet"])
def test_a_picture_under_a_text_name_is_called_what_it_is(tmp_path: Path, format: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(100))
    with pytest.raises(ImportRefused, match="a PNG picture"):
        open_log(path, format)


def test_archives_and_databases_are_refused_with_the_formats_that_are_read(tmp_path: Path) -> None:
    archive, packed, database = tmp_path / "log.zip", tmp_path / "log.csv.gz", tmp_path / "log.db"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("../x", "ts,key,value\n")
    packed.write_bytes(gzip.compress(CSV))
    connection = sqlite3.connect(database)
    connection.execute("create table history (id text)")
    connection.commit()
    connection.close()
    for path, kind in ((archive, "zip archive"), (packed, "gzip archive"), (database, "SQLite database")):
        with pytest.raises(ImportRefused, match=rf"{kind}.*CSV.*JSON Lines.*Parquet"):
            open_log(path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["log.csv.gz", "log.db", "log.zip"]


@pytest.mark.parametrize("content", [CSV.decode().encode("utf-16"), CSV.decode().encode("utf-16-le"), bytes(1000)])
def test_other_bytes_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises(ImportRefused, match=r"looks like (text in UTF-16|binary data)"):
        open_log(path)


@pytest.mark.parametrize(("head", "format"), [(CSV, "csv"), (JSONL, "jsonl"), (b"[" + JSONL, "json")])
def test_a_line_of_forty_megabytes_is_refused_without_being_loaded(tmp_path: Path, head: bytes, format: str) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(head)
        for _ in range(40):
            file.write(b"x" * 1024 * 1024)
    tracemalloc.start()
    try:
        assert detect(path).name == format
        with pytest.raises(ImportRefused, match="longer than 16 MB"):
            open_log(path)
        assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_a_sparse_file_of_two_gigabytes_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(CSV + b"," * 100_000)
    os.truncate(path, 2 * 1024**3)
    with pytest.raises(ImportRefused, match="has 2,147 MB; at most 500 MB"):
        open_log(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="There is no file"):
        open_log(tmp_path / "absent.csv")
    with pytest.raises(ImportRefused, match="is a folder"):
        open_log(tmp_path)
    with pytest.raises(ImportRefused, match="device or pipe"):
        open_log(Path(os.devnull))
    with pytest.raises(ImportRefused, match="cannot be opened"):
        open_log(tmp_path / "a\0b")


def test_an_unknown_format_is_refused_with_those_there_are(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(CSV)
    with pytest.raises(ImportRefused, match=r"'excel'.*parquet, mcp, json, jsonl, csv"):
        open_log(path, "excel")
