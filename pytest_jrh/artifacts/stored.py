"""Case results on disk, a JSON line each: what the shards of a suite are merged from."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from pytest_jrh.documents.problems import shown
from pytest_jrh.errors import InputError, Problem
from pytest_jrh.kinds import BASES, KINDS, TESTS
from pytest_jrh.models import (
    JUDGED,
    MADE,
    CaseResult,
    CaseSpec,
    Rejection,
    SharedCall,
    Spending,
    Usage,
    Verdict,
    most_frequent,
)
from pytest_jrh.sections import MAX_REPEATS
from pytest_jrh.stats.contradictions import reasoning_disagrees
from pytest_jrh.suite.ids import case_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


RESULTS_NAME = "case_results.jsonl"
_AGAIN = "Run the shard again; a truncated or edited file is not used."
_MOST_PROBLEMS = 10
# What a float holds exactly: means and sums are made of these.
_MOST = 2**53
_HEX = re.compile("[0-9a-f]{64}", re.ASCII)


def result_data(result: CaseResult) -> dict[str, Any]:
    """The result as plain JSON values, which `result_of` reads."""
    # Field by field, since `dataclasses.asdict` copies deeply, which is twenty times the work, for
    # every report.
    judge, shared, minority = result.judge_spending, result.shared, result.minority
    rejected = result.rejected
    data = _fields(result)
    del data["minority"], data["reworded"], data["altered"], data["rejected"]
    if not result.variant:
        del data["base"], data["variant"], data["base_scores"]
    return {
        **data,
        # Only where there is something to say, so that other lines stay as short as they were.
        **({} if minority is None else {"minority": _fields(minority)}),
        **({"reworded": True} if result.reworded else {}),
        **({"altered": True} if result.altered else {}),
        **({} if rejected is None else {"rejected": _fields(rejected)}),
        "spending": _spending_data(result.spending),
        "judge_spending": None if judge is None else _spending_data(judge),
        "shared": None
        if shared is None
        else {**_fields(shared), "spending": _spending_data(shared.spending)},
    }


def stored_data(result: CaseResult, *, config: str = "", kept: bool = False) -> dict[str, Any]:
    """The line of a result, with what is beside it; see `StoredResult`."""
    beside: dict[str, Any] = {"config": config} if config else {}
    marks = {"reasoning_disagrees": reasoning_disagrees(result)} | ({"kept": True} if kept else {})
    return {**result_data(result), **beside, **marks}


def result_of(data: Mapping[str, Any]) -> CaseResult:
    """The result of these values; raises `KeyError` or `TypeError` where they are none."""
    judge, shared = data.get("judge_spending"), data.get("shared")
    minority, rejected = data.get("minority"), data.get("rejected")
    spendings = {
        "spending": _spending_of(data["spending"]),
        "judge_spending": None if judge is None else _spending_of(judge),
        "shared": None
        if shared is None
        else SharedCall(shared["fingerprint"], _spending_of(shared["spending"])),
    }
    return CaseResult(
        **{
            **data,
            **spendings,
            "scores": tuple(data.get("scores", ())),
            "base_scores": tuple(data.get("base_scores", ())),
            "minority": None if minority is None else Verdict(**minority),
            "rejected": None if rejected is None else Rejection(**rejected),
        }
    )


def _spending_data(spending: Spending) -> dict[str, Any]:
    return {**_fields(spending), "usage": _fields(spending.usage)}


def _spending_of(data: Mapping[str, Any]) -> Spending:
    return Spending(**{**data, "usage": Usage(**data["usage"])})


def result_text(result: CaseResult) -> str:
    """The result as one JSON text, which `result_from` reads.

    It travels between processes as a report's attribute: taken apart by execnet it would be a
    hundred values.
    """
    return json.dumps(result_data(result))


def result_from(text: str) -> CaseResult:
    """The result of a text that `result_text` wrote."""
    return result_of(json.loads(text))


def _fields(
    value: CaseResult | Rejection | SharedCall | Spending | Usage | Verdict,
) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


class StoredResult(NamedTuple):
    """A result, and its line in the file that it was read from.

    `config` is the suite's config file, where the line names it; `kept` says that an earlier
    session gave the result, and the one that wrote the file left it as it was.
    """

    result: CaseResult
    line: int
    config: str = ""
    kept: bool = False


def read_results(path: Path) -> dict[str, StoredResult]:
    """Read the results of a file by case id, in the file's order.

    Raises `InputError` with file and line for each line that holds no result, a result that
    contradicts itself, or a second result of a case.
    """
    found: dict[str, StoredResult] = {}
    problems: list[Problem] = []
    if path.exists() and not path.is_file():
        # Reading a named pipe would wait for someone to write into it.
        raise InputError(Problem("this is not a regular file", str(path), hint=_AGAIN))
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    stored = _checked(line)
                except ValueError as error:
                    problems.append(_problem(error, path, number))
                    continue
                result = CaseResult(**{name: getattr(stored, name) for name in _NAMES})
                if result.case_id in found:
                    message = (
                        f"duplicate case_id {result.case_id!r}, first on line "
                        f"{found[result.case_id].line}"
                    )
                    problems.append(Problem(message, str(path), number, hint=_AGAIN))
                config, kept = str(stored.config), stored.kept is not False
                found[result.case_id] = StoredResult(result, number, config, kept)
    except OSError as error:
        raise InputError(
            Problem(f"this file cannot be read: {error.strerror}", str(path))
        ) from error
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        rest = [Problem(f"and {more} more lines", str(path))] if more > 0 else []
        raise InputError([*problems[:_MOST_PROBLEMS], *rest])
    return found


@dataclass(frozen=True, slots=True)
class _Line(CaseResult):
    """A line of the file, read in one go with what is beside the result."""

    config: Any = ""
    kept: Any = False


_NAMES = tuple(field.name for field in fields(CaseResult))


@lru_cache(maxsize=1)
def _schema() -> TypeAdapter[_Line]:
    # Built when a file is read: no session without one pays for it.
    return TypeAdapter(_Line)


def _checked(line: bytes) -> _Line:
    """Read a line; raises `ValueError`, of which pydantic's error is one, where it is no result."""
    result = _schema().validate_json(line, strict=True)
    # Readers differ in which of the values they take.
    json.loads(line, object_pairs_hook=_unique)
    for mistake in _contradictions(result):
        raise ValueError(mistake)
    return result


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"duplicate key {shown(twice)}")
    return data


