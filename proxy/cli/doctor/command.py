"""`doctor`: the options, and the exit status."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from proxy.cli.command import Context, say
from proxy.config import ConfigError

_HELP = (
    "look for what is wrong with the set-up, and say what mends it; exit status 1 when something fails, 0 when there"
    " are warnings at most"
)


def arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.description = _HELP
    parser.add_argument("--json", action="store_true", help="the findings as JSON")
    parser.add_argument("--offline", action="store_true", help="ask no host")
    parser.add_argument(
        "--bundle",
        nargs="?",
        type=Path,
        const=Path(),
        metavar="FILE",
        help="write an archive for a bug report, without secrets and prompts; into this folder unless FILE is named",
    )
    parser.add_argument(
        "--live",
        metavar="LABEL",
        help="ask one service, or `all`, for a tiny answer, a tool call and a count; this costs some hundred tokens",
    )
    parser.add_argument("--model", help="the model for --live; the main one of the service by default")


async def run(arguments: argparse.Namespace, context: Context) -> int:
    if arguments.live and (arguments.json or arguments.offline or arguments.bundle is not None):
        raise ConfigError("--live takes no other option than --model")
    if arguments.model and not arguments.live:
        raise ConfigError("--model needs --live LABEL")
    if arguments.live:
        from proxy.cli.doctor.live import live

        return await live(arguments.live, arguments.model, context)
    from proxy.cli.doctor.checks import examine, setup_of
    from proxy.cli.doctor.finding import worst
    from proxy.cli.doctor.report import Style, print_json, section_lines, summary

    quiet = arguments.json
    style = Style.of(sys.stdout, context.environment)
    setup = setup_of(context, offline=arguments.offline)
    setup.say = _aside if quiet else lambda line: say(f"  {style.text(line)}")
    sections = []
    async for section in examine(setup, lambda group: None if quiet else say(style.title(group.title))):
        sections.append(section)
        for line in () if quiet else section_lines(section, style):
            say(line)
    if quiet:
        print_json(sections, setup.asked)
    else:
        say(summary(sections, style))
    if arguments.bundle is not None:
        from proxy.cli.doctor.bundle import write_bundle

        write_bundle(arguments.bundle, sections, setup, say=_aside if quiet else say)
    return 1 if worst(sections) == "fail" else 0


def _aside(line: str) -> None:
    """Prints a line that is not part of the JSON."""
    print(line, file=sys.stderr, flush=True)
