from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tepa_core.decisions import PROGRAM
from tepa_core.experiment import RunSpec, measures, run
from tepa_core.store import Store, queries, save_run


def episodes(seed: int, retrieved: list[str | None], success: list[int]) -> pd.DataFrame:
    tasks = len(retrieved)
    return pd.DataFrame(
        {
            "method": "tepa",
            "seed": seed,
            "t": range(tasks),
            "phase": ["before"] * 4 + ["after"] * (tasks - 4),
            "key": "k",
            "success": [bool(outcome) for outcome in success],
            "retrieved": pd.Series(retrieved, dtype=object),
        }
    )


TRUTH = pd.DataFrame(
    [(seed, "k", value, start, end) for seed in (5, 6) for value, start, end in (("a", 0, 4), ("b", 4, 16))],
    columns=["seed", "key", "value", "start", "end"],
)

# Seed 5: "a" is Active before the first task, wrongly revoked after task 1, back after task 2, rightly revoked after
# task 5 (the second task after the change), and "b" follows. A key without truth loses a value as well. Seed 6 learns
# nothing.
CHANGES = pd.DataFrame(
    [
        (5, -1, "k", "a", "active", "promoted"),
        (5, 1, "k", "a", "revoked", "recent"),
        (5, 2, "k", "a", "active", "reactivated"),
        (5, 5, "k", "a", "revoked", "recent"),
        (5, 8, "k", "b", "active", "promoted"),
        (5, 9, "other", "z", "revoked", "recent"),
    ],
    columns=["seed", "occurred", "key", "value", "to_state", "rule"],
)

PLAYED = pd.concat(
    [
        episodes(5, ["a", "a", None, "a", "a", "a", None, None, None, *["b"] * 7], [1] * 4 + [0, 0] + [1] * 10),
        episodes(6, [None] * 16, [0] * 16),
        episodes(5, ["a"] * 16, [1] * 16).assign(method="another"),
    ],
    ignore_index=True,
)


@pytest.mark.parametrize("categories", [False, True])
def test_a_life_measured_by_hand(categories: bool) -> None:
    played = PLAYED.astype({"key": "category", "retrieved": "category", "phase": "category"}) if categories else PLAYED
    # Rows in any order.
    found = measures("tepa", TRUTH[::-1], CHANGES, played[::-1])
    assert set(found["method"]) == {"tepa"}
    table = found.pivot(index="measure", columns="seed", values="value")
    expected = {
        "false_revocations": (1, 0),
        "judged_revocations": (2, 0),
        "false_revocation_share": (0.5, np.nan),
        # The change is at task 4; tasks 4 and 5 are on the key, and the second revokes.
        "revocation_delay_tasks": (2, np.nan),
        "revocation_delay_uses": (2, np.nan),
        "never_revoked": (0, 0),
        # "a" is retrieved at tasks 4 and 5 of 16.
        "stale_exposure_rate": (2 / 16, 0),
        # After the boundary two misses, then successes: the first ten with one miss only are the tasks 5 to 14.
        "recovery_time": (11, np.nan),
        "recovery_time_after": (11, np.nan),
        "never_recovered": (0, 1),
    }
    assert set(table.index) == set(expected)
    for name, (first, second) in expected.items():
        assert table.loc[name].tolist() == pytest.approx([first, second], nan_ok=True), name


def test_a_value_that_is_never_revoked() -> None:
    stuck = CHANGES[CHANGES["occurred"] < 0]
    found = measures("tepa", TRUTH, stuck, PLAYED).query("seed == 5").set_index("measure")["value"]
    assert found["never_revoked"] == 1
    assert np.isnan(found["revocation_delay_tasks"])


def test_a_method_without_episodes_has_no_measures() -> None:
    assert measures("no_memory", TRUTH, CHANGES, PLAYED).empty


def test_the_tables_of_the_store_fit(tmp_path: Path) -> None:
    result = run(RunSpec.build("controlled", seeds=3, methods=["tepa", "no_memory"]))
    with Store(tmp_path / "a.duckdb", PROGRAM) as store:
        run_id = save_run(store, result)
        falls = queries.revocations(store, run_id, "tepa")
        stored = measures("tepa", queries.truth(store, run_id), falls, queries.episodes(store, run_id))
    fresh = measures("tepa", result.truth, falls, result.episodes)
    pd.testing.assert_frame_equal(stored, fresh, check_dtype=False)
    # The run's own record of exposure is an independent count of the same thing.
    exposed = result.episodes.query("method == 'tepa'").groupby("seed")["exposed"].mean()
    rate = stored[stored["measure"] == "stale_exposure_rate"].set_index("seed")["value"]
    assert rate.to_dict() == pytest.approx(exposed.astype(float).to_dict())
