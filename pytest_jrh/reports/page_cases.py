"""What the page knows of a case, as JSON values: a row of its list, and a body with the transcript
and what everybody says of it. One layout for a page on disk, which has all of it from a session,
and for one that is served while people decide.

A turn is `{index, role, name, state, parts, was, why}`: `parts` are `{kind, title, text}`, `was`
those before the edit, and `state` says in words who changed it. A voice is `{who, word, why, by,
wrong}`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pytest_jrh.core.diffs import TurnPair, turn_pairs
from pytest_jrh.core.files import relative_path
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.model import (
    SHORT_NAMES,
    UNSCORED,
    Case,
    CaseResult,
    CaseSpec,
    Edit,
    Message,
    Rubric,
    ScoreLevel,
    Verdict,
    equal_verdicts,
)
from pytest_jrh.core.stages import VERIFIER
from pytest_jrh.core.text import one_line, shortened
from pytest_jrh.core.transcript import calls_text, indented, indented_json, message_text
from pytest_jrh.judges.judge import IMAGE_DATA
from pytest_jrh.reports.case_facts import (
    case_basis,
    decided_text,
    label_votes,
    meant,
    repeats_text,
    verifier_score,
)
from pytest_jrh.reports.failures import common_part
from pytest_jrh.reports.said import worst_results
from pytest_jrh.reports.session import (
    Session,
    case_key,
    spending_line,
    total_spending,
)
from pytest_jrh.reports.topics import contradicting_cases, not_shown_line
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.statistics import MEANINGS, REASONING_DISAGREES, reasoning_disagrees
from pytest_jrh.store.people import PersonLabel, holds_acts, last_labels
from pytest_jrh.store.records import BY_HAND

JsonValues: TypeAlias = "dict[str, Any]"
PartKind = Literal["text", "call", "reasoning", "media", "image", "error", "result"]

EDITED = "edited"
BY_PERSON = "edited by a person"
INSERTED = "inserted"
LEFT_OUT = "left out"
BY_PROBE = "changed by the probe"


# ---- Turns


def case_turns(case: Case, made_case: Case | None = None) -> list[JsonValues]:
    """The turns of a transcript beside those of its run, those that were left out where they stood.

    `made_case` is the case as the pipeline made it, where `case` has a person's edits.
    """
    turns = []
    for pair in turn_pairs(case.run.messages, case.messages, case.outcome.edits):
        if pair.new is None and pair.old is not None and holds_acts(case):
            message = case.run.messages[pair.old]
            edits = [edit for edit in case.outcome.edits if message in edit.before]
            why = list(_why(case, pair.old, edits))
            turns.append({**_turn(message, pair.old), "state": LEFT_OUT, "why": why})
        else:
            turns.append(_made_turn(case, made_case or case, pair))
    return turns


def probe_turns(base: Case, case: Case) -> list[JsonValues]:
    """The turns of a case that a probe made of another one, beside those of that."""
    turns = []
    for pair in _aligned(base.messages, case.messages):
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


def _aligned(old: Sequence[Message], new: Sequence[Message]) -> Iterator[TurnPair]:
    """Pair the turns of two transcripts by what is the same in both."""
    old_texts = [json.dumps(message, sort_keys=True) for message in old]
    new_texts = [json.dumps(message, sort_keys=True) for message in new]
    matcher = SequenceMatcher(None, old_texts, new_texts, autojunk=False)
    for _, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        both = min(old_end - old_start, new_end - new_start)
        for offset in range(both):
            yield TurnPair(old_start + offset, new_start + offset)
        for index in range(old_start + both, old_end):
            yield TurnPair(index, None)
        for index in range(new_start + both, new_end):
            yield TurnPair(None, index)


def _made_turn(case: Case, made_case: Case, pair: TurnPair) -> JsonValues:
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
    why = list(_why(case, pair.old, edits))
    if dropped := sum(edit.dropped_reasoning for edit in edits):
        why.append(["Reasoning", f"{dropped} of its parts went with the old text"])
    turn["why"] = why
    if pair.old is None and holds_acts(case):
        return {**turn, "state": INSERTED}
    by_person = _said(_message(made_case.messages, index)) != _said(after)
    by_person = by_person or any(edit.editor_reason == BY_HAND for edit in edits)
    has_reasoning = any(part["kind"] == "reasoning" for part in turn["parts"])
    # The text of an edited turn is in one part, and its reasoning is gone.
    was = list(_parts(before, bare=not has_reasoning))
    return {**turn, "state": BY_PERSON if by_person else EDITED, "was": was}


def _said(message: Message) -> tuple[str, str]:
    return message_text(message), calls_text(message)


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
    if role == "tool" and message.get("function"):
        turn["name"] = one_line(str(message["function"]))
    return turn


def _parts(message: Message, *, bare: bool = False, raw: bool = False) -> Iterator[JsonValues]:
    """The parts of a turn; `bare` as in `bare_turns`, and `raw` with JSON as it is written."""
    for part in _written_parts(message, bare=bare):
        if part["kind"] == "result" and not raw:
            part["text"] = _readable(part["text"])
        yield part


def _written_parts(message: Message, *, bare: bool) -> Iterator[JsonValues]:
    text_kind: PartKind = "result" if message.get("role") == "tool" else "text"
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
    for call in message.get("tool_calls") or ():
        arguments = call.get("arguments")
        text = _arguments(arguments) if isinstance(arguments, dict) else str(arguments)
        if call.get("parse_error"):
            text += f"\nparse error: {call['parse_error']}"
        yield _part("call", str(call.get("function", "")), text)


def _block(block: Mapping[str, Any], text_kind: PartKind) -> JsonValues:
    kind = block.get("type")
    if kind == "text":
        return _part(text_kind, "", block.get("text", ""))
    if kind == "reasoning":
        text = block.get("reasoning", "")
        if block.get("redacted"):
            text = block.get("summary") or "[redacted]"
        return _part("reasoning", "reasoning", text)
    if kind == "tool_use":
        return _part("call", str(block.get("name", "")), str(block.get("arguments", "")))
    image = IMAGE_DATA.match(str(block.get("image", ""))) if kind == "image" else None
    if image is not None:
        part = _part("image", f"image/{image[1]}", "not shown here")
        return {**part, "address": image.string}
    return _part("media", f"{kind or 'unknown'} block", "not shown here")


def _part(kind: PartKind, title: str, text: object) -> JsonValues:
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


def _readable(text: str) -> str:
    """The values of a JSON object that holds nothing but short ones as lines, with numbers as they
    are written; other JSON with each value on a line, and other text as it is.
    """
    if not text.lstrip().startswith("{"):
        return indented_json(text)
    try:
        values = json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return text
    lines = []
    for name, value in values.items():
        shown_value = value if isinstance(value, str) else json.dumps(value)
        if isinstance(value, dict | list) or len(f"{name}{shown_value}".splitlines()) > 1:
            return indented_json(text)
        lines.append(f"{name}: {shown_value}")
    return "\n".join(lines) or text


# ---- Voices


def score_words(levels: Sequence[ScoreLevel]) -> dict[int, str]:
    """What each score is called; without levels those of a binary suite."""
    return {level.score: meant(level.score, levels) for level in levels} or dict(MEANINGS)


def voice(
    who: str, word: str, why: str = "", by: str = "", *, is_wrong: bool = False
) -> JsonValues:
    """What somebody says of a case: `word` is the verdict, `by` says who stands behind it."""
    return {"who": who, "word": word, "why": why, "by": by, "wrong": is_wrong}


def label_voices(
    case: Case,
    label: int | None,
    words: Mapping[int, str],
    people: Iterable[PersonLabel] = (),
) -> list[JsonValues]:
    """The label of a case, with why it is what it is, and everybody who says otherwise."""
    verification = case.outcome.verification
    rationale = "" if verification is None else verification.rationale
    checked = verifier_score(case)
    voices = []
    agreeing, others = [], []
    for person in people:
        name = one_line(person.reviewer) + (", blind" if person.blind else "")
        if label is not None and person.label == label:
            agreeing.append(name)
        elif person.label is not None:
            word = words.get(person.label, str(person.label))
            others.append(voice(name, word, person.note, "a person", is_wrong=label is not None))
    if label is not None:
        why = rationale if checked == label else ""
        why = why or "\n".join(label_votes(case))
        if not why and case.outcome.plan is not None:
            why = case.outcome.plan.thesis
        by = ", ".join([case_basis(case), *agreeing])
        voices.append(voice("label", words.get(label, str(label)), why, by))
    if checked is not None and checked != label:
        word = words.get(checked, str(checked))
        voices.append(voice(VERIFIER.name, word, rationale, is_wrong=label is not None))
    return [*voices, *others]


def judge_voices(
    who: str, verdicts: Sequence[Verdict], label: int | None, words: Mapping[int, str]
) -> Iterator[JsonValues]:
    """What a judge says, equal verdicts of its repeats once."""
    different = equal_verdicts(verdicts)
    for verdict, repeats in different.items():
        by = repeats_text(repeats) if len(different) > 1 else ""
        is_wrong = label is not None and verdict.score != label
        word = words.get(verdict.score, str(verdict.score))
        yield voice(who, word, verdict.reasoning, by, is_wrong=is_wrong)


def merged(voices: Iterable[JsonValues]) -> list[JsonValues]:
    """Voices that say the same for the same reason as one."""
    alike: dict[tuple[str, str, str], JsonValues] = {}
    for one in voices:
        key = one["word"], one["why"], one["by"]
        if key in alike:
            alike[key]["who"] += f", {one['who']}"
        else:
            alike[key] = dict(one)
    return list(alike.values())


def case_plan(case: Case) -> JsonValues | None:
    """What the planner wanted of the edits, each with the turn that it is about."""
    plan = case.outcome.plan
    if plan is None:
        return None
    places = {}
    for old, new in turn_pairs(case.run.messages, case.messages, case.outcome.edits):
        if old is not None and new is not None:
            places[old] = new
    steps = []
    for step in plan.steps:
        turn = places.get(step.message_index, step.message_index)
        steps.append({"turn": turn, "goal": step.goal, "rationale": step.rationale})
    return {"thesis": plan.thesis, "steps": steps}


def case_body(
    turns: list[JsonValues] | None,
    voices: Sequence[JsonValues],
    *,
    case: Case | None = None,
    facts: Iterable[Sequence[str]] = (),
    commands: Iterable[Sequence[str]] = (),
    rubric: JsonValues | None = None,
) -> JsonValues:
    """Everything about a case but its row; `turns` is None where no case was made, and `rubric`
    what is otherwise than in the suite.
    """
    shown_facts = [list(fact) for fact in facts]
    if case is not None:
        if case.outcome.final_summary:
            shown_facts.append(["The verifier's summary", case.outcome.final_summary])
        shown_facts += [["Note", note] for note in case.run.notes]
    return {
        "turns": turns,
        "voices": list(voices),
        "plan": None if case is None else case_plan(case),
        "facts": shown_facts,
        "commands": [list(one) for one in commands],
        "rubric": rubric,
    }


# ---- The cases of a session


IN_DOUBT = "label in doubt"
NO_VERDICT = "no verdict"
_LONGEST_TITLE = 160


def case_row(
    spec: CaseSpec, *, key: str, rubric: str, title: str, kind: str, **more: Any
) -> JsonValues:
    """A case as a row of the list: `more` are its `label`, `tags`, `judges` as `{key, name, score,
    wrong}` and `node`.
    """
    return {
        "key": key,
        "suite": spec.suite,
        "rubric": rubric,
        "run": spec.run_id,
        "epoch": spec.epoch,
        "test": spec.test,
        "variant": spec.variant,
        "title": title,
        "kind": kind,
        "label": None,
        "tags": [],
        "judges": [],
        "node": "",
        **more,
    }


def rubric_values(
    rubric: Rubric, levels: Sequence[ScoreLevel], suite: str, place: str = ""
) -> JsonValues:
    """A rubric of the page: what it says, and the levels of its scale."""
    return {
        "suite": suite,
        "id": rubric.id,
        "text": rubric.instructions,
        "place": place,
        "levels": [meant(level.score, levels) for level in levels],
    }


class SessionCases:
    """The cases of a session, the most urgent first; a panel's verdicts on one are together."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # By tag, the ids of the cases that have it.
        self._marked: dict[str, set[str]] = {"regression": set(), "by flicker": set(), "fix": set()}
        for decision in session.decisions.values():
            self._marked["regression"].update(decision.regressions)
            self._marked["by flicker"].update(decision.flickered)
            self._marked["fix"].update(decision.fixes)
        # What a baseline or a limit decides about is tolerated, too, and nobody expects it to fail.
        wrong_before = {
            case for case, before in session.earlier.items() if before.outcome == "disagree"
        }
        self._marked["expected to fail"] = set(session.tolerated & wrong_before)
        self._new_prompts = set()
        for change in session.prompt_changes:
            if change.is_reworded:
                self._new_prompts.add((change.now.suite, change.now.judge))
        people = [person for grounds in session.grounds.values() for person in grounds.people]
        self._people = last_labels(people)
        self._doubted: set[str] = set()
        for contradicting in contradicting_cases(session.results):
            self._doubted.update(result.case_id for result in contradicting)
        self.groups: dict[str, list[CaseResult]] = {}
        for result in session.results:
            self.groups.setdefault(made_case_id(result), []).append(result)
        # By suite and rubric id, the first of its results.
        self._rubrics: dict[tuple[str, str], CaseResult] = {}
        for result in session.results:
            pair = result.spec.suite, result.spec.rubric_id
            self._rubrics.setdefault(pair, result)
        self._rubric_keys = {pair: str(number) for number, pair in enumerate(self._rubrics)}
        in_order = [result.case_id for result in worst_results(session)]
        # Then what probes turned: first of the worst judge, and of that by the worst probe.
        turned: Counter[tuple[str, str]] = Counter()
        for table in session.probes:
            turned[table.suite, table.judge] += table.total.turned
        tables = sorted(
            session.probes,
            key=lambda table: (-turned[table.suite, table.judge], -table.total.turned),
        )
        for table in tables:
            in_order += table.cases
        ranks = {case: rank for rank, case in enumerate(in_order)}
        in_order_of_urgency = sorted(
            self.groups.items(), key=lambda group: self._urgency(group[1], ranks)
        )
        self.groups = dict(in_order_of_urgency)

    def _urgency(self, results: Sequence[CaseResult], ranks: Mapping[str, int]) -> tuple[int, int]:
        """What is to be looked at first: wrong verdicts in the order in which to read them, those
        that a probe turned, doubtful labels, cases without a verdict.
        """
        worst = min(ranks.get(result.case_id, len(ranks)) for result in results)
        if worst < len(ranks):
            return 0, worst
        tags, kind = self._tags(results), self._kind(results)
        if kind == "turned":
            return 1, 0
        if IN_DOUBT in tags:
            return 2, 0
        if NO_VERDICT in tags:
            return 3, 0
        return 5 if kind == "not judged" else 4, 0

    def rubrics(self) -> dict[str, JsonValues]:
        """The rubrics that rows name."""
        values = {}
        for (suite, name), result in self._rubrics.items():
            # What is called the rubric of a table may be a column of labels.
            shown_name = name if self._session.has_rubrics else ""
            rubric = self._session.rubrics.get((suite, name), Rubric(shown_name, ""))
            place = ""
            if rubric.file:
                path, folder = Path(rubric.file), self._session.folder
                place = f"{path if folder is None else relative_path(path, folder)}:{rubric.line}"
            key = self._rubric_keys[suite, name]
            values[key] = rubric_values(rubric, self._session.levels(result), suite, place)
        return values

    def row(self, made: str) -> JsonValues:
        """The row of the case with this id."""
        results = self.groups[made]
        first = results[0]
        judges = []
        for result in results:
            values = {"key": case_key(result.case_id), "name": result.judge, "score": result.score}
            judges.append({**values, "wrong": result.outcome == "disagree"})
        shown = next((result for result in results if result.outcome == "disagree"), first)
        return case_row(
            first.spec,
            key=case_key(made),
            rubric=self._rubric_keys[first.spec.suite, first.spec.rubric_id],
            title=self._title(first),
            kind=self._kind(results),
            label=first.label,
            tags=self._tags(results),
            judges=judges,
            node=self._session.node(shown.case_id),
        )

    def _title(self, result: CaseResult) -> str:
        if result.outcome == "no_case" and not result.extra.edit:
            return shortened(one_line(common_part(result.why.text)), _LONGEST_TITLE)
        return case_title(result.spec, result.extra.edit)

    def _kind(self, results: Sequence[CaseResult]) -> str:
        outcomes = {result.outcome for result in results}
        spec = results[0].spec
        if "disagree" in outcomes:
            if spec.derived:
                return "turned"
            if self._session.levels(results[0]):
                return "wrong"
            return "missed" if results[0].label else "false alarm"
        if outcomes & {*UNSCORED, "no_case"}:
            return "not judged"
        return "right" if "agree" in outcomes else "no label"

    def _tags(self, results: Sequence[CaseResult]) -> list[str]:
        """What else is to be said of a case, by which it can be found."""
        first = results[0]
        ids = {result.case_id for result in results}
        is_doubted = bool(ids & self._doubted) or first.extra.altered or first.extra.reworded
        labels = {person.label for person in self._people.get(first.case_digest, {}).values()}
        labels.discard(None)
        tags = [tag for tag, marked in self._marked.items() if ids & marked]
        if first.label is not None:
            if labels - {first.label} or (is_doubted and not first.is_accepted):
                tags.append(IN_DOUBT)
            elif labels:
                tags.append("label checked")
        others = {
            NO_VERDICT: any(result.outcome in UNSCORED for result in results),
            "flickers": any(result.flickers for result in results),
            "not shown": any(not_shown_line(result) for result in results),
            "reason contradicts": any(map(reasoning_disagrees, results)),
            first.extra.review: first.extra.review not in ("", "undecided"),
        }
        return [*tags, *(tag for tag, holds in others.items() if holds)]

    def body(self, made: str) -> JsonValues:
        """All else of the case with this id."""
        session, results = self._session, self.groups[made]
        first = results[0]
        spec = first.spec
        case, base = self._case(first)
        turns = None
        if case is not None:
            turns = case_turns(case) if base is None else probe_turns(base, case)
            for turn in turns:
                for part in (*turn["parts"], *turn.get("was", ())):
                    # Images of logs are large: a page that is served has them.
                    part.pop("address", None)
        rubric = session.rubrics.get((spec.suite, spec.rubric_id))
        words = score_words(session.levels(first))
        voices = []
        if case is not None:
            people = self._people.get(first.case_digest, {}).values()
            voices += label_voices(case, first.label, words, people)
        elif first.label is not None:
            voices.append(voice("label", words.get(first.label, str(first.label))))
        other = None
        made_for = "" if case is None else case.rubric.instructions
        if first.extra.reworded and rubric is not None:
            text = f"{rubric.instructions}\n\nThe case was made and labelled for:\n{made_for}"
            other = {"text": text}
        elif case is not None and (rubric is None or made_for != rubric.instructions):
            other = {"id": case.rubric.id, "text": made_for}
        return case_body(
            turns,
            [*voices, *merged(self._judged(results, words))],
            case=case,
            facts=self._facts(results, case, base),
            commands=self._commands(results),
            rubric=other,
        )

    def _case(self, result: CaseResult) -> tuple[Case | None, Case | None]:
        """The case as it was judged; of a probe's also the one that it was made of, which stands
        for it where models made it.
        """
        session, spec = self._session, result.spec
        if not spec.derived:
            return session.redactor.value(session.records.read(made_case_id(result))), None
        base = session.records.read(generation_id(spec.base_case))
        if base is None:
            return None, None
        base = session.redactor.value(base)
        changed = session.probed[spec.suite](base, spec) if spec.suite in session.probed else None
        return (base, None) if changed is None else (changed, base)

    def _judged(
        self, results: Sequence[CaseResult], words: Mapping[int, str]
    ) -> Iterator[JsonValues]:
        """What each judge says, and before that what it said of the case in the baseline."""
        for result in results:
            judge = one_line(result.judge)
            is_new = (result.suite, result.judge) in self._new_prompts
            earlier = self._session.earlier.get(result.case_id)
            if earlier is not None:
                before = f"{judge} before" if judge else "old prompt" if is_new else "before"
                yield from judge_voices(before, earlier.verdicts, result.label, words)
        for result in results:
            is_new = (result.suite, result.judge) in self._new_prompts
            judge = one_line(result.judge) or ("new prompt" if is_new else "judge")
            yield from judge_voices(judge, result.verdicts, result.label, words)
            if result.outcome in UNSCORED:
                yield voice(judge, "no verdict", common_part(result.why.text), result.outcome)
            elif result.outcome == "no_case":
                yield voice("no case", "not judged", common_part(result.why.text))

    def _facts(
        self, results: Sequence[CaseResult], case: Case | None, base: Case | None
    ) -> Iterator[tuple[str, str]]:
        first = results[0]
        if first.spec.derived and case is not None and base is None:
            yield "Transcript", "As it was before the probe, whose change a model made."
        if case is not None and case.style:
            yield "Layout", f"The judge reads the transcript as {case.style.replace('_', ' ')}."
        for result in results:
            judge = f"{one_line(result.judge)}: " if result.judge else ""
            if line := not_shown_line(result):
                yield "Shown to the judge", judge + line
            if reasoning_disagrees(result):
                yield "Reasoning", judge + REASONING_DISAGREES
        if decided := decided_text(first, case):
            yield "Reviewed by a person", decided
        spending = total_spending(results)
        # Verdicts of a table, and of a judge that is code, took no call.
        if spending.calls or spending.replayed:
            yield "Cost", spending_line(spending)

    def _commands(self, results: Sequence[CaseResult]) -> Iterator[tuple[str, str]]:
        shown = next((result for result in results if result.outcome == "disagree"), results[0])
        command = self._session.commands.get(shown.case_id)
        if command:
            if shown.outcome == "disagree" and not shown.spec.derived:
                yield "Is the label wrong?", f"{command} --jrh-review"
            yield "Run it again", command


def case_title(spec: CaseSpec, edit: str = "") -> str:
    """What was done to a case, as far as the editor says it; of a run as it is, the run."""
    if spec.derived:
        return f"{spec.test}: {spec.variant}".replace("_", " ")
    if spec.natural:
        return one_line(spec.run_id)
    return one_line(edit) or SHORT_NAMES[spec.test]


def search_text(body: JsonValues, longest: int) -> str:
    """What a case is found by: reasons, plan, and edited turns."""
    parts = [one["why"] for one in body["voices"]]
    if body["plan"] is not None:
        parts.append(body["plan"]["thesis"])
    for turn in body["turns"] or ():
        if "state" in turn:
            parts += [part["text"] for part in turn["parts"]]
            parts += [text for _, text in turn.get("why", ())]
    return " ".join(" ".join(parts).split())[:longest]
