"""Options that say where answers come from: recorded, asked for, or supplied by the project."""

from __future__ import annotations

import re
import sys

import pytest
import yaml

from pytest_jrh.config.options import OPTIONS
from pytest_jrh.plugin.options import OPTIONS_READ
from tests.plugin.recorded import PERTURBATION, Recorded, run_pytest
from tests.support.model_server import ModelServer, Obedient, override
from tests.support.suites import SuiteFiles, write_suite
from tests.support.whole_way import played_the_whole_way

ONE = f"inputs/configs/tiny.yml::{PERTURBATION}run-1[e1]"
SUPPLIED = """
    import json

    calls = []

    def pytest_jrh_complete(config):
        from pytest_jrh.core.model import Completion

        said = {
            "planner": {"thesis": "", "steps": []},
            "summary": {
                "summary": "A question.", "user_intent": "To know.", "assistant_progress": [],
                "outstanding_items": [], "risks": [],
            },
            "verifier": {"rationale": "It is fine.", "verdict": "PASS"},
            "judge": {"reasoning": "It is fine.", "score": 0},
        }

        async def complete(stage, messages, response_model):
            calls.append(stage.stage)
            text = json.dumps(said[stage.stage])
            return Completion(text, response_model.model_validate_json(text))

        return complete

    def pytest_unconfigure(config):
        print("supplied:", sorted(calls))
"""


def cassettes(suite: SuiteFiles) -> dict[str, bytes]:
    return {
        str(path.relative_to(suite.cassettes)): path.read_bytes()
        for path in suite.cassettes.rglob("*.yaml")
    }


def positives(pytester: pytest.Pytester, runs: int = 1, **more: object) -> SuiteFiles:
    return write_suite(pytester.path, runs=runs, tests=["agent_positives"], overrides=more)


def test_nothing_is_asked_by_default(
    pytester: pytest.Pytester, recorded: Recorded, server: ModelServer
) -> None:
    before = cassettes(recorded.tiny)
    pytester.runpytest_inprocess(recorded.tiny.option)
    assert server.count() == 0
    assert cassettes(recorded.tiny) == before


def test_a_changed_judge_is_recorded_over_cases_that_stay(
    pytester: pytest.Pytester, recorded: Recorded, server: ModelServer
) -> None:
    before = cassettes(recorded.tiny)
    server.answer = override(Obedient(), judge={"score": 0, "reasoning": "Another opinion."})
    result = pytester.runpytest_inprocess(recorded.tiny.option, ONE, "--jrh-judge-record-mode=all")
    result.assert_outcomes(failed=1)
    assert server.count() == server.count("judge") == 1
    changed = [
        name for name, content in cassettes(recorded.tiny).items() if before[name] != content
    ]
    assert changed == ["agent_perturbation/rubric-1/run-1.e1.judge-default.yaml"]


