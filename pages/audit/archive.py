"""Which revocations should a person look at: every revoked precedent, the costliest doubt first, and deciding on it."""

import streamlit as st

from tepa_core.ui import archive_rows, archive_table, cache, decide_form, state, why_card, widgets

info = state.current_run()
archive = archive_rows.ever_revoked(info)
decide_form.tell()
if archive.rows.empty:
    st.info(
        "Nothing was ever revoked here: no evidence went against an active value often enough. "
        "See what the memories are on Lifecycle, or choose another run, method or moment.",
        icon=":material/info:",
    )
    st.stop()

first, second = archive_rows.headline(archive, info)
st.markdown(f"#### {first}")
st.markdown(second)
listing = archive_table.filtered(info, archive)
with st.container(horizontal=True, vertical_alignment="center"):
    st.text(archive_table.counts(listing))
    if listing.found < listing.total:
        st.button("Show all", key="archive_clear", type="tertiary", on_click=archive_table.clear)
if listing.shown.empty:
    st.info(
        "No revocation matches these filters. Show all, or search for something else.", icon=":material/search_off:"
    )
    st.stop()

ids = [str(name) for name in listing.shown["id"]]
archive_table.say_missing(info, archive.rows, ids)
selected = st.session_state[state.remember("precedent", ids, ids[0], told=True)]
archive_table.table(listing, selected, info)
with st.container(horizontal=True, vertical_alignment="center"):
    archive_table.step_buttons(listing, selected)
    widgets.download(listing.shown, "archive", "Download this list (CSV)")

row = listing.shown.loc[listing.shown["id"] == selected].iloc[0]
# The version is read before what is drawn: newer evidence than it says makes the store refuse, never the reverse.
version = cache.version_of(info.run_id, selected)
with st.spinner("Replaying the evidence on this key"):
    life = cache.precedent_life_of(info.run_id, selected)
st.markdown(f"##### {why_card.place(life)}")
st.markdown(why_card.history(life, selected))
st.markdown(archive_rows.score_in_words(row))
decide_form.show(info, archive, row, life, version)
fall = archive_rows.fall_of(archive, life, selected)
why_card.show(life, selected, fall)
st.page_link(
    "pages/explore/lifecycle.py",
    label="See its whole life on Lifecycle",
    icon=":material/timeline:",
    query_params={"run": info.run_id, "precedent": selected, "transition": fall},
)
