"""Oracle reset: a baseline that is told when the world changes, and forgets everything."""

from __future__ import annotations

from tepa_core.methods.append_only import AppendOnly


class OracleReset(AppendOnly):
    """As append-only, but clears all keys at each true phase boundary (paper section 5.2)."""

    def boundary(self) -> None:
        """Clear everything."""
        self.items.clear()
