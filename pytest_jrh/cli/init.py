"""The files of a new suite: a config, rubrics to fill in, labels, the judge's prompt, and a
workflow that guards them.

It looks at the transcripts that the suite begins with (their files, runs and form), and says what
to do next, and what a clone of the suite needs. Of answers it takes over what there is: columns of
a table, labels in one of them, and a judge prompt with placeholders of its own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_jrh.cli.check import meanings
from pytest_jrh.config.rubrics import load_rubrics
from pytest_jrh.core import (
    InputError,
    Json,
    Problem,
    collecting,
    counted,
    first_problems,
    frozen,
    listed,
    nearest_hint,
    printable,
    received,
    shown,
    visible,
)
from pytest_jrh.core.calls import JUDGE, PART_NAMES, known_name
from pytest_jrh.core.cases import Rubric
from pytest_jrh.core.documents import (
    DamagedError,
    NoLabelError,
    as_text,
    as_word,
    label_value,
    read_text,
    whole_number,
)
from pytest_jrh.core.files import atomic_write
from pytest_jrh.core.scales import BARE, BINARY, Mode, numbered, paired
from pytest_jrh.core.sections import InputFormat, JudgeStage
from pytest_jrh.core.templates import render_text
from pytest_jrh.judges import JUDGES
from pytest_jrh.llm.calls import parse_prompt
from pytest_jrh.people.labels import Joiner, LabelRow, column_of, read_rows
from pytest_jrh.sources import files_in, format_of, open_sources, read_all, table_in
from pytest_jrh.sources.answers import CHOSEN, IMAGES, two_answers
from pytest_jrh.sources.columns import ROLES, Table, columns_like, columns_named, words_of
from pytest_jrh.sources.columns import known_name as known_column
from pytest_jrh.sources.source import as_pointer, several_values
from pytest_jrh.sources.tables import read_table
from pytest_jrh.sources.verdicts import Values


def _meanings(
    options: Namespace,
    labels: Sequence[LabelRow],
    table: Table | None,
    values: Json,
    problems: list[Problem],
) -> None:
    """Put into the values what the words of labels mean, where they are those of a table."""
    label = options.label
    if {whole_number(row.label) for row in labels} == {0, 1}:
        # They mean the opposite in other people's tables.
        values["map"] = _MAP_OF_NUMBERS
    if labels and (options.map or options.one or options.scale):
        table = read_table(options.labels, ("label",))
        label = column_of(table, "label")
    if table is None or not label:
        return
    if options.of != "pairs":
        labels_in(table, label, options, values, problems)
    # Words of a prompt are mapped as well, and a map of labels has to have all of theirs.
    elif {*map(as_word, table.at(label))} & options.map.keys():
        values["meanings"] = options.map


def judge_values(text: str) -> Json:
    """What the files say of a judge, as `KEY:TEXT` names it, such as `python:judges.py:strict` or
    the `model` of a prompt. The requests of code have no price but a number.
    """
    key, _, value = text.partition(":")
    if key == "model" and value:
        return {"model": json.dumps(value, ensure_ascii=False)}
    kinds = {kind.key: kind for kind in JUDGES.values() if kind.keys is not None}
    if key not in kinds or not value:
        forms = listed([f"{kind}:" for kind in ("model", *kinds)])
        raise InputError(f"--judge: got {shown(text)}; must begin with one of {forms}")
    file = "".join(re.findall(r"^[^:@]+\.py(?=[:@])", value))
    return {
        "judge": file or "the judge",
        "judge_file": file,
        "code": key,
        "target": value,
        "notes": kinds[key].notes,
        "limit": "--jrh-max-calls=500",
    }


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
    inside = real.as_posix().removeprefix(f"{root.as_posix()}/")
    if sum(file.stat().st_size for file in files) > LARGEST_LOG:
        return LogPlace(Path(os.path.relpath(real, root)).as_posix(), committed=False)
    if inside.startswith("inputs/"):
        return LogPlace(inside, committed=True)
    path = f"inputs/data/{name}/{'runs' if log.is_dir() else real.name}"
    copies = {}
    for file in files:
        # A log of one file is relative to itself the file.
        copies[(Path(path) / file.resolve().relative_to(real)).as_posix()] = file
    return LogPlace(path, committed=True, copies=copies)


def look_at(
    options: Namespace, labels: Sequence[LabelRow], problems: list[Problem]
) -> tuple[Table | None, Json]:
    """Read the runs of a file or folder, or the answers of a table, and what texts say of them.

    That they cannot be used is a problem, and that `labels` are of others.
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
            message = "nothing says which of the two answers is better"
            hint = "name the labels: --label COL, or --labels FILE"
            problems.append(Problem(message, str(log), hint=hint, answer="--label COL"))
    options.of = options.of or ("runs" if table is None else "answers")
    columns, pointers = known_columns(options, table, problems)
    input_format: InputFormat | None = pointers
    values: Json = json.loads(_filled(f"words.{options.of}.json", {}))
    if options.of == "runs":
        input_format = format_of(files_in(log))
    causes = []
    reading = open_sources((log,), input_format=input_format, of=options.of)
    with collecting(problems), reading as source:
        for run, messages, cause in read_all(source, log):
            why = f"The case {printable(run.run_id)} has no turn of the assistant."
            has_spoken = any(turn["role"] == "assistant" for turn in messages)
            causes.append(cause or ("" if has_spoken else why))
        unusable = [*filter(None, causes)]
        if len(unusable) == len(causes):
            message = f"no case can be used. {unusable[0]}"
            raise InputError(message, str(log), hint="; ".join(source.notices()))
        values |= {
            "notices": source.notices(),
            "unusable": unusable,
            "form": source.form_name,
            "count": len(causes),
            "format_keys": input_format and input_format.model_dump(exclude_none=True),
        }
        # Labels of what is no run are refused before there is a suite that cannot run.
        unclear = source.unclear_names()
        joiner = Joiner(source.summaries(), {}, aliases=source.aliases(), unclear=unclear)
        file = str(options.labels)
        strangers: list[Problem] = []
        for row in labels:
            try:
                joiner.run_of(row, with_hint=not strangers)
            except DamagedError as error:
                key = str(error.path[0])
                strangers.append(Problem(str(error), file, row.line, key, error.hint))
        problems += first_problems(strangers, file)
    return table, values | {"columns": columns}


