from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from statsmodels.stats.multitest import multipletests

from tepa_core.stats.holm import holm

families = hnp.arrays(np.float64, st.integers(1, 15), elements=st.floats(0, 1))


def test_by_hand() -> None:
    # 0.01 * 4; 0.02 * 3; then 0.03 * 2 = 0.06 and 0.04 * 1 = 0.04, raised to 0.06 by the step before it.
    np.testing.assert_allclose(holm([0.04, 0.01, 0.03, 0.02]), [0.06, 0.04, 0.06, 0.06])


def test_is_capped_at_one() -> None:
    np.testing.assert_array_equal(holm([0.6, 0.9]), [1.0, 1.0])


def test_one_test_needs_no_correction_and_no_test_gives_none() -> None:
    np.testing.assert_array_equal(holm([0.03]), [0.03])
    assert holm([]).shape == (0,)


# The oracle takes some 20 ms a call.
@settings(max_examples=20, deadline=None)
@given(p=families)
def test_agrees_with_statsmodels(p: np.ndarray) -> None:
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=1e-12)


@given(p=families)
def test_never_lowers_a_p_value_and_keeps_their_order(p: np.ndarray) -> None:
    adjusted = holm(p)
    order = np.argsort(p)
    assert (adjusted >= p).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[order]) >= 0).all()


@given(p=families, data=st.data())
def test_does_not_depend_on_the_order_given(p: np.ndarray, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(p.size))))
    np.testing.assert_array_equal(holm(p[order]), holm(p)[order])


@given(p=families, data=st.data())
def test_a_smaller_p_value_raises_no_adjusted_value(p: np.ndarray, data: st.DataObject) -> None:
    i = data.draw(st.integers(0, p.size - 1))
    smaller = p.copy()
    smaller[i] *= 0.5
    assert (holm(smaller) <= holm(p)).all()


@pytest.mark.parametrize("bad", [np.nan, -0.01, 1.01, np.inf])
def test_refuses_what_is_no_p_value(bad: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.01, bad, 0.5])


def test_refuses_a_table() -> None:
    with pytest.raises(ValueError, match="one list"):
        holm([[0.1, 0.2]])


def test_leaves_its_input_alone() -> None:
    p = np.array([0.5, 0.01])
    holm(p)
    np.testing.assert_array_equal(p, [0.5, 0.01])
