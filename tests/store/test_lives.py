import json
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tepa_core.experiment import RunResult
from tepa_core.lifecycle import KeyEvidence, Thresholds
from tepa_core.store import (
    KeyLife,
    Store,
    UnknownPrecedentError,
    UnknownRunError,
    explanation,
    key_life,
    lives,
    plain,
    precedent_life,
    queries,
    save_log,
    save_run,
)

START = pd.Timestamp("2026-03-01", tz="UTC")


@pytest.fixture
def seat(store: Store, make_log: Any) -> str:
    """Take the window from minute 3, the aisle from minute 13, and the window again from minute 23, spelled freely."""
    rows = [(n, "Ann", "Seat", "WINDOW" if n == 1 else "Window", True, f"flight {n}") for n in (1, 2, 3, 4)]
    rows += [(n, "Ann", "Seat", "Aisle", True, None) for n in (11, 12, 13)]
    rows += [(n, "Ann", "Seat", "Window", True, None) for n in (21, 22, 23)]
    rows += [(5, "Ann", "Diet", "Vegan", True, None)]
    return save_log(store, make_log(rows[::-1]), Thresholds())


def course(life: KeyLife, value: str) -> pd.DataFrame:
    (name,) = life.values.loc[life.values["value"] == value, "id"]
    return life.course(name)


def at(minute: int) -> pd.Timestamp:
    return START + pd.Timedelta(minutes=minute)


class TestByHand:
    def test_transitions(self, store: Store, seat: str) -> None:
        life = key_life(store, seat, "seat", subject="Ann")
        assert life.transitions[["value", "to_state", "rule", "x"]].values.tolist() == [
            ["WINDOW", "hypothesis", "proposed", at(3)],
            ["WINDOW", "active", "promoted", at(3)],
            # One support and two conflicts are its last three outcomes: 0.333 < 0.34.
            ["WINDOW", "revoked", "recent", at(12)],
            ["Aisle", "hypothesis", "proposed", at(13)],
            ["Aisle", "active", "promoted", at(13)],
            ["Aisle", "revoked", "recent", at(23)],
            ["WINDOW", "active", "reactivated", at(23)],
        ]

    def test_the_posterior_is_that_of_the_counts_which_judge(self, store: Store, seat: str) -> None:
        life = key_life(store, seat, "seat", subject="Ann")
        window = course(life, "WINDOW").set_index("x")
        # (supports, conflicts): a tally, then its own counts, then a tally from (0, 2) on, then 4 + 3 and 2 + 0.
        expected = {
            1: (1, 0, "candidate", 0),
            3: (3, 0, "active", 1),
            4: (4, 0, "active", 1),
            11: (4, 1, "deprecated", 1),
            12: (0, 2, "revoked", 1),
            13: (0, 3, "revoked", 1),
            22: (2, 3, "revoked", 1),
            23: (7, 2, "active", 2),
        }
        for minute, (support, conflict, state, life_number) in expected.items():
            row = window.loc[at(minute)]
            assert (row["support"], row["conflict"], row["state"], row["life"]) == (
                support,
                conflict,
                state,
                life_number,
            )
            assert row["posterior"] == pytest.approx((support + 1) / (support + conflict + 2))
            low, high = stats.beta.interval(0.95, support + 1, conflict + 1)
            assert (row["lo"], row["hi"]) == (pytest.approx(low), pytest.approx(high))
        assert course(life, "Aisle")["x"].min() == at(11)

    def test_spans_follow_each_other_until_the_last_item(self, store: Store, seat: str) -> None:
        life = key_life(store, seat, "seat", subject="Ann")
        assert life.spans[life.spans["value"] == "WINDOW"].drop(columns="value").values.tolist() == [
            ["candidate", at(1), at(3), 0],
            ["active", at(3), at(11), 1],
            ["deprecated", at(11), at(12), 1],
            ["revoked", at(12), at(23), 1],
            ["active", at(23), at(23), 2],
        ]

    def test_items_are_in_order_of_time_with_both_spellings(self, store: Store, seat: str) -> None:
        life = key_life(store, seat, "seat", subject="Ann")
        assert life.items["x"].tolist() == [at(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23)]
        assert life.items["original"].tolist()[:2] == ["WINDOW", "Window"]
        assert set(life.items["value"]) == set(life.values["value"]) == {"WINDOW", "Aisle"}
        assert (life.subject, life.key, life.key_id, life.x_title) == ("Ann", "Seat", "seat", "event time (UTC)")
        assert life.followed.empty

    def test_without_arrival_times_arrival_is_the_order_of_the_file(self, store: Store, seat: str) -> None:
        # The rows stand in the file the newest first, behind one on another key.
        life = key_life(store, seat, "seat", subject="Ann", order="arrival")
        assert life.items["x"].tolist() == list(range(1, 11))
        assert life.items["occurred"].is_monotonic_decreasing
        assert life.x_title == "order of arrival (item of the log)"
        assert life.transitions["rule"].tolist() == [
            "proposed",
            "promoted",
            "recent",
            "proposed",
            "promoted",
            "recent",
            "reactivated",
        ]

    def test_why_and_standing(self, store: Store, seat: str) -> None:
        life = key_life(store, seat, "seat", subject="Ann")
        window, aisle = (life.values.set_index("value").loc[value, "id"] for value in ("WINDOW", "Aisle"))
        fall = life.transitions.query("rule == 'recent' and value == 'WINDOW'")["transition_id"].iloc[0]
        reason = life.why(fall)
        assert reason.sentence == (
            "Revoked on 1 March 2026, 00:12 UTC by the recent rule: "
            "two of its last three evidence items went against it."
        )
        chosen = life.items[life.items["seq"].isin(reason.evidence)]
        assert chosen["x"].tolist() == [at(4), at(11), at(12)]
        assert reason.would_prevent == 1
        # Its window was emptied when it came back, so the recent rule waits for three outcomes.
        assert life.standing(window) == (
            "Active, with seven supports against two conflicts. Three conflicts in a row would revoke it."
        )
        assert life.needed(window) == 3
        assert life.standing(aisle).startswith("In the archive: its tally since then is no supports against three")


