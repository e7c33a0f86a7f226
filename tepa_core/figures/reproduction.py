"""A build beside the paper: filled marks with intervals are ours, hollow diamonds the reported numbers."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from tepa_core.figures.theme import (
    GREY,
    GRID,
    describe,
    in_legend_order,
    layout,
    legend_below,
    listed,
    method_label,
    method_style,
    records,
    require,
    shown,
    two_lines,
)

COLUMNS = ("group", "label", "method", "ours", "lo", "hi", "reported")
NOISE_COLUMNS = ("method", "percent", "ours", "lo", "hi", "reported")
TALLY_COLUMNS = ("table", "reported", "measured", "within")
OURS, PAPER = "this build, with interval", "the paper"
PAPER_COLOR = "#8c8c8c"
ROW_PX, TALL_ROW_PX, PLOT_PX = 29, 34, 290

#: Colour and pattern of the three verdicts on a reported number.
VERDICTS = (
    ("within", "#009E73", ""),
    ("outside", "#D55E00", "/"),
    ("not measured", "#8c8c8c", "."),
)


def beside_reported(
    rows: pd.DataFrame,
    *,
    x_title: str,
    zero_line: bool = False,
    stems: bool = False,
    whole: bool = False,
    decimals: int = 3,
) -> go.Figure:
    """Draw our value with its interval beside the reported one, a row each (paper Figures 4, 8 and 9).

    Parameters
    ----------
    rows
        Columns `group` (heading, rows of one group together), `label` (of the row), `method` (for the colour), `ours`,
        `lo`, `hi` (missing where not measured), `reported` (missing where the paper gives no number); optionally
        `reported_lo` and `reported_hi`.
    x_title
        Title of the value axis, with its unit.
    zero_line
        Mark zero, for differences and changes.
    stems
        Draw a stem from zero to our value (a lollipop).
    whole
        Show the whole range of a rate, from 0 to 1.
    decimals
        Of the numbers in the hover box.

    Returns
    -------
    go.Figure
        Points carry `[group, label]` as customdata; alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(rows, COLUMNS)
    ticks: list[str] = []
    places: list[int] = []
    headings: list[int] = []
    for group, part in rows.groupby("group", sort=False):
        if group:
            headings.append(len(ticks))
            ticks.append(f"<b>{shown(group, limit=26)}</b>")
        for label in part["label"]:
            places.append(len(ticks))
            ticks.append(two_lines(shown(label, limit=44), width=22))
    drawn = rows.assign(place=pd.Series(places, index=_grouped(rows).index, dtype="int64"))
    fig = go.Figure()
    if stems:
        fig.add_scatter(
            x=[x for value in drawn["ours"] for x in (0, value, None)],
            y=[y for place in drawn["place"] for y in (place, place, None)],
            mode="lines",
            line={"color": GRID, "width": 4},
            hoverinfo="skip",
            name="stem",
            showlegend=False,
        )
    fig.add_scatter(
        x=[edge for lo, hi in zip(drawn["lo"], drawn["hi"], strict=True) for edge in (lo, hi, None)],
        y=[edge for place in drawn["place"] for edge in (place, place, None)],
        mode="lines",
        line={"color": GREY, "width": 2},
        hoverinfo="skip",
        name="interval",
        showlegend=False,
    )
    spans = {"reported_lo", "reported_hi"} <= set(drawn.columns) and bool(drawn["reported_lo"].notna().any())
    if spans:
        fig.add_scatter(
            x=[e for lo, hi in zip(drawn["reported_lo"], drawn["reported_hi"], strict=True) for e in (lo, hi, None)],
            y=[edge for place in drawn["place"] for edge in (place + 0.24, place + 0.24, None)],
            mode="lines",
            line={"color": PAPER_COLOR, "width": 1.2, "dash": "dot"},
            hoverinfo="skip",
            name="the paper's interval",
        )
    hover = [_hover(row, decimals) for row in records(drawn)]
    named = bool(drawn["reported"].notna().any())
    fig.add_scatter(
        x=drawn["ours"],
        y=drawn["place"],
        mode="markers",
        cliponaxis=False,
        marker={"color": [method_style(method).color for method in drawn["method"]], "size": 10},
        customdata=drawn[["group", "label"]].to_numpy(),
        hoverinfo="text",
        hovertext=hover,
        name=OURS,
    )
    fig.add_scatter(
        x=drawn["reported"],
        y=drawn["place"] + (0.24 if spans else 0.0),
        mode="markers",
        cliponaxis=False,
        marker={"color": PAPER_COLOR, "size": 13, "symbol": "diamond-open", "line": {"width": 2, "color": PAPER_COLOR}},
        customdata=drawn[["group", "label"]].to_numpy(),
        hoverinfo="text",
        hovertext=hover,
        name=PAPER,
        showlegend=named,
    )
    if zero_line:
        line = {"color": GREY, "width": 2}
        fig.add_shape(type="line", x0=0, x1=0, y0=0, y1=1, yref="paper", line=line, layer="below", name="zero")
    for heading in headings[1:]:
        fig.add_hline(y=heading - 0.5, line={"color": GRID, "width": 1})
    height = (TALL_ROW_PX if any("<br>" in tick for tick in ticks) else ROW_PX) * max(len(ticks), 3)
    layout(fig, height=height, x_title=x_title)
    legend_below(fig, plot_px=height)
    fig.update_layout(margin_t=8)
    fig.update_xaxes(showgrid=True, nticks=6, range=[-0.03, 1.04] if whole else None)
    fig.update_yaxes(tickvals=list(range(len(ticks))), ticktext=ticks, range=[len(ticks) - 0.4, -0.6], showgrid=False)
    return describe(fig, alt=beside_alt_text(rows, decimals=decimals), caption=beside_caption(rows))


