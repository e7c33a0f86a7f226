"""The look of every figure, once: colours, labels, phase shading, layout.

Backgrounds are transparent and text without a colour of its own takes the page's, so that one figure serves the light
and the dark theme. The greys used for lines lie half way between both backgrounds for the same reason.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from tepa_core.inert import END, ISOLATE, isolated, one_line

GREY = "#8c8c8c"
GRID = "rgba(128, 128, 128, 0.22)"
SHADE = "rgba(128, 128, 128, 0.11)"
HARM = "#D55E00"
INK_ON_COLOR = "#000000"

# The narrowest plot a label has to fit into: a telephone, less axis labels and margins.
NARROWEST_PLOT_PX = 230
NARROWEST_PAGE_PX = 300.0
CHARACTER_PX = 6.6
AXIS_TITLE_PX = 48
LEGEND_ROW_PX = 19
LEGEND_ITEM_PX = 45

_ISOLATION = ISOLATE + END


@dataclass(frozen=True, slots=True)
class Style:
    """How one method is drawn: colour, dash and width in pixels."""

    color: str
    dash: str
    width: float


@dataclass(frozen=True, slots=True)
class StateStyle:
    """How one state of a precedent is drawn; the letter and the pattern say it without colour."""

    color: str
    pattern: str
    letter: str
    label: str
    symbol: str
    outlined: bool


METHOD_STYLE: Mapping[str, Style] = MappingProxyType(
    {
        "tepa": Style("#0072B2", "solid", 3.2),
        "tepa_full": Style("#56B4E9", "solid", 2.2),
        "tepa_norev": Style("#7f7f7f", "longdash", 1.6),
        "no_memory": Style("#8c8c8c", "dash", 2.2),
        "append_only": Style("#D55E00", "solid", 2.2),
        "last_write_wins": Style("#E69F00", "solid", 2.0),
        "lww_validated": Style("#9a9a9a", "longdashdot", 1.6),
        "reactive_forgetting": Style("#CC79A7", "solid", 2.0),
        "oracle_reset": Style("#808080", "dot", 2.2),
        "temporal_recency": Style("#9a9a9a", "dashdot", 1.6),
        "semantic_retrieval": Style("#868686", "5px,2px", 1.6),
        "sliding_window": Style("#949494", "2px,2px", 1.6),
        "conflict_aware_recency": Style("#7f7f7f", "8px,3px,2px,3px", 1.6),
        "win_stay_lose_shift": Style("#8a8a8a", "solid", 1.6),
    }
)
"""Colour, dash and width per method id, in the order methods are listed in legends."""

METHOD_LABEL: Mapping[str, str] = MappingProxyType(
    {
        "tepa": "TEPA",
        "tepa_full": "TEPA-Full",
        "tepa_norev": "TEPA-NoRev",
        "no_memory": "no memory",
        "append_only": "append-only",
        "last_write_wins": "last write wins",
        "lww_validated": "last write wins, validated",
        "reactive_forgetting": "reactive forgetting",
        "oracle_reset": "oracle reset",
        "temporal_recency": "temporal recency",
        "semantic_retrieval": "semantic retrieval",
        "sliding_window": "sliding window",
        "conflict_aware_recency": "conflict-aware recency",
        "win_stay_lose_shift": "win-stay lose-shift",
    }
)
"""What a person reads for each method id."""

STATE_STYLE: Mapping[str, StateStyle] = MappingProxyType(
    {
        "candidate": StateStyle("#949494", "", "C", "Candidate", "circle", outlined=True),
        "hypothesis": StateStyle("#E69F00", "", "H", "Hypothesis", "diamond", outlined=False),
        "active": StateStyle("#009E73", "", "A", "Active", "circle", outlined=False),
        "deprecated": StateStyle("#CC79A7", "/", "D", "Deprecated", "triangle-down", outlined=False),
        "revoked": StateStyle("#D55E00", "", "R", "Revoked", "square", outlined=True),
    }
)
"""Colour, pattern, letter and label per state of a precedent."""

VALUE_COLORS: tuple[str, ...] = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#8C6BB1",
    "#A6761D",
    "#2AA198",
    "#E7298A",
    "#66A61E",
    "#8c8c8c",
)
"""Colours of the values of one key, in order of their first appearance."""


def method_style(method: str) -> Style:
    """Return the style of a method; one that is not in `METHOD_STYLE` is drawn in grey."""
    return METHOD_STYLE.get(method, Style("#909090", "dot", 1.6))


def method_label(method: str) -> str:
    """Return the label of a method, safe in a figure and on a page: nobody has registered what could be obeyed there.

    Examples
    --------
    >>> method_label("append_only"), method_label("my_own_method"), method_label("<i>![x](y)")
    ('append-only', 'my own method', '&lt;i&gt; x y')
    """
    return METHOD_LABEL.get(method) or shown(re.sub(r"[^\w<>&/-]|_", " ", method), limit=28)


def in_legend_order(methods: Iterable[str]) -> list[str]:
    """Return the distinct methods in the order of `METHOD_STYLE`, unknown ones last in the order they came."""
    order = {method: position for position, method in enumerate(METHOD_STYLE)}
    return sorted(dict.fromkeys(methods), key=lambda method: order.get(method, len(order)))


def shown(text: object, *, limit: int = 160, width: int | None = None) -> str:
    """Return somebody's text as a figure may show it: one line, shortened, without markup.

    Plotly renders a subset of HTML in labels and hover boxes, so `&`, `<` and `>` become entities. Quotes stay, because
    plotly.js would show their entities as they are.

    Parameters
    ----------
    text
        Anything with a `str`.
    limit
        Most characters kept; a longer text ends in an ellipsis.
    width
        Break lines after this many characters (`<br>`); None for one line.

    Examples
    --------
    >>> shown("likes <b>tea</b>")
    'likes &lt;b&gt;tea&lt;/b&gt;'
    >>> shown("oolong and sencha", limit=7)
    'oolong…'
    """
    line = one_line(text, limit)
    lines = [line] if width is None else [isolated(part.strip(_ISOLATION)) for part in textwrap.wrap(line, width)]
    return "<br>".join(html.escape(part, quote=False) for part in lines)


def two_lines(label: str, *, width: int = 15) -> str:
    """Break a label of several words near the middle when it is longer than `width` characters."""
    if len(label) <= width or " " not in label:
        return label
    spaces = [position for position, character in enumerate(label) if character == " "]
    middle = min(spaces, key=lambda position: abs(position - len(label) / 2))
    return f"{label[:middle]}<br>{label[middle + 1 :]}"


def translucent(color: str, alpha: float) -> str:
    """Return `#rrggbb` as an rgba colour.

    Examples
    --------
    >>> translucent("#0072B2", 0.2)
    'rgba(0, 114, 178, 0.2)'
    """
    red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {alpha:g})"


def require(df: pd.DataFrame, columns: Sequence[str]) -> None:
    """Check that a table has the columns a figure is drawn from.

    Raises
    ------
    ValueError
        If one is missing; the message names every missing column and those the table has.
    """
    missing = [column for column in columns if column not in df.columns]
    if missing:
        present = ", ".join(map(str, df.columns)) or "no columns at all"
        raise ValueError(f"This figure needs the columns {', '.join(missing)}. The table has {present}.")


def records(table: pd.DataFrame) -> Iterator[Any]:
    """Iterate over the rows of a table with its columns as attributes."""
    return table.itertuples(index=False)


def clock(x: pd.Series[Any]) -> pd.Series[Any]:
    """Return an axis column as plotly can place it: times lose their zone and keep their wall clock.

    Plotly.js has no time zones; the axis title is the place that names the zone.
    """
    return x.dt.tz_localize(None) if isinstance(x.dtype, pd.DatetimeTZDtype) else x


def is_time(x: pd.Series[Any]) -> bool:
    """Return whether an axis column holds times (else it holds task numbers)."""
    return bool(pd.api.types.is_datetime64_any_dtype(x.dtype))


def at(x: Any) -> str:
    """Return one place of the x axis in words: a task number, or a time to the second with empty seconds left out."""
    if isinstance(x, pd.Timestamp):
        return x.strftime("%Y-%m-%d %H:%M:%S" if x.second else "%Y-%m-%d %H:%M")
    return f"{x:.12g}"


def listed(items: Sequence[str], *, limit: int = 4) -> str:
    """Return items as words: "a", "a and b", "a, b and 3 more"."""
    if len(items) > limit:
        return f"{', '.join(items[: limit - 1])} and {len(items) - limit + 1} more"
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


def spread(places: Sequence[float], *, gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Move label places apart until neighbours are at least `gap` apart, as near to where they were as that allows.

    Parameters
    ----------
    places
        Wanted places, in axis units and any order.
    gap
        Least distance of two labels, in axis units.
    low, high
        The axis range the labels stay in when they fit at all.

    Returns
    -------
    NDArray[np.float64]
        One place per wanted place, in the same order.

    Examples
    --------
    >>> spread([0.5, 0.5], gap=0.25, low=0.0, high=1.0).tolist()
    [0.375, 0.625]
    """
    order = np.argsort(np.asarray(places, dtype=np.float64), kind="stable")
    # Blocks of labels that touch, each inside the range: (mean place, number of labels).
    blocks: list[tuple[float, int]] = []
    for index in order:
        center, count = min(max(float(places[index]), low), high), 1
        while blocks and center - blocks[-1][0] < gap * (count + blocks[-1][1]) / 2:
            below, n_below = blocks.pop()
            center, count = (below * n_below + center * count) / (n_below + count), n_below + count
            half = gap * (count - 1) / 2
            center = max(min(center, high - half), low + half)
        blocks.append((center, count))
    placed = np.concatenate(
        [center + gap * (np.arange(count) - (count - 1) / 2) for center, count in blocks] or [np.empty(0)]
    )
    result = np.empty(len(order))
    result[order] = placed
    return result


