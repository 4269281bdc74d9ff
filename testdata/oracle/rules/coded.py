"""Models for the sets of rules that are code and not patterns."""

import numpy as np
import openvino as ov

import build


class Simple:
    """Stands for a rule where there is no pattern."""

    set, where = "coded", {}

    def __init__(self, roots):
        self.roots = roots


def model(name, rules, random):
    return {
        "common-subexpressions": twice, "constant-folding": constants, "constant-ifs": decided, "slices": slices, "mixed": mixed,
        "fake-quantize-weights": fake_quantized, "keep-compressed": half_weights,
    }[name](rules, random)


def some(rules, random):
    patterned = [rule for rule in rules.values() if not isinstance(rule, str)]
    return patterned[random.integers(len(patterned))]


def finish(builder, outputs):
    shapes = [[int(it) for it in parameter.get_output_shape(0)] for parameter in builder.parameters]
    found = ov.Model(outputs, builder.parameters, "fuzz")
    if builder.chance(0.3):
        build.open_shapes(builder, found, shapes)
    return found, shapes, builder


def twice(rules, random):
    """A pattern two times over, of the same tensors."""
    rule = some(rules, random)
    state = random.bit_generator.state
    builder = build.Builder(rule, random)
    hint = {"type": builder.type, "sibling": None}
    first = builder.build(rule.roots[0], hint)
    parameters = list(builder.parameters)
    random.bit_generator.state = state
    again = build.Builder(rule, random)
    drawn = iter(parameters)
    again.parameter = lambda shape, type: next(drawn, parameters[0]).output(0)
    second = again.build(rule.roots[0], hint)
    builder.parameters = parameters
    if not parameters:
        raise build.Lack("no input")
    if first.get_node().get_type_name() in ("Parameter", "Constant") or second.get_node().get_type_name() in ("Parameter", "Constant"):
        raise build.Lack("no layer")
    return finish(builder, [first, second] if builder.chance(0.5) else [builder.node("Concat", [flat(builder, first), flat(builder, second)], {"axis": 0}).output(0)])


def mixed(rules, random, converted=0.03):
    """Patterns of two or three rules, each of which may use what the ones before compute."""
    outputs, parameters, others, types = [], [], [], None
    for _ in range(int(random.integers(2, 4))):
        builder = build.Builder(some(rules, random), random)
        builder.type = types = types or builder.type
        builder.converted = converted
        builder.others = [*others, *(it.output(0) for it in parameters)]
        kind = builder.rule.roots[0]
        is_boolean = kind[0] == "call" and kind[1][0] in build.BOOLEAN
        root = builder.build(kind, {"type": "boolean" if is_boolean else builder.type, "sibling": None})
        parameters += builder.parameters
        if root.get_node().get_type_name() not in ("Parameter", "Constant") and all(root != it for it in outputs):
            others += [*builder.inner, root]
            outputs.append(root)
    builder.parameters = parameters
    used = [it for it in outputs if not it.get_target_inputs()]
    outputs = used + [it for it in outputs if it not in used and builder.chance(0.3)]
    if not outputs or not parameters:
        raise build.Lack("nothing to rewrite")
    found, shapes, builder = finish(builder, outputs)
    if builder.chance(0.4) and len(outputs) == 1 and not found.is_dynamic():
        found, shapes = looped(found, shapes)
    return found, shapes, builder


def looped(body, shapes):
    """A Loop of one iteration around a model, whose inputs do not change."""
    from openvino import opset8

    true = lambda: ov.op.Constant(ov.Type.boolean, ov.Shape([]), [True])
    condition = true()
    inner = ov.Model([condition.output(0), *(it.input_value(0) for it in body.results)], body.get_parameters(), "body")
    node = opset8.loop(ov.op.Constant(ov.Type.i64, ov.Shape([]), [1]), true())
    node.set_function(inner)
    node.set_special_body_ports([-1, 0])
    fed = [ov.op.Parameter(it.get_element_type(), it.get_partial_shape()) for it in body.get_parameters()]
    for outer, own in zip(fed, body.get_parameters()):
        node.set_invariant_input(own, outer.output(0))
    outputs = [node.get_iter_value(result.output(0), -1) for result in inner.results[1:]]
    return ov.Model(outputs, fed, "fuzz"), shapes


def flat(builder, output):
    return builder.node("Reshape", [output, builder.integers([-1])], {"special_zero": False}).output(0)


def constants(rules, random):
    """A pattern of constants, and one number that is not constant."""
    builder = build.Builder(some(rules, random), random)
    rule = builder.rule
    builder.parameter = lambda shape, type: builder.constant(builder.values(tuple(shape)), type)
    root = builder.build(rule.roots[0], {"type": builder.type if rule.roots[0][0] != "call" or rule.roots[0][1][0] not in build.BOOLEAN else "boolean", "sibling": None})
    type = builder.type_of(root)
    x = ov.op.Parameter(root.get_element_type(), ov.PartialShape([]))
    builder.parameters.append(x)
    operation = "LogicalXor" if type == "boolean" else "Maximum"
    return finish(builder, [builder.node(operation, [root, x.output(0)]).output(0)])


