"""Start an experiment, and keep, compare or delete the runs there are."""

import streamlit as st

from tepa_core.experiment import FACT_STREAM
from tepa_core.ui import backup_view, boundary, cache, fact_form, kept_runs, spec_form, state

info = state.readable_run()
kept_runs.show_news(state.chosen_run())
st.subheader("A new run", anchor=False)
stream = spec_form.choose_stream()
if stream == FACT_STREAM:
    wanted = fact_form.draw()
    if wanted is not None:
        fact_form.start(wanted)
else:
    request = spec_form.draw(stream)
    if request is not None:
        spec_form.start(*request)
st.subheader("The run chosen on the left", anchor=False)
if info is None:
    kept_runs.of_unreadable(state.chosen_run())
else:
    kept_runs.of_chosen(info)
st.subheader("All runs", anchor=False)
kept_runs.listed(cache.runs())
st.subheader("The whole database", anchor=False)
with boundary.around("This part of the page"):
    backup_view.draw()
