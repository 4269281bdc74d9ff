"""Fixtures of downgrades, and whether OpenVINO computes the same before and after. README.md says how to run it."""

import json
import re
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
import openvino as ov

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parents[1] / "fixtures" / "target"
sys.path.insert(0, str(HERE.parent / "releases"))

import take  # noqa: E402

F32, I64 = np.float32, np.int64


def p(*dims, ty="f32", value=None):
    """A Parameter; `-1` is an open dim. Without a value it gets random numbers."""
    return ty, dims, value


def c(value, ty=I64):
    """A Constant."""
    return np.array(value, dtype=ty)


NMS = [p(1, 4, 4), p(1, 1, 4), c(3), c(0.5, F32), c(0.1, F32), c(0.0, F32)]
POOL = {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "kernel": "2,2", "auto_pad": "explicit", "exclude-pad": "true"}
MAX_POOL = {"dilations": "1,1", "index_element_type": "i64", "axis": "0", **{name: POOL[name] for name in POOL if name != "exclude-pad"}}
ROI = {"pooled_h": "2", "pooled_w": "2", "sampling_ratio": "2", "spatial_scale": "1", "mode": "avg"}
RESIZE = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", "antialias": "false", "cube_coeff": "-0.75", "pads_begin": "0", "pads_end": "0"}
MULTICLASS = {"sort_result_type": "score", "sort_result_across_batch": "false", "output_type": "i64", "iou_threshold": "0.5", "score_threshold": "0.1"}
MULTICLASS |= {"nms_top_k": "3", "keep_top_k": "-1", "background_class": "-1", "nms_eta": "1", "normalized": "true"}
DETECTION = {"background_label_id": "0", "top_k": "4", "variance_encoded_in_target": "true", "keep_top_k": "4", "code_type": "caffe.PriorBoxParameter.CORNER", "share_location": "true"}
DETECTION |= {"nms_threshold": "0.5", "confidence_threshold": "0.1", "clip_after_nms": "false", "clip_before_nms": "false", "decrease_label_id": "false", "normalized": "true"}
DETECTION |= {"input_height": "1", "input_width": "1", "objectness_score": "0"}
PRIORS = {"min_size": "4", "max_size": "8", "aspect_ratio": "2", "flip": "true", "clip": "true", "step": "0", "offset": "0.5", "variance": "0.1", "scale_all_sizes": "true"}
DEFORMABLE = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit", "group": "1", "deformable_group": "1"}

