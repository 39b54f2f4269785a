"""The decision: each reason for FAIL and UNCLEAR, each PASS, and what is said of it, in all places
alike. Where cases are written as letters, each is one: `.` is judged right, `x` wrong, `-` has no
case, `!` has failed, `u` has lost its label, and a digit counts the wrong verdicts of repeats."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core.cases import Outcome
from pytest_jrh.core.results import CaseResult, JudgeLine
from pytest_jrh.core.scales import numbered
from pytest_jrh.core.sections import GateRules
from pytest_jrh.reports.for_programs import JsonReport, JunitReport, decision_data
from pytest_jrh.reports.markdown import MarkdownReport
from pytest_jrh.reports.page import HtmlReport
from pytest_jrh.reports.report import Display
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.terminal import TerminalReport
from pytest_jrh.stats.changes import Asked, how_asked
from pytest_jrh.stats.decision import Decision, Held, decide
from pytest_jrh.stats.verdicts import Baseline, Scope, tolerated, update
from tests.support.figures import comparison_of
from tests.support.judged_sessions import LAYOUT, derived, judged, right
from tests.support.made_cases import DIGESTS, LEVELS, make_result, make_spec, result_with
from tests.support.page_reader import Page

OTHER = "fedcba9876543210" * 4
EARLIER = "c" * 64
OUTCOMES: dict[str, Outcome] = {"-": "no_case", "!": "model_error", "u": "unlabelled"}
SCALES = {("refunds", "refund_policy"): numbered(1, 3)}


def case(letter: str, run: int = 0, *, label: int = 1, **changes: Any) -> CaseResult:
    """One case of one run; `changes` are of its result and of its spec's judge and rubric."""
    names = {name: changes.pop(name) for name in {"judge", "rubric_id"} & changes.keys()}
    test = "agent_perturbation" if label else "agent_positives"
    spec = make_spec(f"run-{run:03}", test=test, **names)
    if letter in OUTCOMES:
        return make_result(spec, OUTCOMES[letter], **changes)
    wrong = {".": 0, "x": 3}.get(letter)
    wrong = int(letter) if wrong is None else wrong
    outcome: Outcome = "agree" if wrong <= 1 else "disagree"
    result = make_result(spec, outcome, **{**DIGESTS, **changes})
    if not letter.isdecimal():
        return result
    return replace(result, scores=(1 - label,) * wrong + (label,) * (3 - wrong))


def cases(violated: str = "", satisfied: str = "", **changes: Any) -> list[CaseResult]:
    """A case a letter: of each run one that is violated and one that is satisfied."""
    found = [case(letter, run, label=1, **changes) for run, letter in enumerate(violated)]
    return found + [case(letter, run, label=0, **changes) for run, letter in enumerate(satisfied)]


def levels(errors: str) -> list[CaseResult]:
    """A case a digit, of a judge on a scale of three levels, by so many levels too high or low."""
    results = []
    for run, error in enumerate(errors):
        target = run % len(LEVELS)
        given = target + int(error) if target + int(error) <= 2 else target - int(error)
        outcome: Outcome = "agree" if given == target else "disagree"
        spec = make_spec(f"run-{run:03}", target_score=target)
        results.append(make_result(spec, outcome, given, **DIGESTS))
    return results


def scored(*errors: int) -> list[CaseResult]:
    """Cases on a scale from 0 to 100, so far off, where two levels off is right."""
    results = []
    for run, error in enumerate(errors * 10):
        target = 50 + run % 3
        spec = make_spec(f"run-{run:03}", target_score=target)
        outcome: Outcome = "disagree" if error else "agree"
        results.append(result_with(make_result(spec, outcome, target + error, **DIGESTS), within=2))
    return results


def runs_of(number: int, wrong: Sequence[int] = (), **changes: Any) -> list[CaseResult]:
    """Six cases of each run, of three rubrics; of the `wrong` runs all violated ones are missed."""
    results = []
    for place, rubric in enumerate(("honest", "polite", "safe")):
        for run in range(number):
            letter = "x" if run in wrong else "."
            results.append(case(letter, run, label=1, rubric_id=rubric, **changes))
            # One of ten is a false alarm.
            letter = "x" if (run + 3 * place) % 10 == 0 else "."
            results.append(case(letter, run, label=0, rubric_id=rubric, **changes))
    return results


