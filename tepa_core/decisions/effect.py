"""What a decision would change in a log: its key replayed with it and without.

A log is what happened; a decision cannot change the evidence, only what memory offers in the light of it. What an agent
would have done differently is known for simulations alone (`tepa_core.experiment.effect`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tepa_core.lifecycle import (
    DEPRECATED,
    KeyTrace,
    State,
    Thresholds,
    Verdict,
    encode,
    shown_states,
    tables,
    trace_key,
)

#: What makes two transitions the same one.
_SAME = ("key_id", "value_id", "time", "from_state", "to_state", "rule")


@dataclass(frozen=True, slots=True)
class Standing:
    """A decision that is in effect already: on which value of the key, from when on (the clock of the items)."""

    at: Any
    value: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class LogEffect:
    """What one decision would change on its key.

    Times are in the clock of the items: integers, or UTC timestamps.

    Attributes
    ----------
    value, verdict, at
        The decision, and when it takes effect (after the evidence of that time).
    end
        Time of the last item, or of the decision if that is later.
    spans_before, spans_after
        ``value_id``, ``state`` (as shown), ``life``, ``x0``, ``x1``: unbroken stretches of one state, without the
        decision and with it.
    exposure
        ``value_id``, ``before``, ``after``: share of the time from the decision to the end for which the value is
        Active, 0 to 1; NaN when no time is left.
    later_supports, later_conflicts
        Items for and against the value after the decision, whatever is decided. Once the key holds several values a
        support of another one is not against it.
    stands_until
        With the decision: when the rule revokes the value next, or None if it stands to the end. Of a confirmation,
        for which nothing stands, it is the time of the decision.
    transitions
        ``side`` (``before``: happens only without the decision, ``after``: only with it), ``key_id``, ``value_id``,
        ``time``, ``from_state``, ``to_state``, ``rule``, in order of time.
    """

    value: str
    verdict: Verdict
    at: Any
    end: Any
    spans_before: pd.DataFrame
    spans_after: pd.DataFrame
    exposure: pd.DataFrame
    later_supports: int
    later_conflicts: int
    stands_until: Any | None
    transitions: pd.DataFrame

    @property
    def transitions_changed(self) -> int:
        """How many transitions happen only without the decision, or only with it."""
        return len(self.transitions)

    @property
    def stands_for(self) -> Any:
        """How long the value stands from the decision on: until the rule contradicts it, or to the end."""
        return (self.end if self.stands_until is None else self.stands_until) - self.at

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON-ready data; times as ISO text or integers."""
        own = self.exposure[self.exposure["value_id"] == self.value]
        share = {side: None if own[side].isna().all() else float(own[side].iloc[0]) for side in ("before", "after")}
        return {
            "at": _plain(self.at),
            "end": _plain(self.end),
            "exposure": share,
            "later_supports": self.later_supports,
            "later_conflicts": self.later_conflicts,
            "stands_until": _plain(self.stands_until),
            "transitions_changed": self.transitions_changed,
        }


