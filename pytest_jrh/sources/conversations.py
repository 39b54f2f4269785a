"""Conversations in JSON: where in it are the messages, the id and the rest, as the config's
`format` says, or where they usually are.

For a file of another shape, the places of these parts are guessed, for `init` to propose.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from pytest_jrh.core import Json, listed, printable, shown
from pytest_jrh.core.documents import DamagedError, inside, pointer_to
from pytest_jrh.core.sections import InputFormat
from pytest_jrh.sources.agents import ITEM_TYPES, LOG_ITEMS, Item, turns_of, with_items_read
from pytest_jrh.sources.chat import is_chat, json_text
from pytest_jrh.sources.source import (
    BRACKET,
    LINES,
    Conversation,
    Form,
    Head,
    at,
    mapping,
    names_in,
)
from pytest_jrh.sources.transcripts import Transcripts, keys_of

KEY = "suite.format"
_ANSWER = "/response/choices/0/message"
_UNREAD_ANSWER = (
    "in some conversations, the answer beside the messages is not read (to add this answer, set "
    f"`{KEY}: {{answer: {_ANSWER}}}`, or the pointer to its place)"
)
_ANSWER_BESIDE = (
    "the answer in `output` or `completion` beside the messages is the last turn of some "
    f"conversations (to leave it out, set `{KEY}: {{messages: /messages}}`)"
)
_NO_ANSWER = (
    "some conversations end with the request, because no answer was found (to add the answer, "
    f"set `{KEY}: {{answer: /POINTER}}`)"
)
_KEPT_BY_PROVIDER = {
    "previous_response_id": "refers to a response whose items are not in the file",
    "conversation": "refers to items that the provider keeps, and that are not in the file",
}
_DEEPEST = 4


def conversation(value: Any, pointers: InputFormat | None = None) -> Conversation:
    """Read a conversation; raises DamagedError."""
    pointers = pointers or InputFormat()
    reader = _Reader(value, pointers)
    is_log = reader.is_logged or isinstance(at(value, "/response"), dict)
    return Conversation(
        messages=reader.messages(),
        id=reader.name(pointers.id, "id"),
        cluster=json_text(reader.name(pointers.cluster, "cluster")) or None,
        epoch=reader.epoch(),
        system=reader.system(),
        input=reader.text(pointers.input, "input"),
        target=reader.text(pointers.target, "target"),
        metadata=reader.metadata(),
        notices=tuple(reader.notices),
        # A line of a proxy's log, under an id that nobody has chosen.
        is_request=is_log and pointers.id is None,
    )


class _Reader:
    def __init__(self, value: Any, pointers: InputFormat) -> None:
        self.notices: dict[str, None] = {}
        self._value = value
        self._pointers = pointers
        self.items = None
        # A request with its answer, as proxies of the APIs log them.
        self.is_logged = False
        if pointers.messages is None:
            self.items = items_of(value)
            has_messages = at(value, "/messages") is not None
            self.is_logged = isinstance(at(value, "/request/messages"), list) and not has_messages

    def messages(self) -> list[Any]:
        """The messages as they stand in the file, with the answer that stands beside them."""
        value, pointer = self._value, self._pointers.messages
        if self.items is not None:
            return turns_of(self.items)
        if pointer is None:
            pointer = "/messages"
            if self.is_logged:
                pointer = "/request/messages"
            elif isinstance(value, list):
                pointer = ""
        messages = at(value, pointer)
        if not isinstance(messages, list):
            problem = f"has {shown(messages)} in place of a list of messages"
            if messages is None:
                problem = "has no list of messages"
            places = places_of_messages(value)
            hint = f"set {KEY}: {{messages: {places[0]}}}, which has messages" if places else None
            problem += f" at {pointer or 'the top'}; {_keys(value)}"
            raise DamagedError(problem, hint)
        messages = with_items_read(messages, tuple(names_in(pointer)))
        answer, logged = self._answer(), at(value, _ANSWER)
        # Where that fails, its cases will say what is wrong with a message.
        with contextlib.suppress(DamagedError), inside():
            last = messages[-len(answer) :] if answer else []
            if [*map(keys_of, last)] == [*map(keys_of, answer)]:
                answer = []
        messages += answer
        if isinstance(logged, dict) and logged not in messages:
            self.notices[_UNREAD_ANSWER] = None
        return messages

    def _answer(self) -> list[Any]:
        """The last turn, where it stands beside the messages: at its pointer, as the answer to a
        logged request, or in `output` or `completion`.
        """
        value, pointer = self._value, self._pointers.answer
        if pointer is not None:
            answer = at(value, pointer)
            turns = _as_turns(answer)
            return [answer] if turns is None else turns
        if self.is_logged:
            turns = _as_turns(at(value, "/response"))
            if not turns:
                self.notices[_NO_ANSWER] = None
            return turns or []
        if self._pointers.messages is not None:
            return []
        for key in ("output", "completion"):
            answer = at(value, f"/{key}")
            turns = _as_turns(answer)
            if turns:
                self.notices[_ANSWER_BESIDE] = None
                return turns
            if turns is None and isinstance(answer, dict | list):
                self.notices[_UNREAD_ANSWER] = None
        return []

    def _part(self, pointer: str | None, key: str, *, needed: bool = False) -> Any:
        """What stands at a pointer, or without one under the key's own name; None for nothing,
        which is noted where there is a pointer, or is a mistake where it is `needed`.
        """
        part = at(self._value, f"/{key}" if pointer is None else pointer)
        if part is None and pointer is not None:
            nothing = f"nothing at {pointer}, which {KEY}.{key} names"
            if needed:
                raise DamagedError(f"has {nothing}; {_keys(self._value)}")
            self.notices[f"some conversations have {nothing}"] = None
        return part

    def name(self, pointers: Sequence[str] | None, key: str) -> int | str | None:
        """The texts and integers that make an id or a cluster, joined; a number alone stays one."""
        parts = []
        for pointer in pointers or (None,):
            part = self._part(pointer, key, needed=True)
            if part is None:
                continue
            if isinstance(part, bool) or not isinstance(part, int | str) or part == "":
                problem = f"has {shown(part)} as its {key} (at {pointer or f'/{key}'})"
                raise DamagedError(f"{problem}, which must be text or an integer")
            parts.append(part)
        return parts[0] if len(parts) == 1 else "-".join(map(str, parts)) or None

    def epoch(self) -> int:
        """The number of a repeated trial."""
        epoch = self._part(self._pointers.epoch, "epoch", needed=True)
        if epoch is None:
            return 1
        if type(epoch) is not int or epoch < 0:
            raise DamagedError(f"has the epoch {shown(epoch)}, which must be an integer >= 0")
        return epoch

    def metadata(self) -> Json:
        """The metadata: an object as it is, any other value under its own name."""
        pointers = self._pointers.metadata or (None,)
        metadata = {}
        for pointer in pointers:
            part = self._part(pointer, "metadata")
            if len(pointers) == 1 and isinstance(part, dict):
                return dict(part)
            if part is not None:
                *_, name = ("", *names_in(pointer or "/metadata"))
                metadata[printable(name)] = part
        return metadata

    def text(self, pointer: str | None, key: str) -> str | None:
        """A text such as `input` or `target`; other JSON is written out. None where there is none,
        or where it is the items of a response.
        """
        text = self._part(pointer, key)
        if text is None or isinstance(text, str):
            return text
        if pointer is None and self.items is not None:
            return None
        if isinstance(text, list) and all(isinstance(line, str) for line in text):
            return "\n".join(text)
        return json_text(text)

    def system(self) -> Any:
        """The system prompt that stands beside the messages, as Anthropic has it; None without."""
        system = self._part(self._pointers.system, "system")
        if system is None and self.is_logged:
            system = at(self._value, "/request/system")
        if self._pointers.system is None and not isinstance(system, str | list):
            return None
        return system


def _as_turns(answer: Any) -> list[Any] | None:
    """An answer as messages: of a text, a message, what an API gives, or a list of messages; none
    where it is empty or missing, and None for what is no answer.
    """
    if answer in (None, "", [], {}):
        return []
    if isinstance(answer, str):
        return [{"role": "assistant", "content": answer}]
    choice = at(answer, "/choices/0/message")
    if isinstance(choice, dict):
        answer = choice
    elif isinstance(answer, dict) and answer.keys() <= {"content", "tool_calls"}:
        answer = {"role": "assistant", **answer}
    turns = with_items_read(answer if isinstance(answer, list) else [answer])
    return turns if all(isinstance(at(turn, "/role"), str) for turn in turns) else None


def _keys(value: Any) -> str:
    if not isinstance(value, dict):
        return f"the whole value is {shown(value)}"
    if not value:
        return "the object has no keys"
    return f"the keys are {listed(map(shown, value), 12)}"


def places_of_messages(value: Any) -> list[str]:
    """Pointers to what look like lists of messages, the longest list first."""
    places = _places_of_chats(value, ())
    return sorted(places, key=lambda place: len(at(value, place)), reverse=True)


def _places_of_chats(node: Any, path: tuple[str, ...]) -> Iterator[str]:
    if is_chat(node):
        yield pointer_to(*path)
    elif isinstance(node, dict) and len(path) < _DEEPEST:
        for key, inner in node.items():
            yield from _places_of_chats(inner, (*path, key))


def items_of(value: Any) -> list[Item] | None:
    """The items of a response, or of a row with `input` and `output`, also as a proxy logs them in
    `request` and `response`, each with its path; None where there are none.

    Raises DamagedError where a response continues what the provider keeps, or what was asked is not
    there: what a judge would read of it is the end of a conversation.
    """
    if not isinstance(value, dict) or "messages" in value:
        return None
    request, response = _part_of_log(value, "request"), _part_of_log(value, "response")
    before, after = at(value, f"{request}/input"), at(value, f"{response}/output")
    roles_before, roles_after = _roles_of(before), _roles_of(after)
    is_response = at(value, f"{response}/object") == "response"
    if not is_response and not roles_before and not roles_after:
        return None
    for part in (request, response):
        for key, problem in _KEPT_BY_PROVIDER.items():
            place = f"{part}/{key}"
            reference = at(value, place)
            if isinstance(reference, str) or mapping(reference).keys() == {"id"}:
                raise DamagedError(problem, LOG_ITEMS, tuple(names_in(place)))
    if before is None and "user" not in roles_after:
        raise DamagedError(
            "is missing, so a judge would read an answer without its request",
            "log `input` together with the response",
            tuple(names_in(f"{request}/input")),
        )
    instructed = request if at(value, f"{request}/instructions") else response
    roles = {
        f"{instructed}/instructions": "system",
        f"{request}/input": "user",
        f"{response}/output": "assistant",
    }
    items: list[Item] = []
    for place, role in roles.items():
        said, path = at(value, place), tuple(names_in(place))
        if isinstance(said, list):
            items += (((*path, index), item) for index, item in enumerate(said))
        elif isinstance(said, str):
            items.append((path, {"role": role, "content": said}))
        elif said is not None:
            items.append((path, said))
    return items


def _part_of_log(value: Json, key: str) -> str:
    """Where a proxy's log has what is under the key; results of a batch have it in a `body`."""
    place = ""
    for name in (key, "body"):
        if isinstance(at(value, f"{place}/{name}"), dict):
            place += f"/{name}"
    return place


