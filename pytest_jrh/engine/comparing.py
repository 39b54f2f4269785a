"""Two judges on the same cases, from whatever has their verdicts: two columns or judges of a table,
two tables, two members of a panel, a baseline and the results of a session, or two of these.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pytest_jrh.cases.ids import RESULTS_FILE, case_id
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.documents import listed
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.model import JUDGED, Spending, most_frequent
from pytest_jrh.core.text import counted, nearest_hint, shortened
from pytest_jrh.engine.checking import (
    CheckedTable,
    CheckSettings,
    check,
    judge_column,
    judges_of_rows,
    read_input,
)
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.spending import total_spending
from pytest_jrh.sources.verdict_tables import OPTIONS, choose_columns
from pytest_jrh.stats.baseline import (
    CASE_CHANGED,
    NOT_IN_BASELINE,
    Baseline,
    Scope,
    short,
    update,
)
from pytest_jrh.stats.gate import case_names
from pytest_jrh.stats.upgrade import (
    MAX_DROP,
    NEW_JUDGE,
    OLD_JUDGE,
    Answers,
    Upgrade,
    decide_upgrade,
)
from pytest_jrh.store.baseline import KeptVerdict, kept_path, load, load_kept
from pytest_jrh.store.outputs import state_files
from pytest_jrh.store.results import read_results

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.sources.verdict_tables import RawTable

    Kind: TypeAlias = Literal["table", "results", "baseline"]


@dataclass(frozen=True, slots=True)
class ComparedJudges:
    """What came of two judges; `checked` is the table, where the verdicts are from one."""

    session: Session
    upgrade: Upgrade
    checked: CheckedTable | None = None


def compare_judges(
    old: str | Path,
    new: str | Path = "",
    *,
    old_judge: str = "",
    new_judge: str = "",
    max_drop: float = MAX_DROP,
    map: Mapping[str, Any] | None = None,  # noqa: A002 - the option's name
    scale: tuple[int, int] | None = None,
    labels: str | Path = "",
    **columns: str,
) -> ComparedJudges:
    """Compare two judges on the same cases.

    `old` and `new` are files (a table of verdicts, results of a session or the folder with them,
    `old` also a baseline), and the same one where `new` is empty. `old_judge` and `new_judge` name
    a column, or a judge, where there are several. `map`, `scale`, `labels` and `columns` say how
    tables are read, as of `check_table`. Raises `InputError` for what cannot be read, or compared.
    """
    for role in columns:
        if role not in OPTIONS:
            raise TypeError(f"compare_judges() got an unexpected keyword argument {role!r}")
    paths = str(old), str(new or old)
    before, now = (_kind(Path(path)) for path in paths)
    if (before == "table") != (now == "table"):
        odd = paths[0] if before == "table" else paths[1]
        message = "is a table of verdicts, and the other file is not: their cases have other names"
        raise InputError(Problem(message, odd))
    if now == "baseline":
        hint = "NEW has to be results: a baseline does not know the labels"
        raise InputError(Problem("is a baseline", paths[1], hint=hint))
    names = (old_judge, new_judge)
    if paths[0] == paths[1] and old_judge and old_judge == new_judge:
        message = f"--old and --new are the same judge, {new_judge!r}"
        raise InputError(Problem(message, paths[1]))
    if now == "table":
        settings = CheckSettings(
            columns=columns,
            labels=str(labels) if labels else "",
            map=map or {},
            scale=scale,
            comparing=True,
        )
        return _of_tables(paths, names, max_drop, settings)
    return _of_results(paths, names, max_drop, is_baseline=before == "baseline")


def _kind(path: Path) -> Kind:
    """What a file is, by what it begins with."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return "results"
        if not stat.S_ISREG(mode):
            # A pipe would wait for who writes into it; whoever reads a table refuses it.
            return "table"
        with path.open("rb") as file:
            beginning = file.read(_LOOKED_AT)
    except FileNotFoundError as error:
        raise InputError(Problem("no such file", str(path))) from error
    except PermissionError as error:
        raise InputError(Problem(f"cannot be read: {error.strerror}", str(path))) from error
    except OSError:
        # Whoever reads a table says what is wrong with the file.
        return "table"
    first = beginning.partition(b"\n")[0].strip()
    if beginning.lstrip().startswith(b"{") and b'"cases"' in beginning and b'"format"' in beginning:
        return "baseline"
    # A table may well have some of these columns.
    is_result = all(key in first for key in (b'"suite"', b'"test"', b'"case_id"', b'"outcome"'))
    return "results" if first.startswith(b"{") and is_result else "table"


