"""Case results: how one is made of a case and its judgment, and their file, a JSON line each, which
shards are merged from, and which keeps what earlier sessions gave and this one did not run.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from pydantic import BaseModel, ValidationError, create_model

from pytest_jrh.cases.deriving import Derivation, changed
from pytest_jrh.cases.ids import CASES_FILE, RESULTS_FILE, STATE_FOLDER, case_id
from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.documents import misfit
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, NoVerdictCase, Problem
from pytest_jrh.core.files import encoded, lines_of
from pytest_jrh.core.model import (
    JUDGED,
    MADE,
    UNEDITED,
    CaseResult,
    CaseSpec,
    Rejection,
    SharedCall,
    ShownTurns,
    Spending,
    Usage,
    Verdict,
)
from pytest_jrh.core.reasoning import reasoning_disagrees
from pytest_jrh.core.text import counted, one_line, shortened
from pytest_jrh.store.records import case_digest, content_digest, reworded, under
from pytest_jrh.store.reuse import rejected_cases

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import Case, Judgment, Skip
    from pytest_jrh.store.spools import RecordIndex


_AGAIN = "Run the shard again; a truncated or edited file is not used."
_LONGEST_NOTE = 160
_LONGEST_READ = 2_000


# What of a spec is in a line; a result's own `judge` is empty where the spec has none.
_OF_SPEC = (
    "suite",
    "test",
    "rubric_id",
    "run_id",
    "epoch",
    "target_score",
    "cluster",
    "base",
    "variant",
)
_OF_RESULT = tuple(field.name for field in fields(CaseResult) if field.name != "spec")


def result_data(result: CaseResult) -> dict[str, Any]:
    """The result as plain JSON values."""
    # Field by field, since `dataclasses.asdict` copies deeply, which is twenty times the work, for
    # every report.
    judge, shared = result.judge_spending, result.shared
    data: dict[str, Any] = {name: getattr(result.spec, name) for name in _OF_SPEC}
    data |= {name: getattr(result, name) for name in (*_OF_RESULT, "judge")}
    if not result.spec.variant:
        del data["base"], data["variant"], data["base_scores"]
    # Only where there is something to say, so that other lines stay as short as they were.
    for name, as_json in _SELDOM.items():
        if value := data.pop(name):
            data[name] = as_json(value)
    data["spending"] = _spending_data(result.spending)
    data["judge_spending"] = None if judge is None else _spending_data(judge)
    data["shared"] = None
    if shared is not None:
        data["shared"] = {**_fields(shared), "spending": _spending_data(shared.spending)}
    return data


def stored_data(result: CaseResult, *, config: str = "", kept: bool = False) -> dict[str, Any]:
    """The line of a result, with what is beside it; see `StoredResult`."""
    data = result_data(result)
    if config:
        data["config"] = config
    data["reasoning_disagrees"] = reasoning_disagrees(result)
    if kept:
        data["kept"] = True
    return data


def _of_values(values: Mapping[str, Any]) -> CaseResult:
    """The result of the values of a line; those of its spec stand beside the others."""
    of_spec = {name: values[name] for name in _OF_SPEC if name in values}
    of_result = {name: values[name] for name in _OF_RESULT if name in values}
    return CaseResult(CaseSpec(**of_spec, judge=values.get("judge") or None), **of_result)


def _spending_data(spending: Spending) -> dict[str, Any]:
    return {**_fields(spending), "usage": _fields(spending.usage)}


def result_text(result: CaseResult) -> str:
    """The result as one JSON text, which `result_from` reads.

    It travels between processes as a report's attribute: taken apart by execnet it would be a
    hundred values. A lone surrogate becomes U+FFFD, as in a file.
    """
    return encoded(json.dumps(result_data(result), ensure_ascii=False)).decode()


def result_from(text: str) -> CaseResult:
    """The result of a text that `result_text` wrote."""
    return _checked(text.encode())[0]


def _fields(
    value: Rejection | SharedCall | ShownTurns | Spending | Usage | Verdict,
) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _shown_data(shown: ShownTurns) -> dict[str, Any]:
    """The turns without what is not the case."""
    told = {name: value for name, value in _fields(shown).items() if value}
    return {"turns": shown.turns, **told}


# What most results do not have, and how it is written.
_SELDOM: Mapping[str, Callable[[Any], Any]] = {
    "minority": _fields,
    "reworded": bool,
    "altered": bool,
    "rejected": _fields,
    "skip_kind": str,
    "edit_note": str,
    "turns_shown": _shown_data,
    "verdicts": lambda verdicts: [*map(_fields, verdicts)],
}


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

    Raises `InputError` with file and line for each line that holds no result, or a second result of
    a case.
    """
    results: dict[str, StoredResult] = {}
    problems: list[Problem] = []
    for line in lines_of(path, hint=_AGAIN, blank=True):
        try:
            result, config, is_kept = _checked(line.data)
        except ValidationError as error:
            problems.append(misfit(error, "not a case result", str(path), line.number, _AGAIN))
            continue
        if result.case_id in results:
            first = results[result.case_id].line
            message = f"duplicate case_id {result.case_id!r}, first on line {first}"
            problems.append(Problem(message, str(path), line.number, hint=_AGAIN))
        results[result.case_id] = StoredResult(result, line.number, config, is_kept)
    if problems:
        raise InputError(problems[:MOST_PROBLEMS])
    return results


