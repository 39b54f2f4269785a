"""What must never be green, and what must: whole suites in memory, each as somebody would cheat, or
slip, and as somebody would work.

The suite is 27 runs with a violated and a satisfied case each. `LOST` is a judge that misses six of
the violations that it found before.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_jrh.core.results import CaseResult
from pytest_jrh.stats.comparison import Scope
from tests.support.judged_sessions import derived
from tests.unit.test_decision import (
    AGAIN,
    NO_MODEL,
    OTHER_MODEL,
    case,
    cases,
    decided,
    levels,
    panel,
    relabelled,
    runs_of,
)

RUNS = 27
ALL = "." * RUNS
SOUND = cases(ALL, ALL)
LOST = cases("x" * 6 + "." * (RUNS - 6), ALL)


def without(results: Sequence[CaseResult], lost: int) -> list[CaseResult]:
    """The results but the first ones: those that the judge has lost."""
    return list(results[lost:])


def now_are(letter: str) -> list[CaseResult]:
    """The six lost cases without a verdict that counts."""
    return cases(letter * 6 + "." * (RUNS - 6), ALL)


def coin(seed: int, wrong: float = 0.5) -> list[CaseResult]:
    rng = random.Random(seed)
    letters = ["x" if rng.random() < wrong else "." for _ in range(2 * RUNS)]
    return cases("".join(letters[:RUNS]), "".join(letters[RUNS:]))


# The satisfied cases are of other runs than the violated ones.
ONE_EACH = [*LOST[:RUNS], *(case(".", run, label=0) for run in range(RUNS, 2 * RUNS))]
PROBED = [*SOUND, *derived()]
TURNED = [*SOUND, *derived(["ids"])]
NEW_RUNS = [case("x."[run % 2], run, label=label) for run in range(50, 90) for label in (0, 1)]
GROWN = [*SOUND, *NEW_RUNS]
ALL_TURNED = derived(["json_layout", "ids"], probe="prompt_injection", runs=54)
CONSTANT = cases(ALL, "x" * RUNS)
LIMITS = {"min_recall": 0.7, "max_false_alarms": 0.3}
CLEAN = cases("." * 2_997, "xxx")
# Name, what is judged now, what the baseline was made of, rules, and the word.
NEVER: dict[str, tuple[list[CaseResult], list[CaseResult] | None, dict[str, Any], str]] = {
    "the judge itself": (LOST, SOUND, {}, "FAIL"),
    "no verdict on the lost cases": (now_are("!"), SOUND, {}, "FAIL"),
    "lost cases cannot be made": (now_are("-"), SOUND, {}, "UNCLEAR"),
    "198 of 200 left": (cases("." * 100, "." * 100)[99:101], cases("." * 100, "." * 100), {}, ""),
    "labels of lost cases turned": (relabelled(LOST, 6), SOUND, {}, "UNCLEAR"),
    "labels of lost cases deleted or tied": (now_are("u"), SOUND, {}, "UNCLEAR"),
    "runs deleted": (without(LOST, 6), SOUND, {}, "UNCLEAR"),
    "sample lowered": ([*LOST[6:16], *LOST[33:43]], SOUND, {}, "UNCLEAR"),
    "probe removed with its gate": (SOUND, PROBED, {}, "UNCLEAR"),
    "a probe turns verdicts, and its gate is removed": (TURNED, PROBED, {}, "FAIL"),
    "grown by a coin": (GROWN, SOUND, {}, "FAIL"),
    "member of a panel removed": (
        panel(ALL, ALL),
        panel(ALL, ALL, "x" + "." * (RUNS - 1)),
        {},
        "UNCLEAR",
    ),
    "three repeats to one": (SOUND, cases("0" * RUNS, "0" * RUNS), {}, "UNCLEAR"),
    "all lines of the baseline but one": (LOST, SOUND[6:7], {}, "UNCLEAR"),
    "all lines but one, a case a run": (ONE_EACH, ONE_EACH[6:7], {}, "UNCLEAR"),
    "all lines but one, of a judge on a scale": (
        levels("1" * 6 + "0" * 24),
        levels("0" * 30)[10:11],
        {},
        "UNCLEAR",
    ),
    "all lines but one of each class, a case a run": (
        ONE_EACH,
        ONE_EACH[RUNS:][:1] + ONE_EACH[6:7],
        {},
        "UNCLEAR",
    ),
    "five of 54 frozen cases deleted": (without(LOST, 5), SOUND, {}, "UNCLEAR"),
    "a constant judge": (CONSTANT, None, LIMITS, "FAIL"),
    "a constant judge before and now": (CONSTANT, CONSTANT, {}, "UNCLEAR"),
    "a constant judge, 3 clean of 3,000": (CLEAN, CLEAN, {"min_accuracy": 0.9}, "UNCLEAR"),
    "one to five of 24 missed": (
        cases("x" * 5 + "." * 19, "." * 24),
        cases("x" + "." * 23, "." * 24),
        {},
        "FAIL",
    ),
    "4 of 4 violations among 40 cases": (
        cases("xxxx", "." * 36),
        cases("....", "." * 36),
        {},
        "FAIL",
    ),
    "54 of 54 verdicts turned by a probe, beside min_recall": (
        [*SOUND, *ALL_TURNED],
        None,
        {"min_recall": 0.5, "max_false_alarms": 0.5},
        "FAIL",
    ),
    "54 of 54 turned by a probe, beside a rule of another one": (
        [*SOUND, *ALL_TURNED, *derived(probe="format_invariance")],
        None,
        {"probes": {"format_invariance": {"max_rate": 0.05}}},
        "FAIL",
    ),
    "10 of 20 new cases wrong": (
        [*SOUND, *(case("x."[run % 2], run, label=run // 2 % 2) for run in range(50, 70))],
        SOUND,
        {},
        "FAIL",
    ),
    "a new rubric with mistakes": (
        [*SOUND, *cases("xx" + "." * 18, "." * 20, rubric_id="polite")],
        SOUND,
        {},
        "FAIL",
    ),
    "false alarms beside min_recall alone": (
        cases(ALL, "xx" + "." * (RUNS - 2)),
        None,
        {"min_recall": 0.9},
        "FAIL",
    ),
    "labels inverted": (
        cases("x" * RUNS, "x" * RUNS),
        cases("x" * RUNS, "x" * RUNS),
        {},
        "UNCLEAR",
    ),
    **{f"a coin, seed {seed}": (coin(seed), coin(seed), {}, "") for seed in range(8)},
    **{
        f"another coin, seed {seed}": (coin(seed), coin(seed + 100), {"min_recall": 0.2}, "")
        for seed in range(8)
    },
}


@pytest.mark.parametrize("name", NEVER)
def test_none_of_these_is_pass(name: str) -> None:
    now, before, rules, word = NEVER[name]
    decision = decided(now, before, rules)
    assert decision.word == (word or decision.word)
    assert decision.word in ("FAIL", "UNCLEAR")
    assert not decided(now, before, {**rules, "unclear": "fail"}).passed


BETTER = coin(3, 0.02)
ALWAYS: dict[str, tuple[list[CaseResult], list[CaseResult], dict[str, Any]]] = {
    "the same": (SOUND, SOUND, {}),
    "the same mistakes": (LOST, LOST, {}),
    "sound verdicts of a new judge on 5 runs": (runs_of(5), runs_of(5), OTHER_MODEL),
    "sound verdicts of a new judge on 50 runs": (runs_of(50), runs_of(50), OTHER_MODEL),
    "sound verdicts of a new judge on 10 runs": (runs_of(10), runs_of(10), OTHER_MODEL),
    "two flips of 54": (cases("xx" + "." * 25, "." * 27), SOUND, {}),
    "one of 30 violations lost": (cases("x" + "." * 29, "." * 30), cases("." * 30, "." * 30), {}),
    "the same judge again, at 5% flicker": (coin(11, 0.05), coin(12, 0.05), AGAIN),
    "a new rubric without a mistake": ([*SOUND, *cases(ALL, ALL, rubric_id="polite")], SOUND, {}),
    "a new judge of a panel without a mistake": (panel(ALL, ALL), panel(ALL), {}),
    "a judge that asks no model loses one": (cases("x" + "." * 26, ALL), SOUND, NO_MODEL),
    "a judge that got better": (SOUND, LOST, {}),
    "another judge that is better": (BETTER, LOST, OTHER_MODEL),
    "a suite grown from 20 runs to 70": (cases("." * 70, "." * 70), cases("." * 20, "." * 20), {}),
    "a suite grown from 5 runs to 55": (runs_of(55), runs_of(5), {}),
    "a suite grown from 5 runs to 55, a case a run": (
        cases("." * 55, "." * 55),
        cases("." * 5, "." * 5),
        {},
    ),
}


def test_lost_cases_that_a_marker_skips_are_unclear() -> None:
    left_out = {result.case_id for result in LOST[:6]}
    scope = Scope.of((result.case_id for result in LOST), (result.case_id for result in LOST[6:]))
    decision = decided(LOST[6:], SOUND, scope=scope, left_out=left_out)
    assert decision.headline == "48 of 54 cases compared: 6 skipped"
    assert (decision.word, decision.beside) == ("UNCLEAR", ("6 cases skipped by markers",))
    # What the baseline has not was skipped before, too.
    assert decided(LOST[6:], SOUND[6:], scope=scope, left_out=left_out).word == "PASS"


@pytest.mark.parametrize(("lost", "word"), [(1, "PASS"), (2, "UNCLEAR"), (6, "FAIL")])
def test_two_selected_cases_that_are_all_newly_wrong_are_never_pass(lost: int, word: str) -> None:
    scope = Scope.of(
        (result.case_id for result in LOST), (result.case_id for result in LOST[:lost])
    )
    decision = decided(LOST[:lost], SOUND, scope=scope)
    assert decision.word == word
    # A single case is no loss, and is named.
    assert "1 of 1 case newly wrong" in decision.headline or lost > 1


LIMITED = {"min_recall": 0.5, "max_false_alarms": 0.5}
COLLAPSED = [
    result
    for number in range(20)
    for result in cases(
        ("x" if number == 7 else ".") * 10, "." * 10, rubric_id=f"rubric-{number:02}"
    )
]
TWENTY = [
    result
    for number in range(20)
    for result in cases(*["." * 10] * 2, rubric_id=f"rubric-{number:02}")
]
# Name, what is judged now, what the baseline was made of, what its judge is, and the word.
ALSO_NEVER: dict[str, tuple[list[CaseResult], list[CaseResult] | None, dict[str, Any], str]] = {
    "4 of 10 newly missed by code": (
        cases("xxxx" + "." * 6, "." * 10),
        cases("." * 10, "." * 10),
        NO_MODEL,
        "FAIL",
    ),
    "4 of 10 newly missed by code that a table knows nothing of": (
        cases("xxxx" + "." * 6, "." * 10),
        cases("." * 10, "." * 10),
        {},
        "FAIL",
    ),
    "one of 20 rubrics always satisfied": (COLLAPSED, TWENTY, {}, "FAIL"),
    "another model that misses 12 of 15 on 5 runs": (
        runs_of(5, wrong=range(4)),
        runs_of(5),
        OTHER_MODEL,
        "UNCLEAR",
    ),
    "one rubric of another model always satisfied": (COLLAPSED, TWENTY, OTHER_MODEL, "FAIL"),
    "the same judge again misses 6 of 27": (LOST, SOUND, AGAIN, "FAIL"),
}


@pytest.mark.parametrize("name", ALSO_NEVER)
def test_none_of_these_is_exit_0(name: str) -> None:
    now, before, judge, word = ALSO_NEVER[name]
    decision = decided(now, before, **judge)
    assert (decision.word, decision.passed) == (word, False)


def test_a_judge_that_asks_no_model_and_contradicts_itself_is_judged_as_any_other() -> None:
    now, before = cases("x" * 3 + "1" + "." * 16, "." * 20), cases("." * 20, "." * 20)
    assert decided(cases("xxx" + "." * 17, "." * 20), before, **NO_MODEL).word == "FAIL"
    assert decided(now, before, **NO_MODEL).word == "UNCLEAR"


def test_limits_do_not_hide_what_a_conftest_skips() -> None:
    left_out = {result.case_id for result in LOST[:6]}
    decision = decided(LOST[6:], None, LIMITED, left_out=left_out)
    assert (decision.word, decision.passed) == ("UNCLEAR", False)


def random_table(rng: random.Random) -> tuple[list[list[list[str]]], list[list[list[str]]]]:
    """Letters before and now by rubric and class: one to three rubrics of 3 to 15 cases a class."""
    share, worse = rng.uniform(0, 0.3), rng.uniform(0, 0.4)
    before, now = [], []
    for _ in range(rng.randint(1, 3)):
        sizes = [rng.randint(3, 15), rng.randint(3, 15)]
        was = [["x" if rng.random() < share else "." for _ in range(size)] for size in sizes]
        changed = [
            [
                letter if rng.random() < 0.6 else "x" if rng.random() < worse else "."
                for letter in letters
            ]
            for letters in was
        ]
        before.append(was)
        now.append(changed)
    return before, now


def word_of(
    before: list[list[list[str]]], now: list[list[list[str]]], judge: dict[str, Any]
) -> int:
    """How good the word is."""
    found = []
    for letters in (before, now):
        results = []
        for number, (violated, satisfied) in enumerate(letters):
            rubric = f"rubric-{number}"
            results += cases("".join(violated), "".join(satisfied), rubric_id=rubric)
        found.append(results)
    return ("FAIL", "UNCLEAR", "PASS").index(decided(found[1], found[0], **judge).word)


@pytest.mark.parametrize("judge", [{}, AGAIN], ids=["changed", "asked again"])
def test_one_more_mistake_never_makes_the_word_better_and_an_untouched_rubric_never_worse(
    judge: dict[str, Any],
) -> None:
    rng = random.Random(5)
    better = worse = tables = 0
    for _ in range(60):
        before, now = random_table(rng)
        right = [
            (rubric, of_class, place)
            for rubric, classes in enumerate(now)
            for of_class, letters in enumerate(classes)
            for place, letter in enumerate(letters)
            if letter == "."
        ]
        if not right:
            continue
        tables += 1
        word = word_of(before, now, judge)
        sound = [["."] * 10, ["."] * 10]
        worse += word_of([*before, sound], [*now, sound], judge) < word
        rubric, of_class, place = rng.choice(right)
        now[rubric][of_class][place] = "x"
        better += word_of(before, now, judge) > word
    assert tables > 55
    assert (better, worse) == (0, 0)


@pytest.mark.parametrize("name", ALWAYS)
def test_each_of_these_is_pass(name: str) -> None:
    now, before, held = ALWAYS[name]
    decision = decided(now, before, {"max_drop": 0.05}, **held)
    assert (decision.word, decision.passed) == ("PASS", True)
