"""How well a method's memories were revoked in a run, per seed, from the tables of the run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from tepa_core.stats import false_revocations, recovery_times, revocation_delays, stale_exposure_rate

#: In tables of values: none, or unknown.
_UNKNOWN = -1


def measures(method: str, truth: pd.DataFrame, revocations: pd.DataFrame, episodes: pd.DataFrame) -> pd.DataFrame:
    """Measure the lifecycle of one method against the truth of a simulation.

    Parameters
    ----------
    method
        Id of a method with a lifecycle.
    truth
        ``seed``, ``key``, ``value``, ``start``, ``end`` (tasks, end exclusive): what was right when.
    revocations
        Of the method: ``seed``, ``occurred`` (task, negative before the first), ``key``, ``value``, ``to_state``
        (``revoked`` or ``active``).
    episodes
        ``method``, ``seed``, ``t``, ``phase``, ``key``, ``success``, ``retrieved``; rows of other methods are left out.

    Returns
    -------
    pandas.DataFrame
        ``method``, ``seed``, ``measure``, ``value``, one row per seed and measure; ``value`` is NaN where a seed has
        none:

        ``false_revocations``
            Revocations of a value that was right at the time (count).
        ``judged_revocations``
            Revocations of keys whose right value is known (count).
        ``false_revocation_share``
            The one divided by the other.
        ``revocation_delay_tasks``, ``revocation_delay_uses``
            Mean delay of revoking a superseded value, in tasks and in tasks of its key.
        ``never_revoked``
            Superseded values that were Active and were not revoked while they were wrong (count).
        ``stale_exposure_rate``
            Share of the tasks with a known right value at which another one was retrieved.
        ``recovery_time``
            Mean over the phase boundaries of the tasks until 9 of 10 succeed; boundaries without recovery left out.
        ``recovery_time_<phase>``
            The same for one phase.
        ``never_recovered``
            Phases that ended before it recovered (count).

    References
    ----------
    `tepa_core.stats.lifecycle_measures` defines each measure.
    """
    played = episodes[episodes["method"] == method]
    changes, right = dict(list(revocations.groupby("seed"))), dict(list(truth.groupby("seed")))
    rows: list[tuple[str, int, str, float]] = []
    for seed, tasks in played.groupby("seed"):
        of_seed = _of_seed(
            right.get(seed, truth.head(0)), changes.get(seed, revocations.head(0)), tasks.sort_values("t")
        )
        rows += [(method, int(str(seed)), name, value) for name, value in of_seed.items()]
    return pd.DataFrame(rows, columns=["method", "seed", "measure", "value"])


def _of_seed(truth: pd.DataFrame, changes: pd.DataFrame, tasks: pd.DataFrame) -> dict[str, float]:
    keys = pd.Index(pd.concat([truth["key"], changes["key"], tasks["key"]]).astype(object).unique())
    values = pd.Index(
        pd.concat([truth["value"], changes["value"], tasks["retrieved"]]).dropna().astype(object).unique()
    )
    right = np.full((len(tasks), len(keys)), _UNKNOWN)
    spans = zip(
        keys.get_indexer(truth["key"]), values.get_indexer(truth["value"]), truth["start"], truth["end"], strict=True
    )
    for key, value, start, end in spans:
        right[start:end, key] = value
    seen = keys.get_indexer(tasks["key"].astype(object))
    # A missing value is in no index, so its code is that of the unknown.
    retrieved = values.get_indexer(tasks["retrieved"].astype(object))

    events = np.column_stack(
        [
            changes["occurred"].to_numpy(np.int64),
            keys.get_indexer(changes["key"]),
            values.get_indexer(changes["value"]),
        ]
    )
    falls = changes["to_state"].to_numpy(object) == "revoked"
    during = events[falls & (events[:, 0] >= 0)]
    verdicts = false_revocations(during[:, 0], during[:, 2], during[:, 1], right)
    judged, wrong = int((verdicts >= 0).sum()), int((verdicts == 1).sum())

    delays = revocation_delays(right, seen, events[~falls], events[falls])
    phase = tasks["phase"].astype(object).to_numpy()
    boundaries = np.flatnonzero(phase[1:] != phase[:-1]) + 1
    recovery = recovery_times(tasks["success"].to_numpy(np.float64), boundaries)
    return {
        "false_revocations": float(wrong),
        "judged_revocations": float(judged),
        "false_revocation_share": wrong / judged if judged else float("nan"),
        "revocation_delay_tasks": _mean(delays.tasks),
        "revocation_delay_uses": _mean(delays.uses),
        "never_revoked": float((delays.was_active & np.isnan(delays.tasks)).sum()),
        "stale_exposure_rate": stale_exposure_rate(retrieved, seen, right),
        "recovery_time": _mean(recovery),
        **{f"recovery_time_{phase[start]}": float(time) for start, time in zip(boundaries, recovery, strict=True)},
        "never_recovered": float(np.isnan(recovery).sum()),
    }


def _mean(values: npt.NDArray[np.float64]) -> float:
    """Mean of the values that there are; NaN when there is none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