# Rule, what the case protects, release, operation, attributes, inputs, and how many of the outputs are used of how many.
CASES = [
    ("softmax-8-to-1", "an axis that counts from the end", "2021.4", "SoftMax-8", {"axis": -1}, [p(2, 3)]),
    ("gather-8-to-7", "indices that are known not to be negative", "2021.4", "Gather-8", {"batch_dims": 0}, [p(4, 3), c([2, 0]), c(0)]),
    ("gather-8-to-7.negative", "indices that can count from the end", "2021.4", "Gather-8", {"batch_dims": 0}, [p(4, 3), c([-1, 0]), c(-2)]),
    ("gather-nd-8-to-5", "batch dims that stay apart", "2021.4", "GatherND-8", {"batch_dims": 2}, [p(2, 3, 4), c([[[0], [1], [2]], [[3], [2], [1]]])]),
    ("interpolate-11-to-4", "sizes", "2022.3", "Interpolate-11", RESIZE | {"shape_calculation_mode": "sizes"}, [p(1, 2, 4, 4), c([8, 8]), c([2, 3])]),
    ("interpolate-11-to-4.scales", "scales of all axes", "2022.3", "Interpolate-11", RESIZE | {"shape_calculation_mode": "scales"}, [p(1, 2, 4, 4), c([1, 1, 2, 2], F32)]),
    ("max-pool-14-to-8", "a rounding that version 8 has", "2023.3", "MaxPool-14", MAX_POOL | {"rounding_type": "floor"}, [p(1, 2, 5, 5)], 2),
    ("max-pool-ceil-torch", "PyTorch's rounding of fixed dims", "2024.0", "MaxPool-14", MAX_POOL | {"rounding_type": "ceil_torch"}, [p(1, 2, 5, 5)], 2),
    ("max-pool-ceil-torch.open", "PyTorch's rounding of open dims", "2024.0", "MaxPool-14", MAX_POOL | {"rounding_type": "ceil_torch"}, [p(1, 2, -1, -1)], 2),
    ("max-pool-8-to-1", "indices that nothing uses", "2021.4", "MaxPool-8", MAX_POOL | {"rounding_type": "floor"}, [p(1, 2, 4, 4)], 2, 1),
    ("avg-pool-16-to-14", "no dilations", "2024.6", "AvgPool-16", POOL | {"rounding_type": "floor", "dilations": "1,1"}, [p(1, 2, 4, 4)]),
    ("avg-pool-dilated", "dilations, and padding that does not count", "2024.6", "AvgPool-16", POOL | {"rounding_type": "floor", "dilations": "2,1", "pads_begin": "1,1"}, [p(2, 2, 6, -1)]),
    ("avg-pool-14-to-1", "a rounding that version 1 has", "2023.3", "AvgPool-14", POOL | {"rounding_type": "ceil"}, [p(1, 2, 5, 5)]),
    ("avg-pool-ceil-torch", "PyTorch's rounding of fixed dims", "2024.0", "AvgPool-14", POOL | {"rounding_type": "ceil_torch"}, [p(1, 2, 5, 5)]),
    ("pad-12-to-1", "pads that do not cut", "2022.3", "Pad-12", {"pad_mode": "constant"}, [p(2, 3), c([1, 0]), c([0, 2]), c(0.5, F32)]),
    ("pad-of-known-length", "pads of which nobody knows how many there are", "2024.0", "Pad-1", {"pad_mode": "edge"}, [p(2, 3), p(-1, ty="i64", value=[1, 0]), c([0, 2])]),
    ("pad-12-to-1.cuts", "pads that cut", "2022.3", "Pad-12", {"pad_mode": "constant"}, [p(2, 3), c([1, -1]), c([-1, 2])]),
    ("top-k-11-to-3", "an order of equal elements that nobody asked for", "2022.3", "TopK-11", {"axis": 1, "mode": "max", "sort": "value", "index_element_type": "i32", "stable": "false"}, [p(2, 5), c(3)], 2),
    ("top-1-of-stable-top-k", "the first of the largest elements", "2022.3", "TopK-11", {"axis": 0, "mode": "max", "sort": "value", "index_element_type": "i64", "stable": "true"}, [p(4, 3), c(1)], 2),
    ("stable-top-k", "ties among the largest elements", "2022.3", "TopK-11", {"axis": 1, "mode": "max", "sort": "value", "index_element_type": "i64", "stable": "true"}, [c([[2, 5, 2, 5, 1, 2]], F32), c(4)], 2),
    ("stable-top-k.index", "ties, in the order of the elements", "2022.3", "TopK-11", {"axis": 1, "mode": "min", "sort": "index", "index_element_type": "i32", "stable": "true"}, [p(2, -1, ty="i32", value=[[2, 5, 2, 5, 1, 2], [7, 7, 7, 7, 7, 7]]), p(ty="i32", value=3)], 2),
    ("top-k-of-signed", "a number of elements that 2022.3 does not take", "2022.3", "TopK-3", {"axis": 1, "mode": "max", "sort": "value", "index_element_type": "i32"}, [p(2, 5), c(3, np.uint8)], 2),
    ("non-max-suppression-9-to-5", "the same inputs and attributes", "2021.4", "NonMaxSuppression-9", {"box_encoding": "corner", "sort_result_descending": "true", "output_type": "i64"}, NMS[:5], 3),
    ("multiclass-nms-9-to-8", "two inputs", "2022.1", "MulticlassNms-9", MULTICLASS, [p(1, 4, 4), p(1, 1, 4)], 3),
    ("scatter-nd-update-15-to-4", "no reduction", "2023.3", "ScatterNDUpdate-15", {"reduction": "none"}, [p(4, 2), c([[1], [3]]), p(2, 2)]),
    ("scatter-nd-update-reduction", "updates of one element added up", "2023.3", "ScatterNDUpdate-15", {"reduction": "sum"}, [p(4, 2), c([[1], [3], [1]]), p(3, 2)]),
    ("scatter-nd-update-reduction.open", "open dims, indices that count through two of three", "2023.3", "ScatterNDUpdate-15", {"reduction": "max"}, [p(-1, 3, -1), c([[1, 2], [0, 0], [-3, -1]]), p(3, -1)]),
    ("scatter-elements-update-reduction", "a mean with the element itself", "2022.3", "ScatterElementsUpdate-12", {"reduction": "mean", "use_init_val": "true"}, [p(3, 2), c([[0, 2], [0, 1]]), p(2, 2), c(0)]),
    ("scatter-elements-update-reduction.part", "the least update, of a part of the other dims", "2022.3", "ScatterElementsUpdate-12", {"reduction": "min", "use_init_val": "false"}, [p(3, -1), c([[0], [-1]]), p(2, 1), c(0)]),
    ("scatter-elements-update-12-to-3", "no reduction", "2022.3", "ScatterElementsUpdate-12", {"reduction": "none", "use_init_val": "true"}, [p(3, 2), c([[0, 2]]), p(1, 2), c(0)]),
    ("roi-align-9-to-3", "the alignment of version 3", "2021.4", "ROIAlign-9", ROI | {"aligned_mode": "asymmetric"}, [p(1, 2, 6, 6), c([[1, 1, 4, 4]], F32), c([0])]),
    ("prior-box-8-to-1", "the order of version 1", "2021.4", "PriorBox-8", PRIORS | {"min_max_aspect_ratios_order": "true"}, [c([2, 2]), c([16, 16])]),
    ("detection-output-8-to-1", "the number of classes, which version 1 wants", "2021.4", "DetectionOutput-8", DETECTION, [p(1, 8), p(1, 6), c([[[0, 0, 0.5, 0.5, 0.2, 0.2, 0.9, 0.9]]], F32)]),
    ("deformable-convolution-8-to-1", "no mask", "2021.4", "DeformableConvolution-8", DEFORMABLE | {"bilinear_interpolation_pad": "false"}, [p(1, 2, 4, 4), p(1, 18, 2, 2), c(np.ones((3, 2, 3, 3)), F32)]),
    ("one-hot-16-to-1", "negative indices that count from the end", "2024.6", "OneHot-16", {"axis": -1, "negative_indices_mode": "normalize"}, [c([0, -1, 2]), c(3), c(1.0, F32), c(0.0, F32)]),
    ("squeeze-15-to-1", "axes that must have one element", "2024.0", "Squeeze-15", {"allow_axis_skip": "false"}, [p(1, 3, 1), c([0, 2])]),
    ("squeeze-15-to-1.skips", "an axis that stays", "2024.0", "Squeeze-15", {"allow_axis_skip": "true"}, [p(1, 3, 1), c([0, 1])]),
    ("squeeze-of-ones", "an axis that cannot have one element", "2024.0", "Squeeze-1", {}, [p(1, 3, 1), c([0, 1])]),
    ("unsqueeze-by-list", "an axis that is not a list", "2021.4", "Unsqueeze-1", {}, [p(2, 3), c(0)]),
    ("adaptive-avg-pool", "windows of one size", "2021.4", "AdaptiveAvgPool-8", {}, [p(1, 2, 6, 4), c([3, 2])]),
    ("adaptive-max-pool", "one window", "2021.4", "AdaptiveMaxPool-8", {"index_element_type": "i64"}, [p(1, 2, 6, 4), c([1, 1])], 2, 1),
    ("bitwise-and-of-booleans", "booleans", "2023.0", "BitwiseAnd-13", {}, [p(2, ty="boolean"), p(2, ty="boolean")]),
    ("bitwise-or-of-booleans", "booleans", "2023.0", "BitwiseOr-13", {}, [p(2, ty="boolean"), p(2, ty="boolean")]),
    ("bitwise-xor-of-booleans", "booleans", "2023.0", "BitwiseXor-13", {}, [p(2, ty="boolean"), p(2, ty="boolean")]),
    ("bitwise-not-of-booleans", "booleans", "2023.0", "BitwiseNot-13", {}, [p(2, ty="boolean")]),
    ("bitwise-not", "signed integers", "2023.0", "BitwiseNot-13", {}, [p(4, ty="i32")]),
    ("bitwise-and", "the bits of signed numbers", "2023.0", "BitwiseAnd-13", {}, [p(2, 3, ty="i32"), c([-7, 2**31 - 1, 12], np.int32)]),
    ("bitwise-or", "the bits of small unsigned numbers", "2023.0", "BitwiseOr-13", {}, [p(4, ty="u8"), c(0x85, np.uint8)]),
    ("bitwise-xor", "the bits of long numbers", "2023.0", "BitwiseXor-13", {}, [p(4, ty="i64"), p(4, ty="i64")]),
    ("bitwise-left-shift", "a shift as a product", "2024.0", "BitwiseLeftShift-15", {}, [p(4, ty="i32"), c(3, np.int32)]),
    ("bitwise-right-shift", "a shift as a quotient", "2024.0", "BitwiseRightShift-15", {}, [p(4, ty="i32"), c(2, np.int32)]),
    ("bitwise-right-shift.small", "a shift of numbers that a plugin rounds", "2024.0", "BitwiseRightShift-15", {}, [c([[1, 2, 3, 255]], np.uint8), c(1, np.uint8)]),
    ("embedding-bag-offsets-15-to-sum", "sums", "2024.0", "EmbeddingBagOffsets-15", {"reduction": "sum"}, [p(5, 2), c([0, 2, 3, 4]), c([0, 2])]),
    ("embedding-bag-offsets-mean", "means, and zeros for a bag without elements", "2024.0", "EmbeddingBagOffsets-15", {"reduction": "mean"}, [p(5, 2), c([0, 2, 3, 4]), c([0, 2, 2])]),
    ("embedding-bag-offsets-mean.default", "an element for a bag without any", "2024.0", "EmbeddingBagOffsets-15", {"reduction": "mean"}, [p(5, 2), c([0, 2, 3, 4]), c([0, 2, 2]), c(1)]),
    ("embedding-bag-packed-mean", "means", "2024.0", "EmbeddingBagPacked-15", {"reduction": "mean"}, [p(5, 2), c([[0, 2], [1, 4]])]),
    ("embedding-bag-packed-15-to-sum", "sums", "2024.0", "EmbeddingBagPacked-15", {"reduction": "sum"}, [p(5, 2), c([[0, 2], [1, 4]])]),
    ("eye", "a diagonal below the main one", "2021.4", "Eye-9", {"output_type": "f32"}, [c(3), c(4), c(-1)]),
    ("group-normalization", "open spatial dims", "2022.3", "GroupNormalization-12", {"num_groups": 2, "epsilon": 1e-5}, [p(1, 4, -1, 3), c([1, 2, 3, 4], F32), c([0, 1, 0, 1], F32)]),
    ("identity", "a tensor that only gets a name", "2024.6", "Identity-16", {}, [p(2, 3)]),
    ("is-finite", "ordinary numbers", "2021.4", "IsFinite-10", {}, [p(4)]),
    ("is-inf", "both infinities", "2021.4", "IsInf-10", {"detect_negative": "true", "detect_positive": "true"}, [p(4)]),
    ("is-inf.negative", "one infinity", "2021.4", "IsInf-10", {"detect_negative": "true", "detect_positive": "false"}, [p(4)]),
    ("is-nan", "numbers that are none", "2021.4", "IsNaN-10", {}, [p(4)]),
    ("scaled-dot-product-attention", "a causal mask", "2022.3", "ScaledDotProductAttention-13", {"causal": "true"}, [p(1, 2, 3, 4), p(1, 2, 5, 4), p(1, 2, 5, 4)]),
    ("scaled-dot-product-attention.mask", "a mask of booleans", "2021.4", "ScaledDotProductAttention-13", {"causal": "false"}, [p(1, 2, 3, 4), p(1, 2, 5, 4), p(1, 2, 5, 4), c([[True, False, True, True, False]] * 3, bool)]),
    ("scaled-dot-product-attention.scale", "a mask of numbers and a scale", "2022.3", "ScaledDotProductAttention-13", {"causal": "false"}, [p(1, 2, -1, 4), p(1, 2, -1, 4), p(1, 2, -1, 4), p(1, 1, -1, -1), c(0.25, F32)]),
    ("search-sorted", "places among sorted numbers", "2024.0", "SearchSorted-15", {"right_mode": "true", "output_type": "i64"}, [c([[-0.5, 0.0, 0.5, 0.75]], F32), p(1, 6)]),
    ("slice-8-to-strided-slice", "some axes, the last of them backwards", "2021.4", "Slice-8", {}, [p(3, 4, 5), c([1, -1]), c([3, -100]), c([1, -2]), c([0, -1])]),
    ("slice-scatter", "a strided part", "2024.0", "SliceScatter-15", {}, [p(3, 4), p(3, 2), c([1]), c([100]), c([2]), c([1])]),
    ("soft-sign", "a quotient", "2021.4", "SoftSign-9", {}, [p(4)]),
]


