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
        **dict.fromkeys("↑↓←“”", "'"),
    }
)


class Look(NamedTuple):
    """colour    of 256; `few`: of 8
    ground    the background, of 256, and of 8; -1: that of the terminal
    emphasis  any of bold, dim, reverse; `plain`: those where there are no colours
    """

    colour: int = -1
    few: int = -1
    ground: int = -1
    few_ground: int = -1
    emphasis: str = ""
    plain: str = ""


#: Colours of 8.
_RED, _GREEN, _YELLOW, _BLUE, _PURPLE, _TEAL, _WHITE = 1, 2, 3, 4, 5, 6, 7

LOOKS = {
    "": Look(),
    "bold": Look(emphasis="bold", plain="bold"),
    "dim": Look(245, emphasis="", plain="dim"),
    "border": Look(240, plain="dim"),
    "focus": Look(44, _TEAL, plain="bold"),
    "title": Look(44, _TEAL, emphasis="bold", plain="bold"),
    "heading": Look(250, emphasis="bold", plain="bold"),
    "label": Look(245, plain="dim"),
    "name": Look(231, _WHITE, 24, _BLUE, "bold", "bold reverse"),
    "header": Look(253, _WHITE, 24, _BLUE, "", "reverse"),
    "alarm": Look(231, _WHITE, 160, _RED, "bold", "bold reverse"),
    "footer": Look(245, plain="dim"),
    "key": Look(44, _TEAL, emphasis="bold", plain="bold"),
    "trend": Look(37, _TEAL),
    "good": Look(77, _GREEN),
    "live": Look(44, _TEAL, plain="bold"),
    "compact": Look(141, _PURPLE, plain="bold"),
    "bad": Look(203, _RED, emphasis="bold", plain="bold"),
    "busy": Look(75, _BLUE),
    "wait": Look(221, _YELLOW, plain="bold"),
}
#: The background of the selected row, of 256 and of 8 colours; without colours it is reversed.
CHOSEN, FEW_CHOSEN = 237, _BLUE
