"""Methods by phase: success with intervals (paper Figures 3 and 7), pollution, paired differences (paper Figure 9)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from tepa_core.figures.theme import (
    GREY,
    GRID,
    HARM,
    SHADE,
    describe,
    in_legend_order,
    layout,
    listed,
    method_label,
    method_style,
    records,
    require,
    shown,
    translucent,
    two_lines,
)

REVERSAL = "reversal"
BASELINE = "no_memory"
SUMMARY_COLUMNS = ("method", "phase", "mean", "lo", "hi")
MPI_COLUMNS = ("method", "phase", "mpi", "lo", "hi")
COMPARISON_COLUMNS = ("a", "b", "scope", "diff", "lo", "hi", "p_holm", "dz")
SIGNIFICANT = 0.05
ROW_PX = 31
MINUS = "−"


def method_order(summary: pd.DataFrame, *, phase: str = REVERSAL) -> list[str]:
    """Return the methods by mean success in a phase, best first; by overall mean where the phase does not exist.

    Methods that tie keep the legend order.

    Examples
    --------
    >>> table = pd.DataFrame({"method": ["append_only", "tepa"], "phase": ["reversal"] * 2, "mean": [0.2, 0.95]})
    >>> method_order(table)
    ['tepa', 'append_only']
    """
    require(summary, ["method", "phase", "mean"])
    part = summary[summary["phase"] == phase] if (summary["phase"] == phase).any() else summary
    success = part.groupby("method")["mean"].mean()
    return sorted(in_legend_order(summary["method"]), key=lambda method: -success.get(method, float("-inf")))


def dot_interval(summary: pd.DataFrame, *, highlight_phase: str = REVERSAL, level: float = 0.95) -> go.Figure:
    """Draw success per method (rows) and phase (columns) as dots with intervals (paper Figure 3).

    Rows are ordered by success in the highlighted phase. A dashed line through each column marks no memory; a dot to
    the left of it is pollution and drawn hollow.

    Parameters
    ----------
    summary
        Columns `method`, `phase`, `mean`, `lo`, `hi` (success rate in [0, 1]); phases in the order of the columns.
    highlight_phase
        Phase that orders the rows and is set off.
    level
        Level of the intervals, for the axis title.

    Returns
    -------
    go.Figure
        Dots carry `[method, phase]` as customdata; alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(summary, SUMMARY_COLUMNS)
    methods = method_order(summary, phase=highlight_phase)
    names = list(dict.fromkeys(summary["phase"]))
    row = {method: number for number, method in enumerate(methods)}
    fig = make_subplots(rows=1, cols=max(len(names), 1), shared_yaxes=True, horizontal_spacing=0.02)
    for column, phase in enumerate(names, start=1):
        part = summary[summary["phase"] == phase]
        reference = _reference(part)
        rows = [row[method] for method in part["method"]]
        fig.add_scatter(
            x=[edge for lo, hi in zip(part["lo"], part["hi"], strict=True) for edge in (lo, hi, None)],
            y=[edge for number in rows for edge in (number, number, None)],
            mode="lines",
            line={"color": GREY, "width": 2},
            hoverinfo="skip",
            name=f"{shown(phase)}, interval",
            showlegend=False,
            row=1,
            col=column,
        )
        polluted = ((part["method"] != BASELINE) & (part["mean"] < reference)).tolist()
        colors = [method_style(method).color for method in part["method"]]
        fig.add_scatter(
            x=part["mean"],
            y=rows,
            mode="markers",
            cliponaxis=False,
            marker={
                "color": colors,
                "size": 10,
                "symbol": ["circle-open" if worse else "circle" for worse in polluted],
                "line": {"color": colors, "width": [2.5 if worse else 0 for worse in polluted]},
            },
            customdata=part[["method", "phase"]].to_numpy(),
            hoverinfo="text",
            hovertext=[
                f"<b>{method_label(method)}</b>, {shown(phase)}<br>success {mean:.3f} [{lo:.3f}, {hi:.3f}]"
                + ("<br>worse than no memory" if worse else "")
                for method, mean, lo, hi, worse in zip(
                    part["method"], part["mean"], part["lo"], part["hi"], polluted, strict=True
                )
            ],
            name=shown(phase),
            showlegend=False,
            row=1,
            col=column,
        )
        if reference > float("-inf"):
            fig.add_shape(
                type="line",
                x0=reference,
                x1=reference,
                y0=0,
                y1=1,
                xref=f"x{'' if column == 1 else column}",
                yref="paper",
                line={"color": method_style(BASELINE).color, "dash": "dash", "width": 1.5},
                name="no memory",
            )
        _column_title(fig, phase, column, strong=phase == highlight_phase)
    layout(fig, height=90 + ROW_PX * max(len(methods), 1))
    fig.update_xaxes(range=[-0.08, 1.08], tickvals=[0, 0.5, 1], ticktext=["0", ".5", "1"], showgrid=True)
    _method_rows(fig, methods)
    _common_x_title(fig, f"Success rate ({level:.0%} interval)")
    return describe(
        fig,
        alt=dot_interval_alt_text(summary, highlight_phase=highlight_phase),
        caption=dot_interval_caption(summary, highlight_phase=highlight_phase),
    )