def panel(*wrong: str) -> list[CaseResult]:
    results = []
    for number, letters in enumerate(wrong):
        results += cases(letters, "." * len(letters), judge=f"j{number}")
    return results


def scope_of(results: Iterable[CaseResult]) -> Scope:
    return Scope.of(result.case_id for result in results)


def baseline_of(results: Iterable[CaseResult]) -> Baseline:
    given = list(results)
    return update(Baseline(), given, scope_of(given)).baseline


def earlier(results: Iterable[CaseResult]) -> list[CaseResult]:
    """The same verdicts by the judge with another prompt."""
    return [result_with(one, judge_digest=EARLIER) if one.judge_digest else one for one in results]


def decided(
    now: Sequence[CaseResult],
    before: Iterable[CaseResult] | None = None,
    rules: dict[str, Any] | None = None,
    **held: Any,
) -> Decision:
    """Decide about cases now against those before; `replayed` are verdicts of the same judge."""
    replayed = held.pop("replayed", False)
    baseline = None
    if before is not None:
        baseline = baseline_of(before if replayed else earlier(before))
    scope = held.pop("scope", None) or scope_of(now)
    compared = comparison_of(baseline, now, scope, held.pop("scales", None))
    return decide(compared, GateRules.model_validate(rules or {}), Held(scope, **held))


def relabelled(results: Iterable[CaseResult], lost: int) -> list[CaseResult]:
    """The first cases with the label that the judge gives."""
    given = list(results)
    turned: dict[str, Any] = {"outcome": "agree", "case_digest": OTHER}
    new = [result_with(one, label=1 - (one.label or 0), **turned) for one in given[:lost]]
    return [*new, *given[lost:]]


class Row(NamedTuple):
    """What is decided of cases now and before, and what has to be said."""

    headline: str
    now: list[CaseResult]
    before: list[CaseResult] | None = None
    rules: dict[str, Any] = {}  # noqa: RUF012 - a default that nobody changes
    held: dict[str, Any] = {}  # noqa: RUF012
    beside: str = ""


