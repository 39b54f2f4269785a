"""How providers refuse a response format: HTTP 400, in the words that each of them uses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tests.support.faults import Fault

if TYPE_CHECKING:
    from tests.support.exchange import Request

WORDINGS: Mapping[str, Mapping[str, object]] = {
    "openai": {
        "error": {
            "message": "Invalid parameter: 'response_format' of type 'json_schema' is not "
            "supported with this model.",
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        }
    },
    "vllm": {
        "object": "error",
        "message": "The request to guided decoding cannot be served: no backend was compiled for "
        "xgrammar.",
        "type": "BadRequestError",
        "param": None,
        "code": 400,
    },
    "ollama": {
        "error": 'invalid format: "json_schema"; expected "json" or a valid JSON Schema object'
    },
    "llama.cpp": {
        "error": {
            "code": 400,
            "message": 'response_format type must be one of "text" or "json_object", but got: '
            "json_schema",
            "type": "invalid_request_error",
        }
    },
    "llama.cpp grammar": {
        "error": {
            "code": 400,
            "message": "Failed to parse grammar",
            "type": "invalid_request_error",
        }
    },
    "lm studio": {"error": "'response_format.type' must be 'text'"},
    "deepseek": {
        "error": {
            "message": "This response_format type is unavailable now",
            "type": "invalid_request_error",
        }
    },
    "groq": {
        "error": {
            "message": "This model does not support response format `json_schema`. See supported "
            "models",
            "type": "invalid_request_error",
        }
    },
    "no tools": {
        "error": {
            "message": "Tool calling is not supported with this model",
            "type": "invalid_request_error",
        }
    },
}


def refusal(provider: str) -> Fault:
    """The provider's HTTP 400."""
    return Fault.raw(
        json.dumps(WORDINGS[provider]).encode(), status=400, name=f"{provider} refuses"
    )


def sends(*kinds: str) -> Callable[[Request], bool]:
    """Whether a request asks for a response format of one of these types."""
    return lambda request: (request.response_format or {}).get("type") in kinds
