"""`python -m pytest_jrh mutate`: which changes of a judge's prompt a suite notices.

What came of mutants, as lines of text and as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pytest_jrh.cli.operators import MOST_MUTANTS, Fate
from pytest_jrh.core.documents import listed, shown
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import atomic_write, relative_path
from pytest_jrh.core.model import DEFAULT_SEED, RecordMode
from pytest_jrh.core.redact import Redactor, secrets_of
from pytest_jrh.core.text import counted, dollars, log_line, nearest_hint, shortened, wrapped

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from pytest_jrh.cli.mutants import JudgeMutation, MutantResult
    from pytest_jrh.engine.loading import ReadySuite
    from pytest_jrh.llm.budget import Ledger


FILE = "mutants.json"
"""What came of the mutants, in the suite's output folder."""
_CASES = 20
_INTERRUPTED = 2


def declare_mutate(mutate: argparse.ArgumentParser) -> None:
    """Declare the command's options; a budget has the name that it has in a session, too."""
    mutate.add_argument(
        "--jrh-config", type=Path, required=True, metavar="FILE", help="the suite to ask"
    )
    mutate.add_argument(
        "--judge", metavar="NAME", help="of a panel, this judge alone (default: each of them)"
    )
    mutate.add_argument(
        "--cases",
        type=int,
        default=_CASES,
        metavar="N",
        help="hold each mutant against at most this many cases (default: %(default)s)",
    )
    mutate.add_argument(
        "--mutants",
        type=int,
        default=MOST_MUTANTS,
        metavar="N",
        help="make at most this many changes of a prompt (default: %(default)s)",
    )
    mutate.add_argument(
        "--seed",
        type=int,
        default=DEFAULT_SEED,
        metavar="N",
        help="draw cases and changes by this seed (default: %(default)s)",
    )
    _declare_limits(mutate)
    mutate.add_argument(
        "--jrh-record-mode",
        choices=get_args(RecordMode),
        default="new_episodes",
        help="the record mode of the judge's calls (default: %(default)s)",
    )
    mutate.add_argument(
        "--jrh-cassette-dir", type=Path, metavar="DIR", help="where the suite's cassettes are"
    )
    mutate.add_argument(
        "--jrh-frozen",
        action="store_true",
        help="take the cases from the suite's agent_perturbations.jsonl alone",
    )


def _declare_limits(mutate: argparse.ArgumentParser) -> None:
    mutate.add_argument(
        "--max-cost",
        "--jrh-max-cost",
        type=float,
        metavar="USD",
        help="spend at most this many US dollars",
    )
    mutate.add_argument(
        "--max-calls",
        "--jrh-max-calls",
        type=int,
        metavar="N",
        help="make at most this many model calls",
    )
    mutate.add_argument(
        "--jrh-free-model",
        action="append",
        default=[],
        metavar="MODEL",
        help="count this model, whose price litellm does not know, as free of charge",
    )


def mutate_suite(options: argparse.Namespace) -> int:
    """Run the command: 1 where a mutant has no answer, 2 after Ctrl+C, 4 for a mistake."""
    from pytest_jrh.engine.loading import make_ready

    mistake = _mistake(options)
    if mistake is not None:
        sys.stderr.write(f"python -m pytest_jrh mutate: {mistake}\n")
        return 4
    folder = Path.cwd()
    redactor = Redactor(secrets_of(os.environ))
    try:
        ready = make_ready(
            (folder / options.jrh_config).resolve(),
            cwd=folder,
            rootdir=folder,
            frozen=options.jrh_frozen,
        )
        redactor.add(ready.secrets)
        # Before anything is asked: what came of paid calls must have its place.
        _make_room(ready.suite.results_dir)
        mutations = _mutations(ready, options, redactor)
        _write(ready, mutations, redactor)
    except InputError as error:
        sys.stderr.write(f"{redactor.text(str(error))}\n")
        return 4
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; what is recorded is not asked again\n")
        return _INTERRUPTED
    for mutation in mutations:
        if any(result.fate == "no_answer" for result in mutation.results):
            return 1
    return 0