_PLAIN = r"(?=.{1,64}\Z)[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_-])?"
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
_MAP_OF_NUMBERS = "# map: {1: satisfied, 0: violated}   # if 1 is right"


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
    labels = read_rows(options.labels).rows if options.labels else ()
    rubrics: Sequence[Rubric] = ()
    rubric_file = Path(*options.rubric[:1])
    if rubric_file.suffix.lower() in (".yml", ".yaml", ".json"):
        rubrics = load_rubrics(rubric_file)
        options.rubric = [rubric.id for rubric in rubrics]
    # Without a rubric the ids of a file of labels.
    entries = []
    for named in options.rubric or dict.fromkeys(row.rubric_id for row in labels if row.rubric_id):
        rubric_id, _, text = named.partition(":")
        entries.append((rubric_id.strip(), text.strip()))
    problems = _problems_of_names(options, entries)
    options.unknown = {}
    file = options.prompt
    options.prompt_text = read_text(file, str(file)) if file else ""
    table, of_runs = look_at(options, labels, problems)
    log_place = place_log(options.log, folder, name, files_in(options.log))
    options.answer_scale = numbered(*options.scale) if options.scale else BINARY
    mode: Mode = "ordinal" if options.ordinal or options.scale else "binary"
    for rubric in rubrics:
        if rubric.score_levels or rubric.classes:
            mode = "ordinal" if rubric.score_levels else "classes"
    if options.of == "pairs":
        if mode == "ordinal" or options.one:
            raise InputError(
                "has pairs, whose answers are first, second and tie",
                str(options.log),
                hint="remove --ordinal, --scale and --one; use --map to say what other words mean",
            )
        mode, options.answer_scale = "classes", paired()

    # What is filled into the texts of the files, and which other files are copied.
    values: Json = {
        **vars(options),
        **of_runs,
        **json.loads(_filled(f"words.{mode}.json", of_runs)),
        "mode": mode,
        "config": f"{_CONFIGS}/{name}.yml",
        "log": log_place.path,
        "rubrics": f"inputs/data/{name}/rubrics.yml",
        "judge": f"inputs/prompts/{name}/judge.md",
        "api_base": os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE", ""),
        "has_key": "OPENAI_API_KEY" in os.environ,
        "committed": log_place.committed,
        "variables": JUDGE.variables,
        "template": f"{of_runs['template']}.{mode}",
    }
    sources = dict(log_place.copies)
    if options.judge:
        values |= judge_values(options.judge)
    if rubrics:
        values["rubrics"] = f"inputs/data/{name}/rubrics{rubric_file.suffix}"
        sources[values["rubrics"]] = rubric_file
    if labels:
        path = f"inputs/data/{name}/labels{options.labels.suffix.lower() or '.csv'}"
        sources[path] = options.labels
        values["label_file"] = path
    with collecting(problems):
        _meanings(options, labels, table, values, problems)
        if options.prompt:
            judge_prompt(options, values, problems)
    _refuse(problems, options)

    # All files are written together, so that nothing is left of a suite that cannot be.
    attributes = f"inputs/cassettes/{name}/.gitattributes"
    contents: dict[str, Any] = {**_texts(values, gate), attributes: _ATTRIBUTES}
    if not rubrics:
        contents[values["rubrics"]] = _filled("rubrics.yml", values, entries=entries)
    copies = []
    for to, source in sources.items():
        if os.path.realpath(folder / to) != os.path.realpath(source):
            copies.append(to)
            contents[to] = source.read_bytes()
    kept_files = []
    existing = []
    for file in [*contents]:
        if file in gate and _is_kept(folder / file, contents[file], force=options.force):
            kept_files.append(file)
            del contents[file]
        elif file not in {*_schemas(_CONFIGS), attributes} and (folder / file).exists():
            existing.append(Problem("already exists", str(folder / file)))
    if existing and not options.force:
        raise InputError([*existing, Problem("choose another name, or overwrite with --force")])
    _write(folder, contents)

    next_steps = _filled(
        "next.txt",
        values,
        here=folder == Path.cwd(),
        folder=str(folder),
        files=contents,
        parts=_PARTS,
        kept_files=kept_files,
        label_count=len(labels),
        copies=listed(copies, 6),
        gate=gate,
    )
    sys.stdout.write(visible(next_steps))
    return 0


