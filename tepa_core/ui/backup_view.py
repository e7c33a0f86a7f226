"""A copy of the whole database for whoever looks after it."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from tepa_core.files import FileRefused, reason
from tepa_core.store.backup import backup
from tepa_core.ui import boundary, cache
from tepa_core.ui.text import plain_text

#: A download is held in memory, once here and once in the browser; a larger database is copied by the command.
LARGEST = 500_000_000


def draw() -> None:
    """Draw the button that makes a backup, and then the one that saves it."""
    st.markdown(
        "A backup holds all runs, memories and decisions as they are at this moment. It is a database of its own: open "
        "it with `--db`, or put it in place with `python -m tepa_core restore FILE` while the dashboard is closed."
    )
    path = cache.store().path
    if _size(path) > LARGEST:
        st.info("This database is too large for a download.", icon=":material/info:")
        st.code("python -m tepa_core backup --to FILE", language="bash")
        return
    # Prepared by one click and taken by the next: what cannot be made is said before a download begins.
    if st.button("Make a backup", key="make_backup", icon=":material/database:"):
        with boundary.around("The backup"), st.spinner("Copying and checking the database"):
            _offer()


def _offer() -> None:
    try:
        with tempfile.TemporaryDirectory(prefix="tepa-backup-") as folder:
            to = Path(folder) / "backup.duckdb"
            made = backup(cache.store(), to)
            content = to.read_bytes()
    except OSError as error:
        raise FileRefused(f"the backup cannot be written: {reason(error)}") from None
    if made.broken:
        where = ", ".join(run or "the database" for run in made.broken)
        st.warning(
            f"Copied as it is, with a ledger that does not verify: {plain_text(where, limit=200)}.",
            icon=":material/warning:",
        )
    st.download_button(
        f"Save it ({made.size / 1e6:,.1f} MB, checked: {made.runs:,} runs, {made.decisions:,} decisions)",
        content,
        file_name=f"tepa-{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}.duckdb",
        mime="application/octet-stream",
        key="save_backup",
        icon=":material/download:",
        on_click="ignore",
        type="primary",
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        # Deleted under the running program: what is open can be copied all the same.
        return 0