def test_a_recording_is_played_the_whole_way(
    pytester: pytest.Pytester,
    recorded: Recorded,
    monkeypatch: pytest.MonkeyPatch,
    server: ModelServer,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with played_the_whole_way() as differences:
        result = pytester.runpytest_inprocess(recorded.tiny.option)
    result.assert_outcomes(passed=4, failed=1, skipped=2, errors=1)
    assert not differences
    assert server.count() == 0


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_calls_are_in_flight_than_allowed(
    pytester: pytest.Pytester, server: ModelServer, limit: int
) -> None:
    server.delay = 0.02
    suite = positives(pytester, runs=6, admin={"evaluation_config": {"max_workers": limit}})
    result = pytester.runpytest_inprocess(suite.option, "--jrh-record-mode=once")
    result.assert_outcomes(passed=6)
    assert server.peak_in_flight == limit


def test_a_projects_own_client_is_used_recorded_and_replayed_without_it(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    suite = positives(pytester)
    conftest = pytester.makeconftest(SUPPLIED)
    first = pytester.runpytest_inprocess(suite.option, "--jrh-record-mode=once")
    first.assert_outcomes(passed=1)
    first.stdout.fnmatch_lines(["supplied: ['judge', 'planner', 'summary', 'verifier']"])
    assert server.count() == 0
    assert pytester.runpytest_inprocess(suite.option).outlines[-1] == "supplied: []"
    conftest.unlink()
    pytester.runpytest_inprocess(suite.option).assert_outcomes(passed=1)
    for path in suite.cassettes.rglob("*.yaml"):
        assert yaml.safe_load(path.read_text("utf-8"))["interactions"] == []


INI = {
    "jrh_config": "inputs/configs/tiny.yml",
    "jrh_record_mode": "once",
    "jrh_judge_record_mode": "all",
    "jrh_prune": "true",
}


def test_every_option_has_an_ini_key(pytester: pytest.Pytester, server: ModelServer) -> None:
    suite = positives(pytester, runs=2)
    pytester.makeini("\n".join(["[pytest]", *(f"{key} = {value}" for key, value in INI.items())]))
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=2)
    assert (
        "jrh: suite tiny (binary), recording once, judge all, inputs/cassettes/tiny"
        in result.outlines
    )
    assert len(list(suite.cassettes.rglob("*.yaml"))) == 4


NATIVE = """
[pytest]
jrh_config = ["inputs/configs/tiny.yml"]
jrh_max_calls = 9
jrh_max_cost = 1.5
jrh_plan = true
"""


@pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="older pytest reads all keys as text")
def test_the_ini_keys_have_the_types_of_toml(pytester: pytest.Pytester, recorded: Recorded) -> None:
    pytester.makefile(".toml", pytest=NATIVE)
    session = pytester.inline_run()
    assert session.ret == pytest.ExitCode.OK
    options = session.getcalls("pytest_sessionfinish")[0].session.config.stash[OPTIONS_READ]
    assert (options.max_calls, options.max_cost, options.plan) == (9, 1.5, True)


@pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="older pytest reads all keys as text")
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("jrh_max_calls = true", "jrh_max_calls: must be an integer"),
        ("jrh_max_cost = [1]", "jrh_max_cost: must be a number"),
        ("jrh_report = 5", "jrh_report: must be names of files, as a list in TOML"),
        ('jrh_prune = "yes"', "jrh_prune: must be true or false"),
    ],
)
def test_an_ini_key_of_another_type_is_named(
    pytester: pytest.Pytester, recorded: Recorded, line: str, told: str
) -> None:
    pytester.makefile(".toml", pytest=f"[pytest]\n{line}\n")
    result = pytester.runpytest_inprocess(recorded.tiny.option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{told}*"])


def test_the_help_has_every_option_in_one_group(pytester: pytest.Pytester) -> None:
    text = pytester.runpytest_inprocess("--help").stdout.str()
    group = text.split("\njudge reliability suites:")[1].split("\n\n")[0]
    names = dict.fromkeys(re.findall(r"^  (--jrh-[a-z-]+)", group, re.MULTILINE))
    assert [*names] == [option.flag for option in OPTIONS]


def test_the_command_line_wins_over_the_ini_file(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    pytester.makeini("\n".join(["[pytest]", *(f"{key} = {value}" for key, value in INI.items())]))
    options = ["--jrh-record-mode=none", "--jrh-judge-record-mode=none"]
    result = pytester.runpytest_inprocess(recorded.scale.option, *options)
    result.assert_outcomes(passed=4)
    assert "jrh: suite scale (ordinal), recording none, inputs/cassettes/scale" in result.outlines


def test_paths_of_the_ini_file_are_found_from_a_subfolder(
    pytester: pytest.Pytester, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\njrh_config = inputs/configs/tiny.yml")
    monkeypatch.chdir(pytester.mkdir("sub"))
    result = pytester.runpytest_inprocess("-k", "agent_positives")
    result.assert_outcomes(passed=3, skipped=1, deselected=4)


def test_a_recording_warns_of_nothing_inside_of_litellm(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    """A limit in dollars has litellm imported while pytest catches warnings."""
    suite = write_suite(pytester.path, runs=1, tests=["agent_positives"])
    done = run_pytest(
        pytester.path,
        suite.option,
        "--jrh-record-mode=once",
        "--jrh-max-cost=1",
        interpreter=[sys.executable],
    )
    assert done.lines[-1].strip("= ").startswith("1 passed in"), done.stdout