def _refuse(problems: list[Problem], options: Namespace) -> None:
    """Refuse all of them together, with the command in which the user says what is not known."""
    asked = [problem.answer for problem in problems if problem.answer]
    asked += [f"--map {shlex.quote(word)}=MEANING" for word in options.unknown]
    if asked:
        answers = " ".join(dict.fromkeys(asked))
        command = f"python -m pytest_jrh {shlex.join(options.arguments)} {answers}"
        to_fill_in = re.findall(
            r"MEANING|\bCOL\b|\bONE\b|ID: TEXT|\bFIELD\b|\b(?:[A-Z]+_)?WORD\b", command
        )
        own = listed(dict.fromkeys(to_fill_in))
        own = own.replace("ONE", "ONE (violated or passed)")
        own = own.replace("MEANING", "MEANING (what the word means, see above)")
        message = f"Then run this{own and ', with your own values in place of '}{own}:"
        problems.append(Problem(message, hint=command))
    if problems:
        raise InputError(problems)


def _texts(values: Json, gate: Mapping[str, str]) -> dict[str, str]:
    """The texts of config, gate, schemas and prompt, by their paths in the folder."""
    has_labels = values["label"] or values["label_file"]
    texts = {
        values["config"]: _filled("labels.yml" if has_labels else "config.yml", values),
        **{file: _filled(text, values) for file, text in gate.items()},
        **_schemas(_CONFIGS),
    }
    if not values["code"]:
        prompt = resources.files("pytest_jrh.llm").joinpath("templates", f"{values['template']}.md")
        head = _filled("judge.head.md", values)
        texts[values["judge"]] = values["own_prompt"] or head + prompt.read_text("utf-8")
    return texts


def _is_kept(file: Path, text: str, *, force: bool) -> bool:
    """Whether a file of the project stays as it is: the gate of an earlier suite, or the jobs that
    a project has on GitLab, which are all in one file.
    """
    if not file.exists():
        return False
    is_ours = file.name != _GITLAB or file.read_text("utf-8", "replace").startswith(
        text.partition("\n")[0]
    )
    return not force or not is_ours


