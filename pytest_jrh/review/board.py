"""The state of a review: the cases made so far, what was decided about each, and who wants to know.

The engine's thread hands cases in at the `ReviewDesk` and gets them back as people decided; the
page's threads decide, the session's waits for Finalize. What a person may change of a decision is
said by pure functions.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pytest_jrh.cases.ids import generation_id
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.transcript import message_text
from pytest_jrh.store.decisions import Decision, TurnEdit, is_editable, obeyed, with_edits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_jrh.core.model import Case, CaseSpec, HumanReview, Judgment
    from pytest_jrh.store.decisions import DecisionStore


@dataclass(frozen=True, slots=True)
class ReviewCase:
    """A case under review, as it was made, or one that the verifier rejected, to look at alone.

    `judged` holds the verdicts by judge, "" being the suite's only one.
    """

    case_id: str
    digest: str
    case: Case
    position: int
    version: int
    judged: Mapping[str, Judgment] = field(default_factory=dict)

    @property
    def rejected(self) -> bool:
        """Whether the verifier rejected the case, so that nothing can be decided about it."""
        return self.case.outcome.no_case is not None

    @property
    def key(self) -> str:
        """The name of the case in addresses.

        Derived from its id, but without any character of it.
        """
        return hashlib.sha256(self.case_id.encode("utf-8", "surrogatepass")).hexdigest()[:20]


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A case with what was decided; `void` is a decision about another version of it (rule K2)."""

    entry: ReviewCase
    decision: Decision | None
    void: Decision | None

    @property
    def case(self) -> Case:
        """The case with a person's edits, also where it was then rejected."""
        return with_edits(self.entry.case, self.decision) if self.decision else self.entry.case


@dataclass(frozen=True, slots=True)
class ReviewProgress:
    """How far generation and review are; `missed` counts the cases that were not made."""

    total: int
    made: int
    missed: int
    decided: int
    finalized: bool

    @property
    def is_empty(self) -> bool:
        """Whether no case could be made, so that there is nothing to look at."""
        return bool(self.total) and self.missed == self.total

    def line(self, key: str) -> str:
        """What a terminal shows meanwhile; `key` ends it."""
        made = f"jrh: {self.made:,} of {self.total - self.missed:,} cases to review"
        return f"{made} | {self.decided:,} decided | {key} starts judging"


def labels(case: Case) -> dict[int, str]:
    """The labels that a case can have, lowest first, with what each means."""
    if case.mode == "binary":
        return {0: "rubric satisfied", 1: "rubric violated"}
    return {level.score: level.label for level in case.levels}


def holds(one: Reviewed, text: str) -> bool:
    """Whether the text is in a case's id, plan, rubric, note or transcript, in any case of
    letters.
    """
    wanted = text.casefold()
    return any(wanted in part.casefold() for part in _texts(one))


def _texts(one: Reviewed) -> tuple[str, ...]:
    case = one.case
    plan = case.outcome.plan
    note = one.decision.note if one.decision else ""
    return (
        one.entry.case_id,
        case.spec.run_id,
        case.rubric.id,
        case.rubric.instructions,
        plan.thesis if plan else "",
        note,
        *(message_text(message) for message in case.messages),
    )


def with_action(decision: Decision, action: Literal["accepted", "rejected"], note: str) -> Decision:
    """Accept or reject; accepting a case with a person's edits keeps them."""
    kept: Literal["accepted", "rejected", "edited"] = action
    if action == "accepted" and decision.has_edits:
        kept = "edited"
    return decision.model_copy(update={"action": kept, "note": note})


