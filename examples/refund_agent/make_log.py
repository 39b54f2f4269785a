"""Run the task and write its log: `python -m examples.refund_agent.make_log [FILE]`.

The log is made once and committed. Times and ids in it are Inspect's own; nothing names the
machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from examples.refund_agent.conversation import load_conversations

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

DEFAULT = Path(__file__).parents[2] / "inputs" / "data" / "refund_agent" / "refund_agent.eval"


def _run_task(folder: Path) -> EvalLog:
    from inspect_ai import eval as run_eval

    from examples.refund_agent.task import refund_agent, scripted_agent

    (log,) = run_eval(
        refund_agent(),
        model=scripted_agent(load_conversations()),
        log_dir=str(folder),
        log_format="eval",
        display="none",
    )
    return log


def _without_machine(log: EvalLog) -> EvalLog:
    """Drop what tells where the log was made: the callable's address and the file it came from."""
    changes: dict[str, Any] = {"model_args": {}, "task_file": None, "revision": None}
    return log.model_copy(update={"eval": log.eval.model_copy(update=changes)})


def _repack(source: Path, target: Path) -> None:
    """Deflate every member, so that any zip tool and any version of Inspect reads the log."""
    with (
        zipfile.ZipFile(source) as packed,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as plain,
    ):
        for name in packed.namelist():
            plain.writestr(zipfile.ZipInfo(name), packed.read(name), zipfile.ZIP_DEFLATED)


def make_log(target: Path) -> None:
    """Run every conversation and put the log at `target`.

    Raises RuntimeError where a run went wrong.
    """
    from inspect_ai.log import read_eval_log, write_eval_log

    with tempfile.TemporaryDirectory() as name:
        # Inspect records the git state of the folder that it runs in; a temporary folder has none.
        with contextlib.chdir(name):
            log = _run_task(Path("logs"))
            log = read_eval_log(log.location)
            if log.status != "success" or any(sample.error for sample in log.samples or ()):
                raise RuntimeError(f"the task ended with status {log.status}: {log.error}")
            write_eval_log(_without_machine(log), "clean.eval")
        target.parent.mkdir(parents=True, exist_ok=True)
        _repack(Path(name) / "clean.eval", target)


def main() -> None:
    """Parse the command line and make the log."""
    parser = argparse.ArgumentParser(
        description="Run the refund agent's conversations and write their Inspect log."
    )
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT, help="where the log goes")
    target: Path = parser.parse_args().file.absolute()
    os.environ["INSPECT_DISPLAY"] = "none"
    make_log(target)
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