def _problems_of_names(options: Namespace, entries: Sequence[tuple[str, str]]) -> list[Problem]:
    """The entries are ids of rubrics and their texts, empty where they are to be filled in."""
    problems = _name_problems("NAME", options.name)
    if options.ordinal and any(text for _, text in entries):
        hint = "pass --rubric ID, and write text and levels into rubrics.yml; or pass --scale"
        message = "--rubric: --ordinal needs score levels, which a TEXT does not have"
        problems.append(Problem(message, hint=hint))
    if (options.label or options.labels) and not entries:
        message = (
            "--rubric: nothing says which rubric the labels are about; pass --rubric 'ID: TEXT'"
        )
        problems.append(Problem(message, answer="--rubric 'ID: TEXT'"))
    if (options.one or options.map) and not (options.label or options.labels or options.prompt):
        hint = "name the labels: --label COL, or --labels FILE"
        problems.append(
            Problem("--map and --one explain labels, but no option names the labels", hint=hint)
        )
    for rubric_id, times in Counter(rubric_id for rubric_id, _ in entries).items():
        problems += _name_problems("ID", rubric_id)
        if times > 1:
            problems.append(Problem(f"two rubrics have the id {shown(rubric_id)}"))
    return problems


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
    if re.fullmatch(_PLAIN, name):
        return []
    return [
        Problem(
            f"{argument}: got {shown(name)}; must be at most 64 letters, digits, `_`, `-` or "
            "`.`, must not begin with `-` or `.`, and must not end with `.`"
        )
    ]


def _filled(file: str, values: Json, **more: object) -> str:
    return render_text("cli/texts", file, {**values, **more})


def _write(folder: Path, contents: Mapping[str, bytes | str]) -> None:
    for file, content in contents.items():
        try:
            atomic_write(folder / file, content)
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror or error}", str(folder / file)
            ) from error


_SHOWN = ("request", "context", "response")
_KEYS = {"request": "messages", "response": "answer", "context": "context", "case": "id"}
"""The options that name a column, each with its key of `suite.format`."""
_PARTS = f"{' '.join(PART_NAMES.values())} {ROLES['case']} {IMAGES} epoch {CHOSEN} rejected"
_IN_BRACES = r"(?<![{$])\{([A-Za-z_]\w*)\}(?!\})"
_STYLES = (
    r"\{\{\s*([^\W\d][\w. ]*?)\s*\}\}",
    _IN_BRACES,
    r"(?<!\[)\[([^\W\d]\w*)\]",
    r"\$([^\W\d]\w*)",
)
"""The placeholders of templates; those in brackets may be titles instead."""
_CERTAIN = r"(?:<<\s*|\$\{|%\()([^\W\d][\w ]*?)(?:\s*>>|\}|\)s)"
_QUOTES = "`'\"*„“”«»"
_ON_OFFER = rf"(?:[{_QUOTES}]+\w[\w -]*[{_QUOTES}]+|[A-ZÀ-ÞΑ-ΩА-Я][A-ZÀ-ÞΑ-ΩА-Я_-]+)"
_REASON_FOLLOWS = (
    r"(?i)\b(?:then|after(?:wards| that| it)|next|followed by|danach|dann|ensuite|puis)\b"
    r"[^.\n]{0,30}\b(?:expl|reason|why|justif|because|sentence|begründ|erklär|satz|pourquoi|phrase|raison)"
)
_IF = r"\s+(?:if|when|wenn|falls|si|se)\b"
_THEN = (
    r"(?:\s*[,;/|]|,?\s+(?:or|oder|ou|o|lub|или)\b(?: \w+){0,2}?"
    r"|[.;,] *\n? *(?i:if|wenn|otherwise|else|sonst|sinon)\b[^.]{0,60}?)\s*"
)