def dot_interval_alt_text(summary: pd.DataFrame, *, highlight_phase: str = REVERSAL) -> str:
    """Say in words what `dot_interval` shows: the ranking in the highlighted phase."""
    return f"Dot plot with intervals of success by method and phase. {_ranking(summary, highlight_phase)}"


def dot_interval_caption(summary: pd.DataFrame, *, highlight_phase: str = REVERSAL) -> str:
    """Say what to see in `dot_interval`: which methods lie left of no memory in the highlighted phase."""
    part = summary[summary["phase"] == highlight_phase]
    reference = _reference(part)
    what = "Left of the dashed no-memory line is pollution (hollow dots)."
    if reference == float("-inf"):
        return what
    others = part[part["method"] != BASELINE]
    worse = in_legend_order(others.loc[others["mean"] < reference, "method"])
    count = f"{len(worse)} of {len(others)} methods {'is' if len(worse) == 1 else 'are'} there"
    return f"{what} In {highlight_phase}, {count}{': ' + listed([method_label(m) for m in worse]) if worse else ''}."


def heatmap(summary: pd.DataFrame, *, highlight_phase: str = REVERSAL) -> go.Figure:
    """Draw success per method (rows) and phase (columns) as a heatmap with numbers (paper Figure 7).

    Parameters
    ----------
    summary
        Columns `method`, `phase`, `mean`, `lo`, `hi` (success rate in [0, 1]).
    highlight_phase
        Phase that orders the rows.

    Returns
    -------
    go.Figure
        Alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(summary, SUMMARY_COLUMNS)
    methods = method_order(summary, phase=highlight_phase)
    names = list(dict.fromkeys(summary["phase"]))
    cells = {(row.method, row.phase): (f"{row.mean:.3f}", f"{row.lo:.3f}", f"{row.hi:.3f}") for row in records(summary)}
    mean = summary.pivot_table(index="method", columns="phase", values="mean").reindex(index=methods, columns=names)
    hover = [
        [
            f"<b>{method_label(method)}</b>, {shown(phase)}<br>"
            + ("success {} [{}, {}]".format(*cells[method, phase]) if (method, phase) in cells else "not run")
            for phase in names
        ]
        for method in methods
    ]
    fig = go.Figure(
        go.Heatmap(
            z=mean.to_numpy(),
            x=list(range(len(names))),
            y=list(range(len(methods))),
            zmin=0,
            zmax=1,
            colorscale="Cividis",
            showscale=False,
            xgap=2,
            ygap=2,
            texttemplate="%{z:.3f}",
            hoverinfo="text",
            hovertext=hover,
        )
    )
    layout(fig, height=70 + ROW_PX * max(len(methods), 1), x_title="Phase (success rate, 0 to 1)")
    fig.update_xaxes(
        tickvals=list(range(len(names))), ticktext=[shown(name, limit=14) for name in names], showgrid=False
    )
    _method_rows(fig, methods)
    fig.update_yaxes(showgrid=False)
    alt = heatmap_alt_text(summary, highlight_phase=highlight_phase)
    return describe(fig, alt=alt, caption=heatmap_caption(summary))


def heatmap_alt_text(summary: pd.DataFrame, *, highlight_phase: str = REVERSAL) -> str:
    """Say in words what `heatmap` shows: the ranking in the highlighted phase."""
    return f"Heatmap of success by method and phase. {_ranking(summary, highlight_phase)}"


def heatmap_caption(summary: pd.DataFrame) -> str:
    """Say what to see in `heatmap`: the weakest cell, and the method with the best worst phase."""
    what = "Success rate; brighter is better."
    known = summary.dropna(subset="mean")
    if known.empty:
        return what
    low = known.iloc[int(known["mean"].argmin())]
    floor = known.groupby("method")["mean"].min()
    steady = max(in_legend_order(known["method"]), key=lambda method: floor[method])
    return (
        f"{what} Lowest: {method_label(low['method'])} in {low['phase']} ({low['mean']:.3f}). "
        f"Best in its worst phase: {method_label(steady)} ({floor[steady]:.3f})."
    )


def mpi_bars(mpi: pd.DataFrame, *, level: float = 0.95) -> go.Figure:
    """Draw the memory pollution index per phase and method as bars that diverge from zero (paper section 3.4).

    Parameters
    ----------
    mpi
        Columns `method`, `phase`, `mpi`, `lo`, `hi`; MPI is the share of the no-memory success that is lost, positive
        where memory is worse than none. `no_memory` itself is the zero line and not drawn. A missing MPI (no memory
        never succeeds in the phase) is written as "undefined".
    level
        Level of the intervals, for the axis title.

    Returns
    -------
    go.Figure
        Bars carry `[method, phase]` as customdata; alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(mpi, MPI_COLUMNS)
    drawn = _without_baseline(mpi)
    names = list(dict.fromkeys(drawn["phase"]))
    methods = in_legend_order(drawn["method"])
    place: dict[tuple[str, str], int] = {}
    headings: dict[str, int] = {}
    ticks: list[str] = []
    for phase in names:
        headings[phase] = len(ticks)
        ticks.append(f"<b>{shown(phase, limit=20)}</b>")
        part = drawn[drawn["phase"] == phase].set_index("method")["mpi"]
        for method in methods:
            if method in part.index:
                place[(method, phase)] = len(ticks)
                ticks.append(f"{_short(method)}  {_signed(part[method], 2)}")
    harmful = drawn["mpi"] > 0
    colors = [method_style(method).color for method in drawn["method"]]
    fig = go.Figure(
        go.Bar(
            orientation="h",
            x=drawn["mpi"],
            y=[place[pair] for pair in zip(drawn["method"], drawn["phase"], strict=True)],
            width=0.72,
            marker={
                "color": colors,
                "line": {"width": 0},
                "pattern": {"shape": ["/" if worse else "" for worse in harmful], "fgcolor": "#ffffff"},
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "array": (drawn["hi"] - drawn["mpi"]).clip(lower=0),
                "arrayminus": (drawn["mpi"] - drawn["lo"]).clip(lower=0),
                "color": GREY,
                "thickness": 1.5,
                "width": 3,
            },
            customdata=drawn[["method", "phase"]].to_numpy(),
            hoverinfo="text",
            hovertext=[
                f"<b>{method_label(row.method)}</b>, {shown(row.phase)}<br>MPI {_signed(row.mpi, 3)} "
                f"[{_signed(row.lo, 3)}, {_signed(row.hi, 3)}]"
                f"<br>{'worse' if row.mpi > 0 else 'not worse'} than no memory"
                for row in records(drawn)
            ],
            name="MPI",
            showlegend=False,
        )
    )
    reach = drawn[["mpi", "lo", "hi"]].stack().dropna()
    low, high = min(reach.min(), 0.0) if len(reach) else -1.0, max(reach.max(), 0.0) if len(reach) else 1.0
    margin = 0.06 * (high - low) or 0.5
    low, high = low - margin, max(high, 0.12 * (high - low)) + margin
    fig.add_shape(
        type="rect",
        x0=0,
        x1=high,
        y0=0,
        y1=1,
        yref="paper",
        fillcolor=translucent(HARM, 0.12),
        line_width=0,
        layer="below",
        name="worse than no memory",
    )
    fig.add_shape(type="line", x0=0, x1=0, y0=0, y1=1, yref="paper", line={"color": GREY, "width": 2}, name="no memory")
    for phase in names[1:]:
        fig.add_hline(y=headings[phase] - 0.5, line={"color": GRID, "width": 1})
    fig.add_annotation(
        text="worse than no memory →",
        x=1,
        xref="paper",
        xanchor="right",
        y=1,
        yref="paper",
        yanchor="bottom",
        showarrow=False,
        font_size=12,
    )
    layout(
        fig,
        height=90 + 19 * max(len(ticks), 3),
        x_title=f"MPI: share of success lost<br>({level:.0%} interval)",
    )
    fig.update_xaxes(range=[low, high], showgrid=True, nticks=6)
    fig.update_yaxes(tickvals=list(range(len(ticks))), ticktext=ticks, range=[len(ticks) - 0.5, -0.6], showgrid=False)
    return describe(fig, alt=mpi_alt_text(mpi), caption=mpi_caption(mpi))


