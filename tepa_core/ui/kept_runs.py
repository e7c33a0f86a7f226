"""The runs there are: what they are made of, and renaming, comparing and deleting the chosen one."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tepa_core.decisions import PermissionRefused
from tepa_core.experiment import spec_from_dict
from tepa_core.inert import visible
from tepa_core.store import RunInfo, UnknownRunError, delete_run, rename_run
from tepa_core.ui import boundary, cache, ledger_view, spec_words, who
from tepa_core.ui.spec_form import tell, told
from tepa_core.ui.text import plain_text
from tepa_core.ui.widgets import table

OVERVIEW_PAGE, PHASES_PAGE = "pages/explore/overview.py", "pages/explore/phases.py"


def show_news(run_id: str) -> None:
    """Say what the last click did, and where to go with the chosen run."""
    news = told()
    if news is None:
        return
    words, done = news
    if done:
        st.success(plain_text(words, limit=300), icon=":material/check:")
        _open(run_id)
    else:
        st.error(plain_text(words, limit=300), icon=":material/error:")


def of_chosen(info: RunInfo) -> None:
    """Draw what belongs to the run chosen on the left; it can be renamed and deleted whatever stands in it."""
    with boundary.around("This run"):
        _made(info)
    key = f"rename_{info.run_id}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Name", value=info.name, key=key, max_chars=80)
        st.button("Rename", icon=":material/edit:", key="rename", on_click=_rename, args=(info.run_id, key))
        with st.popover("Delete", icon=":material/delete:", key="delete"):
            with boundary.around("This count"):
                st.markdown(_loss(info))
                if cache.decisions(info.run_id):
                    ledger_view.offer_run(info.run_id, "export_before_delete")
            st.button("Delete for good", type="primary", key="delete_it", on_click=_delete, args=(info,))


def of_unreadable(run_id: str) -> None:
    """Draw what can be done with a run of which not even the outline can be read."""
    st.warning(
        "This run cannot be read: its row in the database is damaged. Every other run works as before. Delete it, or "
        "take a copy of the database first if somebody is to look at it.",
        icon=":material/broken_image:",
    )
    with st.popover("Delete", icon=":material/delete:", key="delete"):
        st.markdown(f"Delete run {plain_text(run_id)} with all that belongs to it? This cannot be undone.")
        st.button("Delete for good", type="primary", key="delete_it", on_click=_delete_unreadable, args=(run_id,))


def _made(info: RunInfo) -> None:
    """Say what the chosen run is made of, and how to repeat it."""
    st.markdown(f"**{plain_text(info.name)}**: {_facts(info)}")
    with st.container(horizontal=True):
        _open(info.run_id)
        if not info.is_log:
            st.page_link(
                PHASES_PAGE,
                label="Compare with another run",
                icon=":material/compare_arrows:",
                query_params={"run": info.run_id, "view": "runs"},
            )
    if not info.is_log:
        where = ", in the folder of the file" if info.is_facts else ""
        st.caption(f"The command that repeats it{where}:")
        st.code(visible(spec_from_dict(info.spec).command()), language="bash", wrap_lines=True)


def listed(runs: pd.DataFrame) -> None:
    """Draw the table of all runs."""
    shown = runs.rename(
        columns={
            "run_id": "id",
            "created_at": "made (UTC)",
            "elapsed_s": "seconds",
            "precedents": "memories",
            "revoked": "revoked now",
            "source": "file",
        }
    )[["name", "kind", "stream", "seeds", "memories", "revoked now", "made (UTC)", "seconds", "file", "id"]]
    table(
        shown,
        "runs",
        columns={
            "made (UTC)": st.column_config.DatetimeColumn(format="D MMM YYYY, HH:mm", timezone="UTC"),
            "seconds": st.column_config.NumberColumn(format="%.1f"),
        },
    )


def _open(run_id: str) -> None:
    st.page_link(OVERVIEW_PAGE, label="Open on Overview", icon=":material/monitoring:", query_params={"run": run_id})


def _facts(info: RunInfo) -> str:
    made = f"made {info.created_at.day} {info.created_at:%B %Y, %H:%M} UTC in {info.elapsed_s:.1f} seconds"
    counts = info.counts
    if info.is_log:
        rows = f"{counts['loaded']:,} of {counts['read']:,} rows loaded, {counts['rejected']:,} rejected"
        return f"log {plain_text(info.source)}, {rows}; {made}, version {plain_text(info.program)}."
    return f"{spec_words.made_of(spec_from_dict(info.spec), counts)}; {made}, version {plain_text(info.program)}."


def _loss(info: RunInfo) -> str:
    what = "its evidence and memories" if info.is_log else "its episodes, evidence and memories"
    decided = len(cache.decisions(info.run_id))
    back = "The command above makes it again"
    if info.is_log or info.is_facts:
        back = f"The file that it was read from is not touched: to {'import' if info.is_log else 'run'} it again"
        back += " makes its memories again"
    if decided:
        what += f" and **{decided:,} decision{'' if decided == 1 else 's'}**"
        back += ", without any decision. Export it first to keep them"
    back += "."
    last = " It is the only run, so the default run is made in its place." if len(cache.runs()) == 1 else ""
    return (
        f"Delete **{plain_text(info.name)}** with {what}? This cannot be undone. {back}{last} "
        "That it was deleted, and by whom, stays in the ledger of the database."
    )


@boundary.callback
def _rename(run_id: str, key: str) -> None:
    try:
        rename_run(who.writing(), run_id, st.session_state[key])
    except UnknownRunError:
        tell("Not renamed: this run was deleted meanwhile.", done=False)
    except ValueError as error:
        tell(f"Not renamed: {str(error).rstrip('.')}.", done=False)
    else:
        tell("The run has its new name.")
    cache.forget()


@boundary.callback
def _delete(info: RunInfo) -> None:
    try:
        gone = delete_run(who.writing(), info.run_id)
    except PermissionRefused as error:
        tell(f"Not deleted: {error}", done=False)
        return
    cache.forget()
    tell(f"{info.name} {'is deleted' if gone else 'was deleted already'}. Another run is chosen now.")


@boundary.callback
def _delete_unreadable(run_id: str) -> None:
    gone = delete_run(who.writing(), run_id)
    cache.forget()
    tell(f"The run {run_id} {'is deleted' if gone else 'was deleted already'}. Another run is chosen now.")
