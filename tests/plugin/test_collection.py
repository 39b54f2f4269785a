"""Node ids, selection and discovery: a suite behaves as any pytest suite does, and is the same one
wherever its config, pytest's rootdir and the starting folder are."""

import json
import re
import shlex
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.plugin.gated import LAX, TINY, Project
from tests.plugin.recorded import PERTURBATION, POSITIVES, Recorded
from tests.support.ledgers import case_lines

SCALE = "inputs/configs/scale.yml"
NAMES = [f"::{test}run-{n}[e1]" for test in (PERTURBATION, POSITIVES) for n in (1, 2, 3, 4)]
BINARY = [f"{TINY}{name}" for name in NAMES]
ORDINAL = [
    *(f"{SCALE}::{PERTURBATION}run-1[e1-score_{score}]" for score in (0, 1, 2)),
    f"{SCALE}::{POSITIVES}run-1[e1-score_2]",
]
PANEL = [
    f"inputs/configs/panel.yml::{test}run-1[e1-{judge}]"
    for test in (PERTURBATION, POSITIVES)
    for judge in ("strict", "kind%20one")
]


def collected(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    """The node ids that `--collect-only -q` prints."""
    result = pytester.runpytest_inprocess("--collect-only", "-q", *arguments)
    assert result.ret == pytest.ExitCode.OK, result.stdout.str()
    return [line for line in result.outlines if "::" in line]


def test_cases_are_named_and_collecting_asks_no_model_and_writes_nothing(
    pytester: pytest.Pytester, recorded: Recorded, tmp_path: Path
) -> None:
    """After config, test, rubric, run, epoch, score and judge; suites in the order given, each
    once, and under the name of a link to it."""
    tiny = recorded.tiny.config
    tiny.replace(tmp_path / "store.yml")
    tiny.symlink_to(tmp_path / "store.yml")
    unused = recorded.tiny.cassettes / "agent_positives/rubric-1/run-9.e1.generation.yaml"
    unused.write_text("version: 1\n", encoding="utf-8")
    before = sorted(path for path in pytester.path.rglob("*") if "cache" not in str(path))
    options = (recorded.panel.option, recorded.tiny.option, recorded.scale.option)
    again = (recorded.tiny.option, f"--jrh-config=inputs/../{TINY}")
    more = ("--jrh-record-mode=all", "--jrh-prune", "-p", "no:cacheprovider")
    assert collected(pytester, *options, *again, *more) == [*PANEL, *BINARY, *ORDINAL]
    assert sorted(path for path in pytester.path.rglob("*") if "cache" not in str(path)) == before


def test_items_are_selected_as_any_others(pytester: pytest.Pytester, recorded: Recorded) -> None:
    ids = (BINARY[0], f"{TINY}::{PERTURBATION}run-3", f"{TINY}::agent_positives", BINARY[1])
    options = ("-k", "not run-1", "-m", "jrh", "--deselect", BINARY[7], "--strict-markers")
    assert collected(pytester, *ids, *options) == [BINARY[2], *BINARY[5:7], BINARY[1]]


UNIT = "tests/test_unit.py::test_unit"
PACKAGED = "package/test_packaged.py::test_packaged"


@pytest.fixture
def mixed(pytester: pytest.Pytester, recorded: Recorded) -> Recorded:
    """A project with tests of its own, whose ini file names a suite."""
    pytester.makeini(f"[pytest]\ntestpaths = tests\njrh_config = {TINY}\n")
    for name in ("tests/test_unit.py", "package/test_packaged.py", "package/__init__.py"):
        path = pytester.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"def {path.stem}(): assert 0\n", encoding="utf-8")
    return recorded


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("", f"tests {TINY}"),
        ("tests", "tests"),
        (f"{BINARY[1]} {UNIT}", f"{BINARY[1]} {UNIT}"),
        ("@typed.txt", f"tests {SCALE}"),
        (f"--jrh-config={SCALE} inputs", "inputs"),
    ],
)
def test_wanted_suites(pytester: pytest.Pytester, mixed: Recorded, line: str, wanted: str) -> None:
    (pytester.path / "typed.txt").write_text(f"--jrh-config={SCALE}\ntests\n", encoding="utf-8")
    config = pytester.parseconfigure(*shlex.split(line))
    assert [each.removeprefix(f"{pytester.path}/") for each in config.args] == wanted.split()


def test_suites_are_found_by_their_suffix(pytester: pytest.Pytester, mixed: Recorded) -> None:
    for name in ("orders.jrh.yml", "more.jrh.yaml"):
        shutil.copy(mixed.tiny.config, f"tests/{name}")
    Path("settings.yml").write_text("colour: blue\n", encoding="utf-8")
    found = [
        f"tests/{file}{name}" for file in ("more.jrh.yaml", "orders.jrh.yml") for name in NAMES
    ]
    assert sorted(collected(pytester, ".")) == sorted([*BINARY, *found, PACKAGED, UNIT])


