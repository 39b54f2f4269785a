"""The tapes that a session's calls are kept on: one per case and stage of work, over its cassette.

A tape answers from its cassette, and records what it does not hold, in step with every other
process that records into the same folder. A call that several cases make alike is made by one of
them, and the others copy its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from pathlib import Path

from pytest_jrh.core import frozen, shortened, storable
from pytest_jrh.core.calls import JUDGE, STAGES, RecordMode, Spending, StageModel
from pytest_jrh.core.cases import Unscored
from pytest_jrh.core.files import atomic_write
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.transcript import message_text
from pytest_jrh.llm.calls import UNUSABLE, Answer, Attempts, CallRequest, Exchange, Needs, Stopped
from pytest_jrh.llm.limits import EarlyStop, held
from pytest_jrh.recording.cassettes import (
    Cassette,
    RecordedCall,
    cassette_file,
    lock_file,
    room_for,
    snapshot_change,
    writing,
)
from pytest_jrh.recording.exchanges import HttpRequest, changed_parts
from pytest_jrh.recording.recorder import HttpRecorder
from pytest_jrh.recording.shown import SentTexts, is_cut

# About two lines of a terminal.
_LONGEST_LINE = 160
_NO_CALL = "no call was made, because its answer could not be stored under {}"

_RECORD_OR_UNDO = "Record the call (with the command after `next` at the end), or undo the change."
_UNUSABLE_NOW = "The recorded answer does not fit the present `verdict`, `score_map` and rubric"
_CUT = (
    "{}: the server of {} read far fewer tokens than were sent, so it cut prompts; set a "
    "larger window in `params`, such as {{num_ctx: 32768}} for Ollama."
)


@frozen
class Lookup:
    """One call that a case has looked up, and whether it `is_recorded`."""

    stage: str
    fingerprint: str
    is_recorded: bool


@frozen
class Recording:
    """How the calls of a session are answered, common to all of its tapes.

    `live` asks models, and is None where nothing may be asked; `http` is the session's patch, None
    for clients that do not speak HTTP through it. No call is begun once `stopping` answers True.
    `session` is the same for all processes of a session. While `planning` nothing is asked, and
    what is forgotten to be asked again stays on the disk. `tell` takes what the user should know.
    With `one_cassette` what cases record is gathered at the end of the session.
    """

    redactor: Redactor
    live: Exchange | None
    http: HttpRecorder | None
    stopping: Callable[[], bool]
    session: str
    stops: EarlyStop
    planning: bool
    tell: Callable[[str], None]
    one_cassette: bool


@dataclass(eq=False)
class Tape:
    """The `Exchange` of one case: answers from its cassette, and records what it does not hold.

    A lock is held from the first call to be made until the tape is closed, and the cassette read
    once more after taking it, so that two processes never pay for the same call. `case`
    is the case's id. A `shared` one is asked for by several cases, of which only the first of a
    session records it anew. Calls that are recorded anew take the place of the old ones as their
    answers come, and what the case no longer asks goes when it has come to its end.
    What it does not hold is answered from a `former` cassette that does, which stays as it is.
    """

    folder: Path
    path: Path
    mode: RecordMode
    recording: Recording
    _: KW_ONLY
    case: str
    shared: bool
    former: Callable[[], Sequence[Path]]
    needs: Callable[[], Needs]

    def __post_init__(self) -> None:
        path, recording = self.path, self.recording
        self.file = self.answered_from = cassette_file(path, shared=recording.one_cassette)
        self.asked = set[str]()
        self._lock_file = lock_file(self.folder, path)
        self._locks = self._lock_file.parent
        # Says which session has recorded the cassette anew, for the others of its cases that ask
        # for it.
        self._mark = self._lock_file.with_suffix(".session")
        self.spending: dict[str, Spending] = {}
        self.name = f"{path.stem.rpartition('.')[2]} {self._lock_file.stem[:12]}"
        self.lookups: list[Lookup] = []
        self.sent = SentTexts(recording.redactor.of_code)
        self._anew = self._starts_anew
        self._made = set[str]()
        self._cassette = Cassette.load(path)
        self.was_complete = self._cassette.complete and not self._anew
        self._renewed = set[str]()
        self._tries = False
        self._sequence = 0
        self._resources = contextlib.AsyncExitStack()
        self._locking = asyncio.Lock()
        self._locked = False

    @property
    def _starts_anew(self) -> bool:
        """Whether its calls are to be asked anew: another case of the session may have done so."""
        if self.mode != "all" or not self.shared or not self._mark.exists():
            return self.mode == "all"
        return self._mark.read_text(encoding="utf-8") != self.recording.session

    @property
    def closed(self) -> bool:
        """Whether the cassette is complete, and mode `once` adds nothing to it."""
        return self.mode == "once" and self.was_complete

    @property
    def records(self) -> bool:
        """Whether the record mode lets a missing call be made."""
        return self.mode != "none" and not self.closed

    def recorded(self, fingerprint: str, *, interactions: bool = False) -> RecordedCall | None:
        """The recorded call with this fingerprint; None where it is to be recorded anew."""
        cassette = self._cassette
        if interactions and not self._locked and not self._anew:
            cassette = Cassette.load(self.path, interactions=True)
        entry = cassette.find(fingerprint)
        if entry is None or (self._anew and entry.fingerprint not in self._made):
            return None
        return entry

    def _former_call(self, fingerprint: str) -> RecordedCall | None:
        """The call in a cassette of before; None where it is to be asked anew."""
        if self._anew or fingerprint in self._renewed:
            return None
        for path in self.former():
            if (entry := Cassette.load(path).find(fingerprint)) is not None:
                self.answered_from = cassette_file(path, shared=self.recording.one_cassette)
                return entry
        return None

    def record(self, entry: RecordedCall) -> None:
        """Keep a call, in place of the one with its fingerprint; the lock has to be held."""
        earlier = self._cassette.entries.get(entry.fingerprint)
        if earlier is not None and (change := snapshot_change(earlier, entry)):
            self.recording.tell(change)
        self._cassette.entries[entry.fingerprint] = entry
        self._made.add(entry.fingerprint)
        # Until the case comes to its end with the new call, `once` must be able to resume it.
        self._cassette.complete = False
        self._save(entry.stage)

    def next_place(self) -> int:
        """The place of the next call in the case's own order."""
        self._sequence += 1
        return self._sequence

    async def __aenter__(self) -> Tape:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._resources.aclose()

    async def __call__(self, request: CallRequest) -> Answer:
        is_judge = request.stage.stage == JUDGE.name
        if is_judge:
            self.sent.asked(request.messages)
        answer = await self._answer(request)
        tokens = answer.usage.input_tokens
        if is_cut(request.messages, tokens):
            if is_judge:
                self.sent.read = tokens
            else:
                self.recording.tell(_CUT.format(request.stage.stage, request.stage.model))
        return answer

    async def _answer(self, request: CallRequest) -> Answer:
        sequence, stage = self.next_place(), STAGES.get(request.stage.stage)
        # All cases of the run make this call: it summarizes the run before any edit.
        is_shared = stage is not None and sequence <= stage.shared_calls
        # The name under which the call counts, which for others is the cassette's.
        holder = f"shared {request.fingerprint[:12]}" if is_shared else self.name
        entry = self.recorded(request.fingerprint) or self._former_call(request.fingerprint)
        may_ask = self.recording.live is not None and self.records and not self._tries
        if entry is None and may_ask:
            await self.lock(request.stage.stage)
            entry = self.recorded(request.fingerprint)
            if entry is None:
                record = self._record_shared if is_shared else self._record
                return await record(request, sequence, holder)
        self.lookups.append(Lookup(request.stage.stage, request.fingerprint, entry is not None))
        if entry is None:
            raise self._unrecorded(request)
        return self._replayed(entry.answer, holder)

    def _replayed(self, answer: Answer, holder: str) -> Answer:
        self.spend(replace(_spent(answer), replayed=1), holder)
        return answer

    def spend(self, spending: Spending, name: str = "") -> None:
        """Count what calls took, under a name, else the cassette's."""
        name = name or self.name
        self.spending[name] = self.spending.get(name, Spending()) + spending

    @property
    def has_calls(self) -> bool:
        """Whether any call is recorded."""
        return bool(self._made if self._anew else self._cassette.entries)

    @property
    def has_sent(self) -> bool:
        """Whether anything was sent when what is recorded was: a judge's code may ask nobody."""
        return any(entry.interactions for entry in self._cassette.entries.values())

    @contextlib.contextmanager
    def only_replaying(self) -> Iterator[list[Lookup]]:
        """Make no call, and give what was looked up, of which the tape then knows nothing."""
        state = self.spending.copy(), self.lookups, self._sequence
        lookups: list[Lookup] = []
        self.lookups, self._tries = lookups, True
        try:
            yield lookups
        finally:
            self._tries = False
            self.spending, self.lookups, self._sequence = state

    @property
    def position(self) -> tuple[int, int]:
        """How many calls were looked up, and how many were asked for in all."""
        return len(self.lookups), self._sequence

    async def forget(self, fingerprints: Sequence[str], start: tuple[int, int]) -> bool:
        """Drop recorded calls, so that they are asked again; False where they are not all old
        recordings.

        For answers that were recorded and cannot be used, when the user asks to try again. The work
        then begins anew on this tape, at the position where it had begun; what it asks again is no
        old recording any more, so the same call is never renewed twice.
        """
        replayed = {lookup.fingerprint for lookup in self.lookups if lookup.is_recorded}
        asks = self.recording.live is not None or self.recording.planning
        are_old = bool(fingerprints) and replayed.issuperset(fingerprints)
        if not asks or not are_old or self.mode == "none":
            return False
        known = self._cassette
        if not self.recording.planning:
            await self.lock("retry")
        self._renewed.update(fingerprints)
        del self.lookups[start[0] :]
        self._sequence = start[1]
        for fingerprint in fingerprints:
            entry, old = self._cassette.find(fingerprint), known.find(fingerprint)
            # Another case that shares the call may have asked again meanwhile.
            if entry is not None and old is not None and entry.answer == old.answer:
                del self._cassette.entries[entry.fingerprint]
        self._cassette.complete = self.was_complete = False
        return True

    async def finish(self) -> None:
        """Mark the cassette as complete: the case came to its end with the calls that it holds.

        Raises `Unscored` where the file cannot be written.
        """
        may_keep = self.records and (self._locked or self.recording.live is not None)
        if self._cassette.complete or not self.has_calls or not may_keep:
            return
        await self.lock("finish")
        if self._anew:
            for fingerprint in self._cassette.entries.keys() - self._made:
                del self._cassette.entries[fingerprint]
        if not self._cassette.complete:
            self._cassette.complete = True
            self._save("finish")

    def usable(self, stage: StageModel) -> None:
        """Take note that a stage gave an answer in its form."""
        for asked_stage in self._asked_as(stage.stage):
            self.recording.stops.usable(asked_stage)

    def failed(self, trouble: Unscored) -> None:
        """Take note of what the case ended with, where other cases may meet it, too."""
        trouble.cause = self.recording.redactor.of_code(trouble.cause)
        if trouble.alike:
            for stage in self._asked_as(trouble.stage):
                self.recording.stops.ended(stage, self.case, trouble)

    def _asked_as(self, name: str) -> list[StageModel]:
        """The stage of this name that was asked now; none where its answers are recorded."""
        if name not in self.asked:
            return []
        return [stage for group in self.needs() for stage in group if stage.stage == name][:1]

    async def _record_shared(self, request: CallRequest, sequence: int, holder: str) -> Answer:
        """Record a call that other cases make too, unless one of them has its answer already: a
        pointer, which is no cassette, names the cassette that holds it.
        """
        fingerprint = request.fingerprint
        async with contextlib.AsyncExitStack() as turns:
            pointer = self._locks / f"{fingerprint[:32]}.shared"
            await self._hold(turns, pointer.with_suffix(".lock"), request.stage.stage)
            entry = None
            if pointer.exists():
                session, _, cassette = pointer.read_text(encoding="utf-8").partition("\n")
                path = self.folder / cassette
                # Where it is to be recorded anew, a pointer of an earlier session does not count.
                anew = self.mode == "all" or fingerprint in self._renewed
                is_former = anew and session != self.recording.session
                if path != self.path and not is_former:
                    entry = Cassette.load(path, interactions=True).entries.get(fingerprint)
            if entry is None:
                cassette = self.path.relative_to(self.folder).as_posix()
                text = f"{self.recording.session}\n{cassette}"
                # Before the call is made, so that a kill loses nothing.
                with writing(request.stage.stage, _NO_CALL.format(self._locks)):
                    atomic_write(pointer, text)
                return await self._record(request, sequence, holder)
            self.record(entry.model_copy(update={"sequence": sequence}))
        return self._replayed(entry.answer, holder)

    async def _record(self, request: CallRequest, sequence: int, holder: str) -> Answer:
        live = self.recording.live
        assert live is not None
        if self.recording.stopping():
            raise Stopped
        http, attempts = self.recording.http, Attempts()
        with contextlib.ExitStack() as stack:
            # An answer that is paid for and cannot be kept would be paid for again.
            with writing(request.stage.stage, _NO_CALL.format(self.path.parent)):
                prompt = json.dumps([*map(dict, request.messages)])
                stack.enter_context(self.room(len(prompt)))
            exchanges = []
            if http is not None:
                exchanges = stack.enter_context(http.recording())
            self.asked.add(request.stage.stage)
            try:
                request = replace(request, case=self.case, attempts=attempts, needs=self.needs())
                # As a replay will give it, so that a secret in it makes no difference later.
                answer: Answer = self.recording.redactor.value(storable(await live(request))[0])
            except Unscored as trouble:
                if trouble.keyless:
                    # As on a fork: whoever has a key is to record it, which the command of this
                    # outcome does.
                    raise self._unrecorded(request, f"{trouble.cause} ") from trouble
                raise
            finally:
                # Also where no answer came: what was sent was asked, and may be billed.
                self.spend(Spending(calls=attempts.sent, lost=attempts.lost), holder)
        scrubbed = replace(request, messages=self.recording.redactor.value(request.messages))
        entry = RecordedCall(
            stage=request.stage.stage,
            fingerprint=request.fingerprint,
            scrubbed_fingerprint=scrubbed.fingerprint if scrubbed != request else None,
            sequence=sequence,
            asked=request.parts,
            exchanges=tuple(exchanges[-1:]),
            **asdict(answer),
        )
        spent = _spent(answer)
        # A client of the project's own counts no attempts.
        self.spend(replace(spent, calls=int(not attempts.sent), paid=spent.cost), holder)
        self.record(entry)
        return answer

    def room(self, answers: int) -> contextlib.AbstractContextManager[None]:
        """Keep room for the answer to a request of so many bytes; raises `OSError` without any."""
        return room_for(answers, len(self._cassette.dump()), self._locks)

    async def lock(self, stage: str) -> None:
        """Keep all others from recording into the cassette, and read what they have recorded."""
        async with self._locking:
            if self._locked:
                return
            await self._hold(self._resources, self._lock_file, stage)
            # Another case of the session may have recorded it in the meantime.
            self._anew = self._starts_anew
            self._cassette = Cassette.load(self.path, interactions=True)
            self._locked = True

    def _save(self, stage: str) -> None:
        with writing(stage, f"an answer came, but could not be saved to {self.path}"):
            self._cassette.save()
            if self.shared and self.mode == "all":
                atomic_write(self._mark, self.recording.session)

    async def _hold(self, resources: contextlib.AsyncExitStack, lock: Path, stage: str) -> None:
        with writing(stage, _NO_CALL.format(self.folder)):
            await resources.enter_async_context(held(lock, self.recording.stopping))

    def _unrecorded(self, request: CallRequest, why: str = "") -> Unscored:
        """The outcome of a call that is not recorded; `why` goes before the cause, and ends in a
        space.
        """
        cassette, stage = Cassette.load(self.path, interactions=True), request.stage.stage
        parts = request.parts

        def likeness(entry: RecordedCall) -> tuple[int, int]:
            in_common = set(entry.asked.get("messages", ())).intersection(parts["messages"])
            return len(in_common), sum(entry.asked.get(name) == parts[name] for name in parts)

        # The recorded call of the same stage that has the most in common with the request.
        same_stage = [entry for entry in cassette.entries.values() if entry.stage == stage]
        entry = max(same_stage, key=likeness, default=None)
        cause, changes, reason = "The case has no recording.", "", ""
        if entry is not None:
            changes = difference(entry, request, redact=self.recording.redactor.text)
            cause = f"The call is not in the cassette; the nearest recorded {stage} call differs."
            if changes.startswith("repeat:"):
                # As where its first answer could not be read before.
                reason, changes = f"repeat {request.repeat} was never recorded", ""
                cause = "Only an earlier repeat is recorded."
        elif cassette.entries:
            cause = f"The cassette has no {stage} call."
        asked_last = message_text(request.messages[-1])
        if asked_last.startswith(UNUSABLE):
            cause = f"{_UNUSABLE_NOW}: {asked_last.removeprefix(UNUSABLE).splitlines()[0]}"
            changes = ""
        trouble = self.missing(stage, cause, changes, why)
        trouble.reason = reason
        return trouble

    def missing(self, stage: str, cause: str, changes: str = "", why: str = "") -> Unscored:
        """The outcome of what is not recorded; `changes` from the nearest recording to it."""
        if self.closed:
            closed = "the cassette is complete, and mode `once` does not add to it: "
            cause = closed + cause[0].lower() + cause[1:]
        return Unscored(
            "unrecorded",
            stage=stage,
            cause=why + cause,
            advice=_RECORD_OR_UNDO if changes else "",
            difference=changes,
            cassette=str(self.file),
        )


