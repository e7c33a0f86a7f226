"""The commands decide, ledger and export, and import of an exported run."""

from __future__ import annotations

import getpass
import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tepa_core import cli
from tepa_core.decisions import PROGRAM
from tepa_core.store import Store
from tests.test_cli import ask, refusal

ROOT = Path(__file__).resolve().parents[1]
WORDS = ("--reviewer", "ana", "--reason", "the knee is fine")


@pytest.fixture
def travel(tmp_path: Path) -> tuple[Path, str, dict[str, Any]]:
    db = tmp_path / "a.duckdb"
    run_id = ask(db, "import", str(ROOT / "data" / "travel_preferences.csv"))["run_id"]
    return db, run_id, ask(db, "precedents", run_id, "--state", "revoked")["precedents"][0]


def test_decide_then_undo_then_ledger(travel: tuple[Path, str, dict[str, Any]]) -> None:
    db, run_id, fallen = travel
    before = ask(db, "precedents", run_id)
    dry = ask(db, "decide", run_id, fallen["id"], "reactivate", *WORDS, "--dry-run")
    assert (dry["decision_id"], ask(db, "precedents", run_id)) == (None, before)
    assert ask(db, "ledger", run_id)["decisions"] == []
    taken = ask(db, "decide", run_id, fallen["id"], "reactivate", *WORDS, "--expect-version", dry["version"])
    assert taken["version"] == dry["version"]
    assert taken["effect"] == dry["effect"]
    assert taken["effect"]["transitions_changed"] > 0
    found = ask(db, "explain", run_id, fallen["id"])
    assert found["state"] == "active"
    assert found["transitions"][-1]["rule"] == "decided"
    assert "ana (wrong revocation: “the knee is fine”)" in found["transitions"][-1]["sentence"]
    undone = ask(db, "decide", run_id, fallen["id"], "undo", "--reviewer", "bo", "--reason", "no")
    assert ask(db, "precedents", run_id) == before
    ledger = ask(db, "ledger", run_id, "--verify")
    assert (ledger["ok"], ledger["problems"], ledger["redacted"]) == (True, [], [])
    rows = ledger["decisions"]
    assert [row["decision_id"] for row in rows] == [taken["decision_id"], undone["decision_id"]]
    assert [(row["number"], row["action"], row["reviewer"], row["in_effect"]) for row in rows] == [
        (1, "reactivate", "ana", False),
        (2, "undo", "bo", False),
    ]
    assert rows[0]["effect"] == taken["effect"]
    assert rows[0]["authenticated"] is False
    assert (rows[0]["key"], rows[0]["value"]) == (fallen["key"], fallen["value"])
    assert ledger["head"] == {"count": 2, "hash": rows[1]["hash"]}


def test_a_simulation_says_success_and_pollution_before_and_after(tmp_path: Path) -> None:
    db = tmp_path / "a.duckdb"
    made = ask(db, "run", "controlled", "--seeds", "2", "--methods", "tepa,no_memory")
    run_id = made["run_id"]
    fallen = ask(db, "precedents", run_id, "--seed", "0")["precedents"]
    id_ = next(row["id"] for row in fallen if row["value"] == "conventional" and row["revoked_at"] is not None)
    taken = ask(db, "decide", run_id, id_, "reactivate", *WORDS, "--pin", "--at", "81", "--every-seed")
    effect, at = taken["effect"], taken["at"]
    assert at == 81
    assert set(effect["success"]) == {*made["phases"], "overall"}
    assert effect["success"]["reversal"]["after"] < effect["success"]["reversal"]["before"]
    assert effect["mpi"]["reversal"]["after"] > effect["mpi"]["reversal"]["before"]
    assert effect["success"]["stable"]["after"] == effect["success"]["stable"]["before"]
    assert effect["episodes_changed"] > 0
    assert effect["every_seed"]["seeds"] == 2
    # What was foreseen is what the run shows now.
    to = tmp_path / "episodes.parquet"
    ask(db, "episodes", run_id, "--method", "tepa", "--seed", "0", "--to", str(to))
    shown = pd.read_parquet(to).groupby("phase", observed=True)["success"].mean()
    assert effect["success"]["reversal"]["after"] == pytest.approx(shown["reversal"])
    trace = ask(db, "trace", run_id, "--key", "read csv", "--seed", "0")
    assert [row["number"] for row in trace["decisions"]] == [1]
    assert len(trace["t"]) == len(trace["evidence"]) + 1
    states = trace["values"]["conventional"]["state"]
    assert len(states) == len(trace["t"])
    moment = [state for t, state in zip(trace["t"], states, strict=True) if t == 81]
    assert moment == ["revoked", "active"]


