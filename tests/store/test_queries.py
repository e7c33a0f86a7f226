import dataclasses
from typing import Any

import pandas as pd
import pytest

from tepa_core.experiment import FactSpec, RunResult, RunSpec, run, run_facts
from tepa_core.lifecycle import Thresholds
from tepa_core.store import Store, UnknownRunError, explanation, plain, queries, save_facts, save_log, save_run
from tepa_core.streams.fact_file import fact_file

FACTS = Thresholds(theta_prop=1, n_rec=1)
START = pd.Timestamp("2026-03-01", tz="UTC")


@pytest.fixture
def played(store: Store, simulation: RunResult) -> str:
    return save_run(store, simulation)


@pytest.fixture
def logged(store: Store, make_log: Any) -> str:
    """Replace facts at once: four keys change hands, three of them at minute 9."""
    return save_log(
        store,
        make_log(
            [
                (0, "Ann", "Seat", "Window", True, "The window, please."),
                (1, "Ann", "Diet", "Vegan", True, None),
                (2, "Bob", "Seat", "Aisle", True, "I like to stretch my LEGS"),
                (3, "Bob", "Diet", "Fish", True, None),
                (4, "Bob", "Hotel", "Ritz", True, None),
                (5, "Bob", "Hotel", "Plaza", True, None),
                (9, "Ann", "Seat", "Aisle", True, None),
                (9, "Ann", "Diet", "Fish", True, None),
                (9, "Bob", "Diet", "Vegan", True, None),
                (10, "Ann", "Tea", "Green", True, None),
            ]
        ),
        FACTS,
    )


def named(frame: pd.DataFrame) -> set[tuple[str, str, str]]:
    return set(frame[["subject", "key", "value"]].itertuples(index=False, name=None))


class TestRuns:
    def test_runs_are_listed_newest_first_with_their_sizes(self, store: Store, played: str, logged: str) -> None:
        found = queries.runs(store)
        assert found["run_id"].tolist() == [logged, played]
        assert found["seeds"].tolist() == [0, 3]
        assert found["precedents"].tolist()[0] == 10
        assert found["revoked"].tolist()[0] == 4
        assert found["source"].tolist()[0] == "notes.csv"
        assert found["created_at"].dt.tz is not None

    def test_a_run_knows_its_spec(self, store: Store, played: str, simulation: RunResult) -> None:
        info = queries.run_info(store, played)
        assert RunSpec.from_dict(info.spec) == simulation.spec
        assert info.thresholds == simulation.spec.thresholds
        assert info.counts == {"seeds": 3, "tasks": 160}
        assert (info.kind, info.stream, info.is_log) == ("simulation", "controlled", False)
        assert abs(info.created_at - pd.Timestamp.now("UTC")) < pd.Timedelta(minutes=5)

    def test_an_unknown_run_is_named(self, store: Store) -> None:
        with pytest.raises(UnknownRunError, match="there is no run nowhere; the runs page"):
            queries.run_info(store, "nowhere")

    def test_phases_of_a_simulation_are_tasks(self, store: Store, played: str) -> None:
        assert queries.phases(store, played).to_dict("list") == {
            "phase": ["stable", "light", "reversal", "return"],
            "start": [0, 40, 80, 120],
            "end": [40, 80, 120, 160],
        }