class TestAgainstTheStore:
    @pytest.mark.parametrize("lane", ["tepa", "tepa_norev", ""])
    def test_a_replay_of_one_key_is_what_is_stored(
        self, store: Store, simulation: RunResult, make_log: Any, random_rows: Any, lane: str
    ) -> None:
        run_id = save_run(store, simulation) if lane else save_log(store, make_log(random_rows), Thresholds())
        seed = 5 if lane else 0
        keys = queries.keys(store, run_id, lane, seed)
        assert keys["lives"].sum() >= 2
        for key in keys.itertuples():
            life = key_life(store, run_id, key.key_id, method=lane, seed=seed, subject=key.subject)
            stored = queries.precedents(
                store, run_id, key=key.key_id, method=lane, seed=seed, subject=key.subject
            ).set_index("id")
            values = life.values.set_index("id").loc[stored.index]
            shown = values["state"].where(~values["deprecated"], "deprecated")
            assert shown.tolist() == stored["state"].tolist()
            for name in (
                "value",
                "support",
                "conflict",
                "trial_support",
                "trial_conflict",
                "posterior",
                "rule",
                "lives",
            ):
                assert values[name].tolist() == stored[name].tolist(), name
            for precedent in stored.index:
                steps = queries.transitions(store, run_id, precedent)
                replayed = life.transitions[life.transitions["id"] == precedent].reset_index(drop=True)
                names = ["transition_id", "number", "seq", "from_state", "to_state", "rule", "life", "support"]
                names += ["conflict", "window", "trial_support", "trial_conflict", "posterior"]
                pd.testing.assert_frame_equal(replayed[names], steps[names], check_dtype=False)
                assert replayed["x"].tolist() == steps["occurred"].tolist()
            assert_whole(life)

    def test_clocks_of_a_simulation_are_tasks(self, store: Store, simulation: RunResult) -> None:
        run_id = save_run(store, simulation)
        key = queries.keys(store, run_id, "tepa", 4)["key_id"].iloc[0]
        life = key_life(store, run_id, key, method="tepa", seed=4)
        assert life.x_title == "task"
        played = queries.episodes(store, run_id, "tepa", 4, key)
        assert life.items["x"].tolist() == played["t"].tolist()
        assert life.followed["x"].tolist() == played["t"].tolist()
        assert life.followed["value"].tolist() == played["action"].tolist()
        assert life.spans.groupby("value")["x1"].max().tolist() == [160] * life.spans["value"].nunique()
        assert life.phases["end"].tolist() == [40, 80, 120, 160]
        fall = life.transitions[life.transitions["to_state"] == "revoked"].iloc[0]
        assert f"at task {fall['x']} by the" in life.why(fall["transition_id"]).sentence

    def test_norev_never_revokes(self, store: Store, simulation: RunResult) -> None:
        run_id = save_run(store, simulation)
        for key in queries.keys(store, run_id, "tepa_norev", 4)["key_id"]:
            life = key_life(store, run_id, key, method="tepa_norev", seed=4)
            assert life.thresholds.revokes is False
            for value in life.values["value"]:
                assert "revoked" not in set(course(life, value)["state"])


