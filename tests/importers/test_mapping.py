import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tepa_core.importers import (
    FIELDS,
    TEMPLATE_CSV,
    ColumnMapping,
    EvidenceLog,
    ImportRefused,
    Table,
    apply,
    issues_csv,
    open_log,
)

NOON = "2026-01-01T12:00:00Z"


def table(columns: Sequence[str], *rows: Sequence[str | None]) -> Table:
    frame = pd.DataFrame({name: pd.Series([row[at] for row in rows], dtype=object) for at, name in enumerate(columns)})
    frame["__row__"] = np.arange(2, len(rows) + 2)
    return Table("csv", frame, (), "digest")


def load(columns: Sequence[str], *rows: Sequence[str | None], tz: str = "UTC") -> EvidenceLog:
    mapping = ColumnMapping.suggest(columns)
    return apply(table(columns, *rows), ColumnMapping(mapping.columns, tz=tz))


def times(*stamps: str | None, tz: str = "UTC") -> EvidenceLog:
    return load(["ts", "user", "key", "value"], *([stamp, "u", "k", "v"] for stamp in stamps), tz=tz)


def from_file(path: Path) -> EvidenceLog:
    read = open_log(path)
    return apply(read, ColumnMapping.suggest(read.columns))


class TestTimes:
    def test_mixed_stamps_have_one_order_in_utc_and_naive_ones_are_counted(self) -> None:
        log = times(
            "2024-07-20T10:00:00-07:00", "2024-11-10T09:00:00-08:00", "2024-07-20T16:59:59Z", "2024-07-20T17:00:01"
        )
        assert log.evidence["event_time"].tolist() == [
            datetime(2024, 7, 20, 17, 0, 0, tzinfo=UTC),
            datetime(2024, 11, 10, 17, 0, 0, tzinfo=UTC),
            datetime(2024, 7, 20, 16, 59, 59, tzinfo=UTC),
            datetime(2024, 7, 20, 17, 0, 1, tzinfo=UTC),
        ]
        assert log.evidence.sort_values("event_time")["seq"].tolist() == [2, 0, 3, 1]
        assert log.badges == {"naive_time": 1}
        assert log.evidence["event_time"].dtype == "datetime64[us, UTC]"

    @pytest.mark.parametrize(
        ("stamp", "expected"),
        [
            ("2024-07-20", datetime(2024, 7, 20, tzinfo=UTC)),
            ("20240720", datetime(2024, 7, 20, tzinfo=UTC)),
            (" 2024-07-20 10:00 ", datetime(2024, 7, 20, 10, tzinfo=UTC)),
            ("2024-07-20t10:00:00", datetime(2024, 7, 20, 10, tzinfo=UTC)),
        ],
    )
    def test_spellings_without_offset_are_naive(self, stamp: str, expected: datetime) -> None:
        log = times(stamp)
        assert log.evidence["event_time"].tolist() == [expected]
        assert log.badges == {"naive_time": 1}

    @pytest.mark.parametrize(
        ("stamp", "expected"),
        [
            ("1721469600", datetime(2024, 7, 20, 10, tzinfo=UTC)),
            ("1721469600123", datetime(2024, 7, 20, 10, 0, 0, 123000, tzinfo=UTC)),
            ("1721469600.5", datetime(2024, 7, 20, 10, 0, 0, 500000, tzinfo=UTC)),
            ("2024-07-20T10:00:00.1234567Z", datetime(2024, 7, 20, 10, 0, 0, 123456, tzinfo=UTC)),
            ("2024-07-20 10:00:00 UTC", datetime(2024, 7, 20, 10, tzinfo=UTC)),
            ("2024-07-20 10:00:00+00", datetime(2024, 7, 20, 10, tzinfo=UTC)),
            ("2024-07-20 15:30:00 +05:30", datetime(2024, 7, 20, 10, tzinfo=UTC)),
            ("20240720T100000Z", datetime(2024, 7, 20, 10, tzinfo=UTC)),
            ("1396-01-01T00:00:00z", datetime(1396, 1, 1, tzinfo=UTC)),
        ],
    )
    def test_spellings_that_say_their_instant_are_not_naive(self, stamp: str, expected: datetime) -> None:
        log = times(stamp)
        assert log.evidence["event_time"].tolist() == [expected]
        # What is written finer than microseconds is cut, and said so.
        assert log.badges == ({"finer_time": 1} if "1234567" in stamp else {})

    @pytest.mark.parametrize(
        ("stamp", "reason"),
        [
            ("2014-13-00", "month must be in 1..12"),
            ("2023-02-29T00:00:00Z", "day is out of range"),
            ("2024-07-20T25:00:00Z", "hour must be in 0..23"),
            ("07/20/2024", "is not a time in ISO 8601"),
            ("2024-07-20/10:00", "is not a time in ISO 8601"),
            ("yesterday", "is not a time in ISO 8601"),
            ("172146960012", "has 12 digits"),
            ("0001-01-01T00:00:00+05:00", "years 1 to 9999"),
            (None, "the time is missing"),
            ("  ", "the time is missing"),
        ],
    )
    def test_what_is_no_time_rejects_its_row_with_a_reason(self, stamp: str | None, reason: str) -> None:
        log = times(NOON, stamp)
        assert (log.read, log.loaded, log.rejected) == (2, 1, 1)
        assert log.issues["row"].tolist() == [3]
        assert reason in log.issues["reason"][0]

    def test_naive_times_are_read_in_the_given_zone(self) -> None:
        log = times("2024-07-20T10:00:00", "2024-12-20T10:00:00", "2024-07-20T10:00:00Z", tz="America/Los_Angeles")
        assert log.evidence["event_time"].tolist() == [
            datetime(2024, 7, 20, 17, tzinfo=UTC),
            datetime(2024, 12, 20, 18, tzinfo=UTC),
            datetime(2024, 7, 20, 10, tzinfo=UTC),
        ]
        assert log.badges == {"naive_time": 2}

    def test_local_times_that_never_were_or_were_twice_are_rejected(self) -> None:
        # In Los Angeles the clock went from 2:00 to 3:00 on 10 March 2024 and from 2:00 to 1:00 on 3 November.
        log = times("2024-03-10T02:30:00", "2024-11-03T01:30:00", "2024-11-03T02:30:00", tz="America/Los_Angeles")
        assert log.loaded == 1
        assert "never happened in the zone America/Los_Angeles" in log.issues["reason"][0]
        assert "happened twice in the zone America/Los_Angeles" in log.issues["reason"][1]

    def test_backfill_keeps_both_times_and_is_badged(self) -> None:
        log = load(
            ["ts", "user", "key", "value", "ingested_at"],
            ["2023-05-01T00:00:00Z", "u", "k", "v", "2026-02-01T00:00:00Z"],
            ["2026-02-01T00:00:00Z", "u", "k", "v", "2026-02-02T00:00:00Z"],
            ["2026-02-01T00:00:00Z", "u", "k", "v", None],
        )
        first = log.evidence.iloc[0]
        assert first["event_time"] == datetime(2023, 5, 1, tzinfo=UTC)
        assert first["ingested_at"] == datetime(2026, 2, 1, tzinfo=UTC)
        assert log.evidence["ingested_at"].isna().tolist() == [False, False, True]
        # The second row arrived exactly one day later, which is not more than a day.
        assert log.badges == {"late_arrival": 1}

    def test_an_arrival_time_that_is_none_rejects_its_row(self) -> None:
        log = load(["ts", "key", "value", "ingested_at"], [NOON, "k", "v", "soon"])
        assert log.loaded == 0
        assert log.issues["reason"][0].startswith("arrival time 'soon' is not a time")