def test_what_cannot_be_decided_is_one_line_and_exit_2(
    travel: tuple[Path, str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    db, run_id, fallen = travel
    of = ("--db", str(db))
    command = ("decide", run_id, fallen["id"])
    dry = ask(db, *command, "confirm", *WORDS, "--dry-run")["version"]
    ask(db, *command, "confirm", *WORDS)
    for arguments, says in (
        ((*command, "reactivate", *WORDS, "--expect-version", dry), "ana confirmed the revocation of it at "),
        ((*command, "confirm", *WORDS, "--pin"), "Only a reactivation can be pinned"),
        ((*command, "reactivate", *WORDS, "--at", "tomorrow"), "--at must be a time such as"),
        ((*command, "reactivate", *WORDS, "--at", "NaT"), "--at must be a time such as"),
        ((*command, "reactivate", *WORDS, "--at", "1999-01-01"), "outside the run: choose a time from 2025-01-"),
        ((*command, "reactivate", "--reviewer", " ", "--reason", "x"), "needs the name of a reviewer"),
        (("decide", run_id, "p0", "confirm", *WORDS), "no precedent p0"),
        (("ledger", run_id, "--redact", "7", "--reviewer", "bo"), "no decision 7"),
        (("ledger", run_id, "--redact", "1"), "needs the name"),
        (("ledger", "nowhere"), "no run nowhere"),
        (("export", run_id, "--to", str(db)), "exists; choose another name"),
        (("export", run_id, "--active", "--to", str(db / "x")), "cannot be written"),
    ):
        assert says in refusal(capsys, *arguments, *of)
    assert len(ask(db, "ledger", run_id)["decisions"]) == 1


def test_an_as_of_decision_takes_a_time_with_or_without_a_zone(travel: tuple[Path, str, dict[str, Any]]) -> None:
    db, run_id, fallen = travel
    at = fallen["revoked_at"]
    taken = ask(db, "decide", run_id, fallen["id"], "reactivate", *WORDS, "--at", at)
    assert pd.Timestamp(taken["at"]) == pd.Timestamp(at)
    ask(db, "decide", run_id, fallen["id"], "undo", *WORDS, "--undoes", taken["decision_id"])
    naive = pd.Timestamp(at).tz_convert("UTC").tz_localize(None).isoformat()
    again = ask(db, "decide", run_id, fallen["id"], "reactivate", *WORDS, "--at", naive)
    assert pd.Timestamp(again["at"]) == pd.Timestamp(at)


def test_verify_names_what_was_changed_and_exits_with_1(
    travel: tuple[Path, str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    db, run_id, fallen = travel
    for action in ("confirm", "reactivate"):
        ask(db, "decide", run_id, fallen["id"], action, *WORDS)
    assert ask(db, "ledger", run_id, "--redact", "1", "--reviewer", "bo")["redacted"] == [
        "The reason of decision 1 was redacted."
    ]
    with Store(db, PROGRAM) as store, store.write() as cursor:
        cursor.execute("DELETE FROM decision WHERE number = 2")
    assert cli.main(["ledger", run_id, "--verify", "--json", "--db", str(db)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["problems"]) == (False, ["1 decision is missing at the end."])
    assert cli.main(["ledger", run_id, "--db", str(db)]) == 0
    text = capsys.readouterr().out
    assert "does not verify" in text
    assert "1 decision is missing at the end." in text


def test_export_delete_import_is_the_same_run(
    travel: tuple[Path, str, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db, run_id, fallen = travel
    ask(db, "decide", run_id, fallen["id"], "reactivate", *WORDS, "--pin")
    to = tmp_path / "run.zip"
    before = [ask(db, command, run_id) for command in ("precedents", "ledger")]
    explained = ask(db, "explain", run_id, fallen["id"])
    counts = ask(db, "export", run_id, "--to", str(to))
    assert (counts["evidence"], counts["decisions"]) == (3835, 1)
    assert "is here already" in refusal(capsys, "import", str(to), "--db", str(db))
    ask(db, "delete", run_id, "--force")
    assert "leave --map" in refusal(capsys, "import", str(to), "--name", "x", "--db", str(db))
    back = ask(db, "import", str(to))
    assert (back["run_id"], back["read"], back["loaded"], back["decisions"]) == (run_id, 3835, 3835, 1)
    # The same but for one thing: nobody here vouches any more for what came with a file.
    precedents, ledger = (ask(db, command, run_id) for command in ("precedents", "ledger"))
    claimed = ledger["claimed"]
    assert claimed["file_digest"] == hashlib.sha256(to.read_bytes()).hexdigest()
    assert {key: claimed[key] for key in ("imported_by", "imported_by_authenticated", "decisions")} == {
        "imported_by": getpass.getuser(),
        "imported_by_authenticated": False,
        "decisions": 1,
    }
    del claimed["decisions"]
    assert ledger["decisions"][0].pop("claimed") == claimed | {"says_authenticated": False}
    assert before[1]["decisions"][0].pop("claimed") is None
    (deleted,) = ledger["deleted"]
    assert f"Run {run_id} was deleted here at " in deleted
    assert deleted.endswith("; the ledger here now begins with the same.")
    assert back["deleted"] == [deleted]
    assert [precedents, ledger] == [before[0], before[1] | {"claimed": claimed, "deleted": [deleted]}]
    told = json.dumps(ask(db, "explain", run_id, fallen["id"]))
    assert json.loads(told.replace("ana (claimed elsewhere; ", "ana (")) == explained
    assert "ana (claimed elsewhere; " in told
    to.write_bytes(to.read_bytes()[:-100])
    ask(db, "delete", run_id, "--force")
    assert "no complete export" in refusal(capsys, "import", str(to), "--db", str(db))
    assert ask(db, "runs")["runs"] == []


def test_active_set_and_instructions_are_json_lines(travel: tuple[Path, str, dict[str, Any]], tmp_path: Path) -> None:
    db, run_id, fallen = travel
    ask(db, "decide", run_id, fallen["id"], "reactivate", *WORDS, "--pin")
    to = tmp_path / "out.jsonl"
    counts = ask(db, "export", run_id, "--active", "--to", str(to))
    active = ask(db, "precedents", run_id, "--state", "active")["precedents"]
    lines = [json.loads(line) for line in to.read_text(encoding="utf-8").splitlines()]
    named = [(line["subject"], line["key"], line["value"]) for line in lines]
    assert named == [(row["subject"], row["key"], row["value"]) for row in active]
    assert counts["rows"] == len(active)
    ask(db, "export", run_id, "--instructions", "--to", str(to), "--force")
    (told,) = [json.loads(line) for line in to.read_text(encoding="utf-8").splitlines()]
    assert (told["op"], told["value"], told["pinned"], told["reason"]) == (
        "set",
        fallen["value"],
        True,
        "the knee is fine",
    )


def test_texts_for_a_person(travel: tuple[Path, str, dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    db, run_id, fallen = travel
    assert cli.main(["ledger", run_id, "--db", str(db)]) == 0
    assert "Nobody has decided on this run yet." in capsys.readouterr().out
    assert cli.main(["decide", run_id, fallen["id"], "confirm", *WORDS, "--dry-run", "--db", str(db)]) == 0
    assert "Nothing was saved." in capsys.readouterr().out
    assert cli.main(["decide", run_id, fallen["id"], "confirm", *WORDS, "--db", str(db)]) == 0
    text = capsys.readouterr().out
    assert f"Decision 1 of run {run_id}" in text
    assert "transitions changed: 0" in text
