from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tepa_core.experiment import RunSpec
from tepa_core.lifecycle import PRESETS, Thresholds
from tepa_core.methods import METHODS
from tepa_core.streams import ControlledSpec

CHANGES: list[dict[str, Any]] = [
    {},
    {"stream": "preference"},
    {"seeds": 49},
    {"first_seed": 1},
    {"methods": ["tepa"]},
    {"methods": ["tepa", "append_only"]},
    {"fallback": "base_policy"},
    {"world": {"light_flip": 0.1}},
    {"world": {"return_flip": 0.1}},
    {"world": {"tasks_per_phase": 20}},
    *(
        {"thresholds": Thresholds().changed({name: value})}
        for name, value in {
            "theta_prop": 2,
            "theta_rev": 0.31,
            "n_min": 6,
            "theta_rec": 0.35,
            "n_rec": 4,
            "theta_pro": 0.61,
            "alpha": 1.5,
            "beta": 1.5,
            "revokes": False,
        }.items()
    ),
]


def build(change: Mapping[str, Any]) -> RunSpec:
    return RunSpec.build(**({"stream": "controlled"} | dict(change)))


def test_ids_differ_when_anything_differs() -> None:
    ids = [build(change).run_id for change in CHANGES]
    assert len(set(ids)) == len(CHANGES)


def test_ids_say_what_they_can() -> None:
    id = build({"seeds": 7}).run_id
    stream, seeds, content = id.split("-")
    assert (stream, seeds) == ("controlled", "7x")
    assert len(content) == 8
    assert int(content, 16) >= 0


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_spec_is_data(change: Mapping[str, Any]) -> None:
    spec = build(change)
    written = json.loads(json.dumps(spec.as_dict()))
    assert RunSpec.from_dict(written) == spec
    assert RunSpec.from_dict(written).run_id == spec.run_id
    assert hash(RunSpec.from_dict(written)) == hash(spec)


@pytest.mark.parametrize(
    "change",
    [
        {"world": {"light_flip": 0.03, "key_noise": 0.0}},
        {"world": {"tasks_per_phase": 40.0}},
        {"world": {}},
        {"methods": list(reversed(METHODS))},
        {"methods": None},
        {"thresholds": Thresholds()},
        {"thresholds": Thresholds().changed({"theta_rev": "0.30", "n_rec": "3.0"})},
        {"fallback": "candidate", "seeds": 50, "first_seed": 0},
    ],
    ids=str,
)
def test_what_is_said_in_other_words_is_the_same_run(change: Mapping[str, Any]) -> None:
    full = {"methods": list(METHODS)} | dict(change) if change.get("methods", ()) is not None else {}
    assert build(full).run_id == build({"methods": list(METHODS)}).run_id


def test_the_order_of_names_does_not_matter() -> None:
    one = build({"world": {"light_flip": 0.1, "return_flip": 0.2}, "methods": ["append_only", "tepa"]})
    other = build({"world": {"return_flip": 0.2, "light_flip": 0.1}, "methods": ["tepa", "append_only"]})
    assert one == other
    assert one.run_id == other.run_id
    assert one.world == (("light_flip", 0.1), ("return_flip", 0.2))
    assert one.methods == ("tepa", "append_only")


def test_an_id_is_the_same_in_every_process() -> None:
    change = {"stream": "controlled", "seeds": 5, "methods": ["tepa"], "world": {"key_noise": 0.1}}
    code = (
        "import json, sys; from tepa_core.experiment import RunSpec; "
        "print(RunSpec.build(**json.loads(sys.argv[1])).run_id)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, json.dumps(change)],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == build(change).run_id


def test_defaults() -> None:
    spec = build({})
    assert (spec.seeds, spec.first_seed, spec.fallback, spec.world) == (50, 0, "candidate", ())
    assert spec.thresholds == PRESETS["default"]
    assert spec.stream_spec == ControlledSpec()
    assert build({"world": {"key_noise": 0.2}}).stream_spec == ControlledSpec(key_noise=0.2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.seeds = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stream": "weather"}, r"^weather is no stream; the streams are controlled"),
        ({"seeds": 0}, r"^seeds must be from 1 to 10000, not 0$"),
        ({"seeds": 10_001}, r"^seeds must be from 1 to 10000, not 10001$"),
        ({"first_seed": -1}, r"^first_seed must be at least 0, not -1$"),
        ({"methods": ["tepa", "magic"]}, r"^magic: no such method; the methods are tepa, "),
        ({"methods": []}, r"^choose at least one method of tepa, "),
        ({"fallback": "coin"}, r"^fallback must be candidate or base_policy, not 'coin'$"),
        ({"world": {"rain": 1}}, r"^rain is no parameter of controlled"),
        ({"world": {"light_flip": 2}}, r"^light_flip must be from 0 to 1, not 2"),
    ],
)
def test_what_cannot_be_run_is_refused(change: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(change)


@pytest.mark.parametrize(
    ("change", "command"),
    [
        ({"seeds": 5, "methods": ["tepa"]}, "run controlled --seeds 5 --methods tepa"),
        (
            {"first_seed": 100, "methods": ["append_only", "tepa"]},
            "run controlled --seeds 50 --first-seed 100 --methods tepa,append_only",
        ),
        (
            {"methods": ["tepa"], "thresholds": Thresholds(theta_rev=0.2, n_rec=5)},
            "run controlled --seeds 50 --methods tepa --set theta_rev=0.2 n_rec=5",
        ),
        (
            {"methods": ["tepa"], "world": {"light_flip": 0.1, "key_noise": 0.2}, "fallback": "base_policy"},
            "run controlled --seeds 50 --methods tepa --world key_noise=0.2 light_flip=0.1 --fallback base_policy",
        ),
    ],
)
def test_the_command_that_repeats_it(change: Mapping[str, Any], command: str) -> None:
    assert build(change).command() == f"python -m tepa_core {command}"
