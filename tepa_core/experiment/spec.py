"""What to run, as plain names and numbers: a run is data, so the same spec always gives the same result."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tepa_core import __version__
from tepa_core.lifecycle import PRESETS, Thresholds
from tepa_core.methods import FALLBACKS, METHODS
from tepa_core.streams import StreamSpec, make_spec

#: Seeds lie below it: the tables hold them in 32 bits.
MAX_SEED: Final = 2**31


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One experiment: a stream, its seeds, the methods that play it, the thresholds of their precedents.

    Attributes
    ----------
    stream
        Id of the stream.
    seeds, first_seed
        How many seeds, and the first of them.
    methods
        Ids of methods, in the order of the registry.
    thresholds
        Of the precedents of tepa and tepa_norev.
    world
        Parameters of the stream that differ from its defaults, as sorted (name, value) pairs.
    fallback
        How tepa acts without an Active precedent; `build` takes the stream's own when none is named.
    """

    stream: str
    seeds: int = 50
    first_seed: int = 0
    methods: tuple[str, ...] = tuple(METHODS)
    thresholds: Thresholds = PRESETS["default"]
    world: tuple[tuple[str, float], ...] = ()
    fallback: str = "candidate"

    @classmethod
    def build(
        cls,
        stream: str,
        *,
        seeds: int = 50,
        first_seed: int = 0,
        methods: Sequence[str] | None = None,
        thresholds: Thresholds | None = None,
        world: Mapping[str, float] | None = None,
        fallback: str | None = None,
    ) -> RunSpec:
        """Check what a person asked for and return the spec.

        Raises
        ------
        ValueError
            If anything is unknown or out of range; the message says what there is.
        """
        spec = make_spec(stream, world or {})
        if not 1 <= seeds <= 10_000:
            raise ValueError(f"seeds must be from 1 to 10000, not {seeds}")
        if first_seed < 0:
            raise ValueError(f"first_seed must be at least 0, not {first_seed}")
        if first_seed > MAX_SEED - seeds:
            raise ValueError(f"first_seed must be at most {MAX_SEED - seeds:,}, not {first_seed}")
        unknown = [method for method in methods or () if method not in METHODS]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: no such method; the methods are {', '.join(METHODS)}")
        chosen = tuple(m for m in METHODS if methods is None or m in methods)
        if not chosen:
            raise ValueError(f"choose at least one method of {', '.join(METHODS)}")
        fallback = spec.fallback if fallback is None else fallback
        if fallback not in FALLBACKS:
            raise ValueError(f"fallback must be {' or '.join(FALLBACKS)}, not {fallback!r}")
        default = type(spec)()
        differs = tuple(
            sorted(
                (field.name, getattr(spec, field.name))
                for field in dataclasses.fields(spec)  # type: ignore[arg-type]
                if getattr(spec, field.name) != getattr(default, field.name)
            )
        )
        return cls(stream, seeds, first_seed, chosen, thresholds or PRESETS["default"], differs, fallback)

    @property
    def stream_spec(self) -> StreamSpec:
        """Return the parameters of the stream."""
        return make_spec(self.stream, dict(self.world))

    @property
    def title(self) -> str:
        """Name of the stream for people."""
        return self.stream_spec.title

    @property
    def asserts(self) -> bool:
        """Evidence states which value is right, instead of being the outcome of what was done."""
        return self.stream_spec.asserts

    @property
    def run_id(self) -> str:
        """A stable, readable id: the same spec under the same version of the program is the same run."""
        content = json.dumps([self.as_dict(), __version__], sort_keys=True)
        return f"{self.stream}-{self.seeds}x-{hashlib.sha256(content.encode()).hexdigest()[:8]}"

    def as_dict(self) -> dict[str, Any]:
        """Return the spec as JSON-ready names and numbers."""
        return {
            "stream": self.stream,
            "seeds": self.seeds,
            "first_seed": self.first_seed,
            "methods": list(self.methods),
            "thresholds": dataclasses.asdict(self.thresholds),
            "world": dict(self.world),
            "fallback": self.fallback,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> RunSpec:
        """Read back what `as_dict` wrote."""
        return cls.build(
            content["stream"],
            seeds=content["seeds"],
            first_seed=content["first_seed"],
            methods=content["methods"],
            thresholds=Thresholds(**content["thresholds"]),
            world=content["world"],
            fallback=content["fallback"],
        )

    def command(self) -> str:
        """Return the command that repeats this run."""
        parts = [f"python -m tepa_core run {self.stream} --seeds {self.seeds}"]
        if self.first_seed:
            parts.append(f"--first-seed {self.first_seed}")
        if self.methods != tuple(METHODS):
            parts.append(f"--methods {','.join(self.methods)}")
        changed = [
            f"{field.name}={getattr(self.thresholds, field.name)}"
            for field in dataclasses.fields(Thresholds)
            if getattr(self.thresholds, field.name) != field.default
        ]
        if changed:
            parts.append("--set " + " ".join(changed))
        if self.world:
            parts.append("--world " + " ".join(f"{name}={value}" for name, value in self.world))
        if self.fallback != self.stream_spec.fallback:
            parts.append(f"--fallback {self.fallback}")
        return " ".join(parts)
