"""Commands of a POSIX shell in place of a client's tools for files, and what they print. Pure.

A file comes back byte by byte or not at all: a mark and its size are printed before it, a mark after it. Where the
client changed anything on the way, the file is asked for again in pieces of base64. A file is written beside its place,
and moved there when its checksum is right.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import basename, dirname, join
from typing import Any

#: The largest file that is read or written by commands, in bytes.
MAX_FILE_BYTES = 2 * 1024 * 1024
#: Bytes of a file in one command that writes: Linux passes no argument of more than 128 KiB.
WRITTEN_AT_ONCE = 90_000
#: Lines that a search prints, and entries of a folder.
MAX_LINES = 2000

#: Printed before the size of a file and after the file, and around a piece of it.
START, END = "[begin of file]", "[end of file]"
PIECE, PIECE_END = "[piece of file]", "[end of piece]"
#: Printed when a file was written.
WRITTEN = "[written: {size} bytes]"
#: Printed when what arrived in the shell is not what was sent.
DIFFERS = "[bytes differ]"

#: The mark and the size. Without the mark, a line of a shell that starts, or one of the file, could be a size.
_SIZE = re.compile(rf"^{re.escape(START)}[ \t\r]*\n[ \t]*([0-9]{{1,12}})(?:[ \t\r][^\n]*)?\n", re.MULTILINE)
_NO_CHARACTER = "\ufffd".encode()
#: Characters that some client may change on the way to its shell.
_ODD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def quoted(word: str) -> str:
    r"""The word for a POSIX shell.

    >>> quoted("it's")
    "'it'\\''s'"
    """
    return "'" + word.replace("'", "'\\''") + "'"


def fits_shell(path: str) -> bool:
    """Whether a path can be named in a command and found again in what it prints."""
    return bool(path) and _ODD.search(path) is None and "\n" not in path and "\r" not in path and "\t" not in path


def _named(path: str) -> str:
    """A path as a word that is no option."""
    return quoted(f"./{path}" if path.startswith("-") else path)


# -- reading


@dataclass(frozen=True, slots=True)
class Source:
    """What is read: a whole file, or `limit` lines of it from line `offset` on. A negative offset counts from the
    end."""

    path: str
    offset: int | None = None
    limit: int | None = None

    @property
    def whole(self) -> bool:
        return self.offset is None and self.limit is None

    @property
    def command(self) -> str:
        path = _named(self.path)
        if self.whole:
            return f"cat {path}"
        first = self.offset or 1
        if first < 0:
            return f"tail -n {-first} {path}" + ("" if self.limit is None else f" | head -n {self.limit}")
        last = "$" if self.limit is None else str(first + max(self.limit, 1) - 1)
        return f"sed -n '{max(first, 1)},{last}p' {path}"


def read_command(source: Source) -> str:
    """Prints the size, the bytes and the marks, with commands that only read.

    >>> print(read_command(Source("/w/a.txt")))
    echo '[begin of file]' && wc -c '/w/a.txt' && cat '/w/a.txt' && echo '[end of file]'
    """
    return f"{size_command(source)} && {source.command} && echo '{END}'"


def size_command(source: Source) -> str:
    """Prints the size."""
    size = f"wc -c {_named(source.path)}" if source.whole else f"{source.command} | wc -c"
    return f"echo '{START}' && {size}"


def read_back(printed: str) -> bytes | None:
    """The bytes in what `read_command` printed; None when they are not all there, and unchanged."""
    found = _SIZE.search(printed)
    if found is None:
        return None
    data, size = printed[found.end() :].encode("utf-8", "surrogatepass"), int(found[1])
    # a client may put one sign in place of as many bytes that are no text
    return data[:size] if data.startswith(END.encode(), size) and _NO_CHARACTER not in data[:size] else None


def size_of(printed: str) -> int | None:
    """The size of the file, as `read_command` printed it before the file."""
    found = _SIZE.search(printed)
    return None if found is None else int(found[1])


def complaint(printed: str) -> str:
    """What was printed in place of a file.

    >>> complaint("[begin of file]\\nwc: /w/a.txt: No such file or directory\\n")
    'wc: /w/a.txt: No such file or directory'
    """
    return re.sub(rf"^{re.escape(START)}\s*", "", printed, flags=re.MULTILINE).strip()


def piece_command(source: Source, start: int, count: int) -> str:
    """Prints some bytes in base64."""
    return f"echo '{PIECE}' && {source.command} | tail -c +{start + 1} | head -c {count} | base64 && echo '{PIECE_END}'"


def piece_back(printed: str) -> bytes | None:
    """The bytes in what `piece_command` printed; None when they are not all there."""
    _, begun, rest = printed.rpartition(PIECE)
    text, ended, _ = rest.partition(PIECE_END)
    if not (begun and ended):
        return None
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None


# -- writing


#: Removes the file beside. Without `-f`, which Codex CLI refuses as dangerous.
_UNDO = '[ ! -e "$t" ] || rm "$t"'


@dataclass(frozen=True, slots=True)
class Script:
    """The commands that write a file, one after the other; the last one prints `WRITTEN`.

    check  prints it as well, if the file is there as it was meant
    undo   removes what an unfinished one left
    """

    commands: tuple[str, ...]
    check: str
    undo: str
    size: int

    def done(self, printed: str) -> bool:
        """Whether the last command printed that it wrote the file."""
        return WRITTEN.format(size=self.size) in printed.splitlines()


def _room(most: int) -> int:
    """Bytes that one command takes."""
    return max(min(WRITTEN_AT_ONCE, most - 1000 if most else WRITTEN_AT_ONCE), 1000)


def can_write(size: int, *, most: int, calls: int) -> bool:
    """Whether so many commands write so many bytes, also as base64."""
    return size <= MAX_FILE_BYTES and size * 3 // 2 <= _room(most) * calls


def write_script(path: str, data: bytes, *, encoded: bool = False, most: int = 0) -> Script:
    """The commands that write these bytes: into a file beside, which replaces the old one when it is whole.

    encoded  as base64, for bytes that are no text or that a client changes
    most     characters of a command, 0 for what Linux allows
    """
    text = None if encoded else _plain_text(data)
    room = _room(most)
    pieces = _encoded_pieces(data, room) if text is None else _text_pieces(text, room)
    name = basename(path).encode("utf-8", "surrogatepass")[:100].decode("utf-8", "ignore")
    beside = join(dirname(path), f".{name}.{hashlib.sha256(data).hexdigest()[:8]}.part")
    names = f"f={_named(path)}\nt={_named(beside)}"
    commands = []
    for number, (body, size) in enumerate(pieces):
        lines = ["(", "set -e", names]
        last = number == len(pieces) - 1
        if last:
            lines.append(f"trap '{_UNDO}' EXIT")
        if number == 0:
            lines += _beginning(path)
        lines += _body(body, size, append=number > 0, encoded=text is None)
        if last:
            lines += _ending(data)
        commands.append("\n".join((*lines, ")")))
    undo = f"t={_named(beside)}\n{_UNDO}"
    return Script(tuple(commands), _check(path, data), undo, len(data))


def _beginning(path: str) -> list[str]:
    """Makes the folder. The file beside gets the rights of the old one, which must be a file that may be written."""
    folder = dirname(path)
    made = [f"mkdir -p {_named(folder)}"] if folder.strip("/") else []
    return [
        *made,
        'if [ -e "$f" ]; then',
        "  [ -f \"$f\" ] || { echo 'not a file'; exit 1; }",
        "  [ -w \"$f\" ] || { echo 'permission denied: the file is read-only'; exit 1; }",
        '  cp -p "$f" "$t"',
        "fi",
    ]


def _body(body: str, size: int, *, append: bool, encoded: bool) -> list[str]:
    mark = "END_OF_FILE"
    while mark in body and mark in body.split("\n"):
        mark += "_"
    sink = '>>"$t"' if append else '>"$t"'
    work = "base64 -d" if encoded else f"head -c {size}"
    return [f"{work} {sink} <<'{mark}'", body, mark]


def _ending(data: bytes) -> list[str]:
    """The file must be the one that was meant: a client that takes a byte away may still leave the right size, with the
    line end before the mark. A link is followed to the file that it names."""
    return [
        'set -- $(cksum <"$t")',
        f'[ "$1 $2" = "{_checksum(data)} {len(data)}" ] || {{ echo \'{DIFFERS}\'; exit 1; }}',
        f'mv -f "$t" "$(readlink -f "$f" 2>/dev/null || echo "$f")" && echo \'{WRITTEN.format(size=len(data))}\'',
    ]


def _check(path: str, data: bytes) -> str:
    written = WRITTEN.format(size=len(data))
    return f'set -- $(cksum <{_named(path)}) && [ "$1 $2" = "{_checksum(data)} {len(data)}" ] && echo \'{written}\''


#: byte -> the byte with its bits in the other order
_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def _checksum(data: bytes) -> int:
    """What `cksum` prints: the usual sum of the bytes and of their number, with all bits in the other order.

    >>> _checksum(b"a\\n")
    2418082923
    """
    number = len(data).to_bytes((len(data).bit_length() + 7) // 8, "little")
    found = binascii.crc32((data + number).translate(_MIRRORED), 0xFFFF_FFFF) ^ 0xFFFF_FFFF
    return int(f"{found:032b}"[::-1], 2) ^ 0xFFFF_FFFF


def _plain_text(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if _ODD.search(text) else text


def _text_pieces(text: str, room: int) -> list[tuple[str, int]]:
    """Pieces of at most that many bytes, none of which cuts a character."""
    data, place, pieces = text.encode(), 0, []
    while place < len(data):
        end = min(place + room, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append((data[place:end].decode(), end - place))
        place = end
    return pieces or [("", 0)]


def _encoded_pieces(data: bytes, room: int) -> list[tuple[str, int]]:
    step = room // 4 * 3 // 57 * 57
    parts = [data[place : place + step] for place in range(0, len(data), step)] or [b""]
    return [(base64.encodebytes(part).decode().rstrip("\n"), len(part)) for part in parts]


# -- folders and searches


def list_command(path: str) -> str:
    """Prints the entries of a folder, folders with a slash behind them."""
    return f"echo '{START}' && ls -1Ap {_named(path)} | head -n {MAX_LINES} && test -d {_named(path)} && echo '{END}'"


def listed(printed: str, path: str, ignore: Sequence[str]) -> dict[str, Any] | None:
    """An `LsDirectoryTreeNode` of what `list_command` printed; None when it is not all there."""
    lines = [line.removesuffix("\r") for line in printed.rstrip().split("\n")]
    if lines[-1] != END or START not in lines:
        return None
    names = [
        line
        for line in lines[lines.index(START) + 1 : -1]
        if line and not any(fnmatchcase(line.rstrip("/"), one) for one in ignore)
    ]
    folders = [name.rstrip("/") for name in names if name.endswith("/")]
    files = [name for name in names if not name.endswith("/")]
    return {
        "abs_path": path,
        "children_dirs": [{"abs_path": join(path, name)} for name in folders],
        "children_files": [{"name": name} for name in files],
        "children_were_processed": True,
        "num_files": len(files),
    }


def delete_command(path: str) -> str:
    return f"rm {_named(path)} && echo '[deleted]'"


def deleted(printed: str) -> bool:
    return "[deleted]" in printed.splitlines()


def search_command(args: Mapping[str, Any], path: str) -> str:
    """Searches files for a pattern, or for names by a glob alone, with ripgrep where it is installed."""
    pattern, glob = str(args.get("pattern") or ""), str(args.get("glob") or "")
    place = _named(path)
    if not pattern:
        name = " -o ".join(f"-name {quoted(one)}" for one in _names(glob))
        found = f"find {place} -type f" + (f" '(' {name} ')'" if glob else "") + " -not -path '*/.git/*'"
        return f"{found} | head -n {MAX_LINES}; test -e {place} && echo '{END}'"
    mode = args.get("output_mode")
    rg, grep = ["rg --no-config --no-heading --color never -nH"], ["grep -rnIHE"]
    for role, option in (("context_before", "-B"), ("context_after", "-A"), ("context", "-C")):
        if isinstance(args.get(role), int) and mode not in ("files_with_matches", "count"):
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
        grep += [f"--include={quoted(one)}" for one in _names(glob)]
    if mode in ("files_with_matches", "count"):
        rg.append("-l" if mode == "files_with_matches" else "-c")
        grep.append("-l" if mode == "files_with_matches" else "-c")
    ends = f"-e {quoted(pattern)} -- {place}"
    search = f"if command -v rg >/dev/null; then {' '.join(rg)} {ends}; else {' '.join(grep)} {ends}; fi"
    return f"{{ {search}; }} | head -n {MAX_LINES}; test -e {place} && echo '{END}'"


_MATCH = re.compile(r"(.+?):([1-9][0-9]*):(.*)")
#: One choice in a glob, and most patterns that one stands for.
_CHOICE = re.compile(r"(.*?)\{([^{}]*)\}(.*)", re.DOTALL)
MAX_NAMES = 64


def _names(glob: str) -> list[str]:
    """The patterns of file names in a glob, since find and grep know no choices.

    >>> _names("src/**/*.{ts,tsx}")
    ['*.ts', '*.tsx']
    """
    globs = [glob]
    while len(globs) < MAX_NAMES and (choices := [one for one in globs if _CHOICE.fullmatch(one)]):
        globs = [one for one in globs if one not in choices]
        for found in map(_CHOICE.fullmatch, choices):
            globs += [f"{found[1]}{word}{found[3]}" for word in found[2].split(",")] if found else []
    return list(dict.fromkeys(one.rpartition("/")[2] for one in globs))


#: A line beside a match; names of files may have such a part as well.
_BESIDE = re.compile(r"-([1-9][0-9]*)-")
_COUNT = re.compile(r"(.+):([0-9]+)")


def found(printed: str, args: Mapping[str, Any], path: str) -> dict[str, Any] | None:
    """A `GrepSuccess` of what `search_command` printed; None when it is not all there, or a complaint."""
    *all_lines, last = printed.rstrip().split("\n")
    lines = [line for line in all_lines if line.startswith(path.rstrip("/"))]
    if last != END or (not lines and any(line.strip() for line in all_lines)):
        return None
    cut = len(lines) >= MAX_LINES
    mode = args.get("output_mode")
    if not args.get("pattern") or mode == "files_with_matches":
        mode, union = "files_with_matches", _files(lines, cut)
    elif mode == "count":
        union = _counts(lines, cut)
    else:
        mode, union = "content", _matches(lines, cut)
    head = {"pattern": str(args.get("pattern") or ""), "path": path, "output_mode": mode}
    return {**head, "workspace_results": {path: union}}


def _files(lines: list[str], cut: bool) -> dict[str, Any]:
    files = [name for line in lines if (name := line.removesuffix("\r"))]
    return {"files": {"files": files, "total_files": len(files), **_is_cut(cut)}}


def _counts(lines: list[str], cut: bool) -> dict[str, Any]:
    rows = [
        found for line in lines if (found := _COUNT.fullmatch(line.removesuffix("\r"))) is not None and found[2] != "0"
    ]
    counts = [{"file": row[1], "count": int(row[2])} for row in rows]
    total = sum(int(row[2]) for row in rows)
    return {"count": {"counts": counts, "total_files": len(counts), "total_matches": total, **_is_cut(cut)}}


def _matches(lines: list[str], cut: bool) -> dict[str, Any]:
    named = {row[1] for line in lines if (row := _MATCH.fullmatch(line)) is not None}
    # a line beside a match may look like a match in a file whose name begins with that of the true one
    known = {name for name in named if not any(name[: part.start()] in named for part in _BESIDE.finditer(name))}
    files: dict[str, list[dict[str, Any]]] = {}
    matched = 0
    for line in lines:
        row = _MATCH.fullmatch(line)
        if row is not None and row[1] in known:
            matched += 1
            files.setdefault(row[1], []).append({"line_number": int(row[2]), "content": row[3]})
            continue
        part = next((part for part in _BESIDE.finditer(line) if line[: part.start()] in known), None)
        if part is not None:
            one = {"line_number": int(part[1]), "content": line[part.end() :], "is_context_line": True}
            files.setdefault(line[: part.start()], []).append(one)
    matches = [{"file": name, "matches": found} for name, found in files.items()]
    totals = {"total_lines": sum(map(len, files.values())), "total_matched_lines": matched}
    return {"content": {"matches": matches, **totals, **_is_cut(cut)}}


def _is_cut(cut: bool) -> dict[str, bool]:
    return {"client_truncated": True} if cut else {}
