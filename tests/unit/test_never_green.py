"""What must never be green, and what must: whole suites in memory, each as somebody would cheat, or
slip, and as somebody would work. What is said of each is in `test_decision.py`. The suite is 27
runs with a violated and a satisfied case each. `LOST` is a judge that misses six of the violations
that it found before."""

import random
from typing import Any, NamedTuple

import pytest

from pytest_jrh.core.results import CaseResult
from pytest_jrh.stats.decision import Decision
from pytest_jrh.stats.verdicts import Scope
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


class Story(NamedTuple):
    """What is judged now, what the baseline was made of, rules, and what is known of the judge."""

    now: list[CaseResult]
    before: list[CaseResult] | None = None
    rules: dict[str, Any] = {}  # noqa: RUF012 - a default that nobody changes
    judge: dict[str, Any] = {}  # noqa: RUF012

    def decided(self, **rules: Any) -> Decision:
        return decided(self.now, self.before, {**self.rules, **rules}, **self.judge)


RUNS = 27
ALL = "." * RUNS
SLIP = "x" + "." * (RUNS - 1)
SOUND = cases(ALL, ALL)
LOST = cases("x" * 6 + "." * (RUNS - 6), ALL)
LEFT_OUT = {result.case_id for result in LOST[:6]}
TEN, TWENTY, FORTY = (cases("." * number, "." * number) for number in (10, 20, 40))


def now_are(letter: str) -> list[CaseResult]:
    """The six lost cases without a verdict that counts."""
    return cases(letter * 6 + "." * (RUNS - 6), ALL)


def coin(seed: int, wrong: float = 0.5) -> list[CaseResult]:
    rng = random.Random(seed)
    letters = ["x" if rng.random() < wrong else "." for _ in range(2 * RUNS)]
    return cases("".join(letters[:RUNS]), "".join(letters[RUNS:]))


def of_rubrics(number: int, collapsed: int | None = None) -> list[CaseResult]:
    """Ten cases of each class of so many rubrics; of one of them all violations are missed."""
    results = []
    for place in range(number):
        letters = ("x" if place == collapsed else ".") * 10
        results += cases(letters, "." * 10, rubric_id=f"rubric-{place:02}")
    return results


