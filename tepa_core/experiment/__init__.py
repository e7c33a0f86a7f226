"""Experiments: a spec, the agent loop, and what a run says."""

from tepa_core.experiment.against import run_differences, same_draws
from tepa_core.experiment.answer_backends import AnswerError, Backend, ChatBackend
from tepa_core.experiment.compiled_play import Draws
from tepa_core.experiment.effect import Effect, EverySeed, decision_effect
from tepa_core.experiment.facts import ATTRIBUTIONS, FACT_METHODS, FACT_STREAM, FactResult, FactSpec, run_facts
from tepa_core.experiment.impact import log_counts, log_impact, run_impact
from tepa_core.experiment.measures import measures
from tepa_core.experiment.play import Override, Played, play
from tepa_core.experiment.replayed import replay_seed
from tepa_core.experiment.run import PlayedTables, Progress, RunResult, run, setting
from tepa_core.experiment.spec import RunSpec
from tepa_core.experiment.stored import Spec, spec_from_dict
from tepa_core.experiment.summary import (
    OVERALL,
    REFERENCE,
    curve_summary,
    measures_summary,
    paired_comparisons,
    pollution_summary,
    success_summary,
)
from tepa_core.experiment.sweep import METRICS, SETTINGS, SLIDERS, Grid, SweepResult, measure, one_dimensional, sweep

__all__ = [
    "ATTRIBUTIONS",
    "FACT_METHODS",
    "FACT_STREAM",
    "METRICS",
    "OVERALL",
    "REFERENCE",
    "SETTINGS",
    "SLIDERS",
    "AnswerError",
    "Backend",
    "ChatBackend",
    "Draws",
    "Effect",
    "EverySeed",
    "FactResult",
    "FactSpec",
    "Grid",
    "Override",
    "Played",
    "PlayedTables",
    "Progress",
    "RunResult",
    "RunSpec",
    "Spec",
    "SweepResult",
    "curve_summary",
    "decision_effect",
    "log_counts",
    "log_impact",
    "measure",
    "measures",
    "measures_summary",
    "one_dimensional",
    "paired_comparisons",
    "play",
    "pollution_summary",
    "replay_seed",
    "run",
    "run_differences",
    "run_facts",
    "run_impact",
    "same_draws",
    "setting",
    "spec_from_dict",
    "success_summary",
    "sweep",
]
