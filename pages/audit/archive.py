"""Which revocations should a person look at: every revoked precedent, searchable, with the reason of the open one."""

import streamlit as st

from tepa_core.ui import archive_table, cache, state, why_card, widgets

info = state.current_run()
rows, method, seed = archive_table.ever_revoked(info)
if rows.empty:
    st.info(
        "Nothing was ever revoked here: no evidence went against an active value often enough. "
        "See what the memories are on Lifecycle, or choose another run or method.",
        icon=":material/info:",
    )
    st.stop()

first, second = archive_table.headline(rows)
st.markdown(f"#### {first}")
st.markdown(second)
listing = archive_table.filtered(info, rows, method, seed)
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
archive_table.say_missing(info, rows, ids)
selected = st.session_state[state.remember("precedent", ids, ids[0])]
archive_table.table(listing, selected, info)
with st.container(horizontal=True, vertical_alignment="center"):
    archive_table.step_buttons(listing, selected)
    widgets.download(listing.shown, "archive", "Download this list (CSV)")

row = listing.shown.loc[listing.shown["id"] == selected].iloc[0]
with st.spinner("Replaying the evidence on this key"):
    life = cache.precedent_life_of(info.run_id, selected)
st.markdown(f"##### {why_card.place(life)}")
st.markdown(why_card.history(life, selected))
why_card.show(life, selected, row["transition_id"])
st.page_link(
    "pages/explore/lifecycle.py",
    label="See its whole life on Lifecycle",
    icon=":material/timeline:",
    query_params={"run": info.run_id, "precedent": selected, "transition": row["transition_id"]},
)
