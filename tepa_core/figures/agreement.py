"""How often reviewers found a revocation right."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from tepa_core.figures.theme import GREY, describe, layout, listed, records, require, shown

AGREEMENT_COLUMNS = ("name", "right", "wrong", "precision", "lo", "hi")
DOT = "#0072B2"
ROW_PX = 34


def agreement(measured: pd.DataFrame, *, level: float = 0.95) -> go.Figure:
    """Draw the measured precision of revocation as dots with intervals, one row a rule or a key.

    Parameters
    ----------
    measured
        Columns `name`, `right`, `wrong` (counts of judged revocations), `precision`, `lo`, `hi` (in [0, 1]; missing
        where nothing was judged: such rows are left out). Drawn in this order, from the top.
    level
        Level of the intervals, for the axis title.

    Returns
    -------
    go.Figure
        Dots carry `[name]` as customdata; alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(measured, AGREEMENT_COLUMNS)
    drawn = measured[measured["precision"].notna()].reset_index(drop=True)
    rows = list(range(len(drawn)))
    fig = go.Figure()
    fig.add_scatter(
        x=[edge for lo, hi in zip(drawn["lo"], drawn["hi"], strict=True) for edge in (lo, hi, None)],
        y=[edge for number in rows for edge in (number, number, None)],
        mode="lines",
        line={"color": GREY, "width": 3},
        hoverinfo="skip",
        name=f"{level:.0%} interval",
        showlegend=False,
    )
    fig.add_scatter(
        x=drawn["precision"],
        y=rows,
        mode="markers",
        cliponaxis=False,
        marker={"color": DOT, "size": 11},
        customdata=drawn[["name"]].to_numpy(),
        hoverinfo="text",
        hovertext=[
            f"<b>{shown(row.name_)}</b><br>{row.right} of {row.right + row.wrong} right: {row.precision:.0%} "
            f"[{row.lo:.0%}, {row.hi:.0%}]"
            for row in records(drawn.rename(columns={"name": "name_"}))
        ],
        name="measured precision",
        showlegend=False,
    )
    layout(fig, height=90 + ROW_PX * max(len(rows), 1), x_title=f"Revocations that reviewers found right ({level:.0%})")
    fig.update_layout(margin_t=8)
    fig.update_xaxes(range=[-0.02, 1.02], tickformat=".0%", tickvals=[0, 0.25, 0.5, 0.75, 1], showgrid=True)
    fig.update_yaxes(
        tickvals=rows,
        ticktext=[
            f"{shown(name, limit=24)}, {right} of {right + wrong}"
            for name, right, wrong in zip(drawn["name"], drawn["right"], drawn["wrong"], strict=True)
        ],
        range=[len(rows) - 0.4, -0.6],
        showgrid=False,
    )
    return describe(fig, alt=alt_text(drawn), caption=caption(drawn))


def alt_text(drawn: pd.DataFrame) -> str:
    """Say in words what `agreement` shows."""
    cases = [
        f"{row.name_} {row.precision:.0%}, between {row.lo:.0%} and {row.hi:.0%}"
        for row in records(drawn.rename(columns={"name": "name_"}))
    ]
    return f"Measured precision of revocation: {listed(cases, limit=12)}." if cases else "No revocation was judged yet."


def caption(drawn: pd.DataFrame) -> str:
    """Say what to see in `agreement`."""
    judged = int((drawn["right"] + drawn["wrong"]).sum())
    return (
        f"{judged} judged revocation{'' if judged == 1 else 's'}. Reviewers choose what they look at, so this is the "
        "precision among those, not among all."
    )
