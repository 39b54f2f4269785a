"""The baseline's file: JSON to commit, sorted, one case per line, with an error for every mistake
in it (rule J2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from pytest_jrh.documents.findings import Findings
from pytest_jrh.documents.problems import KeyPath, listed, received, shown
from pytest_jrh.documents.reading import read_document, read_text
from pytest_jrh.errors import InputError, Problem
from pytest_jrh.files import atomic_write
from pytest_jrh.gate.baseline import DIGEST_LENGTH, Baseline, BaselineCase
from pytest_jrh.models import JUDGED, most_frequent
from pytest_jrh.sections import MAX_REPEATS

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1
_KEYS = (
    "id",
    "outcome",
    "score",
    "scores",
    "case_digest",
    "judge_fingerprint",
    "reference",
    "reason",
)
_OPTIONAL = ("scores", "reference", "reason")
_ID_JOINTS = 3
_SEVERAL = 2
_HOW = "a baseline is written with --jrh-baseline=FILE --jrh-update-baseline"
_NOT_ASCII = re.compile("[^ -~]")
_HEX = re.compile(rf"[0-9a-f]{{{DIGEST_LENGTH}}}", re.ASCII)


def render(baseline: Baseline) -> str:
    """Render the file's text: sorted by id, one case per line, equal for equal content."""
    lines = [json_line(_record(case)) for _, case in sorted(baseline.cases.items())]
    listing = "[\n" + ",\n".join(lines) + "\n]" if lines else "[]"
    return f'{{\n"format": {FORMAT},\n"cases": {listing}\n}}\n'


def save(path: Path, baseline: Baseline) -> None:
    """Write the file atomically; raises `OSError` if the write fails."""
    atomic_write(path, render(baseline))


def load(path: Path, *, file: str | None = None) -> Baseline:
    """Read a baseline; `file` is how messages name it.

    Raises `InputError` with every mistake and its line.
    """
    name = file or str(path)
    if not path.exists():
        raise InputError(Problem("no such file", name, hint=_HOW))
    _refuse_conflict(read_text(path, name), name)
    document = read_document(path, file=name)
    findings = Findings(document, list(document.problems))
    entries = _entries(document.data, findings)
    cases: dict[str, BaselineCase] = {}
    first: dict[str, int] = {}
    for index, entry in enumerate(entries):
        case = _case(entry, ("cases", index), findings)
        if case is None:
            continue
        if case.case_id in first:
            message = f"duplicate case {shown(case.case_id)}, first in line {first[case.case_id]}"
            findings.add(("cases", index), message, "keep one of them")
        first.setdefault(case.case_id, document.line(("cases", index)))
        cases[case.case_id] = case
    if findings.problems:
        raise InputError(findings.problems)
    return Baseline(cases)


def _record(case: BaselineCase) -> dict[str, Any]:
    record = {
        "id": case.case_id,
        "outcome": case.outcome,
        "score": case.score,
        "scores": case.scores,
        "case_digest": case.case_digest,
        "judge_fingerprint": case.judge_fingerprint,
        "reference": case.reference,
        "reason": case.reason,
    }
    return {key: value for key, value in record.items() if value or key not in _OPTIONAL}


def json_line(value: object) -> str:
    """One line of JSON in which characters that do not print, or break or reorder a line of a diff,
    are escaped.
    """
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_ASCII.sub(
        lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], text
    )


def _refuse_conflict(text: str, name: str) -> None:
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            hint = (
                "keep the lines of both sides, or take one side and run with --jrh-update-baseline"
            )
            raise InputError(Problem("contains a merge conflict", name, number, hint=hint))


def _entries(data: object, findings: Findings) -> list[object]:
    """The list under `cases`, where the file is a baseline of this format."""
    if not isinstance(data, dict):
        findings.add(
            (),
            f"got {shown(data)}; must be a mapping with `format` and `cases`",
            _HOW,
        )
    elif "format" not in data:
        findings.add((), "has no `format`, so it is not a baseline", _HOW)
    elif data["format"] != FORMAT or isinstance(data["format"], bool):
        findings.add(("format",), f"got {shown(data['format'])}; must be {FORMAT}", _HOW)
    elif not isinstance(data.get("cases"), list):
        findings.add(("cases",), received(data.get("cases"), "a list of cases"), _HOW)
    else:
        _unknown_keys(data, (), ("format", "cases"), findings)
        return list(data["cases"])
    raise InputError(findings.problems)


