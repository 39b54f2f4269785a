"""The files of a new suite: a config, rubrics to fill in, labels, the judge's prompt, and a
workflow that guards them.

It looks at the transcripts that the suite begins with (their files, runs and form), and says what
to do next, and what a clone of the suite needs.
"""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from importlib import resources
from pathlib import Path
from typing import TypeAlias

from pytest_jrh.cli.answers import judge_prompt, labels_in, refuse_missing
from pytest_jrh.cli.check import meanings
from pytest_jrh.core import frozen
from pytest_jrh.core.calls import JUDGE
from pytest_jrh.core.documents import DamagedError, Json, as_word, listed, shown, whole_number
from pytest_jrh.core.errors import InputError, Problem, first_problems
from pytest_jrh.core.files import atomic_write
from pytest_jrh.core.scales import BINARY, Mode
from pytest_jrh.core.sections import InputFormat
from pytest_jrh.core.templates import render_text
from pytest_jrh.core.text import counted, visible
from pytest_jrh.judges import JUDGES
from pytest_jrh.people.labels import Joiner, LabelRow, column_of, read_rows
from pytest_jrh.sources import files_in, format_of, open_sources, read_all, table_in
from pytest_jrh.sources.columns import Table
from pytest_jrh.sources.pairs import CHOSEN, two_answers
from pytest_jrh.sources.source import Source
from pytest_jrh.sources.tables import read_table


def _meanings(
    options: Namespace, labels: Sequence[LabelRow], table: Table | None, values: Json
) -> tuple[Json, str]:
    """What the words of labels mean, where they are those of a table, and what to say of them; puts
    the line of the config about it into the values.
    """
    meanings: Json = {}
    about, label = "", options.label
    if {whole_number(row.label) for row in labels} == {0, 1}:
        # They mean the opposite in other people's tables.
        values["map"] = f"# map: {{1: {_PASS}, 0: {_FAIL}}}   # where 1 is right"
        about = f"Its labels are 0 and 1, and 1 is {_FAIL}: where it is right, set map in "
        about += f"{values['config']}."
    if labels and (options.map or options.one or options.scale):
        table = read_table(options.labels, ("label",))
        label = column_of(table, "label")
    if options.of == "pairs":
        # Words of a prompt are mapped as well, and a map of labels has to have all of theirs.
        said = set(map(as_word, table.at(label))) if table is not None and label else set()
        values["meanings"] = options.map if said & options.map.keys() else {}
    elif table is not None and label:
        meanings, about = labels_in(table, label, options)
        values["meanings"] = meanings
    return meanings, about


def _refuse_strangers(source: Source, labels: Sequence[LabelRow], file: str) -> None:
    """Refuse labels of what is no run, before there is a suite that cannot run."""
    aliases, unclear = source.aliases(), source.unclear_names()
    joiner = Joiner(source.summaries(), {}, aliases=aliases, unclear=unclear)
    problems: list[Problem] = []
    for row in labels:
        try:
            joiner.run_of(row, with_hint=not problems)
        except DamagedError as error:
            problems.append(Problem(str(error), file, row.line, str(error.path[0]), error.hint))
    if problems:
        raise InputError(first_problems(problems, file))


def judge_values(text: str) -> tuple[Json, str]:
    """What the files say of a judge, as `KEY:TEXT` names it, such as `python:judges.py:strict` or
    the `model` of a prompt, and its own file where it has one. The requests of code have no price
    but a number.
    """
    key, _, value = text.partition(":")
    if key == "model" and value:
        return {"model": json.dumps(value, ensure_ascii=False)}, ""
    kinds = {kind.key: kind for kind in JUDGES.values() if kind.keys is not None}
    if key not in kinds or not value:
        forms = listed([f"{kind}:..." for kind in ("model", *kinds)])
        raise InputError(f"--judge: got {shown(text)}; must be one of {forms}")
    match = re.match(r"[^:@]+\.py(?=[:@])", value)
    file = match[0] if match else ""
    values = {
        "judge": file or "the judge",
        "code": key,
        "target": value,
        "notes": kinds[key].notes,
        "limit": "--jrh-max-calls=500",
    }
    return values, file


LARGEST_LOG = 20_000_000
"""In bytes. A larger log is not copied: repositories keep every version of a file for ever."""


