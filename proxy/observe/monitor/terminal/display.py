"""The terminal itself, with curses, which only this module uses, and the look of each role of a text.

All but `give_back` belongs to one thread. The terminal is put back as it was by `close`, by `give_back` from any
thread, and at the end of the process.
"""

from __future__ import annotations

import atexit
import contextlib
import curses
import locale
import os
import select
import sys
import termios
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from proxy.observe.monitor.terminal.cells import Line, Span, width_of
from proxy.observe.monitor.terminal.keys import without_sequences

#: Stand-ins for signs that are no letters, where only ASCII can be shown.
ASCII = str.maketrans(
    {
        **dict.fromkeys("╭╮╰╯├┤", "+"),
        **dict(zip("─│…→↻▸▾└▏█░", "-|~>@>v`_#.", strict=True)),
        **dict(zip("▁▂▃▄▅▆▇", "__..--=", strict=True)),
        **dict(zip("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\|/-\\|/", strict=True)),
        **dict(zip("↑↓←“”·", "^v<''-", strict=True)),
    }
)


#: The background, of 256 and of 8 colours: the screen has its own, so that text is readable whatever the terminal's is.
#: The first 16 colours differ between terminals; the rest are the same everywhere.
GROUND, FEW_GROUND = 233, 0
#: The background of the selected row; without colours it is reversed.
CHOSEN, FEW_CHOSEN = 236, 4
#: Colours of 8.
_RED, _GREEN, _YELLOW, _PURPLE, _TEAL, _WHITE = 1, 2, 3, 5, 6, 7


class Look(NamedTuple):
    """colour    of 256; `few`: of 8
    ground    the background, of 256, and of 8
    emphasis  any of bold, dim, reverse; `plain`: those where there are no colours
    """

    colour: int = 252
    few: int = _WHITE
    ground: int = GROUND
    few_ground: int = FEW_GROUND
    emphasis: str = ""
    plain: str = ""

    def pair(self, many: bool, chosen: bool) -> tuple[int, int]:
        """Colour and background; `many`: of 256. Few colours are unreadable on each other: a selected row has one."""
        if many:
            return self.colour, CHOSEN if chosen else self.ground
        return (_WHITE, FEW_CHOSEN) if chosen else (self.few, self.few_ground)


LOOKS = {
    "": Look(),
    "bold": Look(emphasis="bold", plain="bold"),
    "dim": Look(247, plain="dim"),
    "border": Look(244, plain="dim"),
    "focus": Look(44, _TEAL, plain="bold"),
    "title": Look(44, _TEAL, emphasis="bold", plain="bold"),
    "heading": Look(250, emphasis="bold", plain="bold"),
    "label": Look(247, plain="dim"),
    "name": Look(231, _WHITE, 24, FEW_CHOSEN, "bold", "bold reverse"),
    "header": Look(253, _WHITE, 24, FEW_CHOSEN, "", "reverse"),
    "alarm": Look(231, _WHITE, 160, _RED, "bold", "bold reverse"),
    "footer": Look(247, plain="dim"),
    "key": Look(44, _TEAL, emphasis="bold", plain="bold"),
    "trend": Look(37, _TEAL),
    "good": Look(77, _GREEN),
    "live": Look(44, _TEAL, plain="bold"),
    "compact": Look(141, _PURPLE, emphasis="bold", plain="bold"),
    "bad": Look(204, _RED, emphasis="bold", plain="bold"),
    "busy": Look(75, _TEAL),
    "wait": Look(221, _YELLOW, plain="bold"),
}


#: Keys of curses -> the names that the monitor knows.
_NAMES = {
    curses.KEY_UP: "up",
    curses.KEY_DOWN: "down",
    curses.KEY_LEFT: "left",
    curses.KEY_RIGHT: "right",
    curses.KEY_PPAGE: "page_up",
    curses.KEY_NPAGE: "page_down",
    curses.KEY_HOME: "home",
    curses.KEY_END: "end",
    curses.KEY_ENTER: "enter",
    curses.KEY_BACKSPACE: "backspace",
    curses.KEY_BTAB: "tab",
}
_CHARACTERS = {"\n": "enter", "\r": "enter", "\t": "tab", "\x1b": "escape", "\x7f": "backspace", "\b": "backspace"}
#: Milliseconds that curses waits for the rest of a key that begins with Escape.
ESCAPE_MS = 25
_EMPHASES = {"bold": curses.A_BOLD, "dim": curses.A_DIM, "reverse": curses.A_REVERSE}


