"""A run as one file: what goes out comes back the same, and nothing that was tampered with comes in."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tepa_core.decisions import PROGRAM, Action, Decision
from tepa_core.experiment import RunResult, RunSpec, run
from tepa_core.files import FileRefused
from tepa_core.lifecycle import Thresholds
from tepa_core.logs import import_log
from tepa_core.store import LogImport, Store, UnknownRunError, delete_run, queries, save_log, save_run
from tepa_core.store.archive_file import (
    ArchiveRefused,
    export_active,
    export_instructions,
    export_run,
    import_archive,
    is_archive,
)
from tepa_core.store.decide import redact_reason
from tepa_core.store.ledger import decisions_of, verify_ledger
from tests.store.test_decide import ANA, TEA_FALLS, conventional, decide, ids, minute, said
from tests.store.test_write import every_row, rows_of

MakeLog = Callable[..., LogImport]
ROOT = Path(__file__).parents[2]
TABLES = (
    "run",
    "phase",
    "episode",
    "truth",
    "evidence",
    "precedent",
    "transition",
    "trial",
    "import_issue",
    "decision",
)


def everything(store: Store, run_id: str) -> dict[str, pd.DataFrame]:
    return {table: rows_of(store, table, run_id) for table in TABLES}


def assert_back_as_it_was(store: Store, run_id: str, path: Path, into: Store) -> None:
    before, ledger, check = everything(store, run_id), decisions_of(store, run_id), verify_ledger(store, run_id)
    export_run(store, run_id, path)
    assert is_archive(path)
    if into is store:
        delete_run(store, run_id)
        assert every_row(store) == 0
    assert import_archive(into, path) == run_id
    for table, frame in before.items():
        pd.testing.assert_frame_equal(rows_of(into, table, run_id), frame, obj=table)
    assert decisions_of(into, run_id) == ledger
    assert verify_ledger(into, run_id) == check


def test_a_log_comes_back_as_it_was(store: Store, tmp_path: Path) -> None:
    run_id = import_log(store, ROOT / "data" / "travel_preferences.csv").run_id
    revoked = queries.precedents(store, run_id, state="revoked")["id"].tolist()
    decide(store, run_id, revoked[0], Action.REACTIVATE, pinned=True, effect={"transitions_changed": 1})
    decide(store, run_id, revoked[1], Action.CONFIRM)
    decide(store, run_id, revoked[2], Action.BOTH_VALID)
    decide(store, run_id, revoked[0], Action.UNDO)
    redact_reason(store.acting(ANA), run_id, 2)
    assert_back_as_it_was(store, run_id, tmp_path / "run.zip", store)


def test_a_simulation_comes_back_as_it_was_and_can_be_decided_on(tmp_path: Path, store: Store) -> None:
    spec = RunSpec.build("preference", seeds=2, methods=["tepa", "tepa_full", "no_memory"])
    run_id = save_run(store, run(spec))
    for method in ("tepa", "tepa_full"):
        fallen = queries.archive(store, run_id, method=method)["id"].iloc[0]
        decide(store, run_id, fallen, Action.REACTIVATE, pinned=True)
    with Store(tmp_path / "other.duckdb", PROGRAM) as other:
        assert_back_as_it_was(store, run_id, tmp_path / "run.zip", other)
        row = decisions_of(other, run_id)[-1]
        decide(other, run_id, row.precedent_id, Action.UNDO)
        decide(store, run_id, row.precedent_id, Action.UNDO)
        for table in ("episode", "evidence", "precedent", "transition", "trial"):
            pd.testing.assert_frame_equal(rows_of(other, table, run_id), rows_of(store, table, run_id), obj=table)


def test_a_value_that_is_decided_on_but_never_tried_comes_back_too(store: Store, tmp_path: Path) -> None:
    result = run(RunSpec.build("controlled", seeds=1, methods=["tepa", "no_memory"]))
    run_id = save_run(store, result)
    found = queries.archive(store, run_id, method="tepa", seed=0)
    alternative = found[found["value"] == "alternative"].iloc[0]
    decide(store, run_id, alternative["id"], Action.CONFIRM)
    decide(store, run_id, conventional(store, run_id)["id"], Action.REACTIVATE, pinned=True, at=81)
    assert_back_as_it_was(store, run_id, tmp_path / "run.zip", store)


def test_the_same_run_gives_the_same_members(store: Store, make_log: MakeLog, tmp_path: Path) -> None:
    run_id = save_log(store, make_log(said(*TEA_FALLS)), Thresholds())
    contents = []
    for name in ("a.zip", "b.zip"):
        assert export_run(store, run_id, tmp_path / name) == {"evidence": 6, "decisions": 0}
        with zipfile.ZipFile(tmp_path / name) as file:
            contents.append({member: file.read(member) for member in file.namelist()})
    assert contents[0] == contents[1]
    assert next(iter(contents[0])) == "manifest.json"


def test_a_run_that_is_here_is_not_overwritten(store: Store, exported: Path) -> None:
    before = every_row(store)
    with pytest.raises(ArchiveRefused, match="is here already; delete it first"):
        import_archive(store, exported)
    assert every_row(store) == before


@pytest.fixture
def exported(store: Store, make_log: MakeLog, tmp_path: Path) -> Path:
    run_id = save_log(store, make_log(said(*TEA_FALLS)), Thresholds())
    tea = ids(store, run_id)["tea"]
    for action in (Action.CONFIRM, Action.REACTIVATE, Action.UNDO):
        decide(store, run_id, tea, action)
    path = tmp_path / "run.zip"
    export_run(store, run_id, path)
    return path


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write(path: Path, members: dict[str, bytes], *, sealed: bool = True) -> Path:
    """Write members, with a manifest that fits them unless it shall not."""
    if sealed:
        manifest = json.loads(members["manifest.json"])
        manifest["sha256"] = {
            name: hashlib.sha256(content).hexdigest() for name, content in members.items() if name != "manifest.json"
        }
        members = members | {"manifest.json": json.dumps(manifest).encode()}
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def refused(tmp_path: Path, path: Path) -> str:
    with Store(tmp_path / "fresh.duckdb", PROGRAM) as fresh:
        with pytest.raises(ArchiveRefused) as refusal:
            import_archive(fresh, path)
        assert every_row(fresh) == 0
        assert queries.runs(fresh).empty
    return str(refusal.value)


def edited(content: bytes, **changed: Any) -> bytes:
    return json.dumps(json.loads(content) | changed).encode()


def parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/evidence.parquet", "precedent.parquet", "x.txt"])
def test_foreign_members_are_refused(exported: Path, tmp_path: Path, name: str) -> None:
    path = write(exported, {**members_of(exported), name: b"x"})
    assert repr(name) in refused(tmp_path, path)
    assert not (tmp_path.parent / "x").exists()


def test_cut_off_foreign_and_empty_files_are_refused(exported: Path, tmp_path: Path) -> None:
    whole = exported.read_bytes()
    for length in (0, 20, 100, len(whole) // 2, len(whole) - 1):
        exported.write_bytes(whole[:length])
        assert "no complete export of a run" in refused(tmp_path, exported)
    for content in (b"\x89PNG\r\n\x1a\n", b"ts,user,key\n", b"PK\x05\x06" + b"\0" * 18):
        exported.write_bytes(content)
        assert not is_archive(exported)
        assert "no complete export of a run" in refused(tmp_path, exported)
    assert "cannot be read" in refused(tmp_path, tmp_path / "nowhere.zip")
    assert not is_archive(tmp_path / "nowhere.zip")


def test_damaged_bytes_are_refused_whatever_they_hit(exported: Path, tmp_path: Path) -> None:
    whole = exported.read_bytes()
    for at in range(40, len(whole), len(whole) // 40):
        exported.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with Store(tmp_path / "fresh.duckdb", PROGRAM) as fresh:
            try:
                import_archive(fresh, exported)
            except ArchiveRefused:
                assert every_row(fresh) == 0
            else:
                # A byte that no reader looks at, such as a time stamp of the zip.
                delete_run(fresh, str(queries.runs(fresh)["run_id"].iloc[0]))


def test_a_member_that_does_not_fit_its_digest_is_refused(exported: Path, tmp_path: Path) -> None:
    members = members_of(exported)
    members["run.json"] = edited(members["run.json"], name="another")
    path = write(exported, members, sealed=False)
    assert "run.json was changed after the export" in refused(tmp_path, path)


@pytest.mark.parametrize("name", ["manifest.json", "run.json", "decisions.jsonl", "head.json", "evidence.parquet"])
def test_a_lacking_member_is_named(exported: Path, tmp_path: Path, name: str) -> None:
    members = members_of(exported)
    del members[name]
    assert f"it lacks {name}" in refused(tmp_path, write(exported, members, sealed=name != "manifest.json"))


def test_a_newer_format_is_refused(exported: Path, tmp_path: Path) -> None:
    members = members_of(exported)
    members["manifest.json"] = edited(members["manifest.json"], format=2)
    assert "format 2, this program reads 1" in refused(tmp_path, write(exported, members))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"run_id": "a'; DROP TABLE run"}, "run.json cannot be read (run_id:"),
        ({"run_id": 3}, "run_id"),
        ({"kind": "song"}, "run.json cannot be read (kind:"),
        ({"thresholds": {"theta_rev": 7}}, "thresholds cannot be read, or are out of range"),
        ({"thresholds": {"hat": 7}}, "thresholds cannot be read"),
        ({"created_at": "2026-01-01"}, "time zone"),
        ({"created_at": "soon"}, "time of creation"),
        ({"kind": "simulation", "stream": "controlled"}, "settings cannot be read"),
        ({"extra": 1}, "run.json cannot be read (extra:"),
    ],
)
def test_settings_out_of_bounds_are_refused(exported: Path, tmp_path: Path, changed: dict[str, Any], says: str) -> None:
    members = members_of(exported)
    members["run.json"] = edited(members["run.json"], **changed)
    lines = members["decisions.jsonl"].splitlines()
    # The ledger of another run would be refused for that.
    members["decisions.jsonl"] = b"" if isinstance(changed.get("run_id"), str) else b"\n".join(lines) + b"\n"
    assert says in refused(tmp_path, write(exported, members))


def test_a_ledger_that_does_not_verify_is_refused(exported: Path, tmp_path: Path) -> None:
    members = members_of(exported)
    lines = members["decisions.jsonl"].splitlines(keepends=True)
    for changed, says in (
        (lines[:2], "1 decision is missing at the end."),
        (lines[1:], "missing before the end: number 1"),
        ([lines[1], lines[0], lines[2]], "out of order"),
        ([edited(lines[0], reviewer="Bo") + b"\n", *lines[1:]], "Decision 1 was changed in a field other than"),
        ([edited(lines[0], run_id="other") + b"\n", *lines[1:]], "decisions of another run"),
        ([edited(lines[0], number="1") + b"\n", *lines[1:]], "row 1 of its ledger cannot be read (number:"),
        ([b"[" * 100_000 + b"\n", *lines[1:]], "row 1 of its ledger is no JSON"),
        ([b"3\n", *lines[1:]], "row 1 of its ledger cannot be read"),
    ):
        path = write(tmp_path / "changed.zip", members | {"decisions.jsonl": b"".join(changed)})
        assert says in refused(tmp_path, path)
    path = write(tmp_path / "changed.zip", members | {"head.json": b'{"count": 3, "hash": "%s"}' % (b"0" * 64)})
    assert "The head does not hold the hash" in refused(tmp_path, path)


def test_a_decision_on_a_precedent_without_evidence_is_refused(exported: Path, tmp_path: Path) -> None:
    members = members_of(exported)
    evidence = pd.read_parquet(io.BytesIO(members["evidence.parquet"]))
    ledger = [Decision.from_dict(json.loads(line)) for line in members["decisions.jsonl"].splitlines()]
    assert ledger[0].action is Action.CONFIRM
    members["evidence.parquet"] = parquet(evidence.assign(value_id="something else"))
    assert "decision 1 is on a precedent that its evidence does not know" in refused(tmp_path, write(exported, members))


def test_tables_of_another_shape_are_refused(exported: Path, tmp_path: Path) -> None:
    members = members_of(exported)
    evidence = pd.read_parquet(io.BytesIO(members["evidence.parquet"]))
    for content in (
        parquet(evidence.assign(hat=1)),
        parquet(evidence.assign(seq="first")),
        parquet(evidence.assign(key=None)),
        parquet(evidence.drop(columns="value")),
        b"PAR1 and no more",
        b"",
    ):
        path = write(tmp_path / "changed.zip", members | {"evidence.parquet": content})
        assert "nothing was stored" in refused(tmp_path, path)


def test_what_unpacks_to_too_much_is_refused(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEPA_LIMITS", "rows=5")
    assert "The table has too many rows; at most 5 is taken in" in refused(tmp_path, exported)
    monkeypatch.delenv("TEPA_LIMITS")
    members = members_of(exported)
    with zipfile.ZipFile(exported, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content + b" " * 300_000_000 if name == "head.json" else content)
    assert exported.stat().st_size < 1_000_000
    assert "more than 200 times as large unpacked" in refused(tmp_path, exported)


def test_a_folder_that_is_not_there_is_named(store: Store, exported: Path, tmp_path: Path) -> None:
    run_id = queries.runs(store)["run_id"].iloc[0]
    with pytest.raises(FileRefused, match="cannot be written"):
        export_run(store, run_id, tmp_path / "nowhere" / "run.zip")
    with pytest.raises(UnknownRunError):
        export_run(store, "nowhere", tmp_path / "x.zip")


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_active_set_holds_what_is_active_and_nothing_else(
    store: Store, make_log: MakeLog, simulation: RunResult
) -> None:
    run_id = save_log(store, make_log(said(*TEA_FALLS, "coffee")), Thresholds())
    # Coffee rose at minute 6 with its two supports by the fall of tea and a third.
    assert lines_of(export_active(store, run_id)) == [
        {
            "subject": "u",
            "key": "drink",
            "value": "coffee",
            "support": 3,
            "conflict": 0,
            "posterior": 0.8,
            "since": "2026-03-01T00:06:00+00:00",
        }
    ]
    decide(store, run_id, ids(store, run_id)["tea"], Action.REACTIVATE)
    assert [row["value"] for row in lines_of(export_active(store, run_id))] == ["tea"]
    played = save_run(store, simulation)
    rows = lines_of(export_active(store, played, method="tepa", seed=5))
    assert {(row["method"], row["seed"]) for row in rows} == {("tepa", 5)}
    stands = queries.precedents(store, played, method="tepa", seed=5, state="active")
    assert [row["value"] for row in rows] == stands["value"].tolist()


def test_decisions_that_hold_are_instructions(store: Store, make_log: MakeLog) -> None:
    rows = [(n, f"u{user}", "drink", value, True, None) for user in range(5) for n, value in enumerate(TEA_FALLS)]
    # The sixth speaks on after its decision, so evidence goes past it.
    rows += [(n, "u5", "drink", value, True, None) for n, value in enumerate((*TEA_FALLS, "coffee"))]
    run_id = save_log(store, make_log(rows), Thresholds())
    found = queries.archive(store, run_id).sort_values("subject")["id"].tolist()
    decide(store, run_id, found[0], Action.REACTIVATE, pinned=True, reason="the knee is fine")
    decide(store, run_id, found[1], Action.CONFIRM)
    decide(store, run_id, found[2], Action.BOTH_VALID)
    decide(store, run_id, found[3], Action.REACTIVATE)
    decide(store, run_id, found[3], Action.UNDO)
    decide(store, run_id, found[4], Action.CONFIRM, at=minute(5))
    decide(store, run_id, found[4], Action.REACTIVATE)
    decide(store, run_id, found[5], Action.REACTIVATE, at=minute(5))
    assert queries.precedents(store, run_id, subject="u5", state="active")["value"].tolist() == ["coffee"]
    redact_reason(store.acting(ANA), run_id, 2)
    told = {row["subject"]: row for row in lines_of(export_instructions(store, run_id))}
    assert {name: (row["op"], row["pinned"], row["reason"]) for name, row in told.items()} == {
        "u0": ("set", True, "the knee is fine"),
        "u1": ("remove", False, None),
        "u2": ("add", False, "as the traveller told us"),
        "u4": ("set", False, "as the traveller told us"),
    }
    assert {(row["key"], row["value"]) for row in told.values()} == {("drink", "tea")}
    assert told["u0"]["at"] == "2026-03-01T00:06:00+00:00"
