"""The only importer of litellm, which takes seconds to import."""

from __future__ import annotations

import functools
import os
from typing import Any


@functools.cache
def litellm() -> Any:
    """litellm, imported when first needed and set up for recording."""
    # Without this, litellm fetches its price map from the network while it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm as library

    from pytest_jrh.llm.wire import install

    install()
    # vcrpy records httpx's own transport; litellm's aiohttp one would be recorded twice or not at
    # all.
    library.disable_aiohttp_transport = True
    library.suppress_debug_info = True
    return library


def missing_keys(model: str) -> list[str]:
    """The environment variables with a key for the model of which none is set.

    None where it is set, or not needed.
    """
    found = litellm().validate_environment(model)
    return (
        []
        if found["keys_in_environment"]
        else [name for name in found["missing_keys"] if "KEY" in name]
    )