def mpi_alt_text(mpi: pd.DataFrame) -> str:
    """Say in words what `mpi_bars` shows: the worst and the best method of every phase."""
    sentences = []
    drawn = _without_baseline(mpi).dropna(subset="mpi")
    for phase, part in drawn.groupby("phase", sort=False):
        worst, best = part.iloc[int(part["mpi"].argmax())], part.iloc[int(part["mpi"].argmin())]
        sentences.append(
            f"{phase}: from {_signed(best['mpi'], 2)} ({method_label(best['method'])}) "
            f"to {_signed(worst['mpi'], 2)} ({method_label(worst['method'])})."
        )
    what = "Bar chart of the memory pollution index by phase and method; above zero is worse than no memory."
    return " ".join([what, *sentences])


def mpi_caption(mpi: pd.DataFrame) -> str:
    """Say what to see in `mpi_bars`: where memory did harm beyond its interval, and where MPI has no value."""
    drawn = _without_baseline(mpi)
    sentences = ["MPI above zero (hatched) means worse than no memory."]
    harm = drawn[drawn["lo"] > 0].sort_values("mpi", ascending=False)
    if len(harm):
        cases = [f"{method_label(row.method)} in {row.phase} ({_signed(row.mpi, 2)})" for row in records(harm)]
        sentences.append(f"Harm beyond the interval: {listed(cases)}.")
    else:
        sentences.append("No method does harm beyond its interval.")
    undefined = list(dict.fromkeys(drawn.loc[drawn["mpi"].isna(), "phase"]))
    if undefined:
        sentences.append(f"Undefined in {listed(undefined)}, where no memory never succeeds.")
    return " ".join(sentences)


