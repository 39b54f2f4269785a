"""The lines of a ledger: read back as they were, and never taken for what they are not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.calls import Spending, Usage
from pytest_jrh.core.cases import Case, Why
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.files import LineFiles
from pytest_jrh.core.ids import case_id
from pytest_jrh.core.results import CaseSpending
from pytest_jrh.store.ledger import ledger_line, ledger_path, line_data, read_ledger, result_from
from pytest_jrh.store.made_cases import RecordIndex, SuiteCases, earlier_results
from pytest_jrh.store.records import case_digest
from tests.support.made_cases import (
    DIGESTS,
    RUBRIC,
    make_case,
    make_result,
    make_spec,
    make_suite,
    result_with,
)

SPENT = CaseSpending({"a": Spending(1, 2), "b": Spending(1, 0, Usage(3, 4), 0.1, 0.1)})
THREE: dict[str, Any] = {"scores": (0, 1, 0), "reasons": ("Fine.", "It is late.", "Polite.")}
PROBED = {"test": "position", "base": "agent_perturbation", "variant": "before-x2"}
ON_A_SCALE = {"target_score": 2, "test": "agent_positives"}
RESULTS = (
    make_result(make_spec("a"), "disagree", edit="grants the refund", **DIGESTS),
    make_result(make_spec("b"), "no_case", detail="not confirmed: the verifier says PASS"),
    make_result(make_spec("h"), "no_case", why=Why("disputed_label", "1 of 2")),
    make_result(make_spec("c"), "model_error"),
    make_result(make_spec("d", judge="strict"), spending=SPENT, **DIGESTS),
    make_result(make_spec("e", **ON_A_SCALE), labelled_by="unconfirmed", **DIGESTS),
    make_result(make_spec("f"), "generated", label=1, labelled_by="made", case_digest="c" * 64),
    make_result(make_spec("g", **PROBED), "disagree", base_scores=(1, 1, 0), **DIGESTS),
    make_result(make_spec("i"), "disagree", **THREE, **DIGESTS),
    make_result(make_spec("j"), "refused", scores=(1,), reasons=("It is late.",)),
)


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return path


def test_results_are_read_back_as_they_were(tmp_path: Path) -> None:
    stored = read_ledger(written(tmp_path / "r.jsonl", *map(line_data, RESULTS))).values()
    assert [line for _, _, line in stored] == [*range(1, len(RESULTS) + 1)]
    assert tuple(result for result, _, _ in stored) == RESULTS


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"format": 1}, "format: not a case result: input should be 3"),
        ({"why": {"kind": "no_luck"}}, "why.kind: not a case result: input should be ''"),
        ({"scores": ["1"]}, "not a case result: scores and label must be on offer"),
        ({"spending": None}, "spending: not a case result:"),
    ],
)
def test_a_line_that_is_no_result_is_named(
    tmp_path: Path, values: dict[str, Any], words: str
) -> None:
    lines = [line_data(RESULTS[1]), line_data(RESULTS[0]) | values]
    with pytest.raises(InputError) as refused:
        read_ledger(written(tmp_path / "r.jsonl", *lines))
    assert str(refused.value).startswith(f"{tmp_path / 'r.jsonl'}:2: {words}")


def test_no_line_contradicts_itself() -> None:
    line = line_data(RESULTS[0])

    def read(**values: Any) -> tuple[str, int | None]:
        kept = {key: value for key, value in (line | values).items() if value is not None}
        result = result_from(json.dumps(kept))
        return result.outcome, result.score

    assert read(outcome="agree") == ("disagree", 0)
    assert read(label=0) == ("agree", 0)
    assert read(scores=[1]) == ("agree", 1)
    assert read(why={"kind": "refused"}) == ("refused", None)
    assert read(label=None) == ("unlabelled", 0)
    assert read(label=None, scores=None) == ("generated", None)


def test_of_several_results_of_a_case_the_last_counts(tmp_path: Path) -> None:
    first, last = line_data(RESULTS[0]), line_data(RESULTS[0]) | {"scores": [1]}
    [stored] = read_ledger(written(tmp_path / "r.jsonl", first, last)).values()
    assert (stored.result.score, stored.line) == (1, 2)


@pytest.mark.parametrize(
    "line", [b"\xff\xfe", b'{"case_id": "\xff"}', b"[]", b"{", b"[" * 100_000, b"\x00"]
)
def test_bytes_that_are_no_result_are_named(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path / "r.jsonl", line_data(RESULTS[0]))
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(InputError, match=r"r.jsonl:2: .*not a case result"):
        read_ledger(path)
    with pytest.raises(InputError, match="this file cannot be read"):
        read_ledger(tmp_path)


def test_what_a_killed_session_left_of_a_line_is_no_result_and_goes(tmp_path: Path) -> None:
    suite, (first, second) = make_suite(tmp_path), RESULTS[:2]
    writer, path = LineFiles(), ledger_path(suite)
    writer.add(path, ledger_line(first).encode())
    writer.close()
    path.write_bytes(path.read_bytes() + ledger_line(second).encode()[:-19])
    assert [stored.result for stored in read_ledger(path).values()] == [first]
    writer.add(path, ledger_line(second).encode())
    writer.close()
    assert [stored.result for stored in read_ledger(path).values()] == [first, second]


def test_half_a_surrogate_pair_travels_as_it_is_stored() -> None:
    result = result_with(RESULTS[0], reasoning="Look: \ud83d.")
    assert result_from(ledger_line(result)).reasoning == "Look: \ufffd."


def test_results_of_today_are_kept_and_others_left_out_with_the_reason(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    made = {run: make_case(make_spec(run)) for run in "abcde"}
    changes: dict[str, Any] = {"b": {"case_digest": "0" * 64}, "c": {"judge_digest": "before"}}
    changes["d"] = {"config": "another.yml"}
    results = []
    for run, case in made.items():
        values = {"case_digest": case_digest(case), "judge_digest": "now", "config": suite.key}
        results.append(make_result(case.spec, **values | changes.get(run, {})))
    path = ledger_path(suite)
    path.parent.mkdir(parents=True)
    written(path, *map(line_data, results))
    specs = {case_id(case.spec): case.spec for case in made.values()}
    cases = SuiteCases(specs, {None: "now"})

    class Made(RecordIndex):
        def read(self, case_id: str) -> Case | None:
            case = made[case_id.split("::")[3].split("[", maxsplit=1)[0]]
            return replace(case, rubric=replace(RUBRIC, file="", line=1))

    kept, notes = earlier_results(suite, cases, {results[4].case_id: results[4]}, Made())
    assert [(result.run_id, result.extra.kept) for result in kept.values()] == [("a", True)]
    why = "the case, the judge, or how often it judges has changed"
    assert notes == [f"2 results of earlier sessions left out of results.jsonl: {why}."]
    path.write_text("no result\n", "utf-8")
    kept, [note] = earlier_results(suite, cases, {}, Made())
    assert not kept
    assert note.startswith("The results of earlier sessions cannot be used, and were replaced.\n")
    assert "results.jsonl:1: not a case result: " in note