def _roles_of(items: Any) -> list[str]:
    """The roles, or the types, of the items in a list; none of what is no list of items."""
    roles = []
    for item in items if isinstance(items, list) else ():
        role = at(item, "/role") or at(item, "/type")
        if isinstance(role, str):
            roles.append(role)
    return roles


class Conversations(Transcripts):
    """A file of conversations, for which the config's `format` has a meaning."""

    def conversation(self, value: Any) -> Conversation:
        with inside():
            return conversation(value, self._pointers)


def _is_one_conversation(head: Head) -> bool:
    """Whether a file begins like a JSON object with messages in it, whatever they are called, not
    in a list of others, and like no log of Inspect and no ATIF trajectory.
    """
    if head.is_lines or not head.text.startswith("{") or head.is_inspect_log:
        return False
    if '"ATIF-v' in head.text:
        return False
    lists = end = 0
    # Definitions of tools, which may be long, often stand before the messages.
    with head.path.open("rb") as file:
        text = file.read(_LONGEST_BEFORE)
    while (bracket := BRACKET.match(text, end)) is not None:
        if bracket[1] == b"[":
            if not lists and (
                re.search(_MESSAGES, bracket[0]) or _TURNS.match(text, bracket.end())
            ):
                return True
            lists += 1
        lists -= bracket[1] == b"]"
        end = bracket.end()
    return False


