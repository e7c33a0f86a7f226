"""The spec that a stored run carries, whichever kind of run it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from tepa_core.experiment.facts import FACT_STREAM, FactSpec
from tepa_core.experiment.spec import RunSpec

#: What a simulated run was made from.
Spec: TypeAlias = RunSpec | FactSpec


def spec_from_dict(content: Mapping[str, Any]) -> Spec:
    """Read back the spec of a stored simulation, by its stream.

    Parameters
    ----------
    content
        What ``as_dict`` of the spec gave.

    Raises
    ------
    ValueError
        If it names something that this version does not know.
    """
    return FactSpec.from_dict(content) if content["stream"] == FACT_STREAM else RunSpec.from_dict(content)
