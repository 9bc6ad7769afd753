"""How each role of a text looks: colour and emphasis."""

from __future__ import annotations

from typing import NamedTuple

#: Of signs that are no letters, what stands for them where only ASCII can be shown.
ASCII = str.maketrans(
    {
        **dict.fromkeys("╭╮╰╯├┤", "+"),
        **dict(zip("─│…→↻▸▾└▏█░", "-|~>@>v`_#.", strict=True)),
        **dict(zip("▁▂▃▄▅▆▇", "__..--=", strict=True)),
        **dict(zip("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\|/-\\|/", strict=True)),
        **dict(zip("↑↓←“”·", "^v<''-", strict=True)),
    }
)


#: The background, of 256 and of 8 colours: the screen has its own, so that what stands on it can be read whatever the
#: terminal's is. The first 16 colours differ between terminals; the rest are the same everywhere.
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
        """Colour and background; `many`: of 256. Few colours are not readable on each other: a selected row has one."""
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
