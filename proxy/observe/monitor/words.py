"""Numbers, times and names as the monitor writes them. `page/format.js` does the same in the browser."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence

from proxy.observe.monitor.snapshot import RequestRow, Throughput, TotalsRow

NONE = "-"
NO_SESSION = "no-session"
#: Cells of a session's name, unless others would look like it.
NAME_WIDTH = 8

LEVELS = "▁▂▃▄▅▆▇█"
#: Output tokens of one step that fill a cell.
FULL_SCALE = 4_000
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_A_SECOND = 4
BAR_CELLS, BAR_FULL, BAR_EMPTY = 8, "█", "░"

_UUID = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
MINUTE, HOUR, DAY = 60, 3_600, 86_400
_SHORT_WINDOWS = {"weekly": "week", "monthly": "month", "daily": "day", "hourly": "hour"}


def tokens(count: float | None) -> str:
    """
    >>> tokens(999), tokens(1_234), tokens(125_600), tokens(3_400_000), tokens(None)
    ('999', '1.2k', '126k', '3.4M', '-')
    """
    if count is None:
        return NONE
    if count < 1_000:
        return f"{count:.0f}"
    for size, unit in ((1e3, "k"), (1e6, "M"), (1e9, "G")):
        value = count / size
        if value < 999.5:
            return f"{value:.1f}{unit}" if value < 99.95 else f"{value:.0f}{unit}"
    return "999G+"


def whole(count: int | None) -> str:
    return NONE if count is None else f"{count:,}"


def in_room(count: int, room: int) -> str:
    """The whole number, or its part that fits.

    >>> in_room(999, 3), in_room(1_000, 3), in_room(45_678, 3), in_room(12_345_678, 4)
    ('999', '1k', '45k', '12M')
    """
    exact = str(count)
    if len(exact) <= room or count < 1_000:
        return exact
    return f"{count // 1_000}k" if count < 1_000_000 else f"{count // 1_000_000}M"


def counted(active: int, requests: int, failures: int, room: int) -> str:
    """Active, all and failed requests. Where there is no room for all of them, the failures stay.

    >>> counted(1, 45, 4, 7), counted(2, 1_045, 12, 7), counted(12, 10_450, 123, 7), counted(120, 900, 456, 7)
    ('1/45/4', '2/1k/12', '…/…/123', '…/…/456')
    """
    exact = f"{active}/{requests}/{failures}"
    few = [in_room(count, 3) for count in (active, requests, failures)]
    forms = (exact, "/".join(few), f"{few[0]}/…/{few[2]}", f"…/…/{few[2]}")
    return next((form for form in forms if len(form) <= room), few[2])


def duration(seconds: float) -> str:
    """
    >>> duration(7.9), duration(125), duration(3_780), duration(400_000)
    ('7s', '2m05s', '1h03m', '4d15h')
    """
    past = int(max(0.0, seconds)) if math.isfinite(seconds) else 0
    if past < MINUTE:
        return f"{past}s"
    if past < HOUR:
        return f"{past // MINUTE}m{past % MINUTE:02}s"
    return f"{past // HOUR}h{past % HOUR // MINUTE:02}m" if past < DAY else f"{past // DAY}d{past % DAY // HOUR:02}h"


def took(seconds: float) -> str:
    """The duration of a request.

    >>> took(0.42), took(9.96), took(125)
    ('0.4s', '9s', '2m05s')
    """
    return f"{seconds:.1f}s" if 0 <= seconds < 9.95 else duration(seconds)


def age(seconds: float) -> str:
    """An age in one unit.

    >>> age(1.9), age(59), age(7_300)
    ('now', '59s ago', '2h ago')
    """
    if seconds < 2:
        return "now"
    size, unit = next(each for each in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (1, "s")) if seconds >= each[0])
    return f"{seconds // size:.0f}{unit} ago"


def milliseconds(ms: float) -> str:
    """
    >>> milliseconds(3.14), milliseconds(41.4), milliseconds(1_440)
    ('3.1 ms', '41 ms', '1.4s')
    """
    return took(ms / 1_000) if ms >= 1_000 else f"{ms:.1f} ms" if ms < 10 else f"{ms:.0f} ms"


def rate(throughput: Throughput) -> str:
    """Tokens per second where there are any, else bytes.

    >>> rate(Throughput(tokens=100, seconds=8.0)), rate(Throughput(bytes=3_072, seconds=2.0)), rate(Throughput())
    ('12.5 tok/s', '1.5 KB/s', '-')
    """
    seconds = throughput.seconds
    if not 0 < seconds < math.inf:
        return NONE
    if throughput.tokens > 0:
        return f"{decimal(throughput.tokens / seconds)} tok/s"
    if throughput.bytes > 0:
        return f"{data(throughput.bytes / seconds)}/s"
    return f"{decimal(throughput.chunks / seconds)} ev/s" if throughput.chunks > 0 else NONE


def decimal(number: float) -> str:
    return f"{number:.1f}" if number < 99.95 else tokens(number)


def data(count: float) -> str:
    """A number of bytes, as shown."""
    if count < 1_024:
        return f"{count:.0f} B"
    return f"{count / 1_024:.1f} KB" if count < 1_048_576 else f"{count / 1_048_576:.1f} MB"


def percent(number: float) -> str:
    """Per cent; a half is rounded up, as browsers do.

    >>> percent(12.5), percent(0.4)
    ('13%', '0%')
    """
    return f"{math.floor(number + 0.5)}%"


def share(value: float | None) -> str:
    """
    >>> share(0.825), share(None)
    ('83%', '-')
    """
    return NONE if value is None or not math.isfinite(value) else percent(100 * value)


def clock(at: float | None) -> str:
    """The local time of day."""
    return NONE if at is None else time.strftime("%H:%M:%S", local(at))


def moment(at: float | None, now: float) -> str:
    """The local time of day, with its date when that is another day."""
    if at is None:
        return NONE
    day = time.strftime("%Y-%m-%d", local(at))
    return clock(at) if day == time.strftime("%Y-%m-%d", local(now)) else f"{day} {clock(at)}"


def local(at: float) -> time.struct_time:
    """The local time of a moment."""
    try:
        return time.localtime(at)
    except (OverflowError, OSError, ValueError):  # a number that is no time
        return time.localtime(0)


def session_name(session: str | None, width: int = NAME_WIDTH) -> str:
    """The id, or the first group of a UUID where there is no room for more."""
    if session is None:
        return NO_SESSION
    match = _UUID.fullmatch(session) if width <= NAME_WIDTH else None
    return match[1] if match else session


def model(requested: str | None, resolved: str | None) -> str:
    """Both names where they differ."""
    if not requested or not resolved or requested == resolved:
        return requested or resolved or NONE
    return f"{requested} → {resolved}"


def target(row: TotalsRow | RequestRow) -> str:
    name = model(row.requested, row.resolved)
    return f"{row.provider}/{name}" if row.provider else name


def sparkline(history: Sequence[float], width: int, full: float = FULL_SCALE) -> str:
    """One cell per step, the newest at the right. `full`: what fills a cell.

    >>> sparkline([0, 1, 50, 100, 300], 6, full=100)
    '  ▁▄██'
    """
    return "".join(_level(one, full) for one in history[-width:]).rjust(width) if width > 0 else ""


def _level(count: float, full: float) -> str:
    return LEVELS[min(len(LEVELS), math.ceil(count * len(LEVELS) / full)) - 1] if count > 0 else " "


def spinner(now: float) -> str:
    return FRAMES[int(now % 3_600 * FRAMES_A_SECOND) % len(FRAMES)]


def bar(percent: float, width: int = BAR_CELLS) -> str:
    """
    >>> bar(50, 4)
    '██░░'
    """
    full = round(width * min(max(percent, 0.0), 100.0) / 100)
    return BAR_FULL * full + BAR_EMPTY * (width - full)


def window(words: str) -> str:
    """The length of a window in a few letters.

    >>> window("5 hours"), window("Weekly"), window("30 minutes")
    ('5h', 'week', '30m')
    """
    number, _, unit = words.partition(" ")
    if number.isdigit() and unit:
        return number + unit[0]
    return _SHORT_WINDOWS.get(words.lower(), words)


def listed(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
