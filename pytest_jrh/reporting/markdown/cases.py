"""The cases in the Markdown report: disagreements with all that tells judge and label apart, and
why others have no verdict (rule I9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.models import UNSCORED
from pytest_jrh.reporting.evidence.case import (
    WhoSaid,
    record_basis,
    review_text,
    score_text,
    shown_edits,
)
from pytest_jrh.reporting.evidence.earlier import earlier_verdict
from pytest_jrh.reporting.markdown.quoting import LONGEST_NAME, entities, inert, marked, quoted
from pytest_jrh.stats.contradictions import REASONING_DISAGREES, reasoning_disagrees
from pytest_jrh.stats.flickering import flickering
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.text import counted, one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from pytest_jrh.artifacts.spools import ReadRecord
    from pytest_jrh.models import CaseResult
    from pytest_jrh.redact import Redactor
    from pytest_jrh.reporting.markdown.blocks import BoundedPage
    from pytest_jrh.reporting.session_results import SessionResults

# Some thirty of these fill the report; the others keep their place in it with their reasoning.
_MOST_WHOLE = 25
_MOST_EDITS = 3
_LONGEST_EDIT = 1_000
_HOW_TO_TELL = (
    "Judge or label? If the edit shows what the label says of the rubric, the judge is wrong. If "
    "the judge's reason convinces you instead, the label is wrong: reject the case with "
    "--jrh-review, and it counts no more."
)
_WAYS_ON = (
    "What to do next: change the judge's prompt and run again; or, to accept these verdicts, run "
    "again with --jrh-update-baseline and commit the baseline."
)


class CaseBlocks:
    """The parts of the report that are about single cases."""

    def __init__(
        self, page: BoundedPage, session: SessionResults, read: ReadRecord, redactor: Redactor
    ) -> None:
        self._page = page
        self._session = session
        self._read = read
        self._redactor = redactor
        self._who_said = WhoSaid(session)

    def write(self) -> None:
        """Add the disagreements, regressions first, then whatever else is odd about a case."""
        given = self._session.results
        results = [each for each in given if not each.derived]
        self._disagreements([each for each in results if each.outcome == "disagree"])
        right = [each for each in results if each.outcome == "agree"]
        odd = [each for each in right if reasoning_disagrees(each)]
        self._part(f"Right, but {REASONING_DISAGREES}", odd)
        torn = [each for each in flickering(results) if each.outcome == "agree"]
        self._part("Right, but flickering", torn)
        turned = [each for each in given if each.derived and each.outcome == "disagree"]
        self._part("Turned by a probe", turned)
        self._part("Without a verdict", [each for each in given if each.outcome in UNSCORED])

    def _disagreements(self, wrong: list[CaseResult]) -> None:
        if not wrong:
            return
        decisions = self._session.decisions.values()
        first = {case_id for decision in decisions for case_id in decision.regressions}
        wrong.sort(key=lambda result: result.case_id not in first)
        whole = (self._whole(result) for result in wrong[:_MOST_WHOLE])
        ways = f"{_HOW_TO_TELL} {_WAYS_ON}" if first else _HOW_TO_TELL
        head = [f"### Disagreements ({len(wrong):,})\n", f"{ways}\n"]
        self._page.block(head, whole, [""])
        if rest := wrong[_MOST_WHOLE:]:
            self._page.block([], map(self._short, rest), [""])

    def _part(self, title: str, results: list[CaseResult]) -> None:
        if results:
            self._page.block([f"### {title} ({len(results):,})\n"], map(self._short, results), [""])

    def _short(self, result: CaseResult) -> str:
        judged = result.outcome in ("agree", "disagree")
        text = _reasoning(result) if judged else result.detail or "(no reason)"
        return self._details(result, [quoted(self._clean(text))])

    def _whole(self, result: CaseResult) -> str:
        record = self._read(made_case_id(result))
        parts = [f"<p>Who says what: {inert(self._who_said.sentence(result, record))}</p>"]
        if said := review_text(result, record):
            parts.append(f"<p>Reviewed by a person: {inert(self._clean(said))}.</p>")
        rubric = self._session.rubrics.get((result.suite, result.rubric_id))
        if rubric is not None:
            parts.append(self._quote("The rubric", rubric.instructions))
        parts += self._edits(record)
        right = score_text(result, result.expected, self._session)
        if record is not None:
            said = (record["perturbation"]["verification"] or {}).get("rationale") or ""
            basis = record_basis(record, altered=result.altered)
            title = f"Why the label is {right}: {basis}"
            parts.append(self._quote(title, said))
        given = score_text(result, result.score, self._session)
        parts.append(self._quote(f"Why the judge gave {given}", _reasoning(result)))
        earlier = earlier_verdict(result, self._session)
        if earlier is not None:
            title = f"Why the judge of the baseline gave {earlier.given}"
            parts.append(self._quote(title, earlier.reasoning))
        return self._details(result, parts)

    def _edits(self, record: Mapping[str, Any] | None) -> Iterator[str]:
        if record is None:
            return
        edits = list(shown_edits(self._redactor.value(record)))
        if not edits:
            yield "<p>No edit: the judge saw the run as it was recorded.</p>"
        for edit in edits[:_MOST_EDITS]:
            title = f"<p><strong>The edit</strong> of turn {edit.turn} ({inert(edit.role)})"
            why = f": {inert(shortened(one_line(edit.reason), LONGEST_NAME * 2))}"
            yield f"{title}{why if edit.reason else ''}</p>{marked(edit.pieces, _LONGEST_EDIT)}"
        if len(edits) > _MOST_EDITS:
            more = counted(len(edits) - _MOST_EDITS, "more edit")
            yield f"<p>{more}: the HTML report shows them all.</p>"

    def _quote(self, title: str, text: str) -> str:
        head = f"<p><strong>{inert(title)}</strong></p>"
        return f"{head}{quoted(self._clean(text))}" if text else head

    def _clean(self, text: str) -> str:
        """The text without secrets; once it is cut and escaped they could not be found."""
        return self._redactor.text(text)

    def _details(self, result: CaseResult, parts: Iterable[str]) -> str:
        node = shortened(one_line(self._session.node(result.case_id)), LONGEST_NAME)
        said: str = result.outcome
        if said == "disagree":
            said = f"gave {result.given}, right is {result.expected}"
        elif said == "agree":
            said = f"gave {result.given}, which is right"
        if reasoning_disagrees(result):
            said += f"; {REASONING_DISAGREES}"
        command = one_line(self._session.commands.get(result.case_id, ""))
        again = f"<p>run it again:<br><code>{entities(command)}</code></p>" if command else ""
        summary = f"<summary><code>{entities(node)}</code> {said}</summary>"
        return f"<details>{summary}{''.join(parts)}{again}</details>"


def _reasoning(result: CaseResult) -> str:
    """The judge's reasoning; of repeats that differ, also that of one of the others."""
    text, other = result.reasoning or "(no reasoning)", result.minority
    if other is None:
        return text
    return f"{text}\n\nAnother repeat gave {other.score}: {other.reasoning or '(no reasoning)'}"
