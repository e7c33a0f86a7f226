"""What the baselines keep: a growing list of (task, key, value) items, and how votes among them are counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tepa_core.methods.base import NOTHING, Experience, Recall, Setting


class Item(NamedTuple):
    """One stored experience; a larger position in the store is newer."""

    t: int
    key: int
    value: int


class ItemStore:
    """Base of the baselines: stores what is worth storing.

    Where evidence is the outcome of the action, successes only; where it asserts, every asserted value.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.items: list[Item] = []

    def retrieved(self, key: int) -> Iterable[Item]:
        """Return the items that a question about the key brings back, from old to new: all of them."""
        return self.items

    def active(self, key: int) -> tuple[int, ...]:
        """Return the retrieved values of the key, by when each was last stored."""
        last = {item.value: position for position, item in enumerate(self.retrieved(key)) if item.key == key}
        return tuple(sorted(last, key=last.__getitem__))

    def learn(self, experience: Experience) -> None:
        """Store a support."""
        if experience.supports:
            self.items.append(Item(experience.t, experience.key, experience.value))

    def __len__(self) -> int:
        """Return the number of stored items."""
        return len(self.items)


def majority(values: Iterable[int]) -> Recall:
    """Offer the most frequent of values given from old to new; on a tie the one stored last."""
    counts: dict[int, int] = {}
    last: dict[int, int] = {}
    for position, value in enumerate(values):
        counts[value] = counts.get(value, 0) + 1
        last[value] = position
    if not counts:
        return NOTHING
    return Recall(max(counts, key=lambda value: (counts[value], last[value])), True)