def known_columns(
    options: Namespace, table: Table | None, problems: list[Problem]
) -> tuple[dict[str, str], InputFormat]:
    """The columns of the parts of an answer, and pointers to those that are named, or are found by
    a name like a known one; that there are several of these is a problem.

    Raises `InputError` for columns that are named and not there.
    """
    columns = {}
    for part in _SHOWN[:2] if options.of == "pairs" else _SHOWN:
        if table is None or table.results:
            break
        names = PART_NAMES[part]
        columns[part] = getattr(options, part) or "".join(columns_named(table, names)[:1])
        if not columns[part]:
            found = columns_like(table, names)
            columns[part] = "".join(found[:1])
            setattr(options, part, columns[part])
            if len(found) > 1:
                message = f"{' or '.join(map(shown, found))} may be the {part}"
                answer = f"--{part} COL"
                hint = f"choose one: {answer}"
                problems.append(Problem(message, table.file, hint=hint, answer=answer))
    known = () if table is None else table.columns
    pointers = {}
    missing = []
    for option in ("label", *_KEYS):
        column = getattr(options, option)
        if column and column not in known:
            # Of JSON it may be further down: human.ok, or /human/ok.
            place = f"/{column.removeprefix('/').replace('.', '/')}"
            if table is None or not table.at(place):
                message = "this file contains runs, which have no columns"
                hint = "if each line is a request with its answer, pass --of answers"
                if table is not None:
                    message = f"got {shown(column)}; the columns are {listed(map(shown, known))}"
                    hint = nearest_hint(column, known) or "name one of these columns"
                missing.append(Problem(message, str(options.log), None, f"--{option}", hint))
            setattr(options, option, column := place)
        if column and option in _KEYS:
            pointers[_KEYS[option]] = as_pointer(column)
    if missing:
        raise InputError([*problems, *missing])
    options.table_columns = known
    return columns, InputFormat.model_validate(pointers)


def labels_in(
    table: Table, column: str, options: Namespace, of_files: Json, problems: list[Problem]
) -> None:
    """Put into the values `of_files` what the values of a column of labels mean, None for no label,
    and what to say of them.

    Values that mean nothing are problems; words are those of `unknown`.
    """
    scale = options.answer_scale
    mapping = {**options.map}
    for word in options.one and BARE:
        # It is one of the prompt, which may mean the opposite.
        mapping.pop(word, None)
    values = Values(mapping, scale, options.one, None)
    unread: list[Problem] = []
    cells = table.at(column)
    texts = [*map(as_text, cells)]
    for value in cells:
        if isinstance(value, dict | list):
            raise InputError([several_values(value, column, "--label")])
    labels = values.read(table, column, texts, unread, is_verdict=False)
    without = (text for text, label in zip(texts, labels, strict=True) if text and label is None)
    unknown = dict.fromkeys(without)
    wrong = options.map.keys() & map(as_word, unknown)
    if unread and re.fullmatch(r"\D{1,200}", "".join(unknown)) and not wrong:
        options.unknown, unread = unknown, []
        message = f"{shown(column)} has {listed(map(shown, unknown))}; nothing says what each means"
        hint = f"map each word to {of_files['answers']}: --map WORD=MEANING"
        problems.append(Problem(message, hint=hint))
    # What a word of the prompt means may be said, too.
    asked = " ".join((options.verdict, *options.rubric, options.prompt_text))
    texts_seen = [*filter(None, values.seen[column])]
    for word in values.strangers():
        if word not in asked.casefold():
            message = f"{shown(word)} is not in the column {shown(column)}, which has only "
            message += listed(map(shown, texts_seen), 8)
            problems.append(Problem(message, key="--map", hint=nearest_hint(word, texts_seen)))
    with collecting(unread):
        values.refuse_unclear(table)
    problems += first_problems(unread, table.file, table.path)
    meanings = {}
    for text, label in zip(texts, labels, strict=True):
        if text:
            # A level has no word but its number; what is mapped to nothing, none at all.
            meanings[text] = label and (scale.words.get(label.score) or label.score)
    of_files["labelled"] = f"{column} ({sum(map(bool, labels)):,} of {counted(len(cells), 'row')})"
    if options.map or not scale.is_ordered:
        # Scores are read as they are.
        of_files["meanings"] = meanings


