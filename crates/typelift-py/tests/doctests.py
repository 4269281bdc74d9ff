"""Runs the examples of the installed package, with no other package installed."""

import doctest
import importlib
import pkgutil
import sys

import typelift

attempted = failed = 0
for module in ["typelift", *(f"typelift.{found.name}" for found in pkgutil.iter_modules(typelift.__path__))]:
    if not module.endswith(("__main__", "_typelift")):
        result = doctest.testmod(importlib.import_module(module))
        attempted += result.attempted
        failed += result.failed
print(f"{attempted} examples, {failed} failed")
sys.exit(1 if failed or not attempted else 0)
