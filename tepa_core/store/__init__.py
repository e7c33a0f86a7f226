"""The database: evidence stored, lifecycles derived, one function per question."""

from tepa_core.store import queries
from tepa_core.store.answers import StoredAnswers
from tepa_core.store.connection import DEFAULT_PATH, PATH_VARIABLE, Store, StoreError, default_path
from tepa_core.store.derive import precedent_id
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
from tepa_core.store.write import LogImport, delete_run, rename_run, save_facts, save_log, save_run

__all__ = [
    "DEFAULT_PATH",
    "PATH_VARIABLE",
    "REVOCATION_RULES",
    "KeyLife",
    "LogImport",
    "RunInfo",
    "Store",
    "StoreError",
    "StoredAnswers",
    "UnknownPrecedentError",
    "UnknownRunError",
    "default_path",
    "delete_run",
    "explanation",
    "in_words_at",
    "key_life",
    "plain",
    "precedent_id",
    "precedent_life",
    "queries",
    "rename_run",
    "save_facts",
    "save_log",
    "save_run",
    "triaged",
]
