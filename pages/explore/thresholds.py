"""What another setting of the thresholds would change: success, pollution, and which memories live or die."""

import streamlit as st

from tepa_core.experiment import FACT_STREAM
from tepa_core.ui import boundary, state, thresholds

info = state.current_run()
methods = thresholds.methods_of(info)
if info.stream == FACT_STREAM:
    st.info(
        "The sliders play streams of tasks again and replay logs; a fact run is neither. Choose another run on the "
        "left, or start a fact run with other thresholds on Run.",
        icon=":material/info:",
    )
elif not methods and not info.is_log:
    st.info("No method of this run has thresholds. Start a run with tepa on Run.", icon=":material/info:")
if info.stream == FACT_STREAM or not (methods or info.is_log):
    st.page_link("pages/data/run.py", label="Start another run", icon=":material/play_circle:")
    st.stop()


def page() -> None:
    """Draw the board and what is looked at under it."""
    drawn = thresholds.draw_board(info, methods)
    closer = st.segmented_control(
        "Look closer",
        list(thresholds.CLOSER),
        format_func=lambda name: thresholds.CLOSER.get(name, name),
        required=True,
        key=state.remember("closer", list(thresholds.CLOSER), "memories"),
    )
    state.write("closer", closer)
    section = {"memories": thresholds.memories, "compare": thresholds.compare, "keep": thresholds.keep}[closer]
    section(info, drawn)


# Apart from the frame the page answers sooner; but only a run of the whole script stops when a person moves on.
(boundary.fragment(page) if thresholds.answers_soon(info) else page)()
st.subheader("Where to go from here", anchor=False)
for path, label, icon in (
    ("explore/lifecycle", "See one memory's life", "timeline"),
    ("audit/archive", "Look through the revocations", "inventory_2"),
    ("data/run", "Start a run with other thresholds", "play_circle"),
):
    st.page_link(f"pages/{path}.py", label=label, icon=f":material/{icon}:", query_params={"run": info.run_id})
