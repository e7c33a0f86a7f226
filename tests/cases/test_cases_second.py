"""Small cases of the second part that must hold in the store and on the command line, by their numbers."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tepa_core import cli
from tepa_core.decisions import PROGRAM, Action, Category, DecisionRefused
from tepa_core.experiment import RunSpec
from tepa_core.lifecycle import Thresholds
from tepa_core.logs import import_log
from tepa_core.store import Store, queries
from tepa_core.store.decide import DecisionRequest, precedent_version, record
from tepa_core.store.ledger import decisions_of
from tepa_core.store.names import name_of_simulation
from tests.case_logs import case_logs

LOGS = case_logs()


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "audit.duckdb"


@pytest.fixture
def store(db: Path) -> Iterator[Store]:
    with Store(db, PROGRAM) as opened:
        yield opened


def ask(db: Path, *arguments: str | Path) -> dict[str, Any]:
    """Run a command in this process and read its one JSON object."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = cli.main([*map(str, arguments), "--db", str(db), "--json"])
    assert code == 0, arguments
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert cli.main([*map(str, arguments)]) == 2
    return capsys.readouterr().err


def three_exports(tmp_path: Path) -> list[Path]:
    """Three weeks, each in a folder of its own and under one name."""
    paths = []
    for week in (1, 2, 3):
        path = tmp_path / f"week{week}" / "export.csv"
        path.parent.mkdir()
        path.write_bytes((LOGS / f"export_week{week}.csv").read_bytes())
        paths.append(path)
    return paths


def test_case_33_three_logs_of_one_name_are_three_runs(db: Path, tmp_path: Path) -> None:
    runs = [ask(db, "import", path)["run_id"] for path in three_exports(tmp_path)]
    listed = {row["run_id"]: row["name"] for row in ask(db, "runs")["runs"]}
    assert [listed[run] for run in runs] == ["export.csv", "export.csv (2)", "export.csv (3)"]
    precedents = ask(db, "precedents", runs[2], "--state", "revoked")["precedents"]
    fallen = next(row for row in precedents if row["value"] == "east")
    ask(db, "decide", runs[2], fallen["id"], "reactivate", "--reviewer", "Ana", "--reason", "It held.")
    assert [len(ask(db, "ledger", run)["decisions"]) for run in runs] == [0, 0, 1]


def test_case_33_a_name_carries_what_was_changed(store: Store, tmp_path: Path) -> None:
    path = three_exports(tmp_path)[0]
    made = [
        import_log(store, path),
        import_log(store, path, preset="direct_facts"),
        import_log(store, path, thresholds=Thresholds(n_rec=5, theta_rec=0.3)),
        import_log(store, path),
    ]
    assert [queries.run_info(store, one.run_id).name for one in made] == [
        "export.csv",
        "export.csv, direct_facts",
        "export.csv, theta_rec=0.3, n_rec=5",
        "export.csv",
    ]
    assert name_of_simulation(RunSpec.build("controlled")) == "Controlled drift, 50 seeds"
    changed = RunSpec.build(
        "controlled",
        seeds=1,
        first_seed=7,
        methods=["tepa", "no_memory"],
        thresholds=Thresholds(theta_rev=0.2),
        fallback="base_policy",
        world={"key_noise": 0.1},
    )
    assert (
        name_of_simulation(changed)
        == "Controlled drift, 1 seed from 7, 2 methods, theta_rev=0.2, key_noise=0.1, fallback=base_policy"
    )


