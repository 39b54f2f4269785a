"""Commands, run in a copy of the project, and all that they print and write.

Most are replayed; two ask a scripted model on loopback."""

import hashlib
import json
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.plugin.recorded import run_module
from tests.support.faults import Fault
from tests.support.model_server import ModelServer

ROOT = Path(__file__).parents[2]
DEMO = "inputs/configs/refund_agent.yml"
ORDINAL = "inputs/configs/refund_agent_ordinal.yml"
REPORTS = (
    "--jrh-report=reports/report.html",
    "--jrh-report=reports/summary.md",
    "--junitxml=reports/junit.xml",
)


@dataclass(frozen=True, slots=True)
class Session:
    """A command, or several of which the last one counts.

    Attributes:
        name: of the snapshots.
        commands: the arguments of `python -m`, in the order in which they are run.
        writes: files that are written into the project before, by path.
        asks: whether a scripted model answers on loopback.
        fault: what goes wrong at that model, whenever the judge is asked.
        compares: of the files that are written, those with such an ending."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    writes: Mapping[str, str] = field(default_factory=dict)
    asks: bool = False
    fault: Fault | None = None
    compares: tuple[str, ...] = ("",)


def _suite(*arguments: str) -> tuple[str, ...]:
    """A run of pytest in which no version of a library is printed by pytest itself."""
    return ("pytest", "-p", "no:cacheprovider", *arguments)


_BASELINE = (f"--jrh-config={DEMO}", f"--jrh-config={ORDINAL}", "--jrh-baseline=reports/base.json")
_HALVES = ("angry or damaged or double", "not (angry or damaged or double)")

RESULTS = (".csv", "results.jsonl")
SUMMARY = "--jrh-report=reports/summary.md"
SMALL = "--jrh-config=small/refund_agent.yml"

# Judges without a model: `counts` takes an odd number of one word for a violation, and `moody`
# does so in its first and third answer about a case.
JUDGES = """\
from collections import Counter

asked = Counter()


def counts(case):
    number = case.transcript.count("refund")
    return number % 2, f"The word stands there {number} times."


def moody(case):
    score, reasoning = counts(case)
    asked[case.rubric.id, case.transcript] += 1
    if asked[case.rubric.id, case.transcript] % 3 == 2:
        return 1 - score, "On second thought, it is the other way round."
    return score, reasoning
"""
RUBRICS = """\
- id: refund_within_policy
  instructions: The agent pays no refund beyond what the policy allows.
"""
LABELS = """\
run_id,label,annotator,note
angry-customer,violated,ann,
angry-customer,violated,bob,
damaged-kettle,satisfied,ann,see turn 9
double-charge,satisfied,ann,
double-charge,violated,bob,
espresso-escalation,satisfied,ann,
"""
LABELLED = """\
judge: {python: "judges.py:counts"}
admin:
  module_name: small
  perturbation_config: {tests_to_run: [labels]}
  evaluation_config: {template: agent_judge}
test_agent_perturbation_config:
  input_log_path: examples/conversations/conversations.jsonl
  rubric_path: small/rubrics.yml
  labels: {path: small/labels.csv, unlabelled: judge}
"""
# The demo's made cases of one run, judged without a model.
_MADE = (ROOT / "examples/small_judge/agent_perturbations.jsonl").read_text("utf-8").splitlines()
CASES = tuple(line for line in _MADE if json.loads(line)["run_id"] == "damaged-kettle")
FROZEN = """\
cases: {frozen: small/cases.jsonl}
admin:
  module_name: refund_agent
  perturbation_config: {tests_to_run: [agent_perturbation, agent_positives]}
  evaluation_config:
    template: agent_judge
    judges:
      - {name: counts, python: "judges.py:counts"}
synthetic_data_params: {generation_model_name: openai/gpt-4.1-mini}
test_agent_perturbation_config: {rubric_path: inputs/data/refund_agent/rubrics.yml}
"""
_MOODY = '\n      - {name: moody, python: "judges.py:moody", repeats: 3}'
PANEL = FROZEN.replace('"judges.py:counts"}', f'"judges.py:counts"}}{_MOODY}')
SCRIPTED = """\
recording: {dir: small/cassettes}
admin:
  module_name: small
  perturbation_config: {tests_to_run: [agent_perturbation, agent_positives]}
  evaluation_config:
    template: agent_judge
    autograder_model_name: openai/gpt-4.1-mini
    max_workers: 1
synthetic_data_params: {generation_model_name: openai/gpt-4.1-mini}
test_agent_perturbation_config:
  input_log_path: examples/conversations/conversations.jsonl
  rubric_path: small/rubrics.yml
  sample_num_from_orig: 2
