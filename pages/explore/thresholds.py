"""What another setting of the thresholds would change: success, pollution, and which memories live or die."""

import streamlit as st

from tepa_core.experiment import FACT_STREAM
from tepa_core.ui import state, thresholds

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


@st.fragment
def page() -> None:
    """Draw all of it; apart from the frame, so that letting a slider go answers soon."""
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


page()
st.subheader("Where to go from here", anchor=False)
st.page_link(
    "pages/explore/lifecycle.py",
    label="See one memory's life",
    icon=":material/timeline:",
    query_params={"run": info.run_id},
)