def shade_phases(fig: go.Figure, phases: pd.DataFrame) -> None:
    """Shade every second phase behind all panels of a figure and name each phase once, at the top.

    Parameters
    ----------
    fig
        Figure whose panels share the axis `x`.
    phases
        Columns `phase`, `start`, `end` (exclusive) in units of the x axis. May be empty.
    """
    require(phases, ["phase", "start", "end"])
    if phases.empty:
        return
    starts, ends = clock(phases["start"]), clock(phases["end"])
    whole = ends.max() - starts.min()
    for number, (name, start, end) in enumerate(zip(phases["phase"], starts, ends, strict=True)):
        if number % 2:
            fig.add_shape(
                type="rect",
                xref="x",
                yref="paper",
                x0=start,
                x1=end,
                y0=0,
                y1=1,
                fillcolor=SHADE,
                line_width=0,
                layer="below",
                name="phase",
            )
        room = int((end - start) / whole * NARROWEST_PLOT_PX / CHARACTER_PX)
        if room < 3:
            continue
        fig.add_annotation(
            x=start + (end - start) / 2,
            y=1,
            xref="x",
            yref="paper",
            yanchor="bottom",
            text=shown(name, limit=room),
            hovertext=shown(name),
            showarrow=False,
            font_size=12,
            name="phase",
        )


