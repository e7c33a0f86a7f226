"""The router: the page table and the frame that every page shares. No data access here."""

from pathlib import Path

import streamlit as st

from tepa_core.ui import boundary, who, widgets

ICON = Path(__file__).parent / "tepa_core" / "ui" / "icon.svg"

#: Section -> file, title, icon, the question that the page answers.
PAGES = {
    "Explore": [
        ("explore/overview", "Overview", "monitoring", "Is memory helping or hurting, where, and why?"),
        ("explore/phases", "Phases", "bar_chart", "Which method survives which phase, and is the difference real?"),
        ("explore/lifecycle", "Lifecycle", "timeline", "What happened to this memory?"),
        ("explore/thresholds", "Thresholds", "tune", "What if the thresholds were different?"),
    ],
    "Audit": [
        ("audit/archive", "Archive", "inventory_2", "Which revocations should a person look at?"),
        ("audit/decisions", "Decisions", "gavel", "Who decided what, and does it still hold?"),
    ],
    "Evidence": [
        ("evidence/reproduction", "Reproduction", "fact_check", "Does this build reproduce the paper?"),
        ("evidence/theory", "Theory and cost", "function", "What does revocation guarantee, and what does it cost?"),
    ],
    "Data": [
        ("data/run", "Run", "play_circle", "Start an experiment, or manage the runs there are."),
        ("data/import", "Import", "upload_file", "Bring your own evidence log."),
    ],
}

st.set_page_config(page_title="TEPA audit", page_icon=str(ICON), layout="wide")
questions = {title: question for rows in PAGES.values() for _, title, _, question in rows}
page = st.navigation(
    {
        section: [
            st.Page(
                f"pages/{path}.py",
                title=title,
                icon=f":material/{icon}:",
                url_path=path.split("/")[1],
                default=title == "Overview",
                help=question,
            )
            for path, title, icon, question in rows
        ]
        for section, rows in PAGES.items()
    }
)
who.sign_in()
widgets.frame(page.url_path or "overview", page.title, questions[page.title])
if page.title in {title for _, title, _, _ in PAGES["Data"]}:
    who.only_reviewers("to start, import and delete runs")
with boundary.around("This page"):
    page.run()
