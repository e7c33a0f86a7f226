from __future__ import annotations

import dataclasses
import random
import sys
from collections.abc import Callable
from types import FrameType

import numpy as np
import pytest

from tepa_core.experiment import play
from tepa_core.lifecycle import Thresholds
from tepa_core.methods import METHODS, Experience, MethodEntry, Recall, Setting, SupportTrials
from tepa_core.methods.append_only import AppendOnly
from tepa_core.methods.base import NOTHING, Method
from tepa_core.methods.checks import Check, all_checks
from tepa_core.methods.last_write_wins import LastWriteWins
from tepa_core.methods.oracle_reset import OracleReset
from tepa_core.streams import ControlledSpec, Stream

CHECKS = all_checks()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("entry", METHODS.values(), ids=lambda entry: entry.id)
def test_every_method_passes_the_battery(entry: MethodEntry, check: Check) -> None:
    check(entry)


class Peeks(LastWriteWins):
    """Looks for the truth in whatever calls it."""

    def recall(self, t: int, key: int) -> Recall:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            for name in ("world", "stream"):
                if hasattr(frame.f_locals.get(name), "truth"):
                    truth = frame.f_locals[name].truth[t]
                    value = int(truth) if truth.ndim == 0 else int(truth[key])
                    return Recall(value, True) if value >= 0 else NOTHING
            frame = frame.f_back
        return NOTHING


class Counts(AppendOnly):
    """Looks for the number of the phase in whatever calls it."""

    def recall(self, t: int, key: int) -> Recall:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and "world" not in frame.f_locals:
            frame = frame.f_back
        if frame is None or not len(self):
            return NOTHING
        return Recall(int(frame.f_locals["world"].phase[t]) % 3, True)


class Flips(LastWriteWins):
    """Is in a random mood."""

    def recall(self, t: int, key: int) -> Recall:
        return super().recall(t, key) if random.random() < 0.5 else NOTHING


class Shares(LastWriteWins):
    """Keeps what it knows on the class."""

    common: dict[int, int] = {}  # noqa: RUF012 - the mistake that is to be found

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.values = self.common


class Entangled(LastWriteWins):
    """Its copies are itself."""

    def __deepcopy__(self, memo: dict[int, object]) -> Entangled:
        return self


class Forgets(LastWriteWins):
    """Loses its memory when it is written out."""

    def __reduce__(self) -> tuple[type[LastWriteWins], tuple[Setting]]:
        return type(self), (self.setting,)


class WearsOut(LastWriteWins):
    """Forgets what it is asked about."""

    def recall(self, t: int, key: int) -> Recall:
        value = self.values.pop(key, None)
        return NOTHING if value is None else Recall(value, True)


class OutOfRange(LastWriteWins):
    """Offers the number of the task."""

    def recall(self, t: int, key: int) -> Recall:
        return Recall(t, True) if self.values else NOTHING


class Numpy(LastWriteWins):
    """Offers numbers that are no int."""

    def recall(self, t: int, key: int) -> Recall:
        value = super().recall(t, key).value
        return NOTHING if value is None else Recall(np.int64(value), True)  # type: ignore[arg-type]


class Prejudiced(LastWriteWins):
    """Knows something before it has learned anything."""

    def recall(self, t: int, key: int) -> Recall:
        return Recall(self.values.get(key, 0), True)


class SaysNothingLoudly(LastWriteWins):
    """Claims to have retrieved nothing."""

    def recall(self, t: int, key: int) -> Recall:
        return super().recall(t, key)._replace(retrieved=True)


class MakesUp(LastWriteWins):
    """Retrieves the last value there is."""

    def recall(self, t: int, key: int) -> Recall:
        return Recall(self.setting.n_values - 1, True) if self.values else NOTHING


class Repeats(LastWriteWins):
    """Says everything twice."""

    def active(self, key: int) -> tuple[int, ...]:
        return super().active(key) * 2


class Labels(LastWriteWins):
    """Names values by text."""

    def active(self, key: int) -> tuple[int, ...]:
        return tuple(str(value) for value in super().active(key))  # type: ignore[misc]


class Invents(LastWriteWins):
    """Finds a value where there is none."""

    def active(self, key: int) -> tuple[int, ...]:
        return super().active(key) or (0,)


