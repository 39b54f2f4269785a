"""Bounds on rendering a prompt template: steps, sizes and time.

A prompt file is the user's, but it may come out of somebody else's repository, and it is rendered
with transcripts of any size. jinja2's sandbox keeps a template from reaching what it was not given;
it does not bound what it costs (https://jinja.palletsprojects.com/en/stable/sandbox/). So each
iteration, call, filter and operator is a step here, and whatever could make something big of
something small is asked for its size first.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any

COUNTED = "_counted"
"""The filter that each loop of a template gets its values through."""
MOST_SOURCE = 1_000_000
MOST_STEPS = 1_000_000
MOST_SECONDS = 5.0
MOST_TEXT = 10_000_000
_TIMES_INPUT = 10
_MOST_ITEMS = 1_000_000
_ITEM = 32
_MOST_BITS = 10_000
_WIDEST = 100_000
# For pages alone, or of a cost that their input's length does not bound.
UNSUPPORTED_FILTERS = ("random", "striptags", "urlize", "xmlattr", "pprint")
_PERCENT_WIDTH = re.compile(r"\d{5}|%[^a-zA-Z%*]*+\*")
_BRACES_WIDTH = re.compile(r"\d{5}|\{[^{}:!]*+[:!][^{}]*+\{")
_PADDING = frozenset({"center", "ljust", "rjust", "zfill"})


class Budget:
    """What one rendering may still take.

    A value may have `limit` characters, more where more was put in.
    """

    def __init__(self, given: int = 0) -> None:
        self.limit = MOST_TEXT + _TIMES_INPUT * given
        self._steps = 0
        self._deadline = time.monotonic() + MOST_SECONDS

    def step(self) -> None:
        """Count a step; raises `ValueError` for one too many, or one too late."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise ValueError(
                f"it takes more than {MOST_STEPS:,} steps (iterations, calls, filters and "
                "operators)"
            )
        # The clock is asked rarely: most templates take a dozen steps.
        if self._steps % 16 == 0 and time.monotonic() > self._deadline:
            raise ValueError(f"it takes more than {MOST_SECONDS:g} seconds")

    def fits(self, size: float) -> None:
        """Raise `ValueError` where a value is, or would become, too big."""
        if size > self.limit:
            raise ValueError(f"a value would have more than {self.limit:,} characters")

    def weigh(self, value: Any) -> int:
        """Count the characters that a value would be written in, about.

        Raises `ValueError` once they are too many.
        """
        if isinstance(value, str | bytes):
            self.fits(len(value))
            return len(value)
        size, waiting = 0, [value]
        while waiting:
            each = waiting.pop()
            size += len(each) + _ITEM if isinstance(each, str | bytes) else _ITEM
            self.fits(size + _ITEM * len(waiting))
            if isinstance(each, Mapping):
                waiting += each.keys()
                waiting += each.values()
            elif isinstance(each, list | tuple | set | frozenset):
                waiting += each
        return size


