"""Which runs belong together: `cluster_key` over the metadata of a log's samples."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core import InputError
from pytest_jrh.core.cases import CaseSpec
from pytest_jrh.engine.suite import make_ready
from pytest_jrh.sources import open_source
from pytest_jrh.sources.source import clusters_by, with_clusters
from pytest_jrh.store.records import record_line, to_record
from tests.support.configs import AGENT
from tests.support.logs import rewrite, sample, write_log
from tests.support.made_cases import make_case
from tests.support.random_conversations import JSON
from tests.support.suites import rubric, run, write_suite

LONG = "a long name, " * 200


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    samples = [
        sample("a", 1, metadata={"task": "refund", "at": {"shop": 1, "deep/er": {"x~y": True}}}),
        sample("a", 2, metadata={"task": " refund\n", "at": {"shop": 2}}),
        sample("b", 1, metadata={"task": 7, "long": LONG}),
        sample("c", 1, metadata={"task": True, "long": f"{LONG}!"}),
        sample("d", 1, metadata={"task": None, "more": {"who": "x" * 2_000}}),
        sample("e", 1),
    ]
    return write_log(tmp_path_factory.mktemp("logs") / "made.eval", samples)


def clusters(path: Path, key: str) -> dict[str, str | None]:
    with open_source(path) as source:
        return {f"{run.run_id}{run.epoch}": run.cluster for run in with_clusters(source, key)}


NOTHING: dict[str, str | None] = dict.fromkeys(["a1", "a2", "b1", "c1", "d1", "e1"])


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("task", {"a1": "refund", "a2": "refund", "b1": "7", "c1": "true"}),
        ("/task", {"a1": "refund", "a2": "refund", "b1": "7", "c1": "true"}),
        ("/at/shop", {"a1": "1", "a2": "2"}),
        ("/at/deep~1er/x~0y", {"a1": "true"}),
    ],
)
def test_samples_of_one_value_are_one_cluster(made: Path, key: str, found: dict[str, str]) -> None:
    from inspect_ai.log import read_eval_log, write_eval_log

    as_json = made.with_suffix(".json")
    write_eval_log(read_eval_log(made), as_json)
    assert clusters(made, key) == clusters(as_json, key) == NOTHING | found


def test_what_a_summary_shortens_is_taken_from_the_sample(made: Path, tmp_path: Path) -> None:
    found = clusters(made, "long")
    assert found["b1"] != found["c1"]
    assert all(text is None or len(text) <= 120 for text in found.values())
    assert clusters(made, "/more/who")["d1"]
    # A damaged sample has none, and stops no others.
    damage = {"samples/b_epoch_1.json": b"{"}
    spoiled = rewrite(Path(shutil.copy(made, tmp_path)), lambda members: members.update(damage))
    found = clusters(spoiled, "long")
    assert found["b1"] is None
    assert found["c1"] is not None


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("tsk", 'no case has the field "tsk" in its metadata; the fields are "at", '),
        ("at", '"at" is an object or a list, but one value is needed'),
    ],
)
def test_a_key_that_names_nothing_teaches(made: Path, key: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        clusters(made, key)
    (problem,) = refused.value.problems
    assert problem.key == "cases.cluster"
    assert problem.message.startswith(message)
    assert problem.hint


@settings(max_examples=60)
@given(st.dictionaries(st.text(), JSON), st.text(min_size=1))
def test_any_metadata_is_a_short_text_or_a_mistake(metadata: Mapping[str, Any], key: str) -> None:
    said, found = "", None
    try:
        (found,) = clusters_by(key, [(("a", 1), metadata)]).values()
    except InputError as error:
        said = str(error)
    if found is None:
        assert 0 < len(said) < 5_000
        return
    assert len(found) <= 120
    assert found.isprintable() or not found.isascii()
    found.encode()


def test_a_frozen_suite_takes_clusters_from_its_records(tmp_path: Path) -> None:
    def case(run_id: str, **changes: Any) -> dict[str, Any]:
        spec = CaseSpec("tiny", "agent_perturbation", "rubric-1", run_id, 1, **changes)
        record = to_record(make_case(spec, metadata={"task": f"of {run_id[-1]}"}))
        return record | {"target_rubric": record["target_rubric"] | {"id": "rubric-1"}}

    records = [case("run-1", cluster="own"), case("run-2")]
    (tmp_path / "cases.jsonl").write_bytes(b"\n".join(map(record_line, records)))
    runs = [run(number, metadata={"task": "x"}) for number in (1, 2)]
    overrides = {AGENT: {"cluster_key": "task"}, "cases": {"frozen": "cases.jsonl"}}
    config = write_suite(tmp_path, runs=runs, rubrics=[rubric(1)], overrides=overrides).config
    for key, found in (("task", ["of 1", "of 2"]), ("null", ["own", None])):
        config.write_text(config.read_text().replace("cluster_key: task", f"cluster_key: {key}"))
        suite = make_ready(config, cwd=tmp_path, rootdir=tmp_path)
        assert [spec.cluster for spec in suite.specs()] == found
