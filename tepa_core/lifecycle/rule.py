"""The one rule: everything that changes the state of a precedent stands in this file.

Theory of operation
-------------------
Evidence is one item at a time: a conflict key, a value, and whether the item *supports* or *refutes* that value. A
support of a value conflicts with every other value of a single-valued key. A refutation says nothing of the others
(paper section 3.2; where the paper is silent, each choice below is ours and named here).

A value is judged by one of two counts, never by both:

* An **Active** precedent has ``support`` and ``conflict`` and a window of its last ``n_rec`` outcomes in this life.
* Any other value has a **tally** of supports and conflicts since the key's tallies last restarted.

Per evidence item, in this order, so that the order in which values are stored never matters:

1. Active precedents that it concerns count it. After a conflict the *posterior rule* (at least ``n_min`` outcomes and
   posterior below ``theta_rev``), then the *recent rule* (a full window with a mean below ``theta_rec``) may revoke.
2. A revocation restarts the tallies of the key from what revoked it: the revoked value starts at (0, conflicts in its
   window), every other value at (its supports among the key's last ``n_rec`` items before this one, 0).
3. Values that are not Active, and not just revoked, count it in their tally: a support of the value, a refutation of
   it, or, when the tally is not empty, a support of another value as a conflict. A tally with ``n_min`` counts and a
   posterior below ``theta_rev`` restarts at (0, 0).
4. After a support, a tally with ``theta_prop`` supports makes a Hypothesis, and with a posterior of at least
   ``theta_pro`` (in TEPA-Full also with its trials passed) an Active precedent: its counts join the precedent's, tally
   and window are emptied. From Revoked this is a re-activation: the same precedent, one more life. Until then a Revoked
   precedent stays Revoked, and a Hypothesis whose tally restarts stays a Hypothesis.
5. On a single-valued key an activation revokes any other Active value as superseded (which restarts tallies as in 2).

=============  =============  ===========================================
from           to             rule
=============  =============  ===========================================
candidate      hypothesis     proposed
hypothesis     active         promoted
revoked        active         reactivated
active         revoked        posterior, recent, superseded
revoked        active         decided (by a person)
revoked        revoked        reasserted (a confirmed one, asserted again)
=============  =============  ===========================================

Decisions
---------
A person may overrule the rule on what it has archived (`decide`). *Reactivate* makes the precedent Active with its own
counts and an empty window, and replaces the key's Active value; it stands until evidence revokes it again, or, pinned,
until another decision: a pinned precedent goes on counting, and no other value of its key becomes Active. *Confirm*
keeps it archived: the evidence that would have re-activated it is recorded as a re-assertion, and its tally starts
again. *Both valid* makes it Active beside the others and the key multi-valued: from then on a support of one value is
no conflict for another.

Why tallies are lazy
--------------------
Step 3 touches every value of the key, which would make a key with many values quadratic. A tally that is not touched
only ever gains conflicts, one per support of another value, so it is enough to note the key's count of conflicting
supports when it was last touched (``trial_base``) and its restart number (``trial_epoch``). The restart condition of
step 3 cannot turn false again while only conflicts are added, so testing it late gives the same answer as testing it
each time.
`tally` is the only reader. One item then costs the same whatever the number of values: the replay is linear.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from tepa_core.lifecycle.precedent import KEY, PRECEDENT, Rule, RuleParameters, State, Verdict

_CANDIDATE = int(State.CANDIDATE)
_HYPOTHESIS = int(State.HYPOTHESIS)
ACTIVE = int(State.ACTIVE)
_REVOKED = int(State.REVOKED)
_NONE = int(Rule.NONE)
_PROPOSED = int(Rule.PROPOSED)
_PROMOTED = int(Rule.PROMOTED)
_REACTIVATED = int(Rule.REACTIVATED)
_POSTERIOR = int(Rule.POSTERIOR)
_RECENT = int(Rule.RECENT)
_SUPERSEDED = int(Rule.SUPERSEDED)
_DECIDED = int(Rule.DECIDED)
_REASSERTED = int(Rule.REASSERTED)
_REACTIVATE = int(Verdict.REACTIVATE)
_PIN = int(Verdict.PIN)
_CONFIRM = int(Verdict.CONFIRM)
_BOTH_VALID = int(Verdict.BOTH_VALID)

#: In a ring of recent items: the item was a refutation, or there was none yet.
NO_SUPPORT = -1

#: Among choices: the memory has no record of the value.
UNSEEN = -1

#: Transitions that one item can cause on top of one for each Active precedent: proposed, promoted.
ACTIVATIONS_PER_ITEM = 2

#: The legal changes of state and the rules that make them; the table above, for tests, figures and documentation.
LEGAL: frozenset[tuple[State, State, Rule]] = frozenset(
    {
        (State.CANDIDATE, State.HYPOTHESIS, Rule.PROPOSED),
        (State.HYPOTHESIS, State.ACTIVE, Rule.PROMOTED),
        (State.REVOKED, State.ACTIVE, Rule.REACTIVATED),
        (State.ACTIVE, State.REVOKED, Rule.POSTERIOR),
        (State.ACTIVE, State.REVOKED, Rule.RECENT),
        (State.ACTIVE, State.REVOKED, Rule.SUPERSEDED),
        (State.REVOKED, State.ACTIVE, Rule.DECIDED),
        (State.REVOKED, State.REVOKED, Rule.REASSERTED),
    }
)


def new_key(values: int, n_rec: int) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void], npt.NDArray[np.int32]]:
    """Return the empty memory of one key: precedents (values,), the key's record (1,), the ring of items (n_rec,)."""
    precedents = np.zeros(values, PRECEDENT)
    clear_precedents(precedents)
    key = np.zeros(1, KEY)
    key["active_head"] = -1
    return precedents, key, np.full(n_rec, NO_SUPPORT, np.int32)


