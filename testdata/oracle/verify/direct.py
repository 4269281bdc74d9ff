"""Runs `script_loop` and `script_if` without typelift, and counts how often OpenVINO computes what NumPy does.

    python3 direct.py ../../models        (in a Python that has the openvino of a release)

Each model runs with open and with fixed lengths, on one request. Some releases do not end, or end the process: use `timeout`.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import openvino as ov


class Stored:
    def __init__(self, path):
        self.bytes = path.with_suffix(".bin").read_bytes()

    def floats(self, offset, *shape):
        return np.frombuffer(self.bytes, np.float32, int(np.prod(shape)), offset).reshape(shape)


def script_loop(stored, x, n):
    """Returns the kind of run, the first output, and what it is if the inner If never changes anything in its else_body."""
    (w, b), (v, c) = ((stored.floats(at, 6, 6).T, stored.floats(at + 144, 6)) for at in (49, 217))
    found = []
    for keeps in (False, True):
        h = np.zeros_like(x)
        for step in range(n):
            if h.sum() >= stored.floats(28, 1)[0]:
                break
            own = np.tanh((h + x) @ w + b)
            if step % 2 == 0:
                h = h + own / (1 + np.exp(-(x @ v + c)))
            elif not keeps:
                h = h - own
        found.append(6 * h)
    return ("no step" if n <= 0 else "steps", *found)


def script_if(stored, x, flag):
    if flag <= 0:
        return "else", x @ stored.floats(140, 4, 6).T + stored.floats(236, 4), None
    z = x @ stored.floats(8, 4, 6).T + stored.floats(104, 4)
    if z.sum() > stored.floats(128, 1)[0]:
        return "then, then", z * stored.floats(132, 1)[0], None
    return "then, else", np.maximum(z, 0) + stored.floats(136, 1)[0], None


def main():
    core = ov.Core()
    for known in (script_if, script_loop):
        path = Path(sys.argv[1]) / f"{known.__name__}.xml"
        for is_fixed in (True, False):
            model, stored, rng = core.read_model(path), Stored(path), np.random.default_rng(1)
            if is_fixed:
                model.reshape({0: [2, 6], 1: []})
            compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
            request, right, total, explained = compiled.create_infer_request(), Counter(), Counter(), Counter()
            for _ in range(200):
                x = (rng.standard_normal((2 if is_fixed else rng.integers(1, 5), 6)) + rng.choice([-0.5, 0, 0.5])).astype(np.float32)
                number = int(rng.integers(-2, 5))
                kind, expected, other = known(stored, x, number)
                value = np.array(request.infer([x, np.array(number, np.int64)])[compiled.outputs[0]])
                is_like = lambda it: it is not None and it.shape == value.shape and np.allclose(value, it, rtol=1e-3, atol=1e-4)
                total[kind] += 1
                right[kind] += is_like(expected)
                explained[kind] += is_like(expected) or is_like(other)
            words = [f"{kind}: {right[kind]} of {total[kind]} right, {explained[kind]} known" for kind in sorted(total)]
            print(path.stem, "fixed" if is_fixed else "open", "|", "; ".join(words), flush=True)


if __name__ == "__main__":
    main()
