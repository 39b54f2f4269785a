"""The state of a page: the cases made so far, and what people say of each.

On a `ReviewBoard` people decide about the cases of a session, on a `LabelBoard` they label them
blind. The engine's thread hands cases in at the `ReviewDesk`; the page's threads bring what people
do; the session's waits until they have ended it.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import Any, ClassVar, Literal

from pytest_jrh.core import (
    InputError,
    counted,
    frozen,
    grouped,
    grouped_by,
    listed,
    name_problem,
    short_digest,
    storable,
)
from pytest_jrh.core.cases import (
    DEFAULT_SEED,
    Case,
    CaseSpec,
    HumanReview,
    LabelKey,
    NoVerdictCase,
    Verdict,
)
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.sections import BlindSection
from pytest_jrh.core.transcript import message_text
from pytest_jrh.people import (
    Decision,
    DecisionStore,
    TurnEdit,
    Withdrawn,
    is_editable,
    with_edits,
)
from pytest_jrh.people.labels import PersonLabel, WriteLabel
from pytest_jrh.store.records import case_digest

SECONDS_BETWEEN_LOOKS = 0.1


@frozen
class ReviewCase:
    """A case on a page: as it was made, or one that the verifier rejected.

    `judged` holds the verdicts by judge, "" being the suite's only one. `version` is that of the
    board when the case changed last.
    """

    case_id: str
    digest: str
    case: Case
    version: int = 0
    judged: Mapping[str, Sequence[Verdict]] = field(default_factory=dict)

    @classmethod
    def of(cls, case: Case) -> ReviewCase:
        """A case as it comes to the page."""
        return cls(generation_id(case.spec), case_digest(case), case)

    @property
    def rejected(self) -> bool:
        """Whether the verifier rejected the case, so that nothing can be decided about it."""
        return self.case.outcome.no_case is not None

    @property
    def key(self) -> str:
        """The name of the case in addresses: derived from its id, without any character of it."""
        return short_digest(self.case_id)

    def check_label(self, label: int) -> None:
        """Raise `InputError` for a label that is not on the scale of the case."""
        scale = self.case.scale
        if label not in scale.answers:
            message = f"{label} is not a label of this case; must be one of "
            raise InputError(message + ", ".join(map(str, scale.on_offer)))


@frozen
class Progress:
    """How far a page is, as browsers are told: of `total` cases `ended` were made or came to
    nothing, `shown` are for people to look at, and they are `done` with so many.
    """

    total: int
    ended: int
    shown: int
    done: int
    finalized: bool


class Board(ABC):
    """The cases of a session on a page; every method may be called from any thread.

    `version` grows with every change: whoever waits for one looks at it now and then.
    """

    task: ClassVar[str]
    """What people do with the cases."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: dict[str, ReviewCase] = {}
        self._announced: set[str] = set()
        self._ended: set[str] = set()
        # Whether people have ended it.
        self.finalized = threading.Event()
        self.version = 0

    @abstractmethod
    def _shown_and_done(self) -> tuple[int, int]:
        """How many cases there are for people to look at, and how many they are done with."""

    @abstractmethod
    def add(self, case: Case) -> None:
        """Take in a case that was made, or that the verifier rejected, now or earlier."""

    def announce(self, case_ids: Iterable[str]) -> None:
        """Say which cases there will be."""
        with self._lock:
            self._announced.update(case_ids)
            self.version += 1

    def end(self, case_id: str, case: Case | None = None) -> None:
        """Say that an announced case has ended: with the case made or rejected, or with none."""
        with self._lock:
            if case is not None:
                self.add(case)
            if case_id not in self._ended:
                self._ended.add(case_id)
                self.version += 1

    def finalize(self) -> None:
        """End what people do; all of it is on the disk."""
        with self._lock:
            self.finalized.set()
            self.version += 1

    def progress(self) -> Progress:
        """How far it is."""
        with self._lock:
            ended = len(self._announced & self._ended)
            return Progress(
                len(self._announced),
                ended,
                *self._shown_and_done(),
                finalized=self.finalized.is_set(),
            )

    async def until_finalized(self) -> None:
        """Wait, in an event loop, until people have ended it."""
        while not self.finalized.is_set():
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)

    def line(self) -> str:
        """What a terminal shows meanwhile."""
        progress = self.progress()
        making = ""
        if progress.ended < progress.total:
            making = f"{progress.ended:,} of {counted(progress.total, 'case')} made | "
        to_do = f"{progress.done:,} of {counted(progress.shown, 'case')} to {self.task} are done"
        return f"jrh: {making}{to_do} | press Finish to continue"


