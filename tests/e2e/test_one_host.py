"""While recording, no library looks anything up: the provider's host is the only one asked for."""

import json
import socket
import sys
from typing import Any

import pytest

from tests.e2e.test_refusals import VERDICT, anthropic, bedrock, chat, gemini
from tests.plugin.recorded import run_pytest
from tests.support.loopback import Call, Loopback, Wire
from tests.support.suites import MODEL

MESSAGES = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "Here."}]
OLLAMA = {
    "model": "m",
    "created_at": "2026-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": VERDICT},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 300,
    "eval_count": 20,
}
ANSWERS: dict[str, dict[str, Any]] = {
    "anthropic": anthropic("end_turn"),
    "gemini": gemini(),
    "bedrock": bedrock("end_turn"),
    "ollama": OLLAMA,
}
# Each provider's server has a name of its own, which leads to this machine.
MODELS = {
    "openai": (MODEL, "/v1"),
    "anthropic": ("anthropic/claude-sonnet-4-5", ""),
    "gemini": ("gemini/gemini-2.5-flash", "/v1beta"),
    "bedrock": ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", ""),
    "azure": ("azure/deployment", ""),
    "ollama": ("ollama_chat/qwen3:8b", ""),
}
KEYS = """ANTHROPIC_API_KEY GEMINI_API_KEY OPENAI_API_KEY AZURE_API_KEY AWS_ACCESS_KEY_ID
AWS_SECRET_ACCESS_KEY"""
PLACES = {"AZURE_API_VERSION": "2025-03-01-preview", "AWS_REGION_NAME": "us-east-1"}
# Python's look-ups of names, where litellm asks an Ollama of this machine about its models; what
# libraries in other languages ask goes to the proxy.
RESOLVER = """
import socket
found = socket.getaddrinfo
def getaddrinfo(host, *args, **kwargs):
    name = host.decode() if isinstance(host, bytes) else host
    if name.endswith(".provider.test"):
        return found("127.0.0.1", *args, **kwargs)
    if name not in ("127.0.0.1", "localhost"):
        with open("looked_up.txt", "a") as file:
            print(name, file=file)
        raise socket.gaierror(f"no look-up of {name}")
    return found(host, *args, **kwargs)
socket.getaddrinfo = getaddrinfo
"""


class Providers(Loopback):
    """Answers as each provider does, by the host that it was asked as."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def respond(self, call: Call) -> Wire:
        provider = call.headers["host"].partition(".")[0]
        self.asked.add(provider)
        answer = ANSWERS.get(provider, chat())
        return Wire(200, json.dumps(answer).encode(), {"content-type": "application/json"})


def test_no_look_up_but_of_the_providers_own_host(pytester: pytest.Pytester) -> None:
    with Providers() as providers, socket.create_server(("127.0.0.1", 0)) as proxy:
        judges = [
            {
                "name": name,
                "model": model,
                "api_base": f"http://{name}.provider.test:{providers.port}{path}",
            }
            for name, (model, path) in MODELS.items()
        ]
        config = {
            "suite": {"log": "runs.jsonl", "rubrics": "rubrics.json"},
            "cases": {"kinds": ["labels"]},
            "labels": {"path": "labels.csv"},
            "judges": judges,
        }
        files = {
            "suite.yml": json.dumps(config),
            "runs.jsonl": json.dumps({"id": "a", "messages": MESSAGES}),
            "rubrics.json": json.dumps([{"id": "kind", "instructions": "Be kind."}]),
            "labels.csv": "run_id,label\na,violated\n",
            "only_provider.py": RESOLVER,
        }
        for name, text in files.items():
            (pytester.path / name).write_text(text, "utf-8")
        away = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        recorded = run_pytest(
            pytester.path,
            *("-p", "only_provider", "--jrh-config=suite.yml", "--jrh-record-mode=once"),
            env={
                **dict.fromkeys(KEYS.split(), "none"),
                **PLACES,
                "PYTHONPATH": str(pytester.path),
                **dict.fromkeys(("HTTPS_PROXY", "https_proxy"), away),
                **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,.provider.test"),
                "LITELLM_LOCAL_MODEL_COST_MAP": None,
            },
            # A process that has imported litellm before would have looked things up before, too.
            interpreter=[sys.executable],
        )
        proxy.settimeout(0)
        with pytest.raises(BlockingIOError):
            proxy.accept()
    looked_up = pytester.path / "looked_up.txt"
    assert not looked_up.exists(), looked_up.read_text()
    assert providers.asked == MODELS.keys(), recorded.stdout
    assert recorded.code == 0, recorded.stdout