class Bounded:
    """What a sandboxed jinja2 environment overrides to be bounded.

    Comes before it among the bases.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    filters: dict[str, Callable[..., Any]]

    def __init__(self, **options: Any) -> None:
        super().__init__(finalize=self._output, **options)  # type: ignore[call-arg]
        self._own = threading.local()
        self.concat = self._concat
        kept = {
            name: function
            for name, function in self.filters.items()
            if name not in UNSUPPORTED_FILTERS
        }
        self.filters = {
            name: self._bounded_filter(name, function) for name, function in kept.items()
        }
        self.filters[COUNTED] = self.counted

    @property
    def budget(self) -> Budget:
        """The budget of the rendering in this thread.

        A fresh one where jinja2 computes constants.
        """
        return getattr(self._own, "budget", None) or Budget()

    @contextlib.contextmanager
    def spending(self, budget: Budget) -> Iterator[None]:
        """Let what this thread renders in the block take from a budget."""
        self._own.budget = budget
        try:
            yield
        finally:
            self._own.budget = None

    def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call what a template calls."""
        budget = self.budget
        budget.step()
        # jinja2 wraps `str.format` and `str.format_map`.
        method = getattr(function, "__wrapped__", function)
        text = getattr(method, "__self__", None)
        if isinstance(text, str | bytes):
            _check_method(text, method.__name__, (*args, *kwargs.values()), budget)
        return self._checked(super().call(context, function, *args, **kwargs))  # type: ignore[misc]

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute what may be far bigger than its operands."""
        budget = self.budget
        budget.step()
        if operator == "**":
            _check_power(left, right)
        elif operator == "*":
            _check_product(left, right, budget)
        elif operator == "%" and isinstance(left, str | bytes):
            _check_format(_PERCENT_WIDTH, left)
            budget.fits(len(left) + _occurrences(left, "%") * budget.weigh(right))
        return self._checked(super().call_binop(context, operator, left, right))  # type: ignore[misc]

    def joined(self, parts: Sequence[Any]) -> str:
        """Compute `~`."""
        budget = self.budget
        budget.step()
        budget.fits(sum(map(budget.weigh, parts)))
        return "".join(map(str, parts))

    def counted(self, values: Iterable[Any]) -> Iterator[Any]:
        """Pass values on, each as a step."""
        budget = self.budget
        for value in values:
            budget.step()
            yield value

    def _concat(self, parts: Iterable[str]) -> str:
        budget, size, kept = self.budget, 0, []
        for part in parts:
            budget.step()
            size += len(part)
            budget.fits(size)
            kept.append(part)
        return "".join(kept)

    def _output(self, value: Any) -> Any:
        if not isinstance(value, str | int):
            self.budget.weigh(value)
        return value

    def _checked(self, value: Any) -> Any:
        if isinstance(value, str | bytes):
            self.budget.fits(len(value))
        elif isinstance(value, list | tuple | dict) and len(value) > _MOST_ITEMS:
            raise ValueError(f"a list would have more than {_MOST_ITEMS:,} items")
        return value

    def _bounded_filter(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        # Some filters are given the context, or the environment, before the value.
        at = int(hasattr(function, "jinja_pass_arg"))

        @wraps(function)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            budget = self.budget
            budget.step()
            value, rest = args[at], args[at + 1 :]
            if kwargs:
                bound = signature(function).bind(*args, **kwargs)
                bound.apply_defaults()
                rest = (*bound.args[at + 1 :], *bound.kwargs.values())
            if hasattr(value, "__next__") or isinstance(value, range):
                value = self._kept(value, budget)
            elif not isinstance(value, str | int):
                budget.weigh(value)
            _check_filter(name, value, rest, budget)
            return self._checked(function(*args[:at], value, *args[at + 1 :], **kwargs))

        return bounded

    def _kept(self, values: Iterable[Any], budget: Budget) -> list[Any]:
        """List what a generator gives, as far as it is allowed to be long."""
        size, kept = 0, []
        for value in values:
            budget.step()
            size += budget.weigh(value)
            budget.fits(size)
            kept.append(value)
        return kept


def _check_power(left: Any, right: Any) -> None:
    if (
        isinstance(left, int)
        and isinstance(right, int)
        and left.bit_length() * max(right, 0) > _MOST_BITS
    ):
        raise ValueError(f"{_brief(left)} ** {_brief(right)} is too big a number")


def _check_product(left: Any, right: Any, budget: Budget) -> None:
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > _MOST_BITS:
            raise ValueError("a product is too big a number")
        return
    many, value = (left, right) if isinstance(left, int) else (right, left)
    if isinstance(many, int) and hasattr(value, "__len__"):
        budget.fits(max(many, 0) * max(budget.weigh(value), 1))


def _check_method(text: str | bytes, name: str, args: Sequence[Any], budget: Budget) -> None:
    first = args[0] if args else None
    if name in _PADDING and isinstance(first, int):
        budget.fits(first)
    elif name == "expandtabs":
        width = first if isinstance(first, int) else 8
        budget.fits(len(text) + _occurrences(text, "\t") * max(width, 0))
    elif name == "replace" and len(args) > 1:
        budget.fits(len(text) + _occurrences(text, first) * len(args[1]))
    elif name == "join":
        items = first if isinstance(first, list | tuple) else ()
        budget.fits(len(text) * len(items) + budget.weigh(items))
        if first is not items:
            raise ValueError("join() takes a list here; write `| list` behind what it is given")
    elif name in ("format", "format_map"):
        _check_format(_BRACES_WIDTH, text)
        budget.fits(len(text) + _occurrences(text, "{") * sum(map(budget.weigh, args)))
    elif name == "translate":
        raise ValueError("translate() is not supported in prompts; replace() is")


def _check_filter(name: str, value: Any, rest: Sequence[Any], budget: Budget) -> None:
    for each in rest:
        if (
            isinstance(each, int)
            and abs(each) > _WIDEST
            and name not in ("default", "d", "int", "float", "sum")
        ):
            raise ValueError(
                f"the filter {name} was given {_brief(each)}; at most {_WIDEST:,} is allowed"
            )
    if name == "sum" and any(not isinstance(each, int | float | str) for each in rest):
        raise ValueError("the filter sum starts from a number here")
    _check_growth(name, value, rest, budget)


def _check_growth(name: str, value: Any, rest: Sequence[Any], budget: Budget) -> None:
    first = rest[0] if rest else None
    text = str(value) if isinstance(value, str | int) else ""
    if name == "replace" and len(rest) > 1:
        budget.fits(len(text) + _occurrences(text, first) * len(str(rest[1])))
    elif name == "indent":
        width = len(first) if isinstance(first, str) else first if isinstance(first, int) else 4
        budget.fits(len(text) + (text.count("\n") + 1) * max(width, 0))
    elif name == "wordwrap":
        breaks = max((len(each) for each in rest if isinstance(each, str)), default=1)
        budget.fits(len(text) * (breaks + 1))
    elif name == "join":
        budget.fits(
            budget.weigh(value)
            + (len(value) if hasattr(value, "__len__") else 0) * len(str(first or ""))
        )
    elif name == "format":
        _check_format(_PERCENT_WIDTH, text)
        budget.fits(len(text) + text.count("%") * sum(map(budget.weigh, rest)))
    elif name == "tojson":
        budget.fits(
            budget.weigh(value)
            * (1 + max((each for each in rest if isinstance(each, int)), default=0))
        )
    elif name == "batch" and isinstance(first, int) and len(rest) > 1:
        budget.fits(first * max(1, budget.weigh(rest[1])))


def _check_format(width: re.Pattern[str], text: str | bytes) -> None:
    if width.search(text if isinstance(text, str) else text.decode("latin-1")):
        raise ValueError(
            "a width in a format must be written in the format, and have less than 5 digits"
        )


def _occurrences(text: str | bytes, part: Any) -> int:
    return (
        text.decode("latin-1").count(str(part))
        if isinstance(text, bytes)
        else text.count(str(part))
    )


def _brief(number: int) -> str:
    return str(number) if number.bit_length() <= 64 else "a number of more than 19 digits"  # noqa: PLR2004 - as it says
