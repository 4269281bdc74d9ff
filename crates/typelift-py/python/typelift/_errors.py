"""Exceptions, with their diagnostics as data."""

from __future__ import annotations

from collections.abc import Iterable

from typelift._data import Diagnostic, Diagnostics, shown


class _WithDiagnostics(Exception):
    """An error with a message and its diagnostics."""

    diagnostics: Diagnostics
    """Everything that is wrong, causes first."""

    def __init__(self, message: str, diagnostics: Iterable[Diagnostic] = ()) -> None:
        super().__init__(message, Diagnostics(diagnostics))
        self.diagnostics = self.args[1]

    def __str__(self) -> str:
        return shown(str(self.args[0]))


class ModelError(_WithDiagnostics):
    """A model that OpenVINO refuses, or an edit after which OpenVINO would refuse it.

    >>> import typelift
    >>> try:
    ...     typelift.loads("<html/>")
    ... except typelift.ModelError as error:
    ...     print([diagnostic.code for diagnostic in error.diagnostics])
    ['not-an-ir']
    """


class RuleError(_WithDiagnostics):
    """A rule or statement that cannot be read or applied, or operands that have no common type.

    >>> import typelift
    >>> try:
    ...     typelift.promote("u64[2]", "i32[2]")
    ... except typelift.RuleError as error:
    ...     print(error.diagnostics[0].code)
    unsigned-to-signed
    """


class UnknownNameError(KeyError):
    """No layer, tensor, input or output has this name, or more than one has it."""

    def __str__(self) -> str:
        return shown(str(self.args[0])) if self.args else ""


def model_error(message: str, document: str) -> ModelError:
    """Called by the native part: creates an error from the document of ``check --format json``."""
    return ModelError(message, Diagnostics.from_json(document))


def rule_error(message: str, document: str) -> RuleError:
    """Called by the native part: creates a rule error from such a document."""
    return RuleError(message, Diagnostics.from_json(document))


def unknown_name(message: str, _document: str) -> UnknownNameError:
    """Called by the native part."""
    return UnknownNameError(message)


def value_error(message: str, _document: str) -> ValueError:
    """Called by the native part."""
    return ValueError(shown(message))
