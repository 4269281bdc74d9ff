"""Takes the tables of this folder from the installed torch (2.15.0 on a CPU for those committed).

    python take.py            writes the CSV files and reasons.json next to it

All values are 1 or True, so that nothing depends on data. Operands: d:T a tensor of shape [2], z:T one of shape [], w:KIND
a Python number.
"""
import itertools
import json
import operator
import os
import re
import sys
import warnings

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(HERE))
from tables import write_table  # noqa: E402

warnings.filterwarnings("ignore")
LEGEND = f"torch {torch.__version__.split('+')[0]}, CPU"
SHORT = dict(zip(
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex32 bcomplex32 complex64 "
    "complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu".split(),
    "bool u8 i8 i16 i32 i64 u16 u32 u64 f16 bf16 f32 f64 c32 bc32 c64 c128 f8e4m3fn f8e5m2 f8e4m3fnuz f8e5m2fnuz "
    "f8e8m0fnu".split()))
DTYPES = {short: getattr(torch, long) for long, short in SHORT.items()}
# Types with storage only: no tensor of ones, so they are asked about through the functions on dtypes alone.
STORAGE = {str(dtype)[6:]: dtype for dtype in sorted({x for x in vars(torch).values() if isinstance(x, torch.dtype)}, key=str)
           if dtype not in DTYPES.values() and not str(dtype).startswith("torch.q")}
NAMES = {dtype: name for name, dtype in {**DTYPES, **STORAGE}.items()}
NUMBERS = {"bool": True, "int": 1, "float": 1.0, "complex": 1 + 0j}
OPERANDS = [f"{kind}:{ty}" for kind in "dz" for ty in DTYPES] + [f"w:{kind}" for kind in NUMBERS]

# The names c10 has for types in its messages.
SCALAR_TYPES = {"Byte": "u8", "Char": "i8", "Short": "i16", "Int": "i32", "Long": "i64", "Half": "f16", "BFloat16": "bf16",
                "Float": "f32", "Double": "f64", "Bool": "bool", "ComplexHalf": "c32", "BComplex32": "bc32",
                "ComplexFloat": "c64", "ComplexDouble": "c128"}
SCALAR_TYPES.update({long.replace("uint", "UInt").replace("float8", "Float8"): short for long, short in SHORT.items()
                     if long.startswith(("uint", "float8"))})
REASONS = [
    ("Promotion for uint16", "!uint"), ("Promotion for Float8", "!f8"), ("is unsupported", "!bits"),
    ("INTERNAL ASSERT", "!assert"), ("Unknown Complex ScalarType", "!f8complex"), (r"not implemented for '(\w+)'", "!k/"),
    ("Subtraction, the|Negation, the", "!boolneg"), ("argument alpha must not be", "!alpha"),
    ("invalid combination of arguments|must be Tensor, not|expected Tensor as element|has no attribute", "!args"),
    ("for complex (tensors|types|inputs)", "!complex"), ("can't be cast to the desired output", "!cast"),
    ("different dtypes|did not match|the same dtype|have same dtype|expected dtype", "!samedtype"),
    ("zero-dimensional|at least 1D|equal size|match the broadcast shape", "!shape"),
    ("could not infer output dtype", "!notfloat"), ("invalid default scalar type", "!default"),
]
messages = {}


def ask(call, *operands):
    """The type of the result, or the reason why there is none; the first message of each reason is kept."""
    try:
        answer = call(*map(tensor, operands))
    except Exception as error:  # noqa: BLE001 - the error is the answer
        text = str(error).strip().splitlines()[0]
        for pattern, reason in REASONS:
            if found := re.search(pattern, text):
                reason += SCALAR_TYPES[found[1]] if reason == "!k/" else ""
                messages.setdefault(reason, f"{type(error).__name__}: {text}")
                return reason
        raise
    answer = answer.dtype if isinstance(answer, torch.Tensor) else answer
    return NAMES[answer] if isinstance(answer, torch.dtype) else str(answer)


def tensor(operand):
    kind, name = operand.split(":")
    return NUMBERS[name] if kind == "w" else torch.ones([2] if kind == "d" else []).to(DTYPES[name])


def function(name, **options):
    return lambda a, b: getattr(torch, name)(a, b, **options)


def in_place(name):
    return lambda a, b: getattr(a, name)(b)


OPERATIONS = {name: function(name) for name in (
    "add sub rsub mul div true_divide floor_divide remainder fmod pow float_power maximum minimum fmax fmin "
    "eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
    "bitwise_right_shift atan2 logaddexp logaddexp2 hypot nextafter copysign ldexp xlogy heaviside gcd lcm isclose "
    "matmul").split()}
OPERATIONS.update({name: in_place(name) for name in (
    "add_ sub_ mul_ div_ true_divide_ floor_divide_ remainder_ fmod_ pow_ bitwise_and_ bitwise_or_ bitwise_xor_ copysign_ "
    "atan2_ eq_ ne_ lt_ le_ gt_ ge_ logical_and_ logical_or_ logical_xor_").split()})
