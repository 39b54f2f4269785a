"""The one page: a session as a file that opens from disk and asks the network for nothing
(`--jrh-report`), and the same page where a server has it (`--jrh-review`).

Rows of the list lie in a JSON block and transcripts in compressed ones, one source run at a time;
both reach the page as text nodes alone. A content security policy that names the one script and
style by their hashes stands behind that.

A row says what its list shows of a case, and its body all else. A turn of a body is `{index, role,
name, state, parts, was, why}`: `parts` are `{kind, title, text}`, `was` those before the edit, and
`state` says in words who changed it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pytest_jrh.core.cases import Case, Edit
from pytest_jrh.core.diffs import TurnPair, turn_pairs
from pytest_jrh.core.files import encoded, relative_path, replacing
from pytest_jrh.core.ids import generation_id, short_digest
from pytest_jrh.core.redact import with_texts
from pytest_jrh.core.results import CaseResult, total_spending
from pytest_jrh.core.runs import Message, Rubric
from pytest_jrh.core.skips import UNSCORED
from pytest_jrh.core.templates import render_page
from pytest_jrh.core.text import capital, one_line, shortened, visible
from pytest_jrh.core.transcript import (
    block_text,
    indented,
    indented_json,
    message_text,
    named,
    reasoning_text,
    render_tool_calls,
    sources_of,
)
from pytest_jrh.judges.judge import IMAGE_DATA
from pytest_jrh.people.decisions import holds_acts
from pytest_jrh.reports.blocks import Headline, Sentence, block_values
from pytest_jrh.reports.case_facts import blind_scores, common_part, decided_text, voices
from pytest_jrh.reports.reading import worst_results
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.said import said
from pytest_jrh.reports.session import Session, case_key, spending_line, what_was_done
from pytest_jrh.reports.topics import contradicting_cases, not_shown_text
from pytest_jrh.stats.intervals import grouped
from pytest_jrh.stats.panels import by_made_case, made_case_id
from pytest_jrh.stats.statistics import REASONING_DISAGREES, reasoning_disagrees
from pytest_jrh.store.records import BY_HAND

JsonValues: TypeAlias = "dict[str, Any]"

FOLDER = Path(__file__).parent / "page"
READING = ("base.js", "overview.js", "list.js", "case.js")
START = "main.js"
BODIES = "<!--bodies-->"
LIMIT = 25_000_000
_MOST_OF_TABLE = 5_000
"""Cases that the page of a table lists: it may be large, and has little more to say of a case than
the table itself."""
_LISTED = (
    "The list has {:,} of {:,} cases: regressions first, then other wrong verdicts. The figures "
    "are of all."
)
_LONGEST_TITLE = 160


class HtmlReport(Report):
    """Everything, to be opened in a browser."""

    suffix = ".html"

    def write(self, path: Path, session: Session) -> None:
        write_page(path, session)


def page_html(
    values: JsonValues,
    *,
    scripts: Iterable[Path] = (),
    styles: Iterable[Path] = (),
    more_policy: str = "",
) -> tuple[str, str]:
    """The page of JSON values as `session_values` gives them, with `BODIES` where data blocks
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
        FOLDER,
        "page.html",
        {
            "title": f"{values['word']} {values['headline']}".strip(),
            "word": values["word"],
            "headline": values["headline"],
            "sub": values["sub"],
            "style": style,
            "script": script,
            "policy": policy,
            "session": data,
        },
    )
    return html, policy


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


# ---- What the page says of a session


def session_values(session: Session, cases: SessionCases) -> JsonValues:
    """What the page shows of a session but for the bodies of its cases."""
    everything = said(session, bars=True)
    headline, beside, place = everything.headline, [], 0
    # Of a single suite it stands at the top, with the sentences behind it.
    for block in everything.answer:
        if isinstance(block, Headline) and not block.suite:
            headline = capital(block.text)
        elif isinstance(block, Sentence) and not block.weight:
            beside.append(capital(block.text).rstrip("."))
        else:
            break
        place += 1
    return {
        "word": everything.word,
        "headline": headline,
        "sub": " ".join(f"{sentence}." for sentence in beside),
        "blocks": {
            "answer": block_values((*everything.answer[place:], *everything.steps)),
            "doubts": block_values(everything.doubts),
            "details": block_values(everything.details),
        },
        "rubrics": cases.rubrics(),
        "cases": [],
        "served": None,
    }


# ---- The file


