"""The parts of the thresholds page around the board of sliders."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from tepa_core.decisions import PermissionRefused
from tepa_core.experiment.sweep import Grid
from tepa_core.figures.theme import STATE_STYLE, method_label
from tepa_core.files import FileRefused
from tepa_core.inert import visible
from tepa_core.lifecycle import Thresholds
from tepa_core.methods import METHODS
from tepa_core.store import RunInfo
from tepa_core.store.settings import LONGEST_NAME, delete_setting, save_setting
from tepa_core.ui import boundary, cache, labels, state, who
from tepa_core.ui.headline import points
from tepa_core.ui.text import plain_text
from tepa_core.ui.thresholds import board, sliders
from tepa_core.ui.thresholds.board import LOG_MEASURES, MEASURES, Held, Sweeps, View
from tepa_core.ui.thresholds.sliders import PAPER, SLIDERS, Slider
from tepa_core.ui.widgets import download, progress_into

CHARTS = {"phases": "By phase", "surface": "Two thresholds", "tradeoff": "Trade-off"}
LOG_CHARTS = {"counts": "Counts", "surface": "Two thresholds"}
CLOSER = {"memories": "Memories that change", "compare": "Against the pinned one", "keep": "Save and repeat"}
OVERALL = "overall"

#: Rows of the impact list that are drawn; the download has all.
LISTED = 1_000

#: Evidence items replayed for all sliders, and for a surface: about a second's work each.
ITEMS_OF_SWEEPS = 12_000_000
ITEMS_OF_SURFACE = 8_000_000
FEWEST_POINTS = 4
LARGE_LOG = ITEMS_OF_SWEEPS // 100


def answers_soon(info: RunInfo) -> bool:
    """Whether a setting is answered at once; a large log takes seconds, in which a person may move on."""
    return not info.is_log or info.counts["loaded"] <= LARGE_LOG


def methods_of(info: RunInfo) -> list[str]:
    """Return the methods of a simulation that thresholds act on; none for a log."""
    played = [] if info.is_log else list(info.spec["methods"])
    return [name for name in ("tepa", "tepa_full") if name in played and METHODS[name].lifecycle]


def choose_view(info: RunInfo, methods: list[str]) -> tuple[str, str, str, str]:
    """Draw what to look at: method, chart, measure and phase."""
    measures = LOG_MEASURES if info.is_log else MEASURES
    charts = LOG_CHARTS if info.is_log else CHARTS
    scopes = [OVERALL] if info.is_log else [*cache.phases(info.run_id)["phase"], OVERALL]
    left, middle, right = st.columns([5, 4, 3])
    chart = left.segmented_control(
        "Chart",
        list(charts),
        format_func=lambda name: charts.get(name, name),
        required=True,
        key=state.remember("chart", list(charts), next(iter(charts))),
    )
    chart = chart or next(iter(charts))
    state.write("chart", chart)
    measure = middle.selectbox(
        "Curves beside the sliders",
        list(measures),
        format_func=lambda name: measures[name].title if name in measures else name,
        key=state.remember("measure", list(measures), next(iter(measures))),
        help="What each slider does to this, the others staying where they are. One scale for all of them.",
    )
    state.write("measure", measure)
    scope = OVERALL
    if not info.is_log:
        hardest = "reversal" if "reversal" in scopes else OVERALL
        written = labels.of_names(scopes)
        scope = right.selectbox(
            "Tasks of",
            scopes,
            format_func=lambda name: written.get(name, name),
            key=state.remember("tasks", scopes, hardest),
        )
        state.write("tasks", scope)
    method = methods[0] if methods else ""
    if len(methods) > 1:
        chosen = st.segmented_control(
            "Method",
            methods,
            format_func=method_label,
            required=True,
            key=state.remember("sweep_method", methods, methods[0]),
            help="TEPA-Full also holds trials before it uses a value: it has one threshold more.",
        )
        method = chosen or method
        state.write("sweep_method", method)
    return method, chart, measure, scope


def choose_axes(shown: tuple[Slider, ...]) -> tuple[str, str]:
    """Draw the choice of the surface's two thresholds."""
    names = [slider.name for slider in shown]
    left, right = st.columns(2)
    written = {slider.name: f"{slider.label} ({slider.name})" for slider in shown}
    x = left.selectbox(
        "Across", names, format_func=lambda name: written.get(name, name), key=state.remember("x", names, "theta_rev")
    )
    state.write("x", x)
    others = [name for name in names if name != x]
    y = right.selectbox(
        "Upwards",
        others,
        format_func=lambda name: written.get(name, name),
        key=state.remember("y", others, "theta_rec" if "theta_rec" in others else others[0]),
    )
    state.write("y", y)
    return x, y


