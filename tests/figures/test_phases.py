from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tepa_core.figures.phases import dot_interval, forest, heatmap, method_order, mpi_bars
from tepa_core.figures.theme import METHOD_STYLE

PHASES = ["stable", "light", "reversal", "return"]
# Success in reversal as the paper's Table of the controlled stream has it; the other phases are made up.
SUCCESS = {
    "append_only": [0.99, 0.97, 0.210, 0.90],
    "no_memory": [0.89, 0.88, 0.309, 0.88],
    "tepa": [0.99, 0.97, 0.950, 0.93],
    "reactive_forgetting": [0.97, 0.95, 0.796, 0.91],
}


@pytest.fixture
def summary() -> pd.DataFrame:
    rows = [
        {"method": method, "phase": phase, "mean": mean, "lo": mean - 0.02, "hi": mean + 0.01}
        for method, means in SUCCESS.items()
        for phase, mean in zip(PHASES, means, strict=True)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def mpi() -> pd.DataFrame:
    return pd.DataFrame(
        [
            ("no_memory", "stable", 0.0, 0.0, 0.0),
            ("append_only", "stable", -0.11, -0.14, -0.09),
            ("tepa", "stable", -0.12, -0.15, -0.10),
            ("no_memory", "reversal", 0.0, 0.0, 0.0),
            ("append_only", "reversal", 0.318, 0.28, 0.35),
            ("tepa", "reversal", -2.07, -2.2, -1.95),
        ],
        columns=["method", "phase", "mpi", "lo", "hi"],
    )


@pytest.fixture
def comparisons() -> pd.DataFrame:
    return pd.DataFrame(
        [
            ("tepa", "append_only", "overall", 0.167, 0.162, 0.172, 0.0003, 9.68),
            ("no_memory", "append_only", "reversal", 0.098, 0.085, 0.112, 0.0003, 2.1),
            ("tepa_full", "no_memory", "overall", 0.002, -0.011, 0.014, 1.0, 0.05),
        ],
        columns=["a", "b", "scope", "diff", "lo", "hi", "p_holm", "dz"],
    )


def dots(fig, phase):
    (trace,) = [trace for trace in fig.data if trace.name == phase]
    return trace


def test_methods_are_ordered_by_reversal_success(summary):
    assert method_order(summary) == ["tepa", "reactive_forgetting", "no_memory", "append_only"]
    assert method_order(summary, phase="stable")[0] == "tepa"
    assert method_order(summary, phase="stable")[-1] == "no_memory"


def test_without_the_phase_the_overall_mean_orders(summary):
    # Means over the three phases that are left: 0.963, 0.943, 0.953, 0.883.
    assert method_order(summary[summary["phase"] != "reversal"]) == [
        "tepa",
        "append_only",
        "reactive_forgetting",
        "no_memory",
    ]


def test_dot_rows_stand_in_order_with_the_best_on_top(summary):
    fig = dot_interval(summary)
    assert list(fig.layout.yaxis.ticktext) == ["TEPA", "reactive<br>forgetting", "no memory", "append-only"]
    low, high = fig.layout.yaxis.range
    assert low > high


def test_dots_stand_at_the_means_in_a_column_per_phase(summary):
    fig = dot_interval(summary)
    for column, phase in enumerate(PHASES, start=1):
        trace = dots(fig, phase)
        assert trace.xaxis == ("x" if column == 1 else f"x{column}")
        at = dict(zip((method for method, _ in trace.customdata), zip(trace.x, trace.y, strict=True), strict=True))
        assert at["tepa"] == (SUCCESS["tepa"][column - 1], 0)
        assert at["append_only"] == (SUCCESS["append_only"][column - 1], 3)


def test_intervals_are_segments_from_lo_to_hi(summary):
    (segments,) = [trace for trace in dot_interval(summary).data if trace.name == "reversal, interval"]
    assert segments.x[:3] == (0.210 - 0.02, 0.210 + 0.01, None)
    assert segments.y[:3] == (3, 3, None)


def test_left_of_no_memory_is_hollow(summary):
    fig = dot_interval(summary)
    hollow = {
        (method, phase)
        for name in PHASES
        for (method, phase), symbol in zip(dots(fig, name).customdata, dots(fig, name).marker.symbol, strict=True)
        if symbol == "circle-open"
    }
    assert hollow == {("append_only", "reversal")}
    hover = dict(zip(dots(fig, "reversal").customdata[:, 0], dots(fig, "reversal").hovertext, strict=True))
    assert "worse than no memory" in hover["append_only"]
    assert "worse than no memory" not in hover["tepa"]


def test_no_memory_is_a_line_through_each_column_and_reversal_is_set_off(summary):
    fig = dot_interval(summary)
    lines = {shape.xref: shape.x0 for shape in fig.layout.shapes if shape.name == "no memory"}
    assert lines == {"x": 0.89, "x2": 0.88, "x3": 0.309, "x4": 0.88}
    assert [shape.xref for shape in fig.layout.shapes if shape.name == "highlighted phase"] == ["x3 domain"]
    titles = [note.text for note in fig.layout.annotations]
    assert titles[:4] == ["stable", "light", "<b>reversal</b>", "return"]
    assert "Success rate (95% interval)" in titles


def test_dots_without_a_baseline_have_no_reference(summary):
    fig = dot_interval(summary[summary["method"] != "no_memory"])
    assert not [shape for shape in fig.layout.shapes if shape.name == "no memory"]
    assert set(dots(fig, "reversal").marker.symbol) == {"circle"}


def test_dot_texts(summary):
    meta = dot_interval(summary).layout.meta
    assert "In reversal, 1 of 3 methods is there: append-only." in meta["caption"]
    assert meta["alt"].endswith(
        "In reversal, best first: TEPA 0.950, reactive forgetting 0.796, no memory 0.309, append-only 0.210."
    )


def test_heatmap_cells_stand_under_their_phase(summary):
    fig = heatmap(summary)
    (cells,) = fig.data
    np.testing.assert_allclose(
        cells.z, [SUCCESS[method] for method in ("tepa", "reactive_forgetting", "no_memory", "append_only")]
    )
    assert list(fig.layout.xaxis.ticktext) == PHASES
    assert cells.texttemplate == "%{z:.3f}"
    assert (cells.zmin, cells.zmax) == (0, 1)
    assert fig.layout.xaxis.title.text == "Phase (success rate, 0 to 1)"
    assert "success 0.950 [0.930, 0.960]" in cells.hovertext[0][2]


def test_heatmap_leaves_out_what_was_not_run(summary):
    fig = heatmap(summary.drop(index=2))
    assert np.isnan(np.asarray(fig.data[0].z, dtype=float)).sum() == 1
    assert "not run" in str(fig.data[0].hovertext)


def test_heatmap_caption_names_the_weakest_cell(summary):
    caption = heatmap(summary).layout.meta["caption"]
    assert "Lowest: append-only in reversal (0.210)." in caption
    assert "Best in its worst phase: TEPA (0.930)." in caption


def test_mpi_bars_diverge_from_zero_without_the_baseline(mpi):
    (bars,) = mpi_bars(mpi).data
    assert {tuple(pair): x for pair, x in zip(bars.customdata, bars.x, strict=True)} == {
        ("append_only", "stable"): -0.11,
        ("tepa", "stable"): -0.12,
        ("append_only", "reversal"): 0.318,
        ("tepa", "reversal"): -2.07,
    }
    assert bars.orientation == "h"
    np.testing.assert_allclose(bars.error_x.array, [0.02, 0.02, 0.032, 0.12])
    np.testing.assert_allclose(bars.error_x.arrayminus, [0.03, 0.03, 0.038, 0.13])


def test_mpi_rows_are_grouped_by_phase_and_name_the_number(mpi):
    fig = mpi_bars(mpi)
    assert list(fig.layout.yaxis.ticktext) == [
        "<b>stable</b>",
        "TEPA  −0.12",
        "append-only  −0.11",
        "<b>reversal</b>",
        "TEPA  −2.07",
        "append-only  +0.32",
    ]
    assert list(fig.data[0].y) == [2, 1, 5, 4]


def test_harm_is_named_hatched_and_shaded(mpi):
    fig = mpi_bars(mpi)
    assert list(fig.data[0].marker.pattern.shape) == ["", "", "/", ""]
    assert [note.text for note in fig.layout.annotations] == ["worse than no memory →"]
    (zone,) = [shape for shape in fig.layout.shapes if shape.name == "worse than no memory"]
    assert zone.x0 == 0 < 0.35 < zone.x1
    assert fig.layout.xaxis.range[0] < -2.2
    assert "MPI" in fig.layout.xaxis.title.text


def test_mpi_texts(mpi):
    meta = mpi_bars(mpi).layout.meta
    assert "Harm beyond the interval: append-only in reversal (+0.32)." in meta["caption"]
    assert "reversal: from −2.07 (TEPA) to +0.32 (append-only)." in meta["alt"]


def test_undefined_mpi_is_said_not_drawn_as_zero(mpi):
    mpi.loc[mpi["phase"] == "reversal", ["mpi", "lo", "hi"]] = np.nan
    fig = mpi_bars(mpi)
    assert np.isnan(fig.data[0].x[2:]).all()
    assert "append-only  undefined" in fig.layout.yaxis.ticktext
    assert "Undefined in reversal" in fig.layout.meta["caption"]
    assert "No method does harm beyond its interval." in fig.layout.meta["caption"]


def test_forest_rows_in_order_with_sign_and_p(comparisons):
    fig = forest(comparisons)
    points = fig.data[1]
    np.testing.assert_allclose(points.x, [0.167, 0.098, 0.002])
    assert list(points.y) == [0, 1, 2]
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]
    assert list(points.text) == ["+0.167, p < .001", "+0.098, p < .001", "+0.002, p = 1.000"]
    assert list(points.marker.symbol) == ["diamond", "diamond", "diamond-open"]
    assert points.marker.color[0] == METHOD_STYLE["tepa"].color
    assert fig.layout.yaxis.ticktext[0] == "TEPA − append-only<br><i>overall</i>"
    assert "Difference in success rate" in fig.layout.xaxis.title.text


