"""What revocation guarantees (paper, P1 to P3): the bounds, and their terms measured on tasks that were played.

Conventions. A loss is one minus success, so losses are shares of tasks. A *superseded* value is one that memory offers
although another is right at the time. All agents compared met the same tasks with the same draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tepa_core.stats.bootstrap import FloatArray, Interval, resample_counts

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ExposureTerms:
    """The terms of P2 in one phase, measured; each with a paired bootstrap interval over seeds.

    Attributes
    ----------
    q
        Exposure probability: share of all tasks at which the append-only memory offers a superseded value.
    eta
        Following probability: share of those tasks at which the agent acts on the offered value.
    delta
        Loss per error: mean loss of the append-only agent on the tasks where it followed a superseded value, minus the
        mean loss of the agent without memory on the very same tasks.
    bound
        q * eta * delta: what excluding superseded values is worth per task, if nothing takes their place.
    gain
        L_append - L_revoke: mean loss of the append-only agent minus that of the agent that revokes, over all tasks.
    slack
        gain - bound, which is learned + side_effect. P2 says that it is not below zero for an agent that excludes every
        superseded value, and nothing else.
    learned
        Of the slack: success of the agent that revokes minus that of no memory on the tasks that misled append-only,
        per task of the phase. Positive when revoked values are replaced, negative when they are revoked late.
    side_effect
        Of the slack: success of the agent that revokes minus that of append-only on all other tasks, per task of the
        phase. Negative when values that still hold are revoked, or a change costs tries.
    benefit
        b: success that the append-only memory adds to no memory on all other tasks, per task of the phase.
    pollution
        S_nomem - S_append over all tasks, which is bound - benefit: above zero exactly when MPI is.
    exposed, followed
        How many tasks q and eta count, over all seeds.

    Notes
    -----
    ``eta`` and ``delta`` are NaN where nothing was exposed or followed; the bound is then 0.
    """

    q: Interval
    eta: Interval
    delta: Interval
    bound: Interval
    gain: Interval
    slack: Interval
    learned: Interval
    side_effect: Interval
    benefit: Interval
    pollution: Interval
    exposed: int
    followed: int

    @property
    def holds(self) -> bool:
        """Whether the measured gain is at least the measured bound (rounding errors aside)."""
        return self.slack.estimate >= -1e-12


def exposure_terms(
    exposed: BoolArray,
    followed: BoolArray,
    append: BoolArray,
    revoke: BoolArray,
    nomem: BoolArray,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
) -> ExposureTerms:
    """Measure q, eta and delta of P2 beside the gain that they bound from below.

    Parameters
    ----------
    exposed, followed : numpy.ndarray of bool, shape (seeds, tasks)
        Of the append-only agent at each task of the phase: memory offered a superseded value; the agent acted on the
        value that memory offered.
    append, revoke, nomem : numpy.ndarray of bool, shape (seeds, tasks)
        Success of the append-only agent, of the one that revokes, and of the one without memory on the same tasks.
    rng : numpy.random.Generator
        Source of the resamples: seeds are drawn, and all terms are taken over the same seeds.
    level : float
        Nominal coverage of the intervals.
    resamples : int
        Number of bootstrap samples.

    Returns
    -------
    ExposureTerms
        Bounds are NaN with a single seed.

    Raises
    ------
    ValueError
        If the arrays differ in shape, are not two-dimensional, or hold no task.

    References
    ----------
    Zhou et al. (2026), arXiv 2608.07429, proposition 2 and the condition for pollution that follows it.

    Examples
    --------
    Two tasks: at the first a superseded value is followed and fails where no memory succeeds; the second all solve.

    >>> yes, no = True, False
    >>> terms = exposure_terms(
    ...     *(np.array([row]) for row in ([yes, no], [yes, yes], [no, yes], [yes, yes], [yes, yes])),
    ...     np.random.default_rng(0),
    ... )
    >>> terms.q.estimate, terms.eta.estimate, terms.delta.estimate, terms.bound.estimate, terms.gain.estimate
    (0.5, 1.0, 1.0, 0.5, 0.5)
    """
    shapes = {array.shape for array in (exposed, followed, append, revoke, nomem)}
    if len(shapes) != 1 or exposed.ndim != 2 or exposed.size == 0:
        raise ValueError(
            "The terms of the bound need the same seeds and tasks of every agent, and at least one task; "
            f"got shapes {', '.join(map(str, sorted(shapes)))}."
        )
    misled = exposed & followed
    worse = nomem.astype(np.float64) - append
    better = revoke.astype(np.float64) - append
    # Per seed: tasks, exposed, misled, loss on misled tasks, gain, the part of it elsewhere, what memory adds there.
    sums = np.column_stack(
        [
            np.full(len(exposed), exposed.shape[1], np.float64),
            exposed.sum(axis=1),
            misled.sum(axis=1),
            np.where(misled, worse, 0).sum(axis=1),
            better.sum(axis=1),
            np.where(misled, 0, better).sum(axis=1),
            -np.where(misled, 0, worse).sum(axis=1),
        ]
    )
    measured = _terms(sums.sum(axis=0)[None, :])
    if len(sums) == 1:
        spread = {name: (float("nan"), float("nan")) for name in measured}
    else:
        drawn = _terms(resample_counts(len(sums), rng, resamples=resamples) @ sums)
        spread = {name: _bounds(values, level) for name, values in drawn.items()}
    intervals = {name: Interval(float(values[0]), *spread[name]) for name, values in measured.items()}
    return ExposureTerms(**intervals, exposed=int(exposed.sum()), followed=int(misled.sum()))


def _terms(sums: FloatArray) -> dict[str, FloatArray]:
    tasks, exposed, misled, lost, gained, elsewhere, added = sums.T
    bound, gain, benefit = lost / tasks, gained / tasks, added / tasks
    return {
        "q": exposed / tasks,
        "eta": _ratio(misled, exposed),
        "delta": _ratio(lost, misled),
        "bound": bound,
        "gain": gain,
        "slack": gain - bound,
        "learned": (gained - elsewhere - lost) / tasks,
        "side_effect": elsewhere / tasks,
        "benefit": benefit,
        "pollution": bound - benefit,
    }


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    share = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=share, where=whole != 0)
    return share


def _bounds(values: FloatArray, level: float) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    if known.size < values.size:
        return float("nan"), float("nan")
    lo, hi = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(lo), float(hi)


def loss_with_superseded(eta: float, loss_without: float) -> float:
    """Return the expected 0-1 loss on one key while memory offers a superseded value (P1).

    The agent follows it with probability ``eta`` and then is wrong; else it acts as it would without it.

    Parameters
    ----------
    eta
        Following probability (0 to 1).
    loss_without
        Expected loss without the value (0 to 1).

    Returns
    -------
    float
        Never below ``loss_without``, and above it if ``eta > 0`` and ``loss_without < 1``.

    Examples
    --------
    >>> loss_with_superseded(0.5, 0.2)
    0.6
    """
    return eta + (1 - eta) * loss_without


def revocation_gain_bound(q: float, eta: float, delta: float) -> float:
    """Least gain from revocation per task, q * eta * delta (P2).

    Examples
    --------
    >>> revocation_gain_bound(0.8, 1.0, 0.125)
    0.1
    """
    return q * eta * delta


def false_revocation_bound(mu: float, theta: float, n: npt.ArrayLike) -> FloatArray:
    """Bound of P3 on the probability that the posterior of a value that still holds is below theta after n outcomes.

    Parameters
    ----------
    mu
        Mean support in the stationary segment (0 to 1).
    theta
        Revocation threshold theta_rev (0 to 1).
    n
        Number of outcomes (at least 0).

    Returns
    -------
    numpy.ndarray
        exp(-2 n eps^2) with eps = (mu - theta) / 2; 1 where mu does not exceed theta, since P3 then promises nothing
        but that the value falls. Without unit, of the shape of ``n``.

    References
    ----------
    Zhou et al. (2026), arXiv 2608.07429, proposition 3; Hoeffding (1963), theorem 1.

    Examples
    --------
    >>> float(false_revocation_bound(0.5, 0.3, 100)).__round__(4)
    0.1353
    """
    count = np.asarray(n, dtype=np.float64)
    epsilon = max((mu - theta) / 2, 0.0)
    return np.exp(-2 * count * epsilon**2)
