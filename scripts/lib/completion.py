"""Scripts for the completion of bash, zsh and fish, made from the commands and their parsers.

They are self-contained: completing starts no program.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proxy.cli.command import APP, Command, Context
from proxy.cli.main import COMMANDS


@dataclass(frozen=True, slots=True)
class Words:
    """The words for an argument, or a file."""

    words: tuple[str, ...] = ()
    files: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """An option. `value`: the words for its value; None for a switch."""

    names: tuple[str, ...]
    help: str
    value: Words | None


@dataclass(frozen=True, slots=True)
class Shape:
    """A command in the form that a script needs. `passes`: what follows its own options is another program's."""

    name: str
    help: str
    options: tuple[Option, ...]
    places: tuple[Words, ...]
    passes: bool


def shapes(commands: Iterable[Command], context: Context) -> list[Shape]:
    """The commands of the program."""
    known = _known(context)
    return [_shape(command, context, known) for command in commands]


def _known(context: Context) -> Mapping[str, tuple[str, ...]]:
    """metavar or name of an argument -> its words, if no parser has them."""
    entries = [entry for entry in context.providers if entry.build is not None]
    labels = tuple(name for one in entries for name in (one.label, one.catalog.service))
    models = tuple(dict.fromkeys(model for entry in entries for model in entry.catalog.models))
    return {"LABEL": labels, "MODEL": (*(entry.label for entry in entries), *models)}


def _shape(command: Command, context: Context, known: Mapping[str, tuple[str, ...]]) -> Shape:
    parser = argparse.ArgumentParser(command.name)
    command.arguments(parser, context)
    options, places = [], []
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        switch = action.nargs == 0
        words = None if switch else _words(action, known)
        if action.option_strings:
            options.append(Option(tuple(action.option_strings), _plain(action.help), words))
        elif words is not None:
            places.append(words)
    own = [one for one in options if command.split is None or "-h" not in one.names]
    return Shape(command.name, _plain(command.help), tuple(own), tuple(places), command.split is not None)


def _words(action: argparse.Action, known: Mapping[str, tuple[str, ...]]) -> Words:
    if action.choices is not None:
        return Words(tuple(map(str, action.choices)))
    name = str(action.metavar or action.dest).upper()
    return Words(known.get(name, ()), files=action.type is Path)


def _plain(text: str | None) -> str:
    """The text without characters that would end it in the scripts."""
    return "".join(" " if char in "'[]\\`$\"\n" else char for char in text or "").replace("%%", "%").strip()


# -- bash

_BASH = """\
# completion of {app} for bash
_{function}() {{
  local word command="" place=0 previous="${{COMP_WORDS[COMP_CWORD-1]}}" current="${{COMP_WORDS[COMP_CWORD]}}" index
  local options="" words="" files="" valued=" {valued} "
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="${{COMP_WORDS[index]}}"
    if [[ -z $command ]]; then command=$word
    elif [[ $word != -* && $valued != *" $command:${{COMP_WORDS[index-1]}} "* ]]; then place=$((place + 1)); fi
  done
  if [[ -z $command ]]; then
    COMPREPLY=($(compgen -W '{commands}' -- "$current"))
    return
  fi
  case "$command:$previous" in
{values}
  esac
  case "$command" in
{options}
  esac
  case "$command:$place" in
{places}
  esac
  if [[ $current == -* ]]; then words=$options; files=""; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ -n $files ]]; then COMPREPLY+=($(compgen -f -- "$current")); fi
}}
complete -F _{function} {app}
"""


def _bash(found: Sequence[Shape]) -> str:
    values, options, places, valued = [], [], [], []
    for shape in found:
        for name, value in ((name, one.value) for one in shape.options for name in one.names):
            if value is not None:
                valued.append(f"{shape.name}:{name}")
                values.append(f"    {shape.name}:{name}) {_reply(value)} return ;;")
        names = " ".join(name for option in shape.options for name in option.names)
        options.append(f"    {shape.name}) options='{names}' ;;")
        for index, place in enumerate(shape.places):
            places.append(f"    {shape.name}:{index}) words='{' '.join(place.words)}' files={_flag(place)} ;;")
        if shape.passes:
            places.append(f'    {shape.name}:*) words="$options" files=1 ;;')
    return _BASH.format(
        app=APP,
        function=_FUNCTION,
        commands=" ".join(shape.name for shape in found),
        valued=" ".join(valued),
        values="\n".join(values),
        options="\n".join(options),
        places="\n".join(places),
    )


