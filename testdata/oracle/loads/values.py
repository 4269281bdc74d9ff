"""Makes models that show what values OpenVINO computes of an operation: the values become the dims of a shape.

Usage: python values.py FOLDER [--seed 1]       (no OpenVINO needed; then: python take.py --add FOLDER/*.xml)

For each operation here and each element type, one model: constants, the operation, and a Broadcast to 100 times its values
without sign and fraction. Where OpenVINO does not evaluate the operation for that type, the shape stays unknown.
For each conversion of types with few bits, from and to all types, one model: how many of the values are not zero.
"""

import argparse
import itertools
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "random"))
import graphs
from graphs import take

TYPES = graphs.INTEGERS[4:] + ["i64", "i32", "f32", "f16", "bf16", "f64", "boolean"]
BLOCKS = {"block_size": 2, "mode": "blocks_first"}
NUMPY = graphs.NUMPY


def operations(graph, x):
    """For each name, how to make the tensor; `x(dims)` is a constant of the type in question."""
    add, number, numbers = graph.add, graph.number, graph.list
    unary = lambda kind, version, attributes={}: lambda: add(kind, version, attributes, [x([5])])
    random_uniform = lambda type, seed: lambda: add(
        "RandomUniform", 8, {"output_type": type, "global_seed": seed, "op_seed": 2, "alignment": "TENSORFLOW"},
        [numbers(2, 3), graph.number(1, type), graph.number(9, type)])
    boxes = {"width": "4,30", "height": "2,8", "clip": "true", "offset": "0.5", "variance": "0.1,0.2,0.3,0.4", "step": "16"}
    found = {
        "erf": unary("Erf", 1), "gelu_erf": unary("Gelu", 7, {"approximation_mode": "ERF"}),
        "gelu_tanh": unary("Gelu", 7, {"approximation_mode": "TANH"}), "hsigmoid": unary("HSigmoid", 5), "hswish": unary("HSwish", 4),
        "mish": unary("Mish", 4), "softplus": unary("SoftPlus", 4), "softsign_values": unary("SoftSign", 9), "swish": unary("Swish", 4),
        "swish_beta": lambda: add("Swish", 4, {}, [x([5]), x([])]),
        "prelu_one": lambda: add("PReLU", 1, {}, [x([5]), x([1])]), "prelu_channels": lambda: add("PReLU", 1, {}, [x([1, 3, 2]), x([3])]),
        "softmax": lambda: add("SoftMax", 8, {"axis": -1}, [x([2, 3])]), "softmax_first": lambda: add("SoftMax", 1, {"axis": 0}, [x([2, 3])]),
        "cumsum": lambda: add("CumSum", 3, {"exclusive": "false", "reverse": "false"}, [x([2, 3]), number(1)]),
        "cumsum_back": lambda: add("CumSum", 3, {"exclusive": "true", "reverse": "true"}, [x([3, 2]), number(0)]),
        "mvn": lambda: add("MVN", 6, {"normalize_variance": "true", "eps": "0.001", "eps_mode": "inside_sqrt"}, [x([2, 3]), numbers(1)]),
        "mvn_mean": lambda: add("MVN", 6, {"normalize_variance": "false", "eps": "0.5", "eps_mode": "outside_sqrt"}, [x([2, 3]), numbers(0, 1)]),
        "matmul": lambda: add("MatMul", 1, {"transpose_a": "false", "transpose_b": "false"}, [x([2, 3]), x([3, 2])]),
        "matmul_batch": lambda: add("MatMul", 1, {"transpose_a": "true", "transpose_b": "true"}, [x([2, 1, 3, 2]), x([2, 3])]),
        "matmul_vectors": lambda: add("MatMul", 1, {"transpose_a": "true", "transpose_b": "true"}, [x([3]), x([3])]),
        "fake_quantize": lambda: add("FakeQuantize", 1, {"levels": 4} | NUMPY, [x([2, 3]), x([]), x([1, 3]), x([1]), x([2, 1])]),
        "one_hot": lambda: add("OneHot", 1, {"axis": 0}, [graph.constant("i64", [3], [1, -1, 2]), number(3), x([]), x([])]),
        "one_hot_normalized": lambda: add("OneHot", 16, {"axis": -1, "negative_indices_mode": "normalize"},
                                          [graph.constant("i32", [3], [1, -1, 2]), number(3), x([]), x([])]),
        "one_hot_index": lambda: add("OneHot", 1, {"axis": 1}, [x([2]), number(4), number(5), number(6)]),
        "depth_to_space": lambda: add("DepthToSpace", 1, BLOCKS, [x([1, 8, 1, 1])]),
        "depth_to_space_depth": lambda: add("DepthToSpace", 1, BLOCKS | {"mode": "depth_first"}, [x([1, 4, 1, 2])]),
        "space_to_depth": lambda: add("SpaceToDepth", 1, BLOCKS, [x([1, 2, 2, 2])]),
        "space_to_depth_depth": lambda: add("SpaceToDepth", 1, BLOCKS | {"mode": "depth_first"}, [x([1, 1, 2, 4])]),
        "shuffle_channels": lambda: add("ShuffleChannels", 1, {"axis": 1, "group": 2}, [x([1, 6])]),
        "top_k_none": lambda: add("TopK", 11, {"axis": 0, "mode": "max", "sort": "value", "index_element_type": "i64", "stable": "false"}, [x([3]), number(0)], 2),
    }
    for at, seed in enumerate((1, 77)):
        found[f"random_uniform_{at}"] = lambda seed=seed: random_uniform(x.type, seed)()
        found[f"eye_{at}"] = lambda at=at: add("Eye", 9, {"output_type": x.type}, [number(2), number(3), number(at), numbers(2)][: 4 - at])
    found["prior_box_clustered"] = lambda: add("PriorBoxClustered", 1, boxes, [graph.constant(x.type, [2], [1, 1]), graph.constant(x.type, [2], [30, 40])])
    return found


