from __future__ import annotations

import asyncio
import http.client
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from examples.refund_agent.conversation import load_conversations
from examples.scripted_model import NotScriptedError, ScriptedModel, load_script
from examples.scripted_model.script import Request, flat, not_shown
from examples.scripted_model.server import completion
from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.config.load import load_suite
from pytest_jrh.config.probes import expand
from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.model import RunSummary
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.engine.generate import build_pipeline, generate_case
from pytest_jrh.judges.prompt import PromptJudge
from pytest_jrh.llm.calls import Answer, CallRequest, make_complete
from pytest_jrh.llm.prompts import load_template
from pytest_jrh.sources import load_inspect_eval_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.scripted_model.script import ScriptedRun

ROOT = Path(__file__).parents[2]
SCRIPT = load_script()
RUNS = {run.id: run for run in SCRIPT.runs}
LENGTHS = {
    conversation.id: 1 + sum(1 + len(turn.calls) for turn in conversation.turns)
    for conversation in load_conversations()
}
RUBRIC = "honest_about_actions"


def body(stage: str | None, prompt: str, *fields: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {field: {} for field in fields}}
    shape = {"type": "json_schema", "json_schema": {"name": stage, "schema": schema}}
    return {
        "model": "gpt-4.1-mini",
        "messages": [{"role": "system", "content": "Answer."}, {"role": "user", "content": prompt}],
        **({"response_format": shape} if stage else {}),
    }


def transcript(run: str, edits: dict[int, str] | None = None) -> str:
    turns = {**RUNS[run].turns, **(edits or {})}
    return "\n".join(
        f"[{index}] assistant\n  " + text.replace(". ", ".\n  ") for index, text in turns.items()
    )


def judging(run: str, edits: dict[int, str] | None = None) -> str:
    return f"{SCRIPT.rubrics[RUBRIC]}\n\n{transcript(run, edits)}"


def ask(stage: str, prompt: str, *fields: str) -> dict[str, Any]:
    return SCRIPT.answer(Request.from_body(body(stage, prompt, *fields)))


def first_step(run: str) -> Any:
    plan = RUNS[run].rubrics[RUBRIC].violate
    assert plan is not None
    return plan.steps[0]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(script=SCRIPT) as running:
        yield running


@pytest.fixture
def connection(model: ScriptedModel) -> Iterator[http.client.HTTPConnection]:
    address = urlsplit(model.base_url)
    client = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
    yield client
    client.close()


def post(
    client: http.client.HTTPConnection, content: bytes, path: str = "/v1/chat/completions"
) -> tuple[int, bytes]:
    client.request("POST", path, content, {"Content-Type": "application/json"})
    response = client.getresponse()
    return response.status, response.read()


