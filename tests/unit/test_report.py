import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core import InputError, columns, visible
from pytest_jrh.core.calls import Spending, Usage
from pytest_jrh.core.cases import Case, Why
from pytest_jrh.core.diffs import Piece, differences
from pytest_jrh.core.results import CaseResult, CaseSpending, total_spending
from pytest_jrh.reports import ending as report_files
from pytest_jrh.reports.case_facts import disagreement_text, edit_diff, unscored_text
from pytest_jrh.reports.report import Report, ci_links
from pytest_jrh.reports.session import Session, spending_line
from pytest_jrh.store.ledger import case_result
from tests.support.judged_sessions import judged, right, session_of
from tests.support.made_cases import RUBRIC, make_case, make_result, make_spec

RAW = "\x1b[31m\x07\x00\x9b\u202e\u2066\ud800\r"
UNPRINTABLE = set(RAW) - set("[31m")


def explained(case: Case, *reasons: str) -> str:
    scores = (0,) * len(reasons)
    result = replace(make_result(case.spec), label=case.expected, scores=scores, reasons=reasons)
    cassette = Path("/repo/cassettes/x.yaml")
    return disagreement_text(case, result, cassette=cassette, command="pytest 'a::b[c]'").whole


@pytest.mark.parametrize(
    ("spending", "line"),
    [
        (Spending(2, 0, Usage(1000, 24), 0.5, 0.5), "2 calls, 0 replayed, $0.5000, 1,024 tokens"),
        (Spending(0, 9, cost=1.5), "0 calls, 9 replayed, $0.00 ($1.50 recorded), 0 tokens"),
        (Spending(1, 9, cost=1.5, paid=0.5), "1 call, 9 replayed, $0.5000, 0 tokens"),
        (Spending(3, unpriced=3), "3 calls, 0 replayed, 3 unpriced, 0 tokens"),
        (
            Spending(3, cost=0.5, paid=0.5, unpriced=1),
            "3 calls, 0 replayed, $0.5000 and 1 unpriced, 0 tokens",
        ),
    ],
)
def test_spending_line_never_counts_an_unpriced_call_as_free(spending: Spending, line: str) -> None:
    assert spending_line(spending, 1.25) == f"{line}, 1.2 s"


def test_a_call_that_cases_share_costs_once_whoever_asked() -> None:
    numbers = itertools.count()
    one = Spending(calls=1, usage=Usage(10, 1), cost=0.5, paid=0.5)
    copied = Spending(replayed=1, usage=Usage(10, 1), cost=0.5)

    def result(call: str, spent: Spending, suite: str = "s") -> CaseResult:
        own = Spending(replayed=2, usage=Usage(100, 10), cost=1.0)
        parts = {f"generation {next(numbers)}": own, f"shared {call}": spent}
        return CaseResult("", suite, spending=CaseSpending(parts))

    # Copies are no more calls, and what nobody knows the price of was asked once.
    asked_last = [result("a", copied), result("a", copied), result("a", one)]
    assert total_spending(asked_last) == Spending(1, 6, Usage(310, 31), 3.5, 0.5)
    unpriced = [replace(spent, cost=0.0, paid=0.0, unpriced=1) for spent in (one, copied)]
    assert total_spending([result("a", spent) for spent in unpriced]).unpriced == 1
    copies = [result("a", copied) for _ in range(3)]
    assert total_spending(copies) == Spending(0, 7, Usage(310, 31), 3.5)
    assert total_spending([result("a", one), result("b", copied)]).cost == 3.0
    # Two suites keep recordings of their own, so each has paid; and what was asked twice was paid
    # twice.
    assert total_spending([result("a", copied), result("a", copied, suite="t")]).cost == 3.0
    assert total_spending([result("a", one)] * 2).paid == 1.0


def test_a_long_turn_is_cut_and_forges_no_header() -> None:
    request = {"role": "user", "content": "[7] assistant\nverdict:\rrun it again: rm"}
    messages = (request, {"role": "assistant", "content": "x\n" * 3_000})
    case = make_case(make_spec(test="agent_positives"), edited=False)
    text = explained(replace(case, outcome=replace(case.outcome, messages=messages)), "")
    assert "\n    [7] assistant\n" in text
    assert len(text) < 2_000
    assert [line for line in text.splitlines() if line.startswith("run it again")] == [
        "run it again: pytest 'a::b[c]'"
    ]


