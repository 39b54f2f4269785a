"""The judge under test: a function that asks a service, and reads what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from pytest_jrh import JudgedCase

URL = "http://127.0.0.1:8799/judge"
"""Where `python -m examples.http_judge.service` answers; on replay nothing is asked."""


def asked(case: JudgedCase) -> tuple[str, str]:
    """What the service says of a conversation, broken or kept, and why."""
    question = {"rule": case.rubric.id, "messages": case.messages}
    answer = httpx.post(URL, json=question, timeout=60).raise_for_status().json()
    return answer["verdict"], answer["why"]
