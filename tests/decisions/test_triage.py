"""The triage against exhaustive and dense inference, on hand-made logs, and against a simulation's truth."""

from __future__ import annotations

import importlib
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from tepa_core.decisions import triage
from tepa_core.experiment import RunResult, RunSpec, run
from tepa_core.lifecycle import Thresholds, Verdict, encode, replay

# The package exports the function under the name of its module.
MODULE = importlib.import_module("tepa_core.decisions.triage")


def log_of(said: list[tuple[str, str, bool]], verdicts: list[tuple[int, str, str, Verdict]] = ()) -> pd.DataFrame:  # type: ignore[assignment]
    """Evidence (key, value, supports), one item a time step, and decisions (time, key, value, verdict)."""
    rows = [(i, i, "u", key, value, supports, 0) for i, (key, value, supports) in enumerate(said)]
    rows += [(-1 - i, at, "u", key, value, False, int(v)) for i, (at, key, value, v) in enumerate(verdicts)]
    return pd.DataFrame(rows, columns=["seq", "t", "subject", "key_id", "value_id", "supports", "verdict"])


def ranked(evidence: pd.DataFrame, thresholds: Thresholds | None = None, **more: Any) -> pd.DataFrame:
    th = thresholds or Thresholds()
    log, labels = encode(evidence, time="t")
    frame = triage(log, replay(log, th), th, **more)
    return frame.assign(
        key=labels["key_id"].to_numpy()[frame["precedent"]], value=labels["value_id"].to_numpy()[frame["precedent"]]
    )


def with_grid(patch: pytest.MonkeyPatch, rates: list[float], noises: list[float]) -> None:
    patch.setattr(MODULE, "CHANGE_RATES", np.array(rates))
    patch.setattr(MODULE, "NOISES", np.array(noises))


def emission(state: int, value: int, supports: bool, e: float) -> float:
    return 1 - e if (state == value) == supports else e


def exhaustive(
    items: list[tuple[int, bool]], states: int, h: float, e: float, asked: int, at: int
) -> tuple[float, float, float, float]:
    """Sum over every path of states: the likelihood, and P(asked value holds) at, until, and after the last item."""
    total = held_at = held_last = 0.0
    for path in product(range(states), repeat=len(items)):
        p = 1 / states
        for i, (value, supports) in enumerate(items):
            if i:
                p *= 1 - h if path[i] == path[i - 1] else h / (states - 1)
            p *= emission(path[i], value, supports, e)
        total += p
        held_at += p * (path[at] == asked)
        held_last += p * (path[-1] == asked)
    until = items[: at + 1]
    before = exhaustive(until, states, h, e, asked, at)[2] if len(until) < len(items) else held_last / total
    return total, held_at / total, held_last / total, before


