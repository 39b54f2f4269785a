"""The rules of docs/rules.md: their numbers, and that every citation leads to a rule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
RULES = ROOT / "docs" / "rules.md"
CITED = re.compile(r"\brules? ([A-Z]\d*\b(?:(?:, | and | to )[A-Z]\d+\b)*)")
RANGE = re.compile(r"([A-Z])(\d+) to \1(\d+)")


def rules() -> list[str]:
    """The numbers of the rules, in the order of the document."""
    return re.findall(r"^\*\*([A-Z]\d+)\. ", RULES.read_text(encoding="utf-8"), re.MULTILINE)


def sections() -> list[str]:
    """The letters of the sections, in the order of the document."""
    return re.findall(r"^## ([A-Z])\. ", RULES.read_text(encoding="utf-8"), re.MULTILINE)


def citations(folder: str) -> Iterator[tuple[str, str]]:
    """Each rule or section that a file below a folder cites, beside the file's path."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        text = " ".join(path.read_text(encoding="utf-8").split())
        for match in CITED.finditer(text):
            cited = RANGE.sub(_spelled_out, match.group(1))
            yield from (
                (name, str(path.relative_to(ROOT))) for name in re.split(r", | and ", cited)
            )


def _spelled_out(match: re.Match[str]) -> str:
    letter, first, last = match.groups()
    return ", ".join(f"{letter}{number}" for number in range(int(first), int(last) + 1))


def test_rules_are_numbered_in_order_within_their_sections() -> None:
    assert sections() == sorted(set(sections()))
    by_section = {
        letter: [int(rule[1:]) for rule in rules() if rule[0] == letter] for letter in sections()
    }
    assert by_section == {letter: sorted(set(numbers)) for letter, numbers in by_section.items()}
    assert sum(map(len, by_section.values())) == len(rules()) > 60


def test_every_citation_leads_to_a_rule() -> None:
    known = {*rules(), *sections()}
    cited = [*citations("pytest_jrh"), *citations("tests")]
    assert cited
    assert [(name, path) for name, path in cited if name not in known] == []


def test_no_code_cites_a_document_that_is_not_here() -> None:
    found = [
        path
        for path in sorted((ROOT / "pytest_jrh").rglob("*.py"))
        if "semantics " in path.read_text("utf-8")
    ]
    assert found == []