class NeverEmpty(LastWriteWins):
    """Counts one too many."""

    def __len__(self) -> int:
        return len(self.values) + 1


class Hides(LastWriteWins):
    """Has no size, and yet retrieves."""

    def __len__(self) -> int:
        return 0


CONTROLS: list[tuple[Callable[[Setting], Method], bool, str, str]] = [
    (Peeks, False, "check_blind_to_phase_and_truth", "acts on the truth"),
    (Counts, False, "check_blind_to_phase_and_truth", "acts on the number of a phase"),
    (OracleReset, False, "check_blind_to_phase_and_truth", "not marked as an oracle"),
    (AppendOnly, True, "check_blind_to_phase_and_truth", "takes no note of phase boundaries"),
    (Flips, False, "check_idempotent", "other randomness"),
    (Shares, False, "check_instances_are_independent", "knows what another has learned"),
    (Entangled, False, "check_instances_are_independent", "a deep copy"),
    (Forgets, False, "check_pickles", "pickled"),
    (WearsOut, False, "check_recall_changes_nothing", "two answers"),
    (OutOfRange, False, "check_offers_known_values", "a whole number from 0 to 2"),
    (Numpy, False, "check_offers_known_values", "a whole number from 0 to 2"),
    (Prejudiced, False, "check_offers_known_values", "before it has learned anything"),
    (SaysNothingLoudly, False, "check_offers_known_values", "offers"),
    (MakesUp, False, "check_retrieves_what_it_was_given", "no evidence has ever named"),
    (Repeats, False, "check_active", "twice"),
    (Labels, False, "check_active", "a whole number from 0 to 2"),
    (Invents, False, "check_active", "whose size is 0"),
    (NeverEmpty, False, "check_size", "starts with a size of 1, not 0"),
    (Hides, False, "check_size", "whose size is 0"),
]


@pytest.mark.parametrize(("make", "oracle", "name", "sentence"), CONTROLS, ids=lambda v: getattr(v, "__name__", None))
def test_a_method_that_cheats_fails(make: Callable[[Setting], Method], oracle: bool, name: str, sentence: str) -> None:
    (check,) = [check for check in CHECKS if check.__name__ == name]
    with pytest.raises(AssertionError, match=sentence):
        check(MethodEntry("toy", make, "cheats", oracle=oracle))


def test_every_check_has_a_control() -> None:
    assert {check.__name__ for check in CHECKS} == {name for _, _, name, _ in CONTROLS}


def scrambled(stream: Stream, seed: int) -> Stream:
    """The same tasks, keys, base actions and outcomes; phases, their names and the truth are shuffled."""
    rng = np.random.Generator(np.random.PCG64(seed))
    return dataclasses.replace(
        stream,
        phase=rng.permutation(stream.phase),
        phase_names=tuple(reversed(stream.phase_names)),
        truth=rng.permuted(stream.truth, axis=1),
    )


def setting(stream: Stream) -> Setting:
    assert stream.trial_support is not None
    trials = SupportTrials(stream.trial_support)
    return Setting(stream.keys, len(stream.values), stream.asserted is not None, Thresholds(), trials=trials)


@pytest.mark.parametrize("entry", METHODS.values(), ids=lambda entry: entry.id)
def test_the_agent_loop_hides_phase_and_truth(entry: MethodEntry) -> None:
    reacted = False
    for seed in range(3):
        stream = ControlledSpec(key_noise=0.1).make(seed)
        other = scrambled(stream, seed)
        np.testing.assert_array_equal(stream.outcome, other.outcome)
        plain, blind = (play(s, entry.make(setting(s))).action for s in (stream, other))
        reacted |= bool((plain != blind).any())
    assert reacted == entry.oracle


def test_the_agent_loop_would_show_a_method_that_peeks() -> None:
    stream = ControlledSpec().make(0)
    other = scrambled(stream, 0)
    plain, blind = (play(s, Peeks(setting(s))).action for s in (stream, other))
    assert (plain != blind).any()


def test_experience_and_setting_carry_neither_phase_nor_truth() -> None:
    named = {*Experience._fields, *(field.name for field in dataclasses.fields(Setting))}
    assert not {name for name in named if "phase" in name or "truth" in name or "boundar" in name}