class TestRows:
    @pytest.mark.parametrize("value", ["007", "41_10_1", "true", "NA", "1e5", ""])
    @pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
    def test_values_are_text_unchanged_in_every_format(self, tmp_path: Path, value: str, format: str) -> None:
        path = tmp_path / f"log.{format}"
        if format == "csv":
            path.write_text(f'ts,user,key,value\n{NOON},u,k,"{value}"\n{NOON},u,k,\n')
        elif format == "jsonl":
            records = [{"ts": NOON, "user": "u", "key": "k", "value": text} for text in (value, None)]
            path.write_text("".join(json.dumps(record) + "\n" for record in records))
        else:
            columns = {"ts": [NOON] * 2, "user": ["u"] * 2, "key": ["k"] * 2, "value": [value, None]}
            pq.write_table(pa.table(columns), path)
        log = from_file(path)
        assert log.format == format
        assert log.evidence["value"].tolist() == [value]
        assert log.issues["reason"].tolist() == ["the value is missing"]

    def test_unquoted_values_of_a_csv_are_text_too(self, tmp_path: Path) -> None:
        path = tmp_path / "log.csv"
        values = ["007", "41_10_1", "true", "NA", "1e5"]
        path.write_text("ts,key,value\n" + "".join(f"{NOON},k,{value}\n" for value in values))
        assert from_file(path).evidence["value"].tolist() == values

    def test_two_users_share_a_key_without_sharing_it(self) -> None:
        log = load(["ts", "user", "key", "value"], [NOON, "u1", "seat", "a"], [NOON, "u2", "seat", "b"])
        assert log.evidence[["subject", "key_id"]].drop_duplicates().to_numpy().tolist() == [
            ["u1", "seat"],
            ["u2", "seat"],
        ]
        assert log.badges == {}

    def test_keys_of_three_scripts_are_three(self) -> None:
        log = load(["ts", "user", "key", "value"], *([NOON, "u", key, "v"] for key in ("咖啡", "茶", "кофе")))
        assert log.evidence["key"].tolist() == ["咖啡", "茶", "кофе"]
        assert log.evidence["key_id"].nunique() == 3

    def test_spellings_of_a_value_are_one_with_the_originals_kept(self) -> None:
        log = load(
            ["ts", "user", "key", "value"],
            *([NOON, "u", "k", value] for value in ("Window", " window ", "ASR1603", "ASR1605")),
        )
        assert log.evidence["value"].tolist() == ["Window", " window ", "ASR1603", "ASR1605"]
        assert log.evidence["value_id"].tolist() == ["window", "window", "asr1603", "asr1605"]

    @pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
    def test_a_key_is_shown_as_its_earliest_row_spells_it_in_any_file_order(self, order: list[int]) -> None:
        rows = [["2026-01-03", "u", "SEAT", "c"], ["2026-01-01", "u", " Seat ", "a"], ["2026-01-02", "u", "seat", "b"]]
        log = load(["ts", "user", "key", "value"], *(rows[at] for at in order))
        assert log.evidence["key"].tolist() == ["Seat"] * 3
        assert log.evidence["key_id"].tolist() == ["seat"] * 3

    @pytest.mark.parametrize("key", [None, "", "  "])
    def test_a_row_without_a_key_is_rejected(self, key: str | None) -> None:
        log = load(["ts", "key", "value"], [NOON, key, "v"])
        assert log.issues["reason"].tolist() == ["the key is missing"]

    def test_one_row_can_have_several_reasons_and_counts_once(self) -> None:
        log = load(["ts", "key", "value", "outcome"], [None, None, None, "perhaps"])
        assert (log.read, log.loaded, log.rejected) == (1, 0, 1)
        for reason in ("time is missing", "key is missing", "value is missing", "outcome 'perhaps'"):
            assert reason in log.issues["reason"][0]
        assert json.loads(log.issues["raw"][0]) == {"outcome": "perhaps"}

    @pytest.mark.parametrize("outcome", ["1", "true", "YES", "Success", " support ", None, ""])
    def test_outcomes_that_support(self, outcome: str | None) -> None:
        assert load(["ts", "key", "value", "outcome"], [NOON, "k", "v", outcome]).evidence["supports"].tolist() == [
            True
        ]

    @pytest.mark.parametrize("outcome", ["0", "False", "no", "FAILURE", "refute"])
    def test_outcomes_that_refute(self, outcome: str) -> None:
        log = load(["ts", "key", "value", "outcome"], [NOON, "k", "v", outcome])
        assert log.evidence["supports"].tolist() == [False]

    @pytest.mark.parametrize("outcome", ["2", "maybe", "0.5", "-1", "None"])
    def test_any_other_outcome_rejects_its_row(self, outcome: str) -> None:
        log = load(["ts", "key", "value", "outcome"], [NOON, "k", "v", outcome], [NOON, "k", "v", "1"])
        assert log.issues["row"].tolist() == [2]
        assert repr(outcome) in log.issues["reason"][0]
        assert log.evidence["seq"].tolist() == [0]
        assert log.evidence["source_row"].tolist() == [3]

    def test_rows_without_a_user_are_counted(self) -> None:
        log = load(["ts", "user", "key", "value"], *([NOON, user, "k", "v"] for user in (None, " ", "u ")))
        assert log.evidence["subject"].tolist() == ["", "", "u"]
        assert log.badges == {"missing_user": 2}
        assert load(["ts", "key", "value"], [NOON, "k", "v"]).badges == {"missing_user": 1}

    def test_rows_that_only_file_order_can_decide_are_counted(self) -> None:
        log = load(
            ["ts", "user", "key", "value"],
            [NOON, "u", "seat", "window"],
            ["2026-01-01T13:00:00+01:00", "u", "Seat", "aisle"],
            [NOON, "u", "meal", "fish"],
            [NOON, "u", "meal", " Fish"],
            [NOON, "w", "seat", "middle"],
        )
        assert log.badges == {"tied_time": 2}

    def test_optional_fields_are_kept_and_missing_ones_are_none(self) -> None:
        columns = ["ts", "key", "value", "text", "phase", "actor", "source_ref"]
        log = load(columns, [NOON, "k", "v", "=said so", None, "", "m1"])
        assert log.evidence[["text", "phase", "actor", "source_ref"]].to_numpy().tolist() == [
            ["=said so", None, "", "m1"]
        ]
        bare = load(["ts", "key", "value"], [NOON, "k", "v"])
        assert bare.evidence["text"].tolist() == [None]

    def test_the_order_of_columns_does_not_matter(self) -> None:
        one = load(["ts", "user", "key", "value"], [NOON, "u", "k", "v"])
        other = load(["value", "key", "ts", "user"], ["v", "k", NOON, "u"])
        pd.testing.assert_frame_equal(one.evidence, other.evidence)

    def test_broken_lines_of_a_file_count_as_read_and_rejected(self, tmp_path: Path) -> None:
        path = tmp_path / "log.jsonl"
        good = json.dumps({"ts": NOON, "user": "u", "key": "k", "value": "v"})
        path.write_text("\n".join([good, json.dumps({"ts": NOON}), '{"ts":', good]))
        log = from_file(path)
        assert (log.read, log.loaded, log.rejected) == (4, 2, 2)
        assert log.issues["row"].tolist() == [2, 3]
        assert log.evidence["source_row"].tolist() == [1, 4]

    def test_a_log_of_rejected_rows_only_still_has_every_column(self) -> None:
        log = load(["ts", "key", "value"], [None, "k", "v"])
        assert log.loaded == 0
        assert log.evidence.columns.tolist() == load(["ts", "key", "value"], [NOON, "k", "v"]).evidence.columns.tolist()
        assert log.badges == {}


