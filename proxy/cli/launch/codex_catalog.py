"""The catalogue of models for Codex CLI (`model_catalog_json`), in the form of `codex debug models`.

Codex takes no other row than those of the file, and refuses the whole file when it cannot read one of them. So a row of
ours is one of the installed Codex with some members replaced: what its version requires is in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from proxy.cli.launch.usable_models import UsableModel
from proxy.core.models import tokens_in
from proxy.core.routing import nearest

Row = Mapping[str, Any]

#: Whose rows Codex has.
_OWNER = "p1"
#: Efforts of a model of which none are known; every provider narrows them. Without a default the picker of Codex would
#: choose the least.
_USUAL_EFFORTS = ("low", "medium", "high")
_USUAL_EFFORT = "medium"
#: The window of a model whose window is not known: too small a one only compacts early.
_ASSUMED_WINDOW = 128_000
#: Codex compacts at this part of the window, in tenths, unless the row says a smaller number of tokens.
_COMPACTS_AT = 9

#: What an effort means, where no installed row says it.
_EFFORTS = {
    "low": "Fast answers with little reasoning",
    "medium": "A balance of speed and reasoning",
    "high": "More reasoning for harder problems",
    "xhigh": "Much reasoning for hard problems",
    "max": "As much reasoning as the model has",
}

INSTRUCTIONS = """\
You are a coding agent. Your model is {name}. You work through Codex CLI, a program on the user's machine: it runs the \
tools that you call in the user's workspace and shows your text in a terminal.

# Work

- Work until the user's request is done, then stop. Do what was asked and no more; mention other problems that you see.
- Look at the code before you change it. Keep to its style, and make small changes at the cause of a problem.
- Check your work with the project's tests or by running it, where that is possible. Say it when you could not check.
- The working tree may have changes that are not yours. Leave them alone. Do not commit, reset or delete unless asked.
- Files named AGENTS.md hold instructions for their folder and all below it. A deeper one wins over a higher one, and \
the user's own words win over both.
- Messages of Codex say which commands its sandbox allows and when the user must approve one. Respect a refusal.

# Tools

- Call tools; do not describe calls. Independent calls may stand in one answer.
- Run commands with the tool for commands. Search with `rg` where it exists. Set the working folder by the tool's \
argument instead of `cd`.
- Edit files with `apply_patch`. Its whole input is one patch of this form, with paths relative to the workspace:

*** Begin Patch
*** Update File: src/greeting.py
@@ def greet(name):
 def greet(name):
-    return "hi"
+    return f"hi {{name}}"
*** Add File: notes.txt
+first line
*** Delete File: old.txt
*** End Patch

  In an update, lines that stay begin with a blank, removed lines with `-`, new lines with `+`. Give about three \
unchanged lines around a change, exactly as they are in the file; `@@` with a line of the file says where to look. \
`*** Move to: path` after the update line renames the file.

# Answers

