"""What rules look at in the source: every file is read once, whichever of them asks first."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from proxy.errors import PROGRAM

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "proxy"


class Source(NamedTuple):
    """What is looked at of a file. Not its tree: half a million nodes that stay would slow down every test behind.

    imports    statements, and calls of `import_module` and `Later`
    functions  line and name, lines without the docstring
    texts      all that the source can say: no documentation of its own. What is put into a text is "…", but for the
               name of the program
    """

    imports: list[ast.Import | ast.ImportFrom | ast.Call]
    functions: list[tuple[str, int]]
    classes: list[str]
    texts: list[str]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def source_of(path: Path) -> Source:
    return source_in(path.read_text("utf-8"))


def source_in(text: str) -> Source:
    source = Source([], [], [], [])
    for node, in_text in _nodes(ast.parse(text)):
        if isinstance(node, ast.Constant | ast.JoinedStr) and not in_text:
            source.texts.append("".join(map(_part, node.values if isinstance(node, ast.JoinedStr) else [node])))
        elif isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.Call) and _is_import(node)):
            source.imports.append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = _lines(node) - (_lines(node.body[0]) if ast.get_docstring(node) else 0)
            source.functions.append((f"{node.lineno} {node.name}", length))
        elif isinstance(node, ast.ClassDef):
            source.classes.append(node.name)
    return source


def _nodes(tree: ast.Module) -> Iterator[tuple[ast.AST, bool]]:
    """As ast.walk, in half the time and without docstrings; with whether a node stands within a text."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, in_text = waiting.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        yield node, in_text
        in_text = in_text or isinstance(node, ast.JoinedStr)
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                waiting.append((value, in_text))
            elif isinstance(value, list):
                waiting += [(item, in_text) for item in value if isinstance(item, ast.AST)]


def _is_import(call: ast.Call) -> bool:
    name = getattr(call.func, "id", getattr(call.func, "attr", None))
    return (
        name in ("import_module", "__import__", "Later") and bool(call.args) and isinstance(call.args[0], ast.Constant)
    )


def _part(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    named = isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name) and node.value.id
    return PROGRAM if named in ("PROGRAM", "APP") else "…"


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or 0) - node.lineno + 1
