"""The forms of transcripts, in one table; the files with transcripts below folders, and the runs of
several as those of one source.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

from pytest_jrh.core import (
    InputError,
    Json,
    Problem,
    counted,
    first_problems,
    listed,
    printable,
)
from pytest_jrh.core.cases import (
    DEFAULT_SEED,
    AgentRun,
    Message,
    Preprocessor,
    RunKey,
    RunSummary,
    Unscored,
)
from pytest_jrh.core.documents import DamagedError, as_text, other_kind
from pytest_jrh.core.files import LONGEST_HEAD
from pytest_jrh.core.sections import InputFormat, Of
from pytest_jrh.sources.agents import CLAUDE_CODE, CODEX
from pytest_jrh.sources.answers import ANSWERS, ONE_TURN, PAIRS, Answers
from pytest_jrh.sources.columns import CaseKey, Table, TextToLabel
from pytest_jrh.sources.conversations import (
    CONVERSATIONS,
    ITEMS,
    MESSAGES,
    ONE_CONVERSATION,
    guessed_format,
)
from pytest_jrh.sources.eval_logs import EvalLog
from pytest_jrh.sources.source import (
    NOT_SAID,
    Aliases,
    Conversation,
    Form,
    Head,
    RunFields,
    Source,
    Thread,
)
from pytest_jrh.sources.tables import read_table
from pytest_jrh.sources.traces import TRACES, Traces
from pytest_jrh.sources.transcripts import (
    ATIF,
    FILES_OF_A_TRIAL,
    HARBORS_FILES,
    MOST_NAMED,
    TRIAL,
    Transcripts,
    counted_once,
)

__all__ = ["Conversation", "Form", "Head"]

INSPECT = Form(
    "Inspect log",
    (".eval", ".json"),
    recognizes=lambda head: head.path.suffix.lower() == ".eval" or head.is_inspect_log,
    source=EvalLog,
)
FORMS = [
    CLAUDE_CODE,
    CODEX,
    TRACES,
    ITEMS,
    MESSAGES,
    ONE_CONVERSATION,
    CONVERSATIONS,
    ATIF,
    TRIAL,
    INSPECT,
]
"""The forms in the order in which they are asked; the last one says what a file is not."""
OF_CONVERSATIONS = (CONVERSATIONS, ONE_CONVERSATION)
"""The forms for which `input_format` has a meaning."""


def suffixes() -> Sequence[str]:
    """What the names of files with runs end in."""
    return tuple(dict.fromkeys(chain.from_iterable(form.suffixes for form in FORMS)))


def form_of(path: Path) -> Form | None:
    """The form of a file or a folder; None where it is of none."""
    head = Head(path)
    for form in FORMS:
        if form.fits(head):
            return form
    return None


def open_source(path: Path, *, input_format: InputFormat | None = None, of: Of = "runs") -> Source:
    """The source for a path, `of` runs, answers or pairs; nothing more is read before it is used.

    Raises InputError for what is neither a file nor a folder: reading a named pipe or a device
    might never end.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError("is neither a file nor a folder, so it is not read", path)
    form = form_of(path)
    if of == "answers":
        form = ONE_TURN if form is INSPECT else ANSWERS
    elif of == "pairs":
        form = PAIRS
    form = form or INSPECT
    return (form.source or Transcripts)(path, form, input_format=input_format)


def open_sources(
    paths: Sequence[Path], *, input_format: InputFormat | None = None, of: Of = "runs"
) -> Source:
    """The source for all that a suite names, `of` runs, answers or pairs.

    Raises InputError for a folder without transcripts.
    """
    files, notices = find_files(paths)
    sources = []
    traces = None
    for file in files:
        source = open_source(file, input_format=input_format, of=of)
        if isinstance(source, Traces):
            if traces is not None:
                # The spans of a trace may be in several files.
                traces.files.append(file)
                continue
            traces = source
        sources.append(source)
    return Joined(sources, notices)


def _has_transcripts(file: Path) -> bool:
    """Whether a file of a folder is meant: any by its name, but one that is called `.json` may be
    anything.
    """
    if file.suffix.lower() != ".json":
        return True
    form = form_of(file)
    return form is not None and (form is not CONVERSATIONS or '"role"' in Head(file).text)


