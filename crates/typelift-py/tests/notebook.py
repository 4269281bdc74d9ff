"""Runs a notebook that is stored as a script, cell by cell, as Jupyter does: `# %%` begins a cell, `# %% [markdown]`
one of text.

    python notebook.py NOTEBOOK.py [OUT.ipynb]

Needs nbclient and ipykernel. With a second name, the notebook is written there with the output of its cells.
"""

# pyright: reportMissingImports=false

import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

script = Path(sys.argv[1]).read_text(encoding="utf-8")
# Text before the first cell is for editors.
_, *parts = re.split(r"^# %%(.*)\n", script, flags=re.MULTILINE)
notebook = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call,unused-ignore]
for kind, text in zip(parts[::2], parts[1::2]):
    if "[markdown]" in kind:
        text = re.sub("^# ?", "", text, flags=re.MULTILINE)
        cell = nbformat.v4.new_markdown_cell(text.strip())  # type: ignore[no-untyped-call,unused-ignore]
    else:
        cell = nbformat.v4.new_code_cell(text.strip())  # type: ignore[no-untyped-call,unused-ignore]
    notebook.cells.append(cell)
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
shown = sum(len(cell.get("outputs", ())) for cell in notebook.cells)
size = len(nbformat.writes(notebook).encode())  # type: ignore[no-untyped-call,unused-ignore]
if not shown or size > 1_000_000:
    sys.exit(f"{sys.argv[1]}: {shown} outputs, {size} bytes with them, and a megabyte is the most")
print(f"{sys.argv[1]}: {len(notebook.cells)} cells, {shown} outputs, {size} bytes")
if len(sys.argv) > 2:
    nbformat.write(notebook, sys.argv[2])  # type: ignore[no-untyped-call,unused-ignore]
