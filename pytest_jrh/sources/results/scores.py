"""What the files of other tools hold: who scored which case how by which metric; and the rows of a
table of it.

Which of two metrics is the judge and which the label is only known where the tool says whether a
model or a person gave a score, or where an option names it.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from pytest_jrh.core.documents import listed, printable
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.text import counted
from pytest_jrh.sources.results.values import is_plain, text
from pytest_jrh.sources.source import written_time
from pytest_jrh.stats.intervals import grouped

By: TypeAlias = Literal["judge", "person", "other"]
"""Who gave a score; "other" where the tool does not say it, as of what came through its API."""
UNKNOWN = "entries of an unknown form"
_WHOSE: Mapping[str, By] = {"judges": "judge", "people": "person", "unknown sources": "other"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What somebody said of a case by a metric.

    `value` is None where a judge failed, `number` its score beside a verdict, and `who` the judge
    or the person, where that is known. `place` is the entry of the file, and `fields` are more
    columns, such as `input`. Of scores of one judge or person the one of the latest `time` counts.
    """

    place: int
    case: str
    metric: str
    value: Any
    by: By
    who: str = ""
    reasoning: str = ""
    cluster: str = ""
    time: str = ""
    number: Any = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Results:
    """The scores of a file of a `tool`, and what of it is not read: `left_out`.

    `path` is the list in the document that holds the entries; where they are lines of the file,
    `lines` are their numbers. `remarks` are sentences about the file.
    """

    tool: str
    path: str = ""
    lines: Sequence[int] = ()
    scores: list[Score] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def metrics(self) -> dict[str, None]:
        """The names of all metrics, in the order of the file."""
        return dict.fromkeys(score.metric for score in self.scores)

    def add(self, scores: Sequence[Score]) -> None:
        """Add the scores of a case, numbered where a judge has several of one metric."""
        counts: Counter[tuple[str, ...]] = Counter()
        for score in scores:
            key = (score.metric, score.by, score.who)
            counts[key] += 1
            number = counts[key]
            metric = f"{score.metric} ({number})" if number > 1 else score.metric
            self.scores.append(replace(score, metric=metric))

    def notices(self) -> Iterator[str]:
        """What was not read, and which judges failed."""
        if self.left_out:
            parts = [f"{what} ({count:,})" for what, count in self.left_out.items()]
            yield f"Not read of {self.tool}'s results: {', '.join(parts)}."
        yield from self.remarks
        failed = sum(score.by == "judge" and score.value is None for score in self.scores)
        if failed:
            yield f"{counted(failed, 'judgement')} failed: unscored, and no verdict."

    def rows(
        self, named: Collection[tuple[str, str]], needed: Collection[str]
    ) -> tuple[list[tuple[int, dict[str, Any]]], list[str]]:
        """The rows of a table with their places, and what was left out of it.

        `needed` says whether "verdict" or "label" is read; `named` may have metrics behind these
        roles, and those that are "labelled" in another file. Where it has no label, a metric that
        people scored is compared with their scores, and what nobody scored is left out.
        """
        known = self.metrics
        metrics = [(role, name) for role, name in named if name in known]
        verdicts = [name for role, name in metrics if role in ("verdict", "baseline")]
        labels = [name for role, name in metrics if role == "label"]
        columns = {name for score in self.scores for name in score.fields}
        if any(role == "label" and name in columns for role, name in named):
            # Rows of verdicts have it.
            needed = ("verdict",)
        judged, labelled = self._of("judge", verdicts), self._of("person", labels)
        if any(score.by == "person" for score in labelled):
            labelled = [score for score in labelled if score.by == "person"]
        notices = list(self.notices())
        others = self._of("other")
        if others and "verdict" in needed and not verdicts and not labels:
            name = quoted(others[0].metric)
            notices.append(
                f"No verdicts, as no model is said to give them: {_counts(others)}. "
                f"If one is a judge, name it: --verdict {name}"
            )
        if "verdict" in needed and not labels:
            scored = {name for role, name in metrics if role == "labelled"}
            if "label" in needed:
                scored = {score.metric for score in labelled}
            common = scored & {score.metric for score in judged}
            if common:
                rest = [score for score in judged if score.metric not in common]
                if rest:
                    notices.append(f"No person scored {_counts(rest)}: not checked.")
                judged = [score for score in judged if score.metric in common]
                labelled = [score for score in labelled if score.metric in common]
        rows: list[tuple[int, dict[str, Any]]] = []
        if "verdict" in needed:
            latest = _latest(judged)
            if len(latest) < len(judged):
                earlier = counted(len(judged) - len(latest), "earlier verdict")
                notices.append(f"{earlier} of a judge that judged a case again later: not used.")
            rows += self._verdict_rows(latest, labels)
        if "label" in needed:
            rows += _label_rows(labelled)
        return rows, notices

    def _of(self, who: By, metrics: Collection[str] = ()) -> list[Score]:
        """The scores of judges, or of people; of metrics that are named also those of others."""
        sources = {who, "other"} if metrics else {who}
        scores = [score for score in self.scores if score.by in sources]
        return [score for score in scores if not metrics or score.metric in metrics]

    def _verdict_rows(
        self, scores: Sequence[Score], labels: Collection[str]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """A row for each verdict; of a metric that is held against a label of another name, the
        judge is the metric.
        """
        judges: dict[str, set[str]] = {}
        for score in scores:
            judges.setdefault(score.metric, set()).add(score.who)
        # Where each metric has a model of its own they are rubrics, and not judges to compare.
        has_several = any(len(names) > 1 for names in judges.values())
        is_known = has_several or len({score.who for score in scores}) == 1
        repeats: Counter[tuple[str, ...]] = Counter()
        for score in scores:
            judge = (is_known and score.who) or self.tool
            if labels and len(judges[score.metric]) > 1:
                judge = f"{score.metric}, {judge}"
            elif labels:
                judge = score.metric
            for rubric in labels or (score.metric,):
                key = (score.case, rubric, judge)
                repeats[key] += 1
                row = _row(score, rubric) | {"judge": judge, "verdict": score.value}
                row["reasoning"] = score.reasoning
                if score.value is not None and is_plain(score.number):
                    row["metric_score"] = score.number
                if repeats[key] > 1:
                    row["repeat"] = repeats[key]
                yield score.place, row

    def without_labels(self, file: str) -> InputError:
        """The error of a file without a verdict beside a label: what it holds, and what to do."""
        message = f"{self.tool}'s results hold no verdict beside a label of a person"
        for who, by in _WHOSE.items():
            scores = [score for score in self.scores if score.by == by]
            if scores:
                cases = counted(len({score.case for score in scores}), "case")
                message += f"\n    of {who}: {_counts(scores)}, on {cases}"
        message += "".join(f"\n    {notice}" for notice in self.notices())
        name, check = shlex.quote(file), "python -m pytest_jrh check"
        ways = [
            f"say which score is the judge's: {check} {name} --verdict NAME",
            "(and --label NAME where that of people has another name)",
            f"or label cases: python -m pytest_jrh label {name}",
            f"and hold the verdicts against them: {check} {name} --labels labels.csv",
        ]
        if all(score.by == "person" for score in self.scores):
            ways = [f"hold verdicts against these labels: {check} VERDICTS --labels {name}"]
        return InputError(message, file, hint="\n    ".join(ways))


def quoted(name: str) -> str:
    """A name as a shell takes it."""
    return shlex.quote(printable(name, 200))


def _counts(scores: Iterable[Score]) -> str:
    """The metrics of scores, with their counts."""
    counts = Counter(score.metric for score in scores)
    return listed((f"{printable(name, 50)} ({count:,})" for name, count in counts.items()), 8)


def _row(score: Score, rubric: str) -> dict[str, Any]:
    row = {"case_id": score.case, "rubric_id": rubric}
    if score.cluster:
        row["cluster"] = score.cluster
    return {**row, **score.fields}


def _latest(scores: Sequence[Score]) -> list[Score]:
    """The scores without those that their judge replaced later. What tells no time, or the same, is
    a repeat.
    """
    times: dict[tuple[str, ...], datetime] = {}
    keys = [(score.case, score.metric, score.by, score.who) for score in scores]
    for key, score in zip(keys, scores, strict=True):
        times[key] = max(_given_at(score), times.get(key, _given_at(score)))
    return [one for key, one in zip(keys, scores, strict=True) if _given_at(one) == times[key]]


def _label_rows(scores: Sequence[Score]) -> Iterator[tuple[int, dict[str, Any]]]:
    """A row for each label, of one person's the latest; two without a name are of two persons."""
    latest: dict[tuple[object, ...], Score] = {}
    for score in sorted(scores, key=_given_at):
        if score.value is not None:
            who: object = score.who or score.place
            latest[score.case, score.metric, who] = score
    for score in latest.values():
        annotator = score.who or f"entry {score.place + 1}"
        row = _row(score, score.metric) | {"label": score.value, "annotator": annotator}
        yield score.place, row


def _given_at(score: Score) -> datetime:
    """When a score was given; one that does not say it comes before all others."""
    return written_time(score.time) or datetime.min.replace(tzinfo=UTC)


def time_of(by: By, first: object, last: object) -> str:
    """When somebody judged: of a person, who may think again, the last time; a correction of it
    modifies what a judge said.
    """
    times = (first, last) if by == "judge" else (last, first)
    return text(times[0]) or text(times[1])


def outputs_apart(names: Sequence[str], texts: Sequence[object], results: Results) -> list[str]:
    """The case of each output, by the name that the tool gives it, and what was asked and answered.

    A tool runs a test again and does not say so. Equal outputs are one case, judged several times.
    Different ones under one name are several cases, none of which has the name alone: a label of
    it may be of any.
    """
    by_name = grouped(zip(names, map(json.dumps, texts), strict=True))
    unclear = {name: None for name, of_name in by_name.items() if len({*of_name}) > 1}
    if not unclear:
        return [*names]
    results.remarks.append(
        f"{counted(len(unclear), 'id')} with different outputs: {listed(unclear, 3)}. "
        "Each output is a case, named by the id and a number; a label of the id alone is of none."
    )
    numbers: Counter[str] = Counter()
    cases = []
    for name in names:
        numbers[name] += 1
        cases.append(f"{name} (repeat {numbers[name]})" if name in unclear else name)
    return cases


def case_names(subjects: Iterable[tuple[str, str]]) -> list[str]:
    """The case of each score, by the whole that it is about and the part of it, if any. The only
    part that is scored is taken for the whole.
    """
    listed_subjects = list(subjects)
    parts: dict[str, set[str]] = {}
    for whole, part in listed_subjects:
        parts.setdefault(whole, set()).update({part} - {""})
    names = []
    for whole, part in listed_subjects:
        is_only = len(parts[whole]) <= 1
        names.append(whole if is_only or not part else f"{whole}/{part}")
    return names
