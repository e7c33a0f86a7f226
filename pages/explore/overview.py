"""Whether memory is helping or hurting, where, and why."""

import streamlit as st

from tepa_core.figures import memory_size, mpi_bars, success_curve
from tepa_core.figures.curves import HIGHLIGHT
from tepa_core.figures.theme import method_label
from tepa_core.ui import cache, fact_overview, headline, labels, log_overview, state, story_view
from tepa_core.ui.text import plain_text
from tepa_core.ui.widgets import figure

COURSES = {"success": "Success", "size": "Active memory"}

info = state.current_run()
if info.is_log:
    log_overview.show(info)
    st.stop()
if info.is_facts:
    fact_overview.show(info)
    st.stop()

success, pollution = cache.success(info.run_id), cache.pollution(info.run_id)
phases = cache.phases(info.run_id)
methods = list(success["method"].unique())
hardest = headline.hardest_phase(pollution) or str(phases["phase"].iloc[-1])
harmed = headline.NAIVE if headline.NAIVE in methods else methods[0]
harm = cache.harm_by_key(info.run_id, harmed)
first, *rest = headline.of_simulation(success, pollution)
st.markdown(f"#### {first}")
st.markdown(" ".join([*rest, headline.of_exposure(harm, harmed)]))

left, right = st.columns([1, 2])
course = left.segmented_control(
    "Over the tasks",
    COURSES,
    format_func=COURSES.get,
    required=True,
    key=state.remember("course", list(COURSES), "success"),
)
shown = right.multiselect(
    "Methods in full colour",
    methods,
    format_func=method_label,
    key=state.remember_several("shown", methods, [method for method in HIGHLIGHT if method in methods]),
)
draw = success_curve if course == "success" else memory_size
figure(draw(cache.curve(info.run_id, course), phases, shown), f"{course}_curve")

st.subheader("What happens at the change, step by step", anchor=False)
story_view.show(info, methods, phases[phases["phase"] == hardest].iloc[0])

st.subheader("Memory pollution by phase", anchor=False)
if pollution.empty:
    st.info("The pollution index needs an agent without memory: start a run with no_memory on Run.")
elif pollution["mpi"].isna().all():
    st.info(headline.NO_POLLUTION)
else:
    scopes = labels.of_names(["every phase", *dict.fromkeys(pollution["phase"])], plain_text)
    scope = st.segmented_control(
        "Phase",
        list(scopes),
        format_func=lambda name: scopes.get(name, name),
        required=True,
        key=state.remember("scope", list(scopes), hardest),
    )
    figure(mpi_bars(pollution if scope == "every phase" else pollution[pollution["phase"] == scope]), "mpi")

st.subheader(f"Where {method_label(harmed)} loses most", anchor=False)
story_view.links_to_harm(info, harm, harmed, methods)
st.subheader("Where to go from here", anchor=False)
for page, label, icon in (
    ("explore/phases", "Which method survives?", "bar_chart"),
    ("explore/lifecycle", "What happened to one memory?", "timeline"),
    ("data/import", "Look at your own agent's log", "upload_file"),
):
    st.page_link(f"pages/{page}.py", label=label, icon=f":material/{icon}:", query_params={"run": info.run_id})
