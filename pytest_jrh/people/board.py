"""The state of a page: the cases made so far, and what people said of each.

`Board` is what reviews and blind labelling share; on a `ReviewBoard` people decide about the cases.
The engine's thread hands cases in at the `ReviewDesk` and gets them back as people decided; the
page's threads bring what people do; the session's waits until they have ended it.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from pytest_jrh.core import frozen
from pytest_jrh.core.cases import Case, CaseSpec, HumanReview
from pytest_jrh.core.errors import InputError, NoVerdictCase
from pytest_jrh.core.ids import generation_id, short_digest
from pytest_jrh.core.results import Judgment
from pytest_jrh.core.text import counted
from pytest_jrh.core.transcript import message_text
from pytest_jrh.people.decisions import (
    CallEdit,
    Decision,
    DecisionStore,
    TurnEdit,
    is_editable,
    obeyed,
    with_edits,
)
from pytest_jrh.store.records import case_digest

SECONDS_BETWEEN_LOOKS = 0.1
KEY_LENGTH = 12
"""How many hex digits name a case, a rubric or a template in addresses."""


@frozen
class ReviewCase:
    """A case on a page, as it was made, or one that the verifier rejected.

    `judged` holds the verdicts by judge, "" being the suite's only one. `version` is that of the
    board when the case changed last.
    """

    case_id: str
    digest: str
    case: Case
    version: int = 0
    judged: Mapping[str, Judgment] = field(default_factory=dict)

    @property
    def rejected(self) -> bool:
        """Whether the verifier rejected the case, so that nothing can be decided about it."""
        return self.case.outcome.no_case is not None

    @property
    def key(self) -> str:
        """The name of the case in addresses: derived from its id, without any character of it."""
        return short_digest(self.case_id, KEY_LENGTH)


def check_label(case: Case, label: int) -> None:
    """Raise `InputError` for a label that is not on the scale of a case."""
    scale = [0, 1] if case.mode == "binary" else [level.score for level in case.levels]
    if label not in scale:
        message = f"{label} is not a label of this case; must be one of "
        raise InputError(message + ", ".join(map(str, scale)))


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

    @property
    def is_empty(self) -> bool:
        """Whether no case could be made, so that there is nothing to look at."""
        return 0 < self.total == self.ended and not self.shown


class Board(ABC):
    """The cases of a session on a page; every method may be called from any thread.

    `version` grows with every change: whoever waits for one looks at it now and then.
    """

    task: ClassVar[str]
    """What people do with the cases."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._announced: set[str] = set()
        self._ended: set[str] = set()
        self._finalized = threading.Event()
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
            self._finalized.set()
            self.version += 1

    def progress(self) -> Progress:
        """How far it is."""
        with self._lock:
            shown, done = self._shown_and_done()
            ended = len(self._announced & self._ended)
            return Progress(len(self._announced), ended, shown, done, self.finalized)

    @property
    def finalized(self) -> bool:
        """Whether people have ended it."""
        return self._finalized.is_set()

    def wait_finalized(self, timeout: float | None = None) -> bool:
        """Wait until people have ended it; False where `timeout` seconds passed first."""
        return self._finalized.wait(timeout)

    async def until_finalized(self) -> None:
        """Wait as `wait_finalized` does, in an event loop."""
        while not self.finalized:
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)

    def line(self) -> str:
        """What a terminal shows meanwhile."""
        now = self.progress()
        made = ""
        if now.ended < now.total:
            made = f"{now.ended:,} of {counted(now.total, 'case')} made | "
        return f"jrh: {made}{now.shown:,} to {self.task}, {now.done:,} done | Finish goes on"


@frozen
class Reviewed:
    """A case with what was decided; `void` is a decision about another version of it."""

    entry: ReviewCase
    decision: Decision | None
    void: Decision | None

    @property
    def case(self) -> Case:
        """The case with a person's edits, also where it was then rejected."""
        if self.decision is None:
            return self.entry.case
        return with_edits(self.entry.case, self.decision)


