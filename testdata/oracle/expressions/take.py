"""Takes random expressions of 2 to 6 operands from the installed torch (2.15.0) and paddle (3.3.1), types and shapes.

    python take.py torch|paddle [SEED] [COUNT]      writes torch.tsv or paddle.tsv next to it

A line has an expression in postfix notation and what it gives, `!` where an operation of it is refused. Operands are as the
program reads them; `clamp/3` is an operation of three operands, `operator_+/2` Python's operator. Every operation is asked
with ones, so that nothing depends on data. Expressions for which the CPU has no kernel are drawn again.
"""
import operator
import os
import random
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ["GLOG_minloglevel"] = "3"
warnings.filterwarnings("ignore")
NUMBERS = {"True": True, "1": 1, "2.5": 2.5, "1j": 1j}
SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
         "%": operator.mod, "**": operator.pow, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">=": operator.ge}
LONG = dict(zip("bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128 u16 f8e5m2".split(),
                "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 uint16 "
                "float8_e5m2".split()))


class NoKernel(Exception):
    pass


def torch_world():
    import torch
    names = {getattr(torch, long): short for short, long in {**LONG, "c32": "complex32"}.items()}

    def tensor(ty, shape):
        return torch.ones(shape).to(getattr(torch, LONG.get(ty, "complex32")))

    def describe(value):
        return f"{names[value.dtype]}[{','.join(map(str, value.shape))}]"
    calls = {name: getattr(torch, name) for name in (
        "add sub mul div floor_divide remainder fmod pow float_power maximum fmin eq lt ge logical_and atan2 hypot "
        "copysign xlogy").split()}
    calls.update({name: (lambda name: lambda a, b: getattr(a, name)(b))(name) for name in "add_ mul_ div_ pow_".split()})
    more = {"clamp": (3, torch.clamp), "addcmul": (3, torch.addcmul)}
    unary = {name: getattr(torch, name) for name in "sqrt exp abs neg floor".split()}
    return tensor, describe, calls, more, unary, Exception


def paddle_world():
    import paddle
    tensors = {}

    def tensor(ty, shape):
        key = (ty, tuple(shape))
        if key not in tensors:
            tensors[key] = paddle.cast(paddle.ones(shape, "float32"), LONG[ty])
        return tensors[key].clone()
    short = {long: name for name, long in LONG.items()}

    def describe(value):
        return f"{short[str(value.dtype).replace('paddle.', '')]}[{','.join(map(str, value.shape))}]"
    calls = {name: getattr(paddle, name) for name in (
        "add subtract multiply divide floor_divide pow remainder equal less_than logical_and maximum fmin atan2").split()}
    calls.update({name: (lambda name: lambda a, b: getattr(a, name)(b))(name) for name in "add_ divide_ less_than_".split()})
    return tensor, describe, calls, {}, {}, Exception


def is_kernel(error):
    text = str(error)
    return "is not registered" in text or "not implemented for '" in text


def draw_shape(source, base):
    shape = [1 if source.random() < 0.25 else size for size in base[source.randint(0, len(base)):]]
    if shape and source.random() < 0.04:
        shape[source.randrange(len(shape))] += 1
    return shape


def draw(source, world, types):
    tensor, describe, calls, more, unary, refused = world
    base = [source.choice([1, 2, 3, 0] if source.random() < 0.2 else [2, 3, 4]) for _ in range(source.randint(1, 4))]
    count = source.randint(2, 6)
    tokens, value, used = [], None, 0

    def operand(number):
        if number and source.random() < 0.25:
            text = source.choice(list(NUMBERS))
            return text, NUMBERS[text]
        ty, shape = source.choice(types), draw_shape(source, base)
        return f"{ty}[{','.join(map(str, shape))}]", tensor(ty, shape)

    def ones(result):
        ty, dims = describe(result)[:-1].split("[")
        return tensor(ty, [int(length) for length in dims.split(",") if length])
    text, value = operand(False)
    tokens.append(text)
    used = 1
    try:
        while used < count:
            if more and count - used >= 2 and source.random() < 0.1:
                name = source.choice(list(more))
                others = [operand(False) for _ in range(2)]
                tokens += [text for text, _ in others] + [f"{name}/3"]
                used += 2
                value = ones(more[name][1](value, *(other for _, other in others)))
                continue
            sign = source.random() < 0.5
            name = source.choice(list(SIGNS) if sign else list(calls))
            text, other = operand(sign)
            swap = source.random() < 0.4
            used += 1
            tokens = [text, *tokens] if swap else [*tokens, text]
            tokens.append(f"operator_{name}/2" if sign else f"{name}/2")
            pair = (other, value) if swap else (value, other)
            value = ones((SIGNS[name] if sign else calls[name])(*pair))
            if unary and source.random() < 0.1:
                name = source.choice(list(unary))
                tokens.append(f"{name}/1")
                value = ones(unary[name](value))
        return " ".join(tokens), describe(value)
    except refused as error:
        if is_kernel(error):
            raise NoKernel from None
        return " ".join(tokens), "!"


def main():
    name = sys.argv[1]
    seed, count = (int(x) for x in (sys.argv[2:] + ["1", "5000"][len(sys.argv) - 2:]))
    world = torch_world() if name == "torch" else paddle_world()
    types = list(LONG) if name == "torch" else [ty for ty in LONG if ty not in ("u16", "f8e5m2")]
    source, lines, skipped = random.Random(seed), [], 0
    while len(lines) < count:
        try:
            lines.append("\t".join(draw(source, world, types)))
        except NoKernel:
            skipped += 1
    with open(f"{HERE}/{name}.tsv", "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    print(f"{count} expressions, {sum(line.endswith('!') for line in lines)} refused, {skipped} drawn again")


if __name__ == "__main__":
    main()
