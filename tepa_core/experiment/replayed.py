"""One method on one seed once more, with what people decided: the agent itself acts differently from then on."""

from __future__ import annotations

from collections.abc import Sequence

from tepa_core.experiment.play import Override, play
from tepa_core.experiment.run import PlayedTables, played_tables, setting
from tepa_core.experiment.spec import RunSpec
from tepa_core.lifecycle import Verdict
from tepa_core.methods import METHODS


def replay_seed(
    spec: RunSpec, method: str, seed: int, decided: Sequence[tuple[int, str, str, Verdict]] = ()
) -> PlayedTables:
    """Play one seed of a run again, on the draws that it had.

    Parameters
    ----------
    spec, method, seed
        What is played.
    decided
        Decisions as (task, key, value, verdict), in the order in which they were taken; each takes effect after the
        evidence of its task.

    Returns
    -------
    PlayedTables
        Without decisions exactly what `tepa_core.experiment.run` gave.

    Raises
    ------
    ValueError
        If the method has no lifecycle, or a decision names a key or value that the stream has not.
    """
    stream = spec.stream_spec.make(seed)
    if not METHODS[method].lifecycle:
        raise ValueError(f"{method} has no precedents that could be decided on")
    for _, key, value, _ in decided:
        if key not in stream.keys or value not in stream.values:
            raise ValueError(f"the stream {spec.stream} has no value {value!r} of a key {key!r}")
    overrides = [
        Override(t, stream.keys.index(key), stream.values.index(value), verdict) for t, key, value, verdict in decided
    ]
    return played_tables(spec, method, stream, play(stream, METHODS[method].make(setting(spec, stream)), overrides))
