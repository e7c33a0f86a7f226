"""Statistics of runs and lifecycles: numpy arrays in, small results out, the random generator passed in."""

from tepa_core.stats.bootstrap import Interval, bootstrap_mean, bootstrap_means, resample_counts
from tepa_core.stats.compare import Comparison, cohens_dz, paired_comparison
from tepa_core.stats.credible import beta_band
from tepa_core.stats.exact_match import normalized, substring_exact_match
from tepa_core.stats.holm import holm
from tepa_core.stats.lifecycle_measures import (
    RevocationDelays,
    false_revocations,
    recovery_times,
    revocation_delays,
    stale_exposure_rate,
)
from tepa_core.stats.permutation import paired_permutation
from tepa_core.stats.pollution import mpi, mpi_interval
from tepa_core.stats.proportion import wilson_interval

__all__ = [
    "Comparison",
    "Interval",
    "RevocationDelays",
    "beta_band",
    "bootstrap_mean",
    "bootstrap_means",
    "cohens_dz",
    "false_revocations",
    "holm",
    "mpi",
    "mpi_interval",
    "normalized",
    "paired_comparison",
    "paired_permutation",
    "recovery_times",
    "resample_counts",
    "revocation_delays",
    "stale_exposure_rate",
    "substring_exact_match",
    "wilson_interval",
]