# The satisfied cases are of other runs than the violated ones.
ONE_EACH = [*LOST[:RUNS], *(case(".", run, label=0) for run in range(RUNS, 2 * RUNS))]
PROBED = [*SOUND, *derived()]
TURNED = [*SOUND, *derived(["ids"])]
NEW_RUNS = [case("x."[run % 2], run, label=label) for run in range(50, 90) for label in (0, 1)]
NEW_CASES = [case("x."[run % 2], run, label=run // 2 % 2) for run in range(50, 70)]
ALL_TURNED = [*SOUND, *derived(["json_layout", "ids"], probe="prompt_injection", runs=54)]
CONSTANT = cases(ALL, "x" * RUNS)
INVERTED = cases("x" * RUNS, "x" * RUNS)
CLEAN = cases("." * 2_997, "xxx")
FLICKERING = cases("xxx1" + "." * 16, "." * 20)
LAX = {"min_recall": 0.5, "max_false_alarms": 0.5}
RULE_OF_ANOTHER = {"probes": {"format_invariance": {"max_rate": 0.05}}}
FAIL = {
    "no verdict on the lost cases": Story(now_are("!"), SOUND),
    "a probe turns verdicts, and its gate is removed": Story(TURNED, PROBED),
    "grown by a coin": Story([*SOUND, *NEW_RUNS], SOUND),
    "10 of 20 new cases wrong": Story([*SOUND, *NEW_CASES], SOUND),
    "a constant judge": Story(CONSTANT, None, {"min_recall": 0.7, "max_false_alarms": 0.3}),
    "one to five of 24 missed": Story(cases("xxxxx" + "." * 19), cases("x" + "." * 23)),
    "4 of 4 violations among 40 cases": Story(cases("xxxx", "." * 36), cases("....", "." * 36)),
    "54 of 54 verdicts turned by a probe, beside limits": Story(ALL_TURNED, None, LAX),
    "54 of 54 misled by a probe, beside a rule of another one": Story(
        [*ALL_TURNED, *derived(probe="format_invariance")], None, RULE_OF_ANOTHER
    ),
    "4 of 10 newly missed by code that a table knows nothing of": Story(
        cases("xxxx" + "." * 6, "." * 10), TEN
    ),
    "one of 20 rubrics always satisfied": Story(of_rubrics(20, 7), of_rubrics(20)),
    "the same of another model": Story(of_rubrics(20, 7), of_rubrics(20), judge=OTHER_MODEL),
    "the same judge again misses 6 of 27": Story(LOST, SOUND, judge=AGAIN),
    "three mistakes of code": Story(cases("xxx" + "." * 17, "." * 20), TWENTY, judge=NO_MODEL),
}
UNCLEAR = {
    "lost cases cannot be made": Story(now_are("-"), SOUND),
    "labels of lost cases turned": Story(relabelled(LOST, 6), SOUND),
    "labels of lost cases deleted or tied": Story(now_are("u"), SOUND),
    "five of 54 cases deleted, of runs or of a frozen file": Story(LOST[5:], SOUND),
    "sample lowered": Story([*LOST[6:16], *LOST[33:43]], SOUND),
    "probe removed with its gate": Story(SOUND, PROBED),
    "member of a panel removed": Story(panel(ALL, ALL), panel(ALL, ALL, SLIP)),
    "three repeats to one": Story(SOUND, cases("0" * RUNS, "0" * RUNS)),
    "all lines of the baseline but one": Story(LOST, SOUND[6:7]),
    "all lines but one, a case a run": Story(ONE_EACH, ONE_EACH[6:7]),
    "all lines but one of each class": Story(ONE_EACH, [ONE_EACH[RUNS], ONE_EACH[6]]),
    "all lines but one, on a scale": Story(levels("111111" + "0" * 24), levels("0" * 30)[10:11]),
    "a constant judge before and now": Story(CONSTANT, CONSTANT),
    "a constant judge, 3 clean of 3,000": Story(CLEAN, CLEAN, {"min_accuracy": 0.9}),
    "labels inverted": Story(INVERTED, INVERTED),
    # It asks no model and contradicts itself, so that it is judged as any other.
    "three mistakes of code that flickers": Story(FLICKERING, TWENTY, judge=NO_MODEL),
    "another model misses 12 of 15": Story(runs_of(5, range(4)), runs_of(5), judge=OTHER_MODEL),
}
EITHER = {
    "198 of 200 left": Story(cases("." * 100, "." * 100)[99:101], cases("." * 100, "." * 100)),
    **{f"a coin, seed {seed}": Story(coin(seed), coin(seed)) for seed in range(8)},
    **{
        f"another coin, seed {seed}": Story(coin(seed), coin(seed + 100), {"min_recall": 0.2})
        for seed in range(8)
    },
}


@pytest.mark.parametrize(
    ("words", "story"),
    [
        pytest.param(words, story, id=name)
        for words, stories in (("FAIL", FAIL), ("UNCLEAR", UNCLEAR), ("FAIL UNCLEAR", EITHER))
        for name, story in stories.items()
    ],
)
def test_none_of_these_is_pass(words: str, story: Story) -> None:
    decision = story.decided()
    assert decision.word in words.split()
    assert not (decision.word == "FAIL" and decision.passed)
    assert not story.decided(unclear="fail").passed


PASS = {
    "the same mistakes": Story(LOST, LOST),
    "sound verdicts of a new judge on 5 runs": Story(runs_of(5), runs_of(5), judge=OTHER_MODEL),
    "two flips of 54": Story(cases("xx" + "." * 25, ALL), SOUND),
    "one of 30 violations lost": Story(cases("x" + "." * 29, "." * 30), cases(*["." * 30] * 2)),
    "the same judge again, at 5% flicker": Story(coin(11, 0.05), coin(12, 0.05), judge=AGAIN),
    "a new rubric without a mistake": Story([*SOUND, *cases(ALL, ALL, rubric_id="new")], SOUND),
    "a new judge of a panel without a mistake": Story(panel(ALL, ALL), panel(ALL)),
    "a judge that asks no model loses one": Story(cases(SLIP, ALL), SOUND, judge=NO_MODEL),
    "a judge that got better": Story(SOUND, LOST),
    "another judge that is better": Story(coin(3, 0.02), LOST, judge=OTHER_MODEL),
    "a suite grown from 5 runs to 55": Story(runs_of(55), runs_of(5)),
    "a suite grown from 10 runs to 40, a case a run": Story(FORTY, TEN),
}


@pytest.mark.parametrize("story", PASS.values(), ids=[*PASS])
def test_each_of_these_is_pass(story: Story) -> None:
    decision = story.decided(max_drop=0.05)
    assert (decision.word, decision.passed) == ("PASS", True)


def test_lost_cases_that_are_skipped_are_unclear() -> None:
    scope = Scope.of((result.case_id for result in LOST), (result.case_id for result in LOST[6:]))
    decision = decided(LOST[6:], SOUND, scope=scope, left_out=LEFT_OUT)
    assert decision.headline == "the comparison has 48 of 54 cases: 6 skipped"
    assert (decision.word, decision.beside) == ("UNCLEAR", ("markers skipped 6 cases",))
    # What the baseline has not was skipped before, too.
    assert decided(LOST[6:], SOUND[6:], scope=scope, left_out=LEFT_OUT).word == "PASS"
    # Limits do not hide what a conftest skips.
    decision = decided(LOST[6:], None, LAX, left_out=LEFT_OUT)
    assert (decision.word, decision.passed) == ("UNCLEAR", False)


@pytest.mark.parametrize(("lost", "word"), [(1, "PASS"), (2, "UNCLEAR"), (6, "FAIL")])
def test_two_selected_cases_that_are_all_newly_wrong_are_never_pass(lost: int, word: str) -> None:
    selected = LOST[:lost]
    scope = Scope.of((result.case_id for result in LOST), (result.case_id for result in selected))
    decision = decided(selected, SOUND, scope=scope)
    assert decision.word == word
    # A single case is no loss, and is named.
    assert "1 of 1 case newly wrong" in decision.headline or lost > 1


def random_table(rng: random.Random) -> tuple[list[str], list[str]]:
    """Letters before and now: of one to three rubrics 3 to 15 violated cases, and satisfied ones
    behind them."""
    share, worse = rng.uniform(0, 0.3), rng.uniform(0, 0.4)

    def drawn(letter: str) -> str:
        return letter if rng.random() < 0.6 else "x" if rng.random() < worse else "."

    before: list[str] = []
    now = []
    for _ in range(rng.randint(1, 3)):
        sizes = [rng.randint(3, 15), rng.randint(3, 15)]
        for size in sizes:
            before.append("".join("x" if rng.random() < share else "." for _ in range(size)))
        now += ["".join(map(drawn, letters)) for letters in before[-2:]]
    return before, now


def word_of(before: list[str], now: list[str], judge: dict[str, Any]) -> int:
    """How good the word is."""
    sides = []
    for letters in (before, now):
        of_rubric = enumerate(zip(letters[::2], letters[1::2], strict=True))
        sides.append([one for n, pair in of_rubric for one in cases(*pair, rubric_id=f"r-{n}")])
    return ("FAIL", "UNCLEAR", "PASS").index(decided(sides[1], sides[0], **judge).word)


@pytest.mark.parametrize("judge", [{}, AGAIN], ids=["changed", "asked again"])
def test_a_mistake_is_never_better_and_a_sound_rubric_never_worse(judge: dict[str, Any]) -> None:
    rng = random.Random(5)
    sound = ["." * 10] * 2
    better = worse = tables = 0
    for _ in range(60):
        before, now = random_table(rng)
        right = [(of, at) for of, word in enumerate(now) for at in range(len(word))]
        right = [(of, at) for of, at in right if now[of][at] == "."]
        if not right:
            continue
        tables += 1
        word = word_of(before, now, judge)
        worse += word_of([*before, *sound], [*now, *sound], judge) < word
        of, at = rng.choice(right)
        now[of] = f"{now[of][:at]}x{now[of][at + 1 :]}"
        better += word_of(before, now, judge) > word
    assert tables > 55
    assert (better, worse) == (0, 0)
