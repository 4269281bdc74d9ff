"""Read, check, repair, rewrite and write OpenVINO IR models without OpenVINO.

>>> import typelift
>>> model = typelift.from_text('''
...     images = Parameter : f16[1,3]
...     scale = Const(0.5) : f32[]
...     y = Multiply(images, scale)
...     r = Result(y)
... ''')
>>> for d in model.check().errors:
...     print(d.code, d.layer)
type-mismatch y
>>> _ = model.convert(align="pytorch")
>>> model.inputs["images"].element_type, model["y"].outputs[0].shape
('f16', Shape('[1,3]'))
>>> typelift.promote("f16[2]", "i64[]", rules="pytorch")
'f16[2]'
"""

import json as _json
from typing import Literal as _Literal
from typing import Optional as _Optional
from typing import Union as _Union
from typing import cast as _cast

from typelift import _typelift
from typelift._arrays import element_type
from typelift._blocks import Block, Blocks, StoredWeights
from typelift._data import (
    Application,
    Applications,
    BlockStats,
    Change,
    Changes,
    Constraint,
    Conversion,
    Conversions,
    DecompressedStats,
    Derivation,
    Diagnostic,
    Diagnostics,
    Dim,
    LargeTensor,
    Lengths,
    OperationStats,
    Promotion,
    Retargeting,
    Shape,
    Skipped,
    StatementEffect,
    Stats,
    Step,
    Symbol,
    TensorStats,
    WeightPath,
    WeightStats,
)
from typelift._edit import Graph, GraphLayer, GraphTensor
from typelift._errors import ModelError, RuleError, UnknownNameError
from typelift._layer import Interface, Layer, Tensor
from typelift._model import Model, View, check, diff, fix, from_text, loads
from typelift._model import open as open
from typelift._rules import Match, MatchTensor, Pass, Rule
from typelift._verify import Verification, verify

__version__ = _typelift.__version__

# `open` is not here: `from typelift import *` must not replace the function of Python.
__all__ = [
    "Application",
    "Applications",
    "Block",
    "BlockStats",
    "Blocks",
    "Change",
    "Changes",
    "Constraint",
    "Conversion",
    "Conversions",
    "DecompressedStats",
    "Derivation",
    "Diagnostic",
    "Diagnostics",
    "Dim",
    "Graph",
    "GraphLayer",
    "GraphTensor",
    "Interface",
    "LargeTensor",
    "Layer",
    "Lengths",
    "Match",
    "MatchTensor",
    "Model",
    "ModelError",
    "OperationStats",
    "Pass",
    "Promotion",
    "Retargeting",
    "Rule",
    "RuleError",
    "Shape",
    "Skipped",
    "Stats",
    "StatementEffect",
    "Step",
    "StoredWeights",
    "Symbol",
    "Tensor",
    "TensorStats",
    "UnknownNameError",
    "Verification",
    "View",
    "WeightPath",
    "WeightStats",
    "__version__",
    "check",
    "compare_promotions",
    "diff",
    "element_type",
    "explain",
    "fix",
    "from_text",
    "loads",
    "promote",
    "promotion_table",
    "verify",
]


def explain(code: _Optional[str] = None) -> str:
    """Explains a finding with a wrong and a right example. Without a code, lists all codes with a line on each.

    >>> import typelift
    >>> print(typelift.explain("type-mismatch").splitlines()[0])
    ## type-mismatch

    Raises:
        ValueError: No finding has this code.
    """
    return _typelift.explain(code)

_RuleSet = _Literal[
    "openvino", "pytorch", "paddle", "paddle-2.6", "numpy", "numpy-1", "jax", "jax-strict"
]



def promote(*operands: str, rules: _RuleSet = "openvino", op: str = "add", **settings: _Union[str, bool]) -> Promotion:
    """Returns the common type of operands, and the shape of the result.

    >>> import typelift
    >>> typelift.promote("f16[2]", "i64[]", rules="pytorch")
    'f16[2]'
    >>> result = typelift.promote("u8[3,1]", "i8[4]", rules="numpy")
    >>> result.element_type, result.shape
    ('i16', Shape('[3,4]'))

    Args:
        operands: A type with a shape, such as ``u8[2]``, ``i64[]``, ``f16[...]``. A type alone has dimensions.
            ``True``, ``1``, ``1.0`` and ``1j`` are Python numbers.
        rules: The name of a rule set, such as ``"pytorch"``; ``typelift promote --help`` lists them.
        op: The operation, if the rules have several.
        settings: Options of the rules, such as ``promote_unsafe=True``.

    Raises:
        RuleError: The operands have no common type.
        ValueError: An operand, the rules, the operation or a setting is unknown.
    """
    record = _json.loads(_typelift.promote(list(operands), rules, op, _options(settings)))
    if "code" in record:
        message, help = record["message"], record.get("help") or ""
        diagnostic = Diagnostic(record["code"], "error", message, notes=tuple(record.get("steps", ())), help=help)
        raise RuleError(message, (diagnostic,))
    return Promotion.from_record(record)


def promotion_table(
    rules: _RuleSet = "openvino", *, op: str = "add", **settings: _Union[str, bool]
) -> dict[tuple[str, ...], _Optional[str]]:
    """Returns the common type of every pair of types; ``None`` if there is none. For an operation of one operand the
    key is one type.

    >>> import typelift
    >>> table = typelift.promotion_table("pytorch")
    >>> table["f16", "i64"], table["u8", "i8"]
    ('f16', 'i16')

    Args:
        rules: The name of a rule set.
        op: The operation, if the rules have several.
        settings: Options of the rules.

    Raises:
        ValueError: The rules, the operation or a setting is unknown.
    """
    found: dict[tuple[str, ...], _Optional[str]] = {}
    for _, ((_, *columns), *rows) in _typelift.promotion_tables(rules, op, _options(settings)):
        for name, *cells in rows:
            for column, cell in zip(columns, cells):
                key = (name,) if columns == ["result"] else (name, column)
                found.setdefault(key, cell if cell not in ("", "-") else None)
    return found


def compare_promotions(*operands: str, op: str = "add") -> dict[str, _Union[Promotion, RuleError]]:
    """Returns the common type of operands for every rule set that has the operation, or the reason why there is none.

    >>> import typelift
    >>> found = typelift.compare_promotions("u8", "i8")
    >>> found["pytorch"], found["numpy"]
    ('i16', 'i16')

    Raises:
        ValueError: No rule set has such operands or such an operation.
    """
    found: dict[str, _Union[Promotion, RuleError]] = {}
    refusal: _Optional[ValueError] = None
    for rules in _typelift.rule_sets(op):
        try:
            found[rules] = promote(*operands, rules=_cast(_RuleSet, rules), op=op)
        except RuleError as error:
            found[rules] = error
        except ValueError as error:
            # Rule sets differ in the types that they know.
            refusal = error
    if not found:
        raise refusal or ValueError(f"no rule set has the operation `{op}`")
    return found


def _options(settings: dict[str, _Union[str, bool]]) -> list[tuple[str, str]]:
    given = ((name.replace("_", "-"), value) for name, value in settings.items() if value is not False)
    return [(name, "" if value is True else str(value)) for name, value in given]