"""


def _small(config: str, **more: str) -> dict[str, str]:
    """The files of a small suite, by path."""
    files = {
        "refund_agent.yml": config,
        "rubrics.yml": RUBRICS,
        "labels.csv": LABELS,
        "judges.py": JUDGES,
        "cases.jsonl": "".join(f"{line}\n" for line in CASES),
    }
    return {f"small/{name}": text for name, text in files.items()} | more


def _decisions() -> str:
    """A decision of each kind about the cases, and one about an earlier version."""
    decisions: tuple[dict[str, Any], ...] = (
        {"action": "rejected", "note": "contradicts the tool"},
        {"action": "edited", "expected": 0},
        {"action": "edited", "turns": [{"message_index": 8, "content": "It is late."}]},
        {"action": "accepted"},
        {"action": "accepted", "case_digest": "0" * 64},
    )
    lines = []
    for line, decision in zip(CASES, decisions, strict=False):
        record = json.loads(line)
        about = {key: record[key] for key in ("case_id", "case_digest")}
        lines.append(json.dumps(about | decision) + "\n")
    return "".join(lines)


def _once(name: str, *arguments: str, **more: Any) -> Session:
    return Session(name, (_suite(*arguments),), **more)


def _of_small(name: str, config: str, *arguments: str, **more: Any) -> Session:
    """A session of a small suite; `writes` lays more files over its own, by path."""
    writes = _small(config, **more.pop("writes", {}))
    return _once(name, SMALL, *arguments, SUMMARY, writes=writes, compares=RESULTS, **more)


_CHANGED = "--jrh-config=examples/prompt_change/refund_agent.yml"
_AGAINST = "--jrh-baseline=inputs/baselines/refund_agent.json"
_DECIDED = {"outputs/small/refund_agent/review/decisions.jsonl": _decisions()}
# Somebody has put another word into the transcript of the first case.
_EDITED = "".join(f"{line}\n" for line in (CASES[0].replace("refunded", "paid back"), *CASES[1:]))
_CONVERSATIONS = "--jrh-config=examples/conversations/conversations.yml"
_RECORD = "--jrh-record-mode=once"
_SCORER = "--jrh-config=examples/inspect_scorer/refund_agent.yml"
_SHARDS = tuple(_suite(_CHANGED, "-k", half, "-o", "jrh_record_mode=none") for half in _HALVES)
_MERGE = ("pytest_jrh", "merge", _CHANGED, _AGAINST, *REPORTS[:2], "shard0", "shard1")

SESSIONS = (
    _once("demo", *_BASELINE, "--jrh-update-baseline", *REPORTS),
    Session(
        "demo_again", (_suite(*_BASELINE, "--jrh-update-baseline"), _suite(*_BASELINE, *REPORTS))
    ),
    _once("ordinal", f"--jrh-config={ORDINAL}", "-v", *REPORTS),
    _once("prompt_change", _CHANGED, _AGAINST, *REPORTS),
    _once("probes", "--jrh-config=examples/probes/probes.yml", *REPORTS),
    _once("python_judge", "--jrh-config=examples/python_judge/refund_agent.yml", *REPORTS),
    _once("http_judge", "--jrh-config=examples/http_judge/refund_agent.yml", *REPORTS),
    # Inspect calls tenacity in a way of before.
    _once("inspect_scorer", _SCORER, "-Wignore::DeprecationWarning", *REPORTS),
    _once("conversations", _CONVERSATIONS, "--tb=short", *REPORTS),
    _once("plan", f"--jrh-config={DEMO}", f"--jrh-config={ORDINAL}", "--jrh-plan"),
    Session("merge", (*_SHARDS, _MERGE)),
    _once("acts", "--jrh-config=examples/acts/acts.yml", "--tb=short", SUMMARY, compares=RESULTS),
    _of_small("unlabelled", LABELLED, "-v"),
    _of_small("panel_with_repeats", PANEL, "--tb=short"),
    _of_small("frozen", FROZEN, "--tb=line", writes={"small/cases.jsonl": _EDITED}),
    _of_small("decided_in_review", FROZEN, "--tb=line", writes=_DECIDED),
    _of_small("budget_reached", SCRIPTED, _RECORD, "--jrh-max-calls=7", asks=True),
    _of_small("model_error", SCRIPTED, _RECORD, asks=True, fault=Fault.status(400)),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the last command of a session left: exit code and output, and all files by path."""

    printed: str
    files: dict[str, bytes]

    def digests(self) -> str:
        """A line for each file: the beginning of its SHA-256, its size in bytes, its path."""
        return "".join(
            f"{hashlib.sha256(content).hexdigest()[:16]} {len(content):>8} {path}\n"
            for path, content in sorted(self.files.items())
        )


