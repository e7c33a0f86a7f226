"""Whether ledgers are as they were written: that of a run, that of the database, and both against signed heads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import IO

import pandas as pd
import streamlit as st

from tepa_core.decisions import Event, PermissionRefused, named
from tepa_core.signing import SigningRefused, default_key_path, own_public_key
from tepa_core.store import RunInfo
from tepa_core.store.events import database_ledger
from tepa_core.store.heads import MAX_BYTES, HeadRefused, check_heads, describe, read_heads, sign_heads
from tepa_core.store.ledger import verify_ledger
from tepa_core.ui import cache, who, widgets
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
            f"before it, none missing at the end. The last one ends in `{check.head.hash[-12:]}`; signed, at "
            "the end of this page, and kept elsewhere it shows later whether all of it was written anew.",
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
            when = st.column_config.DatetimeColumn(format="D MMM YYYY, HH:mm", timezone="UTC")
            widgets.table(_rows(ledger.events), "database_ledger_table", columns={"time (UTC)": when})


def heads() -> None:
    """Draw the two buttons that sign the heads of all ledgers, and check a file of signed heads."""
    with st.expander("Signed heads", icon=":material/signature:", key="signed_heads_box"):
        st.caption(
            "A ledger can be written anew in the file, its last hash included, and its chain holds. A small file with "
            "the counts and last hashes of now, signed with a key outside the database and kept elsewhere, tells."
        )
        if who.may_decide() and st.button(
            "Sign the heads as they are now", key="sign_heads", icon=":material/signature:"
        ):
            _sign()
        with st.form("check_heads_form", border=False):
            upload = st.file_uploader("Check a file of signed heads (JSON)", type=["json"], key="heads_file")
            if st.form_submit_button("Check the ledgers against it", key="check_heads", icon=":material/rule:"):
                _check(upload)


def _sign() -> None:
    """Offer the heads of this moment; a vouching for them is for reviewers, as every write is."""
    try:
        signed = sign_heads(who.writing(), default_key_path())
    except (HeadRefused, SigningRefused, PermissionRefused) as error:
        st.error(plain_text(error, _SENTENCE), icon=":material/block:")
        return
    st.download_button(
        "Download the signed heads (JSON)",
        signed,
        file_name="heads.json",
        mime="application/json",
        key="signed_heads_download",
        icon=":material/download:",
        on_click="ignore",
    )
    said = describe(signed)
    st.caption(
        f"Signed at {said['signed_at'][:19]} UTC. Public key: `{said['public_key']}`. Keep both where nobody who can "
        "change the database can change them."
    )


def _check(upload: IO[bytes] | None) -> None:
    if upload is None:
        st.warning("Choose a file first: one that this page or the command ledger wrote.")
        return
    name = Path(str(getattr(upload, "name", "heads.json"))).name
    try:
        signed = read_heads(upload.read(MAX_BYTES + 1), name)
        check = check_heads(cache.store(), signed, own_public_key(default_key_path()))
    except (HeadRefused, SigningRefused) as error:
        st.error(plain_text(error, _SENTENCE), icon=":material/block:")
        return
    said = "\n".join(f"- {plain_text(sentence, _SENTENCE)}" for sentence in (*check.problems, *check.found))
    if check.ok:
        st.success(f"Every ledger still begins with what was signed:\n\n{said}", icon=":material/verified:")
    else:
        count = len(check.problems)
        things = f"{count:,} thing{'' if count == 1 else 's'} that do{'es' if count == 1 else ''} not fit"
        st.error(f"{things}, before what does:\n\n{said}", icon=":material/gpp_bad:")


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
