import json
import os
import subprocess
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core import InputError, visible
from pytest_jrh.core.calls import Spending, StageModel, Usage
from pytest_jrh.core.cases import Case, CaseSpec, PerturbationOutcome, Skip, Verification, Why
from pytest_jrh.core.files import LineFile, LineFiles
from pytest_jrh.core.ids import case_id, generation_id
from pytest_jrh.core.redact import NO_SECRETS, Redactor
from pytest_jrh.core.results import CaseSpending
from pytest_jrh.engine.provenance import day_of, header_line, origin_lines
from pytest_jrh.engine.suite import ReadySuite
from pytest_jrh.judges.judge import PromptJudge
from pytest_jrh.llm.calls import parse_prompt
from pytest_jrh.store.ledger import ledger_line, ledger_path, line_data, read_ledger, result_from
from pytest_jrh.store.made_cases import (
    Handover,
    RecordIndex,
    SuiteCases,
    case_of,
    earlier_results,
    merge,
    read_jsonl,
    read_spools,
    write_jsonl,
)
from pytest_jrh.store.records import case_digest, record_line, stored_line, to_record, under
from tests.support.conversations import judge_settings
from tests.support.judged_sessions import HOSTILE
from tests.support.made_cases import (
    DIGESTS,
    LEVELS,
    MESSAGES,
    RUBRIC,
    case_from,
    make_case,
    make_result,
    make_spec,
    make_suite,
    result_with,
    suite_run,
)
from tests.support.sessions import ANY_JSON


def assemble_jsonl(
    target: Path, spools: Iterable[Path], selected: Iterable[CaseSpec], *gone: CaseSpec, **how: Any
) -> RecordIndex:
    """Merge spooled cases into a JSONL file, as the end of a session does."""
    existing, made = read_jsonl(target), read_spools(spools, names_of(selected)).made
    how = {"overwrite": True, **how}
    return write_jsonl(target, merge(existing, made, dropped=names_of(gone), **how))


def names_of(specs: Iterable[CaseSpec]) -> frozenset[str]:
    return frozenset(map(generation_id, specs))


RAND_KEYS = """run_id epoch input target metadata gold_messages perturbed_messages target_rubric
perturbation"""
RAND_METADATA = "lang run_id target_rubric_id perturbed_idx agent_mode no_edits_required"
RAND_PERTURBATION = "failure_confirmed failure_rationale final_summary plan steps"
RAND_STEP_KEYS = """message_index message_id selector_reason editor_reason editor_raw_response
summary_snapshot round_index original_content edited_content"""
TEXT = st.text(max_size=30)
JSON = ANY_JSON | st.floats(allow_nan=False, allow_infinity=False)


def ids(path: Path) -> list[str]:
    return [json.loads(line).get("case_id", "foreign") for line in path.read_bytes().splitlines()]


def spooled(folder: Path, *cases: Any) -> list[Path]:
    spool = LineFile(folder / ".spool" / uuid4().hex)
    for case in cases:
        spool.add(stored_line(case, NO_SECRETS))
    spool.close()
    return [spool.path]


def test_record_has_rands_keys() -> None:
    record = to_record(make_case())
    made = record["perturbation"]
    assert record.keys() >= set(RAND_KEYS.split())
    assert record["metadata"].keys() == set(RAND_METADATA.split())
    assert made.keys() >= set(RAND_PERTURBATION.split())
    assert made["steps"][0].keys() >= set(RAND_STEP_KEYS.split())
    assert record["target_rubric"] == {"id": RUBRIC.id, "instructions": RUBRIC.instructions}
    step = {"goal": "grant the refund", "rationale": "the decision is here"}
    assert made["plan"]["steps"][0] == {"message_index": 3, "message_id": "m3", **step}
    assert made["failure_confirmed"] is True
    ordinal = to_record(make_case(make_spec(target_score=2)))["metadata"]
    assert (ordinal["target_score"], ordinal["score_descriptor"]) == (2, "follows it")
    assert "agent_mode" not in ordinal


def rejected(case: Case) -> Case:
    said = Verification("PASS", "All well.", None)
    no_case = Skip("not_confirmed", "not confirmed: All well.")
    outcome = replace(case.outcome, verification=said, confirmed=False, no_case=no_case)
    return replace(case, outcome=outcome, verified=False)


