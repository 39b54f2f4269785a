"""Acts edited in real runs over HTTP, by a scripted planner and editor and by a person on the
review page, and contradictions planted after an edit: what is made of them. Every made transcript
is undone to its run, and held against Inspect's message converters and litellm's order of tool
messages for OpenAI and Anthropic.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import yaml

from benchmarks import consistency
from benchmarks.material import CACHE, CASES_FILE
from benchmarks.measure import Line, pytest_command, run
from pytest_jrh import load_cases
from pytest_jrh.core.ids import LEDGER_FILE, generation_id
from pytest_jrh.core.model import Message
from pytest_jrh.sources import load_inspect_eval_runs
from pytest_jrh.sources.chat import read_messages
from pytest_jrh.store.ledger import read_ledger
from tests.support.accepted import refusal
from tests.support.model_server import ModelServer, Request
from tests.support.undoing import undone

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
DEMO = Path(__file__).resolve().parents[1] / "inputs" / "data" / "refund_agent"
RUNS = 20
_PATIENCE = 300.0
Conversation: TypeAlias = Mapping[str, Any]
KINDS = ("say", "call", "insert", "omit")
RUBRICS = [
    {"id": kind, "instructions": f"The agent keeps its rules; what breaks them is of kind {kind}."}
    for kind in KINDS
]
_RUBRIC = re.compile(r"is of kind (\w+)\.")
_SHOWN = re.compile(r"<transcript>\n(.*?)\n</transcript>", re.DOTALL)
_CALL = re.compile(
    r"^\[(\d+)\] assistant calls (\S+) \(call (\d+)[^\n]*\)\n  (\{.*\})$", re.MULTILINE
)
_ASSISTANT = re.compile(r"^\[(\d+)\] assistant$", re.MULTILINE)
_ACT = re.compile(r"<act>\n(.*?)\n?</act>", re.DOTALL)
_ACT_CALL = re.compile(r"^\w+: \{.*\}$", re.MULTILINE)
_TOOL = re.compile(r"<tools>\n- (.*?): ")
_EXAMPLE = re.compile(r"<real_calls>\n(.*?): (\{[^\n]*\})\n(.*?)\n(?:\n|</real_calls>)", re.DOTALL)
_TURN = re.compile(r"<original_turn>\n(.*?)\n?</original_turn>", re.DOTALL)
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\?token=\S+")
_CHANGED = re.compile(r"which still says (.*?)\. Make it agree")


class Actor:
    """A planner that plans an edit of the kind that the rubric names, and an editor that carries it
    out: it raises a number or lengthens a text, and puts the new value where the old one was.
    """

    def __call__(self, request: Request) -> Mapping[str, Any]:
        """The answer of a stage."""
        match request.stage:
            case "planner":
                return self._plan(request.text)
            case "editor":
                return self._edit(request)
            case "verifier":
                return {
                    "rationale": "It does.",
                    "verdict": "FAIL",
                    "contradiction": "",
                    "contradicts_itself": False,
                }
            case "judge":
                return {"reasoning": "It is broken.", "score": 1}
            case _:
                return {
                    "summary": "The agent helps.",
                    "user_intent": "Help.",
                    "assistant_progress": [],
                    "outstanding_items": [],
                    "risks": [],
                }

    def _plan(self, prompt: str) -> Mapping[str, Any]:
        kind = _found(_RUBRIC, prompt)[1]
        shown = _found(_SHOWN, prompt)[1]
        turns = [int(turn) for turn in _ASSISTANT.findall(shown)]
        calls = [(int(turn), number) for turn, _, number, _ in _CALL.findall(shown)]
        turn, call = max(turns), ""
        if kind in ("call", "omit"):
            # The last call: less hangs on it than on others.
            turn, call = calls[-1]
        step = {
            "kind": kind,
            "message_index": turn,
            "call": call,
            "goal": "Do it otherwise.",
            "rationale": "It is late.",
        }
        return {"thesis": "One act is enough.", "steps": [step]}

    def _edit(self, request: Request) -> Mapping[str, Any]:
        prompt = request.text
        reason = "As planned."
        stale = _CHANGED.search(prompt)
        old = stale[1].split(", ") if stale else []
        if "new_content" in request.fields:
            turn = _found(_TURN, prompt)[1]
            new_turn = _without(turn, old) if stale else f"{turn} I did it my way."
            return {"new_content": new_turn, "reason": reason}
        if "tool" in request.fields:
            name, arguments, result = _found(_EXAMPLE, prompt).groups()
            tool = {"tool": name}
        else:
            # Of the calls of the turn the one whose tool is listed.
            name = _found(_TOOL, prompt)[1]
            act = _found(_ACT, prompt)[1]
            arguments = _found(re.compile(rf"^{re.escape(name)}: (\{{.*\}})$", re.MULTILINE), act)[
                1
            ]
            result = act[[*_ACT_CALL.finditer(act)][-1].end() :].removeprefix("\n")
            tool = {}
        new_arguments, new_result = arguments, result
        if stale:
            new_arguments, new_result = _without(arguments, old), _without(result, old)
        elif not tool:
            new_arguments = json.dumps(_otherwise(json.loads(arguments)), ensure_ascii=False)
        answer = {"words": "", "arguments": new_arguments, "result": new_result}
        return {**tool, **answer, "result_is_error": False, "reason": reason}


def _found(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.search(text)
    if match is None:
        raise LookupError(f"{pattern.pattern} is not in the prompt:\n{text[-3000:]}")
    return match


def _without(text: str, values: Sequence[str]) -> str:
    for value in values:
        text = text.replace(value, "9" * len(value) if value.isdigit() else f"{value[:-1]}x")
    return text


def _otherwise(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with one value changed within its type."""
    changed = dict(arguments)
    for key, value in arguments.items():
        if isinstance(value, bool):
            continue
        if isinstance(value, int | float):
            return changed | {key: value + 7}
        if isinstance(value, str):
            changed[key] = f"{value} too"
    return changed


