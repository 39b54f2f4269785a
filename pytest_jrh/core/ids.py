"""Every name of a case: ids, node ids, and names of files.

All ids derive from the spec alone, so they are the same in every process and every session. Parts
are percent-escaped, which is injective; what is too long ends in a digest, introduced by a `~`
that escaping never produces. File names add a digest where letter case carries meaning, because
some file systems ignore it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import cache, lru_cache
from pathlib import Path
from urllib.parse import quote

from pytest_jrh.core import frozen, short_digest
from pytest_jrh.core.cases import CaseSpec
from pytest_jrh.core.scales import Said

CASES_FILE = "agent_perturbations.jsonl"
"""The file with the made cases of a folder, of all tests that share it."""
REJECTED_FILE = "rejected_cases.jsonl"
LEDGER_FILE = "results.jsonl"
"""In a suite's results folder: what came of each case."""
UNNAMED_BASE = "agent_perturbation"
"""The kind of test that ids do not name where a probe changes a case of it: the first there was."""
NATURAL = "labels"
"""The kind of test whose cases are runs as they are: ids do not name their label."""
TOGETHER = "~together"
"""In place of a rubric, where one call judges under all: `file_part` gives no such name."""
GENERATION = "generation"
JUDGING = "judge-"
_JUDGING = f".{JUDGING}"
_SAFE = "@+="
_LONGEST_PART = 64
_LONGEST_JUDGE = 32
_LONGEST_IN_STEM = 36
_RESERVED = r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?|.*\."
_LABEL_OF_STEM = r"\.score_\d+$"
_RUN_OF_STEM = r"(?s).+\.e\d+(?=\.|$)"


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
    return f"{escaped[: longest - 20]}~{short_digest(text, 16)}"


@lru_cache(maxsize=4096)
def file_part(text: str, longest: int = _LONGEST_PART, *, escape: str = "~") -> str:
    """Make a part of an id safe as a file name, distinct even where letter case is ignored."""
    part = node_part(text, longest, escape=escape)
    if part.startswith("."):
        part = f"%2E{part[1:]}"
    ambiguous = re.sub(r"%[0-9A-F]{2}", "", part) != re.sub(r"%[0-9A-F]{2}", "", part).lower()
    # Windows takes `nul.txt`, and whatever else follows the dot, for the device `nul`.
    reserved = re.fullmatch(_RESERVED, part)
    file_name = part.replace(".", "_") if reserved else part
    return f"{file_name}~{short_digest(text, 8)}" if ambiguous or reserved else part


def case_name(spec: CaseSpec) -> str:
    """The last part of the node id: `RUN[eEPOCH]`, with `-score_N`, `-VARIANT` and `-JUDGE` where
    they apply.
    """
    return f"{node_part(spec.run_id)}[{'-'.join([*_key(spec), *_judge(spec)])}]"


def case_id(spec: CaseSpec) -> str:
    """The case's id: key in every report and in the baseline."""
    return f"{_prefix(spec)}::{case_name(spec)}"


def id_ends(spec: CaseSpec) -> tuple[str, str, str]:
    """What stands in a case's id before its run, and behind it of the case and of its judge."""
    of_judge = "".join(f"-{part}" for part in _judge(spec))
    return f"{_prefix(spec)}::", "-".join(_key(spec)), of_judge


def generation_id(spec: CaseSpec) -> str:
    """The id of the case without its judge: several judges look at one made case."""
    return case_id(spec if spec.judge is None else replace(spec, judge=None))


def perturbed_idx(spec: CaseSpec) -> str:
    """The row id: the same for the same case in every session."""
    return f"agent_{short_digest(generation_id(spec), 8)}"


def artifact_stem(spec: CaseSpec) -> str:
    """The stem of the debug bundle's file names."""
    stem = f"{spec.test}__{_stem_part(spec.run_id)}_e{spec.epoch}__{_stem_part(spec.rubric_id)}"
    return stem if spec.target_score is None else f"{stem}__{_score(spec.target_score)}"


