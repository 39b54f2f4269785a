from __future__ import annotations

import datetime
import email.utils
import http.client
import json
import socket
from dataclasses import FrozenInstanceError, dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.model_server import Fault, ModelServer, Obedient, Reply, Request, override
from tests.support.server_process import server_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FIELDS = {
    "planner": ("thesis", "steps"),
    "editor": ("new_content", "reason"),
    "summary": ("summary", "user_intent", "assistant_progress", "outstanding_items", "risks"),
    "verifier": ("verdict", "rationale"),
    "judge": ("score", "reasoning"),
}
TURNS = "[2] m2: Good morning.\n[4] m4: I looked it up.\n    [9] not a turn\n[7] m7: Done.\n"
SCALE = "0: not at all\n1: a little\n2: well\n"
PLANNER = f"Objective: violate the rubric\n{TURNS}"


@dataclass(frozen=True)
class Got:
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def envelope(self) -> Any:
        return json.loads(self.raw)

    @property
    def choice(self) -> Any:
        return self.envelope["choices"][0]

    @property
    def content(self) -> Any:
        return self.choice["message"]["content"]

    @property
    def answer(self) -> Any:
        return json.loads(self.content)


def body_for(
    stage: str | None, prompt: str = "", *, fields: tuple[str, ...] | None = None, **more: Any
) -> str:
    body: dict[str, Any] = {
        "model": "gpt-4.1-mini",
        "messages": [{"role": "user", "content": prompt}],
        **more,
    }
    if stage is not None:
        properties: dict[str, Any] = {name: {} for name in fields or FIELDS.get(stage, ("answer",))}
        schema = {"name": stage, "schema": {"properties": properties}}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return json.dumps(body)


def send(
    connection: http.client.HTTPConnection, body: str, headers: dict[str, str] | None = None
) -> None:
    connection.request(
        "POST",
        "/v1/chat/completions",
        body,
        {"Content-Type": "application/json", **(headers or {})},
    )


def receive(connection: http.client.HTTPConnection) -> Got:
    response = connection.getresponse()
    return Got(response.status, dict(response.headers), response.read())


def connect(server: ModelServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)


def schema_of(stage: str, **properties: Any) -> str:
    return "\n" + json.dumps({"properties": properties, "title": stage}, indent=2)


def ask(server: ModelServer, stage: str | None, prompt: str = "", **more: Any) -> Got:
    connection = connect(server)
    send(connection, body_for(stage, prompt, **more))
    got = receive(connection)
    connection.close()
    return got


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


class TestTheRecord:
    def test_keeps_what_was_asked_and_how_it_was_answered(self, server: ModelServer) -> None:
        connection = connect(server)
        send(
            connection,
            body_for("judge", "Judge it", temperature=0.5, max_tokens=7),
            {"Authorization": "Bearer x"},
        )
        receive(connection)
        connection.close()
        (request,) = server.requests
        assert (request.index, request.stage, request.model) == (0, "judge", "gpt-4.1-mini")
        assert (request.temperature, request.max_tokens) == (0.5, 7)
        assert request.messages == [{"role": "user", "content": "Judge it"}]
        assert request.response_format
        assert request.response_format["type"] == "json_schema"
        assert request.headers["authorization"] == "Bearer x"
        assert request.path == "/v1/chat/completions"
        assert (request.kind, request.status, request.gone) == ("answer", 200, False)
        assert request.ended
        assert request.started <= request.ended

    def test_cannot_be_changed(self, server: ModelServer) -> None:
        ask(server, "judge")
        server.requests.clear()
        with pytest.raises(FrozenInstanceError):
            server.requests[0].stage = "planner"  # type: ignore[misc]

    def test_counts_by_stage(self, server: ModelServer) -> None:
        for stage in ("judge", "planner", "judge"):
            ask(server, stage)
        assert (server.count(), server.count("judge"), server.count("editor")) == (3, 2, 0)
        assert server.count(answered=True) == 3

    def test_equal_bodies_have_equal_digests(self, server: ModelServer) -> None:
        for prompt in ("a", "b", "a"):
            ask(server, "judge", prompt)
        first, second, third = (request.digest for request in server.requests)
        assert first == third != second

    def test_is_not_kept_where_that_was_not_asked_for(self) -> None:
        with ModelServer(keep=False) as server:
            ask(server, "judge")
            assert server.requests == []
            assert server.count("judge", answered=True) == 1