def make() -> None:
    """Writes the fixtures."""
    for name, what, target, *case in CASES:
        model = model_of(*case)
        path = FIXTURES / f"{name.replace('.', '-')}.xml"
        ov.serialize(model, path)
        header = f"<!-- RUN: typelift convert --target {target}\n     {what[0].upper()}{what[1:]}. Made by testdata/oracle/targets/targets.py. -->\n"
        text = re.sub(r"\n\t<rt_info ?/>", "", path.read_text())
        path.write_text(text.replace('<?xml version="1.0"?>\n', '<?xml version="1.0"?>\n' + header))
        if path.with_suffix(".bin").exists() and path.with_suffix(".bin").stat().st_size == 0:
            path.with_suffix(".bin").unlink()


def model_of(operation: str, attributes: dict, inputs: list, outputs: int = 1, used: int = 0) -> ov.Model:
    """A model of one layer `op`, by way of a file, which names the operation set."""
    kind, opset = operation.split("-")
    layers, edges, weights = [], [], b""
    for at, given in enumerate(inputs):
        if isinstance(given, tuple):
            ty, dims, _ = given
            shape = ",".join("?" if dim < 0 else str(dim) for dim in dims)
            data, layer, name = f'shape="{shape}" element_type="{ty}"', "Parameter", "xyzwuv"[at]
        else:
            ty = ov.Type(given.dtype).get_type_name()
            shape = ", ".join(map(str, given.shape))
            data = f'element_type="{ty}" shape="{shape}" offset="{len(weights)}" size="{given.nbytes}"'
            layer, name, weights = "Const", f"c{at}", weights + given.tobytes()
        layers.append(f'<layer id="{at}" name="{name}" type="{layer}" version="opset1"><data {data}/><output><port id="0" precision="UNSPECIFIED"/></output></layer>')
        edges.append(f'<edge from-layer="{at}" from-port="0" to-layer="{len(inputs)}" to-port="{at}"/>')
    count = len(inputs)
    data = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    ins = "".join(f'<port id="{at}"/>' for at in range(count))
    outs = "".join(f'<port id="{count + at}" precision="UNSPECIFIED" names="y{at}"/>' for at in range(outputs))
    layers.append(f'<layer id="{count}" name="op" type="{kind}" version="opset{opset}"><data {data}/><input>{ins}</input><output>{outs}</output></layer>')
    for at in range(used or outputs):
        layers.append(f'<layer id="{count + 1 + at}" name="r{at}" type="Result" version="opset1"><input><port id="0"/></input></layer>')
        edges.append(f'<edge from-layer="{count}" from-port="{count + at}" to-layer="{count + 1 + at}" to-port="0"/>')
    xml = f'<?xml version="1.0"?><net name="{kind}" version="11"><layers>{"".join(layers)}</layers><edges>{"".join(edges)}</edges></net>'
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.xml"
        path.write_text(xml)
        path.with_suffix(".bin").write_bytes(weights)
        return ov.Core().read_model(path)