def dense(
    value: npt.NDArray[np.int64], supports: npt.NDArray[np.bool_], states: int, h: float, e: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Forward and smoothed probabilities with whole transition matrices, (items, states) each."""
    move = np.full((states, states), h / (states - 1))
    np.fill_diagonal(move, 1 - h)
    like = np.where((np.arange(states) == value[:, None]) == supports[:, None], 1 - e, e)
    n = len(value)
    forward, backward = np.empty((n, states)), np.ones((n, states))
    for i in range(n):
        forward[i] = like[i] * (np.full(states, 1 / states) if i == 0 else forward[i - 1] @ move)
        forward[i] /= forward[i].sum()
    for i in range(n - 2, -1, -1):
        backward[i] = move @ (like[i + 1] * backward[i + 1])
        backward[i] /= backward[i].sum()
    smoothed = forward * backward
    return forward, smoothed / smoothed.sum(axis=1, keepdims=True)


A, B = "a", "b"
#: Active at item 2, revoked at 5 by two conflicts (1 0 0), then one support and one refutation of b.
SHORT = [("k", A, True)] * 4 + [("k", B, True)] * 2 + [("k", A, True), ("k", B, False)]
SHORT_ITEMS = [(0, True)] * 4 + [(1, True)] * 2 + [(0, True), (1, False)]


@pytest.mark.parametrize(("h", "e"), [(0.05, 0.1), (0.3, 0.02), (0.001, 0.4)])
def test_probabilities_equal_the_sum_over_every_course_of_events(
    monkeypatch: pytest.MonkeyPatch, h: float, e: float
) -> None:
    with_grid(monkeypatch, [h], [e])
    row = ranked(log_of(SHORT)).iloc[0]
    assert (row["value"], row["at"]) == (A, 5)
    # Two named values and the one that the log has not named.
    _, at, last, until = exhaustive(SHORT_ITEMS, 3, h, e, asked=0, at=5)
    assert row[["p_wrong", "p_now", "p_at"]].tolist() == pytest.approx([at, last, until], rel=1e-9)


def test_change_rate_and_noise_are_averaged_by_their_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    with_grid(monkeypatch, [0.02, 0.2], [0.05, 0.3])
    row = ranked(log_of(SHORT)).iloc[0]
    sums = np.array([exhaustive(SHORT_ITEMS, 3, h, e, asked=0, at=5) for h in (0.02, 0.2) for e in (0.05, 0.3)])
    expected = sums[:, 0] @ sums[:, 1:] / sums[:, 0].sum()
    assert row[["p_wrong", "p_now", "p_at"]].tolist() == pytest.approx(expected.tolist(), rel=1e-9)


def test_many_values_and_long_keys_agree_with_dense_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    h, e = 0.03, 0.15
    with_grid(monkeypatch, [h], [e])
    rng = np.random.default_rng(5)
    n, named = 1500, 25
    favoured = np.repeat(rng.integers(0, named, n // 30), 30)
    value = np.where(rng.random(n) < 0.8, favoured, rng.integers(0, named, n))
    supports = rng.random(n) < 0.85
    evidence = log_of([("k", f"v{v:02d}", bool(s)) for v, s in zip(value, supports, strict=True)])
    frame = ranked(evidence)
    names = np.unique(evidence["value_id"])
    forward, smoothed = dense(np.searchsorted(names, evidence["value_id"]), supports, len(names) + 1, h, e)
    column = np.searchsorted(names, frame["value"])
    assert len(frame) > 20
    np.testing.assert_allclose(frame["p_at"], forward[frame["at"], column], rtol=1e-7)
    np.testing.assert_allclose(frame["p_wrong"], smoothed[frame["at"], column], rtol=1e-7)
    np.testing.assert_allclose(frame["p_now"], forward[-1, column], rtol=1e-7)


def test_facts_by_hand() -> None:
    # seat: window x6, one aisle, window x3, aisle x2 (revoked at 11: 1 0 0), aisle x3 (active), one window refuted.
    # meal: one item of another key, so exposure is 16 of 17.
    said = [("seat", "window", True)] * 6 + [("seat", "aisle", True)] + [("seat", "window", True)] * 3
    said += [("seat", "aisle", True)] * 2 + [("seat", "aisle", True)] * 3 + [("seat", "window", False)]
    said += [("meal", "soup", True)]
    frame = ranked(log_of(said))
    assert len(frame) == 1
    row = frame.iloc[0]
    assert (row["value"], row["at"], row["rule"], row["number"]) == ("window", 11, "recent", 2)
    assert (row["support"], row["conflict"]) == (9, 3)
    assert row["posterior_before"] == pytest.approx(10 / 13)
    assert row["posterior_after"] == pytest.approx(10 / 14)
    assert row["would_prevent"] == 1
    # Three windows stand between the earlier aisle and the two that revoked it.
    assert row["undisturbed"] == 3
    assert (row["supports_since"], row["conflicts_since"]) == (0, 4)
    assert row["successor_supports"] == 3
    assert (row["came_back"], row["state"]) == (False, "revoked")
    assert row["exposure"] == pytest.approx(16 / 17)
    assert row["score"] == pytest.approx(row["p_wrong"] * 16 / 17)
    assert row["reasons"] == (
        "Three supports in a row before the conflicts that revoked it; one support more instead would have prevented "
        "it; since then no items for it and four items against it; another value is active now, with three supports "
        "since; 94% of the evidence is on this key."
    )


def test_superseded_value_has_no_counterfactual_and_came_back_is_seen() -> None:
    th = Thresholds(theta_prop=1, theta_pro=0.5, theta_rec=0.0, theta_rev=0.0)
    frame = ranked(log_of([("k", A, True), ("k", B, True), ("k", A, True)]), th).sort_values("at")
    assert frame["rule"].tolist() == ["superseded", "superseded"]
    assert frame["would_prevent"].isna().all()
    assert frame["came_back"].tolist() == [True, False]
    assert frame["state"].tolist() == ["active", "revoked"]


def test_what_happened_since_decides_between_equal_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    with_grid(monkeypatch, [0.01], [0.1])
    # Three keys with the same record and the same two conflicts; then supports, nothing, or another value.
    record = [("{}", A, True)] * 8 + [("{}", B, True)] * 2
    after = {"back": [A] * 3, "quiet": [], "moved": [B] * 6}
    said = []
    for key, values in after.items():
        said += [(key, value, ok) for _, value, ok in record] + [(key, value, True) for value in values]
    p = ranked(log_of(said)).groupby("key")["p_wrong"].first()
    assert p["back"] > 0.8 > p["quiet"] > p["moved"]
    assert p["moved"] < 0.1


def test_failure_of_what_was_tried_instead_speaks_for_the_value() -> None:
    said = [("k", A, True)] * 8 + [("k", A, False)] * 2
    quiet = ranked(log_of(said)).iloc[0]
    tried = ranked(log_of([*said, ("k", B, False), ("k", B, False)])).iloc[0]
    assert quiet["supports_since"] == tried["supports_since"] == 0
    assert tried["p_wrong"] > quiet["p_wrong"]


def test_keys_of_the_same_use_are_counted_together() -> None:
    said = [("k1", A, True)] * 4 + [("k1", B, True)] * 2 + [("k2", A, True)] * 4 + [("k2", B, True)] * 6
    evidence = log_of(said)
    alone = ranked(evidence).set_index("key")["exposure"]
    assert alone["k1"] == pytest.approx(6 / 16)
    assert alone["k2"] == pytest.approx(10 / 16)
    assert ranked(evidence, use=[0, 0])["exposure"].tolist() == [1.0, 1.0]


def test_decisions_are_no_evidence() -> None:
    evidence = [("k", A, True)] * 8 + [("k", B, True)] * 2
    plain = ranked(log_of([*evidence, ("k", B, True)])).iloc[0]
    decided = ranked(log_of([*evidence, ("k", B, True)], [(9, "k", A, Verdict.CONFIRM)])).iloc[0]
    assert decided[["p_wrong", "p_at", "p_now", "exposure"]].tolist() == pytest.approx(
        plain[["p_wrong", "p_at", "p_now", "exposure"]].tolist()
    )
    # A reactivation at 12 replaces b, which no evidence revoked: only the revocation of a is listed.
    replaced = ranked(log_of([*evidence, *[("k", B, True)] * 3], [(12, "k", A, Verdict.REACTIVATE)]))
    assert replaced["value"].tolist() == [A]
    assert replaced["state"].tolist() == ["active"]


def test_a_key_that_holds_several_values_is_judged_up_to_that_decision() -> None:
    evidence = [("k", A, True)] * 8 + [("k", B, True)] * 2
    asked = ranked(log_of(evidence)).iloc[0]
    later = [("k", B, True)] * 4 + [("k", B, False)] * 9
    declared = ranked(log_of([*evidence, *later], [(9, "k", A, Verdict.BOTH_VALID)]))
    assert declared["value"].tolist() == [A]
    assert declared["p_wrong"].iloc[0] == pytest.approx(asked["p_wrong"])


def test_nothing_revoked_gives_the_columns_without_rows() -> None:
    nothing = ranked(log_of([("k", A, True)]))
    assert len(nothing) == 0
    assert list(nothing.columns[:-2]) == list(ranked(log_of(SHORT)).columns[:-2])


@pytest.fixture(scope="module")
def light_flips() -> RunResult:
    return run(RunSpec.build("controlled", seeds=50, methods=["tepa"], world={"light_flip": 0.10}))


@pytest.mark.parametrize("as_of", [80, 100])
def test_ranks_wrong_revocations_above_right_ones(light_flips: RunResult, as_of: int) -> None:
    evidence = light_flips.evidence[light_flips.evidence["t"] <= as_of]
    evidence = evidence.assign(
        subject=evidence["seed"].astype(str), key_id=evidence["key"].astype(str), value_id=evidence["value"].astype(str)
    )
    log, labels = encode(evidence, time="t")
    of_key = labels["key_id"].to_numpy()[log.key_start[:-1]]
    frame = triage(log, replay(log, Thresholds()), Thresholds(), use=pd.factorize(of_key)[0])
    who = labels.iloc[frame["precedent"]].reset_index(drop=True)
    listed = frame.assign(seed=who["subject"].astype(int), key=who["key_id"], value=who["value_id"])
    judged = listed.merge(light_flips.truth.rename(columns={"value": "right"}), on=["seed", "key"])
    judged = judged[(judged["at"] >= judged["start"]) & (judged["at"] < judged["end"])]
    wrong = judged["value"] == judged["right"]
    assert len(judged) == len(listed)
    assert 8 <= wrong.sum() <= len(judged) - 8
    for score in ("score", "p_wrong"):
        u = mannwhitneyu(judged.loc[wrong, score], judged.loc[~wrong, score]).statistic
        assert u / (wrong.sum() * (~wrong).sum()) >= 0.8
