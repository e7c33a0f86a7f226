from __future__ import annotations

import pandas as pd
import pytest

from tepa_core.figures.reproduction import PAPER, beside_reported, noise_curves, tally_bars
from tepa_core.figures.theme import METHOD_STYLE

NAN = float("nan")


@pytest.fixture
def rows() -> pd.DataFrame:
    # Two runs taking turns, one number not measured, one without a reported number.
    return pd.DataFrame(
        [
            ("controlled", "TEPA", "tepa", 0.952, 0.950, 0.954, 0.950),
            ("executable", "TEPA", "tepa", NAN, NAN, NAN, 0.950),
            ("controlled", "no memory", "no_memory", 0.298, 0.280, 0.317, 0.309),
            ("executable", "<b>own</b>", "mine", 0.5, 0.4, 0.6, NAN),
        ],
        columns=["group", "label", "method", "ours", "lo", "hi", "reported"],
    )


def trace(fig, name):
    (found,) = [one for one in fig.data if one.name == name]
    return found


def test_rows_stand_under_their_group_with_both_numbers(rows):
    fig = beside_reported(rows, x_title="Success (rate)")
    assert list(fig.layout.yaxis.ticktext) == [
        "<b>controlled</b>",
        "TEPA",
        "no memory",
        "<b>executable</b>",
        "TEPA",
        "&lt;b&gt;own&lt;/b&gt;",
    ]
    ours, paper = trace(fig, "this build, with interval"), trace(fig, PAPER)
    at = dict(zip(map(tuple, ours.customdata), ours.y, strict=True))
    assert at == {
        ("controlled", "TEPA"): 1,
        ("executable", "TEPA"): 4,
        ("controlled", "no memory"): 2,
        ("executable", "<b>own</b>"): 5,
    }
    assert list(paper.y) == list(ours.y)
    assert paper.x[:3].tolist() == [0.950, 0.950, 0.309]
    assert paper.marker.symbol == "diamond-open"
    assert ours.marker.color[0] == METHOD_STYLE["tepa"].color
    assert "not measured" in ours.hovertext[1]
    assert "gives no number" in ours.hovertext[3]
    assert fig.layout.xaxis.title.text == "Success (rate)"


def test_intervals_of_both_sides_are_drawn_apart(rows):
    fig = beside_reported(rows.assign(reported_lo=0.9, reported_hi=0.98), x_title="Difference", zero_line=True)
    spans = trace(fig, "the paper's interval")
    assert spans.x[:2] == (0.9, 0.98)
    assert spans.y[0] == pytest.approx(1.24)
    assert trace(fig, PAPER).y[0] == pytest.approx(1.24)
    assert [shape.name for shape in fig.layout.shapes if shape.name] == ["zero"]


def test_a_lollipop_has_stems_from_zero_and_the_whole_range(rows):
    fig = beside_reported(rows, x_title="Success (rate)", stems=True, whole=True)
    assert trace(fig, "stem").x[:2] == (0, 0.952)
    assert list(fig.layout.xaxis.range) == [-0.03, 1.04]


def test_words_say_both_numbers_and_the_largest_distance(rows):
    meta = beside_reported(rows, x_title="Success").layout.meta
    assert "controlled, TEPA: 0.952, paper 0.950." in meta["alt"]
    assert "executable, TEPA: not measured, paper 0.950." in meta["alt"]
    assert "executable, <b>own</b>: 0.500, paper no number." in meta["alt"]
    # |0.298 - 0.309| = 0.011 is larger than 0.002.
    assert "Largest distance: no memory (controlled), 0.298 against 0.309." in meta["caption"]
    same = beside_reported(rows.assign(reported=rows["ours"]), x_title="Success")
    assert "They agree in every row." in same.layout.meta["caption"]
    unprinted = beside_reported(rows.assign(reported=NAN), x_title="Success")
    assert "without printing its numbers" in unprinted.layout.meta["caption"]
    assert trace(unprinted, PAPER).showlegend is False
    none = beside_reported(rows.assign(ours=NAN), x_title="Success")
    assert "Nothing of it is measured yet" in none.layout.meta["caption"]


@pytest.fixture
def noise() -> pd.DataFrame:
    return pd.DataFrame(
        [
            ("tepa", 20, 0.796, 0.784, 0.808, 0.777),
            ("tepa", 0, 0.952, 0.950, 0.954, 0.950),
            ("no_memory", 0, 0.298, 0.280, 0.317, 0.309),
            ("no_memory", 20, 0.299, 0.280, 0.317, 0.297),
        ],
        columns=["method", "percent", "ours", "lo", "hi", "reported"],
    )


def test_noise_curves_run_from_no_noise_to_most(noise):
    fig = noise_curves(noise)
    tepa = trace(fig, "TEPA")
    assert list(tepa.x) == [0, 20]
    assert list(tepa.y) == [0.952, 0.796]
    assert tepa.error_y.array == pytest.approx([0.002, 0.012])
    assert list(trace(fig, "TEPA, the paper").y) == [0.950, 0.777]
    assert "TEPA falls from 0.952 to 0.796; TEPA is best there." in fig.layout.meta["caption"]
    assert "0 % 0.952 (paper 0.950)" in fig.layout.meta["alt"]
    unmade = noise_curves(noise.assign(ours=NAN, lo=NAN, hi=NAN))
    assert "not made yet" in unmade.layout.meta["caption"]


def test_tally_bars_split_each_table_in_three():
    tally = pd.DataFrame({"table": ["Drift", "Cost"], "reported": [18, 6], "measured": [18, 2], "within": [16, 1]})
    fig = tally_bars(tally)
    assert {bar.name: list(bar.x) for bar in fig.data} == {
        "within": [16, 1],
        "outside": [2, 1],
        "not measured": [0, 4],
    }
    patterns = [bar.marker.pattern.shape for bar in fig.data]
    assert len(set(patterns)) == 3
    assert list(fig.layout.yaxis.ticktext) == ["Drift: 16 of 18", "Cost: 1 of 2"]
    assert "Cost: 1 of 2 measured are within, 4 not measured." in fig.layout.meta["alt"]
    assert "Throughout" not in fig.layout.meta["caption"]
    assert tally_bars(tally.assign(measured=[18, 0], within=[16, 0])).layout.yaxis.ticktext[1] == "Cost: open"
    whole = tally_bars(tally.assign(measured=[18, 6], within=[18, 5]))
    assert "Throughout: Drift." in whole.layout.meta["caption"]


@pytest.mark.parametrize(
    ("draw", "column"),
    [
        (lambda frame: beside_reported(frame, x_title="x"), "reported"),
        (noise_curves, "percent"),
        (tally_bars, "within"),
    ],
)
def test_a_missing_column_is_named(draw, column):
    with pytest.raises(ValueError, match=column):
        draw(pd.DataFrame({"table": []}))
