"""The one way in which files with transcripts in JSON are read, whatever their form; and which of
their conversations go on from others.

A file has a conversation in each line, or in each item of a JSON list, or it is one. It is indexed
once, and each conversation is read when it is asked for: one at a time is in memory. A request to a
model repeats the conversation so far, so that each in a log looks like a conversation of its own.

ATIF trajectories, the format of Harbor, need more than a function of their JSON: their files are
named by their folders, and the folder of a trial is a run.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import re
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pytest_jrh.core import (
    MOST_PROBLEMS,
    Fields,
    InputError,
    Json,
    Problem,
    counted,
    grouped,
    listed,
    printable,
    received,
    short_digest,
    storable,
)
from pytest_jrh.core.cases import AgentRun, RunKey, RunSummary, Skip
from pytest_jrh.core.documents import DamagedError, dotted, inside, parsed
from pytest_jrh.core.files import read_head
from pytest_jrh.core.transcript import message_text, unshown_in
from pytest_jrh.sources.chat import fields_of, first_in, read_message, read_messages
from pytest_jrh.sources.source import (
    BOM,
    Conversation,
    Form,
    Head,
    RunFields,
    Source,
    Thread,
    at,
    changed_note,
    elements,
)

_DIGEST = 12
_NAME_EACH = (
    "give each an id or epoch of its own; to join two fields as an id, set suite.format: "
    "{id: [/task, /trial]}"
)
_BLANK = b" \t\r\n" + BOM
MOST_NAMED = 5
"""How many runs a notice names."""


class Item(NamedTuple):
    """One conversation in its file: its bytes, and its line (`number`) or place in the list."""

    start: int
    end: int
    number: int


class _Row(NamedTuple):
    """What collection knows of a conversation; `has_id` is False for an id made of its messages."""

    item: Item
    sample_id: int | str
    has_id: bool
    summary: RunSummary


class Transcripts(Source):
    """The conversations of a file."""

    def _prepare(self) -> None:
        self._threads: dict[RunKey, Thread] = {}
        self._file = self.path
        self._is_whole = self._form.is_whole

    def conversation(self, value: Any) -> Conversation:
        """What the form makes of the JSON of a conversation; raises DamagedError."""
        with inside():
            return self._form.conversation(value)

    def summaries(self) -> Sequence[RunSummary]:
        """One summary for each conversation, in the file's order.

        Raises InputError with the lines of the first mistakes: no JSON, no messages, an unusable
        id, or one that another conversation has.
        """
        return [row.summary for row in self._rows.values()]

    def fields(self) -> Iterator[RunFields]:
        """See `Source`: each conversation is parsed once more, and its messages are not read."""
        for key, row in self._rows.items():
            conversation = Conversation(())
            # What is damaged has nothing, as its cases will say.
            with contextlib.suppress(DamagedError):
                conversation = self.conversation(self._value(self._bytes(row.item)))
            yield RunFields(key, conversation.metadata, conversation.scores)

    def values(self) -> Iterator[Any]:
        """The JSON of each conversation; raises InputError and DamagedError."""
        for _, data in self._items():
            yield self._value(data)

    def read(self, run_id: str, epoch: int, *, with_raw: bool = False) -> tuple[AgentRun, Any]:
        """Read one conversation: the run, and if `with_raw` its JSON.

        Raises Unscored (`input_error`) where it has changed, or its messages cannot be read.
        """
        key = (run_id, epoch)
        row = self._rows[key]
        try:
            value = self._value(self._bytes(row.item))
            conversation = self.conversation(value)
            if self._row(row.item, conversation) != row:
                raise DamagedError("the file has changed since its cases were collected")
            messages, unusual = read_messages(conversation.messages, conversation.system)
        except DamagedError as error:
            raise self._unreadable(
                key,
                f"{self._place(row.item)}: {printable(error, 300)}",
                "Fix the conversation, or remove it.",
            ) from error
        stored: Json = {
            "messages": messages,
            "input": conversation.input,
            "target": conversation.target or "",
            "metadata": dict(conversation.metadata),
        }
        clean, changed = storable(stored)
        self._unshown[key] = unshown_in(clean["messages"])
        for oddity in unusual:
            self._notices[f"some conversations have {oddity}, and are kept as they are"] = None
        if clean["input"] is None:
            of_user = (message for message in clean["messages"] if message["role"] == "user")
            clean["input"] = message_text(next(of_user, {}))
        notes = (*unusual, *changed_note(changed))
        run = AgentRun(*key, **clean, sample_id=row.sample_id, notes=notes)
        return run, value if with_raw else None

    @cached_property
    def _rows(self) -> dict[RunKey, _Row]:
        rows: dict[RunKey, _Row] = {}
        repeated = []
        problems = []
        for item, data in self._items():
            try:
                conversation = self.conversation(self._value(data))
                row = self._row(item, conversation)
                key = row.summary.key
                first = rows.setdefault(key, row)
                if first is not row and conversation.is_request and not row.has_id:
                    repeated.append(f"{self._place(item)} (as {self._place(first.item)})")
                elif first is not row:
                    earlier, (run_id, epoch) = self._place(first.item), key
                    message = f"has the same id {printable(run_id)!r} (epoch {epoch}) as {earlier}"
                    if not row.has_id and not first.has_id:
                        message = f"is the same conversation as {earlier}, and neither has an id"
                    raise DamagedError(message, _NAME_EACH)
                # Where that fails, its cases will say what is wrong with a message.
                with contextlib.suppress(DamagedError), inside():
                    self._threads[key] = _thread(conversation)
                self._notices |= dict.fromkeys(conversation.notices)
            except DamagedError as error:
                problems.append(self._problem(item, data, error))
            if len(problems) == MOST_PROBLEMS:
                break
        if problems:
            raise InputError(problems)
        if not rows:
            raise InputError("has no conversation, only an empty list or blank lines", self.path)
        if repeated:
            self._notices[
                f"left out {counted(len(repeated), 'request')} with the messages of earlier ones: "
                f"{listed(repeated, MOST_NAMED)}"
            ] = None
        return rows

    def threads(self) -> Mapping[RunKey, Thread]:
        """See `Source`; a conversation whose messages cannot be read has none."""
        # The rows are read first, and threads with them.
        return self._threads if self._rows else {}

    def _row(self, item: Item, conversation: Conversation) -> _Row:
        sample_id, has_id = conversation.id, True
        if sample_id is None and self._is_whole:
            path = self.path.resolve()
            # All trajectories of Harbor have one name.
            sample_id = path.parent.name if path.name == _TRAJECTORY.name else path.stem
        elif sample_id is None:
            # The same wherever in a file it stands.
            text = json.dumps(conversation.messages, sort_keys=True, separators=(",", ":"))
            sample_id, has_id = short_digest(text, _DIGEST), False
        skip = None
        if not conversation.messages:
            skip = Skip("no_messages", conversation.no_messages)
        run_id, cluster = storable(str(sample_id))[0], storable(conversation.cluster)[0]
        return _Row(item, sample_id, has_id, RunSummary(run_id, conversation.epoch, skip, cluster))

    @property
    def _is_list(self) -> bool:
        return Head(self._file).begins_list

    def _items(self) -> Iterator[tuple[Item, bytes]]:
        """Each item with its bytes.

        Raises InputError for a file that cannot be read or split, naming the line.
        """
        try:
            if not self._file.stat().st_size:
                raise InputError("is an empty file", self._file)
            with (
                self._file.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
            ):
                bounds: Iterable[tuple[int, int]] = _lines(data)
                if self._is_whole:
                    bounds = [(0, len(data))]
                elif self._is_list:
                    bounds = elements(data)
                for number, (start, end) in enumerate(bounds, start=1):
                    item = Item(start, end, number)
                    if too_big := self._too_big(end - start):
                        raise InputError(f"{self._place(item)} is {too_big}", self._file)
                    if data[start:end].strip(_BLANK):
                        yield item, data[start:end]
        except DamagedError as error:
            raise InputError(
                f"begins with [, so it was read as a JSON list, but {error}",
                self._file,
                hint="if it is damaged, copy it again; if each line is an object, name it .jsonl",
            ) from None
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", self._file) from None

    def _bytes(self, item: Item) -> bytes:
        try:
            with self._file.open("rb") as file:
                file.seek(item.start)
                return file.read(item.end - item.start)
        except OSError as error:
            raise DamagedError(f"cannot be read: {error.strerror or error}") from None

    def _value(self, data: bytes) -> Any:
        """The JSON of an item; of a file that is one conversation in lines, the list of theirs."""
        if not (self._is_whole and Head(self._file).is_lines):
            return parsed(data)
        values = []
        rows = numbered(data)
        for number, row in rows:
            try:
                value = parsed(row)
                if not isinstance(value, dict):
                    raise DamagedError(received(value, 'an object with a "type"'))
            except DamagedError as error:
                error.line = number
                if number == rows[-1][0] and not data.endswith(b"\n"):
                    error.hint = (
                        "the line is cut off: copy the session again when it has ended, or remove "
                        "this line"
                    )
                raise
            values.append(value)
        return values

    def _place(self, item: Item) -> str:
        if self._is_whole:
            return "its conversation"
        if self._is_list:
            return f"item {item.number}"
        return f"line {item.number}"

    def _problem(self, item: Item, data: bytes, error: DamagedError) -> Problem:
        """What is wrong with an item, with its line, or where it is known the line in it."""
        path, line = error.path, error.line
        key = dotted(path)
        if not self._is_whole and not self._is_list:
            line = item.number
        elif not self._is_whole:
            key = ", ".join(filter(None, (f"item {item.number}", key)))
        elif Head(self._file).is_lines and path and isinstance(path[0], int):
            line, key = numbered(data)[path[0]][0], dotted(path[1:])
        text = f"{error}".replace("a field", f'was read as "{self.form_name}", but a field')
        return Problem(text, f"{self._file}", line, key or None, error.hint)


def _thread(conversation: Conversation) -> Thread:
    """What a conversation repeats; raises DamagedError."""
    turns = [(message, keys_of(message)) for message in conversation.messages]
    opening = conversation.opening
    if opening is None:
        opening = len(turns) - 1
    extra = json.dumps([conversation.metadata, conversation.target], sort_keys=True)
    return thread_of(turns, opening)._replace(is_request=conversation.is_request, extra=hash(extra))


_PLAIN = {"role", "content"}
_NO_MEDIA = ("text", "reasoning")


def keys_of(turn: Any) -> list[str]:
    """What tells a message from others, calls last: some repeat them without the text, and each API
    writes an answer otherwise than the request that repeats it. Raises DamagedError.
    """
    messages = [turn]
    is_plain = turn.keys() == _PLAIN and turn["role"] in ("user", "assistant")
    # Most messages are plain, and reading them takes long.
    if not is_plain or not isinstance(turn["content"], str):
        messages = read_message(turn)
    keys = []
    for message in messages:
        content, text, media = message["content"], message_text(message).strip(), []
        if isinstance(content, list):
            media = [block for block in content if block["type"] not in _NO_MEDIA]
        calls = message.get("tool_calls", ())
        if text or media or not calls:
            keys.append(repr((message["role"], message.get("tool_call_id"), text, *media)))
        keys += map(repr, calls)
    return keys


def is_system(role: str) -> bool:
    """Whether a role is that of instructions."""
    return role in ("system", "developer")


def thread_of(turns: Iterable[tuple[Fields, Sequence[str]]], opening: int) -> Thread:
    """The thread of messages, each with its keys, of which `opening` were there when it
    began. System prompts are left out: many say the time.
    """
    digest, former = 0, ""
    is_asked = is_answered = False
    beginnings = array("q")
    for number, (message, keys) in enumerate(turns):
        role = message["role"]
        if is_system(role):
            continue
        # A request has something new after the last answer.
        if former and number <= opening and not former == role == "assistant":
            beginnings.append(digest)
        for key in keys:
            digest = hash((digest, key))
        former = role
        is_asked |= role == "user"
        is_answered |= is_asked and role == "assistant"
    return Thread(beginnings, digest, is_answered)


Links = dict[Any, Any]
"""From threads to others, by what names them."""


def linked(threads: Mapping[Any, Thread], groups: Mapping[Any, Hashable]) -> tuple[Links, Links]:
    """Which of its group each thread goes on from, and which it only repeats."""
    ends: dict[tuple[Hashable, int], Any] = {}
    repeated = {}
    former = {}
    for name, thread in threads.items():
        first = ends.setdefault((groups[name], thread.digest), name)
        if first != name:
            repeated[name] = first
    for name, thread in threads.items():
        for digest in reversed(thread.beginnings):
            first = ends.get((groups[name], digest), name)
            if first != name:
                former[name] = first
                break
    return former, repeated


def counted_once(
    threads: Mapping[Any, Thread], copies: Mapping[Any, Hashable]
) -> tuple[Links, Links]:
    """Which threads are left out, each with the one that holds it; and of those that are no
    independent observations the first of their cluster.

    A run is stored again, or as it was before; `copies` are what such copies have alike. A request
    that another one repeats is no run of its own. What else begins with the whole of another is of
    its cluster.
    """
    former, repeated = linked(threads, copies)
    # By what is left out, what holds it.
    holders = {first: name for name, first in former.items()} | repeated
    # All that counts is compared, whatever its name.
    groups = dict.fromkeys(threads) | {name: name for name in holders}
    former, repeated = linked(threads, groups)
    origins = {}
    for name, first in (former | repeated).items():
        if threads[first].is_answered:
            origins[name] = first
        if threads[first].is_request and name not in repeated:
            holders[first] = name
        elif threads[name].is_request and threads[name].is_answered:
            holders[name] = first
    clusters = grouped((end_of(origins, name), name) for name in threads if name not in holders)
    related: Links = {}
    for first, members in clusters.items():
        if len(members) > 1:
            related |= dict.fromkeys(members, first)
    return {name: end_of(holders, name) for name in holders}, related


def end_of(links: Links, name: Any) -> Any:
    """Where the links from a thread end."""
    while name in links:
        name = links[name]
    return name


def _lines(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        yield start, end
        start = end


def numbered(data: bytes) -> list[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    rows = enumerate(data.split(b"\n"), start=1)
    return [(number, row) for number, row in rows if row.strip(_BLANK)]


_TRAJECTORY = Path("agent", "trajectory.json")
_RESULT = "result.json"
# Of the files beside Harbor's trials, these hold no run.
HARBORS_FILES = {_RESULT, "config.json", "lock.json"}
FILES_OF_A_TRIAL = (_TRAJECTORY, _RESULT)
_SAYS_ATIF = r'"\s*+:\s*+"ATIF-v|"steps"\s*+:\s*+\[\s*+\{\s*+"step_id"'
_VERSION = r"ATIF-v1\.[0-8]"
_ROLES = {"system": "system", "user": "user", "agent": "assistant"}
_FIELDS_OF_STEPS_AND_RESULTS = (
    "step_id timestamp source model_name reasoning_effort message extra reasoning_content "
    "tool_calls observation metrics is_copied_context llm_call_count source_call_id content "
    "subagent_trajectory_ref"
)
_NAMES = ("trajectory_id", "trajectory_path", "session_id")
_OF_A_TRIAL = ("trial_name", "task_name", "source")
_OF_A_RUN = ("session_id", "trajectory_id", "notes", "final_metrics", "extra")


def is_trajectory(head: Head) -> bool:
    """Whether a file says that it is ATIF, of any version."""
    return head.text.startswith("{") and re.search(_SAYS_ATIF, head.text) is not None


def is_trial(folder: Path) -> bool:
    """Whether a folder is one of Harbor's for a single trial: of a job there are several."""
    if is_trajectory(Head(folder / _TRAJECTORY)):
        return True
    result, config = read_head(folder / _RESULT), read_head(folder / "config.json")
    has_result = '"trial_name"' in result and '"task_name"' in result
    # A trial that is running, or was ended from outside, has no result.
    is_begun = '"trial_name"' in config and '"trials_dir"' in config
    return is_begun or (has_result and '"n_total_trials"' not in result)