GOOD = cases("." * 24, "." * 24)
LAXER = cases("x" * 6 + "." * 18, "." * 24)
OTHER_MODEL = {"asked": {"": Asked("another")}}
AGAIN = {"asked": {"": Asked("again")}}
NO_MODEL = {"asked": {"": Asked(is_certain=True)}}
WIDE: dict[str, Any] = {"scales": {("refunds", "refund_policy"): numbered(0, 100)}}
RECALL, ACCURACY = {"min_recall": 0.9}, {"min_accuracy": 0.9}
ONE_CLASS = cases("." * 30)
ONE_FAILED, COMMON = cases("!" + "." * 23, "." * 24), {"common": True}
PROBES = {"probes": {LAYOUT: {"max_rate": 0.05}}}
TURNED = [*judged(right), *derived(["json_layout"])]
LAX = {"min_recall": 0.5, "max_false_alarms": 0.5}
FAR, NEAR, OF_LEVELS = levels("111111110000" * 2), levels("0" * 24), {"scales": SCALES}
OFF, ERROR = levels("110000" * 4), {"max_error": 0.3}
FEW, TEN = judged(right, runs=2), cases("....x", ".....")
FAIL = [
    Row("1 case has no verdict (1 model_error)", ONE_FAILED, GOOD, rules={"min_recall": 0.5}),
    Row("1 case has no verdict (1 never reported)", GOOD[1:], held={"scope": scope_of(GOOD)}),
    Row(
        "21 cases have no verdict (in 19 it ends in X)",
        [*(result_with(one, label=1) for one in cases("!" * 21 + "xxx")), *cases("", "." * 21)],
        held={"no_verdict": "(in 19 it ends in X)"},
        beside="the judge misses 3 of 24 violations (21 without a verdict)",
    ),
    Row("nothing was judged (4 no_case)", cases("--", "--"), rules={"min_recall": 0.5}),
    Row("nothing could be compared with the baseline, because the baseline has no", GOOD, []),
    Row(
        "the judge misses 6 of 24 violations (25%) that it found before",
        LAXER,
        GOOD,
        beside="2 of 100 equally good judges would show such a loss",
    ),
    Row(
        "the judge raises 9 new false alarms on 24 cases (38%) that it passed before",
        cases("." * 24, "x" * 9 + "." * 15),
        GOOD,
        beside="fewer than 1 of 100 equally good judges would show such a loss",
    ),
    Row(
        'the judge is newly wrong on 12 of 60 cases of "sold"',
        [*runs_of(30), *cases("x" * 12 + "." * 48, rubric_id="sold")],
        [*runs_of(30), *cases("." * 60, rubric_id="sold")],
        rules={"max_drop": 0.09},
    ),
    Row("the judge is off by 0.67 levels on average (0.00 before)", FAR, NEAR, held=OF_LEVELS),
    # As far off on average, and all in one direction.
    Row('the judge scores "refund_policy" 9.00 levels too', scored(9, 9), scored(-9, 9), held=WIDE),
    Row(
        "the judge misses 18 of 72 violations (25%) that it found before",
        runs_of(24, wrong=range(6)),
        runs_of(24),
        held=OTHER_MODEL,
        beside="such a loss (counting 24 clusters, not cases)",
    ),
    Row("the judge misses 6 of 24 violations (25%); min_recall 90% allows 2", LAXER, rules=RECALL),
    Row(
        "the judge raises 6 false alarms on 24 satisfied cases (25%); max_false_alarms 10% allo",
        cases("." * 24, "x" * 6 + "." * 18),
        rules={"max_false_alarms": 0.1},
    ),
    Row("the judge is wrong on 6 of 48 cases (12%); min_accuracy 90% all", LAXER, LAXER, ACCURACY),
    Row("the judge is off by 0.33 levels on average; max_error allows 0.3", OFF, rules=ERROR),
    Row(
        "max_false_alarms of the judge is not known, because no verdict was given",
        cases("." * 24),
        rules={"max_false_alarms": 0.1},
    ),
    Row(
        'judge "words" misses 12 of 12 violations and raises 1 false alarm on 12 satisfied cases',
        cases("x" * 12, "x" + "." * 11),
        held={"subjects": {"": 'judge "words"'}},
    ),
    Row(f"{LAYOUT} misled the judge in 10 of 20 verdicts; max_rate", TURNED, rules=PROBES),
    Row(f"no case of {LAYOUT} has a verdict", judged(right), rules=PROBES),
    Row(
        'judge "j0" misses 8 of 24 violations (33%) that it found before; there is a simil',
        panel("x" * 8 + "." * 16, "x" * 9 + "." * 15, "." * 24),
        panel("." * 24, "." * 24, "." * 24),
        beside='judge "j1" misses 9 of 24 violations (38%) that it found before',
    ),
]
FAIL += [
    Row(
        "the judge is wrong on 10 of 10 new cases, but on 0 of 40",
        cases("." * 20 + "x" * 5, "." * 20 + "x" * 5),
        cases("." * 20, "." * 20),
        beside="10 of 10 new cases have a wrong verdict",
    ),
    Row(
        "the judge misses 2 of 22 violations (9%); the baseline has no case of this rubric, class",
        [*GOOD, *cases("xx" + "." * 20, "." * 20, rubric_id="polite")],
        GOOD,
        rules={"max_false_alarms": 0.5},
    ),
    Row(
        "the judge raises 1 false alarm on 20 satisfied cases; no limit covers these cases",
        cases("." * 20, "x" + "." * 19),
        rules={"min_recall": 0.5},
    ),
    Row(f"the judge is misled by {LAYOUT} in 10 of 20 verdicts", TURNED, rules=LAX),
    Row(
        "the judge misses 4 of 10 violations that it found before",
        cases("xxxx" + "." * 6, "." * 10),
        cases("." * 10, "." * 10),
        held=NO_MODEL,
        beside="the judge asks no model, so chance plays no part",
    ),
]
UNCLEAR = [
    Row(
        'the judge is wrong in 24 of 72 verdicts (0 before) on "violated" cases; fewer '
        "than 1 of 100 equally good judges would show such a loss",
        cases("1" * 24, "0" * 24),
        cases("0" * 24, "0" * 24),
    ),
    Row(
        'the judge is newly wrong on 3 of 24 cases of "sold"; 12 of 100 equally good judges would '
        "show such a loss (6.2 of 100 in the gate, which counts equal losses half)",
        [*runs_of(12), *cases("xxx" + "." * 21, rubric_id="sold")],
        [*runs_of(12), *cases("." * 24, rubric_id="sold")],
        rules={"max_drop": 0.05},
    ),
    Row(
        "the judge is wrong on 2 of 6 new cases, but on 2 of 40 compared cases",
        cases("." * 18 + "xxxx....", "." * 20),
        cases("." * 18 + "xx", "." * 20),
    ),
    Row(
        f"the judge is misled by {LAYOUT} in 1 of 20 verdicts, but this may be flicker",
        [*judged(right), *derived(["a"], variants="abcdefghijklmnopqrst")],
        rules=LAX,
    ),
    Row(
        "the judge misses 12 of 12 violations that it found before; 6 of 100 equally good",
        runs_of(4, wrong=range(4)),
        runs_of(4),
        rules={"max_drop": 0.05},
        held=OTHER_MODEL,
    ),
    Row(
        "the judge misses 0 of 24 violations; min_recall 90% allows 2, but these cases do not ",
        GOOD,
        rules={"proof": True, "min_recall": 0.9},
    ),
    Row(
        "the judge misses 1 of 24 violations (4%); min_recall 100% allows 0, but flicker",
        cases("2" + "1" * 23, "0" * 24),
        rules={"min_recall": 1},
    ),
    Row("the comparison has 44 of 48 cases: 4 no longer in", GOOD[4:], GOOD, {}, COMMON),
    Row(
        "the judge says the opposite of the labels: perhaps two values are swapped; turn it",
        cases("x" * 12, "x" * 12),
        cases("x" * 12, "x" * 12),
        held={"turning": "turn it"},
    ),
    Row(
        "judged 42 of 48 cases, and skipped 6",
        GOOD[6:],
        rules=RECALL,
        held={"left_out": {result.case_id for result in GOOD[:6]}},
    ),
    Row("every label is 1, so a judge could always say 1 and be right", ONE_CLASS, ONE_CLASS),
]
PASS = [
    Row(
        "no verdict changed: as good as before on 48 cases (24 violations); "
        "other cases may have up to 12 points less recall and 12 points more false alarms",
        GOOD,
        GOOD,
    ),
    Row(
        "the judge misses 6 of 300 violations (2%) that it found before: a loss of 2 "
        "points, and the gate allows 5 points",
        cases("x" * 6 + "." * 294, "." * 300),
        cases("." * 300, "." * 300),
    ),
    Row(
        "the judge is not shown to be worse than before: 2 of 48 cases (4%) newly wrong",
        cases("xx" + "." * 22, "." * 24),
        cases("." * 22 + "xx", "." * 24),
        beside="it is newly right in 2 cases; in total, it is wrong in as many cases as before",
    ),
    Row(
        "no verdict changed: as good as before on 10 cases",
        TEN,
        TEN,
        {"proof": True},
        {"replayed": True},
    ),
    Row(
        "no verdict changed: as good as before on 200 cases (100 violations); "
        "other cases may have up to 3 points less recall and 3 points more false alarms",
        cases("." * 100, "." * 100),
        cases("." * 100, "." * 100),
        rules={"proof": True},
    ),
    Row("the judge agrees with all 48 labels (90-100%", GOOD),
    Row("the judge agrees with all 8 labels, of which people", FEW, held={"wrong_labels": 2}),
    Row(
        "this change updates the baseline: it accepts 10 newly missed; the judge is",
        GOOD,
        GOOD,
        held={"changed": "it accepts 10 newly missed"},
    ),
    Row(
        "these verdicts are now the baseline; this update accepts 6 newly wrong cases",
        LAXER,
        GOOD,
        held={"accepts": True},
    ),
    Row(
        "the judge agrees with all 48 labels",
        [*judged(right), *derived(["a", "b"], variants="abcdefghijklmnopqrst")],
        rules=PROBES,
    ),
]


