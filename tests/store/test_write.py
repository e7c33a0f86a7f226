import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tepa_core.experiment import RunResult
from tepa_core.lifecycle import Ledger, Rule, State, Thresholds
from tepa_core.methods import thresholds_of
from tepa_core.store import Store, UnknownRunError, delete_run, precedent_id, queries, rename_run, save_log, save_run
from tepa_core.store.derive import spelling
from tepa_core.store.write import log_run_id

KEPT = ("phase", "episode", "truth", "evidence", "precedent", "transition", "import_issue")


def rows_of(store: Store, table: str, run_id: str) -> pd.DataFrame:
    with store.read() as cursor:
        frame = cursor.execute(f"SELECT * EXCLUDE (run_id) FROM {table} WHERE run_id = ?", [run_id]).df()  # noqa: S608
    return frame.sort_values(list(frame.columns), ignore_index=True)


def every_row(store: Store) -> int:
    """Rows in all tables that belong to runs, whatever they are called."""
    with store.read() as cursor:
        tables = cursor.execute(
            "SELECT DISTINCT table_name FROM information_schema.columns WHERE column_name = 'run_id'"
        ).fetchall()
        assert len(tables) >= 8
        return sum(cursor.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for (name,) in tables)  # type: ignore[index]  # noqa: S608


def ledger_of(rows: pd.DataFrame, thresholds: Thresholds) -> tuple[Ledger, dict[tuple[Any, Any], list[Any]]]:
    """Feed stored evidence to a live memory, in order of time, then source."""
    memory = Ledger(thresholds)
    changes: dict[tuple[Any, Any], list[Any]] = {}
    for row in rows.sort_values(["occurred", "seq"]).itertuples():
        key = (row.subject, row.key_id)
        for change in memory.observe(key, row.value_id, bool(row.supports), int(row.occurred)):
            step = (
                int(row.seq),
                change.at,
                change.from_state.label,
                change.to_state.label,
                change.rule.label,
            )
            changes.setdefault((key, change.value), []).append(step)
    return memory, changes


def assert_same_lives(store: Store, run_id: str, method: str, seed: int, thresholds: Thresholds) -> int:
    evidence = rows_of(store, "evidence", run_id)
    memory, changes = ledger_of(evidence[(evidence["method"] == method) & (evidence["seed"] == seed)], thresholds)
    stored = rows_of(store, "precedent", run_id)
    stored = stored[(stored["method"] == method) & (stored["seed"] == seed)]
    live = list(memory.precedents())
    assert len(live) == len(stored)
    by_name = {(row.subject, row.key_id, row.value_id): row for row in stored.itertuples()}
    moved = rows_of(store, "transition", run_id).sort_values("number").groupby("precedent_id")
    for precedent in live:
        subject, key_id = precedent.key  # type: ignore[misc]
        row = by_name[subject, key_id, precedent.value]
        assert State[row.state.upper()] == precedent.state
        assert Rule[row.rule.upper()] == precedent.rule
        for name in (
            "support",
            "conflict",
            "trial_support",
            "trial_conflict",
            "lives",
            "created_at",
            "changed_at",
            "deprecated",
            "posterior",
        ):
            assert getattr(row, name) == getattr(precedent, name), name
        expected = changes.get((precedent.key, precedent.value), [])
        if expected:
            steps = moved.get_group(row.precedent_id)
            columns = ["seq", "occurred", "from_state", "to_state", "rule"]
            assert list(steps[columns].itertuples(index=False, name=None)) == expected
            assert steps["transition_id"].tolist() == [f"{row.precedent_id}.{n}" for n in range(len(expected))]
        else:
            assert row.precedent_id not in moved.groups
        falls = [at for _, at, _, to, _ in expected if to == "revoked"]
        assert (row.revoked_at == falls[-1]) if falls else pd.isna(row.revoked_at)
    return sum(map(len, changes.values()))