def test_case_33_the_store_refuses_what_was_looked_at_in_another_run(store: Store, tmp_path: Path) -> None:
    path = three_exports(tmp_path)[2]
    # The same log under thresholds that differ in nothing that shows: every id, state and count is the same.
    seen, other = (import_log(store, path, thresholds=Thresholds(n_min=n)).run_id for n in (5, 6))
    rows = queries.precedents(store, seen)
    fallen = str(rows.loc[rows["value"] == "east", "id"].iloc[0])
    assert fallen in set(queries.precedents(store, other)["id"])
    version = precedent_version(store, seen, fallen)
    request = DecisionRequest(
        other, fallen, Action.REACTIVATE, Category.WRONG_REVOCATION, "It held.", expect_version=version
    )
    with pytest.raises(DecisionRefused, match=f"belongs to another run than {other}"):
        record(store, request)
    assert decisions_of(store, other) == decisions_of(store, seen) == ()


def test_case_34_the_command_line_explains_each_change_within_a_day(db: Path) -> None:
    run = ask(db, "import", LOGS / "same_day_flips.csv")["run_id"]
    precedent = ask(db, "precedents", run)["precedents"][0]["id"]
    steps = ask(db, "explain", run, precedent)["transitions"]
    # Three times five supports and two conflicts: believed and revoked three times, each in a life of its own.
    assert [(step["to"], step["life"]) for step in steps] == [
        ("hypothesis", 0),
        *[(to, life) for life in (1, 2, 3) for to in ("active", "revoked")],
    ]
    assert len({step["transition_id"] for step in steps}) == 7


def decide_on(store: Store, run_id: str, value: str) -> None:
    rows = queries.precedents(store, run_id)
    fallen = str(rows.loc[rows["value"] == value, "id"].iloc[0])
    record(store, DecisionRequest(run_id, fallen, Action.REACTIVATE, Category.WRONG_REVOCATION, "It held."))


