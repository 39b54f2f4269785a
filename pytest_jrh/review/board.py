"""The state of a review: the cases made so far, what was decided about each, and who wants to know.

The engine's thread adds cases and verdicts, the page's threads decide, the session's waits for
Finalize.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from pytest_jrh.errors import InputError, Problem
from pytest_jrh.review.decisions import Decision, TurnEdit, is_editable, obeyed, with_edits
from pytest_jrh.suite.cases import generation_id
from pytest_jrh.transcript import message_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_jrh.models import Case, Verdict
    from pytest_jrh.review.decisions import DecisionStore


@dataclass(frozen=True, slots=True)
class ReviewCase:
    """A case under review, as it was made.

    `judged` holds the verdicts by judge, "" being the suite's only one.
    """

    case_id: str
    digest: str
    case: Case
    position: int
    version: int
    judged: Mapping[str, Verdict] = field(default_factory=dict)

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
class Progress:
    """How far generation and review are; `missed` counts the cases that came to nothing."""

    total: int
    made: int
    missed: int
    decided: int
    finalized: bool


class ReviewBoard:
    """The cases of a session on their way through review; every method may be called from any
    thread.

    `stores` holds the decisions of each (suite, test); several may share a file. `digest` gives the
    digest of a case (rule J2).
    """

    def __init__(
        self,
        stores: Mapping[tuple[str, str], DecisionStore],
        *,
        digest: Callable[[Case], str],
        total: int = 0,
    ) -> None:
        self._stores = dict(stores)
        self._digest = digest
        self._lock = threading.RLock()
        self._entries: dict[str, ReviewCase] = {}
        self._ids: dict[str, str] = {}
        self._version = 0
        self._total = total
        self._missed = 0
        self._final: dict[str, Decision] | None = None
        self._finalized = threading.Event()
        self._listeners: list[Callable[[], object]] = []

    def announce(self, total: int) -> None:
        """Say how many cases there will be."""
        with self._lock:
            self._total = total
            self._version += 1
        self._tell()

    def add(self, case: Case) -> None:
        """Show a case that has been made.

        Made again in another way, it takes the place of the earlier one.
        """
        case_id, digest = generation_id(case.spec), self._digest(case)
        with self._lock:
            before = self._entries.get(case_id)
            if before is not None and before.digest == digest:
                return
            self._version += 1
            position = before.position if before else len(self._entries)
            entry = ReviewCase(case_id, digest, case, position, self._version)
            self._entries[case_id] = entry
            self._ids[entry.key] = case_id
        self._tell()

    def miss(self) -> None:
        """Count an announced case that came to nothing: no case, or an error."""
        with self._lock:
            self._missed += 1
            self._version += 1
        self._tell()

    def set_verdict(self, case: Case, verdict: Verdict) -> None:
        """Keep what the judge in the case's spec said.

        Nobody sees it unasked before having decided.
        """
        with self._lock:
            entry = self._entries.get(generation_id(case.spec))
            if entry is None:
                return
            self._changed(replace(entry, judged={**entry.judged, case.spec.judge or "": verdict}))
        self._tell()

    def reviewed(self, case: Case) -> Case:
        """Give a case as it goes to the judge: as made, or with a person's edits.

        After Finalize the decisions of that moment count. Raises `NoVerdictCase` for a rejected
        case.
        """
        return obeyed(case, self.decision(case))

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
        """Whether somebody decided about another version of this case, and nobody about this one
        (rule K2).
        """
        said = self._store(case).get(generation_id(case.spec))
        return said is not None and not said.is_about(self._digest(case))

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

    @property
    def finalized(self) -> bool:
        """Whether the review has ended."""
        return self._finalized.is_set()

    def wait_finalized(self, timeout: float | None = None) -> bool:
        """Wait until the review has ended; False where `timeout` seconds passed first."""
        return self._finalized.wait(timeout)

    async def until_finalized(self) -> None:
        """Wait as `wait_finalized` does, in an event loop and without a thread for each that
        waits.
        """
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def heard() -> None:
            # The loop may have ended while another thread was telling of a change.
            with contextlib.suppress(RuntimeError):
                if self.finalized:
                    loop.call_soon_threadsafe(ended.set)

        stop = self.subscribe(heard)
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

        def changed(_: ReviewCase, decision: Decision) -> Decision:
            kept: Literal["accepted", "rejected", "edited"] = action
            if action == "accepted" and decision.has_edits:
                kept = "edited"
            return decision.model_copy(update={"action": kept, "note": note})

        return self._decide(key, digest, changed)

    def edit_turn(self, key: str, digest: str, message_index: int, content: str | None) -> Reviewed:
        """Give an assistant turn another text; None goes back to what was made."""

        def changed(entry: ReviewCase, decision: Decision) -> Decision:
            messages = entry.case.messages
            if not is_editable(messages, message_index):
                raise InputError(
                    Problem(f"message {message_index} is no assistant turn, so its text stays")
                )
            if content is not None and not content.strip():
                raise InputError(
                    Problem(f"message {message_index} would be empty; reject the case instead")
                )
            turns = {turn.message_index: turn for turn in decision.turns}
            # What a stored case already holds is no difference from it, but is one from the case as
            # first made.
            if content is None or (
                message_text(messages[message_index]) == content and message_index not in turns
            ):
                turns.pop(message_index, None)
            else:
                turns[message_index] = TurnEdit(message_index=message_index, content=content)
            kept = tuple(turns[index] for index in sorted(turns))
            return decision.model_copy(update={"turns": kept, "action": "edited"})

        return self._decide(key, digest, changed)

    def set_label(self, key: str, digest: str, expected: int) -> Reviewed:
        """Give a case another expected label, out of those that its judge can give."""

        def changed(entry: ReviewCase, decision: Decision) -> Decision:
            there = labels(entry.case)
            if expected not in there:
                listed = ", ".join(map(str, there))
                raise InputError(
                    Problem(f"{expected} is no label of this case; there are {listed}")
                )
            same = expected == entry.case.expected and decision.expected is None
            back = expected == entry.case.expected and decision.case_digest == entry.digest
            kept = None if same or back else expected
            return decision.model_copy(update={"expected": kept, "action": "edited"})

        return self._decide(key, digest, changed)

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

    def progress(self) -> Progress:
        """How far generation and review are."""
        with self._lock:
            decided = sum(self._of(entry).decision is not None for entry in self._entries.values())
            return Progress(
                self._total, len(self._entries), self._missed, decided, self._final is not None
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
        _, all_cases = self.changes()
        wanted = text.casefold()
        return tuple(
            one.entry.key
            for one in all_cases
            if any(wanted in part.casefold() for part in _texts(one))
        )

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

    def _decide(
        self, key: str, digest: str, change: Callable[[ReviewCase, Decision], Decision]
    ) -> Reviewed:
        """Change a decision, on the disk first.

        Raises `LookupError` for an unknown key, `InputError` where the case is another one by now
        or the change cannot be, and `OSError` where the disk refuses; then nothing has changed.
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
                Problem("this case has been made anew since; look at it again before you decide")
            )
        return entry

    def _changed(self, entry: ReviewCase) -> None:
        self._version += 1
        self._entries[entry.case_id] = replace(entry, version=self._version)

    def _of(self, entry: ReviewCase) -> Reviewed:
        said = self._store(entry.case).get(entry.case_id)
        if said is None or said.is_about(entry.digest):
            return Reviewed(entry, said, None)
        return Reviewed(entry, None, said)

    def _store(self, case: Case) -> DecisionStore:
        return self._stores[case.spec.suite, case.spec.test]

    def _tell(self) -> None:
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()


def labels(case: Case) -> dict[int, str]:
    """The labels that a case can have, lowest first, with what each means."""
    if case.mode == "binary":
        return {0: "rubric satisfied", 1: "rubric violated"}
    return {level.score: level.label for level in case.levels}


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
