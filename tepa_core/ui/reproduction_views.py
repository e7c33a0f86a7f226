"""What the reproduction page shows: how much of the paper holds here, table by table, and why the rest differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd
import streamlit as st

from tepa_core import reproduce
from tepa_core.decisions import PermissionRefused
from tepa_core.experiment.facts import ANSWERED, CHAIN_NOT_FOUND, NEVER_STATED, STATE_WRONG
from tepa_core.figures import heatmap, memory_size, mpi_bars
from tepa_core.figures.reproduction import beside_reported, noise_curves
from tepa_core.figures.theme import listed, method_label
from tepa_core.reported import (
    ABLATION,
    COST,
    DRIFT,
    FACT_FILES,
    FACTS,
    NOISE,
    NOISE_RUNS,
    OUTLIER,
    PAIRED,
    PREFERENCE,
    TABLES,
    variant_name,
)
from tepa_core.streams import STREAMS
from tepa_core.streams.fact_file import FactFileError
from tepa_core.ui import cache, cost_view, state, who
from tepa_core.ui.text import plain_text
from tepa_core.ui.widgets import figure, progress_into, table

DRIFT_STREAMS = ("controlled", "executable", "preference")

VERDICTS: Mapping[object, str] = {True: "✓ within", False: "✗ outside", None: "– not measured"}

#: What the program calls a candidate and the base policy, for the switch.
FALLBACKS = {"candidate": "its best candidate", "base_policy": "the base policy"}


def headline(tally: pd.DataFrame) -> list[str]:
    """Say how much of the paper this build reproduces.

    Parameters
    ----------
    tally
        ``table``, ``reported``, ``measured``, ``within``, as `tepa_core.reproduce.tally`.
    """
    total, measured, within = (int(tally[name].sum()) for name in ("reported", "measured", "within"))
    if not measured:
        return [
            f"Nothing is measured yet: the paper reports **{total}** numbers, and none of their runs is made with this "
            "number of seeds."
        ]
    sentences = [
        f"**{within} of the {measured}** numbers measured here agree with the paper"
        + ("." if measured == total else f"; {total - measured} of its {total} are not measured yet.")
    ]
    core = tally[tally["table"].isin((DRIFT, PAIRED, PREFERENCE))]
    if core["measured"].sum():
        share = core["within"].sum() / core["measured"].sum()
        sentences.append(
            f"In the drift and preference tables {core['within'].sum()} of {core['measured'].sum()} ({share:.0%}) do."
        )
    apart = tally[(tally["measured"] > 0) & tally["table"].isin((FACTS, COST))]
    for row in apart.itertuples(index=False):
        why = (
            "there the paper asks a language model, this build a deterministic reader"
            if row.table == FACTS
            else "these are ratios of times on another machine"
        )
        sentences.append(f"{row.table}: {row.within} of {row.measured}; {why}.")
    sentences.append(
        "A number agrees when it lies in our 95 % interval widened by 0.03. No method has a setting of its own; "
        "two choices where the paper is silent are named in the README."
    )
    return sentences


def offer_the_rest(seeds: int, stored: Mapping[str, str]) -> None:
    """Offer to make the runs that are missing, and do it with progress."""
    missing = [name for name in reproduce.specs(seeds) if name not in stored]
    facts = [name for name in FACT_FILES.values() if name not in stored]
    without_file = [words for name in facts if (words := reproduce.missing_file(name)) is not None]
    to_make = len(missing) + len(facts) - len(without_file)
    if without_file:
        st.info(
            f"{len(without_file)} of the {len(FACT_FILES)} fact files are not here, so their numbers stay open: "
            + " ".join(plain_text(words, limit=200) for words in without_file[:1]),
            icon=":material/draft:",
        )
    if not to_make:
        return
    if not who.may_decide():
        st.info("A reviewer can make them here.", icon=":material/lock:")
        return
    wait = "a minute or two" if seeds >= 40 else "less than a minute"
    if not st.button(
        f"Make the {to_make} missing runs",
        key="make_missing",
        type="primary",
        icon=":material/play_circle:",
        help=f"Takes {wait}. Each run is stored as soon as it is finished, and stays if you stop.",
    ):
        return
    with st.status(f"Making {to_make} runs; this takes {wait}", expanded=True) as status:
        bar = st.progress(0.0, "Starting")
        try:
            reproduce.ensure_runs(who.writing(), seeds, progress_into(bar))
        except PermissionRefused as error:
            status.update(label="Not all runs were made; the finished ones are stored", state="error")
            st.error(plain_text(error, limit=400), icon=":material/block:")
            cache.forget()
            return
        except (FactFileError, OSError) as error:
            status.update(label="Not all runs could be made; the finished ones are stored", state="error")
            st.error(f"{plain_text(error, limit=400)} Correct the file and try again.")
            cache.forget()
            return
    cache.forget()
    st.rerun()


def numbers(rows: pd.DataFrame, key: str) -> None:
    """Show reported and our numbers as a table, and the open choices behind ours."""
    shown = pd.DataFrame(
        {
            "run": rows["run"],
            "what": [_what(method) for method in rows["method"]],
            "where": rows["scope"],
            "quantity": rows["quantity"].replace({"mpi": "MPI", "dz": "d_z"}),
            "paper": rows["reported"].round(3),
            "here": rows["ours"].round(3),
            "from": rows["lo"].round(3),
            "to": rows["hi"].round(3),
            "verdict": [VERDICTS[None if pd.isna(value) else bool(value)] for value in rows["within"]],
        }
    )
    if rows["reported_lo"].notna().any():
        shown.insert(
            5, "paper's interval", [_span(*pair) for pair in zip(rows["reported_lo"], rows["reported_hi"], strict=True)]
        )
        shown["p, paper"] = rows["reported_p"].fillna("")
        shown["p, here (Holm)"] = rows["p"].round(4)
    three = st.column_config.NumberColumn(format="%.3f")
    table(shown, key, columns=dict.fromkeys(("paper", "here", "from", "to"), three), height="content")
    outside = rows[rows["within"].eq(False).fillna(False) & (rows["note"] != "")]
    choices(outside, "Why some numbers differ", key=f"{key}_differ", expanded=True)
    inside = rows[~rows.index.isin(outside.index) & (rows["note"] != "")]
    inside = inside[~inside["note"].isin(outside["note"])]
    choices(inside, "Open choices behind the others", key=f"{key}_choices", expanded=False)


def choices(rows: pd.DataFrame, title: str, *, key: str, expanded: bool) -> None:
    """List the notes of rows, each once, with what it is about."""
    if rows.empty:
        return
    with st.expander(title, expanded=expanded, key=key):
        for note, part in rows.groupby("note", sort=False):
            about = list(dict.fromkeys(_what(method) for method in part["method"]))
            st.markdown(f"- **{plain_text(listed(about), limit=200)}**: {plain_text(note, limit=600)}")


def _what(method: str) -> str:
    for sign, shown in ((" - ", " − "), (" / ", " / ")):
        if sign in method:
            return shown.join(method_label(part) for part in method.split(sign))
    return method_label(method)


def _span(lo: float, hi: float) -> str:
    return "" if pd.isna(lo) else f"[{lo:.3f}, {hi:.3f}]"


def drift(rows: pd.DataFrame, seeds: int) -> None:
    """Draw success in full reversal on both drift streams, ours beside the paper's."""
    figure(
        beside_reported(_labelled(rows, "success"), x_title="Success in full reversal (rate)", whole=True),
        "drift_beside",
    )
    numbers(rows, "drift_table")


