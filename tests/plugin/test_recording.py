"""Options that say where answers come from: recorded, asked for, or supplied by the project."""

from __future__ import annotations

import re

import pytest

from pytest_jrh.config.options import OPTIONS
from pytest_jrh.plugin.options import OPTIONS_READ
from tests.plugin.recorded import Recorded
from tests.support.model_server import ModelServer
from tests.support.suites import SuiteFiles, write_suite


def positives(pytester: pytest.Pytester, runs: int = 1, **more: object) -> SuiteFiles:
    return write_suite(pytester.path, runs=runs, tests=["agent_positives"], overrides=more)


def test_no_more_calls_are_in_flight_than_allowed(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    server.delay = 0.02
    suite = positives(pytester, runs=6, admin={"evaluation_config": {"max_workers": 3}})
    result = pytester.runpytest_inprocess(suite.option, "--jrh-record-mode=once")
    result.assert_outcomes(passed=6)
    assert server.peak_in_flight == 3


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
