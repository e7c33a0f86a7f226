"""The life of one key or precedent: its stored evidence, replayed, with every transition explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tepa_core.lifecycle import (
    DEPRECATED,
    KeyTrace,
    Replay,
    Rule,
    State,
    Thresholds,
    Why,
    encode,
    standing,
    tables,
    trace_key,
    why,
    would_reactivate,
    would_revoke,
)
from tepa_core.methods import thresholds_of
from tepa_core.stats import beta_band
from tepa_core.store import queries
from tepa_core.store.connection import Store
from tepa_core.store.derive import precedent_id, spelling


class UnknownPrecedentError(ValueError):
    """There is no such precedent in the run."""


@dataclass(frozen=True, slots=True)
class KeyLife:
    """One conflict key over time.

    Attributes
    ----------
    info, thresholds
        The run, and the thresholds under which the key's precedents live.
    method, seed, subject, key, key_id
        Which key.
    values
        ``id`` (of the precedent), ``value``, ``value_id``, and the columns of `tepa_core.lifecycle.tables`.
    items
        Evidence in the order of the replay: the stored columns with ``x`` in the run's clock, or number of arrival.
        ``value`` is spelled as in ``values``, ``original`` as in the file.
    posterior
        ``value``, ``x``, ``posterior``, ``lo``, ``hi`` (95 % Beta band), ``state``, ``support``, ``conflict``,
        ``life``: per value and item, from the value's first item on.
    spans
        ``value``, ``state``, ``x0``, ``x1``, ``life``: unbroken stretches of one shown state.
    transitions
        ``transition_id``, ``id``, ``value``, ``x``, and the columns of `tepa_core.lifecycle.tables`.
    followed
        ``x``, ``value``, ``success``: what the agent acted on, for simulations.
    phases
        ``phase``, ``start``, ``end``.
    """

    info: queries.RunInfo
    thresholds: Thresholds
    method: str
    seed: int
    subject: str
    key: str
    key_id: str
    values: pd.DataFrame
    items: pd.DataFrame
    posterior: pd.DataFrame
    spans: pd.DataFrame
    transitions: pd.DataFrame
    followed: pd.DataFrame
    phases: pd.DataFrame
    replayed: Replay
    x_title: str

    def why(self, transition_id: str) -> Why:
        """Explain one of the key's transitions."""
        row = self.transitions[self.transitions["transition_id"] == transition_id].iloc[0]
        own = self.transitions[(self.transitions["id"] == row["id"]) & (self.transitions["number"] < row["number"])]
        lives = own.loc[own["to_state"] == State.ACTIVE.label, "seq"]
        return why(
            self.items,
            {str(name): cell for name, cell in row.items()},
            self.thresholds,
            in_words_at(row["x"], self.info.is_log),
            int(lives.iloc[-1]) if len(lives) else None,
        )

    def standing(self, precedent: str) -> str:
        """Say where one of the key's precedents stands and what would change it."""
        row = self.values[self.values["id"] == precedent].iloc[0]
        state = State[row["state"].upper()]
        return standing(
            state,
            int(row["support"]),
            int(row["conflict"]),
            (int(row["trial_support"]), int(row["trial_conflict"])),
            self.needed(precedent),
            self.thresholds,
        )

    def needed(self, precedent: str) -> int | None:
        """How many supports in a row would make the precedent Active, or conflicts revoke it if it is Active."""
        index = int(np.flatnonzero(self.values["id"].to_numpy() == precedent)[0])
        active = self.values["state"].iloc[index] == State.ACTIVE.label
        count = would_revoke if active else would_reactivate
        return count(self.replayed, index, self.thresholds)


def in_words_at(x: Any, is_log: bool) -> str:
    """Write a moment of a run: "at task 81", "on 4 July 2025, 14:05 UTC"."""
    if is_log and isinstance(x, pd.Timestamp):
        return f"on {x.day} {x:%B %Y, %H:%M} UTC"
    return f"at {'arrival' if is_log else 'task'} {int(x)}"


