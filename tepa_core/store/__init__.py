"""The database: evidence stored, lifecycles derived, one function per question."""

from tepa_core.store import queries
from tepa_core.store.answers import StoredAnswers
from tepa_core.store.archive_file import (
    export_active,
    export_instructions,
    export_run,
    import_archive,
    is_archive,
)
from tepa_core.store.archive_shapes import ArchiveRefused
from tepa_core.store.connection import DEFAULT_PATH, PATH_VARIABLE, Store, StoreError, default_path
from tepa_core.store.decide import DecisionRequest, Examined, examine, precedent_version, record, redact_reason
from tepa_core.store.derive import precedent_id
from tepa_core.store.foreseen import foreseen
from tepa_core.store.ledger import LedgerCheck, decisions_of, reasserted, reviewer_agreement, verify_ledger
from tepa_core.store.lives import (
    REVOCATION_RULES,
    KeyLife,
    UnknownPrecedentError,
    explanation,
    in_words_at,
    key_life,
    plain,
    precedent_life,
)
from tepa_core.store.queries import RunInfo, UnknownRunError
from tepa_core.store.triaged import triaged
from tepa_core.store.write import KeptLog, LogImport, delete_run, keep_log, rename_run, save_facts, save_log, save_run

__all__ = [
    "DEFAULT_PATH",
    "PATH_VARIABLE",
    "REVOCATION_RULES",
    "ArchiveRefused",
    "DecisionRequest",
    "Examined",
    "KeptLog",
    "KeyLife",
    "LedgerCheck",
    "LogImport",
    "RunInfo",
    "Store",
    "StoreError",
    "StoredAnswers",
    "UnknownPrecedentError",
    "UnknownRunError",
    "decisions_of",
    "default_path",
    "delete_run",
    "examine",
    "explanation",
    "export_active",
    "export_instructions",
    "export_run",
    "foreseen",
    "import_archive",
    "in_words_at",
    "is_archive",
    "keep_log",
    "key_life",
    "plain",
    "precedent_id",
    "precedent_life",
    "precedent_version",
    "queries",
    "reasserted",
    "record",
    "redact_reason",
    "rename_run",
    "reviewer_agreement",
    "save_facts",
    "save_log",
    "save_run",
    "triaged",
    "verify_ledger",
]