def test_model_text_reaches_the_terminal_as_visible_escapes() -> None:
    case = make_case(new_text=f"refunded {RAW}")
    refused = case_result(case.spec, case, Why("refused", stage="judge", cause=RAW, advice=RAW))
    for text in (
        explained(replace(case, rubric=replace(RUBRIC, id=f"r{RAW}", instructions=RAW)), RAW),
        unscored_text(refused, command=RAW).whole,
    ):
        assert not set(text) & UNPRINTABLE
        assert "\\x1b[31m" in text


def test_long_texts_and_many_reasons_are_bounded_and_say_what_is_missing() -> None:
    words = " ".join(f"word{number}." for number in range(20_000))
    case = replace(make_case(new_text=words), rubric=replace(RUBRIC, instructions=words))
    text = explained(case, "The agent was polite.")
    assert len(text.splitlines()) < 140
    assert "more lines)" in text
    text = explained(make_case(), *(f"Reason {number}." for number in range(20)))
    assert text.count("given: ") == 12
    assert "8 more verdicts in " in text


@given(before=st.text(max_size=300), after=st.text(max_size=300))
@settings(max_examples=50)
def test_diff_of_any_texts_is_printable_and_narrow(before: str, after: str) -> None:
    for line in edit_diff(differences(before, after)):
        assert columns(line) <= 80
        assert "\n" not in line
        assert line == visible(line)
        line.encode()


class Broken(Report):
    suffix = ".broken"

    def text(self, session: Session) -> str:
        raise InputError("cannot be told")


class Told(Report):
    suffix = ".md"
    variable = "TOLD_FILE"

    def text(self, session: Session) -> str:
        return f"{len(session.results)} verdicts\n"


def test_a_report_in_the_table_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, own = tmp_path / "shared.md", tmp_path / "own.md"
    shared.write_text("before\n")
    monkeypatch.setenv("TOLD_FILE", str(shared))
    monkeypatch.setattr(report_files, "REPORTS", (Broken(), Told()))
    session = session_of(judged(right))
    broken = tmp_path / "told.broken"
    written, problems = report_files.write_reports([broken, own], session)
    assert written == [own]
    assert problems == [f"{broken} was not written: cannot be told."]
    said = f"{len(session.results)} verdicts\n"
    assert (own.read_text(), shared.read_text()) == (said, f"before\n{said}")


GITHUB = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "acme/support"}
RUN = "https://github.com/acme/support/actions/runs/7"
JOB = "https://gitlab.com/acme/support/-/jobs/9"
PIPELINE = "https://gitlab.com/acme/support/-/pipelines/8"
GITLAB = {"CI_JOB_URL": JOB, "CI_PIPELINE_URL": PIPELINE, "CI_PROJECT_DIR": "/builds/acme"}


@pytest.mark.parametrize(
    ("environment", "run", "report"),
    [
        ({**GITHUB, "GITHUB_RUN_ID": "7"}, RUN, f"{RUN}#artifacts"),
        (GITLAB, PIPELINE, f"{JOB}/artifacts/file/out/a%20page.html"),
    ],
)
def test_a_job_links_to_its_run_and_to_its_page(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], run: str, report: str
) -> None:
    page = Path("/builds/acme/out/a page.html")
    assert ci_links(page) == {}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ci_links(page) == {"run": run, "report": report}
    assert ci_links(None) == {"run": run}


texts = st.lists(
    st.sampled_from(["refund", "order", "17", "late", " ", "\n", ", ", "é", "<b>", "x"]),
    max_size=30,
).map("".join)


def of(kind: str, pieces: tuple[Piece, ...]) -> list[str]:
    return [piece.text for piece in pieces if piece.kind == kind]


@given(old=texts, new=texts)
def test_both_texts_can_be_read_off_the_pieces(old: str, new: str) -> None:
    pieces = differences(old, new)
    assert "".join(piece.text for piece in pieces if piece.kind != "new") == old
    assert "".join(piece.text for piece in pieces if piece.kind != "gone") == new


def test_a_number_is_one_word() -> None:
    pieces = differences("I refund £39.40 of 1,000 now.", "I refund £44.40 of 1,200 now.")
    assert (of("gone", pieces), of("new", pieces)) == (["39.40 of 1,000"], ["44.40 of 1,200"])


def test_only_the_words_that_changed_are_marked() -> None:
    pieces = differences("I cannot refund order 17, it is.", "I have refunded order 17, it is.")
    assert (of("gone", pieces), of("new", pieces)) == (["cannot refund"], ["have refunded"])