def test_a_rejected_case_is_told_from_made_ones_and_comes_back_as_it_was(tmp_path: Path) -> None:
    case, made = rejected(make_case()), make_case(make_spec("run-2"))
    record = to_record(case)
    assert record["rejected"] == "not confirmed: All well."
    assert "rejected" not in to_record(made)
    restored = case_from(record_line(record))
    assert restored.outcome == case.outcome
    assert case_digest(restored) == record["case_digest"] == case_digest(make_case())
    found = read_spools(spooled(tmp_path, made, case), names_of([made.spec, case.spec]))
    assert list(found.made.entries) == [generation_id(made.spec)]
    assert list(found.rejected.entries) == [generation_id(case.spec)]


@given(
    st.builds(dict, st.dictionaries(TEXT, JSON, max_size=3), content=TEXT),
    st.dictionaries(st.sampled_from(["lang", "run_id", "agent_mode"]) | TEXT, JSON, max_size=4),
    st.builds(
        make_spec,
        TEXT.filter(bool),
        epoch=st.integers(1, 9),
        target_score=st.sampled_from([None, 0, 2]),
    ),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=60)
def test_case_survives_its_record(
    last: dict[str, Any], metadata: dict[str, Any], spec: CaseSpec, edited: bool, confirmed: bool
) -> None:
    messages = (*MESSAGES, {**last, "role": "assistant", "id": "m4"})
    case = make_case(spec, messages=messages, metadata=metadata, edited=edited)
    case = replace(case, verified=confirmed, outcome=replace(case.outcome, confirmed=confirmed))
    line = record_line(to_record(case))
    restored = under(case_from(line), case.rubric)
    assert restored == case
    assert to_record(restored) == json.loads(line)


def test_digest_covers_what_the_judge_is_asked_and_the_answer() -> None:
    case = make_case()
    others = [
        replace(case, rubric=replace(RUBRIC, instructions="other")),
        replace(case, rubric=replace(RUBRIC, id="other")),
        replace(case, outcome=PerturbationOutcome(MESSAGES)),
        replace(case, expected=0),
        replace(case, rubric=replace(RUBRIC, score_levels=LEVELS)),
    ]
    assert len({case_digest(other) for other in [case, *others]}) == 6
    moved = replace(case, rubric=replace(RUBRIC, file="elsewhere", line=99))
    assert case_digest(moved) == case_digest(rejected(case)) == case_digest(case)


def test_a_case_is_taken_under_another_text_and_under_no_other_scale(tmp_path: Path) -> None:
    spec = make_spec(target_score=2)
    path = tmp_path / "cases.jsonl"
    path.write_bytes(record_line(to_record(make_case(spec))))
    index = read_jsonl(path)
    text = replace(RUBRIC, instructions="Be curt.", score_levels=LEVELS)
    taken = case_of(index, spec, text, rewording=True)
    assert taken is not None
    assert (taken.reworded, taken.rubric.instructions) == (True, "Be curt.")
    scale = replace(text, score_levels=LEVELS[:2])
    for rubric, rewording in ((scale, True), (text, False)):
        with pytest.raises(InputError, match="the instructions of the rubric"):
            case_of(index, spec, rubric, rewording=rewording)


def test_hostile_text_stays_one_line_of_valid_utf8() -> None:
    text = "\u2028\x85\x00\x1b[31m\ud800 \ud83d\ude00 \n\r"
    line = record_line(to_record(make_case(new_text=text)))
    assert len(line.decode().splitlines()) == 1
    said = json.loads(line)["perturbed_messages"][-1]["content"]
    assert said == "\u2028\x85\x00\x1b[31m\ufffd \U0001f600 \n\r"


def test_spooled_case_is_on_disk_at_once_and_free_of_secrets(tmp_path: Path) -> None:
    secret = 'sk-"quoted"-0123456789'
    spool = LineFile(tmp_path / "deep" / "spool")
    assert not spool.path.exists()
    spool.add(stored_line(make_case(new_text=f"the key is {secret}"), Redactor((secret,))))
    text = spool.path.read_text("utf-8")
    spool.close()
    assert "the key is [REDACTED]" in text
    assert "0123456789" not in text