def _reply(words: Words) -> str:
    source = "-f" if words.files else f"-W '{' '.join(words.words)}'"
    return f'COMPREPLY=($(compgen {source} -- "$current"));'


def _flag(words: Words) -> str:
    return "1" if words.files else '""'


_FUNCTION = APP.replace("-", "_")


# -- zsh

_ZSH = """\
#compdef {app}
# completion of {app} for zsh
_{function}() {{
  local -a commands
  local context state state_descr line
  typeset -A opt_args
  commands=(
{commands}
  )
  _arguments -C '1: :->command' '*:: :->arguments'
  case $state in
    command) _describe command commands ;;
    arguments)
      case $words[1] in
{arguments}
      esac ;;
  esac
}}
if [ "$funcstack[1]" = "_{app}" ]; then _{function} "$@"; else compdef _{function} {app}; fi
"""


def _zsh(found: Sequence[Shape]) -> str:
    return _ZSH.format(
        app=APP,
        function=_FUNCTION,
        commands="\n".join(f"    '{shape.name}:{_colons(shape.help)}'" for shape in found),
        arguments="\n".join(f"        {shape.name}) _arguments {' '.join(_zsh_specs(shape))} ;;" for shape in found),
    )


def _zsh_specs(shape: Shape) -> list[str]:
    specs = []
    for option in shape.options:
        after = "" if option.value is None else f":value:{_zsh_words(option.value)}"
        specs += [f"'{name}[{_colons(option.help)}]{after}'" for name in option.names]
    specs += [f"'{number}:value:{_zsh_words(place)}'" for number, place in enumerate(shape.places, 1)]
    return [*specs, "'*:file:_files'"] if shape.passes else specs


def _zsh_words(words: Words) -> str:
    if words.files:
        return "_files"
    return f"({' '.join(map(_colons, words.words))})" if words.words else " "


def _colons(text: str) -> str:
    return text.replace(":", "\\:")


# -- fish

_FISH = """\
# completion of {app} for fish
function __{function}_at
    # whether the command line is at a place of a command; place -1 is any
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test "$words[2]" = $argv[1]; or return 1
    test $argv[2] = -1; and return 0
    set -l place 0
    for index in (seq 3 (count $words))
        string match -q -- '-*' $words[$index]; and continue
        set -l before (math $index - 1)
        contains -- "$argv[1]:$words[$before]" {valued}; and continue
        set place (math $place + 1)
    end
    test $place -eq $argv[2]
end
complete -c {app} -f
"""


def _fish(found: Sequence[Shape]) -> str:
    valued = [
        f"{shape.name}:{name}"
        for shape in found
        for one in shape.options
        for name in one.names
        if one.value is not None
    ]
    lines = []
    for shape in found:
        at = f"complete -c {APP} -n '__{_FUNCTION}_at {shape.name}"
        lines.append(f"complete -c {APP} -n __fish_use_subcommand -a {shape.name} -d '{shape.help}'")
        for option in shape.options:
            lines.append(f"{at} -1' {_fish_names(option.names)}{_fish_value(option.value)} -d '{option.help}'")
        lines += [f"{at} {number}'{_fish_place(place)}" for number, place in enumerate(shape.places)]
        lines += [f"{at} -1' -F"] if shape.passes else []
    return _FISH.format(app=APP, function=_FUNCTION, valued=" ".join(valued) or "''") + "\n".join(lines) + "\n"


def _fish_names(names: Iterable[str]) -> str:
    return " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in names)


def _fish_value(words: Words | None) -> str:
    if words is None:
        return ""
    return " -r -F" if words.files else f" -x -a '{' '.join(words.words)}'"


def _fish_place(words: Words) -> str:
    return " -F" if words.files else f" -a '{' '.join(words.words)}'"


SCRIPTS: Mapping[str, Callable[[Sequence[Shape]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}


def script(shell: str) -> str:
    """The script of the program for this shell."""
    return SCRIPTS[shell](shapes(COMMANDS, Context()))
