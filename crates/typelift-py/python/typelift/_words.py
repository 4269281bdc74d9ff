"""Translation of the program's messages into those of the package: Python arguments instead of options."""

from __future__ import annotations

import re
import shlex

# Names of arguments that differ from the option's name with underscores.
_ARGUMENTS = {"set-type": "set_types", "set-shape": "set_shapes", "input-type": "input_types", "output-type": "output_types"}

# Options without a value.
_FLAGS = {
    "keep-io",
    "mark-keeps",
    "keep-noop-converts",
    "eliminate-converts",
    "promote-unsafe",
    "pytorch-scalar-promotion",
}

_KNOWN = {
    *_ARGUMENTS,
    *_FLAGS,
    *("align", "types", "compress", "decompress", "like", "max-error", "keep", "target", "use", "rules", "op"),
    "u64-integer-promotion-target",
}

_LISTS = {"keep", "use", "decompress"}
_PAIRS = {"set-type", "set-shape", "input-type", "output-type", "types"}


def for_python(text: str) -> str:
    """Returns a message that names Python arguments.

    >>> for_python("`typelift convert --align pytorch a.xml -o fixed.xml` inserts 1 Convert")
    "`model.convert(align='pytorch')` inserts 1 Convert"
    >>> for_python("`typelift convert --types` with `--keep a --keep 'b c'` keeps their types")
    "`model.convert(types=…)` with `keep=['a', 'b c']` keeps their types"
    >>> for_python("`--input-type` takes the type and computes what the file does")
    '`input_types` takes the type and computes what the file does'
    >>> for_python("--mode is not an option of the openvino rules")
    '`mode` is not an option of the openvino rules'
    """
    if "--" not in text and "typelift " not in text:
        return text
    text = re.sub("`([^`]*)`", _span, text)
    text = re.sub(r"^--([a-z0-9-]+)(?= is not an option| does not take)", lambda m: f"`{_argument(m[1])}`", text)
    return re.sub(r"(?<![\w-])--([a-z0-9-]+)", lambda m: f"`{_argument(m[1])}`" if m[1] in _KNOWN else m[0], text)


def _argument(option: str) -> str:
    return _ARGUMENTS.get(option, option.replace("-", "_"))


def _span(span: re.Match[str]) -> str:
    """Translates a command, or options, in backticks."""
    try:
        words = shlex.split(span[1])
    except ValueError:
        return span[0]
    if words[:1] == ["typelift"] and words[1:2] in (["convert"], ["rewrite"]):
        return f"`model.{words[1]}({_arguments(words[2:], alone='…')})`"
    if words[:2] == ["typelift", "check"] and "--fix" in words:
        return "`model.fix()`"
    if words and words[0].startswith("--") and words[0].lstrip("-").partition("=")[0] in _KNOWN:
        return f"`{_arguments(words, alone=None)}`"
    return span[0]


def _arguments(words: list[str], alone: str | None) -> str:
    """Translates options to keywords; `alone` is the value of an option without one."""
    given: dict[str, list[str]] = {}
    at = 0
    while at < len(words):
        option, equals, value = words[at].lstrip("-").partition("=")
        at += 1
        if not words[at - 1].startswith("--") or option not in _KNOWN:
            # Skips a file, or the destination of the result.
            at += words[at - 1] == "-o"
            continue
        if option not in _FLAGS and not equals and at < len(words) and not words[at].startswith("-"):
            value, at = words[at], at + 1
        given.setdefault(option, []).extend([value] if value else [])
    return ", ".join(_keyword(option, values, alone) for option, values in given.items())


def _keyword(option: str, values: list[str], alone: str | None) -> str:
    argument = _argument(option)
    if option in _FLAGS:
        return f"{argument}=True"
    if not values:
        return argument if alone is None else f"{argument}={alone}"
    if option in _PAIRS:
        pairs = (pair.split("=", 1) for value in values for pair in value.split(","))
        return f"{argument}={dict(pair for pair in pairs if len(pair) == 2)}"
    return f"{argument}={values if option in _LISTS else values[0]!r}"