def with_turn(decision: Decision, case: Case, message_index: int, content: str | None) -> Decision:
    """Give an assistant turn another text; None goes back to what was made.

    Raises `InputError` for a message that is not an assistant turn, and for an empty text.
    """
    messages = case.messages
    if not is_editable(messages, message_index):
        raise InputError(
            Problem(f"message {message_index} is not an assistant turn; its text cannot be edited")
        )
    if content is not None and not content.strip():
        raise InputError(
            Problem(f"message {message_index} would be empty; reject the case instead")
        )
    turns = {turn.message_index: turn for turn in decision.turns}
    # What a stored case already holds is no difference from it, but is one from the case as
    # first made.
    unchanged = content is not None and message_text(messages[message_index]) == content
    if content is None or (unchanged and message_index not in turns):
        turns.pop(message_index, None)
    else:
        turns[message_index] = TurnEdit(message_index=message_index, content=content)
    kept = tuple(turns[index] for index in sorted(turns))
    return decision.model_copy(update={"turns": kept, "action": "edited"})


def with_label(decision: Decision, entry: ReviewCase, expected: int) -> Decision:
    """Give a case another expected label.

    Raises `InputError` for one that its judge cannot give.
    """
    there = labels(entry.case)
    if expected not in there:
        listed = ", ".join(map(str, there))
        raise InputError(
            Problem(f"{expected} is not a label of this case; must be one of {listed}")
        )
    same = expected == entry.case.expected and decision.expected is None
    back = expected == entry.case.expected and decision.case_digest == entry.digest
    kept = None if same or back else expected
    return decision.model_copy(update={"expected": kept, "action": "edited"})


class PageState:
    """A state with a version, those who want to know of changes, and a final moment.

    Every method may be called from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._version = 0
        self._finalized = threading.Event()
        self._listeners: list[Callable[[], object]] = []

    @property
    def finalized(self) -> bool:
        """Whether people have ended it."""
        return self._finalized.is_set()

    def wait_finalized(self, timeout: float | None = None) -> bool:
        """Wait until people have ended it; False where `timeout` seconds passed first."""
        return self._finalized.wait(timeout)

    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call `listener` after every change, in the thread that made it.

        Returns the way to stop that.
        """
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return stop

    def _tell(self) -> None:
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()