def test_failed_write_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = LineFile(tmp_path / "spool")
    a, b, c = (stored_line(make_case(make_spec(run)), NO_SECRETS) for run in "abc")
    spool.add(a)

    whole: Any = spool._file
    left = [10, 0]

    def write(data: Any) -> int:
        if not left[0]:
            raise OSError(28, "No space left on device")
        return int(whole.write(data[: left.pop(0)]))

    full = SimpleNamespace(write=write, truncate=whole.truncate, tell=whole.tell, seek=whole.seek)
    monkeypatch.setattr(spool, "_file", full)
    with pytest.raises(OSError, match="No space"):
        spool.add(b)
    monkeypatch.setattr(spool, "_file", whole)
    spool.add(c)
    spool.close()
    index = assemble_jsonl(tmp_path / "out.jsonl", [spool.path], map(make_spec, "abc"))
    assert index.entries.keys() == names_of(map(make_spec, "ac"))
    # What a killed process left of a last line is skipped.
    spool.path.write_bytes(spool.path.read_bytes()[:-40])
    index = assemble_jsonl(tmp_path / "torn.jsonl", [spool.path], map(make_spec, "abc"))
    assert index.entries.keys() == names_of([make_spec("a")])


def test_overwrite_replaces_selected_cases_and_drops_those_that_are_none(tmp_path: Path) -> None:
    target, specs = tmp_path / "out.jsonl", {run: make_spec(run) for run in "abcd"}
    names = {run: generation_id(spec) for run, spec in specs.items()}
    assemble_jsonl(target, spooled(tmp_path, *map(make_case, specs.values())), specs.values())
    new = [make_case(specs[run], new_text="new") for run in "ad"]
    selected = [specs[run] for run in "abc"]
    index = assemble_jsonl(target, spooled(tmp_path, *new), selected, specs["b"])
    assert ids(target) == [names["a"], names["c"], names["d"]]
    cases = {run: index.read(name) for run, name in names.items()}
    texts = {run: case.messages[-1]["content"] for run, case in cases.items() if case}
    old = make_case().messages[-1]["content"]
    assert texts == {"a": "new", "c": old, "d": old}


def test_without_overwrite_existing_cases_stay_and_missing_are_added(tmp_path: Path) -> None:
    target, a, b = tmp_path / "out.jsonl", make_spec("a"), make_spec("b")
    assemble_jsonl(target, spooled(tmp_path, make_case(a)), [a, b])
    kept = target.read_bytes()
    again = spooled(tmp_path, make_case(a, new_text="new"), make_case(b))
    assemble_jsonl(target, again, [a, b], a, overwrite=False)
    assert target.read_bytes().startswith(kept)
    assert ids(target) == sorted(names_of([a, b]))


def test_other_suites_and_rands_own_lines_stay_byte_for_byte(tmp_path: Path) -> None:
    target, other = tmp_path / "out.jsonl", make_spec("a", suite="other")
    foreign = b'{"run_id": "17-2",  "epoch": 1, "target_rubric": {"id": "x"}}'
    assemble_jsonl(target, spooled(tmp_path, make_case(other)), [other])
    theirs = target.read_bytes()
    target.write_bytes(b"\xef\xbb\xbf" + foreign + b"\r\n\n" + theirs.rstrip(b"\n"))
    mine = make_spec("a")
    assemble_jsonl(target, spooled(tmp_path, make_case(mine)), [mine])
    lines = target.read_bytes().split(b"\n")
    assert lines[0] == foreign
    assert theirs.rstrip(b"\n") in lines
    assert ids(target) == ["foreign", generation_id(other), generation_id(mine)]


@pytest.mark.parametrize("broken", [b'{"case_id": "x"', b"[1, 2]", b"\xff\xfe", b"[" * 100_000])
def test_broken_line_is_an_error_and_nothing_is_overwritten(tmp_path: Path, broken: bytes) -> None:
    target, before = tmp_path / "out.jsonl", b'{"run_id": "1"}\n' + broken + b"\n"
    target.write_bytes(before)
    with pytest.raises(InputError, match=r"out\.jsonl:2: "):
        assemble_jsonl(target, spooled(tmp_path, make_case()), [make_spec()])
    assert target.read_bytes() == before


