"""The command line: ``python -m tepa_core COMMAND ...``.

Each command is one function from its options to a `Report`: an answer as data, and the same answer as text. ``--json``
prints the data, one object on stdout and nothing else; without it the text is for a person. Progress goes to stderr.
Exit codes: 0 done, 1 unexpected (set TEPA_DEBUG=1 for the traceback), 2 bad usage or bad input, 130 interrupted.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import getpass
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from tepa_core.bench import JUDGED_FROM, bench
from tepa_core.csvsafe import to_safe_csv
from tepa_core.decisions import (
    DEFAULT_CATEGORY,
    Action,
    Actor,
    Category,
    DecisionRefused,
    Role,
    in_effect,
    microseconds,
)
from tepa_core.experiment import (
    METRICS,
    OVERALL,
    SETTINGS,
    AnswerError,
    Grid,
    Progress,
    RunSpec,
    measures,
    paired_comparisons,
    pollution_summary,
    run,
    success_summary,
    sweep,
)
from tepa_core.fact_runs import ANSWERERS, run_fact_file
from tepa_core.files import FileRefused, beside, check_target
from tepa_core.importers import IMPORTERS, ORDERS, TEMPLATE_CSV, ColumnMapping, ImportRefused, canonical
from tepa_core.inert import terminal, visible
from tepa_core.lifecycle import DEPRECATED, PRESETS, State, Thresholds
from tepa_core.logs import import_log
from tepa_core.methods import FALLBACKS, METHODS
from tepa_core.reproduce import reproduce
from tepa_core.signing import KEY_VARIABLE, SigningRefused, default_key_path, own_public_key, read_public_key
from tepa_core.store import (
    PATH_VARIABLE,
    KeyLife,
    RunInfo,
    Store,
    StoreError,
    UnknownPrecedentError,
    UnknownRunError,
    default_path,
    delete_run,
    explanation,
    key_life,
    plain,
    queries,
    save_run,
)
from tepa_core.store.archive_file import (
    export_active,
    export_instructions,
    export_run,
    import_archive,
    is_archive,
)
from tepa_core.store.archive_shapes import ArchiveRefused
from tepa_core.store.backup import Copied, backup, restore
from tepa_core.store.decide import DecisionRequest, examine, record, redact_reason
from tepa_core.store.events import database_ledger
from tepa_core.store.foreseen import foreseen
from tepa_core.store.heads import (
    MAX_BYTES,
    HeadCheck,
    HeadRefused,
    check_heads,
    describe,
    read_heads,
    sign_heads,
)
from tepa_core.store.ledger import LedgerCheck, decisions_of, verify_ledger
from tepa_core.streams import STREAMS, StreamSpec, make_spec
from tepa_core.streams.stream import PHASES

#: Shows the traceback of an unexpected error when set to 1.
DEBUG_VARIABLE = "TEPA_DEBUG"

#: The method whose precedents are shown when none is named.
DEFAULT_METHOD = "tepa"

_SUBJECTS_NAMED = 5

#: Steps times values that `trace` writes unless values are named: of more values than fit, those with most changes.
TRACED_CELLS = 4_000_000

#: Rows of a long table that are written as JSON at a time.
JSON_BLOCK = 20_000

#: Counts of an effect that are worth a line.
_CHANGED = ("episodes_changed", "later_supports", "later_conflicts", "transitions_changed")

#: Where progress cannot renew its line, it is told no more often than this; short commands say nothing.
_QUIET_SECONDS = 2.0


class RefusedError(ValueError):
    """The command cannot do what it was asked; the message says why and what to do."""


#: What a person can mend: printed as one line, exit code 2.
_REFUSALS = (
    RefusedError,
    ImportRefused,
    StoreError,
    UnknownRunError,
    UnknownPrecedentError,
    DecisionRefused,
    ArchiveRefused,
    HeadRefused,
    SigningRefused,
    FileRefused,
)


@dataclass(frozen=True, slots=True)
class Report:
    """What a command found: for a program, for a person, and how the process ends."""

    content: Mapping[str, Any]
    text: str
    exit_code: int = 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code of the process.

    Parameters
    ----------
    argv
        Arguments without the name of the program; those of the process when left out.
    """
    try:
        options = parser().parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    try:
        report: Report = options.command(options)
        # Texts have passed `terminal` one by one; this is for whatever else might not be seen.
        sys.stdout.writelines(_as_json(report.content) if options.json else visible(report.text, keep="\n"))
        sys.stdout.write("\n")
        sys.stdout.flush()
    except KeyboardInterrupt:
        _say("Interrupted; nothing was stored.")
        return 130
    except BrokenPipeError:
        # Whoever read the output has seen enough; the interpreter must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except _REFUSALS as refusal:
        _say(_one_line(str(refusal)))
        return 2
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE) == "1":
            raise
        _say(
            f"Unexpected {type(error).__name__}: {_one_line(str(error))} (set {DEBUG_VARIABLE}=1 to see where it arose)"
        )
        return 1
    return report.exit_code


# The commands -------------------------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> Report:
    if options.stream == "facts":
        return _run_facts(options)
    if options.file is not None:
        raise RefusedError(f"--file belongs to run facts; {options.stream} draws its tasks itself")
    world = _numbers(options.world, "--world")
    if options.key_noise is not None:
        world["key_noise"] = options.key_noise
    with _bad_input():
        spec = RunSpec.build(
            options.stream,
            seeds=50 if options.seeds is None else options.seeds,
            first_seed=options.first_seed or 0,
            methods=options.methods,
            thresholds=Thresholds().changed(_pairs(options.set, "--set")),
            world=world,
            fallback=options.fallback,
        )
    with _writing(options) as store:
        with _progress() as progress:
            result = run(spec, progress)
        run_id = save_run(store, result, options.name)
        per_seed = queries.success_per_seed(store, run_id)
        measured = _measured(store, run_id, spec)
    content, parts = _played(spec.methods, per_seed)
    content |= {
        "run_id": run_id,
        "stream": spec.stream,
        "seeds": spec.seeds,
        "measures": measured,
        "command": spec.command(),
        "elapsed_s": result.elapsed,
    }
    if measured:
        table = pd.DataFrame(measured)
        table.insert(0, "measure", [name.replace("_", " ") for name in table.index])
        parts += ["", "Means over the seeds:", _table(table)]
    title = f"Run {run_id}: {spec.seeds} seeds of {spec.stream}, {result.elapsed:.1f} s. Success per phase:"
    return Report(content, "\n".join([title, *parts]))


def _run_facts(options: argparse.Namespace) -> Report:
    """Run a fact file: `run facts --file FILE`."""
    if options.file is None:
        raise RefusedError("run facts needs the fact file: --file FILE")
    given = [name for name in ("world", "key_noise", "fallback", "seeds", "first_seed") if getattr(options, name)]
    if given:
        raise RefusedError(
            f"a fact run has no --{given[0].replace('_', '-')}; it has --file, --orders, --answerer and --set"
        )
    with _writing(options) as store, _progress() as progress, _bad_input():
        done = run_fact_file(
            store,
            Path(options.file),
            methods=options.methods,
            thresholds=PRESETS["direct_facts"].changed(_pairs(options.set, "--set")),
            orders=options.orders,
            answerer=options.answerer,
            name=options.name,
            progress=progress,
        )
        per_seed = queries.success_per_seed(store, done.run_id)
    content, parts = _played(done.spec.methods, per_seed)
    of_method = done.attribution.groupby("method", sort=False)
    content |= {
        "run_id": done.run_id,
        "stream": "facts",
        "seeds": done.spec.orders,
        "facts": done.facts,
        "unparsed": done.unparsed,
        "questions": done.questions,
        "attribution": {str(m): dict(zip(rows["attribution"], rows["n"], strict=True)) for m, rows in of_method},
        "answers_asked": done.calls,
        "answers_kept": done.cache_hits,
        "elapsed_s": done.elapsed,
    }
    title = (
        f"Run {done.run_id}: {done.facts} facts ({done.unparsed} not understood), {done.questions} questions in "
        f"{done.spec.orders} orders, {done.elapsed:.1f} s. Substring exact match:"
    )
    if len(done.attribution):
        parts += ["", "Questions through several relations, over all orders:", _table(done.attribution)]
    return Report(content, "\n".join([title, *parts]))


