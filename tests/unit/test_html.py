"""The page, read back with the standard library's parser."""

from __future__ import annotations

import base64
import hashlib
import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.cases.probes import changed_again
from pytest_jrh.cases.probes.probe import ProbeSettings
from pytest_jrh.core.model import Verdict
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.text import visible
from pytest_jrh.core.transcript import storable
from pytest_jrh.reports import page as page_module
from pytest_jrh.reports.page import bare_turns, case_turns, write_page
from pytest_jrh.reports.session import case_key
from pytest_jrh.store.people import Grounds, PersonLabel
from tests.support.judged_sessions import (
    DIGEST,
    HOSTILE,
    INJECTION,
    coin,
    derived,
    judged,
    misses,
    right,
    scored,
    session_of,
    spooled,
    wrong_on,
)
from tests.support.made_cases import MESSAGES, make_act_case, make_result, make_spec, result_with
from tests.support.page_reader import Page, bodies, data_blocks, listed_cases, session_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pytest_jrh.core.model import CaseResult

EDITED = "I have refunded order 17 in full."


def page_of(
    folder: Path,
    results: Sequence[CaseResult],
    before: Iterable[CaseResult] | None = None,
    messages: Any = MESSAGES,
    limit: int = 30_000_000,
    session: dict[str, Any] | None = None,
    **rules: Any,
) -> Page:
    made_results = [result for result in results if not result.spec.derived]
    records = spooled(folder / "spool", made_results, lambda result: messages)
    path = folder / "report.html"
    made = replace(session_of(results, before, **rules), records=records, **(session or {}))
    write_page(path, made, limit=limit)
    assert path.stat().st_size <= limit
    return Page.of(path.read_text("utf-8"))


def test_page_has_the_word_the_figures_and_a_row_for_each_case(tmp_path: Path) -> None:
    page = page_of(tmp_path, judged(misses(6)), before=judged(right))
    headline = "The judge misses 6 of 24 violations that it found before"
    assert page.all("title")[0].text == f"FAIL {headline}"
    assert page.all("h1")[0].text == headline
    assert page.all("p", id="word")[0].text == "FAIL"
    sub = "No new false alarms (0 of 24); chance does as much in 2 of 100."
    assert page.all("p", id="sub")[0].text == sub
    data = session_data(page)
    table = next(block for block in data["blocks"]["answer"] if block["type"] == "Table")
    assert table["rows"][0]["cells"][0]["share"] == 0.5
    assert table["rows"][0]["cells"][0]["before"] == 0
    assert len(data["cases"]) == 48
    assert [row["kind"] for row in data["cases"]] == ["missed"] * 6 + ["right"] * 42


def test_flicker_of_the_same_judge_is_marked_beside_its_cases(tmp_path: Path) -> None:
    page = page_of(tmp_path, judged(wrong_on("run-003")), before=judged(right), same_judge=True)
    tags = [row["tags"] for row in listed_cases(page)]
    assert tags[:4] == [["regression", "by flicker"]] * 4
    assert not any(tags[4:])


def test_every_case_can_be_linked_to_and_has_its_body(tmp_path: Path) -> None:
    results = judged(wrong_on("run-003"), runs=4)
    page = page_of(
        tmp_path, results, before=judged(right, runs=4), said_before="It was late before."
    )
    found = bodies(page)
    rows = {row["key"]: row for row in listed_cases(page)}
    assert found.keys() == rows.keys()
    for result in results:
        row, body = rows[case_key(result.case_id)], found[case_key(result.case_id)]
        assert body["commands"][-1][1].startswith("pytest 'suites/refunds.jrh.yml::")
        assert [turn["role"] for turn in body["turns"]] == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ]
        who = [one["who"] for one in body["voices"]]
        assert who == ["label", "before", "judge"]
        label, before, judge = body["voices"]
        assert (before["why"], judge["why"]) == ("It was late before.", "The order is late.")
        assert judge["wrong"] == (row["kind"] in ("missed", "false alarm"))
        if result.spec.test == "agent_perturbation":
            edited = body["turns"][-1]
            assert (edited["state"], edited["parts"][0]["text"]) == ("edited", EDITED)
            assert edited["was"][0]["text"] == MESSAGES[-1]["content"]
            assert label["why"] == "It grants a late refund."
            assert (label["word"], label["by"]) == ("violated", "verifier")
            assert edited["why"][0] == ["Goal", "grant the refund"]