def test_the_spools_of_other_sessions_are_left_alone_for_a_day(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    sessions = [Handover(letter * 16, Redactor()) for letter in "abc"]
    for session in sessions:
        session.keep(make_case(), suite)
        session.close()
    own, live, killed = (session.folder(suite) for session in sessions)
    yesterday = time.time() - 25 * 60 * 60
    os.utime(killed, (yesterday, yesterday))
    assert (own.exists(), live.exists(), killed.exists()) == (True, True, True)
    sessions[0].clear([suite])
    assert (own.exists(), live.exists(), killed.exists()) == (False, True, False)


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
    # Half a surrogate pair travels as it is stored, and of several results the last counts.
    half = result_from(ledger_line(result_with(RESULTS[0], reasoning="Look: \ud83d.")))
    assert half.reasoning == "Look: \ufffd."
    first, last = line_data(RESULTS[0]), line_data(RESULTS[0]) | {"scores": [1]}
    [only] = read_ledger(written(tmp_path / "r.jsonl", first, last)).values()
    assert (only.result.score, only.line) == (1, 2)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"format": 1}, "format: is not 3, so this line is not the result of a case"),
        ({"why": {"kind": "no_luck"}}, "why.kind: is not '', 'no_case'"),
        ({"scores": ["1"]}, "a score or the label is not an answer of this case, so this line"),
        ({"spending": None}, "spending: is not "),
    ],
)
def test_a_line_of_no_result_is_named(tmp_path: Path, values: dict[str, Any], words: str) -> None:
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


@pytest.mark.parametrize(
    "line", [b"\xff\xfe", b'{"case_id": "\xff"}', b"[]", b"{", b"[" * 100_000, b"\x00"]
)
def test_bytes_that_are_no_result_are_named(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path / "r.jsonl", line_data(RESULTS[0]))
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(InputError, match=r"r.jsonl:2: .*this line is not the result of a case"):
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
    why = "the case, the judge or the number of repeats has changed"
    assert notes == [f"results.jsonl leaves out 2 results of earlier sessions, because {why}."]
    path.write_text("no result\n", "utf-8")
    kept, [note] = earlier_results(suite, cases, {}, Made())
    assert not kept
    assert note.startswith("The results of earlier sessions were replaced, because they cannot be")
    assert "so this line is not the result of a case" in note


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.invalid", "-c", "commit.gpgsign=false"]
    return subprocess.check_output(["git", *who, *arguments], cwd=folder, text=True).strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    folder = tmp_path / "cassettes"
    folder.mkdir()
    (folder / "a.yaml").write_text("a", encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "Record", "--date=2020-01-02T03:04:05Z")
    return tmp_path


def test_hostile_names_stay_one_line(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    stages = {name: replace(stage, model=HOSTILE) for name, stage in suite.stages.items()}
    settings = judge_settings(StageModel("judge", HOSTILE, prompt_path=HOSTILE * 20))
    judge = PromptJudge(settings, parse_prompt("{{ rubric }}{{ transcript }}", "p", stage="judge"))
    suite = replace(suite, name=HOSTILE, stages=stages)
    ready = ReadySuite(suite, None, {}, {HOSTILE: judge}, (), {})
    run = suite_run(ready.suite, (), (), origin={HOSTILE: HOSTILE * 20})
    lines = [*origin_lines((run, run), tmp_path)]
    assert len(lines) == 4
    for line in (header_line(ready, tmp_path, NO_SECRETS), *lines):
        assert visible(line) == line
        assert "\n" not in line


def test_the_commit_is_that_of_the_repository(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = git(repository, "rev-parse", "HEAD")
    assert next(origin_lines((), repository / "cassettes")).endswith(f" UTC, commit {whole[:12]}")
    assert next(origin_lines((), tmp_path_factory.mktemp("plain"))).endswith(" UTC")
    monkeypatch.setenv("PATH", "")
    assert next(origin_lines((), repository)).endswith(" UTC")


def test_the_day_of_recordings_is_that_of_their_last_commit(repository: Path) -> None:
    day = day_of(repository / "cassettes")
    assert day == git(repository, "log", "-1", "--format=%cs")
    git(repository, "clone", "-q", "--depth=1", repository.as_uri(), str(repository / "clone"))
    assert day_of(repository / "clone/cassettes") == ""