class TestSimulations:
    def test_what_was_played_is_what_is_stored(self, store: Store, simulation: RunResult) -> None:
        run_id = save_run(store, simulation)
        assert run_id == simulation.spec.run_id
        stored = queries.episodes(store, run_id)
        played = simulation.episodes.sort_values(["method", "seed", "t"], ignore_index=True)
        assert len(stored) == 4 * 3 * 160
        for name in ("method", "seed", "t", "phase", "key", "action", "success", "size"):
            assert stored[name].tolist() == played[name].tolist(), name
        for name in ("followed", "retrieved", "exposed"):
            assert stored[name].astype(object).where(stored[name].notna(), None).tolist() == (
                played[name].astype(object).where(played[name].notna(), None).tolist()
            ), name
        right = queries.truth(store, run_id)
        assert len(right) == len(simulation.truth)
        assert set(right.itertuples(index=False, name=None)) == set(
            simulation.truth[["seed", "key", "value", "start", "end"]].itertuples(index=False, name=None)
        )

    @pytest.mark.parametrize("method", ["tepa", "tepa_norev"])
    def test_stored_lives_are_those_of_a_live_memory(self, store: Store, simulation: RunResult, method: str) -> None:
        run_id = save_run(store, simulation)
        transitions = [
            assert_same_lives(store, run_id, method, seed, thresholds_of(method, simulation.spec.thresholds))
            for seed in (4, 5, 6)
        ]
        assert min(transitions) > 0

    def test_methods_without_a_lifecycle_have_no_precedents(self, store: Store, simulation: RunResult) -> None:
        run_id = save_run(store, simulation)
        assert list(queries.lanes(store, run_id).itertuples(index=False, name=None)) == [
            (method, seed) for method in ("tepa", "tepa_norev") for seed in (4, 5, 6)
        ]

    def test_saving_again_replaces_the_run_and_keeps_its_name(self, store: Store, simulation: RunResult) -> None:
        first = save_run(store, simulation, "My run")
        before = {table: rows_of(store, table, first) for table in KEPT}
        assert save_run(store, simulation) == first
        assert queries.runs(store)["name"].tolist() == ["My run"]
        for table, rows in before.items():
            pd.testing.assert_frame_equal(rows_of(store, table, first), rows)
        assert save_run(store, simulation, "Another") == first
        assert queries.runs(store)["name"].tolist() == ["Another"]

    def test_a_run_that_cannot_be_saved_leaves_what_was_there(self, store: Store, simulation: RunResult) -> None:
        run_id = save_run(store, simulation)
        count = every_row(store)
        broken = dataclasses.replace(simulation, truth=simulation.truth.assign(value=None))
        with pytest.raises(Exception, match="NOT NULL"):
            save_run(store, broken)
        assert every_row(store) == count
        assert len(queries.truth(store, run_id)) == len(simulation.truth)


