"""What revocation guarantees (P1 to P3) beside what a run measured, and what it costs on this machine."""

import streamlit as st

from tepa_core.figures.theme import method_label
from tepa_core.ui import cache, cost_view, labels, state
from tepa_core.ui import theory_view as view
from tepa_core.ui.text import plain_text

info = state.current_run()
revoking = view.revoking_methods(info)
headlines = st.container()
measured = None
if revoking:
    left, right = st.columns(2)
    method = left.selectbox(
        "Method that revokes",
        revoking,
        format_func=method_label,
        key=state.remember("revoking", revoking, revoking[0]),
    )
    with st.spinner("Measuring exposure, following and loss"):
        terms = cache.exposure(info.run_id, method)
    phases = labels.of_names(terms, plain_text)
    phase = right.segmented_control(
        "Phase",
        list(phases),
        format_func=lambda name: phases.get(name, name),
        required=True,
        key=state.remember("theory_phase", list(phases), view.hardest(terms)),
    )
    measured = terms[phase]
    with headlines:
        first, *rest = view.of_bound(phase, measured, method)
        st.markdown(f"#### {first}")
        st.markdown(" ".join(rest))
        st.markdown(view.of_pollution(phase, measured))
else:
    with headlines:
        view.offer_another_run(info)

st.subheader("Excluding what is superseded (P1, P2)", anchor=False)
chart = st.container()
q, eta, delta, b = view.sliders(measured)
if revoking:
    with chart:
        view.show_gain(terms, method, q * eta * delta)
st.markdown(view.of_setting(q, eta, delta, b))

st.subheader("Revoking what still holds (P3)", anchor=False)
view.false_revocations(info)

st.subheader("What it costs", anchor=False)
cost_view.show()

st.subheader("Where to go from here", anchor=False)
for page, label, icon in (
    ("evidence/reproduction", "Does this build reproduce the paper?", "fact_check"),
    ("audit/archive", "Which revocations of this run should a person look at?", "inventory_2"),
):
    st.page_link(f"pages/{page}.py", label=label, icon=f":material/{icon}:", query_params={"run": info.run_id})