class TestColumnMapping:
    def test_usual_names_are_recognised(self) -> None:
        columns = ["User ID", "createdAt", "slot", "val", "reward", "sentence", "message_id", "agent", "received-at"]
        assert dict(ColumnMapping.suggest(columns).columns) == {
            "ts": "createdAt",
            "user": "User ID",
            "key": "slot",
            "value": "val",
            "outcome": "reward",
            "text": "sentence",
            "source_ref": "message_id",
            "actor": "agent",
            "ingested_at": "received-at",
        }

    def test_the_exact_name_wins_over_a_synonym_that_stands_first(self) -> None:
        columns = ["timestamp", "slot", "answer", "VALUE", "value", "key", "ts"]
        assert dict(ColumnMapping.suggest(columns).columns) == {"ts": "ts", "key": "key", "value": "value"}

    def test_case_does_not_matter(self) -> None:
        assert dict(ColumnMapping.suggest(["TS", "Key", "VALUE"]).columns) == {
            "ts": "TS",
            "key": "Key",
            "value": "VALUE",
        }

    def test_the_command_line_spelling(self) -> None:
        assert dict(ColumnMapping.parse("key=Slot name, value=a=b").columns) == {"key": "Slot name", "value": "a=b"}

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("key", "FIELD=COLUMN"),
            ("key=", "FIELD=COLUMN"),
            ("kee=a", "no field named kee"),
            ("key=a,key=b", "mapped twice"),
        ],
    )
    def test_a_mapping_that_makes_no_sense_is_refused(self, text: str, problem: str) -> None:
        with pytest.raises(ImportRefused, match=problem):
            ColumnMapping.parse(text)

    def test_a_person_s_choice_replaces_the_guess(self) -> None:
        guess = ColumnMapping.suggest(["ts", "user", "slot", "value"])
        chosen = guess.updated(ColumnMapping.parse("key=value,value=slot", tz="Europe/Berlin"))
        assert dict(chosen.columns) == {"ts": "ts", "user": "user", "key": "value", "value": "slot"}
        assert chosen.tz == "Europe/Berlin"

    @pytest.mark.parametrize("tz", ["Mars/Olympus", "../etc/passwd", "America", ""])
    def test_an_unknown_zone_is_refused(self, tz: str) -> None:
        with pytest.raises(ImportRefused, match="no time zone"):
            ColumnMapping((), tz=tz)

    def test_a_file_without_a_key_column_is_refused_with_what_to_do(self) -> None:
        with pytest.raises(ImportRefused) as refusal:
            load(["ts", "user", "value"], [NOON, "u", "v"])
        message = str(refusal.value)
        assert "no column for: key." in message
        assert "Columns found: ts, user, value." in message
        assert "key=COLUMN" in message
        assert "{user}/{slot}" in message
        assert "template file" in message

    def test_columns_the_file_does_not_have_are_named(self) -> None:
        mapping = ColumnMapping.of({"ts": "ts", "key": "kee", "value": "value"})
        with pytest.raises(ImportRefused, match=r"does not have: kee\."):
            apply(table(["ts", "key", "value"], [NOON, "k", "v"]), mapping)

    def test_missing_lists_required_fields_only(self) -> None:
        mapping = ColumnMapping.suggest(["value"])
        assert mapping.missing(["value"]) == ["ts", "key"]
        assert ColumnMapping(mapping.columns, "{value}").missing(["value"]) == ["ts"]
        assert mapping.missing(["other"]) == ["ts", "key", "value"]


