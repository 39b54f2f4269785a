"""The entry of a cassette for a judge's own code: what it asked, and its verdict.

`KeptRequests.verdict` is the way in: the verdict is taken from the entry where that is enough, else
the code runs, with its requests answered from the entry or, in a recording session, sent and kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from pytest_jrh.core import frozen
from pytest_jrh.core.calls import JUDGE, Spending
from pytest_jrh.core.errors import InputError, Unscored, error_places
from pytest_jrh.core.results import Verdict
from pytest_jrh.core.skips import UNSCORED
from pytest_jrh.core.transcript import storable
from pytest_jrh.judges.judge import CodeAnswer, OwnCode
from pytest_jrh.judges.own_code import advice_on_credentials, asks_for_credentials, no_verdict
from pytest_jrh.llm.calls import Answer, Stopped
from pytest_jrh.recording.cassettes import MAKE_ROOM, RecordedCall
from pytest_jrh.recording.exchanges import (
    Exchanges,
    Halt,
    Halted,
    HttpRequest,
    changed_parts,
    changes_from,
)
from pytest_jrh.recording.recorder import HttpRecorder
from pytest_jrh.recording.tapes import Lookup, Tape

_UNFINISHED = "unfinished"
_NETWORK_ADVICE = (
    "Let it ask over HTTP by requests, httpx, aiohttp or urllib3; or set `version` on the "
    "judge, which then answers from its recorded verdict."
)
_NEW_EACH_TIME = (
    "Where it is new each time (a time, a random id, a tracing thread's own post), recording again "
    "does not help: set `version` on the judge, which then answers from its recorded verdict. "
    "Where a variable or a package of this environment has changed it, set that back."
)


Work: TypeAlias = Callable[[], Awaitable[CodeAnswer]]
"""Runs a judge's own code on a case."""


