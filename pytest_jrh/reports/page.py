"""The one page: a session as a file that opens from disk and asks the network for nothing
(`--jrh-report`), and the same page where a server has it (`--jrh-review`).

Rows of the list lie in a JSON block and transcripts in compressed ones, one source run at a time;
both reach the page as text nodes alone. A content security policy that names the one script and
style by their hashes stands behind that.

A row says what its list shows of a case, and its body all else. A turn of a body is `{index, role,
part, name, state, parts, was, why}`: `part` is what it is called where it is no turn of a run,
`parts` are `{kind, title, text}`, `was` those before the edit, and `state` says in words who
changed it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from pytest_jrh.core import (
    Fields,
    Json,
    absolute,
    capital,
    one_line,
    relative_path,
    short_digest,
    shortened,
    visible,
    with_texts,
)
from pytest_jrh.core.cases import UNSCORED, Case, Edit, Message, Rubric
from pytest_jrh.core.diffs import TurnPair, turn_pairs
from pytest_jrh.core.files import encoded, replacing
from pytest_jrh.core.results import CaseResult, total_spending
from pytest_jrh.core.templates import render_page
from pytest_jrh.core.transcript import (
    IMAGE_DATA,
    ROLES,
    block_text,
    call_text,
    indented_json,
    message_text,
    named,
    part_title,
    reasoning_text,
    render_tool_calls,
    sources_of,
)
from pytest_jrh.reports.blocks import block_values
from pytest_jrh.reports.case_facts import (
    blind_scores,
    no_verdict_text,
    not_shown_text,
    stored_case,
    voices,
)
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import Session, spending_line, what_was_done
from pytest_jrh.reports.summary import compose, read_first
from pytest_jrh.reports.topics import contradicting_cases
from pytest_jrh.store.records import BY_HAND

FOLDER = Path(__file__).parent / "page"
READING = ("base.js", "overview.js", "list.js", "case.js")
START = "main.js"
BODIES = "<!--bodies-->"
_MOST_OF_TABLE = 5_000
"""Cases that the page of a table lists: it may be large, and has little more to say of a case than
the table itself."""
_LONGEST_TITLE = 160
_MARK = r"(?m)[*_`|~#>\[]|^\s*(-|\+|\d+[.)])\s"
_MOST_MARKED = 100_000
# Formulas, products, names such as `__init__`, signs before numbers, and each backslash with the
# sign behind it, of which Markdown would take signs away. The last alternative begins the name that
# stands for one of these while a text is parsed.
_AS_WRITTEN = r"""(?x)
    \$\$[^$`]+\$\$
    |\$(?=\S)[^$\n`]+(?<=\S)\$(?!\d)
    |\\\[(?:(?!\\\[|\n\n)[^`])+?\\\]
    |\\\((?:(?!\\\(|\n\n)[^`])+?\\\)
    |\\(?:[!-/:-@\[-`{-~]|(?=\n))
    |(?<=[A-Za-z0-9])\*+(?=[A-Za-z0-9])
    |(?<!\w)__\w+__(?!\w)
    |(?m:^\ *[>+](?=\ ?\d))
    |JRH
    """


def page_html(
    values: Json,
    *,
    scripts: Iterable[Path] = (),
    styles: Iterable[Path] = (),
    more_policy: str = "",
) -> tuple[str, str]:
    """The page of JSON values as `HtmlReport` makes them, with `BODIES` where data blocks
    belong; and its policy.

    A served page has more `scripts` and `styles`, and may do what `more_policy` allows, such as
    `connect-src 'self'; `.
    """
    style_files = [FOLDER / "page.css", *styles]
    script_files = [*(FOLDER / name for name in READING), *scripts, FOLDER / START]
    style = "\n".join(file.read_text("utf-8") for file in style_files)
    parts = "\n".join(file.read_text("utf-8") for file in script_files)
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'
    # No text in it ends the element that holds it.
    data = json.dumps(values, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; style-src 'sha256-{_hash(style)}'; script-src "
        f"'sha256-{_hash(script)}'; {more_policy}base-uri 'none'; form-action 'none'"
    )
    html = render_page(
        (FOLDER / "page.html").read_text("utf-8"),
        {
            **values,
            "title": f"{values['word']} {values['headline']}".strip(),
            "style": style,
            "script": script,
            "policy": policy,
            "session": data,
        },
    )
    return html, policy


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


# ---- The file


class HtmlReport(Report):
    """Everything, to be opened in a browser."""

    suffix = ".html"
    limit = 25_000_000
    """The file stays under so many bytes."""

    def write(self, path: Path, session: Session) -> None:
        """Write the page, reading one source run's cases at a time.

        Where transcripts do not all fit, those of the cases to read first come first, and the page
        says which are left out. Raises `OSError` as it comes; an older file is then still whole.
        """
        cases = SessionCases(session)
        summary = compose(session, bars=True)
        values: Json = {
            "word": summary.word,
            "headline": capital(summary.headline),
            "blocks": {
                "answer": block_values((*summary.answer, *summary.steps)),
                "doubts": block_values(summary.doubts),
                "details": block_values(summary.details),
            },
            "rubrics": cases.rubrics(),
            "cases": [],
        }
        listed = cases.ids
        if session.is_table and len(listed) > _MOST_OF_TABLE:
            values["of"] = len(listed)
            listed = listed[:_MOST_OF_TABLE]
        # The cases of a source run share a data block, as they share most of their turns.
        run_names: dict[str, str] = {}
        blocks: dict[str, list[str]] = {}
        for made_id in listed:
            row = cases.row(made_id)
            run = f"{row['suite']}\0{row['run']}\0{row['epoch']}"
            if session.is_table:
                # Each of these has texts of its own, and the search opens all blocks.
                run = str(len(values["cases"]) // 50)
            row["block"] = name = run_names.setdefault(run, f"block-{len(run_names)}")
            blocks.setdefault(name, []).append(made_id)
            values["cases"].append(row)
        html, _ = page_html(printable(session.redactor.value(values)))
        head, tail = html.split(BODIES)
        room = self.limit - len(encoded(head)) - len(encoded(tail))
        with replacing(path) as file:
            file.write(encoded(head))
            for name, made_ids in blocks.items():
                bodies = {}
                for made_id in made_ids:
                    bodies[short_digest(made_id)] = printable(
                        session.redactor.value(cases.body(made_id))
                    )
                block = _data(name, bodies)
                if len(block) > room:
                    for key, body in bodies.items():
                        bodies[key] = {**body, "turns": [], "is_cut": True}
                    block = _data(name, bodies, " data-cut")
                # Nothing where not even that fits.
                if len(block) <= room:
                    room -= len(block)
                    file.write(block)
            file.write(encoded(tail))


def _data(name: str, bodies: Mapping[str, Json], attributes: str = "") -> bytes:
    """A data block, which no browser runs: the bodies of a run's cases as JSON compressed by zlib,
    in base64, which the page unpacks, with every turn once. Most of a made transcript is the run's.
    """
    pool: dict[str, int] = {}
    cases = {}
    for key, body in bodies.items():
        numbers = None
        if body["turns"] is not None:
            numbers = [pool.setdefault(json.dumps(turn), len(pool)) for turn in body["turns"]]
        cases[key] = {**body, "turns": numbers}
    value = {"pool": [*map(json.loads, pool)], "cases": cases}
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 6)).decode("ascii")
    return f'<script type="text/plain" id="{name}"{attributes}>{packed}</script>\n'.encode("ascii")


def printable(value: Any) -> Any:
    """The JSON value with every text in it made visible."""
    return with_texts(value, visible)


# ---- The cases of a session


class SessionCases:
    """The cases of a session, first those to read first; a panel's verdicts on one are together."""

    def __init__(self, session: Session) -> None:
        self.session = session
        # By tag, the ids of the cases that have it.
        self.marked = defaultdict[str, set[str]](set)
        for decision in session.decisions.values():
            self.marked["regression"].update(decision.regressions)
            self.marked["by flicker"].update(decision.flickered)
            self.marked["fix"].update(decision.fixes)
        contradicting = chain.from_iterable(contradicting_cases(session))
        self._contradicting = {result.case_id for result in contradicting}
        self._places = session.verdicts.places("made")
        first = read_first(session).places("made")
        self.ids = [made_id for (made_id,) in first | self._places]

    def results_of(self, made_id: str) -> list[CaseResult]:
        """What a case came to under each of its judges."""
        return [self.session.results[row] for row in self._places[made_id,]]

    def rubrics(self) -> dict[str, Json]:
        """The rubrics that rows name, with the levels of their scales."""
        session = self.session
        values = {}
        for places in session.verdicts.places("suite", "rubric").values():
            result = session.results[places[0]]
            key = (result.suite, result.rubric_id)
            rubric = session.rubrics.get(key, Rubric(result.rubric_id, ""))
            position = ""
            if rubric.file:
                file = relative_path(absolute(Path(rubric.file)), session.folder)
                position = f"{file}:{rubric.line}"
            scale = session.scale(result)
            levels = []
            # The answers on offer, and of a word all that is said of when it is due.
            for score, when in scale.due.items():
                said = scale.said(score)
                levels.append(f"{said}: {when}" if isinstance(said, str) else scale.meant(score))
            values[_rubric_key(result)] = {
                # What is called the rubric of a table may be a column of labels.
                "id": rubric.id if session.has_rubrics else "",
                "text": rubric.instructions,
                "place": position,
                "levels": levels,
            }
        return values

    def row(self, made_id: str) -> Json:
        """The row of the case with this id."""
        results = self.results_of(made_id)
        first = results[0]
        # What was done to the case, as far as the editor says it; of a run as it is, the run.
        title = what_was_done(first) or one_line(first.run_id)
        if first.outcome == "no_case" and not first.extra.edit:
            title = shortened(one_line(no_verdict_text(first.why)), _LONGEST_TITLE)
        outcomes = {result.outcome for result in results}
        kind = "right" if "agree" in outcomes else "no label"
        if "disagree" in outcomes:
            kind = "misled" if first.spec.derived else _first_wrong(results).mistake
        elif outcomes & {*UNSCORED, "no_case", "generated"}:
            kind = "not judged"
        judges = []
        for result in results:
            key, is_wrong = short_digest(result.case_id), result.outcome == "disagree"
            judges.append({"key": key, "name": result.judge, "wrong": is_wrong})
        return {
            "key": short_digest(made_id),
            "suite": first.suite,
            "rubric": _rubric_key(first),
            "run": first.run_id,
            "epoch": first.epoch,
            "test": first.test,
            "variant": first.spec.variant,
            "slices": [value for _, value in first.extra.slices],
            "title": title,
            "kind": kind,
            "tags": list(self._tags(results)),
            "judges": judges,
            "node": self.session.node(_first_wrong(results).case_id),
        }

    def _tags(self, results: Sequence[CaseResult]) -> Iterator[str]:
        """What else is to be said of a case, by which it can be found."""
        first = results[0]
        ids = {result.case_id for result in results}
        for tag, case_ids in self.marked.items():
            if ids & case_ids:
                yield tag
        if first.label is not None:
            people_say = set(blind_scores(self.session, first).values())
            is_unsettled = first.extra.altered or first.extra.reworded or ids & self._contradicting
            if people_say - {first.label} or (is_unsettled and not first.is_accepted):
                yield "label in doubt"
            elif people_say:
                yield "label checked"
        elif len(first.extra.votes) > 1:
            yield "people disagree"
        if any(result.outcome in UNSCORED for result in results):
            yield "no verdict"
        if any(result.flickers for result in results):
            yield "flickers"
        if any(map(not_shown_text, results)):
            yield "not shown"
        if first.extra.review not in ("", "undecided"):
            yield first.extra.review

    def body(self, made_id: str) -> Json:
        """All else of the case with this id; its `turns` are None where no case was made, and its
        `rubric` is what is otherwise than in the suite.
        """
        session, results = self.session, self.results_of(made_id)
        first = results[0]
        case, turns = self.case_and_turns(first)
        rubric = session.rubrics.get((first.suite, first.rubric_id))
        other_rubric = None
        if case is not None and (rubric is None or case.rubric.instructions != rubric.instructions):
            text = case.rubric.instructions
            if first.extra.reworded and rubric is not None:
                text = f"{rubric.instructions}\n\nThe case was made and labelled for:\n{text}"
            other_rubric = {"id": case.rubric.id, "text": text}
        return {
            "turns": turns,
            "voices": [voice._asdict() for voice in voices(session, results, case)],
            "facts": list(self._facts(results, case)),
            "command": session.commands.get(_first_wrong(results).case_id),
            "rubric": other_rubric,
        }

    def case_and_turns(self, result: CaseResult) -> tuple[Case | None, list[Json] | None]:
        """The case as it was judged, and its turns; of a probe's whose change a model made those of
        the case before it.
        """
        case, probe_case = stored_case(self.session, result)
        if case is None:
            return None, bare_turns(self.session.messages(result)) or None
        turns = probe_turns(case, probe_case) if probe_case else case_turns(case)
        for turn in turns:
            for part in (*turn["parts"], *turn.get("was", ())):
                # Images of logs are large: a page that is served has them.
                part.pop("address", None)
        return probe_case or case, turns

    def _facts(self, results: Sequence[CaseResult], case: Case | None) -> Iterator[tuple[str, str]]:
        first = results[0]
        if case is not None and first.spec.derived and not case.spec.derived:
            yield "Text", "The case before the probe; a model made the change."
        for result in results:
            judge = f"{one_line(result.judge)}: " if result.judge else ""
            if not_shown := not_shown_text(result):
                yield "Shown to the judge", f"{judge}The judge was {not_shown}."
        if case is not None and case.review is not None:
            word, note = first.extra.review or case.review.action, case.review.note
            yield "Reviewed by a person", f"{word}: {note}" if note else word
        spending = total_spending(results)
        # Verdicts of a table, and of a judge that is code, took no call.
        if spending.calls or spending.replayed:
            yield "Cost", spending_line(spending)
        if case is not None:
            if case.outcome.plan is not None and case.outcome.plan.thesis:
                yield "The plan of the edit", case.outcome.plan.thesis
            if case.outcome.final_summary:
                yield "The verifier's summary", case.outcome.final_summary
            for note in case.run.notes:
                yield "Note", note


def _first_wrong(results: Sequence[CaseResult]) -> CaseResult:
    """The first of a panel's results that is wrong, else the first."""
    return min(results, key=lambda result: result.outcome != "disagree")


def _rubric_key(result: CaseResult) -> str:
    return short_digest(f"{result.suite}\0{result.rubric_id}", 8)


EDITED = "edited"
BY_PERSON = "edited by a person"
INSERTED = "inserted"
LEFT_OUT = "left out"
BY_PROBE = "changed by the probe"


# ---- Turns


def case_turns(case: Case) -> list[Json]:
    """The turns of a transcript beside those of its run; what was left out is where it stood."""
    of_run, made = case.run.messages, case.messages
    return [_made_turn(case, *beside) for beside in _beside(of_run, made)]


def probe_turns(base: Case, case: Case) -> list[Json]:
    """The turns of a case that a probe made of another one, beside those of that."""
    turns = []
    for pair, before, after, turn in _beside(base.messages, case.messages):
        if pair.new is None:
            turn["state"] = LEFT_OUT
        elif pair.old is None:
            turn["state"] = INSERTED
        elif before != after:
            turn["state"] = BY_PROBE
            # As it is written: a probe may change how JSON is laid out.
            turn["parts"] = list(_parts(after))
            turn["was"] = list(_parts(before))
        turns.append(turn)
    return turns


def bare_turns(messages: Sequence[Message]) -> list[Json]:
    """The turns for people who may not know how they were made: without reasoning, which edited
    ones have lost, and with the text of each in one part, as an edit leaves it. A role that no chat
    has, such as the column of a text, needs no number.
    """
    turns = [_turn(message, index, bare=True) for index, message in enumerate(messages)]
    for turn in turns:
        if turn["role"] not in ROLES:
            turn["part"] = turn["part"] or capital(turn["role"])
    return turns


def _beside(
    old: Sequence[Message], new: Sequence[Message]
) -> Iterator[tuple[TurnPair, Message, Message, Json]]:
    """Each turn before and after, of which one may be empty, and as it is laid out."""
    for pair in turn_pairs(old, new):
        before = {} if pair.old is None else old[pair.old]
        after = {} if pair.new is None else new[pair.new]
        index = pair.new if pair.new is not None else pair.old or 0
        yield pair, before, after, _turn(after or before, index)


def _made_turn(case: Case, pair: TurnPair, before: Message, after: Message, turn: Json) -> Json:
    index = turn["index"]
    is_left_out = pair.new is None and case.holds_acts
    # Those that left it out, or made what stands at this position of the made transcript.
    edits = []
    for edit in case.outcome.edits:
        length = len(edit.after) if edit.is_splice else 1
        is_here = edit.message_index <= index < edit.message_index + length
        if is_left_out:
            is_here = before in edit.before
        if is_here:
            edits.append(edit)
    # An error, or reasoning that said what an act changed.
    is_changed = before != after and any(edit.is_splice for edit in edits)
    is_same = _words_and_calls(before) == _words_and_calls(after) and not is_changed
    if is_same and not is_left_out:
        return turn
    turn["why"] = list(_why(case, pair.old, edits))
    if is_left_out:
        return {**turn, "state": LEFT_OUT}
    if pair.old is None and case.holds_acts:
        return {**turn, "state": INSERTED}
    turn["state"] = EDITED
    if any(edit.editor_reason == BY_HAND for edit in edits):
        turn["state"] = BY_PERSON
    # The text of an edited turn is in one part, and its reasoning is gone.
    has_reasoning = any(part["kind"] == "reasoning" for part in turn["parts"])
    turn["was"] = _laid_out(before, bare=not has_reasoning)
    return turn


def _words_and_calls(message: Message) -> tuple[str, str]:
    return message_text(message), render_tool_calls(message)


def _why(case: Case, position: int | None, edits: Iterable[Edit]) -> Iterator[list[str]]:
    """Why a turn was changed that stood at this position of the run, as titles and texts."""
    plan = case.outcome.plan
    for step in plan.steps if plan is not None else ():
        if step.message_index == position:
            yield ["Goal", step.goal]
            yield ["Why this turn", step.rationale]
    for edit in edits:
        if edit.follows:
            yield ["To stay consistent", edit.follows]
        if edit.editor_reason not in ("", BY_HAND):
            yield ["The editor's reason", edit.editor_reason]


def _turn(message: Message, index: int, *, bare: bool = False) -> Json:
    role = one_line(str(message.get("role", "unknown")))
    turn: Json = {"index": index, "role": f"{role}{one_line(named(message))}"}
    turn["part"] = one_line(part_title(message))
    turn["parts"] = _laid_out(message, bare=bare)
    if role == "tool" and message.get("function"):
        turn["name"] = one_line(str(message["function"]))
    return turn


def _laid_out(message: Message, *, bare: bool) -> list[Json]:
    """The parts of a turn with JSON of results over several lines; `bare` as in `bare_turns`."""
    parts = list(_parts(message, bare=bare))
    for part in parts:
        if part["kind"] == "result":
            part["text"] = indented_json(part["text"])
    return parts


def _parts(message: Message, *, bare: bool = False) -> Iterator[Json]:
    """The parts of a turn as they are written."""
    text_kind = "result" if message.get("role") == "tool" else "text"
    error = message.get("error")
    if isinstance(error, dict):
        yield _part("error", f"error: {error.get('type', 'unknown')}", error.get("message", ""))
    content = message.get("content") or ()
    if (bare or isinstance(content, str)) and (text := message_text(message)):
        yield _part(text_kind, "", text)
    for block in () if isinstance(content, str) else content:
        part = _block(block, text_kind)
        if not bare or part["kind"] not in (text_kind, "reasoning"):
            yield part
            if block.get("type") == "tool_use":
                yield _part(
                    "result",
                    f"result of {block.get('name', '')}",
                    f"{block.get('result', '')}{block.get('error') or ''}",
                )
    if sources := sources_of(message):
        yield _part("media", "cites", "\n".join(sources))
    for call in message.get("tool_calls") or ():
        yield _part("call", str(call.get("function", "")), call_text(call))


def _block(block: Fields, text_kind: str) -> Json:
    kind = block.get("type")
    if kind == "text":
        return _part(text_kind, "", block.get("text", ""))
    if kind == "reasoning":
        return _part("reasoning", "reasoning", reasoning_text(block))
    if kind == "tool_use":
        return _part("call", str(block.get("name", "")), str(block.get("arguments", "")))
    image = IMAGE_DATA.match(str(block.get("image", ""))) if kind == "image" else None
    if image is not None:
        return {
            **_part("image", f"image/{image[1]}", "not shown in this report"),
            "address": image.string,
        }
    words = block_text(block).partition("\n")[2]
    return _part("media", f"{kind or 'unknown'} block", words or "not shown in this report")


def _part(kind: str, title: str, text: object) -> Json:
    part = {"kind": kind, "title": one_line(title), "text": str(text)}
    return {**part, "marks": _marks(str(text))} if kind == "text" else part


@lru_cache(maxsize=4096)
def _marks(text: str) -> str | None:
    """A text as Markdown, in the tokens of its parser as JSON, which the page draws; None where it
    is plain, or would take more room than it does.
    """
    from markdown_it import MarkdownIt

    if len(text) > _MOST_MARKED or not re.search(_MARK, text):
        return None
    parser = MarkdownIt("js-default").disable("reference")
    kept: dict[str, str] = {}

    def set_aside(match: re.Match[str]) -> str:
        name = f"JRH{len(kept)}JRH"
        kept[name] = match[0]
        return name

    marks = []
    for block in parser.parse(re.sub(_AS_WRITTEN, set_aside, visible(text))):
        for token in block.children or [block]:
            marks.append([token.type, token.nesting, token.content, token.info, token.attrs])
    restored = partial(re.sub, r"JRH\d+JRH", lambda name: kept.get(name[0], name[0]))
    marks = with_texts(marks, restored)
    return json.dumps(marks, ensure_ascii=False) if len(marks) < len(text) else None