_LOOKED_AT = 65_536


def _of_tables(
    paths: tuple[str, str], names: tuple[str, str], max_drop: float, settings: CheckSettings
) -> ComparedJudges:
    # A log is read for what options name of it.
    is_one = paths[0] == paths[1]
    named = tuple(filter(None, names if is_one else names[1:]))
    new_table, settings = read_input(paths[1], replace(settings, verdicts=named))
    settings = replace(settings, verdicts=())
    old_table = None
    if is_one:
        old, new = _two_judges(new_table, names, settings)
        new_table, columns = _narrowed(new_table, (("--old", old), ("--new", new)), settings)
        settings = replace(settings, verdicts=(new,) if columns else (), baseline=old)
    else:
        of_old = replace(settings, labels="", verdicts=tuple(filter(None, names[:1])))
        old_table, of_old = read_input(paths[0], of_old)
        settings = replace(settings, baseline=paths[0], map={**of_old.map, **settings.map})
        if names[1]:
            new_table, columns = _narrowed(new_table, (("--new", names[1]),), settings)
            settings = replace(settings, verdicts=columns)
        if names[0]:
            old_table, columns = _narrowed(old_table, (("--old", names[0]),), settings)
            settings = replace(settings, baseline_verdict=columns[0] if columns else "")
    checked = check(new_table, settings, old_table)
    if len(checked.judge_names) > 1:
        raise InputError(new_table.problem(_which("--new", checked.judge_names)))
    session = checked.session
    answers = []
    for result in session.results:
        before = most_frequent(checked.before.get(result.case_id, ()))
        if before is not None and result.score is not None:
            answers.append(Answers(result.spec.cluster_id, before, result.score))
    shown = names
    if old_table is None:
        shown = settings.baseline, checked.judge_names[0]
    elif not names[1] and checked.judge_names[0] not in new_table.columns:
        shown = names[0], checked.judge_names[0]
    earlier = Baseline(checked.lines)
    upgrade = decide_upgrade(
        session.results, earlier, _shown_names(*shown), max_drop, answers, absent=checked.absent
    )
    upgrade = replace(upgrade, seconds=_seconds(checked.seconds_before, upgrade))
    if not upgrade.pairs:
        raise InputError(_nothing_to_compare(new_table, upgrade, names[0], old_table))
    session = _with(session, upgrade)
    return ComparedJudges(session, upgrade, replace(checked, session=session))


def _nothing_to_compare(
    new: RawTable, upgrade: Upgrade, old_judge: str, old: RawTable | None
) -> Problem:
    """What is amiss with tables of which no case has a verdict of both judges."""
    reasons = set(upgrade.decision.not_comparable.values())
    if old is not None and reasons == {NOT_IN_BASELINE}:
        hint = "cases belong together by their names: --case COL says which column has them"
        return new.problem(f"none of its cases has a verdict in {old.file}", hint=hint)
    if old is not None and reasons == {CASE_CHANGED}:
        hint = "1 has to be a violation in both; --map says what a word means"
        return new.problem(f"each of its cases has another label than in {old.file}", hint=hint)
    among = old_judge or (old or new).file
    message = f"no case has a label and a verdict of both, {among} among them"
    return new.problem(f"{message}{_why_not(upgrade)}")


def _two_judges(
    table: RawTable, names: tuple[str, str], settings: CheckSettings
) -> tuple[str, str]:
    """The two judges of one table: those that are named, or the only two that it has."""
    if all(names):
        return names
    judges: Sequence[str] = ()
    try:
        columns = choose_columns(table, named=settings.columns, mapping=settings.map)
        judges = columns.verdicts
        if columns.judge:
            judges = judges_of_rows(table, settings)
    except InputError:
        # What it says is how to name one column of verdicts.
        judges = table.columns
    if len(judges) == 2 and not any(names):  # noqa: PLR2004 - the old one and the new one
        return judges[0], judges[1]
    if len(judges) == 1 and not any(names):
        there = f"there are {listed(table.columns, 10)}"
        hint = f"{_NAME_ANOTHER}; or two columns, by --old NAME --new NAME: {there}"
        raise InputError(table.problem(f"has one judge, {judges[0]}", hint=hint))
    missing = " ".join(
        f"{option} NAME" for option, name in zip(("--old", "--new"), names, strict=True) if not name
    )
    message = f"which two judges of it to compare is not clear: add {missing}"
    raise InputError(table.problem(message, hint=f"there are {listed(list(judges), 10)}"))


_NAME_ANOTHER = "name two files, OLD and NEW: one with the verdicts of another judge"


