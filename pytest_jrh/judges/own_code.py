"""What judges of own code have in common: one that is not a prompt is one of these (rule Q1)."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_jrh.judges.judge import OwnCode
from pytest_jrh.judges.own_keys import OwnCodeKeys, Scale
from pytest_jrh.stages.stage import CallRange

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_jrh.judges.judge import JudgeSettings, Submit
    from pytest_jrh.judges.judged_case import JudgedCase
    from pytest_jrh.judges.own_source import OwnSource
    from pytest_jrh.models import StageModel, Verdict

DEFAULT_TIMEOUT = 120.0
_SHORT = 12
_UNKNOWN_CALLS = CallRange(0, 1)


@dataclass(frozen=True, slots=True)
class OwnCodeJudge(ABC):
    """A judge whose requests are recorded as they are sent, by whatever code sends them."""

    settings: JudgeSettings

    @property
    @abstractmethod
    def label(self) -> str:
        """What reports and messages call it."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 over what makes it this judge; see `fingerprint_of`."""

    @property
    def earlier_fingerprint(self) -> str:
        """The fingerprint that earlier versions of this package gave it, which looked at less of
        its code; empty where they gave it the same.
        """
        return ""

    def code_part(self, source: OwnSource) -> str:
        """What stands for its code in its fingerprint: nothing where its `version` does."""
        return source.digest if self._keys.version is None else ""

    @property
    def name(self) -> str | None:
        """Its name in a panel."""
        return self.settings.name

    @property
    def models(self) -> tuple[StageModel, ...]:
        """None that is known: it asks whom it likes."""
        return ()

    @property
    def calls(self) -> CallRange:
        """Its requests are not known, so a verdict counts as one call at most."""
        return _UNKNOWN_CALLS

    @property
    def runs_code(self) -> bool:
        """Its requests are recorded as those of code are, and their price is not known."""
        return True

    @property
    def lacks(self) -> str:
        """Nothing that is known: its code asks whom it likes."""
        return ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """None that is known: its code has them."""
        return ()

    @property
    def timeout(self) -> float:
        """How long one verdict may take, in seconds."""
        return self.settings.stage.timeout or DEFAULT_TIMEOUT

    def scale(self, default: Mapping[str, int] | None = None) -> Scale:
        """How its values become scores; `default` is the map where its section has none."""
        return Scale(f"The judge {self.label}", self.settings.score_map or default)

    def own_code(
        self,
        case: JudgedCase,
        call: Callable[[Submit], object],
        read: Callable[[Any], Verdict],
        *,
        is_async: bool = True,
    ) -> OwnCode:
        """What the engine is to run for a verdict on a case.

        `call` runs the code, and `read` makes a verdict of what it gives, or raises `Unscored`.
        """
        section = self._keys
        whole = json.dumps(asdict(case), sort_keys=True, default=str)
        digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_SHORT]
        earlier = "" if section.version is not None else self.earlier_fingerprint[:_SHORT]
        replay = "verdict" if section.version is not None else "run"
        return OwnCode(
            who=self.scale().who,
            call=call,
            is_async=is_async,
            read=read,
            timeout=self.timeout,
            scores=case.scores,
            key={"judge": section.version or self.fingerprint[:_SHORT], "case": digest},
            from_head=(section.replay or replay) == "verdict",
            earlier_key={"judge": earlier, "case": digest} if earlier else {},
        )

    def fingerprint_of(self, kind: str, parts: Mapping[str, Any]) -> str:
        """SHA-256 over the parts of a judge of this kind, its map and its model's settings."""
        section, stage = self._keys, self.settings.stage
        known = {
            "kind": kind,
            **parts,
            "version": section.version,
            "score_map": self.settings.score_map,
            "model": stage.model,
            "system_prompt": stage.system_prompt,
            "temperature": stage.temperature,
            "max_tokens": stage.max_tokens,
            "show_reasoning": self.settings.show_reasoning,
        }
        return hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode()).hexdigest()

    @property
    def _keys(self) -> OwnCodeKeys:
        section = self.settings.section
        assert isinstance(section, OwnCodeKeys)
        return section
