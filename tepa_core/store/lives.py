"""The life of one key or precedent: its stored evidence, replayed, with every transition explained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tepa_core.decisions import Action, Decision, in_effect, initials, reason_in_words
from tepa_core.lifecycle import (
    DEPRECATED,
    EncodedLog,
    KeyEvidence,
    KeyTrace,
    Replay,
    Rule,
    State,
    Thresholds,
    Verdict,
    Why,
    encode,
    shown_states,
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
from tepa_core.store.derive import Place, decided_rows, places_of_key, precedent_id, spelled, with_decisions
from tepa_core.store.ledger import read_decisions


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
    spans
        ``value``, ``state``, ``x0``, ``x1``, ``life``: unbroken stretches of one shown state.
    transitions
        ``transition_id``, ``id``, ``value``, ``x``, and the columns of `tepa_core.lifecycle.tables`.
    decisions
        Those in effect, in the order of the replay: ``x``, ``value``, ``initials`` (with a question mark when the
        decision is claimed elsewhere), ``text`` (who decided what, and why), ``id`` (of the precedent),
        ``decision_id``, ``number``, ``action``, ``pinned``, ``reviewer``, ``by`` (who, and why), ``claimed`` (it came
        with an imported file), ``after`` (how many evidence items come before it).
    followed
        ``x``, ``value``, ``success``: what the agent acted on, for simulations.
    phases
        ``phase``, ``start``, ``end``.
    replayed
        What the replay left.
    moments
        ``x`` of each step. Steps are the items and the decisions in effect, numbered from 0 in the order of the replay.
    heard
        The step of each value's first item, in the order of ``values``.
    trace
        Every value after each step; `course` reads it.
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
    spans: pd.DataFrame
    transitions: pd.DataFrame
    decisions: pd.DataFrame
    followed: pd.DataFrame
    phases: pd.DataFrame
    replayed: Replay
    moments: pd.Series[Any]
    heard: npt.NDArray[np.int64]
    trace: KeyTrace
    x_title: str

    def course(
        self, precedent: str, steps: npt.NDArray[np.integer[Any]] | None = None, *, band: bool = True
    ) -> pd.DataFrame:
        """Follow one value of the key from its first item on.

        One at a time, because a table of all values after all steps can be larger than any memory.

        Parameters
        ----------
        precedent
            Id of the value's precedent.
        steps
            Only after these, none before the value's first item; every one from there on when left out.
        band
            False to leave out ``lo`` and ``hi``, which cost more than all the rest.

        Returns
        -------
        pandas.DataFrame
            ``step``, ``x``, ``posterior``, ``lo``, ``hi`` (95 % Beta band), ``state`` (as shown), ``support`` and
            ``conflict`` (the counts that the posterior is of: its own while Active, else its tally), ``life``.
        """
        at = self._index(precedent)
        if steps is None:
            steps = np.arange(self.heard[at], len(self.moments))
        course, th = self.trace.course(at, steps), self.thresholds
        s, f = course.support.astype(float), course.conflict.astype(float)
        bounds = beta_band(s + th.alpha, f + th.beta) if band else ()
        return pd.DataFrame(
            {
                "step": steps,
                "x": self.moments.take(steps).reset_index(drop=True),
                "posterior": (s + th.alpha) / (s + f + th.alpha + th.beta),
                **dict(zip(("lo", "hi"), bounds, strict=band)),
                "state": course.state,
                "support": course.support,
                "conflict": course.conflict,
                "life": course.lives,
            }
        )

    def why(self, transition_id: str) -> Why:
        """Explain one of the key's transitions."""
        row = self.transitions[self.transitions["transition_id"] == transition_id].iloc[0]
        for step, reason in _Reasons(self).of(str(row["id"]), only=int(row["number"])):
            del step
            return reason
        raise AssertionError("a transition of the key has its row")

    def reasons(self, precedent: str) -> Iterator[tuple[dict[str, Any], Why]]:
        """Explain every transition of one of the key's precedents, the oldest first, with its row."""
        return _Reasons(self).of(precedent)

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
            self._stands(precedent, state),
        )

    def _stands(self, precedent: str, state: State) -> Verdict | None:
        records, mine = self.replayed.precedents, self._index(precedent)
        if state is State.REVOKED and records["confirmed"][mine]:
            return Verdict.CONFIRM
        pinned = records["pinned"] & (records["state"] == State.ACTIVE)
        held = pinned[mine] if state is State.ACTIVE else pinned.any() and not self.replayed.keys["multivalued"][0]
        return Verdict.PIN if held else None

    def _index(self, precedent: str) -> int:
        return int(np.flatnonzero(self.values["id"].to_numpy() == precedent)[0])

    def needed(self, precedent: str) -> int | None:
        """How many supports in a row would make the precedent Active, or conflicts revoke it if it is Active."""
        index = self._index(precedent)
        active = self.values["state"].iloc[index] == State.ACTIVE.label
        count = would_revoke if active else would_reactivate
        return count(self.replayed, index, self.thresholds)


