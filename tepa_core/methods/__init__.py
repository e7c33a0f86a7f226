"""Memory methods: TEPA, its ablation and the baselines it is compared with (paper section 5.2)."""

from tepa_core.methods.base import (
    FALLBACKS,
    Experience,
    Method,
    Recall,
    Setting,
    TakesDecisions,
    ToldOfBoundaries,
    Validates,
)
from tepa_core.methods.registry import METHODS, MethodEntry, thresholds_of
from tepa_core.methods.trials import SupportTrials, Trial, TrialKind, passed

__all__ = [
    "FALLBACKS",
    "METHODS",
    "Experience",
    "Method",
    "MethodEntry",
    "Recall",
    "Setting",
    "SupportTrials",
    "TakesDecisions",
    "ToldOfBoundaries",
    "Trial",
    "TrialKind",
    "Validates",
    "passed",
    "thresholds_of",
]
