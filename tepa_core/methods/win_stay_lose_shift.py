"""Win-stay, lose-shift: the simple rule that competes where evidence is clean.

References
----------
Robbins, H. (1952). Some aspects of the sequential design of experiments. Bulletin of the American Mathematical
Society 58(5), 527-535.
"""

from __future__ import annotations

from tepa_core.methods.base import NOTHING, Experience, Recall, Setting


class WinStayLoseShift:
    """Repeats what worked last on the key and switches after one failure. Not in the paper.

    With more than two values the next one in order is tried. Where evidence asserts values, the last asserted value is
    what worked, so the method is last_write_wins.
    """

    def __init__(self, setting: Setting) -> None:
        self.n_values = setting.n_values
        self.values: dict[int, int] = {}

    def recall(self, t: int, key: int) -> Recall:
        """Offer the value that the key's last outcome points to."""
        value = self.values.get(key)
        return NOTHING if value is None else Recall(value, True)

    def active(self, key: int) -> tuple[int, ...]:
        """Return the value that the last outcome points to."""
        value = self.values.get(key)
        return () if value is None else (value,)

    def learn(self, experience: Experience) -> None:
        """Stay with a supported value, leave a refuted one."""
        value = experience.value if experience.supports else (experience.value + 1) % self.n_values
        self.values[experience.key] = value

    def __len__(self) -> int:
        """Return the number of keys that have been tried."""
        return len(self.values)