def log_effect(
    items: pd.DataFrame,
    thresholds: Thresholds,
    value: str,
    verdict: Verdict,
    at: Any | None = None,
    standing: Sequence[Standing] = (),
    *,
    time: str = "event_time",
) -> LogEffect:
    """Replay one key with a decision and without it.

    Parameters
    ----------
    items
        Evidence on the key, as for `tepa_core.lifecycle.encode`: ``seq``, ``subject``, ``key_id``, ``value_id``,
        ``supports`` and the time.
    thresholds
        Those of the run.
    value
        ``value_id`` of the precedent.
    verdict
        What would be decided.
    at
        When it would take effect; right after the value's last revocation when left out.
    standing
        Decisions on the key that are in effect already, in the order in which they were taken.
    time
        Column of the time.

    Raises
    ------
    ValueError
        If there is no evidence, it is on more than one key, or the value is not in the archive at that moment.

    Examples
    --------
    >>> said = ["window"] * 5 + ["aisle"] * 2 + ["window"] * 2
    >>> items = pd.DataFrame(
    ...     {"seq": range(9), "t": range(9), "subject": "u", "key_id": "seat", "value_id": said, "supports": True}
    ... )
    >>> effect = log_effect(items, Thresholds(), "window", Verdict.REACTIVATE, time="t")
    >>> effect.at, effect.later_supports, effect.stands_until, effect.transitions_changed
    (6, 2, None, 1)
    """
    if items.empty:
        raise ValueError("a decision needs a key with evidence; this one has none")
    timed = pd.api.types.is_datetime64_any_dtype(items[time])
    evidence = items[["seq", "subject", "key_id", "value_id", "supports"]].assign(
        at=items[time].dt.as_unit("us").astype("int64") if timed else items[time].astype("int64"), verdict=0
    )
    earlier = [(microseconds(one.at), one.value, one.verdict) for one in standing]
    before = _Course(evidence, earlier, thresholds)
    moment = before.last_revocation(value) if at is None else microseconds(at)
    state = before.state_at(value, moment)
    if state is not State.REVOKED:
        raise ValueError(
            f"{value!r} is {'unknown' if state is None else state.label} at that moment; only a revoked precedent can "
            "be decided on, so choose a moment between its revocation and its return"
        )
    after = _Course(evidence, [*earlier, (moment, value, verdict)], thresholds)
    end = max(int(evidence["at"].max()), moment)
    spans = before.spans(end), after.spans(end)
    later = evidence[evidence["at"] > moment]
    own = later["value_id"] == value
    several = after.several_from(verdict, moment, earlier)
    against = (later["supports"] & ~own & (later["at"] <= several)) | (~later["supports"] & own)

    def in_clock(number: int) -> Any:
        return pd.Timestamp(number, unit="us", tz="UTC") if timed else int(number)

    def frame_in_clock(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
        if not timed:
            return frame
        return frame.assign(**{name: pd.to_datetime(frame[name], unit="us", utc=True) for name in columns})

    fallen = after.next_revocation(value, moment)
    if verdict is Verdict.CONFIRM:
        fallen = moment
    return LogEffect(
        value,
        verdict,
        in_clock(moment),
        in_clock(end),
        frame_in_clock(spans[0], ("x0", "x1")),
        frame_in_clock(spans[1], ("x0", "x1")),
        pd.DataFrame(
            {
                "value_id": before.values,
                "before": _active_share(spans[0], before.values, moment, end),
                "after": _active_share(spans[1], before.values, moment, end),
            }
        ),
        int((own & later["supports"]).sum()),
        int(against.sum()),
        None if fallen is None else in_clock(fallen),
        frame_in_clock(changed_transitions(before.transitions, after.transitions), ("time",)),
    )


def changed_transitions(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """List the transitions that happen on one side only.

    Parameters
    ----------
    before, after
        ``key_id``, ``value_id``, ``time``, ``from_state``, ``to_state``, ``rule``.

    Returns
    -------
    pandas.DataFrame
        ``side`` (``before`` or ``after``) and these columns, in order of time.
    """
    same = list(_SAME)
    # A pair that is revoked and decided on at one moment may repeat, so equal rows are told apart by their number.
    left, right = (
        frame[same].assign(again=frame.groupby(same).cumcount()).astype({"time": "int64"}) for frame in (before, after)
    )
    both = left.merge(right, how="outer", on=[*same, "again"], indicator="side")
    only = both[both["side"] != "both"]
    side = np.where(only["side"] == "left_only", "before", "after")
    only = only[same].reset_index(drop=True)
    only.insert(0, "side", side)
    return only.sort_values("time", kind="stable", ignore_index=True)


class _Course:
    """The life of one key under some decisions, followed item by item."""

    def __init__(
        self, evidence: pd.DataFrame, decisions: Sequence[tuple[int, str, Verdict]], thresholds: Thresholds
    ) -> None:
        rows = evidence
        if decisions:
            decided = pd.DataFrame(
                {
                    "seq": [-1 - i for i in range(len(decisions))],
                    "subject": evidence["subject"].iloc[0],
                    "key_id": evidence["key_id"].iloc[0],
                    "value_id": [value for _, value, _ in decisions],
                    "supports": False,
                    "at": [at for at, _, _ in decisions],
                    "verdict": [int(verdict) for _, _, verdict in decisions],
                }
            )
            rows = pd.concat([evidence, decided], ignore_index=True)
        log, labels = encode(rows, time="at")
        self.trace: KeyTrace
        self.trace, replayed = trace_key(log, thresholds)
        self.values: list[str] = labels["value_id"].tolist()
        self.time: npt.NDArray[np.int64] = log.time[self.trace.order]
        self.value_of = log.precedent[self.trace.order]
        _, transitions = tables(log, labels, replayed, thresholds)
        at = transitions["precedent"].to_numpy()
        self.transitions = transitions.assign(
            key_id=evidence["key_id"].iloc[0], value_id=labels["value_id"].to_numpy(object)[at]
        )

    def _falls(self, value: str) -> npt.NDArray[np.int64]:
        rows = self.transitions
        fell = (rows["value_id"] == value) & (rows["from_state"] == "active") & (rows["to_state"] == "revoked")
        return rows.loc[fell, "time"].to_numpy(np.int64)

    def last_revocation(self, value: str) -> int:
        falls = self._falls(value)
        if len(falls) == 0:
            raise ValueError(f"{value!r} was never revoked; only a revoked precedent can be decided on")
        return int(falls[-1])

    def next_revocation(self, value: str, moment: int) -> int | None:
        later = self._falls(value)
        later = later[later > moment]
        return int(later[0]) if len(later) else None

    def several_from(self, verdict: Verdict, moment: int, earlier: Sequence[tuple[int, str, Verdict]]) -> int:
        """Return the time after which the key holds several values; the largest integer when it never does."""
        when = [at for at, _, other in earlier if other is Verdict.BOTH_VALID]
        when += [moment] if verdict is Verdict.BOTH_VALID else []
        return min(when, default=int(np.iinfo(np.int64).max))

    def state_at(self, value: str, moment: int) -> State | None:
        """Return the state after all items of a time and before it; None where the value has not been seen."""
        if value not in self.values:
            return None
        v = self.values.index(value)
        seen = np.flatnonzero(self.time <= moment)
        if len(seen) == 0 or not np.any(self.value_of[seen] == v):
            return None
        shown = self.trace.course(v, seen[-1:]).state[0]
        return State.ACTIVE if shown == DEPRECATED else State[shown.upper()]

    def spans(self, end: int) -> pd.DataFrame:
        """Stretches of one state and life per value, each until the next, the last until ``end``."""
        heard = np.unique(self.value_of, return_index=True)[1]
        begins = self.trace.stretches(heard)
        times = self.time[begins["step"]]
        last = np.append(begins["value"][1:] != begins["value"][:-1], True)
        return pd.DataFrame(
            {
                "value_id": np.array(self.values, object)[begins["value"]],
                "state": shown_states(begins["state"]),
                "life": begins["lives"].astype(np.int64),
                "x0": times,
                "x1": np.where(last, end, np.append(times[1:], end)),
            }
        )


def _active_share(spans: pd.DataFrame, values: Sequence[str], start: int, end: int) -> npt.NDArray[np.float64]:
    """Share of the time from ``start`` to ``end`` for which each value is Active; NaN when that is no time."""
    if end <= start:
        return np.full(len(values), np.nan)
    active = spans[spans["state"].isin([State.ACTIVE.label, DEPRECATED])]
    length = active["x1"].clip(lower=start) - active["x0"].clip(lower=start)
    shares: pd.Series[float] = length.groupby(active["value_id"]).sum() / (end - start)
    return np.asarray(shares.reindex(list(values), fill_value=0.0), np.float64)


def microseconds(at: Any) -> int:
    """Write a moment as an integer: microseconds since 1970 UTC for a time (a naive one counts as UTC)."""
    if isinstance(at, int | np.integer):
        return int(at)
    moment = pd.Timestamp(at)
    moment = moment.tz_localize("UTC") if moment.tzinfo is None else moment.tz_convert("UTC")
    # Not through nanoseconds, which end in the year 2262.
    return int(moment.as_unit("us").asm8.view("i8"))


def _plain(at: Any) -> Any:
    return at.isoformat() if isinstance(at, pd.Timestamp) else at
