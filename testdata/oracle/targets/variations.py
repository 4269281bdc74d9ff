"""Models of one operation each, at random, with inputs that it takes: `variations.py DIR [COUNT [SEED]]` writes COUNT for each
operation that `convert --target` rewrites. `../releases/targets.py` has them converted, read, and compared.
"""

import sys
from pathlib import Path

import numpy as np
import openvino as ov

import targets

F32, I32, I64 = np.float32, np.int32, np.int64
TYPES = {np.dtype(ty): name for name, ty in {"f32": F32, "f16": np.float16, "i32": I32, "i64": I64, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "boolean": bool}.items()}


class Case:
    """An operation with attributes; inputs are constants or Parameters with a value, some of whose dims are open."""

    def __init__(self, random: np.random.Generator):
        self.random = random
        self.inputs, self.values = [], []

    def any(self, *values):
        return values[self.random.integers(len(values))]

    def flag(self) -> bool:
        return bool(self.random.integers(2))

    def text(self, numbers) -> str:
        return ",".join(map(str, numbers))

    def dims(self, least=1, most=4, up_to=6) -> list[int]:
        return [int(size) for size in self.random.integers(1, up_to + 1, self.random.integers(least, most + 1))]

    def numbers(self, dims, ty=F32, ties=False) -> np.ndarray:
        if np.dtype(ty) == bool:
            return self.random.integers(0, 2, dims).astype(bool)
        if np.dtype(ty).kind == "f":
            return (self.random.integers(-3, 4, dims) / 2 if ties else self.random.uniform(-2, 2, dims)).astype(ty)
        limits = np.iinfo(ty)
        # The CPU plugin computes i64 as i32.
        low, high = (max(limits.min, -(2**31)), min(limits.max, 2**31 - 1)) if self.flag() and not ties else (max(limits.min, -3), 4)
        return self.random.integers(low, high, dims, dtype=I64, endpoint=True).astype(ty)

    def tensor(self, value: np.ndarray, shape: str = "") -> None:
        """A Parameter with this value: its shape fixed, or some of its dims open."""
        shape = shape or self.any("fixed", "fixed", "open", "some")
        dims = [-1 if shape == "open" or shape == "some" and self.flag() else size for size in value.shape]
        self.inputs.append(targets.p(*dims, ty=TYPES[value.dtype]))
        self.values.append(value)

    def constant(self, value, ty=I64) -> None:
        self.inputs.append(np.array(value, dtype=ty))

    def given(self, value, ty=I64) -> None:
        """A constant, or a Parameter."""
        value = np.array(value, dtype=ty)
        self.constant(value, ty) if self.random.integers(4) else self.tensor(value)

    def axis(self, rank: int) -> int:
        return int(self.random.integers(-rank, rank))


def softmax(case):
    dims = case.dims()
    case.tensor(case.numbers(dims, case.any(F32, np.float16)))
    return "SoftMax-8", {"axis": case.axis(len(dims))}


def gather(case):
    dims, picks = case.dims(), case.dims(0, 2)
    axis = case.axis(len(dims))
    ty, size = case.any(I32, I64), dims[axis]
    case.tensor(case.numbers(dims))
    case.given(case.random.integers(-size, size, picks), ty)
    case.constant(axis)
    return "Gather-8", {"batch_dims": 0}


def gather_nd(case):
    dims = case.dims(2, 4)
    batch = int(case.random.integers(0, len(dims)))
    depth = int(case.random.integers(1, len(dims) - batch + 1))
    shape = dims[:batch] + case.dims(0, 2, 3) + [depth]
    case.tensor(case.numbers(dims))
    case.tensor(np.stack([case.random.integers(0, dims[batch + at], shape[:-1]) for at in range(depth)], -1).astype(case.any(I32, I64)), case.any("fixed", "fixed", "some"))
    return "GatherND-8", {"batch_dims": batch}


