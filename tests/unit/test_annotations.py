"""The one annotation of a session, read back the way GitHub's runner reads it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pytest_jrh.core.results import CaseResult
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.terminal import annotation_lines
from tests.support.judged_sessions import HOSTILE, judged, misses, right, session_of, wrong_on
from tests.support.made_cases import result_with

BASE = Path("/repo")
COMMAND = re.compile(r"::(?P<kind>[a-z]+) (?P<properties>[^:]*)::(?P<message>[^\r\n]*)")


def read(session: Session, base: Path = BASE) -> tuple[str, dict[str, str], str]:
    """As the runner does: properties split at commas, then unescaped."""
    [line] = annotation_lines(session, base)
    match = COMMAND.fullmatch(line)
    assert match, line
    line.encode()
    pairs = dict(pair.split("=", 1) for pair in match["properties"].split(","))
    unescaped = {
        name: plain(value).replace("%3A", ":").replace("%2C", ",") for name, value in pairs.items()
    }
    return match["kind"], unescaped, plain(match["message"])


def plain(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def regressed(results: list[CaseResult], **rules: Any) -> Session:
    before = [result_with(result, outcome="agree", score=result.label) for result in results]
    return session_of(results, before, **rules)


def test_a_fail_is_an_error_with_the_cases_to_read_first() -> None:
    kind, properties, message = read(regressed(judged(misses(6), rubrics=("tone",))))
    assert (kind, list(properties)) == ("error", ["title"])
    assert properties["title"].startswith("FAIL: the judge misses 6 of 12 violations")
    worst = message.split("\n")
    assert len(worst) == 3
    assert worst[0] == "run-000, tone: perturbation (missed): The order is late."


def test_old_disagreements_and_what_is_right_have_none() -> None:
    wrong = judged(wrong_on("run-003"))
    assert list(annotation_lines(session_of(wrong, before=wrong), BASE)) == []
    assert list(annotation_lines(session_of(judged(right)), BASE)) == []


def test_hostile_text_neither_begins_nor_changes_a_command() -> None:
    wrong = [
        result_with(result, rubric_id=f"a,file=x:{HOSTILE}", reasoning=HOSTILE, judge=HOSTILE)
        for result in judged(misses(6), rubrics=("tone",))
    ]
    kind, properties, message = read(regressed(wrong))
    assert (kind, list(properties)) == ("error", ["title"])
    assert message.count("\n") == 2
