"""Text of models, logs and configs in Markdown: in code spans, or as entities on one line of an
HTML block, where nothing of it is read as Markdown, HTML, a mention or a link.
"""

from __future__ import annotations

import html
import re

from pytest_jrh.text import one_line, shortened, visible

LONGEST_NAME = 160
_LONGEST_TEXT = 1_200
_BACKTICKS = re.compile("`+")
_PROSE_MARKS = re.compile(r"([\\`*_\[\]#|~$!])")
_LINKS = re.compile(r"(?i)(www|https?:|ftp:)(?=[./])")


def code(text: str, *, cell: bool = False) -> str:
    """Give the text, on one line, as a code span that it cannot leave.

    In a table's `cell` a pipe is an escape.
    """
    shown = shortened(one_line(text), LONGEST_NAME)
    if cell:
        # A code span keeps no entity, and a backslash before a pipe is read in more than one way.
        shown = shown.replace("|", "\\x7c")
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(shown)), default=0))
    edge = " " if not shown or shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{edge}{shown or ' '}{edge}{fence}"


def prose(text: str) -> str:
    """Give a sentence of ours, that may hold a name from outside, as text without any markup."""
    escaped = _PROSE_MARKS.sub(r"\\\1", html.escape(one_line(text), quote=False))
    # A space without width: GitHub looks for mentions and links when the Markdown is long rendered.
    return _LINKS.sub("\\1\u200b", escaped).replace("@", "@\u200b")


def preformatted(text: str) -> str:
    """Give the text as `<pre>` on a single line, so that no line of it is looked at as Markdown."""
    shown = visible(text).strip()
    more = len(shown) - _LONGEST_TEXT
    note = f"\n… ({more:,} more characters)" if more > 0 else ""
    return f"<pre>{entities(shown[:_LONGEST_TEXT] + note)}</pre>"


def entities(text: str) -> str:
    """Give the text as entities on one line of an HTML block."""
    return html.escape(text).replace("\n", "&#10;")