def clear_precedents(precedents: npt.NDArray[np.void]) -> None:
    """Set zeroed precedents to "never seen"."""
    precedents["active_next"] = -1
    precedents["activated_seq"] = -1


@njit(cache=True, nogil=True)
def ones(window: int) -> int:
    """Count the supports in a window of outcomes."""
    count = 0
    while window:
        window &= window - 1
        count += 1
    return count


@njit(cache=True, nogil=True)
def posterior(support: float, conflict: float, th: RuleParameters) -> float:
    """Posterior mean of paper section 3.1."""
    return (support + th.alpha) / (support + conflict + th.alpha + th.beta)


@njit(cache=True, nogil=True)
def revocation_rule(support: int, conflict: int, window: int, window_len: int, th: RuleParameters) -> int:
    """Return the rule by which an Active precedent with these counts falls after a conflict, or ``Rule.NONE``."""
    if support + conflict >= th.n_min and posterior(support, conflict, th) < th.theta_rev:
        return _POSTERIOR
    if window_len >= th.n_rec and ones(window) / th.n_rec < th.theta_rec:
        return _RECENT
    return _NONE


@njit(cache=True, nogil=True)
def observe(precedent: Any, supports: bool, th: RuleParameters) -> int:
    """Count one outcome of an Active precedent (step 1).

    Returns
    -------
    int
        The rule that revokes it, or ``Rule.NONE``. The caller revokes; nothing but counts and window change here.
    """
    precedent.window = ((precedent.window << 1) | (1 if supports else 0)) & ((1 << th.n_rec) - 1)
    if precedent.window_len < th.n_rec:
        precedent.window_len += 1
    if supports:
        precedent.support += 1
        return _NONE
    precedent.conflict += 1
    if not th.revokes or precedent.pinned:
        return _NONE
    return revocation_rule(precedent.support, precedent.conflict, precedent.window, precedent.window_len, th)


@njit(cache=True, nogil=True)
def tally(precedent: Any, key: Any, th: RuleParameters) -> tuple[int, int]:
    """Return (supports, conflicts) of a value that is not Active, as they stand after the key's last item."""
    if precedent.trial_epoch != key.epoch:
        return 0, 0
    support = precedent.trial_support
    conflict = precedent.trial_conflict
    if support + conflict == 0:
        return 0, 0
    conflict += key.supports - precedent.trial_base
    # What a revocation has just written down is first judged by the next item.
    if key.items > precedent.trial_item and restarts(support, conflict, th):
        return 0, 0
    return support, conflict


@njit(cache=True, nogil=True)
def restarts(support: int, conflict: int, th: RuleParameters) -> bool:
    """Whether a tally with these counts starts again at (0, 0) (step 3)."""
    return support + conflict >= th.n_min and posterior(support, conflict, th) < th.theta_rev


@njit(cache=True, nogil=True)
def _set_tally(precedent: Any, support: int, conflict: int, epoch: int, base: int, item: int) -> None:
    precedent.trial_support = support
    precedent.trial_conflict = conflict
    precedent.trial_epoch = epoch
    precedent.trial_base = base
    precedent.trial_item = item


