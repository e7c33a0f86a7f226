"""When a log's memories were revoked, and by which rule."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pandas as pd
import plotly.graph_objects as go

from tepa_core.figures.theme import clock, describe, layout, legend_below, listed, require, shade_phases

RULE_STYLE: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "recent": ("recent rule", "#D55E00", ""),
        "posterior": ("posterior rule", "#0072B2", "/"),
        "superseded": ("superseded", "#8c8c8c", "."),
    }
)
"""Label, colour and pattern of every rule that revokes."""

PLOT_PX = 230


def revocations_by_month(fell: pd.DataFrame, phases: pd.DataFrame) -> go.Figure:
    """Draw the number of revocations per month as bars, split by rule, over the phases of the log.

    Parameters
    ----------
    fell
        One row per revocation: ``occurred`` (UTC), ``rule``.
    phases
        Columns ``phase``, ``start``, ``end`` (UTC, end exclusive). May be empty.

    Returns
    -------
    go.Figure
        Alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(fell, ["occurred", "rule"])
    require(phases, ["phase", "start", "end"])
    fig = go.Figure()
    if len(fell):
        month = clock(fell["occurred"]).dt.to_period("M")
        months = pd.period_range(month.min(), month.max(), freq="M")
        if len(phases):
            whole = clock(pd.concat([phases["start"].iloc[:1], phases["end"].iloc[-1:]]))
            fig.update_xaxes(range=[min(whole.iloc[0], months[0].start_time), max(whole.iloc[1], months[-1].end_time)])
        counts = fell.groupby([month, "rule"]).size().unstack(fill_value=0).reindex(months, fill_value=0)
        for rule in [name for name in RULE_STYLE if name in counts]:
            label, color, pattern = RULE_STYLE[rule]
            fig.add_bar(
                x=months.to_timestamp(),
                xperiod="M1",
                xperiodalignment="middle",
                y=counts[rule],
                name=label,
                marker={"color": color, "pattern": {"shape": pattern, "fgcolor": "#ffffff"}, "line": {"width": 0}},
                hoverinfo="text",
                hovertext=[
                    f"{at:%B %Y}<br>{label}: {n}" for at, n in zip(months.to_timestamp(), counts[rule], strict=True)
                ],
                showlegend=True,
            )
    layout(fig, height=PLOT_PX, x_title="Month of the evidence (UTC)", y_title="Revocations (number)")
    legend_below(fig, plot_px=PLOT_PX)
    fig.update_layout(barmode="stack", bargap=0.25)
    shade_phases(fig, phases)
    return describe(fig, alt=by_month_alt_text(fell), caption=by_month_caption(fell, phases))


def by_month_alt_text(fell: pd.DataFrame) -> str:
    """Say in words what `revocations_by_month` shows: the count of every month that has any."""
    what = "Stacked bar chart of revocations per month, split by rule."
    if fell.empty:
        return f"{what} There are none."
    month = clock(fell["occurred"]).dt.to_period("M")
    counts = month.value_counts().sort_index()
    return f"{what} {', '.join(f'{period:%B %Y} {n}' for period, n in counts.items())}."


def by_month_caption(fell: pd.DataFrame, phases: pd.DataFrame) -> str:
    """Say what to see in `revocations_by_month`: the share of every rule, and of every phase."""
    if fell.empty:
        return "Nothing was revoked."
    counts = fell["rule"].value_counts()
    rules = [f"{counts[rule]} by the {RULE_STYLE[rule][0]}" for rule in ("recent", "posterior") if rule in counts]
    if "superseded" in counts:
        rules.append(f"{counts['superseded']} superseded by another value")
    sentences = [f"{len(fell)} revocations: {listed(rules)}."]
    if len(phases):
        inside = [
            f"{int(fell['occurred'].between(start, end, inclusive='left').sum())} in {phase}"
            for phase, start, end in zip(phases["phase"], phases["start"], phases["end"], strict=True)
        ]
        sentences.append(f"By phase: {listed(inside, limit=6)}.")
    return " ".join(sentences)
