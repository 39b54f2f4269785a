import copy
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_jrh.config import preprocessors
from pytest_jrh.config.preprocessors import apply, preprocessor_named, wants_raw_sample
from pytest_jrh.core import InputError
from pytest_jrh.core.cases import AgentRun, Unscored
from tests.support.logs import assistant, call, conversation, tool, user

THOUGHT = {"type": "reasoning", "reasoning": "hm"}


def run_of(messages: list[dict[str, Any]] | None = None) -> AgentRun:
    turns = conversation() if messages is None else messages
    return AgentRun("r1", 2, tuple(turns), input="in", target="out", metadata={"source": "test"})


def processed(messages: list[dict[str, Any]], *names: str) -> AgentRun:
    return apply(run_of(messages), [preprocessor_named(name) for name in names])


def test_dropping_tool_messages_keeps_the_calls() -> None:
    made = processed(conversation(), "drop_tool_messages")
    assert [*made.messages] == [turn for turn in conversation() if turn["role"] != "tool"]
    assert made.messages[2]["tool_calls"] == [call("look_up", order=7)]
    assert made.metadata == {"source": "test", "tool_messages_removed": 2}


def test_stripping_tool_outputs_keeps_the_messages_and_their_errors() -> None:
    searched = {"type": "tool_use", "name": "web_search", "arguments": "{}", "result": "found"}
    made = processed([*conversation(), assistant([searched])], "strip_tool_call_outputs")
    assert made.messages[3] == conversation()[3]
    assert made.messages[5] == tool("look_up", "", call_id="call-2")
    assert made.messages[7]["content"] == [{**searched, "result": ""}]
    counts = {"tool_call_outputs_stripped": 2, "tool_output_messages_removed": 0}
    assert made.metadata == {"source": "test", **counts}


def test_dropping_reasoning_keeps_the_other_blocks() -> None:
    text = {"type": "text", "text": "Hello."}
    turns = [assistant([THOUGHT, text, THOUGHT]), assistant([THOUGHT]), user("hi")]
    made = processed(turns, "drop_reasoning_traces")
    assert [message["content"] for message in made.messages] == [[text], [], "hi"]
    assert made.metadata["reasoning_traces_removed"] == 3


def test_comment_lines_are_kept_of_code_that_is_given_to_tools() -> None:
    calls = [call("run", code="# one\nx = 1  # not alone\n  # two"), call("run", code=1), call("f")]
    made = processed([assistant("# text\nend", *calls)], "keep_assistant_comment_lines")
    assert made.messages[0]["content"] == "# text\nend"
    assert made.messages[0]["tool_calls"][0]["arguments"] == {"code": "# one\n  # two"}
    assert made.messages[0]["tool_calls"][1:] == calls[1:]
    assert made.metadata["assistant_comment_lines"] == 2


def test_the_run_itself_is_left_alone() -> None:
    run = run_of()
    before = copy.deepcopy(run)
    apply(run, [preprocessor_named(name) for name in preprocessors.BUILT_IN])
    assert run == before


@pytest.mark.parametrize("name", list(preprocessors.BUILT_IN))
def test_built_ins_are_found_by_name_and_by_rands_path(name: str) -> None:
    for path in ("", "agent_helpers.preprocessors.", "agent_helpers.preprocessors:"):
        assert preprocessor_named(path + name) is preprocessors.BUILT_IN[name]


def test_own_preprocessors_are_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = "def shout(run):\n    return {'input': run['input'].upper()}\n"
    (tmp_path / "my_steps.py").write_text(steps)
    (tmp_path / "broken_steps.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("my_steps.shout", "my_steps:shout"):
        assert apply(run_of(), [preprocessor_named(name)]).input == "IN"
    with pytest.raises(InputError, match=r"'broken_steps\.fn'.*ZeroDivisionError"):
        preprocessor_named("broken_steps.fn")
    assert "broken_steps" not in sys.modules


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nonsense", "the built-in preprocessors are drop_tool_messages, strip_"),
        ("json.loadz", "has no attribute 'loadz'"),
        ("..", "'..' cannot be imported"),
    ],
)
def test_a_name_that_finds_nothing_is_explained(name: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        preprocessor_named(name)
    assert said in str(caught.value)
    assert caught.value.problems[0].key == "cases.preprocess"


def test_each_step_changes_what_the_last_one_left_in_place_by_a_list_or_by_a_dict() -> None:
    def change(run: dict[str, Any]) -> None:
        run["messages"].pop(0)
        run["metadata"]["seen"] = True

    steps = [change, lambda run: run["messages"][:2], lambda run: {"input": run["input"] + "2"}]
    made = apply(run_of(), steps)
    assert made.messages == tuple(conversation()[1:3])
    assert made.metadata == {"source": "test", "seen": True}
    assert (made.input, made.target) == ("in2", "out")


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (lambda run: run["nothing here"], "raised KeyError: 'nothing here'"),
        (
            lambda run: run.__delitem__("target"),
            "set the keys run_id, epoch, input, messages, metadata; the keys must be",
        ),
        (lambda _: 3, "returned int 3"),
        (lambda _: {"mesages": []}, "metadata, mesages; the keys must be run_id, epoch, i"),
        (lambda _: {"metadata": {"when": object()}}, "set a value that is not JSON"),
        (lambda _: [{"role": "robot", "content": ""}], "left message 0 with the role 'robot'"),
        (lambda _: [{**assistant(""), "tool_calls": ["x"]}], "with the tool_calls ['x'], which"),
    ],
)
def test_what_a_preprocessor_must_not_do_is_an_input_error_naming_it(step: Any, said: str) -> None:
    with pytest.raises(Unscored) as caught:
        apply(run_of(), [step])
    assert (caught.value.outcome, caught.value.stage) == ("input_error", "input")
    for words in (said, f"{step.__module__}.{step.__qualname__} ", "(case r1, epoch 2)"):
        assert words in caught.value.cause


def test_what_preprocessors_add_is_made_storable() -> None:
    added = {"messages": [user("a\x00\ud800")], "metadata": {"k\x00": "v"}}
    made = apply(run_of(), [lambda _: added])
    assert (made.messages[0]["content"], made.metadata) == ("a\ufffd", {"k": "v"})
    said = "3 characters from preprocessors that cannot be stored were replaced or dropped"
    assert made.notes == (said,)


def test_the_raw_sample_goes_to_those_that_take_it() -> None:
    seen: list[object] = []
    steps: list[Any] = [
        lambda run, raw_sample: seen.append(raw_sample),
        lambda run, **extra: seen.append(extra["raw_sample"]),
        lambda run: seen.append("none"),
    ]
    steps.append(partial(steps[0]))
    sample = SimpleNamespace(id=1)
    assert [wants_raw_sample(step) for step in steps] == [True, True, False, True]
    apply(run_of(), steps, sample)
    assert seen == [sample, sample, "none", sample]