class TestSuccess:
    def test_success_per_seed_is_the_mean_over_each_phase_and_over_all(
        self, store: Store, played: str, simulation: RunResult
    ) -> None:
        found = queries.success_per_seed(store, played)
        episodes = simulation.episodes.assign(success=simulation.episodes["success"].astype(float))
        by_phase = episodes.groupby(["method", "seed", "phase"], observed=True)["success"].mean()
        overall = episodes.groupby(["method", "seed"])["success"].mean()
        assert found["phase"].drop_duplicates().tolist() == ["stable", "light", "reversal", "return", "overall"]
        assert len(found) == 4 * 3 * 5
        for row in found.itertuples():
            expected = (
                overall[row.method, row.seed] if row.phase == "overall" else by_phase[row.method, row.seed, row.phase]
            )
            assert row.success == pytest.approx(expected, abs=1e-12)

    def test_curve_is_the_mean_of_the_last_tasks(self, store: Store, played: str, simulation: RunResult) -> None:
        for window in (1, 10):
            found = queries.curve_per_seed(store, played, window)
            episodes = simulation.episodes.sort_values(["method", "seed", "t"], ignore_index=True)
            rolling = (
                episodes.assign(success=episodes["success"].astype(float))
                .groupby(["method", "seed"])["success"]
                .rolling(window, min_periods=1)
                .mean()
            )
            assert found["success"].tolist() == pytest.approx(rolling.tolist(), abs=1e-12)
            assert found["size"].tolist() == episodes["size"].tolist()

    def test_episodes_are_filtered_by_method_seed_and_key(self, store: Store, played: str) -> None:
        key = queries.episodes(store, played)["key"].iloc[0]
        found = queries.episodes(store, played, "tepa", 5, key)
        assert set(found[["method", "seed", "key"]].itertuples(index=False, name=None)) == {("tepa", 5, key)}
        assert 0 < len(found) < 160
        assert len(queries.episodes(store, played, seed=5)) == 4 * 160

    def test_harm_is_what_no_memory_wins_and_the_method_does_not(self, store: Store, simulation: RunResult) -> None:
        # Two seeds, by hand. a/reversal: no memory wins 2 + 1, append_only 0 + 0: 1.5 lost per seed, exposed on 3 of 4.
        # b/reversal: 1 + 1 against 1 + 0: 0.5 lost. a/stable: 0 + 0 against 1 + 1: no harm. b/stable: equal.
        outcomes = {
            ("no_memory", "a", "stable"): [[0], [0]],
            ("no_memory", "b", "stable"): [[1], [0]],
            ("no_memory", "a", "reversal"): [[1, 1], [1, 0]],
            ("no_memory", "b", "reversal"): [[1], [1]],
            ("append_only", "a", "stable"): [[1], [1]],
            ("append_only", "b", "stable"): [[0], [1]],
            ("append_only", "a", "reversal"): [[0, 0], [0, 0]],
            ("append_only", "b", "reversal"): [[1], [0]],
        }
        exposed = iter([True, True, True, False])
        rows = []
        for (method, key, phase), seeds in outcomes.items():
            for seed, wins in enumerate(seeds):
                for task, win in enumerate(wins):
                    stale = next(exposed) if (method, key, phase) == ("append_only", "a", "reversal") else False
                    t = (0 if phase == "stable" else 40) + (0 if key == "a" else 10) + task
                    rows.append((method, seed, t, phase, key, "x", bool(win), None, None, stale, 0))
        names = "method seed t phase key action success followed retrieved exposed size".split()
        spec = dataclasses.replace(simulation.spec, methods=("no_memory", "append_only"))
        run_id = save_run(
            store,
            RunResult(
                spec,
                pd.DataFrame(rows, columns=names),
                simulation.evidence.head(0),
                simulation.trials,
                simulation.truth,
                simulation.phases,
                1.0,
            ),
        )
        assert queries.harm_by_key(store, run_id, "append_only").to_dict("records") == [
            {"key": "a", "phase": "reversal", "lost": 1.5, "exposed": 0.75, "tasks": 2.0},
            {"key": "b", "phase": "reversal", "lost": 0.5, "exposed": 0.0, "tasks": 1.0},
        ]
        assert queries.harm_by_key(store, run_id, "append_only", limit=1)["key"].tolist() == ["a"]