def _played(methods: Sequence[str], per_seed: pd.DataFrame) -> tuple[dict[str, Any], list[str]]:
    """Success, pollution and comparisons of a stored run: for JSON, and as lines for a person."""
    success = success_summary(per_seed)
    pollution = pollution_summary(per_seed)
    phases = [str(phase) for phase in success["phase"].drop_duplicates() if phase != OVERALL]
    scopes = [scope for scope in (OVERALL, "reversal") if scope == OVERALL or scope in phases]
    compared = paired_comparisons(per_seed, DEFAULT_METHOD, scopes=scopes)
    content: dict[str, Any] = {
        "phases": phases,
        "success": {
            method: {row.phase: {"mean": row.mean, "lo": row.lo, "hi": row.hi} for row in _records(of_method)}
            for method, of_method in success.groupby("method", sort=False)
        },
        "mpi": {
            method: {row.phase: row.mpi for row in _records(of_method)}
            for method, of_method in pollution.groupby("method", sort=False)
        },
        "comparisons": compared.to_dict("records"),
    }
    table = success.pivot(index="method", columns="phase", values="mean")[[*phases, OVERALL]]
    table = table.reindex([*methods]).reset_index()
    if "reversal" in phases and len(pollution):
        mpi = pollution[pollution["phase"] == "reversal"].set_index("method")["mpi"]
        table["MPI reversal"] = table["method"].map(mpi)
    parts = [_table(table)]
    if len(compared):
        parts += ["", f"Paired differences of success, {DEFAULT_METHOD} against each other method:", _table(compared)]
    return content, parts


def _measured(store: Store, run_id: str, spec: RunSpec) -> dict[str, dict[str, float]]:
    """Mean over the seeds of each measure, by method whose precedents have a life."""
    truth = queries.truth(store, run_id)
    measured = {}
    for method in spec.methods:
        if METHODS[method].lifecycle:
            falls, played = queries.revocations(store, run_id, method), queries.episodes(store, run_id, method=method)
            found = measures(method, truth, falls, played)
            measured[method] = {
                str(name): float(values.mean()) for name, values in found.groupby("measure", sort=False)["value"]
            }
    return measured


def _stream(options: argparse.Namespace) -> Report:
    world = _numbers(options.world, "--world")
    if options.key_noise is not None:
        world["key_noise"] = options.key_noise
    if options.seed < 0:
        raise RefusedError(f"--seed must be at least 0, not {options.seed}")
    with _bad_input():
        spec: StreamSpec = make_spec(options.stream, world)
    stream = spec.make(options.seed)
    phase = [stream.phase_names[i] for i in stream.phase.tolist()]
    content = {
        "stream": options.stream,
        "seed": options.seed,
        "phases": list(stream.phase_names),
        "phase": phase,
        "key": stream.key.tolist(),
        "base_action": stream.base_action.tolist(),
        "follows": stream.follows.tolist(),
        "outcome": stream.outcome.tolist(),
        "asserted": None if stream.asserted is None else stream.asserted.tolist(),
        "truth": stream.truth.tolist(),
        "prior_key": stream.prior_key.tolist(),
        "prior_value": stream.prior_value.tolist(),
        "values": list(stream.values),
        "keys": list(stream.keys),
    }
    table = pd.DataFrame(
        {
            "t": np.arange(len(stream)),
            "phase": phase,
            "key": [stream.keys[k] for k in stream.key.tolist()],
            "base action": [stream.values[v] for v in stream.base_action.tolist()],
            "succeeds": [
                ", ".join(value for value, earned in zip(stream.values, row, strict=True) if earned)
                for row in stream.outcome.tolist()
            ],
        }
    )
    if stream.asserted is not None:
        table["asserted"] = [stream.values[v] for v in stream.asserted.tolist()]
    return Report(content, _table(table))


def _episodes(options: argparse.Namespace) -> Report:
    to: Path = options.to
    if to.suffix.lower() not in (".parquet", ".csv"):
        raise RefusedError(f"{to} ends neither in .parquet nor in .csv; choose one of these endings")
    _check_target(options, to)
    with Store(_path(options)) as store:
        info = queries.run_info(store, options.run)
        if info.is_log:
            raise RefusedError(f"{info.run_id} is an imported log and has no episodes; name a simulation")
        if options.method is not None and options.method not in info.spec["methods"]:
            raise RefusedError(
                f"run {info.run_id} has no method {options.method}; its methods are {', '.join(info.spec['methods'])}"
            )
        played = queries.episodes(store, info.run_id, options.method, _seed(info, options.seed))
    with beside(to, replace=options.force) as part:
        if to.suffix.lower() == ".parquet":
            played.to_parquet(part, engine="pyarrow", index=False)
        else:
            part.write_text(to_safe_csv(played), encoding="utf-8", newline="")
    return Report(
        {"run_id": info.run_id, "to": str(to), "rows": len(played), "columns": list(played.columns)},
        f"Wrote {len(played):,} episodes to {terminal(to)}",
    )


def _runs(options: argparse.Namespace) -> Report:
    with Store(_path(options)) as store:
        found = queries.runs(store)
    text = _table(found[["run_id", "kind", "name", "created_at", "seeds", "precedents", "revoked"]])
    return Report(
        {"runs": found.to_dict("records")},
        text if len(found) else "There are no runs yet; start one with 'run' or 'import'.",
    )


def _delete(options: argparse.Namespace) -> Report:
    with _writing(options) as store:
        info = queries.run_info(store, options.run)
        decided = len(decisions_of(store, info.run_id))
        if decided and not options.force:
            what = "one decision, which goes" if decided == 1 else f"{decided:,} decisions, which go"
            raise RefusedError(
                f"run {info.run_id} has {what} with it, and no file that it was read from gives back; keep them with "
                f"'export {info.run_id} --to {info.run_id}.zip', then repeat with --force"
            )
        delete_run(store, info.run_id)
    gone = f" with {decided:,} decision{'' if decided == 1 else 's'}" if decided else ""
    return Report({"deleted": info.run_id}, f"Deleted {terminal(info.run_id)} ({terminal(info.name)}){gone}")


