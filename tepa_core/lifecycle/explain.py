"""Why a precedent changed its state, and how much evidence would change it again.

Every number comes from the rule: the counterfactuals of an archived precedent are found by feeding it supports through
`tepa_core.lifecycle.rule.observe_key`, never by a second formula.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tepa_core.lifecycle import rule
from tepa_core.lifecycle.precedent import TRANSITION, Rule, State, Thresholds, Verdict
from tepa_core.lifecycle.replay import Replay

#: Items that a counterfactual tries before it says "never".
LIMIT = 1000

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the arithmetic of a transition: a quantity before and after the evidence, and its threshold."""

    quantity: str
    before: str
    after: str
    threshold: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Why:
    """Why one transition happened.

    Attributes
    ----------
    sentence
        What happened, by which rule, for a person who has never seen the method.
    lines
        The arithmetic.
    counterfactual
        What would have prevented it; empty where the question makes no sense.
    would_prevent
        How many of the latest conflicts would have had to be supports; None for anything but a revocation by rule.
    evidence
        Numbers (``seq``) of the evidence items that did it, oldest first.
    """

    sentence: str
    lines: tuple[Line, ...]
    counterfactual: str
    would_prevent: int | None
    evidence: tuple[int, ...]


def in_words(number: int) -> str:
    """Write a small number as a word: ``3`` is "three"."""
    return _WORDS[number] if number < len(_WORDS) else f"{number:,}"


def counted(number: int, thing: str) -> str:
    """Write a number with its noun: "one support", "three supports"."""
    return f"{in_words(number)} {thing}{'' if number == 1 else 's'}"


def would_prevent(support: int, conflict: int, window: str, thresholds: Thresholds) -> int:
    """Return how many of the latest conflicts would have had to be supports for neither rule to fire.

    Parameters
    ----------
    support, conflict
        Counts after the revoking conflict.
    window
        The recent outcomes after it, oldest first, as text of 1 and 0.
    """
    total = support + conflict
    needed = 0
    if total >= thresholds.n_min:
        # The least m with (s + m + alpha) / (n + alpha + beta) >= theta_rev, then checked by the rule's own division.
        bar = thresholds.theta_rev * (total + thresholds.alpha + thresholds.beta) - thresholds.alpha
        # With every conflict turned into a support no rule is asked any more.
        needed = min(max(math.floor(bar) - support, 0), conflict)
        while needed < conflict and thresholds.posterior(support + needed, conflict - needed) < thresholds.theta_rev:
            needed += 1
    if len(window) >= thresholds.n_rec:
        ones = window.count("1")
        recent = 0
        while ones + recent < thresholds.n_rec and (ones + recent) / thresholds.n_rec < thresholds.theta_rec:
            recent += 1
        needed = max(needed, recent)
    return needed


def would_reactivate(replayed: Replay, value: int, thresholds: Thresholds) -> int | None:
    """Return how many supports in a row would make a value of a replayed key Active; 0 if it is.

    Parameters
    ----------
    replayed
        The replay of the key's evidence alone (see `tepa_core.lifecycle.replay.trace_key`); not changed.
    value
        Index of the value.

    Returns
    -------
    int or None
        None when `LIMIT` supports are not enough, which needs a ``theta_pro`` close to 1.
    """
    return _until(replayed, value, thresholds, supports=True, goal=State.ACTIVE)


def would_revoke(replayed: Replay, value: int, thresholds: Thresholds) -> int | None:
    """Return how many refutations in a row would revoke an Active value; None when none would."""
    return _until(replayed, value, thresholds, supports=False, goal=State.REVOKED)


def _until(replayed: Replay, value: int, thresholds: Thresholds, *, supports: bool, goal: State) -> int | None:
    precedents, keys, ring = replayed.precedents.copy(), replayed.keys.copy(), replayed.rings[0].copy()
    out = np.zeros(len(precedents) + rule.ACTIVATIONS_PER_ITEM, TRANSITION)
    parameters = thresholds.parameters()
    for n in range(LIMIT + 1):
        if precedents["state"][value] == goal:
            return n
        rule.observe_key(precedents, keys[0], ring, value, supports, parameters, n, n, 0, 0, out, 0)
    return None