class ReviewBoard(PageState):
    """The cases of a session on their way through review; every method may be called from any
    thread.

    `stores` holds the decisions of each (suite, test); several may share a file. `digest` gives the
    digest of a case (rule J2).
    """

    FINISH: ClassVar = "Finalize"

    def __init__(
        self,
        stores: Mapping[tuple[str, str], DecisionStore],
        *,
        digest: Callable[[Case], str],
        total: int = 0,
    ) -> None:
        super().__init__()
        self._stores = dict(stores)
        self._digest = digest
        self._entries: dict[str, ReviewCase] = {}
        self._ids: dict[str, str] = {}
        self._total = total
        self._missed = 0
        self._final: dict[str, Decision] | None = None

    def announce(self, total: int) -> None:
        """Say how many cases there will be."""
        with self._lock:
            self._total = total
            self._version += 1
        self._tell()

    def add(self, case: Case) -> None:
        """Show a case that has been made, or that the verifier rejected.

        Made again in another way, it takes the place of the earlier one.
        """
        case_id, digest = generation_id(case.spec), self._digest(case)
        with self._lock:
            before = self._entries.get(case_id)
            position = before.position if before else len(self._entries)
            entry = ReviewCase(case_id, digest, case, position, self._version + 1)
            if before is not None and (before.digest, before.rejected) == (digest, entry.rejected):
                return
            self._version += 1
            self._entries[case_id] = entry
            self._ids[entry.key] = case_id
        self._tell()

    def miss(self) -> None:
        """Count an announced case that was not made: no case, or an error."""
        with self._lock:
            self._missed += 1
            self._version += 1
        self._tell()

    def set_verdict(self, case: Case, verdict: Judgment) -> None:
        """Keep what the judge in the case's spec decided.

        It is not shown unasked before a decision.
        """
        with self._lock:
            entry = self._entries.get(generation_id(case.spec))
            if entry is None:
                return
            self._changed(replace(entry, judged={**entry.judged, case.spec.judge or "": verdict}))
        self._tell()

    def decision(self, case: Case) -> Decision | None:
        """What was decided about this very version of a case.

        After Finalize, what had been decided by then.
        """
        case_id = generation_id(case.spec)
        digest = self._digest(case)
        with self._lock:
            if self._final is None:
                return self._store(case).valid(case_id, digest)
            final = self._final.get(case_id)
            return final if final is not None and final.is_about(digest) else None

    def is_void(self, case: Case) -> bool:
        """Whether another version of this case was decided, and this one was not (rule K2)."""
        decided = self._store(case).get(generation_id(case.spec))
        return decided is not None and not decided.is_about(self._digest(case))

    def finalize(self) -> None:
        """End the review: what is decided now is what the tests assert with.

        Later decisions are for later runs.
        """
        with self._lock:
            if self._final is None:
                # All of them: an earlier run's decision also counts for a case that is not yet
                # made.
                self._final = {
                    case_id: decision
                    for store in self._stores.values()
                    for case_id, decision in store.snapshot().items()
                }
                self._version += 1
        self._finalized.set()
        self._tell()

    async def until_finalized(self) -> None:
        """Wait as `wait_finalized` does, in an event loop and without a thread for each that
        waits.
        """
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def notified() -> None:
            # The loop may have ended while another thread was telling of a change.
            with contextlib.suppress(RuntimeError):
                if self.finalized:
                    loop.call_soon_threadsafe(ended.set)

        stop = self.subscribe(notified)
        try:
            if not self.finalized:
                await ended.wait()
        finally:
            stop()

    def decide(
        self, key: str, digest: str, action: Literal["accepted", "rejected"], *, note: str = ""
    ) -> Reviewed:
        """Accept or reject; accepting a case with a person's edits keeps them.

        See `_decide` for errors.
        """
        return self._decide(key, digest, lambda _, decision: with_action(decision, action, note))

    def edit_turn(self, key: str, digest: str, message_index: int, content: str | None) -> Reviewed:
        """Give an assistant turn another text; None goes back to what was made."""
        return self._decide(
            key,
            digest,
            lambda entry, decision: with_turn(decision, entry.case, message_index, content),
        )

    def set_label(self, key: str, digest: str, expected: int) -> Reviewed:
        """Give a case another expected label, out of those that its judge can give."""
        return self._decide(
            key, digest, lambda entry, decision: with_label(decision, entry, expected)
        )

    def withdraw(self, key: str, digest: str) -> Reviewed:
        """Take back what was decided about a case, edits included."""
        with self._lock:
            entry = self._current(key, digest)
            self._store(entry.case).withdraw(entry.case_id)
            self._changed(entry)
            after = self._of(self._entries[entry.case_id])
        self._tell()
        return after

    def get(self, key: str) -> Reviewed:
        """The case with this key; raises `LookupError`."""
        with self._lock:
            return self._of(self._entries[self._ids[key]])

    def progress(self) -> ReviewProgress:
        """How far generation and review are."""
        with self._lock:
            made = [entry for entry in self._entries.values() if not entry.rejected]
            decided = sum(self._of(entry).decision is not None for entry in made)
            return ReviewProgress(
                self._total, len(made), self._missed, decided, self._final is not None
            )

    def changes(self, since: int = 0) -> tuple[int, tuple[Reviewed, ...]]:
        """The present version, and the cases that are new or changed since an earlier one, in order
        of making.
        """
        with self._lock:
            fresh = [entry for entry in self._entries.values() if entry.version > since]
            return self._version, tuple(
                self._of(entry) for entry in sorted(fresh, key=lambda one: one.position)
            )

    def search(self, text: str) -> tuple[str, ...]:
        """The keys of the cases that hold the text, in any case of letters: in ids, plan, rubric or
        transcript.
        """
        _, shown = self.changes()
        return tuple(one.entry.key for one in shown if holds(one, text))

    def _decide(
        self, key: str, digest: str, change: Callable[[ReviewCase, Decision], Decision]
    ) -> Reviewed:
        """Change a decision, on the disk first.

        Raises `LookupError` for an unknown key, `InputError` where the case is another one by now
        or the change cannot be, and `OSError` if the write fails; then nothing has changed.
        """
        with self._lock:
            entry = self._current(key, digest)
            store = self._store(entry.case)
            before = store.valid(entry.case_id, entry.digest)
            blank = Decision(case_id=entry.case_id, case_digest=entry.digest, action="accepted")
            decision = change(entry, before or blank)
            if decision.action == "edited" and not decision.has_edits:
                store.withdraw(entry.case_id)
            elif decision != before:
                store.append(self._with_digest(entry, decision))
            self._changed(entry)
            after = self._of(self._entries[entry.case_id])
        self._tell()
        return after

    def _with_digest(self, entry: ReviewCase, decision: Decision) -> Decision:
        if not decision.has_edits:
            return decision
        edited = self._digest(with_edits(entry.case, decision))
        known = dict.fromkeys((*decision.edited_digests, edited))
        return decision.model_copy(update={"edited_digests": tuple(known)})

    def _current(self, key: str, digest: str) -> ReviewCase:
        entry = self._entries[self._ids[key]]
        if entry.digest != digest:
            raise InputError(
                Problem("this case has been regenerated; look at it again before you decide")
            )
        if entry.rejected:
            raise InputError(
                Problem("the verifier rejected this case, so nothing can be decided about it")
            )
        return entry

    def _changed(self, entry: ReviewCase) -> None:
        self._version += 1
        self._entries[entry.case_id] = replace(entry, version=self._version)

    def _of(self, entry: ReviewCase) -> Reviewed:
        if entry.rejected:
            return Reviewed(entry, None, None)
        decided = self._store(entry.case).get(entry.case_id)
        if decided is None or decided.is_about(entry.digest):
            return Reviewed(entry, decided, None)
        return Reviewed(entry, None, decided)

    def _store(self, case: Case) -> DecisionStore:
        return self._stores[case.spec.suite, case.spec.test]


