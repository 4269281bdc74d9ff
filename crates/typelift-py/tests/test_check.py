"""The findings of a model are the same in the package and in the program, in the words of each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import typelift

MODELS = Path(os.environ.get("TYPELIFT_MODELS") or Path(__file__).parents[3] / "testdata" / "models")




def findings(path: Path) -> list[tuple[object, ...]]:
    """Returns the findings of the program."""
    command = [sys.executable, "-m", "typelift", "check", "--format", "json", str(path)]
    document = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
    return [(d["code"], d["severity"], d["line"], d["column"], d["fix"]) for d in document["diagnostics"]]


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.xml")) + sorted(MODELS.parent.glob("fixtures/repaired/*.xml")), ids=lambda path: path.stem)
def test_package_and_program_report_the_same(path: Path) -> None:
    try:
        model = typelift.open(path)
    except (typelift.ModelError, OSError):
        pytest.skip("a file with errors of reading is no model of the package")
    assert [(d.code, d.severity, d.line, d.column, d.fix) for d in model.check()] == findings(path)


def test_names_are_not_read_as_options() -> None:
    text = """<net name="n" version="11"><layers>
        <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
            <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
        <layer id="1" name="--types" type="ReLU" version="opset1"><input><port id="0" precision="FP32"><dim>2</dim></port></input>
            <output><port id="1" precision="FP32"><dim>2</dim></port></output></layer>
        <layer id="2" name="y" type="Result" version="opset1"><input><port id="0" precision="FP32"><dim>2</dim></port></input></layer>
        </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/></edges></net>"""
    assert "`--types`" in typelift.loads(text).check()[0].message
