"""Streams: what happens at each task, drawn up front, so that all methods meet identical draws."""

from tepa_core.streams.controlled import ControlledSpec
from tepa_core.streams.executable import ExecutableSpec
from tepa_core.streams.fact_file import FactFile, FactFileError, read_fact_file
from tepa_core.streams.preference import PreferenceSpec
from tepa_core.streams.registry import STREAMS, StreamSpec, make_spec
from tepa_core.streams.stream import PHASES, Stream

__all__ = [
    "PHASES",
    "STREAMS",
    "ControlledSpec",
    "ExecutableSpec",
    "FactFile",
    "FactFileError",
    "PreferenceSpec",
    "Stream",
    "StreamSpec",
    "make_spec",
    "read_fact_file",
]
