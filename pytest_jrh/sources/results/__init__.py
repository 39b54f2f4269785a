"""Files of the tools in which verdicts of judges and labels of people already are, one form a tool:
what recognizes a file, and what reads its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pytest_jrh.core import frozen
from pytest_jrh.core.documents import printable, shown
from pytest_jrh.core.errors import InputError
from pytest_jrh.sources.results import platforms, test_runs
from pytest_jrh.sources.results.scores import Entry, Results, mapping, mappings, text_in


@frozen
class Form:
    """What a tool writes: entries, or a document with `lists` of them. `is_entry` knows an entry,
    and `read` adds the scores of entries. `ids` are the fields that name an entry.
    """

    tool: str
    lists: Sequence[str]
    is_entry: Callable[[Entry], bool]
    read: Callable[[Sequence[Entry], Results], None]
    ids: Sequence[str] = ("id",)


FORMS = (
    Form(
        "promptfoo",
        ["results.results"],
        test_runs.is_promptfoo_result,
        test_runs.read_promptfoo,
    ),
    Form("DeepEval", test_runs.DEEPEVAL_LISTS, test_runs.is_deepeval_case, test_runs.read_deepeval),
    Form("Langfuse", ["data"], platforms.is_langfuse_score, platforms.read_langfuse),
    Form(
        "MLflow",
        ["traces"],
        platforms.is_mlflow_trace,
        platforms.read_mlflow,
        ["trace_id", "request_id"],
    ),
    Form("LangSmith", ["feedback"], platforms.is_langsmith_feedback, platforms.read_langsmith),
)


def read_results(values: Sequence[Any], lines: Sequence[int], file: str) -> Results | None:
    """The results in the values of a file: its lines with their numbers, or one document.

    None where they are of no form. Raises `InputError` for an entry that is there twice.
    """
    for form in FORMS:
        path, entries = _entries(values, form.lists)
        if any(map(form.is_entry, mappings(entries))):
            numbers = lines or range(1, len(entries) + 1)
            results = Results(form.tool, file, None if lines else path, numbers)
            if path and (further_pages := _further_pages(values[0])):
                remark = f"This file is one page of {form.tool}'s answer: {further_pages}."
                results.remarks.append(remark)
            ids = set()
            for entry in mappings(entries):
                # One score would count as two verdicts.
                id_ = text_in(mapping(entry.get("info")) or entry, *form.ids)
                if id_ and id_ in ids:
                    raise InputError(f"has {printable(id_)} twice", file, hint="keep one of them")
                ids.add(id_)
            form.read([*map(mapping, entries)], results)
            return results
    return None


_NEXT = ("nextcursor", "nextpagetoken", "nextpage", "nexturl", "cursor", "hasmore")


def _further_pages(document: Entry) -> str:
    """What an answer of a service says of further pages; empty where it is whole, or says nothing.

    Services count pages, or name the next one, beside the list or in a part of its own.
    """
    for part in (document, *map(mapping, document.values())):
        values = {}
        for name, value in part.items():
            values[name.replace("_", "").casefold()] = value
        page, pages = values.get("page"), values.get("totalpages")
        if isinstance(pages, int) and pages > 1:
            return f"page {shown(page)} of {pages}"
        for name in _NEXT:
            if values.get(name):
                return "it names a next one"
    return ""


def _entries(values: Sequence[Any], lists: Sequence[str]) -> tuple[str, Sequence[Any]]:
    """The entries of a file; those of lists in a document behind the path of the first of them."""
    if len(values) != 1:
        return "", values
    first = ""
    entries: list[Any] = []
    for path in lists:
        value = values[0]
        for name in path.split("."):
            value = mapping(value).get(name)
        if isinstance(value, list) and value:
            first = first or path
            entries += value
    return first, entries or values
