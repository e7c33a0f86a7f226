"""What revocation guarantees: the bound of P2 beside the measured gain, and P3's bound beside simulation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pandas as pd
import plotly.graph_objects as go

from tepa_core.figures.theme import (
    GREY,
    describe,
    layout,
    legend_below,
    listed,
    method_label,
    method_style,
    records,
    require,
    shown,
    translucent,
)

TERMS_COLUMNS = ("phase", "bound", "bound_lo", "bound_hi", "gain", "gain_lo", "gain_hi")
CURVE_COLUMNS = ("judged", "n", "share", "lo", "hi", "bound")
PLOT_PX = 270
BOUND_COLOR = "#D55E00"

#: Colour and dash of the ways of judging, by their order in the table.
JUDGED_STYLE: Mapping[int, tuple[str, str]] = MappingProxyType(
    {0: ("#0072B2", "solid"), 1: ("#009E73", "dash"), 2: ("#CC79A7", "dot")}
)


def gain_and_bound(terms: pd.DataFrame, revoking: str = "tepa", setting: float | None = None) -> go.Figure:
    """Draw the measured gain of revocation and its lower bound q * eta * delta, phase by phase (P2).

    Parameters
    ----------
    terms
        Columns `phase`, `bound`, `bound_lo`, `bound_hi`, `gain`, `gain_lo`, `gain_hi` (loss per task that revocation
        saves; bounds of the intervals may be missing).
    revoking
        The method that revokes, for its colour.
    setting
        A bound to mark as "your setting"; None for no mark.

    Returns
    -------
    go.Figure
        Alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(terms, TERMS_COLUMNS)
    rows = list(range(len(terms)))
    fig = go.Figure()
    for name, color, symbol, shift, label in (
        ("bound", BOUND_COLOR, "square-open", 0.16, "least gain, q · η · Δ"),
        ("gain", method_style(revoking).color, "circle", -0.16, f"measured gain of {method_label(revoking)}"),
    ):
        at = [row + shift for row in rows]
        spans = zip(terms[f"{name}_lo"], terms[f"{name}_hi"], strict=True)
        fig.add_scatter(
            x=[edge for lo, hi in spans for edge in (lo, hi, None)],
            y=[edge for y in at for edge in (y, y, None)],
            mode="lines",
            line={"color": color, "width": 2},
            hoverinfo="skip",
            name=f"{name}, interval",
            showlegend=False,
        )
        fig.add_scatter(
            x=terms[name],
            y=at,
            mode="markers",
            cliponaxis=False,
            marker={"color": color, "size": 11, "symbol": symbol, "line": {"width": 2, "color": color}},
            customdata=terms[["phase"]].to_numpy(),
            hoverinfo="text",
            hovertext=[
                f"<b>{shown(row.phase)}</b><br>{label} {getattr(row, name):.3f} "
                f"[{getattr(row, f'{name}_lo'):.3f}, {getattr(row, f'{name}_hi'):.3f}]"
                for row in records(terms)
            ],
            name=label,
            showlegend=True,
        )
    if setting is not None:
        fig.add_scatter(
            x=[setting, setting],
            y=[-0.5, len(terms) - 0.5],
            mode="lines",
            line={"color": GREY, "width": 2, "dash": "dash"},
            hoverinfo="text",
            hovertext=f"your setting: {setting:.3f}",
            name="your setting",
            showlegend=True,
        )
    line = {"color": GREY, "width": 1}
    fig.add_shape(type="line", x0=0, x1=0, y0=0, y1=1, yref="paper", line=line, layer="below", name="zero")
    height = 46 * max(len(terms), 2)
    layout(fig, height=height, x_title="Loss saved per task (share of tasks)")
    legend_below(fig, plot_px=height)
    fig.update_layout(margin_t=8)
    fig.update_xaxes(showgrid=True, nticks=6)
    fig.update_yaxes(
        tickvals=rows,
        ticktext=[shown(phase, limit=14) for phase in terms["phase"]],
        range=[len(terms) - 0.5, -0.5],
        showgrid=False,
    )
    return describe(fig, alt=gain_alt_text(terms), caption=gain_caption(terms))