class TestRecognizing:
    def test_untouched_transcript_gets_the_reading_of_the_untouched_run(self) -> None:
        answer = ask("judge", judging("damaged-kettle"), "reasoning", "score")
        assert answer == {
            "reasoning": RUNS["damaged-kettle"].rubrics[RUBRIC].untouched.judge,
            "score": 0,
        }

    def test_edited_turn_changes_the_reading(self) -> None:
        step = first_step("damaged-kettle")
        answer = ask(
            "judge", judging("damaged-kettle", {step.message_index: step.new_content}), "score"
        )
        assert answer == {"score": 1}

    def test_a_grader_gets_text_that_ends_in_its_grade(self) -> None:
        prompt = f"{judging('damaged-kettle')}\n\nEnd with 'GRADE: $LETTER'."
        asked = {"messages": [{"role": "user", "content": prompt}]}
        answer = completion(asked, SCRIPT)["choices"][0]["message"]["content"]
        untouched = RUNS["damaged-kettle"].rubrics[RUBRIC].untouched.judge
        assert answer == f"{untouched}\n\nGRADE: C"

    def test_fields_come_in_the_order_of_the_requested_schema(self) -> None:
        answer = ask("verifier", judging("damaged-kettle"), "rationale", "verdict")
        assert list(answer) == ["rationale", "verdict"]

    @pytest.mark.parametrize(
        ("line", "steps"),
        [("Objective: violate the rubric", 1), ("Plan the smallest repair, or none", 0)],
    )
    def test_planner_answers_the_objective_in_the_prompt(self, line: str, steps: int) -> None:
        assert len(ask("planner", f"{judging('damaged-kettle')}\n{line}")["steps"]) == steps

    def test_planner_answers_the_target_score_in_the_prompt(self) -> None:
        prompt = f"{SCRIPT.rubrics['resolution_quality']}\n{transcript('damaged-kettle')}\n"
        assert len(ask("planner", f"{prompt}Target score: 1\n")["steps"]) == 3
        assert ask("planner", f"{prompt}Score to reach, exactly: 3: Complete.") == {
            "thesis": "",
            "steps": [],
        }

    @pytest.mark.parametrize(("hidden", "cited"), [("[9]", "[9]"), ("Found it", '"Found it"')])
    def test_a_plan_that_cites_what_its_prompt_does_not_hold_is_refused(
        self, hidden: str, cited: str
    ) -> None:
        rubric = "identity_before_account_data"
        prompt = (
            f"{SCRIPT.rubrics[rubric]}\n{transcript('partial-refund')}\nObjective: violate "
            "the rubric"
        )
        assert len(ask("planner", prompt)["steps"]) == 1
        request = Request.from_body(body("planner", prompt.replace(hidden, "-")))
        plan = RUNS["partial-refund"].rubrics[rubric].violate
        assert plan is not None
        assert not_shown(request.text, plan) == [cited]
        if hidden == "[9]":
            with pytest.raises(
                NotScriptedError, match=re.escape("cites [9], which the planner is not shown")
            ):
                SCRIPT.answer(request)

    def test_editor_is_recognized_by_goal_and_original_turn(self) -> None:
        step = first_step("tea-subscription")
        prompt = (
            f"{SCRIPT.rubrics[RUBRIC]}\nGoal: "
            f"{step.goal}\n{RUNS['tea-subscription'].turns[step.message_index]}"
        )
        assert ask("editor", prompt) == {"new_content": step.new_content, "reason": step.reason}

    def test_summary_describes_edited_turns_as_they_now_read(self) -> None:
        step = first_step("tea-subscription")
        edited = ask(
            "summary", transcript("tea-subscription", {step.message_index: step.new_content})
        )
        assert step.story in edited["summary"]
        assert edited["summary"].endswith(f"Edited turns: [{step.message_index}].")
        assert "Edited" not in ask("summary", transcript("tea-subscription"))["summary"]


class TestRefusing:
    @pytest.mark.parametrize(
        ("stage", "prompt", "complaint"),
        [
            ("poet", "", "must be one of planner, editor"),
            ("judge", transcript("damaged-kettle"), "instructions of 0 rubrics"),
            ("judge", SCRIPT.rubrics[RUBRIC], "of 0 runs"),
            ("judge", judging("damaged-kettle", {13: "Something nobody wrote."}), "of 0 runs"),
            ("planner", judging("damaged-kettle"), "objective or target score"),
            ("editor", judging("damaged-kettle"), "0 written edits"),
        ],
    )
    def test_unrecognized_request_says_what_is_not_recognized(
        self, stage: str, prompt: str, complaint: str
    ) -> None:
        with pytest.raises(NotScriptedError, match=complaint):
            ask(stage, prompt)

    def test_judge_is_refused_where_the_verifier_did_not_confirm(self) -> None:
        step = first_step("partial-refund")
        edits = {step.message_index: step.new_content}
        assert ask("verifier", judging("partial-refund", edits))["verdict"] == "PASS"
        with pytest.raises(
            NotScriptedError, match=r"no judge should see it \(stage: judge, run: partial-refund"
        ):
            ask("judge", judging("partial-refund", edits))