class TestKeys:
    def test_keys_with_most_revocations_come_first(self, store: Store, logged: str) -> None:
        found = queries.keys(store, logged)
        assert named(found.assign(value=found["active"])) == {
            ("Ann", "Diet", "Fish"),
            ("Ann", "Seat", "Aisle"),
            ("Bob", "Diet", "Vegan"),
            ("Bob", "Hotel", "Plaza"),
            ("Ann", "Tea", "Green"),
            ("Bob", "Seat", "Aisle"),
        }
        by_key = found.set_index(["subject", "key"])
        assert by_key["revocations"].to_dict() == {
            ("Ann", "Diet"): 1,
            ("Ann", "Seat"): 1,
            ("Bob", "Diet"): 1,
            ("Bob", "Hotel"): 1,
            ("Ann", "Tea"): 0,
            ("Bob", "Seat"): 0,
        }
        assert by_key.index[:4].tolist() == [("Ann", "Diet"), ("Ann", "Seat"), ("Bob", "Diet"), ("Bob", "Hotel")]
        assert by_key.loc[("Bob", "Hotel"), ["n_values", "lives"]].tolist() == [2, 2]
        assert len(queries.keys(store, logged, limit=2)) == 2
        assert named(queries.keys(store, logged, subject="Bob").assign(value="")) == {
            ("Bob", "Diet", ""),
            ("Bob", "Hotel", ""),
            ("Bob", "Seat", ""),
        }

    @pytest.mark.parametrize(
        ("search", "expected"),
        [
            ("seat", {("Ann", "Seat"), ("Bob", "Seat")}),
            ("SEAT", {("Ann", "Seat"), ("Bob", "Seat")}),
            ("plaza", {("Bob", "Hotel")}),
            ("ritz", {("Bob", "Hotel")}),
            ("ann", {("Ann", "Seat"), ("Ann", "Diet"), ("Ann", "Tea")}),
            ("%", set()),
            ("x' OR '1'='1", set()),
        ],
    )
    def test_search_looks_into_subject_key_and_values(
        self, store: Store, logged: str, search: str, expected: set[tuple[str, str]]
    ) -> None:
        found = queries.keys(store, logged, search=search)
        assert set(found[["subject", "key"]].itertuples(index=False, name=None)) == expected

    def test_subjects_with_most_revocations_come_first(self, store: Store, logged: str) -> None:
        def listed(search: str | None = None) -> list[tuple[str, int, int]]:
            return list(queries.subjects(store, logged, search).itertuples(index=False, name=None))

        assert listed() == [("Ann", 3, 2), ("Bob", 3, 2)]
        assert listed("SEAT") == [("Ann", 1, 1), ("Bob", 1, 0)]
        assert listed("ritz") == [("Bob", 1, 1)]
        assert queries.subjects(store, logged, limit=1)["subject"].tolist() == ["Ann"]

    def test_a_lane_has_its_own_keys(self, store: Store, played: str, logged: str) -> None:
        assert queries.keys(store, played).empty
        assert not queries.keys(store, played, "tepa", 4).empty
        assert list(queries.lanes(store, logged).itertuples(index=False, name=None)) == [("", 0)]


