"""Settings: where they come from, what wins, what a mistake costs."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from samples import rows

from proxy.cli.command import Context
from proxy.cli.config_file import ConfigFile
from proxy.config import Config, ConfigError
from proxy.core.hiding.secret import Secret
from proxy.loading import SETTINGS, load, overrides, read_file
from proxy.providers.entry import doubtful
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p2_kimi.settings import KimiSettings
from proxy.providers.registry import PROVIDERS
from proxy.settings import Setting, UnfitValue, is_loopback, text

NOTHING: dict[str, str] = {}


def codex(config: Config) -> CodexSettings:
    return config.section(CodexSettings)


def test_without_anything_every_setting_has_its_default() -> None:
    config, warnings = load(NOTHING)
    assert config == Config() and warnings == []
    assert (config.bind_address, config.port, config.alias_provider) == ("127.0.0.1", 18765, "p1")
    assert config.max_body_bytes == 64 * 1024 * 1024 and config.max_concurrent_per_session == 24


def test_the_table_of_settings_is_complete() -> None:
    sections = dict.fromkeys(setting.section for setting in SETTINGS)
    fields = [(section, field.name) for section in sections for field in dataclasses.fields(section)]
    assert [(setting.section, setting.field) for setting in SETTINGS] == [
        place for place in fields if place != (Config, "sections")
    ]
    keys = [setting.key for setting in SETTINGS if setting.key]
    variables = [name for setting in SETTINGS for name in setting.variables]
    assert len(set(keys)) == len(keys) and len(set(variables)) == len(variables)
    for setting in SETTINGS:
        assert setting.variables and setting.help.endswith(".") and setting.kind
        assert all(
            name.startswith("PROXY_") or name in ("PORT", "OPENCODE_API_KEY", "CURSOR_AUTH_TOKEN")
            for name in setting.variables
        )
        assert getattr(setting.section(), setting.field) == setting.default


def test_a_section_is_given_by_its_class_and_a_changed_one_leaves_the_others() -> None:
    config = Config(port=1)
    assert config.section(Config) is config and codex(config) == CodexSettings()
    changed = config.changed(CodexSettings, transport="http").changed(CodexSettings, effort="low")
    assert codex(changed) == CodexSettings(transport="http", effort="low") and changed.port == 1
    assert changed.section(KimiSettings) == KimiSettings() and codex(config) == CodexSettings()
    assert changed.changed(Config, port=2).port == 2


#: As they stand in a refused Host header, and as they are compared.
HOSTS = ("a.example", "192.0.2.7", "fd00::1", "fd00::2", "*")

SWITCHES = [setting.variables[0] for setting in SETTINGS if isinstance(setting.default, bool)]

#: variable, its value, what the file says, what counts
VALUES: list[tuple[str, str | None, Any, Any]] = [
    *(("PROXY_PORT", None, 19000, 19000), ("PORT", "19001", 19000, 19001), ("PORT", "", None, 18765)),
    *(("PROXY_P1_EFFORT", "low", "high", "low"), ("PROXY_P1_EFFORT", None, "high", "high")),
    *(("PROXY_P4_API_KEY", "sk-1\n", None, Secret("sk-1")), ("PROXY_P2_USER_AGENT", " me/1 ", None, "me/1")),
    *(("PROXY_P1_MODEL", word, None, word) for word in ("opus", "claude-haiku-9", "gpt-5.5-fast", "gpt-7", "x")),
    ("PROXY_P1_MODELS", " gpt-7 , gpt-8=gpt-5.5,", None, (("gpt-7", ""), ("gpt-8", "gpt-5.5"))),
    ("PROXY_P4_MODELS", "opencode-go/a=opencode-go/glm-5.2", None, (("a", "glm-5.2"),)),
    ("PROXY_P5_MODELS", "cursor:gpt-7=gpt-5.2,b", None, (("gpt-7", "gpt-5.2"), ("b", ""))),
    *(("PROXY_P2_MODELS", None, value, (("a", "k3"), ("b", ""))) for value in ({"a": "k3", "b": None}, ["a=k3", "b"])),
    *(("PROXY_AUTO_REVIEW_MODEL", word, None, word) for word in ("k3", "opus", "glm-5.2", "gpt-5.5[1m]")),
    *(("PROXY_P1_MODEL", "opus[1m]", None, "opus"), ("PROXY_P1_EFFORT", "HIGH", None, "high")),
    *(
        ("PROXY_P1_MODEL", "", "gpt-5.4", "gpt-5.4"),
        ("PROXY_API_KEY", " ", None, None),
        ("PROXY_P5_AUTH_TOKEN", "  ", None, None),
    ),
    *(("PROXY_LOG_STDERR", None, value, value) for value in (True, False)),
    *((name, word, None, True) for name in SWITCHES for word in ("1", "TRUE", " yes ", "On")),
    *((name, word, None, False) for name in SWITCHES for word in ("0", "OFF", "no ", "False", "", " ")),
    *(("PROXY_P1_PDF_INPUT", word, True, False) for word in ("0", "off", "")),
    *(("PROXY_P1_SERVER_COMPACTION", "YES", stored, True) for stored in (True, False, None)),
    *(("PROXY_P1_SERVER_COMPACTION", "0", stored, False) for stored in (True, False, None)),
    *(("PROXY_BIND_ADDRESS", "::1", None, "::1"), ("PROXY_BIND_ADDRESS", "[::]", None, "::")),
    ("PROXY_BIND_ADDRESS", " 0.0.0.0 ", None, "0.0.0.0"),
    *(("PROXY_ALIAS_PROVIDER", word, None, "p2") for word in ("p2", "kimi", "P2", " Kimi ")),
    *(("PROXY_ALIAS_PROVIDER", word, None, "p1") for word in ("p1", "codex")),
    ("PROXY_ALLOWED_HOSTS", "A.example, b.example,,", None, ("a.example", "b.example")),
    ("PROXY_ALLOWED_HOSTS", None, ["A.example"], ("a.example",)),
    ("PROXY_ALLOWED_HOSTS", "a.example:80, 192.0.2.7:1, [fd00::1]:1, fd00::2,*", None, HOSTS),
    *(("PROXY_P1_TRANSPORT", word, "http", word.strip().lower()) for word in ("http", " WebSocket ")),
]


@rows("name, value, stored, found", VALUES)
def test_a_variable_wins_over_the_file_and_the_file_over_the_default(
    name: str, value: str | None, stored: Any, found: Any
) -> None:
    setting = next(setting for setting in SETTINGS if name in setting.variables)
    file = {} if stored is None else {setting.key: stored}
    config, warnings = load({} if value is None else {name: value}, file)
    assert getattr(config.section(setting.section), setting.field) == found and not warnings


#: The names that the interface gives: variable, key of the file (none, where it gives none), a value.
NAMED = [
    *(
        (f"PROXY_P1_{name}", f"p1.{key}", "1")
        for name, key in (
            *(("RESPONSES_API", "responsesApi"), ("IMAGES_API", "imagesApi")),
            *(("TRANSCRIPTIONS_API", "transcriptionsApi"), ("SERVER_COMPACTION", "serverCompaction")),
        )
    ),
    ("PROXY_BIND_ADDRESS", "bindAddress", "127.0.0.2"),
    ("PROXY_AUTO_REVIEW_MODEL", "autoReviewModel", "k3"),
    ("PROXY_ALIAS_PROVIDER", "aliasProvider", "p2"),
    *(("PROXY_P1_REASONING_SUMMARY", "p1.reasoningSummary", word) for word in ("off", "none")),
    ("PROXY_P1_SERVICE_TIER", "p1.serviceTier", "fast"),
    ("PROXY_P1_BASE_URL", "p1.baseUrl", "https://h.example/responses"),
    ("PROXY_P1_MODEL", "", "gpt-5.4"),
    ("PROXY_P1_EFFORT", "", "high"),
    *(("PROXY_COMPACT_EFFORT", "", word) for word in ("medium", "off")),
    ("PROXY_P3_TOOL_IMAGE", "", "reattach"),
    ("PROXY_TRAFFIC_LOG", "", "1"),
]


@rows("variable, key, value", NAMED)
def test_the_names_of_the_interface_are_known(variable: str, key: str, value: str) -> None:
    config, warnings = load({variable: value})
    assert config != Config() and not warnings
    if key:
        assert load(NOTHING, {key: value == "1" or value}) == (config, [])


#: variable, a value that cannot be right, what is expected
WRONG_VARIABLES = [
    *(("PORT", value, "whole number from 0 to 65535") for value in ("abc", "-1", "65536", "1.5", "٣", "²", "9" * 30)),
    *(("PROXY_ALIAS_PROVIDER", word, "p1 or p2") for word in ("p9", "pp2", "x")),
    *((name, word, "true or false \\(on, yes, 1; off, no, 0\\)") for name in SWITCHES for word in ("maybe", "2", "ja")),
    ("PROXY_COMPACT_EFFORT", "lo", "none, low, medium, high, xhigh, max or off"),
    ("PROXY_P1_REASONING_SUMMARY", "of", "auto, concise, detailed, off or none"),
    ("PROXY_P1_TRANSPORT", "carrier pigeon", "auto, websocket or http"),
    *(
        ("PROXY_P1_MODELS", word, "p1 has no model .* that gpt-7 could be like")
        for word in ("gpt-7=k3", "a, gpt-7=gpt-8")
    ),
    *(("PROXY_P4_MODELS", word, "is no id") for word in ("a b", "ü", "=glm-5.2", "x" * 101)),
    ("PROXY_P5_MODELS", "gpt-7=gpt-8", "p5 has no model 'gpt-8'"),
    ("PROXY_AUTO_REVIEW_MODEL", "lunar-9", "a model, as `model-proxy models` lists them"),
    ("PROXY_P1_EFFORT", "hihg", "none, low, medium, high, xhigh or max"),
    ("PROXY_P1_SERVICE_TIER", "slow", "fast, priority or flex"),
]


@rows("name, value, expected", WRONG_VARIABLES)
def test_a_variable_that_cannot_be_right_stops_the_start(name: str, value: str, expected: str) -> None:
    """Whatever the file says: nobody meant the value that would be used instead."""
    with pytest.raises(ConfigError, match=f"^{name}: expected .*{expected}"):
        load({name: value}, {"port": 19000})


def test_the_own_name_of_a_variable_wins_over_a_usual_one() -> None:
    assert load({"PORT": "19001", "PROXY_PORT": "19002"})[0].port == 19002


def test_keys_may_be_nested_or_written_out() -> None:
    for file in ({"p1": {"model": "gpt-5.4"}}, {"p1.model": "gpt-5.4"}, {"p1.model": "gpt-5.4", "p1": None}):
        config, warnings = load(NOTHING, {**file, "port": 19000})
        assert (codex(config).model, config.port, warnings) == ("gpt-5.4", 19000, [])


def test_what_is_shown_of_a_file_moves_no_cursor_and_can_be_printed() -> None:
    odd = "a\x1b[2J\n\ud800"
    _, warnings = load({f"PROXY_P1_{odd}": "x"}, {odd: 1, "p1": {odd: 1}})
    lines = [*warnings, *overrides(NOTHING, {"p5.agentBundle": odd * 1000})]
    assert len(lines) == 4 and all(line.isprintable() and "\\u001b[2J" in line for line in lines)
    assert all(len(line.encode()) < 1300 for line in lines)
    with pytest.raises(ConfigError) as refused:
        load({"PROXY_BIND_ADDRESS": odd + "x" * 10_000})
    assert refused.value.message.isprintable() and len(refused.value.message) < 400


def test_unknown_keys_are_warnings_with_the_nearest_name() -> None:
    file = {"unknown-to-all": 1, "p1": {"modle": "x", "model": "gpt-5.4"}, "prot": 5, "p1.x.y": {}, "x" * 1000: 1}
    config, warnings = load(NOTHING, file, place="/c.json")
    assert codex(config).model == "gpt-5.4" and config.port == 18765
    assert warnings[:2] == [
        "/c.json: unknown key unknown-to-all is ignored",
        "/c.json: unknown key prot; did you mean port?",
    ]
    assert warnings[-1] == "/c.json: unknown key p1.modle; did you mean p1.model?"
    assert len(warnings) == 5 and all(len(warning) < 300 for warning in warnings)


@rows("on", [True, 1, "1", "on", "Yes", " TRUE "])
@rows("off", [False, 0, "0", "off", "No", "", "  "])
def test_a_switch_has_the_same_words_in_the_file_as_in_a_variable(on: Any, off: Any) -> None:
    config, _ = load({}, {"p1": {"responsesApi": on, "reasoningSignatures": off}})
    assert config.openai_routes and not config.section(CodexSettings).reasoning_signatures


#: a variable that no setting has, the name that was meant; None where it is nobody's mistake
STRANGE = [
    ("PROXY_P1_RESPONSE_API", "; did you mean PROXY_P1_RESPONSES_API?"),
    ("PROXY_RESPONSES_API", "; did you mean PROXY_P1_RESPONSES_API?"),
    ("PROXY_APIKEY", "; did you mean PROXY_API_KEY?"),
    ("PROXY_ALLOWED_HOST", "; did you mean PROXY_ALLOWED_HOSTS?"),
    ("PROXY_P4_KEY", "; did you mean PROXY_P4_API_KEY?"),
    ("PROXY_P7_ZZZ", " is ignored"),
    ("PROXY_PROT", "; did you mean PROXY_PORT?"),
    ("PROXY_CONFIGDIR", "; did you mean PROXY_CONFIG_DIR?"),
    ("PROXY_OPENCODE_API_KEY", "; did you mean OPENCODE_API_KEY?"),
    ("PROXY_P1_RESPONSES_APIS", "; did you mean PROXY_P1_RESPONSES_API?"),
    *(
        (name, None)
        for name in ("PROXY_FOO", "PROXY_HOST", "PROXY_USER", "PROXY_PASS", "PROXY_URL", "PROXY_CONFIG_DIR")
    ),
    *((name, None) for name in ("HTTP_PROXY", "NO_PROXY", "P1_MODEL", "PROXY_", "PROXY", "proxy_port")),
]


@rows("name, told", STRANGE)
def test_a_variable_that_is_nearly_one_of_ours_is_a_warning(name: str, told: str | None) -> None:
    config, warnings = load({name: "1"})
    assert config == Config()
    assert warnings == ([] if told is None else [f"unknown variable {name}{told}"])


def test_a_program_that_makes_a_config_is_held_to_what_the_file_is_held_to() -> None:
    config = Config(api_key="k3y", allowed_hosts=["A.example"], port="80")  # type: ignore[arg-type]
    assert config == Config(api_key=Secret("k3y"), allowed_hosts=("a.example",), port=80)
    assert "k3y" not in repr(config)
    for wrong in ({"api_key": " "}, {"api_key": 7}, {"port": 70000}, {"bind_address": "localhost"}, {"captures": "ja"}):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))}: "):
            Config(**wrong)  # type: ignore[arg-type]
    for wrong in ({"transport": "pigeon"}, {"effort": "much"}, {"service_tier": "slow"}):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))}: expected "):
            CodexSettings(**wrong)  # type: ignore[arg-type]


#: a key, a value that cannot be right, what is expected
WRONG_KEYS: list[tuple[str, Any, str]] = [
    *(("port", value, "whole number, 0 to 65535") for value in ("x", "19000", True, 1.5, [], {})),
    *(("port", value, "whole number from 0 to 65535") for value in (70000, -1)),
    *(("apiKey", value, "secret text") for value in (7, True, {"k": "k"})),
    *(("apiKey", value, "a secret that is not empty") for value in ("", " ")),
    *(("p1.pdfInput", value, "true or false") for value in ("maybe", 2, 1.0, [])),
    *(
        *(
            (key, "a\nb", "text without control characters")
            for key in ("apiKey", "p4.apiKey", "p1.userAgent", "p1.originator")
        ),
        *(("p1.model", 7, "model of p1"), ("p1.effort", "", "xhigh or max")),
        *(("p2.models", value, "ids with commas") for value in (7, True)),
        *(("p2.models", value, "alone or with a model that is listed") for value in ([7], {"a": 7}, [["a", "b", "c"]])),
        ("p3.models", {"grok-9": "gpt-5.5"}, "p3 has no model 'gpt-5.5' that grok-9"),
        ("server.allowedHosts", {"a": 1}, "host names"),
        ("server.allowedHosts", [1], "host names"),
        *(("server.allowedHosts", value, "without scheme") for value in ("https://mine.example", ["a b"], "a\x00b")),
    ),
    *(
        ("aliasProvider", "p9", "name of one: codex, "),
        ("p1.transport", "x", "websocket"),
        ("p1.baseUrl", "http://x", "https URL"),
    ),
    *(("p1", value, 'object such as {"p1"') for value in ("x", 7, [], True)),
]


@rows("key, value, expected", WRONG_KEYS)
@rows("first", [True, False])
def test_a_key_that_cannot_be_right_stops_the_start(key: str, value: Any, expected: str, first: bool) -> None:
    """A proxy that went on without its file would be one without its key."""
    wrong, right = {key: value}, {"apiKey": "hunter2"} if key != "apiKey" else {"bindAddress": "192.0.2.1"}
    group, dot, name = key.partition(".")
    for written in (wrong, {group: {name: value}} if dot else wrong):
        with pytest.raises(ConfigError) as raised:
            load({"PORT": "1"}, {**written, **right} if first else {**right, **written}, place="/c.json")
        assert raised.value.message.startswith(f"/c.json: {key}: ") and expected in raised.value.message
        assert "hunter" not in raised.value.message


@rows("value", ["not-an-ip", "localhost", "127.0.0.1:80", "256.1.1.1", "[::1]:80"])
def test_an_address_that_is_none_stops_the_start(value: str) -> None:
    with pytest.raises(ConfigError, match=f"invalid proxy bind address.*{re.escape(value)}"):
        load({"PROXY_BIND_ADDRESS": value})
    with pytest.raises(ConfigError, match=r"config\.json: bindAddress: "):
        load(NOTHING, {"bindAddress": value})


GOOD = ("https://example.com/x/responses", "http://127.0.0.1:8080/r", "http://localhost/r", "http://[::1]:1/r")
BAD = (
    *("http://example.com/x", "ftp://127.0.0.1", "https://user:pass@example.com", "https://example.com/?q=1"),
    *("https://example.com/#x", "https://", "example.com", "http://127.0.0.1.example.com", "http://[broken"),
    *("https://example.com:99999", "https://exa mple.com", "https://example.com/a b", "https://example.com\\x"),
    *("https://exa\nmple.com", "https://a..example.com", f"https://{'a' * 64}.example.com"),
)


@rows("value", [*GOOD, *BAD])
def test_a_credential_goes_to_https_or_loopback_only(value: str) -> None:
    for name, field in (("PROXY_P1_BASE_URL", "base_url"), ("PROXY_P1_ISSUER", "issuer")):
        if value in GOOD:
            assert getattr(codex(load({name: value + "/"})[0]), field) == value
        else:
            with pytest.raises(ConfigError, match=name):
                load({name: value})


def test_loopback_is_known() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost", "a.localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "192.168.0.1", "localhost.example"))


def test_a_key_is_never_shown() -> None:
    config, _ = load({"PROXY_API_KEY": "hunter2"}, {"apiKey": "hunter3"})
    assert config.api_key and config.api_key.reveal() == "hunter2"
    assert "hunter" not in repr(config)
    assert overrides({"PROXY_API_KEY": "hunter2"}, {}) == ["apiKey (env)"]
    lines = overrides(NOTHING, {"apiKey": "hunter3", "autoReviewModel": "free text", "port": 19000})
    assert lines == ["port: 19000", "apiKey (config)", "autoReviewModel (config)"]


UNREADABLE = {
    "{": "line 1, column 2: not JSON",
    '{"port": 1,\n"apiKey" "hunter2"}': "line 2, column 10: not JSON",
    '{"port": NaN': "not JSON",
    "": "not JSON",
    "[]": "expected a JSON object",
    "7": "expected a JSON object",
    "\xff": "cannot be read: UnicodeDecodeError",
    "[" * 100_000: "cannot be read: RecursionError",
}


@pytest.mark.parametrize("content", UNREADABLE)
def test_a_file_that_cannot_be_read_stops_the_start(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError) as raised:
        read_file(path)
    assert str(path) in raised.value.message and UNREADABLE[content] in raised.value.message
    assert "hunter" not in raised.value.message


def test_a_folder_is_no_file_and_no_file_is_no_setting(tmp_path: Path) -> None:
    assert read_file(tmp_path / "none.json") == {}
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_file(tmp_path)


def test_a_file_of_an_editor_that_marks_its_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"port": 1}', "utf-8-sig")
    assert read_file(tmp_path / "config.json") == {"port": 1}


# -- the file as it changes


class Watched:
    """A ConfigFile whose file can be changed, and time with it."""

    def __init__(
        self, root: Path, *, reload_s: float = 0.0, variables: dict[str, str] = NOTHING, **content: Any
    ) -> None:
        self.path = root / "config.json"
        self.path.write_text(json.dumps(content))
        self.file = ConfigFile(Context({**variables, "PROXY_CONFIG_DIR": str(root)}), reload_s=reload_s)
        self.warnings: list[str] = []
        self.file.warn = self.warnings.append

    def write(self, text: str) -> Config:
        self.path.write_text(text)
        later = time.time_ns() + 1_000_000_000
        os.utime(self.path, ns=(later, later))
        return self.file.current()


def test_a_changed_file_counts_at_once_except_for_what_is_fixed(tmp_path: Path) -> None:
    watched = Watched(tmp_path, variables={"PROXY_P1_EFFORT": "high"}, port=19000)
    own = {"model": "gpt-5.4", "effort": "low", "issuer": "https://other.example"}
    changes = {"port": 1, "bindAddress": "0.0.0.0", "aliasProvider": "p2", "apiKey": "x", "p1": own}
    config = watched.write(json.dumps(changes))
    assert (codex(config).model, codex(config).effort) == ("gpt-5.4", "high")
    assert (config.port, config.bind_address, config.alias_provider) == (19000, "127.0.0.1", "p1")
    assert config.api_key is None and codex(config).issuer == codex(Config()).issuer
    watched.path.unlink()
    assert codex(watched.file.current()).model is None


@pytest.mark.parametrize("broken", ["{", '{"bindAddress": "nonsense"}', '{"p1": {"model": 7}}'])
def test_a_file_that_breaks_while_running_leaves_the_last_good_settings(tmp_path: Path, broken: str) -> None:
    watched = Watched(tmp_path, p1={"model": "gpt-5.4"})
    assert codex(watched.write(broken)).model == codex(watched.file.current()).model == "gpt-5.4"
    assert len(watched.warnings) == 1
    assert watched.warnings[0].startswith(f"the settings stay as they were: {watched.path}: ")
    assert codex(watched.write('{"p1": {"model": "gpt-5.5"}, "prot": 1}')).model == "gpt-5.5"
    assert watched.warnings[1:] == [f"{watched.path}: unknown key prot; did you mean port?"]


def test_flags_outlive_a_change_of_the_file(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.file.override(port=0)
    assert watched.write('{"port": 5}').port == 0


def test_the_file_is_not_looked_at_for_every_request(tmp_path: Path) -> None:
    watched = Watched(tmp_path, reload_s=60.0)
    assert codex(watched.write('{"p1": {"model": "gpt-5.4"}}')).model is None


def test_models_of_the_settings_that_are_doubtful_are_told() -> None:
    environment = {
        "PROXY_P4_MODELS": "gpt-5.5,glm-6,glm-5.2",
        "PROXY_P1_MODEL": "my-model",
        "PROXY_P2_MODELS": "cursor:x,opus,gpt-7,kimi-k3",
    }
    told = doubtful(load(environment)[0], PROVIDERS)
    assert told == [
        "p1.model: my-model is in no list; it is sent like the nearest that is",
        "p2.models: cursor:x is a model of p5, which serves it",
        "p4.models: gpt-5.5 is a model of p1, which serves it",
    ]
    for model in ("my-model", "gpt-5.5-fast", "opus"):
        fine = load({"PROXY_P1_MODELS": "my-model", "PROXY_P1_MODEL": model})[0]
        assert doubtful(fine, PROVIDERS) == []


def test_a_model_of_one_setting_may_be_named_by_another() -> None:
    assert load({"PROXY_P2_MODELS": "kimi-k4", "PROXY_AUTO_REVIEW_MODEL": "kimi-k4"})[0].auto_review_model == "kimi-k4"
    with pytest.raises(ConfigError, match=r"^config\.json: autoReviewModel: expected a model"):
        load({}, {"autoReviewModel": "kimi-k4"})


def test_what_describes_pictures_takes_pictures() -> None:
    for model in ("gpt-5.6-sol", "opencode-go/kimi-k2.6", "sonnet", "cursor:auto"):
        assert load({"PROXY_VISION_MODEL": model})[0].vision_model == model
    with pytest.raises(ConfigError, match=r"^PROXY_VISION_MODEL: expected a model that takes pictures"):
        load({"PROXY_VISION_MODEL": "glm-5.2"})
    assert load({"PROXY_VISION_MODEL": " gpt-5.6-sol \n"})[0].vision_model == "gpt-5.6-sol"
    with pytest.raises(ConfigError, match=r"^PROXY_VISION_MODEL: expected a model that takes pictures"):
        load({"PROXY_VISION_MODEL": "grok-4.5"})  # p3 omits pictures by default
    with pytest.raises(ConfigError, match=r"^PROXY_VISION_MODEL: expected a model that takes pictures"):
        load({"PROXY_VISION_MODEL": "sonnet", "PROXY_ALIAS_PROVIDER": "p3"})
    assert load({"PROXY_VISION_MODEL": "grok-4.5", "PROXY_P3_TOOL_IMAGE": "reattach"})[0].vision_model == "grok-4.5"
    with pytest.raises(ConfigError, match=r"^config\.json: vision: expected a model, as"):
        load({}, {"vision": "nothing"})


_SAMPLES = (
    *("https://h.example", "127.0.0.1", "on", "7", "p1", "2.1", "0.2.93", "gpt-5.5", "cli-1.2.3-abcdef0"),
    *("http", "reject", "high", "strict", "judge", "off", "text", "fast", "priority", "auto", "fail", "anna=p1/work"),
    "overloaded",
)


@rows("setting", [one for one in SETTINGS if one.variables])
def test_what_stands_unseen_around_a_value_is_no_part_of_it_and_inside_it_is_refused(setting: Setting) -> None:
    """`key\\n` from a file of variables is common, and a header with it would be none."""
    value, parsed = next((sample, found) for sample in _SAMPLES if (found := _parsed(setting, sample)) is not None)
    for unseen in ("{}\n", "{}\r\n", "\ufeff{}", "\t{} \xa0", "\u200b{}\u2060", "{}\0"):
        assert _parsed(setting, unseen.format(value)) == parsed, unseen
    for inside in ("\n", "\r", "\0", "\x1b", "\ufeff", "\u200b", "\udcff"):
        if setting.parse is not text and not setting.free_text:  # which no header carries
            with pytest.raises(ConfigError, match=setting.variables[0]):
                load({setting.variables[0]: f"{value}{inside}{value}"})


def _parsed(setting: Setting, value: str) -> Any:
    try:
        return setting.parse(value)
    except UnfitValue:
        return None


def test_a_program_that_embeds_the_proxy_may_give_keys_as_they_were_read() -> None:
    assert Config(api_key=Secret("k3y\r\n")) == Config(api_key=Secret("k3y"))
    with pytest.raises(ValueError, match=r"api_key: .*control characters"):
        Config(api_key=Secret("k3\ny"))


@rows(
    "value, found",
    [
        ("anna=p1/work, bob=p1/home", (("anna", "p1/work"), ("bob", "p1/home"))),
        ({"anna": "p1/work"}, (("anna", "p1/work"),)),
        ({"anna": ["p1/work", "p3/anna"]}, (("anna", "p1/work"), ("anna", "p3/anna"))),
        ("", ()),
        *[(value, None) for value in ("anna", "anna=work", "=p1/work", "anna=p1/../x", "anna=p1/a,anna=p1/b", 7)],
        *[(value, None) for value in ({"anna": 7}, {"anna": [["p1/work"]]}, ["anna"])],
    ],
)
def test_callers_have_accounts(value: Any, found: Any) -> None:
    if found is None:
        with pytest.raises(ConfigError, match=r"accounts\.callers"):
            load({}, {"accounts": {"callers": value}})
    else:
        assert load({}, {"accounts": {"callers": value}})[0].account_callers == found