def test_case_37_the_command_line_deletes_decisions_only_when_told_to(
    db: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = ask(db, "import", LOGS / "export_week3.csv")["run_id"]
    with Store(db, PROGRAM) as store:
        decide_on(store, run_id, "east")
    said = refused(capsys, "delete", run_id, "--db", db)
    assert "has one decision, which goes with it" in said
    assert f"'export {run_id} --to {run_id}.zip'" in said
    assert "--force" in said
    assert len(ask(db, "ledger", run_id)["decisions"]) == 1
    assert ask(db, "delete", run_id, "--force") == {"deleted": run_id}
    # The same file gives back the memories and nothing else; without decisions nothing has to be forced.
    assert ask(db, "import", LOGS / "export_week3.csv")["run_id"] == run_id
    assert ask(db, "ledger", run_id)["decisions"] == []
    assert ask(db, "delete", run_id) == {"deleted": run_id}


WEEK = (LOGS / "export_week3.csv").read_text().splitlines()
DAY = ["2026-03-02T09:00:00Z,u1,seat,aisle,1", "2026-03-02T10:00:00Z,u2,seat,window,1"]


def grown(path: Path, *lines: str, of: list[str] = WEEK) -> Path:
    path.write_text("\n".join([*of, *lines]) + "\n")
    return path


def test_case_38_a_grown_file_continues_its_run_and_keeps_its_ledger(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    first = import_log(store, grown(path))
    assert (first.kinship, first.new_rows) == ("", 0)
    decide_on(store, first.run_id, "east")
    before = decisions_of(store, first.run_id)
    # New rows stand before, between and behind the old ones: what counts is that none of these is gone.
    longer = [WEEK[0], DAY[1], *WEEK[1:4], DAY[0], *WEEK[4:]]
    again = import_log(store, grown(path, of=longer))
    assert (again.run_id, again.new_rows, again.loaded) == (first.run_id, 2, len(WEEK) + 1)
    assert again.kinship == f"It continues run {first.run_id}: 2 new rows; its decisions are kept."
    assert decisions_of(store, first.run_id) == before
    rows = queries.precedents(store, first.run_id)
    assert {"aisle", "window"} < set(rows["value"])
    # The decision acts on what was derived anew.
    east = str(rows.loc[rows["value"] == "east", "id"].iloc[0])
    assert "decided" in set(queries.transitions(store, first.run_id, east)["rule"])
    assert len(queries.runs(store)) == 1
    # A third file continues it too, and each file that it was loaded from is known.
    third = import_log(store, grown(path, "2026-03-03T09:00:00Z,u1,seat,aisle,1", of=longer))
    assert (third.run_id, third.new_rows) == (first.run_id, 1)
    assert len(queries.run_info(store, first.run_id).spec["earlier"]) == 2
    same = import_log(store, path)
    assert (same.run_id, same.new_rows, same.kinship) == (first.run_id, 0, "")
    assert len(queries.run_info(store, first.run_id).spec["earlier"]) == 2


def test_case_38_a_file_that_the_run_has_outgrown_takes_nothing_from_it(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    run_id = import_log(store, grown(path)).run_id
    import_log(store, grown(path, *DAY))
    old = import_log(store, grown(path))
    assert old.run_id == run_id
    assert "nothing was changed" in old.kinship
    assert queries.run_info(store, run_id).counts["loaded"] == len(WEEK) + 1
    assert "aisle" in set(queries.precedents(store, run_id)["value"])


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ([*WEEK[:3], *WEEK[4:]], "one row"),
        ([*WEEK[:3], WEEK[3].replace("11:00", "11:30"), *WEEK[4:]], "one row"),
        ([*WEEK[:3], WEEK[3].replace("east,1", "east,0"), *WEEK[4:]], "one row"),
        ([WEEK[0], *(line.replace("u1", "u9") for line in WEEK[1:])], "11 rows"),
    ],
    ids=["missing", "another time", "another outcome", "another user"],
)
def test_case_38_a_file_without_every_earlier_row_is_a_new_run_and_says_so(
    store: Store, tmp_path: Path, changed: list[str], missing: str
) -> None:
    path = tmp_path / "export.csv"
    first = import_log(store, grown(path)).run_id
    decide_on(store, first, "east")
    other = import_log(store, grown(path, *DAY, of=changed))
    assert other.run_id != first
    assert f"A new run: {missing} of run {first}," in other.kinship
    assert len(decisions_of(store, first)) == 1
    assert decisions_of(store, other.run_id) == ()


def test_case_38_other_thresholds_columns_or_names_continue_nothing(store: Store, tmp_path: Path) -> None:
    first = import_log(store, grown(tmp_path / "export.csv")).run_id
    longer = grown(tmp_path / "export.csv", *DAY)
    others = [
        import_log(store, longer, preset="direct_facts"),
        import_log(store, longer, source="other.csv"),
        import_log(store, longer, tz="Asia/Tokyo"),
    ]
    assert {one.kinship for one in others} == {""}
    assert len({first, *(one.run_id for one in others)}) == 4


def test_case_38_repeated_rows_count_as_often_as_they_stand(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    twice = [WEEK[0], WEEK[1], WEEK[1], *WEEK[2:]]
    first = import_log(store, grown(path, of=twice)).run_id
    assert import_log(store, grown(path, *DAY, of=twice)).run_id == first
    once = import_log(store, grown(path, *DAY, "2026-03-03T09:00:00Z,u1,seat,aisle,1"))
    assert f"one row of run {first}," in once.kinship


def test_case_38_a_run_that_grew_is_exported_and_taken_in_again(db: Path, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    run_id = ask(db, "import", grown(path))["run_id"]
    with Store(db, PROGRAM) as store:
        decide_on(store, run_id, "east")
    found = ask(db, "import", grown(path, *DAY))
    assert (found["run_id"], found["new_rows"]) == (run_id, 2)
    ask(db, "export", run_id, "--to", tmp_path / "run.zip")
    ask(db, "delete", run_id, "--force")
    back = ask(db, "import", tmp_path / "run.zip")
    assert (back["run_id"], back["decisions"]) == (run_id, 1)
    assert ask(db, "import", grown(path, *DAY, "2026-03-03T09:00:00Z,u1,seat,aisle,1"))["new_rows"] == 1
