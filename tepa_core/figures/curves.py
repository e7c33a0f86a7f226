"""Curves over the tasks of a run: success (paper Figure 2) and active memory size (paper Figure 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tepa_core.figures.theme import (
    describe,
    in_legend_order,
    layout,
    legend_below,
    listed,
    method_label,
    method_style,
    require,
    shade_phases,
    shown,
    spread,
    translucent,
)

HIGHLIGHT = ("tepa", "append_only", "no_memory")
LINE_PX = 17
LONGEST_DIRECT_LABEL = 16
PLOT_PX = 290


def success_curve(
    curve: pd.DataFrame,
    phases: pd.DataFrame,
    highlight: Sequence[str] = HIGHLIGHT,
    *,
    window: int = 10,
    x_title: str = "Task",
) -> go.Figure:
    """Draw the moving average of success per method (paper Figure 2).

    Parameters
    ----------
    curve
        Columns `method`, `t` (task), `mean`, `lo`, `hi` (success rate in [0, 1] and its interval over seeds).
    phases
        Columns `phase`, `start`, `end` (tasks, end exclusive).
    highlight
        Methods drawn in full with their band and, where it fits, a label at the end of the line. The others are
        thin and faint, and named in the legend.
    window
        Tasks per average, for the axis title.
    x_title
        Title of the task axis.

    Returns
    -------
    go.Figure
        Alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    fig = _curves(curve, phases, highlight, unit="success", decimals=2, top=1.0)
    _layout(fig, curve, highlight, x_title=x_title, y_title=f"Success rate ({window}-task average)")
    fig.update_yaxes(range=[-0.02, 1.04], tickvals=[0, 0.25, 0.5, 0.75, 1])
    return describe(
        fig,
        alt=success_alt_text(curve, phases, highlight, window=window),
        caption=success_caption(curve, phases, highlight, window=window),
    )