@frozen
class Reviewed:
    """A case with what was decided; `void` is a decision about another version of it."""

    entry: ReviewCase
    decision: Decision | None = None
    void: Decision | None = None

    @property
    def case(self) -> Case:
        """The case with a person's edits, also where it was then rejected."""
        if self.decision is None:
            return self.entry.case
        return with_edits(self.entry.case, self.decision)

    @property
    def word(self) -> HumanReview:
        """What people decided about the case, in a word."""
        if self.decision is not None:
            return self.decision.action
        return "undecided" if self.void is None else "void"


def _reviewed(entry: ReviewCase, last: Decision | None) -> Reviewed:
    """A case with the last decision about any version of it."""
    if entry.rejected or last is None:
        return Reviewed(entry)
    if entry.digest in (last.case_digest, *last.edited_digests):
        return Reviewed(entry, last)
    return Reviewed(entry, void=last)


class ReviewBoard(Board):
    """The cases of a session on their way through review.

    `store` holds what was decided about their suites. Keys of cases are those of `ReviewCase`.
    """

    task = "review"

    def __init__(self, store: DecisionStore) -> None:
        super().__init__()
        self._store = store
        self._final: dict[str, Decision] = {}

    def add(self, case: Case) -> None:
        """Take in a case; made again in another way, it takes the place of the earlier one."""
        entry = ReviewCase.of(case)
        with self._lock:
            before = self._entries.get(entry.key)
            if before is None or (before.digest, before.rejected) != (entry.digest, entry.rejected):
                self._put(entry)

    def set_verdicts(self, case: Case, verdicts: Sequence[Verdict]) -> None:
        """Keep what the judge in the case's spec decided, of a case that is on the page."""
        with self._lock:
            entry = self._entries.get(short_digest(generation_id(case.spec)))
            if entry is not None:
                self._put(
                    replace(entry, judged={**entry.judged, case.spec.judge or "": tuple(verdicts)})
                )

    def review(self, case: Case) -> Reviewed:
        """What people decided about this version of a case; after the end of the review, what they
        had decided by then.
        """
        entry = ReviewCase.of(case)
        with self._lock:
            decisions = self._final if self.finalized.is_set() else self._store.decisions
            return _reviewed(entry, decisions.get(entry.case_id))

    def finalize(self) -> None:
        """End the review: what is decided now is what the tests assert with.

        Later decisions are for later runs.
        """
        with self._lock:
            if not self.finalized.is_set():
                # All of them: an earlier run's decision also counts for a case that is not yet
                # made.
                self._final = {**self._store.decisions}
            super().finalize()

    def decide(
        self,
        key: str,
        digest: str,
        action: Literal["accepted", "rejected", "withdrawn"],
        note: str = "",
    ) -> Reviewed:
        """Accept or reject; accepting a case with a person's edits keeps them, and only what is
        withdrawn takes them back.

        Raises, as all that decides, `LookupError` for an unknown key, `InputError` where the case
        is another one by now or the change cannot be, and `OSError` if the write fails; then
        nothing has changed.
        """
        with self._lock:
            entry, decision = self._to_decide(key, digest)
            if action == "withdrawn":
                return self._keep(entry, decision, action="edited", turns=(), expected=None)
            is_edited = action == "accepted" and decision.has_edits
            return self._keep(entry, decision, action="edited" if is_edited else action, note=note)

    def set_label(self, key: str, digest: str, expected: int) -> Reviewed:
        """Give a case another expected label, out of those that its judge can give."""
        with self._lock:
            entry, decision = self._to_decide(key, digest)
            entry.check_label(expected)
            # The label that the case was made with is no difference, unless the decision was taken
            # about the case before people edited it.
            is_first = decision.expected is None or decision.case_digest == entry.digest
            is_same = expected == entry.case.expected and is_first
            label = None if is_same else entry.case.scale.said(expected)
            return self._keep(entry, decision, action="edited", expected=label)

    def edit_turn(self, key: str, digest: str, index: int, content: str | None) -> Reviewed:
        """Give an assistant turn another text; None goes back to what was made."""
        with self._lock:
            entry, decision = self._to_decide(key, digest)
            messages = entry.case.messages
            if not is_editable(messages, index):
                raise InputError(
                    f"turn {index} is not the assistant's; only the assistant's turns can be edited"
                )
            text = message_text(messages[index])
            if content is not None and not content.strip() and content != text:
                raise InputError(f"turn {index} would have no text; drop the case instead")
            edited_turns = {turn.message_index: turn for turn in decision.turns}
            # What a stored case already holds is no difference from it, but is one from the case as
            # first made.
            if content is None or (content == text and index not in edited_turns):
                edited_turns.pop(index, None)
            else:
                edited_turns[index] = TurnEdit(message_index=index, content=content)
            return self._keep(
                entry,
                decision,
                action="edited",
                turns=tuple(turn for _, turn in sorted(edited_turns.items())),
            )

    def get(self, key: str) -> Reviewed:
        """The case with this key; raises `LookupError`."""
        with self._lock:
            return self._decided(self._entries[key])

    def changes(self, since: int = 0) -> tuple[int, tuple[Reviewed, ...]]:
        """The present version, and the cases that are new or changed since an earlier one, in order
        of making.
        """
        with self._lock:
            changed = [entry for entry in self._entries.values() if entry.version > since]
            return self.version, tuple(map(self._decided, changed))

    def _shown_and_done(self) -> tuple[int, int]:
        entries = [entry for entry in self._entries.values() if not entry.rejected]
        return len(entries), sum(self._decided(entry).decision is not None for entry in entries)

    def _to_decide(self, key: str, digest: str) -> tuple[ReviewCase, Decision]:
        """A case to decide about, and the decision that is to be changed."""
        entry = self._entries[key]
        if entry.digest != digest:
            raise InputError("this case was made again; read the new version before you decide")
        if entry.rejected:
            raise InputError("the verifier rejected this case, so nothing can be decided about it")
        blank = Decision(case_id=entry.case_id, case_digest=entry.digest, action="accepted")
        return entry, self._decided(entry).decision or blank

    def _keep(self, entry: ReviewCase, before: Decision, **changes: Any) -> Reviewed:
        """Change a decision, on the disk first; one that edits nothing is taken back."""
        decision, spec = before.model_copy(update=changes), entry.case.spec
        stored = self._store.decisions.get(entry.case_id)
        if decision.action == "edited" and not decision.has_edits:
            if stored is not None:
                self._store.append(spec, Withdrawn(case_id=entry.case_id, action="withdrawn"))
        elif decision != stored:
            if decision.has_edits:
                edited = case_digest(with_edits(entry.case, decision))
                digests = dict.fromkeys((*decision.edited_digests, edited))
                decision = decision.model_copy(update={"edited_digests": tuple(digests)})
            self._store.append(spec, decision)
        self._put(entry)
        return self.get(entry.key)

    def _put(self, entry: ReviewCase) -> None:
        self.version += 1
        self._entries[entry.key] = replace(entry, version=self.version)

    def _decided(self, entry: ReviewCase) -> Reviewed:
        return _reviewed(entry, self._store.decisions.get(entry.case_id))


