"""Lines from a pipe and from a terminal, which does not show them."""

from __future__ import annotations

import os
import pty
import termios

from proxy.cli.auth import LineInput


async def test_lines_of_a_pipe() -> None:
    reading, writing = os.pipe()
    with LineInput(reading) as lines:
        os.write(writing, b"one\ntw")
        assert await lines.read() == "one"
        os.write(writing, b"o\n\nlast \xff")
        os.close(writing)
        assert [await lines.read() for _ in range(4)] == ["two", "", "last \ufffd", None]
    os.close(reading)


async def test_a_terminal_does_not_show_them() -> None:
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    with LineInput(theirs) as lines:
        assert not termios.tcgetattr(theirs)[3] & termios.ECHO
        os.write(ours, b"a secret\n")
        assert await lines.read() == "a secret"
        os.write(theirs, b"after")
        assert b"secret" not in os.read(ours, 1000)
    assert termios.tcgetattr(theirs) == before
    os.write(ours, b"\x04")  # the thread ends with the input
    assert await lines.read() is None
    os.close(ours)
    os.close(theirs)
