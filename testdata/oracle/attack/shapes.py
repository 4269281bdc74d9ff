"""Hostile models of any size, one function for each shape. A function takes a number of elements and returns the text and the weights."""

import random
import struct

SHAPES = {}
MASK = (1 << 64) - 1


def shape(function):
    """Registers a shape under the name of its function."""
    SHAPES[function.__name__.rstrip("_").replace("_", " ")] = function
    return function


def port(number, ty="FP32", dims=(4,), names=""):
    names = f' names="{names}"' if names else ""
    return f'<port id="{number}" precision="{ty}"{names}>{"".join(f"<dim>{dim}</dim>" for dim in dims)}</port>'


class Net:
    """A model that is put together layer by layer, all on one line. Outputs are written as a layer and a port."""

    def __init__(self):
        self.layers, self.edges, self.weights, self.next = [], [], bytearray(), 0

    def add(self, ty, inputs=(), data="", outputs=1, opset="opset1", dims=(4,), out="FP32", name=None, inside="", names=""):
        """Adds a layer and returns its first output."""
        at, count = self.next, len(inputs)
        self.next += 1
        taken = "".join(port(number, "FP32", ()) for number in range(count))
        made = "".join(port(count + number, out, dims, names) for number in range(outputs))
        data = f"<data {data}/>" if data else ""
        taken = taken and f"<input>{taken}</input>"
        made = made and f"<output>{made}</output>"
        name = f"n{at}" if name is None else name
        self.layers.append(f'<layer id="{at}" name="{name}" type="{ty}" version="{opset}">{data}{inside}{taken}{made}</layer>')
        for number, (layer, output) in enumerate(inputs):
            self.edge(layer, output, at, number)
        return at, count

    def edge(self, layer, output, to, number):
        self.edges.append(f'<edge from-layer="{layer}" from-port="{output}" to-layer="{to}" to-port="{number}"/>')

    def parameter(self, text="4", ty="f32", **more):
        return self.add("Parameter", (), f'shape="{text}" element_type="{ty}"', **more)

    def constant(self, values, ty="f32", dims=None, at=None, **more):
        """Adds a constant of numbers, or one of bytes that the weights have already `at` an offset."""
        code = {"f32": "f", "i64": "q", "i32": "i", "u8": "B", "boolean": "B", "f16": "e"}[ty]
        dims = (len(values),) if dims is None else dims
        size = struct.calcsize(code) * len(values)
        if at is None:
            at = len(self.weights)
            self.weights += struct.pack(f"<{len(values)}{code}", *values)
        text = ", ".join(map(str, dims))
        data = f'element_type="{ty}" shape="{text}" offset="{at}" size="{size}"'
        precision = {"f32": "FP32", "f16": "FP16", "boolean": "BOOL"}.get(ty, ty.upper())
        return self.add("Const", (), data, dims=dims, out=precision, **more)

    def result(self, of, **more):
        return self.add("Result", (of,), outputs=0, **more)

    def text(self, head="", order=None):
        layers = "".join(self.layers if order is None else [self.layers[at] for at in order])
        return f'<net name="n" version="11"><layers>{layers}</layers><edges>{"".join(self.edges)}</edges>{head}</net>'

    def done(self, of=None, **more):
        if of is not None:
            self.result(of)
        return self.text(**more), bytes(self.weights)

    def body(self, tag="body"):
        return f'<{tag}><layers>{"".join(self.layers)}</layers><edges>{"".join(self.edges)}</edges></{tag}>'