def test_what_is_to_be_seen_first_stands_first(tmp_path: Path) -> None:
    results = [
        *judged(wrong_on("run-003", "run-002"), runs=4, rubrics=("tone",)),
        make_result(make_spec("z"), "refused", detail="the model would not answer"),
        make_result(make_spec("y"), "no_case", detail="no plan: nothing to violate"),
        *derived(["ids"], runs=2),
    ]
    rows = listed_cases(page_of(tmp_path, results, before=judged(wrong_on("run-002"), runs=4)))
    kinds = ["wrong", "wrong", "wrong", "wrong", "turned", "not judged", *["right"] * 5]
    mistakes = ("missed", "false alarm")
    shown = ["wrong" if row["kind"] in mistakes else row["kind"] for row in rows]
    assert shown == [*kinds, "not judged"]
    assert ["regression" in row["tags"] for row in rows[:4]] == [True, True, False, False]
    assert rows[5]["tags"] == ["no verdict"]
    assert rows[-1]["title"] == "no plan: nothing to violate"


def test_what_the_gate_tolerates_is_said(tmp_path: Path) -> None:
    results = judged(wrong_on("run-001"), runs=2, rubrics=("tone",))
    wrong = [result.case_id for result in results if result.outcome == "disagree"]
    before = [result for result in results if result.case_id == wrong[0]]
    tolerated = {"tolerated": frozenset(wrong)}
    page = page_of(tmp_path, results, before=before, session=tolerated)
    # Of the other the gate decides, and nothing is known before.
    assert sum("expected to fail" in row["tags"] for row in listed_cases(page)) == 1


def test_labels_of_people_check_a_label_or_put_it_in_doubt(tmp_path: Path) -> None:
    [made] = judged(right, runs=1, rubrics=("tone",))[:1]
    for said, tag in ((1, "label checked"), (0, "label in doubt")):
        people = (PersonLabel(DIGEST, "ann", said, blind=True, note="Read twice."),)
        grounds = {"refunds": Grounds(people=people)}
        page = page_of(tmp_path / tag, [made], session={"grounds": grounds})
        [row] = listed_cases(page)
        assert row["tags"] == [tag]
        [body] = bodies(page).values()
        who = [(one["who"], one["word"], one["wrong"]) for one in body["voices"]]
        if said:
            assert body["voices"][0]["by"] == "verifier, ann blind"
        else:
            assert who[1] == ("ann, blind", "satisfied", True)


def test_a_panel_has_one_row_and_equal_verdicts_are_one_voice(tmp_path: Path) -> None:
    results = []
    for judge in ("a", "b", "c"):
        answer = wrong_on("run-000") if judge == "b" else right
        results += judged(answer, runs=1, rubrics=("tone",), judge=judge)
    page = page_of(tmp_path, results)
    rows = listed_cases(page)
    assert len(rows) == 2
    assert [judge["wrong"] for judge in rows[0]["judges"]] == [False, True, False]
    keys = {case_key(result.case_id) for result in results}
    assert {judge["key"] for row in rows for judge in row["judges"]} == keys
    voices = bodies(page)[rows[0]["key"]]["voices"]
    assert [one["who"] for one in voices[1:]] == ["a, c", "b"]


def test_repeats_have_a_voice_for_each_verdict(tmp_path: Path) -> None:
    late, fine = Verdict(1, "It is late."), Verdict(0, "Fine.")
    [made, other] = judged(wrong_on("run-000"), runs=1, rubrics=("tone",))
    made = result_with(made, scores=(0, 1, 0), verdicts=(fine, late, fine), reasoning="Fine.")
    refused = make_result(other.spec, "refused", detail="the model would not answer")
    page = page_of(tmp_path, [made, result_with(refused, verdicts=(late,))])
    rows = listed_cases(page)
    assert "flickers" in rows[0]["tags"]
    _, *voices = bodies(page)[rows[0]["key"]]["voices"]
    said = [(one["word"], one["by"], one["wrong"]) for one in voices]
    assert said == [("satisfied", "2 repeats (1, 3)", True), ("violated", "repeat 2", False)]
    voices = bodies(page)[rows[1]["key"]]["voices"]
    reasons = [(one["word"], one["why"]) for one in voices]
    assert reasons[-2:] == [
        ("violated", "It is late."),
        ("no verdict", "the model would not answer"),
    ]


