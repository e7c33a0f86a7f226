"""Last write wins, validated: the trials of TEPA-Full before each write, and nothing else of its lifecycle."""

from __future__ import annotations

from tepa_core.methods.base import Experience, Setting
from tepa_core.methods.last_write_wins import LastWriteWins
from tepa_core.methods.trials import Trial, hold, passed


class LwwValidated(LastWriteWins):
    """Overwrites a key's value only when the new one passes the trials (paper section 5.2)."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        if setting.trials is None:
            raise ValueError("lww_validated validates by trials, and this stream has none; choose last_write_wins")
        self.trials = setting.trials
        self.held: list[Trial] = []

    def learn(self, experience: Experience) -> None:
        """Overwrite with a supported value that passes."""
        t, key, value, supports, _ = experience
        if not supports or self.values.get(key) == value:
            return
        if t >= 0:
            # One value per key: a write changes what is offered for no other key.
            thresholds = self.setting.thresholds
            trials = hold(self.trials, thresholds, t, key, value, opposite_unharmed=True, others_untouched=True)
            self.held.extend(trials)
            if not passed(trials, thresholds):
                return
        super().learn(experience)