def chain(step, start=None, count=1):
    """Returns a shape that repeats a step, which takes the net and an output and returns the next output."""
    def make(n):
        net = Net()
        value = net.parameter() if start is None else start(net)
        for at in range(n // count):
            value = step(net, value, at)
        return net.done(value)
    return make


def register(name, make):
    SHAPES[name] = make


register("chain of Relu", chain(lambda net, x, at: net.add("ReLU", [x])))
register("chain of diamonds", chain(lambda net, x, at: net.add("Add", [x, x])))
register("chain of wide diamonds", chain(lambda net, x, at: net.add("Add", [net.add("Exp", [x]), net.add("ReLU", [x])]), count=3))
register("chain of Converts", chain(
    lambda net, x, at: net.add("Convert", [x], 'destination_type="' + ("f16", "f32")[at % 2] + '"', out=("FP16", "FP32")[at % 2])))
register("chain of no-op Converts", chain(lambda net, x, at: net.add("Convert", [x], 'destination_type="f32"')))
register("chain of ConvertPromoteTypes", chain(lambda net, x, at: net.add("ConvertPromoteTypes", [x, (0, 0)], outputs=2, opset="opset14")))
register("chain of Transposes", chain(
    lambda net, x, at: net.add("Transpose", [x, net.constant([1, 0], "i64")], dims=(4, 4)), lambda net: net.parameter("4,4", dims=(4, 4)), 2))
register("chain of Reshapes", chain(
    lambda net, x, at: net.add("Reshape", [x, net.constant([2, 2] if at % 2 else [4], "i64")], 'special_zero="false"',
                               dims=(2, 2) if at % 2 else (4,)), count=2))
register("chain of products and sums", chain(
    lambda net, x, at: net.add(("Multiply", "Add")[at % 2], [x, net.constant([1.5])], 'auto_broadcast="numpy"'), count=2))
register("chain of Slices", chain(
    lambda net, x, at: net.add("Slice", [x] + [net.constant([value], "i64") for value in (0, 4, 1)], opset="opset8"), count=4))
register("chain of products of matrices", chain(
    lambda net, x, at: net.add("MatMul", [x, net.constant([1.0] * 16, dims=(4, 4))], 'transpose_a="false" transpose_b="false"'), count=2))
register("chain of one weight", chain(
    lambda net, x, at: net.add("MatMul", [x, (1, 0)]), lambda net: (net.parameter(), net.constant([1.0] * 16, dims=(4, 4)))[0]))
register("chain of FakeQuantize", chain(
    lambda net, x, at: net.add("FakeQuantize", [x] + [net.constant([value], dims=()) for value in (0.0, 1.0, 0.0, 1.0)], 'levels="256"'), count=5))
register("chain of unknown operations", chain(lambda net, x, at: net.add("Tokenize", [x], opset="extension")))
register("chain of misspelt operations", chain(lambda net, x, at: net.add("Rellu", [x])))
register("chain of misspelt attributes", chain(lambda net, x, at: net.add("Softmax", [x], 'axs="0"')))
register("chain of missing attributes", chain(lambda net, x, at: net.add("Convert", [x])))
register("chain of wrong numbers", chain(lambda net, x, at: net.add("Concat", [x], 'axis="0x"')))
register("chain of wrong types", chain(
    lambda net, x, at: net.add("Add", [x, (1, 0)]), lambda net: (net.parameter(), net.parameter("4", "f64"))[0]))
register("chain of doubled dims", chain(lambda net, x, at: net.add("Concat", [x, x], 'axis="0"', dims=())))
register("chain of giant dims", chain(
    lambda net, x, at: net.add("ReLU", [x], dims=(2**31, 2**31)), lambda net: net.parameter(f"{2**31},{2**31}", dims=(2**31, 2**31))))
register("chain of shapes", chain(
    lambda net, x, at: net.add("ShapeOf", [net.add("Reshape", [(0, 0), x], 'special_zero="false"', dims=())], 'output_type="i64"', opset="opset3",
                               dims=(1,), out="I64"), lambda net: net.add("ShapeOf", [net.parameter()], 'output_type="i64"', opset="opset3"), 2))
register("chain of computed numbers", chain(
    lambda net, x, at: net.add("Add", [x, x], dims=(1,), out="I64"), lambda net: net.constant([1], "i64")))
register("chain of names", chain(lambda net, x, at: net.add("ReLU", [x], names=f"t{at},u{at}")))
register("chain of metadata", chain(lambda net, x, at: net.add(
    "ReLU", [x], inside='<rt_info><attribute name="fused_names" version="0" value="a,b"/></rt_info>')))
register("chain of long names", chain(lambda net, x, at: net.add("ReLU", [x], name="prefix/" * 20 + str(at))))
register("chain of one name", chain(lambda net, x, at: net.add("ReLU", [x], name="n")))
register("chain of decompressed weights", chain(
    lambda net, x, at: net.add("Multiply", [x, net.add("Convert", [net.constant([1.5] * 4, "f16")], 'destination_type="f32"')]), count=3))
register("chain of quantized weights", chain(
    lambda net, x, at: net.add("MatMul", [x, net.add("Multiply", [
        net.add("Convert", [net.constant([1] * 16, "u8", (4, 4))], 'destination_type="f32"', dims=(4, 4)),
        net.constant([0.5] * 4, dims=(4, 1))], dims=(4, 4))]), count=5))
register("chain of Selects", chain(
    lambda net, x, at: net.add("Select", [(1, 0), x, (0, 0)]), lambda net: (net.parameter(), net.parameter("4", "boolean", out="BOOL"))[0]))


@shape
def hub(n):
    net = Net()
    x = net.parameter()
    for _ in range(n):
        net.add("ReLU", [x])
    return net.done()


@shape
def hub_into_one_Concat(n):
    net = Net()
    x = net.parameter()
    return net.done(net.add("Concat", [net.add("ReLU", [x]) for _ in range(n)], 'axis="0"', dims=(4 * n,)))


@shape
def products_on_one_tensor(n):
    net = Net()
    x = net.parameter("2,4", dims=(2, 4))
    for _ in range(n // 2):
        net.result(net.add("MatMul", [x, net.constant([1.0] * 16, dims=(4, 4))], 'transpose_a="false" transpose_b="true"', dims=(2, 4)))
    return net.done()


@shape
def one_tensor_into_one_layer(n):
    net = Net()
    x = net.parameter()
    return net.done(net.add("Concat", [x] * n, 'axis="0"', dims=(4 * n,)))


@shape
def results_of_one_tensor(n):
    net = Net()
    x = net.add("ReLU", [net.parameter()])
    for _ in range(n):
        net.result(x)
    return net.done()


@shape
def outputs_of_a_Split(n):
    net = Net()
    x, axis = net.parameter(str(n), dims=(n,)), net.constant([0], "i64", ())
    layer, first = net.add("Split", [x, axis], f'num_splits="{n}"', outputs=n, dims=(1,))
    for number in range(n):
        net.result((layer, first + number))
    return net.done()


@shape
def inputs_and_outputs(n):
    net = Net()
    for at in range(n // 3):
        net.result(net.add("ReLU", [net.parameter(names=f"in{at}")], names=f"out{at}"))
    return net.done()


@shape
def states(n):
    net = Net()
    for at in range(n // 4):
        data = f'variable_id="v{at}" variable_type="f32" variable_shape="4"'
        read = net.add("ReadValue", [net.parameter()], data, opset="opset6")
        net.add("Assign", [net.add("ReLU", [read])], data, opset="opset6")
    return net.done()


@shape
def states_of_one_variable(n):
    net = Net()
    data = 'variable_id="v" variable_type="f32" variable_shape="4"'
    for _ in range(n // 3):
        net.add("Assign", [net.add("ReadValue", [net.parameter()], data, opset="opset6")], data, opset="opset6")
    return net.done()


@shape
def inputs_without_outputs(n):
    net = Net()
    for _ in range(n):
        net.parameter()
    return net.done()


@shape
def tree(n):
    net = Net()
    level = [net.parameter() for _ in range(n // 2)]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2])
        level = [net.add("Add", pair) for pair in pairs] + (level[-1:] if len(level) % 2 else [])
    return net.done(level[0])


@shape
def random_graph(n):
    net, dice = Net(), random.Random(5)
    made = [net.parameter()]
    for _ in range(n):
        made.append(net.add(dice.choice(["Add", "Multiply", "Maximum"]), [dice.choice(made), dice.choice(made)]))
    return net.done(made[-1])


def shuffled(order):
    def make(n):
        net = Net()
        value = net.parameter()
        for _ in range(n):
            value = net.add("ReLU", [value])
        net.result(value)
        numbers = list(range(len(net.layers)))
        order(numbers)
        return net.done(order=numbers)
    return make


register("layers backwards", shuffled(list.reverse))
register("layers in any order", shuffled(random.Random(6).shuffle))


@shape
def ids_in_any_order(n):
    net = Net()
    value, ids = net.parameter(), list(range(n + 2))
    random.Random(7).shuffle(ids)
    for _ in range(n):
        value = net.add("ReLU", [value])
    net.result(value)
    layers = [layer.replace(f'id="{at}"', f'id="{10 * ids[at]}"', 1) for at, layer in enumerate(net.layers)]
    edges = [f'<edge from-layer="{10 * ids[at]}" from-port="{min(at, 1)}" to-layer="{10 * ids[at + 1]}" to-port="0"/>' for at in range(n + 1)]
    return f'<net name="n" version="11"><layers>{"".join(layers)}</layers><edges>{"".join(edges)}</edges></net>', b""


@shape
def one_id(n):
    net = Net()
    for _ in range(n):
        net.next = 0
        net.parameter()
    return net.done()


@shape
def one_edge_again_and_again(n):
    net = Net()
    net.result(net.parameter())
    for _ in range(n):
        net.edge(0, 0, 1, 0)
    return net.done()


@shape
def edges_into_one_port(n):
    net = Net()
    made = [net.parameter() for _ in range(n)]
    layer, _ = net.add("ReLU", made[:1])
    for value in made:
        net.edge(*value, layer, 0)
    return net.done()


@shape
def edges_to_nowhere(n):
    net = Net()
    net.result(net.parameter())
    for at in range(n):
        net.edge(0, 0, at + 2, at)
    return net.done()


@shape
def ring(n):
    net = Net()
    for at in range(n):
        net.add("ReLU", [((at + 1) % n, 1)])
    return net.done()


@shape
def rings_of_two(n):
    net = Net()
    for at in range(n):
        net.add("ReLU", [(at ^ 1, 1)])
    return net.done()


@shape
def shapes_that_do_not_fit(n):
    net = Net()
    a, b = net.parameter("2", dims=(2,)), net.parameter("3", dims=(3,))
    for _ in range(n):
        net.add("Add", [a, b])
    return net.done()


@shape
def missing_inputs(n):
    net = Net()
    net.parameter()
    for _ in range(n):
        net.add("Add", [(0, 0)], outputs=1)
    return net.done()


@shape
def shared_constant(n):
    net = Net()
    constant = net.constant([1.0] * 4)
    for _ in range(n // 2):
        net.add("Add", [net.parameter(), constant])
    return net.done()


@shape
def overlapping_constants(n):
    net = Net()
    net.weights += bytes(4 * n + 4096)
    x = net.parameter()
    for at in range(n // 2):
        net.add("Add", [x, net.constant([0.0] * 256, at=4 * at)])
    return net.done()


@shape
def equal_constants(n):
    net = Net()
    x = net.parameter()
    for _ in range(n // 2):
        net.result(net.add("Add", [x, net.constant([1.0] * 16, dims=(4, 4))]))
    return net.done()


@shape
def constants_without_bytes(n):
    net = Net()
    for at in range(n):
        net.constant([0.0] * 4, at=10**12 + at)
    return net.done()


@shape
def broadcast_constants(n):
    net = Net()
    value = net.constant([1.0], dims=(1,))
    for at in range(n // 2):
        net.result(net.add("Broadcast", [value, net.constant([2**30 + at], "i64")], 'mode="numpy"', opset="opset3", dims=(2**30 + at,)))
    return net.done()


@shape
def ranges(n):
    net = Net()
    for at in range(n // 4):
        inputs = [net.constant([value], "i64", ()) for value in (0, 2**30 + at, 1)]
        net.result(net.add("Range", inputs, 'output_type="i64"', opset="opset4", dims=(2**30 + at,), out="I64"))
    return net.done()


@shape
def long_attribute(n):
    net = Net()
    return net.done(net.add("Unknown", [net.parameter()], f'a="{"x" * 100 * n}"', opset="extension"))


@shape
def attributes(n):
    net = Net()
    return net.done(net.add("Unknown", [net.parameter()], " ".join(f'attribute{at}="{at}"' for at in range(n)), opset="extension"))


@shape
def long_name(n):
    net = Net()
    return net.done(net.add("ReLU", [net.parameter()], name="x" * 100 * n))


@shape
def names_of_one_tensor(n):
    net = Net()
    return net.done(net.add("ReLU", [net.parameter()], names=",".join(f"name{at}" for at in range(n))))


@shape
def colliding_names(n):
    """Names that have one hash in rustc-hash 2: whatever differs is multiplied by zero."""
    net, value = Net(), None
    for name in collisions(n):
        value = net.parameter(name=name) if value is None else net.add("ReLU", [value], name=name)
    return net.done(value)


def collisions(count):
    def mix(x, y):
        return (x * y & MASK) ^ (x * y >> 64)
    dice = random.Random(3)
    letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-"
    allowed = set(range(33, 127)) - set(b"<>&\"'")
    while True:
        first = bytes(dice.choice(letters) for _ in range(16))
        x, y = struct.unpack("<QQ", first)
        zero = struct.pack("<Q", mix(0x243F6A8885A308D3 ^ x, 0xA4093822299F31D0 ^ y))
        if all(byte in allowed for byte in zero):
            break
    second = bytes(dice.choice(letters) for _ in range(16))
    return [(first + second + zero + b"%08d0123456789abcdef" % at).decode() for at in range(count)]


@shape
def colliding_ids(n):
    net = Net()
    for at in range(n):
        net.next = at << 20
        net.parameter()
    return net.done()


@shape
def wide_metadata(n):
    net = Net()
    entries = "".join(f'<a{at} value="{at}"/>' for at in range(n))
    return net.done(net.parameter(), head=f"<rt_info>{entries}</rt_info>")


@shape
def deep_metadata(n):
    net = Net()
    return net.done(net.parameter(), head=f'<rt_info>{"<a>" * n}{"</a>" * n}</rt_info>')


@shape
def comments(n):
    text, weights = SHAPES["chain of Relu"](n)
    return text.replace("<layer ", "<!-- a comment -->\n<layer "), weights


def conditional(net, condition, x):
    """Adds an If whose branches add their input to itself and return it."""
    then, other = Net(), Net()
    for body, ty in ((then, "Exp"), (other, "ReLU")):
        body.result(body.add(ty, [body.parameter()]))
    maps = ('<input external_port_id="1" internal_layer_id="0"/>', '<output external_port_id="2" internal_layer_id="2"/>')
    inside = "".join(f"<{tag}_port_map>{''.join(maps)}</{tag}_port_map>" for tag in ("then", "else"))
    return net.add("If", [condition, x], opset="opset8", inside=inside + then.body("then_body") + other.body("else_body"))


@shape
def constant_Ifs(n):
    net = Net()
    x = net.parameter()
    for _ in range(n // 8):
        x = conditional(net, net.constant([1], "boolean", ()), x)
    return net.done(x)


@shape
def Ifs(n):
    net = Net()
    x, condition = net.parameter(), net.parameter("", "boolean", dims=(), out="BOOL")
    for _ in range(n // 7):
        x = conditional(net, condition, x)
    return net.done(x)


def iterator(net, x, inside):
    """Adds a TensorIterator around a body of one input, which `inside` turns into its output."""
    body = Net()
    body.result(inside(body, body.parameter()))
    maps = (f'<port_map><input external_port_id="0" internal_layer_id="0"/>'
            f'<output external_port_id="1" internal_layer_id="{body.next - 1}"/></port_map>')
    return net.add("TensorIterator", [x], inside=maps + body.body())


@shape
def bodies_side_by_side(n):
    net = Net()
    x = net.parameter()
    for _ in range(n // 4):
        x = iterator(net, x, lambda body, value: body.add("ReLU", [value]))
    return net.done(x)


@shape
def a_chain_in_a_body(n):
    def inside(body, value):
        for _ in range(n):
            value = body.add("ReLU", [value])
        return value
    net = Net()
    return net.done(iterator(net, net.parameter(), inside))


@shape
def bodies_in_bodies(n):
    def nest(depth):
        def inside(body, value):
            for _ in range(n // 40):
                value = body.add("ReLU", [value])
            return iterator(body, value, nest(depth - 1)) if depth else value
        return inside
    net = Net()
    return net.done(nest(40)(net, net.parameter()))


@shape
def bodies_deeper_than_any_program(n):
    return f'<net name="n" version="11"><layers>{"<layer><body><layers>" * n}', b""


@shape
def a_wide_body(n):
    net, body = Net(), Net()
    given, maps = [net.parameter() for _ in range(n // 4)], []
    for at, _ in enumerate(given):
        maps.append(f'<input external_port_id="{at}" internal_layer_id="{body.parameter()[0]}"/>')
    for at, _ in enumerate(given):
        result = body.result((at, 0))
        maps.append(f'<output external_port_id="{len(given) + at}" internal_layer_id="{result[0]}"/>')
    net.add("TensorIterator", given, outputs=len(given), inside=f'<port_map>{"".join(maps)}</port_map>' + body.body())
    return net.done()


@shape
def dead_layers(n):
    net = Net()
    net.result(net.parameter())
    for _ in range(n // 2):
        net.add("ReLU", [net.constant([1.0])])
    return net.done()


@shape
def many_dims(n):
    net = Net()
    ones = ",".join(["1"] * n)
    return net.done(net.parameter(ones, dims=[1] * n))


@shape
def an_Einsum_of_many(n):
    net = Net()
    x = net.parameter()
    return net.done(net.add("Einsum", [x] * n, f'equation="{",".join(["a"] * n)}->a"', opset="opset7"))


@shape
def text_that_is_cut_off(n):
    text, weights = SHAPES["chain of Relu"](n)
    return text[: len(text) * 9 // 10], weights