class ReviewBoard(Board):
    """The cases of a session on their way through review.

    `stores` holds the decisions of each (suite, test); several may share a file. Keys of cases are
    those of `ReviewCase`.
    """

    task = "review"

    def __init__(self, stores: Mapping[tuple[str, str], DecisionStore]) -> None:
        super().__init__()
        self._stores = dict(stores)
        self._entries: dict[str, ReviewCase] = {}
        self._final: dict[str, Decision] | None = None

    def add(self, case: Case) -> None:
        """Take in a case; made again in another way, it takes the place of the earlier one."""
        entry = ReviewCase(generation_id(case.spec), case_digest(case), case)
        with self._lock:
            before = self._entries.get(entry.key)
            if before is None or (before.digest, before.rejected) != (entry.digest, entry.rejected):
                self._put(entry)

    def set_verdict(self, case: Case, judgment: Judgment) -> None:
        """Keep what the judge in the case's spec decided."""
        with self._lock:
            entry = self._entries.get(short_digest(generation_id(case.spec), KEY_LENGTH))
            if entry is not None:
                judged = {**entry.judged, case.spec.judge or "": judgment}
                self._put(replace(entry, judged=judged))

    def said(self, case: Case) -> tuple[HumanReview, Decision | None]:
        """What people say of a case in a word, and their decision about this very version; once the
        review has ended, what had been decided by then.
        """
        case_id = generation_id(case.spec)
        with self._lock:
            if self._final is None:
                decision = self._store(case).get(case_id)
            else:
                decision = self._final.get(case_id)
        if decision is None:
            return "undecided", None
        if not decision.is_about(case_digest(case)):
            return "void", None
        return decision.action, decision

    def finalize(self) -> None:
        """End the review: what is decided now is what the tests assert with.

        Later decisions are for later runs.
        """
        with self._lock:
            if self._final is None:
                self._final = {}
                # All of them: an earlier run's decision also counts for a case that is not yet
                # made.
                for store in self._stores.values():
                    self._final |= store.snapshot()
        super().finalize()

    def decide(
        self, key: str, digest: str, action: Literal["accepted", "rejected"], *, note: str = ""
    ) -> Reviewed:
        """Accept or reject; accepting a case with a person's edits keeps them.

        Raises, as all that decides, `LookupError` for an unknown key, `InputError` where the case
        is another one by now or the change cannot be, and `OSError` if the write fails; then
        nothing has changed.
        """
        with self._lock:
            entry, decision = self._to_decide(key, digest)
            is_edited = action == "accepted" and decision.has_edits
            return self._keep(entry, decision, action="edited" if is_edited else action, note=note)

    def withdraw(self, key: str, digest: str) -> Reviewed:
        """Take back what was decided about a case, edits included."""
        with self._lock:
            entry, decision = self._to_decide(key, digest)
            return self._keep(entry, decision, action="edited", turns=(), expected=None)

    def set_label(self, key: str, digest: str, expected: int) -> Reviewed:
        """Give a case another expected label, out of those that its judge can give."""
        with self._lock:
            entry, decision = self._to_decide(key, digest)
            check_label(entry.case, expected)
            # The label that the case was made with is no difference, unless the decision was taken
            # about the case before people edited it.
            is_first = decision.expected is None or decision.case_digest == entry.digest
            label = None if expected == entry.case.expected and is_first else expected
            return self._keep(entry, decision, action="edited", expected=label)

    def edit_turn(
        self,
        key: str,
        digest: str,
        message_index: int,
        content: str | None,
        calls: tuple[CallEdit, ...] = (),
    ) -> Reviewed:
        """Give an assistant turn another text, and other calls; None goes back to what was made."""
        with self._lock:
            entry, decision = self._to_decide(key, digest)
            messages = entry.case.messages
            if not is_editable(messages, message_index):
                message = (
                    f"message {message_index} is not an assistant turn; its text cannot be edited"
                )
                raise InputError(message)
            text = message_text(messages[message_index])
            if content is not None and not content.strip() and content != text:
                message = f"message {message_index} would be empty; reject the case instead"
                raise InputError(message)
            turns = {turn.message_index: turn for turn in decision.turns}
            # What a stored case already holds is no difference from it, but is one from the case as
            # first made.
            unchanged = content == text and not calls
            if content is None or (unchanged and message_index not in turns):
                turns.pop(message_index, None)
            else:
                turns[message_index] = TurnEdit(
                    message_index=message_index, content=content, calls=calls
                )
            in_order = tuple(turns[index] for index in sorted(turns))
            return self._keep(entry, decision, action="edited", turns=in_order)

    def get(self, key: str) -> Reviewed:
        """The case with this key; raises `LookupError`."""
        with self._lock:
            return self._reviewed(self._entries[key])

    def _shown_and_done(self) -> tuple[int, int]:
        shown = [entry for entry in self._entries.values() if not entry.rejected]
        decided = [entry for entry in shown if self._reviewed(entry).decision is not None]
        return len(shown), len(decided)

    def changes(self, since: int = 0) -> tuple[int, tuple[Reviewed, ...]]:
        """The present version, and the cases that are new or changed since an earlier one, in order
        of making.
        """
        with self._lock:
            changed = [entry for entry in self._entries.values() if entry.version > since]
            return self.version, tuple(self._reviewed(entry) for entry in changed)

    def _to_decide(self, key: str, digest: str) -> tuple[ReviewCase, Decision]:
        """A case to decide about, and the decision that is to be changed."""
        entry = self._entries[key]
        if entry.digest != digest:
            message = "this case has been regenerated; look at it again before you decide"
            raise InputError(message)
        if entry.rejected:
            message = "the verifier rejected this case, so nothing can be decided about it"
            raise InputError(message)
        blank = Decision(case_id=entry.case_id, case_digest=entry.digest, action="accepted")
        return entry, self._reviewed(entry).decision or blank

    def _keep(self, entry: ReviewCase, before: Decision, **changes: Any) -> Reviewed:
        """Change a decision, on the disk first; one that edits nothing is taken back."""
        store, decision = self._store(entry.case), before.model_copy(update=changes)
        if decision.action == "edited" and not decision.has_edits:
            store.withdraw(entry.case_id)
        elif decision != store.get(entry.case_id):
            if decision.has_edits:
                edited = case_digest(with_edits(entry.case, decision))
                digests = dict.fromkeys((*decision.edited_digests, edited))
                decision = decision.model_copy(update={"edited_digests": tuple(digests)})
            store.append(decision)
        self._put(entry)
        return self._reviewed(self._entries[entry.key])

    def _put(self, entry: ReviewCase) -> None:
        self.version += 1
        self._entries[entry.key] = replace(entry, version=self.version)

    def _reviewed(self, entry: ReviewCase) -> Reviewed:
        if entry.rejected:
            return Reviewed(entry, None, None)
        decision = self._store(entry.case).get(entry.case_id)
        if decision is None or decision.is_about(entry.digest):
            return Reviewed(entry, decision, None)
        return Reviewed(entry, None, decision)

    def _store(self, case: Case) -> DecisionStore:
        return self._stores[case.spec.suite, case.spec.test]


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
    on_page: frozenset[str] = frozenset()

    def announce(self, specs: Iterable[CaseSpec]) -> None:
        """Say which cases there will be; the judges of a panel share theirs."""
        case_ids = {generation_id(spec) for spec in specs if self._shows(spec)}
        if case_ids:
            self.page.announce(case_ids)

    def miss(self, spec: CaseSpec, rejected: Case | None = None) -> None:
        """Count an announced case that was not made; show the one that was `rejected`."""
        if self._shows(spec):
            self.page.end(generation_id(spec), rejected)

    def awaits(self, case: Case) -> bool:
        """Show a case of a suite on the page, and say whether it has to wait for its end.

        Who labels blind sees what is judged, and judging waits for nobody.
        """
        if not self._shows(case.spec):
            return False
        shown: Case | None = case
        if self.page is not self.board:
            try:
                shown = self.obeyed(case)
            except NoVerdictCase:
                shown = None
        self.page.end(generation_id(case.spec), shown)
        return self.page is self.board and not self.page.finalized

    def said(self, case: Case) -> tuple[HumanReview, Decision | None]:
        """What people say of a case in a word, and their decision about this very version."""
        return self.board.said(case) if case.spec.suite in self.obeying else ("", None)

    def obeyed(self, case: Case) -> Case:
        """Give the case as people decided; raises `NoVerdictCase` where they rejected it."""
        return obeyed(case, self.said(case)[1])

    def judged(self, case: Case, judgment: Judgment) -> None:
        """Keep a verdict for the page; that of blind labelling shows none."""
        if self.page is self.board and self._shows(case.spec):
            self.board.set_verdict(case, judgment)

    def _shows(self, spec: CaseSpec) -> bool:
        # A probe's case is another one changed, which is shown in its place.
        return spec.suite in self.on_page and not spec.variant
