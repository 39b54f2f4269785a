"""Sessions of a suite whose cases share a cassette for each test and rubric."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_jrh.recording.cassettes import SHARED, Cassette, SharedCassette
from tests.plugin.recorded import lenient_about_order_1002, run_pytest
from tests.support.model_server import ModelServer, Obedient, override
from tests.support.suites import SuiteFiles, write_suite

ONE_CASSETTE = "from pytest_jrh.config.suite import Suite\n\nSuite.one_cassette = True\n"
TESTS = ("agent_perturbation", "agent_positives")
ALL_MODES = ("--jrh-record-mode=all", "--jrh-record-mode=new_episodes")


def names_of(suite: SuiteFiles, test: str) -> list[str]:
    return SharedCassette.at(suite.cassettes / test / "rubric-1" / SHARED).names()


def files_of(suite: SuiteFiles) -> dict[Path, bytes]:
    """The recordings of a suite, which are two files."""
    files = {path: path.read_bytes() for path in suite.cassettes.rglob("*.yaml")}
    assert sorted(files) == [suite.cassettes / test / "rubric-1" / SHARED for test in TESTS]
    return files


def results_of(suite: SuiteFiles) -> dict[str, object]:
    """What is in the ledger of each case of what it took, and whether its judge is wrong."""
    results: dict[str, object] = {}
    for line in (suite.results / "results.jsonl").read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        if "case_id" in result:
            results[result["case_id"]] = result.get("replay"), result.get("judge_scores")
    return results


@pytest.fixture(scope="module")
def recorded_suite(tmp_path_factory: pytest.TempPathFactory) -> SuiteFiles:
    folder = tmp_path_factory.mktemp("one")
    suite = write_suite(folder, runs=4, overrides={"admin": {"evaluation_config": {"repeats": 2}}})
    (folder / "conftest.py").write_text(ONE_CASSETTE, encoding="utf-8")
    with ModelServer(override(Obedient(), judge=lenient_about_order_1002)) as server:
        environment = server.environment
        done = run_pytest(
            folder, suite.option, "--jrh-record-mode=once", "-n2", "-v", env=environment
        )
    assert f"{files_named(suite, 'agent_perturbation')}" in done.stdout
    return suite


def files_named(suite: SuiteFiles, test: str) -> str:
    return f"inputs/cassettes/{suite.name}/{test}/rubric-1/{SHARED}"


@pytest.fixture
def suite(recorded_suite: SuiteFiles, tmp_path: Path) -> SuiteFiles:
    shutil.copytree(recorded_suite.folder, tmp_path, dirs_exist_ok=True)
    config = tmp_path / recorded_suite.config.relative_to(recorded_suite.folder)
    return SuiteFiles(tmp_path, config, recorded_suite.module)


def test_workers_record_into_one_file_and_replay_it_without_a_call(suite: SuiteFiles) -> None:
    files = files_of(suite)
    names = [f"run-{number}.e1" for number in range(1, 5)]
    assert names_of(suite, "agent_perturbation") == [
        f"{name}.{kind}" for name in names for kind in ("generation", "judge-default")
    ]
    taken = results_of(suite)
    with ModelServer() as server:
        for workers in ("-n0", "-n2"):
            shutil.rmtree(suite.results)
            done = run_pytest(suite.folder, suite.option, workers, env=server.environment)
            assert "1 failed" in done.stdout
            assert "no verdict" not in done.stdout
            assert results_of(suite) == taken
        assert server.count() == 0
    assert files_of(suite) == files


@pytest.mark.parametrize("mode", ["all", "new_episodes"])
def test_a_case_that_is_recorded_again_replaces_its_own_calls(suite: SuiteFiles, mode: str) -> None:
    before = {path: json.dumps(heads(path)) for path in files_of(suite)}
    with ModelServer() as server:
        done = run_pytest(
            suite.folder,
            suite.option,
            f"--jrh-record-mode={mode}",
            "-k",
            "positives and run-2",
            env=server.environment,
        )
        assert "1 passed" in done.stdout
        assert bool(server.count()) == (mode == "all")
    files_of(suite)
    perturbation, positives = before
    assert json.dumps(heads(perturbation)) == before[perturbation]
    now = heads(positives)
    was = json.loads(before[positives])
    assert [*now] == [*was]
    assert {name for name in now if now[name] != was[name]} <= {
        "run-2.e1.generation",
        "run-2.e1.judge-default",
    }


def heads(path: Path) -> dict[str, object]:
    head = path.read_text(encoding="utf-8").partition("\ninteractions:")[0]
    cases = json.loads(head.removeprefix("metadata:"))["jrh"]["cases"]
    assert isinstance(cases, dict)
    return cases


def test_what_a_killed_session_left_is_answered_from_and_gathered_later(suite: SuiteFiles) -> None:
    files = files_of(suite)
    shared = SharedCassette.at(suite.cassettes / "agent_positives" / "rubric-1" / SHARED)
    own = shared.path.with_name("run-3.e1.judge-default.yaml")
    Cassette.load(own, interactions=True).save()
    shared.update({own.stem: None})
    with ModelServer() as server:
        done = run_pytest(suite.folder, suite.option, env=server.environment)
        assert "1 failed" in done.stdout
        # A replay writes nothing.
        assert own.exists()
        run_pytest(suite.folder, suite.option, "--jrh-record-mode=once", env=server.environment)
        assert server.count() == 0
    assert files_of(suite) == files


def test_a_case_without_a_recording_names_the_file_and_unused_ones_go(suite: SuiteFiles) -> None:
    shared = SharedCassette.at(suite.cassettes / "agent_positives" / "rubric-1" / SHARED)
    gone, unused = "run-1.e1.judge-default", "run-9.e1.judge-default"
    cassette = Cassette.load(shared.path.with_name(f"{gone}.yaml"), interactions=True)
    shared.update({gone: None, unused: cassette})
    planned = run_pytest(suite.folder, suite.option, "--jrh-plan", "--jrh-prune")
    place = f"{files_named(suite, 'agent_positives')}: {unused}"
    assert f"unused cassettes: 1\n  {place}\n" in planned.stdout
    assert unused in names_of(suite, "agent_positives")
    done = run_pytest(suite.folder, suite.option, "--jrh-prune", "-v")
    assert f"removed cassettes: 1\n  {place}\n" in done.stdout
    assert f"cassette: {files_named(suite, 'agent_positives')}\n" in done.stdout
    assert unused not in names_of(suite, "agent_positives")
    shared.path.write_text("<<<<<<< HEAD\n", encoding="utf-8")
    refused = run_pytest(suite.folder, suite.option, "--jrh-prune", "-v")
    assert refused.code == 1
    assert "Restore the file from version control" in refused.stdout
    assert "Traceback" not in refused.stdout + refused.stderr