class TestPrecedents:
    def test_states(self, store: Store, logged: str) -> None:
        assert queries.state_counts(store, logged) == {"active": 6, "revoked": 4}
        assert named(queries.precedents(store, logged, state="revoked")) == {
            ("Ann", "Seat", "Window"),
            ("Ann", "Diet", "Vegan"),
            ("Bob", "Diet", "Fish"),
            ("Bob", "Hotel", "Ritz"),
        }
        assert len(queries.precedents(store, logged, state="active")) == 6
        assert queries.precedents(store, logged, state="hypothesis").empty

    def test_deprecated_is_active_with_a_recent_conflict(self, store: Store, make_log: Any) -> None:
        rows = [(n, "u", "k", "v", True, None) for n in range(3)] + [(3, "u", "k", "v", False, None)]
        rows += [(n, "u", "other", "v", True, None) for n in range(3)]
        run_id = save_log(store, make_log(rows), Thresholds())
        assert queries.precedents(store, run_id, state="deprecated")["key"].tolist() == ["k"]
        assert sorted(queries.precedents(store, run_id, state="active")["state"]) == ["active", "deprecated"]
        assert queries.state_counts(store, run_id) == {"active": 2}

    def test_batch_is_three_or_more_at_one_instant(self, store: Store, logged: str) -> None:
        batch = queries.precedents(store, logged, batch=True)
        assert named(batch) == {("Ann", "Seat", "Window"), ("Ann", "Diet", "Vegan"), ("Bob", "Diet", "Fish")}
        assert batch["batch_size"].tolist() == [3, 3, 3]
        assert set(batch["revoked_at"]) == {START + pd.Timedelta(minutes=9)}
        assert queries.run_info(store, logged).badges["batch_revocation"] == 3
        others = queries.precedents(store, logged, state="revoked").query("batch_size != 3")
        assert others[["value", "batch_size"]].values.tolist() == [["Ritz", 1]]

    def test_one_key_that_flaps_within_one_instant_is_no_batch(self, store: Store, make_log: Any) -> None:
        run_id = save_log(store, make_log([(0, "u", "k", "ab"[n % 2], True, None) for n in range(6)]), FACTS)
        with store.read() as cursor:
            falls = cursor.execute("SELECT count(*) FROM transition WHERE to_state = 'revoked'").fetchone()
        assert falls == (5,)
        assert queries.precedents(store, run_id, batch=True).empty
        assert "batch_revocation" not in queries.run_info(store, run_id).badges

    def test_tasks_of_a_simulation_make_no_batch(self, store: Store, played: str) -> None:
        assert queries.precedents(store, played, batch=True).empty
        assert set(queries.precedents(store, played)["batch_size"]) == {1}

    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            ({"key": "Seat"}, {("Ann", "Seat", "Window"), ("Ann", "Seat", "Aisle"), ("Bob", "Seat", "Aisle")}),
            ({"key": "seat", "subject": "Bob"}, {("Bob", "Seat", "Aisle")}),
            ({"search": "plaza"}, {("Bob", "Hotel", "Plaza")}),
            ({"search": "TEA"}, {("Ann", "Tea", "Green")}),
            # The words stand in the evidence only, which belongs to the key: both of its values are shown.
            ({"search": "window, please"}, {("Ann", "Seat", "Window"), ("Ann", "Seat", "Aisle")}),
            ({"search": "my legs"}, {("Bob", "Seat", "Aisle")}),
            ({"search": "window, please", "state": "revoked"}, {("Ann", "Seat", "Window")}),
            ({"search": "_"}, set()),
            ({"rule": "recent", "subject": "Bob"}, {("Bob", "Diet", "Fish"), ("Bob", "Hotel", "Ritz")}),
            ({"rule": "posterior"}, set()),
            ({"method": "tepa"}, set()),
        ],
    )
    def test_filters(
        self, store: Store, logged: str, filters: dict[str, Any], expected: set[tuple[str, str, str]]
    ) -> None:
        assert named(queries.precedents(store, logged, **filters)) == expected

    def test_times_of_a_log_are_instants(self, store: Store, logged: str) -> None:
        found = queries.precedents(store, logged, key="hotel").set_index("value")
        assert found.loc["Ritz", "created_at"] == START + pd.Timedelta(minutes=4)
        assert found.loc["Ritz", "revoked_at"] == START + pd.Timedelta(minutes=5)
        assert found.loc["Plaza", "changed_at"] == START + pd.Timedelta(minutes=5)
        assert pd.isna(found.loc["Plaza", "revoked_at"])

    def test_times_of_a_simulation_are_tasks(self, store: Store, played: str) -> None:
        found = queries.precedents(store, played, method="tepa", seed=4)
        assert found["changed_at"].dtype.kind == "i"
        fallen = queries.revocations(store, played).query("seed == 4 and to_state == 'revoked'")
        last = fallen.groupby(["key", "value"])["occurred"].max()
        known = found[found["revoked_at"].notna()]
        assert len(known) == len(last) > 0
        for row in known.itertuples():
            assert row.revoked_at == last[row.key, row.value]