class TestKeyTemplate:
    def make(self, template: str, *rows: Sequence[str | None]) -> EvidenceLog:
        mapping = ColumnMapping.of({"ts": "ts", "user": "user", "value": "value"}, key_template=template)
        return apply(table(["ts", "user", "slot name", "value"], *rows), mapping)

    def test_it_joins_columns_and_text(self) -> None:
        log = self.make("{{{user}}}/{slot name}!", [NOON, "u1", " Seat ", "v"], [NOON, "u2", "meal", "v"])
        assert log.evidence["key"].tolist() == ["{u1}/Seat!", "{u2}/meal!"]

    @pytest.mark.parametrize("template", ["{slot name}", "slot {slot name}", "{user}{slot name}"])
    def test_a_row_with_an_empty_part_is_rejected(self, template: str) -> None:
        log = self.make(template, [NOON, "u1", None, "v"], [NOON, "u1", " ", "v"], [NOON, "u1", "seat", "v"])
        assert (log.loaded, log.rejected) == (1, 2)
        assert "column 'slot name' of the key template is empty" in log.issues["reason"][0]

    @pytest.mark.parametrize(
        "template",
        [
            "{user!r}",
            "{user:>10}",
            "{user:{slot}}",
            "{}",
            "{ }",
            "{user",
            "user}",
            "plain",
            "",
        ],
    )
    def test_anything_but_plain_column_names_is_refused(self, template: str) -> None:
        with pytest.raises(ImportRefused, match="key template"):
            ColumnMapping((), template)

    def test_a_column_it_names_must_exist(self) -> None:
        with pytest.raises(ImportRefused, match="does not have: slot"):
            self.make("{user}/{slot}", [NOON, "u1", "seat", "v"])