def write_page(path: Path, session: Session, *, limit: int = LIMIT) -> None:
    """Write the page, reading one source run's cases at a time; the file stays under `limit` bytes.

    Where transcripts do not all fit, those of the most urgent cases come first, and the page says
    which are left out. Raises `OSError` as it comes; an older file is then still whole.
    """
    cases = SessionCases(session)
    # The most urgent stand first.
    listed = list(cases.groups)
    if session.is_table:
        listed = listed[:_MOST_OF_TABLE]
    specs = ((cases.groups[made][0].spec, made) for made in listed)
    runs = grouped(((spec.suite, spec.run_id, spec.epoch), made) for spec, made in specs)
    names = {made: f"run-{number}" for number, group in enumerate(runs.values()) for made in group}
    values = session_values(session, cases)
    values["cases"] = [{**cases.row(made), "block": names[made]} for made in listed]
    if len(listed) < len(cases.groups):
        text = _LISTED.format(len(listed), len(cases.groups))
        values["blocks"]["answer"] += block_values([Sentence(text)])
    clean = printable(session.redactor.value(values))
    html, _ = page_html(clean)
    head, tail = html.split(BODIES)
    room = limit - len(encoded(head)) - len(encoded(tail))
    with replacing(path) as file:
        file.write(encoded(head))
        for group in runs.values():
            bodies = {}
            for made in group:
                body = printable(session.redactor.value(cases.body(made)))
                bodies[case_key(made)] = body
            without_turns = {}
            for key, body in bodies.items():
                without_turns[key] = {**body, "turns": [], "is_cut": True}
            # Without transcripts where the whole does not fit; nothing where not even that.
            for shown, cut in ((bodies, ""), (without_turns, " data-cut")):
                block = _data(names[group[0]], packed(_pooled(shown)), cut)
                if len(block) <= room:
                    room -= len(block)
                    file.write(block)
                    break
        file.write(encoded(tail))


