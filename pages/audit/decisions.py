"""Who decided what, and does it still hold: the ledger, its verification, and how often reviewers agreed."""

import streamlit as st

from tepa_core.ui import cache, chain_view, ledger_view, state

info = state.current_run()
ledger_view.tell()
decisions = cache.decisions(info.run_id)
if not decisions:
    ledger_view.nothing(info)
    chain_view.verification(info)
    ledger_view.files(info)
    chain_view.database()
    chain_view.heads()
    st.stop()

st.markdown(f"#### {ledger_view.headline(decisions)}")
chain_view.verification(info)
ledger_view.agreed(info)
st.subheader("The ledger", anchor=False)
decision = ledger_view.choose(info, decisions)
ledger_view.show(info, decision, decisions)
ledger_view.files(info)
chain_view.database()
chain_view.heads()