def test_scores_of_a_scale_have_the_words_of_its_levels(tmp_path: Path) -> None:
    page = page_of(tmp_path, scored(lambda spec, expected: min(expected + 1, 2), runs=1))
    rows = listed_cases(page)
    assert [row["kind"] for row in rows] == ["wrong", "wrong", "right"]
    words = {one["word"] for one in bodies(page)[rows[0]["key"]]["voices"]}
    assert words < {"0 (ignores the policy)", "1 (mentions it)", "2 (follows it)"}
    [rubric] = session_data(page)["rubrics"].values()
    assert rubric["levels"][0] == "0 (ignores the policy)"


def test_a_case_that_a_probe_changed_is_shown_as_it_was_judged(tmp_path: Path) -> None:
    results = derived([], probe=INJECTION, variants=["threat-assistant_turn"], runs=1)
    base = judged(right, runs=1)
    settings = {INJECTION: ProbeSettings()}

    def again(case: Any, spec: Any) -> Any:
        return changed_again(case, spec, settings)

    page = page_of(tmp_path, [*base, *results], session={"probed": {"refunds": again}})
    body = bodies(page)[case_key(results[0].case_id)]
    changed = [turn for turn in body["turns"] if "state" in turn]
    assert [turn["state"] for turn in changed] == ["changed by the probe"]
    before, now = changed[0]["was"][0]["text"], changed[0]["parts"][0]["text"]
    assert before in now
    assert len(now) > len(before)
    # Without what makes it again, the case before the probe stands for it, and that is said.
    page = page_of(tmp_path / "without", [*base, *results])
    body = bodies(page)[case_key(results[0].case_id)]
    assert not any("was" in turn for turn in body["turns"] if turn.get("state") != "edited")
    assert body["facts"][0][0] == "Transcript"


def test_acts_that_were_put_in_or_left_out_stand_where_they_were() -> None:
    turns = case_turns(make_act_case())
    states = {turn["state"] for turn in turns if "state" in turn}
    assert states == {"edited", "inserted", "left out"}
    call = next(turn for turn in turns if turn.get("state") == "edited")["parts"][-1]
    assert call["kind"] == "call"
    assert call["text"].startswith("order: ")


def test_tool_calls_and_reasoning_are_parts_of_their_turn(tmp_path: Path) -> None:
    content = [
        {"type": "reasoning", "reasoning": "Look first.\n[0] user"},
        {"type": "text", "text": "Looking.\n[9] user"},
    ]
    data = '{"order": 17, "price": 39.40, "late": true, "note": "A\\nlate: false"}'
    messages = [
        MESSAGES[0],
        {**MESSAGES[1], "content": content},
        {**MESSAGES[2], "content": data},
        MESSAGES[3],
    ]
    page = page_of(tmp_path, judged(right, runs=1)[:1], messages=messages)
    [body] = bodies(page).values()
    assert [tuple(part.values()) for part in body["turns"][1]["parts"]] == [
        ("reasoning", "reasoning", "Look first.\n[0] user"),
        ("text", "", "Looking.\n[9] user"),
        ("call", "look_up", "order: 17"),
    ]
    # No value of several lines can pass for another key.
    assert '"note": "A\\nlate: false"' in body["turns"][2]["parts"][0]["text"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"price": 39.40, "late": true}', "price: 39.40\nlate: true"),
        ('{"lines": [1]}', '{\n  "lines": [\n    1\n  ]\n}'),
        ("{not JSON", "{not JSON"),
        ("plain", "plain"),
    ],
)
def test_results_of_tools_are_laid_out_to_be_read(text: str, shown: str) -> None:
    messages = [MESSAGES[0], {"role": "tool", "function": "look_up", "content": text}]
    [_, turn] = bare_turns(messages)
    assert (turn["name"], turn["parts"][0]["text"]) == ("look_up", shown)


def test_turns_that_cases_share_are_stored_once(tmp_path: Path) -> None:
    blocks = data_blocks(page_of(tmp_path, judged(right, runs=1)))
    assert len(blocks["run-0"]["cases"]) == 4
    assert len(blocks["run-0"]["pool"]) == 5