def _contradictions(result: CaseResult) -> Iterator[str]:
    """Say where a result contradicts itself, or lacks what its outcome implies (rules F, J2)."""
    outcome, score, expected = result.outcome, result.score, result.expected
    if result.test not in TESTS:
        yield f"test must be one of {', '.join(TESTS)}, got {shown(result.test)}"
        return
    if odd := _odd_base(result):
        yield odd
        return
    if (own := _own_id(result)) != result.case_id:
        yield f"case_id is {shown(result.case_id)}, but the other fields are those of {shown(own)}"
    if result.epoch < 0 or not all(map(_is_amount, _amounts(result))):
        yield (
            "epoch and the figures of spending, judge_spending and shared must be "
            "numbers from 0 to 2**53"
        )
    if outcome in MADE and not _HEX.fullmatch(result.case_digest):
        yield f"case_digest must be 64 hexadecimal digits, got {shown(result.case_digest)}"
    yield from _odd_rejection(result)
    yield from _odd_scores(result)
    if outcome not in JUDGED:
        return
    if expected is None or (score is None and not result.repeated):
        yield f"score and expected must be integers where outcome is {outcome}"
    elif (score == expected) != (outcome == "agree"):
        yield f"outcome is {outcome}, but score is {score} and expected is {expected}"
    if not _HEX.fullmatch(result.judge_fingerprint):
        yield (
            "judge_fingerprint must be 64 hexadecimal digits, got "
            f"{shown(result.judge_fingerprint)}"
        )


def _odd_base(result: CaseResult) -> str:
    """What is wrong with the base case of a probe's result, or with one where there is no probe."""
    if KINDS[result.test].derived:
        if result.base not in BASES or not result.variant:
            return (
                f"base must be one of {', '.join(BASES)} and variant a name, got "
                f"{shown(result.base)} and {shown(result.variant)}"
            )
        if len(result.base_scores) > MAX_REPEATS:
            return f"base_scores must be at most {MAX_REPEATS}, got {len(result.base_scores)}"
        return ""
    if result.base or result.variant or result.base_scores:
        return f"base, variant and base_scores are for probes, which {result.test} is not"
    return ""


def _odd_rejection(result: CaseResult) -> Iterator[str]:
    if result.rejected is None:
        return
    if result.outcome != "no_case":
        yield f"rejected must be absent where outcome is {result.outcome}"
    if not _HEX.fullmatch(digest := result.rejected.case_digest):
        yield f"rejected.case_digest must be 64 hexadecimal digits, got {shown(digest)}"


def _odd_scores(result: CaseResult) -> Iterator[str]:
    """Say where the repeats do not give the score; a file of an earlier version has none."""
    if result.outcome not in JUDGED:
        if result.score is not None:
            yield f"score must be null where outcome is {result.outcome}, got {result.score}"
        if result.scores or result.minority is not None:
            yield f"scores must be empty, and minority absent, where outcome is {result.outcome}"
        return
    if not result.scores:
        return
    if len(result.scores) > MAX_REPEATS:
        yield f"scores must be at most {MAX_REPEATS}, got {len(result.scores)}"
    elif (score := most_frequent(result.scores)) != result.score:
        yield (
            f"score is {result.score}, but the most frequent of scores is "
            f"{'not a single one' if score is None else score}"
        )
    if (result.minority is not None) != result.flickers:
        yield "minority must be there exactly where scores differ"
    elif result.minority is not None and result.minority.score not in result.scores:
        yield f"minority has the score {result.minority.score}, which is not in scores"


def _own_id(result: CaseResult) -> str:
    test = result.test
    place = (result.suite, test, result.rubric_id, result.run_id, result.epoch, result.target_score)
    judge, base = result.judge or None, result.base
    return case_id(CaseSpec(*place, judge=judge, base=base, variant=result.variant))


def _amounts(result: CaseResult) -> Iterator[float]:
    shared = result.shared.spending if result.shared is not None else None
    for spending in (result.spending, result.judge_spending, shared):
        if spending is not None:
            yield from (
                value for value in _fields(spending).values() if not isinstance(value, Usage)
            )
            yield from _fields(spending.usage).values()


def _is_amount(value: object) -> bool:
    return not isinstance(value, int | float) or 0 <= value <= _MOST


def _problem(error: ValueError, path: Path, line: int) -> Problem:
    if not isinstance(error, ValidationError):
        return Problem(str(error), str(path), line, hint=_AGAIN)
    first = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(part) for part in first["loc"]) or None
    return Problem(
        f"not a case result: {first['msg'][:1].lower()}{first['msg'][1:]}",
        str(path),
        line,
        key,
        hint=_AGAIN,
    )