def paired(rows: pd.DataFrame, seeds: int) -> None:
    """Draw the paired differences with intervals, ours beside the paper's (Figure 9)."""
    differences = _labelled(rows, "difference").assign(group=lambda df: df["run"] + ", " + df["scope"])
    fig = beside_reported(differences, x_title="Difference in success (rate, paired)", zero_line=True)
    figure(fig, "paired_beside")
    numbers(rows, "paired_table")


def preference(rows: pd.DataFrame, seeds: int) -> None:
    """Draw the preference stream as a lollipop, overall and in reversal (Figure 8)."""
    scopes = _labelled(rows, "success").assign(group=lambda df: df["scope"])
    figure(beside_reported(scopes, x_title="Success (rate)", stems=True, whole=True), "preference_lollipop")
    numbers(rows, "preference_table")


def noise(rows: pd.DataFrame, seeds: int) -> None:
    """Draw the key-noise audit."""
    percent = {name: share for share, name in NOISE_RUNS.items()}
    figure(noise_curves(rows.assign(percent=rows["run"].map(percent))), "noise_curves")
    numbers(rows, "noise_table")


def ablation(rows: pd.DataFrame, seeds: int) -> None:
    """Draw overall success per variant (Figure 4a) and its change in points (Figure 4b)."""
    variants = cache.ablation(seeds)
    if variants.empty:
        st.info("The controlled run is not made yet with this number of seeds. Make the missing runs above.")
        return
    st.markdown(of_outlier(variants))
    named = variants.assign(
        group=[f"{method_label(method)}" for method in variants["method"]], label=variants["variant"]
    )
    overall = named.assign(ours=named["mean"], reported=float("nan"))
    left, right = st.columns(2, gap="medium")
    with left:
        figure(beside_reported(overall, x_title="Overall success (rate)"), "ablation_dots")
    changed = named[named["variant"] != "unchanged"]
    points = changed.assign(
        **{ours: 100 * changed[name] for ours, name in (("ours", "change"), ("lo", "change_lo"), ("hi", "change_hi"))},
        reported=100 * changed["reported"],
    )
    with right:
        fig = beside_reported(
            points, x_title="Change of overall success (percentage points)", zero_line=True, decimals=1
        )
        figure(fig, "ablation_changes")
    numbers(rows, "ablation_table")


