"""Measures the processor time, in seconds, of long work: a chain of 100,000 layers, and long constants.

    python tests/large.py [LAYERS]
"""

from __future__ import annotations

import sys
import time
from typing import Callable

import typelift
from typelift import Model

VALUES = 20_000_000
"""The number of values of a long constant."""
OUTSIDE = 20
"""The number of edits made outside of a batch."""


def chain(layers: int) -> Model:
    lines = (f"n{at} = Relu(n{at - 1})" for at in range(1, layers))
    return typelift.from_text("\n".join(["n0 = Parameter : f32[8]", *lines, f"r = Result(n{layers - 1})"]))


def constant(element_type: str, bits: int) -> Model:
    port = element_type.upper()
    text = f"""<net name="n" version="11"><layers>
        <layer id="0" name="w" type="Const" version="opset1">
            <data element_type="{element_type}" shape="{VALUES}" offset="0" size="{VALUES * bits // 8}"/>
            <output><port id="0" precision="{port}"><dim>{VALUES}</dim></port></output></layer>
        <layer id="1" name="r" type="Result" version="opset1">
            <input><port id="0" precision="{port}"><dim>{VALUES}</dim></port></input></layer>
        </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"""
    return typelift.loads(text, bytes(VALUES * bits // 8))


def taken(what: str, work: Callable[[], object]) -> None:
    start = time.process_time()
    work()
    print(f"{time.process_time() - start:8.3f}  {what}")


def tag_all(model: Model) -> None:
    with model.edit() as graph:
        for layer in graph:
            layer.rt_info["origin"] = "mine"


def insert_everywhere(model: Model) -> None:
    names = [layer.name for layer in model if layer.type == "ReLU"]
    with model.edit() as graph:
        for name in names:
            graph.insert_after(name, "Tanh")


def tag_outside(model: Model) -> None:
    for at in range(OUTSIDE):
        model.info["mine/count"] = str(at)


def main() -> None:
    layers = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    model = chain(layers)
    text, weights = model.to_bytes()
    taken("read it", lambda: typelift.loads(text, weights))
    taken("write it", model.to_bytes)
    taken("show it in a notebook", model._repr_html_)
    taken("ask for its picture", model.view)
    taken("find each layer by name", lambda: [model[f"n{at}"] for at in range(layers)])
    taken("ask each tensor for its consumers", lambda: [tensor.consumers for layer in model for tensor in layer.outputs])
    taken("set metadata of each layer in a batch", lambda: tag_all(model))
    taken("add a layer after each in a batch", lambda: insert_everywhere(model))
    other = typelift.loads(text, weights)
    taken(f"make {OUTSIDE} edits outside of a batch", lambda: tag_outside(other))
    for element_type, bits in (("i4", 4), ("bf16", 16), ("f8e4m3", 8)):
        long = constant(element_type, bits)
        taken(f"get {VALUES:,} values of {element_type} as an array", long["w"].numpy)


if __name__ == "__main__":
    main()
