"""The preview of a decision: a line of numbers, the key's life without it and with it, and what else changes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from tepa_core.decisions import Action, DecisionRefused, LogEffect
from tepa_core.experiment import OVERALL, Effect
from tepa_core.figures import RETRIEVED, lifecycle
from tepa_core.figures.theme import STATE_STYLE
from tepa_core.lifecycle import Verdict
from tepa_core.store import KeyLife, RunInfo, in_words_at
from tepa_core.store.previewed import Preview
from tepa_core.ui import cache, lifecycle_view, widgets
from tepa_core.ui.text import plain_text


def ask(
    info: RunInfo, precedent: str, action: Action, pinned: bool, at: int | None, every_seed: bool
) -> Preview | None:
    """Return what a decision would change; None, with a sentence, where it is not possible.

    Parameters
    ----------
    at
        From when on, in the stored clock; None: right after the last revocation.
    every_seed
        In a simulation: the same decision in every seed as well.
    """
    try:
        with st.spinner("Replaying with the decision"):
            return cache.preview_of(info.run_id, precedent, action, pinned=pinned, at=at, every_seed=every_seed)
    except DecisionRefused as error:
        st.warning(f"{plain_text(error, 400)}", icon=":material/block:")
        return None


def numbers(found: Preview, *, now: bool) -> None:
    """Draw the sentence and the line of four numbers.

    Parameters
    ----------
    now
        The decision will apply from the end of a log on, and is shown as if it had been taken before.
    """
    st.markdown(f"##### {sentence(found)}")
    if isinstance(found.effect, Effect):
        _simulation(found, found.effect)
    else:
        _log(found.effect, now)


def changes(found: Preview) -> None:
    """Draw the key's life without the decision and with it, and list what changes."""
    effect = found.effect
    _figures(found)
    title = f"{_count(effect.transitions_changed, 'change')} of state"
    if isinstance(effect, Effect):
        title = f"{_count(effect.episodes_changed, 'episode')} and {title} in seed {effect.seed}"
    with st.expander(f"What changes: {title}", key="preview_changes"):
        if isinstance(effect, Effect):
            _by_phase(effect)
            _episodes(effect.episodes)
        _transitions(effect.transitions)


def sentence(found: Preview) -> str:
    """Say in Markdown what a decision would change, with the number that matters most."""
    effect = found.effect
    return _of_simulation(found, effect) if isinstance(effect, Effect) else _of_log(found, effect)


def phase_of(found: Preview, effect: Effect) -> str:
    """Return the phase in which a decision first matters: that of the task after it."""
    phases = found.before.phases
    here = phases[(phases["start"] <= effect.at + 1) & (phases["end"] > effect.at + 1)]
    return str(here["phase"].iloc[0]) if len(here) else OVERALL


def differences(before: KeyLife, after: KeyLife) -> pd.DataFrame:
    """Stretches of the axis in which the shown states of a key's values differ: ``x0``, ``x1``."""
    names = sorted({*before.spans["value"], *after.spans["value"]})
    parts = [dict(tuple(life.spans.groupby("value", sort=False))) for life in (before, after)]
    rows: list[tuple[Any, Any]] = []
    for name in names:
        own = [part.get(name, life.spans.head(0)) for part, life in zip(parts, (before, after), strict=True)]
        edges = sorted({edge for spans in own for column in ("x0", "x1") for edge in spans[column]})
        left, right = (_states(spans, edges) for spans in own)
        rows += [(x0, x1) for (x0, x1), one, other in zip(pairwise(edges), left, right, strict=False) if one != other]
    joined: list[tuple[Any, Any]] = []
    for x0, x1 in sorted(rows):
        if joined and x0 <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], x1))
        else:
            joined.append((x0, x1))
    return pd.DataFrame(joined, columns=["x0", "x1"])


def _states(spans: pd.DataFrame, edges: Sequence[Any]) -> list[str]:
    """Return what a value is from each edge on, as far as it matters: active, revoked, or nothing."""
    lasting = spans[spans["x1"] > spans["x0"]]
    starts, ends = list(lasting["x0"]), list(lasting["x1"])
    shown = ["active" if one in RETRIEVED else one if one == "revoked" else "" for one in lasting["state"]]
    states, at = [], -1
    for edge in edges:
        while at + 1 < len(starts) and starts[at + 1] <= edge:
            at += 1
        states.append(shown[at] if at >= 0 and edge < ends[at] else "")
    return states


