"""New cassettes and results are made where every other session looks for them."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.config.load import load_suite
from pytest_jrh.config.suite import Suite, argument
from tests.support.suites import SuiteFiles, write_suite


@pytest.fixture
def files(tmp_path: Path) -> SuiteFiles:
    for name in ("sub", "tests"):
        (tmp_path / name).mkdir()
    return write_suite(tmp_path)


def load(files: SuiteFiles, cwd: str, rootdir: str, config: Path | None = None) -> Suite:
    folders: Any = {"cwd": files.folder / cwd, "rootdir": files.folder / rootdir}
    return load_suite(config or files.config, **folders)


# In the root, in a folder below, and with a config outside of rootdir.
@pytest.mark.parametrize(("cwd", "rootdir"), [(".", "."), ("sub", "."), (".", "tests")])
def test_new_places_are_where_inputs_were_found(files: SuiteFiles, cwd: str, rootdir: str) -> None:
    expected = ["inputs/cassettes/tiny", "outputs/tiny", "inputs/custom_prompts/tiny"]
    expected += ["outputs/agent_perturbation/tiny", "outputs/agent_positives"]
    suite = load(files, cwd, rootdir)
    places = [suite.cassette_dir, suite.results_dir, suite.custom_prompts_dir]
    places += [test.output_dir for test in suite.tests]
    assert places == [files.folder / name for name in expected]


def test_a_place_that_exists_is_found_as_inputs_are(files: SuiteFiles) -> None:
    below = files.folder / "sub/inputs/cassettes/tiny"
    below.mkdir(parents=True)
    assert load(files, "sub", ".").cassette_dir == below
    assert load(files, ".", ".").cassette_dir == files.folder / "inputs/cassettes/tiny"


@pytest.mark.parametrize(
    ("config", "results"),
    [
        ("inputs/configs/tiny.yml", "outputs/tiny"),
        ("examples/prompt change/tiny.yml", "outputs/examples/prompt%20change/tiny"),
        ("suites/tiny.jrh.yml", "outputs/suites/tiny.jrh"),
    ],
)
def test_results_of_one_name_are_kept_apart(files: SuiteFiles, config: str, results: str) -> None:
    path = files.folder / config
    path.parent.mkdir(parents=True, exist_ok=True)
    if path != files.config:
        shutil.copyfile(files.config, path)
    for cwd in (".", "sub"):
        suite = load(files, cwd, ".", path)
        assert suite.results_dir == files.folder / results
        if config != "inputs/configs/tiny.yml":
            assert {test.output_dir for test in suite.tests} == {files.folder / results}


def test_a_path_that_pytest_would_misread_begins_with_its_folder(tmp_path: Path) -> None:
    """pytest takes `@file` for a file of arguments, and `-x` for an option."""
    for path, said in {"@a/x.yml": "./@a/x.yml", "-x.yml": "./-x.yml", "x.yml": "x.yml"}.items():
        assert argument(tmp_path / path, tmp_path) == said
    assert argument(tmp_path / "@x.yml", tmp_path / "sub") == "../@x.yml"
