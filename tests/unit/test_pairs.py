"""Tables that say which of two answers is better, and suites of pairs."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.cli.checking import CheckedTable, check_table
from pytest_jrh.core import InputError
from pytest_jrh.core.scales import code_of, other_place, paired, scale_of_line
from pytest_jrh.core.transcript import answer_parts, in_other_order
from pytest_jrh.reports.summary import compose
from pytest_jrh.sources import open_sources
from pytest_jrh.stats.figures import Places, favour_sentence, favours, places_of
from pytest_jrh.stats.limits import probe_tables
from pytest_jrh.stats.verdicts import NOT_COMPARED, Verdicts

LLMBAR = Path(__file__).parents[2] / "examples/strong_judges/llmbar-gpt4.csv"
FIRST, SECOND, TIE = map(code_of, ("first", "second", "tie"))
SYSTEMS = {"model_a": "GPT", "model_b": "Claude"}
NOTHING: dict[str, Any] = dict.fromkeys(("probabilities", "slices", "systems", "base"), ())
PAIR = {"suite": "s", "judge": "", "rubric": "r", "scale": paired(), "weight": None}
SWAPPED = {**PAIR, **NOTHING, **NOT_COMPARED, "variant": "", "base_case": ""}


def places(table: CheckedTable) -> Places:
    of_judge = places_of(table.session.sections[0].total.judged)
    assert of_judge is not None
    return of_judge


def both_orders(*cases: str) -> list[dict[str, str]]:
    """For each pair a label and a verdict in the order of the table, and one in the other order, as
    it was shown there."""
    turned = {"first": "second", "second": "first"}
    rows = []
    for number, words in enumerate(cases):
        label, verdict, *others = words.split()
        case = {"case": f"c{number}", "label": label, "verdict": verdict, "order": "ab"}
        other = {"order": "ba", "label": turned.get(label, label), "verdict": "".join(others)}
        rows += [case, case | other]
    return rows


def test_a_judge_of_llmbar_is_right_where_it_is_so_in_both_orders() -> None:
    words = {"0": "first", "1": "second"}
    settings: dict[str, Any] = {"pairs": True, "order": "case", "map": words}
    table = check_table(LLMBAR, verdict="vanilla", **settings)
    accuracy = table.session.sections[0].total.accuracy
    assert (accuracy.count, accuracy.n) == (339, 419)
    assert places(table).same.n - (places(table).same.count or 0) == 30
    assert [*places(table).taken] == [20, 10]
    changed = check_table(LLMBAR, verdict="vanilla_norules", baseline="vanilla", **settings)
    assert changed.decision is not None
    assert changed.decision.word == "FAIL"


def test_a_verdict_that_changes_with_the_order_is_a_tie() -> None:
    rows = both_orders(
        "first first second",
        "first first first",
        "second first first",
        "tie second second",
        "tie tie tie",
        "second tie first",
    )
    table = check_table(rows, pairs=True, order="order")
    scores = [result.score for result in table.results]
    assert scores == [FIRST, TIE, TIE, TIE, TIE, TIE]
    assert [result.outcome for result in table.results].count("agree") == 3
    found = places(table)
    assert (found.same.count, found.same.n, [*found.taken]) == (2, 6, [2, 1])
    # Of what is shown first: two of two, two of two, two of two, none of two, and one of one.
    assert found.first.value == pytest.approx((0.5 + 1 + 1 + 0 + 1) / 5)
    assert "In both orders it says the same about 2 of 6 pairs" in str(
        compose(table.session).doubts
    )


def test_a_pair_without_a_verdict_in_one_order_has_none() -> None:
    rows = both_orders("first first second", "first first", "tie tie tie")
    table = check_table(rows, pairs=True, order="order")
    assert [result.outcome for result in table.results] == ["agree", "invalid_response", "agree"]
    table = check_table(rows[:-1], pairs=True, order="order")
    assert [result.outcome for result in table.results][-1] == "invalid_response"


@pytest.mark.parametrize(
    "words", ["first second tie", "A b Tie", "1 2 tie", "model_a model_b tie", "gpt claude tie"]
)
def test_a_place_is_told_in_many_words(words: str) -> None:
    rows = [{"case": word, "label": word, "verdict": word, **SYSTEMS} for word in words.split()]
    table = check_table(rows, pairs=True)
    assert [result.label for result in table.results] == [FIRST, SECOND, TIE]
    assert all(result.outcome == "agree" for result in table.results)


def test_names_of_systems_are_places_row_by_row() -> None:
    turned = {"model_a": "Claude", "model_b": "GPT"}
    rows = [{"winner": "gpt", "verdict": "first", **systems} for systems in (SYSTEMS, turned)]
    table = check_table(rows, pairs=True, label="winner")
    assert [result.label for result in table.results] == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("change", "settings", "said"),
    [
        ({"label": "0"}, {}, "nothing says which answers these num"),
        ({"label": "frist"}, {}, "frist"),
        ({}, {"order": "case"}, "must have two, one for each order"),
        ({}, {"order": "turn"}, "no column"),
    ],
)
def test_what_is_not_known_is_asked_for(change: dict[str, str], settings: Any, said: str) -> None:
    rows = [{"case": f"c{n}", "label": "1", "verdict": "2"} | change for n in range(3)]
    with pytest.raises(InputError, match=said):
        check_table(rows, pairs=True, **settings)


def test_orders_and_systems_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "pairs.csv"
    rows = "p1,ab,ours,theirs,ours,first\np1,ba,ours,theirs,theirs,first\n"
    table.write_text(f"case,shown,model_a,model_b,human,judge\n{rows}")
    assert main(["check", str(table), "--pairs", "--order", "shown"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        '"shown" as order, "model_a", "model_b" as systems pairs of answers, of which one'
        in printed
    )
    assert main(["check", str(table), "--order", "shown"]) == pytest.ExitCode.USAGE_ERROR
    assert "--order: needs --pairs" in capsys.readouterr().err


def test_the_scale_of_a_line_is_that_of_the_pair() -> None:
    for orders in (1, 2):
        assert scale_of_line(paired(orders).line, None) == paired(orders)
    assert paired(2).settled((FIRST, FIRST, SECOND, SECOND, FIRST, FIRST)) == FIRST
    assert paired(2).settled((FIRST, FIRST, FIRST, FIRST, SECOND, SECOND)) == TIE
    assert paired(1).settled((SECOND,)) == SECOND


def pairs_of(path: Path, rows: Sequence[dict[str, str]]) -> Any:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return open_sources((path,), of="pairs")


def test_two_answers_of_a_row_are_the_last_turns_of_a_run(tmp_path: Path) -> None:
    row = {"id": "1", "question": "How?", "answer_a": "So.", "answer_b": "Not so.", "by": "Ann"}
    with pairs_of(tmp_path / "pairs.csv", [row]) as source:
        run, _ = source.read("1", 1)
    parts = answer_parts(run.messages)
    places = ("request", "response_a", "response_b")
    assert [parts[place] for place in places] == ["How?", "So.", "Not so."]
    turned = answer_parts(in_other_order(run.messages))
    assert (turned["response_a"], turned["response_b"]) == ("Not so.", "So.")
    assert run.metadata == {"id": "1", "by": "Ann"}


def test_what_is_chosen_is_as_often_first_as_second(tmp_path: Path) -> None:
    rows = [{"prompt": f"{n}?", "chosen": f"yes {n}", "rejected": "no"} for n in range(200)]
    with pairs_of(tmp_path / "200.csv", rows) as source:
        chosen = {fields.key: fields.metadata["chosen"] for fields in source.fields()}
        for key in [*chosen][:5]:
            run, _ = source.read(*key)
            first = answer_parts(run.messages)["response_a"].startswith("yes")
            assert first == (chosen[key] == "first")
            assert run.metadata["chosen"] == chosen[key]
    assert 80 <= list(chosen.values()).count("first") <= 120
    # No digit of an id tells the order: a judge that goes by one is right as often as not.
    for place in range(len(next(iter(chosen))[0])):
        odd = [int(run_id[place], 16) % 2 == 1 for run_id, _ in chosen]
        same = [
            is_odd == (order == "first") for is_odd, order in zip(odd, chosen.values(), strict=True)
        ]
        assert 65 <= sum(same) <= 135
    with pairs_of(tmp_path / "100.csv", [{**rows[0], "prompt": "new?"}, *rows[:100]]) as source:
        fewer = {fields.key: fields.metadata["chosen"] for fields in source.fields()}
    assert all(chosen.get(key, place) == place for key, place in fewer.items())


def test_a_judge_that_favours_a_system_is_told() -> None:
    rng = np.random.default_rng(5)
    rows = []
    for number in range(200):
        systems = ("ours", "theirs") if rng.random() < 0.5 else ("theirs", "ours")
        winner = ("first", "second", "tie")[rng.choice(3, p=(0.4, 0.4, 0.2))]
        verdict = winner
        if rng.random() < 0.3:
            verdict = ("first", "second")[systems.index("ours")]
        case = {"case": f"c{number}", "label": winner, "verdict": verdict}
        rows.append(case | dict(zip(("model_a", "model_b"), systems, strict=True)))
    both = {"case": "own", "label": "tie", "verdict": "tie", "model_a": "own", "model_b": "own"}
    table = check_table([*rows, both], pairs=True)
    favoured = {row.system: row for row in favours(table.session.sections[0].total.judged)}
    ours, theirs = favoured["ours"], favoured["theirs"]
    points = {"ours first": 1, "theirs second": 1, "ours tie": 0.5, "theirs tie": 0.5}
    share = sum(points.get(f"{row['model_a']} {row['label']}", 0) for row in rows) / 200
    assert ours.people.value == pytest.approx(share)
    assert theirs.people.value == pytest.approx(1 - share)
    assert (ours.more.lower or 0) > 0 > (theirs.more.upper or 0)
    assert ours.is_shown
    assert "own" not in favoured
    assert favour_sentence(ours).startswith(f'"ours" wins {share:.1%} of its pairs according to ')


def planted_verdict(judge: str, label: int, longer: int, *, says_first: bool) -> int:
    """What a planted judge says of a pair in the order in which it is shown."""
    if judge == "longer wins":
        return longer
    return FIRST if says_first and judge != "sound" else label


def has_finding(judge: str, seed: int) -> bool:
    """Whether `swap` finds something in a session of 200 pairs, half of them doubtful."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(200):
        label, longer = (int(place) for place in rng.choice([FIRST, SECOND], 2))
        # Of some a third of the doubtful pairs, of all every pair, is decided by the place.
        share = {"first": 1.0, "first in 30%": 0.3 * (number < 100)}.get(judge, 0.0)
        says_first, flickers = bool(rng.random() < share), rng.random(2) < 0.01
        answers = []
        for turned, is_other in enumerate(flickers):
            place = other_place if turned else int
            said = planted_verdict(judge, place(label), place(longer), says_first=says_first)
            answers.append(other_place(said) if is_other else said)
        of_pair = {**SWAPPED, "cluster": number, "run": (str(number), 1), "made": f"m{number}"}
        base = {"variant": "other_order", "base": (answers[0],), "base_case": f"m{number}"}
        tests = (("labels", label, answers[0]), ("swap", other_place(label), answers[1]))
        for test, right, said in tests:
            verdict = {"ids": f"{test} {number}", "test": test, "label": right, "score": said}
            verdict |= {"answers": (said,), "outcome": "agree" if said == right else "disagree"}
            # Of what the judge has wrong nothing is changed.
            if test == "labels" or answers[0] == label:
                rows.append(of_pair | verdict | (base if test == "swap" else {}))
    return any(table.is_finding for table in probe_tables(Verdicts.of_rows(rows)))


@pytest.mark.parametrize(
    ("judge", "fewest", "most"),
    [("first", 95, 100), ("first in 30%", 95, 100), ("longer wins", 0, 5), ("sound", 0, 5)],
)
def test_swap_finds_judges_that_go_by_the_place(judge: str, fewest: int, most: int) -> None:
    assert fewest <= sum(has_finding(judge, seed) for seed in range(100)) <= most
