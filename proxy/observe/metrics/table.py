"""The table of metrics. Units are seconds, bytes and tokens; shares are 0 to 1."""

from __future__ import annotations

from proxy.observe.metrics.registry import COUNTER, GAUGE, HISTOGRAM, SUMMARY, Metric

#: An answer may take minutes, the wait for its first token rarely does.
_LONG = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_SHORT = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0)
_LAG = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)

_OF = "model_proxy_"

BUILD = Metric(f"{_OF}build_info", GAUGE, "Always 1; its labels say what runs.", ("version", "python"))

REQUESTS = Metric(
    f"{_OF}requests_total",
    COUNTER,
    "Requests that are over. Status is the class of what was answered, none where the client left; outcome is"
    " completed, failed (also a stream that broke, whose status is 2xx) or abandoned by the client.",
    ("provider", "model", "endpoint", "outcome", "status"),
)
FAILURES = Metric(
    f"{_OF}request_failures_total", COUNTER, "Requests that failed, by kind of error.", ("provider", "kind")
)
ACTIVE = Metric(f"{_OF}requests_active", GAUGE, "Requests under way.", ("provider",))
DURATION = Metric(
    f"{_OF}request_duration_seconds",
    HISTOGRAM,
    "From the head of a request to the end of its answer.",
    ("provider", "endpoint"),
    _LONG,
)
FIRST_TOKEN = Metric(
    f"{_OF}time_to_first_token_seconds",
    HISTOGRAM,
    "From the head of a request to the first output of the model.",
    ("provider",),
    _SHORT,
)
SPANS = Metric(
    f"{_OF}request_span_seconds",
    SUMMARY,
    "Where the time until the first token went: queue, translate, sign_in, retry, connect, first_byte, first_token.",
    ("provider", "span"),
)

INPUT_TOKENS = Metric(f"{_OF}input_tokens_total", COUNTER, "Input tokens, cached ones too.", ("provider", "model"))
CACHED_TOKENS = Metric(
    f"{_OF}cached_input_tokens_total",
    COUNTER,
    "Input tokens that the upstream had in its cache.",
    ("provider", "model"),
)
OUTPUT_TOKENS = Metric(f"{_OF}output_tokens_total", COUNTER, "Output tokens.", ("provider", "model"))
RESPONSE_BYTES = Metric(
    f"{_OF}response_body_bytes_total", COUNTER, "Bytes of answers that were passed on while they came.", ("provider",)
)

FALLBACKS = Metric(
    f"{_OF}fallbacks_total", COUNTER, "Requests that another provider or model served in place.", ("provider",)
)
CALLER_REQUESTS = Metric(
    f"{_OF}caller_requests_total",
    COUNTER,
    "Requests that are over, by the name of the caller's key; outcome as above.",
    ("caller", "outcome"),
)
CALLER_TOKENS = Metric(
    f"{_OF}caller_tokens_total",
    COUNTER,
    "Tokens by the name of the caller's key; direction is input (cached ones too) or output.",
    ("caller", "direction"),
)

ATTEMPTS = Metric(f"{_OF}upstream_attempts_total", COUNTER, "Requests sent to upstreams.", ("provider",))
RETRIES = Metric(f"{_OF}upstream_retries_total", COUNTER, "Those of them that repeated another.", ("provider",))
RENEWALS = Metric(
    f"{_OF}sign_in_renewals_total", COUNTER, "Renewals of tokens; result is ok or failed.", ("provider", "result")
)
SOCKETS = Metric(f"{_OF}sockets_open", GAUGE, "Open WebSockets to upstreams.", ("provider",))

JUDGED = Metric(f"{_OF}judged_calls_total", COUNTER, "Tool calls that auto mode judged.", ("outcome",))
JUDGE_INPUT = Metric(f"{_OF}judge_input_tokens_total", COUNTER, "Input tokens that the judge cost.")
JUDGE_OUTPUT = Metric(f"{_OF}judge_output_tokens_total", COUNTER, "Output tokens that the judge cost.")
PICTURES = Metric(
    f"{_OF}described_pictures_total", COUNTER, "Pictures described for models that take none.", ("outcome",)
)
VISION_INPUT = Metric(f"{_OF}vision_input_tokens_total", COUNTER, "Input tokens that descriptions of pictures cost.")
VISION_OUTPUT = Metric(f"{_OF}vision_output_tokens_total", COUNTER, "Output tokens that they cost.")

REFUSALS = Metric(
    f"{_OF}admission_refusals_total",
    COUNTER,
    "Requests refused because a limit of the proxy was reached, by that limit.",
    ("limit",),
)
BUFFERED = Metric(f"{_OF}buffered_body_bytes", GAUGE, "Request bodies that are held now.")
LAG = Metric(
    f"{_OF}event_loop_lag_seconds", HISTOGRAM, "How late a task that waits wakes up, twice a second.", (), _LAG
)

ALLOWANCE_USED = Metric(
    f"{_OF}allowance_used_ratio",
    GAUGE,
    "The used share of a window of the account's allowance, by the service's newest number; 1 is all of it.",
    ("provider", "window", "limit"),
)
ALLOWANCE_RESET = Metric(
    f"{_OF}allowance_reset_timestamp_seconds",
    GAUGE,
    "When that window begins again.",
    ("provider", "window", "limit"),
)

MEMORY = Metric("process_resident_memory_bytes", GAUGE, "Memory of the process.")
CPU = Metric("process_cpu_seconds_total", COUNTER, "User and system time of the process.")
STARTED = Metric("process_start_time_seconds", GAUGE, "When the process started, since the epoch.")
OPEN_FDS = Metric("process_open_fds", GAUGE, "Open file descriptors.")
MAX_FDS = Metric("process_max_fds", GAUGE, "How many there may be.")

ALL = (
    *(BUILD, REQUESTS, FAILURES, ACTIVE, DURATION, FIRST_TOKEN, SPANS),
    *(INPUT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS, RESPONSE_BYTES, FALLBACKS, CALLER_REQUESTS, CALLER_TOKENS),
    *(ATTEMPTS, RETRIES, RENEWALS, SOCKETS, JUDGED, JUDGE_INPUT, JUDGE_OUTPUT),
    *(PICTURES, VISION_INPUT, VISION_OUTPUT),
    *(REFUSALS, BUFFERED, LAG, ALLOWANCE_USED, ALLOWANCE_RESET),
    *(MEMORY, CPU, STARTED, OPEN_FDS, MAX_FDS),
)
