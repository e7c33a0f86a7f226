"""TEPA-Full: a value becomes Active only when it also passes trial-by-execution (paper section 3.3)."""

from __future__ import annotations

from tepa_core.lifecycle import Ledger
from tepa_core.methods.base import Experience, Setting
from tepa_core.methods.tepa import Tepa
from tepa_core.methods.trials import Trial, hold, passed


class TepaFull(Tepa):
    """TEPA with trial validation before each activation."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        if setting.trials is None:
            raise ValueError("tepa_full validates by trials, and this stream has none; choose tepa")
        self.trials = setting.trials
        self.thresholds = setting.thresholds
        self.keys = range(len(setting.keys))
        self.held: list[Trial] = []

    def learn(self, experience: Experience) -> None:
        """Hand the evidence to the ledger; before an activation hold the trials."""
        t, key, value, supports, _ = experience

        def admits(after: Ledger) -> bool:
            offered = {k: self.memory.recall(k) for k in self.keys if k != key}
            same = {k: after.recall(k) == was for k, was in offered.items()}
            opposite = [same[k] for k, was in offered.items() if was is not None and was != value]
            trials = hold(
                self.trials,
                self.thresholds,
                t,
                key,
                value,
                opposite_unharmed=all(opposite),
                others_untouched=all(same.values()),
            )
            self.held.extend(trials)
            return passed(trials, self.thresholds)

        # What memory holds before the first task comes from a profile; there is no task to try it on.
        self.memory.observe(key, value, supports, t, admits if t >= 0 else None)
