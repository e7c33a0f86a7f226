"""What happened to this memory: Figure 5 for any key, and why each change of state happened."""

import streamlit as st

from tepa_core.figures import lifecycle
from tepa_core.ui import cache, key_choice, labels, lifecycle_view, state, why_card, widgets

CHART = "lifecycle_chart"

info = state.current_run()
place = key_choice.choose(info)
if place is None:
    st.stop()

headline = st.container()
left, right = st.columns([3, 2], gap="medium")
order = lifecycle_view.choose_order(left) if info.is_log else "event"
with st.spinner("Replaying the evidence on this key"):
    life = cache.key_life_of(
        info.run_id, place.key_id, method=place.method, seed=place.seed, subject=place.subject, order=order
    )

with right:
    values = lifecycle_view.value_labels(life)
    precedent = st.selectbox(
        "Value to explain",
        list(values),
        format_func=lambda name: values.get(name, name),
        key=state.remember("precedent", list(values), lifecycle_view.last_fall(life)[0], told=True),
    )
    state.write("precedent", precedent)
    lifecycle_view.say_shortened(len(values), len(life.values), "values")
    steps, transition = lifecycle_view.order_of(life, precedent), None
    if steps:
        changes = labels.of_changes(life, steps)
        transition = st.selectbox(
            "Change of state to explain",
            steps,
            format_func=lambda step: changes.get(step, step),
            key=state.remember("transition", steps, lifecycle_view.last_fall(life, precedent)[1]),
            help="The marks in the chart do the same when you click them.",
        )
        state.write("transition", transition)
        of = int((life.transitions["id"] == precedent).sum())
        lifecycle_view.say_shortened(len(steps), of, "changes of state")
    why_card.show(life, precedent, transition)
headline.markdown(f"#### {why_card.history(life, precedent)}")
for sentence in why_card.others(life, precedent):
    headline.markdown(sentence)
with left:
    fig = lifecycle(lifecycle_view.figure_data(life, transition), selected=transition, decisions=life.decisions)
    widgets.figure(fig, CHART, select=lambda: lifecycle_view.choose_clicked(CHART))

st.subheader("All evidence on this key", anchor=False)
widgets.table(lifecycle_view.evidence_table(life), "evidence", limit=lifecycle_view.ROWS_SHOWN)
st.page_link("pages/audit/archive.py", label="See all revocations of this run", query_params={"run": info.run_id})
