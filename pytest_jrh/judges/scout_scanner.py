"""The judge that is a scanner of Inspect Scout, which is an extra: `pip install
'pytest-jrh[scout]'`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.sections import Takes, Text
from pytest_jrh.judges.inspect_code import (
    InspectCodeJudge,
    InspectKeys,
    chat_messages,
    made,
)
from pytest_jrh.judges.judge import JudgeKind, JudgeStart
from pytest_jrh.judges.own_code import shown_path, with_file

if TYPE_CHECKING:
    from inspect_scout import Scanner, Transcript

    from pytest_jrh.core.model import Case, Mode
    from pytest_jrh.judges.judge import JudgedCase, JudgeSettings
    from pytest_jrh.judges.own_code import Scale


_KEY = "scout_scanner"


class ScannerKeys(InspectKeys):
    """The keys of a judge that is a scanner of Scout."""

    scout_scanner: Annotated[Text | None, Takes("a scanner, as file.py@name or package/name")] = (
        None
    )
    """A scanner of Inspect Scout that judges: file.py@name, with a path from the config, or
    package/name. Needs the extra `scout`, and in a binary suite `score_map`."""


@dataclass(frozen=True, slots=True)
class ScannerJudge(InspectCodeJudge):
    """A judge that is a scanner of Scout; it gets what its own loader makes of a `Transcript`."""

    scanner: Scanner[Any]
    kind: ClassVar[str] = _KEY
    what: ClassVar[str] = "scanner"

    async def given(self, judged: JudgedCase, case: Case, target: str) -> object:
        """What the scanner gives for the transcript of a case."""
        from inspect_scout._scanner.scanner import config_for_scanner

        loader = config_for_scanner(self.scanner).loader
        loaded = [piece async for piece in loader(transcript_of(judged, case, target))]
        # Scout passes over lists without a message, too.
        inputs = [piece for piece in loaded if not (isinstance(piece, list) and not piece)]
        if len(inputs) == 1:
            return await self.scanner(inputs[0])
        invalid = self.scale().invalid
        if not inputs:
            raise invalid("was not run: its filters leave nothing of the transcript")
        raise invalid(
            f"looks at one message at a time, {len(inputs)} here, and a case has one verdict",
            advice="Let it take a Transcript, or list[ChatMessage].",
        )

    def value_of(self, given: object, scale: Scale) -> tuple[object, str]:
        """The value and the explanation of a `Result`; of a list of them, the values by label."""
        from inspect_scout import Result

        if (
            isinstance(given, list)
            and given
            and all(isinstance(result, Result) for result in given)
        ):
            values = {str(result.label): result.value for result in given}
            key = self.section.value_key
            counted = next((result for result in given if str(result.label) == key), None)
            return values, _explanation(counted)
        if not isinstance(given, Result):
            raise scale.invalid(f"gave {type(given).__name__}, which is no Result")
        return given.value, _explanation(given)


def transcript_of(judged: JudgedCase, case: Case, target: str) -> Transcript:
    """A case as Scout sees one.

    Its metadata is the run's own, and beside it what Scout's `as_scorer` puts there.
    """
    from inspect_scout import Transcript

    run, run_metadata = case.run, dict(judged.metadata)
    sample = run.sample_id or run.run_id
    scout_metadata = {
        "id": sample,
        "epoch": run.epoch,
        "sample_metadata": run_metadata,
        "target": target,
    }
    messages = chat_messages(judged)
    return Transcript(
        transcript_id=run.run_id,
        task_id=str(sample),
        task_repeat=run.epoch,
        message_count=len(messages),
        metadata={**run_metadata, **scout_metadata},
        messages=messages,
    )


def _explanation(result: Any) -> str:
    return "" if result is None else result.explanation or result.answer or ""


def _build(settings: JudgeSettings, mode: Mode, instruction: str) -> ScannerJudge:
    del instruction  # the scanner gets the rubric in the transcript's metadata
    section = settings.section
    assert isinstance(section, ScannerKeys)
    spec = section.scout_scanner
    assert spec is not None
    if mode == "binary" and settings.score_map is None:
        # A scanner's `true` says "found", which is a violation or its absence.
        message = "the values of a scanner need score_map"
        hint = 'such as score_map: {"true": 1, "false": 0}, where it finds violations'
        raise InputError(Problem(message, key=f"judge.{_KEY}", hint=hint))
    try:
        import inspect_scout  # noqa: F401
    except ImportError as error:
        message = f"the judge is a scanner of Scout, which needs inspect_scout ({error})"
        hint = "pip install 'pytest-jrh[scout]'"
        raise InputError(Problem(message, key=f"judge.{_KEY}", hint=hint)) from None
    scanner, source = made(
        spec, "scanner", _KEY, lambda: _loaded(spec, section.args or {}), settings
    )
    return ScannerJudge(settings, section, shown_path(spec, "@"), source, scanner)


def _first_keys(scanner: str, mode: Mode) -> dict[str, Any]:
    score_map = {"score_map": {"true": 1, "false": 0}} if mode == "binary" else {}
    return {_KEY: scanner, **score_map}


def _loaded(spec: str, args: Mapping[str, Any]) -> Scanner[Any]:
    from inspect_ai._util.module import load_module
    from inspect_ai._util.path import add_to_syspath
    from inspect_scout._scanner.scanner import scanner_create

    file, separator, name = spec.rpartition("@")
    if not separator:
        return scanner_create(spec, dict(args))
    # Not Scout's own function for files, which drops arguments that the scanner has not.
    path = Path(file).resolve()
    with add_to_syspath(path.parent.as_posix()):
        load_module(path)
        return scanner_create(name, dict(args))


SCOUT_SCANNER = JudgeKind(
    key=_KEY,
    build=_build,
    keys=ScannerKeys,
    asks_model=False,
    with_files=lambda section, relocated: with_file(section, _KEY, "@", relocated),
    start=JudgeStart(
        keys=_first_keys,
        notes=(
            "args: {question: ...}                  # what the scanner is made with",
            "model: openai/gpt-4.1                  # as Inspect names models",
        ),
        extra="scout",
    ),
)