def memory_size(
    curve: pd.DataFrame, phases: pd.DataFrame, highlight: Sequence[str] = HIGHLIGHT, *, x_title: str = "Task"
) -> go.Figure:
    """Draw the number of active memories per method (paper Figure 6).

    Parameters
    ----------
    curve
        Columns `method`, `t` (task), `mean`, `lo`, `hi` (active memories and their interval over seeds).
    phases, highlight, x_title
        As in `success_curve`.

    Returns
    -------
    go.Figure
        Alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(curve, ["method", "t", "mean", "lo", "hi"])
    top = max(float(curve[["mean", "hi"]].max().max()) if len(curve) else 1.0, 1.0)
    fig = _curves(curve, phases, highlight, unit="active memories", decimals=1, top=top)
    _layout(fig, curve, highlight, x_title=x_title, y_title="Active memories (number)")
    fig.update_yaxes(range=[-0.02 * top, 1.04 * top])
    return describe(
        fig, alt=memory_alt_text(curve, phases, highlight), caption=memory_caption(curve, phases, highlight)
    )


def success_alt_text(
    curve: pd.DataFrame, phases: pd.DataFrame, highlight: Sequence[str] = HIGHLIGHT, *, window: int = 10
) -> str:
    """Say in words what `success_curve` shows: the mean success of every highlighted method in every phase."""
    return (
        f"Line chart of success, averaged over {window} tasks, for {_count(curve, 'method')} over "
        f"{_count(phases, 'phase')}. {_per_phase(curve, phases, highlight, decimals=2)}"
    ).strip()


def success_caption(
    curve: pd.DataFrame, phases: pd.DataFrame, highlight: Sequence[str] = HIGHLIGHT, *, window: int = 10
) -> str:
    """Say what to see in `success_curve`: where memory was worse than no memory, and by how much at worst."""
    what = f"Success averaged over {window} tasks; bands are intervals over seeds."
    table = curve.pivot_table(index="t", columns="method", values="mean")
    if "no_memory" not in table or table.empty:
        return what
    found = []
    for method in _drawn(curve, highlight):
        if method == "no_memory":
            continue
        gap = (table[method] - table["no_memory"]).dropna()
        if len(gap) and gap.min() < 0:
            found.append(
                f"{method_label(method)} is below no memory in {(gap < 0).mean():.0%} of the tasks, "
                f"by {-gap.min():.2f} at worst ({_place(gap.idxmin(), phases)})"
            )
    return f"{what} {'; '.join(found) if found else 'No highlighted method falls below no memory'}."


def memory_alt_text(curve: pd.DataFrame, phases: pd.DataFrame, highlight: Sequence[str] = HIGHLIGHT) -> str:
    """Say in words what `memory_size` shows: the mean number of active memories per highlighted method and phase."""
    return (
        f"Line chart of the number of active memories for {_count(curve, 'method')} over "
        f"{_count(phases, 'phase')}. {_per_phase(curve, phases, highlight, decimals=1)}"
    ).strip()


def memory_caption(curve: pd.DataFrame, phases: pd.DataFrame, highlight: Sequence[str] = HIGHLIGHT) -> str:
    """Say what to see in `memory_size`: how many memories each highlighted method can retrieve at the end."""
    last = curve.sort_values("t").dropna(subset="mean").groupby("method")["mean"].last()
    ends = [f"{method_label(method)} {last[method]:.1f}" for method in _drawn(curve, highlight) if method in last]
    what = "Memories that can be retrieved; revoked ones are kept in the archive and not counted."
    return f"{what} At the end: {', '.join(ends)}." if ends else what


def _drawn(curve: pd.DataFrame, highlight: Sequence[str]) -> list[str]:
    present = set(curve["method"])
    return [method for method in in_legend_order(highlight) if method in present]


def _count(table: pd.DataFrame, column: str) -> str:
    count = table[column].nunique() if column == "method" else len(table)
    return f"{count} {column}{'' if count == 1 else 's'}"


def _place(t: object, phases: pd.DataFrame) -> str:
    inside = phases[(phases["start"] <= t) & (phases["end"] > t)]
    return f"task {t} in {inside['phase'].iloc[0]}" if len(inside) else f"task {t}"


def _per_phase(curve: pd.DataFrame, phases: pd.DataFrame, highlight: Sequence[str], *, decimals: int) -> str:
    sentences = []
    for method in _drawn(curve, highlight):
        rows = curve[curve["method"] == method]
        means = [
            f"{phase} {part['mean'].mean():.{decimals}f}"
            for phase, start, end in zip(phases["phase"], phases["start"], phases["end"], strict=True)
            if len(part := rows[(rows["t"] >= start) & (rows["t"] < end)])
        ]
        if means:
            sentences.append(f"{method_label(method)}: {listed(means, limit=6)}.")
    return " ".join(sentences)


def _directly_labelled(curve: pd.DataFrame, highlight: Sequence[str]) -> list[str]:
    short = [method for method in _drawn(curve, highlight) if len(method_label(method)) <= LONGEST_DIRECT_LABEL]
    return short if len(short) * LINE_PX <= PLOT_PX else []


def _layout(fig: go.Figure, curve: pd.DataFrame, highlight: Sequence[str], *, x_title: str, y_title: str) -> None:
    labelled = _directly_labelled(curve, highlight)
    layout(fig, height=PLOT_PX, x_title=x_title, y_title=y_title)
    legend_below(fig, plot_px=PLOT_PX)
    # Text beside the plot does not push the margin, so its room is reserved.
    fig.update_layout(margin_r=max([8, *(16 + 7 * len(method_label(method)) for method in labelled)]))


def _curves(
    curve: pd.DataFrame, phases: pd.DataFrame, highlight: Sequence[str], *, unit: str, decimals: int, top: float
) -> go.Figure:
    require(curve, ["method", "t", "mean", "lo", "hi"])
    require(phases, ["phase", "start", "end"])
    fig = go.Figure()
    chosen = _drawn(curve, highlight)
    labelled = _directly_labelled(curve, highlight)
    quiet = [method for method in in_legend_order(curve["method"]) if method not in chosen]
    ends: dict[str, tuple[float, float]] = {}
    # The last drawn lies on top: the quiet first, then the highlighted with the first of the legend order last.
    for method in quiet + chosen[::-1]:
        style, label = method_style(method), method_label(method)
        rows = curve[curve["method"] == method].sort_values("t")
        known = rows.dropna(subset="mean")
        if len(known):
            ends[method] = (known["t"].iloc[-1], known["mean"].iloc[-1])
        band = rows.dropna(subset=["lo", "hi"])
        if method in chosen and len(band):
            fig.add_scatter(
                x=np.concatenate([band["t"], band["t"][::-1]]),
                y=np.concatenate([band["hi"], band["lo"][::-1]]),
                mode="lines",
                line_width=0,
                fill="toself",
                fillcolor=translucent(style.color, 0.18),
                hoverinfo="skip",
                name=f"{label}, interval",
                legendgroup=method,
                showlegend=False,
            )
        fig.add_scatter(
            x=rows["t"],
            y=rows["mean"],
            mode="lines",
            line={"color": style.color, "dash": style.dash, "width": style.width if method in chosen else 1.3},
            opacity=1.0 if method in chosen else 0.6,
            name=label,
            legendgroup=method,
            showlegend=method not in labelled,
            hoverinfo="text",
            hovertext=[
                f"<b>{label}</b><br>task {t}<br>{unit} {mean:.{decimals}f} [{lo:.{decimals}f}, {hi:.{decimals}f}]"
                for t, mean, lo, hi in zip(rows["t"], rows["mean"], rows["lo"], rows["hi"], strict=True)
            ],
        )
    at_end = [method for method in labelled if method in ends]
    places = spread([ends[method][1] for method in at_end], gap=LINE_PX / PLOT_PX * top, low=0.0, high=top)
    for method, place in zip(at_end, places, strict=True):
        fig.add_scatter(
            x=[ends[method][0]],
            y=[place],
            mode="text",
            text=[f"  {method_label(method)}"],
            textposition="middle right",
            textfont={"color": method_style(method).color, "size": 12},
            cliponaxis=False,
            hoverinfo="skip",
            name=f"{method_label(method)}, label",
            legendgroup=method,
            showlegend=False,
        )
    shade_phases(fig, phases)
    if len(curve):
        fig.update_xaxes(range=[curve["t"].min(), curve["t"].max()])
    else:
        fig.add_annotation(text=shown("No tasks to show."), xref="paper", yref="paper", x=0.5, y=0.5, showarrow=False)
    return fig
