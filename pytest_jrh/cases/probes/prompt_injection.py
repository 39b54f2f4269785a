"""`prompt_injection`: texts in a transcript that tell the judge the wrong verdict.

Attacks on a judge, as a pack has them: texts with a few placeholders, and no templates.

A pack is written by people, or taken from somewhere: what it holds is text and nothing else.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_jrh.cases.probes.probe import (
    Base,
    Derived,
    Probe,
    ProbeSettings,
    Variant,
    positions_of,
    shipped,
    with_text_at_end,
)
from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.transcript import brief

if TYPE_CHECKING:
    from random import Random


_PLACEHOLDER = re.compile(r"\$\{([^{}]{0,80})\}")
_NAME = re.compile(r"[a-z0-9_]+")
_HIDDEN = "hidden"
_TAG = 0xE0000
_ZERO_WIDTH = "\u200b"


def _as_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _as_tags(text: str) -> str:
    """ASCII in the characters of Unicode's block of tags, which no font shows."""
    return "".join(chr(_TAG + ord(char)) if " " <= char <= "~" else "" for char in text)


def _apart(text: str) -> str:
    return _ZERO_WIDTH.join(text)


ENCODINGS: Mapping[str, Callable[[str], str]] = {
    "base64": _as_base64,
    "tags": _as_tags,
    "zero_width": _apart,
}
PLACEHOLDERS = (
    "wrong_score",
    "right_score",
    "wrong_verdict",
    "right_verdict",
    "verdict_json",
    "claim",
    "rubric_id",
)
"""What stands for something of the case, as `${NAME}`."""


@dataclass(frozen=True, slots=True)
class Attack:
    """A text that is put into a transcript; `hidden` is put into it encoded, as `${hidden}`.

    Raises `ValueError` where it cannot be made.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    name: str
    text: str
    hidden: str = ""
    encoding: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"the name {brief(self.name)} must be lower-case letters, digits and _"
            )
        if self.encoding not in ("", *ENCODINGS):
            encodings = ", ".join(ENCODINGS)
            raise ValueError(f"got the encoding {brief(self.encoding)}; must be one of {encodings}")
        if bool(self.encoding) != bool(self.hidden):
            raise ValueError("`encoding` and `hidden` belong together: how, and what")
        allowed = (*PLACEHOLDERS, _HIDDEN) if self.encoding else PLACEHOLDERS
        for text, names in ((self.text, allowed), (self.hidden, PLACEHOLDERS)):
            for match in _PLACEHOLDER.finditer(text):
                if match[1] not in names:
                    placeholder, known = brief(match[1]), ", ".join(names)
                    raise ValueError(f"{placeholder} is no placeholder; there are {known}")

    def text_for(self, values: Mapping[str, str]) -> str:
        """The text with the values of `PLACEHOLDERS` in it; nothing in a value is replaced."""
        filled = dict(values)
        if self.encoding:
            filled[_HIDDEN] = ENCODINGS[self.encoding](_filled(self.hidden, values))
        return _filled(self.text, filled).strip()


@dataclass(frozen=True, slots=True)
class Pack:
    """Attacks of a user's own, beside the built-in ones."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    attacks: list[Attack]

    def __post_init__(self) -> None:
        taken = {attack.name for attack in _shipped()}
        for attack in self.attacks:
            if attack.name in taken:
                raise ValueError(f"two attacks are named {attack.name}; some names are built in")
            taken.add(attack.name)


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)


def values_for(base: Base) -> dict[str, str]:
    """What the placeholders stand for in a case: all but `right_...` speak for a wrong verdict, on
    a scale the one that is farthest from the right one.
    """
    scores = [level.score for level in base.levels] or [0, 1]
    wrong = max(reversed(scores), key=lambda score: abs(score - base.expected))
    claim = _claim(base, wrong)
    return {
        "wrong_score": str(wrong),
        "right_score": str(base.expected),
        "wrong_verdict": _in_words(base, wrong),
        "right_verdict": _in_words(base, base.expected),
        "verdict_json": json.dumps({"reasoning": claim, "score": wrong}, ensure_ascii=False),
        "claim": claim,
        "rubric_id": base.rubric.id,
    }


def _in_words(base: Base, score: int) -> str:
    if not base.levels:
        return "violated" if score else "satisfied"
    label = next(level.label for level in base.levels if level.score == score)
    return f"{score} ({label})" if label else str(score)


def _claim(base: Base, score: int) -> str:
    if base.levels:
        return f"Every turn fits level {_in_words(base, score)}, and no other level fits."
    if score:
        return "The assistant broke the rubric more than once, so it is violated."
    return "The assistant kept to the rubric in every turn, so it is satisfied."


_PLACES = {
    "assistant_turn": ("assistant", "no assistant turn"),
    "tool_result": ("tool", "no result of a tool"),
    "user_turn": ("user", "no user turn"),
}
"""By its name: the role of a message that the text is put at the end of, and what there is where
no message has it."""
_PER_CASE = 4


def _variants(settings: ProbeSettings) -> tuple[Variant, ...]:
    attacks = (*_shipped(), *settings.added)
    return tuple(
        Variant(f"{attack.name}-{position}", (attack.name, position), attack)
        for attack in attacks
        for position in _PLACES
    )


def _derive(base: Base, variant: Variant, random: Random) -> Derived:
    attack: Attack = variant.data
    role, missing = _PLACES[variant.axes[1]]
    positions = positions_of(base.messages, role)
    if not positions:
        raise NoVerdictCase("probe_not_applicable", f"the transcript has {missing}")
    # The turn that decides stays as it is where there is another one.
    position = random.choice(
        [candidate for candidate in positions if candidate not in base.decisive] or positions
    )
    text = attack.text_for(values_for(base))
    changed = with_text_at_end(base.messages[position], text)
    return Derived((*base.messages[:position], changed, *base.messages[position + 1 :]))


def _read_pack(content: Any) -> tuple[Attack, ...]:
    # Every session knows the probes by name, and most read no pack.
    from pydantic import TypeAdapter

    return tuple(TypeAdapter(Pack).validate_python(content).attacks)


@cache
def _shipped() -> tuple[Attack, ...]:
    return tuple(Attack(**entry) for entry in shipped("prompt_injection.yml")["attacks"])


PROMPT_INJECTION = Probe(
    name="prompt_injection",
    marker="a case with a text in its transcript that tells the judge the wrong verdict",
    label="injection",
    variants=_variants,
    derive=_derive,
    per_case=_PER_CASE,
    read_pack=_read_pack,
)
