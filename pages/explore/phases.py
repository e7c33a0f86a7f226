"""Which method survives which phase, and whether the difference is real."""

import streamlit as st

from tepa_core.experiment import OVERALL, spec_from_dict
from tepa_core.figures.theme import method_label
from tepa_core.ui import cache, headline, phase_views, state
from tepa_core.ui.widgets import simulation_only

VIEWS = {
    "success": "Success",
    "pollution": "Pollution",
    "differences": "Differences",
    "runs": "Another run",
    "memories": "Memories",
}

info = state.current_run()
simulation_only(info, "success by phase")
methods = list(info.spec["methods"])
baselines = sorted(methods, key=lambda method: method != headline.OURS)
headlines = st.container()

chosen = st.multiselect(
    "Methods", methods, format_func=method_label, key=state.remember_several("methods", methods, methods)
)
left, right = st.columns(2)
baseline = left.selectbox(
    "Compared with the others",
    baselines,
    format_func=method_label,
    key=state.remember("baseline", baselines, baselines[0]),
    help="Differences are this method minus each other one.",
)
levels = [90, 95, 99]
percent = right.segmented_control(
    "Intervals", levels, format_func=lambda level: f"{level} %", required=True, key=state.remember("level", levels, 95)
)
if not chosen:
    st.info("Choose at least one method.")
    st.stop()

level = percent / 100
with st.spinner("Comparing the methods"):
    summary, index = cache.success(info.run_id, level), cache.pollution(info.run_id, level)
    hardest = headline.hardest_phase(index) or str(summary["phase"].iloc[0])
    # All tasks of a run with one phase are those of the phase: correcting for both would count them twice.
    scopes = (OVERALL, hardest) if summary["phase"].nunique() > 2 else (OVERALL,)
    compared = cache.comparisons(info.run_id, baseline, scopes=scopes, level=level)
    of_ours = cache.comparisons(info.run_id, headline.OURS, scopes=scopes, level=level)
with headlines:
    st.markdown("#### " + " ".join(headline.of_phases(summary, chosen)))
    st.markdown(headline.of_simple_rule(of_ours, spec_from_dict(info.spec).asserts))

view = st.segmented_control(
    "Show", VIEWS, format_func=VIEWS.get, required=True, key=state.remember("view", list(VIEWS), "success")
)
if view == "success":
    phase_views.success(summary[summary["method"].isin(chosen)], hardest, level)
elif view == "pollution":
    phase_views.pollution(index[index["method"].isin(chosen)], level)
elif view == "differences":
    phase_views.differences(info, compared, chosen, level)
elif view == "runs":
    phase_views.another_run(info, chosen, level)
else:
    phase_views.memories(info, chosen, level)
with st.expander("The choices behind this run"):
    phase_views.choices(info)