_LONGEST_BEFORE = 2**24
_MESSAGES = rb'"messages"\s*+:\s*+\[\Z'
# The first message of a list, whatever the list is called.
_TURNS = re.compile(rb'\s*+\{[^{}\[\]]*"(?:role|content)"\s*+:')
_RESPONSE = r'"object"\s*+:\s*+"response"'
_ITEMS = r'"(?:input|output)"\s*+:\s*+\['


def _is_response(head: Head) -> bool:
    """Whether a file is a response, or items of OpenAI's Responses API, in a list or in lines."""
    if any(item.get("type") in ITEM_TYPES for item in head.first_objects):
        return True
    if head.is_lines or not head.text.startswith("{") or head.is_inspect_log:
        return False
    has_items = '"role"' in head.text and re.search(_ITEMS, head.text)
    return bool(has_items or re.search(_RESPONSE, head.text))


_SUFFIXES = (*LINES, ".json")
ITEMS = Form(
    "items of OpenAI's Responses API", _SUFFIXES, conversation, _is_response, is_whole=True
)
MESSAGES = Form(
    "one conversation",
    (".json",),
    conversation,
    lambda head: (
        head.begins_list
        and any(
            "role" in message and ("content" in message or at(message, "/parts/0/type"))
            for message in head.first_objects
        )
    ),
    is_whole=True,
)
ONE_CONVERSATION = Form(
    "conversations",
    (".json",),
    recognizes=_is_one_conversation,
    is_whole=True,
    source=Conversations,
)
CONVERSATIONS = Form(
    "conversations",
    _SUFFIXES,
    recognizes=lambda head: head.is_lines or head.begins_list,
    source=Conversations,
)

