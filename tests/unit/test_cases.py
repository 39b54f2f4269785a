import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pytest_jrh.config import suite as cases
from pytest_jrh.core import ids
from pytest_jrh.core.cases import CaseSpec, RunSummary
from pytest_jrh.recording.cassettes import cassettes_in
from tests.support.made_cases import make_spec, make_suite, suite_with

AGENTHARM = ["17-2", "17-3", "2-2", "2-3", "20-2", "21-3", "22-1", "22-4"]
AGENTHARM += ["23-2", "30-4", "33-3", "37-3", "44-2", "44-4", "49-3", "53-3"]
HOSTILE = ["", ".", "..", "../../x", "/etc/passwd", "a::b[c]", "a/b", "A/B", "%2F", "%252F", "~%2E"]
HOSTILE += ["con", "nul.txt", "com1", "x.", "x ", ".hidden", "--option", "score_1", "a.e1.judge-b"]
HOSTILE += ["e\u0301", "É", "ß", "😀", "\ud800", "\x00", "\x1b[31m", "\u202e", "\n"]
HOSTILE += ["a" * 300, "é" * 300]
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=80) | st.text("aA.~%_-e1[]:/", max_size=12)
SPECS = st.builds(
    CaseSpec,
    suite=st.just("s"),
    test=st.sampled_from(["agent_perturbation", "agent_positives"]),
    rubric_id=TEXTS,
    run_id=TEXTS,
    epoch=st.integers(1, 12),
    target_score=st.none() | st.integers(-3, 12),
    judge=st.none() | TEXTS,
)


def paths_of(spec: CaseSpec) -> list[str]:
    paths = [ids.cassette_path(Path("c"), spec, judging=judging) for judging in (False, True)]
    return [path.as_posix() for path in paths]


@pytest.mark.parametrize(
    ("number", "seed", "picked"),
    [
        (5, 87, ["17-3", "2-3", "20-2", "23-2", "37-3"]),
        (5, 8234, ["17-3", "2-2", "20-2", "22-1", "49-3"]),
        # No number, or one that is too large, means all.
        *((number, 87, AGENTHARM) for number in (None, 0, -1, 16, 17, 1000)),
    ],
)
def test_samples_are_those_of_rand(number: int | None, seed: int, picked: list[str]) -> None:
    assert cases.sample(AGENTHARM, number, seed) == picked


RUNS_100 = [RunSummary(f"run-{number}", epoch) for number in range(50) for epoch in (1, 2)]


def picked(runs: Sequence[RunSummary], number: int, seed: int = 8234) -> set[tuple[str, int]]:
    return {(run.run_id, run.epoch) for run in cases.kept_sample(runs, number, seed)}


@pytest.mark.parametrize("place", [0, 50, 100])
def test_a_kept_sample_loses_one_run_at_most_to_one_that_is_added(place: int) -> None:
    lost = []
    for number in range(300):
        grown = [*RUNS_100[:place], RunSummary(f"new-{number}", 1), *RUNS_100[place:]]
        before, after = picked(RUNS_100, 5), picked(grown, 5)
        assert len(after) == 5
        lost.append(len(before - after))
        assert after - before <= {(f"new-{number}", 1)}
    # 5 of 101 take the place of one.
    assert set(lost) == {0, 1}
    assert 4 <= sum(lost) <= 30


def test_a_kept_sample_is_part_of_a_greater_one_and_of_each_selection_with_its_runs() -> None:
    assert picked(RUNS_100, 5) < picked(RUNS_100, 6) < picked(RUNS_100, 60)
    five = [run for run in RUNS_100 if (run.run_id, run.epoch) in picked(RUNS_100, 5)]
    assert picked(five + RUNS_100[:20], 5) == picked(RUNS_100, 5)
    assert picked(RUNS_100, 5, seed=1) != picked(RUNS_100, 5, seed=2)
    drawn = cases.kept_sample(RUNS_100, 20, 8234)
    assert drawn == [run for run in RUNS_100 if run in drawn]
    assert cases.kept_sample(RUNS_100, 0, 1) == cases.kept_sample(RUNS_100, 100, 1) == RUNS_100
    # Which runs it picks never changes.
    always = {("run-20", 1), ("run-23", 1), ("run-29", 2), ("run-36", 1)}
    assert picked(RUNS_100, 4) == always


def touch(folder: Path, specs: Iterable[CaseSpec], *, judging: bool = False) -> ids.Recorded:
    """Empty cassettes of these cases, and what is recorded with them."""
    for spec in specs:
        cassette = ids.cassette_path(folder, spec, judging=judging)
        cassette.parent.mkdir(parents=True, exist_ok=True)
        cassette.touch()
    return ids.Recorded.of(folder, cassettes_in(folder))


def test_runs_that_were_recorded_are_drawn_before_others(tmp_path: Path) -> None:
    def expanded(runs: list[RunSummary], sample: int, recorded: ids.Recorded) -> list[CaseSpec]:
        suite = suite_with(make_suite(tmp_path), sample=sample, sampling="kept")
        return list(cases.expand(suite, runs, {}, recorded))

    first = expanded(RUNS_100, 5, ids.Recorded())
    assert {(spec.run_id, spec.epoch) for spec in first} == picked(RUNS_100, 5)
    recorded = touch(tmp_path, first)
    grown = [*RUNS_100, *(RunSummary(f"new.e1-{number}", 1) for number in range(200))]
    assert expanded(grown, 5, recorded) == first
    assert set(expanded(grown, 2, recorded)) < set(first) < set(expanded(grown, 8, recorded))


