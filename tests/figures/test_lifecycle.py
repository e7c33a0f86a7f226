from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from tepa_core.figures.lifecycle import (
    POINTS_OF_LINES,
    STACKED,
    TICKS_PER_KIND,
    LifecycleData,
    lifecycle,
    merge_flips,
    thin,
)
from tepa_core.figures.theme import STATE_STYLE, VALUE_COLORS

POSTERIOR = [
    # The counts of a value that is supported three times, conflicts twice, and comes back: (s+1)/(s+f+2).
    ("tea", 0, 2 / 3, "candidate"),
    ("tea", 1, 3 / 4, "candidate"),
    ("tea", 2, 4 / 5, "active"),
    ("tea", 5, 4 / 6, "deprecated"),
    ("tea", 6, 4 / 7, "revoked"),
    ("mate", 5, 2 / 3, "candidate"),
    ("mate", 6, 3 / 4, "candidate"),
    ("mate", 8, 4 / 5, "active"),
]


def timed(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    start = pd.Timestamp("2026-03-01", tz="UTC")
    return frame.assign(**{column: start + pd.to_timedelta(frame[column], unit="h") for column in columns})


@pytest.fixture
def trace() -> LifecycleData:
    posterior = pd.DataFrame(POSTERIOR, columns=["value", "x", "posterior", "state"])
    return LifecycleData(
        posterior=posterior.assign(lo=posterior["posterior"] - 0.2, hi=posterior["posterior"] + 0.2),
        spans=pd.DataFrame(
            [
                ("tea", "candidate", 0, 2, 0),
                ("tea", "active", 2, 5, 1),
                ("tea", "deprecated", 5, 6, 1),
                ("tea", "revoked", 6, 10, 1),
                ("mate", "candidate", 5, 8, 0),
                ("mate", "active", 8, 10, 1),
            ],
            columns=["value", "state", "x0", "x1", "life"],
        ),
        evidence=pd.DataFrame(
            [
                ("e0", 0, "tea", True, "likes <b>tea</b> & co", False),
                ("e1", 1, "tea", True, None, True),
                ("e2", 2, "tea", True, "x" * 300, False),
                ("e3", 5, "tea", False, "no tea", False),
                ("e4", 6, "tea", False, "no tea", True),
            ],
            columns=["evidence_id", "x", "value", "supports", "text", "late"],
        ),
        transitions=pd.DataFrame(
            [
                ("tea#0", 2, "tea", "candidate", "hypothesis", "proposed", 0.8),
                ("tea#1", 2, "tea", "hypothesis", "active", "promoted", 0.8),
                ("tea#2", 6, "tea", "active", "revoked", "recent", 4 / 7),
                ("mate#0", 8, "mate", "candidate", "active", "a_new_rule", 0.8),
            ],
            columns=["transition_id", "x", "value", "from_state", "to_state", "rule", "posterior"],
        ),
        followed=pd.DataFrame(
            [(0, None, True), (3, "tea", True), (5, "tea", False), (9, "mate", True)],
            columns=["x", "value", "success"],
        ),
        phases=pd.DataFrame({"phase": ["stable", "reversal"], "start": [0, 5], "end": [5, 10]}),
        theta_rev=0.3,
        theta_pro=0.6,
        x_title="Task",
    )


def named(fig, name):
    return [trace for trace in fig.data if trace.name == name]


def lines(fig, value):
    return [trace for trace in named(fig, value) if trace.mode == "lines"]


def test_strong_line_where_retrievable_thin_dashed_elsewhere(trace):
    fig = lifecycle(trace)
    strong, weak = lines(fig, "tea")
    assert (strong.line.shape, strong.line.dash) == ("hv", None)
    assert (weak.line.shape, weak.line.dash) == ("hv", "dash")
    assert weak.line.width < strong.line.width
    assert strong.line.color == weak.line.color == VALUE_COLORS[0]
    # Active from 2, revoked at 6; the step that ends at 6 still belongs to the strong line.
    np.testing.assert_allclose(strong.x, [2, 5, 6, 6])
    np.testing.assert_allclose(strong.y, [4 / 5, 4 / 6, 4 / 7, np.nan])
    np.testing.assert_allclose(weak.x, [0, 1, 2, 2, 6, 10, 10])
    np.testing.assert_allclose(weak.y, [2 / 3, 3 / 4, 4 / 5, np.nan, 4 / 7, 4 / 7, np.nan])


def test_the_credible_band_goes_from_lo_to_hi_to_the_end_of_the_record(trace):
    low, high = named(lifecycle(trace), "mate, credible band")
    np.testing.assert_allclose(low.x, [5, 6, 8, 10])
    np.testing.assert_allclose(low.y, [2 / 3 - 0.2, 3 / 4 - 0.2, 0.6, 0.6])
    np.testing.assert_allclose(high.y, [2 / 3 + 0.2, 3 / 4 + 0.2, 1.0, 1.0])
    assert (low.fill, high.fill, high.line.shape) == (None, "tonexty", "hv")


def test_values_have_their_own_colours(trace):
    fig = lifecycle(trace)
    assert lines(fig, "tea")[0].line.color != lines(fig, "mate")[0].line.color
    assert 'color:#0072B2">●</span> tea' in fig.layout.yaxis2.ticktext[0]


def test_thresholds_are_dashed_and_labelled(trace):
    fig = lifecycle(trace)
    drawn = {shape.y0: shape.line.dash for shape in fig.layout.shapes if shape.name.startswith("threshold")}
    assert drawn == {0.3: "dash", 0.6: "dash"}
    assert [note.text for note in fig.layout.annotations if note.name == "threshold"] == [
        "θ<sub>pro</sub> 0.60",
        "θ<sub>rev</sub> 0.30",
    ]


def test_short_values_are_labelled_at_the_line_end_else_in_the_legend(trace):
    fig = lifecycle(trace)
    labels = {note.text: note.y for note in fig.layout.annotations if note.name == "value"}
    assert set(labels) == {"tea", "mate"}
    assert labels["mate"] > labels["tea"]
    assert all(line.showlegend is False for line in lines(fig, "tea"))
    long = dataclasses.replace(
        trace, posterior=trace.posterior.replace({"value": {"tea": "a very long preference indeed"}})
    )
    fig = lifecycle(long)
    assert not [note for note in fig.layout.annotations if note.name == "value"]
    assert [line.showlegend for line in lines(fig, "mate")] == [True, False]


def test_transitions_are_selectable_by_id_and_nothing_else_is(trace):
    fig = lifecycle(trace)
    (marks,) = named(fig, "state change")
    assert "markers" in marks.mode
    np.testing.assert_array_equal(marks.customdata, [["tea#0"], ["tea#1"], ["tea#2"], ["mate#0"]])
    assert all(other.customdata is None for other in fig.data if other is not marks)
    assert list(marks.text) == ["<b>H</b>", "<b>A</b>", "<b>R</b>", "<b>A</b>"]
    assert list(marks.marker.symbol) == ["diamond", "circle", "square", "circle"]
    assert marks.marker.color[2] == STATE_STYLE["revoked"].color


def test_two_transitions_of_one_item_do_not_hide_each_other(trace):
    (marks,) = named(lifecycle(trace), "state change")
    np.testing.assert_allclose(marks.y, [0.8 - STACKED, 0.8, 4 / 7, 0.8])


def test_a_transition_says_its_rule_in_words(trace):
    (marks,) = named(lifecycle(trace), "state change")
    assert marks.hovertext[2].startswith("<b>Active → Revoked</b>: tea<br>6<br>recent rule: too many of its")
    assert marks.hovertext[2].endswith("posterior 0.571")
    assert "a new rule" in marks.hovertext[3]


def test_a_transition_without_a_posterior_is_still_drawn(trace):
    bare = dataclasses.replace(trace, transitions=trace.transitions.assign(posterior=np.nan))
    (marks,) = named(lifecycle(bare), "state change")
    assert np.isfinite(marks.y).all()
    assert "posterior" not in marks.hovertext[2].split("<br>")[-1]


def test_the_selected_transition_is_marked(trace):
    fig = lifecycle(trace, selected="tea#2")
    (marks,) = named(fig, "state change")
    assert np.argmax(marks.marker.size) == 2
    assert [shape.x0 for shape in fig.layout.shapes if shape.name == "selected"] == [6]
    assert not [shape for shape in lifecycle(trace).layout.shapes if shape.name == "selected"]


def test_evidence_supports_above_conflicts_below_late_hollow(trace):
    fig = lifecycle(trace)
    ticks = {name: named(fig, name)[0] for name in ("support", "support, late", "conflict", "conflict, late")}
    assert {name: list(tick.x) for name, tick in ticks.items()} == {
        "support": [0, 2],
        "support, late": [1],
        "conflict": [5],
        "conflict, late": [6],
    }
    assert all(y > 1 for y in ticks["support"].y)
    assert all(y < 0 for y in ticks["conflict"].y)
    assert {name: tick.marker.symbol for name, tick in ticks.items()} == {
        "support": "triangle-up",
        "support, late": "triangle-up-open",
        "conflict": "triangle-down",
        "conflict, late": "triangle-down-open",
    }
    assert fig.layout.yaxis.range[0] < ticks["conflict"].y[0]
    assert fig.layout.yaxis.range[1] > ticks["support"].y[0]


def test_source_text_on_hover_is_escaped_and_shortened(trace):
    (support,) = named(lifecycle(trace), "support")
    assert support.hovertext[0] == "<b>support</b>: tea<br>0<br>likes &lt;b&gt;tea&lt;/b&gt; &amp; co"
    source = support.hovertext[1].split("<br>", 2)[2].replace("<br>", "")
    assert source == "x" * 159 + "…"


def test_values_are_escaped_everywhere(trace):
    tables = ("posterior", "spans", "evidence", "transitions", "followed")
    loud = dataclasses.replace(
        trace, **{name: getattr(trace, name).replace({"value": {"tea": "<img src=x>"}}) for name in tables}
    )
    fig = lifecycle(loud)
    texts = [str(text) for data in fig.data for text in (data.hovertext if data.hovertext is not None else ())]
    texts += [str(data.name) for data in fig.data]
    texts += [*fig.layout.yaxis2.ticktext, *fig.layout.yaxis3.ticktext]
    texts += [note.text for note in fig.layout.annotations]
    assert any("&lt;img" in text for text in texts)
    assert not any("<img" in text for text in texts)


def test_state_bands_carry_letter_life_and_pattern(trace):
    fig = lifecycle(trace)
    bars = {bar.name: bar for bar in fig.data if bar.type == "bar"}
    assert list(bars) == ["C Candidate", "A Active", "D Deprecated", "R Revoked"]
    active = bars["A Active"]
    assert (list(active.base), list(active.x), list(active.y)) == ([2, 8], [3, 2], [0, 1])
    assert list(active.text) == ["A1", "A1"]
    assert list(bars["C Candidate"].text) == ["C", "C"]
    assert bars["D Deprecated"].marker.pattern.shape == "/"
    assert bars["R Revoked"].marker.line.width > 0
    assert bars["R Revoked"].marker.color.startswith("rgba")
    assert fig.layout.barmode == "overlay"
    assert all(bar.yaxis == "y2" for bar in bars.values())


def test_followed_strip_tells_success_from_failure_by_shape(trace):
    fig = lifecycle(trace)
    (good,), (bad,) = named(fig, "succeeded"), named(fig, "failed")
    assert (good.marker.symbol, bad.marker.symbol) == ("circle", "x-thin")
    assert list(fig.layout.yaxis3.ticktext) == ["tea", "mate", "nothing"]
    assert list(zip(good.x, good.y, strict=True)) == [(0, 2), (3, 0), (9, 1)]
    assert list(zip(bad.x, bad.y, strict=True)) == [(5, 0)]


def test_one_axis_with_titles(trace):
    fig = lifecycle(trace)
    assert fig.layout.xaxis3.title.text == "Task"
    assert (fig.layout.yaxis.title.text, fig.layout.yaxis2.title.text, fig.layout.yaxis3.title.text) == (
        "Posterior",
        "State",
        "Followed",
    )
    assert {fig.layout.xaxis.matches, fig.layout.xaxis2.matches} == {"x3"}
    assert fig.layout.xaxis.range[0] < 0
    assert fig.layout.xaxis.range[1] > 10


def test_the_posterior_panel_is_the_largest(trace):
    fig = lifecycle(trace)
    heights = [axis.domain[1] - axis.domain[0] for axis in (fig.layout.yaxis, fig.layout.yaxis2, fig.layout.yaxis3)]
    assert heights[0] > 2 * heights[1] > 2 * heights[2] * 0.9


def test_without_followed_there_is_no_strip(trace):
    fig = lifecycle(dataclasses.replace(trace, followed=trace.followed.iloc[:0]))
    assert "yaxis3" not in fig.to_plotly_json()["layout"]
    assert fig.layout.xaxis2.title.text == "Task"


def test_phases_are_shaded_through_all_panels(trace):
    fig = lifecycle(trace)
    assert [(s.x0, s.x1, s.yref) for s in fig.layout.shapes if s.name == "phase"] == [(5, 10, "paper")]
    assert [note.text for note in fig.layout.annotations if note.name == "phase"] == ["stable", "reversal"]


def test_decisions_are_flags_with_initials_on_the_row_of_their_value(trace):
    decisions = pd.DataFrame(
        {"x": [7, 8], "value": ["mate", None], "initials": ["AB", "CD"], "text": ["<b>sure</b>", "both valid"]}
    )
    flags = [note for note in lifecycle(trace, decisions=decisions).layout.annotations if note.name == "decision"]
    assert [(flag.text, flag.x, flag.y, flag.yref) for flag in flags] == [("⚑ AB", 7, 1, "y2"), ("⚑ CD", 8, 0, "y2")]
    assert flags[0].hovertext == "&lt;b&gt;sure&lt;/b&gt;"


def test_differences_are_shaded(trace):
    fig = lifecycle(trace, differences=pd.DataFrame({"x0": [6], "x1": [8]}))
    assert [(s.x0, s.x1) for s in fig.layout.shapes if s.name == "difference"] == [(6, 8)]


def test_two_figures_can_share_a_range(trace):
    assert lifecycle(trace, x_range=(0, 20)).layout.xaxis.range == (0, 20)


def test_times_are_drawn_at_their_wall_clock(trace):
    clocked = LifecycleData(
        timed(trace.posterior, "x"),
        timed(trace.spans, "x0", "x1"),
        timed(trace.evidence, "x"),
        timed(trace.transitions, "x"),
        timed(trace.followed, "x"),
        timed(trace.phases, "start", "end"),
        0.3,
        0.6,
        "Time (UTC)",
    )
    fig = lifecycle(clocked)
    assert fig.layout.xaxis.type == "date"
    strong, _ = lines(fig, "tea")
    assert pd.Timestamp(strong.x[0]) == pd.Timestamp("2026-03-01 02:00")
    (active,) = named(fig, "A Active")
    assert pd.Timestamp(active.base[0]) == pd.Timestamp("2026-03-01 02:00")
    # A bar on a date axis is as long as its milliseconds.
    np.testing.assert_allclose(active.x, [3 * 3_600_000, 2 * 3_600_000])
    assert "2026-03-01 06:00" in named(fig, "state change")[0].hovertext[2]
    assert "tea: Revoked at 2026-03-01 06:00 (recent)." in fig.layout.meta["alt"]
    assert lifecycle(dataclasses.replace(clocked, evidence=trace.evidence.iloc[:0])).data


@pytest.mark.parametrize("name", ["evidence", "transitions", "followed", "phases"])
def test_empty_tables_leave_their_part_out(trace, name):
    table = getattr(trace, name)
    for empty in (table.iloc[:0], pd.DataFrame(columns=table.columns)):
        fig = lifecycle(dataclasses.replace(trace, **{name: empty}))
        assert lines(fig, "tea")
        assert bool(named(fig, "state change")) == (name != "transitions")
        assert bool(named(fig, "support")) == (name != "evidence")


def test_a_key_without_any_record_says_so(trace):
    names = ("posterior", "spans", "evidence", "transitions", "followed", "phases")
    nothing = dataclasses.replace(trace, **{name: getattr(trace, name).iloc[:0] for name in names})
    fig = lifecycle(nothing)
    assert not fig.data
    assert "No evidence for this key." in [note.text for note in fig.layout.annotations]


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("posterior", "lo"),
        ("spans", "life"),
        ("evidence", "late"),
        ("transitions", "transition_id"),
        ("followed", "success"),
        ("phases", "end"),
    ],
)
def test_a_missing_column_is_named(trace, table, column):
    broken = dataclasses.replace(trace, **{table: getattr(trace, table).drop(columns=column)})
    with pytest.raises(ValueError, match=f"needs the columns {column}\\."):
        lifecycle(broken)


