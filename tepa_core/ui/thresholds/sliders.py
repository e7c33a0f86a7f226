"""The sliders of the thresholds, and the settings they stand at: the current one and a pinned one, both in the URL."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import streamlit as st

from tepa_core.experiment import RunSpec
from tepa_core.experiment.sweep import Grid
from tepa_core.lifecycle import PRESETS, Thresholds
from tepa_core.lifecycle.precedent import MAX_N_REC, MAX_TRIAL_BUDGET
from tepa_core.store import RunInfo
from tepa_core.ui import boundary, state
from tepa_core.ui.text import plain_text

PAPER = PRESETS["default"]

#: Settings with equal names are told apart by where they stand in the URL: each threshold of the current one under its
#: own name, the pinned one as one text.
PIN = "pin"


@dataclass(frozen=True, slots=True)
class Slider:
    """One threshold as a person moves it.

    Attributes
    ----------
    name
        As in `tepa_core.experiment.sweep.SETTINGS`.
    label, help
        What a person reads.
    grid, coarse
        Points that the slider stops at, and fewer of them for a surface.
    low, high
        What may be typed.
    """

    name: str
    label: str
    help: str
    grid: Grid
    coarse: Grid
    low: float
    high: float

    @property
    def whole(self) -> bool:
        """Whether the threshold is a whole number."""
        return all(isinstance(value, int) for value in self.grid.values)

    def at(self, thresholds: Thresholds) -> float:
        """Return where the slider stands."""
        value: float = getattr(thresholds, "alpha" if self.name == "prior" else self.name)
        return value


SLIDERS: Mapping[str, Slider] = MappingProxyType(
    {
        slider.name: slider
        for slider in (
            Slider(
                "theta_rec",
                "Recent mean that revokes",
                "An active memory is revoked when the mean of its last outcomes is below this.",
                Grid.parse("theta_rec=0:1:51"),
                Grid.parse("theta_rec=0:1:26"),
                0,
                1,
            ),
            Slider(
                "n_rec",
                "Recent window",
                "How many of the last outcomes that mean is taken over.",
                Grid.parse("n_rec=1:12:12"),
                Grid.parse("n_rec=1:12:12"),
                1,
                MAX_N_REC,
            ),
            Slider(
                "theta_rev",
                "Posterior that revokes",
                "An active memory is revoked when its posterior is below this.",
                Grid.parse("theta_rev=0:0.9:46"),
                Grid.parse("theta_rev=0:0.9:31"),
                0,
                1,
            ),
            Slider(
                "n_min",
                "Outcomes before it may",
                "How many outcomes a memory has before the posterior may revoke it.",
                Grid.parse("n_min=1:20:20"),
                Grid.parse("n_min=1:20:20"),
                1,
                100,
            ),
            Slider(
                "theta_prop",
                "Supports that propose",
                "How many supports make a value a hypothesis.",
                Grid.parse("theta_prop=1:12:12"),
                Grid.parse("theta_prop=1:12:12"),
                1,
                100,
            ),
            Slider(
                "theta_pro",
                "Posterior that promotes",
                "A hypothesis becomes active when its posterior reaches this.",
                Grid.parse("theta_pro=0.3:0.96:34"),
                Grid.parse("theta_pro=0.3:0.96:23"),
                0,
                1,
            ),
            Slider(
                "prior",
                "Prior, α = β",
                "Counts of the Beta prior: the larger, the more evidence moves a posterior away from a half.",
                Grid.parse("prior=0.25:5:20"),
                Grid.parse("prior=0.25:5:20"),
                0.01,
                100,
            ),
            Slider(
                "trial_budget",
                "Trials before use",
                "How many trials TEPA-Full holds before a value becomes active.",
                Grid.parse("trial_budget=1:9:9"),
                Grid.parse("trial_budget=1:9:9"),
                1,
                MAX_TRIAL_BUDGET,
            ),
        )
    }
)


def shown(method: str) -> tuple[Slider, ...]:
    """Return the sliders that act on a method; the trials act on TEPA-Full alone."""
    return tuple(slider for slider in SLIDERS.values() if slider.name != "trial_budget" or method == "tepa_full")


def in_words(value: float) -> str:
    """Write a threshold as the URL and the command line take it.

    Examples
    --------
    >>> in_words(0.34), in_words(3)
    ('0.34', '3')
    """
    return f"{value:.12g}"


def with_values(base: Thresholds, values: Mapping[str, float | str]) -> Thresholds:
    """Return thresholds with some sliders moved.

    Raises
    ------
    ValueError
        If there is no such slider, or a value is out of its range; the message says which.
    """
    changes: dict[str, float | str] = {}
    for name, value in values.items():
        if name not in SLIDERS:
            raise ValueError(f"{name} has no slider; the sliders are {', '.join(SLIDERS)}")
        changes |= dict.fromkeys(("alpha", "beta") if name == "prior" else (name,), value)
    moved = base.changed(changes)
    for name in values:
        slider = SLIDERS[name]
        at = slider.at(moved)
        # A run may have been started beyond what a slider reaches; then it may stay there.
        if at != slider.at(base) and not slider.low <= at <= slider.high:
            raise ValueError(
                f"{name} must be from {in_words(slider.low)} to {in_words(slider.high)}, not {in_words(at)}"
            )
    return moved


def differing(thresholds: Thresholds, base: Thresholds) -> dict[str, float]:
    """Return the sliders at which two settings differ, with where the first stands."""
    return {name: slider.at(thresholds) for name, slider in SLIDERS.items() if slider.at(thresholds) != slider.at(base)}


def as_text(thresholds: Thresholds) -> str:
    """Write a setting in one line: what differs from the paper's.

    Examples
    --------
    >>> as_text(Thresholds(theta_rec=0.2, n_rec=5)), as_text(Thresholds())
    ('theta_rec=0.2,n_rec=5', '')
    """
    return ",".join(f"{name}={in_words(value)}" for name, value in differing(thresholds, PAPER).items())


def from_text(text: str) -> Thresholds:
    """Read what `as_text` wrote.

    Raises
    ------
    ValueError
        If it is no setting.
    """
    pairs = [part.partition("=") for part in text.split(",") if part]
    return with_values(PAPER, {name: value for name, _, value in pairs})


def current(info: RunInfo) -> Thresholds:
    """Return the setting that the sliders stand at: the run's own where the URL says nothing else.

    What the URL says and no threshold can be is told, and left out.
    """
    values: dict[str, float | str] = {}
    for name in SLIDERS:
        said = str(st.session_state[state.remember(name, None, "")])
        if not said:
            continue
        try:
            with_values(info.thresholds, {name: said})
        except ValueError as error:
            st.warning(f"A threshold of this link cannot be: {plain_text(error, 200)}. It stays as in the run.")
            state.choose(name, "")
            state.write(name, "")
        else:
            values[name] = said
    return with_values(info.thresholds, values)


def pinned() -> Thresholds:
    """Return the setting that the current one is held against: the paper's where the URL names no other."""
    said = str(st.session_state[state.remember(PIN, None, "")])
    try:
        return from_text(said)
    except ValueError as error:
        st.warning(f"The pinned setting of the link cannot be read: {plain_text(error, 200)}. The paper's is pinned.")
        pin(PAPER)
        state.write(PIN, "")
        return PAPER