def trajectory(value: Any) -> Conversation:
    """Read a trajectory; raises DamagedError."""
    if not re.fullmatch(_VERSION, str(value.get("schema_version"))):
        raise DamagedError("schema_version: must be from ATIF-v1.0 to ATIF-v1.8")
    steps, agent = value["steps"], value["agent"]
    if value.get("continued_trajectory_ref") is not None:
        raise DamagedError(
            "continued_trajectory_ref: the rest is in another file, which is not read"
        )
    turns = []
    for number, step in enumerate(steps):
        with inside("steps", number):
            turns_of_step = list(_turns_of(step))
            read_messages(turns_of_step)
        turns += turns_of_step
    metadata = {"agent": {key: agent[key] for key in agent if key != "tool_definitions"}}
    metadata |= fields_of(value, _OF_A_RUN)
    run_id = value.get("trajectory_id") or value.get("session_id") or ""
    return Conversation(messages=turns, id=str(run_id) or None, metadata=metadata)


def _turns_of(step: Json) -> Iterator[Json]:
    """The messages of a step; raises what comes, where it is not as ATIF has it."""
    calls = step.get("tool_calls") or []
    results = at(step, "/observation/results") or []
    if unknown := {*step}.union(*results).difference(_FIELDS_OF_STEPS_AND_RESULTS.split()):
        raise DamagedError(f"has unknown fields: {listed(map(json.dumps, sorted(unknown)), 5)}")
    role, content = _ROLES[step["source"]], _chat_content(step["message"])
    names, tool_calls = {}, []
    for call in calls:
        call_id, name = call["tool_call_id"], call["function_name"]
        names[call_id] = name
        tool_calls.append({"id": call_id, "name": name, "arguments": call["arguments"]})
    yield {
        "role": role,
        "content": content,
        "tool_calls": tool_calls,
        "reasoning_content": step.get("reasoning_content"),
        "extra": step.get("extra"),
    }
    for result in results:
        call_id = result.get("source_call_id")
        if call_id is None and len(calls) == len(results) == 1:
            call_id = calls[0]["tool_call_id"]
        content = result.get("content")
        if content is None:
            lines = []
            for reference in result.get("subagent_trajectory_ref") or ():
                name = first_in(reference, _NAMES) or "unnamed"
                lines.append(f"[subagent: {name}]")
            content = "\n".join(lines)
        yield {
            "role": "tool",
            # Without an id it would be taken for the result of any call that has none yet.
            "tool_call_id": call_id or "",
            "name": names.get(call_id),
            "content": _chat_content(content),
            "extra": result.get("extra"),
        }