def draw(
    digests: Collection[str], size: int, labelled: Collection[str] = (), purpose: str = "draw"
) -> frozenset[str]:
    """The digests of `size` cases, or of all where there are no more, each with the same chance, so
    that the sample stands for all cases without weights.

    Chance alone decides, from the digests: a case that comes or goes changes as little
    as possible, and the order in which cases were made changes nothing. Those are drawn first that
    are `labelled`: a sample goes on from them where cases were added, and those are next that any
    sample would have first.
    """
    if size >= len(digests):
        return frozenset(digests)
    ranked = _ranked(digests, purpose)
    return frozenset(sorted(ranked, key=lambda digest: digest not in labelled)[:size])


_FEWEST = 2


def drawn_evenly(
    cases: Iterable[Case], words: Mapping[LabelKey, str], size: int, labelled: Collection[str]
) -> dict[LabelKey, str]:
    """Draw cases evenly from what a judge said of them, which `words` give: the weights of those
    that are drawn, which say how many cases have the word of each. Cases without a word are not
    drawn, and of each word those first whose digests are `labelled`.

    Raises `InputError` where there are more words than so few cases can tell.
    """
    by_word = grouped((words[case.spec.label_key], case) for case in cases)
    by_word.pop("", None)
    if not by_word or size < _FEWEST * len(by_word):
        raise InputError(
            f"{size} cases are too few to draw evenly from {len(by_word):,} different values "
            f"({listed(by_word, 5)})",
            key="--by",
            hint=f"name a column with fewer values, or draw {_FEWEST} or more per value (--sample)",
        )
    weights = {}
    fewest_first = sorted(by_word.items(), key=lambda of_word: len(of_word[1]))
    for place, (word, of_word) in enumerate(fewest_first):
        keys = {case_digest(case): case.spec.label_key for case in of_word}
        number = min(len(keys), size // (len(fewest_first) - place))
        size -= number
        for digest in draw(keys, number, labelled):
            weights[keys[digest]] = f"{len(keys)} of {word}"
    return weights


def in_order(
    drawn: Iterable[str], reviewer: str, case_of: Callable[[str], tuple[str, str]]
) -> list[str]:
    """The sample in the order in which a reviewer sees it; each reviewer has another one.

    `case_of` gives the rubric and the run of a digest. Cases of a rubric come together, so that it
    is read once, and of them one of each run in turn: two of a run in a row, which would show what
    was edited, come only where no other run is left.
    """
    by_rubric: dict[str, dict[str, list[str]]] = {}
    for digest in _ranked(drawn, f"order {reviewer}"):
        rubric, run = case_of(digest)
        by_rubric.setdefault(rubric, {}).setdefault(run, []).append(digest)
    ordered: list[str] = []
    for by_run in by_rubric.values():
        for one_of_each_run in zip_longest(*by_run.values()):
            ordered += filter(None, one_of_each_run)
    return ordered


def _ranked(digests: Iterable[str], purpose: str) -> list[str]:
    return sorted(
        digests, key=lambda digest: short_digest(f"{DEFAULT_SEED}\n{purpose}\n{digest}", 64)
    )


@frozen
class Assigned:
    """A case as a reviewer knows it: its key and number, which are about nothing but chance, and
    the `label` that he or she gave.

    `is_blind`: a label that is given now is a blind one.
    """

    key: str
    number: int
    entry: ReviewCase
    label: PersonLabel | None
    is_blind: bool

    @property
    def is_open(self) -> bool:
        """Whether it waits for a label of this reviewer."""
        return self.label is None or self.label.withdrawn


LATE = "without a label when the reviewer finished"


class LabelBoard(Board):
    """The cases of some suites on their way to people's labels; no case waits for one.

    `settings` are those of each suite. `people` are the labels that the files hold already, and
    `write` adds to them; `redact` is applied to what people type. `reviewer` is the only one who
    labels, where the command line names one. Reviewers and cases go by keys that are drawn at
    random, the same case by another one for each reviewer.

    Nothing is ever revealed here. Reviewers who have finished may read the report, so no label that
    they give after `finish` is blind.
    """

    task = "label blind"

    def __init__(
        self,
        settings: Mapping[str, BlindSection],
        people: Collection[PersonLabel],
        write: WriteLabel,
        *,
        redact: Callable[[str], str],
        reviewer: str | None,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._write = write
        self._redact = redact
        self.reviewer = reviewer
        # What each person said last of each case, by the case's digest and the name.
        self._last: defaultdict[str, dict[str, PersonLabel]] = defaultdict(dict)
        for label in people:
            self._last[label.case_digest][label.reviewer] = label
        # What was labelled in an earlier session is in a report of it.
        self._reported = {(label.case_digest, label.reviewer) for label in people}
        self._labelled_blind = {label.case_digest for label in people if label.blind}
        self._drawn: set[str] = set()
        # Those of the drawn cases that everybody labels.
        self._shared: set[str] = set()
        # By reviewer and key the number and the digest of each case, in the reviewer's order.
        self._orders: dict[str, dict[str, tuple[int, str]]] = {}
        # Grows where somebody has other cases than before.
        self.assignment = 0
        self._names: dict[str, str] = {}
        self._finished: set[str] = set()

    def add(self, case: Case) -> None:
        """Take in a case; of equal ones the first."""
        digest = case_digest(case)
        with self._lock:
            self._entries.setdefault(digest, ReviewCase("", digest, case))

    def end(self, case_id: str, case: Case | None = None) -> None:
        """Say that an announced case has ended; the sample is drawn when all have."""
        with self._lock:
            super().end(case_id, case)
            if not self._drawn and self._announced <= self._ended:
                self._draw()
                self.assignment += 1
                self.version += 1

    def enter(self, name: str) -> tuple[str, str]:
        """Let a reviewer in: the key that he or she goes by, and the name as it is kept.

        Raises `InputError` for a name that cannot be one, or that the command line does not have.
        """
        name = name.strip()
        reason = name_problem(name)
        if reason is None and self.reviewer not in (None, name):
            reason = f"only {self.reviewer} can label here, as --reviewer says"
        if reason is not None:
            raise InputError(reason)
        with self._lock:
            keys = {known: key for key, known in self._names.items()}
            key = keys.get(name) or secrets.token_hex(10)
            self._names[key] = name
            return key, name

    def assigned(self, reviewer: str) -> list[Assigned]:
        """The cases of a reviewer, in the reviewer's order: those that everybody labels, those that
        the reviewer has labelled, and those that nobody has.

        Raises `LookupError` for an unknown reviewer.
        """
        with self._lock:
            cases = []
            name = self._names[reviewer]
            for key in self._order(name):
                assigned = self._assigned(name, key)
                digest = assigned.entry.digest
                is_anyones = digest in self._shared or not self._is_labelled(digest)
                if is_anyones or not assigned.is_open:
                    cases.append(assigned)
            return cases

    def opening(self) -> dict[str, Any]:
        """What is asked of the drawn cases, and the names of who is here, or has labels."""
        with self._lock:
            drawn = [self._entries[digest].case for digest in self._drawn]
            names = {*self._names.values(), *chain.from_iterable(self._last.values())}
            questions = sorted({case.rubric.instructions for case in drawn})
            return {"questions": questions, "names": sorted(names), "assignment": self.assignment}

    def open(self, reviewer: str, key: str) -> Assigned:
        """One case of a reviewer. Raises `LookupError`."""
        with self._lock:
            return self._assigned(self._names[reviewer], key)

    def give(
        self, reviewer: str, key: str, label: int | None, note: str = "", *, withdrawn: bool = False
    ) -> Assigned:
        """Label a case: blind, unless the reviewer may have read a report of it; or take the label
        back.

        On the disk first: raises `OSError` where that fails, and nothing has changed then.
        `LookupError` for a case that the reviewer does not have, `InputError` for a label that is
        not on its scale.
        """
        with self._lock:
            assigned = self.open(reviewer, key)
            if label is not None:
                assigned.entry.check_label(label)
            is_blind = assigned.is_blind and not withdrawn
            name = self._names[reviewer]
            self._keep(assigned, name, label, note=note, blind=is_blind, withdrawn=withdrawn)
            self.assignment += assigned.entry.digest not in self._shared
            return self.open(reviewer, key)

    def finish(self, reviewer: str) -> tuple[str, ...]:
        """End the labelling for a reviewer, and for the session where nobody else still labels;
        returns the names of those who do. No later label of this reviewer is blind, in this session
        or a later one.

        Raises `LookupError` for an unknown reviewer, and `OSError` where what has no label yet
        cannot be noted; then nothing has ended.
        """
        with self._lock:
            name = self._names[reviewer]
            for key in self._order(name):
                assigned = self._assigned(name, key)
                if assigned.label is None:
                    self._keep(assigned, name, None, note=LATE, withdrawn=True)
            self._finished.add(name)
            self.version += 1
            unfinished = sorted(set(self._names.values()) - self._finished)
        if not unfinished:
            self.finalize()
        return tuple(unfinished)

    def _keep(
        self, assigned: Assigned, name: str, label: int | None, *, note: str = "", **flags: Any
    ) -> None:
        """Keep what the reviewer of this name says of a case, on the disk first."""
        entry = assigned.entry
        note = self._redact(storable(note.strip())[0])
        person_label = PersonLabel(entry.digest, name, label, note=note, **flags)
        self._write(entry.case, person_label)
        self._last[entry.digest][name] = person_label
        self.version += 1

    def _is_labelled(self, digest: str) -> bool:
        """Whether anybody has labelled a case."""
        return not all(label.withdrawn for label in self._last.get(digest, {}).values())

    def _shown_and_done(self) -> tuple[int, int]:
        return len(self._drawn), sum(map(self._is_labelled, self._drawn))

    def _draw(self) -> None:
        """Draw of each suite a sample of the cases that are judged, as no other label counts for a
        judge's figures, and of the rejected ones the same share.
        """
        by_suite = grouped_by(self._entries.values(), "case.spec.suite")
        for suite, entries in by_suite.items():
            settings = self._settings[suite]
            rejected = {entry.digest for entry in entries if entry.rejected}
            judged = {entry.digest for entry in entries} - rejected
            of_rejected = settings.sample
            if judged:
                of_rejected = round(len(rejected) * min(1.0, settings.sample / len(judged)))
            drawn = draw(judged, settings.sample, self._labelled_blind)
            drawn |= draw(rejected, of_rejected, self._labelled_blind)
            number_shared = round(settings.overlap * len(drawn))
            self._shared |= draw(drawn, number_shared, purpose="overlap")
            self._drawn |= drawn

    def _order(self, name: str) -> Mapping[str, tuple[int, str]]:
        """All drawn cases in a reviewer's order, also those that others label."""
        if self._drawn and name not in self._orders:
            digests = in_order(self._drawn, name, self._rubric_and_run)
            numbered = enumerate(digests, 1)
            start = secrets.token_hex(10)
            self._orders[name] = {f"{start}{place[0]}": place for place in numbered}
        return self._orders.get(name, {})

    def _assigned(self, name: str, key: str) -> Assigned:
        number, digest = self._order(name)[key]
        return Assigned(
            key=key,
            number=number,
            entry=self._entries[digest],
            label=self._last[digest].get(name),
            is_blind=name not in self._finished and (digest, name) not in self._reported,
        )

    def _rubric_and_run(self, digest: str) -> tuple[str, str]:
        spec = self._entries[digest].case.spec
        return f"{spec.suite} {spec.rubric_id}", f"{spec.run_id} {spec.epoch}"


@dataclass(frozen=True)
class ReviewDesk:
    """The engine's side of a page.

    Cases of the suites `on_page` are shown on the `page`, and where that is the `board` itself they
    wait there for its end; those of the suites `obeying` follow the decisions that are on the disk,
    page or not. All others pass untouched.
    """

    board: ReviewBoard
    page: Board
    obeying: frozenset[str]
    on_page: frozenset[str]

    def announce(self, specs: Iterable[CaseSpec]) -> None:
        """Say which cases there will be; the judges of a panel share theirs."""
        case_ids = {generation_id(spec) for spec in specs if self._shows(spec)}
        if case_ids:
            self.page.announce(case_ids)

    def end_without_case(self, spec: CaseSpec, rejected: Case | None = None) -> None:
        """Count an announced case that was not made; show the one that was `rejected`."""
        if self._shows(spec):
            self.page.end(generation_id(spec), rejected)

    def awaits(self, case: Case) -> bool:
        """Show a case of a suite on the page, and say whether it has to wait for its end.

        Who labels blind sees what is judged, and judging waits for nobody.
        """
        if not self._shows(case.spec):
            return False
        case_id = generation_id(case.spec)
        if self.page is self.board:
            self.page.end(case_id, case)
            return not self.page.finalized.is_set()
        try:
            self.page.end(case_id, self.as_decided(case))
        except NoVerdictCase:
            self.page.end(case_id)
        return False

    def decision(self, case: Case) -> tuple[HumanReview, Decision | None]:
        """What people decided about this very version of a case, in a word and in full."""
        if case.spec.suite not in self.obeying:
            return "", None
        reviewed = self.board.review(case)
        return reviewed.word, reviewed.decision

    def as_decided(self, case: Case) -> Case:
        """Give the case as people decided; raises `NoVerdictCase` where they rejected it."""
        _, decision = self.decision(case)
        if decision is None:
            return case
        if decision.action == "rejected":
            raise NoVerdictCase("rejected_in_review", decision.note)
        return with_edits(case, decision)

    def _shows(self, spec: CaseSpec) -> bool:
        # A probe's case is another one changed, which is shown in its place.
        return spec.suite in self.on_page and not spec.variant
