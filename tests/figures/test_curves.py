from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tepa_core.figures.curves import memory_size, success_curve
from tepa_core.figures.theme import METHOD_STYLE

PHASES = pd.DataFrame({"phase": ["stable", "reversal"], "start": [0, 4], "end": [4, 8]})
MEANS = {
    "tepa": [1.0] * 8,
    "append_only": [1.0] * 4 + [0.2] * 4,
    "no_memory": [0.8] * 4 + [0.3] * 4,
    "sliding_window": [0.9] * 8,
    "conflict_aware_recency": [1.0] * 4 + [0.25] * 4,
}


@pytest.fixture
def curve() -> pd.DataFrame:
    rows = [
        {"method": method, "t": t, "mean": mean, "lo": mean - 0.05, "hi": mean + 0.05}
        for method, means in MEANS.items()
        for t, mean in enumerate(means)
    ]
    return pd.DataFrame(rows)


def named(fig, name):
    return [trace for trace in fig.data if trace.name == name]


def test_every_method_has_one_line_with_its_own_values(curve):
    fig = success_curve(curve, PHASES)
    for label, method in (("TEPA", "tepa"), ("append-only", "append_only"), ("sliding window", "sliding_window")):
        (line,) = named(fig, label)
        np.testing.assert_array_equal(line.x, range(8))
        np.testing.assert_allclose(line.y, MEANS[method])
        assert line.line.color == METHOD_STYLE[method].color


def test_bands_only_for_the_highlighted_and_around_the_line(curve):
    fig = success_curve(curve, PHASES)
    bands = [trace for trace in fig.data if trace.fill == "toself"]
    assert {band.name for band in bands} == {"TEPA, interval", "append-only, interval", "no memory, interval"}
    (band,) = named(fig, "append-only, interval")
    np.testing.assert_allclose(band.y, [1.05] * 4 + [0.25] * 4 + [0.15] * 4 + [0.95] * 4)


def test_highlighted_lines_are_stronger_and_tepa_lies_on_top(curve):
    fig = success_curve(curve, PHASES)
    lines = {trace.name: trace for trace in fig.data if trace.mode == "lines" and not trace.fill}
    assert lines["sliding window"].opacity < lines["append-only"].opacity == 1
    assert lines["sliding window"].line.width < lines["append-only"].line.width < lines["TEPA"].line.width
    assert list(lines)[-1] == "TEPA"
    assert lines["no memory"].line.dash == "dash"


def test_highlight_is_a_choice(curve):
    fig = success_curve(curve, PHASES, highlight=("sliding_window",))
    assert [trace.name for trace in fig.data if trace.fill == "toself"] == ["sliding window, interval"]
    assert named(fig, "sliding window, label")


def test_labels_at_the_line_ends_do_not_overlap_and_keep_order(curve):
    curve.loc[curve["t"] == 7, "mean"] = curve["method"].map({"tepa": 0.5, "append_only": 0.49, "no_memory": 0.48})
    fig = success_curve(curve, PHASES)
    labels = [trace for trace in fig.data if trace.mode == "text"]
    assert [label.text[0].strip() for label in labels] == ["TEPA", "no memory", "append-only"]
    y = {label.text[0].strip(): label.y[0] for label in labels}
    assert y["TEPA"] > y["append-only"] > y["no memory"]
    assert np.diff(sorted(y.values())).min() >= 0.05
    assert all(label.x[0] == 7 for label in labels)


def test_a_label_at_the_end_replaces_the_legend_entry(curve):
    fig = success_curve(curve, PHASES, highlight=("tepa", "conflict_aware_recency"))
    assert named(fig, "TEPA")[0].showlegend is False
    # Too long for the margin of a telephone.
    assert named(fig, "conflict-aware recency")[0].showlegend is True
    assert named(fig, "append-only")[0].showlegend is True
    assert [trace.text[0].strip() for trace in fig.data if trace.mode == "text"] == ["TEPA"]


def test_line_band_and_label_of_a_method_are_switched_together(curve):
    fig = success_curve(curve, PHASES)
    groups = {trace.legendgroup for trace in fig.data if trace.name.startswith("TEPA")}
    assert groups == {"tepa"}


def test_axis_titles_and_phases(curve):
    fig = success_curve(curve, PHASES, window=5)
    assert fig.layout.xaxis.title.text == "Task"
    assert fig.layout.yaxis.title.text == "Success rate (5-task average)"
    assert [note.text for note in fig.layout.annotations] == ["stable", "reversal"]
    assert [(shape.x0, shape.x1) for shape in fig.layout.shapes] == [(4, 8)]


def test_caption_says_where_memory_harms(curve):
    caption = success_curve(curve, PHASES).layout.meta["caption"]
    assert "append-only is below no memory in 50% of the tasks, by 0.10 at worst (task 4 in reversal)" in caption
    assert "TEPA" not in caption


def test_caption_says_when_nothing_harms(curve):
    fig = success_curve(curve, PHASES, highlight=("tepa", "no_memory"))
    assert "No highlighted method falls below no memory" in fig.layout.meta["caption"]


def test_alternative_text_gives_the_mean_of_each_phase(curve):
    alt = success_curve(curve, PHASES).layout.meta["alt"]
    assert "5 methods over 2 phases" in alt
    assert "append-only: stable 1.00 and reversal 0.20." in alt


@pytest.mark.parametrize("column", ["method", "t", "mean", "lo", "hi"])
@pytest.mark.parametrize("figure", [success_curve, memory_size])
def test_a_missing_column_is_named(curve, figure, column):
    with pytest.raises(ValueError, match=f"needs the columns {column}\\."):
        figure(curve.drop(columns=column), PHASES)


def test_a_missing_phase_column_is_named(curve):
    with pytest.raises(ValueError, match=r"needs the columns end\."):
        success_curve(curve, PHASES.drop(columns="end"))


def test_unknown_averages_leave_a_gap_not_a_zero(curve):
    curve.loc[curve["t"] < 2, ["mean", "lo", "hi"]] = np.nan
    fig = success_curve(curve, PHASES)
    assert np.isnan(named(fig, "TEPA")[0].y[:2]).all()
    assert min(named(fig, "TEPA, interval")[0].x) == 2


@pytest.mark.parametrize("figure", [success_curve, memory_size])
def test_an_empty_run_says_so(curve, figure):
    fig = figure(curve.iloc[:0], PHASES.iloc[:0])
    assert [note.text for note in fig.layout.annotations] == ["No tasks to show."]
    assert not fig.data


def test_no_phases_is_fine(curve):
    fig = success_curve(curve, PHASES.iloc[:0])
    assert not fig.layout.shapes
    assert len(named(fig, "TEPA")) == 1


def test_memory_size_counts_memories(curve):
    grown = curve.assign(mean=np.where(curve["method"] == "append_only", curve["t"] * 10.0, 2.0), lo=0.0, hi=75.0)
    fig = memory_size(grown, PHASES)
    assert fig.layout.yaxis.title.text == "Active memories (number)"
    assert fig.layout.yaxis.range[1] == pytest.approx(1.04 * 75)
    assert "At the end: TEPA 2.0, no memory 2.0, append-only 70.0." in fig.layout.meta["caption"]
    assert "append-only: stable 15.0 and reversal 55.0." in fig.layout.meta["alt"]


def test_a_method_of_ones_own_is_escaped(curve):
    fig = success_curve(curve.replace({"method": {"sliding_window": "<i>mine</i>"}}), PHASES)
    assert named(fig, "&lt;i&gt;mine&lt;/i&gt;")
