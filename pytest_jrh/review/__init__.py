"""What each page can ask for: every request answered with a value of JSON; and the prompts of
planner and editor as people change them on it, per suite and test.

Cases, templates and reviewers are named by keys that the session made; no text of a request reaches
a path. On the page of blind labelling these are drawn at random, so that no address says anything
of a case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pytest_jrh.core import Json, frozen, listed, one_line, same_lines, visible
from pytest_jrh.core.calls import EDITOR, PLANNER, STAGES
from pytest_jrh.core.cases import Case
from pytest_jrh.core.diffs import turn_pairs
from pytest_jrh.core.documents import as_text, read_text
from pytest_jrh.core.files import atomic_write, exists
from pytest_jrh.core.results import CaseResult, JudgeLine
from pytest_jrh.core.scales import NO_SUCH
from pytest_jrh.core.transcript import message_text
from pytest_jrh.llm.calls import load_template, override_path, parse_prompt
from pytest_jrh.people import Grounds, StrictModel, is_editable
from pytest_jrh.people.board import LATE, Assigned, LabelBoard, ReviewBoard, Reviewed
from pytest_jrh.people.labels import Disputes, LabelRow, PersonLabel, label_word
from pytest_jrh.reports.page import (
    BODIES,
    FOLDER,
    SessionCases,
    bare_turns,
    case_turns,
    page_html,
    printable,
)
from pytest_jrh.reports.session import Session
from pytest_jrh.review.serving import Route
from pytest_jrh.stats.verdicts import NO_BASELINE, Baseline, PromptChange
from pytest_jrh.store.ledger import case_result

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite, SuiteTest


def _shell(*scripts: str, **served: object) -> tuple[str, str]:
    """The page without a case, and its policy: what it shows comes when it asks."""
    html, policy = page_html(
        {"word": "", "headline": "pytest-jrh", "served": served},
        scripts=[FOLDER / name for name in ("served.js", *scripts)],
        styles=[FOLDER / "served.css"],
        more_policy="connect-src 'self'; img-src data:; ",
    )
    return html.replace(BODIES, ""), policy


_REJECTED = (
    "The verifier rejected this case ({}), so the case is not judged and needs no decision. To "
    "find out whether the verifier is right, label cases blind: --jrh-review=blind"
)


def _labels(case: Case) -> list[tuple[int, str, str]]:
    """The labels that a case can have: the score, its key, and the whole of what it means."""
    scale, labels = case.scale, []
    keys = iter(_KEYS)
    if scale.orders:
        return [*zip(scale.answers, "abt", _BETTER.values(), strict=True)]
    for score in scale.answers:
        said, word = scale.said(score), scale.words[score]
        key = str(said) if said in range(10) else ""
        if scale.is_verdict and said != NO_SUCH:
            key = word[0]
        elif isinstance(said, str):
            key = "x" if said == NO_SUCH else next(keys)
        is_told = scale.is_ordered or isinstance(said, str)
        labels.append((score, key, f"{said}: {scale.due[score]}" if is_told else word))
    return labels


_BETTER = {"first": "A is better", "second": "B is better", "tie": "neither is better"}


def _shown(case: Case, word: str) -> str:
    """What the page calls an answer that files have in a word."""
    return _BETTER.get(word, word) if case.scale.orders else word


# Of classes, in their order; other letters have a meaning on the page.
_KEYS = "1234567890qwertyiopasdh"


class ReviewedCases(SessionCases):
    """Cases to decide about, as the report lays them out, beside the verdicts of a baseline, of
    whose judges some may be others by now: the `changes`. `people` gave labels blind.
    """

    def __init__(
        self,
        cases: Iterable[Reviewed],
        people: tuple[PersonLabel, ...] = (),
        baseline: Baseline = NO_BASELINE,
        changes: Sequence[PromptChange] = (),
    ) -> None:
        self.reviewed: dict[str, Reviewed] = {}
        results: list[CaseResult] = []
        rubrics = {}
        grounds = {}
        for reviewed in cases:
            entry, case = reviewed.entry, reviewed.case
            self.reviewed[entry.case_id] = reviewed
            # One of each judge; where none has judged it, one without a verdict.
            for judge, verdicts in (entry.judged or {"": ()}).items():
                spec = replace(case.spec, judge=judge or case.spec.judge)
                result = case_result(spec, case, verdicts=verdicts)
                extra = replace(result.extra, review="" if entry.rejected else reviewed.word)
                results.append(replace(result, case_digest=entry.digest, extra=extra))
            rubrics[case.spec.suite, case.rubric.id] = case.rubric
            grounds[case.spec.suite] = Grounds(people=people)
        earlier = {}
        for result in results:
            if line := baseline.line(result):
                earlier[result.case_id] = line
        super().__init__(
            Session(
                results,
                rubrics=rubrics,
                grounds=grounds,
                earlier=earlier.get,
                prompt_changes=changes,
                folder=Path.cwd(),
            )
        )

    def case_and_turns(self, result: CaseResult) -> tuple[Case, list[Json]]:
        case = self.reviewed[result.made_id].case
        return case, case_turns(case)

    def row(self, made_id: str) -> Json:
        """A case as one entry of the list of those to decide about."""
        reviewed = self.reviewed[made_id]
        entry = reviewed.entry
        action = note = ""
        if reviewed.decision is not None:
            action, note = reviewed.decision.action, reviewed.decision.note
        return {
            **super().row(made_id),
            "digest": entry.digest,
            "decision": "rejected by the verifier" if entry.rejected else reviewed.word,
            "action": action,
            "note": note,
            "label": reviewed.case.expected,
            "made_label": entry.case.expected,
        }

    def body(self, made_id: str) -> Json:
        """All else of it: how it was made, and what judges and people say of it."""
        reviewed = self.reviewed[made_id]
        case, no_case = reviewed.case, reviewed.entry.case.outcome.no_case
        closed, editable = "", []
        if no_case is not None:
            closed = _REJECTED.format(no_case)
        else:
            indexes = range(len(case.messages))
            editable = [index for index in indexes if is_editable(case.messages, index)]
        return {
            **super().body(made_id),
            "labels": _labels(case),
            "editable": editable,
            "closed": closed,
            "void": reviewed.void.action if reviewed.void else "",
        }


def label_row(assigned: Assigned) -> Json:
    """A case in the list of a reviewer, without what tells its answers."""
    label, case = assigned.label, assigned.entry.case
    word = value = note = ""
    if label is not None:
        note = "" if label.note == LATE else visible(label.note)
        if not label.withdrawn:
            value = "none" if label.label is None else str(label.label)
            word = _shown(case, label_word(case, label.label))
    # What was asked: by the user of a run, in the first column of a table.
    texts = [message_text(turn) for turn in case.messages if turn.get("role") != "system"]
    asked = next(filter(str.strip, texts), "")
    return {
        "key": assigned.key,
        "number": assigned.number,
        "title": one_line(asked[:80]),
        "value": value,
        "word": word,
        "note": note,
        "is_blind": assigned.is_blind or bool(label and label.blind),
    }


def bare_body(assigned: Assigned, votes: Iterable[LabelRow] = ()) -> Json:
    """What a reviewer sees of a case: what the judge reads, the labels to choose from, and the
    `votes` where they are to be settled.
    """
    case = assigned.entry.case
    return {
        "turns": bare_turns(case.messages),
        "voices": [
            {
                "who": vote.annotator,
                "word": _shown(case, as_text(vote.label)),
                "why": vote.note,
            }
            for vote in votes
        ],
        "labels": _labels(case),
        "scale": case.scale.line or case.scale.name,
        "question": case.rubric.instructions,
    }


class _Decision(StrictModel):
    digest: str
    action: Literal["accepted", "rejected", "withdrawn"]
    note: str = ""


class _TurnText(StrictModel):
    digest: str
    content: str | None


class _Expected(StrictModel):
    digest: str
    expected: int


class _Draft(StrictModel):
    text: str


class Deciding:
    """What the page can ask for on which people decide about the cases of a session; `people` gave
    labels blind, in earlier sessions. The `judges` are held against the `baseline`.
    """

    def __init__(
        self,
        board: ReviewBoard,
        suites: Sequence[Suite],
        people: tuple[PersonLabel, ...] = (),
        baseline: Baseline = NO_BASELINE,
        judges: Sequence[JudgeLine] = (),
    ) -> None:
        self.board = board
        self._templates = agent_templates(suites)
        changes = []
        for judge in judges:
            digests = baseline.earlier_judges(baseline.ids_of(judge))
            if change := baseline.prompt_change(judge, digests):
                changes.append(change)
        self._cases = partial(ReviewedCases, people=people, baseline=baseline, changes=changes)
        files = dict.fromkeys(Path(judge.file).name for judge in judges if judge.file)
        self._to_fix = listed(files) or "the judge"

    def shell(self) -> tuple[str, str]:
        """The page without a case, and its policy."""
        return _shell("decide.js", "templates.js")

    def routes(self) -> tuple[Route, ...]:
        """All that can be asked for."""
        case, template = "/cases/{key}", "/templates/{key:int}"
        turn = f"{case}/turns/{{index:int}}"
        board, changed = self.board, self._changed
        return (
            ("GET", case, self._case, None),
            ("GET", turn, self._turn, None),
            ("POST", f"{case}/decision", partial(changed, board.decide), _Decision),
            ("POST", turn, partial(changed, board.edit_turn), _TurnText),
            ("POST", f"{case}/label", partial(changed, board.set_label), _Expected),
            ("POST", "/finish", self._finish, None),
            ("GET", "/templates", self._list_templates, None),
            ("POST", template, self._save_template, _Draft),
            ("POST", f"{template}/revert", self._revert_template, None),
        )

    def news(self, since: int) -> tuple[int, Json]:
        """The present version, and what is new since an earlier one."""
        version, changed = self.board.changes(since)
        cases = self._cases(changed)
        return version, printable(
            {
                "fix": self._to_fix,
                "all": since < 0,
                "rows": [*map(cases.row, cases.reviewed)],
                "rubrics": cases.rubrics(),
                "progress": asdict(self.board.progress()),
            }
        )

    def _changed(self, change: Callable[..., Reviewed], **values: Any) -> object:
        """Let the board change a decision; gives the case's entry in the list."""
        reviewed = change(**values)
        return printable(self._cases([reviewed]).row(reviewed.entry.case_id))

    def _case(self, key: str) -> object:
        reviewed = self.board.get(key)
        return printable(self._cases([reviewed]).body(reviewed.entry.case_id))

    def _turn(self, key: str, index: int) -> object:
        """A turn to be edited: its text, and that before all edits."""
        case = self.board.get(key).case
        if not is_editable(case.messages, index):
            raise LookupError(index)
        text = before = message_text(case.messages[index])
        for pair in turn_pairs(case.run.messages, case.messages):
            if pair.new == index and pair.old is not None:
                before = message_text(case.run.messages[pair.old])
        return {"text": text, "before": before}

    def _finish(self) -> object:
        self.board.finalize()
        return {}

    def _list_templates(self) -> object:
        templates = enumerate(self._templates)
        return [{"key": str(number), **template.values()} for number, template in templates]

    def _save_template(self, key: int, text: str) -> object:
        self._templates[key].save(text)
        return {}

    def _revert_template(self, key: int) -> object:
        self._templates[key].override.unlink(missing_ok=True)
        return {}


