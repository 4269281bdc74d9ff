"""Asks OpenVINO (and PaddlePaddle) every question of the tables in this folder anew, and writes the answers into them.

Usage: python retake.py [TABLE.tsv ...]     (needs openvino 2026.4.1; paddle.tsv needs paddlepaddle 3.3.1)
       dims.tsv is retaken by dims.cpp, since the Python API has no arithmetic of dimensions.

A table starts with two lines of heading: where the answers are from, and the names of its columns, in which `=` stands
between those of the question and those of the answer. To ask something new, add a line with the columns of the question
and run this script. A refusal is written as ! and its reason.
"""
import json
import sys
from pathlib import Path
from xml.sax.saxutils import quoteattr

REASONS = {
    "Argument shapes are inconsistent": "shapes", "'Else' tensor shape": "else", "'Cond' tensor shape": "cond",
    "smaller rank": "placement", "Accessing out-of-range dimension": "placement", "start_axis must be": "placement",
    "(numpy mode)": "dim", "Broadcast incorrect target shape": "dim", "Expected": "dim",
    "exceeds target rank": "axis_range", "not in sorted order": "axis_order",
    "doesn't match rank of input": "axis_count", "Broadcast shape rank must be 1": "target_rank",
}


def refusal(error):
    return "!" + next(word for part, word in REASONS.items() if part in str(error))


class OpenVino:
    """The answers of OpenVINO, one method per table; a method is given the columns of the question."""

    def __init__(self):
        import openvino
        from openvino.utils.node_factory import NodeFactory

        self.ov, self.factory, self.core = openvino, NodeFactory("opset1"), openvino.Core()
        self.source = f"OpenVINO {openvino.__version__}"
        self.parameters = {}

    def parameter(self, shape, kind="f32"):
        key = shape, kind
        if key not in self.parameters:
            self.parameters[key] = self.ov.opset14.parameter(self.ov.PartialShape(shape), getattr(self.ov.Type, kind))
        return self.parameters[key]

    def shape_of(self, operation, inputs, attributes):
        try:
            return self.factory.create(operation, inputs, attributes).get_output_partial_shape(0).to_string()
        except RuntimeError as error:
            return refusal(error)

    def auto_broadcast(self, operation, inputs, axes):
        def ask(mode, **axis):
            return self.shape_of(operation, inputs, {"auto_broadcast": mode} | axis)

        pdpd = [ask("pdpd", **{"auto_broadcast.auto_broadcast_axis": axis}) for axis in axes]
        return [ask("numpy"), ask("none"), *pdpd]

    def broadcast(self, data, target, axes, mode):
        opset = self.ov.opset14
        try:
            return opset.broadcast(data, target, axes, mode).get_output_partial_shape(0).to_string()
        except RuntimeError as error:
            return refusal(error)

    def target(self, text):
        """`[2,?]` is known as the shape of something is; `length [2]` is a list of two numbers not known."""
        if text.startswith("length "):
            return self.parameter(text.removeprefix("length "), "i64")
        return self.ov.opset14.shape_of(self.parameter(text))

    def pairs(self, a, b):
        operands, target = [self.parameter(a), self.parameter(b)], self.target(b)
        shapes = self.ov.PartialShape(a), self.ov.PartialShape(b)
        relations = (getattr(shapes[0], relation)(shapes[1]) for relation in ("compatible", "relaxes", "refines"))
        return [*self.auto_broadcast("Add", operands, (-2, -1, 0, 1, 2)),
                *(self.broadcast(operands[0], target, None, mode) for mode in ("NUMPY", "BIDIRECTIONAL")),
                *("yes" if holds else "no" for holds in relations)]

    def select(self, condition, then, otherwise):
        inputs = [self.parameter(condition, "boolean"), self.parameter(then), self.parameter(otherwise)]
        return self.auto_broadcast("Select", inputs, (-2, -1, 0, 1, 2))

    def target_axes(self, data, target, axes):
        import numpy

        axes = axes.strip("[]")
        axes = numpy.array([int(axis) for axis in axes.split(",") if axes], numpy.int64)
        axes = self.ov.opset14.constant(axes, self.ov.Type.i64)
        return [self.broadcast(self.parameter(data), self.target(target), axes, "EXPLICIT")]

    def target_length(self, data, target):
        """The mapping for the mode `explicit` is one axis not known."""
        data, target, axes = self.parameter(data), self.target(target), self.parameter("[1]", "i64")
        return [*(self.broadcast(data, target, None, mode) for mode in ("NUMPY", "BIDIRECTIONAL")),
                self.broadcast(data, target, axes, "EXPLICIT"),
                self.shape_of("Broadcast", [data, target, axes], {"mode": "pdpd"})]

    def target_pdpd(self, data, target, axis):
        attributes = {"mode": "pdpd", "mode.auto_broadcast_axis": int(axis)}
        axes = self.ov.opset14.constant([0], self.ov.Type.i64)
        shape = self.shape_of("Broadcast", [self.parameter(data), self.target(target), axes], attributes)
        return ["!" if shape.startswith("!") else shape]  # it may give a later reason before an earlier one

    def texts(self, text):
        """Returns the attribute `shape` of a Parameter as the reader reads it, each dimension with both bounds."""
        xml = f"""<net name="m" version="11"><layers>
            <layer id="0" name="a" type="Parameter" version="opset1"><data shape={quoteattr(json.loads(text))}
            element_type="f32"/><output><port id="0" precision="FP32"/></output></layer>
            <layer id="1" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers>
            <edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"""
        try:
            shape = self.core.read_model(model=xml.encode(), weights=b"").inputs[0].get_partial_shape()
        except RuntimeError as error:
            if "Cannot parse" in str(error) or "Cannot get vector of dimensions" in str(error):
                return ["!"]
            raise
        if shape.rank.is_dynamic:
            return ["[...]", "[...]"]
        ends = [(dim.get_min_length(), dim.get_max_length()) for dim in shape]
        ends = ["empty" if low < 0 else f"{low}.." if high < 0 else f"{low}..{high}" for low, high in ends]
        return [shape.to_string(), "[" + ",".join(ends) + "]"]


