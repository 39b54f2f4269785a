"""The one page: a session as a file that opens from disk and asks the network for nothing
(`--jrh-report`), and the same page where a server has it (`--jrh-review`).

The answer is plain HTML, escaped by jinja, for browsers that run no script. Rows of the list lie
in a JSON block and transcripts in compressed ones, one source run at a time; both reach the page as
text nodes alone. A content security policy that names the one script and style by their hashes
stands behind that.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.files import encoded, replacing
from pytest_jrh.core.model import UNSCORED
from pytest_jrh.core.templates import render_page
from pytest_jrh.core.text import visible
from pytest_jrh.reports import topics
from pytest_jrh.reports.answer import cards_by_suite, doubt_blocks, next_blocks, session_title
from pytest_jrh.reports.blocks import Sentence, block_values
from pytest_jrh.reports.gate import decision_blocks, gate_cases, how_sure, prompt_blocks
from pytest_jrh.reports.grounds import label_sentences
from pytest_jrh.reports.page_cases import SessionCases, search_text
from pytest_jrh.reports.probes import probe_blocks
from pytest_jrh.reports.provenance import provenance_blocks
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import case_key, spending_lines
from pytest_jrh.stats.figures import NONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.reports.answer import CardRow, RightShare
    from pytest_jrh.reports.blocks import Block
    from pytest_jrh.reports.page_cases import JsonValues
    from pytest_jrh.reports.session import Session


class HtmlReport(Report):
    """Everything, to be opened in a browser."""

    name = "HTML"
    suffix = ".html"

    def write(self, path: Path, session: Session) -> None:
        write_page(path, session)


FOLDER = Path(__file__).parent / "page"
READING = ("base.js", "overview.js", "list.js", "case.js")
START = "main.js"
BODIES = "<!--bodies-->"
LIMIT = 25_000_000
_MOST_OF_TABLE = 5_000
"""Cases that the page of a table lists: it may be large, and has little more to say of a case than
the table itself."""
_LONGEST_WHEN_CUT = 2_000
# Of one case, and of all together, so that a large report is searched as fast.
_LONGEST_SEARCHED = 4_000
_MOST_SEARCHED = 4_000_000
_ONE_LINE = 10_000
_LISTED = (
    "The list has {:,} of {:,} cases: regressions first, then other wrong verdicts. The figures "
    "are of all."
)


def page_html(
    values: JsonValues,
    *,
    scripts: Iterable[Path] = (),
    styles: Iterable[Path] = (),
    more_policy: str = "",
) -> str:
    """The page of JSON values as `session_values` gives them, with `BODIES` where data blocks
    belong.

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
    tables = [_plain_table(figures) for figures in values["figures"]]
    return render_page(
        FOLDER,
        "page.html",
        {
            "title": f"{values['word']} {values['headline']}".strip(),
            "word": values["word"],
            "headline": values["headline"],
            "sub": values["sub"],
            "tables": tables,
            "style": style,
            "script": script,
            "style_hash": _hash(style),
            "script_hash": _hash(script),
            "more_policy": more_policy,
            "session": data,
        },
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _plain_table(figures: JsonValues) -> JsonValues:
    """The figures without bars, for a page whose script does not run."""
    rows = []
    for row in [*figures["rows"], *filter(None, [figures["total"]])]:
        cells = []
        for share in row["shares"]:
            text = f"{share['count']:,} of {share['n']:,}"
            if share["before"]:
                text += f" (before {share['before']['count']:,})"
            cells.append(text if share["n"] else NONE)
        rows.append([row["name"], *cells])
    return {"titles": [figures["by"], *figures["titles"]], "rows": rows}


# ---- What the page says of a session


def session_values(session: Session, cases: SessionCases) -> JsonValues:
    """What the page shows of a session but for the bodies of its cases."""
    blocks = {
        "answer": block_values(list(_answer(session))),
        "doubts": block_values(list(_doubts(session))),
        "details": block_values(list(_details(session))),
    }
    return {
        "word": session.word,
        "headline": _headline(session),
        "sub": " ".join(_beside(session)),
        "figures": list(_figures(session)),
        "blocks": blocks,
        "rubrics": cases.rubrics(),
        "cases": [],
        "served": None,
    }


def _headline(session: Session) -> str:
    title = session_title(session).removeprefix(f"{session.word}: ")
    return f"{title[:1].upper()}{title[1:]}"


def _beside(session: Session) -> Iterator[str]:
    """What stands below the headline of the only suite."""
    if len(session.decisions) == 1:
        for decision in session.decisions.values():
            for block in decision_blocks(decision):
                if isinstance(block, Sentence):
                    yield block.text


def _answer(session: Session) -> Iterator[Block]:
    yield from topics.extent_blocks(session)
    if len(session.decisions) > 1:
        for suite, decision in session.decisions.items():
            headline = f"{suite}: {decision.word} {decision.headline}"
            yield Sentence(headline, "strong")
            yield from decision_blocks(decision)
    yield from next_blocks(session)


def _doubts(session: Session) -> Iterator[Block]:
    yield from doubt_blocks(session)
    for suite in session.decisions:
        yield from prompt_blocks(session, suite, is_open=True)


def _details(session: Session) -> Iterator[Block]:
    for decision in session.decisions.values():
        yield from how_sure(decision)
        yield from gate_cases(decision, session)
    yield from probe_blocks(session.probes)
    yield from topics.panel_blocks(session)
    yield from topics.left_out_blocks(session)
    yield from topics.review_blocks(session)
    yield from map(Sentence, label_sentences(session))
    yield from topics.shown_folds(session)
    yield from provenance_blocks(session.origin)
    if not session.is_table:
        seconds = session.wall_seconds
        spending = spending_lines(session.spending, _ONE_LINE, wall_seconds=seconds)
        yield Sentence(" | ".join(spending))


def _figures(session: Session) -> Iterator[JsonValues]:
    """Of each suite what is wrong, row by row: rubrics or levels of its judge, or its judges."""
    for suite, cards in cards_by_suite(session).items():
        if not cards:
            continue
        titles = ["missed", "false alarms"]
        by = "rubric"
        if cards[0].mode == "ordinal":
            titles, by = ["wrong"], "level"
        total = None
        if len(cards) > 1:
            by = "judge"
            rows = [_figures_row(card.judge or card.label, card.total) for card in cards]
        else:
            rows = [_figures_row(row.name, row) for row in cards[0].rows or [cards[0].total]]
            if cards[0].rows:
                total = _figures_row(cards[0].total.name, cards[0].total)
        yield {"suite": suite, "by": by, "titles": titles, "rows": rows, "total": total}


def _figures_row(name: str, row: CardRow) -> JsonValues:
    return {"name": name, "shares": [_share(share.complement) for share in row.shares]}


def _share(wrong: RightShare) -> JsonValues:
    now, before = wrong.now, wrong.before
    return {
        "count": now.count or 0,
        "n": now.n,
        "lower": now.lower,
        "upper": now.upper,
        "before": None if before is None else {"count": before.count, "n": before.n},
    }


# ---- The file


def write_page(path: Path, session: Session, *, limit: int = LIMIT) -> None:
    """Write the page, reading one source run's cases at a time; the file stays under `limit` bytes.

    Where transcripts do not all fit, those of the most urgent cases come first, and the page says
    which are left out. Raises `OSError` as it comes; an older file is then still whole.
    """
    listed = _most_urgent(session) if session.is_table else session
    cases = SessionCases(listed)
    runs: dict[tuple[str, str, int], list[str]] = {}
    for made, results in cases.groups.items():
        spec = results[0].spec
        runs.setdefault((spec.suite, spec.run_id, spec.epoch), []).append(made)
    names = {made: f"run-{number}" for number, group in enumerate(runs.values()) for made in group}
    values = session_values(session, cases)
    values["cases"] = [{**cases.row(made), "block": names[made]} for made in cases.groups]
    if len(listed.results) < len(session.results):
        text = _LISTED.format(len(listed.results), len(session.results))
        values["blocks"]["answer"] += block_values([Sentence(text)])
    clean = printable(session.redactor.value(values))
    head, tail = page_html(clean).split(BODIES)
    # What cases are searched by comes last, and transcripts are not to take its room.
    for_search = limit // 10
    room = limit - for_search - len(encoded(head)) - len(encoded(tail))
    texts: dict[str, str] = {}
    longest = min(_LONGEST_SEARCHED, _MOST_SEARCHED // max(1, len(names)))
    with replacing(path) as file:
        file.write(encoded(head))
        for group in runs.values():
            bodies = {}
            for made in group:
                body = printable(session.redactor.value(cases.body(made)))
                bodies[case_key(made)] = body
                texts[case_key(made)] = search_text(body, longest)
            for shown in (bodies, _cut(bodies)):
                # Cut to verdicts where the whole does not fit; nothing where not even that.
                block = _data(names[group[0]], packed(_pooled(shown)))
                if len(block) <= room:
                    room -= len(block)
                    file.write(block)
                    break
        search = _data("search", packed(texts))
        if len(search) <= room + for_search:
            file.write(search)
        file.write(encoded(tail))


def _most_urgent(session: Session) -> Session:
    """The session of a large table with its wrong verdicts, cases without one, and some others."""
    if len(session.results) <= _MOST_OF_TABLE:
        return session
    regressions: set[str] = set()
    for decision in session.decisions.values():
        regressions.update(decision.regressions)

    def urgency(result: CaseResult) -> int:
        if result.case_id in regressions:
            return 0
        if result.outcome == "disagree":
            return 1
        return 2 if result.outcome in UNSCORED else 3

    ranked = sorted(session.results, key=urgency)[:_MOST_OF_TABLE]
    kept = {result.case_id for result in ranked}
    return replace(session, results=[one for one in session.results if one.case_id in kept])


def packed(value: Any) -> str:
    """JSON compressed by zlib, in base64, which the page unpacks."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 6)).decode("ascii")


def _data(name: str, text: str) -> bytes:
    """A data block, which no browser runs."""
    return f'<script type="text/plain" id="{name}">{text}</script>\n'.encode("ascii")


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


def _cut(bodies: Mapping[str, JsonValues]) -> dict[str, JsonValues]:
    """The bodies without transcripts, and without the ends of long texts."""
    cut = {}
    for key, body in bodies.items():
        cut[key] = _with_texts({**body, "turns": [], "is_cut": True}, _shortened)
    return cut


def _shortened(text: str) -> str:
    more = len(text) - _LONGEST_WHEN_CUT
    return f"{text[:_LONGEST_WHEN_CUT]}… ({more:,} more characters)" if more > 0 else text


def printable(value: Any) -> Any:
    """The JSON value with every text in it, but no key, made visible."""
    return _with_texts(value, visible)


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _with_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_texts(item, change) for item in value]
    return value
