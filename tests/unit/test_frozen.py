"""A frozen suite loses no case in silence. What is read of one is checked before anything is
asked."""

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_jrh.core import InputError
from pytest_jrh.core.cases import Case, Rubric
from pytest_jrh.core.redact import NO_SECRETS
from pytest_jrh.core.scales import ScoreLevel
from pytest_jrh.engine.suite import ReadySuite, make_ready
from pytest_jrh.reports.ending import write_suite_outputs
from pytest_jrh.reports.session import Session
from pytest_jrh.store.made_cases import Outputs, read_jsonl
from pytest_jrh.store.records import record_line, to_record
from tests.support.made_cases import make_case, make_result, make_spec, make_suite, suite_run
from tests.support.suites import SuiteFiles, rubric, write_suite

Record = dict[str, Any]
BOTH = ("agent_perturbation", "agent_positives")
RECORD = to_record(make_case())
FROZEN = {"cases": {"frozen": "cases.jsonl"}}


def written(path: Path, *records: Record) -> Path:
    path.write_bytes(b"\n".join(map(record_line, records)))
    return path


def set_at(*path: str | int, to: object = ..., of: Record = RECORD) -> Record:
    """A record with another value at one of its places; without one the place goes."""
    record = copy.deepcopy(of)
    part: Any = record
    for key in path[:-1]:
        part = part[key]
    if to is not ...:
        part[path[-1]] = to
    else:
        del part[path[-1]]
    return record


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (RECORD, f"case_id {RECORD['case_id']!r} is also in line 1"),
        (
            set_at("gold_messages", 0, "content", to=5),
            "gold_messages: message [0] has",
        ),
        (set_at("case_id"), "case_id: is missing, so this line is not a made case"),
        (set_at("epoch", to=True), "epoch: is not a valid integer, so this line is not a ma"),
        (set_at("format", to=2), "format: is not 1, so this line is not a made case"),
    ],
)
def test_unusable_record_is_named_with_its_line(tmp_path: Path, record: Record, words: str) -> None:
    path = written(tmp_path / "cases.jsonl", RECORD, record)
    with pytest.raises(InputError, match=re.escape(f"{path}:2: {words}")):
        read_jsonl(path)


@pytest.mark.parametrize("place", [("perturbed_messages", 3, "content"), ("metadata", "note")])
def test_half_a_surrogate_pair_is_named(suite: SuiteFiles, place: tuple[str | int, ...]) -> None:
    half = set_at(*place, to="Look: \ud83d and \U0001f600.", of=to_record(WHOLE[1]))
    whole = set_at(*place, to="\U0001f600", of=to_record(WHOLE[0]))
    with pytest.raises(InputError) as refused:
        ready(suite, whole, half)
    said = str(refused.value)
    assert "cases.jsonl:2: " in said
    said.encode()
    assert len(list(ready(suite, whole).specs())) == 1


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from paths(part, (*path, key))


@given(
    path=st.sampled_from(sorted(paths(RECORD), key=str)),
    value=st.sampled_from([None, 5, -1, 1.5, True, "", "text", [], ["x"], [{}], {}, 10**400, ...]),
)
@example(path=("case_id",), value="text")
def test_whatever_is_read_can_be_written_and_nothing_else_is_read(
    tmp_path_factory: pytest.TempPathFactory, path: tuple[str | int, ...], value: object
) -> None:
    folder = tmp_path_factory.mktemp("frozen")
    file = folder / "cases.jsonl"
    suite = make_suite(folder, frozen=file)
    file.write_text(json.dumps(set_at(*path, to=value)), "utf-8")
    spec = make_spec()
    try:
        index = read_jsonl(file)
    except InputError:
        return
    assert len(index.entries) == 1
    outputs = Outputs(NO_SECRETS)
    run = suite_run(suite, [make_result(spec)], [spec], frozen=index)
    write_suite_outputs(run, Session(()), outputs)
    assert outputs.problems == []


@pytest.fixture
def suite(tmp_path: Path) -> SuiteFiles:
    return write_suite(tmp_path, runs=1, rubrics=2, overrides=FROZEN)


def frozen_case(test: str = BOTH[0], rubric_id: str = "rubric-1", **changes: Any) -> Case:
    spec = make_spec("run-1", suite="tiny", test=test, rubric_id=rubric_id, **changes)
    case = make_case(spec)
    text = rubric(int(rubric_id[-1]))["instructions"]
    return replace(case, rubric=Rubric(rubric_id, text, case.rubric.score_levels))


def ready(suite: SuiteFiles, *cases: Case | Record) -> ReadySuite:
    records = [to_record(case) if isinstance(case, Case) else case for case in cases]
    (suite.folder / "cases.jsonl").write_text("\n".join(map(json.dumps, records)))
    return make_ready(suite.config, cwd=suite.folder, rootdir=suite.folder)


WHOLE = [frozen_case(test, rubric_id) for test in BOTH for rubric_id in ("rubric-1", "rubric-2")]


def test_cases_of_a_renamed_rubric_are_named(suite: SuiteFiles) -> None:
    path = suite.data / "rubrics.yml"
    path.write_text(path.read_text("utf-8").replace("rubric-2", "rubric-two"), "utf-8")
    said = '"rubric-2", which is not in the rubric file; the file has "rubric-1", "rubric-two"'
    with pytest.raises(InputError) as refused:
        ready(suite, *WHOLE)
    assert str(refused.value).endswith(f"cannot be used: it was made for the rubric {said}")


def test_what_the_config_leaves_out_is_no_mistake(suite: SuiteFiles) -> None:
    left = "test_agent_perturbation_config: {target_rubric_ids: [rubric-1]}\n"
    suite.config.write_text(suite.config.read_text("utf-8") + left, "utf-8")
    assert len(list(ready(suite, *WHOLE).specs())) == 2


def test_cases_of_the_other_mode_or_objective_are_named(suite: SuiteFiles) -> None:
    with pytest.raises(InputError, match="its mode is ordinal; in this suite, it must be binary"):
        ready(suite, frozen_case(target_score=1))
    with pytest.raises(InputError, match="its objective is pass; in this suite, it must be fail"):
        ready(suite, replace(WHOLE[0], objective="pass"))


@pytest.mark.parametrize(("target", "test", "scores"), [(5, BOTH[0], "0 or 1"), (1, BOTH[1], "2")])
def test_scores_off_scale_are_named(tmp_path: Path, target: int, test: str, scores: str) -> None:
    suite = write_suite(tmp_path, runs=1, mode="ordinal", overrides=FROZEN)
    levels = tuple(ScoreLevel(score, f"level {score}") for score in range(6))
    case = frozen_case(test, target_score=target)
    case = replace(case, rubric=replace(case.rubric, score_levels=levels))
    with pytest.raises(
        InputError, match=f"target_score is {target}; in this suite, it must be {scores}"
    ):
        ready(suite, case)


def test_what_the_file_has_no_case_of_is_said(suite: SuiteFiles) -> None:
    rand = {"run_id": "1", "gold_messages": RECORD["gold_messages"]}
    made = ready(suite, rand, *WHOLE[:3])
    missing, left_out = made.suite.notices
    assert missing.endswith("has no case of the test agent_positives for the rubric 'rubric-2'.")
    assert left_out.startswith("cases.jsonl: left out 1 line without `format` and `case_id`, ")


def test_a_file_of_another_suite_says_whose_it_is(suite: SuiteFiles) -> None:
    with pytest.raises(InputError, match=r"'tiny'\n .* cases are of the suite 'ref"):
        ready(suite, make_case())