class Paddle:
    """The answers of PaddlePaddle."""

    def __init__(self):
        import paddle

        self.package, self.source = paddle, f"PaddlePaddle {paddle.__version__}"

    def paddle(self, a, b):
        """By the function that tells, and by adding; nothing of a length of -1 can be added."""
        a, b = json.loads(a), json.loads(b)
        yield self.ask(lambda: self.package.broadcast_shape(a, b))
        yield "" if -1 in a + b else self.ask(lambda: (self.package.ones(a) + self.package.ones(b)).shape)

    def ask(self, question):
        try:
            return json.dumps(list(question()), separators=(",", ":"))
        except ValueError as error:
            if "mismatch" not in str(error):
                raise
            return "!dim"


def retake(path, answers):
    _, columns, *rows = path.read_text().splitlines()
    width = columns.removeprefix("# ").split("\t").index("=")
    ask = getattr(answers, path.stem)
    questions = dict.fromkeys(tuple(row.split("\t")[:width]) for row in rows)
    lines = [f"# {answers.source}", columns, *("\t".join([*question, *ask(*question)]) for question in questions)]
    path.write_text("\n".join(lines) + "\n")


def main():
    folder = Path(__file__).parent
    names = [Path(name).stem for name in sys.argv[1:]]
    for source in (OpenVino, Paddle):
        mine = [path for path in sorted(folder.glob("*.tsv")) if hasattr(source, path.stem)]
        mine = [path for path in mine if not names or path.stem in names]
        try:
            answers = source() if mine else None
        except ImportError as error:
            print(f"not retaken: {', '.join(path.name for path in mine)}: {error}")
            continue
        for path in mine:
            retake(path, answers)


if __name__ == "__main__":
    main()