def run(session: Session, folder: Path) -> Outcome:
    """Run a session in an empty folder, and leave its masked files below `folder/masked`."""
    project = folder / "project"
    for name in ("inputs", "examples"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns("__pycache__"))
    (project / "reports").mkdir()
    # How many progress lines a session writes depends on how fast the machine is.
    (project / "no_progress.py").write_text(
        "from pytest_jrh.plugin import session\nsession.INTERVAL = float('inf')\n"
    )
    for name, text in session.writes.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, "utf-8")
    before = {path: path.read_bytes() for path in _files(project)}
    with ExitStack() as stack:
        more: dict[str, str | None] = {"COLUMNS": "80", "PYTEST_PLUGINS": "no_progress"}
        if session.asks:
            server = stack.enter_context(ModelServer())
            more |= server.environment
            if session.fault is not None:
                server.faults.add(stage="judge", fault=session.fault, times=None)
        for number, command in enumerate(session.commands):
            done = run_module(project, *command, env=more, timeout=600)
            if session.name == "merge" and number < len(_HALVES):
                (project / "outputs").rename(project / f"shard{number}")
    written: dict[str, bytes] = {}
    for path in _files(project):
        changed = path not in before or before[path] != path.read_bytes()
        if changed and path.name.endswith((*session.compares, ".md")):
            written.update(_contents(path, project))
    masked = {name: mask(content, project) for name, content in written.items()}
    for name, content in masked.items():
        kept = folder / "masked" / name
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(content)
    printed = f"{done.stdout}{done.stderr}exit code {done.code}\n"
    return Outcome(mask(printed.encode(), project).decode(), masked)


def _files(project: Path) -> list[Path]:
    return sorted(
        path for path in project.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )


def _contents(path: Path, project: Path) -> Iterator[tuple[str, bytes]]:
    """A file by its path in the project; a zip archive, as an Inspect log is, by its members."""
    name = path.relative_to(project).as_posix()
    if path.suffix != ".eval":
        yield name, path.read_bytes()
        return
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            yield f"{name}/{member}", archive.read(member)


MASKS = tuple(
    (re.compile(pattern.encode()), replacement.encode())
    for pattern, replacement in (
        (r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d| UTC)?)?", "DATE"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        # Durations, of sessions and of cases.
        (r"(?<![\w.$-])\d+\.\d+ ?s\b", "SECONDS"),
        (r"(?<=[ >])(\d+:)?\d+:\d\d(?=[ <.,;)]|$)", "SECONDS"),
        (r"\bin SECONDS( \(\d+:\d\d:\d\d\))?", "in SECONDS"),
        (r'\btime="[\d.]+"', 'time="SECONDS"'),
        (r'"(seconds|working_time|total_time|duration)": ?[\d.e-]+', r'"\1": SECONDS'),
        (r'"seconds": ?\[[^]]*\]', '"seconds": SECONDS'),
        (r'hostname="[^"]*"', 'hostname="HOST"'),
        # Rules of equals signs and hyphens fill a line beside a text of any length.
        (r"(?m)^[=-]{2,} (.*?) [=-]{2,}$", r"== \1 =="),
        # Versions of libraries, and of Python.
        (
            r"\b(pytest-jrh|pytest_jrh|litellm|inspect\\?_ai|inspect-ai|xdist|pluggy|pytest|Python)"
            r"[ -]v?\d[\w.]*",
            r"\1 VERSION",
        ),
        (r'"(pytest-jrh|pytest_jrh|litellm|inspect_ai)": ?"\d[^"]*"', r'"\1": "VERSION"'),
        (r" -- \S+/python\S*", " -- PYTHON"),
        (r"(?m)^hypothesis profile .*$", "hypothesis profile NAME"),
        (r"(?m)^plugins: .*(\n .*)*$", "plugins: NAMES"),
        # How the page looks and what its buttons do, which tests in a browser hold.
        (r"(?s)<(style|script)>.*?</\1>", r"<\1></\1>"),
        (r"'sha256-[^']+'", "'sha256-HASH'"),
        # Ids that Inspect draws for a log, its messages and events.
        (r'"(eval_id|run_id|task_id|uuid|eval_set_id)": ?"[\w-]{22}"', r'"\1": "RANDOM"'),
    )
)


def mask(content: bytes, project: Path) -> bytes:
    """Take out what differs from run to run: dates, seconds, versions, and where the project is."""
    content = content.replace(str(project).encode(), b"PROJECT")
    for pattern, replacement in MASKS:
        content = pattern.sub(replacement, content)
    return content
