"""The state of a review: the cases made so far, what was decided about each, and who wants to know.

The engine's thread adds cases and verdicts, the page's threads decide, the session's waits for
Finalize.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pytest_jrh.errors import InputError, Problem
from pytest_jrh.review.changes import with_action, with_label, with_turn
from pytest_jrh.review.decisions import Decision, with_edits
from pytest_jrh.review.entries import ReviewCase, Reviewed, ReviewProgress, holds
from pytest_jrh.review.page_state import PageState
from pytest_jrh.suite.ids import generation_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_jrh.models import Case, Judgment
    from pytest_jrh.review.decisions import DecisionStore


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
