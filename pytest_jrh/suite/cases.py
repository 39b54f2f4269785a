"""From a suite and its runs to case specs, and every name that a case goes by.

All ids derive from the spec alone, so they are the same in every process and every session. Parts
are percent-escaped, which is injective; what is too long ends in a digest, introduced by a `~`
that escaping never produces. File names add a digest where letter case carries meaning, because
some file systems ignore it.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from pytest_jrh.kinds import KINDS
from pytest_jrh.kinds.kind import Subject
from pytest_jrh.models import CaseSpec, Label, RunSummary
from pytest_jrh.suite.probing.drawing import with_probes
from pytest_jrh.suite.suite import Suite

CASES_FILE = "agent_perturbations.jsonl"
REJECTED_FILE = "rejected_cases.jsonl"
"""The file with the made cases of a folder, of all tests that share it (rule H1)."""
_SAFE = "@+="
_LONGEST_PART = 64
_LONGEST_JUDGE = 32
_LONGEST_IN_STEM = 36
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?|.*\.")
_CASSETTE_NAME = re.compile(r"(.+)\.e\d+\..+", re.DOTALL)
T = TypeVar("T")


def expand(
    suite: Suite,
    runs: Sequence[RunSummary],
    labels: Mapping[tuple[str, str, int], Label] | None = None,
) -> Iterator[CaseSpec]:
    """Yield the suite's specs in collection order: test, rubric, run, target score, variant, judge
    (rules D8, E4, S1).

    `labels` are those of runs as they are, by rubric id, run id and epoch (rule N1).
    """
    return with_probes(suite, _of_runs(suite, runs, labels or {}))


def _of_runs(
    suite: Suite, runs: Sequence[RunSummary], labels: Mapping[tuple[str, str, int], Label]
) -> Iterator[CaseSpec]:
    labelled = {(run_id, epoch) for _, run_id, epoch in labels}
    for test in suite.tests:
        kind = KINDS[test.name]
        eligible = [run for run in runs if not kind.natural or (run.run_id, run.epoch) in labelled]
        draw = stable_sample if suite.source.sampling == "stable" else sample
        sampled = draw(eligible, suite.source.sample_num, suite.source.sampling_seed)
        judges = [judge.name for judge in suite.judges] if test.evaluate else [None]
        for rubric in suite.rubrics:
            for run in sampled:
                label = labels.get((rubric.id, run.run_id, run.epoch))
                for planned in kind.cases(Subject(test.targets[rubric.id], label)):
                    for judge in judges:
                        yield CaseSpec(
                            suite.name,
                            test.name,
                            rubric.id,
                            run.run_id,
                            run.epoch,
                            planned.target_score,
                            judge,
                            run.skip_reason or planned.skip_reason,
                            cluster=run.cluster,
                        )


def sample(runs: Sequence[T], number: int | None, seed: int) -> list[T]:
    """Pick the runs that RAND's harness picks for this number and seed, in log order (rule A9)."""
    if number is None or number <= 0 or number >= len(runs):
        return list(runs)
    picked = sorted(random.Random(seed).sample(range(len(runs)), number))  # noqa: S311 - reproducible, not secret
    return [runs[index] for index in picked]


def stable_sample(runs: Sequence[RunSummary], number: int | None, seed: int) -> list[RunSummary]:
    """Pick the runs whose ids have the smallest digests with this seed, in log order (rule A9).

    Each run has the same chance, whatever others there are: a run that is added takes the place of
    one at most, and a greater number picks the same runs and more.
    """
    if number is None or number <= 0 or number >= len(runs):
        return list(runs)

    def digest(index: int) -> str:
        run = runs[index]
        return _digest(repr((seed, run.run_id, run.epoch)), 64)

    return [runs[index] for index in sorted(sorted(range(len(runs)), key=digest)[:number])]


# The same few ids go into every name of every case.
@lru_cache(maxsize=4096)
def node_part(text: str, longest: int = _LONGEST_PART, *, escape: str = "~") -> str:
    """Make a part of an id safe to stand between `::` and `[`, distinct for distinct texts.

    `escape` are further characters to write as escapes.
    """
    escaped = quote(text, safe=_SAFE, errors="surrogatepass")
    for char in escape:
        escaped = escaped.replace(char, f"%{ord(char):02X}")
    if escaped in ("", ".", ".."):
        return f"~{escaped.replace('.', '%2E')}"
    if len(escaped) <= longest:
        return escaped
    return f"{escaped[: longest - 20]}~{_digest(text, 16)}"