def interpolate(case):
    rank = int(case.random.integers(3, 5))
    dims = [int(size) for size in case.random.integers(2, 6, rank)]
    axes = sorted(case.random.permutation(np.arange(2, rank))[: case.random.integers(1, rank - 1)].tolist())
    how, mode = case.any("sizes", "scales"), case.any("nearest", "linear", "linear_onnx", "cubic")
    if mode == "linear_onnx":
        axes = list(range(2, rank))
    case.tensor(case.numbers(dims))
    if how == "sizes":
        case.given(case.random.integers(2, 9, len(axes)), case.any(I32, I64))
    else:
        case.given(case.random.choice([0.5, 1, 1.5, 2], len(axes)), F32)
    if len(axes) < rank or case.flag():
        case.constant(axes, case.any(I32, I64))
    attributes = targets.RESIZE | {"mode": mode, "shape_calculation_mode": how, "nearest_mode": case.any("round_prefer_floor", "floor", "ceil", "simple")}
    attributes["coordinate_transformation_mode"] = case.any("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_half_pixel_for_nn")
    if len(axes) < rank and len(case.inputs) == 2:
        case.constant(axes)
    return "Interpolate-11", attributes


def pooling(case, version, attributes, outputs, used):
    spatial = int(case.random.integers(1, 4))
    dims = [2, 3] + [int(size) for size in case.random.integers(5, 9, spatial)]
    kernel = case.random.integers(2, 4, spatial)
    pads = [[int(case.random.integers(0, 2)) for _ in kernel] for _ in range(2)]
    attributes |= {"kernel": case.text(kernel), "strides": case.text(case.random.integers(1, 4, spatial)), "pads_begin": case.text(pads[0]), "pads_end": case.text(pads[1])}
    attributes["auto_pad"] = case.any("explicit", "explicit", "valid", "same_upper", "same_lower")
    if "dilations" in attributes:
        attributes["dilations"] = case.text(case.random.integers(1, 3, spatial) if case.flag() else [1] * spatial)
    case.tensor(case.numbers(dims))
    return version, attributes, outputs, used


def avg_pool(case):
    version = case.any("AvgPool-14", "AvgPool-16")
    more = {"dilations": ""} if version == "AvgPool-16" else {}
    rounding = case.any("floor", "ceil", "ceil_torch")
    return pooling(case, version, {"exclude-pad": case.any("true", "false"), "rounding_type": rounding} | more, 1, 0)


def max_pool(case):
    version, used = case.any(("MaxPool-8", 1), ("MaxPool-14", 2))
    rounding = case.any("floor", "ceil", *(["ceil_torch"] if version == "MaxPool-14" else []))
    return pooling(case, version, {"dilations": "", "index_element_type": case.any("i32", "i64"), "axis": "0", "rounding_type": rounding}, 2, used)


def pad(case):
    dims = [int(size) for size in case.random.integers(3, 6, case.random.integers(1, 4))]
    mode = case.any("constant", "constant", "edge", "reflect", "symmetric")
    low = -1 if case.flag() else 0
    case.tensor(case.numbers(dims, case.any(F32, I32)))
    ty, dtype = case.any(I32, I64), case.values[0].dtype
    for _ in range(2):
        case.given(case.random.integers(low, 3, len(dims)), ty)
    if mode == "constant" and case.flag():
        case.constant(1, dtype)
    return "Pad-12", {"pad_mode": mode}


def top_k(case):
    dims = case.dims(1, 3, 8)
    axis = case.axis(len(dims))
    case.tensor(case.numbers(dims, case.any(F32, I32, np.float16), ties=True))
    case.given(case.random.integers(1, dims[axis] + 1), case.any(I32, I64, np.int8, np.uint8))
    mode, sort = case.any("max", "min"), case.any("value", "index")
    return "TopK-11", {"axis": axis, "mode": mode, "sort": sort, "index_element_type": case.any("i32", "i64"), "stable": "true"}, 2


