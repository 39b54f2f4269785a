"""Ollama's own chat API in terms of OpenAI's: what its clients send and get."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def as_chat_completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request to `/api/chat` as OpenAI's clients would send it."""
    shape = body.get("format")
    more: dict[str, Any] = {}
    if shape == "json":
        more["response_format"] = {"type": "json_object"}
    elif shape is not None:
        schema = {"name": shape.get("title", ""), "schema": shape}
        more["response_format"] = {"type": "json_schema", "json_schema": schema}
    return {"model": body["model"], "messages": body["messages"], **more}


def as_ollama(completion: bytes) -> bytes:
    """An OpenAI chat completion as Ollama would send it; an error stays as it is."""
    sent = json.loads(completion)
    if "choices" not in sent:
        return completion
    choice, usage = sent["choices"][0], sent["usage"]
    return json.dumps(
        {
            "model": sent["model"],
            "created_at": "2026-01-01T00:00:00Z",
            "message": {"role": "assistant", "content": choice["message"]["content"]},
            "done": True,
            "done_reason": choice["finish_reason"],
            "prompt_eval_count": usage["prompt_tokens"],
            "eval_count": usage["completion_tokens"],
        }
    ).encode()
