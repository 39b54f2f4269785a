"""How the schema of an answer reaches a model, and what happens where its provider refuses it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_jrh.cases.pipeline import VerifierResponse
from pytest_jrh.core.calls import StageModel
from pytest_jrh.judges.judge import judge_response
from pytest_jrh.llm.calls import CallRequest
from pytest_jrh.llm.client import Negotiation, arguments
from tests.e2e.bench import Bench, MakeBench, every_model, read_cassette
from tests.support.exchange import Reply
from tests.support.model_server import Fault, ModelServer, Request

KNOWN, UNKNOWN = "openai/gpt-4.1-mini", "openai/some-local-model"
JSON_OBJECT = (
    "does not accept response_format json_schema, so json_object is sent, with the schema in "
    "the prompt."
)
WORDS = "does not accept response_format, so the schema is sent only in the prompt."
# How providers refuse a response format: HTTP 400, in the words that each of them uses.
WORDINGS = {
    "openai": "Invalid parameter: 'response_format' of type 'json_schema' is not supported with "
    "this model.",
    "vllm": "The request to guided decoding cannot be served: no backend was compiled for "
    "xgrammar.",
    "ollama": 'invalid format: "json_schema"; expected "json" or a valid JSON Schema object',
    "llama.cpp": 'response_format type must be one of "text" or "json_object", but got: '
    "json_schema",
    "llama.cpp grammar": "Failed to parse grammar",
    "lm studio": "'response_format.type' must be 'text'",
    "deepseek": "This response_format type is unavailable now",
    "groq": "This model does not support response format `json_schema`. See supported models",
    "no tools": "Tool calling is not supported with this model",
}

LIMIT = {"max_tokens": 100}
OTHER_LIMIT = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead."
)


def sends(*kinds: str) -> Callable[[Request], bool]:
    """Whether a request asks for a response format of one of these types."""
    return lambda request: (request.body.get("response_format") or {}).get("type") in kinds


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (KNOWN, "json_schema"),
        (UNKNOWN, "json_schema+words"),
        ("openrouter/some/model", "json_schema+words"),
        ("cohere/command-r", "words"),
        ("ollama_chat/llama3", "json_schema+words"),
    ],
)
def test_the_schema_is_sent_as_the_provider_takes_it(name: str, kind: str) -> None:
    assert Negotiation().sending(call(name)).schema_sent == kind


def test_nothing_is_said_of_the_form_of_an_answer_that_is_read_as_text() -> None:
    asked = replace(call(KNOWN), response_model=judge_response((0, 1), None, "([01])$"))
    sending = Negotiation().sending(asked)
    assert sending.schema_sent == "nothing"
    assert "response_format" not in arguments(asked, sending)
    assert arguments(asked, sending)["messages"] == [*map(dict, asked.messages)]
    # Nor is there less that could be sent.
    assert not Negotiation().repaired(asked, sending, 400, WORDINGS["groq"])


def test_a_refused_response_format_is_said_once(make_bench: MakeBench, server: ModelServer) -> None:
    bench = make_bench(runs=3, overrides=every_model(UNKNOWN))
    refused = sends("json_schema", "json_object")
    server.faults.add(fault=Fault.error(WORDINGS["ollama"]), times=None, when=refused)
    server.delay = 0.01
    session = bench.run(max_workers=8)
    assert session.outcomes == [("agree", 1)] * 3
    assert session.notices == (f"{UNKNOWN} {WORDS}",)
    answered = [request for request in server.requests if request.kind == "answer"]
    assert {kind_of(request) for request in answered} == {"words"} == schema_sent(bench)
    assert kind_of(server.requests[0]) == "json_schema+words"
    # Only what was on its way when the first refusal of each came is refused, too.
    assert server.count() - len(answered) <= 8 * 2
    server.stop()
    replayed = bench.play()
    assert (replayed.outcomes, replayed.notices) == (session.outcomes, ())


def test_a_model_is_asked_in_its_own_way(make_bench: MakeBench, server: ModelServer) -> None:
    bench = make_bench(runs=3, overrides={"models": LIMIT})
    for words, refused in (
        ("Conversation roles must alternate.", lambda request: "system" in roles(request)),
        (OTHER_LIMIT, lambda request: "max_tokens" in request.body),
    ):
        server.faults.add(fault=Fault.error(words), times=None, when=refused)
    session = bench.run(max_workers=1)
    assert (session.outcomes, session.notices) == ([("agree", 1)] * 3, ())
    answered = [request for request in server.requests if request.kind == "answer"]
    assert {request.body["max_completion_tokens"] for request in answered} == {100}
    assert {roles(request) for request in answered} == {("user",)}
    server.stop()
    assert bench.replay().outcomes == session.outcomes


def test_an_answer_is_kept_as_it_was_asked_for(make_bench: MakeBench, server: ModelServer) -> None:
    """The first call is answered in the schema after the second was refused: each is replayed as it
    was sent."""
    bench = make_bench(runs=2)
    slow = Fault.hang()
    server.faults.add(stage="planner", fault=slow)
    refused = Fault.error(WORDINGS["vllm"])
    server.faults.add(fault=refused, times=None, when=sends("json_schema"))

    def let_go(_request: Request, normal: Callable[[], Reply]) -> Reply:
        slow.release()
        return normal()

    server.faults.add(stage="judge", fault=Fault("lets the planner go", let_go))
    session = bench.run(max_workers=3)
    assert session.outcomes == [("agree", 1)] * 2
    kinds = {kind_of(request) for request in server.requests if request.kind != refused.name}
    assert kinds == {"json_schema", "json_object+words"} == schema_sent(bench)
    assert session.notices == (f"{KNOWN} {JSON_OBJECT}",)
    server.stop()
    assert bench.play().outcomes == session.outcomes


@pytest.mark.parametrize("words", WORDINGS.values(), ids=WORDINGS)
def test_the_words_of_each_provider_are_understood(words: str) -> None:
    asked, negotiation = call(UNKNOWN), Negotiation()
    for less in ("json_object+words", "words"):
        assert negotiation.repaired(asked, negotiation.sending(asked), 400, words)
        assert negotiation.sending(asked).schema_sent == less
    assert not negotiation.repaired(asked, negotiation.sending(asked), 400, words)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Failed to validate JSON. json_validate_failed: see failed_generation, the schema"),
        (400, "litellm.ContentPolicyViolationError: Your prompt was flagged as unusual."),
        (400, "API key not valid. Please pass a valid API key."),
        (400, "This model's maximum context length is 8192 tokens; see the response_format."),
        (500, "response_format is broken today"),
        (None, "no connection to the schema registry"),
        # An answer that litellm cannot read may hold any word.
        (None, "cannot read: 'the temperature in Rome'"),
    ],
)
def test_other_failures_change_nothing(status: int | None, words: str) -> None:
    asked, negotiation = call(UNKNOWN, 0.5), Negotiation()
    assert not negotiation.repaired(asked, negotiation.sending(asked), status, words)
    assert negotiation.sending(asked).schema_sent == "json_schema+words"


def test_a_request_that_is_refused_for_another_reason_changes_nothing_for_others() -> None:
    """A server may quote the request, and so name whatever is in it."""
    words = "messages.3: invalid tool message; got {'temperature': 0.5, 'response_format': ...}"
    negotiation, refused, other = Negotiation(), call(UNKNOWN, 0.5), call(UNKNOWN, 0.5)
    first = negotiation.sending(other)
    attempts = 0
    while negotiation.repaired(refused, negotiation.sending(refused), 400, words):
        attempts += 1
    assert attempts == 3
    assert negotiation.sending(other) == first
    # An answer in the schema is no proof of a refusal on its way.
    negotiation.answered(other)
    assert negotiation.notices == {}


def test_what_was_answered_with_less_is_kept_when_another_request_is_refused() -> None:
    negotiation = Negotiation()
    for attempt in (call(UNKNOWN, 0.5), call(UNKNOWN, 0.5)):
        while (sending := negotiation.sending(attempt)).schema_sent == "json_schema+words":
            assert negotiation.repaired(
                attempt, sending, 400, "takes no temperature, and no response_format"
            )
        negotiation.answered(attempt)
    refused = call(UNKNOWN, 0.5)
    # What is sent so was answered: this one is refused for what it says.
    assert not negotiation.repaired(refused, negotiation.sending(refused), 400, "invalid message")
    after = negotiation.sending(call(UNKNOWN, 0.5))
    assert after.left_out == {"temperature"}
    assert after.schema_sent == "json_object+words"


@pytest.mark.parametrize(
    ("words", "about", "changes"),
    [
        (OTHER_LIMIT, "max_tokens", {"renames_limit": True}),
        ("max_tokens: Extra inputs are not permitted", "", {"renames_limit": True}),
        ("Unknown parameter", "temperature", {"left_out": frozenset({"temperature"})}),
        ("Unrecognized request argument: top_k", "", {"left_out": frozenset({"top_k"})}),
        ("System role not supported", "", {"merges_system": True}),
        ("Developer instruction is not enabled.", "", {"merges_system": True}),
        ("Unsupported value", "messages[0].role", {"merges_system": True}),
        ("Unsupported value", "response_format", {"schema_sent": "json_object+words"}),
    ],
)
def test_what_is_refused_is_sent_otherwise(words: str, about: str, changes: dict[str, Any]) -> None:
    asked, negotiation = call(UNKNOWN, 0.5, system=True), Negotiation()
    before = negotiation.sending(asked)
    assert negotiation.repaired(asked, before, 400, words, about)
    assert negotiation.sending(asked) == replace(before, **changes)


def test_an_error_that_names_nothing_has_the_response_format_changed() -> None:
    negotiation, asked = Negotiation(), call(UNKNOWN, 0.5, system=True)
    first = negotiation.sending(asked)
    for schema_sent in ("json_object+words", "words"):
        assert negotiation.repaired(asked, negotiation.sending(asked), 400, "Invalid request.")
        assert negotiation.sending(asked) == replace(first, schema_sent=schema_sent)
    assert not negotiation.repaired(asked, negotiation.sending(asked), 400, "Invalid request.")
    assert negotiation.sending(call(UNKNOWN, 0.5, system=True)) == first
    # What the error names has no other way.
    named, fresh = call(UNKNOWN, 0.5), Negotiation()
    assert not fresh.repaired(named, fresh.sending(named), 400, "No such model", "model")


def roles(request: Request) -> tuple[str, ...]:
    return tuple(message["role"] for message in request.body["messages"])


def call(name: str, temperature: float | None = None, *, system: bool = False) -> CallRequest:
    messages = [{"role": "system", "content": "!"}] if system else []
    more: dict[str, Any] = {"params": {"top_k": 1}, **LIMIT} if system else {}
    return CallRequest(
        StageModel("judge", name, temperature=temperature, **more),
        (*messages, {"role": "user", "content": "?"}),
        VerifierResponse,
    )


def kind_of(request: Request) -> str:
    sent = (request.body.get("response_format") or {}).get("type")
    in_words = "Answer with one JSON object that fits this JSON schema" in request.text and bool(
        request.fields
    )
    return "+".join([*([sent] if sent else []), *(["words"] if in_words else [])])


def schema_sent(bench: Bench) -> set[str]:
    """What the recordings say of how their schemas were sent."""
    return {
        call["schema_sent"]
        for path in bench.cassettes.rglob("*.yaml")
        for call in read_cassette(path)["metadata"]["jrh"]["calls"]
    }
