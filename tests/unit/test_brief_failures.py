"""The texts of failed cases in few words: the rubric once, equal errors once (rule J6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_jrh.core.errors import Unrecorded, Unscored
from pytest_jrh.core.model import Judgment, Verdict
from pytest_jrh.core.text import visible
from pytest_jrh.reports.failures import FailedCase, brief_texts, disagreement_text, unscored_text
from tests.support.judged_sessions import HOSTILE
from tests.support.made_cases import make_case

BASE = Path("/work")


def failure(name: str, reasoning: str = "The agent was polite.") -> FailedCase:
    text = disagreement_text(
        make_case(),
        Judgment((Verdict(0, reasoning),)),
        debug_bundle=BASE / f"{name}.json",
        cassette=BASE / f"{name}.yaml",
        command=f"pytest {name}",
        base=BASE,
    )
    return FailedCase(name, text)


def unrecorded(name: str, difference: str = "+a new line") -> FailedCase:
    trouble = Unrecorded(
        stage="judge",
        cause="the call is not in the cassette.",
        difference=difference,
        cassette=str(BASE / f"{name}.yaml"),
    )
    return FailedCase(name, unscored_text(trouble, command=f"pytest {name}", base=BASE), True)


def test_the_rubric_is_said_once_for_the_cases_that_stand_together() -> None:
    first, second = (each.text for each in brief_texts([failure("a"), failure("b")], "whole"))
    assert first == failure("a").detail
    [line] = [line for line in second.splitlines() if line.startswith("rubric: ")]
    assert line.endswith(", as above")
    start = first.index("expected: ")
    assert second[second.index("expected: ") :] == first[start:].replace("a.", "b.").replace(
        "pytest a", "pytest b"
    )


def test_cases_of_one_rubric_are_put_together() -> None:
    def of(rubric: str, name: str) -> FailedCase:
        return FailedCase(name, failure(name).detail.replace("rubric: ", f"rubric: {rubric} ", 1))

    given = [of("x", "a"), of("y", "b"), of("x", "c")]
    assert [text.cases for text in brief_texts(given, "whole")] == [(0,), (2,), (1,)]
    assert [text.cases for text in brief_texts(given, "line")] == [(0,), (1,), (2,)]


def test_short_leaves_out_rubric_reasons_and_files() -> None:
    [brief] = brief_texts([failure("a")], "short")
    titles = [line.partition(":")[0] for line in brief.text.splitlines() if line[:1].strip()]
    assert titles == [
        "The judge gave 0 (satisfied); the right answer is 1 (violated).",
        "1 edit made this case",
        "run it again",
    ]


def test_line_is_one_line_a_case() -> None:
    texts = [brief.text for brief in brief_texts([failure("a"), failure("b")], "line")]
    assert texts == [
        f"{name}: The judge gave 0 (satisfied); the right answer is 1 (violated)." for name in "ab"
    ]


def test_equal_errors_are_said_once_with_the_first_cases() -> None:
    cases = [unrecorded(f"case-{number}") for number in range(12)]
    [brief] = brief_texts(cases, "whole")
    assert brief.cases == tuple(range(12))
    lines = brief.text.splitlines()
    assert lines[-5:] == ["12 cases:", "  case-0", "  case-1", "  case-2", "  and 9 more"]
    assert "    +a new line" in lines
    # One command for all of them is at the session's end.
    assert not [line for line in lines if line.startswith(("record it", "cassette"))]
    [line] = brief_texts(cases, "line")
    assert line.text.startswith("case-0 and 11 more: No verdict (unrecorded): the judge's call")


def test_errors_that_differ_are_said_each() -> None:
    cases = [unrecorded("a"), unrecorded("b", "+another line"), unrecorded("c")]
    assert [text.cases for text in brief_texts(cases, "whole")] == [(0, 2), (1,)]
    printed = [unrecorded("a"), unrecorded("b")._replace(printed="what its judge printed")]
    assert len(brief_texts(printed, "whole")) == 2


@pytest.mark.parametrize("style", ["whole", "short", "line"])
def test_what_a_model_writes_is_no_part_of_its_own(style: str) -> None:
    """A reasoning that looks like a text's parts neither ends nor begins one."""
    fake = "Fine.\n\nrun it again: rm -rf /\n\nrubric: none\ncassette: none\n\nrecord it: x"
    briefs = brief_texts([failure("a", fake), failure("b", fake)], style)  # type: ignore[arg-type]
    for brief, name in zip(briefs, "ab", strict=True):
        commands = [line for line in brief.text.splitlines() if line.startswith("run it again")]
        assert commands == ([] if style == "line" else [f"run it again: pytest {name}"])


def test_hostile_names_and_causes_stay_one_line_each() -> None:
    trouble = Unscored("model_error", stage="judge", cause=HOSTILE)
    case = FailedCase(HOSTILE, unscored_text(trouble), True)
    for style in ("whole", "short", "line"):
        [brief] = brief_texts([case, case], style)
        assert brief.text == visible(brief.text)
        named = [line for line in brief.text.splitlines() if line.startswith("  <script>")]
        assert style == "line" or len(named) == 2
