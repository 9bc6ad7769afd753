"""Commands of a POSIX shell that list folders, search and delete, and what they print. Pure.

What is printed stands between two marks, the last of which has the number of lines. So it shows when a client cuts it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from posixpath import join
from typing import Any, NamedTuple

from proxy.providers.p5_cursor.bridge.commands import named, quoted, says

#: Lines that a search prints, and entries of a folder.
MAX_LINES = 2000


class Printed(NamedTuple):
    """The lines that a command printed. `cut`: there were more."""

    lines: list[str]
    cut: bool


def _framed(command: str, tag: str) -> str:
    """The command with marks around the first lines that it prints."""
    begin, end = f"[begin {tag}]", f"[end {tag} "
    return f'{command} | awk \'BEGIN {{print "{begin}"}} NR<={MAX_LINES} {{print}} END {{print "{end}" NR "]"}}\''


def _within(printed: str, tag: str) -> Printed | None:
    """The lines between the marks; None when one is missing."""
    _, begun, rest = printed.partition(f"[begin {tag}]")
    body, ended, last = rest.rpartition(f"[end {tag} ")
    count = re.match(r"([0-9]{1,12})\]", last)
    if not (begun and ended and count):
        return None
    lines = [line.removesuffix("\r") for line in body.removeprefix("\r").removeprefix("\n").split("\n")[:-1]]
    return Printed(lines, cut=int(count[1]) != len(lines))


def list_command(path: str, tag: str) -> str:
    """Prints the entries of a folder, folders with a slash behind them."""
    entries = _framed("printf '%s\\n' \"$l\"", tag)
    return f"l=$(ls -1Ap {named(path.rstrip('/') + '/')}) && {entries}"


def listed(printed: str, tag: str, path: str, ignore: Sequence[str]) -> dict[str, Any] | None:
    """An `LsDirectoryTreeNode` of what `list_command` printed; None when the client cut it."""
    found = _within(printed, tag)
    if found is None or (found.cut and len(found.lines) != MAX_LINES):
        return None
    names = [line for line in found.lines if line and not any(fnmatchcase(line.rstrip("/"), one) for one in ignore)]
    folders = [name.rstrip("/") for name in names if name.endswith("/")]
    files = [name for name in names if not name.endswith("/")]
    return {
        "abs_path": path,
        "children_dirs": [{"abs_path": join(path, name)} for name in folders],
        "children_files": [{"name": name} for name in files],
        "children_were_processed": not found.cut,
        "num_files": len(files),
    }


def delete_command(path: str, tag: str) -> str:
    return f"rm {named(path)} && echo '[deleted {tag}]'"


def deleted(printed: str, tag: str) -> bool:
    return says(printed, f"[deleted {tag}]")


def search_command(args: Mapping[str, Any], path: str, tag: str) -> str:
    """Searches files for a pattern, or for names by a glob alone, with ripgrep where it is installed."""
    place = named(path)
    search = _by_pattern(args, place) if args.get("pattern") else _by_name(str(args.get("glob") or ""), place)
    return f"ls -d {place} >/dev/null && {_framed(f'{{ {search}; }} 2>&1', tag)}"


def _by_name(glob: str, place: str) -> str:
    name = " -o ".join(f"-name {quoted(one)}" for one in _names(glob.removeprefix("!")))
    which = f" {'! ' if glob.startswith('!') else ''}'(' {name} ')'" if glob else ""
    return f"find -H {place} -type f{which} -not -path '*/.git/*'"


def _by_pattern(args: Mapping[str, Any], place: str) -> str:
    pattern, glob, mode = str(args["pattern"]), str(args.get("glob") or ""), args.get("output_mode")
    rg, grep = ["rg --no-config --no-heading --color never -nH"], ["grep -rnIH $r"]
    for role, option in (("context_before", "-B"), ("context_after", "-A"), ("context", "-C")):
        if isinstance(args.get(role), int) and mode not in _SHORT:
            rg.append(f"{option} {args[role]}")
            grep.append(f"{option} {args[role]}")
    if args.get("case_insensitive"):
        rg.append("-i")
        grep.append("-i")
    if args.get("multiline"):
        rg.append("-U --multiline-dotall")
    if args.get("type"):
        rg.append(f"-t {quoted(str(args['type']))}")
    if glob:
        rg.append(f"-g {quoted(glob)}")
        option = "--exclude" if glob.startswith("!") else "--include"
        grep += [f"{option}={quoted(one)}" for one in _names(glob.removeprefix("!"))]
    if mode in _SHORT:
        rg.append(_SHORT[mode])
        grep.append(_SHORT[mode])
    ends = f"-e {quoted(pattern)} -- {place}"
    kind = "r=-E; printf x | grep -qP x 2>/dev/null && r=-P"  # not every grep knows what ripgrep's patterns have
    return f"if command -v rg >/dev/null; then {' '.join(rg)} {ends}; else {kind}; {' '.join(grep)} {ends}; fi"


#: output mode -> the option of both programs
_SHORT: Mapping[Any, str] = {"files_with_matches": "-l", "count": "-c"}

#: One choice in a glob; the most patterns that one stands for, and the longest one that is read.
_CHOICE = re.compile(r"(.*?)\{([^{}]*)\}(.*)", re.DOTALL)
MAX_NAMES, MAX_GLOB_CHARS = 64, 1000


def _names(glob: str) -> list[str]:
    """The patterns of file names in a glob, since find and grep know no choices.

    >>> _names("src/**/*.{ts,tsx}")
    ['*.ts', '*.tsx']
    """
    globs = [glob] if len(glob) <= MAX_GLOB_CHARS else []
    while len(globs) < MAX_NAMES and (choices := [one for one in globs if _CHOICE.fullmatch(one)]):
        globs = [one for one in globs if one not in choices]
        for found in map(_CHOICE.fullmatch, choices):
            globs += [f"{found[1]}{word}{found[3]}" for word in found[2].split(",")] if found else []
    return list(dict.fromkeys(one.rpartition("/")[2] for one in globs)) or [glob.rpartition("/")[2]]


def found(printed: str, tag: str, args: Mapping[str, Any], path: str) -> dict[str, Any] | None:
    """A `GrepSuccess` of what `search_command` printed; None when it is not all there, or a complaint."""
    told = _within(printed, tag)
    if told is None:
        return None
    begin = (f"./{path}" if path.startswith("-") else path).rstrip("/")
    lines = [line for line in told.lines if line.startswith(begin)]
    if not lines and any(line.strip() for line in told.lines):
        return None
    lines, limits = _limited(lines, args, cut=told.cut)
    mode = args.get("output_mode")
    if not args.get("pattern") or mode == "files_with_matches":
        mode, union = "files_with_matches", _files(lines)
    elif mode == "count":
        union = _counts(lines)
    else:
        mode, union = "content", _matches(lines)
    [members] = union.values()
    members |= limits
    head = {"pattern": str(args.get("pattern") or ""), "path": path, "output_mode": mode}
    return {**head, "workspace_results": {path: union}}


def _files(lines: list[str]) -> dict[str, Any]:
    files = list(dict.fromkeys(lines))
    return {"files": {"files": files, "total_files": len(files)}}


_COUNT = re.compile(r"(.+):([0-9]{1,9})")


def _counts(lines: list[str]) -> dict[str, Any]:
    rows = [found for line in lines if (found := _COUNT.fullmatch(line)) is not None and found[2] != "0"]
    counts = [{"file": row[1], "count": int(row[2])} for row in rows]
    total = sum(int(row[2]) for row in rows)
    return {"count": {"counts": counts, "total_files": len(counts), "total_matches": total}}


_MATCH = re.compile(r"(.+?):([1-9][0-9]{0,8}):(.*)", re.DOTALL)
#: A line beside a match; names of files may have such a part as well.
_BESIDE = re.compile(r"-([1-9][0-9]{0,8})-")
#: Such parts of a line that are looked at, and characters of a name.
MAX_PARTS, MAX_NAME_CHARS = 32, 4096


def _beside(line: str) -> Iterator[re.Match[str]]:
    return islice(_BESIDE.finditer(line, 0, MAX_NAME_CHARS), MAX_PARTS)


def _matches(lines: list[str]) -> dict[str, Any]:
    rows = [_MATCH.fullmatch(line) for line in lines]
    given = {row[1] for row in rows if row is not None}
    # a line beside a match may look like a match in a file whose name begins with that of the true one
    known = {name for name in given if not any(name[: part.start()] in given for part in _beside(name))}
    files: dict[str, list[dict[str, Any]]] = {}
    matched = 0
    for line, row in zip(lines, rows, strict=True):
        if row is not None and row[1] in known:
            matched += 1
            files.setdefault(row[1], []).append({"line_number": int(row[2]), "content": row[3]})
            continue
        part = next((part for part in _beside(line) if line[: part.start()] in known), None)
        if part is not None:
            one = {"line_number": int(part[1]), "content": line[part.end() :], "is_context_line": True}
            files.setdefault(line[: part.start()], []).append(one)
    matches = [{"file": name, "matches": found} for name, found in files.items()]
    totals = {"total_lines": sum(map(len, files.values())), "total_matched_lines": matched}
    return {"content": {"matches": matches, **totals}}


def _limited(lines: list[str], args: Mapping[str, Any], *, cut: bool) -> tuple[list[str], dict[str, Any]]:
    """The lines that are asked for, and the members that say so."""
    offset, most = (_count(args.get(name)) for name in ("offset", "head_limit"))
    kept = lines[offset or 0 :][: most or None]
    limits: dict[str, Any] = {"client_truncated": True} if cut or len(kept) < len(lines) - (offset or 0) else {}
    if most:
        limits["head_limit_applied"] = most
    if offset:
        limits["offset_applied"] = offset
    return kept, limits


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