def assert_whole(life: KeyLife) -> None:
    """Spans of a value touch each other and tell the same states as the posterior; nothing is counted backwards."""
    for value, spans in life.spans.groupby("value"):
        assert spans["x0"].tolist()[1:] == spans["x1"].tolist()[:-1]
        points = course(life, value)
        assert points["x"].is_monotonic_increasing
        assert spans["x0"].iloc[0] == points["x"].iloc[0]
        assert spans["x1"].iloc[-1] >= points["x"].iloc[-1]
        state_life = list(zip(points["state"], points["life"], strict=True))
        changes = [one for one, before in zip(state_life, [None, *state_life], strict=False) if one != before]
        assert list(zip(spans["state"], spans["life"], strict=True)) == changes
        assert ((points["lo"] < points["posterior"]) & (points["posterior"] < points["hi"])).all()


class TestExplanation:
    def test_it_is_json_and_says_what_the_store_knows(self, store: Store, seat: str) -> None:
        (window,) = queries.precedents(store, seat, key="seat", search="window")["id"]
        told = json.loads(json.dumps(explanation(store, seat, window), allow_nan=False))
        assert (told["subject"], told["key"], told["value"], told["state"]) == ("Ann", "Seat", "WINDOW", "active")
        assert (told["would_reactivate"], told["would_revoke"]) == (0, 3)
        fall = told["transitions"][2]
        assert fall | {"sentence": "", "counterfactual": ""} == {
            "transition_id": f"{window}.2",
            "at": "2026-03-01T00:12:00+00:00",
            "from": "active",
            "to": "revoked",
            "rule": "recent",
            "life": 1,
            "posterior": 5 / 8,
            "recent": [1, 0, 0],
            "support": 4,
            "conflict": 2,
            "evidence": [
                {
                    "seq": seq,
                    "at": f"2026-03-01T00:{minute:02d}:00+00:00",
                    "value": value,
                    "supports": True,
                    "text": text,
                    "source_ref": None,
                }
                for seq, minute, value, text in (
                    (7, 4, "Window", "flight 4"),
                    (6, 11, "Aisle", None),
                    (5, 12, "Aisle", None),
                )
            ],
            "sentence": "",
            "counterfactual": "",
            "would_prevent": 1,
        }
        assert told["transitions"][3]["rule"] == "reactivated"
        assert told["transitions"][3]["life"] == 2

    def test_every_precedent_of_a_run_can_be_explained(
        self, store: Store, simulation: RunResult, make_log: Any, random_rows: Any
    ) -> None:
        for run_id in (save_run(store, simulation), save_log(store, make_log(random_rows), Thresholds())):
            found = queries.precedents(store, run_id)
            for row in found.groupby(["method", "state"]).head(3).itertuples():
                told = json.loads(json.dumps(explanation(store, run_id, row.id), allow_nan=False))
                assert told["state"] == row.state
                active = row.state in ("active", "deprecated")
                assert (told["would_reactivate"] == 0) == active
                assert (told["would_revoke"] is None) == (not active or row.method == "tepa_norev")
                for step in told["transitions"]:
                    assert step["evidence"], step
                    assert (step["would_prevent"] is not None) == (step["rule"] in ("recent", "posterior"))

    def test_what_brings_it_back_does(self, store: Store, make_log: Any) -> None:
        rows = [(n, "u", "k", "v", n < 5, None) for n in range(7)]
        run_id = save_log(store, make_log(rows), Thresholds())
        (before,) = queries.precedents(store, run_id)["id"]
        needed = explanation(store, run_id, before)["would_reactivate"]
        for given in (needed - 1, needed):
            more = rows + [(10 + n, "u", "k", "v", True, None) for n in range(given)]
            again = save_log(store, make_log(more, f"with-{given}.csv"), Thresholds())
            assert queries.state_counts(store, again) == ({"active": 1} if given == needed else {"revoked": 1})


