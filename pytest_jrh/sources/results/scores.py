"""What the files of other tools hold: who scored which case how by which metric; and the rows of a
table of it. What is in the JSON of strangers is nothing where it is of another kind.

Which of two metrics is the judge and which the label is only known where the tool says whether a
model or a person gave a score, or where an option names it.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from pytest_jrh.core import Fields, InputError, Json, counted, frozen, listed, printable
from pytest_jrh.sources.source import NOT_SAID, as_pointer, at, mapping, written_time

Entry = Fields
"""What a file says of a case, or a part of it."""
By = Literal["judge", "person", "other"]
"""Who gave a score; "other" where the tool does not say it, as of what came through its API."""
NumberedRow: TypeAlias = "tuple[int, Json]"
"""A row of a table behind the number of its entry, or of its line."""
UNKNOWN = "of an unknown form"
_WHOSE: Mapping[str, By] = {
    "by judges": "judge",
    "by people": "person",
    "whose source (judge or person) is not known": "other",
}


@frozen
class Score:
    """What somebody said of a case by a metric.

    `value` is None where a judge failed, `number` its score beside a verdict, and `scorer` the
    judge or the person, where that is known. `index` is that of the entry in the file, and `fields`
    are more columns, such as `input`. `output` is what was scored, where the tool may give one name
    to several. Of scores of one judge or person the one of the latest `time`
    counts.
    """

    index: int
    case: str
    metric: str = ""
    value: Any = None
    by: By = "judge"
    scorer: str = ""
    reasoning: str = ""
    cluster: str = ""
    time: datetime = NOT_SAID
    number: Any = None
    output: str = ""
    fields: Entry = field(default_factory=dict)


Found = Score | str
"""A score, or why an entry or a part of it has none."""


@dataclass
class Results:
    """The scores of a `file` of a `tool`, and what of it is not read: `left_out`.

    `path` is the list in the document that holds the entries, None where they are lines of the
    file; `lines` are their numbers. `remarks` are sentences about the file.
    """

    tool: str
    file: str
    path: str | None
    lines: Sequence[int]
    scores: list[Score] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def metrics(self) -> dict[str, None]:
        """The names of all metrics, in the order of the file."""
        return dict.fromkeys(score.metric for score in self.scores)

    def tell_apart(self) -> None:
        """Tell apart the outputs that have one name, and the metrics that a judge has twice of one.

        A tool runs a test again and does not say so. Equal outputs are one case, judged several
        times. Different ones under one name are several cases, none of which has the name alone: a
        label of it may be of any.
        """
        outputs: dict[str, set[str]] = {}
        numbers: dict[str, dict[int, int]] = {}
        for score in self.scores:
            outputs.setdefault(score.case, set()).add(score.output)
            of_case = numbers.setdefault(score.case, {})
            of_case.setdefault(score.index, len(of_case) + 1)
        unclear = dict.fromkeys(case for case, texts in outputs.items() if len(texts) > 1)
        if unclear:
            self.remarks.append(
                f"Different outputs share {counted(len(unclear), 'id')}: {listed(unclear, 3)}. "
                "Each output is a case, named by the id and a number; a label with only the id "
                "belongs to none of these cases."
            )
        counts = Counter[tuple[Hashable, ...]]()
        for place, score in enumerate(self.scores):
            case, metric = score.case, score.metric
            if case in unclear:
                case = f"{case} (repeat {numbers[case][score.index]})"
            key = (score.index, metric, score.by, score.scorer)
            counts[key] += 1
            if score.output and counts[key] > 1:
                metric = f"{metric} ({counts[key]})"
            self.scores[place] = replace(score, case=case, metric=metric)

    def notices(self) -> Iterator[str]:
        """What was not read, and which judges failed."""
        if self.left_out:
            parts = [
                f"{counted(count, 'part')} {reason}" for reason, count in self.left_out.items()
            ]
            yield f"Some of {self.tool}'s results are not used: {'; '.join(parts)}."
        yield from self.remarks
        failed = sum(score.by == "judge" and score.value is None for score in self.scores)
        if failed:
            yield f"{counted(failed, 'judgement')} failed and gave no verdict."

    def rows(
        self, roles: Collection[tuple[str, str]], needed: Collection[str]
    ) -> tuple[list[NumberedRow], list[str]]:
        """The rows of a table with their lines, and what was left out of it.

        `needed` says whether "verdict" or "label" is read, or of each case the "text" alone;
        `roles` may have metrics behind these roles, and those that are "labelled" in another file.
        Where it has no label, a metric that people scored is compared with their scores, and what
        nobody scored is left out. Raises `InputError` where there is no row.
        """
        if "text" in needed:
            texts: dict[str, NumberedRow] = {}
            for score in self.scores:
                texts.setdefault(score.case, (score.index, {"case_id": score.case, **score.fields}))
            return self._numbered(texts.values()), []
        metrics = self.metrics
        named = defaultdict(list)
        for role, name in roles:
            if role == "label" and any(name in score.fields for score in self.scores):
                # Rows of verdicts have it.
                needed = ("verdict",)
            if name in metrics:
                named["verdict" if role == "baseline" else role].append(name)
        verdicts, labels = named["verdict"], named["label"]
        judged, labelled = self._of("judge", verdicts), self._of("person", labels)
        labelled = [score for score in labelled if score.by == "person"] or labelled
        notices = list(self.notices())
        of_unknown = self._of("other")
        if of_unknown and "verdict" in needed and not verdicts and not labels:
            name = quoted(of_unknown[0].metric)
            notices.append(
                "These scores are not used as verdicts, as nothing says that a model gave them: "
                f"{_counts(of_unknown)}. If one of them is a judge's, pass --verdict {name}"
            )
        if "verdict" in needed and not labels:
            of_labels = [score.metric for score in labelled]
            if "label" not in needed:
                of_labels = named["labelled"]
            common = {score.metric for score in judged}.intersection(of_labels)
            if common:
                unchecked = [score for score in judged if score.metric not in common]
                if unchecked:
                    notices.append(
                        f"Verdicts that nobody labelled (not checked): {_counts(unchecked)}."
                    )
                judged = [score for score in judged if score.metric in common]
                labelled = [score for score in labelled if score.metric in common]
        rows: list[NumberedRow] = []
        if "verdict" in needed:
            latest = _latest(judged)
            if len(latest) < len(judged):
                notices.append(
                    f"{counted(len(judged) - len(latest), 'earlier verdict')} not used, because "
                    "the judge judged the same case again later."
                )
            rows += self._verdict_rows(latest, labels)
        if "label" in needed:
            rows += _label_rows(labelled)
        return self._numbered(rows), notices

    def _numbered(self, rows: Iterable[NumberedRow]) -> list[NumberedRow]:
        if not rows:
            raise self.without_labels()
        return [(self.lines[index], row) for index, row in rows]

    def _of(self, by: By, metrics: Collection[str] = ()) -> list[Score]:
        """The scores of judges, or of people; of metrics that are named also those of others."""
        scores = []
        for score in self.scores:
            is_named = score.metric in metrics and score.by in (by, "other")
            if is_named or (score.by == by and not metrics):
                scores.append(score)
        return scores

    def _verdict_rows(
        self, scores: Sequence[Score], labels: Collection[str]
    ) -> Iterator[NumberedRow]:
        """A row for each verdict; of a metric that is held against a label of another name, the
        judge is the metric.
        """
        judges: dict[str, set[str]] = {}
        for score in scores:
            judges.setdefault(score.metric, set()).add(score.scorer)
        # Where each metric has a model of its own they are rubrics, and not judges to compare.
        has_several = any(len(names) > 1 for names in judges.values())
        is_known = has_several or len(set().union(*judges.values())) == 1
        repeats = Counter[tuple[str, ...]]()
        for score in scores:
            judge = (is_known and score.scorer) or self.tool
            if labels and len(judges[score.metric]) > 1:
                judge = f"{score.metric}, {judge}"
            elif labels:
                judge = score.metric
            for rubric in labels or (score.metric,):
                key = (score.case, rubric, judge)
                repeats[key] += 1
                row = _row(score, rubric)
                row |= {"judge": judge, "verdict": score.value, "reasoning": score.reasoning}
                if score.value is not None and is_plain(score.number):
                    row["metric_score"] = score.number
                if repeats[key] > 1:
                    row["repeat"] = repeats[key]
                yield score.index, row

    def without_labels(self) -> InputError:
        """The error of a file without a verdict beside a label: what it holds, and what to do."""
        message = f"{self.tool}'s results have no output with both a verdict and a person's label"
        for scorers, by in _WHOSE.items():
            scores = self._of(by)
            if scores:
                cases = counted(len({score.case for score in scores}), "case")
                message += f"\n    scores {scorers}: {_counts(scores)}, on {cases}"
        message += "".join(f"\n    {notice}" for notice in self.notices())
        name, check = shlex.quote(self.file), "python -m pytest_jrh check"
        ways = [
            f"say which score is the judge's: {check} {name} --verdict NAME",
            "(add --label NAME if the score by people has another name)",
            f"or label cases: python -m pytest_jrh label {name}",
            f"and then check the verdicts by these labels: {check} {name} --labels labels.csv",
        ]
        if all(score.by == "person" for score in self.scores):
            ways = [
                f"if {name} has only labels, name verdicts, too: {check} VERDICTS --labels {name}"
            ]
        return InputError(message, self.file, hint="\n    ".join(ways))


def quoted(name: str) -> str:
    """A name as a shell takes it."""
    return shlex.quote(printable(name, 200))


def _counts(scores: Iterable[Score]) -> str:
    """The metrics of scores, with their counts."""
    counts = Counter(score.metric for score in scores)
    return listed((f'{count:,} of "{printable(name, 46)}"' for name, count in counts.items()), 8)


def _row(score: Score, rubric: str) -> Json:
    row = {"case_id": score.case, "rubric_id": rubric}
    if score.cluster:
        row["cluster"] = score.cluster
    return {**row, **score.fields}


def _latest(scores: Sequence[Score]) -> list[Score]:
    """The scores without those that their judge replaced later. What tells no time, or the same, is
    a repeat.
    """
    times: dict[Any, datetime] = {}
    for score in scores:
        key = _judgement(score)
        times[key] = max(score.time, times.get(key, NOT_SAID))
    return [score for score in scores if score.time == times[_judgement(score)]]


_judgement = attrgetter("case", "metric", "by", "scorer")
"""What a judge judges once, unless it does so again."""


def _label_rows(scores: Sequence[Score]) -> Iterator[NumberedRow]:
    """A row for each label, of one person's the latest; two without a name are of two persons."""
    latest = {}
    for score in sorted(scores, key=lambda score: score.time):
        if score.value is not None:
            annotator = score.scorer or f"entry {score.index + 1}"
            latest[score.case, score.metric, annotator] = score
    for (_, rubric, annotator), score in latest.items():
        yield score.index, _row(score, rubric) | {"label": score.value, "annotator": annotator}