class _Reasons:
    """Explains transitions of one key one after the other, each for what its own arithmetic costs."""

    def __init__(self, life: KeyLife) -> None:
        self._life = life
        self._evidence = KeyEvidence(life.items)
        decisions = life.decisions
        self._said = dict(zip(decisions["number"], zip(decisions["by"], decisions["after"], strict=True), strict=True))
        several = decisions.loc[decisions["action"] == Action.BOTH_VALID, "after"]
        self._several_from = int(several.min()) if len(several) else None

    def of(self, precedent: str, only: int | None = None) -> Iterator[tuple[dict[str, Any], Why]]:
        """Explain the transitions of a precedent in order, or the one with this number."""
        life = self._life
        steps = life.transitions[life.transitions["id"] == precedent].to_dict("records")
        mine = (life.decisions["id"] == precedent) & (life.decisions["action"] == Action.CONFIRM)
        confirmed = life.decisions.loc[mine, ["after", "by"]]
        activated: int | None = None
        for step in steps:
            row = {str(name): cell for name, cell in step.items()}
            if only is None or row["number"] == only:
                yield row, self._why(row, activated, confirmed)
            if row["to_state"] == State.ACTIVE.label:
                activated = int(row["seq"])

    def _why(self, row: Mapping[str, Any], activated: int | None, confirmed: pd.DataFrame) -> Why:
        life = self._life
        return why(
            self._evidence,
            row,
            life.thresholds,
            in_words_at(row["x"], life.info.is_log, life.info.is_facts),
            None if activated is None else self._begins(activated),
            decided=self._decided(row, confirmed),
            several_from=self._several_from,
        )

    def _begins(self, seq: int) -> int:
        """Return the last evidence item before a life: the one that began it, or the last before the decision."""
        return seq if seq >= 0 else int(self._life.items["seq"].iloc[self._said[-1 - seq][1] - 1])

    def _decided(self, row: Mapping[str, Any], confirmed: pd.DataFrame) -> str:
        """Return who made a transition, or confirmed what was re-asserted; empty where nobody did."""
        if row["seq"] < 0:
            return str(self._said[-1 - row["seq"]][0])
        if row["rule"] != Rule.REASSERTED.label:
            return ""
        before = int(np.searchsorted(confirmed["after"].to_numpy(), self._evidence.place(row["seq"]), side="right"))
        return str(confirmed["by"].iloc[before - 1])


def in_words_at(x: Any, is_log: bool, is_facts: bool = False) -> str:
    """Write a moment of a run: "at task 81", "at fact 29", "on 4 July 2025, 14:05 UTC"."""
    if is_log and isinstance(x, pd.Timestamp):
        return f"on {x.day} {x:%B %Y, %H:%M} UTC"
    if not is_log and x < 0:
        return "before the first task"
    return f"at {'arrival' if is_log else 'fact' if is_facts else 'task'} {int(x)}"


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
    with store.read() as cursor:
        places = places_of_key(cursor, run_id, method, seed, subject, key_id)
        decisions = [one for one in in_effect(read_decisions(cursor, run_id)) if one.precedent_id in places]
    played = None if info.is_log else queries.episodes(store, run_id, method, seed, str(items["key"].iloc[0]))
    return life_of(info, places, items, decisions, played, queries.phases(store, run_id), order)


