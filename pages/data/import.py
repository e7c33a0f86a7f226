"""Bring your own evidence log: drop a file, say what its columns mean, look at what comes out, load it."""

import streamlit as st

from tepa_core.ui import import_meaning, import_steps

import_steps.show_report()
st.markdown("Drop a log of what was said, by whom and when. You see how it is read before anything is loaded.")
source = import_steps.choose_file()
with st.expander("What an evidence log looks like", expanded=source is None):
    import_steps.column_guide()
if source is None:
    st.stop()

st.subheader("What its columns mean", anchor=False)
table = import_steps.read(source)
if table is None:
    st.stop()
mapping = import_meaning.choose_meaning(source.token, table)
if mapping is None:
    st.stop()

st.subheader("What would be loaded", anchor=False)
log = import_steps.preview(source, table, mapping)
if log is None:
    st.stop()

preset = import_steps.choose_preset(source)
name = st.text_input(
    "Name of the run",
    value=source.name,
    key=f"name_{source.token}",
    help="Left as it is, thresholds that are not the default are added, and a number where the name is taken.",
).strip()
if st.button(import_steps.load_label(log), key="import_load", type="primary", icon=":material/upload:"):
    import_steps.load(source, mapping, preset, None if name in ("", source.name) else name)
