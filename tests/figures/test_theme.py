from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from tepa_core.figures import theme

PHASES = pd.DataFrame({"phase": ["stable", "light", "reversal"], "start": [0, 40, 80], "end": [40, 80, 120]})

METHODS = {
    "no_memory",
    "append_only",
    "temporal_recency",
    "semantic_retrieval",
    "sliding_window",
    "reactive_forgetting",
    "last_write_wins",
    "lww_validated",
    "conflict_aware_recency",
    "oracle_reset",
    "tepa",
    "tepa_norev",
    "tepa_full",
    "win_stay_lose_shift",
}


def test_every_method_has_a_style_and_a_label():
    assert set(theme.METHOD_STYLE) == METHODS
    assert set(theme.METHOD_LABEL) == METHODS
    assert len(set(theme.METHOD_LABEL.values())) == len(METHODS)


@pytest.mark.parametrize(
    ("method", "color", "dash"),
    [
        ("tepa", "#0072B2", "solid"),
        ("tepa_full", "#56B4E9", "solid"),
        ("append_only", "#D55E00", "solid"),
        ("last_write_wins", "#E69F00", "solid"),
        ("reactive_forgetting", "#CC79A7", "solid"),
    ],
)
def test_methods_have_the_okabe_ito_colours(method, color, dash):
    assert (theme.method_style(method).color, theme.method_style(method).dash) == (color, dash)


def test_tepa_is_the_thickest_and_no_memory_dashed_and_the_oracle_dotted():
    assert max(theme.METHOD_STYLE, key=lambda method: theme.METHOD_STYLE[method].width) == "tepa"
    assert theme.METHOD_STYLE["no_memory"].dash == "dash"
    assert theme.METHOD_STYLE["oracle_reset"].dash == "dot"


def test_two_methods_never_share_colour_and_dash():
    looks = {(style.color, style.dash) for style in theme.METHOD_STYLE.values()}
    assert len(looks) == len(theme.METHOD_STYLE)


def contrast(color: str, background: str) -> float:
    """Contrast ratio of WCAG 2.1."""

    def luminance(text: str) -> float:
        parts = [int(text[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(color), luminance(background)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("background", ["#ffffff", "#0e1117"])
def test_lines_can_be_seen_on_the_light_and_the_dark_theme(background):
    colors = [style.color for style in theme.METHOD_STYLE.values()]
    colors += [style.color for style in theme.STATE_STYLE.values()] + list(theme.VALUE_COLORS) + [theme.GREY]
    assert min(contrast(color, background) for color in colors) > 2.0


def test_letters_can_be_read_on_filled_states():
    for style in theme.STATE_STYLE.values():
        if not style.outlined:
            assert contrast(theme.INK_ON_COLOR, style.color) > 4.5


def test_states_differ_without_colour():
    assert [style.letter for style in theme.STATE_STYLE.values()] == ["C", "H", "A", "D", "R"]
    assert theme.STATE_STYLE["deprecated"].pattern == "/"
    assert theme.STATE_STYLE["revoked"].outlined
    assert theme.STATE_STYLE["active"].color == "#009E73"


def test_an_unknown_method_is_grey_and_its_name_is_escaped():
    color = theme.method_style("mine").color
    assert color[1:3] == color[3:5] == color[5:7]
    assert theme.method_label("<b>my_own</b>") == "&lt;b&gt;my own&lt;/b&gt;"


def test_legend_order_is_the_table_order_with_unknown_last():
    assert theme.in_legend_order(["zeta", "append_only", "tepa", "alpha", "tepa"]) == [
        "tepa",
        "append_only",
        "zeta",
        "alpha",
    ]


def test_require_names_every_missing_column():
    with pytest.raises(ValueError, match=r"needs the columns lo, hi\. The table has method, mean\."):
        theme.require(pd.DataFrame({"method": [], "mean": []}), ["method", "lo", "mean", "hi"])


def test_require_says_when_a_table_has_no_columns():
    with pytest.raises(ValueError, match="no columns at all"):
        theme.require(pd.DataFrame(), ["method"])


def test_shown_escapes_shortens_and_joins_lines():
    assert theme.shown('a <script>\n\n & "b"') == 'a &lt;script&gt; & "b"'.replace(" & ", " &amp; ")
    assert theme.shown("x" * 200) == "x" * 159 + "…"
    assert theme.shown("one two three", width=8) == "one two<br>three"


def test_shown_cuts_before_it_escapes():
    assert theme.shown("<<<<<", limit=4) == "&lt;&lt;&lt;…"


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([0.2, 0.8], [0.2, 0.8]),
        ([0.8, 0.2], [0.8, 0.2]),
        ([0.5, 0.5, 0.5], [0.4, 0.5, 0.6]),
        ([1.0, 1.0], [0.9, 1.0]),
        ([0.0, 0.05, 0.0], [0.0, 0.2, 0.1]),
        ([], []),
    ],
)
def test_spread_moves_labels_as_little_as_needed(places, expected):
    np.testing.assert_allclose(theme.spread(places, gap=0.1, low=0.0, high=1.0), expected, atol=1e-12)


def test_spread_keeps_distance_and_order_of_many():
    rng = np.random.default_rng(3)
    wanted = rng.random(12)
    placed = theme.spread(wanted, gap=0.08, low=0.0, high=1.0)
    assert np.diff(np.sort(placed)).min() >= 0.08 - 1e-12
    assert placed.min() >= -1e-12
    assert placed.max() <= 1 + 1e-12
    np.testing.assert_array_equal(np.argsort(placed), np.argsort(wanted))


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (list("abcd"), "a, b, c and d"),
        (list("abcdef"), "a, b, c and 3 more"),
    ],
)
def test_listed(items, words):
    assert theme.listed(list(items)) == words


