"""How well memories were revoked, measured against the truth that only a simulation knows.

Conventions of every function here. Tasks are numbered from 0. ``truth[t, k]`` is the right value of key k at task t, as
a value code, and -1 where it is unknown; what is unknown is never counted for or against a memory. A transition
recorded at t happened after task t was acted on, caused by its evidence, so it first matters at task t + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False)
class RevocationDelays:
    """How long each superseded value stayed active, one row per change of truth, ordered by task and then key.

    Attributes
    ----------
    changed_at : numpy.ndarray, shape (c,)
        First task at which the new value was right.
    key : numpy.ndarray, shape (c,)
        The key whose right value changed.
    stale_value : numpy.ndarray, shape (c,)
        The value that was right until then.
    was_active : numpy.ndarray of bool, shape (c,)
        Whether that value was active as the change came. Together with a NaN delay it tells a stale value that was
        never revoked (True) from one that did not need to be (False).
    tasks : numpy.ndarray, shape (c,)
        Delay in tasks of any key, the revoking task included: 1 if the first task after the change revoked it.
    uses : numpy.ndarray, shape (c,)
        The same in tasks of the key itself, which alone can bring evidence about it.
    """

    changed_at: npt.NDArray[np.int64]
    key: npt.NDArray[np.int64]
    stale_value: npt.NDArray[np.int64]
    was_active: npt.NDArray[np.bool_]
    tasks: npt.NDArray[np.float64]
    uses: npt.NDArray[np.float64]


def false_revocations(
    revoked_at: npt.ArrayLike, revoked_value: npt.ArrayLike, revoked_key: npt.ArrayLike, truth: npt.ArrayLike
) -> npt.NDArray[np.int8]:
    """Judge each revocation: false when it archived the value that was right at the time.

    Parameters
    ----------
    revoked_at, revoked_value, revoked_key : array_like of int, shape (m,)
        Task, value code and key of each revocation.
    truth : array_like of int, shape (T, K)
        Right value of each key at each task, -1 for unknown.

    Returns
    -------
    numpy.ndarray of int8, shape (m,)
        1 for a false revocation, 0 for a correct one, -1 where the truth is unknown.

    Raises
    ------
    ValueError
        If shapes disagree, or a task or key lies outside `truth`.

    References
    ----------
    The false-revocation probability of Zhou et al. (2026), arXiv 2608.07429, third proposition.

    Examples
    --------
    Key 0 has value 7 at tasks 0 and 1, then 9. Revoking 7 at task 1 is false, at task 2 it is correct.

    >>> false_revocations([1, 2], [7, 7], [0, 0], [[7], [7], [9]])
    array([1, 0], dtype=int8)
    """
    right = _table(truth)
    at = _integers("revoked_at", revoked_at, inside=right.shape[0])
    value = _integers("revoked_value", revoked_value)
    key = _integers("revoked_key", revoked_key, inside=right.shape[1])
    if not at.shape == value.shape == key.shape:
        raise ValueError(
            "Every revocation needs a task, a value and a key, "
            f"got {at.size} tasks, {value.size} values and {key.size} keys."
        )
    then = right[at, key]
    return np.where(then < 0, UNKNOWN, then == value).astype(np.int8)


def revocation_delays(
    truth: npt.ArrayLike, key: npt.ArrayLike, activations: npt.ArrayLike, revocations: npt.ArrayLike
) -> RevocationDelays:
    """Measure, for every change of truth, how long the superseded value stayed active.

    A change is a task whose right value is known and differs from the last known one of that key. A single task that
    flips and returns is two changes; give the regime's truth, without flips, to measure drift alone.

    Parameters
    ----------
    truth : array_like of int, shape (T, K)
        Right value of each key at each task, -1 for unknown.
    key : array_like of int, shape (T,)
        Key of each task as memory sees it: where keys are noisy, evidence reaches a precedent by the key seen.
    activations, revocations : array_like of int, shape (a, 3) and (r, 3)
        One row (task, key, value) per transition into and out of the active state, in any order. Include
        re-activations, supersessions and transitions by human decision. A task below 0 means before the first task.

    Returns
    -------
    RevocationDelays
        One row per change. The delay runs from the change to the first revocation of the superseded value. It is NaN
        if that value was not active when the change came, or was still active when the key changed again or the run
        ended.

    Raises
    ------
    ValueError
        If shapes disagree.

    References
    ----------
    Zhou et al. (2026), arXiv 2608.07429: two misses, then the archive takes the stale value.
    """
    right = _table(truth)
    seen = _integers("key", key)
    if seen.shape != right.shape[:1]:
        raise ValueError(f"Every task needs a key, got {seen.size} keys for {right.shape[0]} tasks.")
    activated, revoked = _events("activations", activations), _events("revocations", revocations)

    rows: list[tuple[int, int, int, bool, float, float]] = []
    for k in range(right.shape[1]):
        known = np.flatnonzero(right[:, k] >= 0)
        values = right[known, k]
        first_of_new = np.flatnonzero(values[1:] != values[:-1]) + 1
        changes = known[first_of_new].tolist()
        ends = [*changes, right.shape[0]][1:]
        for start, end, stale in zip(changes, ends, values[first_of_new - 1].tolist(), strict=True):
            up = activated[(activated[:, 1] == k) & (activated[:, 2] == stale), 0]
            down = revoked[(revoked[:, 1] == k) & (revoked[:, 2] == stale), 0]
            # Lives of one precedent alternate, so counting settles the state even when two transitions share a task.
            was_active = bool(np.count_nonzero(up < start) > np.count_nonzero(down < start))
            later = down[(down >= start) & (down < end)]
            tasks = uses = float("nan")
            if was_active and later.size:
                last = int(later.min())
                tasks = float(last - start + 1)
                uses = float(np.count_nonzero(seen[start : last + 1] == k))
            rows.append((start, k, stale, was_active, tasks, uses))

    rows.sort(key=lambda row: row[:2])
    return RevocationDelays(
        changed_at=np.array([row[0] for row in rows], dtype=np.int64),
        key=np.array([row[1] for row in rows], dtype=np.int64),
        stale_value=np.array([row[2] for row in rows], dtype=np.int64),
        was_active=np.array([row[3] for row in rows], dtype=np.bool_),
        tasks=np.array([row[4] for row in rows], dtype=np.float64),
        uses=np.array([row[5] for row in rows], dtype=np.float64),
    )


def stale_exposure_rate(retrieved: npt.ArrayLike, key: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Share of tasks at which a value that is not the right one was retrieved into the prompt.

    Parameters
    ----------
    retrieved : array_like of int, shape (T,)
        Value code retrieved at each task, -1 for none.
    key : array_like of int, shape (T,)
        Key of each task, a column of `truth`.
    truth : array_like of int, shape (T, K)
        Right value of each key at each task, -1 for unknown.

    Returns
    -------
    float
        Between 0 and 1, out of all tasks with known truth, whether or not anything was retrieved; NaN if there is no
        such task.

    Raises
    ------
    ValueError
        If shapes disagree or a key lies outside `truth`.

    References
    ----------
    The exposure probability q of Zhou et al. (2026), arXiv 2608.07429, second proposition.

    Examples
    --------
    Value 1 is right throughout. Of four tasks one retrieves 0 and one retrieves nothing.

    >>> stale_exposure_rate([1, 0, -1, 1], [0, 0, 0, 0], [[1], [1], [1], [1]])
    0.25
    """
    right = _table(truth)
    shown = _integers("retrieved", retrieved)
    seen = _integers("key", key, inside=right.shape[1])
    if not shown.shape == seen.shape == right.shape[:1]:
        raise ValueError(
            "Every task needs a retrieved value (or -1) and a key, "
            f"got {shown.size} values and {seen.size} keys for {right.shape[0]} tasks."
        )
    expected = right[np.arange(seen.size), seen]
    known = expected >= 0
    if not known.any():
        return float("nan")
    return float(((shown >= 0) & (shown != expected))[known].mean())