_ID = r"(?:.*_)?(?:id|uid|uuid|key|name)"
_TRIAL = r"(?:.*_)?(?:trial|epoch|run|attempt|rollout|repeat|seed|sample|index)"
_LONGEST = 200
_MOST_KEYS = 40


def guessed_format(path: Path, form: Form) -> InputFormat | None:
    """Where messages and ids seem to be in a file of conversations; None where they are where they
    are looked for anyway, or nothing looks like messages.

    An id is a field that names each conversation, or a task and a number of its trials. Raises
    InputError and DamagedError for a file that cannot be read.
    """
    rows: list[dict[str, int | str]] = []
    messages = None
    for value in Conversations(path, form).values():
        fields = mapping(value)
        if not rows:
            reader = _Reader(value, InputFormat())
            if reader.items is None and not reader.is_logged:
                pointers = places_of_messages(fields)
                if not pointers or "/messages" in pointers:
                    return None
                messages = pointers[0]
        row = {}
        for key, part in list(fields.items())[:_MOST_KEYS]:
            if type(part) is int or (isinstance(part, str) and 0 < len(part) <= _LONGEST):
                row[key] = part
        rows.append(row)
    # Only what all conversations have can name them.
    first = rows[0] if rows else {}
    keys = [key for key in first if all(key in row for row in rows)]
    id_fields = cluster_fields = tuple[str, ...]()
    if "id" not in keys:
        id_fields, cluster_fields = _names(keys, rows)
    if not id_fields and messages is None:
        return None
    return InputFormat(
        messages=messages,
        id=tuple(map(pointer_to, id_fields)) or None,
        cluster=tuple(map(pointer_to, cluster_fields)) or None,
    )


def _names(
    keys: Sequence[str], rows: Sequence[Mapping[str, int | str]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields that name each conversation, and the one whose values several of them share."""
    tasks = [key for key in keys if re.fullmatch(_ID, key.lower())]
    trials = [key for key in keys if re.fullmatch(_TRIAL, key.lower())]
    shared = [task for task in tasks if 1 < _count(rows, task) < len(rows)]
    choices = [*zip(tasks, strict=True), *product(tasks, trials)]
    for names in choices:
        if _count(rows, *names) == len(rows):
            # Of a task and its trial it is the task.
            return names, (*names[:-1], *shared)[:1]
    return (), ()


def _count(rows: Sequence[Mapping[str, int | str]], *keys: str) -> int:
    """How many different values rows have in these fields."""
    return len({tuple(map(row.__getitem__, keys)) for row in rows})
