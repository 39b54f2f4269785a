"""The door of the config: RAND's files in words of our own."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_jrh.config import rand
from pytest_jrh.config.load import fit
from pytest_jrh.config.schema import Config
from pytest_jrh.core import InputError
from pytest_jrh.core.documents import KeyPath, dotted, read_document
from tests.support.configs import Folder, changed, minimal


def nested(path: KeyPath, value: Any) -> dict[str, Any]:
    for part in reversed(path):
        value = {part: value}
    return dict(value)


def fitted(tmp_path: Path, data: dict[str, Any]) -> Any:
    path = tmp_path / "config.yml"
    path.write_text(yaml.safe_dump(data), "utf-8")
    return fit(read_document(path, str(path)))[1]


@pytest.mark.parametrize(
    ("written", "ours"),
    [*rand.ROWS, *rand.FALLBACKS],
    ids=[dotted(written) for written, _ in (*rand.ROWS, *rand.FALLBACKS)],
)
def test_each_key_of_rands_is_one_of_ours(tmp_path: Path, written: KeyPath, ours: str) -> None:
    section: Any = Config
    for part in ours.split(".")[:-1]:
        section = section.model_fields[part].annotation
    assert ours.rsplit(".", maxsplit=1)[-1] in section.model_fields
    with pytest.raises(InputError) as refused:
        fitted(tmp_path, nested(written, {"no": {"such": "key"}}))
    assert (refused.value.problems[0].key or "").startswith(dotted(written))


@pytest.mark.parametrize("path", rand.UNUSED, ids=dotted)
def test_a_key_without_meaning_is_named_and_changes_nothing(tmp_path: Path, path: KeyPath) -> None:
    found = fitted(tmp_path, nested(path, {"any": [1]}))
    assert found.unused == [path]
    assert not found.mistakes


def ours(*kinds: str) -> dict[str, Any]:
    return {
        "suite": {"log": "inputs/data/demo/demo.eval", "rubrics": "inputs/data/demo/rubric.json"},
        "cases": {"kinds": [*kinds]},
        "judge": {"model": minimal()["admin"]["evaluation_config"]["autograder_model_name"]},
        "editor": {"model": minimal()["synthetic_data_params"]["generation_model_name"]},
    }


def test_a_config_in_our_words_is_the_suite_of_one_in_rands(folder: Folder) -> None:
    suite, rands = folder.load(ours("perturbation", "positives")), folder.load(minimal())
    assert (suite.name, suite.mode, suite.rubrics) == (rands.name, rands.mode, rands.rubrics)
    assert (suite.judges[0].stage, suite.stages) == (rands.judges[0].stage, rands.stages)
    assert (suite.logs, suite.config.cases) == (rands.logs, rands.config.cases)


TO_RUN, PROBES = (f"admin.perturbation_config.{key}" for key in ("tests_to_run", "probes"))
EVALUATED = "admin.evaluation_config.tests_to_evaluate"
OURS, RANDS = '"perturbation", "positives", ', 'one of "agent_perturbation", "agent_positives",'
TESTS = "a list of tests (agent_perturbation, agent_positives, labels,"
OF = changed(PROBES, {"position": {"of": ["positives"]}})


@pytest.mark.parametrize(
    ("data", "key", "got", "may_be", "nearest"),
    [
        (ours("agent_perturbation"), "cases.kinds[0]", "agent_perturbation", OURS, "perturbation"),
        (ours("agent_positives"), "cases.kinds[0]", "agent_positives", OURS, "positives"),
        (ours("positive"), "cases.kinds[0]", "positive", OURS, "positives"),
        (changed(TO_RUN, ["positives"]), f"{TO_RUN}[0]", "positives", RANDS, "agent_positives"),
        (changed(EVALUATED, "labels"), EVALUATED, "labels", TESTS, None),
        (OF, f"{PROBES}.position.of[0]", "positives", RANDS, "agent_positives"),
    ],
)
def test_our_files_have_our_words_for_kinds_of_tests_and_rands_have_rands(
    folder: Folder, data: dict[str, Any], key: str, got: str, may_be: str, nearest: str | None
) -> None:
    problem = folder.problem(data)
    assert problem.key == key
    assert problem.message.startswith(f'got "{got}"; must be {may_be}')
    assert problem.hint == (nearest and f'"{nearest}" is the nearest name')


def test_rands_files_take_labels_and_probes_beside_rands_tests(folder: Folder) -> None:
    data = changed("labels", {"path": "labels.csv"})
    (folder.root / "labels.csv").write_text("run_id,rubric_id,label\n")
    names = ["agent_positives", "labels", "position"]
    data["admin"]["perturbation_config"]["tests_to_run"] = names
    data["admin"]["evaluation_config"]["tests_to_evaluate"] = ["agent_perturbation"]
    problem = folder.problem(data)
    assert problem.message == (
        'got "agent_perturbation", but admin.perturbation_config.tests_to_run has only '
        '"agent_positives", "labels", "position"'
    )
    data["admin"]["evaluation_config"]["tests_to_evaluate"] = ["agent_positives"]
    assert [test.name for test in folder.load(data).tests] == names


def test_what_two_keys_say_is_refused(folder: Folder) -> None:
    problem = folder.problem(minimal() | {"cases": {"kinds": ["positives"]}})
    assert problem.key == "admin.perturbation_config.tests_to_run"
    assert problem.message == "cases.kinds sets the same value; remove one of these two keys"
