"""Takes the tables of this folder from the installed jax (0.10.2 with ml_dtypes 0.6.0 for those committed).

    python take.py            writes operations.csv and many.csv next to it
    python take.py MODES      writes MODES.csv; MODES is strict, x32 or strict-x32

With 64-bit types (jax_enable_x64) and standard promotion, unless MODES says `strict` promotion or only 32 bits. Operands: a:T an array, k:T a weakly typed one, w:KIND a Python
number. A star marks a weakly typed result. Evaluation is abstract, so no kernel is needed. `many` has seeded random operands.
"""
import os
import random
import re
import sys
import warnings

os.environ.setdefault("JAX_PLATFORMS", "cpu")
warnings.filterwarnings("ignore")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from jax._src import dtypes  # noqa: E402
from jax._src.dtypes import TypePromotionError  # noqa: E402
from jax._src.lax.lax import _convert_element_type as convert  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(HERE))
from tables import write_table  # noqa: E402

MODES = sys.argv[1] if sys.argv[1:] else ""
jax.config.update("jax_enable_x64", "x32" not in MODES)
jax.config.update("jax_numpy_dtype_promotion", "strict" if "strict" in MODES else "standard")
LEGEND = f"jax {jax.__version__}, {MODES or 'jax_enable_x64'}"
LONG = dict(zip(
    "bool u8 u16 u32 u64 i8 i16 i32 i64 f16 f32 f64 c64 c128 bf16 f8e4m3fn f8e5m2 f8e4m3fnuz f8e5m2fnuz f8e4m3b11fnuz "
    "f8e3m4 f8e4m3 f8e8m0fnu f4e2m1fn f6e2m3fn f6e3m2fn i2 i4 u2 u4".split(),
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 complex128 bfloat16 "
    "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e4m3b11fnuz float8_e3m4 float8_e4m3 "
    "float8_e8m0fnu float4_e2m1fn float6_e2m3fn float6_e3m2fn int2 int4 uint2 uint4".split()))
DTYPES = {short: np.dtype(getattr(ml_dtypes, long, long)) for short, long in LONG.items()}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
NUMBERS = {"bool": True, "int": 1, "float": 1.0, "complex": 1 + 0j}
OPERANDS = ([f"a:{name}" for name in DTYPES] + [f"k:{name}" for name in "i32 i64 f32 f64 c64 c128".split()]
            + [f"w:{kind}" for kind in NUMBERS])
FUNCTIONS = {name: getattr(jnp, name) for name in (
    "add subtract multiply maximum fmax equal less bitwise_and true_divide floor_divide remainder power float_power "
    "logical_and left_shift arctan2 logaddexp hypot nextafter copysign heaviside gcd ldexp").split()}
FUNCTIONS["promote_types"] = jnp.promote_types
FUNCTIONS["where"] = lambda a, b: jnp.where(jnp.array([True, False]), a, b)
FUNCTIONS["concatenate"] = lambda a, b: jnp.concatenate([a, b])


def ask(call, *operands):
    if call is jnp.promote_types:
        try:
            return NAMES[call(*(DTYPES[o[2:]] for o in operands))]
        except TypePromotionError:
            return "!nopath"
    arrays = [jax.ShapeDtypeStruct((2,), DTYPES[o[2:]], weak_type=o[0] == "k") for o in operands if o[0] != "w"]

    def apply(*tensors):
        rest = iter(tensors)
        return call(*(NUMBERS[o[2:]] if o[0] == "w" else next(rest) for o in operands))
    try:
        answer = jax.eval_shape(apply, *arrays)
        return NAMES[np.dtype(answer.dtype)] + ("*" if answer.weak_type else "")
    except (TypeError, ValueError, NotImplementedError, KeyError) as error:
        if re.search("no available implicit dtype promotion path", str(error)):
            return "!nopath"
        return "!kind"


if __name__ == "__main__":
    table = {}
    for name, call in FUNCTIONS.items():
        kinds = {"concatenate": "ak", "promote_types": "a"}.get(name, "akw")
        asked = [o for o in OPERANDS if o[0] in kinds]
        table[name] = {a: [ask(call, a, b) if b in asked else "-" for b in OPERANDS] for a in asked}
    write_table(f"{HERE}/{MODES or 'operations'}.csv", OPERANDS, table, [
        LEGEND, "keys: functions, lhs and columns: operands (a: array, k: weak array, w: Python number); - not asked",
        "cell: the type of the result (* weak), or !nopath, !kind as it is refused"])
    if MODES:
        sys.exit()
    source, rows = random.Random(1), {}
    while len(rows) < 3000:
        operands = [source.choice(OPERANDS) for _ in range(source.randint(3, 6))]

        def total(*values):
            dtype, weak = dtypes.result_type(*values, return_weak_type_flag=True)
            return convert(1, dtype, weak_type=weak)
        rows["+".join(operands)] = [ask(total, *operands)]
    write_table(f"{HERE}/many.csv", ["answer"], {"result_type": rows}, [LEGEND, "the lattice's answer for the operands in lhs"])