class TestServer:
    def test_same_request_gets_the_same_bytes_over_one_connection(
        self, model: ScriptedModel, connection: http.client.HTTPConnection
    ) -> None:
        request = json.dumps(body("judge", judging("gift-mug"), "reasoning", "score")).encode()
        status, first = post(connection, request)
        socket = connection.sock
        assert (status, first) == (200, post(connection, request)[1])
        assert connection.sock is socket
        assert model.requests == 2
        answer = json.loads(first)
        assert json.loads(answer["choices"][0]["message"]["content"])["score"] == 0
        assert answer["usage"]["total_tokens"] > 0

    def test_refusal_is_a_404_naming_stage_run_and_rubric(
        self, connection: http.client.HTTPConnection
    ) -> None:
        status, content = post(
            connection, json.dumps(body("planner", judging("gift-mug"))).encode()
        )
        error = json.loads(content)["error"]
        assert status == 404
        assert (error["stage"], error["run"], error["rubric"]) == ("planner", "gift-mug", RUBRIC)

    @pytest.mark.parametrize(
        ("content", "path", "status"),
        [
            (b"{", "/v1/chat/completions", 400),
            (b"[]", "/v1/chat/completions", 400),
            (b'{"messages": [], "stream": true}', "/v1/chat/completions", 400),
            (b'{"messages": []}', "/v1/chat/completions", 404),
            (b"{}", "/v1/embeddings", 404),
        ],
    )
    def test_bad_request_is_answered_with_an_error_object(
        self, connection: http.client.HTTPConnection, content: bytes, path: str, status: int
    ) -> None:
        given, answer = post(connection, content, path)
        assert (given, bool(json.loads(answer)["error"]["message"])) == (status, True)


class TestAnswers:
    """The answer files are consistent with the conversations and with each other."""

    @pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
    def test_steps_edit_assistant_turns_and_have_goals_of_their_own(self, run: ScriptedRun) -> None:
        steps = [step for _, step in run.steps()]
        goals = Counter(flat(step.goal) for step in steps)
        assert [goal for goal, count in goals.items() if count > 1] == []
        for step in steps:
            assert flat(step.new_content) != flat(run.turns[step.message_index])

    @pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
    def test_plans_are_short_enough_and_have_a_reading(self, run: ScriptedRun) -> None:
        for answers in run.rubrics.values():
            for plan in answers.plans:
                assert len(plan.steps) <= 3
                assert [step.message_index for step in plan.steps] == sorted(
                    step.message_index for step in plan.steps
                )
                assert (
                    bool(plan.steps) == bool(plan.thesis) == bool(plan.edited) != bool(plan.because)
                )

    @pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
    def test_texts_cite_only_messages_that_exist(self, run: ScriptedRun) -> None:
        cited = {
            int(index) for index in re.findall(r"\[(\d+)\]", str(run.rubrics) + str(run.summary))
        }
        assert cited <= set(range(LENGTHS[run.id]))
        assert set(run.summary.story) <= set(range(LENGTHS[run.id]))

    @pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
    def test_binary_reasonings_end_with_their_verdict(self, run: ScriptedRun) -> None:
        for answers in run.rubrics.values():
            readings = [answers.untouched, *(plan.edited for plan in answers.plans if plan.edited)]
            for reading in readings:
                if reading.verdict and reading.judge:
                    word = {"PASS": "satisfied", "FAIL": "violated"}[reading.verdict]
                    assert reading.judge.endswith(f"rubric is {word}.")


@dataclass(frozen=True)
class Planned:
    """What one planner was shown and answered, and the turns of the run that it was not shown."""

    prompt: str
    answer: str
    hidden: str