@frozen
class KeptRequests:
    """Keeps the requests of a judge's own code on the tape of its case.

    `admit` counts a request that is about to be sent, or says why it must not be; `paced` waits
    until a verdict may be asked for, and gives what is called as its first request goes out.
    """

    tape: Tape
    http: HttpRecorder
    admit: Callable[[], Halt | None]
    paced: Callable[[], Awaitable[Callable[[], object]]]

    async def verdict(self, code: OwnCode, work: Work) -> Verdict:
        """The verdict that `work` comes to, or the one that is recorded where that is enough.

        Raises `Unscored` for what work raises, and for what the recording has not and must have.
        """
        tape = self.tape
        live = tape.records and not tape.recording.planning
        if live:
            if tape.recording.stopping():
                raise Stopped
            await tape.lock(JUDGE.name)
        entry = tape.recorded(code.fingerprint)
        if entry is not None and entry.finish_reason == _UNFINISHED:
            entry = None
        answer = None
        # Where the code does not run, the verdict of another judge or case is none.
        if entry is not None and (not code.from_head or code.covers(entry.asked)):
            answer = entry.text
        tape.lookups.append(Lookup(JUDGE.name, code.fingerprint, answer is not None))
        if answer is not None and (code.from_head or tape.recording.planning):
            return self._replayed(code, answer)
        if tape.recording.planning:
            # A plan runs nobody's code.
            raise tape.missing(JUDGE.name, f"{code.who} has no recorded verdict.")
        if code.from_head and not live:
            changes, why = "", "and there is none."
            if entry is not None:
                changes = "\n".join(changed_parts(entry.asked, code.asked))
                why = "which is that of another judge or case."
            cause = f"{code.who} answers from its recorded verdict, {why}"
            raise tape.missing(JUDGE.name, cause, changes)
        return await self._run(code, work, live=live)

    def _replayed(self, code: OwnCode, answer: str) -> Verdict:
        """Make a verdict of a recorded answer; raises `Unscored` where it is none, as where the
        judge had answered so now.
        """
        # What the code sent when its verdict was recorded.
        entry = self.tape.recorded(code.fingerprint, interactions=True)
        exchanges = entry.exchanges if entry is not None else ()
        # Behind the first one there may be those of an earlier version of the code.
        self.tape.sent.is_partial |= len(exchanges) > 1
        for interaction in exchanges[:1]:
            self.tape.sent.sent(HttpRequest.of(interaction))
        if self.tape.has_sent:
            self.tape.spend(Spending(replayed=1, unpriced=1))
        try:
            fields = json.loads(answer)
            return code.verdict(CodeAnswer(fields["said"], fields["reasoning"]))
        except Unscored as trouble:
            trouble.asked = (code.fingerprint,)
            raise
        except (ValueError, LookupError, TypeError) as error:
            raise InputError(
                "this recorded verdict cannot be read",
                file=str(self.tape.file),
                hint="Restore the file from version control.",
            ) from error

    async def _run(self, code: OwnCode, work: Work, *, live: bool) -> Verdict:
        """Run the code: its requests are answered from its entry, and if `live` the others sent."""
        tape = self.tape
        entry = tape.recorded(code.fingerprint, interactions=True)
        recorded = entry.exchanges if entry is not None else ()
        has_verdict = entry is not None and entry.finish_reason != _UNFINISHED
        begins: Callable[[], object] = bool
        if live and not has_verdict:
            begins = await self.paced()
        sequence = tape.next_place()
        exchanges = self._exchanges(code, recorded, sequence, begins, live=live)
        judged: CodeAnswer | None = None
        try:
            judged = await self._judged(code, work, exchanges)
        except (Unscored, Halted) as error:
            if exchanges.halt is not None:
                raise self._halted(code, entry, exchanges.halt, error) from error
            if isinstance(error, Unscored) and UNSCORED[error.outcome].final and not error.asked:
                error.asked = (code.fingerprint,)
            raise
        finally:
            if exchanges.sent:
                tape.asked.add(JUDGE.name)
            sent, replayed = exchanges.sent, exchanges.replayed
            tape.spend(Spending(calls=sent, replayed=replayed, unpriced=sent + replayed))
            for request in exchanges.asked:
                tape.sent.sent(request)
            # Unchanged files stay as they are; a new verdict of old requests is no new recording.
            is_new = judged is not None and (code.from_head or not has_verdict)
            if live and (sent or is_new):
                self._keep(code, exchanges, sequence, judged)
        return code.verdict(judged)

    def _exchanges(
        self,
        code: OwnCode,
        recorded: Sequence[Mapping[str, Any]],
        sequence: int,
        begins: Callable[[], object],
        *,
        live: bool,
    ) -> Exchanges:
        """What answers the code's requests; `begins` is called before the first one is sent."""

        def admit() -> Halt | None:
            halt = self.admit()
            if halt is None and not exchanges.sent:
                begins()
            return halt

        def keep_so_far() -> None:
            """Keep what was answered before the judge asks again, so that a kill loses nothing."""
            if not exchanges.closed:
                # Where it cannot be written now, it cannot be at the end, which says so.
                with contextlib.suppress(Unscored):
                    self._keep(code, exchanges, sequence, None)

        loop = asyncio.get_running_loop()
        exchanges = Exchanges(
            recorded,
            live=live,
            redactor=self.tape.recording.redactor,
            admit=admit,
            changed=lambda: loop.call_soon_threadsafe(keep_so_far),
            room=self.tape.room,
        )
        return exchanges

    async def _judged(self, code: OwnCode, work: Work, exchanges: Exchanges) -> CodeAnswer:
        """What work comes to, as a replay gives it; raises `Unscored` where it is no verdict."""
        redactor = self.tape.recording.redactor
        with self.http.judging(exchanges):
            try:
                answer = await work()
                reasoning = code.verdict(answer).reasoning
            finally:
                # A key that the code has set is redacted in what comes after this.
                redactor.learn()
        if exchanges.halt is not None:
            # The judge's code has caught it.
            raise Halted
        return CodeAnswer(answer.value, redactor.of_code(storable(reasoning)[0]))

    def _keep(
        self, code: OwnCode, exchanges: Exchanges, sequence: int, judged: CodeAnswer | None
    ) -> None:
        """Write the entry, unfinished without a verdict."""
        to_keep = exchanges.kept(judged=judged is not None)
        answer = Answer("", finish_reason=_UNFINISHED)
        if judged is not None:
            fields = asdict(code.verdict(judged)) | {"said": judged.value}
            answer = Answer(json.dumps(fields, ensure_ascii=False))
        elif not to_keep:
            return
        self.tape.record(
            RecordedCall(
                stage=JUDGE.name,
                fingerprint=code.fingerprint,
                sequence=sequence,
                asked=code.asked,
                exchanges=to_keep,
                **asdict(answer),
            )
        )

    def _halted(
        self, code: OwnCode, entry: RecordedCall | None, halt: Halt, error: BaseException
    ) -> Unscored:
        """The outcome of a case whose judge was halted; `entry` was there to answer it."""
        asker = code.who
        if halt.trouble is not None:
            return halt.trouble
        if halt.why == "room":
            cause = (
                f"{asker} was stopped before a request whose answer could not be stored "
                f"({halt.what}) in {self.tape.path.parent}."
            )
            return Unscored("model_error", stage=JUDGE.name, cause=cause, advice=MAKE_ROOM)
        url = halt.what.rpartition(" ")[2]
        if asks_for_credentials(url):
            cause = f"{asker} was stopped: it looked for credentials at {url}."
            return no_verdict("model_error", cause, advice_on_credentials(), error)
        if halt.why == "network":
            return Unscored(
                "unrecorded",
                stage=JUDGE.name,
                cause=f"{asker} was stopped: {halt.what}, which no recording answers.",
                advice=_NETWORK_ADVICE,
                places=error_places(error),
            )
        assert halt.request is not None
        cause = f"{asker} sent {halt.what}, which is not recorded"
        if entry is None or not entry.exchanges:
            return self.tape.missing(JUDGE.name, f"{cause}: the case has no recorded request.")
        changes = changes_from(entry.exchanges, halt.request)
        if entry.asked != code.asked:
            cause = f"{cause}; the nearest recorded request differs."
            return self.tape.missing(JUDGE.name, cause, changes)
        return Unscored(
            "unrepeatable",
            stage=JUDGE.name,
            cause=f"{cause}, though the code and the case are as they were recorded.",
            advice=_NEW_EACH_TIME,
            difference=changes,
            cassette=str(self.tape.file),
        )
