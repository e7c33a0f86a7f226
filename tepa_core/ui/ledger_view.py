"""The ledger of a run: who decided what, whether it still holds, how often reviewers agreed, and its files."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

import pandas as pd
import streamlit as st

from tepa_core.decisions import Action, Category, Decision, DecisionRefused, PermissionRefused, StaleVersion, in_effect
from tepa_core.figures import agreement
from tepa_core.store import RunInfo, UnknownPrecedentError, UnknownRunError
from tepa_core.store.archive_file import (
    export_active,
    export_instructions,
    export_run,
    import_archive,
)
from tepa_core.store.archive_shapes import ArchiveRefused
from tepa_core.store.decide import MAX_REASON, DecisionRequest, record, redact_reason
from tepa_core.store.ledger import verify_ledger
from tepa_core.ui import boundary, cache, preview, state, who, widgets
from tepa_core.ui.archive_rows import DONE
from tepa_core.ui.decide_form import CATEGORIES, clock, foreseen_or_nothing, place_of, told, whose
from tepa_core.ui.text import plain_text

TABLE = "ledger_table"
BY = {"rule": "By rule", "key": "By key"}

#: Rows of the agreement figure; the table has them all.
DRAWN = 12

_NOTICE = "ledger_notice"
_ASKED = "redact_asked"


def tell() -> None:
    """Say once what became of the last click."""
    notice = st.session_state.pop(_NOTICE, None)
    if notice is not None:
        done, words = notice
        (st.success if done else st.error)(words, icon=f":material/{'check_circle' if done else 'block'}:")


def headline(decisions: Sequence[Decision]) -> str:
    """Say in Markdown how many decisions stand, and whose."""
    standing = in_effect(decisions)
    people = len({one.reviewer for one in decisions})
    undone = sum(one.action is Action.UNDO for one in decisions)
    words = f"{len(standing):,} decision{'' if len(standing) == 1 else 's'} in effect, by {people:,} "
    words += f"reviewer{'' if people == 1 else 's'}"
    words += f"; {undone:,} undone." if undone else "."
    claimed = sum(one.claim is not None for one in decisions)
    return f"{words} {claimed:,} of {len(decisions):,} claimed elsewhere." if claimed else words


def nothing(info: RunInfo) -> None:
    """Say what decisions are where there is none."""
    st.markdown("#### Nobody has decided anything in this run.")
    st.markdown(
        "A rule revokes memories, and rules err. On Archive a person looks at a revocation, sees what a decision would "
        "change, and decides: the memory comes back, it stays where it is, or its key holds several values. Each "
        "decision gets a row here: who, when, why, on which version, and what it was going to change. Rows are never "
        "changed or deleted; a decision that is taken back gets another row. Each row is linked to the one before it, "
        "so that a row that somebody changed in the file shows."
    )
    st.page_link(
        "pages/audit/archive.py",
        label="Open Archive and look at the first revocation",
        icon=":material/inventory_2:",
        query_params={"run": info.run_id},
    )


def agreed(info: RunInfo) -> None:
    """Draw how often reviewers found a revocation right, by rule or by key."""
    measured = cache.agreement(info.run_id)
    st.subheader("How often the revocations were right", anchor=False)
    whole = measured[measured["by"] == "all"]
    judged = whole[whole["precision"].notna()]
    if judged.empty:
        st.markdown(
            "No decision in effect says that a revocation was right or wrong. Confirming one, or the reason "
            "“obsolete”, counts as right; reactivating with the reason “wrong” counts as a false alarm of the rule."
        )
        return
    row = judged.iloc[0]
    st.markdown(
        f"Reviewers found **{row['right']:,} of {row['right'] + row['wrong']:,}** revocations right: "
        f"{row['precision']:.0%}, 95 % interval {row['lo']:.0%} to {row['hi']:.0%}."
        + (f" {row['other']:,} more were decided for other reasons." if row["other"] else "")
        + (f" {row['claimed']:,} of these judgements came with a file, claimed elsewhere." if row["claimed"] else "")
    )
    by = st.segmented_control(
        "Measured precision",
        list(BY),
        format_func=lambda name: BY[name],
        key=state.remember("by", list(BY), "rule"),
        required=True,
    )
    state.write("by", by or "rule")
    rows = measured[measured["by"] == by].sort_values(["right", "wrong"], ascending=False, kind="stable")
    widgets.figure(agreement(rows[rows["precision"].notna()].head(DRAWN)), "agreement")
    with st.expander("These numbers as a table", key="agreement_numbers"):
        widgets.table(rows.drop(columns="by"), "agreement_table")


def rows_of(info: RunInfo, decisions: Sequence[Decision]) -> pd.DataFrame:
    """Write the ledger for people, the latest first: one row a decision, with what became of it."""
    undone = {one.undoes: one.number for one in decisions if one.undoes is not None}
    known = {row["id"]: row for row in cache.precedents(info.run_id).to_dict("records")}
    rows = []
    for one in reversed(decisions):
        of = known.get(one.precedent_id)
        rows.append(
            {
                "number": one.number,
                "decided (UTC)": pd.Timestamp(one.decided_at),
                "who": one.by,
                "signed in": _signed_in(one),
                "what": DONE[one.action] + (", pinned" if one.pinned else ""),
                "value": "" if of is None else of["value"],
                "key": "" if of is None else of["key"],
                "whose": "" if of is None else whose(info, of),
                "now": "" if of is None else of["state"],
                "reason": CATEGORIES[one.category].split(":")[0],
                "in words": one.reason if one.reason is not None else "(redacted)",
                "stands": "takes one back"
                if one.action is Action.UNDO
                else f"undone by number {undone[one.decision_id]}"
                if one.decision_id in undone
                else "in effect",
                "takes effect": str(clock(one.effective_at, info)).replace("+00:00", " UTC"),
                "foreseen": preview.of_ledger(json.loads(one.effect)),
                "version": one.version,
                "id": one.decision_id,
            }
        )
    return pd.DataFrame(rows)


def _signed_in(decision: Decision) -> str:
    if decision.claim is not None:
        return f"no, {decision.claim.in_words()}"
    return "yes" if decision.vouched else "no, typed name"


def choose(info: RunInfo, decisions: Sequence[Decision]) -> Decision:
    """Draw the ledger as a table and return the decision of the open row."""
    rows = rows_of(info, decisions)
    numbers = rows["number"].astype(str).tolist()
    said = state.news("decision")
    if said is not None and said not in numbers:
        st.warning(f"There is no decision {plain_text(said)} in this run; showing the latest.")
    chosen = st.session_state[state.remember("decision", numbers, numbers[0], told=True)]
    st.session_state[TABLE] = {"selection": {"rows": [numbers.index(chosen)], "columns": [], "cells": []}}
    st.dataframe(
        rows,
        key=TABLE,
        hide_index=True,
        on_select=lambda: _open_row(numbers),
        selection_mode="single-row-required",
        alt="Decisions, the latest first; select one to see what it changed",
        column_config={
            "decided (UTC)": st.column_config.DatetimeColumn(format="D MMM YYYY, HH:mm", timezone="UTC"),
            "number": st.column_config.NumberColumn(format="%d", width="small"),
        },
    )
    widgets.download(rows, "ledger", "Download the ledger (CSV)")
    return next(one for one in decisions if str(one.number) == chosen)


@boundary.callback
def _open_row(numbers: Sequence[str]) -> None:
    rows = st.session_state[TABLE]["selection"]["rows"]
    if rows and rows[0] < len(numbers):
        state.choose("decision", numbers[rows[0]])


def show(info: RunInfo, decision: Decision, decisions: Sequence[Decision]) -> None:
    """Draw one decision: what was foreseen, what it changes now, where to see it, and the verbs."""
    with st.container(border=True, key="decision"):
        st.markdown(told(decision, decisions, info))
        if decision.action is not Action.UNDO:
            _then_and_now(info, decision)
        with st.container(horizontal=True):
            for page, label, icon in (
                ("pages/audit/archive.py", "Open on Archive", "inventory_2"),
                ("pages/explore/lifecycle.py", "See its life on Lifecycle", "timeline"),
            ):
                place = cache.place_of(info.run_id, decision.precedent_id)
                lane = {} if info.is_log or place is None else {"in_method": place[0], "in_seed": str(place[1])}
                st.page_link(
                    page,
                    label=label,
                    icon=f":material/{icon}:",
                    query_params={"run": info.run_id, "precedent": decision.precedent_id, "show": "all", **lane},
                )
        if not who.may_decide():
            return
        who.name_field()
        if decision in in_effect(decisions):
            _undo_form(info, decision)
        if decision.reason is not None:
            _redaction(info, decision)


def _then_and_now(info: RunInfo, decision: Decision) -> None:
    then = preview.of_ledger(json.loads(decision.effect))
    with st.spinner("Replaying without it"):
        now = preview.of_ledger(cache.effect_now_of(info.run_id, decision.decision_id))
    st.markdown(f"**Foreseen when it was taken:** {plain_text(then, limit=400) or 'nothing was noted'}.")
    if not now:
        st.markdown("**Now:** beside the other decisions it changes nothing.")
    else:
        st.markdown(
            f"**Now, beside the other decisions:** {'the same' if now == then else plain_text(now, limit=400)}."
        )


def _about(info: RunInfo, decision: Decision) -> str:
    """Name the memory of a decision and its run, in Markdown."""
    known = cache.precedents(info.run_id)
    rows = known[known["id"] == decision.precedent_id].to_dict("records")
    if not rows:
        return f"a memory that is not there, in the run **{plain_text(info.name)}** (id {plain_text(info.run_id)})"
    return f"{plain_text(rows[0]['value']) or '(empty text)'}, {place_of(info, rows[0])}"


def _undo_form(info: RunInfo, decision: Decision) -> None:
    with st.expander("Undo this decision", icon=":material/undo:", key="undo_decision"):
        about = _about(info, decision)
        st.caption(f"Everything is as it was before it; both rows stay in the ledger. It is about {about}.")
        version = cache.version_of(info.run_id, decision.precedent_id)
        held = st.session_state.get("undo_request")
        if held is None or held[0] != decision.decision_id:
            held = (decision.decision_id, secrets.token_hex(16))
            st.session_state["undo_request"] = held
        request = DecisionRequest(
            info.run_id,
            decision.precedent_id,
            Action.UNDO,
            Category.OTHER,
            "foreseen",
            expect_version=version,
            request_id=held[1],
            undoes=decision.decision_id,
        )
        request = replace(request, effect=foreseen_or_nothing(request))
        with st.form("undo_form", border=False):
            st.text_input("Why", key="undo_reason", max_chars=MAX_REASON)
            st.form_submit_button(
                "Undo it", key="undo_save", icon=":material/undo:", on_click=_undo, args=(request, about)
            )


@boundary.callback
def _undo(request: DecisionRequest, about: str) -> None:
    """Take a decision back; a callback."""
    state.must_show(request.run_id)
    who.keep_name()
    reason = str(st.session_state.get("undo_reason", ""))
    try:
        done = record(who.writing(), replace(request, reason=reason))
    except (DecisionRefused, UnknownPrecedentError, UnknownRunError) as error:
        words = plain_text(error, 600)
        if isinstance(error, StaleVersion):
            words += " The page shows it as it is now."
        st.session_state[_NOTICE] = (False, words)
    else:
        st.session_state[_NOTICE] = (True, f"Undone. In the ledger: number {done.number}. It is about {about}.")
        st.session_state.pop("undo_reason", None)
        cache.forget()


def _redaction(info: RunInfo, decision: Decision) -> None:
    """Draw the two steps in which the words of a decision are removed for good."""
    with st.expander("Redact its words", icon=":material/ink_eraser:", key="redact_decision"):
        st.caption(
            "Removes the words of the reason for good, in case they name what must not be kept. The row, its category "
            "and the chain stay, and the ledger says that they were redacted."
        )
        if st.session_state.get(_ASKED) != decision.decision_id:
            st.button("Redact the words", key="redact", on_click=_ask_redaction, args=(decision.decision_id,))
            return
        st.warning("The words cannot be brought back. Redact them?", icon=":material/warning:")
        with st.container(horizontal=True):
            st.button(
                "Yes, remove the words for good",
                key="redact_yes",
                type="primary",
                on_click=_redact,
                args=(info.run_id, decision.number),
            )
            st.button("No, keep them", key="redact_no", on_click=_ask_redaction, args=(None,))


@boundary.callback
def _ask_redaction(decision_id: str | None) -> None:
    st.session_state[_ASKED] = decision_id


@boundary.callback
def _redact(run_id: str, number: int) -> None:
    state.must_show(run_id)
    who.keep_name()
    st.session_state.pop(_ASKED, None)
    try:
        redact_reason(who.writing(), run_id, number)
    except (DecisionRefused, UnknownRunError) as error:
        st.session_state[_NOTICE] = (False, plain_text(error, 400))
    else:
        st.session_state[_NOTICE] = (True, f"The words of number {number} are gone. The ledger still verifies.")
        cache.forget()


def files(info: RunInfo) -> None:
    """Offer the run, its active set and the decisions as files, and take such a file in."""
    st.subheader("Take it elsewhere, and back", anchor=False)
    with st.container(horizontal=True):
        offer_run(info.run_id, "export_run")
        st.download_button(
            "The active set (JSONL)",
            lambda: export_active(cache.store(), info.run_id),
            file_name=f"{info.run_id}-active.jsonl",
            mime="application/x-ndjson",
            key="export_active",
            icon=":material/download:",
            on_click="ignore",
            help="What an agent may retrieve now, one memory a line.",
        )
        st.download_button(
            "The decisions as instructions (JSONL)",
            lambda: export_instructions(cache.store(), info.run_id),
            file_name=f"{info.run_id}-instructions.jsonl",
            mime="application/x-ndjson",
            key="export_instructions",
            icon=":material/download:",
            on_click="ignore",
            help="For another memory system: set, add or remove, with reason and time.",
        )
    if not who.may_decide():
        return
    with st.form("import_archive_form", border=False, clear_on_submit=True):
        upload = st.file_uploader("Take in an exported run (zip)", type=["zip"], key="archive_file")
        if st.form_submit_button("Take it in", key="import_archive", icon=":material/upload:"):
            _take_in(upload)


def offer_run(run_id: str, key: str) -> None:
    """Draw the button that exports a run with its ledger."""
    st.download_button(
        "The run with its ledger (zip)",
        lambda: _as_bytes(run_id),
        file_name=f"{run_id}.zip",
        mime="application/zip",
        key=key,
        icon=":material/folder_zip:",
        on_click="ignore",
        help="Evidence, decisions and the chain. Taken in again, here or elsewhere, it gives the same memories and "
        "the same ledger.",
    )


def _as_bytes(run_id: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.zip"
        export_run(cache.store(), run_id, path)
        return path.read_bytes()


def _take_in(upload: IO[bytes] | None) -> None:
    """Store an exported run and make it the current one, or say why not."""
    if upload is None:
        st.warning("Choose a file first: a zip that this page wrote.")
        return
    name = Path(str(getattr(upload, "name", "run.zip"))).name
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.zip"
        with path.open("wb") as file:
            shutil.copyfileobj(upload, file)
        words = "Checking the file and deriving its memories"
        bar = st.progress(0.0, words)
        try:
            run_id = import_archive(who.writing(), path, lambda: bar.progress(0.0, words))
        except (ArchiveRefused, PermissionRefused) as error:
            st.error(
                plain_text(str(error).replace(str(path), name).replace(path.name, name), 400), icon=":material/block:"
            )
            return
        finally:
            bar.empty()
    cache.forget()
    said = [f"{plain_text(name)} was taken in as run {plain_text(run_id, 100)}, which is shown now."]
    said += [plain_text(sentence, 500) for sentence in verify_ledger(cache.store(), run_id).remarks]
    st.session_state[_NOTICE] = (True, " ".join(said))
    state.follow("run", run_id)
    st.rerun()
