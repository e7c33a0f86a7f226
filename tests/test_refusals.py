"""What is said of a file never contains the file: no refusal and no reason quotes more of it than to find the place."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tepa_core.importers import ColumnMapping, EvidenceLog, ImportRefused, apply, open_log
from tepa_core.limits import Limits
from tepa_core.store import ArchiveRefused
from tepa_core.store.archive_schema import read_archive
from tepa_core.streams import FactFileError, read_fact_file

#: Most characters of a file in a sentence about it, in one piece.
MOST = 100
UNSEEN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2067]")

Write = Callable[[Path, str], Path]


def _file(name: str, text: Callable[[str], str]) -> Write:
    def write(folder: Path, payload: str) -> Path:
        path = folder / name
        path.write_text(text(payload), encoding="utf-8", newline="")
        return path

    return write


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _parquet(folder: Path, payload: str) -> Path:
    path = folder / "log.parquet"
    pq.write_table(pa.table({payload[:150]: pa.array([b"\\xff"]), "ts": ["1"]}), path)
    return path


def _zip(members: Callable[[str], dict[str, str]]) -> Write:
    def write(folder: Path, payload: str) -> Path:
        path = folder / "run.zip"
        with zipfile.ZipFile(path, "w") as file:
            for name, content in members(payload).items():
                file.writestr(name, content)
        return path

    return write


NEEDED = ("manifest.json", "run.json", "decisions.jsonl", "head.json")

#: A refused log, by what it has the payload in.
LOGS: dict[str, Write] = {
    "two columns of one name": _file("a.csv", lambda it: f"{_cell(it[:190])},{_cell(it[:190])}\n1,2\n"),
    "a long column name": _file("a.csv", lambda it: f"{_cell(it)}\n1\n"),
    "names only": _file("a.csv", lambda it: _cell(it[:190]) + "\n1\n"),
    "a header without rows": _file("a.csv", lambda it: _cell(it)),
    "an open quote": _file("a.csv", lambda it: 'ts\n"' + it.replace('"', "")),
    "a broken array": _file("a.json", lambda it: "[{" + json.dumps(it) + ":1} x]"),
    "an array of texts": _file("a.json", lambda it: "[{" + json.dumps(it) + " 1}]"),
    "lines that are no objects": _file("a.jsonl", lambda it: "{\n" + json.dumps([it])),
    "a name twice": _file("a.jsonl", lambda it: "{" + f"{json.dumps(it)}:1,{json.dumps(it)}:2" + "}"),
    "a long name": _file("a.jsonl", lambda it: json.dumps({it: 1})),
    "columns of Parquet": _parquet,
}

ARCHIVES: dict[str, Write] = {
    "a foreign member": _zip(lambda it: {it.replace("\0", "")[:20_000] or "x": ""}),
    "a manifest that is none": _zip(lambda it: dict.fromkeys(NEEDED, it)),
    "a manifest of another shape": _zip(lambda it: dict.fromkeys(NEEDED, json.dumps({"format": it, it: it}))),
    "a manifest of foreign names": _zip(
        lambda it: dict.fromkeys(NEEDED, json.dumps({"format": 1, "program": it, "sha256": {it: it}}))
    ),
}

FACTS: dict[str, Write] = {
    "no JSON": _file("a.json", lambda it: it),
    "another shape": _file("a.json", lambda it: json.dumps({it: it})),
    "a line without a number": _file(
        "a.json", lambda it: json.dumps({"context": "0. A b.\n" + it, "questions": ["q"], "answers": [["a"]]})
    ),
    "sentences of no template": _file(
        "a.json", lambda it: json.dumps({"context": "0. Zz " + it, "questions": ["q"], "answers": [["a"]]})
    ),
    "answers that are none": _file(
        "a.json",
        lambda it: json.dumps(
            {"context": "0. The capital of France is Paris.", "questions": [it], "answers": [{it: it}]}
        ),
    ),
    "broken lines": _file("a.json", lambda it: '{"a":1}\n' + it),
}

READERS: list[tuple[str, Write, Callable[[Path], object]]] = [
    *((name, write, lambda path: _mapped(path)) for name, write in LOGS.items()),
    *((name, write, read_archive) for name, write in ARCHIVES.items()),
    *((name, write, read_fact_file) for name, write in FACTS.items()),
]

#: Long, and of letters that occur together nowhere else; or of everything that a terminal or a page might obey.
PAYLOADS = st.one_of(
    st.sampled_from(
        [
            "\u00f8" * 20_000,
            "\u00f8\u00fe" * 100,
            "\x1b[2J\u202e\r\n\u00f8" * 900,
            "<b>\u00f8</b>**[x](http://x)**" * 500,
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=150, max_size=400),
)


def _mapped(path: Path) -> EvidenceLog:
    return apply(open_log(path), ColumnMapping.of({"ts": "ts", "key": "key", "value": "value"}))


def check(said: str, payload: str) -> None:
    """Fail where a sentence holds much of the payload, or a character that does something."""
    assert not UNSEEN.search(said)
    assert len(said) < 4_000
    for start in range(0, len(payload) - MOST, MOST // 2):
        assert payload[start : start + MOST] not in said


@pytest.mark.parametrize(("write", "read"), [one[1:] for one in READERS], ids=[one[0] for one in READERS])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payload=PAYLOADS)
def test_a_refusal_does_not_contain_the_payload(
    tmp_path: Path, write: Write, read: Callable[[Path], object], payload: str
) -> None:
    try:
        read(write(tmp_path, payload))
    except (ImportRefused, ArchiveRefused, FactFileError) as refusal:
        check(str(refusal), payload)


@pytest.mark.parametrize("name", [name for name, _, _ in READERS])
def test_each_of_these_files_is_refused(tmp_path: Path, name: str) -> None:
    write, read = next((write, read) for known, write, read in READERS if known == name)
    with pytest.raises((ImportRefused, ArchiveRefused, FactFileError)):
        read(write(tmp_path, "\u00f8" * 20_000))


@pytest.mark.parametrize("field", ["ts", "key", "value", "user", "outcome", "ingested_at", "phase"])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payload=PAYLOADS, before=st.sampled_from(["", "2026-01-01T", "2026-01-01 "]))
def test_a_reason_does_not_contain_the_payload(tmp_path: Path, field: str, payload: str, before: str) -> None:
    path = tmp_path / "log.jsonl"
    row = {"ts": "2026-01-01", "key": "k", "value": "v"} | {field: before + payload}
    path.write_text(json.dumps(row), encoding="utf-8")
    table = open_log(path, "jsonl")
    log = apply(table, ColumnMapping.suggest(table.columns), Limits(label=100))
    for reason in log.issues["reason"]:
        check(str(reason), payload)


@pytest.mark.parametrize(
    "make",
    [
        lambda it: ColumnMapping.parse(it),
        lambda it: ColumnMapping.of({it: "x"}),
        lambda it: ColumnMapping.of({"ts": "x"}, tz=it),
        lambda it: ColumnMapping.of({"ts": "x"}, key_template="{" + it),
        lambda it: ColumnMapping.of({"ts": "x"}, key_template="{a!r}" + it.replace("{", "")),
    ],
    ids=["mapping", "field", "zone", "template", "conversion"],
)
@pytest.mark.parametrize("payload", ["\u00f8" * 20_000, "\x1b[2J\u00f8\u202e" * 500])
def test_what_is_typed_is_quoted_in_short_too(make: Callable[[str], object], payload: str) -> None:
    with pytest.raises(ImportRefused) as refusal:
        make(payload)
    check(str(refusal.value), payload)