class KeyEvidence:
    """The evidence on one key, arranged so that the items behind a transition are found without reading all.

    Parameters
    ----------
    items
        In the order of the replay: ``seq``, ``value_id``, ``supports``.
    """

    __slots__ = (
        "_all_supports",
        "_by_seq",
        "_code",
        "_codes",
        "_first",
        "_first_support",
        "_is_support",
        "_names",
        "_own",
        "_seq",
        "_supports",
    )

    def __init__(self, items: pd.DataFrame) -> None:
        self._seq = items["seq"].to_numpy(np.int64)
        self._by_seq = np.argsort(self._seq, kind="stable")
        codes, names = pd.factorize(items["value_id"], use_na_sentinel=False)
        self._code, self._names = codes, names.tolist()
        self._codes: dict[Any, int] = {name: code for code, name in enumerate(self._names)}
        self._is_support = support = items["supports"].to_numpy(np.bool_)
        self._all_supports = np.flatnonzero(support)
        # Places of the items of one value side by side, in order; and those of its supports.
        self._own = np.argsort(codes, kind="stable")
        self._first = np.searchsorted(codes[self._own], np.arange(len(names) + 1))
        self._supports = self._own[support[self._own]]
        self._first_support = np.searchsorted(codes[self._supports], np.arange(len(names) + 1))

    def place(self, seq: int) -> int:
        """Return where an item stands in the order of the replay."""
        return int(self._by_seq[np.searchsorted(self._seq, seq, sorter=self._by_seq)])

    def numbers(self, places: npt.NDArray[np.int64]) -> tuple[int, ...]:
        """Return the ``seq`` of items by their places."""
        return tuple(self._seq[places].tolist())

    def supports(self, value: str, upto: int, last: int) -> npt.NDArray[np.int64]:
        """Return the places of the last supports of a value up to a place, itself included."""
        code = self._codes[value]
        own = self._supports[self._first_support[code] : self._first_support[code + 1]]
        return _last(own, 0, upto + 1, last)

    def concerning(
        self, value: str, start: int, upto: int, last: int, several_from: int | None
    ) -> npt.NDArray[np.int64]:
        """Return the places of the last items that are for or against a value, from one place up to another.

        A support of any value is, as long as the key holds one; an item about the value itself always is.
        """
        code = self._codes[value]
        own = _last(self._own[self._first[code] : self._first[code + 1]], start, upto + 1, last)
        stop = upto + 1 if several_from is None else min(upto + 1, several_from)
        return np.union1d(own, _last(self._all_supports, start, stop, last))[-last:]

    def outcomes(self, value: str, places: npt.NDArray[np.int64]) -> str:
        """Write items as a window of the value's outcomes: 1 where a place is a support of it."""
        own = self._is_support[places] & (self._code[places] == self._codes[value])
        return "".join("1" if outcome else "0" for outcome in own)

    def value_at(self, place: int) -> Any:
        """Return the ``value_id`` of an item."""
        return self._names[self._code[place]]


def _last(places: npt.NDArray[np.int64], start: int, stop: int, count: int) -> npt.NDArray[np.int64]:
    """Return the last of ascending places in [start, stop)."""
    low, high = np.searchsorted(places, [start, stop])
    return places[max(low, high - count) : high]


