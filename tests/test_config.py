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

from proxy.cli.command import Context
from proxy.cli.config_file import ConfigFile
from proxy.config import Config, ConfigError
from proxy.loading import SETTINGS, load, overrides, read_file
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p2_kimi.settings import KimiSettings
from proxy.settings import is_loopback

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
        assert all(name.startswith("PROXY_") or name in ("PORT", "OPENCODE_API_KEY") for name in setting.variables)
        assert getattr(setting.section(), setting.field) == setting.default


def test_a_section_is_given_by_its_class_and_a_changed_one_leaves_the_others() -> None:
    config = Config(port=1)
    assert config.section(Config) is config and codex(config) == CodexSettings()
    changed = config.changed(CodexSettings, transport="http").changed(CodexSettings, effort="low")
    assert codex(changed) == CodexSettings(transport="http", effort="low") and changed.port == 1
    assert changed.section(KimiSettings) == KimiSettings() and codex(config) == CodexSettings()
    assert changed.changed(Config, port=2).port == 2


def test_a_variable_wins_over_the_file_and_the_file_over_the_default() -> None:
    file = {"port": 19000, "p1": {"effort": "high"}}
    assert load(NOTHING, file)[0].port == 19000
    assert load({"PORT": "19001"}, file)[0].port == 19001
    assert load({"PORT": "19001", "PROXY_PORT": "19002"}, file)[0].port == 19002
    assert codex(load({"PROXY_P1_EFFORT": "low"}, file)[0]).effort == "low"
    assert codex(load(NOTHING, file)[0]).effort == "high"


def test_keys_may_be_nested_or_written_out_and_unknown_ones_are_ignored() -> None:
    for file in ({"p1": {"model": "gpt-5.4", "new": {}}}, {"p1.model": "gpt-5.4", "unknown": 1, "p9": 7}):
        config, warnings = load(NOTHING, {**file, "port": 19000})
        assert (codex(config).model, config.port, warnings) == ("gpt-5.4", 19000, [])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("port", value) for value in ("x", True, 1.5)),
        *(("p1", {"pdfInput": "yes"}), ("p1.model", 7), ("server", {"allowedHosts": {"a": 1}})),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_key_of_the_wrong_type_makes_the_whole_file_void(key: str, value: Any, first: bool) -> None:
    wrong, right = {key: value}, {"bindAddress": "192.0.2.1"}
    config, warnings = load(NOTHING, {**wrong, **right} if first else {**right, **wrong})
    assert config == Config() and len(warnings) == 1
    assert warnings[0].startswith("config.json is ignored as a whole: ") and "192.0.2.1" not in warnings[0]


def test_a_number_out_of_range_costs_itself_only_and_the_file_is_not_asked_instead() -> None:
    config, warnings = load(NOTHING, {"port": 70000, "p1": {"model": "gpt-5.4"}})
    assert (config.port, codex(config).model) == (18765, "gpt-5.4") and len(warnings) == 1
    for value in ("abc", "-1", "65536", "1.5", "٣", "²", "9" * 30):
        config, warnings = load({"PORT": value}, {"port": 19000})
        assert config.port == 18765
        assert len(warnings) == 1 and warnings[0].startswith("PORT is ignored: ")


def test_empty_variables_are_not_set() -> None:
    config, warnings = load({"PROXY_P1_MODEL": "", "PORT": "", "PROXY_API_KEY": " "}, {"p1": {"model": "gpt-5.4"}})
    assert (codex(config).model, config.port, config.api_key) == ("gpt-5.4", 18765, None) and warnings == []


@pytest.mark.parametrize("value", ["", "0", "false", "1"])
def test_the_log_switches_are_on_when_present(value: str) -> None:
    config, warnings = load({"PROXY_LOG_STDERR": value, "PROXY_LOG_VERBOSE": value})
    assert config.log_stderr and config.log_verbose and warnings == []
    assert load(NOTHING, {"log": {"stderr": False}})[0].log_stderr is False
    assert load(NOTHING, {"log": {"stderr": True}})[0].log_stderr is True


@pytest.mark.parametrize(
    ("value", "on"), [*((word, True) for word in ("1", "TRUE", " yes ", "on")), ("0", False), ("off", False)]
)
def test_switches_understand_the_usual_words_and_are_never_turned_on_by_accident(value: str, on: bool) -> None:
    assert codex(load({"PROXY_P1_PDF_INPUT": value}, {"p1": {"pdfInput": not on}})[0]).pdf_input is on
    config, warnings = load({"PROXY_P1_PDF_INPUT": "maybe"}, {"p1": {"pdfInput": True}})
    assert codex(config).pdf_input is False and len(warnings) == 1