def key_life(
    store: Store, run_id: str, key_id: str, *, method: str = "", seed: int = 0, subject: str = "", order: str = "event"
) -> KeyLife:
    """Replay one conflict key of a run.

    Parameters
    ----------
    order
        ``"event"``: by the time of the evidence; ``"arrival"``: by when it reached the log.

    Raises
    ------
    UnknownRunError
        If there is no such run.
    UnknownPrecedentError
        If it has no evidence on the key.
    ValueError
        If ``order`` is neither.
    """
    if order not in ("event", "arrival"):
        raise ValueError(f"order must be event or arrival, not {order!r}")
    info = queries.run_info(store, run_id)
    items = queries.evidence_of_key(store, run_id, method, seed, subject, key_id)
    if items.empty:
        raise UnknownPrecedentError(
            f"run {run_id} has no evidence on the key {key_id!r}; search for it on the lifecycle page"
        )
    thresholds = thresholds_of(method, info.thresholds)
    log, labels = encode(items, time="occurred" if order == "event" else "arrived")
    trace, replayed = trace_key(log, thresholds)
    values, transitions = tables(log, labels, replayed, thresholds)
    first = values["first"].to_numpy()
    values.insert(0, "value", spelling(log.precedent, first, items["occurred"], items["value"]))
    values.insert(0, "id", [precedent_id(method, seed, subject, key_id, value_id) for value_id in values["value_id"]])
    spelled = values["value"].to_numpy(object)[log.precedent]
    items = items.rename(columns={"value": "original"}).assign(value=spelled)
    items = items.take(trace.order).reset_index(drop=True)
    counted = order == "arrival" and info.is_log and not info.counts.get("arrival_times")
    as_time = info.is_log and not counted
    items["x"] = items["occurred" if order == "event" else "arrived"]
    items = queries.in_clock(items, ("x",), as_time)
    transitions = queries.in_clock(transitions.rename(columns={"time": "x"}), ("x",), as_time)
    transitions.insert(0, "value_id", values["value_id"].to_numpy(object)[transitions["precedent"].to_numpy()])
    transitions.insert(0, "value", values["value"].to_numpy(object)[transitions["precedent"].to_numpy()])
    transitions.insert(0, "id", values["id"].to_numpy(object)[transitions["precedent"].to_numpy()])
    transitions.insert(0, "transition_id", transitions["id"] + "." + transitions["number"].astype(str))
    key = str(items["key"].iloc[0])
    followed = _followed(store, info, method, seed, key)
    end = items["x"].iloc[-1]
    phases = queries.phases(store, run_id)
    if not info.is_log and len(phases):
        end = max(end, phases["end"].max())
    posterior = _posterior(trace, items, values, thresholds)
    x_title = "task" if not info.is_log else ("arrival time (UTC)" if order == "arrival" else "event time (UTC)")
    return KeyLife(
        info,
        thresholds,
        method,
        seed,
        subject,
        key,
        key_id,
        values,
        items,
        posterior,
        _spans(posterior, end),
        transitions,
        followed,
        phases if order == "event" or not info.is_log else phases.head(0),
        replayed,
        "order of arrival (item of the log)" if counted else x_title,
    )


def precedent_life(store: Store, run_id: str, precedent: str, order: str = "event") -> KeyLife:
    """Replay the key that a precedent belongs to.

    Raises
    ------
    UnknownRunError, UnknownPrecedentError
        If there is no such run or precedent.
    """
    queries.run_info(store, run_id)
    with store.read() as cursor:
        row = cursor.execute(
            "SELECT key_id, method, seed, subject FROM precedent WHERE run_id = ? AND precedent_id = ?",
            [run_id, precedent],
        ).fetchone()
    if row is None:
        raise UnknownPrecedentError(
            f"run {run_id} has no precedent {precedent}; the command 'precedents' lists its ids"
        )
    return key_life(store, run_id, row[0], method=row[1], seed=row[2], subject=row[3], order=order)