@dataclass
class Played:
    """What the pipeline and the judge make of a demo suite when the script answers every call."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    planned: list[Planned] = field(default_factory=list)


@cache
def played(config: str) -> Played:
    return asyncio.run(play(config))


async def play(config: str) -> Played:
    suite = load_suite(ROOT / "inputs" / "configs" / config, cwd=ROOT, rootdir=ROOT)
    runs = {run.run_id: run for run in load_inspect_eval_runs(suite.source.path)}
    rubrics = {rubric.id: rubric for rubric in suite.rubrics}
    tests = {test.name: test for test in suite.tests}
    pipelines = {test.name: build_pipeline(suite, test) for test in suite.tests}
    done = Played()
    hidden = ""

    async def exchange(request: CallRequest) -> Answer:
        shape = {"json_schema": {"name": request.stage.stage, "schema": request.schema}}
        asked = {
            "messages": [dict(message) for message in request.messages],
            "response_format": shape,
        }
        answer = json.dumps(SCRIPT.answer(Request.from_body(asked)), ensure_ascii=False)
        if request.stage.stage == "planner":
            prompt = "\n".join(message["content"] for message in request.messages)
            done.planned.append(Planned(prompt, answer, hidden))
        return Answer(answer)

    complete = make_complete(exchange)
    template = load_template("judge", mode=suite.mode, objective="fail", prompt_path=None)
    judge = PromptJudge(suite.judges[0], template)
    calls: Any = SimpleNamespace(complete=complete)
    for spec in expand(suite, [RunSummary(run_id, 1) for run_id in runs]):
        goal = Goal(tests[spec.test].objective, spec.target_score)
        hidden = render_transcript(
            [turn for turn in runs[spec.run_id].messages if turn["role"] != "assistant"]
        )
        arguments = (
            pipelines[spec.test],
            complete,
            spec,
            runs[spec.run_id],
            rubrics[spec.rubric_id],
            goal,
        )
        try:
            case = await generate_case(*arguments)
        except NoVerdictCase:
            done.counts[spec.test, "no_case"] += 1
            continue
        agrees = (await judge(case, 1, calls)).score == case.expected
        done.counts[spec.test, "agree" if agrees else "disagree"] += 1
    return done


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            "refund_agent.yml",
            {
                ("agent_perturbation", "agree"): 25,
                ("agent_perturbation", "no_case"): 5,
                ("agent_positives", "agree"): 29,
                ("agent_positives", "no_case"): 1,
            },
        ),
        (
            "refund_agent_ordinal.yml",
            {
                ("agent_perturbation", "agree"): 30,
                ("agent_perturbation", "no_case"): 2,
                ("agent_positives", "agree"): 7,
                ("agent_positives", "no_case"): 1,
            },
        ),
    ],
)
def test_every_call_of_the_demo_suites_is_scripted(
    config: str, expected: dict[tuple[str, str], int]
) -> None:
    assert played(config).counts == expected


def known_from_elsewhere(planned: Planned) -> set[str]:
    """Figures, names and identifiers in a plan that stand in a hidden turn and not in the planner's
    prompt."""
    tokens = re.compile(r"\w*\d[\w.]*\w|\d|\b[A-Z]\w+|\w+_\w+")
    said, hidden = ({*tokens.findall(text)} for text in (planned.answer, planned.hidden))
    return {
        token
        for token in said & hidden
        if not re.search(rf"\b{re.escape(token)}\b", planned.prompt, re.IGNORECASE)
    }


@pytest.mark.parametrize("config", ["refund_agent.yml", "refund_agent_ordinal.yml"])
def test_the_scripted_planner_knows_nothing_that_a_planner_is_not_shown(config: str) -> None:
    assert [
        planned.answer for planned in played(config).planned if known_from_elsewhere(planned)
    ] == []


@pytest.mark.parametrize(
    "said", ["for £27.50", "to Clayton Road", "a Visa ending 6612", "eligible in is_eligible", "30"]
)
def test_a_figure_or_a_name_from_a_hidden_turn_is_found(said: str) -> None:
    hidden = "item 27.50, 62 Clayton Road, Visa ending 6612, is_eligible, 30"
    assert known_from_elsewhere(Planned("[4] I have it.", said, hidden))
    assert not known_from_elsewhere(Planned(f"[4] I have it. {said}", said, hidden))
