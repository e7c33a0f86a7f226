"""Names of runs that nobody named: what they are made of and what was changed, no two runs alike."""

from __future__ import annotations

import dataclasses

import duckdb

from tepa_core.experiment import FactSpec, RunSpec
from tepa_core.lifecycle import PRESETS, Thresholds
from tepa_core.methods import METHODS

__all__ = ["free_name", "name_of_facts", "name_of_log", "name_of_simulation"]


def name_of_simulation(spec: RunSpec) -> str:
    """Name a simulation: its stream, its seeds, and each setting that is not the default."""
    parts = [spec.stream_spec.title, f"{spec.seeds} seed{'' if spec.seeds == 1 else 's'}"]
    if spec.first_seed:
        parts[-1] += f" from {spec.first_seed}"
    if len(spec.methods) < len(METHODS):
        parts.append(f"{len(spec.methods)} method{'' if len(spec.methods) == 1 else 's'}")
    parts += _changed(spec.thresholds, PRESETS["default"])
    parts += [f"{name}={value}" for name, value in spec.world]
    if spec.fallback != spec.stream_spec.fallback:
        parts.append(f"fallback={spec.fallback}")
    return ", ".join(parts)


def name_of_facts(spec: FactSpec) -> str:
    """Name a fact run: its file, and each setting that is not the default."""
    usual = FactSpec(spec.name, spec.digest)
    parts = [f"Facts of {spec.name}"]
    if spec.methods != usual.methods:
        parts.append(f"{len(spec.methods)} method{'' if len(spec.methods) == 1 else 's'}")
    parts += _changed(spec.thresholds, usual.thresholds)
    parts += [
        f"{name}={getattr(spec, name)}"
        for name in ("orders", "backend", "top_k")
        if getattr(spec, name) != getattr(usual, name)
    ]
    return ", ".join(parts)


def name_of_log(source: str, thresholds: Thresholds) -> str:
    """Name a log: its file, and its preset or thresholds where they are not the default."""
    preset = next((name for name, values in PRESETS.items() if values == thresholds), None)
    if preset == "default":
        return source
    return ", ".join([source, *([preset] if preset else _changed(thresholds, PRESETS["default"]))])


def _changed(thresholds: Thresholds, usual: Thresholds) -> list[str]:
    before = dataclasses.asdict(usual)
    return [f"{name}={value}" for name, value in dataclasses.asdict(thresholds).items() if value != before[name]]


def free_name(cursor: duckdb.DuckDBPyConnection, run_id: str, name: str) -> str:
    """Return a name that no other run has: the given one, or the same with a number, such as "export.csv (2)"."""
    taken = {str(row[0]) for row in cursor.execute("SELECT name FROM run WHERE run_id <> ?", [run_id]).fetchall()}
    number, made = 1, name
    while made in taken:
        number += 1
        made = f"{name} ({number})"
    return made