def test_editors_run_single_tests_by_the_docs(pytester: pytest.Pytester, mixed: Recorded) -> None:
    """VS Code collects with `pytestArgs`, and runs absolute node ids with its options."""
    page = (Path(__file__).parents[2] / "docs" / "recordings.md").read_text("utf-8")
    section = page.partition("## Beside other tests")[2]
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL))
    assert "inputs/configs/support.yml" in blocks["ini"]
    pytester.makeini(blocks["ini"].replace("inputs/configs/support.yml", TINY))
    args = [
        "--rootdir",
        str(pytester.path),
        *json.loads(blocks["json"])["python.testing.pytestArgs"],
    ]
    all_of_it = pytester.parseconfigure(*args)
    assert all_of_it.args == ["tests", str(mixed.tiny.config)]
    nodeid = BINARY[5]
    [item], _ = pytester.inline_genitems(*args, str(pytester.path / nodeid))
    assert item.nodeid == nodeid
    # `vscode_pytest` nests an item in the `pytest.Class`es above it, up to its file.
    rubric, test, file = list(item.iter_parents())[1:4]
    assert isinstance(rubric, pytest.Class)
    assert isinstance(test, pytest.Class)
    assert isinstance(file, pytest.File)
    assert not isinstance(file, pytest.Class)
    assert [rubric.name, test.name, file.path] == ["rubric-1", "agent_positives", mixed.tiny.config]
    assert rubric.obj is None


def test_the_plugin_can_be_switched_off(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig("-p", "no:jrh")
    assert not config.pluginmanager.has_plugin("jrh")


def test_two_suites_of_one_name_are_refused(pytester: pytest.Pytester, recorded: Recorded) -> None:
    shutil.copy(recorded.tiny.config, "tiny.yml")
    for suite in (recorded.panel, recorded.scale):
        suite.configure({"recording": {"dir": "shared"}})
    options = (recorded.tiny.option, "--jrh-config=tiny.yml")
    shared = (recorded.panel.option, recorded.scale.option)
    result = pytester.runpytest_inprocess(*options, *shared)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    named = "*tiny.yml: the suite of *has the name `tiny`, too, because a suite*"
    result.stderr.fnmatch_lines([named, "*would share the folder*shared*"])


ACCURATE = "{min_accuracy: 0.95}"
AGAIN = "run it again: pytest "


def test_the_gate_decides_outside_of_rootdir(pytester: pytest.Pytester, project: Project) -> None:
    for name in ("tests", "elsewhere"):
        (project.folder / name).mkdir()
    shutil.move(project.folder / LAX, project.folder / "elsewhere")
    first = pytester.runpytest("--rootdir=tests", "--jrh-config=elsewhere/tiny.yml", "-v")
    assert first.ret == pytest.ExitCode.TESTS_FAILED
    assert "FAIL  the judge misses 4 of 4 violations" in first.outlines
    [results] = project.folder.rglob("results.jsonl")
    assert len(case_lines(results)) == 8
    command = next(line for line in first.outlines if line.startswith(AGAIN))
    again = pytester.runpytest(*shlex.split(command.removeprefix(AGAIN)))
    again.assert_outcomes(failed=1)
    [failure] = [line for line in again.outlines if line.startswith("FAILED ")]
    assert "::agent_perturbation::rubric-1::run-1[e1] - The judg" in failure


def test_suites_outside_rootdir_are_told_apart(pytester: pytest.Pytester, project: Project) -> None:
    """Both have a rubric and runs of the same names."""
    (project.folder / "tests").mkdir()
    (project.folder / "tests/pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    shutil.copyfile(project.folder / TINY, project.folder / "inputs/configs/other.yml")
    shutil.copytree(project.suite.cassettes, project.suite.cassettes.parent / "other")
    suites = (f"--jrh-config={LAX}", "--jrh-config=inputs/configs/other.yml")
    done = pytester.runpytest("tests", *suites, "--junitxml=all.xml", "-k", "run-1")
    done.assert_outcomes(failed=1, passed=3, deselected=12)
    folders = {path.parent.name for path in project.folder.rglob("results.jsonl")}
    assert folders == {"tiny", "other"}
    cases = ElementTree.parse(project.folder / "all.xml").getroot().iter("testcase")
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == 4


def test_ending_before_a_suite_is_not_green(pytester: pytest.Pytester, project: Project) -> None:
    project.rules(LAX, ACCURATE)
    pytester.makepyfile(
        test_other="import pytest\n\ndef test_other(): pytest.exit('enough', returncode=0)\n"
    )
    done = pytester.runpytest("test_other.py", f"--jrh-config={LAX}")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    why = "in the suite 'tiny', no decision was made, because no case of the suite was run."
    assert f"note: This session is not green: {why}" in done.outlines