def _mistake(options: argparse.Namespace) -> str | None:
    """What is wrong with the options by themselves."""
    for name, least in (("cases", 1), ("mutants", 1), ("max_calls", 0), ("max_cost", 0)):
        value = getattr(options, name)
        # Not a number compares as false.
        if value is not None and not value >= least:
            return f"--{name.replace('_', '-')}={value:g}: must be a number >= {least}"
    return None


def _mutations(
    ready: ReadySuite, options: argparse.Namespace, redactor: Redactor
) -> list[JudgeMutation]:
    """What came of each judge; raises `InputError` where there is nothing to ask."""
    from pytest_jrh.cli.mutants import MutationSettings, mutate

    names = _judges(ready, options.judge)
    _check_budget(ready, names, options)
    width = shutil.get_terminal_size().columns

    def ledger(path: Path) -> Ledger | None:
        if options.max_calls is None and options.max_cost is None:
            return None
        from pytest_jrh.llm.budget import Ledger

        return Ledger(path, calls=options.max_calls, cost=options.max_cost)

    def on_round(turn: int, of: int, living: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"case {turn} of at most {of}: {living} mutants left\n")

    settings = MutationSettings(
        redactor=redactor,
        cases=options.cases,
        mutants=options.mutants,
        seed=options.seed,
        record_mode=options.jrh_record_mode,
        cassette_dir=options.jrh_cassette_dir and Path.cwd() / options.jrh_cassette_dir,
        ledger=ledger,
        on_round=on_round,
    )
    mutations = []
    for name in names:
        mutation = mutate(ready, name, settings, say=lambda line: _say([line, ""], redactor))
        _say([*mutation_lines(mutation, width), ""], redactor)
        mutations.append(mutation)
    return mutations


def _say(lines: list[str], redactor: Redactor) -> None:
    sys.stdout.write("".join(f"{redactor.text(line)}\n" for line in lines))
    sys.stdout.flush()


def _judges(ready: ReadySuite, asked_name: str | None) -> list[str | None]:
    from pytest_jrh.judges import TableJudge

    chosen = [name for name in ready.judges if asked_name in (None, name)]
    asking = [name for name in chosen if not isinstance(ready.judges[name], TableJudge)]
    if chosen and not asking:
        message = "the verdicts of this judge are in a table: there is nothing to change in it"
        raise InputError(Problem(message))
    if asking:
        return asking
    names = [name for name in ready.judges if name is not None]
    judges = "the suite has one judge, without a name"
    if names:
        judges = f"the judges are {listed(names)}"
    hint = nearest_hint(asked_name or "", names)
    raise InputError(Problem(f"--judge: got {shown(asked_name)}; {judges}", hint=hint))


def _check_budget(ready: ReadySuite, names: list[str | None], options: argparse.Namespace) -> None:
    """Refuse a limit in dollars over judges of which no price is known."""
    if options.max_cost is None or options.jrh_record_mode == "none":
        return
    from pytest_jrh.llm.budget import unpriced_reason

    models = ready.judge_models(names)
    reason = unpriced_reason(options.max_cost, models, options.jrh_free_model)
    if reason is not None:
        raise InputError(Problem(reason))


def _make_room(folder: Path) -> None:
    """Make the output folder; raises `InputError` where files cannot be written there."""
    from pytest_jrh.store.outputs import cause

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        name = relative_path(folder, Path.cwd())
        problem = Problem(f"{FILE} cannot be written into {name}: {cause(error)}")
        raise InputError(problem) from None


def _write(ready: ReadySuite, mutations: list[JudgeMutation], redactor: Redactor) -> None:
    from pytest_jrh.store.outputs import cause

    data = {
        "suite": ready.suite.name,
        "judges": [mutation_data(mutation) for mutation in mutations],
    }
    path = ready.suite.results_dir / FILE
    name = relative_path(path, Path.cwd())
    text = json.dumps(redactor.value(data), indent=2, ensure_ascii=False)
    try:
        atomic_write(path, f"{text}\n")
    except OSError as error:
        raise InputError(Problem(f"{name} was not written: {cause(error)}")) from None
    _say([f"written: {name}"], redactor)


