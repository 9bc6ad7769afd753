"""A section of settings: how long, and how much of, what the proxy writes below its state folder is kept."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.settings import Rows, integer, row

DAY_S = 24 * 3600
_MIB = 1024 * 1024
_NEVER = "0 for no such limit"


@dataclass(frozen=True)
class Retention(Rows):
    """The limits, all read at the start."""

    log_file_bytes: int = row(
        "log.maxFileBytes",
        "PROXY_LOG_MAX_FILE_BYTES",
        20 * _MIB,
        integer(1, 2**40),
        "A log file that is larger is put aside, as `proxy.<unix-ms>`.",
        fixed=True,
    )
    log_bytes: int = row(
        "log.maxTotalBytes",
        "PROXY_LOG_MAX_TOTAL_BYTES",
        200 * _MIB,
        integer(1, 2**50),
        "All log files together; of those put aside the oldest go first.",
        fixed=True,
    )
    log_days: int = row(
        "log.maxAgeDays",
        "PROXY_LOG_MAX_AGE_DAYS",
        30,
        integer(0, 36_500),
        "A log file whose first record is older is put aside, and one that was put aside longer ago is removed;"
        f" {_NEVER}.",
        fixed=True,
    )
    error_files: int = row(
        "log.maxErrorFiles",
        "PROXY_LOG_MAX_ERROR_FILES",
        128,
        integer(1, 100_000),
        "Failed answers that are kept, the newest.",
        fixed=True,
    )
    error_bytes: int = row(
        "log.maxErrorBytes",
        "PROXY_LOG_MAX_ERROR_BYTES",
        32 * _MIB,
        integer(1, 2**50),
        "Failed answers that are kept, all together.",
        fixed=True,
    )
    error_days: int = row(
        "log.maxErrorAgeDays",
        "PROXY_LOG_MAX_ERROR_AGE_DAYS",
        30,
        integer(0, 36_500),
        f"A failed answer that is older is removed; {_NEVER}.",
        fixed=True,
    )
    capture_days: int = row(
        None,
        "PROXY_TRAFFIC_MAX_AGE_DAYS",
        0,
        integer(0, 36_500),
        f"Captures that began longer ago are removed while captures are on; {_NEVER}.",
        fixed=True,
    )
    allowance_days: int = row(
        "allowances.maxAgeDays",
        "PROXY_ALLOWANCES_MAX_AGE_DAYS",
        90,
        integer(0, 36_500),
        f"The allowances of an account that was not heard of for longer are forgotten; {_NEVER}.",
        fixed=True,
    )
    history_days: int = row(
        "history.maxAgeDays",
        "PROXY_HISTORY_MAX_AGE_DAYS",
        400,
        integer(0, 36_500),
        f"Requests in the history that ended longer ago are removed; {_NEVER}.",
        fixed=True,
    )
    history_bytes: int = row(
        "history.maxBytes",
        "PROXY_HISTORY_MAX_BYTES",
        512 * _MIB,
        integer(1, 2**50),
        "The file of the history; when it is larger, the oldest requests go first.",
        fixed=True,
    )
