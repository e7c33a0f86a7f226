"""The streams by their ids, and their parameters from names and numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Protocol

from tepa_core.streams.controlled import ControlledSpec
from tepa_core.streams.stream import Stream


class StreamSpec(Protocol):
    """Parameters of one kind of stream: a frozen dataclass of numbers that can draw any seed."""

    id: ClassVar[str]
    title: ClassVar[str]

    def make(self, seed: int) -> Stream:
        """Draw one seed."""


STREAMS: Mapping[str, type[StreamSpec]] = MappingProxyType({spec.id: spec for spec in (ControlledSpec,)})


def make_spec(stream: str, world: Mapping[str, float]) -> StreamSpec:
    """Build the parameters of a stream.

    Raises
    ------
    ValueError
        If the stream or a parameter is unknown, or a parameter is out of range; the message lists what there is.
    """
    if stream not in STREAMS:
        raise ValueError(f"{stream} is no stream; the streams are {', '.join(STREAMS)}")
    spec = STREAMS[stream]
    kinds = {field.name: type(field.default) for field in dataclasses.fields(spec)}  # type: ignore[arg-type]
    values: dict[str, float | int] = {}
    for name, value in world.items():
        if name not in kinds:
            raise ValueError(f"{name} is no parameter of {stream}; its parameters are {', '.join(kinds)}")
        if kinds[name] is int and not float(value).is_integer():
            raise ValueError(f"{name} must be a whole number, not {value}")
        values[name] = kinds[name](value)
    make: Callable[..., StreamSpec] = spec
    return make(**values)
