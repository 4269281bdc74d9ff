"""Checks that OpenVINO computes the same before and after the shipped rules, and after their inverses.

LIBRARY_MODELS=DIR cargo test -p typelift --test it library     writes the models (and fails while the answers are old)
python library.py DIR                                           runs them and writes answers.json: for each case the CRC-32
                                                                of the listings of its models, and the largest difference
                                                                as a part of the largest value
"""

import json
import sys
import zlib
from pathlib import Path

import numpy as np
import openvino as ov

HERE = Path(__file__).parent


def inputs(model):
    random = np.random.default_rng(0)
    return [random.normal(scale=3, size=list(p.shape)).astype(p.element_type.to_dtype()) for p in model.inputs]


def run(path):
    core = ov.Core()
    model = core.read_model(path)
    # The CPU computes as exactly as it can: the test compares the rewrite, not the plugin's choice of a type.
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return list(compiled(inputs(model)).values())


def checksum(path):
    return zlib.crc32(path.with_suffix(".txt").read_bytes())


def record(folder):
    answers = {}
    for before in sorted(folder.glob("*.xml")):
        if before.suffixes[-2:-1] in ([".after"], [".back"]):
            continue
        models = [before, before.with_suffix(".after.xml"), before.with_suffix(".back.xml")]
        models = [model for model in models if model.exists()]
        expected, *others = (run(model) for model in models)
        pairs = [pair for found in others for pair in zip(expected, found, strict=True)]
        assert all(np.isfinite(a).all() and a.shape == b.shape for a, b in pairs), before
        difference = max(float(np.max(np.abs(a - b)) / np.max(np.abs(a))) for a, b in pairs)
        answers[before.stem] = {"sums": [checksum(model) for model in models], "difference": difference}
    (HERE / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")


record(Path(sys.argv[1]))