def cassette_path(
    cassette_dir: Path, spec: CaseSpec, *, judging: bool, together: bool = False
) -> Path:
    """Where the calls of a case's generation are recorded, or those of its judge; one that judges
    a run as it is under all rubrics `together` has one place for these.
    """
    of_calls = f"{_JUDGING}{_judge_file(spec.judge)}" if judging else f".{GENERATION}"
    name = f"{'.'.join([file_part(spec.run_id), *_key(spec)])}{of_calls}.yaml"
    of_all = judging and together and spec.test == NATURAL
    folder = TOGETHER if of_all else file_part(spec.rubric_id)
    return cassette_dir / f"{spec.test}/{folder}/{name}"


@frozen
class Recorded:
    """The runs that any case was recorded of, and by probe's case the variants that were."""

    runs: frozenset[str] = frozenset()
    variants: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, cassettes: Iterable[Path]) -> Recorded:
        """What the cassettes of a folder are of."""
        runs = set()
        variants: dict[str, set[str]] = {}
        for path in cassettes:
            stem = _stem(path)
            if of_run := re.match(_RUN_OF_STEM, stem.name):
                runs.add(of_run[0])
            variants.setdefault(_of_any_variant(stem, folder), set()).add(stem.suffix[1:])
        return cls(frozenset(runs), {case: frozenset(names) for case, names in variants.items()})

    def has_run(self, run_id: str, epoch: int) -> bool:
        """Whether any case of a run was recorded."""
        return f"{file_part(run_id)}.e{epoch}" in self.runs

    def variants_by_case(
        self, probe: str, bases: Iterable[CaseSpec]
    ) -> dict[CaseSpec, frozenset[str]]:
        """The names of the variants that were recorded of each of the cases that a probe changes,
        where there are some.
        """
        names = {}
        for base in bases:
            of_probe = replace(base, test=probe, base=base.test, variant="any")
            case = _of_any_variant(_stem(cassette_path(Path(), of_probe, judging=False)), Path())
            if case in self.variants:
                names[base] = self.variants[case]
        return names


def _stem(cassette: Path) -> Path:
    """The path of a case's cassettes without the kind of calls, which has no dot."""
    return cassette.with_suffix("").with_suffix("")


def _of_any_variant(stem: Path, folder: Path) -> str:
    return stem.with_suffix("").relative_to(folder).as_posix()


def former_cassettes(
    place: Callable[[CaseSpec], Path],
    judges: Iterable[str | None],
    recorded: Callable[[], Iterable[Path]],
) -> Callable[[CaseSpec], list[Path]]:
    """What gives the cassettes of a case's judging by other names than those of these judges: one
    of them may have had another name before, and a case as it is that of its label. `place` is
    where it is by the present one; what is `recorded` is looked up when first asked.
    """
    present = {f"{_judge_file(judge)}.yaml" for judge in judges}

    @cache
    def by_case() -> Mapping[str, list[Path]]:
        paths: dict[str, list[Path]] = {}
        for path in recorded():
            recorded_case, separator, file_of_judge = str(path).rpartition(_JUDGING)
            case = recorded_case
            if path.parts[-3] == NATURAL:
                case = re.sub(_LABEL_OF_STEM, "", case)
            if separator and (case != recorded_case or file_of_judge not in present):
                paths.setdefault(case, []).append(path)
        return paths

    def former(spec: CaseSpec) -> list[Path]:
        case = str(place(spec)).rpartition(_JUDGING)[0]
        return by_case().get(case, [])

    return former


def _prefix(spec: CaseSpec) -> str:
    return f"{node_part(spec.suite)}::{spec.test}::{node_part(spec.rubric_id)}"


def _key(spec: CaseSpec) -> list[str]:
    key = [f"e{spec.epoch}"]
    # Whose label is corrected stays the same case, with its recording.
    if spec.target_score is not None and spec.test != NATURAL:
        key.append(_score(spec.target_score))
    if spec.variant:
        if spec.base != UNNAMED_BASE:
            key.append(spec.base)
        key.append(spec.variant)
    return key


def _score(target: Said) -> str:
    if isinstance(target, str):
        # Its dots and hyphens are none between parts of a name.
        target = node_part(target, _LONGEST_JUDGE, escape="~.-")
    return f"score_{target}"


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
    return f"{part}~{short_digest(text, 8)}" if "__" in part and "~" not in part else part
