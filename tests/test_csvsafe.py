import csv
import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tepa_core.csvsafe import to_safe_csv


def cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_cell_that_starts_like_a_formula_gets_an_apostrophe(start: str) -> None:
    text = to_safe_csv(pd.DataFrame({"reason": [f"{start}HYPERLINK(1)"]}))
    assert cells(text) == [["reason"], [f"'{start}HYPERLINK(1)"]]


def test_column_names_are_guarded_too() -> None:
    assert to_safe_csv(pd.DataFrame({"=cmd": ["x"]})) == "'=cmd\r\nx\r\n"


def test_numbers_stay_numbers() -> None:
    frame = pd.DataFrame({"mpi": [-0.5, 0.25], "n": [-1, 2]})
    assert to_safe_csv(frame) == "mpi,n\r\n-0.5,-1\r\n0.25,2\r\n"


def test_ordinary_text_and_missing_cells_are_untouched() -> None:
    frame = pd.DataFrame({"a": ["it's 1-2", "a=b"], "b": [None, "x"]})
    assert to_safe_csv(frame) == "a,b\r\nit's 1-2,\r\na=b,x\r\n"


def test_categories_and_columns_of_one_name_are_guarded() -> None:
    frame = pd.concat([pd.Series(["=1"], dtype="category"), pd.Series(["=2"])], axis=1)
    frame.columns = ["a", "a"]
    assert to_safe_csv(frame) == "a,a\r\n'=1,'=2\r\n"


def test_the_table_given_is_not_changed() -> None:
    frame = pd.DataFrame({"a": ["=1"]})
    to_safe_csv(frame)
    assert frame["a"].tolist() == ["=1"]


@given(st.lists(st.text(alphabet="=+-@\t\r\n,\"'ab ", min_size=1), min_size=1, max_size=5))
def test_no_cell_a_reader_finds_is_a_formula_and_no_text_is_lost(texts: list[str]) -> None:
    rows = cells(to_safe_csv(pd.DataFrame({"n": range(len(texts)), "text": texts})))
    assert len(rows) == len(texts) + 1
    for (_, found), text in zip(rows[1:], texts, strict=True):
        assert found[0] not in "=+-@\t\r"
        assert found in (text, "'" + text)
