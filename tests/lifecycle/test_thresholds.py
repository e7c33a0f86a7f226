from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tepa_core.lifecycle import DEPRECATED, PRESETS, Rule, State, Thresholds
from tepa_core.lifecycle.precedent import MAX_N_REC, MAX_TRIAL_BUDGET


def test_defaults_are_the_papers() -> None:
    assert dataclasses.asdict(Thresholds()) == {
        "theta_prop": 3,
        "theta_rev": 0.3,
        "n_min": 5,
        "theta_rec": 0.34,
        "n_rec": 3,
        "theta_pro": 0.6,
        "alpha": 1.0,
        "beta": 1.0,
        "revokes": True,
        "trial_budget": 3,
        "trial_pass": 0.6,
    }


def test_presets() -> None:
    assert PRESETS["default"] == Thresholds()
    assert PRESETS["direct_facts"] == Thresholds(theta_prop=1, n_rec=1, theta_pro=0.0)
    with pytest.raises(TypeError):
        PRESETS["default"] = Thresholds(theta_prop=9)  # type: ignore[index]


@pytest.mark.parametrize("name", ["theta_prop", "n_min", "n_rec", "trial_budget"])
@pytest.mark.parametrize("value", [0, -1])
def test_counts_are_at_least_one(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be (at least|from) 1.*not {value}$"):
        Thresholds(**{name: value})


@pytest.mark.parametrize("name", ["theta_prop", "n_min", "n_rec", "trial_budget"])
@pytest.mark.parametrize("value", [2.5, 3.0, True, "3", None])
def test_counts_are_whole_numbers(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be a whole number"):
        Thresholds(**{name: value})  # type: ignore[arg-type]


def test_the_window_fits_its_bits() -> None:
    assert Thresholds(n_rec=MAX_N_REC).n_rec == 62
    with pytest.raises(ValueError, match=r"^n_rec must be from 1 to 62, not 63$"):
        Thresholds(n_rec=63)


def test_the_trial_budget_fits_the_trials_drawn() -> None:
    assert Thresholds(trial_budget=MAX_TRIAL_BUDGET).trial_budget == 18
    with pytest.raises(ValueError, match=r"^trial_budget must be from 1 to 18, not 19$"):
        Thresholds(trial_budget=19)


@pytest.mark.parametrize("name", ["theta_rev", "theta_rec", "theta_pro", "trial_pass"])
@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan"), float("inf")])
def test_shares_are_from_0_to_1(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be from 0 to 1"):
        Thresholds(**{name: value})  # type: ignore[arg-type]
    assert getattr(Thresholds(**{name: 0.0}), name) == 0.0  # type: ignore[arg-type]
    assert getattr(Thresholds(**{name: 1.0}), name) == 1.0  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_the_prior_is_positive(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be above 0"):
        Thresholds(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["theta_rev", "theta_rec", "theta_pro", "trial_pass", "alpha", "beta"])
@pytest.mark.parametrize("value", ["0.3", True, None, [0.3]])
def test_numbers_are_numbers(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be a number, not"):
        Thresholds(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["no", 0, None, []])
def test_revokes_is_yes_or_no(value: object) -> None:
    with pytest.raises(ValueError, match=r"^revokes must be true or false, not"):
        Thresholds(revokes=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["theta_prop", "n_min", "alpha", "beta"])
def test_counts_end_where_sums_would_overflow(name: str) -> None:
    assert getattr(Thresholds(**{name: 10**9}), name) == 10**9  # type: ignore[arg-type]
    for value in (10**9 + 1, 10**30):
        with pytest.raises(ValueError, match=rf"^{name} must be .*1,000,000,000, not {value}$"):
            Thresholds(**{name: value})  # type: ignore[arg-type]


def test_numpy_counts_are_counts() -> None:
    parameters = Thresholds(n_rec=np.int64(4)).parameters()  # type: ignore[arg-type]
    assert (parameters.n_rec, type(parameters.n_rec)) == (4, int)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, Thresholds()),
        ({"theta_rev": "0.2"}, Thresholds(theta_rev=0.2)),
        ({"theta_rev": 0.2, "n_rec": "5"}, Thresholds(theta_rev=0.2, n_rec=5)),
        ({"n_rec": 5.0, "n_min": "7.0"}, Thresholds(n_rec=5, n_min=7)),
        ({"revokes": "false"}, Thresholds(revokes=False)),
        ({"revokes": "No"}, Thresholds(revokes=False)),
        ({"revokes": False}, Thresholds(revokes=False)),
        ({"revokes": "on", "alpha": "2"}, Thresholds(alpha=2.0)),
    ],
)
def test_changed_from_text_and_numbers(settings: dict[str, str | float | bool], expected: Thresholds) -> None:
    changed = Thresholds().changed(settings)
    assert changed == expected
    assert [type(v) for v in dataclasses.astuple(changed)] == [type(v) for v in dataclasses.astuple(Thresholds())]


def test_changed_starts_from_what_it_is_called_on() -> None:
    changed = PRESETS["direct_facts"].changed({"theta_rev": "0.5"})
    assert changed == Thresholds(theta_prop=1, n_rec=1, theta_pro=0.0, theta_rev=0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"theta": "0.2"}, r"^theta is no threshold; the thresholds are theta_prop, theta_rev, n_min"),
        ({"theta_rev": "low"}, r"^theta_rev must be a number, not 'low'$"),
        ({"theta_rev": ""}, r"^theta_rev must be a number, not ''$"),
        ({"n_rec": "2.5"}, r"^n_rec must be a whole number, not '2.5'$"),
        ({"n_rec": "inf"}, r"^n_rec must be a whole number, not 'inf'$"),
        ({"n_rec": "nan"}, r"^n_rec must be a whole number, not 'nan'$"),
        ({"n_rec": "0"}, r"^n_rec must be from 1 to 62, not 0$"),
        ({"theta_pro": "1.5"}, r"^theta_pro must be from 0 to 1, not 1.5$"),
        ({"revokes": "maybe"}, r"^revokes must be true or false, not 'maybe'$"),
    ],
)
def test_changed_names_what_is_wrong(settings: dict[str, str | float | bool], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Thresholds().changed(settings)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_posterior_is_the_mean_of_the_beta(support: int, conflict: int) -> None:
    q = Thresholds().posterior(support, conflict)
    assert 0 < q < 1
    # Beta(s + 1, f + 1): seen from the other side it is the complement.
    assert q == pytest.approx(1 - Thresholds().posterior(conflict, support))


def test_posterior_with_another_prior() -> None:
    # (3 + 2) / (3 + 1 + 2 + 4) by hand.
    assert Thresholds(alpha=2.0, beta=4.0).posterior(3, 1) == 0.5


def test_labels() -> None:
    assert [state.label for state in State] == ["candidate", "hypothesis", "active", "revoked"]
    assert DEPRECATED not in {state.label for state in State}
    # What evidence can do; a person's decisions have labels of their own.
    assert [rule.label for rule in Rule][:7] == [
        "none",
        "proposed",
        "promoted",
        "reactivated",
        "posterior",
        "recent",
        "superseded",
    ]
