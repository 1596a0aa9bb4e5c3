"""Equations of the documentation become MathML when it is built: no script, no network."""

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.S)
DISPLAYED = re.compile(r"\$\$(.+?)\$\$", re.S)
INLINE = re.compile(r"(?<![\\$\w])\$([^$\n]+?)\$(?!\d)")


def on_config(config: Any) -> Any:
    """Add the page of results to the menu, if there is one."""
    if Path(config.docs_dir, "results.md").exists() and config.nav:
        config.nav.insert(3, {"Results": "results.md"})
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace ``$$...$$`` and ``$...$`` outside of code."""
    parts = CODE.split(markdown)
    for number in range(0, len(parts), 2):
        parts[number] = INLINE.sub(_inline, DISPLAYED.sub(_displayed, parts[number]))
    return "".join(parts)


def _displayed(equation: re.Match[str]) -> str:
    return f"\n\n{convert(equation[1].strip(), display='block')}\n\n"


def _inline(equation: re.Match[str]) -> str:
    # Without the span, a line that begins with an equation would become a separate block.
    return f"<span>{convert(equation[1].strip())}</span>"
