"""Options in the ini file, and on the command line."""

import re
from typing import Any

import pytest

from pytest_jrh.config.options import OPTIONS
from pytest_jrh.plugin.options import OPTIONS_READ, read_options
from tests.support.suites import SuiteFiles, write_suite

INI = {
    "jrh_config": "inputs/configs/tiny.yml",
    "jrh_record_mode": "once",
    "jrh_judge_record_mode": "new_episodes",
    "jrh_frozen": "true",
}
NATIVE = """
[pytest]
jrh_config = ["inputs/configs/tiny.yml"]
jrh_max_calls = 9
jrh_max_cost = 1.5
jrh_plan = true
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> SuiteFiles:
    return write_suite(pytester.path, runs=1, tests=["agent_positives"])


def test_options_of_the_ini_file_come_last(pytester: pytest.Pytester, suite: SuiteFiles) -> None:
    pytester.makeini("\n".join(["[pytest]", *(f"{key} = {value}" for key, value in INI.items())]))
    assert told(pytester) == ((suite.config,), "once", "new_episodes", True)
    typed = ("--jrh-config=other.yml", "--jrh-record-mode=none", "--jrh-judge-record-mode=none")
    assert told(pytester, *typed) == ((suite.folder / "other.yml",), "none", "none", True)


def told(pytester: pytest.Pytester, *arguments: str) -> tuple[Any, ...]:
    """What is read of arguments and the ini file."""
    options = read_options(pytester.parseconfig(*arguments))
    return options.configs, options.record_mode, options.judge_record_mode, options.frozen


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("jrh_update_baseline = true", "jrh_update_baseline = True: "),
        ("jrh_prune = true", "jrh_prune = True: "),
        ("jrh_record_mode = all", "jrh_record_mode = all: "),
        ("addopts = --jrh-judge-record-mode=all", "jrh_judge_record_mode = all: "),
    ],
)
def test_what_overwrites_files_is_typed(pytester: pytest.Pytester, line: str, said: str) -> None:
    pytester.makeini(f"[pytest]\n{line}\n")
    with pytest.raises(pytest.UsageError, match=f"{said}overwrites files"):
        read_options(pytester.parseconfig())


def test_a_mistyped_option_is_refused_with_the_nearest(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--jrh-own-thing')")
    assert pytester.parseconfig("--jrh-own-thing=1").getoption("--jrh-own-thing") == "1"
    for typed, meant in (("--jrh-confg=a", "config"), ("--jrh_baseline", "baseline")):
        with pytest.raises(pytest.UsageError, match=f'; "--jrh-{meant}" is the nearest'):
            pytester.parseconfig(typed)


def test_a_session_off_a_terminal_is_decided(pytester: pytest.Pytester, suite: SuiteFiles) -> None:
    done = pytester.runpytest_inprocess(suite.option, "-p", "no:terminal", "-p", "no:cacheprovider")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in done.stdout.str() + done.stderr.str()


@pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="older pytest reads all keys as text")
def test_the_ini_keys_have_the_types_of_toml(pytester: pytest.Pytester, suite: SuiteFiles) -> None:
    pytester.makefile(".toml", pytest=NATIVE)
    options = pytester.parseconfigure().stash[OPTIONS_READ]
    assert options.configs == (suite.config,)
    assert (options.max_calls, options.max_cost, options.plan) == (9, 1.5, True)


def test_the_help_has_every_option_in_one_group(pytester: pytest.Pytester) -> None:
    text = pytester.runpytest_inprocess("--help").stdout.str()
    group = text.split("\njudge reliability suites:")[1].split("\n\n")[0]
    names = dict.fromkeys(re.findall(r"^  (--jrh-[a-z-]+)", group, re.MULTILINE))
    assert [*names] == [option.flag for option in OPTIONS]
