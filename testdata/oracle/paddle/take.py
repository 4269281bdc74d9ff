"""Takes the tables of this folder from the installed paddlepaddle (3.3.1 on a CPU for those committed).

    python take.py            writes operations.csv and reasons.json next to it

The published_*.csv are copied from the guide "Introduction to Data Type Promotion" of Paddle 2.6. All values are 1 or True.
Operands: d:T a tensor of shape [2], z:T a 0-D tensor, w:KIND a Python number.
"""
import json
import operator
import os
import re
import sys
import warnings

os.environ["GLOG_minloglevel"] = "3"
warnings.filterwarnings("ignore")
import paddle  # noqa: E402
import paddle.nn.functional as functional  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(HERE))
from tables import write_table  # noqa: E402

SHORT = dict(zip(
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 float8_e4m3fn "
    "float8_e5m2".split(),
    "bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128 f8e4m3fn f8e5m2".split()))
NUMBERS = {"bool": True, "int": 1, "float": 1.0, "complex": 1 + 0j}
TENSORS = {f"{kind}:{short}": paddle.cast(paddle.ones([2] if kind == "d" else [], "float32"), long)
           for kind in "dz" for long, short in SHORT.items()}
OPERANDS = [*TENSORS, *(f"w:{kind}" for kind in NUMBERS)]
CONDITION = paddle.to_tensor([True, False])
REASONS = [
    ("Type promotion only support calculations", "!promote"), ("Invalid enum data type for type promote", "!enum"),
    (r"kernel with key \(CPU, [^,]+, (\w+)\)", "!k/"), (r"trying to retrieve \(\w+\) does not match", "!mismatch"),
    ("must be Tensor|has no attribute|must be scalar|not understood|unsupported operand|must be Variable|but got <?class"
     "|must be Value|only support int, float and bool", "!args"),
    ("shape must equal|rank should be same|must be equal to the|broadcastable|shape of broadcast output", "!shape"),
]
messages = {}


def ask(call, *operands):
    """The type of the result, or the reason why there is none; the first message of each reason is kept."""
    try:
        answer = call(*(NUMBERS[o[2:]] if o[0] == "w" else TENSORS[o] for o in operands))
        return SHORT[str(answer.dtype).replace("paddle.", "").lower()]
    except Exception as error:  # noqa: BLE001 - the error is the answer
        text = str(error)
        reason = "!" + type(error).__name__
        for pattern, code in REASONS:
            if found := re.search(pattern, text):
                reason = code + (SHORT[found[1]] if code == "!k/" else "")
                break
        # The message proper stands below a dump of the C++ stack.
        summary = re.sub(r"[\s\S]*Error Message Summary:\s*-+\s*", "", text.strip()).splitlines()
        messages.setdefault(reason, f"{type(error).__name__}: {summary[0] if summary else ''}")
        return reason


OPERATIONS = {name: getattr(paddle, name) for name in (
    "add subtract multiply divide floor_divide pow equal not_equal less_than less_equal greater_than greater_equal "
    "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor where fmax fmin logaddexp maximum minimum "
    "remainder nextafter atan2 mod floor_mod hypot copysign heaviside gcd lcm ldexp isclose matmul").split()}
OPERATIONS.update({name: getattr(functional, name)
                   for name in "poisson_nll_loss l1_loss mse_loss smooth_l1_loss".split()})
OPERATIONS.update({name: (lambda name: lambda a, b: getattr(a.clone(), name)(b))(name) for name in (
    "add_ subtract_ multiply_ divide_ floor_divide_ remainder_ mod_ equal_ not_equal_ less_than_ less_equal_ greater_than_ "
    "greater_equal_ logical_and_ logical_or_ logical_xor_").split()})
OPERATIONS["where"] = lambda a, b: paddle.where(CONDITION, a, b)
OPERATIONS["huber_loss"] = lambda a, b: paddle._C_ops.huber_loss(a, b, 1.0)
OPERATIONS.update({f"operator_{sign}": call for sign, call in {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "&": operator.and_, "|": operator.or_, "^": operator.xor}.items()})


def is_asked(name, a, b):
    """Two numbers do not reach paddle, and matmul of a 0-D tensor reads memory that is not its own."""
    return not (a[0] == b[0] == "w" or name == "matmul" and "z" in (a[0], b[0]))


if __name__ == "__main__":
    table = {name: {a: [ask(call, a, b) if is_asked(name, a, b) else "-" for b in OPERANDS] for a in OPERANDS}
             for name, call in OPERATIONS.items()}
    write_table(f"{HERE}/operations.csv", OPERANDS, table, [
        f"paddle {paddle.__version__}, CPU, dynamic graph",
        "keys: operations, lhs and columns: operands (d: shape [2], z: 0-D, w: Python number); - not asked",
        "cell: the type of the result, !k/T when the CPU has no kernel for T, or !reason (reasons.json)"])
    with open(f"{HERE}/reasons.json", "w", encoding="utf-8") as f:
        json.dump(messages, f, indent=1)
        f.write("\n")
