"""The blocks of the guide and of the README run from top to bottom on files of the checkout."""

import os
import re
import shutil
from pathlib import Path

import pytest

# The tests also run from a copy, next to an installed package.
MODELS = os.environ.get("TYPELIFT_MODELS")
ROOT = Path(MODELS).parents[1] if MODELS else Path(__file__).parents[3]


@pytest.mark.parametrize("page", ["docs/python.md", "crates/typelift-py/README.md"])
def test_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "testdata/tutorial", tmp_path / "testdata/tutorial")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        for module in ("openvino", "numpy"):
            if module in block:
                pytest.importorskip(module)
        exec(compile(block, page, "exec"), names)
    assert (tmp_path / "fixed.xml").exists()
