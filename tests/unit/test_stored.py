"""Case results on disk: read back as they were, and never taken for what they are not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

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
    result_from,
    result_text,
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
        ({"score": "1"}, "score: not a case result: input should be a valid integer"),
        ({"score": True}, "score: not a case result: input should be a valid integer"),
        ({"skip_kind": "no_luck"}, "skip_kind: not a case result: input should be 'no_messages'"),
        ({"verdicts": [{"score": 0}]}, "verdicts[0].reasoning: not a case result: field required"),
        ({"epoch": "1"}, "epoch: not a case result: input should be a valid integer"),
        ({"spending": None}, "spending: not a case result:"),
    ],
)
def test_a_line_that_is_no_result_is_named(
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


def test_half_a_surrogate_pair_travels_as_it_is_stored() -> None:
    result = replace(RESULTS[0], reasoning="Look: \ud83d.")
    assert result_from(result_text(result)).reasoning == "Look: \ufffd."
