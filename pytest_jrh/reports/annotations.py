"""GitHub's workflow commands: each regression as an error at its rubric's line, and what came of a
prompt that changed at its own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.core.text import Styled, counted, one_line, shortened
from pytest_jrh.reports.grounds import label_sentences
from pytest_jrh.reports.report import Report
from pytest_jrh.stats.diagnosis import section_warnings
from pytest_jrh.stats.figures import flicker_sentence, sections

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_jrh.core.model import CaseResult, Rubric
    from pytest_jrh.reports.report import Display
    from pytest_jrh.reports.session import Session
    from pytest_jrh.store.baseline import PromptChange


# GitHub shows ten annotations of a kind per step, and drops the others without a word.
MOST_ANNOTATIONS = 10
_LONGEST_REASON = 500


class Annotations(Report):
    """What GitHub shows beside the changed lines of a pull request; in its jobs alone."""

    name = "annotations"

    def last_lines(self, session: Session, display: Display) -> Iterable[Styled]:
        if os.environ.get("GITHUB_ACTIONS") != "true":
            return []
        workspace = Path(os.environ.get("GITHUB_WORKSPACE") or display.workspace)
        return map(Styled, annotation_lines(session, workspace))


def annotation_lines(session: Session, base: Path) -> list[str]:
    """Write `::error file=,line=,title=::message` for each prompt that changed and each regression,
    at most ten, and notices: how many more there are, that the judges contradict themselves, what
    to know about the figures of each judge, and what the labels rest on.

    Regressions that the gate lets through are warnings. `base` is the folder that paths are to be
    relative to: a rubric file outside it is not named. No text of a model or a file can begin or
    change a command.
    """
    results = {result.case_id: result for result in session.results}
    flickered = {case for decision in session.decisions.values() for case in decision.flickered}
    regressions = [
        (session.node(case_id), results[case_id], decision.passed)
        for decision in session.decisions.values()
        for case_id in decision.regressions
        if case_id in results
    ]
    # Stable: among those that fail the gate, and those that do not, the order stays.
    regressions.sort(key=lambda regression: regression[2])
    prompts = [_prompt(change, session, base) for change in session.prompt_changes]
    lines = [line for line in prompts if line]
    most = MOST_ANNOTATIONS - len(lines)
    lines += [
        _annotation(
            result,
            node,
            "warning" if passed else "error",
            session.rubrics.get((result.spec.suite, result.spec.rubric_id)),
            base,
            flickered=result.case_id in flickered,
        )
        for node, result, passed in regressions[: max(0, most)]
    ]
    rest = len(regressions) - max(0, most)
    if rest > 0:
        message = f"{counted(rest, 'more regression')}: the report names them all."
        lines.append(_notice("Judge regressions", message))
    if session.table.overall.flicker.count:
        lines.append(_notice("Judge flicker", flicker_sentence(session.table.overall)))
    for section in sections(session.table):
        if warnings := section_warnings(section):
            title = f"Judge figures: {one_line(section.label)}"
            lines.append(_notice(title, "\n".join(map(one_line, warnings))))
    # One notice: GitHub drops what is over ten of a kind.
    if labels := label_sentences(session):
        lines.append(_notice("Judge labels", "\n".join(map(one_line, labels))))
    return lines


def _prompt(change: PromptChange, session: Session, base: Path) -> str:
    """What came of a prompt that changed; nothing of one that is no file of the project."""
    decision = session.decisions.get(change.now.suite)
    place = _inside(change.now.file, base)
    if place is None or decision is None or change.before == change.now.text:
        return ""
    pairs = [
        pair
        for pair in (decision.comparison.pairs if decision.comparison is not None else ())
        if pair.now.judge == change.now.judge
    ]
    worse = len({pair.now.case_id for pair in pairs} & {*decision.regressions})
    better = len({pair.now.case_id for pair in pairs} & {*decision.fixes})
    kind = "notice" if not worse else "warning" if decision.passed else "error"
    fixes = "1 fix" if better == 1 else f"{better:,} fixes"
    message = (
        f"With this prompt: {counted(worse, 'regression')}, {fixes} in "
        f"{counted(len(pairs), 'case')} compared with the baseline."
    )
    properties = {"file": place, "line": str(change.line), "title": "The judge's prompt changed"}
    return f"::{kind} {_listed(properties)}::{_message(message)}"


def _notice(title: str, message: str) -> str:
    return f"::notice title={_property(title)}::{_message(message)}"


def _annotation(
    result: CaseResult,
    node: str,
    kind: str,
    rubric: Rubric | None,
    base: Path,
    *,
    flickered: bool = False,
) -> str:
    what = "Flicker" if flickered else "Regression"
    properties = {"title": f"{what}: {one_line(result.spec.rubric_id)}"}
    place = _place(rubric, base)
    if place is not None and rubric is not None:
        properties = {"file": place, "line": str(rubric.line), **properties}
    judge = f"The judge {one_line(result.judge)}" if result.judge else "The judge"
    said = (
        f"{judge} gave {result.scores_text}, the right answer is {result.expected}; in the "
        "baseline it was right."
    )
    if flickered:
        said += " The judge has not changed: asked again, it says something else."
    message = "\n".join(
        [said, shortened(one_line(result.reasoning), _LONGEST_REASON), one_line(node)]
    )
    return f"::{kind} {_listed(properties)}::{_message(message)}"


def _listed(properties: Mapping[str, str]) -> str:
    return ",".join(f"{name}={_property(value)}" for name, value in properties.items())


def _place(rubric: Rubric | None, base: Path) -> str | None:
    return None if rubric is None else _inside(rubric.file, base)


def _inside(file: str, base: Path) -> str | None:
    """The file relative to a folder; None where it is no file, or outside."""
    if not file:
        return None
    path = base / file
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else None


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