def of_outlier(variants: pd.DataFrame) -> str:
    """Say whether the setting that the paper names the outlier is one here."""
    changed = variants[~variants["variant"].isin(("unchanged", "no revocation"))].set_index("variant")["change"]
    name = variant_name(*OUTLIER)
    without = variants.loc[variants["variant"] == "no revocation", "change"].iloc[0]
    said = f"Without revocation TEPA loses {-100 * without:.1f} points overall. "
    if name not in changed:
        return f"{said}The runs with changed thresholds are not made yet."
    lowest, at = str(changed.idxmin()), 100 * changed[name]
    others = 100 * changed.drop(name).abs().max()
    here = "so it is here" if lowest == name else f"here {plain_text(lowest)} is lower"
    return (
        f"{said}The paper names a recent window of {OUTLIER[1]} outcomes the main negative outlier among the "
        f"thresholds: {here}, with {at:+.1f} points; no other setting moves by more than {others:.1f}."
    ).replace("-", "−")


def facts(rows: pd.DataFrame, seeds: int) -> None:
    """Draw the fact files, then say whether memory or the reader fails at questions through several relations."""
    figure(
        beside_reported(_labelled(rows, "success"), x_title="Substring exact match (share of questions)", whole=True),
        "facts_beside",
    )
    numbers(rows, "facts_table")
    st.subheader("Questions through several relations: is the memory wrong, or the reader?", anchor=False)
    run_id = cache.reproduced_runs(seeds).get(FACT_FILES["mh_6k"])
    if run_id is None:
        st.info("This needs the run on the multi-hop file. Make the missing runs above.")
        return
    counts = cache.attributions(run_id)
    st.markdown(of_attribution(counts))
    table(attribution_table(counts), "attribution_table")


