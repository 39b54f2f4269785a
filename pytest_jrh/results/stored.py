"""Case results on disk, a JSON line each: what the shards of a suite are merged from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pytest_jrh.errors import InputError, Problem
from pytest_jrh.models import CaseResult, Spending, Usage

RESULTS_NAME = "case_results.jsonl"


def result_data(result: CaseResult) -> dict[str, Any]:
    """The result as plain JSON values, which `result_of` reads."""
    # Field by field, since `dataclasses.asdict` copies deeply, which is twenty times the work, for every report.
    judge = result.judge_spending
    return {
        **_fields(result),
        "spending": _spending_data(result.spending),
        "judge_spending": None if judge is None else _spending_data(judge),
    }


def result_of(data: Mapping[str, Any]) -> CaseResult:
    """The result of these values; raises `KeyError` or `TypeError` where they are none."""
    judge = data.get("judge_spending")
    spendings = {
        "spending": _spending_of(data["spending"]),
        "judge_spending": None if judge is None else _spending_of(judge),
    }
    return CaseResult(**{**data, **spendings})


def _spending_data(spending: Spending) -> dict[str, Any]:
    return {**_fields(spending), "usage": _fields(spending.usage)}


def _spending_of(data: Mapping[str, Any]) -> Spending:
    return Spending(**{**data, "usage": Usage(**data["usage"])})


def result_text(result: CaseResult) -> str:
    """The result as one JSON text, which `result_from` reads.

    It travels between processes as a report's attribute: taken apart by execnet it would be a hundred values.
    """
    return json.dumps(result_data(result))


def result_from(text: str) -> CaseResult:
    """The result of a text that `result_text` wrote."""
    return result_of(json.loads(text))


def _fields(value: CaseResult | Spending | Usage) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def read_results(path: Path) -> Iterator[CaseResult]:
    """Read the results of a file in order; raises `InputError` with file and line for a line that holds none."""
    known = {field.name for field in fields(CaseResult)}
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    data = json.loads(line)
                    yield result_of({key: value for key, value in data.items() if key in known})
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    message = f"this line holds no case result ({type(error).__name__}: {error})"
                    raise InputError(Problem(message, str(path), number)) from error
    except OSError as error:
        raise InputError(Problem(f"this file cannot be read: {error.strerror}", str(path))) from error