def test_texts_count_and_list(trace):
    meta = lifecycle(trace).layout.meta
    assert meta["caption"].startswith("3 supports and 2 refutations (2 late), 2 activations and 1 revocation.")
    assert "thinned" not in meta["caption"]
    assert meta["alt"].startswith("Lifecycle of 2 values of one key. tea: Hypothesis at 2 (proposed).")
    assert "mate: Active at 8 (a_new_rule)." in meta["alt"]


def test_thin_keeps_ends_extremes_and_what_is_marked():
    rng = np.random.default_rng(5)
    heights = rng.random(20_000)
    heights[[7_777, 12_345]] = 2.0, -1.0
    keep = np.zeros(20_000, dtype=bool)
    keep[rng.choice(20_000, 50, replace=False)] = True
    chosen = thin(heights, keep, limit=1_000)
    assert len(chosen) <= 1_000
    assert {0, 7_777, 12_345, 19_999} <= set(chosen)
    assert set(np.flatnonzero(keep)) <= set(chosen)
    assert (np.diff(chosen) > 0).all()


def test_thin_exceeds_its_limit_rather_than_lose_a_mark():
    keep = np.ones(3_000, dtype=bool)
    assert len(thin(np.zeros(3_000), keep, limit=100)) == 3_000


def test_thin_leaves_short_lines_alone():
    np.testing.assert_array_equal(thin(np.zeros(5), np.zeros(5, dtype=bool), limit=5), range(5))


