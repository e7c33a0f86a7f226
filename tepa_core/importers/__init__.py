"""From a file of evidence to canonical rows and issues: formats, detection and the mapping of columns."""

from tepa_core.importers.base import Importer, ImportRefused, Issue, Table, canonical
from tepa_core.importers.mapping import (
    FIELDS,
    REQUIRED,
    TEMPLATE_CSV,
    ColumnMapping,
    EvidenceLog,
    apply,
    issues_csv,
)
from tepa_core.importers.registry import IMPORTERS, detect, open_log

__all__ = [
    "FIELDS",
    "IMPORTERS",
    "REQUIRED",
    "TEMPLATE_CSV",
    "ColumnMapping",
    "EvidenceLog",
    "ImportRefused",
    "Importer",
    "Issue",
    "Table",
    "apply",
    "canonical",
    "detect",
    "issues_csv",
    "open_log",
]