def beside_alt_text(rows: pd.DataFrame, *, decimals: int = 3) -> str:
    """Say in words what `beside_reported` shows: both numbers of every row."""
    cases = [
        f"{', '.join(filter(None, (row.group, row.label)))}: {_number(row.ours, decimals, 'not measured')}, "
        f"paper {_number(row.reported, decimals, 'no number')}."
        for row in records(_grouped(rows))
    ]
    return " ".join(["Dot plot of this build beside the paper.", *cases])


def beside_caption(rows: pd.DataFrame) -> str:
    """Say what to see in `beside_reported`: the largest distance between the two."""
    if rows["reported"].isna().all():
        return "Filled: this build with its 95 % interval. The paper draws this without printing its numbers."
    what = "Filled: this build with its 95 % interval. Hollow diamond: the paper."
    gap = (rows["ours"] - rows["reported"]).abs()
    if gap.dropna().empty:
        return f"{what} Nothing of it is measured yet."
    if gap.max() < 0.0005:
        return f"{what} They agree in every row."
    row = rows.iloc[int(gap.argmax())]
    where = f"{row['label']} ({row['group']})" if row["group"] else row["label"]
    return f"{what} Largest distance: {where}, {row['ours']:.3f} against {row['reported']:.3f}."


def noise_curves(rows: pd.DataFrame) -> go.Figure:
    """Draw success in reversal against the share of corrupted keys, per method.

    Parameters
    ----------
    rows
        Columns `method`, `percent` (corrupted keys), `ours`, `lo`, `hi`, `reported` (success rates; ours missing where
        not measured).

    Returns
    -------
    go.Figure
        Alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(rows, NOISE_COLUMNS)
    fig = go.Figure()
    for method in in_legend_order(rows["method"]):
        part = rows[rows["method"] == method].sort_values("percent")
        style, label = method_style(method), method_label(method)
        fig.add_scatter(
            x=part["percent"],
            y=part["ours"],
            mode="lines+markers",
            line={"color": style.color, "dash": style.dash, "width": style.width},
            marker={"size": 8},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": (part["hi"] - part["ours"]).clip(lower=0),
                "arrayminus": (part["ours"] - part["lo"]).clip(lower=0),
                "color": style.color,
                "thickness": 1.2,
                "width": 3,
            },
            hoverinfo="text",
            hovertext=[
                f"<b>{label}</b><br>{row.percent} % of keys corrupted<br>{_both(row, 3)}" for row in records(part)
            ],
            name=label,
        )
        fig.add_scatter(
            x=part["percent"],
            y=part["reported"],
            mode="markers",
            marker={"color": style.color, "size": 13, "symbol": "diamond-open", "line": {"width": 2}},
            hoverinfo="text",
            hovertext=[f"<b>{label}</b><br>the paper {value:.3f}" for value in part["reported"]],
            name=f"{label}, the paper",
            showlegend=False,
        )
    layout(fig, height=PLOT_PX, x_title="Corrupted keys (%)", y_title="Success in reversal (rate)")
    legend_below(fig, plot_px=PLOT_PX)
    fig.update_yaxes(range=[-0.02, 1.04])
    fig.update_xaxes(tickvals=sorted(set(rows["percent"])))
    return describe(fig, alt=noise_alt_text(rows), caption=noise_caption(rows))


def noise_alt_text(rows: pd.DataFrame) -> str:
    """Say in words what `noise_curves` shows: every method's values in order of the noise."""
    sentences = []
    for method in in_legend_order(rows["method"]):
        part = rows[rows["method"] == method].sort_values("percent")
        values = [
            f"{row.percent} % {_number(row.ours, 3, 'not measured')} (paper {row.reported:.3f})"
            for row in records(part)
        ]
        sentences.append(f"{method_label(method)}: {', '.join(values)}.")
    return " ".join(["Line chart of success in reversal against the share of corrupted keys.", *sentences])


