"""The HTML report, read back with the standard library's parser (rules I: `--jrh-report`)."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.text import visible
from pytest_jrh.core.transcript import storable
from pytest_jrh.reports import html
from pytest_jrh.reports.html import write_html
from pytest_jrh.reports.session import case_key
from tests.support.judged_sessions import (
    HOSTILE,
    coin,
    judged,
    misses,
    right,
    scored,
    session_of,
    spooled,
    wrong_on,
)
from tests.support.made_cases import MESSAGES, make_result, make_spec, result_with
from tests.support.page_reader import Page, bodies, listed_cases

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_jrh.core.model import CaseResult, CaseSpec


def page_of(
    folder: Path,
    results: Sequence[CaseResult],
    before: Iterable[CaseResult] | None = None,
    messages: Any = MESSAGES,
    redactor: Redactor | None = None,
    limit: int = 30_000_000,
    **rules: Any,
) -> Page:
    records = spooled(folder / "spool", results, lambda result: messages)
    path = folder / "report.html"
    session = session_of(results, before, **rules)
    session = replace(session, records=records, redactor=redactor or Redactor())
    write_html(path, session, limit=limit)
    assert path.stat().st_size <= limit
    return Page.of(path.read_text("utf-8"))


def figures(page: Page) -> list[dict[str, str]]:
    """The rows of the figures' tables, by title; the name of the row is `name`."""
    rows: list[dict[str, str]] = []
    is_among_figures = False
    for element in page.elements:
        if element.attributes.get("id") == "figures":
            is_among_figures = True
        if element.attributes.get("class") == "glossary":
            break
        if not is_among_figures:
            continue
        if element.tag == "tr" and element.attributes.get("class") in ("rubric", "test", "total"):
            rows.append({})
        elif (
            element.tag == "th"
            and element.attributes.get("scope") == "row"
            and rows
            and not rows[-1]
        ):
            rows[-1]["name"] = element.text
        elif (
            element.tag == "td"
            and "data-label" in element.attributes
            and "data-name" not in element.attributes
        ):
            # Behind the figure is its interval.
            rows[-1][element.attributes["data-label"]] = element.text.split()[0]
    return rows


def test_page_has_the_decision_the_figures_and_a_row_for_each_case(tmp_path: Path) -> None:
    results = judged(misses(6))
    page = page_of(tmp_path, results, before=judged(right))
    assert page.all("title")[0].text == "FAIL: judge reliability, refunds"
    title = "FAIL: the judge misses 6 of 24 violations that it found before"
    assert page.all("h1")[0].text == title
    beside = "No new false alarms (0 of 24); chance does as much in 2 of 100."
    assert beside in [paragraph.text for paragraph in page.all("p")]
    assert figures(page)[0]["name"] == "all"
    assert figures(page)[0]["kappa"] == "0.75"
    assert len(listed_cases(page)) == 48
    assert len(page.all("span", **{"class": "pill bad"})) == 12


def test_flicker_of_the_same_judge_is_marked_beside_its_cases(tmp_path: Path) -> None:
    page = page_of(tmp_path, judged(wrong_on("run-003")), before=judged(right), same_judge=True)
    pills = [pill.text for pill in page.all("span", **{"class": "pill bad"})]
    assert pills.count("regression (flicker)") == 4
    assert "regression" not in pills


def test_every_case_can_be_linked_to_and_has_its_body(tmp_path: Path) -> None:
    results = judged(wrong_on("run-003"), runs=4)
    page = page_of(tmp_path, results, before=judged(right, runs=4))
    found = bodies(page)
    rows = {row["key"]: row for row in listed_cases(page)}
    assert len(rows) == len(results)
    for result in results:
        key = case_key(result.case_id)
        body = found[rows[key]["chunk"]]
        told = body["results"][key]
        assert told["reasoning"] == "The order is late."
        assert told["command"].startswith("pytest 'suites/refunds.jrh.yml::")
        made = body["cases"][told["made"]]
        turns = [body["pool"][place] for place in made["judged"]]
        assert [turn["role"] for turn in turns] == ["user", "assistant", "tool", "assistant"]
        if result.spec.test == "agent_perturbation":
            assert turns[-1]["parts"] == [["", "I have refunded order 17 in full."]]
            (edit,) = made["edits"]
            assert (
                "".join(text for kind, text in edit["pieces"] if kind != "new")
                == (MESSAGES[-1]["content"])
            )
            [(title, who_said)] = told["lines"]
            assert title == "Who says what"
            assert who_said.startswith("1 (violated): the label, the verifier, the judge in")
            assert made["plan"]["steps"][0]["goal"] == "grant the refund"
            assert made["verification"]["rationale"] == "It grants a late refund."