def _spent(answer: Answer) -> Spending:
    """What an answer took, whenever that was paid."""
    return Spending(usage=answer.usage, cost=answer.cost or 0.0, unpriced=int(answer.cost is None))


def difference(
    entry: RecordedCall, request: CallRequest, *, redact: Callable[[str], str] = str
) -> str:
    """A short text that says in which parts a request differs from a recorded call.

    `redact` takes secrets out of the request, as they are out of the recording.
    """
    lines = []
    recorded, parts = {"repeat": 1, **entry.asked}, {"repeat": 1, **request.parts}
    digests = recorded.pop("messages", [])
    # Whatever the provider's wire format.
    texts: list[str] = []
    for interaction in entry.exchanges:
        texts += HttpRequest.of(interaction).parts.values()
    for number, message_digest in enumerate(parts.pop("messages")):
        if message_digest not in digests[number : number + 1]:
            message = request.messages[number]
            lines.append(f"message {number + 1} ({message['role']}):")
            lines += first_change(texts, redact(message_text(message)))
    if len(digests) > len(request.messages):
        lines.append(f"messages: {len(digests)} recorded, {len(request.messages)} now")
    return "\n".join([*lines, *changed_parts(recorded, parts)])


def first_change(recorded: Sequence[str], text: str) -> list[str]:
    """The first line that a text has not of the recorded one that it has most in common with, and
    the first that is new, each cut to a length.
    """
    if not recorded:
        return ["(differs; the recording has no HTTP request to compare with)"]
    asked_lines = dict.fromkeys(text.splitlines())
    closest = max(recorded, key=lambda old: len(asked_lines.keys() & old.splitlines()))
    recorded_lines = dict.fromkeys(closest.splitlines())
    gone = [f"-{line}" for line in recorded_lines if line not in asked_lines]
    added = [f"+{line}" for line in asked_lines if line not in recorded_lines]
    return [shortened(line, _LONGEST_LINE) for line in (*gone[:1], *added[:1])]