class Constants:
    """Makes constants of one type with small numbers."""

    def __init__(self, graph, type, source):
        self.graph, self.type, self.random = graph, type, source

    def __call__(self, dims):
        count = 1
        for dim in dims:
            count *= dim
        signed = self.type[0] not in "ub"
        values = [self.random.randint(-3 if signed or self.type == "bf16" else 0, 3) for _ in range(count)]
        if self.type == "boolean":
            values = [value % 2 for value in values]
        if self.type == "bf16":
            return self.graph.add("Convert", 1, {"destination_type": "bf16"}, [self.graph.constant("f32", dims, values)])
        return self.graph.constant(self.type, dims, values)


def model(name, type, source):
    """The text and the weights of a model; None where the operation cannot be written for the type."""
    graph = take.Graph()
    try:
        made = operations(graph, Constants(graph, type, source))[name]()
    except KeyError:  # a type without numbers of its own in weights
        return None
    scaled = graph.add("Multiply", 1, NUMPY, [graph.add("Convert", 1, {"destination_type": "f32"}, [made]), graph.number(100.0, "f32")])
    sizes = graph.add("Convert", 1, {"destination_type": "i64"}, [graph.add("Abs", 1, {}, [scaled])])
    target = graph.add("Reshape", 1, {"special_zero": "false"}, [sizes, graph.list(-1)])
    graph.result(graph.add("Broadcast", 3, {"mode": "numpy"}, [graph.parameter("f32", ""), target]))
    return f'<net name="{name}" version="11">{graph.text()}</net>', bytes(graph.weights)


def conversion(old, new, seed):
    """Returns the number of values of a constant that are not zero as another type."""
    models, graph = graphs.Graphs(seed), take.Graph()
    value = graph.add("Convert", 1, {"destination_type": new}, [models.ones(graph, old, [3, 1, 2])])
    graph.result(graph.add("NonZero", 3, {"output_type": "i64"}, [value]))
    return f'<net name="values" version="11">{graph.text()}</net>', bytes(graph.weights)


def write(folder, name, model):
    path = folder / f"{name}.xml"
    path.write_text(model[0])
    path.with_suffix(".bin").write_bytes(model[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    graph = take.Graph()
    for name in operations(graph, Constants(graph, "f32", None)):
        for type in dict.fromkeys(TYPES):
            if made := model(name, type, random.Random(f"{arguments.seed}/{name}/{type}")):
                write(arguments.folder, f"{name}-{type}", made)
    all = dict.fromkeys(graphs.NARROW + TYPES)
    for old, new in itertools.product(all, all):
        if old in graphs.NARROW or new in graphs.NARROW:
            write(arguments.folder, f"convert_{old}-{new}", conversion(old, new, f"{arguments.seed}/{old}/{new}"))


if __name__ == "__main__":
    main()