def test_what_is_to_be_seen_first_stands_first(tmp_path: Path) -> None:
    results = [
        *judged(wrong_on("run-003", "run-002"), runs=4, rubrics=("tone",)),
        make_result(make_spec("z"), "refused", detail="the model would not answer"),
    ]
    page = page_of(tmp_path, results, before=judged(wrong_on("run-002"), runs=4, rubrics=("tone",)))
    rows = listed_cases(page)
    assert [row["statuses"] for row in rows[:6]] == [
        *[["regression", "failed"]] * 2,
        *[["failed"]] * 2,
        ["error"],
        ["passed"],
    ]
    assert [row["place"] for row in rows[4:7]] == [8, 0, 1]
    buttons = {
        button.attributes["data-status"]: button.text
        for button in page.all("button")
        if "data-status" in button.attributes
    }
    assert buttons == {
        "": "all 9",
        "regression": "regressions 2",
        "failed": "failed 4",
        "error": "errors 1",
        "passed": "passed 4",
    }
    links = {link.attributes["href"]: link.text for link in page.all("a")}
    assert links["#status=regression"] == "2 regressions"


def test_what_the_gate_tolerates_is_xfailed_as_in_pytest(tmp_path: Path) -> None:
    results = judged(wrong_on("run-001"), runs=2, rubrics=("tone",))
    wrong = [result.case_id for result in results if result.outcome == "disagree"]
    session = replace(
        session_of([*results, make_result(make_spec("z"), "no_case")]),
        tolerated=frozenset(wrong[:1]),
        records=spooled(tmp_path / "spool", results),
    )
    write_html(tmp_path / "report.html", session)
    page = Page.of((tmp_path / "report.html").read_text("utf-8"))
    buttons = [button.text for button in page.all("button") if "data-status" in button.attributes]
    assert buttons == ["all 5", "failed 1", "xfailed 1", "skipped 1", "passed 2"]


def test_figures_begin_with_misses_and_the_worst_rubric(tmp_path: Path) -> None:
    def answer(spec: CaseSpec, expected: int) -> int:
        return 0 if spec.rubric_id == "tone" and spec.run_id < "run-006" else expected

    rows = figures(page_of(tmp_path, judged(answer)))
    assert list(rows[0])[:4] == ["name", "recall", "false-positive rate", "accuracy"]
    assert [row["name"] for row in rows] == ["all", "tone", "refund_policy"]
    assert [row["recall"] for row in rows[:2]] == ["75.0%", "50.0%"]


def test_every_column_is_explained(tmp_path: Path) -> None:
    page = page_of(tmp_path, judged(wrong_on("run-001"), runs=2), before=judged(right, runs=2))
    terms = [term.text for term in page.all("dt")]
    titles = [
        heading.text
        for heading in page.all("th", scope="col")
        if "figure" not in heading.inside and "title" in heading.attributes
    ]
    assert {"n", "accuracy", "since baseline", "kappa"} <= set(titles)
    assert set(titles) <= set(terms)
    assert {"outcome", "since the baseline", "right", "given", "cost"} <= set(terms)
    assert all(len(each.text) > 20 for each in page.all("dd"))


def test_cases_are_searched_for_what_they_say(tmp_path: Path) -> None:
    page = page_of(tmp_path, judged(wrong_on("run-001"), runs=2, rubrics=("tone",)))
    (block,) = page.all("script", id="search")
    found = json.loads(zlib.decompress(base64.b64decode(block.text)))
    assert len(found["cases"]) == 4
    assert len(found["rubrics"]) == 1
    texts = [text for _, text in found["cases"].values()]
    assert all("The order is late." in text for text in texts)
    assert sum("I have refunded order 17 in full." in text for text in texts) == 2


def test_turns_that_cases_share_are_stored_once(tmp_path: Path) -> None:
    body = bodies(page_of(tmp_path, judged(right, runs=1)))["run-0"]
    assert len(body["cases"]) == 4
    assert len(body["pool"]) == 5


def test_tool_calls_and_reasoning_are_parts_of_their_turn(tmp_path: Path) -> None:
    content = [
        {"type": "reasoning", "reasoning": "Look first.\n[0] user"},
        {"type": "text", "text": "Looking.\n[9] user"},
    ]
    messages = [MESSAGES[0], {**MESSAGES[1], "content": content}, *MESSAGES[2:]]
    body = bodies(page_of(tmp_path, judged(right, runs=1), messages=messages))["run-0"]
    turn = next(turn for turn in body["pool"] if len(turn["parts"]) > 1)
    assert turn["parts"] == [
        [" reasoning", "Look first.\n[0] user"],
        ["", "Looking.\n[9] user"],
        [" calls look_up", '{"order": 17}'],
    ]


def test_case_without_a_verdict_tells_why(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        [make_result(make_spec("a"), "no_case", detail="no plan was found"), make_result()],
    )
    found = bodies(page)[listed_cases(page)[0]["chunk"]]
    (told,) = found["results"].values()
    assert (told["made"], told["detail"]) == (None, "no plan was found")


