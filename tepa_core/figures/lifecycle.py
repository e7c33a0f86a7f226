"""The life of the values of one conflict key on one axis (paper Figure 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from tepa_core.figures.theme import (
    GREY,
    INK_ON_COLOR,
    STATE_STYLE,
    VALUE_COLORS,
    at,
    clock,
    describe,
    is_time,
    layout,
    legend_below,
    listed,
    records,
    require,
    shade_phases,
    shown,
    spread,
    translucent,
)

POSTERIOR_COLUMNS = ("value", "x", "posterior", "lo", "hi", "state")
SPAN_COLUMNS = ("value", "state", "x0", "x1", "life")
EVIDENCE_COLUMNS = ("evidence_id", "x", "value", "supports", "text", "late")
TRANSITION_COLUMNS = ("transition_id", "x", "value", "from_state", "to_state", "rule", "posterior")
FOLLOWED_COLUMNS = ("x", "value", "success")
DECISION_COLUMNS = ("x", "value", "initials", "text")

RETRIEVED = ("active", "deprecated")
"""States in which a precedent can be retrieved; in the others its line is thin and dashed."""

RULE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "proposed": "enough supports to become a hypothesis",
        "promoted": "posterior reached the promotion threshold",
        "reactivated": "fresh supports brought it back from the archive",
        "posterior": "posterior rule: its posterior fell below the revocation threshold",
        "recent": "recent rule: too many of its latest outcomes failed",
        "superseded": "superseded: another value of the key became active",
        "decided": "a person took it out of the archive",
        "reasserted": "re-asserted, but a person had confirmed its revocation",
    }
)
"""What each rule says, for the hover box of a transition."""

POINTS_PER_VALUE = 1500
POINTS_OF_LINES = 3600
FEW_VALUES = 3
TICKS_PER_KIND = 400
VALUES_DRAWN = 24
TRANSITIONS_DRAWN = 4000
SPANS_DRAWN = 2000
FLAGS_DRAWN = 200
LETTERED_TRANSITIONS = 60
FINEST_SPAN = 1 / 800
LETTERED_SPANS = 150
LETTERED_SPAN = 1 / 60
DIRECTLY_LABELLED_VALUES = 6
LONGEST_DIRECT_LABEL = 12
LINE_PX = 15
POSTERIOR_PX = 270
BAND_PX = 32
STRIP_PX = 15
GAP_PX = 12
TITLE_PX = 60
STACKED = 0.09
SUPPORT_Y, CONFLICT_Y = 1.07, -0.07


@dataclass(frozen=True, slots=True)
class LifecycleData:
    """What the lifecycle figure is drawn from, all for one conflict key.

    `x` is a task number or a time in every table alike. A time with a zone is drawn at its wall clock; name the zone in
    `x_title`.

    Attributes
    ----------
    posterior
        `value`, `x`, `posterior`, `lo`, `hi` (in [0, 1], the credible band), `state`: after each evidence item. Of a
        long record the points that `line_points` chooses, of many values those that `values_drawn` does.
    spans
        `value`, `state`, `x0`, `x1`, `life`: intervals of one state; the last `x1` is the end of the record.
    evidence
        `evidence_id`, `x`, `value`, `supports` (bool), `text`, `late` (bool, arrived out of order). May be empty.
    transitions
        `transition_id` (text), `x`, `value`, `from_state`, `to_state`, `rule`, `posterior` (of the counts that
        decided it). May be empty.
    followed
        `x`, `value` (missing where the agent had nothing to follow), `success`. May be empty.
    phases
        `phase`, `start`, `end` (exclusive). May be empty.
    theta_rev, theta_pro
        Thresholds of revocation and promotion on the posterior, in [0, 1].
    x_title
        Title of the shared axis, with its unit or zone.
    """

    posterior: pd.DataFrame
    spans: pd.DataFrame
    evidence: pd.DataFrame
    transitions: pd.DataFrame
    followed: pd.DataFrame
    phases: pd.DataFrame
    theta_rev: float
    theta_pro: float
    x_title: str


def lifecycle(
    trace: LifecycleData,
    *,
    selected: str | None = None,
    decisions: pd.DataFrame | None = None,
    differences: pd.DataFrame | None = None,
    x_range: tuple[Any, Any] | None = None,
) -> go.Figure:
    """Draw what happened to the values of one key: posterior, states, and what the agent followed (paper Figure 5).

    From the top: the posterior of each value as a step line with its credible band, both thresholds, evidence as ticks
    (supports above, conflicts below, late evidence hollow) and every transition as a marker; one band of states per
    value; what was followed and whether it succeeded. Long records are thinned for display: lines to about
    `POINTS_PER_VALUE` points that keep the extremes (`POINTS_OF_LINES` in all when there are many values), evidence to
    `TICKS_PER_KIND` ticks of a kind, flips between Active and Deprecated narrower than a pixel into one band.
    Of more than `VALUES_DRAWN` values those that changed most are drawn. Transitions are kept up to
    `TRANSITIONS_DRAWN`; the caption says so where something is left out.

    Parameters
    ----------
    trace
        The record.
    selected
        The `transition_id` to be marked as the one explained beside the figure.
    decisions
        Human decisions as flags: `x`, `value`, `initials`, `text`. One on the whole key has no value and stands in the
        first row.
    differences
        Stretches to be shaded because two lifecycles differ there: `x0`, `x1`.
    x_range
        First and last place of the axis, to put two figures on the same one.

    Returns
    -------
    go.Figure
        Transition markers, and only they, carry customdata: `[transition_id]`. Alternative text and caption stand in
        `layout.meta`.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    require(trace.posterior, POSTERIOR_COLUMNS)
    require(trace.spans, SPAN_COLUMNS)
    require(trace.evidence, EVIDENCE_COLUMNS)
    require(trace.transitions, TRANSITION_COLUMNS)
    require(trace.followed, FOLLOWED_COLUMNS)
    require(trace.phases, ("phase", "start", "end"))
    posterior = _clocked(trace.posterior, "x").sort_values("x", kind="stable")
    spans = _clocked(trace.spans, "x0", "x1").sort_values("x0", kind="stable")
    transitions = _clocked(trace.transitions, "x").sort_values("x", kind="stable")
    evidence = _clocked(trace.evidence, "x").sort_values("x", kind="stable")
    followed = _clocked(trace.followed, "x")
    values = values_drawn(trace.transitions, _values(trace), selected)
    if len(values) < len(_values(trace)):
        posterior, spans, transitions = (one[one["value"].isin(values)] for one in (posterior, spans, transitions))
    transitions = _few(transitions, selected)
    color = {value: VALUE_COLORS[number % len(VALUE_COLORS)] for number, value in enumerate(values)}
    end = max([*spans["x1"], *posterior["x"].tail(1)], default=None)

    strip = list(dict.fromkeys([v for v in values if (followed["value"] == v).any()]))
    nothing = followed["value"].isna()
    strip_rows = len(strip) + int(nothing.any())
    panels = [POSTERIOR_PX, max(BAND_PX * len(values) + 8, TITLE_PX)]
    if strip_rows:
        panels.append(max(STRIP_PX * strip_rows + 10, TITLE_PX))
    total = sum(panels) + GAP_PX * (len(panels) - 1)
    fig = make_subplots(
        rows=len(panels), cols=1, shared_xaxes=True, row_heights=panels, vertical_spacing=GAP_PX / total
    )

    direct = len(values) <= DIRECTLY_LABELLED_VALUES and all(len(shown(v)) <= LONGEST_DIRECT_LABEL for v in values)
    places = {
        value: _life_line(fig, value, color[value], len(values), not direct, posterior, transitions, end)
        for value in values
    }
    _thresholds_and_labels(fig, trace, {v: y for v, y in places.items() if direct and y is not None}, color)
    _rug(fig, evidence, transitions, color)
    _transitions(fig, transitions, selected)
    if selected is not None:
        _mark(fig, transitions, selected)
    _bands(fig, spans, values)
    if strip_rows:
        _strip(fig, followed, nothing, strip, color)
    if decisions is not None:
        _flags(fig, decisions, values)
    if differences is not None:
        require(differences, ("x0", "x1"))
        for x0, x1 in zip(clock(differences["x0"]), clock(differences["x1"]), strict=True):
            fig.add_shape(
                type="rect",
                xref="x",
                yref="paper",
                x0=x0,
                x1=x1,
                y0=0,
                y1=1,
                fillcolor="rgba(240, 228, 66, 0.2)",
                line_width=0,
                layer="below",
                name="difference",
            )
    shade_phases(fig, trace.phases)
    if not values:
        fig.add_annotation(
            text="No evidence for this key.", xref="paper", yref="paper", x=0.5, y=0.6, showarrow=False, font_size=14
        )

    layout(fig, height=total)
    legend_below(fig, plot_px=total)
    fig.update_layout(barmode="overlay", uniformtext={"mode": "hide", "minsize": 10})
    fig.update_layout(margin_r=18 + 7 * max([5, *(len(shown(v)) for v in values)]) if direct else 56)
    fig.update_xaxes(showgrid=False, **({"type": "date"} if is_time(spans["x0"]) or is_time(posterior["x"]) else {}))
    fig.update_xaxes(title_text=trace.x_title, row=len(panels))
    fig.update_yaxes(title_font_size=12)
    fig.update_xaxes(range=list(x_range) if x_range is not None else _whole_range(spans, posterior, evidence))
    fig.update_yaxes(title_text="Posterior", range=[-0.13, 1.13], tickvals=[0, 0.5, 1], row=1)
    fig.update_yaxes(
        title_text="State",
        tickvals=list(range(len(values))),
        ticktext=[f'<span style="color:{color[value]}">●</span> {shown(value, limit=14)}' for value in values],
        range=[max(len(values), 1) - 0.4, -0.6],
        showgrid=False,
        row=2,
    )
    if strip_rows:
        fig.update_yaxes(
            title_text="Followed",
            tickvals=list(range(strip_rows)),
            ticktext=[shown(value, limit=14) for value in strip] + ["nothing"] * int(nothing.any()),
            tickfont_size=10,
            range=[strip_rows - 0.3, -0.7],
            showgrid=False,
            row=3,
        )
    return describe(fig, alt=alt_text(trace), caption=caption(trace))