def forest(comparisons: pd.DataFrame, *, level: float = 0.95) -> go.Figure:
    """Draw paired differences in success with intervals and corrected p values (paper Figure 9).

    Parameters
    ----------
    comparisons
        Columns `a`, `b` (methods), `scope` (phase or "overall"), `diff`, `lo`, `hi` (success of a minus b, in [-1, 1]),
        `p_holm` (Holm-corrected p value), `dz` (Cohen's d_z). Drawn in this order, from the top.
    level
        Level of the intervals, for the axis title.

    Returns
    -------
    go.Figure
        Points are filled where `p_holm` < 0.05 and carry `[a, b, scope]` as customdata; alternative text and caption
        stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(comparisons, COMPARISON_COLUMNS)
    rows = list(range(len(comparisons)))
    sure = [bool(p < SIGNIFICANT) for p in comparisons["p_holm"]]
    colors = [method_style(method).color for method in comparisons["a"]]
    fig = go.Figure()
    fig.add_scatter(
        x=[edge for lo, hi in zip(comparisons["lo"], comparisons["hi"], strict=True) for edge in (lo, hi, None)],
        y=[edge for number in rows for edge in (number, number, None)],
        mode="lines",
        line={"color": GREY, "width": 2},
        hoverinfo="skip",
        name=f"{level:.0%} interval",
        showlegend=False,
    )
    fig.add_scatter(
        x=comparisons["diff"],
        y=rows,
        mode="markers+text",
        text=[f"{_signed(row.diff, 3)}, {p_text(row.p_holm)}" for row in records(comparisons)],
        textposition="top center",
        textfont_size=11,
        cliponaxis=False,
        marker={
            "color": colors,
            "size": 10,
            "symbol": ["diamond" if is_sure else "diamond-open" for is_sure in sure],
            "line": {"color": colors, "width": [0 if is_sure else 2 for is_sure in sure]},
        },
        customdata=comparisons[["a", "b", "scope"]].to_numpy(),
        hoverinfo="text",
        hovertext=[
            f"<b>{method_label(row.a)} {MINUS} {method_label(row.b)}</b>, {shown(row.scope)}"
            f"<br>difference {_signed(row.diff, 3)} [{_signed(row.lo, 3)}, {_signed(row.hi, 3)}]"
            f"<br>{p_text(row.p_holm)} (Holm), d<sub>z</sub> {_signed(row.dz, 2)}"
            for row in records(comparisons)
        ],
        name="paired difference",
        showlegend=False,
    )
    low = min(comparisons["lo"].min(), 0.0) if rows else -1.0
    high = max(comparisons["hi"].max(), 0.0) if rows else 1.0
    # Room for half a printed value beside the outermost points, also on a narrow screen.
    margin = 0.26 * (high - low) or 0.5
    line = {"color": GREY, "width": 2}
    fig.add_shape(type="line", x0=0, x1=0, y0=0, y1=1, yref="paper", line=line, layer="below", name="no difference")
    title = f"Difference in success rate<br>(paired, {level:.0%} interval)"
    layout(fig, height=80 + 50 * max(len(rows), 1), x_title=title)
    fig.update_layout(margin_t=8)
    fig.update_xaxes(range=[low - margin, high + margin], showgrid=True, nticks=6)
    fig.update_yaxes(
        tickvals=rows,
        ticktext=[
            f"{_difference(row.a, row.b)}<br><i>{shown(row.scope, limit=20)}</i>" for row in records(comparisons)
        ],
        range=[len(rows) - 0.5, -0.7],
        showgrid=False,
    )
    return describe(fig, alt=forest_alt_text(comparisons), caption=forest_caption(comparisons))


def forest_alt_text(comparisons: pd.DataFrame) -> str:
    """Say in words what `forest` shows: every difference with its interval."""
    cases = [
        f"{method_label(row.a)} minus {method_label(row.b)}, {row.scope}: {_signed(row.diff, 3)} "
        f"[{_signed(row.lo, 3)}, {_signed(row.hi, 3)}], {p_text(row.p_holm)}."
        for row in records(comparisons)
    ]
    return " ".join(["Forest plot of paired differences in success.", *cases])


def forest_caption(comparisons: pd.DataFrame) -> str:
    """Say what to see in `forest`: how many differences hold after correction."""
    sure = int((comparisons["p_holm"] < SIGNIFICANT).sum())
    return (
        f"Right of zero the first method is better. Filled: p < .05 after Holm's correction "
        f"({sure} of {len(comparisons)} differences)."
    )


def p_text(p: float) -> str:
    """Write a p value the way papers do.

    Examples
    --------
    >>> p_text(0.0004), p_text(0.0213), p_text(1.0)
    ('p < .001', 'p = .021', 'p = 1.000')
    """
    if p < 0.001:
        return "p < .001"
    return f"p = {p:.3f}".replace("= 0.", "= .")


def _signed(number: float, decimals: int) -> str:
    if pd.isna(number):
        return "undefined"
    text = f"{number:+.{decimals}f}".replace("-", MINUS)
    return text[1:] if float(f"{number:.{decimals}f}") == 0 else text


def _short(method: str) -> str:
    label = method_label(method)
    return label if len(label) <= 23 else label.replace("last write wins", "LWW")


def _difference(a: str, b: str) -> str:
    first, second = _short(a), _short(b)
    return f"{first} {MINUS}{'<br>' if len(first) + len(second) > 18 else ' '}{second}"


def _reference(part: pd.DataFrame) -> float:
    values = part.loc[part["method"] == BASELINE, "mean"]
    return float(values.iloc[0]) if len(values) else float("-inf")


def _without_baseline(mpi: pd.DataFrame) -> pd.DataFrame:
    return mpi[mpi["method"] != BASELINE]


def _ranking(summary: pd.DataFrame, phase: str) -> str:
    part = summary[summary["phase"] == phase].set_index("method")["mean"]
    places = [f"{method_label(m)} {part[m]:.3f}" for m in method_order(summary, phase=phase) if m in part.index]
    return f"In {phase}, best first: {', '.join(places)}." if places else f"The phase {phase} is not in the data."


def _method_rows(fig: go.Figure, methods: Sequence[str]) -> None:
    fig.update_yaxes(
        tickvals=list(range(len(methods))),
        ticktext=[two_lines(method_label(method)) for method in methods],
        range=[len(methods) - 0.5, -0.5],
    )


def _column_title(fig: go.Figure, phase: str, column: int, *, strong: bool) -> None:
    axis = "x" if column == 1 else f"x{column}"
    name = shown(phase, limit=12)
    fig.add_annotation(
        text=f"<b>{name}</b>" if strong else name,
        hovertext=shown(phase),
        x=0.5,
        xref=f"{axis} domain",
        y=1,
        yref="paper",
        yanchor="bottom",
        showarrow=False,
        font_size=12,
    )
    if strong:
        fig.add_shape(
            type="rect",
            x0=0,
            x1=1,
            xref=f"{axis} domain",
            y0=0,
            y1=1,
            yref="paper",
            fillcolor=SHADE,
            line_width=0,
            layer="below",
            name="highlighted phase",
        )


def _common_x_title(fig: go.Figure, title: str) -> None:
    # One title under all columns; an axis title would stand under one of them.
    fig.add_annotation(
        text=title,
        x=0.5,
        xref="paper",
        y=0,
        yref="paper",
        yanchor="top",
        yshift=-24,
        showarrow=False,
        font_size=14,
        name="x title",
    )
    fig.update_layout(margin_b=52)