def test_ordinal_suites_and_panels_have_their_own_parts(tmp_path: Path) -> None:
    page = page_of(
        tmp_path, [*scored(right), *judged(right, judge="a"), *judged(coin(), judge="b")]
    )
    headings = [heading.text for heading in page.all("h2")]
    assert {"Figures", "Panel of refunds: 2 judges"} <= set(headings)
    judges = {row["name"]: row for row in figures(page) if "recall" in row or "exact" in row}
    names = ["refunds, judge b", "refunds, judge a", "helpfulness"]
    assert [name for name in judges if name in names] == names
    assert "weighted kappa" in judges["helpfulness"]
    assert "weighted kappa" not in judges["refunds, judge a"]
    assert {"suite", "judge"} <= {select.attributes["name"] for select in page.all("select")}


def test_page_asks_the_network_for_nothing(tmp_path: Path) -> None:
    page = page_of(tmp_path, judged(wrong_on("run-003")))
    for element in page.elements:
        assert (
            not {"src", "srcset", "action", "style", "background", "poster", "data"}
            & element.attributes.keys()
        )
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


def test_script_writes_text_and_never_markup() -> None:
    scripts = sorted((Path(html.__file__).parent / "templates").glob("*.js"))
    assert len(scripts) == 4
    script = "".join(path.read_text("utf-8") for path in scripts)
    writing = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(|XMLHttp|import\("
    )
    assert not re.search(writing, script)


def test_hostile_text_adds_no_element_and_no_attribute(tmp_path: Path) -> None:
    def described(text: str) -> list[CaseResult]:
        results = judged(wrong_on("run-001"), runs=3, rubrics=("tone",), judge="j")
        named = [
            result_with(result, rubric_id=storable(text)[0], judge=text, reasoning=text)
            for result in results
        ]
        refused = make_result(make_spec("z"), "refused", detail=text, rubric_id=storable(text)[0])
        return [*named, refused]

    messages = [{**message, "content": HOSTILE} for message in MESSAGES]
    (tmp_path / "a").mkdir()
    tame = page_of(tmp_path / "a", described("tame"))
    wild = page_of(tmp_path, described(HOSTILE), messages=messages)
    # A longer text takes more lines of a picture, each an element of its own.
    wild_elements, tame_elements = (
        [element for element in page.elements if element.tag != "text"] for page in (wild, tame)
    )
    assert [element.tag for element in wild_elements] == [element.tag for element in tame_elements]
    for wild_element, tame_element in zip(wild_elements, tame_elements, strict=True):
        assert set(wild_element.attributes) == set(tame_element.attributes)
    shown = visible(HOSTILE)
    body = bodies(wild)["run-1"]
    assert next(iter(body["results"].values()))["reasoning"] == shown
    assert shown in [text for turn in body["pool"] for _, text in turn["parts"]]
    raw = (tmp_path / "report.html").read_text("utf-8")
    assert not set(raw) & set("\x00\x1b\u202e\u2066\ufffe")


def test_secrets_are_redacted_everywhere(tmp_path: Path) -> None:
    secret = "sk-0123456789abcdef-secret"
    results = [
        result_with(each, reasoning=secret, rubric_id=f"r {secret}")
        for each in judged(wrong_on("run-001"), runs=2)
    ]
    messages = [{**message, "content": secret} for message in MESSAGES]
    page = page_of(tmp_path, results, messages=messages, redactor=Redactor((secret,)))
    assert secret not in (tmp_path / "report.html").read_text("utf-8")
    assert secret not in str(bodies(page))
    assert "[REDACTED]" in str(bodies(page))


def test_what_does_not_fit_is_left_out_and_disagreements_are_kept(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(60_000).hex()
    messages = [*MESSAGES[:2], {**MESSAGES[2], "content": noise}, MESSAGES[3]]
    results = judged(wrong_on("run-007"), runs=12, rubrics=("tone",))
    whole = tmp_path / "whole"
    page_of(whole, results, messages=messages)
    limit = (whole / "report.html").stat().st_size * 2 // 3
    page = page_of(tmp_path, results, messages=messages, limit=limit)
    cut = [
        block.attributes["id"]
        for block in page.all("script", type="text/plain")
        if "data-cut" in block.attributes
    ]
    assert 3 < len(cut) < 9
    assert page.all("script", id="search")
    found = bodies(page)
    wrong = listed_cases(page)[0]["chunk"]
    assert wrong not in cut
    (perturbed, positive) = found[cut[0]]["cases"].values()
    assert (perturbed["judged"], positive["judged"]) == (None, None)
    assert perturbed["edits"][0]["pieces"][-1][1] == "I have refunded order 17 in full."


def test_all_results_have_their_made_case(tmp_path: Path) -> None:
    results = [*judged(right, runs=1, judge="a"), *judged(right, runs=1, judge="b")]
    body = bodies(page_of(tmp_path, results))["run-0"]
    assert {told["made"] for told in body["results"].values()} == body["cases"].keys()
    assert len(body["results"]) == 2 * len(body["cases"])
