"""Write "How good is good enough?" into docs/check.md, from the tables of examples/strong_judges:
`python -m tools.strong_judges`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_jrh.cli.checking import CheckedTable, check_table
from pytest_jrh.stats.figures import Reliability, figure_text
from pytest_jrh.stats.intervals import Estimate

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "examples" / "strong_judges"
PAGE = ROOT / "docs" / "check.md"
_BEGINNING = "<!-- From here to the next mark: `python -m tools.strong_judges` -->\n"
_END = "<!-- The end of what tools.strong_judges writes -->\n"
PROMPTS = ("vanilla", "vanilla_norules", "cot")
# `max_drop` and `proof` of the decisions, in the order of the columns.
_RULES = ((0.0, False), (0.05, False), (0.05, True))
_SECTION = """
These are figures of other judges, with 95% intervals, from two published tables of verdicts and
people's labels (`examples/strong_judges` has the tables with their sources and licences):

{figures}

- **A figure is about one judge and one kind of cases.** The same judge misses {best} on pairs taken
  from existing data sets (*Natural*), and {worst} on pairs whose worse answer was written to look
  right (*{subset}*). So measure your judge on your own cases.
- **Related cases count as one.** The judge is often right or wrong about all requirements of a
  task. If requirements counted as independent, the interval of missed violations would be
  {narrow} points wide; whole tasks are counted instead, so this interval is {wide} points wide.
- **A judge with kappa 0.6** is right in about 80% of the cases if half of the cases are violations;
  a judge with kappa 0 might as well toss a coin. Reports warn about a judge with kappa below 0.6.

Compared with `vanilla` (`check --baseline vanilla --rubric subset`), the prompt without rules
(`vanilla_norules`) is {no_rules}, and a prompt that asks for reasons first (`cot`) is {cot}: its
recall is {lost} points lower, and 5 points are allowed. With `--max-drop 0`, `cot` is {strict},
because chance does not explain the loss. With [`--proof`](change.md#keys), `cot` is {proof}.
"""


def main() -> int:
    """Write the section."""
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
    return 0


def page() -> str:
    """The page, with the section as the tables have it now."""
    before, _, rest = PAGE.read_text("utf-8").partition(_BEGINNING)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGINNING}{_section()}\n{_END}{after}"


def _section() -> str:
    totals = {prompt: _llmbar(prompt).judges[prompt].figures for prompt in PROMPTS}
    subsets = _llmbar("vanilla").judges["vanilla"].rubrics
    worst = min(subsets, key=lambda subset: _points(subsets[subset]["recall"]))
    agents, rows = _agents("task"), _agents("case")
    figures = {
        "an agent on GPT-4o: has a coding agent met a requirement? (1,098 requirements)": (
            agents.figures
        ),
        "GPT-4: is the second of two answers better? pairs from existing data sets (Natural)": (
            subsets["Natural"]
        ),
        f"GPT-4, pairs made to mislead ({worst})": subsets[worst],
    }
    figures["GPT-4, all pairs (`vanilla`)"] = totals["vanilla"]
    lost = _points(totals["vanilla"]["recall"]) - _points(totals["cot"]["recall"])
    words = {prompt: of_rules for prompt, *of_rules in decisions()}
    return _SECTION.format(
        figures=_figures_table(figures),
        best=f"{100 - _points(subsets['Natural']['recall']):.0f}%",
        worst=f"{100 - _points(subsets[worst]['recall']):.0f}%",
        subset=worst,
        narrow=f"{_width(rows.figures['recall']):.0f}",
        wide=f"{_width(agents.figures['recall']):.0f}",
        no_rules=words["vanilla_norules"][1],
        strict=words["cot"][0],
        cot=words["cot"][1],
        proof=words["cot"][2],
        lost=f"{lost:.1f}",
    )


def decisions() -> list[tuple[str, ...]]:
    """What is decided of each prompt against `vanilla`: the prompt, and the word under each of the
    rules.
    """
    lines = []
    for prompt in PROMPTS[1:]:
        words = []
        for max_drop, proof in _RULES:
            decision = _llmbar(prompt, max_drop, proof=proof).decision
            assert decision is not None
            words.append(decision.word)
        lines.append((prompt, *words))
    return lines


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


def _agents(cluster: str) -> Reliability:
    checked = check_table(TABLES / "agent-as-a-judge.csv", cluster=cluster, one="violated")
    [judge] = checked.judges.values()
    return judge


def _figures_table(rows: Mapping[str, Mapping[str, Estimate]]) -> str:
    lines = []
    for name, figures in rows.items():
        false_alarms = figure_text("false_positive_rate", figures["false_positive_rate"])
        kappa = figure_text("kappa", figures["kappa"])
        lines.append((name, _missed(figures["recall"]), false_alarms, kappa))
    return _table(("judge and cases", "missed", "false alarms", "kappa"), lines)


def _missed(recall: Estimate) -> str:
    assert recall.lower is not None
    assert recall.upper is not None
    lower, upper = 100 * (1 - recall.upper), 100 * (1 - recall.lower)
    return f"{100 - _points(recall):.1f}% ({lower:.1f}-{upper:.1f})"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _points(figure: Estimate) -> float:
    assert figure.value is not None
    return 100 * figure.value


def _width(figure: Estimate) -> float:
    assert figure.lower is not None
    assert figure.upper is not None
    return 100 * (figure.upper - figure.lower)


if __name__ == "__main__":
    sys.exit(main())
