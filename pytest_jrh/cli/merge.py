"""Putting the shards of a suite together: results and made cases of several machines, as if one had
run them all.
"""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.config.options import OPTIONS, Options, mistakes
from pytest_jrh.config.suite import Commands, Suite, argument
from pytest_jrh.core import MOST_PROBLEMS, InputError, Problem, collecting, shown
from pytest_jrh.core.cases import JUDGED, CaseSpec, NoVerdictCase, Unscored
from pytest_jrh.core.ids import CASES_FILE, LEDGER_FILE, REJECTED_FILE, generation_id
from pytest_jrh.core.redact import Redactor, secrets_of
from pytest_jrh.core.results import CaseResult
from pytest_jrh.engine.provenance import origin_lines, suite_run
from pytest_jrh.engine.suite import ReadySuite, make_ready
from pytest_jrh.judges.python import imported
from pytest_jrh.reports.ending import EndSettings, conclude, print_ending
from pytest_jrh.reports.session import Session
from pytest_jrh.store.ledger import BaselineFile, StoredResult, read_ledger
from pytest_jrh.store.made_cases import RecordIndex, case_of, read_spools
from pytest_jrh.store.records import case_digest, content_digest, json_value

_WHICH = "Name the `outputs` folder that a shard's session wrote."
_SAME_COMMIT = "Run the shard again from the same commit as this merge, or name another folder."
_SUPPLIED = "For a judge of the hook pytest_jrh_judge, pass --judge=MODULE:FUNCTION."


def merge(arguments: Namespace) -> int:
    """Merge what the shards left in their folders, decide as one session would have, and write the
    suite's files; returns 1 where the suite is not green.

    Every `results.jsonl`, `agent_perturbations.jsonl` and `rejected_cases.jsonl` below a folder
    counts; of a case that several shards ran, the last one named. A case that no shard reported is
    red, because no session here knows why. `judge` names the function that the project's code
    supplied to the shards, if it did. Raises `InputError` for a folder that holds no results, for
    results and made cases that cannot be used or do not fit the suite or each other, for results of
    another judge, label, rubric or transcript than the suite's, and for a baseline that cannot be
    used.
    """
    folder, folders = Path.cwd(), arguments.folders
    config_file = Path(os.path.realpath(folder / arguments.jrh_config))
    values = {}
    for option in OPTIONS:
        if option.merged:
            values[option.sets] = option.value(getattr(arguments, option.sets), folder)
    options = Options(configs=(config_file,), **values)
    for mistake in mistakes(options):
        raise InputError(mistake)
    judge = imported(arguments.judge, key="--judge") if arguments.judge else None
    ready = make_ready(config_file, cwd=folder, rootdir=folder, frozen=options.frozen, judge=judge)

    suite, redactor = ready.suite, Redactor(secrets_of())
    baseline = BaselineFile(options.baseline, folder, update=options.update_baseline)
    shard_results = _results_of(suite, folders)
    results = {case: stored.result for case, stored in shard_results.items()}
    commands = Commands(options, folder, lambda _: suite)
    spools = []
    for shard in folders:
        spools += [*sorted(shard.rglob(CASES_FILE)), *sorted(shard.rglob(REJECTED_FILE))]
    run = suite_run(ready, results, commands, baseline, folder, redactor)
    specs = run.cases.specs
    records = read_spools(spools, frozenset(map(generation_id, specs.values()))).made
    _refuse_strangers(ready, specs, shard_results, records, redactor)
    run = replace(run, spools=spools)
    session = Session(
        (),
        record_command=commands.record_all([suite], run.results),
        origin=[*origin_lines([run], folder)],
        redactor=redactor,
        folder=folder,
        is_merge=True,
    )
    update = ["python", "-m", "pytest_jrh", "merge"]
    update += [f"--jrh-config={argument(config_file, folder)}", f"--jrh-baseline={baseline.name}"]
    if arguments.judge:
        update.append(f"--judge={arguments.judge}")
    update_command = shlex.join([*update, "--jrh-update-baseline", *map(str, folders)])
    concluded = conclude(
        [run],
        EndSettings(session, baseline, options.reports, update_command=lambda _: update_command),
    )
    print_ending(concluded, folder, arguments.verbose, notices=concluded.problems)
    # Where nothing decides, a case fails by itself, as its item does in pytest.
    is_decided = concluded.session.decisions[suite.name].active
    is_agreed = is_decided or all(result.outcome != "disagree" for result in run.results)
    return 0 if concluded.passed and is_agreed else 1


