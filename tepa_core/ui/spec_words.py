"""What a run is made of, in words: the one place that knows that a fact run has a file where others have seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tepa_core.experiment import FactSpec, RunSpec, Spec
from tepa_core.experiment.facts import DETERMINISTIC
from tepa_core.ui import headline
from tepa_core.ui.text import plain_text

#: Fields of a spec that name its parts rather than settings.
_NAMES = ("stream", "methods", "digest")
#: Fields whose names need a word more.
_SHOWN = {"name": "file", "backend": "answerer"}
#: Fields that say how much is run or who answers: told elsewhere.
_TOLD = ("seeds", "first_seed", "orders", "fallback", "answerer")


def made_of(spec: Spec, counts: Mapping[str, int]) -> str:
    """Say what a run is made of, in Markdown: stream, seeds, tasks and methods, or file, questions and who answers.

    Parameters
    ----------
    counts
        Those that the run was stored with.
    """
    methods = f"{len(spec.methods)} method{'' if len(spec.methods) == 1 else 's'}"
    if isinstance(spec, FactSpec):
        return (
            f"{spec.title}, file {plain_text(spec.name)}, {counts['facts']:,} facts, {counts['tasks']:,} questions in "
            f"{ordered(spec.orders)}, {methods}, answered by {answerer(spec)}"
        )
    seeds = f"seed {spec.first_seed}"
    if spec.seeds > 1:
        seeds = f"seeds {spec.first_seed} to {spec.first_seed + spec.seeds - 1}"
    return f"{spec.title}, {seeds}, {counts['tasks']} tasks each, {methods}"


def ordered(orders: int) -> str:
    """Write how many orders questions are asked in: "one order", "3 orders"."""
    return "one order" if orders == 1 else f"{orders} orders"


def answerer(spec: FactSpec) -> str:
    """Name who answers the questions of a fact run, in Markdown."""
    if spec.backend == DETERMINISTIC:
        return "the deterministic reader"
    return f"the language model {plain_text(spec.backend.removeprefix('chat:'))}"


def choices(spec: Spec) -> list[str]:
    """State what a run assumes where the paper leaves a choice, and which settings differ from their defaults."""
    if isinstance(spec, FactSpec):
        usual: Spec = FactSpec(spec.name, spec.digest)
        assumed = (
            "The later fact on a key holds. The deterministic reader answers with the retrieved value and throws a "
            "coin among several, since nothing tells it which is newer; it cannot chain several facts."
            if spec.backend == DETERMINISTIC
            else f"The later fact on a key holds, and {answerer(spec)} reads the retrieved facts from old to new."
        )
    else:
        usual, assumed = RunSpec.build(spec.stream), headline.FALLBACKS[spec.fallback]
    changed = ", ".join(f"{name} = {here}" for name, (here, _) in _differing(spec, usual).items() if name not in _TOLD)
    return [assumed, f"Settings: {plain_text(changed or 'all at their defaults', limit=400)}."]


def differences(here: Spec, there: Spec) -> str:
    """Say in Markdown what differs between two runs."""
    found = {name: f"{ours} here and {theirs} there" for name, (ours, theirs) in _differing(here, there).items()}
    if here.stream != there.stream:
        found = {"stream": f"{here.title} here and {there.title} there"} | found
    if isinstance(here, FactSpec) and isinstance(there, FactSpec) and here.name == there.name:
        found |= {} if here.digest == there.digest else {"content of the file": "not the same"}
    if here.methods != there.methods:
        found["methods"] = f"{len(here.methods)} here and {len(there.methods)} there"
    words = [f"{name} {what}" for name, what in found.items()]
    return plain_text("; ".join(words) or "nothing but the version of the program", limit=600)


def _differing(here: Spec, there: Spec) -> dict[str, tuple[Any, Any]]:
    ours, theirs = _settings(here), _settings(there)
    names = sorted({*ours, *theirs}, key=lambda name: (name not in ours, name))
    return {
        name: (ours.get(name, "default"), theirs.get(name, "default"))
        for name in names
        if ours.get(name, "default") != theirs.get(name, "default")
    }


def _settings(spec: Spec) -> dict[str, Any]:
    content = {_SHOWN.get(name, name): value for name, value in spec.as_dict().items() if name not in _NAMES}
    return {**content.pop("thresholds"), **content.pop("world", {}), **content}