def decided(rules, random):
    """An If whose condition is known."""
    rule = some(rules, random)
    builder = build.Builder(rule, random)
    root = builder.build(rule.roots[0], {"type": builder.type, "sibling": None})
    if not builder.parameters or root.get_node().get_type_name() == "Parameter":
        raise build.Lack("no input")
    from openvino import opset8

    outputs = [root]
    shapes = [[int(it) for it in parameter.get_output_shape(0)] for parameter in builder.parameters]
    body = ov.Model(outputs, builder.parameters, "then")
    other = ov.Model([ov.op.Constant(root.get_element_type(), root.get_shape(), [0] * int(np.prod(root.get_shape())))], [], "else")
    node = opset8.if_op(ov.op.Constant(ov.Type.boolean, ov.Shape([]), [builder.chance(0.8)]))
    node.set_then_body(body)
    node.set_else_body(other)
    fed = [ov.op.Parameter(parameter.get_element_type(), parameter.get_partial_shape()) for parameter in builder.parameters]
    for outer, inner in zip(fed, builder.parameters):
        node.set_input(outer.output(0), inner, None)
    node.set_output(body.results[0], other.results[0])
    return ov.Model([node.output(0)], fed, "fuzz"), shapes, builder


def fake_quantized(rules, random):
    """Weights behind FakeQuantize, and a product with them."""
    builder = build.Builder(Simple([]), random)
    builder.type = builder.pick({"f32": 9, "f16": 1})
    shape = builder.any([[3, 4], [4, 6], [2, 3, 4], [4, 2, 1, 3], [6]])
    channel = [shape[0]] + [1] * (len(shape) - 1)
    ranges = builder.any([[], [1], channel, channel, [1] * len(shape), shape])
    low = -np.abs(builder.random.normal(size=ranges)) * builder.any([0, 1, 1, 1])
    high = np.abs(builder.random.normal(size=ranges)) + 0.1
    if builder.chance(0.15):
        low, high = -high, low * 0
    same = builder.chance(0.7)
    results = (low, high) if same else (low * 2, high * 3)
    weights = builder.random.normal(size=shape)
    if builder.chance(0.05):
        weights.flat[0] = builder.any([np.nan, np.inf, -np.inf, 1e30])
    inputs = [builder.constant(it, builder.type) for it in (weights, low, high, *results)]
    levels = int(builder.any([2, 3, 5, 15, 16, 17, 129, 255, 256, 256, 257]))
    quantized = builder.node("FakeQuantize", inputs, {"levels": levels}).output(0)
    return finish(builder, [used(builder, quantized)])


def used(builder, weights):
    """A product or a sum of a tensor and weights."""
    shape = builder.shape(weights)
    if len(shape) == 2 and builder.chance(0.7):
        x = builder.parameter([2, shape[1]], builder.type)
        return builder.node("MatMul", [x, weights], {"transpose_b": True}).output(0)
    x = builder.parameter(shape, builder.type)
    return builder.node(builder.any(["Add", "Multiply"]), [x, weights]).output(0)


def half_weights(rules, random):
    """Weights of 16 bits and a Convert, with marks or without."""
    builder = build.Builder(Simple([]), random)
    builder.type = "f32"
    shape = builder.any([[3, 4], [4, 6], [2, 3, 4], [6]])
    stored = builder.array(builder.values(shape), builder.any(["f16", "f16", "bf16"]))
    weights = builder.node("Convert", [stored], {"destination_type": "f32"})
    if builder.chance(0.2):
        weights.get_rt_info()["decompression_0"] = ""
    return finish(builder, [used(builder, weights.output(0))])


def slices(rules, random):
    """Slices that take a tensor apart, or nearly."""
    builder = build.Builder(Simple([]), random)
    shape = builder.base or [6]
    axis = int(random.integers(len(shape)))
    shape[axis] = 6
    x = builder.parameter(shape, builder.type)
    cuts = sorted({0, 6, *(int(it) for it in random.integers(1, 6, size=2))})
    if builder.chance(0.1):
        cuts[-1] = 5
    outputs = []
    for start, stop in zip(cuts, cuts[1:]):
        stop = int(builder.any([stop, 2147483647])) if stop == 6 else stop
        at = axis - len(shape) if builder.chance(0.3) else axis
        outputs.append(builder.node("Slice", [x, *(builder.integers([it]) for it in (start, stop, 1, at))], opset=8).output(0))
    order = random.permutation(len(outputs))
    return finish(builder, [builder.node("Concat", [outputs[it] for it in order], {"axis": axis}).output(0)])
