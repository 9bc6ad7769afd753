"""Finds the places of a module where a small change should make a test fail, and makes the change."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")

_COMPARED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_SUMS: Mapping[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
#: Parts of a node that are no code of the function, or run when it is defined.
_NO_CODE = {"annotation", "decorator_list", "returns", "type_params"}
#: What is called to write a log; its texts and whether it is called at all are nobody's contract.
_LOGS = {"log", "logger", "logging"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. `nth` counts those that read the same in one function, so that a mutant is found again after an edit
    elsewhere in the file."""

    file: str
    function: str
    operator: str
    before: str
    after: str
    nth: int = 0
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}, {self.operator}: {self.before} -> {self.after}"


class Spot(NamedTuple):
    """Where a mutant is in a parsed module. `put` makes the change; `statement` of `body` is the one that changes."""

    line: int
    put: Callable[[], None]
    body: list[ast.stmt]
    statement: ast.stmt


def mutants_of(file: str, tree: ast.Module, only: str | None = None) -> dict[Mutant, Spot]:
    """Of one function, or of all."""
    seen: Counter[Mutant] = Counter()
    found = {}
    for operator, function, node, new, spot in _Walk().walk(tree):
        if only not in (None, function):
            continue
        mutant = Mutant(file, function, operator, _text(node), _text(new))
        found[replace(mutant, nth=seen[mutant], line=spot.line)] = spot
        seen[mutant] += 1
    return found


def parsed(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text("utf-8"), file)


def mutated(mutant: Mutant) -> ast.Module:
    """The module with the change. Raises KeyError when the place is no longer there."""
    tree = parsed(mutant.file)
    mutants_of(mutant.file, tree, mutant.function)[mutant].put()
    return ast.fix_missing_locations(tree)


def with_probes(file: str, probes: Mapping[Mutant, int], recorder: str) -> ast.Module:
    """The module with a call of `recorder` before each statement that one of the mutants would change."""
    tree = parsed(file)
    spots = mutants_of(file, tree)
    for mutant, number in probes.items():
        spot = spots[mutant]
        call = ast.Expr(ast.Call(ast.Name(recorder, ast.Load()), [ast.Constant(number)], []))
        place = next(index for index, statement in enumerate(spot.body) if statement is spot.statement)
        spot.body.insert(place, ast.copy_location(call, spot.statement))
    return ast.fix_missing_locations(tree)


def chosen(rooms: Sequence[str], number: int, seed: int, usable: Callable[[Mutant], bool]) -> list[Mutant]:
    """So many mutants, the same ones for a seed: in turn from each room, of a room from each file, of a file by each
    operator."""
    random = Random(seed)
    ways = [_turns([_of_file(file, random) for file in _shuffled(_files(room), random)]) for room in rooms]
    found: list[Mutant] = []
    for mutant in _turns(ways):
        if len(found) == number:
            break
        if usable(mutant):
            found.append(mutant)
    return found


def _files(room: str) -> list[str]:
    path = Path(room)
    return [str(file) for file in sorted(path.rglob("*.py"))] if path.is_dir() else [room]


def _of_file(file: str, random: Random) -> Iterator[Mutant]:
    by_operator: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants_of(file, parsed(file)):
        by_operator[mutant.operator].append(mutant)
    ways = [iter(_shuffled(mutants, random)) for mutants in by_operator.values()]
    return _turns(_shuffled(ways, random))


def _turns(ways: Iterable[Iterator[_T]]) -> Iterator[_T]:
    """One of each in turn, until all are at their end."""
    left = [*ways]
    while left:
        for way in [*left]:
            for item in islice(way, 1):
                yield item
                break
            else:
                left.remove(way)


def _shuffled(items: list[_T], random: Random) -> list[_T]:
    return random.sample(items, len(items))