def _results_of(suite: Suite, folders: Sequence[Path]) -> dict[str, StoredResult]:
    """The last result of each case of the suite; not what a shard kept of an earlier session, nor
    results of another config file.
    """
    results = {}
    for folder in folders:
        paths = sorted(folder.rglob(LEDGER_FILE))
        if not paths:
            raise InputError(
                f"this folder and its subfolders have no {LEDGER_FILE}", folder, hint=_WHICH
            )
        for path in paths:
            for case, stored in read_ledger(path).items():
                result = stored.result
                config = result.extra.config or suite.key
                is_of_suite = result.suite == suite.name and config == suite.key
                if is_of_suite and not result.extra.kept:
                    results[case] = stored
    if not results:
        raise InputError(
            f"no {LEDGER_FILE} here has results of the suite {suite.name!r}",
            folders[0],
            hint=_WHICH,
        )
    return results


def _refuse_strangers(
    ready: ReadySuite,
    specs: Mapping[str, CaseSpec],
    results: Mapping[str, StoredResult],
    records: RecordIndex,
    redactor: Redactor,
) -> None:
    """Refuse results of no case of the suite, and those of another judge or another case, which
    would be taken for this one's; `records` are the cases of the shards.
    """
    digests = {name or "": digest for name, digest in ready.judge_fingerprints.items()}
    problems: list[Problem] = []
    for case, (result, path, line) in results.items():
        message, hint = "", _SAME_COMMIT
        if case not in specs:
            message = f"the suite {ready.suite.name!r} has no case {shown(case)}"
        elif result.outcome in JUDGED and result.judge_digest != digests.get(result.judge):
            message = "the verdict is by a judge with another model, prompt or parameters"
            hint = f"{_SAME_COMMIT} {_SUPPLIED}"
        else:
            with collecting(problems):
                if difference := _what_differs(ready, specs[case], result, records, redactor):
                    message = f"the case has changed since this shard ran: {difference}"
        if message:
            problems.append(Problem(message, str(path), line, hint=hint))
    if problems:
        raise InputError(dict.fromkeys(problems[:MOST_PROBLEMS]))


def _what_differs(
    ready: ReadySuite,
    spec: CaseSpec,
    result: CaseResult,
    records: RecordIndex,
    redactor: Redactor,
) -> str:
    """In what the case of a shard differs from the one that the suite has now; "" in nothing.

    A case that people edited, or a probe changed, is another one than the run that it is made of.
    Raises `InputError` where it was made for another text of the rubric.
    """
    is_disputed = result.why.kind == "disputed_label"
    is_comparable = result.case_digest or is_disputed
    if not is_comparable or spec.variant or result.extra.review == "edited":
        return ""
    is_frozen = ready.suite.frozen is not None
    record = case_of(records, spec, ready.suite.rubric_by_id[spec.rubric_id], rewording=is_frozen)
    try:
        run = None if is_frozen else ready.read(spec)
        if run is None:
            case = ready.made_before(spec)
        elif KINDS[spec.test].is_labelled:
            case = ready.labelled_case(spec, run)
        else:
            case = None
    except NoVerdictCase as reason:
        return "" if is_disputed else f"the suite does not have the case now ({reason})"
    except Unscored:
        # What cannot be read cannot be compared, and its case is red by itself.
        return ""
    if run is not None and record is not None:
        # Without secrets, as records are stored.
        redact = redactor.value
        if redact(json_value(record.run.messages)) != redact(json_value(run.messages)):
            return f"the text of {shown(run.run_id)} in the log is different now"
    if case is None or case_digest(case) == result.case_digest:
        return ""
    if not is_disputed and content_digest(case) != result.extra.content:
        return "the text of the case or of its rubric is different now"
    label = "disputed" if is_disputed else result.label
    return f"its label was {label}, and is {case.expected} now"
