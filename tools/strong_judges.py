"""Write docs/strong_judges.md from the tables of examples/strong_judges: `python -m
tools.strong_judges`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_jrh.reports.checking import CheckedTable, check_table
from pytest_jrh.stats.figures import Reliability, figure_text
from pytest_jrh.stats.intervals import Estimate

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "examples" / "strong_judges"
PAGE = ROOT / "docs" / "strong_judges.md"
PROMPTS = ("vanilla", "vanilla_norules", "cot", "metrics_reference", "swap")
# `max_drop` and `proof` of the decisions, in the order of the columns.
_RULES = ((0.0, False), (0.05, False), (0.05, True))
_FIGURES = ("recall", "false_positive_rate", "kappa")
_FIGURE_TITLES = ("violations found", "false alarms", "kappa")
_PAGE = """\
# What strong judges look like

<!-- Written by `python -m tools.strong_judges`: do not edit. -->

How good is a good judge, and how much do a few hundred labels tell? Two published tables answer
for judges on GPT-4 and GPT-4o, beside the labels of people. They are in `examples/strong_judges`,
with their sources and licences; each takes one command and a second:

    cd examples/strong_judges
    python -m pytest_jrh check llmbar-gpt4.csv --verdict cot --baseline vanilla --one=violated
    python -m pytest_jrh check agent-as-a-judge.csv --cluster task --rubric agent --one=violated

Ranges are 95% intervals over other pairs, or other tasks.

## One judge under five prompts

GPT-4 says which of two answers follows an instruction: 419 pairs, each in both orders. "Violated"
(1) is a case in which the second answer is the better one. That is half of them, so a coin finds
50%, with 50% false alarms.

{prompts}

By subset, under `vanilla`. The natural pairs come from people and models; the other four were
made so that the worse answer looks right.

{subsets}

- **A figure belongs to a judge and its cases.** The same judge finds {best} on the natural pairs
  and {worst} on the worst subset, so measure yours on your own cases.
- **It misses and flags in about equal measure** on the hard subsets: no leaning to one of the
  answers, which another threshold would mend.

## Is another prompt worse?

Each prompt held against `vanilla`, with the subsets as rubrics, as [in a pull
request](gate.md):

{decisions}

- Without its rules (`vanilla_norules`) the prompt is plainly worse in both classes: FAIL, however
  it is asked.
- `cot`, reasons before the answer, loses {lost} points of recall. That is more than chance and
  less than 5: who tolerates 5 points passes it, and from these pairs nobody can prove that other
  pairs lose less than 5.
- `metrics_reference` finds more and flags less. `swap` changes {changed} verdicts, {better} of
  them for the better: no reason to refuse it.
- That no more than 5 points are lost on other pairs takes hundreds of pairs to prove.

## An agent as a judge

An agent on GPT-4o reads what three coding agents have built, and says of each requirement whether
it is met: 366 requirements of 55 tasks, for each of the three. Violated is what is not met.

{agents}

- Of the violations {found} are found, of what is met {flagged} is flagged; kappa {kappa}.
- **Requirements of one task go together.** Taken as independent, the interval of the recall would
  be {narrow} points wide; over tasks it is {wide}. Without `--cluster task` the table would look
  better than it is.
- The intervals of the three agents overlap: 55 tasks do not tell for which of them the judge is
  best.
"""


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
    return 0


def page() -> str:
    """The page, from the tables."""
    by_prompt = {prompt: _llmbar(prompt) for prompt in PROMPTS}
    total = {prompt: checked.judges[prompt].figures for prompt, checked in by_prompt.items()}
    subsets = by_prompt["vanilla"].judges["vanilla"].rubrics
    recalls = [figures["recall"] for figures in subsets.values()]
    agents, alone = (
        check_table(
            TABLES / "agent-as-a-judge.csv", cluster=cluster, rubric="agent", one="violated"
        )
        for cluster in ("task", "case")
    )
    [of_agents], [of_rows] = agents.judges.values(), alone.judges.values()
    changed, better = _changed(by_prompt["vanilla"], by_prompt["swap"])
    lost = _points(total["vanilla"]["recall"]) - _points(total["cot"]["recall"])
    return _PAGE.format(
        prompts=_figures("prompt", {f"`{prompt}`": of for prompt, of in total.items()}),
        subsets=_figures("subset", subsets),
        best=f"{max(map(_points, recalls)):.0f}%",
        worst=f"{min(map(_points, recalls)):.0f}%",
        decisions=_decisions_table(),
        lost=f"{lost:.1f}",
        changed=changed,
        better=better,
        agents=_figures("agent", {**of_agents.rubrics, "all": of_agents.figures}),
        found=_value(of_agents, "recall"),
        flagged=_value(of_agents, "false_positive_rate"),
        kappa=_value(of_agents, "kappa"),
        narrow=f"{_width(of_rows.figures['recall']):.0f}",
        wide=f"{_width(of_agents.figures['recall']):.0f}",
    )


def decisions() -> list[tuple[str, ...]]:
    """What is decided of each prompt against `vanilla`: the prompt, and the word under each of the
    rules.
    """
    rows = []
    for prompt in PROMPTS[1:]:
        verdicts = []
        for max_drop, proof in _RULES:
            decision = _llmbar(prompt, max_drop, proof=proof).decision
            assert decision is not None
            verdicts.append(decision.word)
        rows.append((prompt, *verdicts))
    return rows


def _llmbar(prompt: str, max_drop: float = 0.0, *, proof: bool = False) -> CheckedTable:
    return check_table(
        TABLES / "llmbar-gpt4.csv",
        verdict=prompt,
        baseline="vanilla" if prompt != "vanilla" else "",
        rubric="subset",
        one="violated",
        max_drop=max_drop,
        proof=proof,
    )


def _changed(before: CheckedTable, now: CheckedTable) -> tuple[int, int]:
    """How many verdicts differ, and how many of them are right now."""
    pairs = zip(before.results, now.results, strict=True)
    changed = [later for earlier, later in pairs if earlier.score != later.score]
    return len(changed), sum(result.outcome == "agree" for result in changed)


def _figures(first: str, rows: Mapping[str, Mapping[str, Estimate]]) -> str:
    lines = [
        (name, *(figure_text(figure, of[figure]) for figure in _FIGURES))
        for name, of in rows.items()
    ]
    return _table((first, *_FIGURE_TITLES), lines)


def _decisions_table() -> str:
    limits = [f"`max_drop: {limit:g}`{', `proof`' * proof}" for limit, proof in _RULES]
    return _table(("prompt", *limits), ((f"`{name}`", *cells) for name, *cells in decisions()))


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _value(reliability: Reliability, name: str) -> str:
    return figure_text(name, reliability.figures[name]).split()[0]


def _points(figure: Estimate) -> float:
    assert figure.value is not None
    return 100 * figure.value


def _width(figure: Estimate) -> float:
    assert figure.lower is not None
    assert figure.upper is not None
    return 100 * (figure.upper - figure.lower)


if __name__ == "__main__":
    sys.exit(main())
