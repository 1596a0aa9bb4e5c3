"""Equations become MathML and notebooks become pages when the documentation is built.

No script, no network.
"""

import json
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.S)
DISPLAYED = re.compile(r"\$\$(.+?)\$\$", re.S)
MARK = re.compile(r"<!--output (\d+)-->")
HTML: list[str] = []
INLINE = re.compile(r"(?<![\\$\w])\$([^$\n]+?)\$(?!\d)")


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each notebook, with the outputs that are stored in it."""
    for path in sorted(Path(config.docs_dir, "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        page = File.generated(config, f"notebooks/{path.stem}.md", content=_page(notebook, path))
        files.append(page)
    return files


def _page(notebook: dict[str, Any], path: Path) -> str:
    """Return a notebook as Markdown; its outputs in HTML stand aside until the page is made."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            parts.append(source)
            if len(parts) == 1:
                parts.append(f"[This notebook]({path.name}), to run it yourself.")
            continue
        parts.append(f"```python\n{source}\n```")
        parts += map(_output, cell["outputs"])
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any]) -> str:
    """Return an output of a cell: text as it is, HTML as a mark for it."""
    html = "".join(output.get("data", {}).get("text/html", ()))
    if html:
        HTML.append(html)
        return f"<!--output {len(HTML) - 1}-->"
    text = "".join(output.get("text", ())) or "".join(output["data"]["text/plain"])
    return f"``` {{ .text .output }}\n{text.rstrip()}\n```"


def on_page_content(html: str, **_: Any) -> str:
    """Put the outputs of notebooks in the place of their marks."""
    return MARK.sub(lambda mark: f'<div class="output">{HTML[int(mark[1])]}</div>', html)


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
