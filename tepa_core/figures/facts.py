"""Questions about facts: how many each method answers, and why those through several relations are not."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pandas as pd
import plotly.graph_objects as go

from tepa_core.experiment.facts import ANSWERED, ATTRIBUTIONS, CHAIN_NOT_FOUND, NEVER_STATED, STATE_WRONG
from tepa_core.figures.phases import ROW_PX, method_order
from tepa_core.figures.theme import (
    describe,
    in_legend_order,
    layout,
    legend_below,
    listed,
    method_label,
    method_style,
    records,
    require,
    translucent,
    two_lines,
)

ATTRIBUTION_STYLE: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        ANSWERED: ("answered", "#009E73", ""),
        CHAIN_NOT_FOUND: ("answer is active, but not found", "#56B4E9", "."),
        STATE_WRONG: ("answer is not active", "#D55E00", "/"),
        NEVER_STATED: ("no fact states the answer", "#8c8c8c", "x"),
    }
)
"""Label, colour and pattern per attribution, in the order in which bars stack."""


def answered(summary: pd.DataFrame, questions: int, *, level: float = 0.95) -> go.Figure:
    """Draw the share of questions that each method answers as bars with intervals, the best on top.

    Parameters
    ----------
    summary
        Columns `method`, `mean`, `lo`, `hi` (share in [0, 1]), one row per method.
    questions
        How many questions there are.
    level
        Level of the intervals, for the axis title.

    Returns
    -------
    go.Figure
        Bars carry `[method]` as customdata; alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(summary, ["method", "mean", "lo", "hi"])
    methods = method_order(summary.assign(phase=""))
    rows = summary.set_index("method").reindex(methods).reset_index()
    fig = go.Figure()
    for place, row in enumerate(records(rows)):
        color = method_style(row.method).color
        spans = "" if pd.isna(row.lo) else f" [{row.lo:.3f}, {row.hi:.3f}]"
        # Paler than its interval, which lies over it.
        fig.add_bar(
            orientation="h",
            x=[row.mean],
            y=[place],
            width=0.7,
            marker={"color": translucent(color, 0.5), "line": {"width": 0}},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [max(row.hi - row.mean, 0)],
                "arrayminus": [max(row.mean - row.lo, 0)],
                "color": color,
                "thickness": 2,
                "width": 4,
            },
            customdata=[[row.method]],
            hoverinfo="text",
            hovertext=(
                f"<b>{method_label(row.method)}</b><br>{count(row.mean * questions)} of {questions} questions: "
                f"{row.mean:.3f}{spans}"
            ),
            name=method_label(row.method),
            showlegend=False,
        )
        fig.add_annotation(
            text=count(row.mean * questions), x=1.02, xanchor="left", y=place, showarrow=False, font_size=12
        )
    layout(fig, height=90 + ROW_PX * max(len(rows), 1), x_title=f"Questions answered ({level:.0%} interval)")
    fig.update_xaxes(range=[0, 1.14], tickvals=[0, 0.25, 0.5, 0.75, 1], tickformat=".0%", showgrid=True)
    _method_rows(fig, methods)
    return describe(fig, alt=answered_alt_text(summary, questions), caption=answered_caption(summary, questions))


def count(number: float) -> str:
    """Write how many questions: whole where it is whole, else with one decimal, as a mean over orders is.

    Examples
    --------
    >>> count(20.0), count(14.666)
    ('20', '14.7')
    """
    return f"{number:,.0f}" if abs(number - round(number)) < 0.05 else f"{number:,.1f}"


def answered_alt_text(summary: pd.DataFrame, questions: int) -> str:
    """Say in words what `answered` shows: every method's number."""
    means = summary.set_index("method")["mean"]
    each = [
        f"{method_label(method)} {count(means[method] * questions)}"
        for method in method_order(summary.assign(phase=""))
    ]
    return f"Bar chart of the questions answered by each method, of {questions}. Best first: {', '.join(each)}."


