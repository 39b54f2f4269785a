"""The package as a library: cases judged from Python, its names, what importing it costs, and what
a package index shows of it."""

import asyncio
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.requirements import Requirement

import pytest_jrh
from pytest_jrh import InputError, JudgedCase, Verdict, judge_cases, load_cases, reliability
from pytest_jrh.__main__ import _EXAMPLES, main
from pytest_jrh.cli.demo import EXAMPLE, FILES
from pytest_jrh.plugin import pytest_configure
from pytest_jrh.store.records import case_digest, record_line, to_record
from tests.support.figures import describe
from tests.support.made_cases import make_case, make_spec

VIOLATED = [make_case(make_spec(f"run-{n}")) for n in range(6)]
SATISFIED = [make_case(make_spec(f"run-{n}", test="agent_positives")) for n in range(6)]
LEVEL = make_case(make_spec(target_score=2))
ROOT = Path(__file__).parents[2]
HEAVY = "litellm openai inspect_ai vcr jinja2 sklearn pydantic pytest yaml"
ISSUE = """load_inspect_eval_runs ConversationPerturber ConversationSummarizer PerturbationOutcome
make_llm_planner generate_single_edit apply_single_edit generate_agent_perturbations"""
RELATIVE = re.compile(r"\]\((?!https?:|#)[^)]*\)")
CHECK = "from pytest_jrh.__main__ import main\nmain(['check', 'table.csv'])\n"
LABEL = "import pytest_jrh.cli.label\n"
OF_SUITES = ("config.schema", "config.suite", "config.load", "judges", "llm.client", "recording")


def judged(
    cases: list[pytest_jrh.Case], judge: Callable[[JudgedCase], object], **how: int
) -> list[pytest_jrh.CaseResult]:
    return asyncio.run(judge_cases(cases, judge, **how))


@pytest.mark.parametrize(
    ("value", "reasoning"), [(1, ""), ((1, " why "), "why"), (Verdict(1, "because"), "because")]
)
def test_a_score_is_held_against_the_label(value: object, reasoning: str) -> None:
    right, wrong = judged([VIOLATED[0], SATISFIED[0]], lambda _: value)
    assert (right.outcome, right.score, right.reasoning) == ("agree", 1, reasoning)
    assert (wrong.outcome, wrong.score, wrong.label) == ("disagree", 1, 0)
    assert right.case_digest == case_digest(VIOLATED[0])