def test_forest_interval_zero_line_and_range(comparisons):
    fig = forest(comparisons)
    assert fig.data[0].x[6:8] == (-0.011, 0.014)
    assert [(shape.x0, shape.x1) for shape in fig.layout.shapes] == [(0, 0)]
    low, high = fig.layout.xaxis.range
    assert low < -0.011
    assert high > 0.172


def test_forest_texts(comparisons):
    meta = forest(comparisons).layout.meta
    assert "2 of 3 differences" in meta["caption"]
    assert "TEPA minus append-only, overall: +0.167 [+0.162, +0.172], p < .001." in meta["alt"]
    assert "TEPA-Full minus no memory, overall: +0.002 [−0.011, +0.014], p = 1.000." in meta["alt"]


@pytest.mark.parametrize("figure", [dot_interval, heatmap])
@pytest.mark.parametrize("column", ["method", "phase", "mean", "lo", "hi"])
def test_a_missing_summary_column_is_named(summary, figure, column):
    with pytest.raises(ValueError, match=f"needs the columns {column}\\."):
        figure(summary.drop(columns=column))


@pytest.mark.parametrize("column", ["method", "phase", "mpi", "lo", "hi"])
def test_a_missing_mpi_column_is_named(mpi, column):
    with pytest.raises(ValueError, match=f"needs the columns {column}\\."):
        mpi_bars(mpi.drop(columns=column))


