"""Case results: how one is made of a case and its judgment, and which of those that earlier
sessions gave still count.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_jrh.cases.deriving import Derivation, changed
from pytest_jrh.cases.probes import PROBES
from pytest_jrh.core.errors import InputError, NoVerdictCase
from pytest_jrh.core.ids import CASES_FILE, case_id
from pytest_jrh.core.model import (
    JUDGED,
    MADE,
    NOTHING_WRONG,
    UNEDITED,
    CaseResult,
    CaseSpec,
    Extra,
    ProbeVariant,
    Rejection,
    Why,
)
from pytest_jrh.core.text import counted, one_line, shortened
from pytest_jrh.store.ledger import ledger_path, read_ledger
from pytest_jrh.store.records import case_digest, content_digest, reworded, under
from pytest_jrh.store.reuse import rejected_cases

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import Case, LabelSource, Verdict
    from pytest_jrh.store.spools import RecordIndex


_LONGEST_NOTE = 160
_LONGEST_READ = 2_000


def case_result(
    spec: CaseSpec,
    case: Case | None,
    why: Why = NOTHING_WRONG,
    *,
    verdicts: Sequence[Verdict] = (),
    judge_digest: str = "",
    rejected: Case | None = None,
) -> CaseResult:
    """The result of one spec, without what it took; `case` is None where none was made, `why` says
    why there is no verdict, and `rejected` is the one that the verifier rejected.
    """
    probe = ProbeVariant(spec.base, spec.variant) if spec.variant else None
    result = CaseResult(
        case_id(spec),
        spec.suite,
        spec.test,
        spec.rubric_id,
        spec.run_id,
        spec.epoch,
        spec.cluster,
        spec.target_score,
        judge=spec.judge or "",
        judge_digest=judge_digest,
        scores=tuple(verdict.score for verdict in verdicts),
        reasons=tuple(verdict.reasoning for verdict in verdicts),
        why=why,
        extra=Extra(
            edit=_edit_note(spec, case or rejected),
            probe=probe,
            rejected=None if rejected is None else _rejection(rejected),
        ),
    )
    if case is None:
        return result
    content, altered, reworded = content_digest(case), case.altered, case.reworded
    extra = replace(result.extra, content=content, altered=altered, reworded=reworded)
    by = _labelled_by(case)
    return replace(
        result, label=case.expected, labelled_by=by, case_digest=case_digest(case), extra=extra
    )


def _labelled_by(case: Case) -> LabelSource | None:
    if case.expected is None:
        return None
    if case.label is not None:
        return case.label.by
    # The label of an altered case is unverified for that reason alone.
    return "made" if case.verified or case.altered else "unconfirmed"


def _edit_note(spec: CaseSpec, case: Case | None) -> str:
    """What the editor says of its first edit; see `CaseResult`."""
    if case is None or spec.natural or spec.derived:
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
        case_result(case.spec, None, Why("no_case"), rejected=case)
        for case in rejected_cases(suite)
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
    path = ledger_path(suite)
    if all(case in ran for case in cases.specs) or not path.exists():
        return {}, []
    try:
        stored_results = read_ledger(path)
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
        is_suites = stored.result.spec.suite == suite.name and stored.result.extra.config in (
            "",
            suite.key,
        )
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
    if result.judge_digest and result.judge_digest != cases.fingerprints.get(spec.judge):
        return "the judge has changed (model, prompt or parameters)"
    if result.outcome in JUDGED and len(result.all_scores) != suite.repeats_of(spec.judge):
        return "repeats has changed"
    if result.outcome not in MADE:
        return ""
    evaluated = next(test.evaluate for test in suite.tests if test.name == spec.test)
    if evaluated != (result.outcome in JUDGED):
        return "cases.judged has changed"
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
    edited = result.extra.review == "edited" and suite.frozen is not None
    if suite.frozen is not None and case.rubric is not rubric:
        taken = reworded(case, rubric)
        same = taken is not None and (edited or case_digest(taken) == result.case_digest)
    else:
        same = case.rubric is rubric and (edited or case_digest(case) == result.case_digest)
    return "" if same else "the case has changed (rubric, transcript or label)"
