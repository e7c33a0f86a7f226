"""The paper's cost table measured on this machine, on request: ratios, kept for the visit."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tepa_core import cost
from tepa_core.figures.theme import method_label
from tepa_core.reported import COST, ROWS
from tepa_core.ui.widgets import progress_into, table

_MEASURED = "measured_cost"


def measured() -> pd.DataFrame | None:
    """Return what was measured in this visit, or None."""
    held: pd.DataFrame | None = st.session_state.get(_MEASURED)
    return held


def show() -> None:
    """Draw the cost table beside the paper's, and the button that measures it."""
    again = measured() is not None
    if st.button(
        "Measure again" if again else "Measure on this machine",
        key="measure_cost",
        icon=":material/timer:",
        help="Takes about five seconds. What is measured is kept until you close the page.",
    ):
        bar = st.progress(0.0, "Preparing the memories")
        st.session_state[_MEASURED] = cost.measure(progress=progress_into(bar))
        st.rerun()
    st.markdown(headline(measured()))
    three = st.column_config.NumberColumn(format="%.3f")
    table(beside(measured()), "cost_table", columns=dict.fromkeys(("paper", "here", "from", "to"), three))
    st.caption(
        "Times belong to a machine, ratios of work done by turns can be compared: ours are medians of "
        f"{cost.ROUNDS} rounds, with their quartiles. Updates: the compiled rule over a whole log, "
        "against a loop that assigns each item to a dict or appends it to a list. Queries: a live memory of "
        f"{cost.LIVE_UPDATES:,} updates, against a scan of every item. 100k and 1M updates are both measured, on a "
        "tenth as many keys. The command `python -m tepa_core bench` measures more."
    )


def headline(rows: pd.DataFrame | None) -> str:
    """Say what revocation costs, from what was measured."""
    if rows is None:
        return (
            "Not measured yet in this visit. The paper reports that an update of TEPA costs 1.2 times one of "
            "last write wins, and that scanning an append-only memory costs thousands of times a query of TEPA."
        )
    large = rows[rows["scope"] == rows["scope"].iloc[-1]].set_index("method")["ours"]
    live = rows.loc[rows["method"] == cost.LIVE, "ours"].iloc[0]
    return (
        f"At {rows['scope'].iloc[-1]} the rule takes **{large['tepa / last_write_wins']:.2f} times** as long as "
        f"last write wins in plain Python, and an append-only scan **{large['append_only / tepa']:,.0f} times** as "
        f"long as a query of TEPA. One item at a time from Python, a live memory takes {live:,.0f} times as long as a "
        "dict assignment: there the calls cost more than the rule."
    )


def beside(rows: pd.DataFrame | None) -> pd.DataFrame:
    """Return the cost table for a person: the paper's ratio, ours, and the quartiles of the rounds."""
    reported = pd.DataFrame(
        [(row.scope, row.method, row.quantity, row.reported) for row in ROWS if row.table == COST],
        columns=["scope", "method", "quantity", "reported"],
    )
    ours = {} if rows is None else {"here": "ours", "from": "lo", "to": "hi"}
    if rows is None:
        rows = pd.DataFrame(columns=["scope", "method", "quantity"])
    joined = reported.merge(rows, how="outer", on=["scope", "method", "quantity"], sort=False)
    joined = joined.sort_values(["scope", "quantity", "method"], ascending=[True, False, True])
    return pd.DataFrame(
        {
            "memory": joined["scope"],
            "ratio": [
                " / ".join(part if "," in part else method_label(part) for part in name.split(" / "))
                for name in joined["method"].str.replace("tepa, one", "TEPA, one")
            ],
            "of": joined["quantity"],
            "paper": joined["reported"].round(3),
        }
        | {name: joined[column].astype("float64").round(3) for name, column in ours.items()}
    )
