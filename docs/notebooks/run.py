"""Runs the notebooks of this folder and stores what they show: ``python docs/notebooks/run.py``."""

import ast
import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

Outputs = list[dict[str, Any]]


def lines(text: str) -> list[str]:
    """Return a text as notebooks store it."""
    return text.splitlines(keepends=True)


def shown(value: Any, number: int) -> dict[str, Any]:
    """Return the output of a cell whose last line has a value."""
    data = {"text/plain": lines(repr(value))}
    html = getattr(value, "_repr_html_", None)
    if callable(html) and (text := html()):
        data["text/html"] = lines(text)
    return {
        "output_type": "execute_result",
        "execution_count": number,
        "metadata": {},
        "data": data,
    }


def run_cell(source: str, scope: dict[str, Any], number: int) -> Outputs:
    """Run a cell; return what it prints and shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, outputs = io.StringIO(), []
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), scope)
        value = None
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), scope)
    if printed.getvalue():
        outputs.append(
            {"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())}
        )
    if value is not None:
        outputs.append(shown(value, number))
    return outputs


def run(notebook: dict[str, Any]) -> tuple[list[Outputs], dict[str, Any]]:
    """Run all cells of a notebook in the current folder; return outputs and variables."""
    scope: dict[str, Any] = {"__name__": "notebook"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    outputs = [run_cell("".join(cell["source"]), scope, at + 1) for at, cell in enumerate(cells)]
    return outputs, scope


def main() -> None:
    """Run all notebooks and store their outputs."""
    for path in sorted(HERE.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            outputs, _ = run(notebook)
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for number, (cell, found) in enumerate(zip(cells, outputs, strict=True), start=1):
            cell.update(outputs=found, execution_count=number)
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