@njit(cache=True, nogil=True)
def _record(out: Any, n: int, seq: int, t: int, key_index: int, p: int, precedent: Any, to: int, rule: int) -> int:
    row = out[n]
    row.seq = seq
    row.time = t
    row.key = key_index
    row.precedent = p
    row.from_state = precedent.state
    row.to_state = to
    row.rule = rule
    row.life = precedent.lives
    row.support = precedent.support
    row.conflict = precedent.conflict
    row.window = precedent.window
    row.window_len = precedent.window_len
    row.trial_support = precedent.trial_support
    row.trial_conflict = precedent.trial_conflict
    precedent.state = to
    precedent.rule = rule
    precedent.changed_at = t
    return n + 1


@njit(cache=True, nogil=True)
def _revoke(
    precedents: Any, key: Any, ring: Any, p: int, base: int, item: int, others_base: int, others_item: int
) -> None:
    """Take one precedent off the Active list and restart the tallies of its key (step 2).

    ``base`` is the key's support count from which conflicts add to its restarted tally and ``item`` the number of items
    behind which that tally is judged; ``others_base`` and ``others_item`` are the same for the other values.
    """
    if key.active_head == p:
        key.active_head = precedents[p].active_next
    else:
        a = key.active_head
        while precedents[a].active_next != p:
            a = precedents[a].active_next
        precedents[a].active_next = precedents[p].active_next
    precedents[p].active_next = -1
    key.epoch += 1
    conflicts = precedents[p].window_len - ones(precedents[p].window)
    _set_tally(precedents[p], 0, conflicts, key.epoch, base, item)
    for i in range(ring.shape[0]):
        w = ring[i]
        if w >= 0 and w != p and precedents[w].state != ACTIVE:
            before = precedents[w].trial_support if precedents[w].trial_epoch == key.epoch else 0
            _set_tally(precedents[w], before + 1, 0, key.epoch, others_base, others_item)


@njit(cache=True, nogil=True)
def observe_key(
    precedents: Any,
    key: Any,
    ring: Any,
    v: int,
    supports: bool,
    th: RuleParameters,
    t: int,
    seq: int,
    key_index: int,
    first: int,
    out: Any,
    n: int,
    admits: bool = True,
) -> int:
    """Apply one evidence item to one key: the five steps of the module's theory of operation.

    Parameters
    ----------
    precedents
        The key's precedents, shape (values,), dtype `PRECEDENT`; changed in place.
    key
        The key's record, dtype `KEY`; changed in place.
    ring
        Values supported by the key's last items, shape (n_rec,), `NO_SUPPORT` for refutations; changed in place.
    v
        Index of the value that the item is about.
    supports
        True for a support of ``v``, False for a refutation.
    th
        The thresholds.
    t, seq
        Time of the item and its number; written into the transitions.
    key_index, first
        Number of the key, and of its first precedent, to write into the transitions.
    out, n
        Array of dtype `TRANSITION` with room for `ACTIVATIONS_PER_ITEM` and all Active precedents from ``n`` on.

    admits
        Whether trial validation lets the value become Active at this item (TEPA-Full); True where there are no trials.

    Returns
    -------
    int
        The number of transitions in ``out``.
    """
    current = 1 if supports else 0
    # On a key that holds several values a support conflicts with none, so it adds to no other tally.
    against = 0 if key.multivalued else current
    mine = precedents[v]
    if mine.state == _CANDIDATE and mine.trial_item == 0:
        mine.created_at = t
        mine.changed_at = t
    revoked = -1
    a = key.active_head
    while a >= 0:
        following = precedents[a].active_next
        if a == v or against == 1:
            rule = observe(precedents[a], a == v and supports, th)
            if rule != _NONE:
                # This item is in the window of what it revokes already; the other values have yet to count it.
                _revoke(precedents, key, ring, a, key.supports + against, key.items + 1, key.supports, key.items)
                n = _record(out, n, seq, t, key_index, first + a, precedents[a], _REVOKED, rule)
                revoked = a
        a = following

    if mine.state != ACTIVE and v != revoked:
        support, conflict = tally(mine, key, th)
        support += current
        conflict += 1 - current
        if restarts(support, conflict, th):
            support, conflict = 0, 0
        _set_tally(mine, support, conflict, key.epoch, key.supports + against, key.items + 1)
        if supports and support >= th.theta_prop:
            if mine.state == _CANDIDATE:
                n = _record(out, n, seq, t, key_index, first + v, mine, _HYPOTHESIS, _PROPOSED)
            if admits and posterior(support, conflict, th) >= th.theta_pro:
                if mine.confirmed and mine.state == _REVOKED:
                    n = _record(out, n, seq, t, key_index, first + v, mine, _REVOKED, _REASSERTED)
                    _set_tally(mine, 0, 0, key.epoch, key.supports + against, key.items + 1)
                elif key.multivalued or not _held(precedents, key):
                    mine.support += support
                    mine.conflict += conflict
                    rule = _PROMOTED if mine.state == _HYPOTHESIS else _REACTIVATED
                    n = _activate(precedents, key, ring, v, rule, 1, th, t, seq, key_index, first, out, n)

    key.supports += against
    ring[key.items % ring.shape[0]] = v if supports else NO_SUPPORT
    key.items += 1
    return n