class TestTheStage:
    def test_is_read_from_a_schema_in_the_prompt(self, server: ModelServer) -> None:
        rubric = 'A rubric with "title": "planner"' + schema_of("planner", thesis={})
        got = ask(
            server, None, rubric + schema_of("judge", score={"enum": [3, 4]}) + "\n{ not JSON"
        )
        assert (server.requests[0].stage, server.requests[0].fields) == (
            "judge",
            frozenset({"score"}),
        )
        assert got.answer == {"score": 3}

    def test_of_a_re_ask_ignores_what_the_model_said(self, server: ModelServer) -> None:
        messages = [
            {"role": "user", "content": [{"type": "text", "text": '{"title": "verifier"}'}]},
            {"role": "assistant", "content": '{"title": "judge"}'},
            {"role": "user", "content": "That was no valid answer."},
        ]
        ask(server, None, messages=messages)
        assert server.requests[0].stage == "verifier"

    def test_of_somebody_elses_call_is_unknown(self, server: ModelServer) -> None:
        assert ask(server, None, "Hello").content == "Understood."
        ask(server, "my_own_scorer")
        assert [request.stage for request in server.requests] == ["unknown", "unknown"]


class TestHttp:
    def test_answers_have_the_same_bytes_each_time(self) -> None:
        seen: set[bytes] = set()
        for _ in range(2):
            with ModelServer() as server:
                seen.update(ask(server, "judge", "Judge it").raw for _ in range(2))
        assert len(seen) == 1

    def test_usage_is_a_quarter_of_the_text(self, server: ModelServer) -> None:
        got = ask(server, "judge", "x" * 400)
        written = len(got.content) // 4
        assert got.envelope["usage"] == {
            "prompt_tokens": 100,
            "completion_tokens": written,
            "total_tokens": 100 + written,
        }

    def test_a_connection_serves_many_requests(self, server: ModelServer) -> None:
        connection = connect(server)
        send(connection, body_for("judge"))
        receive(connection)
        sock = connection.sock
        send(connection, body_for("judge", "x" * 300_000))
        assert receive(connection).status == 200
        assert connection.sock is sock
        connection.close()

    def test_a_client_may_ask_to_close(self, server: ModelServer) -> None:
        connection = connect(server)
        send(connection, body_for("judge"), {"Connection": "close"})
        assert receive(connection).headers["Connection"] == "close"

    def test_a_hundred_requests_wait_at_once(self, server: ModelServer) -> None:
        hang = Fault.hang()
        server.faults.add(fault=hang, times=None)
        connections = [connect(server) for _ in range(100)]
        for connection in connections:
            send(connection, body_for("judge"))
        server.wait_for(100)
        assert server.in_flight == 100
        hang.release()
        assert {receive(connection).status for connection in connections} == {200}
        assert (server.in_flight, server.peak_in_flight) == (0, 100)
        for connection in connections:
            connection.close()

    def test_other_paths_are_not_found(self, server: ModelServer) -> None:
        connection = connect(server)
        connection.request("GET", "/v1/models")
        assert receive(connection).status == 200
        connection.request("POST", "/v1/completions", "{}")
        assert receive(connection).status == 404
        connection.close()

    @pytest.mark.parametrize("body", ["not json", "[]", body_for("judge", stream=True)])
    def test_what_is_no_plain_completion_is_refused(self, server: ModelServer, body: str) -> None:
        connection = connect(server)
        send(connection, body)
        assert receive(connection).status == 400
        connection.close()
        assert server.count() == 0

    def test_a_stopped_server_refuses_connections_and_can_start_again(self) -> None:
        server = ModelServer()
        with server:
            port = server.port
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        with server:
            assert server.port == port
            assert ask(server, "judge").status == 200

    def test_stopping_closes_the_connections_that_wait(self) -> None:
        with ModelServer() as server:
            server.faults.add(fault=Fault.hang())
            connection = connect(server)
            send(connection, body_for("judge"))
            server.wait_for(1)
        with pytest.raises(ConnectionError):
            receive(connection)
        assert server.requests[0].gone
        connection.close()

    def test_a_taken_port_is_an_error(self, server: ModelServer) -> None:
        with pytest.raises(OSError, match="in use"):
            ModelServer(port=server.port).start()

    def test_the_delay_may_depend_on_the_request(self) -> None:
        asked = []

        def delay(request: Request) -> float:
            asked.append(request.stage)
            return 0.0

        with ModelServer(delay=delay) as server:
            ask(server, "judge")
        assert asked == ["judge"]

    def test_waiting_in_vain_says_what_came(self, server: ModelServer) -> None:
        ask(server, "judge")
        with pytest.raises(TimeoutError, match=r"asked \{'judge': 1\}"):
            server.wait_for(2, timeout=0.01)


