"""The facts of a case, each declared once, with the reports that have it: a column of the tables
of results (CSV, XLSX), a column of the HTML report's table, a line of the case in HTML and
Markdown. The JSON lines of results hold all fields of `CaseResult`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pytest_jrh.core.ids import perturbed_idx
from pytest_jrh.core.model import (
    SHORT_NAMES,
    UNSCORED,
)
from pytest_jrh.core.reasoning import REASONING_DISAGREES, reasoning_disagrees
from pytest_jrh.core.text import dollars
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.reports.evidence import review_text
from pytest_jrh.reports.topics import not_shown_line, state_text

if TYPE_CHECKING:
    from pytest_jrh.core.model import Case, CaseResult, Edit, Rubric, ScoreLevel, TestName
    from pytest_jrh.reports.evidence import WhoSaid
    from pytest_jrh.reports.session import Session
    from pytest_jrh.store.tables import TableRow


Tables: TypeAlias = Literal["", "all", "repeats", "probes", "shown"]
_CHANGE_KINDS = {"regression": "bad", "fix": "good"}
_DECIDED = ("accepted", "edited", "rejected")


@dataclass(frozen=True, slots=True)
class ReportedCase:
    """A result, and what else a report has read of its case.

    `case` is the made one, and `transcript` what the judge saw. `rubric` is another one that the
    judge had. `change` is what has become of the verdict since the baseline, and `who_said` knows
    what everybody else gives to it.
    """

    result: CaseResult
    case: Case | None = None
    transcript: str | None = None
    rubric: Rubric | None = None
    change: str = ""
    who_said: WhoSaid | None = None

    def of_case(self, value: Callable[[Case], Any]) -> Any:
        """What a fact says of the made case; nothing where there is none."""
        return None if self.case is None else value(self.case)


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact about a case: `value` as files hold it, and `text` as people read it, where that is
    another.

    `name` is its column in the `tables` of results: all, those of suites that judge each case more
    than once, those of probes, those of judges of which it is known what they sent, or none. One
    with a `title`, which `meaning` explains, is shown to people: in a column of the HTML report's
    table, of sessions for which it is `shown`, or where `is_line` in a line of the case. `key` is
    the column's name in addresses, where that is not the title, and `kind` the colour of its pill.
    """

    name: str
    value: Callable[[ReportedCase], Any]
    title: str = ""
    meaning: str = ""
    text: Callable[[ReportedCase], str] | None = None
    is_line: bool = False
    number: bool = False
    filtered: bool = False
    shown: Callable[[Session], bool] = lambda _: True
    kind: Callable[[ReportedCase], str] = lambda _: ""
    key: str = ""
    tables: Tables = "all"

    def shown_text(self, reported: ReportedCase) -> str:
        """The fact as people read it; empty where there is nothing to say."""
        if self.text is not None:
            return self.text(reported)
        value = self.value(reported)
        return "" if value is None else str(value)

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
    for fact in FACTS:
        text = fact.shown_text(reported) if fact.is_line else ""
        if text:
            yield fact.title, text


def page_columns(session: Session) -> list[Fact]:
    """The columns of the HTML report's table, in order."""
    columns = [fact for fact in FACTS if fact.title and not fact.is_line and fact.shown(session)]
    order = _PAGE_ORDER.split()
    return sorted(columns, key=lambda fact: (*order, fact.page_name).index(fact.page_name))


def _mode(test: TestName) -> str:
    """What RAND calls a kind of case; a probe is none of its."""
    return SHORT_NAMES.get(test, test)


def result_facts(*, repeated: bool, derived: bool, shown: bool = False) -> list[Fact]:
    """The facts with a column in a table of results: the most needed first, RAND's, then ours."""
    tables = {"": False, "all": True, "repeats": repeated, "probes": derived, "shown": shown}
    facts = [fact for fact in FACTS if tables[fact.tables]]
    return sorted(facts, key=lambda fact: (*_FIRST_COLUMNS, fact.name).index(fact.name))


