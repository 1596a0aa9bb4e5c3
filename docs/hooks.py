"""Equations of the documentation become MathML when it is built: no script, no network."""

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.S)
DISPLAYED = re.compile(r"\$\$(.+?)\$\$", re.S)
INLINE = re.compile(r"(?<![\\$\w])\$([^$\n]+?)\$(?!\d)")


def on_config(config: Any) -> Any:
    """Put the page of results into the menu, where there is one."""
    if Path(config.docs_dir, "results.md").exists() and config.nav:
        config.nav.insert(3, {"Results": "results.md"})
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace ``$$...$$`` and ``$...$`` outside of code."""
    parts = CODE.split(markdown)
    for place in range(0, len(parts), 2):
        parts[place] = INLINE.sub(_inline, DISPLAYED.sub(_displayed, parts[place]))
    return "".join(parts)


def _displayed(found: re.Match[str]) -> str:
    return f"\n\n{convert(found[1].strip(), display='block')}\n\n"


def _inline(found: re.Match[str]) -> str:
    # Without the span, a line that begins with an equation would become a block of its own.
    return f"<span>{convert(found[1].strip())}</span>"