@pytest.mark.parametrize(
    ("word", "row"),
    [
        pytest.param(word, row, id=f"{word}, {row.headline}")
        for word, rows in (("FAIL", FAIL), ("UNCLEAR", UNCLEAR), ("PASS", PASS))
        for row in rows
    ],
)
def test_what_is_decided_and_what_is_said(word: str, row: Row) -> None:
    decision = decided(row.now, row.before, row.rules, **row.held)
    assert (decision.word, decision.headline[: len(row.headline)]) == (word, row.headline)
    assert row.beside in "\n".join(decision.beside)
    is_about_change = {reason.kind for reason in decision.reasons} != {"useless"}
    assert decision.passed is (word == "PASS" or (word == "UNCLEAR" and not is_about_change))
    for unclear in ("pass", "fail"):
        told = decided(row.now, row.before, {**row.rules, "unclear": unclear}, **row.held)
        assert told.word == word
        assert told.passed is (word == "PASS" or (word == "UNCLEAR" and unclear == "pass"))


@pytest.mark.parametrize(
    ("before", "rules", "why"),
    [
        (None, {}, None),
        (None, {"min_recall": 0.9}, "left to `decision`"),
        ([], {}, "left to `decision`"),
        (cases("."), {}, "left to `decision`"),
        (cases("x"), {}, "wrong in the baseline too"),
        ([case("x", case_digest=OTHER)], {}, "left to `decision`"),
    ],
)
def test_why_a_wrong_verdict_is_let_through(
    before: list[CaseResult] | None, rules: dict[str, Any], why: str | None
) -> None:
    baseline = None if before is None else baseline_of(before)
    assert tolerated(case("x"), baseline, GateRules(**rules)) == why


