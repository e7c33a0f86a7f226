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

LOGS = Path(__file__).parent / "logs"


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