def _simulation(found: Preview, effect: Effect) -> None:
    phase = phase_of(found, effect)
    every = effect.every_seed
    table = effect.success if every is None else every.success
    row = table[table["phase"] == phase].iloc[0]
    success, pollution = row["difference"], row["mpi_difference"]
    between = ((row["lo"], row["hi"]), (row["mpi_lo"], row["mpi_hi"])) if every is not None else ((), ())
    with st.container(horizontal=True, key="preview_numbers"):
        st.metric("Success as it is", f"{row['before']:.3f}")
        st.metric("With it", f"{row['after']:.3f}", _signed(success, *between[0]), delta_color=_tone(success, 1))
        st.metric("MPI as it is", _number(row["mpi_before"]))
        st.metric(
            "With it", _number(row["mpi_after"]), _signed(pollution, *between[1]), delta_color=_tone(pollution, -1)
        )
    words = f"{'Overall' if phase == OVERALL else f'In {plain_text(phase)}'}, "
    if every is None:
        words += f"seed {effect.seed}. "
    else:
        words += (
            f"means of all {every.seeds:,} seeds with 95 % bootstrap intervals of the paired difference. "
            f"{every.matched:,} of them have the matching revocation: of the same value, by the same number in the "
            "same phase. "
        )
        if every.unmatched:
            words += f"The other {len(every.unmatched):,} count with no difference. "
    st.caption(
        f"{words}MPI, the pollution index, is the share of the successes of an agent without memory that this one "
        "loses; below zero it gains."
    )


def _log(effect: LogEffect, now: bool) -> None:
    share = effect.exposure.set_index("value_id").to_dict("index")[effect.value]
    difference = share["after"] - share["before"]
    with st.container(horizontal=True, key="preview_numbers"):
        st.metric("Active as it is", _share(share["before"]))
        st.metric(
            "With it",
            _share(share["after"]),
            None if np.isnan(difference) else f"{100 * difference:+.0f} points",
            delta_color="off",
        )
        st.metric("Later for it", f"{effect.later_supports:,}")
        st.metric("Later against it", f"{effect.later_conflicts:,}")
    words = f"Share of the time {since(effect)} in which it is active, and the evidence items of that time."
    if now:
        words += (
            " Saved, the decision applies from the end of the log on, where nothing is left to compare; so this shows "
            "what would have followed had it been taken right after the revocation."
        )
    st.caption(words)


def since(effect: LogEffect) -> str:
    """Name the time from a decision to the end of a log."""
    return f"from {in_words_at(effect.at, True).removeprefix('on ')} to the end of the log"


def _of_simulation(found: Preview, effect: Effect) -> str:
    phase = phase_of(found, effect)
    row = effect.success[effect.success["phase"] == phase].iloc[0]
    where = f"in {plain_text(phase)}" if phase != OVERALL else "overall"
    if effect.episodes_changed == 0:
        return f"No episode of seed {effect.seed} changes: the agent acts the same with it."
    points = 100 * row["difference"]
    verb = "raises" if points > 0 else "lowers" if points < 0 else "leaves"
    words = f"It {verb} success {where} of seed {effect.seed} "
    words += (
        f"at {row['before']:.3f}"
        if points == 0
        else f"from {row['before']:.3f} to {row['after']:.3f}, by {abs(points):.1f} points"
    )
    overall = effect.success[effect.success["phase"] == OVERALL].iloc[0]
    if phase != OVERALL:
        words += f"; overall by {_points(overall['difference'])} points"
    every = effect.every_seed
    if every is None:
        return f"{words}."
    mean = every.success[every.success["phase"] == phase].iloc[0]
    bounds = f"[{_points(mean['lo'])}, {_points(mean['hi'])}]"
    return f"{words}. Over all seeds: {_points(mean['difference'])} points {bounds}."


def _of_log(found: Preview, effect: LogEffect) -> str:
    is_log = True
    values = found.after.values
    spelled = str(values.loc[values["value_id"] == effect.value, "value"].iloc[0])
    value = plain_text(spelled) or "(empty text)"
    evidence = f"{effect.later_supports:,} for it and {effect.later_conflicts:,} against it"
    at = in_words_at(effect.at, is_log)
    if effect.later_supports + effect.later_conflicts == 0:
        since = at.replace("on ", "after ", 1)
        return f"No evidence on {value} came {since}: nothing speaks for the decision or against it."
    if effect.verdict is Verdict.CONFIRM:
        returns = found.before.transitions
        came = returns[(returns["value"] == spelled) & (returns["x"] > effect.at) & (returns["to_state"] == "active")]
        kept = (
            f"keeps {value} from coming back {in_words_at(came['x'].iloc[0], is_log)}"
            if len(came)
            else f"keeps {value} where it is"
        )
        return f"It {kept}. Later evidence: {evidence}."
    days = effect.stands_for / pd.Timedelta(days=1)
    until = (
        f"would have stood to the end of the log, for {_days(days)}"
        if effect.stands_until is None
        else f"would have stood for {_days(days)}, until the rule revoked it {in_words_at(effect.stands_until, is_log)}"
    )
    return f"Active again, {value} {until}. Later evidence: {evidence}."