class TestTheObedientModel:
    @pytest.mark.parametrize(("edits", "planned"), [(1, [7]), (2, [4, 7]), (9, [2, 4, 7])])
    def test_plans_edits_of_the_last_turns(self, edits: int, planned: list[int]) -> None:
        with ModelServer(Obedient(edits=edits)) as server:
            plan = ask(server, "planner", PLANNER).answer
        assert [step["message_index"] for step in plan["steps"]] == planned
        assert plan["thesis"]

    def test_takes_for_turns_what_stands_between_their_tags(self, server: ModelServer) -> None:
        prompt = (
            "[8] in the rubric: x\n<assistant_turns>\n[3] m3 calls look_up: "
            "{}\n</assistant_turns>\n[9] y: z"
        )
        (step,) = ask(server, "planner", prompt).answer["steps"]
        assert step["message_index"] == 3

    @pytest.mark.parametrize(
        "wording", ["Objective: satisfy the rubric", "Plan the smallest repair, in one step."]
    )
    def test_leaves_a_transcript_alone_that_shall_satisfy(
        self, server: ModelServer, wording: str
    ) -> None:
        prompt = f"{wording}\n{TURNS}"
        assert ask(server, "planner", prompt).answer == {"thesis": "", "steps": []}

    def test_repairs_a_transcript_where_told_to(self) -> None:
        prompt = f"Objective: satisfy the rubric\n{TURNS}"
        with ModelServer(Obedient(repair=True, edits=3)) as server:
            (step,) = ask(server, "planner", prompt).answer["steps"]
            edit = ask(server, "editor", step["goal"]).answer
            assert ask(server, "verifier", edit["new_content"]).answer["verdict"] == "PASS"
            assert ask(server, "judge", edit["new_content"]).answer["score"] == 0

    def test_agrees_with_itself_about_a_violation(self, server: ModelServer) -> None:
        (step,) = ask(server, "planner", PLANNER).answer["steps"]
        edit = ask(server, "editor", f"Goal: {step['goal']}").answer
        assert ask(server, "verifier", f"[7] {edit['new_content']}").answer["verdict"] == "FAIL"
        assert ask(server, "judge", f"[7] {edit['new_content']}").answer["score"] == 1
        assert ask(server, "verifier", TURNS).answer["verdict"] == "PASS"
        assert ask(server, "judge", TURNS).answer["score"] == 0

    @pytest.mark.parametrize("target", [0, 2, 10, -1])
    def test_agrees_with_itself_about_a_score(self, server: ModelServer, target: int) -> None:
        prompt = f"Objective: land on the target score\nTarget score: {target}\n{SCALE}{TURNS}"
        (step,) = ask(server, "planner", prompt).answer["steps"]
        edit = ask(server, "editor", step["goal"]).answer
        ordinal = ("verdict", "rationale", "score")
        assert (
            ask(server, "verifier", edit["new_content"], fields=ordinal).answer["score"] == target
        )
        assert ask(server, "judge", edit["new_content"]).answer["score"] == target

    def test_gives_an_untouched_transcript_the_lowest_score(self, server: ModelServer) -> None:
        prompt = (
            "Rubric 7: be kind\n\n3: rude\n\n4: kind\n\n<transcript>\n0: a\n1: b\n</transcript>"
        )
        assert ask(server, "judge", prompt).answer["score"] == 3
        assert ask(server, "judge", prompt + schema_of("judge")).answer["score"] == 3
        assert ask(server, "judge", prompt.partition("3: rude")[0]).answer["score"] == 0

    def test_keeps_what_fits_already_where_told_to(self) -> None:
        prompt = f"Objective: land on the target score\nTarget score: 2\n{SCALE}{TURNS}"
        with ModelServer(Obedient(keep_fitting=True, default_score=2)) as server:
            assert ask(server, "planner", prompt).answer["steps"] == []
            assert ask(server, "planner", prompt.replace("score: 2", "score: 1")).answer["steps"]
            assert ask(server, "judge", SCALE).answer["score"] == 2

    def test_edits_by_the_objective_where_the_prompt_shows_no_goal(
        self, server: ModelServer
    ) -> None:
        assert "ok-marker-violation" in ask(server, "editor", "Rewrite it.").answer["new_content"]
        for guidance in ("Target score: 4", "Score to reach, exactly: 4: fair"):
            assert "ok-marker-score-4" in ask(server, "editor", guidance).answer["new_content"]

    @pytest.mark.parametrize("stage", FIELDS)
    def test_answers_every_stage_with_the_fields_of_its_schema(
        self, server: ModelServer, stage: str
    ) -> None:
        assert set(ask(server, stage, PLANNER).answer) == set(FIELDS[stage])

    def test_can_be_overridden_for_a_stage(self) -> None:
        wrong = {"score": 0, "reasoning": "I saw nothing."}
        with ModelServer(
            override(Obedient(), judge=wrong, summary=lambda request: Reply(request.stage))
        ) as server:
            assert ask(server, "judge", "ok-marker-violation").answer == wrong
            assert ask(server, "summary").content == "summary"
            assert ask(server, "verifier", "ok-marker-violation").answer["verdict"] == "FAIL"

    def test_a_broken_script_fails_the_test(self) -> None:
        def broken(request: Request) -> Reply:
            raise LookupError("no answer for " + request.stage)

        server = ModelServer(broken).start()
        with pytest.raises(ConnectionError):
            ask(server, "judge")
        with pytest.raises(LookupError, match="no answer for judge"):
            server.__exit__(None, None, None)


