"""The table `[service]` of several files."""

from pathlib import Path

import pytest

from opsleuth.configuration import config_file
from opsleuth.configuration.service_settings import read_service_settings

FAR = """
[service]
retention_days = 7
[service.model]
requests_per_minute = 10
[service.webhooks.chat]
url = "https://chat.example.com/hook"
secret = { env = "X" }
teams = ["shop"]
[service.senders.pages]
kind = "pagerduty"
team = "shop"
secret = { env = "X" }
"""
NEAR = """
[service.model]
tokens_per_minute = 20
[service.webhooks.desk]
url = "https://desk.example.com/hook"
secret = { env = "X" }
[service.webhooks.chat]
url = "https://other.example.com/hook"
secret = { env = "Y" }
"""


def test_a_nearer_file_adds_webhooks_and_senders_and_replaces_those_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, text in (("system", FAR), ("user/opsleuth", NEAR)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / config_file.CONFIG).write_text(text)
    monkeypatch.setattr(config_file, "SYSTEM", tmp_path / "system")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    monkeypatch.chdir(tmp_path)
    service = read_service_settings()
    assert sorted(service.webhooks) == ["chat", "desk"]
    assert (service.webhooks["chat"].url, service.webhooks["chat"].teams) == (
        "https://other.example.com/hook",
        (),
    )
    assert (sorted(service.senders), service.retention_days) == (["pages"], 7)
    assert (service.model.requests_per_minute, service.model.tokens_per_minute) == (10, 20)
