"""Files of the tools in which verdicts of judges and labels of people already are, one form a
module: what recognizes a file, and what reads its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_jrh.sources.results import deepeval, langfuse, langsmith, mlflow, promptfoo
from pytest_jrh.sources.results.scores import Results
from pytest_jrh.sources.results.values import mapping, mappings


@dataclass(frozen=True, slots=True)
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
            form.read(entries, results)
            return results
    return None


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