@pytest.mark.parametrize(
    ("case", "value", "words"),
    [
        (VIOLATED[0], float("inf"), "gave inf"),
        (VIOLATED[0], np.int64(1), "a value of the type numpy.int64"),
        (VIOLATED[0], "y" * 10**6, "gave 'yyy"),
        (VIOLATED[0], "1", "gave '1'"),
        (VIOLATED[0], 2, "gave the score 2; must be 0 or 1"),
        (VIOLATED[0], (1, 5), "gave 5 as its reasoning"),
        (LEVEL, True, "gave True"),
        (LEVEL, 9, "gave the score 9"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_score_on_offer_is_no_verdict(case: pytest_jrh.Case, value: object, words: str) -> None:
    [result] = judged([case], lambda _: value)
    assert (result.outcome, result.score, result.scores) == ("invalid_response", None, ())
    assert words in result.why.cause
    assert len(result.why.cause) < 500


def test_reasoning_is_kept_in_bounds() -> None:
    [result] = judged(VIOLATED[:1], lambda _: (1, "r" * 10**7))
    assert len(result.reasoning) == 20_000


def test_what_the_judge_raises_is_named_with_its_place() -> None:
    def broken(case: JudgedCase) -> object:
        raise next(errors)

    refusal = pytest_jrh.Unscored("refused", stage="judge", cause="no.")
    errors = iter([LookupError("no such order"), refusal])
    [result] = judged(VIOLATED[:1], broken)
    assert (result.outcome, result.score) == ("model_error", None)
    assert result.why.cause.startswith("The judge raised LookupError: no such order")
    assert result.why.places[0].endswith("in broken")
    [result] = judged(VIOLATED[:1], broken)
    assert (result.outcome, result.why.cause) == ("refused", "no.")


def test_a_judge_sees_no_label_and_cannot_change_the_case() -> None:
    def meddling(case: JudgedCase) -> object:
        assert not hasattr(case, "expected")
        dict.update(case.messages[-1], content="changed")
        return 1

    before = VIOLATED[0].messages[-1]["content"]
    judged(VIOLATED[:1], meddling, repeats=2)
    assert VIOLATED[0].messages[-1]["content"] == before


def test_the_most_frequent_score_counts_and_a_tie_is_wrong() -> None:
    answers = iter([1, 0, 1, 0, 0, 1, 1, 0])
    first, second = judged(VIOLATED[:2], lambda _: (next(answers), "so"), repeats=3, concurrency=1)
    assert (first.outcome, first.score, first.scores) == ("agree", 1, (1, 0, 1))
    assert (second.outcome, second.score, second.scores) == ("disagree", 0, (0, 0, 1))
    [tie] = judged(VIOLATED[:1], lambda _: next(answers), repeats=2)
    assert (tie.outcome, tie.score, tie.scores) == ("disagree", None, (1, 0))


def test_results_come_in_the_order_of_the_cases_however_many_are_judged_at_once() -> None:
    running = most = 0

    async def judge(case: JudgedCase) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return 1

    results = judged(VIOLATED, judge, concurrency=3)
    assert [result.spec.run_id for result in results] == [case.spec.run_id for case in VIOLATED]
    assert most == 3


@pytest.mark.parametrize("how", [{"repeats": 0}, {"concurrency": 0}])
def test_less_than_one_is_refused(how: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be an integer >= 1"):
        judged(VIOLATED, lambda _: 1, **how)


def test_the_figures_are_those_of_a_suite_with_intervals_and_warnings() -> None:
    results = judged([*VIOLATED, *SATISFIED], lambda case: 1)
    figures = reliability(results)
    total = describe(results)
    assert figures.figures["accuracy"].value == total.accuracy.value == 0.5
    assert figures.figures["accuracy"].lower == total.accuracy.lower
    assert list(figures.rubrics) == [VIOLATED[0].rubric.id]
    assert any("The judge says" in warning for warning in figures.warnings)
    assert "accuracy: 50.0%" in str(figures)
    assert "! The judge says" in str(figures)


def test_results_of_nothing_or_of_several_judges_have_no_figures() -> None:
    with pytest.raises(ValueError, match="have 0 judges or suites; must be one"):
        reliability([])
    others = [make_case(make_spec(suite="other"))]
    with pytest.raises(ValueError, match="have 2 judges or suites; must be one"):
        reliability(judged([*VIOLATED, *others], lambda _: 1))


def test_cases_are_read_as_they_were_made(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"\n".join(record_line(to_record(case)) for case in VIOLATED))
    read = load_cases(path)
    assert [case_digest(case) for case in read] == [case_digest(case) for case in VIOLATED]
    with pytest.raises(InputError, match="no such file"):
        load_cases(tmp_path / "none.jsonl")
    path.write_text('{"case_id": 5, "format": 1}\n', "utf-8")
    with pytest.raises(InputError, match=r"cases.jsonl:1"):
        load_cases(path)


@pytest.fixture(scope="module")
def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_an_older_pytest_is_refused_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest, "version_tuple", (8, 2, 2))
    config: Any = None
    with pytest.raises(pytest.UsageError, match=r"needs pytest 8\.3 or newer"):
        pytest_configure(config)


def test_the_command_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pytest-jrh {pytest_jrh.__version__}\n"


@pytest.mark.parametrize("command", _EXAMPLES)
def test_help_opens_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    example, _, usage = capsys.readouterr().out.partition("usage:")
    assert example.startswith(f"example: python -m pytest_jrh {command} ")
    assert all(f" {option}" in usage for option in re.findall(r"--[a-z-]+", example))


def test_the_demo_works(project: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    names = [f"{EXAMPLE}/{file}" for file in FILES]
    assert wheel == {**{name: f"pytest_jrh/demo/{name}" for name in names}}
    assert sum((ROOT / name).stat().st_size for name in names) <= 150_000
    assert main(["demo", str(tmp_path / "new")]) == 0
    said = capfd.readouterr().out
    assert "PASS  no verdict changed: as good as before on 25 cases" in said
    assert "FAIL  the new prompt misses 6 of 12 violations that it found before" in said
    assert (tmp_path / "new/outputs/examples/answers/changed/answers/report.html").is_file()
    assert main(["demo", str(tmp_path / "new")]) == 4


def test_the_description_on_a_package_index_has_no_link_into_the_repository(project: Any) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert RELATIVE.search(text)
    for each in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    assert not RELATIVE.search(text)
    assert "![" not in text
    assert "`CONTRIBUTING.md`" in text


def test_every_dependency_has_a_lower_bound_and_reasons_for_what_is_excluded(project: Any) -> None:
    reasons = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    lines = project["project"]["dependencies"]
    for extra in project["project"]["optional-dependencies"].values():
        lines = lines + extra
    for requirement in map(Requirement, lines):
        if requirement.name != project["project"]["name"]:
            excluded = [each.version for each in requirement.specifier if each.operator == "!="]
            operators = sorted(each.operator for each in requirement.specifier)
            assert operators == [*["!="] * len(excluded), ">="], str(requirement)
            assert all(version in reasons for version in excluded), str(requirement)


def test_public_names_are_sorted_have_a_text_and_hold_those_of_the_guide() -> None:
    for name in pytest_jrh.__all__:
        thing = getattr(pytest_jrh, name)
        assert (thing.__name__, bool(thing.__doc__)) == (name, True)
    assert sorted(pytest_jrh.__all__) == pytest_jrh.__all__
    assert set(pytest_jrh.__all__) >= set(ISSUE.split())


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import pytest_jrh; "
        f"print([name for name in {HEAVY.split()!r} if name in sys.modules])"
    )
    found = subprocess.check_output([sys.executable, "-S", "-c", code], text=True)
    assert found.strip() == "[]"


@pytest.mark.parametrize("program", [CHECK, LABEL], ids=["check", "label"])
def test_check_and_label_import_nothing_of_suites(tmp_path: Path, program: str) -> None:
    rows = [f"{number},violated,{'violated' if number % 3 else 'satisfied'}" for number in range(9)]
    (tmp_path / "table.csv").write_text("\n".join(["case,label,verdict", *rows]))
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{program}print('IMPORTED', *sys.modules)"
    )
    printed = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, text=True)
    imported = {*printed.rpartition("IMPORTED")[2].split()}
    rooms = {name.removeprefix("pytest_jrh.") for name in imported if "pytest_jrh." in name}
    assert "sources.tables" in rooms
    assert not rooms & {*OF_SUITES}
    assert not imported & {"litellm", "openai", "inspect_ai", "vcr", "jinja2", "sklearn", "pytest"}