class TestWhenFaultsStrike:
    def test_once_at_the_stage_named(self, server: ModelServer) -> None:
        rule = server.faults.add(stage="judge", fault=Fault.status(500))
        assert [ask(server, stage).status for stage in ("planner", "judge", "judge")] == [
            200,
            500,
            200,
        ]
        assert [request.kind for request in server.requests] == ["answer", "status 500", "answer"]
        assert (rule.seen, rule.fired) == (2, 1)

    def test_after_and_times_choose_the_occurrences(self, server: ModelServer) -> None:
        server.faults.add(fault=Fault.status(503), after=1, times=2)
        assert [ask(server, "judge").status for _ in range(5)] == [200, 503, 503, 200, 200]

    def test_always_until_cleared(self, server: ModelServer) -> None:
        server.faults.add(fault=Fault.status(429), times=None)
        assert [ask(server, "judge").status for _ in range(3)] == [429] * 3
        server.faults.clear()
        assert ask(server, "judge").status == 200

    def test_where_the_predicate_holds(self, server: ModelServer) -> None:
        server.faults.add(fault=Fault.status(500), when=lambda request: "tone" in request.text)
        assert [ask(server, "judge", prompt).status for prompt in ("facts", "tone", "tone")] == [
            200,
            500,
            200,
        ]

    def test_the_first_of_two_that_fit(self, server: ModelServer) -> None:
        server.faults.add(fault=Fault.status(500))
        server.faults.add(fault=Fault.status(503))
        assert [ask(server, "judge").status for _ in range(3)] == [500, 503, 200]


