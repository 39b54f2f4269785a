"""Node ids, selection and discovery: a suite behaves as any pytest suite does."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.plugin.gated import WORKERS
from tests.plugin.recorded import PERTURBATION, POSITIVES, Recorded
from tests.support.fork_server import python
from tests.support.suites import run, write_suite

TINY = "inputs/configs/tiny.yml"
BINARY = [
    f"{TINY}::{test}run-{number}[e1]"
    for test in (PERTURBATION, POSITIVES)
    for number in (1, 2, 3, 4)
]
ORDINAL = [
    *(f"inputs/configs/scale.yml::{PERTURBATION}run-1[e1-score_{score}]" for score in (0, 1, 2)),
    f"inputs/configs/scale.yml::{POSITIVES}run-1[e1-score_2]",
]
PANEL = [
    f"inputs/configs/panel.yml::{test}run-1[e1-{judge}]"
    for test in (PERTURBATION, POSITIVES)
    for judge in ("strict", "kind%20one")
]


def collected(pytester: pytest.Pytester, *arguments: str | os.PathLike[str]) -> list[str]:
    """The node ids that `--collect-only -q` prints."""
    result = pytester.runpytest_inprocess("--collect-only", "-q", *arguments)
    assert result.ret in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), (
        result.stdout.str()
    )
    return [line for line in result.outlines if "::" in line]


def test_binary_cases_are_named_after_config_test_rubric_run_and_epoch(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    assert collected(pytester, recorded.tiny.option) == BINARY


def test_ordinal_cases_carry_their_target_score(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    assert collected(pytester, recorded.scale.option) == ORDINAL


def test_each_judge_of_a_panel_has_an_item_of_its_own(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    assert collected(pytester, recorded.panel.option) == PANEL


def test_several_suites_are_collected_in_the_order_given(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    assert collected(pytester, recorded.panel.option, recorded.tiny.option) == [*PANEL, *BINARY]


def test_a_config_given_twice_is_collected_once(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    assert (
        collected(pytester, recorded.tiny.option, f"--jrh-config=inputs/../{TINY}", TINY) == BINARY
    )


@pytest.mark.parametrize("named", [True, False], ids=["with --jrh-config", "without"])
@pytest.mark.parametrize(
    ("selection", "count"),
    [
        (f"{TINY}::{PERTURBATION}run-2[e1]", 1),
        (f"{TINY}::{PERTURBATION}run-2", 1),
        (f"{TINY}::agent_perturbation::rubric-1", 4),
        (f"{TINY}::agent_positives", 4),
        (TINY, 8),
    ],
)
def test_items_are_selected_by_node_id(
    pytester: pytest.Pytester, recorded: Recorded, selection: str, count: int, *, named: bool
) -> None:
    ids = collected(pytester, *([recorded.tiny.option] if named else []), selection)
    assert len(ids) == count
    assert ids == [name for name in BINARY if name.startswith(selection)]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["-k", "run-2"], [name for name in BINARY if "run-2" in name]),
        (["-k", "rubric-1 and not run-1"], [name for name in BINARY if "run-1" not in name]),
        (["-m", "agent_positives"], [name for name in BINARY if POSITIVES in name]),
        (["-m", "jrh and not agent_positives"], [name for name in BINARY if PERTURBATION in name]),
        (["--deselect", BINARY[0]], BINARY[1:]),
        (["--deselect", f"{TINY}::agent_perturbation"], BINARY[4:]),
        (["-m", "not jrh"], []),
    ],
    ids=" ".join,
)
def test_pytests_own_options_select(
    pytester: pytest.Pytester, recorded: Recorded, options: list[str], wanted: list[str]
) -> None:
    assert collected(pytester, recorded.tiny.option, "--strict-markers", *options) == wanted


def test_markers_are_listed(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.jrh:*", "@pytest.mark.agent_perturbation:*"])
    result.stdout.fnmatch_lines(["@pytest.mark.agent_positives:*"])


def test_with_no_other_argument_only_suites_are_collected(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    pytester.makepyfile(test_ordinary="def test_ordinary(): pass")
    pytester.makeini("[pytest]\ntestpaths = .")
    assert collected(pytester, recorded.tiny.option) == BINARY


UNIT = "tests/test_unit.py::test_unit"
PACKAGED = "package/test_packaged.py::test_packaged"
SCALE = "inputs/configs/scale.yml"


@pytest.fixture
def mixed(pytester: pytest.Pytester, recorded: Recorded) -> Recorded:
    """A project with tests of its own, whose ini file names a suite."""
    pytester.makeini(f"[pytest]\ntestpaths = tests\njrh_config = {TINY}\n")
    for name in ("tests/test_unit.py", "package/test_packaged.py", "package/__init__.py"):
        path = pytester.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"def {path.stem}(): assert 0\n", encoding="utf-8")
    return recorded


COLLECTED = {
    "": [*BINARY, UNIT],
    "-o testpaths=te*s": [*BINARY, UNIT],
    "-o testpaths=": [*BINARY, PACKAGED, UNIT],
    f"-o 'testpaths=tests {TINY}'": [*BINARY, UNIT],
    "-k 'test_unit or run-1'": [BINARY[0], BINARY[4], UNIT],
    "-m agent_positives": BINARY[4:],
    "tests": [UNIT],
    "tests/test_unit.py": [UNIT],
    f"{UNIT} package": [PACKAGED, UNIT],
    "--pyargs package": [PACKAGED],
    ".": [*BINARY, PACKAGED, UNIT],
    "inputs": BINARY,
    TINY: BINARY,
    BINARY[1]: [BINARY[1]],
    f"{BINARY[1]} {UNIT}": [BINARY[1], UNIT],
    SCALE: ORDINAL,
    f"--jrh-config={SCALE}": ORDINAL,
    f"--jrh-config {SCALE} tests": [*ORDINAL, UNIT],
    f"-o jrh_config={SCALE}": [*ORDINAL, UNIT],
    f"-o 'jrh_config={SCALE} {TINY}' {TINY}": BINARY,
    "@typed.txt": [*ORDINAL, UNIT],
}


@pytest.mark.parametrize(("line", "wanted"), COLLECTED.items(), ids=COLLECTED)
def test_a_suite_of_the_settings_is_collected_beside_what_pytest_collects_by_itself(
    pytester: pytest.Pytester, mixed: Recorded, line: str, wanted: list[str]
) -> None:
    (pytester.path / "typed.txt").write_text(f"--jrh-config={SCALE}\ntests\n", encoding="utf-8")
    assert sorted(collected(pytester, *shlex.split(line))) == sorted(wanted)


def test_a_suite_of_the_settings_is_collected_from_a_subfolder_too(
    pytester: pytest.Pytester, mixed: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pytester.path / "tests")
    assert sorted(collected(pytester)) == [*BINARY, UNIT]
    assert collected(pytester, "test_unit.py") == [UNIT]
    assert collected(pytester, f"../{BINARY[2]}") == [BINARY[2]]


@WORKERS
def test_tests_of_the_project_fail_beside_a_suite_of_the_ini_file(
    pytester: pytest.Pytester, mixed: Recorded, workers: list[str]
) -> None:
    """Both have a test that fails."""
    broken = pytester.path / "broken.json"
    broken.write_text("no baseline", encoding="utf-8")
    with_broken = ["-o", f"jrh_baseline={broken.name}", *workers]
    done = pytester.runpytest(*workers)
    done.assert_outcomes(failed=2, passed=4, skipped=2, errors=1)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    assert pytester.runpytest(*with_broken).ret == pytest.ExitCode.USAGE_ERROR
    alone = pytester.runpytest("tests", *with_broken)
    alone.assert_outcomes(failed=1)
    alone.stdout.no_fnmatch_line("*judge reliability*")
    pytester.runpytest("--lf", *workers).assert_outcomes(failed=2, errors=1)
    case = pytester.runpytest(BINARY[0], *workers)
    case.assert_outcomes(passed=1)
    assert any(line.endswith("(7 cases deselected)") for line in case.outlines)


def test_a_suite_that_stays_out_needs_no_options(
    pytester: pytest.Pytester, mixed: Recorded
) -> None:
    done = pytester.runpytest("tests", "--jrh-max-calls=3")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["ERROR: --jrh-max-calls needs a suite, and none was collected.*"])


def test_the_editors_settings_of_the_docs_show_and_run_single_tests(
    pytester: pytest.Pytester, mixed: Recorded
) -> None:
    """VS Code collects with `pytestArgs`, and runs absolute node ids with its options."""
    page = (Path(__file__).parents[2] / "docs" / "suite.md").read_text("utf-8")
    section = page.partition("## Beside other tests")[2]
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL))
    assert "inputs/configs/support.yml" in blocks["ini"]
    pytester.makeini(blocks["ini"].replace("inputs/configs/support.yml", TINY))
    args = [
        "--rootdir",
        str(pytester.path),
        *json.loads(blocks["json"])["python.testing.pytestArgs"],
    ]
    assert sorted(collected(pytester, *args)) == [*BINARY, UNIT]
    for nodeid in (UNIT, BINARY[5]):
        assert collected(pytester, *args, str(pytester.path / nodeid)) == [nodeid]


def test_ordinary_tests_named_beside_a_suite_run_too(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    tests = pytester.mkdir("checks")
    (tests / "test_ordinary.py").write_text("def test_ordinary(): pass", encoding="utf-8")
    ids = collected(pytester, recorded.tiny.option, "checks")
    assert ids == ["checks/test_ordinary.py::test_ordinary", *BINARY]


def test_a_folder_that_holds_the_named_suite_does_not_double_it(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    assert collected(pytester, recorded.tiny.option, "inputs") == BINARY


def test_suites_are_discovered_by_their_suffix(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    shutil.copy(recorded.tiny.config, "orders.jrh.yml")
    shutil.copy(recorded.tiny.config, "more.jrh.yaml")
    pytester.makepyfile(test_ordinary="def test_ordinary(): pass")
    names = [name.removeprefix(TINY) for name in BINARY]
    assert collected(pytester) == [
        *(f"more.jrh.yaml{name}" for name in names),
        *(f"orders.jrh.yml{name}" for name in names),
        "test_ordinary.py::test_ordinary",
    ]


def test_a_discovered_suite_can_be_named_too(pytester: pytest.Pytester, recorded: Recorded) -> None:
    shutil.copy(recorded.tiny.config, "orders.jrh.yml")
    ids = [f"orders.jrh.yml{name.removeprefix(TINY)}" for name in BINARY]
    assert collected(pytester, "--jrh-config=orders.jrh.yml") == ids
    assert collected(pytester, "orders.jrh.yml") == ids


def test_other_yaml_files_are_left_alone(pytester: pytest.Pytester) -> None:
    Path("settings.yml").write_text("colour: blue\n", encoding="utf-8")
    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.NO_TESTS_COLLECTED
    pytester.runpytest_inprocess("settings.yml").stdout.no_fnmatch_line("*settings.yml*rror*")


def test_a_suite_may_be_json_of_any_suffix(pytester: pytest.Pytester, recorded: Recorded) -> None:
    import yaml

    config = pytester.path / "tiny.conf"
    config.write_text(
        str(yaml.safe_load(recorded.tiny.config.read_text("utf-8"))), encoding="utf-8"
    )
    ids = collected(pytester, "--jrh-config=tiny.conf")
    assert ids == [f"tiny.conf{name.removeprefix(TINY)}" for name in BINARY]


def test_a_config_behind_a_symbolic_link_keeps_the_name_it_was_given(
    pytester: pytest.Pytester, recorded: Recorded, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "store.yml"
    recorded.tiny.config.replace(elsewhere)
    recorded.tiny.config.symlink_to(elsewhere)
    assert collected(pytester, recorded.tiny.option) == BINARY


HOSTILE = [
    "../../x",
    "a::b[c]",
    "run",
    "RUN",
    " ",
    "x" * 300,
    "x" * 299 + "y",
    "ä\u202eb",
    "a/b",
    "%2E",
    "~",
    "a~b",
]


def test_hostile_ids_stay_distinct_and_select_themselves(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    runs = [{**run(number), "id": name} for number, name in enumerate(HOSTILE)]
    rubrics = [{"id": name, "instructions": "Be kind."} for name in ("a::b", "../up")]
    suite = write_suite(
        pytester.path, name="hostile", runs=runs, rubrics=rubrics, tests=["agent_positives"]
    )
    ids = collected(pytester, suite.option)
    assert len(set(ids)) == 2 * len(HOSTILE)
    assert all(name.count("::") == 3 and name.count("[") == 1 and name.isascii() for name in ids)
    for name in (ids[0], ids[1], ids[5], ids[-1]):
        assert collected(pytester, suite.option, name) == [name]


def test_runs_of_several_epochs_are_told_apart(pytester: pytest.Pytester) -> None:
    suite = write_suite(
        pytester.path, runs=[run(1, epoch=1), run(1, epoch=2)], tests=["agent_positives"]
    )
    stem = f"{TINY}::{POSITIVES}run-1"
    assert collected(pytester, suite.option) == [f"{stem}[e1]", f"{stem}[e2]"]
    assert collected(pytester, f"{stem}[e2]") == [f"{stem}[e2]"]


def test_collecting_asks_no_model_and_writes_nothing(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    before = sorted(path for path in pytester.path.rglob("*") if "cache" not in str(path))
    collected(
        pytester,
        recorded.tiny.option,
        "--jrh-record-mode=all",
        "-p",
        "no:cacheprovider",
        "--jrh-prune",
    )
    assert sorted(path for path in pytester.path.rglob("*") if "cache" not in str(path)) == before


def test_the_plugin_can_be_switched_off(pytester: pytest.Pytester, recorded: Recorded) -> None:
    shutil.copy(recorded.tiny.config, "orders.jrh.yml")
    result = pytester.run(*python(), "-m", "pytest", "-p", "no:jrh", "-q")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result = pytester.run(*python(), "-m", "pytest", "-p", "no:jrh", recorded.tiny.option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unrecognized arguments: --jrh-config=*"])


def test_two_suites_of_one_name_are_refused(pytester: pytest.Pytester, recorded: Recorded) -> None:
    shutil.copy(recorded.tiny.config, "tiny.yml")
    result = pytester.runpytest_inprocess(recorded.tiny.option, "--jrh-config=tiny.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*tiny.yml: a suite is named after its file*is a suite `tiny` too*"]
    )


def test_two_suites_may_not_share_a_cassette_folder(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    for suite in (recorded.tiny, recorded.scale):
        suite.configure({"replay": {"cassette_dir": "shared"}})
    result = pytester.runpytest_inprocess(recorded.tiny.option, recorded.scale.option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*would share the cassette folder*shared*"])


def test_editors_find_tests_and_rubrics_as_groups_between_file_and_item(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    """VS Code's `vscode_pytest` nests an item in the `pytest.Class`es above it, up to its file."""
    items, _ = pytester.inline_genitems(recorded.tiny.option)
    assert len(items) == len(BINARY)
    for item in items:
        rubric, test, file = list(item.iter_parents())[1:4]
        assert isinstance(rubric, pytest.Class)
        assert isinstance(test, pytest.Class)
        assert isinstance(file, pytest.File)
        assert not isinstance(file, pytest.Class)
        assert [rubric.name, test.name, file.path] == [
            item.nodeid.split("::")[2],
            item.nodeid.split("::")[1],
            recorded.tiny.config,
        ]
        assert rubric.obj is None


@pytest.mark.parametrize("distributed", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_pytest_can_keep_every_plugin_in_a_set_as_it_did_before_9_1(
    pytester: pytest.Pytester, recorded: Recorded, distributed: tuple[str, ...]
) -> None:
    pytester.makeconftest("def pytest_plugin_registered(plugin): hash(plugin)")
    with recorded.scale.config.open("a", encoding="utf-8") as config:
        config.write("\nsubset: {smoke: 100}\n")
    options = ("--jrh-subset=smoke", *distributed)
    result = pytester.runpytest_inprocess(recorded.scale.option, *options)
    assert result.ret == pytest.ExitCode.OK, result.stderr.str()
