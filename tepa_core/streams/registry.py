"""The streams by their ids, and their parameters from names and numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

from tepa_core.streams.controlled import ControlledSpec
from tepa_core.streams.executable import ExecutableSpec
from tepa_core.streams.preference import PreferenceSpec
from tepa_core.streams.stream import Stream


class StreamSpec(Protocol):
    """Parameters of one kind of stream: a frozen dataclass of numbers that can draw any seed.

    ``fallback`` is how tepa acts on it without an Active precedent, unless a run says otherwise. ``asserts``: evidence
    states which value is right, instead of being the outcome of what was done.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    fallback: ClassVar[str]
    asserts: ClassVar[bool]

    @property
    def tasks(self) -> int:
        """How many tasks a seed has."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the conflict keys of every seed."""

    @property
    def values(self) -> tuple[str, ...]:
        """Names of the values of every seed."""

    def make(self, seed: int) -> Stream:
        """Draw one seed."""


STREAMS: Mapping[str, type[StreamSpec]] = MappingProxyType(
    {spec.id: spec for spec in (ControlledSpec, ExecutableSpec, PreferenceSpec)}
)


def make_spec(stream: str, world: Mapping[str, float]) -> StreamSpec:
    """Build the parameters of a stream.

    Raises
    ------
    ValueError
        If the stream or a parameter is unknown, or a parameter is out of range; the message lists what there is.
    """
    if stream not in STREAMS:
        raise ValueError(f"{stream} is no stream; the streams are {', '.join(STREAMS)}")
    make: Callable[..., StreamSpec] = STREAMS[stream]
    parameters: Any = STREAMS[stream]
    kinds: dict[str, Any] = {field.name: type(field.default) for field in dataclasses.fields(parameters)}
    values: dict[str, float | int] = {}
    for name, value in world.items():
        if name not in kinds:
            raise ValueError(f"{name} is no parameter of {stream}; its parameters are {', '.join(kinds)}")
        if kinds[name] is int and not float(value).is_integer():
            raise ValueError(f"{name} must be a whole number, not {value}")
        values[name] = kinds[name](value)
    return make(**values)
