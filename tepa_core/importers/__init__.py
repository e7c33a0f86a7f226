"""From a file of evidence to canonical rows and issues: formats, detection and the mapping of columns."""

from tepa_core.importers.base import Importer, ImportRefused, Issue, Table
from tepa_core.importers.columns import ORDERS, asked_about
from tepa_core.importers.identity import canonical
from tepa_core.importers.mapping import (
    FIELDS,
    REQUIRED,
    TEMPLATE_CSV,
    ColumnMapping,
    EvidenceLog,
    apply,
    issues_csv,
    suggest,
    unknown_outcomes,
)
from tepa_core.importers.outcomes import offered
from tepa_core.importers.reading import Beginning, read_beginning, read_evidence
from tepa_core.importers.registry import IMPORTERS, detect, open_log

__all__ = [
    "FIELDS",
    "IMPORTERS",
    "ORDERS",
    "REQUIRED",
    "TEMPLATE_CSV",
    "Beginning",
    "ColumnMapping",
    "EvidenceLog",
    "ImportRefused",
    "Importer",
    "Issue",
    "Table",
    "apply",
    "asked_about",
    "canonical",
    "detect",
    "issues_csv",
    "offered",
    "open_log",
    "read_beginning",
    "read_evidence",
    "suggest",
    "unknown_outcomes",
]