@frozen
class AgentTemplate:
    """The prompt of one stage of one test. What is saved counts from the next run on."""

    suite: Suite
    test: SuiteTest
    stage: str

    @property
    def override(self) -> Path:
        """The file that takes the place of the default, where there is one."""
        return override_path(self.suite.custom_prompts_dir, self.test.name, self.stage)

    def values(self) -> Json:
        """As JSON values: `text` is what is used now, from `file` where that is an override, and
        `default` what is used without one.
        """
        stage, test = STAGES[self.stage], self.test.name
        text = default = load_template(
            self.stage,
            mode=self.suite.prompt_mode,
            objective=self.test.objective,
            prompt_path=self.suite.stages[self.stage].prompt_path,
            of=self.suite.config.prompts_of,
        ).source
        is_overridden = exists(self.override)
        if is_overridden:
            text = read_text(self.override, str(self.override))
        return {
            "suite": self.suite.name,
            "test": test,
            "stage": self.stage,
            "file": f"inputs/custom_prompts/{self.suite.module_name}/{test}/{self.stage}.md",
            "default": default,
            "text": text,
            "overridden": is_overridden,
            "variables": sorted(stage.variables),
            "required": "|".join(stage.required).split("|"),
        }

    def save(self, text: str) -> None:
        """Write the override, whole or not at all; raises `InputError` where it cannot be used, and
        `OSError` as it comes.
        """
        parse_prompt(text, f"{self.test.name}/{self.stage}.md", stage=self.stage)
        # One line ending, whatever the browser sent: the file is read, compared and committed on
        # any system.
        lines = same_lines(text)
        atomic_write(self.override, lines if lines.endswith("\n") else f"{lines}\n")


