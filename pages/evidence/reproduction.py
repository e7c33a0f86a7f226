"""Whether this build reproduces the paper: every reported number beside ours, and the choices behind a difference."""

import streamlit as st

from tepa_core.figures.reproduction import tally_bars
from tepa_core.reproduce import SEEDS
from tepa_core.ui import cache, cost_view, state
from tepa_core.ui import reproduction_views as views
from tepa_core.ui.widgets import figure, table

headlines = st.container()
left, right = st.columns(2, gap="medium")
seeds = left.number_input(
    "Seeds of the simulated runs",
    min_value=2,
    max_value=200,
    key=state.remember("seeds", range(2, 201), SEEDS),
    help=f"The paper has {SEEDS}. Runs with another number are separate runs.",
)
fallback = right.segmented_control(
    "Without an Active memory TEPA acts on",
    views.FALLBACKS,
    format_func=views.FALLBACKS.get,
    required=True,
    key=state.remember("fallback", list(views.FALLBACKS), cache.USUAL_FALLBACK),
    help="The paper does not say. This choice moves its main number more than any threshold.",
)
with st.spinner("Measuring the numbers of the paper"):
    stored = cache.reproduced_runs(seeds)
    rows = cache.reproduced(seeds, fallback, cost_view.measured())
    usual = cache.reproduced(seeds, cache.USUAL_FALLBACK, cost_view.measured())
tally = views.tally_in_order(rows)
right.markdown(views.of_fallback(rows, usual, fallback))
with headlines:
    first, *rest = views.headline(tally)
    st.markdown(f"#### {first}")
    st.markdown(" ".join(rest))
    views.offer_the_rest(seeds, stored)
    figure(tally_bars(tally), "tally")

st.subheader("Table by table", anchor=False)
view = st.segmented_control(
    "Show",
    views.VIEWS,
    format_func=lambda name: views.VIEWS[name][0],
    required=True,
    key=state.remember("table", list(views.VIEWS), "drift"),
)
_, of_table, draw = views.VIEWS[view]
draw(rows[rows["table"] == of_table], seeds)

with st.expander("All numbers in one table"):
    table(rows, "reproduction")
st.caption(
    "Reported numbers: Zhou, Ouyang, Zheng and Xiang, “TEPA: Revoking Stale Memories for Conflict-Robust Language "
    "Agents”, arXiv 2608.07429 v2. The same from the command line: `python -m tepa_core reproduce`."
)
st.page_link(
    "pages/evidence/theory.py",
    label="What revocation guarantees, and what it costs",
    icon=":material/function:",
    query_params={"run": state.chosen_run()},
)
