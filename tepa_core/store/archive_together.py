"""What no table of an exported run shows by itself: that the rows belong to the run, and to each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from tepa_core.decisions import Action, Category, Decision
from tepa_core.experiment import ATTRIBUTIONS, RunSpec, spec_from_dict
from tepa_core.methods import METHODS
from tepa_core.store.archive_shapes import MOMENTS, TASKS, RunContent, damaged
from tepa_core.store.derive import places_in_evidence, places_in_stream
from tepa_core.streams import PHASES, StreamSpec

_OF_LOGS = frozenset(("evidence", "phase", "import_issue"))
_OF_STREAMS = frozenset(("evidence", "phase", "episode", "truth", "trial"))
_OF_FACTS = frozenset(("evidence", "phase", "episode", "question", "attribution"))
#: Columns of a simulated run that name a value of its stream.
_VALUES = {
    "evidence": ("value",),
    "episode": ("action", "followed", "retrieved"),
    "truth": ("value",),
    "trial": ("value",),
}


def check_together(run: RunContent, tables: Mapping[str, pd.DataFrame], name: str) -> None:
    """Check what no table shows by itself: that the rows belong to the run, and to each other."""
    log, facts = run.kind == "log", "facts" in run.counts
    kind, belong = ("log", _OF_LOGS) if log else ("fact run", _OF_FACTS) if facts else ("simulation", _OF_STREAMS)
    foreign = [table for table in tables if table not in belong]
    if foreign:
        raise damaged(name, f"a {kind} has no {foreign[0]}.parquet")
    evidence = tables.get("evidence")
    if evidence is not None:
        if evidence.duplicated(["method", "seed", "seq"]).any():
            raise damaged(name, "two items of its evidence have one number")
        within = evidence["occurred"].between(*(MOMENTS if log else TASKS)).all()
        if not within:
            raise damaged(name, "its evidence lies outside the time of the run")
    if "phase" in tables:
        _check_stretches(tables["phase"], "phases", name)
    if log:
        _check_log(run, tables, name)
    else:
        _check_played(run, tables, name)


def _check_log(run: RunContent, tables: Mapping[str, pd.DataFrame], name: str) -> None:
    evidence, counts = tables.get("evidence"), run.counts
    if evidence is None:
        raise damaged(name, "it lacks evidence.parquet")
    issues = len(tables.get("import_issue", ()))
    # A row gives no item when it repeats another, and a second one when its value ended.
    least = counts["loaded"] - run.badges.get("repeated_source", 0)
    most = least + run.badges.get("end_of_validity", 0)
    if (
        not least <= len(evidence) <= most
        or issues != counts["rejected"]
        or counts["read"] != counts["loaded"] + counts["rejected"]
        or counts["arrival_times"] > len(evidence)
    ):
        raise damaged(name, "its rows are not as many as its counts say")
    if (evidence["method"] != "").any() or (evidence["seed"] != 0).any():
        raise damaged(name, "the evidence of a log has no method and no seed")


def _check_played(run: RunContent, tables: Mapping[str, pd.DataFrame], name: str) -> None:
    spec = spec_from_dict(run.spec)
    first = spec.first_seed if isinstance(spec, RunSpec) else 0
    seeds = range(first, first + run.counts["seeds"])
    for table, frame in tables.items():
        if "method" in frame and not set(frame["method"].unique()) <= set(spec.methods):
            raise damaged(name, f"{table}.parquet has a method that the run has not")
        if "seed" in frame and len(frame) and not frame["seed"].between(seeds.start, seeds.stop - 1).all():
            raise damaged(name, f"{table}.parquet has a seed that the run has not")
    _check_learned(spec.methods, seeds, tables.get("evidence"), run.counts.get("facts") or run.counts["tasks"], name)
    episodes, phases = tables.get("episode"), tables.get("phase")
    if episodes is None or phases is None or phases.empty:
        raise damaged(name, "a simulation needs its episodes and phases")
    facts, tasks = run.counts.get("facts", 0), run.counts["tasks"]
    _check_whole(phases, 0, facts + tasks, "phases", name)
    if isinstance(spec, RunSpec):
        _check_names(spec.stream_spec, tables, name)
    elif phases.sort_values("start_at")["phase"].tolist() != ["facts", "questions"]:
        raise damaged(name, "a fact run has the phases facts and questions")
    if len(episodes) != math.prod((len(spec.methods), len(seeds), tasks)):
        raise damaged(name, "its episodes are not one for each method, seed and task")
    if episodes.duplicated(["method", "seed", "t"]).any() or not episodes["t"].between(facts, facts + tasks - 1).all():
        raise damaged(name, "its episodes are not one for each method, seed and task")
    rows = phases.sort_values("start_at")
    at = rows["start_at"].searchsorted(episodes["t"], side="right") - 1
    if (rows["phase"].to_numpy(object)[at] != episodes["phase"].to_numpy(object)).any():
        raise damaged(name, "it has an episode that is not of the phase of its time")
    if facts:
        _check_asked(tables, len(seeds), range(facts, facts + tasks), name)
        return
    truth = tables.get("truth")
    if truth is None:
        raise damaged(name, "a simulation needs its truth")
    for _, of_key in truth.groupby(["seed", "key"]):
        _check_whole(of_key, 0, tasks, "truth of one key", name)


def _check_names(stream: StreamSpec, tables: Mapping[str, pd.DataFrame], name: str) -> None:
    """Check that a simulation is about the phases, keys and values of its stream: pages play it again from its seed."""
    if tables["phase"].sort_values("start_at")["phase"].tolist() != list(PHASES):
        raise damaged(name, f"a simulation has the phases {', '.join(PHASES)}")
    for table, columns in _VALUES.items():
        if table not in tables:
            continue
        for column, known in (("key", stream.keys), *((column, stream.values) for column in columns)):
            if not set(tables[table][column].dropna().unique()) <= set(known):
                raise damaged(name, f"the column {column} of {table}.parquet names what its stream has not")


def _check_asked(tables: Mapping[str, pd.DataFrame], orders: int, times: range, name: str) -> None:
    """Check that every order of a fact run asks each question once, and that what is said of answers is of them."""
    questions, said = tables.get("question"), tables.get("attribution")
    if questions is None:
        raise damaged(name, "a fact run needs its questions")
    once = not any(questions.duplicated(["seed", column]).any() for column in ("t", "question"))
    asked = questions["t"].between(times.start, times.stop - 1) & questions["question"].between(0, len(times) - 1)
    if len(questions) != orders * len(times) or not once or not asked.all():
        raise damaged(name, "its questions are not each asked once in each order")
    if said is None:
        return
    if (
        said.duplicated(["method", "seed", "question"]).any()
        or not said["question"].between(0, len(times) - 1).all()
        or not set(said["attribution"].unique()) <= set(ATTRIBUTIONS)
    ):
        raise damaged(name, "what attribution.parquet says is not one known reason for each question")


def check_ledger(run: RunContent, tables: Mapping[str, pd.DataFrame], decisions: Sequence[Decision], name: str) -> None:
    """Check that decisions are on precedents of the run, some that could be taken, and that undoing names one of them.

    Raises
    ------
    ArchiveRefused
        If one is not.
    """
    if not decisions:
        return
    if "facts" in run.counts:
        raise damaged(name, "nobody can decide on a fact run, and it holds decisions")
    evidence = tables["evidence"] if "evidence" in tables else pd.DataFrame(columns=["method", "seed"])
    known = set(places_in_evidence(evidence)) if len(evidence) else set()
    if run.kind == "simulation":
        spec = RunSpec.from_dict(run.spec)
        for method, seed in evidence[["method", "seed"]].drop_duplicates().itertuples(index=False):
            known |= set(places_in_stream(spec, str(method), int(seed)))
    taken: set[str] = set()
    standing: dict[str, str] = {}
    for position, one in enumerate(decisions, start=1):
        if one.precedent_id not in known:
            raise damaged(name, f"decision {position} is on a precedent that its evidence does not know")
        if run.kind == "simulation" and one.effective_at > run.counts["tasks"]:
            raise damaged(name, f"decision {position} takes effect outside the run")
        if (one.pinned and one.action is not Action.REACTIVATE) or (
            one.action is Action.CONFIRM and one.category is Category.WRONG_REVOCATION
        ):
            raise damaged(name, f"decision {position} is one that cannot be taken")
        if one.decision_id in taken:
            raise damaged(name, f"decision {position} has the id of an earlier one")
        taken.add(one.decision_id)
        if one.action is Action.UNDO:
            if one.undoes is None or standing.pop(one.undoes, None) != one.precedent_id:
                raise damaged(name, f"decision {position} takes back none that was in effect on its precedent")
        elif one.undoes is not None:
            raise damaged(name, f"decision {position} takes one back and is no undo")
        else:
            standing[one.decision_id] = one.precedent_id


def _check_learned(methods: Sequence[str], seeds: range, evidence: pd.DataFrame | None, times: int, name: str) -> None:
    """Check that each method with precedents learned once at each time of each seed, in one spelling."""
    lanes = {(method, seed) for method in methods if METHODS[method].lifecycle for seed in seeds}
    found = set() if evidence is None else set(zip(evidence["method"], evidence["seed"], strict=True))
    if lanes != found:
        raise damaged(name, "it has not for each method that keeps precedents its evidence on each seed")
    if evidence is None:
        return
    # What was learned before the first task lies below 0.
    learned = evidence[evidence["occurred"] >= 0]
    if len(learned) != len(lanes) * times or learned.duplicated(["method", "seed", "occurred"]).any():
        raise damaged(name, "its evidence is not one item for each method, seed and time")
    spelled = (evidence["key"] == evidence["key_id"]) & (evidence["value"] == evidence["value_id"])
    if not (spelled & (evidence["subject"] == "")).all():
        raise damaged(name, "the evidence of a simulation has keys and values of one spelling, and no user")


def _check_whole(rows: pd.DataFrame, begin: int, end: int, what: str, name: str) -> None:
    """Check that stretches follow each other without a gap, from the first task to the last."""
    _check_stretches(rows, what, name)
    rows = rows.sort_values("start_at")
    starts, ends = rows["start_at"].to_numpy(), rows["end_at"].to_numpy()
    if starts[0] != begin or ends[-1] != end or (starts[1:] != ends[:-1]).any():
        raise damaged(name, f"the stretches of the {what} leave a gap")


def _check_stretches(rows: pd.DataFrame, what: str, name: str) -> None:
    rows = rows.sort_values("start_at")
    starts, ends = rows["start_at"].to_numpy(), rows["end_at"].to_numpy()
    if (starts >= ends).any() or (starts[1:] < ends[:-1]).any():
        raise damaged(name, f"the stretches of the {what} overlap, or one ends before it begins")