def packed(value: Any) -> str:
    """JSON compressed by zlib, in base64, which the page unpacks."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 6)).decode("ascii")


def _data(name: str, text: str, more: str = "") -> bytes:
    """A data block, which no browser runs."""
    return f'<script type="text/plain" id="{name}"{more}>{text}</script>\n'.encode("ascii")


def _pooled(bodies: Mapping[str, JsonValues]) -> JsonValues:
    """The bodies of a run's cases with every turn once: most of a made transcript is the run's."""
    pool: dict[str, int] = {}
    turns: list[JsonValues] = []
    cases = {}
    for key, body in bodies.items():
        places = []
        for turn in body["turns"] or ():
            text = json.dumps(turn)
            if text not in pool:
                pool[text] = len(turns)
                turns.append(turn)
            places.append(pool[text])
        cases[key] = {**body, "turns": None if body["turns"] is None else places}
    return {"pool": turns, "cases": cases}


def printable(value: Any) -> Any:
    """The JSON value with every text in it made visible."""
    return with_texts(value, visible)


# ---- The cases of a session


class SessionCases:
    """The cases of a session, the most urgent first; a panel's verdicts on one are together."""

    def __init__(self, session: Session) -> None:
        self.session = session
        # By tag, the ids of the cases that have it.
        self.marked: dict[str, set[str]] = {"regression": set(), "by flicker": set(), "fix": set()}
        for decision in session.decisions.values():
            self.marked["regression"].update(decision.regressions)
            self.marked["by flicker"].update(decision.flickered)
            self.marked["fix"].update(decision.fixes)
        # What a baseline or a limit decides about is tolerated, too, and nobody expects it to fail.
        wrong_before = {
            case for case, before in session.earlier.items() if before.outcome == "disagree"
        }
        self.marked["expected to fail"] = set(session.tolerated & wrong_before)
        self._doubted: set[str] = set()
        for contradicting in contradicting_cases(session.results):
            self._doubted.update(result.case_id for result in contradicting)
        groups = by_made_case(session.results)
        ranks = {made: rank for rank, made in enumerate(by_made_case(worst_results(session)))}

        def urgency(made: str) -> tuple[int, int]:
            """What is to be looked at first: wrong verdicts in the order in which to read them,
            those that a probe turned, doubtful labels, cases without a verdict.
            """
            if made in ranks:
                return 0, ranks[made]
            signs = {self._kind(groups[made]), *self._tags(groups[made])}
            for place, sign in enumerate(("turned", "label in doubt", "no verdict"), 1):
                if sign in signs:
                    return place, 0
            return (5 if "not judged" in signs else 4), 0

        self.groups = {made: groups[made] for made in sorted(groups, key=urgency)}

    def rubrics(self) -> dict[str, JsonValues]:
        """The rubrics that rows name, with the levels of their scales."""
        session = self.session
        values = {}
        for result in session.results:
            key = _rubric_key(result)
            if key in values:
                continue
            # What is called the rubric of a table may be a column of labels.
            name = result.rubric_id if session.has_rubrics else ""
            rubric = session.rubrics.get((result.suite, result.rubric_id), Rubric(name, ""))
            place = ""
            if rubric.file:
                path, folder = Path(rubric.file), session.folder
                place = f"{path if folder is None else relative_path(path, folder)}:{rubric.line}"
            scale = session.scale(result)
            values[key] = {
                "id": rubric.id,
                "text": rubric.instructions,
                "place": place,
                "levels": [scale.meant(level.score) for level in scale.levels],
            }
        return values

    def row(self, made: str) -> JsonValues:
        """The row of the case with this id."""
        results = self.groups[made]
        first = results[0]
        judges = []
        for result in results:
            is_wrong = result.outcome == "disagree"
            key = case_key(result.case_id)
            judges.append({"key": key, "name": result.judge, "wrong": is_wrong})
        return {
            "key": case_key(made),
            "suite": first.suite,
            "rubric": _rubric_key(first),
            "run": first.run_id,
            "epoch": first.epoch,
            "test": first.test,
            "variant": first.spec.variant,
            "title": _title(first),
            "kind": self._kind(results),
            "tags": self._tags(results),
            "judges": judges,
            "node": self.session.node(_shown(results).case_id),
        }

    def _kind(self, results: Sequence[CaseResult]) -> str:
        outcomes = {result.outcome for result in results}
        first = results[0]
        if "disagree" in outcomes:
            if first.spec.derived:
                return "turned"
            of_class = first.case_class
            return "wrong" if of_class is None else of_class.mistake
        if outcomes & {*UNSCORED, "no_case", "generated"}:
            return "not judged"
        return "right" if "agree" in outcomes else "no label"

    def _tags(self, results: Sequence[CaseResult]) -> list[str]:
        """What else is to be said of a case, by which it can be found."""
        first = results[0]
        ids = {result.case_id for result in results}
        is_doubted = bool(ids & self._doubted) or first.extra.altered or first.extra.reworded
        labels = set(blind_scores(self.session, first).values())
        signs = {tag: bool(ids & marked) for tag, marked in self.marked.items()}
        if first.label is not None:
            is_other = bool(labels - {first.label})
            is_in_doubt = is_other or (bool(is_doubted) and not first.is_accepted)
            signs["label in doubt"] = is_in_doubt
            signs["label checked"] = bool(labels) and not is_in_doubt
        signs |= {
            "no verdict": any(result.outcome in UNSCORED for result in results),
            "flickers": any(result.flickers for result in results),
            "not shown": any(map(not_shown_text, results)),
            "reason contradicts": any(map(reasoning_disagrees, results)),
            first.extra.review: first.extra.review not in ("", "undecided"),
        }
        return [sign for sign, holds in signs.items() if holds]

    def body(self, made: str) -> JsonValues:
        """All else of the case with this id; its `turns` are None where no case was made, and its
        `rubric` is what is otherwise than in the suite.
        """
        session, results = self.session, self.groups[made]
        first = results[0]
        case, turns = self.case_and_turns(first)
        rubric = session.rubrics.get((first.suite, first.rubric_id))
        other = None
        if case is not None and (rubric is None or case.rubric.instructions != rubric.instructions):
            text = case.rubric.instructions
            if first.extra.reworded and rubric is not None:
                text = f"{rubric.instructions}\n\nThe case was made and labelled for:\n{text}"
            other = {"id": case.rubric.id, "text": text}
        return {
            "turns": turns,
            "voices": [voice._asdict() for voice in voices(session, results, case)],
            "facts": list(self._facts(results, case)),
            "commands": list(self._commands(_shown(results))),
            "rubric": other,
        }

    def case_and_turns(self, result: CaseResult) -> tuple[Case | None, list[JsonValues] | None]:
        """The case as it was judged, and its turns; of a probe's whose change a model made those of
        the case before it.
        """
        session, spec = self.session, result.spec
        base_id = generation_id(spec.base_case) if spec.derived else made_case_id(result)
        case = session.redactor.value(session.records.read(base_id))
        if case is None:
            return None, None
        turns = case_turns(case)
        if spec.derived and spec.suite in session.probed:
            changed = session.probed[spec.suite](case, spec)
            if changed is not None:
                case, turns = changed, probe_turns(case, changed)
        for turn in turns:
            for part in (*turn["parts"], *turn.get("was", ())):
                # Images of logs are large: a page that is served has them.
                part.pop("address", None)
        return case, turns

    def _facts(self, results: Sequence[CaseResult], case: Case | None) -> Iterator[tuple[str, str]]:
        first = results[0]
        if case is not None and first.spec.derived and not case.spec.derived:
            yield "Transcript", "As it was before the probe, whose change a model made."
        if case is not None and case.style:
            yield "Layout", f"The judge reads the transcript as {case.style.replace('_', ' ')}."
        for result in results:
            judge = f"{one_line(result.judge)}: " if result.judge else ""
            if not_shown := not_shown_text(result):
                yield "Shown to the judge", f"{judge}The judge was {not_shown}."
            if reasoning_disagrees(result):
                yield "Reasoning", judge + REASONING_DISAGREES
        if case is not None and case.review is not None:
            yield "Reviewed by a person", decided_text(first, case)
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

    def _commands(self, shown: CaseResult) -> Iterator[tuple[str, str]]:
        command = self.session.commands.get(shown.case_id)
        if command:
            if shown.outcome == "disagree" and not shown.spec.derived:
                yield "Is the label wrong?", f"{command} --jrh-review"
            yield "Run it again", command


