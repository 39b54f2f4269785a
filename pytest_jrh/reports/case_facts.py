"""The facts of a case as people read them, each declared once: a column of the HTML report's table,
or a line of the case in HTML and Markdown. The ledger has all that is known of a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.model import UNSCORED
from pytest_jrh.core.reasoning import REASONING_DISAGREES, reasoning_disagrees
from pytest_jrh.core.text import dollars
from pytest_jrh.reports.evidence import review_text
from pytest_jrh.reports.topics import not_shown_line, state_text

if TYPE_CHECKING:
    from pytest_jrh.core.model import Case, CaseResult
    from pytest_jrh.reports.evidence import WhoSaid
    from pytest_jrh.reports.session import Session


_CHANGE_KINDS = {"regression": "bad", "fix": "good"}


@dataclass(frozen=True, slots=True)
class ReportedCase:
    """A result, and what else a report has read of its case.

    `case` is the made one. `change` is what has become of the verdict since the baseline, and
    `who_said` knows what everybody else gives to it.
    """

    result: CaseResult
    case: Case | None = None
    change: str = ""
    who_said: WhoSaid | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact about a case: `text` is what the column with this `title` says, empty where there is
    nothing to say, and `meaning` explains it.

    The HTML report's table has it in sessions for which it is `shown`, and may be `filtered` by it.
    `key` is the column's name in addresses, where that is not the title, and `kind` the colour of
    its pill.
    """

    title: str
    meaning: str
    text: Callable[[ReportedCase], str]
    number: bool = False
    filtered: bool = False
    shown: Callable[[Session], bool] = lambda _: True
    kind: Callable[[ReportedCase], str] = lambda _: ""
    key: str = ""

    @property
    def page_name(self) -> str:
        """The name of its column in addresses of the page."""
        return self.key or self.title

    @property
    def heading(self) -> dict[str, Any]:
        """What the page's template needs of the column."""
        return {
            "name": self.page_name,
            "title": self.title,
            "number": self.number,
            "meaning": self.meaning,
        }


def case_lines(reported: ReportedCase) -> Iterator[tuple[str, str]]:
    """The lines of a case, as title and text."""
    if line := not_shown_line(reported.result):
        yield "Shown to the judge", line
    who_said = reported.who_said
    if who_said and (sentence := who_said.sentence(reported.result, reported.case)):
        yield "Who says what", sentence
    if text := review_text(reported.result, reported.case):
        yield "Reviewed by a person", f"{text}."


def page_columns(session: Session) -> list[Fact]:
    """The columns of the HTML report's table, in order."""
    return [fact for fact in FACTS if fact.shown(session)]


def _outcome_kind(reported: ReportedCase) -> str:
    if reported.result.outcome in UNSCORED:
        return "warn"
    return {"agree": "good", "disagree": "bad"}.get(reported.result.outcome, "plain")


def _run(reported: ReportedCase) -> str:
    spec = reported.result.spec
    epoch = "" if spec.epoch == 1 else f", epoch {spec.epoch}"
    target = "" if spec.target_score is None else f", score {spec.target_score}"
    return f"{spec.run_id}{epoch}{target}"


def _changed_by(reported: ReportedCase) -> str:
    spec = reported.result.spec
    return f"{spec.variant} of {spec.base}" if spec.derived else ""


def _right(reported: ReportedCase) -> str:
    label = reported.result.label if reported.case is None else reported.case.expected
    return "" if label is None else str(label)


def _given(reported: ReportedCase) -> str:
    result = reported.result
    if result.score is None:
        return "a tie" if result.repeated else ""
    return str(result.score)


def _reviewed(reported: ReportedCase) -> str:
    review = None if reported.case is None else reported.case.review
    return reported.result.extra.review or ("" if review is None else review.action)


def _cost(reported: ReportedCase) -> str:
    spending = reported.result.spending.all
    return "" if spending.unpriced else dollars(spending.cost)


def _shown(reported: ReportedCase) -> str:
    """One of few words, by which cases can be picked."""
    result = reported.result
    return "not shown" if not_shown_line(result) else state_text(result)


FACTS: tuple[Fact, ...] = (
    Fact(
        "outcome",
        "What the case came to: agree where the judge gave the right score.",
        lambda reported: reported.result.outcome,
        filtered=True,
        kind=_outcome_kind,
    ),
    Fact(
        "since the baseline",
        "What has become of the verdict since the baseline was written; by flicker where the judge "
        "is the same as then.",
        lambda reported: reported.change,
        filtered=True,
        shown=lambda session: any(
            decision.comparison is not None for decision in session.decisions.values()
        ),
        kind=lambda reported: _CHANGE_KINDS.get(reported.change.partition(" (")[0], ""),
        key="change",
    ),
    Fact(
        "suite",
        "The config that the case belongs to.",
        lambda reported: reported.result.spec.suite,
        filtered=True,
        shown=lambda session: len({result.spec.suite for result in session.results}) > 1,
    ),
    Fact(
        "rubric",
        "The criterion that the case is judged by.",
        lambda reported: reported.result.spec.rubric_id,
        filtered=True,
    ),
    Fact(
        "test",
        "How the case was made: which kind of test it belongs to.",
        lambda reported: reported.result.spec.test,
        filtered=True,
    ),
    Fact("run", "The agent's run that the case was made of.", _run),
    Fact(
        "changed by",
        "What a probe has changed in a case, and of which test that is.",
        _changed_by,
        shown=lambda session: any(result.spec.derived for result in session.results),
        key="variant",
    ),
    Fact(
        "judge",
        "The member of the panel that judged.",
        lambda reported: reported.result.judge,
        filtered=True,
        shown=lambda session: any(result.judge for result in session.results),
    ),
    Fact(
        "reasoning",
        "Whether the judge's reasoning ends in another score than it gave.",
        lambda reported: REASONING_DISAGREES if reasoning_disagrees(reported.result) else "",
        filtered=True,
        shown=lambda session: any(map(reasoning_disagrees, session.results)),
        kind=lambda _: "warn",
    ),
    Fact(
        "right",
        "The score that a right judge gives: in a binary suite 1 where the rubric is violated.",
        _right,
        number=True,
        filtered=True,
    ),
    Fact(
        "given",
        "The score that the judge gave; of repeats the most frequent one.",
        _given,
        number=True,
        filtered=True,
    ),
    Fact(
        "shown",
        "Whether what the judge sent holds the edited turns, or all turns of a run as it is.",
        _shown,
        filtered=True,
        shown=lambda session: any(map(not_shown_line, session.results)),
        kind=lambda reported: "warn" if not_shown_line(reported.result) else "",
    ),
    Fact(
        "flicker",
        "Whether repeats of the judge on the same case gave different scores.",
        lambda reported: "flickers" if reported.result.flickers else "",
        filtered=True,
        shown=lambda session: any(result.repeated for result in session.results),
        kind=lambda _: "warn",
    ),
    Fact(
        "review",
        "What a person decided about the case on the review page.",
        _reviewed,
        filtered=True,
        shown=lambda session: any(result.extra.review for result in session.results),
    ),
    Fact(
        "cost",
        "What the calls of the case cost, replayed ones included.",
        _cost,
        number=True,
    ),
)