def alt_text(trace: LifecycleData) -> str:
    """Say in words what `lifecycle` shows: every value with its transitions, the first twelve of all."""
    values = _values(trace)
    transitions = _clocked(trace.transitions, "x").sort_values("x", kind="stable")
    events = [
        f"{row.value}: {STATE_STYLE[row.to_state].label} at {at(row.x)} ({row.rule})."
        for row in records(transitions.head(12))
    ]
    if len(transitions) > 12:
        events.append(f"And {len(transitions) - 12} more.")
    return " ".join([f"Lifecycle of {_number(len(values), 'value')} of one key.", *(events or ["No state change."])])


def caption(trace: LifecycleData) -> str:
    """Say what to see in `lifecycle`: how much evidence there is, what it changed, and what is active at the end."""
    supports = int(trace.evidence["supports"].astype(bool).sum())
    late = int(trace.evidence["late"].astype(bool).sum())
    from_state, to_state = trace.transitions["from_state"], trace.transitions["to_state"]
    counts = [
        f"{_number(supports, 'support')} and {_number(len(trace.evidence) - supports, 'refutation')}"
        + (f" ({late} late)" if late else ""),
        _number(int((to_state == "active").sum()), "activation"),
        # A re-assertion of what a person confirmed goes from Revoked to Revoked: it revokes nothing.
        _number(int(((to_state == "revoked") & (from_state == "active")).sum()), "revocation"),
    ]
    values = len(_values(trace))
    drawn = max(min(supports, TICKS_PER_KIND), min(len(trace.evidence) - supports, TICKS_PER_KIND))
    thinned = drawn == TICKS_PER_KIND and len(trace.evidence) > TICKS_PER_KIND
    whole = len(trace.transitions) <= TRANSITIONS_DRAWN
    return (
        f"{listed(counts)}. A thin dashed line is a value that cannot be retrieved; select a state change to see why."
        + (" Evidence is thinned for display, state changes are not." if thinned and whole else "")
        + ("" if whole else " Evidence and state changes are thinned for display.")
        + (f" {VALUES_DRAWN} of {values:,} values are drawn, those that changed most." if values > VALUES_DRAWN else "")
    )