- Be brief and plain. Say what you did and what you found, with paths such as `src/app.py:42`.
- Before a longer step, say in one sentence what you are about to do.
"""

#: Members of every row of ours: what is said of one model is untrue for another.
_OWN: Row = {"additional_speed_tiers": [], "availability_nux": None, "model_specialty": None, "upgrade": None}

#: Members of every row for a model that is not OpenAI's.
_TRANSLATED: Row = {
    "apply_patch_tool_type": "freeform",  # becomes a function with the grammar in its description
    "comp_hash": None,
    "default_reasoning_summary": "auto",
    "default_verbosity": None,
    "experimental_supported_tools": [],
    "include_skills_usage_instructions": True,
    "model_messages": None,
    "multi_agent_version": None,
    "service_tiers": [],
    "shell_type": "unified_exec",
    "support_verbosity": False,
    "supported_in_api": True,
    "supports_experimental_context": False,
    "supports_image_detail_original": False,
    "supports_reasoning_effort_updates": False,
    "supports_search_tool": False,  # all tools at once, in namespaces
    "tool_mode": None,  # functions, and not one tool for scripts
    "use_responses_lite": False,
    "web_search_tool_type": "text",
}

#: The row where the installed Codex says none: what 0.169 and 0.171 require, and some older versions.
_BARE: Row = {
    "apply_patch_tool_type": "freeform",
    "experimental_supported_tools": [],
    "priority": 0,
    "shell_type": "unified_exec",
    "support_verbosity": False,
    "supported_in_api": True,
    "supports_parallel_tool_calls": True,
    "supports_reasoning_summaries": True,
    "truncation_policy": {"mode": "tokens", "limit": 10_000},
}


def codex_catalog(installed: Sequence[Row], models: Sequence[UsableModel]) -> dict[str, Any]:
    """The catalogue: rows of the installed Codex as they are, if the user has that provider, then rows of ours. Of the
    former no picker shows what the list of the service lacks, where that is known.

    installed  the rows of `codex debug models`, none where they are not known
    """
    owned = {model.name: model for model in models if model.label == _OWNER}
    listed = {name for name, model in owned.items() if model.facts.listed}
    known_list = any(model.offered for model in owned.values())
    kept = [
        {**row, "visibility": "hide"} if known_list and row["slug"] not in listed else row
        for row in (installed if owned else ())
    ]
    known = {row["slug"] for row in kept}
    own = [model for model in models if model.name not in known]
    titles = Counter(_title(model) for model in own) + Counter(str(row.get("display_name")) for row in kept)
    first = max((_number(row.get("priority")) for row in installed), default=0) + 1
    words = _words(installed)
    rows = []
    for place, model in enumerate(own, first):
        title = _title(model)
        said = {"display_name": title if titles[title] == 1 else model.name, "priority": place}
        rows.append({**_row(model, installed, words), **said})
    return {"models": [*kept, *rows]}


def _title(model: UsableModel) -> str:
    return model.facts.title or model.name


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _row(model: UsableModel, installed: Sequence[Row], words: Mapping[str, str]) -> dict[str, Any]:
    """A row of ours, without its place in the picker."""
    named = {"slug": model.name, "visibility": "list" if model.shown else "hide"}
    alike = _alike(model, installed) if model.label == _OWNER else None
    of_owner = alike is not None
    if alike is not None and alike["slug"] == model.base:
        return {**alike, **named}
    row = dict(alike or _plain(installed))
    row |= {**named, **_OWN, "description": model.about, **_window(model, alike or {}), **_efforts(model, words)}
    if not of_owner:
        row |= _TRANSLATED
        row["base_instructions"] = INSTRUCTIONS.format(name=model.name)
    if model.facts.sees is not None or not of_owner:
        row["input_modalities"] = ["text"] if model.facts.sees is False else ["text", "image"]
    if of_owner:
        offered, tiers = _objects(row.get("service_tiers")), model.facts.tiers
        row["service_tiers"] = [one for one in offered if tiers is None or one.get("id") in tiers]
    return row


def _alike(model: UsableModel, installed: Sequence[Row]) -> Row | None:
    """The installed row of the model that a name means; else of the listed one that a model of the same vendor
    resembles most, of its lane where that is known. None without any."""
    by_name, lite = {row["slug"]: row for row in installed}, model.facts.lite
    if model.base in by_name:
        return by_name[model.base]
    rows = {
        name: row
        for name, row in by_name.items()
        if row.get("visibility") != "hide" and (lite is None or bool(row.get("use_responses_lite")) is lite)
    }
    return rows[nearest(model.base or model.name, rows)] if rows else None


def _objects(value: Any) -> list[Row]:
    """The objects of a list; another version of Codex may have others."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _plain(installed: Sequence[Row]) -> Row:
    """The installed row that is nearest in kind to a model of another vendor: with a tool for each function."""
    plain = (row for row in installed if not row.get("use_responses_lite") and not row.get("tool_mode"))
    return next(plain, installed[0] if installed else _BARE)


def _window(model: UsableModel, alike: Row) -> dict[str, Any]:
    """The members about the window. It compacts while the longest answer still fits."""
    context = model.facts.context or tokens_in(alike.get("context_window")) or _ASSUMED_WINDOW
    largest = max(context, model.facts.largest or 0)
    compacts: int | None = None
    output = model.facts.output or 0
    if context * (10 - _COMPACTS_AT) // 10 < output <= context // 2:
        compacts = context - output
    return {"context_window": context, "max_context_window": largest, "auto_compact_token_limit": compacts}


def _efforts(model: UsableModel, words: Mapping[str, str]) -> dict[str, Any]:
    facts = model.facts
    efforts: Collection[str] = _USUAL_EFFORTS if facts.efforts is None else facts.efforts
    if facts.thinks == "no":
        efforts = ()
    levels = [{"effort": one, "description": words.get(one) or _EFFORTS.get(one, one)} for one in efforts]
    default = next((one for one in (facts.effort, _USUAL_EFFORT, *efforts) if one in efforts), None)
    return {"supported_reasoning_levels": levels, "default_reasoning_level": default}


def _words(installed: Iterable[Row]) -> dict[str, str]:
    """What the installed rows say of each effort."""
    levels = [level for row in installed for level in _objects(row.get("supported_reasoning_levels"))]
    return {str(level.get("effort")): str(level.get("description")) for level in levels}