def noise_caption(rows: pd.DataFrame) -> str:
    """Say what to see in `noise_curves`: how much each extreme of noise costs TEPA, and who leads then."""
    what = "Lines: this build with 95 % intervals. Hollow diamonds: the paper."
    known = rows.dropna(subset="ours")
    ours = known[known["method"] == "tepa"].sort_values("percent")
    if len(ours) < 2:
        return f"{what} The noisy runs are not made yet."
    last = known[known["percent"] == ours["percent"].iloc[-1]].set_index("method")["ours"]
    return (
        f"{what} With {ours['percent'].iloc[-1]} % of the keys corrupted TEPA falls from {ours['ours'].iloc[0]:.3f} to "
        f"{ours['ours'].iloc[-1]:.3f}; {method_label(str(last.idxmax()))} is best there."
    )


def tally_bars(tally: pd.DataFrame) -> go.Figure:
    """Draw how many reported numbers lie within our interval, table by table.

    Parameters
    ----------
    tally
        Columns `table`, `reported`, `measured`, `within` (counts).

    Returns
    -------
    go.Figure
        Alternative text and caption stand in `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(tally, TALLY_COLUMNS)
    counts = {
        "within": tally["within"],
        "outside": tally["measured"] - tally["within"],
        "not measured": tally["reported"] - tally["measured"],
    }
    rows = list(range(len(tally)))
    fig = go.Figure()
    for name, color, pattern in VERDICTS:
        fig.add_bar(
            orientation="h",
            x=counts[name],
            y=rows,
            width=0.7,
            marker={
                "color": color,
                "line": {"width": 0},
                "pattern": {"shape": pattern, "bgcolor": color, "fgcolor": "#ffffff"},
            },
            hoverinfo="text",
            hovertext=[
                f"<b>{shown(table)}</b><br>{n} {name}" for table, n in zip(tally["table"], counts[name], strict=True)
            ],
            name=name,
            showlegend=True,
        )
    height = 34 * max(len(tally), 1)
    layout(fig, height=height, x_title="Reported numbers (count)")
    legend_below(fig, plot_px=height)
    fig.update_layout(barmode="stack", margin_t=8)
    fig.update_yaxes(
        tickvals=rows,
        ticktext=[
            f"{two_lines(shown(row.table, limit=44), width=20)}: "
            + (f"{row.within} of {row.measured}" if row.measured else "open")
            for row in records(tally)
        ],
        range=[len(tally) - 0.5, -0.5],
        showgrid=False,
    )
    return describe(fig, alt=tally_alt_text(tally), caption=tally_caption(tally))


def tally_alt_text(tally: pd.DataFrame) -> str:
    """Say in words what `tally_bars` shows: the three counts of every table."""
    cases = [
        f"{row.table}: {row.within} of {row.measured} measured are within, {row.reported - row.measured} not measured."
        for row in records(tally)
    ]
    return " ".join(["Stacked bars of the paper's numbers by table.", *cases])


def tally_caption(tally: pd.DataFrame) -> str:
    """Say what to see in `tally_bars`: which tables agree throughout."""
    what = "Within: the reported number lies in our interval widened by 0.03 on both sides."
    whole = tally[(tally["within"] == tally["reported"]) & (tally["reported"] > 0)]["table"]
    return f"{what} Throughout: {listed(list(whole))}." if len(whole) else what


def _grouped(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows as they are drawn: groups in order of their first row."""
    order = {group: number for number, group in enumerate(dict.fromkeys(rows["group"]))}
    return rows.sort_values("group", key=lambda groups: groups.map(order), kind="stable")


def _number(value: float, decimals: int, none: str) -> str:
    return none if pd.isna(value) else f"{value:.{decimals}f}".replace("-", "−")


def _both(row: object, decimals: int) -> str:
    ours, lo, hi, reported = (getattr(row, name) for name in ("ours", "lo", "hi", "reported"))
    here = _number(ours, decimals, "not measured")
    span = "" if pd.isna(lo) else f" [{_number(lo, decimals, '')}, {_number(hi, decimals, '')}]"
    return f"this build {here}{span}<br>the paper {_number(reported, decimals, 'gives no number')}"


def _hover(row: object, decimals: int) -> str:
    group, label = getattr(row, "group", ""), getattr(row, "label", "")
    head = f"<b>{shown(label)}</b>" + (f", {shown(group)}" if group else "")
    return f"{head}<br>{_both(row, decimals)}"