def _import(options: argparse.Namespace) -> Report:
    if options.template:
        return Report({"template": TEMPLATE_CSV}, TEMPLATE_CSV.rstrip("\n"))
    if options.file is None:
        raise RefusedError("import needs the FILE; 'import --template' prints a log to start from")
    if is_archive(options.file):
        return _import_archive(options)
    mapping = ColumnMapping.of(
        dict(ColumnMapping.parse(options.map).columns) if options.map is not None else {},
        key_template=options.key_template,
        tz=options.tz,
        outcomes=_meanings(options.outcomes),
        ignored=options.ignore,
        order=options.order,
    )
    with _bad_input():
        thresholds = PRESETS[options.preset].changed(_pairs(options.set, "--set"))
    with _writing(options) as store, _progress() as progress, _in_options():
        found = import_log(
            store,
            options.file,
            format=options.format,
            mapping=mapping,
            thresholds=thresholds,
            name=options.name,
            progress=progress,
        )
    content = {
        "run_id": found.run_id,
        "format": found.format,
        "read": found.read,
        "loaded": found.loaded,
        "rejected": found.rejected,
        "issues": found.issues.to_dict("records"),
        "mapping": dict(found.mapping.columns),
        "key_template": found.mapping.key_template,
        "unused": list(found.unused),
        "badges": dict(found.badges),
        "precedents": found.precedents,
        "states": dict(found.states),
        "kinship": found.kinship,
        "new_rows": found.new_rows,
        "elapsed_s": found.elapsed,
    }
    parts = [
        f"Run {found.run_id}: read {found.read:,} · loaded {found.loaded:,} · rejected {found.rejected:,} "
        f"({found.format}, {found.elapsed:.1f} s)",
        f"{found.precedents:,} precedents: " + ", ".join(f"{n:,} {state}" for state, n in found.states.items()),
    ]
    if found.kinship:
        parts.insert(1, terminal(found.kinship))
    taken = ", ".join(f"{field}={column}" for field, column in found.mapping.columns)
    parts.append(f"columns taken: {taken}" + (f"; key: {options.key_template}" if options.key_template else ""))
    parts.append(f"columns not used: {', '.join(found.unused) or 'none'}")
    parts += [f"{badge.replace('_', ' ')}: {n:,}" for badge, n in found.badges.items()]
    if len(found.issues):
        reasons = found.issues[["row", "reason"]].assign(reason=[_as_options(each) for each in found.issues["reason"]])
        parts += ["", "Rejected:", _table(reasons)]
    return Report(content, "\n".join(parts))


def _import_archive(options: argparse.Namespace) -> Report:
    if options.map is not None or options.key_template is not None or options.set or options.name is not None:
        raise RefusedError(
            f"{options.file.name} is an export of a run, which keeps its settings; leave --map, --key-template, --set "
            "and --name out"
        )
    began = time.perf_counter()
    with _writing(options) as store:
        run_id = import_archive(store, options.file)
        info, states = queries.run_info(store, run_id), queries.state_counts(store, run_id)
        check, rejected = verify_ledger(store, run_id), queries.issues(store, run_id)
    decisions = check.head.count
    precedents = sum(states.values())
    content = {
        "run_id": run_id,
        "format": "run",
        "read": info.counts.get("read", 0),
        "loaded": info.counts.get("loaded", 0),
        "rejected": info.counts.get("rejected", 0),
        "issues": rejected[["row", "reason"]].to_dict("records"),
        "badges": dict(info.badges),
        "precedents": precedents,
        "states": states,
        "decisions": decisions,
        **_provenance(check),
        "elapsed_s": time.perf_counter() - began,
    }
    text = f"Run {terminal(run_id)} ({terminal(info.name)}): {precedents:,} precedents, {decisions:,} decisions; "
    text += "its ledger verifies."
    return Report(content, "\n".join([text, *map(terminal, check.remarks)]))


def _precedents(options: argparse.Namespace) -> Report:
    with Store(_path(options)) as store:
        info = queries.run_info(store, options.run)
        found = queries.precedents(
            store,
            info.run_id,
            state=options.state,
            key=options.key,
            method=None if options.method == "all" else _lane(info, options.method),
            seed=_seed(info, options.seed),
            subject=options.subject,
            search=options.search,
        )
    shown = ["id", "method", "seed", "subject", "key", "value", "state", "support", "conflict", "posterior", "rule"]
    shown += ["revoked_at", "lives"]
    table = found[shown].drop(columns=["method", "seed"] if info.is_log else ["subject"])
    return Report(
        {"precedents": found[shown].to_dict("records")},
        _table(table) if len(found) else "No precedent of the run is like that; leave a filter out.",
    )


def _explain(options: argparse.Namespace) -> Report:
    with Store(_path(options)) as store:
        found = explanation(store, options.run, options.precedent)
    subject = f"{terminal(found['subject'])}, " if found["subject"] else ""
    place = f"{subject}{terminal(found['key'])}: {terminal(found['value'])}"
    parts = [f"{place} ({found['state']})", terminal(found["standing"])]
    for step in found["transitions"]:
        parts += ["", terminal(step["sentence"])]
        parts.append(
            f"  {step['from']} -> {step['to']}, rule {step['rule']}, posterior {step['posterior']:.3f}, "
            f"{step['support']} for and {step['conflict']} against"
        )
        parts += [f"  {terminal(step['counterfactual'])}"] if step["counterfactual"] else []
        parts += [
            f"  {'supports' if item['supports'] else 'refutes'} {terminal(item['value'])} at {item['at']}"
            + (f": {terminal(item['text'])}" if item["text"] else "")
            for item in step["evidence"]
        ]
    return Report(found, "\n".join(parts))


def _decide(options: argparse.Namespace) -> Report:
    action = Action(options.action)
    with _writing(options, options.reviewer) as store:
        info = queries.run_info(store, options.run)
        request = DecisionRequest(
            info.run_id,
            options.precedent,
            action,
            Category(options.category) if options.category else DEFAULT_CATEGORY[action],
            options.reason,
            pinned=options.pin,
            at=None if options.at is None else _moment(info, options.at),
            expect_version=options.expect_version,
            undoes=options.undoes,
        )
        effect = foreseen(store, request, every_seed=options.every_seed)
        content: dict[str, Any] = {"run_id": info.run_id, "precedent_id": options.precedent, "action": action}
        if options.dry_run:
            found = examine(store, request)
            content |= {"decision_id": None, "version": found.version, "at": _at(info, found.effective_at)}
            head = f"Nothing was saved. Version {found.version}; with --expect-version it is refused if that changes."
        else:
            decision = record(store, dataclasses.replace(request, effect=effect))
            content |= {
                "decision_id": decision.decision_id,
                "version": decision.version,
                "number": decision.number,
                "at": _at(info, decision.effective_at),
            }
            head = f"Decision {decision.number} of run {info.run_id} ({decision.decision_id}) is saved."
    content["effect"] = effect
    return Report(content, "\n".join([head, *_effect_lines(effect)]))


def _effect_lines(effect: Mapping[str, Any]) -> list[str]:
    lines = []
    for phase, numbers in effect.get("success", {}).items():
        lines.append(f"success {terminal(phase)}: {_cell(numbers['before'])} before, {_cell(numbers['after'])} after")
    share = effect.get("exposure", {"before": None})
    if share["before"] is not None:
        lines.append(f"share of the time active: {_cell(share['before'])} before, {_cell(share['after'])} after")
    lines += [f"{name.replace('_', ' ')}: {effect[name]}" for name in _CHANGED if name in effect]
    return lines


def _moment(info: RunInfo, text: str) -> int:
    """Read a moment of a run as it is stored: a task, or a time (without an offset UTC)."""
    try:
        if not info.is_log:
            return int(text)
        at = pd.Timestamp(text)
        if pd.isna(at):
            raise ValueError(text)
    except ValueError:
        kind = "a time such as 2025-07-04T12:00:00Z" if info.is_log else "the number of a task"
        raise RefusedError(f"--at must be {kind}, not {text!r}") from None
    at = at.tz_localize("UTC") if at.tzinfo is None else at
    return microseconds(at)


