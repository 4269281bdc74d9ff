"""Work of other tools on a model, one whole process each, timed by `openvino.sh`.

    peers.py openvino IN.xml OUT.xml      read, and write the graph again
    peers.py make COUNT OUT.onnx          make a chain of COUNT nodes, which is not timed
    peers.py onnx-ir IN.onnx OUT.onnx     read, infer shapes, write
    peers.py onnxscript IN.onnx OUT.onnx  read, optimize, write
"""

import sys


def openvino(source, target):
    import openvino

    # The test writes no weights, like those of the other tools.
    openvino.serialize(openvino.Core().read_model(source), target, "/dev/null")


def make(count, target):
    from onnx import TensorProto, checker, helper, save

    shape = [1, 16, 64]
    nodes, last = [], "x"
    for at in range(int(count)):
        if at % 2:
            nodes.append(helper.make_node("Add", [last, "bias32"], [f"layers.{at}.self_attn/add"]))
        else:
            nodes.append(helper.make_node("Relu", [last], [f"layers.{at}.self_attn/relu"]))
        last = nodes[-1].output[0]
    cast = helper.make_node("Cast", ["bias"], ["bias32"], to=TensorProto.FLOAT)
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("bias", TensorProto.FLOAT16, shape[-1:]),
    ]
    outputs = [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)]
    model = helper.make_model(helper.make_graph([cast, *nodes], "chain", inputs, outputs))
    checker.check_model(model)
    save(model, target)


def onnx_ir(source, target):
    import onnx_ir
    from onnx_ir.passes.common import ShapeInferencePass

    model = onnx_ir.load(source)
    onnx_ir.save(ShapeInferencePass()(model).model, target)


def onnxscript(source, target):
    import onnx_ir
    from onnxscript import optimizer

    model = onnx_ir.load(source)
    onnx_ir.save(optimizer.optimize(model) or model, target)


if __name__ == "__main__":
    _, verb, source, target = sys.argv
    {"openvino": openvino, "make": make, "onnx-ir": onnx_ir, "onnxscript": onnxscript}[verb](source, target)
