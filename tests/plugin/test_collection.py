"""Node ids, selection and discovery: a suite behaves as any pytest suite does."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.plugin.recorded import PERTURBATION, POSITIVES, Recorded
from tests.support.fork_server import python

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


def test_cases_are_named_and_collecting_asks_no_model_and_writes_nothing(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    """After config, test, rubric, run, epoch, score and judge; suites in the order given."""
    before = sorted(path for path in pytester.path.rglob("*") if "cache" not in str(path))
    options = (recorded.panel.option, recorded.tiny.option, recorded.scale.option)
    more = ("--jrh-record-mode=all", "--jrh-prune", "-p", "no:cacheprovider")
    assert collected(pytester, *options, *more) == [*PANEL, *BINARY, *ORDINAL]
    assert sorted(path for path in pytester.path.rglob("*") if "cache" not in str(path)) == before


def test_a_config_given_twice_is_collected_once(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    same = (recorded.tiny.option, f"--jrh-config=inputs/../{TINY}", TINY, "inputs")
    assert collected(pytester, *same) == BINARY


def test_items_are_selected_by_node_id(pytester: pytest.Pytester, recorded: Recorded) -> None:
    ids = (BINARY[1], f"{TINY}::{PERTURBATION}run-3", f"{TINY}::agent_positives")
    assert collected(pytester, *ids) == BINARY[1:3] + BINARY[4:]


def test_pytests_own_options_select(pytester: pytest.Pytester, recorded: Recorded) -> None:
    options = ("-k", "not run-1", "-m", "jrh and agent_perturbation", "--deselect", BINARY[2])
    ids = collected(pytester, recorded.tiny.option, "--strict-markers", *options)
    assert ids == [BINARY[1], BINARY[3]]


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
    "tests": [UNIT],
    ".": [*BINARY, PACKAGED, UNIT],
    f"{BINARY[1]} {UNIT}": [BINARY[1], UNIT],
    "@typed.txt": [*ORDINAL, UNIT],
}


@pytest.mark.parametrize(("line", "wanted"), COLLECTED.items(), ids=COLLECTED)
def test_a_suite_of_the_settings_is_collected_beside_what_pytest_collects_by_itself(
    pytester: pytest.Pytester, mixed: Recorded, line: str, wanted: list[str]
) -> None:
    (pytester.path / "typed.txt").write_text(f"--jrh-config={SCALE}\ntests\n", encoding="utf-8")
    assert sorted(collected(pytester, *shlex.split(line))) == sorted(wanted)


def test_tests_of_the_project_fail_beside_a_suite_of_the_ini_file(
    pytester: pytest.Pytester, mixed: Recorded
) -> None:
    """Both have a test that fails."""
    pytester.path.joinpath("broken.json").write_text("no baseline", encoding="utf-8")
    done = pytester.runpytest()
    done.assert_outcomes(failed=2, passed=4, skipped=2, errors=1)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    alone = pytester.runpytest("tests", "-o", "jrh_baseline=broken.json")
    alone.assert_outcomes(failed=1)
    alone.stdout.no_fnmatch_line("*judge reliability*")


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
    nodeid = BINARY[5]
    assert collected(pytester, *args, str(pytester.path / nodeid)) == [nodeid]


def test_suites_are_discovered_by_their_suffix_and_other_files_are_left_alone(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    for name in ("orders.jrh.yml", "more.jrh.yaml"):
        shutil.copy(recorded.tiny.config, name)
    Path("settings.yml").write_text("colour: blue\n", encoding="utf-8")
    names = [name.removeprefix(TINY) for name in BINARY]
    assert collected(pytester) == [
        *(f"more.jrh.yaml{name}" for name in names),
        *(f"orders.jrh.yml{name}" for name in names),
    ]


def test_a_config_behind_a_symbolic_link_keeps_the_name_it_was_given(
    pytester: pytest.Pytester, recorded: Recorded, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "store.yml"
    recorded.tiny.config.replace(elsewhere)
    recorded.tiny.config.symlink_to(elsewhere)
    assert collected(pytester, recorded.tiny.option) == BINARY


def test_the_plugin_can_be_switched_off(pytester: pytest.Pytester, recorded: Recorded) -> None:
    shutil.copy(recorded.tiny.config, "orders.jrh.yml")
    result = pytester.run(*python(), "-m", "pytest", "-p", "no:jrh", "-q")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_two_suites_of_one_name_and_of_one_cassette_folder_are_refused(
    pytester: pytest.Pytester, recorded: Recorded
) -> None:
    shutil.copy(recorded.tiny.config, "tiny.yml")
    for suite in (recorded.panel, recorded.scale):
        suite.configure({"replay": {"cassette_dir": "shared"}})
    options = (recorded.tiny.option, "--jrh-config=tiny.yml")
    shared = (recorded.panel.option, recorded.scale.option)
    result = pytester.runpytest_inprocess(*options, *shared)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "*tiny.yml: a suite is named after its file*is a suite `tiny` too*",
            "*would share the cassette folder*shared*",
        ]
    )


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
