"""False revocation in a stationary segment (paper, P3): the compiled rule on draws whose truth never changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import beta as beta_distribution

from tepa_core.lifecycle import EncodedLog, State, Thresholds, replay
from tepa_core.stats.theory import false_revocation_bound

#: Simulated precedents per curve.
TRIALS = 2_000

#: How a simulated precedent is judged, in the order of the table.
ONCE, POSTERIOR, BOTH = "posterior rule, judged once", "posterior rule, after every conflict", "both rules"


def false_revocations_simulated(
    mu: float,
    thresholds: Thresholds,
    n: Sequence[int],
    rng: np.random.Generator,
    *,
    trials: int = TRIALS,
    level: float = 0.95,
) -> pd.DataFrame:
    """Simulate how often a value that still holds is revoked, beside the bound of P3.

    Each simulated precedent becomes Active by one support; then its outcomes are supports with probability ``mu``,
    independent of each other, and nothing ever changes. Every outcome goes through the one rule.

    Parameters
    ----------
    mu
        Mean support (0 to 1).
    thresholds
        ``theta_rev``, ``n_min``, ``theta_rec``, ``n_rec``, ``alpha`` and ``beta`` count.
    n
        Numbers of outcomes to report, each at least 1, increasing.
    rng
        Source of the outcomes; all three ways of judging meet the same ones.
    trials
        Simulated precedents.
    level
        Coverage of the intervals.

    Returns
    -------
    pandas.DataFrame
        ``judged``, ``n``, ``share`` (revoked, of all trials), ``lo``, ``hi`` (Clopper-Pearson), ``bound``:

        `ONCE`
            Revoked by its n-th outcome, with ``n_min`` so large that no earlier one was judged and ``theta_rec`` 0
            (posterior rule alone): what P3 bounds. The rule judges after a conflict only, so a posterior below
            theta_rev whose last outcome is a support does not count.
        `POSTERIOR`
            Revoked within n outcomes by the posterior rule alone, judged after every conflict from ``n_min`` on.
        `BOTH`
            The same with the recent rule as the thresholds have it.

    Raises
    ------
    ValueError
        If ``mu`` is no probability, or ``n`` is empty, not increasing, or not positive.
    """
    counts = np.asarray(list(n), np.int64)
    if not 0.0 <= mu <= 1.0:
        raise ValueError(f"mu must be from 0 to 1, not {mu}")
    if counts.size == 0 or counts[0] < 1 or (np.diff(counts) <= 0).any():
        raise ValueError("n must be increasing numbers of outcomes, each at least 1")
    alone = dataclasses.replace(thresholds, theta_rec=0.0, theta_prop=1, theta_pro=0.0, revokes=True)
    both = dataclasses.replace(alone, theta_rec=thresholds.theta_rec)
    outcomes = rng.random((trials, int(counts[-1]))) < mu
    revoked: dict[str, list[int]] = {ONCE: [], POSTERIOR: [], BOTH: []}
    for name, rule in ((POSTERIOR, alone), (BOTH, both)):
        fell = _first_fall(outcomes, rule)
        revoked[name] = [int((fell <= count).sum()) for count in counts]
    for count in counts:
        # The support that made it Active counts among the outcomes that n_min asks for.
        judged_once = dataclasses.replace(alone, n_min=int(count) + 1)
        revoked[ONCE].append(int((_first_fall(outcomes[:, :count], judged_once) <= count).sum()))
    bound = false_revocation_bound(mu, thresholds.theta_rev, counts)
    frames = []
    for name, numbers in revoked.items():
        k = np.asarray(numbers, np.float64)
        lo = np.where(k > 0, beta_distribution.ppf((1 - level) / 2, np.maximum(k, 1), trials - k + 1), 0.0)
        hi = np.where(k < trials, beta_distribution.ppf((1 + level) / 2, k + 1, np.maximum(trials - k, 1)), 1.0)
        frames.append(
            pd.DataFrame({"judged": name, "n": counts, "share": k / trials, "lo": lo, "hi": hi, "bound": bound})
        )
    return pd.concat(frames, ignore_index=True)


def _first_fall(outcomes: npt.NDArray[np.bool_], thresholds: Thresholds) -> npt.NDArray[np.int64]:
    """Return after how many outcomes each precedent is first revoked, more than there are where it never is."""
    trials, tasks = outcomes.shape
    supports = np.ones((trials, tasks + 1), np.bool_)
    supports[:, 1:] = outcomes
    log = EncodedLog(
        np.repeat(np.arange(trials, dtype=np.int32), tasks + 1),
        supports.ravel(),
        np.tile(np.arange(tasks + 1, dtype=np.int64), trials),
        np.arange(trials * (tasks + 1), dtype=np.int64),
        np.arange(trials + 1, dtype=np.int64),
    )
    changes = replay(log, thresholds).transitions
    falls = changes[changes["to_state"] == State.REVOKED]
    first = np.full(trials, tasks + 1, np.int64)
    np.minimum.at(first, falls["precedent"].astype(np.int64), falls["time"].astype(np.int64))
    return first