def scatter_elements(case):
    dims = case.dims(1, 3)
    axis = case.axis(len(dims))
    picks = [int(size if case.flag() else case.random.integers(1, size + 1)) for size in dims]
    picks[axis] = int(case.random.integers(1, 5))
    ty, how = case.any(F32, I32), case.any("none", "sum", "prod", "min", "max", "mean")
    if how == "none":
        picks[axis] = min(picks[axis], dims[axis])
        places = np.stack([case.random.permutation(dims[axis])[: picks[axis]] for _ in range(int(np.prod(picks)) // picks[axis])], -1)
        places = np.moveaxis(places.reshape([picks[axis], *np.delete(picks, axis)]), 0, axis)
    else:
        places = case.random.integers(0, dims[axis], picks)
    places = np.where(case.random.integers(0, 2, places.shape) * case.flag(), places - dims[axis], places)
    case.tensor(case.numbers(dims, ty, ties=True))
    case.given(places, case.any(I32, I64))
    case.tensor(case.numbers(picks, ty, ties=True))
    case.constant(axis)
    return "ScatterElementsUpdate-12", {"reduction": how, "use_init_val": case.any("true", "false")}


def scatter_nd(case):
    dims = case.dims(1, 4, 4)
    depth = int(case.random.integers(1, len(dims) + 1))
    picks = case.dims(0, 2, 3)
    how = case.any("none", "sum", "sub", "prod", "min", "max")
    if how == "none":
        count = int(np.prod(dims[:depth]))
        picks = [int(case.random.integers(1, count + 1))]
        places = np.stack(np.unravel_index(case.random.permutation(count)[: picks[0]], dims[:depth]), -1)
    else:
        places = np.stack([case.random.integers(0, dims[at], picks) for at in range(depth)], -1)
    ty = case.any(F32, I32)
    case.tensor(case.numbers(dims, ty, ties=True))
    case.given(places, case.any(I32, I64)) if case.flag() else case.tensor(places.astype(I64), "fixed")
    case.tensor(case.numbers(picks + dims[depth:], ty, ties=True))
    return "ScatterNDUpdate-15", {"reduction": how}


def bitwise(case):
    name = case.any("And", "Or", "Xor", "Not")
    ty = case.any(bool, np.int8, np.uint8, np.int16, np.uint16, I32, I64)
    dims = case.dims(1, 3)
    case.tensor(case.numbers(dims, ty))
    if name == "Not":
        return "BitwiseNot-13", {}
    other = [size if case.flag() else 1 for size in dims][case.random.integers(0, 2) * (len(dims) - 1) :]
    case.given(case.numbers(other, ty), ty)
    return f"Bitwise{name}-13", {"auto_broadcast": "numpy"}


def shift(case):
    dims = case.dims(1, 3)
    name, ty = case.any("Left", "Right"), case.any(I32, I64, np.int8, np.uint8, np.int16)
    # Bits shifted out on the left differ between the CPU plugin and other devices.
    limit = 3 if name == "Left" else 100
    case.tensor(case.random.integers(0 if ty == np.uint8 else -limit, limit, dims).astype(ty))
    case.given(case.random.integers(0, 5, dims if case.flag() else []), ty)
    return f"Bitwise{name}Shift-15", {}


def one_hot(case):
    dims, depth = case.dims(0, 3), int(case.random.integers(1, 5))
    mode = case.any("normalize", "ignore_negative")
    case.given(case.random.integers(-depth, depth, dims), case.any(I32, I64))
    case.constant(depth)
    case.constant(2, F32)
    case.constant(-1, F32)
    return "OneHot-16", {"axis": case.axis(len(dims) + 1), "negative_indices_mode": mode}


def squeeze(case):
    dims = [1 if case.flag() else size for size in case.dims(1, 4)]
    axes = [at for at, size in enumerate(dims) if size == 1]
    skip = case.flag()
    chosen = [at for at in (range(len(dims)) if skip else axes) if case.flag()]
    case.tensor(case.numbers(dims), case.any("fixed", "fixed", "some") if skip else "")
    if chosen:
        case.given([at - len(dims) if case.flag() else at for at in chosen])
    return "Squeeze-15", {"allow_axis_skip": str(skip and bool(chosen)).lower()} if chosen or all(size == 1 for size in dims) or not skip else {}


def adaptive_pool(case):
    name = case.any("Avg", "Max")
    spatial = int(case.random.integers(1, 4))
    sizes = case.random.integers(1, 4, spatial)
    windows = case.random.integers(1, 3, spatial) if case.flag() else case.random.integers(1, 4, spatial)
    if not case.random.integers(3):
        sizes[:] = 1
    case.tensor(case.numbers([2, 3, *(sizes * windows).tolist()]))
    case.constant(sizes)
    return f"Adaptive{name}Pool-8", {} if name == "Avg" else {"index_element_type": "i64"}, 1 if name == "Avg" else 2, 1


def embedding_bag(case):
    rows, how = int(case.random.integers(2, 6)), case.any("sum", "mean")
    case.tensor(case.numbers([rows, *case.dims(1, 2)]))
    ty = case.any(I32, I64)
    if case.flag():
        dims = case.dims(2, 2)
        case.given(case.random.integers(0, rows, dims), ty)
        if how == "sum" and case.flag():
            case.given(case.numbers(dims), F32)
        return "EmbeddingBagPacked-15", {"reduction": how}
    count = int(case.random.integers(1, 7))
    case.given(case.random.integers(0, rows, count), ty)
    case.given(np.sort(case.random.integers(0, count, case.random.integers(1, 5))) * np.array([0] + [1] * 9)[: 1] if case.random.integers(5) == 0 else sorted([0, *case.random.integers(0, count, case.random.integers(0, 4)).tolist()]), ty)
    if case.flag():
        case.constant(int(case.random.integers(0, rows)), ty)
        if how == "sum" and case.flag():
            case.given(case.numbers([count]), F32)
    return "EmbeddingBagOffsets-15", {"reduction": how}


def eye(case):
    for low in (1, 1, -2):
        case.given(case.random.integers(low, 5))
    return "Eye-9", {"output_type": case.any("f32", "i32", "i64")}


def group_normalization(case):
    groups = int(case.random.integers(1, 4))
    channels = groups * int(case.random.integers(1, 4))
    case.tensor(case.numbers([2, channels, *case.dims(1, 3)]))
    case.given(case.numbers([channels]), F32)
    case.given(case.numbers([channels]), F32)
    return "GroupNormalization-12", {"num_groups": groups, "epsilon": 1e-3}


def identity(case):
    case.tensor(case.numbers(case.dims(0, 4), case.any(F32, I32, bool)))
    return "Identity-16", {}


def odd_numbers(case):
    value = case.numbers([8])
    value[:3] = [np.inf, -np.inf, np.nan]
    case.tensor(value)
    name = case.any("IsFinite", "IsInf", "IsNaN")
    return f"{name}-10", {"detect_negative": case.any("true", "false"), "detect_positive": case.any("true", "false")} if name == "IsInf" else {}


def attention(case):
    batch, (queries, keys, width, out) = case.dims(1, 2, 3), case.random.integers(1, 6, 4).tolist()
    ty, causal = case.any(F32, F32, np.float16), case.flag()
    for dims in ([queries, width], [keys, width], [keys, out]):
        case.tensor(case.numbers(batch + dims, ty))
    if not causal and case.flag():
        mask = case.numbers([*case.any([], [1] * len(batch), batch), queries, keys], case.any(bool, ty))
        if mask.dtype == bool:
            mask[..., 0] = True
        case.tensor(mask)
        if case.flag():
            case.given(0.5, ty)
    return "ScaledDotProductAttention-13", {"causal": str(causal).lower()}


def search_sorted(case):
    batch, count = case.dims(0, 2, 3), int(case.random.integers(1, 8))
    ty = case.any(F32, I32)
    case.tensor(np.sort(case.numbers([*batch, count], ty, ties=True), -1))
    case.tensor(case.numbers([*batch, int(case.random.integers(1, 5))], ty, ties=True))
    return "SearchSorted-15", {"right_mode": case.any("true", "false"), "output_type": case.any("i32", "i64")}


def slices(case, dims):
    axes = sorted(case.random.permutation(len(dims))[: case.random.integers(1, len(dims) + 1)].tolist())
    parts = []
    for axis in axes:
        size, step = dims[axis], int(case.any(1, 1, 2, -1, -2))
        begin = int(case.random.integers(-size, size))
        end = int(case.any(2**31 - 1, size, begin % size + 1) if step > 0 else case.any(-(2**31), -size - 1))
        parts.append((begin, end, step))
    return axes, np.array(parts).T


def slice(case):
    dims = case.dims(1, 4)
    axes, parts = slices(case, dims)
    case.tensor(case.numbers(dims))
    ty = case.any(I32, I64)
    for part in parts:
        case.given(part, ty)
    if axes != list(range(len(axes))) or case.flag():
        case.constant([at - len(dims) if case.flag() else at for at in axes], ty)
    return "Slice-8", {}


def slice_scatter(case):
    dims = case.dims(1, 4)
    axes, parts = slices(case, dims)
    case.tensor(case.numbers(dims))
    index = [np.s_[:]] * len(dims)
    for axis, (begin, end, step) in zip(axes, parts.T.tolist()):
        index[axis] = np.s_[begin : None if end < -dims[axis] else end : step]
    case.tensor(case.numbers(np.empty(dims)[tuple(index)].shape))
    for part in parts:
        case.given(part)
    case.constant(axes)
    return "SliceScatter-15", {}


def soft_sign(case):
    case.tensor(case.numbers(case.dims(), case.any(F32, np.float16)))
    return "SoftSign-9", {}


def nms(case):
    boxes = np.sort(case.random.uniform(0, 1, [1, 6, 2, 2]), 2).reshape(1, 6, 4).astype(F32)
    case.tensor(boxes)
    case.tensor(case.random.uniform(0, 1, [1, 2, 6]).astype(F32))
    for value, ty in ((3, I64), (0.5, F32), (0.1, F32), (0.0, F32))[: case.random.integers(1, 5)]:
        case.constant(value, ty)
    return "NonMaxSuppression-9", {"box_encoding": "corner", "sort_result_descending": case.any("true", "false"), "output_type": case.any("i32", "i64")}, 3


def roi_align(case):
    case.tensor(case.numbers([2, 3, 8, 8]))
    corners = np.sort(case.random.uniform(0, 8, [3, 2, 2]), 1).reshape(3, 4)
    case.tensor(corners.astype(F32))
    case.given(case.random.integers(0, 2, 3), case.any(I32, I64))
    return "ROIAlign-9", targets.ROI | {"mode": case.any("avg", "max"), "aligned_mode": case.any("asymmetric", "half_pixel", "half_pixel_for_nn"), "sampling_ratio": case.any("0", "2")}


OPERATIONS = [softmax, gather, gather_nd, interpolate, avg_pool, max_pool, pad, top_k, scatter_elements, scatter_nd, bitwise, shift, one_hot, squeeze, adaptive_pool, embedding_bag, eye]
OPERATIONS += [group_normalization, identity, odd_numbers, attention, search_sorted, slice, slice_scatter, soft_sign, nms, roi_align]


def write(folder: Path, count: int, seed: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for operation in OPERATIONS:
        written = 0
        for number in range(10 * count):
            case = Case(np.random.default_rng([seed, number, *operation.__name__.encode()]))
            name, attributes, *outputs = operation(case)
            try:
                model = targets.model_of(name, attributes, case.inputs, *outputs)
            except RuntimeError:
                continue
            path = folder / f"{operation.__name__}.{number}.xml"
            ov.serialize(model, path)
            given = {f"input_{at}": value for at, value in enumerate(case.values)}
            np.savez(path.with_suffix(".io.npz"), input_names=[str(at) for at in range(len(given))], **given)
            written += 1
            if written == count:
                break
        if written < count:
            print(f"{operation.__name__}: {written} of {count}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    write(Path(sys.argv[1]), *(int(number) for number in (sys.argv[2:] + ["20", "0"][len(sys.argv) - 2 :])))
