"""The notebook of the examples as a page, with what it printed and drew when it was last run.

    python docs/_build/notebook_page.py docs     writes docs/notebook.md, and its pictures into docs/pictures/
    python docs/_build/notebook_page.py --run    runs the notebook, and keeps what it prints and draws in it
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[2] / "examples" / "chart.ipynb"


def main() -> None:
    """Does what the argument asks for."""
    if sys.argv[1] == "--run":
        import nbformat

        nbformat.write(run_notebook(), NOTEBOOK)
    else:
        write_page(Path(sys.argv[1]))


def run_notebook() -> Any:
    """The notebook with new outputs, run in the folder that it is in."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(notebook, timeout=120, record_timing=False, resources={"metadata": {"path": NOTEBOOK.parent}})
    client.execute()
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def write_page(docs: Path) -> None:
    """Writes the page and the pictures that it shows."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    (docs / "pictures").mkdir(parents=True, exist_ok=True)
    parts = [part for cell in notebook["cells"] for part in page_parts(cell, docs)]
    (docs / "notebook.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def page_parts(cell: dict[str, Any], docs: Path) -> Iterator[str]:
    """A cell as Markdown, and its outputs."""
    text = "".join(cell["source"])
    yield text if cell["cell_type"] == "markdown" else f"```py\n{text}\n```"
    for output in cell.get("outputs", []):
        yield page_output(output, cell["id"], docs)


def page_output(output: dict[str, Any], name: str, docs: Path) -> str:
    """Return the output of a cell; Markdown is quoted, so that its headings are not those of the page."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in data:
        (docs / "pictures" / f"notebook-{name}.png").write_bytes(base64.b64decode(data["image/png"]))
        return f'<div class="picture" markdown>\n![What the cell above draws](pictures/notebook-{name}.png)\n</div>'
    if "text/markdown" in data:
        lines = "".join(data["text/markdown"]).strip().splitlines()
        return "\n".join(f"> **{line.lstrip('# ')}**" if line.startswith("#") else f"> {line}".rstrip() for line in lines)
    return "```text\n" + "".join(data["text/plain"]).rstrip("\n") + "\n```"


if __name__ == "__main__":
    main()