class TestLogs:
    @pytest.mark.parametrize(
        "thresholds", [Thresholds(), Thresholds(theta_prop=1, n_rec=1), Thresholds(theta_prop=2, n_rec=4, n_min=3)]
    )
    def test_stored_lives_are_those_of_a_live_memory(
        self, store: Store, make_log: Any, random_rows: Any, thresholds: Thresholds
    ) -> None:
        run_id = save_log(store, make_log(random_rows), thresholds)
        assert assert_same_lives(store, run_id, "", 0, thresholds) == len(rows_of(store, "transition", run_id))
        rules = set(rows_of(store, "transition", run_id)["rule"])
        assert {"proposed", "promoted", "recent", "reactivated"} <= rules

    def test_the_same_file_replaces_itself_and_keeps_its_name(
        self, store: Store, make_log: Any, random_rows: Any
    ) -> None:
        first = save_log(store, make_log(random_rows), Thresholds())
        assert queries.run_info(store, first).name == "notes.csv"
        rename_run(store, first, "  March  ")
        before = {table: rows_of(store, table, first) for table in KEPT}
        assert save_log(store, make_log(random_rows), Thresholds()) == first
        assert queries.runs(store)["name"].tolist() == ["March"]
        for table, rows in before.items():
            pd.testing.assert_frame_equal(rows_of(store, table, first), rows)

    def test_other_bytes_mapping_or_thresholds_are_another_run(self) -> None:
        one = log_run_id("Über uns 2026.csv", "d", {"columns": {}}, Thresholds())
        assert one.startswith("ber-uns-2026-")
        assert one == log_run_id("Über uns 2026.csv", "d", {"columns": {}}, Thresholds())
        assert one != log_run_id("Über uns 2026.csv", "e", {"columns": {}}, Thresholds())
        assert one != log_run_id("Über uns 2026.csv", "d", {"columns": {"key": "slot"}}, Thresholds())
        assert one != log_run_id("Über uns 2026.csv", "d", {"columns": {}}, Thresholds(n_rec=1))
        assert log_run_id("咖啡.csv", "d", {}, Thresholds()).startswith("log-")

    def test_counts_and_issues_and_time_spent_are_kept(self, store: Store, make_log: Any, random_rows: Any) -> None:
        run_id = save_log(store, make_log(random_rows), Thresholds(theta_rev=0.25), "Named", 100.0)
        info = queries.run_info(store, run_id)
        assert (info.kind, info.name, info.source, info.is_log) == ("log", "Named", "notes.csv", True)
        assert info.counts == {"read": 901, "loaded": 900, "rejected": 1, "arrival_times": 0}
        assert info.badges["naive_time"] == 2
        assert info.thresholds == Thresholds(theta_rev=0.25)
        mapping = {"columns": {}, "key_template": None, "tz": "UTC"}
        assert info.spec == {"format": "csv", "mapping": mapping, "digest": "d" * 64}
        assert 100.0 < info.elapsed_s < 160.0
        assert queries.issues(store, run_id).to_dict("records") == [
            {"row": 99, "reason": "the key is missing", "raw": "{}"}
        ]

    def test_nothing_loaded_is_refused(self, store: Store, make_log: Any) -> None:
        log = make_log([(0, "u", "k", "v", True, None)])
        empty = dataclasses.replace(log, evidence=log.evidence.head(0), loaded=0, rejected=2)
        with pytest.raises(ValueError, match=r"notes\.csv has no row that can be loaded; 2 rejected"):
            save_log(store, empty, Thresholds())
        assert every_row(store) == 0

    def test_an_error_half_way_leaves_nothing(self, store: Store, make_log: Any, random_rows: Any) -> None:
        log = make_log(random_rows)
        # The issues come after the evidence, and one of them has no reason.
        broken = dataclasses.replace(log, issues=log.issues.assign(reason=pd.Series([None], dtype=object)))
        with pytest.raises(Exception, match="NOT NULL"):
            save_log(store, broken, Thresholds())
        assert every_row(store) == 0
        assert save_log(store, log, Thresholds())

    def test_phases_are_kept_unless_they_overlap(self, store: Store, make_log: Any) -> None:
        rows = [(minute, "u", "k", "v", True, None) for minute in (0, 10, 20, 30)]
        log = make_log(rows)
        named = dataclasses.replace(log, evidence=log.evidence.assign(phase=["stable", "stable", None, "drift"]))
        run_id = save_log(store, named, Thresholds())
        start = pd.Timestamp("2026-03-01", tz="UTC")
        assert queries.phases(store, run_id).to_dict("list") == {
            "phase": ["stable", "drift"],
            "start": [start, start + pd.Timedelta(minutes=30)],
            "end": [start + pd.Timedelta(minutes=30), start + pd.Timedelta(minutes=30, microseconds=1)],
        }
        mixed = dataclasses.replace(log, evidence=log.evidence.assign(phase=["a", "b", "a", "b"]), digest="e")
        assert queries.phases(store, save_log(store, mixed, Thresholds())).empty


class TestDeleteAndRename:
    def test_delete_leaves_nothing_of_the_run_and_all_of_the_others(
        self, store: Store, simulation: RunResult, make_log: Any, random_rows: Any
    ) -> None:
        played = save_run(store, simulation)
        alone = every_row(store)
        logged = save_log(store, make_log(random_rows), Thresholds())
        assert every_row(store) > alone + 900
        assert delete_run(store, logged) is True
        assert every_row(store) == alone
        assert delete_run(store, logged) is False
        assert delete_run(store, played) is True
        assert every_row(store) == 0

    def test_rename_refuses_blank_names_and_unknown_runs(self, store: Store, simulation: RunResult) -> None:
        run_id = save_run(store, simulation)
        with pytest.raises(ValueError, match="a run needs a name"):
            rename_run(store, run_id, "  ")
        with pytest.raises(UnknownRunError, match="there is no run nowhere"):
            rename_run(store, "nowhere", "x")
        rename_run(store, run_id, "Ours")
        assert queries.run_info(store, run_id).name == "Ours"


def test_precedent_ids_depend_on_what_they_are_about_only() -> None:
    assert precedent_id("tepa", 3, "", "tool", "pandas") == precedent_id("tepa", 3, "", "tool", "pandas")
    different = [("", 0, "a", "b", "c"), ("", 0, "ab", "", "c"), ("", 0, "a", "", "bc"), ("", 1, "a", "b", "c")]
    assert len({precedent_id(*parts) for parts in different}) == 4


def test_a_value_is_spelled_as_its_earliest_item_then_by_alphabet() -> None:
    precedent = np.array([0, 0, 1, 1, 0, 2], np.int32)
    occurred = pd.Series([30, 10, 5, 5, 20, 1])
    written = pd.Series(["WINDOW", "Window", "aisle", "Aisle", " window ", "x"], index=[7, 8, 9, 10, 11, 12])
    for first in ([0, 2, 5], [4, 3, 5]):
        assert spelling(precedent, np.array(first), occurred, written).tolist() == ["Window", "Aisle", "x"]
