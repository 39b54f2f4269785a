"""What providers send where a model refused, or was filtered, beside a verdict that could be read.
It is none, whatever a version of litellm makes of the answer, and is not asked for again."""

import asyncio
import gzip
import json
from typing import Any

import pytest

from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.cases import Unscored
from pytest_jrh.judges.judge import judge_response
from pytest_jrh.llm.calls import make_complete
from pytest_jrh.llm.client import LiteLLMExchange
from pytest_jrh.llm.limits import EarlyStop, Ledger, Pace, RetryPolicy
from tests.support.judge_service import JudgeService

OPENAI, RESPONSES = "openai/gpt-4.1-mini", "openai/responses/gpt-4.1-mini"
ANTHROPIC, GEMINI = "anthropic/claude-haiku-4-5", "gemini/gemini-2.5-flash"
BEDROCK = "bedrock/converse/anthropic.claude-3-haiku-20240307-v1:0"
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
FIELDS = {"score": 1, "reasoning": "It says: refusal, content_filter, blocked."}
VERDICT = json.dumps(FIELDS)
NO = {"type": "refusal", "refusal": "I will not."}
SAID, FILTERED = "I will not.", "content filter"
Body = dict[str, Any]


def chat(choice: Body | None = None, message: Body | None = None, **more: Any) -> Body:
    said = {"role": "assistant", "content": VERDICT, **(message or {})}
    chosen = {"index": 0, "message": said, "finish_reason": "stop", **(choice or {})}
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    return {**whole, "choices": [chosen], **more}


def azure(*, filtered: bool) -> Body:
    violence = {"filtered": filtered, "severity": "medium"}
    safe = {"filtered": False, "severity": "safe"}
    return {"content_filter_results": {"hate": safe, "violence": violence}}


def responses(*content: Body, **more: Any) -> Body:
    """OpenAI's newer protocol, which repeats what it was asked."""
    schema = {"properties": {"refusal": {"type": "string"}, "blocked": {"type": "boolean"}}}
    asked = {"format": {"type": "json_schema", "name": "judge", "schema": schema}}
    said = {"type": "message", "id": "m", "status": "completed", "role": "assistant"}
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    settings = {"parallel_tool_calls": True, "tools": [], "tool_choice": "auto", "text": asked}
    output = [{**said, "content": list(content)}]
    return {**whole, **settings, "status": "completed", "output": output, **more}


TEXT = {"type": "output_text", "text": VERDICT, "annotations": []}
TOOL = {"type": "tool_use", "id": "t", "name": "json_tool_call", "input": FIELDS}


def anthropic(stop_reason: str, *content: Body) -> Body:
    whole = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    usage = {"input_tokens": 9, "output_tokens": 5}
    parts = list(content) or [{"type": "text", "text": VERDICT}]
    return {**whole, "content": parts, "stop_reason": stop_reason, "usage": usage}


def gemini(finish: str = "STOP", **more: Any) -> Body:
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}
    content = {"role": "model", "parts": [{"text": VERDICT}]}
    candidate = {"index": 0, "content": content, "finishReason": finish, **more}
    return {"candidates": [candidate], "usageMetadata": usage}


def bedrock(stop_reason: str) -> Body:
    message = {"role": "assistant", "content": [{"text": VERDICT}]}
    usage = {"inputTokens": 9, "outputTokens": 5, "totalTokens": 14}
    whole = {"output": {"message": message}, "usage": usage, "metrics": {"latencyMs": 1}}
    return {**whole, "stopReason": stop_reason}


def rating(**more: Any) -> list[Body]:
    return [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "MEDIUM", **more}]


