"""The changes that `mutate` makes to a prompt (issue: probes, mutants of the judge's prompt)."""

from __future__ import annotations

import difflib
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.cli.operators import mutants_of_text
from pytest_jrh.core.errors import InputError
from pytest_jrh.llm.prompts import parse_prompt

BUILT_IN = {
    mode: (resources.files("pytest_jrh.llm") / "templates" / f"judge.{mode}.md").read_text("utf-8")
    for mode in ("binary", "ordinal")
}
PROMPT = """You judge runs.
- Do not trust the assistant's claims. Answer 1 if the rule is broken, else 0.
---user---
<rubric>
{{ rubric }}
</rubric>
{% if instruction %}
The owner's note follows.
{{ instruction }}{% endif %}
{{ transcript }}
Is the rule broken? It must be said plainly.
"""


def changes(text: str) -> list[tuple[str, str, str]]:
    return [
        (mutant.operator, mutant.before, mutant.after) for mutant in mutants_of_text(text, "prompt")
    ]


def test_each_sentence_is_deleted_and_negated_once() -> None:
    assert changes(PROMPT) == [
        ("delete_sentence", "You judge runs.", ""),
        ("delete_sentence", "Do not trust the assistant's claims.", ""),
        ("delete_sentence", "Answer 1 if the rule is broken, else 0.", ""),
        ("delete_sentence", "The owner's note follows.", ""),
        ("delete_sentence", "Is the rule broken?", ""),
        ("delete_sentence", "It must be said plainly.", ""),
        (
            "negate_sentence",
            "Do not trust the assistant's claims.",
            "Do trust the assistant's claims.",
        ),
        (
            "negate_sentence",
            "Answer 1 if the rule is broken, else 0.",
            "Do not answer 1 if the rule is broken, else 0.",
        ),
        ("negate_sentence", "It must be said plainly.", "It must not be said plainly."),
        ("swap_scale", "0 and 1, wherever they are written", "1 and 0"),
    ]


def test_a_deleted_sentence_leaves_the_rest_as_it_was() -> None:
    [alone, first, *_] = mutants_of_text(PROMPT, "prompt")
    assert alone.source == PROMPT.removeprefix("You judge runs.\n")
    assert first.source == PROMPT.replace("Do not trust the assistant's claims. ", "")
    assert (alone.line, first.line) == (1, 2)


def test_the_scale_is_swapped_where_it_is_written_and_nowhere_else() -> None:
    text = "Give 1 (bad) or 0 (good); turn [1], 10 or 0.5 stay.\n{{ rubric }} {{ transcript[0:1] }}"
    [swapped] = [each for each in mutants_of_text(text, "prompt") if each.operator == "swap_scale"]
    assert swapped.source == text.replace("1 (bad) or 0", "0 (bad) or 1")


def test_what_guards_against_the_transcript_goes_at_once() -> None:
    guards = [
        mutant
        for mutant in mutants_of_text(BUILT_IN["binary"], "prompt")
        if mutant.operator == "drop_guards"
    ]
    assert len(guards) == 1
    removed = [
        line[2:]
        for line in difflib.ndiff(BUILT_IN["binary"].split(" "), guards[0].source.split(" "))
        if line.startswith("- ")
    ]
    assert {"evidence.", "instruction"} <= set(removed)
    assert "evidence" not in guards[0].source


@pytest.mark.parametrize("mode", BUILT_IN)
def test_mutants_of_a_built_in_prompt_are_prompts(mode: str) -> None:
    mutants = list(mutants_of_text(BUILT_IN[mode], "prompt"))
    assert len(mutants) > 40
    assert len({mutant.name for mutant in mutants}) == len({m.source for m in mutants})
    assert len({mutant.source for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        parse_prompt(mutant.source, mutant.name, stage="judge")


@given(
    st.lists(
        st.sampled_from(
            [
                "Do not do it. ",
                "It is so! ",
                "- one two three.\n",
                "{{ rubric }}",
                "{{ transcript }}. ",
                "{% if instruction %}",
                "{% endif %}",
                "{# a b c. d e f. #}",
                "{{",
                "<b> one two </b>.",
                "\n",
                "1",
                "0 ",
                'Say {"score": 1}. ',
                "{rubric} ",
            ]
        ),
        max_size=12,
    ).map("".join)
)
def test_a_mutant_of_a_valid_prompt_is_valid_and_says_what_it_changed(text: str) -> None:
    try:
        parse_prompt(text, "prompt", stage="judge")
    except InputError:
        return
    for mutant in mutants_of_text(text, "prompt"):
        assert mutant.source != text
        parse_prompt(mutant.source, mutant.name, stage="judge")
        if mutant.operator in ("delete_sentence", "negate_sentence"):
            assert mutant.before in text
            assert mutant.after in mutant.source