@frozen
class LogPlace:
    """Where the suite finds its log, and the `copies` to make, relative to the project."""

    path: str
    committed: bool
    copies: Mapping[str, Path] = field(default_factory=dict)


def place_log(log: Path, folder: Path, name: str, files: Sequence[Path]) -> LogPlace:
    """Decide where the log of the suite `name` is to be, a file or a folder of `files`: under
    `inputs/`, unless it is larger than `LARGEST_LOG`.

    A log that is already under `inputs/` stays where it is.
    """
    real, root = log.resolve(), Path(os.path.realpath(folder))
    inside = real.relative_to(root).as_posix() if real.is_relative_to(root) else ""
    if sum(file.stat().st_size for file in files) > LARGEST_LOG:
        return LogPlace(inside or Path(os.path.relpath(real, root)).as_posix(), committed=False)
    if inside.startswith("inputs/"):
        return LogPlace(inside, committed=True)
    path = f"inputs/data/{name}/{'runs' if log.is_dir() else real.name}"
    copies = {}
    for file in files:
        # A log of one file is relative to itself the file.
        copies[(Path(path) / file.resolve().relative_to(real)).as_posix()] = file
    return LogPlace(path, committed=True, copies=copies)


@frozen
class FoundRuns:
    """The runs of a file or folder, or the answers of a `table`: `values` is what texts say of
    them.
    """

    files: tuple[Path, ...]
    table: Table | None
    about: list[str]
    values: Json


def look_at(options: Namespace, labels: Sequence[LabelRow]) -> FoundRuns:
    """Read what a file or a folder holds; raises InputError where it cannot be used, or `labels`
    are of others.
    """
    log, table = options.log, None
    if options.of != "runs":
        table = table_in(log, ("text",), with_text=bool(options.of))
    pair = [] if table is None else two_answers(table)
    if pair and options.of in ("", "pairs"):
        options.of = "pairs"
        if not options.label and CHOSEN in map(as_word, pair):
            options.label = CHOSEN
        if not (options.label or options.labels):
            message = "nothing says which of two answers is better"
            hint = "name the labels: --label COL, or --labels FILE"
            raise InputError(message, str(log), key="--label", hint=hint)
    options.of = options.of or ("runs" if table is None else "answers")
    input_format: InputFormat | None = refuse_missing(options, table)
    words = json.loads(_filled(f"words.{options.of}.json", {}))
    files = files_in(log)
    if options.of == "runs":
        input_format = format_of(files)
    with open_sources((log,), input_format=input_format, of=options.of) as source:
        causes = [cause for _, _, cause in read_all(source, log)]
        unusable = [*filter(None, causes)]
        about = [*source.notices()]
        if unusable:
            about.append(f"{counted(len(unusable), words['one'])} cannot be used. {unusable[0]}")
        about.append(f"Its form: {source.form_name}.")
        _refuse_strangers(source, labels, str(options.labels))
    values = {
        **words,
        "runs": counted(len(causes), words["one"]),
        "count": len(causes),
        "usable": len(causes) - len(unusable),
        "format_keys": input_format and input_format.model_dump(exclude_none=True),
    }
    return FoundRuns(files, table, about, values)


_PLAIN = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_-])?")
_LONGEST_NAME = 64
_MOST_COPIES = 6
_ATTRIBUTES = (
    "# Pull requests on GitHub show recordings folded; `git diff` shows them as they are.\n"
    "*.yaml linguist-generated\n"
)
_GITLAB = ".gitlab-ci.yml"
CI: Mapping[str, Mapping[str, str]] = {
    "github": {
        ".github/workflows/judge-gate.yml": "judge-gate.yml",
        ".github/actions/judge/action.yml": "action.yml",
    },
    "gitlab": {_GITLAB: "gitlab-ci.yml"},
}
"""By service the files that guard a suite there, each with its text in this package."""
_CONFIGS = "inputs/configs"
# Hidden, since nobody edits them, and beside the configs, so that the path to them is short.
_SCHEMAS = ("config.schema.json", "rubrics.schema.json")
"""Files of the package, which are written beside the configs."""
_PASS, _FAIL = BINARY.words[0], BINARY.words[1]


