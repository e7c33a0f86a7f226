"""What people decide about revoked precedents: the ledger, where to look first, and what a decision would change."""

from tepa_core.decisions.chain import (
    EMPTY,
    NO_HASH,
    Head,
    content_hash,
    linked,
    reason_digest,
    redacted,
    redactions,
    verify,
)
from tepa_core.decisions.effect import LogEffect, Standing, changed_transitions, log_effect
from tepa_core.decisions.model import (
    DEFAULT_CATEGORY,
    Action,
    Actor,
    Category,
    Decision,
    DecisionRefused,
    PermissionRefused,
    Role,
    StaleVersion,
    in_effect,
    initials,
    reason_in_words,
)
from tepa_core.decisions.triage import triage

__all__ = [
    "DEFAULT_CATEGORY",
    "EMPTY",
    "NO_HASH",
    "Action",
    "Actor",
    "Category",
    "Decision",
    "DecisionRefused",
    "Head",
    "LogEffect",
    "PermissionRefused",
    "Role",
    "StaleVersion",
    "Standing",
    "changed_transitions",
    "content_hash",
    "in_effect",
    "initials",
    "linked",
    "log_effect",
    "reason_digest",
    "reason_in_words",
    "redacted",
    "redactions",
    "triage",
    "verify",
]