def recovery_times(
    success: npt.ArrayLike, boundaries: npt.ArrayLike, *, window: int = 10, target: float = 0.9
) -> npt.NDArray[np.float64]:
    """Tasks from each phase boundary until success is back at a target.

    Parameters
    ----------
    success : array_like, shape (T,)
        Outcome of each task, 0 or 1.
    boundaries : array_like of int, shape (b,)
        First task of each new phase, increasing.
    window : int
        Number of most recent tasks the success mean is taken over. They all lie in the new phase, so that successes
        from before the boundary cannot count as recovery.
    target : float
        Mean success that counts as recovered.

    Returns
    -------
    numpy.ndarray, shape (b,)
        Tasks passed when the mean first reaches the target, hence at least `window`. NaN if it does not before the
        next boundary or the end.

    Raises
    ------
    ValueError
        If `success` is not one-dimensional, `window` is below 1, or the boundaries do not increase within the run.

    Examples
    --------
    A new phase at task 2 opens with one miss; the first two-task window without a miss ends three tasks in.

    >>> recovery_times([1, 1, 0, 1, 1, 1], [2], window=2, target=1.0)
    array([3.])
    """
    outcome = np.asarray(success, dtype=np.float64)
    if outcome.ndim != 1:
        raise ValueError(f"Recovery is measured on one run, one outcome per task, got shape {outcome.shape}.")
    if window < 1:
        raise ValueError(f"The window must hold at least one task, got {window}.")
    starts = _integers("boundaries", boundaries, inside=outcome.size)
    if (np.diff(starts) <= 0).any():
        raise ValueError("Phase boundaries must increase; sort them and remove repeats.")
    times = np.full(starts.size, np.nan)
    for i, (start, end) in enumerate(zip(starts, [*starts, outcome.size][1:], strict=True)):
        phase = outcome[start:end]
        if phase.size < window:
            continue
        means = np.lib.stride_tricks.sliding_window_view(phase, window).mean(axis=1)
        reached = np.flatnonzero(means >= target)
        if reached.size:
            times[i] = reached[0] + window
    return times


def _integers(name: str, x: npt.ArrayLike, *, inside: int | None = None) -> npt.NDArray[np.int64]:
    array = np.asarray(x)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a one-dimensional list of whole numbers, got shape {array.shape}.")
    whole = _whole(name, array)
    # Negative numbers would silently index from the end.
    if inside is not None and ((whole < 0) | (whole >= inside)).any():
        raise ValueError(f"{name} must lie between 0 and {inside - 1}; check that it belongs to the same run.")
    return whole


def _events(name: str, x: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = np.asarray(x)
    if array.size == 0:
        return np.empty((0, 3), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 3:
        raise ValueError(f"{name} must have one row (task, key, value) per transition, got shape {array.shape}.")
    return _whole(name, array)


def _table(truth: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = np.asarray(truth)
    if array.ndim != 2:
        raise ValueError(f"truth must have one row per task and one column per key, got shape {array.shape}.")
    return _whole("truth", array)


def _whole(name: str, array: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold whole numbers, got {array.dtype}; give codes, with -1 for unknown.")
    return array.astype(np.int64)
