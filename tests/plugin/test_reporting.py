"""What a session prints beside its items, and what becomes of cassettes that nothing uses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.plugin.recorded import Recorded, run_pytest
from tests.support.model_server import ModelServer
from tests.support.suites import run, write_suite

HEAVY = ("litellm", "inspect_ai", "vcr", "yaml", "pydantic", "jinja2")
REPORT = (
    "import sys\n\n"
    "def pytest_unconfigure(config):\n"
    "    if not hasattr(config, 'workerinput'):\n"
    f"        print('imported:', [name for name in {HEAVY} if name in sys.modules])\n"
)


def test_the_header_says_where_calls_are_answered_from(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    result = pytester.runpytest_inprocess(
        recorded.tiny.option, recorded.scale.option, "--collect-only"
    )
    result.stdout.fnmatch_lines(
        [
            "jrh: suite tiny (binary), recording none, inputs/cassettes/tiny",
            "jrh: suite scale (ordinal), recording none, inputs/cassettes/scale",
        ]
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--jrh-judge-record-mode=all"], "recording none, judge all, inputs/cassettes/tiny"),
        (["--jrh-record-mode=once"], "recording once, inputs/cassettes/tiny"),
    ],
)
def test_the_header_follows_the_options(
    pytester: pytest.Pytester, recorded: Recorded, options: list[str], told: str
) -> None:
    result = pytester.runpytest_inprocess(recorded.tiny.option, "--collect-only", *options)
    assert f"jrh: suite tiny (binary), {told}" in result.outlines


def test_the_answer_is_the_last_that_is_printed_and_figures_are_for_v(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    result = pytester.runpytest_inprocess(recorded.tiny.option, "-ra")
    start = next(
        number for number, line in enumerate(result.outlines) if "judge reliability" in line
    )
    assert any("short test summary" in line for line in result.outlines[:start])
    assert result.outlines[start + 1 : -2] == [
        "FAIL  1 case has no verdict (1 unrecorded)",
        "      the judge misses 1 of 2 violations",
        "      also unclear: the judge is not shown to be better than chance",
        "rubric    missed  false alarms",
        "rubric-1  1 of 2        0 of 3",
        "  left out: 2 without a case",
        "labels      5 by the judge's model",
        "next        pytest --jrh-config=inputs/configs/tiny.yml --jrh-record-mode=none "
        "--jrh-judge-record-mode=new_episodes",
        "            with an API key this records 1 case, and only what is missing",
    ]
    result.stdout.fnmatch_lines(
        ["report      outputs/tiny/report.html  * 0 calls, 2? replayed, $0.00"]
    )


@pytest.mark.parametrize("option", ["-rs", "-ra", "-rA"])
def test_reasons_of_skips_are_given_once(
    pytester: pytest.Pytester, recorded: Recorded, option: str
) -> None:
    result = pytester.runpytest_inprocess(recorded.tiny.option, option)
    assert result.stdout.str().count("has no assistant turn") == 1


def test_media_that_the_judge_cannot_see_are_said_once(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    picture = [
        {"type": "text", "text": "Look:"},
        {"type": "image", "image": "data:image/png;base64,AAAA"},
    ]
    plain = run(1)
    shown = [
        {**message, "content": picture} if message["role"] == "user" else message
        for message in plain["messages"]
    ]
    suite = write_suite(
        pytester.path, runs=[{**plain, "messages": shown}, run(2)], tests=["agent_positives"]
    )
    result = pytester.runpytest_inprocess(suite.option, "--jrh-record-mode=once")
    result.assert_outcomes(passed=2)
    told = (
        "*note: suite tiny: * images and other media reach the judge as placeholders*[[]image: "
        "image/png[]]*"
    )
    result.stdout.fnmatch_lines([told])
    assert sum("placeholders" in line for line in result.outlines) == 1
    assert any("[image: image/png]" in request.text for request in server.requests)
    result = pytester.runpytest_inprocess(suite.option, "-k", "run-2")
    result.stdout.no_fnmatch_line(told)


def test_the_section_is_coloured_as_pytest_is(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    result = pytester.runpytest_inprocess(recorded.tiny.option, "--color=yes")
    assert "\x1b[33mlabels      5 by the judge's model" in result.stdout.str()
    assert "\x1b[1m\x1b[31mFAIL  1 case has no verdict" in result.stdout.str()


def test_a_quiet_run_has_a_line_for_the_suite_and_what_was_decided(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    result = pytester.runpytest_inprocess(recorded.tiny.option, "-q", "--tb=no", "-rN")
    result.stdout.no_fnmatch_line("jrh: suite*")
    start = next(n for n, line in enumerate(result.outlines) if "judge reliability" in line)
    headline, report = result.outlines[start + 1 : -1]
    assert headline == "FAIL  1 case has no verdict (1 unrecorded)"
    assert report.startswith("report      outputs/tiny/report.html  ")


def test_keys_that_mean_nothing_are_named(pytester: pytest.Pytester, recorded: Recorded) -> None:
    config = recorded.tiny.config
    text = config.read_text("utf-8")
    said = "note: inputs/configs/tiny.yml: not used by agentic tests: admin.test_debug_mode"

    def told(*arguments: str) -> list[str]:
        result = pytester.runpytest_inprocess(recorded.tiny.option, *arguments)
        return [line for line in result.outlines if line.startswith("note: inputs/configs")]

    config.write_text(text.replace("admin:\n", "admin:\n  test_debug_mode: true\n", 1), "utf-8")
    assert told("-q") == []
    assert told() == [said]
    config.write_text(text, "utf-8")
    assert told() == []


@pytest.mark.parametrize("arguments", [["-k", "no-such-run"], ["--collect-only"]], ids=" ".join)
def test_nothing_is_printed_where_no_case_ran(
    pytester: pytest.Pytester, recorded: Recorded, arguments: list[str]
) -> None:
    result = pytester.runpytest_inprocess(recorded.tiny.option, *arguments)
    result.stdout.no_fnmatch_line("*judge reliability*")
    assert not (pytester.path / "outputs").exists()


@pytest.mark.parametrize("arguments", [[], ["-n", "2"]], ids=["alone", "-n 2"])
def test_a_session_without_suites_pays_for_nothing(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "conftest.py").write_text(REPORT, encoding="utf-8")
    (tmp_path / "test_ordinary.py").write_text("def test_ordinary(): pass", encoding="utf-8")
    (tmp_path / "settings.yml").write_text("colour: blue\n", encoding="utf-8")
    done = run_pytest(tmp_path, "-s", *arguments, interpreter=[sys.executable])
    assert "imported: []" in done.lines
    assert "jrh:" not in done.stdout
    assert "judge reliability" not in done.stdout


def unused(recorded: Recorded) -> list[Path]:
    """Put cassettes there that no case uses, and files that are no cassettes."""
    folder = recorded.tiny.cassettes / "agent_positives"
    (folder / "rubric-9").mkdir()
    made = [
        folder / "rubric-1" / "run-9.e1.generation.yaml",
        folder / "rubric-9" / "run-1.e1.judge-default.yaml",
    ]
    for path in (*made, *others(recorded)):
        path.write_text("version: 1\n", encoding="utf-8")
    return made


def others(recorded: Recorded) -> list[Path]:
    return [
        recorded.tiny.cassettes / "notes.yaml",
        recorded.tiny.cassettes / "agent_positives/rubric-1/notes.yaml",
    ]


UNUSED = [
    "  inputs/cassettes/tiny/agent_positives/rubric-1/run-9.e1.generation.yaml",
    "  inputs/cassettes/tiny/agent_positives/rubric-9/run-1.e1.judge-default.yaml",
]


@pytest.mark.parametrize(
    "arguments", [["--jrh-plan"], ["--jrh-plan", "-k", "run-1"], ["--collect-only"]], ids=" ".join
)
def test_unused_cassettes_are_listed(
    pytester: pytest.Pytester, recorded: Recorded, arguments: list[str]
) -> None:
    made = unused(recorded)
    result = pytester.runpytest_inprocess(recorded.tiny.option, "--jrh-prune", *arguments)
    start = result.outlines.index("unused cassettes: 2")
    assert result.outlines[start + 1 : start + 3] == UNUSED
    assert all(path.exists() for path in made)


def test_unused_cassettes_are_removed_and_nothing_else(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    used = set(recorded.tiny.cassettes.rglob("*.yaml"))
    made = unused(recorded)
    result = pytester.runpytest_inprocess(recorded.tiny.option, "--jrh-prune", "-k", "run-1")
    start = result.outlines.index("removed cassettes: 2")
    assert result.outlines[start + 1 : start + 3] == UNUSED
    assert not any(path.exists() for path in made)
    assert set(recorded.tiny.cassettes.rglob("*.yaml")) == used | set(others(recorded))


def test_workers_leave_unused_cassettes_to_the_controller(
    recorded_once: Recorded, tmp_path: Path
) -> None:
    recorded = recorded_once.copied(tmp_path)
    unused(recorded)
    done = run_pytest(
        tmp_path,
        recorded.scale.option,
        recorded.tiny.option,
        "--jrh-prune",
        "-n",
        "2",
        "-k",
        "no-such",
    )
    assert done.code == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout
    assert done.stdout.count("removed cassettes: 2") == 1
