"""The archive question: who was ever revoked, with the numbers of the last time, found by text, lane and batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tepa_core.experiment import RunResult
from tepa_core.lifecycle import Thresholds
from tepa_core.logs import import_log
from tepa_core.store import LogImport, Store, queries, save_log, save_run

ROOT = Path(__file__).parents[2]
MakeLog = Callable[..., LogImport]


@pytest.fixture
def travel(store: Store) -> str:
    return import_log(store, ROOT / "data" / "travel_preferences.csv").run_id


def test_numbers_of_the_last_revocation_by_hand(store: Store, make_log: MakeLog) -> None:
    # tea: 4 supports, then coffee twice within the last three (1 0 0): revoked at minute 5 with 4 against 2. Its
    # mean is 1/3 < 0.34 and one support more makes it 2/3.
    said = ["tea", "tea", "tea", "tea", "coffee", "coffee", "tea", "tea", "tea", "tea"]
    rows = [(minute, "u", "drink", value, True, None) for minute, value in enumerate(said)]
    run_id = save_log(store, make_log(rows), Thresholds())
    listed = queries.archive(store, run_id)
    assert listed["value"].tolist() == ["tea"]
    tea = listed.iloc[0]
    assert (tea["support"], tea["conflict"], tea["would_prevent"], tea["rule"]) == (4, 2, 1, "recent")
    assert tea["revoked_at"] == pd.Timestamp("2026-03-01T00:05Z")
    assert (tea["revocations"], tea["batch_size"]) == (1, 1)


def test_superseded_value_has_no_counterfactual(store: Store, make_log: MakeLog) -> None:
    # One statement makes a value active; with no revocation rule that fires, the next other value supersedes it.
    th = Thresholds(theta_prop=1, theta_rec=0.0, theta_rev=0.0)
    rows = [(0, "u", "drink", "tea", True, None), (1, "u", "drink", "coffee", True, None)]
    listed = queries.archive(store, save_log(store, make_log(rows), th))
    assert listed["rule"].tolist() == ["superseded"]
    assert listed["would_prevent"].isna().all()


def test_batch_of_eight_is_counted_at_its_instant(store: Store, travel: str) -> None:
    listed = queries.archive(store, travel)
    batch = listed[listed["batch_size"] >= 3]
    assert set(batch["subject"]) == {
        *("u-benedikt", "u-chloe", "u-dagny", "u-esteban", "u-franziska", "u-gaspard", "u-lotte", "u-pilar")
    }
    assert set(batch["batch_size"]) == {8}
    assert set(batch["revoked_at"]) == {pd.Timestamp("2025-06-12T03:30Z")}


def test_agrees_with_the_stored_states(store: Store, travel: str) -> None:
    listed, everything = queries.archive(store, travel), queries.precedents(store, travel)
    assert set(listed["id"]) == set(everything.loc[everything["revoked_at"].notna(), "id"])
    gone = listed[listed["state"] == "revoked"].set_index("id")
    stored = everything[everything["state"] == "revoked"].set_index("id")
    assert gone["support"].to_dict() == stored["support"].to_dict()
    assert gone["revoked_at"].to_dict() == stored["revoked_at"].to_dict()


@pytest.mark.parametrize("text", ["Fjordlink", "u-ingrid", "HOTEL_type", "brace is off"])
def test_search_looks_in_user_key_value_and_sentences(store: Store, travel: str, text: str) -> None:
    rows = pd.read_csv(ROOT / "data" / "travel_preferences.csv", dtype=str)
    said = rows[rows["text"].str.contains(text, case=False, regex=False)]
    places = set(zip(said["user"], said["key"].str.lower(), strict=True))
    everything, found = queries.archive(store, travel), queries.archive(store, travel, search=text)
    expected = [
        row["id"]
        for _, row in everything.iterrows()
        if (row["subject"], row["key_id"]) in places
        or text.lower() in f"{row['subject']} {row['key']} {row['value']}".lower()
    ]
    assert 0 < len(expected) < len(everything)
    assert found["id"].tolist() == expected


def test_lanes_of_a_simulation(store: Store, simulation: RunResult) -> None:
    run_id = save_run(store, simulation)
    every = queries.archive(store, run_id, method="tepa")
    assert set(every["seed"]) == {4, 5, 6}
    assert set(queries.archive(store, run_id, method="tepa", seed=5)["seed"]) == {5}
    assert queries.archive(store, run_id, method="tepa_norev").empty
    assert every["revoked_at"].dtype.kind == "i"


def test_subjects_and_their_keys(store: Store, travel: str) -> None:
    falls = queries.lane_transitions(store, travel).query("to_state == 'revoked'")
    subjects = queries.subjects(store, travel)
    counted: Any = falls.groupby("subject").size()
    assert subjects.set_index("subject")["revocations"].to_dict() == {
        name: int(counted.get(name, 0)) for name in subjects["subject"]
    }
    assert len(subjects) == 40
    assert queries.subjects(store, travel, "exit row", limit=2)["subject"].size == 2
    keys = queries.keys(store, travel, subject="u-orla")
    assert set(keys["subject"]) == {"u-orla"}
    assert {"employer", "duty"} <= set(keys["key_id"])


def test_place_of_a_precedent(store: Store, travel: str) -> None:
    frame = queries.precedents(store, travel, subject="u-mara", key="seat")
    assert queries.place_of(store, travel, frame["id"].iloc[0]) == ("", 0, "u-mara", "seat")
    assert queries.place_of(store, travel, "p0") is None