def agent_templates(suites: Sequence[Suite]) -> list[AgentTemplate]:
    """The templates that suites use: by suite, test and stage."""
    templates = []
    for suite in suites:
        for test in suite.tests:
            for stage in (PLANNER, EDITOR):
                if test.kind.is_made and stage.name in suite.stages:
                    templates.append(AgentTemplate(suite, test, stage.name))
    return templates


class _Name(StrictModel):
    name: str


class _Label(StrictModel):
    label: int | None
    note: str = ""
    withdrawn: bool = False


class Labelling:
    """What the page can ask for on which people label cases blind, or, where there are `votes` by
    the digests of cases, settle them. `served` says to the page in which `words` the answers of
    a rubric are shown, and which `file` takes the labels where no session goes on.
    """

    def __init__(
        self, board: LabelBoard, votes: Disputes = MappingProxyType({}), **served: object
    ) -> None:
        self.board = board
        self._votes = votes
        self._served = served

    def shell(self) -> tuple[str, str]:
        """The page without a case, and its policy."""
        return _shell(
            "blind.js",
            reviewer=self.board.reviewer,
            is_blind=not self._votes,
            **self._served,
        )

    def routes(self) -> tuple[Route, ...]:
        """All that can be asked for."""
        reviewer = "/reviewers/{reviewer}"
        case = f"{reviewer}/cases/{{key}}"
        return (
            ("POST", "/reviewers", self._enter, _Name),
            ("GET", f"{reviewer}/cases", self._cases, None),
            ("GET", case, self._case, None),
            ("POST", f"{case}/label", self._give, _Label),
            ("POST", f"{reviewer}/finish", self._finish, None),
            ("POST", "/finish", self._finish, None),
        )

    def news(self, _since: int) -> tuple[int, Json]:
        """The present version, and how far it is: what is new of cases each reviewer asks for."""
        return self.board.version, printable(
            {"progress": asdict(self.board.progress()), **self.board.opening()}
        )

    def _enter(self, name: str) -> object:
        key, kept_name = self.board.enter(name)
        return {"reviewer": key, "name": kept_name}

    def _cases(self, reviewer: str) -> object:
        return {"rows": [*map(label_row, self.board.assigned(reviewer))]}

    def _case(self, reviewer: str, key: str) -> object:
        assigned = self.board.open(reviewer, key)
        return printable(bare_body(assigned, self._votes.get(assigned.entry.digest, ())))

    def _give(self, **label: Any) -> object:
        return {**label_row(self.board.give(**label)), "assignment": self.board.assignment}

    def _finish(self, reviewer: str = "") -> object:
        if reviewer:
            return {"others": self.board.finish(reviewer)}
        self.board.finalize()
        return {"others": []}