def result_row(
    result: CaseResult,
    case: Case | None,
    *,
    transcript: str | None = None,
    rubric: Rubric | None = None,
) -> TableRow:
    """Describe a result in RAND's columns, and ours; a case that was not made has no transcript.

    `rubric` is what the judge had, where its text is another than the case was made for.

    `autograder_reasoning` holds the judge's reasoning, else the reason of the outcome; `cost` is
    empty where a call has no known price.
    """
    if case is not None and transcript is None:
        transcript = render_transcript(case.messages)
    reported = ReportedCase(result, case, transcript, rubric)
    facts = result_facts(
        repeated=result.repeated, derived=result.spec.derived, shown=result.extra.shown is not None
    )
    return {fact.name: fact.value(reported) for fact in facts}


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


def _expected(reported: ReportedCase) -> int | None:
    return reported.result.label if reported.case is None else reported.case.expected


def _given(reported: ReportedCase) -> str:
    result = reported.result
    if result.score is None:
        return "a tie" if result.repeated else ""
    return str(result.score)


def _cost(reported: ReportedCase) -> float | None:
    spending = reported.result.spending.all
    return None if spending.unpriced else spending.cost


def _cost_text(reported: ReportedCase) -> str:
    cost = _cost(reported)
    return "" if cost is None else dollars(cost)


def _reasoning(reported: ReportedCase) -> str | None:
    result = reported.result
    return result.reasoning or (None if result.outcome == "agree" else result.why.text)


def _minority_reasoning(reported: ReportedCase) -> str | None:
    minority = reported.result.minority
    return None if minority is None else minority.reasoning


def _is_reviewed(reported: ReportedCase) -> bool:
    in_record = reported.case is not None and reported.case.review is not None
    return reported.result.extra.review in _DECIDED or in_record


def _decision(reported: ReportedCase) -> str | None:
    return reported.result.extra.review or reported.of_case(_case_decision)


def _shown_word(result: CaseResult) -> str:
    """One of few words, by which cases can be picked."""
    return "not shown" if not_shown_line(result) else state_text(result)


def _who_said(reported: ReportedCase) -> str:
    if reported.who_said is None:
        return ""
    return reported.who_said.sentence(reported.result, reported.case)


def _review_line(reported: ReportedCase) -> str:
    text = review_text(reported.result, reported.case)
    return f"{text}." if text else ""


def _rubric_text(reported: ReportedCase) -> str | None:
    """The text that the judge had, which may be another than the case was made for."""
    rubric = reported.rubric or (reported.case and reported.case.rubric)
    return rubric.instructions if rubric else None


def _levels(reported: ReportedCase) -> str | None:
    """The scale that the judge had, a line each."""
    if reported.rubric is not None:
        return _scale(reported.rubric.score_levels)
    return None if reported.case is None else _scale(reported.case.levels)


def _request(case: Case) -> str:
    return f"{case.rubric.id}: {case.rubric.instructions}"


def _scale(levels: Iterable[ScoreLevel]) -> str:
    return "\n".join(f"{level.score}: {level.label}" for level in levels)


def _turns(case: Case, text: Callable[[Edit], str]) -> str:
    return "\n\n".join(f"[{edit.message_index}] {text(edit)}" for edit in case.outcome.edits)


def _before(case: Case) -> str:
    return _turns(case, lambda edit: edit.original_content)


def _after(case: Case) -> str:
    return _turns(case, lambda edit: edit.edited_content)


def _case_decision(case: Case) -> str | None:
    return (case.review.action or None) if case.review is not None else None


def _thesis(case: Case) -> str | None:
    return None if case.outcome.plan is None else case.outcome.plan.thesis


def _planned(case: Case) -> str:
    steps = () if case.outcome.plan is None else case.outcome.plan.steps
    lines = []
    for step in steps:
        act = "" if step.kind == "say" else f"{step.kind}: "
        lines.append(f"[{step.message_index}] {act}{step.goal} ({step.rationale})")
    return "\n".join(lines)


def _validation_score(case: Case) -> int | None:
    verification = case.outcome.verification
    if verification is None:
        return None
    failed = int(verification.verdict == "FAIL")
    return failed if verification.score is None else verification.score


def _validation_reasoning(case: Case) -> str | None:
    return None if case.outcome.verification is None else case.outcome.verification.rationale


