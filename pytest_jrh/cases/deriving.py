"""A case changed as a probe does it: pure, but for the probes that ask models."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.probe import Base, Derived
from pytest_jrh.core.edits import decisive_turns
from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.model import Case, PerturbationOutcome
from pytest_jrh.core.transcript import render_transcript

if TYPE_CHECKING:
    from pytest_jrh.cases.probes.probe import Probe, ProbeBench, ProbeSettings, Variant
    from pytest_jrh.core.model import CaseSpec


_NO_STYLE = "the judge is code, which gets messages: there is no layout of their text to change"
_NO_TEXT = "the judge reads a text, in which nothing has changed: it shows no ids"


def _as_text(transcript: Base | Derived) -> str:
    return render_transcript(transcript.messages, show_reasoning=True)


def changed(base: Case, spec: CaseSpec, derived: Derived) -> Case:
    """The case of a probe: its base case with what the probe has made of it."""
    rubric = derived.rubric or base.rubric
    levels = rubric.score_levels if base.mode == "ordinal" else ()
    return Case(
        spec=spec,
        rubric=rubric,
        run=base.run,
        outcome=PerturbationOutcome(
            derived.messages,
            verification=base.outcome.verification,
            confirmed=base.outcome.confirmed,
        ),
        expected=base.expected if derived.expected is None else derived.expected,
        verified=base.verified,
        mode=base.mode,
        objective=base.objective,
        levels=base.levels if derived.rubric is None else levels,
        label=base.label,
        reworded=base.reworded,
        altered=base.altered,
        style=derived.style,
    )


@dataclass(frozen=True, slots=True)
class Derivation:
    """What a probe makes of a base case for one spec."""

    probe: Probe
    variant: Variant
    base: Base
    seed: str

    @classmethod
    def of(cls, base: Case, spec: CaseSpec, settings: ProbeSettings) -> Derivation:
        """Find the variant that the spec names."""
        # Of runs without a label no probe makes a case.
        assert base.expected is not None
        probe = PROBES[spec.test]
        variant = next(
            variant for variant in probe.variants(settings) if variant.name == spec.variant
        )
        return cls(
            probe,
            variant,
            Base(
                messages=base.messages,
                expected=base.expected,
                mode=base.mode,
                levels=base.levels,
                rubric=base.rubric,
                decisive=decisive_turns(base.outcome.edits, len(base.messages)),
            ),
            # The same in every process: what a judge of a panel sees, all of them see.
            f"{settings.seed}:{generation_id(spec)}",
        )

    @property
    def _random(self) -> Random:
        """The same draws each time that the case is made."""
        return Random(self.seed)  # noqa: S311 - reproducible, not secret

    def made(self, *, reads_text: bool) -> Derived:
        """The changed transcript; raises `NoVerdictCase` where the variant does not apply."""
        assert self.probe.derive is not None
        derived = self.probe.derive(self.base, self.variant, self._random)
        if derived.style and not reads_text:
            raise NoVerdictCase("probe_not_applicable", _NO_STYLE)
        if reads_text and not derived.style and _as_text(derived) == _as_text(self.base):
            raise NoVerdictCase("probe_not_applicable", _NO_TEXT)
        return derived

    async def asked(self, bench: ProbeBench) -> Derived:
        """The changed transcript, where models make it; raises `NoVerdictCase` too."""
        assert self.probe.ask is not None
        return await self.probe.ask(bench, self.base, self.variant, self._random)
