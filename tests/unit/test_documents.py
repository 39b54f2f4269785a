"""The documentation is of this code: generated pages are current, and what pages name is there."""

import csv
import re
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
import yaml
from markdown_it import MarkdownIt

import pytest_jrh
from pytest_jrh.config.options import OPTIONS
from pytest_jrh.core.cases import SKIPS, SkipKind
from pytest_jrh.stats.figures import COLUMNS
from tools import haiku_coding, reference, strong_judges
from tools.schema import config_schema, rubrics_schema

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
SKILL = ROOT / "skills/pytest-jrh/SKILL.md"
OTHERS = ("README.md", "SECURITY.md", "CONTRIBUTING.md")
DOCUMENTS = [*DOCS, *(ROOT / name for name in OTHERS), SKILL]
PAGES = reference.pages()
RESULTS = ["id", "input", "verdict", "reason", "run", "label"]
name_of = attrgetter("name")


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of a document in one language."""
    tokens = MarkdownIt().parse(path.read_text("utf-8"))
    return [t.content for t in tokens if t.type == "fence" and t.info.strip() == language]


def test_generated_pages_are_current() -> None:
    """Where this fails: python -m tools.reference, or python -m tools.strong_judges"""
    for name, page in PAGES.items():
        assert (ROOT / name).read_text("utf-8") == page, name
    assert strong_judges.PAGE.read_text("utf-8") == strong_judges.page()


def test_the_table_of_two_prompts_is_the_facts_of_its_data_alone(tmp_path: Path) -> None:
    rows = list(csv.DictReader(haiku_coding.TABLE.read_text("utf-8").splitlines()))
    for prompt in ("quick", "full"):
        with (tmp_path / f"results-{prompt}.csv").open("w", encoding="utf-8") as file:
            writer = csv.DictWriter(file, RESULTS, extrasaction="ignore")
            writer.writeheader()
            for row in rows:
                if row["prompt"] == prompt:
                    writer.writerow({**row, "input": "a task,\nits tests", "reason": "a text"})
    haiku_coding.write(tmp_path, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == haiku_coding.TABLE.read_bytes()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_option_link_and_file_that_a_document_names_is_there(path: Path) -> None:
    text = path.read_text("utf-8")
    assert {*re.findall(r"--jrh-[a-z-]+[a-z]", text)} <= {option.flag for option in OPTIONS}
    assert not re.search(r"\n\n\|.*\n(?!\| ?-)", text), "a table without a head"
    links = re.findall(r"\]\((?!https?:|#)([^)#]*)", text)
    assert [place for place in links if not (path.parent / place).exists()] == []
    places = re.findall(r"`((?:pytest_jrh|benchmarks|examples|tests|tools)/[\w./-]+)`", text)
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_the_makefile_names_tests_that_are_there() -> None:
    named = re.findall(r"tests/[\w/]+\.py", (ROOT / "Makefile").read_text("utf-8"))
    assert {(ROOT / name).exists() for name in named} == {True}


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if blocks(path, "yaml")], ids=name_of)
def test_yaml_examples_fit_the_schemas(path: Path) -> None:
    for text in blocks(path, "yaml"):
        data: Any = yaml.safe_load(text)
        schema = rubrics_schema() if isinstance(data, list) else config_schema()
        jsonschema.Draft7Validator(schema).validate(data)


def test_pages_explain_every_kind_of_skip_every_figure_and_all_that_is_public() -> None:
    page = (ROOT / "docs" / "report.md").read_text("utf-8")
    assert tuple(SKIPS) == get_args(SkipKind)
    skips = [f"| `{kind}` | {row.happened} | {row.advice} |\n" for kind, row in SKIPS.items()]
    assert "".join(skips) in page
    for column in COLUMNS:
        if column.title:
            assert f"\n| {column.title} | {column.meaning}" in page
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    assert [name for name in pytest_jrh.__all__ if not re.search(rf"\b{name}\b", page)] == []


def test_the_skill_has_a_name_a_description_and_the_steps_that_are_run() -> None:
    _, head, text = SKILL.read_text("utf-8").split("---\n", 2)
    assert yaml.safe_load(head).keys() == {"name", "description"}
    assert len(text.splitlines()) < 200 - len(head.splitlines())
    assert {*blocks(SKILL, "bash")} <= {*blocks(ROOT / "docs/suite.md", "bash")}


def test_the_first_page_leads_to_all_others() -> None:
    page = (ROOT / "docs/index.md").read_text("utf-8")
    assert [path.name for path in DOCS if f"]({path.name}" not in page] == ["index.md"]


def test_written_pages_stay_short() -> None:
    """In words, README among them, without what is generated."""
    written = [path for path in DOCS if f"docs/{path.name}" not in PAGES]
    texts = [path.read_text("utf-8") for path in (*written, ROOT / "README.md")]
    assert len(written) == 17
    assert sum(len(text.split()) for text in texts) < 24_000