def synthetic_row(
    case: Case, *, temperature: float | None, transcript: str | None = None
) -> TableRow:
    """Describe a made case in RAND's columns, and ours.

    `original_response` and `generation_response` are the edited turns before and after;
    `validation_score` is the verifier's verdict on the scale of `expected`; `transcript` is what
    the judge sees, and `temperature` that of the editor. There is no label for the untouched run,
    so `original_expected` is empty.
    """
    row = {name: value(case) for name, value in _SYNTHETIC.items()}
    shown = render_transcript(case.messages) if transcript is None else transcript
    return {**row, "transcript": shown, "generation_temp": temperature}


_SYNTHETIC: Mapping[str, Callable[[Case], Any]] = {
    # What a reader looks for first; the others in RAND's order, and then ours.
    "perturbed_idx": lambda case: perturbed_idx(case.spec),
    "rubric_id": lambda case: case.rubric.id,
    "expected": lambda case: case.expected,
    "test_name": lambda case: case.spec.test,
    "original_request": _request,
    "original_response": _before,
    "original_idx": lambda case: case.run.run_id,
    "original_expected": lambda _: None,
    "generation_prompt": _planned,
    "generation_response": _after,
    "generation_completion": lambda case: "\n".join(
        edit.editor_raw_response for edit in case.outcome.edits
    ),
    "generation_reasoning": lambda case: _turns(case, lambda edit: edit.editor_reason),
    "generation_temp": lambda _: None,
    "generation_mode": lambda case: case.mode,
    "validation_score": _validation_score,
    "validation_reasoning": _validation_reasoning,
    "validated_bucket": lambda case: case.expected if case.verified else None,
    "rubric_text": lambda case: case.rubric.instructions,
    "score_levels_table": lambda case: _scale(case.levels),
    "transcript": lambda _: None,
    "prompted_bucket": lambda case: case.expected,
    "human_reviewed": lambda case: case.review is not None,
    "run_id": lambda case: case.run.run_id,
    "epoch": lambda case: case.run.epoch,
    "target_score": lambda case: case.spec.target_score,
    "verified": lambda case: case.verified,
    "human_decision": _case_decision,
}
SYNTHETIC_COLUMNS: tuple[str, ...] = tuple(_SYNTHETIC)
_FIRST_COLUMNS = ("idx", "rubric_id", "expected", "autograder_score", "outcome")
_PAGE_ORDER = (
    "outcome change suite rubric test run variant judge reasoning right given shown flicker "
    "review cost"
)
FACTS: tuple[Fact, ...] = (
    # RAND's columns, in RAND's order.
    Fact("idx", lambda reported: reported.result.case_id),
    Fact("perturbed_idx", lambda reported: perturbed_idx(reported.result.spec)),
    Fact("rubric", _rubric_text),
    Fact(
        "rubric_id",
        lambda reported: reported.result.spec.rubric_id,
        "rubric",
        "The criterion that the case is judged by.",
        filtered=True,
    ),
    Fact("transcript", lambda reported: reported.transcript),
    Fact("generation_response", lambda reported: reported.of_case(_after)),
    Fact("original_request", lambda reported: reported.of_case(_request)),
    Fact(
        "original_idx",
        lambda reported: reported.result.spec.run_id,
        "run",
        "The agent's run that the case was made of.",
        text=_run,
    ),
    Fact(
        "expected",
        _expected,
        "right",
        "The score that a right judge gives: in a binary suite 1 where the rubric is violated.",
        number=True,
        filtered=True,
    ),
    Fact("validation_score", lambda reported: reported.of_case(_validation_score)),
    Fact("agent_mode", lambda reported: _mode(reported.result.test)),
    Fact("plan_thesis", lambda reported: reported.of_case(_thesis)),
    Fact("planned_steps", lambda reported: reported.of_case(_planned)),
    Fact(
        "test_name",
        lambda reported: reported.result.spec.test,
        "test",
        "How the case was made: which kind of test it belongs to.",
        filtered=True,
    ),
    Fact("score_levels_table", _levels),
    Fact(
        "autograder_score",
        lambda reported: reported.result.score,
        "given",
        "The score that the judge gave; of repeats the most frequent one.",
        text=_given,
        number=True,
        filtered=True,
    ),
    Fact("autograder_reasoning", _reasoning),
    # Ours.
    Fact(
        "outcome",
        lambda reported: reported.result.outcome,
        "outcome",
        "What the case came to: agree where the judge gave the right score.",
        filtered=True,
        kind=_outcome_kind,
    ),
    Fact(
        "judge",
        lambda reported: reported.result.judge,
        "judge",
        "The member of the panel that judged.",
        filtered=True,
        shown=lambda session: any(result.judge for result in session.results),
    ),
    Fact("tokens", lambda reported: reported.result.spending.all.usage.total),
    Fact(
        "cost",
        _cost,
        "cost",
        "What the calls of the case cost, replayed ones included.",
        text=_cost_text,
        number=True,
    ),
    Fact("human_reviewed", _is_reviewed),
    Fact(
        "human_decision",
        _decision,
        "review",
        "What a person decided about the case on the review page.",
        filtered=True,
        shown=lambda session: any(result.extra.review for result in session.results),
    ),
    Fact("repeats", lambda reported: len(reported.result.all_scores), tables="repeats"),
    Fact(
        "scores", lambda reported: " ".join(map(str, reported.result.all_scores)), tables="repeats"
    ),
    Fact(
        "flickers",
        lambda reported: reported.result.flickers,
        "flicker",
        "Whether repeats of the judge on the same case gave different scores.",
        text=lambda reported: "flickers" if reported.result.flickers else "",
        filtered=True,
        shown=lambda session: any(result.repeated for result in session.results),
        kind=lambda _: "warn",
        tables="repeats",
    ),
    Fact("minority_reasoning", _minority_reasoning, tables="repeats"),
    Fact(
        "variant",
        lambda reported: reported.result.spec.variant,
        "changed by",
        "What a probe has changed in a case, and of which test that is.",
        text=_changed_by,
        shown=lambda session: any(result.spec.derived for result in session.results),
        key="variant",
        tables="probes",
    ),
    Fact("base_test", lambda reported: reported.result.spec.base, tables="probes"),
    Fact("base_score", lambda reported: reported.result.base_score, tables="probes"),
    Fact(
        "shown",
        lambda reported: state_text(reported.result) or None,
        "shown",
        "Whether what the judge sent holds the edited turns, or all turns of a run as it is.",
        filtered=True,
        text=lambda reported: _shown_word(reported.result),
        shown=lambda session: any(map(not_shown_line, session.results)),
        kind=lambda reported: "warn" if not_shown_line(reported.result) else "",
        tables="shown",
    ),
    # For people alone.
    Fact(
        "change",
        lambda reported: reported.change,
        "since the baseline",
        "What has become of the verdict since the baseline was written; by flicker where the judge "
        "is the same as then.",
        filtered=True,
        shown=lambda session: any(
            decision.comparison is not None for decision in session.decisions.values()
        ),
        kind=lambda reported: _CHANGE_KINDS.get(reported.change.partition(" (")[0], ""),
        key="change",
        tables="",
    ),
    Fact(
        "suite",
        lambda reported: reported.result.spec.suite,
        "suite",
        "The config that the case belongs to.",
        filtered=True,
        shown=lambda session: len({result.spec.suite for result in session.results}) > 1,
        tables="",
    ),
    Fact(
        "reasoning",
        lambda reported: REASONING_DISAGREES if reasoning_disagrees(reported.result) else "",
        "reasoning",
        "Whether the judge's reasoning ends in another score than it gave.",
        filtered=True,
        shown=lambda session: any(map(reasoning_disagrees, session.results)),
        kind=lambda _: "warn",
        tables="",
    ),
    Fact(
        "not_shown",
        lambda reported: not_shown_line(reported.result),
        "Shown to the judge",
        is_line=True,
        tables="",
    ),
    Fact("who_said", _who_said, "Who says what", is_line=True, tables=""),
    Fact("reviewed", _review_line, "Reviewed by a person", is_line=True, tables=""),
)