def _shown(results: Sequence[CaseResult]) -> CaseResult:
    """The first of a panel's results that is wrong, else the first."""
    return next((result for result in results if result.outcome == "disagree"), results[0])


def _rubric_key(result: CaseResult) -> str:
    return short_digest(f"{result.suite}\0{result.rubric_id}", 8)


def _title(result: CaseResult) -> str:
    """What was done to a case, as far as the editor says it; of a run as it is, the run."""
    if result.outcome == "no_case" and not result.extra.edit:
        return shortened(one_line(common_part(result.why.text)), _LONGEST_TITLE)
    return one_line(result.run_id) if result.spec.natural else what_was_done(result)


EDITED = "edited"
BY_PERSON = "edited by a person"
INSERTED = "inserted"
LEFT_OUT = "left out"
BY_PROBE = "changed by the probe"


# ---- Turns


def case_turns(case: Case) -> list[JsonValues]:
    """The turns of a transcript beside those of its run; what was left out is where it stood."""
    turns = []
    for pair in turn_pairs(case.run.messages, case.messages):
        if pair.new is None and pair.old is not None and holds_acts(case):
            message = case.run.messages[pair.old]
            edits = [edit for edit in case.outcome.edits if message in edit.before]
            why = list(_why(case, pair.old, edits))
            turns.append({**_turn(message, pair.old), "state": LEFT_OUT, "why": why})
        else:
            turns.append(_made_turn(case, pair))
    return turns


def probe_turns(base: Case, case: Case) -> list[JsonValues]:
    """The turns of a case that a probe made of another one, beside those of that."""
    turns = []
    for pair in turn_pairs(base.messages, case.messages):
        if pair.new is None and pair.old is not None:
            turns.append({**_turn(base.messages[pair.old], pair.old), "state": LEFT_OUT})
        elif pair.new is not None:
            message = case.messages[pair.new]
            turn = _turn(message, pair.new)
            if pair.old is None:
                turn["state"] = INSERTED
            elif base.messages[pair.old] != message:
                turn["state"] = BY_PROBE
                # As it is written: a probe may change how JSON is laid out.
                turn["parts"] = list(_parts(message, raw=True))
                turn["was"] = list(_parts(base.messages[pair.old], raw=True))
            turns.append(turn)
    return turns


def bare_turns(messages: Sequence[Message]) -> list[JsonValues]:
    """The turns for people who may not know how they were made: without reasoning, which edited
    ones have lost, and with the text of each in one part, as an edit leaves it.
    """
    return [_turn(message, index, bare=True) for index, message in enumerate(messages)]