def test_a_known_mistake_says_its_reason_and_an_update_accepts_a_new_one() -> None:
    [line] = baseline_of(cases("x")).cases.values()
    known = Baseline({line.case_id: result_with(line, reason="sarcasm, see issue 12")})
    why = tolerated(case("x"), known, GateRules())
    assert why == "wrong in the baseline too: sarcasm, see issue 12"
    new = tolerated(case("x", 9), known, GateRules(), accepts=True)
    assert new == "accepted into the baseline"
    # Only wrong verdicts are tolerated.
    for letter in ".-!u":
        assert tolerated(case(letter), Baseline(), GateRules(min_accuracy=0.0)) is None


PROMPT = JudgeLine("refunds", EARLIER, "prompt_path", ("m",), {}, True, prompt="Judge it.")
WORDED = replace(PROMPT, judge_digest=OTHER, prompt="Judge it well.")
HOTTER = replace(PROMPT, judge_digest=OTHER, parameters={"temperature": 1.0})
CODE = JudgeLine("refunds", EARLIER, "python", (), {}, False)
ASKING = replace(CODE, asks_model=True)


@pytest.mark.parametrize(
    ("now", "lines", "is_random", "asked"),
    [
        (PROMPT, [PROMPT, PROMPT], False, Asked("again")),
        (WORDED, [PROMPT], False, Asked("changed")),
        # Some lines are of an earlier prompt.
        (PROMPT, [PROMPT, WORDED], False, Asked("changed")),
        (replace(WORDED, models=("n",)), [PROMPT], False, Asked("another")),
        (HOTTER, [PROMPT], False, Asked("changed")),
        # Code is certain where neither side asks, and is never asked again.
        (CODE, [CODE], False, Asked("changed", is_certain=True)),
        (CODE, [CODE], True, Asked("changed")),
        (ASKING, [ASKING], False, Asked("changed")),
        (CODE, [ASKING], False, Asked("changed")),
    ],
)
def test_compared_as(now: JudgeLine, lines: list[JudgeLine], is_random: bool, asked: Asked) -> None:
    before = []
    for result, line in zip(cases("." * len(lines)), lines, strict=True):
        before.append(result_with(result, judge_digest=line.judge_digest))
    baseline = update(Baseline(), before, scope_of(before), lines).baseline
    digests = baseline.earlier_judges(baseline.cases)
    assert how_asked(now, digests, baseline, is_random=is_random) == asked