@boundary.callback
def use(info: RunInfo, thresholds: Thresholds) -> None:
    """Move the sliders; a callback, or before `current` in the body of the page."""
    moved = differing(thresholds, info.thresholds)
    for name in SLIDERS:
        state.choose(name, in_words(moved[name]) if name in moved else "")
        # What the URL says is older than this.
        state.write(name, state.held(name, ""))


@boundary.callback
def pin(thresholds: Thresholds) -> None:
    """Hold the current setting against this one from now on; a callback."""
    state.choose(PIN, as_text(thresholds))
    state.write(PIN, state.held(PIN, ""))


def name_of(thresholds: Thresholds, info: RunInfo, saved: Mapping[str, Thresholds]) -> tuple[str, str]:
    """Return what a setting is called within a sentence, and in short."""
    named = {name: setting for name, setting in saved.items() if not differing(setting, thresholds)}
    if not differing(thresholds, PAPER):
        return "the paper's setting", "paper"
    if not differing(thresholds, info.thresholds):
        return "the run's setting", "run"
    if named:
        return f"the setting “{next(iter(named))}”", next(iter(named))
    return "the pinned setting", "pinned"


def command(info: RunInfo, thresholds: Thresholds) -> str:
    """Return the command that runs a simulation, or imports a log, with these thresholds."""
    if not info.is_log:
        return RunSpec.from_dict({**info.spec, "thresholds": _fields(thresholds)}).command()
    mapping = info.spec["mapping"]
    columns = [f"{field}={column}" for field, column in mapping["columns"].items() if field != column]
    parts = [f"python -m tepa_core import {shlex.quote(info.source or 'FILE')}"]
    if columns:
        parts.append(f"--map {shlex.quote(','.join(columns))}")
    if mapping.get("key_template"):
        parts.append(f"--key-template {shlex.quote(mapping['key_template'])}")
    if mapping.get("tz", "UTC") != "UTC":
        parts.append(f"--tz {shlex.quote(mapping['tz'])}")
    changes = _as_options(thresholds)
    return " ".join([*parts, f"--set {changes}"] if changes else parts)


def sweep_command(info: RunInfo, thresholds: Thresholds, x: Grid, y: Grid, method: str, metric: str, phase: str) -> str:
    """Return the command that computes the surface of a simulation."""
    spec = RunSpec.from_dict({**info.spec, "thresholds": _fields(thresholds), "methods": None})
    parts = [spec.command().replace(" run ", " sweep ", 1)]
    parts += [f"--{axis} {grid.name}={_span(grid)}" for axis, grid in (("x", x), ("y", y))]
    parts.append(f"--metric {metric} --phase {phase}")
    return " ".join([*parts, f"--method {method}"] if method != "tepa" else parts)


def thinned(values: Iterable[float], most: int) -> tuple[float, ...]:
    """Return at most so many of some values, evenly spread, both ends among them."""
    every = tuple(values)
    if len(every) <= most:
        return every
    steps = max(most - 1, 1)
    return tuple(every[i] for i in dict.fromkeys(round(k * (len(every) - 1) / steps) for k in range(steps + 1)))


def _span(grid: Grid) -> str:
    return f"{in_words(grid.values[0])}:{in_words(grid.values[-1])}:{len(grid.values)}"


def _fields(thresholds: Thresholds) -> dict[str, float | bool]:
    return {name: getattr(thresholds, name) for name in Thresholds.__dataclass_fields__}


def _as_options(thresholds: Thresholds) -> str:
    return " ".join(
        f"{name}={in_words(value)}" for name, value in _fields(thresholds).items() if value != getattr(PAPER, name)
    )
