"""The completed rule of the paper's method, stated a second time: eager, one value after the other, plain Python.

It shares no code with `tepa_core.lifecycle.rule`: every tally is kept as a pair of numbers and touched at every item,
restarts are carried out at once, and the recent evidence of a key is a list. The fast rule is tested against it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tepa_core.lifecycle import Thresholds


class Item(NamedTuple):
    """One evidence item: does it support or refute a value of a key."""

    key: Hashable
    value: Hashable
    supports: bool = True


class Change(NamedTuple):
    """One change of state, with the counts as they stood."""

    item: int
    key: Hashable
    value: Hashable
    from_state: str
    to_state: str
    rule: str
    life: int
    support: int
    conflict: int
    window: str
    tally: tuple[int, int]


@dataclass
class ReferenceValue:
    state: str = "candidate"
    support: int = 0
    conflict: int = 0
    window: list[bool] = field(default_factory=list)
    tally: tuple[int, int] = (0, 0)
    lives: int = 0
    created: int = 0
    changed: int = 0


@dataclass
class ReferenceKey:
    multivalued: bool = False
    values: dict[Hashable, ReferenceValue] = field(default_factory=dict)
    history: list[Item] = field(default_factory=list)


class ReferenceMemory:
    """Keys with their values, and every change of state so far."""

    def __init__(self, thresholds: Thresholds) -> None:
        self.th = thresholds
        self.keys: dict[Hashable, ReferenceKey] = {}
        self.changes: list[Change] = []
        self.items = 0

    def q(self, support: int, conflict: int) -> float:
        return (support + self.th.alpha) / (support + conflict + self.th.alpha + self.th.beta)

    def observe(self, item: Item, *, multivalued: bool = False, admits: bool = True) -> list[Change]:
        before = len(self.changes)
        key = self.keys.setdefault(item.key, ReferenceKey())
        key.multivalued = multivalued
        if item.value not in key.values:
            key.values[item.value] = ReferenceValue(created=self.items)
        fallen = self._judge_active(key, item)
        self._count_tallies(key, item, fallen)
        if item.supports:
            self._raise(key, item, admits)
        key.history.append(item)
        self.items += 1
        return self.changes[before:]

    def _verdict(self, key: ReferenceKey, item: Item, name: Hashable) -> bool | None:
        """Whether the item supports a value (True), conflicts with it (False) or says nothing of it (None)."""
        if name == item.value:
            return item.supports
        return False if item.supports and not key.multivalued else None

    def _judge_active(self, key: ReferenceKey, item: Item) -> Hashable | None:
        """Step 1, and step 2 for the value that falls."""
        fallen = None
        for name, value in list(key.values.items()):
            verdict = self._verdict(key, item, name)
            if value.state != "active" or verdict is None:
                continue
            value.window = [*value.window, verdict][-self.th.n_rec :]
            if verdict:
                value.support += 1
                continue
            value.conflict += 1
            if not self.th.revokes:
                continue
            rule = None
            if (
                value.support + value.conflict >= self.th.n_min
                and self.q(value.support, value.conflict) < self.th.theta_rev
            ):
                rule = "posterior"
            elif len(value.window) == self.th.n_rec and sum(value.window) / self.th.n_rec < self.th.theta_rec:
                rule = "recent"
            if rule is not None:
                self._revoke(key, item, name, rule)
                fallen = name
        return fallen

    def _revoke(self, key: ReferenceKey, item: Item, name: Hashable, rule: str) -> None:
        """Step 2: the tallies of the key restart from what revoked the value."""
        recent = key.history[-self.th.n_rec :]
        for other, value in key.values.items():
            if value.state != "active":
                value.tally = (sum(1 for i in recent if i.value == other and i.supports), 0)
        fallen = key.values[name]
        fallen.tally = (0, fallen.window.count(False))
        self._change(item, name, fallen, "revoked", rule)

    def _count_tallies(self, key: ReferenceKey, item: Item, fallen: Hashable | None) -> None:
        """Step 3."""
        for name, value in key.values.items():
            if value.state == "active" or name == fallen:
                continue
            support, conflict = value.tally
            if self._verdict(key, item, name) is True:
                support += 1
            # A refutation of the value itself counts always, a support of another only beside counts of its own.
            elif self._verdict(key, item, name) is False and (name == item.value or support + conflict > 0):
                conflict += 1
            if support + conflict >= self.th.n_min and self.q(support, conflict) < self.th.theta_rev:
                support, conflict = 0, 0
            value.tally = (support, conflict)

    def _raise(self, key: ReferenceKey, item: Item, admits: bool) -> None:
        """Steps 4 and 5."""
        value = key.values[item.value]
        if value.state == "active":
            return
        support, conflict = value.tally
        if support < self.th.theta_prop:
            return
        if value.state == "candidate":
            self._change(item, item.value, value, "hypothesis", "proposed")
        if self.q(support, conflict) < self.th.theta_pro or not admits:
            return
        value.support += support
        value.conflict += conflict
        value.lives += 1
        value.window = []
        self._change(item, item.value, value, "active", "reactivated" if value.state == "revoked" else "promoted")
        value.tally = (0, 0)
        if key.multivalued or not self.th.revokes:
            return
        for name, other in list(key.values.items()):
            if name != item.value and other.state == "active":
                self._revoke(key, item, name, "superseded")

    def _change(self, item: Item, name: Hashable, value: ReferenceValue, to: str, rule: str) -> None:
        self.changes.append(
            Change(
                self.items,
                item.key,
                name,
                value.state,
                to,
                rule,
                value.lives,
                value.support,
                value.conflict,
                "".join("1" if outcome else "0" for outcome in value.window),
                value.tally,
            )
        )
        value.state = to
        value.changed = self.items


def remember(items: Sequence[Item], thresholds: Thresholds) -> ReferenceMemory:
    """Run evidence through the reference."""
    memory = ReferenceMemory(thresholds)
    for item in items:
        memory.observe(item)
    return memory