def _made_turn(case: Case, pair: TurnPair) -> JsonValues:
    before, after = _message(case.run.messages, pair.old), _message(case.messages, pair.new)
    # In a record that somebody has changed the transcripts may differ in length.
    index = pair.new if pair.new is not None else pair.old or 0
    turn = _turn(after or before, index)
    # Those that made what stands at this position of the made transcript.
    edits = []
    for edit in case.outcome.edits:
        length = len(edit.after) if edit.is_splice else 1
        if edit.message_index <= index < edit.message_index + length:
            edits.append(edit)
    # An error, or reasoning that said what an act changed.
    is_other = before != after and any(edit.is_splice for edit in edits)
    if _said(before) == _said(after) and not is_other:
        return turn
    turn["why"] = list(_why(case, pair.old, edits))
    if pair.old is None and holds_acts(case):
        return {**turn, "state": INSERTED}
    by_person = any(edit.editor_reason == BY_HAND for edit in edits)
    has_reasoning = any(part["kind"] == "reasoning" for part in turn["parts"])
    # The text of an edited turn is in one part, and its reasoning is gone.
    was = list(_parts(before, bare=not has_reasoning))
    return {**turn, "state": BY_PERSON if by_person else EDITED, "was": was}


def _said(message: Message) -> tuple[str, str]:
    return message_text(message), render_tool_calls(message)


def _message(messages: Sequence[Message], index: int | None) -> Message:
    return messages[index] if index is not None and index < len(messages) else {}


def _why(case: Case, old: int | None, edits: Iterable[Edit]) -> Iterator[list[str]]:
    """Why a turn was changed that stood at position `old` of the run, as titles and texts."""
    plan = case.outcome.plan
    for step in plan.steps if plan else ():
        if step.message_index == old:
            yield ["Goal", step.goal]
            yield ["Why this turn", step.rationale]
    for edit in edits:
        if edit.follows:
            yield ["To stay consistent", edit.follows]
        if edit.editor_reason not in ("", BY_HAND):
            yield ["The editor's reason", edit.editor_reason]


def _turn(message: Message, index: int, *, bare: bool = False) -> JsonValues:
    role = one_line(str(message.get("role", "unknown")))
    turn: JsonValues = {"index": index, "role": role, "parts": list(_parts(message, bare=bare))}
    turn["role"] += one_line(named(message))
    if role == "tool" and message.get("function"):
        turn["name"] = one_line(str(message["function"]))
    return turn


def _parts(message: Message, *, bare: bool = False, raw: bool = False) -> Iterator[JsonValues]:
    """The parts of a turn; `bare` as in `bare_turns`, and `raw` with JSON as it is written."""
    for part in _written_parts(message, bare=bare):
        if part["kind"] == "result" and not raw:
            part["text"] = indented_json(part["text"])
        yield part


def _written_parts(message: Message, *, bare: bool) -> Iterator[JsonValues]:
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
                result = f"{block.get('result', '')}{block.get('error') or ''}"
                yield _part("result", f"result of {block.get('name', '')}", result)
    if sources := sources_of(message):
        yield _part("media", "cites", "\n".join(sources))
    for call in message.get("tool_calls") or ():
        arguments = call.get("arguments")
        text = _arguments(arguments) if isinstance(arguments, dict) else str(arguments)
        if call.get("parse_error"):
            text += f"\nparse error: {call['parse_error']}"
        yield _part("call", str(call.get("function", "")), text)


def _block(block: Mapping[str, Any], text_kind: str) -> JsonValues:
    kind = block.get("type")
    if kind == "text":
        return _part(text_kind, "", block.get("text", ""))
    if kind == "reasoning":
        return _part("reasoning", "reasoning", reasoning_text(block))
    if kind == "tool_use":
        return _part("call", str(block.get("name", "")), str(block.get("arguments", "")))
    image = IMAGE_DATA.match(str(block.get("image", ""))) if kind == "image" else None
    if image is not None:
        part = _part("image", f"image/{image[1]}", "not shown here")
        return {**part, "address": image.string}
    words = block_text(block).partition("\n")[2]
    return _part("media", f"{kind or 'unknown'} block", words or "not shown here")


def _part(kind: str, title: str, text: object) -> JsonValues:
    return {"kind": kind, "title": one_line(title), "text": str(text)}


def _arguments(arguments: Mapping[str, Any]) -> str:
    """`order: "KT-1042", amount: 39.4`; of several lines where a text has them."""
    values = []
    for name, value in arguments.items():
        text = json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, str) and "\n" in value:
            text = "\n".join(["", *indented(value)])
        values.append(f"{name}: {text}")
    has_lines = any("\n" in value for value in values)
    return "\n" + "\n".join(values) + "\n" if has_lines else ", ".join(values)
