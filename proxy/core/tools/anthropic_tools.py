"""Tools that the Messages API knows by their type alone: the client runs them, and Anthropic's models know the schema.

Other models need the schema. These are from Anthropic's documentation; later versions add members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Tool = dict[str, Any]

_TEXT = {"type": "string"}
_LINES = {"type": "array", "items": {"type": "integer"}}
_POINT = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}


def _said(form: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {**form, "description": description}


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _words(description: str, *words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words), "description": description}


def _bash(_tool: Mapping[str, Any]) -> Tool:
    return {
        "description": (
            "Runs commands in a bash shell whose session persists between calls: working directory, variables and files"
            " stay. Commands that ask for input do not work."
        ),
        "input_schema": _object(
            [],
            command=_said(_TEXT, "The command to run. Required unless the tool is being restarted."),
            restart={"type": "boolean", "description": "True restarts the shell; then no command is needed."},
        ),
    }


#: Parameters of the editing commands of both file tools.
_EDITS = {
    "view_range": _said(_LINES, "view: the first and the last line to show, from 1; -1 as the last is the end."),
    "file_text": _said(_TEXT, "create: the content of the file. Required there."),
    "old_str": _said(_TEXT, "str_replace: the text to replace; it must occur exactly once. Required there."),
    "insert_line": {
        "type": "integer",
        "description": "insert: the line after which the text goes, 0 for the beginning. Required there.",
    },
}
_INSERTED = _said(_TEXT, "insert: the text to insert. Required there.")
_REPLACED = _said(_TEXT, "str_replace: the text in its place.")


def _text_editor(tool: Mapping[str, Any]) -> Tool:
    """The text editor. Versions until January 2025 could undo, and inserted `new_str`."""
    commands, edits = ["view", "create", "str_replace", "insert"], {**_EDITS, "new_str": _REPLACED}
    if str(tool["type"]) < "text_editor_202504":
        commands.append("undo_edit")
        edits["new_str"] = _said(_TEXT, "str_replace: the text in its place. insert: the text to insert.")
    else:
        edits["insert_text"] = _INSERTED
    limit = tool.get("max_characters")
    shown = f" At most {limit} characters of a file are shown." if isinstance(limit, int) else ""
    return {
        "description": (
            f"Views, creates and edits text files: {', '.join(commands)}. `view` shows a file with line numbers, or the"
            f" files of a directory.{shown} `str_replace` needs `old_str` as it stands in the file, blanks included."
        ),
        "input_schema": _object(
            ["command", "path"],
            command=_words("What to do.", *commands),
            path=_said(_TEXT, "Absolute path of the file or directory."),
            **edits,
        ),
    }


def _memory(_tool: Mapping[str, Any]) -> Tool:
    return {
        "description": (
            "Keeps notes in files below /memories, which outlive this conversation: view, create, str_replace, insert,"
            " delete, rename. Look there before you begin a task, and write down what a later conversation needs."
        ),
        "input_schema": _object(
            ["command"],
            command=_words("What to do.", "view", "create", "str_replace", "insert", "delete", "rename"),
            path=_said(_TEXT, "Path of the file or directory, such as /memories/notes.md. Required but for rename."),
            **_EDITS,
            new_str=_REPLACED,
            insert_text=_INSERTED,
            old_path=_said(_TEXT, "rename: the path as it is. Required there."),
            new_path=_said(_TEXT, "rename: the new path. Required there."),
        ),
    }


_POINTER = ("mouse_move", "left_click", "left_click_drag", "right_click", "middle_click", "double_click")
_ACTIONS = ("key", "type", *_POINTER, "screenshot", "cursor_position")
_LATER_ACTIONS = ("left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait", "triple_click")


def _computer(tool: Mapping[str, Any]) -> Tool:
    """The computer tool. Actions were added in January 2025; `zoom` must be enabled."""
    actions = list(_ACTIONS)
    more: dict[str, dict[str, Any]] = {}
    if str(tool["type"]) >= "computer_2025":
        actions += _LATER_ACTIONS
        more = {
            "start_coordinate": _said(_POINT, "left_click_drag: where the drag begins, as x and y."),
            "scroll_direction": _words("scroll: where to. Required there.", "up", "down", "left", "right"),
            "scroll_amount": {"type": "integer", "description": "scroll: clicks of the wheel. Required there."},
            "duration": {"type": "number", "description": "hold_key, wait: seconds. Required there."},
        }
    if tool.get("enable_zoom") is True:
        actions.append("zoom")
        region = {"type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 4}
        more["region"] = _said(region, "zoom: the corners x0, y0, x1, y1 of what to show enlarged. Required there.")
    size = [tool.get(f"display_{side}_px") for side in ("width", "height")]
    display = f" The display has {size[0]} x {size[1]} pixels." if all(isinstance(one, int) for one in size) else ""
    return {
        "description": (
            f"Uses the mouse and the keyboard of a computer, and shows its screen.{display} Coordinates are pixels from"
            " the left and the top edge. Take a screenshot before you act, and after it to see what it did; click in"
            " the middle of buttons and links."
        ),
        "input_schema": _object(
            ["action"],
            action=_words("What to do.", *actions),
            coordinate=_said(_POINT, "Where to move, click, scroll or end a drag, as x and y."),
            text=_said(_TEXT, "type: the text. key, hold_key: keys such as Return or ctrl+s. click: a key to hold."),
            **more,
        ),
    }


#: beginning of a type -> the maker of the tool's description and schema
_KNOWN: dict[str, Callable[[Mapping[str, Any]], Tool]] = {
    "bash_2": _bash,
    "text_editor_2": _text_editor,
    "memory_2": _memory,
    "computer_2": _computer,
}


def _maker(kind: str) -> Callable[[Mapping[str, Any]], Tool] | None:
    return next((make for beginning, make in _KNOWN.items() if kind.startswith(beginning)), None)


def is_known(kind: str) -> bool:
    """Whether the client runs tools of this type although they have no schema."""
    return _maker(kind) is not None


def described(tool: dict[str, Any]) -> dict[str, Any]:
    """The tool with description and schema, keeping its own; `tool` itself if it has a schema or is unknown.

    >>> list(described({"type": "bash_20250124", "name": "bash"})["input_schema"]["properties"])
    ['command', 'restart']
    """
    kind = tool.get("type")
    if not isinstance(kind, str) or tool.get("input_schema") is not None:
        return tool
    make = _maker(kind)
    if make is None:
        return tool
    kept = {key: value for key, value in tool.items() if key in ("description", "cache_control")}
    return {"name": tool["name"], **make(tool), **kept}
