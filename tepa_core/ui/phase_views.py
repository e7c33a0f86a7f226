"""The views of the phases page: each draws one answer about the methods of a run."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st
from pandas.api.types import is_numeric_dtype

from tepa_core.experiment import FACT_STREAM, OVERALL, same_draws, spec_from_dict
from tepa_core.figures import dot_interval, forest, heatmap, mpi_bars
from tepa_core.figures.theme import method_label
from tepa_core.inert import one_line, visible
from tepa_core.methods import METHODS
from tepa_core.store import RunInfo
from tepa_core.ui import cache, headline, labels, spec_words, state
from tepa_core.ui.text import plain_text
from tepa_core.ui.widgets import figure, table

ARCHIVE_PAGE, RUN_PAGE = "pages/audit/archive.py", "pages/data/run.py"
RECOVERY_IN = "recovery_time_"

#: Measures of the lifecycle in words, with their units.
MEASURES = {
    "false_revocations": "Wrong revocations (number per seed)",
    "false_revocation_share": "Wrong revocations (share of all that can be judged)",
    "revocation_delay_tasks": "Delay of revoking an outdated value (tasks)",
    "revocation_delay_uses": "Delay of revoking an outdated value (uses of its key)",
    "never_revoked": "Outdated values never revoked (number per seed)",
    "stale_exposure_rate": "Outdated value retrieved (share of tasks)",
    "recovery_time": "Recovery after a change (tasks until 9 of 10 succeed)",
    "never_recovered": "Phases without recovery (number per seed)",
}


def success(summary: pd.DataFrame, phase: str, level: float) -> None:
    """Draw success per method and phase: dots with intervals, then the numbers."""
    phases = summary[summary["phase"] != OVERALL]
    figure(dot_interval(phases, highlight_phase=phase, level=level), "success_dots")
    if phases["phase"].nunique() > 1:
        figure(heatmap(summary, highlight_phase=phase), "success_heatmap")
    with st.expander("The numbers with their intervals"):
        table(_labelled(summary), "success_by_phase")


def pollution(index: pd.DataFrame, level: float) -> None:
    """Draw the memory pollution index of every phase."""
    if index.empty:
        st.info("The pollution index needs an agent without memory: start a run with no_memory on Run.")
        return
    if index["mpi"].isna().all():
        st.info(headline.NO_POLLUTION)
        return
    figure(mpi_bars(index, level=level), "mpi_by_phase")
    with st.expander("The numbers with their intervals"):
        table(_labelled(index), "pollution_by_phase")


def differences(info: RunInfo, compared: pd.DataFrame, methods: Sequence[str], level: float) -> None:
    """Draw the paired differences of one method from the others, in one scope at a time."""
    if compared.empty:
        st.info("There is nothing to compare: this run has one method. Start one with more methods on Run.")
        return
    scopes = labels.of_names(dict.fromkeys(compared["scope"]), plain_text)
    scope = st.segmented_control(
        "Tasks of",
        list(scopes),
        format_func=lambda name: scopes.get(name, name),
        required=True,
        key=state.remember("tasks_of", list(scopes), list(scopes)[-1]),
    )
    chosen = compared["a"].isin(methods) & compared["b"].isin(methods)
    rows = compared[chosen & (compared["scope"] == scope)]
    if rows.empty:
        st.info("Choose at least one more method above, to compare with.")
    else:
        figure(forest(rows, level=level), "differences_forest")
    pairs, unit = int(info.counts["seeds"]), "orders of the questions" if info.is_facts else "seeds"
    least = 0.5**pairs
    st.caption(
        f"Paired over the {unit}. "
        + (f"With {pairs} of them p cannot be below {least:g}, whatever the difference. " if least > 0.05 else "")
        + f"Bounds come from a bootstrap, p from a one-tailed permutation test, corrected after "
        f"Holm over all {len(compared)} comparisons of this run, also those that are not chosen above."
    )
    table(_labelled(compared[chosen]), "differences")


def another_run(info: RunInfo, methods: Sequence[str], level: float) -> None:
    """Compare the run with another simulated one, method by method."""
    runs = cache.runs()
    # Answers to questions and successes of tasks share no phase.
    alike = (runs["stream"] == FACT_STREAM) == info.is_facts
    others = runs[(runs["kind"] == "simulation") & (runs["run_id"] != info.run_id) & alike]
    if others.empty:
        what = "fact run" if info.is_facts else "simulated run"
        st.info(f"There is no other {what} yet. Start one with another setting, and compare it here.")
        st.page_link(RUN_PAGE, label="Start another run", icon=":material/play_circle:")
        return
    names = labels.of_runs(others)
    other = st.selectbox(
        "Compare with",
        list(names),
        format_func=lambda run: f"{names.get(run, one_line(run))} ({run})",
        key=state.remember("against", list(names), next(iter(names))),
    )
    here, there = spec_from_dict(info.spec), spec_from_dict(cache.run_info(other).spec)
    st.markdown(f"What differs: {spec_words.differences(here, there)}.")
    paired = same_draws(here, there)
    frame = cache.differences_of_runs(info.run_id, other, paired, level)
    frame = frame[frame["method"].isin(methods)]
    if info.is_facts:
        frame = frame[frame["phase"] != OVERALL]
    if frame.empty:
        st.info("The two runs share none of the chosen methods and phases. Choose others above.")
        return
    largest = frame.iloc[int(frame["diff"].abs().argmax())]
    st.markdown(
        f"Largest difference: **{method_label(largest['method'])}** in {plain_text(largest['phase'])}, "
        f"{headline.percent(largest['a'])} here and {headline.percent(largest['b'])} there "
        f"(**{headline.points(largest['diff'])}**{_bounds(largest)})."
    )
    st.caption(
        f"Both runs met the same draws, so seeds are paired: differences with {level:.0%} bootstrap intervals."
        if paired
        else "The runs met different draws (another stream or file, or other seeds or counts), so seeds cannot be "
        "paired: means side by side, without intervals."
    )
    frame = frame.sort_values("diff", key=abs, ascending=False, kind="stable")
    table(_labelled(frame, a="here", b="there", diff="here − there"), "run_against_run")


def memories(info: RunInfo, methods: Sequence[str], level: float) -> None:
    """Say how well the memories of each method with a lifecycle were revoked, against the truth of the stream."""
    lifecycles = [method for method in methods if method in METHODS and METHODS[method].lifecycle]
    if not lifecycles:
        st.info("None of the chosen methods keeps memories with a lifecycle. Choose TEPA above.")
        return
    if info.is_facts:
        st.info(
            "A fact file says what was stated, not what was right when, so no revocation can be called early, late or "
            "wrong here. The archive shows what was revoked, and on which fact."
        )
        _to_archive(info)
        return
    measured = {method: cache.life_measures(info.run_id, method, level).set_index("measure") for method in lifecycles}
    st.markdown(headline.of_memories(lifecycles[0], measured[lifecycles[0]]["mean"]))
    rows = [name for name in measured[lifecycles[0]].index if name in MEASURES or name.startswith(RECOVERY_IN)]
    table(
        pd.DataFrame(
            {"measure": [_measure(name) for name in rows]}
            | {method_label(method): [_measured(frame, name) for name in rows] for method, frame in measured.items()}
        ),
        "memories",
    )
    st.caption(
        f"Mean per seed [{level:.0%} bootstrap interval over seeds]. A simulation knows what was right when, so it can "
        "judge each revocation; a log cannot, and needs a person's verdict."
    )
    _to_archive(info)


def _to_archive(info: RunInfo) -> None:
    st.page_link(
        ARCHIVE_PAGE,
        label="The revocations one by one",
        icon=":material/inventory_2:",
        query_params={"run": info.run_id},
    )


def _measure(name: str) -> str:
    return MEASURES.get(name) or f"Recovery in {name.removeprefix(RECOVERY_IN)} (tasks until 9 of 10 succeed)"


def _measured(frame: pd.DataFrame, name: str) -> str:
    row = frame.reindex([name]).iloc[0]
    if pd.isna(row["mean"]):
        return "none"
    return f"{row['mean']:.3g} [{row['lo']:.3g}, {row['hi']:.3g}]"


def choices(info: RunInfo) -> None:
    """State what this run assumes where the paper leaves a choice, and how to repeat it."""
    spec = spec_from_dict(info.spec)
    for sentence in spec_words.choices(spec):
        st.markdown(sentence)
    st.caption("The command that repeats it:")
    st.code(visible(spec.command()), language="bash", wrap_lines=True)


def _bounds(row: pd.Series) -> str:
    return "" if pd.isna(row["lo"]) else f" [{headline.points(row['lo'])}, {headline.points(row['hi'])}]"


#: Names of columns as people read them.
_COLUMNS = {
    "a": "first",
    "b": "second",
    "diff": "difference",
    "lo": "from",
    "hi": "to",
    "mpi": "MPI",
    "p_holm": "p (Holm)",
    "dz": "d_z",
}


def _labelled(frame: pd.DataFrame, **names: str) -> pd.DataFrame:
    """Return a table with names of methods and columns as people read them."""
    texts = [name for name in ("method", "a", "b") if name in frame and not is_numeric_dtype(frame[name])]
    places = dict.fromkeys(("mean", "a", "b", "diff", "lo", "hi", "mpi", "dz"), 4)
    named = frame.assign(**{name: frame[name].map(method_label) for name in texts})
    if "dz" in named:
        # Differences that never vary have no standard deviation to divide by.
        named["dz"] = named["dz"].where(named["dz"].abs() != float("inf"))
    return named.round({name: n for name, n in places.items() if name not in texts}).rename(columns=_COLUMNS | names)
