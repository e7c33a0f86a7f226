"""Archives of which every part was tampered with, digests and chain made good again; and hostile logs."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tepa_core.decisions import EMPTY, Decision, linked

Members = dict[str, bytes]

LONG = "x" * 5_000_000

#: The first and the last moment of the years 1 to 9999, in microseconds since 1970.
YEARS = (-62_135_596_800_000_000, 253_402_300_799_999_999)

#: Values that a field of JSON was not made for.
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**63 - 1,
    1e308,
    "",
    "\ud800",
    LONG,
    "a\x00b",
    [],
    {},
    [[]],
    {"a": 1},
)
#: Texts that mean something elsewhere.
HOSTILE: tuple[str, ...] = (
    "![x](http://127.0.0.1:1/p.png)",
    "[k](http://e.example)",
    ":material/home:",
    "$x$",
    "<b onload=alert(1)>b</b>",
    "=HYPERLINK(1)",
    "'; DROP TABLE run; --",
    "../../etc/passwd",
    "\x1b[31mred",
    "\u202egnirts",
    "\u200b",
    "שלום",
    "x" * 10_001,
    LONG,
    "{0.__class__}",
    "%s%n",
)

#: What the column name that once ran as a statement looked like.
ATTACK = (
    "seq\") SELECT 'x', 0 WHERE false; DELETE FROM decision; DELETE FROM ledger_head; "
    "CREATE TABLE stolen AS SELECT * FROM read_text('{secret}'); COPY stolen TO '{out}'; SELECT ? --"
)


def members_of(path: Path) -> Members:
    """Return the members of a zip."""
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write(path: Path, members: Mapping[str, bytes]) -> Path:
    """Write an archive whose manifest fits what it holds, unless the manifest itself was tampered with."""
    manifest = members["manifest.json"]
    try:
        said = json.loads(manifest)
        whole = bool(said["sha256"]) and all(len(digest) == 64 for digest in said["sha256"].values())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        whole = False
    if whole:
        digests = {name: hashlib.sha256(each).hexdigest() for name, each in members.items() if name != "manifest.json"}
        manifest = json.dumps({**said, "sha256": digests}).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, content in {**members, "manifest.json": manifest}.items():
            file.writestr(name, content)
    return path


def chained(decisions: list[Decision]) -> Members:
    """Write a ledger anew, so that it verifies whatever it says."""
    head, lines = EMPTY, []
    for decision in decisions:
        row = linked(
            dataclasses.replace(decision, reason=decision.reason or "x", reason_salt=decision.reason_salt), head
        )
        head = dataclasses.replace(head, count=row.number, hash=row.hash)
        lines.append(json.dumps(row.as_dict()).encode() + b"\n")
    return {"decisions.jsonl": b"".join(lines), "head.json": json.dumps(dataclasses.asdict(head)).encode()}


def _json(content: object) -> bytes:
    return json.dumps(content).encode()


def _of_json(members: Members, name: str) -> Iterator[tuple[str, Members]]:
    whole = json.loads(members[name])
    for field in whole:
        for i, value in enumerate(ODD):
            yield f"{name} {field} odd {i}", {**members, name: _json({**whole, field: value})}
        yield f"{name} lacks {field}", {**members, name: _json({k: v for k, v in whole.items() if k != field})}
    yield f"{name} has more", {**members, name: _json({**whole, "hat": 1})}
    yield f"{name} is a list", {**members, name: b"[]"}
    yield f"{name} is deep", {**members, name: b'{"a":' * 100_000}
    yield f"{name} has NaN", {**members, name: members[name].replace(b"{", b'{"nan":NaN,', 1)}


def _of_run(members: Members) -> Iterator[tuple[str, Members]]:
    run = json.loads(members["run.json"])
    for field, values in {
        "name": [*HOSTILE, "Kim’s log"],
        "source": list(HOSTILE),
        "created_at": ["2999-01-01T00:00:00+00:00", "2026-01-01", "0001-01-01T00:00:00+14:00", "now"],
        "program": ["9.9.9", "<b>"],
        "counts": [{}, {"read": 1}, {**run["counts"], "loaded": -1}, {k: "1" for k in run["counts"]}],
        "badges": [{"no such badge": 1}, {"late_arrival": "many"}, {"late_arrival": 2**80}, {"hat": 3}],
        "spec": [
            {},
            {**run["spec"], "mapping": {}},
            {**run["spec"], "methods": ["hat"]},
            {**run["spec"], "seeds": 10**9},
        ],
        "thresholds": [{**run["thresholds"], "theta_rev": 7}, {**run["thresholds"], "n_rec": 10**30}],
        "elapsed_s": [-1.0, 1e300],
    }.items():
        for i, value in enumerate(values):
            yield f"run {field} {i}", {**members, "run.json": _json({**run, field: value})}


def _of_ledger(members: Members) -> Iterator[tuple[str, Members]]:
    decisions = [Decision.from_dict(json.loads(line)) for line in members["decisions.jsonl"].splitlines()]
    if not decisions:
        return
    effects = ("", "no JSON", "[]", '{"success": 3}', '{"success": {"stable": {}}}', '{"later_supports": "x"}', "{}")
    effects += ('{"success": {"overall": {"before": 1, "after": NaN, "difference": 0}}}', "[" * 50_000)
    changes: list[tuple[str, dict[str, Any]]] = [
        (f"effect {i}", {"effect": effect}) for i, effect in enumerate(effects)
    ]
    changes += [(f"reviewer {i}", {"reviewer": text}) for i, text in enumerate(HOSTILE)]
    changes += [(f"reason {i}", {"reason": text}) for i, text in enumerate(HOSTILE)]
    changes += [(f"at {at}", {"effective_at": at}) for at in (2**63 - 1, -(2**63), 10**30)]
    changes += [(f"version {text[:9]}", {"version": text}) for text in ("", "<b>", "0" * 5_000_000)]
    changes += [
        ("id", {"decision_id": "<b>"}),
        ("precedent", {"precedent_id": "p" + "0" * 16}),
        ("undoes", {"undoes": "x"}),
    ]
    changes += [("future", {"decided_at": decisions[0].decided_at.replace(year=2999)})]
    for what, change in changes:
        try:
            ledger = chained([dataclasses.replace(decisions[0], **change), *decisions[1:]])
        except UnicodeEncodeError:
            continue
        yield f"decision {what}", {**members, **ledger}


def _of_tables(members: Members) -> Iterator[tuple[str, Members]]:
    for name in [name for name in members if name.endswith(".parquet")]:
        table = pq.read_table(io.BytesIO(members[name]))

        def changed(column: str, cells: pa.Array, name: str = name, table: pa.Table = table) -> Members:
            at = table.column_names.index(column)
            return {**members, name: _parquet(table.set_column(at, column, cells))}

        rows = len(table)
        for column in table.column_names:
            kind = table.schema.field(column).type
            yield f"{name} lacks {column}", {**members, name: _parquet(table.drop_columns([column]))}
            yield f"{name} {column} null", changed(column, pa.nulls(rows, kind))
            if pa.types.is_integer(kind):
                top = 2**63 - 1 if kind == pa.int64() else 2**31 - 1
                yield f"{name} {column} top", changed(column, pa.array([top] * rows, kind))
                yield f"{name} {column} bottom", changed(column, pa.array([-top - 1] * rows, kind))
                yield f"{name} {column} text", changed(column, pa.array(["1"] * rows))
                yield f"{name} {column} one", changed(column, pa.array([1] * rows, kind))
            elif pa.types.is_string(kind):
                for i, text in enumerate(HOSTILE[-6:]):
                    cells = pa.array([text] * min(rows, 20) + ["a"] * max(rows - 20, 0))
                    yield f"{name} {column} hostile {i}", changed(column, cells)
                yield f"{name} {column} NUL", changed(column, pa.array(["a\x00"] * rows))
                broken = pa.array([b"\xff\xfe"] * rows, pa.binary()).view(pa.string())
                yield f"{name} {column} bytes", changed(column, broken)
            else:
                yield f"{name} {column} words", changed(column, pa.array(["no"] * rows))
        yield f"{name} more", {**members, name: _parquet(table.append_column("hat", pa.array([1] * rows)))}
        yield f"{name} empty", {**members, name: _parquet(table.slice(0, 0))}
        yield f"{name} half", {**members, name: _parquet(table.slice(0, rows // 2))}
        yield f"{name} twice", {**members, name: _parquet(pa.concat_tables([table, table]))}
        yield f"{name} gone", {other: content for other, content in members.items() if other != name}
        yield f"{name} cut", {**members, name: members[name][: len(members[name]) // 2]}


def _of_columns_that_agree(members: Members) -> Iterator[tuple[str, Members]]:
    """Change what stands in two columns in both of them, so that nothing contradicts it."""
    # Decisions would be on precedents that are gone.
    members = {**members, **chained([])}
    table = pq.read_table(io.BytesIO(members["evidence.parquet"]))
    rows = len(table)

    def changed(**cells: pa.Array) -> pa.Table:
        whole = table
        for column, content in cells.items():
            whole = whole.set_column(whole.column_names.index(column), column, content)
        return whole

    for column in ("key", "value"):
        for i, text in enumerate(HOSTILE):
            cells = pa.array([text] * (rows // 2) + [f"{text[:9]}2"] * (rows - rows // 2))
            agreed = changed(**{column: cells, f"{column}_id": cells})
            yield f"evidence {column} and {column}_id {i}", {**members, "evidence.parquet": _parquet(agreed)}
    for what, low, high in (
        ("all of time", *YEARS),
        ("the first moments", YEARS[0], YEARS[0] + rows),
        ("the last moments", YEARS[1] - rows, YEARS[1]),
        ("one moment", YEARS[1], YEARS[1]),
        ("beyond nanoseconds", 10**16, 2 * 10**16),
    ):
        at = [low + (high - low) * i // max(rows - 1, 1) for i in range(rows)]
        spread = changed(occurred=pa.array(at, pa.int64()), arrived=pa.array(at, pa.int64()))
        phase = pa.table({"phase": ["calm"], "start_at": [at[0]], "end_at": [at[-1] + 1]})
        yield (
            f"evidence of {what}",
            {**members, "evidence.parquet": _parquet(spread), "phase.parquet": _parquet(phase)},
        )


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def tampered(members: Members) -> Iterator[tuple[str, Members]]:
    """Yield archives that differ from an export in one thing each, with what it is."""
    for name in ("manifest.json", "run.json", "head.json"):
        yield from _of_json(members, name)
    yield from _of_run(members)
    yield from _of_ledger(members)
    yield from _of_tables(members)
    yield from _of_columns_that_agree(members)


def renamed_column(content: bytes, column: str, name: str) -> bytes:
    """Return a Parquet table in which a column has another name."""
    table = pq.read_table(io.BytesIO(content))
    return _parquet(table.rename_columns([name if each == column else each for each in table.column_names]))


FIELDS = ("ts", "user", "key", "value", "outcome", "text", "phase", "actor", "source_ref", "ingested_at")
_ROW = {"ts": "2026-03-0{day}T10:00:00Z", "user": "u1", "key": "seat", "value": "window", "outcome": "1"}


def hostile_logs(folder: Path) -> Iterator[Path]:
    """Write logs with something in every field, in every format that is read."""
    for i, text in enumerate(HOSTILE):
        rows = [
            {**{field: text for field in FIELDS}, "ts": f"2026-03-0{day}", "ingested_at": None} for day in range(1, 6)
        ]
        for row in rows:
            row["outcome"] = None
        yield _csv(folder / f"all-{i}.csv", rows)
        yield _jsonl(folder / f"all-{i}.jsonl", rows)
    for field in FIELDS:
        for i, text in enumerate(("", "NaN", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "9" * 400)):
            rows = [{**_ROW, "ts": _ROW["ts"].format(day=day), field: text} for day in range(1, 6)]
            yield _jsonl(folder / f"{field}-{i}.jsonl", rows)
    for i, moments in enumerate(
        (
            ("0001-01-01T00:00:00Z", "2026-03-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"),
            ("9999-12-31T23:59:59.999999Z",),
            ("0001-01-01T00:00:00Z",),
            ("2300-01-01T00:00:00Z", "2300-01-02T00:00:00Z"),
        )
    ):
        said = ["tea"] * 4 + ["coffee"] * 8
        for j, phased in enumerate((True, False)):
            rows = [
                {
                    **_ROW,
                    "ts": moments[n * len(moments) // len(said)],
                    "ingested_at": moments[-1 - n * len(moments) // len(said)],
                    "value": value,
                    "phase": f"p{n * len(moments) // len(said)}" if phased else None,
                }
                for n, value in enumerate(said)
            ]
            yield _jsonl(folder / f"moments-{i}-{j}.jsonl", rows)
    frame = pd.DataFrame(
        {**{k: [v] * 5 for k, v in _ROW.items()}, "ts": pd.date_range("2026-03-01", periods=5, tz="UTC")}
    )
    for i, cells in enumerate(([b"\xff"] * 5, [{"a": [1]}] * 5, [1e308] * 5, [True, None] * 2 + [False], ["\x00"] * 5)):
        path = folder / f"typed-{i}.parquet"
        frame.assign(value=cells).to_parquet(path)
        yield path
    for i, content in enumerate(
        (b"", b"\x00" * 99, b"ts,key,value\n", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe" * 9)
    ):
        for ending in ("csv", "json", "jsonl", "parquet"):
            path = folder / f"broken-{i}.{ending}"
            path.write_bytes(content)
            yield path


def _csv(path: Path, rows: list[dict[str, str | None]]) -> Path:
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def _jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
