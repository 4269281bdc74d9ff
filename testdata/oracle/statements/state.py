"""A decoder with caches, the same with its caches as state, and back: whether OpenVINO computes the same.

python state.py make         writes decoder.xml and decoder.bin
UPDATE_STATE=1 cargo test -p typelift --test it caches     writes decoder.stateful.* and decoder.stateless.*
python state.py record       runs four steps of three beams that change places in the third step, and writes answers.json:
                             the CRC-32 of the files, and the largest difference of the outputs
"""

import json
import sys
import zlib
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset13 as ops

HERE = Path(__file__).parent
LAYERS, HEADS, SIZE, WORDS = 2, 2, 4, 16


def parameter(shape, ty, name):
    x = ops.parameter(shape, ty, name=name)
    x.output(0).set_names({name})
    return x


def make():
    random = np.random.default_rng(49)
    weights = lambda *shape: ops.constant((0.3 * random.standard_normal(shape)).astype(np.float32))
    c = lambda value: ops.constant(np.array(value, dtype=np.int64))
    hidden = HEADS * SIZE
    ids = parameter([-1, -1], np.int64, "input_ids")
    words = weights(WORDS, hidden)
    h, inputs, outputs = ops.gather(words, ids, c(0)), [ids], []
    for layer in range(LAYERS):
        heads = []
        for part, kind in [("q", None), ("k", "key"), ("v", "value")]:
            x = ops.matmul(h, weights(hidden, hidden), False, True, name=f"layers.{layer}.{part}")
            x = ops.transpose(ops.reshape(x, c([0, 0, HEADS, SIZE]), True), c([0, 2, 1, 3]))
            if kind:
                past = parameter([-1, HEADS, -1, SIZE], np.float32, f"past_key_values.{layer}.{kind}")
                x = ops.concat([past, x], 2)
                x.output(0).set_names({f"present.{layer}.{kind}"})
                inputs.append(past)
                outputs.append(ops.result(x))
            heads.append(x)
        x = ops.transpose(ops.scaled_dot_product_attention(*heads, causal=False), c([0, 2, 1, 3]))
        x = ops.matmul(ops.reshape(x, c([0, 0, hidden]), True), weights(hidden, hidden), False, True)
        h = ops.add(h, x, name=f"layers.{layer}.out")
    logits = ops.matmul(h, words, False, True)
    logits.output(0).set_names({"logits"})
    ov.serialize(ov.Model([ops.result(logits), *outputs], inputs, "decoder"), HERE / "decoder.xml")


def steps(name, is_stateful):
    """The logits of four steps."""
    settings = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
    core = ov.Core()
    model = core.compile_model(core.read_model(HERE / f"{name}.xml"), "CPU", settings)
    request = model.create_infer_request()
    known = {name for port in model.inputs for name in port.names}
    request.reset_state() if is_stateful else None
    random, cache, found = np.random.default_rng(7), {}, []
    for step in range(4):
        beams = np.array([2, 0, 0] if step == 2 else [0, 1, 2], dtype=np.int32)
        feeds = {"input_ids": random.integers(0, WORDS, (3, 3 if step == 0 else 1))}
        if "beam_idx" in known:
            feeds["beam_idx"] = beams
        for past in (name for name in known if name.startswith("past")):
            value = cache.get(past, np.zeros((3, HEADS, 0, SIZE), np.float32))
            feeds[past] = value if "beam_idx" in known else value[beams]
        results = request.infer(feeds)
        found.append(np.array(results["logits"]))
        cache = {n.replace("present", "past_key_values"): np.array(v) for p, v in results.items() for n in p.names if "present" in n}
    return found


def record():
    answers, before = {}, steps("decoder", False)
    for form in ["stateful", "stateless"]:
        after = steps(f"decoder.{form}", form == "stateful")
        files = [HERE / f"decoder.{form}.{extension}" for extension in ["xml", "bin"]]
        answers[form] = {
            "crc32": [zlib.crc32(file.read_bytes()) for file in files],
            "largest_difference": float(max(np.abs(a - b).max() for a, b in zip(before, after))),
            "openvino": ov.__version__,
        }
    (HERE / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")
    print(answers)


make() if sys.argv[1] == "make" else record()