def why(
    evidence: pd.DataFrame | KeyEvidence,
    transition: Mapping[str, Any],
    thresholds: Thresholds,
    at: str,
    activated: int | None = None,
    *,
    decided: str = "",
    several_from: int | None = None,
) -> Why:
    """Explain one transition.

    Parameters
    ----------
    evidence
        The key's evidence in the order of its replay: ``seq``, ``value_id``, ``supports``; arranged once as
        `KeyEvidence` where many transitions of one key are explained.
    transition
        A row of the transitions table of `tepa_core.lifecycle.replay.tables`, with its ``value_id``.
    thresholds
        Those of the replay.
    at
        When it happened, in words: "at task 81", "on 4 July 2025".
    activated
        Number (``seq``) of the item after which the outcomes of the life that a revocation ends begin; without it the
        outcomes before the revoking item are shown as far as the window still holds them.
    decided
        Who decided, and why, in words, where a decision made the transition or, for a re-assertion, stands against it.
    several_from
        Number of items (in order) from which the key holds several values, so that a support of one is no conflict
        for another; None where it holds one throughout.
    """
    value, cause = transition["value_id"], Rule[transition["rule"].upper()]
    if cause is Rule.DECIDED:
        return Why(f"Made active again {at} by a decision{_of(decided)}.", (), "", None, ())
    if cause is Rule.SUPERSEDED and transition["seq"] < 0:
        line = Line("active values of the key", "1", "2", "at most 1", "superseded")
        sentence = f"Revoked {at}: a decision{_of(decided)} made another value of the key active."
        return Why(sentence, (line,), "", None, ())
    known = evidence if isinstance(evidence, KeyEvidence) else KeyEvidence(evidence)
    place = known.place(transition["seq"])
    if cause in (Rule.POSTERIOR, Rule.RECENT):
        return _why_revoked(known, place, value, transition, thresholds, at, cause, activated, several_from)
    if cause is Rule.SUPERSEDED:
        return Why(
            f"Revoked {at}: another value of the key became active, and a key holds one active value.",
            (Line("active values of the key", "1", "2", "at most 1", "superseded"),),
            "",
            None,
            known.numbers(known.supports(known.value_at(place), place, thresholds.theta_prop)),
        )
    return _why_raised(known, place, value, transition, thresholds, at, cause, decided)


def _of(decided: str) -> str:
    return f" of {decided}" if decided else ""


def _why_revoked(
    known: KeyEvidence,
    place: int,
    value: str,
    row: Mapping[str, Any],
    th: Thresholds,
    at: str,
    cause: Rule,
    activated: int | None,
    several_from: int | None,
) -> Why:
    s, f, window = int(row["support"]), int(row["conflict"]), str(row["window"])
    shown = th.n_rec if cause is Rule.RECENT else max(th.n_min, th.n_rec)
    evidence = known.concerning(value, 0, place, shown, several_from)
    conflicts = window.count("0")
    q_before, q = th.posterior(s, f - 1), th.posterior(s, f)
    judged = s + f >= th.n_min
    full = len(window) >= th.n_rec
    mean = window.count("1") / len(window)
    if cause is Rule.RECENT:
        counts = (
            "its last evidence item"
            if len(window) == 1
            else f"{in_words(conflicts)} of its last {in_words(len(window))} evidence items"
        )
        sentence = f"Revoked {at} by the recent rule: {counts} went against it."
    else:
        sentence = (
            f"Revoked {at} by the posterior rule: with {counted(s, 'support')} against {counted(f, 'conflict')} "
            f"its posterior fell to {q:.2f}, below {th.theta_rev:g}."
        )
    earlier = window[:-1]
    if activated is not None and len(window) == th.n_rec:
        # The last of them is the revoking item itself.
        life = known.concerning(value, known.place(activated) + 1, place, th.n_rec + 1, several_from)
        earlier = known.outcomes(value, life[:-1])
    lines = (
        Line("supports", str(s), str(s), "", ""),
        Line("conflicts", str(f - 1), str(f), "", "this item is a conflict"),
        Line(
            "posterior",
            f"{q_before:.3f}",
            f"{q:.3f}",
            f"at least {th.theta_rev:g} from {th.n_min} outcomes",
            ("below: revoked" if cause is Rule.POSTERIOR else "holds") if judged else f"not judged: {s + f} outcomes",
        ),
        Line(
            f"last {th.n_rec} outcomes",
            _outcomes(earlier),
            _outcomes(window),
            "",
            "" if full else f"not judged: {len(window)} of {th.n_rec}",
        ),
        Line(
            "their mean",
            "" if not earlier else f"{earlier.count('1') / len(earlier):.3f}",
            f"{mean:.3f}",
            f"at least {th.theta_rec:g}",
            ("below: revoked" if mean < th.theta_rec else "holds") if full else "not judged",
        ),
    )
    needed = would_prevent(s, f, window, th)
    if cause is Rule.RECENT:
        counterfactual = (
            f"{counted(needed, 'more support').capitalize()} among the last {in_words(th.n_rec)} "
            f"would have prevented it."
            if th.n_rec > 1
            else "A support in its place would have prevented it."
        )
    else:
        counterfactual = (
            f"It would have stood if {in_words(needed)} of its {counted(f, 'conflict')} had been "
            f"{'a support' if needed == 1 else 'supports'}."
        )
    return Why(sentence, lines, counterfactual, needed, known.numbers(evidence))


