"""Bad input ends in exit code 4 with every problem and no traceback. A discovered suite in a
collection error."""

import errno
import math
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.config.options import Options, mistakes
from tests.plugin.recorded import Recorded, conversation


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "-n 2"])
def test_every_problem_of_every_suite_is_a_usage_error_at_once(
    pytester: pytest.Pytester, recorded: Recorded, workers: list[str]
) -> None:
    replace_in(recorded.scale.data / "rubrics.yml", "score: 1", "score: 7")
    panel = recorded.panel
    log = panel.data / "runs.eval"
    log.write_bytes(log.read_bytes()[:300])
    steps = {"transcript_preprocessor": ["drop_tool_mesages"]}
    panel.configure({"test_agent_perturbation_config": steps})
    template = panel.folder / "inputs/custom_prompts/panel/agent_perturbation/editor.md"
    template.parent.mkdir(parents=True)
    template.write_text("{{ original_message }} {{ rubric }} {{ ordinal_guidance }} {{ ruberic }}")
    replace_in(recorded.tiny.config, "tests_to_run", "test_to_run")
    options = [suite.option for suite in (recorded.scale, panel, recorded.tiny)]
    result = pytester.runpytest_inprocess(*options, "--jrh-config=nowhere.yml", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    places = ["*rubrics.yml:*score*", "*panel/runs.eval*", "*drop_tool_mesages*"]
    places += ["*editor.md*ruberic*", "*tiny.yml:*test_to_run*", "*nowhere.yml*"]
    told = "ERROR: the suite cannot be used, because of 6 problems:"
    result.stderr.fnmatch_lines_random([told, *places])
    for stream in (result.stdout, result.stderr):
        stream.no_fnmatch_line("*Traceback*")
        stream.no_fnmatch_line("*INTERNALERROR*")


def test_a_mistake_in_a_suite_that_is_not_named_is_a_collection_error_and_nothing_is_asked(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    name = "orders.jrh.yml"
    text = recorded.tiny.config.read_text("utf-8")
    Path(name).write_text(text.replace("tests_to_run", "test_to_run"), encoding="utf-8")
    pytester.makeconftest(
        """
        def pytest_jrh_complete(config):
            async def complete(stage, messages, response_model):
                raise SystemExit("a model was asked")
            return complete
        """
    )
    before = sorted(recorded.tiny.cassettes.rglob("*.yaml"))
    result = pytester.runpytest_inprocess(recorded.tiny.option, name, "--jrh-record-mode=all")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    shown = [f"*ERROR collecting {name}*", f"{name}:*test_to_run*", f"ERROR {name}*"]
    result.stdout.fnmatch_lines(shown)
    for line in ("*Traceback*", "*collect.py*", "*judge reliability*"):
        result.stdout.no_fnmatch_line(line)
    assert not (pytester.path / "outputs").exists()
    assert sorted(recorded.tiny.cassettes.rglob("*.yaml")) == before


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_cost": math.nan}, "--jrh-max-cost=nan: must be a number >= 0"),
        ({"max_calls": -1}, "--jrh-max-calls=-1: must be a number >= 0"),
        ({"reports": (Path("r.pdf"),)}, "--jrh-report=r.pdf: must end in .html or .md or "),
        ({"reports": (Path(),)}, "--jrh-report=.: this is a folder; name a file in it"),
        ({"update_baseline": True}, "--jrh-update-baseline: name the file to update with --jrh-"),
        ({"reviewer": " "}, "--jrh-reviewer=: must be a name"),
    ],
    ids=str,
)
def test_a_bad_option_is_named(options: dict[str, Any], told: str) -> None:
    [said] = mistakes(Options(**options))
    assert said.startswith(told)


def test_a_bad_option_is_refused(pytester: pytest.Pytester, recorded: Recorded) -> None:
    number, mode = "--jrh-max-cost=nan: must be a number", "jrh_record_mode = new: must be one of"
    for mistake, told in (("--jrh-max-cost=nan", number), ("-ojrh_record_mode=new", mode)):
        result = pytester.runpytest_inprocess(recorded.tiny.option, mistake, "-n2")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*{told}*"])
    result.stderr.no_fnmatch_line("*Traceback*")


def test_typed_options_that_need_a_suite_are_refused_without_one(pytester: pytest.Pytester) -> None:
    """Those of a project's settings may be there."""
    pytester.makeini("[pytest]\naddopts = --jrh-record-mode=none\njrh_max_calls = 5")
    pytester.makepyfile(test_ordinary="def test_ordinary(): pass")
    options = ("--jrh-judge-record-mode", "all", "--jrh-max-cost=5")
    result = pytester.runpytest_inprocess(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.assert_outcomes()
    told = "ERROR: --jrh-judge-record-mode, --jrh-max-cost need a suite, but pytest collected *"
    result.stderr.fnmatch_lines([f"{told}Name the config of a suite with --jrh-config=FILE."])


def close(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let nobody look into a folder: its permissions alone do not stop root."""
    look = os.stat

    def looked(path: Any, **options: Any) -> os.stat_result:
        if not isinstance(path, int) and f"{os.fspath(path)}".startswith(f"{folder}{os.sep}"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return look(path, **options)

    monkeypatch.setattr(os, "stat", looked)


def test_a_folder_that_nobody_may_look_into_is_a_usage_error(
    pytester: pytest.Pytester, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    close(monkeypatch, pytester.path / "inputs/cassettes/tiny")
    result = pytester.runpytest_inprocess(recorded.tiny.option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*inputs/cassettes/tiny*: cannot be opened: Permission denied"])


def test_a_hook_without_a_judge_is_refused(pytester: pytest.Pytester, recorded: Recorded) -> None:
    pytester.makeconftest("def pytest_jrh_judge(config, suite): return 'a name'")
    result = pytester.runpytest_inprocess(recorded.tiny.option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the hook pytest_jrh_judge returned str, not a function*"])


@pytest.mark.parametrize("name", ["loop.csv", "loop.csv/t.csv", f"{'a' * 5_000}.csv"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["check", "t.csv", "--one=passed", "--baseline"],
        ["check", "t.csv", "--one=passed", "--labels"],
        ["label"],
        ["init", "tiny", "--log"],
        ["init", "tiny", "--log=t.jsonl", "--folder"],
        ["merge", "folder", "--jrh-config"],
    ],
    ids=" ".join,
)
def test_a_path_that_the_system_refuses_is_no_traceback(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    name: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop.csv").symlink_to("loop.csv")
    Path("t.csv").write_text("id,label,verdict\n1,1,1\n2,0,0\n")
    Path("t.jsonl").write_text(conversation("a", "a", "b"))
    assert main([*arguments, name]) == 4
    assert name.partition("/")[0][:40] in capsys.readouterr().err


def test_a_command_says_which_file_it_may_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "closed/runs.jsonl"
    close(monkeypatch, log.parent)
    assert main(["init", "tiny", f"--log={log}", f"--folder={tmp_path}"]) == 4
    assert capsys.readouterr().err == f"{log}: cannot be opened: Permission denied\n"
