"""Gives a function that is imported the code of a changed source. Nothing is imported again: who holds the function,
in a table or under another name, holds the changed one."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from functools import cached_property
from types import CodeType, FunctionType


def swapped(file: str, function: str, tree: ast.Module) -> bool:
    """Whether `function`, by its qualified name, has the code of `tree` now. False, and nothing changed, for what is
    not found: a function that its decorator hides, or one with other variables from outside of it."""
    names = function.split(".")
    codes = [*_codes(compile(tree, file, "exec", dont_inherit=True), names)]
    found = [*_functions(importlib.import_module(file.removesuffix(".py").replace("/", ".")), names)]
    pairs = [(live, code) for code in codes for live in found if _same(live.__code__, code)]
    if not codes or len(pairs) != len(codes):
        return False
    for live, code in pairs:
        live.__code__ = code
    return True


def _same(one: CodeType, other: CodeType) -> bool:
    return (one.co_firstlineno, one.co_freevars) == (other.co_firstlineno, other.co_freevars)


def _codes(code: CodeType, names: list[str]) -> Iterator[CodeType]:
    """Several of a property with a setter."""
    for part in code.co_consts:
        if isinstance(part, CodeType) and part.co_name == names[0]:
            yield from _codes(part, names[1:]) if names[1:] else [part]


def _functions(place: object, names: list[str]) -> Iterator[FunctionType]:
    for name in names:
        place = vars(place).get(name)
        if place is None:
            return
    if isinstance(place, staticmethod | classmethod):
        place = place.__func__
    parts = [place]
    if isinstance(place, property):
        parts = [place.fget, place.fset, place.fdel]
    elif isinstance(place, cached_property):
        parts = [place.func]
    for part in parts:
        found = inspect.unwrap(part) if callable(part) else part
        if isinstance(found, FunctionType):
            yield found