@njit(cache=True, nogil=True)
def _held(precedents: Any, key: Any) -> bool:
    """Whether a pinned precedent keeps the other values of a single-valued key from becoming Active."""
    return bool(key.active_head >= 0 and precedents[key.active_head].pinned)


@njit(cache=True, nogil=True)
def _activate(
    precedents: Any,
    key: Any,
    ring: Any,
    v: int,
    rule: int,
    item: int,
    th: RuleParameters,
    t: int,
    seq: int,
    key_index: int,
    first: int,
    out: Any,
    n: int,
) -> int:
    """Make a value Active (step 4) and revoke what it replaces (step 5).

    ``item`` is 1 while an item is being counted that the key's record does not hold yet, 0 for a decision.
    """
    mine = precedents[v]
    mine.lives += 1
    mine.window = 0
    mine.window_len = 0
    mine.activated_seq = seq
    n = _record(out, n, seq, t, key_index, first + v, mine, ACTIVE, rule)
    base, items = key.supports + item, key.items + item
    _set_tally(mine, 0, 0, key.epoch, base, items)
    others = key.active_head
    mine.active_next = others
    key.active_head = v
    if th.revokes and not key.multivalued:
        while others >= 0:
            following = precedents[others].active_next
            precedents[others].pinned = False
            _revoke(precedents, key, ring, others, base, items, base, items)
            n = _record(out, n, seq, t, key_index, first + others, precedents[others], _REVOKED, _SUPERSEDED)
            others = following
    return n


@njit(cache=True, nogil=True)
def decide(
    precedents: Any,
    key: Any,
    ring: Any,
    v: int,
    verdict: int,
    th: RuleParameters,
    t: int,
    seq: int,
    key_index: int,
    first: int,
    out: Any,
    n: int,
) -> int:
    """Apply one decision of a person to one precedent; parameters and result as in `observe_key`.

    A precedent that is not Revoked when the decision is replayed (evidence brought it back meanwhile) is not moved:
    only the standing part of the decision applies to it.
    """
    mine = precedents[v]
    mine.pinned = verdict == _PIN
    mine.confirmed = verdict == _CONFIRM
    if verdict == _BOTH_VALID:
        key.multivalued = True
    if verdict != _CONFIRM and mine.state == _REVOKED:
        support, conflict = tally(mine, key, th)
        _set_tally(mine, support, conflict, key.epoch, key.supports, key.items)
        n = _activate(precedents, key, ring, v, _DECIDED, 0, th, t, seq, key_index, first, out, n)
    return n


@njit(cache=True, nogil=True)
def best_candidate(precedents: Any, key: Any, choices: npt.NDArray[np.int32], th: RuleParameters) -> int:
    """Return the position in ``choices`` of the value with the best tally posterior, or -1 on a tie.

    ``choices`` holds indices of values, `UNSEEN` for a value that the memory has no record of: its posterior is that
    of the empty tally, 0.5 under the uniform prior.
    """
    best = -1.0
    who = -1
    for i in range(choices.shape[0]):
        support, conflict = 0, 0
        if choices[i] >= 0:
            support, conflict = tally(precedents[choices[i]], key, th)
        q = posterior(support, conflict, th)
        if q > best:
            best = q
            who = i
        elif q == best:
            who = -1
    return who


@njit(cache=True, nogil=True)
def followed_active(precedents: Any, key: Any, revokes: bool) -> int:
    """Return the Active value that is retrieved, or -1.

    The most recently activated; without revocation, where several can be Active, the best supported (tie: the newer).
    """
    who: int = key.active_head
    if who < 0 or revokes:
        return who
    a = precedents[who].active_next
    while a >= 0:
        if precedents[a].support > precedents[who].support:
            who = a
        a = precedents[a].active_next
    return who