def _why_raised(
    known: KeyEvidence,
    place: int,
    value: str,
    row: Mapping[str, Any],
    th: Thresholds,
    at: str,
    cause: Rule,
    decided: str,
) -> Why:
    s, f = int(row["trial_support"]), int(row["trial_conflict"])
    q = th.posterior(s, f)
    opening = {
        Rule.PROPOSED: "Became a hypothesis",
        Rule.PROMOTED: "Became active",
        Rule.REACTIVATED: f"Came back out of the archive (life {int(row['life'])})",
        Rule.REASSERTED: "Re-asserted",
    }[cause]
    sentence = (
        f"{opening} {at}: {counted(s, 'fresh support')} against {counted(f, 'conflict')} "
        f"since {'its tally' if cause is Rule.REASSERTED else 'the tallies of this key'} last restarted."
    )
    if cause is Rule.REASSERTED:
        sentence += f" It stays in the archive, because a decision{_of(decided)} confirmed its revocation."
    lines = (
        Line("fresh supports", str(s - 1), str(s), f"at least {th.theta_prop}", "reached"),
        Line("conflicts meanwhile", str(f), str(f), "", ""),
        Line(
            "posterior of the tally",
            f"{th.posterior(s - 1, f):.3f}",
            f"{q:.3f}",
            f"at least {th.theta_pro:g} to be active",
            "not yet" if q < th.theta_pro else "asks for another look" if cause is Rule.REASSERTED else "reached",
        ),
    )
    return Why(sentence, lines, "", None, known.numbers(known.supports(value, place, max(s, 1))))


def standing(
    state: State,
    support: int,
    conflict: int,
    trial: tuple[int, int],
    needed: int | None,
    th: Thresholds,
    verdict: Verdict | None = None,
) -> str:
    """Say where a precedent stands now and what would change it.

    Parameters
    ----------
    trial
        Its tally, (supports, conflicts).
    needed
        From `would_reactivate`, or from `would_revoke` for an Active precedent.
    verdict
        A decision that stands. `Verdict.CONFIRM`: on its revocation; `Verdict.PIN`: on an Active precedent itself, else
        on the value of its key that is Active.
    """
    if state is State.ACTIVE:
        change = (
            "It is pinned: no conflict revokes it, only another decision does."
            if verdict is Verdict.PIN
            else "No number of conflicts revokes it at these thresholds."
            if needed is None
            else f"{counted(needed, 'conflict').capitalize()}{'' if needed == 1 else ' in a row'} would revoke it."
        )
        return f"Active, with {counted(support, 'support')} against {counted(conflict, 'conflict')}. {change}"
    back = "bring it back" if state is State.REVOKED else "make it active"
    if state is State.REVOKED and verdict is Verdict.CONFIRM:
        change = "Its revocation is confirmed: fresh supports ask for another look instead of bringing it back."
    elif verdict is Verdict.PIN:
        change = f"Another value of the key is pinned: no fresh support would {back}, only a decision does."
    elif needed is None:
        change = f"No number of fresh supports would {back} at these thresholds."
    else:
        verb = back.replace("bring", "brings").replace("make", "makes") if needed == 1 else back
        change = f"{counted(needed, 'fresh support').capitalize()}{'' if needed == 1 else ' in a row'} {verb}."
    name = {State.REVOKED: "In the archive", State.HYPOTHESIS: "A hypothesis", State.CANDIDATE: "A candidate"}[state]
    so_far = (
        f"its tally since then is {counted(trial[0], 'support')} against {counted(trial[1], 'conflict')}"
        if state is State.REVOKED
        else f"{counted(trial[0], 'support')} against {counted(trial[1], 'conflict')} so far, and "
        f"{counted(th.theta_prop, 'support')} with a posterior of {th.theta_pro:g} are needed"
    )
    return f"{name}: {so_far}. {change}"


def _outcomes(window: str) -> str:
    return " ".join("support" if outcome == "1" else "conflict" for outcome in window)
