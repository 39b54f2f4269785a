"""The package's own pages: whatever is put into them is escaped (rule K4)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import jinja2


def render_page(folder: Path, name: str, values: Mapping[str, object]) -> str:
    """Render one of the package's own pages, `folder/name`, with every value escaped.

    Undefined names raise.
    """
    return _page_environment(folder).get_template(name).render(values)


@lru_cache(maxsize=8)
def _page_environment(folder: Path) -> jinja2.Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