@pytest.mark.parametrize(
    ("before", "now", "word", "said"),
    [
        (0, 2, "PASS", " in 2 of 20 verdicts"),
        (10, 10, "PASS", ""),
        (10, 12, "PASS", " in 2 of 20 verdicts"),
        (10, 13, "UNCLEAR", ""),
        (0, 10, "FAIL", ""),
    ],
)
def test_a_probe_in_the_baseline_is_a_set(before: int, now: int, word: str, said: str) -> None:
    variants = [f"v{run:02}" for run in range(20)]
    old, new = ([*judged(right), *derived(variants[:n], variants=variants)] for n in (before, now))
    decision = decided(new, old)
    assert decision.word == word
    assert said in "; ".join(decision.beside)


def test_nothing_is_newly_wrong_within_the_tolerance() -> None:
    decision = decided(scored(2, -2), scored(0, 0), {"max_drop": 0.0}, **WIDE)
    [of_all] = [of for of in decision.sets if of.kind == "all"]
    assert (of_all.lost, of_all.now.wrong) == ((), 0)
    assert decided(scored(3, -3), scored(0, 0), {"max_drop": 0.0}, **WIDE).word == "FAIL"


@pytest.mark.parametrize(("spread", "word"), [(0, "FAIL"), (12, "UNCLEAR")])
def test_the_flicker_of_an_error_limit_is_in_levels(spread: int, word: str) -> None:
    results = []
    for result in scored(10, 11):
        scores = tuple(result.scores[0] + step for step in (0, 0, spread, -spread, 0))
        results.append(replace(result, scores=scores, reasons=("",) * 5))
    assert decided(results, None, {"max_error": 10.4}, **WIDE).word == word


def test_what_the_same_judge_loses_by_chance_is_flicker() -> None:
    before, now = cases("." * 22 + "xx", "." * 24), cases("x" + "." * 22 + "x", "." * 24)
    turned = {now[0].case_id, now[22].case_id}
    assert decided(now, before, replayed=True).flickered == turned
    assert decided(now, before).flickered == frozenset()
    # What is more than chance explains is no flicker.
    assert decided(LAXER, GOOD, replayed=True).flickered == frozenset()


def test_what_was_deselected_or_is_of_another_suite_is_on_neither_side() -> None:
    other = make_result(make_spec("run-9", suite="other"), **DIGESTS)
    scope = Scope.of([result.case_id for result in GOOD], [GOOD[0].case_id, GOOD[1].case_id])
    decision = decided(GOOD[:2], [*GOOD, other], scope=scope)
    assert (decision.word, decision.compared, decision.never_reported) == ("PASS", 2, [])
    assert "(2 violations); other cases may have up to 98 points" in decision.headline
    assert decision.headline.endswith("less recall (46 cases deselected)")
    assert decision.comparison is not None
    assert not decision.comparison.not_comparable


def test_a_rate_of_a_probe_without_selected_cases_is_left_out() -> None:
    plain, more = judged(right), derived(["json_layout"])
    known = [result.case_id for result in [*plain, *more]]
    part = Scope.of(known, [result.case_id for result in plain])
    assert decided(plain, None, PROBES, scope=part).limits == ()
    alone = Scope.of(known, [result.case_id for result in more])
    assert decided(more, None, PROBES, scope=alone).word == "FAIL"


LETTERS = st.text(".x-!u0123", min_size=1, max_size=6)
RULES = st.fixed_dictionaries(
    {"max_drop": st.sampled_from([0, 0.05, 0.5]), "proof": st.booleans()},
    optional={"min_recall": st.floats(0, 1), "min_accuracy": st.floats(0, 1)},
)


@given(LETTERS, LETTERS, st.none() | st.tuples(LETTERS, LETTERS), RULES)
@settings(max_examples=150)
def test_items_and_decision_give_one_answer(
    violated: str, satisfied: str, before: tuple[str, str] | None, rules: dict[str, Any]
) -> None:
    """No item is red where the decision is green."""
    now = cases(violated, satisfied)
    baseline = None if before is None else baseline_of(earlier(cases(*before)))
    gate = GateRules.model_validate(rules)
    decision = decide(comparison_of(baseline, now, scope_of(now)), gate, Held(scope_of(now)))
    wrong = [result for result in now if result.outcome == "disagree"]
    failing = [result for result in wrong if tolerated(result, baseline, gate) is None]
    assert not (failing and decision.passed)
    assert json.dumps(decision_data(decision))


