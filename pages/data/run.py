"""Start an experiment, and keep, compare or delete the runs there are."""

import streamlit as st

from tepa_core.ui import cache, kept_runs, spec_form, state

info = state.current_run()
kept_runs.show_news(info)
st.subheader("A new run", anchor=False)
request = spec_form.draw()
if request is not None:
    spec_form.start(*request)
st.subheader("The run chosen on the left", anchor=False)
kept_runs.of_chosen(info)
st.subheader("All runs", anchor=False)
kept_runs.listed(cache.runs())