OPERATIONS.update({
    "div_floor": function("div", rounding_mode="floor"), "div_trunc": function("div", rounding_mode="trunc"),
    "add_alpha2": function("add", alpha=2), "add_alpha_float": function("add", alpha=0.5),
    "where": lambda a, b: torch.where(torch.ones(2, dtype=torch.bool), a, b),
    "lerp": lambda a, b: torch.lerp(a, b, 0.5), "lerp_tensor_weight": lambda a, b: torch.lerp(a, a, b),
    "addcmul": lambda a, b: torch.addcmul(a, b, b),
    "clamp_min": lambda a, b: torch.clamp(a, min=b), "clamp_max": lambda a, b: torch.clamp(a, max=b),
    "cat": lambda a, b: torch.cat([a, b]), "stack": lambda a, b: torch.stack([a, b]),
    "mm": lambda a, b: torch.mm(a.reshape(-1, 1), b.reshape(1, -1)),
})
OPERATIONS.update({f"operator_{sign}": call for sign, call in {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge}.items()})
UNARY = ("acos acosh asin asinh atan atanh cos cosh erf erfc exp exp2 expm1 log log10 log1p log2 reciprocal rsqrt sigmoid sin "
         "sinh sqrt tan tanh angle abs neg ceil floor round trunc cumprod cumsum prod sum mean acos_ acosh_ asin_ asinh_ atan_ "
         "atanh_ cos_ cosh_ erf_ erfc_ exp_ exp2_ expm1_ log_ log10_ log1p_ log2_ reciprocal_ rsqrt_ sigmoid_ sin_ sinh_ sqrt_ tan_ "
         "tanh_ neg_ ceil_ floor_ round_ trunc_").split()


def operations():
    table = {}
    for (name, call), a in itertools.product(OPERATIONS.items(), OPERANDS):
        # An operator between two numbers is Python's own.
        asked = [not (name.startswith("operator") and a[0] == b[0] == "w") for b in OPERANDS]
        table.setdefault(name, {})[a] = [ask(call, a, b) if reaches else "-" for b, reaches in zip(OPERANDS, asked)]
    write_table(f"{HERE}/operations.csv", OPERANDS, table, [
        LEGEND, "keys: operations, lhs and columns: operands as in result_type.csv; - does not reach torch",
        "cell: the type of the result, !k/T when the CPU has no kernel for T, or !reason (reasons.json)"])


def unary():
    dimension = {"cumprod": [0], "cumsum": [0]}
    table = {name: {kind: [ask(lambda x: getattr(torch, name)(x, *dimension.get(name, [])), f"{kind}:{ty}") for ty in DTYPES]
                    for kind in "dz"} for name in UNARY}
    write_table(f"{HERE}/unary.csv", list(DTYPES), table, [
        LEGEND, "keys: functions, lhs: d for a tensor of shape [2], z for shape [], columns: its type",
        "cells as in operations.csv"])


def dtype_functions():
    dtypes = {**DTYPES, **STORAGE}
    for name, call in (("promote_types", torch.promote_types), ("can_cast", lambda a, b: int(torch.can_cast(a, b)))):
        rows = {a: [ask(lambda: call(dtypes[a], dtypes[b])) for b in dtypes] for a in dtypes}
        write_table(f"{HERE}/{name}.csv", list(dtypes), {name: rows}, [
            LEGEND, f"torch.{name}(lhs, column)", "cell: a type, or !reason (reasons.json)"])
    rows = {a: [ask(torch.result_type, a, b) for b in OPERANDS] for a in OPERANDS}
    write_table(f"{HERE}/result_type.csv", OPERANDS, {"result_type": rows}, [
        LEGEND, "torch.result_type(lhs, column); d: shape [2], z: shape [], w: Python number",
        "cell: a type, or !reason (reasons.json)"])


def clamp():
    operands = [f"{kind}:{ty}" for kind in "dz" for ty in "bool u8 i8 i32 i64 f16 bf16 f32 f64".split()]
    table = {x: {low: [ask(torch.clamp, x, low, high) for high in operands] for low in operands} for x in operands}
    write_table(f"{HERE}/clamp.csv", operands, table, [
        LEGEND, "torch.clamp(key, min=lhs, max=column); operands and cells as in operations.csv"])


def default_dtype():
    defaults = ["f32", "f64", "f16", "bf16"]
    table = {}

    def note(name, operands, default, answer):
        row = table.setdefault(name, {}).setdefault("+".join(operands), ["-"] * len(defaults))
        row[defaults.index(default)] = answer
    pairs = [pair.split("+") for pair in (
        "d:i32+d:i32 d:bool+d:bool d:u8+z:i64 z:i32+d:f16 d:i32+w:int d:i32+w:float z:i64+w:float d:f16+w:float "
        "d:f64+w:float z:f64+d:i32 d:i64+w:complex").split()]
    for default in defaults:
        torch.set_default_dtype(DTYPES[default])
        for a, b in itertools.product([o for o in OPERANDS if o[0] != "w"], ("w:int", "w:float", "w:complex")):
            note("result_type", (a, b), default, ask(torch.result_type, a, b))
        for name in "div true_divide atan2 logaddexp pow float_power hypot copysign xlogy".split():
            for pair in pairs:
                note(name, pair, default, ask(OPERATIONS[name], *pair))
        for name in "sqrt exp sin sigmoid reciprocal abs neg floor sum mean cumsum prod angle".split():
            more = [0] if name == "cumsum" else []
            for a in ("d:i32", "d:bool", "d:f16", "d:c64", "z:i64"):
                note(name, (a,), default, ask(lambda x: getattr(torch, name)(x, *more), a))
    torch.set_default_dtype(torch.float32)
    write_table(f"{HERE}/default_dtype.csv", defaults, table, [
        LEGEND, "key: function, lhs: its operands joined by +, columns: torch.set_default_dtype",
        "cells as in operations.csv"])


if __name__ == "__main__":
    dtype_functions()
    operations()
    unary()
    clamp()
    default_dtype()
    with open(f"{HERE}/reasons.json", "w", encoding="utf-8") as f:
        json.dump(messages, f, indent=1)
        f.write("\n")