def life_of(
    info: queries.RunInfo,
    places: Mapping[str, Place],
    items: pd.DataFrame,
    decisions: Sequence[Decision],
    played: pd.DataFrame | None,
    phases: pd.DataFrame,
    order: str = "event",
) -> KeyLife:
    """Replay one conflict key from its parts, which need not be the stored ones.

    Parameters
    ----------
    places
        What the key's precedents are about, by their ids.
    items
        Evidence on the key, as from `tepa_core.store.queries.evidence_of_key`.
    decisions
        Decisions on the key that are in effect.
    played
        Episodes on the key in a simulation: ``t``, ``action``, ``success``; None for a log.
    phases
        Of the run.
    order
        As for `key_life`.
    """
    method, seed, subject, key, key_id, *_ = next(iter(places.values()))
    thresholds = thresholds_of(method, info.thresholds)
    clock = "occurred" if order == "event" else "arrived"
    kinds = items.dtypes.to_dict()
    rows = _steps(items, decided_rows(decisions, places))
    log, labels = encode(rows, time=clock)
    trace, replayed = trace_key(log, thresholds)
    values, transitions = tables(log, labels, replayed, thresholds)
    first = values["first"].to_numpy()
    values.insert(0, "value", spelled(log.precedent, first, rows))
    values.insert(0, "id", [precedent_id(method, seed, subject, key_id, value_id) for value_id in values["value_id"]])
    counted = order == "arrival" and info.is_log and not info.counts.get("arrival_times")
    as_time = info.is_log and not counted
    rows["x"] = rows[clock]
    rows["original"] = rows["value"]
    rows["value"] = values["value"].to_numpy(object)[log.precedent]
    rows = queries.in_clock(rows.take(trace.order).reset_index(drop=True), ("x",), as_time)
    evidence = rows["verdict"] == 0
    items = rows[evidence].drop(columns="verdict").reset_index(drop=True).astype(kinds)
    decided = _decisions(rows, decisions, info.is_log)
    transitions = queries.in_clock(transitions.rename(columns={"time": "x"}), ("x",), as_time)
    transitions.insert(0, "value_id", values["value_id"].to_numpy(object)[transitions["precedent"].to_numpy()])
    transitions.insert(0, "value", values["value"].to_numpy(object)[transitions["precedent"].to_numpy()])
    transitions.insert(0, "id", values["id"].to_numpy(object)[transitions["precedent"].to_numpy()])
    transitions.insert(0, "transition_id", transitions["id"] + "." + transitions["number"].astype(str))
    end = rows["x"].iloc[-1]
    if info.is_log and not evidence.iloc[-1]:
        # A state that a decision begins at the very end needs room to be seen.
        end += (end - rows["x"].iloc[0]) / 30 if as_time else 1
    if not info.is_log and len(phases):
        end = max(end, phases["end"].max())
    heard = _heard(log, trace)
    in_tasks = "fact, then question" if info.is_facts else "task"
    x_title = in_tasks if not info.is_log else ("arrival time (UTC)" if order == "arrival" else "event time (UTC)")
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
        _spans(trace, heard, rows["x"], values["value"].to_numpy(object), end),
        transitions,
        decided,
        _followed(played),
        phases if order == "event" or not info.is_log else phases.head(0),
        replayed,
        rows["x"],
        heard,
        trace,
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


def _steps(items: pd.DataFrame, decided: pd.DataFrame) -> pd.DataFrame:
    """Return evidence with all its columns and, below it, decisions with those that a replay needs."""
    if decided.empty:
        return items.assign(verdict=0)
    # In order of arrival a decision comes after the evidence that it comes after by the time of the evidence.
    order = np.argsort(items["occurred"].to_numpy(), kind="stable")
    latest = np.maximum.accumulate(items["arrived"].to_numpy()[order])
    upto = np.searchsorted(items["occurred"].to_numpy()[order], decided["occurred"].to_numpy(), side="right")
    arrived = latest[upto - 1]
    both = with_decisions(items, decided.assign(arrived=arrived))
    rest = [name for name in items.columns if name not in both]
    return both.join(items[rest].reset_index(drop=True))


def _decisions(rows: pd.DataFrame, decisions: Sequence[Decision], is_log: bool) -> pd.DataFrame:
    """Return what the figure's flags and the why card say of the decisions among the steps of a replay."""
    by_number = {decision.number: decision for decision in decisions}
    mine = rows["verdict"] != 0
    made = rows.loc[mine, ["seq", "x", "value"]].assign(after=(~mine).cumsum()[mine])
    said = []
    for row in made.to_dict("records"):
        decision = by_number[-1 - row["seq"]]
        what = {Action.REACTIVATE: "reactivated", Action.CONFIRM: "revocation confirmed"}
        verb = what.get(decision.action, "both valid") + (", pinned" if decision.pinned else "")
        by = reason_in_words(decision)
        text = f"{row['value']}: {verb} {in_words_at(row['x'], is_log)} by {by}"
        said.append(
            (
                row["x"],
                row["value"],
                initials(decision.reviewer) + ("" if decision.claim is None else "?"),
                text,
                decision.precedent_id,
                decision.decision_id,
                decision.number,
                str(decision.action),
                decision.pinned,
                decision.reviewer,
                by,
                decision.claim is not None,
                row["after"],
            )
        )
    columns = ["x", "value", "initials", "text", "id", "decision_id", "number", "action", "pinned", "reviewer", "by"]
    return pd.DataFrame(said, columns=[*columns, "claimed", "after"])


