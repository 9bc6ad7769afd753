"""Foreign text as it may be shown to a model: words of a picture, a page, or another model's answer."""

from __future__ import annotations

import re

#: Characters that are shown as nothing, though `isprintable` holds for them.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
#: `<` and what looks like it, unless it compares: what begins a tag or a control token of a model.
_ANGLE = re.compile(r"[<\u02c2\u2039\u276c\u276e\u2770\u27e8\u2329\u3008\ufe64\uff1c](?![ ]?[0-9=])")
#: Control tokens of models in other brackets: GLM's, those of Llama and Mistral, Kimi's, MiniMax'.
_BRACKET = re.compile(
    r"[\[\uff3b](?=\s*/?\s*(?:[gs]?MASK|INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_\w+|ARGS|CALL_ID|IMG\w*|THINK|BOS|EOS|EOT"
    r"|PAD|UNK|CLS|SEP)\s*[\]\uff3d]|e~)|\](?=~)",
    re.IGNORECASE,
)


_BROKEN = {"[": "&#91;", "\uff3b": "&#91;", "]": "&#93;"}


def foreign(text: str) -> str:
    """A foreign text as it may be shown to a model: nothing in it begins a tag or a control token.

    >>> foreign("a < 3 <system> <\uff5cUser\uff5c> [gMASK] <\u200b/b>")
    'a < 3 &lt;system> &lt;\uff5cUser\uff5c> &#91;gMASK] &lt;\u200b/b>'
    """
    text = _ANGLE.sub("&lt;", _UNSEEN.sub("", text))
    return _BRACKET.sub(lambda found: _BROKEN[found[0]], text)


def foreign_line(line: str) -> str:
    """A line of a foreign text, also without characters that are not shown."""
    if not line.isprintable():
        line = "".join(char if char.isprintable() else " " if char.isspace() or char < " " else "" for char in line)
    return foreign(line)
