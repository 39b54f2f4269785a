"""Files as other tools write them, small, made from a list of what judge and person said. Each tool
has one judge and one metric, `polite`. A pair is what the judge and what the person said of a case,
True for passed; None is a judge that failed, or a case that nobody labelled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Said: TypeAlias = "tuple[bool | None, bool | None]"
Json: TypeAlias = "dict[str, Any]"
TIME = "2026-05-01T10:00:00.000Z"
# What graders of promptfoo say that fail, not all with a mark in the metadata.
FAILURES = (
    {"reason": "API error: 500 Internal Server Error"},
    {"reason": "The server is down", "metadata": {"graderError": True}},
    {"reason": "Factuality checker output did not match expected format: I won't."},
    {"reason": "Model grader produced a malformed response:\nI won't."},
)


def promptfoo(said: Sequence[Said]) -> Json:
    """`promptfoo export eval ID -o results.json`, after somebody graded in its viewer."""
    results: list[Json] = []
    judge = {"id": "openai:chat:judge", "config": {"apiKey": "[REDACTED]"}}
    for number, (verdict, label) in enumerate(said):
        rubric = {"type": "llm-rubric", "value": "is polite", "metric": "polite"}
        part = {"assertion": rubric, "pass": bool(verdict), "reason": "Because."}
        part |= {"score": 0.2 if verdict is False else 0.9}
        if verdict is None:
            part |= FAILURES[number % len(FAILURES)]
        parts = [part, {"assertion": {"type": "contains", "value": "x"}, "pass": True, "score": 1}]
        if label is not None:
            parts.append({"assertion": {"type": "human"}, "pass": label, "score": int(label)})
        result = {
            "vars": {"question": f"question {number}", "human": "pass" if label else "fail"},
            "prompt": {"raw": f"Answer: question {number}", "label": "Answer: {{question}}"},
            "response": {"output": f"answer {number}"},
            "testCase": {"vars": {}, "options": {"provider": judge}, "metadata": {}},
            "gradingResult": {"pass": True, "score": 1, "componentResults": parts},
        }
        results.append({"testIdx": number, "promptIdx": 0, **result})
    failed = {"testIdx": len(said), "promptIdx": 0, "vars": {}, "error": "API error: 500"}
    summary = {"version": 3, "prompts": [], "results": [*results, failed], "stats": {}}
    return {"evalId": "eval-x", "results": summary, "config": {}, "shareableUrl": None}


def deepeval(said: Sequence[Said]) -> Json:
    """A file of `DEEPEVAL_RESULTS_FOLDER`; the label is metadata of the test case. Not all metrics
    that failed are without a score."""
    cases = []
    for number, (verdict, label) in enumerate(said):
        metric = {"name": "polite [GEval]", "success": bool(verdict), "evaluationModel": "judge"}
        if verdict is None:
            metric["error"] = "RetryError: it is down"
        if verdict is not None or number % 2:
            metric |= {"score": 0.2 if verdict is False else 0.9, "reason": "Because."}
        plain = {"name": "Exact Match", "threshold": 1.0, "success": True, "score": 1.0}
        texts = {"input": f"question {number}", "actualOutput": f"answer {number}"}
        metadata = {"human": {True: "pass", False: "fail", None: None}[label]}
        case = {"name": f"test_case_{number}", **texts, "metricsData": [metric, plain]}
        cases.append({**case, "metadata": metadata})
    return {"testCases": cases, "conversationalTestCases": [], "metricsScores": [], "prompts": []}


def langfuse(said: Sequence[Said]) -> list[Json]:
    """The export of the table of scores; a judge that failed leaves none."""
    scores = []
    for number, pair in enumerate(said):
        trace = {"traceId": f"trace-{number}", "timestamp": TIME, "name": "polite"}
        judge = {"observationId": f"span-{number}", "comment": "Because.", "authorUserName": None}
        person = {"observationId": None, "comment": None, "authorUserName": "ann"}
        for source, by, passed in zip(("EVAL", "ANNOTATION"), (judge, person), pair, strict=True):
            about = {"id": f"{source}-{number}", **trace, **by, "source": source}
            value = {"dataType": "BOOLEAN", "value": int(passed or False)}
            if passed is not None:
                scores.append({**about, **value, "stringValue": str(passed)})
    text = {**scores[0], "id": "text", "dataType": "TEXT", "value": None, "stringValue": "a text"}
    return [*scores, text]


def langfuse_v3(said: Sequence[Said]) -> Json:
    """What `/api/public/v3/scores` answers."""
    scores = []
    for score in langfuse(said):
        subject = {"kind": "trace", "id": score["traceId"]}
        kept = {name: score[name] for name in ("id", "source", "name", "dataType", "comment")}
        value = score["value"] == 1 if score["dataType"] == "BOOLEAN" else score["stringValue"]
        scores.append({**kept, "value": value, "subject": subject})
    return {"data": scores, "meta": {"limit": 50}}


def _assessment(trace: int, source: str, name: str, **said: Any) -> Json:
    about = {"assessment_id": f"{source}-{trace}", "assessment_name": name, "valid": True}
    by = {"source": {"source_type": source, "source_id": source.lower()}}
    return {**about, **by, "last_update_time": TIME, **said}


def mlflow(said: Sequence[Said]) -> list[Json]:
    """A list of `trace.to_dict()`. A person corrects the judge where they differ."""
    traces = []
    for number, (verdict, label) in enumerate(said):
        is_corrected = None not in (verdict, label) and label != verdict
        feedback: Json = {"value": verdict}
        if verdict is None:
            feedback = {"value": bool(number % 2), "error": {"error_code": "ValueError"}}
        judge = _assessment(number, "LLM_JUDGE", "polite", feedback=feedback, rationale="Because.")
        assessments = [{**judge, "valid": not is_corrected}]
        if label is not None:
            human = _assessment(number, "HUMAN", "polite", feedback={"value": label})
            if is_corrected:
                human["overrides"] = judge["assessment_id"]
            assessments.append(human)
        assessments.append(_assessment(number, "CODE", "length", feedback={"value": 12.0}))
        assessments.append(_assessment(number, "HUMAN", "polite", expectation={"value": "x"}))
        metadata = {"mlflow.traceInputs": "question", "mlflow.traceOutputs": "answer"}
        info = {"trace_id": f"tr-{number}", "trace_metadata": metadata, "assessments": assessments}
        traces.append({"info": info, "data": {"spans": []}})
    return traces


def mlflow_rows(said: Sequence[Said]) -> list[Json]:
    """Rows of `mlflow.search_traces()`."""
    texts = {"request": {"q": "question"}, "response": {"a": "answer"}}
    return [{**trace["info"], **texts} for trace in mlflow(said)]


def langsmith(said: Sequence[Said]) -> list[Json]:
    """Feedback of `client.list_feedback`; every other label is the correction of an evaluator's,
    and a score does not say that the evaluator has not failed."""
    entries = []
    for number, (verdict, label) in enumerate(said):
        about = {"run_id": f"run-{number}", "modified_at": TIME, "key": "polite", "value": None}
        about["id"] = f"model-{number}"
        model: Json = {"type": "model", "metadata": {}, "user_id": None}
        entry: Json = {**about, "comment": "Because.", "correction": None, "feedback_source": model}
        entry["score"] = float(verdict is not False)
        entry["extra"] = {"error": True} if verdict is None else None
        entries.append(entry)
        if label is not None and number % 2:
            entry["correction"] = {"score": float(label)}
        elif label is not None:
            source = {"type": "app", "metadata": {}, "user_id": "ann"}
            person = {**entry, "score": float(label), "comment": None, "extra": None}
            person["id"] = f"app-{number}"
            entries.append({**person, "feedback_source": source})
    return entries


FILES: dict[str, Callable[[Sequence[Said]], Any]] = {
    "promptfoo": promptfoo,
    "DeepEval": deepeval,
    "Langfuse": langfuse,
    "Langfuse v3": langfuse_v3,
    "MLflow": mlflow,
    "MLflow rows": mlflow_rows,
    "LangSmith": langsmith,
}