@pytest.mark.parametrize("column", ["a", "b", "scope", "diff", "lo", "hi", "p_holm", "dz"])
def test_a_missing_comparison_column_is_named(comparisons, column):
    with pytest.raises(ValueError, match=f"needs the columns {column}\\."):
        forest(comparisons.drop(columns=column))


def test_empty_tables_do_not_crash(summary, mpi, comparisons):
    for fig in (dot_interval(summary.iloc[:0]), heatmap(summary.iloc[:0])):
        assert fig.layout.meta["caption"]
    assert "No method does harm" in mpi_bars(mpi.iloc[:0]).layout.meta["caption"]
    assert "0 of 0" in forest(comparisons.iloc[:0]).layout.meta["caption"]


def test_names_from_files_are_escaped(summary, comparisons):
    loud = summary.replace({"method": {"tepa": "<b>x</b>"}, "phase": {"light": "<i>l</i>"}})
    text = dot_interval(loud).to_json() + heatmap(loud).to_json()
    assert "&lt;b&gt;x" in text.replace("\\u003c", "<")
    assert "<i>l</i>" not in [note.text for note in dot_interval(loud).layout.annotations]
    assert "&lt;u&gt;" in forest(comparisons.assign(scope="<u>")).layout.yaxis.ticktext[0]
