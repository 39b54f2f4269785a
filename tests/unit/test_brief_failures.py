"""The texts of failed cases in few words, and equal errors once."""

from __future__ import annotations

from pathlib import Path

from pytest_jrh.core.errors import Unrecorded, Unscored
from pytest_jrh.core.model import Judgment, Verdict
from pytest_jrh.core.text import visible
from pytest_jrh.reports.failures import FailedCase, brief_texts, disagreement_text, unscored_text
from tests.support.judged_sessions import HOSTILE
from tests.support.made_cases import failed_case, make_case

BASE = Path("/work")


def test_the_only_case_is_explained_whole_by_its_own_command() -> None:
    [one] = brief_texts([failed_case("a")])
    assert one.text.splitlines()[-1] == "run it again: pytest -v a"
    [first] = brief_texts([failed_case("a"), failed_case("b")])
    assert first.text.splitlines()[-2:] == ["run it again: pytest a", "1 more, whole with -v."]


def unrecorded(name: str, difference: str = "+a new line") -> FailedCase:
    trouble = Unrecorded(
        stage="judge",
        cause="the call is not in the cassette.",
        difference=difference,
        cassette=str(BASE / f"{name}.yaml"),
    )
    return FailedCase(name, unscored_text(trouble, command=f"pytest {name}", base=BASE), True)


def repeated(*verdicts: tuple[int, str]) -> FailedCase:
    text = disagreement_text(
        make_case(),
        Judgment(tuple(Verdict(*verdict) for verdict in verdicts)),
        cassette=None,
        command="pytest a",
        base=BASE,
    )
    return FailedCase("a", text)


def given_lines(text: str) -> list[str]:
    lines = text.splitlines()
    return [
        line.strip()
        for place, line in enumerate(lines)
        if line.startswith("given: ") or lines[place - 1].startswith("given: ")
    ]


def test_each_repeat_has_its_reason_and_equal_ones_are_joined() -> None:
    case = repeated((1, "It is late."), (0, "Fine."), (0, "Polite."), (0, "Fine."), (0, ""))
    assert given_lines(case.detail) == [
        "given: 0 (satisfied), in 2 of 5, because",
        "Fine.",
        "given: 1 (violated), in 1 of 5, because",
        "It is late.",
        "given: 0 (satisfied), in 1 of 5, because",
        "Polite.",
        "given: 0 (satisfied), in 1 of 5, because",
        "(no reasoning)",
    ]


def test_a_case_in_few_words_has_one_reason_for_each_score() -> None:
    case = repeated((0, "Fine."), (1, "It is late."), (0, "Polite."))
    [brief] = brief_texts([case])
    assert "Fine." in brief.text
    assert "It is late." in brief.text
    assert "Polite." not in brief.text


def test_of_many_different_reasons_twelve_are_printed() -> None:
    case = repeated(*((0, f"Reason {number}.") for number in range(20)))
    assert len(given_lines(case.detail)) == 24
    assert "8 more verdicts in results.jsonl" in case.detail


def failed_repeat(name: str, *reasons: str) -> FailedCase:
    trouble = Unscored("refused", stage="judge", cause="It would not.")
    earlier = [Verdict(1, reason) for reason in reasons]
    text = unscored_text(trouble, command=f"pytest {name}", base=BASE, earlier=earlier)
    return FailedCase(name, text, True)


def test_a_repeat_without_a_verdict_has_those_before_it_and_its_error() -> None:
    case = failed_repeat("a", "It is late.", "It is late.", "Too late.")
    assert case.detail.splitlines()[2:] == [
        "earlier: 1, in 2 of 3 before it, because",
        "    It is late.",
        "",
        "earlier: 1, in 1 of 3 before it, because",
        "    Too late.",
        "",
        "run it again: pytest a",
    ]
    [brief] = brief_texts([case])
    assert "It is late." not in brief.text
    assert brief.text.startswith("No verdict (refused)")
    same = [failed_repeat("a", "It is late."), failed_repeat("b"), failed_repeat("c", "Never.")]
    assert [text.cases for text in brief_texts(same)] == [(0, 1, 2)]


def test_equal_errors_are_said_once_with_the_first_cases() -> None:
    cases = [unrecorded(f"case-{number}") for number in range(12)]
    [brief] = brief_texts(cases)
    assert brief.cases == tuple(range(12))
    lines = brief.text.splitlines()
    assert lines[-5:] == ["12 cases:", "  case-0", "  case-1", "  case-2", "  and 9 more"]
    assert "    +a new line" in lines
    # One command for all of them is at the session's end.
    assert not [line for line in lines if line.startswith(("record it", "cassette"))]


def test_errors_that_differ_are_said_each() -> None:
    cases = [unrecorded("a"), unrecorded("b", "+another line"), unrecorded("c")]
    assert [text.cases for text in brief_texts(cases)] == [(0, 2), (1,)]
    printed = [unrecorded("a"), unrecorded("b")._replace(printed="what its judge printed")]
    assert len(brief_texts(printed)) == 2


def test_what_a_model_writes_is_no_part_of_its_own() -> None:
    """A reasoning that looks like a text's parts neither ends nor begins one."""
    fake = "Fine.\n\nrun it again: rm -rf /\n\nrubric: none\ncassette: none\n\nrecord it: x"
    [brief] = brief_texts([failed_case("a", fake), failed_case("b", fake)])
    commands = [line for line in brief.text.splitlines() if line.startswith("run it again")]
    assert commands == ["run it again: pytest a"]


def test_hostile_names_and_causes_stay_one_line_each() -> None:
    trouble = Unscored("model_error", stage="judge", cause=HOSTILE)
    case = FailedCase(HOSTILE, unscored_text(trouble), True)
    [brief] = brief_texts([case, case])
    assert brief.text == visible(brief.text)
    assert len([line for line in brief.text.splitlines() if line.startswith("  <script>")]) == 2