ANY_SCORES = st.lists(st.sampled_from([0, 1, 2, 3, -7, 10**30]), min_size=1, max_size=4).map(tuple)


@st.composite
def any_session(draw: st.DrawFn) -> list[CaseResult]:
    """Cases of one or three judges, with any numbers of repeats, and scores of any scale."""
    ordinal = draw(st.booleans())
    results = []
    panels: list[tuple[str | None, ...]] = [(None,), ("j0", "j1", "j2")]
    for judge in draw(st.sampled_from(panels)):
        for place, scores in enumerate(draw(st.lists(ANY_SCORES, min_size=1, max_size=6))):
            label = place % 4 if ordinal else place % 2
            spec = make_spec(
                f"run-{place // 2}",
                rubric_id=f"rubric-{place % 3}",
                test="agent_perturbation" if ordinal or label else "agent_positives",
                target_score=label if ordinal else None,
                judge=judge,
            )
            results.append(make_result(spec, label=label, **DIGESTS, scores=scores))
    return results


@given(any_session(), any_session(), st.sampled_from([0, 0.05]))
@settings(max_examples=60)
def test_the_same_verdicts_never_fail_and_any_others_come_to_a_decision(
    now: list[CaseResult], accepted: list[CaseResult], allowed: float
) -> None:
    same = decided(now, now, {"max_drop": allowed})
    assert same.word != "FAIL"
    assert not same.regressions
    other = decided(accepted, now, {"max_drop": allowed})
    assert other.headline
    assert json.dumps(decision_data(other))


@pytest.mark.parametrize(
    ("now", "before", "held", "needs"),
    [
        ("xx..", "....", {}, "new judge 3 times (`repeats: 3`), or label 6 more violations"),
        ("3300", "0000", {}, "label 6 more violations"),
        ("33000000", "00000000", {}, "label 11 more violations"),
        ("xxxx", "....", OTHER_MODEL, "compare at least 6 independent cases"),
    ],
)
def test_unclear_says_what_decides(now: str, before: str, held: dict[str, Any], needs: str) -> None:
    decision = decided(cases(now, "." * len(now)), cases(before, "." * len(now)), **held)
    assert decision.word == "UNCLEAR"
    assert decision.reasons[0].needs.endswith(needs)


@pytest.mark.parametrize("kind", [{}, {"is_table": True}, {"is_merge": True}])
@pytest.mark.parametrize("unclear", [None, "pass", "fail"])
@pytest.mark.parametrize("row", [*FAIL, *UNCLEAR, *PASS], ids=lambda row: row.headline)
def test_all_places_say_the_same(row: Row, unclear: str | None, kind: Any, tmp_path: Path) -> None:
    """In a session, a table (`check`), and merged shards."""
    rules = {**row.rules, "unclear": unclear}
    decision = decided(row.now, row.before, rules, **row.held)
    session = Session(tuple(row.now), decisions={"refunds": decision}, folder=tmp_path, **kind)
    title = f"{decision.word}: {decision.headline}"
    is_red = not decision.passed
    assert session.passed is not is_red

    data = json.loads(JsonReport().text(session))["decision"]
    assert (data["word"], data["headline"]) == (decision.word, decision.headline)
    assert data["exit_code"] == int(is_red)

    [test] = ElementTree.fromstring(JunitReport().text(session)).iter("testcase")
    failures = [" ".join(str(one.get("message")).split()) for one in test]
    assert failures == ([" ".join(title.replace(":", "", 1).split())] if is_red else [])

    display = Display(tmp_path)
    lines = [line.text.strip() for line in TerminalReport().lines(session, display)]
    assert " ".join(lines).startswith(title.replace(": ", "  ", 1))
    markdown = MarkdownReport().text(session).partition("\n")[0].replace("\\", "")
    assert markdown.endswith(title)
    HtmlReport().write(tmp_path / "page.html", session)
    page = Page.of((tmp_path / "page.html").read_text("utf-8"))
    [page_title] = page.all("title")
    assert page_title.text.casefold() == title.replace(":", "", 1).casefold()
