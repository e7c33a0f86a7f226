from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tepa_core.streams import Stream


def stream(**change: Any) -> Stream:
    """Three tasks, two keys, two values."""
    parts: dict[str, Any] = {
        "seed": 0,
        "phase_names": ("before", "after"),
        "keys": ("k", "l"),
        "values": ("a", "b"),
        "phase": np.array([0, 0, 1]),
        "key": np.array([0, 1, 0]),
        "base_action": np.array([0, 0, 1]),
        "follows": np.array([True, True, False]),
        "outcome": np.array([[True, False], [True, True], [False, True]]),
        "truth": np.array([[0, 1], [0, 1], [1, 1]]),
        "asserted": None,
        "prior_key": np.empty(0, np.int64),
        "prior_value": np.empty(0, np.int64),
    }
    return Stream(**(parts | change))


def test_length_and_boundaries() -> None:
    assert len(stream()) == 3
    assert stream().boundaries.tolist() == [2]
    assert stream(phase=np.array([1, 0, 1])).boundaries.tolist() == [1, 2]
    assert stream(phase=np.array([1, 1, 1])).boundaries.tolist() == []


def test_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        stream().seed = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": np.array([0, 1])}, r"^key has shape \(2,\), expected \(3,\)$"),
        ({"base_action": np.zeros((3, 1), int)}, r"^base_action has shape \(3, 1\), expected \(3,\)$"),
        ({"follows": np.ones(4, bool)}, r"^follows has shape \(4,\), expected \(3,\)$"),
        ({"outcome": np.ones((3, 3), bool)}, r"^outcome has shape \(3, 3\), expected \(3, 2\)$"),
        ({"truth": np.zeros((3, 1), int)}, r"^truth has shape \(3, 1\), expected \(3, 2\)$"),
        ({"asserted": np.zeros(2, int)}, r"^asserted has shape \(2,\), expected \(3,\)$"),
        ({"prior_key": np.zeros(1, int)}, r"^prior_key and prior_value must have the same shape$"),
        ({"key": np.array([0, 2, 0])}, r"^key must lie in 0\.\.1$"),
        ({"key": np.array([0, -1, 0])}, r"^key must lie in 0\.\.1$"),
        ({"base_action": np.array([0, 0, 2])}, r"^base_action must lie in 0\.\.1$"),
        ({"phase": np.array([0, 0, 2])}, r"^phase must lie in 0\.\.1$"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stream(**change)
