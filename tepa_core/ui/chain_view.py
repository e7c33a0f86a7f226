"""Whether ledgers are as they were written: that of a run and that of the database."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import streamlit as st

from tepa_core.decisions import Event, named
from tepa_core.store import RunInfo
from tepa_core.store.events import database_ledger
from tepa_core.store.ledger import verify_ledger
from tepa_core.ui import cache, widgets
from tepa_core.ui.text import plain_text

_SENTENCE = 500


def verification(info: RunInfo) -> None:
    """Draw the button that checks the ledger, and what it found."""
    if not st.button("Verify the ledger", key="verify", icon=":material/verified:"):
        return
    check = verify_ledger(cache.store(), info.run_id)
    if check.ok:
        count = check.head.count
        st.success(
            f"The ledger is as it was written: {count:,} decision{'' if count == 1 else 's'}, each linked to the one "
            f"before it, none missing at the end. The last one ends in `{check.head.hash[-12:]}`; noted elsewhere, it "
            "shows later whether the whole file was exchanged.",
            icon=":material/verified:",
        )
    else:
        _changed("The ledger was changed outside of this program", check.problems)
    _remarks(check.remarks)
    for sentence in check.redacted:
        st.caption(plain_text(sentence, limit=400))


def database() -> None:
    """Draw the ledger of the database: which runs were deleted and imported, and whether its chain holds."""
    with st.expander("The ledger of this database", icon=":material/history:", key="database_ledger"):
        ledger = database_ledger(cache.store())
        if not ledger.events and ledger.ok:
            st.caption(
                "No run was deleted or imported here. When that happens, a row stays here: who did it, when, and with "
                "which decisions."
            )
            return
        if ledger.ok:
            st.caption(
                "Runs that were deleted, and runs that came from a file. A row stays when its run goes. Each is linked "
                f"to the one before it, and the chain holds; the last ends in `{ledger.head.hash[-12:]}`."
            )
        else:
            _changed("The ledger of the database was changed outside of this program", ledger.problems)
        _remarks(ledger.times)
        if ledger.events:
            widgets.table(_rows(ledger.events), "database_ledger_table")


def _rows(events: Iterable[Event]) -> pd.DataFrame:
    rows = [
        {
            "number": event.number,
            "time (UTC)": pd.Timestamp(event.at),
            "what": str(event.what),
            "run": event.run_id,
            "who": named(event.who, event.authenticated),
            "decisions": event.decisions,
            "last hash ends in": event.head_hash[-12:] if event.decisions else "",
            "file digest": event.file_digest or "",
        }
        for event in events
    ]
    return pd.DataFrame(rows[::-1])


def _changed(what: str, problems: tuple[str, ...]) -> None:
    count = len(problems)
    st.error(
        f"{what}, in {count:,} place{'' if count == 1 else 's'}:\n\n"
        + "\n".join(f"- {plain_text(problem, 300)}" for problem in problems)
        + "\n\nCompare it with an export or a copy of the database.",
        icon=":material/gpp_bad:",
    )


def _remarks(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        st.warning(plain_text(sentence, _SENTENCE), icon=":material/info:")
