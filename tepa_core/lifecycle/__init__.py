"""The life of a precedent: its record, the one rule that changes it, a live memory, and the replay of a log."""

from tepa_core.lifecycle.explain import Line, Why, standing, why, would_prevent, would_reactivate, would_revoke
from tepa_core.lifecycle.ledger import Ledger, Precedent, Transition
from tepa_core.lifecycle.precedent import DEPRECATED, PRESETS, Rule, State, Thresholds, Verdict
from tepa_core.lifecycle.replay import EncodedLog, KeyTrace, Replay, encode, replay, tables, trace_key

__all__ = [
    "DEPRECATED",
    "PRESETS",
    "EncodedLog",
    "KeyTrace",
    "Ledger",
    "Line",
    "Precedent",
    "Replay",
    "Rule",
    "State",
    "Thresholds",
    "Transition",
    "Verdict",
    "Why",
    "encode",
    "replay",
    "standing",
    "tables",
    "trace_key",
    "why",
    "would_prevent",
    "would_reactivate",
    "would_revoke",
]
