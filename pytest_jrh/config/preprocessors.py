"""Transcript preprocessors: the built-in ones, finding them, and applying a chain of them.

A preprocessor is a callable that gets a run as a dict (`run_id`, `epoch`, `input`, `target`,
`messages`, `metadata`), and Inspect's own sample where it takes `raw_sample`. It returns None to
keep the dict (with what it changed in it), a dict of updates, or a list of messages.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pytest_jrh.core import (
    Fields,
    InputError,
    Json,
    error_places,
    error_text,
    listed,
    printable,
    storable,
)
from pytest_jrh.core.cases import AgentRun, Preprocessor, Unscored
from pytest_jrh.core.transcript import ROLES, blocks_of, message_mistake, without_reasoning

# RAND's path to its preprocessors.
_RANDS_MODULE = "agent_helpers.preprocessors"
_KEY = "cases.preprocess"
_IMPORT_PATH = (
    "make its folder importable (pytest's ini option `pythonpath = .` adds the project's folder)"
)
_KEYS = ("run_id", "epoch", "input", "target", "messages", "metadata")


def drop_tool_messages(run: Json) -> None:
    """Drop tools' messages, counted as `tool_messages_removed`; the assistant's calls stay."""
    messages = [message for message in run["messages"] if message.get("role") != "tool"]
    run["metadata"]["tool_messages_removed"] = len(run["messages"]) - len(messages)
    run["messages"] = messages


def strip_tool_call_outputs(run: Json) -> None:
    """Empty what tools returned, also inside assistant messages; counted as
    `tool_call_outputs_stripped`, and 0 `tool_output_messages_removed`.
    """
    stripped = 0
    for message in run["messages"]:
        if message.get("role") == "tool":
            stripped += bool(message.get("content"))
            message["content"] = ""
        for block in blocks_of(message):
            if block.get("type") == "tool_use" and block.get("result"):
                stripped += 1
                block["result"] = ""
    run["metadata"]["tool_call_outputs_stripped"] = stripped
    run["metadata"]["tool_output_messages_removed"] = 0


def drop_reasoning_traces(run: Json) -> None:
    """Drop the reasoning blocks of every message. Counted as `reasoning_traces_removed`."""
    removed = 0
    for index, message in enumerate(run["messages"]):
        run["messages"][index], gone = without_reasoning(message)
        removed += gone
    run["metadata"]["reasoning_traces_removed"] = removed


def keep_assistant_comment_lines(run: Json) -> None:
    """Keep of the `code` that the assistant gives to tools the comment lines alone, which begin
    with #; what it says stays. Counted as `assistant_comment_lines`.
    """
    kept = 0
    for message in run["messages"]:
        for call in message.get("tool_calls") or ():
            arguments = call.get("arguments")
            if isinstance(arguments, dict) and isinstance(arguments.get("code"), str):
                lines = arguments["code"].splitlines()
                comments = [line for line in lines if line.lstrip().startswith("#")]
                arguments["code"] = "\n".join(comments)
                kept += len(comments)
    run["metadata"]["assistant_comment_lines"] = kept


BUILT_IN: Mapping[str, Callable[[Json], None]] = {
    function.__name__: function
    for function in (
        drop_tool_messages,
        strip_tool_call_outputs,
        drop_reasoning_traces,
        keep_assistant_comment_lines,
    )
}


def preprocessor_named(name: str) -> Preprocessor:
    """Find a preprocessor by its built-in name, RAND's path or `pkg.mod.fn`; raises InputError."""
    from pytest_jrh.judges.own_code import loading

    path = name.strip()
    module_name, _, attribute = path.rpartition(":" if ":" in path else ".")
    hint = f"the built-in preprocessors are {listed(BUILT_IN)}"
    if module_name in ("", _RANDS_MODULE):
        if attribute not in BUILT_IN:
            raise InputError(
                f"unknown built-in preprocessor {printable(path)!r}", key=_KEY, hint=hint
            )
        return BUILT_IN[attribute]
    failure = f"the preprocessor {printable(path)!r} cannot be imported"
    with loading(failure, _KEY, f"{_IMPORT_PATH}; {hint}"):
        function: Preprocessor = getattr(importlib.import_module(module_name), attribute)
    return function


def wants_raw_sample(preprocessor: Preprocessor) -> bool:
    """Whether a preprocessor takes `raw_sample` (by that name, or through `**kwargs`)."""
    for parameter in inspect.signature(preprocessor).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD or parameter.name == "raw_sample":
            return True
    return False


def apply(
    run: AgentRun, preprocessors: Sequence[Preprocessor], raw_sample: object = None
) -> AgentRun:
    """Run preprocessors in order on a copy of the run; raises Unscored (`input_error`)."""
    if not preprocessors:
        return run
    state: Json = copy.deepcopy({key: getattr(run, key) for key in _KEYS})
    state["messages"] = list(state["messages"])
    for preprocessor in preprocessors:
        cause, code_places = None, tuple[str, ...]()
        extra = {"raw_sample": raw_sample} if wants_raw_sample(preprocessor) else {}
        try:
            result: object = preprocessor(state, **extra)
            if isinstance(result, Mapping):
                state.update(result)
            elif isinstance(result, list | tuple):
                state["messages"] = list(result)
            elif result is not None:
                cause = f"returned {type(result).__name__} {printable(repr(result))}"
            cause = cause or _mistake(state, run)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the user's function may raise anything
            cause, code_places = f"raised {error_text(error)}", error_places(error)
        if cause is not None:
            module = getattr(preprocessor, "__module__", "")
            name = getattr(preprocessor, "__qualname__", type(preprocessor).__name__)
            raise Unscored(
                "input_error",
                stage="input",
                cause=f"The preprocessor {module}.{name} {cause} "
                f"(case {printable(run.run_id)}, epoch {run.epoch}).",
                advice="A preprocessor must return None, a dict of updates, or a list of messages.",
                places=code_places,
            )
    clean, changed = storable(state)
    note = f"{changed} characters from preprocessors that cannot be stored were replaced or dropped"
    return replace(
        run,
        messages=tuple(clean["messages"]),
        input=clean["input"],
        target=clean["target"],
        metadata=clean["metadata"],
        notes=(*run.notes, note) if changed else run.notes,
    )


def _mistake(state: Fields, run: AgentRun) -> str | None:
    """Say what makes the dict unusable as a run, in words that follow the preprocessor's name."""
    if set(state) != set(_KEYS):
        return f"set the keys {listed(map(str, state))}; the keys must be {listed(_KEYS)}"
    for key, kind in (("input", str), ("target", str), ("metadata", dict), ("messages", list)):
        if not isinstance(state[key], kind):
            return f"set {key!r} to {type(state[key]).__name__} instead of {kind.__name__}"
    try:
        json.dumps([state["messages"], state["metadata"]])
    except (TypeError, ValueError, RecursionError) as error:
        return f"set a value that is not JSON: {printable(error)}"
    # A run may have come with roles of its own.
    roles = {*ROLES, *(str(message.get("role")) for message in run.messages)}
    for index, message in enumerate(state["messages"]):
        if not isinstance(message, dict):
            return f"set message {index} to {type(message).__name__} instead of a dict"
        if mistake := message_mistake(message, roles):
            return f"left message {index} with {mistake}"
    return None
