"""The board of sliders: what it is told, and what comes back when a slider is let go."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly
import streamlit as st

from tepa_core.experiment.around import Settings
from tepa_core.experiment.sweep import Grid
from tepa_core.figures.theme import method_label
from tepa_core.files import beside
from tepa_core.lifecycle import Thresholds
from tepa_core.store import RunInfo
from tepa_core.ui import boundary
from tepa_core.ui.text import plain_text
from tepa_core.ui.thresholds import sliders
from tepa_core.ui.thresholds.sliders import PAPER, Slider

KEY = "threshold_board"

#: Streamlit serves what stands here, and nothing else, below ``app/static``.
STATIC = Path(__file__).parents[3] / "static"


@dataclass(frozen=True, slots=True)
class Measure:
    """What a sweep measures, as a person reads it.

    Attributes
    ----------
    title
        Name with its unit.
    kind
        How a number is written: ``share``, ``index``, ``number`` or ``count``.
    less_is_better
        Whether small values are good; None where neither is.
    flat
        Differences up to this one count as none.
    span
        Most that the curves beside the sliders show, counted from the best value, so that an extreme setting does
        not press all others flat; None for everything.
    """

    title: str
    kind: str
    less_is_better: bool | None
    flat: float
    span: float | None = None


MEASURES: Mapping[str, Measure] = {
    "success": Measure("Success", "share", False, 0.005, 0.10),
    "mpi": Measure("Pollution index", "index", True, 0.02, 0.35),
    "false_revocations": Measure("Wrong revocations a seed", "number", True, 0.05),
    "revocation_delay": Measure("Revoking takes (tasks)", "number", True, 0.1),
    "stale_exposure": Measure("Outdated value retrieved", "share", True, 0.005),
}
LOG_MEASURES: Mapping[str, Measure] = {
    "revoked": Measure("Revoked at the end", "count", None, 0),
    "reactivations": Measure("Returns from the archive", "count", None, 0),
    "active": Measure("Active at the end", "count", None, 0),
    "revocations": Measure("Revocations in all", "count", None, 0),
}
TILES = ("success", "mpi", "false_revocations", "revocation_delay")
LOG_TILES = ("active", "revoked", "revocations", "reactivations")

_BOARD = st.components.v2.component(
    "tepa_threshold_board",
    **{
        kind: files("tepa_core.ui.thresholds").joinpath(f"board.{kind}").read_text("utf-8")
        for kind in ("html", "css", "js")
    },
    # Plotly puts its styles into the head of the page, where a shadow root would not see them.
    isolate_styles=False,
)


@dataclass(frozen=True, slots=True)
class Sweeps:
    """Everything that the sliders can reach without the server.

    Attributes
    ----------
    scopes
        Phases and ``overall``; of a log only ``overall``.
    metrics
        By slider and metric, shape (points, scopes).
    lo, hi
        By slider the band of ``success``, shape (points, scopes); empty for a log.
    """

    scopes: tuple[str, ...]
    metrics: Mapping[str, Mapping[str, npt.NDArray[np.float64]]]
    lo: Mapping[str, npt.NDArray[np.float64]]
    hi: Mapping[str, npt.NDArray[np.float64]]

    @classmethod
    def of(cls, found: Mapping[str, Settings]) -> Sweeps:
        """Return the sweeps of a simulation as the board takes them."""
        one = next(iter(found.values()))
        return cls(
            one.scopes,
            {name: part.metrics for name, part in found.items()},
            {name: part.lo for name, part in found.items()},
            {name: part.hi for name, part in found.items()},
        )

    def curve(self, slider: str, measure: str, scope: str) -> npt.NDArray[np.float64]:
        """Return one measure along one slider, shape (points,)."""
        return self.metrics[slider][measure][:, self.scopes.index(scope)]


def scale(values: npt.NDArray[np.float64], spec: Measure) -> tuple[float, float]:
    """Return the range in which values are drawn: the same for every slider, so that a flat curve looks flat."""
    values = values[np.isfinite(values)]
    if values.size == 0:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if spec.span is not None:
        low, high = (low, min(high, low + spec.span)) if spec.less_is_better else (max(low, high - spec.span), high)
    # Without any difference the lines would lie on the floor, as if they had nothing to show.
    least = 4 * spec.flat or 1.0
    return (low, high) if high - low >= least else (low - least / 2, high + least / 2)


def note(grid: Grid, curve: npt.NDArray[np.float64], measure: Measure) -> str:
    """Say in words what the curve beside a slider shows."""
    known = np.flatnonzero(np.isfinite(curve))
    if known.size == 0:
        return "Nothing to measure."
    points = [sliders.in_words(grid.values[i]) for i in known]
    values = curve[known]
    low, high = int(values.argmin()), int(values.argmax())
    apart = float(values[high] - values[low])
    if apart <= measure.flat:
        return f"Flat: at most {_apart(apart, measure)} apart." if apart > 0 else "Flat: makes no difference here."
    if measure.less_is_better is None:
        return f"{_alone(values[low], measure)} at {points[low]}, {_alone(values[high], measure)} at {points[high]}."
    best, worst = (low, high) if measure.less_is_better else (high, low)
    near = np.abs(values - values[best]) <= measure.flat
    start, stop = _longest(near)
    if near.all():
        plateau = "All"
    else:
        plateau = f"{points[start]} to {points[stop]}" if stop > start else points[start]
    return (
        f"{plateau}: within {_apart(measure.flat, measure)} of the best; worst {_alone(values[worst], measure)} "
        f"at {points[worst]}."
    )


def frontier(sweeps: Sweeps, most_never_revoked: float) -> list[tuple[float, float]]:
    """Return delay and wrong revocations over all tasks of the settings that no other beats in both, by rising delay.

    Settings that leave more outdated values active than ``most_never_revoked`` per seed are left out: what is never
    revoked has no delay.
    """
    delay, wrong, never = (
        np.concatenate([sweeps.curve(name, metric, sweeps.scopes[-1]) for name in sweeps.metrics])
        for metric in ("revocation_delay", "false_revocations", "never_revoked")
    )
    kept = np.isfinite(delay) & (never <= most_never_revoked)
    points = sorted(set(zip(delay[kept].tolist(), wrong[kept].tolist(), strict=True)))
    edge: list[tuple[float, float]] = []
    for x, y in points:
        if not edge or y < edge[-1][1]:
            edge.append((x, y))
    return edge


@dataclass(frozen=True, slots=True)
class Held:
    """The setting that the current one is held against, and what it comes to."""

    thresholds: Thresholds
    name: str
    short: str
    metrics: Mapping[str, Sequence[float]]
    lo: Sequence[float] = ()
    hi: Sequence[float] = ()


def content(
    info: RunInfo,
    current: Thresholds,
    pinned: Held,
    paper: Held,
    board: Sequence[tuple[Slider, Grid]],
    sweeps: Sweeps,
    view: View,
) -> dict[str, Any]:
    """Arrange everything that the board shows; no text in it is markup."""
    measures = LOG_MEASURES if info.is_log else MEASURES
    measure = measures[view.measure]
    curves = {slider.name: sweeps.curve(slider.name, view.measure, view.scope) for slider, _ in board}
    low, high = scale(np.concatenate(list(curves.values())), measure)
    told: dict[str, Any] = {
        "revision": view.revision,
        "library": view.library,
        "kind": "log" if info.is_log else "simulation",
        "method": method_label(view.method) if view.method else "",
        "chart": view.chart,
        "measure": view.measure,
        "measures": {name: {"title": one.title, "kind": one.kind} for name, one in measures.items()},
        "scope": view.scope,
        "scopes": list(sweeps.scopes),
        "scale": {"low": low, "high": high},
        "tiles": [
            {"metric": name, "title": measures[name].title, "kind": measures[name].kind}
            for name in (LOG_TILES if info.is_log else TILES)
        ],
        "values": {slider.name: slider.at(current) for slider, _ in board},
        "paper": {slider.name: slider.at(PAPER) for slider, _ in board},
        "paper_metrics": dict(paper.metrics),
        "pinned": {
            "name": pinned.name,
            "short": pinned.short,
            "values": {slider.name: slider.at(pinned.thresholds) for slider, _ in board},
            "metrics": dict(pinned.metrics),
            "lo": list(pinned.lo) or None,
            "hi": list(pinned.hi) or None,
        },
        "sliders": [
            {
                "name": slider.name,
                "label": slider.label,
                "help": slider.help,
                "grid": list(grid.values),
                "low": slider.low,
                "high": slider.high,
                "whole": slider.whole,
                "note": note(grid, curves[slider.name], measure),
            }
            for slider, grid in board
        ],
        "sweeps": {
            slider.name: {
                "metrics": {name: values.tolist() for name, values in sweeps.metrics[slider.name].items()},
                "lo": sweeps.lo[slider.name].tolist() if sweeps.lo else None,
                "hi": sweeps.hi[slider.name].tolist() if sweeps.hi else None,
            }
            for slider, _ in board
        },
        "reference": list(view.reference) or None,
        "surface": None if view.surface is None else _surface(view.surface, measure),
        "frontier": [] if info.is_log else frontier(sweeps, _never_revoked(paper)),
    }
    found: dict[str, Any] = _plain(told)
    return found


@dataclass(frozen=True, slots=True)
class View:
    """What of it is looked at.

    Attributes
    ----------
    method
        Whose thresholds they are; empty for a log.
    chart, measure, scope
        Chart beside the sliders, what the sliders' curves show, and in which phase.
    reference
        Success without memory by scope; empty where there is none.
    surface
        ``x``, ``y`` (names), ``xs``, ``ys`` (points) and ``z`` (rows of y) when that chart is shown.
    revision
        Number of the question that this answers.
    library
        Address of plotly.js.
    """

    method: str
    chart: str
    measure: str
    scope: str
    reference: Sequence[float] = ()
    surface: Mapping[str, Any] | None = None
    revision: int = 0
    library: str = ""


def mount(told: Mapping[str, Any], info: RunInfo) -> None:
    """Draw the board; when a slider is let go, the setting of the page follows."""
    _BOARD(key=KEY, data=dict(told), on_asked_change=lambda: take(info))


def asked_revision() -> int:
    """Return the number of the last question that the board asked; 0 before the first."""
    asked = st.session_state.get(KEY, {}).get("asked")
    return int(asked["revision"]) if isinstance(asked, Mapping) and isinstance(asked.get("revision"), int) else 0


@boundary.callback
def take(info: RunInfo) -> None:
    """Move the sliders of the page to where the board says that they stand; called when one is let go."""
    asked = st.session_state[KEY].asked
    # What a browser sends is no more to be trusted than a link.
    values = asked.get("values") if isinstance(asked, Mapping) else None
    if not isinstance(values, Mapping):
        return
    try:
        setting = sliders.with_values(info.thresholds, {str(name): str(value) for name, value in values.items()})
    except ValueError as error:
        st.toast(f"This setting cannot be: {plain_text(error, 200)}.", icon=":material/error:")
        return
    sliders.use(info, setting)


def served_library() -> str:
    """Put the installed plotly.js where Streamlit serves it; return its address on this server.

    Raises
    ------
    FileRefused, OSError
        If it cannot be written there.
    """
    source = files("plotly").joinpath("package_data", "plotly.min.js")
    target = STATIC / f"plotly-{plotly.__version__}.min.js"
    if not target.exists():
        STATIC.mkdir(exist_ok=True)
        # Complete or not there at all, also when two processes start at once.
        with beside(target, replace=True) as part, source.open("rb") as read, part.open("wb") as write:
            shutil.copyfileobj(read, write)
    base = str(st.get_option("server.baseUrlPath")).strip("/")
    return f"{f'/{base}' if base else ''}/app/static/{target.name}"


def _never_revoked(paper: Held) -> float:
    return float(paper.metrics["never_revoked"][-1]) + 0.05


def _surface(surface: Mapping[str, Any], measure: Measure) -> dict[str, Any]:
    low, high = scale(np.array(surface["z"], np.float64), measure)
    return {**surface, "low": low, "high": high}


def _longest(near: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return first and last index of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], near.astype(np.int8), [0]])))
    starts, stops = edges[::2], edges[1::2] - 1
    longest = int((stops - starts).argmax())
    return int(starts[longest]), int(stops[longest])


def _alone(value: float, measure: Measure) -> str:
    match measure.kind:
        case "share":
            return f"{100 * value:.1f} %"
        case "count":
            return f"{value:,.0f}"
        case _:
            return f"{value:.2f}".replace("-", "−")


def _apart(value: float, measure: Measure) -> str:
    match measure.kind:
        case "share":
            return f"{100 * value:.2g} points"
        case "count":
            return f"{value:,.0f}"
        case _:
            return f"{value:.2g}"


def _plain(told: Any) -> Any:
    """Return content as JSON can hold it: a number that is none becomes null."""
    match told:
        case Mapping():
            return {name: _plain(value) for name, value in told.items()}
        case list() | tuple():
            return [_plain(value) for value in told]
        case np.ndarray():
            return _plain(told.tolist())
        case float():
            return told if math.isfinite(told) else None
        case _:
            return told
