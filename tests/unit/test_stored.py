"""Case results on disk: read back as they were, and never taken for what they are not."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import (
    Rejection,
    SharedCall,
    ShownTurns,
    Spending,
    Usage,
    Verdict,
)
from pytest_jrh.store.results import (
    read_results,
    result_data,
    stored_data,
)
from tests.support.made_cases import DIGESTS, make_result, make_spec

SPENT = {"calls", "replayed", "usage", "cost", "paid", "unpriced", "lost"}
RESULTS = (
    make_result(make_spec("a"), "disagree", edit_note="grants the refund", **DIGESTS),
    make_result(make_spec("b"), "no_case", detail="not confirmed: the verifier says PASS"),
    make_result(
        make_spec("h"), "no_case", detail="annotators disagree", skip_kind="disputed_label"
    ),
    make_result(make_spec("c"), "model_error"),
    make_result(
        make_spec("d", judge="strict"),
        judge_spending=Spending(1, 0, Usage(3, 4), 0.1, 0.1),
        **DIGESTS,
    ),
    make_result(make_spec("e", target_score=2, test="agent_positives"), verified=False, **DIGESTS),
    make_result(make_spec("f"), "generated", expected=1, case_digest="c" * 64),
    make_result(
        make_spec("g", test="position", base="agent_perturbation", variant="before-x2"),
        "disagree",
        base_scores=(1, 1, 0),
        **DIGESTS,
    ),
    make_result(
        make_spec("i"),
        "disagree",
        scores=(0, 1, 0),
        minority=Verdict(1, "It is late."),
        verdicts=(Verdict(0, "Fine."), Verdict(1, "It is late."), Verdict(0, "Polite.")),
        **DIGESTS,
    ),
    make_result(make_spec("j"), "refused", verdicts=(Verdict(1, "It is late."),)),
)


def written(path: Path, *results: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(result)}\n" for result in results), "utf-8")
    return path


def test_results_are_read_back_as_they_were(tmp_path: Path) -> None:
    found = read_results(written(tmp_path / "r.jsonl", *map(result_data, RESULTS)))
    assert [(result, line) for result, line, *_ in found.values()] == [
        (each, n) for n, each in enumerate(RESULTS, 1)
    ]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"outcome": "fine"}, "outcome: not a case result: input should be 'agree', 'disagree'"),
        ({"outcome": None}, "outcome: not a case result: input should be 'agree'"),
        ({"outcome": "agree"}, "outcome is agree, but score is 0 and expected is 1"),
        ({"score": 1}, "outcome is disagree, but score is 1 and expected is 1"),
        ({"score": None}, "score and expected must be integers where outcome is disagree"),
        ({"score": "1"}, "score: not a case result: input should be a valid integer"),
        ({"score": True}, "score: not a case result: input should be a valid integer"),
        ({"outcome": "no_case"}, "score must be null where outcome is no_case, got 0"),
        ({"outcome": "unrecorded"}, "score must be null where outcome is unrecorded, got 0"),
        ({"case_digest": ""}, 'case_digest must be 64 hexadecimal digits, got ""'),
        ({"judge_fingerprint": "x"}, 'judge_fingerprint must be 64 hexadecimal digits, got "x"'),
        ({"test": "agent_dreams"}, "test must be one of agent_perturbation, agent_positives"),
        ({"run_id": "b"}, "case_id is"),
        ({"base": "agent_labels"}, "base, variant and base_scores are for probes"),
        ({"test": "position"}, "base must be one of agent_perturbation, "),
        ({"test": "position", "base": "position", "variant": "x"}, "base must be one of agent_"),
        (
            {"test": "position", "base": "agent_labels", "variant": "x", "base_scores": [1] * 100},
            "base_scores must be at most 99, got 100",
        ),
        ({"judge": "strict"}, "case_id is"),
        ({"skip_kind": "no_plan"}, "skip_kind must be absent where outcome is disagree"),
        ({"skip_kind": "no_luck"}, "skip_kind: not a case result: input should be 'no_messages'"),
        ({"verdicts": [{"score": 0, "reasoning": ""}]}, "verdicts must have the scores of several"),
        (
            {"verdicts": [{"score": 1, "reasoning": ""}] * 3, "scores": [0, 0, 0]},
            "verdicts must have the scores of several repeats, in their order",
        ),
        ({"verdicts": [{"score": 0}]}, "verdicts.0.reasoning: not a case result: field required"),
        ({"epoch": "1"}, "epoch: not a case result: input should be a valid integer"),
        ({"spending": None}, "spending: not a case result:"),
        (
            {"spending": {"usage": {"input_tokens": -1}}},
            "epoch and the figures of spending",
        ),
        ({"spending": {"cost": float("nan")}}, "epoch and the figures of spending"),
        (
            {"spending": {"usage": {"input_tokens": 10**400}}},
            "epoch and the figures of spending",
        ),
        ({"spending": {"calls": 2**53 + 1}}, "epoch and the figures of spending"),
        ({"spending": {"cost": 1e308}}, "epoch and the figures of spending"),
        ({"turns_shown": {"turns": 1, "missing": [1, 2]}}, "turns_shown has more missing and"),
        ({"turns_shown": {"turns": 9, "missing": [5, 5]}}, "turns_shown.missing: not a case"),
        ({"turns_shown": {"turns": 9, "missing": [-5]}}, "turns_shown.missing.0: not a case"),
        ({"turns_shown": {"turns": 10**30}}, "turns_shown.turns: not a case result"),
        ({"turns_shown": {"turns": 1, "seen": 1}}, "turns_shown.seen: not a case result"),
    ],
)
def test_a_line_that_contradicts_itself_is_named(
    tmp_path: Path, values: dict[str, Any], words: str
) -> None:
    lines = [result_data(RESULTS[1]), result_data(RESULTS[0]) | values]
    with pytest.raises(InputError) as refused:
        read_results(written(tmp_path / "r.jsonl", *lines))
    assert str(refused.value).startswith(f"{tmp_path / 'r.jsonl'}:2: {words}")


def test_a_run_without_a_label_has_a_verdict_and_nothing_that_is_expected(tmp_path: Path) -> None:
    spec = make_spec("k", test="agent_labels")
    result = replace(make_result(spec, "agree", score=1, **DIGESTS), outcome="unlabelled")
    result = replace(result, expected=None, verified=None)
    line = result_data(result)
    assert (line["outcome"], line["score"], line["reasoning"]) == (
        "unlabelled",
        1,
        "The order is late.",
    )
    assert line["expected"] is None
    [stored] = read_results(written(tmp_path / "r.jsonl", line)).values()
    assert stored.result == result
    with pytest.raises(InputError, match="expected must be null where outcome is unlabelled"):
        read_results(written(tmp_path / "r.jsonl", line | {"expected": 1}))


ALWAYS = {
    *("suite", "test", "rubric_id", "run_id", "epoch", "target_score", "cluster", "judge"),
    *("case_id", "outcome", "expected", "score", "scores", "reasoning", "verified", "detail"),
    *("spending", "judge_spending", "shared", "case_digest", "judge_fingerprint"),
    *("human_reviewed", "labelled_by", "content", "reasoning_disagrees"),
}


def test_the_keys_of_a_line() -> None:
    assert stored_data(make_result()).keys() == ALWAYS
    spent = Spending(1, 0, Usage(3, 4), 0.1, 0.1)
    verdicts = (Verdict(0, "Fine."), Verdict(1, "It is late."), Verdict(0, "Polite."))
    probed = make_result(
        make_spec("g", test="position", base="agent_perturbation", variant="before-x2", judge="a"),
        "disagree",
        base_scores=(1, 1, 0),
        scores=(0, 1, 0),
        minority=verdicts[1],
        verdicts=verdicts,
        reworded=True,
        altered=True,
        rejected=Rejection("c" * 64, 1, 0),
        skip_kind="not_confirmed",
        edit_note="grants the refund",
        turns_shown=ShownTurns(2, missing=(5,), unknown=1, is_whole=True),
        judge_spending=spent,
        shared=SharedCall("f" * 64, spent),
        **DIGESTS,
    )
    line = stored_data(probed, config="inputs/configs/demo.yml", kept=True)
    assert line.keys() == ALWAYS | {
        *("base", "variant", "base_scores", "minority", "verdicts", "reworded"),
        *("altered", "rejected", "skip_kind", "edit_note", "turns_shown", "config", "kept"),
    }
    assert line["spending"].keys() == SPENT
    assert line["shared"].keys() == {"fingerprint", "spending"}
    assert line["shared"]["spending"].keys() == line["judge_spending"].keys() == SPENT
    assert line["turns_shown"].keys() == {"turns", "missing", "unknown", "is_whole"}
    assert line["rejected"].keys() == {"case_digest", "expected", "said"}
    assert [*map(dict.keys, (line["minority"], *line["verdicts"]))] == [{"score", "reasoning"}] * 4


def test_a_case_that_was_judged_once_has_no_verdicts_of_repeats() -> None:
    assert all("verdicts" not in result_data(result) for result in RESULTS[:-2])


def test_two_results_of_one_case_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"r.jsonl:2: duplicate case_id '.*', first on line 1"):
        read_results(
            written(tmp_path / "r.jsonl", result_data(RESULTS[0]), result_data(RESULTS[0]))
        )


@pytest.mark.parametrize(
    "line", [b"\xff\xfe", b'{"case_id": "\xff"}', b"", b"[]", b"{", b"[" * 100_000, b"\x00"]
)
def test_bytes_that_are_no_result_are_named(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path / "r.jsonl", result_data(RESULTS[0]))
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(InputError, match=r"r.jsonl:2: .*not a case result"):
        read_results(path)


def test_a_key_that_a_line_has_twice_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", result_data(RESULTS[0]))
    path.write_bytes(path.read_bytes().replace(b'"spending": {', b'"spending": {"cost": 1, ', 1))
    with pytest.raises(InputError, match=r'r.jsonl:1: duplicate key "cost"'):
        read_results(path)


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "r.jsonl")
    with pytest.raises(InputError, match=r"r.jsonl: this is not a regular file"):
        read_results(tmp_path / "r.jsonl")


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, part in value.items():
        yield (*path, key)
        if isinstance(part, dict):
            yield from leaves(part, (*path, key))


@given(
    index=st.sampled_from([0, 3, 4]),
    path=st.sampled_from(sorted(leaves(result_data(RESULTS[3])))),
    value=st.sampled_from(
        [None, 0, 1, -1, 1.5, True, "", "x", [], {}, "agree", "disagree", "generated", 10**30]
    ),
)
@settings(max_examples=300, deadline=None)
def test_no_mutation_turns_a_wrong_verdict_into_a_right_one(
    tmp_path_factory: pytest.TempPathFactory, index: int, path: tuple[str, ...], value: object
) -> None:
    data = json.loads(json.dumps(result_data(RESULTS[index])))
    part = data
    for key in path[:-1]:
        part = part[key] if isinstance(part.get(key), dict) else part.setdefault(key, {}) or {}
    part[path[-1]] = value
    try:
        [(result, *_)] = read_results(
            written(tmp_path_factory.mktemp("r") / "r.jsonl", data)
        ).values()
    except InputError:
        return
    if result.outcome in ("agree", "disagree"):
        assert (result.outcome == "agree") == (result.score == result.expected)
        assert type(result.score) is int
    else:
        assert result.score is None