def grids(shown: tuple[Slider, ...], most: int, *settings: Thresholds) -> list[tuple[Slider, Grid]]:
    """Return the points of each slider: its own, at most so many, and those that the settings stand at."""
    found = []
    for slider in shown:
        own = sliders.thinned(slider.grid.values, most)
        values = sorted({*own, *(slider.at(setting) for setting in settings)})
        found.append((slider, Grid.of(slider.name, values)))
    return found


def simulation_sweeps(
    info: RunInfo, method: str, current: Thresholds, pinned: Thresholds, names: tuple[str, str]
) -> tuple[list[tuple[Slider, Grid]], Sweeps, Held, Held]:
    """Compute what the sliders of a simulation can reach, and the pinned and the paper's setting."""
    on_board = grids(sliders.shown(method), 1_000, current, pinned, PAPER)
    found = cache.sweeps(info.run_id, method, current, tuple(grid for _, grid in on_board))
    fixed = cache.settings_measured(info.run_id, method, (pinned, PAPER))
    held, paper = (
        Held(
            setting,
            *called,
            {name: values[i].tolist() for name, values in fixed.metrics.items()},
            fixed.lo[i].tolist(),
            fixed.hi[i].tolist(),
        )
        for i, (setting, called) in enumerate(((pinned, names), (PAPER, ("the paper's setting", "paper"))))
    )
    return on_board, Sweeps.of(found), held, paper