@dataclass
class ReviewDesk:
    """The engine's side of a review.

    Cases of the suites `on_page` are shown on the page and wait for Finalize; those of the suites
    `obeying` follow the decisions that are on the disk, page or not. All others pass untouched.
    """

    board: ReviewBoard
    obeying: frozenset[str]
    on_page: frozenset[str] = frozenset()
    _announced: set[str] = field(default_factory=set)
    _missed: set[str] = field(default_factory=set)

    def announce(self, specs: Iterable[CaseSpec]) -> None:
        """Say which cases there will be; the judges of a panel share theirs."""
        before = len(self._announced)
        self._announced.update(generation_id(spec) for spec in specs if spec.suite in self.on_page)
        if len(self._announced) > before:
            self.board.announce(len(self._announced))

    def miss(self, spec: CaseSpec, rejected: Case | None = None) -> None:
        """Count an announced case that was not made, once; show the one that was `rejected`."""
        case_id = generation_id(spec)
        if rejected is not None and spec.suite in self.on_page:
            self.board.add(rejected)
        if spec.suite in self.on_page and case_id not in self._missed:
            self._missed.add(case_id)
            self.board.miss()

    def awaits(self, case: Case) -> bool:
        """Show a case where its suite is on the page, and say whether it has to
        wait for Finalize.
        """
        if case.spec.suite not in self.on_page:
            return False
        self.board.add(case)
        return not self.board.finalized

    def said(self, case: Case) -> tuple[HumanReview, Decision | None]:
        """What people say about a case, in a word, and their decision where it is about this very
        version.
        """
        if case.spec.suite not in self.obeying:
            return "", None
        decision = self.board.decision(case)
        if decision is not None:
            return decision.action, decision
        return ("void" if self.board.is_void(case) else "undecided"), None

    @staticmethod
    def obeyed(case: Case, decision: Decision) -> Case:
        """Give the case as it was decided; raises `NoVerdictCase` where it was rejected."""
        return obeyed(case, decision)

    def judged(self, case: Case, verdict: Judgment) -> None:
        """Keep a verdict for the page."""
        if case.spec.suite in self.on_page:
            self.board.set_verdict(case, verdict)