def _case(entry: object, path: KeyPath, findings: Findings) -> BaselineCase | None:
    """One line as a case; None where it is invalid, which is reported in `findings`."""
    if not isinstance(entry, dict):
        findings.add(path, received(entry, f"a mapping with the keys {listed(_KEYS)}"))
        return None
    before = len(findings.problems)
    misspelled = _unknown_keys(entry, path, _KEYS, findings)
    for key in _KEYS:
        if key in entry:
            if expected := _expected(key, entry[key]):
                hint = findings.nearest(str(entry[key]), JUDGED) if key == "outcome" else None
                findings.add(
                    (*path, key), received(entry[key], expected), hint and f"{hint} is the nearest"
                )
        elif key not in (*_OPTIONAL, *misspelled):
            findings.add(path, f"the key {key} is missing; a case has {listed(_KEYS)}")
    if len(findings.problems) > before or not _fit_together(entry, path, findings):
        return None
    return BaselineCase(
        case_id=entry["id"],
        case_digest=entry["case_digest"],
        judge_fingerprint=entry["judge_fingerprint"],
        outcome=entry["outcome"],
        score=entry["score"],
        reason=entry.get("reason", ""),
        scores=tuple(entry.get("scores", ())),
        reference=tuple(entry.get("reference", ())),
    )


def _fit_together(entry: Mapping[str, Any], path: KeyPath, findings: Findings) -> bool:
    """Whether score and scores of one line can be: reported in `findings` where they cannot."""
    score, scores = entry["score"], entry.get("scores", ())
    message = ""
    if score is None and not scores:
        message = "got nothing; without `scores` it must be an integer"
    elif score is None and entry["outcome"] == "agree":
        message = "got nothing; a case without a majority is `disagree`"
    elif scores and (most := most_frequent(scores)) != score:
        message = (
            f"got {shown(score)}, but the most frequent of `scores` is "
            f"{'not a single one' if most is None else shown(most)}"
        )
    if message:
        findings.add((*path, "score"), message)
    return not message


def _unknown_keys(
    mapping: Mapping[str, object], path: KeyPath, known: Collection[str], findings: Findings
) -> set[str]:
    """Report unknown keys; returns the nearest known ones."""
    meant = set()
    for key in mapping.keys() - set(known):
        close = findings.nearest(key, known)
        findings.add(
            (*path, key),
            f"unknown key; the keys are {listed(known)}",
            close and f"{close} is the nearest key",
        )
        meant |= {close} if close else set()
    return meant


def _expected(key: str, value: object) -> str | None:
    """What the value must be; None where it is valid."""
    match key:
        case "id":
            fits, expected = (
                isinstance(value, str) and value.count("::") >= _ID_JOINTS,
                "a case id: SUITE::TEST::...",
            )
        case "case_digest" | "judge_fingerprint":
            fits = isinstance(value, str) and _HEX.fullmatch(value) is not None
            expected = f"{DIGEST_LENGTH} hexadecimal digits"
        case "outcome":
            fits, expected = value in JUDGED, "agree or disagree"
        case "score":
            fits, expected = value is None or _is_score(value), "an integer"
        case "scores":
            fits = _are_scores(value, _SEVERAL)
            expected = f"a list of two to {MAX_REPEATS} integers"
        case "reference":
            fits, expected = _are_scores(value, 1), f"a list of one to {MAX_REPEATS} integers"
        case _:
            fits, expected = isinstance(value, str), "text"
    return None if fits else expected


def _is_score(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_scores(value: object, fewest: int) -> bool:
    return (
        isinstance(value, list)
        and fewest <= len(value) <= MAX_REPEATS
        and all(map(_is_score, value))
    )