def _at(info: RunInfo, stored: int) -> int | pd.Timestamp:
    return pd.Timestamp(stored, unit="us", tz="UTC") if info.is_log else stored


def _ledger(options: argparse.Namespace) -> Report:
    _check_ledger_options(options)
    if options.head_to is not None:
        return _sign_heads(options)
    if options.run is None:
        return _database_ledger(options)
    with _writing(options, options.reviewer) if options.redact is not None else Store(_path(options)) as store:
        info = queries.run_info(store, options.run)
        if options.redact is not None:
            redact_reason(store, info.run_id, options.redact)
        decisions = decisions_of(store, info.run_id)
        check = verify_ledger(store, info.run_id)
        signed = _signed(options, store, info.run_id)
        named = queries.precedents(store, info.run_id).set_index("id")[["subject", "key", "value"]]
    standing = {decision.decision_id for decision in in_effect(decisions)}
    rows = []
    for decision in decisions:
        place: dict[Any, Any] = {}
        if decision.precedent_id in named.index:
            place = named.loc[decision.precedent_id].to_dict()
        rows.append(
            {
                **decision.as_shown(),
                "effect": json.loads(decision.effect),
                "at": _at(info, decision.effective_at),
                "in_effect": decision.decision_id in standing,
                **place,
            }
        )
    content = {
        "run_id": info.run_id,
        "decisions": rows,
        "ok": check.ok,
        "problems": list(check.problems),
        "redacted": list(check.redacted),
        "head": dataclasses.asdict(check.head),
        **_provenance(check),
        "signed": None if signed is None else _signed_content(signed),
    }
    names = ["number", "decided_at", "by", "action", "key", "value", "category", "reason", "in_effect"]
    shown = [row | {"by": decision.by} for row, decision in zip(rows, decisions, strict=True)]
    parts = [_table(pd.DataFrame(shown).reindex(columns=names)) if rows else "Nobody has decided on this run yet."]
    verdict = "The ledger verifies: nothing was changed or removed." if check.ok else "The ledger does not verify:"
    parts += ["", verdict, *map(terminal, (*check.problems, *check.redacted, *check.remarks)), *_signed_lines(signed)]
    wrong = not check.ok or (signed is not None and not signed.ok)
    return Report(content, "\n".join(parts), 1 if options.verify and wrong else 0)


def _check_ledger_options(options: argparse.Namespace) -> None:
    if (options.redact is None) != (options.reviewer is None):
        raise RefusedError("--redact needs the name of who redacts, and nothing else does: use both or neither")
    if options.redact is not None and options.run is None:
        raise RefusedError("--redact removes the reason of a decision; name its run")
    if options.head is not None and not options.verify:
        raise RefusedError("--head names the file to check the ledger against: add --verify")
    if options.public_key is not None and options.head is None:
        raise RefusedError("--public-key says whose signature counts: name the file of signed heads with --head")
    if options.head_to is not None and (options.verify or options.redact is not None):
        raise RefusedError("--head-to signs what is there; leave --verify and --redact to another command")
    if options.head_to is None and (options.key is not None or options.force):
        raise RefusedError("--key and --force belong to --head-to FILE, which writes signed heads")


def _sign_heads(options: argparse.Namespace) -> Report:
    """Write signed heads to a file: `ledger --head-to FILE`."""
    to: Path = options.head_to
    _check_target(options, to)
    key = options.key or default_key_path()
    with Store(_path(options)) as store:
        signed = sign_heads(store, key, options.run)
    with beside(to, replace=options.force) as part:
        part.write_bytes(signed)
    said = describe(signed)
    runs = len(said["runs"])
    what = f"{runs:,} run{'' if runs == 1 else 's'}" + (" and of the database" if said["database"] else "")
    text = [
        f"Wrote the signed heads of {what} to {terminal(to)}.",
        f"Signed with {terminal(key)}, public key {said['public_key']} (fingerprint {said['fingerprint'][:16]}…).",
        "Keep the file and the key where whoever can change the database cannot.",
    ]
    return Report({"to": str(to), "key": str(key), **said}, "\n".join(text))


def _signed(options: argparse.Namespace, store: Store, run_id: str | None) -> HeadCheck | None:
    """Check what is there against the file of ``--head``; None without one."""
    file: Path | None = options.head
    if file is None:
        return None
    try:
        with file.open("rb") as opened:
            heads = read_heads(opened.read(MAX_BYTES + 1), file.name)
    except OSError as error:
        raise RefusedError(f"{file} cannot be read: {error.strerror or error}") from None
    own = own_public_key(default_key_path()) if options.public_key is None else read_public_key(options.public_key)
    return check_heads(store, heads, own, run_id)


def _signed_content(signed: HeadCheck) -> dict[str, Any]:
    return {
        "ok": signed.ok,
        "problems": list(signed.problems),
        "found": list(signed.found),
        "fingerprint": signed.fingerprint,
    }


def _signed_lines(signed: HeadCheck | None) -> list[str]:
    if signed is None:
        return []
    verdict = "The signed heads fit." if signed.ok else "The signed heads do not fit:"
    return ["", verdict, *map(terminal, (*signed.problems, *signed.found))]


def _provenance(check: LedgerCheck) -> dict[str, Any]:
    """Return what a ledger that verifies does not say by itself: whose word it is."""
    claimed = check.claim and check.claim.as_dict() | {"decisions": check.claim.decisions}
    return {"claimed": claimed, "deleted": list(check.deleted), "times": list(check.times)}


def _database_ledger(options: argparse.Namespace) -> Report:
    """List what happened to whole runs: `ledger` without a run."""
    with Store(_path(options)) as store:
        ledger, signed = database_ledger(store), _signed(options, store, None)
    rows = [event.as_dict() for event in ledger.events]
    content = {
        "events": rows,
        "ok": ledger.ok,
        "problems": list(ledger.problems),
        "times": list(ledger.times),
        "head": dataclasses.asdict(ledger.head),
        "signed": None if signed is None else _signed_content(signed),
    }
    names = ["number", "at", "what", "run_id", "who", "decisions", "file_digest"]
    parts = [_table(pd.DataFrame(rows)[names]) if rows else "No run of this database was deleted or imported."]
    verdict = "The ledger of the database verifies: nothing was changed or removed."
    parts += ["", verdict if ledger.ok else "The ledger of the database does not verify:"]
    parts += [*map(terminal, (*ledger.problems, *ledger.times)), *_signed_lines(signed)]
    wrong = not ledger.ok or (signed is not None and not signed.ok)
    return Report(content, "\n".join(parts), 1 if options.verify and wrong else 0)


def _export(options: argparse.Namespace) -> Report:
    to: Path = options.to
    _check_target(options, to)
    with Store(_path(options)) as store:
        info = queries.run_info(store, options.run)
        if options.active or options.instructions:
            lines = (export_active if options.active else export_instructions)(store, info.run_id)
            with beside(to, replace=options.force) as part:
                part.write_text(lines, encoding="utf-8", newline="")
            rows = lines.count("\n")
            what = "active precedents" if options.active else "instructions"
            return Report(
                {"run_id": info.run_id, "to": str(to), "rows": rows}, f"Wrote {rows:,} {what} to {terminal(to)}"
            )
        counts = export_run(store, info.run_id, to, replace=options.force)
    text = f"Wrote {counts['evidence']:,} evidence items and {counts['decisions']:,} decisions to {terminal(to)}"
    return Report({"run_id": info.run_id, "to": str(to), **counts}, text)


