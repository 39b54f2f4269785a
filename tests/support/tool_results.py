"""Files as other tools write them, small, made from a list of what judge and person said.

Each tool has one judge and one metric, `polite`. A pair is what the judge and what the person said
of a case, True for passed; None is a judge that failed, or a case that nobody labelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Said: TypeAlias = "tuple[bool | None, bool | None]"


def promptfoo(said: Sequence[Said]) -> dict[str, Any]:
    """`promptfoo export eval ID -o results.json`, after somebody graded in its viewer."""
    results = []
    for number, (verdict, label) in enumerate(said):
        rubric = {"type": "llm-rubric", "value": "is polite", "metric": "polite"}
        part: dict[str, Any] = {
            "assertion": rubric,
            "pass": bool(verdict),
            "score": int(bool(verdict)),
        }
        part["reason"] = (
            "Because." if verdict is not None else "API error: 500 Internal Server Error"
        )
        if verdict is None and number % 2:
            # Not all of its graders say so.
            part["metadata"] = {"graderError": True}
        parts = [part, {"assertion": {"type": "contains", "value": "x"}, "pass": True, "score": 1}]
        if label is not None:
            human = {"assertion": {"type": "human"}, "pass": label, "score": int(label)}
            parts.append({**human, "reason": "Manual result (overrides all other grading results)"})
        judge = {"id": "openai:chat:judge", "config": {"apiKey": "[REDACTED]"}}
        results.append(
            {
                "testIdx": number,
                "promptIdx": 0,
                "id": f"result-{number}",
                "vars": {"question": f"question {number}", "human": "pass" if label else "fail"},
                "provider": {"id": "openai:chat:target", "label": ""},
                "prompt": {"raw": f"Answer: question {number}", "label": "Answer: {{question}}"},
                "response": {"output": f"answer {number}"},
                "testCase": {"vars": {}, "options": {"provider": judge}, "metadata": {}},
                "success": True,
                "gradingResult": {"pass": True, "score": 1, "componentResults": parts},
            }
        )
    failed = {"testIdx": len(said), "promptIdx": 0, "vars": {}, "error": "API error: 500"}
    summary = {"version": 3, "prompts": [], "results": [*results, failed], "stats": {}}
    return {"evalId": "eval-x", "results": summary, "config": {}, "shareableUrl": None}


def deepeval(said: Sequence[Said]) -> dict[str, Any]:
    """A file of `DEEPEVAL_RESULTS_FOLDER`; the label is metadata of the test case."""
    cases = []
    for number, (verdict, label) in enumerate(said):
        metric = {
            "name": "polite [GEval]",
            "threshold": 0.5,
            "success": bool(verdict),
            "evaluationModel": "judge",
        }
        if verdict is None:
            metric["error"] = "RetryError: it is down"
        else:
            metric |= {"score": 0.9 if verdict else 0.1, "reason": "Because."}
        plain = {"name": "Exact Match", "threshold": 1.0, "success": True, "score": 1.0}
        case = {
            "name": f"test_case_{number}",
            "input": f"question {number}",
            "actualOutput": f"answer {number}",
            "success": True,
            "metricsData": [metric, plain],
            "order": number,
        }
        if label is not None:
            case["metadata"] = {"human": "pass" if label else "fail"}
        cases.append(case)
    return {"testCases": cases, "conversationalTestCases": [], "metricsScores": [], "prompts": []}


def langfuse(said: Sequence[Said]) -> list[dict[str, Any]]:
    """The export of the table of scores; a judge that failed leaves none."""
    scores = []
    for number, pair in enumerate(said):
        for source, passed in zip(("EVAL", "ANNOTATION"), pair, strict=True):
            if passed is None:
                continue
            scores.append(
                {
                    "id": f"{source}-{number}",
                    "traceId": f"trace-{number}",
                    "sessionId": None,
                    "observationId": f"span-{number}" if source == "EVAL" else None,
                    "timestamp": "2026-05-01T10:00:00.000Z",
                    "source": source,
                    "name": "polite",
                    "dataType": "BOOLEAN",
                    "value": int(passed),
                    "stringValue": str(passed),
                    "comment": "Because." if source == "EVAL" else None,
                    "authorUserName": None if source == "EVAL" else "ann",
                }
            )
    text = {**scores[0], "id": "text", "dataType": "TEXT", "value": None, "stringValue": "a text"}
    return [*scores, text]


def langfuse_v3(said: Sequence[Said]) -> dict[str, Any]:
    """What `/api/public/v3/scores` answers."""
    scores = []
    for score in langfuse(said):
        subject = {"kind": "trace", "id": score["traceId"]}
        kept = {name: score[name] for name in ("id", "source", "name", "dataType", "comment")}
        value = score["value"] == 1 if score["dataType"] == "BOOLEAN" else score["stringValue"]
        scores.append({**kept, "value": value, "subject": subject})
    return {"data": scores, "meta": {"limit": 50}}


def _assessment(trace: int, source: str, feedback: dict[str, Any]) -> dict[str, Any]:
    return {
        "assessment_id": f"{source}-{trace}",
        "assessment_name": "polite",
        "trace_id": f"tr-{trace}",
        "source": {"source_type": source, "source_id": source.lower()},
        "last_update_time": "2026-05-01T10:00:00.000Z",
        "feedback": feedback,
        "valid": True,
    }


def mlflow(said: Sequence[Said]) -> list[dict[str, Any]]:
    """A list of `trace.to_dict()`. A person corrects the judge where they differ."""
    traces = []
    for number, (verdict, label) in enumerate(said):
        assessments: list[dict[str, Any]] = []
        is_corrected = None not in (verdict, label) and label != verdict
        if verdict is None:
            feedback: dict[str, Any] = {"value": None, "error": {"error_code": "ValueError"}}
        else:
            feedback = {"value": verdict}
        judge = _assessment(number, "LLM_JUDGE", feedback)
        assessments.append({**judge, "rationale": "Because.", "valid": not is_corrected})
        if label is not None:
            human = _assessment(number, "HUMAN", {"value": label})
            if is_corrected:
                human["overrides"] = judge["assessment_id"]
            assessments.append(human)
        length = _assessment(number, "CODE", {"value": 12.0})
        assessments.append({**length, "assessment_name": "length"})
        expectation = {**assessments[0], "assessment_id": "e", "expectation": {"value": "x"}}
        del expectation["feedback"]
        info = {
            "trace_id": f"tr-{number}",
            "state": "OK",
            "trace_metadata": {
                "mlflow.traceInputs": f"question {number}",
                "mlflow.traceOutputs": f"answer {number}",
            },
            "assessments": [*assessments, expectation],
        }
        traces.append({"info": info, "data": {"spans": []}})
    return traces


def mlflow_rows(said: Sequence[Said]) -> list[dict[str, Any]]:
    """Rows of `mlflow.search_traces()`."""
    rows = []
    for trace in mlflow(said):
        info = trace["info"]
        row = {"trace_id": info["trace_id"], "state": "OK", "assessments": info["assessments"]}
        rows.append({**row, "request": {"q": "question"}, "response": {"a": "answer"}})
    return rows


def langsmith(said: Sequence[Said]) -> list[dict[str, Any]]:
    """Feedback of `client.list_feedback`; every other label is the correction of an evaluator's."""
    entries = []
    for number, (verdict, label) in enumerate(said):
        entry: dict[str, Any] = {
            "id": f"feedback-{number}",
            "run_id": f"run-{number}",
            "trace_id": f"run-{number}",
            "modified_at": "2026-05-01T10:00:00",
            "key": "polite",
            "score": None if verdict is None else float(verdict),
            "value": None,
            "comment": "Because.",
            "correction": None,
            "feedback_source": {"type": "model", "metadata": {}, "user_id": None},
            "extra": {"error": True} if verdict is None else None,
        }
        if label is not None and number % 2:
            entry["correction"] = {"score": float(label)}
        entries.append(entry)
        if label is not None and not number % 2:
            source = {"type": "app", "metadata": {}, "user_id": "ann"}
            person = {**entry, "id": f"p{number}", "score": float(label), "comment": None}
            entries.append({**person, "feedback_source": source, "extra": None})
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
