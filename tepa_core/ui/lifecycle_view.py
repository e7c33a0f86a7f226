"""What the lifecycle page draws from a key's life: the figure's tables, the evidence list, and who was clicked."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from tepa_core.figures import LifecycleData, line_points, values_drawn
from tepa_core.inert import one_line
from tepa_core.store import KeyLife
from tepa_core.ui import boundary, labels, state

#: A log's evidence is late when it arrived more than this after it happened (microseconds).
LATE = 24 * 60 * 60 * 1_000_000

#: Options of a list of values or of changes of state: a browser holds no more well.
LISTED = 1000

#: Rows of evidence in the table of the page; the download has all.
ROWS_SHOWN = 10_000


def late(life: KeyLife) -> pd.Series[bool]:
    """Tell which evidence items arrived more than a day after they happened; none in a simulation."""
    known = life.info.is_log and life.info.counts.get("arrival_times", 0) > 0
    return (life.items["arrived"] - life.items["occurred"] > LATE) & known


def figure_data(life: KeyLife, selected: str | None = None) -> LifecycleData:
    """Arrange a key's life for `tepa_core.figures.lifecycle`: of its lines, only the points that are drawn.

    Parameters
    ----------
    selected
        The transition that is explained: the line of its value is drawn in any case.
    """
    drawn = set(values_drawn(life.transitions, list(dict.fromkeys(life.values["value"])), selected))
    rows = life.values.loc[life.values["value"].isin(drawn), ["id", "value"]]
    lines = [_line(life, str(name), str(value), len(rows)) for name, value in rows.itertuples(index=False)]
    return LifecycleData(
        posterior=pd.concat(lines, ignore_index=True),
        spans=life.spans,
        evidence=life.items.rename(columns={"seq": "evidence_id"}).assign(late=late(life)),
        transitions=life.transitions,
        followed=life.followed,
        phases=life.phases,
        theta_rev=life.thresholds.theta_rev,
        theta_pro=life.thresholds.theta_pro,
        x_title=life.x_title,
    )


def _line(life: KeyLife, precedent: str, value: str, n_values: int) -> pd.DataFrame:
    course = life.course(precedent, band=False)
    own = life.transitions.loc[life.transitions["id"] == precedent, "x"]
    chosen = course["step"].to_numpy()[line_points(course, own, n_values)]
    return life.course(precedent, chosen).assign(value=value)


def evidence_table(life: KeyLife) -> pd.DataFrame:
    """List the evidence on a key for people, in the order of the rule; columns without content are left out."""
    items = life.items
    log = life.info.is_log
    clock = "when" if log else "fact" if life.info.is_facts else "task"
    occurred = pd.to_datetime(items["occurred"], unit="us", utc=True) if log else items["occurred"]
    table = pd.DataFrame(
        {
            clock: occurred,
            "value": items["original"],
            "says": items["supports"].map({True: "supports it", False: "refutes it"}),
            "sentence": items["text"],
            "who": items["actor"],
            "source": items["source_ref"],
            "phase": items["phase"],
        }
    )
    if late(life).any():
        table["arrived"] = pd.to_datetime(items["arrived"], unit="us", utc=True)
    if log:
        table["row of the file"] = items["source_row"]
    return table.loc[:, [name for name in table.columns if table[name].notna().any()]]


def _listed(ids: list[str], name: str, default: str | None) -> list[str]:
    """Return as many options as a list can show: the last ones, and what is chosen or named by a link before them."""
    if len(ids) <= LISTED:
        return ids
    meant = {default, st.query_params.get(name), state.held(name, "")}
    return [one for one in ids[:-LISTED] if one in meant] + ids[-LISTED:]


def say_shortened(shown: int, of: int, what: str) -> None:
    """Say how much a list leaves out, if anything."""
    if shown < of:
        st.caption(f"The list has the last {LISTED:,} of {of:,} {what}; the chart and links open the others.")


def value_labels(life: KeyLife) -> dict[str, str]:
    """Name each value of the key with where it stands now: id of the precedent -> "window, active"."""
    states = life.values["state"].where(~life.values["deprecated"], "deprecated")
    shown = life.values["id"].isin(_listed(list(life.values["id"]), "precedent", last_fall(life)[0]))
    rows = zip(*(column[shown] for column in (life.values["id"], life.values["value"], states)), strict=True)
    named = {str(name): (one_line(value) or "(empty text)", stands) for name, value, stands in rows}
    # Told apart by the value itself: two that look alike stay two wherever they stand.
    values = labels.told_apart({name: value for name, (value, _) in named.items()})
    return {name: f"{values[name]}, {stands}" for name, (_, stands) in named.items()}


def order_of(life: KeyLife, precedent: str) -> list[str]:
    """List the ids of a precedent's changes of state, the oldest first, as many as a list can show."""
    steps = [str(name) for name in life.transitions.loc[life.transitions["id"] == precedent, "transition_id"]]
    return _listed(steps, "transition", last_fall(life, precedent)[1])


def last_fall(life: KeyLife, precedent: str | None = None) -> tuple[str, str | None]:
    """Find what to explain first: the last revocation of a precedent (or of the key), else the last change.

    Returns
    -------
    tuple
        Ids of the precedent and of the transition; None when nothing has ever changed.
    """
    steps = life.transitions if precedent is None else life.transitions[life.transitions["id"] == precedent]
    falls = steps[(steps["to_state"] == "revoked") & (steps["from_state"] == "active")]
    chosen = falls if len(falls) else steps
    if chosen.empty:
        return (precedent or str(life.values["id"].iloc[0])), None
    # Rows stand in the order in which the rule wrote them, which is the order of the evidence.
    last = chosen.iloc[-1]
    return str(last["id"]), str(last["transition_id"])


def choose_order(column: DeltaGenerator) -> str:
    """Draw the switch between event time and arrival, for logs; return ``event`` or ``arrival``."""
    words = {"event": "As it happened", "arrival": "As it reached the log"}
    order = column.segmented_control(
        "Order of the evidence",
        list(words),
        format_func=lambda name: words[name],
        key=state.remember("order", list(words), "event"),
        required=True,
        help="Late evidence counts where it belongs, or only once it had arrived.",
    )
    state.write("order", order or "event")
    return order or "event"


@boundary.callback
def choose_clicked(key: str) -> None:
    """Explain the change of state that was clicked in the chart; a callback, so it runs before the page does."""
    points = st.session_state[key].selection.points
    for point in points:
        if point.get("customdata"):
            transition = str(point["customdata"][0])
            state.choose("precedent", transition.rpartition(".")[0])
            state.choose("transition", transition)
            return