def time_of(by: By, entry: Entry, first: str, last: str) -> datetime:
    """When somebody judged: of a person, who may think again, the last time; a correction of it
    modifies what a judge said. What does not say it comes before all others.
    """
    keys = (first, last) if by == "judge" else (last, first)
    return written_time(text_in(entry, *keys))


def case_names(subjects: Sequence[tuple[str, str]]) -> list[str]:
    """The case of each score, by the whole that it is about and the part of it, if any. The only
    part that is scored is taken for the whole.
    """
    parts = Counter(subject for subject, part in {*subjects} if part)
    names = []
    for subject, part in subjects:
        names.append(f"{subject}/{part}" if part and parts[subject] > 1 else subject)
    return names


def text(value: object) -> str:
    """A value where it is text, else nothing."""
    return value.strip() if isinstance(value, str) else ""


def text_in(entry: Entry, *names: str) -> str:
    """The first of these fields, or of what is at these pointers, that is text; else nothing."""
    for name in names:
        if value := text(at(entry, as_pointer(name))):
            return value
    return ""


def mappings(value: object) -> list[Entry]:
    """The mappings in a value where it is a list."""
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


def is_plain(value: object) -> bool:
    """Whether a value is a word, a number or a truth."""
    return isinstance(value, bool | int | float) or bool(text(value))


def plain_fields(prefix: str, values: object) -> Json:
    """The words, numbers and truths of a mapping, as columns with a prefix."""
    columns = {}
    for name, value in mapping(values).items():
        if is_plain(value):
            columns[f"{prefix}.{name}"] = value
    return columns
