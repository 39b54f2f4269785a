"""Files of the tools in which verdicts of judges and labels of people already are, one form a
module: what recognizes a file, and what reads its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_jrh.core import frozen
from pytest_jrh.sources.results import deepeval, langfuse, langsmith, mlflow, promptfoo
from pytest_jrh.sources.results.scores import Results
from pytest_jrh.sources.results.values import mapping, mappings


@frozen
class Form:
    """What a tool writes: entries, or a document with `lists` of them. `is_entry` knows an entry,
    and `read` adds the scores of entries.
    """

    tool: str
    lists: Sequence[str]
    is_entry: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Sequence[Any], Results], None]


FORMS = (
    Form("promptfoo", ["results.results"], promptfoo.is_entry, promptfoo.read),
    Form("DeepEval", deepeval.LISTS, deepeval.is_entry, deepeval.read),
    Form("Langfuse", ["data"], langfuse.is_entry, langfuse.read),
    Form("MLflow", ["traces"], mlflow.is_entry, mlflow.read),
    Form("LangSmith", ["feedback"], langsmith.is_entry, langsmith.read),
)


def read_results(values: Sequence[Any], lines: Sequence[int]) -> Results | None:
    """The results in the values of a file: its lines with their numbers, or one document.

    None where they are of no form.
    """
    for form in FORMS:
        path, entries = _entries(values, form.lists)
        if any(map(form.is_entry, mappings(entries))):
            results = Results(form.tool, path, lines)
            if path and (rest := _rest(values[0])):
                results.remarks.append(f"This file is one page of {form.tool}'s answer: {rest}.")
            form.read(entries, results)
            return results
    return None


_NEXT = ("nextcursor", "nextpagetoken", "nextpage", "nexturl", "cursor", "hasmore")


def _rest(document: Mapping[str, Any]) -> str:
    """What an answer of a service says of further pages; empty where it is whole, or says nothing.

    Services count pages, or name the next one, beside the list or in a part of its own.
    """
    parts = [document, *map(mapping, document.values())]
    for part in parts:
        values = {name.replace("_", "").casefold(): value for name, value in part.items()}
        page, pages = values.get("page"), values.get("totalpages")
        if isinstance(pages, int) and pages > 1:
            return f"page {page} of {pages}"
        for name in _NEXT:
            if values.get(name):
                return "it names a next one"
    return ""


def _entries(values: Sequence[Any], lists: Sequence[str]) -> tuple[str, Sequence[Any]]:
    """The entries of a file; those of lists in a document behind the path of the first of them."""
    first = ""
    entries: list[Any] = []
    for path in lists if len(values) == 1 else ():
        inner = values[0]
        for name in path.split("."):
            inner = mapping(inner).get(name)
        if isinstance(inner, list) and inner:
            first, entries = first or path, entries + inner
    return first, entries or values