@lru_cache(maxsize=4096)
def file_part(text: str, longest: int = _LONGEST_PART, *, escape: str = "~") -> str:
    """Make a part of an id safe as a file name, distinct even where letter case is ignored."""
    part = node_part(text, longest, escape=escape)
    if part.startswith("."):
        part = f"%2E{part[1:]}"
    ambiguous = re.sub(r"%[0-9A-F]{2}", "", part) != re.sub(r"%[0-9A-F]{2}", "", part).lower()
    # Windows takes `nul.txt`, and whatever else follows the dot, for the device `nul`.
    reserved = _RESERVED.fullmatch(part)
    kept = part.replace(".", "_") if reserved else part
    return f"{kept}~{_digest(text, 8)}" if ambiguous or reserved else part


def case_name(spec: CaseSpec) -> str:
    """The last part of the node id: `RUN[eEPOCH]`, with `-score_N`, `-VARIANT` and `-JUDGE` where
    they apply (rules I2, S1).
    """
    return f"{node_part(spec.run_id)}[{'-'.join([*_key(spec), *_judge(spec)])}]"


def case_id(spec: CaseSpec) -> str:
    """The case's id: key in every report and in the baseline."""
    return f"{_prefix(spec)}::{case_name(spec)}"


def generation_id(spec: CaseSpec) -> str:
    """The id of the case without its judge: several judges look at one made case."""
    return f"{_prefix(spec)}::{node_part(spec.run_id)}[{'-'.join(_key(spec))}]"


def perturbed_idx(spec: CaseSpec) -> str:
    """The stable row id of rule H3."""
    return f"agent_{_digest(generation_id(spec), 8)}"


def artifact_stem(spec: CaseSpec) -> str:
    """The stem of the debug bundle's file names (rule H1)."""
    stem = f"{spec.test}__{_stem_part(spec.run_id)}_e{spec.epoch}__{_stem_part(spec.rubric_id)}"
    return stem if spec.target_score is None else f"{stem}__score_{spec.target_score}"


def cassette_path(cassette_dir: Path, spec: CaseSpec, *, judging: bool) -> Path:
    """Where the calls of a case's generation, or of its judge, are recorded (rule G2)."""
    what = f"judge-{_judge_file(spec.judge)}" if judging else "generation"
    name = ".".join([file_part(spec.run_id), *_key(spec), what, "yaml"])
    return cassette_dir / f"{spec.test}/{file_part(spec.rubric_id)}/{name}"


def recorded_runs(cassette_dir: Path) -> Callable[[str], bool]:
    """Whether any case of a run, by its id, has a cassette; the folder is looked at when that is
    first asked.
    """

    @cache
    def parts() -> frozenset[str]:
        names = (_CASSETTE_NAME.fullmatch(path.name) for path in cassette_dir.glob("*/*/*.yaml"))
        return frozenset(name[1] for name in names if name)

    return lambda run_id: file_part(run_id) in parts()


def _prefix(spec: CaseSpec) -> str:
    return f"{node_part(spec.suite)}::{spec.test}::{node_part(spec.rubric_id)}"


def _key(spec: CaseSpec) -> list[str]:
    key = [f"e{spec.epoch}"]
    if spec.target_score is not None:
        key.append(f"score_{spec.target_score}")
    if spec.variant:
        key += [] if KINDS[spec.base].unnamed else [spec.base]
        key.append(spec.variant)
    return key


def _judge(spec: CaseSpec) -> list[str]:
    if spec.judge is None:
        return []
    # A judge named `score_2` must not read as a target score.
    # Nor may a part of one read as a part of a variant, whose own are joined by hyphens.
    part = node_part(spec.judge, _LONGEST_JUDGE, escape="~-" if spec.variant else "~")
    return [_first_escaped(part) if part.startswith("score_") else part]


def _judge_file(judge: str | None) -> str:
    if judge is None:
        return "default"
    # The parts of a cassette's name are told apart by their dots, of which only a run's id may have
    # its own.
    part = file_part(judge, _LONGEST_JUDGE, escape="~.")
    return _first_escaped(part) if part == "default" else part


def _first_escaped(part: str) -> str:
    return f"%{ord(part[0]):02X}{part[1:]}"


def _stem_part(text: str) -> str:
    part = file_part(text, _LONGEST_IN_STEM)
    # The parts of a stem are told apart by `__`; one that holds it ends in a digest, which none can
    # imitate.
    return f"{part}~{_digest(text, 8)}" if "__" in part and "~" not in part else part


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]