def files_in(log: Path) -> Sequence[Path]:
    """The files that the runs of a file or a folder are read from.

    Raises InputError for a folder without transcripts.
    """
    files: list[Path] = []
    for file in find_files([log])[0]:
        parts = [file / name for name in FILES_OF_A_TRIAL] if file.is_dir() else [file]
        files += filter(Path.is_file, parts)
    return files


def format_of(files: Sequence[Path]) -> InputFormat | None:
    """Where the parts of conversations are in the first file that has some; None where it is as
    usual, or cannot be read: its source says what is wrong.
    """
    for file in files:
        form = form_of(file)
        if form in OF_CONVERSATIONS:
            with contextlib.suppress(DamagedError, InputError):
                return guessed_format(file, form)
    return None


def read_all(source: Source, log: Path) -> Iterator[tuple[RunSummary, Sequence[Message], str]]:
    """Read each run of a source: its messages, or why it has none that can be used.

    Raises InputError at the end where that is so of every run.
    """
    runs, causes = source.summaries(), []
    for run in runs:
        messages: Sequence[Message] = ()
        cause = ""
        try:
            if run.skip is None:
                messages = source.read(*run.key)[0].messages
            else:
                cause = f"The case {printable(run.run_id)}: {run.skip}."
        except Unscored as error:
            cause = f"{error.cause} {error.advice}"
        if cause:
            causes.append(cause)
        yield run, messages, cause
    if len(causes) == len(runs):
        raise InputError(
            f"no case can be used. {causes[0]}",
            log,
            hint="docs/logs.md describes the formats that are read",
        )


def table_in(
    path: Path, needed: Collection[str] = ("verdict",), *, with_text: bool
) -> Table | None:
    """A table, or the results of a tool; None for transcripts, whose source says what is wrong.

    What can be read as a table is one `with_text`, that of a column.
    """
    # Other JSON than that of messages is a table.
    form = form_of(path)
    is_flat = form in OF_CONVERSATIONS and '"role"' not in Head(path).text
    is_table = is_flat or not (path.is_dir() or form)
    try:
        table = read_table(path, needed)
    except InputError:
        if is_table:
            raise
        return None
    return table if is_table or table.results or with_text else None


def texts_of_runs(log: Path) -> tuple[list[TextToLabel], Sequence[str]]:
    """The messages of each run of a file or a folder, none of one that cannot be read, under the
    name that a label file means it by alone; and sentences about what was left out.

    Raises InputError where no run can be read.
    """
    texts = []
    with open_sources((log,), input_format=format_of(files_in(log))) as source:
        unclear_names = set[str]().union(*source.unclear_names().values())
        clear_names = {}
        for alias, (run_id, _) in source.aliases().items():
            if alias in unclear_names:
                clear_names[run_id] = alias
        for run, messages, _ in read_all(source, log):
            name = as_text(clear_names.get(run.run_id, run.run_id))
            texts.append(TextToLabel(CaseKey(name, "", run.epoch), messages))
        return texts, source.notices()


def load_inspect_eval_runs(
    path: str | Path,
    transcript_preprocessors: Sequence[str | Preprocessor] = (),
    *,
    sample_num: int | None = None,
    seed: int = DEFAULT_SEED,
) -> Iterator[AgentRun]:
    """Yield one run per sample and epoch of an Inspect log (`.eval`, `.json`), in the log's order.

    `transcript_preprocessors` run in order on a copy of each run; `sample_num` picks so many
    runs, the same for the same `seed`, and None or 0 means all. Raises InputError where the
    file is no usable log, at the first `next()`, and Unscored for a sample that cannot be read.
    """
    # It reads configs, whose shape is made once all kinds of judges and probes are known.
    from pytest_jrh.config.preprocessors import preprocessor_named as named
    from pytest_jrh.config.suite import sample

    steps = [named(step) if isinstance(step, str) else step for step in transcript_preprocessors]
    with EvalLog(path) as log:
        for summary in sample(log.summaries(), sample_num, seed):
            yield log.run(summary.key, steps)


MOST_FILES = 10_000
"""How many files a folder may stand for."""
# Of more files the one that was used longest ago is closed: a process may have but so many open.
_MOST_OPEN = 100
_Origin: TypeAlias = "tuple[int, str, int]"
"""The number of a file, and the id and epoch of a run in it."""
_Epochs: TypeAlias = "dict[str, dict[int, set[int]]]"
"""By the ids of runs, and the numbers of files with them, the epochs there."""


