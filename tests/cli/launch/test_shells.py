"""Lines for shells: what a real shell makes of them is the value."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from proxy.cli.launch.shells import SHELLS

ODD = [
    "plain",
    "",
    "two words",
    "it's",
    "$(id) `id` $HOME",
    'a"b\\c',
    "\\",
    "x\ny",
    "# no comment",
    "ü ’ ‘",
    "%s;|&<>*?~!",
]

#: program -> the name in SHELLS, how it runs a text
REAL = {
    "sh": ("sh", ["-c"]),
    "bash": ("sh", ["-c"]),
    "zsh": ("sh", ["-f", "-i", "-c"]),  # interactive: comments are off at its prompt
    "fish": ("fish", ["--no-config", "-c"]),
}


@pytest.mark.parametrize("program", [name for name in REAL if shutil.which(name)])
def test_a_shell_reads_what_was_meant(program: str) -> None:
    name, options = REAL[program]
    shell = SHELLS[name]
    lines = ["# a 'comment", *(shell.set(f"ODD_{number}", value) for number, value in enumerate(ODD))]
    lines += [shell.set("GONE", "x"), shell.unset("GONE"), shell.unset("NEVER")]
    reads = f"{_EVAL[name]}\nenv -0"
    done = subprocess.run(
        [program, *options, reads],
        env={"PATH": "/usr/bin:/bin", "GIVEN": "\n".join(lines), "HOME": "/nonexistent", "LANG": "C.UTF-8"},
        capture_output=True,
        check=True,
        timeout=20,
    )
    found = dict(one.partition("=")[::2] for one in done.stdout.decode().split("\0") if one)
    assert [found.get(f"ODD_{number}") for number in range(len(ODD))] == ODD
    assert "GONE" not in found and "NEVER" not in found


_EVAL = {"sh": 'eval "$GIVEN"', "fish": "printf '%s\\n' $GIVEN | source"}


def test_powershell_takes_typographic_quotes_for_quotes() -> None:
    shell = SHELLS["powershell"]
    assert shell.set("A", "it’s 'so'") == "$env:A = 'it’’s ''so'''"
    assert shell.unset("A") == "Remove-Item -ErrorAction SilentlyContinue Env:A"