def layout(fig: go.Figure, *, height: int, x_title: str | None = None, y_title: str | None = None) -> go.Figure:
    """Give a figure the common layout.

    Parameters
    ----------
    fig
        The figure, changed in place.
    height
        Height in pixels; the width is the page's.
    x_title, y_title
        Titles with units for all x and y axes; None leaves them as they are.

    Returns
    -------
    go.Figure
        The same figure.
    """
    fig.update_layout(
        height=height,
        paper_bgcolor="rgba(0, 0, 0, 0)",
        plot_bgcolor="rgba(0, 0, 0, 0)",
        margin={"l": 8, "r": 8, "t": 26, "b": 8, "pad": 2},
        hovermode="closest",
        hoverlabel={"align": "left", "namelength": -1},
    )
    axis = {"automargin": True, "gridcolor": GRID, "zeroline": False, "linecolor": GRID}
    fig.update_xaxes(**axis, title_standoff=6)
    fig.update_yaxes(**axis, title_standoff=6)
    if x_title is not None:
        fig.update_xaxes(title_text=x_title)
    if y_title is not None:
        fig.update_yaxes(title_text=y_title)
    return fig


def legend_below(fig: go.Figure, *, plot_px: int) -> go.Figure:
    """Put the legend under the axis title and size the figure so that the plot keeps its height on a telephone.

    Plotly takes the room of the legend from the plot, so the height includes the rows it breaks into there.

    Parameters
    ----------
    fig
        A figure whose traces are all added; changed in place.
    plot_px
        Height that the plot keeps, in pixels.

    Returns
    -------
    go.Figure
        The same figure.
    """
    rows, used = 0, NARROWEST_PAGE_PX
    for number, trace in enumerate(fig.data):
        if trace.showlegend is False:
            continue
        # Plotly stacks the members of a group; a group of its own lets each entry flow to the next free place.
        if trace.legendgroup is None:
            trace.legendgroup = f"own {number}"
        width = LEGEND_ITEM_PX + CHARACTER_PX * len(trace.name)
        if used + width > NARROWEST_PAGE_PX:
            rows, used = rows + 1, 0.0
        used += width
    gap = AXIS_TITLE_PX / plot_px
    # A legend that starts left of the plot may use the whole width of the page (plotly moves it inside).
    fig.update_layout(
        height=plot_px + 34 + AXIS_TITLE_PX + LEGEND_ROW_PX * rows,
        legend={
            "orientation": "h",
            "x": -0.001,
            "xanchor": "left",
            "y": -gap,
            "yanchor": "top",
            "traceorder": "grouped",
            "tracegroupgap": 0,
            "font": {"size": 12},
            "bgcolor": "rgba(0, 0, 0, 0)",
        },
    )
    return fig


def describe(fig: go.Figure, *, alt: str, caption: str) -> go.Figure:
    """Attach the alternative text and the caption to a figure, as `fig.layout.meta["alt"]` and `["caption"]`."""
    fig.update_layout(meta={"alt": alt, "caption": caption})
    return fig