def values_drawn(transitions: pd.DataFrame, values: Sequence[str], selected: str | None = None) -> list[str]:
    """Choose the values that fit into one figure: that of the selected transition, then those that changed most.

    Parameters
    ----------
    transitions
        As in `LifecycleData`.
    values
        All, in order.
    """
    if len(values) <= VALUES_DRAWN:
        return list(values)
    first = transitions.loc[transitions["transition_id"] == selected, "value"]
    most = transitions["value"].value_counts(sort=True).index
    chosen = set(list(dict.fromkeys([*first, *most, *values]))[:VALUES_DRAWN])
    return [value for value in values if value in chosen]


def line_points(course: pd.DataFrame, changes: pd.Series[Any], n_values: int) -> NDArray[np.intp]:
    """Choose the points of a value's line that are drawn.

    Parameters
    ----------
    course
        `posterior`, `state`, `x`: after each item.
    changes
        `x` of the value's transitions.
    n_values
        How many values the figure has.
    """
    strong = course["state"].isin(RETRIEVED).to_numpy()
    turns = np.append(False, strong[1:] != strong[:-1])
    limit = min(POINTS_PER_VALUE, POINTS_OF_LINES // n_values)
    keep = course["x"].isin(changes).to_numpy() | turns
    if keep.sum() > TRANSITIONS_DRAWN:
        marked = np.flatnonzero(keep)
        keep = np.zeros(len(keep), np.bool_)
        keep[marked[np.linspace(0, len(marked) - 1, TRANSITIONS_DRAWN).astype(np.intp)]] = True
    return thin(course["posterior"].to_numpy(), keep, limit=limit)


def _few(rows: pd.DataFrame, selected: str | None) -> pd.DataFrame:
    """Return as many transitions as can be drawn, evenly chosen, the selected one among them."""
    if len(rows) <= TRANSITIONS_DRAWN:
        return rows
    chosen = np.linspace(0, len(rows) - 1, TRANSITIONS_DRAWN).astype(np.intp)
    mine = np.flatnonzero((rows["transition_id"] == selected).to_numpy())
    return rows.iloc[np.union1d(chosen, mine)]


def thin(y: NDArray[np.float64], keep: NDArray[np.bool_], *, limit: int = POINTS_PER_VALUE) -> NDArray[np.intp]:
    """Choose points of a long line to draw: the first, the last, those marked, and the extremes of equal buckets.

    Parameters
    ----------
    y
        Heights, shape (n,), in the order of the axis.
    keep
        Points that must be drawn, shape (n,).
    limit
        Most points to draw; exceeded only when more are marked.

    Returns
    -------
    NDArray[np.intp]
        Ascending indices into `y`.

    Examples
    --------
    >>> heights = np.zeros(1000)
    >>> heights[500] = 1.0
    >>> chosen = thin(heights, np.zeros(1000, dtype=bool), limit=20)
    >>> len(chosen) <= 20, 500 in chosen
    (True, True)
    """
    if len(y) <= limit:
        return np.arange(len(y))
    marked = np.flatnonzero(keep)
    buckets = max((limit - 2 - len(marked)) // 2, 0)
    chosen = [np.array([0, len(y) - 1]), marked]
    if buckets:
        edges = np.linspace(0, len(y), buckets + 1).astype(np.intp)
        chosen.append(np.array([a + p for a, b in pairwise(edges) for p in (y[a:b].argmin(), y[a:b].argmax())]))
    return np.unique(np.concatenate(chosen))


def merge_flips(spans: pd.DataFrame, *, finest: float | pd.Timedelta) -> pd.DataFrame:
    """Join neighbouring spans that only flip between Active and Deprecated within one life and are too narrow to see.

    Parameters
    ----------
    spans
        `value`, `state`, `x0`, `x1`, `life`, in order of `x0`.
    finest
        Width below which a span cannot be seen, in units of the axis.

    Returns
    -------
    pd.DataFrame
        The same columns; a joined span is Deprecated, for it holds conflicts.
    """
    merged: list[dict[Any, Any]] = []
    for _, part in spans.groupby("value", sort=False):
        joined = False
        first = len(merged)
        for row in part.to_dict("records"):
            last = merged[-1] if len(merged) > first else None
            narrow = row["x1"] - row["x0"] < finest and row["state"] in RETRIEVED
            if last is not None and narrow and (joined or last["x1"] - last["x0"] < finest):
                if last["state"] in RETRIEVED and last["life"] == row["life"]:
                    last.update(x1=row["x1"], state="deprecated")
                    joined = True
                    continue
            joined = False
            merged.append(row)
    return pd.DataFrame(merged, columns=list(spans.columns))


def _clocked(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    # Task numbers become floats, so that the end of a step may lie anywhere.
    return table.assign(**{c: clock(table[c]) if is_time(table[c]) else table[c].astype(np.float64) for c in columns})


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _rule_words(rule: str) -> str:
    return shown(RULE_WORDS.get(rule, rule.replace("_", " ")), width=50)


def _values(trace: LifecycleData) -> list[str]:
    tables = (trace.posterior, trace.spans, trace.transitions)
    return list(dict.fromkeys(value for table in tables for value in table["value"].unique()))


def _whole_range(*tables: pd.DataFrame) -> list[Any] | None:
    places = [table[column] for table in tables for column in ("x", "x0", "x1") if column in table and len(table)]
    if not places:
        return None
    low, high = min(column.min() for column in places), max(column.max() for column in places)
    margin = (high - low) * 0.012
    return [low - margin, high + margin] if high > low else None


def _life_line(
    fig: go.Figure,
    value: str,
    color: str,
    n_values: int,
    in_legend: bool,
    posterior: pd.DataFrame,
    transitions: pd.DataFrame,
    end: Any,
) -> float | None:
    """Draw posterior and band of one value; return where its line ends, or None if it has none."""
    rows = posterior[posterior["value"] == value].reset_index(drop=True)
    if rows.empty:
        return None
    chosen = line_points(rows, transitions.loc[transitions["value"] == value, "x"], n_values)
    strong = rows["state"].isin(RETRIEVED).to_numpy()[chosen]
    # The last step lasts to the end of the record.
    rows = rows.iloc[[*chosen, chosen[-1]]].reset_index(drop=True)
    rows.loc[len(chosen), "x"] = max(end, rows["x"].iloc[-1])
    group = f"value {value}"
    # Bands of many values hide each other: then only those of what can be retrieved are drawn.
    banded = np.append(strong, strong[-1]) | (n_values <= FEW_VALUES)
    # One row without a band is enough to part two stretches that have one.
    ends_band = np.append(False, banded[:-1]) & ~banded
    band = rows.assign(lo=rows["lo"].where(banded), hi=rows["hi"].where(banded))[banded | ends_band]
    for bound in ("lo", "hi"):
        fig.add_scatter(
            x=band["x"],
            y=band[bound],
            mode="lines",
            line={"width": 0, "shape": "hv"},
            fill="tonexty" if bound == "hi" else None,
            fillcolor=translucent(color, 0.17 if n_values <= FEW_VALUES else 0.12) if bound == "hi" else None,
            hoverinfo="skip",
            legendgroup=group,
            showlegend=False,
            name=f"{shown(value, limit=24)}, credible band",
            row=1,
            col=1,
        )
    name = shown(value, limit=40)
    rows["hover"] = [
        f"<b>{name}</b><br>{at(row.x)}<br>posterior {row.posterior:.3f} [{row.lo:.3f}, {row.hi:.3f}]"
        f"<br>{STATE_STYLE[row.state].label}"
        for row in records(rows)
    ]
    starts = [0, *(np.flatnonzero(strong[1:] != strong[:-1]) + 1).tolist()]
    points: dict[bool, list[int]] = {True: [], False: []}
    gaps: dict[bool, list[int]] = {True: [], False: []}
    for begin, stop in zip(starts, [*starts[1:], len(chosen)], strict=True):
        # The first point of the next piece closes the step; its repetition without a height parts the pieces.
        side = bool(strong[begin])
        points[side].extend([*range(begin, stop + 1), stop])
        gaps[side].append(len(points[side]) - 1)
    for is_strong, places in points.items():
        if not places:
            continue
        line = rows.iloc[places]
        heights = line["posterior"].to_numpy(np.float64, copy=True)
        heights[gaps[is_strong]] = np.nan
        fig.add_scatter(
            x=line["x"],
            y=heights,
            mode="lines",
            line={"color": color, "shape": "hv"}
            | ({"width": 2.6 if n_values <= FEW_VALUES else 1.8} if is_strong else {"width": 1.2, "dash": "dash"}),
            hoverinfo="text",
            hovertext=line["hover"],
            legendgroup=group,
            showlegend=in_legend and (is_strong or not points[True]),
            name=shown(value, limit=24),
            row=1,
            col=1,
        )
    return float(rows["posterior"].iloc[-1])


def _thresholds_and_labels(
    fig: go.Figure, trace: LifecycleData, ends: Mapping[str, float], color: Mapping[str, str]
) -> None:
    thresholds = {
        "θ<sub>pro</sub> ": (trace.theta_pro, "A hypothesis is promoted from here on"),
        "θ<sub>rev</sub> ": (trace.theta_rev, "Below this, with enough outcomes, a memory is revoked"),
    }
    wanted = [level for level, _ in thresholds.values()] + list(ends.values())
    places = spread(wanted, gap=LINE_PX / POSTERIOR_PX * 1.26, low=0.0, high=1.0)
    for (name, (level, words)), place in zip(thresholds.items(), places, strict=False):
        fig.add_shape(
            type="line",
            xref="x domain",
            yref="y",
            x0=0,
            x1=1,
            y0=level,
            y1=level,
            line={"color": GREY, "dash": "dash", "width": 1.3},
            name=f"threshold {level:g}",
        )
        fig.add_annotation(
            text=f"{name}{level:.2f}",
            hovertext=words,
            x=1,
            xref="x domain",
            xanchor="left",
            xshift=3,
            y=place,
            yref="y",
            showarrow=False,
            font_size=11,
            name="threshold",
        )
    for value, place in zip(ends, places[len(thresholds) :], strict=True):
        fig.add_annotation(
            text=shown(value),
            x=1,
            xref="x domain",
            xanchor="left",
            xshift=3,
            y=place,
            yref="y",
            showarrow=False,
            font={"size": 12, "color": color[value]},
            name="value",
        )


def _rug(fig: go.Figure, evidence: pd.DataFrame, transitions: pd.DataFrame, color: Mapping[str, str]) -> None:
    supports, late = evidence["supports"].astype(bool), evidence["late"].astype(bool)
    for is_support, name, symbol, y in (
        (True, "support", "triangle-up", SUPPORT_Y),
        (False, "conflict", "triangle-down", CONFLICT_Y),
    ):
        kind = evidence[supports == is_support]
        if kind.empty:
            continue
        if len(kind) > TICKS_PER_KIND:
            decisive = np.flatnonzero(kind["x"].isin(transitions["x"]))[: TICKS_PER_KIND // 2]
            regular = np.linspace(0, len(kind) - 1, TICKS_PER_KIND - len(decisive)).astype(np.intp)
            kind = kind.iloc[np.union1d(decisive, regular)]
        for is_late in (False, True):
            rows = kind[late.loc[kind.index] == is_late]
            if rows.empty:
                continue
            colors = [color.get(value, GREY) for value in rows["value"]]
            fig.add_scatter(
                x=rows["x"],
                y=[y] * len(rows),
                mode="markers",
                marker={
                    "symbol": f"{symbol}-open" if is_late else symbol,
                    "size": 8,
                    "color": colors,
                    "line": {"width": 1.5 if is_late else 0, "color": colors},
                },
                hoverinfo="text",
                hovertext=[
                    f"<b>{name}{', late' if is_late else ''}</b>: {shown(row.value, limit=40)}<br>{at(row.x)}"
                    f"<br>{shown('' if pd.isna(row.text) else row.text, width=50)}"
                    for row in records(rows)
                ],
                unselected={"marker": {"opacity": 1}},
                name=f"{name}, late" if is_late else name,
                row=1,
                col=1,
            )


def _transitions(fig: go.Figure, transitions: pd.DataFrame, selected: str | None) -> None:
    if transitions.empty:
        return
    lettered = len(transitions) <= LETTERED_TRANSITIONS
    styles = [STATE_STYLE[state] for state in transitions["to_state"]]
    chosen = (transitions["transition_id"] == selected).to_numpy()
    # Two changes by one item (Hypothesis, then Active) would hide each other: the earlier stands below.
    before_last = transitions.groupby(["x", "value"]).cumcount(ascending=False)
    fig.add_scatter(
        x=transitions["x"],
        y=transitions["posterior"].fillna(0.5) - STACKED * before_last,
        mode="markers+text" if lettered else "markers",
        text=[f"<b>{style.letter}</b>" for style in styles] if lettered else None,
        textfont={"color": INK_ON_COLOR, "size": 10},
        marker={
            "symbol": [style.symbol for style in styles],
            "size": [(21 if is_chosen else 16) if lettered else (13 if is_chosen else 8) for is_chosen in chosen],
            "color": [style.color for style in styles],
            "line": {"color": "#808080", "width": [4 if is_chosen else 1 for is_chosen in chosen]},
            "opacity": 1,
        },
        customdata=transitions[["transition_id"]].to_numpy(),
        hoverinfo="text",
        hovertext=[
            f"<b>{STATE_STYLE[row.from_state].label} → {STATE_STYLE[row.to_state].label}</b>: "
            f"{shown(row.value, limit=40)}<br>{at(row.x)}<br>{_rule_words(row.rule)}"
            + ("" if pd.isna(row.posterior) else f"<br>posterior {row.posterior:.3f}")
            for row in records(transitions)
        ],
        unselected={"marker": {"opacity": 0.45}},
        name="state change",
        row=1,
        col=1,
    )


def _mark(fig: go.Figure, transitions: pd.DataFrame, selected: str) -> None:
    for x in transitions.loc[transitions["transition_id"] == selected, "x"]:
        line = {"color": GREY, "dash": "dot", "width": 2}
        fig.add_shape(
            type="line", xref="x", yref="paper", x0=x, x1=x, y0=0, y1=1, line=line, layer="below", name="selected"
        )


def _bands(fig: go.Figure, spans: pd.DataFrame, values: Sequence[str]) -> None:
    if spans.empty:
        return
    row_of = {value: number for number, value in enumerate(values)}
    whole = spans["x1"].max() - spans["x0"].min()
    spans = merge_flips(spans, finest=whole * FINEST_SPAN)
    if len(spans) > SPANS_DRAWN:
        spans = _longest_per_place(spans, whole * FINEST_SPAN)
    # Every letter is measured by the browser before it is drawn or hidden: of many spans only the wide ones try.
    wide = spans["x1"] - spans["x0"] >= whole * LETTERED_SPAN
    spans = spans.assign(lettered=wide | (len(spans) <= LETTERED_SPANS))
    for state, style in STATE_STYLE.items():
        rows = spans[spans["state"] == state]
        if rows.empty:
            continue
        length = rows["x1"] - rows["x0"]
        fig.add_bar(
            orientation="h",
            base=rows["x0"].tolist(),
            x=length.dt.total_seconds() * 1000 if is_time(rows["x0"]) else length,
            y=[row_of[value] for value in rows["value"]],
            width=0.74,
            text=[
                "" if not lettered else f"{style.letter}{life:.0f}" if life > 0 else style.letter
                for life, lettered in zip(rows["life"], rows["lettered"], strict=True)
            ],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"color": style.color if style.outlined else INK_ON_COLOR, "size": 12},
            marker={
                "color": translucent(style.color, 0.12) if style.outlined else style.color,
                "line": {"color": style.color, "width": 2 if style.outlined else 0},
                "pattern": {
                    "shape": style.pattern,
                    "fgcolor": INK_ON_COLOR,
                    "fgopacity": 0.45,
                    "size": 7,
                    "solidity": 0.2,
                },
            },
            hoverinfo="text",
            hovertext=[
                f"<b>{style.label}</b>: {shown(row.value, limit=40)}<br>{at(row.x0)} to {at(row.x1)}"
                + (f"<br>life {row.life:.0f}" if row.life > 0 else "")
                for row in records(rows)
            ],
            unselected={"marker": {"opacity": 1}},
            name=f"{style.letter} {style.label}",
            row=2,
            col=1,
        )


def _longest_per_place(spans: pd.DataFrame, finest: Any) -> pd.DataFrame:
    """Return one span per value and place on the screen where many would share it: the longest that begins there.

    Each lasts until the next, so the band has no holes.
    """
    place = ((spans["x0"] - spans["x0"].min()) / finest).astype(np.int64)
    longest = (spans["x1"] - spans["x0"]).groupby([spans["value"], place]).idxmax()
    kept = spans.loc[np.sort(longest.to_numpy())].reset_index(drop=True)
    ends = spans.groupby("value", sort=False)["x1"].last()
    following = kept.groupby("value", sort=False)["x0"].shift(-1)
    return kept.assign(x1=following.where(following.notna(), kept["value"].map(ends)))


def _strip(
    fig: go.Figure, followed: pd.DataFrame, nothing: pd.Series[bool], strip: Iterable[str], color: Mapping[str, str]
) -> None:
    row_of = {value: number for number, value in enumerate(strip)}
    success = followed["success"].astype(bool)
    for succeeded, symbol, word in ((True, "circle", "succeeded"), (False, "x-thin", "failed")):
        rows, without = followed[success == succeeded], nothing[success == succeeded]
        if rows.empty:
            continue
        names = [None if is_missing else value for value, is_missing in zip(rows["value"], without, strict=True)]
        colors = [GREY if name is None else color.get(name, GREY) for name in names]
        fig.add_scatter(
            x=rows["x"],
            y=[len(row_of) if name is None else row_of[name] for name in names],
            mode="markers",
            marker={
                "symbol": symbol,
                "size": 7,
                "color": colors,
                "line": {"color": colors, "width": 0 if succeeded else 2},
            },
            hoverinfo="text",
            hovertext=[
                f"<b>{word}</b>, following {'nothing' if name is None else shown(name, limit=40)}<br>{at(x)}"
                for name, x in zip(names, rows["x"], strict=True)
            ],
            unselected={"marker": {"opacity": 1}},
            name=word,
            row=3,
            col=1,
        )


def _flags(fig: go.Figure, decisions: pd.DataFrame, values: Sequence[str]) -> None:
    require(decisions, DECISION_COLUMNS)
    row_of = {value: number for number, value in enumerate(values)}
    for row in records(_clocked(decisions.tail(FLAGS_DRAWN), "x")):
        fig.add_annotation(
            x=row.x,
            y=row_of.get(row.value, 0),
            xref="x2",
            yref="y2",
            text=f"⚑ {shown(row.initials, limit=4)}",
            hovertext=shown(row.text, width=50),
            showarrow=True,
            arrowhead=0,
            arrowwidth=1.5,
            arrowcolor=GREY,
            ax=0,
            ay=-15,
            font={"size": 11, "color": "#ffffff"},
            bgcolor="rgba(40, 40, 40, 0.92)",
            borderpad=1,
            name="decision",
        )
