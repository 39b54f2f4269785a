"""What is said about keys and values of a config that cannot be used, and of text that is none."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_jrh.config import rand
from pytest_jrh.config.load import load_suite
from pytest_jrh.core import InputError
from pytest_jrh.core.documents import MAX_BYTES
from tests.support.configs import AGENT, CONFIG, Folder, changed, minimal

GRADED = {"python": f"{CONFIG}:graded"}
SCORER = {"inspect_scorer": "package/graded"}
PATTERN = {"prompt_path": CONFIG, "verdict": "(yes)"}
MAPPED = {"prompt_path": CONFIG, "score_map": {"no": 2}}
TOGETHER = {"together": True}


def test_unknown_key_names_the_nearest_match_and_its_line(folder: Folder) -> None:
    text = yaml.safe_dump(minimal()).replace("admin:\n", "admin:\n  modul_name: x\n", 1)
    problem = folder.problem(text)
    assert (problem.file, problem.line, problem.key) == (CONFIG, 2, "admin.modul_name")
    assert problem.message.startswith('unknown key; the keys of admin are "module_name", ')
    assert problem.hint == '"module_name" is the nearest key'


def test_a_secret_in_a_config_is_refused_and_not_repeated(folder: Folder) -> None:
    problem = folder.problem(changed(f"{AGENT}.editor.api_key", "sk-" + "a" * 40))
    assert "environment" in (problem.hint or "")
    assert "sk-" not in str(problem)


@pytest.mark.parametrize(
    ("path", "value", "message", "hint"),
    [
        ("gate.proof", "false", 'got "false"; must be true or false', None),
        ("gate.min_accuracy", 90, "got 90; must be a number from 0 to 1", None),
        ("blind.labels", "no/such.jsonl", 'the file of blind labels "no/such.jsonl"', None),
        (f"{AGENT}.max_edit_rounds", True, "got true; must be an integer", None),
        (f"{AGENT}.objective", "fial", 'fial"; must be "fail" or', '"fail" is the nearest name'),
        (f"{AGENT}.output", "x", 'must be a mapping with one or more of the keys "dir"', None),
        (f"{AGENT}.planner", "gpt-5", "must be a mapping", 'write planner: {model: "gpt-5"}'),
        (f"{AGENT}.planner.temperature", float("nan"), "got nan; must be a number", None),
        (f"{AGENT}.planner.api_base", "host:80", 'got "host:80"; must be a URL', None),
        (f"{AGENT}.planner.model", 5, "got 5; must be text", None),
        (f"{AGENT}.planner.rate_limit.calls", 3, "is missing; must be a number above 0", None),
        (f"{AGENT}.target_rubric_ids", "kind", "must be a list of rubric ids", None),
        (f"{AGENT}.score_targets", [1, 1.5], "got [1, 1.5]; must be integers", None),
        ("admin.evaluation_config.template", "multiclass", "agent_judge (binary), ", None),
        ("admin.perturbation_config.tests_to_run", ["lables"], "", '"labels" is'),
        ("admin.perturbation_config.tests_to_run", [], "names no test; name", None),
        ("cases.frozen", 1, "got 1; must be true", None),
        ("probes.positoin", {}, 'got "positoin"; must be a p', '"position" is the nearest name'),
        ("gate.probes.position", 0.1, 'a mapping with one or more of the keys "max_rate"', None),
        ("judge.score_map", {"yes": 1, "no": 0}, "the built-in prompt asks for scores", None),
        ("judge.verdict", "Verdict: (yes|no)", "the built-in prompt asks for scores", None),
        ("judge", SCORER | TOGETHER, "which is given only one rubric at a time", None),
        ("judge", PATTERN | TOGETHER, "which finds one verdict in a text", None),
        ("judge.verdict", "(yes", 'got "(yes"; must be a regular expression with one', None),
        ("judge.verdict", "(yes)|(no)", "must be a regular expression with one group", None),
        ("judge", {**GRADED, "verdict": "(yes)"}, "not apply to a judge that has the key", None),
        ("judge", MAPPED, "must be one of the answers 0 (satisfied), 1 (", None),
        ("judge", {**GRADED, "threshold": 2}, "must be a number from 0 to 1", None),
        ("judge", {"model": "m", "threshold": 0.5}, "only for a judge in Python, in a b", None),
        ("judge", {**GRADED, "threshold": 0.5, "score_map": {"a": 1}}, "without score_map", None),
        (
            "judge",
            {"random": True},
            "does not apply to a judge that is a prompt",
            "a judge with python",
        ),
        ("judge", {**GRADED, "random": "yes"}, "must be true or false", None),
        ("suite.within", 1, "needs an ordinal suite, but this suite is binary", "remove this key"),
        ("suite.within", -1, "got -1; must be an integer >= 0", None),
        ("planer", {}, 'unknown key; the sections of a config are "suite", "cases"', None),
    ],
)
def test_a_bad_value_says_what_was_there_and_what_may_be_there(
    folder: Folder, path: str, value: object, message: str, hint: str | None
) -> None:
    problem = folder.problems(changed(path, value))[0]
    assert (problem.key or "").startswith(path.rpartition(".")[0])
    assert message in problem.message
    assert "nput should" not in problem.message
    if hint:
        assert hint in (problem.hint or "")


def test_all_values_that_do_not_fit_are_reported_at_once_and_then_all_else(folder: Folder) -> None:
    folder.rubrics([{"id": "a"}])
    data = minimal()
    data["admin"]["dataset_config"]["dataset_name"] = "no.eval"
    data[AGENT] = {"planner": {"modle": "x", "prompt_path": "no.md"}, "max_edit_rounds": "3"}
    keys = [problem.key for problem in folder.problems(data)]
    assert keys == [f"{AGENT}.planner.modle", f"{AGENT}.max_edit_rounds"]
    data[AGENT] = {"planner": {"prompt_path": "no.md"}}
    keys = [problem.key for problem in folder.problems(data)]
    missing = ["admin.dataset_config.dataset_name", f"{AGENT}.planner.prompt_path"]
    assert keys == [*missing, "[0].instructions"]


def test_a_missing_section_is_reported_once_per_thing_that_is_needed(folder: Folder) -> None:
    messages = [str(problem) for problem in folder.problems({"admin": {}})]
    needed = ("tests_to_run", "input_log_path", "rubric_path", "judge.model", "editor.model")
    assert [sum(f"{name}: " in message for message in messages) for name in needed] == [1] * 5
    assert len(messages) == 5


def test_values_are_shortened_and_stripped_of_escapes(folder: Folder) -> None:
    problem = folder.problem(changed(f"{AGENT}.objective", "\x1b[31mred\x1b[0m\x07 " + "x" * 500))
    assert "\x1b" not in problem.message
    assert "\x07" not in problem.message
    assert '"red' in problem.message
    assert len(problem.message) < 130


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "is empty"),
        ("- a\n- b\n", 1, "got a list"),
        ("admin:\n  a: [1,\n", 3, "is not valid YAML"),
        ("admin:\n  a: {b: 1\n  c: 2\n", 2, "bracket is open"),
        ('admin:\n  a: "b\n  c: 1\n' + "  d: 1\n" * 20, 2, "quote or bracket is open"),
        ("admin:\n\tmodule_name: x\n", 2, "cannot start any token"),
        ("admin: {}\n---\nadmin: {}\n", 2, "another document"),
        ("admin: !!python/object/apply:os.system ['true']\n", 1, "python/object/apply:os.system"),
        ("admin:\n  ? [a]\n  : b\n", 2, "unhashable key"),
        ("admin: " + "9" * 5000 + "\n", None, "is not valid YAML"),
        ("admin:\n  module_name: a\n  module_name: b\n", 3, "in lines 2 and 3"),
        ("{<<: 3}\n", 1, "for merging"),
    ],
)
def test_yaml_that_is_no_config(folder: Folder, text: str, line: int | None, message: str) -> None:
    (problem,) = [each for each in folder.problems(text) if message in str(each)]
    assert (problem.file, problem.line) == (CONFIG, line)


def test_files_that_are_no_text_are_refused(folder: Folder) -> None:
    path = folder.root / CONFIG
    for content, said in (
        (b"admin:\n  a: \xff\n", f"{CONFIG}:2: is not UTF-8 text"),
        (b"PK\x03\x04\x00\x00", "is a zip archive"),
        (b"a" * (MAX_BYTES + 1), "at most"),
        (None, "no such file"),
    ):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(InputError, match=said):
            load_suite(path, cwd=folder.root, rootdir=folder.root)
    path.mkdir()
    with pytest.raises(InputError, match="not a file"):
        load_suite(path, cwd=folder.root, rootdir=folder.root)


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(folder: Folder) -> None:
    text = "\ufeff" + yaml.safe_dump(minimal()).replace("\n", "\r\n")
    (folder.root / CONFIG).write_bytes(text.encode())
    assert load_suite(Path(CONFIG), cwd=folder.root, rootdir=folder.root).module_name == "demo"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_value_anywhere_gives_a_traceback(folder: Folder, data: st.DataObject) -> None:
    config = minimal()
    names = st.text(max_size=9)
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=6,
    )
    paths = [path for written, ours in rand.ROWS for path in (written, rand.key_path(ours))]
    for *sections, key in data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=3)):
        here: Any = config
        for section in sections:
            here = here.setdefault(section, {}) if isinstance(here, dict) else {}
        if isinstance(here, dict):
            here[key] = data.draw(values)
    with contextlib.suppress(InputError):
        folder.load(config)
