"""Commands of a POSIX shell that read and write files in place of a client's tools, and what they print. Pure.

A file comes back byte by byte or not at all: its checksum and size are printed before it, a mark after it. Where the
client changed anything on the way, the file is asked for again in pieces of base64. A file is written beside its place,
and moved there when its checksum is right.

`tag`: a word that nobody can guess, in marks and names, so that no file can hold what the commands print, and no two
writes share a file.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from posixpath import basename, dirname
from typing import NamedTuple

#: The largest file that is read or written by commands, in bytes.
MAX_FILE_BYTES = 2 * 1024 * 1024
#: Bytes of a file in one command that writes: Linux passes no argument of more than 128 KiB, and a client that quotes
#: the command once more makes five characters of each quote.
WRITTEN_AT_ONCE = 24_000
#: Printed when what arrived in the shell is not what was sent.
DIFFERS = "[bytes differ]"

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


def says(printed: str, words: str) -> bool:
    """Whether a line that was printed is these words. A client that shows the command has them within a line."""
    return words in (line.strip() for line in printed.splitlines())


def named(path: str) -> str:
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
        path = named(self.path)
        if self.whole:
            return f"cat {path}"
        first = self.offset or 1
        if first < 0:
            return f"tail -n {-first} {path}" + ("" if self.limit is None else f" | head -n {self.limit}")
        last = "$" if self.limit is None else str(first + max(self.limit, 1) - 1)
        return f"sed -n '{max(first, 1)},{last}p' {path}"


def _begin(tag: str) -> str:
    return f"[begin of file {tag}]"


def _end(tag: str) -> str:
    return f"[end of file {tag}]"


def read_command(source: Source, tag: str) -> str:
    """Prints checksum and size, then the bytes, between marks; with commands that only read.

    >>> print(read_command(Source("/w/a.txt"), "7f3a"))
    echo '[begin of file 7f3a]' && cksum <'/w/a.txt' && cat '/w/a.txt' && echo '[end of file 7f3a]'
    """
    return f"{sum_command(source, tag)} && {source.command} && echo '{_end(tag)}'"


def sum_command(source: Source, tag: str) -> str:
    """Prints checksum and size."""
    total = f"cksum <{named(source.path)}" if source.whole else f"{source.command} | cksum"
    return f"echo '{_begin(tag)}' && {total}"


class Sum(NamedTuple):
    """What `cksum` prints of bytes."""

    checksum: int
    size: int

    @classmethod
    def of(cls, data: bytes) -> Sum:
        return cls(_checksum(data), len(data))


def sum_of(printed: str, tag: str) -> Sum | None:
    """What `sum_command` or `read_command` printed of the file."""
    found = _sum_line(printed, tag)
    return None if found is None else Sum(int(found[1]), int(found[2]))


def _sum_line(printed: str, tag: str) -> re.Match[str] | None:
    begin = re.escape(_begin(tag))
    return re.search(rf"^{begin}[ \t\r]*\n[ \t]*([0-9]{{1,10}})[ \t]+([0-9]{{1,15}})[ \t\r]*(?:\n|\Z)", printed, re.M)


def read_back(printed: str, tag: str) -> bytes | None:
    """The bytes in what `read_command` printed; None when they are not all there, and unchanged."""
    found = _sum_line(printed, tag)
    if found is None:
        return None
    data, size = printed[found.end() :].encode("utf-8", "surrogatepass"), int(found[2])
    content = data[:size]
    return content if data.startswith(_end(tag).encode(), size) and _checksum(content) == int(found[1]) else None


def is_all(printed: str, tag: str) -> bool:
    """Whether the last mark of `read_command` was printed: the command came to its end."""
    return _end(tag) in printed


def complaint(printed: str) -> str:
    """What was printed in place of a file.

    >>> complaint("[begin of file 7f3a]\\ncat: /w/a.txt: No such file or directory\\n4294967295 0\\n")
    'cat: /w/a.txt: No such file or directory'
    """
    lines = [line for line in printed.splitlines() if not _OWN_LINE.fullmatch(line.strip())]
    return "\n".join(dict.fromkeys(lines)).strip()


#: A line that is printed of an empty or missing file.
_OWN_LINE = re.compile(r"\[begin of file \w*\]|4294967295[ \t]+0")


def piece_command(source: Source, start: int, count: int, tag: str) -> str:
    """Prints some bytes in base64."""
    begin, end = f"[piece of file {tag}]", f"[end of piece {tag}]"
    return f"echo '{begin}' && {source.command} | tail -c +{start + 1} | head -c {count} | base64 && echo '{end}'"


def piece_back(printed: str, tag: str) -> bytes | None:
    """The bytes in what `piece_command` printed; None when they are not all there."""
    _, begun, rest = printed.rpartition(f"[piece of file {tag}]")
    text, ended, _ = rest.partition(f"[end of piece {tag}]")
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
    """The commands that write a file, one after the other; the last one prints `written`.

    check  prints it as well, if the file is there as it was meant
    undo   removes what an unfinished one left
    """

    commands: tuple[str, ...]
    check: str
    undo: str
    written: str

    def done(self, printed: str) -> bool:
        """Whether the last command, or the check, printed that the file is written."""
        return says(printed, self.written)


def write_script(path: str, data: bytes, tag: str, *, encoded: bool = False, most: int = 0) -> Script:
    """The commands that write these bytes: into a file beside, which replaces the old one when it is whole.

    encoded  as base64, for bytes that are no text or that a client changes
    most     characters of a command, 0 for what Linux allows
    """
    text = None if encoded else _plain_text(data)
    pieces = _encoded_pieces(data, _room(most)) if text is None else _text_pieces(text, _room(most))
    written = f"[written {tag}]"
    names, commands = _naming(path, f"{tag}{'b' if encoded else ''}"), []
    for number, (body, size) in enumerate(pieces):
        last = number == len(pieces) - 1
        lines = ["(", "set -e", *(_folder(path) if number == 0 else ()), *names]
        if last:
            lines.append(f"trap '{_UNDO}' EXIT")
        if number == 0:
            lines += _BEGINNING
        lines += _body(body, size, append=number > 0, encoded=text is None)
        if last:
            lines += _ending(data, written)
        commands.append("\n".join((*lines, ")")))
    return Script(tuple(commands), check_command(path, data, written), "\n".join((*names, _UNDO)), written)


def can_write(size: int, *, most: int = 0, calls: int) -> bool:
    """Whether so many bytes are written by so many commands, also in base64."""
    return size <= MAX_FILE_BYTES and -(-size * 4 // 3) <= calls * (_room(most) - 100)


def _room(most: int) -> int:
    """Bytes of a file in one command."""
    return max(min(WRITTEN_AT_ONCE, most - 1000 if most else WRITTEN_AT_ONCE), 1000)


def _naming(path: str, tag: str) -> list[str]:
    """The file, to which a link leads, and the one beside it."""
    name = basename(path).encode("utf-8", "surrogatepass")[:100].decode("utf-8", "ignore")
    return [
        f"f={named(path)}",
        'f=$(readlink -f "$f" 2>/dev/null || echo "$f")',
        'case "$f" in */*) ;; *) f="./$f" ;; esac',
        f't="${{f%/*}}/"{quoted(f".{name}.{tag}.part")}',
    ]


def _folder(path: str) -> list[str]:
    folder = dirname(path)
    return [f"mkdir -p {named(folder)}"] if folder.strip("/") else []


#: The file beside is made anew, and gets the rights of the old one, which must be a file that may be written.
_BEGINNING = (
    '( set -C; : >"$t" )',
    'if [ -e "$f" ]; then',
    "  [ -f \"$f\" ] || { echo 'not a file'; exit 1; }",
    "  [ -w \"$f\" ] || { echo 'permission denied: the file is read-only'; exit 1; }",
    '  cp -p "$f" "$t"',
    "fi",
)


def _body(body: str, size: int, *, append: bool, encoded: bool) -> list[str]:
    mark = "END_OF_FILE"
    while mark in body and mark in body.split("\n"):
        mark += "_"
    sink = '>>"$t"' if append else '>"$t"'
    work = "base64 -d" if encoded else f"head -c {size}"
    return [f"{work} {sink} <<'{mark}'", body, mark]


def _ending(data: bytes, written: str) -> list[str]:
    """The file must be the one that was meant: a client that takes a byte away may still leave the right size, with the
    line end before the mark."""
    return [
        'set -- $(cksum <"$t")',
        f'[ "$1 $2" = "{_checksum(data)} {len(data)}" ] || {{ echo \'{DIFFERS}\'; exit 1; }}',
        '[ ! -d "$f" ] && [ ! -L "$f" ] || { echo \'not a file\'; exit 1; }',
        f'mv -f "$t" "$f" && echo \'{written}\'',
    ]


def check_command(path: str, data: bytes, written: str) -> str:
    """Prints the words if the file has these bytes."""
    return f'set -- $(cksum <{named(path)}) && [ "$1 $2" = "{_checksum(data)} {len(data)}" ] && echo \'{written}\''


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
