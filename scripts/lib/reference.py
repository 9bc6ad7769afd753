"""Reference pages, tables within other pages, and the scripts for completion, out of the tables that the program runs
on."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import completion
from e2e import matrix
from proxy.errors import KINDS, MEDIA_BAD_ANSWER, MEDIA_CODES, MEDIA_UPSTREAM
from proxy.loading import SETTINGS
from proxy.providers.registry import PROVIDERS
from proxy.settings import Setting

ROOT = Path(__file__).parents[2]

#: A table that is written here begins and ends so, in a page that is otherwise written by hand.
_BEGIN, _END = "<!-- written by scripts/reference -->\n", "<!-- end -->\n"

_WHEN = {
    "invalid_request": "the request is wrong; the message says where",
    "refused": "what Claude Code gets instead of invalid_request and unprocessable, see below",
    "sign_in": "no usable credential, or the caller's key is missing or wrong; the message names the cure",
    "billing": "the upstream wants to be paid",
    "permission": "the upstream or the guard (Host, Origin) says no",
    "not_found": "the upstream does not know what the request names",
    "no_route": "there is no such path",
    "wrong_method": "the path exists, the method does not; see `Allow`",
    "slow_request": "the request body did not arrive here in time",
    "too_large": "the request body passes the limit",
    "context": "the conversation does not fit the model; clients compact and repeat",
    "media_type": "the `Content-Type` is not JSON, or the body is packed in an unknown way",
    "no_upgrade": "a WebSocket upgrade of a route that is served over HTTP only; clients go on over HTTP",
    "unprocessable": "the upstream understood and refused",
    "rate_limit": "too many requests for the upstream; `Retry-After` when it named a time",
    "usage_limit": "the allowance of the subscription is spent; the message says until when",
    "busy": "a limit of this proxy; try again in a second",
    "internal": "a bug of the proxy; the log has where, under the request id",
    "transport": "the upstream could not be reached, fell silent or cut its answer",
    "outbound": "the outgoing proxy could not be reached or refused the tunnel; never repeated here, never replaced by a direct connection",
    "certificate": "the certificate of the model service is not trusted; the message says how to name an authority",
    "outbound_auth": "the outgoing proxy wants a user and password, or others than it got; the message names the variable",
    "bad_answer": "the upstream's answer could not be understood, or not be passed on without changing its meaning",
    "unavailable": "something that the request needs is out of order for now (sign-in service, token counting)",
    "stopping": "the proxy stops before the answer is whole; also the last event of a stream",
    "upstream_timeout": "the upstream took too long",
    "overloaded": "the upstream is overloaded",
    "transient": "the upstream failed in a way that usually passes, and the proxy's retries failed too; its own status is kept",
    "upstream": "any other answer of the upstream, with its own status",
}


def settings_page() -> str:
    lines = [
        "# Settings",
        "",
        "Variables win over `config.json`, which wins over the defaults. `serve --port` wins over all.",
        "",
        'The file is one JSON object. Keys are nested (`{"p1": {"effort": "high"}}`) or dotted (`{"p1.effort": "high"}`).',
        "",
        "- A value that cannot be right, in the file or in a variable, stops the start, and so does a file that cannot be read. The message",
        "  names the place and what is expected there.",
        "- Unknown keys are warnings that name the nearest known one. So are variables that are nearly one of ours",
        "  (`PROXY_P1_RESPONSE_API`). Variables of other programs are not looked at.",
        "- A switch (*true or false*) takes these words in any case: `1`, `true`, `yes` or `on`; `0`, `false`, `no`, `off` or empty. Any other",
        "  word stops the start. The file takes them too, beside `true` and `false`.",
        "- Every other variable counts as not set when it is empty.",
        "",
        "The file is read again when it changes. A change that cannot be used is reported once, and the last good settings stay. These stay as they",
        "were at the start: address, port, alias provider, key, issuer, captures, and which routes there are.",
        "",
        "| key | variable | type | default | what |",
        "|---|---|---|---|---|",
        *(_row(setting) for setting in SETTINGS),
        "",
        "`PROXY_CONFIG_DIR` moves the folder of `config.json` and the credentials, and must exist; `XDG_CONFIG_HOME`, `XDG_STATE_HOME` and `HOME` are",
        "honoured: [files](files.md). So are `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`: [behind a proxy](../operations.md#behind-a-proxy).",
    ]
    return "\n".join(lines) + "\n"


def _row(setting: Setting) -> str:
    key = f"`{setting.key}`" if setting.key else ""
    variables = ", ".join(f"`{name}`" for name in setting.variables)
    return f"| {key} | {variables} | {setting.kind} | {_default(setting.default)} | {setting.help} |"


def _default(value: object) -> str:
    if value is None or value == ():
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def errors_page() -> str:
    lines = [
        "# Errors",
        "",
        'Every error has the shape of the Messages API, `{"type":"error","error":{"type","message","provider"?},"request_id"}`, with the status',
        "below. The [OpenAI-style routes](openai-routes.md#errors) have their own shape.",
        "",
        "- The upstream's own words are kept, without pages of HTML and without credentials.",
        "- `Retry-After` is a whole number of seconds.",
        "- Errors that no retry cures have `x-should-retry: false`, which Claude Code and the official SDKs honour. So has any error of an",
        "  upstream that says so itself; the upstream is then not asked again.",
        "- Once a stream has begun, the same object is its last event. A context overflow then begins with",
        '  "prompt is too long", the words on which clients compact.',
        "",
        "## What an upstream says",
        "",
        "An upstream's error keeps its class:",
        "",
        "- A failure that usually passes (408, 409, 425, a 5xx but 501 and 505) is retried. When the retries are used up, it keeps its",
        "  status, its words and its `Retry-After` (2 s where it named no time).",
        "- 529 and `overloaded_error` mean an upstream that says it is overloaded, or an answer without content.",
        '- "context window" and its like are an overflow whatever the status.',
        "- p3: a 404 or a 426 is a 400, a refused token a 401 also where it comes as 403, missing credits a 402, and a refused image a 400",
        "  also where it comes as 500.",
        "- An error inside a 200 stream counts by its type word or its numeric code. As the first event it becomes that status and is retried",
        "  as usual; later it is an `error` event of that type. One that names nothing known is a 502 (500 of p1).",
        "- Where a stream was asked for, a whole answer in JSON is taken as the answer, and an error in JSON as that error. A body that",
        "  breaks after the finish reason is a whole answer.",
        "",
        "Malformed HTTP gets a 400 whose message begins with `this is not an HTTP request`, in a form that clients of either API read:",
        "the same header twice where only one makes sense, over-long headers, broken chunks, TLS on this port. In a program that embeds the",
        "proxy, the HTTP library answers with a plain text.",
        "",
        "## Kinds",
        "",
        "| kind | status | type | final | when |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {kind.status} | `{kind.messages}` | {'yes' if kind.final else ''} | {_WHEN[name]} |"
            for name, kind in KINDS.items()
        ),
        "",
        "## For Claude Code",
        "",
        "Claude Code, from 2.1.329 on, answers a 400 or 422 that it does not know with the same request with fewer features, five times,",
        "whatever `x-should-retry` says. The proxy takes all those features, so this cures nothing, and a service that refused would be asked six",
        "times. A client that calls itself `claude-cli/…` therefore gets the type `policy_blocked`, at which it stops; it shows the message all",
        "the same. A 422 becomes a 400 for it: in auto mode it would repeat it without `safeguards`, and leave the mode. Errors for which it has",
        "an answer of its own stay as they are: an unknown model, `safeguards`, message threads.",
        "",
        "It also replaces some texts by its own:",
        "",
        '- `x-api-key` anywhere in an error, or a revoked OAuth token, becomes "Not logged in · Please run /login". Signing in there cures',
        "  nothing, so it gets such words of an upstream in other words.",
        '- A 404 becomes "There\'s an issue with the selected model". A 413 becomes "Request too large" or, where a "context window" is named,',
        '  a reason to compact. A 401 or 403 follows "Please run /login ·".',
        "",
        "No text of ours has words that it replaces (`tests/test_errors.py` keeps the list, read out of 2.1.242 and 2.1.330).",
        "",
        "## On the OpenAI-style routes",
        "",
        "The code of an error is the upstream's own word where it has one, else that of the table. `failure` is the code of a Responses stream",
        "that broke.",
        "",
        "| kind | status | type | code | failure |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {kind.openai_status or kind.status} | `{kind.openai}` | {f'`{kind.code}`' if kind.code else ''} | `{kind.failure}` |"
            for name, kind in KINDS.items()
        ),
        "",
        "On the routes of [images and audio](routes.md#images-and-audio) every error has a code: its own (`unsupported_parameter`,",
        "`invalid_multipart`, a short word of the upstream's), else that of its kind. The type follows the status, which is the upstream's own:",
        "401 `authentication_error`, 403 `permission_error`, 429 `rate_limit_error`, any other 4xx `invalid_request_error`, the rest `api_error`.",
        "",
        "| kind | code |",
        "|---|---|",
        *(f"| {kind}, of the proxy | `{code}` |" for kind, code in MEDIA_CODES.items()),
        f"| bad_answer | `{MEDIA_BAD_ANSWER}` |",
        f"| any other, and what an upstream refuses | `{MEDIA_UPSTREAM}` |",
        "",
        "## Refused before anything is sent",
        "",
        "| request | answer |",
        "|---|---|",
        "| empty body, broken JSON, not an object, not UTF-8, half a surrogate pair, nested deeper than 128 levels | 400, message begins with `Invalid JSON:` |",
        "| a tool that only another service runs, forced or alone; `fallbacks`; a block of an uploaded file | 400, names the place and the provider |",
        "| a member of the wrong type (`model`, `stream`, `max_tokens`, `messages`, a message without `role` or `content`) | 400, names the member |",
        "| no `model`, an unknown one, or one of a provider that is not served | 400 with the catalogue |",
        "| `Content-Type` missing or not JSON; an unknown `Content-Encoding` | 415 |",
        "| body above 64 MiB, declared or counted | 413 |",
        "| `Host` that is not ours; foreign `Origin`; `Sec-Fetch-Site` of another site | 403 |",
        "| `Host`, `Content-Type`, `Content-Length`, `Origin` and the like more than once | 400 |",
        "| more than 24 requests of one session, 48 of one provider, 64 in all at one time | 429, `Retry-After: 1` |",
    ]
    return "\n".join(lines) + "\n"


def readme() -> str:
    rows = [
        f"| {entry.label} | {entry.product} | {entry.state} | {', '.join(f'`{model}`' for model in entry.examples.values())} |"
        for entry in PROVIDERS
    ]
    return _with_table("README.md", ["| label | subscription | state | for example |", "|---|---|---|---|", *rows])


def cli_page() -> str:
    rows = [
        f"| {entry.label} | {entry.catalog.service} | {entry.product} | {entry.sign_in} |"
        for entry in PROVIDERS
        if entry.account is not None
    ]
    head = ["| label | or | subscription | `auth login` |", "|---|---|---|---|"]
    return _with_table("docs/reference/cli.md", [*head, *rows])


def clients_page() -> str:
    return _with_table("docs/clients/README.md", matrix.table())


def _with_table(page: str, lines: list[str]) -> str:
    before, _, rest = (ROOT / page).read_text().partition(_BEGIN)
    after = rest.partition(_END)[2]
    return before + _BEGIN + "".join(line + "\n" for line in lines) + _END + after


#: page -> its text
PAGES = {
    "README.md": readme,
    "docs/clients/README.md": clients_page,
    "docs/reference/cli.md": cli_page,
    "docs/reference/errors.md": errors_page,
    "docs/reference/settings.md": settings_page,
    **{f"proxy/data/completion/{shell}": partial(completion.script, shell) for shell in completion.SCRIPTS},
}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / name).write_text(page())