def _narrowed(
    table: RawTable, named: Iterable[tuple[str, str]], settings: CheckSettings
) -> tuple[RawTable, tuple[str, ...]]:
    """The table with the rows of these judges alone, and the columns that they are, if any."""
    judges = judges_of_rows(table, settings)
    names = [name for _, name in named]
    for option, name in named:
        if name not in table.columns and name not in judges:
            hint = nearest_hint(name, [*judges, *table.columns], "judge")
            there = f"there are {listed([*judges, *table.columns], 10)}"
            message = f"{name!r} is neither a column nor a judge; {there}"
            raise InputError(table.problem(message, key=option, hint=hint))
    if all(name in table.columns for name in names):
        return table, tuple(names)
    column = judge_column(table, settings)
    rows = [row for row in table.rows if str(row[1].get(column)) in names]
    return replace(table, rows=rows), ()


def _which(option: str, judges: Iterable[str]) -> str:
    return (
        f"which judge of it to compare is not clear: add {option} with {listed(list(judges), 10)}"
    )


def _shown_names(old: str, new: str) -> tuple[str, str]:
    """What the judges are called: by their names, where these tell them apart."""
    if old and old == new:
        return f"old {old}", f"new {new}"
    return old or OLD_JUDGE, new or NEW_JUDGE


def _with(session: Session, upgrade: Upgrade) -> Session:
    suites = {result.spec.suite for result in session.results}
    return replace(
        session, upgrade=upgrade, decisions=dict.fromkeys(sorted(suites), upgrade.decision)
    )


def _of_results(
    paths: tuple[str, str], names: tuple[str, str], max_drop: float, *, is_baseline: bool
) -> ComparedJudges:
    of_file = _results(paths[1])
    if not is_baseline and paths[0] == paths[1] and not any(names):
        names = _two_of_panel(of_file, paths[1])
    new = _of_judge(of_file, names[1], "--new", paths[1])
    if is_baseline:
        old_name, lines, kept = _of_baseline(Path(paths[0]), names[0], new)
        scores = {case: most_frequent(line.all_scores) for case, line in lines.items()}
        spendings, seconds = None, {}
    else:
        old = _of_judge(_results(paths[0]), names[0], "--old", paths[0])
        old_name = old[0].judge
        moved = [_moved(result, new[0]) for result in old]
        scope = Scope.of(result.case_id for result in moved)
        lines = dict(update(Baseline(), moved, scope).baseline.cases)
        scores = {result.case_id: result.score for result in moved}
        spendings = _spendings(old, new)
        seconds = {result.case_id: result.seconds for result in moved}
        kept = {}
        for result in moved:
            fingerprint = short(result.judge_fingerprint)
            kept[result.case_id] = KeptVerdict(
                result.case_id, fingerprint, result.score, result.reasoning
            )
    answers = []
    for result in new:
        before = scores.get(result.case_id)
        if KINDS[result.spec.test].natural and before is not None and result.score is not None:
            answers.append(Answers(result.spec.cluster_id, before, result.score))
    shown = _shown_names(old_name, new[0].judge)
    now = {result.case_id for result in new}
    absent = sum(score is not None and case not in now for case, score in scores.items())
    upgrade = decide_upgrade(new, Baseline(lines), shown, max_drop, answers, absent=absent)
    if not upgrade.pairs:
        verdicts = sum(result.outcome in JUDGED for result in new)
        message = (
            f"no case of {counted(verdicts, 'verdict')} can be compared with it{_why_not(upgrade)}"
        )
        raise InputError(Problem(message, paths[0]))
    upgrade = replace(upgrade, spendings=spendings, seconds=_seconds(seconds, upgrade))
    session = Session(tuple(new), earlier=kept, is_table=True)
    return ComparedJudges(_with(session, upgrade), upgrade)


def _why_not(upgrade: Upgrade) -> str:
    """The reasons why cases were not compared, after a colon; empty where there are none."""
    reasons = dict.fromkeys(upgrade.decision.not_comparable.values())
    return f": {shortened('; '.join(reasons), 300)}" if reasons else ""


def _results(name: str) -> list[CaseResult]:
    """The results of a file or folder, without probes; raises `InputError` for several suites."""
    path = Path(name)
    if path.is_dir():
        files = state_files(path, RESULTS_FILE)
        if len(files) != 1:
            there = f"there are {len(files):,}" if files else "there is none"
            message = f"must have one {RESULTS_FILE} in it, or below it; {there}"
            hint = f"name one of them: {listed([str(file) for file in files], 5)}"
            raise InputError(Problem(message, name, hint=hint if files else None))
        [path] = files
    results = [stored.result for stored in read_results(path).values()]
    results = [result for result in results if not result.spec.derived]
    suites = list(dict.fromkeys(result.spec.suite for result in results))
    if len(suites) != 1:
        has = f"results of {listed(suites)}" if suites else "no results"
        raise InputError(Problem(f"has {has}; must have those of one suite", str(path)))
    return results