def _backup(options: argparse.Namespace) -> Report:
    to: Path = options.to
    _check_target(options, to)
    found = backup(_path(options), to, over=options.force)
    text = [f"Wrote a backup of {terminal(_path(options))} to {terminal(to)}: {_counted(found)}."]
    text += [f"Its ledger of {terminal(run or 'the database')} does not verify, here as there." for run in found.broken]
    counts = {"runs": found.runs, "decisions": found.decisions, "bytes": found.size, "broken": list(found.broken)}
    return Report({"db": str(_path(options)), "to": str(to), **counts}, "\n".join(text))


def _restore(options: argparse.Namespace) -> Report:
    found = restore(options.file, _path(options))
    kept = None if found.kept is None else str(found.kept)
    text = [f"Restored {terminal(_path(options))} from {terminal(options.file)}: {_counted(found)}."]
    text += [f"What was there before is kept as {terminal(kept)}."] if kept else []
    content = {"db": str(_path(options)), "runs": found.runs, "decisions": found.decisions, "bytes": found.size}
    return Report({**content, "kept": kept}, "\n".join(text))


def _counted(found: Copied) -> str:
    return f"{found.runs:,} runs, {found.decisions:,} decisions, {found.size:,} bytes"


def _trace(options: argparse.Namespace) -> Report:
    with Store(_path(options)) as store:
        info = queries.run_info(store, options.run)
        if options.method == "all":
            raise RefusedError("a trace follows one method; name it with --method")
        method = _lane(info, options.method)
        chosen = _seed(info, options.seed)
        seed = chosen if chosen is not None else 0 if info.is_log else info.spec["first_seed"]
        subject, key_id = _chosen_key(store, info, method, seed, options.key, options.subject)
        life = key_life(store, info.run_id, key_id, method=method, seed=seed, subject=subject, order=options.order)
    first = int(life.heard.min())
    shown = _values_traced(life, options.value, len(life.moments) - first)
    content = {
        "run_id": info.run_id,
        "method": life.method,
        "seed": life.seed,
        "subject": life.subject,
        "key": life.key,
        "order": options.order,
        "t": life.moments.iloc[first:],
        "values": ((row.value, _course(life, row.id, first)) for row in _records(shown)),
        "decisions": life.decisions.rename(columns={"x": "at"}),
        "evidence": life.items[["seq", "x", "value", "supports", "text", "actor", "source_ref"]].rename(
            columns={"x": "at"}
        ),
        "values_left_out": len(life.values) - len(shown),
    }
    steps = life.transitions[["x", "value", "from_state", "to_state", "rule", "posterior"]]
    owner = f" of {terminal(life.subject)}" if life.subject else ""
    text = (
        f"{terminal(life.key)}{owner}: {len(life.items):,} evidence items, {len(life.values)} values\n{_table(steps)}"
    )
    if len(shown) < len(life.values) and options.value is None:
        text += f"\nWith --json the courses of {len(shown):,} of them; name others with --value."
    return Report(content, text)


def _chosen_key(store: Store, info: RunInfo, method: str, seed: int, key: str, subject: str | None) -> tuple[str, str]:
    """Find the one conflict key that a person means by its name."""
    known = queries.keys(store, info.run_id, method, seed, limit=sys.maxsize)
    meant = known[(known["key"] == key) | (known["key_id"] == key) | (known["key_id"] == canonical(key))]
    if subject is not None:
        meant = meant[meant["subject"] == subject]
    if meant.empty:
        lane = "" if info.is_log else f" for {method} in seed {seed}"
        whose = "" if subject is None else f" of {subject}"
        some = ", ".join(known["key"].drop_duplicates().head(_SUBJECTS_NAMED))
        raise RefusedError(
            f"run {info.run_id} has no evidence on the key {key!r}{whose}{lane}; "
            + (f"it has, for example: {some}" if some else "the command 'precedents' lists what it has")
        )
    if len(meant) > 1:
        owners = [*meant["subject"].head(_SUBJECTS_NAMED), *(["..."] if len(meant) > _SUBJECTS_NAMED else [])]
        raise RefusedError(
            f"the key {key!r} exists for {len(meant)} subjects ({', '.join(owners)}); choose one with --subject NAME"
        )
    return str(meant["subject"].iloc[0]), str(meant["key_id"].iloc[0])


