"""Figures: tables in, plotly figures out, one set of colours for all of them."""

from tepa_core.figures import theme
from tepa_core.figures.agreement import agreement
from tepa_core.figures.curves import memory_size, success_curve
from tepa_core.figures.facts import answered, attribution_bars
from tepa_core.figures.lifecycle import RETRIEVED, LifecycleData, lifecycle, line_points, values_drawn
from tepa_core.figures.phases import dot_interval, forest, heatmap, mpi_bars
from tepa_core.figures.revocations import revocations_by_month

__all__ = [
    "RETRIEVED",
    "LifecycleData",
    "agreement",
    "answered",
    "attribution_bars",
    "dot_interval",
    "forest",
    "heatmap",
    "lifecycle",
    "line_points",
    "memory_size",
    "mpi_bars",
    "revocations_by_month",
    "success_curve",
    "theme",
    "values_drawn",
]