def test_page_asks_the_network_for_nothing(tmp_path: Path) -> None:
    page = page_of(tmp_path, judged(wrong_on("run-003")))
    outside = {"src", "srcset", "action", "style", "background", "poster", "data"}
    for element in page.elements:
        assert not outside & element.attributes.keys()
        assert not [name for name in element.attributes if name.startswith("on")]
        assert element.attributes.get("href", "#").startswith("#")
        assert element.tag not in ("link", "img", "iframe", "object", "embed", "base")
    (style,) = page.all("style")
    assert "url(" not in style.text
    assert "@import" not in style.text


def test_policy_names_the_script_and_the_style_by_their_hashes(tmp_path: Path) -> None:
    page = page_of(tmp_path, judged(right, runs=2))
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    rules = dict(rule.strip().split(" ", 1) for rule in policy.attributes["content"].split(";"))
    scripts = [script for script in page.all("script") if "type" not in script.attributes]
    for (element,), rule in ((scripts, "script-src"), (page.all("style"), "style-src")):
        digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules


def test_script_writes_text_and_never_markup() -> None:
    scripts = [page_module.FOLDER / name for name in (*page_module.READING, page_module.START)]
    script = "".join(path.read_text("utf-8") for path in scripts)
    writing = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(|XMLHttp"
    assert not re.search(writing, script)


def test_hostile_text_adds_no_element_and_no_attribute(tmp_path: Path) -> None:
    def described(text: str) -> list[CaseResult]:
        results = judged(wrong_on("run-001"), runs=3, rubrics=("tone",), judge="j")
        name = storable(text)[0]
        named = []
        for result in results:
            named.append(result_with(result, rubric_id=name, judge=text, reasoning=text))
        return [*named, make_result(make_spec("z"), "refused", detail=text, rubric_id=name)]

    messages = [{**message, "content": HOSTILE} for message in MESSAGES]
    tame = page_of(tmp_path / "tame", described("tame"))
    wild = page_of(tmp_path, described(HOSTILE), messages=messages)
    assert [one.tag for one in wild.elements] == [one.tag for one in tame.elements]
    for wild_element, tame_element in zip(wild.elements, tame.elements, strict=True):
        assert set(wild_element.attributes) == set(tame_element.attributes)
    shown = visible(HOSTILE)
    body = next(iter(bodies(wild).values()))
    assert shown in [one["why"] for one in body["voices"]]
    assert shown in [part["text"] for turn in body["turns"] for part in turn["parts"]]
    raw = (tmp_path / "report.html").read_text("utf-8")
    assert not set(raw) & set("\x00\x1b\u202e\u2066\ufffe")


def test_secrets_are_redacted_everywhere(tmp_path: Path) -> None:
    secret = "sk-0123456789abcdef-secret"
    results = []
    for result in judged(wrong_on("run-001"), runs=2):
        results.append(result_with(result, reasoning=secret, rubric_id=f"r {secret}"))
    messages = [{**message, "content": secret} for message in MESSAGES]
    redactor = {"redactor": Redactor((secret,))}
    page = page_of(tmp_path, results, messages=messages, session=redactor)
    assert secret not in (tmp_path / "report.html").read_text("utf-8")
    assert secret not in str(data_blocks(page))
    assert "[REDACTED]" in str(bodies(page))


def test_what_does_not_fit_is_left_out_and_mistakes_are_kept(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(60_000).hex()
    messages = [*MESSAGES[:2], {**MESSAGES[2], "content": noise}, MESSAGES[3]]
    results = judged(wrong_on("run-007"), runs=12, rubrics=("tone",))
    whole = tmp_path / "whole"
    page_of(whole, results, messages=messages)
    limit = (whole / "report.html").stat().st_size * 2 // 3
    page = page_of(tmp_path, results, messages=messages, limit=limit)
    cut = {key for key, body in bodies(page).items() if body.get("is_cut")}
    assert 6 < len(cut) < 18
    first, *_, last = listed_cases(page)
    assert (first["run"], first["key"] in cut, last["key"] in cut) == ("run-007", False, True)
    assert bodies(page)[last["key"]]["voices"][-1]["why"] == "The order is late."


def test_a_large_table_lists_the_most_urgent_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "_MOST_OF_TABLE", 10)
    page = page_of(tmp_path, judged(coin(), runs=12), session={"is_table": True})
    data = session_data(page)
    assert len(data["cases"]) == 10
    assert {row["kind"] for row in data["cases"]} <= {"missed", "false alarm"}
    assert "The list has 10 of 48 cases" in str(data["blocks"]["answer"])