def answered_caption(summary: pd.DataFrame, questions: int) -> str:
    """Say what to see in `answered`: the best methods, and how far the others stay behind."""
    means = summary.set_index("method")["mean"]
    if means.empty:
        return "No question was asked."
    if means.max() == means.min():
        return f"Every method answers {count(means.max() * questions)} of {questions}."
    best = in_legend_order(means.index[means == means.max()])
    low, high = (count(bound * questions) for bound in means[means < means.max()].agg(["min", "max"]))
    others = low if low == high else f"{low} to {high}"
    return (
        f"Most are answered by {listed([method_label(method) for method in best])}: "
        f"{count(means.max() * questions)} of {questions}. The others answer {others}. The number stands at the "
        "right."
    )


def attribution_bars(attributions: pd.DataFrame) -> go.Figure:
    """Draw why questions through several relations were answered or not, as one stacked bar per method.

    Parameters
    ----------
    attributions
        Columns `method`, `attribution` (one of `tepa_core.experiment.ATTRIBUTIONS`), `n` (answers, over all orders).

    Returns
    -------
    go.Figure
        Bars carry `[method, attribution]` as customdata; alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    shares = attribution_shares(attributions)
    methods = list(shares.index)
    fig = go.Figure()
    for name in [one for one in ATTRIBUTIONS if shares[one].any()]:
        label, color, pattern = ATTRIBUTION_STYLE[name]
        fig.add_bar(
            orientation="h",
            x=shares[name],
            y=list(range(len(methods))),
            width=0.7,
            marker={
                "color": color,
                "pattern": {"shape": pattern, "fillmode": "overlay", "fgcolor": "#ffffff", "fgopacity": 0.8},
                "line": {"width": 0},
            },
            customdata=[[method, name] for method in methods],
            hoverinfo="text",
            hovertext=[
                f"<b>{method_label(method)}</b><br>{label}: {share:.0%} of the answers"
                for method, share in zip(methods, shares[name], strict=True)
            ],
            name=label,
            showlegend=True,
        )
    plot_px = 40 + ROW_PX * max(len(methods), 1)
    layout(fig, height=plot_px, x_title="Answers (share)")
    fig.update_layout(barmode="stack")
    fig.update_xaxes(range=[0, 1], tickformat=".0%", showgrid=True)
    _method_rows(fig, methods)
    legend_below(fig, plot_px=plot_px)
    return describe(fig, alt=attribution_alt_text(attributions), caption=attribution_caption(attributions))


def attribution_shares(attributions: pd.DataFrame) -> pd.DataFrame:
    """Return the share of each attribution (columns, all of them) by method (index, in legend order).

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(attributions, ["method", "attribution", "n"])
    counts = attributions.pivot_table(index="method", columns="attribution", values="n", aggfunc="sum", fill_value=0)
    counts = counts.reindex(index=in_legend_order(attributions["method"]), columns=list(ATTRIBUTIONS), fill_value=0)
    return counts.div(counts.sum(axis=1), axis=0)


def attribution_alt_text(attributions: pd.DataFrame) -> str:
    """Say in words what `attribution_bars` shows: every share of every method."""
    each = [
        f"{method_label(str(method))}: "
        + ", ".join(f"{ATTRIBUTION_STYLE[name][0]} {row[name]:.0%}" for name in ATTRIBUTIONS if row[name])
        for method, row in attribution_shares(attributions).iterrows()
    ]
    return f"Stacked bar chart of the answers by method and reason. {'; '.join(each)}."


def attribution_caption(attributions: pd.DataFrame) -> str:
    """Say what to see in `attribution_bars`: where the memory is to blame, and where the reader is."""
    shares = attribution_shares(attributions)
    blamed = shares[shares[STATE_WRONG] > 0][STATE_WRONG].sort_values(ascending=False, kind="stable")
    what = "Dotted: the memory holds the answer, and the reader did not find the way to it."
    if blamed.empty:
        return f"{what} No method lacks an answer that was stated."
    cases = [f"{method_label(str(method))} ({share:.0%})" for method, share in blamed.items()]
    return f"{what} Hatched: the memory no longer offers it: {listed(cases)}."


def _method_rows(fig: go.Figure, methods: list[str]) -> None:
    fig.update_yaxes(
        tickvals=list(range(len(methods))),
        ticktext=[two_lines(method_label(method)) for method in methods],
        range=[len(methods) - 0.5, -0.5],
        showgrid=False,
    )
