"""Every field of a form says what it means, in the words of its class."""

from __future__ import annotations

import dataclasses

import pytest

from tepa_core.lifecycle import Thresholds
from tepa_core.streams import STREAMS
from tepa_core.ui.spec_form import field_help


@pytest.mark.parametrize("kind", [Thresholds, *STREAMS.values()], ids=lambda kind: kind.__name__)
def test_every_field_has_its_meaning(kind: type) -> None:
    meaning = field_help(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    assert [name for name in names if not meaning.get(name)] == []


def test_fields_described_together_share_their_meaning_and_sections_do_not_leak() -> None:
    meaning = field_help(Thresholds)
    assert meaning["alpha"] == meaning["beta"] == "Beta prior of the posterior (counts, above 0)."
    assert meaning["revokes"] == "False switches every revocation off: TEPA-NoRev."


def test_a_class_without_a_description_has_none() -> None:
    assert field_help(int) == {}
