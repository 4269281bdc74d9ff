"""Runs a notebook that is kept as a script, cell by cell, as Jupyter does.

    python notebook.py NOTEBOOK.py [OUT.ipynb]

Needs jupytext, nbclient and ipykernel. With a second name, the notebook is written there with what its cells show.
"""

import sys

import jupytext  # type: ignore[import-untyped,unused-ignore]
import nbformat
from nbclient import NotebookClient

notebook = jupytext.read(sys.argv[1])
NotebookClient(notebook, timeout=300).execute()
shown = sum(len(cell.get("outputs", ())) for cell in notebook.cells)
size = len(nbformat.writes(notebook).encode())  # type: ignore[no-untyped-call,unused-ignore]
if size > 1_000_000:
    sys.exit(f"{sys.argv[1]}: {size} bytes with what its cells show, more than a megabyte")
print(f"{sys.argv[1]}: {len(notebook.cells)} cells, {shown} outputs")
if len(sys.argv) > 2:
    nbformat.write(notebook, sys.argv[2])  # type: ignore[no-untyped-call,unused-ignore]
