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
from pytest_jrh.stats.baseline import Scope
from tests.support.judged_sessions import derived
from tests.unit.test_decision import case, cases, decided, levels, panel, relabelled, runs_of

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
    "grown by a coin": (GROWN, SOUND, {}, "UNCLEAR"),
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
    "sound verdicts of a new judge on 5 runs": (runs_of(5), runs_of(5), {"others": ("",)}),
    "sound verdicts of a new judge on 50 runs": (runs_of(50), runs_of(50), {"others": ("",)}),
    "two flips of 54": (cases("xx" + "." * 25, "." * 27), SOUND, {}),
    "a judge that got better": (SOUND, LOST, {}),
    "another judge that is better": (BETTER, LOST, {"others": ("",)}),
    "a suite grown from 20 runs to 70": (cases("." * 70, "." * 70), cases("." * 20, "." * 20), {}),
    "a suite grown from 5 runs to 55": (runs_of(55), runs_of(5), {}),
    "a suite grown from 5 runs to 55, a case a run": (
        cases("." * 55, "." * 55),
        cases("." * 5, "." * 5),
        {},
    ),
}


def test_lost_cases_that_a_marker_skips_are_unclear() -> None:
    left_out = [result.spec for result in LOST[:6]]
    scope = Scope.of((result.case_id for result in LOST), (result.case_id for result in LOST[6:]))
    decision = decided(LOST[6:], SOUND, scope=scope, left_out=left_out)
    assert decision.headline == "48 of 54 cases compared: 6 skipped"
    assert (decision.word, decision.beside) == ("UNCLEAR", ("6 cases skipped by markers",))
    # What the baseline has not was skipped before, too.
    assert decided(LOST[6:], SOUND[6:], scope=scope, left_out=left_out).word == "PASS"


@pytest.mark.parametrize(("lost", "word"), [(1, "UNCLEAR"), (2, "UNCLEAR"), (6, "FAIL")])
def test_few_selected_cases_that_are_all_newly_wrong_are_never_pass(lost: int, word: str) -> None:
    scope = Scope.of(
        (result.case_id for result in LOST), (result.case_id for result in LOST[:lost])
    )
    decision = decided(LOST[:lost], SOUND, scope=scope)
    assert decision.word == word
    assert decision.headline.startswith(f"the judge misses {lost} of {lost} violation")


@pytest.mark.parametrize("name", ALWAYS)
def test_each_of_these_is_pass(name: str) -> None:
    now, before, held = ALWAYS[name]
    decision = decided(now, before, {"max_drop": 0.05}, **held)
    assert (decision.word, decision.passed) == ("PASS", True)
