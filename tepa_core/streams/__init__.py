"""Streams: what happens at each task, drawn up front, so that all methods meet identical draws."""

from tepa_core.streams.controlled import ControlledSpec
from tepa_core.streams.executable import ExecutableSpec
from tepa_core.streams.preference import PreferenceSpec
from tepa_core.streams.registry import STREAMS, StreamSpec, make_spec
from tepa_core.streams.stream import Stream

__all__ = ["STREAMS", "ControlledSpec", "ExecutableSpec", "PreferenceSpec", "Stream", "StreamSpec", "make_spec"]