class Joined(Source):
    """Several files, each read with its own source, one after the other.

    An id that stands in several files at the same epoch stays as it is in the one that was begun
    first, and is followed by `@` and the file's name in the others; all other ids stay as they are.
    """

    def __init__(self, sources: Sequence[Source], notices: Sequence[str]) -> None:
        self._sources = sources
        self._files = [source.path for source in sources]
        self._lock = threading.RLock()
        # Those that may have an open file; the one that was used last is the last.
        self._open: list[int] = []
        self._notices = dict.fromkeys(notices)
        # By the numbers of the files, the first problem of each.
        self._unusable: dict[int, Problem] = {}
        self._full_names: dict[str, tuple[str, None]] = {}
        self._unclear: dict[str, Sequence[str]] = {}
        # The runs that are left out, each with the one that counts for it.
        self._holders: dict[_Origin, _Origin] = {}
        self.form_name = listed(dict.fromkeys(source.form_name for source in sources))

    def _source(self, number: int) -> Source:
        with self._lock:
            if number in self._open:
                self._open.remove(number)
            self._open.append(number)
            if len(self._open) > _MOST_OPEN:
                self._sources[self._open.pop(0)].close()
            return self._sources[number]

    def _all(self) -> Iterator[tuple[int, Source]]:
        """The files that can be used, each with its number."""
        for number in range(len(self._sources)):
            if number not in self._unusable:
                yield number, self._source(number)

    def summaries(self) -> Sequence[RunSummary]:
        """The runs of all files but those that cannot be used, which a notice names.

        Raises InputError with what is wrong with each where none can.
        """
        return [summary for _, summary in self._rows.values()]

    def fields(self) -> Iterator[RunFields]:
        names = self._names()
        for number, source in self._all():
            for run in source.fields():
                origin = (number, *run.key)
                if origin not in self._holders:
                    yield run._replace(key=names[origin])

    def _names(self) -> dict[_Origin, RunKey]:
        """The name of each run here; of one that is left out that of the run that holds it."""
        names = {origin: key for key, (origin, _) in self._rows.items()}
        for origin, holder in self._holders.items():
            names[origin] = names[holder]
        return names

    def aliases(self) -> Aliases:
        """See `Source`: those of the files, of which a name that two have is none, and the ids that
        several have, followed by the names of their files.
        """
        names = self._names()
        aliases: Json = dict(self._full_names)
        for number, source in self._all():
            for alias, (run_id, epoch) in source.aliases().items():
                key = None
                if epoch is not None:
                    key = names[number, run_id, epoch]
                if aliases.setdefault(alias, key) != key:
                    aliases[alias] = None
        return {alias: key for alias, key in aliases.items() if key is not None}

    def unclear_names(self) -> Mapping[str, Sequence[str]]:
        """See `Source`: where the files do not say which of them was begun first, one that is added
        may have taken the name; and those of what is left out.
        """
        names = self._names()
        unclear = dict(self._unclear)
        for origin in self._holders:
            number, run_id, epoch = origin
            for name in (run_id, f"{run_id}@{self._files[number].stem}"):
                if (name, epoch) not in self._rows:
                    unclear.setdefault(name, (names[origin][0],))
        return unclear

    def read(self, run_id: str, epoch: int, *, with_raw: bool = False) -> tuple[AgentRun, Any]:
        """Read a run of the file that it is in."""
        (number, id_there, _), _ = self._rows[run_id, epoch]
        run, raw = self._source(number).read(id_there, epoch, with_raw=with_raw)
        return replace(run, run_id=run_id), raw

    def notices(self) -> Sequence[str]:
        """What was found in all files so far."""
        notices = dict(self._notices)
        for source in self._sources:
            notices |= dict.fromkeys(source.notices())
        return [*notices]

    def close(self) -> None:
        """Close the files that are open."""
        for source in self._sources:
            source.close()

    @cached_property
    def _rows(self) -> dict[RunKey, tuple[_Origin, RunSummary]]:
        """Where each run is, and its summary as it is called here."""
        summaries = {}
        threads = {}
        for number, source in self._all():
            try:
                for run in source.summaries():
                    summaries[number, *run.key] = run
                for key, thread in source.threads().items():
                    threads[number, *key] = thread
            except InputError as error:
                problem = None
                if not isinstance(source, Answers):
                    problem = _not_of_runs(source.path)
                if len(self._sources) == 1:
                    raise InputError(problem or error.problems) from None
                # A run that was killed, or goes on, is no reason to do without the others.
                self._unusable[number] = problem or error.problems[0]
        if self._unusable:
            self._leave_out()
        runs = self._counted_once(summaries, threads)
        epochs: _Epochs = {}
        shared = {}
        for number, run_id, epoch in runs:
            of_id = epochs.setdefault(run_id, {})
            if any(epoch in of_file for of_file in of_id.values()):
                shared[run_id] = of_id
            of_id.setdefault(number, set()).add(epoch)
        ids = self._ids_here(shared) if shared else {}
        rows = {}
        for origin, summary in runs.items():
            number, run_id, _ = origin
            if run_id in shared:
                # The samples of one dataset, as a rule: what they share, their cases do.
                cluster = summary.cluster or run_id
                summary = replace(summary, run_id=ids[number, run_id], cluster=cluster)  # noqa: PLW2901
            if summary.key in rows:
                name = printable(summary.run_id)
                raise InputError(
                    f'two cases would be called "{name}"',
                    self._files[number],
                    hint="rename this file, or one of the two cases",
                )
            rows[summary.key] = (origin, summary)
        return rows

    def _counted_once(
        self, runs: Mapping[_Origin, RunSummary], threads: Mapping[_Origin, Thread]
    ) -> dict[_Origin, RunSummary]:
        """The runs that count; notices name the others, and those that are a cluster by what they
        repeat.
        """
        # Of two copies the one that did not fail comes first, and counts.
        threads = dict(sorted(threads.items(), key=lambda thread: thread[1].is_failed))
        copies = {origin: (origin[1:], thread.extra) for origin, thread in threads.items()}
        self._holders, related = counted_once(threads, copies)
        counted_runs, left_out, repeating = {}, [], []
        for origin, run in runs.items():
            if origin in self._holders:
                left_out.append(f"{run.run_id} ({self._files[origin[0]].stem})")
                continue
            if run.cluster is None and origin in related:
                run = replace(run, cluster=related[origin][1])  # noqa: PLW2901
                if run.run_id != run.cluster:
                    repeating.append(run.run_id)
            counted_runs[origin] = run
        self._note(left_out, "left out, because another case has all of the same messages")
        self._note(
            repeating, "with messages of another case, so each interval counts these cases as one"
        )
        return counted_runs

    def _note(self, run_ids: Sequence[str], message: str) -> None:
        if run_ids:
            self._notices[
                f"{counted(len(run_ids), 'case')} {message}: {listed(run_ids, MOST_NAMED)}"
            ] = None

    def _leave_out(self) -> None:
        """Note which files cannot be used; raises InputError where none can."""
        unusable = [*self._unusable.values()]
        if len(unusable) == len(self._sources):
            raise InputError(first_problems(unusable, ""))
        common = _common_folder(self._files)
        problems = []
        for problem in unusable[:MOST_NAMED]:
            file = os.path.relpath(problem.file or common, common)
            problems.append(str(replace(problem, file=file, hint=None)))
        self._notices[
            f"left out {counted(len(unusable), 'file')} that cannot be used: {'; '.join(problems)}"
        ] = None

    def _ids_here(self, shared: _Epochs) -> dict[tuple[int, str], str]:
        """The id here of each run whose id is `shared`, by its file and its id there.

        The files that say when they were begun come first, by that time: one file more changes the
        order of no others. Where not all say so, or two the same, the name of a run is unclear.
        """
        times = {number: source.created() for number, source in self._all()}
        order = sorted(times, key=lambda number: (times[number] == NOT_SAID, times[number]))
        labels = dict(zip(order, _labels([self._files[number] for number in order]), strict=True))
        stems = Counter(file.stem for file in self._files)
        full_labels = _labels(self._files, stems - Counter({*stems}), _common_folder(self._files))
        ids = {}
        for run_id, epochs in shared.items():
            taken = set[int]()
            holders = {run_id: sorted(epochs)}
            for number in filter(epochs.__contains__, order):
                ids[number, run_id] = run_id
                if taken & epochs[number]:
                    ids[number, run_id] = f"{run_id}@{labels[number]}"
                taken |= epochs[number]
            for number in sorted(epochs):
                self._full_names[f"{run_id}@{full_labels[number]}"] = (ids[number, run_id], None)
                holders.setdefault(f"{run_id}@{self._files[number].stem}", []).append(number)
            for name, numbers in holders.items():
                begun = sorted(map(times.__getitem__, numbers))
                if len(numbers) > 1 and begun[0] in (NOT_SAID, begun[1]):
                    full_names = [f"{run_id}@{full_labels[number]}" for number in numbers]
                    self._unclear[name] = full_names
        example = next(new_id for (_, run_id), new_id in ids.items() if new_id != run_id)
        self._notices[
            f"{counted(len(shared), 'case id')} found in more than one file; in each file but the "
            f"first, the file's name is added to the id, as in {printable(example)}"
        ] = None
        return ids


