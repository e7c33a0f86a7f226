"""Run against run: differences by hand, and when seeds may be paired."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tepa_core.experiment import (
    OVERALL,
    FactSpec,
    RunSpec,
    measures_summary,
    run_differences,
    same_draws,
    spec_from_dict,
)


def per_seed(success: dict[str, dict[str, list[float]]], first_seed: int = 0) -> pd.DataFrame:
    rows = [
        (method, first_seed + i, phase, value)
        for phase, methods in success.items()
        for method, values in methods.items()
        for i, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=["method", "seed", "phase", "success"])


HERE = {"reversal": {"tepa": [0.9, 1.0, 0.8], "no_memory": [0.3, 0.2, 0.4]}, OVERALL: {"tepa": [0.9, 0.9, 0.9]}}
THERE = {"reversal": {"tepa": [0.5, 0.4, 0.6], "append_only": [0.2, 0.2, 0.2]}, "return": {"tepa": [1.0, 1.0, 1.0]}}


def test_only_what_both_runs_have_is_compared() -> None:
    found = run_differences(per_seed(HERE), per_seed(THERE), paired=True)
    assert found[["method", "phase"]].values.tolist() == [["tepa", "reversal"]]
    row = found.iloc[0]
    assert (row["a"], row["b"], row["diff"]) == pytest.approx((0.9, 0.5, 0.4))
    assert row["lo"] < 0.4 < row["hi"]


def test_paired_bounds_come_from_the_differences_of_the_seeds() -> None:
    rng = np.random.Generator(np.random.PCG64(3))
    shared = rng.normal(0.5, 0.2, 40)
    a, b = shared + rng.normal(0.1, 0.02, 40), shared
    found = run_differences(per_seed({"p": {"m": a.tolist()}}), per_seed({"p": {"m": b.tolist()}}), paired=True).iloc[0]
    expected = stats.bootstrap((a - b,), np.mean, method="percentile", rng=np.random.default_rng(1)).confidence_interval
    assert (found["lo"], found["hi"]) == pytest.approx((expected.low, expected.high), abs=0.002)


def test_without_pairing_there_are_no_bounds() -> None:
    found = run_differences(per_seed(HERE), per_seed(THERE, first_seed=7), paired=False).iloc[0]
    assert found["diff"] == pytest.approx(0.4)
    assert np.isnan([found["lo"], found["hi"]]).all()


def test_other_seeds_cannot_be_called_paired() -> None:
    with pytest.raises(ValueError, match="different seeds"):
        run_differences(per_seed(HERE), per_seed(THERE, first_seed=7), paired=True)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({"fallback": "base_policy"}, True),
        ({"world": {"light_flip": 0.2}}, True),
        ({"world": {"tasks_per_phase": 50}}, False),
        ({"seeds": 11}, False),
        ({"first_seed": 1}, False),
    ],
)
def test_draws_are_the_same_whatever_the_probabilities_but_not_the_counts(other: dict[str, object], same: bool) -> None:
    a, b = RunSpec.build("controlled", seeds=10), RunSpec.build("controlled", **({"seeds": 10} | other))  # type: ignore[arg-type]
    assert same_draws(a, b) is same
    first, second = a.stream_spec.make(a.first_seed), b.stream_spec.make(b.first_seed)
    if a.first_seed == b.first_seed and a.seeds == b.seeds:
        # The base action takes no part in flips or fallbacks: it shows whether the draws are the same.
        drawn = len(first) == len(second) and bool((first.base_action == second.base_action).all())
        assert drawn is same


def test_measures_are_averaged_over_the_seeds_that_have_them() -> None:
    rows = [("tepa", 0, "delay", 2.0), ("tepa", 1, "delay", 4.0), ("tepa", 2, "delay", np.nan)]
    rows += [("tepa", seed, "share", np.nan) for seed in range(3)]
    found = measures_summary(pd.DataFrame(rows, columns=["method", "seed", "measure", "value"])).set_index("measure")
    assert found.loc["delay", "mean"] == 3.0
    assert found["seeds"].to_dict() == {"delay": 2, "share": 0}
    assert (found.loc["delay", "lo"], found.loc["delay", "hi"]) == (2.0, 4.0)
    assert found.loc["share", ["mean", "lo", "hi"]].isna().all()


def test_fact_runs_are_paired_over_the_same_questions_in_as_many_orders() -> None:
    facts = FactSpec("some", "d" * 64)
    assert same_draws(facts, dataclasses.replace(facts, name="copy", methods=("tepa",)))
    assert not same_draws(facts, dataclasses.replace(facts, orders=4))
    assert not same_draws(facts, dataclasses.replace(facts, digest="e" * 64))
    assert not same_draws(facts, RunSpec.build("controlled", seeds=3))


def test_stored_specs_read_back_as_what_they_were() -> None:
    for spec in (RunSpec.build("preference", seeds=3, world={"key_noise": 0.1}), FactSpec("some", "d" * 64)):
        assert spec_from_dict(json.loads(json.dumps(spec.as_dict()))) == spec
