"""Memory methods: TEPA, its ablation and the baselines it is compared with (paper section 5.2)."""

from tepa_core.methods.base import FALLBACKS, Experience, Method, Recall, Setting, ToldOfBoundaries
from tepa_core.methods.registry import METHODS, MethodEntry, thresholds_of

__all__ = [
    "FALLBACKS",
    "METHODS",
    "Experience",
    "Method",
    "MethodEntry",
    "Recall",
    "Setting",
    "ToldOfBoundaries",
    "thresholds_of",
]
