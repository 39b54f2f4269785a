"""The entry of a cassette that holds what a judge's own code asked, and the verdict that it came
to.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.errors import Unrecorded, Unscored
from pytest_jrh.core.model import UNSCORED, Spending, Verdict
from pytest_jrh.core.text import one_line
from pytest_jrh.core.transcript import storable
from pytest_jrh.judges.judge import is_huge, offered_text
from pytest_jrh.judges.own_code import keys_replaced
from pytest_jrh.llm.calls import Answer, Stopped, digest
from pytest_jrh.recording.cassettes import RecordedCall
from pytest_jrh.recording.exchanges import Exchanges, Halt, Halted, HttpRequest
from pytest_jrh.recording.misses import halted
from pytest_jrh.recording.network import closed_to_import
from pytest_jrh.recording.tapes import Lookup

if TYPE_CHECKING:
    from pytest_jrh.judges.judge import OwnCode
    from pytest_jrh.recording.recorder import HttpRecorder
    from pytest_jrh.recording.tapes import Tape


_UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Judging:
    """One verdict that a judge's own code is to give, the `repeat`-th of its case; `label` is the
    judge in the cassette.
    """

    stage: str
    label: str
    repeat: int
    code: OwnCode

    @property
    def fingerprint(self) -> str:
        """Names the entry: one for each repeat, whatever the code is."""
        return digest({"stage": self.stage, "own code": True, "repeat": self.repeat})

    @property
    def whole_key(self) -> dict[str, Any]:
        """What a recorded verdict rests on, its judge's label included."""
        return {"model": self.label, **self.code.key}

    @property
    def parts(self) -> dict[str, Any]:
        """What the entry says of the question."""
        parts: dict[str, Any] = {"model": self.label, "parameters": dict(self.code.key)}
        return parts if self.repeat == 1 else {**parts, "repeat": self.repeat}