def trajectories() -> Iterator[Conversation]:
    """The trajectories of trajectory-judge as chats: each step calls one tool."""
    path = DATA / "trajectory-judge" / "trajectories.jsonl"
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        messages: list[dict[str, Any]] = [{"role": "user", "content": row["goal"]}]
        for step in row["steps"]:
            call_id = f"call_{step['index']}"
            function = {
                "name": step["call"]["tool"],
                "arguments": json.dumps(step["call"]["args"]),
            }
            calls = [{"id": call_id, "type": "function", "function": function}]
            messages += [
                {"role": "assistant", "content": step["thought"] or "", "tool_calls": calls},
                {
                    "role": "tool",
                    "tool_call_id": call_id,
                    "content": json.dumps(step["observation"]),
                },
            ]
        messages.append({"role": "assistant", "content": row["final_answer"] or "(none)"})
        yield {"id": row["trajectory_id"], "cluster": row["instance_id"], "messages": messages}


def tau_runs(path: Path) -> Iterator[Conversation]:
    """The first run of each task in a file of tau-bench's, or of one that is made like it."""
    tasks = set()
    for row in json.loads(path.read_text("utf-8")):
        if row["task_id"] not in tasks:
            tasks.add(row["task_id"])
            yield {"id": f"task-{row['task_id']}", "messages": row["traj"]}


SOURCES: Mapping[str, Callable[[], Iterator[Conversation]]] = {
    "tau-bench": lambda: tau_runs(DATA / "tau-bench" / "gpt-4o-airline.json"),
    "trajectory-judge": trajectories,
    "agentrx": lambda: tau_runs(DATA / "agentrx" / "tau_retail_runs.json"),
}


