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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.files import encoded, replacing
from pytest_jrh.core.templates import render_page
from pytest_jrh.core.text import capital, visible
from pytest_jrh.reports.blocks import Headline, Sentence, block_values
from pytest_jrh.reports.page_cases import SessionCases, search_text
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.said import said
from pytest_jrh.reports.session import case_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_jrh.reports.page_cases import JsonValues
    from pytest_jrh.reports.session import Session


class HtmlReport(Report):
    """Everything, to be opened in a browser."""

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
# Of one case, and of all together, so that a large report is searched as fast.
_LONGEST_SEARCHED = 4_000
_MOST_SEARCHED = 4_000_000
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
    return render_page(
        FOLDER,
        "page.html",
        {
            "title": f"{values['word']} {values['headline']}".strip(),
            "word": values["word"],
            "headline": values["headline"],
            "sub": values["sub"],
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


# ---- What the page says of a session


def session_values(session: Session, cases: SessionCases) -> JsonValues:
    """What the page shows of a session but for the bodies of its cases."""
    everything = said(session, bars=True)
    headline, beside, place = everything.headline, [], 0
    # That of the worst suite stands at the top, with the sentences behind it.
    for block in everything.answer:
        if isinstance(block, Headline) and not place:
            headline = f"{block.suite}: {block.text}" if block.suite else capital(block.text)
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
            "answer": block_values(everything.answer[place:]),
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
    runs: dict[tuple[str, str, int], list[str]] = {}
    for made in listed:
        spec = cases.groups[made][0].spec
        runs.setdefault((spec.suite, spec.run_id, spec.epoch), []).append(made)
    names = {made: f"run-{number}" for number, group in enumerate(runs.values()) for made in group}
    values = session_values(session, cases)
    values["cases"] = [{**cases.row(made), "block": names[made]} for made in listed]
    if len(listed) < len(cases.groups):
        text = _LISTED.format(len(listed), len(cases.groups))
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
        search = _data("texts", packed(texts))
        if len(search) <= room + for_search:
            file.write(search)
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
    """The JSON value with every text in it, but no key, made visible."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: printable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [printable(item) for item in value]
    return value
