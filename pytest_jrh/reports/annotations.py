"""GitHub's workflow commands: each regression as an error at the lines of the judge's prompt that
changed, or at its rubric's, in files of the pull request.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.core.files import absolute
from pytest_jrh.core.ids import case_title
from pytest_jrh.core.text import Styled, counted, one_line, shortened
from pytest_jrh.reports.gate import fixes_text
from pytest_jrh.reports.grounds import label_sentences
from pytest_jrh.reports.provenance import git_output
from pytest_jrh.reports.report import Report
from pytest_jrh.stats.diagnosis import section_warnings
from pytest_jrh.stats.figures import flicker_sentence, sections

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.reports.report import Display
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.baseline import PromptChange


# GitHub shows ten annotations of a kind per step, and drops the others without a word.
MOST_ANNOTATIONS = 10
_LONGEST_REASON = 500
_NAMES = ("diff", "--no-ext-diff", "--name-only", "-z")


class Annotations(Report):
    """What GitHub shows beside the changed lines of a pull request; in its jobs alone."""

    name = "annotations"
    is_for_runner = True

    def last_lines(self, session: Session, display: Display) -> Iterable[Styled]:
        if os.environ.get("GITHUB_ACTIONS") != "true":
            return []
        workspace = Path(os.environ.get("GITHUB_WORKSPACE") or display.workspace)
        files = Files(workspace, changed_files(workspace))
        return map(Styled, annotation_lines(session, files))


class Files(NamedTuple):
    """Which files an annotation can be at: those below `base`, and of a pull request the `changed`
    ones alone, where they are known; GitHub shows no others beside the code.
    """

    base: Path
    changed: frozenset[str] | None = None

    def inside(self, file: str) -> str:
        """The file as GitHub names it, relative to the base; empty where it is not below it."""
        base = absolute(self.base)
        path = absolute(base / file)
        return path.relative_to(base).as_posix() if file and path.is_relative_to(base) else ""

    def lines(self, file: str, first: int, last: int) -> dict[str, str]:
        """The properties of an annotation at these lines; none where GitHub does not show them."""
        name = self.inside(file)
        if not name or (self.changed is not None and name not in self.changed):
            return {}
        lines = {"file": name, "line": str(first)}
        return {**lines, "endLine": str(last)} if last > first else lines


def changed_files(workspace: Path) -> frozenset[str] | None:
    """The files of the pull request that a job of GitHub's is about; None where there is none, or
    git does not know what it is merged into, as in a checkout of depth 1.
    """
    target = os.environ.get("GITHUB_BASE_REF")
    if not target:
        return None
    names = git_output(workspace, *_NAMES, f"origin/{target}...HEAD", "--")
    if names is None and git_output(workspace, "rev-parse", "--verify", "--quiet", "HEAD^2"):
        # GitHub's merge of the pull request into its target, checked out with both.
        names = git_output(workspace, *_NAMES, "HEAD^1", "HEAD", "--")
    return None if names is None else frozenset(filter(None, names.split("\0")))


def annotation_lines(session: Session, files: Files) -> list[str]:
    """Write `::error file=,line=,title=::message` for each prompt that changed and each regression,
    at most ten, and notices: how many more there are, that the judges contradict themselves, what
    to know about the figures of each judge, and what the labels rest on.

    Regressions that the gate lets through are warnings. One of which no file can be named is none
    of a line. No text of a model or a file can begin or change a command.
    """
    results = {result.case_id: result for result in session.results}
    flickered: set[str] = set()
    regressions = []
    # Those that fail the gate first.
    for decision in sorted(session.decisions.values(), key=lambda decision: decision.passed):
        flickered.update(decision.flickered)
        kind = "warning" if decision.passed else "error"
        regressions += [(results[case], kind) for case in decision.regressions if case in results]
    prompts: dict[tuple[str, str], dict[str, str]] = {}
    lines: list[str] = []
    for change in session.prompt_changes:
        if files.inside(change.now.file) and change.before != change.now.text:
            changed_lines = files.lines(change.now.file, *change.lines)
            lines += _prompt(change, session, changed_lines)
            if change.before is not None:
                prompts[change.now.suite, change.now.judge] = changed_lines
    most = MOST_ANNOTATIONS - len(lines)
    for result, kind in regressions[: max(0, most)]:
        is_flicker = result.case_id in flickered
        marked_lines = prompts.get((result.spec.suite, result.judge))
        rubric = session.rubrics.get((result.spec.suite, result.spec.rubric_id))
        if not marked_lines and rubric is not None:
            marked_lines = files.lines(rubric.file, rubric.line, rubric.line)
        lines.append(_annotation(result, session, kind, marked_lines or {}, flickered=is_flicker))
    unnamed = len(regressions) - max(0, most)
    if unnamed > 0:
        message = f"{counted(unnamed, 'more regression')}: the report names them all."
        lines.append(_notice("Judge regressions", message))
    return [*lines, *_notices(session)]


def _notices(session: Session) -> Iterator[str]:
    """What is about no single case."""
    if session.table.overall.flicker.count:
        yield _notice("Judge flicker", flicker_sentence(session.table.overall))
    for section in sections(session.table):
        if warnings := section_warnings(section):
            title = f"Judge figures: {one_line(section.label)}"
            yield _notice(title, "\n".join(map(one_line, warnings)))
    # One notice: GitHub drops what is over ten of a kind.
    if labels := label_sentences(session):
        yield _notice("Judge labels", "\n".join(map(one_line, labels)))


def _prompt(change: PromptChange, session: Session, lines: Mapping[str, str]) -> Iterator[str]:
    """What came of a prompt that changed, where a gate looks at it."""
    decision = session.decisions.get(change.now.suite)
    if decision is None:
        return
    pairs = decision.comparison.pairs if decision.comparison is not None else ()
    compared = [pair.now.case_id for pair in pairs if pair.now.judge == change.now.judge]
    worse = len({*compared} & {*decision.regressions})
    better = len({*compared} & {*decision.fixes})
    kind = "notice"
    if worse:
        kind = "warning" if decision.passed else "error"
    message = (
        f"With this prompt: {counted(worse, 'regression')}, {fixes_text(better)} in "
        f"{counted(len(compared), 'case')} compared with the baseline."
    )
    properties = {**lines, "title": "The judge's prompt changed"}
    yield f"::{kind} {_listed(properties)}::{_message(message)}"


def _notice(title: str, message: str) -> str:
    return f"::notice title={_property(title)}::{_message(message)}"


def _annotation(
    result: CaseResult,
    session: Session,
    kind: str,
    marked_lines: Mapping[str, str],
    *,
    flickered: bool,
) -> str:
    event = "Flicker" if flickered else "Regression"
    properties = {**marked_lines, "title": f"{event}: {case_title(result)}"}
    judge = f"The judge {one_line(result.judge)}" if result.judge else "The judge"
    sentence = (
        f"{judge} gave {result.scores_text}, the right answer is {result.label}; in the "
        "baseline it was right."
    )
    if flickered:
        sentence += " The judge has not changed: asked again, it says something else."
    reasoning = shortened(one_line(result.reasoning), _LONGEST_REASON)
    message = "\n".join([sentence, reasoning, one_line(session.node(result.case_id))])
    return f"::{kind} {_listed(properties)}::{_message(message)}"


def _listed(properties: Mapping[str, str]) -> str:
    return ",".join(f"{name}={_property(value)}" for name, value in properties.items())


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