def of_attribution(counts: pd.DataFrame) -> str:
    """Say where the right answer stood when a question through several relations was not answered.

    Parameters
    ----------
    counts
        ``method``, ``attribution``, ``n``.
    """
    ours = counts[counts["method"] == "tepa"].set_index("attribution")["n"]
    total = int(ours.sum())
    active, archived, never = (int(ours.get(name, 0)) for name in (CHAIN_NOT_FOUND, STATE_WRONG, NEVER_STATED))
    wrong = active + archived + never
    if not wrong:
        return f"TEPA answered all {total} of them."
    verdict = (
        "So the step that fails is chaining the relations, not revocation"
        if active > wrong / 2
        else "So revocation took away what the question needs"
    )
    return (
        f"The paper leaves open why every method fails here. Of {total} answers TEPA missed **{wrong}**: in "
        f"**{active}** the right answer stood among its active values, in **{archived}** only in the archive, in "
        f"**{never}** it was never stated. {verdict}: the deterministic reader answers with the closest fact alone."
    )


def attribution_table(counts: pd.DataFrame) -> pd.DataFrame:
    """Return per method how many answers were right, and where the right one stood for the others."""
    names = {
        ANSWERED: "answered",
        CHAIN_NOT_FOUND: "missed: right answer active",
        STATE_WRONG: "missed: right answer only archived",
        NEVER_STATED: "missed: never stated",
    }
    wide = counts.pivot(index="method", columns="attribution", values="n").reindex(columns=list(names)).fillna(0)
    wide = wide.astype(int).rename(columns=names)
    return wide.assign(method=[method_label(method) for method in wide.index]).set_index("method").reset_index()


def costs(rows: pd.DataFrame, seeds: int) -> None:
    """Show the cost table, measured on request."""
    cost_view.show()


def by_phase(rows: pd.DataFrame, seeds: int) -> None:
    """Draw one drift stream phase by phase: MPI, the heatmap (Figure 7) and memory size (Figure 6)."""
    stored = cache.reproduced_runs(seeds)
    there = [stream for stream in DRIFT_STREAMS if stream in stored]
    if not there:
        st.info("No drift run is made yet with this number of seeds. Make the missing runs above.")
        return
    pollution = {stream: cache.pollution(stored[stream]) for stream in there}
    st.markdown("**Memory pollution index, phase by phase** (above zero: worse than no memory)")
    table(mpi_table(pollution), "mpi_of_streams")
    stream = st.segmented_control(
        "Stream",
        there,
        format_func=lambda name: STREAMS[name].title if name in STREAMS else name,
        required=True,
        key=state.remember("drift_stream", there, there[0]),
    )
    if stream is None:
        return
    run_id, phases = stored[stream], cache.phases(stored[stream])
    figure(mpi_bars(pollution[stream]), "reproduction_mpi")
    figure(heatmap(cache.success(run_id)), "reproduction_heatmap")
    figure(memory_size(cache.curve(run_id, "size"), phases), "reproduction_memory")
    st.caption("The paper draws memory size and the heatmap without printing their numbers, so there is none beside.")
    st.page_link(
        "pages/explore/phases.py",
        label="Explore this run: every method, every phase",
        icon=":material/bar_chart:",
        query_params={"run": run_id},
    )


