"""`python -m pytest_jrh mutate` against a loopback model that heeds some sentences of its prompt
and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.__main__ import main
from tests.support.model_server import ModelServer, Obedient, override
from tests.support.suites import SuiteFiles, write_suite

if TYPE_CHECKING:
    from tests.support.exchange import Request

PROMPT = """You judge runs of an agent.
The closing words decide.
Answer 1 if the rule is broken, else 0.
---user---
Rule: {{ rubric }}
{{ transcript }}
Please be brief and kind.
"""


def heedful(request: Request) -> dict[str, Any]:
    """A judge that errs without its rule for closing words or its rubric, on violations alone."""
    answer = Obedient()(request)
    assert isinstance(answer, dict)
    text = request.text
    heeds = "The closing words decide." in text and "answers kindly" in text
    score = answer["score"] if heeds else 0
    if "Answer 0 if the rule is broken" in text:
        score = 1 - score
    return {**answer, "score": score}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SuiteFiles:
    folder = tmp_path / "suite"
    judge = {"judge": {"prompt_path": "judge.md"}}
    made = write_suite(folder, runs=3, overrides=judge)
    (folder / "judge.md").write_text(PROMPT)
    monkeypatch.chdir(folder)
    return made


@pytest.fixture
def model(server: ModelServer) -> ModelServer:
    server.answer = override(Obedient(), judge=heedful)
    return server


def mutate(suite: SuiteFiles, *options: str) -> int:
    return main(["mutate", suite.option, *options])


def fates(suite: SuiteFiles) -> dict[tuple[str, str], str]:
    data = json.loads((suite.results / "mutants.json").read_text())
    [judge] = data["judges"]
    return {(each["operator"], each["before"]): each["fate"] for each in judge["mutants"]}


def record(suite: SuiteFiles) -> None:
    code = pytest.main(
        ["-q", "-p", "no:cacheprovider", suite.option, "--jrh-record-mode=new_episodes"]
    )
    assert code == pytest.ExitCode.OK


def test_a_change_is_noticed_exactly_where_the_judge_heeds_it(
    suite: SuiteFiles, model: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    record(suite)
    capsys.readouterr()
    assert mutate(suite) == 0
    said = capsys.readouterr().out
    killed = {key for key, fate in fates(suite).items() if fate == "killed"}
    assert killed == {
        ("delete_sentence", "The closing words decide."),
        ("swap_scale", "0 and 1, wherever they are written"),
        ("drop_rubric", "the rubric"),
        ("cut_transcript", "the second half of the transcript"),
    }
    assert set(fates(suite).values()) == {"killed", "unchanged"}
    assert "Nothing in the suite notices these changes:" in said
    assert "prompt:7 delete_sentence: all answers are the same, word for word" in said
    assert "    - Please be brief and kind." in said


def test_nothing_is_paid_twice(
    suite: SuiteFiles, model: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    record(suite)
    before = model.count("judge")
    assert mutate(suite) == 0
    asked = model.count("judge") - before
    # Six cases; a mutant that is killed is asked about no further case.
    assert 0 < asked <= 6 * len(fates(suite))
    first = (suite.results / "mutants.json").read_bytes()
    capsys.readouterr()
    assert mutate(suite, "--jrh-record-mode=none") == 0
    assert model.count("judge") - before == asked
    assert (suite.results / "mutants.json").read_bytes() == first
    assert "0 calls made" in capsys.readouterr().out


def test_cases_are_drawn_until_enough_are_judged_right(
    suite: SuiteFiles, model: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    model.answer = override(Obedient(), judge=lambda _request: {"score": 0, "reasoning": "?"})
    pytest.main(["-q", "-p", "no:cacheprovider", suite.option, "--jrh-record-mode=new_episodes"])
    capsys.readouterr()
    mutate(suite, "--cases=3")
    assert "mutants on 3 cases that it judges right" in capsys.readouterr().out


def test_without_an_answer_a_mutant_is_neither_killed_nor_survives(
    suite: SuiteFiles, model: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    record(suite)
    assert mutate(suite, "--jrh-record-mode=none") == 1
    assert set(fates(suite).values()) == {"no_answer"}
    assert "without an answer: unrecorded" in capsys.readouterr().out
    before = model.count("judge")
    assert mutate(suite, "--max-calls=3") == 1
    assert model.count("judge") - before == 3
    assert "without an answer: over_budget" in capsys.readouterr().out


def test_an_answer_that_cannot_be_used_is_noticed(suite: SuiteFiles, model: ModelServer) -> None:
    record(suite)
    model.answer = override(Obedient(), judge=lambda _request: {"score": 7, "reasoning": "?"})
    assert mutate(suite, "--cases=1") == 0
    assert set(fates(suite).values()) == {"killed"}


def test_a_judge_that_is_never_right_has_no_mutants(
    suite: SuiteFiles, model: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mutate(suite, "--jrh-record-mode=none") == 4
    assert "record the suite first: pytest --jrh-config=" in capsys.readouterr().err
    assert model.requests == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--cases=0"], "--cases=0: must be a number >= 1"),
        (["--max-cost=nan"], "--max-cost=nan: must be a number >= 0"),
        (["--judge=other"], '--judge: got "other"; the suite has one judge, without a name'),
    ],
)
def test_mistakes_are_named(
    suite: SuiteFiles, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert mutate(suite, *options) == 4
    assert said in capsys.readouterr().err


def test_an_output_folder_that_cannot_be_is_named_before_anything_is_asked(
    suite: SuiteFiles, model: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("outputs").write_text("a file")
    assert mutate(suite, "--jrh-record-mode=new_episodes") == 4
    said = capsys.readouterr().err
    assert "mutants.json cannot be written into outputs/tiny: Not a directory" in said
    assert model.requests == []


def test_an_interrupted_run_is_continued_where_it_was(
    suite: SuiteFiles,
    model: ModelServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record(suite)
    before = model.count("judge")

    def interrupted(*_given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        # After the first round, as a user's Ctrl+C between two answers.
        patch.setattr("pytest_jrh.cli.mutants._lives", interrupted)
        assert mutate(suite) == 2
    assert "interrupted; what is recorded is not asked again" in capsys.readouterr().err
    assert not (suite.results / "mutants.json").exists()
    asked = model.count("judge") - before
    assert asked > 0
    assert mutate(suite) == 0
    shown = re.search(r"(\d+) calls made", capsys.readouterr().out)
    assert shown is not None
    assert int(shown[1]) == model.count("judge") - before - asked


def test_a_frozen_ordinal_panel_is_held_against_its_cases(
    tmp_path: Path,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    judges = [
        {"name": "first", "model": "openai/gpt-4.1-mini"},
        {"name": "second", "model": "openai/gpt-4.1-nano"},
    ]
    panel = write_suite(
        tmp_path / "panel",
        runs=2,
        mode="ordinal",
        tests=["agent_perturbation"],
        overrides={"admin": {"evaluation_config": {"judges": judges}}},
    )
    monkeypatch.chdir(panel.folder)
    record(panel)
    capsys.readouterr()
    assert mutate(panel, "--jrh-frozen", "--judge=second", "--cases=2") == 0
    data = json.loads((panel.results / "mutants.json").read_text())
    assert [each["judge"] for each in data["judges"]] == ["second"]
    operators = {each["operator"]: each["fate"] for each in data["judges"][0]["mutants"]}
    assert operators["swap_scale"] in ("unchanged", "survived")
    assert operators["cut_transcript"] == "killed"
