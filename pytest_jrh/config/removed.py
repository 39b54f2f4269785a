"""What was removed, and what to do instead: said for one release to who still uses it.

The one table of it: whoever removes an option, a key or a command adds its row.
"""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

_SPLIT = "keep the labels of a test part in a file of their own, and a config that names it"

OPTIONS: dict[str, str] = {
    "split": _SPLIT,
    "reset-reference": "gate.max_drop is held against the last --jrh-update-baseline",
    "summary": "name it with --jrh-report=FILE.md",
    "card": "the page of --jrh-report=FILE.html begins with what the picture showed",
    "cassette-dir": "set recording.dir in the suite's config",
    "disable-recording": "--jrh-record-mode=all asks everything again, and records it",
    "eval-log": "docs/library.md writes an Inspect log from results.jsonl",
    "free-model": "a model whose `api_base` is this machine is free; for another one without a "
    "known price, limit the calls with --jrh-max-calls",
    "history": "commit the baseline, and see its git log",
    "max-workers": "set recording.max_workers in the suite's config",
    "report-unused": "--jrh-prune --jrh-plan lists what --jrh-prune would remove",
}
"""Options by their names without `--jrh-`; their ini keys are these names, too."""

KEYS: dict[str, str] = {
    "labels.split": _SPLIT,
    "judge.http": "write a function of a few lines that asks the service; see examples/http_judge",
    "judge.scout_scanner": "write a function with what the scanner asks: judge.python",
    "judge.verdicts": "hold the table against labels with `python -m pytest_jrh check`",
    "judge.column": "hold the table against labels with `python -m pytest_jrh check`",
    "cases.sampling: stable": "set sampling: kept",
    "gate.lower_bound": "set gate.proof: true, which asks for it of limits, too",
    "gate.inconclusive": "set gate.unclear: fail or pass",
    "gate.max_regressions": "set gate.max_drop: 0",
    "gate.min_accuracy: a mapping": "limits by test are gone; set gate.min_recall, of the violated "
    "cases, or gate.max_false_alarms, of the satisfied ones",
    "gate.min_cases": "a baseline names each case that is gone",
    "gate.min_compared": "what left the comparison is UNCLEAR; set gate.unclear: fail",
    "gate.allow_uncompared": "take the new suite over with --jrh-update-baseline",
    "gate.allow_one_class": "labels of one class are UNCLEAR, which passes",
    "review.reveal": "the report shows it after Finish",
    "review.reviewers": "everybody labels under the name that he or she gives",
    "review.blind": "say --jrh-review=blind",
    "review.seed": "the sample is always the same of the same cases",
    "test_agent_perturbation_config.max_sample_mb": "a sample may be 256 MB when unpacked",
    "probes.per_case": "list the `variants` of each case, or set variants: all",
    "probes.pack": "register a probe with attacks of your own; see docs/probes.md",
    "probes.seed": "what is drawn is always the same of the same cases",
    "judge.replay": "set `version`: while it is the same, recorded verdicts are replayed",
    "judge.target": "a scorer has the rubric's text as its target",
    "judge.value_key": "write a scorer of a few lines that gives one of the values",
    "replay.judge_record_mode": "say --jrh-judge-record-mode=MODE",
    "realism": "label a blind sample of made cases, with --jrh-review=blind",
    "reasons": "label a blind sample of made cases, with --jrh-review=blind",
}
"""Keys and sections of a config, as dotted names, and `KEY: VALUE` of a value; a key of a judge
begins with `judge.`, wherever the judge stands.
"""

COMMANDS: dict[str, str] = {
    "compare": "`check NEW --baseline OLD` answers the same question",
    "history": "see the git log of the baseline",
    "mutate": "edit the judge's prompt, and run the suite with --jrh-baseline=FILE",
}
"""Commands of `python -m pytest_jrh`."""


def written(value: object) -> str:
    """How a value stands in `KEYS`."""
    return "a mapping" if isinstance(value, dict) else str(value)


def said(instead: str) -> str:
    """The message about something that was removed."""
    return f"was removed: {instead}"


class RemovedOption(argparse.Action):
    """A flag that is known, so that its use can say what to do instead."""

    def __call__(self, *_: Any) -> NoReturn:
        """Refuse the flag."""
        name = self.option_strings[0].removeprefix("--jrh-")
        raise argparse.ArgumentError(self, said(OPTIONS[name]))


REMOVED: dict[str, Any] = {"nargs": "?", "action": RemovedOption, "help": argparse.SUPPRESS}
"""How a removed flag is declared, hidden from `--help`."""