def judge_prompt(options: Namespace, values: Json, problems: list[Problem]) -> None:
    """Put into the values a prompt, with our names for its placeholders, and how its verdict is
    read.

    Placeholders that are no part of a run or an answer are problems, and that nothing says how the
    verdict is read.
    """
    file = str(options.prompt)
    text = options.prompt_text
    columns = values["columns"]
    names: dict[str, str] = {}
    places: dict[str, re.Match[str]] = {}
    for style in _STYLES:
        matches: dict[str, re.Match[str]] = {}
        for match in re.finditer(f"{style}|{_CERTAIN}", text):
            matches.setdefault(match[1] or match[2], match)
        variables = {name: _variable(name, columns) for name in matches}
        # Brackets may be titles above what is shown.
        if not places or len({*variables.values(), ""}) > len({*names.values(), ""}):
            names, places, placeholder = variables, matches, style
    unknown = [name for name, variable in names.items() if not variable]
    named = [part for part in _SHOWN if getattr(options, part) and part not in names.values()]
    if len(unknown) == len(named) == 1:
        names[unknown[0]] = named[0]
    for name, match in places.items():
        line, answer = text.count("\n", 0, match.start()) + 1, ""
        if not names[name]:
            message = f"unknown variable {match[0]}"
            choices = JUDGE.variables.difference(values["hidden"].split())
            hint = nearest_hint(name, choices) or f"the variables are {values['placeholders']}"
            if len(unknown) == 1 and columns and "context" not in names.values():
                near = [of for of in options.table_columns if words_of(of) & words_of(name) - {""}]
                answer = f"--context {shlex.quote(near[0]) if near else 'COL'}"
                hint = f"{'' if near else f'{hint}; '}for the context, name the column: {answer}"
        elif names[name] == "context" and not columns.get("context", True) and "{%" not in text:
            message, answer = f"{match[0]} shows a context, but no answer has one", "--context COL"
            hint = f"name the column of the context, {answer}, or remove {match[0]} from the prompt"
        else:
            continue
        problems.append(Problem(message, file, line, hint=hint, answer=answer))
    if not names:
        hint = f"write {values['placeholders']} where the judge should read each"
        message = f"the prompt does not show {values['an']} {values['one']} to the judge"
        problems.append(Problem(message, file, hint=hint))
    form = "{%s}" if placeholder == _IN_BRACES else "{{ %s }}"
    placeholder = f"{placeholder}|{_CERTAIN}"
    text = re.sub(placeholder, lambda match: form % names[match[1] or match[2]], text)
    values |= {"own_prompt": text, "names": names}
    values |= _verdict_values(text, options, values, problems)
    if names and all(names.values()):
        parse_prompt(text, file, stage=JUDGE.name, of=values["prompts_of"])


def _variable(name: str, columns: Mapping[str, str]) -> str:
    """What a placeholder is called here; empty where it is nothing that a judge is shown."""
    word = known_column(name.rpartition(".")[2])
    for variable, column in columns.items():
        if word == known_column(column.rpartition("/")[2]):
            return variable
    known = known_name(word) or "".join({word} & JUDGE.variables)
    found = [variable for variable, column in columns.items() if word in words_of(column)]
    return known or "".join(found if len(found) == 1 else ())


