"""Bad input ends in exit code 4 with every problem and no traceback.

A discovered suite in a collection error.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.model import Rubric
from pytest_jrh.store.records import record_line, to_record
from tests.plugin.recorded import Recorded, run_pytest
from tests.support.made_cases import make_case, make_spec
from tests.support.suites import SuiteFiles


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def append_to(path: Path, text: str) -> None:
    path.write_text(path.read_text("utf-8") + text, encoding="utf-8")


def misspell(suite: SuiteFiles) -> None:
    replace_in(suite.config, "tests_to_run", "test_to_run")


def leave_a_gap(suite: SuiteFiles) -> None:
    replace_in(suite.data / "rubrics.yml", "score: 1", "score: 7")


def truncate_the_log(suite: SuiteFiles) -> None:
    log = suite.data / "runs.eval"
    log.write_bytes(log.read_bytes()[:300])


def empty_the_log(suite: SuiteFiles) -> None:
    (suite.data / "runs.eval").write_bytes(b"")


def lose_the_log(suite: SuiteFiles) -> None:
    (suite.data / "runs.eval").unlink()


def lose_the_rubrics(suite: SuiteFiles) -> None:
    (suite.data / "rubrics.yml").unlink()


def name_an_unknown_test(suite: SuiteFiles) -> None:
    replace_in(suite.config, "- agent_positives", "- agent_positive")


def break_a_template(suite: SuiteFiles) -> None:
    template = (
        suite.folder / "inputs/custom_prompts" / suite.module / "agent_perturbation" / "editor.md"
    )
    template.parent.mkdir(parents=True)
    template.write_text(
        "{{ original_message }} {{ rubric }} {{ ordinal_guidance }} {{ ruberic }}", encoding="utf-8"
    )


def name_an_unknown_preprocessor(suite: SuiteFiles) -> None:
    append_to(
        suite.config,
        "test_agent_perturbation_config: {transcript_preprocessor: [drop_tool_mesages]}\n",
    )


def freeze_cases_of_a_renamed_rubric(suite: SuiteFiles) -> None:
    spec = make_spec(suite="scale", rubric_id="rubric-old", target_score=1)
    case = replace(make_case(spec), rubric=Rubric("rubric-old", "Be kind."))
    (suite.folder / "cases.jsonl").write_bytes(record_line(to_record(case)))
    append_to(suite.config, "replay: {frozen: cases.jsonl}\n")


MISTAKES: list[tuple[Callable[[SuiteFiles], None], list[str]]] = [
    (misspell, ["*scale.yml:*test_to_run*", "*tests_to_run*"]),
    (leave_a_gap, ["*rubrics.yml:*score*"]),
    (truncate_the_log, ["inputs/data/scale/runs.eval: * truncated or damaged .eval*"]),
    (empty_the_log, ["inputs/data/scale/runs.eval: *"]),
    (lose_the_log, ["*scale.yml:*runs.eval*does not exist*"]),
    (lose_the_rubrics, ["*scale.yml:*rubrics.yml*does not exist*"]),
    (name_an_unknown_test, ["*scale.yml:*agent_positive*", "*agent_positives*"]),
    (break_a_template, ["inputs/custom_prompts/scale/agent_perturbation/editor.md:1: *ruberic*"]),
    (
        name_an_unknown_preprocessor,
        ["inputs/configs/scale.yml:*: *drop_tool_mesages*", "*drop_tool_messages*"],
    ),
    (
        freeze_cases_of_a_renamed_rubric,
        ['cases.jsonl:1: this case cannot be used: made for the rubric "rubric-old",*'],
    ),
]


@pytest.mark.parametrize(("make", "told"), MISTAKES, ids=[make.__name__ for make, _ in MISTAKES])
def test_a_mistake_in_a_named_suite_is_a_usage_error(
    pytester: pytest.Pytester,
    recorded: Recorded,
    make: Callable[[SuiteFiles], None],
    told: list[str],
) -> None:
    make(recorded.scale)
    result = pytester.runpytest_inprocess(recorded.scale.option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: the suite cannot be used, a problem:", *told])
    for stream in (result.stdout, result.stderr):
        stream.no_fnmatch_line("*Traceback*")
        stream.no_fnmatch_line("*INTERNALERROR*")


def test_every_problem_of_every_suite_is_told_at_once(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    for make in (break_a_template, name_an_unknown_preprocessor, truncate_the_log):
        make(recorded.scale)
    misspell(recorded.tiny)
    options = [recorded.scale.option, recorded.tiny.option, "--jrh-config=nowhere.yml"]
    result = pytester.runpytest_inprocess(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stderr.str()
    for told in (
        "editor.md",
        "drop_tool_mesages",
        "scale/runs.eval",
        "tiny.yml:",
        "test_to_run",
        "nowhere.yml",
    ):
        assert told in text
    assert "the suite cannot be used, 5 problems:" in text


def test_a_mistake_is_a_usage_error_under_xdist_too(
    recorded_once: Recorded, tmp_path: Path
) -> None:
    suite = recorded_once.copied(tmp_path).scale
    leave_a_gap(suite)
    done = run_pytest(tmp_path, suite.option, "-n", "2")
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "rubrics.yml:" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["orders.jrh.yml", "tiny.yml"])
def test_a_mistake_in_a_suite_that_is_not_named_is_a_collection_error(
    pytester: pytest.Pytester, recorded: Recorded, name: str
) -> None:
    misspell(recorded.tiny)
    shutil.copy(recorded.tiny.config, name)
    result = pytester.runpytest_inprocess(name)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        [f"*ERROR collecting {name}*", f"{name}:*test_to_run*", f"ERROR {name}*"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*collect.py*")


@pytest.mark.parametrize("content", ["", "admn: {}\n", "- 1\n", "\x00", "a: [\n"])
def test_a_file_that_calls_itself_a_suite_and_is_none_is_not_passed_over(
    pytester: pytest.Pytester, content: str
) -> None:
    Path("orders.jrh.yml").write_text(content, encoding="utf-8")
    pytester.makepyfile(test_ordinary="def test_ordinary(): pass")
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*ERROR collecting orders.jrh.yml*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_nothing_is_asked_after_an_error_of_collection(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    pytester.makepyfile(test_broken="import no_such_module")
    pytester.makeconftest(
        """
        def pytest_jrh_complete(config):
            async def complete(stage, messages, response_model):
                raise SystemExit("a model was asked")
            return complete
        """
    )
    result = pytester.runpytest_inprocess(
        recorded.tiny.option, "test_broken.py", "--jrh-record-mode=all"
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.no_fnmatch_line("*judge reliability*")
    assert not (pytester.path / "outputs").exists()
    before = sorted(recorded.tiny.cassettes.rglob("*.yaml"))
    assert len(before) == 11


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--jrh-record-mode=sometimes"], "*--jrh-record-mode: invalid choice: 'sometimes'*"),
        (["--jrh-max-calls=many"], "*--jrh-max-calls: invalid int value: 'many'*"),
        (["--jrh-max-cost=nan"], "*--jrh-max-cost=nan: must be a number >= 0*"),
        (["--jrh-max-cost=inf"], "*--jrh-max-cost=inf: must be a number >= 0*"),
        (["-o", "jrh_max_cost=nan"], "*jrh_max_cost = nan: must be a number >= 0*"),
        (["--jrh-max-calls=-1"], "*--jrh-max-calls=-1: must be a number >= 0*"),
        (["--jrh-report=."], "*--jrh-report=/*: this is a folder; name a file in it*"),
        (
            ["--jrh-report=r.html", "--jrh-report=r.pdf"],
            "*--jrh-report=r.pdf: must be FILE.html, FILE.md or FILE.json (none: no page)*",
        ),
        (
            ["-o", "jrh_record_mode=new_episode"],
            "*jrh_record_mode = new_episode: *did you mean new_episodes?*",
        ),
        (["-o", "jrh_max_calls=many"], "*jrh_max_calls: must be an integer*many*"),
        (["-o", "jrh_prune=perhaps"], "*jrh_prune: must be true or false*perhaps*"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("distributed", [[], ["-n2"]], ids=["alone", "-n 2"])
def test_a_bad_option_is_a_usage_error(
    pytester: pytest.Pytester,
    recorded: Recorded,
    arguments: list[str],
    told: str,
    distributed: list[str],
) -> None:
    result = pytester.runpytest_inprocess(recorded.tiny.option, *arguments, *distributed)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([told])
    result.stderr.no_fnmatch_line("*Traceback*")


def test_a_bad_ini_value_is_told_where_only_discovered_suites_are_in_play(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    shutil.copy(recorded.tiny.config, "orders.jrh.yml")
    pytester.makeini("[pytest]\njrh_record_mode = never")
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: jrh_record_mode = never: must be one of none, once, new_episodes, all"]
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--jrh-plan"], "--jrh-plan needs"),
        (["--jrh-record-mode=once"], "--jrh-record-mode needs"),
        (
            ["--jrh-judge-record-mode", "all", "--jrh-max-cost=5"],
            "--jrh-judge-record-mode, --jrh-max-cost need",
        ),
    ],
)
@pytest.mark.parametrize("distributed", [[], ["-n1"]], ids=["alone", "-n 1"])
def test_options_that_need_a_suite_are_refused_without_one(
    pytester: pytest.Pytester,
    recorded: Recorded,
    options: list[str],
    named: str,
    distributed: list[str],
) -> None:
    pytester.makepyfile(test_ordinary="def test_ordinary(): pass")
    result = pytester.runpytest_inprocess(*options, *distributed)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.assert_outcomes()
    result.stderr.fnmatch_lines(
        [
            f"ERROR: {named} a suite, and none was collected. Name its config with "
            "--jrh-config=FILE.",
        ]
    )


def test_options_of_a_project_may_be_there_without_a_suite(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naddopts = --jrh-record-mode=none\njrh_max_calls = 5")
    pytester.makepyfile(test_ordinary="def test_ordinary(): pass")
    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.OK


def test_a_mistyped_path_is_told_before_the_missing_suite(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("nowhere.yml", "--jrh-plan")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: file or directory not found: nowhere.yml"])


@pytest.mark.parametrize("log", ["s3://bucket/runs.eval", "scout://runs"])
def test_a_log_that_is_named_by_its_url_is_said_to_be_out_of_reach(
    pytester: pytest.Pytester, recorded: Recorded, log: str
) -> None:
    append_to(
        recorded.tiny.config, f"test_agent_perturbation_config: {{input_log_path: '{log}'}}\n"
    )
    result = pytester.runpytest_inprocess(recorded.tiny.option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f'*the log "{log}" is not a file on this machine*', "*copy it to this machine*"]
    )


def test_a_session_without_pytests_terminal_runs_its_cases(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    options = [recorded.tiny.option, "-k", "run-1", "-p", "no:terminal"]
    assert pytester.runpytest_inprocess(*options).ret == pytest.ExitCode.OK
    assert pytester.runpytest_inprocess(*options, "--jrh-plan").ret == pytest.ExitCode.USAGE_ERROR


def close(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let nobody look into a folder: its permissions alone do not stop root."""
    look = os.stat

    def looked(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        if not isinstance(path, int) and f"{os.fspath(path)}".startswith(f"{folder}{os.sep}"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return look(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", looked)


@pytest.mark.parametrize("folder", ["outputs", "inputs/cassettes/tiny"])
def test_a_folder_that_nobody_may_look_into_is_a_usage_error(
    pytester: pytest.Pytester, recorded: Recorded, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    close(monkeypatch, pytester.path / folder)
    result = pytester.runpytest_inprocess(recorded.tiny.option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{folder}*: cannot be opened: Permission denied"])
    result.stderr.no_fnmatch_line("*INTERNALERROR*")


def test_files_in_a_folder_that_nobody_may_look_into_are_named(
    pytester: pytest.Pytester, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    close(monkeypatch, pytester.mkdir("closed"))
    result = pytester.runpytest_inprocess(recorded.tiny.option, "--jrh-baseline=closed/base.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["closed/base.json: cannot be read: Permission denied"])
    result = pytester.runpytest_inprocess(recorded.tiny.option, "--jrh-report=closed/jrh.md")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*closed/jrh.md was not written: Permission denied."])
