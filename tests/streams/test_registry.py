"""What a stream says of itself before any of it is drawn."""

from __future__ import annotations

import pytest

from tepa_core.experiment import RunSpec
from tepa_core.streams import STREAMS, make_spec

SMALL = {"tasks_per_phase": 3}


@pytest.mark.parametrize("stream", STREAMS)
def test_names_and_size_are_known_before_a_seed_is_drawn(stream: str) -> None:
    spec = make_spec(stream, SMALL)
    for seed in (0, 7):
        drawn = spec.make(seed)
        assert (spec.tasks, spec.keys, spec.values) == (len(drawn), drawn.keys, drawn.values)
    assert spec.tasks == 12


@pytest.mark.parametrize(
    ("stream", "name", "most"),
    [
        *((stream, "tasks_per_phase", 100_000) for stream in STREAMS),
        ("preference", "values_per_slot", 26),
        ("preference", "profile_supports", 10_000),
    ],
)
def test_a_stream_that_would_fill_the_memory_is_refused(stream: str, name: str, most: int) -> None:
    make_spec(stream, {name: most})
    for value in (most + 1, 10**12):
        with pytest.raises(ValueError, match=rf"^{name} must be at most {most:,}, not {value}$"):
            make_spec(stream, {name: value})


def test_seeds_fit_the_tables() -> None:
    assert RunSpec.build("controlled", seeds=2, first_seed=2**31 - 2).first_seed == 2**31 - 2
    with pytest.raises(ValueError, match=r"^first_seed must be at most 2,147,483,646, not 2147483647$"):
        RunSpec.build("controlled", seeds=2, first_seed=2**31 - 1)
