"""Last write wins: one value per key, the newest."""

from __future__ import annotations

from tepa_core.methods.base import NOTHING, Experience, Recall, Setting


class LastWriteWins:
    """Follows the last stored value of the key (paper section 5.2).

    Where evidence is the outcome of the action it writes successes only, so a stale value stays until a new one
    succeeds.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.values: dict[int, int] = {}

    def recall(self, t: int, key: int) -> Recall:
        """Offer the key's newest value."""
        value = self.values.get(key)
        return NOTHING if value is None else Recall(value, True)

    def active(self, key: int) -> tuple[int, ...]:
        """Return the newest value."""
        value = self.values.get(key)
        return () if value is None else (value,)

    def learn(self, experience: Experience) -> None:
        """Overwrite with a supported value."""
        if experience.supports:
            self.values[experience.key] = experience.value

    def __len__(self) -> int:
        """Return the number of keys written."""
        return len(self.values)
