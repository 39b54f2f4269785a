"""What the judges said when a baseline was written, and their prompts: a file beside it, so that a
report can show old and new side by side (rule I10).

Nothing is decided by it: a baseline without it, or one that is newer, is compared all the same.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_jrh.files import atomic_write
from pytest_jrh.gate.baseline import short
from pytest_jrh.gate.baseline_file import json_line
from pytest_jrh.judges.judge import PromptedJudge
from pytest_jrh.models import JUDGED
from pytest_jrh.redact import REDACTED
from pytest_jrh.transcript import storable

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.gate.baseline import Baseline, Comparison
    from pytest_jrh.judges.judge import SuiteJudge
    from pytest_jrh.models import CaseResult
    from pytest_jrh.redact import Redactor
    from pytest_jrh.suite.suite import Suite

FORMAT = 1
LONGEST_REASONING = 2_000
LONGEST_PROMPT = 60_000
_LARGEST = 64 * 2**20
_VERDICT = {"id": str, "judge_fingerprint": str, "reasoning": str}
_PROMPT = {"suite": str, "judge": str, "judge_fingerprint": str, "prompt": str}


@dataclass(frozen=True, slots=True)
class KeptVerdict:
    """What a judge said of a case; the fingerprint is cut as in the baseline."""

    case_id: str
    judge_fingerprint: str
    score: int | None
    reasoning: str


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """The prompt of a judge of a suite; `judge` is empty for its only one, `file` for a built-in
    prompt, and where it is read from a baseline.

    `fingerprint_with` gives the short fingerprint that the judge has with another prompt; None
    where that cannot be told from a text alone.
    """

    suite: str
    judge: str
    judge_fingerprint: str
    text: str
    file: str = ""
    fingerprint_with: Callable[[str], str] | None = field(default=None, compare=False, repr=False)

    def is_of(self, text: str, fingerprint: str) -> bool:
        """Whether this judge, with that text as its prompt, may have that fingerprint.

        What was kept without secrets or in part, or is several texts joined, cannot tell.
        """
        if text == self.text:
            return fingerprint == self.judge_fingerprint
        whole = REDACTED not in text and len(text) < LONGEST_PROMPT and not text.startswith("[")
        if self.fingerprint_with is None or not whole:
            return True
        return self.fingerprint_with(text) == fingerprint


@dataclass(frozen=True, slots=True)
class PromptChange:
    """A judge whose verdicts are compared with those of another one; `before` is the prompt of that
    one, None where it was not kept.

    `explains` is False where the fingerprints of both judges do not fit a change of the prompt
    alone: other settings have changed, or what was kept is not the prompt of that judge.
    """

    now: JudgePrompt
    before: str | None
    explains: bool = True

    @property
    def line(self) -> int:
        """The first line of the prompt that is another than before, from 1."""
        old, new = (self.before or "").splitlines(), self.now.text.splitlines()
        both = min(len(old), len(new))
        first = next((place for place in range(both) if old[place] != new[place]), both)
        return 1 if self.before is None else max(1, min(first + 1, len(new)))


@dataclass(frozen=True, slots=True)
class KeptVerdicts:
    """The file's content: verdicts by case id, prompts by the fingerprint of their judge.

    `unread` counts the lines that cannot be used; `unusable` says why the whole file cannot.
    """

    verdicts: Mapping[str, KeptVerdict] = field(default_factory=dict)
    prompts: Mapping[str, JudgePrompt] = field(default_factory=dict)
    unread: int = 0
    unusable: str = ""

    def of(self, comparison: Comparison) -> dict[str, KeptVerdict]:
        """The verdicts that a comparison compares with, by case id."""
        found = {}
        for pair in comparison.pairs:
            kept = self.verdicts.get(pair.before.case_id)
            if kept is not None and _fits(kept, pair.before.judge_fingerprint, pair.before.score):
                found[pair.before.case_id] = kept
        return found

    def changes(self, comparison: Comparison, prompts: Iterable[JudgePrompt]) -> list[PromptChange]:
        """Of the judges that are not those of the baseline, the prompts before and now, as far as
        they are known.
        """
        changes = []
        for prompt in prompts:
            earlier = {
                pair.before.judge_fingerprint
                for pair in comparison.pairs
                if (pair.now.suite, pair.now.judge) == (prompt.suite, prompt.judge)
                and not pair.same_judge
            }
            if not earlier:
                continue
            known = [self.prompts[each] for each in sorted(earlier) if each in self.prompts]
            if known:
                before = known[0]
                explains = prompt.is_of(before.text, before.judge_fingerprint)
                changes.append(PromptChange(prompt, before.text, explains))
            else:
                changes.append(PromptChange(prompt, None))
        return changes


def kept_path(baseline: Path) -> Path:
    """The file beside a baseline: `support.verdicts.jsonl` beside `support.json`."""
    return baseline.with_name(f"{baseline.stem}.verdicts.jsonl")


def judge_prompts(suite: Suite, judges: Mapping[str | None, SuiteJudge]) -> tuple[JudgePrompt, ...]:
    """The prompts of a suite's judges; those without one are left out."""
    files = {settings.name: settings.stage.prompt_path or "" for settings in suite.judges}
    return tuple(
        JudgePrompt(
            suite.name,
            name or "",
            short(judge.fingerprint),
            _joined(judge.prompts),
            files.get(name, ""),
            _fingerprint_with(judge),
        )
        for name, judge in judges.items()
        if isinstance(judge, PromptedJudge)
    )