class TestTransitions:
    def test_the_life_of_one_precedent(self, store: Store, logged: str) -> None:
        (ritz,) = queries.precedents(store, logged, search="ritz")["id"]
        found = queries.transitions(store, logged, ritz)
        assert found[["from_state", "to_state", "rule", "window", "support", "conflict"]].values.tolist() == [
            ["candidate", "hypothesis", "proposed", "", 0, 0],
            ["hypothesis", "active", "promoted", "", 1, 0],
            ["active", "revoked", "recent", "0", 1, 1],
        ]
        assert found["occurred"].tolist() == [START + pd.Timedelta(minutes=n) for n in (4, 4, 5)]
        # A uniform prior: (1 + 1) / (1 + 2), then (1 + 1) / (1 + 1 + 2).
        assert found["posterior"].tolist() == pytest.approx([2 / 3, 2 / 3, 1 / 2])

    def test_revocations_are_what_fell_and_rose(self, store: Store, played: str) -> None:
        found = queries.revocations(store, played, "tepa_norev")
        assert set(found["to_state"]) == {"active"}
        found = queries.revocations(store, played)
        assert set(found["to_state"]) == {"active", "revoked"}
        assert found["seed"].is_monotonic_increasing
        with store.read() as cursor:
            count = cursor.execute(
                "SELECT count(*) FROM transition JOIN precedent USING (run_id, precedent_id) "
                "WHERE method = 'tepa' AND to_state <> 'hypothesis'"
            ).fetchone()
        assert count == (len(found),)

    def test_transitions_of_a_lane_are_in_order_of_time(self, store: Store, logged: str, played: str) -> None:
        found = queries.lane_transitions(store, logged)
        assert found["occurred"].is_monotonic_increasing
        bob = found[(found["subject"] == "Bob") & (found["key"] == "Hotel")]
        # What one item caused has no order of its own.
        assert sorted(bob[["occurred", "value", "to_state", "rule", "life"]].values.tolist()) == [
            [START + pd.Timedelta(minutes=4), "Ritz", "active", "promoted", 1],
            [START + pd.Timedelta(minutes=4), "Ritz", "hypothesis", "proposed", 0],
            [START + pd.Timedelta(minutes=5), "Plaza", "active", "promoted", 1],
            [START + pd.Timedelta(minutes=5), "Plaza", "hypothesis", "proposed", 0],
            [START + pd.Timedelta(minutes=5), "Ritz", "revoked", "recent", 1],
        ]
        ids = set(queries.precedents(store, played, method="tepa", seed=5)["id"])
        assert set(queries.lane_transitions(store, played, "tepa", 5)["precedent_id"]) <= ids

    def test_evidence_of_a_lane_is_what_was_learned(self, store: Store, played: str, simulation: RunResult) -> None:
        learned = simulation.evidence.query("method == 'tepa' and seed == 5").sort_values("seq")
        found = queries.lane_evidence(store, played, "tepa", 5)
        for name in ("t", "key", "value", "supports"):
            assert found[name].tolist() == learned[name].tolist(), name

    def test_a_precedent_knows_its_place(self, store: Store, logged: str) -> None:
        (ritz,) = queries.precedents(store, logged, search="ritz")["id"]
        assert queries.place_of(store, logged, ritz) == ("", 0, "Bob", "hotel")
        assert queries.place_of(store, logged, "p0") is None
        assert queries.place_of(store, "nowhere", ritz) is None


class TestArchive:
    def test_it_lists_what_was_ever_revoked_with_its_last_fall(self, store: Store, make_log: Any) -> None:
        # Active at 2; 1 of its last 3 outcomes at 6: revoked; back at 10 with four fresh supports; revoked again at 13.
        outcomes = [True] * 5 + [False] * 2 + [True] * 4 + [False] * 3
        rows = [(n, "Ann", "Seat", "Window", good, None) for n, good in enumerate(outcomes)]
        # Revoked at 6 as well, and back since; and one that never falls.
        rows += [(n, "Bob", "Seat", "Aisle", good, "knees") for n, good in enumerate(outcomes[:11])]
        rows += [(n, "Bob", "Diet", "Fish", True, None) for n in range(5)]
        run_id = save_log(store, make_log(rows), Thresholds())
        found = queries.archive(store, run_id).set_index("value")
        assert set(found.index) == {"Window", "Aisle"}
        names = ["state", "lives", "revocations", "rule", "support", "conflict", "would_prevent", "batch_size"]
        # 5 supports and 2 conflicts at the first fall; 4 and the tally's 2 join at the return; then 3 conflicts.
        assert found.loc["Window", names].tolist() == ["revoked", 2, 2, "recent", 9, 7, 2, 1]
        assert found.loc["Aisle", names].tolist() == ["active", 2, 1, "recent", 5, 2, 1, 2]
        assert found.loc["Window", "revoked_at"] == START + pd.Timedelta(minutes=13)
        assert found.loc["Aisle", "revoked_at"] == START + pd.Timedelta(minutes=6)
        assert found.loc["Window", "transition_id"] == f"{found.loc['Window', 'id']}.4"
        assert queries.archive(store, run_id, search="KNEES")["value"].tolist() == ["Aisle"]

    def test_each_row_agrees_with_the_explanation_of_its_fall(
        self, store: Store, simulation: RunResult, make_log: Any, random_rows: Any
    ) -> None:
        for run_id in (save_run(store, simulation), save_log(store, make_log(random_rows), Thresholds())):
            found = queries.archive(store, run_id)
            assert len(found) > 3
            revoked = queries.precedents(store, run_id, state="revoked")
            assert set(revoked["id"]) <= set(found["id"])
            assert queries.archive(store, run_id, method="tepa_norev").empty
            for row in found.head(8).itertuples():
                steps = {s["transition_id"]: s for s in explanation(store, run_id, row.id)["transitions"]}
                falls = [step for step in steps.values() if step["to"] == "revoked"]
                assert falls[-1] == steps[row.transition_id]
                assert len(falls) == row.revocations
                assert plain(row.revoked_at) == falls[-1]["at"]
                for name in ("rule", "support", "conflict", "would_prevent"):
                    assert plain(getattr(row, name)) == falls[-1][name], name