def log_sweeps(
    info: RunInfo, current: Thresholds, pinned: Thresholds, names: tuple[str, str], bar: DeltaGenerator
) -> tuple[list[tuple[Slider, Grid]], Sweeps, Held, Held]:
    """Compute what the sliders of a log can reach; a large one slider by slider, with progress."""
    shown = sliders.shown("")
    most = max(ITEMS_OF_SWEEPS // (len(shown) * max(info.counts["loaded"], 1)), FEWEST_POINTS)
    on_board = grids(shown, most, current, pinned, PAPER)
    metrics: dict[str, dict[str, np.ndarray]] = {}
    for i, (slider, grid) in enumerate(on_board):
        if not answers_soon(info):
            # A slider that is moved again stops the script here: what it was asked before is not finished.
            progress_into(bar)(i / len(on_board), f"Replaying the log along {slider.name}")
        metrics[slider.name] = _columns(cache.log_sweep(info.run_id, current, grid))
    held, paper = (
        Held(setting, *called, {name: values[0].tolist() for name, values in _at(info, setting).items()})
        for setting, called in ((pinned, names), (PAPER, ("the paper's setting", "paper")))
    )
    return on_board, Sweeps((OVERALL,), metrics, {}, {}), held, paper


def surface_of(
    info: RunInfo,
    method: str,
    current: Thresholds,
    axes: tuple[str, str],
    measure: str,
    scope: str,
    bar: DeltaGenerator,
) -> Mapping[str, Any]:
    """Compute the surface over two thresholds; of a log row by row, with progress."""
    x, y = (SLIDERS[name].coarse for name in axes)
    if not info.is_log:
        z = cache.surface(info.run_id, method, current, x, y, measure, scope).tolist()
        return {"x": x.name, "y": y.name, "xs": x.values, "ys": y.values, "z": z}
    side = max(int((ITEMS_OF_SURFACE / max(info.counts["loaded"], 1)) ** 0.5), FEWEST_POINTS)
    x, y = (Grid.of(grid.name, sliders.thinned(grid.values, side)) for grid in (x, y))
    rows = []
    for i, setting in enumerate(y.apply(current)):
        if not answers_soon(info):
            progress_into(bar)(i / len(y.values), f"Replaying the log at {y.name} {sliders.in_words(y.values[i])}")
        rows.append(cache.log_sweep(info.run_id, setting, x)[measure].tolist())
    return {"x": x.name, "y": y.name, "xs": x.values, "ys": y.values, "z": rows}


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the board shows: the current and the pinned setting, the latter's names, and what is looked at."""

    current: Thresholds
    pinned: Thresholds
    called: tuple[str, str]
    method: str
    measure: str
    scope: str


def draw_board(info: RunInfo, methods: list[str]) -> Drawn:
    """Draw the choices and the board."""
    current, pinned, saved = sliders.current(info), sliders.pinned(), cache.saved_settings()
    called = sliders.name_of(pinned, info, saved)
    method, chart, measure, scope = choose_view(info, methods)
    axes = choose_axes(sliders.shown(method)) if chart == "surface" else None
    # Below the board, so that nothing moves under the hand of who drags.
    place, bar = st.container(), st.empty()
    if info.is_log:
        on_board, sweeps, held, paper = log_sweeps(info, current, pinned, called, bar)
    else:
        on_board, sweeps, held, paper = simulation_sweeps(info, method, current, pinned, called)
    try:
        library = board.served_library()
    except (FileRefused, OSError) as error:
        library = ""
        st.warning(f"The chart library cannot be copied to {plain_text(board.STATIC)}: {plain_text(error, 200)}.")
    view = View(
        method,
        chart,
        measure,
        scope,
        () if info.is_log else cache.reference_success(info.run_id),
        surface_of(info, method, current, axes, measure, scope, bar) if axes else None,
        board.asked_revision(),
        library,
    )
    with place:
        board.mount(board.content(info, current, held, paper, on_board, sweeps, view), info)
    bar.empty()
    _settle(info, current, pinned)
    return Drawn(current, pinned, called, method, measure, scope)


def _settle(info: RunInfo, current: Thresholds, pinned: Thresholds) -> None:
    """Draw the buttons under the board."""
    differs_from_run = bool(sliders.differing(current, info.thresholds))
    with st.container(horizontal=True):
        st.button(
            "Reset to the paper's",
            key="reset_to_paper",
            icon=":material/restart_alt:",
            on_click=sliders.use,
            args=(info, PAPER),
            disabled=not sliders.differing(current, PAPER),
        )
        if sliders.differing(info.thresholds, PAPER):
            st.button(
                "Reset to the run's",
                key="reset_to_run",
                icon=":material/restart_alt:",
                on_click=sliders.use,
                args=(info, info.thresholds),
                disabled=not differs_from_run,
            )
        st.button(
            "Pin this setting",
            key="pin_current",
            icon=":material/keep:",
            on_click=sliders.pin,
            args=(current,),
            disabled=not sliders.differing(current, pinned),
            help="What you try next is held against the pinned setting.",
        )
        if sliders.differing(pinned, PAPER):
            st.button("Pin the paper's", key="pin_paper", icon=":material/keep:", on_click=sliders.pin, args=(PAPER,))


def memories(info: RunInfo, drawn: Drawn) -> None:
    """List the memories whose life differs from the run's own, each with a way to it."""
    if not sliders.differing(drawn.current, info.thresholds):
        st.info(
            "This is the setting of the run, so every memory lives as stored. Move a slider to see which would "
            "live or die otherwise."
        )
        return
    with st.spinner("Replaying the memories under this setting"):
        changed = cache.impact(info.run_id, drawn.method, drawn.current)
    st.markdown(f"**{_sentence(info, changed)}**")
    if changed.empty:
        return
    listed = changed.head(LISTED)
    states = {name: style.label for name, style in STATE_STYLE.items()}
    table = pd.DataFrame(
        {
            "value": listed["value"],
            "key": listed["key"],
            **({"user": listed["subject"]} if info.is_log else {"seed": listed["seed"]}),
            "ends now": listed["state_now"].map(states),
            "would end": listed["state_new"].map(states),
            "lifecycle": [f"lifecycle?{urlencode(_place(info, row))}" for row in listed.to_dict("records")],
            "archive": [_in_archive(info, row) for row in listed.to_dict("records")],
            "differs from": listed["first_difference"],
            "changes": listed["transitions_now"],
            "would be": listed["transitions_new"],
        }
    )
    link = st.column_config.LinkColumn
    chosen = st.dataframe(
        table,
        key="impact",
        hide_index=True,
        height=min(38 + 35 * len(table), 320),
        on_select="rerun",
        selection_mode="single-row",
        alt="Memories whose life would differ; each row links to its lifecycle, and to the archive if it stands there",
        column_config={
            "lifecycle": link(display_text="its life"),
            "archive": link(display_text="in archive"),
            "changes": st.column_config.NumberColumn(help="Changes of state in the run."),
            "would be": st.column_config.NumberColumn(help="Changes of state under this setting."),
            "differs from": st.column_config.DatetimeColumn(format="D MMM YYYY, HH:mm", timezone="UTC")
            if info.is_log
            else st.column_config.NumberColumn("differs from task"),
        },
    )
    rows = chosen["selection"]["rows"]
    if rows and rows[0] < len(listed):
        row = listed.iloc[rows[0]].to_dict()
        with st.container(horizontal=True):
            st.page_link(
                "pages/explore/lifecycle.py",
                label=f"See the life of {plain_text(row['value'])}",
                icon=":material/timeline:",
                query_params=_place(info, row),
            )
            if row["state_now"] == "revoked":
                st.page_link(
                    "pages/audit/archive.py",
                    label="Open it in the archive",
                    icon=":material/inventory_2:",
                    query_params={"run": info.run_id, "precedent": row["id"]},
                )
    else:
        st.caption("Select a row to open that memory here; the links in the table open it in another tab.")
    download(changed, "impact_of_thresholds", f"Download all {len(changed):,} (CSV)")


def compare(info: RunInfo, drawn: Drawn) -> None:
    """Hold the current setting against the pinned one, with a paired test over the seeds."""
    current, pinned, called = drawn.current, drawn.pinned, drawn.called
    apart = {name: (SLIDERS[name].at(current), there) for name, there in sliders.differing(pinned, current).items()}
    if not apart:
        st.info(f"The current setting is {plain_text(called[0])}. Move a slider, or pin another setting, to compare.")
        return
    words = "; ".join(f"{name} {sliders.in_words(a)} against {sliders.in_words(b)}" for name, (a, b) in apart.items())
    st.markdown(f"This setting against {plain_text(called[0])}: {plain_text(words, 400)}.")
    if info.is_log:
        here, there = (_at(info, setting) for setting in (current, pinned))
        rows = [(LOG_MEASURES[name].title, int(here[name][0, 0]), int(there[name][0, 0])) for name in LOG_MEASURES]
        table = pd.DataFrame(rows, columns=["count", "this setting", called[1]])
        st.dataframe(table.assign(difference=table["this setting"] - table[called[1]]), hide_index=True, key="compared")
        st.caption("A log happened once: there are no seeds to test over, and the counts are exact.")
        return
    with st.spinner("Testing the difference over the seeds"):
        found = cache.settings_compared(info.run_id, drawn.method, current, pinned)
    overall = found[found["scope"] == OVERALL].iloc[0]
    if overall["changed"] == 0 and (found["changed"] == 0).all():
        st.markdown(f"**Not one of the {info.counts['seeds']} seeds succeeds differently.**")
    else:
        st.markdown(
            f"**Overall {points(overall['diff'])}**{_bounds(overall)}, p = {overall['p']:.3g} (two-tailed, paired "
            f"over {info.counts['seeds']} seeds, of which {overall['changed']} differ)."
        )
    table = found.rename(
        columns={"scope": "tasks of", "a": "this setting", "b": called[1], "diff": "difference", "lo": "from"}
        | {"hi": "to", "changed": "seeds that differ"}
    )
    share = st.column_config.NumberColumn(format="percent")
    percents = dict.fromkeys(("this setting", called[1], "difference", "from", "to"), share)
    st.dataframe(table, hide_index=True, key="compared", column_config=percents)
    st.caption("Share of tasks that succeed, on the same draws; 95 % bootstrap intervals; p by permutation.")
    download(table, "settings_compared")


def keep(info: RunInfo, drawn: Drawn) -> None:
    """Save, use and delete named settings; the commands that repeat this."""
    saved = cache.saved_settings()
    left, right = st.columns(2)
    with left.form("save_setting", clear_on_submit=True, border=False):
        st.text_input("Save this setting as", key="setting_name", max_chars=LONGEST_NAME)
        st.form_submit_button("Save", icon=":material/save:", key="setting_save", on_click=_save, args=(drawn.current,))
    with right:
        if saved:
            written = labels.of_names(saved)
            chosen = st.selectbox(
                "Saved settings",
                list(saved),
                format_func=lambda name: written.get(name, name),
                key="saved_setting",
            )
            setting = saved[chosen]
            st.text(sliders.as_text(setting).replace(",", ", ") or "the paper's setting")
            with st.container(horizontal=True):
                st.button("Use it", key="setting_use", on_click=sliders.use, args=(info, setting))
                st.button("Pin it", key="setting_pin", on_click=sliders.pin, args=(setting,))
                st.button("Delete it", key="setting_delete", on_click=_delete, args=(chosen,))
        else:
            st.caption("There is no saved setting yet.")
    st.markdown("The command that imports this log with it:" if info.is_log else "The command that runs all of it so:")
    st.code(visible(sliders.command(info, drawn.current)), language="bash", wrap_lines=True)
    if not info.is_log:
        st.markdown("And the one that computes the surface of two thresholds:")
        x, y = (SLIDERS[state.held(axis, default)].coarse for axis, default in _AXES)
        command = sliders.sweep_command(info, drawn.current, x, y, drawn.method, drawn.measure, drawn.scope)
        st.code(visible(command), language="bash", wrap_lines=True)


_AXES = (("x", "theta_rev"), ("y", "theta_rec"))


@boundary.callback
def _save(setting: Thresholds) -> None:
    try:
        kept = save_setting(who.writing(), str(st.session_state["setting_name"]), setting)
    except ValueError as error:
        st.toast(f"Not saved: {plain_text(str(error).rstrip('.'), 200)}.", icon=":material/error:")
        return
    cache.forget()
    st.session_state["saved_setting"] = kept
    st.toast(f"Saved as {plain_text(kept)}.", icon=":material/save:")


@boundary.callback
def _delete(name: str) -> None:
    try:
        delete_setting(who.writing(), name)
    except PermissionRefused as error:
        st.toast(plain_text(error, 200), icon=":material/block:")
        return
    cache.forget()


def _columns(counted: pd.DataFrame) -> dict[str, np.ndarray]:
    return {name: counted[name].to_numpy()[:, None] for name in LOG_MEASURES}


def _at(info: RunInfo, setting: Thresholds) -> dict[str, np.ndarray]:
    one = Grid.of("theta_rec", [setting.theta_rec])
    return _columns(cache.log_sweep(info.run_id, setting, one))


def _sentence(info: RunInfo, changed: pd.DataFrame) -> str:
    where = "this log" if info.is_log else f"the {info.counts['seeds']} seeds"
    if changed.empty:
        return f"Every memory of {where} lives exactly as under the run's own setting."
    ends = changed["state_now"] != changed["state_new"]
    dies = int((ends & (changed["state_new"] == "revoked")).sum())
    lives = int((ends & (changed["state_new"] == "active")).sum())
    one = len(changed) == 1
    return (
        f"{len(changed):,} memor{'y' if one else 'ies'} of {where} would live another life: {dies:,} more would end "
        f"revoked, {lives:,} more active, {int((~ends).sum()):,} would end as now, by another way."
    )


def _place(info: RunInfo, row: Mapping[Hashable, Any]) -> dict[str, str]:
    if row["transitions_now"] or info.is_log:
        return {"run": info.run_id, "precedent": str(row["id"])}
    # The run itself may never have heard of a value that is met only under the other setting.
    return {"run": info.run_id, "method": str(row["method"]), "seed": str(row["seed"]), "key": str(row["key_id"])}


def _in_archive(info: RunInfo, row: Mapping[Hashable, Any]) -> str:
    if row["state_now"] != "revoked":
        return ""
    return f"archive?{urlencode({'run': info.run_id, 'precedent': str(row['id'])})}"


def _bounds(row: pd.Series) -> str:
    return "" if pd.isna(row["lo"]) else f" [{points(row['lo'])}, {points(row['hi'])}]"
