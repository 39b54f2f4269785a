"""What comes of putting one judge in the place of another, as blocks: the word with its reason, the
changes of each class, both judges side by side, and how to read old numbers under the new one.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.text import counted, dollars, one_line, shortened
from pytest_jrh.reports.blocks import Cell, Row, Sentence, Table
from pytest_jrh.reports.gate import allowed_text, signed_points
from pytest_jrh.reports.json_values import bounds_data, decision_data
from pytest_jrh.stats.baseline import NOT_IN_BASELINE
from pytest_jrh.stats.exchange import SESSION_LEVEL
from pytest_jrh.stats.figures import NONE, decimal, percent, range_text, ranged, value_text
from pytest_jrh.stats.intervals import POWER
from pytest_jrh.stats.planning import SUPPOSED_FLIP
from pytest_jrh.stats.statistics import describe
from pytest_jrh.stats.upgrade import NEW_JUDGE, OLD_JUDGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_jrh.core.model import CaseResult, Spending
    from pytest_jrh.reports.blocks import Block, Weight
    from pytest_jrh.stats.changes import SetChange
    from pytest_jrh.stats.figures import FigureKind
    from pytest_jrh.stats.formulas import Estimate
    from pytest_jrh.stats.upgrade import ClassChange, Upgrade


_LONGEST_NAME = 40
_MOST_RUBRICS = 2


def upgrade_title(upgrade: Upgrade) -> str:
    """What the word means, of these two judges."""
    old, new = _names(upgrade)
    match upgrade.word:
        case "WORSE":
            gained = _gained(upgrade)
            but = f", but {gained}" if gained else ""
            title = f"{new} {_lost(upgrade)} than {old}{but}"
        case "BETTER":
            title = f"{new} {_gained(upgrade)} than {old}"
        case "EQUIVALENT":
            title = f"{new} is as good as {old}, to within {_allowed(upgrade)}"
        case "DIFFERENT":
            title = f"{new} is not shown to be better or worse than {old}, but differs from it"
        case _:
            title = f"{new} is not shown to be as good as {old}, better or worse"
    # The name of a judge stays as it is written.
    is_named = upgrade.new != NEW_JUDGE and upgrade.new in title
    return title if is_named else f"{title[0].upper()}{title[1:]}"


def _names(upgrade: Upgrade) -> tuple[str, str]:
    return (
        shortened(one_line(upgrade.old), _LONGEST_NAME),
        shortened(one_line(upgrade.new), _LONGEST_NAME),
    )


def _lost(upgrade: Upgrade) -> str:
    """What the new judge does worse."""
    words = {"violated": "misses more violations", "satisfied": "raises more false alarms"}
    return _changed(upgrade.worse, words, ("is further off", "is wrong more often"))


def _gained(upgrade: Upgrade) -> str:
    """What the new judge does better; empty where nothing is shown."""
    words = {"violated": "finds more violations", "satisfied": "raises fewer false alarms"}
    return _changed(upgrade.better, words, ("is closer to the labels", "is right more often"))


def _changed(changes: Sequence[SetChange], words: dict[str, str], in_all: tuple[str, str]) -> str:
    """The classes that have changed; where none has by itself, the rubrics, or all together."""
    if not changes:
        return ""
    is_ordinal = changes[0].ordinal
    kinds = {change.kind for change in changes}
    classes = [word for kind, word in words.items() if kind in kinds]
    if classes:
        return " and ".join(classes)
    text = in_all[0] if is_ordinal else in_all[1]
    rubrics = [one_line(change.rubric) for change in changes if change.kind == "rubric"]
    if "all" in kinds or not rubrics:
        return text
    more = f" and {len(rubrics) - _MOST_RUBRICS:,} more" if len(rubrics) > _MOST_RUBRICS else ""
    return f"{text} on {', '.join(rubrics[:_MOST_RUBRICS])}{more}"


def _allowed(upgrade: Upgrade) -> str:
    return allowed_text(upgrade.max_drop, is_ordinal=_is_ordinal(upgrade))


def _is_ordinal(upgrade: Upgrade) -> bool:
    return any(of_class.change.ordinal for of_class in upgrade.classes)


def upgrade_blocks(upgrade: Upgrade) -> list[Block]:
    """What there is to say below the title, beside the card of the new judge."""
    blocks: list[Block] = [Sentence(text) for text in _reasons(upgrade)]
    blocks.append(_classes_table(upgrade))
    blocks.append(_judges_table(upgrade))
    costs = _costs_table(upgrade)
    if costs.titles:
        blocks.append(costs)
    blocks += [Sentence(text) for text in _reading(upgrade)]
    return blocks


def _reasons(upgrade: Upgrade) -> Iterator[str]:
    """Why it is that word, and what would decide it."""
    allowed = _allowed(upgrade)
    old, new = _names(upgrade)
    if upgrade.word == "EQUIVALENT" and upgrade.is_replayed:
        yield (
            "It is one judge: model, prompt, parameters and all verdicts are the same, so that "
            "nothing is shown of another one."
        )
    elif upgrade.word == "EQUIVALENT":
        yield (
            f"A loss and a gain of {allowed} or more (--max-drop) are both excluded on other runs, "
            "too, in each class."
        )
    if upgrade.one_class:
        yield (
            "All compared cases have the same label, so that a judge which always gives this one "
            "would be right: compare the judges on cases of the other label, too."
        )
    unscored = upgrade.decision.unscored
    not_compared = [
        f"no verdict of {old}" if reason == NOT_IN_BASELINE else reason
        for case, reason in upgrade.decision.not_comparable.items()
        if case not in unscored
    ]
    if not_compared:
        reasons = "; ".join(dict.fromkeys(not_compared))
        yield f"{counted(len(not_compared), 'case')} not compared: {shortened(reasons, 200)}."
    if unscored:
        have = "has" if len(unscored) == 1 else "have"
        yield (
            f"{counted(len(unscored), 'case')} {have} no verdict of {new} "
            f"({', '.join(dict.fromkeys(unscored.values()))}), so that the gate fails: "
            f"{_MAY_BE_WRONG}"
        )
    if upgrade.absent:
        yield (
            f"{counted(upgrade.absent, 'case')} of {old} not compared, as {new} has nothing on "
            f"them: {_MAY_BE_WRONG}"
        )
    if upgrade.loses_on_these:
        yield (
            "On these cases more is lost than flicker explains, so that the gate with max_drop: 0 "
            "fails. On as many others that may be chance, as each judge is wrong on cases of its "
            "own."
        )
    is_whole = not (upgrade.one_class or unscored or upgrade.absent)
    if upgrade.word == "UNDECIDED" and is_whole:
        yield _what_decides(upgrade)
    if upgrade.word in ("DIFFERENT", "UNDECIDED", "EQUIVALENT") and upgrade.differing:
        yield _about_flicker(upgrade)


_MAY_BE_WRONG = (
    "these may be the ones that it would get wrong, and neither EQUIVALENT nor BETTER is said "
    "without them."
)


def _what_decides(upgrade: Upgrade) -> str:
    now = max(len(change.sizes) for change in upgrade.decision.changes)
    allowed = _allowed(upgrade)
    if upgrade.runs is None:
        return f"No number of runs would prove that they are equal to within {allowed}."
    needed = f"about {counted(upgrade.runs, 'run')} like these"
    if upgrade.runs > now:
        more = f"{upgrade.runs - now:,} more than the {now:,} here"
        return (
            f"If both are as good, {needed} would prove it to within {allowed} in {POWER:.0%} of "
            f"sessions: {more}. (Verdicts then differ as often as here, and no less than if "
            f"{SUPPOSED_FLIP:.0%} flip, where no repeats tell how many do.)"
        )
    return (
        f"If both were as good, {needed} would prove it to within {allowed}; here are {now:,}, so "
        "that the difference that was seen is the reason: look at it, or allow more (--max-drop)."
    )


def _about_flicker(upgrade: Upgrade) -> str:
    differ = f"The verdicts differ on {upgrade.differing:,} of {counted(upgrade.compared, 'case')}"
    if upgrade.different_p is None:
        return (
            f"{differ}. Whether that is more than flicker is not known, as no case was judged more "
            "than once: repeats of each judge would tell."
        )
    more = "more" if upgrade.different_p < SESSION_LEVEL else "no more"
    return f"{differ}, {more} than flicker explains (p = {upgrade.different_p:.2g})."


def _classes_table(upgrade: Upgrade) -> Table:
    """Of each class the rates before and now, and on how many cases which judge is right."""
    old, new = _names(upgrade)
    rows = [_class_row(of_class) for of_class in upgrade.classes]
    unit = "levels" if _is_ordinal(upgrade) else "points"
    caption = f"behind the change in {unit} what other runs leave possible (95% a side):"
    if any(of_class.change.mixed for of_class in upgrade.classes):
        caption = f"rates are over all repeats, cases count by their majority; {caption}"
    if upgrade.old == OLD_JUDGE or upgrade.new == NEW_JUDGE:
        caption = caption[0].upper() + caption[1:]
    else:
        caption = f"old is {old}, new is {new}; {caption}"
    titles = ("old", "new", "change", "both", "only old", "only new", "neither")
    return Table("right on", titles, tuple(rows), caption)


_CLASS_NAMES = {"violated": "violations", "satisfied": "clean runs"}


def _class_row(of_class: ClassChange) -> Row:
    change = of_class.change
    counts = (of_class.both_right, of_class.only_old, of_class.only_new, of_class.both_wrong)
    if change.ordinal:
        rates = (decimal(change.before), decimal(change.now))
        moved = _signed_levels(change.drop)
    else:
        rates = (percent(1 - change.before), percent(1 - change.now))
        moved = signed_points(-change.drop)
    between = ""
    loss, gain = change.over_runs.upper, of_class.gain.upper
    if loss is not None and gain is not None:
        low, high = signed_points(-min(1.0, loss)), signed_points(min(1.0, gain))
        if change.ordinal:
            low, high = _signed_levels(-gain), _signed_levels(loss)
        between = f"{low} to {high}"
    weight: Weight = "bad" if of_class.only_old > of_class.only_new else ""
    cells = [*map(Cell, rates), Cell(moved, between, weight=weight)]
    cells += [Cell(f"{count:,}") for count in counts]
    name = "mean error" if change.ordinal else _CLASS_NAMES[change.kind]
    return Row(name, tuple(cells))


def _signed_levels(levels: float) -> str:
    return f"{round(levels, 2) + 0.0:+.2f}"


def _judges_table(upgrade: Upgrade) -> Table:
    """Both judges side by side on the compared cases: their mistakes, and their agreement with
    people where all labels are of people.
    """
    old, new = upgrade.old_results, [pair.now for pair in upgrade.pairs]
    before, now = describe(old), describe(new)
    columns: dict[str, tuple[str, str]] = {}
    if before.mode == "binary":
        for title, key in (("missed", "recall"), ("false alarms", "false_positive_rate")):
            columns[title] = (_wrong(before.figures[key], key), _wrong(now.figures[key], key))
        kappa = "kappa"
    else:
        columns["exact"] = (_ranged(before.figures["exact"]), _ranged(now.figures["exact"]))
        kappa = "weighted_kappa"
    if all(result.labelled_by == "people" for result in old):
        shown = (before.figures[kappa], now.figures[kappa])
        columns["kappa with people"] = (_ranged(shown[0], "number"), _ranged(shown[1], "number"))
    return _side_by_side("judge", columns, upgrade)


def _costs_table(upgrade: Upgrade) -> Table:
    """What the verdicts of both judges took; without columns where nothing is known of it."""
    columns: dict[str, tuple[str, str]] = {}
    if upgrade.spendings is not None:
        of_old, of_new, is_alone = upgrade.spendings
        title = "tokens" if is_alone else "tokens, with cases"
        columns[title] = (f"{of_old.usage.total:,}", f"{of_new.usage.total:,}")
        columns["dollars"] = (_cost(of_old), _cost(of_new))
    if any(upgrade.seconds):
        before, now = upgrade.seconds
        columns["seconds"] = (_sum_of(before), _sum_of(now))
        columns["seconds a verdict"] = (_median_of(before), _median_of(now))
    return _side_by_side("cost", columns, upgrade)


def _side_by_side(title: str, columns: Mapping[str, tuple[str, str]], upgrade: Upgrade) -> Table:
    """A table with a row of either judge; each column has what it shows of the old and the new."""
    rows = []
    for number, name in enumerate(_names(upgrade)):
        rows.append(Row(name, tuple(Cell(column[number]) for column in columns.values())))
    return Table(title, tuple(columns), tuple(rows))


def _wrong(share: Estimate, key: str) -> str:
    """How many cases of a class are judged wrong, of how many."""
    count = share.count or 0
    wrong = count if key == "false_positive_rate" else share.n - count
    return f"{wrong:,} of {share.n:,}" if share.n else NONE


def _ranged(figure: Estimate, kind: FigureKind = "share") -> str:
    return ranged(value_text(figure, kind), figure, kind)


def _cost(spending: Spending) -> str:
    return NONE if spending.unpriced else dollars(spending.cost)


def _sum_of(seconds: Sequence[float]) -> str:
    return f"{sum(seconds):,.1f}" if seconds else _NOT_MEASURED


def _median_of(seconds: Sequence[float]) -> str:
    """How long a verdict takes, and of how many that is."""
    if not seconds:
        return _NOT_MEASURED
    middle = median(seconds)
    shown = f"{middle:,.2f}" if middle >= _LEAST_SHOWN else f"below {_LEAST_SHOWN}"
    return f"{shown} (median of {len(seconds):,})"


_NOT_MEASURED = "not measured"
_LEAST_SHOWN = 0.01


def _reading(upgrade: Upgrade) -> Iterator[str]:
    """How to read a share of violations of the old judge under the new one."""
    old, new = _names(upgrade)
    shares = upgrade.shares
    if shares is None:
        yield (
            "How to read old shares of violations is not known: made cases are no sample of runs. "
            "Let both judges judge the same runs as they are (agent_labels)."
        )
        return
    if _is_ordinal(upgrade):
        between = range_text(shares.difference, "number")
        yield (
            f"Old numbers: on the same {counted(shares.difference.n, 'run')} the scores of {new} "
            f"differ from those of {old} by {_signed_levels(shares.difference.value or 0.0)} "
            f"levels on average (95% interval {between})."
        )
        return
    difference = shares.difference
    moved = "as many" if not difference.value else f"{signed_points(difference.value)} points"
    if difference.lower is not None and difference.upper is not None:
        low, high = signed_points(difference.lower), signed_points(difference.upper)
        moved += f" (95% interval {low} to {high})"
    yield (
        f"Old numbers: of the same {counted(shares.old.n, 'run')} {old} calls "
        f"{_ranged(shares.old)} violated, and {new} {_ranged(shares.new)}: {moved}. Of what {old} "
        f"calls violated, {new} calls {_ranged(shares.kept)} so; of the rest "
        f"{_ranged(shares.raised)}."
    )


def differing_results(upgrade: Upgrade) -> list[CaseResult]:
    """The cases to read first: those with another verdict than before, of these the ones that were
    right, then those that are wrong otherwise, then those that are right now; the farthest first.
    """
    differing = []
    for before, now in upgrade.pairs:
        if before.score != now.score:
            is_lost = before.outcome == "agree"
            is_won = now.outcome == "agree"
            distance = 0
            if now.score is not None and before.score is not None:
                distance = abs(now.score - before.score)
            differing.append(((not is_lost, is_won, -distance), now))
    differing.sort(key=lambda ranked: ranked[0])
    return [result for _, result in differing]


def next_sentence(upgrade: Upgrade) -> str:
    """The one next step."""
    old, new = _names(upgrade)
    read = f"read the {counted(upgrade.differing, 'case')} that are judged otherwise"
    if upgrade.differing == 1:
        read = "read the case that is judged otherwise"
    match upgrade.word:
        case "WORSE":
            return f"Next: {read}; keep {old}, or change {new}."
        case "EQUIVALENT" if upgrade.is_replayed:
            return "Next: change the judge, record its new verdicts, and compare again."
        case "EQUIVALENT" | "BETTER":
            return (
                f"Next: put {new} in the place of {old}, and update the baseline, if there is one "
                "(--jrh-update-baseline)."
            )
        case _ if upgrade.decision.unscored or upgrade.absent:
            return f"Next: have {new} judge the cases that it has no verdict on."
        case "DIFFERENT":
            return f"Next: {read}, and decide which judge is meant."
    more = "judge more runs with both judges"
    if upgrade.one_class:
        more = "judge cases of the other label with both judges"
    elif upgrade.different_p is None:
        more = "judge more runs with both, or each case three times (repeats)"
    return f"Next: {more}."


def upgrade_data(upgrade: Upgrade) -> dict[str, Any]:
    """All of it as plain values."""
    classes = []
    for of_class in upgrade.classes:
        change = of_class.change
        classes.append(
            {
                "set": change.kind,
                "n": change.n,
                "runs": len(change.sizes),
                "error_before": change.before,
                "error_now": change.now,
                "largest_loss": change.over_runs.upper,
                "largest_gain": of_class.gain.upper,
                "both_right": of_class.both_right,
                "only_old": of_class.only_old,
                "only_new": of_class.only_new,
                "both_wrong": of_class.both_wrong,
            }
        )
    shares: dict[str, Any] | None = None
    if upgrade.shares is not None:
        shares = {}
        for name in upgrade.shares.__dataclass_fields__:
            estimate: Estimate = getattr(upgrade.shares, name)
            shares[name] = {"value": estimate.value, **bounds_data(estimate), "n": estimate.n}
    data = {
        "word": upgrade.word,
        "old": upgrade.old,
        "new": upgrade.new,
        "max_drop": upgrade.max_drop,
        "compared": upgrade.compared,
        "differing": upgrade.differing,
        "different_p": upgrade.different_p,
        "runs_to_decide": upgrade.runs,
        "one_class": upgrade.one_class,
        "absent": upgrade.absent,
        "classes": classes,
        "same_runs": shares,
        "cases": [result.case_id for result in differing_results(upgrade)],
        "gate": decision_data(upgrade.decision),
    }
    if any(upgrade.seconds):
        of_old, of_new = upgrade.seconds
        data["seconds"] = {"old": _seconds_data(of_old), "new": _seconds_data(of_new)}
    return data


def _seconds_data(seconds: Sequence[float]) -> dict[str, Any]:
    return {
        "sum": sum(seconds) if seconds else None,
        "median": median(seconds) if seconds else None,
        "verdicts": len(seconds),
    }