def _not_of_runs(file: Path) -> Problem | None:
    """Say what a file is that could not be read, where it is none of runs at all."""
    if not file.is_file():
        return None
    head, suffix, problem = b"", file.suffix.lower(), None
    with contextlib.suppress(OSError), file.open("rb") as opened:
        head = opened.read(LONGEST_HEAD)
    # A log of Inspect is an archive, and its reader says what is wrong with one.
    if suffix != ".eval" or not head.startswith(b"PK"):
        problem = other_kind(head, str(file))
    if problem is None and suffix not in suffixes():
        name = shlex.quote(str(file))
        hint = f"files of runs end in {', '.join(suffixes())}; if this file is a table, run "
        hint += f"python -m pytest_jrh label {name} or python -m pytest_jrh check {name}"
        return Problem("is not a file of runs in a known format", str(file), hint=hint)
    return problem


def _labels(files: Sequence[Path], unclear: Iterable[str] = (), common: str = "") -> list[str]:
    """Name each file by its stem, where it is not `unclear` and none before it has it, else by its
    path from where they and what is `common` part: files that follow change no name.
    """
    labels = []
    stems = {*unclear}
    for file in files:
        folder = str(file.absolute().parent)
        common = os.path.commonpath([common or folder, folder])
        label = file.stem
        if label in stems:
            label = file.absolute().relative_to(common).as_posix()
        labels.append(label)
        stems.add(file.stem)
    return labels