class TestAnswers:
    """Two questions: one for a key that was stated twice, one through two relations."""

    FILE = fact_file(
        {
            "context": "0. The capital of Verrin is Ostmar.\n1. The capital of Verrin is Lindhaven.\n"
            "2. The author of The Salt Ledger is Edda Kroll.\n3. Edda Kroll is married to Bram Lioret.",
            "questions": ["What is the capital of Verrin?", "Who is the spouse of the author of The Salt Ledger?"],
            "answers": [["Lindhaven", "Lindhaven City"], ["Bram Lioret"]],
        },
        "two",
    )

    @pytest.fixture
    def answered(self, store: Store) -> str:
        spec = FactSpec.build(self.FILE, methods=["tepa", "append_only"], orders=2)
        return save_facts(store, run_facts(self.FILE, spec), 4)

    def test_every_method_answers_each_question_once_in_each_order(self, store: Store, answered: str) -> None:
        for order in (0, 1):
            found = queries.answers(store, answered, order)
            assert found[["question", "method"]].values.tolist() == [
                [0, "append_only"],
                [0, "tepa"],
                [1, "append_only"],
                [1, "tepa"],
            ]
        assert queries.answers(store, answered, 2).empty

    def test_single_question_has_its_key_golds_and_what_was_retrieved(self, store: Store, answered: str) -> None:
        found = queries.answers(store, answered).set_index(["question", "method"])
        tepa = found.loc[(0, "tepa")]
        assert tepa["text"] == "What is the capital of Verrin?"
        assert tepa["gold"] == "Lindhaven | Lindhaven City"
        assert tepa["key"] == "capital · Verrin"
        assert (tepa["answer"], tepa["success"], tepa["retrieved"]) == ("Lindhaven", True, "Lindhaven")
        assert not tepa["exposed"]
        assert pd.isna(tepa["attribution"])
        assert found.loc[(0, "append_only"), "retrieved"] == "Ostmar | Lindhaven"
        assert found.loc[(0, "append_only"), "exposed"]

    def test_chained_question_has_its_attribution(self, store: Store, answered: str) -> None:
        found = queries.answers(store, answered).set_index(["question", "method"])
        chained = found.loc[(1, "tepa")]
        # The closest sentence names the author; the spouse is held, but a step further.
        assert chained["answer"] == "Edda Kroll"
        assert chained["attribution"] == "state right, chain not found"

    def test_run_without_questions_has_no_answers(self, store: Store, played: str) -> None:
        assert queries.answers(store, played).empty


@pytest.fixture(scope="module")
def tried() -> RunResult:
    return run(RunSpec.build("preference", seeds=2, methods=["tepa_full", "lww_validated"]))


class TestTrials:
    def test_trials_of_a_key_are_those_of_the_run_in_order(self, store: Store, tried: RunResult) -> None:
        run_id = save_run(store, tried)
        held = tried.trials
        for method, seed, key in (("tepa_full", 1, "seat"), ("lww_validated", 0, "meal")):
            mine = held[(held["method"] == method) & (held["seed"] == seed) & (held["key"] == key)]
            found = queries.trials(store, run_id, method, seed, key)
            columns = ["t", "value", "number", "kind", "success"]
            assert found.columns.tolist() == columns
            assert len(found) > 0
            assert found.values.tolist() == mine.sort_values(["t", "number"])[columns].values.tolist()

    def test_method_without_trials_has_none(self, store: Store, played: str) -> None:
        assert queries.trials(store, played, "tepa", 4, "read csv").empty