def _chat_content(content: str | list[Json]) -> str | list[Json]:
    if isinstance(content, str):
        return content
    parts = []
    for part in content:
        kind = part["type"]
        if "source" in part:
            part = {"type": kind, kind: part["source"]["path"]}  # noqa: PLW2901
        parts.append(part)
    return parts


class Trial(Transcripts):
    """The folder of a trial of Harbor: its name is the id of the run, its task the cluster, its
    rewards are the scores.
    """

    def _prepare(self) -> None:
        super()._prepare()
        self._file = self.path / _TRAJECTORY

    def conversation(self, value: Any) -> Conversation:
        result, rewards = self._result
        metadata = fields_of(result, _OF_A_TRIAL)
        task = filter(None, (result.get("source"), result.get("task_name")))
        with inside():
            run = trajectory(value)
        return replace(
            run,
            id=str(metadata.get("trial_name") or self.path.resolve().name),
            cluster="/".join(map(str, task)) or None,
            metadata={**metadata, **run.metadata},
            scores=rewards,
        )

    @cached_property
    def _result(self) -> tuple[Json, Json]:
        """What the trial came to, and its rewards."""
        file = self.path / _RESULT
        if not file.is_file():
            return {}, {}
        try:
            with inside():
                result = parsed(self._bytes_of(file))
                rewards = dict(at(result, "/verifier_result/rewards") or {})
        except DamagedError as error:
            raise InputError(
                f"was read as the result of a Harbor trial, but {error}",
                file,
                hint="if the file is damaged, copy it again",
            ) from None
        return result, rewards


ATIF = Form("ATIF trajectory", (".json",), trajectory, is_trajectory, is_whole=True)
TRIAL = Form(
    "ATIF trajectory",
    (),
    trajectory,
    lambda head: head.path.is_dir() and is_trial(head.path),
    is_whole=True,
    source=Trial,
)