@lru_cache(maxsize=1)
def _line_type() -> type[BaseModel]:
    """What a line is: the fields of a result and of its spec, and what is beside them.

    Built when a file is read: no session without one pays for it.
    """
    declared: dict[str, Any] = {"judge": (str, ""), "config": (Any, ""), "kept": (Any, False)}
    for model, names in ((CaseSpec, _OF_SPEC), (CaseResult, _OF_RESULT)):
        types = get_type_hints(model)
        for field in fields(model):
            if field.name in names:
                default = ... if field.default is MISSING else field.default
                declared[field.name] = (types[field.name], default)
    return create_model("_Line", **declared)


def _checked(line: bytes) -> tuple[CaseResult, str, bool]:
    """Read a line: the result, its suite's config file, and whether it was kept.

    Raises pydantic's `ValidationError` where it is no result.
    """
    read = dict(_line_type().model_validate_json(line, strict=True))
    return _of_values(read), str(read["config"]), read["kept"] is not False


def case_result(
    spec: CaseSpec,
    case: Case | None,
    outcome: str,
    *,
    judgment: Judgment | None = None,
    detail: str = "",
    skip: Skip | None = None,
    judge_fingerprint: str = "",
    rejected: Case | None = None,
) -> CaseResult:
    """The result of one spec, without what it took; `case` is None where none was made, `skip` says
    why, and `rejected` is the one that the verifier rejected.
    """
    return CaseResult(
        spec,
        case_id(spec),
        outcome,  # type: ignore[arg-type]
        reworded=case.reworded if case else False,
        altered=case.altered if case else False,
        expected=case.expected if case else None,
        verified=case.verified if case and case.expected is not None else None,
        labelled_by=case.label.by if case and case.label else None,
        score=judgment.score if judgment else None,
        scores=judgment.scores if judgment else (),
        reasoning=judgment.shown.reasoning if judgment else "",
        minority=judgment.minority if judgment else None,
        verdicts=judgment.verdicts if judgment and len(judgment.verdicts) > 1 else (),
        detail=detail if skip is None else str(skip),
        skip_kind=None if skip is None else skip.kind,
        case_digest=case_digest(case) if case else "",
        judge_fingerprint=judge_fingerprint,
        rejected=None if rejected is None else _rejection(rejected),
        content=content_digest(case) if case else "",
        edit_note=_edit_note(spec, case or rejected),
    )


def _edit_note(spec: CaseSpec, case: Case | None) -> str:
    """What the editor says of its first edit; see `CaseResult`."""
    kind = KINDS[spec.test]
    if case is None or kind.natural or kind.derived:
        return ""
    edits, plan = case.outcome.edits, case.outcome.plan
    if not edits:
        return UNEDITED
    note = edits[0].editor_reason
    if not note and plan is not None:
        note = plan.thesis
    return shortened(one_line(note[:_LONGEST_READ]), _LONGEST_NOTE)


def rejected_results(suite: Suite) -> tuple[CaseResult, ...]:
    """What stands for the cases that the verifier rejected in earlier sessions.

    Raises `InputError` where their file cannot be used.
    """
    return tuple(
        case_result(case.spec, None, "no_case", rejected=case) for case in rejected_cases(suite)
    )


def _rejection(case: Case) -> Rejection:
    verification = case.outcome.verification
    assert verification is not None
    assert case.expected is not None
    verdict = verification.score
    if verdict is None:
        verdict = int(verification.verdict == "FAIL")
    return Rejection(case_digest(case), case.expected, verdict)


@dataclass(frozen=True, slots=True)
class SuiteCases:
    """All cases of a suite as it is now, by id in its order, and by judge what says which one it
    is.

    `runs` are the ids and epochs of all runs of its log, sampled or not; None where that is not
    known, as in a frozen suite or one whose log another one stands in for.
    """

    specs: Mapping[str, CaseSpec]
    fingerprints: Mapping[str | None, str]
    runs: frozenset[tuple[str, int]] | None = None