_Entries: TypeAlias = "Sequence[tuple[str, str]]"
"""The ids of rubrics, and their texts, empty where they are to be filled in."""


def start_suite(options: Namespace) -> int:
    """Write the files of a suite on the runs, or the answers, of a file or a folder, and say what
    to do next.

    The options are those of `init`. The log is copied under `inputs/data/NAME/` unless it is under
    `inputs/` already; one of more than 20 MB is used where it is, and the suite is then replayed
    frozen. The gate of an earlier suite is kept unless `force` is set, and what is no gate always.
    Raises `InputError`, and writes nothing, if an input cannot be used or a file already exists.
    """
    vars(options).update(meanings(options))
    name, gate, folder = options.name, CI[options.ci], options.folder.absolute()
    labels: Sequence[LabelRow] = ()
    if options.labels:
        labels = read_rows(options.labels).rows
    entries = _rubric_entries(options.rubric, labels)
    _refuse_names(options, entries)
    runs = look_at(options, labels)
    log_place = place_log(options.log, folder, name, runs.files)
    mode: Mode = "ordinal" if options.ordinal or options.scale else "binary"
    if options.of == "pairs":
        if mode == "ordinal" or options.one:
            hint = (
                "leave out --ordinal, --scale and --one; of other words --map says what they mean"
            )
            raise InputError(
                "answers of pairs are first, second and tie", str(options.log), hint=hint
            )
        mode = "classes"

    # What is filled into the texts of the files, and which other files are copied.
    values = _values(options, log_place, runs.values, mode)
    sources, about = dict(log_place.copies), runs.about
    judge_file = ""
    if options.judge:
        of_judge, judge_file = judge_values(options.judge)
        values |= of_judge
    if labels:
        path = f"inputs/data/{name}/labels{options.labels.suffix.lower() or '.csv'}"
        sources[path] = options.labels
        values["label_file"] = path
    words, about_labels = _meanings(options, labels, runs.table, values)
    about.append(about_labels)
    if options.prompt:
        of_prompt, about_prompt = judge_prompt(options, words)
        values |= of_prompt
        about += about_prompt

    # All files are written together, so that nothing is left of a suite that cannot be.
    attributes = f"inputs/cassettes/{name}/.gitattributes"
    texts = {**_texts(values, entries, gate), attributes: _ATTRIBUTES}
    kept_files = []
    for file in gate:
        if _is_kept(folder / file, texts[file], force=options.force):
            kept_files.append(file)
            del texts[file]
    copies = {}
    for to, source in sources.items():
        if os.path.realpath(folder / to) != os.path.realpath(source):
            copies[to] = source
    if not options.force:
        _refuse_existing(folder, [*texts, *copies], {*_schemas(_CONFIGS), attributes})
    contents: dict[str, bytes | str] = {**texts}
    for to, source in copies.items():
        contents[to] = source.read_bytes()
    _write(folder, contents)

    next_steps = _filled(
        "next.txt",
        values,
        here=folder == Path.cwd(),
        folder=str(folder),
        files=[*contents],
        kept_files=kept_files,
        label_count=labels and counted(len(labels), "label"),
        about=[*filter(None, about)],
        copies=listed(copies, _MOST_COPIES),
        judge_file=judge_file,
        gate=next(iter(gate)).partition("/")[0],
    )
    sys.stdout.write(visible(next_steps))
    return 0


def _rubric_entries(rubrics: Sequence[str], labels: Sequence[LabelRow]) -> _Entries:
    """The ids and texts that were given; without any the ids of a file of labels."""
    entries = []
    for rubric in rubrics or dict.fromkeys(row.rubric_id for row in labels if row.rubric_id):
        rubric_id, _, text = rubric.partition(":")
        entries.append((rubric_id.strip(), text.strip()))
    return entries