def _values_traced(life: KeyLife, named: Sequence[str] | None, steps: int) -> pd.DataFrame:
    """Choose the values whose courses are written: those named, else as many as fit, the liveliest before others."""
    if named is not None:
        meant = life.values[life.values["value"].isin(named) | life.values["value_id"].isin(map(canonical, named))]
        if meant.empty:
            some = ", ".join(life.values["value"].head(_SUBJECTS_NAMED))
            raise RefusedError(f"the key {life.key!r} has no value {named[0]!r}; it has, for example: {some}")
        return meant
    room = max(TRACED_CELLS // steps, 1)
    if len(life.values) <= room:
        return life.values
    liveliest = life.values.assign(told=life.transitions["id"].value_counts().reindex(life.values["id"]).to_numpy())
    return life.values.loc[sorted(liveliest.nlargest(room, ["told", "lives"]).index)]


def _course(life: KeyLife, precedent: str, first: int) -> dict[str, Any]:
    """Return posterior and state of a value after each step from the first on; None before it is first heard of."""
    course = life.course(precedent, band=False)
    unheard = np.full(len(life.moments) - first - len(course), None, object)
    return {name: np.concatenate([unheard, course[name].to_numpy(object)]) for name in ("posterior", "state")}


def _sweep(options: argparse.Namespace) -> Report:
    world = _numbers(options.world, "--world")
    if options.key_noise is not None:
        world["key_noise"] = options.key_noise
    with _bad_input():
        spec = RunSpec.build(
            options.stream,
            seeds=options.seeds,
            first_seed=options.first_seed,
            methods=[options.method],
            thresholds=Thresholds().changed(_pairs(options.set, "--set")),
            world=world,
            fallback=options.fallback,
        )
        x = Grid.parse(options.x)
        y = None if options.y is None else Grid.parse(options.y)
    if y is not None and x.name == y.name:
        raise RefusedError(f"--x and --y both vary {x.name}; choose another threshold for one of them")
    with _progress() as progress:
        found = sweep(spec, x, y, method=options.method, metrics=[options.metric], progress=progress)
    z = found.surface(options.metric, options.phase)
    content = {
        "stream": spec.stream,
        "seeds": spec.seeds,
        "method": options.method,
        "metric": options.metric,
        "phase": options.phase,
        "x_name": x.name,
        "x": list(x.values),
        "y_name": None if y is None else y.name,
        "y": None if y is None else list(y.values),
        "z": z.tolist(),
        "thresholds": dataclasses.asdict(spec.thresholds),
        "elapsed_s": found.elapsed_s,
        "kernel_s": found.kernel_s,
    }
    where = options.phase if options.phase == OVERALL else f"in {options.phase}"
    head = (
        f"{options.metric.replace('_', ' ')} of {options.method} {where}, {spec.seeds} seeds of {spec.stream}: "
        f"{z.size:,} settings in {found.elapsed_s:.2f} s"
    )
    if y is None:
        table = pd.DataFrame({x.name: [f"{value:g}" for value in x.values], options.metric: z[0]})
    else:
        table = pd.DataFrame(z, columns=[f"{value:g}" for value in x.values])
        table.insert(0, f"{y.name} | {x.name}", [f"{value:g}" for value in y.values])
    return Report(content, f"{head}\n{_table(table)}")


def _reproduce(options: argparse.Namespace) -> Report:
    if not 2 <= options.seeds <= 10_000:
        raise RefusedError(f"--seeds must be from 2 to 10000, not {options.seeds}: an interval needs two")
    facts = None if options.facts is None else Path(options.facts)
    if facts is not None and not facts.is_dir():
        raise RefusedError(
            f"{facts} is no folder; --facts names the one with factconsolidation_sh_6k.json and the like"
        )
    with _writing(options) as store, _progress() as progress:
        rows, elapsed = reproduce(store, options.seeds, progress, facts=facts)
    measured = rows["within"].notna()
    within = rows["within"].fillna(False).astype(bool)
    words = np.where(~measured, "not measured", np.where(within, "within", "outside"))
    shown = rows[["table", "run", "method", "scope", "quantity", "reported", "ours", "lo", "hi"]].assign(verdict=words)
    counts = f"{int(within.sum())} of {int(measured.sum())} numbers measured here agree with the paper"
    missing = f"; {int((~measured).sum())} are not measured (see note in --json)" if not measured.all() else ""
    text = "\n".join([f"{counts}{missing}. {elapsed:.0f} s.", _table(shown)])
    return Report({"rows": rows.to_dict("records"), "elapsed_s": elapsed}, text)


def _bench(options: argparse.Namespace) -> Report:
    with _bad_input():
        numbers, facts = bench(options.updates, options.keys, _say)
    judged = options.updates >= JUDGED_FROM
    broken = [fact.sentence for fact in facts if judged and not fact.holds]
    listed = [{"fact": fact.sentence, "value": fact.value, "limit": fact.limit, "holds": fact.holds} for fact in facts]
    units = {"ns": "ns", "us": "µs", "s": "s"}
    single = pd.DataFrame(
        [
            (name.rpartition("_")[0].replace("_", " "), value, units[name.rpartition("_")[2]])
            for name, value in numbers.items()
            if name.rpartition("_")[2] in units
        ],
        columns=["measured", "time", "unit"],
    )
    ratios = pd.DataFrame(
        [(name.replace("_", " "), ratio) for name, ratio in numbers["ratios"].items()], columns=["ratio", "value"]
    )
    explained = pd.DataFrame(
        [(f"{int(items):,}", seconds) for items, seconds in numbers["explain_s_at"].items()],
        columns=["items on one key", "explain, s"],
    )
    parts = [
        f"{options.updates:,} updates of {options.keys:,} keys",
        _table(single),
        "",
        _table(explained),
        "",
        _table(ratios),
        "",
    ]
    if judged:
        parts += [f"{'holds' if fact.holds else 'BROKEN'}: {fact.sentence}" for fact in facts]
    else:
        parts.append(f"What must hold is judged from {JUDGED_FROM:,} updates on.")
    for sentence in broken:
        _say(f"Not met: {sentence}")
    return Report({**numbers, "judged": judged, "facts": listed}, "\n".join(parts), 1 if broken else 0)


def _app(options: argparse.Namespace) -> Report:
    command = [sys.executable, "-m", "tepa_core.ui.launch", "--with-parent", "--port", str(options.port)]
    environment = {**os.environ, PATH_VARIABLE: str(_path(options))}
    # With --json stdout holds one object alone, so what the dashboard says goes to stderr.
    # The pipe ends the dashboard with this process, should it be killed (`tepa_core.ui.lifeline`).
    child = subprocess.Popen(  # noqa: S603 - this interpreter, a module of this program and a number
        command, env=environment, stdin=subprocess.PIPE, stdout=sys.stderr.fileno() if options.json else None
    )

    def end(number: int, frame: FrameType | None) -> None:
        child.terminate()

    kept = signal.signal(signal.SIGTERM, end)
    try:
        while True:
            try:
                code = child.wait()
                break
            except KeyboardInterrupt:
                # The terminal has told the dashboard as well: it closes by itself.
                continue
    finally:
        signal.signal(signal.SIGTERM, kept)
        if child.stdin is not None:
            child.stdin.close()
    return Report({"port": options.port, "exit_code": code}, "The dashboard has ended.", code if code > 0 else 0)


# What the commands share --------------------------------------------------------------------------------------------


def _path(options: argparse.Namespace) -> Path:
    return options.db or default_path()


def _check_target(options: argparse.Namespace, to: Path) -> None:
    """Refuse a file before the work, if it cannot be written or is the database itself."""
    target, database = check_target(to, replace=options.force), _path(options).resolve()
    if target in (database, database.with_name(f"{database.name}.wal")):
        raise RefusedError(f"{to} is the database itself; choose another name")


def _writing(options: argparse.Namespace, name: str | None = None) -> Store:
    """Open the database for whoever runs this command: who can, owns the file, and nobody vouches for the name."""
    return Store(_path(options), Actor(name or _account(), authenticated=False, role=Role.REVIEWER))


def _account() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "command line"


def _lane(info: RunInfo, method: str | None) -> str:
    """Return the method whose precedents are meant; a log has one nameless lane."""
    if info.is_log:
        if method is not None:
            raise RefusedError(f"{info.run_id} is an imported log and has no methods; leave --method out")
        return ""
    lanes = [name for name in info.spec["methods"] if METHODS[name].lifecycle]
    if method is None:
        method = DEFAULT_METHOD if DEFAULT_METHOD in lanes or not lanes else lanes[0]
    if method not in lanes:
        raise RefusedError(
            f"run {info.run_id} has no precedents of {method}; "
            + (f"it has those of {', '.join(lanes)}" if lanes else "none of its methods keeps precedents")
        )
    return method


def _seed(info: RunInfo, seed: int | None) -> int | None:
    """Return the seed that is meant, None for all."""
    if seed is None:
        return None
    if info.is_log:
        raise RefusedError(f"{info.run_id} is an imported log and has no seeds; leave --seed out")
    first, last = info.spec["first_seed"], info.spec["first_seed"] + info.spec["seeds"] - 1
    if not first <= seed <= last:
        raise RefusedError(f"run {info.run_id} has no seed {seed}; its seeds are {first} to {last}")
    return seed


def _pairs(settings: Sequence[str], option: str) -> dict[str, str]:
    pairs = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise RefusedError(f"{option} has {setting!r} where NAME=VALUE is expected")
        pairs[name.strip()] = value.strip()
    return pairs


def _meanings(text: str) -> dict[str, bool | None]:
    """Read what words of outcomes mean, as in ``pass=1,fail=0,skipped=``."""
    meanings: dict[str, bool | None] = {}
    for part in next(csv.reader([text], skipinitialspace=True), []):
        word, equals, meaning = part.rpartition("=")
        if not equals or not word.strip() or meaning.strip() not in ("", "0", "1"):
            raise RefusedError(f"--outcomes has {part!r} where WORD=1, WORD=0 or WORD= is expected")
        meanings[word.strip()] = {"1": True, "0": False}.get(meaning.strip())
    return meanings


@contextmanager
def _in_options() -> Iterator[None]:
    """Tell what to do about a log in the options of this command, where the page has its boxes."""
    try:
        yield
    except ImportRefused as refusal:
        raise RefusedError(_as_options(str(refusal))) from None


def _as_options(words: str) -> str:
    for said, option in _OPTIONS:
        words = re.sub(said, option, words)
    return words


#: How a refusal of a log says what to do -> how the command line does it.
_OPTIONS = (
    (r"as in (?=\w+=\S)", "as in --map "),
    (r"\(ignore ", "(--ignore "),
    (r"as in outcomes ", "as in --outcomes="),
    (r"a key template such as ", "--key-template "),
    (r"The template file shows every field\.", "'import --template' prints a log with the usual fields."),
    (r"the order of the file can stand for time", "--order file takes the order of the file for it"),
)


def _numbers(settings: Sequence[str], option: str) -> dict[str, float]:
    numbers = {}
    for name, value in _pairs(settings, option).items():
        try:
            numbers[name] = float(value)
        except ValueError:
            raise RefusedError(f"{option} {name} must be a number, not {value!r}") from None
    return numbers


@contextmanager
def _bad_input() -> Iterator[None]:
    """Turn the ValueError of a check of what a person typed into a refusal; elsewhere it would be a mistake of ours.

    A language model that is not configured or does not answer is refused the same way.
    """
    try:
        yield
    except (ValueError, AnswerError) as error:
        raise RefusedError(str(error)) from None


@contextmanager
def _progress() -> Iterator[Progress]:
    """Report progress on stderr: one line that renews itself on a terminal, else a line now and then."""
    alive = sys.stderr.isatty()
    told = time.monotonic()

    def report(fraction: float, sentence: str) -> None:
        nonlocal told
        line = terminal(f"{fraction:4.0%}  {sentence}")
        if alive:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
        elif time.monotonic() - told >= _QUIET_SECONDS:
            told = time.monotonic()
            _say(line)

    try:
        yield report
    finally:
        if alive:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _say(sentence: str) -> None:
    sys.stderr.write(f"{terminal(sentence)}\n")
    sys.stderr.flush()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _records(frame: pd.DataFrame) -> Any:
    return frame.itertuples(index=False)


def _clean(content: Any) -> Any:
    """Return data as JSON knows it: no NaN, no infinity, text for times."""
    # What long tables are made of comes first: an abstract class is asked last.
    if isinstance(content, dict):
        return {str(name): _clean(part) for name, part in content.items()}
    if isinstance(content, list | tuple):
        return [_clean(part) for part in content]
    value = plain(content)
    if isinstance(value, Mapping):
        return {str(name): _clean(part) for name, part in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _as_json(content: Any) -> Iterator[str]:
    """Write data as JSON piece by piece, so that a long table is never in memory as one text.

    A frame is a list of objects, a series a list, an array a list of what JSON knows already, and an iterator of
    (name, part) an object whose parts are made when they are written.
    """
    if isinstance(content, Mapping | Iterator):
        yield "{"
        parts = content.items() if isinstance(content, Mapping) else content
        for number, (name, part) in enumerate(parts):
            yield f"{', ' if number else ''}{json.dumps(str(name))}: "
            yield from _as_json(part)
        yield "}"
    elif isinstance(content, pd.DataFrame | pd.Series | np.ndarray):
        yield "["
        for start in range(0, len(content), JSON_BLOCK):
            yield (", " if start else "") + json.dumps(_block(content, start), allow_nan=False)[1:-1]
        yield "]"
    else:
        yield json.dumps(_clean(content), allow_nan=False)


def _block(content: Any, start: int) -> Any:
    if isinstance(content, np.ndarray):
        return content[start : start + JSON_BLOCK].tolist()
    block = content.iloc[start : start + JSON_BLOCK]
    return _clean(block.tolist() if isinstance(block, pd.Series) else block.to_dict("records"))


def _cell(value: Any) -> str:
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, float):
        if abs(value) >= 1000:
            return f"{value:,.0f}"
        # Small p values keep their digits; what is zero but for rounding is zero.
        return f"{value:.2g}" if 1e-12 < abs(value) < 0.001 else f"{value:.3f}"
    return terminal(value)


def _table(frame: pd.DataFrame) -> str:
    """Write a table as text: names above, numbers to the right, two blanks between the columns."""
    columns = []
    for at, name in enumerate(frame.columns):
        series = frame.iloc[:, at]
        right = pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series)
        cells = [terminal(name), *map(_cell, series.tolist())]
        width = max(map(len, cells))
        columns.append([cell.rjust(width) if right else cell.ljust(width) for cell in cells])
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