def sessions() -> list[Line]:
    """Each source's runs made into cases over HTTP, judged, replayed, frozen and in two processes;
    what is made, why the rest is not, and whether providers take it.
    """
    lines = []
    for name, read in SOURCES.items():
        if not (DATA / name).is_dir():
            continue
        folder = _emptied(name)
        runs = {}
        with (folder / "runs.jsonl").open("w", encoding="utf-8") as file:
            for conversation in islice(filter(_has_calls, read()), RUNS):
                file.write(json.dumps(conversation) + "\n")
                runs[conversation["id"]] = read_messages(list(conversation["messages"]))[0]
        lines += _session(name, folder, "runs.jsonl", runs)
    folder = _emptied("demo")
    shutil.copyfile(DEMO / "refund_agent.eval", folder / "runs.eval")
    demo = {one.run_id: one.messages for one in load_inspect_eval_runs(folder / "runs.eval")}
    return [*lines, *_session("demo", folder, "runs.eval", demo)]


def _emptied(name: str) -> Path:
    folder = CACHE / f"acts-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _has_calls(conversation: Conversation) -> bool:
    return any(message.get("tool_calls") for message in conversation["messages"])


def _session(
    name: str, folder: Path, log: str, runs: Mapping[str, tuple[Message, ...]]
) -> list[Line]:
    for file_name, content in (("rubrics.yml", RUBRICS), ("acts.yml", _config(log))):
        text = yaml.safe_dump(content, sort_keys=False)
        (folder / file_name).write_text(text, encoding="utf-8")
    with ModelServer(Actor(), keep=False) as server:
        made = _judged(folder, "--jrh-record-mode=new_episodes", environment=server.environment)
    for again in (("--jrh-record-mode=none",), ("-p", "xdist", "-n2")):
        assert _judged(folder, *again) == made, f"{name}: {again} gives other results"
    # A frozen suite knows nothing of what made no case.
    judged = {case for case, outcome in made.items() if outcome == "agree"}
    frozen = _judged(folder, "--jrh-frozen")
    assert {case for case, outcome in frozen.items() if outcome == "agree"} == judged, name
    skips = Counter(kind for kind in made.values() if kind != "agree")
    refused = []
    kinds: Counter[str] = Counter()
    for case in load_cases(folder / CASES_FILE):
        kinds.update(edit.kind for edit in case.outcome.edits if not edit.follows)
        kinds["follows"] += sum(bool(edit.follows) for edit in case.outcome.edits)
        if undone(case.messages, case.outcome.edits) != tuple(runs[case.spec.run_id]):
            refused.append(f"{case.spec.run_id}: its edits do not lead back to the run")
        elif (reason := refusal(case.messages)) is not None:
            refused.append(f"{case.spec.run_id}: {reason}")
    count = len(made) - skips.total()
    what = f"acts, {len(runs)} runs of {name} x {len(RUBRICS)} kinds"
    figure = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    because = ", ".join(f"{number} {kind}" for kind, number in sorted(skips.items()))
    return [
        Line(f"{what}: made", f"{count} of {len(made)}: {figure}", because, count / len(made)),
        Line(
            f"{what}: not taken by providers, or not undone",
            "; ".join(refused) or "0",
            "at most 0",
            float(len(refused)),
            0.0,
        ),
        _reviewed(name, folder, runs),
    ]