class TestFaultsOfTransport:
    @pytest.fixture
    def struck(self, server: ModelServer) -> Callable[..., Got]:
        def strike(fault: Fault, stage: str = "judge", prompt: str = "") -> Got:
            server.faults.add(fault=fault)
            return ask(server, stage, prompt)

        return strike

    @pytest.mark.parametrize("code", [401, 429, 500, 503, 529])
    def test_status_is_an_error_in_openais_words(
        self, struck: Callable[..., Got], code: int
    ) -> None:
        got = struck(Fault.status(code))
        assert got.status == code
        assert got.envelope["error"]["message"] == f"The scripted model answers {code}."
        assert "Retry-After" not in got.headers

    @pytest.mark.parametrize(("given", "sent"), [(2, "2"), (0.5, "0.5"), ("soon", "soon")])
    def test_retry_after_is_sent_as_seconds(
        self, struck: Callable[..., Got], given: float | str, sent: str
    ) -> None:
        assert struck(Fault.status(429, retry_after=given)).headers["Retry-After"] == sent

    def test_retry_after_is_sent_as_a_date(self, struck: Callable[..., Got]) -> None:
        date = datetime.datetime(2031, 5, 6, 7, 8, 9, tzinfo=datetime.UTC)
        got = struck(Fault.status(429, retry_after=date, headers={"X-Other": "1"}))
        assert got.headers["Retry-After"] == "Tue, 06 May 2031 07:08:09 GMT"
        assert got.headers["X-Other"] == "1"

    def test_retry_after_counts_from_the_answer(self, struck: Callable[..., Got]) -> None:
        before = datetime.datetime.now(datetime.UTC)
        header = struck(Fault.status(429, retry_after=datetime.timedelta(hours=1))).headers[
            "Retry-After"
        ]
        assert email.utils.parsedate_to_datetime(header) - before > datetime.timedelta(minutes=59)

    def test_hang_ends_by_itself_with_the_answer_or_another_fault(
        self, struck: Callable[..., Got]
    ) -> None:
        assert struck(Fault.hang(0.001)).answer["score"] == 0
        assert struck(Fault.hang(0.001, then=Fault.status(500))).status == 500

    def test_hang_lasts_until_released(self, server: ModelServer) -> None:
        hang = Fault.hang()
        server.faults.add(fault=hang, times=None)
        connection = connect(server)
        send(connection, body_for("judge"))
        server.wait_for(1)
        assert (server.in_flight, server.requests[0].kind) == (1, "pending")
        hang.release()
        assert receive(connection).status == 200
        assert ask(server, "judge").status == 200
        connection.close()

    def test_a_client_that_hangs_up_is_noticed_and_the_gate_stays(
        self, server: ModelServer
    ) -> None:
        hang = Fault.hang()
        server.faults.add(fault=hang, times=None)
        first, second = connect(server), connect(server)
        send(first, body_for("judge"))
        send(second, body_for("judge"))
        server.wait_for(2)
        first.close()
        server.wait_until(lambda: server.in_flight == 1)
        assert sorted((request.gone, request.status) for request in server.requests) == [
            (False, None),
            (True, None),
        ]
        hang.release()
        assert receive(second).status == 200
        second.close()
        assert (server.count(), server.count(answered=True)) == (2, 1)

    def test_drop_closes_without_an_answer(
        self, server: ModelServer, struck: Callable[..., Got]
    ) -> None:
        with pytest.raises(http.client.RemoteDisconnected):
            struck(Fault.drop())
        assert (server.requests[0].kind, server.requests[0].status) == ("drop", None)

    def test_drop_can_cut_an_answer_off(self, struck: Callable[..., Got]) -> None:
        with pytest.raises(http.client.IncompleteRead):
            struck(Fault.drop(after_bytes=200))


