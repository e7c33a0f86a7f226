"""What the memory of a run exposed its agent to, phase by phase: the measured terms of P2."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from tepa_core.experiment.summary import REFERENCE, RESAMPLING_SEED
from tepa_core.stats.theory import ExposureTerms, exposure_terms

#: The method whose memory keeps superseded values.
APPEND: Final = "append_only"


def terms_by_phase(episodes: pd.DataFrame, revoking: str = "tepa", level: float = 0.95) -> dict[str, ExposureTerms]:
    """Measure q, eta, delta and the gain of revocation in every phase of a run.

    Parameters
    ----------
    episodes
        ``method``, ``seed``, ``t``, ``phase``, ``success``, ``followed``, ``exposed`` of `APPEND`, of ``revoking`` and
        of the agent without memory, on the same tasks. A task on a key without a known right value exposes to nothing.
    revoking
        The method that revokes.
    level
        Coverage of the intervals.

    Returns
    -------
    dict
        Phase -> terms, in the order of the phases.

    Raises
    ------
    ValueError
        If one of the three methods is missing; the message names it.
    """
    played = {method: part for method, part in episodes.groupby("method", observed=True)}
    missing = [method for method in (APPEND, revoking, REFERENCE) if method not in played]
    if missing:
        raise ValueError(
            f"the terms need the methods {APPEND}, {revoking} and {REFERENCE}; {', '.join(missing)} missing"
        )
    order = played[APPEND].groupby("phase", observed=True)["t"].min().sort_values().index
    terms = {}
    for phase in order:
        here = {method: part[part["phase"] == phase] for method, part in played.items()}
        append = here[APPEND]
        terms[str(phase)] = exposure_terms(
            _by_seed(append.assign(flag=append["exposed"].fillna(False)), "flag"),
            _by_seed(append.assign(flag=append["followed"].notna()), "flag"),
            _by_seed(append, "success"),
            _by_seed(here[revoking], "success"),
            _by_seed(here[REFERENCE], "success"),
            np.random.default_rng(RESAMPLING_SEED),
            level=level,
        )
    return terms


def _by_seed(tasks: pd.DataFrame, column: str) -> npt.NDArray[np.bool_]:
    return tasks.pivot(index="seed", columns="t", values=column).to_numpy(np.bool_)