def _reviewed(name: str, folder: Path, runs: Mapping[str, tuple[Message, ...]]) -> Line:
    """A person edits a call and its result on the review page, over HTTP: what breaks the structure
    is refused, the rest is judged, stored and frozen.
    """
    path = folder / CASES_FILE
    case = next(case for case in load_cases(path) if case.spec.rubric_id == "call")
    turn = case.outcome.edits[0].message_index
    command = pytest_command(
        "--jrh-config=acts.yml", "--jrh-review", "--jrh-judge-record-mode=new_episodes"
    )
    mistakes = []
    with ModelServer(Actor(), keep=False) as server, _page(command, folder, server) as client:
        node = generation_id(case.spec)
        row = next(row for row in _rows(client) if row["node"] == node)
        address = f"/cases/{row['key']}/turns/{turn}"
        shown = client.get(address).raise_for_status().json()
        (call, *_others) = shown["calls"]
        arguments = _otherwise(case.messages[turn]["tool_calls"][0]["arguments"])
        result = call["result"].translate(str.maketrans("123456789", "234567891"))
        broken = {**arguments, "unknown to the tool": 1}
        for attempt, text, status in ((broken, result, 409), (arguments, result, 200)):
            typed = {}
            for key, value in attempt.items():
                typed[key] = value if isinstance(value, str) else json.dumps(value)
            edited = {"call": 0, "arguments": typed, "result": text}
            body = {"digest": row["digest"], "content": shown["text"], "calls": [edited]}
            answer = client.post(address, json=body)
            if answer.status_code != status:
                mistakes.append(f"{answer.status_code} in place of {status}: {answer.text}")
        client.post("/finish", json={}).raise_for_status()
    (stored,) = (made for made in load_cases(path) if made.spec == case.spec)
    if stored.messages[turn]["tool_calls"][0]["arguments"] != arguments:
        mistakes.append("the edited call is not stored")
    if undone(stored.messages, stored.outcome.edits) != tuple(runs[case.spec.run_id]):
        mistakes.append("its edits do not lead back to the run")
    if (reason := refusal(stored.messages)) is not None:
        mistakes.append(reason)
    _judged(folder, "--jrh-record-mode=none")
    _judged(folder, "--jrh-frozen")
    what = f"acts, {name}: a call and its result edited on the review page over HTTP"
    figure = "; ".join(mistakes) or "a broken one refused, the other judged, replayed, frozen"
    return Line(what, figure, "no mistake", float(len(mistakes)), 0.0)


@contextmanager
def _page(command: Sequence[str], folder: Path, server: ModelServer) -> Iterator[httpx.Client]:
    """The review page of a session, which goes on when it is finished; `RuntimeError` where the
    session fails.
    """
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **server.environment}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=folder, env=environment, **pipes) as process:
        try:
            said = ""
            while (address := _ADDRESS.search(said)) is None:
                line = process.stdout.readline() if process.stdout else ""
                if not line:
                    raise RuntimeError(f"no review page:\n{said}")
                said += line
            origin = address[0].partition("/?")[0]
            headers = {"origin": origin}
            with httpx.Client(base_url=origin, headers=headers, trust_env=False) as client:
                client.get(address[0]).raise_for_status()
                yield client
            rest, _ = process.communicate(timeout=_PATIENCE)
            if process.returncode:
                raise RuntimeError(f"{said}{rest}")
        finally:
            process.kill()


def _rows(client: httpx.Client) -> Iterator[Mapping[str, Any]]:
    """The cases of the page, as they are made."""
    with client.stream("GET", "/events", timeout=_PATIENCE) as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                yield from json.loads(line.removeprefix("data: ")).get("rows", ())


def _judged(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """How each case of a session ends, by its id: its outcome, or the kind of its skip."""
    run(pytest_command("--jrh-config=acts.yml", *arguments), folder, environment=environment)
    (path,) = folder.rglob(LEDGER_FILE)
    results = [stored.result for stored in read_ledger(path).values()]
    return {result.case_id: result.skip_kind or result.outcome for result in results}


def _config(log: str) -> Mapping[str, Any]:
    return {
        "admin": {
            "module_name": "acts",
            "perturbation_config": {"tests_to_run": ["agent_perturbation"]},
            "evaluation_config": {
                "template": "agent_judge",
                "autograder_model_name": "openai/gpt-4.1-mini",
            },
        },
        "synthetic_data_params": {"generation_model_name": "openai/gpt-4.1-mini"},
        "test_agent_perturbation_config": {
            "input_log_path": log,
            "rubric_path": "rubrics.yml",
            "edits": "acts",
            "output": {"dir": str(CASES_FILE.parent)},
        },
        "replay": {"cassette_dir": "cassettes"},
    }


def lines() -> list[Line]:
    """Sessions over real runs, and contradictions planted after an edit."""
    return [*consistency.lines(), *sessions()]
