"""Makes a model for each risk that `typelift check --for` reports. It measures that the risk is real and that `--keep`
removes it.

    python3 risks.py make FIXTURES        writes FIXTURES/CODE.xml and .bin
    python3 risks.py measure TYPELIFT FIXTURES

Needs the package openvino, 2026.4.1 here. OpenVINO's reference code (`Model.evaluate`) computes each model three times:
unchanged, with the narrower type, and with that type except in the layers that the finding names.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import openvino as ov
from openvino import opset13 as op


def named(node, name):
    node.set_friendly_name(name)
    return node


def inputs(**shapes):
    made = []
    for name, (kind, shape) in shapes.items():
        p = named(op.parameter(shape, kind), name)
        p.output(0).get_tensor().set_names({name})
        made.append(p)
    return made


def result(node, name):
    node.output(0).get_tensor().set_names({name})
    return named(op.result(node), name + "/result")


def constant(values, kind, name):
    return named(op.constant(np.array(values, kind)), name)


def epsilon_lost():
    (x,) = inputs(x=(np.float32, [4]))
    length = named(op.add(named(op.absolute(x), "size"), constant(1e-8, np.float32, "epsilon")), "length")
    return [x], [result(named(op.divide(x, length), "unit"), "y")], {"x": [0, 0.5, -2, 3]}


def exponent_overflow():
    (x,) = inputs(x=(np.float32, [1, 3]))
    e = named(op.exp(x), "exponents")
    s = named(op.reduce_sum(e, constant([1], np.int64, "axis"), True), "sum")
    return [x], [result(named(op.divide(e, s), "shares"), "y")], {"x": [[12, 11, 10]]}


def square_overflow():
    (x,) = inputs(x=(np.float32, [1, 3]))
    square = named(op.power(x, constant(2, np.float32, "two")), "square")
    mean = named(op.reduce_mean(square, constant([1], np.int64, "axis"), True), "mean")
    root = named(op.sqrt(named(op.add(mean, constant(0.01, np.float32, "epsilon")), "variance")), "deviation")
    return [x], [result(named(op.divide(x, root), "scaled"), "y")], {"x": [[300, -400, 500]]}


def mask_overflow():
    x, a, b = inputs(x=(np.float32, [1, 2]), visible=(bool, [1, 2]), known=(bool, [1, 2]))
    zero, low = constant(0, np.float32, "open"), constant(-1e9, np.float32, "closed")
    first = named(op.select(a, zero, low), "mask_of_visible")
    second = named(op.select(b, zero, low), "mask_of_known")
    both = named(op.add(named(op.add(x, first), "masked"), second), "masked_twice")
    feed = {"x": [[1, 2]], "visible": [[False, False]], "known": [[False, False]]}
    return [x, a, b], [result(named(op.softmax(both, 1), "weights"), "y")], feed


def index_rounded():
    (x,) = inputs(rows=(np.int64, [3]))
    scaled = named(op.multiply(named(op.convert(x, np.float32), "as_float"), constant(1, np.float32, "one")), "scaled")
    index = named(op.convert(scaled, np.int64), "index")
    table = constant(np.arange(4200), np.int32, "table")
    row = named(op.gather(table, index, constant(0, np.int64, "axis")), "row")
    return [x], [result(row, "y")], {"rows": [7, 2049, 4099]}


def count_rounded():
    ends = [constant(v, np.float32, n) for n, v in (("start", 0), ("stop", 4100), ("step", 1))]
    steps = named(op.range(*ends, output_type="f32"), "steps")
    half = named(op.floor(named(op.multiply(steps, constant(0.5, np.float32, "half")), "halves")), "pairs")
    odd = named(op.subtract(steps, named(op.multiply(half, constant(2, np.float32, "two")), "even")), "odd")
    return [], [result(odd, "y")], {}


def count_rounded_sum():
    (x,) = inputs(x=(np.float32, [4100]))
    position = named(op.cum_sum(x, constant(0, np.int64, "axis")), "position")
    half = named(op.floor(named(op.multiply(position, constant(0.5, np.float32, "half")), "halves")), "pairs")
    odd = named(op.subtract(position, named(op.multiply(half, constant(2, np.float32, "two")), "even")), "odd")
    return [x], [result(odd, "y")], {"x": np.ones(4100)}


def integer_overflow():
    (x,) = inputs(x=(np.float32, [2]))
    scale = named(op.convert(constant([100_000, 3], np.int32, "scale"), "f32"), "scale_as_f32")
    return [x], [result(named(op.multiply(x, scale), "scaled"), "y")], {"x": [0.25, 1]}


def beyond_i32():
    (x,) = inputs(x=(np.int64, [2]))
    later = named(op.add(x, constant([5_000_000_000, 1], np.int64, "offset")), "later")
    return [x], [result(later, "y")], {"x": [1, 2]}


CASES = {f.__name__.replace("_", "-"): f for f in (epsilon_lost, exponent_overflow, square_overflow, mask_overflow, integer_overflow, index_rounded, count_rounded, count_rounded_sum, beyond_i32)}

# OpenVINO's reference code has no CumSum of f16: it is computed in f32, and its result is f16.
NOT_COMPUTED = {"count-rounded-sum": "position"}


def code(case):
    """Returns the finding of a case."""
    return case.removesuffix("-sum")


def precision(case):
    return "i32" if case == "beyond-i32" else "f16"


def make(folder):
    for name, case in CASES.items():
        parameters, results, _ = case()
        xml = folder / f"{name}.xml"
        ov.save_model(ov.Model(results, parameters, name), xml, compress_to_fp16=False)
        head, _, rest = xml.read_text().partition("\n")
        option = "" if name == "beyond-i32" else " --for f16"
        comment = f"<!-- RUN: typelift check{option}\n     {case_sentence(name)} -->"
        xml.write_text(f"{head}\n{comment}\n{rest}")


def case_sentence(name):
    return {
        "epsilon-lost": "0 divided by 0 where 1e-8 was added in f32: testdata/oracle/precision/risks.py makes the model.",
        "exponent-overflow": "The exponent of 12 is infinite in f16, and infinity divided by itself is no number.",
        "square-overflow": "The square of 300 is infinite in f16.",
        "mask-overflow": "Two masks of -1e9 are -65504 in f16, and together minus infinity.",
        "integer-overflow": "100000 becomes 65504 in f16, or infinite.",
        "index-rounded": "Row 2049 is row 2048 in f16.",
        "count-rounded": "Of a range beyond 2048 f16 has every second number.",
        "count-rounded-sum": "Of positions beyond 2048 f16 has every second one.",
        "beyond-i32": "5e9 is not a number of i32.",
    }[name]


def evaluate(xml, feed):
    model = ov.Core().read_model(xml)
    given = []
    for p in model.inputs:
        value = np.asarray(feed[p.get_any_name()])
        tensor = ov.Tensor(p.get_element_type(), list(value.shape))
        tensor.data[...] = value.astype(tensor.data.dtype)
        given.append(tensor)
    made = [ov.Tensor(o.get_element_type(), []) for o in model.outputs]
    if not model.evaluate(made, given):
        raise RuntimeError(f"OpenVINO does not evaluate {xml}")
    return [np.array(t.data).astype(np.float64) for t in made]


def difference(one, two):
    """The largest difference of two lists of outputs; infinite where one of them is not a number."""
    worst = 0.0
    for a, b in zip(one, two):
        if a.size:
            d = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
            worst = max(worst, float(np.nan_to_num(d, nan=np.inf, posinf=np.inf).max()))
    return worst


def measure(program, folder):
    print("| finding | narrower | with `--keep` |\n|---|---|---|")
    for name, case in CASES.items():
        xml = folder / f"{name}.xml"
        feed, types = case()[2], "i64=i32" if precision(name) == "i32" else "f32=f16"
        found = subprocess.run([program, "check", "--for", precision(name), "--format", "json", xml], capture_output=True, text=True)
        texts = [h for d in json.loads(found.stdout)["diagnostics"] if d["code"] == code(name) for h in d["help"]]
        keep = [o for text in texts for k in re.findall(r"--keep (\S+?)(?=[ `])", text) for o in ("--keep", k)]
        with tempfile.TemporaryDirectory() as tmp:
            worst = []
            narrower = ["--keep", NOT_COMPUTED[name]] if name in NOT_COMPUTED else []
            for options in (narrower, keep):
                out = f"{tmp}/{len(options)}.xml"
                subprocess.run([program, "convert", xml, "--types", types, "--keep-io", *options, "-o", out], check=True, capture_output=True)
                worst.append(difference(evaluate(xml, feed), evaluate(out, feed)))
        print(f"| `{code(name)}`{' of a CumSum' * (name in NOT_COMPUTED)} | {worst[0]:.3g} | {worst[1]:.3g} |")
        assert worst[0] > 1e-2 > worst[1], name


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(pathlib.Path(sys.argv[2]))
    else:
        measure(sys.argv[2], pathlib.Path(sys.argv[3]))