_FATES: tuple[Fate, ...] = get_args(Fate)
_TITLES = ("operator", "mutants", *(fate.replace("_", " ") for fate in _FATES))
_INDENT = "  "
_SHORTEST = 40


def mutation_lines(mutation: JudgeMutation, width: int) -> list[str]:
    """The table of a judge's mutants by operator, and those that nothing in the suite noticed."""
    subset, results = mutation.subset, mutation.results
    lines = [*_table(results), ""]
    answers = Counter(result.expected for result in subset.results.values())
    labelled = [f"{many} labelled {answer}" for answer, many in sorted(answers.items())]
    cases = counted(len(subset.cases), "case")
    sentences = [f"{cases} that the judge gets right ({', '.join(labelled)})."]
    if len(answers) == 1:
        sentences.append(
            "All of them have the same label: a change that makes the judge give it more often is "
            "not seen."
        )
    if subset.missing:
        sentences.append(f"{counted(subset.missing, 'drawn case')} had no verdict.")
    unanswered = [result for result in results if result.fate == "no_answer"]
    for outcome, many in sorted(Counter(result.outcome for result in unanswered).items()):
        advice = _ADVICE.get(outcome, "")
        sentences.append(f"{counted(many, 'mutant')} without an answer: {outcome}.{advice}")
    sentences.append(f"{mutation.calls:,} calls made, {dollars(mutation.cost)}.")
    for sentence in sentences:
        lines += wrapped(sentence, width)
    unnoticed = [result for result in results if result.fate in ("survived", "unchanged")]
    if unnoticed:
        lines += ["", "Nothing in the suite notices these changes:"]
        for result in unnoticed:
            lines += _unnoticed(result, width)
    elif not unanswered:
        lines += ["", "The suite notices every change."]
    return lines


_ADVICE = {
    "unrecorded": " Record them with --jrh-record-mode=new_episodes.",
    "over_budget": " Run again with a higher limit: what is recorded is not asked again.",
}


def mutation_data(mutation: JudgeMutation) -> dict[str, Any]:
    """What came of a judge's mutants, without what differs between a recording and its replay."""
    return {
        "judge": mutation.judge,
        "label": mutation.label,
        "cases": [result.case_id for result in mutation.subset.results.values()],
        "mutants": [
            {
                "name": result.mutant.name,
                "operator": result.mutant.operator,
                "where": result.mutant.where,
                "line": result.mutant.line,
                "before": result.mutant.before,
                "after": result.mutant.after,
                "fate": result.fate,
                "case": result.by,
                "expected": result.expected,
                "score": result.score,
                "outcome": result.outcome,
                "asked": result.asked,
            }
            for result in mutation.results
        ],
    }


def _table(results: Sequence[MutantResult]) -> list[str]:
    operators = dict.fromkeys(result.mutant.operator for result in results)
    rows = [_TITLES]
    for operator in operators:
        of_operator = [result for result in results if result.mutant.operator == operator]
        rows.append(_row(operator, of_operator))
    rows.append(_row("total", results))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        _INDENT.join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in rows
    ]


def _row(name: str, results: Sequence[MutantResult]) -> tuple[str, ...]:
    fates = Counter(result.fate for result in results)
    return (name, str(len(results)), *(str(fates[fate]) for fate in _FATES))


def _unnoticed(result: MutantResult, width: int) -> Iterator[str]:
    mutant = result.mutant
    where = ""
    if mutant.line is not None:
        where = f"{mutant.where.replace('_', ' ')}:{mutant.line} "
    if not result.asked:
        note = ": the judge is asked the same"
    elif result.fate == "unchanged":
        note = ": all answers are the same, word for word"
    else:
        note = ""
    yield f"{_INDENT}{where}{mutant.operator}{note}"
    room = max(width - 2 * len(_INDENT) - 2, _SHORTEST)
    yield f"{2 * _INDENT}- {shortened(log_line(mutant.before), room)}"
    if mutant.after:
        yield f"{2 * _INDENT}+ {shortened(log_line(mutant.after), room)}"