def _figures(found: Preview) -> None:
    """Draw the life without the decision and with it, one above the other on the same axis."""
    shaded = differences(found.before, found.after)
    ends = [*found.before.spans["x0"], *found.before.spans["x1"], *found.after.spans["x1"]]
    low, high = min(ends), max(ends)
    margin = (high - low) * 0.012
    for life, title, key in (
        (found.before, "As it is", "preview_before"),
        (found.after, "With the decision", "preview_after"),
    ):
        st.markdown(f"**{title}**")
        figure = lifecycle(
            lifecycle_view.figure_data(life),
            decisions=life.decisions if len(life.decisions) else None,
            differences=shaded,
            x_range=(low - margin, high + margin),
        )
        # The words of the figure are for a page on which its marks can be clicked.
        figure.update_layout(meta={"alt": figure.layout.meta["alt"]}, showlegend=key == "preview_after")
        if key == "preview_before":
            figure.update_layout(margin_b=40, height=figure.layout.height - figure.layout.margin.b + 40)
        widgets.figure(figure, key)
    if len(shaded):
        st.caption("Shaded: where the states differ. The flag marks the decision.")


def _by_phase(effect: Effect) -> None:
    every = effect.every_seed
    table = effect.success if every is None else every.success
    shown = ["phase", "before", "after", "difference", *(["lo", "hi"] if every is not None else [])]
    table = table[[*shown, "mpi_before", "mpi_after"]]
    st.caption("Success and pollution index by phase, without the decision and with it.")
    st.dataframe(
        table.rename(columns={"mpi_before": "MPI before", "mpi_after": "MPI after"}),
        hide_index=True,
        key="preview_phases",
        column_config={
            name: st.column_config.NumberColumn(format="%.3f")
            for name in ("before", "after", "difference", "lo", "hi", "MPI before", "MPI after")
        },
    )


def _episodes(changed: pd.DataFrame) -> None:
    st.caption("Episodes with another action or another outcome.")
    if changed.empty:
        st.text("None.")
        return
    outcome = {True: "succeeded", False: "failed"}
    sides = {
        f"{words} it": changed[f"action_{side}"].astype(str) + ", " + changed[f"success_{side}"].map(outcome)
        for side, words in (("before", "without"), ("after", "with"))
    }
    widgets.table(changed[["t", "phase", "key"]].rename(columns={"t": "task"}).assign(**sides), "preview_episodes")


def _transitions(changed: pd.DataFrame) -> None:
    st.caption("Changes of state that happen on one side only.")
    if changed.empty:
        st.text("None.")
        return
    label = {name: style.label for name, style in STATE_STYLE.items()}
    view = pd.DataFrame(
        {
            "happens": changed["side"].map({"before": "without it", "after": "with it"}),
            "when": changed["time"],
            "value": changed["value_id"],
            "from": changed["from_state"].map(label),
            "to": changed["to_state"].map(label),
            "rule": changed["rule"],
        }
    )
    widgets.table(view, "preview_transitions")


def of_ledger(effect: Mapping[str, Any]) -> str:
    """Say in short what the numbers kept with a decision are; empty for none."""
    success: Mapping[Hashable, Any] = effect.get("success") or {}
    if OVERALL in success:
        # The ledger keeps the phases by name; all tasks together come last.
        phases = [*(name for name in success if name != OVERALL), OVERALL]
        parts = [f"{name} {_points(success[name]['difference'])}" for name in phases if success[name]["difference"]]
        return f"success {', '.join(parts)} points" if parts else "no episode changes"
    if "later_supports" in effect:
        return f"{effect['later_supports']:,} for it, {effect['later_conflicts']:,} against it after the decision"
    return ""


def _signed(difference: float, lo: float | None = None, hi: float | None = None) -> str | None:
    if np.isnan(difference):
        return None
    # Streamlit tells the arrow by the sign, which it knows as the hyphen alone.
    words = f"{difference:+.3f}" if difference else "0.000"
    return words if lo is None or hi is None else f"{words} [{_number(lo)}, {_number(hi)}]"


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−") if round(100 * share, 1) else "0.0"


def _tone(difference: float, good: int) -> Any:
    return "off" if np.isnan(difference) or difference == 0 else "normal" if good > 0 else "inverse"


def _number(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:.3f}".replace("-", "−")


def _share(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.0%}"


def _days(days: float) -> str:
    return f"{days:,.0f} days" if days >= 1.5 else "a day" if days >= 0.5 else "less than a day"


def _count(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