REFUSED = {
    "a refusal": (OPENAI, chat(message={"content": None, "refusal": SAID}), SAID),
    "a refusal beside": (OPENAI, chat(message={"refusal": SAID}), SAID),
    "of a proxy": (OPENAI, chat(message={"provider_specific_fields": {"refusal": SAID}}), SAID),
    "a part": (OPENAI, chat(message={"content": [{"type": "text", "text": VERDICT}, NO]}), SAID),
    "as in a stream": (OPENAI, chat({"delta": {"refusal": SAID}}), SAID),
    "a reason of another's": (OPENAI, chat({"finish_reason": "refusal"}), FILTERED),
    "a reason unknown to litellm": (OPENAI, chat({"finish_reason": "safety_stop"}), FILTERED),
    "a native reason": (OPENAI, chat({"native_finish_reason": "SAFETY"}), FILTERED),
    "Azure, the answer": (OPENAI, chat(azure(filtered=True)), FILTERED),
    "Azure, the prompt": (OPENAI, chat(prompt_filter_results=[azure(filtered=True)]), FILTERED),
    "MiniMax": (OPENAI, chat(output_sensitive=True), FILTERED),
    "Responses": (RESPONSES, responses(NO), SAID),
    "Responses, beside": (RESPONSES, responses(TEXT, NO), SAID),
    "Responses, filtered": (
        RESPONSES,
        responses(TEXT, status="incomplete", incomplete_details={"reason": "content_filter"}),
        FILTERED,
    ),
    "Anthropic": (ANTHROPIC, anthropic("refusal"), FILTERED),
    "Anthropic, as a tool": (ANTHROPIC, anthropic("refusal", TOOL), FILTERED),
    "Gemini": (GEMINI, gemini("PROHIBITED_CONTENT"), FILTERED),
    "Gemini, the prompt": (GEMINI, {"promptFeedback": {"blockReason": "SAFETY"}}, FILTERED),
    "Gemini, a category": (GEMINI, gemini(safetyRatings=rating(blocked=True)), FILTERED),
    "Bedrock": (BEDROCK, bedrock("guardrail_intervened"), FILTERED),
}
ANSWERED = {
    "no refusal": (OPENAI, chat(message={"refusal": ""})),
    "at its limit": (OPENAI, chat({"finish_reason": "length"})),
    "another reason": (OPENAI, chat({"finish_reason": "eos_token"})),
    "Azure": (OPENAI, chat(azure(filtered=False))),
    "Responses": (RESPONSES, responses(TEXT)),
    "Anthropic": (ANTHROPIC, anthropic("end_turn")),
    "Anthropic, as a tool": (ANTHROPIC, anthropic("tool_use", TOOL)),
    "Gemini": (GEMINI, gemini(safetyRatings=rating())),
    "Bedrock": (BEDROCK, bedrock("end_turn")),
}


def fixed(body: Body, *, compressed: bool = False) -> JudgeService:
    """A server that answers everything with one body."""
    sent, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    if compressed:
        sent, headers["Content-Encoding"] = gzip.compress(sent), "gzip"
    return JudgeService(reply=lambda _path, _text: (200, headers, sent))


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "no-key-needed-on-loopback")
    monkeypatch.setenv("AWS_REGION_NAME", "us-east-1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def verdict(server: JudgeService, model: str) -> int:
    """What a judge of the model says."""

    async def ask() -> int:
        path = "/v1" if model.startswith("openai/") else ""
        stage = StageModel("judge", model, api_base=f"http://127.0.0.1:{server.port}{path}")
        exchange = LiteLLMExchange(1, RetryPolicy(), str, Pace(), EarlyStop(), Ledger(None))
        try:
            question = [{"role": "user", "content": "Is it violated?"}]
            completion = await make_complete(exchange)(stage, question, judge_response((0, 1)))
            return int(completion.parsed.model_dump()["score"])
        finally:
            await exchange.aclose()

    return asyncio.run(ask())


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
@pytest.mark.parametrize(("model", "body", "said"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_is_no_verdict(model: str, body: Body, said: str, compressed: bool) -> None:
    with fixed(body, compressed=compressed) as server, pytest.raises(Unscored) as caught:
        verdict(server, model)
    assert (caught.value.outcome, len(server.asked)) == ("refused", 1)
    assert said in caught.value.cause


@pytest.mark.parametrize(("model", "body"), ANSWERED.values(), ids=ANSWERED)
def test_what_a_model_says_of_refusals_or_a_server_repeats_is_none(model: str, body: Body) -> None:
    with fixed(body) as server:
        assert verdict(server, model) == 1
        assert len(server.asked) == 1
