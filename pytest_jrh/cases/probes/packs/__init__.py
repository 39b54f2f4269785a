"""The texts that are shipped with probes, as YAML."""

from __future__ import annotations

from importlib import resources
from typing import Any


def shipped(name: str) -> Any:
    """The content of a pack of this package; raises FileNotFoundError."""
    # A session without suites knows the probes by name, and reads no pack.
    import yaml

    text = resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
    return yaml.safe_load(text)