def _posterior(trace: KeyTrace, items: pd.DataFrame, values: pd.DataFrame, th: Thresholds) -> pd.DataFrame:
    shown = trace.labels()
    support, conflict = trace.support.astype(float), trace.conflict.astype(float)
    of_item = items["value_id"].to_numpy(object)[:, None] == values["value_id"].to_numpy(object)[None, :]
    seen = np.maximum.accumulate(of_item, axis=0)
    item, value = np.nonzero(seen.T)[::-1]
    s, f = support[item, value], conflict[item, value]
    lo, hi = beta_band(s + th.alpha, f + th.beta)
    return pd.DataFrame(
        {
            "value": values["value"].to_numpy(object)[value],
            "x": items["x"].take(item).reset_index(drop=True),
            "posterior": (s + th.alpha) / (s + f + th.alpha + th.beta),
            "lo": lo,
            "hi": hi,
            "state": shown[item, value],
            "support": trace.support[item, value],
            "conflict": trace.conflict[item, value],
            "life": trace.lives[item, value],
        }
    )


def _spans(posterior: pd.DataFrame, end: Any) -> pd.DataFrame:
    """Stretches of one state and life per value, each lasting until the next begins."""
    stretch = (
        (posterior["value"] != posterior["value"].shift())
        | (posterior["state"] != posterior["state"].shift())
        | (posterior["life"] != posterior["life"].shift())
    )
    starts = posterior[stretch]
    following = starts.groupby("value", sort=False)["x"].shift(-1)
    return pd.DataFrame(
        {
            "value": starts["value"],
            "state": starts["state"],
            "x0": starts["x"],
            "x1": following.fillna(end),
            "life": starts["life"],
        }
    ).reset_index(drop=True)


def _followed(store: Store, info: queries.RunInfo, method: str, seed: int, key: str) -> pd.DataFrame:
    if info.is_log:
        return pd.DataFrame(columns=["x", "value", "success"])
    played = queries.episodes(store, info.run_id, method, seed, key)
    return pd.DataFrame({"x": played["t"], "value": played["action"], "success": played["success"]})


def explanation(store: Store, run_id: str, precedent: str) -> dict[str, Any]:
    """Return one precedent's life as JSON-ready data: what the command ``explain`` prints."""
    life = precedent_life(store, run_id, precedent)
    row = life.values[life.values["id"] == precedent].iloc[0]
    steps = []
    for _, step in life.transitions[life.transitions["id"] == precedent].iterrows():
        reason = life.why(step["transition_id"])
        chosen = life.items[life.items["seq"].isin(reason.evidence)]
        steps.append(
            {
                "transition_id": step["transition_id"],
                "at": plain(step["x"]),
                "from": step["from_state"],
                "to": step["to_state"],
                "rule": step["rule"],
                "life": int(step["life"]),
                "posterior": float(step["posterior"]),
                "recent": [int(outcome) for outcome in step["window"]],
                "support": int(step["support"]),
                "conflict": int(step["conflict"]),
                "evidence": [
                    {
                        "seq": int(item["seq"]),
                        "at": plain(item["x"]),
                        "value": item["original"],
                        "supports": bool(item["supports"]),
                        "text": plain(item["text"]),
                        "source_ref": plain(item["source_ref"]),
                    }
                    for _, item in chosen.iterrows()
                ],
                "sentence": reason.sentence,
                "counterfactual": reason.counterfactual,
                "would_prevent": reason.would_prevent,
            }
        )
    active = row["state"] == State.ACTIVE.label
    needed = life.needed(precedent)
    return {
        "id": precedent,
        "subject": life.subject,
        "key": life.key,
        "value": row["value"],
        "state": DEPRECATED if row["deprecated"] else row["state"],
        "standing": life.standing(precedent),
        "transitions": steps,
        "would_reactivate": 0 if active else needed,
        "would_revoke": needed if active else None,
    }


def plain(value: Any) -> Any:
    """Return a cell as JSON knows it: ISO text for a time, None for a missing value, Python numbers."""
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    return value.item() if isinstance(value, np.generic) else value


#: Rules that put a precedent into the archive, for filters.
REVOCATION_RULES = tuple(rule.label for rule in (Rule.POSTERIOR, Rule.RECENT, Rule.SUPERSEDED))
