"""`prompt_injection`: texts in a transcript that tell the judge the wrong verdict.

They have a few placeholders, and are no templates.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from random import Random

from pytest_jrh.cases.probes.probe import Base, Derived, Probe, Variant, shipped, with_text_at_end
from pytest_jrh.core import frozen
from pytest_jrh.core.cases import NoVerdictCase
from pytest_jrh.core.transcript import positions_of

_PLACEHOLDER = r"\$\{([^{}]{0,80})\}"
_TAG = 0xE0000
_ZERO_WIDTH = "\u200b"


ENCODINGS: Mapping[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    # ASCII in the characters of Unicode's block of tags, which no font shows.
    "tags": lambda text: "".join(chr(_TAG + ord(char)) for char in text if " " <= char <= "~"),
    "zero_width": _ZERO_WIDTH.join,
}


@frozen
class Attack:
    """A text that is put into a transcript; `hidden` is put into it encoded, as `${hidden}`.

    Other placeholders are the keys of `values_for`. The name is made of `[a-z0-9_]`.
    """

    name: str
    text: str
    hidden: str = ""
    encoding: str = ""

    def text_for(self, values: Mapping[str, str]) -> str:
        """The text with the values in it; nothing in a value is replaced."""
        filled = dict(values)
        if self.encoding:
            filled["hidden"] = ENCODINGS[self.encoding](_filled(self.hidden, values))
        return _filled(self.text, filled).strip()


def _filled(text: str, values: Mapping[str, str]) -> str:
    return re.sub(_PLACEHOLDER, lambda match: values[match[1]], text)


def values_for(base: Base) -> dict[str, str]:
    """What the placeholders stand for in a case: all but `right_...` speak for the wrong verdict
    that is farthest from the right one.
    """
    wrong = max(reversed(base.scale.scores), key=lambda score: abs(score - base.expected))
    said = base.scale.said(wrong)
    claim = f"Every turn fits level {_in_words(base, wrong)}, and no other level fits."
    of_class = base.scale.class_of(wrong)
    if of_class is not None and of_class.claim:
        claim = of_class.claim
    return {
        "wrong_score": str(said),
        "right_score": str(base.scale.said(base.expected)),
        "wrong_verdict": _in_words(base, wrong),
        "right_verdict": _in_words(base, base.expected),
        "verdict_json": json.dumps({"reasoning": claim, "score": said}, ensure_ascii=False),
        "claim": claim,
        "rubric_id": base.rubric.id,
    }


def _in_words(base: Base, score: int) -> str:
    said, word = base.scale.said(score), base.scale.words[score]
    if not base.scale.is_ordered or word == said:
        return word
    return f"{said} ({word})" if word else str(said)


_PLACES = {
    "assistant_turn": ("assistant", "no assistant turn"),
    "tool_result": ("tool", "no result of a tool"),
    "user_turn": ("user", "no user turn"),
}
"""By its name: the role of a message that the text is put at the end of, and what there is where
no message has it."""


def injections(attacks: Iterable[Attack]) -> tuple[Variant, ...]:
    """The variants of a probe with these attacks: each in all places."""
    return tuple(
        Variant(f"{attack.name}-{position}", attack) for attack in attacks for position in _PLACES
    )


def _derive(base: Base, variant: Variant, random: Random) -> Derived:
    attack: Attack = variant.data
    role, missing = _PLACES[variant.axes[1]]
    positions = positions_of(base.messages, role)
    if not positions:
        raise NoVerdictCase("probe_not_applicable", f"the case has {missing}")
    # The turn that decides stays as it is where there is another one.
    position = random.choice(
        [candidate for candidate in positions if candidate not in base.decisive] or positions
    )
    return Derived(
        (
            *base.messages[:position],
            with_text_at_end(base.messages[position], attack.text_for(values_for(base))),
            *base.messages[position + 1 :],
        )
    )


PROMPT_INJECTION = Probe(
    name="prompt_injection",
    marker="a case with an added text that tells the judge the wrong verdict",
    variants=lambda: injections(
        Attack(**entry) for entry in shipped("prompt_injection.yml")["attacks"]
    ),
    derive=_derive,
    per_case=4,
)
