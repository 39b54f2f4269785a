"""Tables whose answers are classes, or have n/a beside them, held against scikit-learn."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.cli.checking import CheckedTable, check_table
from pytest_jrh.core import InputError
from pytest_jrh.core.scales import code_of
from pytest_jrh.reports.summary import compose

pytestmark = pytest.mark.usefixtures("in_tmp_path")
Row = tuple[str, ...]


def rows(pairs: Sequence[Row], *more: str) -> list[dict[str, str]]:
    """Labels and verdicts as rows of a table."""
    names = ("case", "label", "verdict", *more)
    return [dict(zip(names, (f"c{n}", *pair), strict=True)) for n, pair in enumerate(pairs)]


def checked(pairs: Sequence[Row], **settings: Any) -> CheckedTable:
    return check_table(rows(pairs), **settings)


def figures_of(pairs: Sequence[Row], **settings: Any) -> Any:
    return checked(pairs, **settings).judges["verdict"].figures


def headline(table: list[dict[str, str]], baseline: str, **settings: Any) -> str:
    """The word and the headline of the same judge's verdicts, held against earlier ones."""
    held = {"verdict": "verdict", "baseline": baseline, "same_judge": True}
    decision = check_table(table, **held, **settings).decision
    assert decision is not None
    return f"{decision.word}: {decision.headline}"


SIDES = [("first", "first"), ("tie", "second"), ("second", "second"), ("First", "tie")]


def test_words_that_labels_and_verdicts_share_are_classes() -> None:
    table = checked(SIDES)
    total = table.session.sections[0].total
    assert [total.scale.word(label) for label in total.scale.answers] == ["first", "second", "tie"]
    assert total.matrix is not None
    assert total.matrix.counts == [[1, 0, 1], [0, 1, 0], [0, 1, 0]]
    # The order of labels that are named is that of tables.
    named = checked(SIDES, classes=["tie", "second", "first"]).session.sections[0].total
    assert named.matrix is not None
    assert named.matrix.counts == [[0, 1, 0], [0, 1, 0], [1, 0, 1]]
    assert named.figures["kappa"] == total.figures["kappa"]


@pytest.mark.parametrize("seed", range(20))
def test_figures_of_classes_are_scikit_learns(seed: int) -> None:
    known = pytest.importorskip("sklearn.metrics")
    dice = Random(seed)
    names = [f"w{letter}" for letter in dice.sample("abcdefghij", dice.randint(2, 8))]
    pairs = []
    for _ in range(dice.randint(20, 80)):
        label = dice.choice(names)
        pairs.append((label, dice.choice([label, label, dice.choice(names), ""])))
    total = checked(pairs, classes=names).session.sections[0].total
    labels, answers = zip(*[pair for pair in pairs if pair[1]], strict=True)
    assert total.matrix is not None
    matrix = known.confusion_matrix(labels, answers, labels=names).tolist()
    assert [[*counts] for counts in total.matrix.counts] == matrix
    kappa = known.cohen_kappa_score(labels, answers, labels=names)
    assert total.figures["kappa"].value == pytest.approx(kappa)
    occurring = sorted({*labels, *answers})
    f1 = known.f1_score(labels, answers, labels=occurring, average="macro", zero_division=0)
    assert total.figures["macro_f1"].value == pytest.approx(f1)
    # Where a class is rare, so few cases do not tell how F1 varies.
    is_rare = min(map(labels.count, occurring)) < 10
    assert (total.figures["macro_f1"].lower is None) == is_rare
    for name in {*labels}:
        recall = known.recall_score(labels, answers, labels=[name], average="macro")
        assert total.figures[f"recall of {name}"].value == pytest.approx(recall)