class TestFaultsOfContent:
    @pytest.fixture
    def struck(self, server: ModelServer) -> Callable[..., Got]:
        def strike(fault: Fault, stage: str = "judge", prompt: str = "") -> Got:
            server.faults.add(fault=fault)
            got = ask(server, stage, prompt)
            assert got.status == 200
            assert server.requests[-1].kind == fault.name
            return got

        return strike

    @pytest.mark.parametrize(
        ("fault", "content", "finish_reason"),
        [
            (Fault.text("Yes."), "Yes.", "stop"),
            (Fault.text(None), None, "stop"),
            (Fault.empty(), "", "stop"),
            (Fault.content_filter(), None, "content_filter"),
            (Fault.content_filter("I was go"), "I was go", "content_filter"),
        ],
    )
    def test_content_is_sent_as_given(
        self, struck: Callable[..., Got], fault: Fault, content: str | None, finish_reason: str
    ) -> None:
        got = struck(fault)
        assert (got.content, got.choice["finish_reason"]) == (content, finish_reason)
        assert got.choice["message"]["refusal"] is None

    @pytest.mark.parametrize(
        ("fault", "finish_reason"),
        [(Fault.invalid_json(), "stop"), (Fault.truncated_json(), "length")],
    )
    def test_json_is_broken_in_a_whole_envelope(
        self, struck: Callable[..., Got], fault: Fault, finish_reason: str
    ) -> None:
        got = struck(fault)
        assert got.choice["finish_reason"] == finish_reason
        with pytest.raises(ValueError, match=r"line 1"):
            json.loads(got.content)

    def test_refusal_has_no_content(self, struck: Callable[..., Got]) -> None:
        message = struck(Fault.refusal("No.")).choice["message"]
        assert (message["content"], message["refusal"]) == (None, "No.")

    def test_broken_envelope_is_half_an_answer_in_whole_http(
        self, struck: Callable[..., Got]
    ) -> None:
        got = struck(Fault.broken_envelope())
        assert int(got.headers["Content-Length"]) == len(got.raw)
        with pytest.raises(ValueError, match="line 1"):
            json.loads(got.raw)

    def test_raw_replaces_the_envelope(self, struck: Callable[..., Got]) -> None:
        assert struck(Fault.raw(b'{"id": "x"}')).envelope == {"id": "x"}

    @pytest.mark.parametrize("stage", FIELDS)
    def test_wrong_schema_misses_a_field(self, struck: Callable[..., Got], stage: str) -> None:
        assert len(struck(Fault.wrong_schema(), stage, PLANNER).answer) == len(FIELDS[stage]) - 1

    @pytest.mark.parametrize(
        ("value", "written"), [(99, "99"), ("1", '"1"'), (True, "true"), (1.0, "1.0")]
    )
    def test_score_is_written_with_its_type(
        self, struck: Callable[..., Got], value: Any, written: str
    ) -> None:
        got = struck(Fault.score(value))
        assert f'"score": {written}' in got.content
        assert got.answer["reasoning"]

    @pytest.mark.parametrize("prompt", [PLANNER, "Objective: satisfy the rubric"])
    def test_index_out_of_range_is_the_only_step(
        self, struck: Callable[..., Got], prompt: str
    ) -> None:
        plan = struck(Fault.index_out_of_range(), "planner", prompt).answer
        assert [step["message_index"] for step in plan["steps"]] == [9999]
        assert plan["thesis"]

    def test_empty_edit_has_no_text(self, struck: Callable[..., Got]) -> None:
        assert struck(Fault.empty_edit(), "editor").answer["new_content"] == ""

    @pytest.mark.parametrize("tag", ["original_turn", "original_message"])
    def test_same_edit_repeats_the_original(self, struck: Callable[..., Got], tag: str) -> None:
        prompt = f"<{tag}>\nLine one\nLine two\n</{tag}>"
        assert (
            struck(Fault.same_edit(), "editor", prompt).answer["new_content"]
            == "Line one\nLine two"
        )
        assert struck(Fault.same_edit("Given"), "editor", prompt).answer["new_content"] == "Given"


class TestAsAProcess:
    def test_logs_each_request_when_it_arrives_and_when_it_ends(self, tmp_path: Path) -> None:
        with server_process(tmp_path / "calls.jsonl") as process:
            connection = http.client.HTTPConnection(process.base_url.split("/")[2], timeout=10)
            for prompt in ("one", "two"):
                send(connection, body_for("judge", prompt))
                assert receive(connection).status == 200
            connection.close()
            events = process.events()
        assert [(event["event"], event["index"], event["stage"]) for event in events] == [
            ("asked", 0, "judge"),
            ("answered", 0, "judge"),
            ("asked", 1, "judge"),
            ("answered", 1, "judge"),
        ]
        first, second = process.events("asked")
        assert first["digest"] != second["digest"]
        with pytest.raises(ConnectionRefusedError):
            connection.connect()

    def test_the_log_tells_a_question_that_nobody_waited_for(self, tmp_path: Path) -> None:
        log = tmp_path / "calls.jsonl"
        with ModelServer(log=log, log_bodies=True) as server:
            server.faults.add(fault=Fault.hang())
            connection = connect(server)
            send(connection, body_for("judge", "Judge it"))
            server.wait_for(1)
            (asked,) = (json.loads(line) for line in log.read_text().splitlines())
            connection.close()
        lost = json.loads(log.read_text().splitlines()[-1])
        assert (asked["event"], asked["body"]["messages"][0]["content"]) == ("asked", "Judge it")
        assert (lost["event"], lost["kind"], lost["gone"]) == ("lost", "hang", True)