def test_the_template_file_loads_with_every_field(tmp_path: Path) -> None:
    path = tmp_path / "template.csv"
    path.write_text(TEMPLATE_CSV)
    assert open_log(path).columns == FIELDS[:10]
    log = from_file(path)
    assert (log.read, log.loaded, log.badges) == (4, 4, {})
    assert log.evidence["supports"].tolist() == [True, True, False, True]


def test_rejected_rows_are_written_without_formulas() -> None:
    issues = pd.DataFrame({"row": [3, 4], "reason": ["=cmd()", "fine"], "raw": ["@sum, x", None]})
    assert list(csv.reader(io.StringIO(issues_csv(issues)))) == [
        ["row", "reason", "raw"],
        ["3", "'=cmd()", "'@sum, x"],
        ["4", "fine", ""],
    ]


GARBAGE = st.one_of(
    st.binary(max_size=120),
    st.text(alphabet='ab,;"\n\r\t{}[]:0129-TZé ', max_size=120).map(str.encode),
    st.lists(
        st.sampled_from(
            [
                '{"ts":"2026-01-01","key":"k","value":"v"}',
                '{"ts":"2026-01-01","key":"k"}',
                '{"ts":1721469600,"key":1,"value":{}}',
                '{"ts":',
                "[]",
                "",
                "\ud7ff",
            ]
        ),
        max_size=6,
    ).map(lambda lines: "\n".join(lines).encode()),
    st.lists(
        st.sampled_from(
            ["2026-01-01,k,v", "2026-01-01,k,", '2026-01-01,"k",""', "2014-00-00,k,v", "a,b", "", 'x,"y,z']
        ),
        max_size=6,
    ).map(lambda lines: "\n".join(["ts,key,value", *lines]).encode()),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(GARBAGE, st.sampled_from(["auto", "csv", "jsonl", "json", "parquet"]))
def test_any_file_is_refused_or_accounted_for_to_the_row(tmp_path: Path, content: bytes, format: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    try:
        read = open_log(path, format)
        log = apply(read, ColumnMapping.suggest(read.columns))
    except ImportRefused:
        return
    assert log.read == log.loaded + log.rejected
    assert log.loaded == len(log.evidence)
    assert log.rejected == len(log.issues)
    lines = sum(1 for line in content.splitlines() if line.strip())
    assert log.read <= lines + 1
    assert log.evidence["seq"].tolist() == list(range(log.loaded))