def _fingerprint_with(judge: PromptedJudge) -> Callable[[str], str] | None:
    """How the judge's fingerprint follows from its prompt; None where it has several texts."""
    if len(judge.prompts) > 1:
        return None
    [name] = judge.prompts
    return lambda text: short(judge.with_prompt(name, text).fingerprint)


def clean_prompt(prompt: JudgePrompt, redactor: Redactor) -> JudgePrompt:
    """The prompt as it may be shown and kept: without secrets, and bounded."""
    text = storable(redactor.text(prompt.text))[0]
    return replace(prompt, text=text[:LONGEST_PROMPT])


def updated(
    before: KeptVerdicts,
    baseline: Baseline,
    results: Iterable[CaseResult],
    prompts: Iterable[JudgePrompt],
    redactor: Redactor,
) -> KeptVerdicts:
    """What is to be kept of a baseline that was just written: the new verdicts, and of the others
    those that still are in it.
    """
    now = {
        result.case_id: KeptVerdict(
            result.case_id,
            short(result.judge_fingerprint),
            result.score,
            storable(redactor.text(result.reasoning))[0][:LONGEST_REASONING],
        )
        for result in results
        if result.outcome in JUDGED
    }
    lines = baseline.cases
    verdicts = {
        case: kept
        for case, kept in {**before.verdicts, **now}.items()
        if case in lines and _fits(kept, lines[case].judge_fingerprint, lines[case].score)
    }
    used = {line.judge_fingerprint for line in lines.values()}
    known = {**before.prompts, **{prompt.judge_fingerprint: prompt for prompt in prompts}}
    return KeptVerdicts(
        verdicts,
        {fingerprint: prompt for fingerprint, prompt in known.items() if fingerprint in used},
    )


def load(path: Path) -> KeptVerdicts:
    """Read the file beside a baseline, line by line: what cannot be used is counted and left out.

    Empty where there is no such file, or with the reason where it cannot be read.
    """
    try:
        lines = _lines(path)
    except OSError as error:
        return KeptVerdicts(unusable=str(error.strerror))
    verdicts: dict[str, KeptVerdict] = {}
    prompts: dict[str, JudgePrompt] = {}
    unread = 0
    for line in lines:
        value = _object(line)
        if _has(value, _VERDICT) and "score" in value and _is_score(value["score"]):
            verdicts[value["id"]] = KeptVerdict(
                value["id"], value["judge_fingerprint"], value["score"], value["reasoning"]
            )
        elif _has(value, _PROMPT):
            fingerprint = value["judge_fingerprint"]
            text = value["prompt"][:LONGEST_PROMPT]
            prompts[fingerprint] = JudgePrompt(value["suite"], value["judge"], fingerprint, text)
        elif value.get("format") != FORMAT:
            unread += 1
    return KeptVerdicts(verdicts, prompts, unread)


def save(path: Path, kept: KeptVerdicts) -> None:
    """Write the file atomically, one verdict a line, sorted; raises `OSError` if that fails."""
    values: list[Mapping[str, Any]] = [{"format": FORMAT}]
    for _, prompt in sorted(kept.prompts.items()):
        described = {"suite": prompt.suite, "judge": prompt.judge}
        values.append(
            {**described, "judge_fingerprint": prompt.judge_fingerprint, "prompt": prompt.text}
        )
    for _, verdict in sorted(kept.verdicts.items()):
        described = {"id": verdict.case_id, "judge_fingerprint": verdict.judge_fingerprint}
        values.append({**described, "score": verdict.score, "reasoning": verdict.reasoning})
    atomic_write(path, "".join(f"{json_line(value)}\n" for value in values))


def _joined(texts: Mapping[str, str]) -> str:
    """Several texts of a judge, each under its name."""
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n\n".join(f"[{name}]\n{text}" for name, text in texts.items())


def _fits(kept: KeptVerdict, fingerprint: str, score: int | None) -> bool:
    return (kept.judge_fingerprint, kept.score) == (fingerprint, score)


def _lines(path: Path) -> Sequence[bytes]:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return ()
    if not path.is_file():
        raise OSError(errno.EINVAL, "it is not a file")
    if size > _LARGEST:
        raise OSError(errno.EFBIG, f"it is larger than {_LARGEST // 2**20} MiB")
    return [line for line in path.read_bytes().splitlines() if line.strip()]


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _has(value: Mapping[str, Any], keys: Mapping[str, type]) -> bool:
    return all(isinstance(value.get(key), kind) for key, kind in keys.items())


def _is_score(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))