def mpi_table(pollution: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return MPI with its interval, a row per stream and method, a column per phase."""
    rows = []
    for stream, index in pollution.items():
        for method in ("append_only", "tepa"):
            part = index[index["method"] == method]
            cells = {
                str(row.phase): f"{row.mpi:+.3f} [{row.lo:+.3f}, {row.hi:+.3f}]".replace("-", "−")
                for row in part.itertuples(index=False)
            }
            rows.append({"stream": STREAMS[stream].title, "method": method_label(method), **cells})
    return pd.DataFrame(rows)


def settings(rows: pd.DataFrame, seeds: int) -> None:
    """List every setting of every run: what the streams start from, and what each other run changes."""
    every = reproduce.settings(seeds)
    st.markdown("Every run is one of these four, or one of them with one setting changed.")
    shared = every[every["run"].isin((*DRIFT_STREAMS, FACT_FILES["sh_6k"]))].set_index("run")
    wide = shared.T.rename(columns={FACT_FILES["sh_6k"]: "facts"}).rename_axis("setting").reset_index()
    table(_as_text(wide), "settings_shared", height="content")
    st.markdown("What the others change:")
    table(pd.DataFrame(_changes(every)), "settings_changed", height="content")
    with st.expander("Every setting of every run in one table", key="settings_every"):
        table(_as_text(every), "settings_all")


def _as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Write numbers and missing ones as text, so that a column may hold both kinds."""
    return frame.map(lambda value: "" if isinstance(value, float) and pd.isna(value) else _plain(value))


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _changes(every: pd.DataFrame) -> list[dict[str, str]]:
    base = every.set_index("run").loc["controlled"]
    rows = []
    for _, row in every.iterrows():
        if row["run"] in (*DRIFT_STREAMS, *FACT_FILES.values()):
            continue
        changed = [name for name in every.columns if name not in ("run", "methods") and _differs(row[name], base[name])]
        words = ", ".join(f"{name} {_plain(row[name])} instead of {_plain(base[name])}" for name in changed)
        rows.append({"run": row["run"], "from": "controlled", "changed": words, "methods": row["methods"]})
    for name in list(FACT_FILES.values())[1:]:
        own = every.set_index("run").loc[name]
        rows.append({"run": name, "from": "facts", "changed": "another file", "methods": own["methods"]})
    return rows


def _differs(a: object, b: object) -> bool:
    return a != b and not (isinstance(a, float) and pd.isna(a) and isinstance(b, float) and pd.isna(b))


def _labelled(rows: pd.DataFrame, quantity: str) -> pd.DataFrame:
    part = rows[rows["quantity"] == quantity]
    return part.assign(
        group=part["run"],
        label=[_what(method) for method in part["method"]],
        method=[method.split(" - ")[0] for method in part["method"]],
    )


#: Name in the URL -> label, the table that it shows, and how.
VIEWS: Mapping[str, tuple[str, str, Callable[[pd.DataFrame, int], None]]] = {
    "drift": ("Drift", DRIFT, drift),
    "differences": ("Differences", PAIRED, paired),
    "preference": ("Preference", PREFERENCE, preference),
    "noise": ("Key noise", NOISE, noise),
    "ablation": ("Ablation", ABLATION, ablation),
    "phases": ("By phase", DRIFT, by_phase),
    "facts": ("Facts", FACTS, facts),
    "cost": ("Cost", COST, costs),
    "settings": ("Settings", "", settings),
}


def of_fallback(rows: pd.DataFrame, usual: pd.DataFrame, fallback: str) -> str:
    """Say what the chosen way to act without an Active precedent does to TEPA's reported number.

    Parameters
    ----------
    rows, usual
        The numbers with the chosen way, and with the usual one.
    """
    place = (rows["run"] == "controlled") & (rows["method"] == "tepa") & (rows["table"] == DRIFT)
    row, before = rows[place].iloc[0], usual[place].iloc[0]
    if pd.isna(row["ours"]):
        return "Make the controlled run to see what this choice does."
    said = f"TEPA in controlled reversal: **{row['ours']:.3f}** here, {row['reported']:.3f} in the paper"
    if fallback == cache.USUAL_FALLBACK:
        return f"{said}. Switch to see what it would be if TEPA left such tasks to the base policy."
    return (
        f"{said}; **{before['ours']:.3f}** with {FALLBACKS[cache.USUAL_FALLBACK]}. Only that reaches the reported "
        "number, so it is what this build does. The numbers of TEPA on the controlled stream under Drift and "
        "Differences change with it."
        if abs(before["ours"] - row["reported"]) < abs(row["ours"] - row["reported"])
        else f"{said}; {before['ours']:.3f} with {FALLBACKS[cache.USUAL_FALLBACK]}."
    )


def tally_in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Count per table, in the order of the tables."""
    counted = reproduce.tally(rows).set_index("table")
    return counted.reindex([name for name in TABLES if name in counted.index]).reset_index()