def _two_of_panel(results: Iterable[CaseResult], name: str) -> tuple[str, str]:
    judges = list(dict.fromkeys(result.judge for result in results))
    if len(judges) == 1:
        raise InputError(Problem("has one judge", name, hint=_NAME_ANOTHER))
    if len(judges) > 2:  # noqa: PLR2004 - the old one and the new one
        message = f"which two judges of it to compare is not clear: it has {listed(judges)}"
        hint = "add --old NAME --new NAME, or name two files"
        raise InputError(Problem(message, name, hint=hint))
    return judges[0], judges[1]


def _of_judge(
    results: Iterable[CaseResult], judge: str, option: str, name: str
) -> list[CaseResult]:
    """The results of one judge, of the only one where none is named."""
    by_judge: dict[str, list[CaseResult]] = {}
    for result in results:
        by_judge.setdefault(result.judge, []).append(result)
    if judge in by_judge:
        return by_judge[judge]
    if judge:
        raise InputError(_no_judge(judge, by_judge, option, name))
    if len(by_judge) > 1:
        raise InputError(Problem(_which(option, by_judge), name))
    return next(iter(by_judge.values()))


def _no_judge(judge: str, judges: Iterable[str], option: str, name: str) -> Problem:
    names = sorted(filter(None, judges))
    there = f"there are {listed(names, 10)}" if names else "its only judge has no name"
    hint = nearest_hint(judge, names, "judge")
    return Problem(f"has no judge {judge!r}; {there}", name, key=option, hint=hint)


def _spendings(
    old: Sequence[CaseResult], new: Sequence[CaseResult]
) -> tuple[Spending, Spending, bool]:
    """What both took, and whether that is without making the cases."""
    is_alone = all(_of_judge_alone(result) is not None for result in (*old, *new))
    if not is_alone:
        return total_spending(old), total_spending(new), False
    totals = []
    for results in (old, new):
        total = Spending()
        for result in results:
            total += _of_judge_alone(result) or Spending()
        totals.append(total)
    return totals[0], totals[1], True


def _seconds(
    before: Mapping[str, Sequence[float]], upgrade: Upgrade
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """What the verdicts of both took on the compared cases, as far as it is known; `before` by
    case id.
    """
    old: list[float] = []
    new: list[float] = []
    for pair in upgrade.pairs:
        old += before.get(pair.now.case_id, ())
        new += pair.now.seconds
    return tuple(old), tuple(new)


def _of_judge_alone(result: CaseResult) -> Spending | None:
    """What the judge took of a case; None where the making of the case is in it."""
    return result.spending if KINDS[result.spec.test].natural else result.judge_spending


def _moved(result: CaseResult, new: CaseResult) -> CaseResult:
    """The result of the old judge under the id that the case has for the new one."""
    spec = replace(result.spec, judge=new.spec.judge)
    return replace(result, spec=spec, case_id=case_id(spec))


def _of_baseline(
    path: Path, judge: str, new: Iterable[CaseResult]
) -> tuple[str, dict[str, Any], dict[str, KeptVerdict]]:
    """A baseline's judge, its lines by the new judge's case ids, and its reasonings, as of the last
    update.
    """
    cases = load(path).cases
    judges = sorted({unquote(case_names(case)[0]) for case in cases})
    new = list(new)
    if judge and judge not in judges:
        raise InputError(_no_judge(judge, judges, "--old", str(path)))
    if not judge and len(judges) > 1:
        judge = new[0].judge
        if judge not in judges:
            raise InputError(Problem(_which("--old", judges), str(path)))
    elif not judge:
        judge = judges[0] if judges else ""
    verdicts = load_kept(kept_path(path)).verdicts
    lines: dict[str, Any] = {}
    kept: dict[str, KeptVerdict] = {}
    for result in new:
        name = case_id(replace(result.spec, judge=judge or None))
        line, verdict = cases.get(name), verdicts.get(name)
        if line is None:
            continue
        lines[result.case_id] = replace(line, case_id=result.case_id, reference=())
        is_of_line = verdict is not None and verdict.judge_fingerprint == line.judge_fingerprint
        if verdict is not None and is_of_line and verdict.score == line.score:
            kept[result.case_id] = replace(verdict, case_id=result.case_id)
    return judge, lines, kept
