"""Files of the tools in which verdicts of judges and labels of people already are, one form a
module: what recognizes a file, and what reads its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_jrh.sources.results import deepeval, langfuse, langsmith, mlflow, promptfoo
from pytest_jrh.sources.results.scores import Results


@dataclass(frozen=True, slots=True)
class Form:
    """What a tool writes.

    `entries` gives the path of the list in a document that holds its entries, and them, or None
    where the values of a file are not of this form; `read` adds the scores of entries. With
    `is_raw` values are those of the tool, of which nobody has said what 1 means.
    """

    tool: str
    entries: Callable[[Sequence[Any]], tuple[str, Sequence[Any]] | None]
    read: Callable[[Sequence[Any], Results], None]
    is_raw: bool


FORMS = (
    Form("promptfoo", promptfoo.entries, promptfoo.read, is_raw=False),
    Form("DeepEval", deepeval.entries, deepeval.read, is_raw=False),
    Form("Langfuse", langfuse.entries, langfuse.read, is_raw=True),
    Form("MLflow", mlflow.entries, mlflow.read, is_raw=True),
    Form("LangSmith", langsmith.entries, langsmith.read, is_raw=True),
)


def read_results(values: Sequence[Any], lines: Sequence[int]) -> Results | None:
    """The results in the values of a file: its lines with their numbers, or one document.

    None where they are of no form.
    """
    for form in FORMS:
        found = form.entries(values)
        if found is not None:
            path, entries = found
            results = Results(form.tool, form.is_raw, path, lines)
            form.read(entries, results)
            return results
    return None