def _common_folder(files: Sequence[Path]) -> str:
    return os.path.commonpath([file.absolute().parent for file in files])


def find_files(paths: Sequence[Path]) -> tuple[Sequence[Path], Sequence[str]]:
    """List the files that the paths stand for, each once, and sentences about what was left out.

    A file stands for itself, a folder for all below it whose names end in one of the `suffixes`
    and that have transcripts. The folder of a trial of Harbor is one of the files. Hidden files are
    left out, and links to folders are not followed. Raises InputError for a folder without
    transcripts, or with too many.
    """
    files: dict[str, Path] = {}
    notices = []
    for path in paths:
        if not path.is_dir() or form_of(path) is TRIAL:
            files.setdefault(os.path.realpath(path), path)
            continue
        try:
            inside = [*islice(_inside(path), MOST_FILES + 1)]
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", error.filename) from None
        if len(inside) > MOST_FILES:
            raise InputError(
                f"is a folder with more than {MOST_FILES:,} files of runs; name smaller folders",
                path,
            )
        left_out = []
        for file in inside:
            if file.is_dir() or _has_transcripts(file):
                files[os.path.realpath(file)] = file
            else:
                left_out.append(str(file.relative_to(path)))
        if left_out:
            notices.append(
                f"{path.name}: left out {counted(len(left_out), 'file')} without transcripts: "
                f"{listed(left_out, MOST_NAMED)}"
            )
        if len(inside) == len(left_out):
            raise InputError(
                f"is a folder with no file of runs; files of runs end in {', '.join(suffixes())}",
                path,
            )
    return [*files.values()], notices


def _inside(folder: Path) -> Iterator[Path]:
    """The files and trials below a folder, in order; raises `OSError` as it comes."""
    shown = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    folders = {path for path in shown if path.is_dir() and not path.is_symlink()}
    trials = {path for path in folders if form_of(path) is TRIAL}
    for path in shown:
        if path in trials:
            yield path
        elif path in folders:
            yield from _inside(path)
        # A link that leads nowhere is a log that is missing.
        elif path.is_file() or not path.exists():
            is_harbors = trials and path.name in HARBORS_FILES
            if path.suffix.lower() in suffixes() and not is_harbors:
                yield path
