"""The methods by their ids, in the order in which tables show them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tepa_core.lifecycle import Thresholds
from tepa_core.methods.append_only import AppendOnly
from tepa_core.methods.base import Method, Setting
from tepa_core.methods.conflict_aware_recency import ConflictAwareRecency
from tepa_core.methods.last_write_wins import LastWriteWins
from tepa_core.methods.lww_validated import LwwValidated
from tepa_core.methods.no_memory import NoMemory
from tepa_core.methods.oracle_reset import OracleReset
from tepa_core.methods.reactive_forgetting import ReactiveForgetting
from tepa_core.methods.semantic_retrieval import SemanticRetrieval
from tepa_core.methods.sliding_window import SlidingWindow
from tepa_core.methods.temporal_recency import TemporalRecency
from tepa_core.methods.tepa import Tepa, TepaNoRev
from tepa_core.methods.tepa_full import TepaFull
from tepa_core.methods.win_stay_lose_shift import WinStayLoseShift


@dataclass(frozen=True, slots=True)
class MethodEntry:
    """A method as tables and forms know it.

    Attributes
    ----------
    memory_operation
        What it does with memory, in a few words.
    lifecycle
        Its evidence has precedents and transitions to show.
    revokes
        Of a method with a lifecycle: its thresholds may revoke.
    oracle
        It is told true phase boundaries.
    trials
        It validates by trials, so it plays only streams that have them.
    """

    id: str
    make: Callable[[Setting], Method]
    memory_operation: str
    lifecycle: bool = False
    revokes: bool = False
    oracle: bool = False
    trials: bool = False


METHODS: Mapping[str, MethodEntry] = MappingProxyType(
    {
        entry.id: entry
        for entry in (
            MethodEntry(
                "tepa",
                Tepa,
                "revokes what evidence contradicts, archives it, lets it return",
                lifecycle=True,
                revokes=True,
            ),
            MethodEntry(
                "tepa_full",
                TepaFull,
                "TEPA, and trials before a value becomes active",
                lifecycle=True,
                revokes=True,
                trials=True,
            ),
            MethodEntry("tepa_norev", TepaNoRev, "TEPA without revocation", lifecycle=True),
            MethodEntry("no_memory", NoMemory, "retrieves nothing"),
            MethodEntry("append_only", AppendOnly, "every stored item stays active"),
            MethodEntry("last_write_wins", LastWriteWins, "keeps the newest value per key"),
            MethodEntry("lww_validated", LwwValidated, "keeps the newest value that passes trials", trials=True),
            MethodEntry("conflict_aware_recency", ConflictAwareRecency, "collapses conflicts among what it retrieves"),
            MethodEntry("semantic_retrieval", SemanticRetrieval, "ranks by lexical relevance"),
            MethodEntry("temporal_recency", TemporalRecency, "prefers recent items"),
            MethodEntry("sliding_window", SlidingWindow, "keeps a fixed recent window"),
            MethodEntry("reactive_forgetting", ReactiveForgetting, "clears everything after two failures in a row"),
            MethodEntry("win_stay_lose_shift", WinStayLoseShift, "repeats what worked, switches after one failure"),
            MethodEntry("oracle_reset", OracleReset, "is told the true boundaries and clears everything", oracle=True),
        )
    }
)


def thresholds_of(method: str, thresholds: Thresholds) -> Thresholds:
    """Return the thresholds under which a method's precedents live: TEPA-NoRev's never revoke."""
    entry = METHODS.get(method)
    if entry is None or entry.revokes or not entry.lifecycle:
        return thresholds
    return dataclasses.replace(thresholds, revokes=False)
