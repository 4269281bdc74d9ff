"""Takes the tables of this folder from the installed numpy (2.4.6 with ml_dtypes 0.6.0 for those committed).

    python take.py            writes can_cast.csv, operations.csv, many.csv and literals.csv next to it
    python take.py numpy-1    writes numpy-1.csv and numpy-1-many.csv, with numpy 1.26.4 (1.26.4 for those committed)

Operands: a:T an array of shape [2], z:T an array of shape [], w:KIND a Python number; all values are 1 or True. v:NUMBER is
a Python number with that value. `many` has seeded random operands.
"""
import os
import random
import re
import sys
import warnings

import numpy as np

IS_OLD = np.__version__.startswith("1.")
if not IS_OLD:
    import ml_dtypes

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(HERE))
from tables import write_table  # noqa: E402

LEGEND = f"numpy {np.__version__}" if IS_OLD else f"numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}"
BUILT_IN = ("bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 complex128 "
            "longdouble clongdouble").split()
ML = ("bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e4m3b11fnuz float8_e3m4 float8_e4m3 "
      "float8_e8m0fnu float4_e2m1fn float6_e2m3fn float6_e3m2fn int2 int4 uint2 uint4").split()
NUMBERS = {"bool": True, "int": 1, "float": 1.0, "complex": 1 + 0j}


def short(name):
    if name in ("bool", "longdouble", "clongdouble"):
        return name
    name = re.sub("^bfloat", "bf", name)
    return re.sub("^(u?)int|^(f)loat|^(c)omplex", lambda m: (m[1] + "i" if m[1] is not None and not m[1] else m[1] or "")
                  + (m[2] or "") + (m[3] or ""), name).replace("_", "")


DTYPES = {short(name): np.dtype(name) for name in BUILT_IN}
if not IS_OLD:
    DTYPES.update({short(name): np.dtype(getattr(ml_dtypes, name)) for name in ML})
NAMES = {dtype: name for name, dtype in DTYPES.items()}
ARRAYS = [f"a:{name}" for name in DTYPES]
OPERANDS = ARRAYS + [f"w:{kind}" for kind in NUMBERS]
FUNCTIONS = {name: getattr(np, name) for name in (
    "result_type add subtract multiply divide floor_divide remainder fmod power float_power maximum fmax equal less "
    "logical_and bitwise_and left_shift arctan2 logaddexp hypot nextafter copysign heaviside gcd ldexp matmul").split()}
FUNCTIONS["promote_types"] = lambda a, b: np.promote_types(a.dtype, b.dtype)
FUNCTIONS["where"] = lambda a, b: np.where([True, False], a, b)
FUNCTIONS["concatenate"] = lambda a, b: np.concatenate([a, b])
REASONS = [
    ("could not be promoted|not have a common DType|Cannot promote|promotion.*not supported", "!nocommon"),
    (r"ufunc '\w+' (not supported|did not contain a loop|cannot use)|could not be safely coerced", "!noloop"),
    ("boolean subtract", "!boolsub"),
    ("negative integer powers", "-"),
    ("out of bounds|too large to be represented|too large to convert", "!bounds"),
    ("does not have enough dimensions|is a scalar", "!nonumbers"),
]


def value(operand):
    kind, name = operand.split(":")
    if kind in "wv":
        return NUMBERS[name] if kind == "w" else eval(name)  # noqa: S307 - the literals of this file
    return np.ones(2 if kind == "a" else (), DTYPES[name])


def ask(call, *operands):
    try:
        answer = call(*map(value, operands))
        return NAMES.get(np.dtype(getattr(answer, "dtype", answer)), "!object")
    except Exception as error:  # noqa: BLE001 - the error is the answer
        found = [code for pattern, code in REASONS if re.search(pattern, str(error))]
        if not found: print(operands, call, repr(error)[:200])
        return found[0] if found else "!"


def operations():
    table = {}
    for name, call in FUNCTIONS.items():
        asked = ARRAYS if name in ("concatenate", "promote_types") else OPERANDS
        table[name] = {a: [ask(call, a, b) if b in asked else "-" for b in OPERANDS] for a in asked}
    write_table(f"{HERE}/operations.csv", OPERANDS, table, [
        LEGEND, "keys: functions, lhs and columns: operands (a: array, w: Python number); - not asked",
        "cell: the type of the result, or !nocommon, !noloop, !boolsub, !nonumbers as it is refused"])


LITERALS = [f"v:{text}" for text in "-1 127 128 255 256 -129 65536 4294967296 9223372036854775808 18446744073709551616".split()]
VALUES = [f"v:{text}" for text in (
    "True 1 -1 127 128 256 -129 65536 -65537 4294967296 9223372036854775808 1.0 65536.0 1e39 1j 1e39j").split()]


def literals():
    """Numbers that do not fit next to each integer type."""
    integers = [name for name in ARRAYS if DTYPES[name[2:]].kind in "iu" and name[2:] not in ("i2", "i4", "u2", "u4")]
    table = {name: {a: [ask(call, a, b) for b in LITERALS] for a in integers}
             for name, call in FUNCTIONS.items() if name not in ("concatenate", "promote_types", "matmul")}
    write_table(f"{HERE}/literals.csv", LITERALS, table, [
        LEGEND, "keys: functions, lhs: arrays, columns: Python numbers", "cell: the type of the result, or !bounds as it is refused"])


def numpy_1():
    """Arrays, arrays of rank 0 and Python numbers by their value."""
    zeros = [f"z:{name}" for name in DTYPES]
    all_operands = ARRAYS + zeros + VALUES
    table = {}
    for name, call in FUNCTIONS.items():
        asked = ARRAYS if name in ("concatenate", "promote_types", "matmul") else all_operands
        table[name] = {a: [ask(call, a, b) if b in asked else "-" for b in all_operands] for a in asked}
    write_table(f"{HERE}/numpy-1.csv", all_operands, table, [
        LEGEND, "keys: functions, lhs and columns: operands; - not asked", "cell: the type of the result, or how it is refused"])
    source, rows = random.Random(1), {}
    while len(rows) < 3000:
        operands = [source.choice(all_operands) for _ in range(source.randint(3, 6))]
        rows["+".join(operands)] = [ask(np.result_type, *operands)]
    write_table(f"{HERE}/numpy-1-many.csv", ["answer"], {"result_type": rows}, [LEGEND, "np.result_type of the operands in lhs"])


def can_cast():
    rows = {a: [str(int(np.can_cast(x, y))) for y in DTYPES.values()] for a, x in DTYPES.items()}
    write_table(f"{HERE}/can_cast.csv", list(DTYPES), {"safe": rows}, [LEGEND, "np.can_cast(lhs, column)"])


def many():
    """Types of NumPy itself; those of ml_dtypes do not promote in a way that any rule of theirs describes."""
    source = random.Random(1)
    pool = [f"a:{short(name)}" for name in BUILT_IN] + OPERANDS[-4:]
    rows = {}
    while len(rows) < 3000:
        operands = [source.choice(pool) for _ in range(source.randint(3, 6))]
        rows["+".join(operands)] = [ask(np.result_type, *operands)]
    write_table(f"{HERE}/many.csv", ["answer"], {"result_type": rows}, [LEGEND, "np.result_type of the operands in lhs"])


if __name__ == "__main__":
    if sys.argv[1:] == ["numpy-1"]:
        numpy_1()
    else:
        can_cast()
        operations()
        many()
        literals()