def test_phases_are_shaded_alternately_and_named_once():
    fig = go.Figure()
    theme.shade_phases(fig, PHASES)
    assert [(shape.x0, shape.x1, shape.yref, shape.layer) for shape in fig.layout.shapes] == [
        (40, 80, "paper", "below")
    ]
    assert [(note.text, note.x, note.y) for note in fig.layout.annotations] == [
        ("stable", 20, 1),
        ("light", 60, 1),
        ("reversal", 100, 1),
    ]


def test_a_phase_too_narrow_for_its_name_stays_unnamed_and_a_tight_one_is_shortened():
    fig = go.Figure()
    theme.shade_phases(fig, pd.DataFrame({"phase": ["wide", "x-ray"], "start": [0, 990], "end": [990, 1000]}))
    assert [note.text for note in fig.layout.annotations] == ["wide"]
    fig = go.Figure()
    theme.shade_phases(fig, pd.DataFrame({"phase": ["a" * 60, "b"], "start": [0, 100], "end": [100, 200]}))
    assert fig.layout.annotations[0].text.endswith("…")
    assert fig.layout.annotations[0].hovertext == "a" * 60


def test_phases_in_time_lose_their_zone_but_not_their_clock():
    start = pd.date_range("2026-03-01", periods=2, tz="Europe/Berlin")
    fig = go.Figure()
    theme.shade_phases(
        fig, pd.DataFrame({"phase": ["a1b", "c2d"], "start": start, "end": start + pd.Timedelta(days=1)})
    )
    assert pd.Timestamp(fig.layout.shapes[0].x0) == pd.Timestamp("2026-03-02")


def test_no_phases_no_shading():
    fig = go.Figure()
    theme.shade_phases(fig, PHASES.iloc[:0])
    assert not fig.layout.shapes
    assert not fig.layout.annotations


def test_layout_is_transparent_and_titled():
    fig = theme.layout(go.Figure(), height=300, x_title="Task", y_title="Success rate")
    assert fig.layout.height == 300
    assert (fig.layout.xaxis.title.text, fig.layout.yaxis.title.text) == ("Task", "Success rate")
    assert fig.layout.paper_bgcolor == fig.layout.plot_bgcolor == "rgba(0, 0, 0, 0)"
    assert fig.layout.font.color is None


def test_the_legend_grows_the_figure_by_the_rows_it_takes_on_a_telephone():
    def height(names: list[str]) -> int:
        fig = go.Figure([go.Scatter(x=[0], y=[0], name=name) for name in names])
        return theme.legend_below(fig, plot_px=200).layout.height

    assert height(["a" * 30] * 4) - height(["a" * 30]) == 3 * theme.LEGEND_ROW_PX
    assert height(["a", "b", "c", "d"]) == height(["a"])
    hidden = go.Figure(go.Scatter(x=[0], y=[0], name="a", showlegend=False))
    assert theme.legend_below(hidden, plot_px=200).layout.height == height(["a"]) - theme.LEGEND_ROW_PX


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (81, "81"),
        (1234567.0, "1234567"),
        (pd.Timestamp("2026-03-01 09:05"), "2026-03-01 09:05"),
        (pd.Timestamp("2026-03-01 09:05:07"), "2026-03-01 09:05:07"),
    ],
)
def test_places_of_the_axis_in_words(place, words):
    assert theme.at(place) == words
