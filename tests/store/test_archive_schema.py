"""What agrees with its digests and its chain and still is no run is refused, field by field, without a database."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tepa_core.decisions import PROGRAM, Action, Category, Decision
from tepa_core.experiment import RunSpec, run
from tepa_core.fact_runs import run_fact_file
from tepa_core.logs import import_log
from tepa_core.store import Store, queries, save_run
from tepa_core.store.archive_file import export_run
from tepa_core.store.archive_schema import read_archive
from tepa_core.store.archive_shapes import BADGES, ArchiveRefused
from tepa_core.store.decide import DecisionRequest, record
from tepa_core.store.foreseen import foreseen
from tepa_core.ui import badges
from tests.tampered import Members, chained, members_of, write

ROOT = Path(__file__).parents[2]
LOG = [f"2026-03-{day:02d}T10:00:00Z,u1,drink,{'tea' if day < 6 else 'coffee'},calm" for day in range(1, 12)]
Change = Callable[[Members], Members]


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Members]:
    """Export a log with a decision that was undone and another, a simulation with one, and a fact run."""
    folder = tmp_path_factory.mktemp("exports")
    (folder / "log.csv").write_text("\n".join(["ts,user,key,value,phase", *LOG, "never,u1,drink,tea,calm"]))
    simulated = RunSpec.build("controlled", seeds=1, methods=["tepa", "no_memory"], world={"tasks_per_phase": 20})
    with Store(folder / "a.duckdb", PROGRAM) as store:
        ids = {
            "log": import_log(store, folder / "log.csv").run_id,
            "simulation": save_run(store, run(simulated)),
            "facts": run_fact_file(store, ROOT / "data" / "facts_small_multihop.json", orders=1).run_id,
        }
        for kind, actions in (
            ("log", (Action.CONFIRM, Action.UNDO, Action.REACTIVATE)),
            ("simulation", (Action.REACTIVATE,)),
        ):
            fallen = str(queries.precedents(store, ids[kind], state="revoked")["id"].iloc[0])
            for action in actions:
                request = DecisionRequest(ids[kind], fallen, action, Category.OBSOLETE, "because")
                record(store, dataclasses.replace(request, effect=foreseen(store, request)))
        for kind, run_id in ids.items():
            export_run(store, run_id, folder / f"{kind}.zip")
    return {kind: members_of(folder / f"{kind}.zip") for kind in ids}


@pytest.mark.parametrize("kind", ["log", "simulation", "facts"])
def test_what_was_exported_is_taken_in(exports: dict[str, Members], tmp_path: Path, kind: str) -> None:
    found = read_archive(write(tmp_path / "run.zip", exports[kind]))
    assert len(found.decisions) == {"log": 3, "simulation": 1, "facts": 0}[kind]


def of_run(**changed: Any) -> Change:
    return lambda members: {**members, "run.json": json.dumps(json.loads(members["run.json"]) | changed).encode()}


def within(part: str, **changed: Any) -> Change:
    """Change fields of a part of the run; of the settings those of the run too, where both hold them."""

    def change(members: Members) -> Members:
        content = json.loads(members["run.json"])
        content[part] |= changed
        if part == "thresholds" and content["kind"] == "simulation":
            content["spec"]["thresholds"] |= changed
        return {**members, "run.json": json.dumps(content).encode()}

    return change


def of_decision(number: int, **changed: Any) -> Change:
    def change(members: Members) -> Members:
        ledger = [Decision.from_dict(json.loads(line)) for line in members["decisions.jsonl"].splitlines()]
        fields = {name: value(ledger) if callable(value) else value for name, value in changed.items()}
        ledger[number - 1] = dataclasses.replace(ledger[number - 1], **fields)
        return {**members, **chained(ledger)}

    return change


def foreseeing(effect: object) -> Change:
    return of_decision(1, effect=json.dumps(effect))


def of_table(table: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Change:
    def changed(members: Members) -> Members:
        content = pq.read_table(io.BytesIO(members[f"{table}.parquet"]))
        buffer = io.BytesIO()
        # In the kinds of the export, which pandas would change where cells lack.
        frame = change(content.to_pandas())
        pq.write_table(pa.Table.from_pandas(frame, content.schema, preserve_index=False), buffer)
        return {**members, f"{table}.parquet": buffer.getvalue()}

    return changed


def everywhere(old: str, new: str) -> Change:
    """Call a key, value or phase something else in every table, so that nothing contradicts anything."""

    def changed(members: Members) -> Members:
        for name in [name for name in members if name.endswith(".parquet")]:
            members = of_table(name.removesuffix(".parquet"), lambda frame: frame.replace(old, new))(members)
        return members

    return changed


REFUSED: dict[str, tuple[str, Change, str]] = {
    # Kinds that Python takes for each other.
    "seeds as 1.0": ("simulation", within("spec", seeds=1.0), "the settings cannot be read (seeds"),
    "seeds as true": ("simulation", within("spec", seeds=True), "the settings cannot be read (seeds"),
    "first seed as 0.0": ("simulation", within("spec", first_seed=0.0), "the settings cannot be read (first_seed"),
    "methods as text": ("simulation", within("spec", methods="tepa"), "the settings cannot be read (methods"),
    "a world of text": ("simulation", within("spec", world={"tasks_per_phase": "20"}), "the settings cannot be read"),
    "tasks as 20.0": ("simulation", within("spec", world={"tasks_per_phase": 20.0}), "do not agree with each other"),
    "a name that is a list": ("facts", within("spec", name=["x"]), "the settings cannot be read (name"),
    "a backend that is a number": ("facts", within("spec", backend=3), "the settings cannot be read (backend"),
    "orders as true": ("facts", within("spec", orders=True), "the settings cannot be read (orders"),
    "a threshold as text": ("log", within("thresholds", theta_rev="0.3"), "thresholds cannot be read"),
    "a threshold of both": ("simulation", within("thresholds", theta_rev="0.3"), "thresholds cannot be read"),
    "a count without end": ("log", within("thresholds", theta_prop=10**30), "thresholds cannot be read"),
    "a prior without end": ("log", within("thresholds", alpha=1e308), "thresholds cannot be read"),
    "no thresholds": ("log", of_run(thresholds={}), "thresholds are not all there"),
    # Settings that would play a world of another size than was exported.
    "a world without end": ("simulation", within("spec", world={"tasks_per_phase": 10**9}), "settings cannot be read"),
    "a larger world": ("simulation", within("spec", world={"tasks_per_phase": 21}), "counts do not agree"),
    # What is counted.
    "an unknown badge": ("log", of_run(badges={"hat": 1}), "run.json cannot be read (badges"),
    "a badge of a simulation": ("simulation", of_run(badges={"naive_time": 1}), "nothing of a log"),
    "more read than told": ("log", within("counts", read=99), "not as many as its counts say"),
    "fewer rejected than told": ("log", within("counts", rejected=0, read=11), "not as many as its counts say"),
    "no facts": ("facts", within("counts", facts=0), "counts do not agree with its settings"),
    # What the page of decisions shows.
    "half of what is later": ("log", foreseeing({"later_supports": 3}), "told together"),
    "nothing later": ("log", foreseeing({"later_supports": None, "later_conflicts": 1}), "(later_supports"),
    "no difference": ("log", foreseeing({"success": {"overall": {"before": 0, "after": 0}}}), "(success.overall"),
    "a null difference": (
        "simulation",
        foreseeing({"success": {"overall": {"before": 0, "after": 0, "difference": None}}}),
        "(success.overall.difference",
    ),
    "a large difference": (
        "simulation",
        foreseeing({"success": {"overall": {"before": 0, "after": 0, "difference": 1e308}}}),
        "(success.overall.difference",
    ),
    "a moment that is none": (
        "log",
        foreseeing({"at": "soon"}),
        "the effect in row 1 of its ledger cannot be read (at",
    ),
    "a moment without a zone": ("log", foreseeing({"at": "2026-03-01"}), "a time needs a zone"),
    "a moment beyond time": ("log", foreseeing({"at": 10**30}), "outside the years 1 to 9999"),
    # Decisions among each other.
    "one id twice": (
        "log",
        of_decision(3, decision_id=lambda ledger: ledger[0].decision_id),
        "the id of an earlier one",
    ),
    "an undo of nothing": ("log", of_decision(2, undoes=None), "decision 2 takes back none"),
    "an undo of itself": ("log", of_decision(2, undoes=lambda ledger: ledger[1].decision_id), "takes back none"),
    "an undo of a later one": ("log", of_decision(2, undoes=lambda ledger: ledger[2].decision_id), "takes back none"),
    "a decision that undoes": ("log", of_decision(3, undoes=lambda ledger: ledger[0].decision_id), "is no undo"),
    "an undone one on nothing": ("log", of_decision(1, precedent_id="p" + "0" * 16), "decision 1 is on a precedent"),
    "a pinned confirmation": ("log", of_decision(1, pinned=True), "decision 1 is one that cannot be taken"),
    "a wrong confirmation": ("log", of_decision(1, category=Category.WRONG_REVOCATION), "cannot be taken"),
    "a decision after the end": ("simulation", of_decision(1, effective_at=9_999), "takes effect outside the run"),
    # Names that agree in every table, and are none of the stream's.
    "a foreign key": ("simulation", everywhere("read csv", "read hat"), "names what its stream has not"),
    "a foreign value": ("simulation", everywhere("alternative", "hat"), "names what its stream has not"),
    "a foreign phase": ("simulation", everywhere("light", "heavy"), "has the phases stable, light, reversal"),
    "a foreign phase of facts": ("facts", everywhere("facts", "hats"), "has the phases facts and questions"),
    "an item before the first": ("log", of_table("evidence", lambda frame: frame.assign(seq=frame["seq"] - 1)), "seq"),
    # Questions.
    "one question": ("facts", of_table("question", lambda frame: frame.assign(question=1)), "not each asked once"),
    "questions twice": ("facts", of_table("question", lambda frame: pd.concat([frame, frame])), "not each asked once"),
    "half of the questions": ("facts", of_table("question", lambda frame: frame.iloc[:1]), "not each asked once"),
    "reasons twice": ("facts", of_table("attribution", lambda frame: pd.concat([frame, frame])), "one known reason"),
    "an unknown reason": ("facts", of_table("attribution", lambda f: f.assign(attribution="hat")), "one known reason"),
    "a table of another kind": (
        "facts",
        lambda members: {**members, "trial.parquet": members["question.parquet"]},
        "trial.parquet needs the columns",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_no_run_says_is_refused(exports: dict[str, Members], tmp_path: Path, what: str) -> None:
    kind, change, says = REFUSED[what]
    changed = change(exports[kind])
    assert changed != exports[kind]
    with pytest.raises(ArchiveRefused) as refusal:
        read_archive(write(tmp_path / "run.zip", changed))
    assert says in str(refusal.value)


def test_nobody_decides_on_a_fact_run(exports: dict[str, Members], tmp_path: Path) -> None:
    run_id = json.loads(exports["facts"]["run.json"])["run_id"]
    ledger = [Decision.from_dict(json.loads(exports["log"]["decisions.jsonl"].splitlines()[0]))]
    moved = chained([dataclasses.replace(ledger[0], run_id=run_id, effective_at=1)])
    with pytest.raises(ArchiveRefused, match="nobody can decide on a fact run"):
        read_archive(write(tmp_path / "run.zip", {**exports["facts"], **moved}))


def test_every_badge_that_is_taken_in_has_words() -> None:
    assert set(BADGES) == set(badges.BADGES)