@pytest.mark.parametrize(("value", "on"), [("YES", True), ("0", False), ("maybe", None), ("2", None)])
@pytest.mark.parametrize("in_file", [True, False])
def test_an_unknown_word_for_server_compaction_leaves_it_to_the_file(
    value: str, on: bool | None, in_file: bool
) -> None:
    variables = {"PROXY_P1_SERVER_COMPACTION": value}
    config, warnings = load(variables, {"p1": {"serverCompaction": in_file}})
    assert codex(config).server_compaction is (in_file if on is None else on)
    assert len(warnings) == (on is None) and all("using config.json" in warning for warning in warnings)
    config, warnings = load(variables)
    assert codex(config).server_compaction is bool(on) and len(warnings) == (on is None)


def test_an_address_of_either_family_is_taken_and_one_that_is_none_stops_the_start() -> None:
    for value, address in (("::1", "::1"), ("[::]", "::"), (" 0.0.0.0 ", "0.0.0.0")):
        assert load({"PROXY_BIND_ADDRESS": value})[0].bind_address == address
    for value in ("not-an-ip", "localhost", "127.0.0.1:80", "256.1.1.1", "[::1]:80"):
        with pytest.raises(ConfigError, match=f"invalid proxy bind address.*{re.escape(value)}"):
            load({"PROXY_BIND_ADDRESS": value})
        with pytest.raises(ConfigError, match="in config"):
            load(NOTHING, {"bindAddress": value})


GOOD = ("https://example.com/x/responses", "http://127.0.0.1:8080/r", "http://localhost/r", "http://[::1]:1/r")
BAD = (
    *("http://example.com/x", "ftp://127.0.0.1", "https://user:pass@example.com", "https://example.com/?q=1"),
    *("https://example.com/#x", "https://", "example.com", "http://127.0.0.1.example.com", "http://[broken"),
    "https://example.com:99999",
)


@pytest.mark.parametrize("value", [*GOOD, *BAD])
def test_a_credential_goes_to_https_or_loopback_only(value: str) -> None:
    for name, field in (("PROXY_P1_BASE_URL", "base_url"), ("PROXY_P1_ISSUER", "issuer")):
        if value in GOOD:
            assert getattr(codex(load({name: value + "/"})[0]), field) == value
        else:
            with pytest.raises(ConfigError, match=name):
                load({name: value})


def test_the_provider_of_the_aliases_is_one_of_two() -> None:
    for value, label in (("p2", "p2"), ("kimi", "p2"), ("codex", "p1"), ("p1", "p1")):
        assert load({"PROXY_ALIAS_PROVIDER": value})[0].alias_provider == label
    for value in ("p3", "P2", "x"):
        config, warnings = load({"PROXY_ALIAS_PROVIDER": value}, {"aliasProvider": "p2"})
        assert config.alias_provider == "p1" and len(warnings) == 1


def test_hosts_come_as_a_list_or_as_a_text() -> None:
    assert load({"PROXY_ALLOWED_HOSTS": "A.example, b.example,,"})[0].allowed_hosts == ("a.example", "b.example")
    assert load(NOTHING, {"server": {"allowedHosts": ["A.example"]}})[0].allowed_hosts == ("a.example",)


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


@pytest.mark.parametrize("content", ["{", "[]", "7", "\xff", "[" * 100_000, '{"port": NaN'])
def test_a_file_that_cannot_be_read_is_ignored_with_its_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content.encode("latin-1"))
    found, warnings = read_file(path)
    assert found == {} and len(warnings) == 1 and str(path) in warnings[0]
    assert read_file(tmp_path / "none.json") == ({}, [])


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


def test_a_file_that_breaks_while_running_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    watched = Watched(tmp_path, p1={"model": "gpt-5.4"})
    assert codex(watched.write('{"bindAddress": "nonsense"}')).model == "gpt-5.4"
    assert len(watched.warnings) == 1 and "invalid proxy bind address" in watched.warnings[0]
    assert codex(watched.write("{")).model is None
    assert watched.warnings[1] == f"{watched.path} is ignored: JSONDecodeError"
    watched.file.current()
    assert len(watched.warnings) == 2


def test_flags_outlive_a_change_of_the_file(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.file.override(port=0)
    assert watched.write('{"port": 5}').port == 0


def test_the_file_is_not_looked_at_for_every_request(tmp_path: Path) -> None:
    watched = Watched(tmp_path, reload_s=60.0)
    assert codex(watched.write('{"p1": {"model": "gpt-5.4"}}')).model is None


@pytest.mark.parametrize(
    ("value", "transport"), [("http", "http"), (" WebSocket ", "websocket"), ("carrier pigeon", "auto")]
)
def test_an_unknown_transport_is_the_automatic_one(value: str, transport: str) -> None:
    config, warnings = load({"PROXY_P1_TRANSPORT": value}, {"p1": {"transport": "http"}})
    assert codex(config).transport == transport and len(warnings) == (value == "carrier pigeon")
