"""Experiments: a spec, the agent loop, and what a run says."""

from tepa_core.experiment.against import run_differences, same_draws
from tepa_core.experiment.answer_backends import AnswerError, Backend, ChatBackend
from tepa_core.experiment.facts import ATTRIBUTIONS, FACT_METHODS, FactResult, FactSpec, run_facts
from tepa_core.experiment.measures import measures
from tepa_core.experiment.play import Override, Played, play
from tepa_core.experiment.replayed import replay_seed
from tepa_core.experiment.run import PlayedTables, Progress, RunResult, run, setting
from tepa_core.experiment.spec import RunSpec
from tepa_core.experiment.summary import (
    OVERALL,
    REFERENCE,
    curve_summary,
    measures_summary,
    paired_comparisons,
    pollution_summary,
    success_summary,
)

__all__ = [
    "ATTRIBUTIONS",
    "FACT_METHODS",
    "OVERALL",
    "REFERENCE",
    "AnswerError",
    "Backend",
    "ChatBackend",
    "FactResult",
    "FactSpec",
    "Override",
    "Played",
    "PlayedTables",
    "Progress",
    "RunResult",
    "RunSpec",
    "curve_summary",
    "measures",
    "measures_summary",
    "paired_comparisons",
    "play",
    "pollution_summary",
    "replay_seed",
    "run",
    "run_differences",
    "run_facts",
    "same_draws",
    "setting",
    "success_summary",
]
