from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tepa_core.figures.theme import METHOD_STYLE
from tepa_core.figures.theory import false_revocation, gain_and_bound


@pytest.fixture
def terms() -> pd.DataFrame:
    return pd.DataFrame(
        [
            ("stable", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
            ("reversal", 0.106, 0.092, 0.120, 0.760, 0.743, 0.776),
            ("return", 0.0, 0.0, 0.0, -0.051, -0.053, -0.049),
        ],
        columns=["phase", "bound", "bound_lo", "bound_hi", "gain", "gain_lo", "gain_hi"],
    )


@pytest.fixture
def curve() -> pd.DataFrame:
    n = [10, 100]
    bound = np.exp(-2 * np.array(n) * 0.01)
    frames = [
        pd.DataFrame({"judged": way, "n": n, "share": share, "lo": lo, "hi": hi, "bound": bound})
        for way, share, lo, hi in (
            ("once", [0.01, 0.0], [0.005, 0.0], [0.02, 0.01]),
            ("after every conflict", [0.05, 0.10], [0.04, 0.09], [0.06, 0.11]),
        )
    ]
    return pd.concat(frames, ignore_index=True)


def trace(fig, name):
    (found,) = [one for one in fig.data if one.name == name]
    return found


def test_gain_and_bound_stand_beside_each_other_per_phase(terms):
    fig = gain_and_bound(terms)
    gain, bound = trace(fig, "measured gain of TEPA"), trace(fig, "least gain, q · η · Δ")
    assert list(gain.x) == [0.0, 0.760, -0.051]
    assert list(bound.x) == [0.0, 0.106, 0.0]
    assert gain.marker.color == METHOD_STYLE["tepa"].color
    assert (gain.marker.symbol, bound.marker.symbol) == ("circle", "square-open")
    assert list(fig.layout.yaxis.ticktext) == ["stable", "reversal", "return"]
    assert "[0.743, 0.776]" in gain.hovertext[1]
    assert not [one for one in fig.data if one.name == "your setting"]


def test_a_setting_is_marked(terms):
    assert trace(gain_and_bound(terms, setting=0.3), "your setting").x == (0.3, 0.3)


def test_the_caption_says_where_the_bound_holds(terms):
    meta = gain_and_bound(terms).layout.meta
    assert meta["caption"].endswith("in stable and reversal, not in return.")
    assert "reversal: gain 0.760, bound 0.106." in meta["alt"]
    assert gain_and_bound(terms.iloc[:2]).layout.meta["caption"].endswith("in every phase.")


def test_the_bound_and_every_way_of_judging_are_drawn(curve):
    fig = false_revocation(curve)
    assert trace(fig, "bound, exp(−2nε²)").y.tolist() == pytest.approx([np.exp(-0.2), np.exp(-2)])
    assert list(trace(fig, "once").y) == [0.01, 0.0]
    assert list(trace(fig, "after every conflict, interval").y) == [0.06, 0.11, 0.09, 0.04]
    dashes = [one.line.dash for one in fig.data if one.mode and "interval" not in one.name]
    assert len(set(dashes)) == 3


def test_words_judge_the_first_way_alone(curve):
    meta = false_revocation(curve).layout.meta
    assert "stays under the bound at every n" in meta["caption"]
    assert "After 100 outcomes: bound 0.1353, simulated once 0.0000, after every conflict 0.1000." in meta["alt"]
    above = curve.assign(lo=curve["lo"].where(curve["n"] != 100, 0.2))
    assert "above the bound at n = 100" in false_revocation(above).layout.meta["caption"]


@pytest.mark.parametrize(("draw", "column"), [(gain_and_bound, "gain_lo"), (false_revocation, "share")])
def test_a_missing_column_is_named(draw, column):
    with pytest.raises(ValueError, match=column):
        draw(pd.DataFrame({"phase": []}))