def earlier_results(
    suite: Suite,
    cases: SuiteCases,
    ran: Mapping[str, CaseResult],
    made_case: Callable[[CaseSpec], Case | None],
) -> tuple[Mapping[str, CaseResult], list[str]]:
    """Pick the results of the file that this session has none of, by case id, and that are of the
    cases and judges of today; with sentences about others that somebody may miss.

    `made_case` reads the made case of a spec. Raises `OSError` where a file that cannot be used
    cannot be moved aside either.
    """
    path = suite.results_dir / STATE_FOLDER / RESULTS_FILE
    if all(case in ran for case in cases.specs) or not path.exists():
        return {}, []
    try:
        stored_results = read_results(path)
    except InputError as error:
        aside = path.with_name(f"{path.name}.unreadable")
        path.replace(aside)
        return {}, [
            "The results of earlier sessions cannot be used; they were moved to "
            f"{aside.name}.\n{error}"
        ]
    results: dict[str, CaseResult] = {}
    counts: Counter[str] = Counter()
    for case, stored in stored_results.items():
        spec = cases.specs.get(case)
        is_suites = stored.result.spec.suite == suite.name and stored.config in ("", suite.key)
        if spec is None or case in ran or not is_suites:
            continue
        if reason := _outdated(suite, cases, spec, stored.result, made_case):
            counts[reason] += 1
        else:
            results[case] = stored.result
    notes = []
    for reason, number in counts.items():
        left_out = counted(number, "result")
        notes.append(f"{left_out} of earlier sessions left out of {path.name}: {reason}.")
    return results, notes


def without_gone(suite: Suite, cases: SuiteCases, index: RecordIndex) -> RecordIndex:
    """The records without those of the suite's cases that can no longer exist: another run, rubric
    or score.
    """
    if cases.runs is None:
        return index
    scales: dict[str, tuple[int | None, ...]] = {
        rubric.id: rubric.scores or (None,) for rubric in suite.rubrics
    }

    def gone(spec: CaseSpec) -> bool:
        if spec.suite != suite.name:
            return False
        scale = scales.get(spec.rubric_id, ())
        on_offer = spec.rubric_id in suite.untargeted or spec.target_score in scale
        return not on_offer or (spec.run_id, spec.epoch) not in (cases.runs or ())

    entries = {case: entry for case, entry in index.entries.items() if not gone(entry.spec)}
    return replace(index, entries=entries)


def _outdated(
    suite: Suite,
    cases: SuiteCases,
    spec: CaseSpec,
    result: CaseResult,
    made_case: Callable[[CaseSpec], Case | None],
) -> str:
    """Say why a result is not of the case and judge of today.

    Nothing where it is, or where there is no way to tell.
    """
    if result.judge_fingerprint and result.judge_fingerprint != cases.fingerprints.get(spec.judge):
        return "the judge has changed (model, prompt or parameters)"
    if result.outcome in JUDGED and (len(result.scores) or 1) != suite.repeats_of(spec.judge):
        return "repeats has changed"
    if result.outcome not in MADE:
        return ""
    evaluated = next(test.evaluate for test in suite.tests if test.name == spec.test)
    if evaluated != (result.outcome in JUDGED):
        return "tests_to_evaluate has changed"
    try:
        case = made_case(spec.base_case if spec.variant else spec)
    except InputError:
        return "the case cannot be used"
    reason_of = _other_base if spec.variant else _other_case
    return reason_of(suite, spec, result, case)


def _other_base(suite: Suite, spec: CaseSpec, result: CaseResult, base_case: Case | None) -> str:
    """Say whether a probe makes another case now of the one that it changes."""
    if base_case is None:
        return f"the case that is changed is not in {CASES_FILE}"
    if PROBES[spec.test].asks:
        return "what models make of a case for a probe is in no file"
    rubric = next(rubric for rubric in suite.rubrics if rubric.id == spec.rubric_id)
    base = under(base_case, rubric, spec.judge)
    digests = set()
    derivation = Derivation.of(base, spec, suite.probes[spec.test])
    # Whether the judge reads text makes no other case: it decides whether there is one.
    for reads_text in (True, False):
        with contextlib.suppress(NoVerdictCase):
            derived = derivation.made(reads_text=reads_text)
            digests.add(case_digest(changed(base, spec, derived)))
    return "" if result.case_digest in digests else "the case has changed"


def _other_case(suite: Suite, spec: CaseSpec, result: CaseResult, made_before: Case | None) -> str:
    if made_before is None:
        return f"the case is not in {CASES_FILE}"
    rubric = next(rubric for rubric in suite.rubrics if rubric.id == spec.rubric_id)
    case = under(made_before, rubric, spec.judge)
    # A frozen file keeps the case as it was made, and the verdict is about the case as it was
    # edited in review.
    edited = result.human_reviewed == "edited" and suite.frozen is not None
    if suite.frozen is not None and case.rubric is not rubric:
        taken = reworded(case, rubric)
        same = taken is not None and (edited or case_digest(taken) == result.case_digest)
    else:
        same = case.rubric is rubric and (edited or case_digest(case) == result.case_digest)
    return "" if same else "the case has changed (rubric, transcript or label)"