class Display:
    """A terminal of the process's stdin and stdout.

    Raises RuntimeError where it cannot be drawn on: no terminal, or one that knows no positions.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._modes: list[Any] | None = None
        self._shown: list[Line] = []
        self._pairs: dict[tuple[int, int], int] = {}
        self._attributes: dict[tuple[str, bool], int] = {}
        self._plain = bool(environment.get("NO_COLOR"))
        self._open()

    def _open(self) -> None:
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, "")
        check_terminal()
        self._modes = termios.tcgetattr(sys.stdin)
        self._end = b"".join(curses.tigetstr(name) or b"" for name in ("sgr0", "cnorm", "rmkx", "rmcup"))
        atexit.register(self.give_back)
        os.environ.setdefault("ESCDELAY", str(ESCAPE_MS))
        self._window = curses.initscr()
        self._taken = True
        curses.noecho()
        curses.cbreak()
        self._window.keypad(True)
        self._window.nodelay(True)
        with contextlib.suppress(curses.error):
            curses.curs_set(0)
        self._colours = self._start_colours()
        if self._colours:
            self._window.bkgd(" ", self._attribute(Span("")))
        self._ascii = not is_unicode(self._window.encoding)

    def _start_colours(self) -> int:
        """Starts colours and returns their number, 0 for none."""
        if self._plain or not curses.has_colors():
            return 0
        try:
            curses.start_color()
        except curses.error:
            return 0
        return curses.COLORS

    # Drawing.

    def size(self) -> tuple[int, int]:
        """Columns and rows now."""
        size = os.get_terminal_size(sys.stdout.fileno())
        if (size.lines, size.columns) != self._window.getmaxyx() and size.lines > 0 and size.columns > 0:
            curses.resizeterm(size.lines, size.columns)
            self.redraw()
        rows, columns = self._window.getmaxyx()
        return columns, rows

    def redraw(self) -> None:
        """Makes the next `draw` write every line."""
        self._shown = []
        self._window.clear()

    def draw(self, lines: Sequence[Line]) -> None:
        """Draws the lines that changed."""
        for row, line in enumerate(lines):
            if row >= len(self._shown) or self._shown[row] != line:
                self._draw_line(row, line)
        self._shown = list(lines)
        self._window.refresh()

    def _draw_line(self, row: int, line: Line) -> None:
        column = 0
        for run in line:
            text = as_ascii(run.text) if self._ascii else run.text
            with contextlib.suppress(curses.error):  # the last cell of the screen: drawn, then refused
                self._window.addstr(row, column, text, self._attribute(run))
            column += width_of(run.text)

    def _attribute(self, run: Span) -> int:
        known = self._attributes.get(key := (run.role, run.chosen))
        if known is None:
            known = self._attributes[key] = self._made(LOOKS.get(run.role, LOOKS[""]), run.chosen)
        return known

    def _made(self, look: Look, chosen: bool) -> int:
        if not self._colours:
            return _emphasis(look.plain) | (curses.A_REVERSE if chosen else 0)
        return _emphasis(look.emphasis) | self._pair(*look.pair(self._colours >= 256, chosen))

    def _pair(self, colour: int, ground: int) -> int:
        number = self._pairs.get((colour, ground))
        if number is None:
            number = self._pairs[colour, ground] = len(self._pairs) + 1
            with contextlib.suppress(curses.error, ValueError):
                curses.init_pair(number, colour, ground)
        return curses.color_pair(number)

    # Keys.

    def keys(self, wake: int, timeout: float) -> list[str]:
        """The typed keys, after at most `timeout` seconds; at once when `wake` is readable. Raises EOFError when the
        terminal went away."""
        ready, _, _ = select.select([sys.stdin, wake], [], [], timeout)
        found: list[str] = []
        while sys.stdin in ready and (key := self._key()) is not None:
            found.append(key)
        if sys.stdin in ready and not found and is_gone():
            raise EOFError("the terminal was closed")
        return [key for key in without_sequences(found) if key]

    def _key(self) -> str | None:
        """A key, "" for one that has no meaning here, None when there is no more."""
        try:
            key = self._window.get_wch()
        except curses.error:
            return None
        if isinstance(key, int):
            return _NAMES.get(key, "")
        return _CHARACTERS.get(key, key)

    # Lending the terminal.

    def suspend(self) -> None:
        self._taken = False
        curses.endwin()

    def resume(self) -> None:
        self._taken = True
        self._window.refresh()
        self.redraw()

    def close(self) -> None:
        """Puts the terminal back."""
        if self._taken:
            self.suspend()
        self.give_back()
        atexit.unregister(self.give_back)

    def give_back(self) -> None:
        """Puts the terminal back without curses, which belongs to another thread. A second call does nothing."""
        modes, self._modes = self._modes, None
        if modes is None:
            return
        with contextlib.suppress(OSError, ValueError, termios.error):
            if self._taken:
                os.write(sys.stdout.fileno(), self._end)
            termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)


def check_terminal() -> None:
    """Raises RuntimeError with the reason why nothing can be drawn."""
    try:
        curses.setupterm(fd=sys.stdout.fileno())
    except curses.error as error:
        raise RuntimeError(f"the terminal is not known: {error}") from None
    if not curses.tigetstr("cup") or not curses.tigetstr("clear"):
        raise RuntimeError("the terminal cannot place text")


def in_foreground() -> bool:
    """Whether the terminal is ours: a job in the background must not touch it."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False


def is_gone() -> bool:
    try:
        termios.tcgetattr(sys.stdin)
    except (OSError, termios.error):
        return True
    return False


def is_unicode(encoding: str) -> bool:
    return encoding.lower().replace("-", "") == "utf8"


def as_ascii(text: str) -> str:
    """The text in ASCII, in its width."""
    return "".join(char if char.isascii() else "?" * width_of(char) for char in text.translate(ASCII))


def _emphasis(words: str) -> int:
    found = 0
    for word in words.split():
        found |= _EMPHASES[word]
    return found
