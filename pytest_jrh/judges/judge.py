"""What a judge of a suite owns, whatever it is; the engine knows no more of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pytest_jrh.models import Case, Complete, StageModel, Verdict


class SuiteJudge(Protocol):
    """A judge under test; `name` is None where the suite has a single one (rule E4)."""

    @property
    def name(self) -> str | None: ...

    @property
    def fingerprint(self) -> str:
        """What says that two sessions asked the same judge (rule J2)."""

    @property
    def models(self) -> tuple[StageModel, ...]:
        """The models that it asks, as far as that is known before it does."""

    async def verdict(self, case: Case, complete: Complete) -> Verdict:
        """Judge a case; what it asks of a model goes through `complete`, which records it.

        Raises `Unscored` where no score on offer comes back.
        """