def _heard(log: EncodedLog, trace: KeyTrace) -> npt.NDArray[np.int64]:
    """Return the step of each value's first evidence item; a decision says nothing of a value."""
    value = log.precedent[trace.order]
    steps = np.arange(len(value)) if log.verdict is None else np.flatnonzero(log.verdict[trace.order] == 0)
    known, first = np.unique(value[steps], return_index=True)
    heard = np.full(int(log.key_start[-1]), len(value), np.int64)
    heard[known] = steps[first]
    return heard


def _spans(
    trace: KeyTrace, heard: npt.NDArray[np.int64], x: pd.Series[Any], values: npt.NDArray[np.object_], end: Any
) -> pd.DataFrame:
    """Stretches of one state and life per value, each lasting until the next begins."""
    begins = trace.stretches(heard)
    x0 = x.take(begins["step"]).reset_index(drop=True)
    last = pd.Series(np.append(begins["value"][1:] != begins["value"][:-1], True))
    return pd.DataFrame(
        {
            "value": values[begins["value"]],
            "state": shown_states(begins["state"]),
            "x0": x0,
            "x1": x0.shift(-1, fill_value=x0.iloc[-1]).mask(last, end),
            "life": begins["lives"].astype(np.int64),
        }
    )


def _followed(played: pd.DataFrame | None) -> pd.DataFrame:
    if played is None:
        return pd.DataFrame(columns=["x", "value", "success"])
    return pd.DataFrame({"x": played["t"], "value": played["action"], "success": played["success"]})


def explanation(store: Store, run_id: str, precedent: str) -> dict[str, Any]:
    """Return one precedent's life as JSON-ready data: what the command ``explain`` prints."""
    life = precedent_life(store, run_id, precedent)
    row = life.values[life.values["id"] == precedent].iloc[0]
    quoted = _Quoted(life.items)
    steps = [
        {
            "transition_id": step["transition_id"],
            "at": plain(step["x"]),
            "from": step["from_state"],
            "to": step["to_state"],
            "rule": step["rule"],
            "life": step["life"],
            "posterior": step["posterior"],
            "recent": [int(outcome) for outcome in step["window"]],
            "support": step["support"],
            "conflict": step["conflict"],
            "evidence": [quoted.item(seq) for seq in reason.evidence],
            "sentence": reason.sentence,
            "counterfactual": reason.counterfactual,
            "would_prevent": reason.would_prevent,
        }
        for step, reason in life.reasons(precedent)
    ]
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


class _Quoted:
    """Evidence items as JSON-ready data, by their numbers."""

    def __init__(self, items: pd.DataFrame) -> None:
        names = ("seq", "x", "original", "supports", "text", "source_ref")
        self._columns = {name: items[name].astype(object).to_numpy() for name in names}
        self._place = {seq: place for place, seq in enumerate(items["seq"].tolist())}

    def item(self, seq: int) -> dict[str, Any]:
        """Return one item."""
        place = self._place[seq]
        cell = {name: plain(column[place]) for name, column in self._columns.items()}
        return {
            "seq": seq,
            "at": cell["x"],
            "value": cell["original"],
            "supports": cell["supports"],
            "text": cell["text"],
            "source_ref": cell["source_ref"],
        }


_PLAIN = frozenset({str, int, bool, type(None)})


def plain(value: Any) -> Any:
    """Return a cell as JSON knows it: ISO text for a time, None for a missing value, Python numbers."""
    if type(value) in _PLAIN:
        return value
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    return value.item() if isinstance(value, np.generic) else value


#: Rules that put a precedent into the archive, for filters.
REVOCATION_RULES = tuple(rule.label for rule in (Rule.POSTERIOR, Rule.RECENT, Rule.SUPERSEDED))
