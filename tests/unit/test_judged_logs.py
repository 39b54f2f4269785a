"""Judged cases as an Inspect log: what Inspect itself reads back."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import Case, CaseResult, Message, Spending, Usage
from pytest_jrh.core.redact import Redactor
from pytest_jrh.reports.eval_log import write_judged_log
from pytest_jrh.sources.eval_logs import EvalLog
from tests.support.logs import IMAGE, assistant, call, conversation, user
from tests.support.made_cases import make_case, make_spec, result_with


def judged(
    number: int = 1, *, messages: Sequence[Message] | None = None, **changes: Any
) -> tuple[CaseResult, Case | None]:
    spec = make_spec(f"run-{number}", rubric_id="policy", judge="strict")
    result = CaseResult(
        spec,
        f"refunds::agent_perturbation::policy::run-{number}[e1]",
        "agree",
        expected=1,
        score=1,
        reasoning="Turn 2 refunds too much.",
    )
    case = make_case(spec, messages=conversation() if messages is None else messages, edited=False)
    return result_with(result, **changes), case


def read(path: Path) -> Any:
    from inspect_ai.log import read_eval_log

    return read_eval_log(str(path))


def test_inspect_reads_the_judged_cases(tmp_path: Path) -> None:
    path = tmp_path / "judged.eval"
    wrong, _ = judged(2, outcome="disagree", score=0)
    cases = [judged(), (wrong, make_case(new_text="I have refunded it."))]
    assert write_judged_log(path, cases, task="refunds", model="openai/gpt-4.1-mini") == 2

    log = read(path)
    assert (log.status, log.eval.task, log.eval.model) == (
        "success",
        "refunds",
        "openai/gpt-4.1-mini",
    )
    first, second = log.samples
    assert first.id == "policy/run-1/agent_perturbation/strict"
    assert first.metadata["title"] == "policy: perturbation (run-1, strict)"
    assert first.metadata["case"] == judged()[0].case_id
    assert [message.role for message in first.messages] == [
        message["role"] for message in conversation()
    ]
    assert first.messages[2].tool_calls[0].function == "look_up"
    score = first.scores["strict"]
    assert (first.target, score.value, score.answer, score.explanation) == (
        "1",
        "C",
        "1",
        "Turn 2 refunds too much.",
    )
    assert first.metadata["rubric"] == "policy"
    assert first.metadata["outcome"] == "agree"
    assert second.scores["strict"].value == "I"
    assert second.scores["strict"].metadata == {"outcome": "disagree", "expected": 1, "score": 0}
    [edit] = second.metadata["edits"]
    assert (edit["message_index"], edit["after"]) == (3, "I have refunded it.")
    (result,) = log.results.scores
    assert (result.scorer, result.metrics["accuracy"].value, result.scored_samples) == (
        "strict",
        0.5,
        2,
    )


def test_a_case_without_a_verdict_is_an_error_and_has_no_score(tmp_path: Path) -> None:
    path = tmp_path / "judged.eval"
    broken = judged(
        outcome="model_error", score=None, detail="The server answered 500 three times."
    )
    write_judged_log(path, [broken, judged(2)])
    log = read(path)
    first = log.samples[0]
    assert first.scores is None
    assert first.error.message == "The server answered 500 three times."
    assert log.results.completed_samples == 1
    assert log.results.scores[0].unscored_samples == 1
    assert log.results.scores[0].metrics["accuracy"].value == 1


def test_a_case_that_could_not_be_made_is_there_with_the_reason_and_without_a_score(
    tmp_path: Path,
) -> None:
    path = tmp_path / "judged.eval"
    skipped, _ = judged(outcome="no_case", score=None, expected=None, detail="No turn.")
    write_judged_log(path, [(skipped, None), judged(2)])
    log = read(path)
    first = log.samples[0]
    assert (first.scores, first.error, first.metadata["reason"]) == (None, None, "No turn.")
    assert first.input == "No turn."
    assert log.results.scores[0].scored_samples == 1
    assert log.results.scores[0].metrics["accuracy"].value == 1


def test_tokens_and_times_are_those_of_the_session(tmp_path: Path) -> None:
    path = tmp_path / "judged.eval"
    times = ("2026-03-01T10:00:00+00:00", "2026-03-01T10:05:00+00:00")
    cases = [judged(number, spending=Spending(usage=Usage(100, number))) for number in (1, 2)]
    write_judged_log(path, cases, times=times)
    log = read(path)
    assert (log.eval.created, log.stats.started_at, log.stats.completed_at) == (times[0], *times)
    (usage,) = log.stats.model_usage.values()
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (200, 3, 203)
    assert [each.total_tokens for each in log.samples[1].model_usage.values()] == [102]


def test_inspects_own_accuracy_is_ours(tmp_path: Path) -> None:
    from inspect_ai.scorer import value_to_float

    path = tmp_path / "judged.eval"
    write_judged_log(path, [judged(1, expected=0, score=0), judged(2, expected=0, score=1)])
    values = [value_to_float()(sample.scores["strict"].value) for sample in read(path).samples]
    assert values == [1.0, 0.0]


def test_a_case_that_was_only_generated_has_neither_score_nor_error(tmp_path: Path) -> None:
    path = tmp_path / "judged.eval"
    write_judged_log(path, [judged(outcome="generated", score=None)])
    (sample,) = read(path).samples
    assert sample.scores is None
    assert sample.error is None


def test_each_judge_of_a_panel_has_its_own_figures(tmp_path: Path) -> None:
    path = tmp_path / "judged.eval"
    write_judged_log(path, [judged(1), judged(2, judge="lax", score=0, outcome="disagree")])
    figures = {score.scorer: score.metrics["accuracy"].value for score in read(path).results.scores}
    assert figures == {"strict": 1, "lax": 0}


def test_summaries_are_what_inspect_lists(tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log_sample_summaries

    path = tmp_path / "judged.eval"
    write_judged_log(path, [judged(1), judged(2)])
    summaries = read_eval_log_sample_summaries(str(path))
    assert [summary.id for summary in summaries] == [
        "policy/run-1/agent_perturbation/strict",
        "policy/run-2/agent_perturbation/strict",
    ]
    assert summaries[0].scores is not None
    assert summaries[0].scores["strict"].value == "C"


def test_the_log_can_be_a_suites_own_log(tmp_path: Path) -> None:
    path = tmp_path / "judged.eval"
    write_judged_log(path, [judged()])
    with EvalLog(path) as log:
        (summary,) = log.summaries()
        assert [message["role"] for message in log.run(summary.run_id, 1).messages] == [
            message["role"] for message in conversation()
        ]


def test_the_same_cases_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_judged_log(tmp_path / f"{name}.eval", [judged(1), judged(2)])
    write_judged_log(tmp_path / "three.eval", [judged(1), judged(3)])
    one, two, three = ((tmp_path / f"{name}.eval").read_bytes() for name in ("one", "two", "three"))
    assert one == two
    assert read(tmp_path / "one.eval").eval.eval_id != read(tmp_path / "three.eval").eval.eval_id
    assert one != three


def test_cases_are_taken_one_at_a_time_and_written_before_the_next(tmp_path: Path) -> None:
    written: list[int] = []

    def cases() -> Iterator[tuple[CaseResult, Case | None]]:
        for number in range(3):
            written.append(sum(path.stat().st_size for path in tmp_path.iterdir()))
            # Bigger than any buffer, and random enough not to be compressed away.
            yield judged(number, messages=[user(os.urandom(200_000).hex())])

    write_judged_log(tmp_path / "judged.eval", cases())
    assert written[0] < 10_000
    assert written[2] > written[1] >= 150_000


@pytest.mark.parametrize(
    "text",
    [
        "</script><script>alert(1)</script>",
        "=cmd()|' /C calc'!A0",
        "]]>",
        "\x1b[31mred\x1b[0m",
        "\u202egnp.exe",
        "{{ 7*7 }} {rubric} ${{ secrets.KEY }}",
        "attachment://0123456789abcdef",
        "x" * 200_000,
    ],
    ids=["script", "formula", "cdata", "ansi", "rtl", "templates", "attachment", "long"],
)
def test_hostile_text_comes_back_as_it_was(tmp_path: Path, text: str) -> None:
    path = tmp_path / "judged.eval"
    messages = [user(text), assistant(text, call("look_up", note=text))]
    write_judged_log(path, [judged(messages=messages, reasoning=text, run_id=text)])
    (sample,) = read(path).samples
    assert [message.text for message in sample.messages] == [text, text]
    assert sample.messages[1].tool_calls[0].arguments["note"] == text
    assert sample.scores["strict"].explanation == text
    assert sample.metadata["run"] == text


def test_what_cannot_be_stored_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "judged.eval"
    bad = "a\ud800b\x00c"
    write_judged_log(
        path,
        [judged(judge=bad, messages=[user(bad)], reasoning=bad, run_id=bad)],
        task=bad,
    )
    log = read(path)
    (sample,) = log.samples
    assert sample.messages[0].text == log.eval.task == "a\ufffdbc"
    assert sample.metadata["run"] == "a\ufffdbc"
    assert list(sample.scores) == ["a\ufffdbc"]


def test_images_stay_and_a_message_that_inspect_does_not_know_becomes_text(tmp_path: Path) -> None:
    path = tmp_path / "judged.eval"
    image = user([{"type": "text", "text": "look"}, {"type": "image", "image": IMAGE}])
    odd = {"role": "developer", "content": "Be brief."}
    broken = {"role": "assistant", "content": [{"type": "hologram", "text": "?"}]}
    write_judged_log(path, [judged(messages=[image, odd, broken])])
    first, second, third = read(path).samples[0].messages
    assert first.content[1].image == IMAGE
    assert (second.role, "Be brief." in second.text) == ("user", True)
    assert third.role == "assistant"


@pytest.mark.parametrize("case_id", ["../../x", "s::t::r::a%2Fb[e1]", "n" * 300, "ç 日本", "Case"])
def test_any_id_can_be_looked_up(tmp_path: Path, case_id: str) -> None:
    from inspect_ai.log import read_eval_log_sample

    path = tmp_path / "judged.eval"
    write_judged_log(path, [judged(case_id=case_id, run_id=case_id)])
    (name,) = (sample.id for sample in read(path).samples)
    assert name.startswith("policy/")
    assert len(name) < 128
    assert read_eval_log_sample(str(path), name, 1).metadata["case"] == case_id
    assert [item.name for item in tmp_path.iterdir()] == ["judged.eval"]


def test_an_id_is_the_same_whatever_else_is_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "judged.eval"
    changes: list[dict[str, Any]] = [
        {"case_id": "a", "run_id": "\u65e5"},
        {"case_id": "b", "run_id": "\u672c"},
        {"case_id": "c", "run_id": "x/y"},
        {"case_id": "d", "run_id": "x_y"},
        {"case_id": "e", "run_id": "x_y", "epoch": 2},
        {"case_id": "f", "run_id": "x_y", "target_score": 3},
        {"case_id": "g", "run_id": "x_epoch_epoch_1"},
        {"case_id": "h", "run_id": "sk-0123456789abcdefghij"},
        {"case_id": "i", "run_id": "sk-9876543210abcdefghij"},
    ]
    redactor = Redactor(("sk-0123456789abcdefghij", "sk-9876543210abcdefghij"))
    together = [judged(**change) for change in changes]
    write_judged_log(path, together, redactor=redactor)
    ids = {sample.metadata["case"]: sample.id for sample in read(path).samples}
    assert len(set(ids.values())) == len(changes)
    assert not any("_epoch_" in sample_id for sample_id in ids.values())
    assert [ids[case] for case in "def"] == [
        "policy/x_y/agent_perturbation/strict",
        "policy/x_y/agent_perturbation/epoch_2/strict",
        "policy/x_y/agent_perturbation/score_3/strict",
    ]
    for case in together:
        write_judged_log(path, [case], redactor=redactor)
        [sample] = read(path).samples
        assert sample.id == ids[sample.metadata["case"]]


def test_secrets_do_not_reach_the_log(tmp_path: Path) -> None:
    path = tmp_path / "judged.eval"
    secret = "sk-0123456789abcdefghij"
    case = judged(case_id=secret, messages=[user(f"key {secret}")], reasoning=secret, run_id=secret)
    write_judged_log(path, [case], task=secret, redactor=Redactor((secret,)))
    with zipfile.ZipFile(path) as archive:
        assert all(
            secret not in name and secret.encode() not in archive.read(name)
            for name in archive.namelist()
        )
    assert read(path).samples[0].messages[0].text == "key [REDACTED]"


def test_a_log_without_cases_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "judged.eval"
    assert write_judged_log(path, []) == 0
    assert not read(path).samples


def test_two_cases_with_one_id_are_refused_and_the_old_log_stays(tmp_path: Path) -> None:
    path = tmp_path / "judged.eval"
    write_judged_log(path, [judged()])
    before = path.read_bytes()
    with pytest.raises(ValueError, match="two cases have the id"):
        write_judged_log(path, [judged(), judged()])
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["judged.eval"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match="cannot be written") as caught:
        write_judged_log(tmp_path / "taken" / "judged.eval", [judged()])
    assert caught.value.problems[0].file == str(tmp_path / "taken" / "judged.eval")


@settings(max_examples=25, deadline=None)
@given(text=st.text(st.characters(exclude_categories=()), max_size=40), value=st.integers(-3, 9))
def test_any_text_and_score_come_back(
    tmp_path_factory: pytest.TempPathFactory, text: str, value: int
) -> None:
    path = tmp_path_factory.mktemp("any") / "judged.eval"
    case = judged(messages=[user(text)], score=value, reasoning=text, run_id=text)
    write_judged_log(path, [case])
    (sample,) = read(path).samples
    assert sample.scores["strict"].answer == str(value)
    assert sample.scores["strict"].value == ("C" if value == 1 else "I")
    assert sample.messages[0].text == sample.scores["strict"].explanation