def _verdict_values(text: str, options: Namespace, values: Json, problems: list[Problem]) -> Json:
    """How the verdict is found in the text of an answer, and what it means; nothing where the
    prompt asks for our JSON with our scores.
    """
    scale = options.answer_scale
    pattern, file = options.verdict, str(options.prompt)
    try:
        JudgeStage.model_validate({"verdict": pattern})
    except ValidationError as error:
        message = f"--verdict: {received(pattern, error.errors()[0]['msg'])}"
        raise InputError(message) from None
    words = {*re.findall(r"\w+", text.casefold())}
    # Most people give a 1 to what is right.
    is_ours = values["mode"] != "binary" or "violat" in str(words)
    if not pattern and {"score", "reasoning", "json"} <= words and is_ours:
        return {}
    scores: Json = {}
    known = {word: word for word in scale.label_words}
    for value, meaning in {**known, **values["meanings"], **options.map}.items():
        word = as_word(value)
        if value in options.unknown:
            scores[word] = word
        # What 1 means in labels, it need not mean in a prompt.
        elif meaning not in (None, "") and (word not in BARE or value in options.map):
            try:
                score = label_value(meaning, scale)
            except NoLabelError as error:
                raise InputError(f"{word}: {error}", key="--map") from None
            scores[word] = scale.words[score] if scale.orders else score
    # An own pattern finds words that the prompt has anywhere; without an offer, those of --map.
    offered = [] if pattern or scale.is_ordered else _offered(text, scores)
    asked = f"{pattern} {text}" if pattern else text.strip().rpartition("\n\n")[2]
    said = {*re.findall(r"\w+", asked.casefold())}
    offered = offered or [
        word for word in (scores if pattern else options.map) if said >= {*word.split()}
    ]
    strangers = [word for word in offered if as_word(word) not in {**scores, **options.map}]
    scores = {word: scores[word] for word in map(as_word, offered) if word in scores}
    form = '"FIELD": "?(WORD|WORD)'
    if scale.is_ordered:
        scores, strangers = {str(score): score for score in scale.scores}, []
        form = '"FIELD": (\\d+)'
    ends = "|".join(map(re.escape, scores))
    # A field of JSON or element of XML, where the prompt has one; the first words, if reasons are
    # to follow; or the last line, alone or behind a name and a colon.
    pattern = pattern or rf'(?i)[<"]\w+(?:>|" *:)\W*({ends})(?=\s*["<,}}])'
    if not (options.verdict or re.search(pattern, text)):
        # Prompts that write OK: have a reason behind it.
        reason = ":.*|" if re.search(rf"(?i)({ends})\W?:", text) else ""
        head = rf'[^\w\n]*(?:\w[\w ]*["*]*[:=>{{]\W*)?({ends})'
        pattern = rf"(?im)^{head}(?:{reason}\W*</\w+>)?\W*\Z"
        if offered and re.search(_REASON_FOLLOWS, text.rpartition(offered[-1])[2]):
            pattern = rf"(?i)\A{head}(?=\W*?(?:[-.:,;!\u2013\u2014\n]|\Z))"
        if "json" in words:
            message = "nothing says where in the judge's answer the verdict is"
            answer = f"--verdict '{form}'"
            problems.append(Problem(message, file, hint=f"use {answer}", answer=answer))
    options.unknown |= dict.fromkeys(strangers)
    if strangers:
        message = (
            f"offers the words {listed(map(shown, offered))}, but nothing says what each word means"
        )
        hint = f"map each word to {' or '.join(scale.words.values())}: "
        hint += f"--map {shlex.quote(strangers[0])}=MEANING"
        problems.append(Problem(message, file, hint=hint))
    elif len({*scores.values()}) < len(scale.words):
        message = f"nothing says which words of the judge mean {' and '.join(scale.words.values())}"
        ways = " ".join(
            f"--map {meaning.upper()}_WORD={meaning}" for meaning in scale.words.values()
        )
        problems.append(Problem(message, file, hint=f"use {ways}", answer=ways))
    return {"pattern": pattern, "score_map": {} if scale.is_ordered else scores}


def _offered(text: str, known: Iterable[str]) -> list[str]:
    """The words that a prompt offers where it does so last: those in capitals or quotes, of which
    one is to be chosen, and `known` ones.
    """
    # Of two that begin alike the longer one comes first.
    words = "|".join(map(re.escape, sorted(known, reverse=True)))
    word = rf"(?<!\w)(?<!</)(?:(?i:{words})|{_ON_OFFER})(?!\w)"
    alone = rf'{word}(?! ?[:=]|>["\w])'
    bullet = (
        # - OK: it is right
        rf"(?m)^[ \t]*(?:[-*•]|\d+[.)]) +({word})"
        rf"(?: *[:=\u2013\u2014(-].*|{_IF}.*)?(?:\n[ \t]+[^\s*•-].*)*$"
    )
    text = re.sub(bullet, r"\1", text)
    offer = (
        # VERDICT: OK and VERDICT: BAD, or <verdict>OK</verdict>, wherever they stand.
        rf"(\w+[\"*]* ?[:=>][ *]*)({word})(?:[\s\S]{{1,300}}?\1(?!\2){alone})+"
        # A word in each line, then GOOD, FAIR or BAD, and GOOD if ..., otherwise BAD.
        rf"|(?m:^ *{alone}[ .]*(?:\n+ *{alone}[ .]*$)+)"
        rf"|{alone}(?:(?:{_IF}(?:.|\n(?!\n)){{1,200}}?)?{_THEN}{alone})+"
    )
    offers = [match[0] for match in re.finditer(offer, text)]
    choice = rf"(?m)(?:\A|{_THEN}|[:=>][ *]*|^ *)({alone})"
    found = re.findall(choice, "".join(offers[-1:]))
    return [*dict.fromkeys(each.strip(_QUOTES) for each in found)]
