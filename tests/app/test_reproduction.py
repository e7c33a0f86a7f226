"""The reproduction page: how much of the paper holds, against the stored run, and the runs it offers to make."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tepa_core import reproduce
from tepa_core.reported import DRIFT, FACT_FILES, ROWS
from tepa_core.store import Store, queries
from tepa_core.ui import cache, reproduction_views

OpenPage = Callable[..., AppTest]
ROOT = Path(__file__).parents[2]
SEEDS = 6


@pytest.fixture(autouse=True)
def no_published_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "FACT_FOLDERS", (Path("nowhere"),))
    monkeypatch.delenv(reproduce.FACTS_VARIABLE, raising=False)


def words(at: AppTest) -> str:
    said = [*at.title, *at.markdown, *at.caption, *at.warning, *at.info, *at.error]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "")


def shown_table(at: AppTest, column: str) -> pd.DataFrame:
    """Return the table on the page that has a column."""
    (found,) = [element.value for element in at.dataframe if column in element.value]
    return found


@pytest.fixture
def reversal(store: Store, simulation: str) -> pd.Series:
    """Mean success in reversal per method, straight from the episodes."""
    played = queries.episodes(store, simulation)
    return played[played["phase"] == "reversal"].groupby("method", observed=True)["success"].mean()


def test_the_frame_and_what_is_there_before_anything_is_made(open_page: OpenPage, simulation: str) -> None:
    at = open_page("evidence/reproduction", run=simulation, seeds=SEEDS)
    assert at.title[0].value == "Reproduction"
    assert at.caption[0].value == "Does this build reproduce the paper?"
    # d_z has no interval from six seeds: a resample may hold one seed alone, without spread.
    measured = [row for row in ROWS if row.run == "controlled" and row.quantity != "dz"]
    said = words(at)
    assert f"of the {len(measured)}** numbers measured here agree with the paper" in said
    assert f"{len(ROWS) - len(measured)} of its {len(ROWS)} are not measured yet" in said
    missing = len(reproduce.specs(SEEDS)) - 1
    assert at.button(key="make_missing").label == f"Make the {missing} missing runs"
    assert "4 of the 4 fact files are not here" in said
    assert "factconsolidation_sh_6k.json" in said


def test_the_drift_table_is_that_of_the_episodes(open_page: OpenPage, simulation: str, reversal: pd.Series) -> None:
    at = open_page("evidence/reproduction", run=simulation, seeds=SEEDS)
    frame = shown_table(at, "verdict")
    row = frame[(frame["run"] == "controlled") & (frame["what"] == "reactive forgetting")].iloc[0]
    assert row["paper"] == 0.796
    assert row["here"] == pytest.approx(reversal["reactive_forgetting"], abs=5e-4)
    within = row["from"] - 0.0305 <= 0.796 <= row["to"] + 0.0305
    assert row["verdict"] == ("✓ within" if within else "✗ outside")
    assert set(frame.loc[frame["run"] == "executable", "verdict"]) == {"– not measured"}


def test_the_headline_counts_what_is_within(open_page: OpenPage, store: Store, simulation: str) -> None:
    rows = reproduce.table(store, reproduce.stored_runs(store, SEEDS))
    said = words(open_page("evidence/reproduction", run=simulation, seeds=SEEDS))
    assert f"**{int(rows['within'].sum())} of the {int(rows['within'].count())}** numbers" in said


def test_the_fallback_changes_the_row_of_tepa(open_page: OpenPage, simulation: str, reversal: pd.Series) -> None:
    at = open_page("evidence/reproduction", run=simulation, seeds=SEEDS, fallback="base_policy")
    base = reproduce.fallback_success("base_policy", seeds=SEEDS)
    mean = base.loc[base["phase"] == "reversal", "success"].mean()
    said = words(at)
    assert f"TEPA in controlled reversal: **{mean:.3f}** here, 0.950 in the paper; **{reversal['tepa']:.3f}**" in said
    frame = shown_table(at, "verdict")
    row = frame[(frame["run"] == "controlled") & (frame["what"] == "TEPA")].iloc[0]
    assert row["here"] == pytest.approx(mean, abs=5e-4)
    assert row["verdict"] == "✗ outside"
    at.segmented_control(key="fallback_choice").set_value("candidate").run()
    assert at.query_params["fallback"] in ("candidate", ["candidate"])
    assert f"TEPA in controlled reversal: **{reversal['tepa']:.3f}** here" in words(at)


@pytest.mark.parametrize("view", list(reproduction_views.VIEWS))
def test_every_table_opens_by_link(open_page: OpenPage, simulation: str, view: str) -> None:
    at = open_page("evidence/reproduction", run=simulation, seeds=SEEDS, table=view)
    assert at.segmented_control(key="table_choice").value == view
    assert not at.error


def test_pollution_per_phase_is_that_of_the_run(open_page: OpenPage, simulation: str, store: Store) -> None:
    at = open_page("evidence/reproduction", run=simulation, seeds=SEEDS, table="phases")
    frame = shown_table(at, "stream")
    played = queries.episodes(store, simulation)
    light = played[played["phase"] == "light"].groupby("method", observed=True)["success"].mean()
    mpi = (light["no_memory"] - light["append_only"]) / light["no_memory"]
    cell = frame.loc[frame["method"] == "append-only", "light"].iloc[0]
    assert cell.startswith(f"{mpi:+.3f}".replace("-", "−"))


def test_every_setting_of_every_run_is_listed(open_page: OpenPage, simulation: str) -> None:
    at = open_page("evidence/reproduction", run=simulation, seeds=SEEDS, table="settings")
    shared = shown_table(at, "setting").set_index("setting")
    assert shared.loc["base_conventional", "controlled"] == "0.88"
    assert shared.loc["feedback_noise", "preference"] == "0.33"
    assert shared.loc["theta_rec", "executable"] == "0.34"
    assert shared.loc["seeds", "controlled"] == str(SEEDS)
    changed = shown_table(at, "changed").set_index("run")["changed"]
    assert changed["n_rec = 5"] == "n_rec 5 instead of 3"
    assert changed["key noise 20 %"] == "key_noise 0.2 instead of 0"
    assert set(changed.index) == {*reproduce.specs(SEEDS), *FACT_FILES.values()} - {
        *("controlled", "executable", "preference", "facts SH-6k")
    }


def test_a_number_of_seeds_without_runs_says_so(open_page: OpenPage, simulation: str) -> None:
    at = open_page("evidence/reproduction", run=simulation, seeds=7)
    assert f"Nothing is measured yet: the paper reports **{len(ROWS)}** numbers" in words(at)
    assert at.button(key="make_missing").label == f"Make the {len(reproduce.specs(7))} missing runs"
    at = open_page("evidence/reproduction", run=simulation, seeds=7, table="ablation")
    assert "The controlled run is not made yet" in words(at)


def test_the_missing_runs_are_made_and_shown(
    own_database: Path, open_page: OpenPage, simulation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "data" / "facts_small_multihop.json", tmp_path / "factconsolidation_mh_6k.json")
    monkeypatch.setenv(reproduce.FACTS_VARIABLE, str(tmp_path))
    wanted = {name: spec for name, spec in reproduce.specs(SEEDS).items() if name in ("controlled", "n_rec = 5")}
    monkeypatch.setattr(reproduce, "specs", lambda seeds=SEEDS: wanted)
    at = open_page("evidence/reproduction", run=simulation, seeds=SEEDS, table="facts")
    assert at.button(key="make_missing").label == "Make the 2 missing runs"
    at.button(key="make_missing").click().run()
    assert not at.exception
    names = set(queries.runs(cache.store())["name"])
    assert {"Reproduction: n_rec = 5", "Reproduction: facts MH-6k"} <= names
    assert not [button for button in at.button if button.key == "make_missing"]
    counts = cache.attributions(cache.reproduced_runs(SEEDS)["facts MH-6k"])
    ours = counts[counts["method"] == "tepa"]
    wrong = int(ours.loc[ours["attribution"] != "answered", "n"].sum())
    assert f"Of {ours['n'].sum()} answers TEPA missed **{wrong}**" in words(at)
    frame = shown_table(at, "answered")
    assert (frame.drop(columns="method").sum(axis=1) == 30).all()


def test_a_broken_fact_file_is_told_in_a_sentence(
    own_database: Path, open_page: OpenPage, simulation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "factconsolidation_sh_6k.json").write_text("[]")
    monkeypatch.setenv(reproduce.FACTS_VARIABLE, str(tmp_path))
    monkeypatch.setattr(reproduce, "specs", lambda seeds=SEEDS: {})
    at = open_page("evidence/reproduction", run=simulation, seeds=SEEDS)
    at.button(key="make_missing").click().run()
    assert not at.exception
    assert "Correct the file and try again" in words(at)


def test_the_cost_is_measured_on_request(open_page: OpenPage, simulation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pd.DataFrame(
        [
            ("100k updates", "tepa, one item at a time / last_write_wins", "update time", 40.0, 40.0, 40.0),
            ("1M updates", "tepa / last_write_wins", "update time", 0.25, 0.2, 0.3),
            ("1M updates", "append_only / tepa", "query time", 13310.0, 13000.0, 14000.0),
        ],
        columns=["scope", "method", "quantity", "ours", "lo", "hi"],
    )
    monkeypatch.setattr("tepa_core.cost.measure", lambda progress: rows)
    at = open_page("evidence/reproduction", run=simulation, seeds=SEEDS, table="cost")
    assert "Not measured yet in this visit" in words(at)
    at.button(key="measure_cost").click().run()
    said = words(at)
    assert "the rule takes **0.25 times** as long as last write wins" in said
    assert "**13,310 times**" in said
    assert "40 times as long as a dict assignment" in said
    assert "Cost: 1 of 2; these are ratios of times on another machine." in said


def test_the_table_of_all_numbers_has_every_row(open_page: OpenPage, simulation: str) -> None:
    at = open_page("evidence/reproduction", run=simulation, seeds=SEEDS)
    frame = shown_table(at, "note")
    assert len(frame) == len(ROWS)
    assert set(frame.loc[frame["table"] == DRIFT, "reported"]) >= {0.309, 0.796, 0.95}