class _Walk:
    """Goes through a module and yields operator, function, node, its replacement and where."""

    def __init__(self) -> None:
        self._function = ""
        self._body: list[ast.stmt] = []
        self._statement: ast.stmt = ast.Pass()

    def walk(self, parent: ast.AST, prefix: str = "") -> Iterator[tuple[str, str, ast.AST, ast.AST, Spot]]:
        for name, value in ast.iter_fields(parent):
            if name in _NO_CODE or (name == "args" and isinstance(parent, _FUNCTIONS | ast.Lambda)):
                continue
            nodes = value if isinstance(value, list) else [value]
            for index, node in enumerate(nodes):
                if isinstance(node, ast.AST):
                    put = partial(_put, parent, name, index if isinstance(value, list) else None)
                    yield from self._at(node, parent, name, put, prefix)

    def _at(
        self, node: ast.AST, parent: ast.AST, field: str, put: Callable[[ast.AST], None], prefix: str
    ) -> Iterator[tuple[str, str, ast.AST, ast.AST, Spot]]:
        outer = self._function, self._body, self._statement
        if isinstance(node, _FUNCTIONS | ast.ClassDef):
            prefix += f"{node.name}."
        if isinstance(node, _FUNCTIONS):
            self._function = self._function or prefix[:-1]
        if isinstance(node, ast.stmt):
            self._body, self._statement = getattr(parent, field), node
        if not self._function.endswith("__repr__") and not _is_log(node):
            for operator, new in _changes(node, parent, field) if self._function else ():
                spot = Spot(getattr(node, "lineno", 0), partial(put, new), self._body, self._statement)
                yield operator, self._function, node, new, spot
            yield from self.walk(node, prefix)
        self._function, self._body, self._statement = outer


def _changes(node: ast.AST, parent: ast.AST, field: str) -> Iterator[tuple[str, ast.AST]]:
    """Operator and replacement. Parts of the node are shared, not copied."""
    match node:
        case ast.Compare(left, ops, comparators):
            for index, op in enumerate(ops):
                if other := _COMPARED.get(type(op)):
                    yield "comparison", ast.Compare(left, [*ops[:index], other(), *ops[index + 1 :]], comparators)
        case ast.BoolOp(op, values):
            yield "and-or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not(), operand):
            yield "not", operand
        case ast.BinOp(left, ast.Add() | ast.Sub() as op, right):
            yield "sum", ast.BinOp(left, _SUMS[type(op)](), right)
        case ast.AugAssign(target, ast.Add() | ast.Sub() as op, value):
            yield "sum", ast.AugAssign(target, _SUMS[type(op)](), value)
        case ast.Constant(bool() as value):
            yield "boolean", ast.Constant(not value)
        case ast.Constant(int() as value):
            yield from (("integer", ast.Constant(value + step)) for step in (1, -1))
        case ast.Return(ast.AST() as value) if not (isinstance(value, ast.Constant) and not value.value):
            yield "return", ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call() | ast.Await(ast.Call())):
            yield "call", ast.Pass()
        case ast.Break():
            yield "loop", ast.Continue()
        case ast.Continue():
            yield "loop", ast.Break()
    is_test = field == "test" and isinstance(parent, ast.If | ast.IfExp)
    if is_test and isinstance(node, ast.expr) and not isinstance(node, ast.Compare | ast.UnaryOp):  # those have another
        yield "condition", ast.UnaryOp(ast.Not(), node)


def _is_log(node: ast.AST) -> bool:
    names = {getattr(part, "attr", getattr(part, "id", "")).lstrip("_") for part in _chain(node)}
    return not names.isdisjoint(_LOGS)


def _chain(node: ast.AST) -> Iterator[ast.AST]:
    """The names of what is called: of `await a.b.c()` c, b and a."""
    if isinstance(node, ast.Expr | ast.Await):
        yield from _chain(node.value)
    elif isinstance(node, ast.Call):
        found: ast.AST = node.func
        while isinstance(found, ast.Attribute | ast.Name):
            yield found
            found = found.value if isinstance(found, ast.Attribute) else ast.Pass()


def _put(parent: ast.AST, field: str, index: int | None, new: ast.AST) -> None:
    place = getattr(parent, field)
    ast.copy_location(new, place if index is None else place[index])
    if index is None:
        setattr(parent, field, new)
    else:
        place[index] = new


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:200]
