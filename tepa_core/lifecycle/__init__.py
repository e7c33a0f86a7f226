"""The life of a precedent: its record, the one rule that changes it, a live memory, and the replay of a log."""

from tepa_core.lifecycle.explain import (
    KeyEvidence,
    Line,
    Why,
    standing,
    why,
    would_prevent,
    would_reactivate,
    would_revoke,
)
from tepa_core.lifecycle.ledger import Ledger, Precedent, Transition
from tepa_core.lifecycle.precedent import DEPRECATED, PRESETS, Rule, State, Thresholds, Verdict
from tepa_core.lifecycle.replay import EncodedLog, Replay, encode, replay, tables
from tepa_core.lifecycle.trace import Course, KeyTrace, shown_states, trace_key

__all__ = [
    "DEPRECATED",
    "PRESETS",
    "Course",
    "EncodedLog",
    "KeyEvidence",
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
    "shown_states",
    "standing",
    "tables",
    "trace_key",
    "why",
    "would_prevent",
    "would_reactivate",
    "would_revoke",
]