# Usage --------------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser that refuses in one line and names where help is."""

    def error(self, message: str) -> NoReturn:
        _say(f"{_one_line(message)}; see {self.prog} --help")
        self.exit(2)


def _method_list(text: str) -> list[str]:
    return [method.strip() for method in text.split(",") if method.strip()]


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each sets ``command``, the function that carries it out."""
    shared = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    _add_shared(shared)
    parser = _Parser(
        prog="python -m tepa_core",
        description="Audit the life of an agent's memories: evidence, revocation, return.",
    )
    _add_shared(parser)
    parser.set_defaults(db=None, json=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, command: Callable[[argparse.Namespace], Report], words: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, parents=[shared], help=words, description=words)
        made.set_defaults(command=command)
        return made

    sub = add("run", _run, "Run an experiment and keep it.")
    sub.add_argument("stream", metavar="STREAM", help=f"one of: {', '.join(STREAMS)}, facts")
    sub.add_argument("--seeds", type=int, help="how many seeds (default 50)")
    sub.add_argument("--first-seed", type=int, help="the first of them (default 0)")
    sub.add_argument("--methods", type=_method_list, metavar="A,B", help=f"default: all of {', '.join(METHODS)}")
    _add_settings(sub)
    _add_world(sub)
    how = "how tepa acts without an Active value (default: the stream's own)"
    sub.add_argument("--fallback", choices=FALLBACKS, help=how)
    sub.add_argument("--name", help="name of the run, for people")
    sub.add_argument("--file", help="run facts: a FactConsolidation file (JSON or JSONL)")
    sub.add_argument("--orders", type=int, default=3, help="run facts: orders of the questions (default 3)")
    sub.add_argument("--answerer", choices=ANSWERERS, default="deterministic", help="run facts: who answers")

    sub = add("stream", _stream, "Show what happens in one seed of a stream.")
    sub.add_argument("stream", metavar="STREAM", help=f"one of: {', '.join(STREAMS)}")
    sub.add_argument("--seed", type=int, default=0, help="which seed (default 0)")
    _add_world(sub)

    sub = add("episodes", _episodes, "Write the episodes of a run to a file.")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("--method", help="of this method only")
    sub.add_argument("--seed", type=int, help="of this seed only")
    sub.add_argument("--to", type=Path, required=True, metavar="FILE", help="a .parquet or .csv file")
    sub.add_argument("--force", action="store_true", help="replace a file that exists")

    add("runs", _runs, "List the runs, the newest first.")

    sub = add("delete", _delete, "Delete a run with everything that belongs to it.")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("--force", action="store_true", help="delete its decisions too; export it first to keep them")

    sub = add("import", _import, "Import a log of evidence, or an exported run.")
    sub.add_argument("file", type=Path, metavar="FILE", nargs="?")
    sub.add_argument("--template", action="store_true", help="print a small log with the usual columns, to fill in")
    sub.add_argument("--format", default="auto", choices=("auto", *IMPORTERS), help="default: found by the content")
    sub.add_argument("--map", metavar="key=COL,value=COL", help="columns whose names do not say what they hold")
    sub.add_argument("--key-template", metavar="TEXT", help="makes the key of several columns, as in {user}/{slot}")
    how = "what words of the outcome column mean: 1 supports, 0 refutes, empty asserts"
    sub.add_argument("--outcomes", metavar="pass=1,fail=0", default="", help=how)
    how = "leave a column out on purpose that seems to change what a row means (may be given again)"
    sub.add_argument("--ignore", metavar="COLUMN", action="append", default=[], help=how)
    how = "what orders the rows: their times, or where there are none, the file"
    sub.add_argument("--order", choices=ORDERS, default="time", help=how)
    sub.add_argument("--preset", choices=tuple(PRESETS), default="default", help="thresholds (default: default)")
    _add_settings(sub)
    sub.add_argument("--tz", default="UTC", help="zone of times without an offset (default UTC)")
    sub.add_argument("--name", help="name of the run, for people")

    states = (*(state.label for state in State), DEPRECATED)
    sub = add("precedents", _precedents, "List the precedents of a run.")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("--state", choices=states, help="in this state only")
    sub.add_argument("--key", help="of this key only")
    _add_lane(sub, "'all' for every method")
    sub.add_argument("--search", metavar="TEXT", help="text in subject, key, value or evidence")

    sub = add("explain", _explain, "Explain every change of state of a precedent.")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("precedent", metavar="PRECEDENT", help="its id, from 'precedents'")

    sub = add("decide", _decide, "Decide on a revoked precedent, or undo a decision.")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("precedent", metavar="PRECEDENT", help="its id, from 'precedents'")
    sub.add_argument("action", choices=[str(action) for action in Action])
    sub.add_argument("--reviewer", required=True, metavar="NAME", help="who decides")
    sub.add_argument("--reason", required=True, metavar="TEXT", help="why, in words")
    how = "why, for counting (default: wrong_revocation; obsolete for confirm, other for undo)"
    sub.add_argument("--category", choices=[str(category) for category in Category], help=how)
    sub.add_argument("--pin", action="store_true", help="reactivate until another decision, whatever the evidence says")
    when = "from when on: a task (default: the last revocation), or a time (default: the end of the log)"
    sub.add_argument("--at", metavar="T", help=when)
    sub.add_argument("--expect-version", metavar="V", help="refuse if the precedent has changed since, see --dry-run")
    sub.add_argument("--undoes", metavar="DECISION", help="what to undo (default: the last decision on the precedent)")
    sub.add_argument("--every-seed", action="store_true", help="also say what it would change in every seed")
    sub.add_argument("--dry-run", action="store_true", help="say what it would change and save nothing")

    sub = add("ledger", _ledger, "List the decisions of a run, or what happened to runs, and check their chain.")
    sub.add_argument("run", metavar="RUN", nargs="?", help="left out: which runs were deleted and imported")
    sub.add_argument("--verify", action="store_true", help="exit with 1 if rows were changed or removed")
    sub.add_argument("--head", type=Path, metavar="FILE", help="with --verify: it must still begin with these heads")
    sub.add_argument("--public-key", type=Path, metavar="FILE", help="whose signature counts (default: your own key)")
    sub.add_argument("--head-to", type=Path, metavar="FILE", help="write signed heads: of the run, or of everything")
    where = f"the private key to sign with, made when absent (default: {KEY_VARIABLE}, else in your configuration)"
    sub.add_argument("--key", type=Path, metavar="FILE", help=where)
    sub.add_argument("--force", action="store_true", help="replace a file that exists")
    sub.add_argument("--redact", type=int, metavar="NUMBER", help="remove the reason of this decision for good")
    sub.add_argument("--reviewer", metavar="NAME", help="who redacts")

    sub = add("export", _export, "Write a run with its ledger to a file that 'import' takes in.")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("--to", type=Path, required=True, metavar="FILE", help="a .zip file; JSON lines for the two below")
    which = sub.add_mutually_exclusive_group()
    which.add_argument("--active", action="store_true", help="only the active precedents, for an agent")
    which.add_argument("--instructions", action="store_true", help="only the decisions, for another memory system")
    sub.add_argument("--force", action="store_true", help="replace a file that exists")

    sub = add("backup", _backup, "Copy the whole database to a file, also while the dashboard runs.")
    sub.add_argument("--to", type=Path, required=True, metavar="FILE", help="the copy, a database of its own")
    sub.add_argument("--force", action="store_true", help="replace a file that exists")

    sub = add("restore", _restore, "Put a backup in the place of the database, which is kept beside it.")
    sub.add_argument("file", type=Path, metavar="FILE", help="what 'backup' wrote")

    sub = add("trace", _trace, "Follow the values of a key through all of its evidence.")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("--key", required=True)
    _add_lane(sub, "one method")
    sub.add_argument("--order", choices=("event", "arrival"), default="event", help="the time that counts in a log")
    sub.add_argument("--value", action="append", help="only this value; may be given several times")

    sub = add("sweep", _sweep, "Play a method over a grid of one or two thresholds; nothing is stored.")
    sub.add_argument("stream", metavar="STREAM", help=f"one of: {', '.join(STREAMS)}")
    grid = f"NAME=START:STOP:COUNT, or NAME=VALUE, of: {', '.join(SETTINGS)}"
    sub.add_argument("--x", required=True, metavar="GRID", help=grid)
    sub.add_argument("--y", metavar="GRID", help="a second threshold, in the same form")
    sub.add_argument("--seeds", type=int, default=50, help="how many seeds (default 50)")
    sub.add_argument("--first-seed", type=int, default=0, help="the first of them (default 0)")
    sub.add_argument("--metric", choices=METRICS, default="success", help="what to measure (default success)")
    sub.add_argument("--phase", choices=(*PHASES, OVERALL), default="reversal", help="where (default reversal)")
    sweepable = [name for name, entry in METHODS.items() if entry.lifecycle]
    sub.add_argument("--method", choices=sweepable, default=DEFAULT_METHOD, help=f"default: {DEFAULT_METHOD}")
    _add_settings(sub)
    _add_world(sub)
    sub.add_argument("--fallback", choices=FALLBACKS, help=how)

    sub = add("reproduce", _reproduce, "Measure every number of the paper's tables; runs are kept.")
    sub.add_argument("--seeds", type=int, default=50, help="seeds of the simulated runs (default 50, as in the paper)")
    sub.add_argument("--facts", metavar="FOLDER", help="folder of the FactConsolidation files")

    sub = add("bench", _bench, "Measure the cost of the rule on this machine.")
    sub.add_argument("--updates", type=int, default=1_000_000, help="evidence items (default 1000000)")
    sub.add_argument("--keys", type=int, default=100_000, help="conflict keys (default 100000)")

    sub = add("app", _app, "Start the dashboard.")
    sub.add_argument("--port", type=int, default=8501, help="port on 127.0.0.1 (default 8501)")
    return parser


def _add_shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--db", type=Path, metavar="PATH", help=f"database (default: {PATH_VARIABLE}, else data/tepa.duckdb)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def _add_settings(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(field.name for field in dataclasses.fields(Thresholds))
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="NAME=VALUE", help=f"thresholds: {names}"
    )


def _add_world(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--world", nargs="+", action="extend", default=[], metavar="NAME=VALUE", help="parameters of the stream"
    )
    parser.add_argument("--key-noise", type=float, metavar="X", help="share of tasks whose key memory sees wrongly")


def _add_lane(parser: argparse.ArgumentParser, methods: str) -> None:
    parser.add_argument("--method", help=f"of a simulation: {methods} (default {DEFAULT_METHOD})")
    parser.add_argument("--seed", type=int, help="of a simulation: which seed")
    parser.add_argument("--subject", help="of a log: whose memory")
