"""Properties of edits that are acts: whatever planner and editor answer, a case holds together and
is its run once its edits are undone (issue 26, part 1)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from pytest_jrh.cases.acts import acts_of
from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.core.calls import Completion, ResponseT, StageModel
from pytest_jrh.core.cases import AgentRun, Message, Unscored
from pytest_jrh.core.diffs import edited_turns
from pytest_jrh.core.scales import Objective
from pytest_jrh.core.transcript import assistant_indices, message_text
from pytest_jrh.engine.library import Pipeline
from pytest_jrh.llm.calls import parse
from pytest_jrh.store.records import record_line, to_record
from tests.support.conversations import RUBRIC, wait_for
from tests.support.made_cases import case_from, make_case, undone
from tests.support.random_conversations import JSON, NAMES, TEXT, conversations, json_texts
from tests.unit.test_acts import call, result, says


def bytes_of(messages: Sequence[Message]) -> bytes:
    return json.dumps(list(messages)).encode()


DONE = call("note", "c6", text="Done.", stars=4, tags=["a"])
FAILED = {"error": {"type": "timeout", "message": "nothing was sent"}}
THOUGHT = [{"type": "reasoning", "reasoning": "56 it is."}, {"type": "text", "text": "I pay."}]
SHOP: tuple[Message, ...] = (
    {"role": "user", "content": "My lamp A-7731 is broken."},
    says("I look.", call("find", "c1", order="A-7731"), call("find", "c2", order="A-7732")),
    result('{"order": "A-7731", "paid": 56.0}', "c1", function="find"),
    result('{"order": "A-7732", "paid": 9.5}', "c2", function="find"),
    {**says("", call("refund", "c3", order="A-7731", amount=56.0)), "content": THOUGHT},
    result("", "c3", function="refund", **FAILED),
    says("Once more.", call("refund", "c4", order="A-7731", amount=56.0)),
    result('{"id": "RF-19", "amount": 56.0}', "c4", function="refund"),
    says("You get 56.00, as RF-19."),
    {"role": "user", "content": "Thanks for the 56."},
    says("I note that.", call("note", "c5", text="Paid.", stars=5), DONE),
    result('{"ok": true}', "c5", function="note"),
    result('{"ok": true}', "c6", function="note"),
    says("You are welcome."),
)
"""A run with calls to change: on the first ones much hangs, on the last ones nothing."""


class HostileStages:
    """A `Complete` whose answers have the shape that is asked for, and any content. Most of that is
    from the run, or near it, which is more dangerous than noise: it passes the first checks."""

    def __init__(self, data: st.DataObject, run: Sequence[Message]) -> None:
        self._data = data
        self._acts = [act for act in acts_of(run) if act.results]
        self._run = run
        turns, texts = assistant_indices(run), [message_text(message) for message in run]
        near = st.sampled_from([*turns, *[act.turn for act in self._acts] * 3])
        ids = [act.call.get("id", "") for act in self._acts]
        self._of_field: dict[str, st.SearchStrategy[Any]] = {
            "message_index": near | near | near | st.integers(-1, len(run)),
            "call": st.sampled_from(["1", "1", "2", "", *ids]) | NAMES,
            "words": st.sampled_from(["", "\x00", *texts]) | TEXT,
            "new_content": st.sampled_from(["", "Done.", *texts]) | TEXT,
            "result_is_error": st.sampled_from([False, False, False, True]),
            "contradiction": st.sampled_from(["", "", "", "", "[1] and [2]"]),
        }

    def _aim(self, prompt: str) -> None:
        """Answer near the act that is shown, or near any of the run."""
        shown = prompt.partition("<act>")[2]
        acts = [act for act in self._acts if json.dumps(act.call["arguments"]) in shown]
        any_arguments = st.dictionaries(NAMES, JSON, max_size=3)
        if not self._acts:
            self._of_field |= {"tool": NAMES, "arguments": any_arguments.map(json.dumps)}
            self._of_field |= {"result": TEXT}
            return
        act = self._data.draw(st.sampled_from(acts or self._acts), label="aim")
        right, given = changed(act.call["arguments"]), message_text(self._run[act.results[0]])
        keys = st.sampled_from([*act.call["arguments"], "other"])
        spoiled_arguments = st.builds(lambda those, key, new: those | {key: new}, right, keys, JSON)
        other_digits = given.translate(str.maketrans("156", "287"))
        self._of_field |= {
            "tool": st.sampled_from([act.name] * 5) | NAMES,
            "arguments": (right | right | any_arguments | spoiled_arguments).map(json.dumps),
            "result": st.sampled_from([given, other_digits] * 3) | json_texts() | TEXT,
        }

    async def __call__(
        self,
        stage: StageModel,
        messages: Sequence[Mapping[str, Any]],
        response_model: type[ResponseT],
    ) -> Completion[ResponseT]:
        if stage.stage == "editor":
            self._aim(messages[-1]["content"])
        text = json.dumps(self._object(response_model, stage.stage))
        try:
            return Completion(text, parse(text, response_model))
        except ValidationError as error:
            raise Unscored("invalid_response", stage=stage.stage, cause=str(error)) from error

    def _object(self, model: type[BaseModel], path: str) -> dict[str, Any]:
        kinds = {name: field.annotation for name, field in model.model_fields.items()}
        return {name: self._value(name, kind, f"{path}.{name}") for name, kind in kinds.items()}

    def _value(self, name: str, kind: Any, path: str) -> Any:
        if name in self._of_field:
            return self._data.draw(self._of_field[name], label=path)
        if get_origin(kind) is Literal:
            return self._data.draw(st.sampled_from(get_args(kind)), label=path)
        if get_origin(kind) is list:
            (item,) = get_args(kind)
            if not isinstance(item, type) or not issubclass(item, BaseModel):
                return []
            count = self._data.draw(st.integers(1, 3), label=f"{path}, how many")
            return [self._object(item, path) for _ in range(count)]
        return "So."


def changed(arguments: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """These arguments, with values of the same type or as they are."""
    values: dict[str, st.SearchStrategy[Any]] = {}
    for key, value in arguments.items():
        values[key] = st.just(value)
        if isinstance(value, str):
            values[key] |= TEXT
        elif isinstance(value, int | float) and not isinstance(value, bool):
            values[key] |= st.integers(0, 99)
    return st.fixed_dictionaries(values)


def structure_holds(messages: Sequence[Message], run: Sequence[Message]) -> None:
    """One result for each call before another role speaks, unique ids, arguments as the tool takes
    them: said once more, without the code that makes the cases."""
    ids = [made["id"] for made in calls_of(messages)]
    assert len(ids) == len(set(ids))
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert waiting == []
        waiting = [made["id"] for made in calls_of([message])]
    assert waiting == []
    real: dict[str, list[Mapping[str, Any]]] = {}
    for made in calls_of(run):
        real.setdefault(made["function"], []).append(made["arguments"])
    for made in calls_of(messages):
        seen = real[made["function"]]
        keys = made["arguments"].keys()
        assert keys >= set.intersection(*(set(arguments) for arguments in seen))
        if not any(seen):
            # Of a tool that was called without arguments alone nobody knows what it takes.
            continue
        for key, value in made["arguments"].items():
            types = {json_type(arguments[key]) for arguments in seen if key in arguments}
            assert json_type(value) in types


def calls_of(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [made for message in messages for made in message.get("tool_calls") or ()]


def json_type(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__


@given(
    data=st.data(),
    run=st.just(SHOP) | st.just(SHOP) | conversations().filter(assistant_indices),
    objective=st.sampled_from(["fail", "pass"]),
    verified=st.booleans(),
)
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
def test_act_case_holds_together_and_is_its_run_once_undone(
    data: st.DataObject, run: tuple[Message, ...], objective: Objective, verified: bool
) -> None:
    before = bytes_of(run)
    agent_run = AgentRun("run", 1, run)
    pipeline = Pipeline.default("scripted/model", objective=objective, edits="acts")
    if not verified:
        models = {name: model for name, model in pipeline.models.items() if name != "verifier"}
        pipeline = replace(pipeline, models=models, pass_required=False)
    perturber = pipeline.perturber(HostileStages(data, run))
    try:
        outcome = wait_for(perturber.perturb(agent_run, RUBRIC, Goal(objective)))
    except Unscored:
        return
    finally:
        assert bytes_of(run) == before
    if outcome.no_case is not None:
        assert str(outcome.no_case)
        assert outcome.messages == run
        if outcome.rejected is None:
            return
        outcome = replace(outcome, messages=outcome.rejected)
    structure_holds(outcome.messages, run)
    # With the old messages in their place nothing is left but the run.
    assert bytes_of(undone(outcome.messages, outcome.edits)) == before
    places = [edit.message_index for edit in outcome.edits]
    assert places == sorted(places)
    for position in range(len(outcome.messages)):
        if position not in edited_turns(outcome.edits):
            assert outcome.messages[position] in run
    case = make_case(messages=run, edited=False)
    case = replace(case, outcome=replace(outcome, no_case=None))
    assert not case_from(record_line(to_record(case))).altered