def _refuse_names(options: Namespace, entries: _Entries) -> None:
    problems = _name_problems("NAME", options.name)
    if options.ordinal and any(text for _, text in entries):
        hint = "name it alone, and write text and levels into its file; or --scale LOW-HIGH"
        problems.append(Problem("--rubric: a text has no levels", hint=hint))
    if (options.label or options.labels) and not entries:
        hint = "name it, such as --rubric honest"
        problems.append(Problem("--rubric: nothing says what the labels are of", hint=hint))
    if (options.one or options.map) and not (options.label or options.labels or options.prompt):
        hint = "name the labels: --label COL, or --labels FILE"
        problems.append(Problem("nothing has a value that --map or --one explains", hint=hint))
    for rubric_id, times in Counter(rubric_id for rubric_id, _ in entries).items():
        problems += _name_problems("ID", rubric_id)
        if times > 1:
            problems.append(Problem(f"duplicate rubric id {shown(rubric_id)}"))
    if problems:
        raise InputError(problems)


def _refuse_existing(folder: Path, files: Sequence[str], shared: Collection[str]) -> None:
    """Refuse files that are there already, but for those that suites share."""
    problems = []
    for file in files:
        if file not in shared and (folder / file).exists():
            problems.append(Problem("already exists", str(folder / file)))
    if problems:
        raise InputError([*problems, Problem("choose another name, or overwrite with --force")])


def _is_kept(file: Path, text: str, *, force: bool) -> bool:
    """Whether a file of the project stays as it is: the gate of an earlier suite, or the jobs that
    a project has on GitLab, which are all in one file.
    """
    if not file.exists():
        return False
    first_line, _, _ = text.partition("\n")
    is_ours = file.name != _GITLAB or file.read_text("utf-8", "replace").startswith(first_line)
    return not force or not is_ours


def write_schemas(options: Namespace) -> int:
    """Write the JSON schemas of configs and rubric files; raises `InputError` where that fails."""
    texts = _schemas(options.folder)
    _write(Path(), texts)
    sys.stdout.write("".join(f"{path}\n" for path in texts))
    return 0


def _schemas(folder: str) -> dict[str, str]:
    package = resources.files("pytest_jrh.schema")
    return {f"{folder}/.jrh-{name}": package.joinpath(name).read_text("utf-8") for name in _SCHEMAS}


def _name_problems(argument: str, name: str) -> list[Problem]:
    if len(name) <= _LONGEST_NAME and _PLAIN.fullmatch(name):
        return []
    message = (
        f"{argument}: got {shown(name)}; must be letters, digits, `_`, and inside also `-` and "
        f"`.`, at most {_LONGEST_NAME}"
    )
    return [Problem(message)]


def _values(options: Namespace, log: LogPlace, of_runs: Json, mode: Mode) -> Json:
    name = options.name
    return {
        **of_runs,
        **json.loads(_filled(f"words.{mode}.json", of_runs)),
        "name": name,
        "mode": mode,
        "scale": options.scale,
        "label": options.label,
        "config": f"{_CONFIGS}/{name}.yml",
        "log": log.path,
        "rubrics": f"inputs/data/{name}/rubrics.yml",
        "judge": f"inputs/prompts/{name}/judge.md",
        "frozen": "" if log.committed else " --jrh-frozen",
        "committed": log.committed,
        "variables": ", ".join(sorted(JUDGE.variables.difference(of_runs["hidden"].split()))),
        "prompt": f"{of_runs['prompt']}.{mode}",
    }


def _texts(
    values: Json,
    entries: _Entries,
    gate: Mapping[str, str],
) -> dict[str, str]:
    """Make the text of each file, by its path in the folder."""
    texts = {
        values["config"]: _filled(
            "labels.yml" if values["label"] or values["label_file"] else "config.yml", values
        ),
        values["rubrics"]: _filled("rubrics.yml", values, entries=entries),
        **{file: _filled(name, values) for file, name in gate.items()},
        **_schemas(_CONFIGS),
    }
    if not values["code"]:
        prompt = resources.files("pytest_jrh.llm").joinpath("templates", f"{values['prompt']}.md")
        text = _filled("judge.head.md", values) + prompt.read_text("utf-8")
        texts[values["judge"]] = values["own_prompt"] or text
    return texts


def _filled(file: str, values: Json, **more: object) -> str:
    return render_text("cli/texts", file, {**values, **more})


def _write(folder: Path, contents: Mapping[str, bytes | str]) -> None:
    for file, content in contents.items():
        try:
            atomic_write(folder / file, content)
        except OSError as error:
            message = f"cannot be written: {error.strerror or error}"
            raise InputError(message, str(folder / file)) from error