@dataclass(frozen=True, slots=True)
class KeptRequests:
    """Keeps the requests of a judge's own code on the tape of its case.

    `admit` counts a request that is about to be sent, or says why it must not be; `paced` waits
    until a verdict may be asked for. `later` runs a function in the engine's loop, from any thread.
    `keyless` is told which keys it got placeholders for.
    """

    tape: Tape
    http: HttpRecorder
    _: KW_ONLY
    admit: Callable[[], Halt | None]
    paced: Callable[[], Awaitable[None]]
    later: Callable[[Callable[[], None]], object]
    keyless: Callable[[Iterable[str]], None]

    async def verdict(self, judging: Judging, work: Callable[[], Awaitable[Verdict]]) -> Verdict:
        """The verdict that `work` comes to, or the one that is recorded where that is enough.

        Raises `Unscored` for what work raises, and for what the recording has not and must have.
        """
        tape = self.tape
        live = tape.records and not tape.recording.planning
        if live and tape.recording.stopping():
            raise Stopped
        if live:
            await tape.lock(judging.stage)
        entry = tape.recorded(judging.fingerprint)
        verdict = _verdict(entry)
        # Where the code does not run, the verdict of another judge or case is none.
        fits = not judging.code.from_head or _key(entry) == judging.whole_key
        tape.lookups.append(
            Lookup(
                judging.stage,
                judging.fingerprint,
                entry.answer.text if entry is not None and verdict is not None and fits else None,
            )
        )
        if tape.recording.planning:
            return self._foreseen(judging, verdict if fits else None)
        if judging.code.from_head:
            recorded_verdict = self._from_head(judging, entry, verdict, live=live)
            if recorded_verdict is not None:
                return recorded_verdict
        return await self._given(judging, work, live=live)

    def _foreseen(self, judging: Judging, verdict: Verdict | None) -> Verdict:
        """What a plan knows, which runs nobody's code."""
        if verdict is None:
            raise Unrecorded(
                stage=judging.stage,
                cause=f"{judging.code.who} has no recorded verdict.",
                difference="",
                cassette=str(self.tape.path),
            )
        return self._replayed(judging, verdict)

    def _from_head(
        self, judging: Judging, entry: RecordedCall | None, verdict: Verdict | None, *, live: bool
    ) -> Verdict | None:
        recorded_key, present_key = _key(entry), judging.whole_key
        if verdict is not None and recorded_key == present_key:
            self._note_recorded(judging)
            return self._replayed(judging, verdict)
        if live:
            return None
        difference = ""
        if verdict is None:
            why = "and there is none."
        elif recorded_key == {**present_key, **judging.code.earlier_key}:
            why = (
                "which an earlier version of pytest-jrh has recorded. It looked at the judge's "
                "function alone: whether other code and files that the judge uses have changed "
                "since is not known."
            )
        else:
            why = "which is that of another judge or case."
            lines: list[str] = []
            for name in {**recorded_key, **present_key}:
                before, after = recorded_key.get(name), present_key.get(name)
                if before != after:
                    lines += [f"-{name}: {before}", f"+{name}: {after}"]
            difference = "\n".join(lines)
        raise Unrecorded(
            stage=judging.stage,
            cause=f"{judging.code.who} answers from its recorded verdict, {why}",
            difference=difference,
            cassette=str(self.tape.path),
        )

    def _note_recorded(self, judging: Judging) -> None:
        """Note what the code sent when its verdict was recorded."""
        entry = self.tape.recorded(judging.fingerprint, interactions=True)
        requests = [interaction["request"] for interaction in entry.interactions] if entry else []
        # Behind the first one there may be those of an earlier version of the code.
        self.tape.sent.is_partial |= len(requests) > 1
        for request in requests[:1]:
            uri, body = request["uri"], request["body"] or ""
            self.tape.sent.sent(HttpRequest(request["method"], uri, body))

    def _replayed(self, judging: Judging, verdict: Verdict) -> Verdict:
        """Give the recorded verdict in place of the code's; raises `Unscored` for one that is not
        on the scale, which the code's own would not have been either.
        """
        self.tape.spending += Spending(replayed=1, unpriced=1)
        if verdict.score in judging.code.scores:
            return verdict
        score = "a huge number" if is_huge(verdict.score) else verdict.score
        raise Unscored(
            "invalid_response",
            stage=judging.stage,
            cause=f"{judging.code.who} answers from its recorded verdict, whose score is {score}; "
            f"it must be {offered_text(judging.code.scores)}.",
            asked=(judging.fingerprint,),
            advice=f"Restore {one_line(str(self.tape.path))}, or let --jrh-retry-unscored in a "
            "recording mode judge the case again.",
            happened="the judge gave no verdict",
        )

    async def _given(
        self, judging: Judging, work: Callable[[], Awaitable[Verdict]], *, live: bool
    ) -> Verdict:
        tape = self.tape
        entry = tape.recorded(judging.fingerprint, interactions=True)
        recorded = entry.interactions if entry is not None else ()
        interrupted = tape.interrupted(judging.fingerprint) if live else None
        if interrupted is not None:
            new = [
                interaction
                for interaction in interrupted.interactions
                if interaction not in recorded
            ]
            recorded = (*recorded, *new)
        if live and _verdict(entry) is None:
            await self.paced()
        sequence = tape.next_place()
        exchanges = Exchanges(
            recorded,
            live=live,
            redactor=tape.recording.redactor,
            admit=self.admit,
            changed=lambda: self.later(lambda: self._keep_so_far(judging, exchanges, sequence)),
            room=tape.room,
        )
        verdict: Verdict | None = None
        try:
            with self.http.judging(exchanges), self._outcomes(judging, exchanges, recorded):
                worked = self._worked(work) if live else self._worked_without_keys(work)
                scrubbed = self._scrubbed(await worked)
            verdict = scrubbed
        finally:
            tape.spending += Spending(
                calls=exchanges.sent,
                replayed=exchanges.replayed,
                unpriced=exchanges.sent + exchanges.replayed,
            )
            for request in exchanges.asked:
                tape.sent.sent(request)
            # Unchanged files stay as they are; a new verdict of old requests is no new recording.
            stale = judging.code.from_head or entry is None or _verdict(entry) is None
            if live and (exchanges.sent or (verdict is not None and stale)):
                self._keep(judging, exchanges, sequence, verdict)
        return verdict

    async def _worked(self, work: Callable[[], Awaitable[Verdict]]) -> Verdict:
        try:
            return await work()
        finally:
            # What it has raised or said is redacted after this.
            self.tape.recording.redactor.learn(os.environ)

    async def _worked_without_keys(self, work: Callable[[], Awaitable[Verdict]]) -> Verdict:
        with keys_replaced() as names:
            try:
                return await self._worked(work)
            finally:
                if names:
                    self.keyless(names)

    @contextlib.contextmanager
    def _outcomes(
        self, judging: Judging, exchanges: Exchanges, recorded: tuple[Mapping[str, Any], ...]
    ) -> Iterator[None]:
        """Let a halt come first, whatever the judge's code has made of it."""
        error: BaseException | None = None
        try:
            yield
        except Unscored as trouble:
            if exchanges.halt is None:
                if UNSCORED[trouble.outcome].final and not trouble.asked:
                    trouble.asked = (judging.fingerprint,)
                raise
            error = trouble
        except Halted as halt:
            error = halt
            if exchanges.halt is None:
                raise
        if exchanges.halt is None:
            return
        tape = self.tape
        raise halted(
            exchanges.halt,
            stage=judging.stage,
            asker=judging.code.who,
            recorded=recorded,
            cassette=tape.path,
            closed=tape.closed,
            error=error,
        ) from error

    def _keep_so_far(self, judging: Judging, exchanges: Exchanges, sequence: int) -> None:
        """Keep what has been answered before the judge asks again, so that a kill loses nothing."""
        if not exchanges.closed:
            # Where it cannot be written now, it cannot be at the end, which says so.
            with contextlib.suppress(Unscored):
                self._keep(judging, exchanges, sequence, None)

    def _keep(
        self, judging: Judging, exchanges: Exchanges, sequence: int, verdict: Verdict | None
    ) -> None:
        fields = {} if verdict is None else {"score": verdict.score, "reasoning": verdict.reasoning}
        answer = Answer(
            json.dumps(fields, ensure_ascii=False) if fields else "",
            finish_reason="stop" if fields else _UNFINISHED,
        )
        self.tape.record(
            RecordedCall(
                judging.fingerprint,
                judging.stage,
                judging.parts,
                answer,
                sequence,
                exchanges.kept(judged=verdict is not None),
            )
        )

    def _scrubbed(self, verdict: Verdict) -> Verdict:
        """The verdict as a replay gives it."""
        reasoning = self.tape.recording.redactor.of_code(storable(verdict.reasoning)[0])
        return Verdict(verdict.score, reasoning)


@contextlib.contextmanager
def loading_for_replay() -> Iterator[tuple[Mapping[str, None], Mapping[str, None]]]:
    """Let the module of a judge's code be imported without the keys that it looks for and without
    a network; gives the names of these keys, and what it tried to do with the network.
    """
    with closed_to_import() as tried, keys_replaced() as names:
        yield names, tried


def _key(entry: RecordedCall | None) -> Mapping[str, Any]:
    """What the verdict of an entry rests on: the judge's label and its key."""
    if entry is None:
        return {}
    return {"model": entry.parts.get("model"), **(entry.parts.get("parameters") or {})}


def _verdict(entry: RecordedCall | None) -> Verdict | None:
    """The verdict of an entry; None where its judge has not come to one."""
    if entry is None or entry.answer.finish_reason == _UNFINISHED:
        return None
    try:
        fields = json.loads(entry.answer.text)
        score, reasoning = fields["score"], fields["reasoning"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if type(score) is not int or not isinstance(reasoning, str):
        return None
    return Verdict(score, reasoning)