@pytest.mark.parametrize("run_id", ["run", "a.e1", "a.e1.e2", "Über/e7.e3", "x.score_1", ".e1"])
def test_a_recorded_run_is_known_by_the_names_of_its_cassettes(tmp_path: Path, run_id: str) -> None:
    spec = make_spec(run_id, epoch=12, judge="my.judge", target_score=2)
    recorded = touch(tmp_path, [spec], judging=True)
    assert recorded.has_run(run_id, 12)
    assert not recorded.has_run(run_id, 1)
    assert not recorded.has_run(f"{run_id}.e12", 12)


def test_names_of_an_ordinary_case() -> None:
    spec = make_spec("17-3")
    assert ids.case_name(spec) == "17-3[e1]"
    assert ids.case_id(spec) == "refunds::agent_perturbation::refund_policy::17-3[e1]"
    assert ids.artifact_stem(spec) == "agent_perturbation__17-3_e1__refund_policy"
    # The id of its row has eight hex digits that never change.
    for judge in (None, "a"):
        assert ids.perturbed_idx(make_spec("17-3", judge=judge)) == "agent_402c6ea2"
    folder = Path("c/agent_perturbation/refund_policy")
    assert ids.cassette_path(Path("c"), spec, judging=False) == folder / "17-3.e1.generation.yaml"
    assert ids.cassette_path(Path("c"), spec, judging=True) == folder / "17-3.e1.judge-default.yaml"


def test_a_corrected_label_leaves_a_case_as_it_is_its_name_and_its_recording() -> None:
    """Also one that was recorded under its label; made cases are told apart by their scores."""
    folder, wanted = Path("c"), make_spec("x.score_1", test=ids.NATURAL, target_score=4)
    labelled_anew = replace(wanted, target_score=2)
    assert ids.case_id(wanted) == ids.case_id(labelled_anew)
    assert paths_of(wanted) == paths_of(labelled_anew)
    named = "labels/refund_policy/x.score_1.e1.score_2.judge-default.yaml"
    others = (named.replace("labels", "agent_positives"), named.replace(".e1", ".e2"))
    recorded = [folder / name for name in (named, *others)]
    place = partial(ids.cassette_path, folder, judging=True)
    former = ids.former_cassettes(place, [None], lambda: recorded)
    assert former(wanted) == [folder / named]
    assert former(replace(wanted, test="agent_positives")) == []
    assert ids.case_id(replace(wanted, test="agent_positives")).endswith("[e1-score_4]")


@pytest.mark.parametrize(("test", "number"), [(ids.NATURAL, 1), ("agent_perturbation", 3)])
def test_a_run_as_it_is_has_one_recording_for_all_rubrics_together(test: str, number: int) -> None:
    place = partial(ids.cassette_path, Path("c"), judging=True, together=True)
    rubrics = ("polite", ids.TOGETHER, "how kind")
    specs = [make_spec("x", test=test, rubric_id=rubric) for rubric in rubrics]
    assert len({place(spec) for spec in specs}) == number
    # No rubric alone has that place.
    apart = {place(spec, together=False) for spec in specs}
    assert len(apart) == 3
    assert Path(f"c/{test}/{ids.TOGETHER}") not in {path.parent for path in apart}


@given(TEXTS)
@example("a::b[c]")
@example("\ud800")
@example("../../x")
@example("con")
@example("nul.txt")
@example(".hidden")
def test_a_part_holds_nothing_that_pytest_a_shell_or_a_file_system_could_misread(text: str) -> None:
    node, file = ids.node_part(text), ids.file_part(text)
    for part in (node, file):
        assert re.fullmatch(r"[\w@+=~%.-]+", part, re.ASCII)
    assert node not in (".", "..")
    assert len(node) <= 64
    assert not file.startswith(".")
    assert not file.endswith(".")
    assert not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", file)


@given(SPECS)
def test_file_names_stay_within_150_characters_in_their_folders(spec: CaseSpec) -> None:
    for path in map(Path, paths_of(spec)):
        assert len(path.parts) == 4
        assert all(len(part) < 150 for part in path.parts)
        assert ".." not in path.parts
    assert len(f"{ids.artifact_stem(spec)}_edits_audit.json") < 150


@given(SPECS, SPECS)
@example(make_spec("a", judge="b.e1.judge-c"), make_spec("a.e1.judge-b", judge="c"))
@example(make_spec("a", judge="x.e1.generation"), make_spec("a.e1.judge-x"))
@example(make_spec("a", judge="score_2"), make_spec("a", target_score=2))
@example(make_spec("a", judge="score_2-x"), make_spec("a", target_score=2, judge="x"))
@example(make_spec("a", judge="default"), make_spec("a"))
@example(make_spec("a_e1__b", rubric_id="c"), make_spec("a", rubric_id="b_e1__c"))
@example(make_spec("a", rubric_id="b__score_2"), make_spec("a", rubric_id="b", target_score=2))
@example(make_spec("Run"), make_spec("run"))
@example(make_spec("x" * 300), make_spec("x" * 301))
@example(make_spec("É"), make_spec("é"))
def test_different_cases_never_meet(one: CaseSpec, other: CaseSpec) -> None:
    assume(one != other)
    assert ids.case_id(one) != ids.case_id(other)
    generations = [path.lower() for path in (paths_of(one)[0], paths_of(other)[0])]
    same = replace(one, judge=None) == replace(other, judge=None)
    assert (generations[0] == generations[1]) is same
    assert (ids.generation_id(one) == ids.generation_id(other)) is same
    assert (ids.artifact_stem(one).lower() == ids.artifact_stem(other).lower()) is same
    assert paths_of(one)[1].lower() != paths_of(other)[1].lower()
    assert paths_of(one)[0].lower() != paths_of(other)[1].lower()