@pytest.mark.parametrize("values", [2, 400])
def test_explaining_all_of_a_long_key_replays_it_once_and_reads_no_item_for_each_change(
    store: Store, make_log: Any, monkeypatch: pytest.MonkeyPatch, values: int
) -> None:
    """Work is counted: one replay, one arrangement of the evidence, and per change the few items it quotes."""
    rows = [(n, "u", "k", f"v{n // 4 % values}", True, None) for n in range(4000)]
    run_id = save_log(store, make_log(rows), Thresholds())
    first = queries.precedents(store, run_id, search="v0").sort_values("lives")["id"].iloc[-1]
    done: Counter[str] = Counter()

    def counting(name: str, function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            done[name] += 1
            found = function(*arguments, **named)
            done[f"{name}: places"] += len(found) if isinstance(found, np.ndarray) else 0
            return found

        return call

    monkeypatch.setattr(lives, "trace_key", counting("replays", lives.trace_key))
    monkeypatch.setattr(lives, "KeyEvidence", counting("arrangements", lives.KeyEvidence))
    for name in ("supports", "concerning"):
        monkeypatch.setattr(KeyEvidence, name, counting(name, getattr(KeyEvidence, name)))
    told = explanation(store, run_id, first)["transitions"]
    # A value is active for its third and fourth item and falls with the second of the next value; then it comes back.
    assert len(told) > 3 * 4000 // (4 * values) / 2
    assert done["replays"] == done["arrangements"] == 1
    assert done["supports: places"] + done["concerning: places"] <= 12 * len(told)


def test_what_does_not_exist_is_named(store: Store, seat: str) -> None:
    with pytest.raises(UnknownPrecedentError, match="has no precedent p0; the command 'precedents'"):
        precedent_life(store, seat, "p0")
    with pytest.raises(UnknownPrecedentError, match="has no evidence on the key 'hat'"):
        key_life(store, seat, "hat", subject="Ann")
    with pytest.raises(UnknownRunError, match="there is no run nowhere"):
        precedent_life(store, "nowhere", "p0")
    with pytest.raises(UnknownRunError, match="there is no run nowhere"):
        key_life(store, "nowhere", "seat")
    with pytest.raises(ValueError, match="order must be event or arrival, not 'random'"):
        key_life(store, seat, "seat", order="random")


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (None, None),
        (float("nan"), None),
        (np.float64("nan"), None),
        (pd.NaT, None),
        (pd.NA, None),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (pd.Timestamp("2026-01-01", tz="UTC"), "2026-01-01T00:00:00+00:00"),
        ("", ""),
    ],
)
def test_plain_cells_are_json(cell: Any, expected: Any) -> None:
    assert plain(cell) == expected
    assert type(plain(cell)) is type(expected)