def record(typelift: str, packages: Path) -> None:
    """Converts every fixture, and asks OpenVINO about what comes out."""
    answers = {}
    for path in sorted(FIXTURES.glob("*.xml")):
        target = re.search(r"--target (\S+)", path.read_text())[1]
        release = next(release for release in [*take.OLD, *take.NEW] if release.startswith(target + "."))
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / path.name
            subprocess.run([typelift, "convert", "--target", target, str(path), "-o", str(out)], check=True, capture_output=True)
            message = take.reads(packages, release, [out], as_is=True)[out]
            sum = f"{zlib.crc32(out.read_bytes()):08x}"
            try:
                largest = difference(path, out)
            except RuntimeError as error:
                print(path.stem, " ".join(str(error).split())[-200:])
                continue
            answers[path.stem] = {"target": target, "read": message or True, "crc32": sum, "largest_difference": largest}
            if message or answers[path.stem]["largest_difference"] > 1e-5:
                print(path.stem, answers[path.stem])
    (HERE / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")


def difference(path: Path, other: Path) -> float:
    core, random = ov.Core(), np.random.default_rng(0)
    models = [core.read_model(path), core.read_model(other)]
    case = next(case for case in CASES if case[0].replace(".", "-") == path.stem)
    values = [given[2] for given in case[5] if isinstance(given, tuple)]
    given = []
    for port, value in zip(models[0].inputs, values, strict=True):
        if value is not None:
            given.append(np.array(value))
            continue
        shape = [4 if dim.is_dynamic else dim.get_length() for dim in port.partial_shape]
        if port.element_type == ov.Type.f32:
            value = random.uniform(-1, 1, shape).astype(np.float32)
            if models[0].friendly_name.startswith("Is"):
                value[:3] = [np.inf, -np.inf, np.nan]
        else:
            value = random.integers(0, 2 if port.element_type == ov.Type.boolean else 100, shape) - (0 if port.element_type == ov.Type.boolean else 50)
        given.append(value)
    results = []
    for model in models:
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        inputs = [value.astype(port.element_type.to_dtype()) for port, value in zip(compiled.inputs, given)]
        results.append([np.array(value) for value in compiled(inputs).values()])
    pairs = list(zip(*results, strict=True))
    assert all(before.shape == after.shape for before, after in pairs), path
    largest = [np.abs(before.astype(np.float64) - after.astype(np.float64)).max(initial=0) for before, after in pairs]
    return float(f"{max(largest):.2g}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make"]:
            make()
        case ["record", typelift, packages]:
            record(typelift, Path(packages))
        case _:
            sys.exit(__doc__)