def test_flips_too_narrow_to_see_become_one_deprecated_band():
    spans = pd.DataFrame(
        [
            ("a", "active", 0.0, 100.0, 1),
            ("a", "deprecated", 100.0, 100.4, 1),
            ("a", "active", 100.4, 100.8, 1),
            ("a", "deprecated", 100.8, 101.2, 1),
            ("a", "revoked", 101.2, 101.4, 1),
            ("a", "active", 101.4, 101.6, 2),
            ("b", "active", 0.0, 0.2, 1),
        ],
        columns=["value", "state", "x0", "x1", "life"],
    )
    merged = merge_flips(spans, finest=1.0)
    assert list(merged.itertuples(index=False, name=None)) == [
        ("a", "active", 0.0, 100.0, 1),
        ("a", "deprecated", 100.0, 101.2, 1),
        ("a", "revoked", 101.2, 101.4, 1),
        ("a", "active", 101.4, 101.6, 2),
        ("b", "active", 0.0, 0.2, 1),
    ]


@pytest.fixture(scope="module")
def long_trace() -> LifecycleData:
    """Twelve values of 5,000 items each, with a transition every 250 items."""
    n, values = 5_000, 12
    rng = np.random.default_rng(11)
    tables: dict[str, list[pd.DataFrame]] = {"posterior": [], "spans": [], "evidence": [], "transitions": []}
    for number in range(values):
        x = np.arange(n) * values + number
        state = np.where(np.arange(n) // 250 % 2 == 0, "active", "revoked")
        height = rng.uniform(0.1, 0.9, n)
        changes = np.arange(250, n, 250)
        common = {"value": f"value {number}", "x": x}
        tables["posterior"].append(
            pd.DataFrame({**common, "posterior": height, "lo": height - 0.1, "hi": height + 0.1, "state": state})
        )
        tables["evidence"].append(
            pd.DataFrame(
                {
                    **common,
                    "evidence_id": [f"{number}-{item}" for item in range(n)],
                    "supports": np.arange(n) % 2 == 0,
                    "text": "said so",
                    "late": False,
                }
            )
        )
        tables["transitions"].append(
            pd.DataFrame(
                {
                    "transition_id": [f"{number}#{change}" for change in changes],
                    "x": x[changes],
                    "value": f"value {number}",
                    "from_state": state[changes - 1],
                    "to_state": state[changes],
                    "rule": "recent",
                    "posterior": height[changes],
                }
            )
        )
        bounds = x[np.append(np.arange(0, n, 250), n - 1)]
        tables["spans"].append(
            pd.DataFrame(
                {"value": f"value {number}", "state": state[::250], "x0": bounds[:-1], "x1": bounds[1:], "life": 1}
            )
        )
    joined = {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}
    empty = pd.DataFrame(columns=["phase", "start", "end"])
    followed = pd.DataFrame(columns=["x", "value", "success"])
    return LifecycleData(**joined, followed=followed, phases=empty, theta_rev=0.3, theta_pro=0.6, x_title="Event")


def test_twelve_long_values_are_thinned_but_every_transition_stays(long_trace):
    fig = lifecycle(long_trace)
    (marks,) = named(fig, "state change")
    assert {row[0] for row in marks.customdata} == set(long_trace.transitions["transition_id"])
    for number in range(12):
        name = f"value {number}"
        rows = long_trace.posterior[long_trace.posterior["value"] == name]
        drawn = lines(fig, name)
        points = np.concatenate([np.column_stack([line.x, line.y]) for line in drawn])
        points = points[np.isfinite(points[:, 1])]
        # Each of the 20 pieces repeats the point that closes it.
        assert len(points) <= POINTS_OF_LINES // 12 + 21
        at = long_trace.transitions.loc[long_trace.transitions["value"] == name, "x"]
        assert set(at) <= set(points[:, 0])
        assert {rows["x"].min(), rows["x"].max(), long_trace.spans["x1"].max()} <= set(points[:, 0])
        assert points[:, 1].min() == rows["posterior"].min()
        assert points[:, 1].max() == rows["posterior"].max()


def test_of_many_spans_only_those_with_room_carry_a_letter(long_trace):
    # 240 spans of 1/20 of the axis each have room; a 400th of it has none.
    texts = [text for bars in lifecycle(long_trace).data if bars.type == "bar" for text in bars.text]
    assert len(texts) == 240
    assert all(texts)
    first = long_trace.spans.iloc[[0]]
    narrow = first.assign(x0=long_trace.spans["x1"].max() - 150, x1=long_trace.spans["x1"].max())
    many = dataclasses.replace(long_trace, spans=pd.concat([long_trace.spans, narrow], ignore_index=True))
    assert [text for bars in lifecycle(many).data if bars.type == "bar" for text in bars.text].count("") == 1


def test_twelve_long_values_stay_small_in_traces_and_ticks(long_trace):
    fig = lifecycle(long_trace)
    assert len(fig.data) == 12 * 4 + 2 + 1 + 2
    assert all(len(named(fig, kind)[0].x) <= TICKS_PER_KIND for kind in ("support", "conflict"))
    assert {data.type for data in fig.data} == {"scatter", "bar"}
    assert "Evidence is thinned for display, state changes are not." in fig.layout.meta["caption"]


def test_with_many_values_only_what_can_be_retrieved_has_a_band():
    steps = [("retrieved", "active"), ("archived", "revoked"), ("third", "candidate"), ("fourth", "candidate")]
    posterior = pd.DataFrame(
        [(value, x, 0.6, 0.2, 0.9, state) for value, state in steps for x in range(3)],
        columns=["value", "x", "posterior", "lo", "hi", "state"],
    )
    spans = pd.DataFrame(
        [(value, state, 0, 2, 1) for value, state in steps], columns=["value", "state", "x0", "x1", "life"]
    )
    evidence = pd.DataFrame(
        [(x, x, "retrieved", True, "", False) for x in range(3)],
        columns=["evidence_id", "x", "value", "supports", "text", "late"],
    )
    none = pd.DataFrame(columns=["transition_id", "x", "value", "from_state", "to_state", "rule", "posterior"])
    fig = lifecycle(
        LifecycleData(
            posterior=posterior,
            spans=spans,
            evidence=evidence,
            transitions=none,
            followed=pd.DataFrame(columns=["x", "value", "success"]),
            phases=pd.DataFrame(columns=["phase", "start", "end"]),
            theta_rev=0.3,
            theta_pro=0.6,
            x_title="task",
        )
    )
    drawn = {
        trace.name.split(",")[0]: int(np.isfinite(np.asarray(trace.y, float)).sum())
        for trace in fig.data
        if "credible band" in (trace.name or "") and trace.fill == "tonexty"
    }
    assert drawn["retrieved"] == 4
    assert [drawn[value] for value in ("archived", "third", "fourth")] == [0, 0, 0]
