"""Streams: what happens at each task, drawn up front, so that all methods meet identical draws."""

from tepa_core.streams.controlled import ControlledSpec
from tepa_core.streams.registry import STREAMS, StreamSpec, make_spec
from tepa_core.streams.stream import Stream

__all__ = ["STREAMS", "ControlledSpec", "Stream", "StreamSpec", "make_spec"]