@pytest.mark.parametrize(
    ("pairs", "settings", "says"),
    [
        # A misspelled word is no class, unless both sides have it, or it is named.
        ([("violated", "violatd"), ("satisfied", "satisfied")], {}, '"violatd"; must be'),
        ([("pass", "pass"), ("fail", "partly")], {}, "name all classes: --classes A,B,..."),
        # Numbers without an order are asked for.
        ([("0", "1"), ("1", "2"), ("2", "2")], {}, "if the numbers are classes, name all classes"),
        # What only one side has may be one thing in two words.
        ([("a", "x"), ("b", "y")], {}, "name all classes: --classes A,B,..."),
        ([(f"text {n}", f"text {n}") for n in range(21)], {}, 'most of them in the column "label"'),
        ([(f"text {n}", "pass") for n in range(3_000)], {}, "if other columns have the answers"),
        (SIDES, {"classes": ["first", "second"]}, 'got "tie"; must be first or second'),
        (SIDES, {"classes": ["first", "second"]}, 'say which class "tie" is: --map tie=CLASS'),
        (SIDES, {"classes": ["first"]}, "must be the names of 2 to 20 classes"),
        (SIDES, {"classes": ["a|b", "c"]}, "and no |"),
        (SIDES, {"classes": ["None", "c"]}, '"None" cannot be a class, as it means that there'),
        # Who says what is violated has two answers, and no class of a stray word.
        ([("yes", "yes"), ("maybe", "maybe")], {"one": "violated"}, 'label: got "maybe"; must be'),
        ([("x", "x"), ("y", "y"), ("z", "z")], {"map": {"x": 1, "y": 0}}, 'label: got "z"; must'),
    ],
)
def test_what_are_no_classes(pairs: Sequence[Row], settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        checked(pairs, **settings)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 3_000


def test_words_are_classes_where_both_sides_have_them_or_an_option_says_so() -> None:
    both = [("violated", "violatd"), ("violatd", "violated"), ("satisfied", "satisfied")]
    for pairs, classes, word in (
        ([("pass", "pass"), ("partly", "fail"), ("fail", "partly")], (), "partly"),
        ([("a", "n/a"), ("n/a", "a")], ("a", "n/a"), "n/a"),
        ([("0", "1"), ("1", "2"), ("2", "2")], ("0", "1", "2"), "2"),
        (both, (), "violatd"),
    ):
        assert f"recall of {word}" in figures_of(pairs, classes=classes)
    assert figures_of([("a", "x"), ("b", "b")], map={"x": "a"})["accuracy"].value == 1


def test_the_first_lines_say_which_answers_were_taken(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("case,label,verdict\na,tie,oops\nb,n/a,tie\nc,first,first\n", "utf-8")
    assert main(["check", "t.csv", "--label=label", "-v", "--report=r.json"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "classes: first, oops, tie" in printed
    assert 'no label is "oops"; to count a word as missing, pass --map WORD=' in printed
    assert "n/a counts as an answer; to count n/a as missing, pass --map n/a=" in printed
    assert str(code_of("tie")) not in printed
    [suite] = json.loads(Path("r.json").read_text("utf-8"))["suites"].values()
    figures = suite["judges"]["default"]["overall"]
    assert (figures["binary"], figures["ordinal"]) == (None, None)
    assert figures["classes"]["confusion_matrix"]["labels"] == ["first", "oops", "tie", "n/a"]
    assert figures["classes"]["recalls"]["n/a"]["value"] == 0
    assert main(["check", "t.csv", "--label=label", "--map=n/a=", "--classes=tie,first,oops"]) == 0
    assert "classes: tie, first, oops" in capsys.readouterr().out


def test_a_class_that_may_be_misspelled_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    lines = "first,first,first\nfisrt,first,first\nsecond,second,scond\ntie,tie,Tie.\n"
    lines += "second,second,second\ntie,tie,tie\n"
    rows = [f"{case},{line}" for case, line in enumerate(lines.splitlines())]
    Path("t.csv").write_text("case,human,bo,verdict\n" + "\n".join(rows), "utf-8")
    classes = "--classes=first,fisrt,second,scond,tie,Tie."
    assert main(["check", "t.csv", "--label=human", "--label=bo", classes]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert 'is "scond", "Tie."; for a typo, pass --map scond=second, --map Tie.=tie;' in printed
    assert 'no verdict is "fisrt"; for a typo, pass --map fisrt=first; ' in printed


THREE = ("violated", "satisfied", "n/a")


@pytest.mark.parametrize(
    ("judge", "said", "doubt"),
    [
        (lambda _: "n/a", "misses 20 of 20 violations that it found before (judged n/a)", ""),
        (
            lambda label: "satisfied" if label == "n/a" else label,
            'misses 20 of 20 "n/a" cases that it found before (judged satisfied)',
            'never says "n/a", which is right in 20 cases; it calls 20 of these "satisfied".',
        ),
        (
            lambda label: "n/a" if label == "satisfied" else label,
            "is wrong on 20 of 20 satisfied cases that it passed before (judged n/a)",
            'never says "satisfied", which is right in 20 cases; it calls 20 of these "n/a".',
        ),
    ],
)
def test_mistakes_about_n_a_are_named(judge: Callable[[str], str], said: str, doubt: str) -> None:
    pairs = [(label, judge(label), label) for label in THREE * 20]
    table = rows(pairs, "earlier")
    assert f"FAIL: the judge {said}" in headline(table, "earlier")
    alone = str(compose(check_table(table, verdict="verdict").session).doubts)
    assert (doubt or "The judge says n/a in all 60 cases.") in alone


def test_n_a_is_missed_no_false_alarm_and_in_no_mean() -> None:
    figures = figures_of([(label, "n/a") for label in THREE * 4])
    assert figures["recall"].fraction == "0 of 4"
    assert figures["false_positive_rate"].fraction == "0 of 4"
    assert figures["called_not_applicable"].fraction == "4 of 4"
    assert figures["recall of n/a"].fraction == "4 of 4"
    levels = [("1", "1"), ("5", "n/a"), ("n/a", "n/a"), ("n/a", "3"), ("3", "4")]
    figures = figures_of(levels, scale=(1, 5))
    assert figures["exact"].fraction == "2 of 5"
    assert figures["mean_absolute_error"].value == pytest.approx(0.5)
    assert figures["mean_absolute_error"].n == 2
    assert figures["recall of n/a"].fraction == "1 of 2"


def test_n_a_beside_levels_is_decided_about_by_itself() -> None:
    labels = ["1", "2", "3", "n/a"] * 15
    for verdict, said in (
        ("", "as good as before on 60 cases"),
        ("n/a", "says n/a to 45 of 45 cases to which it gave a level before"),
        ("2", 'misses 15 of 15 "n/a" cases that it found before'),
    ):
        table = rows([(label, verdict or label, label) for label in labels], "old")
        assert said in headline(table, "old", scale=(1, 3))


@pytest.mark.parametrize("word", ["all", "rubric", "violated", "<b>x</b>", "=1+1", "class"])
def test_a_class_may_have_any_word(word: str) -> None:
    pairs = [(word, "other", word), ("other", "other", "other"), ("third", "third", "third")] * 20
    table = rows(pairs, "old")
    decided = check_table(table, verdict="verdict", baseline="old", same_judge=True)
    assert decided.decision is not None
    assert f'misses 20 of 20 "{word}" cases that it found before' in decided.decision.headline
    classes = [of for of in decided.decision.sets if of.is_class]
    assert [of.n for of in classes] == [20, 20, 20]
