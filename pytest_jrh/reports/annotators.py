"""How people who label the same cases agree with each other, and judges with them; which cases are
disputed, and how the labels of a table without verdicts are spread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pytest_jrh.core.documents import listed
from pytest_jrh.core.text import counted, one_line
from pytest_jrh.reports.blocks import (
    Block,
    Cases,
    Cell,
    Row,
    Section,
    Sentence,
    Table,
    figure,
)
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.topics import case_list, pairs_table
from pytest_jrh.stats.alt_test import AltTest
from pytest_jrh.stats.annotators import THE_JUDGE, Agreement
from pytest_jrh.stats.figures import percent

_MOST_VOTES = 5


def agreement_text(agreement: Agreement) -> str:
    """How far people agree, in pairs and beyond chance."""
    raw, alpha = agreement.raw, figure(agreement.alpha, "number").whole
    cases = counted(raw.n, "case")
    return f"{percent(raw.value)} of pairs on {cases}, Krippendorff's alpha {alpha}"


def people_answer(session: Session, suite: str) -> Iterator[Block]:
    """How far people agree, and judges with them, in a line; of labels alone their spread."""
    people = session.people.get(suite)
    if people is not None:
        text = f"people agree with each other in {percent(people.agreement.raw.value)}"
        for judge, beside in people.judges.items():
            text += f", {one_line(judge or THE_JUDGE)} with them in "
            text += percent(beside.agreement.value)
        yield Sentence(text)
    votes = session.grounds_of(suite).votes
    if votes.cases and not session.results:
        rows = []
        labels = Counter(votes.word(case.label) for case in votes.cases)
        for label, number in labels.most_common():
            rows.append(Row(label, (Cell(f"{number:,}"),)))
        yield Table("label", ("cases",), tuple(rows))


def disputed_cases(session: Session) -> Iterator[Cases]:
    """The cases of which at most half of all people say one thing, with what they say."""
    for suite, grounds in session.grounds.items():
        votes, remarks = grounds.votes, {}
        for number in votes.disputed:
            (rubric, run, epoch), _, _, of_people = votes.cases[number]
            parts = [run, rubric if session.has_rubrics else "", epoch if epoch > 1 else ""]
            said = (f"{person}: {votes.word(vote)}" for person, vote in of_people.items())
            remarks[", ".join(map(str, filter(None, parts)))] = listed(said, _MOST_VOTES)
        title = f"{session.prefix(suite)}disputed"
        yield from case_list(session, title, remarks, "warning", remarks)


def people_sections(session: Session) -> Iterator[Section]:
    """How far people agree; judges beside each of them and they beside each other; whether judges
    may take their place; figures with disputed cases.
    """
    for suite, people in session.people.items():
        blocks: list[Block] = [Sentence(f"People agree in {agreement_text(people.agreement)}.")]
        blocks.append(pairs_table("beside each other", people.pairs))
        for judge, beside in people.judges.items():
            name = one_line(judge or THE_JUDGE)
            if beside.alt_test is not None:
                blocks.append(Sentence(_alt_test_text(name, beside.alt_test)))
            by_votes = [f"{title} {figure(of).whole}" for title, of in beside.by_votes.items()]
            if by_votes:
                text = f"With disputed cases by their votes, {name}: {', '.join(by_votes)}."
                blocks.append(Sentence(text))
        yield Section(f"{session.prefix(suite)}People", tuple(blocks))


def _alt_test_text(judge: str, test: AltTest) -> str:
    experts, others = map(len, test.matched.values())
    return (
        f"Alternative annotator test: {judge} does as well as {experts:,} of {len(test.people):,} "
        f"people to within 0.2 (for experts), as {others:,} to within 0.1 (for others); half of "
        f"them are needed. It is as near to the rest as a person, or nearer, in "
        f"{figure(test.advantage).whole}."
    )