def gain_alt_text(terms: pd.DataFrame) -> str:
    """Say in words what `gain_and_bound` shows: both numbers of every phase."""
    cases = [f"{row.phase}: gain {row.gain:.3f}, bound {row.bound:.3f}." for row in records(terms)]
    return " ".join(["Dot plot of the gain of revocation and its lower bound by phase.", *cases])


def gain_caption(terms: pd.DataFrame) -> str:
    """Say what to see in `gain_and_bound`: in which phases the gain is at least the bound."""
    kept = terms.loc[terms["gain"] >= terms["bound"] - 1e-12, "phase"].astype(str).tolist()
    broken = [str(phase) for phase in terms["phase"] if str(phase) not in kept]
    what = "The bound holds where the filled dot is not left of the hollow square:"
    if not broken:
        return f"{what} in every phase."
    return f"{what} {f'in {listed(kept)}, not in ' if kept else 'not in '}{listed(broken)}."


def false_revocation(curve: pd.DataFrame) -> go.Figure:
    """Draw P3's bound against simulation through the rule: how likely a value that still holds is archived.

    Parameters
    ----------
    curve
        Columns `judged` (the way of judging), `n` (outcomes), `share` (revoked), `lo`, `hi`, `bound`. Of the ways of
        judging, the first is what the bound speaks of.

    Returns
    -------
    go.Figure
        Alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(curve, CURVE_COLUMNS)
    fig = go.Figure()
    ways = list(dict.fromkeys(curve["judged"]))
    if ways:
        first = curve[curve["judged"] == ways[0]]
        fig.add_scatter(
            x=first["n"],
            y=first["bound"],
            mode="lines",
            line={"color": BOUND_COLOR, "dash": "longdash", "width": 3},
            hoverinfo="text",
            hovertext=[
                f"bound after {n} outcomes: {bound:.4f}" for n, bound in zip(first["n"], first["bound"], strict=True)
            ],
            name="bound, exp(−2nε²)",
        )
    for number, way in enumerate(ways):
        part = curve[curve["judged"] == way]
        color, dash = JUDGED_STYLE.get(number, (GREY, "dashdot"))
        fig.add_scatter(
            x=[*part["n"], *part["n"][::-1]],
            y=[*part["hi"], *part["lo"][::-1]],
            mode="lines",
            line_width=0,
            fill="toself",
            fillcolor=translucent(color, 0.18),
            hoverinfo="skip",
            name=f"{way}, interval",
            showlegend=False,
        )
        fig.add_scatter(
            x=part["n"],
            y=part["share"],
            mode="lines+markers",
            line={"color": color, "dash": dash, "width": 2.2},
            marker={"size": 6},
            hoverinfo="text",
            hovertext=[
                f"<b>{shown(way)}</b><br>{row.n} outcomes<br>revoked {row.share:.4f} [{row.lo:.4f}, {row.hi:.4f}]"
                for row in records(part)
            ],
            name=shown(way),
        )
    layout(fig, height=PLOT_PX, x_title="Outcomes n of a value that still holds", y_title="Probability")
    legend_below(fig, plot_px=PLOT_PX)
    fig.update_layout(margin_t=8)
    fig.update_yaxes(range=[-0.02, 1.04])
    return describe(fig, alt=false_alt_text(curve), caption=false_caption(curve))


def false_alt_text(curve: pd.DataFrame) -> str:
    """Say in words what `false_revocation` shows: all curves at their last n."""
    if curve.empty:
        return "Line chart of the false-revocation probability; there is nothing to show."
    last = curve[curve["n"] == curve["n"].max()]
    cases = [f"{row.judged} {row.share:.4f}" for row in records(last)]
    return (
        "Line chart of the probability that a value which still holds is revoked. "
        f"After {last['n'].iloc[0]} outcomes: bound {last['bound'].iloc[0]:.4f}, simulated {', '.join(cases)}."
    )


def false_caption(curve: pd.DataFrame) -> str:
    """Say what to see in `false_revocation`: whether one judgement stays under the bound."""
    what = "The bound speaks of one judgement after n outcomes; the rule judges after every conflict."
    if curve.empty:
        return what
    once = curve[curve["judged"] == curve["judged"].iloc[0]]
    above = once[once["lo"] > once["bound"]]
    if above.empty:
        return f"{what} Judged once, the simulation stays under the bound at every n."
    return f"{what} Judged once, the simulation lies above the bound at n = {listed([str(n) for n in above['n']])}."
