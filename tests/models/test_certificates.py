"""Whom a client trusts is read once by a process, and again when the file has changed."""

import os
from pathlib import Path

import pytest
from certificates import certificates as make

from opsleuth.models.certificates import load_tls_context
from opsleuth.state.errors import ConfigError


def test_a_file_is_read_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    make(tmp_path)
    file = tmp_path / "ca.pem"
    first = load_tls_context(str(file))
    assert load_tls_context(str(file)) is first
    assert len(first.get_ca_certs()) == 1
    os.utime(file, ns=(1, 1))
    assert load_tls_context(str(file)) is not first


def test_the_environment_is_asked_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path)
    before = load_tls_context(None)
    assert load_tls_context(None) is before
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert len(load_tls_context(None).get_ca_certs()) == 1


def test_what_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for path in (tmp_path / "ca.pem", tmp_path / "none.pem"):
        with pytest.raises(ConfigError, match=f"certificates in {path} cannot be read"):
            load_tls_context(str(path))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(ConfigError, match=r"none\.pem cannot be read"):
        load_tls_context(None)
