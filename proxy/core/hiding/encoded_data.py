r"""Pictures and other encoded data in texts: found by how they look, and taken out with a note of their length.

A text may be JSON, or hold some: slashes, signs and line ends of the data are found in their escapes too, and no escape
is ever cut in two. What was JSON before is JSON after.
"""

from __future__ import annotations

import re
from functools import partial

from proxy.core.hiding.secret import length_note

#: A word of this length, with that many different characters at its beginning, is no word and no path. Among the words
#: of an error less is enough: nobody misses a path of that length there, and services quote the beginning of a picture.
MIN_RUN, MIN_QUOTED = 512, 96
_MIN_VARIETY = 40
#: Shorter words are not looked at.
MIN_WORD = 32
_MAX_SPLIT = 256 * 1024

#: A sign of the data, and the end of a line, also within JSON; some make a blank of it.
_SIGN = r"(?:[A-Za-z0-9+/=_%-]|\\{1,8}(?:/|u00(?:2[bdf]|3d|5f)))"
_BREAK = r"(?:\r?\n|[ \t]|(?:\\{1,8}r)?\\{1,8}n)"
#: Of a data URL; then its further lines, and the last of them, which may be short.
_DATA_URL = re.compile(
    r"data(?::|%3a)[\w.+-]{0,100}+(?:(?:\\{0,8}/|\\{1,8}u002f|%2f)[\w.+-]{1,100}+)?"
    rf"(?:(?:;|%3b)[^,;%<>\n]{{0,100}}+){{0,8}}?(?:;|%3b) ?base64(?:,|%2c) ?{_SIGN}*+"
    rf"(?:{_BREAK}{_SIGN}{{60,}}+)*+(?:{_BREAK}(?=[a-z0-9+/_\\-]{{1,59}}(?:=|\\{{1,8}}u003d)){_SIGN}++)?",
    re.IGNORECASE,
)
#: A picture that is written in the address as it is.
_PLAIN_URL = re.compile(
    r"data:image(?:\\{0,8}/|%2f)[\w.+-]{1,100}(?:;[\w=-]{1,40}){0,4},[^\s\"'\\<>`]++", re.IGNORECASE
)
#: Lines of one encoded text, as `base64 file` prints it: all but the last without `=`. What a line is made of is what
#: none may begin behind, else each place of a long text would be looked at from every earlier one.
_IN_LINE = r"(?:[A-Za-z0-9+/_%-]|\\{1,8}(?:/|u00(?:2[bf]|5f)))"
_LINES = re.compile(
    rf"(?<![A-Za-z0-9+/_%\\-])(?=[A-Za-z0-9+/_%\\-]{{60}})(?:{_IN_LINE}{{60,}}+{_BREAK}){{2,}}+{_SIGN}*+", re.IGNORECASE
)
#: With escapes.
_RUN = re.compile(r"(?<![A-Za-z0-9+/_\\-])(?=[A-Za-z0-9+/_\\-]{32})(?:[A-Za-z0-9+/_-]++|\\{1,8}[A-Za-z0-9/])++=*")
#: How PNG begins, which is no part of any word; and JPEG, GIF, WebP or WAV, TIFF, PDF and AVIF.
_PNG = "iVBORw0KGg"
_MAGIC = re.compile(
    r"(?:\A|\\[nrt])(?:\\{0,8}/9j\\{0,8}/|R0lGOD[dl]h|UklGR|SUkqA|TU0AK|JVBERi0|AAAA[A-Za-z0-9+/]{2}Z0eX)"
)


def without_encoded(text: str) -> str:
    """The words of an error without data.

    >>> without_encoded("bad picture: 'DATA:image/png;base64,iVBORw0KGgo='")
    "bad picture: '[redacted data-url len=34]'"
    """
    return without_runs(_PLAIN_URL.sub(_url, without_data_urls(text)), MIN_QUOTED)


def without_data_urls(text: str) -> str:
    """The text without the data of its `data:` URLs."""
    lower = text.lower()  # most texts have none, which this tells at a tenth of the price
    return _DATA_URL.sub(_url, text) if "base64" in lower and "data" in lower else text


def without_runs(text: str, least: int = MIN_RUN) -> str:
    """The text without data that says not what it is: long words of `least` characters, lines of data, and what begins
    as a picture does."""
    if not _may_have_runs(text):
        return text
    return _RUN.sub(partial(_run, least), _LINES.sub(_lines, text))


def _may_have_runs(text: str) -> bool:
    """Whether some word is as long as a run; a text of many words is not taken apart to learn it."""
    return len(text) > _MAX_SPLIT or (len(text) >= MIN_WORD and max(map(len, text.split()), default=0) >= MIN_WORD)


def _url(found: re.Match[str]) -> str:
    return length_note(found[0], "data-url")


def _lines(found: re.Match[str]) -> str:
    return found[0] if _has_words(found[0]) else length_note(found[0], "base64")


def _run(least: int, found: re.Match[str]) -> str:
    run = found[0]
    known = _PNG in run or (_MAGIC.search(run) if "\\" in run else _MAGIC.match(run))
    return length_note(run, "base64") if known or (len(run) >= least and not _has_words(run)) else run


def _has_words(run: str) -> bool:
    """Whether it has so few different characters at its beginning that it is no encoded data."""
    return len(set(run[:MIN_RUN])) < _MIN_VARIETY
